"""nvm.numpy.polynomial.polynomial: power series as arrays of coefficients, the lowest power first."""

import operator
import warnings

from ... import _nvm, linalg
from .._creation import diag
from .._math import convolve
from .._sorting import sort
from .._support import asarray, axes_of, f, inexact
from ..exceptions import RankWarning
from ._class import Polynomial  # noqa: F401 # a name for others
from .polyutils import as_series, one_series, point, trimcoef, trimseq

__all__ = (
    "polyadd polycompanion polyder polydiv polydomain polyfit polyfromroots polygrid2d polygrid3d polyint polyline "
    "polymul polymulx polyone polypow polyroots polysub polytrim polyval polyval2d polyval3d polyvalfromroots "
    "polyvander polyvander2d polyvander3d polyx polyzero Polynomial"
).split()
polytrim = trimcoef
polydomain, polyzero, polyone, polyx = asarray([-1.0, 1.0]), asarray([0]), asarray([1]), asarray([0, 1])


def polyline(off, scl):
    """The coefficients of a straight line.

    off, scl: numbers: the line is off + scl * x.
    Returns an array (2,), or (1,) if scl is 0.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyline(1, 2)
    array([1, 2])
    """
    return asarray([off, scl] if scl != 0 else [off])


def polyfromroots(roots):
    """The series with given roots whose highest coefficient is 1.

    roots: an array (n,), real or complex.
    Returns coefficients (n + 1,), the lowest power first.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyfromroots([1, -1])
    array([-1.,  0.,  1.])
    """
    if asarray(roots).size == 0:
        return f["ones"]((1,))
    (roots,) = as_series([roots], trim=False)
    one, made = f["ones"]((1,), dtype=roots.dtype), f["ones"]((1,), dtype=roots.dtype)
    for r in sort(roots):
        made = convolve(made, f["concat"]([-r.reshape(1), one]))
    return made


def _sum(c1, c2, combine):
    a, b = as_series([c1, c2])
    n = max(a.size, b.size)
    a, b = (f["pad"](x, [(0, n - x.size)]) for x in (a, b))
    return trimseq(combine(a, b))


def polyadd(c1, c2):
    """The sum of two series.

    c1, c2: coefficients of one dimension, the lowest power first.
    Returns an array of floats without zeros at its end.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyadd([1, 2], [3, 0, 1])
    array([4., 2., 1.])
    """
    return _sum(c1, c2, f["add"])


def polysub(c1, c2):
    """The difference of two series.

    c1, c2: coefficients of one dimension, the lowest power first.
    Returns an array of floats without zeros at its end.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polysub([3, 0, 1], [1, 2])
    array([ 2., -2.,  1.])
    """
    return _sum(c1, c2, f["subtract"])


def polymulx(c):
    """A series multiplied by its argument.

    c: coefficients of one dimension, the lowest power first.
    Returns an array of floats with one element more; the series 0 stays as it is.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polymulx([1, 2])
    array([0., 1., 2.])
    """
    (c,) = as_series([c])
    if c.size == 1 and not bool(c[0] != 0):
        return c
    return f["concat"]([c[:1] * 0, c])


def polymul(c1, c2):
    """The product of two series.

    c1, c2: coefficients of one dimension, the lowest power first.
    Returns an array of floats without zeros at its end.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polymul([1, 2], [1, -2])
    array([ 1.,  0., -4.])
    """
    a, b = as_series([c1, c2])
    return trimseq(convolve(a, b))


def polydiv(c1, c2):
    """The quotient of two series, and the remainder.

    c1, c2: coefficients of one dimension, the lowest power first. They are evaluated.
    Returns (quotient, remainder), arrays of floats.
    Raises ZeroDivisionError for the series 0, ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polydiv([-1, 0, 1], [1, 1])
    (array([-1.,  1.]), array([0.]))
    """
    a, b = as_series([c1, c2])
    rest, divisor = a.tolist(), b.tolist()
    if divisor[-1] == 0:
        raise ZeroDivisionError("[polydiv] division by the series 0")
    quotient = []
    for k in range(len(rest) - len(divisor), -1, -1):
        quotient.insert(0, rest[k + len(divisor) - 1] / divisor[-1])
        for i, d in enumerate(divisor):
            rest[k + i] -= quotient[0] * d
        rest.pop()
    return asarray(quotient or [0.0]).astype(a.dtype), trimseq(asarray(rest or [0.0]).astype(a.dtype))


