"""What crosses the border in forms that one side lacks: lazily conjugated tensors, negative strides, NumPy's dtypes."""

import ctypes
import itertools

import numpy as np
import pytest

import nvm
import refs

Z = np.array([[1 + 1j, 2 + 0j], [3j, 4 - 2j]])


class Lazy:
    """A tensor as PyTorch has them: conjugation and negation are bits, which its protocols do not tell of."""

    def __init__(self, memory, conj=False, neg=False):
        self.memory, self.conj, self.neg = memory, conj, neg

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg

    def resolve_conj(self):
        return type(self)(self.memory.conj(), False, self.neg) if self.conj else self

    def resolve_neg(self):
        return type(self)(-self.memory, self.conj, False) if self.neg else self

    def value(self):
        return self.resolve_conj().resolve_neg().memory


class LazyDlpack(Lazy):
    def __dlpack__(self, **kw):
        return self.memory.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.memory.__dlpack_device__()


class LazyArray(Lazy):
    def __array__(self, dtype=None, copy=None):
        return self.memory


class LazyInterface(Lazy):
    @property
    def __array_interface__(self):
        return self.memory.__array_interface__


def stored(t):
    a = nvm.zeros(np.shape(t.memory if isinstance(t, Lazy) else t), dtype=complex)
    a[...] = t
    return a


WAYS = {
    "asarray": nvm.asarray,
    "array": nvm.array,
    "list": lambda t: nvm.asarray([t, t])[0],
    "stored": stored,
    "operand": lambda t: nvm.asarray(np.float32(0)) + t,
    "second operand": lambda t: nvm.add(0, t),
    "function": lambda t: nvm.real(t) + 1j * nvm.imag(t),
    "argument": lambda t: nvm.jit(lambda a: a + 0)(t),
    "nested argument": lambda t: nvm.jit(lambda d: d["t"][0] + 0)({"t": [t]}),
    "captured": lambda t: nvm.jit(lambda: nvm.zeros(()) + t)(),
}


@pytest.mark.parametrize("kind", [LazyDlpack, LazyArray, LazyInterface])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("conj", [False, True])
@pytest.mark.parametrize("neg", [False, True])
def test_bits_of_lazy_tensors_arrive(kind, way, conj, neg):
    for memory in (Z, Z.T, Z[::-1]):
        t = kind(memory, conj, neg)
        np.testing.assert_array_equal(np.asarray(WAYS[way](t)), t.value())


@pytest.mark.parametrize("conj, neg", [(True, False), (False, True), (True, True)])
def test_bits_of_lazy_tensors_from_dlpack(conj, neg):
    t = LazyDlpack(Z, conj, neg)
    for copy in (None, True):
        np.testing.assert_array_equal(np.asarray(nvm.from_dlpack(t, copy=copy)), t.value())
    for borrow in (nvm.from_dlpack, nvm.asarray):
        with pytest.raises(BufferError, match="conjugate" if conj else "negative"):
            borrow(t, copy=False)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    t = torch.tensor(Z)
    for u in (t, t.conj(), t.mH, t.conj().imag, t.imag, t.T.conj()[::2], torch.conj(t)[0, 1]):
        want = u.resolve_conj().resolve_neg().numpy()
        for way in WAYS:
            np.testing.assert_array_equal(np.asarray(WAYS[way](u)), want, err_msg=way)
        np.testing.assert_array_equal(np.asarray(nvm.from_dlpack(u)), want)
    for x in backwards():
        np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), np.asarray(x))


def backwards():
    """Arrays that lie backwards, or would."""
    x = nvm.asarray(refs.counted((3, 4, 2)), device="cpu")
    for key in itertools.product([slice(None), slice(None, None, -1), slice(2, None, -2)], repeat=3):
        y = x[key]
        yield y
        yield nvm.jit(lambda a, key=key: a[key])(x)
    yield from (
        x[::-1].copy(),
        nvm.flip(x) * 1,
        nvm.flip(x).T,
        nvm.asarray(np.arange(5)[::-1], device="cpu"),
        nvm.flip(nvm.arange(3, device="cpu")),
        nvm.broadcast_to(x[::-1, :1], (2, 3, 4, 2)),
        x[:0][::-1],
    )


