"""Arrays from shapes, numbers and data. An array of nvm has no order in memory that could be seen, so that order= is
checked and changes nothing; like= is an array of nvm or None."""

import builtins
import math
import operator

from .. import _creation as _base
from .. import _nvm
from ._shapes import moveaxis
from ._support import Array, check_order, dtype_or_none, f, inexact, one_axis, public, shape_of


def _placed(x, order, like, device=None):
    check_order(order)
    if like is not None and not isinstance(like, Array):
        raise TypeError(f"The `like` argument must be an array of nvm, not {type(like).__name__}")
    return x if device is None else x.to_device(device)


def _checked(shape):
    shape = shape_of(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"negative dimensions are not allowed: {shape}")
    return shape


def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """An array of data: an array of nvm as it is, others read without a copy where that is possible."""
    return _placed(_nvm.asarray(a, dtype=dtype_or_none(dtype), device=device, copy=copy), order, like)


def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """asarray: nvm's arrays have no subclasses."""
    return asarray(a, dtype, order, device=device, copy=copy, like=like)


def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, ndmax=0, like=None):
    """An array of its own from data, with at least ndmin dimensions."""
    x = asarray(object, dtype, order, copy=None if copy is None else bool(copy), like=like)
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def ascontiguousarray(a, dtype=None, *, like=None):
    """asarray, with at least one dimension."""
    x = asarray(a, dtype, like=like)
    return x if x.ndim else x.reshape(1)


def asfortranarray(a, dtype=None, *, like=None):
    """asarray, with at least one dimension: the order in memory is nvm's own."""
    return ascontiguousarray(a, dtype, like=like)


def asarray_chkfinite(a, dtype=None, order=None):
    """asarray; ValueError if there is an infinity or NaN."""
    x = asarray(a, dtype, order)
    if x.dtype.kind in "fc" and not f["all"](f["isfinite"](x)):
        raise ValueError("array must not contain infs or NaNs")
    return x


def require(a, dtype=None, requirements=None, *, like=None):
    """An array that meets requirements: C, F, A, W, O or E. Arrays of nvm meet all of them but F."""
    letters = {str(r).upper() for r in requirements or ()}
    names = {"C_CONTIGUOUS", "CONTIGUOUS", "F_CONTIGUOUS", "FORTRAN", "ALIGNED", "WRITEABLE", "OWNDATA", "ENSUREARRAY"}
    unknown = {r for r in letters if r not in names and r not in "CFAWOE"}
    if unknown:
        raise KeyError(unknown.pop())
    if {"C", "C_CONTIGUOUS", "CONTIGUOUS"} & letters and {"F", "F_CONTIGUOUS", "FORTRAN"} & letters:
        raise ValueError('Cannot specify both "C" and "F" order')
    return array(a, dtype, like=like) if {"O", "OWNDATA"} & letters else asarray(a, dtype, like=like)


def copy(a, order="K", subok=False):
    """A copy of the array."""
    return array(a, order=order)


