"""Views, joins, gathers against NumPy: shapes and axes drawn at random."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nvm
from refs import counted, same

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@given(shapes, st.data())
def test_permute_move_transpose(shape, data):
    x = counted(shape)
    axes = data.draw(st.permutations(range(x.ndim)))
    same(nvm.permute_dims(x, axes), np.transpose(x, axes))
    same(nvm.asarray(x).T, x.T)
    if x.ndim >= 2:
        same(nvm.matrix_transpose(x), np.swapaxes(x, -1, -2))
        same(nvm.asarray(x).mT, np.swapaxes(x, -1, -2))
    if x.ndim:
        a, b = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
        same(nvm.moveaxis(x, a, b), np.moveaxis(x, a, b))
        same(nvm.flip(x, axis=a), np.flip(x, a))
    same(nvm.flip(x), np.flip(x))


@given(shapes, st.data())
def test_reshape_chains(shape, data):
    x = counted(shape)
    a, n = nvm.asarray(x), x
    for _ in range(3):
        n = data.draw(st.sampled_from([n.reshape(-1), n.T, n.reshape(n.shape + (1,)), n.reshape((1,) + n.shape), n]))
        a = nvm.asarray(x)
    a, n = nvm.asarray(x), x
    steps = data.draw(st.lists(st.sampled_from(["flat", "T", "tail", "rows"]), max_size=4))
    for s in steps:
        if s == "flat":
            a, n = nvm.reshape(a, (-1,)), n.reshape(-1)
        elif s == "T":
            a, n = a.T, n.T
        elif s == "tail":
            a, n = nvm.reshape(a, n.shape + (1,)), n.reshape(n.shape + (1,))
        elif n.size % 2 == 0 and n.size:
            a, n = nvm.reshape(a, (2, -1)), n.reshape(2, -1)
    same(a, n)
    same(a + 1, n + 1)


@given(shapes, st.data())
def test_expand_squeeze_broadcast(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    y = np.expand_dims(x, axis)
    same(nvm.expand_dims(x, axis=axis), y)
    same(nvm.squeeze(nvm.asarray(y), axis=axis), x)
    wide = tuple(data.draw(st.integers(0, 3)) for _ in range(data.draw(st.integers(0, 2)))) + x.shape
    same(nvm.broadcast_to(x, wide), np.broadcast_to(x, wide))
    assert nvm.broadcast_shapes(wide, x.shape) == np.broadcast_shapes(wide, x.shape)


def test_reshape_of_repeated_elements():
    for wide in itertools.product((1, 2, 3), repeat=4):
        for repeated in itertools.product((False, True), repeat=4):
            x = counted(tuple(1 if r else n for n, r in zip(wide, repeated)))
            shape = (wide[0] * wide[1], -1)
            same(nvm.broadcast_to(nvm.asarray(x), wide).reshape(shape), np.broadcast_to(x, wide).reshape(shape))


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), st.data())
def test_roll_tile_repeat(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    shift = data.draw(st.integers(-9, 9))
    same(nvm.roll(x, shift, axis=axis), np.roll(x, shift, axis))
    same(nvm.roll(x, shift), np.roll(x, shift))
    reps = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)))
    same(nvm.tile(x, reps), np.tile(x, reps))
    k = data.draw(st.integers(0, 3))
    same(nvm.repeat(x, k, axis=axis), np.repeat(x, k, axis))
    same(nvm.repeat(x, k), np.repeat(x, k))


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5), st.data())
def test_concat_stack_pad(shape, data):
    x = counted(shape, "float32")
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    longer = list(shape)
    longer[axis] = data.draw(st.integers(0, 4))
    y = counted(longer, "float64")
    same(nvm.concat([x, y, x], axis=axis), np.concatenate([x, y, x], axis))
    same(nvm.concat([x, y], axis=None), np.concatenate([x, y], None))
    same(nvm.stack([x, x + 1], axis=axis), np.stack([x, x + 1], axis))
    widths = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in shape]
    same(nvm.pad(x, widths, constant_values=7), np.pad(x, widths, constant_values=7))
    same(nvm.pad(x, 2), np.pad(x, 2))


@given(hnp.array_shapes(min_dims=2, max_dims=3, max_side=6), st.integers(-6, 6))
def test_triangles_and_diagonals(shape, k):
    x = counted(shape, "int32") + 1
    same(nvm.tril(x, k=k), np.tril(x, k))
    same(nvm.triu(x, k=k), np.triu(x, k))
    if -shape[-2] <= k <= shape[-1]:
        same(nvm.diagonal(x, offset=k), np.diagonal(x, k, -2, -1))
        same(nvm.linalg.trace(x, offset=k), np.asarray(np.trace(x, k, -2, -1).astype("int64")))


@pytest.mark.parametrize("k", [2**62, 2**63 - 1, 2**63, 2**200])
def test_diagonals_beyond_every_integer(k):
    x = nvm.asarray(counted((3, 4)) + 1)
    for far in (k, -k):
        zeros = np.zeros((3, 4))
        same(nvm.eye(3, 4, k=far), zeros)
        same(nvm.tril(x, k=far), np.asarray(x) if far > 0 else zeros)
        same(nvm.triu(x, k=far), zeros if far > 0 else np.asarray(x))
        assert float(nvm.linalg.trace(x, offset=far)) == 0


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), st.data())
def test_take(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = shape[axis]
    index = np.array(data.draw(st.lists(st.integers(-n, n - 1), max_size=7)), np.int64)
    same(nvm.take(x, index, axis=axis), np.take(x, index, axis))
    many = list(shape)
    many[axis] = 4
    along = np.random.default_rng(3).integers(-n, n, many)
    same(nvm.take_along_axis(x, along, axis=axis), np.take_along_axis(x, along, axis))


@given(hnp.array_shapes(min_dims=0, max_dims=2, max_side=40), st.integers(1, 50))
def test_last_index(shape, size):
    index = np.random.default_rng(5).integers(-size, size, shape)
    want = np.full(size, -1)
    for k, i in enumerate(index.ravel()):
        want[i] = k
    same(nvm.last_index(index, size=size), want)
    same(nvm.last_index(index[..., None][..., :0], size=size), np.full(size, -1))
    with pytest.raises(IndexError, match="last_index"):
        nvm.last_index(np.asarray([size]), size=size).tolist()


def test_take_out_of_range_is_an_error():
    for bad in (3, -4):
        with pytest.raises(IndexError):
            nvm.take([1, 2, 3], [0, bad], axis=0).tolist()


def test_an_index_out_of_range_names_its_operation():
    x, i = nvm.arange(12).reshape(3, 4), nvm.asarray([0, 9])
    for want, f in (
        ("take", lambda: nvm.take(x, i, axis=1) * 2),
        ("getitem", lambda: x[:, i * 1]),
        ("take_along_axis", lambda: nvm.sum(nvm.take_along_axis(x[1:], i.reshape(2, 1), axis=1))),
        (
            "take_along_axis",
            lambda: nvm.take(x, i // 9, axis=1)[:2] + nvm.take_along_axis(x[:2], i.reshape(2, 1), axis=1),
        ),
    ):
        with pytest.raises(
            IndexError, match=rf"^\[{want}\] (an index|index 9) is out of range for axis 1 of extent 4$"
        ):
            f().tolist()


def test_slice_and_update():
    x = counted((4, 6))
    same(nvm.slice(x, (1, 5), (2, 3), (2, -2)), x[1:4:2, 5::-2])
    y = x.copy()
    y[1:4:2, ::3] = -1
    same(nvm.slice_update(x, np.full((2, 2), -1, "int32"), (1, 0), (2, 2), (2, 3)), y)


def test_joins_fuse_with_what_follows(rng):
    x = rng.standard_normal((6, 7))
    got = nvm.sum(nvm.concat([x * 2, x + 1], axis=0) * 3, axis=0)
    np.testing.assert_allclose(np.asarray(got), (np.concatenate([x * 2, x + 1]) * 3).sum(0), rtol=1e-13)


def test_view_errors():
    for call in (
        lambda: nvm.reshape(nvm.ones(6), (4, 2)),
        lambda: nvm.squeeze(nvm.ones((2, 3)), axis=0),
        lambda: nvm.permute_dims(nvm.ones((2, 3)), (0, 0)),
        lambda: nvm.broadcast_to(nvm.ones(3), (4,)),
        lambda: nvm.concat([nvm.ones(3), nvm.ones((2, 2))]),
        lambda: nvm.stack([nvm.ones(3), nvm.ones(2)]),
    ):
        with pytest.raises(ValueError):
            call()


def test_compositions(rng):
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((4,))
    for got, want in zip(nvm.broadcast_arrays(x, y), np.broadcast_arrays(x, y)):
        same(got, want)
    for indexing in ("xy", "ij"):
        for got, want in zip(
            nvm.meshgrid([1, 2, 3], [4, 5], [6], indexing=indexing),
            np.meshgrid([1, 2, 3], [4, 5], [6], indexing=indexing),
        ):
            same(got, want)
    assert [u.tolist() for u in nvm.unstack(nvm.asarray(x), axis=1)] == [x[:, i].tolist() for i in range(4)]
    np.testing.assert_allclose(np.asarray(nvm.linalg.outer(y, y)), np.outer(y, y))
    z = rng.standard_normal((4, 3, 5))
    np.testing.assert_allclose(
        np.asarray(nvm.linalg.tensordot(x, z, axes=([1, 0], [0, 1]))), np.tensordot(x, z, ([1, 0], [0, 1]))
    )
    np.testing.assert_allclose(np.asarray(nvm.linalg.tensordot(y, y, axes=0)), np.tensordot(y, y, 0))
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    np.testing.assert_allclose(np.asarray(nvm.linalg.cross(a, b)), np.cross(a, b))


@pytest.mark.parametrize(
    "left,right,axis",
    [
        ((3,), (3,), 0),
        ((4, 3), (3,), -1),
        ((3,), (3, 4), 0),
        ((3, 4), (3, 1), 0),
        ((2, 3, 4), (3, 4), -2),
        ((3, 2), (3, 5, 2), 0),
    ],
)
def test_cross_along_an_axis(left, right, axis):
    a, b = counted(left), counted(right)[::-1] + 1
    same(nvm.linalg.cross(a, b, axis=axis), np.cross(a, b, axis=axis))


@pytest.mark.parametrize(
    "left,right,axis", [((3, 4), (3, 4), 1), ((3, 4), (3, 4), 2), ((3,), (3, 4), 1), ((3,), (4, 3), -2)]
)
def test_cross_refuses(left, right, axis):
    with pytest.raises((ValueError, IndexError)):
        nvm.linalg.cross(counted(left), counted(right), axis=axis)


@given(st.lists(st.integers(-5, 5), max_size=20), st.lists(st.integers(-6, 6), max_size=9))
def test_searches(sorted_from, probes):
    x, v = np.sort(np.array(sorted_from, "int64")), np.array(probes, "int64")
    for side in ("left", "right"):
        if x.size:
            same(nvm.searchsorted(x, v, side=side), np.searchsorted(x, v, side))
    same(nvm.isin(v, x), np.isin(v, x))
    same(nvm.isin(v, x, invert=True), np.isin(v, x, invert=True))


numbers = st.sampled_from(["int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "bool"])


@given(numbers.flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(max_dims=3, max_side=8))), st.data())
def test_sort(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(nvm.argsort(x, axis=axis), np.argsort(x, axis=axis, kind="stable"))
    same(nvm.sort(x, axis=axis), np.sort(x, axis=axis, kind="stable"))
    if x.dtype.kind != "f" or not np.isnan(x).any():
        down = np.asarray(nvm.argsort(x, axis=axis, descending=True))
        np.testing.assert_array_equal(np.take_along_axis(x, down, axis), np.flip(np.sort(x, axis), axis))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_zeros_in_a_sort(dtype):
    x = np.array([np.nan, 1, -np.nan, -np.inf, 0.0, -0.0, np.inf], dtype)
    x[2] = np.copysign(x[2], -1)
    assert nvm.argsort(x).tolist() == [3, 4, 5, 1, 6, 0, 2]


@given(numbers.flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(min_side=0, max_dims=2, max_side=8))))
def test_unique(x):
    u, n = nvm.unique_all(x), np.unique_all(x)
    for got, want in zip(u, n):
        same(got, want)
    assert u.values.shape == u.counts.shape == nvm.unique_values(x).shape
    assert nvm.unique_counts(x).counts.shape == u.counts.shape
    same(nvm.unique_inverse(x).inverse_indices, n.inverse_indices)


def test_unique_of_complex_numbers():
    u = nvm.unique_counts([1 + 2j, 1 + 1j, 1 + 2j, 0.0])
    assert u.values.tolist() == [0, 1 + 1j, 1 + 2j] and u.counts.tolist() == [1, 1, 2] and "counts=" in repr(u)


@given(hnp.array_shapes(max_dims=3, max_side=5), st.data())
def test_repeat_by_counts(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=shape[axis], max_size=shape[axis])), "int64")
    same(nvm.repeat(x, times, axis=axis), np.repeat(x, times, axis))


@pytest.mark.parametrize(
    "times,axis,error",
    [
        ([1, -1, 2], None, ValueError),
        (-1, None, ValueError),
        (np.array([1.5, 1, 1]), None, TypeError),
        (np.array([2.0]), None, TypeError),
        ([1, 2], None, ValueError),
        ([1, 2, 3], 1, IndexError),
    ],
)
def test_repeat_refuses(times, axis, error):
    for lib in (np, nvm):
        with pytest.raises(error):
            lib.repeat(np.arange(3), times, axis=axis)


def test_repeat_by_other_counts():
    x = np.arange(3)
    for times in ([True, False, True], np.uint64(2), np.array([1, 0, 2], "uint8"), True):
        same(nvm.repeat(x, times), np.repeat(x, times))
    same(nvm.repeat(np.zeros(0), []), np.zeros(0))


@given(hnp.array_shapes(max_dims=3, max_side=5), st.data())
def test_diff(shape, data):
    x = counted(shape) ** 2
    axis, n = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(0, 3))
    same(nvm.diff(x, axis=axis, n=n), np.diff(x, n=n, axis=axis))
    same(nvm.diff(x, axis=axis, prepend=x, append=x), np.diff(x, axis=axis, prepend=x, append=x))


@pytest.mark.parametrize("move,args", [("flip", (0,)), ("permute_dims", ((1, 0),)), ("roll", (1, 0))])
@pytest.mark.parametrize("times", [3, 9, 40])
def test_reshapes_of_what_was_moved(move, args, times):
    """Each makes an index longer; what would be too long for a kernel is stored on the way."""

    def chain(lib, x):
        for i in range(times):
            x = x.reshape((3, 4) if i % 2 else (4, 3))
            x = getattr(lib, move)(x, *args)
        return x

    x = np.arange(12.0)
    same(chain(nvm, nvm.asarray(x)), chain(np, x))


CHAINS = {
    "slices": lambda xp, x, i: abs(x[i % 5 + 1 :]),
    "flips": lambda xp, x, i: (-x[::-1])[i % 3 + 1 :],
    "pads": lambda xp, x, i: -xp.pad(x, i % 5 + 1),
    "rolls": lambda xp, x, i: -xp.roll(x, i + 1),
    "views": lambda xp, x, i: xp.roll(x, i + 1)[1:],
}


@pytest.mark.parametrize("link", CHAINS)
def test_long_chains_are_cut(link):
    x = counted((1000,), "float32")

    def chain(xp, x):
        for i in range(150):
            x = CHAINS[link](xp, x, i)
        return x

    same(nvm.jit(lambda x: chain(nvm, x))(nvm.asarray(x)), chain(np, x))


@pytest.mark.parametrize("n", [17, 60, 61, 200])
def test_many_pieces(n):
    x = [counted((2, i % 3 + 1, 3), "float32") + i for i in range(n)]
    same(nvm.concat([nvm.asarray(p) for p in x], axis=1), np.concatenate(x, axis=1))
    rows = [counted((4,)) * i for i in range(n)]
    same(nvm.stack([nvm.asarray(r) for r in rows], axis=1), np.stack(rows, axis=1))


@pytest.mark.parametrize("seed", range(12))
def test_writes_upon_writes(seed):
    """What is read and written lies inside of, across and beside what was written before."""
    rng = np.random.default_rng(seed)
    shape = (7,) if seed % 2 else (5, 6)
    x = rng.integers(-9, 9, shape).astype(("float64", "float16", "int32", "complex64")[seed % 4])
    a = nvm.asarray(x)

    def part(n):
        lo, hi, step = (int(rng.integers(0, n)), int(rng.integers(0, n + 1)), int(rng.choice([1, 1, 1, 2, -1, -2])))
        return lo if rng.random() < 0.4 else slice(min(lo, hi), max(lo, hi)) if step == 1 else slice(None, None, step)

    for i in range(40):
        to, of = (tuple(part(n) for n in shape) for _ in range(2))
        if rng.random() < 0.5:
            x[to] += 1
            a[to] += 1
        elif x[to].shape == x[of].shape:
            x[to] = x[of].copy()
            a[to] = a[of]
        elif rng.random() < 0.5:
            x[to] = i
            a[to] = i
        if rng.random() < 0.1:
            assert a[of].tolist() == x[of].tolist(), (i, to, of)
    assert a.tolist() == x.tolist()


@pytest.mark.parametrize(
    "step",
    [
        lambda x, i: x.__setitem__(i % 4, x[i % 4] + 1),
        lambda x, i: x[i % 4 : i % 4 + 3].__iadd__(1),
        lambda x, i: x.__setitem__(nvm.asarray([i % 4]), i),
    ],
)
def test_thousands_of_writes_that_nobody_reads(step):
    x = nvm.zeros(16)
    start = time.process_time()
    for i in range(2000):
        step(x, i)
    x.eval()
    assert time.process_time() - start < 10


def test_small_views_of_borrowed_memory_show_it():
    """A view of few elements of a large array holds a copy of them, but not of memory that is somebody else's."""
    nvm.eval(nvm.ones(2))  # which settles the default device
    lent = np.zeros(70_000)
    a = nvm.asarray(lent, copy=False)
    for view in (a[:5], a[:5000], a[::1000]):
        assert np.shares_memory(np.asarray(view), lent)
