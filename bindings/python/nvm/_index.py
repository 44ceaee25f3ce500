"""Indexing by integer arrays, lists and boolean masks; integers, slices, Ellipsis and None alone are handled in C.

An index array along one axis is a take; several become one take at their row-major positions. Masks need their values,
since the shape of the result depends on them. Writing through index arrays stores each element at its row-major
position; in a trace and on a GPU it makes the array anew, of what it was and of what the last index that leads to an
element puts there.
"""

from . import _nvm
from ._creation import broadcast_shapes
from ._positions import positions

_f = _nvm.functions


def _normal(who, x, key):
    """The key as a list of slices, None, integer arrays and bool masks, Ellipsis spelled out; one that stands for no
    dimension is left, since it still separates index arrays."""
    items = []
    for k in key if isinstance(key, tuple) else (key,):
        if isinstance(k, (list, bool)) or _nvm.has_buffer(k):
            empty, k = isinstance(k, list), _nvm.asarray(k)
            if empty and not k.size and k.dtype.kind == "f":  # x[[]]
                k = k.astype(_nvm.int64)
        if isinstance(k, _nvm.Array) and k.dtype == _nvm.bool:
            items.append(k)
        elif isinstance(k, _nvm.Array):
            if k.dtype.kind not in "iu":
                raise IndexError(f"[{who}] an index array has integers or bools, not {k.dtype.name}")
            items.append(k)
        elif k is None or k is Ellipsis or isinstance(k, slice):
            items.append(k)
        elif hasattr(k, "__index__"):
            items.append(_nvm.asarray(max(-(2**63), min(k.__index__(), 2**63 - 1))))
        else:
            raise IndexError(f"[{who}] {k!r} cannot index an array")
    used = sum(k.ndim if _is_mask(k) else 1 for k in items if k is not None and k is not Ellipsis)
    if used > x.ndim:
        raise IndexError(f"[{who}] too many indices: the array has {x.ndim} dimensions, {used} were indexed")
    spelled = [slice(None)] * (x.ndim - used)
    at = [i for i, k in enumerate(items) if k is Ellipsis]
    if len(at) > 1:
        raise IndexError(f"[{who}] an index can have one ellipsis (...) only")
    if not at:
        return items + spelled
    return items[: at[0]] + (spelled or [Ellipsis]) + items[at[0] + 1 :]


def _is_mask(k):
    return isinstance(k, _nvm.Array) and k.dtype == _nvm.bool


def _check(who, k, axis, extent):
    """What is out of range is an error now where the values are known, else when they are: before a write, indices are
    evaluated, so that the array keeps its value."""
    bad = _nvm.index_outside(k, extent, who == "setitem")
    if bad is None and who == "setitem" and not _nvm.tracing() and k.device.type != "cpu":
        bad = _outside_there(k, extent)
    if bad is not None:
        raise IndexError(f"[{who}] index {bad} is out of range for axis {axis} of extent {extent}")


def _outside_there(k, extent):
    """The first index of a GPU's that is out of range: one word of it is read."""
    outside = ((k < -extent) | (k >= extent)).reshape(-1)
    found = _f["any"](outside)
    _nvm.eval(k, found)
    return int(k.reshape(-1)[int(_f["argmax"](outside))]) if found else None


def _spread(who, x, items):
    """Integer arrays as they are, masks as one position array per dimension (a 0-d mask: of a dimension of its own, new
    in x), and the axis of each item as who indexes counts them; positions and shapes of masks are checked."""
    out, of, d, own = [], [], 0, 0
    for k in items:
        n = 0 if k is None or k is Ellipsis else 1
        if not _is_mask(k):
            if isinstance(k, _nvm.Array):
                _check(who, k, d - own, x.shape[d])
            out.append(k)
        else:
            if k.ndim == 0:
                x = _f["expand_dims"](x, axis=d)
                k = k.reshape(1)
                own += 1
            n = k.ndim
            of_x = x.shape[d : d + n]
            if len(of_x) < n or any(size not in (0, extent) for size, extent in zip(k.shape, of_x)):
                raise IndexError(f"[{who}] a mask of shape {k.shape} indexes dimensions of shape {of_x}")
            if k.device.type != "cpu" and k.device != x.device:  # if both were put where they are, it is an error
                _f["_getitem"](x, k.reshape(-1).astype(_nvm.int64), axis=0, of=0)
            out += positions(k)
        of += range(d - own, d - own + max(n, 1))
        d += n
    return x, out, of


