"""nvm.profiler: what is counted, the shares, the formats, and what is refused. Ceilings are those that the planner
knows, but where they are the matter."""

import asyncio
import json
import threading

import numpy as np
import pytest

import nvm
from nvm.profiler import generate_report, profile

N = 1 << 16


@pytest.fixture(autouse=True)
def cpu():
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    yield
    nvm.set_default_device(before)


@pytest.fixture
def x():
    return nvm.asarray(np.linspace(0, 1, N, dtype=np.float32))


def rated(*metrics):
    return profile(list(metrics) or None, ceilings="rated")


def test_counts_calls_bytes_and_operations(x):
    f = nvm.jit(lambda x: nvm.tanh(x) * 2)
    f(x)
    with rated() as p:
        for _ in range(5):
            f(x)
    r = p.report()
    (kernel,) = r.kernels
    assert (r.calls, kernel.calls, kernel.device) == (5, 5, "cpu")
    assert kernel.bytes == 5 * 2 * x.nbytes  # what the plan knows: read once, written once
    assert kernel.operations >= 5 * 2 * N
    assert "tanh" in kernel.what and "multiply" in kernel.what
    assert 0 < kernel.fastest * 5 <= kernel.seconds <= r.seconds
    assert r.kernel_seconds == pytest.approx(kernel.seconds)


def test_shares_are_rates_over_ceilings(x):
    with rated() as p:
        nvm.eval(nvm.sin(x) + 1)
        nvm.eval(x.reshape((256, 256)) @ nvm.ones((256, 256), dtype=nvm.float32))
    r = p.report()
    ceilings = {(c["of"], c["type"]): c["per_second"] for c in r.ceilings}
    time = sum(k.seconds for k in r.kernels)
    for k in r.kernels:
        of = ("products", "float32") if k.kind == "gemm" else ("arithmetic", "float32 arithmetic")
        assert k.memory == pytest.approx(k.bytes / k.seconds / ceilings["memory", "memory"], rel=1e-6)
        assert k.compute == pytest.approx(k.operations / k.seconds / ceilings[of], rel=1e-6)
    assert r.memory_efficiency == pytest.approx(sum(min(1, k.memory) * k.seconds for k in r.kernels) / time, rel=1e-6)
    assert r.compute_efficiency == pytest.approx(sum(min(1, k.compute) * k.seconds for k in r.kernels) / time, rel=1e-6)
    gemm = next(k for k in r.kernels if k.kind == "gemm")
    assert gemm.operations == 2 * 256**3
    assert all(not c["measured"] for c in r.ceilings)


def test_small_graphs_are_seen():
    with rated() as p:
        nvm.eval(nvm.asarray([1.0, 2.0]) + nvm.asarray([3.0, 4.0]))
    (kernel,) = p.report().kernels
    assert kernel.by == "direct" and kernel.what == "add" and kernel.bytes == 3 * 16
    assert "jit" in kernel.advice


def test_small_products_have_their_operations():
    with rated() as p:
        nvm.eval(nvm.asarray(np.ones((2, 3, 5))) @ nvm.asarray(np.ones((2, 5, 7))))
    (kernel,) = p.report().kernels
    assert kernel.by == "direct" and kernel.operations == 2 * 2 * 3 * 5 * 7
    with rated() as p:
        nvm.eval(nvm.sum(nvm.asarray(np.ones((6, 20))), axis=1))
    (kernel,) = p.report().kernels
    assert kernel.by == "direct" and kernel.operations >= 6 * 20  # of what is summed


def test_nothing_is_seen_outside(x):
    p = rated()
    nvm.eval(nvm.exp(x))
    with p:
        pass
    nvm.eval(nvm.exp(x))
    r = p.report()
    assert (r.calls, r.kernels, r.memory_efficiency, r.compute_efficiency) == (0, [], 0, 0)
    assert "0 calls" in str(r)


def test_nested_profiles_and_stretches(x):
    outer, inner = rated(), rated()
    with outer:
        nvm.eval(nvm.exp(x))
        with inner, inner:
            nvm.eval(nvm.exp(x))
        with inner:
            nvm.eval(nvm.exp(x))
    assert outer.report().calls == 3 and inner.report().calls == 2


