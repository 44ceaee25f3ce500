"""Matrix products on the GPU, with everything around them, against double precision: NVM_TEST_GEMMS of them (300)."""

import os
import time

import numpy as np
import pytest

import gemms
import nvm

COUNT = int(os.environ.get("NVM_TEST_GEMMS", "300"))


def check(seed, device):
    with nvm.device(device):
        g = gemms.gemm(seed)
        nvm.eval(*g.out)
        why = gemms.far(g, [gemms.wide(x) for x in g.out])
    assert why is None, f"seed {seed}: {why}\n{g.text}"


@pytest.mark.emulated
@pytest.mark.parametrize("seed", range(12))
def test_a_product_with_heads_and_tails(seed, device):
    check(seed, device)


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("dtype, step", [("bfloat16", 2**-7), ("float16", 2**-10), ("float32", 2**-7)])
def test_tensor_cores_in_all_positions(dtype, step, device, rng):
    """Rows of 16 bytes, as TMA takes them, each operand either way, with batches, several tails; float32 as tf32."""
    tails = (lambda p, b, r: p, lambda p, b, r: nvm.relu(p + b), lambda p, b, r: nvm.tanh(p * 0.125) + r)
    wide = (lambda p, b, r: p, lambda p, b, r: np.maximum(p + b, 0), lambda p, b, r: np.tanh(p * 0.125) + r)
    for case in range(8):
        left, right = case & 1, case >> 1 & 1
        batch, m, n, k = (((), 72, 136, 72), ((2,), 200, 264, 40), ((2, 3), 16, 72, 24))[case % 3]
        shapes = (batch + ((k, m) if left else (m, k)), batch + ((n, k) if right else (k, n)), (n,), batch + (m, n))
        x = [nvm.asarray(rng.standard_normal(s) * 0.5, device=device).astype(dtype) for s in shapes]
        nvm.eval(*x)
        a, b = (nvm.matrix_transpose(v) if turned else v for v, turned in zip(x, (left, right)))
        p = tails[case % 3](nvm.matmul(a, b, precision="tf32") if dtype == "float32" else nvm.matmul(a, b), x[2], x[3])
        got = np.asarray(p.astype("float64"))
        x = [np.asarray(v.astype("float64")) for v in x]
        a, b = (np.swapaxes(v, -1, -2) if turned else v for v, turned in zip(x, (left, right)))
        want = wide[case % 3](a @ b, x[2], x[3])
        assert np.all(np.abs(got - want) <= step * (1 + np.abs(want))), (case, np.abs(got - want).max())


@pytest.mark.emulated
def test_a_matrix_is_read_behind_a_store(device, rng):
    """What is added waits in shared memory where nothing else leaves through it before."""
    m, n, k = 640, 904, 136
    x = [nvm.asarray(rng.standard_normal(s), device=device).astype("bfloat16") for s in ((m, k), (k, n), (m, n))]
    nvm.eval(*x)
    p = nvm.matmul(x[0], x[1])
    y = (nvm.tanh(p * 0.125) + x[2]).astype("float64")
    nvm.eval(p, y)
    a, b, c = (np.asarray(v.astype("float64")) for v in x)
    for got, want in ((p, a @ b), (y, np.tanh(a @ b * 0.125) + c)):
        assert np.all(np.abs(np.asarray(got.astype("float64")) - want) <= 2**-7 * (1 + np.abs(want)))


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("dtype", ["int32", "int8", "int64"])
def test_integers_of_eight_bits_on_both_sides(dtype, device, rng):
    """All of them, either way, with batches and odd sizes: as NumPy has them in int64, whose low bits are asked for."""
    emulated = "NVM_EMU_DIR" in os.environ
    shapes = [((), 70, 132, 80), ((2,), 48, 144, 272), ((), 33, 77, 99), ((2, 3), 16, 64, 32), ((), 5, 6, 1040)]
    shapes += (
        []
        if emulated
        else [
            ((), 4096, 4096, 4096),
            ((3,), 1000, 1008, 2064),
            ((), 16, 8192, 8192),
            ((), 1023, 1031, 4100),
            ((), 512, 516, 1028),
        ]
    )
    for batch, m, n, k in shapes:
        for left, right in ((0, 1), (0, 0), (1, 1), (1, 0)):
            a = rng.integers(-128, 128, batch + ((k, m) if left else (m, k))).astype("int8")
            b = rng.integers(-128, 128, batch + ((n, k) if right else (k, n))).astype("int8")
            x, y = (nvm.asarray(v, device=device).eval() for v in (a, b))
            p = nvm.matmul(nvm.matrix_transpose(x) if left else x, nvm.matrix_transpose(y) if right else y, dtype=dtype)
            if k % 4 == 0 and m > 16:
                assert "of i8: " in nvm.explain(p), nvm.explain(p)
            a, b = (np.swapaxes(v, -1, -2) if turned else v for v, turned in ((a, left), (b, right)))
            if emulated or m * n * k < 1 << 30:
                want = (a.astype("float64") @ b.astype("float64")).astype("int64")
                assert np.array_equal(np.asarray(p), want.astype(dtype)), (batch, m, n, k, left, right)
            else:
                i, j = rng.integers(0, m, 64), rng.integers(0, n, 64)
                want = (a[..., i, :].astype("float64") @ b[..., :, j].astype("float64")).astype("int64")
                same = np.array_equal(np.asarray(p)[..., i[:, None], j], want.astype(dtype))
                assert same, (batch, m, n, k, left, right)


