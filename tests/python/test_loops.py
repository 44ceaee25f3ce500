"""fori_loop, while_loop, cond and scan: the bits of the same loop in Python, NumPy's values, what may be nested in
what, writes in place, and what is refused."""

import threading
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nvm

FLOATS = ["float64", "float32"]
ON_CPU = nvm.zeros(1).device.type == "cpu"  # a GPU reports indices when values are read, and does not know the step
DTYPES = FLOATS + ["int64", "int32", "uint8", "complex128", "float16"]


def python_fori(lower, upper, body, carry):
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


def evaluated(body):
    """The body, whose results are evaluated after each step: so are carries, where 16 bits are rounded."""

    def step(i, carry):
        carry = body(i, carry)
        nvm.eval(*leaves(carry))
        return carry

    return step


def bits(x):
    x = np.asarray(x)
    return x.dtype, x.shape, x.tobytes()


def read(x):
    return [np.asarray(y) for y in leaves(x)]


def leaves(x):
    if isinstance(x, dict):
        x = list(x.values())
    return [y for z in x for y in leaves(z)] if isinstance(x, (tuple, list)) else [] if x is None else [x]


def is_same(a, b):
    a, b = leaves(a), leaves(b)
    assert [bits(x) for x in a] == [bits(y) for y in b]


# ---- random bodies: instructions over carries of one shape, of several dtypes


def steps_of(draw, n, rank):
    kinds = ["scale", "add", "swap", "where", "index", "flip", "outside", "keep", "mean", "roll"]
    kinds += ["write", "write_last", "read", "write_two", "row"] if rank else []
    return [
        (draw(st.sampled_from(kinds)), draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1)))
        for _ in range(draw(st.integers(1, 6)))
    ]


def as_dtype(xp, b, dtype):
    """b in this dtype; what no integer of it is becomes 0, since NumPy leaves open what these are."""
    if dtype.kind != "c":
        b = xp.real(b)
    if dtype.kind in "iu" and b.dtype.kind in "fi":
        least = 0 if dtype.kind == "u" else -100
        b = xp.where((b >= least) & (b < 100), b, xp.zeros_like(b))
    return b.astype(dtype)


def run_step(xp, step, i, c, outside):
    kind, j, k = step
    a, b = c[j], as_dtype(xp, c[k], c[j].dtype)
    if kind == "scale":
        c[j] = a * 3 if a.dtype.kind in "iub" else a * 0.75
    elif kind == "add":
        c[j] = a + b
    elif kind == "swap":
        c[j], c[k] = (c[k], c[j]) if c[k].dtype == c[j].dtype else (c[j], c[k])
    elif kind == "where":
        c[j] = xp.where(xp.real(a) > xp.real(b), a, b + 1)
    elif kind == "index":
        c[j] = a + xp.asarray(i % 3).astype(a.dtype)
    elif kind == "flip":
        c[j] = xp.flip(a)
    elif kind == "outside":
        c[j] = a - as_dtype(xp, outside, a.dtype)
    elif kind == "mean":
        c[j] = a - xp.asarray(xp.max(xp.real(a))).astype(a.dtype) if a.size else a
    elif kind == "roll":
        c[j] = xp.roll(a, 1)
    elif kind == "write":
        a[i % a.shape[0]] = 2
    elif kind == "write_last":
        a[-1 - i % a.shape[0]] = b[i % a.shape[0]]
    elif kind == "write_two":
        a[i % a.shape[0]] = a[(i + 1) % a.shape[0]] + a[i % a.shape[0]]
        a[0] = a[i % a.shape[0]] - a[0]
    elif kind == "read":
        c[j] = a + b[i % a.shape[0]]
    elif kind == "row":
        a[1:] = b[:-1]


@st.composite
def loops(draw):
    shape = draw(st.sampled_from([(), (1,), (5,), (3, 4), (4, 3, 2)]))
    dtypes = draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4))
    seed = draw(st.integers(0, 1000))
    return shape, dtypes, seed, steps_of(draw, len(dtypes), len(shape)), draw(st.integers(0, 6)), draw(st.booleans())


