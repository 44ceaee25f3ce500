"""float8_e4m3fn and float8_e5m2: numbers of 8 bits that are stored, and computed with in float32."""

import math

import numpy as np
import pytest

import nvm

NAMES = ["float8_e4m3fn", "float8_e5m2"]
MOST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def every(name):
    """All 256 of them, as an nvm array and as float64 from the definition of the format."""
    bits = np.arange(256)
    mant, bias = (3, 7) if "e4m3" in name else (2, 15)
    e, m = (bits & 127) >> mant, bits & ((1 << mant) - 1)
    v = np.where(e > 0, np.ldexp(1 + m / 2.0**mant, e - bias), np.ldexp(m / 2.0**mant, 1 - bias))
    if "e4m3" in name:
        v = np.where((bits & 127) == 127, np.nan, v)
    else:
        v = np.where(e == 31, np.where(m > 0, np.nan, np.inf), v)
    x = nvm._nvm.from_bytes(bits.astype(np.uint8).tobytes(), getattr(nvm, name), (256,))
    return x, np.where(bits >> 7, -v, v)


def rounded(name, x):
    """x to nearest even of the format's numbers, what is beyond the greatest as that."""
    mant, least = (3, -6) if "e4m3" in name else (2, -14)
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        e = np.maximum(np.frexp(x)[1] - 1, least)
        r = np.rint(np.ldexp(x, mant - e)) * np.ldexp(1.0, e - mant)
    r = np.where(np.isinf(x), x, r)
    return np.clip(r, -MOST[name], MOST[name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tier", ["0", "1"])
def test_casts(name, tier, rng):
    nvm.set("TIER", tier)
    try:
        x, want = every(name)
        for to in ("float16", "float32", "float64", "bfloat16"):
            got = np.asarray(x.astype(to).astype("float64"))
            np.testing.assert_array_equal(got, want)
            number = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])
            finite = np.isfinite(want)
            back = np.asarray(x.astype(to).astype(name).astype("float64"))
            np.testing.assert_array_equal(back[finite], want[finite])
        np.testing.assert_array_equal(np.asarray(x.astype("bool")), want != 0)
        ints = np.where(
            np.isnan(want),
            0,
            np.clip(np.trunc(np.nan_to_num(want, posinf=2.0**40, neginf=-(2.0**40))), -(2**31), 2**31 - 1),
        )
        np.testing.assert_array_equal(np.asarray(x.astype("int32")), ints)
        y = np.concatenate(
            [
                rng.standard_normal(5000) * 2.0 ** rng.integers(-20, 20, 5000),
                [0.0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 61440, 1e300],
            ]
        )
        for of in ("float32", "float64", "float16"):
            with np.errstate(all="ignore"):
                z = y.astype(of)
            got = np.asarray(nvm.asarray(z).astype(name).astype("float64"))
            np.testing.assert_array_equal(got, rounded(name, z))
        i = np.arange(-70000, 70000, 13)
        np.testing.assert_array_equal(np.asarray(nvm.asarray(i).astype(name).astype("float64")), rounded(name, i))
    finally:
        nvm.set("TIER", "auto")


@pytest.mark.parametrize("name", NAMES)
def test_what_it_is(name):
    t = getattr(nvm, name)
    assert t.name == name and t.itemsize == 1 and t.kind == "f" and nvm.dtype(name) == t
    f = nvm.finfo(t)
    assert f.max == MOST[name] and f.bits == 8 and nvm.isdtype(t, "real floating")
    x, want = every(name)
    assert float(nvm.asarray(f.eps + 1).astype(t)) == 1 + f.eps and float(nvm.asarray(1 + f.eps / 2).astype(t)) == 1
    for got, w in zip(x.tolist(), want):
        assert got == w or (math.isnan(got) and math.isnan(w))
    assert nvm.result_type(t, t) == t and nvm.result_type(t, 1.0) == t
    assert nvm.result_type(t, nvm.float16) == nvm.float16
    assert nvm.result_type(t, nvm.bfloat16) == nvm.bfloat16 and nvm.result_type(*NAMES) == nvm.float16
    assert nvm.result_type(t, nvm.float32) == nvm.float32 and nvm.result_type(t, nvm.int8) == nvm.float32
    assert repr(nvm.asarray([1.0, 0.09, -3.5]).astype(t))[:20] == "array([ 1.  ,  0.09,"
    order = np.asarray(nvm.argsort(x))
    s = want[order]
    assert np.all(np.diff(s[~np.isnan(s)]) >= 0) and np.all(np.isnan(s[len(s) - np.isnan(want).sum() :]))


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_is_in_float32(name, rng):
    a, b = (rounded(name, rng.uniform(-8, 8, 500)) for _ in range(2))
    x, y = nvm.asarray(a).astype(name).eval(), nvm.asarray(b).astype(name).eval()
    z = x * y + x
    assert z.dtype.name == name
    np.testing.assert_array_equal(np.asarray(z.astype("float64")), rounded(name, (a * b + a).astype("float32")))
    np.testing.assert_array_equal(np.asarray(x < y), a < b)
    np.testing.assert_array_equal(np.asarray(x.max().astype("float64")), a.max())
    assert nvm.sum(x).dtype.name == name
    got = np.asarray(nvm.exp(x).astype("float64"))
    np.testing.assert_allclose(got, rounded(name, np.exp(a)), rtol=2.0**-2)


@pytest.mark.parametrize("name", NAMES)
def test_products(name, rng):
    a, b = rounded(name, rng.standard_normal((20, 65))), rounded(name, rng.standard_normal((65, 33)))
    x, y = nvm.asarray(a).astype(name).eval(), nvm.asarray(b).astype(name).eval()
    np.testing.assert_allclose(np.asarray(nvm.matmul(x, y, dtype="float32")), a @ b, rtol=1e-4, atol=1e-5)
    z = nvm.matmul(x, y)
    assert z.dtype.name == name
    near = np.abs(np.asarray(z.astype("float64")) - a @ b)
    assert np.all(near <= np.abs(a @ b) * (2.0**-4 if "e4m3" in name else 2.0**-3) * 1.01 + 2.0**-9)
    c = nvm.asarray(b).astype(NAMES[name == NAMES[0]]).eval()
    assert nvm.matmul(x, c).dtype == nvm.float16
    np.testing.assert_allclose(
        np.asarray(nvm.matmul(x * 0.5, c, dtype="float32")),
        rounded(name, a * 0.5) @ np.asarray(c.astype("float64")),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", NAMES)
def test_exchange(name):
    x, want = every(name)
    back = nvm.from_dlpack(x.__dlpack__())
    assert back.dtype.name == name
    np.testing.assert_array_equal(np.asarray(back.astype("float64")), want)
    ml = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    a = np.asarray(x)
    assert a.dtype == np.dtype(getattr(ml, name))
    np.testing.assert_array_equal(a.astype(np.float64), want)
    again = nvm.asarray(a)
    assert again.dtype.name == name and again.tobytes() == x.tobytes()
