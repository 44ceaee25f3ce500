"""nvm.numpy.testing: NumPy's assertions about arrays."""

import contextlib
import math
import re
import unittest
import warnings

from . import _logic
from ._dtypes import finfo, iinfo
from ._support import asarray, f, inexact

SkipTest = unittest.SkipTest


def assert_(val, msg=""):
    """AssertionError unless the value is true."""
    if not val:
        raise AssertionError(msg() if callable(msg) else msg)


def build_err_msg(
    arrays, err_msg, header="Items are not equal:", verbose=True, names=("ACTUAL", "DESIRED"), precision=8
):
    """The text of an assertion that failed."""
    lines = ["\n" + header + ("\n" + err_msg if err_msg else "")]
    if verbose:
        lines += [f" {name}: {a!r}" for name, a in zip(names, arrays)]
    return "\n".join(lines)


def _numbers(x, y):
    """Both as arrays; None if one holds no numbers."""
    try:
        return asarray(x), asarray(y)
    except (TypeError, ValueError):  # no numbers, or sequences that are no array
        return None


def _fail(x, y, why, err_msg, verbose):
    raise AssertionError(build_err_msg((x, y), err_msg, why, verbose))


def _same_shape(x, y, err_msg, verbose, strict):
    if strict and (x.shape != y.shape or x.dtype != y.dtype) or not (x.shape == y.shape or () in (x.shape, y.shape)):
        _fail(x, y, f"(shapes {x.shape}, {y.shape} or dtypes {x.dtype}, {y.dtype} mismatch)", err_msg, verbose)


def _special(x):
    """NaN, and infinities with their signs, as numbers: 0 for the others."""
    if x.dtype.kind not in "fc":
        return f["zeros"](x.shape, dtype=bool), f["zeros"](x.shape, dtype=bool)
    return f["isnan"](x), f["isinf"](x)


def assert_array_compare(
    comparison,
    x,
    y,
    err_msg="",
    verbose=True,
    header="",
    precision=6,
    equal_nan=True,
    equal_inf=True,
    *,
    strict=False,
    names=("ACTUAL", "DESIRED"),
):
    """AssertionError unless a comparison holds everywhere; NaN and infinities have to stand at the same places."""
    x, y = asarray(x), asarray(y)
    _same_shape(x, y, err_msg, verbose, strict)
    (nan1, inf1), (nan2, inf2) = _special(x), _special(y)
    skip = f["zeros"]((), dtype=bool)
    if equal_nan:
        if bool(f["any"](nan1 != nan2)):
            _fail(x, y, header + "\nnan location mismatch:", err_msg, verbose)
        skip = nan1 | nan2
    if equal_inf:
        if bool(f["any"]((inf1 | inf2) & ~skip & (x != y))):
            _fail(x, y, header + "\ninf location mismatch:", err_msg, verbose)
        skip = skip | inf1 | inf2
    with_numbers = comparison(f["where"](skip, 0, x), f["where"](skip, 0, y))
    wrong = int(f["count_nonzero"](~asarray(with_numbers) & ~skip))
    if wrong:
        size = max(x.size, y.size)
        why = f"{header}\nMismatched elements: {wrong} / {size} ({100 * wrong / size:.3g}%)" + _distance(x, y, skip)
        _fail(x, y, why, err_msg, verbose)


def _distance(x, y, skip):
    if "b" in (x.dtype.kind, y.dtype.kind):
        return ""
    off = f["abs"](f["where"](skip, 0, x - inexact(y))).astype("float64")
    size = f["abs"](f["where"](skip | (y == 0), 1, y)).astype("float64")
    text = f"\nMax absolute difference among violations: {float(f['max'](off)):.8g}"
    return text + f"\nMax relative difference among violations: {float(f['max'](off / size)):.8g}"


