"""nvm.numpy.polynomial.polyutils: coefficients as series, and maps between domains."""

from ... import _nvm
from .._sorting import nonzero
from .._support import asarray, f, inexact

__all__ = ["as_series", "getdomain", "mapdomain", "mapparms", "trimcoef", "trimseq"]


def trimseq(seq):
    """A sequence without the zeros at its end; its first element stays.

    seq: an array of one dimension, a list or a tuple; it is evaluated.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> pu.trimseq([1, 2, 0, 0])
    [1, 2]
    """
    if isinstance(seq, (list, tuple)):
        return seq[: trimseq(asarray(seq)).size]
    used = nonzero(seq)[0]
    return seq[: int(used[-1]) + 1] if used.size else seq[:1]


def trimcoef(c, tol=0):
    """Coefficients without those at the end that are nearly 0.

    c: coefficients of one dimension; they are evaluated.
    tol: what is nearly 0: an absolute value up to this.
    Returns an array of floats; at least one 0 stays.
    Raises ValueError for a negative tol.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> pu.trimcoef([1, 2, 1e-9], tol=1e-6)
    array([1., 2.])
    """
    if tol < 0:
        raise ValueError("tol must be non-negative")
    (c,) = as_series([c])
    used = nonzero(f["abs"](c) > tol)[0]
    return c[: int(used[-1]) + 1] if used.size else c[:1] * 0


def as_series(alist, trim=True):
    """Coefficients as arrays of one dimension, in the floating-point or complex dtype that they have in common.

    alist: a sequence of coefficients, each a number or of one dimension.
    trim: are zeros at the ends cut off?
    Returns a list of arrays.
    Raises ValueError for more dimensions, or no coefficients.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> pu.as_series([[1, 2, 0], 3])
    [array([1., 2.]), array([3.])]
    """
    arrays = [asarray(a) for a in alist]
    arrays = [a.reshape(1) if a.ndim == 0 else a for a in arrays]
    if any(a.size == 0 for a in arrays):
        raise ValueError("Coefficient array is empty")
    if any(a.ndim != 1 for a in arrays):
        raise ValueError("Coefficient array is not 1-d")
    if trim:
        arrays = [trimseq(a) for a in arrays]
    arrays = [inexact(a) for a in arrays]
    dtype = arrays[0].dtype
    for a in arrays[1:]:
        dtype = f["where"](True, f["zeros"]((), dtype=dtype), a[0]).dtype
    return [a.astype(dtype) for a in arrays]


def getdomain(x):
    """The least interval that has given points; of complex points, the corners of their rectangle.

    x: an array (n,).
    Returns an array (2,) of floats.
    Raises ValueError for more dimensions, or no points.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> pu.getdomain([3, -1, 2])
    array([-1.,  3.])
    """
    (x,) = as_series([x], trim=False)
    if x.dtype.kind != "c":
        return f["stack"]([f["min"](x), f["max"](x)])
    re, im = f["real"](x), f["imag"](x)
    ends = [_complex(g(re), g(im)) for g in (f["min"], f["max"])]
    return f["stack"](ends)


def _complex(re, im):
    return re + 1j * im


def mapparms(old, new):
    """The linear map from one interval to another.

    old, new: the intervals, arrays (2,).
    Returns (offset, scale): x is mapped to offset + scale * x.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> offset, scale = pu.mapparms([0, 4], [-1, 1])
    >>> float(offset), float(scale)
    (-1.0, 0.5)
    """
    old, new = asarray(old), asarray(new)
    length = old[1] - old[0]
    return (old[1] * new[0] - old[0] * new[1]) / length, (new[1] - new[0]) / length


def mapdomain(x, old, new):
    """Points of one interval, mapped to another.

    x: a number, or an array of any shape.
    old, new: the intervals, arrays (2,).
    Returns an array in the shape of x.

    >>> import nvm.numpy.polynomial.polyutils as pu
    >>> pu.mapdomain([0, 1, 4], [0, 4], [-1, 1])
    array([-1. , -0.5,  1. ])
    """
    offset, scale = mapparms(old, new)
    return offset + scale * point(x)


def point(x):
    """A number or a series as it is, all else as an array."""
    return x if type(x) in (int, float, complex) or hasattr(x, "has_samecoef") else asarray(x)


def one_series(c, who):
    """Coefficients for functions along an axis: inexact, of at least one dimension."""
    c = asarray(c)
    c = c.reshape(1) if c.ndim == 0 else c
    if c.dtype == _nvm.bool:
        raise TypeError(f"[{who}] coefficients are numbers, not bool")
    return inexact(c)
