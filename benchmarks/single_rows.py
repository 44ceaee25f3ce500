"""The rows of single.py: each operation as a call of nvm and the same call of NumPy, on arrays of about n elements."""

import warnings

import numpy as np

import nvm

DTYPES = {
    "bool": "b", "uint8": "u", "int32": "i", "int64": "i", "float16": "f", "float32": "f", "float64": "f", "complex64": "c",
    "complex128": "c",
}  # fmt: skip

# Names that nvm and NumPy share, with the kinds of dtypes that are measured.
UNARY = {
    "f": "reciprocal cbrt exp2 expm1 log1p log2 log10 asin acos atan asinh acosh atanh tan sinh cosh ceil floor trunc isfinite "
    "isinf isnan signbit round",
    "fc": "sqrt exp log sin cos tanh",
    "iufc": "abs negative square",
    "iuf": "sign",
    "biu": "bitwise_invert",
    "b": "logical_not",
    "c": "conj",
}
BINARY = {
    "f": "hypot copysign nextafter logaddexp atan2 pow",
    "fc": "divide",
    "iuf": "floor_divide remainder",
    "iufc": "add subtract multiply",
    "buif": "maximum minimum less equal",
    "biu": "bitwise_and bitwise_xor",
    "b": "logical_and logical_or",
    "iu": "bitwise_left_shift bitwise_right_shift",
}
REDUCTIONS = {
    "iufc": "sum prod mean",
    "fi": "std",
    "biuf": "max min argmax argmin all any count_nonzero",
}
NUMPY = {"floor_divide": np.floor_divide, "cumulative_sum": np.cumsum, "cumulative_prod": np.cumprod}


def numbers(rng, dtype, n, low=0.05, high=0.95):
    """Numbers in (low, high), whole numbers from 1 to 99, or both truth values."""
    kind = DTYPES[dtype]
    if kind == "b":
        return rng.random(n) < 0.5
    if kind in "iu":
        return rng.integers(1, 100, n).astype(dtype)
    real = low + (high - low) * rng.random(n)
    return (real + 1j * rng.random(n) if kind == "c" else real).astype(dtype)


