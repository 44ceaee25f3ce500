"""nvm.async_eval and `await array`: evaluations by threads of their own, which release the interpreter's lock. Threads
are made when one is first needed."""

import os
from _thread import allocate_lock

from . import _nvm
from ._stream import entered

_MOST = 32  # threads: an evaluation uses the library's pool, so more of them wait for each other
_work = _queue = None  # a Condition over a deque, made with the first thread
_idle, _threads = 0, 0
_running = {}  # evaluations that a thread runs; a dict keeps their order
_making = allocate_lock()


def _serve():
    global _idle
    while True:
        with _work:
            while not _queue:
                _idle += 1
                _work.wait()
                _idle -= 1
            task = _queue.popleft()
            _running[task] = None
        try:
            task._run()
        finally:
            with _work:
                del _running[task]
        del task


def _stop():
    """At the interpreter's end: everything is cancelled; what runs is waited for, as it uses memory that goes away."""
    with _work:
        waiting, running = list(_queue), list(_running)
        _queue.clear()
    for task in running:
        task.cancel()
    for task in waiting:
        task._cancelled = True
        task._end(KeyboardInterrupt())
    for task in running:
        task._wait(None)


def _make_queue():
    global _work, _queue
    import threading
    from collections import deque

    _queue, _work = deque(), threading.Condition()  # in this order: who sees _work uses the queue


def _begin():
    """Makes what threads share."""
    with _making:
        if _work is None:
            import atexit

            _make_queue()
            atexit.register(_stop)


def _forget():
    """In a forked child, where no thread of these exists."""
    global _idle, _threads, _running, _making
    if _work is not None:
        _make_queue()
    _idle, _threads, _running, _making = 0, 0, {}, allocate_lock()


os.register_at_fork(after_in_child=_forget)


def _submit(task):
    global _threads
    import threading

    if _work is None:
        _begin()
    with _work:
        _queue.append(task)
        more = _idle < len(_queue) and _threads < _MOST
        _threads += more
        _work.notify()
    if more:
        try:
            threading.Thread(target=_serve, name=f"nvm.async_eval-{_threads}", daemon=True).start()
        except BaseException:
            if _withdraw(task):
                raise


def _withdraw(task):
    """After a thread could not be started: whether its task still waits, which it does no more."""
    global _threads
    with _work:
        _threads -= 1
        waits = task in _queue
        if waits:
            _queue.remove(task)
    return waits


class Evaluation:
    """What nvm.async_eval returns: an evaluation that another thread makes. It can be awaited, in any asyncio loop and
    as often as one likes; result() waits in a thread without a loop.

    >>> import nvm
    >>> e = nvm.async_eval(nvm.ones(2) + 1)
    >>> e.result()
    array([2., 2.])
    """

    def __init__(self, arrays):
        import threading

        self._arrays, self._handle = arrays, _nvm.evaluation_new(arrays)
        self._changed = threading.Condition()
        self._done, self._cancelled, self._error, self._tells = False, False, None, []
        self._awaiters = 0
        self._streams = entered()  # its work goes to them, so they stay open
        for s in self._streams:
            s._awaited.add(self)
        try:
            _submit(self)
        except BaseException:
            self._leave_streams()
            raise

    def _leave_streams(self):
        streams, self._streams = self._streams, ()
        for s in streams:
            s._awaited.discard(self)

    def _run(self):
        error = None
        try:
            _nvm.evaluation_run(self._handle)
        except BaseException as e:
            error = e
        self._end(error)

    def _end(self, error):
        self._leave_streams()
        with self._changed:
            self._done, self._error, self._handle = True, error, None
            tells, self._tells = self._tells, []
            self._changed.notify_all()
        for tell in tells:
            self._call(tell, BaseException)

    def _call(self, fn, caught):
        try:
            fn(self)
        except caught:
            import logging

            logging.getLogger("nvm").exception("[async_eval] a callback of %r failed", self)

    def _wait(self, timeout):
        with self._changed:
            return self._changed.wait_for(lambda: self._done, timeout)

    def _await_more(self, n):
        """n more who wait for it; how many there are then."""
        with self._changed:
            self._awaiters += n
            return self._awaiters

    def _value(self, cancelled):
        if self._cancelled and isinstance(self._error, KeyboardInterrupt):
            raise cancelled("[async_eval] the evaluation was cancelled")
        if self._error is not None:
            raise self._error
        return self._arrays[0] if len(self._arrays) == 1 else self._arrays

    def done(self):
        """True if it has ended: with a value, an error, or because it was cancelled."""
        return self._done

    def cancelled(self):
        """True if it was cancelled before it was complete."""
        return self._done and self._cancelled and isinstance(self._error, KeyboardInterrupt)

    def cancel(self):
        """Asks it to end between kernels, compilations and blocks of a kernel, as Ctrl-C does; its arrays stay pending.
        Returns False if it has ended before."""
        with self._changed:
            if self._done:
                return False
            self._cancelled = True
            _nvm.evaluation_cancel(self._handle)
        return True

    def result(self, timeout=None):
        """Waits for so many seconds (None: as long as it takes) and returns the arrays. TimeoutError; what the
        evaluation raised; concurrent.futures.CancelledError."""
        self._await_more(1)
        try:
            if not self._wait(timeout):
                raise TimeoutError(f"[async_eval] the evaluation has not ended after {timeout} seconds")
        finally:
            self._await_more(-1)
        from concurrent.futures import CancelledError

        return self._value(CancelledError)

    def add_done_callback(self, fn):
        """Calls fn(evaluation) once it has ended, in the thread that made it; at once if it has. An
        exception that fn raises is logged, by the logger "nvm"."""
        with self._changed:
            if not self._done:
                self._tells.append(fn)
                return
        self._call(fn, Exception)

    def __await__(self):
        import asyncio

        if not self._done:
            loop = asyncio.get_running_loop()
            ended = loop.create_future()
            self.add_done_callback(lambda _: _tell(loop, ended))
            self._await_more(1)
            left = False
            try:
                yield from ended
            except asyncio.CancelledError:
                left = True
                raise
            finally:
                if not self._await_more(-1) and left:
                    self.cancel()
        return self._value(asyncio.CancelledError)


def _wake(ended):
    if not ended.done():
        ended.set_result(None)


def _tell(loop, ended):
    try:
        loop.call_soon_threadsafe(_wake, ended)
    except RuntimeError:  # the loop was closed: nobody waits there any more
        pass


def async_eval(*arrays):
    """Starts to evaluate arrays, of any shapes and dtypes, together, in another thread, and returns at once an
    Evaluation: `await` gives the array, or a tuple of several, once their elements are in memory (on a GPU too);
    result() does in a thread without an event loop. Work on a GPU goes to the caller's streams.

    What the evaluation raises (MemoryError, IndexError, ...) is raised by await and result(). A task that is cancelled
    while it awaits, and nobody else awaits or is in result(), cancels the evaluation, whose arrays stay pending and can
    be evaluated again; asyncio.shield keeps it. TypeError if there is no array.

    >>> import nvm
    >>> nvm.async_eval(nvm.ones(2) + 1).result()
    array([2., 2.])
    """
    for a in arrays:
        if not isinstance(a, _nvm.Array):
            raise TypeError(f"[async_eval] takes arrays of nvm, not {type(a).__name__}")
    if not arrays:
        raise TypeError("[async_eval] needs at least one array")
    return Evaluation(arrays)
