"""pad, with NumPy's forms of widths and NumPy's modes. Each axis in turn is lengthened by pieces of the array, so that
everything stays lazy, and what lies in a corner is padding of padding."""

from operator import index

from . import _nvm
from ._creation import axis_of

_f = _nvm.functions
_MOST_PIECES = 16  # of one axis; more are one gather


def _listed(value):
    """Sequences and arrays as lists, a number as it is."""
    if isinstance(value, (list, tuple)):
        return [_listed(v) for v in value]
    if getattr(value, "ndim", 0) and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _pairs(name, value, ndim):
    """(before, after) for each axis: what broadcasts to (ndim, 2), and two numbers are a pair for every axis."""
    value = _listed(value)
    if not isinstance(value, list):
        return [(value, value)] * ndim
    rows = value if any(isinstance(v, list) for v in value) else [value]
    if all(isinstance(r, list) and len(r) in (1, 2) and not any(isinstance(v, list) for v in r) for r in rows):
        rows = [(r[0], r[-1]) for r in rows]
        if len(rows) == 1 or len(rows) == ndim:
            return rows * ndim if len(rows) == 1 else rows
    raise ValueError(
        f"[pad] {name} is a number, (before, after), or one of these for each of {ndim} axes, not {value!r}"
    )


def _width(value):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"[pad] pad_width has integers, not {value!r}")
    if index(value) < 0:
        raise ValueError(f"[pad] pad_width has {index(value)}, and widths cannot be negative")
    return index(value)


def _widths(pad_width, ndim):
    if isinstance(pad_width, dict):
        pairs = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            pairs[axis_of("pad", index(axis), ndim)] = _pairs("the width of an axis", width, 1)[0]
    else:
        pairs = _pairs("pad_width", pad_width, ndim)
    return [(_width(before), _width(after)) for before, after in pairs]


def _part(x, axis, start, stop, step=1):
    return x[(slice(None),) * axis + (slice(start, stop if stop >= 0 else None, step),)]


def _repeated(x, axis, n):
    """x, of extent 1 along the axis, n times."""
    return _f["broadcast_to"](x, x.shape[:axis] + (n,) + x.shape[axis + 1 :])


def _along(values, x, axis):
    """A list of integers along the axis, in x's dtype, where they wrap."""
    return _nvm.asarray(values).astype(x.dtype).reshape([-1 if d == axis else 1 for d in range(x.ndim)])


# ---- modes: what stands before x along an axis, and what stands behind it
def _constant(x, axis, before, after, values):
    def side(value, n):
        return _repeated(_f["broadcast_to"](_nvm.asarray(value, dtype=x.dtype), _part(x, axis, 0, 1).shape), axis, n)

    if x.shape[axis]:
        return side(values[axis][0], before), side(values[axis][1], after)
    empty = x.shape[:axis] + (1,) + x.shape[axis + 1 :]
    return tuple(
        _repeated(_f["broadcast_to"](_nvm.asarray(v, dtype=x.dtype), empty), axis, n)
        for v, n in zip(values[axis], (before, after))
    )


def _edge(x, axis, before, after):
    n = x.shape[axis]
    return _repeated(_part(x, axis, 0, 1), axis, before), _repeated(_part(x, axis, n - 1, n), axis, after)


def _ramp(edge, axis, n, end):
    """n numbers from the end value towards the edge, which is not among them."""
    wide = edge.astype(_nvm.complex128 if edge.dtype.kind == "c" else _nvm.float64)
    step = (wide - end) / max(n, 1)
    ramp = _along(list(range(n)), wide, axis) * step + end
    return (_f["floor"](ramp) if edge.dtype.kind in "iu" else ramp).astype(edge.dtype)


def _linear_ramp(x, axis, before, after, ends):
    n = x.shape[axis]
    left = _ramp(_part(x, axis, 0, 1), axis, before, ends[axis][0])
    return left, _f["flip"](_ramp(_part(x, axis, n - 1, n), axis, after, ends[axis][1]), axis=axis)


