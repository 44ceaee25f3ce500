"""Every operation of the table against NumPy, over dtypes, odd shapes, views, empty arrays and special values."""

import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import nvm
import refs

SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (33, 17), (2, 3, 4), (1, 1000)]
SPECIALS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-40, 3e38]


def test_every_operation_has_a_reference():
    known = set(refs.MAPS) | set(refs.REDUCTIONS)
    for file, names in refs.ELSEWHERE.items():
        text = (pathlib.Path(__file__).parent / file).read_text()
        for name in names:
            called = f"nvm.{name}(" in text or name.startswith("linalg.") and f"la.{name[7:]}(" in text
            assert called, f"{file} does not call nvm.{name}"
        known |= set(names)
    known |= {name for name, by in refs.INSIDE.items() if by in known}
    assert {n for n in nvm._nvm.op_table() if not n.startswith("_")} - known == set()


def draw(rng, dtype, shape, lo=-4, hi=4):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind in "iu":
        low, high = (max(int(lo), 0), 12) if dtype.kind == "u" else (-12 if lo < 0 else int(np.ceil(lo)), 12)
        return np.asarray(rng.integers(low, high + 1, shape), dtype)
    x = rng.uniform(lo, hi, shape)
    return np.asarray(x + 1j * rng.uniform(lo, hi, shape) if dtype.kind == "c" else x, dtype)


def wide(x):
    return x.astype(
        {
            "float16": np.float32,
            "float32": np.float64,
            "float64": np.longdouble,
            "complex64": np.complex128,
            "complex128": np.complex256,
        }.get(x.dtype.name, x.dtype)
    )


def reference(m, args):
    t = np.result_type(*args)
    if m.floats and t.kind in "biu":
        t = np.dtype(np.float64)
    args = [a.astype(t) for a in args]
    half = t == np.float16
    r = m.ref(*(wide(a) for a in args)) if (m.wide or half) and t.kind in "fc" else m.ref(*args)
    r = np.asarray(r)
    if r.dtype.kind in "fc" and t.kind in "fc":
        r = r.astype(np.zeros(0, t).real.dtype if r.dtype.kind == "f" else t)
    return r


def ulps(got, want, least):
    """Distance in units of the last place of `want`; NaN is near NaN only, infinities equal themselves only."""
    size = np.abs(want)
    unit = np.spacing(np.maximum(size, max(least, np.finfo(size.dtype).tiny)).astype(size.dtype))
    d = np.abs(got - want) if want.dtype.kind == "c" else np.abs(got.astype(np.longdouble) - want.astype(np.longdouble))
    d = d / unit
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0, np.where(np.isfinite(got) & np.isfinite(want), d, np.inf))


def close(got, want, ulp, what, least=0):
    assert got.dtype == want.dtype, (what, got.dtype, want.dtype)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    if want.dtype.kind not in "fc" or not want.size:
        np.testing.assert_array_equal(got, want, str(what))
        return
    d = ulps(got, want, least)
    assert d.max() <= ulp, (what, float(d.max()), got.ravel()[d.argmax()], want.ravel()[d.argmax()])


def bound(m, dtype):
    """f16 results may be half a unit off where the f32 result lies near a tie; complex functions have a bound for the
    modulus."""
    t = np.dtype(dtype)
    if t == np.float16:
        return max(m.ulp, 1)
    return m.ulp * 4 + 2 if t.kind == "c" else m.ulp


CASES = [(n, t) for n, m in refs.MAPS.items() for t in m.takes]


def test_arithmetic_of_bools_is_refused():
    """But for what is a bool again (+ and *): NumPy goes on in int8, the array API leaves it open."""
    b, i = nvm.asarray([True, False]), nvm.asarray([2, 3])
    assert (b + b).dtype == (b * b).dtype == nvm.bool and (i * b).dtype == nvm.int64
    for f in (
        lambda: b**b,
        lambda: b**2,
        lambda: 2**b,
        lambda: i**b,
        lambda: b**-1,
        lambda: b - b,
        lambda: b // b,
        lambda: b % b,
        lambda: b << b,
        lambda: b >> b,
        lambda: nvm.square(b),
    ):
        with pytest.raises(TypeError, match="does not take bool; it takes: "):
            f()


