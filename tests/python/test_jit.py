"""nvm.jit: signatures, nesting, statics, captured arrays, errors."""

import collections
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import nvm


def traced():
    """A jitted function that counts its traces."""
    calls = []

    @nvm.jit
    def f(*args, **kw):
        calls.append(1)
        return body(*args, **kw)

    def body(x, y=1.0):
        return nvm.sin(x) * 2 + y

    return f, calls


def test_traced_once_per_signature(rng):
    f, calls = traced()
    x = rng.standard_normal(10)
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(x)), np.sin(x) * 2 + 1, rtol=1e-15)
    np.testing.assert_allclose(np.asarray(f(nvm.asarray(x))), np.sin(x) * 2 + 1, rtol=1e-15)  # the same signature
    assert len(calls) == 1 and f.cache_size() == 1
    f(x[:5]), f(x[::2]), f(x.astype("float32")), f(x.reshape(2, 5))
    assert len(calls) == 4  # 5 elements at any stride are one signature
    f(x, 2.0), f(x, 3.0), f(x, -1e300)
    assert len(calls) == 5
    f(x, 3), f(x, True), f(x, 1j), f(x, y=3.0)
    assert len(calls) == 9
    f.clear_cache()
    f(x)
    assert len(calls) == 10 and f.cache_size() == 1


def test_python_numbers_are_weak_and_not_constants():
    @nvm.jit
    def f(x, k):
        return x * k

    x = np.arange(4, dtype="float32")
    for k in (2.0, 3.0, -0.5):
        y = f(x, k)
        assert y.dtype == nvm.float32 and y.tolist() == (x * np.float32(k)).tolist()
    assert f(x, 3).dtype == nvm.float32 and f(x, 3).tolist() == [0, 3, 6, 9] and f(x, 5).tolist() == [0, 5, 10, 15]
    assert f(x, np.float64(2)).dtype == nvm.float64
    assert f(x, 2j).dtype == nvm.complex64
    assert f(np.arange(3), True).dtype == nvm.int64
    assert f(2.0, 3.0).item() == 6.0 and f(2, 3).dtype == nvm.int64
    assert f(x, 2**70).tolist() == (x * np.float32(2**70)).tolist()
    with pytest.raises(OverflowError, match="300 is out of range of uint8"):
        f(x.astype("uint8"), 300)


Point = collections.namedtuple("Point", "x y")


def test_nested_arguments_and_results():
    @nvm.jit
    def f(d, pair, *rest, **kw):
        return {
            "sum": d["a"] + d["b"][0],
            "pair": (pair[1], [pair[0] * 2]),
            "rest": list(rest),
            "kw": kw,
            "none": None,
            "three": 3,
            "name": "x",
            "point": Point(pair[0], 1.5),
        }

    one, two = np.ones(2), np.full(2, 2.0)
    for _ in range(2):
        r = f({"a": one, "b": [two, None]}, (one, two), one, 2.5, k=two)
        assert r["sum"].tolist() == [3, 3] and r["pair"][0].tolist() == [2, 2] and r["pair"][1][0].tolist() == [2, 2]
        assert r["rest"][0].tolist() == [1, 1] and float(r["rest"][1]) == 2.5 and r["kw"]["k"].tolist() == [2, 2]
        assert r["none"] is None and r["three"] == 3 and type(r["three"]) is int and r["name"] == "x"
        assert isinstance(r["point"], Point) and r["point"].x.tolist() == [1, 1] and r["point"].y == 1.5
    p = nvm.jit(lambda p: p.x - p.y)(Point(one, two))
    assert p.tolist() == [-1, -1]
    assert nvm.jit(lambda: None)() is None
    assert nvm.jit(lambda: (1, "a"))() == (1, "a")
    assert nvm.jit(lambda x: (x, x))(one)[1].tolist() == [1, 1]


def test_many_arguments_and_results(rng):
    n = 120
    xs = [rng.standard_normal(3) for _ in range(n)]
    f = nvm.jit(lambda xs: [x * i for i, x in enumerate(xs)])
    for _ in range(2):
        for i, y in enumerate(f(xs)):
            np.testing.assert_array_equal(np.asarray(y), xs[i] * i)


def test_deep_nesting_is_refused_not_a_crash():
    deep = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(RecursionError):
        nvm.jit(lambda x: x)(deep)
    while deep:
        deep = deep[0]


