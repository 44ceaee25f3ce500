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
    """AssertionError unless a value is true.

    val: any object; of an array, the one element that it has.
    msg: the text of the error, or a function that returns it.

    >>> import nvm.numpy as np
    >>> np.testing.assert_(1 < 2)
    """
    if not val:
        raise AssertionError(msg() if callable(msg) else msg)


def build_err_msg(
    arrays, err_msg, header="Items are not equal:", verbose=True, names=("ACTUAL", "DESIRED"), precision=8
):
    """The text of an assertion that failed, as the functions of this module write it.

    arrays: what was compared. err_msg: a text of the caller's. header: the first line.
    verbose: are the arrays a part of the text? names: what they are called. precision: of NumPy's signature.

    >>> import nvm.numpy as np
    >>> print(np.testing.build_err_msg([1, 2], "they differ").strip())
    Items are not equal:
    they differ
     ACTUAL: 1
     DESIRED: 2
    """
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
    """AssertionError unless a comparison holds for all elements.

    comparison: a function of two arrays that returns an array of bool.
    x, y: arrays of one shape, or a number and an array.
    equal_nan, equal_inf: True compares NaN, and infinities, by their places alone.
    strict: True asks for the same dtype, and for the same shape of a number.
    err_msg, verbose, header, names: of the text. precision: of NumPy's signature.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_compare(np.less, [1, 2], [3, 4])
    """
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
    """AssertionError unless two arrays have the same elements; NaN equals NaN.

    actual, desired: arrays of one shape, or a number and an array.
    err_msg: a text of the caller's. verbose: does the error show the arrays?
    strict: True asks for the same dtype, and for the same shape of a number.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_equal([1, np.nan], [1, np.nan])
    """
    assert_array_compare(f["equal"], actual, desired, err_msg, verbose, "Arrays are not equal", strict=strict)


