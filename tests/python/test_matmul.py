"""Matrix products: matmul, vecdot, tensordot, einsum and what is made of them, against NumPy and double precision."""

import os

import numpy as np
import pytest

import gemms
import mlp
import nvm
import refs
from test_ops import draw

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((2, 1, 4), (4, 6)),
    ((7, 4), (3, 4, 1)),
    ((5, 1, 3, 4), (1, 4, 2)),
    ((3, 1), (1, 4)),
    ((1, 5), (5, 1)),
    ((65, 33), (33, 17)),
    ((128, 7), (7, 129)),
    ((3, 17, 31), (3, 31, 16)),
]
EMPTY = [
    ((3, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((2, 3), (3, 0)),
    ((0, 2, 3), (3, 4)),
    ((0,), (0,)),
    ((0,), (0, 3)),
    ((2, 0, 3), (3, 2)),
]


def near(got, want, k, dtype, size):
    """Within the bound of a sum of k products: size is the product of absolute values."""
    eps = np.finfo("float32" if dtype == "float16" else dtype).eps
    off = np.abs(np.asarray(got).astype(want.dtype) - want)
    assert np.all(off <= 2 * (k + 4) * eps * size + (2e-3 * np.abs(want) if dtype == "float16" else 0)), off.max()


@pytest.mark.parametrize("dtype", refs.HALF + refs.FLOATS + refs.COMPLEX)
@pytest.mark.parametrize("a, b", SHAPES)
def test_matmul_of_floats(a, b, dtype, rng):
    x, y = draw(rng, dtype, a, -2, 2), draw(rng, dtype, b, -2, 2)
    wide = "complex128" if dtype.startswith("c") else "float64"
    want, size = x.astype(wide) @ y.astype(wide), np.abs(x).astype("float64") @ np.abs(y).astype("float64")
    for got in (nvm.matmul(x, y), nvm.asarray(x) @ nvm.asarray(y), x @ nvm.asarray(y), nvm.asarray(x) @ y):
        assert got.shape == want.shape and got.dtype.name == dtype
        near(got, want, a[-1], dtype, size)


@pytest.mark.parametrize("dtype", refs.INTS)
def test_matmul_of_integers_wraps(dtype, rng):
    x, y = draw(rng, dtype, (5, 40)), draw(rng, dtype, (40, 17))
    np.testing.assert_array_equal(np.asarray(nvm.matmul(x, y)), x @ y)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("k", [255, 256, 257, 1023, 1024, 1025])
def test_matmul_of_narrow_integers_is_exact(dtype, k, rng):
    """At the ends of their range, where the sums are just exact in a float and just not."""
    info = np.iinfo(dtype)
    x = np.full((6, k), info.min if info.min else info.max, dtype)
    y = rng.integers(info.min, info.max, (k, 7), endpoint=True).astype(dtype)
    y[:, 0], y[:, 1] = info.min, info.max
    for out in ("int32", "int64", "uint64", dtype):
        if np.dtype(out).kind == "u" and dtype[0] == "i":
            continue
        got = np.asarray(nvm.matmul(x, y, dtype=out))
        np.testing.assert_array_equal(got, x.astype(out) @ y.astype(out))
    got = np.asarray(nvm.einsum("ij,jk,kl->il", x, y, y.T[:, :5].copy(), dtype="int64"))
    np.testing.assert_array_equal(got, x.astype("int64") @ y.astype("int64") @ y.T[:, :5].astype("int64"))


@pytest.mark.parametrize("a, b", EMPTY)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128", "int32"])
def test_matmul_of_nothing_is_zero(a, b, dtype):
    got, want = np.asarray(nvm.matmul(np.ones(a, dtype), np.ones(b, dtype))), np.ones(a, dtype) @ np.ones(b, dtype)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_matmul_reads_views(rng):
    x = draw(rng, "float32", (40, 60), -1, 1)
    a = nvm.asarray(x)
    cases = [
        (a.T, x.T, a, x),
        (a[::2, ::-1], x[::2, ::-1], a.T[:, 3:], x.T[:, 3:]),
        (a[5:6], x[5:6], a.T, x.T),
        (nvm.broadcast_to(a[0], (8, 60)), np.broadcast_to(x[0], (8, 60)), a.T, x.T),
        (a, x, a.T, x.T),
        (a.reshape(4, 10, 60), x.reshape(4, 10, 60), a.T, x.T),
        (nvm.permute_dims(a.reshape(4, 10, 60), (1, 0, 2)), x.reshape(4, 10, 60).transpose(1, 0, 2), a.T, x.T),
        (a.reshape(4, 10, 60).mT, x.reshape(4, 10, 60).transpose(0, 2, 1), a.reshape(4, 10, 60), x.reshape(4, 10, 60)),
        (a.reshape(60, 40)[:40], x.reshape(60, 40)[:40], a, x),
    ]
    for p, p_, q, q_ in cases:
        near(
            p @ q,
            p_.astype("float64") @ q_.astype("float64"),
            p.shape[-1],
            "float32",
            np.abs(p_.astype("float64")) @ np.abs(q_.astype("float64")),
        )


def test_matmul_keeps_nan_and_infinities():
    x, y = np.ones((4, 6), "float32"), np.ones((6, 5), "float32")
    x[0, 1], x[1, 2], y[3, 4] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(np.asarray(nvm.matmul(x, y)), x @ y)
    x[1, 2] = 0
    y[2, 0] = np.inf  # 0 * inf
    np.testing.assert_array_equal(np.isnan(np.asarray(nvm.matmul(x, y))), np.isnan(x @ y))


def test_dtypes_of_results(rng):
    h = draw(rng, "float16", (9, 300), -1, 1)
    assert nvm.matmul(h, h.T).dtype == nvm.float16
    got = nvm.matmul(h, h.T, dtype=nvm.float32)
    assert got.dtype == nvm.float32
    near(
        got,
        h.astype("float64") @ h.T.astype("float64"),
        300,
        "float32",
        np.abs(h).astype("float64") @ np.abs(h.T).astype("float64"),
    )
    b = nvm.asarray(h).astype("bfloat16")
    assert nvm.matmul(b, b.T).dtype == nvm.bfloat16 and nvm.matmul(b, nvm.asarray(h).T).dtype == nvm.float32
    w = np.asarray(b.astype("float32")).astype("float64")
    near(nvm.matmul(b, b.T, dtype="float32"), w @ w.T, 300, "float32", np.abs(w) @ np.abs(w.T))
    i = np.full((3, 300), 127, "int8")
    np.testing.assert_array_equal(
        np.asarray(nvm.matmul(i, i.T, dtype="int32")), i.astype("int32") @ i.T.astype("int32")
    )
    assert nvm.matmul(i, h.T).dtype == nvm.float16
    assert nvm.matmul(i, i.T, dtype=nvm.float32).dtype == nvm.float32
    f = draw(rng, "float32", (5, 6))
    assert nvm.matmul(f, f.T, dtype="float64").dtype == nvm.float64
    np.testing.assert_allclose(
        np.asarray(nvm.matmul(f, f.T, dtype="float64")), f.astype("float64") @ f.T.astype("float64"), rtol=1e-12
    )
    for name in ("ieee", "highest"):
        assert np.array_equal(np.asarray(nvm.matmul(f, f.T, precision=name)), np.asarray(f @ nvm.asarray(f.T)))
    for name, bits in (("tf32", 10), ("bf16x3", 15), ("bf16x9", 20)):
        size = np.abs(f).astype("float64") @ np.abs(f.T).astype("float64")
        off = np.abs(np.asarray(nvm.matmul(f, f.T, precision=name)) - f.astype("float64") @ f.T.astype("float64"))
        assert np.all(off <= 2.0**-bits * size)


@pytest.fixture
def reproducible():
    """Every product is planned at once: one that came often before has no other bits than one that is new."""
    nvm.set("reproducible", 1)
    yield
    nvm.set("reproducible", 0)


@pytest.mark.parametrize("precision", ["tf32", "bf16x3", "bf16x9"])
def test_a_precision_allows_less_and_asks_for_nothing(precision, rng, reproducible):
    """Where nothing is faster: the same bits, whatever the numbers are; sums over nothing, and what says so.
    On a GPU a library may compute the one product and a kernel the other, in another order."""
    place = "cpu"
    x, y = draw(rng, "float32", (3, 40, 60), -1, 1), draw(rng, "float32", (60, 50), -1, 1)
    x[0, :7, 0] = np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-42, -0.0
    y[0, :4] = np.inf, 1e38, 1e-44, 0
    for a, b in ((x, y), (x.swapaxes(1, 2), x), (x[:, ::2, ::-3], y[::3]), (x[..., :0], y[:0])):
        a, b = nvm.asarray(a, device=place), nvm.asarray(b, device=place)
        np.testing.assert_array_equal(np.asarray(nvm.matmul(a, b, precision=precision)), np.asarray(nvm.matmul(a, b)))
    assert ("split into bf16" in nvm.explain(nvm.matmul(x, y, precision=precision))) == precision.startswith("bf16")
    z, y = nvm.asarray(x.astype("complex64"), device=place), nvm.asarray(y, device=place)
    np.testing.assert_array_equal(np.asarray(nvm.matmul(z, y, precision=precision)), np.asarray(nvm.matmul(z, y)))


def test_products_of_16_bits_round_their_operands_and_results():
    h = np.array([[1, 2**-11], [1, 1]], "float16")
    x = nvm.asarray(h)
    y = np.asarray(nvm.matmul(x + np.float16(2**-11), np.eye(2, dtype="float16"), dtype="float32"))
    assert y[0, 0] == 1 and y[0, 1] == 2**-10  # 1 + 2^-11 is rounded before it is multiplied
    big = np.full((2, 2), 300, "float16")
    assert np.all(np.isinf(np.asarray(nvm.matmul(big, big))))
    assert np.all(np.isfinite(np.asarray(nvm.matmul(big, big, dtype="float32"))))


@pytest.mark.parametrize("narrow, wide", [("float16", "float32"), ("bfloat16", "float32"), ("float32", "float64")])
@pytest.mark.parametrize("m", [5, 100])
def test_a_rounded_product_that_is_converted_has_been_rounded(narrow, wide, m, rng):
    """The library could store its sums in the wider type."""
    x, y = (nvm.asarray(draw(rng, "float64", s, -1, 1)).astype(narrow).eval() for s in ((m, 300), (300, 64)))
    bias = nvm.asarray(draw(rng, "float64", (64,), -1, 1))
    got = [
        (x @ y).astype(wide),
        nvm.relu((x @ y).astype(wide)),
        nvm.matmul(x, y, dtype="float64").astype(narrow).astype(wide),
        x @ y + bias.astype(narrow),
    ]
    for z in got[:3]:
        z = np.asarray(z)
        np.testing.assert_array_equal(z, np.asarray(nvm.asarray(z).astype(narrow).astype(wide)))
    np.testing.assert_array_equal(
        np.asarray(got[3].astype("float64")), np.asarray((x @ y + bias.astype(narrow).eval()).astype("float64"))
    )


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: nvm.matmul(np.ones((3, 4)), np.ones((5, 6))),
            ValueError,
            r"\[matmul\] inner dimensions differ: \(3, 4\) @ \(5, 6\)",
        ),
        (lambda: nvm.matmul(np.ones((2, 3, 4)), np.ones((3, 4, 5))), ValueError, "batches do not broadcast"),
        (
            lambda: nvm.matmul(np.float32(3), np.ones((5, 6))),
            ValueError,
            r"at least one dimension: float32 \(\) @ float64 \(5, 6\)",
        ),
        (lambda: nvm.asarray(np.ones((3, 4))) @ 2.0, ValueError, "at least one dimension"),
        (lambda: nvm.matmul(np.ones((2, 2), bool), np.ones((2, 2), bool)), TypeError, "does not take bool"),
        (
            lambda: nvm.matmul(np.ones((2, 2)), np.ones((2, 2)), dtype="int32"),
            TypeError,
            "float64 does not convert to int32",
        ),
        (
            lambda: nvm.matmul(np.ones((2, 2), "complex64"), np.ones((2, 2)), dtype="float64"),
            TypeError,
            "does not convert",
        ),
        (lambda: nvm.matmul(np.ones((2, 2)), np.ones((2, 2)), precision="fast"), ValueError, "no precision 'fast'"),
        (
            lambda: nvm.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([0], [0])),
            ValueError,
            "contracted dimensions differ",
        ),
        (
            lambda: nvm.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([0, 1], [0])),
            ValueError,
            "axes name 2 dimensions",
        ),
        (lambda: nvm.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([1, 1], [0, 0])), ValueError, "given twice"),
        (lambda: nvm.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=([2], [0])), IndexError, "out of range"),
        (lambda: nvm.tensordot(np.ones((2, 3)), np.ones((3, 2)), axes=3), ValueError, "3 axes"),
        (lambda: nvm.vecdot(np.ones(3), np.ones(4)), ValueError, "extents 3 and 4 differ"),
        (lambda: nvm.einsum("ij,jk->ik", np.ones((2, 3))), ValueError, "2 operands for 1"),
        (lambda: nvm.einsum("ij,jk->iz", np.ones((2, 3)), np.ones((3, 2))), ValueError, "no operand has"),
        (lambda: nvm.einsum("ij,jk", np.ones((2, 3)), np.ones((4, 2))), ValueError, "'j' has extents 3 and 4"),
        (lambda: nvm.einsum("...i,...i", np.ones((2, 3)), np.ones((4, 3))), ValueError, "'...' has extents 2 and 4"),
        (lambda: nvm.einsum("ii", np.ones((1, 3))), ValueError, "'i' has extents 1 and 3"),
        (lambda: nvm.einsum("ijk", np.ones((2, 3))), ValueError, "does not name the dimensions"),
        (lambda: nvm.einsum("i...j...", np.ones((2, 3))), ValueError, "letters and one"),
        (lambda: nvm.einsum("...i->i", np.ones((2, 3))), ValueError, "leaves out"),
        (lambda: nvm.einsum("ij->ii", np.ones((2, 2))), ValueError, "twice"),
        (
            lambda: nvm.einsum("i,i,i", np.ones(2), np.ones(2), np.ones(2), optimize=[(0, 3)]),
            ValueError,
            "path does not fit",
        ),
        (
            lambda: nvm.einsum("i,i,i", np.ones(2), np.ones(2), np.ones(2), optimize=[(0, 1)]),
            ValueError,
            "path does not fit",
        ),
        (lambda: nvm.einsum("i", np.ones(2), optimize="best"), ValueError, "no way 'best'"),
        (lambda: nvm.linalg.matrix_power(np.ones((2, 3)), 2), ValueError, "square"),
        (lambda: nvm.linalg.multi_dot([np.ones((2, 3))]), ValueError, "at least two"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- factors, signs and differences
def tails():
    """What may be said in alpha and beta: of a product, a matrix and a number."""
    return {
        "s p + c": lambda p, c, s: s * p + c,
        "p + s c": lambda p, c, s: p + s * c,
        "c - s p": lambda p, c, s: c - s * p,
        "p - s c": lambda p, c, s: p - s * c,
        "-(p - c)": lambda p, c, s: -(p - c),
        "c - p": lambda p, c, s: c - p,
        "-p": lambda p, c, s: -p,
        "(p - c) - 2 c": lambda p, c, s: (p - c) - 2 * c,
        "-(s p) + (-c)": lambda p, c, s: -(s * p) + (-c),
        "p / s": lambda p, c, s: p / s,
    }


def operands(rng, dtype):
    shapes = (60, 300), (300, 50), (60, 50)
    return (nvm.asarray(draw(rng, "float64", n, -1, 1)).astype(dtype).eval() for n in shapes)


@pytest.fixture(params=["library", "kernel", "node by node"])
def runs(request):
    """Products by the library, by their own kernels, and a kernel for each value."""
    nvm.set("SOLVERS", "all" if request.param == "library" else "kernel")
    nvm.set("FUSE", "off" if request.param == "node by node" else "on")
    yield request.param
    nvm.set("SOLVERS", "all")
    nvm.set("FUSE", "on")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", tails())
@pytest.mark.parametrize("s", [0.3, 3, -2.5], ids=str)
def test_factors_and_signs(name, dtype, s, runs, rng):
    x, w, c = operands(rng, dtype)
    p, v = gemms.wide(x) @ gemms.wide(w), gemms.wide(c)
    want, size = tails()[name](p, v, s), tails()["s p + c"](np.abs(gemms.wide(x)) @ np.abs(gemms.wide(w)), np.abs(v), 4)
    bound = 320 * gemms.EPS[gemms.SUMS.get(dtype, dtype)] * size + 8 * gemms.EPS[dtype] * (np.abs(p) * 4 + 4)
    given = nvm.jit(lambda x, w, c, s: tails()[name](x @ w, c, s))
    for got in (given(x, w, c, s), tails()[name](x @ w, c, s)):
        assert got.dtype.name == dtype
        assert np.all(np.abs(gemms.wide(got) - want) <= bound), np.abs(gemms.wide(got) - want).max()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_factors_that_are_given_are_the_librarys(dtype, rng):
    x, w, c = operands(rng, dtype)
    if not nvm.explain(x @ w).count("runs by openblas"):
        pytest.skip("no library here")
    say = lambda f, *a: nvm.explain(lambda x, w, c, *a: f(x @ w, c, *a), x, w, c, *a)
    for s in (2.0, 2):
        assert "d = alpha a b + c" in say(lambda p, c, s: s * p + c, s)
        assert "d = -alpha a b + beta c" in say(lambda p, c, s: s * c - p * s, s)
    assert "d = a b - c" in say(lambda p, c: p - c) and "d = -a b + c" in say(lambda p, c: c - p)
    assert "d = -a b" in say(lambda p, c: -p)
    assert "an array, not a number" in say(lambda p, c, s: s * p + c, nvm.ones((), dtype=dtype))


@pytest.mark.parametrize("by", [1e-40, 1e-38, 2e-38, 8e37, 3e38, float("inf"), 0.0, 3.0])
def test_quotients_of_products(by, runs):
    """1 / 1e-40 is no float32, and 1 / 3e38 one of few bits."""
    x = np.ones((40, 30), "float32")
    x[3] = 1e-22
    w = np.full((30, 50), 1e-12, "float32")
    with np.errstate(all="ignore"):
        want = (x @ w) / np.float32(by)
    got = np.asarray((nvm.asarray(x) @ w) / by)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-45)


