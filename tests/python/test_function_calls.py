"""NumPy's functions called with nvm arrays. The forms of a call that are one operation of the library's table
(_protocol.py) give what nvm.numpy's function of that name gives, and what NumPy gives; the others reach
that function."""

import itertools

import numpy as np
import pytest

import nvm
import nvm.numpy as nvp
from nvm import _protocol

DTYPES = ["bool", "int32", "uint16", "float16", "float32", "float64", "complex64"]
SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 0), (1, 4, 2)]
AXES = [{}, {"axis": 0}, {"axis": -1}, {"axis": None}, {"axis": (0, 1)}, {"axis": 5}]
CALLS = {
    "sum prod max min amax amin all any mean std var count_nonzero": [
        {**axis, **kept} for axis in AXES for kept in ({}, {"keepdims": True})
    ]
    + [{"axis": 0, "out": None}, {"keepdims": 1}],
    "argmax argmin": [*AXES, {"axis": 0, "keepdims": True}],
    "std var": [{"ddof": 1}, {"ddof": 2, "axis": 0}, {"ddof": 0.5}, {"ddof": 9}],
    "sum prod cumsum": [{"dtype": "float64"}, {"dtype": np.int64}, {"dtype": np.dtype("float32"), "axis": 0}],
    "cumsum cumprod": AXES,
    "sort argsort flip": AXES,
    "squeeze": [*AXES, {"axis": (0,)}],
    "round around real imag ravel transpose zeros_like ones_like matrix_transpose": [{}],
    "tril triu": [{}, {"k": 1}, {"k": -2}],
    "expand_dims": [{"axis": 0}, {"axis": -1}, {"axis": (0, 2)}, {"axis": 7}],
    "roll": [{"shift": 1}, {"shift": -2, "axis": 0}, {"shift": (1, 2), "axis": (0, 1)}],
    "repeat": [{"repeats": 2}, {"repeats": 0, "axis": 0}, {"repeats": -1, "axis": 0}],
    "tile": [{"reps": 2}, {"reps": (2, 1)}, {"reps": (2, 1, 2)}, {"reps": 0}, {"reps": ()}],
    "reshape": [{"shape": -1}, {"shape": (2, -1)}, {"shape": (7, 7)}, {"shape": (-1, 1), "order": "F"}],
    "transpose": [{"axes": (1, 0)}, {"axes": [1, 0]}, {"axes": (0, 0)}, {"axes": None}],
    "moveaxis": [
        {"source": 0, "destination": -1},
        {"source": (0, 1), "destination": (1, 0)},
        {"source": 4, "destination": 0},
    ],
    "broadcast_to": [{"shape": (2, 2, 3)}, {"shape": (3, 4)}, {"shape": 4}],
    "full_like": [{"fill_value": 2}, {"fill_value": 2.5}, {"fill_value": True}],
    "clip": [
        {"a_min": -1, "a_max": 1},
        {"a_min": 1.5, "a_max": -0.5},
        {"a_min": None, "a_max": 1},
        {"min": 0, "max": 1},
    ],
}


def values(dtype, shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape) * 3
    x = x + 1j * x[..., ::-1] if np.dtype(dtype).kind == "c" and shape else x
    with np.errstate(all="ignore"):
        return np.abs(x).astype(dtype) if np.dtype(dtype).kind == "u" else np.asarray(x).astype(dtype)


def result(f, *args, **kw):
    """What a call gives: (class of the error,) or (dtype, shape, values)."""
    with np.errstate(all="ignore"):
        try:
            r = np.asarray(f(*args, **kw))
        except Exception as e:
            return (type(e).__mro__,)
    return str(r.dtype), r.shape, r


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def check(theirs, ours, plain, close=close):
    assert len(theirs) == len(ours)
    if plain is None:
        plain = ours
    assert len(theirs) == len(ours) == len(plain), (theirs, ours, plain)
    if len(theirs) == 1:  # the same error as that of the function itself, and NumPy's or one derived from it
        assert theirs == ours
        return
    assert theirs[:2] == ours[:2] == plain[:2]
    np.testing.assert_array_equal(theirs[2], ours[2])
    if theirs[0] != "float16":
        close(theirs[2], plain[2])


def cases(name):
    return [kw for names, rows in CALLS.items() if name in names.split() for kw in rows]


