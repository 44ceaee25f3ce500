"""Dtypes: NumPy's names for them, abstract kinds of them, promotion and limits. A name such as float64 is a dtype of
nvm, and called it makes an array of no dimensions: np.float64(3)."""

import math

from .. import _array_api as _base
from .. import _nvm
from ._support import Array, asarray, casts, public, real_dtype

dtype = _nvm.DType  # as a class: isinstance(x.dtype, np.dtype)


class _Abstract(type):
    """An abstract kind of dtype: isinstance(x, np.integer) asks whether x is an array of no dimensions of that kind."""

    def __instancecheck__(cls, x):
        return isinstance(x, Array) and x.ndim == 0 and x.dtype.kind in cls._kinds


class generic(metaclass=_Abstract):
    """Every dtype."""

    _kinds = "biufc"


class number(generic):
    """Dtypes of numbers."""

    _kinds = "iufc"


class integer(number):
    """Dtypes of integers."""

    _kinds = "iu"


class signedinteger(integer):
    """Dtypes of integers with a sign."""

    _kinds = "i"


class unsignedinteger(integer):
    """Dtypes of integers without a sign."""

    _kinds = "u"


class inexact(number):
    """Dtypes of real and complex floating-point numbers."""

    _kinds = "fc"


class floating(inexact):
    """Dtypes of real floating-point numbers."""

    _kinds = "f"


class complexfloating(inexact):
    """Dtypes of complex numbers."""

    _kinds = "c"


def _of(x):
    """The dtype of an array, a dtype, or a name of one."""
    return x.dtype if isinstance(x, Array) else _nvm.dtype(x)


def issubdtype(arg1, arg2):
    """Is the first dtype of the second's kind, or the same?"""
    if isinstance(arg1, _Abstract):
        return isinstance(arg2, _Abstract) and issubclass(arg1, arg2)
    if isinstance(arg2, _Abstract):
        return _of(arg1).kind in arg2._kinds
    return _of(arg1) == _of(arg2)


def promote_types(type1, type2, /):
    """The dtype to which both can be cast safely."""
    return _base.result_type(_nvm.dtype(type1), _nvm.dtype(type2))


def result_type(*arrays_and_dtypes):
    """The dtype that these arrays, dtypes and Python numbers give when they meet; the numbers are weak."""
    if not arrays_and_dtypes:
        raise ValueError("at least one array or dtype is required")
    return _base.result_type(*arrays_and_dtypes)


def can_cast(from_, to, casting="safe"):
    """May values of one dtype become values of another under a rule?"""
    if isinstance(from_, (int, float, complex)) and not hasattr(from_, "dtype"):
        raise TypeError(
            f"can_cast() takes dtypes and arrays, not the number {from_!r}, whose cast would depend on its value"
        )
    return casts(from_.dtype if hasattr(from_, "dtype") else _nvm.dtype(from_), _nvm.dtype(to), casting)


def isdtype(dtype, kind):
    """Is the dtype of a kind of the array API, such as 'integral'?"""
    if isinstance(kind, (_Abstract, str, tuple)) or isinstance(kind, type(_nvm.float64)):
        if isinstance(kind, _Abstract):
            return issubdtype(dtype, kind)
        return _base.isdtype(dtype, kind)
    raise TypeError(f"kind argument must be comprised of NumPy dtypes or strings only, but is a {type(kind)}.")


def min_scalar_type(a, /):
    """The smallest dtype that has the value of a number; the dtype of an array."""
    x = asarray(a)
    if x.ndim or x.dtype.kind == "b":
        return x.dtype
    if x.dtype.kind in "iu":
        names = "uint8 uint16 uint32 uint64" if x.item() >= 0 else "int8 int16 int32 int64"
        return next(t for t in map(_nvm.dtype, names.split()) if _fits_integer(x.item(), t))
    if x.dtype.kind == "c":
        parts = [min_scalar_type(part) for part in (x.item().real, x.item().imag)]
        return _nvm.complex64 if max(p.itemsize for p in parts) < 8 else _nvm.complex128
    value = abs(x.item())
    size = 16 if value < 65000 or not math.isfinite(value) else 32 if value < 3.4e38 else 64
    return min(_nvm.dtype(f"float{size}"), x.dtype, key=lambda t: t.itemsize)


def _fits_integer(value, t):
    limits = _base.iinfo(t)
    return limits.min <= value <= limits.max


