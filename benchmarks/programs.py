"""Whole programs, written as one writes them in NumPy: loops that store to slices, shapes that grow, columns taken one by one,
convergence tests that read a number in each step.

    python benchmarks/programs.py [--rows heat,sieve] [--rounds 5] [--threads 1] [-o benchmarks/results/programs.json]

Each program runs as `import numpy`, as nvm eager and, where it reads nothing on its way, under `nvm.jit`. Every measurement has a
process of its own, and the processes of a program take turns. The first of nvm fills the store and is not counted, so that `first`
is the first run in a new process with a warm store. A figure is the median over the processes, in milliseconds: `first` is the
first run after the imports, `later` the least of the runs that follow. The results are compared with NumPy's in each process.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from timing import commit

LATER = 0.5  # seconds of runs after the first


def heat(xp, u):
    for _ in range(100):
        u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def wave(xp, u, v):
    for _ in range(200):
        v[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u += v
        u[0] = 0.0
        u[-1] = 0.0
    return u


def running_means(xp, a):
    out = xp.zeros(a.shape[0])
    for n in range(1, a.shape[0] + 1):
        out[n - 1] = xp.mean(a[:n])
    return out


def levinson(xp, r):
    """Levinson-Durbin: the prediction filter of an autocorrelation, one coefficient longer in each step."""
    n = r.shape[0] - 1
    a, e = xp.zeros(n + 1), r[0]
    a[0] = 1.0
    for i in range(1, n + 1):
        k = -(xp.sum(a[:i] * xp.flip(r[1 : i + 1]))) / e
        a[1 : i + 1] = a[1 : i + 1] + k * xp.flip(a[:i])
        e = e * (1 - k * k)
    return a


def gram_schmidt(xp, a):
    n = a.shape[1]
    for k in range(n):
        a[:, k] = a[:, k] / xp.sqrt(xp.sum(a[:, k] ** 2))
        for j in range(k + 1, n):
            a[:, j] -= xp.sum(a[:, k] * a[:, j]) * a[:, k]
    return a


def correlations(xp, x):
    n = x.shape[1]
    out = xp.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            a, b = x[:, i] - xp.mean(x[:, i]), x[:, j] - xp.mean(x[:, j])
            out[i, j] = xp.sum(a * b) / xp.sqrt(xp.sum(a * a) * xp.sum(b * b))
            out[j, i] = out[i, j]
    return out


def columns(xp, b):
    for k in range(b.shape[1]):
        b[:, k] = b[:, k] * 2 + 1
    return b


def alternating_directions(xp, d):
    """A tridiagonal solve along the second axis, column by column (Thomas), then along the first."""
    for _ in range(2):
        n = d.shape[1]
        c, x = xp.zeros(n), xp.zeros(d.shape)
        c[0] = -0.25
        x[:, 0] = d[:, 0] / 4
        for i in range(1, n):
            m = 4 + c[i - 1]
            c[i] = -1 / m
            x[:, i] = (d[:, i] + x[:, i - 1]) / m
        for i in range(n - 2, -1, -1):
            x[:, i] = x[:, i] - c[i] * x[:, i + 1]
        d = x.T
    return d


def cavity(xp, u, v, p):
    """A lid-driven cavity: momentum and a pressure that 20 sweeps relax, in each of 8 steps."""
    n, dt, nu = u.shape[0], 0.001, 0.1
    dx = 2 / (n - 1)
    for _ in range(8):
        b = (
            (u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx * dt)
            - ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)) ** 2
            - ((v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dx)) ** 2
        )
        for _ in range(20):
            p[1:-1, 1:-1] = (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - dx**2 * b) / 4
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        for w, px, py in ((u, 1, 0), (v, 0, 1)):
            grad = px * (p[1:-1, 2:] - p[1:-1, :-2]) + py * (p[2:, 1:-1] - p[:-2, 1:-1])
            w[1:-1, 1:-1] += dt * (
                -grad / (2 * dx)
                + nu / dx**2 * (w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * w[1:-1, 1:-1])
            )
            w[0, :] = 0.0
            w[:, 0] = 0.0
            w[:, -1] = 0.0
            w[-1, :] = 1.0 * px
    return u + v + p


def adam(xp, x, y, w):
    m, v = xp.zeros(w.shape), xp.zeros(w.shape)
    for i in range(1, 201):
        g = x.T @ (x @ w - y) / x.shape[0]
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w = w - 0.01 * (m / (1 - 0.9**i)) / (xp.sqrt(v / (1 - 0.999**i)) + 1e-8)
    return w


def conjugate_gradients(xp, b):
    """The 5-point Laplacian, until the residual is small: one number is read in each step."""
    n = b.shape[0]
    u = xp.zeros((n + 2, n + 2))
    x, r, p = xp.zeros((n, n)), b, b
    rs = xp.sum(r * r)
    for _ in range(60):
        u[1:-1, 1:-1] = p
        ap = 4 * p - u[2:, 1:-1] - u[:-2, 1:-1] - u[1:-1, 2:] - u[1:-1, :-2]
        step = rs / xp.sum(p * ap)
        x = x + step * p
        r = r - step * ap
        new = xp.sum(r * r)
        if float(new) < 1e-20:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def power_iteration(xp, a, x):
    before = 0.0
    for _ in range(200):
        y = a @ x
        norm = float(xp.sqrt(xp.sum(y * y)))
        x = y / norm
        if abs(norm - before) < 1e-12 * norm:
            break
        before = norm
    return xp.abs(x)


def sieve(xp, q):
    q[:2] = False
    for i in range(2, math.isqrt(q.shape[0]) + 1):
        if q[i]:
            q[i * i :: i] = False
    return xp.sum(xp.astype(q, "int64"))


def mandelbrot(xp, c):
    z, count = xp.zeros(c.shape, dtype=c.dtype), xp.zeros(c.shape)
    for _ in range(20):
        inside = xp.abs(z) < 2
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] += 1
    return count


def convolution(xp, image, kernel):
    """A layer of a small network: channels, a 5 x 5 kernel by slices, a bias, a maximum over pairs."""
    n = image.shape[-1] - 4
    out = xp.zeros((kernel.shape[0], n, n))
    for i in range(5):
        for j in range(5):
            for c in range(image.shape[0]):
                out += kernel[:, c, i, j][:, None, None] * image[c, i : i + n, j : j + n]
    out = xp.maximum(out, 0)
    return xp.maximum(
        xp.maximum(out[:, ::2, ::2], out[:, 1::2, ::2]), xp.maximum(out[:, ::2, 1::2], out[:, 1::2, 1::2])
    )


def residual_block(xp, x, first, second):
    for w in (first, second):
        n = x.shape[1]
        padded = xp.zeros((x.shape[0], n + 2, n + 2))
        padded[:, 1:-1, 1:-1] = x
        y = xp.zeros((w.shape[0], n, n))
        for i in range(3):
            for j in range(3):
                y += xp.tensordot(w[:, :, i, j], padded[:, i : i + n, j : j + n], axes=1)
        mean = xp.mean(y, axis=(1, 2), keepdims=True)
        x = x + xp.maximum((y - mean) / xp.sqrt(xp.mean((y - mean) ** 2, axis=(1, 2), keepdims=True) + 1e-5), 0)
    return x


def lorenz(xp, s):
    """Long chains of numbers: 300 steps of Euler's method."""
    x, y, z = s[0], s[1], s[2]
    for _ in range(300):
        x, y, z = x + 0.005 * 10 * (y - x), y + 0.005 * (x * (28 - z) - y), z + 0.005 * (x * y - 8 / 3 * z)
    return xp.stack([x, y, z])