@pytest.mark.parametrize(
    "how",
    [
        {"static_argnums": 1},
        {"static_argnums": (1,)},
        {"static_argnums": -1},
        {"static_argnames": "n"},
        {"static_argnames": ("n",)},
    ],
)
def test_statics(how):
    calls = []

    def f(x, n):
        calls.append(n)
        return x * 2 if n == "twice" else x + float(n)

    f = nvm.jit(f, **how)
    x = np.ones(2)
    assert f(x, "twice").tolist() == [2, 2] and f(x, n="twice").tolist() == [2, 2] and f(x, "twice").tolist() == [2, 2]
    assert len(calls) == 2
    calls.clear()
    for n in (1, 1.0, True, np.float32(1), 0.0, -0.0, float("nan"), float("nan"), (1, 2.0).__len__(), 1):
        f(x, n)
    assert [type(c) for c in calls] == [int, float, bool, np.float32, float, float, float, int]


def test_nested_statics_compare_by_type():
    seen = []

    @nvm.jit
    def g(x, *, opts=()):
        seen.append(opts)
        return x

    g = nvm.jit(g.__wrapped__, static_argnames="opts")
    for opts in ((1, 2), (1, 2), (1.0, 2), (True, 2), (1, 2, 3), ((1,), 2), ((1.0,), 2), (0.0,), (-0.0,)):
        g(np.ones(1), opts=opts)
    assert len(seen) == 8


def counted(**how):
    seen = []

    def f(x, s):
        seen.append(s)
        return x

    return nvm.jit(f, **(how or {"static_argnums": 1})), seen


def test_python_code_that_builds_arguments_runs_inside_the_trace():
    inner = nvm.jit(lambda x: x * 2)

    class Twice(collections.namedtuple("Twice", "x y")):
        def __new__(cls, x, y):
            return super().__new__(cls, inner(x), y)

    got = nvm.jit(lambda p: p.x + p.y)(Twice(nvm.ones(2), nvm.ones(2)))
    assert got.tolist() == [5, 5]  # doubled once outside, once for the trace


def test_statics_that_compare_equal_but_differ():
    Pair = collections.namedtuple("Pair", "a b")
    f, seen = counted()
    x = np.ones(1)
    groups = [
        [frozenset({1}), frozenset({1.0}), frozenset({True}), frozenset({np.int8(1)})],
        [frozenset({(1, 2)}), frozenset({(1.0, 2)})],
        [frozenset({0.0}), frozenset({-0.0})],
        [frozenset({frozenset({1}), "a"}), frozenset({frozenset({1.0}), "a"})],
        [np.float32(0.0), np.float32(-0.0)],
        [np.float64(0.0), np.float64(-0.0)],
        [np.complex64(0), np.complex64(-0.0)],
        [np.datetime64(0, "s"), np.datetime64(0, "ms")],
        [np.str_("a"), "a"],
        [Pair(1, 0.0), Pair(1.0, 0.0), Pair(1, -0.0)],
    ]
    for group in groups:
        seen.clear()
        for _ in range(2):
            for s in group:
                f(x, s)
        assert [repr(s) for s in seen] == [repr(s) for s in group]


def test_statics_that_are_equal_are_traced_once():
    f, seen = counted()
    for make in (
        lambda: frozenset([3, 1, 2]),
        lambda: frozenset("cab"),
        lambda: np.float32(1.5),
        lambda: np.str_("ab"),
        lambda: np.datetime64(5, "s"),
        lambda: (np.int8(3), frozenset({(1, 2.0)})),
        lambda: range(3),
        lambda: nvm.int8,
    ):
        seen.clear()
        for _ in range(3):
            f(np.ones(1), make())
        assert len(seen) == 1


def test_the_cache_may_be_cleared_while_it_is_searched():
    class Same:
        def __init__(self, same):
            self.same = same

        def __hash__(self):
            return 7

        def __eq__(self, other):
            f.clear_cache()
            assert [f(np.ones(1), n).item() for n in range(70)] == list(range(1, 71))  # in the memory of the forgotten
            return self.same

        def __float__(self):
            return 0.5

        def __del__(self):
            f.clear_cache()

    f = nvm.jit(lambda x, s: x + float(s), static_argnums=1)
    for same in (False, True):
        for _ in range(3):
            assert f(np.ones(1), Same(same)).tolist() == [1.5] and f(np.ones(1), 7).tolist() == [8]
        assert f.cache_size() <= 72


