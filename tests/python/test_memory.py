"""Nothing grows: long loops in constant memory, reference counts that come back."""

import gc
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import nvm


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def grows(step, warm, n):
    for _ in range(warm):
        step()
    gc.collect()
    before = rss()
    for _ in range(n):
        step()
    gc.collect()
    return rss() - before


def test_a_million_lazy_steps():
    x = nvm.zeros(8)
    for _ in range(20_000):  # the kernel of one flush has been compiled
        x = x + 1
    before, blocks = rss(), sys.getallocatedblocks()
    for _ in range(1_000_000):
        x = x + 1
    assert x.tolist() == [1_020_000.0] * 8
    assert rss() - before < 16 << 20
    assert sys.getallocatedblocks() - blocks < 1000


def test_a_jitted_loop():
    f = nvm.jit(lambda x, k: x * 0.5 + k)
    x = nvm.zeros(100)

    def step():
        nonlocal x
        x = f(x, 1.0)

    assert grows(step, 2000, 100_000) < 4 << 20
    assert abs(x[0].item() - 2) < 1e-12


@pytest.mark.parametrize(
    "step",
    [
        lambda: nvm.asarray([1.0, 2.0, 3.0]) * 2,
        lambda: nvm.asarray(np.ones(50)).sum().item(),
        lambda: nvm.asarray(np.ones(50), copy=False).tolist(),
        lambda: np.asarray(nvm.ones(3) + 1),
        lambda: memoryview(nvm.asarray([1.0])),
        lambda: np.from_dlpack(nvm.ones(3, device="cpu")),
        lambda: nvm.ones(3).__dlpack__(),
        lambda: nvm.from_dlpack(np.ones(3)),
        lambda: repr(nvm.ones((2, 3))),
        lambda: nvm.ones(3)[1:].sum(),
        lambda: nvm.ones(3).__setitem__(0, 5),
        lambda: nvm.sum(nvm.ones((2, 2)), axis=0, keepdims=True),
        lambda: nvm.concat([nvm.ones(2), [1.0]]),
        lambda: list(nvm.ones(3)),
        lambda: nvm.float32 == np.dtype("float32"),
        lambda: nvm.result_type(nvm.float32, 1),
    ],
    ids=range(16),
)
def test_no_leak(step):
    step()
    assert grows(step, 500, 8000) < 1 << 20


@pytest.mark.parametrize(
    "bad",
    [
        lambda: nvm.ones(3) + nvm.ones(4),
        lambda: nvm.sin("a"),
        lambda: nvm.asarray([[1], [1, 2]]),
        lambda: nvm.ones(3)[7],
        lambda: nvm.concat([nvm.ones(2), object()]),
        lambda: nvm.sum(nvm.ones(2), axis=5),
        lambda: nvm.jit(lambda x: x + "a")(np.ones(3)),
        lambda: nvm.ones(3).__dlpack__(dl_device=(8, 0)),
        lambda: nvm.zeros(3, device="tpu"),
        lambda: nvm.reshape(np.ones(6), (4, -1)),
    ],
    ids=range(10),
)
def test_errors_leak_nothing(bad):
    def step():
        with pytest.raises((ValueError, TypeError, IndexError, RuntimeError, BufferError)):
            bad()

    assert grows(step, 500, 8000) < 1 << 20


def test_reference_counts():
    n = np.ones(4)
    a = nvm.asarray(n)
    f = nvm.jit(lambda x, y: [x + y, {"k": x}])
    objects = [n, a, nvm.float32, None, f, nvm.Array]

    def work():
        f(n, a)
        f(a, y=n)
        a + n, n + a, a + 1, 1.5 * a, a[0], a == n
        a.sum(axis=0), a.astype(nvm.float32), nvm.asarray([n, a]), a.dtype, a.tolist(), a.item(0)
        try:
            a + nvm.ones(7)
        except ValueError:
            pass

    work()
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(100):
        work()
    gc.collect()
    after = [sys.getrefcount(o) for o in objects]
    for o, x, y in zip(objects, before, after):
        assert abs(x - y) < 20, (type(o), x, y)


def test_threads_compute_apart(rng):
    bad = []

    def work(seed):
        r = np.random.default_rng(seed)
        for _ in range(60):
            x = r.standard_normal((17, int(r.integers(1, 40))))
            got = np.asarray(nvm.sum(nvm.exp(nvm.asarray(x)) * 2, axis=0))
            if not np.allclose(got, (np.exp(x) * 2).sum(0)):
                bad.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


def test_threads_ask_for_the_same_array():
    for _ in range(20):
        x = nvm.arange(1000.0)
        for _ in range(20):
            x = x * 1.5 - x
        got, threads = [], []
        for _ in range(6):
            threads.append(threading.Thread(target=lambda: got.append(float(x.sum()))))
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(got) == 6 and len(set(got)) == 1


