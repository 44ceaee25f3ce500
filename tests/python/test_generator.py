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


def drawn(g):
    """Draws of several kinds and what is fused with them."""
    x, y = g.random((37, 53)), g.random((37, 53), dtype=np.float32)
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
    assert nvm.counters()["bytes_peak"] - before < 1 << 24  # an eighth of what the draw would take


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

    with pytest.raises(NotImplementedError, match="draw for all steps in front of the loop"):
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
