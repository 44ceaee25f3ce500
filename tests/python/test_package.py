"""What a wheel promises: its metadata, the names that its libraries show and need, and the libraries of other wheels
that it finds. scripts/wheel makes one, which takes too long for a test."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import nvm

ROOT = Path(__file__).resolve().parents[2]
NEWEST_GLIBC = (2, 34)  # of manylinux_2_34


def built(name):
    """A library of the package, beside it or in the build folder."""
    beside = Path(nvm.__file__).parent / name
    return beside if beside.exists() else next(Path(nvm.__file__).parents[3].glob(f"lib/{name}"), None)


def symbols(name, *options):
    library = built(name)
    if not library or not shutil.which("nm"):
        pytest.skip(f"no {name}, or no nm")
    return subprocess.run(["nm", "-D", *options, library], capture_output=True, text=True, check=True).stdout.split()


def test_metadata():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any(need.startswith("scipy-openblas32") for need in project["dependencies"])
    for major in "12", "13":
        (toolkit,) = project["optional-dependencies"][f"cuda{major}"]
        parts = re.match(r"cuda-toolkit\[([\w,]+)\]", toolkit)[1]
        assert set(parts.split(",")) == {"cudart", "nvrtc", "cublas", "cufft", "cusolver"}
        assert major in toolkit
    for file in project["license-files"]:
        assert (ROOT / file).stat().st_size > 1000
    others = (ROOT / "LICENSE.third-party").read_text()
    for name in "LLVM", "SQLite", "xxHash", "Zstandard", "zlib", "libstdc++":
        assert f"\n{name}" in others


def test_only_own_names_are_exported():
    """LLVM and what else is inside meets no other copy in the process."""
    names = symbols("libnvm.so", "--defined-only", "--without-symbol-versions", "--format=just-symbols")
    assert len(names) > 1000 and all(re.match(r"nv[a-z]_|nvm_|nvcu_|NVM_", name) for name in names)
    names = symbols("libnvm_llvm.so", "--defined-only", "--without-symbol-versions", "--format=just-symbols")
    assert [name for name in names if name not in ("__bss_start", "_edata", "_end")] == [
        "nvm_llvm_open"
    ]  # the linker's


@pytest.mark.parametrize("library", ["libnvm.so", "libnvm_llvm.so", "_nvm.abi3.so"])
def test_no_newer_glibc_is_needed(library):
    if tuple(map(int, platform.libc_ver()[1].split("."))) > (2, 36):
        pytest.skip("headers of a newer glibc give newer names to old functions")
    needed = symbols(library, "--undefined-only")
    newer = [name for name in needed if (m := re.search(r"@GLIBC_(\d+)\.(\d+)", name)) and version(m) > NEWEST_GLIBC]
    assert not newer


def version(match):
    return tuple(map(int, match.groups()))


def test_openblas_of_a_wheel_comes_first(tmp_path):
    code = "import nvm; nvm.info(); print(*(l.split()[-1] for l in open('/proc/self/maps') if 'openblas' in l))"
    run = lambda path: subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    path = os.pathsep.join(sys.path)
    found = set(run(path).stdout.split())
    if not found:
        pytest.skip("no OpenBLAS")
    wheel = tmp_path / "scipy_openblas32/lib"
    wheel.mkdir(parents=True)
    shutil.copy(found.pop(), wheel / "libscipy_openblas.so")
    assert set(run(f"{tmp_path}{os.pathsep}{path}").stdout.split()) == {str(wheel / "libscipy_openblas.so")}
