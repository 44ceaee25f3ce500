"""nvm.numpy against NumPy: lines of Python in which `np` is either, and what both must agree on. A word in braces
stands for each of the texts that it names, so that one line is many cases."""

import itertools
import re
import warnings

import numpy

import nvm
import nvm.numpy as nvp

_RNG = numpy.random.default_rng(7)
_M = numpy.round(_RNG.standard_normal((3, 4)), 3)
_ARRAYS = {
    "v": _M.reshape(-1)[:5],
    "m": _M,
    "t": numpy.arange(24.0).reshape(2, 3, 4) % 7 - 2,
    "i": numpy.arange(12).reshape(3, 4) * 5 % 7 - 1,
    "j": numpy.array([2, 0, 1, 2], numpy.int32),
    "u": numpy.arange(12, dtype=numpy.uint8).reshape(3, 4) * 3,
    "b": _RNG.random((3, 4)) < 0.5,
    "z": numpy.array(2.5),
    "e": numpy.zeros(0),
    "g": numpy.zeros((3, 0)),
    "n": numpy.where(_RNG.random((3, 4)) < 0.3, numpy.nan, _M),
    "o": numpy.array([numpy.inf, 1.0, -numpy.inf, numpy.nan, 0.0, -0.0]),
    "c": _M + 1j * _M[::-1],
    "h": _M.astype(numpy.float16),
    "s": _M.astype(numpy.float32),
}
_SETS = {
    "any": "v m t i j u b z e g n o c h s m[::2,::-1] t.T".split(),
    "real": "v m t i j u b z e g n o h s m[::2,::-1] t.T".split(),
    "full": "v m t i j u b z n c h s m[::2,::-1] t.T".split(),
    "float": "v m t z n h s m[::2,::-1] t.T".split(),
    "few": "v m t i b z e c".split(),
    "axis": "None 0 1 -1 2 -3".split(),
    "one": "0 1 -1 2 -3".split(),
    "axes": "None 0 1 -1 2 -4 (0,1) (1,-1) () (0,0)".split(),
    "keep": "True False".split(),
    "k": "-5 -2 -1 0 1 2 5".split(),
    "type": "'bool' 'int8' 'uint8' 'int32' 'int64' 'float16' 'float32' 'float64' 'complex64' 'complex128'".split(),
}


def cases(text, **sets):
    """The cases of a table: each line with each choice of the texts in braces."""
    sets = {**_SETS, **{name: words.split() for name, words in sets.items()}}
    for line in filter(None, map(str.strip, text.splitlines())):
        names = re.findall(r"\{(\w+)\}", line)
        for words in itertools.product(*(sets[name] for name in names)):
            chosen = iter(words)
            yield re.sub(r"\{\w+\}", lambda _: next(chosen), line)


def _value(line, module, arrays):
    """(what the line gives, its error): one of them is None. A line `name = ...; expression` runs statements first."""
    space = {"np": module, "nan": numpy.nan, "inf": numpy.inf, **arrays}
    *statements, expression = line.split("; ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for s in statements:
                exec(s, space)
            value = eval(expression, space)
            if module is nvp:
                nvm.eval([x for x in (value if isinstance(value, (list, tuple)) else [value]) if type(x) is nvm.Array])
            return value, None
    except Exception as error:
        return None, error


def _same_error(got, want):
    """Is it an error of the same class, or of a class of that name, or of the nearest class that is Python's?"""
    if got is None:
        return False
    python = next(c for c in type(want).__mro__ if c.__module__ == "builtins")
    return type(got).__name__ == type(want).__name__ or isinstance(got, python)


def _tolerance(dtype):
    return {"float16": 2e-3, "float32": 2e-6, "complex64": 2e-6}.get(dtype.name, 1e-12)


def compare(got, want, where):
    """Shape, dtype and values, in what holds arrays too."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, type(want) if type(want) in (tuple, list) else tuple), f"{where}: {type(got)}"
        assert len(got) == len(want), f"{where}: {len(got)} parts, not {len(want)}"
        for g, w in zip(got, want):
            compare(g, w, where)
    elif isinstance(want, (numpy.ndarray, numpy.generic)):
        assert isinstance(got, (nvm.Array, bool, int)), f"{where}: {type(got)}, not an array"
        got = numpy.asarray(got)
        assert got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}"
        assert got.dtype == want.dtype, f"{where}: {got.dtype}, not {want.dtype}"
        if want.dtype.kind not in "fc":
            assert (got == want).all(), f"{where}: {got}, not {want}"
        else:
            limit = _tolerance(want.dtype)
            finite = numpy.abs(want[numpy.isfinite(want)])
            scale = float(finite.max()) if finite.size else 1.0
            numpy.testing.assert_allclose(got, want, rtol=limit, atol=limit * max(scale, 1e-300), err_msg=where)
    elif isinstance(want, numpy.dtype):
        assert isinstance(got, nvm.DType) and got.name == want.name, f"{where}: {got!r}, not {want!r}"
    else:
        same = got == want or (got != got and want != want)
        assert type(got) is type(want) and same, f"{where}: {got!r}, not {want!r}"


def check(line):
    """The line under nvm.numpy gives what it gives under NumPy: the same value, or an error of the same class."""
    want, wrong = _value(line, numpy, {k: a.copy() for k, a in _ARRAYS.items()})
    got, error = _value(line, nvp, {k: nvm.asarray(a) for k, a in _ARRAYS.items()})
    if wrong is not None:
        assert _same_error(error, wrong), f"{line}: {got!r} {error!r}, not {wrong!r}"
        return
    if error is not None:
        raise AssertionError(f"{line}: raises {error!r}, not {want!r}") from error
    compare(got, want, line)


def check_all(text, **sets):
    """Every case of a table; the failing ones together."""
    failures = []
    for line in cases(text, **sets):
        try:
            check(line)
        except AssertionError as e:
            failures.append(" ".join(str(e).split())[:200])
    assert not failures, f"{len(failures)} cases differ:\n" + "\n".join(failures[:15])
