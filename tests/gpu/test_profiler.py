"""nvm.profiler on a GPU: kernels are timed by events, whatever replays them otherwise."""

import json

import numpy as np
import pytest

import nvm

N = 1 << 12


@pytest.fixture
def x(device):
    return nvm.asarray(np.linspace(0, 1, N, dtype=np.float32), device=device)


@pytest.mark.emulated
def test_kernels_of_a_gpu_are_timed(x, device):
    f = nvm.jit(lambda x: (nvm.tanh(x) * 2, nvm.cumulative_sum(x)))
    want = [y.tobytes() for y in f(x)]
    for _ in range(4):  # from the third call on graphs replay it
        f(x)
    with nvm.profiler.profile(ceilings="rated") as p:
        for _ in range(5):
            got = f(x)
    assert [y.tobytes() for y in got] == want
    r = p.report()
    assert {k.device for k in r.kernels} == {device}
    assert all(k.calls == 5 and k.seconds > 0 for k in r.kernels)
    tanh = next(k for k in r.kernels if "tanh" in k.what)
    assert tanh.by == "cuda" and tanh.bytes >= 5 * 2 * x.nbytes
    assert 0 < r.memory_efficiency <= 1 and 0 < r.compute_efficiency <= 1
    events = [e for e in json.loads(r.to_trace())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == r.calls
    starts = [e["ts"] for e in sorted(events, key=lambda e: e["ts"])]
    assert starts[0] == 0 and starts[-1] < 1e6 * r.seconds


@pytest.mark.emulated
def test_matrix_products_and_both_devices(x):
    a = x.reshape((64, 64))
    with nvm.profiler.profile(ceilings="rated") as p:
        nvm.eval(a @ a)
        nvm.eval(nvm.exp(nvm.asarray(np.ones(1 << 16), device="cpu")))
    r = p.report()
    gemm = next(k for k in r.kernels if k.kind == "gemm")
    assert gemm.operations == 2 * 64**3 and gemm.device != "cpu"
    assert {k.device for k in r.kernels} == {"cpu", gemm.device}


@pytest.mark.emulated
def test_nested_profiles_are_settled(x):
    outer, inner = (nvm.profiler.profile(ceilings="rated") for _ in range(2))
    with outer:
        nvm.eval(nvm.exp(x))
        with inner:
            nvm.eval(nvm.exp(x))
        nvm.eval(nvm.exp(x))
        assert outer.report().calls == 3
    assert inner.report().calls == 1


def test_measured_ceilings(x, tmp_path):
    before = nvm.settings()["NVM_CACHE_DIR"]
    nvm.set("cache_dir", str(tmp_path))
    try:
        with nvm.profiler.profile() as p:
            nvm.eval(nvm.exp(x) + 1)
        assert all(c["measured"] and c["per_second"] > 1e11 for c in p.report().ceilings)
    finally:
        nvm.set("cache_dir", before)
