"""Histograms: edges of bins, and how many elements, or what sum of weights, falls into each."""

import builtins
import math
import operator

from .. import _nvm
from ._creation import linspace
from ._reductions import max as _max
from ._reductions import mean as _mean
from ._reductions import min as _min
from ._reductions import ptp as _ptp
from ._reductions import std as _std
from ._reductions import sum as _sum
from ._sorting import searchsorted
from ._statistics import percentile
from ._support import Array, asarray, f, fault, inexact, public


def bincount(x, /, weights=None, minlength=0):
    """How often each integer from 0 on occurs, or what its weights add up to.

    x: an array (n,) of integers that are not negative. It is evaluated.
    weights: an array (n,), which is cast to float64.
    minlength: the least length of the result.
    Returns counts in int64, or sums in float64, up to the greatest integer that occurs.
    Raises ValueError for negative integers and other shapes, TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.bincount([1, 3, 1])
    array([0, 2, 0, 1])
    >>> np.bincount([0, 1, 1], weights=[0.5, 1, 2])
    array([0.5, 3. ])
    """
    x, minlength = asarray(x), operator.index(minlength)
    if x.ndim != 1:
        raise fault(ValueError, f"object of too small depth or too deep for desired array: shape {x.shape}")
    if minlength < 0:
        raise fault(ValueError, "'minlength' must not be negative")
    if not x.size:
        x = x.astype(_nvm.int64)
    if x.dtype.kind not in "biu" or x.dtype == _nvm.uint64:
        raise fault(TypeError, f"Cannot cast array data from {x.dtype.name} to int64 according to the rule 'safe'")
    if x.size and x.dtype.kind == "i" and bool(_min(x) < 0):
        raise fault(ValueError, "'list' argument must have no negative elements")
    n = max(minlength, int(_max(x)) + 1 if x.size else 0)
    if weights is not None:
        weights = asarray(weights).astype(_nvm.float64)
        if weights.shape != x.shape:
            raise fault(ValueError, f"The weights and list don't have the same length: {weights.shape} and {x.shape}")
    return _counted(x, weights, n)


def _counted(x, weights, n):
    """Counts, or sums of weights, of the numbers 0 to n - 1; the library has a routine for this comparison."""
    hits = x.astype(_nvm.int64)[:, None] == f["arange"](n)
    if weights is None:
        return f["sum"](hits, axis=0)
    return f["sum"](f["where"](hits, weights[:, None], asarray(0, dtype=weights.dtype)), axis=0)


def _doane(x):
    n, deviation = x.size, float(_std(x))
    if n <= 2 or not deviation > 0:
        return 0.0
    spread = math.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    skewness = float(_mean(((x - _mean(x)) / deviation) ** 3))
    return float(_ptp(x)) / (1.0 + math.log2(n) + math.log2(1.0 + abs(skewness) / spread))


def _freedman_diaconis(x):
    low, high = (float(percentile(x, q)) for q in (25, 75))
    return 2.0 * (high - low) * x.size ** (-1.0 / 3.0)


def _stone(x):
    n, width = x.size, float(_ptp(x))
    if n <= 1 or width == 0:
        return 0.0

    def risk(bins):
        share = histogram(x, bins)[0] / n
        return (2 - (n + 1) * float(_sum(share * share))) / (width / bins)

    return width / min(range(1, max(100, int(math.sqrt(n))) + 1), key=risk)


def _automatic(x):
    root = _WIDTHS["sqrt"](x) / 2
    return min(max(_freedman_diaconis(x), root), _WIDTHS["sturges"](x))


_WIDTHS = {
    "sqrt": lambda x: float(_ptp(x)) / math.sqrt(x.size),
    "sturges": lambda x: float(_ptp(x)) / (math.log2(x.size) + 1.0),
    "rice": lambda x: float(_ptp(x)) / (2.0 * x.size ** (1.0 / 3)),
    "scott": lambda x: (24.0 * math.pi**0.5 / x.size) ** (1.0 / 3.0) * float(_std(x)),
    "doane": _doane,
    "fd": _freedman_diaconis,
    "stone": _stone,
    "auto": _automatic,
}


