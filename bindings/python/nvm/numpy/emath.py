"""nvm.numpy.emath: functions that leave the real numbers where they have to. Whether they do follows from the values,
so that the arguments are evaluated."""

import math

from .. import _nvm
from .._creation import from_parts
from ._support import asarray, f, inexact


def _widened(x, outside):
    """The array as complex numbers where some lie outside the domain of the real function."""
    x = inexact(asarray(x))
    if x.dtype.kind != "f" or not bool(f["any"](outside(x))):
        return x
    return x.astype(_nvm.complex64 if x.dtype == _nvm.float32 else _nvm.complex128)


def _negative(x):
    return x < 0


def _beyond_one(x):
    return f["abs"](x) > 1


def _logarithm(x, real, base):
    """The logarithm to a base, part by part: an infinite one divided as a complex number would be NaN."""
    x = _widened(x, _negative)
    if x.dtype.kind != "c":
        return real(x)
    z = f["log"](x)
    return from_parts(*(f[part](z) / math.log(base) for part in ("real", "imag")))


def sqrt(x):
    """The square root, complex where x is negative."""
    return f["sqrt"](_widened(x, _negative))


def log(x):
    """The natural logarithm, complex where x is negative."""
    return f["log"](_widened(x, _negative))


def log2(x):
    """The logarithm to base 2, complex where x is negative."""
    return _logarithm(x, f["log2"], 2)


def log10(x):
    """The logarithm to base 10, complex where x is negative."""
    return _logarithm(x, f["log10"], 10)


def logn(n, x):
    """The logarithm to base n, complex where n or x is negative."""
    return log(x) / log(n)


def power(x, p):
    """x to the power p, complex where x is negative; integers to negative powers are reals."""
    x, p = asarray(x), asarray(p)
    if x.dtype.kind in "if" and bool(f["any"](x < 0)):
        x = _widened(x, _negative)
    return f["pow"](x, inexact(p) if p.dtype.kind == "i" and bool(f["any"](p < 0)) else p)


def arccos(x):
    """The inverse cosine, complex where |x| > 1."""
    return f["acos"](_widened(x, _beyond_one))


def arcsin(x):
    """The inverse sine, complex where |x| > 1."""
    return f["asin"](_widened(x, _beyond_one))


def arctanh(x):
    """The inverse hyperbolic tangent, complex where |x| > 1."""
    return f["atanh"](_widened(x, _beyond_one))


__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]
