"""What the GPU benchmark computes: rows in the words of any array library, and the libraries that compute them.

Every contestant is a class with `name`, `version`, `jit(words -> function)`, `take(torch tensor)` (no copy), `give(result)` as torch
tensors, and `wait()`. On the GPU all of them but JAX run on one stream, so that events of it time them; JAX has streams of its own.
"""
from types import SimpleNamespace as Words

import cpu

RSQRT2 = 0.7071067811865476


def functions(w):
    """The rows: what benchmarks/cpu.py has, and two of the GPU's own."""
    rows = cpu.functions(w, w.exp, w.log, w.sin, w.cos, w.sqrt, w.tanh, w.mean, w.amax, w.total, w.var)

    def black_scholes(s, k, t):
        root = 0.3 * w.sqrt(t)
        d1 = (w.log(s / k) + 0.065 * t) / root
        n1 = 0.5 + 0.5 * w.erf(d1 * RSQRT2)
        n2 = 0.5 + 0.5 * w.erf((d1 - root) * RSQRT2)
        e = k * w.exp(-0.02 * t)
        call = s * n1 - e * n2
        return call, call - s + e

    def ten(x):
        y = x + 1
        for i in range(9):
            y = (y * x, y - 0.5, w.maximum(y, x), y * 0.25)[i % 4]
        return y

    def layernorm0(x):
        d = x - w.mean(x, 1)
        return d / w.sqrt(w.mean(d * d, 1) + 1e-5)

    return dict(rows, black_scholes=black_scholes, ten=ten, layernorm0=layernorm0, rowsum=lambda x: w.total(x, 1),
                transposed=lambda x: x + w.transpose(x), outer=lambda x, y: x * y + x, strided=lambda x: 2.5 * x + 1,
                packed=lambda x: w.packed(2.5 * x + 1))


