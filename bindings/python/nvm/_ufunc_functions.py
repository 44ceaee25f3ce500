"""NumPy's universal functions that the library's table has no row for, composed of those that it has. All are lazy,
fuse, and can be traced; their bits are those of NumPy unless a docstring says otherwise."""

from . import _nvm
from ._array_api import finfo
from ._loops import while_loop

_f = _nvm.functions
_where, _abs, _isnan = _f["where"], _f["abs"], _f["isnan"]


def _real(who, x):
    """x as an array of real floats: what NumPy makes of an integer before such a function."""
    x = _nvm.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"[{who}] takes real numbers, not {x.dtype.name} of shape {x.shape}")
    return x if x.dtype.kind == "f" else x.astype(_nvm.default_dtype())


def _pair(x, y):
    """Both operands as arrays of their common dtype."""
    x, y = _f["where"](True, x, y), _f["where"](True, y, x)
    return x, y


def deg2rad(x):
    """Degrees in radians.

    x: an array of real numbers, or what asarray takes.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.deg2rad([0, 90, 180])
    array([0.        , 1.57079633, 3.14159265])
    """
    return _real("deg2rad", x) * (3.141592653589793 / 180)


def rad2deg(x):
    """Radians in degrees.

    x: an array of real numbers, or what asarray takes.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.rad2deg([0.0, np.pi])
    array([  0., 180.])
    """
    return _real("rad2deg", x) * (180 / 3.141592653589793)


radians, degrees = deg2rad, rad2deg


def fabs(x):
    """The absolute value of real numbers, as floats.

    x: an array of real numbers, or what asarray takes.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.fabs([-3, 2.5])
    array([3. , 2.5])
    """
    return _abs(_real("fabs", x))


def rint(x):
    """The nearest integer, of two equally near the even one, as floats.

    x: an array, or what asarray takes.
    Returns an array of floats: integers become float64.

    >>> import nvm.numpy as np
    >>> np.rint([0.5, 1.5, -1.2])
    array([ 0.,  2., -1.])
    """
    x = _nvm.asarray(x)
    return _f["round"](x if x.dtype.kind == "c" else _real("rint", x))


def signbit(x):
    """Is the sign bit set? It is that of negative numbers, and of -0.0.

    x: an array of real numbers, or what asarray takes.
    Returns an array of bool in the shape of x.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.signbit([-1.0, -0.0, 0.0])
    array([ True,  True, False])
    """
    x = _nvm.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"[signbit] complex numbers have no sign: {x.dtype.name}")
    return _f["signbit"](x) if x.dtype.kind == "f" else x < 0 if x.dtype.kind == "i" else _f["not_equal"](x, x)


def reciprocal(x):
    """1 / x.

    x: an array, or what asarray takes.
    Returns an array in the dtype of x; of integers without the fraction, with 0 for 0.

    >>> import nvm.numpy as np
    >>> np.reciprocal([0.5, 4.0])
    array([2.  , 0.25])
    """
    x = _nvm.asarray(x)
    x = x.astype(_nvm.int8) if x.dtype.kind == "b" else x
    return _where(_abs(x) == 1, x, 0) if x.dtype.kind in "iu" else _f["reciprocal"](x)


def float_power(x, y):
    """x1 to the power x2, computed in float64 or complex128.

    x1, x2: arrays or numbers that broadcast.
    Returns an array of float64, or complex128 if an operand is complex.
    Raises ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.float_power([2, 3], -1)
    array([0.5       , 0.33333333])
    """
    x, y = _pair(x, y)
    wide = _nvm.complex128 if x.dtype.kind == "c" else _nvm.float64
    return _f["pow"](x.astype(wide), y.astype(wide))


def divmod(x, y):
    """The quotient, rounded down, and the remainder: floor_divide and remainder.

    x1, x2: arrays or numbers, not complex, that broadcast.
    Returns a tuple of two arrays in the common dtype.
    Raises TypeError for complex numbers, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.divmod([7, -7], 3)
    (array([ 2, -3]), array([1, 2]))
    """
    return _f["floor_divide"](x, y), _f["remainder"](x, y)