@pytest.mark.emulated
def test_integers_of_eight_bits_with_a_tail(device, rng):
    """The sum is made a float, scaled and rounded in the product's kernel; an operand is rounded on its way to it."""
    m, n, k = 72, 136, 144
    x = nvm.asarray(rng.standard_normal((m, k)), device=device).astype("float32")
    w = nvm.asarray(rng.integers(-128, 128, (n, k)).astype("int8"), device=device)
    c = nvm.asarray(rng.integers(-(2**31), 2**31, n).astype("int32"), device=device)
    s = nvm.asarray(rng.random((m, 1)).astype("float32"), device=device)
    nvm.eval(x, w, c, s)
    q = nvm.round(x * 40).astype("int8")
    p = nvm.matmul(q, w.T, dtype="int32")
    y = nvm.relu((p + c).astype("float32") * s)
    nvm.eval(p, y)
    sum_ = np.asarray(q).astype("int64") @ np.asarray(w).astype("int64").T
    assert np.array_equal(np.asarray(p), sum_)
    sum_ = (sum_ + np.asarray(c)).astype("int32")
    assert np.array_equal(np.asarray(y), np.maximum(sum_.astype("float32") * np.asarray(s), 0))


@pytest.mark.emulated
def test_sums_of_32_bits_wrap(device):
    """128 x 128 as often as it takes to go around once; a library's sums too, where there is one."""
    k = 3 << 16
    m, n = (16, 16) if "NVM_EMU_DIR" in os.environ else (256, 128)
    x, y = (nvm.full((r, k), -128, dtype="int8", device=device).eval() for r in (m, n))
    want = np.int64(k * 128 * 128).astype("int32")
    assert np.all(np.asarray(nvm.matmul(x, y.T, dtype="int32")) == want)
    assert np.all(np.asarray(nvm.matmul(x, y.T, dtype="int32") + 1) == want + 1)
    assert np.all(np.asarray(nvm.matmul(x, y.T, dtype="int64")) == k * 128 * 128)


@pytest.mark.emulated
def test_doubles_on_tensor_cores(device, rng):
    """Either operand either way, sizes that end anywhere, batches, heads and tails that a library has no words for."""
    emulated = "NVM_EMU_DIR" in os.environ
    shapes = [((), 70, 132, 80), ((2,), 33, 77, 45), ((2, 3), 16, 72, 24), ((), 5, 200, 130), ((), 136, 136, 40)]
    shapes += (
        []
        if emulated
        else [((), 2048, 2048, 2048), ((), 1000, 1031, 777), ((3,), 129, 4096, 512), ((), 64, 8192, 8192)]
    )
    for case, (batch, m, n, k) in enumerate(shapes):
        for left, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
            if emulated and (case + left + right) % 2:
                continue
            x = [
                rng.standard_normal(s)
                for s in (
                    batch + ((k, m) if left else (m, k)),
                    batch + ((n, k) if right else (k, n)),
                    (n,),
                    batch + (m, n),
                )
            ]
            a, b = (np.swapaxes(v, -1, -2) if turned else v for v, turned in zip(x, (left, right)))
            x = [nvm.asarray(v, device=device).eval() for v in x]
            p, q = (nvm.matrix_transpose(v) if turned else v for v, turned in zip(x, (left, right)))
            p = nvm.matmul(nvm.abs(p) if case == 1 else p, q)
            y = [nvm.tanh(p * 0.1) + x[2], nvm.relu(p + x[2]) + x[3], nvm.sin(p)][case % 3]
            nvm.eval(y, p)
            want = (np.abs(a) if case == 1 else a) @ b
            far = (k + 1) * 2**-52 * (np.abs(a) @ np.abs(b))
            assert np.all(np.abs(np.asarray(p) - want) <= far), (batch, m, n, k, left, right)
            bias, c = np.asarray(x[2]), np.asarray(x[3])
            want = [np.tanh(want * 0.1) + bias, np.maximum(want + bias, 0) + c, np.sin(want)][case % 3]
            assert np.all(np.abs(np.asarray(y) - want) <= far + 2**-49 * (1 + np.abs(want)))


