"""What a mask hides is not touched. A masked load of no lane never faults, but where its page is missing each one costs
an assist of the processor, some hundred times the load: so no masked access may be reached with an empty mask
unless it looks at the stack then, and the iterations of a loop in which a guard holds for no lane or for all of them
have no masks. Arrays here lie between pages that must not be touched, at either end of them."""

import ctypes
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import nvm

PAGE = 4096
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def between_pages(x, at_end):
    """A copy of x that begins, or ends, where a page without access ends, or begins."""
    span = (x.nbytes + PAGE - 1) // PAGE * PAGE
    p = libc.mmap(None, span + 2 * PAGE, 0, 0x22, -1, 0)
    assert p != ctypes.c_void_p(-1).value and libc.mprotect(p + PAGE, span, 3) == 0
    memory = (ctypes.c_char * x.nbytes).from_address(p + PAGE + (span - x.nbytes if at_end else 0))
    y = np.frombuffer(memory, dtype=x.dtype).reshape(x.shape)
    y[...] = x
    return y


def heat(m, u):
    c = u[1:-1, 1:-1]
    return u + m.pad(u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - c - c, 1)


ROWS = np.array([3, 0, 22, 7, 7, 1])
PROGRAMS = {  # name: (function of the module and its arrays, their shapes)
    "roll": (lambda m, x: m.roll(x, 1), [(2500,)]),
    "roll back": (lambda m, x: m.roll(x, -700), [(2500,)]),
    "roll both": (lambda m, x: m.roll(x, (1, 70), axis=(0, 1)), [(23, 300)]),
    "roll twice": (lambda m, x: m.roll(x, 3, axis=1) + m.roll(x, -2, axis=0), [(23, 300)]),
    "pad": (lambda m, x: m.pad(x, (1300, 5)), [(2000,)]),
    "pad both": (lambda m, x: m.pad(x, ((2, 1), (70, 3))), [(23, 300)]),
    "concat": (lambda m, x, y, z: m.concat([x, y, z]), [(700,), (3,), (1900,)]),
    "concat rows": (lambda m, x, y: m.concat([x, y], axis=1), [(23, 100), (23, 300)]),
    "stack": (lambda m, x, y, z: m.stack([x, y, z]), [(900,)] * 3),
    "stack last": (lambda m, x, y, z: m.stack([x, y, z], axis=1), [(900,)] * 3),
    "stencil": (heat, [(40, 300)]),
    "sum of rolled": (lambda m, x: m.sum(m.roll(x, 5, axis=1), axis=1), [(23, 300)]),
    "rows": (lambda m, x: x[m.asarray(ROWS)], [(23, 300)]),
    "picked and padded": (lambda m, x: m.pad(m.take(x, m.asarray(ROWS)), (9, 30)), [(23,)]),
    "turned": (lambda m, x: m.concat([m.flip(x), x]), [(1111,)]),
    "odd": (lambda m, x: x[1::2] + m.roll(x[::2], 4), [(3000,)]),
    "across": (lambda m, x: m.pad(x.T, ((0, 3), (5, 0))), [(70, 90)]),
}
DTYPES = ["bool", "u1", "i2", "f4", "i8", "c16"]


def draw(shape, dtype, seed):
    return np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 20, shape).astype(dtype)


def fits(name, dtype):
    return dtype != "bool" or name not in ("stencil", "roll twice", "odd", "sum of rolled")


def check(name, dtype, at_end):
    f, shapes = PROGRAMS[name]
    xs = [between_pages(draw(s, dtype, i), at_end) for i, s in enumerate(shapes)]
    got = np.asarray(f(nvm, *(nvm.asarray(x, copy=False) for x in xs)))
    want = f(np, *xs)
    np.testing.assert_array_equal(got, want, err_msg=f"{name} of {dtype}")


def run_all():
    for name in PROGRAMS:
        for dtype in DTYPES:
            if fits(name, dtype):
                check(name, dtype, at_end=False)
                check(name, dtype, at_end=True)


def widths():
    flags = open("/proc/cpuinfo").read() if os.path.exists("/proc/cpuinfo") else ""
    return ["128"] + ["256"] * ("avx2" in flags) + ["512"] * ("avx512bw" in flags)