def fmod(x, y):
    """The remainder of a division that is rounded towards 0, which has the sign of x1, as in C.

    x1, x2: arrays or numbers, not complex, that broadcast.
    Returns an array in the common dtype.
    Raises TypeError for complex numbers, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.fmod([7, -7], 3)
    array([ 1, -1])
    """
    x, y = _pair(x, y)
    if x.dtype.kind == "f":
        return _f["copysign"](_f["remainder"](_abs(x), _abs(y)), x)
    r = _f["remainder"](x, y)
    return r if x.dtype.kind != "i" else _where((r != 0) & ((r < 0) != (x < 0)), r - y, r)


def _skip_nan(x, y, extreme):
    x, y = _pair(x, y)
    r = extreme(x, y)
    return _where(_isnan(x), y, _where(_isnan(y), x, r)) if x.dtype.kind == "f" else r


def fmax(x, y):
    """The greater of two numbers; the other one where one is NaN.

    x1, x2: arrays or numbers that broadcast.
    Returns an array in the common dtype.
    Raises ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.fmax([1.0, np.nan], [0.0, 5.0])
    array([1., 5.])
    """
    return _skip_nan(x, y, _f["maximum"])


def fmin(x, y):
    """The smaller of two numbers; the other one where one is NaN.

    x1, x2: arrays or numbers that broadcast.
    Returns an array in the common dtype.
    Raises ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.fmin([1.0, np.nan], [0.0, 5.0])
    array([0., 5.])
    """
    return _skip_nan(x, y, _f["minimum"])


def heaviside(x, h):
    """The step function: 0 where x1 is negative, 1 where it is positive, x2 where it is 0.

    x1, x2: arrays or real numbers that broadcast.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.heaviside([-1.0, 0.0, 2.0], 0.5)
    array([0. , 0.5, 1. ])
    """
    x, h = (_real("heaviside", v) for v in _pair(x, h))
    return _where(_isnan(x), x, _where(x < 0, 0, _where(x > 0, 1, h)))


def logaddexp2(x, y):
    """log2(2**x1 + 2**x2), without overflow on the way.

    x1, x2: arrays or real numbers that broadcast.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.logaddexp2([3.0, 2000.0], [3.0, 2000.0])
    array([   4., 2001.])
    """
    x, y = (_real("logaddexp2", v) for v in _pair(x, y))
    more = _f["log1p"](_f["exp2"](-_abs(x - y))) * 1.4426950408889634
    return _where(x == y, x + 1, _f["maximum"](x, y) + more)


def ldexp(x, n):
    """x1 * 2**x2, rounded once.

    x1: an array of real numbers. x2: an array of integers that broadcasts with it.
    Returns an array of floats: integers become float64.
    Raises TypeError for complex numbers and other exponents than integers.

    >>> import nvm.numpy as np
    >>> np.ldexp([0.5, 3.0], [4, -1])
    array([8. , 1.5])
    """
    x, n = _real("ldexp", x), _nvm.asarray(n)
    if n.dtype.kind not in "biu":
        raise TypeError(f"[ldexp] the exponents are integers, not {n.dtype.name}")
    least = finfo(x.dtype)
    low = _exponent(least.smallest_normal)
    high, far = 1 - low, 5 * low
    n = _f["clip"](n.astype(_nvm.int64), far, -far)
    factors = []
    for _ in range(5):
        part = _f["clip"](n, low, high)
        factors.append(_f["exp2"](part.astype(x.dtype)))
        n = n - part
    for factor in reversed(factors):
        x = x * factor
    return x


def _exponent(power):  # of a power of two
    from math import frexp

    return frexp(power)[1] - 1


def frexp(x):
    """Numbers as x = m * 2**e with 0.5 <= |m| < 1.

    x: an array of real numbers; 0, infinities and NaN are m themselves, with e = 0.
    Returns (m, e): floats, and int32.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.frexp([8.0, 0.3])
    (array([0.5, 0.6]), array([ 4, -1], dtype=int32))
    """
    x = _real("frexp", x)
    plain = _f["isfinite"](x) & (x != 0)
    safe = _where(plain, x, 1)
    e = _f["floor"](_f["log2"](_abs(safe))).astype(_nvm.int64) + 1
    m = ldexp(safe, -e)
    for off, back in ((_abs(m) >= 1, 1), (_abs(m) < 0.5, -1)):  # log2 is rounded
        m, e = _where(off, m * 2.0**-back, m), _where(off, e + back, e)
    return _where(plain, m, x), _where(plain, e, 0).astype(_nvm.int32)