def square(n):
    """About n elements as rows and columns of nearly one length."""
    rows = max(int(n**0.5), 1)
    return rows, max(n // rows, 1)


def both(name, *arrays, **kw):
    """A function of one name: nvm's call, NumPy's call."""
    ours, theirs = getattr(nvm, name), NUMPY.get(name) or getattr(np, name)
    own = [nvm.asarray(a) for a in arrays]
    return lambda: ours(*own, **kw).eval(), lambda: theirs(*arrays, **kw)


def listed(name, *arrays, **kw):
    """A function of a list of arrays."""
    ours, theirs, own = getattr(nvm, name), getattr(np, name), [nvm.asarray(a) for a in arrays]
    return lambda: ours(own, **kw).eval(), lambda: theirs(arrays, **kw)


def alike(f, *arrays):
    """An expression of methods and operators: it is the same for nvm and for NumPy."""
    own = [nvm.asarray(a) for a in arrays]
    return lambda: nvm.eval(f(*own)), lambda: f(*arrays)


def apart(ours, theirs, *arrays):
    """Two expressions."""
    own = [nvm.asarray(a) for a in arrays]
    return lambda: nvm.eval(ours(*own)), lambda: theirs(*arrays)


def elementwise(rng, dtype, n):
    kind = DTYPES[dtype]
    x, y = numbers(rng, dtype, n), numbers(rng, dtype, n)
    for kinds, names in UNARY.items():
        for name in names.split() if kind in kinds else ():
            yield name, *both(name, x + x.dtype.type(1) if name == "acosh" else x)
    for kinds, names in BINARY.items():
        for name in names.split() if kind in kinds else ():
            yield name, *both(name, x, y % 7 if "shift" in name else y)
    mask = rng.random(n) < 0.5
    yield "where", *both("where", mask, x, y)
    if kind == "f":
        yield "log of both signs", *both("log", x - x.dtype.type(0.5))
        yield "x ** 1.7", *alike(lambda x: x**1.7, x)
    if kind in "iuf":
        yield "clip", *both("clip", x, x.dtype.type(0.3) * 0 + x[0], x[-1])
        yield "x * 3", *alike(lambda x: x * 3, x)
        yield "x + row", *alike(lambda x, r: x + r, x[: np.prod(square(n))].reshape(square(n)), x[: square(n)[1]])
        yield (
            "x + column",
            *alike(lambda x, c: x + c, x[: np.prod(square(n))].reshape(square(n)), x[: square(n)[0], None]),
        )
    for to in ("float32", "float64", "int32", "uint8"):
        if to != dtype and kind != "c":
            yield (
                f"astype {to}",
                *apart(lambda x, to=to: nvm.astype(x, getattr(nvm, to)), lambda x, to=to: x.astype(to), x),
            )


def reduction(rng, dtype, n):
    kind = DTYPES[dtype]
    x = numbers(rng, dtype, n)
    if kind == "f":
        x = rng.normal(size=n).astype(dtype) if dtype != "float16" else x
    table = x[: np.prod(square(n))].reshape(square(n))
    for kinds, names in REDUCTIONS.items():
        for name in names.split() if kind in kinds else ():
            if name in ("all", "any") and kind != "b":
                continue
            yield name, *both(name, x)
            yield f"{name} axis 0", *both(name, table, axis=0)
            yield f"{name} axis 1", *both(name, table, axis=1)
    if kind == "b":
        for name in ("all", "any"):
            yield f"{name}, undecided", *both(name, np.full(n, name == "all"))
        late = np.full(n, False)
        late[n // 10] = True
        yield "any, decided early", *both("any", late)
    if kind in "fc":
        yield "norm", *apart(nvm.linalg.vector_norm, np.linalg.norm, x)


def scan(rng, dtype, n):
    if DTYPES[dtype] == "b":
        return
    x = numbers(rng, dtype, n)
    table = x[: np.prod(square(n))].reshape(square(n))
    for name in ("cumulative_sum", "cumulative_prod"):
        yield name, *both(name, x, axis=0)
        yield f"{name} axis 0", *both(name, table, axis=0)
        yield f"{name} axis 1", *both(name, table, axis=1)
    if DTYPES[dtype] != "u":
        yield "diff", *both("diff", x)


def written(change):
    """What writes into an array: into a copy of its own on each side, call after call."""

    def call(x, *more):
        change(x, *more)
        return x

    return call


def put(x, i, v):
    x[i] = v


def index(rng, dtype, n):
    x, values = numbers(rng, dtype, n), numbers(rng, dtype, n)
    rows, cols = square(n)
    table = x[: rows * cols].reshape(rows, cols)
    at, some = rng.integers(0, n, n), rng.integers(0, n, max(n // 100, 1))
    order, mask = rng.permutation(rows), rng.random(n) < 0.5
    yield "x[i]", *alike(lambda x, i: x[i], x, at)
    yield "x[i], a hundredth", *alike(lambda x, i: x[i], x, some)
    yield "table[rows]", *alike(lambda x, i: x[i], table, order)
    yield "table[:, columns]", *alike(lambda x, i: x[:, i], table, rng.permutation(cols))
    short = x[: n // 4 * 4].reshape(-1, 4)
    yield "rows of 4", *alike(lambda x, i: x[i], short, rng.integers(0, len(short), len(short)))
    yield "take_along_axis", *both("take_along_axis", table, rng.integers(0, cols, (rows, cols)), axis=1)
    yield "x[mask]", *alike(lambda x, m: x[m], x, mask)
    yield "x[rare mask]", *alike(lambda x, m: x[m], x, rng.random(n) < 0.01)
    yield "nonzero", *apart(nvm.nonzero, np.nonzero, x if dtype == "bool" else x * mask)
    yield "x[i] = v", *alike(written(put), x.copy(), at, values)
    yield "x[i] = v, a hundredth", *alike(written(put), x.copy(), some, values[: len(some)])
    yield "x[mask] = 0", *alike(written(lambda x, m: put(x, m, 0)), x.copy(), mask)
    if DTYPES[dtype] in "iuf":
        yield "searchsorted", *both("searchsorted", np.sort(x), values)


def move(rng, dtype, n):
    x = numbers(rng, dtype, n)
    rows, cols = square(n)
    table = x[: rows * cols].reshape(rows, cols)
    half, left = x[: n // 2], table[:, : cols // 2]
    yield "copy", *apart(lambda x: nvm.asarray(x, copy=True), np.copy, x)
    yield "copy of x[::2]", *apart(lambda x: nvm.asarray(x[::2], copy=True), lambda x: np.copy(x[::2]), x)
    yield "transposed copy", *apart(lambda x: nvm.asarray(x.T, copy=True), lambda x: np.copy(x.T, order="C"), table)
    yield "flipped copy", *apart(lambda x: nvm.asarray(nvm.flip(x), copy=True), lambda x: np.copy(np.flip(x)), x)
    yield "roll", *both("roll", x, 3)
    yield "roll axis 0", *both("roll", table, 3, axis=0)
    yield "roll axis 1", *both("roll", table, 3, axis=1)
    yield "roll of both axes", *both("roll", table, shift=(3, 5), axis=(0, 1))
    yield "concat", *listed("concat", half, half)
    yield "concat axis 1", *listed("concat", left, left, axis=1)
    yield "stack", *listed("stack", half, half)
    yield "stack last", *listed("stack", half, half, axis=-1)
    yield "pad", *both("pad", x, 3)
    yield "pad of two axes", *both("pad", table, 2)
    yield "tile", *apart(lambda x: nvm.tile(x, (2,)), lambda x: np.tile(x, 2), half)
    yield "repeat", *both("repeat", half, 2)
    yield "tril", *both("tril", table)
    shape = rows, cols
    yield (
        "broadcast",
        *apart(
            lambda r: nvm.asarray(nvm.broadcast_to(r, shape), copy=True),
            lambda r: np.broadcast_to(r, shape).copy(),
            table[0],
        ),
    )
    yield "zeros", *apart(lambda: nvm.zeros(n, dtype=getattr(nvm, dtype)), lambda: np.zeros(n, dtype))
    yield "full", *apart(lambda: nvm.full(n, 1, dtype=getattr(nvm, dtype)), lambda: np.full(n, 1, dtype))
    if DTYPES[dtype] in "if":
        yield "arange", *apart(lambda: nvm.arange(n, dtype=getattr(nvm, dtype)), lambda: np.arange(n, dtype=dtype))


def sort(rng, dtype, n):
    if DTYPES[dtype] not in "iuf":
        return
    x = (
        rng.normal(size=n).astype(dtype)
        if DTYPES[dtype] == "f"
        else rng.integers(0, 255 if dtype == "uint8" else 2**31 - 1, n).astype(dtype)
    )
    rows, cols = square(n)
    table = x[: rows * cols].reshape(rows, cols)
    stable = dict(kind="stable")
    yield "sort", *apart(nvm.sort, np.sort, x)
    yield "sort axis 1", *apart(nvm.sort, np.sort, table)
    yield "argsort, stable", *apart(nvm.argsort, lambda x: np.argsort(x, **stable), x)
    yield "argsort axis 1, stable", *apart(nvm.argsort, lambda x: np.argsort(x, axis=-1, **stable), table)
    yield "unique_values", *apart(nvm.unique_values, np.unique_values, x)
    middle = n // 2
    yield "median by sort", *apart(lambda x: nvm.sort(x)[middle], np.median, x)


def product(rng, dtype, n):
    if DTYPES[dtype] not in "fc" or dtype == "float16":
        return
    for m in (3, 8, 30):
        count = max(n // (m * m), 1)
        a, b, v = (numbers(rng, dtype, (count, m, k)) for k in (m, m, 1))
        yield f"batched {m} x {m}", *alike(lambda a, b: a @ b, a, b)
        yield f"batched {m} x {m} by a vector", *alike(lambda a, b: a @ b, a, v)
    tall = numbers(rng, dtype, (max(n // 50, 1), 50))
    w, r = numbers(rng, dtype, 50), numbers(rng, dtype, len(tall))
    yield "tall X @ w", *alike(lambda x, w: x @ w, tall, w)
    yield "X.T @ r", *alike(lambda x, r: x.T @ r, tall, r)
    yield "X.T @ X", *alike(lambda x: x.T @ x, tall)
    rows, cols = square(n)
    table, x = numbers(rng, dtype, (rows, cols)), numbers(rng, dtype, n)
    yield "matrix by vector", *alike(lambda a, v: a @ v, table, table[0])
    yield "vector by matrix", *alike(lambda a, v: v @ a, table, table[:, 0].copy())
    yield "dot", *alike(lambda x, y: x @ y, x, x)
    yield "vecdot", *both("vecdot", table, table)
    yield "outer", *alike(lambda x, y: x[:, None] * y, table[:, 0].copy(), table[0].copy())
    if n <= 1000000:
        yield "matrices", *alike(lambda a: a @ a.T, table)


KINDS = dict(
    elementwise=elementwise, reduction=reduction, scan=scan, index=index, move=move, sort=sort, product=product
)


def rows(n, dtypes, kinds=(), only=()):
    """(kind, name, dtype, nvm's call, NumPy's call)"""
    warnings.simplefilter("ignore")
    for kind, make in KINDS.items():
        for dtype in dtypes if not kinds or kind in kinds else ():
            for name, ours, theirs in make(np.random.default_rng(7), dtype, n):
                if not only or name.startswith(tuple(only)):
                    yield kind, name, dtype, ours, theirs
