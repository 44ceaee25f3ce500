"""nvm.numpy's statistics, histograms, functions that leave NaN out, sorting and sets, against NumPy's."""

import math

import numpy as np
import pytest

import nvm.numpy as nvp
from numpy_cases import check_all

TABLES = {
    "quantiles": """
        np.quantile({ranked}, {q}, {axis})
        np.quantile({ranked}, [0.1, 0.5], axis=0, method={method})
        np.quantile(m, 0.3, {axes}, method={method}, keepdims=True)
        np.quantile([1, 2, 3, 4], {inner}, method={method})
        np.quantile(h, 0.3, {axis})
        np.quantile(m, [0.2, 0.5], 1, weights=[1, 2, 0, 1], method='inverted_cdf')
        np.quantile(m, 0.5, 1, weights=[1, 2, 0, 1])
        np.quantile(m, 0.5, method='other')
        np.quantile(m, 1.5)
        np.quantile(c, 0.5)
        np.percentile({ranked}, [25, 50], -1)
        np.percentile(s, {percent})
        np.percentile(m, {percent}, 0, np.zeros(4))
        np.percentile(m, 101)
        np.nanquantile({float}, 0.3, {axes})
        np.nanquantile(n, [0.1, 0.7], {axis}, method={method})
        np.nanpercentile(n, 40, {axis}, keepdims=True)
        np.nanpercentile(o, 40)
        np.median({ranked}, {axes})
        np.median({few}, {axis}, keepdims=True)
        np.median(e)
        np.median(o)
        np.nanmedian({ranked}, {axis})
        np.{median}({large})
        np.{median}(np.array([3e38] * 3, np.float32))
        np.nanmedian(n, {axes}, keepdims=True)
    """,
    "averages": """
        np.average({full}, {axes})
        np.average(m, {axis}, returned=True)
        np.average(m, 1, [1, 2, 3, 4])
        np.average(m, 0, [1, 2, 3], True, keepdims=True)
        np.average(i, weights=m)
        np.average({full}, weights={full})
        np.average(np.array([1, 2], 'int8'), weights=np.array([1, 2], 'float32'), returned=True)
        np.average(t, (0, 2), np.arange(8).reshape(2, 4))
        np.average(m, None, [1, 2])
        np.average(m, 1, [1, 2])
        np.average(v, weights=[0, 0, 0, 0, 0])
        np.cov({table})
        np.cov(m, rowvar=False)
        np.cov(m, m[::-1], bias=True)
        np.cov(m, ddof=0)
        np.cov(m, fweights=[1, 2, 1, 3])
        np.cov(m, aweights=[1, 0.5, 1, 3])
        np.cov(m, fweights=[1, 2, 1, 3], aweights=[1, 0.5, 1, 3], ddof=0)
        np.cov(m, fweights=[1.5, 2, 1, 3])
        np.cov(m, fweights=[1, 2])
        np.cov(t)
        np.cov(v, v[::-1])
        np.corrcoef({table})
        np.corrcoef(m, rowvar=False)
        np.corrcoef(v, v[::-1])
        np.corrcoef(c)
    """,
    "nan": """
        np.{fold}({any}, {axes})
        np.{fold}(n, {axes}, keepdims={keep})
        np.{running}({any}, {axis})
        np.{extreme}({full}, {axes})
        np.{extreme}(n, {axes}, keepdims={keep})
        np.{extreme}(n, initial=0)
        np.{extreme}([nan, nan])
        np.{place}(n[:, :2], {axis})
        np.{place}(n)
        np.{place}([nan, nan])
        np.{mean}({float}, {axes})
        np.{mean}(n, {axes}, keepdims={keep})
        np.{mean}(n, 0, where=b)
        np.{spread}(n, {axis}, ddof={ddof})
    """,
    "bins": """
        np.bincount({counts})
        np.bincount(j, minlength={length})
        np.bincount(j, [0.5, 1, 2, 3])
        np.bincount(j, [0.5, 1])
        np.digitize({real}, [-1, 0, 1])
        np.digitize(m, [1, 0, -1], {keep})
        np.digitize([1, 0, -1, 0.5], [1, 0, -1], {keep})
        np.digitize(i, {edges}, {keep})
        np.digitize(m, [1, 0, 2])
        np.digitize(c, [1])
        np.histogram({real})
        np.histogram({data}, {bins})
        np.histogram({data}, {bins}, density=True)
        np.histogram(m, 4, (-1, 1))
        np.histogram(m, 4, (1, -1))
        np.histogram(m, 4, weights=i)
        np.histogram(m, 4, weights=m, density=True)
        np.histogram(m, 4, weights=[1])
        np.histogram_bin_edges({data}, {bins})
        np.histogram_bin_edges({data}, {estimator})
        np.histogram_bin_edges(i, 'auto', weights=i)
        np.histogram2d(m[0], m[1])
        np.histogram2d(m[0], m[1], 3)
        np.histogram2d(m[0], m[1], [2, 3], density=True)
        np.histogram2d(m[0], m[1], [[-1, 0, 1], 3], weights=[1, 2, 3, 4])
        np.histogram2d(m[0], m[1], [-1, 0, 0.5, 1])
        np.histogram2d(m[0], m[1][:2])
        np.histogramdd(m[:, :3], 2)
        np.histogramdd(m, [2, 3], [(0, 1), (0, 1)])
    """,
    "sorting": """
        np.sort({any}, {axis})
        np.sort(n, kind={kind})
        np.sort([1+1j, 1-1j, complex(nan, 0), 0])
        np.argsort({any}, {axis}, kind='stable')
        np.sort_complex({any})
        np.lexsort((i[0], j))
        np.lexsort(i)
        np.lexsort((i, i[::-1]), {one})
        np.lexsort(())
        np.partition({some}, 0, {axis})[..., 0]
        np.partition(e, 0)
        np.partition(m, 9)
        np.partition(v, [1, 2])[1:3]
        np.argpartition(v, 2)[2]
        np.argpartition(v, 9)
        np.searchsorted([1, 2, 3, 3, 5], {real}, {side})
        np.searchsorted([3, 1, 2], 2, sorter=[1, 2, 0])
        np.searchsorted(m, 2)
        np.nonzero({any})
        np.flatnonzero({any})
        np.argwhere({any})
        np.where({any})
        np.where({few}, 1, {few})
        np.where(m > 0, m, 0)
        np.where(m > 0, m)
    """,
    "sets": """
        np.unique({full})
        np.unique({sets}, return_index=True, return_inverse=True, return_counts=True)
        np.unique([3.0, nan, 1, nan], return_counts=True, equal_nan={keep})
        np.unique(i % 3, axis={one}, return_index=True, return_inverse=True, return_counts=True)
        np.unique([[1, 2], [1, 2], [0, 5]], axis=0)
        np.unique(e)
        np.sort(np.unique_values({sets}))
        np.sort(np.unique_counts(i)[0])
        np.unique_all(i)[1].shape
        np.isin({sets}, {sets})
        np.isin(i, [1, 2], invert=True)
        np.isin(i, np.arange(40) * 3)
        np.isin(n, [nan, 1])
        np.isin(m, [1], kind='table')
        np.{pair}({sets}, {sets})
        np.intersect1d(i, j, return_indices=True)
        np.intersect1d([3, 1, 2], [2, 3, 9], True, True)
        np.setdiff1d([3, 1, 2], [2], True)
        np.setxor1d([3, 1, 2], [2], True)
    """,
}
SETS = {
    "edges": "[5,3,1] [3,3,0] [1,3,5] [2,2] [4]",
    "median": "median nanmedian",
    "large": "[1e308,1.5e308,1.7e308] [nan,1.5e308,1.7e308,1.6e308] [inf] [-inf,inf,inf] [[1,inf,-inf],[2,inf,nan]]",
    "ranked": "v m t i j u z n s m[::2,::-1] t.T",
    "q": "0 0.25 0.5 1 [0.1,0.9] [[0,1]] []",
    "inner": "0.0 0.25 0.5 1.0 [0.1,0.9]",
    "percent": "0 33 [25,75] 100",
    "method": "'inverted_cdf' 'averaged_inverted_cdf' 'closest_observation' 'interpolated_inverted_cdf'"
    " 'hazen' 'weibull' 'linear' 'median_unbiased' 'normal_unbiased' 'lower' 'higher' 'midpoint' 'nearest'",
    "table": "v m i b c s j",
    "fold": "nansum nanprod",
    "running": "nancumsum nancumprod",
    "extreme": "nanmax nanmin",
    "place": "nanargmax nanargmin",
    "mean": "nanmean nanvar nanstd",
    "spread": "nanvar nanstd",
    "ddof": "0 1 3",
    "counts": "j u[0] b[0] [] [3,0,3] i v m [-1]",
    "length": "0 10 -1",
    "data": "v m i u j b s",
    "bins": "1 5 [-1,0,1] [0,0.5,0.7,2] 0 2.5 [1,0] [[1]]",
    "estimator": "'auto' 'fd' 'doane' 'scott' 'stone' 'rice' 'sturges' 'sqrt' 'other'",
    "some": "v m t i b z c",
    "kind": "None 'stable' 'quicksort' 'other'",
    "side": "'left' 'right' 'other'",
    "sets": "i j u b v",
    "pair": "union1d intersect1d setdiff1d setxor1d",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)


