"""var and std against higher precision: numbers that lose much to rounding wherever a mean, a shift or a merge is
off."""

import math

import numpy as np
import pytest

import nvm

EPS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def near_one(rng, shape):
    return 1 + 5e-6 * rng.standard_normal(shape)


def first_far(rng, shape):
    x = rng.standard_normal(shape)
    x[tuple(slice(1) for _ in shape)] += 1e4
    x[0] += 3e3
    return x


def outlier(rng, shape):
    x = rng.standard_normal(shape)
    x.flat[x.size // 3] = 1e6
    return x


def of_two(rng, shape):
    return np.where(np.arange(math.prod(shape)).reshape(shape) % 2, 1000.001, 1000.0)


DRAWS = {
    "near one": near_one,
    "first far": first_far,
    "outlier": outlier,
    "alternating": of_two,
    "sorted": lambda rng, shape: np.sort(rng.standard_normal(shape), axis=None).reshape(shape),
    "huge mean": lambda rng, shape: 1e5 + rng.standard_normal(shape),
    "steps": lambda rng, shape: np.repeat(rng.standard_normal(math.prod(shape) // 100 + 1) * 100, 100)[
        : math.prod(shape)
    ].reshape(shape),
}
# rows short and long, columns narrow and wide, axes in the middle, several and all
SHAPES = [
    ((7, 300), 1),
    ((300, 7), 0),
    ((64, 100), 0),
    ((3, 16384), 1),
    ((2, 16385), 1),
    ((1000, 17), 0),
    ((3, 700, 20), 1),
    ((9, 50, 30), (0, 2)),
    ((40, 30, 20), None),
    ((400000,), None),
    ((100,), None),
]


def moments(x, axis, correction):
    """var in higher precision, twice about the mean."""
    x = x.astype(np.longdouble)
    d = x - x.mean(axis=axis, keepdims=True)
    d = d - d.mean(axis=axis, keepdims=True)
    n = x.size // max(d.mean(axis=axis).size, 1)
    return (d * d).sum(axis=axis) / (n - correction)


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("draw", DRAWS)
def test_as_exact_as_two_passes(draw, dtype, correction, rng):
    own = "float64" if dtype == "float64" else "float32"
    for shape, axis in SHAPES:
        x = nvm.asarray(np.clip(DRAWS[draw](rng, shape), -60000, 60000)).astype(dtype)
        held = np.asarray(x.astype("float64"))
        var, least = moments(held, axis, correction), (16 * EPS[own] * np.abs(held).max()) ** 2  # of equal numbers
        numpy = np.var(held.astype(own), axis=axis, ddof=correction)
        for name, want, of_numpy in (("var", var, numpy), ("std", np.sqrt(var), np.sqrt(numpy))):
            got = np.asarray(getattr(nvm, name)(x, axis=axis, correction=correction).astype("float64"))
            size = want + (least if name == "var" else np.sqrt(least))
            fits = want < (65504 if dtype == "float16" else np.inf)
            off = (np.abs(got - want)[fits] / size[fits] / EPS[dtype]).max(initial=0)
            assert off <= (24 if dtype == own else 1.01), (name, shape, axis, float(off))
            if dtype == own:
                assert off <= max((np.abs(of_numpy - want) / size / EPS[dtype]).max(), 8), (name, shape, axis)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape, axis", [((5, 100), 1), ((2, 20000), 1), ((5000, 20), 0)])
def test_of_equal_numbers(shape, axis, dtype):
    """Nothing, or what rounding leaves of it; never NaN, which a variance below 0 would make of std."""
    for value in (0.1, -3.3, 1e4 / 3, 0.0):
        x = nvm.full(shape, value, dtype=dtype) + nvm.asarray(np.zeros(shape)).astype(dtype)
        y = np.asarray(nvm.std(x, axis=axis).astype("float64"))
        assert np.all(y <= 4 * EPS[dtype] * abs(value))


@pytest.mark.parametrize("shape, axis", [((5, 100), 1), ((2, 20000), 1), ((5000, 20), 0)])
def test_what_is_no_number(shape, axis, rng):
    for bad in (np.nan, np.inf, -np.inf):
        for at in ((0, 0), (1, 1), (-1, -1)):
            x = rng.standard_normal(shape).astype("float32")
            x[at] = bad
            with np.errstate(all="ignore"):
                want = np.isnan(np.std(x, axis=axis))
            np.testing.assert_array_equal(np.isnan(np.asarray(nvm.std(nvm.asarray(x), axis=axis))), want)


@pytest.mark.parametrize("shape, axis", [((10**7,), None), ((10**5, 100), 0), ((100, 10**5), 1)])
def test_many(shape, axis, rng):
    x = near_one(rng, shape).astype("float32")
    want = moments(x, axis, 0)
    assert np.abs(np.asarray(nvm.var(nvm.asarray(x), axis=axis)) / want - 1).max() <= 1.5 * EPS["float32"]


@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("draw", [*DRAWS, "offset"])
def test_of_what_a_mask_selects(draw, dtype, correction, rng):
    """The same bound; what is left out is far away, and as good as not there."""
    for shape, axis in (((7, 300), 1), ((300, 7), 0), ((2, 20000), 1), ((5000, 20), 0), ((40, 30, 20), None)):
        x = 1e8 + 100 * rng.standard_normal(shape) if draw == "offset" else DRAWS[draw](rng, shape)
        x, mask = x.astype(dtype), rng.random(shape) < 0.6
        x[~mask] = rng.choice([1e30, -1e30, np.inf, np.nan, 0], np.count_nonzero(~mask))
        rows = ((a.ravel(),) if axis is None else np.moveaxis(a, axis, -1) for a in (x, mask))
        held = [row[chosen] for row, chosen in zip(*rows)]
        for name, root in (("var", lambda v: v), ("std", np.sqrt)):
            got = np.ravel(np.asarray(getattr(nvm, name)(nvm.asarray(x), axis=axis, correction=correction, where=mask)))
            want = root(np.array([moments(row, 0, correction) for row in held]))
            least = root(np.array([(16 * EPS[dtype] * np.abs(row.astype(np.longdouble)).max()) ** 2 for row in held]))
            off = np.abs(got - want) / (want + least) / EPS[dtype]
            assert off.max() <= 24, (name, shape, axis, float(off.max()))
