"""Every kernel family once: small graphs whose results on a GPU must have the CPU's bits. A table for the tests, and a
program for compute-sanitizer, which needs no pytest:
    python tests/gpu/families.py [name ...]      (-name: all but that one)
NVM_SOLVERS=kernel: products by kernels
"""

import sys

import numpy as np

import nvm


def _f(*shape, seed=1, dtype="float32", lo=-3, hi=3):
    r = np.random.default_rng(seed)
    x = r.uniform(lo, hi, shape)
    dtype = np.dtype(dtype)
    return (x + 1j * r.uniform(lo, hi, shape)).astype(dtype) if dtype.kind == "c" else x.astype(dtype)


def _rare(n):
    """Ordinary numbers with a few among them that functions treat apart."""
    x = _f(n)
    x[::97] = np.resize(
        np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 1e-40, 0.0, -0.0, 88.8, -104.0], np.float32), x[::97].shape
    )
    return x


def _seed(x, y, z):
    return nvm.sqrt(nvm.sin(x) * nvm.cos(y) + nvm.exp(-z * z) + nvm.log(x + 1))


def _layernorm(x, g, b):
    d = x - nvm.mean(x, axis=1, keepdims=True)
    return d / nvm.sqrt(nvm.mean(d * d, axis=1, keepdims=True) + 1e-5) * g + b


def _both(x):
    e = nvm.exp(x * 0.5)
    return e + 1, e * x, nvm.sum(e, axis=1)


def _convolution(x, h):
    return nvm.fft.ifft(nvm.fft.fft(x) * h)


def _drawn(of):
    """A function of x and of draws in the shape and dtype of x, the same in each call."""
    return lambda x: of(x, nvm.random.default_rng(7), x.shape, x.dtype)


def _dropout(x, g, s, t):
    return nvm.where(g.random(s, dtype=t) < 0.5, x, 0)


def _definite(count, n):
    x = _f(count, n, n, dtype="float64")
    return x @ x.swapaxes(1, 2) + n * np.eye(n)


