"""Devices: what is where, what moves, what is shared with others. Without a GPU, or the emulator of tests/emu
(NVM_CUDA_DIR), what needs one is skipped with the reason."""

import ctypes
import json
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import nvm

GPU = nvm.devices()[1] if len(nvm.devices()) > 1 else None


def why_none():
    try:
        nvm.ones(1, device="cuda:0")
    except RuntimeError as e:
        return str(e)


gpu = pytest.mark.skipif(GPU is None, reason=f"no GPU: {why_none()}")


@pytest.fixture
def x():
    return nvm.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), device=GPU)


def alone(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, timeout=100
    )


# ---- without a GPU
def test_names():
    cpu = nvm.device("cpu")
    assert cpu == "cpu" and cpu is nvm.device(cpu) and hash(cpu) == hash("cpu") and {cpu: 1}["cpu"] == 1
    assert (cpu.type, cpu.index, repr(cpu)) == ("cpu", 0, "nvm.device('cpu')")
    assert pickle.loads(pickle.dumps(cpu)) is cpu
    c = nvm.device("cuda:3")
    assert (c, c.type, c.index) == ("cuda:3", "cuda", 3) and nvm.device("cuda") == "cuda:0"
    assert nvm.device() == nvm.device("auto") == nvm.get_default_device()
    for bad in ("gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:999", 3.5, "CPU"):
        with pytest.raises(ValueError, match="cuda:0"):
            nvm.device(bad)


def test_a_gpu_that_is_not_there():
    code = """
import nvm
assert nvm.devices() == ["cpu"] and nvm.get_default_device() == "cpu", nvm.devices()
assert (nvm.ones(3) + 1).tolist() == [2, 2, 2] and nvm.ones(3).device == "cpu"
calls = [lambda: nvm.ones(3, device="cuda"), lambda: nvm.ones(3).to_device("cuda:1"),
         lambda: nvm.set_default_device("cuda"), lambda: nvm.asarray([1], device="cuda"),
         lambda: nvm.device("cuda").__enter__(), lambda: nvm.stream(1, "cuda").__enter__(),
         lambda: nvm.memory_info("cuda")]
for call in calls:
    try:
        call()
    except RuntimeError as e:
        assert "NVM_CUDA_DIR" in str(e) or "cuda" in str(e).lower(), e
    else:
        raise SystemExit("no error")
assert [l for l in nvm.info().splitlines() if l.startswith("cuda")].__len__() == 1
assert not hasattr(nvm.ones(3), "__cuda_array_interface__")
class Foreign:
    __cuda_array_interface__ = dict(shape=(2,), typestr="<f4", data=(4096, False), version=3)
for call in (lambda: nvm.asarray(Foreign()), lambda: nvm.jit(lambda v: v)(Foreign()),
             lambda: nvm.stream(4096).__enter__()):
    try:
        call()
    except NotImplementedError as e:
        assert "NVM_CUDA_DIR is off" in str(e), e
    else:
        raise SystemExit("no error")
nvm.synchronize()
"""
    p = alone(code, NVM_CUDA_DIR="off")
    assert p.returncode == 0, p.stderr


def test_the_device_of_a_process():
    code = "import nvm; print(nvm.get_default_device(), (nvm.ones(3) + 1).device)"
    assert alone(code, NVM_DEVICE="cpu").stdout == "cpu cpu\n"
    p = alone(code, NVM_DEVICE="cuda:1", NVM_CUDA_DIR="off")
    assert p.returncode and "cuda" in p.stderr.lower()
    p = alone("import nvm; print(nvm.get_default_device(), nvm.info())", NVM_DEVICE="tpu", NVM_CUDA_DIR="off")
    line = "NVM_DEVICE=tpu in the environment is invalid and ignored; it must be auto, cpu, cuda or cuda:N"
    assert p.stdout.startswith("cpu ") and line in p.stdout, p.stderr
    with pytest.raises(ValueError, match="NVM_DEVICE takes auto, cpu, cuda or cuda:N"):
        nvm.set("device", "tpu")


