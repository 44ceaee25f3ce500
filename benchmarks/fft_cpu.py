"""Fourier transforms on a CPU: nvm beside SciPy, MKL (mkl_fft) and FFTW (pyfftw, measured plans, for which it has a second);
peers that are not installed are left out.

    NVM_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/fft_cpu.py [-o FILE.json] [--groups rows,single,columns,fused] [--seconds 0.2]
        [--cpu-time] [--try]

Contestants take turns call by call, and the least time of each is kept: what else a machine does only adds to it. NumPy's arrays are
given and results are stored, except that FFTW's plans read and write buffers of their own. Kernels are compiled in
their first call, whose time is beside the others.
--cpu-time: the time that the process was running, which is what one thread takes on a machine where others work too.
--try: two lengths a group; shows that the benchmark itself works.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import time

import numpy as np

import nvm
from timing import commit, say

THREADS = int(os.environ.get("NVM_NUM_THREADS", "0")) or len(os.sched_getaffinity(0))
POINTS = 1 << 18
ROWS = [15, 16, 20, 32, 64, 100, 127, 256, 360, 480, 1000, 1009, 1024, 1536, 2400, 4000, 4096, 10000, 16384, 65536]
SINGLE = [1 << i for i in range(4, 23, 2)] + [100, 1000, 1009, 10007, 65537, 100000, 1000000]
COLUMNS = [8, 64, 256, 1000, 1024, 4096, 8192]
FUSED = [(1024, 4096), (4096, 1024), (2048, 576), (512, 2400)]


def draw(shape, dtype):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype in ("c8", "c16") else x).astype(dtype)


def scipy_of(kind, x, axis, n):
    import scipy.fft

    f = getattr(scipy.fft, kind)
    return lambda: f(x, n=n, axis=axis, workers=THREADS)


def mkl_of(kind, x, axis, n):
    import mkl
    import mkl_fft

    mkl.set_num_threads(THREADS)
    f = getattr(mkl_fft, kind)
    return lambda: f(x, n=n, axis=axis)


def fftw_of(kind, x, axis, n):
    import pyfftw

    real = x.real.dtype
    out = real if kind == "irfft" else np.result_type(real, "c8")
    shape = list(x.shape)
    shape[axis] = n // 2 + 1 if kind == "rfft" else n
    a, b = pyfftw.empty_aligned(x.shape, x.dtype), pyfftw.empty_aligned(shape, out)
    way = "FFTW_BACKWARD" if kind == "irfft" else "FFTW_FORWARD"
    plan = pyfftw.FFTW(
        a, b, axes=(axis,), direction=way, flags=("FFTW_MEASURE",), threads=THREADS, planning_timelimit=1
    )
    a[:] = x
    return plan.execute


PEERS = {"scipy": scipy_of, "mkl": mkl_of, "fftw": fftw_of}


clock = time.perf_counter


def least(calls, seconds):
    best, end = dict.fromkeys(calls, float("inf")), clock() + seconds * len(calls)
    while clock() < end:
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return {name: round(t * 1e6, 2) for name, t in best.items()}


def first_ms(call):
    start = clock()
    call()
    return round((clock() - start) * 1e3, 2)


def transform(kind, shape, axis, wide, seconds):
    n, given = shape[axis], list(shape)
    given[axis] = n // 2 + 1 if kind == "irfft" else n
    x = draw(given, ("f8" if wide else "f4") if kind == "rfft" else ("c16" if wide else "c8"))
    f = nvm.jit(lambda a: getattr(nvm.fft, kind)(a, n=n, axis=axis))
    a = nvm.asarray(x)
    calls, row = (
        {"nvm": lambda: nvm.eval(f(a))},
        dict(kind=kind, shape=shape, axis=axis, dtype="float64" if wide else "float32"),
    )
    row["first_ms"] = first_ms(calls["nvm"])
    for name, make in PEERS.items():
        try:
            calls[name] = make(kind, x, axis, n)
            calls[name]()
        except ImportError:
            calls.pop(name, None)
    row["us"] = least(calls, seconds)
    return row


def fused(name, shape, seconds):
    """ifft(fft(x) * h), the spectra of windowed real rows and their mean, and real rows that are filtered."""
    import scipy.fft

    rows, n = shape
    x, h = draw((rows, n), "c8" if name == "convolution" else "f4"), draw(n, "c8" if name == "convolution" else "f4")
    h = draw(n // 2 + 1, "c8") if name == "real convolution" else h

    def of(w, f):
        return {
            "convolution": lambda x, h: f.ifft(f.fft(x) * h),
            "real convolution": lambda x, h: f.irfft(f.rfft(x) * h),
            "spectrum": lambda x, h: w.abs(f.rfft(x * h)) ** 2,
            "mean spectrum": lambda x, h: w.mean(w.abs(f.rfft(x * h)) ** 2, axis=0),
        }[name]

    f, a, b, peer = nvm.jit(of(nvm, nvm.fft)), nvm.asarray(x), nvm.asarray(h), of(np, scipy.fft)

    def with_workers():
        with scipy.fft.set_workers(THREADS):
            return peer(x, h)

    calls = {"nvm": lambda: nvm.eval(f(a, b)), "scipy": with_workers}
    first = first_ms(calls["nvm"])
    return dict(kind=name, shape=shape, axis=1, dtype="float32", first_ms=first, us=least(calls, 3 * seconds))


def cases(groups, few):
    kinds = [(k, w) for w in (0, 1) for k in ("fft", "rfft", "irfft")]
    some = (lambda values: values[:2]) if few else list
    lengths = dict(
        rows=(ROWS, lambda n: (max(16, POINTS // n), n), 1),
        single=(SINGLE, lambda n: (n,), 0),
        columns=(COLUMNS, lambda n: (n, POINTS // n), 0),
    )
    for group in groups:
        if group == "fused":
            for shape in some(FUSED):
                yield lambda s, shape=shape: fused("convolution", shape, s)
            for name in ("spectrum", "mean spectrum", "real convolution"):
                for shape in [(64, 1024)] if few else [(8192, 1024), (4096, 2000)]:
                    yield lambda s, name=name, shape=shape: fused(name, shape, s)
            continue
        ns, shape, axis = lengths[group]
        for kind, wide in kinds:
            for n in some(ns):
                yield lambda s, k=kind, n=n, w=wide, shape=shape, axis=axis: transform(k, shape(n), axis, w, s)


def versions():
    found = {"nvm": nvm.__version__, "numpy": np.__version__}
    for name in ("scipy", "mkl_fft", "mkl", "pyfftw"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            say(f"{name} is not installed")
    return found


def processor():
    with open("/proc/cpuinfo") as f:
        lines = [line.split(":", 1) for line in f if ":" in line]
    facts = {k.strip(): v.strip() for k, v in reversed(lines)}
    flags = facts.get("flags", "").split()
    isa = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "base"
    return dict(cpu=facts.get("model name", platform.machine()), isa=isa, cores=os.cpu_count(), threads=THREADS)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-o", "--out")
    p.add_argument("--groups", default="rows,single,columns,fused")
    p.add_argument("--seconds", type=float, default=0.2, help="for each contestant of a row")
    p.add_argument("--cpu-time", action="store_true")
    p.add_argument("--try", dest="try_", action="store_true")
    args = p.parse_args()
    nvm.set("TIER", "1")
    global clock
    clock = time.process_time if args.cpu_time else clock
    seconds, rows = 0.01 if args.try_ else args.seconds, []
    for case in cases(args.groups.split(","), args.try_):
        row = case(seconds)
        rows.append(row)
        of = min((t for who, t in row["us"].items() if who != "nvm"), default=float("nan"))
        say(row["kind"], row["shape"], row["axis"], row["dtype"], row["us"], f"{row['us']['nvm'] / of:.2f} of the best")
    result = dict(
        machine=processor(),
        commit=commit(),
        date=time.strftime("%Y-%m-%d"),
        versions=versions(),
        clock="CPU time" if args.cpu_time else "wall clock",
        rows=rows,
    )
    if args.out:
        with open(args.out, "w") as f:
            f.write(
                "{\n"
                + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in result.items() if k != "rows")
                + ',\n "rows": [\n'
                + ",\n".join("  " + json.dumps(r) for r in rows)
                + "\n ]\n}\n"
            )


if __name__ == "__main__":
    main()