@pytest.mark.parametrize("name,dtype", CASES)
def test_map(name, dtype, rng):
    m = refs.MAPS[name]
    f = getattr(nvm, name)
    for shape in SHAPES:
        args = [draw(rng, dtype, shape, m.lo, m.hi) for _ in range(m.nin)]
        close(np.asarray(f(*args, **m.attrs)), reference(m, args), bound(m, dtype), (name, dtype, shape), m.unit)


@pytest.mark.parametrize("name,dtype", CASES)
def test_map_on_views(name, dtype, rng):
    m = refs.MAPS[name]
    f = getattr(nvm, name)
    x = [draw(rng, dtype, (6, 8), m.lo, m.hi) for _ in range(m.nin)]
    a = [nvm.asarray(v) for v in x]
    for view in (lambda v: v.T, lambda v: v[::-1], lambda v: v[1:, ::-2], lambda v: v[3], lambda v: v[:, 2:3]):
        close(np.asarray(f(*map(view, a))), reference(m, [view(v) for v in x]), bound(m, dtype), (name, dtype), m.unit)
    if m.nin == 2:
        close(
            np.asarray(f(a[0], a[1][0])), reference(m, [x[0], x[1][0]]), bound(m, dtype), (name, dtype, "row"), m.unit
        )
        close(
            np.asarray(f(a[0][:, :1], a[1])),
            reference(m, [x[0][:, :1], x[1]]),
            bound(m, dtype),
            (name, dtype, "column"),
            m.unit,
        )


@pytest.mark.parametrize("name,dtype", [(n, t) for n, t in CASES if refs.MAPS[n].special and t in refs.FLOATS])
def test_map_on_special_values(name, dtype):
    m = refs.MAPS[name]
    one = np.asarray(SPECIALS, np.float64).astype(dtype)
    args = [g.ravel() for g in np.meshgrid(*[one] * m.nin)]
    want = reference(m, args)
    got = np.asarray(getattr(nvm, name)(*args))
    close(got, want, max(m.ulp, 1) if m.ulp else 0, (name, dtype), m.unit)
    if want.dtype.kind == "f" and m.ulp == 0 and name not in ("maximum", "minimum", "multiply", "divide", "reciprocal"):
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), name)


@pytest.mark.parametrize("name", [n for n, m in refs.MAPS.items() if m.nin == 2])
def test_mixed_dtypes(name, rng):
    m = refs.MAPS[name]
    takes = [t for t in m.takes if t != "float16"]
    for t in takes:
        for u in takes:
            expected = np.result_type(np.dtype(t), np.dtype(u))
            if expected.name not in m.takes and not (m.floats and expected.kind in "biu"):
                continue
            args = [draw(rng, t, (3, 4), max(m.lo, 0), m.hi), draw(rng, u, (4,), max(m.lo, 0), m.hi)]
            close(np.asarray(getattr(nvm, name)(*args)), reference(m, args), bound(m, expected), (name, t, u), m.unit)


@pytest.mark.parametrize("name", list(refs.MAPS))
def test_refused_dtypes(name):
    m = refs.MAPS[name]
    for t in refs.ANY:
        if (
            t in m.takes
            or (m.floats and t in refs.INTS + refs.BOOL)
            or (name in ("fma", "nextafter") and t not in refs.COMPLEX)
        ):
            continue
        with pytest.raises(TypeError, match=name):
            getattr(nvm, name)(*[nvm.ones(3, dtype=t)] * m.nin)


@pytest.mark.parametrize(
    "name", [n for n, m in refs.MAPS.items() if "float32" in m.takes and n not in ("nextafter", "fma")]
)
def test_bfloat16(name, rng):
    m = refs.MAPS[name]
    args = [nvm.asarray(draw(rng, "float32", (40,), m.lo, m.hi)).astype(nvm.bfloat16) for _ in range(m.nin)]
    got = getattr(nvm, name)(*args)
    want = getattr(nvm, name)(*(a.astype(nvm.float32) for a in args))
    if want.dtype == nvm.float32:
        assert got.dtype == nvm.bfloat16
        want = want.astype(nvm.bfloat16)
    np.testing.assert_allclose(np.asarray(got.astype(nvm.float32)), np.asarray(want.astype(nvm.float32)), rtol=2**-7)


