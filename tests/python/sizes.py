"""Random programs whose structure does not depend on their sizes: a seed chooses the operations, and each set of sizes
runs the same ones. Dimensions are labels, which a set of sizes gives numbers."""

import numpy as np

import nvm

DTYPES = ["float32", "float32", "float64", "int32"]
UNARY = ["abs", "negative", "square", "exp", "tanh", "floor"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "less", "divide"]
REDUCE = ["sum", "max", "min", "mean", "var", "any", "prod"]
MOST = 60000  # elements of a value


class Sizes:
    """The sizes of one run: labels get numbers at their first use. Four runs after each other have sizes of the same
    classes, of which they are anything: the ends, or between."""

    def __init__(self, run, ladder):
        self.first, self.rng = np.random.default_rng(run // 4), np.random.default_rng(run)
        self.of = {}
        self.ladder = ladder

    def choose(self, ladder):
        high = 1 << int(self.first.choice(ladder) - 1).bit_length()
        low = high // 2 + 1
        return int([low, high, *self.rng.integers(low, high + 1, 3)][self.rng.integers(5)])

    def __getitem__(self, label):
        if isinstance(label, tuple):  # a number made of others
            kind, *parts = label
            x = [self[p] if isinstance(p, (str, tuple)) else p for p in parts]
            made = {"less": lambda: x[0] - x[1], "sum": lambda: sum(x), "times": lambda: x[0] * x[1], "one": lambda: 1}
            made["half"] = lambda: (x[0] + 1) // 2
            return made[kind]()
        if label not in self.of:
            self.of[label] = self.choose(self.ladder[len(label) % len(self.ladder)])
        return self.of[label]

    def shape(self, dims):
        return tuple(self[d] for d in dims)

    def below(self, name, label):
        """A number from 0 to below that size, of its own name."""
        return self[name] % max(1, self[label])


class Program:
    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.steps, self.dims, self.small = [], [], []
        self.n = 0
        labels = ["n", "mm"][: 1 + rng.integers(2)]
        for _ in range(2 + rng.integers(2)):
            dims = tuple(d for d in labels if rng.integers(4)) or (labels[0],)
            self.add("leaf", dims, dtype=str(rng.choice(DTYPES)), how=int(rng.integers(5)))
        for _ in range(3 + rng.integers(9)):
            self.grow()
        self.outs = [len(self.dims) - 1] + [int(rng.integers(len(self.dims))) for _ in range(rng.integers(3))]

    def add(self, what, dims, **args):
        self.steps.append((what, args))
        self.dims.append(tuple(dims))

    def fresh(self):
        self.n += 1
        return "s" * (1 + int(self.rng.integers(3))) + str(self.n)

    def pick(self, least=0):
        for _ in range(9):
            i = max(int(self.rng.integers(len(self.dims))) for _ in range(2))
            if len(self.dims[i]) >= least:
                return i
        return None

    def alike(self, dims):
        """A value that broadcasts to these dimensions, or they to it."""
        for _ in range(9):
            j = int(self.rng.integers(len(self.dims)))
            other = self.dims[j]
            k = min(len(other), len(dims))
            if other[len(other) - k :] == tuple(dims)[len(dims) - k :]:
                return j
        return None

    def grow(self):
        rng = self.rng
        kind = int(rng.integers(14))
        x = self.pick(0 if kind < 5 else 1)
        if x is None:
            return
        dims = self.dims[x]
        axis = int(rng.integers(len(dims))) if dims else 0
        if kind < 2:
            self.add("unary", dims, x=x, f=str(rng.choice(UNARY)))
        elif kind < 4:
            y = self.alike(dims)
            if y is not None:
                self.add("binary", max(dims, self.dims[y], key=len), x=x, y=y, f=str(rng.choice(BINARY)))
        elif kind == 4:
            self.add("number", dims, x=x, f=str(rng.choice(BINARY[:5])), by=float(rng.integers(-2, 5)) / 2)
        elif kind < 7:
            keep = bool(rng.integers(2))
            left = dims[:axis] + ((("one",),) if keep else ()) + dims[axis + 1 :]
            self.add("reduce", left, x=x, f=str(rng.choice(REDUCE)), axis=axis, keep=keep)
            if keep and rng.integers(2):  # x meets its own reduction
                self.add("binary", dims, x=x, y=len(self.dims) - 1, f=str(rng.choice(BINARY)))
        elif kind < 9:
            cut = self.fresh()
            how = int(rng.integers(4))
            length = [("less", dims[axis], 1), ("less", dims[axis], 1), dims[axis], ("half", dims[axis])][how]
            self.add("slice", dims[:axis] + (length,) + dims[axis + 1 :], x=x, axis=axis, how=how, name=cut)
        elif kind == 9:
            a, b = self.fresh(), self.fresh()
            long = ("sum", dims[axis], a, b)
            self.add("pad", dims[:axis] + (long,) + dims[axis + 1 :], x=x, axis=axis, a=a, b=b)
        elif kind == 10:
            self.add("roll", dims, x=x, axis=axis, name=self.fresh())
        elif kind == 11:
            y = self.alike(dims)
            if y is not None and len(self.dims[y]) == len(dims) and dims[:axis] == self.dims[y][:axis]:
                long = ("sum", dims[axis], self.dims[y][axis])
                if dims[axis + 1 :] == self.dims[y][axis + 1 :]:
                    self.add("concat", dims[:axis] + (long,) + dims[axis + 1 :], x=x, y=y, axis=axis)
        elif kind == 12 and len(dims) == 2:
            if rng.integers(2):
                self.add("transpose", dims[::-1], x=x)
            else:
                self.add("flat", (("times", *dims),), x=x)
        elif rng.integers(2):
            self.add("scan", dims, x=x, axis=axis)
        else:
            self.add("write", dims, x=x, axis=axis, name=self.fresh())

    def leaf(self, sizes, dims, dtype, how, seed):
        """A view of a larger array: from an offset, with a step, backwards or transposed."""
        shape = sizes.shape(dims)
        whole = tuple(s * 2 + 3 for s in shape)
        rng = np.random.default_rng(seed)
        data = rng.integers(-9, 10, whole) if dtype == "int32" else np.trunc(rng.standard_normal(whole) * 64) / 32
        x = nvm.asarray(data.astype(dtype))
        at = [sizes.below("off" + str(d), label) for d, label in enumerate(dims)]
        if how == 4 and len(shape) == 2:
            return nvm.asarray(np.ascontiguousarray(data.astype(dtype).T)).T[tuple(slice(0, s) for s in shape)]
        cut = {
            0: lambda s, a: slice(0, s),
            1: lambda s, a: slice(a, a + s),
            2: lambda s, a: slice(0, 2 * s, 2),
            3: lambda s, a: slice(s - 1, None, -1) if a % 2 else slice(a, a + s),
            4: lambda s, a: slice(1, 1 + s),
        }[how]
        return x[tuple(cut(s, a) for s, a in zip(shape, at))]

    def run(self, sizes):
        """The outputs, not evaluated; None if some value were too large or empty."""
        done = []
        for i, ((what, a), dims) in enumerate(zip(self.steps, self.dims)):
            shape = sizes.shape(dims)
            if any(s < 1 for s in shape) or np.prod(shape) > MOST:
                return None
            x = done[a["x"]] if "x" in a else None
            done.append(self.value(sizes, what, a, x, done, dims, i))
            assert done[-1].shape == shape, (what, a, done[-1].shape, shape)
        return [done[i] for i in self.outs]

    def value(self, sizes, what, a, x, done, dims, i):
        if what == "leaf":
            return self.leaf(sizes, dims, a["dtype"], a["how"], i)
        if what == "unary":
            return getattr(nvm, a["f"])(x.astype("float32") if a["f"] in ("exp", "tanh", "floor") else x)
        if what == "binary":
            return getattr(nvm, a["f"])(x, done[a["y"]])
        if what == "number":
            return getattr(nvm, a["f"])(x, a["by"])
        axis = a.get("axis", 0)
        if what == "reduce":
            return getattr(nvm, a["f"])(x, axis=axis, keepdims=a["keep"])
        if what == "slice":
            at = [slice(None)] * x.ndim
            n = x.shape[axis]
            at[axis] = [slice(1, n), slice(0, n - 1), slice(None, None, -1), slice(0, n, 2)][a["how"]]
            return x[tuple(at)]
        if what == "pad":
            width = [(0, 0)] * x.ndim
            width[axis] = (sizes[a["a"]], sizes[a["b"]])
            return nvm.pad(x, width)
        if what == "roll":
            return nvm.roll(x, sizes[a["name"]], axis=axis)
        if what == "concat":
            return nvm.concat([x, done[a["y"]]], axis=axis)
        if what == "transpose":
            return x.T
        if what == "flat":
            return nvm.reshape(x, (-1,))
        if what == "scan":
            return nvm.cumulative_sum(x, axis=axis)
        n = x.shape[axis]
        at = [slice(None)] * x.ndim
        lo = sizes[a["name"]] % n
        at[axis] = slice(lo, max(lo + 1, n - 1))
        y = nvm.asarray(x) + 0
        y[tuple(at)] = y[tuple(at)] * 2
        return y


# Sizes of the classes, by the length of a label: 1 and 2, those of tiles and vectors, some that are split, equal ones.
LADDERS = [
    [[64], [64, 32], [2, 4]],
    [[16], [256], [8]],
    [[1, 2, 4], [1, 2, 8, 64], [1, 2]],
    [[2048], [4], [32]],
    [[16, 32], [16, 32], [1, 16]],
    [[16384, 32768], [2, 4], [2, 4]],
    [[8192], [8192], [1024]],
]