@pytest.mark.emulated
def test_doubles_that_are_no_numbers(device, rng):
    """NaN and infinities reach what they are in the sums of, and nothing else; subnormals are kept."""
    a, b = rng.standard_normal((48, 40)), rng.standard_normal((40, 72))
    a[3, 7], a[20, 39], a[21, 0], b[9, 70] = np.nan, np.inf, -np.inf, np.inf
    a[30], b[:, 5] = 2.0**-1060, 2.0**-1
    x, y = (nvm.asarray(v, device=device).eval() for v in (a, b))
    got = np.asarray(nvm.abs(nvm.matmul(x, y)))
    with np.errstate(all="ignore"):
        want = np.abs(np.einsum("mk,kn->mn", a, b))
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))
    fine = np.isfinite(want)
    assert np.all(np.abs(got - want)[fine] <= 41 * 2**-52 * (np.abs(want)[fine] + 40 * 4))
    assert got[30, 5] == 40 * 2.0**-1061


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_integers_of_eight_bits(dtype, device, rng):
    """All of them, on either side and either way, scaled, with a matrix and an activation: one kernel, near the same
    product of what was made wider in memory first, and some of it near the product in double precision."""
    emulated = "NVM_EMU_DIR" in os.environ
    shapes = [(3, 64, 272), (16, 128, 264), (33, 77, 99), (64, 64, 128), (136, 208, 80)]
    shapes += (
        []
        if emulated
        else [
            (1, 4096, 4096),
            (16, 8192, 2048),
            (64, 4096, 2752),
            (1000, 1008, 1024),
            (1024, 2048, 1024),
            (1023, 1031, 130),
        ]
    )
    for case, (m, n, k) in enumerate(shapes):
        for left, turned in ((0, 0), (0, 1), (1, 0), (1, 1)):
            if emulated and (left + turned + case) % 2:
                continue
            w = rng.integers(-128, 128, (n, k) if turned != left else (k, n)).astype("int8")
            x = nvm.asarray(rng.standard_normal((k, m) if left else (m, k)), device=device).astype(dtype).eval()
            s = nvm.asarray((rng.random((n, 1) if left else (n,)) + 0.5).astype("float32") / k, device=device)
            c = nvm.asarray(rng.standard_normal((n, m) if left else (m, n)), device=device).astype(dtype).eval()

            def layer(bytes, widens):
                v = nvm.matrix_transpose(bytes) if turned else bytes
                v = v.astype(dtype) if widens else v
                p = nvm.matmul(*((v, x) if left else (x, v)), dtype="float32")
                return nvm.relu(p * s + c) if case % 2 else p * s

            wider = nvm.asarray(w, device=device).astype(dtype).eval()
            y = layer(nvm.asarray(w, device=device), case % 3 != 1)
            assert m == 1 or nvm.explain(y).startswith("1 kernel"), nvm.explain(y)
            got, same = (np.asarray(v) for v in (y, layer(wider, False)))
            most = 128 * 1.5 * np.abs(np.asarray(x.astype("float32"))).mean(0 if left else 1, keepdims=True)
            far = np.abs(got - same) > (k + 4) * 2**-23 * most + 2**-21 * np.abs(got)
            some = [np.append(rng.integers(0, extent, 64), extent - 1) for extent in got.shape]
            a, b = np.asarray(x.astype("float64")), w.T if turned else w
            a, b = (v.astype("float64") for v in ((b[some[0]], a[:, some[1]]) if left else (a[some[0]], b[:, some[1]])))
            at = np.ix_(*some)
            scale, add = (np.broadcast_to(np.asarray(v.astype("float64")), got.shape)[at] for v in (s, c))
            size, want = (np.abs(a) @ np.abs(b)) * scale, (a @ b) * scale
            want = np.maximum(want + add, 0) if case % 2 else want
            most = (k + 4) * 2**-24 * size + 2**-22 * np.abs(want)
            off = np.abs(got[at] - want)
            assert np.all(off <= most), (case, left, turned, np.max(off / (most + 1e-30)))
            assert not far.any(), (case, left, turned, np.argwhere(far)[:4])


