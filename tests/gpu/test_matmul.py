"""Matrix products on a GPU by cuBLASLt and by kernels of their own: every dtype, transpose and tail at sizes that
tensor cores like, great and ragged sizes, windows, little memory; and who runs what. Random ones: test_products.py."""

import os
import subprocess
import sys

import numpy as np
import pytest

import gemms
import mlp
import nvm
from conftest import GPU


def _leaf(rng, shape, dtype, turned=False):
    x = rng.uniform(-1, 1, shape[::-1] if turned else shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.uniform(-1, 1, x.shape)
    x = nvm.asarray(x, device=GPU).astype(dtype).eval()
    return (nvm.matrix_transpose(x) if turned else x), gemms.wide(x).T if turned else gemms.wide(x)


def _tails(real):
    yield "none", lambda y, c, d: y
    yield "bias", lambda y, c, d: y + c
    yield "scale and add", lambda y, c, d: 0.5 * y - 2 * d
    if real:
        yield "bias, relu", lambda y, c, d: nvm.maximum(y + c, 0)
        yield "bias, gelu", lambda y, c, d: nvm.gelu(y + c, approximate=True)
        yield "tanh, residual", lambda y, c, d: nvm.tanh(y) + d


def _in_numpy(name, y, c, d):
    z = y + c
    return {
        "none": y,
        "bias": z,
        "scale and add": 0.5 * y - 2 * d,
        "bias, relu": np.maximum(z.real, 0),
        "tanh, residual": np.tanh(y) + d,
        "bias, gelu": z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2,
    }[name]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
def test_every_tail(dtype, turned, rng, solvers):
    m, n, k = 192, 136, 320
    a, va = _leaf(rng, (m, k), dtype, turned[0] == "t")
    b, vb = _leaf(rng, (k, n), dtype, turned[1] == "t")
    c, vc = _leaf(rng, (n,), dtype)
    d, vd = _leaf(rng, (m, n), dtype)
    eps = gemms.EPS[gemms.SUMS.get(dtype, dtype)]
    for name, tail in _tails(not dtype.startswith("complex")):
        got, want = gemms.wide(tail(a @ b, c, d)), _in_numpy(name, va @ vb, vc, vd)
        size = np.abs(va @ vb) + np.abs(vc) + 2 * np.abs(vd) + 1
        bound = 2 * k * eps * (np.abs(va) @ np.abs(vb)) + 4 * gemms.EPS[dtype] * size
        assert np.all(np.abs(got - want) <= bound), (name, np.max(np.abs(got - want) / bound))


def short_sums(m, n):
    """Of up to four k-tiles an operand stays in shared memory, if tiles are many; of five none does."""
    rng = np.random.default_rng(5)
    rows = rng.choice(m, 64)
    nvm.set("SOLVERS", "kernel")
    for dtype, turned in (("bfloat16", False), ("float16", True)):
        for k in (40, 128, 136, 256, 264):
            (a, va), (b, vb) = _leaf(rng, (m, k), dtype), _leaf(rng, (k, n), dtype, turned)
            c, vc = _leaf(rng, (n,), dtype)
            got, sums = gemms.wide(nvm.relu(a @ b + c))[rows], va[rows] @ vb
            bound = 4 * gemms.EPS[dtype] * (np.abs(sums) + np.abs(vc) + 1)
            assert np.all(np.abs(got - np.maximum(sums + vc, 0)) <= bound), (dtype, k)
    nvm.set("SOLVERS", "all")


def reduced_rows(m, n, k):
    """Each block reduces the rows of the widest tile, where tiles are many; a small kernel does the rest. The tile is
    that of warpgroups (9.0); what is right is right anywhere."""
    rng = np.random.default_rng(6)
    (a, va), (b, vb) = _leaf(rng, (m, k), "bfloat16"), _leaf(rng, (k, n), "bfloat16")
    y = gemms.wide(a @ b)
    assert np.all(np.abs(y - va @ vb) <= 4 * gemms.EPS["bfloat16"] * (np.abs(va) @ np.abs(vb)))
    most, least, sums = (f(a @ b, axis=1) for f in (nvm.max, nvm.argmin, nvm.sum))
    for x in (most, least, sums) if "compute capability 9.0" in str(nvm.info()) else ():
        text = nvm.explain(x)
        assert "(partials)" in text.split("\n  2.")[0] and f"{-(-m // 128) * -(-n // 256)} blocks" in text, text
    off = 2 * gemms.EPS["bfloat16"] * np.abs(y).max()  # its sums may be in another order
    assert np.all(np.abs(gemms.wide(most) - y.max(1)) <= off)
    assert np.all(np.take_along_axis(y, np.asarray(least)[:, None], 1)[:, 0] <= y.min(1) + off)
    assert np.all(np.abs(gemms.wide(sums) - y.sum(1)) <= 2 * gemms.EPS["bfloat16"] * np.abs(y).sum(1))


def _with_many_tiles(emulated, check, large, small):
    """On the emulator in a process of its own, whose device has so few multiprocessors that few tiles are many."""
    if not emulated:
        return check(*large)
    env = {**os.environ, "NVM_EMU_SMS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    code = f"import test_matmul; test_matmul.{check.__name__}(*{small})"
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr


@pytest.mark.emulated
def test_short_sums(emulated):
    _with_many_tiles(emulated, short_sums, (8264, 5000), (1100, 520))


@pytest.mark.emulated
def test_rows_are_reduced_in_the_widest_tiles(emulated):
    _with_many_tiles(emulated, reduced_rows, (4096, 4096, 2048), (200, 1000, 72))


@pytest.mark.emulated
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_library_runs_what_it_can_say(dtype, rng):
    a, b, c = (_leaf(rng, s, dtype)[0] for s in ((512, 2048), (2048, 512), (512,)))
    # its GELU is not good enough for float32
    short = (nvm.gelu(a @ b + c, approximate=True),) if dtype == "bfloat16" else ()
    for y in (a @ b, a @ b + c, nvm.relu(a @ b + c), nvm.matrix_transpose(b) @ nvm.matrix_transpose(a), *short):
        text = nvm.explain(y)
        assert "runs by cublaslt" in text and "1 kernel" in text, text


@pytest.mark.emulated
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_factor_of_0_is_mathematics(dtype, solvers):
    """A number that is given with each call, 0 and other ones in turn, of a product and of what is added to one."""
    a, b, c = np.ones((64, 512)), np.full((512, 64), 0.0625), np.ones((64, 64))
    bad, far = a.copy(), c.copy()
    bad[3, 7], bad[5, 9], far[2, 4], far[6, 1] = np.nan, np.inf, np.nan, -np.inf
    a, b, c, bad, far = (nvm.asarray(x, device=GPU).astype(dtype).eval() for x in (a, b, c, bad, far))
    for f, x, y in ((lambda p, c, s: s * p + c, bad, c), (lambda p, c, s: p - c * s, a, far)):
        given = nvm.jit(lambda x, b, y, s: f(x @ b, y, s))
        for s in (0.0, 2.0, 0, -0.0, 3):
            with np.errstate(all="ignore"):
                want = f(gemms.wide(x) @ gemms.wide(b), gemms.wide(y), s)
            np.testing.assert_array_equal(gemms.wide(given(x, b, y, s)), want)


@pytest.mark.emulated
@pytest.mark.parametrize("act, dtype", [("relu", "bfloat16"), ("gelu", "float16"), ("relu", "float32")])
def test_a_training_step(act, dtype, rng):
    """Two layers there and back in one program, against float64; with enough rows that a bias' gradient is summed where
    its product is made."""
    x = [nvm.asarray(v, device=GPU).astype(dtype).eval() for v in mlp.operands(rng, 2056, 40, 72, 24)]
    got = nvm.jit(lambda *a: mlp.step(nvm, act, *a))(*x)
    want = mlp.step(np, act, *(gemms.wide(v) for v in x))
    for name, g, v in zip(("loss", "dw1", "db1", "dw2", "db2"), got, want):
        off = np.linalg.norm(gemms.wide(g) - v) / np.linalg.norm(v)
        assert off < {"float32": 1e-5, "float16": 4e-3, "bfloat16": 2e-2}[dtype], (name, off)


@pytest.mark.emulated
def test_columns_of_wide_tiles_are_summed_in_parts(rng):
    """A tile whose sums fill the registers, and rows behind its end."""
    (r, vr), (dy, vdy), (w, vw) = (_leaf(rng, s, "bfloat16") for s in ((2040, 4096), (2040, 128), (4096, 128)))

    @nvm.jit
    def back(r, dy, w):
        dh = nvm.where(r > 0, dy @ w.T, 0)
        return dh, nvm.sum(dh, axis=0)

    text = nvm.explain(back, r, dy, w)
    assert "sum of its columns" in text, text
    want = np.where(vr > 0, vdy @ vw.T, 0)
    for got, v in zip(back(r, dy, w), (want, want.sum(0))):
        assert np.linalg.norm(gemms.wide(got) - v) < 4e-3 * np.linalg.norm(v)


@pytest.mark.emulated
def test_kernels_of_a_training_step():
    """By hand: r = relu(x w1 + b1), all that is kept of the layer; dy = (r w2 + b2 - t) 2 / n and sums of
    its columns; dh = where(r > 0, dy w2.T, 0) and sums of its; x.T dh and r.T dy; what is left of either sum."""
    n = 4096
    x = [nvm.zeros(s, dtype="bfloat16", device=GPU).eval() for s in ((n, n), (n, n), (n,), (n, n), (n,), (n, n))]
    text = nvm.explain(nvm.jit(lambda *a: mlp.step(nvm, "relu", *a)[1:]), *x)
    assert text.startswith("7 kernels"), text
    assert text.count("d = relu(a b + bias)") == 1 and text.count("d = a^T b") == 2, text
    own = text.count("not by cublaslt: its own kernel is expected to be faster")
    assert own + text.count("runs by cublaslt") == 3, text  # which one it is depends on the GPU
    assert text.count("not by cublaslt: sum of its columns") == 2, text


@pytest.mark.emulated
def test_a_tail_that_is_done_again_for_rare_inputs(rng):
    """Results of 16 bits leave in boxes, rounded as they are packed: what the slow form of tanh makes is there by
    then."""
    (a, va), (b, vb) = _leaf(rng, (2056, 40), "float16"), _leaf(rng, (40, 264), "float16")
    nvm.set("SOLVERS", "kernel")
    try:
        got = gemms.wide(nvm.tanh(a @ b))
    finally:
        nvm.set("SOLVERS", "all")
    assert np.all(np.abs(got - np.tanh(va @ vb)) <= 2e-3)


@pytest.mark.emulated
def test_a_limit_on_memory_is_less_workspace(rng):
    a, va = _leaf(rng, (64, 64), "float32")
    nvm.synchronize()
    nvm.set_memory_limit(nvm.memory_info(GPU)["used"] + (64 << 10), GPU)
    try:
        for _ in range(4):
            got = np.asarray(a @ a)
            np.testing.assert_allclose(got, va @ va, rtol=1e-4, atol=1e-4)
    finally:
        nvm.set_memory_limit(0, GPU)


def test_sizes(torch):
    """Wide, tall, deep and ragged ones against the same product in float64."""
    for m, n, k in (
        (4096, 4096, 1024),
        (1, 8192, 8192),
        (16, 8192, 4096),
        (8192, 16, 4096),
        (1085, 2219, 2438),
        (413, 732, 61981),
        (3, 5, 100001),
    ):
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            x, y = (torch.randn(s, device="cuda", dtype=dtype) for s in ((m, k), (k, n)))
            want = x.double() @ y.double()
            got = torch.from_dlpack((nvm.from_dlpack(x) @ nvm.from_dlpack(y)).eval()).double()
            last = {torch.float32: 0, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}[dtype]
            eps = 2.0**-24 * k**0.5 * 8 + last
            bound = eps * (k**0.5) * 4 + want.abs() * eps
            off = (got - want).abs()
            assert bool((off <= bound).all()), (m, n, k, dtype, float((off / bound).max()))


def test_batches_and_windows(torch):
    x = torch.randn(3, 4, 65, 130, device="cuda")
    y = torch.randn(4, 130, 70, device="cuda")
    a, b = nvm.from_dlpack(x), nvm.from_dlpack(y)
    near = lambda got, want: torch.testing.assert_close(
        torch.from_dlpack(got.eval()).double(), want.double() + 0, rtol=1e-4, atol=1e-3
    )
    near(a @ b, x.double() @ y.double())
    near(a[:, 1:3, 5:, ::2] @ b[1:3, ::2, 3:], x[:, 1:3, 5:, ::2].double() @ y[1:3, ::2, 3:].double())
    near(a[:, :, ::3, 1:] @ b[:, 1:, 1::2], x[:, :, ::3, 1:].double() @ y[:, 1:, 1::2].double())
    near(
        nvm.permute_dims(a, (1, 0, 3, 2))[..., :64] @ a[:1, :, :64, :30].reshape((4, 1, 64, 30)),
        x.permute(1, 0, 3, 2)[..., :64].double() @ x[:1, :, :64, :30].reshape(4, 1, 64, 30).double(),
    )
