"""Products of vectors, matrices and tensors."""

from .. import _nvm, linalg
from ._support import asarray, common_dtype, dtype_or_none, f, fault, public, to_out


def _product(multiply, a, b):
    """A product of arrays in their common dtype. The sums of bools are ors."""
    a, b = asarray(a), asarray(b)
    dtype = common_dtype(a, b)
    if dtype.name == "bool":
        return multiply(a.astype(_nvm.int64), b.astype(_nvm.int64)) != 0
    return multiply(a.astype(dtype), b.astype(dtype))


def dot(a, b, out=None):
    """The product of two arrays: of vectors their inner product, of matrices their matrix product.

    a, b: the sum is over the last axis of a and the last but one (of a vector, the only one) of b. With a number it is
        the plain product.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns an array with the other axes of a, then those of b, in the common dtype.
    Raises ValueError if the extents of the two axes differ.

    >>> import nvm.numpy as np
    >>> np.dot([1, 2, 3], [4, 5, 6])
    array(32)
    >>> np.dot([[1, 0], [0, 2]], [[1, 2], [3, 4]])
    array([[1, 2],
           [6, 8]])
    """
    return to_out("dot", _product(linalg.dot, a, b), out)


def inner(a, b, /):
    """Sums of products over the last axes of two arrays.

    a, b: arrays whose last extents are equal, or numbers.
    Returns an array with the other axes of a, then those of b, in the common dtype.
    Raises ValueError if the last extents differ.

    >>> import nvm.numpy as np
    >>> np.inner([[1, 2], [3, 4]], [5, 6])
    array([17, 39])
    """
    return _product(linalg.inner, a, b)


def outer(a, b, out=None):
    """Products of each element of one array with each of another.

    a, b: arrays of any shape, which are flattened.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    Returns a matrix (a.size, b.size) in the common dtype.

    >>> import nvm.numpy as np
    >>> np.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    return to_out("outer", _product(linalg.outer, asarray(a).reshape(-1), asarray(b).reshape(-1)), out)


def vdot(a, b, /):
    """The inner product of two arrays, both flattened, of which the first is conjugated.

    a, b: arrays of equal sizes.
    Returns an array of no dimensions in the common dtype.
    Raises ValueError if the sizes differ.

    >>> import nvm.numpy as np
    >>> np.vdot([1 + 2j, 3], [1j, 1])
    array(5.+1.j)
    """
    a, b = asarray(a).reshape(-1), asarray(b).reshape(-1)
    if a.shape != b.shape:
        raise fault(ValueError, f"cannot take the vdot of arrays of sizes {a.size} and {b.size}")
    return _product(linalg.dot, f["conj"](a) if a.dtype.kind == "c" else a, b)


def kron(a, b):
    """The Kronecker product: the second array, multiplied by each element of the first, in blocks.

    a, b: arrays; the one with fewer dimensions gets axes of extent 1 in front.
    Returns an array whose extents are products of theirs, in the common dtype.

    >>> import nvm.numpy as np
    >>> np.kron([1, 10], [[1, 2]])
    array([[ 1,  2, 10, 20]])
    """
    a, b = asarray(a), asarray(b)
    n = max(a.ndim, b.ndim)
    a, b = (x.reshape((1,) * (n - x.ndim) + x.shape) for x in (a, b))
    shape = [x * y for x, y in zip(a.shape, b.shape)]
    a, b = a.reshape([k for d in a.shape for k in (d, 1)]), b.reshape([k for d in b.shape for k in (1, d)])
    return _product(f["multiply"], a, b).reshape(shape)


def tensordot(a, b, axes=2):
    """Sums of products over several axes of two arrays.

    a, b: arrays.
    axes: how many of the last axes of a and the first of b; or a pair of sequences of axes of a and of b.
    Returns an array with the other axes of a, then those of b, in the common dtype.
    Raises ValueError if the extents of two axes differ.

    >>> import nvm.numpy as np
    >>> np.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]])
    array(5)
    >>> np.tensordot([[1, 2], [3, 4]], [5, 6], axes=(0, 0))
    array([23, 34])
    """
    return _product(lambda x, y: linalg.tensordot(x, y, axes=axes), a, b)


def einsum(*operands, out=None, optimize=False, **kwargs):
    """Sums of products of elements that letters for axes describe.

    operands: a text such as 'ij,jk->ik' and the arrays: an axis whose letter is not behind -> is summed over. Instead
        of the text, each array may be followed by a list of numbers for its axes.
    out: an array of nvm of the result's shape, to which the result is written and which is returned.
    optimize: how the order of products is chosen: False, True, 'greedy', 'optimal' or a path of einsum_path.
    kwargs: dtype, that of the result; order and casting are of NumPy's signature.
    Raises ValueError for a text that does not fit the arrays, TypeError for other arguments.

    >>> import nvm.numpy as np
    >>> np.einsum("ij,j->i", [[1, 2], [3, 4]], [10, 1])
    array([12, 34])
    >>> np.einsum("ii", [[1, 2], [3, 4]])
    array(5)
    """
    unknown = set(kwargs) - {"dtype", "order", "casting"}
    if unknown:
        raise fault(TypeError, f"Did not understand the following kwargs: {sorted(unknown)}")
    dtype = dtype_or_none(kwargs.get("dtype"))
    return to_out("einsum", linalg.einsum(*operands, optimize=optimize or None, dtype=dtype), out)


def einsum_path(*operands, optimize="greedy", einsum_call=False):
    """The order in which einsum multiplies operands, without doing so.

    operands, optimize: those of einsum.
    einsum_call: of NumPy's signature.
    Returns (a list, 'einsum_path' and then the positions of operands that meet in each step; a text that describes it).

    >>> import nvm.numpy as np
    >>> a, b, c = np.ones((2, 9)), np.ones((9, 9)), np.ones((9, 3))
    >>> np.einsum_path("ij,jk,kl->il", a, b, c)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    return linalg.einsum_path(*operands, optimize=optimize)


__all__ = public(globals())