# ---- reductions

REDUCED = [(n, t) for n, r in refs.REDUCTIONS.items() for t in r.takes]


def red_close(got, want, r, dtype, n, what):
    assert got.dtype == want.dtype, (what, got.dtype, want.dtype)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    if dtype in r.exact or want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, str(what))
    else:
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(
            got, want, rtol=eps * (8 + np.log2(n + 1)), atol=eps * 8 * np.sqrt(n + 1), err_msg=str(what)
        )


@pytest.mark.parametrize("name,dtype", REDUCED)
def test_reduction(name, dtype, rng):
    r = refs.REDUCTIONS[name]
    f = getattr(nvm, name)
    for shape in [(), (1,), (7,), (3, 5), (33, 40), (2, 3, 4), (1500,), (5, 1, 3), (0,), (3, 0)]:
        x = draw(rng, dtype, shape)
        if name == "prod" and np.dtype(dtype).kind in "fc":
            x = draw(rng, dtype, shape, 0.9, 1.1)
            x = (x / np.abs(x)).astype(dtype) if x.dtype.kind == "c" else x
        axes = [None] + list(range(-x.ndim, x.ndim)) + ([] if r.one_axis or x.ndim < 2 else [(0, 1), (-1, 0)])
        for axis in axes:
            n = x.size if axis is None else int(np.prod([x.shape[a] for a in np.atleast_1d(axis)]))
            if not n and not r.empty:
                continue
            for keep in (False, True):
                want = np.asarray(r.ref(x, axis=axis, keepdims=keep))
                red_close(
                    np.asarray(f(x, axis=axis, keepdims=keep)), want, r, dtype, n, (name, dtype, shape, axis, keep)
                )


@pytest.mark.parametrize("name", list(refs.REDUCTIONS))
def test_reduction_of_views(name, rng):
    r = refs.REDUCTIONS[name]
    x = draw(rng, "float64", (9, 70))
    a = nvm.asarray(x)
    for view in (lambda v: v.T, lambda v: v[::-1, 1:], lambda v: v[::2, ::-3], lambda v: v * 2 + 1):
        for axis in (None, 0, 1):
            want = np.asarray(r.ref(view(x), axis=axis))
            red_close(np.asarray(getattr(nvm, name)(view(a), axis=axis)), want, r, "float64", 630, (name, axis))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std"])
def test_reduction_of_nan_and_infinity(name):
    ref = getattr(np, name)
    for bad in (np.nan, np.inf, -np.inf):
        x = np.arange(300.0)
        x[117] = bad
        np.testing.assert_array_equal(np.asarray(getattr(nvm, name)(x)), np.asarray(ref(x)))


def test_argmax_takes_nan_and_the_first():
    assert int(nvm.argmax([1.0, np.nan, 3.0, np.nan])) == 1
    assert int(nvm.argmin([1.0, np.nan, -3.0])) == 1
    assert int(nvm.argmax([2, 7, 7, 1])) == 1
    assert int(nvm.argmin([2, 1, 7, 1])) == 1


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_empty_extremum_is_an_error(name):
    with pytest.raises(ValueError):
        np.asarray(getattr(nvm, name)(nvm.zeros(0)))


def test_sum_dtype_argument(rng):
    x = draw(rng, "int8", (50,))
    assert nvm.sum(x, dtype=nvm.float32).dtype == np.float32
    assert float(nvm.sum(x, dtype="float64")) == x.sum()
    assert nvm.sum(nvm.asarray(x)).dtype == nvm.int64


