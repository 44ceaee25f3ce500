"""nvm.auto_tune and nvm.tune: schedules chosen by measuring. What is found is remembered for each kind of device."""
import sys

from . import _nvm


class _Bar:
    """A line of progress on a terminal."""

    def __init__(self, out):
        self.out, self.shown = out, False

    def __call__(self, step, steps, what, part):
        done = int(24 * (step + part) / steps)
        self.out.write(f"\r\x1b[Ktuning [{'#' * done}{'.' * (24 - done)}] {step + 1} of {steps}: {what[:40]}")
        self.out.flush()
        self.shown = True

    def close(self):
        if self.shown:
            self.out.write("\r\x1b[K")
            self.out.flush()


class auto_tune:
    """with nvm.auto_tune(): what is evaluated inside is measured on the values at hand, where no record says how it
    runs best.

    budget: seconds for all that is measured; what is left over runs as it would have. cold: caches are emptied before
    each sample. progress: a function of (step, steps, what, part), called now and then in a thread of its own; by
    default a bar, if standard error is a terminal; False: none. Results are the same bits with and without, but for how
    sums of matrix products are rounded.
    NVM_TUNE=frozen, off or NVM_REPRODUCIBLE=1 measure nothing.
    """

    def __init__(self, *, budget=60.0, cold=False, progress=None):
        if not budget > 0:
            raise ValueError(f"[auto_tune] a budget of {budget!r} seconds")
        if progress is None:
            progress = _Bar(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else False
        self.budget, self.cold, self.progress = float(budget), bool(cold), progress or None

    def _watch(self):
        seen, over = 0, False
        while not over:
            over = self._over.wait(0.05)
            n, *where = _nvm.tune_told(self._session)
            if n != seen:
                seen = n
                self.progress(*where)

    def __enter__(self):
        self._session = _nvm.tune_begin(self.budget, self.cold)
        if self.progress:
            import threading  # not at import: it is heavy
            self._over = threading.Event()
            self._watcher = threading.Thread(target=self._watch, name="nvm.auto_tune", daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, *error):
        try:
            _nvm.tune_end()
        finally:
            if self.progress:
                self._over.set()
                self._watcher.join()
        if isinstance(self.progress, _Bar):
            self.progress.close()
        del self._session


def tune(fn, /, *args, **kwargs):
    """fn(*args, **kwargs) with its steps measured (nvm.auto_tune); fn is jitted if it is not. Returns what fn
    returns."""
    from ._jit import jit
    with auto_tune():
        result = (fn if isinstance(fn, _nvm.Jitted) else jit(fn))(*args, **kwargs)
        _nvm.eval(result)
    return result


_USAGE = """python -m nvm tune list              the records, in words
python -m nvm tune export [FILE]     as JSON
python -m nvm tune import FILE       takes records of such a file
python -m nvm tune clear             forgets all
python -m nvm tune run [--budget SECONDS] [--cold] SCRIPT [ARGUMENTS]"""


def _run(args):
    import runpy
    options = {}
    while args and args[0].startswith("--"):
        if args[0] == "--cold":
            options["cold"] = True
        elif args[0] == "--budget" and len(args) > 1:
            options["budget"] = float(args.pop(1))
        else:
            return None
        args = args[1:]
    if not args:
        return None
    sys.argv = list(args)
    with auto_tune(**options):
        runpy.run_path(args[0], run_name="__main__")
    counts = _nvm.tune_counters()
    print(f"{counts['measured']} steps measured, {counts['timed']} candidates timed, {counts['found']} records found",
          file=sys.stderr)
    return 0


def command(args):
    """What `python -m nvm tune ...` does; the exit status."""
    if args == ["list"]:
        print(_nvm.tune_list(), end="")
    elif args[:1] == ["export"] and len(args) <= 2:
        if len(args) == 2:
            with open(args[1], "w") as f:
                f.write(_nvm.tune_export())
        else:
            print(_nvm.tune_export(), end="")
    elif args[:1] == ["import"] and len(args) == 2:
        with open(args[1]) as f:
            print(_nvm.tune_import(f.read()), "records")
    elif args == ["clear"]:
        print(_nvm.tune_clear(), "records dropped")
    elif args[:1] == ["run"] and _run(args[1:]) is not None:
        pass
    else:
        print(_USAGE, file=sys.stderr)
        return 2
    return 0
