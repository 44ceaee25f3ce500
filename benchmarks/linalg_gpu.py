"""Linear algebra on a GPU beside torch, JAX and CuPy, as they are there: solutions with structure, products with a transpose,
batches of small matrices, and single factorizations beside cuSOLVER as CuPy calls it.

    PYTHONPATH=build/bindings/python python benchmarks/linalg_gpu.py [--json FILE] [--rounds N] [--part K] [--peers torch,cupy] [--rows EXPRESSION]

Each row alternates the libraries and takes the median time of each, from the call until the result is there; a call is repeated within
a measurement until that takes 20 ms. --part K divides extents and counts by K, for a trial."""

import argparse
import importlib
import json
import re
import statistics
import sys
import time

import numpy as np

from timing import commit

parser = argparse.ArgumentParser()
parser.add_argument("--json")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--part", type=int, default=1)
parser.add_argument("--peers", default="torch,jax,cupy")
parser.add_argument("--rows", default="", help="a regular expression that names of rows match")
options = parser.parse_args()
rng = np.random.default_rng(0)


class Library:
    """What the rows need of a library. start: begins what a call only describes; wait: until results are there."""

    def __init__(self, name, la, put, eye, wait, compile=lambda f: f, start=lambda r: None):
        self.name, self.la, self.put, self.eye = name, la, put, eye
        self.wait, self.compile, self.start = wait, compile, start


def of_nvm():
    import nvm

    return Library(
        "nvm",
        nvm.linalg,
        lambda x, t: nvm.asarray(x, device="cuda:0").astype(t),
        lambda n, t: nvm.eye(n, dtype=nvm.dtype(t)),
        lambda r: nvm.synchronize(),
        start=nvm.eval,
    )


def of_torch():
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return Library(
        "torch",
        torch.linalg,
        lambda x, t: torch.from_numpy(x).cuda().to(getattr(torch, t)),
        lambda n, t: torch.eye(n, dtype=getattr(torch, t), device="cuda"),
        lambda r: torch.cuda.synchronize(),
    )


def of_jax():
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")
    return Library(
        "jax",
        jax.numpy.linalg,
        lambda x, t: jax.numpy.asarray(x, dtype=t),
        lambda n, t: jax.numpy.eye(n, dtype=t),
        jax.block_until_ready,
        jax.jit,
    )


def of_cupy():
    import cupy

    return Library(
        "cupy",
        cupy.linalg,
        lambda x, t: cupy.asarray(x, dtype=t),
        lambda n, t: cupy.eye(n, dtype=t),
        lambda r: cupy.cuda.get_current_stream().synchronize(),
    )


def normal(*shape, t="float32"):
    return rng.standard_normal(shape).astype("float64" if t == "float64" else "float32")


# ---- rows: operands, then a function of a library and its arrays
def definite(n, t):
    return (normal(n, n, t=t), normal(n, 100, t=t)), t, lambda w, x, y: w.la.solve(x @ x.T + w.eye(n, t) * 0.01, y)


def general(n, t):
    return (normal(n, n, t=t), normal(n, 100, t=t)), t, lambda w, x, y: w.la.solve(x, y)


def square(n, t):
    return (normal(n, n),), t, lambda w, x: x @ x.T


def full(n, t):
    return (normal(n, n), normal(n, n)), t, lambda w, x, y: x @ y.T


def small_cholesky(count, n, t):
    a = normal(count, n, n, t=t)
    return (a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=a.dtype),), t, lambda w, x: w.la.cholesky(x)


def small_solve(count, n, t):
    return (normal(count, n, n, t=t), normal(count, n, 1, t=t)), t, lambda w, x, y: w.la.solve(x, y)


def values_of(w, x):
    return w.la.svdvals(x) if hasattr(w.la, "svdvals") else w.la.svd(x, compute_uv=False)


def small_inv(count, n, t):
    return (normal(count, n, n, t=t),), t, lambda w, x: w.la.inv(x)


def small_det(count, n, t):
    return (normal(count, n, n, t=t),), t, lambda w, x: w.la.det(x)


def small_slogdet(count, n, t):
    return (normal(count, n, n, t=t),), t, lambda w, x: tuple(w.la.slogdet(x))


def small_qr(count, n, t):
    return (normal(count, n, n, t=t),), t, lambda w, x: tuple(w.la.qr(x))


