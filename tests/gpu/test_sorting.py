"""Sorting and searching on a GPU: values and positions against NumPy's, over dtypes and over rows that lanes, a warp,
a block or passes over memory sort; layouts, ties, traced functions, what explain says, and memory."""

import itertools

import numpy as np
import pytest

import nvm
from test_sort import DTYPES, flatnonzero, order_of, rows

pytestmark = pytest.mark.emulated
# what a row has: its lanes count it; one warp; several; a whole block; passes of few small tiles
LENGTHS = [1, 2, 19, 32, 33, 500, 1000, 3000, 8192, 8193, 30000]
WAYS = list(itertools.product((False, True), ("sort", "argsort")))


def check(a, x, axis, descending, what):
    """`what` of a, which has the elements of x. Bits of zeros and NaN too."""
    want = order_of(x, axis, descending)
    got = getattr(nvm, what)(a, axis=axis, descending=descending)
    assert str(got.device) == str(a.device)
    got = np.asarray(got)
    if what == "argsort":
        assert got.dtype == np.int64 and np.array_equal(got, want)
    else:
        assert got.dtype == x.dtype and got.tobytes() == np.take_along_axis(x, want, axis).tobytes()


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_sorted_as_numpy_sorts_them(dtype, n, device, emulated):
    i = DTYPES.index(dtype) + LENGTHS.index(n)
    kinds = ("many", "few", "descending")
    for kind in kinds[i % 3 :][:1] if emulated else kinds:
        x = rows(dtype, n, kind, np.random.default_rng(5))
        a = nvm.asarray(x, device=device)
        for descending, what in WAYS[i % 4 :][:1] if emulated else WAYS:
            check(a, x, 1, descending, what)


@pytest.mark.parametrize("n", [40, 9001])
def test_axes_and_layouts(n, device, rng):
    x = rng.integers(-50, 50, (3, n, 4)).astype(np.int16)
    a = nvm.asarray(x, device=device)
    check(a, x, 1, False, "sort")
    check(a, x, 1, False, "argsort")
    check(a[::2, ::-1, 1], x[::2, ::-1, 1], 1, False, "argsort")
    check(a[:, 5::3, ::2], x[:, 5::3, ::2], -2, False, "sort")
    check(nvm.permute_dims(a, (2, 0, 1)), x.transpose(2, 0, 1), 2, False, "sort")
    for f in "sort", "argsort":
        flat = np.asarray(getattr(nvm, f)(a, axis=None))
        assert np.array_equal(flat, getattr(np, f)(x, axis=None, kind="stable"))


def test_many_rows_at_a_time(device, rng):
    for shape in (1003, 5), (517, 33), (67, 128), (9, 600), (3, 5, 7, 2):
        x = rng.integers(0, 9, shape).astype(np.uint8)
        check(nvm.asarray(x, device=device), x, -1, False, "argsort")


def test_ties_keep_their_order_in_passes(device, rng):
    """All equal, one digit, and NaN of several signs and payloads."""
    bits = rng.integers(0x7F800001, 0x7FFFFFFF, 20000).astype(np.uint32) | (rng.integers(0, 2, 20000) << 31).astype(
        np.uint32
    )
    x = np.where(rng.random(20000) < 0.5, bits, np.float32(1).view(np.uint32)).astype(np.uint32).view(np.float32)
    check(nvm.asarray(x, device=device), x, 0, False, "sort")
    check(nvm.asarray(x, device=device), x, 0, True, "sort")
    equal = np.full(20000, 7.0, np.float32)
    assert np.array_equal(np.asarray(nvm.argsort(nvm.asarray(equal, device=device))), np.arange(20000))


@pytest.mark.parametrize("dtype", [nvm.bfloat16, nvm.float8_e4m3fn, nvm.float8_e5m2])
def test_floats_that_numpy_has_not(dtype, device, rng):
    x = rng.choice(np.array([3, -2, np.nan, 0.0, -0.0, 448, -448, 1], np.float32), 100)
    y = nvm.asarray(x, device=device).astype(dtype)
    wide = np.asarray(y.astype(nvm.float32))
    order = np.argsort(wide, kind="stable")
    assert np.array_equal(np.asarray(nvm.argsort(y)), order)
    assert np.array_equal(np.asarray(nvm.sort(y).astype(nvm.float32)).view(np.uint32), wide[order].view(np.uint32))


def test_nothing_to_sort(device):
    for shape, axis in ((0,), 0), ((2, 0), 1), ((2, 0), 0), ((0, 3), 1):
        a = nvm.zeros(shape, dtype=nvm.float32, device=device)
        assert nvm.sort(a, axis=axis).tolist() == nvm.argsort(a, axis=axis).tolist() == a.tolist()


def test_inside_a_traced_function(device, rng):
    f = nvm.jit(lambda x: (nvm.sort(x * 2, axis=0) + 1, nvm.argsort(x, axis=1), nvm.sort(x, axis=None)[:5].sum()))
    for _ in range(5):
        x = rng.standard_normal((20, 30))
        values, order, smallest = f(nvm.asarray(x, device=device))
        assert str(values.device) == device
        assert np.array_equal(np.asarray(values), np.sort(x * 2, axis=0) + 1)
        assert np.array_equal(np.asarray(order), np.argsort(x, axis=1))
        assert float(smallest) == pytest.approx(np.sort(x, axis=None)[:5].sum())


