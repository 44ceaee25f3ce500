"""Random numbers: Philox against its published answers and a reference in NumPy, the same bits however they are
computed, the interface of NumPy's Generator, and counters inside jit."""

import pickle
import threading

import numpy as np
import pytest

import nvm
from nvm import _nvm
from nvm.random import Generator, default_rng

BITS = 0


def philox(counters, stream, key):
    """Philox 4x32-10 of Salmon et al. (2011), for an array of counters of 64 bits: an array (n, 4) of words."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    counters = np.asarray(counters, np.uint64)
    x = [counters & low, counters >> half]
    x += [np.full_like(counters, stream & 0xFFFFFFFF), np.full_like(counters, stream >> 32)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        p, q = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(q >> half) ^ x[1] ^ np.uint64(k[0]), q & low, (p >> half) ^ x[3] ^ np.uint64(k[1]), p & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(x, -1).astype(np.uint32)


def words(state, n):
    """The n words of 32 bits that a generator of this state draws next."""
    key, counter, stream, _ = state
    counters = (np.arange((n + 3) // 4, dtype=np.uint64) + np.uint64(counter)) & np.uint64(2**64 - 1)
    return philox(counters, stream, key).reshape(-1)[:n]


def bits(g, n, dtype):
    return np.asarray(_nvm.generator_draw(g._g, BITS, dtype, n))


def at(*state):
    g = Generator(0)
    g.state = state
    return g


@pytest.mark.parametrize(
    "counter,stream,key,answer",
    [  # the known answers that Random123 publishes for philox4x32, 10 rounds
        (0, 0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (2**64 - 1, 2**64 - 1, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            0x85A308D3243F6A88,
            0x0370734413198A2E,
            0x299F31D0A4093822,
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_known_answers(counter, stream, key, answer):
    assert philox([counter], stream, key).tolist() == [answer]
    assert bits(at(key, counter, stream, 0), 4, nvm.uint32).tolist() == answer
    wide = [answer[0] | answer[1] << 32, answer[2] | answer[3] << 32]
    assert bits(at(key, counter, stream, 0), 2, nvm.uint64).tolist() == wide


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 31, 32, 33, 1000, 4096, 70001])
def test_words_are_philox(n):
    g = at(0x123456789ABCDEF0, 2**64 - 5, 7, 0)
    state = g.state
    np.testing.assert_array_equal(bits(g, n, nvm.uint32), words(state, n))
    assert g.state == (state[0], (state[1] + (n + 3) // 4) % 2**64, 7, 0)
    state = g.state
    np.testing.assert_array_equal(bits(g, n, nvm.uint64), words(state, 2 * n).view(np.uint64))
    assert g.state[1] == (state[1] + (n + 1) // 2) % 2**64


def test_floats_are_the_first_bits():
    w = words(default_rng(3).state, 4000)
    np.testing.assert_array_equal(np.asarray(default_rng(3).random(2000)), (w.view(np.uint64) >> 11) * 2.0**-53)
    f32 = np.asarray(default_rng(3).random(4000, dtype=np.float32))
    np.testing.assert_array_equal(f32, (w >> 8).astype(np.float32) * np.float32(2.0**-24))
    assert f32.dtype == np.float32


def pairs(state, n, dtype):
    """Box and Muller's pairs of the generator's words, in long double, of the floats that the words are."""
    w = words(state, n + 3 if dtype == np.float32 else 2 * n + 2)
    if dtype == np.float32:
        x, y = w[: len(w) // 2 * 2].reshape(-1, 2).T
        u = ((x & 0x7FFFFFFF).astype(dtype).astype(float) * (2.0**-31 - 2.0**-55) + 2.0**-32).astype(dtype)
        angle, first = y.view(np.int32).astype(dtype) * np.longdouble(2.0**-31), x >> 31
    else:
        x, y = w.view(np.uint64)[: len(w) // 4 * 2].reshape(-1, 2).T
        u = ((x << np.uint64(1)) >> np.uint64(12)) * np.longdouble(2.0**-52) + 2.0**-53
        angle, first = (y >> np.uint64(12)) * np.longdouble(2.0**-51) - 1, x >> np.uint64(63)
    angle = angle * np.arctan(np.longdouble(1))
    r = np.sqrt(-2 * np.log(u.astype(np.longdouble))) * np.where(first, -1, 1)
    sides = np.stack([np.cos(angle), np.sin(angle)])
    return (r * np.where(y & y.dtype.type(1), sides[::-1], sides)).T.reshape(-1)[:n]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 31, 1001, 1 << 18])
def test_normals_are_pairs(n, dtype):
    g = at(0x123456789ABCDEF0, 2**64 - 5, 7, 0)
    want = pairs(g.state, n, dtype)
    x = np.asarray(g.standard_normal(n, dtype=dtype))
    assert x.dtype == dtype and np.all(np.abs(x - want) <= 3 * np.spacing(np.abs(want).astype(dtype)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normals_of_rows_and_parts(dtype):
    """Where neighbours begin anywhere, and where few are asked for."""
    want = np.asarray(default_rng(8).standard_normal(101 * 33, dtype=dtype)).reshape(101, 33)
    x = default_rng(8).standard_normal((101, 33), dtype=dtype)
    same_bits([x, x[5:, 1:], x[:, 3::2], x.T, x[7, 8]], [want, want[5:, 1:], want[:, 3::2], want.T, want[7, 8]])
    same_bits([nvm.maximum(x, x), nvm.max(x, axis=0)], [want, want.max(axis=0)])


def drawn(g):
    """Draws of several kinds and what is fused with them."""
    x, y = g.standard_normal((37, 53)), g.standard_normal((37, 53), dtype=np.float32)
    z = g.random((64, 96))
    return [
        x,
        y,
        x * 2 + y,
        nvm.sum(z, axis=1),
        nvm.sum(z, axis=0),
        nvm.exp(z).T[::-1, 3:50],
        nvm.sum(x + x),
        z[5, 7:90:4],
    ]


def same_bits(a, b):
    for p, q in zip(a, b, strict=True):
        assert np.asarray(p).tobytes() == np.asarray(q).tobytes()


@pytest.fixture
def setting():
    before = nvm.settings()
    changed = []

    def change(name, value):
        changed.append(name)
        nvm.set(name, value)

    yield change
    for name in changed:
        nvm.set(name, before["NVM_" + name.upper()])


@pytest.mark.parametrize(
    "changes",
    [
        {"fuse": "off"},
        {"tier": "0"},
        {"tier": "1"},
        {"tier": "direct"},
        {"tier": "planned"},
        {"num_threads": "1", "tier": "1"},
        {"check": "bits", "tier": "1"},
    ],
    ids=lambda c: " ".join("=".join(p) for p in c.items()),
)
def test_bits_do_not_depend_on_how(setting, changes):
    want = [np.asarray(x) for x in drawn(default_rng(8))]
    for name, value in changes.items():
        setting(name, value)
    same_bits(drawn(default_rng(8)), want)


def test_a_draw_is_fixed_when_it_is_called():
    g = default_rng(1)
    first, second = g.random(10), g.random(10)
    late = np.asarray(second), np.asarray(first)
    h = default_rng(1)
    same_bits([np.asarray(h.random(10)), np.asarray(h.random(10))], late[::-1])
    same_bits([first, first + 0], [late[1], late[1]])


def test_a_draw_used_twice_has_one_value():
    x = default_rng(4).random(100003)
    assert float(nvm.sum(x - x)) == 0
    y = np.asarray(x)
    np.testing.assert_array_equal(np.asarray(x[::-1]), y[::-1])


def test_nothing_is_stored():
    g = default_rng(2)
    nvm.reset_peak()
    before = nvm.counters()["bytes_used"]
    nvm.eval(nvm.sum(nvm.exp(g.random(1 << 24))))
    assert (
        nvm.counters()["bytes_peak"] - before < 1 << 27
    )  # what the draw would take; each thread has scratch of its own


def test_jit_draws_anew_in_each_call():
    g = default_rng(6)

    @nvm.jit
    def f(x):
        return x + g.random(5), g.random((2, 3), dtype=np.float32)

    zero = nvm.zeros(5)
    calls = [f(zero) for _ in range(3)]
    assert f.cache_size() == 1
    h = default_rng(6)
    for a, b in calls:
        same_bits([a, b], [h.random(5), h.random((2, 3), dtype=np.float32)])
    assert g.state == h.state


def test_jit_follows_the_state():
    g = default_rng(6)
    f = nvm.jit(lambda: g.random(4))
    first = np.asarray(f())
    g.state = default_rng(7).state
    same_bits([f()], [default_rng(7).random(4)])
    g.state = default_rng(6).state
    same_bits([f()], [first])


def test_jit_with_two_generators_and_loops():
    g, h = default_rng(1), default_rng(2)

    @nvm.jit
    def f(x):
        noise = g.random((3, 4))
        y = nvm.fori_loop(0, 3, lambda i, y: y + noise[i], x)
        return y + h.random(4), g.random(2)

    p, q = default_rng(1), default_rng(2)
    for _ in range(2):
        a, b = f(nvm.zeros(4))
        noise = np.asarray(p.random((3, 4)))
        np.testing.assert_allclose(np.asarray(a), noise[0] + noise[1] + noise[2] + np.asarray(q.random(4)), rtol=1e-14)
        same_bits([b], [p.random(2)])


@pytest.mark.parametrize("traced", [False, True])
def test_loops_refuse_to_draw(traced):
    g = default_rng(1)

    def run(x):
        return nvm.fori_loop(0, 3, lambda i, y: y + g.random(4), x)

    with pytest.raises(NotImplementedError, match="draw for all steps in front of it"):
        nvm.eval((nvm.jit(run) if traced else run)(nvm.zeros(4)))


def test_threads_draw_apart():
    g = default_rng(9)
    parts, n = [[] for _ in range(4)], 50

    def draw(out):
        out.extend(np.asarray(g.random(16)) for _ in range(n))

    threads = [threading.Thread(target=draw, args=(p,)) for p in parts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    got = sorted(x.tobytes() for p in parts for x in p)
    h = default_rng(9)
    assert got == sorted(np.asarray(h.random(16)).tobytes() for _ in range(4 * n))


def test_pickle_and_state():
    g = default_rng(11)
    g.random(7)
    h = pickle.loads(pickle.dumps(g))
    assert h.state == g.state
    same_bits([g.random(9)], [h.random(9)])
    assert "Philox" in repr(g) and default_rng(g) is g


def test_spawn_and_jump():
    g = default_rng(12)
    children = g.spawn(3) + g.spawn(2)
    assert len({c.state[0] for c in children + [g]}) == 6
    assert [c.state for c in default_rng(12).spawn(5)] == [c.state for c in children]
    assert [c.state[0] for c in children[0].spawn(2)] != [c.state[0] for c in children[1].spawn(2)]
    far = g.jumped(2)
    key, _, stream, _ = g.state
    assert far.state == (key, 0, stream + 2, 0)
    same_bits([far.random(5)], [g.jumped().jumped().random(5)])
    np.testing.assert_array_equal(bits(g.jumped(), 8, nvm.uint32), words((key, 0, stream + 1, 0), 8))


def test_seeds():
    seeds = [0, 1, 2, 2**64 - 1, 2**64, 2**200 + 1, [1, 2], [2, 1], [1, 2, 3]]
    assert len({default_rng(s).state[0] for s in seeds}) == len(seeds)
    assert default_rng([1, 2]).state == default_rng((1, 2)).state
    assert default_rng(np.int64(5)).state == default_rng(5).state
    assert default_rng().state != default_rng().state


def test_shapes():
    g = default_rng(0)
    assert g.random().shape == () and g.random(()).shape == () and g.random(3).shape == (3,)
    assert g.random((2, 0, 3)).shape == (2, 0, 3) and g.random([2, 3]).dtype == nvm.float64


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda g: g.random(-1), ValueError, "shape|extent|negative"),
        (lambda g: g.random((2, -3)), ValueError, "shape|extent|negative"),
        (lambda g: g.random(2.5), TypeError, None),
        (lambda g: g.random((2, "a")), TypeError, None),
        (lambda g: g.random(3, dtype=np.int32), TypeError, "draws float32 and float64, not int32"),
        (lambda g: g.random(3, dtype="float16"), TypeError, "draws float32 and float64, not float16"),
        (lambda g: g.random([1] * 40), ValueError, "more than 32 dimensions"),
        (lambda g: g.random(1 << 62), (ValueError, MemoryError, OverflowError), None),
        (lambda g: default_rng(-1), ValueError, "0 or more"),
        (lambda g: default_rng(1.5), TypeError, None),
        (lambda g: g.jumped(-1), ValueError, "jumps must be 0 or more"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        nvm.eval(call(default_rng(0)))


# ---- distributions
def normal_cdf(x):
    """Of NumPy's array, by nvm.erfc, which test_ulp holds."""
    return np.asarray(nvm.erfc(nvm.asarray(-x / np.sqrt(2)))) / 2


