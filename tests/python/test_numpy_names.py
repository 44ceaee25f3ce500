"""The names of nvm.numpy: imported late, without NumPy, with NumPy's signatures."""

import inspect
import os
import subprocess
import sys

import numpy
import pytest

import nvm.numpy as nvp


def test_nvm_imports_it_late_and_it_never_imports_numpy():
    program = (  # some machines' site-packages import modules when Python starts
        "import sys; before = set(sys.modules); import nvm; late = 'nvm.numpy' not in sys.modules; "
        "nvm.numpy.concatenate; import nvm.numpy as np; "
        "print(late, np is nvm.numpy, *{'numpy', 'difflib', 'unittest', 'zipfile'} & set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True)
    assert run.stdout.split() == ["True", "True"], run.stderr


def functions():
    """Functions of both modules, NumPy's ufuncs and types apart."""
    for name in sorted(set(numpy.__all__) & set(nvp.__all__)):
        f = getattr(numpy, name)
        if callable(f) and not isinstance(f, (type, numpy.ufunc)):
            yield name, f


NEW_IN_2_5 = {"sort": "descending", "argsort": "descending"}
OLDER = numpy.lib.NumpyVersion(numpy.__version__) < "2.5.0"


def parameters(f, without=None):
    return [(p.name, p.kind, repr(p.default)) for p in inspect.signature(f).parameters.values() if p.name != without]


@pytest.mark.parametrize("name", [name for name, _ in functions()])
def test_signatures_are_numpys(name):
    try:
        want = parameters(getattr(numpy, name))
    except ValueError:
        pytest.skip("NumPy's function tells no signature")
    assert parameters(getattr(nvp, name), NEW_IN_2_5.get(name) if OLDER else None) == want


def test_every_name_is_documented_and_public():
    for name in nvp.__all__:
        assert getattr(nvp, name) is not None or name == "newaxis"
        if inspect.isfunction(getattr(nvp, name)):
            assert inspect.getdoc(getattr(nvp, name)), name


def test_a_missing_name_tells_the_nearest():
    with pytest.raises(
        AttributeError, match=r"'nvm\.numpy' has no attribute 'concatenatte'; nvm\.numpy\.concatenate is"
    ):
        nvp.concatenatte
