"""nvm.numpy's reductions and running sums, against NumPy's."""

import numpy as np
import pytest

import nvm
import nvm.numpy as nvp
from numpy_cases import check_all

TABLES = {
    "folds": """
        np.{fold}({any}, {axes})
        np.{fold}({cast}, {axis}, {type})
        np.{fold}({few}, {axes}, keepdims={keep})
        np.{fold}(m, 1, out=np.zeros(3))
        np.{fold}(m, 1, out=np.zeros(4))
        np.{fold}(m, 1, out=np.zeros((1, 3)))
        np.{fold}(m, 1, out=[0, 0, 0])
        np.{fold}(np.array([2**24, 1, 1, -2**24], 'float32'), 0, out=np.zeros((), {wide}))
        np.{fold}(np.array([100, 100, 1, 1], 'int8'), 0, out=np.zeros((), {whole}))
        np.{fold}(b, 0, out=np.zeros(4, bool))
        np.trace(np.diag(np.array([2**24, 1, 1, -2**24], 'float32')), out=np.zeros((), 'float64'))
        np.{fold}({few}, initial=2)
        np.{fold}(m, 0, where=b)
        np.{fold}(m, 0, where=[True, False, True, False], initial=3)
        np.{fold}([1, 2, 3])
        np.{fold}('a')
    """,
    "extremes": """
        np.{extreme}({any}, {axes})
        np.{extreme}({few}, {axes}, keepdims={keep})
        np.{extreme}({few}, {axis}, initial=0.5)
        np.{extreme}(m, 0, initial=-9, where=b)
        np.{extreme}(m, 0, where=b)
        np.{extreme}(m, 1, np.zeros(3))
        np.ptp({any}, {axis})
        np.ptp(m, 1, keepdims=True)
        np.{place}({any}, {axis})
        np.{place}({few}, {axis}, keepdims={keep})
    """,
    "tests": """
        np.{test}({any}, {axes})
        np.{test}({few}, {axes}, keepdims={keep})
        np.{test}(i, 0, where=b)
        np.count_nonzero({any}, {axes})
        np.count_nonzero({few}, {axes}, keepdims={keep})
    """,
    "means": """
        np.{mean}({any}, {axes})
        np.{mean}({few}, {axes}, keepdims={keep})
        np.{mean}({cast}, {axis}, {float})
        np.{mean}(m, 0, where=b)
        np.{mean}(i, 1, where=[True, True, False, True], keepdims=True)
        np.{spread}({few}, {axis}, ddof=1)
        np.{spread}({few}, {axis}, correction=1)
        np.{spread}(m, ddof=1, correction=1)
        np.{spread}(m, 0, mean=m.mean(0))
        np.{spread}(m, ddof=12)
        np.{spread}(m, 1, out=np.zeros(3))
    """,
    "running": """
        np.{running}({any}, {axis})
        np.{running}({cast}, {axis}, {type})
        np.{running}(m, 1, out=np.zeros((3, 4)))
        np.{running}(np.array([2**24, 1, 1, -2**24], 'float32'), 0, out=np.zeros(4, {wide}))
        np.{running}(np.array([100, 100, 1, 1], 'int8'), 0, out=np.zeros(4, {whole}))
        np.{standard}({any}, axis={axis})
        np.{standard}({few}, axis={axis}, include_initial=True)
    """,
}
SETS = {
    "cast": "(v*v) (m*m) (i+1) b z e (c*c.conj())",
    "wide": "'float64' 'complex128'",
    "whole": "'int8' 'int16' 'int64' 'float32' 'float64'",
    "fold": "sum prod",
    "extreme": "max min amax amin",
    "place": "argmax argmin",
    "test": "all any",
    "mean": "mean var std",
    "float": "'float16' 'float32' 'float64'",
    "spread": "var std",
    "running": "cumsum cumprod",
    "standard": "cumulative_sum cumulative_prod",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)


@pytest.mark.parametrize(
    "name", "mean var std sum prod max min any all cumsum cumprod nansum nanmean nanvar nanmax".split()
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "complex64"])
@pytest.mark.parametrize("out", ["float64", "float32", "int64"])
def test_out_of_another_dtype(name, dtype, out):
    """It says in which dtype a sum is made, and takes any result."""
    x = (np.random.default_rng(1).standard_normal(5000) + 1.5).astype(dtype)
    x = x[:20] if name in ("prod", "cumprod") else x
    want = np.zeros(x.shape if name.startswith("cum") else (), out)
    got = nvm.zeros(want.shape, dtype=out)
    try:
        with np.errstate(all="ignore"):
            getattr(np, name)(x, out=want)
    except (TypeError, ValueError):
        return
    assert getattr(nvp, name)(nvm.asarray(x), out=got) is got
    exact = {"float16": 2e-3, "float32": 1e-6, "complex64": 1e-6}.get(dtype, 1e-15)
    if (dtype, out) == ("float32", "float64") and name in ("sum", "mean", "cumsum"):
        exact = 1e-13
    np.testing.assert_allclose(np.asarray(got), want, rtol=4 * exact, atol=1 if out == "int64" else 1e-6)
