"""nvm.numpy's functions of whole arrays, neighbours, vectors and signals, against NumPy's."""

import pytest

from numpy_cases import check_all

TABLES = {
    "logic": """
        np.isclose({any}, {close})
        np.isclose(m, m + 1e-6, rtol={rtol}, atol={rtol})
        np.isclose(o, o, equal_nan={keep})
        np.isclose(np.array([0, 1], 'uint8'), np.array([255, 2], 'uint8'), 0, {atol})
        np.isclose(np.array([-128, 1], 'int8'), np.array([{least}, 2], 'int8'), 0.9, {atol})
        np.allclose({few}, {close})
        np.allclose(o, o, equal_nan={keep})
        np.array_equal({few}, {few})
        np.array_equal(o, o, equal_nan={keep})
        np.array_equal(m, v)
        np.array_equiv(m, v)
        np.array_equiv([1, 1], 1)
        np.array_equiv({few}, {few})
        np.{test}({any})
        np.isposinf(o, np.zeros(6, bool))
        np.isfortran(m)
        np.isscalar(3.0)
        np.isscalar('a')
        np.isscalar([1])
        np.isscalar(z)
        np.real_if_close(m + 1e-20j)
        np.real_if_close(m + 1e-5j)
        np.real_if_close({few}, tol=1e-3)
        np.angle({angled}, {keep})
    """,
    "elements": """
        np.clip({real}, 0, 1)
        np.clip(m, {limits}, None)
        np.clip(m, None, {limits})
        np.clip(m, min=0)
        np.clip(m, 0, 1, min=0)
        np.clip(m)
        np.clip(i, 0, 1, out=np.zeros((3, 4), int))
        np.clip(u, 0, 300)
        np.round({number}, {decimals})
        np.around(c, {decimals})
        np.round({infinite}, {decimals})
        x = {infinite}; x.round(1)
        np.fix({float})
        np.nan_to_num({any})
        np.nan_to_num(o, nan=1, posinf=2, neginf=3)
        x = o.copy(); np.nan_to_num(x, copy=False); x
        np.nan_to_num({infinite})
        np.nan_to_num({infinite}, posinf=inf, neginf={limit})
        np.sinc({real})
        np.sinc({zeros})
        np.i0({float})
        np.i0(np.linspace(-30, 700, 50))
        np.i0(c)
    """,
    "neighbours": """
        np.diff({any})
        np.diff({few}, 2, {one})
        np.diff(m, 0)
        np.diff(m, -1)
        np.diff(m, axis=0, prepend=0, append=[[1, 2, 3, 4]])
        np.diff(v, prepend=0, append=1.5)
        np.ediff1d({full})
        np.ediff1d(v, [1, 2], 3)
        np.ediff1d(i, 1.5)
        np.gradient({float})
        np.gradient(v, {spacing})
        np.gradient(v, [0, 1, 3, 4, 7], edge_order=2)
        np.gradient(m, 2.0, [0, 1, 3, 4])
        np.gradient(m, 2.0, axis={one})
        np.gradient(t, edge_order=2)
        np.gradient(m, edge_order=3)
        np.gradient(m, 1, 2, 3)
        np.gradient(i)
        np.gradient([1])
        np.trapezoid({few})
        np.trapezoid(m, [0, 1, 3, 4])
        np.trapezoid(t, axis={one})
        np.trapezoid(m, m, 2.0, 0)
        np.unwrap({float})
        np.unwrap(m * 9, axis={one})
        np.unwrap(m * 9, 4)
        np.unwrap(i * 5, period=8)
        np.unwrap(i * 5, period=7)
    """,
    "vectors": """
        np.cross([1, 2, 3], [4, 5, 6])
        np.cross(t, t[::-1], axis=1)
        np.cross(t, t, axis=5)
        np.cross(m, m)
        np.cross(m, m.T, 0, 1)
        np.cross(m, m.T, 0, 1, 0)
        np.cross(z, z)
        np.dot({few}, {few})
        np.dot(m, m.T)
        np.dot(t, m.T)
        np.dot(m, v)
        np.dot(m, m.T, out=np.zeros((3, 3)))
        np.inner({few}, {few})
        np.outer({few}, {few})
        np.vdot({few}, {few})
        np.kron({few}, {few})
        np.kron(v, m)
        np.tensordot(t, t, {contracted})
        np.einsum('ij,kj->ik', m, m)
        np.einsum('ii', m[:, :3])
        np.einsum('ij->j', i, dtype='float64')
        np.einsum('ij,jk', m, m)
        np.einsum('ij->j', m, out=np.zeros(4))
    """,
    "signals": """
        np.convolve({series}, {series}, {mode})
        np.correlate({series}, {series}, {mode})
        np.convolve(np.arange(100.0), np.arange(70) % 7, {mode})
        np.{slid}({ends}, {ends}, {mode})
        np.{slid}([complex(1, nan), 2, 3], [3, complex(1, 2)], {mode})
        np.{slid}(np.arange(100.0), np.array([1.0] * 69 + [inf]), {mode})
        np.{slid}(np.array([1.0] * 69 + [inf]), np.arange(1.0, 101), {mode})
        np.{slid}(np.arange(80.0), np.array([nan] + [1] * 69), {mode})
        np.polymul([1.0, 2], [1, inf])
        np.convolve(v, m)
        np.convolve(v, z)
        np.correlate(v, z)
        np.convolve(v, e)
        np.convolve(v, v, 'other')
        np.interp({at}, [1, 2, 4], [10, 20, -5])
        np.interp({at}, [1, 2, 4], [10, 20, -5], left=-1, right=nan)
        np.interp({at}, [1, 2, 4], [10, 20, -5j])
        np.interp({at}, [1, 5, 3], [10, 20, -5], period=6)
        np.interp({points}, [0, 1, 2], {heights})
        np.interp({points}, [1, 2], [inf, inf])
        np.interp({points}, [1, 2, 2, 3], [0, 1, inf, 3])
        np.interp({at}, [2], [7])
        np.interp(1, [], [])
        np.interp(1, [1, 2], [3])
    """,
    "bits": """
        np.packbits({bits})
        np.packbits(i > 0, {axis}, {order})
        np.packbits(v)
        np.unpackbits(u)
        np.unpackbits(u, {axis}, {count}, {order})
        np.unpackbits(u, bitorder='other')
        np.unpackbits(i)
    """,
    "emath": """
        np.emath.{leaving}({wide})
        np.emath.power({wide}, {power})
        np.emath.logn(2, m)
    """,
    "norms": """
        np.linalg.norm({few})
        np.linalg.norm({few}, keepdims=True)
        np.linalg.norm({normed}, {ord})
        np.linalg.norm(v, {ord}, {norm_axis1}, {keep})
        np.linalg.norm({matrices}, {ord}, {norm_axis}, {keep})
    """,
    "windows": """
        np.{window}({n})
        np.kaiser({n}, {beta})
    """,
}
SETS = {
    "infinite": (
        "np.array([complex(1.25,inf),complex(-inf,2)]) np.array([complex(nan,-inf),complex(-inf,nan)],np.complex64)"
    ),
    "limit": "inf -inf None",
    "zeros": "np.array([0,-0.0,0.5,1],np.float16) np.array([0,1e-7],np.float32) [0,1j] [0,1]",
    "slid": "convolve correlate",
    "ends": "[inf,1.0] [1.0,2,3] [1.0,-inf,2,5] np.array([nan,1,inf],np.float32) [2,3]",
    "points": "[0,1,2,1.5,0.5,-1,3,nan] 2 1.5 [inf,-inf]",
    "heights": "[0,1,inf] [inf,1,inf] [-inf,inf,3] [nan,1,nan] [1,complex(2,inf),3] [complex(inf,1),2,inf]",
    "close": "0 v[0] m+1e-9 [nan,1,2,inf]",
    "angled": "v m t i b z n c s h",
    "atol": "0 1.5 [1.5,1.5] np.array([1.5,1.5])",
    "least": "-128 127",
    "rtol": "0 1e-3 1e-7 np.array([0.0,1,0,1])",
    "test": "isreal iscomplex isrealobj iscomplexobj isposinf isneginf real imag",
    "limits": "0 0.5 [0,1,-1,0.5] nan [1,2]",
    "decimals": "0 1 2 -1",
    "number": "v m t i j u z e n o h s",
    "spacing": "2 0.5 [0,1,3,4,7] [0,1,2,3,4] [1,2] [[1]]",
    "contracted": "0 1 2 3 ([1],[1]) ([0,1],[0,1]) ([0,2],[2,0])",
    "series": "v i[0] j b[0] c[0] s[1] m[:2,:1].ravel()",
    "mode": "'full' 'same' 'valid' 1",
    "at": "v [0,1,1.5,2,3,4,9] 2.5 [[nan,inf,-inf]] []",
    "window": "bartlett blackman hamming hanning",
    "n": "0 1 2 5 12 -3 4.5",
    "bits": "i b u j e[:0].astype(int) t.astype(int)",
    "order": "'big' 'little'",
    "count": "None 5 100 -3 -400",
    "leaving": "sqrt log log2 log10 arccos arcsin arctanh",
    "wide": "v m t i j z e n h s m[::2,::-1]",
    "power": "2 0.5 -1",
    "ord": "None 1 2 -1 -2 inf -inf 0 3 'fro' 'nuc' 'other'",
    "norm_axis": "0 -1 (0,1) (1,0) (-1,-2) (0,0)",
    "norm_axis1": "0 -1 (0,)",
    "normed": "v m t i b c j s",
    "matrices": "m t i b c",
    "beta": "0 5 8.6 14",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)
