"""The softmax of scores times values in one kernel, which never has the scores in memory."""

import numpy as np
import pytest

import nvm
from attention import SCORES, WAYS, expected, program, softmax, turned


@pytest.fixture(autouse=True)
def kernels():
    """Products are planned as kernels, whatever this machine's library can do; and everything is planned."""
    before = nvm.settings()
    nvm.set("SOLVERS", "kernel")
    nvm.set("TIER", "planned")
    yield
    for name in ("SOLVERS", "TIER", "NUM_THREADS"):
        nvm.set(name, before["NVM_" + name])


def draw(rng, *shape):
    return rng.standard_normal(shape).astype("f4")


def is_one_kernel(f, *args):
    plan = f.explain(*args)
    return len(plan.kernels()) == 1 and plan.kernels()[0]["kind"] == "attention" and "temporaries" not in plan


SHAPES = [
    (2, 3, 70, 90, 32, 32),
    (1, 2, 5, 200, 17, 33),
    (2, 1, 130, 64, 64, 40),
    (1, 2, 65, 129, 80, 24),
    (1, 1, 40, 50, 256, 256),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SCORES)
def test_values(rng, shape, name):
    b, h, m, n, d, e = shape
    q, k, v, extra = draw(rng, b, h, m, d), draw(rng, b, h, n, d), draw(rng, b, h, n, e), draw(rng, h, m, n)
    extra[0, 0] = -1  # a row of which nothing is left
    args = [nvm.asarray(x) for x in (q, k, v, extra)]
    want = expected(q, k, v, SCORES[name], extra)
    for way in WAYS:
        f = program(way, SCORES[name])
        assert is_one_kernel(f, *args), f.explain(*args)
        np.testing.assert_allclose(np.asarray(f(*args)), want, rtol=1e-4, atol=1e-4)


def test_views_and_broadcast_heads(rng):
    """Heads that lie side by side; keys and values that groups of four heads share; a transposed result."""
    x, kv, bias = draw(rng, 2, 75, 8 * 16), draw(rng, 2, 80, 2, 2, 16), draw(rng, 80)

    def attend(x, kv, bias):
        q = nvm.permute_dims(nvm.reshape(x, (2, 75, 2, 4, 16)), (0, 2, 3, 1, 4))
        k, v = (nvm.permute_dims(kv[:, :, i], (0, 2, 1, 3))[:, :, None] for i in range(2))
        o = softmax((0.25 * q) @ turned(k) + bias, v)
        return nvm.reshape(nvm.permute_dims(o, (0, 3, 1, 2, 4)), (2, 75, 128))

    f, args = nvm.jit(attend), [nvm.asarray(a) for a in (x, kv, bias)]
    q = x.reshape(2, 75, 2, 4, 16).transpose(0, 2, 3, 1, 4)
    k, v = (kv[:, :, i].transpose(0, 2, 1, 3)[:, :, None] for i in range(2))
    want = expected(q, k, v, SCORES["bias"], bias).transpose(0, 3, 1, 2, 4).reshape(2, 75, 128)
    assert any(s["kind"] == "attention" for s in f.explain(*args).kernels()), f.explain(*args)
    np.testing.assert_allclose(np.asarray(f(*args)), want, rtol=1e-4, atol=1e-4)


