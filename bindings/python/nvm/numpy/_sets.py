"""Sets of values. Their sizes follow from values, so that they evaluate their arrays."""

from .. import _nvm, _order
from .._positions import positions
from ._joining import concatenate
from ._shapes import moveaxis
from ._sorting import argsort, lexsort, sort
from ._support import asarray, common_dtype, f, fault, one_axis, public


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
    """The different elements of an array, sorted. The array is evaluated.

    ar: an array of any shape.
    return_index: also where each occurs first.
    return_inverse: also for each element of ar its position among the different ones.
    return_counts: also how often each occurs.
    axis: None compares elements; along an axis slices are compared.
    equal_nan: does NaN equal NaN?
    sorted: of NumPy's signature; the result is sorted.
    Returns an array, or a tuple of it and what was asked for beside, in int64.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.unique([3, 1, 3, 2])
    array([1, 2, 3])
    >>> np.unique([3, 1, 3, 2], return_counts=True)
    (array([1, 2, 3]), array([1, 1, 2]))
    """
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
    starts = positions(fresh)[0]
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
    """The different elements of an array, where each occurs first, the one that each element is, and how often each
    occurs.

    x: an array of any shape, which is evaluated.
    Returns a named tuple: values, indices, inverse_indices, counts. NaN equals nothing.

    >>> import nvm.numpy as np
    >>> values, indices, inverse, counts = np.unique_all([3, 1, 3])
    >>> values, inverse
    (array([1, 3]), array([1, 0, 1]))
    """
    return _order.unique_all(x)


def unique_counts(x):
    """The different elements of an array, and how often each occurs.

    x: an array of any shape, which is evaluated.
    Returns a named tuple: values, counts. NaN equals nothing.

    >>> import nvm.numpy as np
    >>> np.unique_counts([3, 1, 3]).counts
    array([1, 2])
    """
    return _order.unique_counts(x)


def unique_inverse(x):
    """The different elements of an array, and for each element the one that it is.

    x: an array of any shape, which is evaluated.
    Returns a named tuple: values, and inverse_indices in the shape of x. NaN equals nothing.

    >>> import nvm.numpy as np
    >>> np.unique_inverse([3, 1, 3]).inverse_indices
    array([1, 0, 1])
    """
    return _order.unique_inverse(x)


def unique_values(x):
    """The different elements of an array.

    x: an array of any shape, which is evaluated.
    Returns an array of one dimension. NaN equals nothing.

    >>> import nvm.numpy as np
    >>> np.unique_values([3, 1, 3, 2])
    array([1, 2, 3])
    """
    return _order.unique_values(x)


def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """For each element of an array, is it among other elements?

    element: an array of any shape.
    test_elements: an array of any shape.
    assume_unique, kind: of NumPy's signature, which chooses an algorithm by them; kind is None, 'sort' or 'table'.
    invert: True asks whether it is not among them.
    Returns an array of bool in the shape of element.
    Raises ValueError for another kind, and for 'table' with other dtypes than bool and integers.

    >>> import nvm.numpy as np
    >>> np.isin([1, 2, 5], [2, 5, 7])
    array([False,  True,  True])
    """
    if kind not in (None, "sort", "table"):
        raise fault(ValueError, f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    x, tests = asarray(element), asarray(test_elements).reshape(-1)
    if kind == "table" and not (x.dtype.kind in "biu" and tests.dtype.kind in "biu"):
        raise fault(ValueError, "The 'table' method is only supported for boolean or integer arrays.")
    common = common_dtype(x, tests)
    return _order.isin(x.astype(common), tests.astype(common), invert=invert)


def _flat(*arrays):
    """The arrays in one dimension and their common dtype."""
    arrays = [asarray(a).reshape(-1) for a in arrays]
    common = common_dtype(*arrays)
    return [a.astype(common) for a in arrays]


def union1d(ar1, ar2):
    """The different elements that occur in either of two arrays, sorted.

    ar1, ar2: arrays of any shape, which are evaluated.
    Returns an array of one dimension in their common dtype.

    >>> import nvm.numpy as np
    >>> np.union1d([1, 2], [2, 3])
    array([1, 2, 3])
    """
    return unique(concatenate(_flat(ar1, ar2)))


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The different elements that occur in both of two arrays, sorted.

    ar1, ar2: arrays of any shape, which are evaluated.
    assume_unique: True says that no element occurs twice in an array.
    return_indices: also where each occurs first in ar1 and in ar2.
    Returns an array of one dimension in their common dtype, or a tuple of three.

    >>> import nvm.numpy as np
    >>> np.intersect1d([1, 2, 3], [3, 2, 7])
    array([2, 3])
    """
    ar1, ar2 = _flat(ar1, ar2)
    if assume_unique:
        (ar1, first1), (ar2, first2) = ((f["take"](a, argsort(a), axis=0), argsort(a)) for a in (ar1, ar2))
    else:
        (ar1, first1), (ar2, first2) = (unique(a, return_index=True) for a in (ar1, ar2))
    both = isin(ar1, ar2)
    common = ar1[both]
    if not return_indices:
        return common
    second = argsort(ar2)[:0] if not common.size else positions(isin(ar2, common))[0]
    return common, first1[both], f["take"](first2, second, axis=0)


def setdiff1d(ar1, ar2, assume_unique=False):
    """The different elements of one array that do not occur in another, sorted.

    ar1, ar2: arrays of any shape, which are evaluated.
    assume_unique: True says that no element occurs twice in an array; the elements of ar1 then keep their order.
    Returns an array of one dimension in the dtype of ar1.

    >>> import nvm.numpy as np
    >>> np.setdiff1d([1, 2, 3], [3, 7])
    array([1, 2])
    """
    ar1 = asarray(ar1).reshape(-1) if assume_unique else unique(ar1)
    ar2 = asarray(ar2) if assume_unique else unique(ar2)
    return ar1[isin(ar1, ar2, invert=True)]


def setxor1d(ar1, ar2, assume_unique=False):
    """The different elements that occur in one of two arrays alone, sorted.

    ar1, ar2: arrays of any shape, which are evaluated.
    assume_unique: True says that no element occurs twice in an array.
    Returns an array of one dimension in their common dtype.

    >>> import nvm.numpy as np
    >>> np.setxor1d([1, 2, 3], [3, 7])
    array([1, 2, 7])
    """
    ar1, ar2 = _flat(ar1, ar2) if assume_unique else _flat(unique(ar1), unique(ar2))
    both = sort(concatenate((ar1, ar2)))
    if not both.size:
        return both
    edge = f["ones"]((1,), dtype=_nvm.bool)
    differs = f["concat"]([edge, both[1:] != both[:-1], edge])
    return both[differs[1:] & differs[:-1]]


__all__ = public(globals())