SCALARS = {  # a number as a user may write it
    "Python": lambda s, dtype: s,
    "NumPy": lambda s, dtype: np.dtype("float32" if dtype == "bfloat16" else dtype).type(s),
    "0-d": lambda s, dtype: nvm.asarray(float(s)).astype(dtype).eval(),
}


def by_hand(f, p, c, s, dtype):
    """NumPy's answer with the number rounded to the product's dtype."""
    with np.errstate(all="ignore"):
        return f(p, c, gemms.wide(nvm.asarray(float(s)).astype(dtype)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize("scalar", SCALARS)
def test_a_factor_of_0_is_mathematics(scalar, dtype, runs, rng):
    """NaN and infinities travel through a factor of 0, whoever computes it, known before the call or given with it."""
    x, w, c, far = (rng.integers(-1, 2, n).astype("float64") for n in ((60, 70), (70, 50), (60, 50), (60, 50)))
    bad = x.copy()
    bad[5], bad[7, 9], far[3, 4], far[5, 6] = np.nan, np.inf, np.nan, -np.inf
    cases = [
        (lambda p, c, s: s * p, bad, c),
        (lambda p, c, s: s * p + c, bad, c),
        (lambda p, c, s: c - p * s, bad, c),
        (lambda p, c, s: p + s * c, x, far),
        (lambda p, c, s: c * s - p, x, far),
        (lambda p, c, s: s * -p.T, bad, c),
        (lambda p, c, s: s * (2 * p) + c, bad, far),
    ]
    for f, a, b in cases:
        a, v, b = (nvm.asarray(n).astype(dtype).eval() for n in (a, w, b))
        given = nvm.jit(lambda a, w, b, s: f(a @ w, b, s))
        for zero in (0, 2.0, -0.0):  # programs for 0 and for other numbers take turns
            with np.errstate(all="ignore"):
                want = by_hand(f, gemms.wide(a) @ gemms.wide(v), gemms.wide(b), zero, dtype)
            s = SCALARS[scalar](zero, dtype)
            for got in (f(a @ v, b, s), given(a, v, b, s)):
                np.testing.assert_array_equal(np.isnan(gemms.wide(got)), np.isnan(want))
                np.testing.assert_array_equal(np.isfinite(gemms.wide(got)), np.isfinite(want))
                fine = np.isfinite(want)
                np.testing.assert_array_equal(gemms.wide(got)[fine], want[fine])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("s", [1e-320, 1e-300, 1e-45, 1e-40, 1e-10, 1e10, 1e38, 1e39, 1e300, np.inf, -np.inf, np.nan])
def test_factors_at_the_ends_of_a_type(s, dtype, runs, rng):
    """A number that the product's dtype takes for 0, rounds to a subnormal one, or takes for infinite. A library may
    multiply parts of a sum by it: each of a few parts is rounded, and may overflow where the sum does not."""
    x, w = (rng.integers(-3, 4, n).astype("float64") for n in ((40, 2500), (2500, 30)))
    c = rng.integers(-3, 4, (40, 30)).astype("float64")
    x[:, 1000:], x[3] = x[:, :1500], 0  # sums of several panels; a row of zeros: 0 times infinity
    x, w, c = (nvm.asarray(n).astype(dtype).eval() for n in (x, w, c))
    p = gemms.wide(x @ w).astype(dtype)
    info, most = np.finfo(dtype), float(np.max(np.abs(gemms.wide(x)) @ np.abs(gemms.wide(w))))
    size = min(abs(s), float(info.max)) if np.isfinite(s) else 0
    for f, factor in (
        (lambda p, c, s: s * p, size),
        (lambda p, c, s: p - c * s, max(size, 1)),
        (lambda p, c, s: s * p + c, max(size, 1)),
    ):
        near = min(8 * float(info.eps) * most * factor, float(info.max))
        with np.errstate(all="ignore"):
            want = f(p, gemms.wide(c).astype(dtype), np.dtype(dtype).type(s))
        for got in (f(x @ w, c, s), nvm.jit(lambda x, w, c, s: f(x @ w, c, s))(x, w, c, s)):
            got = np.asarray(got)
            fine = np.isfinite(want)
            if size * most > float(info.max):
                fine &= np.isfinite(got)
            else:
                np.testing.assert_array_equal(got[~fine], want[~fine])
            np.testing.assert_allclose(got[fine], want[fine], rtol=0, atol=max(near, float(info.smallest_subnormal)))


# ---- vecdot, tensordot and relatives
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_vecdot(dtype, rng):
    x, y = draw(rng, dtype, (4, 1, 30), -2, 2), draw(rng, dtype, (5, 30), -2, 2)
    np.testing.assert_allclose(np.asarray(nvm.vecdot(x, y)), np.sum(x.conj() * y, axis=-1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(nvm.vecdot(y, y, axis=0)), np.sum(y.conj() * y, axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "axes",
    [
        0,
        1,
        2,
        ([3, 2], [0, 1]),
        ([2, 3], [1, 0]),
        ([], []),
        ([-1], [0]),
        ([0, 1, 2, 3], [3, 2, 1, 0]),
        (2, 1),
        ((0,), (3,)),
        ([1, 0], [2, 3]),
    ],
)
def test_tensordot(axes, rng):
    x, y = draw(rng, "float64", (2, 3, 4, 5), -2, 2), draw(rng, "float64", (5, 4, 3, 2), -2, 2)
    if axes == 2:
        x = x.transpose(0, 1, 3, 2)
    got, want = np.asarray(nvm.tensordot(x, y, axes=axes)), np.tensordot(x, y, axes=axes)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_relatives(rng):
    x, y = draw(rng, "float64", (2, 3, 4)), draw(rng, "float64", (5, 4, 6))
    np.testing.assert_allclose(np.asarray(nvm.dot(x, y)), np.dot(x, y))
    np.testing.assert_allclose(np.asarray(nvm.dot(x, 3.0)), x * 3)
    np.testing.assert_allclose(np.asarray(nvm.dot(x, y[0, :, 0])), np.dot(x, y[0, :, 0]))
    np.testing.assert_allclose(np.asarray(nvm.inner(x, y.transpose(0, 2, 1))), np.inner(x, y.transpose(0, 2, 1)))
    np.testing.assert_allclose(np.asarray(nvm.inner(2.0, x)), x * 2)
    np.testing.assert_allclose(np.asarray(nvm.outer(x[0, 0], y[0, 0])), np.outer(x[0, 0], y[0, 0]))
    chain = [draw(rng, "float64", s) for s in ((10, 3), (3, 20), (20, 2), (2, 7))]
    want = np.linalg.multi_dot(chain)
    np.testing.assert_allclose(np.asarray(nvm.linalg.multi_dot(chain)), want, rtol=1e-10)
    np.testing.assert_allclose(
        np.asarray(nvm.linalg.multi_dot([chain[0][0], *chain[1:3], chain[3][:, 1]])), want[0, 1], rtol=1e-10
    )
    m = draw(rng, "float64", (3, 4, 4), -1, 1)
    for n in range(8):
        np.testing.assert_allclose(
            np.asarray(nvm.linalg.matrix_power(m, n)), np.linalg.matrix_power(m, n), rtol=1e-9, atol=1e-9
        )


# ---- einsum
EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij,jk->ki", (3, 4), (4, 5)),
    ("ii", (4, 4)),
    ("ii->i", (4, 4)),
    ("iij->j", (4, 4, 3)),
    ("iii->i", (3, 3, 3)),
    ("ijij->ij", (2, 3, 2, 3)),
    ("ij->", (4, 3)),
    ("ij->ji", (4, 3)),
    ("ba", (4, 3)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)),
    ("...ij,...jk", (2, 1, 3, 4), (5, 4, 6)),
    ("i...->...", (2, 3, 4)),
    ("...->...", (2, 3)),
    ("i,j->ij", (3,), (4,)),
    ("i,i", (3,), (3,)),
    ("ij,ij->i", (3, 4), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("bhqk,bkhd->bqhd", (2, 3, 4, 6), (2, 6, 3, 5)),
    ("ikj,kn->ijn", (3, 4, 5), (4, 6)),
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 6)),
    ("ij,kl,ik->jl", (3, 4), (5, 6), (3, 5)),
    ("ij,j->i", (1, 4), (4,)),
    ("ij,jk->ik", (3, 1), (4, 5)),
    ("ij,ij->ij", (3, 1), (3, 4)),
    ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 6, 7)),
    ("abcd,dcef->abef", (2, 3, 4, 5), (5, 4, 6, 7)),
    ("acbd,dcef->abef", (2, 4, 3, 5), (5, 4, 6, 7)),
    (",ij->ij", (), (3, 4)),
    (",", (), ()),
    ("ij,jk->ik", (0, 4), (4, 5)),
    ("ij,jk->ik", (3, 0), (0, 5)),
    ("i->", (0,)),
    ("iij,jkk->ik", (3, 3, 4), (4, 5, 5)),
    ("ab,cb->ac", (3, 4), (5, 4)),
    ("ab,ab,ab->ab", (3, 4), (3, 4), (3, 4)),
    ("ij,jk,kl,lm,mn->in", (3, 4), (4, 5), (5, 2), (2, 6), (6, 3)),
    ("bij,kl->bijkl", (2, 3, 4), (2, 3)),
    (" i j , j k -> i k ", (3, 4), (4, 5)),
    ("Aa,aB", (3, 4), (4, 5)),
    ("i...j,j...k->...ik", (3, 2, 4), (4, 2, 5)),
    ("ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak", *[(i % 3 + 2, (i + 1) % 3 + 2) for i in range(10)]),
    ("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm,mn,no->ao", *[(2, 2)] * 14),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum(case, rng):
    spec, shapes = case[0], case[1:]
    x = [draw(rng, "float64", s, -2, 2) for s in shapes]
    want = np.einsum(spec, *x, optimize=len(x) > 4)
    for way in (None, False, True, "optimal"):
        got = np.asarray(nvm.einsum(spec, *x, optimize=way))
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_einsum_calls(rng):
    x, y, z = (draw(rng, "float64", s, -2, 2) for s in ((3, 4), (4, 5), (5, 6)))
    np.testing.assert_allclose(np.asarray(nvm.einsum(x, [0, 1], y, [1, 2], [0, 2])), x @ y)
    np.testing.assert_allclose(np.asarray(nvm.einsum(x, [7, 3], y, [3, 9])), x @ y)
    np.testing.assert_allclose(np.asarray(nvm.einsum(x, [..., 0], y, [0, 1], [..., 1])), x @ y)
    for path in (
        ["einsum_path", (1, 2), (0, 1)],
        [(0, 1, 2)],
        [(0, 1), (0, 1)],
        [(0,), (0, 1), (0, 1)],
        np.einsum_path("ij,jk,kl->il", x, y, z)[0],
    ):
        np.testing.assert_allclose(np.asarray(nvm.einsum("ij,jk,kl->il", x, y, z, optimize=path)), x @ y @ z)
    h = draw(rng, "float16", (6, 7), -1, 1)
    assert nvm.einsum("ij,kj", h, h).dtype == nvm.float16
    assert nvm.einsum("ij,kj", h, h, dtype="float32").dtype == nvm.float32
    i = np.full((2, 300), 100, "int8")
    np.testing.assert_array_equal(np.asarray(nvm.einsum("ij,ij->i", i, i, dtype="int64")), np.full(2, 3000000))
    assert nvm.einsum("i->", i[0]).dtype == nvm.int8


