"""nvm.doctor: where a program evaluates, copies between devices, traces, or builds what does not fuse."""

import os
import sys

from . import _nvm

_MOST = 6  # edges that a report shows of a line
_WAY_OUT = {
    "bool": "nvm.where chooses without a value; nvm.while_loop goes on until a condition",
    "print": "printing waits for the value; nvm.eval(a, b) before it evaluates several together",
    "item": "keep numbers as arrays of no dimensions, or read them once behind the loop",
    "tolist": "read once behind the loop; nvm.eval(a, b) evaluates several together",
    "numpy.asarray": "NumPy computes at once and by itself; nvm and nvm.numpy have most of its functions",
    "getitem": "one element makes the whole array be computed; read it once, behind the loop",
    "jit": "each signature is traced: shapes, dtypes, static values and the nesting of arguments decide it",
    "copies": "put arrays on their device once: nvm.asarray(x, device=...), or with nvm.device(...)",
}
_WAY_OUT |= dict.fromkeys(("float", "int", "complex", "index"), _WAY_OUT["item"])
_WAY_OUT |= dict.fromkeys(("tobytes", "__dlpack__"), _WAY_OUT["tolist"])
_WAY_OUT |= dict.fromkeys(
    ("nonzero", "mask"), "a mask makes a shape that depends on values; nvm.where(mask, x, 0) does not"
)
_PRINTING = "nvm._print"
_BEHIND = {  # functions of the package that the C half calls: what the program asked for
    ("nvm._numpy", "array"): "numpy.asarray",
    ("nvm._numpy", "reduce"): "pickle",
    ("nvm._index", "getitem"): "mask",
    ("nvm._index", "setitem"): "mask",
}


def _is_nvm(frame):
    name = frame.f_globals.get("__name__") or ""
    return name == "nvm" or name.startswith("nvm.")


def _is_library(frame):
    file = frame.f_code.co_filename
    return "site-packages" in file or file.startswith((os.path.dirname(os.__file__) + os.sep, "<frozen"))


def _look_up(who):
    """(file, line, function, what) of the line of the program that asks, and of the thing that it asked for: what it
    called of nvm, or the conversion. A library between them is named."""
    frame, library = sys._getframe(2), None
    while frame.f_back and _is_nvm(frame):
        name, module = frame.f_code.co_name, frame.f_globals.get("__name__")
        if module == _PRINTING:
            who = "print"
        elif (module, name) in _BEHIND:
            who = _BEHIND[module, name]
        elif not name.startswith(("_", "<")):
            who = name
        frame = frame.f_back
    inner = frame
    while frame.f_back and _is_library(frame):
        library = library or frame.f_globals.get("__name__")
        frame = frame.f_back
    if _is_library(frame):  # none but libraries, as in a thread of theirs
        frame, library = inner, None
    return (
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_code.co_qualname,
        who + (f" in {library}" if library else ""),
    )


def _find_edges(text):
    """What cannot fuse: a list of lines 'operations | operations: why'; and the number of kernels. Edges that are left
    because two kernels are faster are none of them."""
    import re

    from ._plan import find_kernels

    kernels = find_kernels(text)
    names = {k["number"]: k["operations"] for k in kernels}
    edges = []
    for m in re.finditer(r"^ +not fused: (\d+) and (\d+): (?!together )(.*)$", text, re.M):
        edges.append(f"{names.get(int(m[1]), '?')} | {names.get(int(m[2]), '?')}: {m[3]}")
    return list(dict.fromkeys(edges)), len(kernels)


class Finding:
    """A line of a report: file, line, function, what (bool, float, print, numpy.asarray, to_device, eval, jit, the
    function of nvm ...; with the library that asks, if it is one), count, seconds in all, bytes copied between devices,
    kernels (of the first plan; 0: none was made), edges (what that plan did not fuse, and why: a list of str)."""

    def __init__(self, file, line, function, what):
        self.file, self.line, self.function, self.what = file, line, function, what
        self.count, self.seconds, self.bytes, self.kernels, self.edges = 0, 0.0, 0, 0, []

    def __repr__(self):
        return f"Finding({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def _note_plan(self, text):
        self.edges, self.kernels = _find_edges(text)

    def _verb(self):
        asked = self.what.split(" in ")[0]
        if asked == "jit":
            return f"nvm.jit traced {self.function}"
        return f"{self.what} " + ("copied between devices" if self.bytes and not self.kernels else "evaluated")

    def _way_out(self):
        asked = self.what.split(" in ")[0]
        if asked == "jit":
            return _WAY_OUT["jit"] if self.count > 1 else None
        return _WAY_OUT["copies"] if self.bytes and not self.kernels else _WAY_OUT.get(asked)

    def __str__(self):
        import linecache

        def size(n):
            return f"{n / 1e6:.3g} MB" if n >= 1e5 else f"{n} B"

        times = "once" if self.count == 1 else f"{self.count} times"
        took = f", {self.seconds * 1e3:.3g} ms" if self.what != "jit" else ""
        copied = f", {size(self.bytes)} copied between devices" if self.bytes else ""
        head = f"{self.file}:{self.line}: {self._verb()} {times}{took}{copied}"
        lines = [head]
        source = linecache.getline(self.file, self.line).strip()
        if source:
            lines.append("    " + source)
        if self.edges:
            lines.append(f"    {self.kernels} kernels; not fused:")
            lines += ["      " + edge for edge in self.edges[:_MOST]]
            if len(self.edges) > _MOST:
                lines.append(f"      and {len(self.edges) - _MOST} more")
        if way := self._way_out():
            lines.append("    " + way)
        return "\n".join(lines)


