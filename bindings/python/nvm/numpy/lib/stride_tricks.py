"""nvm.numpy.lib.stride_tricks: sliding windows as expressions, which fuse with what reads them."""

from .._support import asarray, axes_of, f, shape_of, take_axis

__all__ = ["sliding_window_view"]
_SLICES = 16  # windows of so many elements are stacked slices; longer ones are gathered, a few ns for an element
_INSTEAD = {
    "as_strided": "an array of nvm has no strides of its own: sliding_window_view, broadcast_to and slices with steps "
    "are the views that it was for"
}


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """All windows of a shape in an array: an expression, which fuses with what reads it.

    x: an array, or what asarray takes.
    window_shape: the extents of a window, an integer or a tuple.
    axis: the axes along which it moves, one for each extent; None: all.
    subok, writeable: of NumPy's signature; writeable=True raises ValueError.
    Returns an array whose last axes are those of a window; an axis of n elements has n - w + 1 windows of w.
    Raises ValueError for a window larger than the array, or another number of extents, AxisError where there is no such
        axis.

    >>> import nvm.numpy as np
    >>> np.lib.stride_tricks.sliding_window_view([1, 2, 3, 4], 3)
    array([[1, 2, 3],
           [2, 3, 4]])
    """
    x, window = asarray(x), shape_of(window_shape)
    if any(n < 0 for n in window):
        raise ValueError("`window_shape` cannot contain negative values")
    if writeable:
        raise ValueError("[sliding_window_view] windows share elements, so they are not written to: writeable=False")
    axes = axes_of(axis, x.ndim, repeated=True)
    if len(axes) != len(window):
        raise ValueError(f"[sliding_window_view] {len(window)} extents of a window for {len(axes)} axes of {x.shape}")
    for d, n in zip(axes, window):
        if n > x.shape[d]:
            raise ValueError(
                f"window shape cannot be larger than input array shape: {window} along {axes} of {x.shape}"
            )
        x = _windows(x, d, n)
    return x


def _windows(x, axis, n):
    """The windows of n elements along an axis, whose elements come last."""
    count = x.shape[axis] - n + 1
    if 0 < n <= _SLICES:
        return f["stack"]([take_axis(x, slice(r, r + count), axis) for r in range(n)], axis=-1)
    at = f["arange"](count)[:, None] + f["arange"](n)
    return f["moveaxis"](take_axis(x, at, axis), axis + 1, -1)


def __getattr__(name):
    from ..._names import missing

    raise missing(name, __all__, "nvm.numpy.lib.stride_tricks", _INSTEAD) from None
