"""nvm.linalg's factorizations: residuals over kinds of matrices, dtypes, batches and strides; shapes and dtypes against
NumPy; failures by name and position; empty matrices; jit; structure."""

import numpy as np
import pytest

import nvm

la = nvm.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [1, 2, 3, 8, 17, 33, 70]


def eps(x):
    return np.finfo(x.dtype).eps


def random(rng, shape, t):
    x = rng.standard_normal(shape)
    if t.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(t)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def norm(x):
    return np.linalg.norm(x.astype(np.complex128), axis=(-2, -1)) if x.size else np.zeros(x.shape[:-2])


def small(got, scale, n, e):
    """|got| <= 10 n eps scale, for each matrix."""
    assert np.all(norm(got) <= 10 * max(n, 1) * e * scale + np.finfo("float32").tiny), (norm(got), scale)


def kinds(rng, n, t):
    """Matrices of every condition, by name."""
    yield "random", random(rng, (n, n), t)
    q = np.linalg.qr(random(rng, (n, n), t))[0]
    p = np.linalg.qr(random(rng, (n, n), t))[0]
    yield "graded", (q * np.logspace(0, -4, n)).astype(t) @ p
    yield "clustered", (q * (1 + 1e-3 * rng.random(n))).astype(t) @ p
    yield "rank-deficient", (random(rng, (n, 1), t) @ random(rng, (1, n), t)).astype(t)
    i = np.arange(n)
    yield "Hilbert", (1 / (1 + i[:, None] + i)).astype(t)
    yield "zero", np.zeros((n, n), t)
    yield "lower", np.tril(q + n * np.eye(n)).astype(t)
    yield "definite", (q @ adjoint(q) * 3 + random(rng, (n, 1), t) * 0).astype(t)


def same_type(got, want):
    assert got.shape == want.shape and str(got.dtype) == str(want.dtype), (got.shape, got.dtype, want.shape, want.dtype)


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_residuals(n, t):
    rng = np.random.default_rng(n)
    for _, a in kinds(rng, n, t):
        e = eps(a)
        q, r = map(np.asarray, la.qr(a))
        small(q @ r - a, norm(a), n, e)
        small(adjoint(q) @ q - np.eye(n), 1, n, e)
        assert np.all(np.tril(r, -1) == 0)
        u, s, vh = map(np.asarray, la.svd(a))
        small((u * s) @ vh - a, norm(a), n, e)
        small(adjoint(u) @ u - np.eye(n), 1, n, e)
        small(vh @ adjoint(vh) - np.eye(n), 1, n, e)
        assert np.all(np.diff(s) <= 0) and np.all(s >= 0)
        np.testing.assert_allclose(np.asarray(la.svdvals(a)), s, atol=10 * n * e * norm(a))
        h = (a + adjoint(a)) / 2
        w, v = map(np.asarray, la.eigh(h))
        small(h @ v - v * w, norm(h), n, e)
        small(adjoint(v) @ v - np.eye(n), 1, n, e)
        np.testing.assert_allclose(np.asarray(la.eigvalsh(h)), w, atol=10 * n * e * norm(h))
        p, low, u = map(np.asarray, la.lu(a))
        small(p @ low @ u - a, norm(a) * n, n, e)
        w, v = map(np.asarray, la.eig(a))
        small(a @ v - v * w, norm(a), n, e)


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [1, 3, 40])
def test_solve_residuals(n, k, t):
    rng = np.random.default_rng(n + k)
    b = random(rng, (n, k), t)
    for name, a in kinds(rng, n, t):
        if name in ("rank-deficient", "Hilbert", "zero") and n > 1:
            continue
        if name == "zero":
            a = a + 1
        e = eps(a)
        x = np.asarray(la.solve(a, b))
        same_type(x, b)
        small(a @ x - b, norm(a) * norm(x), n, e)
        inverse = np.asarray(la.inv(a))
        small(a @ inverse - np.eye(n), norm(a) * norm(inverse), n, e)
        x = np.asarray(la.lu_solve(la.lu_factor(a), b))
        small(a @ x - b, norm(a) * norm(x), n, e)
        x = np.asarray(la.solve(a, b[:, 0]))
        small((a @ x - b[:, 0])[:, None], norm(a) * norm(x[:, None]), n, e)
    spd = (a @ adjoint(a) + n * np.eye(n)).astype(t)
    for upper in (False, True):
        c = np.asarray(la.cholesky(spd, upper=upper))
        small((adjoint(c) @ c if upper else c @ adjoint(c)) - spd, norm(spd), n, e)
        x = np.asarray(la.cho_solve(la.cho_factor(spd, lower=not upper), b))
        small(spd @ x - b, norm(spd) * norm(x), n, e)
    x = np.asarray(la.solve(spd, b))
    small(spd @ x - b, norm(spd) * norm(x), n, e)


