"""await, Array.ready and nvm.async_eval on a GPU: elements are in memory, and work goes to the caller's streams."""

import asyncio

import numpy as np
import pytest

import nvm


@pytest.mark.emulated
def test_await_and_ready(device):
    x = nvm.asarray(np.linspace(0, 1, 4096, dtype=np.float32), device=device)

    async def main():
        y = nvm.exp(x) + 1
        assert not y.ready()
        assert (await y) is y and y.ready()
        return y.device == device

    assert asyncio.run(main())


@pytest.mark.emulated
@pytest.mark.parametrize("handle", [1, 2])
def test_work_goes_to_the_callers_stream(device, handle):
    x = nvm.asarray(np.arange(256.0), device=device)
    with nvm.stream(handle, device):
        e = nvm.async_eval(x * 2, nvm.asarray([1.0], device="cpu") + 1)
        a, b = e.result()
    assert a.ready() and a.device == device and b.device == "cpu"
    np.testing.assert_array_equal(np.asarray(a), np.arange(256.0) * 2)


@pytest.mark.emulated
def test_late_errors_are_awaited(device):
    x = nvm.asarray(np.arange(4.0), device=device)

    async def main():
        with pytest.raises(IndexError, match="out of range"):
            await nvm.take(x, nvm.asarray(np.arange(3, 6), device=device), axis=0)

    asyncio.run(main())


@pytest.mark.emulated
def test_a_stream_lives_as_long_as_its_evaluation(device):
    x = nvm.asarray(np.arange(256.0), device=device)
    with nvm.Stream(device) as s:
        e = nvm.async_eval(nvm.sqrt(x))
        nested = nvm.async_eval(x + 1)
    assert e in s._awaited or e.done()
    del s  # the evaluations keep it
    np.testing.assert_array_equal(np.asarray(e.result()), np.sqrt(np.arange(256.0)))
    np.testing.assert_array_equal(np.asarray(nested.result()), np.arange(256.0) + 1)
    s = nvm.Stream(device)
    s._awaited.add(e)
    with pytest.raises(RuntimeError, match="an evaluation of async_eval still uses it"):
        s.close()
    s._awaited.clear()
    s.close()
