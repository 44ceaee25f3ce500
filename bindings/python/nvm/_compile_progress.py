"""nvm.compile_progress: a bar while kernels are compiled, which makes the first calls of a program longer."""

from . import _nvm

_EACH = 0.05  # seconds between two looks


class compile_progress:
    """with nvm.compile_progress(): where kernels are compiled for longer than `after` seconds without a pause, for the
    CPU or a GPU, that is shown until it ends: how many are ready, how many are being compiled, and since when.

    progress: a function of (ready, all, what, 0.0), called now and then in a thread of its own; None: a bar in a
    terminal (tqdm's, if it is installed) and, by tqdm, in a notebook; True: elsewhere lines of the logger nvm.compile,
    at level INFO; False: nothing. Kernels that the disk cache has are not compiled. TypeError for another progress,
    ValueError for an `after` below 0.

    >>> import nvm
    >>> with nvm.compile_progress(after=2.0):
    ...     y = (nvm.ones(4) * 2).eval()
    >>> y
    array([2., 2., 2., 2.])
    """

    def __init__(self, *, after=0.5, progress=None):
        if not after >= 0:
            raise ValueError(f"[compile_progress] after is {after!r} seconds; it must be 0 or more")
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError(
                "[compile_progress] progress is a function of (ready, all, what, part), True, False or None, "
                f"not {type(progress).__name__}"
            )
        self.after, self.progress = after, progress

    def _choose(self):
        if self.progress is not None and not isinstance(self.progress, bool):
            return self.progress
        from ._progress import choose

        return choose(self.progress, "compiling")

    def _watch(self):
        bar = None
        while not self._over.wait(_EACH):
            n, seconds = _nvm.compiling()
            if n and seconds >= self.after:
                bar = bar or self._choose()
                ready = _nvm.counters()["kernels_compiled"] - self._before
                if bar is not None:
                    bar(ready, ready + n, f"{n} kernel{'s' if n > 1 else ''} for {seconds:.1f} s", 0.0)
            elif bar is not None:
                bar = self._end(bar)
        self._end(bar)

    def _end(self, bar):
        if hasattr(bar, "close"):
            bar.close()

    def __enter__(self):
        self._watcher = None
        if self.progress is not False:
            import threading

            self._before, self._over = _nvm.counters()["kernels_compiled"], threading.Event()
            self._watcher = threading.Thread(target=self._watch, name="nvm.compile_progress", daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, *error):
        if self._watcher is not None:
            self._over.set()
            self._watcher.join()
