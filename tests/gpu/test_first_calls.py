"""Kernels of much code run as loops over single elements until a thread has compiled optimised code: the same bits
before and after, nothing is lost when a process ends or forks meanwhile."""

import textwrap

import pytest

import processes
from processes import end

HEAD = """
import hashlib, os, sys, threading, time
import numpy as np
import nvm

r, device = np.random.default_rng(5), "cuda:0"

def seed(x, y, z):
    return nvm.sqrt(nvm.sin(x) * nvm.cos(y) + nvm.exp(-z * z) + nvm.log(x * x + 1))

def softmax(x):
    e = nvm.exp(x - nvm.max(x, axis=1, keepdims=True))
    return e / nvm.sum(e, axis=1, keepdims=True)

def columns(x):
    return nvm.mean(x, axis=0), nvm.var(x, axis=0)

def normal(x, s, b):
    d = x - nvm.mean(x, axis=1, keepdims=True)
    return d / nvm.sqrt(nvm.mean(d * d, axis=1, keepdims=True) + 1e-5) * s + b

def array(shape, dtype="float32"):
    a = nvm.asarray(r.standard_normal(shape).astype("float32") * 40, device=device)
    return (a if dtype == "float32" else a.astype(dtype)).eval()

CASES = [(seed, [(300001,)] * 3, "float32"), (softmax, [(70, 4099)], "bfloat16"), (columns, [(3001, 130)], "float32"),
         (normal, [(64, 5000), (5000,), (5000,)], "float32"), (softmax, [(40, 1300)], "float64")]
ALL = [(nvm.jit(f), [array(s, t) for s in shapes]) for f, shapes, t in CASES]

def bits(f, args):
    made = f(*args)
    made = made if isinstance(made, tuple) else (made,)
    made = [np.asarray(v.astype("float32") if str(v.dtype) == "bfloat16" else v) for v in made]
    return hashlib.sha256(b"".join(v.tobytes() for v in made)).hexdigest()

def compiled():
    return nvm.counters()["kernels_compiled"]
"""


def run(text, folder, tier="planned", **env):
    return processes.start(HEAD + textwrap.dedent(text), folder, tier, **{"NVM_VERBOSE": "2", **env})


@pytest.mark.emulated
def test_bits_before_and_after(tmp_path):
    """Of loops alone, of optimised code alone, and of calls while one takes the place of the other."""
    once = "print(*(bits(f, a) for f, a in ALL), compiled())"
    again = """
    first = [bits(f, a) for f, a in ALL]
    before, stop, wrong = compiled(), time.time() + 12, []
    def calls():
        while time.time() < stop:
            wrong.extend(i for i, (f, a) in enumerate(ALL) if bits(f, a) != first[i])
    threads = [threading.Thread(target=calls) for _ in range(2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong and compiled() == before, (wrong, before, compiled())
    print(*first, before)
    """
    runs = {tier: run(text, tmp_path / tier, tier) for tier, text in (("0", once), ("1", once), ("planned", again))}
    (loops, said_loops), (straight, said_straight), (both, said_both) = (end(runs[t]) for t in ("0", "1", "planned"))
    assert loops == straight == both
    assert "baseline code" in said_loops and "baseline code" not in said_straight
    assert said_both.count("optimised code") >= said_both.count("baseline code") >= 4


@pytest.mark.emulated
def test_a_process_that_ends_early(tmp_path):
    """What is being compiled then is there for the next process, and so is what was; the rest is compiled there."""
    first, said = end(run("print(*(bits(f, a) for f, a in ALL[:1]), compiled())", tmp_path))
    assert "baseline code" in said
    after, said = end(run("print(*(bits(f, a) for f, a in ALL[:1]), compiled())", tmp_path))
    assert after[:-1] == first[:-1] and after[-1] == "0" and "from the disk cache" in said


@pytest.mark.emulated
def test_a_fork_meanwhile(tmp_path):
    """The child has none of the threads and ends at once; the parent's go on."""
    out, _ = end(
        run(
            """
    f, a = ALL[0]
    first = bits(f, a)
    child = os.fork()
    if not child:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert bits(f, a) == first
    print("well")
    """,
            tmp_path,
        )
    )
    assert out == ["well"]


@pytest.mark.emulated
def test_tuning_times_straight_code(tmp_path):
    out, said = end(
        run(
            """
    f, a = ALL[0]
    with nvm.auto_tune(budget=3, progress=False):
        first = bits(f, a)
    print(first == bits(f, a))
    """,
            tmp_path,
        )
    )
    assert out == ["True"] and "baseline code" not in said


def test_captured_meanwhile(torch):
    """A graph of the caller's keeps its kernels, so it waits for those that are to stay."""
    out, said = end(
        run(
            """
    import torch
    x = [torch.rand(1 << 22, device="cuda") for _ in range(3)]
    f, s, graph, out = nvm.jit(seed), torch.cuda.Stream(), torch.cuda.CUDAGraph(), torch.empty(1 << 22, device="cuda")
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s), nvm.stream(s.cuda_stream):
        first = torch.from_dlpack(f(*map(nvm.from_dlpack, x))).clone()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=s), nvm.stream(s.cuda_stream):
        out.copy_(torch.from_dlpack(f(*map(nvm.from_dlpack, x))))
    print("captured", file=sys.stderr)
    graph.replay()
    torch.cuda.synchronize()
    print(torch.equal(first, out))
    """,
            "off",
        )
    )
    assert out == ["True"] and said.index("baseline code") < said.rindex("optimised code") < said.index("captured")


@pytest.mark.emulated
def test_straight_code_that_spills(emulated, tmp_path):
    """Is told of late, and then its programs are planned again as if it had been told of at once; no others are."""
    if not emulated:
        pytest.skip("only the emulator spills when it is told to")
    out, said = end(
        run(
            """
    f, a = ALL[0]
    h, x, here = nvm.jit(lambda x: x + 1), array((70,)), nvm.asarray(np.ones(70), device="cpu")
    def others():
        bits(h, [x]), (x * 3).eval(), (here * 3).eval()
        return nvm.counters()["programs_planned"]
    planned = others()
    assert others() == planned
    first, until = bits(f, a), time.time() + 60
    while "needs more registers" not in nvm.explain(f, *a) and time.time() < until:
        assert bits(f, a) == first
    print("needs more registers" in nvm.explain(f, *a), bits(f, a) == first)
    planned = nvm.counters()["programs_planned"]
    print(others() == planned)
    """,
            tmp_path,
            NVM_EMU_SPILLS="200",
        )
    )
    assert out == ["True"] * 3 and "baseline code" in said
