"""Examples in docstrings are run as doctests, and everything public has one."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import re

import pytest

import nvm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(nvm.__file__).parent
MODULES = sorted(
    p.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for p in PACKAGE.rglob("*.py")
    if ">>>" in p.read_text()
)
FUNCTIONS = sorted(name for name, f in nvm._nvm.functions.items() if ">>>" in (f.__doc__ or ""))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def hold(text, name):
    told = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples
    assert not doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=told.append).failed, "".join(told)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function(name):
    hold(nvm._nvm.functions[name].__doc__, name)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name):
    done = doctest.testmod(importlib.import_module(name), extraglobs={"__name__": "examples"}, optionflags=OPTIONS)
    assert done.attempted and not done.failed


def test_examples_of_operations_are_sorted_and_are_of_operations():
    text = (ROOT / "bindings/python/examples.def").read_text()
    assert re.findall(r'^EXAMPLE\("([\w.]+)"', text, re.M) == FUNCTIONS and len(FUNCTIONS) >= 130


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_of_an_operation_says_what_each_parameter_is(name):
    function = nvm._nvm.functions[name]
    lines = re.findall(r"^([a-z]\w*(?:, [a-z]\w*)*): (.*)\.$", function.__doc__, re.M)
    assert [each for names, _ in lines for each in names.split(", ")] == list(inspect.signature(function).parameters)
    kind = {n: row[0] for n, row in nvm._nvm.op_table().items()}[name]
    if kind in ("map", "reduction", "scan", "view"):
        assert re.search(r"^Dtypes: ", function.__doc__, re.M)


def test_parameters_of_operations_are_sorted_and_are_of_operations():
    text = (ROOT / "bindings/python/parameters.def").read_text()
    names = re.findall(r'^PARAMETER\("([\w.]+)"', text, re.M)
    assert names == sorted(names) and len(names) == len(set(names))
    signatures = {name: inspect.signature(nvm._nvm.functions[name]).parameters for name in FUNCTIONS}
    for name in names:
        operation, _, parameter = name.rpartition(".")
        assert any(parameter in p for op, p in signatures.items() if operation in ("", op)), name


# what asks for another package when it is imported
WITH_OTHERS = {"nvm.dask", "nvm.einops", "nvm.pandas", "nvm.xarray"}
NAMES = [
    m.name  # of files in Python: a wheel has the library beside them
    for m in pkgutil.walk_packages(nvm.__path__, "nvm.")
    if "._" not in m.name and importlib.util.find_spec(m.name).origin.endswith(".py")
]
PUBLIC = [nvm, *(importlib.import_module(name) for name in NAMES if name not in {*WITH_OTHERS, "nvm.__main__"})]
IN_C = sorted(
    n
    for n, f in vars(nvm._nvm).items()
    if (inspect.isbuiltin(f) or isinstance(f, type)) and ">>>" in (f.__doc__ or "") and n not in FUNCTIONS
)


def public(module):
    """The functions and classes of a module: (name, object)."""
    for name in getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]:
        value = getattr(module, name)
        if callable(value) and not isinstance(value, nvm.DType):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize("name", IN_C)
def test_the_example_of_a_function_in_c(name):
    hold(getattr(nvm._nvm, name).__doc__, name)


def held():
    """The docstrings whose examples are run above."""
    docs = {nvm._nvm.functions[name].__doc__ for name in FUNCTIONS} | {getattr(nvm._nvm, name).__doc__ for name in IN_C}
    for name in MODULES:
        docs |= {test.docstring for test in doctest.DocTestFinder().find(importlib.import_module(name))}
    return docs


def test_everything_public_has_an_example_that_is_run():
    docs, names = held(), {name: value for module in PUBLIC for name, value in public(module)}
    lacking = [name for name, value in names.items() if ">>>" not in (value.__doc__ or "") or value.__doc__ not in docs]
    assert lacking == ["nvm.numpy.testing.SkipTest"]  # which is unittest's
    assert len(PUBLIC) > 15 and len(names) > 800


def test_the_catalogue_of_errors_has_each_status():
    page = (ROOT / "docs/guide/errors.md").read_text()
    table = page[: page.index("## ")]
    statuses = re.findall(r"^  (NVM_ERR_\w+) =", (ROOT / "include/nvm/status.h").read_text(), re.M)
    assert len(statuses) >= 12 and [s for s in statuses if f"`{s}`" not in table] == []
    for part in page.split("\n## ")[1:]:  # each entry raises, and goes on
        (block,) = re.findall(r"```python\n(.*?)```", part, re.S)
        assert block.count("Traceback (most recent call last):") == 1, part
        assert ">>> " in block[block.index("Traceback") :], part
