"""Calls of libraries that take arrays of the array API, with nvm's arrays: the values are those for NumPy's, and where
the library follows the standard the result is nvm's. Each part runs where its library is installed."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import nvm

X = np.random.default_rng(0).standard_normal((40, 8))
LABELS = (X[:, 0] > 0).astype("int64")


def agree(call, *arrays, kind=nvm.Array):
    """call(arrays...) of nvm's arrays and of NumPy's; kind: the type of the result."""
    got, want = call(*map(nvm.asarray, arrays)), call(*arrays)
    assert isinstance(got, kind), type(got)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-10, atol=1e-12)


SCIPY = {
    "cluster": "vq.whiten(X)",
    "fft": "fft(x); rfft(x); dct(x); ifftn(X)",
    "integrate": "trapezoid(x); cumulative_simpson(x, dx=1.0)",
    "ndimage": "gaussian_filter(X, 1.0); shift(X, 1.0); sobel(X)",
    "signal": "convolve(x, x); fftconvolve(x, x); lfilter(x[:3], x[3:6] + 5, x); detrend(x); hilbert(x)",
    "spatial": "transform.Rotation.from_quat(X[:, :4]).as_matrix()",
    "special": "erf(x); gammaln(abs(x) + 1); logsumexp(x); softmax(X, axis=1); xlogy(abs(x), abs(x)); expit(x); i0(x)",
    "stats": "zscore(x); skew(X, axis=0); kurtosis(x); ttest_1samp(x, 0.0).pvalue; pearsonr(x, x * x).statistic; "
    "entropy(abs(x)); gmean(abs(x)); rankdata(x); quantile(x, 0.5)",
}


def run_apart(call):
    """In a process of its own: SCIPY_ARRAY_API is read when SciPy is imported."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": path}
    code = f"import test_libraries; test_libraries.{call}"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def check_scipy(name):
    module = importlib.import_module(f"scipy.{name}")
    for part in "cluster.vq", "spatial.transform":
        importlib.import_module(f"scipy.{part}")
    for call in SCIPY[name].split("; "):
        agree(eval(f"lambda x, X: module.{call}", {"module": module}), X[:, 0].copy(), X)


@pytest.mark.parametrize("module", SCIPY)
def test_scipy(module):
    pytest.importorskip("scipy", minversion="1.17")
    run_apart(f"check_scipy({module!r})")


def test_array_api_compat():
    compat = pytest.importorskip("array_api_compat")
    x = nvm.asarray(X)
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, x) is nvm
    assert compat.size(x) == X.size and compat.device(x) == x.device and compat.to_device(x, "cpu").shape == X.shape


def test_array_api_extra():
    xpx = pytest.importorskip("array_api_extra")
    agree(lambda x: xpx.cov(x.T), X)
    agree(lambda x: xpx.at(x, slice(0, 3)).set(1.0), X)
    agree(lambda x: xpx.atleast_nd(x, ndim=3), X)
    agree(lambda x: xpx.pad(x, 2), X)
    agree(lambda x: xpx.kron(x, x[:2]), X)
    agree(lambda x: xpx.sinc(x), X)
    agree(lambda x: xpx.one_hot(x, 2), LABELS)


EINOPS = [
    lambda e, x: e.rearrange(x, "(a b) c -> b (a c)", a=4),
    lambda e, x: e.rearrange([x, x], "l a b -> a (l b)"),
    lambda e, x: e.repeat(x, "a b -> a b 3"),
    lambda e, x: e.einsum(x, x, "a b, a c -> b c"),
    lambda e, x: e.pack([x, x], "a *")[0],
    lambda e, x: e.unpack(x, [[3], [5]], "a *")[1],
    *(lambda e, x, how=how: e.reduce(x, "(a 2) b -> a 1 b", how) for how in ("mean", "max", "min", "sum", "prod")),
    lambda e, x: e.reduce(x > 0, "a b -> b", "any"),
]


@pytest.mark.parametrize("call", EINOPS)
def test_einops(call):
    einops = pytest.importorskip("einops")
    import nvm.einops

    agree(lambda x: call(einops, x), X)
    assert isinstance(einops.asnumpy(nvm.asarray(X)), np.ndarray)
    with pytest.raises(NotImplementedError, match="non-floating"):
        einops.reduce(nvm.arange(4), "a -> ", "mean")


def test_opt_einsum():
    opt_einsum = pytest.importorskip("opt_einsum")
    agree(lambda x, y: opt_einsum.contract("ab,ac,bd->cd", x, x, y), X, X[:8])


