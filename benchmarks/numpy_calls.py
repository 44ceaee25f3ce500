"""What a call of NumPy on nvm's arrays costs beyond nvm's own call: every ufunc in every form, and functions of NumPy.

    python benchmarks/numpy_calls.py [--all] [--json] [WORD ...]

Nothing is evaluated: both calls build the same graph. The two are called in turn, some hundred times each, and the difference of the
least of both (of the thread's own time) is printed in microseconds: for each form the middle and the worst ufuncs, with --all each
of them, and for functions each. Words choose forms and functions. The aim is 1 us.
"""

import gc
import json
import statistics
import sys
import time

import numpy as np

import nvm
import nvm.numpy as own
from nvm._ufunc import _BINARY, _UNARY, UFUNCS
from nvm._ufunc_methods import REDUCTIONS, SCANS

CALLS, TURNS, PATIENCE, AIM = 25, 25, 12, 1.0
OWN_NAMES = {**_UNARY, **_BINARY, "rint": "round", "fabs": "abs"}
INTEGERS = "bitwise_and bitwise_or bitwise_xor bitwise_count gcd lcm invert left_shift right_shift".split()


def difference(theirs, ours):
    """(ns of the one call beyond the other, ns of the other): of each the least over turns."""
    theirs(), ours()
    least, calls = [float("inf")] * 2, range(CALLS)
    for turn in range(TURNS * PATIENCE):  # what seems too slow is given more turns, since the machine may be busy
        if turn >= TURNS and least[0] - least[1] <= AIM * 1e3:
            break
        for i, f in enumerate((theirs, ours)):
            start = time.thread_time_ns()
            for _ in calls:
                f()
            least[i] = min(least[i], (time.thread_time_ns() - start) / CALLS)
    return least[0] - least[1], least[1]


def arrays(dtype):
    rng = np.random.default_rng(0)
    return tuple(nvm.asarray((rng.random((8, 8)) * 5 + 1).astype(dtype)).eval() for _ in range(2))


def function_of(name):
    """nvm's own function: that of the library if it has one, else that of nvm.numpy."""
    return getattr(nvm, OWN_NAMES.get(name, name), None) or getattr(own, name)


def call_forms(name, u):
    """(form, NumPy's call, nvm's own) for the calls of a ufunc."""
    whole = name in INTEGERS
    x, y = arrays("int64" if whole else "float64")
    narrow = [a.astype("int32" if whole else "float32").eval() for a in (x, y)]
    wide, kind = (nvm.int64, int) if whole else (nvm.float64, float)
    ops, small = ((x, y), narrow)
    if name == "ldexp":
        ops, small = (x, y.astype("int64").eval()), None
    ops, small = ops[: u.nin], small and tuple(small[: u.nin])
    f, g = getattr(np, name), function_of(name)
    mask = nvm.asarray(np.arange(64).reshape(8, 8) % 3 == 0)
    made = g(*ops)
    made = made if isinstance(made, tuple) else (made,)
    z, w = (tuple(nvm.zeros(m.shape, dtype=m.dtype).eval() for m in made) for _ in range(2))
    out = z if len(z) > 1 else z[0]

    def results(*a):
        r = g(*a)
        return r if isinstance(r, tuple) else (r,)

    def store(values):
        for to, value in zip(w, values):
            to[...] = value

    yield "f(x)", lambda: f(*ops), lambda: g(*ops)
    yield "out=", lambda: f(*ops, out=out), lambda: store(results(*ops))
    if name not in ("maximum", "minimum"):  # where NumPy warns of it
        yield "out by position", lambda: f(*ops, *z), lambda: store(results(*ops))
    yield "order=", lambda: f(*ops, order="C"), lambda: g(*ops)
    yield "subok=", lambda: f(*ops, subok=False), lambda: g(*ops)
    yield "casting=", lambda: f(*ops, casting="unsafe"), lambda: g(*ops)
    if u.signature:
        return
    yield "where=", lambda: f(*ops, where=mask), lambda: [nvm.where(mask, r, 0) for r in results(*ops)]
    yield (
        "out=, where=",
        lambda: f(*ops, out=out, where=mask),
        lambda: store([nvm.where(mask, r, to) for r, to in zip(results(*ops), w)]),
    )
    if u.nin == 2 and name not in ("ldexp", "divmod"):
        yield "f(x, number)", lambda: f(x, 2), lambda: g(x, 2)
        yield "f(number, x)", lambda: f(2, x), lambda: g(2, x)
    if not small or made[0].dtype != wide or len(made) > 1:
        return
    spelled = {"a name": wide.name, "a type": kind, "np.dtype": np.dtype(wide.name)}
    for text, dtype in spelled.items():
        yield f"dtype={text}", lambda d=dtype: f(*ops, dtype=d), lambda: g(*ops)
        yield f"dtype={text}, cast", lambda d=dtype: f(*small, dtype=d), lambda: g(*[a.astype(wide) for a in small])


