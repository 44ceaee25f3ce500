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
    one_axis,
    product,
    public,
    shape_of,
)


def shape(a):
    """The shape: a tuple."""
    return a.shape if isinstance(a, Array) else asarray(a).shape


def ndim(a):
    """The number of dimensions."""
    return a.ndim if isinstance(a, Array) else asarray(a).ndim


def size(a, axis=None):
    """The number of elements, or of slices along an axis or several."""
    extents = shape(a)
    if axis is None:
        return product(extents)
    return product(extents[d] for d in axes_of(axis, len(extents), "axis"))


def reshape(a, /, shape, order="C", *, copy=None):
    """The elements in another shape; order 'F' reads and fills with the first axis fastest."""
    a, shape = asarray(a), shape_of(shape)
    if check_order(order, "CFA") == "F":
        columns = f["reshape"](f["permute_dims"](a, range(a.ndim)[::-1]), shape[::-1])
        return f["permute_dims"](columns, range(len(shape))[::-1])
    return f["reshape"](a, shape, copy=copy)


def ravel(a, order="C"):
    """The elements in one dimension; 'A' and 'K' are 'C', since an array has no order in memory that could be seen."""
    return reshape(a, -1, "F" if check_order(order) == "F" else "C")


def transpose(a, axes=None):
    """The axes in another order: backwards, or as axes says."""
    a = asarray(a)
    if axes is None:
        return f["permute_dims"](a, range(a.ndim)[::-1])
    axes = shape_of(axes)
    if len(axes) != a.ndim:
        raise ValueError(f"axes {axes} don't match array of shape {a.shape}")
    return f["permute_dims"](a, axes_of(axes, a.ndim))


permute_dims = transpose