def rows(xp, t):
    out = xp.zeros((300, t.shape[0]))
    for i in range(300):
        out[i] = xp.sin(t * i)
    return out


def recurrence(xp, s):
    x = xp.zeros(s.shape)
    for i in range(1, s.shape[0]):
        x[i] = 0.5 * x[i - 1] + s[i]
    return x


def elimination(xp, a):
    """LU without pivots, row by row."""
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    return a


def edit_distances(xp, a, b):
    """Edit distances of a table's prefixes: one row from the row before, its minimum along the row by a running minimum."""
    place = xp.arange(b.shape[0] + 1)
    row = place + 0
    for i in range(a.shape[0]):
        new = row + 1
        new[1:] = xp.minimum(new[1:], row[:-1] + xp.astype(b != a[i], "int64"))
        new = new - place
        for shift in (1, 2, 4, 8, 16, 32, 64):
            new[shift:] = xp.minimum(new[shift:], new[:-shift] + 0)
        row = new + place
    return row


def nearest(xp, x, centres):
    """k-means by a loop over the centres."""
    for _ in range(5):
        d = xp.stack([xp.sum((x - centres[k]) ** 2, axis=1) for k in range(centres.shape[0])])
        label = xp.argmin(d, axis=0)
        for k in range(centres.shape[0]):
            mine = xp.astype(label == k, x.dtype)
            centres[k] = xp.sum(x * mine[:, None], axis=0) / xp.maximum(xp.sum(mine), xp.asarray(1.0))
    return centres


