"""Cosine and sine transforms, short-time transforms, convolution and the analytic signal against their definitions."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import nvm

ROOT = pathlib.Path(__file__).resolve().parents[2]


def near(got, want, tolerance=1e-12):
    got = np.asarray(got)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(1, np.abs(want).max(initial=0)))


# ---- cosine and sine transforms: their matrices
def matrix(name, kind, n):
    k, j = np.arange(n)[:, None], np.arange(n)
    if name == "dct":
        if kind == 1:
            ends = np.where((j == 0) | (j == n - 1), 1, 2)
            return ends * np.cos(np.pi * k * j / (n - 1))
        if kind == 2:
            return 2 * np.cos(np.pi * k * (2 * j + 1) / (2 * n))
        if kind == 3:
            return np.where(j == 0, 1, 2) * np.cos(np.pi * j * (2 * k + 1) / (2 * n))
        return 2 * np.cos(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n))
    if kind == 1:
        return 2 * np.sin(np.pi * (k + 1) * (j + 1) / (n + 1))
    if kind == 2:
        return 2 * np.sin(np.pi * (k + 1) * (2 * j + 1) / (2 * n))
    if kind == 3:
        return np.where(j == n - 1, 1, 2) * np.sin(np.pi * (j + 1) * (2 * k + 1) / (2 * n))
    return 2 * np.sin(np.pi * (2 * k + 1) * (2 * j + 1) / (4 * n))


FUNCTIONS = {"dct": (nvm.fft.dct, nvm.fft.idct), "dst": (nvm.fft.dst, nvm.fft.idst)}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_and_sine_transforms(name, kind):
    f, inverse = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    for n in (2, 3, 4, 5, 8, 17, 30):
        x = rng.standard_normal((3, n))
        m, period = matrix(name, kind, n), 2 * (n + (kind == 1) * (1 if name == "dst" else -1))
        near(f(x, kind), x @ m.T)
        near(f(x, kind, norm="forward"), x @ m.T / period)
        near(inverse(x, kind), np.linalg.solve(m, x.T).T)
        near(f(x, kind, norm="ortho", orthogonalize=False), x @ m.T / np.sqrt(period))
        for norm in ("backward", "ortho", "forward", None):
            near(inverse(f(x, kind, norm=norm), kind, norm=norm), x)
        np.testing.assert_allclose(np.linalg.norm(f(x, kind, norm="ortho")), np.linalg.norm(x))


def test_arguments_of_cosine_transforms():
    rng = np.random.default_rng(2)
    z = rng.standard_normal((6, 5)) + 1j * rng.standard_normal((6, 5))
    near(nvm.fft.dct(z, axis=0, n=9), matrix("dct", 2, 9)[:, :6] @ z)
    infinite = nvm.fft.dct(nvm.asarray([1 + 1j, complex(2, np.inf)]))
    near(infinite.real, np.asarray(nvm.fft.dct(nvm.asarray([1.0, 2.0]))))  # each part is transformed by itself
    near(nvm.fft.dct(z.real, axis=0, n=4), matrix("dct", 2, 4) @ z.real[:4])
    assert nvm.fft.dct(nvm.ones(4, dtype=nvm.float16)).dtype == nvm.float32
    assert nvm.fft.dct(nvm.ones(4, dtype=nvm.int32)).dtype == nvm.default_dtype()
    for call, error, text in [
        (lambda: nvm.fft.dct(z, 5), ValueError, "type is 1, 2, 3 or 4, not 5"),
        (lambda: nvm.fft.dct(z, norm="none"), ValueError, "norm is"),
        (lambda: nvm.fft.dct(z, n=0), ValueError, "number of points is 0"),
        (lambda: nvm.fft.dct(z[:1], 1, axis=0), ValueError, "two points"),
        (lambda: nvm.fft.idst(z, axis=2), IndexError, "axis 2 is out of range"),
    ]:
        with pytest.raises(error, match=text):
            call()


# ---- convolution
@pytest.mark.parametrize("f", [nvm.signal.fftconvolve, nvm.signal.oaconvolve])
def test_convolution_of_vectors(f):
    rng = np.random.default_rng(3)
    for n, m in [(1, 1), (10, 4), (4, 10), (7, 7), (1, 5), (2000, 7), (9, 3000)]:
        for mode in ("full", "same", "valid"):
            x, h = rng.standard_normal(n), rng.standard_normal(m)
            full = np.convolve(x, h)
            size = {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]
            start = (len(full) - size) // 2
            near(f(x, h, mode), full[start : start + size])
            near(f(x * 1j, h, mode), full[start : start + size] * 1j)


@pytest.mark.parametrize("f", [nvm.signal.fftconvolve, nvm.signal.oaconvolve])
def test_convolution_along_axes(f):
    rng = np.random.default_rng(4)
    x, h = rng.standard_normal((3, 500)), rng.standard_normal((1, 6))
    near(f(x, h, axes=1), np.stack([np.convolve(row, h[0]) for row in x]))
    near(f(x.T, h.T, axes=[0]), np.stack([np.convolve(row, h[0]) for row in x]).T)
    a, b = rng.standard_normal((5, 6)), rng.standard_normal((3, 4))
    want = np.zeros((7, 9))
    for i in range(3):
        for j in range(4):
            want[i : i + 5, j : j + 6] += a * b[i, j]
    near(f(a, b), want)
    near(f(a, b, "same"), want[1:6, 1:7])
    near(f(b, a, "valid"), want[2:5, 3:6])
    for call in [
        lambda: f(a, b[0]),
        lambda: f(a, b, "half"),
        lambda: f(a, b, axes=(0, 0)),
        lambda: f(a, b, axes=0),
        lambda: f(a, b[:0]),
        lambda: f(a[:2], b, "valid"),
    ]:
        with pytest.raises(ValueError, match=r"^\[\w+convolve\]"):
            call()


# ---- short-time transforms
def segments(x, n, hop, edge, padded):
    x = np.concatenate([np.zeros(edge), x, np.zeros(edge)])
    if padded:
        x = np.concatenate([x, np.zeros(-(len(x) - n) % hop)])
    return np.stack([x[i : i + n] for i in range(0, len(x) - n + 1, hop)])


def test_short_time_transform():
    rng = np.random.default_rng(5)
    hann = lambda n: 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)
    for length, n, overlap, points, boundary, padded in [
        (1000, 256, None, None, "zeros", True),
        (1000, 100, 75, None, "zeros", True),
        (1001, 101, 30, 128, "zeros", False),
        (777, 64, 0, None, None, True),
    ]:
        x = rng.standard_normal(length)
        hop = n - (n // 2 if overlap is None else overlap)
        edge, w = n // 2 if boundary else 0, hann(n)
        rows = segments(x, n, hop, edge, padded) * w
        points = points or n
        f, t, z = nvm.signal.stft(x, 4.0, "hann", n, overlap, points, boundary=boundary, padded=padded)
        near(z, np.fft.rfft(rows / w.sum(), points).T)
        near(f, np.fft.rfftfreq(points, 1 / 4.0), 1e-6)
        near(t, (np.arange(len(rows)) * hop + (0 if boundary else n / 2)) / 4.0, 1e-6)
        z = nvm.signal.stft(x, 4.0, w, n, overlap, points, boundary=boundary, padded=padded, scaling="psd")[2]
        near(z, np.fft.rfft(rows / np.sqrt(4.0 * (w * w).sum()), points).T)
        z = nvm.signal.stft(x * 1j, 4.0, w, n, overlap, points, boundary=boundary, padded=padded)[2]
        near(z, np.fft.fft(rows * 1j / w.sum(), points).T)


def test_short_time_transforms_are_inverted():
    rng = np.random.default_rng(6)
    for n, overlap, scaling in [(256, None, "spectrum"), (64, 48, "psd"), (101, 60, "spectrum")]:
        x = rng.standard_normal((2, 3, 1500))
        for window in ("hann", "hamming", "blackman", np.linspace(1, 2, n)):
            z = nvm.signal.stft(x, window=window, nperseg=n, noverlap=overlap, scaling=scaling)[2]
            t, y = nvm.signal.istft(z, window=window, nperseg=n, noverlap=overlap, scaling=scaling)
            near(y[..., :1500], x)
            assert t.shape == y.shape[-1:]
    z = nvm.signal.stft(x, nperseg=32)[2]
    moved = nvm.moveaxis(z, (-2, -1), (0, 1))
    near(nvm.signal.istft(moved, nperseg=32, freq_axis=0, time_axis=1)[1][:1500], np.moveaxis(x, -1, 0))
    x = rng.standard_normal(300) + 1j * rng.standard_normal(300)
    z = nvm.signal.stft(x, nperseg=50)[2]
    near(nvm.signal.istft(z, nperseg=50, input_onesided=False)[1][:300], x)


def test_short_time_transforms_are_traced():
    x = np.random.default_rng(7).standard_normal(1000).astype(np.float32)
    f = nvm.jit(lambda x: nvm.signal.istft(nvm.signal.stft(x, nperseg=64)[2], nperseg=64)[1])
    near(f(x)[:1000], x, 1e-5)
    power = nvm.jit(lambda x: abs(nvm.signal.stft(x, nperseg=64, noverlap=48)[2]) ** 2)
    near(power(x), np.abs(np.asarray(nvm.signal.stft(x, nperseg=64, noverlap=48)[2])) ** 2, 1e-6)


def test_errors_of_short_time_transforms():
    x = nvm.ones(100)
    for call in [
        lambda: nvm.signal.stft(x, window="kaiser", nperseg=10),
        lambda: nvm.signal.stft(x, window=nvm.ones(9), nperseg=10),
        lambda: nvm.signal.stft(x, nperseg=10, noverlap=10),
        lambda: nvm.signal.stft(x, nperseg=10, nfft=8),
        lambda: nvm.signal.stft(x, nperseg=10, boundary="even"),
        lambda: nvm.signal.stft(x, nperseg=10, scaling="power"),
        lambda: nvm.signal.istft(nvm.ones((6, 4)), nperseg=10, time_axis=0, freq_axis=-2),
    ]:
        with pytest.raises(ValueError, match=r"^\[i?stft\]"):
            call()


# ---- the analytic signal
def test_hilbert():
    rng = np.random.default_rng(8)
    for n in (1, 2, 5, 8, 9, 100):
        x = rng.standard_normal((3, n))
        z = np.asarray(nvm.signal.hilbert(x))
        near(z.real, x)
        spectrum = np.fft.fft(z)
        near(spectrum[:, n // 2 + 1 :], np.zeros((3, n - n // 2 - 1)), 1e-10)
        near(nvm.signal.hilbert(x.T, axis=0), z.T)
        assert nvm.signal.hilbert(x, N=7).shape == (3, 7)
    t = np.arange(64) * 2 * np.pi / 64
    near(nvm.signal.hilbert(np.cos(5 * t)), np.exp(5j * t))
    with pytest.raises(ValueError, match="real"):
        nvm.signal.hilbert(z)


# ---- the example
def test_an_audio_file_is_denoised(tmp_path):
    def run(*arguments):
        command = [sys.executable, str(ROOT / "examples/denoise.py"), *map(str, arguments)]
        path = {"PYTHONPATH": str(pathlib.Path(nvm.__file__).parents[1])}
        return subprocess.run(command, env=os.environ | path, capture_output=True, text=True, check=True).stdout

    told = run("-o", tmp_path)
    before = float(told.split("noise: ")[1].split(" dB")[0])
    after = float(told.split("before, ")[1].split(" dB")[0])
    assert before < 15 and after > before + 10
    png = (tmp_path / "spectrogram.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[-8:-4] == b"IEND"
    again = run(tmp_path / "noisy.wav", "-o", tmp_path / "again")
    assert "signal to noise" not in again
    assert (tmp_path / "again/clean.wav").read_bytes() == (tmp_path / "clean.wav").read_bytes()