def small_eigh(count, n, t):
    a = normal(count, n, n, t=t)
    return (a + a.swapaxes(1, 2),), t, lambda w, x: tuple(w.la.eigh(x))


def small_svdvals(count, n, t):
    return (normal(count, n, n, t=t),), t, values_of


def one(f, n, t):
    def call(w, x):
        if f == "svd":
            return w.la.svd(x, full_matrices=False)
        return getattr(w.la, f)(x)

    a = normal(n, n, t=t)
    return (a + a.T if f == "eigh" else a,), t, call


def part(n):
    return max(n // options.part, 2)


ROWS = {}
for t in ("float32", "float64"):
    ROWS[f"solve(A @ A.T + c I, B), 5000, {t}"] = lambda t=t: definite(part(5000), t)
    ROWS[f"solve(A, B), 5000, {t}"] = lambda t=t: general(part(5000), t)
for t in ("bfloat16", "float32"):
    ROWS[f"A @ A.T, 4096, {t}"] = lambda t=t: square(part(4096), t)
    ROWS[f"A @ A.T, 8192, {t}"] = lambda t=t: square(part(8192), t)
    ROWS[f"A @ B.T, 8192, {t}"] = lambda t=t: full(part(8192), t)
for t in ("float32", "float64"):
    for count, n in ((100_000, 16), (100_000, 4), (100_000, 7), (20_000, 32), (100, 16), (1, 16)):
        for f in (
            small_cholesky,
            small_solve,
            small_inv,
            small_det,
            small_slogdet,
            small_svdvals,
            small_qr,
            small_eigh,
        ):
            name = f"{f.__name__[6:]}, {count:,} of {n} x {n}, {t}"
            ROWS[name] = lambda f=f, count=count, n=n, t=t: f(part(count) if count > 1 else 1, n, t)
    for f in ("svd", "eigh", "qr"):
        ROWS[f"{f}, 2048, {t}"] = lambda f=f, t=t: one(f, part(2048), t)


def machine():
    """The name of the GPU, as nvm.info() has it."""
    import nvm

    return (
        next(line for line in nvm.info().splitlines() if line.startswith("cuda:0")).split(maxsplit=1)[1].split(",")[0]
    )


def seconds(library, call, times):
    start = time.perf_counter()
    for _ in range(times):
        result = call()
        library.start(result)
    library.wait(result)
    return (time.perf_counter() - start) / times


def calls_of(row):
    arrays, t, f = row()
    calls = {}
    for w in libraries:
        try:
            made = [w.put(x, t) for x in arrays]
            g = w.compile(lambda *x, w=w: f(w, *x))
            call = lambda g=g, made=made: g(*made)
            seconds(w, call, 3)  # kernels are compiled, and their faster code follows
            calls[w] = call
        except Exception as e:  # a library that lacks it, or has no memory for it
            print(f"    {w.name}: {str(e).splitlines()[0][:100]}", file=sys.stderr)
    return calls


def measure(row):
    calls = calls_of(row)
    times = {w: min(max(1, int(0.02 / seconds(w, call, 1))), 1000) for w, call in calls.items()}
    measured = {w: [] for w in calls}
    for _ in range(options.rounds):
        for w, call in calls.items():
            measured[w].append(seconds(w, call, times[w]))
    return {w.name: statistics.median(s) for w, s in measured.items()}


libraries = [of_nvm()]
for peer in filter(None, options.peers.split(",")):
    try:
        importlib.import_module(peer)
        libraries.append({"torch": of_torch, "jax": of_jax, "cupy": of_cupy}[peer]())
    except Exception as e:
        print(f"without {peer}: {e}", file=sys.stderr)

command = "benchmarks/linalg_gpu.py " + " ".join(sys.argv[1:])
result = {"machine": machine(), "commit": commit(), "command": command, "rows": {}}
for name, row in ROWS.items():
    if not re.search(options.rows, name):
        continue
    median = result["rows"][name] = measure(row)
    peers = [v for k, v in median.items() if k != "nvm"]
    ratio = f"{median['nvm'] / min(peers):6.2f} x the best" if peers and "nvm" in median else ""
    print(f"{name:44}" + "".join(f" {k} {v * 1e3:10.3f} ms" for k, v in median.items()) + "  " + ratio, flush=True)
if options.json:
    with open(options.json, "w") as f:
        json.dump(result, f, indent=1)
    print("written to", options.json, file=sys.stderr)
