"""Fourier transforms: nvm beside PyTorch, JAX and CuPy on a GPU; beside PyTorch, SciPy and NumPy on a CPU.

    python benchmarks/fft.py [-o FILE.json] [--cpu] [--points 26] [--rounds 5] [--rows fft,convolution,spectrum]
                             [--long] [--try]

Rows of a batch hold 2^points numbers in all (2^22 on a CPU). Every library computes the same expression under its own jit, if it has
one; a time is the slope of the wall clock over the number of calls, the median of the rounds, in which the contestants take turns.
The floor is what must be read and written over the rate of a copy that is timed among them. Every result is held against float64.
On a GPU nvm takes part three times: as it is, without cuFFT ("kernels"), and tuned. --long: lengths up to 2^22, primes and other
numbers that no single kernel has among them.
--try: 2^14 numbers; shows that the benchmark itself works.
"""
import argparse
import contextlib
import json
import platform
import statistics
import sys
import time

import numpy as np

from timing import commit, say, slope

LENGTHS = (64, 128, 256, 512, 1000, 1024, 1536, 2048, 3072, 4096, 5120, 7168, 8192, 16384)
LONG = LENGTHS + (17, 127, 10007, 65537) + tuple(1 << i for i in range(15, 23)) + (3 << 14, 5 << 16, 100000, 1000000, 1000003)
ROWS = {  # what it computes, the lengths, and bytes that must move for each complex number
    "fft": (lambda w, x, h: w.fft(x), LENGTHS, 16),
    "convolution": (lambda w, x, h: w.ifft(w.fft(x) * h), LENGTHS, 16),
    "spectrum": (lambda w, x, h: w.abs(w.fft(x * h)) ** 2, (256, 1024, 4096), 12),
}


class Words:
    """The words of a library, and how it takes NumPy's arrays, compiles, waits and gives back."""

    def __init__(self, name, module, fft, take, jit=lambda f: f, wait=lambda: None, give=np.asarray, turn=lambda: None):
        self.name, self.abs, self.fft, self.ifft = name, module.abs, fft.fft, fft.ifft
        self.take, self.jit, self.wait, self.give = take, jit, wait, give
        self.turn, self.tunes = turn, contextlib.nullcontext  # what its turns begin with; what its first call is made in


def of_nvm(gpu, name="nvm", solvers="all", tunes=False):
    import nvm
    place = {"device": "cuda:0"} if gpu else {}

    def turn():
        nvm.set("SOLVERS", solvers)
        nvm.set("TUNE", "estimate" if tunes else "off")
    w = Words(name, nvm, nvm.fft, lambda x: nvm.asarray(x, **place), nvm.jit, nvm.synchronize,
              lambda x: np.asarray(x.to_device("cpu")), turn)
    w.tunes = nvm.auto_tune if tunes else contextlib.nullcontext
    return w


def of_kernels(gpu):
    return of_nvm(gpu, "kernels", "kernel")


def of_tuned(gpu):
    return of_nvm(gpu, "tuned", tunes=True)


def of_torch(gpu):
    import torch
    place = "cuda" if gpu else "cpu"
    return Words("torch", torch, torch.fft, lambda x: torch.from_numpy(x).to(place),
                 wait=torch.cuda.synchronize if gpu else lambda: None, give=lambda x: x.cpu().numpy())


def of_jax(gpu):
    import jax
    last = []

    def jit(f):
        compiled = jax.jit(f)

        def call(*args):
            last[:] = [compiled(*args)]
            return last[0]
        return call
    return Words("jax", jax.numpy, jax.numpy.fft, jax.numpy.asarray, jit, lambda: jax.block_until_ready(last[0]))


def of_cupy(gpu):
    import cupy
    return Words("cupy", cupy, cupy.fft, cupy.asarray, wait=cupy.cuda.get_current_stream().synchronize, give=cupy.asnumpy)


def of_scipy(gpu):
    import scipy.fft
    return Words("scipy", np, scipy.fft, np.asarray)


def of_numpy(gpu):
    return Words("numpy", np, np.fft, np.asarray)


