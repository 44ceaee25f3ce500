"""NumPy's functions on nvm's arrays: __array_function__. What they give is nvm's, and has NumPy's values."""

import copy
import ctypes

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions

import nvm
import nvm.numpy

MATRIX = np.array([[3.0, 1, 2], [4, 6, 5]])
SQUARE, VECTOR, INTEGERS = np.array([[4.0, 1], [2, 3]]), np.array([1.0, 2, 3]), np.array([0, 1, 1])
TRIED = [
    (MATRIX,), (SQUARE,), (VECTOR,), (INTEGERS,), (MATRIX, 1), (VECTOR, VECTOR), (SQUARE, SQUARE), ([MATRIX, MATRIX],),
    ([VECTOR, VECTOR],), (VECTOR, 1, 2), (MATRIX, 0, 1), (MATRIX, (1, 0)), (VECTOR, 1.5), (SQUARE > 2, SQUARE),
    (VECTOR, INTEGERS), (SQUARE > 2, SQUARE, SQUARE), (MATRIX, np.float32), (VECTOR, VECTOR, 2), (VECTOR, (2, 3)),
    (VECTOR, VECTOR, VECTOR), (INTEGERS, (4, 4)), (np.sum, 0, MATRIX), (np.sum, MATRIX, 0), (SQUARE, VECTOR[:2]),
]  # fmt: skip
# They look at no argument, or only at like=; or their results are not unique, or not values.
NOT_TRIED = set(
    "array asarray asanyarray ascontiguousarray asfortranarray require frombuffer empty_like einsum_path is_busday svd "
    "eig eigh empty zeros ones full shares_memory may_share_memory".split()
)


def overridable():
    skipped = ("recfunctions", "scimath", "_npyio_impl")
    found = (f for f in get_overridable_numpy_array_functions() if not any(s in f.__module__ for s in skipped))
    return sorted({f"{f.__module__}.{f.__name__}": f for f in found if f.__name__ not in NOT_TRIED}.items())


def ours(x):
    if isinstance(x, list):
        return [ours(y) for y in x]
    return nvm.asarray(x) if isinstance(x, np.ndarray) else x


