"""nvm.pad against np.pad: forms of widths, modes, options, dtypes, eager and jitted."""

import numpy as np
import pytest

import nvm

MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"]


def agree(got, want, exact):
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    if exact:
        np.testing.assert_array_equal(np.asarray(got), want)
    else:
        np.testing.assert_allclose(np.asarray(got), want, rtol=4e-3 if want.dtype == np.float16 else 1e-6, atol=1e-6)


def agree_jitted(x, width, mode, options, want, exact):
    f = nvm.jit(lambda x: nvm.pad(x, width, mode, **options))
    if mode == "median" and nvm.get_default_device() != "cpu":
        try:
            agree(f(x), want, exact)  # no margin, or margins of one element: nothing is sorted
        except RuntimeError as e:
            assert "not possible inside a function that runs on a GPU" in str(e)
    else:
        agree(f(x), want, exact)


def forms(rng, ndim, most=4):
    """Ways of saying widths."""
    n = lambda: int(rng.integers(0, most))
    pairs = tuple((n(), n()) for _ in range(ndim))
    yield from (
        n(),
        (n(),),
        [n()],
        (n(), n()),
        np.array([n(), n()]),
        ((n(), n()),),
        [[n()]],
        pairs,
        [list(p) for p in pairs],
        np.array(pairs),
        tuple((n(),) for _ in range(ndim)),
        np.int64(n()),
    )
    axes = rng.permutation(ndim)[: rng.integers(0, ndim + 1)]
    yield {int(a) - (ndim if rng.integers(2) else 0): (n(), n()) if rng.integers(2) else n() for a in axes}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(3,), (1,), (2, 3), (4, 1), (2, 1, 3)])
def test_forms_of_widths(mode, shape, rng):
    x = rng.integers(-20, 20, shape).astype(np.float64)
    for width in forms(rng, len(shape)):
        try:
            want = np.pad(x, width, mode)
        except ValueError:  # such rows do not broadcast to so many axes
            with pytest.raises(ValueError):
                nvm.pad(x, width, mode)
            continue
        agree(nvm.pad(x, width, mode), want, mode not in ("linear_ramp", "mean"))
        agree_jitted(x, width, mode, {}, want, mode not in ("linear_ramp", "mean"))


OPTIONS = [
    ("constant", {"constant_values": v}) for v in (3, (1, 2), ((1, 2), (3, 4)), ((5,), (6,)), 2.5, np.float32(1))
]
OPTIONS += [("linear_ramp", {"end_values": v}) for v in (7, (0, 100), ((13, 5), (9, 11)))]
OPTIONS += [
    (m, {"stat_length": v})
    for m in ("maximum", "minimum", "mean", "median")
    for v in (1, 2, (1, 2), ((2, 1), (3, 2)), 100, None)
]
OPTIONS += [(m, {"reflect_type": v}) for m in ("reflect", "symmetric") for v in ("even", "odd")]


@pytest.mark.parametrize("mode, options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["int8", "uint8", "int64", "float16", "float32", "float64", "complex128"])
def test_options(mode, options, name, rng):
    if name == "complex128" and mode in ("maximum", "minimum", "median"):
        return  # they have no order
    x = rng.integers(0, 100, (4, 5)).astype(name)
    exact = np.dtype(name).kind in "iu" or mode == "constant"
    for width in (1, (2, 3), ((0, 5), (7, 1))):
        if mode == "median" and np.dtype(name).kind in "iu" or name == "float16":
            exact = mode not in ("mean", "median", "linear_ramp")
        agree(nvm.pad(x, width, mode, **options), np.pad(x, width, mode, **options), exact)
        agree_jitted(x, width, mode, options, np.pad(x, width, mode, **options), exact)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("odd", [False, True])
def test_margins_longer_than_the_array(mode, n, odd, rng):
    x = rng.integers(0, 50, (2, n))
    options = {"reflect_type": "odd"} if odd and mode != "wrap" else {}
    for before, after in ((0, 0), (1, 0), (n - 1, n), (n, n + 1), (2 * n + 1, 3 * n), (30, 41), (0, 100)):
        width = ((0, 0), (before, after))
        agree(nvm.pad(x, width, mode, **options), np.pad(x, width, mode, **options), True)


@pytest.mark.parametrize("mode", MODES + ["empty"])
def test_arrays_without_elements_and_dimensions(mode):
    assert nvm.pad(nvm.zeros(()), 3, mode).shape == ()
    assert nvm.pad(nvm.zeros((0, 2)), 0, mode).shape == (0, 2)
    agree(nvm.pad(nvm.zeros((0, 3)), ((0, 0), (2, 1)), mode), np.zeros((0, 6)), True)
    if mode in ("constant", "empty"):
        options = {"constant_values": (1, 2)} if mode == "constant" else {}
        assert nvm.pad(nvm.zeros((0, 2)), 1, mode, **options).shape == (2, 4)
    else:
        with pytest.raises(ValueError, match="axis 0 has no elements"):
            nvm.pad(nvm.zeros((0, 2)), 1, mode)


def test_special_values():
    x = np.array([[np.nan, 1, 2], [np.inf, -np.inf, -0.0]])
    for mode in MODES:
        if mode != "linear_ramp":
            agree(nvm.pad(x, 2, mode), np.pad(x, 2, mode), False)
    for value in (nvm.asarray(4), np.array(4), 1j):
        z = x.astype(complex)
        agree(nvm.pad(z, 1, constant_values=value), np.pad(z, 1, constant_values=complex(value)), True)


@pytest.mark.parametrize(
    "width, options, error, match",
    [
        (-1, {}, ValueError, "cannot be negative"),
        ((1, -2), {}, ValueError, "cannot be negative"),
        (1.5, {}, TypeError, "integers, not 1.5"),
        (True, {}, TypeError, "integers"),
        ("1", {}, TypeError, "integers"),
        ((1, 2, 3), {}, ValueError, "pad_width is a number"),
        (((1, 2), (3, 4), (5, 6)), {}, ValueError, "each of 2 axes"),
        (((1, 2), 3), {}, ValueError, "pad_width"),
        ((), {}, ValueError, "pad_width"),
        ({5: 1}, {}, IndexError, "axis 5"),
        (1, {"mode": "mirror"}, ValueError, "unknown mode 'mirror'; modes are"),
        (1, {"mode": max}, ValueError, "unknown mode"),
        (1, {"mode": "edge", "constant_values": 1}, ValueError, "mode 'edge' has no option constant_values"),
        (1, {"end_values": 1}, ValueError, "has no option end_values; it has constant_values"),
        (1, {"mode": "reflect", "reflect_type": "both"}, ValueError, "reflect_type is 'even' or 'odd'"),
        (1, {"mode": "mean", "stat_length": 0}, ValueError, "stat_length of 0"),
        (1, {"mode": "mean", "stat_length": -1}, ValueError, "negative"),
        (1, {"constant_values": (1, 2, 3)}, ValueError, "constant_values"),
    ],
    ids=str,
)
def test_faults(width, options, error, match):
    with pytest.raises(error, match=match):
        nvm.pad(np.ones((2, 3)), width, **options)
    with pytest.raises(OverflowError, match="300"):
        nvm.pad(np.ones((2, 3), np.uint8), 1, constant_values=(0, 300))
