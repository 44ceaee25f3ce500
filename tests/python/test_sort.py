"""Sorting and searching: values and positions against NumPy's over dtypes, layouts and what ties, eager, traced and in
place. The expected values follow from NumPy's argsort, which puts NaN last and keeps the order of equal elements."""

import numpy as np
import pytest

import nvm

flatnonzero = nvm._nvm.functions["_flatnonzero"]


@pytest.fixture
def on_cpu():
    """A traced function sorts on the CPU alone."""
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    yield
    nvm.set_default_device(before)


DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
LENGTHS = [0, 1, 2, 47, 49, 300, 5000]


def rows(dtype, n, kind, rng):
    """Three rows: numbers of many sizes, few different ones, or a descending row; floats with both zeros and NaN."""
    x = rng.standard_normal((3, n)) * 10.0 ** rng.integers(-3, 4, (3, n))
    if kind == "few":
        x = rng.integers(-3, 4, (3, n)) * 1.0
    elif kind == "descending":
        x = -np.sort(x, axis=1)
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    if x.dtype.kind == "f" and kind != "descending":
        x[rng.random((3, n)) < 0.1] = np.nan
        x[rng.random((3, n)) < 0.1] = -0.0
        x[rng.random((3, n)) < 0.1] = 0.0
        x[rng.random((3, n)) < 0.05] = -np.inf
    return x