# ---- the code: LLVM's text after all passes
BLOCK = re.compile(r"^([\w.$-]+):")
BRANCH = re.compile(r"^\s*br i1 (\S+), label %([\w.$-]+), label %([\w.$-]+)")
ACCESS = re.compile(r"@llvm\.masked\.(load|store|gather|scatter)\.[^(]*\((.*)\)")


def functions(text):
    for body in re.findall(r"^define .*?^}", text, re.M | re.S):
        blocks, here = {}, "entry"
        for line in body.splitlines()[1:-1]:
            m = BLOCK.match(line)
            if m:
                here = m[1]
            blocks.setdefault(here, []).append(line)
        yield {b: lines for b, lines in blocks.items() if any(line.strip() for line in lines)}


def edges(blocks):
    leaves = re.compile(r"\s*(br|switch|i\d+ )")
    return {
        b: [to for x in lines if leaves.match(x) for to in re.findall(r"label %([\w.$-]+)", x)]
        for b, lines in blocks.items()
    }


def without(graph, start, gone):
    """Blocks that are reached from the start when the edge `gone` is not taken."""
    seen, todo = set(), [start]
    while todo:
        b = todo.pop()
        if b not in seen:
            seen.add(b)
            todo += [t for t in graph[b] if (b, t) != gone]
    return seen


def found_lanes(condition, mask, value):
    """1: the condition says that the mask has lanes, -1: that it has none, 0: neither."""
    test = re.match(r"icmp (eq|ne) i\d+ (%\S+), 0", value.get(condition, ""))
    word = test and re.match(r"bitcast <\d+ x i1> (%\S+) to", value.get(test[2], ""))
    return (1 if test[1] == "ne" else -1) if word and word[1] == mask else 0


def looks_at_the_stack(operands, mask, value):
    """Whether an access whose mask is empty has an address on the stack."""
    pick = re.match(
        r"select i1 (%[^,]+), ptr (%[^,]+), ptr (%[^,]+)", value.get(operands.split(",")[0].split()[-1], "")
    )
    side = pick and found_lanes(pick[1], mask, value)
    return bool(side) and value.get(pick[3 if side > 0 else 2], "").startswith("alloca")


def unguarded(blocks):
    """Masked accesses that can be reached without a branch on their own mask, which it found not to be empty, and whose
    address is not the stack's then."""
    graph, start = edges(blocks), next(iter(blocks))
    value = {m[1]: m[2] for lines in blocks.values() for line in lines if (m := re.match(r"\s*(%\S+) = (.*)", line))}
    for b, lines in blocks.items():
        for line in lines:
            m = ACCESS.search(line)
            masks = m and re.findall(r"<\d+ x i1> ([^,<]+|<[^>]*>)", m[2])
            if not masks or not masks[0].startswith("%"):
                continue  # a constant: all lanes
            mask, guards = masks[0].strip(), []
            for c, guard in ((c, BRANCH.match(x)) for c, ls in blocks.items() for x in ls):
                if side := guard and found_lanes(guard[1], mask, value):
                    guards.append((c, guard[2] if side > 0 else guard[3]))
            guarded = any(b not in without(graph, start, g) for g in guards)
            if not guarded and not looks_at_the_stack(m[2], mask, value):
                yield line


@pytest.mark.parametrize("isa", widths())
def test_no_empty_mask_reaches_memory(isa, tmp_path):
    if not re.search(r"^llvm +\d", nvm.info(), re.M):
        pytest.skip("no LLVM: the interpreter has no masks")
    path = os.pathsep.join([os.path.dirname(__file__)] + sys.path)
    env = dict(
        os.environ,
        NVM_ISA=isa,
        NVM_TIER="1",
        NVM_DUMP="llvm",
        NVM_DUMP_DIR=str(tmp_path),
        PYTHONPATH=path,
        NVM_CACHE_DIR=str(tmp_path / "cache"),
        NVM_DEVICE="cpu",
    )
    command = [sys.executable, "-c", "import test_guards; test_guards.run_all()"]
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    texts = [p.read_text() for p in tmp_path.rglob("*") if p.is_file() and "llvm" in p.name]
    assert len(texts) > len(PROGRAMS)
    masked = 0
    for text in texts:
        masked += len(ACCESS.findall(text))
        found = [line for blocks in functions(text) for line in unguarded(blocks)]
        assert not found, (found[0], text[:3000])
    assert masked or isa == "128"
