"""How arrays and numbers are written as text."""

from .. import _print
from ._support import asarray, public

_FIXED = {
    "nanstr": "nan",
    "infstr": "inf",
    "formatter": None,
    "sign": "-",
    "floatmode": "maxprec",
    "legacy": False,
    "override_repr": None,
}


def get_printoptions():
    """How arrays are printed: a dict."""
    return {**_print.OPTIONS.get(), **_FIXED}


def set_printoptions(
    precision=None,
    threshold=None,
    edgeitems=None,
    linewidth=None,
    suppress=None,
    nanstr=None,
    infstr=None,
    formatter=None,
    sign=None,
    floatmode=None,
    *,
    legacy=None,
    override_repr=None,
):
    """Says how arrays are printed: digits after the point, from what size on they are shortened, to how many elements
    at each edge, the width of a line, and whether small numbers go without an exponent. The other options have one
    value each; another is a ValueError. The options are those of the context (contextvars) that sets them: of this
    thread, or of this asynchronous task."""
    values = locals()
    for name, only in _FIXED.items():
        if values[name] is not None and values[name] != only:
            raise ValueError(f"[set_printoptions] {name} is {only!r} here, not {values[name]!r}")
    options = dict(_print.OPTIONS.get())
    for name in options:
        if values[name] is not None:
            if not isinstance(values[name], (int, float)) or values[name] != values[name]:
                raise TypeError(f"[set_printoptions] {name} must be a number, not {values[name]!r}")
            kind = {"threshold": lambda n: n, "suppress": bool}.get(name, int)
            options[name] = kind(values[name])
    _print.OPTIONS.set(options)


class _Printing:
    """Options for a while, as a context manager; they are set when it is entered."""

    def __init__(self, args, kwargs):
        self._given = args, kwargs

    def __enter__(self):
        self._before = _print.OPTIONS.get()
        args, kwargs = self._given
        set_printoptions(*args, **kwargs)
        return get_printoptions()

    def __exit__(self, *error):
        _print.OPTIONS.set(self._before)


def printoptions(*args, **kwargs):
    """set_printoptions for a while: a context manager."""
    return _Printing(args, kwargs)


def _written(write, a, width, precision, small):
    with printoptions(precision=precision, linewidth=width, suppress=small):
        return write(asarray(a))


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array with its dtype."""
    return _written(repr, arr, max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array's elements."""
    return _written(str, a, max_line_width, precision, suppress_small)


def array2string(
    a,
    max_line_width=None,
    precision=None,
    suppress_small=None,
    separator=" ",
    prefix="",
    *,
    formatter=None,
    threshold=None,
    edgeitems=None,
    sign=None,
    floatmode=None,
    suffix="",
    legacy=None,
):
    """The text of an array's elements, with a separator, beside a prefix and a suffix."""
    options = {"threshold": threshold, "edgeitems": edgeitems, "sign": sign, "floatmode": floatmode, "legacy": legacy}
    options |= {"precision": precision, "linewidth": max_line_width, "suppress": suppress_small}
    with printoptions(formatter=formatter, **options):
        a = asarray(a)
        if not a.ndim:
            return str(a)
        return _print._body(a, prefix, suffix, separator) if a.size else "[]"


def binary_repr(num, width=None):
    """An integer in binary; a negative one as its two's complement of a width."""
    num = num.__index__()
    if num >= 0 or width is None:
        text = bin(num).replace("0b", "")
        if num and width is not None and len(text) > width:
            raise ValueError(f"Insufficient bit width={width} provided for binwidth={len(text)}")
        return text.zfill(width or 0)
    need = len(bin(-num - 1)) - 1
    if need > width:
        raise ValueError(f"Insufficient bit width={width} provided for binwidth={need}")
    return bin(num & ((1 << width) - 1))[2:]


def base_repr(number, base=2, padding=0):
    """An integer in a base from 2 to 36."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if not 2 <= base <= len(digits):
        raise ValueError(f"Bases {'greater than 36' if base > 36 else 'less than 2'} not handled in base_repr.")
    rest, text = abs(int(number)), ""
    while rest:
        rest, digit = divmod(rest, base)
        text = digits[digit] + text
    text = "0" * padding + text
    return ("-" if number < 0 else "") + (text or "0")


__all__ = public(globals())