@pytest.mark.parametrize("t", DTYPES)
def test_triangular(t):
    rng = np.random.default_rng(5)
    for n in (1, 4, 40):
        a, b = random(rng, (n, n), t) + n * np.eye(n, dtype=t), random(rng, (n, 3), t)
        for lower in (False, True):
            for unit in (False, True):
                tri = np.tril(a) if lower else np.triu(a)
                if unit:
                    tri = tri - np.diag(np.diag(tri)) + np.eye(n, dtype=t)
                for trans, op in ((0, tri), (1, tri.T), (2, adjoint(tri))):
                    for rhs in (b, b[:, :1], b[:, 0]):
                        x = np.asarray(la.solve_triangular(a, rhs, trans=trans, lower=lower, unit_diagonal=unit))
                        gap = (op @ x - rhs).reshape(n, -1)
                        small(gap, norm(op) * norm(x.reshape(n, -1)), n, eps(a))


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (40, 9), (9, 40), (1, 4), (4, 1)])
def test_rectangles(m, n, t):
    a = random(np.random.default_rng(m), (2, m, n), t)
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, la.qr(a, mode=mode))
        want = np.linalg.qr(a, mode=mode)
        same_type(q, want[0])
        same_type(r, want[1])
        small(q @ r - a, norm(a), max(m, n), eps(a))
        small(adjoint(q) @ q - np.eye(q.shape[-1]), 1, max(m, n), eps(a))
    r = np.asarray(la.qr(a, mode="r"))
    np.testing.assert_allclose(np.abs(r), np.abs(np.linalg.qr(a, mode="r")), atol=1e-4 if eps(a) > 1e-10 else 1e-12)
    for full in (False, True):
        u, s, vh = map(np.asarray, la.svd(a, full_matrices=full))
        for got, want in zip((u, s, vh), np.linalg.svd(a, full_matrices=full)):
            same_type(got, want)
        k = min(m, n)
        small((u[..., :k] * s[:, None, :]) @ vh[..., :k, :] - a, norm(a), max(m, n), eps(a))
        small(adjoint(u) @ u - np.eye(u.shape[-1]), 1, m, eps(a))
        small(vh @ adjoint(vh) - np.eye(vh.shape[-2]), 1, n, eps(a))
    p, low, u = map(np.asarray, la.lu(a))
    small(p @ low @ u - a, norm(a) * n, m, eps(a))
    inverse = np.asarray(la.pinv(a))
    small(a @ inverse @ a - a, norm(a) ** 2 * norm(inverse), max(m, n), eps(a))
    b = random(np.random.default_rng(n), (m, 2), t)
    x, left, rank, s = map(np.asarray, la.lstsq(a[0], b))
    want = np.linalg.lstsq(a[0], b)
    np.testing.assert_allclose(
        x, want[0], rtol=1e-3 if eps(a) > 1e-10 else 1e-9, atol=1e-4 if eps(a) > 1e-10 else 1e-11
    )
    np.testing.assert_allclose(left, want[1], rtol=1e-3, atol=1e-4)
    assert int(rank) == want[2]