# name: function, inputs
FAMILIES = {
    "map": (lambda x, y: 2.5 * x + y, [_f(5000), _f(5000, seed=2)]),
    "map, odd length": (lambda x, y: 2.5 * x - y * x, [_f(1237), _f(1237, seed=2)]),
    "map, four functions": (_seed, [_f(4099, lo=0, hi=1.5), _f(4099, seed=2), _f(4099, seed=3)]),
    "map, rare arguments": (lambda x: (nvm.sin(x), nvm.exp(x), nvm.log(x), nvm.tanh(x)), [_rare(3000)]),
    "map, rare arguments of f64": (
        lambda x: (nvm.exp(x) * nvm.log(x), nvm.tanh(nvm.sin(x))),
        [np.resize(_rare(3000), 3001).astype("float64")],
    ),
    "map, rare arguments of f64 rows": (
        lambda x: nvm.sum(nvm.exp(x) + nvm.log(x), axis=1),
        [_rare(3030).astype("float64").reshape(30, 101)],
    ),
    "map, f64": (lambda x: nvm.exp(nvm.sin(x)) - x, [_f(2000, dtype="float64")]),
    "map, c64": (lambda x: x * nvm.conj(x) + nvm.exp(x), [_f(777, dtype="complex64")]),
    "map, integers": (lambda x: (x * 3 - 7) // 2 + (x & 5), [np.arange(-1500, 1500, dtype=np.int32)]),
    "map, bytes": (lambda x: x * 2 + 1 > 100, [np.arange(3001).astype(np.uint8)]),
    "map, misaligned": (lambda x: x[1:] * 2 + x[:-1], [_f(4097)]),
    "map, strides": (lambda x: x[::-2, 3:] * 2, [_f(61, 130)]),
    "map, row broadcast": (lambda x, y: x * y + y, [_f(33, 300), _f(300, seed=2)]),
    "map, column broadcast": (lambda x, y: x * y + y, [_f(33, 300), _f(33, 1, seed=2)]),
    "map, outer": (lambda x, y: x * y, [_f(70, 1), _f(1, 130)]),
    "map, several outputs": (lambda x, y: (x + y, x * y, x - y), [_f(900), _f(900, seed=2)]),
    "transforms, several a block": (_convolution, [_f(41, 64, dtype="complex64"), _f(64)]),
    "transforms, one a block": (_convolution, [_f(3, 4096, dtype="complex64"), _f(4096)]),
    "transforms, columns": (
        lambda x, h: nvm.fft.ifft(nvm.fft.fft(x, axis=0) * h, axis=0),
        [_f(64, 72, dtype="complex64"), _f(64, 72)],
    ),
    "transforms, columns beyond a block": (lambda x: nvm.abs(nvm.fft.fft(x, axis=0)), [_f(64, 83, dtype="complex64")]),
    "transforms, f64": (_convolution, [_f(5, 128, dtype="complex128"), _f(128, dtype="float64")]),
    "transpose": (lambda x: x.T * 1, [_f(100, 67)]),
    "transpose and add": (lambda x: x + x.T, [_f(96, 96)]),
    "sum, all": (lambda x: nvm.sum(x), [_f(100000)]),
    "sum, few": (lambda x: nvm.sum(x * x), [_f(100)]),
    "sum, rows of 20": (lambda x: nvm.sum(x, axis=1), [_f(300, 20)]),
    "sum, rows of 1000": (lambda x: nvm.sum(x * 2, axis=1), [_f(40, 1000)]),
    "sum, short, in every block": (lambda a, x: a * (x / nvm.sum(x)), [_f(2400, 3072), _f(3072, seed=2)]),
    "sum, rows of 50000": (lambda x: nvm.sum(x, axis=1), [_f(3, 50000)]),
    "sum, columns": (lambda x: nvm.sum(x, axis=0), [_f(700, 130)]),
    "sum, long columns": (lambda x: nvm.sum(x, axis=0), [_f(20000, 5)]),
    "sum, middle axis": (lambda x: nvm.sum(x, axis=1), [_f(7, 130, 33)]),
    "sum, f64 rows": (lambda x: nvm.sum(x, axis=1), [_f(50, 777, dtype="float64")]),
    "sum, c128": (lambda x: nvm.sum(x), [_f(999, dtype="complex128")]),
    "sum, integers": (lambda x: nvm.sum(x, axis=0), [np.arange(9000, dtype=np.int16).reshape(90, 100)]),
    "prod": (lambda x: nvm.prod(x, axis=1), [_f(20, 300, lo=0.9, hi=1.1)]),
    "extremes": (lambda x: (nvm.max(x, axis=1), nvm.min(x, axis=0)), [_rare(3000).reshape(30, 100)]),
    "logic": (lambda x: (nvm.any(x > 2.9, axis=1), nvm.all(x > -4)), [_f(30, 100)]),
    "argmin": (lambda x: nvm.argmin(x, axis=1), [_f(30, 500)]),
    "argmax, columns": (lambda x: nvm.argmax(x, axis=0), [_f(500, 30)]),
    "argmax, all": (lambda x: nvm.argmax(x), [_f(40000)]),
    "moments, rows": (lambda x: (nvm.mean(x, axis=1), nvm.var(x, axis=1)), [_f(30, 700)]),
    "moments, columns": (lambda x: (nvm.mean(x, axis=0), nvm.var(x, axis=0)), [_f(3000, 40)]),
    "moments, tall columns": (lambda x: (nvm.mean(x, axis=0), nvm.var(x, axis=0)), [_f(8192, 64)]),
    "moments, long rows": (lambda x: nvm.var(x, axis=1), [_f(2, 40000)]),
    "softmax, rows of 33": (lambda x: nvm.softmax(x, axis=1), [_f(200, 33)]),
    "softmax, rows of 1000": (lambda x: nvm.softmax(x, axis=1), [_f(20, 1000)]),
    "softmax, rows of 8192": (lambda x: nvm.softmax(x, axis=1), [_f(4, 8192)]),
    "softmax, rows of 5000": (lambda x: nvm.softmax(x, axis=1), [_f(5, 5000)]),
    "softmax, rows of 20000": (lambda x: nvm.softmax(x, axis=1), [_f(3, 20000)]),  # on a GPU with clusters: one a row
    "softmax, rows of 50000": (lambda x: nvm.softmax(x, axis=1), [_f(3, 50000)]),
    "softmax, rows of 100000": (lambda x: nvm.softmax(x, axis=1), [_f(2, 100000)]),
    "softmax, columns": (lambda x: nvm.softmax(x, axis=0), [_f(300, 70)]),
    "logsumexp": (lambda x: nvm.logsumexp(x, axis=1), [_f(20, 900)]),
    "logsumexp, long": (lambda x: nvm.logsumexp(x, axis=1), [_f(2, 40000)]),
    "layernorm": (_layernorm, [_f(20, 1000), _f(1000, seed=2), _f(1000, seed=3)]),
    "layernorm, f64": (_layernorm, [_f(20, 301, dtype="float64"), _f(301, dtype="float64"), _f(301, dtype="float64")]),
    "layernorm, long": (_layernorm, [_f(2, 60000), _f(60000, seed=2), _f(60000, seed=3)]),
    "rows and maps": (_both, [_f(40, 257)]),
    "scan, rows": (lambda x: nvm.cumulative_sum(x, axis=1), [_f(20, 900)]),
    "scan, columns": (lambda x: nvm.cumulative_sum(x, axis=0), [_f(400, 30)]),
    "scan, long": (lambda x: nvm.cumulative_sum(x), [_f(30000)]),
    "scan, segments": (lambda x: nvm.cumulative_sum(x), [_f(70001)]),
    "scan, segments of few columns": (lambda x: nvm.cumulative_sum(x, axis=0), [_f(66000, 3, dtype="float64")]),
    "scan, segments of maps": (
        lambda x: (nvm.cumulative_sum(nvm.exp(x)) / 3 + x, nvm.cumulative_sum(x * x), -x),
        [_f(70001)],
    ),
    "scan, segments of negative zeros": (lambda x: nvm.cumulative_sum(x), [np.full(65536, -0.0, np.float32)]),
    "scan, segments and sums": (
        lambda x: nvm.sum(nvm.cumulative_sum(x - nvm.mean(x, axis=1, keepdims=True), axis=1)),
        [_f(3, 65600)],
    ),
    "scan, segments of integers": (lambda x: nvm.cumulative_prod(x), [np.full(65537, 3, np.int64)]),
    "scan, integers": (lambda x: nvm.cumulative_prod(x), [np.array([1, 2, 3] * 7)]),
    "concat": (lambda x, y: nvm.concat([x, y * 2, x], axis=1), [_f(30, 17), _f(30, 40)]),
    "pad and roll": (lambda x: nvm.roll(nvm.pad(x, ((1, 2), (3, 4))), 5, axis=1), [_f(20, 33)]),
    "triangles": (lambda x: nvm.tril(x) + nvm.triu(x, k=2), [_f(50, 50)]),
    "take": (lambda x, i: nvm.take(x, i, axis=0) * 2, [_f(50, 64), np.array([3, 49, 0, -1, 7])]),
    "take along": (lambda x, i: nvm.take_along_axis(x, i, axis=1), [_f(20, 30), np.arange(100).reshape(20, 5) % 30]),
    "generators": (lambda x: x + nvm.arange(1000, dtype=nvm.float32) * 0.5, [_f(1000)]),
    "draws, f32": (
        _drawn(lambda x, g, s, t: (x + g.random(s, dtype=t), g.standard_normal(s, dtype=t) - x)),
        [_f(5003)],
    ),
    "draws, f64": (_drawn(lambda x, g, s, t: x * g.standard_normal(s, dtype=t)), [_f(3001, dtype="float64")]),
    "draws, f64 sums": (
        lambda x: nvm.sum(nvm.exp(nvm.random.default_rng(7).standard_normal(70001) * x)),
        [np.float64(0.5).reshape(())],
    ),
    "draws, integers": (_drawn(lambda x, g, s, t: x + g.integers(0, 1000, s)), [np.arange(3001)]),
    "draws, dropout": (_drawn(_dropout), [_f(30, 256)]),
    "draws, dropout of odd rows": (_drawn(_dropout), [_f(31, 101)]),
    "draws, dropout of a part": (_drawn(lambda x, g, s, t: _dropout(x, g, s, t)[1:, 3:] * 2), [_f(30, 64)]),
    "draws, dropout and a row": (
        lambda x, b: nvm.where(nvm.random.default_rng(7).random(x.shape, dtype=x.dtype) < 0.5, x + b, 0),
        [_f(30, 256), _f(256, seed=2)],
    ),
    "draws, softmax": (_drawn(lambda x, g, s, t: nvm.softmax(_dropout(x, g, s, t), axis=1)), [_f(9, 1000)]),
    "draws, sum of rows": (_drawn(lambda x, g, s, t: nvm.sum(g.random(s, dtype=t) + x, axis=1)), [_f(40, 516)]),
    "draws, sum of columns": (_drawn(lambda x, g, s, t: nvm.sum(g.random(s, dtype=t) + x, axis=0)), [_f(516, 40)]),
    "draws, sum of all": (
        lambda x: nvm.sum(nvm.exp(nvm.random.default_rng(7).standard_normal(70001, dtype="float32") * x)),
        [np.float32(0.5).reshape(())],
    ),
    "stencil": (lambda x: x[1:-1, 1:-1] * -4 + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:], [_f(65, 90)]),
    "empty": (lambda x: x * 2 + 1, [_f(0, 5)]),
    "one element": (lambda x: nvm.sqrt(x * x), [np.float32(2.5).reshape(())]),
    "int8 product": (
        lambda x, y: nvm.matmul(x, y.T, dtype="int32") + 1,
        [
            (np.arange(72 * 64) % 255 - 127).astype(np.int8).reshape(72, 64),
            (np.arange(200 * 64) % 253 - 127).astype(np.int8).reshape(200, 64),
        ],
    ),
    "sort, rows that lanes hold": (
        lambda x: (nvm.sort(x, axis=1), nvm.argsort(x, axis=1)),
        [_rare(1000).reshape(100, 10)],
    ),
    "sort, rows of a warp": (
        lambda x: (nvm.sort(x, axis=1), nvm.argsort(x, axis=1, descending=True)),
        [_rare(3000).reshape(10, 300)],
    ),
    "sort, rows of a block": (lambda x: (nvm.sort(x, axis=1), nvm.argsort(x, axis=1)), [_rare(15000).reshape(3, 5000)]),
    "sort, rows of f64": (lambda x: (nvm.sort(x, axis=1), nvm.argsort(x, axis=1)), [_f(2, 2000, dtype="float64")]),
    "sort, columns": (
        lambda x: nvm.argsort(x * 1, axis=0),
        [np.arange(3000, dtype=np.uint16).reshape(300, 10) * 7 % 50],
    ),
    "sort, passes": (lambda x: (nvm.sort(x), nvm.argsort(x)), [_rare(20000)]),
    "sort, passes of rows of f64": (
        lambda x: (nvm.sort(x, axis=1), nvm.argsort(x, axis=1)),
        [_f(2, 10000, dtype="float64")],
    ),
    "sort, one pass of bytes": (
        lambda x: (nvm.sort(x), nvm.argsort(x)),
        [(np.arange(20000) * 7 % 251).astype(np.uint8)],
    ),
    "many dimensions": (lambda x: nvm.permute_dims(x, (4, 0, 3, 1, 2)) + 1, [_f(3, 4, 5, 6, 7)]),
}
# A 16-bit result may differ from the CPU's by the last bit where the device has an instruction for it, a product by
# what the library or the kernel that makes it does.
HALVES = {
    "f32 product": (lambda x, y: x @ y, "float32", [_f(40, 65), _f(65, 33)]),
    "f16 product, odd sides": (lambda x, y: x @ y, "float16", [_f(33, 71), _f(71, 65)]),
    "f16 product, both turned": (lambda x, y: x.T @ y.T, "float16", [_f(72, 136), _f(200, 72)]),
    "bf16 product": (lambda x, y: x @ y, "bfloat16", [_f(72, 72), _f(72, 136)]),
    "bf16 products of one operand": (
        lambda x, y, z: nvm.maximum(x @ y, x @ z),
        "bfloat16",
        [_f(136, 72), _f(72, 200), _f(72, 200)],
    ),
    "bf16 product, batch and tail": (
        lambda x, y, b, r: nvm.relu(x @ y) * b * r,
        "bfloat16",
        [_f(2, 200, 264), _f(264, 136), _f(136), _f(2, 200, 136)],
    ),
    "tf32 product": (
        lambda x, y: nvm.matmul(nvm.astype(x, "float32"), nvm.astype(y, "float32"), precision="tf32"),
        "bfloat16",
        [_f(72, 40), _f(40, 136)],
    ),
    "tf32 product, left turned": (
        lambda x, y: nvm.matmul(nvm.astype(x.T, "float32"), nvm.astype(y.T, "float32"), precision="tf32"),
        "bfloat16",
        [_f(40, 200), _f(136, 40)],
    ),
    "tf32 product, large tiles": (
        lambda x, y: nvm.matmul(nvm.astype(x, "float32"), nvm.astype(y, "float32"), precision="tf32"),
        "bfloat16",
        [_f(520, 96), _f(96, 264)],
    ),
    "bf16 product, argmin of rows": (
        lambda x, y: nvm.argmin(x @ y, axis=1),
        "bfloat16",
        [np.round(_f(200, 64)), np.round(_f(64, 520))],
    ),
    "bf16 product, sums of rows": (
        lambda x, y: nvm.sum(x @ y, axis=1),
        "bfloat16",
        [np.round(_f(200, 64)), np.round(_f(64, 520))],
    ),
    "f64 product": (lambda x, y: nvm.tanh(x @ y), "float64", [_f(72, 40), _f(40, 136)]),
    "f16 map": (lambda x, y: 2.5 * x + y, "float16", [_f(5000), _f(5000, seed=2)]),
    "bf16 map": (lambda x, y: 2.5 * x + y, "bfloat16", [_f(5000), _f(5000, seed=2)]),
    "bf16 gelu": (lambda x, y: nvm.gelu(x + y, approximate=True), "bfloat16", [_f(30, 256), _f(256, seed=2)]),
    "bf16 softmax": (lambda x: nvm.softmax(x, axis=1), "bfloat16", [_f(16, 1024)]),
    "f16 softmax": (lambda x: nvm.softmax(x, axis=1), "float16", [_f(16, 333)]),
    "bf16 layernorm": (_layernorm, "bfloat16", [_f(16, 1024), _f(1024, seed=2), _f(1024, seed=3)]),
    "bf16 sum": (lambda x: nvm.sum(x, axis=1), "bfloat16", [_f(16, 3000)]),
    "f16 sum of columns": (lambda x: nvm.sum(x, axis=0), "float16", [_f(500, 64)]),
}

