"""Products of vectors, matrices and tensors."""

from .. import _nvm, linalg
from ._support import asarray, common_dtype, dtype_or_none, f, public, to_out


def _product(multiply, a, b):
    """A product of arrays in their common dtype. The sums of bools are ors."""
    a, b = asarray(a), asarray(b)
    dtype = common_dtype(a, b)
    if dtype.name == "bool":
        return multiply(a.astype(_nvm.int64), b.astype(_nvm.int64)) != 0
    return multiply(a.astype(dtype), b.astype(dtype))


def dot(a, b, out=None):
    """The product over the last axis of one array and the last but one of the other; of numbers, the plain product."""
    return to_out("dot", _product(linalg.dot, a, b), out)


def inner(a, b, /):
    """The product over the last axes of both arrays."""
    return _product(linalg.inner, a, b)


def outer(a, b, out=None):
    """Products of each element of one array with each of the other, both flattened."""
    return to_out("outer", _product(linalg.outer, asarray(a).reshape(-1), asarray(b).reshape(-1)), out)


def vdot(a, b, /):
    """The product of two arrays, both flattened, the first conjugated."""
    a, b = asarray(a).reshape(-1), asarray(b).reshape(-1)
    if a.shape != b.shape:
        raise ValueError(f"cannot take the vdot of arrays of sizes {a.size} and {b.size}")
    return _product(linalg.dot, f["conj"](a) if a.dtype.kind == "c" else a, b)


def kron(a, b):
    """The Kronecker product."""
    a, b = asarray(a), asarray(b)
    n = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (n - x.ndim) + x.shape) for x in (a, b))
    shape = [x * y for x, y in zip(a.shape, b.shape)]
    a, b = a.reshape([k for d in a.shape for k in (d, 1)]), b.reshape([k for d in b.shape for k in (1, d)])
    return _product(f["multiply"], a, b).reshape(shape)


def tensordot(a, b, axes=2):
    """The product over several axes of both arrays."""
    return _product(lambda x, y: linalg.tensordot(x, y, axes=axes), a, b)


def einsum(*operands, out=None, optimize=False, **kwargs):
    """Products and sums by Einstein's convention. dtype= says the dtype of the result."""
    unknown = set(kwargs) - {"dtype", "order", "casting"}
    if unknown:
        raise TypeError(f"Did not understand the following kwargs: {sorted(unknown)}")
    dtype = dtype_or_none(kwargs.get("dtype"))
    return to_out("einsum", linalg.einsum(*operands, optimize=optimize or None, dtype=dtype), out)


def einsum_path(*operands, optimize="greedy", einsum_call=False):
    """The order in which einsum would multiply its operands: a list of pairs and a description."""
    return linalg.einsum_path(*operands, optimize=optimize)


__all__ = public(globals())