def test_values_against_numpy():
    rng = np.random.default_rng(0)
    for t in DTYPES:
        for shape in ((3, 3), (2, 6, 6), (2, 1, 40, 40)):
            a = random(rng, shape, t)
            tol = dict(rtol=2e-3 if eps(a) > 1e-10 else 1e-9, atol=0)
            same_type(la.det(a), np.asarray(np.linalg.det(a)))
            np.testing.assert_allclose(np.asarray(la.det(a)), np.linalg.det(a), **tol)
            spd = (a @ adjoint(a) + np.eye(shape[-1], dtype=t)) / shape[-1]
            np.testing.assert_allclose(np.asarray(la.det(spd)), np.linalg.det(spd), **tol)
            sign, log = la.slogdet(a)
            want = np.linalg.slogdet(a)
            same_type(sign, np.asarray(want[0]))
            same_type(log, np.asarray(want[1]))
            np.testing.assert_allclose(np.asarray(sign), want[0], atol=1e-4)
            np.testing.assert_allclose(np.asarray(log), want[1], atol=1e-3)
            for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                want = np.linalg.matrix_norm(a, ord=order, keepdims=True)
                got = la.matrix_norm(a, ord=order, keepdims=True)
                same_type(got, want)
                np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4)
            for p in (None, 1, -2, np.inf, "fro"):
                np.testing.assert_allclose(np.asarray(la.cond(a, p)), np.linalg.cond(a, p), rtol=2e-3)
            assert np.array_equal(np.asarray(la.matrix_rank(a)), np.linalg.matrix_rank(a))
            np.testing.assert_allclose(
                np.asarray(la.matrix_power(a, -2)), np.linalg.matrix_power(a, -2), rtol=0.05, atol=0.05
            )
    a, b = rng.standard_normal((2, 3, 6)), rng.standard_normal((4, 1, 5))
    np.testing.assert_allclose(np.asarray(la.kron(a, b)), np.kron(a, b))
    np.testing.assert_allclose(np.asarray(la.kron(a, b[0, 0])), np.kron(a, b[0, 0]))
    a = rng.standard_normal((4, 6, 8, 3))
    np.testing.assert_allclose(np.asarray(la.tensorinv(a)), np.linalg.tensorinv(a), atol=1e-10)
    a, b = rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 3))
    np.testing.assert_allclose(np.asarray(la.tensorsolve(a, b)), np.linalg.tensorsolve(a, b))
    a, b = rng.standard_normal((6, 4, 2, 3, 4)).reshape(6, 4, 6, 4), rng.standard_normal((4, 6))
    np.testing.assert_allclose(np.asarray(la.tensorsolve(a, b, axes=(0, 3))), np.linalg.tensorsolve(a, b, axes=(0, 3)))


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, np.inf, -np.inf, "fro"])
def test_cond_of_any_matrix(p):
    """As NumPy: infinite for a singular one, NaN for one with NaN; integers are converted."""
    good = np.array([[2.0, 1.0], [1.0, 3.0]])
    nan = np.array([[1.0, np.nan], [0.0, 1.0]])
    matrices = [np.zeros((2, 2)), np.stack([good, np.zeros((2, 2))]), np.eye(3, dtype=int) * 2]
    if p not in (None, 2, -2):  # singular values: of rounding alone, and LAPACK may fail to find those of NaN
        matrices += [np.ones((3, 3)), np.stack([good, nan])]
    for a in matrices:
        with np.errstate(all="ignore"):
            want = np.linalg.cond(a, p)
        np.testing.assert_allclose(np.asarray(la.cond(a, p)), want, rtol=1e-6)


@pytest.mark.parametrize("a", [np.ones((3, 3)), np.outer([1.0, 3.0, 7.0], [2.0, -5.0, 11.0]), np.eye(3)[[0, 0, 2]]])
def test_cond_of_singular_values_that_are_rounding(a):
    """The least singular value may be any below matrix_rank's tolerance."""
    tolerance = 3 * np.finfo(float).eps
    assert float(la.cond(a)) >= 1 / tolerance
    assert float(la.cond(a, 2)) >= 1 / tolerance
    assert float(la.cond(a, -2)) <= tolerance


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_integers_are_floats(order):
    a = np.arange(12).reshape(3, 4)
    got = la.matrix_norm(a, ord=order)
    assert got.dtype == nvm.default_dtype()
    np.testing.assert_allclose(float(got), np.linalg.matrix_norm(a, ord=order), rtol=1e-6, atol=1e-6)


def taylor(a):
    """exp(a) of a matrix of small norm."""
    r = term = np.eye(a.shape[-1], dtype=a.dtype)
    for k in range(1, 40):
        term = term @ a / k
        r = r + term
    return r


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
def test_matrix_exp(scale):
    a = np.random.default_rng(3).standard_normal((2, 5, 5)) * scale
    want = np.linalg.matrix_power(taylor(a / 256), 256)
    np.testing.assert_allclose(np.asarray(la.matrix_exp(a)), want, rtol=1e-8, atol=1e-9 * np.abs(want).max())


