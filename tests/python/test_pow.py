"""Powers whose exponents are numbers of the program against exact values and against the same exponents in an array:
whatever is made of x ** 2 or x ** -0.5, it keeps the bound of pow over the whole range."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import nvm

EXPONENTS = [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5, -3]
FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
ULP = 2  # docs/how-it-works/numerics.md, section 3
# digits, the exponents of the least number and of the end of the range
TYPES = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128), "float64": (53, -1074, 1024)}


def operands(dtype, count=400):
    """Numbers of every size, those between the ends of the range of the results, and the special ones."""
    r = np.random.default_rng(5)
    digits, least, top = TYPES[dtype]
    at = r.integers(least, top, count)
    ends = np.array([e / p for p in (2, 3, 4, -1, -2) for e in (least, least + digits, top)])
    at = np.concatenate([at, np.repeat(np.clip(ends, least, top - 1).astype(int), 20)])
    x = np.ldexp(1 + r.random(at.size), at) * r.choice([1, 1, -1], at.size)
    return np.concatenate([x, [0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan]])


def of(dtype, x):
    """x as an array of the type, and the numbers that it then has."""
    with np.errstate(over="ignore"):
        a = nvm.asarray(x.astype(FLOATS.get(dtype, np.float32))).astype(dtype)
    return a, np.asarray(a.astype("float64"))


def exact(x, e):
    """x ** e of finite numbers other than 0; None if it is none."""
    if x < 0 and e != int(e):
        return None
    x = Decimal(x)
    return x ** int(e) if e == int(e) else x.sqrt() ** int(2 * e)


def error(got, want, dtype):
    """In units in the last place of `want`."""
    digits, least, _ = TYPES[dtype]
    size = math.floor(float(abs(want).logb()) / math.log10(2)) - 2
    while Decimal(2) ** (size + 1) <= abs(want):
        size += 1
    return float(abs(Decimal(got) - want) / Decimal(2) ** max(size - digits + 1, least))


@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("e", EXPONENTS)
def test_real(e, dtype):
    a, x = of(dtype, operands(dtype))
    got = np.asarray((a**e).astype("float64"))
    other = np.asarray(nvm.pow(a, nvm.asarray(np.full(x.shape, e, np.float32)).astype(dtype)).astype("float64"))
    digits, _, top = TYPES[dtype]
    largest = math.ldexp(2 - 2.0 ** (1 - digits), top - 1)
    with localcontext() as c:
        c.prec, c.Emax, c.Emin = 60, 99999, -99999
        for v, g, o in zip(map(float, x), map(float, got), map(float, other)):
            if v == 0 or not math.isfinite(v):
                assert g == o or (g != g and o != o), (dtype, v, e, g, o)
                assert g != g or math.copysign(1, g) == math.copysign(1, o), (dtype, v, e, g, o)
                continue
            want = exact(v, e)
            if want is None:
                assert g != g and o != o, (dtype, v, e, g, o)
            for value in (g, o) if want is not None else ():
                if abs(want) < Decimal(largest) * (1 - ULP * Decimal(2) ** (1 - digits)):
                    assert error(value, want, dtype) <= ULP, (dtype, v, e, value, want)
                else:
                    assert abs(value) >= largest * (1 - 2 * ULP * 2.0 ** (1 - digits)), (dtype, v, e, value, want)


def complex_power(z, n):
    """By Decimal; both parts."""
    a, b = Decimal(z.real), Decimal(z.imag)
    r, i = Decimal(1), Decimal(0)
    for _ in range(n):
        r, i = r * a - i * b, r * b + i * a
    return r, i


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_complex(n, dtype):
    """By the norm; where a part is beyond the range it is infinite, and never NaN."""
    part, eps, top = (np.float32, 2.0**-23, 128) if dtype == "complex64" else (np.float64, 2.0**-52, 1024)
    r = np.random.default_rng(n)
    at = np.concatenate([r.integers(-top - 20, top, 300), r.integers(top // n - 3, top // n + 3, 100)])
    with np.errstate(over="ignore", under="ignore"):
        xy = (
            np.ldexp(r.uniform(1, 2, at.size), at) * r.choice([1, -1], at.size),
            np.ldexp(r.uniform(1, 2, at.size), at + r.integers(-3, 3, at.size) - 3),
        )
        z = np.ascontiguousarray(np.stack(xy, 1).astype(part)).view(dtype).ravel()
    z = np.concatenate([z, np.array([1, 1 + 1j, 1j, 1 - 1j]) * np.finfo(part).max]).astype(dtype)
    for got in (np.asarray(nvm.asarray(z) ** n), np.asarray(nvm.asarray(z) ** nvm.asarray(np.full(z.shape, n, dtype)))):
        assert not np.isnan(got).any(), z[np.isnan(got)][:3]
        with localcontext() as c:
            c.prec, c.Emax, c.Emin = 60, 99999, -99999
            for v, g in zip(z.astype("complex128"), got.astype("complex128")):
                want = complex_power(v, n)
                unit = max(map(abs, want)) * Decimal(8 * n * eps) + Decimal(2) ** (-149 if top == 128 else -1073)
                for got_part, w in zip((g.real, g.imag), want):
                    if math.isfinite(got_part):
                        assert abs(Decimal(got_part) - w) <= unit, (v, g, want)
                    else:
                        assert abs(w) + unit > Decimal(2) ** top * (1 - Decimal(eps)), (v, g, want)
