"""Reductions that leave NaN out."""

import math

from . import _reductions as _r
from ._support import NOT_GIVEN, asarray, f, fault, given, public


def _without(a, value):
    """(the array with a value instead of NaN, where NaN was): the latter is None for dtypes that have no NaN."""
    a = asarray(a)
    if a.dtype.kind not in "fc":
        return a, None
    undefined = f["isnan"](a)
    return f["where"](undefined, value, a), undefined


def nansum(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The sum along axes of the elements that are not NaN; 0 where there are none.

    The arguments and errors are those of sum.

    >>> import nvm.numpy as np
    >>> np.nansum([[1.0, np.nan], [3.0, 4.0]], axis=0)
    array([4., 4.])
    """
    return _r.sum(_without(a, 0)[0], axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The product along axes of the elements that are not NaN; 1 where there are none.

    The arguments and errors are those of prod.

    >>> import nvm.numpy as np
    >>> np.nanprod([2.0, np.nan, 3.0])
    array(6.)
    """
    return _r.prod(_without(a, 1)[0], axis, dtype, out, keepdims, initial, where)


def nancumsum(a, axis=None, dtype=None, out=None):
    """Running sums along an axis in which NaN counts as 0.

    The arguments and errors are those of cumsum.

    >>> import nvm.numpy as np
    >>> np.nancumsum([1.0, np.nan, 3.0])
    array([1., 1., 4.])
    """
    return _r.cumsum(_without(a, 0)[0], axis, dtype, out)


def nancumprod(a, axis=None, dtype=None, out=None):
    """Running products along an axis in which NaN counts as 1.

    The arguments and errors are those of cumprod.

    >>> import nvm.numpy as np
    >>> np.nancumprod([2.0, np.nan, 3.0])
    array([2., 2., 6.])
    """
    return _r.cumprod(_without(a, 1)[0], axis, dtype, out)


def _extreme(reduce, worst, a, axis, out, keepdims, initial, where):
    x, undefined = _without(a, worst)
    result = reduce(x, axis, None, keepdims, initial, where)
    if undefined is not None and initial is NOT_GIVEN:
        result = f["where"](_r.all(undefined, axis, keepdims=keepdims, where=where), math.nan, result)
    return _r.to_out("nan" + reduce.__name__, result, out, "unsafe")


def nanmax(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The greatest along axes of the elements that are not NaN; NaN where there are none.

    The arguments and errors are those of max.

    >>> import nvm.numpy as np
    >>> np.nanmax([[1.0, np.nan], [3.0, 4.0]], axis=0)
    array([3., 4.])
    """
    return _extreme(_r.max, -math.inf, a, axis, out, keepdims, initial, where)


def nanmin(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The least along axes of the elements that are not NaN; NaN where there are none.

    The arguments and errors are those of min.

    >>> import nvm.numpy as np
    >>> np.nanmin([[1.0, np.nan], [3.0, 4.0]], axis=1)
    array([1., 3.])
    """
    return _extreme(_r.min, math.inf, a, axis, out, keepdims, initial, where)


def _position(find, worst, a, axis, out, keepdims):
    x, undefined = _without(a, worst)
    if undefined is not None:
        kept = {} if axis is None else {"axis": axis}
        if bool(_r.any(_r.all(undefined, **kept))):
            raise fault(ValueError, "All-NaN slice encountered")
    return find(x, axis, out, keepdims=keepdims)


def nanargmax(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the greatest of the elements that are not NaN is, along an axis.

    The arguments are those of argmax. The elements are evaluated.
    Raises ValueError where all elements are NaN, or there are none, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.nanargmax([np.nan, 2.0, 3.0])
    array(2)
    """
    return _position(_r.argmax, -math.inf, a, axis, out, keepdims)


def nanargmin(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the least of the elements that are not NaN is, along an axis.

    The arguments are those of argmin. The elements are evaluated.
    Raises ValueError where all elements are NaN, or there are none, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.nanargmin([np.nan, 2.0, 3.0])
    array(1)
    """
    return _position(_r.argmin, math.inf, a, axis, out, keepdims)


def _selection(a, where):
    """The mask of what counts: no NaN, and where= says so."""
    a = asarray(a)
    if a.dtype.kind not in "fc":
        return where
    defined = ~f["isnan"](a)
    return defined if where is NOT_GIVEN else defined & asarray(where)


def _at_least_1d(a, axis):
    """An array of no dimensions may be averaged along its axis 0."""
    a = asarray(a)
    return a, (None if not a.ndim and axis in (0, -1) else axis)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """The mean along axes of the elements that are not NaN; NaN where there are none.

    The arguments and errors are those of mean.

    >>> import nvm.numpy as np
    >>> np.nanmean([[1.0, np.nan], [3.0, 4.0]], axis=0)
    array([2., 4.])
    """
    a, axis = _at_least_1d(a, axis)
    return _r.mean(a, axis, dtype, out, keepdims, where=_selection(a, where))


def nanvar(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=NOT_GIVEN,
    *,
    where=NOT_GIVEN,
    mean=NOT_GIVEN,
    correction=NOT_GIVEN,
):
    """The variance along axes of the elements that are not NaN.

    The arguments and errors are those of var. Where there are ddof elements or fewer, the result is NaN.

    >>> import nvm.numpy as np
    >>> np.nanvar([1.0, np.nan, 3.0])
    array(1.)
    """
    return _spread(_r.var, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def nanstd(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=NOT_GIVEN,
    *,
    where=NOT_GIVEN,
    mean=NOT_GIVEN,
    correction=NOT_GIVEN,
):
    """The standard deviation along axes of the elements that are not NaN.

    The arguments and errors are those of var. Where there are ddof elements or fewer, the result is NaN.

    >>> import nvm.numpy as np
    >>> np.nanstd([1.0, np.nan, 3.0])
    array(1.)
    """
    return _spread(_r.std, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _spread(reduce, a, axis, dtype, out, ddof, keepdims, where, mean, correction):
    a, axis = _at_least_1d(a, axis)
    chosen = _selection(a, where)
    result = reduce(a, axis, dtype, None, ddof, keepdims, where=chosen, mean=mean, correction=correction)
    if chosen is not where:
        lost = given(correction, ddof)
        few = _r.sum(f["broadcast_to"](chosen, asarray(a).shape), axis, keepdims=keepdims) <= lost
        result = f["where"](few, math.nan, result)
    return _r.to_out("nan" + reduce.__name__, result, out, "unsafe")


__all__ = public(globals())