def test_batches_and_strides():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((4, 3, 6, 6))
    for view in (
        a,
        a[::2, ::-1],
        a.transpose(1, 0, 3, 2),
        np.broadcast_to(a[0, 0], (3, 6, 6)),
        a[..., ::-1],
        a[:, :, 1:4, 1:4],
    ):
        n = view.shape[-1]
        b = rng.standard_normal((n, 2))
        np.testing.assert_allclose(np.asarray(la.inv(view)), np.linalg.inv(view), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(np.asarray(la.solve(view, b)), np.linalg.solve(view, b), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(np.asarray(la.svdvals(view)), np.linalg.svdvals(view), rtol=1e-8)
        np.testing.assert_allclose(np.asarray(la.det(view)), np.linalg.det(view), rtol=1e-8)
    for ba, bb in (((), (5,)), ((5,), ()), ((2, 1), (3,)), ((2, 3), (1, 3)), ((1,), (2, 2))):
        for n in (3, 40):
            a, b = rng.standard_normal((*ba, n, n)), rng.standard_normal((*bb, n, 2))
            want = np.linalg.solve(a, b)
            got = la.solve(a, b)
            same_type(got, want)
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-7, atol=1e-8)
            got = np.asarray(la.solve_triangular(np.tril(a) + 3 * np.eye(n), b, lower=True))
            np.testing.assert_allclose(got, np.linalg.solve(np.tril(a) + 3 * np.eye(n), b), rtol=1e-6, atol=1e-6)


def test_empty():
    e = np.zeros((0, 0))
    assert float(la.det(e)) == 1
    assert [float(x) for x in la.slogdet(e)] == [1, 0]
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        a = np.zeros(shape) + np.eye(shape[-1])
        for f in (la.inv, la.cholesky, la.eigvalsh, la.svdvals, la.eigvals):
            assert f(a).shape == np.asarray(getattr(np.linalg, f.__name__)(a)).shape
            np.asarray(f(a))
        assert np.array_equal(np.asarray(la.det(a)), np.linalg.det(a))
        for f in (la.qr, la.svd, la.eigh, la.eig):
            for got, want in zip(f(a), getattr(np.linalg, f.__name__)(a)):
                assert got.shape == want.shape
                np.asarray(got)
        assert la.solve(a, np.zeros((*shape[:-1], 2))).shape == (*shape[:-1], 2)
    for shape in ((3, 0), (0, 3), (2, 3, 0)):
        a = np.zeros(shape)
        for full in (False, True):
            for got, want in zip(la.svd(a, full_matrices=full), np.linalg.svd(a, full_matrices=full)):
                assert got.shape == want.shape
                np.testing.assert_array_equal(np.abs(np.asarray(got)), np.abs(want))
        for mode in ("reduced", "complete"):
            for got, want in zip(la.qr(a, mode=mode), np.linalg.qr(a, mode=mode)):
                assert got.shape == want.shape
                np.testing.assert_array_equal(np.abs(np.asarray(got)), np.abs(want))


def test_failures_name_the_call_and_the_matrix():
    good = np.eye(4) * 2 + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    for n in (4, 40):
        singular = np.ones((n, n))
        x = la.solve(singular, np.ones(n))  # fails where it is read
        with pytest.raises(la.LinAlgError, match=r"\[linalg.solve\] the matrix is singular"):
            np.asarray(x)
        with pytest.raises(np.linalg.LinAlgError, match=r"\[linalg.inv\] the matrix is singular"):
            np.asarray(la.inv(np.zeros((n, n))))
    batch = np.stack([good, good, np.zeros((4, 4)), np.zeros((4, 4))]).reshape(2, 2, 4, 4)
    with pytest.raises(la.LinAlgError, match=r"at index \(1, 0\) is singular"):
        np.asarray(la.solve(batch, np.ones((4, 1))))
    with pytest.raises(
        la.LinAlgError, match=r"\[linalg.cholesky\] the matrix at index \(1,\) is not positive definite"
    ):
        np.asarray(la.cholesky(np.stack([good, -good])))
    with pytest.raises(la.LinAlgError, match="infinite or NaN"):
        np.asarray(la.eigvals(np.full((2, 2), np.nan)))
    with pytest.raises(la.LinAlgError, match=r"\[linalg.solve_triangular\] the matrix is singular"):
        np.asarray(la.solve_triangular(np.zeros((3, 3)), np.ones(3)))
    assert float(la.det(np.ones((3, 3)))) == 0
    assert np.isnan(np.asarray(la.inv(np.full((2, 2), np.nan)))).all()


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: la.inv(np.ones((2, 3))),
            ValueError,
            r"\[linalg.inv\] needs square matrices, not an array of shape \(2, 3\)",
        ),
        (lambda: la.svd(np.ones(3)), ValueError, r"\[linalg.svd\] needs matrices"),
        (lambda: la.solve(np.eye(3), np.ones(4)), ValueError, r"shape \(4,\) does not have the 3 rows"),
        (lambda: la.solve(np.ones((2, 3, 3)), np.ones((4, 3, 1))), ValueError, r"batches of shapes \(2,\) and \(4,\)"),
        (lambda: la.inv(np.eye(3, dtype="float16")), TypeError, r"\[linalg.inv\] has no routine for float16"),
        (lambda: la.qr(np.eye(3), mode="raw"), ValueError, "there is no mode 'raw'"),
        (lambda: la.eigh(np.eye(3), "X"), ValueError, "UPLO"),
        (lambda: la.matrix_norm(np.eye(3), ord=3), ValueError, "there is no norm 3"),
        (lambda: la.solve_triangular(np.eye(3), np.ones(3), trans=3), ValueError, "trans is 3"),
        (lambda: la.solve_triangular(np.eye(3), np.ones(3), trans="H"), ValueError, "trans is 'H'"),
        (lambda: la.lu_solve(la.lu_factor(np.eye(3)), np.ones(3), trans=3), ValueError, "trans is 3"),
        (lambda: la.solve(np.eye(3), np.ones(3), assume_a="banded"), ValueError, "assume_a is 'banded'"),
        (lambda: la.solve(np.ones((2, 3)), np.ones(3), assume_a="sym"), la.LinAlgError, "needs square matrices"),
        (lambda: la.matrix_rank(np.eye(3), tol=1.0, rtol=0.1), ValueError, "cannot both be given"),
        (lambda: la.pinv(np.eye(3), rcond=1.0, rtol=0.1), ValueError, "cannot both be given"),
        (lambda: la.svd(np.ones((2, 3)), hermitian=True), la.LinAlgError, "needs square matrices"),
        (lambda: la.matrix_rank(np.ones((2, 3)), hermitian=True), la.LinAlgError, "needs square matrices"),
        (lambda: la.cond(np.ones((0, 0))), la.LinAlgError, "without elements"),
        (lambda: la.tensorsolve(np.ones((2, 3)), np.ones(2)), la.LinAlgError, "no square matrix"),
        (lambda: la.matrix_power(np.eye(2), 2.0), TypeError, "integer"),
        (lambda: la.lu_solve((np.eye(3), np.zeros(2, "int32")), np.ones(3)), ValueError, "one pivot for each row"),
    ],
)
def test_calls_that_fail_at_once(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_jit_and_fusion():
    rng = np.random.default_rng(2)
    for n in (5, 50):
        a, b = rng.standard_normal((n, n)), rng.standard_normal((n, 3))
        f = nvm.jit(lambda a, b: nvm.exp(la.solve(a * 2 + nvm.eye(n), b - 1)).sum(axis=0))
        want = np.exp(np.linalg.solve(a * 2 + np.eye(n), b - 1)).sum(axis=0)
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(f(a, b)), want, rtol=1e-6)
        g = nvm.jit(lambda a: (*la.svd(a), *la.eigh(a + a.T), la.det(a)))
        u, s, vh, w, v, d = map(np.asarray, g(a))
        small((u * s) @ vh - a, norm(a), n, eps(a))
        small((a + a.T) @ v - v * w, norm(a + a.T), n, eps(a))
        np.testing.assert_allclose(d, np.linalg.det(a), rtol=1e-9)


