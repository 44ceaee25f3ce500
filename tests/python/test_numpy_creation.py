"""nvm.numpy's functions that make arrays, against NumPy's."""

import pytest

from numpy_cases import check_all

TABLES = {
    "data": """
        np.{make}({data})
        np.{make}({data}, {type})
        np.array({data}, ndmin={k})
        np.array({data}, ndmax=1)
        np.array([[1, 2], [3]])
        np.array(np.array, 'int8')
        np.asarray([1, 2], order='X')
        np.asarray([1, 2], 'nonsense')
        np.copy({any})
        np.asarray_chkfinite({any})
        np.require({few0}, {type}, {needs})
        np.frombuffer(b'abcdefgh12345678')
        np.frombuffer(b'abcdefgh12345678', {type}, 2, 4)
        np.frombuffer(b'abcdefgh', 'int32', 3)
        np.frombuffer(b'abcdefg')
        np.fromiter((i * i for i in range(5)), {type})
        np.fromiter(range(5), 'int64', 3)
        np.fromiter(range(2), 'int64', 3)
    """,
    "shapes": """
        np.{fill}({shape})
        np.{fill}({shape}, {type})
        np.{fill}((2, 3), order='F')
        np.{fill}_like({any})
        np.{fill}_like({few}, {type})
        np.{fill}_like({few}, shape=(2, 2))
        np.full({shape}, {value})
        np.full((2, 3), {real}, {type})
        np.full((2, 3), [1, 2, 3])
        np.full((2, 3), [1, 2])
        np.full_like({any}, 2)
        np.full_like({few}, {real}, {type})
    """,
    "matrices": """
        np.eye({n})
        np.eye(3, {n}, {k})
        np.eye(3, dtype={type})
        np.identity({n})
        np.identity(2, {type})
        np.tri(3, {size}, {k})
        np.tri(3, dtype={type})
        np.{tri}({full2})
        np.{tri}(t, {k})
        np.{tri}([1, 2, 3], {k})
        np.diag({any})
        np.diag({few}, {k})
        np.diagflat({few}, {k})
        np.diagonal({few}, {k})
        np.diagonal(t, {k}, {one}, {one})
        np.vander({any})
        np.vander(v, {n})
        np.vander(j, {n}, True)
    """,
    "ranges": """
        np.arange({k})
        np.arange({k}, 4)
        np.arange(-4, 7, {k})
        np.arange(0.5, 3, 0.25)
        np.arange(5, dtype={type})
        np.arange(0)
        np.linspace({ends}, {n})
        np.linspace({ends}, 5, False)
        np.linspace({ends}, {n}, retstep=True)
        np.linspace({up}, 5, dtype={type})
        np.linspace({ends}, 5, axis=-1)
        np.logspace({ends}, 5)
        np.logspace({ends}, 5, False, base=2)
        np.logspace(0, 2, 4, base=[2, 3], axis=-1)
        np.logspace(0, 3, 4, dtype='int64')
        np.geomspace({places}, 5)
        np.geomspace({places}, 5, False)
        np.geomspace({places}, 1)
        np.geomspace(1, 256, 9, dtype=int)
        np.geomspace([1, 10], [100, 1000], 3, axis=-1)
    """,
}
SETS = {
    "few0": "(m*m) i+1 b z e",
    "real": "2 1.5 True",
    "size": "0 1 3 5 -1",
    "make": "array asarray asanyarray ascontiguousarray asfortranarray",
    "data": "[1,2] [1.5,2] [[1,2],[3,4]] 3 2.5 True [] 1j [True,False] m i",
    "needs": "None 'C' ['O','W'] 'X' ['C','F']",
    "fill": "zeros ones",
    "shape": "3 (2,3) () 0 (2,0) -1 2.5",
    "value": "2 1.5 True 1j nan",
    "n": "0 1 3 5 -1 2.5",
    "full2": "m t i u b c h s m[::2,::-1] t.T g",
    "tri": "tril triu",
    "ends": "0,1 2,-3 1.5,4 [0,1],2 1j,2 0,0",
    "up": "0,1 1.5,4 [0,1],2 0,0",
    "places": "1,1000 -1,-16 2,0.5 0,1 1j,16j 1,-1",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)