def distance(x, cdf):
    """Kolmogorov and Smirnov's statistic, times the root of n: above 2.2 with probability 1.3e-4."""
    p = cdf(np.sort(x.astype(np.float64)))
    k = np.arange(1, len(p) + 1) / len(p)
    return max(np.max(k - p), np.max(p - k + 1 / len(p))) * np.sqrt(len(p))


DISTRIBUTIONS = {
    "random": (lambda g, n, t: g.random(n, dtype=t), lambda x: x, 1 / 2, 1 / 12),
    "uniform": (lambda g, n, t: g.uniform(-1, 3, n, dtype=t), lambda x: (x + 1) / 4, 1, 16 / 12),
    "standard_normal": (lambda g, n, t: g.standard_normal(n, dtype=t), normal_cdf, 0, 1),
    "normal": (lambda g, n, t: g.normal(2, 0.5, n, dtype=t), lambda x: normal_cdf((x - 2) / 0.5), 2, 0.25),
    "exponential": (lambda g, n, t: g.exponential(3, n, dtype=t), lambda x: -np.expm1(-x / 3), 3, 9),
}
DRAWS = 1 << 20


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name, dtype):
    draw, cdf, mean, variance = DISTRIBUTIONS[name]
    x = np.asarray(draw(default_rng(21), DRAWS, dtype))
    assert x.dtype == dtype and distance(x, cdf) < 2.2
    x = x.astype(np.float64)
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / DRAWS)
    assert abs(x.var() / variance - 1) < 5 * np.sqrt(9 / DRAWS)
    apart = (x[1:] - mean) @ (x[:-1] - mean) / (variance * DRAWS)
    assert abs(apart) < 5 / np.sqrt(DRAWS)


