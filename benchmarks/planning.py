"""What planning costs: microseconds and bytes a node of each stage, over graphs of 10 to 20,000 nodes, and over the steps of a loop;
and what a new size costs where other sizes of its classes are planned.

    python benchmarks/planning.py [--new-sizes] [--sizes 100,1000,10000] [--only stencil,adam] [--limit 20] [-o benchmarks/results/planning-avx512.json]

Every case is a function that repeats a step; `steps` is how often. It is traced and called once. The
times are those that NVM_VERBOSE=3 tells; the least of the rounds counts. `bytes` is what the arena of the planning holds at its end.
moved: bytes that the kernels read and write, for each step. A case ends at the size that took longer than --limit seconds.
--new-sizes: whole evaluations in microseconds, each of another size (a plan for each; programs that are bound), of a known size, and
NumPy's.
"""
import argparse
import contextlib
import json
import os
import re
import sys
import tempfile
import time

os.environ.update(NVM_VERBOSE="3", NVM_CACHE_DIR="off", NVM_DEVICE="cpu")
import numpy as np

import nvm
from timing import commit


def repeated(step, n, *state):
    for i in range(n):
        state = step(i, *state)
    return list(state)


def chain(i, x):
    return (nvm.sin(x) * 1.01 + 0.5,)


def stencil(i, u):
    u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return (u,)


def padded(i, u):
    v = u[1:-1, 1:-1]
    return (u + nvm.pad(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * v), 1),)


def rolls(i, u):
    return (u + 0.1 * (nvm.roll(u, 1, 0) + nvm.roll(u, -1, 0) + nvm.roll(u, 1, 1) + nvm.roll(u, -1, 1) - 4 * u),)


def columns(i, b):
    k = i % b.shape[1]
    b[:, k] = b[:, k] * 2 + 1
    return (b,)


def rows(i, out, t):
    out[i % out.shape[0]] = nvm.sin(t * i)
    return out, t


def layers(i, h, w):
    return nvm.tanh(h @ w + 0.1), w


def power(i, x, a):
    y = a @ x
    return y / nvm.sqrt(nvm.sum(y * y)), a


def softmaxes(i, x):
    e = nvm.exp(x - nvm.max(x, axis=1, keepdims=True))
    return (e / nvm.sum(e, axis=1, keepdims=True),)


def sums(i, x):
    return (x - nvm.sum(x * x) * 1e-6,)


def adam(i, w, m, v, x, y):
    g = x.T @ (x @ w - y) / x.shape[0]
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.01 * (m / (1 - 0.9 ** (i + 1))) / (nvm.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8), m, v, x, y


def laplace(u):
    n = int(u.shape[0] ** 0.5)
    p = nvm.pad(u.reshape(n, n), 1)
    return (4 * p[1:-1, 1:-1] - p[2:, 1:-1] - p[:-2, 1:-1] - p[1:-1, 2:] - p[1:-1, :-2]).reshape(n * n)


def gradients(i, x, r, p, rs):
    ap = laplace(p)
    al = rs / (p @ ap)
    x, r = x + al * p, r - al * ap
    rn = r @ r
    return x, r, r + (rn / rs) * p, rn


def bodies(i, p, v):
    d = p[None] - p[:, None]
    v = v + 0.01 * nvm.sum(d / (nvm.sum(d**2, axis=-1) + 0.01)[..., None] ** 1.5, axis=1)
    return p + 0.01 * v, v


def rank(i, r, a):
    return 0.85 * (a @ r) + 0.15 / r.shape[0], a


def wave(i, u, v):
    n = v + 0
    n[1:-1] = 2 * v[1:-1] - u[1:-1] + 0.25 * (v[2:] - 2 * v[1:-1] + v[:-2])
    return v, n


def outputs(n, x):
    return [nvm.exp(x * i) + 1 for i in range(n)]


def tree(n, x):
    level = [x * i for i in range(n)]
    while len(level) > 1:
        level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
    return level


# by case: nodes of a step, shapes of the arguments, the step; or the function of the number of steps
CASES = {
    "chain": (3, [(1000,)], chain),
    "stencil": (16, [(200, 200)], stencil),
    "padded": (13, [(200, 200)], padded),
    "rolls": (9, [(200, 200)], rolls),
    "columns": (6, [(300, 300)], columns),
    "rows": (5, [(1000, 100), (100,)], rows),
    "layers": (3, [(64, 64), (64, 64)], layers),
    "power": (5, [(300,), (300, 300)], power),
    "softmaxes": (5, [(500, 100)], softmaxes),
    "sums": (4, [(10000,)], sums),
    "adam": (25, [(20,), (20,), (20,), (1000, 20), (1000,)], adam),
    "gradients": (25, [(4096,), (4096,), (4096,), ()], gradients),
    "bodies": (11, [(200, 3), (200, 3)], bodies),
    "rank": (3, [(200,), (200, 200)], rank),
    "wave": (12, [(500,), (500,)], wave),
    "outputs": (3, [(1000,)], outputs),
    "tree": (2, [(1000,)], tree),
}


