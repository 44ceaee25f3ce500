"""The type stubs name what the modules have, with the parameters and defaults that it has."""

import ast
import inspect
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import nvm

FOLDER = pathlib.Path(nvm.__file__).parent
MODULES = ("fft", "linalg", "optimization", "random", "signal")


def tree_of(name):
    path = FOLDER / f"{name}.pyi"
    if not path.exists():
        pytest.skip("built without stubs")
    return ast.parse(path.read_text())


def named(tree):
    """What a stub shows to a type checker."""
    names = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name[0] != "_"}
    names |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    imported = [a for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
    return names | {a.name for a in imported if a.name == a.asname}  # which re-exports it


def parameters_of(f):
    """(name, kind, default as text) of each parameter in a stub's function, without self."""
    a, kinds = f.args, inspect.Parameter
    positional = [(p, kinds.POSITIONAL_ONLY) for p in a.posonlyargs]
    positional += [(p, kinds.POSITIONAL_OR_KEYWORD) for p in a.args]
    defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
    out = [(p.arg, kind, d) for (p, kind), d in zip(positional, defaults)]
    out += [(a.vararg.arg, kinds.VAR_POSITIONAL, None)] if a.vararg else []
    out += [(p.arg, kinds.KEYWORD_ONLY, d) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    out += [(a.kwarg.arg, kinds.VAR_KEYWORD, None)] if a.kwarg else []
    return [(n, k, d and ast.literal_eval(d)) for n, k, d in out if n != "self"]


def has_them(f, value):
    want = [p for p in inspect.signature(value).parameters.values() if p.name != "self"]
    want = [(p.name, p.kind, None if p.default is p.empty else p.default) for p in want]
    assert parameters_of(f) == want, f.name


@pytest.mark.parametrize("name", MODULES)
def test_a_stub_has_the_names_and_the_parameters_of_its_module(name):
    tree, module = tree_of(name), getattr(nvm, name)
    assert named(tree) == set(module.__all__)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            has_them(node, getattr(module, node.name))
            assert node.returns is not None and all(a.annotation for a in node.args.args), node.name
        elif isinstance(node, ast.ClassDef):
            assert inspect.isclass(getattr(module, node.name))


def test_the_stub_of_a_generator_has_its_methods():
    cls = next(n for n in tree_of("random").body if getattr(n, "name", "") == "Generator")
    methods = {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}
    shown = {n for n in dir(nvm.random.Generator) if n[0] != "_"}
    assert set(methods) == shown | {"__init__"}
    for name in shown - {"state"}:
        has_them(methods[name], getattr(nvm.random.Generator, name))
    assert {"normal", "binomial", "gumbel", "spawn"} <= shown


def test_the_stub_of_the_package_names_everything():
    tree = tree_of("__init__")
    assert set(nvm.__all__) <= named(tree)
    array = next(n for n in tree.body if getattr(n, "name", "") == "Array")
    methods = {n.name for n in array.body if isinstance(n, ast.FunctionDef)}
    assert {"sum", "reshape", "__add__", "__radd__", "T", "shape", "tolist", "__getitem__"} <= methods


def test_the_package_says_that_it_has_types():
    assert (FOLDER / "py.typed").exists()


def test_the_module_s_functions_show_their_parameters():
    assert list(inspect.signature(nvm.random.gamma).parameters) == ["shape", "scale", "size", "dtype"]
    assert list(inspect.signature(nvm.random.multinomial).parameters) == ["n", "pvals", "size"]


def test_stubtest_finds_no_difference(tmp_path):
    """mypy's comparison of the stubs with the package as it runs. It sees the stubs alone, so that it looks at no
    module that has none; there is no list of exceptions."""
    pytest.importorskip("mypy")
    (tmp_path / "nvm").mkdir()
    stubs = [*FOLDER.glob("*.pyi")]
    if len(stubs) < len(MODULES):
        pytest.skip("built without stubs")
    for stub in stubs:
        shutil.copy(stub, tmp_path / "nvm")
    paths = {"MYPYPATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, [str(FOLDER.parent), *sys.path]))}
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", "nvm"],
        env={**os.environ, **paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_methods_take_all_by_position_and_say_so():
    x = nvm.ones((2, 3))
    assert str(inspect.signature(x.sum)) == "(axis=None, dtype=None, keepdims=False, initial=None, where=None)"
    assert next(iter(inspect.signature(nvm.Array.sum).parameters)) == "self"
    assert x.sum(0, None, True).shape == (1, 3)
    for name, method in vars(nvm.Array).items():
        if isinstance(method, type(vars(nvm.Array)["sum"])):
            kinds = {p.kind for p in inspect.signature(getattr(x, name)).parameters.values()}
            assert inspect.Parameter.KEYWORD_ONLY not in kinds, name


def test_the_parts_of_a_result_are_properties():
    parts = nvm.linalg.slogdet(nvm.eye(2))
    assert isinstance(vars(type(parts))["sign"], property) and float(parts.sign) == 1
    with pytest.raises(AttributeError):
        parts.nothing