def polypow(c, pow, maxpower=None):
    """A power of a series.

    c: coefficients of one dimension, the lowest power first.
    pow: the exponent, an integer that is not negative.
    maxpower: the greatest exponent that is allowed; None: any.
    Returns an array of floats.
    Raises ValueError for other exponents, and coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polypow([1, 1], 3)
    array([1., 3., 3., 1.])
    """
    (c,) = as_series([c])
    power = int(pow)
    if power != pow or power < 0:
        raise ValueError("Power must be a non-negative integer.")
    if maxpower is not None and power > maxpower:
        raise ValueError("Power is too large")
    made = f["ones"]((1,), dtype=c.dtype)
    for _ in range(power):
        made = convolve(made, c)
    return made


def _steps(m, what):
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"The order of {what} must be non-negative")
    return m


def polyder(c, m=1, scl=1, axis=0):
    """A derivative of series along an axis.

    c: coefficients, the lowest power first.
    m: which derivative.
    scl: what each derivative is multiplied by.
    axis: the axis of powers.
    Returns an array of floats whose axis has m elements fewer, but one at least.
    Raises ValueError for a negative m, AxisError where there is no such axis.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyder([1, 2, 3])
    array([2., 6.])
    """
    c, m = one_series(c, "polyder"), _steps(m, "derivation")
    (axis,) = axes_of(operator.index(axis), c.ndim)
    c = f["moveaxis"](c, axis, 0)
    for _ in range(m):
        n = c.shape[0]
        powers = f["arange"](1, max(n, 2), dtype=f["real"](c).dtype).reshape(-1, *[1] * (c.ndim - 1))
        c = c[1:] * powers * scl if n > 1 else c[:1] * 0
    return f["moveaxis"](c, 0, axis)


def polyint(c, m=1, k=[], lbnd=0, scl=1, axis=0):  # noqa: B006 # NumPy's signature
    """An integral of series along an axis.

    c: coefficients, the lowest power first.
    m: how often it is integrated.
    k: the constants: a number, or one for each time.
    lbnd: where the integral begins.
    scl: what each integral is multiplied by.
    axis: the axis of powers.
    Returns an array of floats whose axis has m elements more.
    Raises ValueError for a negative m, or too many constants, AxisError where there is no such axis.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyint([1, 2])
    array([0., 1., 1.])
    """
    c, m = one_series(c, "polyint"), _steps(m, "integration")
    k = list(k) if hasattr(k, "__iter__") else [k]
    if len(k) > m:
        raise ValueError("Too many integration constants")
    if getattr(lbnd, "ndim", 0) or getattr(scl, "ndim", 0):
        raise ValueError("lbnd and scl must be scalars.")
    (axis,) = axes_of(operator.index(axis), c.ndim)
    k += [0] * (m - len(k))
    c = f["moveaxis"](c, axis, 0)
    for i in range(m):
        n = c.shape[0]
        c = c * scl
        if n == 1 and not bool(f["any"](c[0] != 0)):
            c = c + k[i]
            continue
        powers = f["arange"](1, n + 1, dtype=f["real"](c).dtype).reshape(-1, *[1] * (c.ndim - 1))
        c = f["concat"]([c[:1] * 0, c / powers], axis=0)
        first = k[i] - polyval(lbnd, c)
        c = f["concat"]([(c[0] + first)[None], c[1:]], axis=0)
    return f["moveaxis"](c, 0, axis)


def polyval(x, c, tensor=True):
    """The values of series.

    x: where: an array of any shape.
    c: coefficients, the lowest power first along the first axis; the others number several series.
    tensor: True gives each series' values at all x; False broadcasts x with the other axes of c.
    Returns an array with the other axes of c, then those of x.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyval([2, 3], [1, 0, 1])
    array([ 5., 10.])
    """
    c = one_series(c, "polyval")
    x = point(x)
    if tensor and getattr(x, "ndim", 0):
        c = c.reshape(*c.shape, *[1] * x.ndim)
    value = c[-1] + x * 0
    for i in range(2, c.shape[0] + 1):
        value = c[-i] + value * x
    return value


def polyvalfromroots(x, r, tensor=True):
    """The values of the series with given roots whose highest coefficient is 1.

    x: where: an array of any shape.
    r: roots along the first axis; the others number several series.
    tensor: that of polyval.
    Returns an array with the other axes of r, then those of x.
    Raises ValueError for tensor=False unless r has more dimensions than x.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyvalfromroots([0, 3], [1, -1])
    array([-1.,  8.])
    """
    r, x = one_series(r, "polyvalfromroots"), asarray(x)
    if tensor:
        r = r.reshape(*r.shape, *[1] * x.ndim)
    elif x.ndim >= r.ndim:
        raise ValueError("x.ndim must be < r.ndim when tensor == False")
    return f["prod"](x - r, axis=0)