def assert_array_equal(actual, desired, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless the elements are equal; NaN equals NaN."""
    assert_array_compare(f["equal"], actual, desired, err_msg, verbose, "Arrays are not equal", strict=strict)


def assert_allclose(actual, desired, rtol=1e-07, atol=0, equal_nan=True, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless the elements are within atol + rtol * |desired|."""

    def close(x, y):
        return _logic.isclose(x, y, rtol, atol, equal_nan)

    header = f"Not equal to tolerance rtol={rtol:g}, atol={atol:g}"
    assert_array_compare(close, actual, desired, str(err_msg), verbose, header, equal_nan=equal_nan, strict=strict)


def assert_array_almost_equal(actual, desired, decimal=6, err_msg="", verbose=True):
    """AssertionError unless the elements agree to 1.5 * 10**-decimal."""

    def close(x, y):
        return f["abs"](x - inexact(y)).astype("float64") < 1.5 * 10.0**-decimal

    assert_array_compare(close, actual, desired, err_msg, verbose, f"Arrays are not almost equal to {decimal} decimals")


def assert_array_less(x, y, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless the elements of x are less than those of y."""
    header = "Arrays are not strictly ordered `x < y`"
    assert_array_compare(f["less"], x, y, err_msg, verbose, header, equal_inf=False, strict=strict)


def _zeros_differ(x, y):
    """Are both numbers, with zeros of different signs as a part?"""
    if x.ndim or y.ndim:
        return False
    parts = [(z.real, z.imag) for z in map(complex, (x.item(), y.item()))]
    return any(a == b == 0 and math.copysign(1, a) != math.copysign(1, b) for a, b in zip(*parts))


def assert_equal(actual, desired, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless both are equal: arrays, numbers, texts, and lists, tuples and dicts of them."""
    if isinstance(desired, dict):
        if not isinstance(actual, dict) or len(actual) != len(desired):
            _fail(actual, desired, "Items are not equal:", err_msg, verbose)
        for key, value in desired.items():
            assert_(key in actual, repr(actual))
            assert_equal(actual[key], value, f"key={key!r}\n{err_msg}", verbose)
    elif isinstance(desired, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(desired):
            _fail(actual, desired, "Items are not equal:", err_msg, verbose)
        for i, (a, d) in enumerate(zip(actual, desired)):
            assert_equal(a, d, f"item={i}\n{err_msg}", verbose)
    elif _numbers(actual, desired) is not None and not isinstance(actual, str):
        assert_array_equal(actual, desired, err_msg, verbose, strict=strict)
        if _zeros_differ(*_numbers(actual, desired)):
            _fail(actual, desired, "Items are not equal:", err_msg, verbose)
    elif not actual == desired:
        _fail(actual, desired, "Items are not equal:", err_msg, verbose)


def assert_almost_equal(actual, desired, decimal=7, err_msg="", verbose=True):
    """AssertionError unless both agree to 1.5 * 10**-decimal."""
    assert_array_almost_equal(actual, desired, decimal, err_msg, verbose)


def assert_approx_equal(actual, desired, significant=7, err_msg="", verbose=True):
    """AssertionError unless two numbers agree to so many significant digits."""
    actual, desired = float(actual), float(desired)
    if actual == desired or math.isnan(actual) and math.isnan(desired):
        return
    scale = 10.0 ** math.floor(math.log10(0.5 * (abs(actual) + abs(desired)) or 1.0))
    if not abs(desired / scale - actual / scale) < 10.0 ** -(significant - 1):
        _fail(actual, desired, f"Items are not equal to {significant} significant digits:", err_msg, verbose)


def assert_string_equal(actual, desired):
    """AssertionError unless two texts are equal."""
    assert_(isinstance(actual, str), repr(type(actual)))
    assert_(isinstance(desired, str), repr(type(desired)))
    assert_(actual == desired, f"Differences in strings:\n{actual!r}\n{desired!r}")


def assert_array_almost_equal_nulp(x, y, nulp=1):
    """AssertionError unless the elements are within nulp units in the last place."""
    x, y = asarray(x), asarray(y)
    largest = f["where"](f["abs"](x) > f["abs"](y), f["abs"](x), f["abs"](y))
    unit = finfo(x.dtype).eps * f["exp2"](f["floor"](f["log2"](f["maximum"](largest, finfo(x.dtype).tiny))))
    if bool(f["any"](f["abs"](x - y) > nulp * unit)):
        raise AssertionError(f"Arrays are not equal to {nulp} ULP\n x: {x!r}\n y: {y!r}")


def assert_array_max_ulp(a, b, maxulp=1, dtype=None):
    """AssertionError unless neighbours are at most maxulp numbers of their dtype apart; gives how far they are."""
    a, b = (asarray(x) if dtype is None else asarray(x, dtype=dtype) for x in (a, b))
    if a.dtype.kind != "f" or b.dtype != a.dtype:
        raise TypeError(f"[assert_array_max_ulp] needs floats of one dtype, not {a.dtype.name} and {b.dtype.name}")
    width = f"int{8 * a.dtype.itemsize}"
    a, b = (_in_order((x + 0.0).view(width)) for x in (a, b))
    apart = f["abs"](a - b).astype(float)
    if not bool(f["all"](apart <= maxulp)):
        raise AssertionError(
            f"Arrays are not almost equal up to {maxulp} ULP (max difference is {f['max'](apart)} ULP)"
        )
    return apart


def _in_order(bits):
    """Bits of floats as integers in the order of the numbers."""
    info = iinfo(bits.dtype)
    return f["where"](bits < 0, info.min - bits, bits)


@contextlib.contextmanager
def tempdir(*args, **kwargs):
    """A folder that is removed afterwards: the arguments of tempfile.mkdtemp."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(*args, **kwargs)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def temppath(*args, **kwargs):
    """The path of a file that is removed afterwards: the arguments of tempfile.mkstemp."""
    import os
    import tempfile

    number, path = tempfile.mkstemp(*args, **kwargs)
    os.close(number)
    try:
        yield path
    finally:
        os.remove(path)


def _case():
    return unittest.TestCase()


def assert_raises(*args, **kwargs):
    """AssertionError unless a call raises an exception; without a call, a context manager."""
    return _case().assertRaises(*args, **kwargs)


def assert_raises_regex(exception_class, expected_regexp, *args, **kwargs):
    """AssertionError unless a call raises an exception whose text matches; without a call, a context manager."""
    return _case().assertRaisesRegex(exception_class, re.compile(expected_regexp), *args, **kwargs)


@contextlib.contextmanager
def _caught(check):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    check(found)


def _under(manager, args, kwargs):
    if not args:
        return manager
    with manager:
        return args[0](*args[1:], **kwargs)


def assert_warns(warning_class, *args, **kwargs):
    """AssertionError unless a call warns; without a call, a context manager."""

    def check(found):
        assert_(any(issubclass(w.category, warning_class) for w in found), f"{warning_class.__name__} not triggered")

    return _under(_caught(check), args, kwargs)


def assert_no_warnings(*args, **kwargs):
    """AssertionError if a call warns; without a call, a context manager."""
    return _under(_caught(lambda found: assert_(not found, f"Got warnings: {found}")), args, kwargs)


__all__ = sorted(
    n for n, v in globals().items() if not n.startswith("_") and getattr(v, "__module__", None) == __name__
) + ["SkipTest", "assert_"]


def __getattr__(name):
    from .._names import missing

    raise missing(name, __all__, "nvm.numpy.testing") from None
