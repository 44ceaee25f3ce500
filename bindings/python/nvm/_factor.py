"""Factorizations and what is made of them: solutions, determinants, eigenvalues, singular values. A factorization of
several parts is one array, a row for each matrix, in which the parts lie one behind the other."""

import math
import sys

from . import _nvm
from ._array_api import result_type
from ._named import Named

_f = _nvm.functions
Array = _nvm.Array

cholesky, det, inv, svdvals, eigvals = (
    _f["linalg." + name] for name in ("cholesky", "det", "inv", "svdvals", "eigvals")
)
_solve, _solve_triangular = _f["linalg.solve"], _f["linalg.solve_triangular"]


class LinAlgError(ValueError):
    """A matrix is singular or not definite, or an algorithm did not converge.

    >>> import nvm
    >>> nvm.linalg.inv(nvm.zeros((2, 2)))
    Traceback (most recent call last):
        ...
    nvm.linalg.LinAlgError: ...
    """


_numpys = {}


def _error():
    """The exception that is raised: NumPy's as well, where NumPy is imported."""
    numpy = sys.modules.get("numpy")
    theirs = numpy and getattr(getattr(numpy, "linalg", None), "LinAlgError", None)
    if theirs is None:
        return LinAlgError
    if theirs not in _numpys:
        _numpys[theirs] = type("LinAlgError", (LinAlgError, theirs), {"__module__": "nvm.linalg"})
    return _numpys[theirs]


_nvm.hooks["linalg_error"] = _error


class QRResult(Named):
    """What qr returns: a tuple of Q (..., m, k) and R (..., k, n), which are its attributes too.

    >>> import nvm
    >>> nvm.linalg.qr(nvm.asarray([[0.0, 1.0], [2.0, 0.0]])).R.shape
    (2, 2)
    """

    _fields = ("Q", "R")


class SVDResult(Named):
    """What svd returns: a tuple of U (..., m, k), S (..., k), real and descending, and Vh (..., k, n), which are its
    attributes too.

    >>> import nvm
    >>> nvm.linalg.svd(nvm.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    array([4., 3.])
    """

    _fields = ("U", "S", "Vh")


class EigResult(Named):
    """What eig returns: a tuple of eigenvalues (..., n) and eigenvectors (..., n, n), complex, which are its attributes
    too.

    >>> import nvm
    >>> nvm.linalg.eig(nvm.asarray([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    array([2.+0.j, 3.+0.j])
    """

    _fields = ("eigenvalues", "eigenvectors")


class EighResult(Named):
    """What eigh returns: a tuple of eigenvalues (..., n), real and ascending, and eigenvectors (..., n, n), which are
    its attributes too.

    >>> import nvm
    >>> nvm.linalg.eigh(nvm.asarray([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    array([1., 3.])
    """

    _fields = ("eigenvalues", "eigenvectors")


class SlogdetResult(Named):
    """What slogdet returns: a tuple of sign (...) and logabsdet (...), which are its attributes too.

    >>> import nvm
    >>> nvm.linalg.slogdet(nvm.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
    array(-1.)
    """

    _fields = ("sign", "logabsdet")


def _parts(x, *wanted):
    """The parts of a factorization, (rows, columns) or the length of a vector; 'real' behind it: of real numbers."""
    out, start = [], 0
    for extent, *real in wanted:
        rows, cols = extent if isinstance(extent, tuple) else (extent, -1)
        out.append(_f["linalg.part"](x, start, rows, cols, bool(real)))
        start += rows * cols if cols >= 0 else rows
    return out


def _matrix(who, x):
    x = _nvm.asarray(x)
    if x.ndim < 2:
        raise ValueError(f"[linalg.{who}] needs matrices, not an array of shape {x.shape}")
    return x, *x.shape[-2:]


def _square(who, x):
    x, m, n = _matrix(who, x)
    if m != n:
        raise _error()(f"[linalg.{who}] needs square matrices, not an array of shape {x.shape}")
    return x, n


def _upper(who, UPLO):
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ValueError(f"[linalg.{who}] UPLO is {UPLO!r}; it must be 'L' or 'U'")
    return UPLO.upper() == "U"


