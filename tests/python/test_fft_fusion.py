"""Transforms that kernels compute: what shares a kernel with them, and that this changes no bit."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import nvm

LENGTHS = [2, 5, 8, 12, 16, 32, 48, 64, 96, 128, 256, 512, 1024, 1536, 2048, 4096]


def draw(shape, dtype, seed=3):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def filtered(x, h):
    return nvm.fft.ifft(nvm.fft.fft(x) * h)


PROGRAMS = {  # and the number of kernels
    "convolution": (filtered, 1),
    "spectrum": (lambda x, h: nvm.abs(nvm.fft.fft(x * nvm.real(h))) ** 2, 1),
    "residual": (lambda x, h: x - filtered(x, h), 1),
    "two spectra": (lambda x, h: nvm.fft.ifft(nvm.fft.fft(x) * nvm.conj(nvm.fft.fft(x + h))), 1),
    "three in a row": (lambda x, h: nvm.fft.fft(filtered(x, h) * h), 1),
    "shifted": (lambda x, h: nvm.fft.fft(nvm.fft.fftshift(x, axes=-1), norm="ortho") + h, 1),
    "padded": (lambda x, h: nvm.fft.fft(x[:, : x.shape[1] - 1], n=x.shape[1]), 1),
    "of real numbers": (lambda x, h: nvm.fft.fft(nvm.real(x)), 1),
    "columns": (lambda x, h: nvm.fft.fft(x, axis=0), 1),
    "its spectrum too": (lambda x, h: (nvm.fft.fft(x), filtered(x, h)), 2),
    "rows and columns": (lambda x, h: nvm.fft.fft2(x), 2),
    "filter of an image": (lambda x, h: nvm.fft.ifft2(nvm.fft.fft2(x) * h), 3),
    "summed": (lambda x, h: nvm.sum(nvm.abs(nvm.fft.fft(x)), axis=0), 2),
    "every second": (lambda x, h: nvm.fft.fft(x)[:, ::2], 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name):
    f, kernels = PROGRAMS[name]
    text = nvm.jit(f).explain(nvm.asarray(draw((32, 64), "complex64")), nvm.asarray(draw(64, "complex64")))
    assert text.startswith(f"{kernels} kernel"), text
    assert "routine:" not in text and "transform:" in text, text


@pytest.mark.parametrize(
    "n, passes",
    [
        (8, "8"),
        (15, "15"),
        (16, "4 x 4"),
        (32, "4 x 8"),
        (48, "4 x 3 x 4"),
        (64, "8 x 8"),
        (96, "4 x 6 x 4"),
        (100, None),
        (128, "8 x 16"),
    ]
    + [(144, "4 x 9 x 4"), (192, "8 x 3 x 8"), (288, None), (360, None), (400, None), (480, None)]
    + [(576, None), (800, None), (1000, None), (1152, None), (1536, None), (4000, None), (4608, None)]
    + [(512, "8 x 8 x 8"), (1024, "8 x 16 x 8"), (2048, "16 x 8 x 16")],
)
def test_passes(n, passes):
    """Vectors run along two radices; where they cannot, or gain nothing, a routine is as fast or faster."""
    text = nvm.jit(filtered).explain(*(nvm.asarray(draw(s, "complex64")) for s in ((32, n), n)))
    assert (f"passes of {passes};" in text) if passes else ("routine:" in text and "passes of" not in text), text


def test_reasons():
    x, h = nvm.asarray(draw((32, 64), "complex64")), nvm.asarray(draw(64, "complex64"))
    for name, why in (
        ("its spectrum too", "between two transforms is stored"),
        ("rows and columns", "transforms along two axes"),
        ("summed", "a transform and a reduction"),
    ):
        text = nvm.jit(PROGRAMS[name][0]).explain(x, h)
        assert why in text, text


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_accuracy(dtype):
    for n in LENGTHS:
        x, h = draw((3, n), dtype), draw(n, dtype)
        wide, filter = x.astype("complex128"), h.astype("complex128")
        for f, want in (
            (nvm.fft.fft, np.fft.fft(wide)),
            (nvm.fft.ifft, np.fft.ifft(wide)),
            (lambda a: filtered(a, nvm.asarray(h)), np.fft.ifft(np.fft.fft(wide) * filter)),
        ):
            got = np.asarray(nvm.jit(f)(nvm.asarray(x)))
            error = np.linalg.norm(got - want) / np.linalg.norm(want)
            bound = (5e-8 if dtype == "complex64" else 1e-16) * max(np.log2(n), 2)
            assert got.dtype == dtype and error < bound, (n, error)


def test_rows_do_not_mix():
    """NaN and infinity stay in their transform, and each row has the bits that it has alone."""
    x = draw((37, 256), "complex64")
    x[5, 3], x[11, 0] = np.nan, np.inf
    got = np.asarray(nvm.fft.fft(nvm.asarray(x)))
    finite = np.isfinite(got).all(axis=1)
    assert not finite[5] and not finite[11] and finite.sum() == 35
    for row in (0, 6, 36):
        alone = np.asarray(nvm.fft.fft(nvm.asarray(x[row : row + 1])))
        assert alone.tobytes() == got[row : row + 1].tobytes()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_columns_have_the_bits_of_rows(dtype):
    """Lanes run along the columns, in vectors of which the last one may lack some, or there may be fewer than one."""
    h = draw(512, dtype)
    for n, columns in ((8, 300), (12, 8), (64, 1), (64, 3), (64, 17), (64, 256), (96, 33), (256, 70), (512, 16)):
        x = draw((n, 2 * columns, 3), dtype)
        for view in (x[:, :columns, 0], x[:, :columns, :2], x[:, ::2], np.asarray(x)[::-1, :columns]):
            a, k = nvm.asarray(view), nvm.asarray(h[:n].reshape((n,) + (1,) * (view.ndim - 1)))
            got = nvm.jit(lambda a, k: nvm.fft.ifft(nvm.fft.fft(a, axis=0) * k, axis=0))(a, k)
            rows = nvm.asarray(np.ascontiguousarray(np.moveaxis(view, 0, -1)))
            want = np.moveaxis(np.asarray(nvm.jit(filtered)(rows, nvm.asarray(h[:n]))), -1, 0)
            assert np.asarray(got).tobytes() == np.ascontiguousarray(want).tobytes(), (n, view.shape)


DIGEST = """
import hashlib, numpy as np, nvm, sys
sys.path.insert(0, {here!r})
import test_fft_fusion as t
d = hashlib.sha256()
for dtype in ("complex64", "complex128"):
    for n in (8, 48, 64, 256):
        for name, (f, _) in t.PROGRAMS.items():
            out = nvm.jit(f)(nvm.asarray(t.draw((16, n), dtype)), nvm.asarray(t.draw(n, dtype)))
            for y in out if isinstance(out, tuple) else (out,):
                d.update(np.asarray(y).tobytes())
print(d.hexdigest())
"""


def test_fusion_changes_no_bit():
    def digest(fuse):
        env = os.environ | {"NVM_FUSE": fuse}
        code = DIGEST.format(here=os.path.dirname(__file__))
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    on = digest("on")
    assert len(on) > hashlib.sha256().digest_size and on == digest("off")
