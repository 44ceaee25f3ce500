"""Grids and index arrays: mgrid, r_, indices, meshgrid, and positions between flat and many dimensions."""

import itertools

from .. import _creation as _base
from .. import _nvm
from ._creation import arange, linspace, ones, tri
from ._joining import concatenate
from ._sorting import nonzero
from ._support import Array, asarray, check_order, f, fault, product, public, shape_of


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """The coordinates of the points of a grid.

    xi: arrays of one dimension, the coordinates along each axis.
    copy: of NumPy's signature.
    sparse: True leaves extents of 1, which broadcast, in place of repeated coordinates.
    indexing: 'xy' puts the second argument's axis first, as pictures have it; 'ij' keeps the order.
    Returns a tuple of an array for each argument.
    Raises ValueError for another indexing.

    >>> import nvm.numpy as np
    >>> x, y = np.meshgrid([1, 2, 3], [10, 20])
    >>> x + y
    array([[11, 12, 13],
           [21, 22, 23]])
    """
    if indexing not in ("xy", "ij"):
        raise fault(ValueError, "Valid values for `indexing` are 'xy' and 'ij'.")
    xi = [asarray(x) for x in xi]
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axes[:2] = 1, 0
    columns = [x.reshape([-1 if d == axis else 1 for d in range(len(xi))]) for x, axis in zip(xi, axes)]
    if sparse:
        return tuple(columns)
    shape = _base.broadcast_shapes(*(c.shape for c in columns))
    return tuple(f["broadcast_to"](c, shape) for c in columns)


def indices(dimensions, dtype=int, sparse=False):
    """The coordinates of the positions of a shape.

    dimensions: a shape of n extents.
    dtype: that of the coordinates.
    sparse: True returns a tuple of n arrays with extents of 1, which broadcast.
    Returns an array (n, *dimensions).

    >>> import nvm.numpy as np
    >>> np.indices((2, 2))[1]
    array([[0, 1],
           [0, 1]])
    """
    dimensions, dtype = shape_of(dimensions), _nvm.dtype(dtype)
    n = len(dimensions)
    columns = [
        arange(d, dtype=dtype).reshape([-1 if i == k else 1 for k in range(n)]) for i, d in enumerate(dimensions)
    ]
    if sparse:
        return tuple(columns)
    if not columns:
        return f["zeros"]((0,), dtype=dtype)
    return f["stack"]([f["broadcast_to"](c, dimensions) for c in columns], axis=0)


def ix_(*args):
    """Index arrays that select some rows, some columns and so on.

    args: n sequences of positions, or masks.
    Returns a tuple of n arrays that broadcast against each other.
    Raises ValueError for more dimensions than one.

    >>> import nvm.numpy as np
    >>> np.arange(9).reshape(3, 3)[np.ix_([0, 2], [1, 2])]
    array([[1, 2],
           [7, 8]])
    """
    out = []
    for i, positions in enumerate(args):
        x = asarray(positions)
        if x.ndim != 1:
            raise fault(ValueError, "Cross index must be 1 dimensional")
        if not x.size:
            x = x.astype(_nvm.int64)
        x = nonzero(x)[0] if x.dtype == _nvm.bool else x
        out.append(x.reshape([-1 if k == i else 1 for k in range(len(args))]))
    return tuple(out)


def _points(part):
    """The numbers that a slice stands for: an imaginary step is their number, the stop included."""
    start, stop, step = part.start or 0, part.stop, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """mgrid and ogrid: grids written as slices."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        if isinstance(key, slice):
            return _points(key)
        columns = [_points(k) for k in key]
        exact = all(c.dtype.kind in "iu" for c in columns)
        columns = [c if exact else c.astype(_nvm.float64) for c in columns]
        columns = [c.reshape([-1 if i == k else 1 for k in range(len(key))]) for i, c in enumerate(columns)]
        if self._sparse:
            return tuple(columns)
        shape = _base.broadcast_shapes(*(c.shape for c in columns))
        return f["stack"]([f["broadcast_to"](c, shape) for c in columns], axis=0)


mgrid, ogrid = _Grid(False), _Grid(True)


class _Joined:
    """r_ and c_: arrays, numbers and slices joined along an axis. A text like '0,2' in front says the axis, the least
    number of dimensions, and where an array's own dimensions stand among them."""

    def __init__(self, axis=0, ndim=1, place=-1):
        self._how = axis, ndim, place

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        axis, ndim, place = self._how
        if key and isinstance(key[0], str):
            if key[0] in ("r", "c"):
                raise fault(ValueError, f"nvm has no matrices, which r_[{key[0]!r}, ...] would make")
            words = [int(w) for w in key[0].split(",")]
            axis, ndim, place = (*words, *(axis, ndim, place)[len(words) :])
            key = key[1:]
        if not key:
            raise fault(ValueError, "need at least one array to concatenate")
        return concatenate(_alike([self._part(k, ndim, place) for k in key], key), axis)

    def _part(self, part, ndim, place):
        x = _points(part) if isinstance(part, slice) else asarray(part)
        if isinstance(part, slice) or not x.ndim:
            shape = [1] * ndim
            shape[place] = x.size
            return x.reshape(shape)
        extra = ndim - x.ndim
        if extra <= 0:
            return x
        first = place if place >= 0 else extra + 1 + place
        return x.reshape((1,) * first + x.shape + (1,) * (extra - first))


