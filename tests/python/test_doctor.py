"""nvm.doctor tells, by file and line, where a program evaluates, traces, and builds what does not fuse."""

import inspect
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import nvm

READS = {
    "bool": lambda x: bool(x.sum() > 0),
    "float": lambda x: float(x.sum()),
    "int": lambda x: int(x.sum()),
    "complex": lambda x: complex(x.sum()),
    "item": lambda x: x.sum().item(),
    "index": lambda x: [0][nvm.astype(x.sum(), nvm.int64) * 0],
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "print": lambda x: str(x),
    "print ": lambda x: repr(x.sum()),
    "numpy.asarray": lambda x: np.asarray(x),
    "numpy.asarray ": lambda x: np.array(x, np.float32),
    "__dlpack__": lambda x: np.from_dlpack(x),
    "pickle": lambda x: pickle.dumps(x),
    "mask": lambda x: x[x > 1],
    "getitem": lambda x: x[0, 0],
    "nonzero": lambda x: nvm.nonzero(x > 1),
    "eval": lambda x: nvm.eval(x),
    "eval ": lambda x: x.eval(),
    "unique_values": lambda x: nvm.unique_values(x),
}


def pending():
    return nvm.asarray(np.arange(90_000.0).reshape(300, 300)) + 1


@pytest.mark.parametrize("name", READS)
def test_what_reads_a_value_is_told_by_its_line(name):
    x = pending()
    with nvm.doctor() as d:
        READS[name](x)
    (found,) = d.report()
    assert (found.what, found.count, found.bytes) == (name.strip(), 1, 0)
    assert (found.file, found.line) == (__file__, inspect.getsourcelines(READS[name])[1])
    assert found.seconds > 0 and found.kernels >= 1
    assert f"{__file__}:{found.line}: {name.strip()} evaluated once" in str(d.report())
    assert inspect.getsource(READS[name]).strip() in str(d.report())


def test_elements_in_a_loop_are_summed_up():
    x = nvm.asarray(np.arange(5.0))
    with nvm.doctor() as d:
        for i in range(7):
            if (x * i).sum() > 3:
                x = x + 1
    (found,) = d.report()
    assert (found.what, found.count, found.function) == ("bool", 7, inspect.currentframe().f_code.co_qualname)
    assert "bool evaluated 7 times" in str(found) and "nvm.where" in str(found)


def test_what_has_its_value_and_what_waits_is_not_told():
    x, f = pending().eval(), nvm.jit(lambda x: x.sum() + 1)
    with nvm.doctor() as d:
        float(f(x)), bool(x[0, 0]), x.tolist()
        x + 1  # nobody reads it
        nvm.explain(x + 1)
    assert d.report() == [] and "nothing was evaluated" in str(d.report())


def test_a_function_that_is_traced_again_is_told_by_its_definition():
    @nvm.jit
    def f(x):
        return x + 1

    x = pending()
    with nvm.doctor() as d:
        for n in (2, 3, 3, 4):
            f(x[:n])
    (found,) = d.report()
    line = f.__wrapped__.__code__.co_firstlineno
    assert (found.what, found.count, found.file, found.line) == ("jit", 3, __file__, line)
    assert "nvm.jit traced" in str(found) and "3 times" in str(found) and " ms" not in str(found)


def test_what_cannot_fuse_is_told_with_its_reason():
    sorts = lambda x: nvm.sort(x * 2, axis=1) + 1
    for run in (lambda: nvm.eval(sorts(pending())), lambda: nvm.jit(sorts)(pending())):
        with nvm.doctor() as d:
            run()
        (found,) = d.report()
        assert found.kernels == 3 and any("multiply | sort: " in edge for edge in found.edges), found
        assert "not fused:" in str(found)


def test_two_kernels_that_are_faster_than_one_are_no_finding():
    x = pending()
    with nvm.doctor() as d:
        x.sum().eval()
    assert d.report()[0].edges == []


def test_the_lines_of_libraries_are_passed_over(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "thelibrary.py").write_text("def norm(x):\n    return float((x * x).sum())\n")
    monkeypatch.syspath_prepend(folder)
    import thelibrary

    x = pending()
    with nvm.doctor() as d:
        thelibrary.norm(x)
    (found,) = d.report()
    assert (found.file, found.what) == (__file__, "float in thelibrary")


def test_threads_are_watched_and_doctors_nest():
    def run():
        float(pending().sum())

    with nvm.doctor() as outer:
        run()
        with nvm.doctor() as inner:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
            with pytest.raises(RuntimeError, match=r"\[doctor\] this doctor is watching already"):
                inner.__enter__()
    assert [f.count for f in outer.report()] == [2] and [f.count for f in inner.report()] == [1]
    run()
    assert [f.count for f in outer.report()] == [2]


def test_an_evaluation_that_fails_raises_as_without():
    at = nvm.asarray([1, 500])
    with nvm.doctor() as d, pytest.raises(IndexError, match="501"):
        nvm.eval(nvm.take(nvm.asarray(np.arange(3.0)) + 1, at + 1))
    assert all(f.what == "eval" for f in d.report())


def test_a_fault_of_the_doctor_is_none_of_the_program(monkeypatch):
    def fail(*_):
        raise ValueError("not seen")

    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    nvm._nvm.doctor_set(fail)
    try:
        assert float(pending().sum()) > 0
        assert nvm.jit(lambda x: x + 1)(pending()).shape == (300, 300)
    finally:
        nvm._nvm.doctor_set(None)
    assert len(told) >= 2 and all(isinstance(t.exc_value, ValueError) for t in told)


def test_values_in_a_trace_are_none_of_its_matter():
    @nvm.jit
    def f(x):
        return x + float(nvm.ones(1000).sum())

    with nvm.doctor() as d:
        f(pending())
    assert d.report() == []


def run(code, **settings):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **settings}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


PROGRAM = "import nvm\nx = nvm.asarray([1.0] * 1000)\nfor i in range(4): float((x + i).sum())\n"


def test_the_setting_logs_at_exit():
    told = run(PROGRAM, NVM_DOCTOR="1")
    assert "nvm.doctor: 1 place" in told and "<string>:3: float evaluated 4 times" in told
    assert run(PROGRAM, NVM_DOCTOR="0") == ""
    assert run("import nvm; nvm.set('doctor', 1)\n" + PROGRAM).count("float evaluated 4 times") == 1
    assert run("import nvm; nvm.set('doctor', 1); nvm.set('NVM_DOCTOR', 0)\n" + PROGRAM) == ""


def test_the_report_goes_through_logging():
    hush = "import logging\nlogging.getLogger('nvm.doctor').setLevel(logging.ERROR)\n"
    assert run(hush + PROGRAM, NVM_DOCTOR="1") == ""
