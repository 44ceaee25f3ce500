"""Arrays joined, and arrays cut into pieces."""

import operator

from ._shapes import atleast_1d, atleast_2d, atleast_3d, flip
from ._support import Array, asarray, axes_of, check_casts, dtype_or_none, f, fault, one_axis, public, to_out


def _joined(who, arrays, axis, out, dtype, casting):
    if out is not None and dtype is not None:
        raise fault(TypeError, f"{who}() only takes `out` or `dtype` as an argument, but both were provided.")
    target = out.dtype if isinstance(out, Array) else dtype_or_none(dtype)
    if target is not None:
        for a in arrays:
            check_casts(who, a.dtype, target, casting)
        arrays = [a.astype(target) for a in arrays]
    return to_out(who, f["concat"](arrays, axis=axis), out, casting)


def _items(who, arrays):
    if not isinstance(arrays, Array) and not hasattr(arrays, "__getitem__"):
        raise TypeError(f"[{who}] takes a sequence of arrays, not {type(arrays).__name__}")
    arrays = [asarray(a) for a in arrays]
    if not arrays:
        raise ValueError(f"[{who}] need at least one array to {who}")
    return arrays


def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays one behind the other along an axis.

    arrays: a sequence of arrays whose extents are equal, but for those of the axis.
    axis: the axis; None flattens the arrays first.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    dtype, casting: the dtype of the result, and the rule under which arrays are cast to it; None: their common dtype.
    Raises ValueError for no arrays, arrays of no dimensions and extents that differ, AxisError where there is no such
        axis.

    >>> import nvm.numpy as np
    >>> np.concatenate([[1, 2], [3.5]])
    array([1. , 2. , 3.5])
    >>> np.concatenate([[[1, 2]], [[3, 4]]], axis=1)
    array([[1, 2, 3, 4]])
    """
    arrays = _items("concatenate", arrays)
    if axis is None:
        arrays, axis = [a.reshape(-1) for a in arrays], 0
    first = arrays[0].shape
    if not first:
        raise ValueError("[concatenate] zero-dimensional arrays cannot be concatenated")
    axis = one_axis(axis, len(first))
    for a in arrays:
        if a.ndim != len(first) or a.shape[:axis] + a.shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ValueError(f"[concatenate] shapes {first} and {a.shape} differ outside axis {axis}")
    return _joined("concatenate", arrays, axis, out, dtype, casting)


concat = concatenate


def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays of one shape along a new axis.

    arrays: a sequence of arrays of one shape.
    axis: where the new axis stands in the result.
    out, dtype, casting: those of concatenate.
    Raises ValueError for no arrays and shapes that differ, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    arrays = _items("stack", arrays)
    if any(a.shape != arrays[0].shape for a in arrays):
        raise ValueError(f"[stack] all input arrays must have the same shape: {[a.shape for a in arrays]}")
    axis = one_axis(axis, arrays[0].ndim + 1)
    arrays = [f["expand_dims"](a, axis=axis) for a in arrays]
    return _joined("stack", arrays, axis, out, dtype, casting)


def vstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays one below the other: along the first axis.

    tup: a sequence of arrays whose other extents are equal; one of shape (n,) is a row.
    dtype, casting: those of concatenate.
    Raises ValueError for no arrays and extents that differ.

    >>> import nvm.numpy as np
    >>> np.vstack([[1, 2], [[3, 4], [5, 6]]])
    array([[1, 2],
           [3, 4],
           [5, 6]])
    """
    return concatenate([atleast_2d(a) for a in _items("vstack", tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays side by side: along the second axis, or the only one.

    tup: a sequence of arrays whose other extents are equal.
    dtype, casting: those of concatenate.
    Raises ValueError for no arrays and extents that differ.

    >>> import nvm.numpy as np
    >>> np.hstack([[1, 2], [3]])
    array([1, 2, 3])
    >>> np.hstack([[[1], [2]], [[3], [4]]])
    array([[1, 3],
           [2, 4]])
    """
    arrays = [atleast_1d(a) for a in _items("hstack", tup)]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup):
    """Arrays one behind the other along the third axis.

    tup: a sequence of arrays of equal other extents; (n,) is taken as (1, n, 1), and (m, n) as (m, n, 1).
    Raises ValueError for no arrays and extents that differ.

    >>> import nvm.numpy as np
    >>> np.dstack([[1, 2], [3, 4]])
    array([[[1, 3],
            [2, 4]]])
    """
    return concatenate([atleast_3d(a) for a in _items("dstack", tup)], 2)


def column_stack(tup):
    """Arrays as the columns of a matrix.

    tup: a sequence of arrays, of shape (n,), which are a column each, or (n, k).
    Raises ValueError for no arrays and numbers of rows that differ.

    >>> import nvm.numpy as np
    >>> np.column_stack([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    return concatenate([a if a.ndim > 1 else a.reshape(a.size, 1) for a in _items("column_stack", tup)], 1)


def append(arr, values, axis=None):
    """An array with values behind it.

    arr: an array, or what asarray takes.
    values: an array; along an axis its other extents are those of arr.
    axis: the axis; None flattens both.
    Returns a new array: arr itself is not changed.
    Raises ValueError if extents differ, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.append([1, 2], [[3, 4]])
    array([1, 2, 3, 4])
    """
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return concatenate((arr, values), axis)


def _depth(arrays, at=()):
    """The depth of nested lists, the same everywhere."""
    if isinstance(arrays, tuple):
        raise fault(TypeError, f"arrays{list(at)} is a tuple; nested lists of arrays are meant")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise fault(ValueError, f"List at arrays{list(at)} cannot be empty")
    depths = {_depth(a, (*at, i)) for i, a in enumerate(arrays)}
    if len(depths) > 1:
        raise fault(ValueError, f"List depths are mismatched below arrays{list(at)}: {sorted(depths)}")
    return 1 + depths.pop()


def block(arrays):
    """An array from nested lists of blocks.

    arrays: lists nested to the same depth. The blocks of innermost lists are joined along the last axis, the results of
        lists around them along the one before, and so on.
    Raises ValueError for empty lists, different depths and extents that do not fit, TypeError for tuples.

    >>> import nvm.numpy as np
    >>> np.block([[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]])
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]])
    """
    depth = _depth(arrays)

    def leaves(part):
        return [x for p in part for x in leaves(p)] if isinstance(part, list) else [asarray(part).ndim]

    ndim = max(depth, *leaves(arrays), 0)

    def joined(part, level):
        if not isinstance(part, list):
            part = asarray(part)
            return part.reshape((1,) * (ndim - part.ndim) + part.shape)
        return concatenate([joined(p, level + 1) for p in part], ndim - depth + level)

    result = joined(arrays, 0)
    return result if isinstance(arrays, list) else result.copy()


def array_split(ary, indices_or_sections, axis=0):
    """Pieces of an array along an axis, which need not be equal: a list of views.

    ary: an array of one or more dimensions.
    indices_or_sections: positions at which it is cut, or a number of pieces, of which the first ones may have one
        element more.
    axis: the axis.
    Raises ValueError for a number below 1, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.array_split([1, 2, 3, 4, 5], 2)
    [array([1, 2, 3]), array([4, 5])]
    >>> np.array_split([1, 2, 3, 4, 5], [1, 3])
    [array([1]), array([2, 3]), array([4, 5])]
    """
    ary = asarray(ary)
    if ary.ndim == 0:
        raise IndexError("[array_split] a 0-dimensional array has no axis to split")
    axis = one_axis(axis, ary.ndim)
    n = ary.shape[axis]
    if hasattr(indices_or_sections, "__len__") and getattr(indices_or_sections, "shape", None) != ():
        ends = [0, *(operator.index(i) for i in indices_or_sections), n]
    else:
        sections = int(indices_or_sections)
        if sections <= 0:
            raise fault(ValueError, "number sections must be larger than 0.")
        each, more = divmod(n, sections)
        ends = [i * each + min(i, more) for i in range(sections + 1)]
    at = (slice(None),) * axis
    return [ary[at + (slice(start, stop),)] for start, stop in zip(ends[:-1], ends[1:])]


def split(ary, indices_or_sections, axis=0):
    """Pieces of an array along an axis: a list of views.

    ary: an array of one or more dimensions.
    indices_or_sections: positions at which it is cut, or a number of equal pieces.
    axis: the axis.
    Raises ValueError if equal pieces are not possible, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.split([1, 2, 3, 4], 2)
    [array([1, 2]), array([3, 4])]
    """
    ary = asarray(ary)
    if not hasattr(indices_or_sections, "__len__"):
        if ary.ndim == 0:
            raise IndexError("[split] a 0-dimensional array has no axis to split")
        n = ary.shape[one_axis(axis, ary.ndim)]
        if n % indices_or_sections:
            raise fault(ValueError, f"array split does not result in an equal division: {n} into {indices_or_sections}")
    return array_split(ary, indices_or_sections, axis)


def _split_along(who, ary, sections, axis, least):
    ary = asarray(ary)
    if ary.ndim < least:
        raise fault(ValueError, f"{who} only works on arrays of {least} or more dimensions")
    return split(ary, sections, axis)


def vsplit(ary, indices_or_sections):
    """Pieces of an array along the first axis: a list of views.

    ary: an array of two or more dimensions.
    indices_or_sections: that of split.
    Raises ValueError for fewer dimensions, or if equal pieces are not possible.

    >>> import nvm.numpy as np
    >>> np.vsplit([[1, 2], [3, 4]], 2)
    [array([[1, 2]]), array([[3, 4]])]
    """
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


def hsplit(ary, indices_or_sections):
    """Pieces of an array along the second axis, or the only one: a list of views.

    ary: an array of one or more dimensions.
    indices_or_sections: that of split.
    Raises ValueError for a number, or if equal pieces are not possible.

    >>> import nvm.numpy as np
    >>> np.hsplit([1, 2, 3, 4], [1])
    [array([1]), array([2, 3, 4])]
    """
    ary = asarray(ary)
    return _split_along("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1, 1)


def dsplit(ary, indices_or_sections):
    """Pieces of an array along the third axis: a list of views.

    ary: an array of three or more dimensions.
    indices_or_sections: that of split.
    Raises ValueError for fewer dimensions, or if equal pieces are not possible.

    >>> import nvm.numpy as np
    >>> [piece.shape for piece in np.dsplit(np.ones((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def unstack(x, /, *, axis=0):
    """The slices of an array along an axis: a tuple of views.

    x: an array of one or more dimensions.
    axis: the axis, which the slices do not have.
    Raises ValueError for a number, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.unstack([[1, 2], [3, 4]], axis=1)
    (array([1, 3]), array([2, 4]))
    """
    x = asarray(x)
    if x.ndim == 0:
        raise fault(ValueError, "Input array must be at least 1-d.")
    x = f["moveaxis"](x, one_axis(axis, x.ndim), 0)
    return tuple(x[i] for i in range(x.shape[0]))


def _removed(obj, n, axis):
    """The positions that remain when those that obj names are deleted, as slices if obj is a slice or one position."""
    if isinstance(obj, slice):
        lost = range(n)[obj]
    elif hasattr(obj, "__index__") and not isinstance(obj, (bool, Array)):
        at = operator.index(obj)
        if not -n <= at < n:
            raise fault(IndexError, f"index {at} is out of bounds for axis {axis} with size {n}")
        lost = [at % n]
    else:
        obj = asarray(obj)
        if not obj.size and obj.dtype.kind == "f":
            lost = []
        elif obj.dtype.name == "bool":
            if obj.shape != (n,):
                raise fault(
                    ValueError, f"boolean array argument obj to delete must be one dimensional and match the axis {n}"
                )
            lost = [i for i, gone in enumerate(obj.tolist()) if gone]
        elif obj.dtype.kind not in "iu":
            raise fault(
                IndexError, f"arrays used as indices must be of integer (or boolean) type, not {obj.dtype.name}"
            )
        else:
            lost = obj.reshape(-1).tolist()
            for at in lost:
                if not -n <= at < n:
                    raise fault(IndexError, f"index {at} is out of bounds for axis {axis} with size {n}")
            lost = [i % n for i in lost]
    return sorted(set(range(n)).difference(lost))


def delete(arr, obj, axis=None):
    """An array without some of its slices along an axis.

    arr: an array, or what asarray takes.
    obj: positions that go: an integer, a slice, integers, or a mask of the axis.
    axis: the axis; None deletes elements of the flattened array.
    Returns a new array: arr itself is not changed.
    Raises IndexError for a position outside the axis.

    >>> import nvm.numpy as np
    >>> np.delete([1, 2, 3, 4], [0, 2])
    array([2, 4])
    """
    arr = asarray(arr)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = one_axis(axis, arr.ndim)
    return f["take"](arr, asarray(_removed(obj, arr.shape[axis], axis), dtype="int64"), axis=axis)


def _insert_positions(obj, n, axis):
    """(the positions in the old array before which values go, is it a number rather than a list of them?)"""
    if isinstance(obj, slice):
        return list(range(n)[obj]), False
    obj = asarray(obj)
    if obj.dtype.name == "bool":
        if obj.ndim != 1:
            raise fault(ValueError, "boolean array argument obj to insert must be one dimensional")
        return [i for i, here in enumerate(obj.tolist()) if here], False
    if obj.ndim > 1:
        raise fault(ValueError, "index array argument obj to insert must be one dimensional or scalar")
    if obj.size and obj.dtype.kind not in "iu":
        raise fault(IndexError, f"arrays used as indices must be of integer (or boolean) type, not {obj.dtype.name}")
    positions = [int(i) for i in obj.reshape(-1).tolist()]
    for i in positions:
        if not -n <= i <= n:
            raise fault(IndexError, f"index {i} is out of bounds for axis {axis} with size {n}")
    return [i + n if i < 0 else i for i in positions], obj.ndim == 0


def insert(arr, obj, values, axis=None):
    """An array with values put between its slices along an axis.

    arr: an array, or what asarray takes.
    obj: positions in arr before which values are put: an integer, a slice, integers, or a mask.
    values: what is put there, cast to the dtype of arr; it broadcasts to the slices.
    axis: the axis; None inserts into the flattened array.
    Returns a new array: arr itself is not changed.
    Raises IndexError for a position outside the axis, ValueError if values do not broadcast.

    >>> import nvm.numpy as np
    >>> np.insert([1, 2, 3], 1, 9)
    array([1, 9, 2, 3])
    >>> np.insert([[1, 2], [3, 4]], 1, [8, 9], axis=1)
    array([[1, 8, 2],
           [3, 9, 4]])
    """
    arr = asarray(arr)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    axis = one_axis(axis, arr.ndim)
    n = arr.shape[axis]
    positions, number = _insert_positions(obj, n, axis)
    values = asarray(values).astype(arr.dtype)
    values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape)
    values = f["moveaxis"](values, 0, axis) if number else values
    many = len(positions)
    if many == 1:
        many = values.shape[axis]
        positions = positions * many
    part = arr.shape[:axis] + (many,) + arr.shape[axis + 1 :]
    values = f["broadcast_to"](values, part)
    order = sorted(range(n + many), key=lambda i: (i, 1) if i < n else (positions[i - n], 0))
    return f["take"](concatenate((arr, values), axis), asarray(order, dtype="int64"), axis=axis)


def trim_zeros(filt, trim="fb", axis=None):
    """An array without the zeros at its ends. It is evaluated.

    filt: an array, or a list or a tuple of numbers, which stays one.
    trim: 'f' cuts at the front, 'b' at the back, 'fb' at both.
    axis: the axes that are cut; None: all.
    Raises ValueError for other letters, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.trim_zeros(np.array([0, 1, 0, 2, 0, 0]))
    array([1, 0, 2])
    """
    x = asarray(filt)
    trim = trim.lower()
    if not trim or trim.strip("fb") or len(trim) > 2 or trim in ("ff", "bb"):
        raise fault(ValueError, f"unexpected character(s) in `trim`: {trim!r}")
    cuts = [slice(None)] * x.ndim
    for d in axes_of(axis, x.ndim):
        others = tuple(k for k in range(x.ndim) if k != d)
        used = f["any"](x != 0, axis=others) if others else x != 0
        n = x.shape[d]
        first, last = (int(f["argmax"](u)) if n and bool(f["any"](u)) else n for u in (used, flip(used)))
        start = first if "f" in trim else 0
        cuts[d] = slice(start, max(n - last, start) if "b" in trim else n)
    return filt[cuts[0]] if isinstance(filt, (list, tuple)) and x.ndim == 1 else x[tuple(cuts)]


__all__ = public(globals())
