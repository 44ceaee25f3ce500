"""Functions of neighbouring elements, of samples and of signals: differences, gradients, products of vectors,
convolution, interpolation."""

import builtins
import math
import operator

from .. import _creation as _base
from .. import _nvm
from .._array_api import finfo, iinfo
from .._creation import from_parts
from ._joining import concatenate
from ._reductions import all as _all
from ._reductions import sum as _sum
from ._shapes import moveaxis
from ._sorting import argsort, searchsorted
from ._support import NOT_GIVEN, asarray, axes_of, casts, f, fault, inexact, one_axis, public, to_out


def clip(a, a_min=NOT_GIVEN, a_max=NOT_GIVEN, out=None, *, min=NOT_GIVEN, max=NOT_GIVEN, **kwargs):
    """The elements of an array, with those below a limit raised to it and those above another lowered to it.

    a: an array, or what asarray takes.
    a_min, a_max: the limits, also by the names min and max: numbers, arrays that broadcast with a, or None for no
        limit.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Raises ValueError if limits are given by both names.

    >>> import nvm.numpy as np
    >>> np.clip([-1, 2, 9], 0, 5)
    array([0, 2, 5])
    """
    if kwargs:
        raise TypeError(f"[clip] takes no {', '.join(kwargs)}")
    if (a_min is NOT_GIVEN) != (a_max is NOT_GIVEN):
        raise TypeError(
            f"[clip] a_min and a_max are given together: {'a_max' if a_max is NOT_GIVEN else 'a_min'} is missing"
        )
    if (a_min is not NOT_GIVEN or a_max is not NOT_GIVEN) and (min is not NOT_GIVEN or max is not NOT_GIVEN):
        raise fault(
            ValueError, "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden."
        )
    low, high = (a_min, a_max) if min is NOT_GIVEN and max is NOT_GIVEN else (min, max)
    low, high = (None if v is NOT_GIVEN else v for v in (low, high))
    a = asarray(a)
    low, high = _in_range(low, a.dtype), _in_range(high, a.dtype)
    result = a if low is None else f["maximum"](a, low)
    return to_out("clip", result if high is None else f["minimum"](result, high), out)


def _in_range(bound, dtype):
    """A bound as it is; an integer that the integer dtype does not have, as the nearest that it has."""
    if type(bound) is not int or dtype.kind not in "iu":
        return bound
    limits = iinfo(dtype)
    return builtins.max(limits.min, builtins.min(limits.max, bound))


def round(a, decimals=0, out=None):
    """The elements of an array rounded to a number of decimals; of two numbers equally near, the even one is taken.

    a: an array, or what asarray takes.
    decimals: how many; negative ones count before the point.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array in the dtype of a.

    >>> import nvm.numpy as np
    >>> np.round([1.256, -2.5], 1)
    array([ 1.3, -2.5])
    >>> np.round(1250, -2)
    array(1200)
    """
    a, decimals = asarray(a), operator.index(decimals)
    if a.dtype.kind == "b":
        a = a.astype(_nvm.float16) if decimals == 0 else a.astype(_nvm.float64)
    return to_out("round", a if a.dtype.kind in "iu" and decimals >= 0 else _base.round(a, decimals), out)


def around(a, decimals=0, out=None):
    """The elements of an array rounded: round, by its other name.

    The arguments are those of round.

    >>> import nvm.numpy as np
    >>> np.around([0.5, 1.5])
    array([0., 2.])
    """
    return round(a, decimals, out)


def fix(x, out=None):
    """The elements of an array without their fractions: the nearest integers towards 0.

    x: an array of real numbers.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array in the dtype of x.

    >>> import nvm.numpy as np
    >>> np.fix([1.7, -1.7])
    array([ 1., -1.])
    """
    return to_out("fix", f["trunc"](asarray(x)), out)