def _outer_edges(a, range):
    if range is not None:
        first, last = (v.item() if isinstance(v, Array) else v for v in range)
        if first > last:
            raise fault(ValueError, "max must be larger than min in range parameter.")
        if not (math.isfinite(first) and math.isfinite(last)):
            raise fault(ValueError, f"supplied range of [{first}, {last}] is not finite")
    elif not a.size:
        first, last = 0, 1
    else:
        first, last = _min(a).item(), _max(a).item()
        if not (math.isfinite(first) and math.isfinite(last)):
            raise fault(ValueError, f"autodetected range of [{first}, {last}] is not finite")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _automatic_count(a, name, range, weights):
    if name not in _WIDTHS:
        raise fault(ValueError, f"{name!r} is not a valid estimator for `bins`; there are {', '.join(sorted(_WIDTHS))}")
    if weights is not None:
        raise fault(TypeError, "Automated estimation of the number of bins is not supported for weighted data")
    first, last = _outer_edges(a, range)
    if range is not None:
        a = a[(a >= first) & (a <= last)]
    if not a.size:
        return 1
    width = _WIDTHS[name](inexact(a))
    if a.dtype.kind in "iu" and 0 < width < 1:
        width = 1
    return int(math.ceil((last - first) / width)) if width else 1


def _edges(a, bins, range, weights):
    """The edges of bins: of a number of equal ones, or those given."""
    if isinstance(bins, str):
        bins = _automatic_count(a, bins, range, weights)
    if not hasattr(bins, "__len__") or getattr(bins, "shape", None) == ():
        try:
            count = operator.index(bins)
        except TypeError as e:
            raise fault(TypeError, "`bins` must be an integer, a string, or an array") from e
        if count < 1:
            raise fault(ValueError, "`bins` must be positive, when an integer")
        first, last = _outer_edges(a, range)
        dtype = a.dtype if a.dtype.kind == "f" else _nvm.float64
        if range is None:
            first, last = asarray(first, dtype=dtype), asarray(last, dtype=dtype)
        return linspace(first, last, count + 1, dtype=dtype)
    edges = asarray(bins)
    if edges.ndim != 1:
        raise fault(ValueError, "`bins` must be 1d, when an array")
    if bool(f["any"](edges[:-1] > edges[1:])):
        raise fault(ValueError, "`bins` must increase monotonically, when an array")
    return edges