def test_to_the_cpu():
    a = nvm.arange(5)
    b = a.to_device("cpu")
    assert b.device == "cpu" and b.tolist() == a.tolist()
    b[0] = 9
    assert a.tolist() == [0, 1, 2, 3, 4] and b[0] == 9
    with nvm.device("cpu"):
        assert nvm.get_default_device() == nvm.device() and (nvm.ones(2) * 2).device == "cpu"
    assert nvm.zeros_like(a, device="cpu").device == "cpu"
    info = nvm.memory_info("cpu")
    assert info["peak"] >= info["used"] >= 0


def test_default_dtype():
    f = nvm.jit(lambda: nvm.ones(3) * 1.5)
    assert f().dtype == nvm.default_dtype() == nvm.float64
    nvm.set_default_dtype("float32")
    try:
        assert nvm.asarray([1.5]).dtype == nvm.asarray(2.0).dtype == nvm.ones(2).dtype == f().dtype == nvm.float32
        assert nvm.asarray(2j).dtype == nvm.complex64 and nvm.asarray([1]).dtype == nvm.int64
        assert (nvm.asarray([1, 2]) / 2).dtype == nvm.float32 and nvm.asarray(np.ones(2)).dtype == nvm.float64
        assert nvm.__array_namespace_info__().default_dtypes()["real floating"] == nvm.float32
    finally:
        nvm.set_default_dtype(nvm.float64)
    assert f().dtype == nvm.float64
    for bad in ("int64", "float16"):
        with pytest.raises(TypeError):
            nvm.set_default_dtype(bad)


# ---- with one
@gpu
def test_results_stay_and_are_the_cpus(x):
    def chain(v):
        return nvm.sqrt(nvm.exp(-v * v) + nvm.sin(v) ** 2) / (v + 3)

    y = chain(x)
    assert y.device == GPU
    want = np.asarray(chain(x.to_device("cpu")))
    assert y.eval().device == GPU and np.asarray(y).tobytes() == want.tobytes()
    assert np.asarray(y.sum(axis=0)).tobytes() == np.asarray(chain(x.to_device("cpu")).sum(axis=0)).tobytes()


@gpu
def test_reading(x):
    y = (x + 1).eval()
    assert y.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(BufferError, match=r"on cuda:0.*to_device\('cpu'\)"):
        memoryview(y)
    with pytest.raises(ValueError, match="copy=False, but an array of float32 on cuda:0 has to be copied"):
        np.asarray(y, copy=False)
    assert np.asarray(y).tobytes() == np.asarray(y, copy=None).tobytes() == y.tobytes()
    assert y.tobytes() == np.arange(1, 7, dtype=np.float32).tobytes()
    assert repr(y) == repr(nvm.asarray(np.asarray(y), device="cpu")) and str(y[0, 0]) == "1.0"
    assert float(y[1, 2]) == 6 and int(y[0, 1]) == 2 and bool(y[0, 0]) and y.item(1, 1) == 5
    assert [0, 1, 2][nvm.asarray(2, device=GPU)] == 2
    assert pickle.loads(pickle.dumps(y)).tolist() == y.tolist()
    assert nvm.sort(y[0, ::-1]).tolist() == [1, 2, 3] and nvm.nonzero(y > 4)[1].tolist() == [1, 2]


@gpu
def test_views_run_nothing(x):
    y = (x * 2).eval()
    before = nvm.counters()["kernels_run"]
    for v, w in (
        (y.T, np.asarray(y).T),
        (y[1], np.asarray(y)[1]),
        (y[:, ::-1], np.asarray(y)[:, ::-1]),
        (y[:, 1:2], np.asarray(y)[:, 1:2]),
        (y.reshape(3, 2), np.asarray(y).reshape(3, 2)),
        (nvm.broadcast_to(y[0], (4, 3)), np.broadcast_to(np.asarray(y)[0], (4, 3))),
        (y[:0], np.asarray(y)[:0]),
    ):
        assert v.device == GPU and np.array_equal(np.asarray(v), w)
    assert nvm.counters()["kernels_run"] == before
    assert (y.T + 1)[2].tolist() == [5, 11] and nvm.broadcast_to(y[0], (2, 3)).T.sum().item() == 12


