"""Views and writes: NumPy, arrays without jit and a jitted function agree. The table is that of docs/guide/views.md."""

import itertools
import os
import pathlib
import re
import threading

import numpy as np
import pytest

import nvm
import writes

PROGRAMS = int(os.environ.get("NVM_TEST_PROGRAMS", "120"))
BATCH, BATCHES = 100, int(os.environ.get("NVM_TEST_BATCHES", "50" if nvm.get_default_device() == "cpu" else "1"))


def agree(got, want):
    for g, w in zip(got[0], want[0], strict=True):
        np.testing.assert_array_equal(np.asarray(g), w)
    for g, w in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed):
    x, program = writes.random_program(seed)
    want = writes.run(np, x.copy(), program)
    agree(writes.run(nvm, nvm.asarray(x), program), want)
    if any(kind in ("mask", "masked") for _, kind, _, _ in program):
        return
    got = nvm.jit(lambda a: tuple(writes.run(nvm, a, program, True)))(x)
    agree(got, want)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs_without_jit(batch):
    for seed in range(PROGRAMS + batch * BATCH, PROGRAMS + (batch + 1) * BATCH):
        x, program = writes.random_program(seed)
        try:
            agree(writes.run(nvm, nvm.asarray(x), program), writes.run(np, x.copy(), program))
        except Exception as e:
            e.add_note(f"random_program({seed}) of {x.dtype} {x.shape}: {program}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_threads_write_and_read_parts_of_one_array(seed):
    """Each thread writes its rows through views and reads all through others; what it reads of another's row is a row
    that was written whole."""
    rows, columns = 6, 40
    a, wrong = nvm.zeros((rows, columns)), []

    def work(i):
        rng = np.random.default_rng(seed * rows + i)
        view, column = a[i], a.T
        for step in range(150):
            what = rng.integers(4)
            if what == 0:
                view[:] = float(step)
            elif what == 1:
                a[i, :] = nvm.full(columns, float(step)) * 1
            elif what == 2:
                view += 1
            other = int(rng.integers(rows))
            seen = [np.asarray(a[other]), np.asarray(column[:, other]), np.asarray(a[other] * 1)][rng.integers(3)]
            kept = seen.copy()
            if seen.min() != seen.max():
                wrong.append((i, step, seen))
            if not (a[i] == a[i, 0]).all():
                wrong.append((i, step, "own"))
            if not np.array_equal(seen, kept):
                wrong.append((i, step, "changed"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(rows)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_long_loop_of_writes_holds_no_memory():
    a = nvm.zeros((50, 50))

    def steps(n):
        for k in range(n):
            i = k % 50
            a[i, :] = a[:, i] * 0.5 + 1
            a[i, i] = float(a[i, i]) + a[i - 1, i]
            a[[i, i - 1], 3] = 2.0

    steps(200)
    before = nvm.counters()["bytes_used"]
    steps(3000)
    after = nvm.counters()["bytes_used"]
    assert after <= before


def table():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "guide" / "views.md").read_text()
    return re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|$", text, re.M)


def probe(xp, text, x):
    """Whether the expression is x itself, whether a write to it is refused, and what is left to compare."""
    y = eval(text, {"x": x, "z": x, "nvm": xp})
    before = y.copy()
    x[...] = -7
    seen = y.copy()
    try:
        y[...] = 50
    except TypeError:  # NumPy's scalars
        return y is x, "value", before, seen, x
    except ValueError:
        return y is x, "read-only", before, seen, x
    return y is x, "", before, seen, x


def relation(itself, refused, before, seen, x):
    x = np.asarray(x)
    sees, reaches = bool(np.any(np.asarray(before) != np.asarray(seen))), bool(np.any((x == 50) | (x.imag == 50)))
    if itself:
        return "itself"
    if refused:
        return refused + " view" * sees
    assert sees == reaches
    return "view" if sees else "copy"


MEANS = {
    "a view": "view",
    "a copy": "copy",
    "the element": "value",
    "a read-only view": "read-only view",
    "read-only": "read-only",
    "x itself": "itself",
}
ALIKE = {"itself": "view", "value": "copy"}  # told apart by `is` and by type alone


def alike(a, b):
    return ALIKE.get(a, a) == ALIKE.get(b, b)


def traced(text, n):
    known = []

    def f(x):
        itself, refused, *rest = probe(nvm, text, x)
        known.extend((itself, refused))
        return rest

    rest = nvm.jit(f)(n)
    return relation(*known[:2], *rest)


@pytest.mark.parametrize("text,what", table())
def test_table_of_views(text, what):
    want = MEANS[re.split(r"[:,] | of what| where| without", what.replace("of real numbers ", ""))[0]]
    n = np.arange(12.0).reshape(3, 4) + (1j if "z." in text else 0)
    if "to_device" in text:
        want = "copy"
    assert alike(relation(*probe(nvm, text, nvm.asarray(n))), want)
    if "broadcast_arrays" not in text and "to_device" not in text:
        assert alike(relation(*probe(np, text.replace("(12, copy=True)", "(12).copy()"), n.copy())), want)
    if "x > 3" not in text:
        assert alike(traced(text, n), want)


# ---- what is said below the table
def test_flip_of_an_element_is_a_view():
    x = nvm.asarray(np.arange(3.0))
    nvm.flip(x[1, ...])[...] = 7
    assert x.tolist() == [0, 7, 2] and not isinstance(np.flip(np.arange(3.0)[1, ...]), np.ndarray)


@pytest.mark.parametrize("i", [1, np.int64(1), nvm.asarray(1)], ids=repr)
def test_a_row_by_an_index_that_a_trace_does_not_know_is_a_copy(i):
    def view(x, i):
        r = x[i]
        r += 10
        return r * 1

    def write(x, i):
        x[i] = 5
        x[i] += 1
        return x * 1

    row = [13.0, 14.0, 15.0]
    for jit, kept in ((lambda f: f, row), (nvm.jit, [3.0, 4.0, 5.0])):
        x = nvm.asarray(np.arange(6.0).reshape(2, 3))
        assert jit(view)(x, i).tolist() == row and x[1].tolist() == kept
        x = nvm.asarray(np.arange(6.0).reshape(2, 3))
        assert jit(write)(x, i).tolist() == x.tolist() == [[0, 1, 2], [6, 6, 6]]


def test_two_views_of_one_array_of_which_one_is_written():
    def add(a, b):
        a += b
        return a.sum()

    x = nvm.asarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(ValueError, match="array 0 of its arguments, .*, of which array 1, .*, may show a part"):
        nvm.jit(add)(x[0], x[0, ::-1])
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    for f in (lambda x: add(x[0], x[1]), nvm.jit(lambda x: add(x[0], x[1])), lambda x: nvm.jit(add)(x[0], x[1])):
        x = nvm.asarray(np.arange(6.0).reshape(2, 3))
        assert float(f(x)) == 15 and x.tolist() == [[3, 5, 7], [3, 4, 5]]


# ---- arguments that a jitted function writes to
def add_one(a):
    a += 1
    return a.sum()


def set_part(a):
    a[1:3] = a[:2] * 2
    return a * 1


def through_views(a):
    a.T[0] = 9
    a[1:, ::-1][..., -1] = -9
    return a[::2] * 1


def leave(a):
    a = a + 1
    return a * 2


def write_back(a):
    a[0], a[1] = a[1] * 1, a[0] * 1
    a[[0, 2]] = 5
    return ()


PROGRAMS_OF_ONE = [add_one, set_part, through_views, leave, write_back]


@pytest.mark.parametrize("program", PROGRAMS_OF_ONE)
@pytest.mark.parametrize("kind", ["nvm", "numpy", "view", "numpy view", "pending"])
def test_writes_to_arguments_reach_the_caller(program, kind):
    base = np.arange(24.0).reshape(4, 6)
    want, mine, theirs = base.copy(), nvm.asarray(base), base.copy()
    made = {
        "nvm": lambda: mine,
        "numpy": lambda: theirs,
        "view": lambda: mine.T[1:, ::-1],
        "numpy view": lambda: theirs.T[1:, ::-1],
        "pending": lambda: mine,
    }[kind]
    if kind == "pending":
        mine = nvm.asarray(base / 2) * 2
    f = nvm.jit(program)
    for _ in range(2):
        expected = program(want.T[1:, ::-1] if "view" in kind else want)
        got = f(made())
        np.testing.assert_array_equal(np.asarray(got), expected)
        np.testing.assert_array_equal(np.asarray(theirs if "numpy" in kind else mine), want)


def both(a, b):
    a[0] = b[1] + 10
    b[2] = a[0] * 2
    return a + b


@pytest.mark.parametrize("make", [nvm.asarray, np.copy])
def test_one_array_that_is_given_twice(make):
    f = nvm.jit(both)
    for twice in (False, True, False, True):
        n, m = np.arange(4.0), np.arange(4.0) * 3
        a, b = make(n), make(m)
        want, got = both(n, n if twice else m), f(a, a if twice else b)
        np.testing.assert_array_equal(np.asarray(got), want)
        np.testing.assert_array_equal(np.asarray(a), n)
        np.testing.assert_array_equal(np.asarray(b), m)
    assert f.cache_size() <= 3


def test_writes_to_arguments_in_containers():
    def step(state, *, scale):
        for w, g in state["layers"]:
            w -= scale * g
        state["count"][...] += 1
        return {"loss": sum(layer[0].sum() for layer in state["layers"])}

    def state(make):
        return {"layers": [(make(np.ones(3) * k), make(np.arange(3.0))) for k in (1, 2)], "count": make(np.zeros(()))}

    n, a, j = state(np.copy), state(nvm.asarray), state(nvm.asarray)
    f = nvm.jit(step)
    for _ in range(3):
        losses = [float(g(s, scale=0.5)["loss"]) for g, s in ((step, n), (step, a), (f, j))]
        assert losses[0] == losses[1] == losses[2]
    for s in (a, j):
        for (w, g), (x, h) in zip(n["layers"], s["layers"]):
            np.testing.assert_array_equal(np.asarray(x), w)
            np.testing.assert_array_equal(np.asarray(h), g)
        assert float(s["count"]) == 3


def test_numbers_are_the_functions_own():
    def f(a, s):
        s += 1
        return a * s

    x, g = nvm.ones(2), nvm.jit(f)
    for s in (2, 2.0, np.float64(2), np.int32(2)):
        np.testing.assert_array_equal(np.asarray(g(x, s)), [3, 3])
        assert s == 2


def test_nested_functions_write_to_the_arguments_of_the_outer_one():
    inner = nvm.jit(lambda a: a.__setitem__(0, 5.0))
    outer = nvm.jit(lambda a: (inner(a), inner(a[2:]), a.sum())[2])
    a = nvm.zeros(4)
    assert float(outer(a)) == 10 and a.tolist() == [5, 0, 5, 0]


def test_a_donated_argument_is_the_functions_own():
    f = nvm.jit(lambda a: a.__setitem__(0, 5.0) or a.sum(), donate_argnums=0)
    assert float(f(nvm.ones(3) * 1)) == 7


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "arg",
    [
        lambda: read_only(np.ones(3)),
        lambda: nvm.broadcast_to(nvm.ones(1), (3,)),
        lambda: memoryview(np.ones(3).tobytes()).cast("d"),
        lambda: nvm.ones((3, 3)).diagonal(),
    ],
)
def test_what_cannot_be_written_is_an_error(arg):
    x = arg()
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            nvm.jit(add_one)(x)
    assert float(nvm.jit(leave)(x)[0]) == 4
    f = nvm.jit(add_one)
    f(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        f(x)


@pytest.mark.parametrize("make", [nvm.asarray, np.copy])
def test_parts_of_one_array_that_is_written(make):
    x = make(np.arange(6.0))
    with pytest.raises(ValueError, match="of which array 1, .*, may show a part"):
        nvm.jit(both)(x[1:], x[:-1])
    assert np.asarray(x).tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(np.asarray(nvm.jit(lambda a, b: a + b)(x[1:], x[:-1])), [1, 3, 5, 7, 9])


def test_a_call_that_fails_writes_nothing():
    f = nvm.jit(lambda a, i: (a.__setitem__(0, 9.0), nvm.take(a, i))[1])
    a = nvm.arange(4.0)
    with pytest.raises(IndexError):
        f(a, nvm.asarray([7]))
    assert a.tolist() == [0, 1, 2, 3]


def test_a_captured_array_that_is_written_as_an_argument():
    w = np.arange(4.0)
    f = nvm.jit(lambda a: (a.__setitem__(0, 7.0), a * w)[1])
    with pytest.raises(ValueError, match="which it captures"):
        f(w)
    np.testing.assert_array_equal(np.asarray(f(w.copy())), [0, 1, 4, 9])


def test_a_captured_part_of_nvm_of_what_is_written_as_an_argument():
    x = nvm.arange(6.0)
    low, high = x[:3], x[3:]

    def write(a):
        a[...] = a + 1
        return high.sum() + a

    f = nvm.jit(write)
    for refused in (x, x[2:5], high):
        with pytest.raises(ValueError, match="which an array of 1 dimensions that it captures"):
            f(refused)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert f(low).tolist() == [13, 14, 15] and x.tolist() == [1, 2, 3, 3, 4, 5]
    high[0] = 10.0
    assert f(low).tolist() == [21, 22, 23]


def test_transposed_views_of_what_has_a_value_are_planned_as_such(rng):
    """The way that a product reads, and its bits, are the same whenever the view is made: the two are one matrix."""
    x, w = (nvm.asarray(rng.standard_normal(shape)).eval() for shape in ((1, 2000), (300, 2000)))
    pending = x @ (w * 1).T
    first = x @ w.T
    plan = nvm.explain(first)
    assert "row-reduce" in plan
    for _ in range(3):
        again = x @ w.T
        assert nvm.explain(again) == plan
        assert np.asarray(again).tobytes() == np.asarray(first).tobytes() == np.asarray(pending).tobytes()
    assert "reads 4.8 MB" in nvm.explain((w.T * w.T).sum() + w.sum())  # one matrix, read once
    for _ in range(2):
        assert "reads 4.784 MB" in nvm.explain(w[1:] - w[:-1])


PARTS = [
    lambda x: x[8:13],  # in rows of 6 it goes on in the next row
    lambda x: x[3:0:-1],
    lambda x: x[::-1],
    lambda x: x[::2],
    lambda x: x[1::2],
    lambda x: x[20:2:-3],
    lambda x: x.reshape(4, 6)[:, 1],
    lambda x: x.reshape(4, 6)[:, 4:],
    lambda x: x.reshape(4, 6)[:, ::-2],
    lambda x: x.reshape(4, 6)[::-1, 3],
    lambda x: x.reshape(4, 6)[2:0:-1],
    lambda x: x.reshape(4, 6).T[2:4],
    lambda x: x.reshape(2, 3, 4)[:, :, 1],
    lambda x: x.reshape(2, 3, 4)[:, 1, ::-1],
]


def test_what_reads_a_part_later_does_not_see_a_write_to_another():
    for written, read in itertools.product(PARTS, PARTS):
        x = np.arange(24.0)
        a = nvm.asarray(x).copy()
        shown = read(a)
        waiting, want = shown * 1, read(x) * 1
        written(a)[...] = -1
        written(x)[...] = -1
        np.testing.assert_array_equal(waiting, want)
        np.testing.assert_array_equal(a, x)
        np.testing.assert_array_equal(shown, read(x))


def test_elements_of_views_of_borrowed_memory():
    x = np.arange(24.0).reshape(4, 6)
    for lent in (x.T, x[::-1], x[:, ::2], np.broadcast_to(x[0], (3, 6))):
        a, rows = nvm.from_dlpack(lent), lent[1:]
        assert float(a[1:][1, 2]) == rows[1, 2] and float(a.T[2, 1]) == lent[1, 2] and float(a[1, 2]) == lent[1, 2]


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 1), (1, 3), (2, 1), (2, 3), (1, 2, 1)])
def test_values_with_extents_of_one_are_repeated(shape):
    x, value = np.zeros((4, 3)), 1 + np.arange(float(np.prod(shape))).reshape(shape)
    a = nvm.asarray(x).copy()
    a[1:3] = nvm.asarray(value)
    x[1:3] = value
    np.testing.assert_array_equal(a, x)