def relaxation(xp, u):
    """Jacobi's iteration until it moves little."""
    for _ in range(100):
        new = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
        moved = xp.max(xp.abs(new - u[1:-1, 1:-1]))
        u[1:-1, 1:-1] = new
        if moved < 1e-6:
            break
    return u


def data():
    """name: (function, its arguments, can it be traced?)"""
    rng = np.random.default_rng(7)
    real = lambda *shape: rng.standard_normal(shape)  # noqa: E731
    flow = rng.uniform(0, 0.1, (3, 41, 41))
    x = real(1000, 20)
    letters = rng.integers(0, 4, 200)
    grid = (np.linspace(-2, 0.5, 120)[None] + 1j * np.linspace(-1.2, 1.2, 120)[:, None]).astype("complex128")
    lags = 0.9 ** np.arange(201.0)
    return {
        "heat, in place": (heat, [real(100, 100)], True),
        "wave, in place": (wave, [real(500), np.zeros(500)], True),
        "running means": (running_means, [real(500)], True),
        "Levinson-Durbin": (levinson, [lags + 0.1 * (np.arange(201) == 0)], True),
        "Gram-Schmidt": (gram_schmidt, [real(200, 30)], True),
        "correlations by columns": (correlations, [real(300, 20)], True),
        "column updates": (columns, [real(300, 300)], True),
        "alternating directions": (alternating_directions, [real(200, 200)], True),
        "lid-driven cavity": (cavity, list(flow), True),
        "Adam": (adam, [x, x @ real(20), np.zeros(20)], True),
        "conjugate gradients": (conjugate_gradients, [real(64, 64)], False),
        "power iteration": (power_iteration, [np.abs(real(200, 200)), np.ones(200)], False),
        "sieve": (sieve, [np.ones(100000, dtype=bool)], False),
        "Mandelbrot by masks": (mandelbrot, [grid], False),
        "convolution by slices": (convolution, [real(3, 68, 68), real(6, 3, 5, 5)], True),
        "residual block by slices": (residual_block, [real(16, 32, 32), real(16, 16, 3, 3), real(16, 16, 3, 3)], True),
        "Lorenz, numbers": (lorenz, [np.array([1.0, 1.0, 1.0])], True),
        "rows": (rows, [np.linspace(0, 1, 100)], True),
        "recurrence": (recurrence, [real(500)], True),
        "elimination": (elimination, [real(40, 40) + 40 * np.eye(40)], True),
        "edit distances": (edit_distances, [letters[:100], letters[100:]], True),
        "nearest centres": (nearest, [real(2000, 8), real(8, 8)], True),
        "relaxation": (relaxation, [real(64, 64)], False),
    }


