"""nvm.linalg on a GPU: what tests/python/test_factor.py asks of the CPU, with operands and results in the GPU's memory;
late failures by name and position; guesses; what surrounds a factorization."""

import numpy as np
import pytest

import nvm
import test_factor
from test_factor import DTYPES, adjoint, eps, kinds, norm, random, small

la = nvm.linalg
pytestmark = pytest.mark.emulated


def there(x, device):
    if isinstance(x, np.ndarray):
        return nvm.asarray(x, device=device)
    return tuple(there(v, device) for v in x) if isinstance(x, tuple) else x


def back(x, device):
    if isinstance(x, nvm.Array):
        assert str(x.device) == device
        return np.asarray(x.to_device("cpu"))
    return tuple(back(v, device) for v in x) if isinstance(x, tuple) else x


class OnDevice:
    """nvm.linalg, whose functions take NumPy's arrays to the GPU and bring results back."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        f = getattr(la, name)
        if isinstance(f, type):
            return f

        def call(*args, **more):
            return back(f(*there(args, self.device), **more), self.device)

        call.__name__ = name
        return call


@pytest.fixture
def on(device, monkeypatch):
    monkeypatch.setattr(test_factor, "la", OnDevice(device))
    return test_factor.la


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 17, 33, 70])
def test_residuals(n, t, on):
    test_factor.test_residuals(n, t)


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", [1, 3, 17, 33, 70])
@pytest.mark.parametrize("k", [1, 40])
def test_solve_residuals(n, k, t, on):
    test_factor.test_solve_residuals(n, k, t)


@pytest.mark.parametrize("t", DTYPES)
def test_triangular(t, on):
    test_factor.test_triangular(t)


@pytest.mark.emulated(one_in=5)
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (40, 9), (9, 40), (1, 4), (4, 1)])
def test_rectangles(m, n, t, on):
    test_factor.test_rectangles(m, n, t)


@pytest.mark.parametrize("name", ["test_values_against_numpy", "test_batches_and_strides", "test_empty"])
def test_as_on_the_cpu(name, on):
    getattr(test_factor, name)()


@pytest.mark.emulated(one_in=5)
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("m, n, count", [(8, 8, 20), (8, 8, 1), (5, 12, 7), (12, 5, 7), (40, 40, 3), (300, 300, 2)])
def test_batches(m, n, count, t, on):
    """One call for all matrices of a batch, by Jacobi's method or not, and one for each."""
    a = random(np.random.default_rng(m), (count, m, n), t)
    for full in (False, True):
        u, s, vh = on.svd(a, full_matrices=full)
        k = s.shape[-1]
        small((u[..., :k] * s[:, None]) @ vh[..., :k, :] - a, norm(a), max(m, n), eps(a))
        small(adjoint(u) @ u - np.eye(u.shape[-1]), 1, max(m, n), eps(a))
        small(vh @ adjoint(vh) - np.eye(vh.shape[-2]), 1, max(m, n), eps(a))
    np.testing.assert_allclose(on.svdvals(a), s, atol=float(10 * max(m, n) * eps(a) * norm(a).max()))
    if m == n:
        h = a + adjoint(a)
        for uplo in "LU":
            w, v = on.eigh(np.tril(h) if uplo == "L" else np.triu(h), uplo)
            small(h @ v - v * w[:, None], norm(h), n, eps(a))
            np.testing.assert_allclose(on.eigvalsh(h, uplo), w, atol=float(10 * n * eps(a) * norm(h).max()))
        spd = (a @ adjoint(a) + n * np.eye(n)).astype(t)
        c = on.cholesky(spd)
        small(c @ adjoint(c) - spd, norm(spd), n, eps(a))
        x = on.solve(a, a[..., :3])
        small(a @ x - a[..., :3], norm(a) * norm(x), n, eps(a))
        x = on.cho_solve(on.cho_factor(spd), a)
        small(spd @ x - a, norm(spd) * norm(x), n, eps(a))