def test_the_cache_may_be_used_while_it_is_cleared():
    class Last:
        def __del__(self):
            f.clear_cache()
            f(np.ones(1), 1)

    f, seen = counted()
    for n in range(600):
        f(np.ones(1), Last() if n % 3 == 0 else n)
    assert f.cache_size() <= 512
    seen.clear()
    f.clear_cache()
    gc.collect()
    f.clear_cache()
    assert f.cache_size() == 0


def test_a_dict_that_changes_while_it_is_read():
    class Key:
        def __init__(self, change):
            self.change, self.armed = change, False

        def __hash__(self):
            if self.armed:
                self.armed = False
                self.change()
            return 3

    def arm(change):
        key = Key(lambda: change(d))
        d = {key: np.ones(1), "b": np.ones(2)}
        key.armed = True
        return d

    f = nvm.jit(lambda d: nvm.ones(1))
    for change in (dict.clear, lambda d: d.pop("b"), lambda d: d.setdefault("c", 1)):
        with pytest.raises(RuntimeError, match="changed"):
            f(arm(change))


def test_static_errors():
    f = nvm.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(TypeError, match="hashable"):
        f(np.ones(1), [1])
    with pytest.raises(TypeError, match="static_argnums"):
        nvm.jit(lambda x, n: x)(np.ones(1), "mode")
    with pytest.raises(TypeError, match="static_argnames"):
        nvm.jit(lambda x, n: x)(np.ones(1), n=object())
    with pytest.raises(TypeError):
        nvm.jit(lambda x: x)(np.array(["a"]))
    with pytest.raises(ValueError):
        nvm.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError):
        nvm.jit(lambda x: x, static_argnames="y")
    with pytest.raises(TypeError):
        nvm.jit(3)

    class Bad:
        def __hash__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        f(np.ones(1), Bad())


def test_objects_as_statics():
    class Model:
        def __init__(self, k):
            self.k = k

        @nvm.jit
        def whole(self, x):
            return x

        def __call__(self, x):
            return x * self.k

    step = nvm.jit(lambda m, x: m(x), static_argnums=0)
    a, b = Model(2), Model(3)
    assert step(a, np.ones(1)).item() == 2 and step(b, np.ones(1)).item() == 3 and step(a, np.ones(1)).item() == 2
    assert step.cache_size() == 2
    Model.method = nvm.jit(lambda self, x: x + self.k, static_argnums=0)
    assert a.method(np.ones(1)).item() == 3


def test_statics_of_bound_methods():
    class Model:
        def scale(self, n, x, *, by=1):
            return x * (2 if n == "twice" else 1) * by

    for how in (
        {"static_argnums": 0},
        {"static_argnums": -2},
        {"static_argnames": "n"},
        {"static_argnames": ("n", "by")},
    ):
        f = nvm.jit(Model().scale, **how)
        assert f("twice", np.ones(1)).item() == 2 and f(n="once", x=np.ones(1)).item() == 1
    with pytest.raises(ValueError, match="2 positional"):
        nvm.jit(Model().scale, static_argnums=2)
    with pytest.raises(ValueError, match="self"):
        nvm.jit(Model().scale, static_argnames="self")


def test_decorator_forms():
    @nvm.jit(static_argnames="n")
    def f(x, n=2):
        "doc"
        return x * n

    assert f(np.ones(2)).tolist() == [2, 2] and f(np.ones(2), 3).tolist() == [3, 3]
    assert f.__name__ == "f" and f.__doc__ == "doc" and f.__wrapped__ and "f" in repr(f)
    import inspect

    assert str(inspect.signature(f)) == "(x, n=2)"


def test_control_flow_on_traced_values():
    def branch(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match="where"):
        nvm.jit(branch)(np.ones(3))
    for f in (
        lambda x: float(x[0]),
        lambda x: int(x[0]),
        lambda x: complex(x[0]),
        lambda x: x[0].item(),
        lambda x: range(x[0].astype("int64")),
        lambda x: x.tolist(),
        lambda x: np.asarray(x),
        lambda x: x.eval(),
        lambda x: memoryview(x),
        lambda x: x[x > 0],
        lambda x: nvm.eval(x),
    ):
        with pytest.raises(RuntimeError):
            nvm.jit(f)(np.ones(3))
    with pytest.raises(RuntimeError, match="static"):
        nvm.jit(lambda x: nvm.zeros(3)[: x[0].astype("int64")])(np.ones(3))
    assert nvm.jit(lambda x: x if x.shape[0] > 2 else -x)(np.ones(3)).tolist() == [1, 1, 1]
    assert not nvm._nvm.tracing()
    assert (nvm.ones(2) + 1).tolist() == [2, 2]