# ---- factors
def qr(x, /, mode="reduced"):
    """Q with orthonormal columns and upper triangular R, x = Q @ R. mode: "reduced", "complete" (Q is square), or "r"
    (R alone).

    >>> import nvm
    >>> nvm.linalg.qr(nvm.ones((3, 2))).R.shape
    (2, 2)
    """
    x, m, n = _matrix("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"[linalg.qr] there is no mode {mode!r}; modes are 'reduced', 'complete', 'r'")
    if mode == "r":
        return _f["linalg.qr"](x, parts=0)
    k = m if mode == "complete" else min(m, n)
    return QRResult(*_parts(_f["linalg.qr"](x, parts=2 if mode == "complete" else 1), ((m, k),), ((k, n),)))


def _lu(who, x):
    """Factors as one matrix, pivots, and the rows in their order."""
    x, m, n = _matrix(who, x)
    k = min(m, n)
    packed = _f["linalg.lu"](x)
    factors, pivots, _, order = _parts(packed, ((m, n),), (k, "real"), (2, "real"), (m, "real"))
    return factors, pivots, order, k


def lu_factor(x, /):
    """(lu, piv): the factors of x = P @ L @ U in one matrix, L without its diagonal of ones; row i was exchanged with
    row piv[i].

    >>> import nvm
    >>> lu, pivots = nvm.linalg.lu_factor(nvm.asarray([[2.0, 0.0], [0.0, 4.0]]))
    >>> pivots
    array([0, 1], dtype=int32)
    """
    factors, pivots, _, _ = _lu("lu_factor", x)
    return factors, pivots.astype(_nvm.dtype("int32"))


def lu(x, /, permute_l=False, *, p_indices=False):
    """(P, L, U) with x = P @ L @ U; permute_l: (P @ L, U); p_indices: (p, L, U) with x = (L @ U)[p].

    >>> import nvm
    >>> [part.shape for part in nvm.linalg.lu(nvm.asarray([[1.0, 2.0], [3.0, 4.0]]))]
    [(2, 2), (2, 2), (2, 2)]
    """
    factors, _, order, k = _lu("lu", x)
    m, t = factors.shape[-2], factors.dtype
    lower = _f["tril"](factors[..., :k], k=-1) + _f["eye"](m, k, dtype=t)
    upper = _f["triu"](factors[..., :k, :])
    rows = _f["arange"](m, dtype=order.dtype)
    if p_indices:
        return _f["argsort"](order, axis=-1), lower, upper
    p = _f["astype"](rows[:, None] == order[..., None, :], t)
    return (_f["matmul"](p, lower), upper) if permute_l else (p, lower, upper)


_TRANS = {"N": 0, "T": 1, "C": 2}


def _trans(who, trans):
    code = _TRANS.get(trans, trans)
    if code not in (0, 1, 2):
        raise ValueError(f"[linalg.{who}] trans is {trans!r}; it must be 0, 1, 2, 'N', 'T' or 'C'")
    return int(code)


def lu_solve(lu_and_piv, b, /, trans=0):
    """x of a @ x = b by the result of lu_factor(a); trans: 1 of a^T @ x = b, 2 of a^H @ x = b.

    >>> import nvm
    >>> factors = nvm.linalg.lu_factor(nvm.asarray([[2.0, 0.0], [0.0, 4.0]]))
    >>> nvm.linalg.lu_solve(factors, nvm.asarray([1.0, 1.0]))
    array([0.5 , 0.25])
    """
    trans = _trans("lu_solve", trans)
    if not trans:
        return _f["linalg.lu_solve"](*lu_and_piv, b)
    factors, n = _square("lu_solve", lu_and_piv[0])
    b = _nvm.asarray(b)
    vector = b.ndim == 1
    y = _solve_triangular(factors, b[:, None] if vector else b, trans=trans)
    y = _solve_triangular(factors, y, trans=trans, lower=True, unit_diagonal=True)
    one = _f["broadcast_to"](_f["eye"](n, dtype=_nvm.float64), factors.shape)
    rows = _f["linalg.lu_solve"](one, lu_and_piv[1], _f["arange"](n, dtype=_nvm.float64)[:, None])
    to = _f["argsort"](rows[..., 0], axis=-1)[..., None]
    y = _f["take_along_axis"](y, _f["broadcast_to"](to, y.shape), axis=-2)
    return y[..., 0] if vector else y


def cho_factor(x, /, lower=False):
    """(c, lower): a triangular factor of a Hermitian positive definite matrix, for cho_solve.

    >>> import nvm
    >>> c, lower = nvm.linalg.cho_factor(nvm.asarray([[4.0, 0.0], [0.0, 9.0]]))
    >>> nvm.linalg.cho_solve((c, lower), nvm.asarray([4.0, 9.0]))
    array([1., 1.])
    """
    return cholesky(x, upper=not lower), lower


def cho_solve(c_and_lower, b, /):
    """x of a @ x = b by the result of cho_factor(a).

    >>> import nvm
    >>> factor = nvm.linalg.cho_factor(nvm.asarray([[4.0, 0.0], [0.0, 9.0]]))
    >>> nvm.linalg.cho_solve(factor, nvm.asarray([4.0, 9.0]))
    array([1., 1.])
    """
    c, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    y = _solve_triangular(c, b, trans=first, lower=lower)
    return _solve_triangular(c, y, trans=second, lower=lower)


def solve_triangular(a, b, /, trans=0, lower=False, unit_diagonal=False):
    """x of a @ x = b, of whose a one triangle is read; trans: 1 or 'T' of a^T @ x = b, 2 or 'C' of a^H @ x = b.

    >>> import nvm
    >>> nvm.linalg.solve_triangular(nvm.asarray([[2.0, 0.0], [1.0, 4.0]]), nvm.asarray([2.0, 5.0]), lower=True)
    array([1., 1.])
    """
    trans = _trans("solve_triangular", trans)
    return _solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _mirrored(x, lower, conj):
    """The symmetric or, with conj, Hermitian matrix of which one triangle is read."""
    x, _ = _square("solve", x)
    half = _f["tril"](x, k=-1) if lower else _f["triu"](x, k=1)
    other = _f["matrix_transpose"](_f["tril"](x) if lower else _f["triu"](x))
    return half + (_f["conj"](other) if conj else other)


def solve(x1, x2, /, *, assume_a="gen", lower=False):
    """x of x1 @ x = x2. assume_a, as SciPy has it: what is taken for granted of x1, of which only that is read: "pos",
    "her", "sym" (definite, Hermitian, symmetric: the upper triangle; lower: the lower one), "upper triangular", "lower
    triangular", "diagonal"; "gen": nothing, the structure is found out.

    >>> import nvm
    >>> nvm.linalg.solve(nvm.asarray([[2.0, 0.0], [0.0, 4.0]]), nvm.asarray([1.0, 1.0]))
    array([0.5 , 0.25])
    """
    if assume_a == "gen":
        return _solve(x1, x2)
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(x1, lower), x2)
    if assume_a in ("sym", "symmetric", "her", "hermitian"):
        return _solve(_mirrored(x1, lower, assume_a[0] == "h"), x2)
    if assume_a in ("upper triangular", "lower triangular"):
        return _solve_triangular(x1, x2, lower=assume_a[0] == "l")
    if assume_a == "diagonal":
        x, n = _square("solve", x1)
        return _solve_triangular(_f["diagonal"](x)[..., None] * _f["eye"](n, dtype=x.dtype), x2)
    raise ValueError(
        f"[linalg.solve] assume_a is {assume_a!r}; it must be 'gen', 'pos', 'her', 'sym', 'upper triangular', "
        "'lower triangular' or 'diagonal'"
    )