@pytest.mark.parametrize("t", DTYPES)
def test_definite_by_its_expression(t, device):
    """A guess that holds takes Cholesky, one that does not LU; determinant and solution read the same factors."""
    rng = np.random.default_rng(1)
    for batch in ((), (2,)):
        a, b = random(rng, (*batch, 70, 200), t), random(rng, (*batch, 70, 5), t)
        x, y = nvm.asarray(a, device=device), nvm.asarray(b, device=device)
        for definite in (True, False):
            g = x @ nvm.conj(x.mT)
            made = g if definite else g - g - g
            want = a @ adjoint(a) * (1 if definite else -1)
            solution = la.solve(made, y)
            assert "Hermitian, as its expression says" in nvm.explain(solution)
            assert "runs by cusolver" in nvm.explain(solution)
            sign, log = la.slogdet(made)
            got = back(solution, device)
            small(want @ got - b, norm(want) * norm(got), 70, eps(a))
            exact = np.linalg.slogdet(want.astype("complex128" if t.startswith("c") else "float64"))
            np.testing.assert_allclose(back(sign, device), exact[0], atol=1e-3)
            np.testing.assert_allclose(back(log, device), exact[1], rtol=1e-3 if eps(a) > 1e-10 else 1e-10)
            inverse = back(la.inv(made), device)
            small(want @ inverse - np.eye(70), norm(want) * norm(inverse), 70, eps(a))


def test_failures_name_the_call_and_the_matrix(device):
    """At the read, also of a value that was made of one that failed; other values are fine."""

    def put(x):
        return nvm.asarray(x, device=device)

    good = np.eye(4) * 2 + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    for n in (4, 40):
        x = la.solve(put(np.ones((n, n))), put(np.ones(n)))
        with pytest.raises(la.LinAlgError, match=r"\[linalg.solve\] the matrix is singular"):
            np.asarray((x + 1).to_device("cpu"))
        with pytest.raises(np.linalg.LinAlgError, match=r"\[linalg.inv\] the matrix is singular"):
            np.asarray(la.inv(put(np.zeros((n, n)))).to_device("cpu"))
        batch = np.stack([np.eye(n), np.eye(n) * 2, np.zeros((n, n)), np.zeros((n, n))]).reshape(2, 2, n, n)
        with pytest.raises(la.LinAlgError, match=r"\[linalg.solve\] the matrix at index \(1, 0\) is singular"):
            np.asarray(la.solve(put(batch), put(np.ones((n, 1)))).to_device("cpu"))
        assert back(la.det(put(batch)), device)[1, 0] == 0
    cases = (
        (lambda: la.cholesky(put(np.stack([good, -good]))), r"cholesky\] the matrix at index \(1,\) is not positive"),
        (lambda: la.cholesky(put(-np.eye(300))), r"cholesky\] the matrix is not positive definite"),
        (lambda: la.solve_triangular(put(np.zeros((3, 3))), put(np.ones(3))), r"triangular\] the matrix is singular"),
        (
            lambda: la.lu_solve(la.lu_factor(put(np.zeros((3, 3)))), put(np.ones(3))),
            r"lu_solve\] the matrix is singular",
        ),
    )
    for call, text in cases:
        value = call()
        with pytest.raises(la.LinAlgError, match=text):
            np.asarray(value.to_device("cpu"))
        with pytest.raises(la.LinAlgError, match=text):
            float(value.sum())
    assert np.isfinite(back(la.inv(put(good)), device)).all()