def _alike(arrays, key):
    """Arrays in the dtype that they and the plain numbers among them have together; the numbers are weak."""
    weak = [type(k) in (bool, int, float, complex) for k in key]
    if all(weak):
        return arrays
    common = None
    for x in (x.reshape(-1)[:0] for x, w in zip(arrays, weak) if not w):
        common = x if common is None else f["where"](True, common[:0], x[:0])
    for number in (k for k, w in zip(key, weak) if w):
        common = f["where"](True, common, number)
    return [x.astype(common.dtype) for x in arrays]


r_, c_ = _Joined(), _Joined(-1, 2, 0)


class _Index:
    """s_ and index_exp: an index as a value."""

    def __init__(self, always_tuple):
        self._always_tuple = always_tuple

    def __getitem__(self, key):
        return (key,) if self._always_tuple and not isinstance(key, tuple) else key


s_, index_exp = _Index(False), _Index(True)


class ndindex:
    """An iterator over the positions of a shape: tuples of integers, the last one fastest.

    shape: extents, or a tuple of them.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> list(np.ndindex(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """

    def __init__(self, *shape):
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = shape[0]
        shape = shape_of(shape)
        if any(n < 0 for n in shape):
            raise fault(ValueError, "negative dimensions are not allowed")
        self._it = itertools.product(*map(range, shape))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._it)


class ndenumerate:
    """An iterator over the elements of an array and their positions: pairs of a tuple and a Python number.

    arr: an array of any shape, which is evaluated.

    >>> import nvm.numpy as np
    >>> list(np.ndenumerate([[1, 2]]))
    [((0, 0), 1), ((0, 1), 2)]
    """

    def __init__(self, arr):
        arr = asarray(arr)
        self._it = zip(ndindex(arr.shape), arr.reshape(-1).tolist())

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._it)


def diag_indices(n, ndim=2):
    """The positions of the main diagonal of an array.

    n: the extent of every dimension.
    ndim: the number of dimensions.
    Returns a tuple of ndim arrays (n,).

    >>> import nvm.numpy as np
    >>> x = np.zeros((2, 2))
    >>> x[np.diag_indices(2)] = 7
    >>> x
    array([[7., 0.],
           [0., 7.]])
    """
    return (arange(n),) * ndim


def diag_indices_from(arr):
    """The positions of the main diagonal of a given array.

    arr: an array of two or more equal extents.
    Returns a tuple of an array for each dimension.
    Raises ValueError for fewer dimensions, or different extents.

    >>> import nvm.numpy as np
    >>> np.diag_indices_from(np.ones((2, 2)))
    (array([0, 1]), array([0, 1]))
    """
    arr = asarray(arr)
    if arr.ndim < 2:
        raise fault(ValueError, "input array must be at least 2-d")
    if len(set(arr.shape)) > 1:
        raise fault(ValueError, f"All dimensions of input must be of equal length, not {arr.shape}")
    return diag_indices(arr.shape[0], arr.ndim)


def tril_indices(n, k=0, m=None):
    """The positions on a diagonal of a matrix and below it, row by row.

    n, m: the numbers of rows and of columns; as many columns as rows for None.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    Returns a tuple of two arrays: rows and columns.

    >>> import nvm.numpy as np
    >>> np.tril_indices(2)
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    return nonzero(tri(n, m, k=k, dtype=bool))


def triu_indices(n, k=0, m=None):
    """The positions on a diagonal of a matrix and above it, row by row.

    n, m: the numbers of rows and of columns; as many columns as rows for None.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    Returns a tuple of two arrays: rows and columns.

    >>> import nvm.numpy as np
    >>> np.triu_indices(3, k=1)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    return nonzero(~tri(n, m, k=k - 1, dtype=bool))


