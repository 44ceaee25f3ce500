"""Arrays from shapes, numbers and data. An array of nvm has no order in memory that could be seen, so that order= is
checked and changes nothing; like= is an array of nvm or None."""

import builtins
import math
import operator

from .. import _creation as _base
from .. import _nvm
from ._shapes import moveaxis
from ._support import Array, check_order, dtype_or_none, f, fault, inexact, one_axis, public, shape_of


def _placed(x, order, like, device=None):
    check_order(order)
    if like is not None and not isinstance(like, Array):
        raise fault(TypeError, f"The `like` argument must be an array of nvm, not {type(like).__name__}")
    return x if device is None else x.to_device(device)


def _checked(shape):
    shape = shape_of(shape)
    if any(n < 0 for n in shape):
        raise fault(ValueError, f"negative dimensions are not allowed: {shape}")
    return shape


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """An array of data, which is copied only where that is needed.

    a: an array of nvm, which is returned as it is unless dtype or device ask for another; numbers, or lists and tuples
        of them nested to equal lengths; an array of another library, an object with DLPack's methods or a buffer.
    dtype: a dtype, or its name; None takes that of the data: int64 of Python's integers, float64 of floats, complex128,
        bool.
    copy: True always copies, False raises ValueError where a copy is needed.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises TypeError for what holds no numbers, and ValueError for nested lists of different lengths.

    >>> import nvm.numpy as np
    >>> np.asarray([[1, 2], [3, 4]], dtype=np.float32)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _placed(_nvm.asarray(a, dtype=dtype_or_none(dtype), device=device, copy=copy), order, like)


def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """An array of data: what asarray gives, since nvm's arrays have no subclasses.

    The arguments and errors are those of asarray.

    >>> import nvm.numpy as np
    >>> np.asanyarray([1.5, 2])
    array([1.5, 2. ])
    """
    return asarray(a, dtype, order, device=device, copy=copy, like=like)


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, ndmax=0, like=None):
    """An array of its own, made from data.

    object: what asarray takes.
    dtype: a dtype, or its name; None takes that of the data.
    copy: True copies always, None where it is needed, False raises ValueError where it is needed.
    ndmin: the least number of dimensions; axes of extent 1 are put in front.
    ndmax: if not 0, the greatest number of dimensions of nested lists; more raise ValueError.
    order, subok, like: of NumPy's signature; an order is checked, and none of them changes the result.
    Raises TypeError for what holds no numbers, and ValueError for nested lists of different lengths.

    >>> import nvm.numpy as np
    >>> np.array([1, 2, 3], ndmin=2)
    array([[1, 2, 3]])
    >>> np.array([[1, 2], [3]])
    Traceback (most recent call last):
        ...
    ValueError: [array] the nested sequences do not have the same lengths; ...
    """
    x = asarray(object, dtype, order, copy=None if copy is None else bool(copy), like=like)
    if ndmax and x.ndim > operator.index(ndmax) and not hasattr(object, "dtype"):
        raise ValueError(f"[array] data of shape {x.shape} have more than ndmax={ndmax} dimensions")
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def ascontiguousarray(a, dtype=None, *, like=None):
    """An array of data, as asarray makes it, with at least one dimension.

    a, dtype: those of asarray; a number becomes an array of shape (1,).

    >>> import nvm.numpy as np
    >>> np.ascontiguousarray(7).shape
    (1,)
    """
    x = asarray(a, dtype, like=like)
    return x if x.ndim else x.reshape(1)


def asfortranarray(a, dtype=None, *, like=None):
    """An array of data, as asarray makes it, with at least one dimension.

    a, dtype: those of asarray. The order in memory is nvm's own and cannot be seen: numpy.asfortranarray(x) gives bytes
        in Fortran's.

    >>> import nvm.numpy as np
    >>> np.asfortranarray([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    return ascontiguousarray(a, dtype, like=like)


def asarray_chkfinite(a, dtype=None, order=None):
    """An array of data that has neither infinities nor NaN.

    a, dtype, order: those of asarray. The array is evaluated.
    Raises ValueError if an element is infinite or NaN.

    >>> import nvm.numpy as np
    >>> np.asarray_chkfinite([1.0, np.inf])
    Traceback (most recent call last):
        ...
    ValueError: [asarray_chkfinite] array must not contain infs or NaNs
    """
    x = asarray(a, dtype, order)
    if x.dtype.kind in "fc" and not f["all"](f["isfinite"](x)):
        raise fault(ValueError, "array must not contain infs or NaNs")
    return x


def require(a, dtype=None, requirements=None, *, like=None):
    """An array of data that meets requirements.

    a, dtype: those of asarray.
    requirements: letters or names, such as 'C' (C_CONTIGUOUS), 'W' (WRITEABLE) or 'O' (OWNDATA), which makes a copy;
        arrays of nvm meet all the others.
    Raises KeyError for a name that is none, ValueError if the orders of C and of Fortran are both wanted.

    >>> import nvm.numpy as np
    >>> np.require([1, 2], np.float64, ["C", "W"])
    array([1., 2.])
    """
    letters = {str(r).upper() for r in requirements or ()}
    names = {"C_CONTIGUOUS", "CONTIGUOUS", "F_CONTIGUOUS", "FORTRAN", "ALIGNED", "WRITEABLE", "OWNDATA", "ENSUREARRAY"}
    unknown = {r for r in letters if r not in names and r not in "CFAWOE"}
    if unknown:
        raise KeyError(unknown.pop())
    if {"C", "C_CONTIGUOUS", "CONTIGUOUS"} & letters and {"F", "F_CONTIGUOUS", "FORTRAN"} & letters:
        raise fault(ValueError, 'Cannot specify both "C" and "F" order')
    return array(a, dtype, like=like) if {"O", "OWNDATA"} & letters else asarray(a, dtype, like=like)


def copy(a, order="K", subok=False):
    """A copy of an array, in memory of its own.

    a: an array, or what asarray takes.
    order, subok: of NumPy's signature; an order is checked, and neither changes the result.

    >>> import nvm.numpy as np
    >>> x = np.zeros(2)
    >>> y = np.copy(x)
    >>> y[0] = 1
    >>> x
    array([0., 0.])
    """
    return array(a, order=order)


def zeros(shape, dtype=None, order="C", *, device=None, like=None):
    """An array of zeros.

    shape: an extent, or a tuple of them.
    dtype: a dtype, or its name; None is float64.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> np.zeros((2, 3), dtype=int)
    array([[0, 0, 0],
           [0, 0, 0]])
    """
    return _placed(f["zeros"](_checked(shape), dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def ones(shape, dtype=None, order="C", *, device=None, like=None):
    """An array of ones.

    shape: an extent, or a tuple of them.
    dtype: a dtype, or its name; None is float64.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> np.ones(3)
    array([1., 1., 1.])
    """
    return _placed(f["ones"](_checked(shape), dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def empty(shape, dtype=None, order="C", *, device=None, like=None):
    """An array to be written to. Its elements are zeros: nvm has no uninitialised memory.

    shape: an extent, or a tuple of them.
    dtype: a dtype, or its name; None is float64.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> np.empty((2, 0)).shape
    (2, 0)
    """
    return zeros(shape, dtype, order, device=device, like=like)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """An array that holds one value everywhere, or values repeated to a shape.

    shape: an extent, or a tuple of them.
    fill_value: a number, or an array that broadcasts to the shape.
    dtype: a dtype, or its name; None takes that of the value.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises ValueError if the value's shape does not broadcast to the shape.

    >>> import nvm.numpy as np
    >>> np.full((2, 2), [7, 8])
    array([[7, 8],
           [7, 8]])
    """
    value = _nvm.asarray(fill_value, dtype=dtype_or_none(dtype), device=device)
    return _placed(f["broadcast_to"](value, _checked(shape)).copy(), order, like)


def _like(a, dtype, order, shape):
    check_order(order)
    a = _nvm.asarray(a)
    return (a.shape if shape is None else _checked(shape)), dtype_or_none(dtype) or a.dtype


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Zeros in the shape and dtype of another array.

    a: an array, or what asarray takes.
    dtype, shape: instead of those of a, if they are not None.
    device: where the result lives; None is the default device. order, subok: of NumPy's signature.

    >>> import nvm.numpy as np
    >>> np.zeros_like([1.5, 2.5])
    array([0., 0.])
    """
    return zeros(*_like(a, dtype, order, shape), device=device)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Ones in the shape and dtype of another array.

    a: an array, or what asarray takes.
    dtype, shape: instead of those of a, if they are not None.
    device: where the result lives; None is the default device. order, subok: of NumPy's signature.

    >>> import nvm.numpy as np
    >>> np.ones_like([1, 2], dtype=bool)
    array([ True,  True])
    """
    return ones(*_like(a, dtype, order, shape), device=device)


def empty_like(prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array to be written to, in the shape and dtype of another. Its elements are zeros.

    prototype: an array, or what asarray takes.
    dtype, shape: instead of those of the prototype, if they are not None.
    device: where the result lives; None is the default device. order, subok: of NumPy's signature.

    >>> import nvm.numpy as np
    >>> np.empty_like(np.ones((2, 3), dtype=np.float32)).dtype.name
    'float32'
    """
    return zeros(*_like(prototype, dtype, order, shape), device=device)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """One value, or values, in the shape and dtype of another array.

    a: an array, or what asarray takes.
    fill_value: a number, or an array that broadcasts to the shape; it is cast to the dtype.
    dtype, shape: instead of those of a, if they are not None.
    device: where the result lives; None is the default device. order, subok: of NumPy's signature.
    Raises OverflowError for an integer that an integer dtype does not have.

    >>> import nvm.numpy as np
    >>> np.full_like([1.5, 2.5], 7)
    array([7., 7.])
    """
    shape, dtype = _like(a, dtype, order, shape)
    if isinstance(fill_value, (builtins.int, builtins.float)) and not isinstance(fill_value, bool):
        _nvm.asarray(fill_value if dtype.kind != "b" else bool(fill_value), dtype=dtype)  # an integer has to fit
    return full(shape, _nvm.asarray(fill_value).astype(dtype), dtype, device=device)


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """A matrix with ones on a diagonal and zeros elsewhere.

    N, M: the numbers of rows and of columns; as many columns as rows for None.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    dtype: a dtype, or its name.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    order, like: of NumPy's signature; an order is checked, and neither changes the result.
    Raises ValueError for a negative extent.

    >>> import nvm.numpy as np
    >>> np.eye(2, 3, k=1)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    N = operator.index(N)
    M = N if M is None else operator.index(M)
    _checked((N, M))
    k = max(-N, min(M, operator.index(k)))
    return _placed(f["eye"](N, M, k=k, dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def identity(n, dtype=None, *, like=None):
    """A square matrix with ones on its main diagonal and zeros elsewhere.

    n: the number of rows and columns.
    dtype: a dtype, or its name; None is float64.
    Raises ValueError for a negative n.

    >>> import nvm.numpy as np
    >>> np.identity(2, dtype=int)
    array([[1, 0],
           [0, 1]])
    """
    return eye(n, dtype=dtype, like=like)


def tri(N, M=None, k=0, dtype=float, *, like=None):
    """A matrix with ones on a diagonal and below it, and zeros above.

    N, M: the numbers of rows and of columns; as many columns as rows for None.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    dtype: a dtype, or its name.

    >>> import nvm.numpy as np
    >>> np.tri(3, dtype=int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    M = N if M is None else M
    rows = f["arange"](builtins.max(operator.index(N), 0))[:, None]
    below = f["arange"](builtins.max(operator.index(M), 0))[None, :] <= rows + operator.index(k)
    return _placed(below.astype(dtype_or_none(dtype) or _nvm.float64), None, like)


def tril(m, k=0):
    """Matrices whose elements above a diagonal are made zero.

    m: an array (..., rows, columns), whose dtype the result has. One of shape (n,) stands for n equal rows.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.

    >>> import nvm.numpy as np
    >>> np.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    m = _nvm.asarray(m)
    m = f["broadcast_to"](m, (m.size, m.size)) if m.ndim == 1 else m
    return f["tril"](m, k=k)


def triu(m, k=0):
    """Matrices whose elements below a diagonal are made zero.

    m: an array (..., rows, columns), whose dtype the result has. One of shape (n,) stands for n equal rows.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.

    >>> import nvm.numpy as np
    >>> np.triu([[1, 2], [3, 4]], k=1)
    array([[0, 2],
           [0, 0]])
    """
    m = _nvm.asarray(m)
    m = f["broadcast_to"](m, (m.size, m.size)) if m.ndim == 1 else m
    return f["triu"](m, k=k)


def diag(v, k=0):
    """A diagonal of a matrix, or a matrix made of its diagonal.

    v: of two dimensions: the diagonal is returned. Of one, n elements: a square matrix of n + |k| rows is returned,
        with zeros beside the diagonal.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    Raises ValueError for other numbers of dimensions.

    >>> import nvm.numpy as np
    >>> np.diag([1, 2])
    array([[1, 0],
           [0, 2]])
    >>> np.diag([[1, 2], [3, 4]])
    array([1, 4])
    """
    v, k = _nvm.asarray(v), operator.index(k)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise fault(ValueError, f"Input must be 1- or 2-d, not of shape {v.shape}.")
    n = v.size + builtins.abs(k)
    matrix = f["where"](f["eye"](v.size, dtype=_nvm.bool), v[:, None], _nvm.asarray(0, dtype=v.dtype))
    return f["pad"](
        matrix,
        [
            (builtins.max(-k, 0), n - v.size - builtins.max(-k, 0)),
            (builtins.max(k, 0), n - v.size - builtins.max(k, 0)),
        ],
    )


def diagflat(v, k=0):
    """A matrix whose diagonal holds all elements of an array.

    v: an array of any shape, of n elements.
    k: the diagonal: 0 is the main one, positive ones lie above it, negative ones below.
    Returns a square matrix of n + |k| rows in the dtype of v.

    >>> import nvm.numpy as np
    >>> np.diagflat([1, 2], k=1)
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]])
    """
    return diag(_nvm.asarray(v).reshape(-1), k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Diagonals in the plane of two axes.

    a: an array of two or more dimensions.
    offset: which diagonal: 0 is the main one, positive ones begin further along axis2, negative ones along axis1.
    axis1, axis2: the two axes.
    Returns an array without the two axes, with the diagonals along a new last one.
    Raises ValueError for fewer dimensions or equal axes, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    array([2, 6])
    """
    a = _nvm.asarray(a)
    if a.ndim < 2:
        raise fault(ValueError, f"diag requires an array of at least two dimensions, not of shape {a.shape}")
    axis1, axis2 = one_axis(axis1, a.ndim, "axis1"), one_axis(axis2, a.ndim, "axis2")
    if axis1 == axis2:
        raise fault(ValueError, "axis1 and axis2 cannot be the same")
    return f["diagonal"](moveaxis(a, (axis1, axis2), (-2, -1)), offset=operator.index(offset))


def vander(x, N=None, increasing=False):
    """A Vandermonde matrix: a row of powers for each element.

    x: an array of shape (n,).
    N: the number of columns; n for None.
    increasing: True puts the power 0 in the first column, False in the last.
    Returns an array (n, N), of int64 for integers.
    Raises ValueError if x has not one dimension.

    >>> import nvm.numpy as np
    >>> np.vander([1, 2, 3], 3)
    array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]])
    """
    x = _nvm.asarray(x)
    if x.ndim != 1:
        raise fault(ValueError, "x must be a one-dimensional array or sequence.")
    N = x.size if N is None else _checked(N)[0]
    dtype = f["where"](True, x, _nvm.asarray(0, dtype=_nvm.int64)).dtype
    columns = [f["ones"](x.shape, dtype=dtype)]
    for _ in range(N - 1):
        columns.append(columns[-1] * x)
    columns = columns[:N] if increasing else columns[:N][::-1]
    return f["stack"](columns, axis=1) if columns else f["zeros"]((x.size, 0), dtype=dtype)


def arange(start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None):
    """Numbers at equal steps, up to a stop that is not among them.

    start_or_stop, stop: the first number and the stop; alone, the stop, with 0 as the first number.
    step: the distance of neighbours, which may be negative.
    dtype: a dtype, or its name; None is int64 for integers, float64 for floats.
    device: where the result lives, such as 'cpu' or 'cuda:0'; None is the default device.
    Raises ZeroDivisionError for a step of 0.

    >>> import nvm.numpy as np
    >>> np.arange(3)
    array([0, 1, 2])
    >>> np.arange(1, 2, 0.25)
    array([1.  , 1.25, 1.5 , 1.75])
    """
    step = 1 if step is None else step
    if step == 0:
        raise ZeroDivisionError("[arange] the step is 0")
    numbers = [_number(v) for v in (start_or_stop, stop, step)]
    return _placed(
        _base.arange(numbers[0], numbers[1], numbers[2], dtype=dtype_or_none(dtype), device=device), "C", like
    )


def _number(v):
    """A Python number of a 0-d array or NumPy's scalar."""
    return v.item() if hasattr(v, "item") and getattr(v, "shape", None) == () else v


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Numbers at equal distances from a start to a stop.

    start, stop: numbers, or arrays that broadcast, which give a row of numbers for each pair.
    num: how many.
    endpoint: is the stop the last number? Without it the distance is (stop - start) / num.
    retstep: True returns (numbers, distance).
    dtype: a dtype, or its name; None is float64 or complex128. For an integer dtype numbers are rounded down.
    axis: where the numbers lie in the result, if start and stop are arrays.
    device: where the result lives, such as 'cpu' or 'cuda:0'.
    Raises ValueError for a negative num.

    >>> import nvm.numpy as np
    >>> np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> np.linspace(0, 1, 4, endpoint=False, retstep=True)
    (array([0.  , 0.25, 0.5 , 0.75]), array(0.25))
    """
    num = operator.index(num)
    if num < 0:
        raise fault(ValueError, f"Number of samples, {num}, must be non-negative.")
    start, stop = inexact(_nvm.asarray(start)), inexact(_nvm.asarray(stop))
    delta, n = stop - start, num - 1 if endpoint else num
    at = f["arange"](num).astype(delta.dtype).reshape((num,) + (1,) * delta.ndim)
    step = delta / n if n > 0 else math.nan
    y = at * step if n > 0 else at * delta
    y = y + start
    if endpoint and num > 1:
        last = f["arange"](num).reshape(at.shape) == num - 1
        y = f["where"](last, stop, y)
    y = _in_dtype(y, dtype_or_none(dtype))
    y = moveaxis(y, 0, axis) if axis else y
    y = y if device is None else y.to_device(device)
    return (y, step) if retstep else y


def _in_dtype(y, dtype):
    return y if dtype is None else (f["floor"](y) if dtype.kind in "iu" else y).astype(dtype)


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Powers of a base whose exponents lie at equal distances.

    start, stop: the first exponent and the last one; numbers, or arrays that broadcast.
    num, endpoint, dtype, axis: those of linspace.
    base: a number, or an array that broadcasts with start and stop.

    >>> import nvm.numpy as np
    >>> np.logspace(0, 3, 4)
    array([   1.,   10.,  100., 1000.])
    >>> np.logspace(0, 3, 4, base=2, dtype=int)
    array([1, 2, 4, 8])
    """
    base = _nvm.asarray(base)
    if base.ndim:
        shape = _base.broadcast_shapes(_nvm.asarray(start).shape, _nvm.asarray(stop).shape, base.shape)
        start, stop = (f["broadcast_to"](_nvm.asarray(v), shape) for v in (start, stop))
        base = f["expand_dims"](f["broadcast_to"](base, shape), axis=axis)
    y = f["pow"](inexact(base), linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(_nvm.dtype(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers from a start to a stop of which neighbours have the same ratio.

    start, stop: numbers, or arrays that broadcast, real with the same sign, or complex.
    num, endpoint, dtype, axis: those of linspace.
    Raises ValueError if a start or a stop is 0. They are evaluated.

    >>> import nvm.numpy as np
    >>> np.geomspace(1, 8, 4)
    array([1., 2., 4., 8.])
    """
    start, stop = inexact(_nvm.asarray(start)), inexact(_nvm.asarray(stop))
    if f["any"](start == 0) or f["any"](stop == 0):
        raise fault(ValueError, "Geometric sequence cannot include zero")
    start, stop = f["where"](True, start, stop), f["where"](True, stop, start)
    if start.dtype.kind == "f":
        sign = f["sign"](start) if f["any"]((start < 0) & (stop < 0)) else None
        turn = f["where"]((start < 0) & (stop < 0), -1.0, 1.0).astype(start.dtype) if sign is not None else 1
    else:
        turn = start / f["abs"](start)
    first, last = start / turn, stop / turn
    y = logspace(f["log10"](first), f["log10"](last), num, endpoint)
    at = f["arange"](y.shape[0]).reshape((-1,) + (1,) * (y.ndim - 1))
    y = f["where"](at == 0, first, y)
    if endpoint and y.shape[0] > 1:
        y = f["where"](at == y.shape[0] - 1, last, y)
    y = _in_dtype_rounded(y * turn, dtype_or_none(dtype))
    return moveaxis(y, 0, axis) if axis else y


def _in_dtype_rounded(y, dtype):
    return y if dtype is None else y.astype(dtype)


def fromfunction(function, shape, *, dtype=float, like=None, **kwargs):
    """What a function gives for the coordinates of a grid.

    function: it is called once, with an array of coordinates for each dimension, and **kwargs.
    shape: the shape of the arrays of coordinates.
    dtype: their dtype.
    Returns what the function returns.

    >>> import nvm.numpy as np
    >>> np.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    array([[ 0,  1,  2],
           [10, 11, 12]])
    """
    from ._grids import indices

    return function(*indices(shape, dtype=dtype), **kwargs)


def frombuffer(buffer, dtype=None, count=-1, offset=0, *, like=None):
    r"""An array of the numbers whose bytes a buffer holds, which are copied.

    buffer: bytes, or another object with the buffer protocol.
    dtype: the dtype of the numbers; None is float64.
    count: how many numbers; -1: all.
    offset: the first byte.
    Returns an array of shape (count,).
    Raises ValueError if the buffer has too few bytes, or for count=-1, bytes for a part of a number.

    >>> import nvm.numpy as np
    >>> np.frombuffer(b"\x01\x02\x03\x04", dtype=np.uint8, offset=1)
    array([2, 3, 4], dtype=uint8)
    """
    dtype = dtype_or_none(dtype) or _nvm.float64
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data) or (offset == len(data) and count):
        raise fault(ValueError, f"offset must be non-negative and no greater than buffer length ({len(data)})")
    data = data[offset:]
    if count < 0:
        if len(data) % dtype.itemsize:
            raise fault(
                ValueError, f"buffer size must be a multiple of element size: {len(data)} bytes of {dtype.name}"
            )
        count = len(data) // dtype.itemsize
    if count * dtype.itemsize > len(data):
        raise fault(
            ValueError, f"buffer is smaller than requested size: {len(data)} bytes, not {count * dtype.itemsize}"
        )
    return _placed(_nvm.from_bytes(bytes(data[: count * dtype.itemsize]), dtype, (count,)), "C", like)


def fromiter(iter, dtype, count=-1, *, like=None):
    """An array of the numbers that an iterator gives.

    iter: an iterable of numbers.
    dtype: the dtype of the result.
    count: how many numbers are taken; -1: all.
    Returns an array of shape (count,).
    Raises ValueError if the iterator gives fewer numbers.

    >>> import nvm.numpy as np
    >>> np.fromiter((i * i for i in range(4)), dtype=np.int32)
    array([0, 1, 4, 9], dtype=int32)
    """
    values = []
    for value in iter:
        if len(values) == count:
            break
        values.append(value)
    if len(values) < count:
        raise fault(ValueError, f"iterator too short: Expected {count} but iterator had only {len(values)} items.")
    return _placed(_nvm.asarray(values, dtype=_nvm.dtype(dtype)), "C", like)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of another library's array.

    x: an object with the methods __dlpack__ and __dlpack_device__.
    device: where the result lives; None: where x lives.
    copy: True copies, False raises where a copy is needed, None copies where it is needed.
    Raises BufferError for dtypes and devices that nvm has not.

    >>> import nvm.numpy as np
    >>> import numpy
    >>> np.from_dlpack(numpy.arange(3))
    array([0, 1, 2])
    """
    return _nvm.from_dlpack(x, device=device, copy=copy)


__all__ = public(globals())
