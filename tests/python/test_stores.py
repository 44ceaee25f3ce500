"""What a jitted function writes to a part of an argument is stored there: in place where nothing else holds the array,
in memory of NumPy's too, and never where somebody holds the old value. NumPy does the same without jit."""

import os

import numpy as np
import pytest

import nvm
import writes

PROGRAMS = int(os.environ.get("NVM_TEST_PROGRAMS", "120"))
on_cpu = pytest.mark.skipif(nvm.get_default_device() != "cpu", reason="stores are made in host memory")


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


# What the function is given, as a part of a larger array: its axes in the order of memory or not, apart, backwards.
LAYOUTS = {
    "all": (lambda shape: shape, lambda big: big),
    "rows": (lambda shape: (shape[0] + 2, *shape[1:]), lambda big: big[1:-1]),
    "transposed": (lambda shape: shape[::-1], lambda big: big.T),
    "apart": (lambda shape: tuple(2 * n for n in shape), lambda big: big[(slice(1, None, 2),) * big.ndim]),
    "backwards": (lambda shape: (*shape, 3), lambda big: big[..., 1][::-1]),
}


def holders(big):
    """Things that hold what the array shows now."""
    return [big.copy(), big * 1, np.asarray(big), big[-1:] + 0]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs_write_to_their_argument(seed, layout):
    x, program = writes.random_program(seed)
    if any(kind in ("mask", "masked") for _, kind, _, _ in program):
        return
    shape, part = LAYOUTS[layout]
    start = np.arange(float(np.prod(shape(x.shape)))).reshape(shape(x.shape)).astype(x.dtype)
    part(start)[...] = x
    want, lent, own = start.copy(), start.copy(), nvm.asarray(start)
    f = nvm.jit(lambda a: tuple(writes.run(nvm, a, program, True)))
    for held in (False, True, False):
        old = holders(own) if held else []
        before = [h.copy() for h in (want, want * 1, want, want[-1:])]
        rows = part(want).copy()  # in a trace arguments lie in row-major order
        names, reads = writes.run(np, rows, program)
        part(want)[...] = rows
        for got in f(part(own)), f(part(lent)):
            for g, w in zip(got[0], names, strict=True):
                np.testing.assert_array_equal(np.asarray(g), w)
            for g, w in zip(got[1], reads, strict=True):
                np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12)
        np.testing.assert_array_equal(np.asarray(own), want)
        np.testing.assert_array_equal(lent, want)
        for h, b in zip(old, before):
            np.testing.assert_array_equal(np.asarray(h), b)


def scale(a, v):
    a[3:6] *= v


def columns(a, v):
    a.reshape(8, 8)[:, 1] = v


def scatter(a, v):
    a[nvm.asarray([5, 9, 5])] = nvm.stack([v, v + 1, v + 2])


def several(a, v):
    for i in range(4):
        a[10 * i] = v + i
    a[1:4] = a[10:13] + a[0]


def through_views(a, v):
    b = a[8:24][::-1]
    b[2:4] = v
    b[:2] = b[2:4] + 1


@on_cpu
@pytest.mark.parametrize("write", [scale, columns, scatter, several, through_views])
def test_a_part_is_stored_in_place_where_nobody_else_holds_the_array(write):
    f, a, v = nvm.jit(write), nvm.arange(64.0) * 1, nvm.asarray(7.0)
    before = address(a)
    f(a, v)
    assert address(a) == before and "stored, in place" in f.explain(a, v)
    want, lent = np.asarray(a).copy(), np.arange(64.0)
    f(lent, v)
    np.testing.assert_array_equal(lent, want)
    held = a.copy()
    f(a, v + 1)
    np.testing.assert_array_equal(np.asarray(held), want)
    assert address(a) != before
    before = address(a)
    f(a, v)
    assert address(a) == before
    big = nvm.ones((3, 64)) * 1
    before = address(big)
    f(big[1], v)
    assert address(big) == before and (big == 1).all(axis=1).tolist() == [True, False, True]


@on_cpu
def test_what_is_mostly_written_is_computed_as_a_whole():
    f = nvm.jit(lambda a: a.__setitem__(slice(1, None), 2.0))
    assert "stored" not in f.explain(nvm.zeros(64))


def test_a_result_that_is_a_written_argument():
    """It is an array of its own: neither sees later writes to the other."""

    def f(a, v):
        a[2:4] = v
        return a

    for a in (nvm.zeros(32) * 1, np.zeros(32)):
        g = nvm.jit(f)
        r = g(a, 1.0)
        s = g(a, 2.0)
        r[0] = 9.0
        assert np.asarray(r)[:5].tolist() == [9, 0, 1, 1, 0]
        assert np.asarray(s)[:5].tolist() == np.asarray(a)[:5].tolist() == [0, 0, 2, 2, 0]
    a = nvm.zeros(32) * 1
    for i in range(3):
        a = g(a, float(i))
    assert np.asarray(a)[:5].tolist() == [0, 0, 2, 2, 0]


def test_a_result_shows_what_was_there_when_it_was_taken():
    def f(a, v):
        old, shown = a[2:4] + 0, a[2:4]
        a[2:4] = v
        return old, shown, a[1:3]

    a = nvm.arange(32.0)
    old, shown, later = nvm.jit(f)(a, 7.0)
    assert old.tolist() == [2, 3] and shown.tolist() == [7, 7] and later.tolist() == [1, 7]
    a[...] = 0
    assert old.tolist() == [2, 3] and shown.tolist() == [7, 7] and later.tolist() == [1, 7]


