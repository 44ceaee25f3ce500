"""python -m nvm run: a program's import of numpy is answered by nvm.numpy, a library's is not."""

import os
import pathlib
import subprocess
import sys

import pytest

import nvm

HELPER = (
    "import numpy as np\nfrom numpy.linalg import det\n\n\ndef kind(x):\n    return np.zeros_like(x), det(np.eye(2))\n"
)
PROGRAM = """
import sys
import numpy as np, numpy.fft
import numpy.linalg as la
from numpy import concatenate, pi
from numpy.random import default_rng
import helper, json
x = concatenate([np.arange(3.0), np.ones(1)])
print(type(x).__module__, float(x.sum()), type(helper.kind(x)[0]).__module__, float(helper.kind(x)[1]))
print(la.inv is numpy.linalg.inv, default_rng(1).random(2).shape, sys.argv[1:], __name__, round(pi, 3))
import nvm
print(nvm.asarray(__import__("array").array("d", [1, 2])).tolist())
try:
    import numpy.nonsense
except ImportError as e:
    print(type(e).__name__, e)
"""


def run(path, *args):
    command = [sys.executable, "-m", "nvm", "run", str(path), *args]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NVM_CUDA_DIR": "off"})


def test_a_program_without_an_edit(tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(tmp_path / "program.py", "one", "two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "nvm 4.0 nvm 1.0",
        "True (2,) ['one', 'two'] __main__ 3.142",
        "[1.0, 2.0]",
        "ModuleNotFoundError nvm.numpy has no module 'numpy.nonsense'",
    ]


def test_what_a_program_raises_comes_through(tmp_path):
    (tmp_path / "fails.py").write_text("import numpy as np\nnp.zeros(3)[5]\n")
    done = run(tmp_path / "fails.py")
    assert done.returncode == 1 and "fails.py" in done.stderr and "IndexError" in done.stderr
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(3)\n")
    assert run(tmp_path / "exits.py").returncode == 3


def test_a_script_is_needed():
    command = [sys.executable, "-m", "nvm", "run"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NVM_CUDA_DIR": "off"})
    assert done.returncode == 2 and "nvm run needs a script" in done.stderr


def test_libraries_have_numpy_itself(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "of_library.py").write_text("import numpy\nname = numpy.__name__\n")
    program = f"import sys; sys.path.append({str(library)!r})\nimport numpy, of_library\n"
    program += "print(numpy.__name__, of_library.name)\n"
    (tmp_path / "program.py").write_text(program)
    assert run(tmp_path / "program.py").stdout.split() == [nvm.numpy.__name__, "numpy"]


SCRIPTS = sorted((pathlib.Path(__file__).parent / "scripts").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_scripts_print_what_they_print_with_numpy(script, tmp_path):
    """Whole programs as people write them; none knows of nvm."""
    want = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert want.returncode == 0 and want.stdout, want.stderr
    command = [sys.executable, "-m", "nvm", "run", str(script)]
    got = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "NVM_CUDA_DIR": "off"}
    )
    assert got.returncode == 0, got.stderr
    assert got.stdout == want.stdout


def test_a_program_may_ask_for_the_version(tmp_path):
    (tmp_path / "asks.py").write_text(
        "import numpy as np\nassert tuple(map(int, np.__version__.split('.')[:2])) >= (2, 0)\n"
    )
    done = run(tmp_path / "asks.py")
    assert done.returncode == 0, done.stderr