def test_values_that_do_not_depend_on_arguments_are_known():
    w = nvm.asarray(5)

    @nvm.jit
    def f(x):
        k = int(nvm.arange(3).sum())
        return x * k if w == 5 else x

    with pytest.raises(RuntimeError, match="outside"):
        f(np.ones(2))  # w is read again at each call, so that the trace may not depend on its value

    @nvm.jit
    def g(x):
        return x * int(nvm.arange(3).sum())

    assert g(np.ones(2)).tolist() == [3, 3]


def test_printing_in_a_trace():
    shown = []

    @nvm.jit
    def f(x):
        shown.extend([repr(x + 1), str(x)])
        return x

    f(np.ones((2, 3), "float32"))
    assert all("float32" in s and "(2, 3)" in s for s in shown)


def test_loops_unroll_and_inner_functions_inline(rng):
    inner = nvm.jit(lambda x: nvm.exp(-x * x))

    @nvm.jit
    def f(x):
        for _ in range(3):
            x = inner(x) + 1
        return x

    x = rng.standard_normal(50)
    want = x
    for _ in range(3):
        want = np.exp(-want * want) + 1
    np.testing.assert_allclose(np.asarray(f(x)), want, rtol=1e-13)
    assert inner.cache_size() == 0


def test_captured_arrays_are_read_at_each_call():
    w = nvm.ones(3)
    f = nvm.jit(lambda x: x * w)
    assert f(np.ones(3)).tolist() == [1, 1, 1]
    w[1] = 5
    assert f(np.ones(3)).tolist() == [1, 5, 1]
    w *= 2
    assert f(np.ones(3)).tolist() == [2, 10, 2]
    assert f.cache_size() == 1
    pending = nvm.ones(3) * 4
    g = nvm.jit(lambda x: x + pending)
    assert g(np.ones(3)).tolist() == [5, 5, 5]
    assert nvm.jit(lambda: w)().tolist() == [2, 10, 2]


def test_writes_in_a_trace():
    @nvm.jit
    def f(x):
        x[0] = 7
        x[1:] += 1
        return x

    a = nvm.zeros(3)
    assert f(a).tolist() == [7, 1, 1] == a.tolist()
    n = np.zeros(3)
    assert f(n).tolist() == [7, 1, 1] == n.tolist()
    w = nvm.zeros(3)

    @nvm.jit
    def g(x):
        w[0] = x[0]
        return x

    with pytest.raises(RuntimeError, match="outside"):
        g(np.ones(3))
    assert w.tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape, many", [((30,), 50), ((4000, 50), 300000)])
def test_writes_through_index_arrays_in_a_trace(shape, many):
    rng = np.random.default_rng(4)
    x = rng.standard_normal(shape)
    keys = [rng.integers(-n, n, many) for n in shape]
    values = rng.standard_normal(many)

    @nvm.jit
    def f(x, keys, values):
        y = x * 2
        y[tuple(keys)] = values  # of equal indices the last one wins
        y[keys[0][:1]] += 1
        return y

    want = x * 2
    want[tuple(keys)] = values
    want[keys[0][:1]] += 1
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(f(x, keys, values)), want)


def test_numpy_arguments_are_borrowed_for_the_call_only():
    identity = nvm.jit(lambda x: (x, x[::-1], x.T, x * 1))
    n = np.arange(4.0)
    refs = sys.getrefcount(n)
    out = identity(n)
    assert sys.getrefcount(n) == refs
    n[:] = -1
    for o, want in zip(out, ([0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3], [0, 1, 2, 3])):
        assert o.tolist() == want
    n.resize(8)  # nobody holds the buffer


def test_results_do_not_alias_arguments():
    a = nvm.arange(3)
    f = nvm.jit(lambda x: x)
    b = f(a)
    a[0] = 9
    assert b.tolist() == [0, 1, 2]
    b[1] = 7
    assert a.tolist() == [9, 1, 2]


