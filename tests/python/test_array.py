"""The Array type: operators, attributes, methods, values."""

import copy
import operator
import os
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import nvm
import refs

BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "lt",
    "le",
    "eq",
    "ne",
    "gt",
    "ge",
]
BITS = {"and_", "or_", "xor", "lshift", "rshift"}


def operands(name):
    return ([7, 3, 12], [2, 1, 3]) if name in BITS else ([7.5, -3.0, 12.0], [2.0, 1.5, 4.0])


@pytest.mark.parametrize("name", BINARY)
def test_operators(name, rng):
    op = getattr(operator, name)
    x, y = map(np.asarray, operands(name))
    if name == "pow":
        x = np.abs(x)
    a, b = nvm.asarray(x), nvm.asarray(y)
    want = op(x, y)
    scalar = 2 if name in BITS else 2.0
    for got, ref in (
        (op(a, b), want),
        (op(a, y), want),
        (op(x, b), want),
        (op(a, y.tolist()), want),
        (op(a, scalar), op(x, scalar)),
        (op(scalar, a), op(scalar, x)),
        (op(a, y[1]), op(x, y[1])),
        (op(y[1], a), op(y[1], x)),
    ):
        assert isinstance(got, nvm.Array)
        assert got.dtype == ref.dtype
        np.testing.assert_allclose(np.asarray(got), ref, rtol=1e-15)


@pytest.mark.parametrize(
    "name",
    ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift"],
)
def test_in_place_operators(name):
    op = getattr(operator, name)
    x, y = map(np.asarray, operands(name[1:] + "_" if name[1:] in ("and", "or") else name[1:]))
    if name == "ipow":
        x = np.abs(x)
    a = nvm.asarray(x)
    other, view = a, a[1:]
    want = x.copy()
    a = op(a, y)
    want = op(want, y)
    assert a is other
    np.testing.assert_allclose(np.asarray(other), want, rtol=1e-15)
    np.testing.assert_allclose(np.asarray(view), want[1:], rtol=1e-15)


def test_in_place_keeps_dtype_and_shape():
    a = nvm.ones(3, dtype=nvm.float32)
    a += nvm.ones(3)
    assert a.dtype == nvm.float32 and a.tolist() == [2, 2, 2]
    with pytest.raises(TypeError):
        b = nvm.ones(3, dtype=nvm.int32)
        b += 0.5
    with pytest.raises(ValueError):
        a += nvm.ones((2, 3))
    with pytest.raises(TypeError, match="store int64 in an array of uint8"):  # NumPy's error is a TypeError of its own
        c = nvm.ones(3, dtype=nvm.uint8)
        c += nvm.asarray([300, 1, 1])


def test_unary_operators():
    a = nvm.asarray([1.5, -2.0])
    assert (-a).tolist() == [-1.5, 2.0] and (+a).tolist() == [1.5, -2.0] and abs(a).tolist() == [1.5, 2.0]
    assert (~nvm.asarray([1, -1])).tolist() == [-2, 0] and (~nvm.asarray([True])).tolist() == [False]
    q, r = divmod(nvm.asarray([7, -7]), 3)
    assert q.tolist() == [2, -3] and r.tolist() == [1, 2]


def test_numpy_defers():
    n, a = np.arange(3.0), nvm.arange(3.0)
    for got in (n + a, n * a, n - a, n / (a + 1), n**a, n < a, n @ a, np.float64(2) * a, n[0] + a):
        assert isinstance(got, nvm.Array)
    assert isinstance(np.mean(a), nvm.Array) and isinstance(np.sort(a), nvm.Array)
    n += np.asarray(a)
    assert n.tolist() == [0, 2, 4]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "complex128"])
