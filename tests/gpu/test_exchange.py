"""Arrays of PyTorch, CuPy, JAX and Numba go in and out without a copy, ordered by streams; calls in a captured CUDA
graph."""

import ctypes

import numpy as np
import pytest

import families
import nvm


def pointer(x):
    return x.__cuda_array_interface__["data"][0]


def array(torch, *shape, dtype="float32"):
    x = torch.arange(int(np.prod(shape)), device="cuda", dtype=torch.float32)
    return x.reshape(shape).to(getattr(torch, dtype))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]
)
def test_torch_in_and_out(dtype, device, torch):
    x = array(torch, 6, 35, dtype=dtype)
    a = nvm.from_dlpack(x)
    assert a.device == device and a.shape == (6, 35) and a.dtype.name == dtype
    back = torch.from_dlpack(a)
    assert back.data_ptr() == x.data_ptr()
    y = torch.from_dlpack(nvm.where(a == a, a, a))
    assert y.dtype == x.dtype and torch.equal(y, x)


def test_torch_views(device, torch):
    x = array(torch, 40, 30)
    for view in (lambda v: v.T, lambda v: v[::2, 1:], lambda v: v[3], lambda v: v[:, :1], lambda v: v[0, 0]):
        got = torch.from_dlpack(nvm.from_dlpack(view(x)) * 2)
        assert torch.equal(got, view(x) * 2)
    assert torch.equal(torch.from_dlpack(nvm.from_dlpack(x.expand(3, 40, 30)) + 1), x.expand(3, 40, 30) + 1)


def test_torch_backwards_and_conjugated(device, torch):
    x = array(torch, 40, 30)
    for view in (nvm.flip, lambda v: v[::-1], lambda v: v[:, ::-2].T, nvm.jit(nvm.flip)):
        y = view(nvm.from_dlpack(x))
        want = torch.as_tensor(np.ascontiguousarray(np.asarray(y)))
        assert torch.equal(torch.from_dlpack(y).cpu(), want)
        assert torch.equal(torch.as_tensor(y, device="cuda").cpu(), want)
    z = torch.complex(x, x + 1)
    for lazy in (z.conj(), z.mH, z.conj().imag):
        for taken in (nvm.asarray(lazy), nvm.from_dlpack(lazy), nvm.jit(lambda v: v * 1)(lazy)):
            assert torch.equal(torch.from_dlpack(taken), lazy.resolve_conj().resolve_neg())


def test_cuda_array_interface(device, torch):
    x = array(torch, 50, 7)
    a = nvm.asarray(x, copy=False)
    assert pointer(a) == x.data_ptr()
    b = nvm.sin(a)
    i = b.__cuda_array_interface__
    assert i["version"] == 3 and i["shape"] == (50, 7) and i["typestr"] == "<f4" and i["stream"] != 0
    assert torch.allclose(torch.as_tensor(b, device="cuda"), torch.sin(x), atol=1e-6)
    with pytest.raises(AttributeError):
        nvm.asarray(np.ones(3), device="cpu").__cuda_array_interface__


def test_cupy(device):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    x = cupy.arange(3000, dtype=cupy.float32).reshape(30, 100)
    a = nvm.from_dlpack(x)
    assert pointer(a) == x.data.ptr
    for got in (nvm.asarray(x), a * 0 + x, x + a * 0, nvm.jit(lambda v: v * 1)(x)):
        cupy.testing.assert_array_equal(cupy.from_dlpack(got), x)
    cupy.testing.assert_array_equal(cupy.from_dlpack(a * 2 + 1), x * 2 + 1)
    cupy.testing.assert_array_equal(cupy.asarray(a.T * 2), x.T * 2)  # __cuda_array_interface__


@pytest.mark.emulated
def test_memory_of_a_gpu_with_a_buffer(device):
    """CuPy's arrays have a buffer, which raises TypeError when it is asked for; a buffer that does not raise shows that
    nobody asks."""

    class Elsewhere(ctypes.c_float * 6):
        pass

    a = nvm.asarray(np.arange(6, dtype=np.float32), device=device)
    Elsewhere.__cuda_array_interface__ = property(lambda self: a.__cuda_array_interface__)
    x = Elsewhere()
    for got in (nvm.asarray(x), nvm.asarray(x, copy=False), 0 * a + x, nvm.jit(lambda v: v * 1)(x), nvm.exp(x)):
        assert str(got.device) == device
    np.testing.assert_array_equal(np.asarray(nvm.asarray(x)), np.arange(6))
    np.testing.assert_array_equal(np.asarray(a + x), 2 * np.arange(6))


def test_jax(device):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX finds no GPU")
    x = jax.numpy.arange(3000, dtype=jax.numpy.float32).reshape(30, 100)
    got = jax.dlpack.from_dlpack(nvm.from_dlpack(x) * 2 + 1)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x) * 2 + 1)


def test_numba(device):
    cuda = pytest.importorskip("numba.cuda", reason="Numba is not installed")
    if not cuda.is_available():
        pytest.skip("Numba finds no GPU")
    x = cuda.to_device(np.arange(1000, dtype=np.float32))
    a = nvm.asarray(x)
    np.testing.assert_array_equal(np.asarray(a + 1), np.arange(1, 1001, dtype=np.float32))
    np.testing.assert_array_equal(cuda.as_cuda_array(a * 2).copy_to_host(), np.arange(0, 2000, 2, dtype=np.float32))