def test_reductions_are_the_same_bits_fused_and_not(rng):
    x, y = draw(rng, "float32", (37, 2100)), draw(rng, "float32", (37, 2100))

    def f(x, y):
        return nvm.sum(x * y, axis=1), nvm.sum(x * y), nvm.sum(nvm.asarray(x).T * nvm.asarray(y).T, axis=1)

    fused = [np.asarray(v) for v in f(x, y)]
    p = nvm.asarray(np.asarray(nvm.asarray(x) * y))
    alone = [np.asarray(v) for v in (nvm.sum(p, axis=1), nvm.sum(p), nvm.sum(nvm.asarray(np.asarray(p.T)), axis=1))]
    for a, b in zip(fused, alone):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "shape,axis", [((70000,), None), ((3, 40000), None), ((3, 40000), 1), ((40000, 3), 0), ((100003,), None)]
)
@pytest.mark.parametrize("same", ["all", "along", "across"])
def test_long_reductions_of_what_is_one_number(shape, axis, same, rng):
    """Partial sums have a last part that is shorter, which no element of the operand tells them."""
    n, along = len(shape), axis or 0
    x = np.broadcast_to(
        np.full((), 3.0)
        if same == "all" or n == 1
        else rng.standard_normal([k if (d == along) == (same == "across") else 1 for d, k in enumerate(shape)]),
        shape,
    )
    part = x[tuple(slice(1) if s == 0 and k > 1 else slice(None) for s, k in zip(x.strides, shape))]
    a = nvm.broadcast_to(nvm.asarray(np.ascontiguousarray(part)), shape) if same != "all" else nvm.full(shape, 3.0)
    for name in ("sum", "mean", "max", "min", "var", "argmax", "count_nonzero", "logsumexp"):
        got = np.asarray(getattr(nvm, name)(a, axis=axis))
        want = np.log(np.sum(np.exp(x), axis=axis)) if name == "logsumexp" else getattr(np, name)(x, axis=axis)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.fixture
def own_products():
    """By nvm's kernels: which library computes a product may hang on the number of threads."""
    old = nvm.settings()["NVM_SOLVERS"]
    nvm.set("solvers", "kernel")
    yield
    nvm.set("solvers", old)


def test_settings_never_change_bits(rng, own_products):
    x, y = draw(rng, "float32", (61, 300)), draw(rng, "float64", (300,))
    graphs = {
        "map": lambda: nvm.sin(x) * nvm.exp(nvm.asarray(x) * 0.5) - x,
        "mixed": lambda: nvm.asarray(x) * y + 1,
        "softmax": lambda: nvm.softmax(x, axis=1),
        "variance": lambda: nvm.var(x, axis=0) + nvm.mean(x, axis=0),
        "norm": lambda: (
            (nvm.asarray(x) - nvm.mean(x, axis=1, keepdims=True)) / nvm.sqrt(nvm.var(x, axis=1, keepdims=True) + 1e-5)
        ),
        "views": lambda: nvm.sum(nvm.asarray(x)[::-2, 3:].T * 2 + 1, axis=0),
        "scan": lambda: nvm.cumulative_sum(x, axis=1) * 2,
        "matmul": lambda: nvm.asarray(x) @ nvm.asarray(x).T,
        "join": lambda: nvm.sum(nvm.concat([x, nvm.asarray(x) * 2]) + 1, axis=1),
    }
    old = nvm.settings()
    want = {name: f().tobytes() for name, f in graphs.items()}
    for name, value in (("tier", "0"), ("tier", "1"), ("fuse", "off"), ("num_threads", "1")):
        key = next(k for k in old if k.lower().removeprefix("nvm_") == name)
        nvm.set(name, value)
        try:
            for g, f in graphs.items():
                assert f().tobytes() == want[g], (name, value, g)
        finally:
            nvm.set(name, old[key])


# ---- the rest of the elementwise and statistical operations


@pytest.mark.parametrize("dtype", refs.ANY)
def test_where(dtype, rng):
    c, a, b = draw(rng, "bool", (5, 6)), draw(rng, dtype, (5, 6)), draw(rng, dtype, (6,))
    close(np.asarray(nvm.where(c, a, b)), np.where(c, a, b), 0, dtype)
    one = True if dtype == "bool" else 1
    close(np.asarray(nvm.where(c[:, :1], a, one)), np.where(c[:, :1], a, np.asarray(1, dtype)), 0, dtype)