def work(way, name):
    """In a process of its own: the seconds of the first run and the least of later ones, printed as JSON."""
    f, args, _ = data()[name]
    want = f(np, *[a.copy() for a in args])
    if way == "numpy":
        once = lambda: f(np, *[a.copy() for a in args])  # noqa: E731
    else:
        import nvm

        here = [nvm.asarray(a) for a in args]
        if way == "jit":
            traced = nvm.jit(lambda *a: f(nvm, *a))
        else:
            traced = lambda *a: f(nvm, *a)  # noqa: E731

        def once():
            result = traced(*[nvm.asarray(a, copy=True) for a in here])
            return result.eval()

    start = time.perf_counter()
    got = once()
    first = time.perf_counter() - start
    if not np.allclose(np.asarray(got), want, rtol=1e-6, atol=1e-8, equal_nan=True):
        raise SystemExit(f"{name}, {way}: another value than NumPy's, by {np.abs(np.asarray(got) - want).max()}")
    later, end = [], time.perf_counter() + LATER
    while len(later) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        once()
        later.append(time.perf_counter() - start)
    print(json.dumps({"first": first * 1e3, "second": later[0] * 1e3, "later": min(later) * 1e3}))


def run(way, name, store, threads, limit):
    names = "NVM_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"
    env = dict(os.environ, NVM_CACHE_DIR=store, PYTHONPYCACHEPREFIX=store, **{n: str(threads) for n in names})
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have bytecode: it is made by the run not counted
    try:
        p = subprocess.run(
            [sys.executable, __file__, "--worker", way, name], env=env, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"more than {limit} s"
    return (
        json.loads(p.stdout) if p.returncode == 0 else (p.stderr.strip().splitlines() or [f"status {p.returncode}"])[-1]
    )


def measure(name, traced, rounds, store, threads, limit):
    """{way: {first, second, later}}, or a message in place of the figures of a way that failed."""
    ways = ["numpy", "eager"] + ["jit"] * traced
    runs = {way: [] for way in ways}
    result = {way: r for way in ways[1:] if isinstance(r := run(way, name, store, threads, limit), str)}
    for _ in range(rounds):
        for way in ways:
            if way not in result:
                r = run(way, name, store, threads, limit)
                runs[way].append(r) if isinstance(r, dict) else result.setdefault(way, r)
    for way, many in runs.items():
        if way not in result:
            result[way] = {key: round(statistics.median(r[key] for r in many), 4) for key in many[0]}
    return result


def mean_ratio(table, way, key):
    """The geometric mean of a way's time over NumPy's later runs, and the number of programs in it."""
    logs = [math.log(by[way][key] / by["numpy"]["later"]) for by in table.values() if isinstance(by.get(way), dict)]
    return (math.exp(statistics.fmean(logs)) if logs else float("nan")), len(logs)


def line(name, by):
    numpy = by["numpy"]["later"]
    text = f"{name:26}{numpy:9.2f}"
    for way, keys in (("eager", ("first", "later")), ("jit", ("first", "later"))):
        figures = by.get(way, "")
        if isinstance(figures, str):
            text += f"{'':2}{figures[:38]:38}" if figures else ""
            continue
        text += "".join(f"{figures[key]:10.2f} ({figures[key] / numpy:6.2f})" for key in keys)
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument(
        "--rows", default="", help="names that contain one of these, with commas between them; all without it"
    )
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--limit", type=int, default=120, help="seconds after which a process is ended")
    ap.add_argument("--worker", nargs=2)
    ap.add_argument("-o", "--output")
    args = ap.parse_args()
    if args.worker:
        return work(*args.worker)
    load, table = os.getloadavg()[0], {}
    print(
        f"ms (times NumPy); load {load:.1f}\n{'':26}{'NumPy':>9}{'eager, first':>19}{'later':>19}{'jit, first':>19}{'later':>19}"
    )
    with tempfile.TemporaryDirectory() as store:
        for name, (_, _, traced) in data().items():
            if any(part in name for part in args.rows.split(",")):
                table[name] = measure(name, traced, args.rounds, store, args.threads, args.limit)
                print(line(name, table[name]), flush=True)
    means = {}
    for way, key in (("eager", "first"), ("eager", "later"), ("jit", "first"), ("jit", "later")):
        means[f"{way}, {key}"], n = mean_ratio(table, way, key)
        print(f"{way}, {key}: {means[f'{way}, {key}']:.2f} of NumPy's time, the geometric mean of {n} programs")
    if args.output:
        result = dict(
            commit=commit(), date=time.strftime("%Y-%m-%d"), load=[load, os.getloadavg()[0]], threads=args.threads
        )
        result.update(numpy=np.__version__, means=means, rows=table)
        pathlib.Path(args.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
