"""Where a mask is true. What a GPU holds stays there: one word is read, since the shape of the result depends on it."""

from . import _nvm

_f = _nvm.functions


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
    """Each element goes to its place in a list of those that are true, behind which lie the others."""
    n = flat.shape[0]
    narrow = _nvm.int32 if n < 2**31 else _nvm.int64
    before = _f["cumulative_sum"](flat, dtype=narrow)
    _nvm.eval(flat, before)
    count = int(before[n - 1])
    place = _f["where"](flat, before - 1, count + _f["arange"](n, dtype=narrow) - before)
    return _f["last_index"](place, size=n)[:count]