def _checked(a, weights):
    a = asarray(a)
    if a.dtype.kind == "c":
        raise TypeError(f"[histogram] complex numbers have no order: {a.dtype.name}")
    if weights is not None:
        weights = asarray(weights)
        if weights.shape != a.shape:
            raise fault(ValueError, f"weights should have the same shape as a: {weights.shape}, {a.shape}")
        weights = weights.reshape(-1)
    return a.astype(_nvm.uint8).reshape(-1) if a.dtype.kind == "b" else a.reshape(-1), weights


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of the bins that histogram counts in, without the counts.

    The arguments and errors are those of histogram.
    Returns an array of one element more than there are bins.

    >>> import nvm.numpy as np
    >>> np.histogram_bin_edges([1, 2, 5], bins=4)
    array([1., 2., 3., 4., 5.])
    """
    a, weights = _checked(a, weights)
    return _edges(a, bins, range, weights)


def _bin_of(x, edges):
    """The number of the bin of each element; that of the last edge is the last bin. -1: in none."""
    n = edges.size - 1
    at = searchsorted(edges, x, "right") - 1
    at = f["where"](x == edges[-1], n - 1, at)
    return f["where"]((at >= 0) & (at < n), at, -1)


def histogram(a, bins=10, range=None, density=None, weights=None):
    """How many elements of an array fall into each of several bins, or what their weights add up to.

    a: an array of real numbers of any shape; its extremes are evaluated.
    bins: a number of equal bins; their edges, which increase; or how the number is chosen: 'auto', 'sqrt', 'sturges',
        'rice', 'scott', 'doane', 'fd' or 'stone'.
    range: the ends of equal bins; None: the least and the greatest element.
    density: True returns the share of each bin, divided by its width.
    weights: an array in the shape of a.
    Returns (counts, edges), of which the last bin has its right edge too.
    Raises ValueError for edges that do not increase, a range that is not finite or not in order, an unknown name;
        TypeError for complex numbers.

    >>> import nvm.numpy as np
    >>> np.histogram([1, 2, 1, 4], bins=3)
    (array([2, 1, 1]), array([1., 2., 3., 4.]))
    """
    a, weights = _checked(a, weights)
    edges = _edges(a, bins, range, weights)
    if weights is not None and weights.dtype.kind == "b":
        weights = weights.astype(_nvm.int64)
    counts = _counted(_bin_of(a, edges), weights, edges.size - 1)
    if not density:
        return counts, edges
    widths = (edges[1:] - edges[:-1]).astype(_nvm.float64)
    return counts / widths / _sum(counts), edges


def _per_axis(value, dims, what):
    if value is None or isinstance(value, str) or not hasattr(value, "__len__"):
        return [value] * dims
    if len(value) != dims:
        raise fault(ValueError, f"{what} must have one entry for each of the {dims} dimensions of the sample")
    return list(value)


def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """How many points of a space of several dimensions fall into each of several cells.

    sample: an array (points, dimensions), or a sequence (a list, a tuple) of an array of coordinates for each
        dimension.
    bins, range: those of histogram for all dimensions, or a sequence of one for each.
    density: True returns the share of each cell, divided by its volume.
    weights: an array (points,).
    Returns (counts in float64, a list of the edges of each dimension).
    Raises ValueError if bins or range have not one entry for each dimension, and where histogram does.

    >>> import nvm.numpy as np
    >>> counts, edges = np.histogramdd(np.array([[0, 0], [1, 1], [1, 1]]), bins=2)
    >>> counts
    array([[1., 0.],
           [0., 2.]])
    """
    if isinstance(sample, Array) or getattr(sample, "ndim", 0) == 2:
        sample = asarray(sample)
        sample = sample[:, None] if sample.ndim == 1 else sample
        columns = [sample[:, i] for i in builtins.range(sample.shape[1])]
    else:
        columns = [asarray(c).reshape(-1) for c in sample]
    dims = len(columns)
    try:
        bins = _per_axis(bins, dims, "The dimension of bins")
    except ValueError as e:
        raise fault(ValueError, "The dimension of bins must be equal to the dimension of the sample x.") from e
    ranges = _per_axis(range, dims, "range argument")
    edges = [_edges(c, b, r, None) for c, b, r in zip(columns, bins, ranges)]
    at, inside = asarray(0), None
    for column, edge in zip(columns, edges):
        own = _bin_of(column, edge)
        at = at * (edge.size - 1) + own
        inside = own >= 0 if inside is None else inside & (own >= 0)
    shape = tuple(e.size - 1 for e in edges)
    total = math.prod(shape)
    weights = None if weights is None else asarray(weights).astype(_nvm.float64)
    counts = _counted(f["where"](inside, at, -1), weights, total).astype(_nvm.float64).reshape(shape)
    if density:
        counts = counts / _sum(counts)
        for d, e in enumerate(edges):
            counts = counts / (e[1:] - e[:-1]).reshape([-1 if k == d else 1 for k in builtins.range(dims)])
    return counts, edges


def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """How many points of a plane fall into each of several cells.

    x, y: arrays (points,) of coordinates.
    bins, range, density, weights: those of histogramdd.
    Returns (counts in float64, edges along x, edges along y).
    Raises ValueError if x and y have different shapes, and where histogram does.

    >>> import nvm.numpy as np
    >>> np.histogram2d([0, 1, 1], [0, 1, 1], bins=2)[0]
    array([[1., 0.],
           [0., 2.]])
    """
    x, y = asarray(x), asarray(y)
    if x.ndim != 1 or x.shape != y.shape:
        raise fault(ValueError, f"x and y must have the same length, and one dimension: {x.shape}, {y.shape}")
    if hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [asarray(bins)] * 2
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


__all__ = public(globals())
