"""Single operations beside NumPy on one thread: elementwise functions, reductions, scans, indexing, rearrangements, sorts, small
products, for the dtypes that they take, at several sizes.

    python benchmarks/single.py [--kinds index,sort] [--only argmax] [--dtypes float32,uint8] [--sizes 10,1000] [--rounds 5]
                                [--slower 1.05] [-o benchmarks/results/single-cpu-avx2.json]

Each call makes a new node and evaluates it, as eager code does. When no code is compiled any more, nvm and NumPy take turns of
some milliseconds. A figure is the median of the turns, in microseconds of the thread's processor time a call, so that what else
the machine does counts little. What is slower than --slower times NumPy is printed (0: all rows are). --quick: float32, int64 and
uint8 at 1,000 and 1,000,000 elements, two rounds.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import time

os.environ.update(NVM_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", NVM_DEVICE="cpu")
import numpy as np

import nvm
from single_rows import DTYPES, rows
from timing import commit, say

TURN = 0.002  # seconds of a turn, which has at least one call
WARM = 0.02  # seconds of calls, of at least ten, between two looks whether code is compiled

COMPILED = nvm.jit(lambda x: x + 1).lower(nvm.ones(2))  # its compile() waits for all code that is being made


def turn(call, calls):
    """Microseconds of this thread's processor time for each of so many calls."""
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls * 1e6


def calls_of(call):
    """So many calls take about a turn."""
    once = max(min(turn(call, 1) for _ in range(2)), 0.2)
    return max(int(TURN * 1e6 / once), 1)


def settle(call):
    """Calls until no code is compiled any more: kernels may have baseline code first, which calls replace."""
    for _ in range(3):
        end = time.thread_time() + WARM
        for n in range(10000):
            call()
            if n >= 10 and time.thread_time() > end:
                break
        COMPILED.compile()


def measure(ours, theirs, rounds):
    """Microseconds of a call of nvm and of NumPy."""
    settle(ours)
    own, peer = calls_of(ours), calls_of(theirs)
    turns = [(turn(ours, own), turn(theirs, peer)) for _ in range(rounds)]
    return tuple(round(statistics.median(t), 3) for t in zip(*turns))


def isa():
    try:
        with open("/proc/cpuinfo") as f:
            text = f.read()
    except OSError:
        return platform.machine(), ""
    model = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")
    return "avx512" if "avx512f" in text else "avx2" if "avx2" in text else platform.machine(), model


def summary(table, slower):
    """How many rows of each size are slower than NumPy."""
    for n in sorted({r["n"] for r in table}):
        ratios = [r["ratio"] for r in table if r["n"] == n]
        late = sum(r > slower for r in ratios)
        print(f"{n:>10,} elements: {late} of {len(ratios)} slower, median {statistics.median(ratios):.2f}")


def options():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--kinds", default="", help="elementwise, reduction, scan, index, move, sort, product")
    ap.add_argument("--only", default="", help="beginnings of names of rows, with commas between them")
    ap.add_argument("--dtypes", default=",".join(DTYPES))
    ap.add_argument("--sizes", default="10,1000,1000000,10000000")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--slower", type=float, default=1.05)
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("-o", "--output")
    args = ap.parse_args()
    if args.quick:
        args.dtypes, args.sizes, args.rounds = "float32,int64,uint8", "1000,1000000", 2
    args.kinds, args.only, args.dtypes = ([s for s in t.split(",") if s] for t in (args.kinds, args.only, args.dtypes))
    return args


def save(path, args, load, table):
    (name, model), now = isa(), os.getloadavg()[0]
    result = dict(
        device=model, isa=name, commit=commit(), date=time.strftime("%Y-%m-%d"), load=[load, now], rounds=args.rounds,
        nvm=nvm.__version__, numpy=np.__version__, python=platform.python_version(), rows=table,
    )  # fmt: skip
    text = json.dumps(result, indent=1).replace("\n   ", " ").replace("\n  }", " }")
    pathlib.Path(path).write_text(text + "\n")


def main():
    args, load, table = options(), os.getloadavg()[0], []
    print(f"microseconds a call; load {load:.1f}\n{'':50}{'nvm':>12}{'NumPy':>12}   nvm by NumPy")
    for n in (int(s) for s in args.sizes.split(",")):
        for kind, name, dtype, ours, theirs in rows(n, args.dtypes, args.kinds, args.only):
            try:
                own, peer = measure(ours, theirs, args.rounds)
            except (TypeError, ValueError, NotImplementedError) as e:
                say(f"{name}, {dtype}, {n:,}: {e}")
                continue
            table.append(
                dict(kind=kind, op=name, dtype=dtype, n=n, nvm=own, numpy=peer, ratio=round(own / max(peer, 1e-3), 3))
            )
            if own > args.slower * peer:
                print(f"{f'{name}, {dtype}, {n:,}':50}{own:12.2f}{peer:12.2f}{own / peer:9.2f}", flush=True)
        if args.output:
            save(args.output, args, load, table)
    summary(table, args.slower)


if __name__ == "__main__":
    main()
