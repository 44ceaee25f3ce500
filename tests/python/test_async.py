"""await array, Array.ready and nvm.async_eval: the loop goes on, values and errors come, cancelling ends the work."""

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import nvm

START = np.linspace(0.1, 1, 1 << 20)


def long(n=40, start=START):
    """A pending array that takes a fraction of a second; from 130 steps on building it would evaluate."""
    y = nvm.asarray(start, device="cpu")
    for _ in range(n):
        y = nvm.cumulative_sum(nvm.sin(y)) / 1e6 + y
    return y


def test_await_gives_the_array_itself():
    async def main():
        y = long(2)
        assert not y.ready()
        assert (await y) is y
        assert y.ready() and (await y) is y
        return y

    assert asyncio.run(main()).tobytes() == long(2).tobytes()


def test_the_loop_goes_on_meanwhile():
    async def main():
        turns = 0
        y = asyncio.ensure_future(asyncio.wait_for(nvm.async_eval(long()), None))
        while not y.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(main()) > 20  # two, if the evaluation kept the loop


def test_ready_starts_nothing():
    y = nvm.exp(nvm.asarray(START))
    before = nvm.counters()["evaluations"]
    assert [y.ready() for _ in range(3)] == [False] * 3
    assert nvm.counters()["evaluations"] == before
    nvm.eval(y)
    assert y.ready() and nvm.asarray([1.0]).ready()
    assert y[3:].ready() is not None


def test_several_awaits_and_one_array_twice():
    async def main():
        a, b = long(3), long(4)
        got = await asyncio.gather(_value(a), _value(b), _value(a), _value(a + b))
        both = nvm.async_eval(nvm.exp(a), b)
        first, second = await asyncio.gather(both, both)
        assert first is second and first[1] is b
        return got

    a, b, again, total = asyncio.run(main())
    assert a is again
    np.testing.assert_array_equal(np.asarray(total), np.asarray(a) + np.asarray(b))


async def _value(x):
    return await x


def test_many_at_once():
    async def main():
        x = nvm.asarray(START[:5000])
        return await asyncio.gather(*(_value(nvm.sin(x) * i + nvm.exp(x)) for i in range(100)))

    x = START[:5000]
    for i, y in enumerate(asyncio.run(main())):
        np.testing.assert_allclose(np.asarray(y), np.sin(x) * i + np.exp(x), rtol=1e-14)


def out_of_range():
    return nvm.take(nvm.asarray([1.0, 2.0]), nvm.asarray(np.arange(3)) + 0, axis=0)


def test_errors_are_raised_where_it_is_awaited():
    async def main():
        with pytest.raises(IndexError, match="out of range"):
            await out_of_range()
        e = nvm.async_eval(out_of_range())
        for _ in range(2):
            with pytest.raises(IndexError):
                await e

    asyncio.run(main())
    with pytest.raises(IndexError):
        nvm.async_eval(out_of_range()).result()


def too_long():
    return long(100, np.linspace(0.1, 1, 1 << 23))


def test_a_cancelled_task_cancels_the_evaluation():
    async def main():
        y = too_long()
        task = asyncio.ensure_future(_value(y))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_value(y), 0.05)
        return y.ready()

    assert asyncio.run(main()) is False


def test_what_was_cancelled_can_be_evaluated():
    y = long(10)
    e = nvm.async_eval(y)
    e.cancel()
    try:
        e.result()
    except concurrent.futures.CancelledError:
        assert e.cancelled() and e.done()
    assert e.cancel() is False
    assert y.tobytes() == long(10).tobytes()


def test_one_that_is_cancelled_does_not_end_the_other():
    y = long(10)
    first, second = nvm.async_eval(y), nvm.async_eval(y)
    first.cancel()
    assert second.result() is y


def test_one_that_leaves_does_not_end_what_others_await():
    async def main():
        e = nvm.async_eval(long(60))
        first, second = asyncio.ensure_future(_value(e)), asyncio.ensure_future(_value(e))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return (await second).ready()

    assert asyncio.run(main())