def slogdet(x, /):
    """The sign of the determinant and the logarithm of its absolute value.

    >>> import nvm
    >>> nvm.linalg.slogdet(nvm.asarray([[2.0, 0.0], [0.0, -4.0]])).sign
    array(-1.)
    """
    x, _ = _square("slogdet", x)
    factors = _f["linalg.factor"](x)
    return SlogdetResult(_f["linalg.slogdet"](factors), _f["linalg.slogdet"](factors, part=1))


# ---- eigenvalues and singular values
def eigh(x, /, UPLO="L"):
    """Eigenvalues, the smallest first, and orthonormal eigenvectors (columns) of a Hermitian matrix, of which one
    triangle is read.

    >>> import nvm
    >>> nvm.linalg.eigh(nvm.asarray([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
    array([2., 4.])
    """
    x, n = _square("eigh", x)
    return EighResult(*_parts(_f["linalg.eigh"](x, _upper("eigh", UPLO)), (n, "real"), ((n, n),)))


def eigvalsh(x, /, UPLO="L"):
    """The eigenvalues of a Hermitian matrix, the smallest first; one triangle is read.

    >>> import nvm
    >>> nvm.linalg.eigvalsh(nvm.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array([2., 4.])
    """
    return _f["linalg.eigvalsh"](x, _upper("eigvalsh", UPLO))


