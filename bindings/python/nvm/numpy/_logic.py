"""Comparison of whole arrays, and tests of what elements and types are."""

from .. import _nvm
from ._reductions import all as _all
from ._support import Array, asarray, f, inexact, public, to_out


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Is each element within atol + rtol * |b| of the other array's?"""
    a, b = asarray(a), inexact(asarray(b))
    if isinstance(rtol, (int, float)) and isinstance(atol, (int, float)):
        return f["isclose"](a, b, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))
    near = f["abs"](a - b) <= asarray(atol) + asarray(rtol) * f["abs"](b)
    same = (a == b) | (f["isnan"](a) & f["isnan"](b)) if equal_nan else a == b
    return f["where"](f["isfinite"](b), near, same) | same


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements close? A Python bool."""
    return bool(f["all"](isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1, a2, equal_nan=False):
    """Have both the same shape and elements? A Python bool."""
    try:
        a1, a2 = asarray(a1), asarray(a2)
    except (TypeError, ValueError):
        return False
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    if equal_nan and a1.dtype.kind in "fc" and a2.dtype.kind in "fc":
        same = same | (f["isnan"](a1) & f["isnan"](a2))
    return bool(f["all"](same))


def array_equiv(a1, a2):
    """Does one broadcast to the other with the same elements? A Python bool."""
    try:
        return bool(f["all"](asarray(a1) == asarray(a2)))
    except (TypeError, ValueError):
        return False


def isreal(x):
    """Has an element no imaginary part?"""
    x = asarray(x)
    return f["imag"](x) == 0 if x.dtype.kind == "c" else f["ones"](x.shape, dtype=_nvm.bool)


def iscomplex(x):
    """Has an element an imaginary part?"""
    x = asarray(x)
    return f["imag"](x) != 0 if x.dtype.kind == "c" else f["zeros"](x.shape, dtype=_nvm.bool)


def iscomplexobj(x):
    """Is the dtype complex?"""
    return (x.dtype if hasattr(x, "dtype") else asarray(x).dtype).kind == "c"


def isrealobj(x):
    """Is the dtype not complex?"""
    return not iscomplexobj(x)


def isscalar(element):
    """Is it a number or a text? An array of no dimensions is not."""
    from numbers import Number  # which takes a millisecond

    return isinstance(element, (Number, str, bytes))


def _infinite(who, x, out, sign):
    x = asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {x.dtype.name} values because it would be ambiguous.")
    return to_out(who, f["isinf"](x) & (x > 0 if sign > 0 else x < 0), out)


def isposinf(x, out=None):
    """Is an element positive infinity?"""
    return _infinite("isposinf", x, out, 1)


def isneginf(x, out=None):
    """Is an element negative infinity?"""
    return _infinite("isneginf", x, out, -1)


def isfortran(a):
    """Has the array the order of Fortran in memory? Never: nvm's order cannot be seen."""
    if not isinstance(a, Array):
        raise AttributeError(f"{type(a).__name__!r} object has no attribute 'flags'")
    return False


def real(val):
    """Real parts."""
    if isinstance(val, (bool, int, float, complex)):
        return val.real
    val = asarray(val)
    return f["real"](val) if val.dtype.kind == "c" else val


def imag(val):
    """Imaginary parts; zeros of real numbers."""
    if isinstance(val, (bool, int, float, complex)):
        return val.imag
    val = asarray(val)
    return f["imag"](val) if val.dtype.kind == "c" else f["zeros"](val.shape, dtype=val.dtype)


def angle(z, deg=False):
    """The angle of complex numbers, in radians or degrees."""
    z = asarray(z)
    real_part, imaginary = (f["real"](z), f["imag"](z)) if z.dtype.kind == "c" else (z, f["zeros"]((), dtype=z.dtype))
    a = f["atan2"](imaginary, real_part)
    return a * (180 / 3.141592653589793) if deg else a


def real_if_close(a, tol=100):
    """Real parts, if the imaginary ones are within tol of the dtype's epsilon (below 1: within tol itself)."""
    a = asarray(a)
    if a.dtype.kind != "c":
        return a
    if tol > 1:
        tol = 2.0**-23 * tol if a.dtype == _nvm.complex64 else 2.0**-52 * tol
    return f["real"](a) if bool(_all(f["abs"](f["imag"](a)) < tol)) else a


__all__ = public(globals())
