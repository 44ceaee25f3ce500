"""A new program runs as one kernel for each value until its own kernels are compiled in the background: the same bits,
few kernels for many sizes, and nothing is lost when a process ends or forks, or a store or a compilation fails."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import nvm
import processes
from processes import end

HEAD = """
import hashlib, itertools, os, sys, threading, time
import numpy as np
import nvm

device, r = "cuda:0", np.random.default_rng(8)
x, y = (nvm.asarray(r.standard_normal((40, 50)).astype("float32"), device=device).eval() for _ in range(2))
ONE, TWO = (nvm.negative, nvm.abs, nvm.square), (nvm.add, nvm.maximum, nvm.multiply)
SINGLES = [f(x) for f in ONE] + [f(x, y) for f in TWO]

def chain(a, b, c, d):
    return TWO[d](ONE[c](TWO[b](ONE[a](x), y)), x)

def bits(v):
    return hashlib.sha256(np.asarray(v).tobytes()).hexdigest()

def ran(make):
    before = nvm.counters()["kernels_run"]
    made = bits(make())
    return made, nvm.counters()["kernels_run"] - before

def until_fused(make, kernels=1, seconds=60):
    end, first = time.time() + seconds, bits(make())
    while (now := ran(make)) != (first, kernels) and time.time() < end:
        assert now[0] == first
        time.sleep(0.01)
    return now[1]