@pytest.mark.emulated
@pytest.mark.parametrize("across", [0, 1, 2])
def test_two_products_of_bytes_with_an_operand_in_common(across, device, rng):
    """So many of them lie across."""
    x = nvm.asarray(rng.standard_normal((136, 272)), device=device).astype("bfloat16").eval()
    w = [rng.integers(-128, 128, (144, 272)).astype("int8") for _ in range(2)]
    s = nvm.asarray(np.float32(2**-9), device=device)
    y = [
        nvm.asarray(v.T.copy(), device=device) if i < across else nvm.matrix_transpose(nvm.asarray(v, device=device))
        for i, v in enumerate(w)
    ]
    p, q = (x @ v * s for v in y)
    y = nvm.silu(p) * q
    v = np.asarray(x.astype("float64"))
    p, q = (v @ z.T.astype("float64") / 512 for z in w)
    off = np.abs(np.asarray(y.astype("float64")) - p / (1 + np.exp(-p)) * q)
    assert np.all(off <= 2**-6 * (1 + np.abs(p) + np.abs(q) + np.abs(p * q))), off.max()


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("dtype, step", [("bfloat16", 2**-6), ("float16", 2**-9), ("float32", 2**-18)])
def test_products_with_an_operand_in_common(dtype, step, device, rng):
    """silu(x a) (x b), x a and x b and x c, x a - y a: edges in all directions, operands either way, few rows,
    batches."""

    def leaf(*shape, turned=False):
        x = nvm.asarray(rng.standard_normal(shape) * 0.5, device=device).astype(dtype).eval()
        v = np.asarray(x.astype("float64"))
        return (nvm.matrix_transpose(x), np.swapaxes(v, -1, -2)) if turned else (x, v)

    for case, (batch, m, n, k) in enumerate(
        (((), 136, 272, 72), ((2,), 200, 264, 40), ((), 16, 72, 24), ((), 67, 45, 33))
    ):
        x, y = leaf(*batch, m, k), leaf(*batch, m, k)
        a, b, c = leaf(*batch, k, n), leaf(*batch, n, k, turned=True), leaf(*batch, k, n)
        p, q = x[1] @ a[1], x[1] @ b[1]
        pairs = [
            (nvm.silu(x[0] @ a[0]) * (x[0] @ b[0]), p / (1 + np.exp(-p)) * q),
            (x[0] @ a[0] - y[0] @ a[0], p - y[1] @ a[1]),
            (x[0] @ a[0], p),
            (x[0] @ b[0], q),
            (x[0] @ c[0], x[1] @ c[1]),
        ]
        nvm.eval(pairs[0][0]), nvm.eval(pairs[1][0]), nvm.eval(*[z for z, _ in pairs[2:]])
        for i, (got, want) in enumerate(pairs):
            off = np.abs(np.asarray(got.astype("float64")) - want)
            assert np.all(off <= step * (1 + np.abs(p) + np.abs(q) + np.abs(want))), (case, i, off.max())


@pytest.mark.emulated
@pytest.mark.parametrize(
    "dtype, step, some", [("bfloat16", 2**-7, 0), ("float16", 2**-10, 1), ("float32", 2**-18, 2), ("tf32", 2**-7, 0)]
)
def test_few_tiles_with_long_sums(dtype, step, some, device, rng):
    """The blocks of a cluster share them out if there are clusters: any tail, either way, the same bits each time."""
    emulated = "NVM_EMU_DIR" in os.environ
    precision, runs = ("tf32" if dtype == "tf32" else None), 2 if emulated else 100
    cases = ((0, 0, (), 40, 72, 2056), (1, 1, (2,), 16, 136, 1032), (0, 1, (), 5, 7, 1537))
    for case, (left, right, batch, m, n, k) in enumerate(cases):
        if emulated and case != some:
            continue
        shapes = (batch + ((k, m) if left else (m, k)), batch + ((n, k) if right else (k, n)), (n,), batch + (m, n))
        kind = "float32" if precision else dtype
        x = [nvm.asarray(rng.standard_normal(s) * 0.1, device=device).astype(kind) for s in shapes]
        nvm.eval(*x)
        got = []
        for _ in range(runs):
            a, b = (nvm.matrix_transpose(v) if turned else v for v, turned in zip(x, (left, right)))
            d = nvm.exp(nvm.matmul(a, b, precision=precision) + x[2]) * x[3]
            got.append(np.asarray((nvm.matrix_transpose(d) if case == 1 else d).astype("float64")))
        a, b, c, r = (np.asarray(v.astype("float64")) for v in x)
        p = np.exp((np.swapaxes(a, -1, -2) if left else a) @ (np.swapaxes(b, -1, -2) if right else b) + c)
        want = np.swapaxes(p * r, -1, -2) if case == 1 else p * r
        off = np.abs(got[0] - want)
        assert np.all(off <= 4 * step * (0.05 + np.abs(want))), (case, off.max())
        assert all(np.array_equal(got[0], g) for g in got[1:])


