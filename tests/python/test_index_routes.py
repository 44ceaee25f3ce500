"""Keys with index arrays take one of two routes: the library's, where all values are at hand, and that of the package's
Python half, which makes an expression. Random keys by both and by NumPy: values, errors, and what is evaluated."""

import os

import numpy as np
import pytest

import nvm
from nvm import _nvm

pytestmark = pytest.mark.skipif(nvm.get_default_device() != "cpu", reason="on a GPU there is one route")
SEEDS = int(os.environ.get("NVM_TEST_PROGRAMS", "120"))
for hook in "getitem", "setitem":  # the Python half is imported when it is first called
    _nvm.hooks["import"](hook)
INTS = ["int8", "int32", "int64", "uint8", "uint64"]


def some_slice(rng, n):
    step = int(rng.choice([-2, -1, 1, 1, 2]))
    return slice(*sorted(int(i) for i in rng.integers(0, n + 1, 2))[:: step // abs(step)], step)


def some_indices(rng, n, shape):
    low = 0 if rng.integers(2) else -n
    at = np.asarray(rng.integers(low, n, shape) if n else np.zeros((0,), int))
    if rng.integers(12) == 0 and at.size:
        at.reshape(-1)[rng.integers(at.size)] = n + int(rng.integers(3))
    if rng.integers(3) == 0:
        return at.tolist()
    at = at.astype(str(rng.choice(INTS)) if low == 0 else "int64")
    return at[::-1] if at.ndim and rng.integers(2) else at


def some_key(rng, shape):
    """A key with an index array at least, rarely one that no array takes."""
    key, d, common = [], 0, [(2,), (3,), (1,), (), (2, 3), (3, 1)][rng.integers(6)]
    while d < len(shape) and (rng.integers(6) or not key):
        what, n = rng.integers(9), shape[d]
        if what == 0 and n:
            key.append(int(rng.integers(-n, n)))
        elif what < 3:
            key.append(some_slice(rng, n))
        elif what == 3:
            key.append([None, Ellipsis][rng.integers(2)])
            continue
        elif what == 4 and len(shape) - d > 1:
            key.append(rng.integers(0, 2, shape[d : d + 2]).astype(bool))
            d += 1
        elif what == 5:
            key.append(rng.integers(0, 2, n + (rng.integers(20) == 0)).astype(bool))
        else:
            key.append(some_indices(rng, n, common if rng.integers(15) else (2, 2)))
        d += 1
    if not any(isinstance(k, (list, np.ndarray)) for k in key):
        key[:] = [some_indices(rng, shape[0], common)]
    return tuple(key) if len(key) > 1 or rng.integers(2) else key[0]


def given(key):
    """The key with nvm's arrays in place of NumPy's."""
    items = [nvm.asarray(k) if isinstance(k, np.ndarray) else k for k in (key if isinstance(key, tuple) else (key,))]
    return tuple(items) if isinstance(key, tuple) else items[0]


def tried(call):
    try:
        got = call()
    except Exception as e:
        return type(e), str(e)
    return np.asarray(got)


def agree(a, b):
    if isinstance(a, tuple) or isinstance(b, tuple):
        return isinstance(a, tuple) and a == b
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)


def some_array(rng):
    shape = tuple(int(n) for n in rng.integers(0 if rng.integers(8) == 0 else 1, 5, rng.integers(1, 4)))
    dtype = str(rng.choice(["float64", "float32", "int8", "bool", "complex128", "float16"]))
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


def a_view(x):
    """The same elements at other strides: columns of a wider array, with its rows in reverse."""
    wide = np.zeros((x.shape[0], 2 * x.size // max(x.shape[0], 1)), x.dtype)
    a = nvm.asarray(wide)[::-1, ::2].reshape(x.shape) if x.ndim == 1 or x.size == 0 else nvm.asarray(x)
    a[...] = x
    return a


def both_or_neither(want, got, selected):
    """An error, or none; but where nothing is selected NumPy looks at no index."""
    return isinstance(want, tuple) == isinstance(got, tuple) or np.size(selected) == 0


def set_by(route, a, key, value):
    route(a, key, value)
    return a


@pytest.mark.parametrize("seed", range(SEEDS))
def test_reads(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        x = some_array(rng)
        key, a = some_key(rng, x.shape), (nvm.asarray, a_view)[rng.integers(2)](x)
        want, slow = tried(lambda: x[key]), tried(lambda: _nvm.hooks["getitem"](a, key))
        for k in (key, given(key)):
            assert agree(tried(lambda: a[k]), slow), (x.shape, key)
        assert both_or_neither(want, slow, want), (want, slow, x.shape, key)
        assert isinstance(slow, tuple) or agree(slow, want)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_writes(seed):
    rng = np.random.default_rng(10**6 + seed)
    for _ in range(8):
        x = some_array(rng)
        key = some_key(rng, x.shape)
        target = tried(lambda: x[key])
        shape = (2, 3) if isinstance(target, tuple) else target.shape
        value = (rng.integers(0, 99, shape).astype(x.dtype), 1, np.ones((1,) * len(shape), x.dtype))[rng.integers(3)]
        if rng.integers(10) == 0:
            value = np.ones(7, x.dtype)
        a, b, n = nvm.asarray(x), nvm.asarray(x), x.copy()
        fast = tried(lambda: set_by(type(a).__setitem__, a, key, value))
        slow = tried(lambda: set_by(_nvm.hooks["setitem"], b, key, value))
        want = tried(lambda: set_by(type(n).__setitem__, n, key, value))
        assert agree(fast, slow), (x.shape, key, value)
        assert both_or_neither(want, fast, target), (want, fast, x.shape, key, value)
        assert isinstance(fast, tuple) or agree(fast, want), (x.shape, key, value)
        assert np.array_equal(np.asarray(a), np.asarray(b))


def test_what_is_at_hand_takes_no_evaluation():
    x, mask = nvm.asarray(np.arange(12.0).reshape(3, 4)), nvm.asarray(np.arange(12).reshape(3, 4) % 5 == 1)
    rows, columns = nvm.asarray([2, 0]), nvm.asarray(np.int8([1, -1]))
    before = nvm.counters()["evaluations"]
    assert x[rows].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]] and x[:, columns][0].tolist() == [1, 3]
    assert x[rows, columns].tolist() == [9, 3] and x[mask].tolist() == [1, 6, 11]
    x[rows, columns] = [50, 51]
    x[mask] = 7
    x[rows, 1:3] = x[rows, 2:]
    assert x.tolist() == [[0, 2, 51, 51], [4, 5, 7, 7], [8, 10, 7, 7]]
    assert nvm.counters()["evaluations"] == before


def test_an_array_of_no_dimensions_copies_as_in_numpy():
    n = np.arange(6.0).reshape(2, 3)
    for i in (np.array(1), np.array(1, np.uint8)):
        x, y = nvm.asarray(n), n.copy()
        row, want = x[i], y[i]
        row[...] = want[...] = -1
        assert x.tolist() == y.tolist() == n.tolist() and row.tolist() == want.tolist()
        x[i] = y[i] = 5
        assert x.tolist() == y.tolist()
        assert x[i, 1].tolist() == 5 and x[i, i].shape == () and x[i, [0, 1]].tolist() == [5, 5]
    x = nvm.asarray(n)
    x[np.int64(1)][...] = -1
    x[nvm.asarray(0)][...] = -2
    assert x.tolist() == [[-2] * 3, [-1] * 3]


@pytest.mark.parametrize(
    "key", [(0, 0, 0), ([0], 0, 0), np.s_[0, ..., 0, None, 0], (np.ones((2, 2), bool), 0)], ids=str
)
def test_too_many_indices_name_the_call(key):
    x = nvm.zeros((2, 2))
    text = r"^\[{}\] too many indices: the array has 2 dimensions, 3 were indexed$"
    with pytest.raises(IndexError, match=text.format("getitem")):
        x[key]
    with pytest.raises(IndexError, match=text.format("setitem")):
        x[key] = 1


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_masks_of_all_axes_select_from_every_layout(dtype):
    """What lies in memory as one axis is copied by the mask's positions, anything else by their offsets."""
    rng = np.random.default_rng(11)
    layouts = (lambda a: a, lambda a: a.T, lambda a: a[::2], lambda a: a[:, 1:-1], lambda a: a[::-1, ::-1])
    for shape in ((6, 5), (1, 7), (4, 3, 6), (2, 1, 5)):
        for layout in layouts:
            n = rng.integers(-99, 99, shape).astype(dtype)
            for share in (0, 0.3, 1):
                x, want = layout(nvm.asarray(n)), layout(n.copy())
                mask = rng.random(want.shape) < share
                assert np.array_equal(np.asarray(x[nvm.asarray(mask)]), want[mask])
                some = rng.integers(0, 2, int(mask.sum())).astype(dtype)
                for value in (some[::-1], 1, np.repeat(some, 2)[::2]):
                    x[nvm.asarray(mask)] = nvm.asarray(value) if isinstance(value, np.ndarray) else value
                    want[mask] = value
                    assert np.array_equal(np.asarray(x), want), (shape, share)
