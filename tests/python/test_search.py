"""Reductions whose result is some one element's (argmax, argmin, any, all): wherever that element lies, among equal
ones, beside NaN and infinities, in long and short rows, in views. The expected values are NumPy's, of compiled code and
of the interpreter."""

import numpy as np
import pytest

import nvm

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
LENGTHS = [1, 100, 513, 4097]


@pytest.fixture(params=["0", "1"], ids=["interpreted", "compiled"])
def tier(request):
    before = nvm.settings()["NVM_TIER"]
    nvm.set("tier", request.param)
    yield request.param
    nvm.set("tier", before)


def lengths(tier):
    return [n for n in LENGTHS if tier == "1" or n <= 100]


def least_and_most(dtype):
    if dtype == "bool":
        return False, True
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    return (info.min, info.max) if info else (-np.inf, np.inf)


def check(x):
    for data in (x, x[::-1], np.ascontiguousarray(np.stack([x, x[::-1]]))[:, ::3], np.stack([x, x[::-1]], axis=1)):
        a = nvm.asarray(data)
        for f in ("argmax", "argmin"):
            for axis in (None, *range(data.ndim)):
                want = getattr(np, f)(data, axis=axis)
                assert np.array_equal(np.asarray(getattr(nvm, f)(a, axis=axis)), want), (f, axis, data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_random_numbers_and_of_few_values(dtype, tier):
    rng = np.random.default_rng(1)
    for n in lengths(tier):
        x = rng.standard_normal(n) * 50
        check((abs(x) if dtype[0] == "u" else x).astype(dtype))
        check(rng.integers(0, 3, n).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_element_at_every_kind_of_place(dtype, tier):
    least, most = least_and_most(dtype)
    for n in lengths(tier):
        for one, rest in ((most, least), (least, most)):
            x = np.full(n, rest, dtype)
            check(x)  # all are equal: the first one
            for at in {0, n // 3, n // 2, n - 1}:
                x[at] = one
                check(x)
                x[n - 1] = one
                check(x)
                x[:] = rest


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_nan_wins_and_zeros_are_equal(dtype, tier):
    rng = np.random.default_rng(2)
    for n in lengths(tier):
        x = rng.standard_normal(n).astype(dtype)
        for at in {0, n // 3, n // 2, n - 1}:
            y = x.copy()
            y[at] = np.nan
            check(y)
            y[n // 2 :] = np.nan
            check(y)
        check(np.full(n, np.nan, dtype))
        check(np.where(rng.random(n) < 0.5, -0.0, 0.0).astype(dtype))
        check(np.arange(n).astype(dtype))
        check(-np.arange(n).astype(dtype))
        check(np.full(n, -np.inf, dtype))


def test_any_and_all_wherever_the_element_is(tier):
    for n in lengths(tier):
        x = np.zeros(n, bool)
        for at in (None, 0, n // 3, n // 2, n - 1):
            if at is not None:
                x[at] = True
            for data, other in ((x, ~x), (x[::-1], ~x[::-1]), (np.stack([x, ~x]), np.stack([~x, x]))):
                for axis in (None, *range(data.ndim)):
                    assert np.array_equal(np.asarray(nvm.any(nvm.asarray(data), axis=axis)), data.any(axis))
                    assert np.array_equal(np.asarray(nvm.all(nvm.asarray(other), axis=axis)), other.all(axis))
                    assert np.array_equal(np.asarray(nvm.max(nvm.asarray(data), axis=axis)), data.max(axis))
            x[:] = False


def test_of_what_is_computed(tier):
    rng = np.random.default_rng(3)
    for n in (100, 4097) if tier == "1" else (100,):
        x = rng.standard_normal((3, n))
        a = nvm.asarray(x)
        for f in (
            lambda xp, x: xp.argmax(x * x - x, axis=1),
            lambda xp, x: xp.argmin(abs(x)),
            lambda xp, x: xp.any(x > 2, axis=1),
            lambda xp, x: xp.all(x > -9),
            lambda xp, x: xp.argmax(x > 1, axis=-1),
            lambda xp, x: xp.argmax(x, axis=1) + xp.argmin(x, axis=1),
            lambda xp, x: xp.argmax(x - x.mean(axis=1, keepdims=True), axis=1),
        ):
            want = f(np, x)
            assert np.array_equal(np.asarray(f(nvm, a)), want)
            assert np.array_equal(np.asarray(nvm.jit(lambda a: f(nvm, a))(a)), want)


def test_on_several_threads():
    rng = np.random.default_rng(4)
    before = nvm.settings()["NVM_NUM_THREADS"]
    try:
        for threads in (1, 2, 3):
            nvm.set("num_threads", threads)
            for dtype in ("bool", "uint8", "float32", "int64"):
                check(rng.integers(0, 100, 200001).astype(dtype))
    finally:
        nvm.set("num_threads", before)