def test_numpy_and_host(device):
    x = np.random.default_rng(1).standard_normal((70, 90)).astype(np.float32)
    a = nvm.asarray(x, device=device)
    assert a.device == device
    np.testing.assert_array_equal(np.asarray(a), x)
    np.testing.assert_array_equal(np.asarray(a.to_device("cpu")), x)
    assert (a + 1).device == device and (nvm.asarray(x) + a).device == device
    np.testing.assert_array_equal(np.asarray(a.to_device("cpu") * 2), x * 2)
    with pytest.raises(ValueError, match="add"):
        nvm.asarray(x, device="cpu") + a


@pytest.mark.emulated
@pytest.mark.parametrize(
    "change,error,message",
    [
        (dict(typestr="Xf4"), TypeError, "Xf4"),
        (dict(strides=(1 << 62, 1 << 62)), ValueError, "strides"),
        (dict(strides=(-(1 << 62), 4)), ValueError, "strides"),
        (dict(stream=-1), ValueError, "no streams"),
        (dict(stream=0), ValueError, "no streams"),
    ],
)
def test_what_cannot_be_is_refused(device, change, error, message):
    x = (nvm.asarray(np.ones((2, 3), np.float32), device=device) + 1).eval()
    foreign = type("Foreign", (), {"__cuda_array_interface__": {**x.__cuda_array_interface__, **change}})()
    for copy in (False, None):
        with pytest.raises(error, match=message):
            nvm.asarray(foreign, copy=copy)


def test_streams_are_ordered(device, torch):
    """What PyTorch writes on a stream of its own is seen by nvm, and the other way round, with no wait of the host."""
    n = 1 << 24
    side = torch.cuda.Stream()
    for i in range(10):
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            x = torch.full((n,), float(i), device="cuda")
            a = nvm.from_dlpack(x)
        y = a * 2 + 1
        with torch.cuda.stream(side):
            z = torch.from_dlpack(y) + 1
            total = float(z.sum())  # waits for this stream alone
        assert total == n * (2 * i + 2), i


def test_the_callers_stream(device, torch):
    s = torch.cuda.Stream()
    x = array(torch, 1 << 20)
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s), nvm.stream(s.cuda_stream):
        torch.cuda._sleep(2_000_000)
        y = x + 1
        z = torch.from_dlpack(nvm.jit(lambda v: v * 2)(nvm.from_dlpack(y)))
        w = z + 1
    s.synchronize()
    assert torch.equal(w, (x + 1) * 2 + 1)


def test_memory_lives_as_long_as_it_is_used(device, torch):
    for i in range(30):
        x = torch.full((1 << 22,), float(i), device="cuda")
        y = nvm.from_dlpack(x) * 2
        del x
        torch.full((1 << 22,), -1.0, device="cuda")  # PyTorch may reuse the memory as soon as nvm has let go of it
        z = torch.from_dlpack(y)
        del y
        nvm.eval(nvm.full((1 << 22,), 9.0, dtype=nvm.float32, device=device))
        assert bool((z == 2.0 * i).all()), i


def test_capture(device, torch):
    """A jitted function in a CUDA graph that PyTorch captures: replayed with new contents."""
    x = array(torch, 1000, 64)
    f = nvm.jit(lambda v: nvm.softmax(v * 0.01, axis=1))
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s), nvm.stream(s.cuda_stream):
        f(nvm.from_dlpack(x))  # compiled before the capture
    torch.cuda.synchronize()
    graph, out = torch.cuda.CUDAGraph(), torch.empty_like(x)
    with torch.cuda.graph(graph, stream=s), nvm.stream(s.cuda_stream):
        out.copy_(torch.from_dlpack(f(nvm.from_dlpack(x))))
    for i in range(5):
        x.normal_()
        graph.replay()
        torch.cuda.synchronize()
        want = np.asarray(nvm.softmax(nvm.asarray(x.cpu().numpy(), device="cpu") * 0.01, axis=1))
        assert families.same(out.cpu().numpy(), want), i


def test_capsules_of_both_kinds(device, torch):
    x = nvm.asarray(np.arange(10, dtype=np.float32), device=device) + 1
    assert x.__dlpack_device__() == (2, 0)
    for kw in ({}, {"max_version": (1, 0)}, {"max_version": (1, 0), "stream": 1}, {"stream": 2}, {"stream": -1}):
        capsule = x.__dlpack__(**kw)
        assert ("dltensor_versioned" if "max_version" in kw else '"dltensor"') in repr(capsule)
        nvm.synchronize()
        assert (
            torch.from_dlpack(
                type(
                    "Capsule", (), {"__dlpack__": lambda self, **k: capsule, "__dlpack_device__": lambda self: (2, 0)}
                )()
            ).sum()
            == 55
        )
    host = np.from_dlpack(
        type(
            "Host",
            (),
            {
                "__dlpack__": lambda self, **k: x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)),
                "__dlpack_device__": lambda self: (1, 0),
            },
        )()
    )
    np.testing.assert_array_equal(host, np.arange(1, 11))
