"""Views and writes: NumPy, arrays without jit and a jitted function agree. The table is that of docs/views.md."""
import os
import pathlib
import re

import numpy as np
import pytest

import nvm
import writes
from refs import same

PROGRAMS = int(os.environ.get("NVM_TEST_PROGRAMS", "120"))


def agree(got, want):
    for g, w in zip(got[0], want[0], strict=True):
        np.testing.assert_array_equal(np.asarray(g), w)
    for g, w in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-12)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_programs(seed):
    x, program = writes.random_program(seed)
    want = writes.run(np, x.copy(), program)
    agree(writes.run(nvm, nvm.asarray(x), program), want)
    if any(kind == "mask" for _, kind, _, _ in program):
        return
    got = nvm.jit(lambda a: tuple(writes.run(nvm, a, program)))(x)
    agree(got, want)


def table():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "views.md").read_text()
    return re.findall(r"^\| `([^`]+)` \| ([^|]+?) \|$", text, re.M)


def probe(xp, text, x):
    """Whether the expression is x itself, whether a write to it is refused, and what is left to compare."""
    y = eval(text, {"x": x, "z": x, "nvm": xp})
    before = y.copy()
    x[...] = -7
    seen = y.copy()
    try:
        y[...] = 50
    except TypeError:  # NumPy's scalars
        return y is x, "value", before, seen, x
    except ValueError:
        return y is x, "read-only", before, seen, x
    return y is x, "", before, seen, x


def relation(itself, refused, before, seen, x):
    x = np.asarray(x)
    sees, reaches = bool(np.any(np.asarray(before) != np.asarray(seen))), bool(np.any((x == 50) | (x.imag == 50)))
    if itself:
        return "itself"
    if refused:
        return refused + " view" * sees
    assert sees == reaches
    return "view" if sees else "copy"


MEANS = {"a view": "view", "a copy": "copy", "the element": "value", "a read-only view": "read-only view",
         "read-only": "read-only", "x itself": "itself"}
ALIKE = {"itself": "view", "value": "copy"}  # told apart by `is` and by type alone


def alike(a, b):
    return ALIKE.get(a, a) == ALIKE.get(b, b)


def traced(text, n):
    known = []

    def f(x):
        itself, refused, *rest = probe(nvm, text, x)
        known.extend((itself, refused))
        return rest
    rest = nvm.jit(f)(n)
    return relation(*known[:2], *rest)


@pytest.mark.parametrize("text,what", table())
def test_table_of_views(text, what):
    want = MEANS[re.split(r"[:,] | of what| where| without", what.replace("of real numbers ", ""))[0]]
    n = np.arange(12.0).reshape(3, 4) + (1j if "z." in text else 0)
    if "to_device" in text:
        want = "copy"
    assert alike(relation(*probe(nvm, text, nvm.asarray(n))), want)
    if "broadcast_arrays" not in text and "to_device" not in text:
        assert alike(relation(*probe(np, text.replace("(12, copy=True)", "(12).copy()"), n.copy())), want)
    if "x > 3" not in text:
        assert alike(traced(text, n), want)
