"""Matrix products with and without tails, beside the bare product of the library in the same run.

    python benchmarks/gemm.py [-o FOLDER] [--rounds 7] [--seconds 60] [--peers nvm,torch.compile,jax] [--cpu | --grid | --f32] [--only TEXT] [--try]

GPU: nvm, torch.compile and JAX beside torch.mm, which is cuBLAS; bursts as in benchmarks/gpu.py (40 ms idle, one warm call, a few calls
between two events), contestants in random order, medians over the rounds. JAX runs on streams of its own and is timed by the slope of
wall-clock time; its f32 product is TF32. Every result is held against the product in the sums' type. One f32 product is nvm's alone, as
exact as each of its precisions asks for; large squares and few rows are multiplied by the generated kernels alone, too. Weights of int8
with a scale for each column stand beside the bare product of what they are as bfloat16; floats of 8 bits with scales of each kind beside
torch._scaled_mm of the same ("bare") and the product in bfloat16. The host's time of a call is that of a product of 64 x 64 x 64.
--cpu: nvm beside cblas_?gemm of the same libopenblas, one call each in turn. --grid: 48 bare products, nvm by
the rules ("nvm") and as nvm.auto_tune chose ("tuned", --tune seconds for each; "tuned, wall" by JAX's clock) beside all others, of float8
beside torch._scaled_mm without fast accumulation ("bare"), with it ("fast") and the product in bfloat16; --f32: 13 more, whose sizes a library's
first choice suits badly, nvm and the bare product alone. Both take every fourth shape first, and none when --seconds are over. Writes
FOLDER/gemm-<device>.json; what other sections are in it stays. --try: small shapes, to see that the benchmark works.
"""
import argparse
import copy
import ctypes
import itertools
import json
import os
import pathlib
import random
import statistics
import sys
import time
from types import MappingProxyType

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from timing import commit, processors, say, slope  # noqa: E402

# name: dtype, m, n, k, tail, calls of a burst, aim in units of the bare product
ROWS = {
    "bf16 8192 x 8192 x 8192": ("bfloat16", 8192, 8192, 8192, "none", 2, 1.00),
    "bf16 8192 x 8192 x 8192 + bias + gelu": ("bfloat16", 8192, 8192, 8192, "gelu", 2, 1.02),
    "f16 4096 x 4096 x 4096 + bias + relu": ("float16", 4096, 4096, 4096, "relu", 6, 1.01),
    "bf16 64 x 8192 x 8192": ("bfloat16", 64, 8192, 8192, "none", 20, 1.00),
    "f32 4096 x 4096 x 4096": ("float32", 4096, 4096, 4096, "none", 2, 1.00),
    "bf16 4096 x 11008 x 4096 SwiGLU": ("bfloat16", 4096, 11008, 4096, "swiglu", 2, 1.00),
    "bf16 4096 x 4096 x 4096, tanh of it times rows, + residual": ("bfloat16", 4096, 4096, 4096, "residual", 6, 1.03),
    "bf16 4096 x 4096 x 4096, sums of rows": ("bfloat16", 4096, 4096, 4096, "rows", 6, 1.01),
    "bf16 4096 x 4096 x 4096, sums of gelu's rows": ("bfloat16", 4096, 4096, 4096, "row sum", 6, 1.01),
    "bf16 4096 x 4096 x 4096, maxima of rows": ("bfloat16", 4096, 4096, 4096, "row max", 6, 1.01),
    "bf16 4096 x 4096 x 4096, argmin of rows": ("bfloat16", 4096, 4096, 4096, "argmin", 6, 1.01),
}
# a tail in the words of a library, and the shapes of what it reads beside the operands; swiglu's unit is two bare products
TAILS = {
    "none": (lambda w, a, b: w.matmul(a, b), lambda m, n, k: []),
    "swiglu": (lambda w, a, b, c: w.silu(w.matmul(a, b)) * w.matmul(a, c), lambda m, n, k: [(k, n)]),
    "relu": (lambda w, a, b, c: w.relu(w.matmul(a, b) + c), lambda m, n, k: [(n,)]),
    "gelu": (lambda w, a, b, c: w.gelu(w.matmul(a, b) + c), lambda m, n, k: [(n,)]),
    "residual": (lambda w, a, b, c, d: w.tanh(w.matmul(a, b) * c) + d, lambda m, n, k: [(m, 1), (m, n)]),
    "rows": (lambda w, a, b: w.sum(w.matmul(a, b), 1), lambda m, n, k: []),
    "row sum": (lambda w, a, b: w.sum(w.gelu(w.matmul(a, b)), 1), lambda m, n, k: []),
    "row max": (lambda w, a, b: w.max(w.matmul(a, b), 1), lambda m, n, k: []),
    "argmin": (lambda w, a, b: w.argmin(w.matmul(a, b), 1), lambda m, n, k: []),
}
PRODUCTS = {"swiglu": 2}
# dtype, m, n, k; which operands are turned, so that the right one is K-major, as warpgroups take 32 bits, and the left one across
RIGHT, LEFT = 1, 2
TURNED = {0: "", RIGHT: " turned,", LEFT: " left turned,", LEFT | RIGHT: " both turned,"}
GENERATED = [("bfloat16", 4096, 4096, 4096, 0), ("bfloat16", 8192, 8192, 8192, 0), ("tf32", 4096, 4096, 4096, RIGHT), ("tf32", 8192, 8192, 8192, RIGHT),
             ("tf32", 4096, 4096, 4096, 0), ("tf32", 8192, 8192, 8192, 0), ("tf32", 4096, 4096, 4096, LEFT | RIGHT), ("tf32", 4096, 4096, 4096, LEFT),
             ("bfloat16", 16, 4096, 4096, 0), ("bfloat16", 16, 11008, 4096, 0), ("bfloat16", 64, 4096, 11008, 0), ("bfloat16", 64, 8192, 8192, 0)]
