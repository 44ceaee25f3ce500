"""Dtypes: NumPy's names for them, abstract kinds of them, promotion and limits. A name such as float64 is a dtype of
nvm, and called it makes an array of no dimensions: np.float64(3)."""

import math

from .. import _array_api as _base
from .. import _nvm
from ._support import Array, asarray, casts, fault, public, real_dtype

dtype = _nvm.DType  # as a class: isinstance(x.dtype, np.dtype)


class _Abstract(type):
    """An abstract kind of dtype: isinstance(x, np.integer) asks whether x is an array of no dimensions of that kind."""

    def __instancecheck__(cls, x):
        return isinstance(x, Array) and x.ndim == 0 and x.dtype.kind in cls._kinds

    def __call__(cls, *args):
        raise TypeError(f"[{cls.__name__}] is a kind of dtypes, which has no instances; np.float64 is a dtype")


class generic(metaclass=_Abstract):
    """Every dtype: the kind above all others, for issubdtype and isinstance.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.bool, np.generic), isinstance(np.float64(1), np.generic)
    (True, True)
    """

    _kinds = "biufc"


class number(generic):
    """Dtypes of numbers: all but bool.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.complex64, np.number), np.issubdtype(np.bool, np.number)
    (True, False)
    """

    _kinds = "iufc"


class integer(number):
    """Dtypes of integers, with a sign or without.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.uint8, np.integer), isinstance(np.int64(1), np.integer)
    (True, True)
    """

    _kinds = "iu"


class signedinteger(integer):
    """Dtypes of integers with a sign.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.int8, np.signedinteger), np.issubdtype(np.uint8, np.signedinteger)
    (True, False)
    """

    _kinds = "i"


class unsignedinteger(integer):
    """Dtypes of integers without a sign.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.uint8, np.unsignedinteger)
    True
    """

    _kinds = "u"


class inexact(number):
    """Dtypes of real and complex floating-point numbers.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.complex64, np.inexact), np.issubdtype(np.int64, np.inexact)
    (True, False)
    """

    _kinds = "fc"


class floating(inexact):
    """Dtypes of real floating-point numbers.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.float32, np.floating), np.issubdtype(np.complex64, np.floating)
    (True, False)
    """

    _kinds = "f"


class complexfloating(inexact):
    """Dtypes of complex numbers.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.complex64, np.complexfloating)
    True
    """

    _kinds = "c"


def _of(x):
    """The dtype of an array, a dtype, or a name of one."""
    return x.dtype if isinstance(x, Array) else _nvm.dtype(x)


def issubdtype(arg1, arg2):
    """Is a dtype of a kind, or is it another dtype?

    arg1: a dtype, its name, an array, or a kind such as np.floating.
    arg2: a kind, or a dtype.
    Returns a Python bool.
    Raises TypeError for what names no dtype.

    >>> import nvm.numpy as np
    >>> np.issubdtype(np.float32, np.floating), np.issubdtype("int64", np.float64)
    (True, False)
    """
    if isinstance(arg1, _Abstract):
        return isinstance(arg2, _Abstract) and issubclass(arg1, arg2)
    if isinstance(arg2, _Abstract):
        return _of(arg1).kind in arg2._kinds
    return _of(arg1) == _of(arg2)


def promote_types(type1, type2, /):
    """The dtype in which values of two dtypes meet.

    type1, type2: dtypes, or their names.
    Raises TypeError for what names no dtype.

    >>> import nvm.numpy as np
    >>> np.promote_types(np.int32, np.float32).name
    'float64'
    """
    return _base.result_type(_nvm.dtype(type1), _nvm.dtype(type2))


def result_type(*arrays_and_dtypes):
    """The dtype in which arrays, dtypes and Python numbers meet.

    arrays_and_dtypes: one or more of them; a Python number takes the dtype of the others, if its kind allows.
    Raises ValueError for no arguments, TypeError for what has no dtype.

    >>> import nvm.numpy as np
    >>> np.result_type(np.int8, 3).name, np.result_type(np.int8, 3.0).name
    ('int8', 'float64')
    """
    if not arrays_and_dtypes:
        raise fault(ValueError, "at least one array or dtype is required")
    return _base.result_type(*arrays_and_dtypes)


