"""First values of graphs that nobody has seen, on a GPU: how long until a value is there, and until fused code runs.

    python benchmarks/first_values.py [-o FOLDER] [--graphs 24] [--operations 4,10] [--try]

Each line is a process of its own, with a disk cache as its name says: "empty"; "single operations", which an earlier process with
NVM_TIER=direct has filled; "fused", the same once more, where the graphs' own kernels are in the cache; and "compiled at once", an
empty one under NVM_TIER=1, where no graph has a stand-in. Arrays are 1000 x 1000 of float32. Medians and the largest, of: the first
value (the call, and the wait for the device), the ms from there until an evaluation runs one kernel, and one evaluation of 200 behind
each other from then on. Values are held against NumPy. Writes FOLDER/first-values-<device>.json.
--try: small arrays, on whatever device there is: shows that the benchmark itself works.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from timing import commit, say

ONE = "negative", "abs", "square", "sqrt", "exp", "sin", "tanh", "floor"
TWO = "add", "subtract", "multiply", "maximum", "minimum"
CASES = (("empty", "a", "auto"), ("single operations", "b", "auto"), ("fused", "b", "auto"), ("compiled at once", "c", "1"))


def chains(n, operations):
    """n chains of operations, no two alike: each takes the last value, or it and one of two arrays."""
    draw, seen = random.Random(operations), []
    while len(seen) < n:
        c = tuple(draw.choice(ONE if i % 2 else TWO) for i in range(operations))
        if c not in seen:
            seen.append(c)
    return seen


def value(lib, chain, x, y):
    v = x
    for i, name in enumerate(chain):
        v = getattr(lib, name)(v, (y, x)[i // 2 % 2]) if name in TWO else getattr(lib, name)(lib.abs(v) if name == "sqrt" else v)
    return v


def measure(args, operations):
    """In a process of its own: prints a list of [first value in us, ms until fused code, us of an evaluation] by graph."""
    import nvm
    device, n = nvm.devices()[-1], 40 if args.try_ else 1000
    host = [np.random.default_rng(i).random((n, n), dtype=np.float32) + np.float32(0.5) for i in range(2)]
    x, y = (nvm.asarray(a, device=device).eval() for a in host)
    out = []
    (x + 1).eval()  # the context is there, and NVRTC
    for chain in chains(args.graphs, operations):
        nvm.synchronize()
        start = time.perf_counter()
        v = value(nvm, chain, x, y).eval()
        nvm.synchronize()
        first = time.perf_counter()
        with np.errstate(all="ignore"):
            want = value(np, chain, *host)
        if not np.allclose(np.asarray(v), want, rtol=1e-4, atol=1e-5, equal_nan=True):
            sys.exit(f"other values than NumPy's: {chain}")
        ran, until = 0, time.perf_counter()
        while ran != 1 and until < first + 5 and os.environ["NVM_TIER"] != "direct":
            before = nvm.counters()["kernels_run"]
            value(nvm, chain, x, y).eval()
            ran, until = nvm.counters()["kernels_run"] - before, time.perf_counter()
        nvm.synchronize()
        begin = time.perf_counter()
        for _ in range(200):
            value(nvm, chain, x, y).eval()
        nvm.synchronize()
        out.append(((first - start) * 1e6, (until - first) * 1e3, (time.perf_counter() - begin) * 1e6 / 200))
    print(json.dumps(out))


def run(args, operations, folder, tier):
    p = subprocess.run([sys.executable, __file__, "--measure", str(operations), "--graphs", str(args.graphs), *(["--try"] if args.try_ else [])],
                       capture_output=True, text=True, env=dict(os.environ, NVM_CACHE_DIR=folder, NVM_TIER=tier, CUDA_CACHE_DISABLE="1"))
    if p.returncode:
        sys.exit(p.stderr[-2000:])
    return json.loads(p.stdout.splitlines()[-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", default=None)
    p.add_argument("--graphs", type=int, default=24)
    p.add_argument("--operations", default="4,10")
    p.add_argument("--try", dest="try_", action="store_true")
    p.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.measure:
        return measure(args, args.measure)
    import nvm
    rows, device = {}, nvm.info().split("\ncuda:0", 1)[-1].strip().splitlines()[0]
    say(f"{'us, median and largest':44} {'first value':>18} {'ms to fused code':>18} {'an evaluation':>16}")
    for operations in map(int, args.operations.split(",")):
        with tempfile.TemporaryDirectory() as store:
            run(args, operations, f"{store}/b", "direct")
            for name, folder, tier in CASES:
                got = [sorted(v) for v in zip(*run(args, operations, f"{store}/{folder}", tier))]
                rows[f"{operations} operations, {name}"] = dict(zip(("first_us", "fused_ms", "each_us"), got))
                text = "".join(f" {statistics.median(v):9.1f} {v[-1]:8.1f}" for v in got)
                say(f"{operations:3} operations, {name:27} {text}")
    if args.o:
        name = "-".join("".join(c if c.isalnum() else " " for c in device.split(",")[0].lower()).split()) or "none"
        path = pathlib.Path(args.o) / f"first-values-{name}.json"
        path.write_text(json.dumps(dict(device=device, commit=commit(), graphs=args.graphs, rows=rows), indent=1) + "\n")


if __name__ == "__main__":
    main()
