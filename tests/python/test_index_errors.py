"""Indices out of range: told where the index is given, with its axis and extent, and the array keeps its value."""
import numpy as np
import pytest

import nvm

WHERE = r"\[{}\] index {} is out of range for axis {} of extent {}$"


def grid():
    return nvm.asarray(np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("key, index, axis, extent", [
    (3, 3, 0, 3), (-4, -4, 0, 3), ((0, 4), 4, 1, 4), ((slice(None), -5), -5, 1, 4),
    ([0, 3], 3, 0, 3), ([[0, 1], [-4, 9]], -4, 0, 3), ((slice(None), [4]), 4, 1, 4), ((1, [9]), 9, 1, 4),
    (([0, 1], [1, 4]), 4, 1, 4), (([5], [9]), 5, 0, 3), ((None, [7]), 7, 0, 3),
    (np.array([1, 3], np.int8), 3, 0, 3), (np.array([1, 3], np.uint16), 3, 0, 3),
    (np.array([2**63], np.uint64), 2**63 - 1, 0, 3), (np.array([0, 1, 2, 8])[::-1], 8, 0, 3),
], ids=str)
def test_known_indices_are_checked_at_once(key, index, axis, extent):
    x = grid()
    with pytest.raises(IndexError, match=WHERE.format("getitem", index, axis, extent)):
        x[key]
    for value in (7, np.float32(7), nvm.asarray(7.0)):
        with pytest.raises(IndexError, match=WHERE.format("setitem", index, axis, extent)):
            x[key] = value
    assert x.tolist() == grid().tolist()
    x[0, 0] = 5
    assert x[0].tolist() == [5, 1, 2, 3]


def test_indices_of_arrays_with_and_without_a_value():
    x = grid()
    known, pending = nvm.asarray([0, 3]).eval(), nvm.asarray([0, 1]) * 3
    with pytest.raises(IndexError, match=WHERE.format("getitem", 3, 0, 3)):
        x[known]
    late = x[pending]  # lazy: nothing is evaluated for it
    with pytest.raises(IndexError, match="out of range"):
        late.tolist()
    with pytest.raises(IndexError, match=WHERE.format("setitem", 3, 0, 3)):
        x[nvm.asarray([0, 1]) * 3] = 1
    assert x.tolist() == grid().tolist()
    x[nvm.asarray([0, 1]) * 2] = 1
    assert x[:, 0].tolist() == [1, 4, 1]


def test_a_failed_write_to_a_view_leaves_its_base():
    x = grid()
    for view in (x[1:], x.T, x.reshape(-1), x[::-1]):
        with pytest.raises(IndexError, match=r"\[setitem\]"):
            view[[0, 99]] = -1
    assert x.tolist() == grid().tolist()


def test_indices_inside_a_traced_function():
    x = grid()

    def write(x, i):
        x[i] = 0
        return x.sum()

    f = nvm.jit(write)
    assert float(f(x, np.array([0, -1]))) == 22
    with pytest.raises(IndexError, match="out of range"):
        float(f(grid(), np.array([3])))
    with pytest.raises(IndexError, match=WHERE.format("setitem", 9, 0, 3)):  # a list is a constant of the trace
        nvm.jit(lambda x: write(x, [9]))(grid())


def test_valid_indices_of_every_dtype():
    x = grid()
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        i = np.array([[0, 2], [1, 1]], dtype)
        assert np.array_equal(np.asarray(x[i]), np.asarray(x)[i])
        y, n = grid(), np.asarray(grid()).copy()
        y[i, 1] = 9
        n[i, 1] = 9
        assert np.array_equal(np.asarray(y), n)
    assert x[[]].shape == (0, 4) and x[nvm.zeros((0, 2), dtype=nvm.int64)].shape == (0, 2, 4)
