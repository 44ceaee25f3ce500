"""nvm.vmap of functions with loops and draws: the function of each element, stacked."""

import numpy as np
import pytest

import nvm

RNG = np.random.default_rng(9)
B = 5
X = RNG.standard_normal((B, 4))
M = RNG.standard_normal((B, 3, 4))
N = np.asarray([0, 3, 7, 1, 2])
TABLE = RNG.standard_normal(8)


def carry_of_several(v):
    def step(i, c):
        return {"n": c["n"] + 1, "x": c["x"] * 0.5 + v * i, "y": (c["n"] * 2, c["y"][0])}

    r = nvm.fori_loop(1, 4, step, {"n": 0, "x": nvm.zeros(4), "y": (7, 8)})
    return nvm.stack([r["x"].sum(), r["n"] * 1.0, r["y"][0] * 1.0, r["y"][1] * 1.0])


def collatz(n):
    def step(c):
        n, count = c
        return nvm.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return nvm.while_loop(lambda c: c[0] > 1, step, (n, 0))[1]


def add_prefix(v):
    def step(i, x):
        x[i] = x[i - 1] + x[i]
        return x

    return nvm.fori_loop(1, 4, step, v)


def write_at_element(v, n):
    def step(i, x):
        x[(n + i) % 4] = i
        return x

    return nvm.fori_loop(0, 2, step, v)


def sum_first(v, n):  # reads v[n] when it is done: at most for one element it would be in range
    v = nvm.concat([v, v])
    return nvm.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + v[c[0]]), (0, 0.0))[1]


def newton(a):
    a = nvm.abs(a) + 0.1
    return nvm.while_loop(lambda x: nvm.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)


def powers(n):
    return nvm.fori_loop(0, n, lambda i, r: nvm.fori_loop(i, n, lambda j, s: s + j, r) * 2, 1)


def chosen_loop(v, n):
    return nvm.cond(
        n > 2, lambda v: nvm.fori_loop(0, n, lambda i, c: c * 0.5 + i, v), lambda v: nvm.cumulative_sum(v), v
    )


def mean_of_branches(v):
    return nvm.cond(nvm.sum(v) > 0, lambda a, b: (a + b, 1), lambda a, b: (a - b, 2), v, nvm.sin(v))


def sort_by_bubbles(v):
    def pass_over(i, x):
        def swap(j, x):
            low, high = nvm.minimum(x[j], x[j + 1]), nvm.maximum(x[j], x[j + 1])
            x[j] = low
            x[j + 1] = high
            return x

        return nvm.fori_loop(0, 3, swap, x)

    return nvm.fori_loop(0, 3, pass_over, v)


def inner_map(m):
    return nvm.fori_loop(0, 3, lambda i, c: c + nvm.vmap(lambda row: row * nvm.sum(row) + i)(c) * 0.1, m)


def two_loops(v):
    first = nvm.fori_loop(0, 3, lambda i, c: c + nvm.sin(c), v)
    last, rows = nvm.scan(lambda c, x: (c + x, c * x), nvm.sum(first), first)
    return rows + last + nvm.while_loop(lambda s: s < 20.0, lambda s: s * 2 + 1, nvm.abs(last))


def inside_a_trace(v):
    table = nvm.asarray(TABLE[:4])  # an array with values, made while the function is traced
    return nvm.fori_loop(nvm.asarray(0), nvm.asarray(3), lambda i, c: c * table + v, v)


