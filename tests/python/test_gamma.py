"""Draws of gamma and beta distributions: distributions, moments, limits, the same bits however they are computed."""

import math

import numpy as np
import pytest

import nvm
from nvm.random import default_rng
from refs import same_bits_in_every_mode


def gap(draws, distribution):
    """The statistic of Kolmogorov and Smirnov times the root of the number of draws: above 2.2 once in 8,000 tests."""
    x = np.sort(np.asarray(draws, dtype=float).ravel())
    n = x.size
    p = np.array([distribution(v) for v in x])
    return max(np.max(np.arange(1, n + 1) / n - p), np.max(p - np.arange(n) / n)) * math.sqrt(n)


def erlang(k):
    return lambda x: 1 - math.exp(-x) * sum(x**j / math.factorial(j) for j in range(k))


GAMMAS = {0.5: lambda x: math.erf(math.sqrt(x)), 1: erlang(1), 2: erlang(2), 7: erlang(7), 30: erlang(30)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", GAMMAS)
def test_gamma_is_distributed_as_it_should_be(shape, dtype):
    g = default_rng(int(10 * shape))
    x = np.asarray(g.standard_gamma(shape, 40_000, dtype))
    assert str(x.dtype) == dtype and np.all(x >= 0)
    assert gap(x, GAMMAS[shape]) < 2.2
    scaled = np.asarray(g.gamma(np.full((2, 1), shape), [[3.0], [0.5]], (2, 20_000)))
    for row, scale in zip(scaled, (3.0, 0.5)):
        assert gap(row / scale, GAMMAS[shape]) < 2.2


BETAS = {
    (1, 1): lambda x: x,
    (0.5, 0.5): lambda x: 2 / math.pi * math.asin(math.sqrt(x)),
    (2, 1): lambda x: x * x,
    (1, 4): lambda x: 1 - (1 - x) ** 4,
    (3, 2): lambda x: 4 * x**3 - 3 * x**4,
}


@pytest.mark.parametrize("a, b", BETAS)
def test_beta_is_distributed_as_it_should_be(a, b):
    for dtype in ("float32", "float64"):
        assert gap(default_rng(17).beta(a, b, 40_000, dtype), BETAS[a, b]) < 2.2


@pytest.mark.parametrize("shape", [1e-3, 0.1, 3.3, 1e4, 1e8])
def test_moments_of_gamma(shape):
    n = 200_000
    x = np.asarray(default_rng(3).standard_gamma(shape, n))
    assert abs(x.mean() - shape) < 5 * math.sqrt(shape / n)
    fourth = 3 * shape**2 + 6 * shape  # the fourth central moment
    assert abs(x.var() - shape) < 5 * math.sqrt((fourth - shape**2) / n)


def test_limits():
    g = default_rng(0)
    assert np.all(np.asarray(g.gamma(0.0, 1.0, 10)) == 0) and np.all(np.asarray(g.gamma(2.0, 0.0, 10)) == 0)
    tiny = np.asarray(g.beta(1e-9, 1e-9, 1000))  # one of two points, and no 0 / 0
    assert set(np.round(tiny, 6)) == {0.0, 1.0} and 350 < tiny.sum() < 650
    assert np.all(np.isfinite(np.asarray(g.beta(1e-300, 5.0, 100))))
    for dtype, least in (("float32", 1e-39), ("float64", 1e-310)):  # below the normal numbers of the dtype
        for b in (least, 3 * least, nvm.asarray([3 * least])):
            x = np.asarray(g.beta(least, b, 1000, dtype))
            assert set(x) == {0.0, 1.0} and 180 < x.sum() < (650 if b is least else 320)  # 1 for a / (a + b) of them
    assert g.gamma(2.0).shape == () and g.beta([1.0, 2.0], 3.0).shape == (2,) and g.gamma(1.0, size=0).shape == (0,)


def test_an_element_depends_on_its_own_draws_alone():
    """A shape of one element changes no other element, and takes no counters from it."""
    shapes = np.full(500, 1.5)
    x = np.asarray(default_rng(4).standard_gamma(shapes))
    shapes[100:200] = 0.01
    g = default_rng(4)
    y = np.asarray(g.standard_gamma(shapes))
    assert np.array_equal(x[:100], y[:100]) and np.array_equal(x[200:], y[200:]) and not np.array_equal(x, y)
    h = default_rng(4)
    h.standard_gamma(1.5, 500)
    assert g.state == h.state


def test_bits_do_not_depend_on_who_computes_them():
    def draw():
        g = default_rng(6)
        return nvm.exp(-g.gamma(0.7, 2.0, 3000)) + g.beta(2.0, 0.3, 3000)

    same_bits_in_every_mode(draw)
    g = default_rng(6)
    f = nvm.jit(lambda: g.gamma(0.7, 2.0, 3000))
    first, second = np.asarray(f()), np.asarray(f())
    assert not np.array_equal(first, second)
    assert np.array_equal(first, np.asarray(default_rng(6).gamma(0.7, 2.0, 3000)))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda g: g.gamma(-1.0), r"\[gamma\] shape must be 0 or more, not -1.0"),
        (lambda g: g.gamma(1.0, -1.0), r"\[gamma\] scale must be 0 or more"),
        (lambda g: g.standard_gamma([1.0, -1.0]), r"\[standard_gamma\] shape must be 0 or more"),
        (lambda g: g.beta(0.0, 1.0), r"\[beta\] a must be above 0, not 0.0"),
        (lambda g: g.beta(1.0, [0.0]), r"\[beta\] b must be above 0"),
        (lambda g: g.gamma([1.0, 2.0], size=3), "do not broadcast"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call(default_rng(0))
