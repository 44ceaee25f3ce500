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
