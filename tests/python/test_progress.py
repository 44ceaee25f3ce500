"""What shows the progress of tuning: tqdm's bar where it is installed, nvm's in a terminal, else lines of a log."""

import io
import logging
import sys
import types

import pytest

import nvm
from nvm import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class FakeTqdm:
    made = []

    def __init__(self, **given):
        self.given, self.shown, self.closed = given, [], False
        self.made.append(self)

    def set_postfix_str(self, text, refresh):
        self.text = text

    def refresh(self):
        self.shown.append((self.n, self.total, self.text))

    def close(self):
        self.closed = True


@pytest.fixture
def tqdm(monkeypatch):
    FakeTqdm.made = []
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    auto = types.ModuleType("tqdm.auto")
    auto.tqdm = FakeTqdm
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)


@pytest.fixture
def no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def notebook(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


def test_a_terminal_has_a_bar(monkeypatch, no_tqdm):
    monkeypatch.setattr(sys, "stderr", out := Terminal())
    for asked in None, True:
        bar = _progress.choose(asked)
        assert type(bar) is _progress.Bar
        bar(0, 2, "map: exp", 0.5)
        bar.close()
    assert "tuning [######" in out.getvalue() and "1 of 2: map: exp" in out.getvalue()


def test_tqdm_is_taken_where_it_is_installed(monkeypatch, tqdm):
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = _progress.choose(None)
    bar(0, 2, "map: exp", 0.5)
    bar(1, 3, "gemm", 0.25)
    bar.close()
    (made,) = FakeTqdm.made
    assert made.given["desc"] == "tuning" and made.closed
    assert made.shown == [(0.5, 2, "1 of 2: map: exp"), (1.25, 3, "2 of 3: gemm")]


def test_a_notebook_has_a_bar_of_tqdm_alone(monkeypatch, tqdm):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert _progress.choose(None) is None
    notebook(monkeypatch)
    assert type(_progress.choose(None)) is _progress.TqdmBar
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert _progress.choose(None) is None and type(_progress.choose(True)) is _progress.Log


def test_nothing_is_shown_where_nobody_looks(monkeypatch, no_tqdm):
    for err in None, io.StringIO():
        monkeypatch.setattr(sys, "stderr", err)
        assert _progress.choose(None) is None


def test_who_asks_for_it_finds_it_in_the_log(monkeypatch, caplog, no_tqdm):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    caplog.set_level(logging.INFO, "nvm.tune")
    log = _progress.choose(True)
    for part in 0.1, 0.6:
        log(0, 2, "map: exp", part)
    log(1, 2, "gemm", 0.1)
    log.close()
    assert caplog.messages == ["tuning step 1 of 2: map: exp", "tuning step 2 of 2: gemm"]


def test_a_session_shows_its_bar_and_takes_it_away(monkeypatch, tqdm):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with nvm.auto_tune(budget=2) as session:
        nvm.eval(nvm.tanh(nvm.arange(300_000.0) * 1.375) + 0.21875)
    assert type(session.progress) is _progress.TqdmBar
    assert all(bar.closed and bar.shown for bar in FakeTqdm.made)


# ---- compilations
class Seen:
    """A progress that remembers what it was told."""

    def __init__(self):
        self.calls, self.closed = [], 0

    def __call__(self, *told):
        self.calls.append(told)

    def close(self):
        self.closed += 1


def watch_compilations(monkeypatch, states, seen, **given):
    """compile_progress while the library tells of these states, one after the other."""
    import threading

    from nvm import _compile_progress

    told, left = threading.Event(), list(states)

    def compiling():
        if len(left) == 1:
            told.set()
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(_compile_progress, "_EACH", 0.001)
    monkeypatch.setattr(_compile_progress._nvm, "compiling", compiling)
    with nvm.compile_progress(progress=seen, **given):
        assert told.wait(60)


def test_a_long_compilation_is_shown_until_it_ends(monkeypatch):
    seen = Seen()
    watch_compilations(monkeypatch, [(0, 0.0), (1, 0.1), (2, 0.6), (1, 0.9), (0, 0.0), (0, 0.0)], seen)
    assert [told[2] for told in seen.calls] == ["2 kernels for 0.6 s", "1 kernel for 0.9 s"]
    assert [told[1] - told[0] for told in seen.calls] == [2, 1] and seen.closed


def test_a_short_compilation_is_not_shown(monkeypatch):
    seen = Seen()
    watch_compilations(monkeypatch, [(1, 0.1), (3, 1.9), (0, 0.0)], seen, after=2)
    assert not seen.calls


def test_compilations_are_shown_by_the_same_bars(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    watch_compilations(monkeypatch, [(1, 0.7), (0, 0.0), (0, 0.0)], None)
    assert "compiling [" in screen.getvalue() and "1 kernel for 0.7 s" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_kernels_that_are_being_compiled_are_counted():
    """What is asked while another thread waits for a kernel of many operations, one that no store has."""
    import os
    import subprocess

    code = """
import threading, nvm
x = y = nvm.arange(200000.0)
for i in range(300):
    y = nvm.sin(y) * (i + 0.25) + x
worker = threading.Thread(target=y.eval)
worker.start()
most = 0
while worker.is_alive():
    most = max(most, nvm._nvm.compiling()[0])
assert nvm._nvm.compiling() == (0, 0.0) or nvm.counters()["kernels_compiled"], nvm._nvm.compiling()
print(most >= 1, nvm._nvm.compiling()[1] >= 0)
"""
    if not nvm.info().count("llvm     1") and "llvm     2" not in nvm.info():
        pytest.skip("nothing is compiled here")
    environment = {**os.environ, "NVM_CACHE_DIR": "off", "NVM_TIER": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.stdout.split() == ["True", "True"], run.stderr


def test_wrong_arguments_of_compile_progress():
    with pytest.raises(ValueError, match=r"\[compile_progress\] after is -1"):
        nvm.compile_progress(after=-1)
    with pytest.raises(TypeError, match=r"\[compile_progress\] progress is a function"):
        nvm.compile_progress(progress="bar")
    with nvm.compile_progress(progress=False):
        assert nvm.ones(3).sum().item() == 3