def diff(a, n=1, axis=-1, prepend=NOT_GIVEN, append=NOT_GIVEN):
    """Differences of neighbours along an axis.

    a: an array of one or more dimensions.
    n: how often differences are taken; 0 returns a.
    axis: the axis.
    prepend, append: numbers, or arrays, put before and behind a first.
    Returns an array whose axis has n elements fewer; of bool, it says where neighbours differ.
    Raises ValueError for a negative n or a number, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.diff([1, 4, 9])
    array([3, 5])
    >>> np.diff([1, 4, 9], n=2)
    array([2])
    """
    a = asarray(a)
    if n < 0:
        raise fault(ValueError, f"order must be non-negative but got {n!r}")
    if n == 0:
        return a
    if not a.ndim:
        raise fault(ValueError, "diff requires input that is at least one dimensional")
    axis = one_axis(axis, a.ndim)
    ends = [None if p is NOT_GIVEN else asarray(p) for p in (prepend, append)]
    edge = a.shape[:axis] + (1,) + a.shape[axis + 1 :]
    parts = [p if p is None or p.ndim else f["broadcast_to"](p, edge) for p in ends]
    parts = [p for p in (parts[0], a, parts[1]) if p is not None]
    return _base.diff(concatenate(parts, axis) if len(parts) > 1 else a, n=n, axis=axis)