def check(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            check(g, w)
        return
    assert not isinstance(got, (np.ndarray, np.generic))
    if isinstance(want, (np.ndarray, np.generic)):
        got = np.asarray(got)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    else:
        assert bool(got == want)


def copies(args):
    return [copy.deepcopy(a) for a in args]


def works(f, args):
    try:
        return (f(*args),)
    except Exception:
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, f", overridable())
def test_a_function_of_numpy_gives_arrays_of_nvm_or_says_that_there_is_none(name, f):
    args = next((a for a in TRIED if works(f, copies(a))), None)
    if args is None:
        pytest.skip("it takes other arguments")
    given, args = [ours(a) for a in args], copies(args)
    want = f(*args)
    try:
        got = f(*given)
    except TypeError as e:
        assert f"nvm has no {name}" in str(e), e
        return
    check(got, want)
    for a, b in zip(given, args):  # what the function writes to
        if isinstance(b, np.ndarray):
            np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize(
    "call",
    [
        lambda np, x: np.concatenate([x, x]),
        lambda np, x: np.concatenate([x, x], axis=1),
        lambda np, x: np.stack((x, x), axis=-1),
        lambda np, x: np.where(x > 2, x, -x),
        lambda np, x: np.mean(x, axis=0, keepdims=True),
        lambda np, x: np.sum(x, axis=1, dtype=np.float32),
        lambda np, x: np.linalg.inv(x[:, :2]),
        lambda np, x: np.linalg.solve(x[:, :2], x[:, 2]),
        lambda np, x: np.fft.rfft(x, axis=1),
        lambda np, x: np.einsum("ij,kj->ik", x, x),
        lambda np, x: np.pad(x, ((1, 1), (0, 2))),
        lambda np, x: np.clip(x, 2, 4),
        lambda np, x: np.sort(x, axis=0)[::-1],
        lambda np, x: np.take(x, [2, 0], axis=1),
        lambda np, x: np.expand_dims(np.squeeze(x[:1]), 1),
        lambda np, x: np.cumsum(x, axis=1),
        lambda np, x: np.vstack([x, x[:1]]),
        lambda np, x: np.ones_like(x) + np.zeros_like(x, dtype=np.int8),
        lambda np, x: np.tensordot(x, x, axes=((1,), (1,))),
        lambda np, x: np.moveaxis(x[None], 0, -1),
    ],
)
def test_calls_of_libraries(call):
    got, want = call(np, nvm.asarray(MATRIX)), call(np, MATRIX)
    assert isinstance(got, nvm.Array) and got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
    jitted = nvm.jit(lambda x: call(np, x))(nvm.asarray(MATRIX))
    np.testing.assert_allclose(np.asarray(jitted), want, rtol=1e-12)


def test_arrays_of_both_meet():
    x = nvm.asarray(MATRIX)
    for got in (np.concatenate([MATRIX, x]), np.where(MATRIX > 2, x, 0), np.dot(MATRIX, x.T)):
        assert isinstance(got, nvm.Array)


def test_what_writes_to_numpys_memory_does():
    to = np.zeros((2, 3))
    np.copyto(to, nvm.asarray(MATRIX), where=nvm.asarray(MATRIX > 2))
    assert to.tolist() == np.where(MATRIX > 2, MATRIX, 0).tolist()
    np.put(to, nvm.asarray([0, 1]), nvm.asarray([7.0, 8.0]))
    assert to[0, :2].tolist() == [7, 8]
    x = nvm.zeros((2, 3))
    np.copyto(x, MATRIX)
    assert x.tolist() == MATRIX.tolist()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.copyto(src=MATRIX, dst=x),
        lambda x: np.put(a=x, ind=[0, 4], v=[7.0, 8.0]),
        lambda x: np.place(arr=x, mask=MATRIX > 2, vals=[7.0, 8.0]),
        lambda x: np.fill_diagonal(a=x, val=7.0),
        lambda x: np.put_along_axis(arr=x, indices=np.array([[0], [1]]), values=7.0, axis=1),
    ],
)
def test_functions_that_write_take_the_target_by_its_name(write):
    got, want = nvm.zeros((2, 3)), np.zeros((2, 3))
    write(got), write(want)
    assert got.tolist() == want.tolist()


def test_what_nvm_lacks_is_named_with_the_nearest():
    with pytest.raises(TypeError, match=r"nvm has no numpy.busday_count .*nvm.asarray\(numpy.busday_count\("):
        np.busday_count(nvm.ones(2), nvm.ones(2))


class Wrapper:
    def __array_function__(self, func, types, args, kwargs):
        return "the wrapper's"


def test_what_wraps_arrays_calls_functions_itself():
    assert np.concatenate([nvm.ones(2), Wrapper()]) == "the wrapper's"


def test_an_array_is_a_sequence_of_its_rows_in_c():
    """What C code takes for a number has no items: pandas took arrays for missing values."""
    api, x = ctypes.pythonapi, nvm.asarray(MATRIX)
    item = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_ssize_t)(("PySequence_GetItem", api))
    size = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, ctypes.py_object)(("PySequence_Size", api))
    assert api.PySequence_Check(ctypes.py_object(x)) == 1 and size(x) == 2
    assert item(x, 1).tolist() == item(x, -1).tolist() == [4, 6, 5]
    with pytest.raises(IndexError, match=r"\[getitem\] index 2 is out of range for axis 0 of extent 2"):
        item(x, 2)
    assert (np.float64(2) * x).tolist() == ([2.0, 2, 2] * x).tolist() == (2 * MATRIX).tolist()
    assert np.asarray(x).tolist() == MATRIX.tolist() and isinstance([1.0] * x, nvm.Array)
