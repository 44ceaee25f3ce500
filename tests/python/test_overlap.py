"""Which arrays have elements in common, against NumPy's shares_memory, and what a jitted function that writes to one
of two views does, against NumPy's arrays."""

import numpy as np
import pytest

import nvm

SHAPE = (6, 8, 5)


def random_key(rng, shape):
    key = []
    for n in shape:
        step = int(rng.choice([1, 1, 2, 3, -1, -2]))
        ends = sorted(int(i) for i in rng.integers(0, n + 1, 2))
        if n and rng.integers(4) == 0:
            key.append(int(rng.integers(n)))
        else:
            key.append(slice(*ends, step) if step > 0 else slice(ends[1] - 1 if ends[1] else None, None, step))
    return tuple(key)


def random_view(rng):
    """A chain of views, as a function of an array of SHAPE."""
    steps, at = [], np.broadcast_to(0, SHAPE)
    for _ in range(rng.integers(1, 4)):
        if at.ndim > 1 and rng.integers(3) == 0:
            order = tuple(int(i) for i in rng.permutation(at.ndim))
            steps.append(lambda a, order=order: a.transpose(*order))
        else:
            key = (*random_key(rng, at.shape), ...)
            steps.append(lambda a, key=key: a[key])
        at = steps[-1](at)

    def view(a):
        for step in steps:
            a = step(a)
        return a

    return view


def pairs(seed, n):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield random_view(rng), random_view(rng)


@pytest.mark.parametrize("dtype", ["f4", "c16", "u1"])
def test_views_share_memory_as_numpys_do(dtype):
    ours, theirs = nvm.asarray(np.zeros(SHAPE, dtype)), np.zeros(SHAPE, dtype)
    found = []
    for p, q in pairs(1, 500):
        want = np.shares_memory(p(theirs), q(theirs))
        assert nvm.shares_memory(p(ours), q(ours)) == want
        assert nvm.shares_memory(p(theirs), q(theirs)) == want
        assert nvm.may_share_memory(p(ours), q(ours)) == np.may_share_memory(p(theirs), q(theirs))
        assert nvm.may_share_memory(p(ours), q(ours), 100) >= want
        found.append(want)
    assert 50 < sum(found) < 450


def test_parts_of_complex_numbers_and_memory_of_others():
    z = nvm.asarray(np.arange(6) * 1j)
    assert (
        not nvm.shares_memory(z.real, z.imag) and nvm.shares_memory(z.real, z) and nvm.shares_memory(z.imag[2:], z[2:3])
    )
    assert not nvm.shares_memory(z, z.copy()) and not nvm.shares_memory(z, z + 1) and nvm.shares_memory(z, z)
    a = np.arange(24, dtype="u1")
    b = a[1:17].view("f8")  # no element lies on its boundary
    assert nvm.shares_memory(a[3:4], b) and not nvm.shares_memory(a[17:], b) and not nvm.shares_memory(z, a)
    x = nvm.asarray(b.astype("f4"), copy=False)
    assert not nvm.shares_memory(x, b)
    c = np.arange(4.0)
    assert nvm.shares_memory(nvm.asarray(c, copy=False), c[2:])
    with pytest.raises(TypeError, match="no memory that is known"):
        nvm.shares_memory(z, 3)


def test_a_bound_of_the_work():
    """Sums of steps that have no common divisor: every combination of indices may have to be tried."""
    memory = np.empty(1 << 25, "u1")
    steps = [2 * ((1 << 20) + (1 << (d + 1)) + 3 * d * d) for d in range(12)]
    a = np.lib.stride_tricks.as_strided(memory, (2,) * 12, steps)
    even, odd = memory[6 * (2 << 20) + 8484 :][:1], memory[6 * (2 << 20) + 8485 :][:1]
    assert nvm.shares_memory(a, even) == np.shares_memory(a, even)
    assert not nvm.shares_memory(a, odd, 1) and nvm.may_share_memory(a, odd) and not nvm.may_share_memory(a, odd, 1)
    assert nvm.may_share_memory(a, even, 100)
    with pytest.raises(RuntimeError, match="more than max_work"):
        nvm.shares_memory(a, even, max_work=100)


