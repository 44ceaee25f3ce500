"""Python's integers beside arrays: whether a dtype holds one decides what happens, in one way for constants, in a trace
and as arguments of jitted functions, and as in NumPy."""

import operator

import numpy as np
import pytest

import nvm
import refs

COMPARE = ["lt", "le", "eq", "ne", "gt", "ge"]
ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor"]
EDGES = sorted(
    {sign * 2**k + d for k in (0, 7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1) for sign in (1, -1)}
    | {300, 10**400, -(10**400)}
)


def outcome(f):
    """The value, or the type of the exception."""
    try:
        return np.asarray(f())
    except (OverflowError, ValueError, TypeError) as error:
        return type(error)


def agree(got, want):
    if isinstance(got, type) or isinstance(want, type):
        return got is want
    return got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)


def values(name):
    """Those of the dtype that lie at its ends and in between."""
    if np.dtype(name).kind not in "iu":
        return np.array([0, 1, 5, 100.5], name)
    return np.array([np.iinfo(name).min, 0, 1, 5, np.iinfo(name).max], name)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARE)
@pytest.mark.parametrize("name", refs.INTS)
def test_integers_beside_integers(name, op):
    f, x = getattr(operator, op), values(name)
    a, ways = nvm.asarray(x), {False: lambda x, s: f(x, s), True: lambda x, s: f(s, x)}
    for turned, way in ways.items():
        jitted = nvm.jit(way)
        for v in EDGES:
            want, got = outcome(lambda: way(x, v)), outcome(lambda: way(a, v))
            if not (op == "pow" and turned):  # integers to negative powers in an array: numerics.md, section 7
                assert agree(got, want), (v, turned, got, want)
            assert agree(outcome(lambda: jitted(x, v)), got), (v, turned, got)
    for v in EDGES[::5]:
        got = outcome(lambda: f(a, v))
        assert agree(outcome(lambda: nvm.jit(lambda x: f(x, v))(x)), got), (v, got)  # a constant of the trace


@pytest.mark.parametrize("op", ["add", "mul", "truediv", "lt", "eq", "ge"])
@pytest.mark.parametrize("name", ["bool", "float16", "float32", "float64", "complex64"])
def test_integers_beside_other_dtypes(name, op):
    if name == "complex64" and op in ("lt", "ge", "truediv"):
        return  # they have no order, and quotients differ in the last bit
    f, x = getattr(operator, op), values(name)
    a, jitted = nvm.asarray(x), nvm.jit(f)
    for v in EDGES:
        want, got = outcome(lambda: f(x, v)), outcome(lambda: f(a, v))
        if name != "bool" or abs(v) < 2**63:  # NumPy has no uint64 for bool, nor a comparison
            assert agree(got, want), (v, got, want)
        assert agree(outcome(lambda: jitted(x, v)), got), (v, got)


THREE = {
    "where": lambda x, s: nvm.where(x > 1, x, s),
    "where, turned": lambda x, s: nvm.where(x > 1, s, x),
    "clip": lambda x, s: nvm.clip(x, None, s),
    "clip, below": lambda x, s: nvm.clip(x, s),
    "fma": lambda x, s: nvm.fma(x, x, s),
    "fma, first": lambda x, s: nvm.fma(s, x, x),
    "full": lambda x, s: nvm.full_like(x, s),
    "stored": lambda x, s: stored(x, s),
    "masked": lambda x, s: stored(x, s, x > 1),
}


def stored(x, s, key=...):
    x = nvm.asarray(x).copy()
    x[key] = s
    return x


@pytest.mark.parametrize("name", ["uint8", "int8", "int64", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("how", THREE)
def test_functions_of_more_operands(how, name):
    f, x = THREE[how], values(name)
    info = np.iinfo(name) if np.dtype(name).kind in "iu" else None
    jitted = nvm.jit(f)
    for v in EDGES:
        got = outcome(lambda: f(nvm.asarray(x), v))
        if "fma" in how and info:
            assert got is OverflowError if abs(v) > 2**1024 else got.dtype == np.float64
        elif abs(v) > 2**1024 if info is None else not info.min <= v <= info.max:
            assert got is OverflowError, (v, got)
        else:
            assert got.dtype == name
        if how != "masked":  # a mask needs its values
            assert agree(outcome(lambda: jitted(x, v)), got), (v, got)


def counted(f):
    traces = []

    def body(*args):
        traces.append(args)
        return f(*args)

    return nvm.jit(body), traces


def test_what_was_asked_of_an_integer_decides_its_signature():
    f, traces = counted(operator.add)
    for v in (0, 1, 2**40, -5, 10**18, -(2**63)):
        f(np.ones(2), v), f(np.ones(2, np.int64), v)
    assert len(traces) == 2  # any int64 does
    f, traces = counted(lambda x, s: (x < s, x == s))
    for v in (0, 127, -128, 5, 128, 300, 2**40, -129, -(2**50), 7, 400, -200):
        assert f(np.array([1, 7], np.int8), v)[0].tolist() == [1 < v, 7 < v]
    assert len(traces) == 3  # inside of int8, above it, below it
    f, traces = counted(lambda x, s: (x < s) & (x.astype("uint8") < s))
    for v in (1, 100, 200, 300, 50, 250, 1000):
        f(np.array([1, 7], np.int8), v)
    assert len(traces) == 3
    f, traces = counted(operator.pow)
    for v in (1, 2, 3, 100):
        f(np.array([1, 2]), v)
    with pytest.raises(ValueError, match="negative integer power"):
        f(np.array([1, 2]), -1)
    assert len(traces) == 2


def test_integers_that_no_dtype_holds():
    assert nvm.jit(lambda s: nvm.zeros(1, dtype="float32") + s)(2**64).tolist() == [2.0**64]
    for f in (lambda s: s, lambda s: s + 1, lambda s: nvm.asarray([1]) + s, lambda s: nvm.asarray(s)):
        with pytest.raises(OverflowError, match="18446744073709551616"):
            nvm.jit(f)(2**64)
    with pytest.raises(OverflowError, match=r"\[multiply\] the integer \(above 1.8e308\) is out of range of float32"):
        nvm.ones(2, dtype="float32") * 10**400


def test_a_number_that_is_given_a_dtype_keeps_it():
    for dtype, s in (("float64", 2.5), ("int64", 3), ("complex128", 1j), ("float64", 2**64)):
        f = lambda x, s: nvm.asarray(s, dtype=dtype) * x
        got, want = nvm.jit(f)(np.ones(2, "float32"), s), f(nvm.ones(2, dtype="float32"), s)
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
