"""Arrays in and out: buffers, NumPy's protocols, DLPack."""

import array
import ctypes
import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nvm
import refs

numbers = st.sampled_from(refs.ANY).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


def views(x):
    yield x
    yield x.T
    if x.ndim:
        yield x[::-1]
        yield x[..., ::2]


@given(numbers)
def test_round_trips(x):
    for v in views(x):
        a = nvm.asarray(v)
        for back in (
            np.asarray(a),
            np.array(a),
            np.asarray(memoryview(a)),
            np.from_dlpack(a),
            np.asarray(nvm.from_dlpack(a)),
            np.asarray(nvm.asarray(v, copy=False)) if v.flags.aligned else v,
        ):
            assert back.dtype == v.dtype and back.shape == v.shape
            np.testing.assert_array_equal(back, v)


def test_exports_are_read_only():
    a = nvm.ones(3, device="cpu") + 1
    for n in (np.asarray(a), np.asarray(memoryview(a)), np.from_dlpack(a)):
        assert not n.flags.writeable
        with pytest.raises(ValueError):
            n[0] = 1
    with pytest.raises((BufferError, TypeError)):
        bytearray(4)[:] = 1
        memoryview(a)[0] = 1
    assert memoryview(a).readonly and memoryview(a).format == "d" and memoryview(a).tolist() == [2, 2, 2]


@pytest.mark.parametrize("export", [np.asarray, memoryview, np.from_dlpack], ids=["array", "buffer", "dlpack"])
def test_exports_keep_their_value(export):
    a = nvm.arange(4.0, device="cpu")  # NumPy takes no memory of a GPU
    n = export(a)
    a[0] = 9
    a += 1
    assert a.tolist() == [10, 2, 3, 4]
    gc.collect()
    junk = [nvm.full(4, float(i)).eval() for i in range(50)]
    assert n.tolist() == [0, 1, 2, 3] and junk


def test_array_protocol_arguments():
    a = nvm.arange(3.0)
    assert a.__array__().dtype == np.float64 and a.__array__(np.float32).dtype == np.float32
    here = nvm.asarray(a, device="cpu")
    assert a.__array__(copy=True).flags.writeable and not here.__array__(copy=False).flags.writeable
    with pytest.raises(ValueError):
        a.__array__(np.float32, copy=False)
    with pytest.raises(ValueError):
        np.array(a, dtype="int8", copy=False)
    c = np.array(a)
    c[0] = 5
    assert a.tolist() == [0, 1, 2]
    assert np.concatenate([a, a]).tolist() == [0, 1, 2, 0, 1, 2]


def test_asarray_copies_what_can_change():
    n = np.zeros(3)
    read_only = n[:]
    read_only.flags.writeable = False
    for x in (n, read_only, np.broadcast_to(n, (2, 3)), memoryview(n), array.array("d", [0, 0, 0]), bytearray(3)):
        a = nvm.asarray(x)
        if isinstance(x, (array.array, bytearray)):
            x[0] = 1
        n[:] = 1
        assert not a.tolist() or max(np.ravel(a.tolist())) == 0
        n[:] = 0


@pytest.mark.parametrize("change", ["view", "flag"])
def test_a_read_only_array_may_change(change):
    n = np.zeros(3)
    before = n[:]
    n.flags.writeable = False
    a = nvm.asarray(n)
    if change == "flag":
        n.flags.writeable = True
        before = n
    before[:] = 1
    assert a.tolist() == [0, 0, 0]


def test_asarray_borrows_what_cannot():
    data = bytes(range(200)) * 1000
    refs = sys.getrefcount(data)
    before = nvm.counters()["bytes_used"]
    a = nvm.asarray(np.frombuffer(data, np.uint8))
    assert sys.getrefcount(data) > refs and nvm.counters()["bytes_used"] - before < 1000
    assert a[5].item() == 5
    del a
    gc.collect()
    nvm.ones(1).eval()
    assert sys.getrefcount(data) == refs


def test_copy_false_borrows_under_contract():
    n = np.zeros(4)
    refs = sys.getrefcount(n)
    a = nvm.asarray(n, copy=False)
    n[0] = 7
    assert a.tolist() == [7, 0, 0, 0]
    del a
    gc.collect()
    assert sys.getrefcount(n) == refs
    for bad in ([1, 2], 3.0):
        with pytest.raises(ValueError):
            nvm.asarray(bad, copy=False)
    with pytest.raises(ValueError):
        nvm.asarray(n, dtype="float32", copy=False)
    with pytest.raises(ValueError):
        nvm.asarray(n.astype(">f8"), copy=False)
    with pytest.raises(ValueError):
        nvm.array([1.0], copy=False)


def test_copy_reaches_array_methods():
    class Method:
        def __array__(self, dtype=None, copy=None):
            if copy is False:
                raise ValueError("made anew")
            return np.arange(3.0)

    assert nvm.asarray(Method()).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="made anew"):
        nvm.asarray(Method(), copy=False)
    with pytest.raises(ValueError, match="bfloat16"):
        nvm.ones(2, dtype="bfloat16").__array__(copy=False)


class Owner:
    """Something with a DLPack capsule of NumPy's, that can be watched."""

    def __init__(self, n, device=(1, 0), new=True):
        self.n, self.device, self.new, self.asked = n, device, new, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kw):
        self.asked.append(kw)
        if not self.new and kw:
            raise TypeError("old")
        return self.n.__dlpack__(**{k: v for k, v in kw.items() if k != "dl_device"})


