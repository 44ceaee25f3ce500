"""Where a mask is true. What a GPU holds stays there: one number is read, on which the shape of the result depends."""

from . import _nvm

_f = _nvm.functions
_FEW = 1 << 20  # elements whose positions are listed while they are counted: at most 8 MiB


def positions(mask):
    """An int64 array per dimension, in row-major order: a tuple."""
    if mask.device.type == "cpu" or _nvm.tracing():
        return _nvm.positions(mask)
    flat = mask.reshape(-1)
    found = _positions_there(flat) if mask.size else flat.astype(_nvm.int64)
    out, apart = [], 1
    for n in reversed(mask.shape):
        out.append((found // apart) % n if mask.size and mask.ndim > 1 else found)
        apart *= n
    _nvm.eval(*out)
    return tuple(reversed(out))


def _positions_there(flat):
    """Counts first, unless the mask is small. Few sizes of a list occur, so that its plan is known the next time."""
    n, ones = flat.size, _f["sum"](flat)
    listed = _f["_flatnonzero"](flat, size=n) if n <= _FEW else flat
    _nvm.eval(listed, ones)
    count = int(ones)
    if n > _FEW:
        step = 1 << max(count.bit_length() - 3, 0)
        listed = _f["_flatnonzero"](flat, size=min(n, -(-count // step) * step)).eval()
    return listed[:count]  # of what has a value: a view
