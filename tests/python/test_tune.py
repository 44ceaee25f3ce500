"""Tuning: the same bits with and without, records that other processes use, modes, progress, damage."""

import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import nvm
from nvm import _nvm

N = 512
rng = np.random.default_rng(1)
X, Y = (rng.standard_normal((N, N)).astype(np.float32) for _ in range(2))
ROW = rng.standard_normal(N).astype(np.float32)
ON_CPU = nvm.get_default_device() == "cpu"
KNOWN, FOREIGN = ("block=256", "warps=8")[:: 1 if ON_CPU else -1]  # what a schedule of the default device obeys or not

PROGRAMS = {
    "chain": lambda x, y, r: nvm.exp(x) * y + r,
    "columns": lambda x, y, r: (x * y).sum(axis=0),
    "softmax": lambda x, y, r: (
        nvm.exp(x - x.max(axis=1, keepdims=True)) / nvm.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    ),
    "transpose": lambda x, y, r: x.T + y,
    "scan": lambda x, y, r: nvm.cumulative_sum(x, axis=1),
    "two outputs": lambda x, y, r: (x.mean(axis=1), nvm.tanh(x) - x.mean(axis=1, keepdims=True)),
    "several steps": lambda x, y, r: (x / nvm.sqrt((x * x).sum()) + (y - y.sum(axis=0)) * r).sum(axis=0) + r,
    "complex": lambda x, y, r: (x + 1j * y) * (y - 1j * x),
    "bool": lambda x, y, r: (x > y) & (x > r),
    "half": lambda x, y, r: (x.astype(nvm.float16) + y.astype(nvm.float16)).sum(axis=0),
}


@pytest.fixture(autouse=True)
def store(tmp_path):
    before = nvm.settings()
    nvm.set("cache_dir", str(tmp_path))
    _nvm.tune_clear()
    yield tmp_path
    _nvm.tune_clear()
    for name in ("NVM_CACHE_DIR", "NVM_TUNE", "NVM_REPRODUCIBLE", "NVM_TIER", "NVM_FUSE"):
        nvm.set(name, before[name])


def counted():
    return _nvm.tune_counters()


def arrays(result):
    return [np.asarray(a) for a in (result if isinstance(result, tuple) else (result,))]


