"""Linear algebra: the array API's linalg extension and NumPy's, products, einsum, SciPy's factors and triangular
matrices."""

from operator import index as _index

from . import _nvm
from ._creation import axis_of as _axis_of
from ._factor import (
    EighResult,
    EigResult,
    LinAlgError,
    QRResult,
    SlogdetResult,
    SVDResult,
    cho_factor,
    cho_solve,
    cholesky,
    cond,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    expm,
    inv,
    kron,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    matrix_exp,
    matrix_norm,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensorinv,
    tensorsolve,
)
from ._products import dot, einsum, einsum_path, inner, outer, tensordot

_f = _nvm.functions
diagonal, matmul, matrix_transpose = _f["diagonal"], _f["matmul"], _f["matrix_transpose"]
vecdot, vector_norm = _f["vecdot"], _f["vector_norm"]


def trace(x, /, *, offset=0, dtype=None):
    """Sum along a diagonal of the last two dimensions.

    >>> import nvm
    >>> nvm.linalg.trace(nvm.asarray([[1, 2], [3, 4]]))
    array(5)
    """
    return _f["sum"](diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cross(x1, x2, /, *, axis=-1):
    """Cross product of vectors of three elements.

    >>> import nvm
    >>> nvm.linalg.cross(nvm.asarray([1.0, 0.0, 0.0]), nvm.asarray([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    u, v = (_f["moveaxis"](x, axis, -1) for x in (x1, x2))
    if u.shape[-1] != 3 or v.shape[-1] != 3:
        shapes = " and ".join(str(tuple(x.shape)) for x in (x1, x2))
        raise ValueError(f"[cross] axis {axis} must have extent 3 in both arrays, got shapes {shapes}")
    a, b = ([x[..., i] for i in range(3)] for x in (u, v))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return _f["moveaxis"](_f["stack"](parts, axis=-1), -1, axis)


def norm(x, ord=None, axis=None, keepdims=False):
    """numpy.linalg.norm: of vectors along an axis, of matrices along two, of all elements for no axis and no ord.

    ord: of vectors a number (2), of matrices 'fro', 'nuc', 1, -1, 2, -2, inf or -inf ('fro').

    >>> import nvm
    >>> nvm.linalg.norm(nvm.asarray([3.0, 4.0]))
    array(5.)
    """
    x = _nvm.asarray(x)
    x = x if x.dtype.kind in "fc" else x.astype(_nvm.float64)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if axis is None and ord is None:
        n = vector_norm(x.reshape(-1))
        return n.reshape((1,) * x.ndim) if keepdims else n
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"[linalg.norm] there is no norm {ord!r} of vectors")
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"[linalg.norm] a norm is one of vectors or matrices; the axes are {axes} of shape {x.shape}")
    first, second = (_axis_of("linalg.norm", a, x.ndim) for a in axes)
    if first == second:
        raise ValueError("[linalg.norm] the two axes of matrices are different ones")
    matrices = _f["permute_dims"](x, [d for d in range(x.ndim) if d not in (first, second)] + [first, second])
    n = matrix_norm(matrices, ord="fro" if ord is None else ord)
    return n.reshape([1 if d in (first, second) else e for d, e in enumerate(x.shape)]) if keepdims else n


def multi_dot(arrays, /, *, dtype=None, precision=None):
    """The product of several matrices (the first and the last may be vectors), in the order that takes the fewest
    operations.

    >>> import nvm
    >>> nvm.linalg.multi_dot([nvm.ones((2, 3)), nvm.ones((3, 4)), nvm.ones(4)])
    array([12., 12.])
    """
    arrays = [_nvm.asarray(x) for x in arrays]
    n = len(arrays)
    if n < 2:
        raise ValueError("[multi_dot] needs at least two arrays")
    for i, x in enumerate(arrays):
        if x.ndim != 2 and (x.ndim != 1 or 0 < i < n - 1):
            raise ValueError(
                f"[multi_dot] array {i} has shape {x.shape}; arrays must be 2-D (the first and the last may be 1-D)"
            )
    terms = [[i, i + 1] for i in range(n)]
    if arrays[0].ndim == 1:
        terms[0] = [1]
    if arrays[-1].ndim == 1:
        terms[-1] = [n - 1]
    return einsum(
        *(a for pair in zip(arrays, terms) for a in pair),
        (terms[0][:-1] + terms[-1][1:]),
        dtype=dtype,
        precision=precision,
    )


def matrix_power(x, n, /):
    """A square matrix times itself, n times; its inverse, -n times, if n is negative.

    >>> import nvm
    >>> nvm.linalg.matrix_power(nvm.asarray([[1, 1], [0, 1]]), 3)
    array([[1, 3],
           [0, 1]])
    """
    x, n = _nvm.asarray(x), _index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"[matrix_power] needs square matrices, not {x.shape}")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return _f["broadcast_to"](_f["eye"](x.shape[-1], dtype=x.dtype), x.shape).copy()
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    return result


__all__ = [name for name in sorted(globals()) if name[0] != "_"]