def values(shape, dtypes, seed):
    rng = np.random.default_rng(seed)
    made = [
        np.asarray(rng.integers(-20, 20, shape) * (0.25 if np.dtype(t).kind in "fc" else 1)).astype(t) for t in dtypes
    ]
    for a in made:
        if a.dtype.kind == "f" and a.size and seed % 3 == 0:
            a.reshape(-1)[seed % a.size] = [np.nan, np.inf, -0.0][seed % 9 // 3]
    return made


def body_of(xp, instructions, outside):
    def body(i, carry):
        carry = list(carry)
        for step in instructions:
            run_step(xp, step, i, carry, outside)
        return tuple(carry)

    return body


@settings(max_examples=60 if ON_CPU else 5, deadline=None)
@given(loops())
def test_random_bodies(case):
    shape, dtypes, seed, instructions, n, jitted = case
    start = values(shape, dtypes, seed)
    outside = nvm.asarray(values(shape, ["float64"], seed + 1)[0])
    body = body_of(nvm, instructions, outside)

    def loop(c):
        return nvm.fori_loop(1, 1 + n, body, c)

    got = (nvm.jit(loop) if jitted else loop)(tuple(map(nvm.asarray, start)))
    is_same(got, python_fori(1, 1 + n, evaluated(body), tuple(nvm.array(x) for x in start)))
    with np.errstate(all="ignore"):
        want = python_fori(1, 1 + n, body_of(np, instructions, np.asarray(outside)), tuple(x.copy() for x in start))
    for x, y in zip(got, want):
        np.testing.assert_allclose(
            np.asarray(x).astype("c16"), y.astype("c16"), rtol=1e-2 if x.dtype == nvm.float16 else 1e-5
        )


@settings(max_examples=15 if ON_CPU else 2, deadline=None)
@given(loops())
def test_fusion_does_not_change_a_bit(case):
    shape, dtypes, seed, instructions, n, _ = case
    body = body_of(nvm, instructions, nvm.asarray(values(shape, ["float64"], seed + 1)[0]))
    start = tuple(map(nvm.asarray, values(shape, dtypes, seed)))
    fused = nvm.fori_loop(0, n, body, start)
    nvm.set("fuse", "off")
    try:
        is_same(nvm.fori_loop(0, n, body, start), fused)
    finally:
        nvm.set("fuse", None)


# ---- random nests: loops and choices in each other, around one carry


@st.composite
def nests(draw, depth=3):
    kind = draw(st.sampled_from(["fori", "scan", "while", "cond", "leaf"] if depth else ["leaf"]))
    parts = [draw(nests(depth=depth - 1)) for _ in range(draw(st.integers(1, 2)))] if kind != "leaf" else []
    return kind, draw(st.integers(0, 3)), parts


def run_nest(xp, loops, nest, c, outer):
    """The carry behind a nest; xp and loops: nvm with its loops, or NumPy with those of Python."""
    kind, n, parts = nest
    fori, scan, whiles, cond = loops

    def inside(c, i):
        before = c
        for part in parts:
            c = run_nest(xp, loops, part, c, outer + i)
        return c + 0.25 * before + i

    if kind == "fori":
        return fori(0, n, lambda i, c: inside(c, i), c)
    if kind == "scan":
        c, ys = scan(
            lambda c, x: (inside(c, x), c * x), c, xp.stack([outer + k for k in range(n)]) if n else xp.zeros(0)
        )
        return c + xp.sum(ys) if n else c
    if kind == "while":
        return whiles(lambda s: s[0] < n, lambda s: (s[0] + 1, inside(s[1], 0.5)), (xp.asarray(0), c))[1]
    if kind == "cond":
        return cond(xp.max(c) > n, lambda c: inside(c, 1), lambda c: c * 0.5, c)
    if n == 3:
        c = xp.flip(c) * outer
        c[0] = c[1] + n
        return c
    return c * 0.5 - outer * n


def python_scan(f, c, xs):
    ys = []
    for x in xs:
        c, y = f(c, x)
        ys.append(y)
    return c, np.array(ys)


def python_while(test, body, c):
    while test(c):
        c = body(c)
    return c


def python_cond(p, yes, no, *operands):
    return yes(*operands) if p else no(*operands)


@settings(max_examples=40 if ON_CPU else 2, deadline=None)
@given(nests(), st.booleans())
def test_random_nests(nest, jitted):
    x = np.array([1.0, -0.5, 0.25])

    def loop(c, outer):
        return run_nest(nvm, (nvm.fori_loop, nvm.scan, nvm.while_loop, nvm.cond), nest, c, outer)

    got = (nvm.jit(loop) if jitted else loop)(nvm.asarray(x), nvm.asarray(0.75))
    with np.errstate(all="ignore"):
        want = run_nest(np, (python_fori, python_scan, python_while, python_cond), nest, x.copy(), np.asarray(0.75))
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


# ---- each kind of loop


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3), (2, 0)])
def test_scan_is_numpys_loop(shape, dtype, jitted):
    rng = np.random.default_rng(1)
    xs, start = rng.integers(0, 9, (5, *shape)).astype(dtype), rng.integers(0, 9, shape).astype(dtype)

    def loop(c, xs):
        return nvm.scan(lambda c, x: (c + x, (c - x, x)), c, xs)

    c, (ys, same) = (nvm.jit(loop) if jitted else loop)(nvm.asarray(start), nvm.asarray(xs))
    carry, want = start, np.empty_like(xs)
    for i, x in enumerate(xs):
        want[i], carry = carry - x, (carry + x).astype(dtype)
    is_same((c, ys, same), (carry, want, xs))


