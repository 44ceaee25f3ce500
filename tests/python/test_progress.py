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
