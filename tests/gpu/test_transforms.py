"""Transforms that kernels of a GPU compute, with what shares a kernel with them."""

import re

import numpy as np
import pytest

import nvm
import test_fft_fusion


def filtered(x, h):
    return nvm.fft.ifft(nvm.fft.fft(x) * h)


@pytest.mark.emulated
@pytest.mark.parametrize("n", [2, 7, 16, 60, 77, 96, 210, 256, 360, 1024, 4096])
def test_lengths(n, device):
    """Radices of every kind: one pass and three, lanes that are no power of two, several transforms in a block."""
    for dtype, bound in (("complex64", 5e-8), ("complex128", 1e-16)):
        x, h = test_fft_fusion.draw((5, n), dtype), test_fft_fusion.draw(n, dtype)
        want = np.fft.ifft(np.fft.fft(x.astype("complex128")) * h)
        there, f = (nvm.asarray(x, device=device), nvm.asarray(h, device=device)), nvm.jit(filtered)
        got = f(*there).to_device("cpu")
        assert f.explain(*there).startswith("1 kernel"), "its code was not accepted"
        error = np.linalg.norm(np.asarray(got) - want) / np.linalg.norm(want)
        assert error < bound * max(np.log2(n), 2), (n, dtype, error)


@pytest.mark.emulated
@pytest.mark.parametrize("n", [105, 128])
def test_opposite_orders(n, device):
    """An inverse transform begins with the pass at which a forward one ends, fused or not."""
    x, h = (nvm.asarray(test_fft_fusion.draw(s, "complex64"), device=device) for s in ((5, n), n))
    product = nvm.jit(lambda x, h: nvm.fft.fft(x) * h)
    assert nvm.jit(filtered).explain(x, h).startswith("1 kernel")
    want = nvm.jit(nvm.fft.ifft)(product(x, h))
    assert np.asarray(nvm.jit(filtered)(x, h).to_device("cpu")).tobytes() == np.asarray(want.to_device("cpu")).tobytes()
    twice = nvm.jit(lambda x, h: nvm.fft.fft(nvm.fft.fft(x) * h))
    text = twice.explain(x, h)
    assert text.startswith("2 kernels") and "the passes of two transforms do not meet" in text
    want = np.fft.fft(np.fft.fft(np.asarray(x.to_device("cpu"))) * np.asarray(h.to_device("cpu")))
    error = np.linalg.norm(np.asarray(twice(x, h).to_device("cpu")) - want) / np.linalg.norm(want)
    assert error < 1e-6, error


@pytest.mark.emulated
@pytest.mark.parametrize(
    "name",
    ["spectrum", "residual", "three in a row", "shifted", "columns", "rows and columns"] + ["filter of an image"],
)
def test_programs(name, device):
    """Where the passes are those of the CPU, so are the bits."""
    f, kernels = test_fft_fusion.PROGRAMS[name]
    x, h = test_fft_fusion.draw((32, 64), "complex64"), test_fft_fusion.draw(64, "complex64")
    there = [nvm.asarray(v, device=device) for v in (x, h)]
    assert nvm.jit(f).explain(*there).startswith(f"{kernels} kernel")
    want = nvm.jit(f)(nvm.asarray(x), nvm.asarray(h))
    assert np.asarray(nvm.jit(f)(*there).to_device("cpu")).tobytes() == np.asarray(want).tobytes()


@pytest.mark.emulated
@pytest.mark.parametrize("columns", [1, 5, 16, 67, 128])
def test_columns(columns, device):
    """Columns side by side in a block, which they fill or not, have the bits of rows; so do views of every second."""
    for n, dtype in ((64, "complex64"), (210, "complex64"), (128, "complex128")):
        x, h = test_fft_fusion.draw((n, 2 * columns), dtype), test_fft_fusion.draw((n, columns), dtype)
        f = nvm.jit(lambda x, h: nvm.fft.ifft(nvm.fft.fft(x, axis=0) * h, axis=0))
        for some in (slice(columns, None), slice(None, None, 2)):
            got = f(nvm.asarray(x, device=device)[:, some], nvm.asarray(h, device=device)).to_device("cpu")
            there = (nvm.asarray(np.ascontiguousarray(v.T), device=device) for v in (x[:, some], h))
            want = nvm.jit(filtered)(*there).to_device("cpu")
            assert np.asarray(got).tobytes() == np.ascontiguousarray(np.asarray(want).T).tobytes(), (n, dtype)


