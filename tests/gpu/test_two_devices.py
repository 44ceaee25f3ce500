"""Two GPUs in one process: what lies where, what moves between them, and what cannot meet. Skipped where there is one;
the emulator has as many as NVM_EMU_DEVICES says."""

import threading

import numpy as np
import pytest

import families
import nvm
from nvm import _nvm

A, B = "cuda:0", "cuda:1"
FOUND = sum(d.type == "cuda" for d in nvm.devices())
pytestmark = [pytest.mark.emulated, pytest.mark.skipif(FOUND < 2, reason=f"two GPUs are needed, {FOUND} found")]


def ramp(device, n=1000, scale=1):
    return nvm.asarray(np.arange(n, dtype=np.float32) * scale, device=device)


@pytest.mark.parametrize(
    "name", ["map, four functions", "sum, all", "moments, rows", "softmax, rows of 1000", "scan, long", "take"]
)
def test_both_have_the_bits_of_the_cpu(name):
    f, inputs = families.FAMILIES[name]
    want = families.run(f, inputs, "cpu")
    for device in (A, B, A):
        assert all(map(families.same, families.run(f, inputs, device), want)), device


def test_results_stay_where_their_operands_are():
    a, b = ramp(A), ramp(B)
    y, z = a * 2 + 1, b * 3 - 1
    assert (y.device, z.device) == (A, B)
    nvm.eval(y, z)
    assert (y.device, z.device) == (A, B) and float(y[10]) == 21 and float(z[10]) == 29
    free = nvm.asarray(np.float32([2, 4]))
    assert (free * a[:2]).device == A and (free * b[:2]).device == B
    with nvm.device(B):
        assert (nvm.ones(3) + 1).eval().device == B
    assert nvm.get_default_device() == A


def test_what_was_put_on_both_does_not_meet():
    a, b = ramp(A), ramp(B)
    for meet in (
        lambda: a + b,
        lambda: nvm.concat([a, b]),
        lambda: nvm.where(a > 1, a, b),
        lambda: nvm.jit(lambda x, y: x * y)(a, b),
    ):
        with pytest.raises(ValueError, match="cuda:0.*cuda:1|cuda:1.*cuda:0"):
            meet()
    assert float((a.to_device(B) + b)[7]) == 14


@pytest.mark.parametrize("n", [1, 1000, 3 << 20])
def test_copies_go_both_ways(n):
    for there, back in ((A, B), (B, A)):
        x = ramp(there, n) + 1  # not computed yet
        y = x.to_device(back)
        z = (y * 2).to_device(there)
        del x, y  # their memory may be another's when the copies run
        other = [ramp(d, n, -1) + 5 for d in (there, back)]
        nvm.eval(*other)
        assert z.device == there
        np.testing.assert_array_equal(np.asarray(z), (np.arange(n, dtype=np.float32) + 1) * 2)
        assert float(other[0][0]) == float(other[1][0]) == 5


def test_copies_of_views():
    host = np.arange(600, dtype=np.float64).reshape(20, 30)
    x = nvm.asarray(host, device=A)
    for view in (lambda v: v.T, lambda v: v[3:, ::-2], lambda v: v[5], lambda v: v[2:7, 3:4]):
        y = view(x).to_device(B)
        assert y.device == B
        np.testing.assert_array_equal(np.asarray(y), view(host))


def test_one_function_for_both():
    f = nvm.jit(lambda v: nvm.softmax(v * 0.01, axis=1))
    x = np.random.default_rng(3).standard_normal((40, 300)).astype(np.float32)
    out = {d: [f(nvm.asarray(x, device=d)) for _ in range(6)] for d in (A, B)}  # replayed from the third call on
    for d, results in out.items():
        assert all(r.device == d and families.same(np.asarray(r), np.asarray(out[A][0])) for r in results)


def test_memory_is_counted_apart():
    nvm.synchronize()
    before = [nvm.memory_info(d)["used"] for d in (A, B)]
    x = (nvm.ones((1 << 20,), dtype=nvm.float32, device=B) + 1).eval()
    assert nvm.memory_info(B)["used"] - before[1] == 4 << 20 and nvm.memory_info(A)["used"] == before[0]
    assert nvm.memory_info(B)["peak"] >= before[1] + (4 << 20)
    nvm.set_memory_limit(before[1] + (6 << 20), B)
    try:
        with pytest.raises(MemoryError, match=B):
            (nvm.ones((1 << 20,), dtype=nvm.float32, device=B) * 3).eval()
        y = (nvm.ones((1 << 20,), dtype=nvm.float32, device=A) * 3).eval()
    finally:
        nvm.set_memory_limit(0, B)
    del x, y
    nvm.synchronize()
    assert [nvm.memory_info(d)["used"] for d in (A, B)] == before


class Interface:
    def __init__(self, a, **changes):
        self.shown = {**a.__cuda_array_interface__, **changes}

    @property
    def __cuda_array_interface__(self):
        return self.shown