def test_parts_are_computed_once():
    a = nvm.asarray(np.random.default_rng(4).standard_normal((60, 60)))
    u, s, vh = la.svd(a)
    np.asarray(u)
    before = nvm.counters()["kernels_run"]
    np.asarray(s), np.asarray(vh)
    assert nvm.counters()["kernels_run"] - before <= 2  # copies of the parts alone


def test_threads_do_not_change_bits():
    a = np.random.default_rng(6).standard_normal((300, 9, 9))
    want = None
    for threads in (1, 2, 3):
        nvm.set("num_threads", threads)
        try:
            got = [np.asarray(x) for x in (la.inv(a), *la.svd(a), *la.eigh(a))]
        finally:
            nvm.set("num_threads", 0)
        want = want or got
        assert all(np.array_equal(x, y) for x, y in zip(got, want))


@pytest.mark.parametrize("n", [4, 64])
def test_guesses_never_change_the_answer(n):
    """Matrices that look definite, or triangular, but are not what they look like."""
    rng = np.random.default_rng(7)
    b = rng.standard_normal((n, 2))
    indefinite = np.ones((n, n)) + np.diag(rng.standard_normal(n) * 1e-3)
    np.fill_diagonal(indefinite, 1 - 0.5 * rng.random(n))
    nearly = np.tril(rng.standard_normal((n, n))) + n * np.eye(n)
    nearly[0, -1] = 1e-30
    for a in (indefinite, nearly, nearly.T, np.diag(1 + rng.random(n)), -np.eye(n)):
        x = np.asarray(la.solve(a, b))
        small(a @ x - b, norm(a) * norm(x), n, eps(a))
        np.testing.assert_allclose(np.asarray(la.det(a)), np.linalg.det(a), rtol=1e-6)


@pytest.mark.parametrize("t", DTYPES)
def test_products_with_the_transpose_are_symmetric(t):
    rng = np.random.default_rng(8)
    for shape in ((500, 70), (385, 400), (2, 400, 33)):
        a = random(rng, shape, t)
        x = nvm.asarray(a)
        for got, want in ((x @ x.mT, a @ np.swapaxes(a, -1, -2)), (x.mT @ x, np.swapaxes(a, -1, -2) @ a)):
            got = np.asarray(got)
            small(got - want, norm(a) ** 2, max(shape), eps(a))
            if want.shape[-1] >= 385:
                assert np.array_equal(got, np.swapaxes(got, -1, -2))


