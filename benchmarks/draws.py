"""Random numbers: draws of nvm and of NumPy's Generator, written to memory, side by side in one process.

    python benchmarks/draws.py [--threads 1] [--sizes 10000000,10000,100] [-o draws.json]

A figure is the least of many runs, in nanoseconds an element: of the clock, and of the CPU's time of all threads, by which the two are
compared where nvm has one thread, since other programs disturb it less. NumPy draws in one thread. Every draw is made some times before
the first one is measured: kernels are compiled in the background."""

import argparse
import json
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--sizes", default="10000000,10000,100")
parser.add_argument("--seconds", type=float, default=1.0)
parser.add_argument("-o", "--output")
options = parser.parse_args()
os.environ["NVM_NUM_THREADS"] = str(options.threads)

import numpy as np  # noqa: E402

import nvm  # noqa: E402
from timing import commit  # noqa: E402

G, g = np.random.default_rng(1), nvm.random.default_rng(1)
DRAWS = {
    "uniform f64": (lambda r, n: r.random(n)),
    "uniform f32": (lambda r, n: r.random(n, dtype="float32")),
    "normal f64": (lambda r, n: r.standard_normal(n)),
    "normal f32": (lambda r, n: r.standard_normal(n, dtype="float32")),
    "exponential f64": (lambda r, n: r.standard_exponential(n)),
    "integers(0, 1000)": (lambda r, n: r.integers(0, 1000, n)),
    "normal(1, 2)": (lambda r, n: r.normal(1.0, 2.0, n)),
    "gamma(2)": (lambda r, n: r.standard_gamma(2.0, n)),
    "gamma(0.5)": (lambda r, n: r.standard_gamma(0.5, n)),
    "gamma(2) f32": (lambda r, n: r.standard_gamma(2.0, n, dtype="float32")),
    "beta(2, 3)": (lambda r, n: r.beta(2.0, 3.0, n)),
    "poisson(5)": (lambda r, n: r.poisson(5.0, n)),
    "poisson(100)": (lambda r, n: r.poisson(100.0, n)),
    "binomial(20, 0.3)": (lambda r, n: r.binomial(20, 0.3, n)),
    "binomial(1000, .3)": (lambda r, n: r.binomial(1000, 0.3, n)),
    "geometric(0.3)": (lambda r, n: r.geometric(0.3, n)),
    "standard_t(4)": (lambda r, n: r.standard_t(4.0, n)),
}


def least(call, n):
    """(clock, CPU time) in nanoseconds an element"""
    clock = cpu = float("inf")
    end = time.perf_counter() + options.seconds
    runs = 0
    while runs < 5 or time.perf_counter() < end:
        c, s = time.process_time(), time.perf_counter()
        call()
        clock, cpu = min(clock, time.perf_counter() - s), min(cpu, time.process_time() - c)
        runs += 1
    return round(clock / n * 1e9, 3), round(cpu / n * 1e9, 3)


for draw in DRAWS.values():
    for n in map(int, options.sizes.split(",")):
        for _ in range(20):
            nvm.eval(draw(g, n))

by = options.threads == 1  # the CPU's time
rows = []
for name, draw in DRAWS.items():
    for n in map(int, options.sizes.split(",")):
        ours = least(lambda: nvm.eval(draw(g, n)), n)
        theirs = least(lambda: draw(G, n), n)
        rows.append(
            {"draw": name, "n": n, "nvm": ours[0], "nvm_cpu": ours[1], "numpy": theirs[0], "numpy_cpu": theirs[1]}
        )
        print(
            f"{name:18} {n:9} nvm {ours[0]:8.2f} ns ({ours[1]:.2f} cpu)  numpy {theirs[0]:8.2f} ns ({theirs[1]:.2f} cpu)"
            f"  {theirs[by] / ours[by]:6.2f} x",
            flush=True,
        )
if options.output:
    with open(options.output, "w") as out:
        json.dump(
            {"commit": commit(), "threads": options.threads, "python": sys.version.split()[0], "rows": rows},
            out,
            indent=1,
        )
