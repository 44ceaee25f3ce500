"""Code in the README and the guide is run as it stands. The blocks of a page in Python are one program, in order; a
block of text right behind one is what it prints, with ... for what differs from machine to machine. A block of C with a
main is compiled and run. `<!-- not run: why -->` above a block in Python means that its syntax alone is looked at."""

import contextlib
import doctest
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import nvm

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))) if "```" in p.read_text()]
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>.+?) -->\n+)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
LIBRARY = pathlib.Path(nvm.__file__).parents[3] / "lib"  # of a build folder
CHECK = doctest.OutputChecker()


def blocks(page):
    """(line, language, code, why it is not run, what it prints or None)"""
    text = page.read_text()
    found = list(BLOCK.finditer(text))
    for m, after in zip(found, found[1:] + [None]):
        shown = after and after["language"] == "text" and not text[m.end() : after.start()].strip()
        yield (
            text[: m.start("code")].count("\n") + 1,
            m["language"],
            m["code"],
            m["why"],
            after["code"] if shown else None,
        )


def hold(where, printed, shown):
    if shown is not None and not CHECK.check_output(shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
        pytest.fail(f"{where}: printed\n{printed}\nnot\n{shown}", pytrace=False)


def run_python(where, code, names):
    """What it prints. A block with >>> is a doctest, that prints nothing beside."""
    if ">>>" not in code:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, where, "exec"), names)
        return out.getvalue()
    told = io.StringIO()
    example = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(example, out=told.write, clear_globs=False).failed
    names.update(example.globs)
    if failed:
        pytest.fail(told.getvalue(), pytrace=False)
    return ""


def run_page(page):
    names = {"__name__": "page"}
    for line, language, code, why, shown in blocks(page):
        if language == "python" and why:
            compile(code, f"{page.name}:{line}", "exec")
        elif language == "python":
            hold(f"{page.name}:{line}", run_python(f"{page.name}:{line}", code, names), shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_python_of_a_page(page, tmp_path):
    """In a process of its own: pages print counters, which count what the whole process does, that in the background
    included. They print what a CPU does."""
    code = "import pathlib, sys, test_docs; test_docs.run_page(pathlib.Path(sys.argv[1]))"
    paths = [str(ROOT / "tests/python"), *filter(None, sys.path)]
    environment = {**os.environ, "NVM_DEVICE": "cpu", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, page], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


PROGRAMS = [(p, *b) for p in PAGES for b in blocks(p) if b[1] == "c" and "int main(" in b[2]]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.skipif(not (LIBRARY / "libnvm.so").exists(), reason="the package is not in a build folder")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda b: f"{b[0].name}:{b[1]}")
def test_c_of_a_page(program, tmp_path):
    page, line, _, code, _, shown = program
    (tmp_path / "program.c").write_text(code)
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{ROOT}/include",
            "program.c",
            f"-L{LIBRARY}",
            "-lnvm",
            "-lm",
            f"-Wl,-rpath,{LIBRARY}",
            "-o",
            "program",
        ],
        cwd=tmp_path,
        check=True,
    )
    environment = {**os.environ, "NVM_DEVICE": "cpu"}
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    hold(f"{page.name}:{line}", done.stdout, shown)


def test_blocks_are_found():
    assert sum(1 for p in PAGES for b in blocks(p) if b[1] == "python" and not b[3]) > 20
    assert PROGRAMS


def test_tables_of_kernel_text_are_current():
    """The tables of statements and hints are what their .def files say."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/site/kernel_text.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_of_numpy_are_current():
    """The tables of names are what NumPy's and nvm.numpy's are, and nine of ten functions are there."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/site/numpy_names.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    share = re.search(
        r"functions and ufuncs together \| \d+ \| \d+ \| ([\d.]+) %", (ROOT / "docs/guide/numpy.md").read_text()
    )
    assert float(share[1]) >= 90


