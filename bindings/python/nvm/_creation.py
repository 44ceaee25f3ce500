"""Functions that stand on the library's operations but return several arrays, need values, or take more than
attributes."""

from . import _nvm
from ._positions import positions

_f = _nvm.functions


def axis_of(who, axis, ndim):
    """The axis, counted from the first one."""
    if not -ndim <= axis < ndim:
        from .numpy.exceptions import AxisError

        raise AxisError(f"[{who}] axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim


def from_parts(re, im):
    """The complex array of two real ones. No arithmetic touches them: im * 1j would make NaN of an infinity."""
    x = re.astype(_nvm.complex128 if re.dtype == _nvm.float64 else _nvm.complex64)
    _f["imag"](x)[...] = im
    return x


def array(obj, dtype=None, *, copy=True, device=None):
    """An array of its own from data: asarray, but copying unless told otherwise (None: if needed, False: never).

    >>> import nvm
    >>> nvm.array([1, 2, 3])
    array([1, 2, 3])
    """
    return _nvm.asarray(obj, dtype=dtype, device=device, copy=copy)


def _plain(x):  # what the library's attributes hold
    return type(x) in (bool, float) or type(x) is int and -(2**63) <= x < 2**63


def _must_fit(x, dtype):  # an int in an integer dtype: OverflowError
    if type(x) is int and dtype is not None:
        _nvm.asarray(x, dtype=dtype)


def full(shape, fill_value, dtype=None, *, device=None):
    """One value everywhere; the value may be a number or a 0-d array.

    >>> import nvm
    >>> nvm.full(3, 7)
    array([7, 7, 7])
    """
    if _plain(fill_value):
        _must_fit(fill_value, dtype)
        return _f["full"](shape, fill_value, dtype=dtype, device=device)
    return _f["broadcast_to"](_nvm.asarray(fill_value, dtype=dtype, device=device), shape).copy()


def full_like(x, /, fill_value, dtype=None, *, device=None):
    """One value in the shape, and unless told otherwise the dtype, of x.

    >>> import nvm
    >>> nvm.full_like(nvm.asarray([1.5, 2.5]), 7)
    array([7., 7.])
    """
    x = _nvm.asarray(x)
    if _plain(fill_value):
        _must_fit(fill_value, dtype or x.dtype)
        return _f["full_like"](x, fill_value, dtype=dtype, device=device)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def empty(shape, dtype=None, *, device=None):
    """An array to be written to. (Its elements are zeros: nvm has no uninitialised memory.)

    >>> import nvm
    >>> nvm.empty((2, 3)).shape
    (2, 3)
    """
    return _f["zeros"](shape, dtype=dtype, device=device)


def empty_like(x, /, dtype=None, *, device=None):
    """An array to be written to, in the shape of x. (Its elements are zeros.)

    >>> import nvm
    >>> nvm.empty_like(nvm.arange(3)).dtype
    nvm.int64
    """
    return _f["zeros_like"](x, dtype=dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Numbers from start (alone: from 0 to start) in steps, up to stop and without it.

    >>> import nvm
    >>> nvm.arange(1, 10, 3)
    array([1, 4, 7])
    """
    ints = [v for v in (start, stop, step) if type(v) is int]
    if all(map(_plain, ints)) or len(ints) < 2 + (stop is not None):
        return _f["arange"](start, stop, step, dtype=dtype, device=device)
    places = range(0, start, step) if stop is None else range(start, stop, step)  # some lie beyond int64
    dtype = dtype or _nvm.uint64
    for end in places[:1], places[-1:]:
        _nvm.asarray(list(end), dtype=dtype)
    up = _f["arange"](len(places), dtype=_nvm.uint64, device=device) * abs(step)
    first = _nvm.asarray(places.start if step > 0 else places[-1:].start, dtype=_nvm.uint64)
    return (first + up if step > 0 else _f["flip"](first + up)).astype(dtype)


def round(x, /, decimals=0):
    """x rounded to so many decimals (negative: before the point), ties to even.

    >>> import nvm
    >>> nvm.round(nvm.asarray([1.256, -2.5]), 1)
    array([ 1.3, -2.5])
    """
    if not decimals:
        return _f["round"](x)
    x, scale = _nvm.asarray(x), 10 ** abs(decimals)
    if x.dtype.kind == "c":
        return from_parts(*(round(_f[part](x), decimals) for part in ("real", "imag")))
    if x.dtype.kind in "iu":
        return x if decimals > 0 else (_f["round"](x / scale) * scale).astype(x.dtype)
    return _f["round"](x * scale) / scale if decimals > 0 else _f["round"](x / scale) * scale


def _round_method(x, /, decimals=0, out=None):
    """The array rounded to so many decimals."""
    if out is None:
        return round(x, decimals)
    from . import numpy

    return numpy.round(x, decimals, out)


_nvm.Array.round = _round_method


def broadcast_shapes(*shapes):
    """The shape that these shapes broadcast to.

    >>> import nvm
    >>> nvm.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    n = max(map(len, shapes), default=0)
    out = [1] * n
    for s in shapes:
        for i, extent in enumerate(s, n - len(s)):
            if extent != 1 and out[i] not in (1, extent):
                raise ValueError("[broadcast_shapes] the shapes do not broadcast: " + ", ".join(map(str, shapes)))
            out[i] = extent if extent != 1 else out[i]
    return tuple(out)


def broadcast_arrays(*arrays):
    """The arrays, each repeated to their common shape: a tuple.

    >>> import nvm
    >>> [a.shape for a in nvm.broadcast_arrays(nvm.ones((3, 1)), nvm.ones(4))]
    [(3, 4), (3, 4)]
    """
    arrays = [_nvm.asarray(a) for a in arrays]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(_f["broadcast_to"](a, shape) for a in arrays)


def meshgrid(*arrays, indexing="xy"):
    """Coordinate arrays of a grid from one-dimensional coordinates: a tuple.

    >>> import nvm
    >>> [a.shape for a in nvm.meshgrid(nvm.arange(3), nvm.arange(2))]
    [(2, 3), (2, 3)]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing is 'xy' or 'ij', not {indexing!r}")
    arrays = [_nvm.asarray(a) for a in arrays]
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    shape = [1] * len(axes)
    for a, axis in zip(arrays, axes):
        shape[axis] = a.size
    columns = [a.reshape([-1 if d == axis else 1 for d in range(len(axes))]) for a, axis in zip(arrays, axes)]
    return tuple(_f["broadcast_to"](c, shape).copy() for c in columns)


def unstack(x, /, axis=0):
    """The slices of x along an axis: a tuple.

    >>> import nvm
    >>> nvm.unstack(nvm.asarray([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    x = _f["moveaxis"](x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def nonzero(x, /):
    """Positions of the elements that are not zero, an int64 array per dimension: a tuple. Needs the values.

    >>> import nvm
    >>> nvm.nonzero(nvm.asarray([0, 7, 0, 8]))
    (array([1, 3]),)
    """
    x = _nvm.asarray(x)
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    return positions(x if x.dtype == _nvm.bool else x != 0)


def _alone(name, condition):
    """where(condition): the positions of what is true, as NumPy has it; no other function is called so."""
    return nonzero(condition)


_nvm.Array.nonzero = nonzero
_nvm.hooks["alone"] = _alone


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis, n times. What is put before or behind x is an array, or a number.

    >>> import nvm
    >>> nvm.diff(nvm.asarray([1, 4, 9]))
    array([3, 5])
    """
    x = _nvm.asarray(x)
    if n < 0:
        raise ValueError("[diff] n must not be negative")
    axis = axis_of("diff", axis, x.ndim)
    end = x.shape[:axis] + (1,) + x.shape[axis + 1 :]
    parts = [_nvm.asarray(p) for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = _f["concat"]([p if p.ndim else _f["broadcast_to"](p, end) for p in parts], axis=axis)
    at = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[at + (slice(1, None),)], x[at + (slice(None, -1),)]
        x = later != earlier if x.dtype == _nvm.bool else later - earlier
    return x
