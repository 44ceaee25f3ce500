"""Small and large programs on one thread and on several, beside NumPy: more threads must not be slower.

    python benchmarks/threads.py [--threads 1,2] [--rows sum,kmeans] [--rounds 15] [-o benchmarks/results/threads.json]

Each implementation and number of threads has a process of its own. They take turns at a row, some 20 ms each, so that what else
the machine does meets all of them; while one computes the others wait. A figure is the least time of a call over all rounds, in
microseconds. The load of the machine before and after is told, for it is part of what is measured.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from timing import commit

BURST = 0.02  # seconds of one turn


def black_scholes(xp, s, k, t):
    d1 = (xp.log(s / k) + (0.02 + 0.045) * t) / (0.3 * xp.sqrt(t))
    d2 = d1 - 0.3 * xp.sqrt(t)
    below = [1 / (1 + xp.exp(-1.702 * d)) for d in (d1, d2)]
    return s * below[0] - k * xp.exp(-0.02 * t) * below[1]


def softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def layernorm(xp, x):
    return (x - xp.mean(x, axis=1, keepdims=True)) / (xp.std(x, axis=1, keepdims=True) + 1e-5)


def kmeans(xp, x, c):
    nearest = xp.argmin(xp.sum((x[:, None, :] - c[None]) ** 2, axis=-1), axis=1)
    mine = xp.astype(nearest[:, None] == xp.arange(c.shape[0])[None], x.dtype)
    return (mine.T @ x) / xp.sum(mine, axis=0)[:, None]


def conjugate_gradients(xp, a, x, r, p):
    ap = a @ p
    rs = xp.sum(r * r)
    step = rs / xp.sum(p * ap)
    left = r - step * ap
    return x + step * p, left, left + (xp.sum(left * left) / rs) * p


def bodies(xp, p, v):
    d = p[None] - p[:, None]
    return v + 0.01 * xp.sum(d / (xp.sum(d**2, axis=-1) + 0.01)[..., None] ** 1.5, axis=1)


def heat(xp, u):
    return u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


def logistic(xp, x, w, y):
    return w - 0.1 * (x.T @ (1 / (1 + xp.exp(-(x @ w))) - y)) / x.shape[0]


def perceptron(xp, x, w, b, v):
    return xp.maximum(x @ w + b, 0) @ v


def product(xp, a, b):
    return a @ b


def wave(xp, x, y):
    return xp.sin(x * y) + 1


# name: (function, dtype, shapes of its arguments)
ROWS = {
    "sin(x y) + 1, 1,000": (wave, "f4", [(1000,)] * 2),
    "sin(x y) + 1, 10,000": (wave, "f4", [(10000,)] * 2),
    "sin(x y) + 1, 100,000": (wave, "f4", [(100000,)] * 2),
    "sin(x y) + 1, 1,000,000": (wave, "f4", [(1000000,)] * 2),
    "2.5 x + y, 30,000": (lambda xp, x, y: 2.5 * x + y, "f8", [(30000,)] * 2),
    "2.5 x + y, 1,000,000": (lambda xp, x, y: 2.5 * x + y, "f8", [(1000000,)] * 2),
    "sum, 100,000": (lambda xp, x: xp.sum(x), "f8", [(100000,)]),
    "sum of columns, 1000 x 100": (lambda xp, x: xp.sum(x, axis=0), "f8", [(1000, 100)]),
    "heat, 200 x 200": (heat, "f8", [(200, 200)]),
    "heat, 2000 x 2000": (heat, "f8", [(2000, 2000)]),
    "Black-Scholes, 1,000": (black_scholes, "f8", [(1000,)] * 3),
    "Black-Scholes, 1,000,000": (black_scholes, "f8", [(1000000,)] * 3),
    "softmax, 100 x 100": (softmax, "f4", [(100, 100)]),
    "softmax, 4096 x 1000": (softmax, "f4", [(4096, 1000)]),
    "layernorm, 256 x 256": (layernorm, "f4", [(256, 256)]),
    "bodies, 200": (bodies, "f8", [(200, 3)] * 2),
    "k-means, 10000 x 8, 16": (kmeans, "f8", [(10000, 8), (16, 8)]),
    "product, 32": (product, "f8", [(32, 32)] * 2),
    "product, 128": (product, "f8", [(128, 128)] * 2),
    "product, 300": (product, "f8", [(300, 300)] * 2),
    "product, 1000": (product, "f4", [(1000, 1000)] * 2),
    "product, 10000 x 50 by 50": (product, "f8", [(10000, 50), (50,)]),
    "matrix times vector, 2000": (product, "f8", [(2000, 2000), (2000,)]),
    "batched product, 1000 x 8 x 8": (product, "f8", [(1000, 8, 8)] * 2),
    "batched product, 32 x 64 x 64": (product, "f4", [(32, 64, 64)] * 2),
    "conjugate gradients, 500": (conjugate_gradients, "f8", [(500, 500)] + [(500,)] * 3),
    "conjugate gradients, 2000": (conjugate_gradients, "f8", [(2000, 2000)] + [(2000,)] * 3),
    "logistic regression, 10000 x 50": (logistic, "f8", [(10000, 50), (50,), (10000,)]),
    "perceptron, 64 x 512 x 10": (perceptron, "f4", [(64, 512), (512, 512), (512,), (512, 10)]),
}


def prepare(peer, name):
    """What calls a row once and waits for it."""
    import numpy as np
    f, dtype, shapes = ROWS[name]
    rng = np.random.default_rng(7)
    args = [rng.uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes]
    if peer == "numpy":
        return lambda: f(np, *args)
    import nvm
    call, args = nvm.jit(lambda *a: f(nvm, *a)), [nvm.asarray(a) for a in args]

    def once():
        result = call(*args)
        nvm.eval(list(result) if isinstance(result, tuple) else result)
    return once


def turn(once):
    """The least seconds of a call, of as many as fit into a burst."""
    least, end = float("inf"), time.perf_counter() + BURST
    while True:
        start = time.perf_counter()
        once()
        now = time.perf_counter()
        least = min(least, now - start)
        if now > end:
            return least


def work(peer):
    """A process of one implementation: reads a row's name or an empty line, answers when it is ready or what a turn gave."""
    for line in sys.stdin:
        if line.strip():
            once = prepare(peer, line.strip())
            for _ in range(20):
                once()
            answer = "ready"
        else:
            answer = turn(once)
        print(answer, flush=True)