def test_scan_backwards_by_length_and_without_rows():
    xs = nvm.arange(6.0).reshape((3, 2))
    c, ys = nvm.scan(lambda c, x: (c * 2 + x, c), nvm.zeros(2), xs, reverse=True)
    carry, want = np.zeros(2), np.empty((3, 2))
    for i in (2, 1, 0):
        want[i], carry = carry, carry * 2 + np.asarray(xs)[i]
    is_same((c, ys), (carry, want))
    c, ys = nvm.scan(lambda c, x: (c + 1, None if x is not None else c), 0, None, length=4)
    assert int(c) == 4 and ys.tolist() == [0, 1, 2, 3]
    c, ys = nvm.scan(lambda c, x: (c + x, x), nvm.asarray(1.5), nvm.zeros((0,)))
    assert float(c) == 1.5 and ys.shape == (0,)
    c, ys = nvm.scan(lambda c, x: (c, None), nvm.asarray(1.5), None, length=0)
    assert float(c) == 1.5 and ys is None
    # rows that do not begin at multiples of 16 bytes, of a transposed array, and of one that repeats itself
    for xs in (
        nvm.arange(15.0).reshape((5, 3)),
        nvm.arange(15.0).reshape((3, 5)).T,
        nvm.broadcast_to(nvm.arange(3.0), (5, 3)),
    ):
        c, ys = nvm.scan(lambda c, x: (c + x, c * x), nvm.ones(3), xs)
        carry, want = np.ones(3), []
        for x in np.asarray(xs):
            want.append(carry * x)
            carry = carry + x
        is_same((c, ys), (carry, np.array(want)))