def test_the_interpreter_runs_on_while_nvm_computes():
    x = nvm.asarray(np.random.default_rng(0).standard_normal(4_000_000))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.0005):
            ticks.append(1)

    t = threading.Thread(target=tick)
    t.start()
    y = x
    for _ in range(30):
        y = nvm.sin(y) + nvm.cos(y)
    ticks.clear()
    y.eval()
    seen = len(ticks)
    stop.set()
    t.join()
    assert seen > 2


def test_depth_is_bounded():
    x = nvm.ones(4)
    for _ in range(20_000):
        x = x * 1.0 + 0.0
    del x
    gc.collect()


def test_a_scan_needs_no_copy_of_its_lines():
    """Few long lines: what lies between reading and storing is a tile, not the lines (of 64 lanes, 256 MB here)."""
    code = """if 1:
        import resource, nvm
        most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        x = nvm.ones((4, 1 << 20), dtype='float32').eval()
        nvm.cumulative_sum(nvm.ones((4, 99)), axis=1).eval()
        before = most()
        nvm.eval(nvm.cumulative_sum(x, axis=1))
        print(most() - before)"""
    env = {**os.environ, "NVM_DEVICE": "cpu"}
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr
    assert int(p.stdout) < 100


# ---- the host's memory
def test_memory_of_the_cpu():
    nvm.trim_memory("cpu")
    base, before = rss(), nvm.memory_info("cpu")
    assert before["reserved"] == before["used"] and before["total"] > before["used"]
    kept = [nvm.asarray(np.ones(10**6), device="cpu") for _ in range(20)]
    assert nvm.memory_info("cpu")["used"] >= before["used"] + 160 * 10**6
    del kept
    info = nvm.memory_info("cpu")
    assert info["used"] == before["used"] and info["reserved"] >= info["used"] + 160 * 10**6
    assert rss() > base + 10**8
    nvm.trim_memory("cpu")
    assert nvm.memory_info("cpu")["reserved"] == before["used"] and rss() < base + 5 * 10**7


def test_limit_of_the_cpu():
    used = nvm.memory_info("cpu")["used"]
    nvm.set_memory_limit(used + 10**7, "cpu")
    try:
        assert nvm.memory_info("cpu")["limit"] == used + 10**7 == int(nvm.settings()["NVM_MEM_LIMIT"])
        with pytest.raises(MemoryError, match="NVM_MEM_LIMIT"):
            nvm.asarray(np.ones(2 * 10**6), device="cpu")
        assert nvm.asarray(np.ones(10**5), device="cpu").sum().item() == 10**5
    finally:
        nvm.set_memory_limit(0, "cpu")
    assert nvm.memory_info("cpu")["limit"] == 0
    with pytest.raises(ValueError):
        nvm.set_memory_limit(-1, "cpu")


def test_names_are_planned_as_the_nested_expression():
    x, w, b = (nvm.asarray(np.ones(s, "float32")) for s in ((70, 80), (80, 90), (90,)))
    nested = nvm.explain(nvm.maximum(x @ w + b, 0.0))
    h = x @ w
    z = h + b
    y = nvm.maximum(z, 0.0)
    assert nvm.explain(y) == nested and nested.startswith("1 kernel")
    np.testing.assert_array_equal(y, np.full((70, 90), 81, "float32"))
    np.testing.assert_array_equal(h, np.full((70, 90), 80, "float32"))  # once more, since it is read after all
    np.testing.assert_array_equal(z, np.full((70, 90), 81, "float32"))


@pytest.mark.parametrize(
    "dear",
    [
        lambda x, w: x @ w,
        lambda x, w: nvm.sort(x + w),
        lambda x, w: nvm.softmax(x * w, axis=1),
        lambda x, w: nvm.exp(x - w).sum(axis=0, keepdims=True),
    ],
)
def test_bits_do_not_depend_on_what_was_read(dear):
    """The operands are whole numbers: no order of a product's sums changes a bit."""
    x, w = (nvm.asarray(np.random.default_rng(i).integers(-4, 5, (30, 30)).astype("float32")) for i in (1, 2))
    use = lambda h: (nvm.tanh(h * 0.37) * x).sum(axis=1)
    y, inner = (np.asarray(f(dear(x, w))) for f in (use, lambda h: h))
    for history in [*range(8)] * 3:
        h = dear(x, w)
        named, later = use(h), nvm.exp(-abs(h))
        also = np.asarray(nvm.exp(-abs(dear(x, w))))
        for read, value, want in (
            (history & 1, h, inner),
            (1, named, y),
            (history & 2, later, also),
            (history & 4, h, inner),
        ):
            if read:
                assert np.asarray(value).tobytes() == want.tobytes(), history