class Report(list):
    """The findings of a doctor, those that took the longest first: a list of Finding. str() of it is a text."""

    def __str__(self):
        places = "1 place" if len(self) == 1 else f"{len(self)} places"
        if not self:
            return "nvm.doctor: nothing was evaluated, copied between devices or traced more than once"
        return "\n".join([f"nvm.doctor: {places}", *map(str, self)])

    def __repr__(self):
        return f"<nvm.doctor's report of {len(self)} places>"


_watching = []  # the doctors that are on


def _ask(who, subject, text=None):
    """What the C half calls before an evaluation or a copy, and after a trace."""
    if who == "jit":
        for doctor in tuple(_watching):
            doctor._saw_trace(subject, text)
        return None
    where = _look_up(who)
    explained, pending = None, any(not x.ready() for x in subject)
    if pending and any(doctor._is_new(where) for doctor in _watching):
        try:
            explained = _nvm.explain_arrays(*subject)
        except Exception:  # the evaluation tells what is wrong
            pass

    def note(nanoseconds, copied):
        if pending or copied:
            for doctor in tuple(_watching):
                doctor._saw(where, nanoseconds, copied, explained)

    return note


class doctor:
    """with nvm.doctor() as d: what the program inside does is watched, in all threads; d.report() tells where.

    A report names the file and line of each place that evaluates (bool, float, int, item, print, numpy.asarray,
    nvm.eval and what else needs a value), that copies between devices, whose jitted function was traced more than
    once, or whose first plan left something unfused: how often, how long, and why. Lines of nvm and of installed
    libraries are passed over. Calls of jitted functions are not evaluations that it tells. Planning what is new at a
    place twice makes a watched program slower; its results are the same bits. NVM_DOCTOR=1 watches a whole program,
    and logs the report at exit (the logger nvm.doctor, at level WARNING).

    >>> import nvm
    >>> x = nvm.arange(3.0)
    >>> with nvm.doctor() as d:
    ...     done = bool((x + 1).sum() > 5)
    >>> [(f.what, f.count) for f in d.report()]
    [('bool', 1)]
    """

    def __init__(self):
        self._findings = {}

    def __enter__(self):
        if self in _watching:
            raise RuntimeError("[doctor] this doctor is watching already")
        _watching.append(self)
        _nvm.doctor_set(_ask)
        return self

    def __exit__(self, *error):
        _watching.remove(self)
        if not _watching:
            _nvm.doctor_set(None)

    def _is_new(self, where):
        return where not in self._findings

    def _saw(self, where, nanoseconds, copied, explained):
        found = self._findings.setdefault(where, Finding(*where))
        found.count += 1
        found.seconds += nanoseconds * 1e-9
        found.bytes += copied
        if explained and not found.kernels:
            found._note_plan(explained)

    def _saw_trace(self, fn, text):
        code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
        name = getattr(fn, "__qualname__", repr(fn))
        where = (code.co_filename, code.co_firstlineno, name, "jit") if code else ("?", 0, name, "jit")
        found = self._findings.setdefault(where, Finding(*where))
        found.count += 1
        if text and not found.edges:
            found._note_plan(text)

    def report(self):
        """What has been seen so far: a Report."""
        told = [f for f in self._findings.values() if f.what != "jit" or f.count > 1 or f.edges]
        return Report(sorted(told, key=lambda f: (-f.seconds, -f.count, f.file, f.line)))


_of_process = None  # the doctor that NVM_DOCTOR=1 starts


def _log():
    import logging

    if _of_process in _watching:
        logging.getLogger("nvm.doctor").warning("%s", _of_process.report())


def follow_setting():
    """Starts or ends the doctor of the process, as the setting NVM_DOCTOR says."""
    global _of_process
    on = _nvm.settings_table()["NVM_DOCTOR"][0] == "1"
    if on and _of_process is None:
        import atexit
        import logging  # first, so that it is shut down after the report

        logging.getLogger("nvm.doctor")
        _of_process = doctor()
        atexit.register(_log)
    if _of_process is not None and on != (_of_process in _watching):
        if on:
            _of_process.__enter__()
        else:
            _of_process.__exit__()