@pytest.mark.parametrize("dtype", refs.REAL)
def test_clip(dtype, rng):
    x = draw(rng, dtype, (4, 50))
    for lo, hi in ((1, 3), (None, 2), (2, None), (None, None)):
        want = x if lo is None and hi is None else np.clip(x, lo, hi)
        close(np.asarray(nvm.clip(x, lo, hi)), want.astype(dtype), 0, (dtype, lo, hi))
    assert np.isnan(float(nvm.clip(np.nan, 0.0, 1.0)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_clipping_at_zero_and_what_is_above_it(dtype):
    """Together these are read off relu(x), whose values say the same of NaN and of zeros with either sign."""
    whole = [0, -1, 5, 2**31 - 1, -(2**31)]
    floats = [np.nan, -0.0, 0.0, 6e-8, -6e-8, 1e-45, np.inf, -np.inf, 2, -2]
    x = np.array(whole if dtype == "int32" else floats).astype(dtype)

    def all_of(x):  # a product is read by no one as it is: in 16 bits it is rounded first
        y = x * x * x
        return nvm.maximum(y, 0), nvm.relu(y), y > 0, 0 < y, y <= 0, 0 >= y, y >= 0, 0 > y

    y = (x.astype(np.float32) ** 3 if dtype == "float16" else x * x * x).astype(dtype)
    want = [np.where(np.isnan(y), y, np.where(y > 0, y, 0)).astype(dtype)] * 2
    want += [y > 0, 0 < y, y <= 0, 0 >= y, y >= 0, 0 > y]
    for got, ref in zip(nvm.jit(all_of)(nvm.asarray(x)), want):
        np.testing.assert_array_equal(np.asarray(got), ref)
        assert not np.signbit(np.asarray(got)[1:]).any() or ref.dtype == bool


def test_isclose():
    a = np.array([1.0, 1.0 + 1e-9, np.nan, np.inf, -np.inf, 2.0])
    b = np.array([1.0, 1.0, np.nan, np.inf, np.inf, 2.1])
    np.testing.assert_array_equal(np.asarray(nvm.isclose(a, b)), np.isclose(a, b))
    np.testing.assert_array_equal(np.asarray(nvm.isclose(a, b, equal_nan=True)), np.isclose(a, b, equal_nan=True))


@pytest.mark.parametrize("t", refs.ANY)
@pytest.mark.parametrize("u", refs.ANY)
def test_astype(t, u, rng):
    if np.dtype(t).kind == "c" and np.dtype(u).kind != "c" and u != "bool":
        return
    x = draw(rng, t, (40,))
    if np.dtype(u).kind == "u" and np.dtype(t).kind != "b":
        x = np.abs(x) if np.dtype(t).kind in "fi" else x
    close(np.asarray(nvm.astype(x, u)), x.astype(u), 0, (t, u))


def test_astype_saturates():
    x = np.array([1e30, -1e30, np.nan, np.inf, -np.inf, 3.99, -3.99])
    assert nvm.astype(x, nvm.int32).tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 3, -3]
    assert nvm.astype(x, nvm.uint8).tolist() == [255, 0, 0, 255, 0, 3, 0]


def test_integer_corner_cases():
    low = np.array([-128, -128, 5, 0], np.int8)
    by = np.array([-1, 0, 0, 0], np.int8)
    assert nvm.floor_divide(low, by).tolist() == [-128, 0, 0, 0]
    assert nvm.remainder(low, by).tolist() == [0, 0, 0, 0]
    assert nvm.abs(low).tolist() == [-128, -128, 5, 0]


@pytest.mark.parametrize("dtype", refs.INTS + refs.FLOATS)
def test_scans(dtype, rng):
    for shape in ((1,), (40,), (3, 33), (2000,)):
        x = draw(rng, dtype, shape, 0.9, 1.1)
        for axis in range(len(shape)):
            out = np.int64 if np.dtype(dtype).kind == "i" else np.uint64 if np.dtype(dtype).kind == "u" else dtype
            for f, g in ((nvm.cumulative_sum, np.cumsum), (nvm.cumulative_prod, np.cumprod)):
                want = g(x.astype(np.longdouble if np.dtype(dtype).kind == "f" else out), axis=axis).astype(out)
                got = np.asarray(f(x, axis=axis))
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "float32" else 1e-10)
    got = np.asarray(nvm.cumulative_sum([1, 2, 3], include_initial=True))
    assert got.tolist() == [0, 1, 3, 6]
    assert nvm.cumulative_prod([2, 3]).tolist() == [2, 6]


