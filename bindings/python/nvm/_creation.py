"""Functions that stand on the library's operations but return several arrays, need values, or take more than
attributes."""
from . import _nvm

_f = _nvm.functions


def axis_of(who, axis, ndim):
    """The axis, counted from the first one."""
    if not -ndim <= axis < ndim:
        raise IndexError(f"[{who}] axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim


def array(obj, dtype=None, *, copy=True, device=None):
    """An array of its own from data: asarray, but copying unless told otherwise (None: if needed, False: never)."""
    return _nvm.asarray(obj, dtype=dtype, device=device, copy=copy)


def _plain(x):  # what the library's attributes hold
    return type(x) in (bool, float) or type(x) is int and -2 ** 63 <= x < 2 ** 63


def full(shape, fill_value, dtype=None, *, device=None):
    """One value everywhere; the value may be a number or a 0-d array."""
    if _plain(fill_value):
        return _f["full"](shape, fill_value, dtype=dtype, device=device)
    return _f["broadcast_to"](_nvm.asarray(fill_value, dtype=dtype, device=device), shape)


def full_like(x, /, fill_value, dtype=None, *, device=None):
    """One value in the shape, and unless told otherwise the dtype, of x."""
    if _plain(fill_value):
        return _f["full_like"](x, fill_value, dtype=dtype, device=device)
    x = _nvm.asarray(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def empty(shape, dtype=None, *, device=None):
    """An array to be written to. (Its elements are zeros: nvm has no uninitialised memory.)"""
    return _f["zeros"](shape, dtype=dtype, device=device)


def empty_like(x, /, dtype=None, *, device=None):
    """An array to be written to, in the shape of x. (Its elements are zeros.)"""
    return _f["zeros_like"](x, dtype=dtype, device=device)


def broadcast_shapes(*shapes):
    """The shape that these shapes broadcast to."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    n = max(map(len, shapes), default=0)
    out = [1] * n
    for s in shapes:
        for i, extent in enumerate(s, n - len(s)):
            if extent != 1 and out[i] not in (1, extent):
                raise ValueError("shapes cannot be broadcast together: " + ", ".join(map(str, shapes)))
            out[i] = extent if extent != 1 else out[i]
    return tuple(out)


def broadcast_arrays(*arrays):
    """The arrays, each repeated to their common shape: a tuple."""
    arrays = [_nvm.asarray(a) for a in arrays]
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return tuple(_f["broadcast_to"](a, shape) for a in arrays)


def meshgrid(*arrays, indexing="xy"):
    """Coordinate arrays of a grid from one-dimensional coordinates: a tuple."""
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing is 'xy' or 'ij'")
    arrays = [_nvm.asarray(a) for a in arrays]
    axes = list(range(len(arrays)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    shape = [1] * len(axes)
    for a, axis in zip(arrays, axes):
        shape[axis] = a.size
    columns = [a.reshape([-1 if d == axis else 1 for d in range(len(axes))]) for a, axis in zip(arrays, axes)]
    return tuple(_f["broadcast_to"](c, shape) for c in columns)


def unstack(x, /, axis=0):
    """The slices of x along an axis: a tuple."""
    x = _f["moveaxis"](x, axis, 0)
    return tuple(x[i] for i in range(x.shape[0]))


def nonzero(x, /):
    """Positions of the elements that are not zero, an int64 array per dimension: a tuple. Needs the values."""
    x = _nvm.asarray(x)
    if x.ndim == 0:
        raise ValueError("nonzero needs at least one dimension")
    return _nvm.positions(x if x.dtype == _nvm.bool else x != 0)


_nvm.Array.nonzero = nonzero


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Differences of neighbours along an axis, n times."""
    x = _nvm.asarray(x)
    parts = [_nvm.asarray(p) for p in (prepend, x, append) if p is not None]
    x = _f["concat"](parts, axis=axis) if len(parts) > 1 else x
    if n < 0:
        raise ValueError("[diff] n must not be negative")
    at = (slice(None),) * axis_of("diff", axis, x.ndim)
    for _ in range(n):
        later, earlier = x[at + (slice(1, None),)], x[at + (slice(None, -1),)]
        x = later != earlier if x.dtype == _nvm.bool else later - earlier
    return x