def assert_allclose(actual, desired, rtol=1e-07, atol=0, equal_nan=True, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless the elements of two arrays are nearly equal: |actual - desired| <= atol + rtol |desired|.

    actual, desired: arrays of one shape, or a number and an array.
    rtol, atol: the relative and the absolute tolerance.
    equal_nan: does NaN equal NaN?
    err_msg, verbose, strict: those of assert_array_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    """

    def close(x, y):
        return _logic.isclose(x, y, rtol, atol, equal_nan)

    header = f"Not equal to tolerance rtol={rtol:g}, atol={atol:g}"
    assert_array_compare(close, actual, desired, str(err_msg), verbose, header, equal_nan=equal_nan, strict=strict)


def assert_array_almost_equal(actual, desired, decimal=6, err_msg="", verbose=True):
    """AssertionError unless the elements of two arrays agree to a number of decimals: |actual - desired| < 1.5 *
    10**-decimal.

    actual, desired: arrays of one shape, or a number and an array.
    err_msg, verbose: those of assert_array_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_almost_equal([1.0], [1.0000001])
    """

    def close(x, y):
        return f["abs"](x - inexact(y)).astype("float64") < 1.5 * 10.0**-decimal

    assert_array_compare(close, actual, desired, err_msg, verbose, f"Arrays are not almost equal to {decimal} decimals")


def assert_array_less(x, y, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless each element of an array is less than that of another.

    x, y: arrays of one shape, or a number and an array.
    err_msg, verbose, strict: those of assert_array_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_less([1, 2], 3)
    """
    header = "Arrays are not strictly ordered `x < y`"
    assert_array_compare(f["less"], x, y, err_msg, verbose, header, equal_inf=False, strict=strict)


def _zeros_differ(x, y):
    """Are both numbers, with zeros of different signs as a part?"""
    if x.ndim or y.ndim:
        return False
    parts = [(z.real, z.imag) for z in map(complex, (x.item(), y.item()))]
    return any(a == b == 0 and math.copysign(1, a) != math.copysign(1, b) for a, b in zip(*parts))


def assert_equal(actual, desired, err_msg="", verbose=True, *, strict=False):
    """AssertionError unless two objects are equal: numbers, texts, arrays, and lists, tuples and dicts of them.

    actual, desired: the objects. NaN equals NaN, and zeros of different signs differ.
    err_msg, verbose, strict: those of assert_array_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_equal({"a": [1, 2]}, {"a": [1, 2]})
    """
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
    """AssertionError unless two numbers, or arrays, agree to a number of decimals: |actual - desired| < 1.5 *
    10**-decimal.

    The arguments are those of assert_array_almost_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_almost_equal(1.0, 1.00000001)
    """
    assert_array_almost_equal(actual, desired, decimal, err_msg, verbose)


def assert_approx_equal(actual, desired, significant=7, err_msg="", verbose=True):
    """AssertionError unless two numbers agree to a number of significant digits.

    actual, desired: numbers. significant: how many digits.
    err_msg, verbose: those of assert_array_equal.

    >>> import nvm.numpy as np
    >>> np.testing.assert_approx_equal(1234.5671, 1234.5672, significant=7)
    """
    actual, desired = float(actual), float(desired)
    if actual == desired or math.isnan(actual) and math.isnan(desired):
        return
    scale = 10.0 ** math.floor(math.log10(0.5 * (abs(actual) + abs(desired)) or 1.0))
    if not abs(desired / scale - actual / scale) < 10.0 ** -(significant - 1):
        _fail(actual, desired, f"Items are not equal to {significant} significant digits:", err_msg, verbose)


def assert_string_equal(actual, desired):
    """AssertionError unless two texts are equal.

    actual, desired: texts.

    >>> import nvm.numpy as np
    >>> np.testing.assert_string_equal("abc", "abc")
    """
    assert_(isinstance(actual, str), repr(type(actual)))
    assert_(isinstance(desired, str), repr(type(desired)))
    assert_(actual == desired, f"Differences in strings:\n{actual!r}\n{desired!r}")


def assert_array_almost_equal_nulp(x, y, nulp=1):
    """AssertionError unless the elements of two arrays are within a number of units in the last place of the larger.

    x, y: arrays of floats of one dtype.
    nulp: how many units.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_almost_equal_nulp(np.array([1.0]), np.array([1.0 + 2.0**-52]))
    """
    x, y = asarray(x), asarray(y)
    largest = f["where"](f["abs"](x) > f["abs"](y), f["abs"](x), f["abs"](y))
    unit = finfo(x.dtype).eps * f["exp2"](f["floor"](f["log2"](f["maximum"](largest, finfo(x.dtype).tiny))))
    if bool(f["any"](f["abs"](x - y) > nulp * unit)):
        raise AssertionError(f"Arrays are not equal to {nulp} ULP\n x: {x!r}\n y: {y!r}")


def assert_array_max_ulp(a, b, maxulp=1, dtype=None):
    """AssertionError unless the elements of two arrays are so near that at most a number of their dtype's numbers lie
    between.

    a, b: arrays of floats of one dtype; dtype: to which they are cast first.
    maxulp: how far they may be apart, 1 of neighbours.
    Returns an array of how far they are apart.
    Raises TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.testing.assert_array_max_ulp(np.array([1.0]), np.array([1.0 + 2.0**-52]))
    array([1.])
    """
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
    """A folder that is removed afterwards: a context manager, which returns its path.

    args, kwargs: those of tempfile.mkdtemp.

    >>> import nvm.numpy as np
    >>> import os
    >>> with np.testing.tempdir() as path:
    ...     print(os.path.isdir(path))
    True
    """
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(*args, **kwargs)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def temppath(*args, **kwargs):
    """A file that is removed afterwards: a context manager, which returns its path.

    args, kwargs: those of tempfile.mkstemp.

    >>> import nvm.numpy as np
    >>> import os
    >>> with np.testing.temppath(suffix=".txt") as path:
    ...     print(os.path.isfile(path))
    True
    """
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
    """AssertionError unless a call raises an exception.

    args: the exception, or a tuple of them; a function and its arguments. Without a function: a context manager.

    >>> import nvm.numpy as np
    >>> with np.testing.assert_raises(ValueError):
    ...     np.reshape([1, 2], 3)
    """
    return _case().assertRaises(*args, **kwargs)


def assert_raises_regex(exception_class, expected_regexp, *args, **kwargs):
    """AssertionError unless a call raises an exception whose text matches.

    exception_class: the exception. expected_regexp: the regular expression.
    args: a function and its arguments. Without them: a context manager.

    >>> import nvm.numpy as np
    >>> with np.testing.assert_raises_regex(ValueError, "cannot reshape"):
    ...     np.reshape([1, 2], 3)
    """
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
    """AssertionError unless a call warns.

    warning_class: the warning.
    args: a function and its arguments. Without them: a context manager.
    Returns what the function returns.

    >>> import nvm.numpy as np
    >>> with np.testing.assert_warns(np.exceptions.ComplexWarning):
    ...     total = np.sum([1 + 2j], dtype=float)
    """

    def check(found):
        assert_(any(issubclass(w.category, warning_class) for w in found), f"{warning_class.__name__} not triggered")

    return _under(_caught(check), args, kwargs)


def assert_no_warnings(*args, **kwargs):
    """AssertionError if a call warns.

    args: a function and its arguments. Without them: a context manager.
    Returns what the function returns.

    >>> import nvm.numpy as np
    >>> np.testing.assert_no_warnings(np.sum, [1, 2])
    array(3)
    """
    return _under(_caught(lambda found: assert_(not found, f"Got warnings: {found}")), args, kwargs)


__all__ = sorted(
    n for n, v in globals().items() if not n.startswith("_") and getattr(v, "__module__", None) == __name__
) + ["SkipTest", "assert_"]


def __getattr__(name):
    from .._names import missing

    raise missing(name, __all__, "nvm.numpy.testing") from None
