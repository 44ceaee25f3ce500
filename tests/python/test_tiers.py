"""The whole table through native code as well: equal bits in both tiers, in one process. Small arrays stay in the
interpreter by themselves, so the other tests hold the first tier to NumPy, and this one holds the second to the
first."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import nvm
import refs
import test_ops


@pytest.fixture(scope="module", autouse=True)
def native():
    if not re.search(r"^llvm +\d", nvm.info(), re.M):
        pytest.skip("no LLVM: there is one tier")


def put(x):
    return nvm.asarray(x, device="cpu")


def tiers(make):
    """What make() gives in either tier."""
    out = []
    for tier in ("0", "1"):
        nvm.set("TIER", tier)
        try:
            out.append([np.asarray(r) for r in make()])
        finally:
            nvm.set("TIER", "auto")
    return out


def same(a, b, what):
    assert a.dtype == b.dtype and a.shape == b.shape, what
    if a.dtype.kind in "fc":
        part = a.real.dtype
        a, b = (
            np.where(np.isnan(v), part.type(np.nan), v) for v in (np.ascontiguousarray(x).view(part) for x in (a, b))
        )
    assert a.tobytes() == b.tobytes(), (what, a, b)


@pytest.mark.parametrize("name,dtype", test_ops.CASES)
def test_map(name, dtype, rng):
    m = refs.MAPS[name]
    args = [test_ops.draw(rng, dtype, (9, 67), m.lo, m.hi) for _ in range(m.nin)]
    if np.dtype(dtype).kind in "fc":
        for a in args:
            a.flat[::5] = np.resize(np.array(test_ops.SPECIALS), a.flat[::5].shape).astype(dtype)
    f = getattr(nvm, name)
    slow, fast = tiers(lambda: [f(*map(put, args), **m.attrs)])
    same(slow[0], fast[0], (name, dtype))


@pytest.mark.parametrize("name,dtype", test_ops.REDUCED)
def test_reduction(name, dtype, rng):
    x = test_ops.draw(rng, dtype, (9, 301), *((0.9, 1.1) if name == "prod" else ()))
    f = getattr(nvm, name)
    slow, fast = tiers(lambda: [f(put(x), axis=axis) for axis in (0, 1, None)])
    for axis, a, b in zip((0, 1, None), slow, fast):
        same(a, b, (name, dtype, axis))


SOURCE = np.arange(60).reshape(3, 4, 5)
VIEWS = {
    "transposed": lambda x: x.T * 2,
    "backwards": lambda x: x[::-1, 1:, ::-2] + 1,
    "rolled": lambda x: nvm.roll(x, 3, axis=1) + 1,
    "padded": lambda x: nvm.pad(x, ((1, 0), (0, 2), (1, 1))),
    "joined": lambda x: nvm.concat([x, x * 2, x], axis=1),
    "stacked": lambda x: nvm.stack([x, x + 1], axis=2),
    "tiled": lambda x: nvm.tile(x, (2, 1, 2)),
    "broadcast": lambda x: x + x[:1, :, :1],
    "taken": lambda x: nvm.take(x, nvm.asarray([2, 0, -1]), axis=1),
    "triangle": lambda x: nvm.tril(x) + nvm.triu(x, k=1),
    "diagonal": lambda x: nvm.diagonal(x) * 2,
    "reshaped": lambda x: x.reshape((12, 5)).T + 1,
    "cast": lambda x: nvm.astype(x * 1.5, nvm.float32),
    "scanned": lambda x: nvm.cumulative_sum(x, axis=2),
    "scanned columns": lambda x: nvm.cumulative_prod(x % 3 + 1, axis=0),
    "chosen": lambda x: nvm.where(x > 20, x, -x),
    "clipped": lambda x: nvm.clip(x, 3, 17),
    "softmax": lambda x: nvm.softmax(x * 0.1, axis=-1),
    "log_softmax": lambda x: nvm.log_softmax(x * 0.1, axis=0),
    "product": lambda x: nvm.matmul(x[0], x[1].T),
    "generated": lambda x: x + nvm.arange(5) * 2,
}


@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", list(VIEWS))
def test_view(name, dtype):
    if dtype == "complex64" and name in ("chosen", "clipped", "scanned columns", "softmax", "log_softmax", "cast"):
        return
    slow, fast = tiers(lambda: [VIEWS[name](put(SOURCE.astype(dtype)))])
    same(slow[0], fast[0], (name, dtype))


@pytest.mark.parametrize("reduce", ["max", "sum", "prod"])
@pytest.mark.parametrize("shape", [(20, 9), (30, 3), (30, 40), (4, 20, 9), (300, 5)])
def test_scanned_and_reduced_along_one_axis(shape, reduce):
    x, axis = np.arange(np.prod(shape)).reshape(shape) % 7 / 4, len(shape) - 2
    both = nvm.jit(lambda x: (nvm.cumulative_sum(x, axis=axis), getattr(nvm, reduce)(x, axis=axis)))
    made = tiers(lambda: both(put(x)))
    for scan, one in made:
        assert np.array_equal(scan, np.cumsum(x, axis=axis))
        assert np.allclose(one, getattr(np, reduce)(x, axis=axis))


def scanned(xp, x, axis):
    """Scans of long lines, which come by tiles, and what goes along with them."""
    scan = (lambda v: nvm.cumulative_sum(v, axis=axis)) if xp is nvm else lambda v: np.cumsum(v, axis=axis)
    other = (lambda v: nvm.cumulative_sum(v, axis=1 - axis)) if xp is nvm else lambda v: np.cumsum(v, axis=1 - axis)
    lines = scan(x)
    return [
        xp.sum(lines, axis=axis),
        scan(x - xp.mean(x, axis=axis, keepdims=True)),
        scan(lines),
        lines + xp.max(x, axis=axis, keepdims=True),
        lines - xp.max(lines, axis=axis, keepdims=True),
        scan(xp.flip(lines, axis=axis)),
        lines + other(x),
        lines[::2],
        scan(x * 2) * lines,
        xp.argmax(lines, axis=axis),
    ]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(8, 5000), (1, 3000), (70, 1025), (33, 2049), (3, 17000)])
def test_long_lines_are_scanned_by_tiles(shape, axis):
    x = np.random.default_rng(3).integers(-8, 8, shape if axis else shape[::-1]) / 8
    want = scanned(np, x, axis)
    for made in tiers(lambda: [nvm.jit(lambda v: scanned(nvm, v, axis)[i])(put(x)) for i in range(len(want))]):
        for i, (w, g) in enumerate(zip(want, made)):
            assert np.allclose(w, g, rtol=1e-12, atol=1e-9), (i, shape)


DEAR = {
    "two scans": "nvm.cumulative_sum(nvm.cumulative_sum(nvm.asarray(X[:130].reshape(2, 5, 13).astype('f2')), axis=1),"
    " axis=2)",
    "dear rows": "nvm.sum(nvm.atan2(nvm.asarray(X), nvm.atan2(nvm.asarray(X[::-1].copy()), 0.5)) ** 1.5)",
}


@pytest.mark.parametrize("name", DEAR)
def test_straight_line_code_stays_short(name):
    """What costs many instructions is a loop: code that is unrolled 16 or 256 times compiles for seconds."""
    code = f"import numpy as np, nvm; X = np.arange(1000.) / 7; {DEAR[name]}.eval()"
    env = {**os.environ, "NVM_VERBOSE": "2", "NVM_TIER": "1", "NVM_DEVICE": "cpu", "NVM_CACHE_DIR": "off"}
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    sizes = [int(n) for n in re.findall(r"compiled in \S+ ms, (\d+) bytes", p.stderr)]
    assert p.returncode == 0 and sizes, p.stderr
    assert max(sizes) < 60_000


def test_rows_of_every_operand_have_lanes():
    code = (
        "import nvm; x = nvm.ones((64, 500), dtype='f4').eval(); y = nvm.ones((64, 300), dtype='f4').eval();"
        "(nvm.logsumexp(x, axis=1) - nvm.logsumexp(y, axis=1)).eval()"
    )
    env = {**os.environ, "NVM_DUMP": "kernel", "NVM_TIER": "1", "NVM_DEVICE": "cpu", "NVM_CACHE_DIR": "off"}
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    layouts = re.findall(r'^  L\w+ = "(.+)"$', p.stderr, re.M)
    assert p.returncode == 0 and len(layouts) > 1, p.stderr
    assert all(re.search(r"\bl\d", text) for text in layouts), layouts


def test_rows_that_are_also_stored_beside_others_have_no_lanes():
    """What is read along rows is summed, and stored along the lanes of what it is spread over."""
    x = (np.arange(100) % 7 - 3).astype("f4").reshape(100, 1)
    spread = nvm.jit(
        lambda x: (
            nvm.logical_or(nvm.broadcast_to(x, (4, 100, 40)), nvm.astype(x, "i2")),
            nvm.argmax(nvm.astype(x, "i2"), axis=0),
        )
    )
    for made, first in tiers(lambda: spread(put(x))):
        assert np.array_equal(made, np.broadcast_to(x != 0, (4, 100, 40))) and first.tolist() == [6]


def test_a_long_call_waits_for_its_code():
    """The interpreter would be busy for longer than the compiler, though little memory is moved."""
    program = """
import numpy as np
import nvm
x = nvm.asarray(np.resize(np.arange(251, dtype="uint8"), 10**6))
nvm.sin(nvm.arange(2.0 ** 21)).eval()
before = nvm.counters()["kernels_compiled"]
assert int(nvm.argmax(x)) == 250
assert nvm.counters()["kernels_compiled"] > before
"""
    env = dict(os.environ, NVM_DEVICE="cpu", NVM_CACHE_DIR="off", NVM_TIER="auto")
    p = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr
