"""Comparison of whole arrays, and tests of what elements and types are."""

from .. import _nvm
from ._reductions import all as _all
from ._support import Array, asarray, f, fault, inexact, public, to_out


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """For each element of two arrays, are they nearly equal: |a - b| <= atol + rtol |b|?

    a, b: arrays that broadcast.
    rtol, atol: the relative and the absolute tolerance.
    equal_nan: does NaN equal NaN?
    Returns an array of bool in their common shape.
    Raises ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.isclose([1.0, 1.1], [1.0, 1.0])
    array([ True, False])
    """
    a, b = asarray(a), inexact(asarray(b))
    if isinstance(rtol, (int, float)) and isinstance(atol, (int, float)):
        return f["isclose"](a, b, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))
    near = f["abs"](a - b) <= asarray(atol) + asarray(rtol) * f["abs"](b)
    same = (a == b) | (f["isnan"](a) & f["isnan"](b)) if equal_nan else a == b
    return f["where"](f["isfinite"](b), near, same) | same


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Are all elements of two arrays nearly equal, as isclose says? They are evaluated.

    The arguments and errors are those of isclose.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    True
    """
    return bool(f["all"](isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a1, a2, equal_nan=False):
    """Have two arrays the same shape and the same elements? They are evaluated.

    a1, a2: arrays, or what asarray takes; what is no array of numbers equals nothing.
    equal_nan: does NaN equal NaN?
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.array_equal([1, 2], [1, 2]), np.array_equal([1, 2], [[1, 2]])
    (True, False)
    """
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
    """Have two arrays the same elements, once they are broadcast? They are evaluated.

    a1, a2: arrays, or what asarray takes; shapes that do not broadcast give False.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.array_equiv([1, 2], [[1, 2], [1, 2]])
    True
    """
    try:
        return bool(f["all"](asarray(a1) == asarray(a2)))
    except (TypeError, ValueError):
        return False


def isreal(x):
    """For each element, is its imaginary part 0?

    x: an array, or what asarray takes.
    Returns an array of bool in the shape of x.

    >>> import nvm.numpy as np
    >>> np.isreal([1 + 1j, 2])
    array([False,  True])
    """
    x = asarray(x)
    return f["imag"](x) == 0 if x.dtype.kind == "c" else f["ones"](x.shape, dtype=_nvm.bool)


def iscomplex(x):
    """For each element, is its imaginary part other than 0?

    x: an array, or what asarray takes.
    Returns an array of bool in the shape of x.

    >>> import nvm.numpy as np
    >>> np.iscomplex([1 + 1j, 2])
    array([ True, False])
    """
    x = asarray(x)
    return f["imag"](x) != 0 if x.dtype.kind == "c" else f["zeros"](x.shape, dtype=_nvm.bool)


def iscomplexobj(x):
    """Is the dtype of an array complex, whatever its values are?

    x: an array, or what asarray takes.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.iscomplexobj([1 + 0j]), np.iscomplexobj([1.0])
    (True, False)
    """
    return (x.dtype if hasattr(x, "dtype") else asarray(x).dtype).kind == "c"


def isrealobj(x):
    """Is the dtype of an array not complex?

    x: an array, or what asarray takes.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.isrealobj([1.0])
    True
    """
    return not iscomplexobj(x)


def isscalar(element):
    """Is an object a number or a text? An array of no dimensions is not.

    element: any object.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.isscalar(3.0), np.isscalar(np.array(3.0))
    (True, False)
    """
    from numbers import Number  # which takes a millisecond

    return isinstance(element, (Number, str, bytes))


def _infinite(who, x, out, sign):
    x = asarray(x)
    if x.dtype.kind == "c":
        raise fault(
            TypeError, f"This operation is not supported for {x.dtype.name} values because it would be ambiguous."
        )
    return to_out(who, f["isinf"](x) & (x > 0 if sign > 0 else x < 0), out)


def isposinf(x, out=None):
    """For each element, is it positive infinity?

    x: an array of real numbers.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array of bool in the shape of x.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.isposinf([np.inf, -np.inf, 1.0])
    array([ True, False, False])
    """
    return _infinite("isposinf", x, out, 1)


def isneginf(x, out=None):
    """For each element, is it negative infinity?

    x: an array of real numbers.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array of bool in the shape of x.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.isneginf([np.inf, -np.inf, 1.0])
    array([False,  True, False])
    """
    return _infinite("isneginf", x, out, -1)


def isfortran(a):
    """Is an array stored in Fortran's order alone? Never: the order of an array of nvm cannot be seen.

    a: an array of nvm.
    Returns False.
    Raises AttributeError for other objects.

    >>> import nvm.numpy as np
    >>> np.isfortran(np.ones((2, 3)))
    False
    """
    if not isinstance(a, Array):
        raise AttributeError(f"{type(a).__name__!r} object has no attribute 'flags'")
    return False


def real(val):
    """The real parts of an array's elements.

    val: an array, or a Python number, of which a Python number is returned.
    Returns an array in the real dtype; a view of a complex array, which may be written to.

    >>> import nvm.numpy as np
    >>> np.real([1 + 2j, 3])
    array([1., 3.])
    """
    if isinstance(val, (bool, int, float, complex)):
        return val.real
    val = asarray(val)
    return f["real"](val) if val.dtype.kind == "c" else val


def imag(val):
    """The imaginary parts of an array's elements; zeros of real numbers.

    val: an array, or a Python number, of which a Python number is returned.
    Returns an array in the real dtype; a view of a complex array, which may be written to.

    >>> import nvm.numpy as np
    >>> np.imag([1 + 2j, 3])
    array([2., 0.])
    """
    if isinstance(val, (bool, int, float, complex)):
        return val.imag
    val = asarray(val)
    return f["imag"](val) if val.dtype.kind == "c" else f["zeros"](val.shape, dtype=val.dtype)


def angle(z, deg=False):
    """The angles of complex numbers from the positive real axis.

    z: an array, or what asarray takes.
    deg: True returns degrees, False radians.
    Returns real numbers from -pi to pi, in float64 for integers.

    >>> import nvm.numpy as np
    >>> np.angle([1j, -1], deg=True)
    array([ 90., 180.])
    """
    z = asarray(z)
    real_part, imaginary = (f["real"](z), f["imag"](z)) if z.dtype.kind == "c" else (z, f["zeros"]((), dtype=z.dtype))
    a = f["atan2"](imaginary, real_part)
    return a * (180 / 3.141592653589793) if deg else a


def real_if_close(a, tol=100):
    """The real parts of a complex array, if all its imaginary parts are nearly 0; else the array. It is evaluated.

    a: an array, or what asarray takes.
    tol: what is nearly 0: at most tol times the epsilon of the dtype; if tol is 1 or less, below tol itself.

    >>> import nvm.numpy as np
    >>> np.real_if_close([1 + 1e-16j, 2])
    array([1., 2.])
    """
    a = asarray(a)
    if a.dtype.kind != "c":
        return a
    if tol > 1:
        tol = 2.0**-23 * tol if a.dtype == _nvm.complex64 else 2.0**-52 * tol
    return f["real"](a) if bool(_all(f["abs"](f["imag"](a)) < tol)) else a


__all__ = public(globals())
