"""Methods and attributes of NumPy's arrays with NumPy's own arguments: what each gives is what NumPy's gives, and what
an array writes to is what NumPy's writes to."""

import copy
import pickle
import re

import numpy as np
import pytest

import nvm

X = np.array([[3.0, 1, 2], [4, 6, 5]])
WHOLE = np.array([[3, 1, 2], [4, 6, 5]], np.int32)
C = X + 1j * X[::-1]
METHODS = """
x.all(0) x.all(keepdims=True,out=None) x.any(axis=1,where=x>2)
x.argmax(0) x.argmax(0,None,keepdims=True) x.argmin(1,out=None) x.argsort(0) x.argsort(0,'stable')
x.argsort(kind='quicksort') x.argsort(axis=None) x.astype('f4') x.astype('f4','C') x.astype(np.int8,casting='unsafe')
x.astype('f8',copy=False) x.astype(dtype='f4',order='F') x.clip(2,4) x.clip(2) x.clip(None,4) x.clip(min=2,max=4)
x.copy() x.copy('F') x.copy(order='K') x.cumprod() x.cumprod(0) x.cumprod(1,'f4') x.cumsum(0) x.cumsum(0,None,None)
x.diagonal() x.diagonal(1) x.diagonal(0,1,0) x.diagonal(axis1=1,axis2=0) x.dot([1,2,3]) x.flatten() x.flatten('F')
x.flatten(order='C') x.max(0) x.max(0,None,True) x.max(initial=9) x.max(axis=1,initial=0,where=x>2) x.mean(0)
x.mean(0,'f4') x.mean(1,None,None,True) x.mean(dtype='f4',keepdims=True) x.min(1) x.min(1,None,True) x.prod(0)
x.prod(0,'f4',None,True) x.prod(initial=2) x.ravel() x.ravel('F') x.repeat(2) x.repeat(2,0) x.reshape(3,2)
x.reshape((3,2)) x.reshape(3,2,order='F') x.reshape((3,2),order='F') x.reshape(-1) x.reshape((3,2),order='C')
x.round() x.round(1) x.round(decimals=1) abs(x[0]).cumsum().searchsorted(2) x.squeeze() x.std()
x.std(0,None,None,1) x.std(0,ddof=1)
x.std(axis=1,dtype='f4') x.std(0,'f4',None,1,True) x.sum() x.sum(0) x.sum(0,'f4') x.sum(1,None,None,True) x.sum((0,1))
x.sum(axis=1,initial=2,where=x>2) x.cumsum() x.cumprod(dtype='c8') x.swapaxes(0,1) x.take([0,1])
x.take([0,9],mode='clip')
x.take([0,5],0,None,'wrap') x.take([1],axis=1) x.tobytes() x.tobytes('F') x.tobytes(order='C') x.trace() x.transpose()
x.transpose(1,0) x.transpose((1,0)) x.var() x.var(1,None,None,1) x.var(0,ddof=1,keepdims=True) x.view() x.byteswap()
x.real x.imag x.T x.nonzero() x.tolist() x.item(3) x.item(1,2) x.conj() x.conjugate() x.size x.nbytes x.itemsize
(x>2).real (x>2).imag (x>2).sum(0) (x>2).any(0) x.strides x.T.strides x[:,::2].strides
x[::-1].strides x.flags.c_contiguous x.T.flags.c_contiguous x.T.flags.f_contiguous x[:,1:].flags['C'] x.flags['FORC']
x[0].flags['CA'] x.flags.writeable x.flags['ALIGNED'] x.flags['WRITEBACKIFCOPY'] x[:,:1].flags.contiguous x.flags.fnc
np.broadcast_to(x,(2,2,3)).flags.writeable x.T.flags==x.T.flags x.flat[3] x.flat[1:5] x.T.flat[1:5] x.flat[[0,4]]
len(x.flat) list(x.flat) x.flat.copy() x.T.flat.copy() x.flat==x.ravel() np.asarray(x.T.flat) x.flat[-1] x.flat[::2]
x.flat.coords x.flat[x.ravel()>2]
""".split()