def eig(x, /):
    """Complex eigenvalues and eigenvectors (columns) of a square matrix.

    >>> import nvm
    >>> nvm.linalg.eig(nvm.asarray([[2.0, 0.0], [0.0, 4.0]])).eigenvalues
    array([2.+0.j, 4.+0.j])
    """
    x, n = _square("eig", x)
    return EigResult(*_parts(_f["linalg.eig"](x), (n,), ((n, n),)))


def _svd_hermitian(x):
    """Of a Hermitian matrix, by its eigenvalues."""
    w, v = eigh(x)
    to = _f["argsort"](_f["abs"](w), axis=-1, descending=True)
    w = _f["take_along_axis"](w, to, axis=-1)
    v = _f["take_along_axis"](v, _f["broadcast_to"](to[..., None, :], v.shape), axis=-1)
    sign = _f["where"](w < 0, -1, 1)[..., None, :]
    return SVDResult(v, _f["abs"](w), _conj_turned(v * sign))


def _singular_values(who, x, hermitian):
    if not hermitian:
        return svdvals(x)
    s = _f["abs"](eigvalsh(_square(who, x)[0]))
    return _f["sort"](s, axis=-1, descending=True)


def svd(x, /, full_matrices=True, compute_uv=True, hermitian=False):
    """U, the singular values S, the greatest first, and Vh: x = U @ diag(S) @ Vh. full_matrices: U and Vh are square;
    compute_uv=False: S alone; hermitian: x is Hermitian, its lower triangle is read, and its eigenvalues are found.

    >>> import nvm
    >>> nvm.linalg.svd(nvm.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    array([4., 3.])
    """
    x, m, n = _matrix("svd", x)
    if not compute_uv:
        return _singular_values("svd", x, hermitian)
    if hermitian:
        return _svd_hermitian(_square("svd", x)[0])
    k = min(m, n)
    packed = _f["linalg.svd"](x, parts=2 if full_matrices else 1)
    rows, cols = (m, n) if full_matrices else (k, k)
    return SVDResult(*_parts(packed, ((m, rows),), (k, "real"), ((cols, n),)))


def _eps(x):
    return 2.0**-23 if x.dtype in (_nvm.float32, _nvm.complex64) else 2.0**-52


def _as_column(x):  # a tolerance for each matrix, beside its singular values
    return x if isinstance(x, (int, float)) else _nvm.asarray(x)[..., None]


def matrix_rank(x, /, tol=None, hermitian=False, *, rtol=None):
    """The number of singular values above tol, or above rtol (the greatest extent times epsilon) times the greatest;
    hermitian: x is Hermitian, and they are the absolute values of its eigenvalues.

    >>> import nvm
    >>> nvm.linalg.matrix_rank(nvm.ones((3, 2)))
    array(1)
    """
    x = _nvm.asarray(x)
    if tol is not None and rtol is not None:
        raise ValueError("[linalg.matrix_rank] tol and rtol cannot both be given")
    if x.ndim < 2:
        return _f["astype"](_f["any"](x != 0), _nvm.dtype("int64"))
    s = _singular_values("matrix_rank", x, hermitian)
    if tol is None:
        rtol = max(x.shape[-2:]) * _eps(s) if rtol is None else _as_column(rtol)
        tol = _f["max"](s, axis=-1, keepdims=True) * rtol if s.shape[-1] else 0
    else:
        tol = _as_column(tol)
    return _f["sum"](s > tol, axis=-1, dtype=_nvm.dtype("int64"))


def _conj_turned(x):
    return _f["conj"](_f["matrix_transpose"](x))


def _inverse_values(s, rtol):
    """1 / s, and 0 for what is not above rtol times the greatest."""
    if not s.shape[-1]:
        return s, s > 0
    kept = s > _f["max"](s, axis=-1, keepdims=True) * rtol
    return _f["where"](kept, 1 / _f["where"](kept, s, 1), 0), kept


def pinv(x, /, rcond=None, hermitian=False, *, rtol=None):
    """The pseudo-inverse, without the singular values that are not above rtol (the greatest extent times epsilon) times
    the greatest; hermitian: x is Hermitian, its lower triangle is read, and its eigenvalues are found.

    >>> import nvm
    >>> nvm.round(nvm.linalg.pinv(nvm.asarray([[2.0], [0.0]])), 6)
    array([[0.5, 0. ]])
    """
    x, m, n = _matrix("pinv", x)
    if rcond is not None and rtol is not None:
        raise ValueError("[linalg.pinv] rcond and rtol cannot both be given")
    rtol = rcond if rtol is None else rtol
    u, s, vh = svd(x, full_matrices=False, hermitian=hermitian)
    inverse, _ = _inverse_values(s, max(m, n) * _eps(s) if rtol is None else _as_column(rtol))
    return _f["matmul"](_conj_turned(vh) * inverse[..., None, :], _conj_turned(u))