@pytest.mark.emulated
@pytest.mark.parametrize("rows", [1, 12, 13, 512])
def test_numbers_of_rows(rows, device):
    """Blocks that are full have no masks; each number of rows has the bits of the others."""
    f = nvm.jit(filtered)
    x, h = (nvm.asarray(test_fft_fusion.draw(s, "complex64"), device=device) for s in ((rows, 128), 128))
    some = np.asarray(f(x[:1] + 0, h).to_device("cpu"))
    assert np.asarray(f(x, h).to_device("cpu"))[:1].tobytes() == some.tobytes()
    want = np.asarray(nvm.jit(filtered)(nvm.asarray(x, device="cpu"), nvm.asarray(h, device="cpu")))
    assert np.asarray(f(x, h).to_device("cpu")).tobytes() == want.tobytes()


@pytest.mark.emulated
@pytest.mark.parametrize("n", [2, 7, 64, 210, 1024])
def test_real_numbers(n, device):
    """A power spectrum reads its rows once; the half that is not needed is not stored."""
    for dtype, bound in (("float32", 1e-7), ("float64", 2e-16)):
        x, w = (test_fft_fusion.draw(s, "complex128").real.astype(dtype) for s in ((5, n), n))
        want = np.abs(np.fft.rfft(x.astype("float64") * w)) ** 2
        power = nvm.jit(lambda x, w: nvm.abs(nvm.fft.rfft(x * w)) ** 2)
        there = nvm.asarray(x, device=device), nvm.asarray(w, device=device)
        got = np.asarray(power(*there).to_device("cpu"))
        assert got.shape == want.shape and power.explain(*there).startswith("1 kernel")
        assert np.linalg.norm(got - want) < bound * max(np.log2(n), 3) * np.linalg.norm(want), (n, dtype)


@pytest.mark.emulated
def test_mean_of_spectra(device):
    """The kernel of the transforms stores their magnitudes, half the bytes, for the reduction over the rows."""
    for real in (1, 0):
        transform = nvm.fft.rfft if real else nvm.fft.fft
        x = test_fft_fusion.draw((2048, 64), "complex64")
        x = x.real.copy() if real else x
        means = nvm.jit(lambda x, f=transform: nvm.mean(nvm.abs(f(x)) ** 2, axis=0))
        there = nvm.asarray(x, device=device)
        first, second = [line for line in means.explain(there).split("\n") if line.lstrip()[:2] in ("1.", "2.")]
        assert "transform" in first and "abs" in first and "abs" not in second and "sum" in second
        want = np.mean(np.abs((np.fft.rfft if real else np.fft.fft)(x)) ** 2, axis=0)
        got = np.asarray(means(there).to_device("cpu"))
        assert np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)
        alone = nvm.jit(transform)(there)
        nvm.eval(alone)  # stored, as the reduction reads it
        again = np.asarray(nvm.mean(nvm.abs(alone) ** 2, axis=0).to_device("cpu"))
        assert got.tobytes() == again.tobytes()


@pytest.mark.emulated
@pytest.mark.parametrize("shape", [(6, 8, 20), (2, 8, 6, 16)])
def test_three_axes(shape, device):
    """What lies between transforms along two axes is stored in the operand's order; the filter in the middle shares a
    kernel with the transforms beside it."""
    x, h = test_fft_fusion.draw(shape, "complex64"), test_fft_fusion.draw(shape, "complex64")
    there = nvm.asarray(x, device=device), nvm.asarray(h, device=device)
    programs = [
        (lambda x, h: nvm.fft.fftn(x, axes=(-3, -2, -1)), np.fft.fftn(x, axes=(-3, -2, -1)), 3),
        (lambda x, h: nvm.fft.ifftn(x, axes=(-3, -2, -1)) + h, np.fft.ifftn(x, axes=(-3, -2, -1)) + h, 3),
        (
            lambda x, h: nvm.fft.ifftn(nvm.fft.fftn(x, axes=(-3, -2, -1)) * h, axes=(-3, -2, -1)),
            np.fft.ifftn(np.fft.fftn(x, axes=(-3, -2, -1)) * h, axes=(-3, -2, -1)),
            5,
        ),
    ]
    for f, want, kernels in programs:
        f = nvm.jit(f)
        assert f.explain(*there).startswith(f"{kernels} kernels")
        got = np.asarray(f(*there).to_device("cpu"))
        assert np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)