def test_structure_of_expressions():
    """explain names what an expression says of its matrix; the result is right for any of them."""
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((50, 60)), rng.standard_normal((50, 2))
    c = random(rng, (50, 60), "complex128")
    x, z, one = nvm.asarray(a), nvm.asarray(c), np.eye(50)
    eye = nvm.eye(50, dtype=nvm.float64)
    square = x[:, :50]
    for made, want, hermitian in (
        (x @ x.T + eye * 0.01, a @ a.T + one * 0.01, True),
        (2 * (x @ x.T) - eye * 1e3, 2 * (a @ a.T) - one * 1e3, True),  # and not definite
        (square + square.T, a[:, :50] + a[:, :50].T, True),
        (z @ nvm.conj(z.T) + eye, c @ np.conj(c.T) + one, True),
        (z @ z.T, c @ c.T, False),
        (square + square.T * 2, a[:, :50] + a[:, :50].T * 2, False),
        (nvm.exp(x @ x.T / 60), np.exp(a @ a.T / 60), True),
        (square, a[:, :50], False),
        (
            nvm.imag(z @ nvm.conj(z.T)) + eye * 1e3,
            (c @ np.conj(c.T)).imag + one * 1e3,
            False,
        ),  # antisymmetric but for eye
        (nvm.real(z @ nvm.conj(z.T)) + eye, (c @ np.conj(c.T)).real + one, True),
        (3 * eye + nvm.eye(1, 50, dtype=nvm.float64), 3 * one + np.eye(1, 50), False),  # a row repeated
    ):
        solution = la.solve(made, b)
        text = nvm.explain(solution)
        assert ("Hermitian, as its expression says" in text) == hermitian, text
        got = np.asarray(solution)
        small(want @ got - b, norm(want) * norm(got), 50, 2.3e-16)


@pytest.mark.parametrize("n", [6, 50])
def test_a_product_with_an_inverse_is_a_solution(n):
    rng = np.random.default_rng(10)
    a, b = rng.standard_normal((3, n, n)), rng.standard_normal((3, n, 2))
    x = nvm.asarray(a)
    product = la.inv(x) @ b
    assert "gemm" not in nvm.explain(product)
    np.testing.assert_allclose(np.asarray(product), np.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
    inverse = la.inv(x)
    f = nvm.jit(lambda x, b: (la.inv(x), la.inv(x) @ b))
    for got, want in zip(f(a, b), (np.linalg.inv(a), np.linalg.solve(a, b))):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.asarray(inverse @ (b * 2)), np.linalg.solve(a, b * 2), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 16, 31, 32])