class Legacy:
    """A consumer of before DLPack 1.0 sees this."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, stream=None, **kw):
        return self.x.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def by_exchange(x):
    """The strides that the C exchange API shows."""
    from test_device import exchange_table

    tensor = ctypes.c_void_p()
    assert exchange_table().from_object(x, ctypes.byref(tensor)) == 0
    at = ctypes.cast(tensor.value + 32, ctypes.POINTER(ctypes.c_void_p))  # dl_versioned.t; its words
    strides = ctypes.cast(at[4], ctypes.POINTER(ctypes.c_int64 * x.ndim)).contents if x.ndim else ()
    out = list(strides)
    back = ctypes.py_object()
    assert exchange_table().to_object(tensor, ctypes.byref(back)) == 0
    np.testing.assert_array_equal(np.asarray(back.value), np.asarray(x))
    return out


def test_what_leaves_lies_forwards():
    for x in backwards():
        want = np.asarray(x)
        for seen in (np.from_dlpack(x), np.from_dlpack(Legacy(x)), np.from_dlpack(x, copy=True)):
            np.testing.assert_array_equal(seen, want)
            assert all(s >= 0 or n < 2 for s, n in zip(seen.strides, seen.shape)), (seen.strides, seen.shape)
        assert all(s >= 0 or n < 2 for s, n in zip(by_exchange(x), x.shape))
        np.testing.assert_array_equal(np.from_dlpack(x, copy=False), want)  # as it lies: nothing is copied


def test_what_lies_forwards_is_shown_where_it_is():
    x = nvm.asarray(refs.counted((3, 4)), device="cpu")
    for y in (x, x.T, x[1:], nvm.broadcast_to(x[0], (5, 4))):
        assert np.shares_memory(np.from_dlpack(y), np.asarray(x)) and not np.from_dlpack(y).flags.writeable


@pytest.mark.parametrize("name", refs.ANY)
def test_dtypes_are_dtypes_of_numpy(name):
    x = nvm.ones((2, 3), dtype=name)
    assert np.dtype(x.dtype) == np.dtype(x) == np.dtype(name) == x.dtype and x.dtype == np.dtype(name)
    assert x.dtype == name and x.dtype == np.dtype(name).type and not x.dtype != np.dtype(name).str
    assert x.dtype.dtype == np.dtype(name)
    for other in refs.ANY:
        want = np.result_type(np.ones(1, name), np.dtype(other))
        assert np.result_type(x, np.dtype(other)) == np.result_type(x.dtype, np.dtype(other)) == want
        assert np.result_type(x, nvm.ones(2, dtype=other)) == want
        assert np.can_cast(x.dtype, other) == np.can_cast(name, other)
    assert np.zeros(2, x.dtype).dtype == name and np.ones(2).astype(x.dtype).dtype == name


def test_dtypes_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    # in host memory: of a GPU's arrays JAX looks at __cuda_array_interface__, and takes no other stream than its own
    x = nvm.asarray(refs.counted((3, 4), "float32"), device="cpu")
    for y in (x, x[::-1], x.astype("int32")):
        np.testing.assert_array_equal(np.asarray(jnp.asarray(y)), np.asarray(y))
        assert jnp.asarray(y).dtype == y.dtype


class CopiesNothing(Legacy):
    """As CuPy does within a device."""

    def __dlpack__(self, stream=None, max_version=None, copy=None, **kw):
        if copy:
            raise BufferError("copy=True only supported for copy to CPU.")
        return self.x.__dlpack__(stream=stream, max_version=max_version)


def test_a_producer_that_makes_no_copies():
    memory = np.arange(6.0)
    for take in (nvm.asarray, lambda x: nvm.asarray(x, copy=True), lambda x: nvm.from_dlpack(x, copy=True)):
        memory[0] = 0
        got = take(CopiesNothing(memory))
        memory[0] = 7
        np.testing.assert_array_equal(np.asarray(got), np.arange(6.0))
