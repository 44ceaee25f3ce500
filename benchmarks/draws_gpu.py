"""Random numbers on a GPU beside torch, JAX and CuPy, as they are there: draws that are stored, and draws that are used at once.

    PYTHONPATH=build/bindings/python python benchmarks/draws_gpu.py [--json FILE] [--rounds N] [--sizes 268435456,1000000]
                                                                    [--peers torch,jax,cupy] [--rows EXPRESSION]

Each row alternates the libraries and takes the median time of each, from the call until the result is there; a call is repeated within
a measurement until that takes 20 ms. Kernels are optimised before they are timed. JAX compiles each row as one function."""

import argparse
import importlib
import json
import re
import statistics
import sys
import time

from timing import commit

parser = argparse.ArgumentParser()
parser.add_argument("--json")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--sizes", default="268435456,1000000")
parser.add_argument("--peers", default="torch,jax,cupy")
parser.add_argument("--rows", default="", help="a regular expression that names of rows match")
options = parser.parse_args()


def of_nvm():
    import nvm

    nvm.set_default_device("cuda:0")
    nvm.set("TIER", "1")  # optimised code at once
    g = nvm.random.default_rng(1)
    return {
        "uniform": lambda s, t: g.random(s, dtype=t),
        "normal": lambda s, t: g.standard_normal(s, dtype=t),
        "exponential": lambda s, t: g.standard_exponential(s, dtype=t),
        "integers": lambda s, t: g.integers(0, 1000, s, dtype=t),
        "exp": nvm.exp,
        "sum": nvm.sum,
        "mean": nvm.mean,
        "where": nvm.where,
        "ones": lambda s, t: nvm.ones(s, dtype=t),
        "start": nvm.eval,
        "wait": lambda r: nvm.synchronize(),
    }


def of_torch():
    import torch

    def on(t):
        return {"dtype": getattr(torch, t), "device": "cuda"}

    return {
        "uniform": lambda s, t: torch.rand(s, **on(t)),
        "normal": lambda s, t: torch.randn(s, **on(t)),
        "exponential": lambda s, t: torch.empty(s, **on(t)).exponential_(),
        "integers": lambda s, t: torch.randint(0, 1000, s, **on(t)),
        "exp": torch.exp,
        "sum": torch.sum,
        "mean": torch.mean,
        "where": torch.where,
        "ones": lambda s, t: torch.ones(s, **on(t)),
        "wait": lambda r: torch.cuda.synchronize(),
    }


def of_jax():
    import jax

    jax.config.update("jax_enable_x64", True)
    key = [None]  # that of the call

    def draw(f, *more):
        return lambda s, t: f(key[0], s, *more, dtype=t)

    return {
        "uniform": draw(jax.random.uniform),
        "normal": draw(jax.random.normal),
        "exponential": draw(jax.random.exponential),
        "integers": draw(jax.random.randint, 0, 1000),
        "exp": jax.numpy.exp,
        "sum": jax.numpy.sum,
        "mean": jax.numpy.mean,
        "where": jax.numpy.where,
        "ones": lambda s, t: jax.numpy.ones(s, dtype=t),
        "wait": jax.block_until_ready,
        "compile": lambda f: compiled(jax, f, key),
    }


def compiled(jax, f, key):
    def with_key(k, *arrays):
        key[0] = k
        return f(*arrays)

    g, k = jax.jit(with_key), jax.random.key(1)
    return lambda *arrays: g(k, *arrays)


def of_cupy():
    import cupy

    g = cupy.random.default_rng(1)
    return {
        "uniform": lambda s, t: g.random(s, dtype=t),
        "normal": lambda s, t: g.standard_normal(s, dtype=t),
        "exponential": lambda s, t: g.standard_exponential(s, dtype=t),
        "integers": lambda s, t: g.integers(0, 1000, s, dtype=t),
        "exp": cupy.exp,
        "sum": cupy.sum,
        "mean": cupy.mean,
        "where": cupy.where,
        "ones": lambda s, t: cupy.ones(s, dtype=t),
        "wait": lambda r: cupy.cuda.get_current_stream().synchronize(),
    }