@pytest.mark.parametrize("m, n, k", [(2560, 2048, 8192), (1280, 5120, 5120), (512, 512, 16384)])
def test_last_tiles_are_shared_out(m, n, k, solvers, device, rng):
    """By all blocks (stream-K), where some would be idle otherwise: with a tail, and the same bits each time."""
    x = [nvm.asarray(rng.standard_normal(s), device=device).astype("bfloat16") for s in ((m, k), (k, n), (n,))]
    nvm.eval(*x)
    f = nvm.jit(lambda a, b, c: nvm.tanh(nvm.matmul(a, b) * (1 / k**0.5)) + c)
    shared = "stream-K" in nvm.explain(f, *x)
    assert shared or solvers == "all" or "H200" not in nvm.info()
    got = [np.asarray(f(*x).astype("float32")) for _ in range(20)]
    assert all(np.array_equal(got[0], g) for g in got[1:])
    rows, cols = rng.integers(0, m, 200), rng.integers(0, n, 200)
    a, b, c = (np.asarray(v.astype("float64")) for v in x)
    want = np.tanh((a[rows] @ b[:, cols]) / k**0.5) + c[cols]
    assert np.all(np.abs(got[0][np.ix_(rows, cols)] - want) <= 2**-6 * (1 + np.abs(want)))


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("precision, adds", [("bf16x3", 2**-15), ("bf16x9", 2**-20)])
def test_float32_in_pieces(precision, adds, solvers, device, rng):
    """Operands either way, batches, tails, numbers of all sizes and such as lie between what two pieces have: 2^-16 off
    in the product of these, and nothing in that of three."""
    between = 1 + 2**-8 - 2**-16 + 2**-18
    for case, (batch, m, n, k) in enumerate((((), 128, 136, 512), ((2,), 128, 104, 520), ((), 128, 128, 512))):
        left, right = case in (1, 2), case in (0, 2)
        shapes = batch + ((k, m) if left else (m, k)), batch + ((n, k) if right else (k, n))
        x = [rng.standard_normal(s) * 2.0 ** rng.integers(-12, 12, s) if case else np.full(s, between) for s in shapes]
        x = [v.astype("float32") for v in x]
        a, b = (
            nvm.matrix_transpose(v) if turned else v
            for v, turned in zip((nvm.asarray(v, device=device) for v in x), (left, right))
        )
        c = nvm.asarray(np.linspace(-1, 1, n, dtype="float32"), device=device)
        p = nvm.matmul(a, b, precision=precision)
        assert "1 of 1 are" in nvm.explain(p), nvm.explain(p)
        got = np.asarray(nvm.relu(p + c) if case == 2 else p).astype("float64")
        a, b = (
            np.swapaxes(v, -1, -2) if turned else v
            for v, turned in zip((v.astype("float64") for v in x), (left, right))
        )
        want, size = a @ b, np.abs(a) @ np.abs(b)
        if case == 2:
            want, size = np.maximum(want + np.linspace(-1, 1, n), 0), size + 1
        off = np.max(np.abs(got - want) / size)
        assert off <= adds, (case, np.log2(off))
        assert case or precision == "bf16x9" or off >= 2**-17, np.log2(off)


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("precision", ["bf16x3", "bf16x9"])
def test_special_values_in_pieces(precision, solvers, device, rng):
    """One number of each row and each column of zeros: each times each is what it is in float32."""
    values = [
        0,
        -0.0,
        1,
        -1.5,
        np.inf,
        -np.inf,
        np.nan,
        3.4028235e38,
        -3.4e38,
        3.3961775e38,
        1e35,
        -2.5e-3,
        7.3e-12,
        1.1754944e-38,
        1e-39,
        -3e-41,
        1e-44,
        -1e-45,
        2.0**-133,
        2.0**-134,
    ]
    x, y = np.zeros((128, 512), "float32"), np.zeros((512, 128), "float32")
    x[: len(values), 77], y[77, : len(values)] = values, values
    p = nvm.matmul(nvm.asarray(x, device=device), nvm.asarray(y, device=device), precision=precision)
    assert "1 of 1 are" in nvm.explain(p), nvm.explain(p)
    got, v = np.asarray(p)[: len(values), : len(values)], np.array(values, "float32")
    exact = v.astype("float64")[:, None] * v.astype("float64")
    with np.errstate(over="ignore", invalid="ignore"):
        want = exact.astype("float32")
    overflows = np.isinf(want) & np.isfinite(exact) & (np.abs(exact) >= 2.0**135)
    np.testing.assert_array_equal(np.isnan(got)[~overflows], np.isnan(want)[~overflows])
    infinite = np.isinf(want) & ~overflows
    np.testing.assert_array_equal(got[infinite], want[infinite])
    assert not np.isfinite(got[overflows]).any()
    number = np.isfinite(want)
    tiny = np.where(np.abs(v) < 2.0**-110, 2.0**-134, 0)
    most = np.abs(exact) * (2**-15 if precision == "bf16x3" else 2**-22) + 2.0**-147
    most += np.where(tiny[:, None] > 0, tiny[:, None] * np.abs(v), 0) + np.where(tiny > 0, tiny * np.abs(v)[:, None], 0)
    far = np.argwhere(number & ~(np.abs(got - exact) <= most))
    assert not far.size, [(v[i], v[j], got[i, j], exact[i, j], most[i, j]) for i, j in far]


