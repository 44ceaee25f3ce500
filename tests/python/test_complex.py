"""The special values of complex functions: each line of the array API's lists of them."""

import itertools
import math

import numpy as np
import pytest

import nvm

INF, NAN, PI = math.inf, math.nan, math.pi

# What the names of operands stand for; +0 and -0 are numbers of their own.
CLASSES = {
    "+0": [0.0],
    "-0": [-0.0],
    "0": [0.0, -0.0],
    "1": [1.0],
    "-1": [-1.0],
    "inf": [INF],
    "-inf": [-INF],
    "infinite": [INF, -INF],
    "nan": [NAN],
    "positive": [1e-300, 0.25, 1.0, 2.0, 3.0, 5.0, 1e10, 1e300],
    "nonzero": [-1e300, -3.0, -1.0, -0.25, 1e-300, 0.25, 1.0, 2.0, 3.0, 1e10, 1e300],
    "finite": [0.0, -0.0, -1e300, -3.0, -1.0, -0.25, 1e-300, 0.25, 1.0, 2.0, 3.0, 1e300],
    "any": [0.0, -0.0, -2.0, 3.0, INF, -INF, NAN],
}

# function, real and imaginary part of the operand, those of the result. "~" before a result: its sign is free; cos and
# sin: of the imaginary part of the operand.
LINES = """
acos   0 +0                 pi/2 -0        | acos   0 nan              pi/2 nan
acos   finite inf           pi/2 -inf      | acos   nonzero nan        nan nan
acos   -inf positive        pi -inf        | acos   inf positive       +0 -inf
acos   -inf inf             3pi/4 -inf     | acos   inf inf            pi/4 -inf
acos   infinite nan         nan ~inf       | acos   nan finite         nan nan
acos   nan inf              nan -inf       | acos   nan nan            nan nan
acosh  0 +0                 +0 pi/2        | acosh  finite inf         inf pi/2
acosh  nonzero nan          nan nan        | acosh  +0 nan             nan ~pi/2
acosh  -inf positive        inf pi         | acosh  inf positive       inf +0
acosh  -inf inf             inf 3pi/4      | acosh  inf inf            inf pi/4
acosh  infinite nan         inf nan        | acosh  nan finite         nan nan
acosh  nan inf              inf nan        | acosh  nan nan            nan nan
asinh  +0 +0                +0 +0          | asinh  positive inf       inf pi/2
asinh  finite nan           nan nan        | asinh  inf positive       inf +0
asinh  inf inf              inf pi/4       | asinh  nan +0             nan +0
asinh  nan nonzero          nan nan        | asinh  nan inf            ~inf nan
asinh  nan nan              nan nan        | asinh  inf nan            inf nan
atanh  +0 +0                +0 +0          | atanh  +0 nan             +0 nan
atanh  1 +0                 inf +0         | atanh  positive inf       +0 pi/2
atanh  nonzero nan          nan nan        | atanh  inf positive       +0 pi/2
atanh  inf inf              +0 pi/2        | atanh  inf nan            +0 nan
atanh  nan finite           nan nan        | atanh  nan inf            ~0 pi/2
atanh  nan nan              nan nan        | cosh   +0 +0              1 +0
cosh   +0 inf               nan ~0         | cosh   +0 nan             nan ~0
cosh   nonzero inf          nan nan        | cosh   nonzero nan        nan nan
cosh   inf +0               inf +0         | cosh   inf nonzero        inf*cos inf*sin
cosh   inf inf              ~inf nan       | cosh   inf nan            inf nan
cosh   nan 0                nan ~0         | cosh   nan nonzero        nan nan
cosh   nan nan              nan nan        | exp    0 +0               1 +0
exp    finite inf           nan nan        | exp    finite nan         nan nan
exp    inf +0               inf +0         | exp    -inf finite        0*cos 0*sin
exp    inf nonzero          inf*cos inf*sin | exp   -inf inf           ~0 ~0
exp    inf inf              ~inf nan       | exp    -inf nan           ~0 ~0
exp    inf nan              ~inf nan       | exp    nan +0             nan +0
exp    nan nonzero          nan nan        | exp    nan nan            nan nan
expm1  0 +0                 +0 +0          | expm1  finite inf         nan nan
expm1  finite nan           nan nan        | expm1  inf +0             inf +0
expm1  -inf finite          -1 0*sin       | expm1  inf nonzero        inf*cos inf*sin
expm1  -inf inf             -1 ~0          | expm1  inf inf            ~inf nan
expm1  -inf nan             -1 ~0          | expm1  inf nan            ~inf nan
expm1  nan +0               nan +0         | expm1  nan nonzero        nan nan
expm1  nan nan              nan nan        | log    -0 +0              -inf pi
log    +0 +0                -inf +0        | log    finite inf         inf pi/2
log    finite nan           nan nan        | log    -inf positive      inf pi
log    inf positive         inf +0         | log    -inf inf           inf 3pi/4
log    inf inf              inf pi/4       | log    infinite nan       inf nan
log    nan finite           nan nan        | log    nan inf            inf nan
log    nan nan              nan nan        | log1p  -1 +0              -inf +0
log1p  finite inf           inf pi/2       | log1p  finite nan         nan nan
log1p  -inf positive        inf pi         | log1p  inf positive       inf +0
log1p  -inf inf             inf 3pi/4      | log1p  inf inf            inf pi/4
log1p  infinite nan         inf nan        | log1p  nan finite         nan nan
log1p  nan inf              inf nan        | log1p  nan nan            nan nan
sign   0 0                  +0 +0          | sign   nan any            nan nan
sign   any nan              nan nan        | sinh   +0 +0              +0 +0
sinh   +0 inf               ~0 nan         | sinh   +0 nan             ~0 nan
sinh   positive inf         nan nan        | sinh   positive nan       nan nan
sinh   inf +0               inf +0         | sinh   inf positive       inf*cos inf*sin
sinh   inf inf              ~inf nan       | sinh   inf nan            ~inf nan
sinh   nan +0               nan +0         | sinh   nan nonzero        nan nan
sinh   nan nan              nan nan        | sqrt   0 +0               +0 +0
sqrt   any inf              inf inf        | sqrt   finite nan         nan nan
sqrt   -inf positive        +0 inf         | sqrt   inf positive       inf +0
sqrt   -inf nan             nan ~inf       | sqrt   inf nan            inf nan
sqrt   nan finite           nan nan        | sqrt   nan nan            nan nan
tanh   +0 +0                +0 +0          | tanh   nonzero inf        nan nan
tanh   +0 inf               +0 nan         | tanh   nonzero nan        nan nan
tanh   +0 nan               +0 nan         | tanh   inf positive       1 +0
tanh   inf inf              1 ~0           | tanh   inf nan            1 ~0
tanh   nan +0               nan +0         | tanh   nan nonzero        nan nan
tanh   nan nan              nan nan
"""

