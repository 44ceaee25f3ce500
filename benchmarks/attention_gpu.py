"""Attention on a GPU beside torch: scaled_dot_product_attention, and torch.compile of the same plain mathematics.

    PYTHONPATH=build/bindings/python python benchmarks/attention_gpu.py [--json FILE] [--rounds N] [--seconds S] [--rows EXPRESSION]

nvm is given softmax(q @ k.T * s) @ v, causal by `where`. Rows are batch x heads x length x head size in bfloat16; each alternates the
libraries and takes the median time of each, from calls that are not waited for one by one. Results are compared with a float64 one. The
floor is that of the operations of both products (half of them where causal) at the rate of a large product in the same run."""

import argparse
import json
import re
import statistics
import time

import torch
import torch.nn.functional as F

import nvm
from timing import commit, slope

parser = argparse.ArgumentParser()
parser.add_argument("--json")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=1e9)
parser.add_argument("--rows", default="", help="a regular expression that names of rows match")
options = parser.parse_args()

TOKENS = 4 * 4096  # of a row: shorter sequences come in larger batches


def attention(q, k, v, causal):
    scores = q @ nvm.permute_dims(k, (0, 1, 3, 2)) * q.shape[-1] ** -0.5
    if causal:
        at = nvm.arange(q.shape[2], device=str(q.device))
        scores = nvm.where(at[:, None] >= at, scores, -nvm.inf)
    return nvm.softmax(scores, axis=-1) @ v


def plain(q, k, v, causal):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        at = torch.arange(q.shape[2], device=q.device)
        scores = torch.where(at[:, None] >= at, scores, -torch.inf)
    return torch.softmax(scores, -1) @ v


def wait():
    nvm.synchronize()
    torch.cuda.synchronize()


def calls_of(q, k, v, causal):
    mine = [nvm.from_dlpack(x) for x in (q, k, v)]
    jitted, compiled = nvm.jit(lambda q, k, v: attention(q, k, v, causal)), torch.compile(plain)
    calls = {
        "nvm": lambda: jitted(*mine),
        "sdpa": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    }
    if q.shape[2] <= 4096:  # its scores are in memory, or it is compiled to the same
        calls["torch.compile"] = lambda: compiled(q, k, v, causal)
    return calls


def measure(shape, causal):
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    calls = calls_of(q, k, v, causal)
    got, one = torch.from_dlpack(calls["nvm"]())[:1, :1].double(), [x[:1, :1].double() for x in (q, k, v)]
    error = float((got - plain(*one, causal)).abs().max())
    for f in calls.values():
        f()
    start = time.perf_counter()
    while time.perf_counter() - start < 0.3:  # until optimized code is there
        slope(calls["nvm"], wait, 1)
    times = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, f in calls.items():
            times[name].append(slope(f, wait, 3))
    return error, {name: statistics.median(t) for name, t in times.items()}


def rate_of_products():
    """Operations per microsecond of a product of 8192."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / statistics.median(slope(lambda: a @ b, wait, 3) for _ in range(5))


def table():
    for size in 128, 64:
        for causal in False, True:
            for length in 512, 1024, 2048, 4096, 8192, 16384:
                yield (max(1, TOKENS // length), 16, length, size), causal


begun, rows, rate = time.perf_counter(), {}, rate_of_products()
for shape, causal in table():
    name = " x ".join(map(str, shape)) + (", causal" if causal else "")
    if not re.search(options.rows, name):
        continue
    if time.perf_counter() - begun > options.seconds:
        print(f"{name}: no time left")
        break
    error, us = measure(shape, causal)
    floor = 4 * shape[0] * shape[1] * shape[2] ** 2 * shape[3] / (2 if causal else 1) / rate
    rows[name] = {"us": us, "floor": floor, "error": error}
    print(name, *(f"{k} {v:.1f} us ({v / floor:.2f})" for k, v in us.items()), f"error {error:.1e}", flush=True)
if options.json:
    about = {"device": torch.cuda.get_device_name(), "commit": commit(), "torch": torch.__version__, "rate": rate}
    with open(options.json, "w") as f:
        json.dump({"about": about, "rows": rows}, f, indent=1)
