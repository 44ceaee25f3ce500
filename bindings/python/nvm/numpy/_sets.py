"""Sets of values. Their sizes follow from values, so that they evaluate their arrays."""

from .. import _nvm, _order
from ._joining import concatenate
from ._shapes import moveaxis
from ._sorting import argsort, lexsort, searchsorted, sort
from ._support import asarray, common_dtype, f, one_axis, public


def _sorted_rows(ar, axis):
    """(rows along the axis as one matrix, positions that sort them)."""
    rows = moveaxis(ar, axis, 0).reshape(ar.shape[axis], -1) if ar.size else moveaxis(ar, axis, 0)
    rows = rows.reshape(rows.shape[0], max(rows.size // max(rows.shape[0], 1), 0))
    keys = [rows[:, i] for i in range(rows.shape[1])][::-1]
    return rows, lexsort(keys) if keys else f["arange"](rows.shape[0])


def _first_of_equal(ordered, equal_nan):
    """Where a value differs from the one before it, in sorted values or sorted rows."""
    later, earlier = ordered[1:], ordered[:-1]
    differs = later != earlier
    if equal_nan and ordered.dtype.kind in "fc":
        differs = differs & ~(f["isnan"](later) & f["isnan"](earlier))
    if differs.ndim > 1:
        differs = f["any"](differs, axis=1)
    return f["concat"]([f["ones"]((min(ordered.shape[0], 1),), dtype=_nvm.bool), differs]).eval()


def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    """The values that occur, or slices along an axis, sorted; and where each occurs first, which one each element is,
    how often each occurs."""
    ar = asarray(ar)
    if axis is None:
        values = ar.reshape(-1)
        order = argsort(values)
    else:
        axis = one_axis(axis, ar.ndim)
        values, order = _sorted_rows(ar, axis)
    n = values.shape[0]
    ordered = f["take"](values, order, axis=0)
    fresh = _first_of_equal(ordered, equal_nan and axis is None)
    starts = _nvm.positions(fresh)[0]
    result = f["take"](ordered, starts, axis=0)
    if axis is not None:
        shape = ar.shape[:axis] + ar.shape[axis + 1 :]
        result = moveaxis(result.reshape((starts.size, *shape)), 0, axis)
    parts = [result]
    if return_index:
        parts.append(f["take"](order, starts, axis=0))
    if return_inverse:
        which = f["cumulative_sum"](fresh, dtype=_nvm.int64) - 1
        inverse = f["take"](which, f["last_index"](order, size=n), axis=0) if n else which
        parts.append(inverse.reshape(ar.shape) if axis is None else inverse)
    if return_counts:
        parts.append(f["concat"]([starts[1:], asarray([n])]) - starts if n else starts)
    return tuple(parts) if len(parts) > 1 else result


def unique_all(x):
    """The values that occur, where each occurs first, which one each element is, how often each occurs."""
    return _order.unique_all(x)


def unique_counts(x):
    """The values that occur, and how often."""
    return _order.unique_counts(x)


def unique_inverse(x):
    """The values that occur, and which one each element is."""
    return _order.unique_inverse(x)


def unique_values(x):
    """The values that occur."""
    return _order.unique_values(x)


def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """For each element, is it one of the test elements?"""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    x, tests = asarray(element), asarray(test_elements).reshape(-1)
    if kind == "table" and not (x.dtype.kind in "biu" and tests.dtype.kind in "biu"):
        raise ValueError("The 'table' method is only supported for boolean or integer arrays.")
    if tests.size <= 16 or "c" in (x.dtype.kind, tests.dtype.kind):  # a few comparisons, which fuse
        return _order.isin(x, tests, invert=invert)
    tests = sort(tests)
    at = f["minimum"](searchsorted(tests, x.reshape(-1)), tests.size - 1)
    found = (f["take"](tests, at, axis=0) == x.reshape(-1)).reshape(x.shape)
    return ~found if invert else found


def _flat(*arrays):
    """The arrays in one dimension and their common dtype."""
    arrays = [asarray(a).reshape(-1) for a in arrays]
    common = common_dtype(*arrays)
    return [a.astype(common) for a in arrays]


def union1d(ar1, ar2):
    """The values that occur in either array, sorted."""
    return unique(concatenate(_flat(ar1, ar2)))


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The values that occur in both arrays, sorted; and where each occurs first in either."""
    ar1, ar2 = _flat(ar1, ar2)
    if assume_unique:
        (ar1, first1), (ar2, first2) = ((f["take"](a, argsort(a), axis=0), argsort(a)) for a in (ar1, ar2))
    else:
        (ar1, first1), (ar2, first2) = (unique(a, return_index=True) for a in (ar1, ar2))
    both = isin(ar1, ar2)
    common = ar1[both]
    if not return_indices:
        return common
    second = argsort(ar2)[:0] if not common.size else _nvm.positions(isin(ar2, common))[0]
    return common, first1[both], f["take"](first2, second, axis=0)


def setdiff1d(ar1, ar2, assume_unique=False):
    """The values of the first array that do not occur in the second, sorted."""
    ar1 = asarray(ar1).reshape(-1) if assume_unique else unique(ar1)
    ar2 = asarray(ar2) if assume_unique else unique(ar2)
    return ar1[isin(ar1, ar2, invert=True)]


def setxor1d(ar1, ar2, assume_unique=False):
    """The values that occur in one array alone, sorted."""
    ar1, ar2 = _flat(ar1, ar2) if assume_unique else _flat(unique(ar1), unique(ar2))
    both = sort(concatenate((ar1, ar2)))
    if not both.size:
        return both
    edge = f["ones"]((1,), dtype=_nvm.bool)
    differs = f["concat"]([edge, both[1:] != both[:-1], edge])
    return both[differs[1:] & differs[:-1]]


__all__ = public(globals())
