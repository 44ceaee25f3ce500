"""Methods of arrays beside NumPy's, and errors that say what to write instead."""

import ctypes
import io

import numpy as np
import pytest

import nvm
from nvm._methods import LACKING

X = np.array([[3.0, 1, 2], [4, 6, 5]])
CALLS = [
    lambda x: x.swapaxes(0, 1),
    lambda x: x.trace(),
    lambda x: x.trace(1),
    lambda x: x.compress([False, True, True], axis=1),
    lambda x: x.view("i8"),
    lambda x: x.view(np.float32),
    lambda x: x.astype("u1").view("i1"),
    lambda x: x.astype("f4")[:, :2].copy().view("c8"),
    lambda x: (x > 2).astype("i8").choose([x, -x]),
    lambda x: x.view(),
]


@pytest.mark.parametrize("call", CALLS)
def test_methods_give_what_numpys_give(call):
    got, want = call(nvm.asarray(X)), call(X)
    assert isinstance(got, nvm.Array) or np.ndim(want) == 0
    assert np.asarray(got).dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got), want)


def test_partitions_place_the_kth_element():
    x = nvm.asarray(X)
    assert np.take_along_axis(X, np.asarray(x.argpartition(1, axis=1)), 1)[:, 1].tolist() == [2, 5]
    x.partition(1)
    assert x[:, 1].tolist() == [2, 5]


def test_methods_that_write():
    x = nvm.asarray(X)
    row = x[0]
    row.fill(7)
    x.put([3, -1], [8, 9])
    assert x.tolist() == [[7, 7, 7], [8, 6, 9]]
    file = io.BytesIO()
    x.tofile(file)
    assert file.getvalue() == np.asarray(x).tobytes()


def test_bits_that_do_not_divide_are_an_error():
    with pytest.raises(ValueError, match=r"\[view\] 3 elements of float32 are no whole number of float64"):
        nvm.ones(3, dtype="f4").view("f8")
    with pytest.raises(ValueError, match="an array without dimensions of float32 has no view as float64"):
        nvm.ones((), dtype="f4").view("f8")


@pytest.mark.parametrize("name", sorted(LACKING))
def test_what_an_array_lacks_is_an_attribute_error_with_a_way_out(name):
    assert not hasattr(nvm.ones(2), name)
    with pytest.raises(AttributeError, match=f"an array of nvm has no {name}; "):
        getattr(nvm.ones(2), name)


def test_hashes_and_buffers_say_why_not():
    for call in (hash, lambda x: {x: 1}):
        with pytest.raises(
            TypeError, match=r"unhashable type: 'nvm.Array', since its elements can be written to.*id\(x\)"
        ):
            call(nvm.ones(()))
    with pytest.raises(BufferError, match=r"read-only for others: .*numpy.array\(a\), a copy that can be written to"):
        room = ctypes.create_string_buffer(256)
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(nvm.ones(1)), room, 1)  # 1: PyBUF_WRITABLE
    with pytest.raises(RuntimeError, match=r"numpy.asarray\(\) of a traced array \(float64, shape \(2,\)\)"):
        nvm.jit(lambda x: np.asarray(x))(nvm.ones(2))
    assert nvm.jit(lambda x: x + np.asarray(nvm.ones(2) + 1))(nvm.ones(2)).tolist() == [3, 3]