@pytest.mark.parametrize(
    "spec, shapes",
    [
        ("ij,jk,kl->il", ((30, 2), (2, 30), (30, 2))),
        ("ab,bc,cd,de->ae", ((9, 8), (8, 2), (2, 40), (40, 3))),
        ("ij,jk", ((3, 4), (4, 5))),
        ("ii", ((3, 3),)),
    ],
)
def test_einsum_path(spec, shapes, rng):
    x = [draw(rng, "float64", s) for s in shapes]
    for way in ("greedy", "optimal", True, False):
        path, text = nvm.einsum_path(spec, *x, optimize=way)
        assert path[0] == "einsum_path" and len(path) == len(x) and "operations" in text
        np.testing.assert_allclose(np.asarray(nvm.einsum(spec, *x, optimize=path)), np.einsum(spec, *x), rtol=1e-9)
    if len(x) == 3:
        assert nvm.einsum_path(spec, *x, optimize="optimal")[0] == list(np.einsum_path(spec, *x, optimize="optimal")[0])
    with pytest.raises(ValueError, match="einsum"):
        nvm.einsum_path("ij,jk", *x[:1])


def test_einsum_takes_few_operations(rng):
    """(n, 2)(2, n)(n, 2): from the right it never makes an n by n matrix. The plan says so."""
    x, y, z = (nvm.asarray(draw(rng, "float64", s)).eval() for s in ((300, 2), (2, 300), (300, 2)))
    f = lambda way: nvm.explain(lambda a, b, c: nvm.einsum("ij,jk,kl->il", a, b, c, optimize=way), x, y, z)
    assert "[300, 300]" not in f(None) and f(None) == f("optimal") == f([(1, 2), (0, 1)]) != f(False)


