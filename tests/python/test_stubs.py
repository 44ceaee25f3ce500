"""The type stubs name what the modules have, with the parameters and defaults that it has."""

import ast
import inspect
import pathlib

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