"""


def start(text, folder, tier="auto", **env):
    env.setdefault("NVM_EMU_COMPILE_MS", "400")  # or the emulator, which keeps what it compiled, would be too quick
    return processes.start(HEAD + textwrap.dedent(text), folder, tier, **{"NVM_VERBOSE": "3", **env})


def run(text, folder, tier="auto", **env):
    return end(start(text, folder, tier, **env))


@pytest.fixture
def ready(tmp_path):
    """A store that has the kernels of single operations."""
    run("nvm.eval(*SINGLES)", tmp_path, "direct")
    return tmp_path


@pytest.mark.emulated
def test_the_first_value_comes_from_single_kernels(ready):
    out, said = run(
        """
        before = nvm.counters()["kernels_loaded"]
        first, n = ran(lambda: chain(1, 1, 0, 0))
        print(n, nvm.counters()["kernels_loaded"] - before, until_fused(lambda: chain(1, 1, 0, 0)))
        """,
        ready,
    )
    assert out == ["4", "4", "1"] and "runs as 4 kernels until the code of 1 is there" in said
    out, said = run("print(ran(lambda: chain(1, 1, 0, 0))[1])", ready)
    assert out == ["1"] and "until the code" not in said  # fused code is in the store


@pytest.mark.emulated
def test_single_kernels_that_are_missing_are_made_for_the_next_graph(tmp_path):
    """A graph does not wait for them: its own kernel is compiled first."""
    out, said = run(
        """
        made, kernels = ran(lambda: chain(0, 0, 0, 0))
        end = time.time() + 60
        while nvm.counters()["kernels_compiled"] < 3 and time.time() < end:
            time.sleep(0.01)
        print(kernels, nvm.counters()["kernels_compiled"])
        """,
        tmp_path,
    )
    assert out[0] == "1" and "until the code" not in said and int(out[1]) >= 3  # its own, negative and add
    out, said = run("print(ran(lambda: TWO[0](ONE[0](TWO[0](x, y)), x))[1])", tmp_path)
    assert out == ["3"] and "until the code" in said


@pytest.mark.emulated
def test_settings_and_explain(ready):
    """NVM_TIER=planned has no stand-ins, direct nothing else; explain tells of one while it runs."""
    text = """
    make = lambda: chain(2, 0, 1, 2)
    one = ran(make)
    print(*one, ran(make)[1], "until the code" in nvm.explain(make()))
    """
    (planned, said), (direct, _) = run(text, ready, "planned"), run(text, ready, "direct")
    assert planned[1:] == ["1", "1", "False"] and direct[1:] == ["4", "4", "False"] and planned[0] == direct[0]
    assert "until the code" not in said
    out, _ = run(
        """
        make = lambda: chain(0, 2, 2, 1)
        first = ran(make)
        text = nvm.explain(make())
        fused = until_fused(make)
        print(first[1], "until the code of this plan" in text, fused, "until the code" in nvm.explain(make()))
        """,
        ready,
        NVM_EMU_COMPILE_MS="1500",
    )
    assert out == ["4", "True", "1", "False"]


SHAPES = [(7,), (2,), (255,), (256,), (1000,), (4096,), (99_999,), (300_001,), (3, 5), (100, 1000)]


@pytest.mark.emulated
def test_sizes_share_kernels(device):
    """One text for each operation, dtype and class of layout."""
    names = set()
    for shape in SHAPES:
        x, y = (nvm.asarray(np.full(shape, v, "float32"), device=device).eval() for v in (3, 4))
        nvm.set("TIER", "direct")
        try:
            before = nvm.counters()["kernels_compiled"] + nvm.counters()["kernels_loaded"]
            made = np.asarray(nvm.sqrt(x * x + y * y) - 1)
            names.add(nvm.counters()["kernels_compiled"] + nvm.counters()["kernels_loaded"] - before)
        finally:
            nvm.set("TIER", "auto")
        assert made.shape == shape and (made == 4).all()
    assert len(names) <= 2 and 0 in names  # some for the first shape, none for the others


@pytest.mark.emulated
@pytest.mark.parametrize("how", ["off", "read-only", "damaged", "another version", "empty"])
def test_stores(how, ready, tmp_path):
    """Whatever the store is like, values come and bits are the same."""
    text = "print(*(bits(chain(*c)) for c in ((1, 1, 2, 0), (0, 1, 2, 0))), until_fused(lambda: chain(1, 1, 2, 0)))"
    want, _ = run(text, "off", "1")
    path = ready / "cache.db"
    if how == "read-only":
        path.chmod(0o400)
    elif how == "damaged":
        data = bytearray(path.read_bytes())
        data[5000::97] = b"\x5a" * len(data[5000::97])
        path.write_bytes(data)
    elif how == "another version":
        import sqlite3

        with sqlite3.connect(path) as db:
            db.execute("UPDATE entry1 SET blob = x'00112233', sum = x'00'")
    got, _ = run(text, {"off": "off", "empty": tmp_path / "new"}.get(how, ready))
    assert got == want


@pytest.mark.emulated
def test_eight_threads(ready):
    text = """
    CASES = list(itertools.product(range(3), repeat=3))[:12]
    made = {}
    def work(i):
        for a, b, c in CASES[i % 4:] + CASES[:i % 4]:
            made.setdefault((a, b, c), set()).add(bits(chain(a, b, c, 2)))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all(len(v) == 1 for v in made.values())
    print(*(made[c].pop() for c in CASES))
    """
    (got, said), (want, _) = run(text, ready), run(text, ready, "planned")
    assert got == want and "until the code" in said


@pytest.mark.emulated
def test_a_process_that_ends_and_one_that_forks_meanwhile(ready):
    """At the end what is being compiled goes to the store. A child has none of the threads; one that was forked before
    the first use of the device has its own."""
    out, said = run("print(ran(lambda: chain(2, 2, 2, 0))[1])", ready)
    assert out == ["4"]
    out, _ = run("print(ran(lambda: chain(2, 2, 2, 0))[1])", ready)
    assert out == ["1"]
    out, _ = run(
        """
        first = bits(chain(2, 2, 0, 0))
        child = os.fork()
        if not child:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print(until_fused(lambda: chain(2, 2, 0, 0)))
        """,
        ready,
    )
    assert out == ["1"]
    child = (
        "import os, sys\nimport nvm\nnvm.asarray([1.0], device='cpu').eval()\nchild = os.fork()\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    p = subprocess.run(
        [sys.executable, "-c", child + HEAD + "print(until_fused(lambda: chain(1, 2, 0, 0)))"],
        env={**os.environ, "NVM_CACHE_DIR": str(ready), "NVM_TIER": "auto"},
        text=True,
        capture_output=True,
        timeout=200,
    )
    assert p.stdout.split() == ["1"], p.stderr[-2000:]


@pytest.mark.emulated
def test_donated_arguments(ready):
    """The stand-in's outputs take other memory than the program's may."""
    out, _ = run(
        """
        step = nvm.jit(lambda a, b: (nvm.maximum(nvm.square(nvm.negative(a)), b), b + a), donate_argnums=(0, 1))
        a, b = (nvm.asarray(np.full((40, 50), v, "float32"), device=device).eval() for v in (0.5, 0.25))
        p, q, kernels, stop = np.float32(0.5), np.float32(0.25), set(), time.time() + 60
        for i in range(10_000):
            before = nvm.counters()["kernels_run"]
            a, b = step(a, b)
            p, q = np.maximum(np.square(-p), q), q + p
            kernels.add(nvm.counters()["kernels_run"] - before)
            assert (np.asarray(a) == p).all() and (np.asarray(b) == q).all(), i
            if kernels >= {1, 4} or time.time() > stop:
                break
        print(*sorted(kernels))
        """,
        ready,
        NVM_EMU_COMPILE_MS="500",
    )
    assert out == ["1", "4"]


@pytest.mark.emulated
def test_what_comes_once_does_not_fill_the_queue(ready):
    """While many kernels wait, those of a new program wait for its second run."""
    out, _ = run(
        """
        cases = list(itertools.product(range(3), repeat=4))
        before = nvm.counters()["kernels_compiled"]
        values = [chain(*c).eval() for c in cases]
        compiled = lambda: nvm.counters()["kernels_compiled"] - before
        last, end = -1, time.time() + 60
        while compiled() != last and time.time() < end:
            last = compiled()
            time.sleep(1)
        print(0 < last < len(cases) // 2, until_fused(lambda: chain(*cases[-1])), len(set(map(bits, values))) > 40)
        """,
        ready,
        NVM_EMU_COMPILE_MS="100",
        NVM_NUM_THREADS="2",
    )
    assert out == ["True", "1", "True"]


@pytest.mark.emulated
def test_products_have_none(ready):
    """Their bits are those of the kernel or library that makes them."""
    out, said = run(
        "print(bits(nvm.maximum(nvm.abs(x) @ y.T + 1, 0)) == bits(nvm.maximum(nvm.abs(x) @ y.T + 1, 0)))", ready
    )
    assert out == ["True"] and "until the code" not in said


@pytest.mark.emulated
def test_code_that_spills_or_cannot_be_made(emulated, ready):
    """The program is planned again then, as if that had been known at once."""
    if not emulated:
        pytest.skip("only the emulator spills when it is told to")
    text = """
    make = lambda: nvm.exp(nvm.sin(x) * nvm.cos(y)) + nvm.log(nvm.square(x) + 1)
    first, end = bits(make()), time.time() + 60
    while "needs more registers" not in nvm.explain(make()) and time.time() < end:
        assert bits(make()) == first
    print(first, "needs more registers" in nvm.explain(make()), bits(make()) == first)
    """
    run("nvm.eval(nvm.exp(x), nvm.sin(x), nvm.cos(x), nvm.log(x * x + 1))", ready, "direct")
    out, said = run(text, ready, NVM_EMU_SPILLS="200")
    want, _ = run(text, ready, "planned", NVM_EMU_SPILLS="200")
    assert out == want and out[1:] == ["True"] * 2 and "until the code" in said


def test_a_capture_waits(torch, ready):
    """A graph of the caller's keeps the kernels that it captures, so these are the program's own."""
    out, said = run(
        """
        import torch
        s, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        f = nvm.jit(lambda x, y: nvm.square(nvm.maximum(nvm.abs(x), y)) + x)
        a, b = torch.rand(40, 50, device="cuda"), torch.rand(40, 50, device="cuda")
        out = torch.empty(40, 50, device="cuda")
        with torch.cuda.stream(s), nvm.stream(s.cuda_stream):
            first = torch.from_dlpack(f(nvm.from_dlpack(a), nvm.from_dlpack(b))).clone()
        torch.cuda.synchronize()
        before = nvm.counters()["kernels_run"]
        with torch.cuda.graph(graph, stream=s), nvm.stream(s.cuda_stream):
            out.copy_(torch.from_dlpack(f(nvm.from_dlpack(a), nvm.from_dlpack(b))))
        print(nvm.counters()["kernels_run"] - before)
        graph.replay()
        torch.cuda.synchronize()
        print(torch.equal(first, out))
        """,
        ready,
    )
    assert out == ["1", "True"] and "until the code" in said