@pytest.mark.parametrize("n", [5, 50])
def test_fuses_with_what_surrounds_it(n, device):
    """Inside of a function all values stay on the GPU: the arguments are copied there, the result is copied back."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((n, n)), rng.standard_normal((n, 3))
    x, y = nvm.asarray(a, device=device), nvm.asarray(b, device=device)
    f = nvm.jit(lambda a, b: nvm.exp(la.solve(a * 2 + nvm.eye(n), b - 1)).sum(axis=0))
    want = np.exp(np.linalg.solve(a * 2 + np.eye(n), b - 1)).sum(axis=0)
    for _ in range(5):
        np.testing.assert_allclose(back(f(x, y), device), want, rtol=1e-6)
    assert "routine: linalg.solve" in f.explain(x, y)
    for _ in range(3):
        u, s, vh, w, v, d = back(nvm.jit(lambda a: (*la.svd(a), *la.eigh(a + a.T), la.det(a)))(x), device)
        small((u * s) @ vh - a, norm(a), n, eps(a))
        small((a + a.T) @ v - v * w, norm(a + a.T), n, eps(a))
        np.testing.assert_allclose(d, np.linalg.det(a), rtol=1e-9)


def test_what_the_library_lacks_runs_on_the_cpu(device):
    a = random(np.random.default_rng(3), (2, 6, 6), "float64")
    x = nvm.asarray(a, device=device)
    w, v = back(la.eig(x), device)
    small(a @ v - v * w[:, None], norm(a), 6, eps(a))
    with pytest.raises(Exception, match=r"\[linalg.eigvals\] is done on the CPU"):
        nvm.jit(la.eigvals)(x).to_device("cpu")
    nvm.set("SOLVERS", "openblas,cublaslt")
    try:
        small(back(la.inv(x), device) @ a - np.eye(6), norm(a) * norm(np.linalg.inv(a)), 6, eps(a))
    finally:
        nvm.set("SOLVERS", "all")


def test_strides_of_triangular_matrices(device):
    """The library reads rows that lie apart where they are; others are copied first."""
    a = np.random.default_rng(4).standard_normal((30, 30)) + 30 * np.eye(30)
    b = np.random.default_rng(5).standard_normal((20, 4))
    x = nvm.asarray(a, device=device)
    for take in (lambda v: v[:20, :20], lambda v: v[5:25, 5:25].T, lambda v: v[:20, :20][::-1, ::-1]):
        want = np.linalg.solve(np.tril(take(a)), b)
        got = la.solve_triangular(take(x), nvm.asarray(b, device=device), lower=True)
        np.testing.assert_allclose(back(got, device), want, rtol=1e-9)


def test_kinds_of_batches(device):
    """Every kind of matrix in one batch: none disturbs the others."""
    for n in (9, 50):
        a = np.stack([m for _, m in kinds(np.random.default_rng(n), n, "float64")])
        u, s, vh = back(la.svd(nvm.asarray(a, device=device)), device)
        small((u * s[:, None]) @ vh - a, norm(a), n, eps(a))
        q, r = back(la.qr(nvm.asarray(a, device=device)), device)
        small(q @ r - a, norm(a), n, eps(a))


def of_kind(rng, shape, t):
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if t in "FD" else a).astype(t)


SHAPES = [(1, 1, "f"), (2, 3, "D"), (3, 2, "F"), (7, 7, "d"), (16, 5, "D"), (5, 16, "F"), (17, 31, "f")]


@pytest.mark.parametrize("m, n, t", SHAPES)  # each is another kernel
def test_singular_values_of_small_matrices(m, n, t, device):
    """By the project's own kernel: of any shape and scale, of rows and columns that are dependent, of zeros."""
    rng = np.random.default_rng(m * 40 + n)
    a = of_kind(rng, (6, m, n), t)
    a[1] = 0
    a[2] = a[2, :1]
    a[3, :, -1] = a[3, :, 0]
    huge = np.finfo(t).max ** 0.9
    a[4] *= huge
    a[5] /= huge
    x = nvm.asarray(a, device=device)
    values = la.svdvals(x)
    assert "runs by its own kernel" in nvm.explain(values)
    exact = np.linalg.svd(a.astype("complex128" if t in "FD" else "float64"), compute_uv=False)
    got = back(values, device)
    assert (np.abs(got - exact).max(-1) <= 10 * max(m, n) * eps(a) * exact[:, 0]).all()
    assert (np.diff(got) <= 0).all()
    turned = back(la.svdvals(x.mT[::-2, :, ::-1]), device)
    assert (np.abs(turned - exact[::-2]).max(-1) <= 10 * max(m, n) * eps(a) * exact[::-2, 0]).all()


def test_small_matrices_that_are_not_finite(device):
    """As on the CPU: NaN spoils its own matrix, and has no singular values."""
    a = np.stack([np.eye(5) * 2, np.eye(5), np.eye(5) * 3])
    a[1, 2, 3] = np.nan
    x = nvm.asarray(a, device=device)
    with pytest.raises(la.LinAlgError, match=r"svdvals\] the matrix at index \(1,\) has no result"):
        np.asarray(la.svdvals(x).to_device("cpu"))
    inverse = back(la.inv(x), device)
    assert np.isnan(inverse[1]).any() and (inverse[[0, 2]] == np.stack([np.eye(5) / 2, np.eye(5) / 3])).all()
    assert np.isfinite(back(la.cholesky(x), device)[[0, 2]]).all()


