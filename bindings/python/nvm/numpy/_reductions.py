"""Sums, products, extremes, means and the like, with NumPy's arguments."""

import builtins
import math

from .. import _masked, _nvm
from ._dtypes import result_type
from ._support import (
    NOT_GIVEN,
    Array,
    asarray,
    axes_of,
    cast,
    dtype_or_none,
    f,
    given,
    inexact,
    one_axis,
    public,
    real_dtype,
    to_out,
)


def _axis(axis, ndim):
    """A tuple of axes, None as it is. An array of no dimensions may be reduced along its axis 0."""
    if not ndim and type(axis) is int and axis in (0, -1):
        return ()
    return None if axis is None else axes_of(axis, ndim)


def _where(where, x):
    """The mask in the shape of x; None if everything is selected."""
    where = given(where, True)
    if where is True or where is None:
        return None
    where = asarray(where)
    return f["broadcast_to"](where if where.dtype == _nvm.bool else where != 0, shape=x.shape)


def _sum_dtype(x, dtype, out):
    """The dtype of a sum, a product or the running ones: given, or that in which x and out meet; None: that of x."""
    if dtype is None and isinstance(out, Array):
        return result_type(x, out)
    return dtype_or_none(dtype)


def _store(who, result, out):
    """The result of a reduction, in `out` if there is one, by any cast."""
    return to_out(who, result, out, "unsafe")


def _fold(who, a, axis, dtype, out, keepdims, initial, where):
    x = asarray(a)
    dtype = _sum_dtype(x, dtype, out)
    x = cast(x, dtype)
    how = {} if dtype is None or dtype.name == "bool" else {"dtype": dtype}  # there are no sums in bool
    initial, where = given(initial), _where(where, x)
    kept = {"axis": _axis(axis, x.ndim), "keepdims": bool(given(keepdims, False))}
    if initial is None and where is None:
        result = f[who](x, **kept, **how)
    else:
        result = _masked.masked(who, x, initial, where, **kept, **how)
    return _store(who, cast(result, dtype), out)


def sum(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The sum along axes; integers are summed in 64 bits."""
    return _fold("sum", a, axis, dtype, out, keepdims, initial, where)


def prod(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The product along axes; integers are multiplied in 64 bits."""
    return _fold("prod", a, axis, dtype, out, keepdims, initial, where)


def _none_selected(who, x, axis, initial):
    """Is there an axis of no elements to reduce over? That is an error without a first value."""
    axes = range(x.ndim) if axis is None else axis
    if initial is None and _any_empty(x, axes):
        raise ValueError(f"zero-size array to reduction operation {who}imum which has no identity: shape {x.shape}")


def _any_empty(x, axes):
    return builtins.any(not x.shape[d] for d in axes)


def _complex_extreme(who, x, axis, keepdims):
    """The greatest or least complex number along axes, by real part and then by imaginary part; one with a NaN wins."""
    kept = {"axis": axis, "keepdims": True}
    extreme, worst = f[who], -math.inf if who == "max" else math.inf
    real, imaginary = f["real"](x), f["imag"](x)
    undefined = f["isnan"](real) | f["isnan"](imaginary)
    best = extreme(f["where"](undefined, worst, real), **kept)
    rest = extreme(f["where"](~undefined & (real == best), imaginary, worst), **kept)
    nans = f["any"](undefined, **kept)
    picked = f["where"](nans, undefined, (real == best) & (imaginary == rest))
    axes = axes_of(axis, x.ndim)
    order = [d for d in range(x.ndim) if d not in axes] + list(axes)
    flat = (len(order) - len(axes), -1)
    lead = [x.shape[d] for d in order[: flat[0]]]
    count = 1
    for d in axes:
        count *= x.shape[d]
    at = f["argmax"](f["permute_dims"](picked, order).reshape([*lead, count]), axis=-1, keepdims=True)
    result = f["take_along_axis"](f["permute_dims"](x, order).reshape([*lead, count]), at, axis=-1)[..., 0]
    return result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)]) if keepdims else result