@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_round_to_decimals(dtype, decimals):
    x = np.array([125, 135, -15, 150, 250, 7]) if dtype.startswith("int") else np.array([1.25, 2.5, -0.125, 1234.5678])
    x = x.astype(dtype) * (1 + 2j) if dtype == "complex128" else x.astype(dtype)
    a, want = nvm.asarray(x), np.round(x, decimals)
    for got in (nvm.round(a, decimals), nvm.round(a, decimals=decimals), a.round(decimals), np.round(a, decimals)):
        assert np.asarray(got).dtype == want.dtype and np.asarray(got).tolist() == want.tolist()
    out = nvm.zeros(a.shape, dtype=dtype)
    assert np.asarray(a.round(decimals, out=out)).tolist() == want.tolist() and out.tolist() == want.tolist()


def test_sort_of_all_elements():
    x = np.array([[3, 1, 2], [2, 0, 3]])
    assert nvm.sort(x, axis=None).tolist() == np.sort(x, axis=None).tolist()
    assert nvm.argsort(nvm.asarray(x), axis=None).tolist() == np.argsort(x, axis=None, kind="stable").tolist()
    assert nvm.sort(x, axis=None, descending=True).tolist() == np.sort(x, axis=None)[::-1].tolist()


def test_other_types_get_their_turn():
    class Mine:
        __array_priority__ = 2000

        def __radd__(self, other):
            return "mine"

    class Unknown:
        pass

    assert nvm.ones(2) + Mine() == "mine"
    with pytest.raises(TypeError):
        nvm.ones(2) + Unknown()
    with pytest.raises(TypeError):
        nvm.ones(2) + "text"


class Own:
    def __eq__(self, other):
        return "mine"

    __hash__ = None


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("other", [None, "a", b"a", b"", object(), {}, {1}, Ellipsis, slice(1), type, int, pytest])
def test_what_is_no_array_equals_no_element(shape, other):
    n = np.ones(shape)
    x = nvm.asarray(n)
    for f in operator.eq, operator.ne:
        for got, want in ((f(x, other), f(n, other)), (f(other, x), f(other, n))):
            assert isinstance(got, nvm.Array) and got.dtype == nvm.bool
            assert got.shape == np.shape(want) and got.tolist() == want.tolist()
    for f in operator.lt, operator.ge, operator.add, operator.mul:
        for given in ((x, other), (other, x)):
            with pytest.raises(TypeError):
                f(*given)


def test_comparisons_of_other_types_are_theirs():
    assert (nvm.ones(2) == Own()) == (Own() == nvm.ones(2)) == "mine"
    traced = nvm.jit(lambda x: (x == None, x != "a"))(nvm.ones(2))  # noqa: E711
    assert [t.tolist() for t in traced] == [[False, False], [True, True]]


@pytest.mark.parametrize(
    "text", [b"", b"abc", np.bytes_(b"ab"), np.str_("ab"), np.datetime64("2020-01-01"), np.timedelta64(3, "s")]
)
def test_text_and_dates_are_no_numbers(text):
    with pytest.raises(TypeError, match="nvm has no dtype for NumPy's"):
        nvm.asarray(text)
    with pytest.raises(TypeError):
        nvm.ones(len(bytes(text))) + text
    with pytest.raises(TypeError):
        nvm.sin(text)
    with pytest.raises(TypeError):
        nvm.jit(lambda x, t: x + t)(nvm.ones(2), text)