def common_type(*arrays):
    """The inexact dtype that these arrays have in common; that of integers is float64."""
    if not arrays:
        return _nvm.float16
    types = [a.dtype if hasattr(a, "dtype") else asarray(a).dtype for a in arrays]
    if any(t.kind == "b" for t in types):
        raise TypeError("can't get common type for non-numeric array")
    return _base.result_type(*(_nvm.float64 if t.kind in "iu" else t for t in map(_nvm.dtype, types)))


class finfo:
    """Limits of a floating-point dtype (of the parts of a complex one): finfo(dtype, or an array)."""

    def __init__(self, dtype):
        t = real_dtype(
            _of(dtype if isinstance(dtype, (Array, str, type)) or not hasattr(dtype, "dtype") else dtype.dtype)
        )
        if t.kind != "f":
            raise ValueError(f"data type {t.name!r} not inexact")
        limits = _base.finfo(t)
        self.dtype, self.bits, self.eps = t, limits.bits, limits.eps
        self.max, self.min = limits.max, limits.min
        self.smallest_normal = self.tiny = limits.smallest_normal
        self.nmant = round(-math.log2(limits.eps))
        self.minexp, self.maxexp = math.frexp(limits.smallest_normal)[1] - 1, math.frexp(limits.max)[1]
        self.iexp = self.nexp = limits.bits - self.nmant - 1
        self.machep, self.negep, self.epsneg = -self.nmant, -self.nmant - 1, limits.eps / 2
        self.smallest_subnormal = limits.smallest_normal * limits.eps
        self.precision = int(self.nmant * math.log10(2))
        self.resolution = 10.0**-self.precision

    def __repr__(self):
        return f"finfo(resolution={self.resolution}, min={self.min!r}, max={self.max!r}, dtype={self.dtype.name})"


class iinfo:
    """Limits of an integer dtype: iinfo(dtype, or an integer)."""

    def __init__(self, type):
        t = asarray(type).dtype if isinstance(type, int) and not isinstance(type, bool) else _of(type)
        if t.kind not in "iu":
            raise ValueError(f"Invalid integer data type {t.kind!r}.")
        limits = _base.iinfo(t)
        self.dtype, self.kind, self.bits, self.min, self.max = t, t.kind, limits.bits, limits.min, limits.max

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


def mintypecode(typechars, typeset="GDFgdf", default="d"):
    """The code of the least dtype of a set to which all of these can be cast."""
    codes = [t if isinstance(t, str) else (t if hasattr(t, "dtype") else asarray(t)).dtype.char for t in typechars]
    inside = {c for c in codes if c in typeset}
    if not inside:
        return default
    if "F" in inside and "d" in inside:
        return "D"
    return min(inside, key="GDFgdfehilqHILQbB?".index)


_TYPE_NAMES = {
    "?": "bool",
    "b": "signed char",
    "B": "unsigned char",
    "h": "short",
    "H": "unsigned short",
    "i": "integer",
    "I": "unsigned integer",
    "l": "long integer",
    "L": "unsigned long integer",
    "q": "long long integer",
    "Q": "unsigned long long integer",
    "f": "single precision",
    "d": "double precision",
    "F": "complex single precision",
    "D": "complex double precision",
}


def typename(char):
    """A description of the dtype with a code."""
    return _TYPE_NAMES[char]


NAMES = (  # NumPy's other names of dtypes
    "bool_ byte ubyte short ushort intc uintc int_ uint long ulong longlong ulonglong intp uintp half single double "
    "csingle cdouble"
).split()
globals().update((name, _nvm.dtype(name)) for name in NAMES)
True_, False_ = True, False
sctypeDict = {t.name: t for t in _base.DTYPES} | {name: globals()[name] for name in NAMES}
ScalarType = (int, float, complex, bool, *_base.DTYPES)
typecodes = {
    "Integer": "bhilqp",
    "UnsignedInteger": "BHILQP",
    "Float": "efd",
    "Complex": "FD",
    "AllInteger": "bBhHiIlLqQpP",
    "AllFloat": "efdFD",
    "All": "?bhilqpBHILQPefdFD",
}
little_endian = True  # as every machine that nvm is built for

__all__ = (
    public(globals()) + NAMES + ["False_", "ScalarType", "True_", "dtype", "little_endian", "sctypeDict", "typecodes"]
)
