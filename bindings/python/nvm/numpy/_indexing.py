"""Elements taken from arrays and put into them by positions and masks."""

from .. import _nvm
from ._dtypes import result_type
from ._shapes import resize
from ._sorting import flatnonzero
from ._support import Array, asarray, cast, check_casts, f, fault, one_axis, product, public, to_out


def _inside(x, n, mode):
    """Positions as the mode has them: wrapped around or clipped; 'raise' leaves them to be checked."""
    if mode not in ("raise", "wrap", "clip"):
        raise fault(ValueError, f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    x = asarray(x)
    if not x.size and x.dtype.kind == "f":
        return x.astype(_nvm.int64)
    if x.dtype.kind not in "biu":
        raise fault(TypeError, f"Cannot cast array data from {x.dtype.name} to int64 according to the rule 'safe'")
    x = x.astype(_nvm.int64) if x.dtype.kind == "b" else x
    if mode == "raise":
        return x
    return f["remainder"](x, max(n, 1)) if mode == "wrap" else f["clip"](x, 0, max(n - 1, 0))


def take(a, indices, axis=None, out=None, mode="raise"):
    """Slices of an array along an axis at given positions.

    a: an array, or what asarray takes.
    indices: positions, an array of integers of any shape; negative ones count from the end.
    axis: an axis, or None for the flattened array.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    mode: what happens to positions outside: 'raise' (when the result is evaluated), 'wrap' or 'clip'.
    Returns an array with the shape of the positions in place of the axis.
    Raises IndexError for a position outside, TypeError for other dtypes, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.take([10, 20, 30], [[2, 0]])
    array([[30, 10]])
    >>> np.take([[1, 2], [3, 4]], 1, axis=1)
    array([2, 4])
    """
    a = asarray(a)
    if axis is None:
        a, axis = a.reshape(-1), 0
    a = a if a.ndim else a.reshape(1)
    axis = one_axis(axis, a.ndim)
    at = _inside(indices, a.shape[axis], mode)
    if at.size and not a.shape[axis]:
        raise fault(IndexError, f"cannot do a non-empty take from an empty axes: shape {a.shape}, axis {axis}")
    taken = f["take"](a, at.reshape(-1), axis=axis)
    return to_out("take", taken.reshape(a.shape[:axis] + at.shape + a.shape[axis + 1 :]), out)


def _whole_numbers(indices):
    indices = asarray(indices)
    if indices.dtype.kind not in "iu":
        raise fault(IndexError, f"`indices` must be an integer array, not {indices.dtype.name}")
    return indices


def take_along_axis(arr, indices, axis=-1):
    """Elements along an axis at positions that differ from row to row, as argsort gives them.

    arr: an array, or what asarray takes.
    indices: an array of integers with as many dimensions; outside the axis the two broadcast.
    axis: an axis, or None for the flattened array.
    Returns an array in the shape of the positions.
    Raises ValueError for other numbers of dimensions, IndexError for other dtypes and shapes, and AxisError where there
        is no such axis.

    >>> import nvm.numpy as np
    >>> np.take_along_axis([[10, 30, 20]], [[0, 2, 1]], axis=1)
    array([[10, 20, 30]])
    """
    arr, indices = asarray(arr), _whole_numbers(indices)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
        if indices.ndim != 1:
            raise fault(ValueError, "when axis=None, `indices` must have a single dimension.")
    axis = one_axis(axis, arr.ndim)
    arr, indices = _paired(arr, indices, axis)
    return f["take_along_axis"](arr, indices, axis=axis)


def _paired(arr, indices, axis):
    """Both arrays broadcast against each other outside the axis."""
    if arr.ndim != indices.ndim:
        raise fault(
            ValueError, f"`indices` and `arr` must have the same number of dimensions: {indices.shape}, {arr.shape}"
        )
    shapes = [list(x.shape) for x in (arr, indices)]
    for d in range(arr.ndim):
        if d != axis:
            extents = {s[d] for s in shapes}
            if len(extents) > 1 and 1 not in extents:
                raise fault(
                    IndexError, f"shape mismatch: indices {indices.shape} do not broadcast with the array's {arr.shape}"
                )
            common = extents.pop() if len(extents) == 1 else max(extents - {1})
            shapes[0][d] = shapes[1][d] = common
    return f["broadcast_to"](arr, shapes[0]), f["broadcast_to"](indices, shapes[1])


def _target(who, a):
    if not isinstance(a, Array):
        raise fault(TypeError, f"argument 1 of {who} must be an array of nvm, not {type(a).__name__}")
    return a


def put_along_axis(arr, indices, values, axis):
    """Writes values along an axis at positions that differ from row to row.

    arr: the array of nvm that is written to.
    indices: an array of integers with as many dimensions; outside the axis the two broadcast.
    values: an array that broadcasts to the positions.
    axis: an axis, or None for the flattened array.
    Raises ValueError for other numbers of dimensions, IndexError for other dtypes, and AxisError where there is no such
        axis.

    >>> import nvm.numpy as np
    >>> x = np.zeros((2, 2))
    >>> np.put_along_axis(x, np.array([[0], [1]]), 7, axis=1)
    >>> x
    array([[7., 0.],
           [0., 7.]])
    """
    arr, indices = _target("put_along_axis", arr), _whole_numbers(indices)
    flat = axis is None
    x = arr.reshape(-1) if flat else arr
    if flat and indices.ndim != 1:
        raise fault(ValueError, "when axis=None, `indices` must have a single dimension.")
    axis = 0 if flat else one_axis(axis, x.ndim)
    if x.ndim != indices.ndim:
        raise fault(
            ValueError, f"`indices` and `arr` must have the same number of dimensions: {indices.shape}, {arr.shape}"
        )
    shape = x.shape[:axis] + (indices.shape[axis],) + x.shape[axis + 1 :]
    indices = f["broadcast_to"](indices, shape)
    key = tuple(
        indices if d == axis else f["arange"](n).reshape([-1 if k == d else 1 for k in range(x.ndim)])
        for d, n in enumerate(x.shape)
    )
    x = x.copy()
    x[key] = f["broadcast_to"](asarray(values), shape)
    arr[...] = x.reshape(arr.shape)


def put(a, ind, v, mode="raise"):
    """Writes values at positions of a flattened array.

    a: the array of nvm that is written to.
    ind: positions, an array of integers.
    v: the values, which are repeated if there are too few.
    mode: what happens to positions outside: 'raise', 'wrap' or 'clip'.
    Raises TypeError for other dtypes, IndexError, when the array is evaluated, for a position outside.

    >>> import nvm.numpy as np
    >>> x = np.zeros(4)
    >>> np.put(x, [0, 2], [7, 8])
    >>> x
    array([7., 0., 8., 0.])
    """
    a = _target("put", a)
    at = _inside(ind, a.size, mode).reshape(-1)
    v = asarray(v)
    if not at.size or not v.size:
        return
    check_casts("put", v.dtype, a.dtype, "same_kind" if v.dtype.kind == "c" else "unsafe")
    flat = a.reshape(-1).copy()
    flat[at] = cast(resize(v, at.shape), a.dtype)
    a[...] = flat.reshape(a.shape)


def _mask_of(who, mask, a):
    mask = asarray(mask)
    if mask.size != a.size:
        raise fault(ValueError, f"{who}: mask and data must be the same size, not of shapes {mask.shape} and {a.shape}")
    return (mask if mask.dtype == _nvm.bool else mask != 0).reshape(a.shape)


def place(arr, mask, vals):
    """Writes values, one after the other, where a mask is True.

    arr: the array of nvm that is written to.
    mask: an array of as many elements, which is evaluated; 0 is False.
    vals: the values, which are repeated if there are too few.
    Raises ValueError for a mask of another size, or no values.

    >>> import nvm.numpy as np
    >>> x = np.arange(4)
    >>> np.place(x, x > 1, [7, 8])
    >>> x
    array([0, 1, 7, 8])
    """
    arr = _target("place", arr)
    mask, vals = _mask_of("place", mask, arr), asarray(vals).reshape(-1)
    if not vals.size:
        if bool(f["any"](mask)):
            raise fault(ValueError, "Cannot insert from an empty array!")
        return
    put(arr, flatnonzero(mask), vals)


def putmask(a, /, mask, values):
    """Writes values where a mask is True, each at its own position.

    a: the array of nvm that is written to.
    mask: an array of as many elements; 0 is False.
    values: an array; if it is smaller than a, it is repeated.
    Raises ValueError for a mask of another size, TypeError if the dtype of a does not take the values.

    >>> import nvm.numpy as np
    >>> x = np.arange(4)
    >>> np.putmask(x, x > 1, x * 10)
    >>> x
    array([ 0,  1, 20, 30])
    """
    a = _target("putmask", a)
    mask, values = _mask_of("putmask", mask, a), asarray(values)
    check_casts("putmask", values.dtype, a.dtype)
    if values.size:
        a[...] = f["where"](mask, cast(resize(values, a.shape), a.dtype), a)


def choose(a, choices, out=None, mode="raise"):
    """Elements of several arrays, by the number of the array at each position.

    a: an array of integers, the numbers of choices; it is evaluated for mode='raise'.
    choices: a sequence of arrays, which broadcast with a.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    mode: what happens to numbers outside: 'raise', 'wrap' or 'clip'.
    Returns an array in the common shape and dtype.
    Raises ValueError for a number outside, TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    array([ 1, 20,  3])
    """
    a = asarray(a)
    if a.dtype.kind not in "biu":
        raise fault(TypeError, f"Cannot cast array data from {a.dtype.name} to int64 according to the rule 'safe'")
    from ._shapes import broadcast_arrays

    choices = [choices[i] for i in range(choices.shape[0])] if isinstance(choices, Array) else list(choices)
    a, *choices = broadcast_arrays(_inside(a, len(choices), mode), *choices)
    if a.size and mode == "raise" and bool(f["any"]((a < 0) | (a >= len(choices)))):
        raise fault(ValueError, f"invalid entry in choice array: it has to be in 0 to {len(choices) - 1}")
    result = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        result = f["where"](a == i, choice, result)
    return to_out("choose", result, out)


def compress(condition, a, axis=None, out=None):
    """Slices of an array along an axis where a condition holds.

    condition: an array of one dimension, which is evaluated; 0 is False.
    a: an array, or what asarray takes.
    axis: an axis, or None for the flattened array.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array with fewer slices along the axis.
    Raises ValueError for a condition of more dimensions, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.compress([True, False, True], [[1, 2, 3], [4, 5, 6]], axis=1)
    array([[1, 3],
           [4, 6]])
    """
    a, condition = asarray(a), asarray(condition)
    if condition.ndim != 1:
        raise fault(ValueError, f"condition must be a 1-d array, not of shape {condition.shape}")
    if axis is None:
        a, axis = a.reshape(-1), 0
    return take(a, flatnonzero(condition), axis, out)


def select(condlist, choicelist, default=0):
    """At each position an element of the first array whose condition holds there.

    condlist: a list of arrays of bool.
    choicelist: as many arrays or numbers, which broadcast with the conditions.
    default: the number where no condition holds.
    Returns an array in the common shape and dtype.
    Raises ValueError for lists of different lengths or none, TypeError for conditions of other dtypes.

    >>> import nvm.numpy as np
    >>> x = np.arange(5)
    >>> np.select([x < 2, x > 3], [x, x * 10], default=-1)
    array([ 0,  1, -1, -1, 40])
    """
    if len(condlist) != len(choicelist):
        raise fault(ValueError, "list of cases must be same length as list of conditions")
    if not len(condlist):
        raise fault(ValueError, "select with an empty condition list is not possible")
    conditions = [asarray(c) for c in condlist]
    for i, c in enumerate(conditions):
        if c.dtype != _nvm.bool:
            raise fault(TypeError, f"invalid entry {i} in condlist: should be boolean ndarray, not {c.dtype.name}")
    choices = [c if type(c) in (int, float, complex) else asarray(c) for c in (*choicelist, default)]
    dtype = result_type(*choices)
    *choices, result = [asarray(c).astype(dtype) for c in choices]
    for condition, choice in zip(conditions[::-1], choices[::-1]):
        result = f["where"](condition, choice, result)
    return result


def fill_diagonal(a, val, wrap=False):
    """Writes to the main diagonal of an array.

    a: the array of nvm that is written to: a matrix, or more equal extents.
    val: a number, or an array whose elements are written one after the other, and again if there are too few.
    wrap: True begins again below the diagonal of a matrix that has more rows than columns.
    Raises ValueError for fewer than two dimensions, or more and different ones.

    >>> import nvm.numpy as np
    >>> x = np.zeros((2, 2))
    >>> np.fill_diagonal(x, [7, 8])
    >>> x
    array([[7., 0.],
           [0., 8.]])
    """
    if a.ndim < 2:
        raise fault(ValueError, "array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise fault(ValueError, "All dimensions of input must be of equal length")
    step = 1 + a.shape[1] if a.ndim == 2 else sum(product(a.shape[d:]) for d in range(1, a.ndim + 1))
    end = a.shape[1] * a.shape[1] if a.ndim == 2 and not wrap else a.size
    put(a, list(range(0, min(end, a.size), step)), val)


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum along diagonals in the plane of two axes.

    a: an array of two or more dimensions.
    offset, axis1, axis2: those of diagonal.
    dtype, out: those of sum.
    Returns an array without the two axes.
    Raises ValueError for fewer dimensions or equal axes, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.trace([[1, 2], [3, 4]])
    array(5)
    """
    from ._creation import diagonal
    from ._reductions import sum as _sum

    return _sum(diagonal(a, offset, axis1, axis2), -1, dtype, out)


__all__ = public(globals())
