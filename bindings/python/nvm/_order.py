"""Sorting in place, searching and sets. The size of a set follows from the values of its array, so that sets are errors
inside nvm.jit; searches are lazy."""

from . import _nvm
from ._creation import axis_of
from ._named import Named
from ._positions import positions

_f = _nvm.functions


class unique_all_result(Named):
    _fields = ("values", "indices", "inverse_indices", "counts")


class unique_counts_result(Named):
    _fields = ("values", "counts")


class unique_inverse_result(Named):
    _fields = ("values", "inverse_indices")


def _order(x):
    """Positions that bring equal elements together: of complex numbers by real part, then imaginary part."""
    if x.dtype.kind != "c":
        return _f["argsort"](x)
    by_imaginary = _f["argsort"](_f["imag"](x))
    return _f["take"](by_imaginary, _f["argsort"](_f["real"](x)[by_imaginary]), axis=0)


def _ordered(flat):
    """The elements with equal ones side by side, in the order in which they came."""
    return _f["take"](flat, _order(flat), axis=0) if flat.dtype.kind == "c" else _f["sort"](flat)


def _fresh(ordered):
    """Which elements differ from the one before."""
    n = ordered.shape[0]
    return _f["concat"]([_f["ones"]((min(n, 1),), dtype=_nvm.bool), ordered[1:] != ordered[:-1]]).eval()


def _runs(fresh):
    """Where equal elements begin, and how many there are."""
    starts = positions(fresh)[0]
    return starts, _f["concat"]([starts[1:], _nvm.asarray([fresh.shape[0]])]) - starts if fresh.shape[0] else starts


def unique_all(x, /):
    """Values that occur, where each occurs first, which one each element is, and how often each occurs. Each NaN is a
    value of its own.

    >>> import nvm
    >>> nvm.unique_all(nvm.asarray([3, 1, 3])).values
    array([1, 3])
    """
    x = _nvm.asarray(x)
    flat = x.reshape(-1)
    n = flat.shape[0]
    order = _order(flat)
    ordered = _f["take"](flat, order, axis=0)
    fresh = _fresh(ordered)
    starts, counts = _runs(fresh)
    which = _f["cumulative_sum"](fresh, dtype=_nvm.int64) - 1 if n else starts
    inverse = (_f["take"](which, _f["last_index"](order, size=n)) if n else which).reshape(x.shape)
    return unique_all_result(_f["take"](ordered, starts, axis=0), _f["take"](order, starts, axis=0), inverse, counts)


def unique_counts(x, /):
    """Values that occur, and how often.

    >>> import nvm
    >>> nvm.unique_counts(nvm.asarray([3, 1, 3])).counts
    array([1, 2])
    """
    ordered = _ordered(_nvm.asarray(x).reshape(-1))
    starts, counts = _runs(_fresh(ordered))
    return unique_counts_result(_f["take"](ordered, starts, axis=0), counts)


def unique_inverse(x, /):
    """Values that occur, and which one each element is.

    >>> import nvm
    >>> nvm.unique_inverse(nvm.asarray([3, 1, 3])).inverse_indices
    array([1, 0, 1])
    """
    u = unique_all(x)
    return unique_inverse_result(u.values, u.inverse_indices)


def unique_values(x, /):
    """Values that occur, sorted.

    >>> import nvm
    >>> nvm.unique_values(nvm.asarray([3, 1, 3]))
    array([1, 3])
    """
    ordered = _ordered(_nvm.asarray(x).reshape(-1))
    return ordered[_fresh(ordered)]


def repeat(x, repeats, /, axis=None):
    """Each element repeated: the same number of times, or as often as an array of counts says (whose values are
    needed).

    >>> import nvm
    >>> nvm.repeat(nvm.asarray([1, 2]), 2)
    array([1, 1, 2, 2])
    """
    if isinstance(repeats, int):
        return _f["repeat"](x, repeats, axis=axis)
    repeats = _nvm.asarray(repeats)
    if repeats.size and repeats.dtype.kind not in "biu":
        raise TypeError(f"[repeat] counts are integers, not {repeats.dtype.name}")
    if repeats.size == 1:
        return _f["repeat"](x, int(repeats.reshape(())), axis=axis)
    x = _nvm.asarray(x).reshape(-1) if axis is None else _nvm.asarray(x)
    axis = axis_of("repeat", axis or 0, x.ndim)
    if repeats.shape != (x.shape[axis],):
        raise ValueError(f"[repeat] {repeats.shape} counts for an axis of extent {x.shape[axis]}")
    if repeats.dtype.kind == "i" and _f["any"](repeats < 0):
        raise ValueError("[repeat] repeats must be 0 or more")
    ends = _f["cumulative_sum"](repeats, dtype=_nvm.int64) if repeats.size else repeats.astype(_nvm.int64)
    total = int(_f["sum"](repeats))
    return _f["take"](x, searchsorted(ends, _f["arange"](total), side="right"), axis=axis)


def isin(x1, x2, /, *, invert=False):
    """For each element of x1, is it equal to some element of x2?

    >>> import nvm
    >>> nvm.isin(nvm.asarray([1, 2, 3]), nvm.asarray([2, 5]))
    array([False,  True, False])
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2).reshape(-1)
    if x2.size <= 16 or "c" in (x1.dtype.kind, x2.dtype.kind):  # a few comparisons, which fuse
        found = _f["any"](x1[..., None] == x2, axis=-1)
    else:
        x2 = _f["sort"](x2)
        at = _f["minimum"](searchsorted(x2, x1), x2.size - 1).reshape(-1)
        found = _f["take"](x2, at, axis=0).reshape(x1.shape) == x1
    return ~found if invert else found


def searchsorted(x1, x2, /, side="left", sorter=None):
    """Where the elements of x2 belong in the sorted x1: before equal ones ('left') or behind them ('right'); NaN comes
    last.

    >>> import nvm
    >>> nvm.searchsorted(nvm.asarray([1, 3, 5]), nvm.asarray([3, 4]))
    array([1, 2])
    """
    if side not in ("left", "right"):
        raise ValueError("[searchsorted] side is 'left' or 'right'")
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if sorter is not None:
        x1 = _f["take"](x1, sorter, axis=0)
    return _f["_searchsorted"](x1, x2, right=side == "right")


# ---- methods, as NumPy's
def _sort_in_place(x, /, axis=-1, *, descending=False, stable=True):
    """Sorts the array itself along an axis."""
    x[...] = _f["sort"](x, axis=axis, descending=descending)


_nvm.Array.sort = _sort_in_place
_nvm.Array.repeat, _nvm.Array.searchsorted = repeat, searchsorted