def same(a, b):
    return all(p.tobytes() == q.tobytes() for p, q in zip(arrays(a), arrays(b)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name):
    f = nvm.jit(PROGRAMS[name])
    x, y, r = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    want = f(x, y, r)
    before = counted()["measured"]
    with nvm.auto_tune():
        tuned = f(x, y, r)
    assert same(want, tuned)
    assert counted()["measured"] > before
    assert same(want, f(x, y, r))  # by the records
    assert x.__array__().tobytes() == X.tobytes()  # inputs are as they were
    records = json.loads(_nvm.tune_export())
    assert records and all(r["ns"] <= r["model_ns"] for r in records)


def test_lazy_arrays_are_tuned_too():
    x = nvm.asarray(X)
    before = counted()["measured"]
    with nvm.auto_tune():
        y = nvm.eval(nvm.exp(x) + 1)
        z = np.asarray(nvm.exp(x) * 3)
    assert counted()["measured"] == before + 2
    assert np.array_equal(z, np.asarray(nvm.exp(x) * 3)) and y is None


def test_nothing_small():
    before = counted()["measured"]
    with nvm.auto_tune():
        np.asarray(nvm.asarray(ROW) + 1)
    assert counted()["measured"] == before


def test_tune():
    def f(x, scale=1.0):
        return nvm.exp(x) * scale

    before = counted()["measured"]
    assert same(nvm.tune(f, nvm.asarray(X), scale=2.0), nvm.jit(f)(nvm.asarray(X), scale=2.0))
    assert counted()["measured"] == before + 1
    with pytest.raises(RuntimeError, match="no tuning session"):
        _nvm.tune_end()
    with pytest.raises(ValueError, match=r"\[auto_tune\] the budget is -1 seconds; it must be more than 0"):
        nvm.auto_tune(budget=-1)
    assert nvm.tune(lambda budget, progress: budget + progress, nvm.asarray(ROW), progress=2).shape == ROW.shape
    with pytest.raises(RuntimeError, match=r"\[tune\] inside a traced function"):
        nvm.jit(lambda x: nvm.tune(f, x))(nvm.asarray(X))


def test_sessions_of_threads():
    """Each thread ends its own; what one measures is told to the newest, whose function lives until it has ended."""
    import threading

    f = nvm.jit(PROGRAMS["several steps"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    want, wrong = f(*args), []

    def work():
        for _ in range(4):
            _nvm.tune_clear()
            seen = []
            with nvm.auto_tune(progress=lambda *p: seen.append(p)):
                if not same(want, f(*args)):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    with pytest.raises(RuntimeError, match="no tuning session"):
        _nvm.tune_end()


def test_memory_comes_back():
    f = nvm.jit(PROGRAMS["several steps"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    f(*args)
    before = nvm.counters()["bytes_used"]
    with nvm.auto_tune(cold=True):
        f(*args)
    assert nvm.counters()["bytes_used"] == before


def test_measured_once():
    f = nvm.jit(PROGRAMS["columns"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        f(*args)
        first = counted()
        f(*args)
    with nvm.auto_tune():
        f(*args)
    after = counted()
    assert after["measured"] == first["measured"] and after["found"] > first["found"]
    text = nvm.explain(f, *args)
    assert "a record of 20" in text and " us" in text
    assert "column-reduce" in _nvm.tune_list()


def test_same_size_class_shares_a_record():
    f = nvm.jit(lambda x: nvm.exp(x) + 2)
    with nvm.auto_tune():
        f(nvm.asarray(X))
    before = counted()["measured"]
    with nvm.auto_tune():
        f(nvm.asarray(X[:400]))  # 2^18 elements and 200 K: the same class
        assert counted()["measured"] == before
        f(nvm.asarray(np.tile(X, (4, 1))))
    assert counted()["measured"] == before + 1


def test_modes():
    f = nvm.jit(PROGRAMS["chain"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    before = counted()
    for mode in ("off", "frozen"):
        nvm.set("tune", mode)
        with nvm.auto_tune():
            f(*args)
        assert counted()["measured"] == before["measured"]
    nvm.set("tune", "measure")
    f(*args)
    assert counted()["measured"] == before["measured"] + 1
    nvm.set("tune", "frozen")
    assert "a record of" in nvm.explain(f, *args)
    nvm.set("tune", "off")
    assert "a record of" not in nvm.explain(f, *args)
    nvm.set("tune", "estimate")
    assert "a record of" in nvm.explain(f, *args)


def test_reproducible():
    f = nvm.jit(PROGRAMS["columns"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        want = f(*args)
    nvm.set("reproducible", 1)
    before = counted()
    with nvm.auto_tune():
        assert same(want, f(*args))
    assert "record" not in nvm.explain(f, *args)
    assert counted() == before


def test_export_and_import(tmp_path):
    f = nvm.jit(PROGRAMS["softmax"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        f(*args)
    text = _nvm.tune_export()
    records = json.loads(text)
    assert records and set(records[0]) == {
        "version",
        "key",
        "device",
        "what",
        "size",
        "config",
        "description",
        "ns",
        "model_ns",
        "tried",
        "complete",
        "date",
    }
    assert _nvm.tune_clear() == len(records)
    assert json.loads(_nvm.tune_export()) == [] and _nvm.tune_list() == ""
    assert "record" not in nvm.explain(f, *args)
    assert _nvm.tune_import(text) == len(records)
    assert "a record of" in nvm.explain(f, *args)
    key = lambda r: r["key"]
    assert sorted(json.loads(_nvm.tune_export()), key=key) == sorted(records, key=key)
    bad_texts = "", "{}", "[1]", text[:-9], text.replace('"version": 3', '"version": 1'), text + "x", text + text
    for bad in bad_texts:
        with pytest.raises(ValueError, match=r"\[tune_import\]"):
            _nvm.tune_import(bad)


def test_unknown_choice_is_left_alone():
    """A record whose words mean nothing here: the rules' own, no failure, and explain does not speak of it."""
    f = nvm.jit(PROGRAMS["chain"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        want = f(*args)
    records = json.loads(_nvm.tune_export())
    for choice in (
        "colour=3",
        "block=",
        "block=1",
        "block=1000000000 chunks=1",
        FOREIGN,
        "warps=3",
        "block=0",
        "stream=7",
        "chunks=0",
        "rows=64",
        "solver=foo",
        "solver=openblas",
        "solver=kernel",
        f"solver=foo {KNOWN}",
    ):
        for r in records:
            r["config"] = choice
        _nvm.tune_import(json.dumps(records))
        assert same(want, f(*args))
        assert "a record of" not in nvm.explain(f, *args)
    for r in records:
        r["config"] = KNOWN
    _nvm.tune_import(json.dumps(records))
    assert f"{KNOWN}, a record of" in nvm.explain(f, *args) and same(want, f(*args))
    product, other = nvm.jit(lambda x, y: x @ y), "cublaslt" if ON_CPU else "openblas"
    x = nvm.asarray(X)
    with nvm.auto_tune():
        product(x, x)
    records = json.loads(_nvm.tune_export())
    for choice in "solver=foo", f"solver={other}", "rows=64", "solver=openblas rows=64", "solver=kernel rows=65":
        _nvm.tune_import(json.dumps([{**r, "config": choice} for r in records]))
        text = nvm.explain(product, x, x)
        assert "a record of" not in text and "as it was chosen" not in text and "foo" not in text
    before = counted()["measured"]
    with nvm.auto_tune():  # as if it were not there
        product(x, x)
    assert counted()["measured"] == before + 1


def test_budgets_leave_nothing_poor():
    """Whatever time there was: what is kept was compared with others, or a later session with time measures it."""
    f, g = nvm.jit(lambda x: nvm.exp(x) * 2 + x), nvm.jit(lambda x, y: nvm.exp(x @ y))
    x = nvm.asarray(np.tile(X, (2, 2)))
    for budget in 1e-6, 0.001, 0.01, 0.05, 0.2:
        with nvm.auto_tune(budget=budget):
            f(x)
            g(x, x)
        for r in json.loads(_nvm.tune_export()):
            assert r["complete"] or r["tried"] > 1
    with nvm.auto_tune():
        f(x)
        g(x, x)
    records = json.loads(_nvm.tune_export())
    assert len(records) >= 2 and all(r["complete"] for r in records)
    several = [r["tried"] > 1 for r in records if not r["what"].startswith("plan: ")]
    assert any(several) and (all(several) or not ON_CPU)  # on a GPU a library may know one way for a step, and no other
    for _ in range(6):  # a machine that is busy may leave something to a later session, but not to each
        before = counted()
        with nvm.auto_tune():
            f(x)
            g(x, x)
        if counted()["measured"] == before["measured"]:
            break
    assert counted()["measured"] == before["measured"] and counted()["found"] > before["found"]


def test_a_search_cut_short_goes_on():
    f = nvm.jit(PROGRAMS["chain"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        want = f(*args)
    (r,) = json.loads(_nvm.tune_export())
    assert r["complete"] == 1
    _nvm.tune_clear()
    _nvm.tune_import(json.dumps([{**r, "complete": 0, "tried": 2, "config": KNOWN}]))
    before = counted()
    assert f"{KNOWN}, a record of" in nvm.explain(f, *args) and "the best so far" in nvm.explain(f, *args)
    assert "2 timed so far" in _nvm.tune_list()
    nvm.set("tune", "frozen")  # used by who measures nothing, and by who has no time
    with nvm.auto_tune():
        assert same(want, f(*args))
    nvm.set("tune", "estimate")
    with nvm.auto_tune(budget=1e-9):
        assert same(want, f(*args))
    assert counted()["measured"] == before["measured"] and counted()["found"] > before["found"]
    with nvm.auto_tune():
        assert same(want, f(*args))
        f(*args)
    assert counted()["measured"] == before["measured"] + 1
    (now,) = json.loads(_nvm.tune_export())
    assert now["complete"] == 1 and now["tried"] > 2 and "the best so far" not in nvm.explain(f, *args)


def test_damaged_record(store):
    f = nvm.jit(PROGRAMS["columns"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    with nvm.auto_tune():
        want = f(*args)
    db = sqlite3.connect(store / "cache.db")
    row, blob = db.execute("SELECT id, blob FROM entry1 WHERE kind = 'tune'").fetchone()
    db.execute("UPDATE entry1 SET blob = ? WHERE id = ?", (blob.replace(b"ns", b"sn"), row))
    db.commit()
    db.close()
    out = in_process(store, "print(nvm.explain(f, x, y, r)); f(x, y, r); print(_nvm.tune_counters())")
    assert "record" not in out and "'found': 0" in out
    assert same(want, f(*args))


SCRIPT = """
import sys
import numpy as np, nvm
from nvm import _nvm
rng = np.random.default_rng(1)
x, y = (nvm.asarray(rng.standard_normal(({n}, {n})).astype(np.float32)) for _ in range(2))
r = nvm.asarray(rng.standard_normal({n}).astype(np.float32))
f = nvm.jit(lambda x, y, r: (x * y).sum(axis=0))
"""


def in_process(store, code, *args, **env):
    env = {**os.environ, "NVM_CACHE_DIR": str(store), **env}
    if not args:
        args = "-c", SCRIPT.format(n=N) + code
    done = subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_second_process_measures_nothing(store):
    code = "f(x, y, r); f(x, y, r); print(_nvm.tune_counters(), nvm.explain(f, x, y, r))"
    first = in_process(store, code, NVM_TUNE="measure")
    assert "'measured': 1" in first and "measured 20" not in first.splitlines()[0]
    second = in_process(store, code)  # without asking
    assert "'measured': 0, 'timed': 0, 'found': 1" in second and "a record of" in second
    third = in_process(store, code, NVM_TUNE="measure")
    assert "'measured': 0" in third


def test_two_processes_at_once(store):
    code = SCRIPT.format(n=N) + (
        "want = np.asarray(f(x, y, r))\n"
        "with nvm.auto_tune(): got = np.asarray(f(x, y, r))\n"
        "assert got.tobytes() == want.tobytes()\nprint(_nvm.tune_counters()['measured'])"
    )
    env = {**os.environ, "NVM_CACHE_DIR": str(store), "NVM_VERBOSE": "1"}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for p in both:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
        assert out.strip() in ("0", "1")
        assert "is not tried" not in err  # what one has on trial the other one tries too
    assert "'found': 1" in in_process(store, "f(x, y, r); print(_nvm.tune_counters())")


def test_progress_and_budget():
    f = nvm.jit(PROGRAMS["several steps"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    want, seen = f(*args), []
    with nvm.auto_tune(progress=lambda *p: seen.append(p)):
        assert same(want, f(*args))
    at = [step + part for step, _, _, part in seen]
    assert at == sorted(at) and at[-1] == seen[0][1]  # to the last step's end
    assert all(isinstance(what, str) for _, _, what, _ in seen)
    _nvm.tune_clear()
    before = counted()["measured"]
    with nvm.auto_tune(budget=1e-6):  # the rest runs as it would have
        assert same(want, f(*args))
    assert counted()["measured"] <= before + 1
    with pytest.raises(ValueError):
        nvm.auto_tune(budget=0)
    for progress in 5, "bar", 0, 1:
        with pytest.raises(TypeError, match=r"\[auto_tune\] progress"):
            nvm.auto_tune(progress=progress)
    for progress in True, False, None:
        with nvm.auto_tune(progress=progress):
            nvm.eval(nvm.sinh(args[0]))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_failing_progress():
    def progress(*unused):
        raise KeyError("progress")

    f = nvm.jit(PROGRAMS["chain"])
    args = nvm.asarray(X), nvm.asarray(Y), nvm.asarray(ROW)
    want = f(*args)
    with nvm.auto_tune(progress=progress):
        assert same(want, f(*args))


def test_bar(capsys, monkeypatch):
    from nvm._progress import Bar

    monkeypatch.setenv("COLUMNS", "80")
    bar = Bar(sys.stderr, "tuning")
    bar(0, 2, "map: add", 0.5)
    bar.close()
    err = capsys.readouterr().err
    assert "1 of 2: map: add" in err and "######......" in err
    for width in 1, 9, 20, 43, 200:
        monkeypatch.setenv("COLUMNS", str(width))
        bar(1, 2, "map: " + "add, " * 20, 0.5)
        *_, line = capsys.readouterr().err.split("\x1b[K")
        assert line.isprintable() and len(line) == min(width - 1, 82)
    monkeypatch.delenv("COLUMNS")
    bar(0, 1, "map: add", 0.5)  # of a file that is no terminal nothing is known
    assert "1 of 1: map: add" in capsys.readouterr().err
    with nvm.auto_tune():  # no terminal here: nothing is shown
        nvm.eval(nvm.exp(nvm.asarray(X)))
    assert capsys.readouterr().err == ""


def test_donated_arguments_are_read_only_while_measured():
    f = nvm.jit(lambda x, y: nvm.exp(x) + y, donate_argnums=0)
    want = np.asarray(nvm.exp(nvm.asarray(X)) + nvm.asarray(Y))
    with nvm.auto_tune():
        got = f(nvm.asarray(X), nvm.asarray(Y))
    assert np.asarray(got).tobytes() == want.tobytes()


def test_index_out_of_range_stays_an_error():
    x, i = nvm.asarray(np.arange(1 << 17, dtype=np.float32)), np.zeros(1 << 17, np.int64)
    i[777] = 1 << 20
    with nvm.auto_tune(), pytest.raises(IndexError):
        np.asarray(nvm.take(x, nvm.asarray(i)) + 1)


def test_command(store, tmp_path):
    assert in_process(store, "", "-m", "nvm", "tune", "list") == ""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(n=N) + "print(sys.argv[1:], f(x, y, r).shape)")
    out = in_process(store, "", "-m", "nvm", "tune", "run", "--budget", "20", str(script), "a", "b")
    assert "['a', 'b'] (512,)" in out and "1 steps measured" in out
    listed = in_process(store, "", "-m", "nvm", "tune", "list")
    assert "column-reduce: multiply, sum" in listed and "us" in listed
    kept = tmp_path / "records.json"
    in_process(store, "", "-m", "nvm", "tune", "export", str(kept))
    assert len(json.loads(kept.read_text())) == 1
    assert in_process(store, "", "-m", "nvm", "tune", "clear") == "1 records dropped\n"
    assert in_process(store, "", "-m", "nvm", "tune", "import", str(kept)) == "1 records\n"
    assert in_process(store, "", "-m", "nvm", "tune", "list") == listed
    done = subprocess.run([sys.executable, "-m", "nvm", "tune", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "tune import FILE" in done.stderr


def command(store, *args, **env):
    env = {**os.environ, "NVM_CACHE_DIR": str(store), **env}
    return subprocess.run(
        [sys.executable, "-m", "nvm", "tune", *args], env=env, capture_output=True, text=True, timeout=120
    )


def test_scripts_run_as_python_runs_them(store, tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "beside.py").write_text("name = __name__")
    script = tmp_path / "scripts" / "script.py"
    script.write_text(
        "import os, sys, beside\nprint([__name__, __file__, beside.name, sys.argv, sys.path[0],"
        "sys.modules['__main__'].__dict__ is globals(), os.getcwd() in sys.path])\nsys.exit(3)"
    )
    link = tmp_path / "link.py"
    link.symlink_to(script)
    (tmp_path / "scripts" / "__main__.py").write_text(script.read_text())
    for path in script, link, tmp_path / "scripts":
        want = subprocess.run([sys.executable, str(path), "a", "--cold"], capture_output=True, text=True)
        done = command(store, "run", "--budget=5", "--cold", str(path), "a", "--cold")
        assert want.returncode == done.returncode == 3, done.stderr
        assert done.stdout == want.stdout and "0 steps measured" in done.stderr
    done = command("off", "run", str(script))
    assert "nothing is kept" in done.stderr and "off" in done.stderr


@pytest.mark.parametrize(
    "args, says",
    [
        (("run",), "no script"),
        (("run", "--budget", "abc", "x.py"), "'abc'"),
        (("run", "--budget=", "x.py"), "--budget"),
        (("run", "--budget"), "--budget needs"),
        (("run", "--budget=-1", "x.py"), "'-1'"),
        (("run", "--hot", "x"), "--hot"),
        (("run", "--budget=nan", "x.py"), "'nan'"),
        (("run", "no such file.py"), "no such file.py"),
        ((), "missing"),
        (("run", "--cold=1", "x.py"), "--cold=1"),
        (("clear", "all"), "clear all"),
    ],
)
def test_usage(store, args, says):
    done = command(store, *args)
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 2 and says in first and "tune import FILE" in done.stderr and not done.stdout


def test_commands_that_cannot_do_it(store, tmp_path):
    """No success is told of, and no traceback."""
    with nvm.auto_tune():
        nvm.eval(nvm.exp(nvm.asarray(X)))
    text, kept = _nvm.tune_export(), tmp_path / "kept.json"
    kept.write_text(text)
    db = sqlite3.connect(store / "cache.db", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    for args in ("clear",), ("list",), ("export",), ("import", str(kept)):
        done = command(store, *args)
        assert done.returncode == 1 and not done.stdout and "locked" in done.stderr, args
        assert len(done.stderr.splitlines()) == 1
    db.execute("ROLLBACK")
    db.close()
    assert command(store, "export").stdout == text
    assert command(store, "clear").stdout == "1 records dropped\n"
    done = command("off", "import", str(kept))
    assert done.returncode == 1 and not done.stdout and "no disk cache" in done.stderr and "off" in done.stderr
    for bad in kept, tmp_path / "no such file":
        kept.write_text(text + "x")
        done = command(store, "import", str(bad))
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products(dtype):
    """Who runs a product is chosen too; another choice is another order of the same sums."""

    def operand(*shape):
        a = rng.standard_normal(shape)
        return (a + 1j * rng.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)

    x, w, b = operand(220, 300), operand(300, 260), operand(260)
    exact = np.maximum(np.abs(x.astype(complex) @ w.astype(complex) + b), 0)
    f = nvm.jit(lambda x, w, b: nvm.abs(x @ w + b))
    args = nvm.asarray(x), nvm.asarray(w), nvm.asarray(b)
    before = counted()["measured"]
    with nvm.auto_tune():
        got = np.asarray(f(*args))
    assert counted()["measured"] > before
    bound = 300 * np.finfo(dtype).eps * (np.abs(x) @ np.abs(w) + np.abs(b))
    assert (np.abs(got - exact) <= bound).all()
    assert np.asarray(f(*args)).tobytes() == got.tobytes()  # the recorded choice has its own bits
    assert "a record of" in nvm.explain(f, *args)
    nvm.set("reproducible", 1)
    first = np.asarray(f(*args)).tobytes()
    nvm.set("reproducible", 0)
    nvm.set("tune", "off")
    assert np.asarray(f(*args)).tobytes() == first


def test_products_with_what_follows():
    """A library's product and a kernel for the rest, or one kernel of our own: that is measured as a whole."""
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((260, 300), (300, 280), (280,)))
    f = nvm.jit(lambda x, w, b: nvm.tanh(x @ w * 0.05 + b))
    args = nvm.asarray(x), nvm.asarray(w), nvm.asarray(b)
    steps = int(nvm.explain(f, *args).split()[0])
    with nvm.auto_tune():
        got = np.asarray(f(*args))
    assert np.abs(got - np.tanh(x.astype(float) @ w * 0.05 + b)).max() < 1e-4
    plans = [r for r in json.loads(_nvm.tune_export()) if r["what"].startswith("plan: ")]
    assert len(plans) == (steps > 1)
    for choice, kernels in ("products=own", 1), ("", steps):
        for r in plans:
            _nvm.tune_import(json.dumps([{**r, "config": choice}]))
            text = nvm.explain(f, *args)
            assert text.startswith(f"{kernels} kernel") and ("a record of" in text)
            assert np.abs(np.asarray(f(*args)) - got).max() < 1e-4
    before = counted()["measured"]
    with nvm.auto_tune():
        f(*args)
    assert counted()["measured"] == before
