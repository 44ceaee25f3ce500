"""Sorting and searching on a GPU beside torch and CuPy: whole arrays, rows and columns, values and positions.

    PYTHONPATH=build/bindings/python python benchmarks/sort_gpu.py [--json FILE] [--rounds N] [--seconds S] [--most N] [--peers torch,cupy]
        [--rows EXPRESSION]

Each row alternates the libraries and takes the median time of each, from the call until the result is there; a call is repeated within a
measurement until that takes 5 ms. Inputs are random: floats are normal, integers of their whole range. torch gives values and positions in one call
(stable=True), which stands beside both of nvm's. Every result is compared with torch's. --most: the most elements of an array; --seconds: no row
begins later."""

import argparse
import json
import re
import statistics
import sys
import time

import torch

import nvm
from timing import commit

parser = argparse.ArgumentParser()
parser.add_argument("--json")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=1e9)
parser.add_argument("--most", type=float, default=1e9)
parser.add_argument("--peers", default="torch,cupy")
parser.add_argument("--rows", default="", help="a regular expression that names of rows match")
options = parser.parse_args()
try:
    import cupy
except ImportError:
    cupy = None

DTYPES = "float32 int32 int64 float64 uint8 float16".split()
WHOLE = [10**k for k in range(3, 10)]
ROWS = [(10**6, 16), (10**5, 100), (10**5, 1000), (1024, 8192), (1000, 10**5), (10, 10**6)]
SEARCHES = [(10**3, 10**3), (10**3, 10**6), (10**6, 10**6), (10**7, 10**6), (10**6, 10**7)]


def random(shape, dtype):
    t = getattr(torch, dtype)
    if t.is_floating_point:
        return torch.randn(shape, device="cuda", dtype=t)
    info = torch.iinfo(t)
    return torch.randint(info.min, info.max, shape, device="cuda", dtype=t)


def evaluated(f, *args, **options):
    y = f(*args, **options)
    nvm.eval(y)
    return y


def sorting(what, shape, dtype, axis):
    """{library: a call whose result is an array}"""
    x = random(shape, dtype)
    mine, theirs = nvm.from_dlpack(x), cupy and cupy.from_dlpack(x)
    return {
        "nvm": lambda: evaluated(getattr(nvm, what), mine, axis=axis),
        "torch": lambda: torch.sort(x, dim=axis, stable=True)[what == "argsort"],
        "cupy": lambda: getattr(cupy, what)(theirs, axis=axis),
    }


def listing(n, share):
    x = torch.rand(n, device="cuda") < share
    mine, theirs = nvm.from_dlpack(x), cupy and cupy.from_dlpack(x)
    return {
        "nvm": lambda: nvm.nonzero(mine)[0],
        "torch": lambda: torch.nonzero(x, as_tuple=True)[0],
        "cupy": lambda: cupy.nonzero(theirs)[0],
    }


def selecting(n, share):
    x, v = torch.rand(n, device="cuda") < share, random((n,), "float32")
    mine, numbers = nvm.from_dlpack(x), nvm.from_dlpack(v)
    theirs, others = cupy and cupy.from_dlpack(x), cupy and cupy.from_dlpack(v)
    return {
        "nvm": lambda: evaluated(lambda: numbers[mine]),
        "torch": lambda: v[x],
        "cupy": lambda: others[theirs],
    }


def searching(n, m, dtype):
    x, v = torch.sort(random((n,), dtype)).values, random((m,), dtype)
    mine, theirs = [nvm.from_dlpack(a) for a in (x, v)], cupy and [cupy.from_dlpack(a) for a in (x, v)]
    return {
        "nvm": lambda: evaluated(nvm.searchsorted, *mine),
        "torch": lambda: torch.searchsorted(x, v),
        "cupy": lambda: cupy.searchsorted(*theirs),
    }


def wait():
    nvm.synchronize()
    torch.cuda.synchronize()


def microseconds(call, repeats):
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    wait()
    return (time.perf_counter() - start) / repeats * 1e6


def same(a, b):
    """Have they the same bits?"""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return bool((a.view(bits) == b.view(bits)).all())


def measure(calls):
    right = "torch" not in calls or same(torch.from_dlpack(calls["nvm"]()), calls["torch"]().contiguous())
    repeats = {}
    for k, f in calls.items():
        for _ in range(3):
            f()
        repeats[k] = max(1, min(1000, int(5e3 / microseconds(f, 1))))
    times = {k: [] for k in calls}
    for _ in range(options.rounds):
        for k, f in calls.items():
            times[k].append(microseconds(f, repeats[k]))
    return right, {k: statistics.median(v) for k, v in times.items()}


def table():
    """Name, most elements of an array, a function that makes the calls and its arguments."""
    for dtype in DTYPES:
        for what in "sort", "argsort":
            for n in WHOLE:
                yield f"{what} {dtype} {n}", n, sorting, (what, (n,), dtype, 0)
            for shape in ROWS:
                yield f"{what} {dtype} rows {shape[0]} x {shape[1]}", shape[0] * shape[1], sorting, (what, shape, dtype, 1)
            yield f"{what} {dtype} columns 8192 x 1024", 1 << 23, sorting, (what, (8192, 1024), dtype, 0)
    for n in WHOLE[:-1]:
        for share in 0.01, 0.5:
            yield f"nonzero {n}, {share} true", n, listing, (n, share)
            yield f"mask {n}, {share} true", n, selecting, (n, share)
    for n, m in SEARCHES:
        for dtype in DTYPES[:4]:
            yield f"searchsorted {dtype} {m} in {n}", max(n, m), searching, (n, m, dtype)


start, rows = time.perf_counter(), {}
for name, most, make, arguments in table():
    if not re.search(options.rows, name) or most > options.most:
        continue
    if time.perf_counter() - start > options.seconds:
        print(f"{name}: no time left", file=sys.stderr)
        break
    wanted = ["nvm"] + (options.peers.split(",") if cupy else ["torch"])
    right, us = measure({k: f for k, f in make(*arguments).items() if k in wanted})
    rows[name] = {"us": us, "right": right}
    ratios = " ".join(f"{k} {v:.1f} us ({us['nvm'] / v:.2f})" for k, v in us.items())
    print(f"{name}: {ratios}{'' if right else ' WRONG'}", flush=True)
if options.json:
    about = {"device": torch.cuda.get_device_name(), "commit": commit(), "torch": torch.__version__}
    with open(options.json, "w") as f:
        json.dump({"about": about, "rows": rows}, f, indent=1)
