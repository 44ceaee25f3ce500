"""Histograms by comparison: sums of x == arange(k), which a routine counts. The expected values are NumPy's, of the
same expression, and the plan has no comparison left."""

import numpy as np
import pytest

import nvm

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


@pytest.fixture(autouse=True)
def on_cpu():
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    yield
    nvm.set_default_device(before)


def numbers(dtype, shape, k, rng):
    """Some of them belong into no bin: negative ones, and greater ones."""
    if dtype == "bool":
        return rng.random(shape) < 0.3
    info = np.iinfo(dtype)
    x = rng.integers(max(info.min, -3), min(info.max, k + 2) + 1, shape)
    x[rng.random(shape) < 0.05] = info.max
    x[rng.random(shape) < 0.05] = info.min
    return x.astype(dtype)


def check(f, x, routine=True):
    """f(xp, x) is NumPy's, eager and traced; routine: whether it has a step that is one."""
    want = np.asarray(f(np, x))
    traced = nvm.jit(lambda a: f(nvm, a))
    for got in (f(nvm, nvm.asarray(x)), traced(nvm.asarray(x))):
        assert np.array_equal(np.asarray(got), want)
    assert ("routine" in traced.explain(nvm.asarray(x))) == routine


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_integer_is_counted_as_it_is_compared(dtype):
    rng = np.random.default_rng(1)
    for k in (16, 100, 2000):
        for n in (1, 3, 1000, 70000):
            x = numbers(dtype, n, k, rng)
            check(lambda xp, x: (x[:, None] == xp.arange(k)).sum(0), x, n > 3)
            check(lambda xp, x: (xp.arange(k)[:, None] == x[::-2]).sum(1), x, n > 3)


@pytest.mark.parametrize("shape", [(3, 500), (7, 1, 40), (2, 5, 30), (40, 3)])
def test_bins_and_rows_may_be_any_dimensions(shape):
    rng = np.random.default_rng(2)
    x = numbers("int32", shape, 20, rng)
    for data in (x, x[..., ::-1], x.T, np.asfortranarray(x)):
        for axis in range(data.ndim):
            many = data.shape[axis] >= 16
            check(lambda xp, x: (x[..., None] == xp.arange(20)).sum(axis), data, many)
            check(lambda xp, x: (x[None] == xp.arange(20).reshape((20,) + (1,) * data.ndim)).sum(axis + 1), data, many)
        check(lambda xp, x: (x[..., None] == xp.arange(20)).sum(tuple(range(data.ndim))), data)
        check(lambda xp, x: (x.reshape(-1)[:, None] == xp.arange(20)).sum(0), data)


