"""Order statistics, averages and correlation. NaN-aware forms are the same functions with skip_nan."""

import math

from .. import _nvm
from .._creation import from_parts
from ._dtypes import result_type
from ._reductions import mean as _mean
from ._reductions import sum as _sum
from ._shapes import atleast_2d, moveaxis
from ._sorting import sort
from ._support import (
    NOT_GIVEN,
    Array,
    asarray,
    axes_of,
    dtype_or_none,
    f,
    fault,
    given,
    inexact,
    product,
    public,
    to_out,
    yes_or_no,
)

_CONTINUOUS = {  # alpha and beta of Hyndman and Fan
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "linear": (1, 1),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_DISCRETE = {  # of the position among n sorted elements, from 0 on
    "inverted_cdf": lambda n, q: f["ceil"](n * q) - 1,
    "closest_observation": lambda n, q: _to_odd(n * q - 1.5),
    "lower": lambda n, q: f["floor"]((n - 1) * q),
    "higher": lambda n, q: f["ceil"]((n - 1) * q),
    "nearest": lambda n, q: f["round"]((n - 1) * q),
}


def _to_odd(at):
    """The next whole number above, or at itself where it is odd."""
    whole = f["floor"](at)
    return f["where"]((at == whole) & (f["remainder"](whole, 2) == 1), whole, whole + 1)


def _position(n, q, method):
    """(where the quantile lies among n sorted elements, the weight of the next one)."""
    if method in _DISCRETE:
        return _DISCRETE[method](n, q), None
    if method == "averaged_inverted_cdf":
        at = n * q - 1
        low = f["floor"](at)
        return low, f["where"](at == low, 0.5, 1.0)
    if method == "midpoint":
        at = (n - 1) * q
        low = f["floor"](at)
        return low, f["where"](at == low, 0.0, 0.5)
    if method not in _CONTINUOUS:
        names = ", ".join(sorted([*_CONTINUOUS, *_DISCRETE, "averaged_inverted_cdf", "midpoint"]))
        raise fault(ValueError, f"{method!r} is not a valid method. Use one of: {names}")
    alpha, beta = _CONTINUOUS[method]
    at = (n - 1) * q if (alpha, beta) == (1, 1) else n * q + (alpha + q * (1 - alpha - beta)) - 1
    low = f["floor"](at)
    return low, at - low


def _columns(a, axes):
    """(the array with the axes to reduce flattened as the last one, the shape of the result, it with keepdims)."""
    rest = [d for d in range(a.ndim) if d not in axes]
    shape = tuple(a.shape[d] for d in rest)
    columns = f["permute_dims"](a, rest + list(axes)).reshape((*shape, product(a.shape[d] for d in axes)))
    return columns, shape, tuple(1 if d in axes else n for d, n in enumerate(a.shape))


def _lerp(a, b, t):
    """From a to b by t, monotonic, and exact at both ends."""
    step = b - a
    return f["where"](t >= 0.5, b - step * (1 - t), a + step * t)


def _picked(x, n, q, method):
    """Quantiles q (a vector) of sorted rows, whose first n elements count: of shape rows + q. n: a number, or one of
    each row."""
    if q.dtype.kind in "iu":  # the least and the greatest element are not interpolated
        if method == "linear":
            return f["take_along_axis"](x, _spread((n - 1) * q, x), axis=-1)
        q = inexact(q)
    n = n.astype(q.dtype) if isinstance(n, Array) else n
    low, weight = _position(n, q, method)
    last = n - 1
    at = f["minimum"](f["maximum"](low, 0), last).astype(_nvm.int64)
    if weight is None:
        return f["take_along_axis"](x, _spread(at, x), axis=-1)
    after = f["minimum"](f["maximum"](low + 1, 0), last).astype(_nvm.int64)
    a, b = (f["take_along_axis"](x, _spread(i, x), axis=-1) for i in (at, after))
    return _lerp(a, b, weight)


def _spread(at, x):
    return f["broadcast_to"](f["maximum"](at, 0), x.shape[:-1] + at.shape[-1:])


def _weighted(x, weights, q):
    """The least elements of rows at which the sum of weights reaches the share q of all."""
    order = f["argsort"](x, axis=-1)
    x, weights = (f["take_along_axis"](v, order, axis=-1) for v in (x, weights))
    sums = f["cumulative_sum"](weights, axis=-1)
    share = sums / sums[..., -1:]
    share = f["where"](share == 0, -1, share)
    before = f["sum"]((share[..., None] < q).astype(_nvm.int64), axis=-2)
    return f["take_along_axis"](x, f["minimum"](before, x.shape[-1] - 1), axis=-1)


def _check_weights(a, axis, weights, method):
    if method != "inverted_cdf":
        raise fault(ValueError, f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    weights = asarray(weights)
    if weights.shape != a.shape:
        axes = axes_of(axis, a.ndim)
        if axis is None:
            raise fault(TypeError, "Axis must be specified when shapes of a and weights differ.")
        if weights.shape != tuple(a.shape[d] for d in axes):
            raise fault(
                ValueError, f"Shape of weights {weights.shape} must be consistent with shape of a {a.shape} along axis"
            )
        shape = [1] * a.ndim
        for d, n in zip(axes, weights.shape):
            shape[d] = n
        weights = f["broadcast_to"](weights.reshape(shape), a.shape)
    if bool(f["any"](weights < 0)):
        raise fault(ValueError, "Weights must be non-negative.")
    return inexact(weights)


def _quantile(who, a, q, axis, out, method, keepdims, weights, skip_nan):
    a = asarray(a)
    if a.dtype.kind == "c":
        raise fault(TypeError, f"a must be an array of real numbers, not {a.dtype.name}")
    axes = axes_of(axis, a.ndim)
    if a.dtype.kind == "b":
        if method in _CONTINUOUS or method in ("midpoint", "averaged_inverted_cdf"):
            raise TypeError(f"[{who}] bools have no differences to interpolate between with method {method!r}")
    if weights is not None:
        weights, _, _ = _columns(_check_weights(a, axis, weights, method), axes)
    x, shape, kept = _columns(a, axes)
    points = q.reshape(-1)
    if not x.shape[-1]:
        if a.dtype.kind == "f" or weights is not None or skip_nan:
            values = f["full"]((*shape, points.size), math.nan, dtype=inexact(a).dtype)
        else:
            raise IndexError(f"[{who}] no elements of shape {a.shape} lie along the axes: there is no quantile")
    else:
        values = _of_rows(x, points, method, weights, skip_nan)
    values = moveaxis(values, -1, 0).reshape(q.shape + (kept if keepdims else shape))
    return to_out(who, values, out)


def _of_rows(x, points, method, weights, skip_nan):
    undefined = f["isnan"](x) if x.dtype.kind == "f" else None
    if weights is not None:
        if skip_nan and undefined is not None:
            weights = f["where"](undefined, 0, weights)
        values = _weighted(x, weights, points)
    else:
        n = x.shape[-1]
        if skip_nan and undefined is not None:
            n = f["sum"]((~undefined).astype(_nvm.int64), axis=-1, keepdims=True)
        values = _picked(sort(x, -1), n, points, method)
    if undefined is None:
        return values
    lost = f["all" if skip_nan else "any"](undefined, axis=-1, keepdims=True)
    return f["where"](lost, math.nan, values)


def _points(q, a, scale=None):
    """The quantiles as an array between 0 and 1. A plain number takes the dtype of a."""
    a = a if isinstance(a, Array) else asarray(a)
    if a.dtype.kind == "f" and isinstance(q, (int, float)):
        q = asarray(q, dtype=a.dtype)
    q = asarray(q)
    if q.dtype.kind not in "iuf":
        raise fault(TypeError, f"q must be an array of real numbers, not {q.dtype.name}")
    q = q if scale is None else inexact(q) / scale
    if not bool(f["all"]((q >= 0) & (q <= 1))):
        raise fault(
            ValueError, "Quantiles must be in the range [0, 1]" if scale is None else "Percentiles must be in [0, 100]"
        )
    return q


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    """Values below which given shares of the elements along axes lie.

    a: an array of real numbers.
    q: shares from 0 to 1, of any shape; they are evaluated.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    overwrite_input: of NumPy's signature; a is never overwritten.
    method: how to choose between two neighbours: 'linear', 'lower', 'higher', 'midpoint', 'nearest', 'hazen',
        'weibull', 'median_unbiased', 'normal_unbiased', 'inverted_cdf', 'averaged_inverted_cdf', 'closest_observation'
        or 'interpolated_inverted_cdf'.
    keepdims: True keeps the axes in the result, with extent 1.
    weights: of the elements, for method='inverted_cdf'.
    Returns an array whose first axes are those of q, and whose others those that a keeps; NaN where there is one.
    Raises ValueError for shares outside 0 to 1 and an unknown method, TypeError for complex numbers, and AxisError
        where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.quantile([1.0, 2.0, 3.0, 4.0], [0.25, 0.5])
    array([1.75, 2.5 ])
    """
    return _quantile("quantile", a, _points(q, a), axis, out, method, keepdims, weights, False)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    """Values below which given percentages of the elements along axes lie.

    q: percentages from 0 to 100, of any shape; they are evaluated.
    The other arguments and the errors are those of quantile.

    >>> import nvm.numpy as np
    >>> np.percentile([1, 2, 3, 4], 75)
    array(3.25)
    """
    return _quantile("percentile", a, _points(q, a, 100), axis, out, method, keepdims, weights, False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=NOT_GIVEN, *, weights=None):
    """Values below which given shares of the elements along axes that are not NaN lie; NaN where there are none.

    The arguments and errors are those of quantile.

    >>> import nvm.numpy as np
    >>> np.nanquantile([1.0, np.nan, 3.0], 0.5)
    array(2.)
    """
    return _quantile("nanquantile", a, _points(q, a), axis, out, method, given(keepdims, False), weights, True)


def nanpercentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=NOT_GIVEN, *, weights=None
):
    """Values below which given percentages of the elements along axes that are not NaN lie; NaN where there are none.

    q: percentages from 0 to 100, of any shape; they are evaluated.
    The other arguments and the errors are those of quantile.

    >>> import nvm.numpy as np
    >>> np.nanpercentile([1.0, np.nan, 3.0], 25)
    array(1.5)
    """
    return _quantile("nanpercentile", a, _points(q, a, 100), axis, out, method, given(keepdims, False), weights, True)


def _median(who, a, axis, out, keepdims, skip_nan):
    a = asarray(a)
    axes = axes_of(axis, a.ndim)
    x, shape, kept = _columns(a, axes)
    n = x.shape[-1]
    if not n:
        values = f["full"](shape, math.nan, dtype=inexact(a).dtype)
    else:
        undefined = f["isnan"](x) if x.dtype.kind in "fc" else f["zeros"](x.shape, dtype=_nvm.bool)
        ordered = sort(x, -1)
        count = f["sum"]((~undefined).astype(_nvm.int64), axis=-1, keepdims=True) if skip_nan else asarray(n)
        middle = f["concat"](
            [f["broadcast_to"](f["maximum"]((count - 1 + i) // 2, 0), (*shape, 1)) for i in (0, 1)], axis=-1
        )
        middle = f["take_along_axis"](ordered, f["minimum"](middle, n - 1), axis=-1)
        values = f["where"](count % 2 == 1, middle[..., :1], _mean(middle, -1, keepdims=True))
        if a.dtype.kind in "fc":
            values = f["where"](f["all" if skip_nan else "any"](undefined, axis=-1, keepdims=True), math.nan, values)
    return to_out(who, values.reshape(kept if keepdims else shape), out)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The middle element along axes once they are sorted; of an even number, the mean of the two in the middle.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    overwrite_input: of NumPy's signature; a is never overwritten.
    keepdims: True keeps the axes in the result, with extent 1.
    Returns an array of float64 for integers, else in the dtype of a; NaN where there is one, or no element.
    Raises AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.median([[3, 1, 2], [9, 8, 4]], axis=1)
    array([2., 8.])
    """
    return _median("median", a, axis, out, keepdims, False)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=NOT_GIVEN):
    """The median along axes of the elements that are not NaN; NaN where there are none.

    The arguments and errors are those of median.

    >>> import nvm.numpy as np
    >>> np.nanmedian([3.0, np.nan, 2.0])
    array(2.5)
    """
    return _median("nanmedian", a, axis, out, given(keepdims, False), True)


def average(a, axis=None, weights=None, returned=False, *, keepdims=NOT_GIVEN):
    """The weighted mean along axes.

    a: an array, or what asarray takes.
    axis: an axis, a tuple of them, or None for all.
    weights: an array in the shape of a, or in that of the axes; None weighs all alike. They are evaluated.
    returned: True returns (mean, sum of the weights).
    keepdims: True keeps the axes in the result, with extent 1.
    Raises ZeroDivisionError if weights add up to 0, ValueError or TypeError for shapes that do not fit.

    >>> import nvm.numpy as np
    >>> np.average([1.0, 2.0, 4.0], weights=[1, 1, 2])
    array(2.75)
    """
    a, kept = asarray(a), yes_or_no("keepdims", keepdims)
    if weights is None:
        result = _mean(a, axis, keepdims=kept)
        total = asarray(a.size / max(result.size, 1)).astype(result.dtype)
        return (result, f["broadcast_to"](total, result.shape)) if returned else result
    weights = asarray(weights)
    if weights.shape != a.shape:
        weights = _along(a, weights, axis)
    dtype = result_type(a, weights, *([] if a.dtype.kind in "fc" else [_nvm.float64]))
    total = _sum(f["broadcast_to"](weights, a.shape), axis, dtype, keepdims=kept)
    if bool(f["any"](total == 0)):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = _sum(a.astype(dtype) * weights.astype(dtype), axis, dtype, keepdims=kept) / total
    return (result, total) if returned else result


def _along(a, weights, axis):
    if axis is None:
        raise fault(TypeError, "Axis must be specified when shapes of a and weights differ.")
    axes = axes_of(axis, a.ndim)
    if weights.shape != tuple(a.shape[d] for d in axes):
        raise fault(
            ValueError,
            f"Shape of weights {weights.shape} must be consistent with shape of a {a.shape} along axis {axis}",
        )
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    shape = [a.shape[d] if d in axes else 1 for d in range(a.ndim)]
    return f["permute_dims"](weights, order).reshape(shape)


def _observations(who, m, y, rowvar):
    """Variables in rows: those of m, then those of y."""
    m = asarray(m)
    if m.ndim > 2:
        raise fault(ValueError, f"{who} has more than 2 dimensions: shape {m.shape}")
    x = atleast_2d(m)
    if not rowvar and m.ndim != 1:
        x = f["permute_dims"](x, (1, 0))
    if y is None:
        return x
    y = asarray(y)
    if y.ndim > 2:
        raise fault(ValueError, f"y has more than 2 dimensions: shape {y.shape}")
    y2 = atleast_2d(y)
    return f["concat"]([x, y2 if rowvar or y2.shape[0] == 1 else f["permute_dims"](y2, (1, 0))], axis=0)


def _check_frequencies(who, w, n):
    w = asarray(w)
    if w.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {who}")
    if w.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {who}: {n} and {w.shape[0]}")
    if bool(f["any"](w < 0)):
        raise fault(ValueError, f"{who} cannot be negative")
    return w


def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """The covariances of variables, from observations of them.

    m: an array (variables, observations), or (observations,) of one variable.
    y: more variables, in the same form.
    rowvar: False says that variables are columns.
    bias, ddof: the sum is divided by the number of observations less ddof, which is 0 with bias, else 1.
    fweights: how often each observation counts, integers; aweights: how much it counts. Both have shape
        (observations,).
    dtype: that of the result; None is float64, or complex128.
    Returns a matrix (variables, variables), or an array of no dimensions for one variable.
    Raises ValueError for more dimensions and negative weights, RuntimeError for weights of another shape.

    >>> import nvm.numpy as np
    >>> np.cov([[1, 2, 3], [3, 2, 1]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    if ddof is not None and ddof != int(ddof):
        raise fault(ValueError, "ddof must be integer")
    ddof = ddof if ddof is not None else 0 if bias else 1
    x = _observations("m", m, y, rowvar)
    dtype = dtype_or_none(dtype) or result_type(x, _nvm.float64)
    x, n = x.astype(dtype), x.shape[1]
    w = None
    if fweights is not None:
        w = _check_frequencies("fweights", fweights, n)
        if w.dtype.kind == "f" and bool(f["any"](w != f["round"](w))):
            raise fault(TypeError, "fweights must be integer")
    if aweights is not None:
        a = inexact(_check_frequencies("aweights", aweights, n))
        w = a if w is None else w * a
    if w is None:
        factor, center = n - ddof, _mean(x, 1, keepdims=True)
    else:
        total = _sum(w)
        center = _sum(x * w, 1, keepdims=True) / total
        lost = ddof if aweights is None else 0 if ddof == 0 else ddof * _sum(w * inexact(asarray(aweights))) / total
        factor = f["maximum"](total - lost, 0)
    if not isinstance(factor, Array):
        factor = max(factor, 0)
    deviation = x - center
    weighted = deviation if w is None else deviation * w
    other = f["conj"](weighted) if weighted.dtype.kind == "c" else weighted
    product = f["matmul"](deviation, f["permute_dims"](other, (1, 0)))
    squares = product / asarray(factor).astype(_nvm.float64).astype(f["real"](product).dtype)
    return squares.reshape(()) if squares.size == 1 else squares


def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """The correlation coefficients of variables: their covariances, divided by their standard deviations.

    x: an array (variables, observations), or (observations,) of one variable.
    y: more variables, in the same form.
    rowvar: False says that variables are columns.
    dtype: that of the result; None is float64, or complex128.
    Returns a matrix (variables, variables) of numbers from -1 to 1, or an array of no dimensions for one variable.
    Raises ValueError for more than two dimensions.

    >>> import nvm.numpy as np
    >>> np.corrcoef([1, 2, 3], [3, 2, 1])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = f["sqrt"](f["real"](f["diagonal"](c)))
    c = c / deviations[:, None] / deviations[None, :]
    if c.dtype.kind != "c":
        return f["clip"](c, -1, 1)
    return from_parts(f["clip"](f["real"](c), -1, 1), f["clip"](f["imag"](c), -1, 1))


__all__ = public(globals())
