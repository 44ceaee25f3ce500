"""The array API's linalg extension, as far as it is sums of products: no factorisations."""
from . import _nvm
from ._creation import broadcast_shapes

_f = _nvm.functions
diagonal, matmul, matrix_transpose = _f["diagonal"], _f["matmul"], _f["matrix_transpose"]
vecdot, vector_norm = _f["vecdot"], _f["vector_norm"]


def outer(x1, x2, /):
    """Products of each element of x1 with each of x2; both one-dimensional."""
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("[outer] both arrays must have one dimension")
    return x1[:, None] * x2[None, :]


def trace(x, /, *, offset=0, dtype=None):
    """Sum along a diagonal of the last two dimensions."""
    return _f["sum"](diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cross(x1, x2, /, *, axis=-1):
    """Cross product of vectors of three elements."""
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    shape = broadcast_shapes(x1.shape, x2.shape)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("[cross] the axis must have 3 elements in both arrays")
    x1, x2 = (_f["moveaxis"](_f["broadcast_to"](x, shape), axis, -1) for x in (x1, x2))
    a, b = ([x[..., i] for i in range(3)] for x in (x1, x2))
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return _f["moveaxis"](_f["stack"](parts, axis=-1), -1, axis)


def tensordot(x1, x2, /, *, axes=2):
    """Sum of products over several dimensions of both arrays."""
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if isinstance(axes, int):
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left, right = ([axes[i]] if isinstance(axes[i], int) else list(axes[i]) for i in (0, 1))
    left, right = [a % x1.ndim for a in left], [a % x2.ndim for a in right]
    if [x1.shape[a] for a in left] != [x2.shape[a] for a in right]:
        raise ValueError(f"[tensordot] contracted dimensions differ: {x1.shape} over {left}, {x2.shape} over {right}")
    keep1, keep2 = ([a for a in range(x.ndim) if a not in gone] for x, gone in ((x1, left), (x2, right)))
    n = 1
    for a in left:
        n *= x1.shape[a]
    m1 = _f["permute_dims"](x1, keep1 + left).reshape((x1.size // n if n else _size(x1, keep1), n))
    m2 = _f["permute_dims"](x2, right + keep2).reshape((n, x2.size // n if n else _size(x2, keep2)))
    return matmul(m1, m2).reshape(tuple(x1.shape[a] for a in keep1) + tuple(x2.shape[a] for a in keep2))


def _size(x, axes):
    n = 1
    for a in axes:
        n *= x.shape[a]
    return n