@pytest.mark.emulated
def test_two_axes_of_real_numbers(device):
    """Between the two real transforms of a filter, too, all is stored in the operand's order: each kernel reads and
    stores along one axis, of its points or of its columns."""
    x = test_fft_fusion.draw((64, 96), "complex64").real.copy()
    h = test_fft_fusion.draw((64, 49), "complex64")
    there = nvm.asarray(x, device=device), nvm.asarray(h, device=device)
    f = nvm.jit(lambda x, h: nvm.fft.irfft2(nvm.fft.rfft2(x) * h))
    for kernel in re.split("^kernel ", f.lower(*there).text("kernel"), flags=re.M)[1:]:
        accesses = re.findall(r"(?:load|store)\(x\d+, (.*?), (?:L|A|B|f)", kernel)
        along = {bool(re.search(r"(b\w\*T\w \+ \w)\)$", at)) for at in accesses}
        assert accesses and len(along) == 1, kernel
    got = np.asarray(f(*there).to_device("cpu"))
    want = np.fft.irfft2(np.fft.rfft2(x.astype("float64")) * h)
    assert f.explain(*there).startswith("3 kernels") and got.shape == want.shape
    assert np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)


def window(n):
    """Of three cosines in float64: more operations than the transform of a point."""
    t = nvm.arange(n, dtype="float64", device="cuda:0") * (2 * np.pi / n)
    return nvm.astype(0.36 - 0.49 * nvm.cos(t) + 0.14 * nvm.cos(2 * t) - 0.01 * nvm.cos(3 * t), "float32")


WINDOWED = {
    "rows": lambda x: nvm.abs(nvm.fft.rfft(x * window(64))) ** 2,
    "padded": lambda x: nvm.fft.rfft(x[:, :32] * window(32), n=64),
    "a filter": lambda x: nvm.real(nvm.fft.ifft(nvm.fft.fft(x) * window(64))),
}


@pytest.mark.emulated
@pytest.mark.parametrize("name", WINDOWED)
def test_windows(name, device):
    """What rows repeat is computed once and stored, if that takes less time than to compute it for each of them."""
    f, rows = WINDOWED[name], 1 << 14
    many = nvm.jit(f).lower(nvm.empty((rows << 4, 64), dtype="float32", device=device)).text("kernel")
    few = nvm.jit(f).lower(nvm.empty((3, 64), dtype="float32", device=device)).text("kernel")
    assert ["cos" in k for k in many.split("kernel ") if "dft(" in k] == [False]
    assert ["cos" in k for k in few.split("kernel ") if "dft(" in k] == [True]
    x = np.tile(test_fft_fusion.draw((16, 64), "complex64").real, (rows // 16, 1)).astype("float32")
    got = np.asarray(nvm.jit(f)(nvm.asarray(x, device=device)).to_device("cpu"))
    again = np.asarray(nvm.jit(f)(nvm.asarray(x[:16].copy(), device=device)).to_device("cpu"))
    assert got.tobytes() == np.tile(again, (rows // 16, 1)).tobytes()


@pytest.mark.emulated
def test_windows_of_stft(device):
    texts = nvm.jit(lambda x: nvm.abs(nvm.signal.stft(x, nperseg=256, noverlap=128)[2]) ** 2).lower(
        nvm.empty(1 << 22, dtype="float32", device=device)
    )
    assert ["cos" in k for k in texts.text("kernel").split("kernel ") if "dft(" in k] == [False]


@pytest.mark.emulated
@pytest.mark.parametrize("shape, points", [((3000,), 64), ((2, 3000), 128), ((300,), 256), ((9000,), 1024)])
def test_spectra_side_by_side(shape, points, device):
    """Where spectra are columns of the result, lanes of a warp store those of several frames, and read along one."""
    f = nvm.jit(lambda x: nvm.abs(nvm.signal.stft(x, nperseg=points, noverlap=points // 2)[2]) ** 2)
    x = test_fft_fusion.draw(shape, "complex64").real.copy()
    there = nvm.asarray(x, device=device)
    kernel = f.lower(there).text("kernel").split("kernel transform")[1]
    frame = re.search(r"store\(x\d+, .*\+ \(b(\w)\*T\1 \+ \1\), \w+, where", kernel).group(1)
    stored = re.search(rf'\n  A\w* = "{frame}: (\w)', kernel).group(1)
    read = re.search(rf'\n  L\w* = "{frame}: (\w)', kernel).group(1)
    assert stored == "l" and read == "w", kernel
    got = np.asarray(f(there).to_device("cpu"))
    want = np.asarray(f(nvm.asarray(x.astype("float64"))))
    assert got.shape == want.shape and np.linalg.norm(got - want) < 1e-6 * np.linalg.norm(want)