def test_xarray():
    xarray = pytest.importorskip("xarray")
    named = lambda x: xarray.DataArray(x, dims=("a", "b"))
    agree(lambda x: (named(x) + 1).data, X)
    agree(lambda x: named(x).where(named(x) > 0, 0.0).data, X)
    agree(lambda x: named(x).shift(a=1, fill_value=0.0).data, X)
    agree(lambda x: named(x).pad(a=1, constant_values=0.0).data, X)
    agree(lambda x: named(x).any("a").data, X > 0)
    agree(lambda x: named(x).quantile([0.2, 0.7], "a").data, X)


FILLED = {
    "where": lambda m, x: x.where(x > 0),
    "shift": lambda m, x: x.shift(a=1),
    "pad": lambda m, x: x.pad(a=1),
    "rolling mean": lambda m, x: x.rolling(a=3).mean(),
    "rolling max": lambda m, x: x.rolling(a=3, center=True).max(),
    "construct": lambda m, x: x.rolling(a=3).construct("w"),
    "reindex": lambda m, x: x.assign_coords(b=range(x.shape[1])).reindex(b=[1, 2, 9]),
    "cov": lambda m, x: m.cov(x, x * 2, dim="a"),
    "idxmax": lambda m, x: x.assign_coords(b=range(x.shape[1])).idxmax("b"),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "c16"])
@pytest.mark.parametrize("name", FILLED)
def test_xarray_fills_with_missing_values(name, dtype):
    xarray = pytest.importorskip("xarray", minversion="2026.9")
    importlib.import_module("nvm.xarray")
    if dtype == "c16" and name in ("where", "rolling max", "idxmax"):
        pytest.skip("complex numbers have no order")
    named = lambda x: xarray.DataArray(x, dims=("a", "b"))
    x = (X * 4).astype(dtype)
    got, want = (FILLED[name](xarray, named(a)).data for a in (nvm.asarray(x), x))
    assert isinstance(got, nvm.Array) and np.asarray(got).dtype == want.dtype
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5 if dtype == "f4" else 1e-10, atol=1e-5)


def test_dask():
    array = pytest.importorskip("dask.array")
    importlib.import_module("nvm.dask")
    chunks = lambda x: array.from_array(x, chunks=10, asarray=False)
    agree(lambda x: chunks(x).sum(axis=0).compute(), X, kind=object)
    agree(lambda x: chunks(x).map_blocks(lambda block: block * 2).compute(), X, kind=object)
    agree(lambda x: (chunks(x) + x).compute(), X)
    agree(lambda x: array.percentile(chunks(x), [30, 60]).compute(), X[:, 0], kind=object)
    agree(lambda x: array.tensordot(chunks(x).T, chunks(x), 1).compute(), X, kind=object)


def test_pandas_and_matplotlib_take_arrays():
    pandas = pytest.importorskip("pandas")
    agree(lambda x: pandas.Series(x).sum(), X[:, 0], kind=object)
    agree(lambda x: pandas.DataFrame(x).mean().to_numpy(), X, kind=object)
    holes = np.where(X > 1, np.nan, X)
    agree(pandas.isna, holes, kind=np.ndarray)
    agree(lambda i: pandas.Index(i).to_numpy(), LABELS, kind=np.ndarray)
    agree(lambda x: pandas.cut(x, 3).codes, X[:, 0], kind=np.ndarray)
    agree(lambda i: pandas.Series(range(40), index=i).loc[1].to_numpy(), LABELS, kind=np.ndarray)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    agree(lambda x: pyplot.plot(x)[0].get_ydata(), X[:, 0], kind=object)
    agree(lambda x: pyplot.imshow(x).get_array(), X, kind=object)
    agree(lambda x: pyplot.hist(x)[0], X[:, 0], kind=object)
    pyplot.close("all")