# ---- with everything around
COUNT = int(os.environ.get("NVM_TEST_GEMMS", "300"))


@pytest.fixture(scope="module")
def fuse():
    yield lambda on: nvm.set("FUSE", "on" if on else "off")
    nvm.set("FUSE", "on")


@pytest.mark.parametrize("first", range(0, COUNT, 10))
def test_random_products_with_heads_and_tails(first, fuse):
    """Fused, node by node, and in double precision: gemms.gemm(seed) is the case again."""
    for seed in range(first, min(first + 10, COUNT)):
        for on in (True, False):
            fuse(on)
            g = gemms.gemm(seed)
            nvm.eval(*g.out)
            why = gemms.far(g, [gemms.wide(x) for x in g.out])
            assert why is None, f"seed {seed}, {'fused' if on else 'node by node'}: {why}\n{g.text}"


def random_einsum(seed):
    """Subscripts and operands: labels that repeat, broadcast from 1, stand alone or are left out, and ellipses."""
    r = np.random.default_rng(seed)
    extents = {c: int(r.choice([1, 2, 3, 4, 5, 0] if r.random() < 0.1 else [1, 2, 3, 4, 5])) for c in "abcdef"}
    dots = tuple(int(e) for e in r.choice([1, 2, 3], int(r.integers(0, 3)))) if r.random() < 0.4 else None
    terms, x = [], []
    for _ in range(int(r.integers(1, 5))):
        letters = [str(c) for c in r.choice(list("abcdef"), int(r.integers(0, 4)))]
        shape = [extents[c] if letters.count(c) > 1 or r.random() < 0.9 else 1 for c in letters]
        if dots is not None and r.random() < 0.7:
            mine = dots[int(r.integers(0, len(dots) + 1)) :]
            at = int(r.integers(0, len(letters) + 1))
            letters.insert(at, "...")
            shape[at:at] = [e if r.random() < 0.8 else 1 for e in mine]
        terms.append("".join(letters))
        x.append(
            r.integers(-3, 4, shape).astype(str(r.choice(["float64", "float64", "float32", "int64", "complex128"])))
        )
    used = sorted(set("".join(terms)) - {"."})
    spec = ",".join(terms)
    if r.random() < 0.75:
        out = [str(c) for c in r.permutation([c for c in used if r.random() < 0.5])]
        if "..." in spec:
            out.insert(int(r.integers(0, len(out) + 1)), "...")
        spec += "->" + "".join(out)
    return spec, x


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_einsums(first):
    """Small whole numbers: no order of the sums changes a bit."""
    for seed in range(first, first + 50):
        spec, x = random_einsum(seed)
        want = np.einsum(spec, *x)
        for way in (None, False, "greedy"):
            got = np.asarray(nvm.einsum(spec, *x, optimize=way))
            what = f"seed {seed}: {spec} {[a.shape for a in x]}"
            assert got.shape == want.shape and got.dtype == want.dtype, what
            np.testing.assert_array_equal(got, want, err_msg=what)