def method_forms(name, u):
    """The same for the methods of a ufunc of two operands."""
    if u.nin != 2 or u.nout > 1 or u.signature or name == "ldexp":
        return
    x, y = arrays("int64" if name in INTEGERS else "float64")
    f, g = getattr(np, name), function_of(name)
    mine, mask = getattr(own, name), nvm.asarray(np.arange(64).reshape(8, 8) % 3 == 0)
    line = nvm.asarray(np.array([0, 3]))
    yield "outer", lambda: f.outer(x, y), lambda: g(nvm.reshape(x, (8, 8, 1, 1)), y)
    fold = getattr(nvm, REDUCTIONS.get(name, ""), None)
    if fold:
        yield "reduce", lambda: f.reduce(x), lambda: fold(x, axis=0)
        yield "reduce(axis=)", lambda: f.reduce(x, axis=1), lambda: fold(x, axis=1)
        yield "reduce(axis=None)", lambda: f.reduce(x, axis=None), lambda: fold(x)
        yield "reduce(axis=(0, 1))", lambda: f.reduce(x, axis=(0, 1)), lambda: fold(x, axis=(0, 1))
        yield "reduce(keepdims=)", lambda: f.reduce(x, keepdims=True), lambda: fold(x, axis=0, keepdims=True)
        z, w = (nvm.zeros(8, dtype=fold(x, axis=0).dtype).eval() for _ in range(2))

        def store():
            w[...] = fold(x, axis=0)

        yield "reduce(out=)", lambda: f.reduce(x, out=z), store
        if not name.startswith("logical"):
            yield "reduce(initial=)", lambda: f.reduce(x, initial=1.0), lambda: fold(x, axis=0, initial=1.0)
            yield (
                "reduce(initial=, where=)",
                lambda: f.reduce(x, initial=1.0, where=mask),
                lambda: fold(x, axis=0, initial=1.0, where=mask),
            )
        if name in SCANS or name.startswith("logical"):
            yield "reduce(where=)", lambda: f.reduce(x, where=mask), lambda: fold(x, axis=0, where=mask)
        if name in SCANS:
            scan = getattr(nvm, SCANS[name])
            yield "reduce(dtype=)", lambda: f.reduce(x, dtype="float64"), lambda: fold(x, axis=0, dtype=nvm.float64)
            yield "accumulate", lambda: f.accumulate(x), lambda: scan(x, axis=0)
            yield "accumulate(axis=)", lambda: f.accumulate(x, axis=1), lambda: scan(x, axis=1)
    elif name in ("hypot", "subtract", "logaddexp", "bitwise_xor"):
        yield "reduce, composed", lambda: f.reduce(x), lambda: mine.reduce(x)
    if name in ("add", "subtract", "maximum", "divide", "bitwise_or"):
        z, w = (x.copy() for _ in range(2))
        short = y[:2]
        yield "at", lambda: f.at(z, line, short), lambda: mine.at(w, line, short)
        yield "reduceat", lambda: f.reduceat(x, line), lambda: mine.reduceat(x, line)