# where NumPy computes what nvm.numpy does not: an order of complex numbers; where it puts equal elements; a repetition
# of nothing, -1 times
ONLY_OURS = {"argsort": "biuf", "clip": "c", "repeat": "biufc"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({n for names in CALLS for n in names.split()}))
def test_forms_agree(name):
    f, g = getattr(np, name), getattr(nvp, name)
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        a = values(dtype, shape)
        x = nvm.asarray(a)
        own = a.dtype.kind in ONLY_OURS.get(name, "")
        for kw in cases(name):
            calls = [((), kw)]
            if len(kw) < 3 and not {"keepdims", "min", "order", "ddof", "dtype", "out", "k"} & set(kw):
                calls.append((tuple(kw.values()), {}))
            for more, named in calls:
                try:
                    plain = None if own else result(f, a, *more, **named)
                    check(result(f, x, *more, **named), result(g, x, *more, **named), plain)
                except AssertionError as e:
                    raise AssertionError(f"{name} {dtype} {shape} {more} {named}: {e}") from None


@pytest.mark.parametrize("dtype", DTYPES)
def test_forms_of_several_arrays(dtype):
    a, b, v = values(dtype, (3, 3)), values(dtype, (3, 3), 1), values(dtype, (3,), 2)
    x, y, w = map(nvm.asarray, (a, b, v))
    mask = a.real > 0
    lines = [
        (np.concatenate, nvp.concatenate, lambda p, q, r: (((p, q),), {"axis": 1})),
        (np.concatenate, nvp.concatenate, lambda p, q, r: (([p, q, r[None]],), {})),
        (np.concatenate, nvp.concatenate, lambda p, q, r: (((p, q), None), {})),
        (np.concatenate, nvp.concatenate, lambda p, q, r: (((p, r),), {})),
        (np.concatenate, nvp.concatenate, lambda p, q, r: ((p,), {})),
        (np.stack, nvp.stack, lambda p, q, r: (([p, q], 2), {})),
        (np.stack, nvp.stack, lambda p, q, r: (([p, r],), {})),
        (np.dot, nvp.dot, lambda p, q, r: ((p, q), {})),
        (np.dot, nvp.dot, lambda p, q, r: ((p, r), {})),
        (np.dot, nvp.dot, lambda p, q, r: ((r, r), {})),
        (np.dot, nvp.dot, lambda p, q, r: ((r, 2), {})),
        (np.inner, nvp.inner, lambda p, q, r: ((r, r), {})),
        (np.inner, nvp.inner, lambda p, q, r: ((p, q), {})),
        (np.tensordot, nvp.tensordot, lambda p, q, r: ((p, q, 1), {})),
        (np.tensordot, nvp.tensordot, lambda p, q, r: ((p, q), {"axes": 0})),
        (np.tensordot, nvp.tensordot, lambda p, q, r: ((p, q), {"axes": ([0], [1])})),
        (np.where, nvp.where, lambda p, q, r: ((p != 0, p, r), {})),
        (np.where, nvp.where, lambda p, q, r: ((p != 0, q, 1), {})),
        (np.where, nvp.where, lambda p, q, r: ((p, q, p), {})),
    ]
    for f, g, call in lines:
        (given, kw), (plain, _) = call(x, y, w), call(a, b, v)
        check(result(f, *given, **kw), result(g, *given, **kw), result(f, *plain, **kw))
    for at in (np.array([0, 2, -1]), np.array([], int), np.array([3]), np.array([[0, 1]]), 1, np.array([1.0])):
        for axis in (0, 1, None, 4):
            given = (nvm.asarray(at) if isinstance(at, np.ndarray) else at,)
            check(result(np.take, x, *given, axis), result(nvp.take, x, *given, axis), result(np.take, a, at, axis))
    for kw in ({"axis": 0}, {"keepdims": True}, {"initial": 1}, {}):
        if dtype != "bool":
            theirs, ours = (result(f, x, where=nvm.asarray(mask), **kw) for f in (np.sum, nvp.sum))
            check(theirs, ours, result(np.sum, a, where=mask, **kw))
    at = np.array([[0, 2, 1]])
    assert np.array_equal(np.take_along_axis(x, nvm.asarray(at), axis=0), np.take_along_axis(a, at, axis=0))
    assert mask.shape == (3, 3)


def test_each_form_is_tried():
    tried = {n for names in CALLS for n in names.split()}
    several = {"concatenate", "stack", "dot", "inner", "tensordot", "where", "take", "take_along_axis"}
    assert set(_protocol._FORMS) <= tried | several


def test_mixed_dtypes_and_derived_arrays():
    a, b = np.arange(3, dtype="int32"), np.ones(3, dtype="float32")
    x, y = nvm.asarray(a), nvm.asarray(b)
    for f in (lambda p, q: np.concatenate([p, q]), lambda p, q: np.where(q > 0, p, q), np.dot):
        assert np.asarray(f(x, y)).dtype == np.asarray(f(a, b)).dtype
    assert isinstance(np.concatenate([x, b]), nvm.Array)  # NumPy's among them
    assert isinstance(np.where(a > 1, x, y), nvm.Array)


def test_an_interrupt_in_a_form_is_not_swallowed():
    class Axis:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        np.add.reduce(nvm.ones((2, 2)), axis=Axis())