def order_of(x, axis, descending):
    """Of equal elements the first comes first in both directions; NaN comes last in both."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    if x.dtype.kind == "f":
        return np.argsort(-x, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(flipped, axis)


@pytest.mark.parametrize("kind", ["many", "few", "descending"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_columns_are_sorted_as_numpy_sorts_them(dtype, kind):
    rng = np.random.default_rng(5)
    for n in LENGTHS:
        x = rows(dtype, n, kind, rng)
        for data, axis in ((x, 1), (np.ascontiguousarray(x.T), 0), (x[:, ::-1], -1), (x[::2, ::3], 1)):
            for descending in (False, True):
                want = order_of(data, axis, descending)
                a = nvm.asarray(data)
                assert np.array_equal(np.asarray(nvm.argsort(a, axis=axis, descending=descending)), want)
                got = np.asarray(nvm.sort(a, axis=axis, descending=descending))
                assert got.tobytes() == np.take_along_axis(data, want, axis).tobytes()  # signs of zeros too


def test_numbers_that_differ_in_the_last_bits_alone():
    """What the first bytes of a key do not tell apart: in order, reversed, and in runs far from their place."""
    for base in (np.uint64(2**63), np.uint64(2**40 + 2**63)):
        for n in (100, 5000):
            for step in (1, 7, n // 2 + 1):
                x = base + (np.arange(n) * step % n).astype(np.uint64)
                for y in (x, x[::-1], x.view(np.float64), np.repeat(x, 3)):
                    order = np.asarray(nvm.argsort(nvm.asarray(y)))
                    assert np.array_equal(order, np.argsort(y, kind="stable"))
                    assert np.array_equal(np.asarray(nvm.sort(nvm.asarray(y))), np.sort(y))


def test_bfloat16_and_8_bits():
    x = np.array([3, -2, np.nan, 0.0, -0.0, 448, -448, 1], np.float32)
    for dtype in (nvm.bfloat16, nvm.float8_e4m3fn, nvm.float8_e5m2):
        y = nvm.asarray(x).astype(dtype)
        wide = np.asarray(y.astype(nvm.float32))
        assert np.array_equal(np.asarray(nvm.argsort(y)), np.argsort(wide, kind="stable"))
        sorted_wide, want = np.asarray(nvm.sort(y).astype(nvm.float32)), wide[np.argsort(wide, kind="stable")]
        np.testing.assert_array_equal(sorted_wide, want)
        assert np.array_equal(np.signbit(sorted_wide[want == 0]), np.signbit(want[want == 0]))


def test_ties_of_16_bit_results_are_those_of_rounded_numbers():
    a = np.array([1.0, 1.0, 1.0], np.float16)
    b = np.array([2e-4, 1e-4, 0.0], np.float16)  # the sums round to one number
    assert np.asarray(nvm.argsort(nvm.asarray(a) + nvm.asarray(b))).tolist() == [0, 1, 2]


def test_sorting_inside_a_traced_function(on_cpu):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20, 30))
    f = nvm.jit(lambda x: (nvm.sort(x * 2, axis=0) + 1, nvm.argsort(x, axis=1), nvm.sort(x, axis=None)[:5].sum()))
    for _ in range(4):
        values, order, smallest = f(x)
        assert np.array_equal(np.asarray(values), np.sort(x * 2, axis=0) + 1)
        assert np.array_equal(np.asarray(order), np.argsort(x, axis=1))
        assert float(smallest) == pytest.approx(np.sort(x, axis=None)[:5].sum())
        x = rng.standard_normal((20, 30))
    median = nvm.jit(lambda x: (nvm.sort(x)[..., 14] + nvm.sort(x)[..., 15]) / 2)
    assert np.allclose(np.asarray(median(x)), np.median(x, axis=-1))


def test_searching_by_a_sorter_inside_a_traced_function(on_cpu):
    rng = np.random.default_rng(2)
    x, v = rng.standard_normal(50), rng.standard_normal(9)
    f = nvm.jit(lambda x, v: nvm.searchsorted(x, v, sorter=nvm.argsort(x)))
    assert np.array_equal(np.asarray(f(x, v)), np.searchsorted(x, v, sorter=np.argsort(x)))


def test_a_sort_is_one_step_and_equal_sorts_are_one(on_cpu):
    x = nvm.asarray(np.arange(100.0)[::-1].copy())
    text = nvm.explain(nvm.jit(lambda x: nvm.sort(x) + nvm.sort(x)), x)
    assert text.count("routine: sort") == 1
    both = nvm.explain(nvm.jit(lambda x: nvm.sort(x, descending=True) + nvm.sort(x)), x)
    assert both.count("routine: sort") == 2


def test_results_may_be_wanted_twice_and_in_place(on_cpu):
    x = nvm.asarray(np.array([3, 1, 2]))
    a, b = nvm.jit(lambda x: (nvm.sort(x), nvm.sort(x)))(x)
    assert a.tolist() == b.tolist() == [1, 2, 3] and x.tolist() == [3, 1, 2]
    x.sort()
    assert x.tolist() == [1, 2, 3]
    y = nvm.asarray(np.array([3, 1, 2])) * 1
    order = nvm.argsort(y)
    del y
    assert order.tolist() == [1, 2, 0]


def test_many_rows_and_one_thread_or_two():
    x = np.random.default_rng(3).standard_normal((7, 11, 601)).astype(np.float32)
    before = nvm.settings()["NVM_NUM_THREADS"]
    try:
        for threads in ("1", "2"):
            nvm.set("num_threads", threads)
            assert np.array_equal(np.asarray(nvm.sort(x, axis=-1)), np.sort(x, axis=-1))
            assert np.array_equal(np.asarray(nvm.argsort(x, axis=1)), np.argsort(x, axis=1, kind="stable"))
    finally:
        nvm.set("num_threads", before)


@pytest.mark.parametrize("f", [nvm.sort, nvm.argsort])
def test_what_cannot_be_sorted(f):
    with pytest.raises(TypeError, match=rf"\[{f.__name__}\].*complex128"):
        f(nvm.asarray([1j, 2]))
    with pytest.raises((ValueError, IndexError), match=f.__name__):
        f(nvm.asarray(1.0))
    with pytest.raises((ValueError, IndexError), match=f.__name__):
        f(nvm.zeros((2, 3)), axis=2)
    assert f(nvm.zeros((2, 0)), axis=0).shape == (2, 0) and f(nvm.zeros((0, 3)), axis=1).shape == (0, 3)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_where_elements_belong(dtype, side):
    rng = np.random.default_rng(6)
    for n, kind in (1, "many"), (2, "few"), (15, "few"), (16, "many"), (17, "few"), (1000, "many"), (70001, "few"):
        x = np.sort(rows(dtype, n, kind, rng)[0])
        for v in rows(dtype, 37, kind, rng), rows(dtype, 5, "many", rng).T, x[::-3]:
            got = nvm.searchsorted(nvm.asarray(x), nvm.asarray(v), side=side)
            assert got.dtype == nvm.int64 and np.array_equal(np.asarray(got), np.searchsorted(x, v, side))
    apart = np.repeat(x, 2)
    assert np.array_equal(
        np.asarray(nvm.searchsorted(nvm.asarray(apart)[::2], v, side=side)), np.searchsorted(x, v, side)
    )


def test_searches_of_two_dtypes_and_of_nothing():
    x = np.array([1, 3, 5])
    assert nvm.searchsorted(nvm.asarray(x), nvm.asarray([0.5, 3.5])).tolist() == [0, 2]
    assert nvm.searchsorted(nvm.asarray(x), 3, side="right").shape == ()
    for m, shape in (0, (2, 3)), (3, (0, 4)), (0, ()):
        got = nvm.searchsorted(nvm.asarray(x[:m]), nvm.zeros(shape))
        assert got.shape == shape and not np.asarray(got).any()
    with pytest.raises(ValueError, match=r"\[searchsorted\] x1 must have one dimension, not shape \(2, 2\)"):
        nvm.searchsorted(nvm.ones((2, 2)), 1)
    with pytest.raises(TypeError, match=r"\[searchsorted\].*complex128"):
        nvm.searchsorted(nvm.asarray([1j]), 1)
    with pytest.raises(ValueError, match=r"\[searchsorted\] side"):
        nvm.searchsorted(nvm.asarray(x), 1, side="middle")


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_the_first_positions_of_what_is_true(share):
    rng = np.random.default_rng(7)
    for shape in (1,), (7,), (8,), (1000,), (30, 41), (70001,), (3, 70000), (0, 4):
        x = rng.random(shape) < share
        found = np.flatnonzero(x)
        for size in {0, 1, len(found), len(found) + 5, x.size // 2}:
            want = np.full(size, x.size)
            want[: len(found)] = found[:size]
            for a in nvm.asarray(x), nvm.asarray(np.repeat(x, 2, axis=-1))[..., ::2]:
                got = flatnonzero(a, size=size)
                assert got.dtype == nvm.int64 and np.array_equal(np.asarray(got), want)
    assert flatnonzero(nvm.asarray([0.0, np.nan, -0.0, 2]), size=3).tolist() == [1, 3, 4]
    assert nvm.jit(lambda v: flatnonzero(v > 1, size=2))(np.array([3, 0, 2, 5])).tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"\[flatnonzero\] size must be 0 or more"):
        flatnonzero(nvm.ones(3), size=-1)