def test_foreign_memory_is_where_its_address_says():
    a, b = ramp(A).eval(), ramp(B).eval()
    assert [nvm.asarray(Interface(v), copy=False).device for v in (a, b)] == [A, B]
    assert nvm.asarray(Interface(b)).device == nvm.jit(lambda v: v + 1)(Interface(b)).device == B
    assert float((Interface(b) + ramp(B))[3]) == 6
    try:
        nvm.set_default_device("cpu")
        assert [nvm.asarray(Interface(v), copy=False).device for v in (a, b)] == [A, B]
        assert nvm.jit(lambda v: v + 1)(Interface(b)).device == B
    finally:
        nvm.set_default_device("auto")
    with pytest.raises(ValueError, match="another device"):
        nvm.asarray(Interface(b), device=A, copy=False)
    there = nvm.asarray(Interface(b), device=A)
    assert there.device == A and float(there[5]) == 5
    with pytest.raises(ValueError, match="cuda:0.*cuda:1"):
        a + Interface(b)


def test_others_streams_are_of_the_memorys_device():
    # what the other stream does would not be waited for, and what it reads be used anew under it
    own = {d: _nvm.stream_get(d) for d in (A, B)}
    for here, other in ((A, B), (B, A)):
        x = (ramp(here) + 1).eval()
        for call in (
            lambda: nvm.asarray(Interface(x, stream=own[other]), copy=False),
            lambda: x.__dlpack__(stream=own[other]),
            lambda: x.to_device("cpu", stream=own[other]),
        ):
            with pytest.raises(ValueError, match=f"of {other}, not of {here}"):
                call()
        assert nvm.from_dlpack(x.__dlpack__(stream=own[here])).tolist() == x.tolist()


def test_a_stream_is_of_its_own_device():
    class Torch:
        def __init__(self, cuda_stream, index):
            self.cuda_stream, self.device = cuda_stream, type("device", (), {"index": index})

    class Cupy:
        def __init__(self, ptr, device_id):
            self.ptr, self.device_id = ptr, device_id

    own = {d: _nvm.stream_get(d) for d in (A, B)}
    for i, d in enumerate((A, B)):
        for s in (own[d], Torch(own[d], i), Torch(0, i), Cupy(0, i), Cupy(own[d], i)):
            with nvm.stream(s):
                address = s if s == own[d] else getattr(s, "cuda_stream", getattr(s, "ptr", 0))
                assert _nvm.stream_get(d) == (address or 1)
                assert float((ramp(d) + 1)[3]) == 4
        with nvm.device(d), nvm.stream(1), nvm.stream(own[d]):
            assert (nvm.ones(3) + 1).eval().device == d
        assert {d: _nvm.stream_get(d) for d in (A, B)} == own
    with nvm.device(B), nvm.stream(2):
        assert _nvm.stream_get(B) == 2 and _nvm.stream_get(A) == own[A]
    assert _nvm.stream_get(B) == own[B]


def test_a_stream_of_the_other_is_refused():
    own = {d: _nvm.stream_get(d) for d in (A, B)}
    for here, other in ((A, B), (B, A)):
        with pytest.raises(ValueError, match=f"not of {here}"):
            with nvm.stream(own[other], here):
                pass
        with nvm.stream(own[here], here):
            assert float(nvm.sum(ramp(here, 100) + 1)) == 5050


def test_a_failure_goes_along_with_a_copy():
    x = ramp(B, 10)
    bad = nvm.take(x, nvm.asarray(np.array([1, 10]), device=B), axis=0)
    with pytest.raises(IndexError, match=r"^\[take\]"):
        np.asarray(bad.to_device(A) + 1)
    assert float(nvm.sum(x)) == 45 and float(nvm.sum(ramp(A, 10))) == 45


def test_a_thread_for_each():
    wrong = []

    def work(device):
        try:
            f = nvm.jit(lambda v, w: nvm.sum(v * w) + nvm.max(v))
            for i in range(12):
                v = ramp(device, 500 + i)
                if float(f(v, v / v[-1])) != float(f(v.to_device("cpu"), (v / v[-1]).to_device("cpu"))):
                    wrong.append((device, i))
        except Exception as e:
            wrong.append((device, e))

    threads = [threading.Thread(target=work, args=(d,)) for d in (A, B, A, B)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_foreign_arrays_lie_where_they_lie(torch):
    t = torch.arange(12.0, device="cuda:1").reshape(3, 4)
    x = nvm.from_dlpack(t)
    assert x.device == B and np.asarray(x.T * 2).tolist() == (t.T * 2).tolist()
    back = torch.from_dlpack(x + 1)
    assert back.device == t.device and back.tolist() == (t + 1).tolist()
    with pytest.raises(ValueError, match="cuda:0"):
        nvm.eval(x + ramp(A, 4))
