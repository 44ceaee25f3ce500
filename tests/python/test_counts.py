"""Draws of Poisson, binomial, hypergeometric and zeta distributions: against their exact masses, limits, the same bits
however they are computed."""

import math

import numpy as np
import pytest

import nvm
from nvm.random import default_rng
from refs import same_bits_in_every_mode

N = 100_000


def poisson_mass(mean):
    return lambda k: np.exp(k * math.log(mean) - mean - log_factorial(k))


def binomial_mass(n, p):
    def mass(k):
        ways = math.lgamma(n + 1) - log_factorial(k) - log_factorial(n - k)
        return np.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))

    return mass


def hypergeometric_mass(good, bad, sample):
    def ways(n, k):
        return math.lgamma(n + 1) - log_factorial(k) - log_factorial(n - k)

    return lambda k: np.exp(ways(good, k) + ways(bad, sample - k) - ways(good + bad, np.array([float(sample)])))


def log_factorial(k):
    return np.array([math.lgamma(x + 1) for x in k])


def excess(draws, mass, lowest, highest):
    """The statistic of chi-square over all numbers and the tails, as a normal number: above 5 once in 10^5 tests."""
    x = np.asarray(draws)
    numbers = np.arange(lowest, highest + 1)
    expected = mass(numbers.astype(float)) * x.size
    seen = np.bincount(np.clip(x - lowest, 0, highest - lowest), minlength=numbers.size)
    many = expected > 8
    expected = np.append(expected[many], max(x.size - expected[many].sum(), 1e-9))
    seen = np.append(seen[many], x.size - seen[many].sum())
    used = expected > 8
    degrees = max(used.sum() - 1, 1)
    return (((seen - expected)[used] ** 2 / expected[used]).sum() - degrees) / math.sqrt(2 * degrees)


def around(mean, deviation, highest=math.inf):
    return max(0, int(mean - 8 * deviation - 8)), int(min(highest, mean + 8 * deviation + 8))


@pytest.mark.parametrize("mean", [1e-3, 0.5, 3, 9.99, 10, 13, 100, 3000.5])
def test_poisson_has_its_mass(mean):
    x = default_rng(int(1000 * mean)).poisson(mean, N)
    assert x.dtype.name == "int64"
    assert excess(x, poisson_mass(mean), *around(mean, math.sqrt(mean))) < 5


@pytest.mark.parametrize(
    "n, p", [(1, 0.5), (10, 0.3), (19, 0.5), (21, 0.5), (25, 0.45), (40, 0.9), (100, 0.11), (1000, 0.3), (10**6, 1e-5)]
)
def test_binomial_has_its_mass(n, p):
    x = default_rng(n).binomial(n, p, N)
    assert x.dtype.name == "int64"
    assert excess(x, binomial_mass(n, p), *around(n * p, math.sqrt(n * p * (1 - p)), n)) < 5


@pytest.mark.parametrize(
    "draw, mean, variance",
    [
        (lambda g: g.poisson(1e6, N), 1e6, 1e6),
        (lambda g: g.poisson(1e9, N), 1e9, 1e9),
        (lambda g: g.poisson(1e15, N), 1e15, 1e15),
        (lambda g: g.poisson(1e-9, N), 1e-9, 1e-9),
        (lambda g: g.binomial(10**9, 0.5, N), 5e8, 2.5e8),
        (lambda g: g.binomial(10**15, 0.999, N), 9.99e14, 9.99e11),
        (lambda g: g.binomial(10**15, 1e-14, N), 10.0, 10.0),
        (lambda g: g.binomial(2**62, 0.5, N), 2.0**61, 2.0**60),
    ],
)
def test_moments_and_normal_limits(draw, mean, variance):
    x = (np.asarray(draw(default_rng(5))).astype(float) - mean) / math.sqrt(variance)
    fourth = 3 + 1 / variance
    assert abs(x.mean()) < 5 / math.sqrt(N) and abs(x.var() - 1) < 5 * math.sqrt(fourth / N)
    if variance > 1e5:
        p = [0.5 * math.erfc(-v / math.sqrt(2)) for v in (-3, -1, 0, 1, 3)]
        for share, v in zip(p, (-3, -1, 0, 1, 3)):
            assert abs((x <= v).mean() - share) < 5 * math.sqrt(share * (1 - share) / N) + 1 / math.sqrt(variance)


