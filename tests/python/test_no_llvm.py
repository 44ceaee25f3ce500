"""A library without its part that holds LLVM: the same values, and a warning, once, where a kernel would have been
compiled."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

BEGIN = """
import warnings
import numpy as np
import nvm
x = nvm.asarray(np.linspace(0, 1, 100000))
def told(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    for w in seen:
        assert w.category is RuntimeWarning and w.filename == "<string>", w
        assert "libnvm_llvm.so" in str(w.message) and "slower" in str(w.message), w
    return len(seen)
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A copy of libnvm.so, which looks beside itself for the rest."""
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split()[-1] for line in maps if "/libnvm.so" in line}
    return shutil.copy(paths.pop(), tmp_path_factory.mktemp("core") / "libnvm.so.0")


def process(core, code, **env):
    p = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "NVM_CACHE_DIR": "off", "NVM_DEVICE": "cpu", "LD_PRELOAD": str(core), **env},
    )
    assert p.returncode == 0, p.stderr
    return p.stdout.split()


@pytest.mark.parametrize(
    "call",
    [
        "nvm.eval(nvm.sin(x) + 1)",
        "float(nvm.sum(nvm.sin(x)))",
        "nvm.jit(nvm.sin)(x)",
        "np.asarray(nvm.sin(x))",
        "repr(nvm.sin(x))",
        "[float(x[:9999].sum()) for _ in range(200)]",
    ],
)
def test_it_is_told_once_at_the_call(core, call):
    out = process(core, f"print(told(lambda: {call}), told(lambda: {call}), told(lambda: float(nvm.cos(x).sum())))")
    assert out == ["1", "0", "0"]


def test_values_are_the_same_and_an_error_is_raised_once(core):
    out = process(
        core,
        """
warnings.simplefilter("error")
y = nvm.sin(x) * 2 + x
try:
    nvm.eval(y)
except RuntimeWarning:
    print("raised")
print(np.asarray(y).tobytes().hex()[:400] == np.asarray(nvm.sin(x) * 2 + x).tobytes().hex()[:400])
print(np.asarray(y).tobytes().hex()[-64:])
""",
    )
    import numpy as np

    import nvm

    x = nvm.asarray(np.linspace(0, 1, 100000))
    assert out == ["raised", "True", np.asarray(nvm.sin(x) * 2 + x).tobytes().hex()[-64:]]


@pytest.mark.parametrize("tier", ["0", "auto"])
def test_nothing_is_told_where_nothing_would_have_been_compiled(core, tier):
    code = "nvm.eval(nvm.sin(x))" if tier == "0" else "nvm.eval(nvm.sin(x[:10]))"
    assert process(core, f"print(told(lambda: {code}))", NVM_TIER=tier) == ["0"]


def test_nothing_is_told_where_llvm_is():
    out = process("", "print(told(lambda: nvm.eval(nvm.sin(x))), nvm.counters()['kernels_compiled'] > 0)", NVM_TIER="1")
    assert out == ["0", "True"]
