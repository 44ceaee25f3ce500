"""Functions that write parts of arrays one after the other, many of them stored over what was there before: random
programs of integers, which NumPy has to agree with exactly. NVM_PARTS: how many of them."""

import os
import random

import numpy as np
import pytest

import nvm


def region(r, shape):
    """An index of a part: an element, a row, a column, or a rectangle."""
    i, j = r.randrange(shape[0]), r.randrange(shape[1])
    return r.choice(
        [
            (i, j),
            (i,),
            (slice(None), j),
            (slice(i, r.randint(i + 1, shape[0])), slice(j, r.randint(j + 1, shape[1]))),
            (i, slice(j, None)),
            (slice(i, None, 2), j),
        ]
    )


def statements(r, shape, n):
    """What to do with the arrays a and b: (which is written, where, which is read, where, number, operation)."""
    return [
        (r.randrange(2), region(r, shape), r.randrange(2), region(r, shape), r.randint(-3, 3), r.choice("=+*mk"))
        for _ in range(n)
    ]


def run(program, xp, a, b):
    state, kept = [a, b], []
    for to, where, source, at, number, op in program:
        x, y = state[to], state[source]
        if op == "k":
            kept.append(y[at] + number)
        elif op == "=":
            x[where] = number
        elif op == "+":
            x[where] = x[where] + number
        elif op == "*":
            x[where] = x[where] * number - xp.sum(y[at])
        else:
            x[where] += xp.max(y[at]) + y[0, 0]
    return [*state, *kept]


@pytest.mark.parametrize("seed", range(int(os.environ.get("NVM_PARTS", 24))))
def test_parts(seed):
    r = random.Random(seed)
    shape = r.choice([(5, 7), (40, 33), (64, 64), (3, 200)])
    program = statements(r, shape, r.choice([12, 60, 200]))
    data = np.random.default_rng(seed)
    a, b = data.integers(-9, 9, shape), data.integers(-9, 9, shape)
    want = run(program, np, a.copy(), b.copy())
    traced = nvm.jit(lambda x, y: run(program, nvm, x, y), donate_argnums=(0,) if seed % 3 == 0 else ())
    for _ in range(2):
        got = traced(nvm.asarray(a, copy=True), nvm.asarray(b, copy=True))
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)
