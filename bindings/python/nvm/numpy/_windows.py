"""Windows of signals."""

import math

from .. import _nvm
from ._support import asarray, f, fault, inexact, public


def _cosines(M, *weights):
    """A sum of cosines at M points, symmetric; M is an integer or a float, as in NumPy."""
    if isinstance(M, complex) or hasattr(M, "dtype") and M.dtype.kind not in "biuf":
        raise fault(TypeError, f"a window's length is a real number, not {M!r}")
    if M < 1:
        return f["zeros"]((0,), dtype=_nvm.float64)
    if M == 1:
        return f["ones"]((1,), dtype=_nvm.float64)
    n = f["arange"](1 - M, M, 2, dtype=_nvm.float64)
    return sum((w * f["cos"](math.pi * k * n / (M - 1)) for k, w in enumerate(weights[1:], 1)), weights[0])


def hanning(M):
    """The Hann window: one period of a cosine, raised so that it begins and ends with 0.

    M: the number of points; none are returned for less than 1.
    Returns an array (M,) of float64, symmetric and at most 1.

    >>> import nvm.numpy as np
    >>> np.hanning(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _cosines(M, 0.5, 0.5)


def hamming(M):
    """The Hamming window: one period of a cosine, raised so that it begins and ends with 0.08.

    M: the number of points; none are returned for less than 1.
    Returns an array (M,) of float64, symmetric and at most 1.

    >>> import nvm.numpy as np
    >>> np.hamming(5)
    array([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _cosines(M, 0.54, 0.46)


def blackman(M):
    """The Blackman window: a sum of a constant and two cosines.

    M: the number of points; none are returned for less than 1.
    Returns an array (M,) of float64, symmetric and at most 1.

    >>> import nvm.numpy as np
    >>> np.blackman(5).round(2) + 0
    array([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    return _cosines(M, 0.42, 0.5, 0.08)


def bartlett(M):
    """The Bartlett window: a triangle that begins and ends with 0.

    M: the number of points; none are returned for less than 1.
    Returns an array (M,) of float64, symmetric and at most 1.

    >>> import nvm.numpy as np
    >>> np.bartlett(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    if M <= 1:
        return _cosines(M, 1.0)
    n = f["arange"](1 - M, M, 2, dtype=_nvm.float64)
    return f["where"](n <= 0, 1 + n / (M - 1), 1 - n / (M - 1))


# Chebyshev coefficients of exp(-x) I0(x) in t = x / 4 - 1 on [0, 8], and of sqrt(x) exp(-x) I0(x) in t = 16 / x - 1
# beyond
_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
)
_FAR = (
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
)


def _chebyshev(coefficients, t):
    """The sum of Chebyshev polynomials at t, by Clenshaw's recurrence."""
    b1 = b2 = 0 * t
    for c in coefficients[:0:-1]:
        b1, b2 = c + 2 * t * b1 - b2, b1
    return coefficients[0] + t * b1 - b2


def i0(x):
    """The modified Bessel function of the first kind and order 0.

    x: an array of real numbers.
    Returns an array of float64 for integers, else in the dtype of x.
    Raises TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.i0([0.0, 1.0])
    array([1.        , 1.26606588])
    """
    x = asarray(x)
    if x.dtype.kind == "c":
        raise fault(TypeError, f"i0 not supported for complex values: {x.dtype.name}")
    x = f["abs"](inexact(x))
    far = f["maximum"](x, 8)
    large = _chebyshev(_FAR, 16 / far - 1) / f["sqrt"](far)
    return f["exp"](x) * f["where"](x <= 8, _chebyshev(_NEAR, x / 4 - 1), large)


def kaiser(M, beta):
    """The Kaiser window, made of i0.

    M: the number of points; none are returned for less than 1.
    beta: the shape: 0 is a rectangle; larger ones make the main lobe wider and the side lobes lower.
    Returns an array (M,) of float64, symmetric and at most 1.

    >>> import nvm.numpy as np
    >>> np.kaiser(4, 14).round(4)
    array([0.    , 0.4627, 0.4627, 0.    ])
    """
    if M <= 1:
        return _cosines(M, 1.0)
    n = f["arange"](0, M, dtype=_nvm.float64)
    half = (M - 1) / 2
    return i0(beta * f["sqrt"](1 - ((n - half) / half) ** 2)) / i0(float(beta))


__all__ = public(globals())
