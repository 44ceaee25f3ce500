"""GPU benchmark: nvm beside PyTorch, torch.compile, JAX and CuPy on the same arrays (exchanged by DLPack), in one process.

    python benchmarks/gpu.py [-o FOLDER] [--sections rows,calls,cold,layouts,sweep] [--rounds 5] [--seconds 230] [--try]

Bursts: 40 ms idle, one warm call, a few calls between two events; the contestants take turns in random order, medians over the
rounds are kept, copies of 4 GiB (read and written) are timed among them and give the floor. JAX runs on streams of its own, so its time is the slope
of wall-clock time over the number of calls; beside it stands nvm's by that clock ("nvm, wall"). Every result is held against float64. Writes
FOLDER/<device>.json.
--try: small arrays, and the CPU where there is no GPU: shows that the benchmark itself works; its figures mean nothing.
The tables of docs/performance.md are made of it by benchmarks/report.
"""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gpu_rows  # noqa: E402
from timing import commit, processors, say, slope  # noqa: E402

DTYPES = ("float32", "float64", "bfloat16", "float16")
WALL = {"jax": "jax", "nvm, wall": "nvm"}  # whose time is the slope of the wall clock
OWN = "nvm", "nvm, wall"
LENGTHS = (33, 1000, 5000, 50000, 200000)


def median(v):
    return statistics.median(v)


