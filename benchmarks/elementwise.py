"""Every elementwise operation that NumPy or SciPy has too, alone: under jit, eagerly, and the peer, on one thread.

    python benchmarks/elementwise.py [--only cbrt,atan2] [--dtypes float32,float64,int32] [--sizes 10,1000,1000000] [--rounds 7]
                                     [--slower 1.05] [-o benchmarks/results/elementwise-avx2.json]

The operations are those ufuncs of NumPy, and of scipy.special where SciPy is installed, whose names nvm has, and any and all of a
bool array, which may end early. Operands are contiguous, each call makes a new result. The three take turns; a figure is the least
time of a call over all rounds, in microseconds. --slower: prints the rows that take longer than the peer by this factor, under
jit; 0: all.
"""
import argparse
import json
import os
import pathlib
import time

os.environ.update(NVM_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NVM_DEVICE="cpu")
import numpy as np

import nvm
from timing import commit, say

BURST = 0.004  # seconds of one turn, of at least one call
WARM = 0.15  # seconds of calls before the first turn
COMPILED = 0.5  # seconds in which a kernel is compiled
INTEGERS = "add subtract multiply floor_divide remainder abs square maximum minimum equal less bitwise_and bitwise_left_shift".split()
SPECIAL = {"erf": "erf", "erfc": "erfc", "lgamma": "gammaln", "sigmoid": "expit", "logit": "logit"}


def peers():
    """name: (the peer's function, whose it is)"""
    found = {name: (f, "numpy") for name, f in vars(np).items() if isinstance(f, np.ufunc) and f.nout == 1 and hasattr(nvm, name)}
    found.pop("matmul", None), found.pop("vecdot", None)
    try:
        import scipy.special
    except ImportError:
        say("SciPy is not installed: its special functions are left out")
    else:
        found.update({name: (getattr(scipy.special, f), "scipy") for name, f in SPECIAL.items() if hasattr(nvm, name)})
    return found


def operands(name, nin, dtype, n):
    rng = np.random.default_rng(7)
    if np.dtype(dtype).kind in "iu":
        return [rng.integers(1, 7 if "shift" in name else 100, n).astype(dtype) for _ in range(nin)]
    low = 1 if name in ("acosh", "arccosh") else 0
    return [(low + rng.uniform(0.05, 0.95, n)).astype(dtype) for _ in range(nin)]


def turn(call):
    """The least microseconds of a call in one turn."""
    least, end = float("inf"), time.perf_counter() + BURST
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least * 1e6


def measure(ours, theirs, arrays, rounds):
    own, jitted = [nvm.asarray(a) for a in arrays], nvm.jit(lambda *a: ours(*a))
    calls = dict(jit=lambda: nvm.eval(jitted(*own)), eager=lambda: nvm.eval(ours(*own)), peer=lambda: theirs(*arrays))
    end = time.perf_counter() + WARM
    while time.perf_counter() < end:
        calls["jit"](), calls["eager"]()
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(2):
        for _ in range(rounds):
            for key, call in calls.items():
                least[key] = min(least[key], turn(call))
        if max(least["jit"], least["eager"]) < 2 * least["peer"]:
            break
        time.sleep(COMPILED)  # what is slow may wait for its code, which is compiled in the background
    return {key: round(t, 3) for key, t in least.items()}


def rows(only, dtypes, sizes):
    """(name, whose the peer is, dtype, n, function, the peer's, operands)"""
    for name, (theirs, whose) in sorted(peers().items()):
        for dtype in dtypes:
            if only and name not in only or (np.dtype(dtype).kind in "iu" and name not in INTEGERS):
                continue
            for n in sizes:
                arrays = operands(name, theirs.nin, dtype, n)
                try:
                    theirs(*arrays), getattr(nvm, name)(*(nvm.asarray(a) for a in arrays))
                except TypeError:
                    break
                yield name, whose, dtype, n, getattr(nvm, name), theirs, arrays
    for name in ("any", "all"):
        for at in ("early", "never"):
            for n in sizes if not only or name in only else ():
                x = np.full(n, name == "all")
                if at == "early":
                    x[n // 10] = not x[0]
                yield f"{name}, decided {at}", "numpy", "bool", n, getattr(nvm, name), getattr(np, name), [x]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="", help="names of operations with commas between them")
    ap.add_argument("--dtypes", default="float32,float64,int32")
    ap.add_argument("--sizes", default="10,1000,1000000")
    ap.add_argument("--rounds", type=int, default=7)
    ap.add_argument("--slower", type=float, default=1.05)
    ap.add_argument("-o", "--output")
    args = ap.parse_args()
    load, table = os.getloadavg()[0], []
    only, sizes = [s for s in args.only.split(",") if s], [int(s) for s in args.sizes.split(",")]
    print(f"microseconds a call; load {load:.1f}\n{'':36}{'jit':>11}{'eager':>11}{'peer':>11}   jit by peer")
    for name, whose, dtype, n, ours, theirs, arrays in rows(only, args.dtypes.split(","), sizes):
        by = measure(ours, theirs, arrays, args.rounds)
        table.append(dict(op=name, dtype=dtype, n=n, peer=whose, us=by))
        if by["jit"] > args.slower * by["peer"]:
            print(f"{name + ', ' + dtype + f', {n:,}':36}" + "".join(f"{t:11.2f}" for t in by.values()) + f"{by['jit'] / by['peer']:9.2f}", flush=True)
    print(f"{len(table)} rows; load {os.getloadavg()[0]:.1f}")
    if args.output:
        result = dict(commit=commit(), date=time.strftime("%Y-%m-%d"), load=[load, os.getloadavg()[0]], numpy=np.__version__, rows=table)
        pathlib.Path(args.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
