"""nvm.auto_tune and nvm.tune: schedules chosen by measuring. What is found is remembered for each kind of device."""

import os
import sys

from . import _nvm


class auto_tune:
    """with nvm.auto_tune(): what is evaluated inside is measured on the values at hand, where no record says how it
    runs best.

    budget: seconds for all that is measured; what is left over runs as it would have, and is measured in a later
    session. cold: caches are emptied before each sample. progress: a function of (step, steps, what, part), called now
    and then in a thread of its own; None: a bar in a terminal (tqdm's, if it is installed) and, by tqdm, in a notebook;
    True: elsewhere a line of the logger nvm.tune for each step, at level INFO; False: nothing. Results are the same
    bits with and without, but for how sums of matrix products are rounded.
    NVM_TUNE=frozen, off or NVM_REPRODUCIBLE=1 measure nothing.

    >>> import nvm
    >>> with nvm.auto_tune(budget=1, progress=False):
    ...     y = (nvm.ones(4) * 2).eval()
    >>> y
    array([2., 2., 2., 2.])
    """

    def __init__(self, *, budget=60.0, cold=False, progress=None):
        if not budget > 0:
            raise ValueError(f"[auto_tune] the budget is {budget!r} seconds; it must be more than 0")
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            raise TypeError(
                "[auto_tune] progress is a function of (step, steps, what, part), True, False or None, "
                f"not {type(progress).__name__}"
            )
        self._bar = None
        if progress is None or progress is True:
            from ._progress import choose

            self._bar = progress = choose(progress)
        self.budget, self.cold = float(budget), bool(cold)
        self.progress = None if progress is False else progress

    def _watch(self):
        seen, over = 0, False
        while not over:
            over = self._over.wait(0.05)
            n, *where = _nvm.tune_progress(self._session)
            if n != seen:
                seen = n
                self.progress(*where)

    def __enter__(self):
        self._session = _nvm.tune_begin(self.budget, self.cold)
        if self.progress is not None:
            import threading  # not at import: it is heavy

            self._over = threading.Event()
            self._watcher = threading.Thread(target=self._watch, name="nvm.auto_tune", daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, *error):
        try:
            _nvm.tune_end()
        finally:
            if self.progress is not None:
                self._over.set()
                self._watcher.join()
        if self._bar is not None:
            self._bar.close()
        del self._session


def tune(fn, /, *args, **kwargs):
    """fn(*args, **kwargs) with its steps measured (nvm.auto_tune); fn is jitted if it is not. Returns what fn returns.

    All arguments are fn's. For a budget, cold caches or progress of one's own: with nvm.auto_tune(budget=...): fn(...).
    Not inside a function that nvm.jit is tracing, where there are no values to measure with: RuntimeError.

    >>> import nvm
    >>> nvm.tune(lambda x: x + 1, nvm.ones(2))
    array([2., 2.])
    """
    from ._jit import jit

    if _nvm.tracing():
        raise RuntimeError(
            "[tune] inside a traced function: its arrays have no values to measure with; call nvm.tune "
            "on the function that is jitted"
        )
    with auto_tune():
        result = (fn if isinstance(fn, _nvm.Jitted) else jit(fn))(*args, **kwargs)
        _nvm.eval(result)
    return result


_USAGE = """python -m nvm tune list              the records, in words
python -m nvm tune export [FILE]     as JSON
python -m nvm tune import FILE       takes records of such a file
python -m nvm tune clear             forgets all
python -m nvm tune run [--budget SECONDS] [--cold] SCRIPT [ARGUMENTS]"""


class _Usage(Exception):
    """What is wrong with the arguments of a command; the usage is shown below it."""


def _seconds(text):
    try:
        if (seconds := float(text)) > 0:
            return seconds
    except ValueError:
        pass
    raise _Usage(f"--budget takes a number of seconds, not {text!r}")


def _options(args):
    """auto_tune's arguments, and what follows the options."""
    options = {}
    while args and args[0].startswith("-"):
        name, given, value = args.pop(0).partition("=")
        if name == "--cold" and not given:
            options["cold"] = True
        elif name == "--budget" and (given or args):
            options["budget"] = _seconds(value if given else args.pop(0))
        elif name == "--" and not given:
            break
        else:
            raise _Usage(f"{name} needs a value" if name == "--budget" else f"no such option: {name}{given}{value}")
    return options, args


def _run(args):
    """The script as python runs one: its folder comes first on sys.path, in the place of the current one."""
    import pkgutil
    import runpy

    options, args = _options(args)
    if not args:
        raise _Usage("no script is given")
    script = args[0]
    if not os.path.exists(script):
        raise _Usage(f"there is no {script}")
    if not sys.flags.safe_path:
        sys.path.pop(0)
        if pkgutil.get_importer(script) is None:  # runpy puts a folder or an archive there itself
            sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    sys.argv = args
    kept, where = _nvm.tune_where()
    try:
        with auto_tune(**options):
            runpy.run_path(script, run_name="__main__")
    finally:  # scripts may end by sys.exit
        n = _nvm.tune_counters()
        print(
            f"{n['measured']} steps measured, {n['timed']} candidates timed, {n['found']} records found"
            + ("" if kept else f"; nothing is kept, for there is no disk cache: {where}"),
            file=sys.stderr,
        )


def _import(name):
    kept, where = _nvm.tune_where()
    if not kept:
        raise OSError(f"there is no disk cache to take records: {where}")
    with open(name) as f:
        print(_nvm.tune_import(f.read()), "records")


def _export(name):
    text = _nvm.tune_export()
    if name is None:
        print(text, end="")
        return
    with open(name, "w") as f:
        f.write(text)


def _command(args):
    if args == ["list"]:
        print(_nvm.tune_list(), end="")
    elif args[:1] == ["export"] and len(args) <= 2:
        _export(args[1] if len(args) == 2 else None)
    elif args[:1] == ["import"] and len(args) == 2:
        _import(args[1])
    elif args == ["clear"]:
        print(_nvm.tune_clear(), "records dropped")
    else:
        raise _Usage(f"no such command: {' '.join(args)}" if args else "a command is missing")


def command(args):
    """What `python -m nvm tune ...` does; the exit status."""
    try:
        if args[:1] == ["run"]:
            _run(args[1:])
        else:
            try:
                _command(args)
            except (OSError, ValueError, _nvm.Error) as e:  # no file, a locked cache, a text that is none of records
                print(e, file=sys.stderr)
                return 1
    except _Usage as e:
        print(f"{e}\n\n{_USAGE}", file=sys.stderr)
        return 2
    return 0