# name: function, arguments
FUNCTIONS = {
    "fori_loop": (lambda v: nvm.fori_loop(0, 3, lambda i, c: c * 2 + i, v), X),
    "nothing depends": (lambda v: nvm.fori_loop(0, 4, lambda i, c: c * 2 + i, 1) + v, X),
    "a carry begins to depend": (lambda v: nvm.fori_loop(0, 3, lambda i, c: (c[1], c[0] + v), (v * 0, nvm.ones(4))), X),
    "a part of the carry": (carry_of_several, X),
    "upper bounds": (lambda v, n: nvm.fori_loop(0, n, lambda i, c: c * 0.5 + i, v), X, N),
    "upper bounds of uint8": (lambda v, n: nvm.fori_loop(0, n, lambda i, c: c + i, v), X, N.astype("u1")),
    "lower bounds": (lambda v, n: nvm.fori_loop(n, 5, lambda i, c: c * 0.5 + i, v), X, N),
    "both bounds": (lambda v, n: nvm.fori_loop(n - 2, 2 * n, lambda i, c: c * 0.5 + i, v), X, N),
    "rows of a table": (
        lambda n: nvm.fori_loop(n, n + 1 - n % 2, lambda i, c: c + nvm.asarray(TABLE)[i], 0.0),
        N,
    ),
    "the index indexes": (lambda v: nvm.fori_loop(0, 4, lambda i, c: c + v[i] * i, 0.0), X),
    "writes": (add_prefix, X),
    "writes at other places": (write_at_element, X, N),
    "while_loop": (lambda v: nvm.while_loop(lambda c: nvm.sum(c * c) < 100, lambda c: c * 1.7 + 0.1, v), X),
    "a test that is the same": (
        lambda v: nvm.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * v), (0, v)),
        X,
    ),
    "numbers of steps": (collatz, np.asarray([6, 1, 27, 8, 97])),
    "positions of what is done": (sum_first, X, N),
    "newton": (newton, X[:, 0]),
    "cond": (lambda v: nvm.cond(nvm.sum(v) > 0, nvm.sin, lambda v: v * 0 + 1, v), X),
    "branches of several results": (mean_of_branches, X),
    "cond of one predicate": (lambda v: nvm.cond(nvm.asarray(TABLE)[0] > 9, nvm.sin, lambda v: v * 0 + 1, v), X),
    "one branch depends": (lambda v: nvm.cond(nvm.asarray(TABLE)[0] < 9, lambda: v[1], lambda: 2.0), X),
    "branches with loops": (chosen_loop, X, N),
    "scan": (lambda m: nvm.scan(lambda c, row: (c + row, nvm.sum(c * row)), nvm.zeros(4), m), M),
    "scan of one array": (lambda v: nvm.scan(lambda c, x: (c + x, c * x), v[0], nvm.asarray(TABLE)), X),
    "scan backwards": (lambda v: nvm.scan(lambda c, x: (c * 0.5 + x, c), 0.0, v, reverse=True), X),
    "scan without xs": (lambda v: nvm.scan(lambda c, _: (c * v, (c, 3)), v, length=3), X),
    "loops in loops": (powers, N),
    "a loop of writes in a loop": (sort_by_bubbles, X),
    "vmap in a loop": (inner_map, M),
    "several loops": (two_loops, X),
    "arrays made inside": (inside_a_trace, X),
    "matrices": (lambda a: nvm.fori_loop(0, 3, lambda i, c: c @ a * 0.3, nvm.eye(3)), M[:, :, :3]),
    "powers of matrices": (lambda a: nvm.linalg.matrix_power(a, 5), M[:, :, :3]),
    "complex": (lambda v: nvm.while_loop(lambda z: nvm.abs(z[0]) < 9, lambda z: z * z + 1, v), X + 2j),
    "integers of 8 bits": (lambda n: nvm.fori_loop(0, 3, lambda i, c: c + i, n), N.astype("i1")),
    "bools": (lambda b: nvm.while_loop(lambda c: ~c, lambda c: ~c, b), X[:, 0] > 0),
}


def compare(got, want, like):
    if isinstance(like, (tuple, list)):
        for i, item in enumerate(like):
            compare(got[i], [w[i] for w in want], item)
        return
    got, want = np.asarray(got), np.stack([np.asarray(w) for w in want])
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_loop_over_a_batch_is_the_loop_of_each_element(name, jitted):
    f, *args = FUNCTIONS[name]
    want = [f(*(nvm.asarray(a[i]) for a in args)) for i in range(B)]
    mapped = nvm.vmap(f)
    compare((nvm.jit(mapped) if jitted else mapped)(*args), want, want[0])


@pytest.mark.parametrize("name", ["fori_loop", "upper bounds", "lower bounds", "while_loop", "cond", "scan"])
@pytest.mark.parametrize("size", [0, 1])
def test_small_batches(name, size):
    f, *args = FUNCTIONS[name]
    got = nvm.vmap(f)(*(a[:size] for a in args))
    one = f(*(nvm.asarray(a[0]) for a in args))
    if isinstance(one, tuple):
        got, one = got[1], one[1]
    assert got.shape == (size, *one.shape) and got.dtype == one.dtype
    if size:
        np.testing.assert_allclose(np.asarray(got)[0], np.asarray(one), rtol=1e-12)