def test_views_with_other_strides_are_right(rng):
    f = nvm.jit(lambda x: x * 2 + x.sum(axis=0))
    x = rng.standard_normal((6, 6))
    a = nvm.asarray(x)
    for v in (
        lambda v: v,
        lambda v: v.T,
        lambda v: v[::-1],
        lambda v: v[:, ::-1],
        lambda v: np.broadcast_to(v[0], (6, 6)) if isinstance(v, np.ndarray) else nvm.broadcast_to(v[0], (6, 6)),
    ):
        want = v(x) * 2 + v(x).sum(axis=0)
        np.testing.assert_allclose(np.asarray(f(v(x))), want, rtol=1e-13)
        np.testing.assert_allclose(np.asarray(f(v(a))), want, rtol=1e-13)
    unaligned = np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(6, 6)
    np.testing.assert_allclose(np.asarray(f(unaligned)), x * 2 + x.sum(axis=0), rtol=1e-13)


def test_exceptions_pass_through_and_leave_nothing():
    class Marker:
        pass

    class Oops(Exception):
        pass

    m = Marker()
    alive = weakref.ref(m)

    @nvm.jit
    def f(x, fail=True):
        y = x + 1
        if fail:
            raise Oops
        return y

    f = nvm.jit(f.__wrapped__, static_argnames="fail")
    x = np.ones(3)
    refs = sys.getrefcount(x)
    used = nvm.counters()["bytes_used"]
    for _ in range(20):
        with pytest.raises(Oops):
            f(x)
        with pytest.raises(ValueError):
            nvm.jit(lambda x: x + nvm.ones(7))(x)
    gc.collect()
    assert sys.getrefcount(x) == refs and f.cache_size() == 0 and not nvm._nvm.tracing()
    assert nvm.counters()["bytes_used"] <= used + 4096
    assert f(x, fail=False).tolist() == [2, 2, 2]
    del m
    assert alive() is None


def test_a_leaked_tracer_is_an_error_later():
    kept = []
    nvm.jit(lambda x: kept.append(x + 1) or x)(np.ones(3))
    with pytest.raises(RuntimeError):
        kept[0].tolist()
    with pytest.raises(RuntimeError):
        (kept[0] + 1).eval()


def test_functions_are_collected():
    class Big:
        pass

    def make():
        big = Big()
        f = nvm.jit(lambda x, s: x + (big is not None), static_argnums=1)
        f(np.ones(2), f)  # a cycle through the cache
        big.f = f
        return weakref.ref(big), weakref.ref(f)

    a, b = make()
    gc.collect()
    assert a() is None and b() is None


def test_the_cache_is_bounded():
    f = nvm.jit(lambda x, n: x + n, static_argnums=1)
    x = np.ones(1)
    for n in range(600):
        assert f(x, n).item() == 1 + n
    assert f.cache_size() <= 512
    assert f(x, 0).item() == 1


def test_a_function_may_call_itself_to_trace():
    @nvm.jit
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    power = nvm.jit(power.__wrapped__, static_argnums=1)
    assert power(np.full(2, 3.0), 4).tolist() == [81, 81]


def test_threads_share_a_function(rng):
    f = nvm.jit(lambda x, k: nvm.sum(nvm.sin(x) * k))
    xs = [rng.standard_normal(100 + i % 3) for i in range(8)]
    bad = []

    def work(x):
        want = np.sin(x).sum()
        for k in range(200):
            if abs(float(f(x, float(k))) - want * k) > 1e-9 * (1 + k):
                bad.append(k)

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad and f.cache_size() == 3


def test_explain_of_a_function():
    f = nvm.jit(lambda x: nvm.sum(x * 2, axis=1))
    assert f.explain(np.ones((3, 4))).strip() and nvm.explain(f, np.ones((3, 4))) == f.explain(np.ones((3, 4)))
    assert nvm.jit(lambda: 3).explain()


def test_explain_names_a_result_of_no_operand():
    """It is stored without reading anything, also where the values of functions of constants are known."""
    for x in (nvm.zeros((3, 4)), nvm.softmax(nvm.ones((64, 1000)), axis=1)):
        assert "fill: constant; reads 0 B" in nvm.explain(x)
    assert "map: copy; reads 96 B" in nvm.explain(nvm.concat([nvm.asarray(np.ones((3, 4)))] * 2, axis=1))


