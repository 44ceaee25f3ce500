"""Sorting, searching and counting."""

from .. import _nvm, _order
from ._support import NOT_GIVEN, asarray, common_dtype, f, one_axis, public


def where(condition, x=None, y=None, /):
    """Of two arrays, elements of the first where the condition holds, else of the second; without arrays, the positions
    where the condition holds."""
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    condition = asarray(condition)
    if x is None:
        return nonzero(condition)
    return f["where"](condition if condition.dtype == _nvm.bool else condition != 0, x, y)


def nonzero(a):
    """Positions of the elements that are not zero, an array per dimension: a tuple. Needs the values."""
    a = asarray(a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    return tuple(_nvm.positions(a if a.dtype == _nvm.bool else a != 0))


def flatnonzero(a):
    """Positions of the elements that are not zero, in the flattened array."""
    return nonzero(asarray(a).reshape(-1))[0]


def argwhere(a):
    """Positions of the elements that are not zero, a row for each."""
    a = asarray(a)
    if a.ndim == 0:
        return f["zeros"]((int(bool(a)), 0), dtype=_nvm.int64)
    return f["stack"](nonzero(a), axis=1)


def extract(condition, arr):
    """The elements where a condition holds, of both arrays flattened."""
    return f["take"](asarray(arr).reshape(-1), flatnonzero(condition), axis=0)


_KINDS = {None, "quicksort", "mergesort", "heapsort", "stable", "quick", "merge", "heap", "q", "m", "h", "s"}


def _check_kind(kind, order, stable, descending):
    if kind is not None and not isinstance(kind, str):
        raise TypeError(f"sort kind must be a string, not {type(kind).__name__}")
    if kind not in _KINDS:
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind is not None and (stable is not None or descending is not NOT_GIVEN):
        raise ValueError("`kind` and the parameters `stable` and `descending` can't be provided at the same time.")


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
    if descending and a.dtype.kind == "f":
        return _lexicographic([(a, True), (f["isnan"](a).astype(_nvm.uint8), False)], axis)
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
    """Positions that sort along an axis (None: the flattened array), equal elements in their order; NaN last."""
    _check_kind(kind, order, stable, descending)
    a = asarray(a)
    a, axis = _flattened(a if a.ndim or axis is None else a.reshape(1), axis)
    return _positions(a, axis, descending is not NOT_GIVEN and bool(descending))


def sort(a, axis=-1, kind=None, order=None, *, stable=None, descending=NOT_GIVEN):
    """The elements sorted along an axis (None: the flattened array); NaN last."""
    _check_kind(kind, order, stable, descending)
    a, axis = _flattened(a, axis)
    descending = descending is not NOT_GIVEN and bool(descending)
    if a.dtype.kind == "c" or descending and a.dtype.kind == "f":
        return f["take_along_axis"](a, _positions(a, axis, descending), axis=axis)
    return f["sort"](a, axis=axis, descending=descending)


def sort_complex(a):
    """The elements sorted along the last axis, as complex numbers."""
    a = sort(a)
    narrow = a.dtype.name in ("int8", "uint8", "int16", "uint16", "complex64")
    return a.astype(_nvm.complex64 if narrow else _nvm.complex128)


def lexsort(keys, axis=-1):
    """Positions that sort by several keys, the last one first."""
    keys = [asarray(k) for k in keys]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(k.shape != keys[0].shape for k in keys):
        raise ValueError(f"all keys need to be the same shape, not {[k.shape for k in keys]}")
    if keys[0].ndim == 0:
        return f["zeros"]((), dtype=_nvm.int64)
    return _lexicographic([(key, False) for key in keys], one_axis(axis, keys[0].ndim))


def _check_kth(kth, n):
    kth = asarray(kth)
    if kth.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if kth.ndim > 1:
        raise ValueError("object too deep for desired array")
    for k in kth.reshape(-1).tolist() if n else ():
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


def partition(a, kth, axis=-1, kind="introselect", order=None):
    """The elements sorted along an axis, which puts the kth where it belongs."""
    a, axis = _flattened(a, axis)
    _check_partition(kind)
    _check_kth(kth, a.shape[axis])
    return sort(a, axis)


def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """Positions that sort along an axis, which puts the kth where it belongs."""
    a, axis = _flattened(a, axis)
    _check_partition(kind)
    _check_kth(kth, a.shape[axis])
    return argsort(a, axis)


def _check_partition(kind):
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")


def searchsorted(a, v, side="left", sorter=None):
    """Where values belong in a sorted array: before equal elements ('left') or behind them ('right')."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a, v = asarray(a), asarray(v)
    if a.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: shape {a.shape}")
    if sorter is not None:
        sorter = asarray(sorter)
        if sorter.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if sorter.shape != a.shape:
            raise ValueError(f"sorter.size must equal a.size: {sorter.shape}, {a.shape}")
    common = common_dtype(a, v)
    return _order.searchsorted(a.astype(common), v.astype(common), side=side, sorter=sorter)


def digitize(x, bins, right=False):
    """Which bin each element falls into; the edges increase or decrease."""
    x, bins = asarray(x), asarray(bins)
    if x.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if bins.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: bins of shape {bins.shape}")
    if bool(f["all"](bins[1:] >= bins[:-1])):
        return searchsorted(bins, x, "left" if right else "right")
    if not bool(f["all"](bins[1:] <= bins[:-1])):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.size - searchsorted(f["flip"](bins), x, "left" if right else "right")


__all__ = public(globals())
