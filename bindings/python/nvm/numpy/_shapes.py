"""Arrays in another shape, or their elements in another order."""

import operator

from .. import _creation, _order, _pad
from ._dtypes import result_type
from ._support import (
    Array,
    asarray,
    axes_of,
    check_casts,
    check_order,
    dtype_or_none,
    f,
    fault,
    one_axis,
    product,
    public,
    shape_of,
)


def shape(a):
    """The extents of an array: a tuple of integers.

    a: an array, or what asarray takes. Its values are not needed.

    >>> import nvm.numpy as np
    >>> np.shape([[1, 2, 3]])
    (1, 3)
    """
    return a.shape if isinstance(a, Array) else asarray(a).shape


def ndim(a):
    """The number of dimensions of an array: an integer.

    a: an array, or what asarray takes. Its values are not needed.

    >>> import nvm.numpy as np
    >>> np.ndim([[1, 2, 3]])
    2
    """
    return a.ndim if isinstance(a, Array) else asarray(a).ndim


def size(a, axis=None):
    """The number of elements of an array, or of its slices along axes: an integer.

    a: an array, or what asarray takes. Its values are not needed.
    axis: an axis, a tuple of them, or None for all.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.size([[1, 2, 3], [4, 5, 6]]), np.size([[1, 2, 3], [4, 5, 6]], axis=0)
    (6, 2)
    """
    extents = shape(a)
    if axis is None:
        return product(extents)
    return product(extents[d] for d in axes_of(axis, len(extents), "axis"))


def reshape(a, /, shape, order="C", *, copy=None):
    """The elements of an array in another shape.

    a: an array, or what asarray takes.
    shape: an extent, or a tuple of them, of which one may be -1: it is then what the others leave.
    order: 'C' reads and fills with the last axis fastest, 'F' with the first; 'A' is 'C'.
    copy: True copies; the result is otherwise a view where that is possible.
    Raises ValueError if the shape has another number of elements.

    >>> import nvm.numpy as np
    >>> np.reshape([1, 2, 3, 4, 5, 6], (2, -1))
    array([[1, 2, 3],
           [4, 5, 6]])
    """
    a, shape = asarray(a), shape_of(shape)
    if check_order(order, "CFA") == "F":
        columns = f["reshape"](f["permute_dims"](a, range(a.ndim)[::-1]), shape[::-1])
        return f["permute_dims"](columns, range(len(shape))[::-1])
    return f["reshape"](a, shape, copy=copy)


def ravel(a, order="C"):
    """The elements of an array in one dimension.

    a: an array, or what asarray takes.
    order: 'C' reads with the last axis fastest, 'F' with the first; 'A' and 'K' are 'C', since an array has no order in
        memory that could be seen.
    Returns an array of shape (a.size,).

    >>> import nvm.numpy as np
    >>> np.ravel([[1, 2], [3, 4]], order="F")
    array([1, 3, 2, 4])
    """
    return reshape(a, -1, "F" if check_order(order) == "F" else "C")