def function_calls():
    """(call, NumPy's, nvm's own) for functions of NumPy."""
    x, y = arrays("float64")
    v, w = x[0].copy().eval(), y[0].copy().eval()
    i, mask = nvm.asarray(np.array([2, 0, 1])), nvm.asarray(np.arange(64).reshape(8, 8) % 3 == 0)
    square = x[:, :8].copy().eval()
    calls = {
        "max": "max",
        "min": "min",
        "sum": "sum",
        "prod": "prod",
        "mean": "mean",
        "all": "all",
        "any": "any",
        "argmax": "argmax",
        "argmin": "argmin",
        "std": "std",
        "var": "var",
        "amax": "max",
        "count_nonzero": "count_nonzero",
    }
    for name, ours in calls.items():
        f, g = getattr(np, name), getattr(nvm, ours)
        yield f"{name}(x)", lambda f=f: f(x), lambda g=g: g(x)
        yield f"{name}(x, 0)", lambda f=f: f(x, 0), lambda g=g: g(x, axis=0)
        yield f"{name}(x, axis=1)", lambda f=f: f(x, axis=1), lambda g=g: g(x, axis=1)
        yield (
            f"{name}(x, axis=1, keepdims=True)",
            lambda f=f: f(x, axis=1, keepdims=True),
            lambda g=g: g(x, axis=1, keepdims=True),
        )
    yield "sum(x, where=)", lambda: np.sum(x, where=mask), lambda: nvm.sum(x, where=mask)
    yield "sum(x, dtype=)", lambda: np.sum(x, dtype="float64"), lambda: nvm.sum(x, dtype=nvm.float64)
    yield "cumsum(x, axis=0)", lambda: np.cumsum(x, axis=0), lambda: nvm.cumulative_sum(x, axis=0)
    yield "cumsum(v)", lambda: np.cumsum(v), lambda: nvm.cumulative_sum(v, axis=0)
    yield "concatenate((x, y))", lambda: np.concatenate((x, y)), lambda: nvm.concat((x, y))
    yield "concatenate([x, y], axis=1)", lambda: np.concatenate([x, y], axis=1), lambda: nvm.concat([x, y], axis=1)
    yield "stack([x, y])", lambda: np.stack([x, y]), lambda: nvm.stack([x, y])
    yield "stack([x, y], axis=1)", lambda: np.stack([x, y], axis=1), lambda: nvm.stack([x, y], axis=1)
    yield "where(m, x, y)", lambda: np.where(mask, x, y), lambda: nvm.where(mask, x, y)
    yield "where(m, x, 0)", lambda: np.where(mask, x, 0), lambda: nvm.where(mask, x, 0)
    yield "clip(x, 0, 1)", lambda: np.clip(x, 0, 1), lambda: nvm.clip(x, 0, 1)
    yield "dot(a, b)", lambda: np.dot(square, x), lambda: nvm.matmul(square, x)
    yield "dot(v, w)", lambda: np.dot(v, w), lambda: nvm.matmul(v, w)
    yield "matmul(a, b)", lambda: np.matmul(square, x), lambda: nvm.matmul(square, x)
    yield "tensordot(a, b, 1)", lambda: np.tensordot(square, x, 1), lambda: nvm.tensordot(square, x, axes=1)
    yield "vecdot(x, y)", lambda: np.vecdot(x, y), lambda: nvm.vecdot(x, y)
    yield "outer(v, w)", lambda: np.outer(v, w), lambda: nvm.linalg.outer(v, w)
    yield "reshape(x, (4, 16))", lambda: np.reshape(x, (4, 16)), lambda: nvm.reshape(x, (4, 16))
    yield "reshape(x, -1)", lambda: np.reshape(x, -1), lambda: nvm.reshape(x, -1)
    yield "ravel(x)", lambda: np.ravel(x), lambda: nvm.reshape(x, -1)
    yield "transpose(x)", lambda: np.transpose(x), lambda: nvm.permute_dims(x, (1, 0))
    yield "transpose(x, (1, 0))", lambda: np.transpose(x, (1, 0)), lambda: nvm.permute_dims(x, (1, 0))
    yield "swapaxes(x, 0, 1)", lambda: np.swapaxes(x, 0, 1), lambda: nvm.permute_dims(x, (1, 0))
    yield "moveaxis(x, 0, 1)", lambda: np.moveaxis(x, 0, 1), lambda: nvm.moveaxis(x, 0, 1)
    yield "expand_dims(x, 0)", lambda: np.expand_dims(x, 0), lambda: nvm.expand_dims(x, axis=0)
    yield "squeeze(x)", lambda: np.squeeze(x[:1]), lambda: nvm.squeeze(x[:1], axis=0)
    yield "broadcast_to(v, s)", lambda: np.broadcast_to(v, (8, 8)), lambda: nvm.broadcast_to(v, (8, 8))
    yield "take(x, i, axis=0)", lambda: np.take(x, i, axis=0), lambda: nvm.take(x, i, axis=0)
    yield "sort(x)", lambda: np.sort(x), lambda: nvm.sort(x)
    yield "argsort(x)", lambda: np.argsort(x), lambda: nvm.argsort(x)
    yield "flip(x)", lambda: np.flip(x), lambda: nvm.flip(x)
    yield "roll(x, 1)", lambda: np.roll(x, 1), lambda: nvm.roll(x, 1)
    yield "roll(x, 1, axis=0)", lambda: np.roll(x, 1, axis=0), lambda: nvm.roll(x, 1, axis=0)
    yield "repeat(x, 2, axis=0)", lambda: np.repeat(x, 2, axis=0), lambda: nvm.repeat(x, 2, axis=0)
    yield "tile(x, (2, 1))", lambda: np.tile(x, (2, 1)), lambda: nvm.tile(x, (2, 1))
    yield "zeros_like(x)", lambda: np.zeros_like(x), lambda: nvm.zeros_like(x)
    yield "ones_like(x)", lambda: np.ones_like(x), lambda: nvm.ones_like(x)
    yield "full_like(x, 2)", lambda: np.full_like(x, 2), lambda: nvm.full_like(x, 2)
    yield "diff(x)", lambda: np.diff(x), lambda: nvm.diff(x)
    yield "round(x)", lambda: np.round(x), lambda: nvm.round(x)
    yield "real(x)", lambda: np.real(x), lambda: x
    yield "isclose(x, y)", lambda: np.isclose(x, y), lambda: own.isclose(x, y)
    yield "einsum", lambda: np.einsum("ij,kj->ik", x, y), lambda: nvm.einsum("ij,kj->ik", x, y)
    yield "vstack((x, y))", lambda: np.vstack((x, y)), lambda: own.vstack((x, y))
    yield "linalg.norm(x)", lambda: np.linalg.norm(x), lambda: own.linalg.norm(x)
    yield "tril(x)", lambda: np.tril(x), lambda: nvm.tril(x)
    yield "ndim(x)", lambda: np.ndim(x), lambda: x.ndim


