"""Reductions that leave NaN out."""

import math

from . import _reductions as _r
from ._support import NOT_GIVEN, asarray, f, given, public


def _without(a, value):
    """(the array with a value instead of NaN, where NaN was): the latter is None for dtypes that have no NaN."""
    a = asarray(a)
    if a.dtype.kind not in "fc":
        return a, None
    undefined = f["isnan"](a)
    return f["where"](undefined, value, a), undefined


def nansum(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """sum, with 0 for NaN."""
    return _r.sum(_without(a, 0)[0], axis, dtype, out, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """prod, with 1 for NaN."""
    return _r.prod(_without(a, 1)[0], axis, dtype, out, keepdims, initial, where)


def nancumsum(a, axis=None, dtype=None, out=None):
    """cumsum, with 0 for NaN."""
    return _r.cumsum(_without(a, 0)[0], axis, dtype, out)


def nancumprod(a, axis=None, dtype=None, out=None):
    """cumprod, with 1 for NaN."""
    return _r.cumprod(_without(a, 1)[0], axis, dtype, out)


def _extreme(reduce, worst, a, axis, out, keepdims, initial, where):
    x, undefined = _without(a, worst)
    result = reduce(x, axis, None, keepdims, initial, where)
    if undefined is not None and initial is NOT_GIVEN:
        result = f["where"](_r.all(undefined, axis, keepdims=keepdims, where=where), math.nan, result)
    return _r.to_out("nan" + reduce.__name__, result, out, "unsafe")


def nanmax(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """max of the elements that are no NaN."""
    return _extreme(_r.max, -math.inf, a, axis, out, keepdims, initial, where)


def nanmin(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """min of the elements that are no NaN."""
    return _extreme(_r.min, math.inf, a, axis, out, keepdims, initial, where)


def _position(find, worst, a, axis, out, keepdims):
    x, undefined = _without(a, worst)
    if undefined is not None:
        kept = {} if axis is None else {"axis": axis}
        if bool(_r.any(_r.all(undefined, **kept))):
            raise ValueError("All-NaN slice encountered")
    return find(x, axis, out, keepdims=keepdims)


def nanargmax(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """argmax of the elements that are no NaN; ValueError where there are none."""
    return _position(_r.argmax, -math.inf, a, axis, out, keepdims)


def nanargmin(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """argmin of the elements that are no NaN; ValueError where there are none."""
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
    """mean of the elements that are no NaN."""
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
    """var of the elements that are no NaN; NaN where there are ddof of them or fewer."""
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
    """std of the elements that are no NaN; NaN where there are ddof of them or fewer."""
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