_TALL = 2  # rows a column from which a least-squares problem is one of R


def _squares(x):
    x = _f["abs"](x)
    return _f["sum"](x * x, axis=-2)


def lstsq(a, b, /, rcond=None):
    """(x, residuals, rank, s): the x of least norm that minimises the norm of a @ x - b, the squares of these norms for
    each column (none unless a has more rows than columns), the rank of a, its singular values. Singular values that are
    not above rcond (the greatest extent times epsilon) times the greatest count as zero.

    >>> import nvm
    >>> a, b = nvm.asarray([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), nvm.asarray([1.0, 4.0, 0.0])
    >>> nvm.round(nvm.linalg.lstsq(a, b)[0], 6)
    array([1., 2.])
    """
    a, m, n = _matrix("lstsq", a)
    b = _nvm.asarray(b)
    t = result_type(a, b)
    if t.kind in "fc":
        a, b = a.astype(t), b.astype(t)
    vector = b.ndim == 1
    if b.ndim < 1 or b.shape[-1 if vector else -2] != m:
        raise ValueError(
            f"[linalg.lstsq] a right-hand side of shape {b.shape} does not have the {m} rows of the matrix"
        )
    b = b[:, None] if vector else b
    tail = None
    if m >= _TALL * n > 0 and b.shape[-1] <= n and a.shape[:-2] == b.shape[:-2]:
        r = qr(_f["concat"]([a, b], axis=-1), mode="r")  # has Q^H b, and below it what no x reaches
        a, b, tail = r[..., :n, :n], r[..., :n, n:], r[..., n:, n:]
    u, s, vh = svd(a, full_matrices=False)
    inverse, kept = _inverse_values(s, max(m, n) * _eps(s) if rcond is None or rcond < 0 else rcond)
    x = _f["matmul"](_conj_turned(vh), inverse[..., None] * _f["matmul"](_conj_turned(u), b))
    left = _f["zeros"]((0,), dtype=s.dtype) if m <= n else _squares(_f["matmul"](a, x) - b)
    left = left if tail is None else left + _squares(tail)
    return x[..., 0] if vector else x, left, _f["sum"](kept, axis=-1, dtype=_nvm.dtype("int64")), s


def _as_inexact(x):
    return x if x.dtype.kind in "fc" else x.astype(_nvm.default_dtype())


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """A norm of matrices: "fro" (Frobenius), "nuc" (the sum of the singular values), 2 and -2 (the greatest and the
    smallest of them), 1 and -1 (of the sums of columns), inf and -inf (of the sums of rows).

    >>> import nvm
    >>> nvm.linalg.matrix_norm(nvm.asarray([[3.0, 0.0], [0.0, 4.0]]))
    array(5.)
    """
    x = _as_inexact(_matrix("matrix_norm", x)[0])
    if ord == "fro":
        norm = _f["vector_norm"](x, axis=(-2, -1))
    elif ord in ("nuc", 2, -2):
        norm = _f["vector_norm"](svdvals(x), axis=-1, ord={"nuc": 1, 2: math.inf, -2: -math.inf}[ord])
    elif ord in (1, -1, math.inf, -math.inf):
        sums = _f["sum"](_f["abs"](x), axis=-2 if abs(ord) == 1 else -1)
        norm = _f["vector_norm"](sums, axis=-1, ord=math.copysign(math.inf, ord))
    else:
        raise ValueError(
            f"[linalg.matrix_norm] there is no norm {ord!r}; norms are 'fro', 'nuc', 1, -1, 2, -2, inf, -inf"
        )
    return norm[..., None, None] if keepdims else norm


def _inverse(x, n):
    """The inverse, and where there is none; it is that of another matrix there."""
    factors, pivots = lu_factor(x)
    one = _f["eye"](n, dtype=factors.dtype)
    singular = _f["any"](_f["diagonal"](factors) == 0, axis=-1)
    return lu_solve((_f["where"](singular[..., None, None], one, factors), pivots), one), singular