@pytest.mark.parametrize("n, t", [(2, "F"), (3, "f"), (6, "D"), (16, "d"), (32, "f")])
def test_small_solutions_of_any_layout(n, t, device):
    """Batches that are broadcast, transposed or reversed; more right-hand sides than a lane keeps."""
    rng = np.random.default_rng(n)
    a, b = of_kind(rng, (3, 1, n, n), t), of_kind(rng, (1, 4, 2 * n + 3, n), t)
    x, y = nvm.asarray(a, device=device), nvm.asarray(b, device=device)
    got = back(la.solve(x[::-1].mT, y[:, ::2].mT), device)
    left, right = a[::-1].swapaxes(-1, -2), b[:, ::2].swapaxes(-1, -2)
    assert got.shape == (3, 2, n, 2 * n + 3)
    small(left @ got - right, norm(left) * norm(got), n, eps(a))
    definite = a @ adjoint(a) + n * np.eye(n, dtype=t)
    for upper in (False, True):
        # the other triangle is not read
        given = np.triu(definite) if upper else np.tril(definite)
        c = back(la.cholesky(nvm.asarray(given, device=device), upper=upper), device)
        small((adjoint(c) @ c if upper else c @ adjoint(c)) - definite, norm(definite), n, eps(a))
        assert (c == (np.triu(c) if upper else np.tril(c))).all()


@pytest.mark.parametrize("m, n, t", SHAPES)
def test_orthogonal_factors_of_small_matrices(m, n, t, device):
    """Reduced, complete, and R alone: of any shape and scale, of dependent columns, of zeros."""
    rng = np.random.default_rng(m * 40 + n)
    a = of_kind(rng, (6, m, n), t)
    a[1] = 0
    a[2] = a[2, :1]
    a[3, :, -1] = a[3, :, 0]
    huge = np.finfo(t).max ** 0.9
    a[4] *= huge
    a[5] /= huge
    x = nvm.asarray(a, device=device)
    for mode in ("reduced", "complete"):
        made = la.qr(x, mode=mode)
        assert "runs by its own kernel" in nvm.explain(made[0])
        q, r = back(tuple(made), device)
        want = np.linalg.qr(a, mode=mode)
        assert q.shape == want[0].shape and r.shape == want[1].shape and (r == np.triu(r)).all()
        small(adjoint(q) @ q - np.eye(q.shape[-1]), 1, max(m, n), eps(a))
        scale = np.abs(a).max((-2, -1), keepdims=True)
        scale[scale == 0] = 1
        small(q @ (r / scale) - a / scale, norm(a / scale), max(m, n), eps(a))
        k = min(m, n)  # LAPACK's signs
        np.testing.assert_allclose(np.diagonal(r[0])[: k - 1], np.diagonal(want[1][0])[: k - 1], rtol=1e3 * eps(a))
    turned = back(la.qr(x.mT[::-2, :, ::-1], mode="r"), device)
    given = a.swapaxes(1, 2)[::-2, :, ::-1]
    scale = np.abs(given).max((-2, -1), keepdims=True)
    scale[scale == 0] = 1
    r, given = turned / scale, given / scale
    small(adjoint(r) @ r - adjoint(given) @ given, norm(given) ** 2, max(m, n), eps(a))


@pytest.mark.parametrize("n, t", [(1, "D"), (2, "f"), (5, "F"), (7, "d"), (16, "D"), (17, "f"), (32, "f")])
def test_eigenvalues_of_small_matrices(n, t, device):
    """Of either triangle, of any scale: equal and opposite eigenvalues, low rank, a diagonal matrix, zeros."""
    rng = np.random.default_rng(n)
    g = of_kind(rng, (8, n, n), t)
    a = g + adjoint(g)
    q = np.linalg.qr(g[1])[0]
    a[1] = (q * np.resize([2, -2, 2], n)) @ adjoint(q)
    a[1] = (a[1] + adjoint(a[1])) / 2
    a[2] = g[2][:, :1] @ adjoint(g[2][:, :1])
    a[3] = np.diag(np.arange(n))
    a[4] = 0
    a[5] = np.ones((n, n))
    huge = np.finfo(t).max ** 0.9
    a[6] *= huge
    a[7] /= huge
    exact = np.linalg.eigvalsh(a.astype("complex128" if t in "FD" else "float64"))
    scale = np.abs(a).max((-2, -1))
    scale[scale == 0] = 1
    for uplo in "LU":
        given = np.tril(a) if uplo == "L" else np.triu(a)  # the other triangle is not read
        x = nvm.asarray(given, device=device)
        made = la.eigh(x, uplo)
        assert "runs by its own kernel" in nvm.explain(made[0])
        w, v = back(tuple(made), device)
        some = a / scale[:, None, None]
        small(adjoint(v) @ v - np.eye(n), 1, n, eps(a))
        small(some @ v - v * (w / scale[:, None])[:, None], norm(some), n, eps(a))
        for values in (w, back(la.eigvalsh(x, uplo), device)):
            far = np.abs(values / scale[:, None] - exact / scale[:, None]).max(-1)
            assert (far <= 10 * n * eps(a) * norm(some)).all() and (np.diff(values) >= 0).all()