@pytest.mark.parametrize("m, k, n", [(33, 33, 33), (7, 17, 5), (64, 3, 128)])
def test_operands_of_one_number(m, k, n):
    x, y = nvm.asarray(np.float32(2)), nvm.asarray(np.float32(3))
    z = nvm.broadcast_to(x, (m, k)) @ nvm.broadcast_to(y, (k, n))
    assert np.array_equal(np.asarray(z), np.full((m, n), 6 * k, "float32"))
    z = nvm.full((4, m, k), 1.0, dtype="float32") @ nvm.full((4, k, n), 1.0, dtype="float32") + 1
    assert np.array_equal(np.asarray(z), np.full((4, m, n), k + 1, "float32"))


def test_a_scatter_at_what_a_product_computes():
    a, b = np.arange(192, dtype="f").reshape(3, 64) % 5, np.ones((64, 3), "f")

    @nvm.jit
    def put(a, b):
        p = (a.astype("float16") @ b.astype("float16")).astype("float32") + 1
        y = nvm.zeros(14)
        y[(p.astype("int64") % 14).reshape(-1)] = 1
        return (p.sum(axis=1) / 3).astype("int32"), y

    p = a @ b + 1
    want = np.zeros(14)
    want[(p.astype(int) % 14).reshape(-1)] = 1
    m, y = put(a, b)
    assert np.array_equal(np.asarray(y), want) and np.array_equal(np.asarray(m), (p.sum(1) / 3).astype("i4"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_a_training_step(act, dtype, rng):
    """Two layers there and back, in one program, against float64; 16 bits are rounded at each product."""
    x = [nvm.asarray(v).astype(dtype).eval() for v in mlp.operands(rng, 150, 40, 70, 24)]
    got = nvm.jit(lambda *a: mlp.step(nvm, act, *a))(*x)
    want = mlp.step(np, act, *(gemms.wide(v) for v in x))
    for name, g, v in zip(("loss", "dw1", "db1", "dw2", "db2"), got, want):
        off = np.linalg.norm(gemms.wide(g) - v) / np.linalg.norm(v)
        assert off < {"float64": 1e-14, "float32": 1e-6, "bfloat16": 4e-2}[dtype], (name, off)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_vector_and_a_matrix_read_lines(dtype, rng):
    """One row times weights that lie (out, in) or (in, out): summed along memory where that is possible."""
    x = rng.integers(-9, 9, (1, 2000)).astype("float32")
    w = rng.integers(-9, 9, (3000, 2000)).astype(dtype)
    for turned in (True, False):
        b = nvm.asarray(w if turned else np.ascontiguousarray(w.T)).eval()
        y = nvm.asarray(x) @ (b.T if turned else b)
        assert ("row-reduce" in nvm.explain(y)) == turned, nvm.explain(y)
        np.testing.assert_array_equal(np.asarray(y), x @ w.T.astype("float32"))