def check(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            check(g, w)
    elif isinstance(want, (np.ndarray, np.generic)):
        got = np.asarray(got)
        assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        assert got == want


OF_COMPLEX = (
    r"x\.(T|real|imag|flat|flags|strides|tobytes|byteswap"
    r"|copy|ravel|reshape|mean|sum|prod|cumsum|take|item)\b(?!.*searchsorted)"
)


@pytest.mark.parametrize(
    "call, data",
    [(call, data) for call in METHODS for data in (X, WHOLE)]
    + [(call, C) for call in METHODS if re.match(OF_COMPLEX, call) and ">" not in call and "f4" not in call],
)
def test_methods_take_numpys_arguments(call, data):
    check(eval(call, {"np": np, "x": nvm.asarray(data)}), eval(call, {"np": np, "x": data.copy()}))


WRITES = """
x.flat=7 x.flat=[1,2,3] x.flat[:]=5 x.flat[2]=9 x.flat[1:4]=[7,8,9] x.flat[::4]+=1 x.flat[[0,5]]=[1,2] x.T.flat=[1,2]
x.T.flat[1:4]=[7,8,9] x.flat[1:]=[1,2] x[:,1:].flat[0]=9 x.byteswap(True)
""".split()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("data", [X, WHOLE], ids=["float64", "int32"])
def test_writes_go_where_numpys_go(write, data):
    got, want = nvm.asarray(data), data.copy()
    exec(write, {"x": got})
    exec(write, {"x": want})
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "std", "any", "argmax", "cumsum", "clip", "take", "round"])
def test_out_is_written_to(name):
    more = {"clip": (2, 4), "take": ([0, 1],), "round": ()}.get(name, (0,))
    want = getattr(X, name)(*more)
    out = nvm.zeros(want.shape, dtype=want.dtype)
    assert getattr(nvm.asarray(X), name)(*more, out=out) is out
    np.testing.assert_allclose(np.asarray(out), want)


def test_methods_inside_traces_and_unbound():
    x = nvm.asarray(X)
    f = nvm.jit(lambda x: x.sum(0, None, None, True) + x.reshape(3, 2, order="F").mean(0, "f8").sum())
    np.testing.assert_allclose(np.asarray(f(x)), X.sum(0, None, None, True) + X.reshape(3, 2, order="F").mean(0).sum())
    assert nvm.Array.sum(x, 0, None, None, True).shape == (1, 3)
    with pytest.raises(TypeError, match="axs"):
        x.sum(axs=1)


def test_where_with_a_condition_alone():
    check(nvm.where(nvm.asarray(X > 2)), np.where(X > 2))
    with pytest.raises(TypeError, match=r"where\(condition, x1, x2, /\): missing argument x2"):
        nvm.where(nvm.asarray(X > 2), 1.0)


def test_flags_say_what_cannot_be_changed():
    x = nvm.asarray(X)
    assert "C_CONTIGUOUS : True" in repr(x.flags)
    with pytest.raises(ValueError, match=r"\[flags\] writeable of an array of nvm cannot be set"):
        x.flags.writeable = False
    with pytest.raises(KeyError, match=r"there is no flag 'NONSENSE'"):
        x.flags["NONSENSE"]
    with pytest.raises(AttributeError, match="may_share_memory"):
        x.flags["OWNDATA"]
    assert nvm.ones(3, dtype="bfloat16").strides == (2,)


DTYPES = "bool int8 uint16 int32 float16 bfloat16 float32 float64 complex64 complex128 float8_e5m2".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles(dtype, protocol):
    for x in (
        nvm.asarray(X).astype(dtype),
        nvm.asarray(X).astype(dtype).T,
        nvm.zeros((0, 3), dtype=dtype),
        nvm.ones(()),
    ):
        y = pickle.loads(pickle.dumps(x, protocol=protocol))
        assert y.dtype == x.dtype and y.shape == x.shape and y.tolist() == x.tolist()
        y[...] = 1
        assert y.size == 0 or bool((y == 1).all())
    assert copy.deepcopy(x).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", ["int16", "float64", "complex64"])
def test_pickles_of_protocol_5_hand_over_the_elements(dtype):
    x, buffers = nvm.ones((500, 20), dtype=dtype), []
    head = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(head) < 500 and [b.raw().nbytes for b in buffers] == [x.nbytes]
    before = np.asarray(x).ctypes.data
    y = pickle.loads(head, buffers=buffers)
    assert y.tolist() == x.tolist()
    if dtype != "complex64":  # read-only memory is not copied
        assert np.asarray(y).ctypes.data == before
    y[0] = 7
    assert x.tolist() == nvm.ones((500, 20), dtype=dtype).tolist()
    writable = [bytearray(b.raw()) for b in buffers]
    z = pickle.loads(head, buffers=writable)
    writable[0][:] = bytes(x.nbytes)
    assert z.tolist() == x.tolist()