@pytest.mark.parametrize(
    "dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)
def test_positions_have_the_dtype_of_what_is_compared(dtype):
    """arange(k, dtype=x.dtype), or in what both are promoted to, is int64's as long as it holds the positions."""
    rng = np.random.default_rng(10)
    x = rng.integers(0, 60, 3000).astype(dtype)
    check(lambda xp, x: (x[:, None] == xp.arange(50, dtype=dtype)).sum(0), x)
    check(lambda xp, x: (xp.arange(7, 57, dtype=dtype)[:, None] == x).sum(1), x)
    check(lambda xp, x: (x[:, None] == xp.arange(7, 57)).sum(0), x)
    w = rng.integers(0, 100, 3000).astype(dtype)
    check(lambda xp, x: xp.where(x[:, None] == xp.arange(50, dtype=dtype), xp.asarray(w)[:, None], 0).sum(0), x)
    if dtype in ("int8", "int16", "int32", "float32", "float64"):
        check(lambda xp, x: ((x - 30)[:, None] == xp.arange(-25, 25, dtype=dtype)).sum(0), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_fall_into_the_bin_that_they_equal(dtype):
    odd = [
        -0.0,
        0.5,
        -1.0,
        1.0000001,
        np.nan,
        np.inf,
        -np.inf,
        2.0**63,
        -(2.0**63),
        1e300 if dtype == "float64" else 1e38,
    ]
    x = np.concatenate([np.tile(odd, 20), np.arange(-20.0, 40.0), np.nextafter(np.arange(40.0), 50)]).astype(dtype)
    for first in (0, -4, 3):
        check(lambda xp, x: (x[:, None] == xp.arange(first, first + 30)).sum(0), x)
        check(lambda xp, x: (x[:, None] == xp.arange(first, first + 30, dtype=dtype)).sum(0), x)


def test_positions_that_their_dtype_does_not_hold_are_compared():
    x = np.arange(2000).astype("uint8")
    check(lambda xp, x: (x[:, None] == xp.arange(300).astype("uint8")).sum(0), x, routine=False)  # 44 of them twice
    check(lambda xp, x: (x[:, None] == xp.arange(-9, 100).astype("uint8")).sum(0), x, routine=False)
    top = 2**24 + np.arange(-50, 50)
    check(
        lambda xp, x: (x[:, None] == xp.arange(2**24 - 20, 2**24 + 20).astype("float32")).sum(0),
        top.astype("float32"),
        False,
    )
    check(lambda xp, x: (x[:, None] == xp.arange(2**24 - 20, 2**24).astype("float32")).sum(0), top.astype("float32"))


def test_weights_are_converted_as_they_are_summed():
    rng = np.random.default_rng(11)
    x, w = rng.integers(0, 25, 4000), rng.integers(0, 256, 4000).astype("uint8")
    check(lambda xp, x: xp.where(x[:, None] == xp.arange(20), xp.asarray(w)[:, None], 0).sum(0), x)
    check(lambda xp, x: xp.where(x[:, None] == xp.arange(20), xp.asarray(w)[:, None], 0).sum(0, dtype="float64"), x)
    wide = w.astype("int64") * 9  # what is converted twice is not one conversion
    check(
        lambda xp, x: xp.where(x[:, None] == xp.arange(20), xp.asarray(wide)[:, None], 0).astype("uint8").sum(0),
        x,
        False,
    )


def test_what_is_computed_is_counted():
    x = np.random.default_rng(3).random(5000)
    check(lambda xp, x: ((x * 100).astype("int64")[:, None] == xp.arange(100)).sum(0), x)
    check(lambda xp, x: ((x * 100).astype("int64")[:, None] == xp.arange(30, 70)).sum(0), x)
    check(lambda xp, x: ((x * 9).astype("int64")[:, None] == xp.arange(-4, 20)).sum(0) * 2 + 1, x)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64", "float32", "float64"])
def test_counts_have_the_dtype_of_the_sum(dtype):
    x = np.random.default_rng(4).integers(0, 17, 20000)
    check(lambda xp, x: (x[:, None] == xp.arange(17)).sum(0, dtype=dtype), x)  # those of 8 bits wrap
    check(lambda xp, x: (x[:, None] == xp.arange(17)).astype(dtype).sum(0, dtype=dtype), x)


def test_frequencies_and_counts_of_nonzeros():
    x = np.random.default_rng(5).integers(0, 50, 3000)
    check(lambda xp, x: (x[:, None] == xp.arange(50)).mean(0), x)
    check(lambda xp, x: xp.count_nonzero(x[:, None] == xp.arange(50), axis=0), x)


def test_what_is_no_histogram_is_compared():
    x = np.random.default_rng(6).integers(0, 50, 300)
    check(lambda xp, x: (x[:, None] == xp.arange(50)).sum(1), x, routine=False)  # over the bins
    check(lambda xp, x: (x[:, None] == xp.arange(50)).sum(), x, routine=False)
    check(lambda xp, x: (x[:, None] == xp.arange(50) * 2).sum(0), x, routine=False)
    check(lambda xp, x: (x[:, None] >= xp.arange(50)).sum(0), x, routine=False)
    check(lambda xp, x: (x[:50, None] == x[None, :50]).sum(0), x, routine=False)
    # what is compared differs along the bins
    check(lambda xp, x: ((x[:, None] + xp.arange(50)) == xp.arange(50)).sum(0), x, routine=False)
    check(lambda xp, x: (x[:, None] == xp.arange(50)).any(0), x, routine=False)
    check(lambda xp, x: (x[:, None] == xp.arange(3)).sum(0), x, routine=False)  # few are compared as fast


def test_threads_count_pieces_of_a_row():
    rng = np.random.default_rng(7)
    before = nvm.settings()["NVM_NUM_THREADS"]
    try:
        for threads in (2, 3, 5):
            nvm.set("num_threads", threads)
            for n in (200000, 200001):
                x = numbers("uint8", n, 256, rng)
                check(lambda xp, x: (x[:, None] == xp.arange(256)).sum(0), x)
                check(lambda xp, x: (x.reshape(2, -1)[..., None] == xp.arange(256)).sum(1), x[:200000])
    finally:
        nvm.set("num_threads", before)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint16"])
def test_weights_are_added_where_they_belong(dtype):
    """Of floats in the order of a column, which is that of the comparisons, bit for bit."""
    rng = np.random.default_rng(8)
    for n in (16, 63, 64, 65, 191, 448, 5000):
        x = numbers("int32", n, 40, rng)
        w = (rng.standard_normal(n) * 30 + 100 * (dtype[0] == "u")).astype(dtype)
        if dtype[0] == "f":
            w[rng.random(n) < 0.1] = -0.0
            w[-1] = np.nan if n == 65 else np.inf if n == 191 else w[-1]
        a, b = nvm.asarray(x), nvm.asarray(w)
        for f in (
            lambda x, w: nvm.where(x[:, None] == nvm.arange(40), w[:, None], 0).sum(0, dtype=dtype),
            lambda x, w: nvm.where(x[::-1, None] == nvm.arange(-2, 38), w[::-1, None], 0).sum(0, dtype=dtype),
        ):
            traced = nvm.jit(f)
            assert "routine" in traced.explain(a, b)
            nvm.set("fuse", "off")
            try:
                want = np.asarray(f(a, b))
            finally:
                nvm.set("fuse", "on")
            for got in (f(a, b), traced(a, b)):
                assert np.asarray(got).tobytes() == want.tobytes()
        exact = np.array([w[x == i].sum(dtype=dtype) for i in range(40)])
        got = np.asarray(nvm.where(a[:, None] == nvm.arange(40), b[:, None], 0).sum(0, dtype=dtype))
        rtol = 1e-4 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(got, exact, rtol=rtol, atol=1e-3 * (dtype[0] == "f"))


def in_order_of_columns(x, w, k):
    """The sums of the order (64, 1): chunks of 64 in sequence, which merge by the bits of their number."""
    tables = [np.zeros(k, w.dtype) for _ in range(0, len(x), 64)]
    for i in np.flatnonzero((x >= 0) & (x < k)):
        tables[i // 64][x[i]] += w[i]
    while len(tables) > 1:
        tables = [a + b for a, b in zip(tables[::2], tables[1::2])] + tables[len(tables) & ~1 :]
    return tables[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [16, 64, 65, 129, 1000, 5000])
def test_weights_in_any_number_of_bins_are_added_in_one_order(dtype, k):
    """More bins than a group of chunks has elements merge by element, fewer as whole tables."""
    rng = np.random.default_rng(k)
    for n in (64, 1000, 8192, 20001):
        w = rng.standard_normal(n).astype(dtype) * 10 ** rng.integers(0, 6, n).astype(dtype)
        spread = numbers("int32", n, k, rng)
        for x in (spread, np.sort(spread), rng.integers(0, 3, n).astype("int32") * (k // 2)):
            f = nvm.jit(lambda x, w: nvm.where(x[:, None] == nvm.arange(k), w[:, None], 0).sum(0, dtype=dtype))
            assert np.asarray(f(x, w)).tobytes() == in_order_of_columns(x, w, k).tobytes()


def test_products_of_integers_with_ones_and_rows_of_weights():
    rng = np.random.default_rng(9)
    x, w = rng.integers(-2, 30, (3, 500)), rng.integers(-9, 9, (3, 500))
    for f in (
        lambda xp, x, w: ((x[..., None] == xp.arange(30)) * w[..., None]).sum(1),
        lambda xp, x, w: (w[..., None] * (x[..., None] == xp.arange(30))).sum((0, 1)),
        lambda xp, x, w: xp.where(x[:, None] == xp.arange(30)[:, None], w[:, None], 0).sum(-1),
        lambda xp, x, w: xp.where(x[..., None] == xp.arange(30), 1, 0).sum(1),
    ):
        traced = nvm.jit(lambda a, b: f(nvm, a, b))
        assert "routine" in traced.explain(nvm.asarray(x), nvm.asarray(w))
        assert np.array_equal(np.asarray(traced(nvm.asarray(x), nvm.asarray(w))), f(np, x, w))


def test_a_product_with_floats_keeps_its_nan():
    x, w = np.arange(40) % 20, np.ones(40)
    w[3] = np.inf
    with np.errstate(invalid="ignore"):
        want = ((x[:, None] == np.arange(20)) * w[:, None]).sum(0)
    got = ((nvm.asarray(x)[:, None] == nvm.arange(20)) * nvm.asarray(w)[:, None]).sum(0)
    assert np.array_equal(np.asarray(got), want, equal_nan=True)
