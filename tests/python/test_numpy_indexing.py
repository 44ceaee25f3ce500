"""nvm.numpy's grids, index arrays, and functions that take and put elements, against NumPy's."""

import pytest

from numpy_cases import check_all

TABLES = {
    "grids": """
        np.{grid}[0:3]
        np.{grid}[0:3, 1:7:2]
        np.{grid}[-1:1:5j]
        np.{grid}[-1:1:3j, 0:2]
        np.{grid}[0:1:0.25, 0:2]
        np.r_[1:4, 0, 4]
        np.r_[{few}, {few}]
        np.r_[v, 1.5, 2]
        np.r_[-1:1:3j, [0] * 3, 5]
        np.r_['0,2', [1, 2, 3], [4, 5, 6]]
        np.r_['-1', m, m]
        np.r_['0,2,0', [1, 2, 3], [4, 5, 6]]
        np.r_['1,2,0', [1, 2, 3], [4, 5, 6]]
        np.c_[[1, 2, 3], [4, 5, 6]]
        np.c_[m, [1, 2, 3]]
        np.c_[np.array([[1, 2, 3]]), 0, 0, np.array([[4, 5, 6]])]
        np.s_[1:2]
        np.s_[1:2, ..., None]
        np.index_exp[1:2]
        np.ix_([0, 2], [1, 3])
        np.ix_([True, False, True], [2])
        np.ix_(m)
        m[np.ix_([0, 2], [1, 3])]
        np.indices({shape})
        np.indices((2, 3), dtype=float)
        np.indices((2, 3), sparse=True)
        np.meshgrid([1, 2, 3], [4.0, 5.0])
        np.meshgrid([1, 2, 3], [4, 5], [6, 7, 8], indexing='ij')
        np.meshgrid([1, 2, 3], [4, 5], sparse=True)
        np.meshgrid([1], indexing='no')
        np.fromfunction(lambda i, j: i + j, (3, 3), dtype=int)
        np.fromfunction(lambda i: i * 2, (3,))
        list(np.ndindex(2, 3))
        list(np.ndindex((2,)))
        [(i, float(x)) for i, x in np.ndenumerate(m)]
    """,
    "positions": """
        np.diag_indices(3)
        np.diag_indices(2, 3)
        np.diag_indices_from(m[:, :3])
        np.diag_indices_from(m)
        np.diag_indices_from(v)
        np.{half}_indices(3, {k})
        np.{half}_indices(3, {k}, 4)
        np.{half}_indices_from(m, {k})
        np.{half}_indices_from(t)
        np.mask_indices(3, np.triu, 1)
        np.unravel_index({flat}, (3, 4))
        np.unravel_index({flat}, (3, 4), order='F')
        np.unravel_index([1.5], (3, 4))
        np.ravel_multi_index({many}, (3, 4))
        np.ravel_multi_index({many}, (3, 4), mode={mode})
        np.ravel_multi_index({many}, (3, 4), order='F')
        np.ravel_multi_index(([1], [1]), (3, 4), mode=('wrap', 'clip'))
        np.ravel_multi_index(([1],), (3, 4))
    """,
    "taking": """
        np.take({few}, {at}, {axis})
        np.take(m, {at}, 1, mode={mode})
        np.take(v, v)
        np.take_along_axis(m, np.argsort(m, {axis}), {axis})
        np.take_along_axis(m, np.array([[0], [1], [2]]), 1)
        np.take_along_axis(m, np.array([[0, 1, 2, 0]]), 0)
        np.take_along_axis(m, np.array([0]), 0)
        np.take_along_axis(m, np.array([[0.5]]), 0)
        np.choose([2, 0, 1, 0], [j, j * 10, j * 100])
        np.choose([2, 5, 1, 0], [j, j * 10, j * 100])
        np.choose([2, 5, -1, 0], [j, j * 10, j * 100], mode={mode})
        np.choose(1, [m, i])
        np.compress([True, False, True], m, {axis})
        np.compress([0, 1], {few}, {axis})
        np.compress(m, m)
        np.extract(b, m)
        np.extract(i > 2, i)
        np.select([m > 1, m > 0], [m, m * 10])
        np.select([i > 2, i > 0], [i, m], -1)
        np.select([i], [i])
        np.select([], [])
        np.select([b], [m, m])
        np.select([m > 1, m > 0], [s, 1])
        np.select([m > 1, m > 0], [s, 1], 2.5)
        np.select([m > 1, m > 0], [s, i])
        np.select([m > 1, m > 0], [i, u], True)
        np.select([m > 1, m > 0], [True, False], b)
        np.select([m > 1, m > 0], [1, 2.5])
        np.trace({few})
        np.trace(t, {k}, {one}, {one})
        np.trace(u)
        np.trace(m, dtype={type})
    """,
    "putting": """
        x = m.copy(); np.put(x, {at}, [5, 6]); x
        x = i.copy(); np.put(x, {at}, 2.7, mode={mode}); x
        x = i.copy(); np.put(x, [0], 2j); x
        np.put([1], 0, 1)
        x = m.copy(); np.put_along_axis(x, np.array([[0], [2], [1]]), 9, 1); x
        x = m.copy(); np.put_along_axis(x, np.array([[0, 1, 2, 0]]), [[1, 2, 3, 4]], 0); x
        x = m.copy(); np.put_along_axis(x, np.array([0, 5]), 9, None); x
        x = m.copy(); np.place(x, b, [1, 2, 3]); x
        x = m.copy(); np.place(x, b, []); x
        x = m.copy(); np.putmask(x, b, [1, 2, 3]); x
        x = i.copy(); np.putmask(x, b, 2j); x
        x = m.copy(); np.putmask(x, [True], 1); x
        x = np.zeros({square}); np.fill_diagonal(x, 5); x
        x = np.zeros({square}); np.fill_diagonal(x, [1, 2], wrap=True); x
    """,
    "applying": """
        np.apply_along_axis(lambda r: r.sum(), {one}, m)
        np.apply_along_axis(lambda r: np.outer(r, r), {one}, m)
        np.apply_along_axis(np.sort, 1, t)
        np.apply_along_axis(np.sort, 0, g)
        np.apply_over_axes(np.sum, t, (0, 2))
        np.apply_over_axes(np.cumsum, t, 1)
        np.piecewise(m, [m < 0, m >= 0], [-1, 1])
        np.piecewise(m, [m < 0, m >= 0.5], [lambda x: -x, lambda x: x * x, 7])
        np.piecewise(i, [m < 0], [lambda x: x + 1])
        np.piecewise(v, v < 0, [1])
        np.piecewise(m, [m < 0], [1, 2, 3])
        np.piecewise([1.0, 2, -3], [[True, True, False]], [lambda x: x.sum(), 0])
        np.piecewise(m, [m < 0, m > 100], [lambda x: x.sum(), lambda x: 1 / 0, lambda x: x - x.mean()])
        np.piecewise(m, [[True, False, True]], [lambda x: x * 2, 3])
        np.piecewise(z, [z > 2, z > 3], [1, lambda x: x * 2, 3])
        np.piecewise(m, [m < 0, m >= 0.5], [lambda x, k: x * k, lambda x, k: x + k, 7], 4)
        np.vectorize(lambda x, y: x + y)(m, 1.0)
        np.vectorize(lambda x: x > 0)(m)
        np.vectorize(lambda x: (x, int(x)))(v)
        np.vectorize(lambda x: x, otypes=[{type}])(i + 1)
        np.vectorize(lambda x: x)(e)
        np.iterable({few})
        np.iterable([1])
    """,
}
SETS = {
    "grid": "mgrid ogrid",
    "shape": "(2,3) (3,) (2,0)",
    "half": "tril triu",
    "flat": "5 [5,7,0] [[1,2],[3,11]] 12 -1",
    "many": "([0,1],[3,2]) (1,2) ([0,3],[0,0]) (-1,0)",
    "mode": "'raise' 'wrap' 'clip' 'other'",
    "at": "0 1 -1 9 -9 [0,2] [[0,1],[1,0]] [] [3,-2]",
    "square": "(3,3) (3,4) (4,3) (7,2) (2,2,2) (2,2,3) (3,)",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)