def test_the_last_one_that_leaves_ends_it():
    async def main():
        e = nvm.async_eval(too_long())
        tasks = [asyncio.ensure_future(_value(e)) for _ in range(2)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        with pytest.raises(asyncio.CancelledError):
            await e
        return e.cancelled()

    assert asyncio.run(main())


def test_callbacks_that_raise_are_logged(caplog):
    told = []
    for _ in range(34):  # more than there are threads, none of which ends
        e = nvm.async_eval(long(1))
        e.add_done_callback(lambda e: 1 / 0)
        e.add_done_callback(told.append)
        e.result(60)
    assert nvm.async_eval(long(1)).result(60).ready()
    assert len(told) >= 33  # the last one may be told behind result()
    records = [r for r in caplog.records if r.name == "nvm"]
    assert len(records) >= 33 and all("[async_eval] a callback of" in r.message for r in records)


def test_a_loop_that_is_closed_early():
    loop = asyncio.new_event_loop()

    async def leave():
        e = nvm.async_eval(long(20))
        asyncio.ensure_future(_value_of(e))
        await asyncio.sleep(0)
        return e

    async def _value_of(e):
        return await e

    e = loop.run_until_complete(leave())
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False
    loop.close()
    assert e.result().ready()


def test_result_in_a_thread_without_a_loop():
    e, told = nvm.async_eval(long(30)), threading.Event()
    e.add_done_callback(lambda e: told.set())
    with pytest.raises(TimeoutError):
        e.result(1e-6)
    assert e.result() is e.result(0) and e.done() and not e.cancelled()
    assert told.wait(60)
    late = []
    e.add_done_callback(late.append)
    assert late == [e]


def test_writes_behind_its_start_are_not_seen():
    y = long(3)
    e = nvm.async_eval(y + 0)
    y[0] = 7
    assert float(e.result()[0]) != 7 and float(y[0]) == 7
    e = nvm.async_eval(y)
    y[0] = 8
    assert e.result() is y and float(y[0]) == 8


def test_refused():
    with pytest.raises(TypeError, match="at least one"):
        nvm.async_eval()
    with pytest.raises(TypeError, match="takes arrays of nvm, not ndarray"):
        nvm.async_eval(START)

    @nvm.jit
    def f(x):
        nvm.async_eval(x + 1).result()
        return x

    with pytest.raises(RuntimeError, match="traced"):
        f(nvm.ones(3))


BEGIN = """
import asyncio, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import nvm
x = nvm.asarray(np.linspace(0.1, 1, 1 << 23), device="cpu")
def long(n):
    y = x
    for _ in range(n):
        y = nvm.cumulative_sum(nvm.sin(y)) / 1e6 + y
    return y
async def value(y):
    return await y
"""


def process(code):
    p = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "NVM_CACHE_DIR": "off"},
    )
    assert p.returncode == 0 and not p.stderr, p.stderr
    return p.stdout.split()


def test_ctrl_c_ends_it():
    out = process(
        """
y = long(100)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    asyncio.run(value(y))
except KeyboardInterrupt:
    print("interrupted", y.ready())
print(float(asyncio.run(value(long(1)))[0]) > 0)
"""
    )
    assert out == ["interrupted", "False", "True"]


def test_the_interpreter_ends_while_one_runs():
    assert process("e = nvm.async_eval(long(100)); time.sleep(0.1); print('ends')") == ["ends"]


def test_what_waits_for_a_thread_is_cancelled_at_the_end():
    out = process(
        """
import atexit
import nvm._async
atexit.register(lambda: print(waits.done(), waits.cancelled()))  # called behind the cancelling
nvm._async._MOST = 1
runs, waits = nvm.async_eval(long(100)), nvm.async_eval(x + 1)
"""
    )
    assert out == ["True", "True"]


def test_threads_that_cannot_be_started():
    out = process(
        """
def refuse(self):
    raise RuntimeError("there is no thread")
start, threading.Thread.start = threading.Thread.start, refuse
failed = 0
for _ in range(33):
    try:
        nvm.async_eval(x + 1)
    except RuntimeError:
        failed += 1
threading.Thread.start = start
print(failed, nvm.async_eval(x + 2).result(60).ready())
"""
    )
    assert out == ["33", "True"]


def test_after_a_fork():
    out = process(
        """
import warnings
warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)  # Python 3.12's, for any thread
asyncio.run(value(long(2)))
pid = os.fork()
if not pid:
    print(float(asyncio.run(value(long(2)))[0]) > 0, flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""
    )
    assert out == ["True", "0"]
