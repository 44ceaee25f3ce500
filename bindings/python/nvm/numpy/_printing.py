"""How arrays and numbers are written as text."""

from .. import _print
from ._support import asarray, fault, public

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
    """How arrays are printed in this context.

    Returns a dict of the arguments of set_printoptions.

    >>> import nvm.numpy as np
    >>> np.get_printoptions()["precision"]
    8
    """
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
    """Says how arrays are printed from now on in this context (contextvars): in this thread, or this asynchronous task.

    precision: the greatest number of digits behind the point.
    threshold: arrays of more elements are shortened.
    edgeitems: to how many elements at each end of an axis.
    linewidth: the number of columns of a line.
    suppress: True writes small numbers without an exponent.
    nanstr, infstr, formatter, sign, floatmode, legacy, override_repr: of NumPy's signature, with one value each, which
        get_printoptions shows.
    None leaves an option as it is.
    Raises ValueError for another value of those with one, TypeError for what is no number.

    >>> import nvm.numpy as np
    >>> np.set_printoptions(precision=3)
    >>> np.array([1 / 3])
    array([0.333])
    >>> np.set_printoptions(precision=8)
    """
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
    """set_printoptions for a while: a context manager, which returns the options.

    The arguments and errors are those of set_printoptions.

    >>> import nvm.numpy as np
    >>> with np.printoptions(precision=2):
    ...     print(np.array([1 / 3]))
    [0.33]
    """
    return _Printing(args, kwargs)


def _written(write, a, width, precision, small):
    with printoptions(precision=precision, linewidth=width, suppress=small):
        return write(asarray(a))


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array with its dtype, as repr gives it.

    arr: an array, which is evaluated.
    max_line_width, precision, suppress_small: linewidth, precision and suppress of set_printoptions; None takes those
        that are set.

    >>> import nvm.numpy as np
    >>> np.array_repr(np.array([0.25, 1 / 3]), precision=2)
    'array([0.25, 0.33])'
    """
    return _written(repr, arr, max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text of the elements of an array, as str gives it.

    a: an array, which is evaluated.
    max_line_width, precision, suppress_small: those of array_repr.

    >>> import nvm.numpy as np
    >>> np.array_str(np.array([0.25, 1 / 3]), precision=2)
    '[0.25 0.33]'
    """
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
    """The text of the elements of an array, in a given form.

    a: an array, which is evaluated.
    max_line_width, precision, suppress_small, threshold, edgeitems: those of set_printoptions by other names; None
        takes those that are set.
    separator: what stands between elements.
    prefix, suffix: texts that will stand beside the result: lines are made shorter and moved in by them.
    formatter, sign, floatmode, legacy: None, or the one value that set_printoptions has for each; another raises
        ValueError.

    >>> import nvm.numpy as np
    >>> np.array2string(np.array([1, 2, 3]), separator=", ")
    '[1, 2, 3]'
    """
    options = {"threshold": threshold, "edgeitems": edgeitems, "sign": sign, "floatmode": floatmode, "legacy": legacy}
    options |= {"precision": precision, "linewidth": max_line_width, "suppress": suppress_small}
    with printoptions(formatter=formatter, **options):
        a = asarray(a)
        if not a.ndim:
            return str(a)
        return _print._body(a, prefix, suffix, separator) if a.size else "[]"


def binary_repr(num, width=None):
    """An integer as a text in base 2.

    num: the integer.
    width: the least number of digits; a negative integer becomes its two's complement of so many, or has a sign for
        None.
    Raises ValueError if the width is too small.

    >>> import nvm.numpy as np
    >>> np.binary_repr(5), np.binary_repr(-3, width=4)
    ('101', '1101')
    """
    num = num.__index__()
    if num >= 0 or width is None:
        text = bin(num).replace("0b", "")
        if num and width is not None and len(text) > width:
            raise fault(ValueError, f"Insufficient bit width={width} provided for binwidth={len(text)}")
        return text.zfill(width or 0)
    need = len(bin(-num - 1)) - 1
    if need > width:
        raise fault(ValueError, f"Insufficient bit width={width} provided for binwidth={need}")
    return bin(num & ((1 << width) - 1))[2:]


def base_repr(number, base=2, padding=0):
    """An integer as a text in a base.

    number: the integer.
    base: from 2 to 36.
    padding: how many zeros are put in front.
    Raises ValueError for another base.

    >>> import nvm.numpy as np
    >>> np.base_repr(255, base=16)
    'FF'
    """
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if not 2 <= base <= len(digits):
        raise fault(ValueError, f"Bases {'greater than 36' if base > 36 else 'less than 2'} not handled in base_repr.")
    rest, text = abs(int(number)), ""
    while rest:
        rest, digit = divmod(rest, base)
        text = digits[digit] + text
    text = "0" * padding + text
    return ("-" if number < 0 else "") + (text or "0")


__all__ = public(globals())