def measure(words):
    """{form: {name: (ns beyond nvm's own, ns of that)}}"""
    wanted = lambda text: not words or any(w in text for w in words)
    rows, done = {}, set()
    for name, u in UFUNCS.items():
        if u.__name__ != name or name in done or not hasattr(np, name):
            continue
        done.add(name)
        for forms in (call_forms, method_forms):
            for form, theirs, ours in forms(name, u):
                if not (wanted(form) or wanted(name)):
                    continue
                try:
                    rows.setdefault(form, {})[name] = difference(theirs, ours)
                except (TypeError, ValueError) as e:
                    print(f"{name} {form}: {e}", file=sys.stderr)
                gc.collect(0)
    for call, theirs, ours in function_calls():
        if wanted(call):
            rows[call] = {"": difference(theirs, ours)}
    return rows


def main(words):
    whole, as_json = "--all" in words, "--json" in words
    rows = measure([w for w in words if not w.startswith("--")])
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'':34s} {'middle':>7s} {'own':>7s}   worst")
    for form, by_name in rows.items():
        order = sorted(by_name, key=lambda n: -by_name[n][0])
        shown = order if whole else order[:3]
        worst = ", ".join(f"{n} {by_name[n][0] / 1e3:.2f}" for n in shown if n)
        middle, alone = (statistics.median(v[i] for v in by_name.values()) / 1e3 for i in (0, 1))
        print(
            f"{form:34s} {middle:7.2f} {alone:7.2f}   {worst}" + ("   > 1" if by_name[order[0]][0] > AIM * 1e3 else "")
        )


if __name__ == "__main__":
    main(sys.argv[1:])
