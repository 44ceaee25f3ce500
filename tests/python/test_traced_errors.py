"""An error inside of a traced function ends at the user's own line, under jit, vmap, loops and each in another."""

import traceback

import numpy as np
import pytest

import nvm

X = nvm.asarray(np.ones((3, 4)))


def wrong(x):
    y = x + 1
    return y @ y  # the line


def asks(x):
    return x if x.sum() > 0 else -x  # the line


WAYS = {
    "jit": lambda f: nvm.jit(f)(X),
    "jit in jit": lambda f: nvm.jit(lambda x: nvm.jit(f)(x))(X),
    "vmap": lambda f: nvm.vmap(f)(nvm.stack([X, X])),
    "fori_loop": lambda f: nvm.fori_loop(0, 3, lambda i, c: f(c), X),
    "while_loop": lambda f: nvm.while_loop(lambda c: c.sum() < 9, f, X),
    "cond": lambda f: nvm.cond(X.sum() > 0, f, lambda x: x, X),
    "scan": lambda f: nvm.scan(lambda c, x: (f(c), x), X, nvm.arange(3)),
    "vmap in jit": lambda f: nvm.jit(lambda x: nvm.vmap(f)(nvm.stack([x, x])))(X),
    "lower": lambda f: nvm.jit(f).lower(X),
    "explain": lambda f: nvm.explain(f, X),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [wrong, asks])
def test_the_traceback_ends_at_the_user_s_line(way, f):
    with pytest.raises((ValueError, RuntimeError)) as caught:
        WAYS[way](f)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.name) == (__file__, f.__name__) and last.line.endswith("# the line")
    assert str(caught.value).startswith("[matmul] " if f is wrong else "[jit] bool() of a traced array")
    if f is asks:  # the message tells it too
        assert f", {__file__}:{last.lineno}: " in str(caught.value)


ASKS = {
    "bool()": lambda x: bool(x.sum()),
    "float()": lambda x: float(x.sum()),
    "int()": lambda x: int(x.sum()),
    "complex()": lambda x: complex(x.sum()),
    "index()": lambda x: [1, 2, 3][x.astype("int64")[0, 0]],
    "item()": lambda x: x.sum().item(),
    "tolist()": lambda x: x.tolist(),
    "tobytes()": lambda x: x.tobytes(),
    "numpy.asarray()": lambda x: np.asarray(x),
    "nonzero() of a mask": lambda x: x[x > 1],
    "nonzero()": lambda x: nvm.nonzero(x),
    "nonzero() by NumPy": lambda x: np.where(x > 1),
    "eval()": lambda x: x.eval(),
    "eval() for unique": lambda x: nvm.unique_values(x),
    "numpy.asarray() by NumPy": lambda x: np.random.default_rng(0).permutation(x),
}


@pytest.mark.parametrize("way", ["jit", "vmap in jit", "fori_loop"])
@pytest.mark.parametrize("what", ASKS)
def test_what_depends_on_values_tells_the_user_s_file_and_line(what, way):
    """Also where nvm's own files, or NumPy's, ask."""
    line = ASKS[what].__code__.co_firstlineno
    with pytest.raises(RuntimeError) as caught:
        WAYS[way](ASKS[what])
    message = str(caught.value)
    assert message.startswith(f"[jit] {what.partition(' ')[0]} of a traced array ("), message
    assert f", {__file__}:{line}: inside nvm.jit" in message, message
