"""Sorting, searching and counting."""

from .. import _nvm, _order
from .._positions import positions
from ._support import NOT_GIVEN, asarray, common_dtype, f, fault, one_axis, public


def where(condition, x=None, y=None, /):
    """Elements of two arrays, chosen by a condition; or with the condition alone, the positions where it holds.

    condition: an array of bool, or numbers, of which 0 is False.
    x, y: arrays or numbers that broadcast with the condition: where it holds the result has elements of x, else of y.
    Returns an array in their common dtype. Without x and y: what nonzero(condition) returns.
    Raises ValueError if one of x and y is missing, or if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.where([True, False], [1, 2], 0)
    array([1, 0])
    >>> np.where([0, 5, 6])
    (array([1, 2]),)
    """
    if (x is None) != (y is None):
        raise fault(ValueError, "either both or neither of x and y should be given")
    condition = asarray(condition)
    if x is None:
        return nonzero(condition)
    return f["where"](condition if condition.dtype == _nvm.bool else condition != 0, x, y)


def nonzero(a):
    """The positions of the elements that are not 0.

    a: an array of one or more dimensions, which is evaluated.
    Returns a tuple of int64 arrays, one for each dimension.
    Raises ValueError for a number.

    >>> import nvm.numpy as np
    >>> np.nonzero([[0, 1], [2, 0]])
    (array([0, 1]), array([1, 0]))
    """
    a = asarray(a)
    if a.ndim == 0:
        raise fault(
            ValueError, "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    return positions(a if a.dtype == _nvm.bool else a != 0)


def flatnonzero(a):
    """The positions in the flattened array of the elements that are not 0.

    a: an array of any shape, which is evaluated.
    Returns an array of int64.

    >>> import nvm.numpy as np
    >>> np.flatnonzero([[0, 1], [2, 0]])
    array([1, 2])
    """
    return nonzero(asarray(a).reshape(-1))[0]


def argwhere(a):
    """The positions of the elements that are not 0, in rows.

    a: an array of any shape, which is evaluated.
    Returns an array (number of them, a.ndim) of int64.

    >>> import nvm.numpy as np
    >>> np.argwhere([[0, 1], [2, 0]])
    array([[0, 1],
           [1, 0]])
    """
    a = asarray(a)
    if a.ndim == 0:
        return f["zeros"]((int(bool(a)), 0), dtype=_nvm.int64)
    return f["stack"](nonzero(a), axis=1)


def extract(condition, arr):
    """The elements of an array where a condition holds.

    condition: an array of as many elements, which is evaluated; 0 is False.
    arr: an array of any shape.
    Returns an array of one dimension in the dtype of arr.

    >>> import nvm.numpy as np
    >>> np.extract([True, False, True], [5, 6, 7])
    array([5, 7])
    """
    return f["take"](asarray(arr).reshape(-1), flatnonzero(condition), axis=0)


_KINDS = {None, "quicksort", "mergesort", "heapsort", "stable", "quick", "merge", "heap", "q", "m", "h", "s"}


def _check_kind(kind, order, stable, descending):
    if kind is not None and not isinstance(kind, str):
        raise fault(TypeError, f"sort kind must be a string, not {type(kind).__name__}")
    if kind not in _KINDS:
        raise fault(ValueError, f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if order is not None:
        raise fault(ValueError, "Cannot specify order when the array has no fields.")
    if kind is not None and (stable is not None or descending is not NOT_GIVEN):
        raise fault(
            ValueError, "`kind` and the parameters `stable` and `descending` can't be provided at the same time."
        )


def _flattened(a, axis):
    """(the array, the axis): flattened for an axis of None."""
    a = asarray(a)
    if axis is None:
        return a.reshape(-1), 0
    return a, one_axis(axis, a.ndim)


def _positions(a, axis, descending):
    """Positions that sort along an axis, equal elements in their order: complex numbers by real part, then imaginary
    part; those with NaN last in either direction, as NumPy has them."""
    if a.dtype.kind == "c":
        real, imaginary = f["real"](a), f["imag"](a)
        undefined = f["isnan"](real).astype(_nvm.int64) * 2 + f["isnan"](imaginary).astype(_nvm.int64)
        return _lexicographic([(imaginary, descending), (real, descending), (undefined, False)], axis)
    return f["argsort"](a, axis=axis, descending=descending)


def _lexicographic(keys, axis):
    """Positions that sort by (key, is it descending?), the last one first."""
    order = None
    for key, descending in keys:
        sorted_key = key if order is None else f["take_along_axis"](key, order, axis=axis)
        positions = f["argsort"](sorted_key, axis=axis, descending=descending)
        order = positions if order is None else f["take_along_axis"](order, positions, axis=axis)
    return order


def argsort(a, axis=-1, kind=None, order=None, *, stable=None, descending=NOT_GIVEN):
    """The positions that sort an array along an axis; equal elements keep their order, and NaN comes last.

    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    kind, stable: of NumPy's signature; the sort is stable.
    descending: True puts the greatest element first.
    order: None, since there are no fields.
    Returns an array of int64 in the shape of a.
    Raises ValueError for an unknown kind, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.argsort([3, 1, 2])
    array([1, 2, 0])
    """
    _check_kind(kind, order, stable, descending)
    a = asarray(a)
    a, axis = _flattened(a if a.ndim or axis is None else a.reshape(1), axis)
    return _positions(a, axis, descending is not NOT_GIVEN and bool(descending))


def sort(a, axis=-1, kind=None, order=None, *, stable=None, descending=NOT_GIVEN):
    """An array sorted along an axis; NaN comes last.

    a: an array, or what asarray takes. Complex numbers are ordered by their real parts, then by their imaginary parts.
    axis: an axis, or None for the flattened array.
    kind, stable: of NumPy's signature; the sort is stable.
    descending: True puts the greatest element first.
    order: None, since there are no fields.
    Returns a new array in the dtype of a.
    Raises ValueError for an unknown kind, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.sort([[3, 1], [2, 4]])
    array([[1, 3],
           [2, 4]])
    >>> np.sort([[3, 1], [2, 4]], axis=None)
    array([1, 2, 3, 4])
    """
    _check_kind(kind, order, stable, descending)
    a, axis = _flattened(a, axis)
    descending = descending is not NOT_GIVEN and bool(descending)
    if a.dtype.kind == "c":
        return f["take_along_axis"](a, _positions(a, axis, descending), axis=axis)
    return f["sort"](a, axis=axis, descending=descending)


def sort_complex(a):
    """An array sorted along its last axis, as complex numbers.

    a: an array of one or more dimensions.
    Returns an array of complex128; of complex64 for complex64 and for integers of 8 and 16 bits.

    >>> import nvm.numpy as np
    >>> np.sort_complex([3, 1 - 1j, 1 - 2j])
    array([1.-2.j, 1.-1.j, 3.+0.j])
    """
    a = sort(a)
    narrow = a.dtype.name in ("int8", "uint8", "int16", "uint16", "complex64")
    return a.astype(_nvm.complex64 if narrow else _nvm.complex128)


def lexsort(keys, axis=-1):
    """The positions that sort by several keys: by the last one, equal elements by the one before it, and so on.

    keys: a sequence of arrays of one shape, or an array whose rows are the keys.
    axis: the axis along which they are sorted.
    Returns an array of int64 in the shape of a key.
    Raises TypeError for no keys, ValueError for different shapes, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.lexsort(([2, 1, 3], [0, 0, -1]))
    array([2, 1, 0])
    """
    keys = [asarray(k) for k in keys]
    if not keys:
        raise fault(TypeError, "need sequence of keys with len > 0 in lexsort")
    if any(k.shape != keys[0].shape for k in keys):
        raise fault(ValueError, f"all keys need to be the same shape, not {[k.shape for k in keys]}")
    if keys[0].ndim == 0:
        return f["zeros"]((), dtype=_nvm.int64)
    return _lexicographic([(key, False) for key in keys], one_axis(axis, keys[0].ndim))


def _check_kth(kth, n):
    kth = asarray(kth)
    if kth.dtype.kind not in "iu":
        raise fault(TypeError, "Partition index must be integer")
    if kth.ndim > 1:
        raise fault(ValueError, "object too deep for desired array")
    for k in kth.reshape(-1).tolist() if n else ():
        if not -n <= k < n:
            raise fault(ValueError, f"kth(={k}) out of bounds ({n})")


def partition(a, kth, axis=-1, kind="introselect", order=None):
    """An array in which the kth element along an axis is where sorting puts it, with none greater before it.

    a: an array, or what asarray takes.
    kth: a position, or an array of positions.
    axis: an axis, or None for the flattened array.
    kind, order: of NumPy's signature.
    Returns a new array, which is sorted altogether.
    Raises ValueError for a position outside the axis, TypeError for one that is no integer, and AxisError where there
        is no such axis.

    >>> import nvm.numpy as np
    >>> np.partition([3, 1, 2], 1)[1]
    array(2)
    """
    a, axis = _flattened(a, axis)
    _check_partition(kind)
    _check_kth(kth, a.shape[axis])
    return sort(a, axis)


def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """The positions that put the kth element along an axis where sorting puts it, with none greater before it.

    a: an array, or what asarray takes.
    kth: a position, or an array of positions.
    axis: an axis, or None for the flattened array.
    kind, order: of NumPy's signature.
    Returns an array of int64, which sorts altogether.
    Raises ValueError for a position outside the axis, TypeError for one that is no integer, and AxisError where there
        is no such axis.

    >>> import nvm.numpy as np
    >>> np.argpartition([3, 1, 2], 1)[1]
    array(2)
    """
    a, axis = _flattened(a, axis)
    _check_partition(kind)
    _check_kth(kth, a.shape[axis])
    return argsort(a, axis)


def _check_partition(kind):
    if kind != "introselect":
        raise fault(ValueError, f"select kind must be 'introselect' (got {kind!r})")


def searchsorted(a, v, side="left", sorter=None):
    """Where values belong in a sorted array.

    a: a sorted array of one dimension; NaN is last.
    v: the values, of any shape.
    side: 'left' puts a value before elements that equal it, 'right' behind them.
    sorter: positions that sort a, if it is not sorted.
    Returns positions in int64 in the shape of v.
    Raises ValueError for another side, or an array of more dimensions; TypeError for a sorter that has no integers.

    >>> import nvm.numpy as np
    >>> np.searchsorted([1, 3, 5], [0, 3, 6])
    array([0, 1, 3])
    >>> np.searchsorted([1, 3, 5], 3, side="right")
    array(2)
    """
    if side not in ("left", "right"):
        raise fault(ValueError, f"search side must be 'left' or 'right' (got {side!r})")
    a, v = asarray(a), asarray(v)
    if a.ndim != 1:
        raise fault(ValueError, f"object of too small depth for desired array: shape {a.shape}")
    if sorter is not None:
        sorter = asarray(sorter)
        if sorter.dtype.kind not in "iu":
            raise fault(TypeError, "sorter must only contain integers")
        if sorter.shape != a.shape:
            raise fault(ValueError, f"sorter.size must equal a.size: {sorter.shape}, {a.shape}")
    common = common_dtype(a, v)
    return _order.searchsorted(a.astype(common), v.astype(common), side=side, sorter=sorter)


def digitize(x, bins, right=False):
    """The number of the bin into which each element falls.

    x: an array of real numbers.
    bins: edges that increase or decrease, in one dimension. They are evaluated.
    right: does a bin have its right edge, rather than its left one?
    Returns an array of int64 in the shape of x: 0 before the first edge, len(bins) behind the last.
    Raises ValueError for edges that do neither, TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.digitize([0.5, 1.0, 2.5], [0, 1, 2])
    array([1, 2, 3])
    """
    x, bins = asarray(x), asarray(bins)
    if x.dtype.kind == "c":
        raise fault(TypeError, "x may not be complex")
    if bins.ndim != 1:
        raise fault(ValueError, f"object of too small depth for desired array: bins of shape {bins.shape}")
    if bool(f["all"](bins[1:] >= bins[:-1])):
        return searchsorted(bins, x, "left" if right else "right")
    if not bool(f["all"](bins[1:] <= bins[:-1])):
        raise fault(ValueError, "bins must be monotonically increasing or decreasing")
    return bins.size - searchsorted(f["flip"](bins), x, "left" if right else "right")


__all__ = public(globals())