def start(peer, threads):
    names = "NVM_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"
    return subprocess.Popen([sys.executable, __file__, "--worker", peer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env=dict(os.environ, **{name: str(threads) for name in names}))


def ask(worker, line):
    worker.stdin.write(line + "\n")
    worker.stdin.flush()
    return worker.stdout.readline().strip()


def measure(workers, name, rounds):
    for worker in workers.values():
        ask(worker, name)
    least = dict.fromkeys(workers, float("inf"))
    for _ in range(rounds):
        for key, worker in workers.items():
            least[key] = min(least[key], float(ask(worker, "")) * 1e6)
    return least


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--peers", default="nvm,numpy")
    ap.add_argument("--rows", default="", help="names that contain one of these, with commas between them; all without it")
    ap.add_argument("--rounds", type=int, default=15)
    ap.add_argument("--worker")
    ap.add_argument("-o", "--output")
    args = ap.parse_args()
    if args.worker:
        return work(args.worker)
    counts, peers = [int(n) for n in args.threads.split(",")], args.peers.split(",")
    workers = {f"{peer} {n}": start(peer, n) for peer in peers for n in counts}
    load, rows = os.getloadavg()[0], {}
    print(f"microseconds a call; load {load:.1f}\n{'':34}" + "".join(f"{key:>11}" for key in workers) + f"   {counts[-1]} by {counts[0]}")
    for name in (n for n in ROWS if any(part in n for part in args.rows.split(","))):
        rows[name] = by = measure(workers, name, args.rounds)
        ratio = by[f"{peers[0]} {counts[-1]}"] / by[f"{peers[0]} {counts[0]}"]
        print(f"{name:34}" + "".join(f"{t:11.1f}" for t in by.values()) + f"{ratio:9.2f}{' slower' if ratio > 1.05 else ''}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    if args.output:
        result = dict(commit=commit(), date=time.strftime("%Y-%m-%d"), load=[load, os.getloadavg()[0]], threads=counts, rows=rows)
        pathlib.Path(args.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