WEIGHTS = [(m, n) for n in (4096, 8192) for m in (16, 64, 4096)]  # rows, and both extents of the weights
SCALED = [(4096, 4096, 4096), (64, 8192, 8192)]  # m, n, k
SCALES = {
    "all": lambda m, n, k: ((1, 1), (1, 1)), "rows and columns": lambda m, n, k: ((m, 1), (1, n)),
    "1 x 128 and 128 x 1": lambda m, n, k: ((m, k // 128), (k // 128, n)),
    "1 x 128 and 128 x 128": lambda m, n, k: ((m, k // 128), (k // 128, n // 128)),
}
PRECISIONS = "ieee", "tf32", "bf16x3", "bf16x9"
# (m, n, k) of bare products, from 16 to 16384 each; of float8 the right operand is K-major, and results are bfloat16
GRID = {
    "bfloat16": [(256, 256, 256), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192),  # squares
                 (16, 4096, 4096), (16, 11008, 4096), (32, 8192, 8192), (64, 4096, 11008), (128, 8192, 8192),      # few rows: tokens
                 (2048, 11008, 4096), (2048, 4096, 11008), (8192, 14336, 4096),                                    # layers
                 (16384, 16, 4096), (8192, 128, 8192),                                                             # few columns
                 (4096, 4096, 16), (16384, 16384, 128),                                                            # short sums
                 (256, 256, 16384), (1024, 1024, 16384)],                                                          # long sums: gradients
    "float16": [(512, 512, 512), (4096, 4096, 4096), (16384, 16384, 16384), (16, 16384, 16384), (64, 8192, 8192), (512, 4096, 4096),
                (16384, 64, 1024), (8192, 8192, 64), (512, 512, 16384), (1000, 1000, 1000), (1023, 1025, 1027)],
    "tf32": [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16, 4096, 4096),
             (64, 8192, 8192), (16384, 32, 4096), (4096, 4096, 32), (64, 64, 16384)],
    "float8_e4m3fn": [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192),
                      (2048, 11008, 4096), (8192, 14336, 4096)],
}
F32 = {"float32": [(1085, 2219, 2438), (7672, 149, 9903), (1217, 2024, 4993), (413, 732, 61981), (10777, 1352, 2407), (14320, 307, 7266),
                   (1405, 399, 71663), (9759, 1104, 5335), (11741, 543, 8863), (423, 2144, 55458), (640, 2689, 49794), (10277, 576, 20463),
                   (6710, 12849, 2262)]}
RATES = {"float32": 50e6, "tf32": 350e6, "float8_e4m3fn": 1300e6}  # about what a GPU does in a microsecond, for the length of a burst; 16 bits: twice tf32's


def row(tail, words):
    """The row in the words of a library."""
    return lambda *operands: TAILS[tail][0](words, *operands)


class Nvm:
    def __init__(self, torch, stream):
        import nvm
        self.nvm, self.version = nvm, nvm.__version__
        self.relu, self.gelu, self.silu = nvm.relu, lambda x: nvm.gelu(x, approximate=True), nvm.silu
        self.tanh, self.sum, self.max, self.argmin = nvm.tanh, nvm.sum, nvm.max, nvm.argmin
        self.precision = self.result = None
        self.take, self.wait, self.jit = nvm.from_dlpack, nvm.synchronize, nvm.jit
        self.give = torch.from_dlpack
        if stream:
            self.within = nvm.stream(stream.cuda_stream, device="cuda:0")
            self.within.__enter__()

    def matmul(self, a, b):
        return self.nvm.matmul(a, b, precision=self.precision, dtype=self.result)


class Compile:
    def __init__(self, torch, stream):
        self.version, f = torch.__version__, torch.nn.functional
        torch._dynamo.config.recompile_limit = 1000  # every shape is compiled for itself
        self.matmul, self.relu, self.gelu = torch.matmul, torch.relu, lambda x: f.gelu(x, approximate="tanh")
        self.silu = f.silu
        self.tanh, self.sum, self.max, self.argmin = torch.tanh, torch.sum, torch.amax, torch.argmin
        self.take = self.give = lambda x: x
        self.wait = torch.cuda.synchronize if stream else lambda: None
        self.jit = lambda f: torch.compile(f, dynamic=False)


class Torch(Compile):
    def __init__(self, torch, stream):
        super().__init__(torch, stream)
        self.jit = lambda f: f


class Jax:
    def __init__(self, torch, stream):
        import jax
        self.jax, self.version, self.last = jax, jax.__version__, None
        self.matmul, self.relu, self.silu = jax.numpy.matmul, jax.nn.relu, jax.nn.silu
        self.gelu = lambda x: jax.nn.gelu(x, approximate=True)
        self.tanh, self.sum, self.max, self.argmin = (getattr(jax.numpy, f) for f in ("tanh", "sum", "max", "argmin"))
        self.take, self.give = jax.dlpack.from_dlpack, lambda x: torch.from_dlpack(jax.block_until_ready(x))

    def jit(self, f):
        g = self.jax.jit(f)

        def call(*args):
            self.last = g(*args)
            return self.last
        return call

    def wait(self):
        self.jax.block_until_ready(self.last)


def error(tail, got, want):
    """In the norm; of places what lies there, beside the least."""
    if tail == "argmin":
        got, want = want.gather(1, got.long()[:, None])[:, 0], want.amin(1)
    return float((got.to(want.dtype) - want).norm() / want.norm())


WALL = {"jax": "jax", "tuned, wall": "nvm"}  # whose time is the slope of the wall clock, which differs from events by some per cent
PEERS = {"nvm": Nvm, "torch.compile": Compile, "torch": Torch, "jax": Jax}


class Gpu:
    def __init__(self, args):
        import torch
        if not torch.cuda.is_available():
            sys.exit("gemm.py: PyTorch finds no GPU here")
        self.torch, self.args, self.start, self.random = torch, args, time.perf_counter(), random.Random(1)
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.peers = {}
        for name in args.peers.split(","):
            try:
                self.peers[name] = PEERS[name](torch, self.stream)
            except Exception as e:  # a peer that is not there is told and left out
                say(f"{name}: left out: {type(e).__name__}: {e}")

    def left(self):
        return self.args.seconds - (time.perf_counter() - self.start)

    def passes(self, title, least):
        """Whether the row is none of those asked for, or has no such seconds left."""
        asked = any(text in title for text in self.args.only.split(","))
        if asked and self.left() < least:
            say(f"{title}: no time left")
        return not asked or self.left() < least

    def burst(self, call, k):
        call()
        a, b = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record(self.stream)
        for _ in range(k):
            call()
        b.record(self.stream)
        self.torch.cuda.synchronize()
        return a.elapsed_time(b) * 1e3 / k

    def operands(self, dtype, m, n, k, tail="none"):
        t = self.torch
        if dtype.startswith("float8"):
            return [t.randn(s, device="cuda").to(getattr(t, dtype)) for s in ((m, k), (n, k))]
        drawn = [t.randn(s, device="cuda").to(getattr(t, dtype)) for s in ((m, k), (k, n), *TAILS[tail][1](m, n, k))]
        return [x / k ** 0.5 if 0 < i <= PRODUCTS.get(tail, 1) else x for i, x in enumerate(drawn)]

    def calls(self, tail, operands, peers):
        """{contestant: call} of these peers and the bare product, {contestant: its error against the sums' type}"""
        t, calls, errors = self.torch, {}, {}
        wide, eights = Compile(t, None), str(operands[0].dtype).startswith("torch.float8")
        operands = [operands[0], operands[1].t()] if eights else operands
        a, b, exact = *operands[:2], [x.double() if x.dtype == t.float32 else x.float() for x in operands]
        want = row("none" if tail == "argmin" else tail, wide)(*exact)
        for name, peer in peers.items():
            if self.left() < 3:
                continue
            try:
                f = peer.jit(row(tail, peer))
                args = [peer.take(x) for x in operands]
                got = peer.give(f(*args))
                errors[name] = error(tail, got, want)
                calls[name] = lambda f=f, args=args: f(*args)
            except Exception as e:
                say(f"{name}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")
        if eights:
            one, x, y = t.ones((), device="cuda"), a.bfloat16(), b.bfloat16()
            scaled = lambda fast: t._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=t.bfloat16, use_fast_accum=fast)  # noqa: E731
            calls.update(bare=lambda: scaled(False), fast=lambda: scaled(True), bfloat16=lambda: t.mm(x, y))
            return calls, errors
        calls["bare"] = lambda: [t.mm(a, x) for x in operands[1:1 + PRODUCTS.get(tail, 1)]]
        return calls, errors

    def wall(self, name, call, k, idle):
        """The same by the wall clock: of batches of 5 ms and more, for shorter ones scatter by a third."""
        wait = self.peers[WALL[name]].wait
        return slope(call, wait, max(k, min(200, int(5e3 / slope(call, wait, k)))), idle)

    def times(self, calls, burst, idle=0.04, settings=MappingProxyType({})):
        """{contestant: microseconds of each round}; settings: {contestant: a setting's name and what it is for it}"""
        times = {name: [] for name in calls}
        for _ in range(self.args.rounds):
            for name in self.random.sample(list(calls), len(calls)):
                if name in settings:
                    self.peers["nvm"].nvm.set(*settings[name])
                for _ in range(3 if settings else 0):  # all contestants alike: power is at its limit for a while after long products
                    calls[name]()
                self.torch.cuda.synchronize()
                time.sleep(idle)
                times[name].append(self.wall(name, calls[name], burst, idle) if name in WALL else self.burst(calls[name], burst))
        return times

    def rows(self):
        out = {}
        for title, (dtype, m, n, k, tail, burst, aim) in ROWS.items():
            if self.passes(title, 8):
                continue
            if self.args.try_:
                m, n, k = max(m // 16, 8), n // 16, k // 16
            peers = {name: p for name, p in self.peers.items() if name != "torch.compile" or tail != "none"}
            calls, errors = self.calls(tail, self.operands(dtype, m, n, k, tail), peers)
            times = self.times(calls, burst)
            us = {name: statistics.median(v) for name, v in times.items()}
            out[title] = dict(dtype=dtype, m=m, n=n, k=k, tail=tail, aim=aim, us=us, rounds=times, error=errors, tflops=2e-6 * PRODUCTS.get(tail, 1) * m * n * k / us["bare"])
            say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in us.items()))
            del calls
            self.torch.cuda.empty_cache()
        return out

    def generated(self):
        """Bare products by the generated kernels alone."""
        out, peer = {}, self.peers.get("nvm")
        for dtype, m, n, k, turned in GENERATED if peer else ():
            title, tf32 = f"{dtype} {m} x {n} x {k},{TURNED[turned]} generated".replace("float", "f"), dtype == "tf32"
            if self.passes(title, 3):
                continue
            if self.args.try_:
                m, n, k = (max(x // 16, 8) for x in (m, n, k))
            peer.precision = "tf32" if tf32 else None
            self.torch.backends.cuda.matmul.allow_tf32 = tf32  # what is right is known by a product in float64 then
            peer.nvm.set("solvers", "kernel")
            a, b = self.operands("float32" if tf32 else dtype, m, n, k)
            turn = lambda x, which: x.t().contiguous().t() if turned & which else x  # noqa: E731
            calls, errors = self.calls("none", [turn(a, LEFT), turn(b, RIGHT)], {"generated": peer})
            times = self.times(calls, 2 if m * n * k > 1e11 else 20)
            us = {name: statistics.median(v) for name, v in times.items()}
            out[title] = dict(dtype=dtype, m=m, n=n, k=k, aim=1.00, us=us, rounds=times, error=errors, tflops=2e-6 * m * n * k / us["bare"])
            say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in us.items()))
            self.torch.cuda.empty_cache()
        if peer:
            peer.nvm.set("solvers", "all")
            peer.precision, self.torch.backends.cuda.matmul.allow_tf32 = None, False
        return out

    def precisions(self, m=4096, n=4096, k=4096):
        """A product of float32 as exact as each precision asks for; errors are against float64."""
        title, peers = f"f32 {m} x {n} x {k} by precision", {}
        if "nvm" not in self.peers or self.passes(title, 8):
            return {}
        if self.args.try_:
            m, n, k = m // 4, n // 4, k // 4
        for p in PRECISIONS:
            peers[p] = copy.copy(self.peers["nvm"])
            peers[p].precision = p
        operands = self.operands("float32", m, n, k)
        calls, errors = self.calls("none", operands, peers)
        args = [self.peers["nvm"].take(x) for x in operands]
        how = {p: peer.nvm.explain(row("none", peer)(*args)) for p, peer in peers.items()}
        times = self.times(calls, 2)
        us = {name: statistics.median(v) for name, v in times.items()}
        say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in us.items()))
        return {title: dict(dtype="float32", m=m, n=n, k=k, us=us, rounds=times, error=errors, how=how, tflops=2e-6 * m * n * k / us["bare"])}

    def weights(self):
        """(x @ w) * s, w of int8, either way; every call reads another copy of it, since few rows leave the last cache to it."""
        t, out, most = self.torch, {}, 300e6
        layers = {"nvm": lambda x, w, s: (x @ w) * s, "torch.compile": lambda x, w, s: (x @ w.to(x.dtype)) * s}
        for (m, n), along in itertools.product(WEIGHTS, (True, False)):
            title = f"int8 weights {m} x {n} x {n}, {'along k' if along else 'across'}"
            if self.passes(title, 6):
                continue
            if self.args.try_:
                m, n = max(m // 16, 8), n // 16
            x, s = t.randn((m, n), device="cuda").bfloat16(), t.rand(n, device="cuda").bfloat16() / n
            ws = [t.randint(-128, 128, (n, n), device="cuda", dtype=t.int8) for _ in range(max(1, int(most / n**2) if m < 1024 else 1))]
            ws = [w.t() for w in ws] if along else ws
            bare, calls, errors = itertools.cycle([w.bfloat16() for w in ws]), {}, {}
            want = (x.float() @ ws[0].float()) * s.float()
            for name in self.peers.keys() & layers.keys():
                peer, f = self.peers[name], self.peers[name].jit(layers[name])
                y, z, each = peer.take(x), peer.take(s), itertools.cycle([peer.take(w) for w in ws])
                errors[name] = float((peer.give(f(y, next(each), z)).float() - want).norm() / want.norm())
                calls[name] = lambda f=f, y=y, z=z, each=each: f(y, next(each), z)
            calls["bare"] = lambda: t.mm(x, next(bare))
            times = self.times(calls, 6 if m >= 1024 else 24)
            us = {name: statistics.median(v) for name, v in times.items()}
            out[title] = dict(dtype="int8", m=m, n=n, k=n, aim=1.01 if m >= 1024 else 0.65, us=us, rounds=times, error=errors,
                              tflops=2e-6 * m * n * n / us["bare"])
            say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in us.items()))
            t.cuda.empty_cache()
        return out

    def integers(self):
        """Products of int8 summed in 32 bits, the right operand turned, beside torch._int_mm; right if the error is 0."""
        t, out = self.torch, {}
        for n in (1024, 4096, 8192) if "nvm" in self.peers else ():
            title = f"int8 {n} x {n} x {n} to int32, turned"
            if self.passes(title, 3):
                continue
            n = n // 16 if self.args.try_ else n
            a, b = (t.randint(-128, 128, (n, n), device="cuda", dtype=t.int8) for _ in range(2))
            nvm = self.peers["nvm"]
            f, args = nvm.jit(lambda x, y: nvm.nvm.matmul(x, nvm.nvm.matrix_transpose(y), dtype="int32")), [nvm.take(x) for x in (a, b)]
            calls = {"nvm": lambda f=f, args=args: f(*args), "bare": lambda a=a, b=b: t._int_mm(a, b.t())}
            error = float((nvm.give(calls["nvm"]()) - calls["bare"]()).double().norm())
            times = self.times(calls, 4 if n > 1024 else 20)
            us = {name: statistics.median(v) for name, v in times.items()}
            out[title] = dict(dtype="int8", m=n, n=n, k=n, aim=1.00, us=us, rounds=times, error={"nvm": error}, tflops=2e-6 * n**3 / us["bare"])
            say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in us.items()))
        return out

    def scaled(self):
        """scaled_matmul by what has a scale of its own, where it lies as cuBLASLt takes it; results are bfloat16."""
        t, out = self.torch, {}
        for (m, n, k), kind in itertools.product(SCALED if "nvm" in self.peers else (), SCALES):
            title = f"float8 {m} x {n} x {k}, scales of {kind}"
            if self.passes(title, 4):
                continue
            if self.args.try_:
                m, n, k = max(m // 16, 16), n // 16, k // 16
            try:
                out[title] = self.scaled_by(kind, m, n, k)
                say(f"{title}: " + ", ".join(f"{p} {v:.1f}" for p, v in out[title]["us"].items()))
            except Exception as e:
                say(f"{title}: {type(e).__name__}: {e}")
            t.cuda.empty_cache()
        return out

    def scaled_by(self, kind, m, n, k):
        t, nvm = self.torch, self.peers["nvm"]
        a, b = self.operands("float8_e4m3fn", m, n, k)
        s, r = (t.rand(*shape, device="cuda") + 0.5 for shape in SCALES[kind](m, n, k))
        s = s.t().contiguous().t() if kind.startswith("1 x 128") else s
        r = r if kind.endswith("128 x 1") else r.t().contiguous().t()
        b, x = b.t(), nvm.nvm
        whole = lambda v, to: v.repeat_interleave(to[0] // v.shape[0], 0).repeat_interleave(to[1] // v.shape[1], 1)  # noqa: E731
        want = (a.float() * whole(s, a.shape)) @ (b.float() * whole(r, b.shape))
        f, args = nvm.jit(lambda *v: x.scaled_matmul(*v, dtype="bfloat16")), [nvm.take(v) for v in (a, b, s, r)]
        y, z = a.bfloat16(), b.bfloat16()
        p, q = (s[0, 0], r[0, 0]) if kind == "all" else (s, r)
        calls = {"nvm": lambda: f(*args), "bare": lambda: t._scaled_mm(a, b, p, q, out_dtype=t.bfloat16), "bfloat16": lambda: t.mm(y, z)}
        got = {"nvm": nvm.give(f(*args)), "bare": calls["bare"]()}
        errors = {name: float((v.float() - want).norm() / want.norm()) for name, v in got.items()}
        times = self.times(calls, 4 if m > 1024 else 20)
        us = {name: statistics.median(v) for name, v in times.items()}
        return dict(dtype="float8_e4m3fn", m=m, n=n, k=k, scales=kind, us=us, rounds=times, error=errors, how=x.explain(f, *args),
                    tflops=2e-6 * m * n * k / us["bare"])

    def shape(self, dtype, m, n, k, peers):
        """One product of the grid; "nvm" by the rules, "tuned" by what is measured now."""
        nvm, tf32, eights = self.peers["nvm"].nvm, dtype == "tf32", dtype.startswith("float8")
        operands = self.operands("float32" if tf32 else dtype, m, n, k)
        self.peers["nvm"].precision, self.peers["nvm"].result = "tf32" if tf32 else None, "bfloat16" if eights else None
        peers = {"nvm": self.peers["nvm"]} if eights else peers
        self.torch.backends.cuda.matmul.allow_tf32 = tf32  # what is right is known by a product in float64 then
        nvm.set("tune", "off")
        calls, errors = self.calls("none", operands, peers)
        args = [nvm.from_dlpack(x) for x in ((operands[0], operands[1].t()) if eights else operands)]
        calls["tuned"], how = calls["nvm"], {"nvm": nvm.explain(row("none", self.peers["nvm"])(*args))}
        nvm.set("tune", "estimate")
        before = time.perf_counter()
        with nvm.auto_tune(budget=self.args.tune, progress=False):
            nvm.eval(calls["tuned"]())
        spent = time.perf_counter() - before
        got, want = (self.peers["nvm"].give(calls[x]()).float() for x in ("tuned", "nvm"))
        errors["tuned"] = float((got - want).norm() / want.norm()) + errors["nvm"]
        how["tuned"] = nvm.explain(row("none", self.peers["nvm"])(*args))
        if "jax" in calls:
            calls["tuned, wall"] = calls["tuned"]
        burst = int(max(2, min(40, 1500 / (2 * m * n * k / RATES.get(dtype, 700e6)))))
        times = self.times(calls, burst, 0.03, {"nvm": ("tune", "off"), "tuned": ("tune", "estimate"), "tuned, wall": ("tune", "estimate")})
        us = {name: statistics.median(v) for name, v in times.items()}
        return dict(dtype=dtype, m=m, n=n, k=k, us=us, rounds=times, error=errors, how=how, tuning_seconds=spent, tflops=2e-6 * m * n * k / us["bare"])

    def grid(self, shapes, peers, keep):
        """keep(title, row) of each product."""
        todo = [(dtype, *shape) for dtype, of in shapes.items() for shape in of]
        peers = {name: p for name, p in self.peers.items() if name in peers}
        for dtype, m, n, k in (x for first in range(4) for x in todo[first::4]):
            title = f"{dtype} {m} x {n} x {k}".replace("float", "f")
            if self.passes(title, 4):
                continue
            if self.args.try_:
                m, n, k = (max(x // 16, 8) for x in (m, n, k))
            try:
                r = self.shape(dtype, m, n, k, peers)
                keep(title, r)
                say(f"{title}: " + ", ".join(f"{p} {v:.1f} ({v / r['us']['bare']:.3f})" for p, v in r["us"].items()) + f", {self.left():.0f} s left")
            except Exception as e:
                say(f"{title}: {type(e).__name__}: {e}")
            self.torch.cuda.empty_cache()
        self.torch.backends.cuda.matmul.allow_tf32, self.peers["nvm"].precision, self.peers["nvm"].result = False, None, None

    def host(self):
        """Microseconds until a call returns, and of a call in a row that is waited for; each round on the next processor."""
        calls, _ = self.calls("none", self.operands("bfloat16", 64, 64, 64), self.peers)
        waits = {name: self.peers[name].wait if name in self.peers else self.torch.cuda.synchronize for name in calls}
        returns, row = {name: [] for name in calls}, {name: [] for name in calls}
        with processors() as move:
            for _ in range(32):
                move()
                for name, call in calls.items():
                    row[name].append(slope(call, waits[name], 100))
                    start = time.perf_counter()
                    for _ in range(100):
                        call()
                    returns[name].append((time.perf_counter() - start) * 1e4)
                    waits[name]()
        return {name: dict(returns=statistics.median(returns[name]), in_a_row=statistics.median(row[name])) for name in calls}


# ---- the CPU
CPU_ROWS = {"f32 2048": ("float32", 2048, "none"), "f32 2048 + bias + relu": ("float32", 2048, "relu"), "f64 1024": ("float64", 1024, "none"),
            "f64 1024 + bias + relu": ("float64", 1024, "relu"), "f32 512 + bias + relu": ("float32", 512, "relu")}


def bare_gemm(np, a, b):
    """cblas_?gemm of these into memory that is there."""
    blas, n = ctypes.CDLL("libopenblas.so.0"), a.shape[0]
    d, real = np.empty_like(a), ctypes.c_float if a.dtype == np.float32 else ctypes.c_double
    gemm = blas.cblas_sgemm if a.dtype == np.float32 else blas.cblas_dgemm
    pointer = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, d)]
    blas.openblas_set_num_threads(os.cpu_count())
    return lambda keep=(a, b, d): gemm(101, 111, 111, n, n, n, real(1), pointer[0], n, pointer[1], n, real(0), pointer[2], n)


def cpu(args):
    import numpy as np

    import nvm
    r, out = np.random.default_rng(1), {}
    words = type("words", (), dict(matmul=staticmethod(nvm.matmul), relu=staticmethod(nvm.relu)))
    for title, (dtype, n, tail) in CPU_ROWS.items():
        a, b, c = (r.standard_normal(s).astype(dtype) for s in ((n, n), (n, n), (n,)))
        f = nvm.jit(row(tail, words))
        with nvm.device("cpu"):
            x = [nvm.asarray(v).eval() for v in (a, b, c)]
        calls = {"nvm": lambda: f(*x).eval(), "bare": bare_gemm(np, a, b)}
        want = a.astype("float64") @ b + (c if tail != "none" else 0)
        error = np.linalg.norm(np.asarray(calls["nvm"]()) - (np.maximum(want, 0) if tail == "relu" else want)) / np.linalg.norm(want)
        times = {name: [] for name in calls}
        for _ in range(args.rounds * 3):
            for name in random.sample(list(calls), 2):
                start = time.perf_counter()
                calls[name]()
                times[name].append((time.perf_counter() - start) * 1e3)
        ms = {name: statistics.median(v[1:]) for name, v in times.items()}
        out[title] = dict(dtype=dtype, n=n, tail=tail, ms=ms, ratio=ms["nvm"] / ms["bare"], rounds=times, error=float(error), plan=nvm.explain(f, *x))
        say(f"{title}: nvm {ms['nvm']:.2f} ms, bare {ms['bare']:.2f}, ratio {ms['nvm'] / ms['bare']:.3f}, error {error:.1e}")
    return dict(rows=out, threads=os.cpu_count(), info=nvm.info())


def write(args, machine, /, **sections):
    """Puts these into the file beside what else is in it."""
    path = pathlib.Path(args.o) / f"gemm-{machine.lower().replace(' ', '-')}.json"
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **sections}, indent=1) + "\n")
    return sections


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-o", default=str(HERE / "results"))
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--peers", default="nvm,torch.compile,jax")
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--grid", action="store_true")
    p.add_argument("--f32", action="store_true")
    p.add_argument("--tune", type=float, default=4, help="seconds to tune a product of the grid")
    p.add_argument("--only", default="", help="rows whose names hold this, or one of several texts between commas")
    p.add_argument("--try", dest="try_", action="store_true")
    args = p.parse_args()
    said = dict(date=time.strftime("%Y-%m-%d"), commit=commit(), rounds=args.rounds)
    if args.cpu:
        if args.try_:
            CPU_ROWS.update({k: (t, n // 8, tail) for k, (t, n, tail) in CPU_ROWS.items()})
        device = "cpu-avx512" if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else "cpu"
        result = write(args, device, **said, **cpu(args))
    else:
        g = Gpu(args)
        device = g.torch.cuda.get_device_name()
        said.update(device=device, versions={n: x.version for n, x in g.peers.items()})
        if not args.grid and not args.f32:
            result = write(args, device, **said, host_us=g.host(), rows={**g.rows(), **g.generated(), **g.precisions(), **g.weights(), **g.integers(), **g.scaled()})
        for name, shapes, peers in (("f32", F32, ["nvm"]), ("grid", GRID, PEERS)):
            if getattr(args, name):
                result = dict(said, tune=args.tune, rows={})

                def keep(title, row, name=name):
                    result["rows"][title] = row
                    write(args, device, **{name: result})
                g.grid(shapes, peers, keep)
    for title, r in result["rows"].items():
        t = r.get("us") or r.get("ms")
        print(f"{title:<60}" + "".join(f"{name} {v:.2f} ({v / t['bare']:.3f})  " for name, v in t.items()) + f"error {r['error']}")
    for name, v in result.get("host_us", {}).items():
        print(f"host, 64 x 64 x 64: {name:<16} returns after {v['returns']:.2f} us, {v['in_a_row']:.2f} us in a row")


if __name__ == "__main__":
    main()
