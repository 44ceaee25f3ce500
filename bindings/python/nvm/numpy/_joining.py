"""Arrays joined, and arrays cut into pieces."""

import operator

from ._shapes import atleast_1d, atleast_2d, atleast_3d, flip
from ._support import Array, asarray, axes_of, check_casts, dtype_or_none, f, one_axis, public, to_out


def _joined(who, arrays, axis, out, dtype, casting):
    if out is not None and dtype is not None:
        raise TypeError(f"{who}() only takes `out` or `dtype` as an argument, but both were provided.")
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
    """Arrays one behind the other along an axis; axis None: all flattened first."""
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
    """Arrays of one shape along a new axis."""
    arrays = _items("stack", arrays)
    if any(a.shape != arrays[0].shape for a in arrays):
        raise ValueError(f"[stack] all input arrays must have the same shape: {[a.shape for a in arrays]}")
    axis = one_axis(axis, arrays[0].ndim + 1)
    arrays = [f["expand_dims"](a, axis=axis) for a in arrays]
    return _joined("stack", arrays, axis, out, dtype, casting)


def vstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays one below the other: rows. A one-dimensional array is one row."""
    return concatenate([atleast_2d(a) for a in _items("vstack", tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays side by side: along the second axis, one-dimensional ones along the first."""
    arrays = [atleast_1d(a) for a in _items("hstack", tup)]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup):
    """Arrays along the third axis."""
    return concatenate([atleast_3d(a) for a in _items("dstack", tup)], 2)


def column_stack(tup):
    """One-dimensional arrays as columns, two-dimensional ones as they are, side by side."""
    return concatenate([a if a.ndim > 1 else a.reshape(a.size, 1) for a in _items("column_stack", tup)], 1)


def append(arr, values, axis=None):
    """Values behind an array: both flattened, or along an axis."""
    arr, values = asarray(arr), asarray(values)
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return concatenate((arr, values), axis)


def _depth(arrays, at=()):
    """The depth of nested lists, the same everywhere."""
    if isinstance(arrays, tuple):
        raise TypeError(f"arrays{list(at)} is a tuple; nested lists of arrays are meant")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError(f"List at arrays{list(at)} cannot be empty")
    depths = {_depth(a, (*at, i)) for i, a in enumerate(arrays)}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched below arrays{list(at)}: {sorted(depths)}")
    return 1 + depths.pop()


def block(arrays):
    """An array from nested lists of blocks: the innermost lists are joined along the last axis, those around them along
    the one before, and so on."""
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
    """Pieces of an array along an axis: at the given positions, or so many of nearly the same extent."""
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
            raise ValueError("number sections must be larger than 0.")
        each, more = divmod(n, sections)
        ends = [i * each + min(i, more) for i in range(sections + 1)]
    at = (slice(None),) * axis
    return [ary[at + (slice(start, stop),)] for start, stop in zip(ends[:-1], ends[1:])]


def split(ary, indices_or_sections, axis=0):
    """Pieces of an array along an axis: at the given positions, or so many of the same extent."""
    ary = asarray(ary)
    if not hasattr(indices_or_sections, "__len__"):
        if ary.ndim == 0:
            raise IndexError("[split] a 0-dimensional array has no axis to split")
        n = ary.shape[one_axis(axis, ary.ndim)]
        if n % indices_or_sections:
            raise ValueError(f"array split does not result in an equal division: {n} into {indices_or_sections}")
    return array_split(ary, indices_or_sections, axis)


def _split_along(who, ary, sections, axis, least):
    ary = asarray(ary)
    if ary.ndim < least:
        raise ValueError(f"{who} only works on arrays of {least} or more dimensions")
    return split(ary, sections, axis)


def vsplit(ary, indices_or_sections):
    """Pieces along the first axis."""
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


def hsplit(ary, indices_or_sections):
    """Pieces along the second axis; along the only one of a one-dimensional array."""
    ary = asarray(ary)
    return _split_along("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1, 1)


def dsplit(ary, indices_or_sections):
    """Pieces along the third axis."""
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def unstack(x, /, *, axis=0):
    """The slices along an axis: a tuple."""
    x = asarray(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    x = f["moveaxis"](x, one_axis(axis, x.ndim), 0)
    return tuple(x[i] for i in range(x.shape[0]))


def _removed(obj, n, axis):
    """The positions that remain when those that obj names are deleted, as slices if obj is a slice or one position."""
    if isinstance(obj, slice):
        lost = range(n)[obj]
    elif hasattr(obj, "__index__") and not isinstance(obj, (bool, Array)):
        at = operator.index(obj)
        if not -n <= at < n:
            raise IndexError(f"index {at} is out of bounds for axis {axis} with size {n}")
        lost = [at % n]
    else:
        obj = asarray(obj)
        if not obj.size and obj.dtype.kind == "f":
            lost = []
        elif obj.dtype.name == "bool":
            if obj.shape != (n,):
                raise ValueError(f"boolean array argument obj to delete must be one dimensional and match the axis {n}")
            lost = [i for i, gone in enumerate(obj.tolist()) if gone]
        elif obj.dtype.kind not in "iu":
            raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {obj.dtype.name}")
        else:
            lost = obj.reshape(-1).tolist()
            for at in lost:
                if not -n <= at < n:
                    raise IndexError(f"index {at} is out of bounds for axis {axis} with size {n}")
            lost = [i % n for i in lost]
    return sorted(set(range(n)).difference(lost))


def delete(arr, obj, axis=None):
    """The array without the slices along an axis that obj names."""
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
            raise ValueError("boolean array argument obj to insert must be one dimensional")
        return [i for i, here in enumerate(obj.tolist()) if here], False
    if obj.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    if obj.size and obj.dtype.kind not in "iu":
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {obj.dtype.name}")
    positions = [int(i) for i in obj.reshape(-1).tolist()]
    for i in positions:
        if not -n <= i <= n:
            raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return [i + n if i < 0 else i for i in positions], obj.ndim == 0


def insert(arr, obj, values, axis=None):
    """The array with values put before the positions along an axis that obj names."""
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
    """The array without the zeros at its front ('f' in trim) and its back ('b'), along all axes or some. A list or a
    tuple stays one."""
    x = asarray(filt)
    trim = trim.lower()
    if not trim or trim.strip("fb") or len(trim) > 2 or trim in ("ff", "bb"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
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