def contestants(gpu):
    found = []
    for make in (of_nvm, of_kernels, of_tuned, of_torch, of_jax, of_cupy) if gpu else (of_nvm, of_torch, of_scipy, of_numpy):
        try:
            found.append(make(gpu))
        except Exception as e:  # a peer that is not there is told and left out
            say(f"{make.__name__}: left out: {type(e).__name__}: {e}")
    return found


class Row:
    """One expression at one length, for all contestants."""

    def __init__(self, f, n, points, words):
        rng = np.random.default_rng(n)
        shape = (max(1, (1 << points) // n), n)
        self.x = rng.standard_normal(shape + (2,), "f4").view("c8")[..., 0]
        self.h = rng.standard_normal((n, 2)).astype("f4").view("c8")[..., 0]
        self.shape, self.us, self.error, self.cold, self.call = shape, {}, {}, {}, {}
        wide = f(Words("", np, np.fft, None), self.x[:4].astype("c16"), self.h.astype("c16"))
        for w in words:
            self.begin(f, w, wide)

    def begin(self, f, w, wide):
        try:
            w.turn()
            x, h = w.take(self.x), w.take(self.h)
            call = w.jit(lambda a, b: f(w, a, b))
            start = time.perf_counter()
            with w.tunes():
                got = w.give(call(x, h))
            self.cold[w.name] = (time.perf_counter() - start) * 1e3
            self.error[w.name] = float(np.linalg.norm(got[:4] - wide) / np.linalg.norm(wide))
            self.call[w.name] = w, lambda: call(x, h)
        except Exception as e:
            say(f"{w.name} {self.shape}: left out: {type(e).__name__}: {e}")

    def round(self, k):
        for name, (w, call) in self.call.items():
            w.turn()
            self.us.setdefault(name, []).append(slope(call, w.wait, k))


def bandwidth(gpu, points, k):
    """Bytes read and written a microsecond by a copy."""
    if gpu:
        import torch
        a = torch.empty(2 << points, device="cuda")
        b = torch.empty_like(a)
        return 16 * (1 << points) / slope(lambda: b.copy_(a), torch.cuda.synchronize, k)
    a = np.zeros(2 << points, "f4")
    b = np.zeros_like(a)
    return 16 * (1 << points) / slope(lambda: np.copyto(b, a), lambda: None, k)


def machine(gpu):
    if not gpu:
        return platform.processor() or platform.machine()
    import torch
    return torch.cuda.get_device_name()


def measure(args, gpu):
    words, rows, points = contestants(gpu), [], args.points
    calls = 60 if gpu else 2
    for name in args.rows.split(","):
        f, lengths, bytes_each = ROWS[name]
        for n in LONG if args.long else lengths:
            row, rates = Row(f, n, points, words), []
            row.round(calls)  # in which the peers' allocators grow
            row.us.clear()
            for _ in range(args.rounds):
                row.round(calls)
                rates.append(bandwidth(gpu, points, calls))
            floor = bytes_each * row.shape[0] * n / statistics.median(rates)
            us = {who: statistics.median(times) for who, times in row.us.items()}
            rows.append(dict(row=name, points=n, rows=row.shape[0], floor_us=floor, us=us, error=row.error, cold_ms=row.cold))
            say(f"{name} {row.shape[0]} x {n}: floor {floor:.0f} us; " +
                ", ".join(f"{who} {t:.0f} ({t / floor:.2f})" for who, t in us.items()))
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-o", "--out")
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--points", type=int, help="2^points numbers")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--long", action="store_true")
    p.add_argument("--try", dest="try_", action="store_true")
    args = p.parse_args()
    gpu = not args.cpu
    args.points = args.points or (14 if args.try_ else 26 if gpu else 22)
    result = dict(machine=machine(gpu), commit=commit(), command="benchmarks/fft.py " + " ".join(sys.argv[1:]),
                  rows=measure(args, gpu))
    text = json.dumps(result, indent=1)
    if args.out:
        with open(args.out, "w") as f:
            f.write(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