@gpu
def test_long_arrays_show_their_edges():
    n = np.arange(5000 * 9, dtype=np.float64).reshape(5000, 9)
    for v in (n, n.T, n[:, :3], n[::2]):
        assert repr(nvm.asarray(v, device=GPU)) == repr(nvm.asarray(v, device="cpu"))


@gpu
def test_what_nvm_owns_is_uploaded_once():
    a = nvm.asarray(np.ones(1 << 16), copy=True)
    with nvm.device(GPU):
        f = nvm.jit(lambda v: v * 2)
        f(a)
        used = nvm.memory_info(GPU)["used"]
        f(a)
        assert nvm.memory_info(GPU)["used"] == used
    n = np.ones(4)
    g = nvm.jit(lambda v: v + nvm.ones(4, device=GPU))
    assert g(n).tolist() == [2] * 4
    n[1] = 5
    assert g(n).tolist() == [2, 6, 2, 2] and g(n).device == GPU  # what is borrowed is read at each call


@gpu
def test_where_things_are_made(x):
    other = nvm.ones((2, 3), dtype="float32")
    assert (x + other).device == GPU and (other * 2.0 + x).device == GPU
    with nvm.device("cpu"):
        a = nvm.ones(3)
        with nvm.device(GPU):
            b, c, d = nvm.ones(3), nvm.asarray([1.0, 2, 3]), nvm.asarray(np.ones(3)) + 1
        e = nvm.asarray([1.0, 2, 3])
    assert [v.device for v in (a, b, c, d, e)] == ["cpu", GPU, GPU, GPU, "cpu"]
    assert (b + c + d).tolist() == [4, 5, 6]
    assert nvm.zeros_like(a, device=GPU).device == GPU and nvm.zeros_like(x, device="cpu").device == "cpu"
    assert nvm.full((2,), nvm.asarray(1.5), device=GPU).tolist() == [1.5, 1.5]
    seen = []
    with nvm.device(GPU):
        t = threading.Thread(target=lambda: seen.append(nvm._nvm.thread_device(0)))
        t.start()
        t.join()
    assert seen == [0]  # a choice of one thread's
    before = nvm.get_default_device()
    try:
        nvm.set_default_device("cpu")
        assert (nvm.ones(3) + 1).eval().device == "cpu" and (x + 1).device == GPU
        nvm.set_default_device(GPU)
        assert (nvm.ones(3) + 1).eval().device == GPU
    finally:
        nvm.set_default_device(before)


@gpu
def test_explain_on_several_devices(x):
    text = nvm.explain(x * 2 + 1, nvm.sin(nvm.asarray([1.0, 2.0], device="cpu")), nvm.exp(x))
    there, here = text.split("on cpu:\n")
    assert there.startswith(f"on {GPU}:\n") and "exp" in there and "sin" in here and "sin" not in there
    assert "on " not in nvm.explain(x * 2).splitlines()[0]


@gpu
def test_two_devices_do_not_meet(x):
    there = nvm.ones((2, 3), dtype="float32", device="cpu")
    for f in (lambda a, b: a + b, lambda a, b: nvm.where(a > 0, a, b), lambda a, b: nvm.concat([a, b])):
        with pytest.raises(ValueError, match=r"(?s)\[\w+\].*two devices.*\(2, 3\) on c.*to_device"):
            f(x, there)
    with pytest.raises(ValueError, match="put on"):
        nvm.jit(lambda a, b: a * b)(x, there)
    captured = nvm.jit(lambda a: a * x)
    with pytest.raises(ValueError, match="put on"):
        captured(there)
    assert (x + there.to_device(GPU)).tolist() == (x.to_device("cpu") + there).tolist()
    with pytest.raises(ValueError):
        x[0] = there[0]


