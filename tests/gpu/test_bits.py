"""The same bits on the GPU as on the CPU: kernel families, the whole table of operations, fused or not, and again and
again."""

import numpy as np
import pytest

import families
import nvm
import refs
import test_ops


@pytest.mark.emulated
@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_family(name, device):
    f, inputs = families.FAMILIES[name]
    for i, (got, want) in enumerate(zip(families.run(f, inputs, device), families.run(f, inputs, "cpu"))):
        assert families.same(got, want), (name, i, got, want)


@pytest.mark.emulated
@pytest.mark.parametrize("name", list(families.HALVES))
def test_half_family(name, device):
    f, dtype, inputs = families.HALVES[name]
    for got, want in zip(families.run(f, inputs, device, dtype), families.run(f, inputs, "cpu", dtype)):
        assert families.near(got, want, dtype), (name, got, want)


@pytest.mark.emulated
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
@pytest.mark.parametrize("find, ref", [(nvm.argmin, np.argmin), (nvm.argmax, np.argmax)])
def test_the_first_of_equals(find, ref, dtype, device, rng):
    """Ties, zeros of either sign, NaN, nothing but infinity; a thread takes elements one by one, and many at once."""
    for n, rows in ((3, 40), (300, 37), (5000, 9)):
        few = rng.choice([-1.0, -0.0, 0.0, 1.0, 2.0], (rows, n))
        if dtype != "int32":
            few[::3] = rng.choice([np.inf, -np.inf, np.nan], few[::3].shape, p=[0.7, 0.28, 0.02])
            few[1] = np.inf if ref is np.argmin else -np.inf
        few[2], few[4] = rng.choice([0.0, -0.0], (2, n))
        x = nvm.asarray(few.astype("int32" if dtype == "int32" else "float64"), device=device).astype(dtype)
        assert np.array_equal(np.asarray(find(x, axis=1)), ref(few, axis=1)), n
        assert np.array_equal(np.asarray(find(x, axis=0)), ref(few, axis=0)), n


def both(f, inputs, device):
    """f over arrays on the GPU and on the CPU, as NumPy."""
    return [np.asarray(f(*[nvm.asarray(x, device=d) for x in inputs])) for d in (device, "cpu")]


def equal(f, inputs, device, what, halves):
    got, want = both(f, inputs, device)
    if halves and got.dtype == np.float16:
        test_ops.close(got, want, 1, what)
    else:
        assert families.same(got, want), (what, got, want)


@pytest.mark.parametrize("name,dtype", test_ops.CASES)
def test_map(name, dtype, device, rng):
    m = refs.MAPS[name]
    args = [test_ops.draw(rng, dtype, (33, 17), m.lo, m.hi) for _ in range(m.nin)]
    if np.dtype(dtype).kind in "fc" and m.special:
        for a in args:
            a.flat[::7] = np.resize(np.array(test_ops.SPECIALS), a.flat[::7].shape).astype(dtype)
    f = getattr(nvm, name)
    equal(lambda *a: f(*a, **m.attrs), args, device, (name, dtype), dtype == "float16")
    equal(lambda *a: f(*[x[1:, ::-2] for x in a], **m.attrs), args, device, (name, dtype, "view"), dtype == "float16")


@pytest.mark.parametrize("name", [n for n, m in refs.MAPS.items() if "float32" in m.takes])
def test_map_over_its_range(name, device, rng):
    """Arguments of every exponent: the rare paths of all functions, in f32 and f64."""
    m = refs.MAPS[name]
    for dtype in ("float32", "float64"):
        bits = np.dtype(dtype).itemsize * 8
        args = [rng.integers(0, 1 << 63, 40000, dtype=np.uint64).astype(f"u{bits // 8}") * 2 + 1 for _ in range(m.nin)]
        equal(getattr(nvm, name), [a.view(dtype) for a in args], device, (name, dtype), False)