@pytest.mark.parametrize("jitted", [False, True])
def test_while_loop(jitted):
    def collatz(n):
        def body(c):
            n, steps = c
            return nvm.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return nvm.while_loop(lambda c: c[0] != 1, body, (n, nvm.asarray(0)))

    f = nvm.jit(collatz) if jitted else collatz
    for n in (1, 2, 27, 97):
        m, steps = n, 0
        while m != 1:
            m, steps = (m // 2 if m % 2 == 0 else 3 * m + 1), steps + 1
        assert int(f(nvm.asarray(n))[1]) == steps


@pytest.mark.parametrize("jitted", [False, True])
def test_cond_runs_one_branch(jitted):
    x = nvm.arange(4.0)

    def choose(p, i):
        return nvm.cond(p, lambda x, i: {"a": x[i], "b": x}, lambda x, i: {"b": x * 2, "a": x[0]}, x, i)

    f = nvm.jit(choose) if jitted else choose
    yes, no = f(nvm.asarray(True), nvm.asarray(3)), f(nvm.asarray(False), nvm.asarray(99))  # 99 is out of range
    assert (float(yes["a"]), float(no["a"])) == (3, 0) and no["b"].tolist() == [0, 2, 4, 6]
    with pytest.raises(IndexError, match="out of range for axis 0 of extent 4"):
        read(f(nvm.asarray(True), nvm.asarray(99)))
    assert float(nvm.cond(3, lambda: 1.0, lambda: 2.0)) == 1 and float(nvm.cond(x[0], lambda: 1.0, lambda: 2.0)) == 2


# ---- nesting, captures, trees


def test_loops_in_loops():
    def inner(c, n):
        return nvm.fori_loop(0, n, lambda j, d: d * 0.5 + j, c)

    def outer(c):
        def body(i, c):
            c = inner(c, i)
            c = nvm.cond(nvm.sum(c) > 4, lambda c: c - 1, lambda c: c + i, c)
            total, parts = nvm.scan(lambda s, x: (s + x, s), nvm.asarray(0.0), c)
            return nvm.while_loop(lambda c: nvm.max(c) > 2, lambda c: c / 2, c + parts)

        return nvm.fori_loop(0, 7, body, c)

    def plain(c):
        for i in range(7):
            for j in range(i):
                c = c * 0.5 + j
            c = c - 1 if c.sum() > 4 else c + i
            s, parts = 0.0, []
            for x in c:
                parts.append(s)
                s = s + x
            c = c + np.array(parts)
            while c.max() > 2:
                c = c / 2
        return c

    x = np.array([1.0, -2.0, 0.5])
    is_same(outer(nvm.asarray(x)), plain(x))
    is_same(nvm.jit(outer)(nvm.asarray(x)), plain(x))
    is_same(nvm.jit(lambda x: nvm.jit(outer)(x))(nvm.asarray(x)), plain(x))


def test_what_is_around_a_loop_is_computed_once():
    def f(x, w):
        h = x @ w
        a = nvm.fori_loop(0, 3, lambda i, c: c * h, h)
        b = nvm.fori_loop(0, 2, lambda i, c: c + a, h + 1)
        return a, b, h, a

    x, w = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    h = x @ w
    a = h * h * h * h
    is_same(nvm.jit(f)(nvm.asarray(x), nvm.asarray(w)), (a, h + 1 + a + a, h, a))
    assert nvm.jit(f).explain(nvm.asarray(x), nvm.asarray(w)).count(". gemm:") == 1


def test_captured_arrays_are_read_again():
    a, b = nvm.asarray(np.arange(3.0)), np.ones(3)

    @nvm.jit
    def f(x, scale):
        def body(i, c):
            return nvm.fori_loop(0, 2, lambda j, d: d + a * scale + b, c)

        return nvm.fori_loop(0, 2, body, x)

    assert f(nvm.zeros(3), 2).tolist() == [4, 12, 20]
    a[...] = 0
    b[...] = 5
    assert f(nvm.zeros(3), 3).tolist() == [20, 20, 20]
    assert nvm.fori_loop(0, 2, lambda i, c: c + a + b, nvm.zeros(3)).tolist() == [10, 10, 10]


def test_trees_of_carries():
    Point = namedtuple("Point", "x y")
    start = {"p": Point(nvm.ones(2), 1), "l": [2.5, None], "t": ()}
    got = nvm.fori_loop(
        0, 3, lambda i, c: {"t": (), "l": [c["l"][0] + i, None], "p": c["p"]._replace(y=c["p"].y * 2)}, start
    )
    assert isinstance(got["p"], Point) and int(got["p"].y) == 8 and float(got["l"][0]) == 5.5 and got["t"] == ()


def test_bounds():
    f = nvm.jit(lambda lo, hi: nvm.fori_loop(lo, hi, lambda i, c: c + i, 0))
    for lo, hi in ((0, 5), (-3, 3), (5, 5), (6, 2), (2**40, 2**40 + 2)):
        assert int(f(lo, hi)) == sum(range(lo, hi))
    for t in (nvm.int8, nvm.uint16, nvm.int64):
        assert int(f(nvm.asarray(3, dtype=t), nvm.asarray(7, dtype=t))) == 18
    assert int(nvm.fori_loop(np.int64(1), nvm.asarray(4), lambda i, c: c * i, 1)) == 6
    assert int(nvm.jit(lambda n: nvm.fori_loop(0, n * 2 - 1, lambda i, c: c + 1, 0))(4)) == 7


def test_the_index_takes_the_dtype_of_what_it_meets():
    start = nvm.ones(3, dtype=nvm.float32)
    is_same(
        nvm.fori_loop(0, 5, lambda i, c: c * i + c / (i + c), start),
        python_fori(0, 5, lambda i, c: c * i + c / (i + c), start),
    )
    with pytest.raises(OverflowError, match=r"\[fori_loop\] the index runs from 0 to 199, and .* does not hold all"):
        nvm.fori_loop(0, 200, lambda i, c: c + i, nvm.zeros(2, dtype=nvm.int8))


# ---- writes


def test_writes_to_elements_are_in_place():
    s = np.random.default_rng(0).standard_normal(50)

    def body(i, x):
        x[i] = x[i - 1] * 0.5 + s[i] if isinstance(x, np.ndarray) else x[i - 1] * 0.5 + t[i]
        return x

    t = nvm.asarray(s)
    f = nvm.jit(lambda x: nvm.fori_loop(1, 50, body, x))
    assert "stores in place: 1" in f.explain(t)
    is_same((f(t), t), (python_fori(1, 50, body, s.copy()), s))


def test_writes_of_rows_and_through_computed_indices():
    order = nvm.asarray(np.random.default_rng(0).permutation(6))

    def body(xp, order):
        def f(i, u):
            u[order[i]] = u[i] * 2 + i
            u[i, order[5 - i]] = -1.0
            return u

        return f

    u = np.arange(24.0).reshape(6, 4)
    order4 = np.minimum(np.asarray(order), 3)
    got = nvm.fori_loop(0, 6, body(nvm, nvm.minimum(order, 3)), nvm.asarray(u))
    is_same(got, python_fori(0, 6, body(np, order4), u.copy()))


def test_a_write_that_something_else_reads():
    def body(i, c):
        x, total = c
        x[i] = x[i - 1] + 1
        return x, total + x.sum()

    start = np.arange(4.0), np.asarray(0.0)
    got = nvm.fori_loop(0, 4, body, tuple(nvm.array(x) for x in start))
    is_same(got, python_fori(0, 4, body, (start[0].copy(), start[1])))

    def twice(i, c):
        x, y = c
        x[i] = 5
        return x, x

    is_same(nvm.fori_loop(0, 2, twice, (nvm.zeros(3), nvm.ones(3))), (np.array([5.0, 5, 0]), np.array([5.0, 5, 0])))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "uint64"])