@gpu
def test_moving(x):
    y = (x + 1).to_device("cpu")
    assert y.device == "cpu" and (y * 2).device == "cpu" and y.tolist() == [[1, 2, 3], [4, 5, 6]]
    back = y.T.to_device(GPU)
    assert back.device == GPU and back.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert nvm.ones(3).to_device(GPU).device == GPU  # pending: computed there
    s = nvm._nvm.stream_get(GPU)
    assert x.to_device("cpu", stream=s).tolist() == x.tolist()
    assert nvm.jit(lambda a: a.to_device(GPU) * 2)(np.ones(3)).device == GPU
    with pytest.raises(RuntimeError, match="traced"):
        nvm.jit(lambda a: (a + x[0]).to_device("cpu"))(np.ones(3, np.float32))


@gpu
def test_assignment(x):
    want = np.arange(6, dtype=np.float32).reshape(2, 3)
    row = x[1]
    x[1, 2] = 50
    x[:, 0] += 1
    want[1, 2], want[:, 0] = 50, want[:, 0] + 1
    assert x.device == GPU and row.tolist() == want[1].tolist() and np.array_equal(np.asarray(x), want)
    x[x > 10] = -1
    x[[0, 1], [1, 0]] = 7
    want[want > 10] = -1
    want[[0, 1], [1, 0]] = 7
    assert x.device == GPU and np.array_equal(np.asarray(x), want)


@gpu
def test_jit(x):
    f = nvm.jit(lambda a, k: (a * k + 1, a.T))
    y, t = f(x, 2.0)
    c = nvm.counters()
    for k in (3.0, 4.5):
        y, t = f(x, k)
        assert y.device == GPU and t.device == GPU and np.array_equal(np.asarray(y), np.asarray(x) * np.float32(k) + 1)
    assert nvm.counters()["programs_planned"] == c["programs_planned"]
    assert f(x.to_device("cpu"), 2.0)[0].device == "cpu"
    assert (
        f(nvm.ones((2, 3), dtype="float32", device=GPU).eval(), nvm.asarray(2.0, device=GPU))[0].tolist()
        == [[3] * 3] * 2
    )
    made = nvm.jit(lambda n: nvm.ones(3) + n)
    with nvm.device(GPU):
        a = made(1.0)
    with nvm.device("cpu"):
        b = made(1.0)
    assert (a.device, b.device) == (GPU, "cpu")
    assert "kernel" in f.explain(x, 1.0)


@gpu
def test_python_numbers_are_arguments_of_the_launch():
    """In a process of its own that compiles nothing in the background, which the counter counts as well."""
    code = """
import nvm, numpy as np
x = np.arange(6, dtype=np.float32).reshape(2, 3)
there = nvm.asarray(x, device="cuda:0").eval()
f = nvm.jit(lambda v, k: v * k + k)
for numbers in ((2, -3), (0.5, 4.0), (1j, 3 - 2j)):
    f(there, numbers[0]).eval()
    before = nvm.counters()["kernels_compiled"]
    for k in numbers:
        t = np.complex64 if isinstance(k, complex) else np.float32
        assert f(there, k).tolist() == (x * np.asarray(k, t) + k).tolist()
    assert nvm.counters()["kernels_compiled"] == before
"""
    p = alone(code, NVM_TIER="1")
    assert p.returncode == 0, p.stderr


@gpu
def test_failures_are_raised_by_what_depends_on_them(x):
    y = nvm.take(x.reshape(-1), nvm.asarray([1, 9]), axis=0) * 2
    z = x + 1
    nvm.eval(z)
    for _ in range(2):
        with pytest.raises(IndexError, match=r"^\[take\] an index is out of range for axis 0 of extent 6$"):
            (y + 1).tolist()
    assert z.tolist() == [[1, 2, 3], [4, 5, 6]] and (x * 2)[0].tolist() == [0, 2, 4]