class Bench:
    """The machine, its contestants, and how a call of theirs is timed."""

    def __init__(self, args):
        import torch
        self.torch, self.args, self.start = torch, args, time.perf_counter()
        self.place = "cuda" if torch.cuda.is_available() else "cpu"
        if self.place == "cpu" and not args.try_:
            sys.exit("gpu.py: PyTorch finds no GPU here")
        stream = 0
        if self.place == "cuda":
            self.stream = torch.cuda.Stream()
            torch.cuda.set_stream(self.stream)
            stream = self.stream.cuda_stream
        self.peers = {}
        for name in args.peers.split(","):
            try:
                self.peers[name] = gpu_rows.CONTESTANTS[name](stream)
            except Exception as e:  # a peer that is not there is told and left out
                say(f"{name}: left out: {type(e).__name__}: {e}")
        self.random = random.Random(1)
        self.copy_us = []
        n = (1 << 18) if args.try_ else (1 << 29)
        self.src = torch.randn(n, device=self.place)
        self.dst = torch.empty_like(self.src)

    def left(self):
        return self.args.seconds - (time.perf_counter() - self.start)

    def sync(self):
        if self.place == "cuda":
            self.torch.cuda.synchronize()

    def event(self):
        if self.place == "cpu":
            return time.perf_counter() * 1e3
        e = self.torch.cuda.Event(enable_timing=True)
        e.record(self.stream)
        return e

    def between(self, a, b):  # us
        return (b - a) * 1e3 if self.place == "cpu" else a.elapsed_time(b) * 1e3

    def wall(self, peer, call, k):
        """Microseconds of one call by the wall clock, which takes batches of 10 ms and more for what events tell of k calls."""
        return slope(call, peer.wait, max(k, min(200, int(1e4 / slope(call, peer.wait, k)))), rounds=3)

    def burst(self, call, k):
        """Microseconds of one call, of k in a row."""
        call()
        a = self.event()
        for _ in range(k):
            call()
        b = self.event()
        self.sync()
        return self.between(a, b) / k

    def copy(self):
        us = self.burst(lambda: self.dst.copy_(self.src), 3)
        self.copy_us.append(us)
        return us

    @property
    def bandwidth(self):  # bytes a microsecond, read and written
        return 2 * self.src.numel() * 4 / median(self.copy_us)

    def turns(self, calls, k, rounds, idle=0.04):
        """{name: [us of each round]} of {name: call}, in random order, a copy among them."""
        calls = {**calls, **{name: calls[p] for name, p in WALL.items() if p in calls and "jax" in calls}}
        times = {name: [] for name in calls}
        for _ in range(rounds):
            order = [*calls, None]
            self.random.shuffle(order)
            for name in order:
                time.sleep(idle)
                if name is None:
                    self.copy()
                elif name in WALL:
                    times[name].append(self.wall(self.peers[WALL[name]], calls[name], k))
                else:
                    times[name].append(self.burst(calls[name], k))
        return times

    def calls(self, name, inputs, peers=None):
        """{contestant: call}, {contestant: its first result}; who cannot is left out with a line."""
        calls, results = {}, {}
        for p in (self.peers if peers is None else peers):
            peer = self.peers.get(p)
            try:
                f = peer and peer.jit(name)
                args = f and [peer.take(x) for x in inputs]
                if not f or any(a is None for a in args):
                    continue
                results[p] = peer.give(f(*args))
                calls[p] = lambda f=f, args=args: f(*args)
                calls[p]()
                self.sync()
            except Exception as e:
                calls.pop(p, None)
                say(f"{name}: {p}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
        return calls, results

    def errors(self, name, inputs, results):
        """{contestant: the greatest relative error over its outputs, |got - want| / |want|}; NaN counts as infinite."""
        wide = [x.double() for x in inputs]
        want = gpu_rows.nested(gpu_rows.Torch(0).jit(name)(*wide))
        del wide
        errors = {}
        for p, got in results.items():
            e = [float((g.double().reshape(w.shape) - w).norm() / w.norm()) for g, w in zip(got, want)]
            errors[p] = max(e) if len(got) == len(want) and all(x == x for x in e) else float("inf")
        return errors


def to_best(by, floor):
    """nvm's time in units of the least of another contestant, by whose clock it is taken; what is far below the floor no memory
    can do: noise of a clock."""
    own = {True: by.get("nvm, wall", by.get("nvm")), False: by.get("nvm")}
    others = [own[p in WALL] / v for p, v in by.items() if p not in OWN and v >= 0.85 * (floor or 0)] if "nvm" in by else []
    return max(others, default=None)


# ---- sections: each takes the bench and returns what goes into the JSON

def section_rows(b):
    out = {}
    for name, (title, dtype, shapes, size, aim, bound, kind) in gpu_rows.rows(b.args.try_).items():
        inputs = gpu_rows.draw(b.torch, kind, dtype, shapes, b.place)
        calls, results = b.calls(name, inputs)
        errors = b.errors(name, inputs, results)
        del results
        times = b.turns(calls, 4, b.args.rounds)
        out[name] = dict(title=title, bytes=size, aim=aim, bound=bound, us={p: median(t) for p, t in times.items()}, rounds=times,
                         error=errors, wrong=[p for p, e in errors.items() if e > bound])
        say(f"{name}: " + ", ".join(f"{p} {v:.1f}" for p, v in out[name]["us"].items()))
        del inputs, calls
        free(b)
    for row in out.values():
        row["floor_us"] = row["bytes"] / b.bandwidth
    return out


def section_calls(b):
    """Time per call at n = 4096: many calls, one wait (the slope of the wall clock over the number of calls). Each round takes some
    80 ms for a contestant, on the next processor: where the host does something else, a call of 2 us takes 4."""
    out = {}
    for name, kind, k in (("seed", "seed", 3), ("ten", "normal", 1)):
        inputs = gpu_rows.draw(b.torch, kind, "float32", [(4096,)] * k, b.place)
        calls, results = b.calls(name, inputs)
        errors = b.errors(name, inputs, results)
        times = {p: [] for p in calls}
        k = {p: max(20, min(5000, int(2e4 / slope(calls[p], b.peers[p].wait, 20)))) for p in calls}
        with processors() as move:
            for _ in range(b.args.rounds if b.args.try_ else 5 * b.args.rounds):
                move()
                for p in b.random.sample(list(calls), len(calls)):
                    times[p].append(slope(calls[p], b.peers[p].wait, k[p]))
        out[name] = dict(n=4096, us={p: median(t) for p, t in times.items()}, rounds=times, error=errors)
        b.torch._dynamo.reset()
        if "nvm" in calls:
            wait, both = b.peers["nvm"].wait, []
            for _ in range(200):
                start = time.perf_counter()
                calls["nvm"]()
                wait()
                both.append((time.perf_counter() - start) * 1e6)
            out[name]["nvm_call_and_wait_us"] = median(both)
    return out


def section_cold(b):
    """First calls of nvm, each row in three fresh processes: compiled, from the disk store, and compiled without baseline code.
    The compiler's own cache on disk, which has what earlier sections compiled, is off."""
    out = {}
    with tempfile.TemporaryDirectory() as store, tempfile.TemporaryDirectory() as other:
        for part, folder, tier in (("compile_ms", store, "auto"), ("disk_ms", store, "auto"), ("straight_ms", other, "1")):
            p = subprocess.run([sys.executable, __file__, "--cold", *(["--try"] if b.args.try_ else [])], capture_output=True, text=True,
                               env=dict(os.environ, NVM_CACHE_DIR=folder, NVM_TIER=tier, CUDA_CACHE_DISABLE="1"))
            if p.returncode:
                say(f"cold: {p.stderr.strip().splitlines()[-1:]}")
                return dict(error=p.stderr[-2000:])
            out[part] = json.loads(p.stdout.splitlines()[-1])
    return out


def cold(small):
    """{row: ms of the first call beyond a warm one, ms from its begin to calls at full speed, kernels compiled, loaded, compiled
    for a quarter fewer rows (elements, of one dimension), and then for a quarter fewer along every dimension}"""
    import nvm
    device = nvm.devices()[-1]  # the CPU where there is no GPU
    peer = gpu_rows.Nvm(0)

    def arrays(shapes, dtype):
        a = [nvm.full(s, 0.5, dtype=getattr(nvm, dtype), device=device) for s in shapes]
        nvm.eval(*a)
        nvm.synchronize()
        return a

    def timed(f, args):
        start = time.perf_counter()
        r = f(*args)
        nvm.eval(*gpu_rows.nested(r))
        nvm.synchronize()
        return (time.perf_counter() - start) * 1e3

    def compiled(f, args):
        before = nvm.counters()["kernels_compiled"]
        timed(f, args)
        return nvm.counters()["kernels_compiled"] - before

    timed(peer.jit("ten"), arrays([(1000,)], "float32"))  # libraries and contexts are there
    out = {}
    for name, (_, dtype, shapes, *_) in gpu_rows.rows(small).items():
        args, f = arrays(shapes, dtype), peer.jit(name)
        before, start, then = nvm.counters(), time.perf_counter(), []
        first = timed(f, args)
        after = nvm.counters()
        while time.perf_counter() < start + (0.1 if small else 0.5):
            then.append((timed(f, args), (time.perf_counter() - start) * 1e3))
        warm = sorted(ms for ms, _ in then)[len(then) // 4]
        full = next((at for i, (_, at) in enumerate(then) if sum(ms <= 1.2 * warm + 0.05 for ms, _ in then[i : i + 10]) >= 9), None)
        rank = max(len(s) for s in shapes)
        fewer = [(s[0] - s[0] // 4, *s[1:]) if len(s) == rank else s for s in shapes]
        smaller = [tuple(n - n // 4 for n in s) for s in shapes]
        out[name] = dict(ms=first - warm, full_speed_ms=full, compiled=after["kernels_compiled"] - before["kernels_compiled"],
                         loaded=after["kernels_loaded"] - before["kernels_loaded"],
                         new_shape=compiled(f, arrays(fewer, dtype)), new_lengths=compiled(f, arrays(smaller, dtype)))
        time.sleep(0 if small else 0.4)  # what of that is compiled again behind the calls would slow the next row's first
    print(json.dumps(out))


def section_layouts(b):
    """Rows of several lengths and dtypes; strided, broadcast and transposed inputs. Some 2^26 elements each."""
    t, out, n = b.torch, [], (1 << 16) if b.args.try_ else (1 << 26)

    def one(what, name, dtype, inputs, size, peers):
        if b.left() < 20:
            return out.append(dict(what=what, name=name, dtype=dtype, skipped="no time left"))
        calls, results = b.calls(name, inputs, peers)
        errors = b.errors(name, inputs, results)
        del results
        # so long that what the host takes for the first calls does not show: rows of 1,000 bf16 took 37 us in 4 calls, 31 in many
        times = b.turns(calls, max(4, min(32, int(2e9 / size))), 3, idle=0.005)
        out.append(dict(what=what, name=name, dtype=dtype, bytes=size, us={p: median(v) for p, v in times.items()}, error=errors))
        del calls
        free(b)

    def draws(dtype, *shapes):
        return gpu_rows.draw(t, "normal", dtype, shapes, b.place)

    big = ["nvm", "torch", "jax", "torch.compile"]
    x, y = draws("float32", (4096, n // 4096), (n // 4096,))
    one("every second column", "strided", "float32", [x[:, ::2]], 4 * n, big)
    one("every second row", "strided", "float32", [x[::2]], 4 * n, big)
    one("a transposed view", "strided", "float32", [x.T], 8 * n, big)  # PyTorch's result lies as x does: a plain pass
    one("a transposed view", "packed", "float32", [x.T], 8 * n, big)
    one("a row broadcast", "outer", "float32", [x, y], 8 * n, big)
    one("a column broadcast", "outer", "float32", [x, draws("float32", (4096, 1))[0]], 8 * n, big)
    one("an outer product", "outer", "float32", [draws("float32", (1, n // 4096))[0], draws("float32", (4096, 1))[0]], 4 * n, big)
    side = int(n ** 0.5)
    one("x + x.T", "transposed", "float32", draws("float32", (side, side)), 8 * side * side, big)
    del x, y
    for name, native in (("softmax", "torch native"), ("rowsum", "torch"), ("layernorm0", "torch native")):
        for length in LENGTHS:
            for dtype in DTYPES:
                rows = max(n // length, 1)
                size = (1 if name == "rowsum" else 2) * rows * length * getattr(t, dtype).itemsize
                peers = ["nvm", native, "jax"] + (["torch.compile"] if dtype in ("float32", "bfloat16") else [])
                one(f"rows of {length}", name, dtype, draws(dtype, (rows, length)), size, peers)
    for row in out:
        if "bytes" in row:
            row["floor_us"] = row["bytes"] / b.bandwidth
    return out


def section_sweep(b):
    """Achieved bandwidth against size: bytes over the time of a call, many calls and one wait."""
    out, most = {}, 6 if b.args.try_ else 9
    sizes = [s for e in range(3, most) for s in (10 ** e, 3 * 10 ** e)] + [10 ** most]
    for name, kind, count, per in (("axpy", "normal", 2, 12), ("seed", "seed", 3, 16)):
        out[name] = dict(bytes_per_element=per, sizes=sizes, us={})
        for n in sizes:
            if b.left() < 10 or (b.place == "cuda" and b.torch.cuda.mem_get_info()[0] < 40 * n):
                say(f"sweep: {name} stops before {n}")
                out[name]["sizes"] = sizes[:sizes.index(n)]
                break
            inputs = gpu_rows.draw(b.torch, kind, "float32", [(n,)] * count, b.place)
            calls, results = b.calls(name, inputs, [p for p in ("nvm", "torch.compile", "jax", "torch", "cupy") if p in b.peers])
            del results
            k = max(3, min(300, int(2e9 / (per * n))))
            for p in b.random.sample(list(calls), len(calls)):
                try:
                    out[name]["us"].setdefault(p, {})[n] = median([slope(calls[p], b.peers[p].wait, k) for _ in range(3)])
                except Exception as e:  # out of memory, most likely
                    say(f"sweep: {name}: {p} at {n}: {type(e).__name__}")
            del inputs, calls
            free(b)
    return out


SECTIONS = dict(rows=section_rows, calls=section_calls, cold=section_cold, sweep=section_sweep, layouts=section_layouts)


def free(b):
    """What a row leaves behind: memory, and compiled functions that later ones of the same code would be looked up behind."""
    b.torch._dynamo.reset()
    if "jax" in b.peers:
        b.peers["jax"].last = None
    if b.place == "cuda":
        if "nvm" in b.peers:
            b.peers["nvm"].nvm.trim_memory()
        b.torch.cuda.empty_cache()
        if "cupy" in b.peers:
            b.peers["cupy"].c.get_default_memory_pool().free_all_blocks()


def machine(torch):
    if not torch.cuda.is_available():
        return dict(device="cpu")
    smi = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    p = torch.cuda.get_device_properties(0)
    return dict(device=p.name, units=p.multi_processor_count, memory=p.total_memory, driver=smi.stdout.split("\n")[0].strip(),
                cuda=torch.version.cuda, python=sys.version.split()[0])


def contestants(r):
    return [p for p in OWN if any(p in row["us"] for row in r.get("rows", {}).values())] + [
        p for p in gpu_rows.CONTESTANTS if p in r["versions"] and p not in OWN]


# ---- the report: one line a row, all in units of the floor where there is one

def report(r):
    if r.get("copy_TBps"):
        print(f"{r['machine']['device']}: copy {r['copy_TBps']:.3f} TB/s; " + ", ".join(f"{k} {v}" for k, v in r["versions"].items()))
    names = contestants(r)

    def line(title, us, floor, aim=None, note=""):
        cells = "".join(f"{us[p]:>10.1f}" if p in us else f"{'-':>10}" for p in names)
        ratio = f"{us['nvm'] / floor:9.3f}" if floor and "nvm" in us else f"{'-':>9}"
        best = to_best(us, floor)
        peer = f"{best:9.3f}" if best else f"{'-':>9}"
        print(f"{title[:52]:<52}{floor or 0:>9.1f}{cells}{ratio}{aim or '-':>6}{peer} {note}")

    print(f"{'microseconds':<52}{'floor':>9}" + "".join(f"{p[-9:]:>10}" for p in names) + f"{'/floor':>9}{'aim':>6}{'/best':>9}")
    for row in r.get("rows", {}).values():
        line(row["title"], row["us"], row["floor_us"], row["aim"], "WRONG: " + ", ".join(row["wrong"]) if row["wrong"] else "")
    for name, row in r.get("calls", {}).items():
        line(f"{name} at n = 4096, per call", row["us"], None, None, f"call and wait {row.get('nvm_call_and_wait_us', 0):.1f}")
    for row in r.get("layouts", []):
        if "us" in row:
            bad = [p for p, e in row["error"].items() if not e < (1e-2 if "16" in row["dtype"] else 1e-5)]
            line(f"{row['name']}, {row['what']}, {row['dtype']}", row["us"], row["floor_us"], None, "WRONG: " + ", ".join(bad) if bad else "")
    c = r.get("cold", {})
    for name in c.get("compile_ms", {}):
        a, d = c["compile_ms"][name], c["disk_ms"][name]
        print(f"first call of {name:<16} {a['ms']:8.1f} ms, {a['compiled']} compiled; at full speed after {a['full_speed_ms'] or math.nan:.0f} ms; "
              f"straight at once {c['straight_ms'][name]['ms']:.1f}; from disk {d['ms']:6.2f} ms, {d['loaded']} loaded, {d['compiled']} compiled; "
              f"fewer rows: {a['new_shape']} compiled, other lengths too: {a['new_lengths']}")
    for key, value in r.get("latency", {}).items():
        print(f"from C: {key:<28} {value}")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-o", "--output", help="folder")
    ap.add_argument("--sections", default=",".join(SECTIONS))
    ap.add_argument("--peers", default=",".join(gpu_rows.CONTESTANTS))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=230, help="later sections stop early to end within this")
    ap.add_argument("--latency", help="output of gpu_latency, to go into the JSON")
    ap.add_argument("--try", dest="try_", action="store_true")
    ap.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    args = ap.parse_args()
    if args.cold:
        return cold(args.try_)
    b = Bench(args)
    result = dict(machine=machine(b.torch), commit=commit(), source=os.environ.get("NVM_SOURCE_HASH"), date=time.strftime("%Y-%m-%d"),
                  versions={p: c.version for p, c in b.peers.items()}, rounds=args.rounds, seconds={})
    if args.latency and pathlib.Path(args.latency).exists():
        lines = [x.split() for x in pathlib.Path(args.latency).read_text().splitlines()]
        result["latency"] = {x[0]: float(x[1]) for x in lines if len(x) == 2}
    name = result["machine"]["device"].lower().split("80gb")[0].strip().replace(" ", "-")
    for section in args.sections.split(","):
        start = time.perf_counter()
        try:
            result[section] = SECTIONS[section](b)
        except Exception as e:  # the sections are independent
            import traceback
            traceback.print_exc()
            result.setdefault("failed", {})[section] = f"{type(e).__name__}: {e}"
        result["seconds"][section] = round(time.perf_counter() - start, 1)
        if b.copy_us:
            result["copy_TBps"] = b.bandwidth * 1e-6
        if args.output:  # after each section: what was measured is kept
            folder = pathlib.Path(args.output)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    report(result)
    return 1 if result.get("failed") else 0


if __name__ == "__main__":
    sys.exit(main())