def test_explain_tells_how_arguments_lay_in_the_last_call():
    f, (a, b) = nvm.jit(lambda x, y: x @ y), [nvm.ones((128, 128), dtype="float32").eval() for _ in range(2)]
    for y, words in ((b, "d = a b\n"), (b.T, "d = a b^T\n"), (b, "d = a b\n")):
        f(a, y)
        assert words in nvm.explain(f, a, y)


def test_long_chains_do_not_end_the_process():
    def chain(x):
        for _ in range(6000):
            x = nvm.sin(x)
        return x

    y = nvm.jit(chain)(np.full(3, 0.5, "float32"))
    want = np.float32(0.5)
    for _ in range(6000):
        want = np.sin(want)
    assert np.allclose(np.asarray(y), want, rtol=1e-3)


def test_long_chains_of_views():
    x = np.arange(12.0).reshape(3, 4)

    def chain(x):
        for _ in range(5000):
            x = nvm.flip(nvm.permute_dims(x, (1, 0)))
        return x

    assert np.array_equal(np.asarray(nvm.jit(chain)(x)), x)


def test_what_a_trace_made_gets_a_value_later():
    kept = []

    @nvm.jit
    def f(x):
        if not kept:
            kept.append(nvm.arange(8.0) * 2)
        return x + kept[0]

    x = np.arange(16.0)
    assert np.array_equal(np.asarray(f(x[:8])), x[:8] + 2 * np.arange(8.0))
    assert np.array_equal(np.asarray(kept[0]), 2 * np.arange(8.0))
    for y in (x[::2], x[::-2], x[8:]):
        assert np.array_equal(np.asarray(f(y)), y + 2 * np.arange(8.0))


@pytest.mark.parametrize("s", [2**63, 2**63 + 5, 2**64 - 1])
def test_integers_that_only_uint64_holds(s):
    x = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    f = nvm.jit(lambda x, s: x + s)
    with np.errstate(over="ignore"):
        for got in (f(x, s), f(x, s=s), nvm.jit(lambda t: t["x"] + t["s"][0])({"x": x, "s": [s]})):
            assert got.dtype == nvm.uint64 and got.tolist() == (x + np.uint64(s)).tolist()
    f(x, 7), f(x, s)
    assert f.cache_size() == 3  # int64's integers and uint64's, and those by name
    compared = nvm.jit(lambda x, s: (x < s, x == s, s <= x))
    for y in (x, np.array([0, 255], np.uint8), np.array([-1, 5])):
        assert [r.tolist() for r in compared(y, s)] == [(y < s).tolist(), (y == s).tolist(), (s <= y).tolist()]
    assert f(np.ones(2, np.float32), s).dtype == nvm.float32
    assert nvm.jit(lambda s: s)(s).item() == s and nvm.jit(lambda s: s ^ 1)(s).item() == s ^ 1
    assert f(np.float64(0.5), s).item() == s + 0.5


def test_values_from_outside_are_read_in_a_trace():
    outside = nvm.asarray(nvm.arange(4.0) * 2, device="cpu")
    read = []
    nvm.jit(
        lambda x: read.extend((np.from_dlpack(outside).tolist(), np.asarray(outside).tolist(), outside.tolist())) or x
    )(1.0)
    assert read == [[0, 2, 4, 6]] * 3
    wrong = nvm.arange(3.0)[nvm.asarray([3]) * 3]
    with pytest.raises(IndexError, match="out of range"):  # the reason why there is no value is another
        nvm.jit(lambda x: x * wrong.item())(1.0)


def test_statics_whose_dtype_raises():
    class Odd(np.float64):
        @property
        def dtype(self):
            raise MemoryError

    f = nvm.jit(lambda x, s: x, static_argnums=1)
    f(1.0, Odd(1))
    with pytest.raises(MemoryError):
        f(1.0, Odd(1))