@gpu
def test_a_failed_write_leaves_the_array(x):
    before, k = x.tolist(), nvm.asarray([0, 1]) * 3
    with pytest.raises(IndexError, match=r"^\[setitem\] index 3 is out of range for axis 1 of extent 3$"):
        x[:, k] = 7
    with pytest.raises(IndexError, match=r"^\[setitem\] index -5 is out of range for axis 0 of extent 2$"):
        x[k - 5, k - 3] = 7
    assert x.tolist() == before

    def write(x, i):
        x[i] = 0
        return x.sum()

    f = nvm.jit(write)
    with pytest.raises(IndexError, match=r"^\[setitem\] an index is out of range for axis 0 of extent 2$"):
        f(x, k)
    assert x.tolist() == before
    f(x, k // 3)
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


# ---- exchange
class Producer:
    """Another library's array, with what was asked of it."""

    def __init__(self, a, old=False):
        self.a, self.old, self.asked = a, old, []

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **kw):
        if self.old and kw:
            raise TypeError("unexpected keyword")
        self.asked.append(stream)
        return self.a.__dlpack__(stream=stream, **kw)


def pointer(a):
    return a.__cuda_array_interface__["data"][0]


@gpu
@pytest.mark.parametrize("old", [False, True])
def test_dlpack(x, old):
    p = Producer(x.T, old)
    a = nvm.from_dlpack(p)
    assert a.device == GPU and pointer(a) == pointer(x) and a.tolist() == x.T.tolist()
    assert p.asked == [nvm._nvm.stream_get(GPU)]  # nothing waits: the producer orders our stream behind its own
    assert pointer(nvm.asarray(p, copy=False)) == pointer(x)
    assert pointer(nvm.asarray(p)) != pointer(x) and nvm.asarray(p).tolist() == x.T.tolist()
    assert pointer(nvm.from_dlpack(p, copy=True)) != pointer(x)
    assert nvm.from_dlpack(p, device="cpu").device == "cpu" and (nvm.ones((3, 2)) + p).device == GPU
    with pytest.raises(ValueError, match="copy=False"):
        nvm.from_dlpack(p, device="cpu", copy=False)
    del x
    assert nvm.jit(lambda v: v * 2)(p)[2].tolist() == [4, 10]