def transpose(a, axes=None):
    """The axes of an array in another order.

    a: an array, or what asarray takes.
    axes: for each axis of the result, that of a; None turns the order round, so that a matrix is transposed.
    Raises ValueError if axes has not one entry for each axis of a, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    >>> np.transpose(np.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    a = asarray(a)
    if axes is None:
        return f["permute_dims"](a, range(a.ndim)[::-1])
    axes = shape_of(axes)
    if len(axes) != a.ndim:
        raise fault(ValueError, f"axes {axes} don't match array of shape {a.shape}")
    return f["permute_dims"](a, axes_of(axes, a.ndim))


permute_dims = transpose


def matrix_transpose(x, /):
    """Matrices transposed: the last two axes exchanged.

    x: an array (..., m, n).
    Returns an array (..., n, m).
    Raises ValueError for fewer than two dimensions.

    >>> import nvm.numpy as np
    >>> np.matrix_transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    x = asarray(x)
    if x.ndim < 2:
        raise fault(ValueError, f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return f["matrix_transpose"](x)


def swapaxes(a, axis1, axis2):
    """An array with two axes exchanged.

    a: an array, or what asarray takes.
    axis1, axis2: the two axes.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = asarray(a)
    order = list(range(a.ndim))
    axis1, axis2 = one_axis(axis1, a.ndim, "axis1"), one_axis(axis2, a.ndim, "axis2")
    order[axis1], order[axis2] = axis2, axis1
    return f["permute_dims"](a, order)


def moveaxis(a, source, destination):
    """An array with axes moved to other places; the other axes keep their order.

    a: an array, or what asarray takes.
    source: an axis, or a tuple of them.
    destination: where they stand in the result.
    Raises ValueError if there are not as many of both, or one twice, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = asarray(a)
    source, destination = axes_of(source, a.ndim, "source"), axes_of(destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise fault(ValueError, "`source` and `destination` arguments must have the same number of elements")
    order = [d for d in range(a.ndim) if d not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return f["permute_dims"](a, order)


def rollaxis(a, axis, start=0):
    """An array with an axis moved in front of another.

    a: an array, or what asarray takes.
    axis: the axis that moves.
    start: it is moved in front of the axis that stands there, to the end for a.ndim.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = asarray(a)
    axis = one_axis(axis, a.ndim)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        one_axis(start, a.ndim + 1, "start")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, axis, start - 1 if axis < start else start)


def expand_dims(a, axis):
    """An array with new axes of extent 1.

    a: an array, or what asarray takes.
    axis: where the new axes stand in the result: one, or a tuple of them.
    Raises AxisError for a place that the result does not have.

    >>> import nvm.numpy as np
    >>> np.expand_dims([1, 2], axis=0)
    array([[1, 2]])
    """
    a = asarray(a)
    n = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = axes_of(axis, n)
    old = iter(a.shape)
    return f["reshape"](a, [1 if d in axes else next(old) for d in range(n)])


def squeeze(a, axis=None):
    """An array without axes of extent 1.

    a: an array, or what asarray takes.
    axis: the axes to leave out; None: all of extent 1.
    Raises ValueError if one of them has another extent.

    >>> import nvm.numpy as np
    >>> np.squeeze([[[1, 2]]])
    array([1, 2])
    """
    a = asarray(a)
    if not a.ndim and axis in (0, -1):  # as NumPy has it
        return a
    axes = [d for d in range(a.ndim) if a.shape[d] == 1] if axis is None else axes_of(axis, a.ndim)
    if any(a.shape[d] != 1 for d in axes):
        raise fault(
            ValueError, f"cannot select an axis to squeeze out which has size not equal to one: {axis} of {a.shape}"
        )
    return f["reshape"](a, [n for d, n in enumerate(a.shape) if d not in axes])


def _at_least(arys, widen):
    results = [widen(asarray(a)) for a in arys]
    return results[0] if len(results) == 1 else tuple(results)


def atleast_1d(*arys):
    """Arrays with one dimension at least.

    arys: arrays, or what asarray takes; a number becomes an array of shape (1,).
    Returns an array, or a tuple of them for several arguments.

    >>> import nvm.numpy as np
    >>> np.atleast_1d(1, [2, 3])
    (array([1]), array([2, 3]))
    """
    return _at_least(arys, lambda a: a if a.ndim else a.reshape(1))


def atleast_2d(*arys):
    """Arrays with two dimensions at least.

    arys: arrays, or what asarray takes; what has one dimension becomes a row.
    Returns an array, or a tuple of them for several arguments.

    >>> import nvm.numpy as np
    >>> np.atleast_2d([2, 3])
    array([[2, 3]])
    """
    return _at_least(arys, lambda a: a if a.ndim > 1 else a.reshape(1, a.size))


def atleast_3d(*arys):
    """Arrays with three dimensions at least.

    arys: arrays, or what asarray takes; shape (n,) becomes (1, n, 1), and (m, n) becomes (m, n, 1).
    Returns an array, or a tuple of them for several arguments.

    >>> import nvm.numpy as np
    >>> np.atleast_3d([2, 3]).shape
    (1, 2, 1)
    """
    return _at_least(arys, lambda a: a.reshape(1, -1, 1) if a.ndim < 2 else a[:, :, None] if a.ndim == 2 else a)


def flip(m, axis=None):
    """The elements of an array in opposite order along axes.

    m: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.flip([[1, 2], [3, 4]], axis=0)
    array([[3, 4],
           [1, 2]])
    """
    m = asarray(m)
    axes = axes_of(axis, m.ndim)
    return f["flip"](m, axis=axes) if axes else m


def fliplr(m):
    """The columns of an array in opposite order: along the second axis.

    m: an array of two or more dimensions.
    Raises ValueError for fewer.

    >>> import nvm.numpy as np
    >>> np.fliplr([[1, 2], [3, 4]])
    array([[2, 1],
           [4, 3]])
    """
    m = asarray(m)
    if m.ndim < 2:
        raise fault(ValueError, "Input must be >= 2-d.")
    return f["flip"](m, axis=1)


def flipud(m):
    """The rows of an array in opposite order: along the first axis.

    m: an array of one or more dimensions.
    Raises ValueError for a number.

    >>> import nvm.numpy as np
    >>> np.flipud([[1, 2], [3, 4]])
    array([[3, 4],
           [1, 2]])
    """
    m = asarray(m)
    if m.ndim < 1:
        raise fault(ValueError, "Input must be >= 1-d.")
    return f["flip"](m, axis=0)


def rot90(m, k=1, axes=(0, 1)):
    """An array turned by quarters of a circle in the plane of two axes.

    m: an array, or what asarray takes. It has two or more dimensions.
    k: how often it is turned, from the first axis towards the second; negative: the other way.
    axes: the two axes.
    Raises ValueError unless they are two different axes of m.

    >>> import nvm.numpy as np
    >>> np.rot90([[1, 2], [3, 4]])
    array([[2, 4],
           [1, 3]])
    """
    m, axes = asarray(m), tuple(axes)
    if len(axes) != 2:
        raise fault(ValueError, "len(axes) must be 2.")
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == m.ndim:
        raise fault(ValueError, "Axes must be different.")
    if any(not -m.ndim <= a < m.ndim for a in axes):
        raise fault(ValueError, f"Axes={axes} out of range for array of ndim={m.ndim}.")
    k %= 4
    if k == 2:
        return f["flip"](m, axis=axes_of(axes, m.ndim))
    if k == 1:
        m = f["flip"](m, axis=axes[1])
    turned = swapaxes(m, *axes) if k else m
    return f["flip"](turned, axis=axes[1]) if k == 3 else turned


def roll(a, shift, axis=None):
    """Elements moved along axes; those that leave at one end come in at the other.

    a: an array, or what asarray takes.
    shift: by how many places, or a tuple of such numbers; negative ones move to the front.
    axis: the axis of each shift; None moves in the flattened array, which gets its shape back.
    Raises AxisError where there is no such axis, ValueError if shifts and axes do not correspond.

    >>> import nvm.numpy as np
    >>> np.roll([1, 2, 3, 4], 1)
    array([4, 1, 2, 3])
    >>> np.roll([[1, 2], [3, 4]], 1, axis=1)
    array([[2, 1],
           [4, 3]])
    """
    a = asarray(a)
    if axis is None:
        shift = shift if isinstance(shift, int) else sum(shape_of(shift))
        return f["roll"](a.reshape(-1), shift).reshape(a.shape)
    shifts, axes = shape_of(shift), axes_of(axis, a.ndim, repeated=True)
    n = max(len(shifts), len(axes))
    if len(shifts) not in (1, n) or len(axes) not in (1, n):
        raise fault(ValueError, f"'shift' and 'axis' should be scalars or 1D sequences that broadcast: {shift}, {axis}")
    shifts, axes = shifts * (n // len(shifts)), axes * (n // len(axes))
    for by, axis in zip(shifts, axes):
        a = f["roll"](a, by, axis=axis)
    return a


def tile(A, reps):
    """An array repeated as a whole.

    A: an array, or what asarray takes.
    reps: how often along each axis, an integer or a tuple; where it is longer than A.ndim, A gets axes in front.
    Raises ValueError for a negative number.

    >>> import nvm.numpy as np
    >>> np.tile([1, 2], 2)
    array([1, 2, 1, 2])
    >>> np.tile([1, 2], (2, 1))
    array([[1, 2],
           [1, 2]])
    """
    A, reps = asarray(A), shape_of(reps)
    if any(n < 0 for n in reps):
        raise fault(ValueError, f"negative dimensions are not allowed: {reps}")
    return f["tile"](A, (1,) * (A.ndim - len(reps)) + reps) if A.ndim or reps else A.copy()


def repeat(a, repeats, axis=None):
    """An array with each element repeated.

    a: an array, or what asarray takes.
    repeats: how often: an integer, or an integer array with one for each element along the axis, which is evaluated.
    axis: the axis; None repeats the elements of the flattened array.
    Raises ValueError for negative numbers, or another number of them than the axis has elements.

    >>> import nvm.numpy as np
    >>> np.repeat([1, 2], 2)
    array([1, 1, 2, 2])
    >>> np.repeat([[1, 2], [3, 4]], [1, 2], axis=0)
    array([[1, 2],
           [3, 4],
           [3, 4]])
    """
    a = asarray(a)
    a = a if a.ndim else a.reshape(1)
    axis = None if axis is None else one_axis(axis, a.ndim)
    return _order.repeat(a, repeats if isinstance(repeats, int) else asarray(repeats), axis=axis)


def resize(a, new_shape):
    """An array in another shape, whose elements are repeated, or cut off, as need be.

    a: an array, or what asarray takes.
    new_shape: an extent, or a tuple of them.
    Returns an array of the shape; zeros if a is empty.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> np.resize([1, 2, 3], (2, 4))
    array([[1, 2, 3, 1],
           [2, 3, 1, 2]])
    """
    a, new_shape = asarray(a).reshape(-1), shape_of(new_shape)
    if any(n < 0 for n in new_shape):
        raise fault(ValueError, "all elements of `new_shape` must be non-negative")
    n = product(new_shape)
    if not n or not a.size:
        return f["zeros"](new_shape, dtype=a.dtype)
    return f["tile"](a, (-(-n // a.size),))[:n].reshape(new_shape)


def pad(array, pad_width, mode="constant", **kwargs):
    """An array with more elements around it.

    array: an array, or what asarray takes.
    pad_width: how many: a number, (before, after), one such pair for each axis, or a dict of them by axis.
    mode: what they are: 'constant' (constant_values=0), 'edge', 'linear_ramp' to end_values, 'maximum', 'minimum',
        'mean' or 'median' (of stat_length elements), 'reflect', 'symmetric' (reflect_type= 'even' or 'odd'), 'wrap' or
        'empty'.
    Raises ValueError for negative numbers, an unknown mode, or an argument that the mode does not have.

    >>> import nvm.numpy as np
    >>> np.pad([1, 2], (1, 2), constant_values=9)
    array([9, 1, 2, 9, 9])
    >>> np.pad([1, 2, 3], 2, mode="reflect")
    array([3, 2, 1, 2, 3, 2, 1])
    """
    return _pad.pad(asarray(array), pad_width, mode, **kwargs)


def broadcast_to(array, shape, subok=False):
    """An array repeated to a shape. Nothing is copied.

    array: an array whose extents, from the last one on, are those of the shape or 1.
    shape: an extent, or a tuple of them.
    Raises ValueError if the array does not broadcast to the shape.

    >>> import nvm.numpy as np
    >>> np.broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return f["broadcast_to"](asarray(array), shape_of(shape))


def broadcast_arrays(*args, subok=False):
    """Arrays, each repeated to the shape that all have in common.

    args: arrays, or what asarray takes.
    Returns a tuple of arrays of one shape.
    Raises ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.broadcast_arrays([1, 2], [[3], [4]])
    (array([[1, 2],
           [1, 2]]), array([[3, 3],
           [4, 4]]))
    """
    arrays = [asarray(a) for a in args]
    common = _creation.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(f["broadcast_to"](a, common) for a in arrays)


def broadcast_shapes(*args):
    """The shape to which shapes broadcast: a tuple.

    args: shapes, or extents of one dimension.
    Raises ValueError if they do not broadcast.

    >>> import nvm.numpy as np
    >>> np.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    shapes = tuple(map(shape_of, args))
    if any(extent < 0 for shape in shapes for extent in shape):
        raise fault(ValueError, f"negative dimensions are not allowed: {', '.join(map(str, shapes))}")
    return _creation.broadcast_shapes(*shapes)


def copyto(dst, src, casting="same_kind", where=True):
    """Writes the values of one array to another.

    dst: the array of nvm that is written to.
    src: an array that broadcasts to it, or a number.
    casting: the rule under which the dtype may change; see can_cast.
    where: a mask that broadcasts to dst; elements where it is False keep their value.
    Raises TypeError if the cast is not allowed, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> x = np.zeros(3)
    >>> np.copyto(x, [1, 2, 3], where=[True, False, True])
    >>> x
    array([1., 0., 3.])
    """
    if not isinstance(dst, Array):
        raise fault(TypeError, f"copyto() argument 1 must be an array of nvm, not {type(dst).__name__}")
    if type(src) not in (int, float, complex):
        src = asarray(src)
        check_casts("copyto", src.dtype, dst.dtype, casting)
        src = src.astype(dst.dtype)
    else:
        check_casts("copyto", result_type(dst.dtype, src), dst.dtype, casting)
    if where is True:
        dst[...] = src
        return
    where = f["broadcast_to"](asarray(where), dst.shape)
    dst[...] = f["where"](where, asarray(src, dtype=dst.dtype), dst)


def astype(x, dtype, /, *, copy=True, device=None):
    """The values of an array in another dtype.

    x: an array of nvm.
    dtype: a dtype, or its name.
    copy: False returns x itself where it has the dtype.
    device: where the result lives; None: where x lives.
    Raises TypeError if x is no array of nvm.

    >>> import nvm.numpy as np
    >>> np.astype(np.array([1.7, -1.7]), int)
    array([ 1, -1])
    """
    if not isinstance(x, Array):
        raise fault(TypeError, f"Input should be an array of nvm. It is a {type(x).__name__} instead.")
    x = f["astype"](x, dtype_or_none(dtype), copy=copy)
    return x if device is None else x.to_device(device)


__all__ = public(globals())
