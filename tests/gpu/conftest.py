"""Tests that need a GPU. Without one they are skipped with the reason; with the emulator (tests/emu, NVM_CUDA_DIR)
those marked `emulated` run, the others are skipped: it compiles every kernel with the C++ compiler. Of a test marked
`emulated(one_in=3)` each third set of parameters runs there."""

import collections
import os
import pathlib
import sys

import numpy as np
import pytest

import nvm

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))  # refs, and the helpers of test_ops
GPU = "cuda:0"
EMULATED = "emu" in pathlib.Path(os.environ.get("NVM_CUDA_DIR", "")).parts


def why_no_gpu():
    try:
        assert float(nvm.asarray([1.0], device=GPU)[0] + 1) == 2
    except Exception as e:
        return f"no GPU: {str(e).splitlines()[0]}"
    return None


WHY = why_no_gpu()


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "emulated(one_in=1): also runs on the emulator, one set of parameters in so many"
    )


def pytest_collection_modifyitems(items):
    seen = collections.Counter()
    for item in items:
        emulated = item.get_closest_marker("emulated")
        if WHY:
            item.add_marker(pytest.mark.skip(reason=WHY))
        elif EMULATED and (not emulated or seen[item.function] % emulated.kwargs.get("one_in", 1)):
            item.add_marker(pytest.mark.skip(reason="the emulator runs a few tests only"))
        seen[item.function] += 1


def pytest_report_header(config):
    return nvm.info().rstrip().splitlines()


@pytest.fixture
def device():
    return GPU


@pytest.fixture
def emulated():
    """Is it the emulator, where large cases take minutes?"""
    return EMULATED


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(params=["all", "kernel"])
def solvers(request):
    """With the libraries, and without."""
    nvm.set("SOLVERS", request.param)
    yield request.param
    nvm.set("SOLVERS", "all")


@pytest.fixture(autouse=True)
def no_numpy_warnings():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def torch():
    t = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not t.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return t