@gpu
def test_dlpack_out(x):
    assert x.__dlpack_device__() == (2, GPU.index)
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 1))) and "versioned" not in repr(x.__dlpack__())
    for stream in (None, -1, 1, 2, nvm._nvm.stream_get(GPU)):
        assert nvm.from_dlpack(x.__dlpack__(stream=stream)).tolist() == x.tolist()
    for bad in (0, -2):
        with pytest.raises(ValueError, match="stream"):
            x.__dlpack__(stream=bad)
    host = nvm.from_dlpack((x + 1).__dlpack__(dl_device=(1, 0)))
    assert host.device == "cpu" and host.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(BufferError, match="copy=False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 99))
    assert np.array_equal(
        np.from_dlpack(x, device="cpu") if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else np.asarray(x),
        np.asarray(x),
    )


class Interface:
    def __init__(self, **d):
        self.d = d

    @property
    def __cuda_array_interface__(self):
        return self.d


@gpu
def test_memory_shown_by_address_is_left_alone(x):
    y = (x + 1).eval()
    shown = Interface(**y.__cuda_array_interface__)
    y[...] = 0.0
    y.eval()
    junk = [(x * k).eval() for k in range(20)]
    assert np.asarray(nvm.asarray(shown)).tolist() == [[1, 2, 3], [4, 5, 6]] and junk
    assert y.tolist() == [[0] * 3] * 2 and pointer(y) != shown.d["data"][0]


@gpu
@pytest.mark.parametrize(
    "flip",
    [
        nvm.flip,
        lambda v: v[::-1],
        lambda v: v[:, ::-2],
        lambda v: nvm.flip(v).T,
        lambda v: nvm.jit(nvm.flip)(v),
        lambda v: v[0, ::-1],
    ],
)
def test_what_leaves_lies_forwards(x, flip):
    y = flip(x)
    i = y.__cuda_array_interface__
    assert i["strides"] is None or min(i["strides"]) >= 0
    assert nvm.asarray(Interface(**i)).tolist() == y.tolist()
    back = nvm.from_dlpack(y.__dlpack__())
    strides = back.__cuda_array_interface__["strides"]
    assert back.device == GPU and back.tolist() == y.tolist() and (strides is None or min(strides) >= 0)


@gpu
def test_cuda_array_interface(x):
    i = x.__cuda_array_interface__
    assert i["version"] == 3 and i["shape"] == (2, 3) and i["typestr"] == "<f4" and i["strides"] is None
    assert i["data"][1] is False
    assert i["stream"] == nvm._nvm.stream_get(GPU) and (x.T.__cuda_array_interface__["strides"] == (4, 12))
    a = nvm.asarray(Interface(**i), copy=False)
    assert pointer(a) == pointer(x) and a.device == GPU and a.tolist() == x.tolist()
    flipped = dict(i, strides=(12, -4), data=(i["data"][0] + 8, True), stream=1)
    assert nvm.asarray(Interface(**flipped), copy=False).tolist() == x[:, ::-1].tolist()
    assert nvm.asarray(Interface(**flipped)).tolist() == x[:, ::-1].tolist()
    assert (nvm.ones(3) + Interface(**i)).tolist() == (x + 1).tolist()
    assert nvm.jit(lambda v: v + 1)(Interface(**i)).device == GPU
    assert nvm.asarray(Interface(**dict(i, shape=(0, 3), data=(0, True)))).shape == (0, 3)
    for change, error in (
        (dict(mask=object()), ValueError),
        (dict(data=(0, False)), ValueError),
        (dict(data=(i["data"][0] + 1, False)), ValueError),
        (dict(typestr="<f12"), TypeError),
        (dict(typestr=">f4"), TypeError),
        (dict(typestr="Xf4"), TypeError),
        (dict(strides=(2**62, 2**62)), ValueError),
        (dict(stream=0), ValueError),
        (dict(stream=-1), ValueError),
        (dict(strides=(3, 1)), ValueError),
        (dict(shape=(-1, 3)), ValueError),
        (dict(shape=3), ValueError),
    ):
        with pytest.raises(error):
            nvm.asarray(Interface(**dict(i, **change)), copy=False)
    if "NVM_EMU_DIR" in os.environ:  # a driver may look into what such a stream points to
        with pytest.raises(ValueError):
            nvm.asarray(Interface(**dict(i, stream=0x777)), copy=False)
    with pytest.raises(AttributeError, match="DLPack"):
        x.astype(nvm.bfloat16).__cuda_array_interface__


FROM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
TO = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.py_object))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", FROM),
        ("to_object", TO),
        ("look", ctypes.c_void_p),
        ("stream", STREAM),
    ]


def exchange_table():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(nvm.Array.__dlpack_c_exchange_api__, b"dlpack_exchange_api"), ctypes.POINTER(Table)).contents


@pytest.mark.parametrize("where", ["cpu", pytest.param(GPU, marks=gpu)])
def test_exchange_in_c(where):
    t = exchange_table()
    assert t.major == 1
    tensor, back = ctypes.c_void_p(), ctypes.py_object()
    a = nvm.asarray([[1.0, 2], [3, 4]], device=where) + 1
    assert t.from_object(a, ctypes.byref(tensor)) == 0 and t.to_object(tensor, ctypes.byref(back)) == 0
    assert back.value.tolist() == [[2, 3], [4, 5]] and back.value.device == where
    with pytest.raises(TypeError):
        t.from_object([1], ctypes.byref(tensor))