def compute(a, b):
    a *= 3
    a += b[:1].sum() if b.ndim else b
    b[...] = 7
    return a.sum()


@pytest.mark.parametrize("make", [nvm.asarray, np.copy])
def test_a_jitted_function_writes_to_two_views(make):
    run, refused = nvm.jit(compute), 0
    for p, q in pairs(2, 60):
        want, got = np.arange(240.0).reshape(SHAPE), make(np.arange(240.0).reshape(SHAPE))
        if np.shares_memory(p(want), q(want)) and p(want).__array_interface__ != q(want).__array_interface__:
            before = got.copy()
            with pytest.raises(ValueError, match=r"array 0 .*, float64 \(.*\) with strides \(.*\), of which array 1, "):
                run(p(got), q(got))
            assert np.array_equal(got, before)
            refused += 1
        else:
            total = compute(p(want), q(want))
            assert float(run(p(got), q(got))) == total
            assert np.array_equal(np.asarray(got), want)
    assert 5 < refused < 55


def add(a, b):
    a += b


@pytest.mark.parametrize("make", [nvm.asarray, np.copy])
@pytest.mark.parametrize(
    "p, q",
    [
        (np.s_[:5], np.s_[5:]),
        (np.s_[::2], np.s_[1::2]),
        (np.s_[:, 0], np.s_[:, 1]),
        (np.s_[0], np.s_[1]),
        (np.s_[:, 2:5], np.s_[:, 5:8]),
        (np.s_[::2, ::2], np.s_[::2, 1::2]),
        (np.s_[3:7, 1], np.s_[3:7, 1]),
    ],
)
def test_what_programs_pass(make, p, q):
    want, got = np.arange(100.0).reshape(10, 10), make(np.arange(100.0).reshape(10, 10))
    add(want[p], want[q])
    for _ in range(2):
        got = make(np.arange(100.0).reshape(10, 10))
        nvm.jit(add)(got[p], got[q])
        assert np.array_equal(np.asarray(got), want)


def test_one_memory_as_two_dtypes():
    a = np.zeros(4, "f4")
    with pytest.raises(ValueError, match=r"float32 \(4,\) .* of which array 1, int32 \(4,\) with strides \(4,\)"):
        nvm.jit(add)(a, a.view("i4"))


def test_memory_that_is_borrowed_and_memory_that_is_shown():
    a = np.arange(4.0)
    with pytest.raises(ValueError, match="of which array 1, "):
        nvm.jit(add)(a[1:], nvm.asarray(a, copy=False)[:3])
    x = nvm.asarray(np.arange(4.0))
    shown = np.asarray(x)  # keeps what it showed
    nvm.jit(add)(x, shown)
    assert x.tolist() == [0, 2, 4, 6] and shown.tolist() == [0, 1, 2, 3]


def test_a_captured_part_of_what_is_written():
    a = np.arange(6.0)
    low, high = a[:3], a[3:]
    nvm.jit(lambda x: add(x, high))(low)
    assert a.tolist() == [3, 5, 7, 3, 4, 5]
    with pytest.raises(ValueError, match="array 1, .*, which it captures, may show a part"):
        nvm.jit(lambda x: add(x, high))(a[2:5])


def test_tensors():
    torch = pytest.importorskip("torch")
    a = np.arange(6.0)
    t = torch.from_numpy(a)
    nvm.jit(add)(a[:3], t[3:])
    assert a.tolist() == [3, 5, 7, 3, 4, 5]
    with pytest.raises(ValueError, match="of which array 1, "):
        nvm.jit(add)(a[:3], t[2:5])
    assert nvm.shares_memory(a, t[2:]) and not nvm.shares_memory(a[:2], t[2:])
    assert float(nvm.jit(lambda t: t.sum())(t)) == a.sum()
