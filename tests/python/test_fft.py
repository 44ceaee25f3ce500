"""Fourier transforms against NumPy, which computes in double precision, and against sums in long double."""

import math
import pickle

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
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


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