def test_many_small_systems(n, t):
    rng = np.random.default_rng(n)
    for count in (4, 8, 16, 37):
        a, b = random(rng, (count, n, n), t), random(rng, (count, n, 3), t)
        a[0] = np.tril(a[0]) + n * np.eye(n)
        a[1] = np.roll(np.eye(n), 1, axis=0) * 3  # every pivot is in another row
        for left, right in ((a, b), (np.swapaxes(a, 1, 2), np.flip(b, 1)), (a[::-1], b[:1].repeat(count, 0))):
            x = np.asarray(la.solve(left, right))
            small(left @ x - right, norm(left) * norm(x), n, eps(a))
            inverse = np.asarray(la.inv(left))
            small(left @ inverse - np.eye(n), norm(left) * norm(inverse), n, eps(a))
    a[20] = 0
    with pytest.raises(la.LinAlgError, match=r"the matrix at index \(20,\) is singular"):
        np.asarray(la.inv(a))
    a[20] = np.nan
    assert np.isnan(np.asarray(la.inv(a))[20]).all() and np.isfinite(np.asarray(la.inv(a))[19]).all()


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 8, 16, 31, 32])
def test_cholesky_factors_of_many_small_matrices(n, t):
    rng = np.random.default_rng(n)
    for count in (4, 8, 16, 37):
        a = random(rng, (count, n, n), t)
        a = a @ adjoint(a) + np.eye(n, dtype=t)
        a = (a + adjoint(a)) / 2
        other = a + np.triu(random(rng, (count, n, n), t), 1)  # only the triangle that is asked for is read
        for left in (a, a[::-1], np.swapaxes(a, 1, 2)):  # the transposed one is definite, too
            for x, upper in ((left, False), (left, True)):
                factor = np.asarray(la.cholesky(x, upper=upper))
                low = adjoint(factor) if upper else factor
                assert np.array_equal(low, np.tril(low))
                small(low @ adjoint(low) - x, norm(x), n, eps(a))
        assert np.array_equal(np.asarray(la.cholesky(other)), np.asarray(la.cholesky(a)))
        turned = adjoint(other)
        assert np.array_equal(np.asarray(la.cholesky(turned, upper=True)), np.asarray(la.cholesky(a, upper=True)))
    for bad in (-1, 0, np.nan):
        a[20, -1, -1] = bad
        with pytest.raises(la.LinAlgError, match=r"the matrix at index \(20,\) is not positive definite"):
            np.asarray(la.cholesky(a))


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 31, 32])
def test_factors_of_many_small_matrices(n, t):
    rng = np.random.default_rng(n)
    for count in (8, 16, 37):
        a = random(rng, (count, n, n), t)
        a[1] = np.roll(np.eye(n), 1, axis=0) * 3  # every pivot is in another row
        a[2] = 0
        a[3] = random(rng, (n, 1), t) @ random(rng, (1, n), t)  # of rank 1
        a[4] = np.triu(a[4])
        if n > 1:
            a[5, :, 0] = 0  # the first column has no pivot
        for x in (a, a[::-1], np.swapaxes(a, 1, 2)):
            p, lower, upper = (np.asarray(part) for part in la.lu(x))
            small(p @ lower @ upper - x, norm(x), n, eps(a))
            rows = np.asarray(la.lu(x, p_indices=True)[0])
            assert np.array_equal(np.take_along_axis(lower, rows[..., None], 1), p @ lower)
            assert np.abs(lower).max() <= (1 if a.dtype.kind == "f" else 2**0.5) * (1 + 8 * eps(a))
            det, want = np.asarray(la.det(x)), np.linalg.det(x.astype("complex128"))
            size = np.prod(np.linalg.norm(x.astype("complex128"), axis=-1), axis=-1)  # Hadamard's bound
            assert (np.abs(det - want) <= 100 * n * eps(a) * size + 1e-30).all()
            sign, log = (np.asarray(part) for part in la.slogdet(x))
            assert det.dtype == sign.dtype == a.dtype and log.dtype == det.real.dtype
            assert np.allclose(sign * np.exp(log), det, rtol=1e3 * n * eps(a), atol=0)
        zero = np.asarray(la.det(a))
        assert zero[2] == 0 and (n == 1 or zero[5] == 0)
        sign, log = (np.asarray(part) for part in la.slogdet(a))
        assert log[2] == -np.inf and sign[2] == 0
        right = random(rng, (count, n, 2), t)
        a[[2, 3]] = np.eye(n, dtype=t)
        a[5] = np.eye(n, dtype=t)
        x = np.asarray(la.lu_solve(la.lu_factor(a), right))
        small(a @ x - right, norm(a) * norm(x), n, eps(a))
    a[20] = np.nan
    assert np.isnan(np.asarray(la.det(a))[20]) and np.isfinite(np.asarray(la.det(a))[19])


