"""Linear algebra beside NumPy: solutions with structure, products with a transpose, many small systems.

    PYTHONPATH=build/bindings/python python benchmarks/linalg.py [--json FILE] [--threads N] [--rounds N]

Each row alternates nvm and NumPy, and takes the least time of each; NumPy's BLAS is asked for as many threads."""

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

la = nvm.linalg
rng = np.random.default_rng(0)


def normal(*shape, t="float64"):
    return rng.standard_normal(shape).astype(t)


def seconds(f):
    start = time.perf_counter()
    np.asarray(f())
    return time.perf_counter() - start


def definite(n, t):
    a, b = normal(n, n, t=t), normal(n, 100, t=t)
    x, y, dtype = nvm.asarray(a), nvm.asarray(b), nvm.dtype(t)
    return (
        lambda: la.solve(x @ x.T + nvm.eye(n, dtype=dtype) * 0.01, y),
        lambda: np.linalg.solve(a @ a.T + np.eye(n, dtype=t) * np.asarray(0.01, t), b),
    )


def general(n, t):
    a, b = normal(n, n, t=t), normal(n, 100, t=t)
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: la.solve(x, y), lambda: np.linalg.solve(a, b)


def square(n, t):
    a = normal(n, n, t=t)
    x = nvm.asarray(a)
    return lambda: x @ x.T, lambda: a @ a.T


def full(n, t):
    """The same product, of two matrices: what half of it is compared with."""
    a, b = normal(n, n, t=t), normal(n, n, t=t)
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: x @ y.T, lambda: a @ b.T


def of_small(f, n, count, t, *more):
    a = normal(count, n, n, t=t)
    x, b = nvm.asarray(a), [normal(count, n, k, t=t) for k in more]
    y = [nvm.asarray(v) for v in b]
    return lambda: getattr(la, f)(x, *y), lambda: getattr(np.linalg, f)(a, *b)


def one(f, n, t):
    a = normal(n, n, t=t)
    x = nvm.asarray(a)

    def ours():
        r = getattr(la, f)(x)
        return r[0] if isinstance(r, tuple) else r

    def theirs():
        r = getattr(np.linalg, f)(a)
        return r[0] if isinstance(r, tuple) else r

    return ours, theirs


def planned(n, t):
    """The overhead of a planned call: a solution that takes no time."""
    a, b = normal(n, n, t=t), normal(n, t=t)
    f = nvm.jit(lambda a, b: la.solve(a, b))
    x, y = nvm.asarray(a), nvm.asarray(b)
    return lambda: f(x, y), lambda: np.linalg.solve(a, b)


ROWS = {
    "solve(A @ A.T + c I, B), 2000, f64": lambda: definite(2000, "float64"),
    "solve(A @ A.T + c I, B), 2000, f32": lambda: definite(2000, "float32"),
    "solve(A, B), 2000, f64": lambda: general(2000, "float64"),
    "A @ A.T, 2000, f64": lambda: square(2000, "float64"),
    "A @ A.T, 2000, f32": lambda: square(2000, "float32"),
    "A @ B.T, 2000, f64": lambda: full(2000, "float64"),
    "A @ B.T, 2000, f32": lambda: full(2000, "float32"),
    "solve, 100,000 of 8 x 8, f64": lambda: of_small("solve", 8, 100_000, "float64", 1),
    "solve, 100,000 of 8 x 8, f32": lambda: of_small("solve", 8, 100_000, "float32", 1),
    "inv, 100,000 of 8 x 8, f64": lambda: of_small("inv", 8, 100_000, "float64"),
    "inv, 100,000 of 8 x 8, f32": lambda: of_small("inv", 8, 100_000, "float32"),
    "solve, 10,000 of 32 x 32, f64": lambda: of_small("solve", 32, 10_000, "float64", 1),
    "det, 10,000 of 8 x 8, f64": lambda: of_small("det", 8, 10_000, "float64"),
    "svd, 400, f64": lambda: one("svd", 400, "float64"),
    "eigh, 400, f64": lambda: one("eigh", 400, "float64"),
    "qr, 400, f64": lambda: one("qr", 400, "float64"),
    "a planned solve of 2 x 2, f64": lambda: planned(2, "float64"),
}


def measure(make):
    ours, theirs = make()
    best = [seconds(ours), seconds(theirs)]
    least = best[0]
    for _ in range(options.rounds if least > 1e-3 else 200 * options.rounds):
        best = [min(best[0], seconds(ours)), min(best[1], seconds(theirs))]
    return best


result = {"threads": options.threads or nvm.settings()["num_threads"], "numpy": np.__version__, "rows": {}}
for name, make in ROWS.items():
    ours, theirs = measure(make)
    result["rows"][name] = {"nvm": ours, "numpy": theirs}
    print(f"{name:40} {ours * 1e3:10.3f} ms  NumPy {theirs * 1e3:10.3f} ms  {ours / theirs:6.2f} x", flush=True)
if options.json:
    with open(options.json, "w") as f:
        json.dump(result, f, indent=1)
    print("written to", options.json, file=sys.stderr)
