"""nvm.numpy.polynomial.polyutils: coefficients as series, and maps between domains."""

from ... import _nvm
from .._sorting import nonzero
from .._support import asarray, f, inexact

__all__ = ["as_series", "getdomain", "mapdomain", "mapparms", "trimcoef", "trimseq"]


def trimseq(seq):
    """The sequence without zeros at its end; its first element stays."""
    if isinstance(seq, (list, tuple)):
        return seq[: trimseq(asarray(seq)).size]
    used = nonzero(seq)[0]
    return seq[: int(used[-1]) + 1] if used.size else seq[:1]


def trimcoef(c, tol=0):
    """The coefficients without those at the end whose size is at most tol; at least one zero stays."""
    if tol < 0:
        raise ValueError("tol must be non-negative")
    (c,) = as_series([c])
    used = nonzero(f["abs"](c) > tol)[0]
    return c[: int(used[-1]) + 1] if used.size else c[:1] * 0


def as_series(alist, trim=True):
    """The arrays of coefficients with one dimension, in one floating-point or complex dtype."""
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
    """The least interval that has these points: [min, max], of complex ones the corners of their rectangle."""
    (x,) = as_series([x], trim=False)
    if x.dtype.kind != "c":
        return f["stack"]([f["min"](x), f["max"](x)])
    re, im = f["real"](x), f["imag"](x)
    ends = [_complex(g(re), g(im)) for g in (f["min"], f["max"])]
    return f["stack"](ends)


def _complex(re, im):
    return re + 1j * im


def mapparms(old, new):
    """(offset, scale) of the map offset + scale * x from an old interval to a new one."""
    old, new = asarray(old), asarray(new)
    length = old[1] - old[0]
    return (old[1] * new[0] - old[0] * new[1]) / length, (new[1] - new[0]) / length


def mapdomain(x, old, new):
    """The points x of an old interval, mapped to a new one."""
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
