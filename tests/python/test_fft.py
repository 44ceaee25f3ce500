"""Fourier transforms against NumPy's of long double, over lengths, axes, strides and dtypes; what is true of every
transform; what is rejected."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pytest

import nvm

ONE = {  # the functions of one axis: is the input real
    "fft": (nvm.fft.fft, np.fft.fft, False),
    "ifft": (nvm.fft.ifft, np.fft.ifft, False),
    "rfft": (nvm.fft.rfft, np.fft.rfft, True),
    "irfft": (nvm.fft.irfft, np.fft.irfft, False),
    "hfft": (nvm.fft.hfft, np.fft.hfft, False),
    "ihfft": (nvm.fft.ihfft, np.fft.ihfft, True),
}
MANY = {
    "fftn": (nvm.fft.fftn, np.fft.fftn, False),
    "ifftn": (nvm.fft.ifftn, np.fft.ifftn, False),
    "rfftn": (nvm.fft.rfftn, np.fft.rfftn, True),
    "irfftn": (nvm.fft.irfftn, np.fft.irfftn, False),
    "fft2": (nvm.fft.fft2, np.fft.fft2, False),
    "ifft2": (nvm.fft.ifft2, np.fft.ifft2, False),
    "rfft2": (nvm.fft.rfft2, np.fft.rfft2, True),
    "irfft2": (nvm.fft.irfft2, np.fft.irfft2, False),
}
SINGLE = (np.float16, np.float32, np.complex64)


def draw(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.kind == "c" else x).astype(dtype)


def widest(x):
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def close(got, want, single, points):
    """Within the bound of the error that docs/how-it-works/numerics.md states."""
    got = np.asarray(got)
    assert got.shape == want.shape
    kinds = {"c": (np.complex64, np.complex128), "f": (np.float32, np.float64)}
    assert got.dtype == kinds[want.dtype.kind][not single]
    bound = (5e-8 if single else 1e-15) * max(math.log2(max(points, 1)), 1)
    size = np.linalg.norm(want.ravel())
    assert np.linalg.norm((got - want).ravel()) <= bound * size, (points, got.dtype)


@pytest.mark.parametrize("name", ONE)
def test_one_axis(name):
    f, ref, real = ONE[name]
    rng = np.random.default_rng(7)
    for n in [*range(1, 70), 97, 121, 128, 169, 243, 256, 257, 323, 500, 1001, 1024, 1031, 2048, 4099]:
        for dtype in (np.float32, np.float64) if real else (np.complex64, np.complex128):
            x = draw(rng, (3, n), dtype)
            if name in ("irfft", "hfft") and n == 1:
                continue
            close(f(x), ref(widest(x)), dtype in SINGLE, 2 * n)


@pytest.mark.parametrize("name", MANY)
def test_many_axes(name):
    f, ref, real = MANY[name]
    rng = np.random.default_rng(8)
    for shape in [(3, 4), (5, 2), (2, 3, 4), (4, 3, 2, 5), (16, 24), (7, 1, 13)]:
        for dtype in (np.float32, np.float64) if real else (np.complex64, np.complex128):
            x = draw(rng, shape, dtype)
            for norm in ("backward", "ortho", "forward", None):
                close(f(x, norm=norm), ref(widest(x), norm=norm), dtype in SINGLE, x.size)


def test_random_calls():
    """2,000 functions, dtypes, lengths, axes, crops, norms and strides, which may be 0, negative or overlap."""
    rng = np.random.default_rng(11)
    some = list(ONE.items())
    for _ in range(2000):
        name, (f, ref, real) = some[rng.integers(len(some))]
        dtype = rng.choice(["f4", "f8", "f2", "i4", "?"] if real else ["c8", "c16", "f4", "f8", "i8"])
        ndim = int(rng.integers(1, 4))
        axis = int(rng.integers(-ndim, ndim))
        shape = rng.integers(1, 6, ndim).tolist()
        long = int(rng.choice([rng.integers(2, 40), rng.integers(2, 400), 2 ** rng.integers(1, 11)]))
        shape[axis] = long
        x = draw(rng, [2 * n for n in shape], dtype)
        x = x[tuple(slice(None, n) if rng.integers(2) else slice(None, None, -2) for n in shape)]
        if rng.integers(4) == 0:  # windows that overlap
            flat = draw(rng, (sum(shape) * 2 + long * 64 * 2,), dtype)
            strides = [int(rng.integers(0, 3)) * x.itemsize for _ in shape]
            x = np.lib.stride_tricks.as_strided(flat, shape, strides)
        x = x.transpose(rng.permutation(ndim)) if rng.integers(3) == 0 else x
        m = x.shape[axis]
        n = None if rng.integers(2) and m > 1 else int(rng.integers(2, 2 * m + 3))
        norm = ("backward", "ortho", "forward")[rng.integers(3)]
        single = np.dtype(dtype) in ("f2", "f4", "c8") or (x.dtype.kind in "biu" and nvm.default_dtype() == nvm.float32)
        want = ref(widest(x), n=n, axis=axis, norm=norm)
        close(f(nvm.asarray(x), n=n, axis=axis, norm=norm), want, single, 2 * want.shape[axis])


def test_crops_and_paddings_of_several_axes():
    rng = np.random.default_rng(12)
    x = draw(rng, (3, 4, 5), np.float64)
    for s, axes in itertools.chain(
        ((s, None) for s in [(2,), (6, 3), (1, 4, 9)]),
        (((7, 2), axes) for axes in [(0, 1), (2, 0), (-1, -2)]),
        ((None, axes) for axes in [(0,), (2, 1), (1, 0, 2)]),
    ):
        with warnings.catch_warnings():  # NumPy wants axes with s
            warnings.simplefilter("ignore", DeprecationWarning)
            close(nvm.fft.fftn(x, s=s, axes=axes), np.fft.fftn(widest(x), s, axes), False, 60)
            close(nvm.fft.rfftn(x, s=s, axes=axes), np.fft.rfftn(widest(x), s, axes), False, 60)
    np.testing.assert_array_equal(nvm.fft.fftn(x, s=(-1, 3), axes=(0, 1)), nvm.fft.fftn(x, s=(3, 3), axes=(0, 1)))
    np.testing.assert_array_equal(nvm.fft.fftn(x, axes=()), x.astype(complex))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_properties(dtype):
    rng = np.random.default_rng(13)
    single = dtype in SINGLE
    for n in [1, 2, 3, 8, 15, 17, 60, 128, 251, 256, 1000, 2310]:
        x, y = draw(rng, (n,), dtype), draw(rng, (n,), dtype)
        k = int(rng.integers(n))
        phase = np.exp(2 * np.arccos(np.longdouble(-1)) * (k * np.arange(n) % n) / -n * 1j)
        fx, fy = (np.asarray(nvm.fft.fft(a)) for a in (x, y))
        close(nvm.fft.fft(x + 2 * y), widest(fx + 2 * fy), single, n * n)  # linear
        close(nvm.fft.fft(np.roll(x, k)), widest(fx * phase), single, n * n)  # a shift turns phases
        impulse = (np.arange(n) == k).astype(dtype)
        close(nvm.fft.fft(impulse), widest(phase), single, n * n)
        np.testing.assert_allclose(np.vdot(fx, fx), n * np.vdot(x, x), rtol=1e-6 if single else 1e-14)  # Parseval
        close(nvm.fft.ifft(nvm.fft.fft(x)), widest(x), single, n * n)
        if n & (n - 1) == 0:  # exact
            np.testing.assert_array_equal(nvm.fft.fft(np.ones(n, dtype))[1:], np.zeros(n - 1))


def test_what_is_not_finite_stays_in_its_transform():
    rng = np.random.default_rng(14)
    for name, (f, _, real) in ONE.items():
        for n in (4, 9, 16, 34, 300):
            x = draw(rng, (11, n), np.float32 if real else np.complex64)
            clean = np.asarray(f(x))
            bad = x.copy()
            bad[3, n // 3], bad[7, 0] = np.nan, np.inf
            got = np.asarray(f(bad))
            others = [i for i in range(11) if i not in (3, 7)]
            assert not np.isfinite(got[3]).any(), name
            assert not np.isfinite(got[7]).all(), name
            np.testing.assert_array_equal(got[others], clean[others])


def test_bits_depend_on_neither_batch_nor_threads_nor_jit():
    rng = np.random.default_rng(15)
    for n in (5, 30, 128, 254, 256, 1000, 4096):
        x = draw(rng, (37, n), np.complex64)
        whole = np.asarray(nvm.fft.fft(x))
        for i in (0, 17, 36):
            np.testing.assert_array_equal(nvm.fft.fft(x[i]), whole[i])
        np.testing.assert_array_equal(nvm.fft.fft(np.asfortranarray(x)), whole)
        np.testing.assert_array_equal(nvm.jit(nvm.fft.fft)(nvm.asarray(x)), whole)
        before = nvm.settings()["NVM_NUM_THREADS"]
        nvm.set("NVM_NUM_THREADS", "1")
        np.testing.assert_array_equal(nvm.fft.fft(x), whole)
        nvm.set("NVM_NUM_THREADS", before)


def test_rows_that_are_fetched_ahead_have_the_same_bits():
    """More rows than a cache holds, whole and cropped, one and two operands, and the last row of all."""
    rng = np.random.default_rng(16)
    for n, rows in ((256, 8300), (2048, 1100)):
        x, h = draw(rng, (rows, n), np.complex64), draw(rng, (rows, n), np.complex64)
        for f in (
            lambda x, h: nvm.fft.fft(x),
            lambda x, h: nvm.fft.ifft(nvm.fft.fft(x) * h),
            lambda x, h: nvm.fft.fft(x[:, : n - 40], n=n),
        ):
            whole = np.asarray(nvm.jit(f)(nvm.asarray(x), nvm.asarray(h)))
            for i in (0, rows // 2, rows - 1):
                np.testing.assert_array_equal(f(nvm.asarray(x[i : i + 1]), nvm.asarray(h[i : i + 1])), whole[i : i + 1])


def test_a_function_with_filters_is_traced():
    rng = np.random.default_rng(16)
    x, h = draw(rng, (5, 64), np.complex128), draw(rng, (64,), np.complex128)
    f = nvm.jit(lambda x, h: nvm.fft.ifft(nvm.fft.fft(x) * h))
    want = np.fft.ifft(np.fft.fft(x) * h)
    for _ in range(3):
        np.testing.assert_allclose(f(x, h), want, rtol=0, atol=1e-13)
    assert f.explain(x, h).count("fft.ifft") == 1


def test_empty_batches_and_axes():
    for f, ref, _ in ONE.values():
        x = np.zeros((0, 6), np.float32)
        assert f(x).shape == ref(x).shape
        np.testing.assert_array_equal(f(np.zeros((2, 0)), n=5), np.zeros(ref(np.zeros((2, 1)), n=5).shape))


def test_inverses():
    rng = np.random.default_rng(6)
    x, z = draw(rng, (6, 10), np.float64), draw(rng, (6, 10), np.complex128)
    for norm in ("backward", "ortho", "forward"):
        for back, want in [
            (nvm.fft.ifft(nvm.fft.fft(z, axis=0, norm=norm), axis=0, norm=norm), z),
            (nvm.fft.irfft(nvm.fft.rfft(x, norm=norm), norm=norm), x),
            (nvm.fft.hfft(nvm.fft.ihfft(x, norm=norm), norm=norm), x),
            (nvm.fft.ifftn(nvm.fft.fftn(z, norm=norm), norm=norm), z),
            (nvm.fft.irfftn(nvm.fft.rfftn(x, norm=norm), norm=norm), x),
            (nvm.fft.ifft2(nvm.fft.fft2(z, norm=norm), norm=norm), z),
            (nvm.fft.irfft2(nvm.fft.rfft2(x, norm=norm), norm=norm), x),
        ]:
            np.testing.assert_allclose(back, want, rtol=0, atol=1e-14)


def test_functions_can_be_pickled():
    for f in (nvm.fft.fft, nvm.fft.rfftn, nvm.sin):
        assert pickle.loads(pickle.dumps(f)) is f


def test_shifts_and_frequencies():
    rng = np.random.default_rng(9)
    for shape in [(1,), (4,), (5,), (3, 4), (2, 3, 5)]:
        x = draw(rng, shape, np.float32)
        for axes in (None, 0, -1, tuple(range(len(shape)))):
            np.testing.assert_array_equal(nvm.fft.fftshift(x, axes=axes), np.fft.fftshift(x, axes))
            np.testing.assert_array_equal(nvm.fft.ifftshift(x, axes=axes), np.fft.ifftshift(x, axes))
    for n in (1, 2, 5, 8, 1000):
        for d in (1.0, 0.3):
            for dtype in (nvm.float32, nvm.float64):
                got = nvm.fft.fftfreq(n, d=d, dtype=dtype)
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, np.fft.fftfreq(n, d).astype(dtype.name))
                np.testing.assert_array_equal(
                    nvm.fft.rfftfreq(n, d=d, dtype=dtype), np.fft.rfftfreq(n, d).astype(dtype.name)
                )


def test_errors():
    x, real = nvm.ones((3, 4), dtype=nvm.complex64), nvm.ones((3, 4))
    for call, error, text in [
        (lambda: nvm.fft.fft(x, n=0), ValueError, "number of points is 0"),
        (lambda: nvm.fft.fft(x, n=-3), ValueError, "number of points is -3"),
        (lambda: nvm.fft.fft(x, n=2**31), ValueError, "at most 2147483647 points"),
        (lambda: nvm.fft.irfft(x[:, :1]), ValueError, "number of points is 0"),
        (lambda: nvm.fft.fft(x, axis=2), IndexError, "axis 2 is out of range"),
        (lambda: nvm.fft.fft(nvm.ones(())), IndexError, "axis -1 is out of range"),
        (lambda: nvm.fft.fftn(x, axes=(0, -2)), ValueError, "axis 0 is given twice"),
        (lambda: nvm.fft.fftn(x, s=(2,), axes=(0, 1)), ValueError, "s has 1 entries for 2 axes"),
        (lambda: nvm.fft.fftn(x, s=(2, 2, 2)), ValueError, "s has 3 entries for 2 dimensions"),
        (lambda: nvm.fft.rfftn(real, axes=()), ValueError, "needs an axis"),
        (lambda: nvm.fft.rfft(x), TypeError, "real numbers"),
        (lambda: nvm.fft.ihfft(x), TypeError, "real numbers"),
        (lambda: nvm.fft.fft(x, norm="orthogonal"), ValueError, 'norm is "backward", "ortho" or "forward"'),
        (lambda: nvm.fft.fftfreq(0), ValueError, "number of points is 0"),
        (lambda: nvm.fft.fftfreq(4, d=0.0), ValueError, "zero"),
        (lambda: nvm.fft.fftfreq(4, dtype=nvm.int32), TypeError, "floats"),
    ]:
        with pytest.raises(error, match=text):
            call()
