"""Creation functions, asarray and dtypes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nvm
import refs
from refs import same


@pytest.mark.parametrize("dtype", refs.ANY)
def test_filled(dtype):
    for shape in ((), (3,), (2, 0), (2, 3)):
        same(nvm.zeros(shape, dtype=dtype), np.zeros(shape, dtype))
        same(nvm.ones(shape, dtype=dtype), np.ones(shape, dtype))
        same(nvm.full(shape, 1, dtype=dtype), np.full(shape, 1, dtype))
        same(nvm.empty(shape, dtype=dtype), np.zeros(shape, dtype))
        x = np.ones(shape, dtype)
        same(nvm.zeros_like(x), np.zeros_like(x))
        same(nvm.ones_like(x), x)
        same(nvm.full_like(x, 0), np.zeros_like(x))
        same(nvm.empty_like(x), np.zeros_like(x))
    same(nvm.eye(3, 4, k=1, dtype=dtype), np.eye(3, 4, 1, dtype))


@pytest.mark.parametrize(
    "value,dtype",
    [
        (2**63, "uint64"),
        (2**64 - 1, "uint64"),
        (2**63, None),
        (2**70, "float64"),
        (-(2**70), "float32"),
        (2**63 - 1, "int64"),
        (-(2**63), "int64"),
        (255, "uint8"),
        (-128, "int8"),
    ],
)
def test_filled_to_the_ends(value, dtype):
    same(nvm.full(2, value, dtype=dtype), np.full(2, value, dtype))
    x = np.zeros(2, dtype or "uint64")
    same(nvm.full_like(x, value), np.full_like(x, value))


def test_defaults():
    same(nvm.zeros(3), np.zeros(3))
    same(nvm.zeros(3, device="cpu"), np.zeros(3))
    same(nvm.full(3, 7), np.full(3, 7))
    same(nvm.full(3, True), np.full(3, True))
    same(nvm.full(2, 1 + 2j), np.full(2, 1 + 2j))
    same(nvm.full((2,), nvm.asarray(1.5)), np.full(2, 1.5))
    same(nvm.eye(3), np.eye(3))
    with pytest.raises(RuntimeError, match="cuda"):
        nvm.zeros(3, device="cuda:99")
    with pytest.raises(ValueError, match="gpu"):
        nvm.zeros(3, device="gpu")
    with pytest.raises(ValueError):
        nvm.zeros(-1)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_arange_of_integers(start, stop, step):
    same(nvm.arange(start, stop, step), np.arange(start, stop, step))
    same(nvm.arange(stop), np.arange(stop))
    same(nvm.arange(start, stop, step, dtype="float32"), np.arange(start, stop, step, "float32"))


def test_arange_and_linspace_of_floats():
    np.testing.assert_allclose(np.asarray(nvm.arange(0.0, 1.0, 0.1)), np.arange(0.0, 1.0, 0.1), rtol=1e-15)
    for n in (1, 2, 5, 50):
        for endpoint in (True, False):
            got = np.asarray(nvm.linspace(-1, 3, n, endpoint=endpoint))
            np.testing.assert_allclose(got, np.linspace(-1, 3, n, endpoint=endpoint), rtol=1e-14, atol=1e-15)
    same(nvm.linspace(0, 1, 0), np.linspace(0, 1, 0))
    assert nvm.linspace(0, 1, 3, dtype=nvm.float32).dtype == nvm.float32


# ---- asarray


@pytest.mark.parametrize(
    "x",
    [
        1,
        1.5,
        True,
        2j,
        [1, 2],
        [1, 2.5],
        [[True], [False]],
        [],
        [[]],
        [[], []],
        (1, 2),
        [(1, 2), [3, 4]],
        [1, 2j],
        [True, 2],
        2**63,
        [2**63],
    ],
)
def test_numbers_and_lists(x):
    same(nvm.asarray(x), np.asarray(x))


def test_lists_of_arrays():
    a = nvm.ones(3)
    same(nvm.asarray([a, a * 2, [7, 8, 9]]), np.array([[1.0] * 3, [2.0] * 3, [7.0, 8, 9]]))
    same(nvm.asarray([a.sum(), 1.0]), np.array([3.0, 1.0]))
    same(nvm.asarray([np.float32(1), np.float32(2)]), np.array([1, 2], "float32"))


@pytest.mark.parametrize("dtype", refs.ANY)
def test_asarray_dtype(dtype):
    same(nvm.asarray([0, 1, 2], dtype=dtype), np.asarray([0, 1, 2], dtype))
    same(nvm.asarray(np.arange(5), dtype=dtype), np.arange(5).astype(dtype))
    same(nvm.asarray(3, dtype=dtype), np.asarray(3, dtype))


@pytest.mark.parametrize(
    "bad,error",
    [
        ([[1, 2], [3]], ValueError),
        ([[1, 2], 3], ValueError),
        ("text", TypeError),
        (object(), TypeError),
        ([None], TypeError),
        (2**64, OverflowError),
        ({}, TypeError),
        (np.array(["a"]), TypeError),
        (np.array([None]), TypeError),
    ],
)
def test_asarray_refuses(bad, error):
    with pytest.raises(error):
        nvm.asarray(bad)


BETWEEN = [1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 1 + 2**-9 + 2**-40, 2**-25 * (1 + 2**-40), 65519.999999]


@pytest.mark.parametrize("x", BETWEEN)  # just off the middle of two numbers: by way of float32 it would be the middle
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_numbers_are_rounded_once(x, dtype):
    want = nvm.asarray([x]).astype(dtype).tolist()
    a, b = nvm.zeros(1, dtype=dtype), nvm.zeros(1, dtype=dtype)
    a[0], b[:] = x, [x]
    made = [nvm.asarray(x, dtype=dtype).reshape(1), nvm.asarray([x], dtype=dtype), nvm.full(1, x, dtype=dtype), a, b]
    assert [m.tolist() for m in made] == [want] * len(made)
    if dtype == "float16":
        assert want == np.asarray([x], dtype).tolist()


def test_asarray_range():
    with pytest.raises(OverflowError, match="300"):
        nvm.asarray([300], dtype=nvm.int8)
    with pytest.raises(OverflowError):
        nvm.asarray([-1], dtype=nvm.uint8)
    with pytest.raises(TypeError):
        nvm.asarray([1j], dtype=nvm.float32)


def test_full_range():
    for make in (lambda v, t: nvm.full(3, v, dtype=t), lambda v, t: nvm.full_like(nvm.ones(3, dtype=t), v)):
        for value, dtype in ((300, nvm.int8), (-1, nvm.uint8), (2**63, nvm.int64), (2**64, nvm.uint64)):
            with pytest.raises(OverflowError, match=f"{value}"):
                make(value, dtype)
        assert make(127, nvm.int8).tolist() == [127] * 3 and make(2, nvm.float32).dtype == nvm.float32


@pytest.mark.parametrize(
    "args",
    [
        (2**63, 2**63 + 4),
        (2**63, 2**63 + 9, 3),
        (2**64 - 1, 2**64 - 6, -2),
        (5, 2**63 + 5, 2**62),
        (2**63 + 5, 0, -(2**62)),
        (2**63, 2**63),
        (2**63, 3),
        (0, 3, 2**63),
        (2**64 - 3, 2**64),
    ],
)
def test_arange_beyond_int64(args):
    want = np.array(list(range(*args)), dtype="uint64")
    same(nvm.arange(*args, dtype=nvm.uint64), want)
    same(nvm.arange(*args), want)


def test_arange_must_fit():
    for args in ((2**64 - 1, 2**64 + 1), (-1, 2**63, 2**62)):
        with pytest.raises(OverflowError):
            nvm.arange(*args, dtype=nvm.uint64)
    with pytest.raises(OverflowError):
        nvm.arange(2**63, 2**63 + 2, dtype=nvm.int64)


def test_array_copies():
    x = np.zeros(3)
    a, b = nvm.array(x), nvm.asarray(x)
    x[:] = 1
    assert a.tolist() == b.tolist() == [0, 0, 0]
    c = nvm.array(a)
    c[0] = 5
    assert a.tolist() == [0, 0, 0] and c.tolist() == [5, 0, 0]
    assert nvm.asarray(a) is a
    assert nvm.asarray(a, copy=True) is not a


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("dtype", ["i2", "i8", "u4", "f2", "f4", "f8", "c8"])
def test_byte_orders(order, dtype):
    x = np.arange(6).astype(order + dtype)
    same(nvm.asarray(x), x.astype(x.dtype.newbyteorder("=")))


def test_strided_and_misaligned_memory():
    x = np.arange(24.0).reshape(4, 6)
    for v in (x.T, x[::-1], x[1::2, ::-3], x[:, 2], np.broadcast_to(x[0], (3, 6))):
        same(nvm.asarray(v), v)
    raw = np.zeros(5, np.dtype([("a", "i1"), ("b", "f8")]))
    raw["b"] = np.arange(5)
    same(nvm.asarray(raw["b"]), np.arange(5.0))


def test_lists_that_change_while_they_are_read():
    class Changes:
        def __init__(self, change):
            self.change = change

        def __array__(self, dtype=None, copy=None):
            self.change()
            return np.ones(2)

    class Int(int):
        def __bool__(self):
            self.change()
            return True

    def ints(change):
        i = Int(1)
        rows = [[i, 2], [3, 4], [5, 6]]
        i.change = lambda: change(rows)
        return rows

    for change in (
        lambda r: r.extend([[1, 2]] * 10000),
        lambda r: r[0].extend([1] * 10000),
        lambda r: r.clear(),
        lambda r: r[0].clear(),
        lambda r: r.__setitem__(1, r),
        lambda r: r[0].__setitem__(1, r),
        lambda r: r.__setitem__(1, 5),
    ):
        with pytest.raises(ValueError, match="lengths"):
            nvm.asarray(ints(change), dtype=nvm.bool)

    for change in (lambda: rows.clear(), lambda: rows.extend([1] * 1000)):
        rows = [Changes(change), [1.0, 2.0], [3.0, 4.0]]
        assert nvm.asarray(rows).tolist() == [[1, 1], [1, 2], [3, 4]]


def test_lists_without_an_end():
    endless = []
    endless.append(endless)
    x = nvm.ones(4)
    for f in (lambda: nvm.reshape(x, endless), lambda: nvm.eval(endless), lambda: nvm.jit(lambda v: 1)(endless)):
        for _ in range(50):  # each time as deep as the first
            with pytest.raises(RecursionError):
                f()
    with pytest.raises(ValueError):
        nvm.asarray(endless)


def test_a_copy_that_has_no_truth():
    class Neither:
        def __bool__(self):
            raise ZeroDivisionError

    for f in (nvm.asarray, nvm.from_dlpack):
        with pytest.raises(ZeroDivisionError):
            f(nvm.ones(2), copy=Neither())


# ---- dtypes

ALL = [getattr(nvm, n) for n in refs.ANY]


@pytest.mark.parametrize("t", ALL)
def test_dtype_objects(t):
    n = np.dtype(t.name)
    assert t == n and n == t and t == t.name and not t != n and t.itemsize == n.itemsize and t.kind == n.kind
    assert np.dtype(t) == n and np.zeros(2, t).dtype == n
    assert nvm.dtype(n) is t and nvm.dtype(n.type) is t and nvm.dtype(t.name) is t
    assert hash(t) == hash(t.name) and {t: 1}[t.name] == 1 and {t.name: 1}[t] == 1
    assert hash(t) == hash(nvm.dtype(t.name)) and repr(t) == "nvm." + t.name and str(t) == t.name
    import pickle

    assert pickle.loads(pickle.dumps(t)) is t
    assert t != "float" + "7" and t is not None and not t == None and t != 3  # noqa: E711


def test_python_dtypes():
    assert (nvm.dtype(bool), nvm.dtype(int), nvm.dtype(float), nvm.dtype(complex)) == (
        nvm.bool,
        nvm.int64,
        nvm.float64,
        nvm.complex128,
    )
    for code in "? b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split():
        assert nvm.dtype(code) == np.dtype(code)
    for bad in ("float33", "i3", "f16", "", "<", "g", ">f4", object(), 3, np.dtype("M8[s]")):
        with pytest.raises(TypeError):
            nvm.dtype(bad)


def test_dtypes_that_raise():
    class Odd:
        @property
        def name(self):
            raise MemoryError

    with pytest.raises(MemoryError):
        nvm.zeros(2, dtype=Odd())
    with pytest.raises(MemoryError):
        nvm.float32 == Odd()
    assert nvm.float32 != "\udc80"
    with pytest.raises(TypeError):
        nvm.dtype("\udc80")


@pytest.mark.parametrize("t", ALL)
@pytest.mark.parametrize("u", ALL)
def test_promotion(t, u):
    want = np.result_type(np.dtype(t), np.dtype(u))
    assert nvm.result_type(t, u) == want
    assert nvm.add(nvm.ones(2, dtype=t), nvm.ones(2, dtype=u)).dtype == want
    assert nvm.can_cast(t, u) == (want == u)


@pytest.mark.parametrize("t", ALL)
@pytest.mark.parametrize("number", [True, 1, 1.0, 1j])
def test_weak_promotion(t, number):
    want = np.result_type(np.dtype(t), number)
    assert nvm.result_type(t, number) == want
    assert (nvm.ones(2, dtype=t) + number).dtype == want
    assert (number * nvm.ones(2, dtype=t)).dtype == want


def test_bfloat16_promotion():
    assert nvm.result_type(nvm.bfloat16, nvm.float16) == nvm.float32
    assert nvm.result_type(nvm.bfloat16, nvm.float32) == nvm.float32
    assert nvm.result_type(nvm.bfloat16, 1.0) == nvm.bfloat16
    assert nvm.result_type(1, 2.0) == nvm.float64 and nvm.result_type(True, 2) == nvm.int64


def test_limits_and_kinds():
    for t in ("float16", "float32", "float64"):
        a, b = nvm.finfo(t), np.finfo(t)
        assert (a.bits, a.eps, a.max, a.min, a.smallest_normal) == (b.bits, b.eps, b.max, b.min, b.smallest_normal)
    assert nvm.finfo(nvm.complex64).dtype == nvm.float32
    for t in refs.INTS:
        assert (nvm.iinfo(t).bits, nvm.iinfo(t).max, nvm.iinfo(t).min) == (
            np.iinfo(t).bits,
            np.iinfo(t).max,
            np.iinfo(t).min,
        )
    assert nvm.isdtype(nvm.float32, "real floating") and not nvm.isdtype(nvm.float32, "integral")
    assert nvm.isdtype(nvm.uint8, ("bool", "unsigned integer")) and nvm.isdtype("int8", nvm.int8)
    with pytest.raises(TypeError):
        nvm.finfo(nvm.int8)
    with pytest.raises(ValueError, match=r"\[isdtype\] there is no kind 'integer'; kinds are 'bool', 'signed integer'"):
        nvm.isdtype(nvm.int8, "integer")
    with pytest.raises(ValueError, match=r"\[meshgrid\] indexing is 'xy' or 'ij', not 'yx'"):
        nvm.meshgrid([1], [2], indexing="yx")
    with pytest.raises(ValueError, match=r"\[broadcast_shapes\] the shapes do not broadcast: \(2, 3\), \(4,\)"):
        nvm.broadcast_shapes((2, 3), (4,))


@pytest.mark.parametrize(
    "start, stop",
    [
        (0, 1j),
        (1 + 2j, -3.5),
        (1j, 1j),
        (np.complex128(1), -1j),
        (np.array(1 + 1j), np.float32(2)),
        (0.5, np.complex128(3j)),
    ],
)
@pytest.mark.parametrize("num", [0, 1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_complex_ends(start, stop, num, endpoint):
    got, want = nvm.linspace(start, stop, num, endpoint=endpoint), np.linspace(start, stop, num, endpoint=endpoint)
    assert got.dtype == want.dtype == np.complex128
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-15, atol=1e-15)
    for end in (nvm.asarray(stop), np.asarray(stop)):
        np.testing.assert_array_equal(np.asarray(nvm.linspace(start, end, num, endpoint=endpoint)), np.asarray(got))
    assert nvm.linspace(np.complex64(2j), stop, num, dtype="complex64").dtype == nvm.complex64


def test_complex_numbers_where_real_ones_are_meant():
    with pytest.raises(TypeError, match="real numbers"):
        nvm.arange(0, 3j)
    with pytest.raises(TypeError, match="float64"):
        nvm.linspace(0, 1j, 3, dtype="float64")
    with pytest.raises(TypeError, match="'rtol' is a real number"):
        nvm.isclose(1, 2, rtol=1j)
    assert nvm.full((2,), 1j).tolist() == [1j, 1j] and nvm.full_like(nvm.ones(1, dtype=complex), 2j).tolist() == [2j]