@pytest.mark.emulated
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "exp2", "tanh", "sigmoid", "silu", "gelu", "gelu, tanh"])
def test_every_half(name, dtype, device):
    """Shorter forms that results of 16 bits allow: at most a unit from what a CPU gives, for all inputs."""
    x = np.arange(1 << 16, dtype=np.uint32)
    x = x.astype(np.uint16).view(np.float16).astype(np.float32) if dtype == "float16" else (x << 16).view(np.float32)
    f = (lambda a: nvm.gelu(a, approximate=True)) if "," in name else getattr(nvm, name)
    got, want = both(lambda a: f(nvm.astype(a, dtype)).astype("float32"), [x], device)
    there = ~np.isnan(want)
    assert np.array_equal(~np.isnan(got), there) and np.array_equal(np.signbit(got[there]), np.signbit(want[there]))
    steps = [
        y.astype(np.float16).view(np.int16) if dtype == "float16" else (y.view(np.int32) >> 16).astype(np.int16)
        for y in (got, want)
    ]
    steps = [np.where(s < 0, -32768 - s.astype(np.int32), s) for s in steps]
    off = np.where(there, np.abs(steps[0] - steps[1]), 0)
    assert off.max() <= 1, (x[off.argmax()], got[off.argmax()], want[off.argmax()], off.max())


def same_bits(torch, got, want):
    bits = torch.int32 if want.dtype == torch.float32 else torch.int64
    return bool(((got.view(bits) == want.view(bits)) | (torch.isnan(got) & torch.isnan(want))).all())


@pytest.mark.parametrize("name", ["sqrt", "reciprocal"])
def test_every_f32(name, torch):
    """Square roots and reciprocals are the device's approximation and corrections, but for what they flag: against its
    own correctly rounded instructions, over all inputs."""
    ours, theirs = nvm.jit(getattr(nvm, name)), getattr(torch, name)
    for start in range(-1 << 31, 1 << 31, 1 << 28):
        x = torch.arange(start, start + (1 << 28), dtype=torch.int32, device="cuda").view(torch.float32)
        assert same_bits(torch, torch.from_dlpack(ours(nvm.from_dlpack(x))), theirs(x)), start


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients(dtype, torch):
    """Random bits, and quotients near 1, near ties and at both ends of the range."""
    bits, one, mantissa = {
        "float32": (torch.int32, 127 << 23, (1 << 23) - 1),
        "float64": (torch.int64, 1023 << 52, (1 << 52) - 1),
    }[dtype]
    n, g = 1 << 26, torch.Generator("cuda").manual_seed(7)
    draw = lambda: torch.randint(-1 << 31, 1 << 31, (n * 2,), generator=g, device="cuda", dtype=torch.int64)
    words = [draw().to(torch.int32).view(bits) for _ in range(2)]
    words = [w[:n] for w in words]
    near = [((w & mantissa) | one).view(getattr(torch, dtype)) for w in words]
    whole = [(w & 0xFFF).to(getattr(torch, dtype)) for w in words]
    a, b = (w.view(getattr(torch, dtype)) for w in words)
    f = nvm.jit(lambda x, y: x / y)
    for x, y in (
        (a, b),
        near,
        (near[0] * near[1], near[1]),
        whole,
        (near[0], b),
        (a, near[1]),
        (a * 1e-30, near[1]),
        (near[0] * 2**-100, b),
    ):
        assert same_bits(torch, torch.from_dlpack(f(nvm.from_dlpack(x), nvm.from_dlpack(y))), x / y)


@pytest.mark.parametrize("name,dtype", test_ops.REDUCED)
def test_reduction(name, dtype, device, rng):
    r = refs.REDUCTIONS[name]
    f = getattr(nvm, name)
    for shape in ((7,), (33, 40), (2, 3, 4), (3000,), (5, 1500)):
        x = test_ops.draw(rng, dtype, shape, *((0.9, 1.1) if name == "prod" else ()))
        for axis in [None, *range(x.ndim)] + ([] if r.one_axis or x.ndim < 2 else [(0, 1)]):
            equal(lambda a: f(a, axis=axis), [x], device, (name, dtype, shape, axis), dtype == "float16")


