"""NumPy's universal functions that the library's table has no row for, composed of those that it has. All are lazy,
fuse, and can be traced; their bits are those of NumPy unless a docstring says otherwise."""

from . import _nvm
from ._array_api import finfo
from ._loops import while_loop

_f = _nvm.functions
_where, _abs, _isnan = _f["where"], _f["abs"], _f["isnan"]


def _real(x):
    """x as an array of real floats: what NumPy makes of an integer before such a function."""
    x = _nvm.asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"the function takes real numbers, not {x.dtype.name}")
    return x if x.dtype.kind == "f" else x.astype(_nvm.default_dtype())


def _pair(x, y):
    """Both operands as arrays of their common dtype."""
    x, y = _f["where"](True, x, y), _f["where"](True, y, x)
    return x, y


def deg2rad(x):
    """Degrees in radians."""
    return _real(x) * (3.141592653589793 / 180)


def rad2deg(x):
    """Radians in degrees."""
    return _real(x) * (180 / 3.141592653589793)


radians, degrees = deg2rad, rad2deg


def fabs(x):
    """The absolute value as a float."""
    return _abs(_real(x))


def rint(x):
    """The nearest integer, of two the even one, as a float."""
    x = _nvm.asarray(x)
    return _f["round"](x if x.dtype.kind == "c" else _real(x))


def signbit(x):
    """Is the sign bit set? That of -0.0 is."""
    x = _nvm.asarray(x)
    return _f["signbit"](x) if x.dtype.kind == "f" else x < 0 if x.dtype.kind == "i" else _f["not_equal"](x, x)


def reciprocal(x):
    """1 / x; of integers without the fraction, and 0 of 0."""
    x = _nvm.asarray(x)
    x = x.astype(_nvm.int8) if x.dtype.kind == "b" else x
    return _where(_abs(x) == 1, x, 0) if x.dtype.kind in "iu" else _f["reciprocal"](x)


def float_power(x, y):
    """x to the power y in float64, or complex128."""
    x, y = _pair(x, y)
    wide = _nvm.complex128 if x.dtype.kind == "c" else _nvm.float64
    return _f["pow"](x.astype(wide), y.astype(wide))


def divmod(x, y):
    """floor_divide and remainder."""
    return _f["floor_divide"](x, y), _f["remainder"](x, y)


def fmod(x, y):
    """The remainder with the sign of x, as C's fmod."""
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
    """The greater; the other one where one is NaN."""
    return _skip_nan(x, y, _f["maximum"])


def fmin(x, y):
    """The smaller; the other one where one is NaN."""
    return _skip_nan(x, y, _f["minimum"])


def heaviside(x, h):
    """0 where x is negative, 1 where it is positive, h where it is 0."""
    x, h = map(_real, _pair(x, h))
    return _where(_isnan(x), x, _where(x < 0, 0, _where(x > 0, 1, h)))


def logaddexp2(x, y):
    """log2(2**x + 2**y) without overflow on the way."""
    x, y = map(_real, _pair(x, y))
    more = _f["log1p"](_f["exp2"](-_abs(x - y))) * 1.4426950408889634
    return _where(x == y, x + 1, _f["maximum"](x, y) + more)


def ldexp(x, n):
    """x * 2**n, rounded once: the factors that are exact come first."""
    x, n = _real(x), _nvm.asarray(n)
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
    """(m, e) with x = m * 2**e and 0.5 <= |m| < 1; infinities, NaN and 0 are m."""
    x = _real(x)
    plain = _f["isfinite"](x) & (x != 0)
    safe = _where(plain, x, 1)
    e = _f["floor"](_f["log2"](_abs(safe))).astype(_nvm.int64) + 1
    m = ldexp(safe, -e)
    for off, back in ((_abs(m) >= 1, 1), (_abs(m) < 0.5, -1)):  # log2 is rounded
        m, e = _where(off, m * 2.0**-back, m), _where(off, e + back, e)
    return _where(plain, m, x), _where(plain, e, 0).astype(_nvm.int32)


def modf(x):
    """The fraction and the integer part, both with the sign of x."""
    x = _real(x)
    whole = _f["trunc"](x)
    return _f["copysign"](_where(_f["isinf"](x), 0, x - whole), x), whole


def spacing(x):
    """The distance to the next number away from 0, with the sign of x."""
    x = _real(x)
    gap = _f["nextafter"](_abs(x), float("inf")) - _abs(x)
    return _where(_f["isfinite"](x), _where(x < 0, -gap, gap), float("nan"))


def bitwise_count(x):
    """How many bits of |x| are set: uint8."""
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
    """The greatest common divisor of integers."""
    x, y = _integers("gcd", *_pair(x, y))

    def step(pair):
        a, b = pair
        return _where(b == 0, a, b), _where(b == 0, b, _f["remainder"](a, b))

    return while_loop(lambda pair: _f["any"](pair[1] != 0), step, (_abs(x), _abs(y)))[0]


def lcm(x, y):
    """The least common multiple of integers."""
    x, y = _integers("lcm", *_pair(x, y))
    return _f["floor_divide"](_abs(x), _f["maximum"](gcd(x, y), 1)) * _abs(y)


def matvec(x, v):
    """Matrices (..., m, n) times vectors (..., n)."""
    return _f["matmul"](x, _nvm.asarray(v)[..., None])[..., 0]


def vecmat(v, x):
    """Conjugated vectors (..., n) times matrices (..., n, m)."""
    return _f["matmul"](_f["conj"](_nvm.asarray(v))[..., None, :], x)[..., 0, :]
