"""Reductions whose result is some one element's (argmax, argmin, any, all): wherever that element lies, among equal
ones, beside NaN and infinities, in long and short rows, in views. The expected values are NumPy's, of compiled code and
of the interpreter."""

import os
import subprocess
import sys

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


@pytest.fixture
def compiled():
    before = nvm.settings()["NVM_TIER"]
    nvm.set("tier", "1")
    yield
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


SEARCHES = {  # with the elements that are searched, which are of use afterwards as well
    "any": lambda xp, x: xp.any(x > 0.5, axis=-1, keepdims=True) ^ (x > 0.5),
    "all": lambda xp, x: xp.all(x > 0.5, axis=-1, keepdims=True) ^ (x > 0.5),
    "max of bool": lambda xp, x: xp.max(x > 0.5, axis=-1, keepdims=True) ^ (x > 0.5),
    "min of bool": lambda xp, x: xp.min(x > 0.5, axis=-1, keepdims=True) ^ (x > 0.5),
    "argmax": lambda xp, x: xp.argmax(x, axis=-1)[..., None] * x,
    "argmin": lambda xp, x: xp.argmin(x, axis=-1)[..., None] * x,
    "argmax of bool": lambda xp, x: (xp.argmax(x > 0.5, axis=-1)[..., None] > 3) ^ (x > 0.5),
    "argmin of bool": lambda xp, x: (xp.argmin(x > 0.5, axis=-1)[..., None] > 3) ^ (x > 0.5),
}
ELEMENTS = {  # computed again for each use, or kept because they take too long for that
    "a root": lambda xp, x: xp.sqrt(abs(x)),
    "exponentials": lambda xp, x: xp.exp(xp.sin(x)),
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("element", ELEMENTS)
def test_elements_behind_the_one_that_decides_are_there_for_other_uses(element, search, compiled):
    for shape in ((3300,), (4, 701)):
        x = np.linspace(-4, 4, int(np.prod(shape))).reshape(shape)
        x.ravel()[[5, -7]] = np.nan
        a = nvm.asarray(x)
        y = np.asarray(nvm.jit(lambda a: ELEMENTS[element](nvm, a))(a))  # the library's own bits
        want = SEARCHES[search](np, y)
        got = np.asarray(nvm.jit(lambda a: SEARCHES[search](nvm, ELEMENTS[element](nvm, a)))(a))
        assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), shape


def test_elements_are_stored_by_the_first_block_though_all_blocks_search_them(compiled):
    """The columns' softmax lies in blocks, each of which needs to know whether all elements are True."""

    def f(xp, x):
        less = xp.sqrt(x) < xp.exp(xp.sqrt(x))
        return less, less.all()

    x = np.linspace(-4, 4, 3300, dtype=np.float32).reshape(100, 33)
    x[::10] = 1e4
    with np.errstate(invalid="ignore", over="ignore"):
        want = f(np, x)
    before = nvm.settings()["NVM_NUM_THREADS"]
    try:
        for threads in (1, 16):
            nvm.set("num_threads", threads)

            @nvm.jit
            def g(x):
                less, every = f(nvm, x)
                return less, every, nvm.log_softmax(nvm.astype(less, "float64"), axis=0)

            got = g(nvm.asarray(x))
            assert np.array_equal(np.asarray(got[0]), want[0]) and bool(got[1]) == bool(want[1])
    finally:
        nvm.set("num_threads", before)


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


BESIDE_ROUNDED = """
import numpy as np, nvm
x = np.random.default_rng(0).standard_normal((1, 3, 1441))
for dtype in (nvm.float16, nvm.bfloat16, nvm.float32):
    y = nvm.asarray(x).astype(dtype)
    near = (y - nvm.max(y, axis=-1, keepdims=True)) > -1
    plain = np.asarray(near)
    for axis in (-1, -2, None):
        for nv, np_ in ((nvm.all, np.all), (nvm.any, np.any), (nvm.min, np.min), (nvm.max, np.max)):
            got = nv((y - nvm.max(y, axis=-1, keepdims=True)) > -1, axis=axis)
            assert np.array_equal(np.asarray(got), np_(plain, axis=axis)), (dtype, axis, np_)
"""


def test_comparisons_of_rounded_numbers_are_compiled():
    """Some masked reductions of them keep the code generator of LLVM 19 busy for ever: they have their own process."""
    path = os.pathsep.join(sys.path)
    env = dict(os.environ, NVM_TIER="1", NVM_CACHE_DIR="off", PYTHONPATH=path)
    subprocess.run([sys.executable, "-c", BESIDE_ROUNDED], env=env, check=True, timeout=300)
