"""nvm.Stream and nvm.Event on the CPU, where they are accepted and everything is in order."""

import pytest

import nvm
from nvm import Event, Stream


@pytest.fixture(autouse=True)
def cpu():
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    yield
    nvm.set_default_device(before)


def test_a_stream_of_the_cpu():
    f = nvm.jit(lambda x: x * 2)
    with Stream() as s, s:
        y = f(nvm.ones(3))
    assert s.device == "cpu" and y.tolist() == [2, 2, 2]
    s.sync()
    other = Stream("cpu")
    other.wait(s.record())
    other.wait(s)
    assert repr(s) == "<nvm.Stream on cpu>"
    with pytest.raises(AttributeError, match="no handle"):
        s.handle
    with pytest.raises(RuntimeError, match="none of CUDA"):
        s.__cuda_stream__()
    s.close()


def test_events_of_the_cpu():
    first, second = Event(), Event("cpu")
    assert first.record() is first and first.is_done
    nvm.eval(nvm.sin(nvm.ones(100_000)))
    second.record(Stream())
    assert second - first == first.elapsed_ms(second) > 0 > second.elapsed_ms(first)
    second.wait()
    second.wait(Stream())
    second.sync()
    with Event() as e:
        nvm.eval(nvm.sin(nvm.ones(100_000)))
    assert e.elapsed_ms() > 0
    with pytest.raises(AttributeError, match="no handle"):
        e.handle


def test_closed():
    s, e = Stream(), Event()
    s.close()
    e.close()
    for use in (s.__enter__, s.record, s.sync, lambda: s.wait(Stream())):
        with pytest.raises(RuntimeError, match="Stream. it was closed"):
            use()
    for use in (e.record, e.sync, lambda: e.is_done, lambda: Stream().wait(e)):
        with pytest.raises(RuntimeError, match="Event. it was closed"):
            use()


def test_freeing_nothing_is_no_error():
    nvm._nvm.stream_free("cpu", 0)
    nvm._nvm.event_free("cpu", 0)


def test_refused():
    with pytest.raises(RuntimeError, match="not recorded"):
        Event().record().elapsed_ms(Event())
    with pytest.raises(RuntimeError, match="not recorded"):
        Event().record().elapsed_ms()
    with pytest.raises(TypeError, match="an Event or a Stream, not int"):
        Stream().wait(3)
    with pytest.raises(TypeError):
        Event() - 3
    with pytest.raises(ValueError, match="no device 'gpu'"):
        Stream("gpu")
