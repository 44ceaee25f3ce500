"""Reductions with NumPy's where= and initial=, as ordinary expressions: what the mask leaves out becomes the identity
of the reduction, and the first value is merged with the result. All of it fuses, and it can be traced."""

from . import _nvm

_f = _nvm.functions
_IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True}
_MERGE = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _mask(name, x, where):
    """The mask in the shape of x; None if everything is selected."""
    if where is None or where is True:
        return None
    where = _nvm.asarray(where)
    if where.dtype != _nvm.bool:
        raise TypeError(f"[{name}] where must be a mask of bool, not {where.dtype.name}")
    try:
        return _f["broadcast_to"](where, shape=x.shape)
    except ValueError:
        raise ValueError(f"[{name}] where of shape {where.shape} does not broadcast to the array's {x.shape}") from None


def _extreme(name, x, where, initial, axes):
    if initial is None:
        raise ValueError(
            f"[{name}] what a mask selects of {x.dtype.name} {x.shape} may be nothing, which has no "
            f"{name}: give initial="
        )
    if not x.size:
        return _f["full"](_f["any"](x, **axes).shape, initial, dtype=x.dtype)
    return _f[_MERGE[name]](_f[name](x if where is None else _f["where"](where, x, initial), **axes), initial)


def _fold(name, x, where, initial, given):
    if where is not None:
        x = _f["where"](where, x, _nvm.asarray(_IDENTITY[name], dtype=x.dtype))
    r = _f[name](x, **given)
    return r if initial is None else _f[_MERGE[name]](r, initial)


def _mean(x, where, lost, axes):
    """The mean, over the number of selected elements less `lost`, which is no less than 0."""
    count = _f["maximum"](_f["sum"](where, **axes) - lost, 0)
    return _f["sum"](_f["where"](where, x, 0), **axes) / count.astype(_f["real"](x).dtype)


def _average(name, x, where, axes, correction):
    """Means and variances: those of 16 bits in float32, of integers and bool in the default float."""
    dtype = _f["mean"](_f["zeros"]((1,), dtype=x.dtype)).dtype
    x = x.astype(_nvm.float32 if dtype.itemsize == 2 else dtype)
    if name == "mean":
        return _mean(x, where, 0, axes).astype(dtype)
    if dtype.kind == "c":
        raise TypeError(f"[{name}] a real dtype, not {dtype.name}")
    kept = {**axes, "keepdims": True}
    deviation = x - _mean(x, where, 0, kept)
    deviation = deviation - _mean(deviation, where, 0, kept)  # what the mean lacks after rounding
    r = _mean(deviation * deviation, where, correction, axes)
    return (_f["sqrt"](r) if name == "std" else r).astype(dtype)


def masked(name, x, initial=None, where=None, **given):
    """The reduction `name` of what `where` selects of x, from `initial` on; given: its other arguments."""
    x = _nvm.asarray(x)
    where = _mask(name, x, where)
    axes = {key: given[key] for key in ("axis", "keepdims") if key in given}
    if name in ("max", "min"):
        return _extreme(name, x, where, initial, axes)
    if where is None or name in _IDENTITY:
        return _fold(name, x, where, initial, given)
    return _average(name, x, where, axes, given.get("correction", 0))


_nvm.hooks["masked"] = masked
