"""Random matrix products with heads and tails, from a seed: the same steps in nvm and in float64, with a bound on how
far the two may be apart. Heads and tails are smooth and change no distance by more than a known factor, so that the
bound of the product (K units of the sums' last place, of the product of absolute values) reaches the end."""

from dataclasses import dataclass, field

import numpy as np

import nvm

EPS = {
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2.0**-53,
    "complex64": 2.0**-24,
    "complex128": 2.0**-53,
}
SUMS = {"float16": "float32", "bfloat16": "float32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}
TINY = {"float8_e4m3fn": 2.0**-10, "float8_e5m2": 2.0**-17, "float16": 2.0**-25}  # half of the smallest number
DTYPES = ["float32"] * 4 + ["float64", "float16", "bfloat16", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
# what a precision adds to the bound, and the terms of the sum that each product is
ADDS = {"ieee": (0, 1), "tf32": (2.0**-10, 1), "bf16x3": (2.0**-15, 3), "bf16x9": (2.0**-24, 6)}
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 65, 100, 129, 256]


def wide(x):
    """What an nvm array or a NumPy array holds, in double precision."""
    x = np.asarray(
        nvm.astype(x, nvm.float32) if isinstance(x, nvm.Array) and x.dtype.kind == "f" and x.dtype.itemsize < 4 else x
    )
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@dataclass
class Gemm:
    text: str = ""
    out: list = field(default_factory=list)  # nvm arrays
    want: list = field(default_factory=list)  # their values in double precision
    bound: list = field(default_factory=list)  # absolute, a number or an array


class Builder:
    def __init__(self, seed):
        self.r, self.precisions = np.random.default_rng(seed), np.random.default_rng(seed + 2**40)
        self.bytes = np.random.default_rng(seed + 2**41)
        self.steps = []

    def choose(self, among):
        return among[int(self.r.integers(len(among)))]

    def say(self, *words):
        self.steps.append(" ".join(str(w) for w in words))

    def leaf(self, shape, dtype):
        x = self.r.standard_normal(shape)
        if dtype.startswith("complex"):
            x = x + 1j * self.r.standard_normal(shape)
        x = nvm.asarray(np.round(4 * x) if dtype == "int8" else x).astype(dtype).eval()
        return x, wide(x)

    def operand(self, name, shape, dtype):
        """A matrix or a batch of them: lying as it is, transposed, a slice of something greater, or something
        repeated; beside 16 bits perhaps of int8."""
        held = "int8" if dtype in ("float16", "bfloat16") and self.bytes.random() < 0.3 else dtype
        how = self.choose(["plain", "plain", "transposed", "sliced", "every second", "turned"])
        rank = len(shape)
        if how == "transposed":
            x, v = self.leaf(shape[:-2] + shape[:-3:-1], held)
            x, v = nvm.matrix_transpose(x), np.swapaxes(v, -1, -2)
        elif how == "sliced":
            x, v = self.leaf(tuple(n + 3 for n in shape), held)
            cut = tuple(slice(int(k), int(k) + n) for k, n in zip(self.r.integers(0, 4, rank), shape))
            x, v = x[cut], v[cut]
        elif how == "every second":
            x, v = self.leaf(shape[:-1] + (2 * shape[-1],), held)
            x, v = x[..., ::2], v[..., ::2]
        elif how == "turned":
            axes = tuple(int(a) for a in self.r.permutation(rank))
            x, v = self.leaf(tuple(shape[a] for a in axes), held)
            back = tuple(int(a) for a in np.argsort(axes))
            x, v = nvm.permute_dims(x, back), np.transpose(v, back)
        else:
            x, v = self.leaf(shape, held)
        x = x if held == dtype else x.astype(dtype)
        self.say(name, "=", held, shape, how)
        error = np.zeros(())
        if self.r.random() < 0.3:  # a head
            head = self.choose(["scale", "add", "negative"] + ([] if dtype.startswith("complex") else ["tanh", "relu"]))
            self.say(name, "=", head + f"({name})")
            x = {
                "scale": lambda: x * 0.75,
                "add": lambda: x + x,
                "negative": lambda: -x,
                "tanh": lambda: nvm.tanh(x),
                "relu": lambda: nvm.relu(x),
            }[head]()
            v = {
                "scale": lambda: v * 0.75,
                "add": lambda: v + v,
                "negative": lambda: -v,
                "tanh": lambda: np.tanh(v),
                "relu": lambda: np.maximum(v, 0),
            }[head]()
            error = 4 * EPS[dtype] * np.abs(v) + TINY.get(dtype, 0)
        return x, v, error

    def tail(self, y, v, bound, dtype):
        """One elementwise step that does not stretch distances, or stretches them as much as the bound."""
        cplx, eps = dtype.startswith("complex"), EPS[SUMS.get(dtype, dtype)]
        what = self.choose(
            ["scale", "bias row", "bias column", "matrix", "twice"]
            + ([] if cplx else ["relu", "gelu", "tanh", "sigmoid"])
        )
        self.say("y =", what)
        if what in ("bias row", "bias column", "matrix"):
            shape = {"bias row": y.shape[-1:], "bias column": y.shape[-2:-1] + (1,), "matrix": y.shape[-2:]}[what]
            c, cv = self.leaf(shape, dtype)
            y, v, factor = y + c, v + cv, 1
        elif what == "scale":
            y, v, factor = y * 0.5, v * 0.5, 0.5
        elif what == "twice":
            y, v, factor = y + y, v + v, 2
        elif what == "gelu":
            y, factor = nvm.gelu(y, approximate=True), 1.2
            v = v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))) / 2
        else:
            y, factor = getattr(nvm, what)(y), 1
            v = {"relu": lambda: np.maximum(v, 0), "tanh": lambda: np.tanh(v), "sigmoid": lambda: 1 / (1 + np.exp(-v))}[
                what
            ]()
        if dtype in SUMS and y.dtype.name == dtype:
            eps = EPS[dtype]  # somebody may round here
        return y, v, factor * bound + 8 * eps * np.abs(v) + TINY.get(y.dtype.name, 0)

    def product(self, a, b, dtype, out):
        """Of (array, values, error) each: the same, with its bound."""
        (x, v, e), (y, w, f) = a, b
        eps = EPS[SUMS.get(dtype, dtype)] * (2 if dtype.startswith("complex") else 1)
        precision = str(self.precisions.choice(list(ADDS))) if dtype in ("float32", "complex64") else "ieee"
        self.say("precision", precision)
        (adds, terms), out = ADDS[precision], {**out, "precision": precision}
        size, value = np.abs(v) @ np.abs(w), v @ w
        bound = ((terms * v.shape[-1] + 4) * eps + 2 * adds) * size
        bound = bound + np.broadcast_to(e, v.shape) @ np.abs(w) + np.abs(v) @ np.broadcast_to(f, w.shape)
        if dtype in SUMS:  # operands and results are rounded
            rounded = 0 if "dtype" in out else 2 * EPS[dtype] * np.abs(value) + TINY.get(dtype, 0)
            bound = bound + 2 * EPS[dtype] * size + rounded
        return nvm.matmul(x, y, **out), value, bound

    def gemm(self):
        g, dtype = Gemm(), self.choose(DTYPES)
        m, k, n = (int(self.choose(EXTENTS)) for _ in range(3))
        batch = self.choose([(), (), (), (3,), (2, 3)])
        mine = batch if self.r.random() < 0.6 else batch[1:]
        other = batch if self.r.random() < 0.6 else tuple(1 if self.r.random() < 0.3 else e for e in batch)
        a, va, ea = self.operand("a", mine + (m, k), dtype)
        b, vb, eb = self.operand("b", other + (k, n), dtype)
        out = {"dtype": "float32"} if dtype in SUMS and self.r.random() < 0.4 else {}
        if self.r.random() < 0.2 and mine == batch and n == m:
            b, vb, eb = nvm.matrix_transpose(a), np.swapaxes(va, -1, -2), np.swapaxes(ea, -1, -2) if ea.ndim else ea
            self.say("b = a transposed")
        y, v, bound = self.product((a, va, ea), (b, vb, eb), dtype, out)
        self.say("y = a @ b", out)
        if self.r.random() < 0.3:  # another with one of the operands: perhaps in the same loop
            if self.r.random() < 0.7:
                c = self.operand("c", other + (k, n), dtype)
                z, w, more = self.product((a, va, ea), c, dtype, out)
                self.say("z = a @ c")
            else:
                c = self.operand("c", mine + (m, k), dtype)
                z, w, more = self.product(c, (b, vb, eb), dtype, out)
                self.say("z = c @ b")
            how = self.choose(["y + z", "output z"] + ([] if dtype.startswith("complex") else ["y * sigmoid(z)"] * 2))
            self.say("y =", how)
            if how == "output z":
                g.out.append(z), g.want.append(w), g.bound.append(more)
            else:
                eps, tiny = EPS[y.dtype.name], TINY.get(y.dtype.name, 0)
                if how == "y + z":
                    y, v, bound = y + z, v + w, bound + more
                else:
                    s = 1 / (1 + np.exp(-w))
                    more = np.minimum(more / 4 + 4 * eps * s + tiny, 1)
                    y, v, bound = y * nvm.sigmoid(z), v * s, bound * (s + more) + np.abs(v) * more
                bound = bound + 8 * eps * np.abs(v) + tiny
        for _ in range(int(self.r.integers(0, 5))):
            y, v, bound = self.tail(y, v, bound, y.dtype.name)
            if self.r.random() < 0.2:
                g.out.append(y), g.want.append(v), g.bound.append(bound)
                self.say("output y")
        if self.r.random() < 0.25 and not y.dtype.name.startswith("complex"):
            what, axis = self.choose(["max", "sum", "min"]), int(self.choose([-1, -2]))
            self.say("y =", what, "over", axis)
            y = getattr(nvm, what)(y, axis=axis)
            size = np.sum(np.abs(v), axis=axis) * EPS[y.dtype.name] * 16
            bound = (np.sum if what == "sum" else np.max)(bound, axis=axis) + size
            v = getattr(np, what)(v, axis=axis)
        elif self.r.random() < 0.2 and dtype == "float32":
            to = self.choose(["float16", "bfloat16", "float64", "float8_e5m2"])
            self.say("y =", to)
            y = y.astype(to)
            bound = bound + 2 * EPS[to] * np.abs(v) + TINY.get(to, 0)
        g.out.append(y), g.want.append(v), g.bound.append(bound)
        g.text = "\n".join(self.steps)
        return g


def gemm(seed):
    return Builder(seed).gemm()


def far(g, values):
    """Why these values of g's outputs are not what they should be; None if they are."""
    for i, (x, want, bound) in enumerate(zip(values, g.want, g.bound)):
        if x.shape != want.shape:
            return f"output {i} has shape {x.shape}, not {want.shape}"
        off = np.abs(x - want) - bound
        if not np.all(off <= 0):
            at = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
            within = np.broadcast_to(bound, x.shape)[at]
            return f"output {i} at {tuple(int(k) for k in at)}: {x[at]!r}, wanted {want[at]!r} within {within!r}"
    return None