def test_normals_are_symmetric_and_have_tails():
    x = np.asarray(default_rng(5).standard_normal(1 << 22))
    tails = (np.abs(x) > 4).sum()
    assert abs(tails - (1 << 22) * 6.334e-5) < 5 * np.sqrt((1 << 22) * 6.334e-5)
    for k, moment in ((3, 0), (4, 3), (6, 15)):
        spread = {3: 15, 4: 96, 6: 10170}[k]
        assert abs((x**k).mean() - moment) < 5 * np.sqrt(spread / len(x))


def test_streams_are_not_correlated():
    g = default_rng(30)
    streams = [g, *g.spawn(3), g.jumped(), g.jumped(2), default_rng(31)]
    x = np.stack([np.asarray(s.standard_normal(1 << 16)) for s in streams])
    c = np.corrcoef(x) - np.eye(len(x))
    assert np.abs(c).max() < 5 / 2**8


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 2**32 - 1, 2**32, 2**33 + 7, 2**63, 2**64 - 1, 2**64])
def test_integers_below(n):
    """floor(x n / 2^128) for 128 bits: a half of a counter, and the same half of the next one."""
    w = words(default_rng(3).state, 4 * 502).view(np.uint64).reshape(-1, 2, 2).transpose(0, 2, 1).reshape(-1, 2)
    want = [(int(x) << 64 | int(y)) * n >> 128 for x, y in w]
    for size in (1, 2, 501, 502):
        g = default_rng(3)
        assert [int(v) for v in np.asarray(g.integers(0, n, size, dtype="uint64"))] == want[:size]
        assert g.state[1] - default_rng(3).state[1] == size + size % 2