def zeros(shape, dtype=None, order="C", *, device=None, like=None):
    """Zeros, of float64 unless told otherwise."""
    return _placed(f["zeros"](_checked(shape), dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def ones(shape, dtype=None, order="C", *, device=None, like=None):
    """Ones, of float64 unless told otherwise."""
    return _placed(f["ones"](_checked(shape), dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def empty(shape, dtype=None, order="C", *, device=None, like=None):
    """An array to be written to. (Its elements are zeros: nvm has no uninitialised memory.)"""
    return zeros(shape, dtype, order, device=device, like=like)


def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """One value everywhere, or values that broadcast to the shape, in their dtype unless told otherwise."""
    value = _nvm.asarray(fill_value, dtype=dtype_or_none(dtype), device=device)
    return _placed(f["broadcast_to"](value, _checked(shape)).copy(), order, like)


def _like(a, dtype, order, shape):
    check_order(order)
    a = _nvm.asarray(a)
    return (a.shape if shape is None else _checked(shape)), dtype_or_none(dtype) or a.dtype


def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Zeros in the shape and dtype of an array."""
    return zeros(*_like(a, dtype, order, shape), device=device)


def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Ones in the shape and dtype of an array."""
    return ones(*_like(a, dtype, order, shape), device=device)


def empty_like(prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """An array to be written to in the shape and dtype of another. (Its elements are zeros.)"""
    return zeros(*_like(prototype, dtype, order, shape), device=device)


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """One value in the shape and dtype of an array."""
    shape, dtype = _like(a, dtype, order, shape)
    if isinstance(fill_value, (builtins.int, builtins.float)) and not isinstance(fill_value, bool):
        _nvm.asarray(fill_value if dtype.kind != "b" else bool(fill_value), dtype=dtype)  # an integer has to fit
    return full(shape, _nvm.asarray(fill_value).astype(dtype), dtype, device=device)


def eye(N, M=None, k=0, dtype=float, order="C", *, device=None, like=None):
    """Ones on the k-th diagonal of a matrix."""
    N = operator.index(N)
    M = N if M is None else operator.index(M)
    _checked((N, M))
    k = max(-N, min(M, operator.index(k)))
    return _placed(f["eye"](N, M, k=k, dtype=dtype_or_none(dtype) or _nvm.float64, device=device), order, like)


def identity(n, dtype=None, *, like=None):
    """Ones on the main diagonal of a square matrix."""
    return eye(n, dtype=dtype, like=like)


def tri(N, M=None, k=0, dtype=float, *, like=None):
    """Ones on the k-th diagonal and below it."""
    M = N if M is None else M
    rows = f["arange"](builtins.max(operator.index(N), 0))[:, None]
    below = f["arange"](builtins.max(operator.index(M), 0))[None, :] <= rows + operator.index(k)
    return _placed(below.astype(dtype_or_none(dtype) or _nvm.float64), None, like)


def tril(m, k=0):
    """The matrices with zeros above the k-th diagonal."""
    m = _nvm.asarray(m)
    m = f["broadcast_to"](m, (m.size, m.size)) if m.ndim == 1 else m
    return f["tril"](m, k=k)


def triu(m, k=0):
    """The matrices with zeros below the k-th diagonal."""
    m = _nvm.asarray(m)
    m = f["broadcast_to"](m, (m.size, m.size)) if m.ndim == 1 else m
    return f["triu"](m, k=k)


def diag(v, k=0):
    """The k-th diagonal of a matrix, or a matrix with the k-th diagonal v."""
    v, k = _nvm.asarray(v), operator.index(k)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"Input must be 1- or 2-d, not of shape {v.shape}.")
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
    """A matrix whose k-th diagonal holds all the elements."""
    return diag(_nvm.asarray(v).reshape(-1), k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """Diagonals in the plane of two axes, along a new last axis."""
    a = _nvm.asarray(a)
    if a.ndim < 2:
        raise ValueError(f"diag requires an array of at least two dimensions, not of shape {a.shape}")
    axis1, axis2 = one_axis(axis1, a.ndim, "axis1"), one_axis(axis2, a.ndim, "axis2")
    if axis1 == axis2:
        raise ValueError("axis1 and axis2 cannot be the same")
    return f["diagonal"](moveaxis(a, (axis1, axis2), (-2, -1)), offset=operator.index(offset))


def vander(x, N=None, increasing=False):
    """A Vandermonde matrix: powers of the elements, one row for each."""
    x = _nvm.asarray(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    N = x.size if N is None else _checked(N)[0]
    dtype = f["where"](True, x, _nvm.asarray(0, dtype=_nvm.int64)).dtype
    columns = [f["ones"](x.shape, dtype=dtype)]
    for _ in range(N - 1):
        columns.append(columns[-1] * x)
    columns = columns[:N] if increasing else columns[:N][::-1]
    return f["stack"](columns, axis=1) if columns else f["zeros"]((x.size, 0), dtype=dtype)


def arange(start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None):
    """Numbers from start (alone: from 0 to start) in steps, up to stop and without it."""
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
    """Numbers at equal distances from start to stop, which is the last one with endpoint; retstep: the distance too."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
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
    """Powers of the base whose exponents lie at equal distances."""
    base = _nvm.asarray(base)
    if base.ndim:
        shape = _base.broadcast_shapes(_nvm.asarray(start).shape, _nvm.asarray(stop).shape, base.shape)
        start, stop = (f["broadcast_to"](_nvm.asarray(v), shape) for v in (start, stop))
        base = f["expand_dims"](f["broadcast_to"](base, shape), axis=axis)
    y = f["pow"](inexact(base), linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(_nvm.dtype(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Numbers of equal ratios from start to stop."""
    start, stop = inexact(_nvm.asarray(start)), inexact(_nvm.asarray(stop))
    if f["any"](start == 0) or f["any"](stop == 0):
        raise ValueError("Geometric sequence cannot include zero")
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
    """What a function of the coordinate arrays of a shape gives."""
    from ._grids import indices

    return function(*indices(shape, dtype=dtype), **kwargs)


def frombuffer(buffer, dtype=None, count=-1, offset=0, *, like=None):
    """An array over the bytes of a buffer."""
    dtype = dtype_or_none(dtype) or _nvm.float64
    data = memoryview(buffer).cast("B")
    if not 0 <= offset <= len(data) or (offset == len(data) and count):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)})")
    data = data[offset:]
    if count < 0:
        if len(data) % dtype.itemsize:
            raise ValueError(f"buffer size must be a multiple of element size: {len(data)} bytes of {dtype.name}")
        count = len(data) // dtype.itemsize
    if count * dtype.itemsize > len(data):
        raise ValueError(f"buffer is smaller than requested size: {len(data)} bytes, not {count * dtype.itemsize}")
    return _placed(_nvm.from_bytes(bytes(data[: count * dtype.itemsize]), dtype, (count,)), "C", like)


def fromiter(iter, dtype, count=-1, *, like=None):
    """An array of the values that an iterator gives: all of them, or count."""
    values = []
    for value in iter:
        if len(values) == count:
            break
        values.append(value)
    if len(values) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(values)} items.")
    return _placed(_nvm.asarray(values, dtype=_nvm.dtype(dtype)), "C", like)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of an object that has DLPack's methods."""
    return _nvm.from_dlpack(x, device=device, copy=copy)


__all__ = public(globals())