# ---- rows: a function of a library's functions, the shape and the dtype, and perhaps of an array of ones
def dropped(w, s, t, x):
    return w["where"](w["uniform"](s, t) < 0.5, x, 0.0)


ROWS = {
    f"{name}, {t}": (lambda w, s, t, name=name: w[name](s, t), t)
    for name in ("uniform", "normal", "exponential")
    for t in ("float32", "float64")
}
ROWS |= {
    "integers(0, 1000)": (lambda w, s, t: w["integers"](s, t), "int64"),
    "sum(exp(normal))": (lambda w, s, t: w["sum"](w["exp"](w["normal"](s, t))), "float32"),
    "sum(exp(normal)), float64": (lambda w, s, t: w["sum"](w["exp"](w["normal"](s, t))), "float64"),
    "mean(2 uniform + 1)": (lambda w, s, t: w["mean"](w["uniform"](s, t) * 2 + 1), "float32"),
    "where(uniform < 1/2, x, 0), rows of 1024": (dropped, "float32"),
    "where(uniform < 1/2, x, 0), rows of 1001": (dropped, "float32"),
    "ones": (lambda w, s, t: w["ones"](s, t), "float32"),  # what storing takes
}


def shape_of(name, n):
    row = re.search(r"rows of (\d+)", name)
    return (n // int(row[1]), int(row[1])) if row else (n,)


def seconds(w, call, times):
    start = time.perf_counter()
    for _ in range(times):
        result = call()
        w.get("start", lambda r: r)(result)
    w["wait"](result)
    return (time.perf_counter() - start) / times


def calls_of(f, shape, t):
    calls = {}
    for library, w in libraries.items():
        try:
            made = [w["ones"](shape, t)] if f is dropped else []
            for x in made:
                w.get("start", w["wait"])(x)
            g = w.get("compile", lambda f: f)(lambda *x, w=w: f(w, shape, t, *x))
            calls[library] = lambda g=g, made=made: g(*made)
            seconds(w, calls[library], 3)
        except Exception as e:  # a library that lacks it, or has no memory for it
            calls.pop(library, None)
            print(f"    {library}: {str(e).splitlines()[0][:100]}", file=sys.stderr)
    return calls


def measure(f, shape, t):
    calls = calls_of(f, shape, t)
    times = {k: min(max(1, int(0.02 / seconds(libraries[k], call, 1))), 1000) for k, call in calls.items()}
    measured = {k: [] for k in calls}
    for _ in range(options.rounds):
        for k, call in calls.items():
            measured[k].append(seconds(libraries[k], call, times[k]))
    return {k: statistics.median(s) for k, s in measured.items()}


def machine():
    """The name of the GPU, as nvm.info() has it."""
    import nvm

    return next(x for x in nvm.info().splitlines() if x.startswith("cuda:0")).split(maxsplit=1)[1].split(",")[0]


libraries = {"nvm": of_nvm()}
for peer in filter(None, options.peers.split(",")):
    try:
        importlib.import_module(peer)
        libraries[peer] = {"torch": of_torch, "jax": of_jax, "cupy": of_cupy}[peer]()
    except Exception as e:
        print(f"without {peer}: {e}", file=sys.stderr)

result = {
    "machine": machine(),
    "commit": commit(),
    "command": "benchmarks/draws_gpu.py " + " ".join(sys.argv[1:]),
    "rows": {},
}
for n in map(int, options.sizes.split(",")):
    for name, (f, t) in ROWS.items():
        if not re.search(options.rows, name):
            continue
        median = result["rows"][f"{name}, {n:,}"] = measure(f, shape_of(name, n), t)
        peers = [v for k, v in median.items() if k != "nvm"]
        ratio = f"{median['nvm'] / min(peers):6.2f} x the best" if peers and "nvm" in median else ""
        print(
            f"{name:42}{n:12,}" + "".join(f"  {k} {v * 1e3:8.4f} ms" for k, v in median.items()) + "  " + ratio,
            flush=True,
        )
if options.json:
    with open(options.json, "w") as f:
        json.dump(result, f, indent=1)
    print("written to", options.json, file=sys.stderr)
