"""Reductions with where= and initial=, against NumPy's."""

import warnings

import numpy as np
import pytest

import nvm

RNG = np.random.default_rng(4)
SHAPES = [(7,), (3, 5), (2, 3, 4), (1,), (0,), (3, 0)]
FOLDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
TESTS = {"any": np.any, "all": np.all}
MEANS = {"mean": np.mean, "var": np.var, "std": np.std}


def axes(shape):
    return [None, *range(len(shape)), tuple(range(len(shape)))]


def same(got, want, dtype):
    got = np.asarray(got)
    assert got.shape == np.shape(want)
    tolerance = {"float16": 2e-3, "float32": 1e-5, "complex64": 1e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def data(shape, dtype):
    x = RNG.integers(-4, 5, shape) * (0.5 if np.dtype(dtype).kind in "fc" else 1)
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind in "bu" else x.astype(dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", [*FOLDS, *TESTS, *MEANS])
def test_masks_and_first_values(name, dtype):
    if np.dtype(dtype).kind == "c" and name in ("max", "min", "var", "std"):
        pytest.skip("complex numbers have no order, and no variance here")
    f, numpy = getattr(nvm, name), {**FOLDS, **TESTS, **MEANS}[name]
    for shape in SHAPES:
        # a column stands for all that broadcasts
        x, mask, column = data(shape, dtype), RNG.random(shape) < 0.6, RNG.random(shape[:-1] + (1,)) < 0.6
        for axis in axes(shape):
            keep = bool(RNG.random() < 0.5)
            for where in (mask, column, True, None):
                for initial in (1, None) if name in FOLDS else (None,):
                    how = {} if where is None else {"where": where}
                    if initial is not None:
                        how["initial"] = initial
                    elif name in ("max", "min"):
                        continue
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore", RuntimeWarning)
                        want = numpy(x, axis=axis, keepdims=keep, **how)
                    same(f(x, axis=axis, keepdims=keep, **how), want, dtype)


def test_in_methods_under_jit_and_from_numpy():
    x, mask = RNG.standard_normal((4, 6)), RNG.random((4, 6)) < 0.5
    mask[0] = True  # no mean of nothing
    a = nvm.asarray(x)
    assert float(a.sum(where=mask)) == pytest.approx(x.sum(where=mask))
    assert np.allclose(np.asarray(a.max(axis=1, initial=0.5, where=mask)), x.max(axis=1, initial=0.5, where=mask))
    f = nvm.jit(lambda x, m: (nvm.mean(x, axis=0, where=m), nvm.std(x, where=m, ddof=1), nvm.sum(x, initial=3.0)))
    got = f(x, mask)
    np.testing.assert_allclose(np.asarray(got[0]), x.mean(axis=0, where=mask))
    assert float(got[1]) == pytest.approx(x.std(where=mask, ddof=1))
    assert float(got[2]) == pytest.approx(x.sum(initial=3.0))
    assert np.sum(a, where=mask) == pytest.approx(x.sum(where=mask))


def test_nan_that_is_left_out_does_not_count():
    x = np.array([1.0, np.nan, 3.0, np.inf])
    mask = np.isfinite(x)
    for name in ("sum", "prod", "mean", "var", "std"):
        assert float(getattr(nvm, name)(x, where=mask)) == pytest.approx(getattr(np, name)(x, where=mask))


def test_a_masked_sum_is_one_kernel():
    x = nvm.zeros((300, 400)) + nvm.asarray(RNG.standard_normal((300, 400)))
    text = nvm.explain(nvm.jit(lambda x: nvm.sum(x, axis=1, where=x > 0, initial=2.0)), x)
    assert text.startswith("1 kernel,")


def test_what_is_wrong():
    x = nvm.ones((2, 3))
    with pytest.raises(TypeError, match=r"\[sum\] where must be a mask of bool, not int64"):
        nvm.sum(x, where=np.array([1, 0, 1]))
    with pytest.raises(ValueError, match=r"\[mean\] where of shape \(2,\) does not broadcast to the array's \(2, 3\)"):
        nvm.mean(x, where=np.array([True, False]))
    with pytest.raises(ValueError, match=r"\[max\].*\(2, 3\).*initial"):
        nvm.max(x, where=np.array([True, False, True]))
    with pytest.raises(TypeError, match="no argument initial"):
        nvm.any(x, initial=True)