def test_strided_and_reversed_operands(rng):
    q, k, v = draw(rng, 2, 60, 64)[:, ::2, ::-1], draw(rng, 2, 33, 70).swapaxes(1, 2)[:, 3:, :32], draw(rng, 2, 67, 48)
    k = np.ascontiguousarray(k) if k.shape[-1] != q.shape[-1] else k
    q = q[..., :32]
    f, args = program("softmax", SCORES["as they are"]), [nvm.asarray(a) for a in (q, k, v, np.zeros(1, "f4"))]
    assert is_one_kernel(f, *args), f.explain(*args)
    np.testing.assert_allclose(np.asarray(f(*args)), expected(q, k, v, SCORES["as they are"], 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits(rng, dtype):
    q, k, v = (nvm.asarray(draw(rng, 2, n, 48)).astype(dtype) for n in (50, 77, 77))
    f = program("by hand", SCORES["causal"])
    extra = nvm.asarray(np.zeros(1, "f4")).astype(dtype)
    assert is_one_kernel(f, q, k, v, extra), f.explain(q, k, v, extra)
    got = np.asarray(f(q, k, v, extra).astype("float32"))
    q, k, v = (np.asarray(x.astype("float32")) for x in (q, k, v))
    want = expected(q, k, v, SCORES["causal"], 0)
    np.testing.assert_allclose(got, want, rtol=2**-7, atol=2**-7 if dtype == "bfloat16" else 2**-10)


MASKS = {
    "i >= j": lambda i, j, s: nvm.where(i >= j, s, -np.inf),
    "j <= i": lambda i, j, s: nvm.where(j <= i, s, -np.inf),
    "j > i": lambda i, j, s: nvm.where(j > i, -np.inf, s),
    "i < j": lambda i, j, s: nvm.where(i < j, -np.inf, s),
    "i >= j, late": lambda i, j, s: nvm.where(i - 3 >= j - 3, s, -np.inf),
}


@pytest.mark.parametrize("m, n, more", [(200, 200, 0), (100, 300, 200), (300, 100, 0), (150, 160, -20), (192, 256, 64)])
@pytest.mark.parametrize("name", MASKS)
def test_keys_that_no_query_of_a_block_sees(rng, name, m, n, more):
    """They are not read, so that what is not finite among their values stays where a block reads it."""
    q, k, v = (draw(rng, 2, rows, 16) for rows in (m, n, n))

    def attend(q, k, v):
        i, j = nvm.arange(m)[:, None] + more, nvm.arange(n)[None, :]
        return softmax(MASKS[name](i, j, q @ turned(k)), v)

    f, args = nvm.jit(attend), [nvm.asarray(x) for x in (q, k, v)]
    assert is_one_kernel(f, *args)
    seen = np.arange(m)[:, None] + more >= np.arange(n)[None, :]
    want = expected(q * 4, k, v, lambda xp, s, extra: np.where(seen, s, -np.inf), 0)
    np.testing.assert_allclose(np.asarray(f(*args)), want, rtol=1e-4, atol=1e-4)
    if name != "i >= j, late" and 64 + more < n - 64:
        v[:, -1] = np.nan
        assert np.isfinite(np.asarray(f(*args[:2], nvm.asarray(v)))[:, max(0, -more) : 64]).all()


def test_special_values_stay_in_their_rows(rng):
    q, k, v = draw(rng, 70, 16), draw(rng, 90, 16), draw(rng, 90, 8)
    q[3, 4], q[5] = np.nan, np.inf
    v[17, 2] = np.inf
    f, args = program("softmax", SCORES["as they are"]), [nvm.asarray(a) for a in (q, k, v, np.zeros(1, "f4"))]
    got, want = np.asarray(f(*args)), expected(q, k, v, SCORES["as they are"], 0)
    assert is_one_kernel(f, *args)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_scores_whose_values_are_read_twice_each(rng):
    """A walk that visits each reader's operands anew would take 2^60 steps."""
    q, k, v = (draw(rng, 2, 40, 16) for _ in range(3))

    def scores(xp, s):
        for _ in range(60):
            s = xp.tanh(s) * 0.25 + s * 0.75
        return s

    def attend(q, k, v):
        return softmax(scores(nvm, q @ turned(k)), v)

    s = scores(np, q.astype("f8") @ np.swapaxes(k, 1, 2))
    e = np.exp(s - s.max(-1, keepdims=True))
    np.testing.assert_allclose(
        np.asarray(nvm.jit(attend)(q, k, v)), e / e.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5
    )


def test_what_is_not_attention(rng):
    """Scores that are wanted too, sums with something added, maxima of something else: none of them is."""
    q, k, v = (nvm.asarray(draw(rng, 2, n, 16)) for n in (50, 60, 60))
    s = lambda: q @ turned(k)  # noqa: E731

    def exp(x):
        return nvm.exp(x - nvm.max(x, axis=-1, keepdims=True))

    def with_scores():
        x = s()
        return softmax(x, v), x

    def one_more():
        e = exp(s())
        return (e / (1 + nvm.sum(e, axis=-1, keepdims=True))) @ v

    def another_axis():
        return nvm.softmax(s(), axis=-2) @ v

    for f in (with_scores, one_more, another_axis):
        assert "attention" not in [x["kind"] for x in nvm.jit(f).explain().kernels()]
    e = np.exp(np.asarray(s()) - np.asarray(s()).max(-1, keepdims=True))
    np.testing.assert_allclose(
        np.asarray(one_more()), e / (1 + e.sum(-1, keepdims=True)) @ np.asarray(v), rtol=1e-4, atol=1e-4
    )


def test_the_number_of_threads_changes_no_bit(rng):
    args = [nvm.asarray(draw(rng, 3, n, 32)) for n in (90, 150, 150)] + [nvm.asarray(np.zeros(1, "f4"))]
    f = program("softmax", SCORES["causal"])
    want = np.asarray(f(*args))
    nvm.set("NUM_THREADS", "1")
    assert np.array_equal(np.asarray(f(*args)), want)
