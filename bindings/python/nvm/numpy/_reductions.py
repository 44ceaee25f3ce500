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
    fault,
    given,
    inexact,
    one_axis,
    public,
    real_dtype,
    to_out,
    yes_or_no,
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
    kept = {"axis": _axis(axis, x.ndim), "keepdims": yes_or_no("keepdims", keepdims)}
    if initial is None and where is None:
        result = f[who](x, **kept, **how)
    else:
        result = _masked.masked(who, x, initial, where, **kept, **how)
    return _store(who, cast(result, dtype), out)


def sum(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The sum along axes.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    dtype: that of the sum; None is that of a, with integers and bools summed in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    initial: a number with which the reduction begins.
    where: a mask that broadcasts to a; elements where it is False are left out.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.sum([[1, 2], [3, 4]])
    array(10)
    >>> np.sum([[1, 2], [3, 4]], axis=1, keepdims=True)
    array([[3],
           [7]])
    """
    return _fold("sum", a, axis, dtype, out, keepdims, initial, where)


def prod(a, axis=None, dtype=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The product along axes.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    dtype: that of the product; None is that of a, with integers and bools multiplied in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    initial: a number with which the reduction begins.
    where: a mask that broadcasts to a; elements where it is False are left out.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.prod([[1, 2], [3, 4]], axis=0)
    array([3, 8])
    """
    return _fold("prod", a, axis, dtype, out, keepdims, initial, where)


def _none_selected(who, x, axis, initial):
    """Is there an axis of no elements to reduce over? That is an error without a first value."""
    axes = range(x.ndim) if axis is None else axis
    if initial is None and _any_empty(x, axes):
        raise fault(
            ValueError, f"zero-size array to reduction operation {who}imum which has no identity: shape {x.shape}"
        )


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
    axis, keepdims = _axis(axis, x.ndim), yes_or_no("keepdims", keepdims)
    initial, where = given(initial), _where(where, x)
    _none_selected(who, x, axis, initial)
    if where is not None and initial is None:
        raise fault(
            ValueError,
            f"reduction operation '{who}imum' does not have an identity, so to use a where mask one has to specify "
            f"'initial': shape {x.shape}",
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
    """The greatest element along axes; NaN if there is one.

    a: an array, or what asarray takes. Complex numbers are ordered by their real parts, then by their imaginary parts.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    initial: a number that the result is at least.
    where: a mask that broadcasts to a; elements where it is False are left out. It needs initial.
    Returns an array in the dtype of a.
    Raises ValueError for no elements without initial, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.max([[1, 7], [5, 2]], axis=0)
    array([5, 7])
    """
    return _extreme("max", a, axis, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The least element along axes; NaN if there is one.

    a: an array, or what asarray takes. Complex numbers are ordered by their real parts, then by their imaginary parts.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    initial: a number that the result is at most.
    where: a mask that broadcasts to a; elements where it is False are left out. It needs initial.
    Returns an array in the dtype of a.
    Raises ValueError for no elements without initial, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.min([[1, 7], [5, 2]], axis=0)
    array([1, 2])
    """
    return _extreme("min", a, axis, out, keepdims, initial, where)


def amax(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The greatest element along axes: max, by its other name.

    The arguments and errors are those of max.

    >>> import nvm.numpy as np
    >>> np.amax([1, 7, 5])
    array(7)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(a, axis=None, out=None, keepdims=NOT_GIVEN, initial=NOT_GIVEN, where=NOT_GIVEN):
    """The least element along axes: min, by its other name.

    The arguments and errors are those of min.

    >>> import nvm.numpy as np
    >>> np.amin([4, 1, 5])
    array(1)
    """
    return min(a, axis, out, keepdims, initial, where)


def ptp(a, axis=None, out=None, keepdims=NOT_GIVEN):
    """The greatest element less the least one, along axes.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    Returns an array in the dtype of a, in which the difference of integers may wrap around.
    Raises ValueError for no elements, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.ptp([[1, 7], [5, 2]], axis=1)
    array([6, 3])
    """
    return to_out("ptp", max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims), out)


def _test(who, a, axis, out, keepdims, where):
    x = asarray(a)
    kept = {"axis": _axis(axis, x.ndim), "keepdims": yes_or_no("keepdims", keepdims)}
    where = _where(where, x)
    x = x if x.dtype == _nvm.bool else x != 0
    return _store(who, f[who](x, **kept) if where is None else _masked.masked(who, x, None, where, **kept), out)


def all(a, axis=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """Are all elements along axes true, which is to say not 0?

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    where: a mask that broadcasts to a; elements where it is False are left out.
    Returns an array of bool; True of no elements.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.all([[True, False], [True, True]], axis=1)
    array([False,  True])
    """
    return _test("all", a, axis, out, keepdims, where)


def any(a, axis=None, out=None, keepdims=NOT_GIVEN, *, where=NOT_GIVEN):
    """Is an element along axes true, which is to say not 0?

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    where: a mask that broadcasts to a; elements where it is False are left out.
    Returns an array of bool; False of no elements.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.any([[0, 0], [0, 3]], axis=1)
    array([False,  True])
    """
    return _test("any", a, axis, out, keepdims, where)


def count_nonzero(a, axis=None, *, keepdims=False):
    """How many elements along axes are not 0.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    keepdims: True keeps the axes in the result, with extent 1.
    Returns an array of int64.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.count_nonzero([[0, 3], [4, 5]], axis=0)
    array([1, 2])
    """
    x = asarray(a)
    return f["count_nonzero"](x, axis=_axis(axis, x.ndim), keepdims=yes_or_no("keepdims", keepdims))


def _position(who, a, axis, out, keepdims):
    x, keepdims = asarray(a), yes_or_no("keepdims", keepdims)
    if not x.ndim:
        axis = None if _axis(axis, 0) in ((), None) else axis
    axis = None if axis is None else one_axis(axis, x.ndim)
    if not (x.size if axis is None else x.shape[axis] if x.ndim else 1):
        raise fault(ValueError, f"attempt to get {who} of an empty sequence: shape {x.shape}")
    if x.dtype.kind == "c":
        best = _complex_extreme(who[3:], x, None if axis is None else (axis,), True)
        same = (x == best) | f["isnan"](x) & f["isnan"](best)
        return to_out(who, f["argmax"](same, axis=axis, keepdims=keepdims), out)
    return to_out(who, f[who](x, axis=axis, keepdims=keepdims), out)


def argmax(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the greatest element is: the first of several, the first NaN if there is one.

    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    Returns positions along the axis, in int64.
    Raises ValueError for no elements, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.argmax([[1, 7], [5, 2]], axis=0)
    array([1, 0])
    """
    return _position("argmax", a, axis, out, keepdims)


def argmin(a, axis=None, out=None, *, keepdims=NOT_GIVEN):
    """Where the least element is: the first of several, the first NaN if there is one.

    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    Returns positions along the axis, in int64.
    Raises ValueError for no elements, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.argmin([[1, 7], [5, 2]], axis=0)
    array([0, 1])
    """
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
    """The mean along axes.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    dtype: that of the mean and its sum; None is that of a, float64 for integers and bools. float16 is summed in
        float32.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    keepdims: True keeps the axes in the result, with extent 1.
    where: a mask that broadcasts to a; elements where it is False are left out.
    Returns NaN where there are no elements.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.mean([[1, 2], [3, 4]], axis=0)
    array([2., 3.])
    """
    x = asarray(a)
    result, wide = _average_dtype(x, dtype)
    total = _total_dtype(x, dtype, out, wide)
    result, wide = (result, wide) if total == wide else (total, total)
    kept = {"axis": None if axis is None else axes_of(axis, x.ndim), "keepdims": yes_or_no("keepdims", keepdims)}
    where = _where(where, x)
    if where is None and wide.kind in "fc":
        return _store("mean", f["mean"](cast(x, wide), **kept).astype(result), out)
    total = sum(x, kept["axis"], wide, None, kept["keepdims"], NOT_GIVEN, True if where is None else where)
    count = _count(x, axes_of(kept["axis"], x.ndim), where, kept)
    return _store("mean", _divided(total, count).astype(result), out)


def _spread(who, a, axis, dtype, out, ddof, keepdims, where, center, correction):
    if correction is not NOT_GIVEN:
        if ddof != 0:
            raise fault(ValueError, "ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = asarray(a)
    result, wide = _average_dtype(x, dtype)
    kept = {"axis": None if axis is None else axes_of(axis, x.ndim), "keepdims": yes_or_no("keepdims", keepdims)}
    where = _where(where, x)
    if where is dtype is out is None and center is NOT_GIVEN and x.dtype in (_nvm.float32, _nvm.float64):
        return f[who](x, correction=ddof, **kept)
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
    """The variance along axes: the mean square of what elements differ from their mean.

    a: an array, or what asarray takes. Of complex numbers the squares are those of absolute values, and the result is
        real.
    axis: an axis, a tuple of them, or None for all.
    dtype: that in which it is computed; None is that of a, float64 for integers and bools.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    ddof, correction: two names of what is subtracted from the number of elements by which the sum is divided.
    keepdims: True keeps the axes in the result, with extent 1.
    where: a mask that broadcasts to a; elements where it is False are left out.
    mean: the mean, with the axes kept, if it is known.
    Raises ValueError if both ddof and correction are given, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.var([1.0, 3.0]), np.var([1.0, 3.0], ddof=1)
    (array(1.), array(2.))
    """
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
    """The standard deviation along axes: the square root of the variance.

    The arguments and errors are those of var.

    >>> import nvm.numpy as np
    >>> np.std([1.0, 3.0], ddof=1)
    array(1.41421356)
    """
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
    """Running sums along an axis.

    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    dtype: that of the sums; None is that of a, with integers and bools summed in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array in the shape of a: element i is the sum of the elements 0 to i.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.cumsum([[1, 2], [3, 4]])
    array([ 1,  3,  6, 10])
    >>> np.cumsum([[1, 2], [3, 4]], axis=0)
    array([[1, 2],
           [4, 6]])
    """
    return _running("cumulative_sum", a, axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    """Running products along an axis.

    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    dtype: that of the products; None is that of a, with integers and bools multiplied in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array in the shape of a: element i is the product of the elements 0 to i.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.cumprod([1, 2, 3, 4])
    array([ 1,  2,  6, 24])
    """
    return _running("cumulative_prod", a, axis, dtype, out)


def _standard_running(who, x, axis, dtype, out, include_initial):
    x = asarray(x)
    if x.ndim == 0:
        x = x.reshape(1)
    if axis is None:
        if x.ndim > 1:
            raise fault(
                ValueError,
                f"For arrays which have more than one dimension ``axis`` argument is required: shape {x.shape}",
            )
        axis = 0
    return _running(who, x, axis, dtype, out, include_initial=bool(include_initial))


def cumulative_sum(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Running sums along an axis, by the array API's name and arguments.

    x: an array, or what asarray takes.
    axis: an axis, which may be left out where there is only one.
    dtype: that of the sums; None is that of x, with integers and bools summed in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    include_initial: True begins with 0, the sum of no elements, so that the axis has one element more.
    Raises ValueError if the axis is left out of several, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.cumulative_sum([1, 2, 3], include_initial=True)
    array([0, 1, 3, 6])
    """
    return _standard_running("cumulative_sum", x, axis, dtype, out, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
    """Running products along an axis, by the array API's name and arguments.

    x: an array, or what asarray takes.
    axis: an axis, which may be left out where there is only one.
    dtype: that of the products; None is that of x, with integers and bools multiplied in 64 bits.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    include_initial: True begins with 1, the product of no elements, so that the axis has one element more.
    Raises ValueError if the axis is left out of several, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.cumulative_prod([1, 2, 3], include_initial=True)
    array([1, 1, 2, 6])
    """
    return _standard_running("cumulative_prod", x, axis, dtype, out, include_initial)


__all__ = public(globals())