def test_results_that_are_wanted_twice_and_in_place(device):
    x = nvm.asarray(np.array([3, 1, 2]), device=device)
    a, b = nvm.jit(lambda x: (nvm.sort(x), nvm.sort(x)))(x)
    assert a.tolist() == b.tolist() == [1, 2, 3] and x.tolist() == [3, 1, 2]
    x.sort()
    assert x.tolist() == [1, 2, 3]


def test_explain_names_who_sorts(device):
    x = nvm.zeros((4, 100), device=device)  # the first step
    text = nvm.explain(nvm.sort(x, axis=1) + 1)
    assert "routine: sort" in text and "2 runs by its own kernel" in text


def test_nothing_crosses_to_the_host(device, rng):
    a = nvm.asarray(rng.standard_normal(20000), device=device)
    before = nvm.counters()["bytes_copied"]
    y = nvm.sort(a)
    y.eval()
    assert nvm.counters()["bytes_copied"] == before and float(y[0]) <= float(y[1])


def check_positions(got, want, device):
    assert isinstance(got, tuple) and len(got) == len(want)
    for g, w in zip(got, want):
        assert str(g.device) == device and g.dtype == nvm.int64 and np.array_equal(np.asarray(g), w)


@pytest.mark.parametrize("share", [0, 0.1, 1])
def test_positions_and_what_a_mask_selects(share, device, rng):
    for shape in (1,), (1000,), (30, 70), (4, 5, 6), (0, 3):
        x = rng.random(shape) < share
        v = rng.standard_normal(shape)
        a, b = nvm.asarray(x, device=device), nvm.asarray(v, device=device)
        nvm.eval(a, b)
        before = nvm.counters()["bytes_copied"]
        found, chosen = nvm.nonzero(a), b[a]
        nvm.eval(*found, chosen)
        assert nvm.counters()["bytes_copied"] - before <= 16  # how many there are, twice
        check_positions(found, np.nonzero(x), device)
        assert str(chosen.device) == device and np.array_equal(np.asarray(chosen), v[x])
    check_positions(nvm.nonzero(nvm.asarray(v, device=device) + 0), np.nonzero(v), device)
    with pytest.raises(RuntimeError, match="nonzero"):
        nvm.jit(nvm.nonzero)(nvm.ones(5, device=device))


def test_writes_through_masks(device, rng):
    v = rng.standard_normal((20, 30))
    a = nvm.asarray(v, device=device)
    a[a > 0.5] = -1
    assert np.array_equal(np.asarray(a), np.where(v > 0.5, -1, v))


def test_unique_values_from_a_gpu(device, rng):
    x = rng.integers(0, 20, 3000)
    u = nvm.unique_all(nvm.asarray(x, device=device))
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, w in zip(u, want, strict=True):
        assert str(got.device) == device and np.array_equal(np.asarray(got), w)


def test_memory_that_is_not_there(device, rng):
    x = rng.standard_normal(300000)
    a = nvm.asarray(x, device=device)
    nvm.eval(a)
    nvm.set_memory_limit(8 << 20, device)
    try:
        with pytest.raises(MemoryError, match=r"\[argsort\] needs \d+ bytes of workspace"):
            nvm.argsort(a).eval()
    finally:
        nvm.set_memory_limit(0, device)
    check(a, x, 0, False, "argsort")


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_elements_belong(dtype, device, rng):
    for n, kind in (1, "many"), (33, "few"), (5000, "many"):
        x, v = np.sort(rows(dtype, n, kind, rng)[0]), rows(dtype, 90, kind, rng)
        for side in "left", "right":
            a, b = nvm.asarray(x, device=device), nvm.asarray(v, device=device)
            got = nvm.searchsorted(a, b.T, side=side)
            assert str(got.device) == device and np.array_equal(np.asarray(got), np.searchsorted(x, v.T, side))
    each = nvm.vmap(nvm.searchsorted)(nvm.sort(b, axis=1), b)
    assert np.array_equal(np.asarray(each), [np.searchsorted(np.sort(r), r) for r in v])


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 1])
def test_the_first_positions_of_what_is_true(share, device, rng):
    for shape in (1,), (8192,), (8193,), (3, 20000), (50001,):
        x = rng.random(shape) < share
        found = np.flatnonzero(x)
        a = nvm.asarray(x, device=device)
        nvm.eval(a)
        for size in {1, len(found), x.size}:
            want = np.full(size, x.size)
            want[: len(found)] = found[:size]
            got = flatnonzero(a, size=size)
            assert str(got.device) == device and np.array_equal(np.asarray(got), want)
    strided = flatnonzero(a[1::2], size=9)
    assert np.array_equal(np.asarray(strided), (list(np.flatnonzero(x[1::2])) + 9 * [25000])[:9])
    each = nvm.vmap(lambda r: flatnonzero(r, size=10000))(nvm.asarray(x[:50000].reshape(5, -1), device=device))
    assert np.array_equal(np.asarray(each)[4], (list(np.flatnonzero(x[40000:50000])) + 10000 * [10000])[:10000])


def test_positions_in_a_large_mask(device, rng):
    x = rng.random((1100, 1000)) < 0.3
    check_positions(nvm.nonzero(nvm.asarray(x, device=device)), np.nonzero(x), device)
