"""The page of errors by name: it has every name that the source gives to an error; its examples raise what it says."""

import ast
import pathlib
import re

import pytest

import nvm
import nvm.numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guide/errors-by-name.md").read_text()
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| `(?P<code>[^`]+)` \| `(?P<error>[^`]+)` \| `(?P<instead>[^`]+)` \|$", re.M)
ROWS = [m.groupdict() for m in ROW.finditer(PAGE)]
NAME = re.compile(r"""["'`]\[([A-Za-z_][A-Za-z_0-9.]*)\] """)


def raised():
    """The names that literal messages of the library and of the package begin with."""
    files = [
        p for folder in ("lib", "bindings/python") for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".py")
    ]
    return {name for p in files for name in NAME.findall(p.read_text())}


def named():
    """The names of the page's tables."""
    first = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
    return {name for cell in first for name in re.findall(r"`([^`]+)`", cell)}


def test_no_name_is_missing():
    assert len(raised()) > 100
    assert not raised() - named(), "docs/guide/errors-by-name.md lacks these"


def test_no_name_is_out_of_date():
    assert not named() - raised() - {row["name"] for row in ROWS}


def run(code):
    """The statements, and the value of the last one, which is evaluated."""
    names = {"nvm": nvm, "np": nvm.numpy, "x": nvm.ones((3, 4))}
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<example>", "exec"), names)
    if last:
        nvm.eval(eval(compile(ast.Expression(last.value), "<example>", "eval"), names))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_examples(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nvm.profiler, "_last", None)  # no test before has ended a profile
    kind, message = row["error"].split(": ", 1)
    assert message.startswith(f"[{row['name']}] ")
    with pytest.raises(Exception) as caught:
        run(row["code"])
    assert type(caught.value).__name__ == kind
    told = str(caught.value.args[0])
    assert re.fullmatch(".*".join(map(re.escape, message.split("..."))), told, re.S), told
    run(row["instead"])