CASES = [case.split() for line in LINES.strip().splitlines() for case in line.split("|")]
ODD, EVEN = ["asinh", "atanh", "sinh", "tanh"], ["cosh"]

# f(z) = g(i z) / i or g(i z), as the standard defines these
ROTATED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}


def angle(text):
    top, _, bottom = text.partition("/")
    return (float(top[:-2]) if top[:-2] else 1.0) * PI / float(bottom or 1)


def expected(text, b):
    """(value, whether its sign counts)"""
    free, text = text.startswith("~"), text.lstrip("~")
    size, _, factor = text.partition("*")
    if factor:
        return math.copysign(float(size), getattr(math, factor)(b)), not (factor == "sin" and b == 0 and size == "inf")
    return angle(text) if "pi" in text else float(text), not free and text != "0"


def agrees(got, want, dtype):
    value, signed = want
    if math.isnan(value):
        return math.isnan(got)
    if math.isinf(value) or value == 0:
        return abs(got) == abs(value) and (not signed or math.copysign(1, got) == math.copysign(1, value))
    return abs((got if signed else math.copysign(got, value)) - value) <= 4 * np.finfo(dtype).eps * abs(value)


def mirrored(re, im, flip_re, flip_im):
    turn = lambda want, flip: (-want[0] if flip and not math.isnan(want[0]) else want[0], want[1])
    return turn(re, flip_re), turn(im, flip_im)


def points(name, a, b, re, im):
    """Operand and result, for the case itself and for its mirror images."""
    for x, y in itertools.product(CLASSES.get(a, ()), CLASSES.get(b, ())):
        want = expected(re, y), expected(im, y)
        yield x, y, *want
        if name != "sign":  # +0 + 0j of every zero
            yield x, -y, *mirrored(*want, False, True)
        if name in ODD:
            yield -x, y, *mirrored(*want, True, False)
            yield -x, -y, *mirrored(*want, True, True)
        if name in EVEN:
            yield -x, y, *mirrored(*want, False, True)
            yield -x, -y, *want


def held(name, cases, dtype):
    if not cases:
        return
    part = np.float32 if dtype == "complex64" else np.float64
    with np.errstate(over="ignore", under="ignore"):
        parts = np.array([[x, y] for x, y, *_ in cases]).astype(part)
    z = nvm.asarray(np.ascontiguousarray(parts).view(dtype).ravel())
    got = np.asarray(getattr(nvm, name)(z)).view(part).reshape(-1, 2)
    for (x, y, *want), w in zip(cases, got):
        for k in range(2):
            assert agrees(float(w[k]), want[k], part), (name, dtype, x, y, w, want)


def of_type(cases, dtype):
    """Without the operands that the type does not hold."""
    kept = dtype == "complex128"
    return [c for c in cases if kept or all(v == 0 or not math.isfinite(v) or 1e-30 < abs(v) < 1e30 for v in c[:2])]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_special(case, dtype):
    held(case[0], of_type(list(points(*case)), dtype), dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", list(ROTATED))
def test_special_rotated(name, dtype):
    base = ROTATED[name]
    for case in CASES:
        if case[0] == base:
            there = list(points(*case))
            turned = [(y, -x, i, (-r[0], r[1])) if name != "cos" else (y, -x, r, i) for x, y, r, i in there]
            held(name, of_type(turned, dtype), dtype)


def test_every_operand_of_a_line_is_known():
    for name, a, b, *_ in CASES:
        assert a in CLASSES and b in CLASSES and hasattr(nvm, name), (name, a, b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sign_at_the_ends_of_the_range(dtype):
    t = np.finfo(np.float32 if dtype == "complex64" else np.float64)
    for size in (t.smallest_subnormal, t.tiny, t.max):
        z = np.array([complex(size, size), complex(-size, 0), complex(0, size)], dtype)
        got = np.asarray(nvm.sign(nvm.asarray(z)))
        np.testing.assert_allclose(got, [math.sqrt(0.5) * (1 + 1j), -1, 1j], rtol=4 * t.eps)


def test_devices_of_the_namespace_are_a_tuple():
    info = nvm.__array_namespace_info__()
    assert type(info.devices()) is tuple and info.default_device() in info.devices()