@pytest.mark.parametrize(
    "good, bad, sample",
    [
        (1, 1, 1),
        (10, 10, 5),
        (20, 20, 20),
        (3, 500, 400),
        (500, 3, 100),
        (60, 40, 50),
        (100, 300, 350),
        (2000, 900, 700),
    ]
    + [(900, 10**5, 2000), (10**5, 900, 99_000), (5000, 5000, 5000)],
)
def test_hypergeometric_has_its_mass(good, bad, sample):
    x = default_rng(good).hypergeometric(good, bad, sample, N)
    assert x.dtype.name == "int64"
    p = sample / (good + bad)
    deviation = math.sqrt(good * p * (1 - p) * bad / (good + bad - 1))
    lowest, highest = around(good * p, deviation, min(good, sample))
    mass = hypergeometric_mass(good, bad, sample)
    assert excess(x, mass, max(lowest, sample - bad), highest) < 5


@pytest.mark.parametrize("a", [1.05, 1.5, 2.0, 3.7, 12.0])
def test_zipf_has_its_mass(a):
    """Divided by the sum of all masses below 2^63, by the formula of Euler and Maclaurin."""
    x, n, end = default_rng(int(10 * a)).zipf(a, N), 1000, 2.0**63
    total = (np.arange(1, n) ** -a).sum() + n**-a / 2 + a * n ** (-a - 1) / 12
    total += (n ** (1 - a) - end ** (1 - a)) / (a - 1)
    assert x.dtype.name == "int64" and np.asarray(x).min() == 1
    assert excess(x, lambda k: k**-a / total, 1, 500) < 5


def test_limits():
    g = default_rng(0)
    for x, want in (
        (g.poisson(0, 9), 0),
        (g.binomial(0, 0.5, 9), 0),
        (g.binomial(7, 0.0, 9), 0),
        (g.binomial(7, 1.0, 9), 7),
        (g.binomial(2**63 - 1, 1, 9), 2**63 - 1),
        (g.binomial(10**6, 1e-300, 9), 0),
        (g.binomial(10**6, 1 - 2.0**-53, 9), 10**6),
        (g.zipf(1e300, 9), 1),
        (g.hypergeometric(0, 0, 0, 9), 0),
        (g.hypergeometric(5, 0, 3, 9), 3),
        (g.hypergeometric(0, 5, 3, 9), 0),
        (g.hypergeometric(4, 7, 11, 9), 4),
        (g.hypergeometric(10**9 - 1, 10**9 - 1, 2 * 10**9 - 2, 9), 10**9 - 1),
    ):
        assert np.array_equal(np.asarray(x), np.full(9, want))
    assert np.asarray(g.poisson(2.0**63 - 2.0**37, 100)).min() > 2**62
    assert g.poisson(3.0).shape == () and g.poisson([1.0, 20.0]).shape == (2,) and g.binomial(3, 0.5, 0).shape == (0,)
    x = np.asarray(g.binomial(np.array([[5], [500]]), np.array([0.0, 0.5, 1.0]), (4000, 2, 3)))
    assert np.all(x[:, :, 0] == 0) and np.all(x[:, 0, 2] == 5) and np.all(x[:, 1, 2] == 500)
    assert abs(x[:, 1, 1].mean() - 250) < 5 * math.sqrt(125 / 4000) and np.all((x[:, 0] >= 0) & (x[:, 0] <= 5))
    assert np.asarray(g.binomial(7.9, 1.0)) == 7  # floats are truncated, as NumPy does


def test_an_element_depends_on_its_own_draws_alone():
    means = np.full(500, 4.0)
    x = np.asarray(default_rng(4).poisson(means))
    means[100:200] = 1e5
    g = default_rng(4)
    y = np.asarray(g.poisson(means))
    assert np.array_equal(x[:100], y[:100]) and np.array_equal(x[200:], y[200:]) and y[100:200].min() > 9e4
    h = default_rng(4)
    h.poisson(4.0, 500)
    assert g.state == h.state