# name: function, NumPy's of the same, inputs; with cuSOLVER, which the project's own kernel stands in for
MATRICES = {
    "small matrices, factors": (nvm.linalg.cholesky, np.linalg.cholesky, [_definite(40, 7)]),
    "small matrices, solutions": (
        nvm.linalg.solve,
        np.linalg.solve,
        [_definite(13, 9), _f(13, 9, 21, dtype="float64")],
    ),
    "small matrices, inverses": (nvm.linalg.inv, np.linalg.inv, [_definite(5, 17)]),
    "small matrices, singular values": (
        nvm.linalg.svdvals,
        lambda x: np.linalg.svd(x, compute_uv=False),
        [_f(9, 5, 12, dtype="float64")],
    ),
    "small matrices, Q and R": (nvm.linalg.qr, np.linalg.qr, [_f(9, 12, 5, dtype="float64")]),
    "small matrices, R": (
        lambda x: nvm.linalg.qr(x, mode="r"),
        lambda x: np.linalg.qr(x, mode="r"),
        [_f(3, 5, 17, dtype="float64")],
    ),
    "small matrices, eigenvalues": (nvm.linalg.eigvalsh, np.linalg.eigvalsh, [_definite(9, 12)]),
    "small matrices, eigenvectors": (
        lambda x: abs(nvm.linalg.eigh(x)[1]),  # their signs are anybody's
        lambda x: abs(np.linalg.eigh(x)[1]),
        [_definite(5, 9)],
    ),
    "half of a product": (lambda x: x @ x.T, lambda x: x @ x.T, [_f(2048, 2048, dtype="float64")]),
}