def _median(x, axis, keepdims):
    n, ordered = x.shape[axis], _f["sort"](x, axis=axis)
    middle = _f["mean"](_part(ordered, axis, (n - 1) // 2, n // 2 + 1), axis=axis, keepdims=keepdims)
    if x.dtype.kind != "f":
        return middle
    return _f["where"](_f["isnan"](_part(ordered, axis, n - 1, n)), float("nan"), middle)


_STATISTICS = {"maximum": _f["max"], "minimum": _f["min"], "mean": _f["mean"], "median": _median}


def _statistic(x, axis, before, after, lengths, mode):
    n, sides = x.shape[axis], []
    for length, width, first in zip(lengths[axis], (before, after), (True, False)):
        length = n if length is None else min(_width(length), n)
        if not length:
            raise ValueError("[pad] a stat_length of 0 leaves nothing to pad with")
        part = _part(x, axis, 0, length) if first else _part(x, axis, n - length, n)
        value = _STATISTICS[mode](part, axis=axis, keepdims=True)
        if x.dtype.kind in "iu" and value.dtype.kind == "f":
            value = _f["round"](value)
        sides.append(_repeated(value.astype(x.dtype), axis, width))
    return sides


def _places(lo, hi, n, period, mirrored):
    """(tile, first, behind, step) of the pieces of x that continue it from place lo to place hi."""
    for tile in range(lo // period, -(-hi // period)):
        first, behind = max(0, lo - tile * period), min(period, hi - tile * period)
        yield (tile, n - 1 - first, n - 1 - behind, -1) if mirrored and tile % 2 else (tile, first, behind, 1)


def _odd(piece, tile, first, last):
    """The piece turned about the ends of x as often as its tile lies away."""
    turns, away = tile // 2, 2 * (last - first)
    piece = 2 * last - piece if tile % 2 else piece
    return piece + away * _nvm.asarray([turns]).astype(piece.dtype) if turns else piece


def _continued(x, axis, lo, hi, period, mirrored, odd):
    n, places = x.shape[axis], list(_places(lo, hi, x.shape[axis], period, mirrored))
    first, last = _part(x, axis, 0, 1), _part(x, axis, n - 1, n)
    if len(places) <= _MOST_PIECES:
        pieces = [_part(x, axis, start, stop, step) for _, start, stop, step in places]
        return [_odd(p, at[0], first, last) if odd else p for p, at in zip(pieces, places)]
    taken = _f["take"](x, _nvm.asarray([i for _, *at in places for i in range(*at)]), axis=axis)
    if not odd:
        return [taken]
    tiles = [tile for tile, *at in places for _ in range(*at)]
    turned = _along([tile % 2 for tile in tiles], x, axis) != 0
    return [
        _f["where"](turned, 2 * last - taken, taken)
        + 2 * (last - first) * _along([tile // 2 for tile in tiles], x, axis)
    ]


def _periodic(x, axis, before, after, mode, odd=False):
    n = x.shape[axis]
    if n == 1 and mode == "reflect":  # there is nothing beside the edge
        return _edge(x, axis, before, after)
    period, mirrored = n - (mode == "reflect"), mode != "wrap"
    return tuple(
        _f["concat"](_continued(x, axis, lo, hi, period, mirrored, odd), axis=axis) if hi > lo else _part(x, axis, 0, 0)
        for lo, hi in ((-before, 0), (n, n + after))
    )


_OPTIONS = {
    "constant": ("constant_values", 0),
    "linear_ramp": ("end_values", 0),
    "reflect": ("reflect_type", "even"),
    "symmetric": ("reflect_type", "even"),
    "edge": (None, None),
    "wrap": (None, None),
    "empty": (None, None),
}
_OPTIONS.update((mode, ("stat_length", None)) for mode in _STATISTICS)


def _option(mode, options):
    """The value of the option that the mode has."""
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ValueError(f"[pad] unknown mode {mode!r}; modes are " + ", ".join(sorted(_OPTIONS)))
    name, default = _OPTIONS[mode]
    for given in options:
        if given != name:
            raise ValueError(f"[pad] mode '{mode}' has no option {given}" + (f"; it has {name}" if name else ""))
    return options.get(name, default)


def _sides(x, mode, option):
    """How an axis is lengthened: a function of x, axis, before and after."""
    if mode in ("constant", "linear_ramp"):
        values = _pairs(_OPTIONS[mode][0], option, x.ndim)
        return lambda *at: (_constant if mode == "constant" else _linear_ramp)(*at, values)
    if mode in _STATISTICS:
        lengths = _pairs("stat_length", option, x.ndim)
        return lambda *at: _statistic(*at, lengths, mode)
    if mode == "edge":
        return _edge
    if option not in (None, "even", "odd"):
        raise ValueError(f"[pad] reflect_type is 'even' or 'odd', not {option!r}")
    return lambda *at: _periodic(*at, mode, option == "odd")


def pad(x, /, pad_width, mode="constant", **options):
    """x with a margin. pad_width: one number, (before, after), one of these for each axis, or a dict of them by axis.
    The margin holds constant_values (mode 'constant'), a ramp to end_values ('linear_ramp'), the 'edge', the 'maximum',
    'minimum', 'mean' or 'median' of each line or of the stat_length elements next to it, or x again: mirrored about its
    outermost elements ('reflect') or its outer boundary ('symmetric'), with reflect_type='odd' negated too, or from its
    other end ('wrap'). 'empty' promises nothing of it.

    >>> import nvm
    >>> nvm.pad(nvm.asarray([1, 2]), (1, 2))
    array([0, 1, 2, 0, 0])
    """
    x = _nvm.asarray(x)
    option, widths = _option(mode, options), _widths(pad_width, x.ndim)
    if mode == "empty" or mode == "constant" and type(option) in (bool, int, float, complex):
        return _f["pad"](x, [n for pair in widths for n in pair], constant_values=option or 0)
    sides = _sides(x, mode, option)
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if not x.shape[axis] and mode != "constant":
            raise ValueError(f"[pad] axis {axis} has no elements, which only modes constant and empty lengthen")
        left, right = sides(x, axis, before, after)
        x = _f["concat"]([part for part, n in ((left, before), (x, 1), (right, after)) if n], axis=axis)
    return x
