"""nvm.Stream and nvm.Event on a GPU: where work goes, its order and time, and what other libraries see."""

import numpy as np
import pytest

import nvm
from nvm import Event, Stream

pytestmark = pytest.mark.emulated
N = 1 << 12


@pytest.fixture
def x(device):
    return nvm.asarray(np.linspace(0, 1, N, dtype=np.float32), device=device)


def current(device):
    return nvm._nvm.stream_get(device)


def test_work_goes_to_the_stream(x, device):
    outside = current(device)
    with Stream(device) as s:
        assert current(device) == s.handle != outside
        with Stream(device) as inner:
            assert current(device) == inner.handle != s.handle
        with s:
            assert current(device) == s.handle
        assert current(device) == s.handle
        y = nvm.exp(x).eval()
        assert y.__cuda_array_interface__["stream"] == s.handle
    assert current(device) == outside
    np.testing.assert_allclose(np.asarray(y), np.exp(np.linspace(0, 1, N, dtype=np.float32)), rtol=1e-6)


def test_values_are_ordered_between_streams(x, device):
    f = nvm.jit(lambda x: nvm.cumulative_sum(x) + 1)
    want = np.asarray(f(f(f(x))))
    streams = [Stream(device) for _ in range(3)]
    y = x
    for s in streams:
        with s:
            y = f(y)
    np.testing.assert_array_equal(np.asarray(y), want)
    for s in streams:
        s.sync()
        s.close()


def test_arrays_outlive_their_stream(x, device):
    """Of memory that others were told of it is not known when they stop using it."""
    want = np.exp(np.asarray(x))
    for told in (False, True):
        s = Stream(device)
        with s:
            y = nvm.exp(x).eval()
            z = nvm.negative(y).eval()
            if told:
                assert y.__cuda_array_interface__["stream"] == s.handle
        s.close()
        np.testing.assert_allclose(np.asarray(y + z + y), want, rtol=1e-6)
        del y
        np.testing.assert_allclose(np.asarray(z), -want, rtol=1e-6)
        with Stream(device):
            np.testing.assert_array_equal(np.asarray(nvm.sqrt(x)), np.sqrt(np.asarray(x)))


def test_events_order_and_measure(x, device):
    a, b = Stream(device), Stream(device)
    first = a.record()
    with a:
        y = nvm.exp(x).eval()
    second = a.record(Event(device))
    b.wait(second)
    b.wait(a)
    second.wait(b)
    done = b.record()
    done.sync()
    assert first.is_done and second.is_done and done.is_done
    assert 0 <= first.elapsed_ms(second) == second - first
    assert y.ready()
    with Event(device) as e:
        nvm.exp(x).eval()
    assert e.elapsed_ms() >= 0


def test_other_streams_and_protocols(x, device):
    s = Stream(device)
    assert s.__cuda_stream__() == (0, s.handle)
    again = Stream.from_handle(s)  # anything with __cuda_stream__
    assert (again.handle, again.device) == (s.handle, device)
    with nvm.stream(s):
        assert current(device) == s.handle
    with Stream.from_handle(1, device) as legacy:
        assert current(device) == 1
        nvm.exp(x).eval()
    legacy.sync()


def test_closed_and_mixed(x, device):
    s = Stream(device)
    with s, pytest.raises(RuntimeError, match="still uses it"):
        s.close()
    s.close()
    s.close()
    assert "closed" in repr(s)
    with pytest.raises(RuntimeError, match="closed"):
        s.sync()
    cpu, gpu = Stream("cpu"), Stream(device)
    cpu.wait(gpu)
    gpu.wait(cpu.record())
    with pytest.raises(ValueError, match="the stream is of cpu, the event of cuda:0"):
        Event(device).record(cpu)
    with pytest.raises(ValueError, match="of two devices|are of"):
        Event(device).record().elapsed_ms(Event("cpu").record())


def test_a_stream_that_goes_away(x, device):
    """Memory and values that were made on it stay usable."""
    for _ in range(5):
        with Stream(device):
            y = nvm.exp(x).eval()
    z = y + 1
    np.testing.assert_array_equal(np.asarray(z), np.asarray(y) + 1)