def _points(*args):
    args = [asarray(a) for a in args]
    if any(a.shape != args[0].shape for a in args):
        raise ValueError("x, y, z are incompatible" if len(args) == 3 else "x, y are incompatible")
    return args


def _evaluated(points, c):
    first, *others = points
    c = polyval(first, c)
    for x in others:
        c = polyval(x, c, tensor=False)
    return c


def polyval2d(x, y, c):
    """The values of a series in two variables at points of a plane.

    x, y: the coordinates, arrays of one shape.
    c: coefficients: element (i, j) is that of x**i y**j; further axes number several series.
    Returns an array with the further axes of c, then those of x.
    Raises ValueError if x and y have different shapes.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyval2d([1, 2], [3, 4], [[0, 1], [1, 0]])
    array([4., 6.])
    """
    return _evaluated(_points(x, y), c)


def polyval3d(x, y, z, c):
    """The values of a series in three variables at points of space.

    x, y, z: the coordinates, arrays of one shape.
    c: coefficients: element (i, j, k) is that of x**i y**j z**k; further axes number several series.
    Returns an array with the further axes of c, then those of x.
    Raises ValueError if x, y and z have different shapes.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyval3d([1, 2], [3, 4], [5, 6], [[[1, 1]]])
    array([6., 7.])
    """
    return _evaluated(_points(x, y, z), c)


def polygrid2d(x, y, c):
    """The values of a series in two variables at all points of a grid.

    x, y: the coordinates along each axis.
    c: coefficients: element (i, j) is that of x**i y**j; further axes number several series.
    Returns an array with the further axes of c, then those of x, then those of y.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polygrid2d([1, 2], [3, 4], [[0, 1], [1, 0]])
    array([[4., 5.],
           [5., 6.]])
    """
    for p in (x, y):
        c = polyval(p, c)
    return c


def polygrid3d(x, y, z, c):
    """The values of a series in three variables at all points of a grid.

    x, y, z: the coordinates along each axis.
    c: coefficients: element (i, j, k) is that of x**i y**j z**k; further axes number several series.
    Returns an array with the further axes of c, then those of x, of y and of z.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polygrid3d([1], [2], [3, 4], [[[1, 1]]])
    array([[[4., 5.]]])
    """
    for p in (x, y, z):
        c = polyval(p, c)
    return c


def polyvander(x, deg):
    """The powers of points, up to a degree.

    x: an array of any shape.
    deg: the highest power.
    Returns an array of floats with a last axis for the powers 0 to deg.
    Raises ValueError for a negative degree.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyvander([2, 3], 2)
    array([[1., 2., 4.],
           [1., 3., 9.]])
    """
    deg = operator.index(deg)
    if deg < 0:
        raise ValueError("deg must be non-negative")
    x = inexact(asarray(x))
    x = x.reshape(1) if x.ndim == 0 else x
    powers = [x * 0 + 1]
    for _ in range(deg):
        powers.append(powers[-1] * x)
    return f["stack"](powers, axis=-1)


def _products(points, deg):
    points = _points(*points)
    if len(deg) != len(points):
        raise ValueError(f"Expected {len(points)} dimensions of degrees, got {len(deg)}")
    made = polyvander(points[0], deg[0])
    for x, d in zip(points[1:], deg[1:]):
        made = (made[..., None] * polyvander(x, d)[..., None, :]).reshape(*made.shape[:-1], -1)
    return made


def polyvander2d(x, y, deg):
    """The products of powers of two coordinates, up to two degrees.

    x, y: arrays of one shape.
    deg: the highest powers (of x, of y).
    Returns an array of floats with a last axis for the products, the power of y fastest.
    Raises ValueError for different shapes, or another number of degrees.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyvander2d([2], [3], [1, 1])
    array([[1., 3., 2., 6.]])
    """
    return _products((x, y), deg)


def polyvander3d(x, y, z, deg):
    """The products of powers of three coordinates, up to three degrees.

    x, y, z: arrays of one shape.
    deg: the highest powers (of x, of y, of z).
    Returns an array of floats with a last axis for the products, the power of z fastest.
    Raises ValueError for different shapes, or another number of degrees.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyvander3d([2], [3], [5], [1, 0, 1])
    array([[ 1.,  5.,  2., 10.]])
    """
    return _products((x, y, z), deg)


