"""Linear algebra beside NumPy: solutions with structure, products with a transpose, many small systems.

    PYTHONPATH=build/bindings/python python benchmarks/linalg.py [--json FILE] [--threads N] [--rounds N]

Each row alternates nvm and NumPy, and takes the least time of each; NumPy's BLAS is asked for as many threads. With one thread it is
the CPU's time that counts, which other programs disturb less."""

import argparse
import json
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--json")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--rounds", type=int, default=7)
options = parser.parse_args()
if options.threads:
    for name in ("NVM_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(options.threads)

import numpy as np

import nvm
from timing import commit

la = nvm.linalg
rng = np.random.default_rng(0)


clock = time.process_time if options.threads == 1 else time.perf_counter


def normal(*shape, t="float64"):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if t.startswith("complex") else x).astype(t)


def first(r):
    return np.asarray(r[0] if isinstance(r, tuple) else r)


def seconds(f):
    start = clock()
    first(f())
    return clock() - start


def definite(n, t):
    a, b = normal(n, n, t=t), normal(n, 100, t=t)
    x, y, dtype = nvm.asarray(a), nvm.asarray(b), nvm.dtype(t)
    return (
        lambda: la.solve(x @ x.conj().T + nvm.eye(n, dtype=dtype) * 0.01, y),
        lambda: np.linalg.solve(a @ a.conj().T + np.eye(n, dtype=t) * np.asarray(0.01, t), b),
    )


def general(n, t):
    a, b = normal(n, n, t=t), normal(n, 100, t=t)
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: la.solve(x, y), lambda: np.linalg.solve(a, b)


def square(n, t):
    a = normal(n, n, t=t)
    x = nvm.asarray(a)
    return lambda: x @ x.conj().T, lambda: a @ a.conj().T


def full(n, t):
    """The same product, of two matrices: what half of it is compared with."""
    a, b = normal(n, n, t=t), normal(n, n, t=t)
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: x @ y.T, lambda: a @ b.T


def of_small(f, n, count, t, *more):
    a = normal(count, n, n, t=t)
    if f in ("cholesky", "eigh", "eigvalsh"):
        a = a @ a.conj().swapaxes(-1, -2) + np.eye(n, dtype=t)
    x, b = nvm.asarray(a), [normal(count, n, k, t=t) for k in more]
    y = [nvm.asarray(v) for v in b]
    return lambda: getattr(la, f)(x, *y), lambda: getattr(np.linalg, f)(a, *b)


def one(f, n, t):
    a = normal(n, n, t=t)
    x = nvm.asarray(a)
    return lambda: getattr(la, f)(x), lambda: getattr(np.linalg, f)(a)


def planned(n, t):
    """The overhead of a planned call: a solution that takes no time."""
    a, b = normal(n, n, t=t), normal(n, t=t)
    f = nvm.jit(lambda a, b: la.solve(a, b))
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: f(x, y), lambda: np.linalg.solve(a, b)


SHORT = {"float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
MANY = (2, 100_000), (8, 100_000), (32, 5_000)
BY_LAPACK = "eigh", "eigvalsh", "svd", "svdvals", "qr", "eig", "pinv", "cond"
ROWS = {}
for n in (500, 1000, 2000):
    for t in SHORT:
        if n == 2000 and t.startswith("complex"):
            continue
        turned = "A^H" if t.startswith("complex") else "A.T"
        ROWS[f"solve(A @ {turned} + c I, B), {n}, {SHORT[t]}"] = lambda n=n, t=t: definite(n, t)
        ROWS[f"solve(A, B), {n}, {SHORT[t]}"] = lambda n=n, t=t: general(n, t)
        ROWS[f"A @ {turned}, {n}, {SHORT[t]}"] = lambda n=n, t=t: square(n, t)
ROWS["A @ B.T, 2000, f64"] = lambda: full(2000, "float64")
ROWS["A @ B.T, 2000, f32"] = lambda: full(2000, "float32")
for n, count in MANY:
    for t in SHORT:
        ROWS[f"solve, {count:,} of {n} x {n}, {SHORT[t]}"] = lambda n=n, count=count, t=t: of_small(
            "solve", n, count, t, 1
        )
        for f in ("inv", "det", "slogdet", "cholesky"):
            ROWS[f"{f}, {count:,} of {n} x {n}, {SHORT[t]}"] = lambda f=f, n=n, count=count, t=t: of_small(
                f, n, count, t
            )
for f in BY_LAPACK:
    ROWS[f"{f}, 10,000 of 8 x 8, f64"] = lambda f=f: of_small(f, 8, 10_000, "float64")
for f in ("svd", "svdvals", "eigh", "qr", "inv", "det"):
    ROWS[f"{f}, 400, f64"] = lambda f=f: one(f, 400, "float64")
ROWS["a planned solve of 2 x 2, f64"] = lambda: planned(2, "float64")


def measure(make):
    ours, theirs = make()
    best = [seconds(ours), seconds(theirs)]
    least = best[0]
    for _ in range(options.rounds if least > 1e-3 else 200 * options.rounds):
        best = [min(best[0], seconds(ours)), min(best[1], seconds(theirs))]
    return best


result = {
    "commit": commit(),
    "clock": clock.__name__,
    "threads": options.threads or nvm.settings()["num_threads"],
    "numpy": np.__version__,
    "rows": {},
}
for name, make in ROWS.items():
    ours, theirs = measure(make)
    result["rows"][name] = {"nvm": ours, "numpy": theirs}
    print(f"{name:40} {ours * 1e3:10.3f} ms  NumPy {theirs * 1e3:10.3f} ms  {ours / theirs:6.2f} x", flush=True)
if options.json:
    with open(options.json, "w") as f:
        json.dump(result, f, indent=1)
    print("written to", options.json, file=sys.stderr)