def test_bits_do_not_depend_on_who_computes_them():
    def draw():
        g = default_rng(6)
        mixed = np.tile([0.5, 9.0, 11.0, 1e4, 1e12, 0.0, 2.0], 400)
        return g.poisson(mixed) * 3 + g.binomial(1000, np.linspace(0, 1, 2800)) - g.poisson(25.0, 2800)

    def draw_more():
        g = default_rng(7)
        kinds = np.tile([0, 1, 5, 400, 10**6], 560)
        return g.hypergeometric(kinds, 400, kinds // 2, 2800) + g.zipf(np.linspace(1.01, 5, 2800))

    same_bits_in_every_mode(draw_more)
    for t in ("float32", "float64"):
        same_bits_in_every_mode(
            lambda t=t: default_rng(8).vonmises(0.0, np.geomspace(1e-9, 1e9, 2800, dtype=t), dtype=t)
        )
    same_bits_in_every_mode(draw)
    g = default_rng(6)
    f = nvm.jit(lambda p: g.binomial(50, p, 3000))
    first, second = np.asarray(f(nvm.asarray(0.5))), np.asarray(f(nvm.asarray(0.5)))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, np.asarray(default_rng(6).binomial(50, 0.5, 3000)))


def test_a_traced_parameter_that_is_none_gives_minus_one():
    g = default_rng(1)
    f = nvm.jit(lambda v: (g.poisson(v), g.binomial(10, v), g.binomial(v * 10, 0.5)))
    means, shares, counts = map(np.asarray, f(nvm.asarray([-1.0, math.nan, 0.5, 1e300, -math.inf])))
    assert list(means[[0, 1, 3, 4]]) == [-1] * 4 and means[2] >= 0
    assert list(shares[[0, 1, 3, 4]]) == [-1] * 4 and 0 <= shares[2] <= 10
    assert counts[0] == -1 and 0 <= counts[2] <= 5
    f = nvm.jit(lambda v: (g.zipf(v), g.hypergeometric(v, 10, 3), g.hypergeometric(7, 8, v)))
    zetas, goods, samples = map(np.asarray, f(nvm.asarray([-1.0, math.nan, 2.5, 1e300, -math.inf])))
    assert list(zetas[[0, 1, 4]]) == [-1] * 3 and zetas[2] >= 1 and zetas[3] == 1
    assert list(goods[[0, 3, 4]]) == [-1] * 3 and list(samples[[0, 3, 4]]) == [-1] * 3 and 0 <= samples[2] <= 2
    f = nvm.jit(lambda n, p: g.binomial(n, p))
    for n, p in ((-(10**9), -1e4), (-5, -100.0), (10**9, -0.5), (-(10**9), 0.5), (10**9, 7.0)):
        assert np.array_equal(np.asarray(f(nvm.asarray([n] * 20), nvm.asarray([p] * 20))), [-1] * 20)


