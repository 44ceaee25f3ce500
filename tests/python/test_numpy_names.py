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


def test_the_table_of_names_is_that_of_the_files():
    """A function that a file of nvm.numpy defines is found from outside, and nothing else is."""
    from importlib import import_module

    for theme, names in nvp._THEMES.items():
        assert sorted(set(import_module(f"nvm.numpy._{theme}").__all__)) == names.split(), theme
    assert set(nvp._FILES).isdisjoint(nvp._UFUNCS)
    assert set(nvp.__all__) <= set(dir(nvp))


def test_no_function_is_imported_before_it_is_asked_for():
    program = (
        "import nvm.numpy as np, sys; print(*{f'nvm.numpy._{t}' for t in np._THEMES} & set(sys.modules)); "
        "np.concatenate; print('nvm.numpy._joining' in sys.modules, 'nvm.numpy._windows' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True)
    assert run.stdout.split() == ["True", "False"], run.stderr


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


@pytest.mark.parametrize(
    "name, instead",
    [
        ("char", "Python's lists hold texts"),
        ("ma", "nan-functions"),
        ("matrix", "@"),
        ("datetime64", "as integers"),
        ("random.PCG64", r"default_rng\(seed\)"),
        ("random.SeedSequence", r"spawn\(n\)"),
        ("random.permutations", "permutation is spelled like it"),
        ("lib.stride_tricks.as_strided", "sliding_window_view"),
        ("polynomial.Chebyshev", "Polynomial"),
    ],
)
def test_a_missing_name_tells_what_takes_its_place(name, instead):
    *modules, last = name.split(".")
    module = nvp
    for m in modules:
        module = getattr(module, m)
    with pytest.raises(AttributeError, match=f"no attribute '{last}'; .*{instead}"):
        getattr(module, last)


def test_modules_of_modules_have_numpys_signatures():
    import numpy.lib.stride_tricks
    import numpy.polynomial

    compared = 0
    for path in ("lib.stride_tricks", "polynomial.polynomial", "polynomial.polyutils", "testing"):
        ours, theirs = nvp, numpy
        for part in path.split("."):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        for name in ours.__all__:
            f = getattr(theirs, name)
            if inspect.isfunction(f) and name not in ("build_err_msg", "assert_array_compare"):
                assert parameters(getattr(ours, name)) == parameters(f), f"{path}.{name}"
                compared += 1
    assert compared > 40
    theirs = numpy.polynomial.Polynomial
    for name, f in inspect.getmembers(nvp.polynomial.Polynomial, inspect.isroutine):
        if not name.startswith("_"):
            assert parameters(f) == parameters(getattr(theirs, name)), name


def test_a_missing_name_tells_the_nearest():
    with pytest.raises(
        AttributeError, match=r"'nvm\.numpy' has no attribute 'concatenatte'; nvm\.numpy\.concatenate is"
    ):
        nvp.concatenatte