def _extreme(who, a, axis, out, keepdims, initial, where):
    x = asarray(a)
    axis, keepdims = _axis(axis, x.ndim), bool(given(keepdims, False))
    initial, where = given(initial), _where(where, x)
    _none_selected(who, x, axis, initial)
    if where is not None and initial is None:
        raise ValueError(
            f"reduction operation '{who}imum' does not have an identity, so to use a where mask one has to specify "
            f"'initial': shape {x.shape}"
        )
    if x.dtype.kind == "c":
        x = x if where is None else f["where"](where, x, initial)
        result = _complex_extreme(who, x, axis, keepdims)
        if initial is not None:
            first = f["broadcast_to"](asarray(initial).astype(x.dtype), result.shape)
            result = _complex_extreme(who, f["stack"]([result, first]), (0,), False)
        return _store(who, result, out)
    if initial is None and where is None:
        return _store(who, f[who](x, axis=axis, keepdims=keepdims), out)
    initial = asarray(initial).astype(x.dtype)
    return _store(who, _masked.masked(who, x, initial, where, axis=axis, keepdims=keepdims), out)


def max(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The greatest element along axes; NaN if there is one."""
    return _extreme("max", a, axis, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The least element along axes; NaN if there is one."""
    return _extreme("min", a, axis, out, keepdims, initial, where)


def amax(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """max, by its other name."""
    return max(a, axis, out, keepdims, initial, where)


def amin(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """min, by its other name."""
    return min(a, axis, out, keepdims, initial, where)


def ptp(a, axis=None, out=None, keepdims=NOT_GIVEN):
    """The greatest element less the least one along axes."""
    return to_out("ptp", max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims), out)


def _test(who, a, axis, out, keepdims, where):
    x = asarray(a)
    kept = {"axis": _axis(axis, x.ndim), "keepdims": bool(given(keepdims, False))}
    where = _where(where, x)
    x = x if x.dtype == _nvm.bool else x != 0
    return _store(who, f[who](x, **kept) if where is None else _masked.masked(who, x, None, where, **kept), out)


def all(a, axis=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """Are all the elements along axes true?"""
    return _test("all", a, axis, out, keepdims, where)


def any(a, axis=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """Is an element along axes true?"""
    return _test("any", a, axis, out, keepdims, where)


def count_nonzero(a, axis=None, *, keepdims=False):
    """The number of elements along axes that are not zero."""
    x = asarray(a)
    return f["count_nonzero"](x, axis=_axis(axis, x.ndim), keepdims=bool(keepdims))


def _position(who, a, axis, out, keepdims):
    x, keepdims = asarray(a), bool(given(keepdims, False))
    if not x.ndim:
        axis = None if _axis(axis, 0) in ((), None) else axis
    axis = None if axis is None else one_axis(axis, x.ndim)
    if not (x.size if axis is None else x.shape[axis] if x.ndim else 1):
        raise ValueError(f"attempt to get {who} of an empty sequence: shape {x.shape}")
    if x.dtype.kind == "c":
        best = _complex_extreme(who[3:], x, None if axis is None else (axis,), True)
        same = (x == best) | f["isnan"](x) & f["isnan"](best)
        return to_out(who, f["argmax"](same, axis=axis, keepdims=keepdims), out)
    return to_out(who, f[who](x, axis=axis, keepdims=keepdims), out)


def argmax(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the greatest element is, the first of several; where NaN is, if there is one."""
    return _position("argmax", a, axis, out, keepdims)


def argmin(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the least element is, the first of several; where NaN is, if there is one."""
    return _position("argmin", a, axis, out, keepdims)


def _average_dtype(x, dtype):
    """(the dtype of a mean or variance, the dtype in which it is computed)."""
    result = dtype_or_none(dtype) or (x.dtype if x.dtype.kind in "fc" else _nvm.float64)
    wide = _nvm.float32 if dtype is None and result == _nvm.float16 else result
    return result, wide


def _total_dtype(x, dtype, out, wide):
    """The dtype in which a mean or variance adds up: that in which x and out meet, where nothing else decides it."""
    decided = dtype is not None or x.dtype == _nvm.float16 or x.dtype.kind not in "fc"
    return wide if decided or not isinstance(out, Array) else result_type(wide, out)


def _count(x, axes, where, kept):
    if where is not None:
        return f["sum"](where, **kept)
    n = 1
    for d in axes:
        n *= x.shape[d]
    return n


def _divided(total, count):
    """A sum divided by a number of elements: NaN where there are none."""
    if isinstance(count, (int, float)):
        return total / count if count else total * math.nan
    return total / count.astype(real_dtype(total.dtype))


def mean(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """The mean along axes, of integers in float64."""
    x = asarray(a)
    result, wide = _average_dtype(x, dtype)
    total = _total_dtype(x, dtype, out, wide)
    result, wide = (result, wide) if total == wide else (total, total)
    kept = {"axis": None if axis is None else axes_of(axis, x.ndim), "keepdims": bool(given(keepdims, False))}
    where = _where(where, x)
    if where is None and wide.kind in "fc":
        return _store("mean", f["mean"](cast(x, wide), **kept).astype(result), out)
    total = sum(x, kept["axis"], wide, None, kept["keepdims"], NOT_GIVEN, True if where is None else where)
    count = _count(x, axes_of(kept["axis"], x.ndim), where, kept)
    return _store("mean", _divided(total, count).astype(result), out)


def _spread(who, a, axis, dtype, out, ddof, keepdims, where, center, correction):
    if correction is not NOT_GIVEN:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = asarray(a)
    result, wide = _average_dtype(x, dtype)
    kept = {"axis": None if axis is None else axes_of(axis, x.ndim), "keepdims": bool(given(keepdims, False))}
    where = _where(where, x)
    x = cast(x, wide) if wide.kind in "fc" else inexact(x)
    chosen = {} if where is None else {"where": where}
    if center is NOT_GIVEN:
        center = mean(x, kept["axis"], keepdims=True, **chosen)
    deviation = x - asarray(center)
    if deviation.dtype.kind == "c":
        squares = f["square"](f["real"](deviation)) + f["square"](f["imag"](deviation))
        result = real_dtype(result)
    else:
        squares = f["square"](deviation)
    if (total := real_dtype(_total_dtype(x, dtype, out, wide))) != real_dtype(wide):
        squares, result = squares.astype(total), total
    count = _count(x, axes_of(kept["axis"], x.ndim), where, kept)
    if isinstance(count, int):
        freedom = builtins.max(count - ddof, 0)
        total = f["sum"](squares, **kept)
    else:
        freedom = f["maximum"](count - ddof, 0)
        total = sum(squares, **kept, **chosen)
    variance = _ratio(total, freedom)
    return _store(who, (f["sqrt"](variance) if who == "std" else variance).astype(result), out)


def _ratio(total, freedom):
    return total / (asarray(float(freedom)) if isinstance(freedom, (int, float)) else freedom).astype(total.dtype)


def var(
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
    """The variance along axes: the mean square deviation, over the number of elements less ddof."""
    return _spread("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def std(
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
    """The standard deviation along axes: the square root of the variance."""
    return _spread("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _running(who, a, axis, dtype, out, **how):
    x = asarray(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    x = x if x.ndim else x.reshape(1)
    axis = one_axis(axis, x.ndim)
    dtype = _sum_dtype(x, dtype, out)
    how |= {} if dtype is None or dtype.name == "bool" else {"dtype": dtype}
    return _store(who, cast(f[who](cast(x, dtype), axis=axis, **how), dtype), out)


def cumsum(a, axis=None, dtype=None, out=None):
    """Sums of the first elements along an axis; of all, flattened, for None."""
    return _running("cumulative_sum", a, axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    """Products of the first elements along an axis; of all, flattened, for None."""
    return _running("cumulative_prod", a, axis, dtype, out)


def _standard_running(who, x, axis, dtype, out, include_initial):
    x = asarray(x)
    if x.ndim == 0:
        x = x.reshape(1)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"For arrays which have more than one dimension ``axis`` argument is required: shape {x.shape}"
            )
        axis = 0
    return _running(who, x, axis, dtype, out, include_initial=bool(include_initial))


def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Sums of the first elements along an axis, from none of them on if include_initial."""
    return _standard_running("cumulative_sum", x, axis, dtype, out, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Products of the first elements along an axis, from none of them on if include_initial."""
    return _standard_running("cumulative_prod", x, axis, dtype, out, include_initial)


__all__ = public(globals())