def can_cast(from_, to, casting="safe"):
    """May values of one dtype become values of another under a rule?

    from_: a dtype, its name, or an array.
    to: a dtype, or its name.
    casting: 'no' and 'equiv' allow the same dtype, 'safe' those that keep every value, 'same_kind' narrower ones of a
        kind too, 'unsafe' all.
    Returns a Python bool.
    Raises TypeError for a Python number, whose cast would depend on its value, ValueError for another rule.

    >>> import nvm.numpy as np
    >>> np.can_cast(np.int32, np.float64), np.can_cast(np.float64, np.float32)
    (True, False)
    >>> np.can_cast(np.float64, np.float32, "same_kind")
    True
    """
    if isinstance(from_, (int, float, complex)) and not hasattr(from_, "dtype"):
        raise fault(
            TypeError,
            f"can_cast() takes dtypes and arrays, not the number {from_!r}, whose cast would depend on its value",
        )
    return casts(from_.dtype if hasattr(from_, "dtype") else _nvm.dtype(from_), _nvm.dtype(to), casting)


def isdtype(dtype, kind):
    """Is a dtype of a kind, by the array API's names?

    dtype: a dtype.
    kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric', a
        dtype, or a tuple of these.
    Returns a Python bool.
    Raises ValueError for another name, TypeError for another object.

    >>> import nvm.numpy as np
    >>> np.isdtype(np.float32, "real floating"), np.isdtype(np.int8, (np.int8, np.int16))
    (True, True)
    """
    if isinstance(kind, (_Abstract, str, tuple)) or isinstance(kind, type(_nvm.float64)):
        if isinstance(kind, _Abstract):
            return issubdtype(dtype, kind)
        return _base.isdtype(dtype, kind)
    raise fault(TypeError, f"kind argument must be comprised of NumPy dtypes or strings only, but is a {type(kind)}.")


def min_scalar_type(a, /):
    """The smallest dtype that has the value of a number; of an array, its dtype.

    a: a number, or an array, whose dtype is returned unless it has no dimensions. Its value is needed.

    >>> import nvm.numpy as np
    >>> np.min_scalar_type(300).name, np.min_scalar_type(-1).name, np.min_scalar_type([1.0]).name
    ('uint16', 'int8', 'float64')
    """
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
    """The inexact dtype that arrays have in common.

    arrays: arrays of numbers; integers count as float64.
    Returns a dtype; float16 for no arrays.
    Raises TypeError for bool.

    >>> import nvm.numpy as np
    >>> np.common_type(np.ones(2, dtype=np.float32), np.ones(2, dtype=int)).name
    'float64'
    """
    if not arrays:
        return _nvm.float16
    types = [a.dtype if hasattr(a, "dtype") else asarray(a).dtype for a in arrays]
    if any(t.kind == "b" for t in types):
        raise fault(TypeError, "can't get common type for non-numeric array")
    return _base.result_type(*(_nvm.float64 if t.kind in "iu" else t for t in map(_nvm.dtype, types)))


class finfo:
    """The limits of a floating-point dtype, or of the parts of a complex one.

    dtype: a dtype, its name, or an array.
    Attributes: bits, eps, max, min, tiny, smallest_normal, smallest_subnormal, nmant, precision, resolution and others.
    Raises ValueError for another dtype.

    >>> import nvm.numpy as np
    >>> np.finfo(np.float32).eps, np.finfo(np.complex128).bits
    (1.1920928955078125e-07, 64)
    """

    def __init__(self, dtype):
        t = real_dtype(
            _of(dtype if isinstance(dtype, (Array, str, type)) or not hasattr(dtype, "dtype") else dtype.dtype)
        )
        if t.kind != "f":
            raise fault(ValueError, f"data type {t.name!r} not inexact")
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
    """The limits of an integer dtype.

    type: a dtype, its name, an array, or an integer, for int64.
    Attributes: bits, min, max, kind, dtype.
    Raises ValueError for another dtype.

    >>> import nvm.numpy as np
    >>> np.iinfo(np.int8).max, np.iinfo(np.uint8).min
    (127, 0)
    """

    def __init__(self, type):
        t = asarray(type).dtype if isinstance(type, int) and not isinstance(type, bool) else _of(type)
        if t.kind not in "iu":
            raise fault(ValueError, f"Invalid integer data type {t.kind!r}.")
        limits = _base.iinfo(t)
        self.dtype, self.kind, self.bits, self.min, self.max = t, t.kind, limits.bits, limits.min, limits.max

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"


def mintypecode(typechars, typeset="GDFgdf", default="d"):
    """The letter of the smallest dtype of a set to which dtypes can be cast.

    typechars: letters of dtypes, or arrays.
    typeset: letters of the dtypes that are allowed.
    default: the letter if none of the dtypes is in the set.

    >>> import nvm.numpy as np
    >>> np.mintypecode(["d", "f", "F"])
    'D'
    """
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
    """What a letter of a dtype stands for.

    char: a letter such as 'd', or '?' for bool.
    Returns a text.
    Raises KeyError for another letter.

    >>> import nvm.numpy as np
    >>> np.typename("d")
    'double precision'
    """
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