def test_all_threads_are_seen(x):
    with rated() as p:
        threads = [threading.Thread(target=lambda: [nvm.eval(nvm.exp(x)) for _ in range(4)]) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert p.report().calls == 12
    events = json.loads(p.report().to_trace())["traceEvents"]
    assert len({e["tid"] for e in events if e["ph"] == "X"}) == 3


def test_decorator_sums_up_and_keeps_the_function(x):
    @profile(metrics=["memory_throughput", "compute_utilization"], ceilings="rated")
    def benchmark(n, *, more=0):
        "Says something."
        for _ in range(n + more):
            nvm.eval(nvm.exp(x))
        return n

    assert benchmark(2) == 2 and benchmark(1, more=3) == 1
    assert (benchmark.__name__, benchmark.__doc__) == ("benchmark", "Says something.")
    report = generate_report()
    assert report.calls == 6
    assert f"{report.memory_efficiency:.2%} {report.compute_efficiency:.2%}".count("%") == 2


def test_decorated_coroutine_is_profiled_to_its_end(x):
    @rated()
    async def work():
        await asyncio.sleep(0)
        nvm.eval(nvm.exp(x))

    asyncio.run(work())
    assert generate_report().calls == 1


def test_ends_where_the_function_raises(x):
    p = rated()
    with pytest.raises(ZeroDivisionError), p:
        nvm.eval(nvm.exp(x))
        1 / 0
    nvm.eval(nvm.exp(x))
    assert p.report().calls == 1 and generate_report().calls == 1


def test_formats(x, tmp_path):
    with rated() as p:
        nvm.eval(nvm.where(x < 0.5, nvm.exp(x), x))
    r = p.report()
    text, page, data = str(r), r.to_html(), json.loads(r.to_json())
    assert "where" in text and "GB/s" in text and f"{100 * r.memory_efficiency:.1f} %" in text
    assert page.startswith("<!doctype html>") and "where" in page
    assert "http" not in page and "src=" not in page  # it refers to nothing
    assert data["kernels"][0]["what"] == r.kernels[0].what
    events = json.loads(r.to_trace())["traceEvents"]
    (call,) = [e for e in events if e["ph"] == "X"]
    assert call["dur"] == pytest.approx(1e6 * r.kernels[0].seconds, abs=1e-3) and call["ts"] == 0
    for name, want in (("a.html", page), ("a.json", r.to_json()), ("a.trace.json", r.to_trace()), ("a.txt", text)):
        r.save(tmp_path / name)
        assert (tmp_path / name).read_text() == want
    with pytest.raises(ValueError, match=r"a\.pdf.*\.html"):
        r.save("a.pdf")


def test_metrics_that_were_not_asked_for(x):
    with rated("compute_utilization") as p:
        nvm.eval(nvm.exp(x))
    r = p.report()
    assert r.compute_efficiency > 0 and r.kernels[0].memory is None
    with pytest.raises(AttributeError, match="memory_throughput is not among the metrics"):
        r.memory_efficiency
    with pytest.raises(RuntimeError, match="timeline"):
        r.to_trace()


@pytest.mark.parametrize(
    ("metrics", "error", "match"),
    [
        (["memory_troughput"], ValueError, "'memory_throughput' is spelled like it"),
        (["memory_throughput", 7], ValueError, "no metric 7"),
        ("timeline", TypeError, "list of names"),
        ([], ValueError, "None means all"),
        (len, TypeError, r"with parentheses: @nvm.profiler.profile\(\)"),
    ],
)
def test_unknown_metrics(metrics, error, match):
    with pytest.raises(error, match=match):
        profile(metrics)


def test_other_errors(monkeypatch):
    with pytest.raises(ValueError, match="'measured' or 'rated', not 'best'"):
        profile(ceilings="best")
    with pytest.raises(TypeError, match="decorates a function, not int"):
        profile()(3)
    with pytest.raises(TypeError, match="generator function numbers"):

        @profile()
        def numbers():
            yield 1

    monkeypatch.setattr("nvm.profiler._last", None)
    with pytest.raises(RuntimeError, match="more|not begun|ended"):
        profile().__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="no profile has ended"):
        generate_report()


def test_ceilings_are_measured_once_and_kept(x, tmp_path):
    before = nvm.settings()["NVM_CACHE_DIR"]
    nvm.set("cache_dir", str(tmp_path))
    try:
        with profile() as p:
            for _ in range(3):
                nvm.eval(nvm.exp(x))
        first = p.report()
        assert all(c["measured"] and c["per_second"] > 1e6 for c in first.ceilings)
        evaluations = nvm.counters()["evaluations"]
        assert p.report().ceilings == first.ceilings
        assert nvm.counters()["evaluations"] == evaluations  # nothing was measured again
        assert first.calls == p.report().calls == 3  # what was evaluated for them is in no profile
    finally:
        nvm.set("cache_dir", before)


def test_bits_are_the_same(x):
    want = nvm.softmax(nvm.sin(x)).tobytes()
    with rated():
        assert nvm.softmax(nvm.sin(x)).tobytes() == want