def nested(r):
    return list(r) if isinstance(r, (tuple, list)) else [r]


def run(function, inputs, device, dtype=None):
    """The results as NumPy arrays (16-bit floats: as float32), computed on a device."""
    args = [nvm.asarray(x, device=device) for x in inputs]
    if dtype:
        args = [nvm.astype(x, getattr(nvm, dtype)) for x in args]
        nvm.eval(*args)
    out = nested(function(*args))
    return [np.asarray(nvm.astype(r, nvm.float32) if dtype else r) for r in out]


def same(a, b):
    """Equal bits, NaN with NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        part = a.real.dtype
        a, b = np.ascontiguousarray(a).view(part), np.ascontiguousarray(b).view(part)
    if a.dtype.kind != "f":
        return bool((a == b).all())
    bits = f"u{a.dtype.itemsize}"
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return bool(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all())


def near(a, b, dtype):
    """At most one unit of the last place of a 16-bit type apart, some units of f32."""
    unit, least = {
        "float16": (2.0**-10, 2.0**-14),
        "bfloat16": (2.0**-7, 2.0**-14),
        "float32": (2.0**-20, 16),
        "float64": (2.0**-22, 1),
    }[dtype]
    return a.shape == b.shape and bool((np.abs(a - b) <= unit * np.maximum(np.abs(b), least)).all())


def main(names):
    bad, without = 0, {n[1:] for n in names if n[0] == "-"}
    names = set(names) - {"-" + n for n in without} or {*FAMILIES, *HALVES, *MATRICES} - without
    for name, (f, inputs) in FAMILIES.items():
        if name in names:
            with np.errstate(all="ignore"):
                ok = all(map(same, run(f, inputs, "cuda:0"), run(f, inputs, "cpu")))
            bad += not ok
            if not ok:
                print(f"{name}: the bits differ from the CPU's")
    for name, (f, dtype, inputs) in HALVES.items():
        if name in names:
            ok = all(near(a, b, dtype) for a, b in zip(run(f, inputs, "cuda:0", dtype), run(f, inputs, "cpu", dtype)))
            bad += not ok
            if not ok:
                print(f"{name}: more than one unit from the CPU's")
    for name, (f, g, inputs) in MATRICES.items():
        if name in names:
            ok = all(
                np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in zip(run(f, inputs, "cuda:0"), nested(g(*inputs)))
            )
            bad += not ok
            if not ok:
                print(f"{name}: not NumPy's values")
    print(f"families: {len(names)}, wrong: {bad}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