@pytest.mark.parametrize("new", [True, False])
def test_dlpack_in(new):
    n = np.arange(6.0).reshape(2, 3)
    o = Owner(n[:, ::-1], new=new)
    refs = sys.getrefcount(o.n)
    a = nvm.from_dlpack(o)
    assert a.tolist() == n[:, ::-1].tolist()
    n[0, 2] = 9
    assert a[0, 0].item() == 9
    b = nvm.from_dlpack(o, copy=True)
    n[0, 2] = 8
    assert b[0, 0].item() == 9
    del a, b
    gc.collect()
    nvm.ones(1).eval()
    left = sys.getrefcount(o.n)
    assert left == refs
    assert nvm.asarray(o).tolist() == n[:, ::-1].tolist()


def test_dlpack_errors():
    with pytest.raises((TypeError, AttributeError)):
        nvm.from_dlpack(3)
    c = np.ones(2).__dlpack__()
    nvm.from_dlpack(c)
    with pytest.raises(TypeError, match="used"):
        nvm.from_dlpack(c)
    with pytest.raises(RuntimeError):
        nvm.from_dlpack(Owner(np.ones(2), (2, 99)), copy=False)
    with pytest.raises(BufferError):
        nvm.from_dlpack(Owner(np.ones(2), (10, 0)))
    with pytest.raises(RuntimeError):
        nvm.from_dlpack(np.ones(2), device="cuda:99")
    a = nvm.ones(2, device="cpu")
    for kw in ({"stream": 1}, {"dl_device": (2, 99)}, {"dl_device": (10, 0)}):
        with pytest.raises(BufferError):
            a.__dlpack__(**kw)
    with pytest.raises(TypeError):
        a.__dlpack__(nothing=1)
    for kw in ({"max_version": 5}, {"max_version": (1,)}, {"dl_device": 1}):
        with pytest.raises(TypeError, match="a tuple of two integers"):
            a.__dlpack__(**kw)
    with pytest.raises(BufferError, match=r"does not know: \(2, 1099511627776\)"):
        nvm.from_dlpack(Owner(np.ones(2), (2, 2**40)))
    assert a.__dlpack_device__() == (1, 0)


def test_dlpack_versions():
    a = nvm.arange(3)
    assert "dltensor_versioned" in repr(a.__dlpack__(max_version=(1, 0))) and '"dltensor"' in repr(a.__dlpack__())
    for kw in (
        {},
        {"max_version": (1, 2)},
        {"max_version": (0, 8)},
        {"copy": True},
        {"copy": False},
        {"dl_device": (1, 0)},
    ):
        assert nvm.from_dlpack(a.__dlpack__(**kw)).tolist() == [0, 1, 2]
        a.__dlpack__(**kw)  # a capsule that nobody takes frees itself


class Tensor(ctypes.Structure):
    """A managed tensor of the legacy kind, flattened."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def test_a_tensor_of_no_dtype_of_nvm():  # what the error says of it is read before the tensor is given back
    @ctypes.PYFUNCTYPE(None, ctypes.POINTER(Tensor))
    def deleter(tensor):
        tensor[0].device = tensor[0].code = tensor[0].bits = 99

    tensor = Tensor(device=1, code=2, bits=128, lanes=1, deleter=ctypes.cast(deleter, ctypes.c_void_p))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(BufferError, match=r"no such dtype \(device 1, dtype code 2, 128 bits\)"):
        nvm.from_dlpack(new(ctypes.addressof(tensor), b"dltensor", None))
    assert tensor.bits == 99


def test_bfloat16_and_dlpack():
    a = nvm.asarray([1.5, -2.0]).astype(nvm.bfloat16)
    assert nvm.from_dlpack(a.__dlpack__()).dtype == nvm.bfloat16
    with pytest.raises(BufferError):
        memoryview(a)


def test_memory_dies_with_its_last_user():
    class Block(np.ndarray):
        pass

    block = np.zeros(1000).view(Block)
    alive = weakref.ref(block)
    a = nvm.asarray(block, copy=False)
    b = a[10:20] * 2
    del block, a
    gc.collect()
    assert alive() is not None
    assert b.sum().item() == 0
    del b
    gc.collect()
    nvm.ones(1).eval()
    assert alive() is None


def test_memory_that_dies_on_another_thread():
    held = [nvm.asarray(np.zeros(100), copy=False) for _ in range(100)]

    def drop():
        while held:
            held.pop()

    t = threading.Thread(target=drop)
    t.start()
    t.join()
    nvm.ones(1).eval()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ctypes.c_double(3),
        lambda: (ctypes.c_float * 3)(1, 2, 3),
        lambda: (ctypes.c_int16 * 3 * 2)((1, 2, 3), (4, 5, 6)),
        lambda: (ctypes.c_int * 0)(),
    ],
)
def test_ctypes_arrays(make):  # buffers without strides
    c = make()
    want = np.asarray(c)
    for a in (nvm.asarray(c), nvm.asarray(c, copy=False), nvm.asarray(True) * c, nvm.jit(lambda x: x)(c)):
        refs.same(a, want)


def test_array_interface_objects():
    class Thing:
        def __init__(self):
            self.n = np.arange(3.0)

        @property
        def __array_interface__(self):
            return self.n.__array_interface__

    class Other:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3)

    assert nvm.asarray(Thing()).tolist() == [0, 1, 2]
    assert (nvm.ones(3) + Other()).tolist() == [1, 2, 3]
    assert nvm.sum(array.array("i", [1, 2])).item() == 3