def test_indices_of_any_dtype(dtype):
    def write(k):
        def body(i, x):
            x[k] = x[k] + i
            return x

        return body

    got = nvm.fori_loop(1, 4, write(nvm.asarray(2, dtype=dtype)), nvm.zeros((3, 2)))
    assert got.tolist() == [[0, 0], [0, 0], [6, 6]]
    far = nvm.asarray(np.iinfo(dtype).max, dtype=dtype)
    with pytest.raises(IndexError, match="out of range for axis 0 of extent 3"):
        read(nvm.fori_loop(1, 4, write(far), nvm.zeros((3, 2))))


def test_writes_outside_of_loops_in_a_trace():
    def f(x, i, v):
        x[i] = v
        x[1:][i] = 3
        x[2, i] = v * 2
        return x

    x = np.arange(16.0).reshape(4, 4)
    want = f(x.copy(), 1, 7.0)
    is_same(nvm.jit(f)(nvm.asarray(x), 1, 7.0), want)
    is_same(nvm.jit(f)(nvm.asarray(x), nvm.asarray(1), 7.0), want)
    with pytest.raises(IndexError, match="index (9 )?is out of range"):
        read(nvm.jit(f)(nvm.asarray(x), 9, 7.0))


# ---- memory, threads


def test_memory_is_constant():
    n = 1 << 16

    def peak(steps):
        x = nvm.ones(n)
        nvm.reset_peak()
        before = nvm.counters()["bytes_used"]
        nvm.eval(nvm.fori_loop(0, steps, lambda i, c: (nvm.roll(c[0], 1) * 0.5, c[0] + c[1]), (x, x)))
        return nvm.counters()["bytes_peak"] - before

    few = peak(20)  # by the interpreter, which takes more than the compiled kernels that follow
    assert peak(2000) <= few <= 16 * 8 * n


