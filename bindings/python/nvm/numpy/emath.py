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
    """The square root, complex where it has to be.

    x: an array of numbers; whether one is negative is evaluated.
    Returns an array of floats in the shape of x, complex if an element is negative.

    >>> import nvm.numpy as np
    >>> np.emath.sqrt([4.0, -1.0])
    array([2.+0.j, 0.+1.j])
    """
    return f["sqrt"](_widened(x, _negative))


def log(x):
    """The natural logarithm, complex where it has to be.

    x: an array of numbers; whether one is negative is evaluated.
    Returns an array of floats in the shape of x, complex if an element is negative.

    >>> import nvm.numpy as np
    >>> np.emath.log(-1)
    array(0.+3.14159265j)
    """
    return f["log"](_widened(x, _negative))


def log2(x):
    """The logarithm to base 2, complex where it has to be.

    x: an array of numbers; whether one is negative is evaluated.
    Returns an array of floats in the shape of x, complex if an element is negative.

    >>> import nvm.numpy as np
    >>> np.emath.log2([8.0, 1.0])
    array([3., 0.])
    """
    return _logarithm(x, f["log2"], 2)


def log10(x):
    """The logarithm to base 10, complex where it has to be.

    x: an array of numbers; whether one is negative is evaluated.
    Returns an array of floats in the shape of x, complex if an element is negative.

    >>> import nvm.numpy as np
    >>> np.emath.log10([100.0, 1.0])
    array([2., 0.])
    """
    return _logarithm(x, f["log10"], 10)


def logn(n, x):
    """The logarithm to a base, complex where it has to be.

    n, x: arrays of numbers that broadcast: bases, and arguments; whether one is negative is evaluated.
    Returns an array of floats in the common shape, complex if an element is negative.

    >>> import nvm.numpy as np
    >>> np.emath.logn(2, [4.0, 8.0])
    array([2., 3.])
    """
    return log(x) / log(n)


def power(x, p):
    """Powers, complex where they have to be.

    x, p: arrays of numbers that broadcast: bases, and exponents. Whether one is negative is evaluated.
    Returns an array in the common shape: complex if a base is negative, of floats if an integer exponent is.

    >>> import nvm.numpy as np
    >>> np.emath.power([2, 4], -1)
    array([0.5 , 0.25])
    """
    x, p = asarray(x), asarray(p)
    if x.dtype.kind in "if" and bool(f["any"](x < 0)):
        x = _widened(x, _negative)
    return f["pow"](x, inexact(p) if p.dtype.kind == "i" and bool(f["any"](p < 0)) else p)


def arccos(x):
    """The inverse cosine, complex where it has to be.

    x: an array of numbers; whether one lies outside [-1, 1] is evaluated.
    Returns an array of floats in the shape of x, complex if an element lies outside.

    >>> import nvm.numpy as np
    >>> np.emath.arccos([0.0, 1.0])
    array([1.57079633, 0.        ])
    """
    return f["acos"](_widened(x, _beyond_one))


def arcsin(x):
    """The inverse sine, complex where it has to be.

    x: an array of numbers; whether one lies outside [-1, 1] is evaluated.
    Returns an array of floats in the shape of x, complex if an element lies outside.

    >>> import nvm.numpy as np
    >>> np.emath.arcsin([0.0, 1.0])
    array([0.        , 1.57079633])
    """
    return f["asin"](_widened(x, _beyond_one))


def arctanh(x):
    """The inverse hyperbolic tangent, complex where it has to be.

    x: an array of numbers; whether one lies outside [-1, 1] is evaluated.
    Returns an array of floats in the shape of x, complex if an element lies outside.

    >>> import nvm.numpy as np
    >>> np.emath.arctanh([0.0, 0.5])
    array([0.        , 0.54930614])
    """
    return f["atanh"](_widened(x, _beyond_one))


__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]