def _fit_degrees(deg):
    d = asarray(deg)
    if d.ndim > 1 or d.dtype.kind not in "iu" or d.size == 0:
        raise TypeError("deg must be an int or non-empty 1-D array of int")
    degrees = [d.item()] if d.ndim == 0 else sorted(d.tolist())
    if degrees[0] < 0:
        raise ValueError("expected deg >= 0")
    return degrees[-1], list(range(degrees[-1] + 1)) if d.ndim == 0 else degrees


def _fit_points(x, y, w):
    x, y = inexact(asarray(x)), inexact(asarray(y))
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if len(x) != len(y):
        raise TypeError("expected x and y to have same length")
    if w is None:
        return x, y, None
    w = asarray(w) + 0.0
    if w.ndim != 1:
        raise TypeError("expected 1D vector for w")
    if len(x) != len(w):
        raise TypeError("expected x and w to have same length")
    return x, y, w


def polyfit(x, y, deg, rcond=None, full=False, w=None):
    """The series of a degree that is nearest to points, by least squares.

    x, y: the points: arrays (n,); y may be (n, k) for k series.
    deg: the degree, or a list of the powers that the series may have.
    rcond: singular values below this share of the greatest count as 0; None is n times the epsilon of the dtype.
    full: True returns (coefficients, [residuals, rank, singular values, rcond]).
    w: weights (n,), by which the distances are multiplied.
    Returns coefficients (degree + 1,) or (degree + 1, k), the lowest power first.
    Raises TypeError for other shapes, ValueError for a negative degree. Warns by RankWarning if the points do not
        determine it.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyfit([0, 1, 2, 3], [1, 3, 5, 7], 1).round(6)
    array([1., 2.])
    """
    x, y, w = _fit_points(x, y, w)
    highest, degrees = _fit_degrees(deg)
    left, right = f["stack"]([polyvander(x, highest)[:, d] for d in degrees], axis=1), y
    if w is not None:
        left, right = left * w[:, None], right * (w[:, None] if y.ndim == 2 else w)
    rcond = len(x) * 2.0 ** -(23 if x.dtype == _nvm.float32 else 52) if rcond is None else rcond
    scale = f["sqrt"](f["sum"](f["abs"](left) ** 2, axis=0))
    scale = f["where"](scale == 0, 1.0, scale)
    found, residuals, rank, s = linalg.lstsq(left / scale, right, rcond)
    found = found / (scale[:, None] if y.ndim == 2 else scale)
    rows = dict(zip(degrees, found))
    c = f["stack"]([rows[d] if d in rows else found[0] * 0 for d in range(highest + 1)])
    if full:
        return c, [residuals, rank, s, rcond]
    if int(rank) != len(degrees):
        warnings.warn("The fit may be poorly conditioned", RankWarning, 2)
    return c


def polycompanion(c):
    """The companion matrix of a series, whose eigenvalues are the roots.

    c: coefficients (n + 1,), the lowest power first.
    Returns a matrix (n, n).
    Raises ValueError for a constant, and coefficients of more dimensions.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polycompanion([2, -3, 1])
    array([[ 0., -2.],
           [ 1.,  3.]])
    """
    (c,) = as_series([c])
    if c.size < 2:
        raise ValueError("Series must have maximum degree of at least 1.")
    n = c.size - 1
    below = diag(f["ones"]((n - 1,), dtype=c.dtype), -1) if n > 1 else f["zeros"]((1, 1), dtype=c.dtype)
    return f["concat"]([below[:, :-1], below[:, -1:] - (c[:-1] / c[-1])[:, None]], axis=1)


def polyroots(c):
    """The roots of a series.

    c: coefficients (n + 1,), the lowest power first; they are evaluated.
    Returns an array (n,) of floats in ascending order, complex if need be.
    Raises ValueError for coefficients of more dimensions, or none.

    >>> import nvm.numpy.polynomial.polynomial as poly
    >>> poly.polyroots([2, -3, 1]).round(6)
    array([1., 2.])
    """
    (c,) = as_series([c])
    if c.size < 2:
        return c[:0]
    if c.size == 2:
        return (-c[0] / c[1]).reshape(1)
    found = linalg.eigvals(f["flip"](polycompanion(c), axis=(0, 1)))
    if found.dtype.kind == "c" and not bool(f["any"](f["imag"](found) != 0)):
        found = f["real"](found)
    return sort(found)