def test_threads():
    def body(i, c):
        return nvm.fori_loop(0, 3, lambda j, d: d * 0.5 + j, c)

    f = nvm.jit(lambda x: nvm.fori_loop(0, 50, body, x))
    start = [np.arange(8.0) + k for k in range(4)]
    want, got = [np.asarray(f(nvm.asarray(x))) for x in start], [None] * 4

    def work(k):
        for _ in range(5):
            got[k] = np.asarray(f(nvm.asarray(start[k])))
            is_same(nvm.fori_loop(0, 50, body, nvm.asarray(start[k])), want[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    is_same(got, want)


# ---- what is refused


def refused(error, match, f):
    with pytest.raises(error, match=match):
        f()
    with pytest.raises(error, match=match):
        nvm.jit(f)()
    assert nvm.fori_loop(0, 3, lambda i, c: c + i, 0).tolist() == 3  # nothing is left open


def test_carries_keep_dtype_and_shape():
    x = nvm.zeros(3, dtype=nvm.float32)
    refused(
        TypeError,
        r"\[fori_loop\] carry\['a'\]\[1\] begins as float32 \(3,\), and the body returns float64 \(3,\) for it",
        lambda: nvm.fori_loop(0, 3, lambda i, c: {"a": [c["a"][0], c["a"][1] + nvm.ones(3)]}, {"a": [0, x]}),
    )
    refused(
        TypeError,
        r"\[scan\] carry begins as float32 \(3,\), .* \(2,\)",
        lambda: nvm.scan(lambda c, _: (c[1:], None), x, None, 2),
    )
    refused(
        TypeError,
        r"\[while_loop\] what the body returns is a tuple of 1, and has to be an array",
        lambda: nvm.while_loop(lambda c: c < 3, lambda c: (c,), 0),
    )
    refused(
        TypeError,
        r"\[while_loop\] the test must be a 0-d bool, not float32 \(3,\)",
        lambda: nvm.while_loop(lambda c: c, lambda c: c, x),
    )
    refused(
        TypeError,
        r"\[cond\] output 0 is float32 \(3,\) if the predicate is true, and float32 \(2,\)",
        lambda: nvm.cond(True, lambda: x, lambda: x[1:]),
    )
    refused(
        TypeError,
        r"\[cond\] the predicate must be a 0-d bool, not bool \(3,\)",
        lambda: nvm.cond(x, lambda: x, lambda: x),
    )
    refused(
        ValueError,
        r"\[scan\] x 1 has 2 rows, and the loop 3 steps",
        lambda: nvm.scan(lambda c, x: (c, None), 0, (x, x[1:])),
    )
    refused(ValueError, r"\[scan\] x 0 is 0-d", lambda: nvm.scan(lambda c, x: (c, None), 0, nvm.asarray(1.0)))
    refused(
        TypeError,
        r"\[fori_loop\] the upper bound must be a 0-d integer",
        lambda: nvm.fori_loop(0, x, lambda i, c: c, 0),
    )


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_arrays_with_values_that_the_trace_makes(jitted):
    """Bounds, predicates, carries, rows and what bodies use: made of NumPy's arrays while a function is traced."""
    made = lambda: nvm.asarray(np.arange(3.0) + 1)  # noqa: E731

    def f(v):
        used = made()
        a = nvm.fori_loop(nvm.asarray(1), nvm.asarray(4), lambda i, c: c * 0.5 + used, v)
        b = nvm.fori_loop(0, 2, lambda i, c: c * 2, made()) + v
        c, rows = nvm.scan(lambda c, x: (c + x, c), v[0], made())
        d = nvm.cond(nvm.asarray(True), lambda v: v + used, lambda v: v, v)
        e = nvm.cond(nvm.asarray(False), lambda v: v + used, lambda v: v * 3, v)

        def nested(i, c):
            inside = made()
            return nvm.fori_loop(0, 2, lambda j, c: c + inside * used, c)

        return a, b, c, rows, d, e, nvm.fori_loop(0, 2, nested, v)

    x, w = np.asarray([3.0, -1.0, 0.5]), np.arange(3.0) + 1
    a = x
    for _ in range(3):
        a = a * 0.5 + w
    want = a, w * 4 + x, x[0] + 6, x[0] + np.asarray([0, 1, 3]), x + w, x * 3, x + 4 * w * w
    for got, value in zip((nvm.jit(f) if jitted else f)(nvm.asarray(x)), want, strict=True):
        np.testing.assert_array_equal(np.asarray(got), value)


def test_a_body_does_not_write_to_what_is_outside():
    x, y = nvm.zeros(3), nvm.zeros(3)

    def write(i, c):
        x[i] = 1.0
        return c

    def write_row(c, row):
        row[0] = 1.0
        return c, row

    refused(RuntimeError, "may not write to an array from outside", lambda: nvm.fori_loop(0, 3, write, y))
    refused(RuntimeError, r"\[scan\] the body writes to its input 1", lambda: nvm.scan(write_row, y, nvm.zeros((2, 3))))
    assert x.tolist() == [0, 0, 0]


def test_values_have_none_in_a_body():
    refused(
        RuntimeError,
        "has no value yet|depends on an argument",
        lambda: nvm.fori_loop(0, 3, lambda i, c: c + float(c), 1.0),
    )


def test_an_error_names_the_step():
    x = nvm.arange(5.0)

    def names(step, what, f):
        with pytest.raises(IndexError, match=(step if ON_CPU else "") + what):
            read(f())

    names(
        r"\[fori_loop\] step 5: ",
        r"\[getitem\] (an )?index (5 )?is out of range for axis 0 of extent 5",
        lambda: nvm.fori_loop(0, 9, lambda i, c: c + x[i], 0.0),
    )

    def write(i, c):
        c[i * 2] = 1
        return c

    with pytest.raises(IndexError, match=r"\[fori_loop\] step 3: \[setitem\] index 6 is out of range for axis 0"):
        nvm.fori_loop(0, 9, write, x)
    names(
        r"\[scan\] step 1: \[fori_loop\] step 2: ",
        r"\[getitem\] (an )?index",
        lambda: nvm.scan(
            lambda c, k: (nvm.fori_loop(0, 3, lambda i, d: d + x[i + k], c), None), 0.0, nvm.asarray([1, 3])
        ),
    )


def test_an_exception_in_a_body_passes_through():
    def body(i, c):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nvm.fori_loop(0, 3, body, 0)
    with pytest.raises(KeyError, match="mine"):
        nvm.jit(lambda: nvm.fori_loop(0, 3, lambda i, c: nvm.fori_loop(0, 2, body, c), 0))()
    assert int(nvm.jit(lambda: nvm.fori_loop(0, 3, lambda i, c: c + 1, 0))()) == 3