# name: title, dtype, shapes of the inputs, bytes that must move, aim in units of the floor, bound of the relative error, draws.
# small: a sixteenth of each extent, to try the benchmark where there is no GPU.
def rows(small=False):
    d, v = (16, 1 << 8) if small else (1, 1)
    n26, n27, n28, r, c, k = (1 << 26) // v, (1 << 27) // v, (1 << 28) // v, 16384 // d, 8192 // d, 65536 // d
    f, b = "float32", "bfloat16"
    return dict(
        seed=("sqrt(sin x cos y + exp(-z^2) + log(x + 1)), f32 2^27", f, [(n27,)] * 3, 16 * n27, 0.98, 1e-6, "seed"),
        axpy=("2.5 x + y, f32 2^28", f, [(n28,)] * 2, 12 * n28, 1.00, 1e-6, "normal"),
        gelu=("tanh-gelu(x + bias), bf16 8192 x 16384", b, [(c, r), (r,)], 4 * n27, 1.05, 4e-3, "normal"),
        black_scholes=("Black-Scholes, two outputs, f32 2^26", f, [(n26,)] * 3, 20 * n26, 1.03, 1e-5, "prices"),
        sumsq=("sum((x - y)^2), f32 2^28", f, [(n28,)] * 2, 8 * n28, 0.94, 1e-5, "normal"),
        softmax=("softmax rows, bf16 16384 x 8192", b, [(r, c)], 4 * n27, 1.04, 4e-3, "normal"),
        layernorm=("layernorm with scale and shift, bf16 16384 x 8192", b, [(r, c), (c,), (c,)], 4 * n27, 1.05, 4e-3, "normal"),
        columns=("column mean and variance, f32 65536 x 4096", f, [(k, 4096 // d)], 4 * n28, 0.97, 1e-4, "normal"),
    )


DRAWS = dict(seed=((0, 1.5), (-1.5, 1.5), (-2, 2)), prices=((10, 50), (10, 50), (0.1, 2)))


def draw(torch, kind, dtype, shapes, place, seed=7):
    g = torch.Generator(device=place).manual_seed(seed)
    t = getattr(torch, dtype)
    if kind in DRAWS:
        return [torch.rand(s, generator=g, device=place).mul_(hi - lo).add_(lo).to(t) for s, (lo, hi) in zip(shapes, DRAWS[kind])]
    return [torch.randn(s, generator=g, device=place).to(t) for s in shapes]


def nested(r):
    return list(r) if isinstance(r, (tuple, list)) else [r]


# ---- contestants

class Torch:
    """Eager PyTorch; native: the library's own function for the row where it has one."""
    name = "torch"

    def __init__(self, stream):
        import torch as t
        self.t, self.version = t, t.__version__
        self.words = Words(
            exp=t.exp, log=t.log, sin=t.sin, cos=t.cos, sqrt=t.sqrt, tanh=t.tanh, erf=t.erf, maximum=t.maximum,
            mean=lambda x, a: t.mean(x, dim=a, keepdim=a == 1), amax=lambda x, a: t.amax(x, dim=a, keepdim=True),
            total=lambda x, a: t.sum(x) if a is None else t.sum(x, dim=a, keepdim=True), transpose=lambda x: x.T,
            var=lambda x, a: t.var(x, dim=a, correction=0), packed=t.Tensor.contiguous)
        f = t.nn.functional
        self.natives = dict(softmax=lambda x: f.softmax(x, dim=1), layernorm=lambda x, g, b: f.layer_norm(x, x.shape[1:], g, b),
                            gelu=lambda x, b: f.gelu(x + b, approximate="tanh"), layernorm0=lambda x: f.layer_norm(x, x.shape[1:]))

    def function(self, name):
        return functions(self.words)[name]

    def jit(self, name):
        return self.function(name)

    def take(self, x):
        return x

    def give(self, r):
        return nested(r)

    def wait(self):
        if self.t.cuda.is_available():
            self.t.cuda.synchronize()


class TorchNative(Torch):
    name = "torch native"

    def jit(self, name):
        return self.natives.get(name)


class Compile(Torch):
    name = "torch.compile"
    dynamic = False

    def jit(self, name):
        return self.t.compile(self.function(name), dynamic=self.dynamic)


class CompileNative(Torch):
    name = "compile native"

    def jit(self, name):
        return self.t.compile(self.natives[name], dynamic=False) if name in self.natives else None


class Jax:
    name = "jax"

    def __init__(self, stream):
        import jax
        jax.config.update("jax_enable_x64", True)
        self.jax, self.version, n = jax, jax.__version__, jax.numpy
        self.words = Words(
            exp=n.exp, log=n.log, sin=n.sin, cos=n.cos, sqrt=n.sqrt, tanh=n.tanh, erf=jax.scipy.special.erf, maximum=n.maximum,
            mean=lambda x, a: n.mean(x, axis=a, keepdims=a == 1), amax=lambda x, a: n.max(x, axis=a, keepdims=True),
            total=lambda x, a: n.sum(x, axis=a, keepdims=a is not None), var=lambda x, a: n.var(x, axis=a), transpose=n.transpose,
            packed=lambda x: x)
        self.last = None

    def jit(self, name):
        f = self.jax.jit(functions(self.words)[name])

        def call(*args):
            self.last = f(*args)
            return self.last
        return call

    def take(self, x):
        return self.jax.dlpack.from_dlpack(x)

    def give(self, r):
        import torch
        return [torch.from_dlpack(x) for x in nested(self.jax.block_until_ready(r))]

    def wait(self):
        self.jax.block_until_ready(self.last)


class Cupy:
    name = "cupy"

    def __init__(self, stream):
        import cupy as c
        from cupyx.scipy.special import erf
        self.c, self.version = c, c.__version__
        self.words = Words(
            exp=c.exp, log=c.log, sin=c.sin, cos=c.cos, sqrt=c.sqrt, tanh=c.tanh, erf=erf, maximum=c.maximum,
            mean=lambda x, a: c.mean(x, axis=a, keepdims=a == 1), amax=lambda x, a: c.max(x, axis=a, keepdims=True),
            total=lambda x, a: c.sum(x, axis=a, keepdims=a is not None), var=lambda x, a: c.var(x, axis=a), transpose=c.transpose,
            packed=c.ascontiguousarray)
        self.stream = c.cuda.ExternalStream(stream)
        self.stream.use()

    def jit(self, name):
        return functions(self.words)[name]

    def take(self, x):
        return None if str(x.dtype) == "torch.bfloat16" else self.c.from_dlpack(x)

    def give(self, r):
        import torch
        return [torch.from_dlpack(x) for x in nested(r)]

    def wait(self):
        self.stream.synchronize()


class Nvm:
    name = "nvm"

    def __init__(self, stream):
        import nvm
        self.nvm, self.version = nvm, nvm.__version__
        self.words = Words(
            exp=nvm.exp, log=nvm.log, sin=nvm.sin, cos=nvm.cos, sqrt=nvm.sqrt, tanh=nvm.tanh, erf=nvm.erf, maximum=nvm.maximum,
            mean=lambda x, a: nvm.mean(x, axis=a, keepdims=a == 1), amax=lambda x, a: nvm.max(x, axis=a, keepdims=True),
            total=lambda x, a: nvm.sum(x, axis=a, keepdims=a is not None), var=lambda x, a: nvm.var(x, axis=a),
            transpose=lambda x: x.T, packed=lambda x: x)
        self.stream = nvm.stream(stream, device="cuda:0") if stream else None
        if hasattr(self.stream, "__enter__"):
            self.stream.__enter__()

    def jit(self, name):
        return self.nvm.jit(functions(self.words)[name])

    def take(self, x):
        return self.nvm.from_dlpack(x)

    def give(self, r):
        import torch
        return [torch.from_dlpack(x) for x in nested(r)]

    def wait(self):
        self.nvm.synchronize()


CONTESTANTS = {c.name: c for c in (Nvm, Torch, TorchNative, Compile, CompileNative, Jax, Cupy)}