@pytest.mark.parametrize(
    "length", [1, 2, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 2049, 5000, 16384, 16385, 50000, 200000]
)
@pytest.mark.parametrize("name", ["sum", "var", "logsumexp", "softmax", "argmax", "cumulative_sum"])
def test_row_lengths(name, length, device, rng):
    """Every way to cut a row: lanes, warps, blocks, several blocks; and the same rows as columns."""
    x = rng.standard_normal((max(1, min(60, 60000 // length)), length)).astype(np.float32)
    f = getattr(nvm, name)
    equal(lambda a: f(a, axis=1), [x], device, (name, length), False)
    equal(lambda a: f(a, axis=0), [np.ascontiguousarray(x.T)], device, (name, length, "columns"), False)


ROWS = {
    "softmax": lambda x: nvm.softmax(x, axis=-1),
    "log_softmax": lambda x: nvm.log_softmax(x, axis=-1),
    "var": lambda x: nvm.var(x, axis=-1),
    "sum": lambda x: nvm.sum(x, axis=-1),
    "any": lambda x: nvm.any(x > 3, axis=-1),
    "argmax": lambda x: nvm.argmax(x, axis=-1),
    "columns": lambda x: nvm.sum(x, axis=0),
    "map": lambda x: nvm.exp(x) + x,
    "by the least": lambda x: (x - nvm.min(x, axis=-1, keepdims=True)) * nvm.sum(x * x, axis=-1, keepdims=True),
    "standard": lambda x: (x - nvm.mean(x, axis=-1, keepdims=True)) / (1 + nvm.std(x, axis=-1, keepdims=True)),
}


@pytest.mark.emulated
@pytest.mark.parametrize("seed", range(16))
def test_rows_of_several_lengths_in_one_program(seed, device):
    """Parts of one kernel whose rows take lanes, warps, blocks or clusters of other sizes."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(rng.integers(2, 5)):
        length = int(np.exp(rng.uniform(np.log(3000) * (seed % 2), np.log(200000))))
        x = rng.standard_normal((int(rng.integers(1, max(2, min(60, 30000 // length)))), length)) * 8
        parts.append((str(rng.choice(list(ROWS))), x.astype(rng.choice(["float32", "float64", "int8"]))))
    made = {}
    for d in (device, "cpu"):
        made[d] = [ROWS[name](nvm.asarray(x, device=d)) for name, x in parts]
        nvm.eval(*made[d])
    for (name, x), got, want in zip(parts, made[device], made["cpu"]):
        assert families.same(np.asarray(got), np.asarray(want)), (name, x.shape, x.dtype)


@pytest.mark.parametrize(
    "name",
    [
        "map, four functions",
        "softmax, rows of 1000",
        "moments, columns",
        "rows and maps",
        "scan, rows",
        "transpose and add",
        "stencil",
        "sum, all",
    ],
)
def test_fused_or_not(name, device):
    f, inputs = families.FAMILIES[name]
    fused = families.run(f, inputs, device)
    nvm.set("FUSE", "off")
    try:
        alone = families.run(f, inputs, device)
    finally:
        nvm.set("FUSE", "on")
    for a, b in zip(fused, alone):
        assert families.same(a, b), name


@pytest.mark.parametrize(
    "name", ["sum, all", "moments, columns", "softmax, rows of 100000", "sum, long columns", "argmax, all"]
)
def test_a_hundred_runs(name, device):
    f, inputs = families.FAMILIES[name]
    args = [nvm.asarray(x, device=device) for x in inputs]
    g = nvm.jit(f)
    first = [np.asarray(r) for r in families.nested(g(*args))]
    for i in range(16):
        for a, b in zip(families.nested(g(*args)), first):
            assert families.same(np.asarray(a), b), (name, i)


@pytest.mark.emulated
def test_rare_elements_of_a_reduction_that_a_later_run_does_again(device):
    """All blocks look at the sum, though the run that it stands in also stores what one block alone does."""

    @nvm.jit
    def f(x):
        root = nvm.sqrt(x)
        less = root < nvm.exp(root)
        every = less.all()
        return nvm.log_softmax(nvm.astype(less, "float64"), axis=0), less, every, nvm.astype(every, "int64")

    x = np.linspace(-4, 4, 3300, dtype=np.float32).reshape(100, 33)
    x[::10] = 1e4  # the exponential of its root overflows
    for got, want in zip(f(nvm.asarray(x, device=device)), f(nvm.asarray(x, device="cpu"))):
        assert families.same(np.asarray(got), np.asarray(want))