@gpu
def test_exchange_from_a_type_that_has_it(x):
    t, streams = exchange_table(), []

    class Fast:
        def __init__(self, a):
            self.a = a

    @FROM
    def from_object(o, out):
        return t.from_object(o.a, out)

    @STREAM
    def stream(kind, index, out):
        streams.append((kind, index))
        out[0] = None  # the legacy default stream
        return 0

    mine = Table(1, 3, None, None, from_object, t.to_object, None, stream)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    Fast.__dlpack_c_exchange_api__ = new(ctypes.addressof(mine), b"dlpack_exchange_api", None)
    Fast.__dlpack__ = Fast.__dlpack_device__ = lambda self, **kw: pytest.fail("the slow way was taken")
    a = nvm.from_dlpack(Fast(x))
    assert pointer(a) == pointer(x) and streams == [(2, GPU.index)] and (a + 1).tolist() == (x + 1).tolist()


# ---- streams and memory
@gpu
def test_streams(x):
    own = nvm._nvm.stream_get(GPU)
    with nvm.stream(1, GPU):
        assert nvm._nvm.stream_get(GPU) == 1
        y = (x + 1).eval()
        with nvm.stream(type("S", (), {"__cuda_stream__": lambda self: (0, 2)})(), GPU):
            assert nvm._nvm.stream_get(GPU) == 2 and (y + 1).tolist() == [[2, 3, 4], [5, 6, 7]]
        assert nvm._nvm.stream_get(GPU) == 1
    assert nvm._nvm.stream_get(GPU) == own and (y * 2)[0].tolist() == [2, 4, 6]


@gpu
def test_one_stream_object_in_two_threads():
    shared, inside, done = nvm.stream(1, GPU), threading.Event(), threading.Event()

    def other():
        with nvm.stream(2, GPU), shared:
            inside.set()
            done.wait(10)

    own, t = nvm._nvm.stream_get(GPU), threading.Thread(target=other)
    with shared:
        t.start()
        assert inside.wait(10)
    assert nvm._nvm.stream_get(GPU) == own  # not what the other thread had before
    done.set()
    t.join()
    nvm.synchronize()


@gpu
def test_memory():
    nvm.synchronize()
    before = nvm.memory_info(GPU)
    assert set(before) == {"used", "peak", "limit", "reserved", "total"} and before["total"] > 0
    a = nvm.ones(1 << 18, dtype="float32", device=GPU).eval()
    assert nvm.memory_info(GPU)["used"] >= before["used"] + (1 << 20)
    nvm.set_memory_limit(nvm.memory_info(GPU)["used"] + (1 << 20), GPU)
    try:
        with pytest.raises(MemoryError, match=r"\d"):
            (nvm.ones(1 << 20, dtype="float32", device=GPU) + a[0]).eval()
        assert (a[:5] + 1).tolist() == [2] * 5
    finally:
        nvm.set_memory_limit(0, GPU)
    del a
    nvm.synchronize()
    assert nvm.memory_info(GPU)["used"] <= before["used"]
    nvm.trim_memory(GPU)
    line = nvm.device_info(GPU)["line"]
    assert line and line in nvm.info()


@gpu
def test_threads(x):
    f = nvm.jit(lambda a, k: (a * k).sum(axis=0))
    f(x, 1.0)
    wrong = []

    def work(k):
        for _ in range(30):
            if not np.array_equal(np.asarray(f(x, float(k))), np.asarray(x).sum(axis=0) * k):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@gpu
def test_factors_of_transforms_are_those_of_the_device():
    x = np.arange(12.0)
    with nvm.device("cpu"):
        there = nvm.fft.dct(nvm.asarray(x)).eval()
    here = nvm.fft.dct(nvm.asarray(x, device=GPU)).eval()
    assert there.device == "cpu" and here.device == GPU
    np.testing.assert_allclose(np.asarray(here), np.asarray(there), rtol=1e-14, atol=1e-13)