def matrix_transpose(x, /):
    """The last two axes exchanged."""
    x = asarray(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return f["matrix_transpose"](x)


def swapaxes(a, axis1, axis2):
    """Two axes exchanged."""
    a = asarray(a)
    order = list(range(a.ndim))
    axis1, axis2 = one_axis(axis1, a.ndim, "axis1"), one_axis(axis2, a.ndim, "axis2")
    order[axis1], order[axis2] = axis2, axis1
    return f["permute_dims"](a, order)


def moveaxis(a, source, destination):
    """Axes moved to other places; the others keep their order."""
    a = asarray(a)
    source, destination = axes_of(source, a.ndim, "source"), axes_of(destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [d for d in range(a.ndim) if d not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return f["permute_dims"](a, order)


def rollaxis(a, axis, start=0):
    """An axis moved before the one that stands at start."""
    a = asarray(a)
    axis = one_axis(axis, a.ndim)
    start = operator.index(start)
    if not -a.ndim <= start <= a.ndim:
        one_axis(start, a.ndim + 1, "start")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, axis, start - 1 if axis < start else start)


def expand_dims(a, axis):
    """New axes of extent 1 where axis says, in the result."""
    a = asarray(a)
    n = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = axes_of(axis, n)
    old = iter(a.shape)
    return f["reshape"](a, [1 if d in axes else next(old) for d in range(n)])


def squeeze(a, axis=None):
    """Without the axes of extent 1, or without those given."""
    a = asarray(a)
    axes = [d for d in range(a.ndim) if a.shape[d] == 1] if axis is None else axes_of(axis, a.ndim)
    if any(a.shape[d] != 1 for d in axes):
        raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one: {axis} of {a.shape}")
    return f["reshape"](a, [n for d, n in enumerate(a.shape) if d not in axes])


def _at_least(arys, widen):
    results = [widen(asarray(a)) for a in arys]
    return results[0] if len(results) == 1 else tuple(results)


def atleast_1d(*arys):
    """The arrays with at least one dimension: an array, or a tuple of several."""
    return _at_least(arys, lambda a: a if a.ndim else a.reshape(1))


def atleast_2d(*arys):
    """The arrays with at least two dimensions: an array, or a tuple of several."""
    return _at_least(arys, lambda a: a if a.ndim > 1 else a.reshape(1, a.size))


def atleast_3d(*arys):
    """The arrays with at least three dimensions: an array, or a tuple of several."""
    return _at_least(arys, lambda a: a.reshape(1, -1, 1) if a.ndim < 2 else a[:, :, None] if a.ndim == 2 else a)


def flip(m, axis=None):
    """The elements backwards along all axes or those given."""
    m = asarray(m)
    axes = axes_of(axis, m.ndim)
    return f["flip"](m, axis=axes) if axes else m


def fliplr(m):
    """Columns backwards: along the second axis."""
    m = asarray(m)
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return f["flip"](m, axis=1)


def flipud(m):
    """Rows backwards: along the first axis."""
    m = asarray(m)
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return f["flip"](m, axis=0)


def rot90(m, k=1, axes=(0, 1)):
    """Turned by k quarters in the plane of two axes, from the first to the second."""
    m, axes = asarray(m), tuple(axes)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if axes[0] == axes[1] or abs(axes[0] - axes[1]) == m.ndim:
        raise ValueError("Axes must be different.")
    if any(not -m.ndim <= a < m.ndim for a in axes):
        raise ValueError(f"Axes={axes} out of range for array of ndim={m.ndim}.")
    k %= 4
    if k == 2:
        return f["flip"](m, axis=axes_of(axes, m.ndim))
    if k == 1:
        m = f["flip"](m, axis=axes[1])
    turned = swapaxes(m, *axes) if k else m
    return f["flip"](turned, axis=axes[1]) if k == 3 else turned


def roll(a, shift, axis=None):
    """Elements moved along axes, those that leave at the end coming in at the front."""
    a = asarray(a)
    if axis is None:
        shift = shift if isinstance(shift, int) else sum(shape_of(shift))
        return f["roll"](a.reshape(-1), shift).reshape(a.shape)
    shifts, axes = shape_of(shift), axes_of(axis, a.ndim, repeated=True)
    n = max(len(shifts), len(axes))
    if len(shifts) not in (1, n) or len(axes) not in (1, n):
        raise ValueError(f"'shift' and 'axis' should be scalars or 1D sequences that broadcast: {shift}, {axis}")
    shifts, axes = shifts * (n // len(shifts)), axes * (n // len(axes))
    for by, axis in zip(shifts, axes):
        a = f["roll"](a, by, axis=axis)
    return a


def tile(A, reps):
    """The array repeated as a whole, so often along each axis."""
    A, reps = asarray(A), shape_of(reps)
    if any(n < 0 for n in reps):
        raise ValueError(f"negative dimensions are not allowed: {reps}")
    return f["tile"](A, (1,) * (A.ndim - len(reps)) + reps) if A.ndim or reps else A.copy()


def repeat(a, repeats, axis=None):
    """Each element repeated, equally or as often as an array says."""
    a = asarray(a)
    a = a if a.ndim else a.reshape(1)
    axis = None if axis is None else one_axis(axis, a.ndim)
    return _order.repeat(a, repeats if isinstance(repeats, int) else asarray(repeats), axis=axis)


def resize(a, new_shape):
    """The array in another shape, its elements repeated or cut off."""
    a, new_shape = asarray(a).reshape(-1), shape_of(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    n = product(new_shape)
    if not n or not a.size:
        return f["zeros"](new_shape, dtype=a.dtype)
    return f["tile"](a, (-(-n // a.size),))[:n].reshape(new_shape)


def pad(array, pad_width, mode="constant", **kwargs):
    """The array with more elements around it; the mode says what they are."""
    return _pad.pad(asarray(array), pad_width, mode, **kwargs)


def broadcast_to(array, shape, subok=False):
    """The array repeated to a shape."""
    return f["broadcast_to"](asarray(array), shape_of(shape))


def broadcast_arrays(*args, subok=False):
    """The arrays repeated to their common shape: a tuple."""
    arrays = [asarray(a) for a in args]
    common = _creation.broadcast_shapes(*(a.shape for a in arrays))
    return tuple(f["broadcast_to"](a, common) for a in arrays)


def broadcast_shapes(*args):
    """The shape that these shapes broadcast to."""
    return _creation.broadcast_shapes(*map(shape_of, args))


def copyto(dst, src, casting="same_kind", where=True):
    """Values of an array written to another, where a mask says so."""
    if not isinstance(dst, Array):
        raise TypeError(f"copyto() argument 1 must be an array of nvm, not {type(dst).__name__}")
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
    """The values in another dtype."""
    if not isinstance(x, Array):
        raise TypeError(f"Input should be an array of nvm. It is a {type(x).__name__} instead.")
    x = f["astype"](x, dtype_or_none(dtype), copy=copy)
    return x if device is None else x.to_device(device)


__all__ = public(globals())