def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours in a flattened array.

    ary: an array of any shape.
    to_begin, to_end: arrays put before and behind the differences.
    Returns an array of one dimension in the dtype of ary.
    Raises TypeError if that dtype does not take to_begin or to_end.

    >>> import nvm.numpy as np
    >>> np.ediff1d([1, 4, 9], to_end=0)
    array([3, 5, 0])
    """
    ary = asarray(ary).reshape(-1)
    parts = [to_begin, ary[1:] - ary[:-1], to_end]
    for name, p in (("to_begin", to_begin), ("to_end", to_end)):
        if p is not None and not casts(asarray(p).dtype, ary.dtype):
            raise fault(
                TypeError, f"dtype of `{name}`, {asarray(p).dtype.name}, must be compatible with {ary.dtype.name}"
            )
    return concatenate([asarray(p).astype(ary.dtype).reshape(-1) for p in parts if p is not None])


def _spacings(f_, varargs, axes):
    """The distance, or the coordinates, along each axis."""
    if len(varargs) == 0:
        return [1.0] * len(axes)
    if len(varargs) == 1 and asarray(varargs[0]).ndim == 0:
        return [varargs[0]] * len(axes)
    if len(varargs) != len(axes):
        raise fault(TypeError, "invalid number of arguments")
    spacings = []
    for axis, given in zip(axes, varargs):
        given = asarray(given)
        if given.ndim == 1:
            if given.size != f_.shape[axis]:
                raise fault(ValueError, "when 1d, distances must match the length of the corresponding dimension")
            given = _base.diff(inexact(given))
            if given.size and bool(_all(given == given[0])):
                given = given[0]
        elif given.ndim:
            raise fault(ValueError, "distances must be either scalars or 1d")
        spacings.append(given)
    return spacings


def gradient(f, *varargs, axis=None, edge_order=1):
    """Slopes along axes: central differences inside, one-sided ones at the ends.

    f: an array; integers become float64.
    varargs: nothing for distances of 1; a distance for all axes; or one entry for each axis, a distance or the
        coordinates.
    axis: an axis, a tuple of them, or None for all.
    edge_order: 1 takes differences of two elements at the ends, 2 of three.
    Returns an array in the shape of f, or a tuple of one for each axis.
    Raises ValueError if an axis has fewer than edge_order + 1 elements, TypeError for another number of distances.

    >>> import nvm.numpy as np
    >>> np.gradient([1.0, 4.0, 9.0])
    array([3., 4., 5.])
    >>> np.gradient([1.0, 4.0, 9.0], 0.5)
    array([ 6.,  8., 10.])
    """
    x = inexact(asarray(f))
    axes = axes_of(axis, x.ndim)
    spacings = _spacings(x, varargs, axes)
    if x.dtype.kind == "b":
        raise fault(TypeError, "booleans have no differences; x.astype(float) has")
    if edge_order > 2:
        raise fault(ValueError, "'edge_order' greater than 2 not supported")
    results = []
    for axis, h in zip(axes, spacings):
        if x.shape[axis] < edge_order + 1:
            raise fault(
                ValueError,
                "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
                f"required: shape {x.shape}, axis {axis}",
            )
        results.append(moveaxis(_slopes(moveaxis(x, axis, -1), h, edge_order), -1, axis))
    return results[0] if len(results) == 1 else tuple(results)


def _slopes(x, h, edge_order):
    """Slopes along the last axis; h: one distance, or those between neighbours."""
    if not hasattr(h, "ndim") or h.ndim == 0:
        inner = (x[..., 2:] - x[..., :-2]) / (2.0 * h)
        first, last = h, h
        weights = [(-1.5, 2.0, -0.5), (0.5, -2.0, 1.5)]
        weights = [tuple(w / h for w in row) for row in weights]
    else:
        before, after = h[:-1], h[1:]
        a = -after / (before * (before + after))
        b = (after - before) / (before * after)
        c = before / (after * (before + after))
        inner = a * x[..., :-2] + b * x[..., 1:-1] + c * x[..., 2:]
        first, last = h[0], h[-1]
        weights = _edge_weights(h) if edge_order == 2 else None
    if edge_order == 1:
        left, right = (x[..., 1:2] - x[..., :1]) / first, (x[..., -1:] - x[..., -2:-1]) / last
    else:
        ends = x[..., :3], x[..., -3:]
        left, right = (sum(w * e[..., i : i + 1] for i, w in enumerate(row)) for row, e in zip(weights, ends))
    return concatenate([left.astype(x.dtype), inner.astype(x.dtype), right.astype(x.dtype)], -1)


def _edge_weights(h):
    d1, d2 = h[0], h[1]
    left = (-(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2)))
    d1, d2 = h[-2], h[-1]
    right = (d2 / (d1 * (d1 + d2)), -(d2 + d1) / (d1 * d2), (2.0 * d2 + d1) / (d2 * (d1 + d2)))
    return [left, right]


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along an axis by the trapezoidal rule.

    y: an array of values.
    x: their places: an array of one dimension, or in the shape of y; None takes distances dx.
    dx: the distance of neighbours.
    axis: the axis.
    Returns an array without the axis.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.trapezoid([1, 2, 3])
    array(4.)
    >>> np.trapezoid([1, 2, 3], x=[0, 2, 4])
    array(8.)
    """
    y = asarray(y)
    axis = one_axis(axis, y.ndim)
    if x is not None:
        x = asarray(x)
        dx = _base.diff(x, axis=-1) if x.ndim == 1 else _base.diff(x, axis=axis)
        dx = dx.reshape((-1,) + (1,) * (y.ndim - axis - 1)) if x.ndim == 1 else dx
    at = (slice(None),) * axis
    return _sum(dx * (y[at + (slice(1, None),)] + y[at + (slice(None, -1),)]) / 2.0, axis)


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The cross product of vectors of three elements.

    a, b: arrays whose axes axisa and axisb have three elements; the other axes broadcast.
    axisc: where the vectors lie in the result.
    axis: all three axes at once.
    Raises ValueError if vectors have not three elements, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = asarray(a), asarray(b)
    if a.ndim < 1 or b.ndim < 1:
        raise fault(ValueError, "At least one array has zero dimension")
    a = moveaxis(a, one_axis(axisa, a.ndim, "axisa"), -1)
    b = moveaxis(b, one_axis(axisb, b.ndim, "axisb"), -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise fault(
            ValueError,
            f"Both input arrays must be (arrays of) 3-dimensional vectors, but they are {a.shape} and {b.shape}",
        )
    x, y = ([v[..., i] for i in range(3)] for v in (a, b))
    parts = [x[i] * y[j] - x[j] * y[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    c = f["stack"](parts, axis=-1)
    return moveaxis(c, -1, one_axis(axisc, c.ndim, "axisc"))


def _vectors(who, a, v):
    a, v = (x if x.ndim else x.reshape(1) for x in (asarray(a), asarray(v)))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"[{who}] object too deep for desired array: shapes {a.shape} and {v.shape}")
    if not a.size or not v.size:
        raise ValueError(f"[{who}] an array cannot be empty: shapes {a.shape} and {v.shape}")
    return a, v


def _mode_of(mode):
    if mode in (0, 1, 2):
        mode = ("valid", "same", "full")[mode]
    if mode not in ("full", "same", "valid"):
        raise fault(ValueError, f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return mode


_SHIFTS = 64  # so many shifted products fuse into one pass over a; more are sums along frames


def _slid(a, v, mode):
    """Sums of products of the shorter v, which is slid along a, with what lies beneath it."""
    m = v.size
    before, after = {"full": (m - 1, m - 1), "same": (m // 2, m - 1 - m // 2), "valid": (0, 0)}[mode]
    n, dtype = a.size + before + after - m + 1, f["where"](True, a[:1], v[:1]).dtype
    if m <= _SHIFTS and dtype.name != "bool":
        total = _product(a, v[0], -before, n)
        for i in range(1, m):
            total = total + _product(a, v[i], i - before, n)
        return total
    from ..signal import framed

    padded, at = f["pad"](a, [(before, after)]), f["arange"](n)[:, None] + f["arange"](m)
    frames = framed(padded, m, 1) if m > 1 else padded[:, None]
    if dtype.name == "bool":
        return f["any"](frames & v, axis=-1)
    inside = (at >= before) & (at < before + a.size)
    return f["sum"](f["where"](inside, frames * v, 0), axis=-1, dtype=dtype)


def _product(a, factor, start, n):
    """n products of the factor with a[start], a[start + 1] ...; 0 beyond the ends, though the factor be infinite."""
    stop = start + n
    products = a[builtins.max(start, 0) : builtins.min(stop, a.size)] * factor
    beyond = (builtins.max(-start, 0), builtins.max(stop - a.size, 0))
    return f["pad"](products, [beyond]) if any(beyond) else products


def convolve(a, v, mode="full"):
    """The convolution of two arrays of one dimension.

    a, v: arrays (n,) and (m,).
    mode: 'full' returns all n + m - 1 sums, 'same' the max(n, m) in the middle, 'valid' those of which all factors
        exist.
    Returns an array of one dimension in the common dtype.
    Raises ValueError for empty arrays, more dimensions and other modes.

    >>> import nvm.numpy as np
    >>> np.convolve([1, 2, 3], [0, 1])
    array([0, 1, 2, 3])
    >>> np.convolve([1, 2, 3], [1, 1], mode="valid")
    array([3, 5])
    """
    a, v = _vectors("convolve", a, v)
    a, v = (a, v) if a.size >= v.size else (v, a)
    if _mode_of(mode) == "same":
        start = (v.size - 1) // 2
        return _slid(a, f["flip"](v), "full")[start : start + a.size]
    return _slid(a, f["flip"](v), _mode_of(mode))


def correlate(a, v, mode="valid"):
    """The cross-correlation of two arrays of one dimension: sums of products with the second one moved, and conjugated.

    a, v: arrays (n,) and (m,).
    mode: 'full', 'same' or 'valid', as in convolve.
    Returns an array of one dimension in the common dtype.
    Raises ValueError for empty arrays, other numbers of dimensions and other modes.

    >>> import nvm.numpy as np
    >>> np.correlate([1, 2, 3], [0, 1, 0.5])
    array([3.5])
    """
    a, v = asarray(a), asarray(v)
    if not a.ndim or not v.ndim:
        raise ValueError(f"[correlate] object of too small depth for desired array: shapes {a.shape} and {v.shape}")
    a, v = _vectors("correlate", a, v)
    v = f["conj"](v) if v.dtype.kind == "c" else v
    if a.size >= v.size:
        return _slid(a, v, _mode_of(mode))
    return f["flip"](_slid(v, a, _mode_of(mode)))


def interp(x, xp, fp, left=None, right=None, period=None):
    """Values of the piecewise linear function through points.

    x: where: an array of real numbers of any shape.
    xp, fp: arrays (n,) of the points' places, which increase, and values, which may be complex.
    left, right: the values before the first point and behind the last; None: theirs.
    period: of the function, if it has one; the points need no order then.
    Returns an array in the shape of x, of float64 or complex128.
    Raises ValueError for no points, and different numbers of places and values.

    >>> import nvm.numpy as np
    >>> np.interp([0.5, 1.5, 9], [0, 1, 2], [0, 10, 40])
    array([ 5., 25., 40.])
    """
    x, xp, fp = asarray(x).astype(_nvm.float64), asarray(xp).astype(_nvm.float64), asarray(fp)
    fp = fp.astype(_nvm.complex128 if fp.dtype.kind == "c" else _nvm.float64)
    if xp.ndim != 1 or fp.ndim != 1:
        raise fault(ValueError, "Data points must be 1-D sequences")
    if xp.shape != fp.shape:
        raise fault(ValueError, f"fp and xp are not of the same length: {fp.shape} and {xp.shape}")
    if period is not None:
        if period == 0:
            raise fault(ValueError, "period must be a non-zero value")
        period = abs(period)
        left = right = None
        x, xp = f["remainder"](x, period), f["remainder"](xp, period)
        order = argsort(xp)
        xp, fp = f["take"](xp, order, axis=0), f["take"](fp, order, axis=0)
        xp = concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = concatenate((fp[-1:], fp, fp[:1]))
    n = xp.size
    if not n:
        raise fault(ValueError, "array of sample points is empty")
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    y = _between(x, xp, fp, n) if n > 1 else f["broadcast_to"](fp[0], x.shape)
    y = f["where"](x < xp[0], left, f["where"](x > xp[-1], right, y))
    return f["where"](f["isnan"](x), x, y) if n > 1 else y


def _between(x, xp, fp, n):
    """The lines between neighbours; where an infinite one makes NaN of a line from the left, from the right."""
    if fp.dtype.kind == "c":
        return from_parts(*(_between(x, xp, f[part](fp), n) for part in ("real", "imag")))
    at = f["clip"](searchsorted(xp, x, "right") - 1, 0, n - 2).reshape(-1)
    x0, x1, y0, y1 = (f["take"](p, at + i, axis=0).reshape(x.shape) for p in (xp, fp) for i in (0, 1))
    slope = (y1 - y0) / (x1 - x0)
    y = slope * (x - x0) + y0
    for other in (slope * (x - x1) + y1, f["where"](y0 == y1, y0, math.nan)):
        y = f["where"](f["isnan"](y), other, y)
    return f["where"](x == x1, y1, f["where"](x == x0, y0, y))


def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """Angles along an axis whose jumps are made smaller by multiples of a period.

    p: an array of real numbers, or what asarray takes.
    discont: the least jump that is changed; None is half the period.
    axis: the axis.
    period: the period, 2 pi unless told otherwise.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.unwrap([0, 3, 5, 1], period=6)
    array([0, 3, 5, 7])
    """
    p = asarray(p)
    axis = one_axis(axis, p.ndim)
    step = _base.diff(p, axis=axis)
    discont = period / 2 if discont is None else discont
    exact = p.dtype.kind in "iu" and isinstance(period, int)
    high, ambiguous = divmod(period, 2) if exact else (period / 2, True)
    ambiguous = ambiguous == 0 if exact else True
    low = -high
    wrapped = f["remainder"](step - low, period) + low
    if ambiguous:
        wrapped = f["where"]((wrapped == low) & (step > 0), high, wrapped)
    correction = f["where"](f["abs"](step) < discont, 0, wrapped - step)
    at = (slice(None),) * axis
    first = p[at + (slice(None, 1),)].astype(f["where"](True, p[at + (slice(1, None),)], correction).dtype)
    rest = p[at + (slice(1, None),)] + f["cumulative_sum"](correction, axis=axis)
    return concatenate([first, rest], axis)


def sinc(x):
    """sin(pi x) / (pi x), and 1 where x is 0.

    x: an array, or what asarray takes.
    Returns an array of float64 for integers, else in the dtype of x.

    >>> import nvm.numpy as np
    >>> np.sinc([0.0, 0.5, 1.5])
    array([ 1.        ,  0.63661977, -0.21220659])
    """
    x = inexact(asarray(x))
    y = math.pi * f["where"](x == 0, 1, x)
    return f["where"](x == 0, 1, f["sin"](y) / y).astype(x.dtype)


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """The elements of an array, with numbers in place of NaN and infinities.

    x: an array, or what asarray takes.
    copy: False writes to x, which has to be an array of nvm, and returns it.
    nan: the number in place of NaN.
    posinf, neginf: the numbers in place of infinities; None: the greatest and the least of the dtype.
    Returns an array in the dtype of x.

    >>> import nvm.numpy as np
    >>> np.nan_to_num([1.0, np.nan, np.inf], posinf=9)
    array([1., 0., 9.])
    """
    if isinstance(copy, str):
        raise fault(ValueError, "strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    x = asarray(x)
    if x.dtype.kind == "c":
        parts = [nan_to_num(f[part](x), True, nan, posinf, neginf) for part in ("real", "imag")]
        result = from_parts(*parts)
    elif x.dtype.kind == "f":
        limits = finfo(x.dtype)
        result = f["where"](f["isnan"](x), nan, x)
        result = f["where"](x == math.inf, limits.max if posinf is None else posinf, result)
        result = f["where"](x == -math.inf, limits.min if neginf is None else neginf, result)
    else:
        result = x
    if copy:
        return result.copy()
    x[...] = result
    return x


__all__ = public(globals())