PANDAS = {
    "isin": lambda m, i, x: m.Series(np.asarray(i)).isin(i[:3]),
    "isin of an index": lambda m, i, x: m.Series(m.Index([0, 1, 5]).isin(i)),
    "isin of a frame": lambda m, i, x: m.DataFrame({"a": [0, 1, 7]}).isin(i),
    "unique": lambda m, i, x: m.Series(m.unique(i)),
    "factorize": lambda m, i, x: m.Series(m.factorize(i)[0]),
    "Categorical": lambda m, i, x: m.Series(m.Categorical(i).codes),
    "isna": lambda m, i, x: m.DataFrame(m.isna(x)),
    "mask": lambda m, i, x: m.Series(range(40))[i > 0],
    "mask of a frame": lambda m, i, x: m.DataFrame(np.asarray(x))[i > 0],
    "mask of loc": lambda m, i, x: m.DataFrame(np.asarray(x)).loc[i > 0, 2],
    "frame times array": lambda m, i, x: m.DataFrame(np.asarray(x)) * x,
    "array minus frame": lambda m, i, x: x - m.DataFrame(np.asarray(x)) * 2,
    "frame below array": lambda m, i, x: m.DataFrame(np.asarray(x)) < x * 2,
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas_takes_arrays_as_numpys(name):
    pandas = pytest.importorskip("pandas", minversion="3.1")
    importlib.import_module("nvm.pandas")
    agree(lambda i, x: PANDAS[name](pandas, i, x).to_numpy(), LABELS, X, kind=np.ndarray)


def test_xarray_fits_weighs_and_crosses():
    xarray = pytest.importorskip("xarray", minversion="2026.9")
    importlib.import_module("nvm.xarray")
    named = lambda x: xarray.DataArray(x, dims=("a", "b"))
    agree(lambda x: named(x).polyfit("b", 1).polyfit_coefficients.data, X, kind=object)
    agree(lambda x: named(x).weighted(xarray.DataArray(np.arange(40.0), dims="a")).mean("a").data, X)
    agree(lambda x: named(x).weighted(named(abs(x))).sum().data, X)
    agree(lambda x: xarray.cross(named(x), named(x + 1), dim="b").data, X[:, :3])
    agree(lambda m: xarray.dot(named(m), named(m), dim="a").data, X > 0)


def check_sosfilt():
    """Compiled code asks for memory to write to, though it does not; a copy has it."""
    from scipy import signal

    sos = signal.butter(4, 0.2, output="sos")
    x = nvm.asarray(X[:, 0].copy())
    with pytest.raises(ValueError, match="read-only"):
        signal.sosfilt(nvm.asarray(sos), x)
    for f in signal.sosfilt, signal.sosfiltfilt:
        np.testing.assert_array_equal(f(sos, np.array(x)), f(sos, X[:, 0].copy()))


def test_sosfilt():
    pytest.importorskip("scipy", minversion="1.17")
    run_apart("check_sosfilt()")


def check_scikit_learn():
    import sklearn
    from sklearn import (
        covariance,
        decomposition,
        discriminant_analysis,
        kernel_approximation,
        linear_model,
        metrics,
        mixture,
        model_selection,
        preprocessing,
    )

    sklearn.set_config(array_api_dispatch=True)
    agree(lambda x: abs(decomposition.PCA(2, svd_solver="full").fit(x).components_), X)
    agree(lambda x, y: discriminant_analysis.LinearDiscriminantAnalysis().fit(x, y).predict(x), X, LABELS)
    agree(lambda x, y: linear_model.Ridge(solver="svd").fit(x, y).coef_, X, X[:, 0])
    agree(lambda x: kernel_approximation.Nystroem(n_components=5, random_state=0).fit_transform(x), X)
    agree(lambda x: mixture.GaussianMixture(2, init_params="random", random_state=0).fit(x).score(x), X, kind=float)
    for scaler in "MinMaxScaler", "StandardScaler", "MaxAbsScaler", "Normalizer", "PolynomialFeatures":
        agree(lambda x: getattr(preprocessing, scaler)().fit_transform(x), X)
    agree(lambda y: preprocessing.LabelEncoder().fit_transform(y), LABELS)
    agree(metrics.pairwise.rbf_kernel, X)
    agree(metrics.accuracy_score, LABELS, LABELS[::-1], kind=float)
    agree(metrics.r2_score, X[:, 0], X[:, 1], kind=float)
    agree(lambda y, s: metrics.roc_curve(y, s)[1], LABELS, X[:, 1])
    agree(metrics.matthews_corrcoef, LABELS, LABELS[::-1], kind=float)
    agree(lambda x: covariance.LedoitWolf().fit(x).covariance_, X, kind=object)
    grid = model_selection.GridSearchCV(linear_model.Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=3)
    agree(lambda x, y: grid.fit(x, y).best_score_, X, X[:, 0], kind=object)


def test_scikit_learn():
    pytest.importorskip("sklearn", minversion="1.9")
    run_apart("check_scikit_learn()")