def test_integers_are_even():
    for n in (2, 6, 100):
        count = np.bincount(np.asarray(default_rng(40 + n).integers(5, 5 + n, DRAWS)) - 5, minlength=n)
        chi = ((count - DRAWS / n) ** 2).sum() / (DRAWS / n)
        assert len(count) == n and abs(chi - (n - 1)) < 5 * np.sqrt(2 * (n - 1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_of_all_dtypes(dtype):
    low, high = (0, 1) if dtype == "bool" else (int(nvm.iinfo(dtype).min), int(nvm.iinfo(dtype).max))
    x = default_rng(1).integers(low, high, 4000, dtype=dtype, endpoint=True)
    y = np.asarray(x)
    assert x.dtype.name == dtype
    assert abs((y.astype(float).mean() - (low + high) / 2) / (high - low + 1.0)) < 5 * np.sqrt(1 / 12 / 4000)
    if dtype in ("bool", "int8", "uint8"):
        assert y.min() == low and y.max() == high


def test_integers_of_arrays():
    low, high = np.array([0, 10, -5]), np.array([[3], [20]])
    with pytest.raises(ValueError, match="low must be below high"):
        default_rng(1).integers(low, np.array([1, 10, 3]))
    x = np.asarray(default_rng(1).integers(low, high + 10, (1000, 2, 3)))
    assert (x >= low).all() and (x < high + 10).all()
    assert (x.min(0) == low).all() and (x.max(0) == high + 9).all()


def test_choice_permutation_shuffle():
    g = default_rng(50)
    x = np.asarray(g.permutation(1000))
    assert sorted(x.tolist()) == list(range(1000)) and abs(np.corrcoef(x, np.arange(1000))[0, 1]) < 0.2
    a = np.arange(12).reshape(3, 4)
    for axis in (0, 1):
        mixed = np.asarray(g.permutation(a, axis=axis))
        assert sorted(map(tuple, np.moveaxis(mixed, axis, 0))) == sorted(map(tuple, np.moveaxis(a, axis, 0)))
    for y in (np.arange(100), nvm.arange(100), list(range(100))):
        g.shuffle(y)
        got = [int(v) for v in y]
        assert got != list(range(100)) and sorted(got) == list(range(100))
    assert len(set(np.asarray(g.choice(50, 50, replace=False)).tolist())) == 50
    assert np.asarray(g.choice([2.5, 3.5], (3, 4))).shape == (3, 4) and g.choice(a, 2, axis=1).shape == (3, 2)
    p = np.array([0.1, 0.0, 0.6, 0.3])
    count = np.bincount(np.asarray(g.choice(4, DRAWS, p=p)), minlength=4) / DRAWS
    assert count[1] == 0 and np.abs(count - p).max() < 5 * np.sqrt(0.25 / DRAWS)
    first = [int(np.asarray(g.choice(4, 2, replace=False, p=p))[0]) for _ in range(400)]
    assert abs(first.count(2) / 400 - 0.6) < 0.15 and 1 not in first


def test_parameters_broadcast():
    g, loc = default_rng(2), nvm.asarray([0.0, 100.0])
    x = np.asarray(g.normal(loc, 1.0, (3, 2)))
    assert (x[:, 1] > 50).all() and (x[:, 0] < 50).all()
    assert g.normal(loc).shape == (2,) and g.uniform(loc, loc + 1).shape == (2,)
    assert np.asarray(g.bernoulli(0.25, DRAWS)).mean() == pytest.approx(0.25, abs=0.003)


def test_module_functions():
    nvm.random.seed(7)
    first = [nvm.random.normal(0, 1, (2, 3)), nvm.random.rand(2, 2), nvm.random.randn(3), nvm.random.randint(0, 9, 5)]
    g = default_rng(7)
    same_bits(first, [g.normal(0, 1, (2, 3)), g.random((2, 2)), g.standard_normal(3), g.integers(0, 9, 5)])
    nvm.random.seed(7)
    f = nvm.jit(lambda: nvm.random.normal(0, 1, (2, 3)))
    same_bits([f()], first[:1])
    assert np.asarray(f()).tobytes() != np.asarray(first[0]).tobytes()


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda g: g.normal(0, -1, 3), ValueError, "scale must be 0 or more, not -1"),
        (lambda g: g.normal(0, nvm.asarray([1.0, -1.0])), ValueError, "scale must be 0 or more"),
        (lambda g: g.exponential(-0.5, 3), ValueError, "scale must be 0 or more"),
        (lambda g: g.normal(float("nan"), 1, 3), ValueError, "loc must be finite"),
        (lambda g: g.normal(1j, 1, 3), TypeError, "real numbers"),
        (lambda g: g.normal(np.zeros(3), 1, (2, 4)), ValueError, "broadcast"),
        (lambda g: g.normal(np.zeros((2, 1)), 1, 4), ValueError, "do not broadcast to size"),
        (lambda g: g.integers(3, 3), ValueError, "low must be below high"),
        (lambda g: g.integers(0), ValueError, "low must be below high"),
        (lambda g: g.integers(0, 256, dtype="int8"), ValueError, "not all int8"),
        (lambda g: g.integers(-1, 5, dtype="uint8"), ValueError, "not all uint8"),
        (lambda g: g.integers(0, 5, dtype="float32"), TypeError, "draws integers and bool"),
        (lambda g: g.choice(0, 1), ValueError, "nothing to choose from"),
        (lambda g: g.choice(3, 4, replace=False), ValueError, "without replacement"),
        (lambda g: g.choice(3, p=[0.5, 0.5]), ValueError, "p is of shape"),
        (lambda g: g.choice(2, p=[0.5, 0.4]), ValueError, "add up to 1"),
        (lambda g: g.bernoulli(1.5, 3), ValueError, "p must be from 0 to 1"),
        (lambda g: g.permutation(nvm.asarray(2.5)), ValueError, "no dimension"),
    ],
)
def test_errors_of_distributions(call, error, text):
    with pytest.raises(error, match=text):
        nvm.eval(call(default_rng(0)))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64", "int64"])