def test_figures_are_current():
    """Tables and plots are what benchmarks/report makes of benchmarks/results."""
    done = subprocess.run([sys.executable, ROOT / "benchmarks/report", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def meson(what):
    """Meson's list of the build folder's tests or targets."""
    path = LIBRARY.parent / f"meson-info/intro-{what}.json"
    if not path.exists():
        pytest.skip("the package is not in a build folder")
    return json.loads(path.read_text())


def instructions():
    """(page, text) of all documents for readers of the source"""
    pages = [p for p in ROOT.glob("docs/**/*.md") if p.parent.name != "notes"]
    for page in (*pages, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests/README.md"):
        yield page.name, re.sub(r"\s+#.*", "", page.read_text(), flags=re.M)


def hold_built(missing):
    """What is named and missing needs MPFR, and then there is nothing more to hold here."""
    source = "".join(path.read_text() for path in ROOT.glob("tests/*/meson.build"))
    of_mpfr = re.findall(r"mpfr_tests \+= \{'(\w+)'", source)
    assert of_mpfr and sorted(x for x in missing if x[1].removeprefix("tests/test_") not in of_mpfr) == []
    if missing:
        pytest.skip(f"MPFR was not found: {len(missing)} names of suites that need it are not looked up")


def test_what_needs_mpfr_is_skipped_where_it_is_not():
    with pytest.raises(pytest.skip.Exception, match="2 names"):
        hold_built({("a.md", "frag_ulp"), ("b.md", "tests/test_frag_ulp")})
    with pytest.raises(AssertionError):
        hold_built({("a.md", "frag_ulp"), ("a.md", "frag_text")})


def test_built_programs_that_are_named_exist():
    """Paths below build/, and the targets of commands in ninja."""
    built = {
        os.path.relpath(path, LIBRARY.parent)
        for target in meson("targets")
        for path in target["filename"]
        if target["type"] in ("executable", "shared library", "shared module")
    }
    folders = {str(parent) for path in built for parent in pathlib.Path(path).parents}
    named = set()
    for page, text in instructions():
        named |= {(page, path.rstrip("/.")) for path in re.findall(r"(?<![\w/.-])build/([\w/.-]+)", text)}
        for targets in re.findall(r"ninja -C build((?: [\w/.-]+)+)", text):
            named |= {(page, target) for target in targets.split() if not target.startswith("-")}
    assert len(named) > 5
    made_otherwise = {"site", "site/index.html", "bindings/python"}  # by scripts/docs; a folder of links
    hold_built({x for x in named if x[1] not in built | folders | made_otherwise})


def test_suites_that_are_named_exist():
    """Names behind `meson test`, and those in the tables of suites: `LAYER_FILE`."""
    suites = {test["name"] for test in meson("tests")}
    layers = {path.name for path in (ROOT / "lib").iterdir() if path.is_dir()}
    named = set()
    for page, text in instructions():
        for words in re.findall(r"meson test -C build((?: [\w-]+)+)", text):
            named |= {(page, word) for word in words.split() if not word.startswith("-")}
        if page in ("other-changes.md", "plans-and-texts.md"):
            named |= {(page, word) for word in re.findall(rf"`((?:{'|'.join(layers)}|plans)_\w+)`", text)}
    assert len(named) > 15
    hold_built({x for x in named if x[1] not in suites})


def test_commands_that_are_named_exist():
    """scripts/NAME WORD, and python -m nvm NAME."""
    from nvm import __main__ as command

    for page, text in instructions():
        for script, word in re.findall(r"(?<![\w/])scripts/([\w-]+)(?: ([a-z]+)\b)?", text):
            path = ROOT / "scripts" / script
            assert path.exists(), f"{page}: scripts/{script}"
            if path.is_file() and word and re.search(rf"scripts/{script} {word}`", text):
                assert re.search(rf"\b{word}\b", path.read_text()), f"{page}: scripts/{script} {word}"
        for word in re.findall(r"python -m nvm ([a-z]+)", text):
            assert hasattr(command, word) or word in ("run", "tune"), f"{page}: python -m nvm {word}"


def test_files_that_are_named_exist():
    """Paths of the repository in the documents, and of documents in comments; notes keep those of their time."""
    named = re.compile(
        r"\b(?:lib|tests|scripts|benchmarks|include|bindings|examples|docs)/[\w/.-]+\.(?:c|h|py|def|sh|cu|frag|md)\b"
    )
    pages = [p for p in ROOT.glob("docs/**/*.md") if p.parent.name != "notes"]
    pages += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests/README.md"]
    code = [p for layer in ("lib", "include", "bindings", "tests") for p in (ROOT / layer).rglob("*")]
    pages += [p for p in code if p.suffix in (".c", ".h", ".py") and p != pathlib.Path(__file__)]
    paths = {(p.name, path) for p in pages for path in named.findall(p.read_text()) if "FILE" not in path}
    assert len(paths) > 50
    assert sorted(x for x in paths if not (ROOT / x[1]).exists()) == []
