"""Transforms whose lengths no kernel has: by cuFFT, and without it in four steps or as convolutions."""

import numpy as np
import pytest

import nvm
import test_fft_fusion

PRIMES = [17, 19, 23, 29, 31, 37, 61, 101, 251]
LONG = [32768, 65536, 3 * 2**15, 5**6, 7**5, 13**4]


def draw(shape, dtype):
    z = test_fft_fusion.draw(shape, "complex128")
    return (z if np.dtype(dtype).kind == "c" else z.real).astype(dtype)


def close(got, want, n):
    got = np.asarray(got.to_device("cpu"))
    assert got.shape == want.shape
    bound = 5e-8 if got.dtype in ("complex64", "float32") else 2e-16
    error = np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-300)
    assert error < bound * max(np.log2(n), 3), (n, got.dtype, error)


def check(name, x, device, **how):
    """One function of both libraries, eager and traced."""
    f, g = getattr(nvm.fft, name), getattr(np.fft, name)
    want = g(x.astype("complex128" if x.dtype.kind == "c" else "float64"), **how)
    there = nvm.asarray(x, device=device)
    n = max(max(x.shape), max(want.shape))
    got = f(there, **how)
    assert got.device == device
    close(got, want, n)
    close(nvm.jit(lambda v: f(v, **how))(there), want, n)
    assert np.asarray(there.to_device("cpu")).tobytes() == x.tobytes(), "the operand was written"


def check_all(n, device, dtypes=("complex64", "float64")):
    for dtype in dtypes:
        if np.dtype(dtype).kind == "c":
            check("fft", draw((3, n), dtype), device)
            check("ifft", draw((2, n), dtype), device, norm="ortho")
            check("irfft", draw((2, n // 2 + 1), dtype), device, n=n)
        else:
            check("rfft", draw((3, n), dtype), device)


@pytest.mark.emulated
@pytest.mark.parametrize("n", PRIMES[:3] + LONG[:1] + LONG[3:4])
def test_by_the_library(n, device):
    check_all(n, device)
    x = nvm.asarray(draw((3, n), "complex64"), device=device)
    assert "routine: fft.fft" in nvm.jit(nvm.fft.fft).explain(x)


@pytest.mark.emulated
@pytest.mark.parametrize("n", [19, 32768])
def test_by_kernels(n, device):
    nvm.set("SOLVERS", "kernel")
    try:
        check_all(n, device, ["complex64"] if n > 100 else ["complex128", "float32"])
        x = nvm.asarray(draw((3, n), "complex64"), device=device)
        assert "routine" not in nvm.jit(nvm.fft.fft).explain(x)
    finally:
        nvm.set("SOLVERS", "all")


@pytest.mark.parametrize("n", [*range(1, 65), *PRIMES, *LONG, 65537, 10007])
def test_lengths(n, device, solvers):
    check_all(n, device, ["complex64", "complex128", "float32", "float64"])


@pytest.mark.emulated
def test_layouts(device):
    """Rows at any distance, columns, broadcast and reversed rows, elements that are not contiguous."""
    n = 17
    x = draw((6, 2 * n), "complex64")
    views = [lambda v: v[:, :n], lambda v: v[:, ::2], lambda v: v[::-1, 1 : n + 1], lambda v: v[1::2, :n]]
    for view in views:
        want = np.fft.fft(view(x).astype("complex128"))
        close(nvm.fft.fft(view(nvm.asarray(x, device=device))), want, n)
        close(nvm.jit(lambda v: nvm.fft.fft(view(v)))(nvm.asarray(x, device=device)), want, n)
    check("fft", draw((n, 4), "complex64"), device, axis=0)
    check("fft", draw((2, n, 3), "complex64"), device, axis=1)
    check("fft2", draw((2, n, 19), "complex64"), device)
    check("irfft", draw((9, 4), "complex64"), device, n=n, axis=0)
    assert nvm.fft.fft(nvm.zeros((0, n), dtype=nvm.complex64, device=device)).shape == (0, n)


@pytest.mark.emulated
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms(norm, device):
    for name, x in ("fft", draw((2, 17), "complex64")), ("ifft", draw((2, 17), "complex64")):
        check(name, x, device, norm=norm)


@pytest.mark.emulated
def test_what_is_around_it_fuses(device):
    x, h = draw((4, 32768), "complex64"), draw(32768, "complex64")
    f = nvm.jit(lambda x, h: nvm.abs(nvm.fft.ifft(nvm.fft.fft(x * 2 + 1) * h)) ** 2)
    there = nvm.asarray(x, device=device), nvm.asarray(h, device=device)
    want = np.abs(np.fft.ifft(np.fft.fft(x.astype("complex128") * 2 + 1) * h)) ** 2
    close(f(*there), want, 32768)
    assert f.explain(*there).startswith("5 kernels")


@pytest.mark.emulated
def test_operand_that_is_read_again(device):
    """cuFFT overwrites the operand of a transform to real numbers."""
    x = draw((2, 9), "complex64")
    f = nvm.jit(lambda v: (lambda w: (nvm.fft.irfft(w, n=17), w + 1, nvm.fft.irfft(w * 1, n=17)))(v * 2))
    real, more, again = f(nvm.asarray(x, device=device))
    want = np.fft.irfft(x.astype("complex128") * 2, n=17)
    close(real, want, 17)
    close(again, want, 17)
    np.testing.assert_array_equal(np.asarray(more.to_device("cpu")), x * 2 + 1)


@pytest.mark.emulated
def test_many_plans(device):
    """More than the cache keeps, twice, and the same plan from several programs."""
    for _ in range(2):
        for rows in range(1, 24):
            x = draw((rows, 17), "complex64")
            close(nvm.fft.fft(nvm.asarray(x, device=device)), np.fft.fft(x.astype("complex128")), 17)


@pytest.mark.emulated
def test_two_devices():
    try:
        nvm.zeros(1, device="cuda:1").eval()
    except Exception as e:
        pytest.skip(str(e).splitlines()[0])
    x = draw((3, 17), "complex64")
    want = np.fft.fft(x.astype("complex128"))
    for d in "cuda:0", "cuda:1", "cuda:0":
        got = nvm.fft.fft(nvm.asarray(x, device=d))
        assert got.device == d
        close(got, want, 17)
