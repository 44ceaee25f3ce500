"""Indices out of range: told where the index is given, with its axis and extent, and the array keeps its value."""

import numpy as np
import pytest

import nvm

ON_GPU = nvm.get_default_device() != "cpu"


def where(operation, index, axis, extent):
    """What the message says. A GPU does not tell the index; there the error is raised when the value is read."""
    told = f"(an index|index {index})" if ON_GPU else f"index {index}"
    return rf"\[{operation}\] {told} is out of range for axis {axis} of extent {extent}$"


def grid():
    return nvm.asarray(np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize(
    "key, index, axis, extent",
    [
        (3, 3, 0, 3),
        (-4, -4, 0, 3),
        ((0, 4), 4, 1, 4),
        ((slice(None), -5), -5, 1, 4),
        ([0, 3], 3, 0, 3),
        ([[0, 1], [-4, 9]], -4, 0, 3),
        ((slice(None), [4]), 4, 1, 4),
        ((1, [9]), 9, 1, 4),
        (([0, 1], [1, 4]), 4, 1, 4),
        (([5], [9]), 5, 0, 3),
        ((None, [7]), 7, 0, 3),
        (np.array([1, 3], np.int8), 3, 0, 3),
        (np.array([1, 3], np.uint16), 3, 0, 3),
        (np.array([2**63], np.uint64), 2**63 - 1, 0, 3),
        (np.array([0, 1, 2, 8])[::-1], 8, 0, 3),
    ],
    ids=str,
)
def test_known_indices_are_checked_at_once(key, index, axis, extent):
    x = grid()
    with pytest.raises(IndexError, match=where("getitem", index, axis, extent)):
        x[key]
    for value in (7, np.float32(7), nvm.asarray(7.0)):
        with pytest.raises(IndexError, match=where("setitem", index, axis, extent)):
            x[key] = value
    assert x.tolist() == grid().tolist()
    x[0, 0] = 5
    assert x[0].tolist() == [5, 1, 2, 3]


def test_indices_of_arrays_with_and_without_a_value():
    x = grid()
    known, pending = nvm.asarray([0, 3]).eval(), nvm.asarray([0, 1]) * 3
    with pytest.raises(IndexError, match=where("getitem", 3, 0, 3)):
        x[known]
    late = x[pending]  # lazy: nothing is evaluated for it
    with pytest.raises(IndexError, match=where("getitem", 3, 0, 3)):
        late.tolist()
    with pytest.raises(IndexError, match=where("setitem", 3, 0, 3)):
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
    y = grid()
    with pytest.raises(IndexError, match=where("setitem", 3, 0, 3)):
        f(y, np.array([3]))
    assert y.tolist() == grid().tolist()
    with pytest.raises(IndexError, match=where("setitem", 9, 0, 3)):  # a list is a constant of the trace
        nvm.jit(lambda x: write(x, [9]))(grid())


LATE = [  # expression of x (3, 4), an index array i, its value: the operation, index, axis, extent that are told
    ("x[i]", [0, 3], "getitem", 3, 0, 3),
    ("x[i]", [-4, 0], "getitem", -4, 0, 3),
    ("x[:, i]", [1, 4], "getitem", 4, 1, 4),
    ("x[1:, i]", [-5, 9], "getitem", -5, 1, 4),
    ("x[None, i]", [7], "getitem", 7, 0, 3),
    ("x[..., i]", [7], "getitem", 7, 1, 4),
    ("x[i, i]", [3], "getitem", 3, 0, 3),
    ("x[i % 3, i]", [5], "getitem", 5, 1, 4),
    ("x[i[:, None], i % 4]", [2, 8], "getitem", 8, 0, 3),
    ("x[i][::2]", [0, 99, 3], "getitem", 3, 0, 3),
    ("x.T[i]", [4], "getitem", 4, 0, 4),
    ("nvm.sum(nvm.exp(x[i]) @ x.T)", [0, 3], "getitem", 3, 0, 3),
    ("nvm.take(x, i, axis=1)", [4], "take", 4, 1, 4),
    ("nvm.take(x.reshape(-1), i)", [12], "take", 12, 0, 12),
    ("nvm.take_along_axis(x, i.reshape(1, -1), axis=0)", [0, 3, 1, -9], "take_along_axis", 3, 0, 3),
    ("nvm.last_index(i, size=5)", [1, 5], "last_index", 5, 0, 5),
    ("x[nvm.take(i, i)]", [1, 9], "take", 9, 0, 2),
    ("x[i] * 0 + x[:, i[:1]].sum()", [-7], "getitem", -7, 0, 3),
]


@pytest.mark.parametrize("tier", ["0", "1"])
@pytest.mark.parametrize("text, values, who, index, axis, extent", LATE)
def test_what_is_found_while_running(tier, text, values, who, index, axis, extent):
    i = np.array(values)
    f = eval(f"lambda x, i: {text}", {"nvm": nvm})
    nvm.set("tier", tier)
    try:
        for call in (lambda: f(grid(), nvm.asarray(i) * 1), lambda: nvm.jit(f)(grid(), i)):
            with pytest.raises(IndexError, match="^" + where(who, index, axis, extent)):
                np.asarray(call())
    finally:
        nvm.set("tier", None)


def test_one_program_and_two_operations():
    x, i = grid(), np.array([0, 5])
    for f, who in ((lambda i: nvm.take(x, i, axis=0), "take"), (lambda i: x[i], "getitem")):
        with pytest.raises(IndexError, match="^" + where(who, 5, 0, 3)):
            np.asarray(f(nvm.asarray(i) * 1))


def test_what_is_written_over_is_not_looked_at_again():
    """Where a kernel writes to the memory of its indices they are gone: then no index is told."""
    f = nvm.jit(lambda i: nvm.take(nvm.arange(5), i) + i, donate_argnums=(0,))
    with pytest.raises(IndexError, match=r"^\[take\] (an index|index 9) is out of range for axis 0 of extent 5$"):
        np.asarray(f(nvm.asarray(np.full(4096, 9)).copy()))


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