def positions(values, descending):
    """Positions that sort, one by one: those of values with NaN last, equal elements in their order."""

    def key(i):
        v = complex(values[i])
        undefined = 2 * math.isnan(v.real) + math.isnan(v.imag)
        sign = -1 if descending else 1
        return undefined, *(0 if math.isnan(part) else sign * part for part in (v.real, v.imag))

    return sorted(range(len(values)), key=key)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_in_both_directions(dtype, descending):
    """As NumPy 2.5 does, whose older versions sort upwards alone."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, (5, 9)).astype(dtype)
    if x.dtype.kind in "fc":
        x[rng.random(x.shape) < 0.2] = np.nan
    if x.dtype.kind == "c":
        x.imag = rng.integers(0, 3, x.shape)
        x.imag[rng.random(x.shape) < 0.2] = np.nan
    for axis in (0, 1, -1, None):
        rows = x.reshape(1, -1) if axis is None else np.moveaxis(x, axis, -1)
        want = np.array([positions(row, descending) for row in rows])
        order, ordered = want, np.take_along_axis(rows, want, -1)
        if axis is None:
            order, ordered = order[0], ordered[0]
        else:
            order, ordered = np.moveaxis(order, -1, axis), np.moveaxis(ordered, -1, axis)
        np.testing.assert_array_equal(np.asarray(nvp.argsort(x, axis, descending=descending)), order)
        np.testing.assert_array_equal(np.asarray(nvp.sort(x, axis, descending=descending)), ordered)
    with pytest.raises(ValueError, match="same time"):
        nvp.sort(x, kind="stable", descending=descending)
