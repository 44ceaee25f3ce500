"""Random expressions: the same steps in nvm (lazily, inside nvm.jit, and unfused) and in NumPy. A failure prints the
steps; the seed is in the test's name. NVM_TEST_GRAPHS sets how many."""

import os

import numpy as np
import pytest

import nvm

GRAPHS = int(os.environ.get("NVM_TEST_GRAPHS", "240"))
DTYPES = ["float64", "float64", "float32", "int32", "int64", "uint8", "bool", "complex128"]


def start(r):
    shape = tuple(int(n) for n in r.choice([1, 2, 3, 5, 8, 33], r.integers(1, 4)))
    t = r.choice(DTYPES)
    x = r.integers(0, 9, shape) if t in ("uint8", "bool") else r.integers(-9, 9, shape) / (2 if "o" in t else 1)
    return np.asarray(x).astype(t)


def same(f):
    return f, f


def elementwise(r, x, others):
    """Functions of one or two arrays whose NumPy and nvm results agree to rounding."""
    kind, y = x.dtype.kind, others[r.integers(len(others))]
    if r.random() < 0.5 or kind == "b" or y.dtype.kind == "b":
        one = [("neg", lambda m, a: -a)] if kind != "b" else [("not", lambda m, a: ~a)]
        if kind in "if":
            one += [("abs", lambda m, a: abs(a)), ("square", lambda m, a: a * a)]
        if kind == "f":
            one += [
                ("sin", lambda m, a: m.sin(a)),
                ("tanh", lambda m, a: m.tanh(a)),
                ("root", lambda m, a: m.sqrt(abs(a) + 1)),
                ("exp", lambda m, a: m.exp(-abs(a))),
            ]
        return one[r.integers(len(one))]
    two = [
        ("add", lambda m, a, b: a + b),
        ("sub", lambda m, a, b: a - b),
        ("mul", lambda m, a, b: a * b * 0.5 if a.dtype.kind == "f" else a * b),
    ]
    if "c" not in kind + y.dtype.kind:
        two += [
            ("max", lambda m, a, b: m.maximum(a, b)),
            ("where", lambda m, a, b: m.where(a < b, a, b)),
            ("less", lambda m, a, b: a < b),
            ("div", lambda m, a, b: a / (abs(b) * 1.0 + 1.0)),
        ]
    name, f = two[r.integers(len(two))]
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        y = y.reshape(-1)[:1]
        return name + " first", lambda m, a, b: f(m, a, b.reshape(-1)[:1])
    return name, f


def step(r, pool):
    """One step: its text, which values it takes, and f(module, values) for NumPy and nvm alike."""
    i, j = int(r.integers(len(pool))), int(r.integers(len(pool)))
    x = pool[i]
    what = r.integers(9)
    axis = int(r.integers(x.ndim)) if x.ndim else None
    if what <= 2 or not x.ndim or not x.size:
        name, f = elementwise(r, x, [pool[j]])
        return name, [i, j][: f.__code__.co_argcount - 1], f
    if what == 3:
        keep, name = bool(r.integers(2)), r.choice(["sum", "max", "mean"]) if x.dtype.kind in "if" else "sum"
        if x.dtype.kind == "b":
            name = "any"
        if name == "sum" and x.dtype.kind == "u":
            return "sum u", [i], lambda m, a: m.sum(a, axis=axis, keepdims=keep, dtype="uint64")
        return f"{name} {axis}", [i], lambda m, a: getattr(m, name)(a, axis=axis, keepdims=keep)
    if what == 4:
        return "T", [i], lambda m, a: a.T
    if what == 5:
        lo, st = int(r.integers(x.shape[axis])), int(r.choice([1, 2, -1, -2]))
        key = (slice(None),) * axis + (slice(lo, None, st) if st > 0 else slice(None, None, st),)
        return f"slice {key}", [i], lambda m, a: a[key]
    if what == 6:
        return "flat", [i], lambda m, a: a.reshape(-1)
    if what == 7:
        t = r.choice(["float64", "float32", "int64"]) if x.dtype.kind != "c" else "complex128"
        return f"cast {t}", [i], lambda m, a: a.astype(t)
    return (
        f"join {axis}",
        [i],
        lambda m, a: (m.concat if m is nvm else np.concatenate)([a, a[:1] if axis == 0 else a], axis=axis),
    )


def check(got, want, trail):
    got = np.asarray(got)
    want = np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape, trail)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, str(trail))
        return
    size = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    loose = 2e-4 if any(t in str(trail) for t in ("float32",)) else 1e-9
    np.testing.assert_allclose(got, want, rtol=loose, atol=loose * size, err_msg=str(trail))


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_expression(seed):
    r = np.random.default_rng(seed)
    inputs = [start(r) for _ in range(r.integers(1, 4))]
    pool, steps = list(inputs), []
    for _ in range(int(r.integers(2, 14))):
        name, takes, f = step(r, pool)
        value = np.asarray(f(np, *(pool[k] for k in takes)))
        if value.size > 20_000 or value.ndim > 6 or (value.dtype.kind in "fc" and not (np.abs(value) < 1e6).all()):
            continue
        steps.append((name, takes, f))
        pool.append(value)
    trail = [[(v.dtype.name, v.shape) for v in inputs]] + [(n, t) for n, t, _ in steps]

    def run(*values):
        values = list(values)
        for _, takes, f in steps:
            values.append(f(nvm, *(values[k] for k in takes)))
        return values[len(inputs) :]

    for got, want in zip(run(*map(nvm.asarray, inputs)), pool[len(inputs) :]):
        check(got, want, trail)
    jitted = nvm.jit(lambda *a: run(*a))(*inputs)
    for got, want in zip(jitted, pool[len(inputs) :]):
        check(got, want, trail)
    nvm.set("fuse", "off")
    try:
        alone = [v.eval().tobytes() for v in run(*map(nvm.asarray, inputs))]
    finally:
        nvm.set("fuse", "on")
    assert [v.tobytes() for v in jitted] == alone, trail