@pytest.mark.parametrize("t", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [-1, 1])
def test_small_complex_systems_near_the_ends_of_the_range(t, exponent, rng):
    by = float(np.finfo(t).max) ** (exponent * 0.45)
    a, b = random(rng, (16, 5, 5), t), random(rng, (16, 5, 2), t)
    x = np.asarray(la.solve((a * by).astype(t), b)) * by
    small(a @ x - b, norm(a) * norm(x), 5, eps(a))
    one = (random(rng, (16, 1, 1), t) * float(np.finfo(t).tiny) * 4).astype(t)
    np.testing.assert_allclose(np.asarray(la.solve(one, one)), np.ones_like(one), rtol=0, atol=4 * eps(one))


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4), (1, 1)])
def test_hermitian_matrices_by_their_eigenvalues(shape, t, rng):
    a = random(rng, shape, t)
    a = a + a.conj().swapaxes(-1, -2)
    eps, n = np.finfo(t).eps, shape[-1]
    read = np.tril(a) + np.triu(random(rng, shape, t), 1)  # the lower triangle is what is read
    u, s, vh = (np.asarray(part) for part in la.svd(read, hermitian=True))
    scale = np.abs(a).max() + 1
    assert np.abs(u * s[..., None, :] @ vh - a).max() <= 40 * n * eps * scale
    assert (np.diff(s) <= 0).all() and s.min() >= 0
    expected = np.linalg.svd(a, compute_uv=False)
    for found in (s, la.svd(read, compute_uv=False, hermitian=True)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=40 * n * eps * scale)
    low = u[..., :1] * s[..., None, :1] @ u[..., :1].conj().swapaxes(-1, -2)  # of rank 1
    assert (np.asarray(la.matrix_rank(low, hermitian=True)) == 1).all()
    assert (np.asarray(la.matrix_rank(low, 1e-3 * s[..., 0], True)) == 1).all()
    inverse = np.asarray(la.pinv(low, 1e-3, True))
    np.testing.assert_allclose(low @ inverse @ low, low, rtol=0, atol=400 * n * eps * scale)


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_solutions_with_transposed_factors(batch, t, rng):
    n, eps = 6, np.finfo(t).eps
    a = random(rng, (*batch, n, n), t) + np.eye(n, dtype=t)
    for b in (random(rng, (*batch, n, 2), t), random(rng, (n,), t)):
        for trans, name in enumerate("NTC"):
            of = (a, a.swapaxes(-1, -2), a.conj().swapaxes(-1, -2))[trans]
            for code in (trans, name):
                x = np.asarray(la.lu_solve(la.lu_factor(a), b, trans=code))
                gap = np.einsum("...ij,...j->...i", of, x) - b if b.ndim == 1 else of @ x - b
                assert np.abs(gap).max() <= 1000 * n * eps * max(1, np.abs(a).max()) * np.abs(x).max()
                upper = np.triu(of if not trans else a)
                x = np.asarray(la.solve_triangular(np.tril(np.full_like(a, np.nan), -1) + upper, b, code))
                half = (upper, upper.swapaxes(-1, -2), upper.conj().swapaxes(-1, -2))[trans]
                gap = np.einsum("...ij,...j->...i", half, x) - b if b.ndim == 1 else half @ x - b
                assert np.abs(gap).max() <= 1000 * n * eps * max(1, np.abs(a).max()) * np.abs(x).max()


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_what_is_assumed_is_all_that_is_read(t, lower, rng):
    n, eps = 7, np.finfo(t).eps
    a, b = random(rng, (n, n), t), random(rng, (n, 2), t)
    half = np.tril if lower else np.triu
    other = np.full((n, n), 77, t) - half(np.full((n, n), 77, t))  # what must not be read
    whole = {
        "pos": a @ a.conj().T + np.eye(n),
        "her": a + a.conj().T,
        "sym": a + a.T,
        "lower triangular" if lower else "upper triangular": half(a) + 3 * np.eye(n),
        "diagonal": np.diag(np.diag(a) + 3),
    }
    for name, m in whole.items():
        m = m.astype(t)
        given = np.full((n, n), 77, t) * (1 - np.eye(n)) + m if name == "diagonal" else half(m) + other
        x = np.asarray(la.solve(given.astype(t), b, assume_a=name, lower=lower))
        assert np.abs(m @ x - b).max() <= 1000 * n * eps * np.abs(m).max() * np.abs(x).max(), name
    with pytest.raises(la.LinAlgError, match="not positive definite"):
        np.asarray(la.solve(-np.eye(n), b, assume_a="pos", lower=lower))


def test_norms_of_nothing():
    for order in (None, 0, 1, 2, 3, np.inf):
        assert float(la.norm(np.zeros(0), order)) == 0
    for order in ("fro", "nuc", 1, 2, np.inf):
        assert float(la.norm(np.zeros((3, 0)), order)) == 0
        assert float(la.norm(np.zeros((0, 3)), order)) == 0
    with pytest.raises(ValueError, match="has no value"):
        la.norm(np.zeros(0), -np.inf)


@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("m, n, k", [(6, 3, 1), (40, 5, 5), (40, 5, 6), (9, 5, 2)])
def test_least_squares_of_tall_matrices(m, n, k, t, rng):
    """By R of [a, b], or by a itself where there are more sides than columns, or not twice as many rows."""
    a, b = random(rng, (3, m, n), t), random(rng, (3, m, k), t)
    a[1, :, -1] = a[1, :, 0] * 2  # of a lower rank: the solution of least norm
    a[2] *= 1e-3
    x, left, rank, s = (np.asarray(part) for part in la.lstsq(a, b, rcond=1e-5))
    assert rank.tolist() == [n, n - 1, n]
    for i in range(3):
        want = np.linalg.lstsq(a[i].astype("complex128"), b[i], rcond=1e-5)
        near = 1e-3 if eps(a) > 1e-10 else 1e-10
        np.testing.assert_allclose(x[i], want[0], rtol=0, atol=near * np.abs(want[0]).max())
        gap = np.sum(np.abs(a[i].astype("complex128") @ want[0] - b[i]) ** 2, axis=0)
        np.testing.assert_allclose(left[i], gap, rtol=near)
        np.testing.assert_allclose(s[i], want[3], rtol=0, atol=10 * m * eps(a) * want[3][0])
        one = [np.asarray(part) for part in la.lstsq(a[i], b[i, :, 0], rcond=1e-5)]
        assert [part.shape for part in one] == [(n,), (1,), (), (n,)]
        np.testing.assert_allclose(one[0], want[0][:, 0], rtol=0, atol=near * np.abs(want[0]).max())