@pytest.mark.parametrize("n, t", [(1, "f"), (2, "F"), (6, "D"), (16, "d"), (32, "f")])
def test_inverses_of_small_matrices(n, t, device):
    """Rows that are exchanged, graded and nearly singular matrices; each layout."""
    rng = np.random.default_rng(n)
    a = of_kind(rng, (6, n, n), t)
    a[1] = np.eye(n)[::-1]
    a[2] *= np.logspace(0, -4, n)[:, None]
    a[3] *= np.logspace(0, -4, n)
    u, s, vh = np.linalg.svd(a[4])
    a[4] = (u * np.logspace(0, -3, n)) @ vh
    for given, x in ((a, nvm.asarray(a, device=device)), (a.swapaxes(1, 2), nvm.asarray(a, device=device).mT)):
        y = back(la.inv(x), device)
        small(given @ y - np.eye(n), norm(given) * norm(y), n, eps(a))
        small(y @ given - np.eye(n), norm(given) * norm(y), n, eps(a))
    a[3, :, 0] = 0
    with pytest.raises(la.LinAlgError, match=r"inv\] the matrix at index \(3,\) is singular"):
        np.asarray(la.inv(nvm.asarray(a, device=device)).to_device("cpu"))


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize(
    "n, t",
    [
        (1, "float32"),
        (2, "complex128"),
        (3, "complex64"),
        (8, "float64"),
        (16, "complex128"),
        (31, "complex64"),
        (32, "float32"),
    ],
)
def test_factors_of_small_matrices(n, t, on):
    test_factor.test_factors_of_many_small_matrices(n, t)


@pytest.mark.parametrize("t", ["float64", "complex64"])
def test_factors_of_one_small_matrix_for_many_sides(t, device):
    """The factors are a value of their own, of the transposed matrix."""
    rng = np.random.default_rng(5)
    a, b = random(rng, (7, 7), t), random(rng, (4, 7, 2), t)
    x = back(la.solve(nvm.asarray(a, device=device), nvm.asarray(b, device=device)), device)
    small(a @ x - b, norm(a) * norm(x), 7, eps(a))


@pytest.mark.emulated(one_in=2)
@pytest.mark.parametrize(
    "n, k, t", [(513, 1, "f"), (1100, 7, "f"), (513, 1, "D"), (2000, 3, "D"), (530, 7, "d"), (5000, 3, "d")]
)
def test_substitution_by_blocks(n, k, t, device):
    """Matrices of more rows than a block: LU of either form, definite ones, an inverse; ill-conditioned blocks."""
    rng = np.random.default_rng(n)
    a, b = random(rng, (n, n), t), random(rng, (n, k), t)
    graded = (a * np.logspace(0, -4, n)).astype(t)
    x, y = nvm.asarray(a, device=device), nvm.asarray(b, device=device)
    for given, solution in (
        (a, la.solve(x, y)),
        (a.T, la.solve(x.mT, y)),
        (graded, la.solve(nvm.asarray(graded, device=device), y)),
        (a @ adjoint(a), la.solve(x @ nvm.conj(x.mT), y)),
        (a, la.lu_solve(la.lu_factor(x), y)),
    ):
        s = back(solution, device)
        small(given @ s - b, norm(given) * norm(s), n, eps(a))
    if k == 1:
        s = back(la.inv(x), device)
        small(a @ s - np.eye(n), norm(a) * norm(s), n, eps(a))


@pytest.mark.emulated(one_in=3)
@pytest.mark.parametrize("n, t", [(512, "F"), (513, "d"), (2000, "D"), (700, "f")])
def test_factors_of_large_matrices(n, t, device):
    """Either triangle, of which the other one is not read; a batch; failures."""
    rng = np.random.default_rng(n)
    a = random(rng, (2, n, n), t)
    a = (a @ adjoint(a) + np.eye(n)).astype(t)
    for upper in (False, True):
        given = np.triu(a) if upper else np.tril(a)
        c = back(la.cholesky(nvm.asarray(given, device=device), upper=upper), device)
        small((adjoint(c) @ c if upper else c @ adjoint(c)) - a, norm(a), n, eps(a))
        assert (c == (np.triu(c) if upper else np.tril(c))).all()
        given[1, n // 2, n // 2] = -1
        with pytest.raises(la.LinAlgError, match=r"cholesky\] the matrix at index \(1,\) is not positive definite"):
            np.asarray(la.cholesky(nvm.asarray(given, device=device), upper=upper).to_device("cpu"))