@pytest.mark.parametrize(
    "f",
    [abs, nvm.square, operator.neg, lambda x: x - 1, lambda x: x // 2, lambda x: x << 1, lambda x: x @ x],
    ids=range(7),
)
def test_bool_is_no_number(f):
    with pytest.raises(TypeError, match="bool"):
        f(nvm.asarray([[True]]))


@pytest.mark.parametrize("f", [nvm.sum, nvm.prod, nvm.cumulative_sum])
def test_nothing_is_summed_in_bool(f):
    with pytest.raises(TypeError, match="any and all"):
        f(nvm.ones(3), dtype=bool)


def test_numbers_are_true_or_false():
    x = nvm.asarray([0.0, 2.0])
    assert nvm.logical_and(x, 0.5).tolist() == [False, True] and nvm.any(0.5).tolist() is True
    assert nvm.where(0.5, x, 1.0).tolist() == [0, 2] and nvm.logical_not(1j).tolist() is False


@pytest.mark.parametrize("f", [nvm.max, nvm.var, nvm.sort, lambda x: x < 1], ids=range(4))
def test_complex_numbers_have_no_order(f):
    with pytest.raises(TypeError, match="complex|real"):
        f(nvm.asarray([1j]))


def test_integers_must_fit():
    a = nvm.asarray([1, 100], dtype=nvm.int8)
    with pytest.raises(OverflowError, match="300"):
        a + 300
    with pytest.raises(OverflowError):
        nvm.asarray([1], dtype=nvm.uint8) - (-1)
    assert (a < 300).tolist() == [True, True] and (a == 300).tolist() == [False, False]
    assert (nvm.asarray([1], dtype=nvm.uint8) > -1).tolist() == [True]
    assert (a + 27).tolist() == [28, 127]
    assert (nvm.asarray([1], dtype=nvm.uint64) + (2**64 - 2)).tolist() == [2**64 - 1]
    for f in (nvm.add, nvm.maximum, nvm.bitwise_and):
        with pytest.raises(OverflowError, match="300"):
            f(300, a)
    assert nvm.less(a, 300).tolist() == [True, True]
    with pytest.raises(OverflowError, match="300"):
        nvm.clip(a, 0, 300)


@pytest.mark.parametrize("big", [2**63, 2**64, 2**70, -(2**64)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint64"])
def test_integers_beyond_int64(big, dtype):
    x = np.ones(2, dtype)
    a = nvm.asarray(x)
    for f, of in ((operator.lt, nvm.less), (operator.ge, nvm.greater_equal), (operator.eq, nvm.equal)):
        assert f(a, big).tolist() == of(a, big).tolist() == f(x, big).tolist()
        assert f(big, a).tolist() == f(big, x).tolist()
    if dtype.startswith("float"):
        got, want = a * big, x * big
        assert got.dtype == want.dtype and got.tolist() == want.tolist()
        a[0] = x[0] = big
        assert a.tolist() == x.tolist()
    elif (dtype, big) != ("uint64", 2**63):
        with pytest.raises(OverflowError):
            a + big


def test_attributes():
    a = nvm.zeros((2, 3), dtype=nvm.float32)
    assert (a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.nbytes) == ((2, 3), 2, 6, nvm.float32, 4, 24)
    assert a.device == nvm.get_default_device()
    assert a.T.shape == (3, 2) and a.mT.shape == (3, 2) and len(a) == 2
    assert a.to_device("cpu").device == "cpu" and a.to_device(nvm.device("cpu")).tolist() == a.tolist()
    z = nvm.asarray([1 + 2j])
    assert z.real.tolist() == [1.0] and z.imag.tolist() == [2.0]
    assert a.__array_namespace__() is nvm and a.__array_namespace__(api_version="2024.12") is nvm
    with pytest.raises(ValueError):
        a.__array_namespace__(api_version="2020.01")
    with pytest.raises(AttributeError):
        a.no_such_thing
    with pytest.raises(TypeError):
        hash(a)
    with pytest.raises(TypeError):
        len(nvm.asarray(1))
    assert weakref.ref(a)() is a


METHODS = {
    "sum": {},
    "prod": {},
    "max": {},
    "min": {},
    "mean": {},
    "var": {},
    "std": {},
    "any": {},
    "all": {},
    "argmax": {},
    "argmin": {},
}


@pytest.mark.parametrize("name", METHODS)
def test_reduction_methods(name, rng):
    x = rng.standard_normal((4, 5))
    a = nvm.asarray(x)
    for args, kw in (((), {}), ((0,), {}), ((1,), {"keepdims": True}), ((), {"axis": -1})):
        np.testing.assert_allclose(np.asarray(getattr(a, name)(*args, **kw)), getattr(x, name)(*args, **kw), rtol=1e-14)


def test_other_methods(rng):
    x = rng.standard_normal((4, 6))
    a = nvm.asarray(x)
    for f in (
        lambda v: v.reshape(2, 12),
        lambda v: v.reshape((3, 8)),
        lambda v: v.reshape(-1),
        lambda v: v.T,
        lambda v: v.transpose(),
        lambda v: v.transpose(1, 0),
        lambda v: v.transpose((1, 0)),
        lambda v: v.clip(-1, 1),
        lambda v: v.cumsum(axis=0),
        lambda v: v.round(),
        lambda v: v.astype("float32"),
        lambda v: v.flatten(),
        lambda v: v.ravel(),
        lambda v: v.conj(),
        lambda v: v.take(np.array([1, 0]), axis=0),
        lambda v: v.repeat(2, axis=1),
        lambda v: v.dot(v.T),
        lambda v: v[None].squeeze(0),
        lambda v: v.copy(),
        lambda v: v.diagonal(),
    ):
        np.testing.assert_allclose(np.asarray(f(a)), f(x), rtol=1e-13)
    assert a.sum.__name__ == "sum" and "sum" in a.sum.__doc__
    with pytest.raises(TypeError, match="nothing"):
        a.sum(nothing=1)
    with pytest.raises(TypeError):
        nvm.Array.sum(3)


def test_values():
    assert bool(nvm.asarray(1.5)) is True and bool(nvm.asarray([0])) is False
    assert int(nvm.asarray(3.7)) == 3 and float(nvm.asarray(2)) == 2.0 and complex(nvm.asarray(1 + 2j)) == 1 + 2j
    assert complex(nvm.asarray(2.0)) == 2 + 0j
    assert [10, 20, 30][nvm.asarray(1)] == 20 and operator.index(nvm.asarray(5, dtype=nvm.uint8)) == 5
    for bad in (lambda: bool(nvm.ones(2)), lambda: bool(nvm.zeros(0))):
        with pytest.raises(ValueError):
            bad()
    for bad in (
        lambda: int(nvm.ones(1)),
        lambda: float(nvm.ones(2)),
        lambda: operator.index(nvm.asarray(1.0)),
        lambda: float(nvm.asarray(1j)),
    ):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.parametrize("dtype", refs.ANY)
def test_tolist_item_bytes(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    a = nvm.asarray(x)
    assert a.tolist() == x.tolist() and a.T.tolist() == x.T.tolist()
    assert type(a.tolist()[0][0]) is type(x.tolist()[0][0])
    assert a[1, 2].item() == x[1, 2].item() and a.item(4) == x.item(4) and a.item(1, 1) == x.item(1, 1)
    assert a.tobytes() == x.tobytes() and a.T.tobytes() == x.T.tobytes()
    assert [r.tolist() for r in a] == x.tolist()
    with pytest.raises(ValueError):
        a.item()


def test_halves_as_python_floats():
    bits = np.arange(65536, dtype=np.uint16)
    x = bits.view(np.float16)
    np.testing.assert_array_equal(np.array(nvm.asarray(x).tolist()), x.astype(float))
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    finite = wide[np.isfinite(wide)]
    np.testing.assert_array_equal(np.array(nvm.asarray(finite).astype(nvm.bfloat16).tolist()), finite.astype(float))


def test_copies_and_pickles():
    a = nvm.asarray([[1.5, 2], [3, 4]])
    for b in (
        a.copy(),
        copy.copy(a),
        copy.deepcopy(a),
        pickle.loads(pickle.dumps(a)),
        pickle.loads(pickle.dumps(a.T)).T,
    ):
        b[0, 0] = 9
        assert a[0, 0].item() == 1.5 and b.shape == (2, 2) and b.dtype == a.dtype
    h = nvm.asarray([1.5, -2]).astype(nvm.bfloat16)
    assert pickle.loads(pickle.dumps(h)).tolist() == [1.5, -2]


@pytest.mark.parametrize("f", [nvm.sin, nvm.sum, nvm.concat, nvm.zeros, nvm.sort], ids=lambda f: f.__name__)
def test_functions_pickle(f):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(f, protocol)) is f


def test_named_results_copy_and_pickle():
    u = nvm.unique_all(nvm.asarray([3, 1, 3]))
    for v in (copy.copy(u), copy.deepcopy(u), pickle.loads(pickle.dumps(u)), nvm.jit(lambda t: t)(u)):
        assert type(v) is type(u) and len(v) == 4 and v.counts.tolist() == [1, 2] and v.values.tolist() == [1, 3]


def test_eval_and_namespace():
    a, b = nvm.ones(3) + 1, nvm.ones(3) * 3
    assert nvm.eval(a, [b, {"k": a}]) is None
    assert a.eval() is a
    nvm.synchronize()
    before = nvm.counters()["evaluations"]
    a.tolist()
    assert nvm.counters()["evaluations"] == before
    assert nvm.__array_api_version__ == "2025.12" and nvm.newaxis is None and abs(nvm.pi - np.pi) == 0
    i = nvm.__array_namespace_info__()
    assert i.devices()[0] == "cpu" and i.default_device() in i.devices()
    assert i.default_dtypes()["real floating"] == nvm.float64
    assert set(i.dtypes(kind="bool")) == {"bool"} and i.capabilities()["max dimensions"] == 32


def test_settings():
    old = nvm.settings()
    assert "NVM_FUSE" in old or "fuse" in old
    nvm.set("fuse", "off")
    try:
        assert (nvm.ones(3) + 1).tolist() == [2, 2, 2]
    finally:
        nvm.set("fuse", "on")
    with pytest.raises(ValueError):
        nvm.set("no_such_setting", 1)
    for name, value, allowed in (
        ("fuse", "maybe", "on or off"),
        ("NVM_TIER", 2, "auto, 0, 1, direct or planned"),
        ("num_threads", "two", "a count"),
        ("check", "plans", "plan, bits"),
    ):
        with pytest.raises(ValueError, match=f"NVM_{name.upper().removeprefix('NVM_')} takes .*{allowed}.*{value}"):
            nvm.set(name, value)
    assert nvm.settings() == old
    assert nvm.info() and "invalid" not in nvm.info()


def test_what_the_environment_says_in_vain_is_told():
    code = "import nvm; assert nvm.settings()['NVM_FUSE'] == 'on'; import nvm.__main__ as m; m.info()"
    env = os.environ | {"NVM_FUSE": "maybe", "NVM_MEM_CACHE": "lots", "NVM_TUNE": "off"}
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env).stdout
    said = [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith("invalid ")]
    assert said == [
        "NVM_FUSE=maybe in the environment is invalid and ignored; it must be on or off",
        "NVM_MEM_CACHE=lots in the environment is invalid and ignored; it must be a count of bytes such as 512M",
    ]


def test_explain():
    text = nvm.explain(nvm.sum(nvm.ones((4, 5)) * 2 + 1, axis=0))
    assert isinstance(text, str) and text.strip()
    assert nvm.explain(lambda x: nvm.sin(x) * 2, np.ones(5)).strip()
    with pytest.raises(TypeError):
        nvm.explain()


def test_import_is_light():
    """Without NumPy and what of the standard library is slow to load; benchmarks/py_overhead.py has the time."""
    code = (
        "import nvm, sys; "
        "heavy = {'numpy', 'inspect', 'collections', 're', 'typing', 'enum'} & set(sys.modules); "
        "late = {f'nvm.{n}' for n in (*nvm._LATE.values(), *nvm._MODULES)} & set(sys.modules); "
        "assert not heavy | late, heavy | late; "
        "nvm.ones(3).tolist(); repr(nvm.ones(3)); assert 'numpy' not in sys.modules"
    )
    package = os.path.dirname(os.path.dirname(nvm.__file__))  # -S hides what is installed
    subprocess.run([sys.executable, "-S", "-c", code], check=True, env={**os.environ, "PYTHONPATH": package})


def test_names_that_are_imported_late():
    """Each is there, is listed, and is looked for once; what the C half calls is found without it."""
    for name, file in nvm._LATE.items():
        assert name in nvm.__all__ or name.startswith("__")
        assert getattr(nvm, name) is getattr(__import__(f"nvm.{file}", fromlist=[name]), name)
        assert name in vars(nvm)
    assert {*nvm.__all__, *nvm._MODULES} <= set(dir(nvm))
    for name, file in nvm._HOOKS.items():
        code = f"import sys; from nvm import _nvm; before = {name!r} in _nvm.hooks; _nvm.hooks['import']({name!r}); "
        code += f"print(before, {name!r} in _nvm.hooks, 'nvm.{file}' in sys.modules)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.stdout.split() == ["False", "True", "True"], (name, run.stderr)


def test_command_line():
    run = lambda *a: subprocess.run([sys.executable, "-m", "nvm", *a], capture_output=True, text=True)  # noqa: E731
    assert nvm.__version__ in run("info").stdout
    assert "NVM_FUSE" in run("settings").stdout.upper()
    assert "softmax" in run("ops").stdout
    assert run("nonsense").returncode == 2


def test_signatures():
    import inspect

    want = "(x, /, *, axis=None, dtype=None, keepdims=False, initial=None, where=None)"
    assert str(inspect.signature(nvm.sum)) == want
    assert str(inspect.signature(nvm.zeros)) == "(shape, *, dtype=None, device=None)"
    assert list(inspect.signature(nvm.ones(2).sum).parameters) == ["axis", "dtype", "keepdims", "initial", "where"]
    assert nvm.sin.__module__ == "nvm" and nvm.sin.__doc__
    for f in nvm._nvm.functions.values():
        inspect.signature(f)


def test_argument_errors():
    for call in (
        lambda: nvm.sin(),
        lambda: nvm.sin(1, 2),
        lambda: nvm.sum(1, axes=0),
        lambda: nvm.reshape(nvm.ones(2)),
        lambda: nvm.add(1, x2=object()),
        lambda: nvm.sin(x="a"),
        lambda: nvm.add(1, 2, x2=3),
    ):
        with pytest.raises(TypeError):
            call()
    assert float(nvm.add(x1=1, x2=2)) == 3


# ---- membership
@pytest.mark.parametrize("name", refs.ANY)
def test_contains(name):
    n = refs.counted((3, 4, 5)).astype(name)
    for x, y in (
        (nvm.asarray(n), n),
        (nvm.asarray(n[0, 0]), n[0, 0]),
        (nvm.asarray(n[:0]), n[:0]),
        (nvm.asarray(n[0, 0, 0]), n[:1, 0, 0].reshape(())),
    ):
        for v in (0, 3, 59, 60, -1, 300, 2.5, float("nan"), 1j, True, np.float32(4), np.int64(-1)):
            assert (v in x) == (v in y), (v, y)
        assert None not in x and "a" not in x
    row = n[0, 1]
    assert row in nvm.asarray(n) and nvm.asarray(row) in nvm.asarray(n)
    with pytest.raises(ValueError, match="broadcast"):
        np.ones(7) in nvm.asarray(n)


def test_contains_is_one_evaluation():
    x = nvm.asarray(np.arange(2000.0)).eval()
    7.0 in x
    before = nvm.counters()["evaluations"]
    assert -1.0 not in x and 1999.0 in x.reshape((20, 100))
    assert nvm.counters()["evaluations"] - before == 2
    with pytest.raises(RuntimeError, match="nvm.where"):
        nvm.jit(lambda x: 1 if 3 in x else 0)(x)