def modf(x):
    """The fraction and the integer part of numbers, both with the sign of x.

    x: an array of real numbers, or what asarray takes.
    Returns a tuple of two arrays of floats.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.modf([1.5, -2.25])
    (array([ 0.5 , -0.25]), array([ 1., -2.]))
    """
    x = _real("modf", x)
    whole = _f["trunc"](x)
    return _f["copysign"](_where(_f["isinf"](x), 0, x - whole), x), whole


def spacing(x):
    """The distance from a number to the next one of its dtype away from 0, with the sign of x.

    x: an array of real numbers, or what asarray takes.
    Returns an array of floats; NaN for infinities and NaN.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.spacing([1.0, -1e16])
    array([ 2.22044605e-16, -2.00000000e+00])
    """
    x = _real("spacing", x)
    gap = _f["nextafter"](_abs(x), float("inf")) - _abs(x)
    return _where(_f["isfinite"](x), _where(x < 0, -gap, gap), float("nan"))


def bitwise_count(x):
    """How many bits of |x| are set.

    x: an array of integers or bool.
    Returns an array of uint8 in the shape of x.
    Raises TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.bitwise_count([0, 7, -8])
    array([0, 3, 1], dtype=uint8)
    """
    x = _nvm.asarray(x)
    bits = (x if x.dtype.kind == "b" else _integers("bitwise_count", x)[0]).astype(_nvm.uint64)
    x = _where(x < 0, 0 - bits, bits) if x.dtype.kind == "i" else bits
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56).astype(_nvm.uint8)


def _integers(who, *arrays):
    for x in arrays:
        if x.dtype.kind not in "iu":
            raise TypeError(f"[{who}] takes integers, not {x.dtype.name}")
    return arrays


def gcd(x, y):
    """The greatest common divisor of integers, which is not negative.

    x1, x2: arrays of integers that broadcast.
    Returns an array in the common dtype.
    Raises TypeError for other dtypes, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.gcd([12, -8], 18)
    array([6, 2])
    """
    x, y = _integers("gcd", *_pair(x, y))

    def step(pair):
        a, b = pair
        return _where(b == 0, a, b), _where(b == 0, b, _f["remainder"](a, b))

    return while_loop(lambda pair: _f["any"](pair[1] != 0), step, (_abs(x), _abs(y)))[0]


def lcm(x, y):
    """The least common multiple of integers, which is not negative; 0 where one is 0.

    x1, x2: arrays of integers that broadcast.
    Returns an array in the common dtype.
    Raises TypeError for other dtypes, ValueError if the shapes do not broadcast.

    >>> import nvm.numpy as np
    >>> np.lcm([4, -6], 6)
    array([12,  6])
    """
    x, y = _integers("lcm", *_pair(x, y))
    return _f["floor_divide"](_abs(x), _f["maximum"](gcd(x, y), 1)) * _abs(y)


def matvec(x, v):
    """Matrices times vectors.

    x1: matrices (..., m, n). x2: vectors (..., n). The axes in front broadcast.
    Returns vectors (..., m) in the common dtype.
    Raises ValueError if the extents n differ.

    >>> import nvm.numpy as np
    >>> np.matvec([[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    """
    return _f["matmul"](x, _nvm.asarray(v)[..., None])[..., 0]


def vecmat(v, x):
    """Vectors, conjugated, times matrices.

    x1: vectors (..., n). x2: matrices (..., n, m). The axes in front broadcast.
    Returns vectors (..., m) in the common dtype.
    Raises ValueError if the extents n differ.

    >>> import nvm.numpy as np
    >>> np.vecmat([10, 1], [[1, 2], [3, 4]])
    array([13, 24])
    """
    return _f["matmul"](_f["conj"](_nvm.asarray(v))[..., None, :], x)[..., 0, :]