EIGHTS = "float8_e4m3fn", "float8_e5m2"


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("left, right", [(a, b) for a in EIGHTS for b in EIGHTS])
def test_eight_bits(left, right, solvers, device, rng):
    """Floats of 8 bits, written as products of what they are in float32: layouts, sizes off 16, batches; scales on the
    device, bias, activation, results of 32, 16 and 8 bits. A sum keeps 14 bits within 128 of its products."""

    def leaf(shape, dtype, size=1.0):
        x = nvm.asarray(rng.standard_normal(shape) * size, device=device).astype(dtype).eval()
        return x, np.asarray(x.astype("float64"))

    sizes = ((64, 48, 128), (17, 272, 160), (200, 144, 144), (70, 45, 33), (33, 64, 20), (1, 32, 64))
    for case, (m, n, k) in enumerate(sizes):
        batch, across = ((2,) if case == 2 else ()), case == 4
        (x, x64), (w, w64) = leaf(batch + (m, k), left), leaf(batch + ((k, n) if across else (n, k)), right)
        y, y64 = (w, w64) if across else (nvm.matrix_transpose(w), np.swapaxes(w64, -1, -2))
        (s, s64), (b, b64), (r, r64) = leaf((3,), "float32"), leaf((n,), "bfloat16"), leaf(batch + (m, n), "bfloat16")
        p, p64 = nvm.matmul(x.astype("float32"), y.astype("float32")), x64 @ y64
        q, q64 = p * s[0] * s[1], p64 * s64[0] * s64[1]
        size = np.abs(x64) @ np.abs(y64)
        of = size * abs(s64[0] * s64[1])
        relu = nvm.relu(p * (s[0] * s[1])) * s[2], np.maximum(q64, 0) * s64[2]
        outs = [
            (p, p64, size, 2**-24),
            ((q + b).astype("bfloat16"), q64 + b64, of + np.abs(b64), 2**-8),
            (relu[0].astype(left), relu[1], of * abs(s64[2]), 2**-3),
            (nvm.gelu(2.0 * q, approximate=1).astype("float16"), None, of * 2, 2**-10),
            (nvm.tanh(q * 0.01 + r).astype("bfloat16"), np.tanh(q64 * 0.01 + r64), of * 0.01, 2**-7),
            (nvm.matmul(x, y), p64, size, 2**-3 if left == right else 2**-10),
        ]
        for i, (got, want, of, step) in enumerate(outs):
            if i % 3 != case % 3:
                continue
            z = 2 * q64
            want = 0.5 * z * (1 + np.tanh(0.7978845608028654 * (z + 0.044715 * z**3))) if want is None else want
            most = {"float8_e4m3fn": 448, "float8_e5m2": 57344}.get(str(got.dtype).rpartition(".")[2], np.inf)
            least = {"float8_e4m3fn": 2**-10, "float8_e5m2": 2**-17}.get(str(got.dtype).rpartition(".")[2], 1e-7)
            off = np.abs(np.asarray(got.astype("float64")) - np.clip(want, -most, most))
            assert np.all(off <= 2**-8 * of + step * np.abs(want) + least), (case, i, off.max())