def test_multivariate_hypergeometric_has_its_mass():
    colors, sample, n = [2, 0, 3, 1], 3, 40_000
    x = np.asarray(default_rng(6).multivariate_hypergeometric(colors, sample, n))
    assert x.shape == (n, 4) and x.dtype == np.int64 and (x.sum(1) == sample).all()
    seen = {}
    for row, count in zip(*np.unique(x, axis=0, return_counts=True)):
        p = math.prod(math.comb(c, int(k)) for c, k in zip(colors, row)) / math.comb(sum(colors), sample)
        assert abs(count - n * p) < 5 * math.sqrt(n * p)
        seen[tuple(row)] = p
    assert abs(sum(seen.values()) - 1) < 1e-12  # every outcome was drawn
    g = default_rng(7)
    assert np.asarray(g.multivariate_hypergeometric([4, 5], 9, (2, 3))).tolist() == [[[4, 5]] * 3] * 2
    assert np.asarray(g.multivariate_hypergeometric(np.array([7]), 3)).tolist() == [3]
    assert g.multivariate_hypergeometric([], 0, 2).shape == (2, 0)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda g: g.poisson(-0.5), r"\[poisson\] lam must be 0 or more, not -0.5"),
        (lambda g: g.poisson([1.0, math.nan]), r"\[poisson\] lam must be 0 or more"),
        (lambda g: g.poisson(math.nan), r"\[poisson\] lam must be finite"),
        (lambda g: g.poisson(1e19), r"\[poisson\] lam must be below 2\^63, not 1e\+19"),
        (lambda g: g.binomial(-1, 0.5), r"\[binomial\] n must be 0 or more, not -1"),
        (lambda g: g.binomial(10, 1.5), r"\[binomial\] p must be from 0 to 1, not 1.5"),
        (lambda g: g.binomial(10, -0.1), r"\[binomial\] p must be from 0 to 1"),
        (lambda g: g.binomial(10, [0.5, math.nan]), r"\[binomial\] p must be from 0 to 1"),
        (lambda g: g.binomial([1, 2], 0.5, size=3), "do not broadcast"),
        (lambda g: g.zipf(1.0), r"\[zipf\] a must be above 1, not 1.0"),
        (lambda g: g.zipf([2.0, math.nan]), r"\[zipf\] a must be above 1"),
        (lambda g: g.vonmises(0.0, -1.0), r"\[vonmises\] kappa must be 0 or more, not -1.0"),
        (lambda g: g.hypergeometric(-1, 5, 2), r"\[hypergeometric\] ngood must be 0 or more, not -1"),
        (lambda g: g.hypergeometric(5, 10**9, 2), r"\[hypergeometric\] nbad must be below 10\^9, not 1000000000"),
        (lambda g: g.hypergeometric(5, 6, 12), r"\[hypergeometric\] nsample must be at most ngood \+ nbad, not 12"),
        (lambda g: g.hypergeometric([5, 2], 6, [11, 11]), r"\[hypergeometric\] nsample must be at most"),
        (lambda g: g.hypergeometric([1, 2], 6, 3, size=3), "do not broadcast"),
        (lambda g: g.multivariate_hypergeometric([2, -1], 1), "colors must be 0 or more, and their sum below"),
        (lambda g: g.multivariate_hypergeometric([10**9, 1], 1), "colors must be 0 or more, and their sum below"),
        (lambda g: g.multivariate_hypergeometric([2, 1], 4), "nsample must be from 0 to 3, not 4"),
        (lambda g: g.multivariate_hypergeometric([[2, 1]], 4), r"integers along one axis, not int64 of shape \(1, 2\)"),
        (lambda g: g.multivariate_hypergeometric([2.5, 1], 1), "integers along one axis, not float64"),
        (lambda g: g.multivariate_hypergeometric([2, 1], 1, method="all"), "'marginals' or 'count', not 'all'"),
        (lambda g: g.multinomial(5, [0.9, 0.9, 0.1]), "pvals must add up to 1"),
        (lambda g: g.multinomial(5, 0.5), "has no last axis"),
        (lambda g: g.geometric(0.0), "p must be above 0 and at most 1"),
        (lambda g: g.negative_binomial(0, 0.5), "n must be above 0"),
        (lambda g: g.triangular(3.0, 2.0, 5.0), "mode must be at least left"),
        (lambda g: g.triangular([1.0, 5.0], 2.0, 5.0), "must be"),
        (lambda g: g.dirichlet([0.5, 0.0]), "alpha must be above 0"),
        (lambda g: g.weibull(-1.0), "a must be 0 or more"),
        (lambda g: g.standard_t([1.0, -1.0]), "df must be above 0"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call(default_rng(0))


INTEGERS = {
    "geometric": (lambda g: g.geometric(0.3, N), lambda k: 0.3 * 0.7 ** (k - 1), 1, 60),
    "negative_binomial": (
        lambda g: g.negative_binomial(4.5, 0.4, N),
        lambda k: (
            np.array([math.exp(math.lgamma(x + 4.5) - math.lgamma(4.5) - math.lgamma(x + 1)) for x in k])
            * (0.4**4.5 * 0.6**k)
        ),
        0,
        80,
    ),
    "logseries": (lambda g: g.logseries(0.8, N), lambda k: 0.8**k / k / -math.log(0.2), 1, 80),
    "multinomial": (
        lambda g: nvm.asarray(np.asarray(g.multinomial(50, [0.2, 0.3, 0.5], N))[:, 1]),
        binomial_mass(50, 0.3),
        0,
        50,
    ),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_their_mass(name):
    draw, mass, lowest, highest = INTEGERS[name]
    x = draw(default_rng(8))
    assert x.dtype.name == "int64" and excess(x, mass, lowest, highest) < 5


def test_multinomial_counts_all_events():
    g = default_rng(3)
    x = np.asarray(g.multinomial([[5], [1000]], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    assert x.shape == (2, 2, 3) and np.array_equal(x.sum(-1), [[5, 5], [1000, 1000]])
    assert np.all(x[:, 0, 2] == 0) and np.array_equal(x[:, 1], [[0, 0, 5], [0, 0, 1000]])
    assert np.array_equal(np.asarray(g.multinomial(9, [1.0])), [9]) and g.geometric(1.0).item() == 1
