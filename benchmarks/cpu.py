"""CPU benchmark: nvm beside compiled C, NumPy, numexpr, JAX and torch.compile on the same arrays, threads and machine.

    python benchmarks/cpu.py [--threads 1,2] [--peers nvm,numpy,...] [--rounds 3] [-o benchmarks/results/cpu.json]

Each implementation runs in a process of its own; rounds are interleaved, `rounds` holds the median over calls of each, `threads`
the median over the rounds. Figures are milliseconds; `floor` is the row's bytes at the copy bandwidth of the same rounds;
`seed_ulp` is the greatest error of the first row against float64, in units of the last place.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

from timing import commit

HERE = pathlib.Path(__file__).resolve().parent
N = 1 << 24
# name: (shapes of the inputs, bytes that must move)
ROWS = {
    "seed": ([(N,)] * 3, 16 * N),
    "axpy": ([(N,)] * 2, 12 * N),
    "poly": ([(N,)] * 3, 16 * N),
    "gelu": ([(4096, 4096), (4096,)], 8 * N),
    "sumsq": ([(N,)] * 2, 8 * N),
    "softmax": ([(4096, 4096)], 8 * N),
    "layernorm": ([(4096, 4096), (4096,), (4096,)], 8 * N),
    "columns": ([(16384, 1024)], 4 * N),
    "seed4096": ([(4096,)] * 3, 16 * 4096),
}


def functions(xp, exp, log, sin, cos, sqrt, tanh, mean, amax, total, var):
    """The rows in the words of an array library."""

    def seed(x, y, z):
        return sqrt(sin(x) * cos(y) + exp(-z * z) + log(x + 1))

    def gelu(x, b):
        h = x + b
        return 0.5 * h * (1 + tanh(0.7978845608 * (h + 0.044715 * h * h * h)))

    def softmax(x):
        e = exp(x - amax(x, 1))
        return e / total(e, 1)

    def layernorm(x, g, b):
        d = x - mean(x, 1)
        return d / sqrt(mean(d * d, 1) + 1e-5) * g + b

    return dict(seed=seed, axpy=lambda x, y: 2.5 * x + y, poly=lambda x, y, z: 2 * x + 3 * y * z - x * y + z * z, gelu=gelu,
                sumsq=lambda x, y: total((x - y) * (x - y), None), softmax=softmax, layernorm=layernorm,
                columns=lambda x: (mean(x, 0), var(x, 0)), seed4096=seed)


def inputs(name):
    import numpy as np
    rng = np.random.default_rng(7)
    shapes = ROWS[name][0]
    if name.startswith("seed") or name == "poly":
        lo, hi = [0, -1.5, -2], [1.5, 1.5, 2]
        return [rng.uniform(a, b, s).astype(np.float32) for a, b, s in zip(lo, hi, shapes)]
    return [rng.standard_normal(s, dtype=np.float32) for s in shapes]


def numpy_like(np):
    return functions(np, np.exp, np.log, np.sin, np.cos, np.sqrt, np.tanh, lambda x, a: np.mean(x, axis=a, keepdims=a is not None),
                     lambda x, a: np.max(x, axis=a, keepdims=True), lambda x, a: np.sum(x, axis=a, keepdims=a is not None),
                     lambda x, a: np.var(x, axis=a))


def peer_nvm(threads):
    os.environ["NVM_NUM_THREADS"] = str(threads)
    import nvm
    rows = numpy_like(nvm)
    return lambda name: (nvm.jit(rows[name]), [nvm.asarray(a) for a in inputs(name)], lambda r: r), nvm.__version__


def peer_numpy(threads):
    import numpy as np
    rows = numpy_like(np)
    return lambda name: (rows[name], inputs(name), lambda r: r), np.__version__


def peer_numexpr(threads):
    os.environ["NUMEXPR_MAX_THREADS"] = str(threads)
    import numexpr as ne
    ne.set_num_threads(threads)
    text = dict(seed="sqrt(sin(a)*cos(b) + exp(-c*c) + log(a+one))", axpy="k*a + b", poly="two*a + three*b*c - a*b + c*c",
                sumsq="sum((a-b)*(a-b))", gelu="half*(a+b)*(one+tanh(k*((a+b)+q*(a+b)*(a+b)*(a+b))))")
    text["seed4096"] = text["seed"]
    import numpy as np
    consts = dict(one=np.float32(1), two=np.float32(2), three=np.float32(3), half=np.float32(0.5),
                  q=np.float32(0.044715), k=np.float32(2.5))

    def get(name):
        if name not in text:
            return None
        local = dict(consts, **({"k": np.float32(0.7978845608)} if name == "gelu" else {}))

        def call(*arrays):
            return ne.evaluate(text[name], local_dict=dict(local, **dict(zip("abc", arrays))))
        return call, inputs(name), lambda r: r
    return get, ne.__version__


def peer_jax(threads):
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} intra_op_parallelism_threads={threads}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    if threads == 1:
        os.sched_setaffinity(0, {0})
    import jax
    rows = numpy_like(jax.numpy)
    return lambda name: (jax.jit(rows[name]), [jax.numpy.asarray(a) for a in inputs(name)], jax.block_until_ready), jax.__version__


def peer_torch(threads):
    import torch
    torch.set_num_threads(threads)
    t = torch
    rows = functions(t, t.exp, t.log, t.sin, t.cos, t.sqrt, t.tanh, lambda x, a: t.mean(x, dim=a, keepdim=True) if a else t.mean(x, dim=a),
                     lambda x, a: t.amax(x, dim=a, keepdim=True), lambda x, a: t.sum(x) if a is None else t.sum(x, dim=a, keepdim=True),
                     lambda x, a: t.var(x, dim=a, correction=0))
    return lambda name: (torch.compile(rows[name]), [t.from_numpy(a) for a in inputs(name)], lambda r: r), torch.__version__


PEERS = dict(nvm=peer_nvm, numpy=peer_numpy, numexpr=peer_numexpr, jax=peer_jax, torch=peer_torch)


def seed_ulp(args, result):
    """The greatest distance of every eighth element from float64, in units of its last place. The functions' arguments are those of
    float32: x + 1 is rounded for everybody, which alone is 13 units of the result where that is small."""
    import numpy as np
    x, y, z = (np.asarray(a)[::8] for a in args)
    one, square, x, y = (v.astype(np.float64) for v in (x + np.float32(1), z * z, x, y))
    want = np.sqrt(np.sin(x) * np.cos(y) + np.exp(-square) + np.log(one))
    return float(np.max(np.abs(np.asarray(result)[::8] - want) / np.spacing(want.astype(np.float32))))


def work(peer, threads, names):
    get, version = PEERS[peer](threads)
    times, ulp = {}, None
    for name in names:
        row = get(name)
        if row is None:
            continue
        f, args, wait = row
        reps = 200 if name == "seed4096" else 1
        for _ in range(3):
            wait(f(*args))
        samples = []
        while len(samples) < (7 if peer in ("numpy", "numexpr") else 15):
            start = time.perf_counter()
            for _ in range(reps):
                r = wait(f(*args))
            samples.append((time.perf_counter() - start) / reps * 1e3)
            del r
        times[name] = statistics.median(samples)
        if name == "seed":
            ulp = seed_ulp(args, wait(f(*args)))
    print(json.dumps(dict(version=version, times=times, seed_ulp=ulp)))


def yardstick(threads):
    exe = HERE.parent / "build" / "yardstick"
    source = HERE / "yardstick.c"
    if not exe.exists() or exe.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["gcc", "-O3", "-march=native", "-ffast-math", "-fopenmp", str(source), "-o", str(exe), "-lm"], check=True)
    out = subprocess.run([str(exe)], env=dict(os.environ, OMP_NUM_THREADS=str(threads)), capture_output=True, text=True, check=True).stdout
    times = {k: float(v) for k, v in (line.split() for line in out.splitlines())}
    return dict(version=subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip(),
                seed_ulp=times.pop("seed_ulp"), times=times)


def latency():
    """Calls, plans, compiles and memory: benchmarks/latency.c and benchmarks/py_overhead.py."""
    lib, exe, source = HERE.parent / "build" / "lib", HERE.parent / "build" / "latency", HERE / "latency.c"
    subprocess.run(["gcc", "-O2", f"-I{HERE.parent / 'include'}", str(source), "-o", str(exe), f"-L{lib}", "-lnvm", f"-Wl,-rpath,{lib}"],
                   check=True)
    env = dict(os.environ, NVM_NUM_THREADS="1")
    out = subprocess.run([str(exe)], capture_output=True, text=True, check=True, env=env).stdout
    py = subprocess.run([sys.executable, str(HERE / "py_overhead.py"), "--json"], capture_output=True, text=True, check=True, env=env).stdout
    empty = [sys.executable, "-c", "pass"], [sys.executable, "-c", "import nvm"]
    imports = []
    for command in empty:
        times = []
        for _ in range(9):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            times.append(time.perf_counter() - start)
        imports.append(statistics.median(times))
    c = {k: float(v) for k, v in (line.split() for line in out.splitlines())}
    return dict(c=c, python=json.loads(py), import_ms=(imports[1] - imports[0]) * 1e3)


def run(peer, threads, names):
    if peer == "c":
        return yardstick(threads)
    p = subprocess.run([sys.executable, __file__, "--worker", peer, "--threads", str(threads), "--rows", ",".join(names)],
                       capture_output=True, text=True)
    if p.returncode:
        return dict(version=None, times={}, error=p.stderr.strip().splitlines()[-1:] or ["failed"])
    return json.loads(p.stdout.splitlines()[-1])


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    flags = re.search(r"flags\s*:(.*)", info).group(1).split()
    return dict(cpu=re.search(r"model name\s*:\s*(.*)", info).group(1), cores=os.cpu_count(),
                isa="avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else "other", python=platform.python_version())


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--threads", default="1,2")
    ap.add_argument("--peers", default="c," + ",".join(PEERS))
    ap.add_argument("--rows", default=",".join(ROWS))
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--worker")
    ap.add_argument("-o", "--output")
    args = ap.parse_args()
    names = args.rows.split(",")
    if args.worker:
        return work(args.worker, int(args.threads), names)
    result = dict(machine=machine(), commit=commit(), date=time.strftime("%Y-%m-%d"), versions={}, seed_ulp={}, threads={}, rounds={})
    for threads in map(int, args.threads.split(",")):
        seen = {}
        for _ in range(args.rounds):
            for peer in args.peers.split(","):
                r = run(peer, threads, names)
                result["versions"][peer] = r["version"]
                result["seed_ulp"].setdefault(peer, r.get("seed_ulp"))
                if "error" in r:
                    print(f"{peer}: {r['error'][0]}", file=sys.stderr)
                for name, t in r["times"].items():
                    seen.setdefault(name, {}).setdefault(peer, []).append(t)
        rows = {name: {peer: statistics.median(t) for peer, t in by.items()} for name, by in seen.items()}
        copy = rows.pop("copy", {}).get("c")
        for name, by in rows.items():
            if copy and name in ROWS:
                by["floor"] = copy * ROWS[name][1] / (8 * N)
        result["threads"][threads], result["rounds"][threads] = rows, seen
        report(threads, rows)
    print("\nerror of the seed row, ulp: " + ", ".join(f"{p} {e:.2f}" for p, e in result["seed_ulp"].items() if e is not None))
    if "nvm" in args.peers.split(","):
        result["latency"] = latency()
        print("\n" + json.dumps(result["latency"], indent=1))
    if args.output:
        pathlib.Path(args.output).write_text(json.dumps(result, indent=1) + "\n")


def report(threads, rows):
    cols = ["floor", "c", *PEERS]
    print(f"\n{threads} thread(s), milliseconds\n{'':10}" + "".join(f"{c:>10}" for c in cols) + "   nvm/floor  nvm/best peer")
    for name in (n for n in ROWS if n in rows):
        by = rows[name]
        best = min((t for p, t in by.items() if p not in ("nvm", "floor")), default=None)
        line = "".join(f"{by[c]:10.3f}" if c in by else f"{'-':>10}" for c in cols)
        tail = f"{by['nvm'] / by['floor']:10.2f}" if "nvm" in by and "floor" in by else ""
        print(f"{name:10}{line}{tail}" + (f"{by['nvm'] / best:12.2f}" if "nvm" in by and best else ""))


if __name__ == "__main__":
    main()