def spread(scale, shape):
    for axis in (-2, -1) if scale.ndim else ():
        if scale.shape[axis] not in (1, shape[axis]):
            scale = np.take(np.repeat(scale, 128, axis), range(shape[axis]), axis)
    return scale.astype("float64")


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("left, right", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_scales_of_parts(left, right, turned, solvers, device, emulated, rng):
    """Scales of rows, pieces and blocks of floats of 8 bits, wherever they lie: in the library's call or not."""
    for case, (m, n, k) in enumerate(((256, 384, 640), (64, 144, 512), (272, 16, 1040), (70, 45, 300))):
        if emulated and case != (2 * left + right + 2 * turned) % 4:
            continue
        x, y = (
            nvm.asarray(rng.standard_normal(s), device=device).astype(EIGHTS[i]).eval()
            for s, i in (((m, k), left), ((n, k), right))
        )
        rows, columns, sums = ([v, -(-v // 128)] for v in (m, n, k))
        scales = [
            ((m, 1), (1, n)),
            ((m, sums[1]), (sums[1], n)),
            ((m, sums[1]), (sums[1], columns[1])),
            ((rows[1], sums[1]), (sums[1], n)),
            ((rows[1], sums[1]), (sums[1], columns[1])),
            ((m, 1), ()),
            ((), (sums[1], columns[1])),
        ]
        for s, t in (scales[case:], scales)[turned][:: 1 + 2 * emulated]:
            s, t = (rng.uniform(0.5, 2, shape).astype("float32") for shape in (s, t))
            given = [
                nvm.asarray(np.ascontiguousarray(v.T), device=device).T
                if turned and v.ndim
                else nvm.asarray(v, device=device)
                for v in (s, t)
            ]
            got = nvm.scaled_matmul(x, y.T, *given, dtype="bfloat16")
            x64, y64 = (np.asarray(v.astype("float64")) for v in (x, y.T))
            x64, y64 = x64 * spread(s, (m, k)), y64 * spread(t, (k, n))
            off = np.abs(np.asarray(got.astype("float64")) - x64 @ y64)
            most = 2**-8 * (np.abs(x64) @ np.abs(y64)) + 2**-8 * np.abs(x64 @ y64)
            assert np.all(off <= most), (case, s.shape, t.shape, off.max())


@pytest.mark.emulated
def test_eight_bits_stay_what_they_are(device, rng):
    """What is computed in 8 bits is rounded to them, also on its way into a product, and a product's result too."""
    x = nvm.asarray(rng.standard_normal((64, 128)), dtype="float32", device=device)
    w = nvm.asarray(rng.standard_normal((48, 128)), dtype="float32", device=device)
    x8, w8 = (v.astype("float8_e4m3fn") for v in (x, w))
    got = nvm.matmul(x8, w8.T).astype("float32") * 2 + 1
    wide = [np.asarray(v.astype("float8_e4m3fn").eval().astype("float64")) for v in (x, w)]
    want = np.asarray(nvm.asarray(wide[0] @ wide[1].T).astype("float8_e4m3fn").astype("float64")) * 2 + 1
    near = np.abs(np.asarray(got) - want) <= 2**-3 * np.abs(want)
    assert near.mean() > 0.99 and np.all(np.abs(np.asarray(got) - want) <= 2**-2 * np.abs(want) + 0.1)


@pytest.mark.parametrize("first", range(12, COUNT, 12))
def test_many(first, device):
    for seed in range(first, min(first + 12, COUNT)):
        check(seed, device)


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("batch", [(3,), (2, 3), (2, 3, 2), (2, 1, 3, 2)])
def test_batches_lie_in_any_order(batch, device, rng):
    """Batch axes that cannot be merged, of which TMA has as many as its tensor map has axes beside the matrix."""
    m, n, k, rank = 100, 64, 64, len(batch)

    def operand(shape):
        order = rng.permutation(len(shape) - 2)
        x = rng.integers(-3, 4, [shape[i] for i in order] + list(shape[-2:])).astype(np.float16)
        back = (*np.argsort(order), len(shape) - 2, len(shape) - 1)
        there = nvm.permute_dims(nvm.asarray(x, device=device), tuple(int(i) for i in back))
        return there, np.transpose(x, back).astype(np.float64)

    for missing in range(rank):
        x, a = operand(batch[missing:] + (m, k))
        y, b = operand(batch + (k, n))
        for got, want in ((x @ y, a @ b), (nvm.matmul(y.mT, x.mT, dtype="float32"), b.mT @ a.mT)):
            assert np.array_equal(np.asarray(got), want), (batch, missing)


def test_two_runs_give_the_same_bits(device, rng):
    for dtype in ("float32", "float16", "complex64"):
        x = nvm.asarray(rng.standard_normal((300, 200)), device=device).astype(dtype)
        product = lambda: (x @ x.T).real if dtype == "complex64" else x @ x.T
        first, again = (np.asarray(nvm.relu(product())) for _ in range(2))
        np.testing.assert_array_equal(first, again)


def test_large_ones(device, rng):
    """Many tiles, sides that no tile divides, and a long sum."""
    for dtype in ("float32", "float16", "float64"):
        for m, k, n in ((1000, 515, 777), (17, 20000, 33), (4097, 64, 65)):
            a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
            sums = "float64" if dtype == "float64" else "float32"
            got = np.asarray(nvm.matmul(nvm.asarray(a, device=device), nvm.asarray(b, device=device), dtype=sums))
            wide = a.astype("float64"), b.astype("float64")
            bound = (k + 4) * gemms.EPS[sums] * (np.abs(wide[0]) @ np.abs(wide[1]))
            assert np.all(np.abs(got - wide[0] @ wide[1]) <= bound), (dtype, m, k, n)


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bits_are_those_of_the_cpu(name, device):
    bits = np.arange(256, dtype=np.uint8).tobytes()
    floats = (np.arange(0, 1 << 32, 65521, dtype=np.uint64).astype(np.uint32)).view(np.float32)
    results = []
    for d in (device, "cpu"):
        x = nvm._nvm.from_bytes(bits, getattr(nvm, name), (256,)).to_device(d)
        y = nvm.asarray(floats, device=d)
        results.append(
            [
                np.asarray(x.astype("float32")),
                np.asarray(x.astype("int32")),
                np.asarray(y.astype(name).astype("float32")),
                np.asarray((x * 0.5 + 1).astype("float32")),
            ]
        )
    for got, want in zip(*results):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_long_sums_of_few_tiles(dtype, device, rng):
    """split-K: the blocks of a cluster add up parts of large tiles: in shared memory that is not the first block's. Of
    integers, so that every sum is exact."""
    nvm.set("SOLVERS", "kernel")
    try:
        for m, n, k in ((1024, 1024, 16384), (128, 128, 8192)):
            x, w = (rng.integers(-2, 3, s).astype("float32") for s in ((m, k), (k, n)))
            a, b = (nvm.asarray(v, device=device).astype(dtype).eval() for v in (x, w))
            f = nvm.jit(lambda a, b: nvm.matmul(a, b, dtype="float32"))
            for _ in range(4):
                assert np.array_equal(np.asarray(f(a, b)), x @ w), (m, n, k)
    finally:
        nvm.set("SOLVERS", "all")


@pytest.mark.emulated
@pytest.mark.parametrize("find, ref", [(nvm.argmin, np.argmin), (nvm.argmax, np.argmax)])
def test_the_first_of_equal_columns(find, ref, device, rng):
    """In the tail of a product, whose tiles are cut at 300 of 512 columns; rows of zeros among them."""
    b = rng.integers(-1, 2, (64, 300)).astype("float32")
    a = np.zeros((72, 64), "float32")
    a[np.arange(72), rng.integers(0, 64, 72)] = rng.choice([-1.0, 0.0, 1.0], 72)
    x, y = (nvm.asarray(v, device=device).astype("bfloat16") for v in (a, b))
    nvm.eval(x, y)
    assert np.array_equal(np.asarray(find(x @ y, axis=1)), ref(a @ b, axis=1))


def tf32_either_way(shapes, turned, device, rng):
    """The first call has the bits of the next ones."""
    for m, n, k in shapes:
        a, b = (rng.standard_normal(s[::-1] if t else s).astype("f4") for s, t in zip(((m, k), (k, n)), turned))
        x, y = (nvm.asarray(v, device=device) for v in (a, b))
        nvm.eval(x, y)
        turn = lambda v, t, of: of(v) if t else v  # noqa: E731
        f = nvm.jit(
            lambda x, y: nvm.tanh(
                nvm.matmul(
                    turn(x, turned[0], nvm.matrix_transpose), turn(y, turned[1], nvm.matrix_transpose), precision="tf32"
                )
                * 0.1
            )
        )
        want = np.tanh(turn(a, turned[0], np.transpose).astype("f8") @ turn(b, turned[1], np.transpose) * 0.1)
        first = np.asarray(f(x, y))
        assert np.abs(first - want).max() < 2**-10 * k**0.5, (m, n, k)
        for _ in range(3):
            time.sleep(0.1)
            assert np.array_equal(np.asarray(f(x, y)), first), (m, n, k)


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_tf32_lies_as_it_likes(turned, device, rng):
    """Right, left, both operands across, by warps and by warpgroups"""
    tf32_either_way(((300, 264, 96), (512, 512, 64), (16, 512, 128), (48, 200, 64)), turned, device, rng)


@pytest.mark.emulated
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("m, n", [(512, 256), (16, 512)])
def test_tf32_rounds_its_factors(m, n, turned, device, emulated, rng):
    """To the nearest of 11 bits, which a product with ones on a diagonal gives back, on either side; halves go to even
    ones on compute capability 9.0, elsewhere away from 0"""
    m, n = (-(-m // 2), n // 2) if emulated else (m, n)
    bits = rng.integers(0, 2**31, (m, n), "u4") >> 1 | rng.integers(0, 2, (m, n), "u4") << 31
    bits[::3] = bits[::3] & ~np.uint32(0x1FFF) | np.uint32(0x1000)
    bits[:, :2] = 0x3F800FFF, 0x3F801001
    halves = np.uint32(0x1000), 0xFFF + (bits >> 13 & 1)
    away, even = ((bits + half & ~np.uint32(0x1FFF)).view("f4") for half in halves)

    def turn(v, t):
        v = nvm.asarray(np.ascontiguousarray(v.T if t else v), device=device).eval()
        return nvm.matrix_transpose(v) if t else v

    nvm.set("solvers", "kernel")
    try:
        for a, b in ((bits.view("f4"), np.eye(n, dtype="f4")), (np.eye(m, dtype="f4"), bits.view("f4"))):
            got = np.asarray(nvm.matmul(turn(a, turned[0]), turn(b, turned[1]), precision="tf32"))
            assert np.array_equal(got, even) or np.array_equal(got, away)
    finally:
        nvm.set("solvers", None)


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_tf32_of_many_rounds(turned, device, rng):
    """Products that are on their way while the registers of the next ones are loaded"""
    nvm.set("solvers", "kernel")
    try:
        tf32_either_way(((2048, 2048, 512), (1024, 4096, 2048), (64, 8192, 512)), turned, device, rng)
    finally:
        nvm.set("solvers", None)


@pytest.mark.parametrize(
    "dtype, step", [("bfloat16", 2**-8), ("float16", 2**-11), ("float32", 2**-20), ("float64", 2**-48)]
)
@pytest.mark.parametrize("n, k, turned", [(4096, 4096, False), (5003, 5000, True)])
def test_half_of_a_product_with_the_transpose(dtype, step, n, k, turned, device, rng):
    """Symmetric bit by bit, with a factor and an activation, and right."""
    x = nvm.asarray(rng.standard_normal((k, n) if turned else (n, k)), device=device).astype(dtype)
    nvm.eval(x)
    f = lambda x: nvm.relu(0.5 * (x.T @ x if turned else x @ x.T))
    assert "half of it, which is mirrored" in nvm.explain(f(x))
    y = np.asarray(f(x).astype("float64"))
    assert (y == y.T).all()
    at = rng.integers(0, n, 200)
    x = np.asarray(x.astype("float64"))
    rows = (x.T if turned else x)[at]
    want = np.maximum(0.5 * rows @ rows.T, 0)
    size = 0.5 * np.abs(rows) @ np.abs(rows).T
    assert np.all(np.abs(y[np.ix_(at, at)] - want) <= step * (want + size * k**0.5 * 2**-3))