def test_integers_between_arrays_have_the_dtype_that_is_asked_for(dtype):
    low = np.array([0, 3], dtype=dtype)
    high = low + np.asarray(np.iinfo(dtype).max, dtype) - 3
    got = np.asarray(default_rng(3).integers(low, high, (1000, 2), dtype=dtype))
    assert got.dtype == dtype and (low <= got).all() and (got < high).all() and got.max() > high.max() // 2
    with pytest.raises(ValueError, match="not all int8"):
        default_rng(3).integers([0], [300], dtype="int8")


def test_choice_leaves_out_what_has_no_probability():
    g = default_rng(5)
    assert set(np.asarray(g.choice(4, 2, replace=False, p=[0.5, 0, 0.5, 0]))) == {0, 2}
    with pytest.raises(ValueError, match="fewer have a probability above 0"):
        g.choice(3, 2, replace=False, p=[1, 0, 0])
    assert g.choice(5, size=0).shape == (0,)


def test_permuted_lines_have_orders_of_their_own():
    x = np.arange(6000).reshape(20, 300)
    y = np.asarray(default_rng(5).permuted(x, axis=1))
    assert np.array_equal(np.sort(y, axis=1), x) and len({tuple(row) for row in y % 300}) == 20
    y = np.asarray(default_rng(5).permuted(x, axis=0))
    assert np.array_equal(np.sort(y, axis=0), x) and not np.array_equal(y, x)
    y = np.asarray(default_rng(5).permuted(nvm.asarray(x)))
    assert np.array_equal(np.sort(y, axis=None).reshape(x.shape), x) and (y // 300 != x // 300).mean() > 0.8
    for out in (nvm.asarray(x.copy()), x.copy()):
        assert default_rng(5).permuted(x, out=out) is out and np.array_equal(np.asarray(out), y)
    with pytest.raises(ValueError, match=r"\[permuted\] out is of shape \(3,\), not \(20, 300\)"):
        default_rng(5).permuted(x, out=np.zeros(3))


def test_bytes_are_those_of_the_words():
    for n in (0, 1, 7, 16):
        assert default_rng(4).bytes(n) == words(default_rng(4).state, 4 * n + 4).astype("<u4").tobytes()[:n]
    with pytest.raises(ValueError, match=r"\[bytes\] length must be 0 or more, not -1"):
        default_rng(4).bytes(-1)


def test_every_name_of_numpys_generator():
    missing = set(dir(np.random.Generator)) - set(dir(Generator))
    assert {name for name in missing if name[0] != "_"} == {"bit_generator"}
    with pytest.raises(AttributeError, match=r"\[bit_generator\] there is none"):
        default_rng(4).bit_generator  # noqa: B018