def getitem(x, key, who="getitem"):
    x, items, of = _spread(who, x, _normal(who, x, key))
    take = _f["_" + who]
    arrays = [k for k in items if isinstance(k, _nvm.Array)]
    of = [i for k, i in zip(items, of) if isinstance(k, _nvm.Array)]
    at = [i for i, k in enumerate(items) if isinstance(k, _nvm.Array)]
    together = at[-1] - at[0] == len(at) - 1
    items = [k for k in items if k is not Ellipsis]
    y = x[tuple(slice(None) if isinstance(k, _nvm.Array) else k for k in items)]  # slices and None
    axes = [d for d, k in enumerate(items) if isinstance(k, _nvm.Array)]
    try:
        shape = broadcast_shapes(*(k.shape for k in arrays))
    except ValueError:
        shapes = ", ".join(str(k.shape) for k in arrays)
        raise IndexError(f"[{who}] index arrays of shapes {shapes} do not go together") from None
    rest = [d for d in range(y.ndim) if d not in axes]
    if len(axes) == 1:
        d = axes[0]
        taken = take(y, arrays[0].reshape(-1), axis=d, of=of[0])
        return taken.reshape(y.shape[:d] + shape + y.shape[d + 1 :])
    extents = [y.shape[d] for d in axes]
    flat = _f["permute_dims"](y, axes + rest).reshape([_product(extents)] + [y.shape[d] for d in rest])
    at = _linear(take, arrays, extents, of)
    picked = _f["take"](flat, _f["broadcast_to"](at, shape).reshape(-1), axis=0)
    picked = picked.reshape(shape + tuple(y.shape[d] for d in rest))
    if not together or axes[0] == 0:
        return picked
    n = len(shape)
    order = [n + i for i in range(axes[0])] + list(range(n)) + [n + i for i in range(axes[0], len(rest))]
    return _f["permute_dims"](picked, order)


def _product(extents):
    p = 1
    for n in extents:
        p *= n
    return p


def _linear(take, arrays, extents, of):
    """Row-major positions of index tuples, each index checked along its own axis."""
    position = 0
    for k, n, axis in zip(arrays, extents, of):
        position = position * n + take(_f["arange"](n), k, axis=0, of=axis)
    return position


def setitem(x, key, value):
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(mask, list) or _nvm.has_buffer(mask):
        mask = _nvm.asarray(mask)
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        value = _nvm.asarray(value, dtype=x.dtype)  # numbers must fit
    value = _nvm.asarray(value)
    if value.dtype.kind == "c" != x.dtype.kind:
        raise TypeError(
            f"[setitem] complex values cannot be stored in an array of {x.dtype.name}; take real(x) or abs(x)"
        )
    value = value.astype(x.dtype)
    if _is_mask(mask) and mask.shape == x.shape[: mask.ndim] and value.ndim == 0:
        x[...] = _f["where"](mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), value, x)
        return
    where, given = getitem(_f["arange"](x.size).reshape(x.shape), key, "setitem"), value.shape
    while value.ndim > where.ndim and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    if value.ndim:
        try:
            value = _f["broadcast_to"](value, where.shape).reshape(-1)
        except ValueError:
            raise ValueError(f"[setitem] a value of shape {given} does not broadcast to {where.shape}") from None
    where = where.reshape(-1)
    if where.size == 0:
        return
    value = _f["broadcast_to"](value, where.shape)
    last = _f["last_index"](where, size=x.size)
    written = _f["take"](value, _f["maximum"](last, 0))
    x[...] = _f["where"](last < 0, x.reshape(-1), written).reshape(x.shape)


def iterate(x):
    if x.ndim == 0:
        raise TypeError("iteration over a 0-dimensional array")
    return (x[i] for i in range(x.shape[0]))


def iterate_back(x):
    return iterate(x[::-1] if x.ndim else x)


_nvm.hooks.update(getitem=getitem, setitem=setitem, iter=iterate, reversed=iterate_back)