@contextlib.contextmanager
def told():
    """What the library writes to the standard error meanwhile, as a list of one text."""
    text, keep = [], os.dup(2)
    with tempfile.TemporaryFile() as f:
        os.dup2(f.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(keep, 2)
            os.close(keep)
            f.seek(0)
            text.append(f.read().decode())


def forget_programs():
    """Has all programs planned anew."""
    nvm.set("DUMP", "run")
    nvm.set("DUMP", "")


def once(name, steps):
    _, shapes, step = CASES[name]
    rng = np.random.default_rng(1)
    args = [nvm.asarray(rng.random(s)) for s in shapes]
    fn = nvm.jit((lambda *a: step(steps, *a)) if name in ("outputs", "tree") else (lambda *a: repeated(step, steps, *a)))
    forget_programs()
    start = time.perf_counter()
    with told() as text:
        nvm.eval(fn(*args))
    found = {"whole": (time.perf_counter() - start) * 1e3}
    for stage in ("graph", "plan", "prepare"):
        found[stage] = sum(float(t) for t in re.findall(rf": {stage} ([0-9.]+) ms", text[0]))
    for figure in ("nodes", "kernels", "statements", "bytes moved", "KB"):
        found[figure] = int(re.search(rf"([0-9]+) {figure}", text[0])[1])
    return found


def save(path, rows_):
    if path:
        with open(path, "w") as f:
            json.dump({"commit": commit(), "numpy": np.__version__, "rows": rows_}, f, indent=1)
            f.write("\n")


def measure(name, nodes, rounds):
    steps = max(1, round(nodes / CASES[name][0]))
    all_ = [once(name, steps) for _ in range(rounds if nodes <= 1000 else 1)]
    row = {k: min(r[k] for r in all_) for k in ("whole", "graph", "plan", "prepare")}
    last = all_[-1]
    us = {k: round(v * 1000 / last["nodes"], 2) for k, v in row.items()}
    return {"case": name, "steps": steps, "nodes": last["nodes"], "us": us, "bytes": last["KB"] * 1000 // last["nodes"],
            "kernels": last["kernels"], "statements": last["statements"], "moved": last["bytes moved"] // steps}, row["whole"] / 1000


def slice_of(np, a, n):
    return a[:n] + 1


def twenty(np, a, n):
    x = a[:n]
    for _ in range(10):
        x = x * 1.5 + 0.25
    return x


def softmax(np, a, n):
    x = a[: 100 * n].reshape(n, 100)
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def levinson(np, a, n):
    """A step of the recursion of Levinson and Durbin, with n coefficients."""
    k = -(a[:n] @ a[1 : n + 1][::-1]) / a[0]
    x = np.concat([a[:n], a[:1]])
    return x + k * x[::-1]


def summed(np, a, n):
    return np.sum(a[:n] * 2 + 1)


# by case: the function, the least size, whether it is jitted
NEW_SIZES = {
    "a[:n] + 1": (slice_of, 100_000, False),
    "20 operations": (twenty, 100_000, False),
    "softmax": (softmax, 600, False),
    "Levinson-Durbin": (levinson, 600, False),
    "jit of a sum": (summed, 50_000, True),
}


def time_new(name, np_, sizes, anew=False):
    """The least time of an evaluation over these sizes, in microseconds."""
    fn, _, jitted = NEW_SIZES[name]
    a = np_.asarray(np.random.default_rng(1).random(200_000) + 0.5)
    whole = nvm.jit(lambda x: fn(nvm, x, x.shape[0])) if jitted and np_ is nvm else None
    least = float("inf")
    for n in sizes:
        x = np.asarray(a[:n]) if whole else None
        if anew:
            forget_programs()
        start = time.perf_counter()
        y = whole(x) if whole else fn(np_, a, n)
        if np_ is nvm:
            nvm.eval(y)
        least = min(least, time.perf_counter() - start)
    return round(least * 1e6, 1)


def new_sizes():
    rows_ = []
    nvm.set("VERBOSE", "0")
    print(f"{'case':<16} us of a size that is  {'planned':>8} {'bound':>8} {'known':>8} {'NumPy':>8}")
    for name, (_, least, _) in NEW_SIZES.items():
        time_new(name, nvm, range(least, least + 30))  # the kernels are compiled
        planned = time_new(name, nvm, range(least, least + 60), anew=True)
        time_new(name, nvm, [least])
        bound = time_new(name, nvm, range(least + 1, least + 60))
        known = time_new(name, nvm, [least] * 60)
        rows_.append({"case": name, "planned": planned, "bound": bound, "known": known,
                      "numpy": time_new(name, np, range(least, least + 60))})
        r = rows_[-1]
        print(f"{name:<16} {'':<20}  {planned:>8} {bound:>8} {known:>8} {r['numpy']:>8}", flush=True)
    return rows_


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sizes", default="10,100,1000,10000,20000")
    p.add_argument("--steps", help="numbers of steps, instead of sizes")
    p.add_argument("--only", default=",".join(CASES))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--limit", type=float, default=20)
    p.add_argument("--new-sizes", action="store_true")
    p.add_argument("-o", "--output")
    o = p.parse_args()
    if o.new_sizes:
        save(o.output, new_sizes())
        return
    rows_ = []
    print(f"{'case':<10} {'steps':>6} {'nodes':>6}   us a node: {'whole':>7} {'graph':>7} {'plan':>7} {'prepare':>7}"
          f" {'B/node':>8} {'kernels':>7} {'largest':>7} {'moved a step':>12}")
    for name in o.only.split(","):
        each = CASES[name][0]
        for nodes in [int(s) * each for s in o.steps.split(",")] if o.steps else [int(s) for s in o.sizes.split(",")]:
            r, took = measure(name, nodes, o.rounds)
            rows_.append(r)
            us = r["us"]
            print(f"{name:<10} {r['steps']:>6} {r['nodes']:>6}              {us['whole']:>7} {us['graph']:>7} {us['plan']:>7}"
                  f" {us['prepare']:>7} {r['bytes']:>8} {r['kernels']:>7} {r['statements']:>7} {r['moved']:>12}", flush=True)
            if took > o.limit:
                break
    save(o.output, rows_)


if __name__ == "__main__":
    sys.exit(main())
