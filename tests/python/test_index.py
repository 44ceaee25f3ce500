"""a[key] and a[key] = value against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nvm
from refs import counted, same

arrays = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@given(arrays, st.data())
def test_basic_read(shape, data):
    x = counted(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    a = nvm.asarray(x)
    same(a[key], x[key])
    same(a[key] * 2, x[key] * 2)


@given(arrays, st.data())
def test_basic_write(shape, data):
    x = counted(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    a, n = nvm.asarray(x), x.copy()
    target = n[key]
    value = data.draw(
        st.sampled_from(
            [
                -1.0,
                -np.arange(float(np.size(target))).reshape(np.shape(target)),
                -np.ones((1,) * (np.ndim(target) > 0) + np.shape(target)),
            ]
        )
    )
    a[key] = value
    n[key] = value
    same(a, n)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_chained_views_write_through(shape, data):
    x = counted(shape)
    a, n = nvm.asarray(x), x.copy()
    for value in (-1.0, -2.0):
        va, vn = a, n
        for _ in range(2):
            key = data.draw(hnp.basic_indices(vn.shape, allow_ellipsis=True))
            nxt = vn[key]
            if not isinstance(nxt, np.ndarray):
                break
            va, vn = va[key], nxt
        va[...] = value
        vn[...] = value
        va += 0.5
        vn += 0.5
        same(a, n)
        same(va, vn)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_index_arrays(shape, data):
    x = counted(shape)
    key = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=4)))
    a, n = nvm.asarray(x), x.copy()
    same(a[key], x[key])
    a[key] = -1.0
    n[key] = -1.0
    same(a, n)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[[0, 2]],
        np.s_[:, [1, -1, 0]],
        np.s_[[0, 1], [1, 2]],
        np.s_[..., [0, 1]],
        np.s_[1, [0, 2]],
        np.s_[[0, 1], :, [1, 2]],
        np.s_[:, [0, 1], [1, 2]],
        np.s_[[[0], [1]], [0, 1, 2]],
        np.s_[1:, [0, 2], ::-1],
        np.s_[None, [0, 1]],
        np.s_[:, None, [0, 1]],
        np.s_[[], :],
        np.s_[np.array([True, False, True])],
        np.s_[:, np.array([True, False, True, True])],
        np.s_[0, :, [0, 1]],
        np.s_[[0, 1], 0, [0, 1]],
        np.s_[:, 1, ..., [0, 2, 1]],  # an ellipsis without dimensions separates, too
        np.s_[1:, [0, 2], [0, 1], ...],
    ],
)
def test_mixed_keys(key):
    x = counted((3, 4, 5))
    a, n = nvm.asarray(x), x.copy()
    same(a[key], x[key])
    value = -np.arange(float(x[key].size)).reshape(x[key].shape)
    a[key] = value
    n[key] = value
    same(a, n)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5), st.data())
def test_masks(shape, data):
    x = counted(shape)
    extents = [data.draw(st.sampled_from([n, n, n, 0])) for n in shape]  # 0 goes with every extent
    mask = data.draw(hnp.arrays(bool, extents[: data.draw(st.integers(1, len(shape)))]))
    a, n = nvm.asarray(x), x.copy()
    same(a[nvm.asarray(mask)], x[mask])
    a[mask] = -1.0
    n[mask] = -1.0
    same(a, n)
    values = np.arange(float(x[mask].size)).reshape(x[mask].shape) + 100
    a[mask] = values
    n[mask] = values
    same(a, n)
    for got, want in zip(nvm.nonzero(mask), np.nonzero(mask)):
        same(got, want)


@pytest.mark.parametrize("mask", [True, False])
def test_masks_without_dimensions(mask):
    x = counted((2, 3))
    a, n = nvm.asarray(x), x.copy()
    same(a[nvm.asarray(mask)], x[mask])
    same(a[mask], x[mask])
    same(nvm.asarray(5.0)[nvm.asarray(mask)], np.asarray(5.0)[mask])
    a[mask] = -1.0
    n[mask] = -1.0
    same(a, n)


def test_a_lazy_mask_writes_lazily():
    a = nvm.arange(6.0)
    before = nvm.counters()["evaluations"]
    a[a > 2] = 0.0
    assert nvm.counters()["evaluations"] == before
    assert a.tolist() == [0, 1, 2, 0, 0, 0]


def test_values_are_broadcast_and_cast():
    a = nvm.zeros((2, 3), dtype=nvm.int32)
    a[0] = [1.9, -1.9, 3]
    a[1, :2] = nvm.asarray(7.0)
    assert a.dtype == nvm.int32 and a.tolist() == [[1, -1, 3], [7, 7, 0]]
    with pytest.raises(ValueError):
        a[0] = [1, 2]
    with pytest.raises(TypeError):
        a[0] = 1j
    with pytest.raises(TypeError):
        a[0] = "x"
    with pytest.raises(TypeError):
        del a[0]


def test_overlapping_copies_read_the_old_values():
    a, n = nvm.arange(8), np.arange(8)
    a[1:] = a[:-1]
    n[1:] = n[:-1].copy()
    same(a, n)
    a[::-1] = a
    same(a, n[::-1])


@given(arrays, st.data())
def test_views_with_new_dimensions_write_through(shape, data):
    a, n = nvm.asarray(counted(shape)), counted(shape)
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    va, vn = a[key], n[key]
    if not isinstance(vn, np.ndarray):
        return
    va *= -2
    vn *= -2
    va[None, ..., None][...] = va[None, ..., None] + 0.5
    vn += 0.5
    same(a, n)
    a += 1
    n += 1
    same(va, vn)


def swaps(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def recurrence(a):
    before = a[0]
    for i in range(1, len(a)):
        now = a[i]
        a[i] = now + before
        before = now
    return a


def running(a):
    best = a[0]
    a[0] = -1
    return [best, *a]


def kept(a):
    elements = [a[i] for i in range(len(a))]
    a[:] = 0
    return elements


def in_place(a):
    e = a[2]
    e += 1
    for v in a:
        v *= 2
    return [e, *a]


def over_two(a):
    b = a.reshape(2, 3)
    e, r = b[1, 0], b[0]
    b[1, 0] = 50
    b[0, 0] = 60
    return [e, *r]


@pytest.mark.parametrize("program", [swaps, recurrence, running, kept, in_place, over_two])
def test_an_element_is_a_value(program):
    x = np.array([3.0, 1, 5, 2, 4, 0])
    want = [float(v) for v in program(x.copy())]
    assert [float(v) for v in program(nvm.asarray(x))] == want
    if program is not swaps:  # which asks for values
        assert [float(v) for v in nvm.jit(lambda a: list(program(a)))(x.copy())] == want


def test_shuffling_keeps_every_element():
    import random

    a = nvm.arange(20)
    random.Random(1).shuffle(a)
    assert sorted(a.tolist()) == list(range(20)) != a.tolist()


@pytest.mark.parametrize(
    "shape,key",
    [
        ((3,), np.s_[1]),
        ((), np.s_[()]),
        ((), np.s_[...]),
        ((3,), np.s_[0, ...]),
        ((3,), np.s_[..., 0]),
        ((2, 3), np.s_[1]),
        ((2, 3), np.s_[1, 2]),
        ((2, 3), np.s_[1, 2, ...]),
        ((3,), np.s_[0, None]),
        ((3,), np.s_[None, 0]),
        ((3,), np.s_[1:2]),
        ((2, 3), np.s_[-1, -1]),
    ],
)
def test_what_keeps_a_dimension_or_an_ellipsis_is_a_view(shape, key):
    n = np.add(counted(shape), 1.0, out=np.empty(shape))
    a = nvm.asarray(n)
    vn, va = n[key], a[key]
    a[...], n[...] = -a, -n
    same(va, vn)


def test_views_see_later_writes():
    a = nvm.zeros((3, 4))
    row, column, corner = a[1], a[:, 2], a[1:, 1:][0]
    a[1, 2] = 5
    assert row.tolist() == [0, 0, 5, 0] and column.tolist() == [0, 5, 0] and corner.tolist() == [0, 5, 0]
    corner[0] = 7
    assert a[1, 1].item() == 7 and row.tolist() == [0, 7, 5, 0]
    b = a * 1
    a[...] = 1
    assert b[1, 1].item() == 7


@pytest.mark.parametrize(
    "key,error",
    [
        (np.s_[3], IndexError),
        (np.s_[-4], IndexError),
        (np.s_[0, 0, 0], IndexError),
        (np.s_[..., ...], IndexError),
        (np.s_["a"], IndexError),
        (np.s_[1.0], IndexError),
        (np.s_[::0], ValueError),
        (np.s_[[0.5]], IndexError),
        (np.s_[[0, 3]], IndexError),
        (np.s_[[0], [4]], IndexError),
        (np.s_[np.array([True, False])], IndexError),
        (np.s_[10**30], IndexError),
        (np.s_[:, -(10**30)], IndexError),
        (np.s_[[0], 10**30], IndexError),
    ],
)
def test_errors(key, error):
    a = nvm.zeros((3, 4))
    with pytest.raises(error):
        a[key].tolist()


@pytest.mark.parametrize("default", ["float64", "float32"])
def test_an_empty_list_is_an_index(default):
    a, before = nvm.arange(6).reshape(2, 3), nvm.default_dtype()
    nvm.set_default_dtype(default)
    try:
        assert a[[]].shape == (0, 3) and a[:, [[], []]].shape == (2, 2, 0)
        with pytest.raises(IndexError):
            a[np.zeros(0)]
    finally:
        nvm.set_default_dtype(before)


def test_keys_may_be_arrays():
    a = nvm.arange(10)
    assert a[nvm.asarray(3)].item() == 3 and a[np.int64(4)].item() == 4
    assert a[nvm.asarray(2) : nvm.asarray(5)].tolist() == [2, 3, 4]
    i = nvm.argmax(a)
    assert a[i].item() == 9


def test_masked_write_keeps_the_others_exact():
    x = nvm.asarray([2**53 + 1, 5])
    x[x == 5] = 1.0
    assert x.tolist() == [2**53 + 1, 1]


def test_slice_update_takes_no_complex_into_real():
    with pytest.raises(TypeError, match="complex"):
        nvm.slice_update(nvm.zeros(4), nvm.asarray([1j, 2]), (0,), (2,), (1,))


KEYS = [0, slice(0, 2), [0, 1], np.array([True, True, False])]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize(
    "dtype,value",
    [
        ("int8", 300),
        ("int8", [300, 1]),
        ("uint8", -1),
        ("int64", float("nan")),
        ("int64", float("inf")),
        ("int8", 300.5),
        ("int64", 2**63),
        ("float32", 1j),
        ("int8", [1j, 1]),
    ],
)
def test_numbers_that_do_not_fit_are_not_stored(key, dtype, value):
    x, a = np.zeros(3, dtype), nvm.zeros(3, dtype=dtype)
    if isinstance(value, list) and isinstance(key, int):
        value = value[0]
    with pytest.raises((OverflowError, ValueError, TypeError)) as of_numpy:
        x[key] = value
    with pytest.raises(of_numpy.type):
        a[key] = value
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize(
    "dtype,value",
    [
        ("int8", -128),
        ("uint64", 2**64 - 1),
        ("int8", 1.9),
        ("float32", 2**70),
        ("bool", 7),
        ("float32", 1e300),
        ("complex64", 2**64),
    ],
)
def test_numbers_that_fit_are_stored(key, dtype, value):
    x, a = np.zeros(3, dtype), nvm.zeros(3, dtype=dtype)
    x[key] = value
    a[key] = value
    same(a, x)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_key_that_raises(error):
    class Key:
        def __index__(self):
            raise error

    with pytest.raises(error):
        nvm.ones(3)[Key()]


@pytest.mark.parametrize("key", [False, [], np.zeros(3, bool), np.zeros((0, 2), int)], ids=str)
@pytest.mark.parametrize("value", [[1, 2], [], [[1], [2]], np.ones((1, 3, 4))], ids=str)
def test_what_goes_nowhere_has_to_fit_all_the_same(key, value):
    x, a = np.zeros((3, 4)), nvm.zeros((3, 4))
    try:
        x[key] = value
    except ValueError:
        with pytest.raises(ValueError):
            a[key] = value
    else:
        a[key] = value
    assert a.tolist() == x.tolist()


@pytest.mark.parametrize("key", [([0, 1], [0, 1, 2]), ([True, True, False], [0, 1, 2]), ([], [0, 1])], ids=str)
def test_index_arrays_that_do_not_go_together(key):
    a = nvm.zeros((3, 4))
    for use in (lambda: np.zeros((3, 4))[key], lambda: a[key], lambda: a.__setitem__(key, 1)):
        with pytest.raises(IndexError):
            use()


def test_backwards():
    x = np.arange(6).reshape(3, 2)
    assert [r.tolist() for r in reversed(nvm.asarray(x))] == [r.tolist() for r in reversed(x)]
    assert list(reversed(nvm.zeros((0, 2)))) == []
    with pytest.raises(TypeError):
        reversed(nvm.asarray(1))


def test_take_of_a_take():  # the index of the first is there before that of the second
    def f(x, i, j, w):
        y = nvm.take(nvm.exp(x), i)
        z = nvm.take(y, j)
        return nvm.roll(w * nvm.round(nvm.minimum(y.reshape(()), 8.0)), 3), nvm.sqrt(z), z, y

    x, i, j, w = np.linspace(1, 2, 17), np.array([5]), np.array([0, -1]), np.ones(64)
    y = np.asarray(nvm.exp(nvm.asarray(x)))[i]
    got = nvm.jit(f)(*map(nvm.asarray, (x, i, j, w)))
    for g, want in zip(got, (np.round(w * y[0]), np.sqrt(y[j]), y[j], y)):
        np.testing.assert_array_equal(np.asarray(g), want)