# ---- arrays of others that are captured
CAPTURES = {
    "operand": lambda w: lambda x: x * w,
    "turned": lambda w: lambda x: w * x,
    "asarray": lambda w: lambda x: x * nvm.asarray(w),
    "a view": lambda w: lambda x: x * w[::-1],
    "borrowed": lambda w: lambda x: x * nvm.asarray(w, copy=False),
    "dlpack": lambda w: lambda x: x * nvm.from_dlpack(w),
    "twice": lambda w: lambda x: x * w + w,
    "in a list": lambda w: lambda x: nvm.asarray([x, nvm.asarray(w)]),
    "function": lambda w: lambda x: nvm.where(x > 0, w, x),
    "returned": lambda w: lambda x: w,
    "inner": lambda w: lambda x: nvm.jit(lambda y: y + w)(x),
    "cast": lambda w: lambda x: x + nvm.asarray(w, dtype="float32"),
    "a mask": lambda w: lambda x: x[nvm.asarray(w) > 2],
    "its value": lambda w: lambda x: x * float(nvm.sum(w)),
    "sorted": lambda w: lambda x: x * nvm.sort(w),
}


@pytest.mark.parametrize("how", CAPTURES)
def test_captured_arrays_of_numpy_are_read_again(how):
    if how == "sorted" and nvm.get_default_device() != "cpu":
        pytest.skip("a function that runs on a GPU cannot sort")
    w, x = np.arange(1.0, 5.0), np.ones(4)
    body = CAPTURES[how](w)
    f = nvm.jit(body)
    for change in (lambda: None, lambda: None, lambda: w.__setitem__(1, 7), lambda: w.__imul__(2), lambda: None):
        change()
        np.testing.assert_array_equal(np.asarray(f(x)), np.asarray(body(nvm.asarray(x))), err_msg=how)
    assert f.cache_size() == 1 or how in ("a mask", "its value")


def test_captured_arrays_may_change_shape_and_lie_elsewhere():
    w = np.arange(4.0)
    f = nvm.jit(lambda x: nvm.sum(x * w))
    assert f(2.0).item() == 12
    w.shape = (2, 2)
    assert f(2.0).item() == 12 and f.cache_size() == 2
    w.shape = (4,)
    w[0] = 1
    assert f(2.0).item() == 14 and f.cache_size() == 2
    big = np.arange(8.0)
    holder = [big[::2]]
    g = nvm.jit(lambda x: x + holder[0])
    assert g(1.0).tolist() == [1, 3, 5, 7]
    big += 1
    assert g(1.0).tolist() == [2, 4, 6, 8] and g.cache_size() == 1


def test_what_is_captured_as_a_constant():
    s, numbers = np.float32(2), [1.0, 2.0]
    f = nvm.jit(lambda x: x * s + numbers + np.arange(2))
    assert f(np.ones(2)).tolist() == [3, 5]
    numbers[0] = 100
    assert f(np.ones(2)).tolist() == [3, 5] and f.cache_size() == 1
    a = np.zeros(2)
    alive = weakref.ref(a)
    g = nvm.jit(lambda x: x + a)  # noqa: F821
    g(1.0)
    del a, g
    gc.collect()
    nvm.ones(1).eval()
    assert alive() is None


def test_captures_of_other_memory():
    import array
    import ctypes

    raw, memory = array.array("d", [1, 2]), (ctypes.c_double * 2)(3, 4)
    view, big_endian = memoryview(raw), np.array([5, 6], ">f8")

    class Method:
        def __array__(self, dtype=None, copy=None):
            return np.asarray(raw)

    class Dlpack:
        def __init__(self):
            self.n = np.asarray(raw)

        def __dlpack__(self, **kw):
            return self.n.__dlpack__(**kw)

        def __dlpack_device__(self):
            return self.n.__dlpack_device__()

    others = (Method(), Dlpack())
    f = nvm.jit(lambda x: (x + raw, x + memory, x + view, x + big_endian, x + others[0], x + others[1]))
    for _ in range(3):
        raw[0] += 10
        memory[1] += 1
        big_endian[0] += 2
        want = [list(raw), list(memory), list(raw), big_endian.tolist(), list(raw), list(raw)]
        assert [r.tolist() for r in f(np.zeros(2))] == want
    assert f.cache_size() == 1


def test_tensors_of_torch_that_are_captured():
    torch = pytest.importorskip("torch")
    w = torch.ones(3, dtype=torch.float64)
    f = nvm.jit(lambda x: x * w)
    assert f(np.ones(3)).tolist() == [1, 1, 1]
    w[1] = 5
    assert f(np.ones(3)).tolist() == [1, 5, 1] and f.cache_size() == 1
