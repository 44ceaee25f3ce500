"""scaled_matmul: products of floats of 8 bits with scales of whole operands, rows and columns, and blocks of 128."""

import numpy as np
import pytest

import nvm

E4, E5 = "float8_e4m3fn", "float8_e5m2"


def blocks(n):
    return -(-n // 128)


def eights(rng, shape, dtype=E4):
    """An array, and what it holds."""
    x = nvm.asarray(rng.standard_normal(shape).astype("float32")).astype(dtype).eval()
    return x, np.asarray(x.astype("float64"))


def spread(scale, shape):
    """A scale as large as its operand."""
    for axis in (-2, -1) if scale.ndim else ():
        n = shape[axis]
        if scale.shape[axis] not in (1, n):
            scale = np.take(np.repeat(scale, 128, axis), range(n), axis)
    return scale.astype("float64")


def check(rng, a, b, scale_a, scale_b, dtype=None, left=E4, right=E4, turned=False):
    x, x64 = eights(rng, a, left)
    y, y64 = eights(rng, b[:-2] + (b[-1], b[-2]), right)
    y, y64 = nvm.matrix_transpose(y), np.swapaxes(y64, -1, -2)
    s, t = (rng.uniform(0.5, 2, shape).astype("float32") for shape in (scale_a, scale_b))
    turn = lambda v: nvm.matrix_transpose(nvm.asarray(np.ascontiguousarray(np.swapaxes(v, -1, -2))))
    given = [turn(v) if turned and v.ndim > 1 else v for v in (s, t)]
    got = nvm.scaled_matmul(x, y, *given, dtype=dtype)
    x64, y64 = x64 * spread(s, a), y64 * spread(t, b)
    want, size = x64 @ y64, np.abs(x64) @ np.abs(y64)
    assert got.shape == want.shape and got.dtype.name == (dtype or "float32")
    step = {"bfloat16": 2**-8, "float16": 2**-11}.get(dtype, 2**-22)
    off = np.abs(np.asarray(got.astype("float64")) - want)
    assert np.all(off <= 2**-8 * size + step * np.abs(want)), off.max()
    if nvm.get_default_device().startswith("cpu"):  # float32
        assert np.all(off <= (a[-1] + 4) * 2**-23 * size + step * np.abs(want)), off.max()


SIZES = [(64, 48, 128), (200, 130, 300), (33, 257, 1000), (256, 384, 640), (1, 64, 256), (40, 1, 257), (5, 7, 3)]


@pytest.mark.parametrize("m, n, k", SIZES)
def test_scales_of_every_form(m, n, k, rng):
    rows, sums, columns = {m, blocks(m), 1}, {blocks(k), 1}, {n, blocks(n), 1}
    for scale_a in [()] + [(i, j) for i in rows for j in sums]:
        for scale_b in [()] + [(i, j) for i in sums for j in columns]:
            check(rng, (m, k), (k, n), scale_a, scale_b)


@pytest.mark.parametrize("left, right", [(E4, E5), (E5, E4), (E5, E5)])
@pytest.mark.parametrize("dtype", [None, "float32", "bfloat16", "float16"])
def test_types(left, right, dtype, rng):
    check(rng, (64, 384), (384, 96), (64, 3), (3, 1), dtype, left, right)
    check(rng, (64, 384), (384, 96), (64, 1), (1, 96), dtype, left, right)


def test_scales_that_lie_otherwise(rng):
    for scale_a, scale_b in (((64, 3), (3, 2)), ((64, 3), (3, 192)), ((64, 1), (1, 192)), ((1, 3), (3, 192))):
        check(rng, (64, 384), (384, 192), scale_a, scale_b, turned=True)


@pytest.mark.parametrize(
    "a, b, scale_a, scale_b",
    [
        ((2, 3, 40, 256), (3, 256, 48), (2, 3, 40, 2), (3, 2, 1)),
        ((3, 40, 256), (256, 48), (40, 2), (2, 48)),
        ((3, 40, 256), (3, 256, 48), (1, 40, 2), (3, 2, 48)),
        ((3, 40, 256), (3, 256, 48), (3, 1, 1), (3, 1, 1)),
        ((3, 40, 256), (3, 256, 48), (3, 40, 1), ()),
    ],
)
def test_batches(a, b, scale_a, scale_b, rng):
    check(rng, a, b, scale_a, scale_b)


def test_scales_of_one_number(rng):
    (x, x64), (y, y64) = eights(rng, (32, 64)), eights(rng, (64, 48))
    for three in (np.float32(3), np.full(1, 3, "float32"), np.full((1, 1), 3, "float32")):
        got = np.asarray(nvm.scaled_matmul(x, y, 0.5, nvm.asarray(three)))
        np.testing.assert_allclose(got, x64 @ y64 * 1.5, rtol=1e-4, atol=1e-3)


def test_what_follows(rng):
    """A bias, an activation and a residual behind it, and what was scaled in the same call."""
    y, y64 = eights(rng, (256, 128))
    wide = rng.standard_normal((64, 256)).astype("float32")
    most = np.abs(wide.reshape(64, 2, 128)).max(-1) / 448
    s, bias = rng.uniform(0.5, 2, (2, 1)).astype("float32"), rng.standard_normal(128).astype("float32")

    @nvm.jit
    def layer(v, w, t, c):
        scale = nvm.max(nvm.abs(v.reshape(64, 2, 128)), axis=-1) / 448
        q = (v.reshape(64, 2, 128) / scale[:, :, None]).reshape(64, 256).astype(E4)
        return nvm.relu(nvm.scaled_matmul(q, w, scale, t) + c)

    got = np.asarray(layer(nvm.asarray(wide), y, nvm.asarray(s), nvm.asarray(bias)))
    q = np.asarray(
        nvm.asarray((wide.reshape(64, 2, 128) / most[:, :, None].astype("float32")).reshape(64, 256))
        .astype(E4)
        .astype("float64")
    )
    want = np.maximum((q * spread(most, (64, 256))) @ (y64 * spread(s, (256, 128))) + bias, 0)
    assert np.all(np.abs(got - want) <= 0.02 * np.abs(want).max())


@pytest.mark.parametrize(
    "a, b, scale_a, scale_b, options, error, message",
    [
        (
            (4, 256),
            (256, 6),
            (3, 2),
            (),
            {},
            ValueError,
            r"scale_a of \(3, 2\) does not fit a of \(4, 256\): it is one number, or has 4, 1 or 1 rows and 2 or 1",
        ),
        ((4, 256), (256, 6), (4, 3), (), {}, ValueError, r"scale_a of \(4, 3\) does not fit"),
        ((4, 256), (256, 6), (2,), (), {}, ValueError, r"scale_a of \(2,\) does not fit"),
        (
            (4, 256),
            (256, 300),
            (),
            (300, 2),
            {},
            ValueError,
            r"scale_b of \(300, 2\) does not fit b of \(256, 300\): it is one number, or has 300, 3 or 1 columns",
        ),
        ((2, 4, 256), (256, 6), (3, 4, 2), (), {}, ValueError, "does not fit"),
        ((4, 256), (128, 6), (), (), {}, ValueError, r"inner dimensions differ: \(4, 256\) @ \(128, 6\)"),
        ((256,), (256, 6), (), (), {}, ValueError, "a has 1 dimensions"),
        (
            (4, 256),
            (256, 6),
            (),
            (),
            {"dtype": "float64"},
            TypeError,
            "the result is float32, float16 or bfloat16, not float64",
        ),
    ],
)
def test_errors(a, b, scale_a, scale_b, options, error, message, rng):
    x, y = eights(rng, a)[0], eights(rng, b)[0]
    with pytest.raises(error, match=message):
        nvm.scaled_matmul(x, y, np.ones(scale_a, "float32"), np.ones(scale_b, "float32"), **options)


def test_errors_of_types(rng):
    x, s = eights(rng, (8, 8))[0], np.float32(1)
    with pytest.raises(TypeError, match="b is of float32, not of a float of 8 bits"):
        nvm.scaled_matmul(x, np.ones((8, 8), "float32"), s, s)
    with pytest.raises(TypeError, match="scale_b is of float64, not of float32"):
        nvm.scaled_matmul(x, x, s, np.ones((1, 1)))
    with pytest.raises(TypeError, match="complex numbers do not convert"):
        nvm.scaled_matmul(x, x, s, 1j)