@gpu
@pytest.mark.parametrize("cold", [False, True])
def test_tuned(cold, tmp_path):
    before = nvm.settings()["NVM_CACHE_DIR"]
    nvm.set("cache_dir", str(tmp_path))
    nvm._nvm.tune_clear()
    try:
        data = np.random.default_rng(3).standard_normal((300, 260)).astype(np.float32)
        y = nvm.asarray(data, device=GPU)
        f = nvm.jit(lambda y: ((nvm.exp(y) / 3).sum(axis=1), nvm.exp(y) * 2))
        want = [np.asarray(a).tobytes() for a in f(y)]
        counts = nvm._nvm.tune_counters()["measured"]
        for _ in range(3):  # a step has four seconds, in which a busy machine compiles; the next session finds its code
            with nvm.auto_tune(cold=cold):
                assert [np.asarray(a).tobytes() for a in f(y)] == want
            if nvm._nvm.tune_counters()["measured"] > counts:
                break
        assert nvm._nvm.tune_counters()["measured"] > counts
        assert [np.asarray(a).tobytes() for a in f(y)] == want and np.asarray(y).tobytes() == data.tobytes()
        assert "NVRTC" in nvm._nvm.tune_list() and "a record of" in nvm.explain(f, y)
    finally:
        nvm.set("cache_dir", before)


@gpu
@pytest.mark.parametrize("precision", ["bf16x3", "bf16x9"])
def test_products_that_may_be_of_pieces_are_measured_both_ways(precision, tmp_path):
    before = nvm.settings()["NVM_CACHE_DIR"]
    nvm.set("cache_dir", str(tmp_path))
    nvm._nvm.tune_clear()
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((256, 16), (16, 256)))
    args, exact = [nvm.asarray(a, device=GPU) for a in (x, w)], x.astype(np.float64) @ w + 1
    f = nvm.jit(lambda x, w: nvm.matmul(x, w, precision=precision) + 1)
    try:
        with nvm.auto_tune():
            f(*args)
        plans = [r for r in json.loads(nvm._nvm.tune_export()) if "split into bf16" in r["what"]]
        assert len(plans) == 1 and plans[0]["tried"] == 1
        for choice, taken in ("gemm=bf16_split", "1 of 1 are"), ("", "0 of 1 are"):
            nvm._nvm.tune_import(json.dumps([{**plans[0], "config": choice}]))
            assert taken in nvm.explain(f, *args)
            assert (np.abs(np.asarray(f(*args)) - exact) <= 2.0**-15 * (np.abs(x) @ np.abs(w)) + 1e-5).all()
        assert nvm.explain(f, *args).startswith("1 kernel")
    finally:
        nvm.set("cache_dir", before)


@pytest.mark.skipif("NVM_EMU_DIR" not in os.environ, reason="only the emulator spills when it is told to")
def test_explain_tells_what_was_refused():
    code = """
import nvm
x = nvm.ones((6, 30), device="cuda:0").eval()
f = nvm.jit(nvm.exp)
assert "refused" not in nvm.explain(f, x)
f(x)
assert "refused: step 1 of plan 1: [kernel] map needs more registers" in nvm.explain(f, x), nvm.explain(f, x)
share = lambda e: e / nvm.sum(e, axis=1, keepdims=True)
softmax = nvm.jit(lambda x: share(nvm.exp(x - nvm.max(x, axis=1, keepdims=True))))
assert abs(float(nvm.sum(softmax(x))) - 6) < 1e-4 # more refusals than a plan has
nvm.exp(x * 2).eval()
assert "refused: step 1 of plan 1" in nvm.explain(nvm.exp(x * 2)) and "refused" not in nvm.explain(nvm.exp(x * 3 + 1))
"""
    p = alone(code, NVM_EMU_SPILLS="64", NVM_CACHE_DIR="off", NVM_TIER="planned")
    assert p.returncode == 0, p.stderr
