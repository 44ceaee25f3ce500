"""Reductions of short rows, of every length around those at which a kernel changes: the value is that of the plan
with a kernel for each node, bit for bit, whatever lies behind the end of a row."""

import numpy as np
import pytest

import nvm

LENGTHS = [2, 7, 8, 9, 15, 16, 17, 24, 25, 30, 31, 32, 33, 56, 57, 64, 100, 121, 127, 128, 129, 200]


def reductions(x, w):
    return (
        x.sum(axis=1),
        x @ w,
        x.max(axis=1),
        nvm.argmin(x, axis=1),
        nvm.softmax(x, axis=1),
        (x[:, ::-1] - x.mean(axis=1, keepdims=True)).prod(axis=1),
    )


@pytest.fixture(autouse=True)
def on_cpu():
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    yield
    nvm.set_default_device(before)


def bits(values):
    """Of each value, with one pattern for all NaN."""
    return [
        np.where(v != v, np.full_like(v, np.nan), v).tobytes() if v.dtype.kind == "f" else v.tobytes()
        for v in map(np.asarray, values)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_short_rows(dtype):
    rng = np.random.default_rng(3)
    for n in LENGTHS:
        x = (rng.standard_normal((9000 // n + 40, n)) * 1000).astype(dtype)
        if dtype != "int16":
            x[5, n // 2], x[7, -1], x[9, 0] = np.nan, -np.inf, -0.0
        args = nvm.asarray(x), nvm.asarray(x[3])
        traced = nvm.jit(reductions)
        nvm.set("fuse", "off")
        try:
            want = bits(reductions(*args))
        finally:
            nvm.set("fuse", "on")
        for _ in range(9):  # compiled by then
            got = bits(traced(*args))
        assert got == want, n


def extreme_rows(dtype, n, rng):
    """Rows of the numbers that lose against all others, of those that win, of few different ones, and with NaN."""
    low, high = (-np.inf, np.inf) if dtype[0] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = rng.integers(-2, 3, (70, n)).astype(dtype)
    x[:10], x[10:20] = low, high
    x[20:30][rng.random((10, n)) < 0.5] = low
    x[30:40][rng.random((10, n)) < 0.5] = high
    if dtype[0] == "f":
        x[40:50][rng.random((10, n)) < 0.1] = np.nan
        x[50] = np.nan
        x[51], x[51, n // 2 :] = low, np.nan
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int16", "int8"])
def test_the_first_of_equal_elements_wins(dtype):
    rng = np.random.default_rng(5)
    traced = nvm.jit(lambda x: (nvm.argmax(x, axis=1), nvm.argmin(x, axis=1), nvm.argmax(x, axis=0)))
    for n in (1, 8, 31, 100, 129, 300, 600):
        x = extreme_rows(dtype, n, rng)
        for _ in range(9):  # compiled by then
            got = traced(nvm.asarray(x))
        for have, want in zip(got, (x.argmax(1), x.argmin(1), x.argmax(0))):
            assert np.array_equal(np.asarray(have), want), n