def cond(x, /, p=None):
    """The condition number: the greatest over the smallest singular value (p=None, 2; -2 the other way round), or the
    norm p of x times that of its inverse. That of a singular matrix is infinite.

    >>> import nvm
    >>> nvm.linalg.cond(nvm.asarray([[2.0, 0.0], [0.0, 4.0]]))
    array(2.)
    """
    x = _as_inexact(_matrix("cond", x)[0])
    if not x.shape[-1] or not x.shape[-2]:
        raise _error()(f"[linalg.cond] a matrix without elements has no condition number; the shape is {x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        inverse, singular = _inverse(x, _square("cond", x)[1])
        r = _f["where"](singular, math.inf, matrix_norm(x, ord=p) * matrix_norm(inverse, ord=p))
    given = _f["any"](_f["isnan"](x), axis=(-2, -1))
    return _f["where"](_f["logical_and"](_f["isnan"](r), _f["logical_not"](given)), math.inf, r)


# ---- tensors
def tensorinv(x, /, ind=2):
    """The inverse of what tensordot(x, y, ind) does to y; extents before `ind` and those behind have one product.

    >>> import nvm
    >>> nvm.linalg.tensorinv(nvm.eye(4).reshape((4, 2, 2)), ind=1).shape
    (2, 2, 4)
    """
    x = _nvm.asarray(x)
    if ind <= 0:
        raise ValueError("[linalg.tensorinv] ind must be positive")
    rows, cols = x.shape[:ind], x.shape[ind:]
    return inv(x.reshape((math.prod(rows), math.prod(cols)))).reshape((*cols, *rows))


def tensorsolve(x1, x2, /, axes=None):
    """x of tensordot(x1, x, x.ndim) = x2; axes: dimensions of x1 that are moved to its end first.

    >>> import nvm
    >>> nvm.linalg.tensorsolve(nvm.eye(4).reshape((2, 2, 4)), nvm.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if axes is not None:
        axes = [a % x1.ndim for a in axes]
        x1 = _f["permute_dims"](x1, [d for d in range(x1.ndim) if d not in axes] + axes)
    shape = x1.shape[x2.ndim :]
    if math.prod(shape) != x2.size or x1.size != x2.size**2:
        raise _error()(
            f"[linalg.tensorsolve] an array of shape {x1.shape} is no square matrix for a right-hand side "
            f"of shape {x2.shape}"
        )
    return solve(x1.reshape((x2.size, math.prod(shape))), x2.reshape((x2.size,))).reshape(shape)


def kron(x1, x2, /):
    """The Kronecker product: each element of x1 times all of x2, as blocks.

    >>> import nvm
    >>> nvm.linalg.kron(nvm.asarray([1, 2]), nvm.asarray([1, 10]))
    array([ 1, 10,  2, 20])
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    rank = max(x1.ndim, x2.ndim)
    s1, s2 = ((1,) * (rank - x.ndim) + x.shape for x in (x1, x2))
    product = x1.reshape([n for e in s1 for n in (e, 1)]) * x2.reshape([n for e in s2 for n in (1, e)])
    return product.reshape([a * b for a, b in zip(s1, s2)])


# ---- functions of matrices
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
         670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)  # fmt: skip
_PADE_NORM = 4.25  # the norm up to which the quotient is accurate


def matrix_exp(x, /):
    """The exponential of square matrices: the Pade quotient of order 13 of x / 2^s, squared s times, s by the greatest
    norm of the batch.

    >>> import nvm
    >>> nvm.linalg.matrix_exp(nvm.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    from ._loops import while_loop

    x, n = _square("matrix_exp", x)
    if x.dtype.kind not in "fc":
        x = x.astype(_nvm.default_dtype())
    if not x.size:
        return x
    norm = _f["max"](matrix_norm(x, ord=1))
    s = _f["maximum"](_f["ceil"](_f["log2"](norm / _PADE_NORM)), 0)
    s = _f["where"](_f["isfinite"](s), s, 0)
    x = x * _f["exp2"](-s)
    one, mul = _f["eye"](n, dtype=x.dtype), _f["matmul"]
    x2 = mul(x, x)
    x4 = mul(x2, x2)
    x6 = mul(x4, x2)
    b = _PADE
    odd = mul(x6, x6 * b[13] + x4 * b[11] + x2 * b[9]) + x6 * b[7] + x4 * b[5] + x2 * b[3] + one * b[1]
    even = mul(x6, x6 * b[12] + x4 * b[10] + x2 * b[8]) + x6 * b[6] + x4 * b[4] + x2 * b[2] + one * b[0]
    odd = mul(x, odd)
    r = solve(even - odd, even + odd)
    return while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, mul(c[1], c[1])), (s, r))[1]


expm = matrix_exp
