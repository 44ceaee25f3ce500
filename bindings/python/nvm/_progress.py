"""What nvm.auto_tune and nvm.compile_progress show: a bar of tqdm, one of their own, or lines of a log. Imported only
when it is asked for. Each is a function of (step, steps, what, part) with a method close."""

import os
import sys


def find_columns(out):
    """Of the terminal behind the file `out`; 80 where that is not known. COLUMNS says otherwise, as everywhere."""
    for ask in (lambda: int(os.environ["COLUMNS"]), lambda: os.get_terminal_size(out.fileno()).columns):
        try:
            if (n := ask()) > 0:
                return n
        except (KeyError, ValueError, OSError, AttributeError):
            pass
    return 80


class Bar:
    """A line of progress on a terminal, never wider than that."""

    def __init__(self, out, work):
        self.out, self.work, self.shown = out, work, False

    def __call__(self, step, steps, what, part):
        done = int(24 * (step + part) / steps)
        line = f"{self.work} [{'#' * done}{'.' * (24 - done)}] {step + 1} of {steps}: {what[:40]}"
        self.out.write("\r\x1b[K" + line[: find_columns(self.out) - 1])  # a full line would go on to the next one
        self.out.flush()
        self.shown = True

    def close(self):
        if self.shown:
            self.out.write("\r\x1b[K")
            self.out.flush()


class TqdmBar:
    """A bar of tqdm, in a terminal or a notebook; it goes when it is closed."""

    _FORM = "{desc} {percentage:3.0f}%|{bar}| {postfix} [{elapsed}<{remaining}]"

    def __init__(self, tqdm, work):
        self.tqdm, self.work, self.bar = tqdm, work, None

    def __call__(self, step, steps, what, part):
        if self.bar is None:
            self.bar = self.tqdm(total=steps, desc=self.work, leave=False, bar_format=self._FORM)
        self.bar.total, self.bar.n = steps, step + part
        self.bar.set_postfix_str(f"{step + 1} of {steps}: {what[:40]}", refresh=False)
        self.bar.refresh()

    def close(self):
        if self.bar is not None:
            self.bar.close()


class Log:
    """A line for each step, in the logger nvm.tune, or nvm.compile, at level INFO."""

    def __init__(self, work):
        import logging

        name = {"tuning": "nvm.tune", "compiling": "nvm.compile"}[work]
        self.log, self.work, self.told = logging.getLogger(name), work, None

    def __call__(self, step, steps, what, part):
        if (step, what) != self.told:
            self.told = step, what
            self.log.info("%s step %d of %d: %s", self.work, step + 1, steps, what)

    def close(self):
        pass


def is_notebook():
    """Does a Jupyter kernel run this?"""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def choose(asked, work="tuning"):
    """What shows the progress of this work: asked is None (where somebody looks) or True (in any case a log)."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if terminal or is_notebook():
        try:
            from tqdm.auto import tqdm

            return TqdmBar(tqdm, work)
        except ImportError:
            if terminal:
                return Bar(sys.stderr, work)
    return Log(work) if asked else None
