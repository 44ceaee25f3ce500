"""Transforms whose lengths no kernel has: by cuFFT, and without it in four steps or as convolutions."""

import json
import os
import subprocess
import sys

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
def test_real_numbers_alone(device):
    """Of many points the library takes half the operations of a kernel; with a window a kernel reads them once."""
    for n, by in ((1024, "transform"), (2048, "routine")):
        x = nvm.asarray(draw((2, n), "float32"), device=device)
        assert f"1. {by}:" in nvm.jit(nvm.fft.rfft).explain(x)
        assert "1. transform:" in nvm.jit(lambda v: nvm.fft.rfft(v * 2)).explain(x)
    check("rfft", draw((2, 2048), "float32"), device)


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


def in_another_process(code, **env):
    lines = "import numpy as np, nvm\nx = np.ones((2, 17), 'c8')\nthere = nvm.asarray(x, device='cuda:0')\n" + code
    p = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, env={**os.environ, **env})
    assert p.returncode == 0, p.stderr
    return p.stdout


@pytest.mark.emulated
def test_library_that_makes_no_plan(emulated):
    """Kernels compute the transform, and explain says why."""
    if not emulated:
        pytest.skip("only the emulator's cuFFT fails when it is asked to")
    code = "f = nvm.jit(nvm.fft.fft)\nprint(np.abs(np.asarray(f(there).to_device('cpu')) - np.fft.fft(x)).max() < 1e-5)"
    assert in_another_process(code, NVM_EMU_FAIL="cufftMakePlanMany64:0:5") == "True\n"
    said = in_another_process(code + "\nprint(f.explain(there))", NVM_EMU_FAIL="cufftMakePlanMany64:0:5")
    assert "kernels of shorter transforms" in said and "cuFFT makes no plan of 17 points of complex64" in said


@pytest.mark.emulated
@pytest.mark.parametrize("call", ["cufftExecC2C:0:6", "cufftSetStream:0:1", "cufftSetWorkArea:0:11"])
def test_library_that_fails_to_run(call, emulated):
    if not emulated:
        pytest.skip("only the emulator's cuFFT fails when it is asked to")
    code = "try: nvm.fft.fft(there).eval()\nexcept Exception as e: print(e)"
    said = in_another_process(code, NVM_EMU_FAIL=call)
    assert "[fft.fft] cuFFT fails to transform 17 points of complex64: CUFFT_" in said


@pytest.mark.emulated
def test_no_memory_for_the_workspace(device, emulated):
    """A status, after which the same program runs again."""
    n = 65536
    x = draw((1, n), "complex64")
    there = nvm.asarray(x, device=device)
    (there + 1).eval()  # its value is on the device
    nvm.set_memory_limit(nvm.memory_info(device)["used"] + x.nbytes + x.nbytes // 4, device)
    try:
        if emulated:  # NVIDIA's wants less workspace than the result has bytes
            with pytest.raises(MemoryError, match=r"\[fft.fft\] cuFFT needs \d+ bytes of workspace for 65536 points"):
                nvm.fft.fft(there).eval()
    finally:
        nvm.set_memory_limit(0, device)
    close(nvm.fft.fft(there), np.fft.fft(x.astype("complex128")), n)


@pytest.mark.emulated
def test_captured_by_the_caller(emulated):
    """A graph of the caller holds the library's work, and is launched when its function is gone."""
    if not emulated:
        pytest.skip("test_exchange.py captures by PyTorch")
    code = """
import ctypes, gc, os
cuda = ctypes.CDLL(os.environ["NVM_EMU_DIR"] + "/libcudart.so.13")
s, graph, ready = (ctypes.c_void_p() for _ in range(3))
f = nvm.jit(nvm.fft.fft)
nvm.synchronize()
codes = [cuda.cudaStreamCreateWithFlags(ctypes.byref(s), 1)]
with nvm.stream(s.value):
    f(there).eval()
nvm.synchronize()
codes += [cuda.cudaStreamBeginCapture(s, 2)]
with nvm.stream(s.value):
    y = f(there).eval()
codes += [cuda.cudaStreamEndCapture(s, ctypes.byref(graph))]
del f
gc.collect()
codes += [cuda.cudaGraphInstantiate(ctypes.byref(ready), graph, ctypes.c_ulonglong(0))]
codes += [cuda.cudaGraphLaunch(ready, s), cuda.cudaStreamSynchronize(s)]
print(codes, np.abs(np.asarray(y.to_device("cpu")) - np.fft.fft(x)).max() < 1e-5)
"""
    assert in_another_process(code) == "[0, 0, 0, 0, 0, 0] True\n"


@pytest.mark.emulated
def test_explain(device):
    """Who computes each transform, and why."""
    alone = nvm.jit(nvm.fft.fft)
    fused = nvm.jit(lambda v: nvm.fft.fft(v) * 2)
    back = nvm.jit(lambda v: nvm.fft.irfft(v, n=64))
    x = [nvm.asarray(draw((4, n), "complex64"), device=device) for n in (17, 1000, 33)]
    assert "fft.fft of 17 points, 4 rows: cuFFT, no kernel has its length" in alone.explain(x[0])
    assert "fft.fft of 1000 points, 4 rows: cuFFT, which is faster" in alone.explain(x[1])
    assert "fft.fft of 1000 points, 4 rows: a kernel\n" in fused.explain(x[1])
    assert "a kernel, as a transform of complex numbers" in back.explain(x[2])
    nvm.set("SOLVERS", "kernel")
    try:
        assert "fft.fft of 17 points, 4 rows: kernels of shorter transforms" in alone.explain(x[0])
    finally:
        nvm.set("SOLVERS", "all")


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


@pytest.mark.emulated
@pytest.mark.parametrize("n, rival", [(64, "library"), (17, "kernels")])
def test_tuned(n, rival, device, tmp_path):
    """The tuner measures kernels against cuFFT; explain and the results follow the record."""
    before = nvm.settings()["NVM_CACHE_DIR"]
    nvm.set("cache_dir", str(tmp_path))
    nvm._nvm.tune_clear()
    x = draw((1024 if n == 64 else 32, n), "complex64")
    there, want = nvm.asarray(x, device=device), np.fft.fft(x.astype("complex128"))
    f = nvm.jit(nvm.fft.fft)
    try:
        with nvm.auto_tune():
            close(f(there), want, n)
        plans = [r for r in json.loads(nvm._nvm.tune_export()) if "transforms by" in r["what"]]
        assert len(plans) == 1 and plans[0]["tried"] == 1 and f"by {'the ' * (n == 64)}{rival}" in plans[0]["what"]
        for choice in f"transforms={rival}", "":
            nvm._nvm.tune_import(json.dumps([{**plans[0], "config": choice}]))
            by_library = (rival == "library") == bool(choice)
            assert ("routine: fft.fft" in f.explain(there)) == by_library
            close(f(there), want, n)
    finally:
        nvm.set("cache_dir", before)