def test_maps_of_maps():
    limit = np.asarray([[1.0, 5.0, 40.0], [0.0, 300.0, 2.0]])
    f = lambda x, top: nvm.while_loop(lambda c: c < top, lambda c: c * 2 + 1, x)  # noqa: E731
    want = np.asarray([[float(f(nvm.asarray(0.5), nvm.asarray(t))) for t in row] for row in limit])
    both = nvm.vmap(nvm.vmap(f, (None, 0)), (None, 0))
    for g in both, nvm.jit(both), nvm.vmap(nvm.vmap(f, (None, 0)), (None, 1), 1):
        np.testing.assert_array_equal(np.asarray(g(0.5, limit)), want)
    outer = nvm.vmap(lambda row: nvm.scan(lambda c, t: (c + 1, nvm.vmap(f, (None, 0))(c, row)), 0.5, row)[1])
    want = [[[float(f(nvm.asarray(0.5 + k), nvm.asarray(t))) for t in row] for k in range(3)] for row in limit]
    np.testing.assert_array_equal(np.asarray(outer(limit)), np.asarray(want))


def test_axes_and_captured_arrays():
    outside = nvm.asarray(X)
    f = nvm.vmap(lambda v, k: nvm.fori_loop(0, k, lambda i, c: c + v * outside[i], nvm.zeros(4)), (1, None), 1)
    want = sum(X.T.T * X[i] for i in range(3)).T
    np.testing.assert_allclose(np.asarray(f(X.T, 3)), want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(nvm.jit(f)(X.T, 3)), want, rtol=1e-12)


def test_what_is_not_computed_raises_nothing():
    """Positions of elements that are done, or take the other branch, are not read; loops of theirs end."""
    x = np.arange(4.0)
    n = np.asarray([2, 9, -7, 3])
    take = nvm.vmap(lambda i: nvm.cond((i >= 0) & (i < 4), lambda: nvm.asarray(x)[i], lambda: -1.0))
    assert take(n).tolist() == [2, -1, -1, 3]
    assert nvm.jit(take)(n).tolist() == [2, -1, -1, 3]
    with pytest.raises(IndexError, match="out of range"):
        nvm.eval(nvm.vmap(lambda i: nvm.cond(i < 9, lambda: nvm.asarray(x)[i], lambda: -1.0))(n))
    endless = nvm.vmap(
        lambda i: nvm.cond(i > 2, lambda: nvm.while_loop(lambda c: c != 12, lambda c: c + i, 0), lambda: 5)
    )
    assert endless(np.asarray([2, 3, 0, 4])).tolist() == [5, 12, 5, 12]
    same = nvm.vmap(lambda i: nvm.cond(i > 99, lambda: nvm.while_loop(lambda c: c >= 0, lambda c: c + 1, 0), lambda: 5))
    assert same(n).tolist() == [5] * 4
    put = nvm.vmap(lambda v, i: nvm.cond(i < 4, lambda v: write(v, i), lambda v: v, v))
    assert put(np.zeros((4, 4)), n + 7).tolist() == [[0] * 4] * 2 + [[1, 0, 0, 0]] + [[0] * 4]


def write(v, i):
    v = v + 0
    v[i] = 1
    return v


# ---- draws
def test_each_element_draws_numbers_of_its_own():
    f = lambda g: nvm.vmap(lambda v: v + g.random(3))  # noqa: E731
    x = np.arange(6.0).reshape(2, 3)
    g, same = nvm.random.default_rng(4), nvm.random.default_rng(4)
    for _ in range(2):  # and the generator goes on
        np.testing.assert_array_equal(np.asarray(f(g)(x)), x + np.asarray(same.random((2, 3))))
    g, same = nvm.random.default_rng(4), nvm.random.default_rng(4)
    jitted = nvm.jit(f(g))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(jitted(x)), x + np.asarray(same.random((2, 3))))


