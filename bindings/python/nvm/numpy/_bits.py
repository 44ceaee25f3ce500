"""Bits packed into bytes, and memory that arrays share."""

from .. import _nvm
from ._shapes import moveaxis
from ._support import asarray, f, fault, one_axis, public


def _weights(bitorder):
    if bitorder not in ("big", "little"):
        raise fault(ValueError, f"'bitorder' must be either 'little' or 'big', not {bitorder!r}")
    places = f["arange"](8) if bitorder == "little" else f["arange"](7, -1, -1)
    return f["bitwise_left_shift"](asarray(1), places)


def _along(x, axis):
    """(the array with the axis last, how to put it back): flattened for None."""
    if axis is None:
        return x.reshape(-1), lambda y: y
    axis = one_axis(axis, x.ndim)
    return moveaxis(x, axis, -1), lambda y: moveaxis(y, -1, axis)


def packbits(a, /, axis=None, bitorder="big"):
    """Truth values packed into bytes, eight in each.

    a: an array of bool or integers, of which 0 is False.
    axis: an axis, or None for the flattened array.
    bitorder: 'big' puts the first of eight into the highest bit, 'little' into the lowest.
    Returns an array of uint8; the last byte along the axis is filled with zeros.
    Raises TypeError for other dtypes, ValueError for another order, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.packbits([1, 0, 0, 0, 0, 0, 1, 1])
    array([131], dtype=uint8)
    """
    a, weights = asarray(a), _weights(bitorder)
    if a.dtype.kind not in "biu":
        raise fault(TypeError, f"Expected an input array of integer or boolean data type, not {a.dtype.name}")
    x, back = _along(a, axis)
    n = x.shape[-1]
    count = -(-n // 8)
    bits = f["pad"](x != 0, [(0, 0)] * (x.ndim - 1) + [(0, count * 8 - n)]).reshape((*x.shape[:-1], count, 8))
    return back(f["sum"](f["where"](bits, weights, 0), axis=-1).astype(_nvm.uint8))


def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    """The bits of bytes, as bytes of 0 and 1.

    a: an array of uint8.
    axis: an axis, or None for the flattened array.
    count: how many bits of the axis: fewer are cut off, more are zeros; a negative count leaves out so many at the end.
        None: all.
    bitorder: 'big' puts the highest bit of a byte first, 'little' the lowest.
    Returns an array of uint8.
    Raises TypeError for other dtypes, ValueError for another order, and AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.unpackbits(np.array([131], dtype=np.uint8))
    array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    a, weights = asarray(a), _weights(bitorder)
    if a.dtype != _nvm.uint8:
        raise fault(TypeError, f"Expected an input array of unsigned byte data type, not {a.dtype.name}")
    x, back = _along(a, axis)
    bits = (f["bitwise_and"](x[..., None].astype(_nvm.int64), weights) != 0).astype(_nvm.uint8)
    bits = bits.reshape((*x.shape[:-1], x.shape[-1] * 8))
    n = bits.shape[-1]
    if count is None:
        return back(bits)
    if count < -n:
        raise fault(ValueError, f"-count larger than number of elements: {-count} of {n}")
    bits = bits[..., :count]
    return back(f["pad"](bits, [(0, 0)] * (x.ndim - 1) + [(0, max(count - n, 0))]))


def shares_memory(a, b, /, max_work=-1):
    """Have two arrays an element in common, so that a write to one changes the other?

    a, b: arrays of nvm.
    max_work: of NumPy's signature.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> x = np.arange(10)
    >>> np.shares_memory(x[:6], x[5:]), np.shares_memory(x[::2], x[1::2])
    (True, False)
    """
    return _nvm.shares_memory(a, b)


def may_share_memory(a, b, /, max_work=0):
    """May two arrays have an element in common? Only the ranges of memory that they span are compared.

    a, b: arrays of nvm.
    max_work: of NumPy's signature.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> x = np.arange(10)
    >>> np.may_share_memory(x[::2], x[1::2])
    True
    """
    return _nvm.may_share_memory(a, b)


__all__ = public(globals())