def test_an_argument_that_is_given_twice():
    def f(a, b, v):
        a[0] = v
        b[1:3] = a[:2] + 1
        return a[:4] * 1

    for a in (nvm.zeros(32) * 1, np.zeros(32)):
        g = nvm.jit(f)
        assert g(a, a, 5.0).tolist() == [5, 6, 1, 0] and np.asarray(a)[:4].tolist() == [5, 6, 1, 0]
        b = np.zeros(32) if isinstance(a, np.ndarray) else nvm.zeros(32) * 1
        assert g(a, b, 6.0).tolist() == [6, 6, 1, 0] and np.asarray(b)[:4].tolist() == [0, 7, 7, 0]


@pytest.mark.parametrize("make", [lambda x: nvm.asarray(x).copy(), np.copy])
def test_a_call_whose_indices_are_out_of_range_stores_nothing(make):
    def f(a, b, i, j):
        a[0] = 1.0
        a[i] = 2.0
        b[1:3] = 3.0
        b[j, None] = 4.0

    g, a, b = nvm.jit(f), make(np.zeros(40)), make(np.zeros(60))
    g(a, b, nvm.asarray([1, -1]), nvm.asarray([[7]]))
    assert np.asarray(a).sum() == 5 and np.asarray(b).sum() == 10
    before = np.asarray(a).copy(), np.asarray(b).copy()
    for i, j in ((40, 0), (0, 60), (0, -61)):
        with pytest.raises(
            IndexError, match=r"\[setitem\] (an )?index( -?\d+)? is out of range for axis 0 of extent [46]0"
        ):
            g(a, b, nvm.asarray([0, i]), nvm.asarray([[j]]))
        np.testing.assert_array_equal(np.asarray(a), before[0])
        np.testing.assert_array_equal(np.asarray(b), before[1])


@pytest.mark.parametrize(
    "key", [([0, 2, 0],), ([1, -1], slice(None, None, 2)), (slice(1, 3), [[0], [3]], [1, 2]), (1, [0, 0])]
)
def test_index_arrays_in_a_trace(key, rng):
    """Numbers, and values of every shape that is broadcast; whatever is in the argument's neighbourhood stays."""
    x = rng.standard_normal((5, 6, 7))
    at = tuple(nvm.asarray(k) if isinstance(k, list) else k for k in key)
    for shape in ((), x[key].shape, x[key].shape[1:], (1, *x[key].shape[1:])):
        value = rng.standard_normal(shape)
        want, a, b = x.copy(), nvm.asarray(x).copy(), x.copy()
        want[key] = value
        f = nvm.jit(lambda a, v: (a.__setitem__(at, v), a.sum(axis=0))[1])
        for w in (a, b):
            np.testing.assert_allclose(np.asarray(f(w, nvm.asarray(value))), want.sum(axis=0), rtol=1e-12)
            np.testing.assert_array_equal(np.asarray(w), want)


def test_a_pending_argument_and_a_view_of_one():
    a = nvm.arange(64.0) + 1
    scale = nvm.jit(lambda a: a.__setitem__(slice(0, 2), 0.0))
    scale(a)
    b = (nvm.arange(64.0) + 1).reshape(8, 8)
    scale(b[3])
    big = nvm.arange(1 << 17) + 1  # pending after the write to a view of it as well
    scale(big[5:])
    assert a[:3].tolist() == [0, 0, 3] and b[3, :3].tolist() == [0, 0, 27] and big[4:8].tolist() == [5, 0, 0, 8]


def test_real_parts_and_narrow_floats():
    def f(z, h, n):
        z.real[2:4] = 7.0
        z.imag[3] = n
        h[1:3] += 0.1
        h[5] = n

    z, h = nvm.zeros(40, dtype="complex64") * 1, nvm.zeros(40, dtype="float16") * 1
    w, k = np.zeros(40, "complex64"), np.zeros(40, "float16")
    for n in (2.5, 1 / 3):
        nvm.jit(f)(z, h, n)
        f(w, k, n)
    np.testing.assert_array_equal(np.asarray(z), w)
    np.testing.assert_array_equal(np.asarray(h), k)


def test_the_body_of_a_loop_writes_parts_too():
    def f(a, v):
        def body(i, c):
            c[2 * i] = v + i
            c[1:2] += 1.0
            return c

        a[:16] = nvm.fori_loop(0, 4, body, a[:16] * 1)

    a, b = nvm.zeros(128) * 1, np.zeros(128)
    for w in (a, b):
        nvm.jit(f)(w, 10.0)
        assert np.asarray(w)[:9].tolist() == [10, 4, 11, 0, 12, 0, 13, 0, 0]


@on_cpu
@pytest.mark.parametrize("part", [lambda a: a[5:15], lambda a: a.reshape(256, -1)[:, 7], lambda a: a[200::-3]])
def test_what_waits_for_a_few_elements_of_a_large_array_does_not_hold_it(part):
    x = np.arange(float(1 << 17))
    a = nvm.asarray(x).copy()
    a[0] = x[0] = -1.0
    before, shown = address(a), part(a)
    waiting, want = (shown * 2, shown.sum()), (part(x) * 2, part(x).sum())
    for k in range(3):
        a[6:9] = x[6:9] = k
        a.reshape(256, -1)[3:5, 7] = k
        x.reshape(256, -1)[3:5, 7] = k
        assert address(a) == before
        np.testing.assert_array_equal(np.asarray(shown), part(x))
        np.testing.assert_array_equal(np.asarray(a), x)
    for w, v in zip(waiting, want):
        np.testing.assert_allclose(np.asarray(w), v, rtol=1e-12)