DRAWS = {
    "random": lambda g, v: g.random(3),
    "standard_normal": lambda g, v: g.standard_normal((3, 2), dtype="float32"),
    "normal": lambda g, v: g.normal(v, 2.0, 3),
    "integers": lambda g, v: g.integers(0, 10, 5),
    "gamma": lambda g, v: g.gamma(v + 1.0, 1.0, 4),
    "poisson": lambda g, v: g.poisson(v, 4),
    "beta": lambda g, v: g.beta(2.0, v + 1.0, 4),
    "a number": lambda g, v: g.random(),
    "several": lambda g, v: g.random(2) + nvm.sum(g.standard_normal(3)) * v,
    "permutation": lambda g, v: g.permutation(5),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_a_batch(name, jitted):
    draw = DRAWS[name]
    v = np.asarray([0.5, 3.0, 11.0])
    g = nvm.random.default_rng(7)
    mapped = nvm.vmap(lambda v: draw(g, v))
    got = np.asarray((nvm.jit(mapped) if jitted else mapped)(v))
    one = np.asarray(draw(nvm.random.default_rng(7), nvm.asarray(0.5)))
    assert got.shape == (3, *one.shape) and got.dtype == one.dtype
    assert len({row.tobytes() for row in got}) == 3 and np.isfinite(got).all()


def test_parameters_of_draws():
    v = np.asarray([1.0, 1e3, 1e6])
    g, same = nvm.random.default_rng(7), nvm.random.default_rng(7)
    got = nvm.vmap(lambda v: g.standard_gamma(v, 4))(v)
    want = same.standard_gamma(np.broadcast_to(v[:, None], (3, 4)))
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    shapes = np.asarray([0.5, 2.0])  # the same for all elements, and more than one number
    got = nvm.vmap(lambda v: v * g.standard_gamma(shapes))(v)
    want = v[:, None] * np.asarray(same.standard_gamma(np.broadcast_to(shapes, (3, 2))))
    np.testing.assert_array_equal(np.asarray(got), want)


def test_draws_between_loops_and_in_maps_of_maps():
    g, same = nvm.random.default_rng(1), nvm.random.default_rng(1)

    def walk(v):
        steps = g.standard_normal(4)
        last = nvm.scan(lambda c, s: (c + s, c), v, steps)[0]
        return last + g.random() + nvm.fori_loop(0, 2, lambda i, c: c + i, 0)

    got = nvm.vmap(nvm.vmap(walk))(np.zeros((2, 3)))
    want = np.asarray(same.standard_normal((2, 3, 4))).sum(-1) + np.asarray(same.random((2, 3))) + 1
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


def test_refused():
    g = nvm.random.default_rng(1)
    x = nvm.ones((3, 4))
    with pytest.raises(NotImplementedError, match="the function of a loop cannot draw"):
        nvm.vmap(lambda v: nvm.fori_loop(0, 2, lambda i, c: c + g.random(4), v))(x)
    with pytest.raises(NotImplementedError, match="the function of a loop cannot draw"):
        nvm.fori_loop(0, 2, lambda i, c: nvm.vmap(lambda v: v + g.random(4))(c), x)
    with pytest.raises(ValueError, match="output 0 differs between the elements"):
        nvm.vmap(lambda v: g.random(2), out_axes=None)(x)
    low = np.asarray([0, 1, 2])
    with pytest.raises(NotImplementedError, match="lower bound of a fori_loop differs between the elements"):
        nvm.vmap(lambda a, v: nvm.fori_loop(a, 5, lambda i, c: c + i, v))(low, np.zeros(3, "u1"))
    zero = nvm.zeros((), dtype="int64")
    added = nvm.vmap(lambda a, v: nvm.fori_loop(a, 5, lambda i, c: c + (i + zero).astype("uint8"), v))
    assert added(low, np.zeros(3, "u1")).tolist() == [10, 10, 9]
    with pytest.raises(OverflowError, match="the index runs"):
        nvm.vmap(lambda n, v: nvm.fori_loop(0, n, lambda i, c: c + i, v))(np.asarray([1, 300]), np.zeros(2, "u1"))
    with pytest.raises(TypeError, match="begins as float64"):
        nvm.vmap(lambda v: nvm.fori_loop(0, 2, lambda i, c: v[0] > c, v))(x)
    assert not nvm._nvm.tracing() and float((x + 1).sum()) == 24