def _matrix(arr):
    arr = asarray(arr)
    if arr.ndim != 2:
        raise fault(ValueError, f"input array must be 2-d, not of shape {arr.shape}")
    return arr


def tril_indices_from(arr, k=0):
    """The positions on a diagonal of a given matrix and below it, row by row.

    arr: a matrix; only its shape counts.
    k: that of tril_indices.
    Returns a tuple of two arrays: rows and columns.
    Raises ValueError unless arr has two dimensions.

    >>> import nvm.numpy as np
    >>> np.tril_indices_from(np.ones((2, 3)), k=-1)
    (array([1]), array([0]))
    """
    arr = _matrix(arr)
    return tril_indices(arr.shape[0], k, arr.shape[1])


def triu_indices_from(arr, k=0):
    """The positions on a diagonal of a given matrix and above it, row by row.

    arr: a matrix; only its shape counts.
    k: that of triu_indices.
    Returns a tuple of two arrays: rows and columns.
    Raises ValueError unless arr has two dimensions.

    >>> import nvm.numpy as np
    >>> np.triu_indices_from(np.ones((2, 2)))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    arr = _matrix(arr)
    return triu_indices(arr.shape[0], k, arr.shape[1])


def mask_indices(n, mask_func, k=0):
    """The positions of a square matrix that a function of it does not make 0.

    n: the number of rows and columns.
    mask_func: a function of a matrix and k, such as np.triu.
    k: the second argument of the function.
    Returns a tuple of two arrays: rows and columns.

    >>> import nvm.numpy as np
    >>> np.mask_indices(2, np.triu, 1)
    (array([0]), array([1]))
    """
    return nonzero(mask_func(ones((n, n), int), k))


def _integers(who, x):
    x = asarray(x)
    if x.dtype.kind not in "iu" and x.size:
        raise TypeError(f"[{who}] only int indices permitted, not {x.dtype.name}")
    return x.astype(_nvm.int64)


def unravel_index(indices, shape, order="C"):
    """Positions in a flattened array as positions in its shape.

    indices: an array of integers, which is evaluated.
    shape: the shape.
    order: 'C' counts with the last axis fastest, 'F' with the first.
    Returns a tuple of int64 arrays, one for each dimension.
    Raises ValueError for a position outside the shape, TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.unravel_index([1, 5], (2, 3))
    (array([0, 1]), array([1, 2]))
    """
    shape, at = shape_of(shape), _integers("unravel_index", indices)
    fastest_first = check_order(order, "CF") == "F"
    total = product(shape)
    if at.size and bool(f["any"]((at < 0) | (at >= total))):
        raise fault(ValueError, f"an index is out of bounds for array with size {total}: shape {shape}")
    out = []
    for n in shape if fastest_first else shape[::-1]:
        out.append(f["remainder"](at, max(n, 1)))
        at = f["floor_divide"](at, max(n, 1))
    return tuple(out if fastest_first else out[::-1])


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Positions in a shape as positions in the flattened array.

    multi_index: a sequence of arrays of integers, one for each dimension.
    dims: the shape.
    mode: what happens to positions outside: 'raise', 'wrap' or 'clip', or a tuple of one for each dimension.
    order: 'C' counts with the last axis fastest, 'F' with the first.
    Returns an array of int64.
    Raises ValueError for a position outside the shape, or another number of arrays; TypeError for other dtypes.

    >>> import nvm.numpy as np
    >>> np.ravel_multi_index(([0, 1], [1, 2]), (2, 3))
    array([1, 5])
    """
    dims = shape_of(dims)
    if isinstance(multi_index, Array):
        multi_index = [multi_index[i] for i in range(multi_index.shape[0])]
    at = [_integers("ravel_multi_index", x) for x in multi_index]
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    if len(at) != len(dims):
        raise fault(ValueError, f"parameter multi_index must be a sequence of length {len(dims)}")
    at = [_kept_inside(x, n, m) for x, n, m in zip(at, dims, modes)]
    pairs = list(zip(at, dims))
    total = asarray(0)
    for x, n in pairs if check_order(order, "CF") == "C" else pairs[::-1]:
        total = total * n + x
    return total


def _kept_inside(x, n, mode):
    if mode == "wrap":
        return f["remainder"](x, n)
    if mode == "clip":
        return f["clip"](x, 0, n - 1)
    if mode != "raise":
        raise fault(ValueError, f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if x.size and bool(f["any"]((x < 0) | (x >= n))):
        raise fault(ValueError, f"invalid entry in coordinates array: an index is out of bounds for extent {n}")
    return x


__all__ = public(globals()) + ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]
