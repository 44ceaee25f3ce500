"""What the array API standard asks of a namespace beside functions of arrays: constants, dtype functions,
inspection."""

import math

from . import _nvm
from ._device import devices, get_default_device

__array_api_version__ = "2025.12"
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None

DTYPES = tuple(
    getattr(_nvm, n)
    for n in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
    )
)
_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_STANDARD = tuple(t for t in DTYPES if not (t.kind == "f" and t.itemsize < 4))


def result_type(*arrays_and_dtypes):
    """The dtype that these arrays, dtypes and Python numbers give when they meet; the numbers are weak.

    >>> import nvm
    >>> nvm.result_type(nvm.int32, nvm.float32, 1.0)
    nvm.float64
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type needs at least one argument")
    typed, weak = [], []
    for x in arrays_and_dtypes:
        (weak if type(x) in (bool, int, float, complex) else typed).append(x)
    if not typed:
        best = max(weak, key=lambda x: (bool, int, float, complex).index(type(x)))
        return _nvm.asarray(best).dtype
    zeros = _nvm.functions["zeros"]
    acc = None
    for x in typed:
        z = zeros((), dtype=x.dtype if isinstance(x, _nvm.Array) else _dtype_of(x))
        acc = z if acc is None else _choose(acc, z)
    for x in weak:
        acc = _choose(acc, x)
    return acc.dtype


def _choose(a, b):  # the library promotes; nothing is computed
    return _nvm.functions["where"](True, a, b)


def _dtype_of(x):
    try:
        return _nvm.dtype(x)
    except TypeError:
        return _nvm.asarray(x).dtype


def can_cast(from_, to, /):
    """True if promotion alone leads from one dtype (or an array's) to the other.

    >>> import nvm
    >>> nvm.can_cast(nvm.int32, nvm.float64), nvm.can_cast(nvm.float64, nvm.float32)
    (True, False)
    """
    return result_type(from_, to) == _nvm.dtype(to)


def isdtype(dtype, kind):
    """Is the dtype of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex
    floating', 'numeric', a dtype, or a tuple of these.

    >>> import nvm
    >>> nvm.isdtype(nvm.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    t = _nvm.dtype(dtype)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"[isdtype] there is no kind {kind!r}; kinds are {', '.join(map(repr, _KINDS))}")
        return t.kind in _KINDS[kind]
    return t == kind


class _Limits:
    """What finfo and iinfo return."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __repr__(self):
        return "(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"

    def __eq__(self, other):
        return isinstance(other, _Limits) and self.__dict__ == other.__dict__


# fraction bits, exponent of the smallest normal number, greatest number in units of its power of two, that power
_FLOATS = {
    "float8_e4m3fn": (3, -6, 1.75, 8),
    "float8_e5m2": (2, -14, 1.75, 15),
    "float16": (10, -14, 2 - 2.0**-10, 15),
    "bfloat16": (7, -126, 2 - 2.0**-7, 127),
    "float32": (23, -126, 2 - 2.0**-23, 127),
    "float64": (52, -1022, 2 - 2.0**-52, 1023),
}


def _real_dtype(x):
    t = x.dtype if isinstance(x, _nvm.Array) else _nvm.dtype(x)
    return {"complex64": _nvm.float32, "complex128": _nvm.float64}.get(t.name, t)


def finfo(type, /):
    """Limits of a floating-point dtype (of the parts of a complex one).

    >>> import nvm
    >>> nvm.finfo(nvm.float32).max
    3.4028234663852886e+38
    """
    t = _real_dtype(type)
    if t.name not in _FLOATS:
        raise TypeError(f"finfo needs a floating-point dtype, not {t.name}")
    fraction, least, largest, top = _FLOATS[t.name]
    largest = math.ldexp(largest, top)
    return _Limits(
        bits=t.itemsize * 8, eps=2.0**-fraction, max=largest, min=-largest, smallest_normal=2.0**least, dtype=t
    )


def iinfo(type, /):
    """Limits of an integer dtype.

    >>> import nvm
    >>> nvm.iinfo(nvm.int8).max
    127
    """
    t = type.dtype if isinstance(type, _nvm.Array) else _nvm.dtype(type)
    if t.kind not in "iu":
        raise TypeError(f"iinfo needs an integer dtype, not {t.name}")
    bits = t.itemsize * 8
    sign = t.kind == "i"
    return _Limits(bits=bits, max=2 ** (bits - sign) - 1, min=-(2 ** (bits - 1)) if sign else 0, dtype=t)


class _Info:
    """What this namespace can do, as the standard's inspection functions tell it."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self):
        return get_default_device()

    def devices(self):
        return tuple(devices())

    def default_dtypes(self, *, device=None):
        real = _nvm.default_dtype()
        return {
            "real floating": real,
            "complex floating": _nvm.complex64 if real == _nvm.float32 else _nvm.complex128,
            "integral": _nvm.int64,
            "indexing": _nvm.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        return {t.name: t for t in _STANDARD if kind is None or isdtype(t, kind)}


def __array_namespace_info__():
    """What nvm has and can, in the form of the array API standard: an object with the methods capabilities,
    default_device, default_dtypes, devices and dtypes.

    >>> import nvm
    >>> nvm.__array_namespace_info__().default_dtypes()["real floating"]
    nvm.float64
    """
    return _Info()
