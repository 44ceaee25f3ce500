"""What Python costs on top of the arithmetic: building a node, a warm jitted call, an evaluation that was seen before.

    python benchmarks/py_overhead.py [--json]

Every figure is the least of several runs, so that other work on the machine disturbs it little; the call itself (an empty function
of the same shape) is measured beside it.
"""

import json
import sys
import time

import numpy as np

import nvm

N = 1000


def best(f, n, runs=15, clock=time.thread_time):
    """Least seconds per call over short runs: n calls in a row would be disturbed, 500 seldom are. Nodes cost the thread's
    own time; an evaluation may wait for others, so that its clock is that of the wall."""
    f()
    least, each = float("inf"), min(n, 500)
    for _ in range(runs * n // each):
        start = clock()
        for _ in range(each):
            f()
        least = min(least, (clock() - start) / each)
    return least


def ten(x, y):
    """Ten operations that cost next to nothing on 1,000 elements."""
    a = x * y + 1.5
    b = a - x
    c = b * a + y
    return (c * 0.5 - b) * c + a


class Nothing:
    def __add__(self, other):
        return self


def main(as_json):
    x, y = (nvm.asarray(np.random.default_rng(i).standard_normal(N).astype("float32")) for i in (0, 1))
    s, t = nvm.asarray(np.float32(1)).eval(), nvm.asarray(np.float32(2)).eval()
    nothing, empty = Nothing(), nvm.jit(lambda: None)
    jitted, one = nvm.jit(ten), nvm.jit(lambda x: x + 1)
    n1, n2 = np.asarray(x), np.asarray(y)
    rows = {}

    def row(name, f, n, aim=None, minus=0.0):
        clock = time.thread_time if minus is call else time.perf_counter
        rows[name] = {"ns": round((best(f, n, clock=clock) - minus) * 1e9), "aim_ns": aim}

    call = best(lambda: nothing + nothing, 200_000)
    row("x + y, both arrays: a node", lambda: x + y, 20_000, 150, call)
    row("x + 1.0: a node and a number", lambda: x + 1.0, 20_000, None, call)
    row("nvm.add(x, y)", lambda: nvm.add(x, y), 20_000, None, call)
    row("nvm.sin(x)", lambda: nvm.sin(x), 20_000, None, call)
    row("x[1:]: a view", lambda: x[1:], 20_000, None, call)
    lam = best(lambda: None, 200_000)
    row("jitted function of no arguments", lambda: empty(), 50_000, None, lam)
    row("jitted ten operations, two scalars", lambda: jitted(s, t), 20_000, None, lam)
    row("jitted ten operations, 1,000 float32", lambda: jitted(x, y), 20_000, 1500, lam)
    row("jitted ten operations, NumPy arguments", lambda: jitted(n1, n2), 20_000, None, lam)
    row("jitted x + 1, 1,000 float32", lambda: one(x), 20_000, None, lam)
    row("the same ten without jit, evaluated", lambda: ten(x, y).eval(), 2_000, 8000, lam)
    row("the same ten in NumPy", lambda: ten(n1, n2), 5_000, None, lam)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    for name, r in rows.items():
        print(f"{name:42s} {r['ns']:8d} ns" + (f"   aim {r['aim_ns']}" if r["aim_ns"] else ""))


if __name__ == "__main__":
    main("--json" in sys.argv[1:])