def test_softmax(rng):
    x = draw(rng, "float64", (7, 130), -50, 50)
    for axis in (0, 1, -1, (0, 1), None):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        want = e / e.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(np.asarray(nvm.softmax(x, axis=axis)), want, rtol=1e-13)
        np.testing.assert_allclose(np.asarray(nvm.log_softmax(x, axis=axis)), np.log(want), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softmax_of_infinities(dtype):
    """log_softmax(x) is x - logsumexp(x), and softmax(x) e to that, whatever is in x."""
    inf, nan = np.inf, np.nan
    x = np.array(
        [
            [inf, 0, -inf],
            [inf, inf, 800],
            [-inf, -inf, -inf],
            [-inf, 3, -inf],
            [nan, inf, 0],
            [nan, 0, -inf],
            [60000, inf, -60000],
            [1, 2, 3],
        ],
        dtype,
    )
    for axis, rows in ((1, x), (0, np.ascontiguousarray(x.T))):
        a = nvm.asarray(rows)
        total = np.asarray(nvm.logsumexp(a.astype("float64"), axis=axis, keepdims=True))
        with np.errstate(invalid="ignore"):
            want = rows - total
            for got, ref in ((nvm.log_softmax(a, axis=axis), want), (nvm.softmax(a, axis=axis), np.exp(want))):
                assert got.dtype == dtype
                np.testing.assert_allclose(np.asarray(got), ref, rtol=4 * np.finfo(dtype).eps)
    assert np.isnan(nvm.log_softmax(a, axis=0)[0, 0].item()) and nvm.log_softmax(a, axis=0)[1, 0].item() == -inf


@pytest.mark.parametrize("dtype", refs.INTS[3:4] + refs.FLOATS + refs.COMPLEX)
def test_products(dtype, rng):
    a, b = draw(rng, dtype, (2, 3, 4)), draw(rng, dtype, (4, 5))
    np.testing.assert_allclose(np.asarray(nvm.matmul(a, b)), a @ b, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(nvm.asarray(a) @ b), a @ b, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(a @ nvm.asarray(b)), a @ b, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(nvm.matmul(a[0, 0], b)), a[0, 0] @ b, rtol=1e-5)
    c = draw(rng, dtype, (2, 3, 4))
    np.testing.assert_allclose(np.asarray(nvm.vecdot(a, c)), np.sum(a.conj() * c, axis=-1), rtol=1e-5)
    with pytest.raises(ValueError, match="matmul"):
        nvm.matmul(a, a)


def test_gelu_approximation(rng):
    x = draw(rng, "float64", (100,))
    want = x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    np.testing.assert_allclose(np.asarray(nvm.gelu(x, approximate=True)), want, rtol=1e-12, atol=1e-15)
    assert np.abs(np.asarray(nvm.gelu(x)) - want).max() > 1e-6


def test_vector_norm_orders(rng):
    x = draw(rng, "float64", (50,))
    for order in (1, 2, 3, 2.5, np.inf, -np.inf, 0):
        np.testing.assert_allclose(float(nvm.vector_norm(x, ord=order)), np.linalg.norm(x, order), rtol=1e-12)


LONG = """if 1:
    import nvm
    for n, columns in ((1 << 23, 3), (1 << 25, 3), (3 << 20, 70)):
        x = nvm.broadcast_to(nvm.asarray([1] * columns, dtype="int8"), (n, columns))
        f = nvm.astype(x, "float32")
        assert nvm.sum(x, axis=0).tolist() == [n] * columns
        assert nvm.argmax(x, axis=0).tolist() == [0] * columns
        assert nvm.var(f, axis=0).tolist() == [0] * columns
        assert (x - nvm.max(x, axis=0, keepdims=True))[5:7].tolist() == [[0] * columns] * 2
        assert ((f - nvm.mean(f, axis=0)) / (1 + nvm.std(f, axis=0)))[-1].tolist() == [0] * columns"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_columns_of_any_length(threads):
    """One unit needs no pieces to be busy; then a column's length alone has to cut it to what a tile may hold."""
    env = {**os.environ, "NVM_DEVICE": "cpu", "NVM_NUM_THREADS": threads}
    p = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool", "complex64"])
def test_reductions_of_numbers_that_are_everywhere(dtype):
    """What is folded while planning has the bits of what is added up in memory."""
    shapes = [((n,), None) for n in (1, 3, 127, 128, 129, 1023, 1024, 1025, 1536, 3000, 70001)]
    shapes += [((n, 16), 0) for n in (1, 63, 64, 65, 129, 4097)] + [((5, 6, 7), (0, 2)), ((130, 3, 20), (0, 2))]
    for (shape, axis), value in itertools.product(shapes, (0.1, 3, 1.0000001)):
        value = value if dtype[0] in "fc" else int(value)
        number = nvm.full(shape, value, dtype=dtype)
        memory = nvm.asarray(np.asarray(number).copy())
        for name in ("sum", "prod", "mean", "any", "all", "max", "argmin"):
            if (name in ("max", "argmin") and dtype == "complex64") or (name == "argmin" and axis is not None):
                continue
            f = getattr(nvm, name)
            if name == "mean" and dtype[0] not in "fc":
                continue
            got, want = np.asarray(f(number, axis=axis)), np.asarray(f(memory, axis=axis))
            assert got.tobytes() == want.tobytes(), (shape, axis, value, name)


def test_arrays_larger_than_memory():
    huge = nvm.ones(2**45)
    assert huge.sum().item() == 2**45 and huge.mean().item() == 1 and huge.max().item() == 1
    assert (huge == 1).all().item() and huge.argmax().item() == 0
    assert nvm.softmax(nvm.zeros(2**40))[:2].tolist() == [2.0**-40] * 2
    assert nvm.arange(2**31 + 5).sum().item() == (2**31 + 5) * (2**31 + 4) // 2
    assert nvm.broadcast_to(nvm.arange(4.0), (2**27, 4)).sum(axis=0).tolist() == [k * 2.0**27 for k in range(4)]
    with pytest.raises(MemoryError, match=str(2**48)):
        np.asarray(huge + 1)
    with pytest.raises(MemoryError, match=str(2**48)):
        np.asarray(nvm.sort(huge))
    with pytest.raises(ValueError, match=str(2**62)):
        nvm.full(2**62, 1)


def neighbours(bits, towards):
    """nextafter of floats of 16 bits by their bits; NaN excluded."""
    size, other = bits & 0x7FFF, towards & 0x7FFF
    value, target = np.where(bits >> 15, -size, size), np.where(towards >> 15, -other, other)
    step = np.where(size == 0, 1, np.where((target > value) == (bits >> 15 == 0), 1, -1))
    moved = np.where(size == 0, (towards & 0x8000) | 1, (bits & 0x8000) | (size + step))
    return np.where(value == target, towards, moved).astype(np.uint16)


@pytest.mark.parametrize("name, inf", [("float16", 0x7C00), ("bfloat16", 0x7F80)])
def test_nextafter_of_16_bits(name, inf):
    bits = np.arange(65536)
    bits = bits[(bits & 0x7FFF) <= inf]

    def array(b):  # the number of those bits
        e, m = (5, 10) if name == "float16" else (8, 7)
        bias, size = 2 ** (e - 1) - 1, b & 0x7FFF
        exponent, fraction = size >> m, size & (2**m - 1)
        v = np.where(
            exponent > 0,
            (2**m + fraction) * 2.0 ** (np.maximum(exponent, 1) - bias - m),
            fraction * 2.0 ** (1 - bias - m),
        )
        v = np.where(size == inf, np.inf, v)
        return nvm.asarray(np.where(b >> 15, -v, v)).astype(name)

    for towards in (0, 0x8000, 1, inf, inf | 0x8000, inf - 1, 0x3C00, 0xBC00, 0x0400):
        y = np.full(bits.shape, towards)
        for got in (nvm.nextafter(array(bits), array(y)), nvm.jit(nvm.nextafter)(array(bits), array(y))):
            assert got.dtype == name
            want = array(neighbours(bits, y).astype(np.int64))
            np.testing.assert_array_equal(np.asarray(got.astype("float64")), np.asarray(want.astype("float64")))
            np.testing.assert_array_equal(np.asarray(nvm.signbit(got)), np.asarray(nvm.signbit(want)))
    x = nvm.asarray([1.0, np.nan]).astype(name)
    assert nvm.all(nvm.isnan(nvm.nextafter(x, x[::-1]))).item()
    half = nvm.nextafter(x / 3, 1)[0].item()
    assert half == nvm.nextafter((x / 3).eval(), 1)[0].item()  # what is between marks is rounded first
