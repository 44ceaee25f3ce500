"""What the modules of nvm.numpy share: conversion of arguments, axes, results that are written to out=."""

import operator
import warnings

from .. import _nvm
from .._array_api import result_type
from .._ufunc import can_cast
from .exceptions import AxisError, ComplexWarning

f = _nvm.functions
Array, asarray = _nvm.Array, _nvm.asarray


class _NoValueType:
    """The default of an argument that was not given, where None would be a value."""

    def __repr__(self):
        return "<no value>"


NOT_GIVEN = _NoValueType()


def given(value, default=None):
    """The value of an argument, or the default if it was not given."""
    return default if value is NOT_GIVEN else value


def dtype_or_none(dtype):
    return None if dtype is None else _nvm.dtype(dtype)


def real_dtype(dtype):
    """The dtype of the parts of a complex one; another dtype as it is."""
    return {"complex64": _nvm.float32, "complex128": _nvm.float64}.get(dtype.name, dtype)


def common_dtype(*arrays):
    """The dtype that arrays have when they meet."""
    return result_type(*arrays)


def cast(x, dtype):
    """The array in a dtype, None: as it is; imaginary parts are dropped with a warning where the dtype is real."""
    if dtype is None or x.dtype == dtype:
        return x
    if x.dtype.kind == "c" != dtype.kind and dtype.name != "bool":
        warnings.warn("Casting complex values to real discards the imaginary part", ComplexWarning, 3)
        x = f["real"](x)
    return x.astype(dtype) if dtype.name != "bool" else x != 0


def inexact(x):
    """The array in a floating-point or complex dtype: integers and bools become float64."""
    return x if x.dtype.kind in "fc" else x.astype(_nvm.float64)


def one_axis(axis, ndim, name=None):
    """The axis, counted from the first one."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise AxisError(axis, ndim, name)
    return axis % ndim if ndim else 0


def axes_of(axis, ndim, name=None, repeated=False):
    """A tuple of axes, each counted from the first one: all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(one_axis(a, ndim, name) for a in axes)
    if not repeated and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in `{name}` argument" if name else "repeated axis")
    return axes


def shape_of(shape):
    """A tuple of extents from a number or a sequence of numbers."""
    if isinstance(shape, Array):
        shape = shape.tolist()
    elif hasattr(shape, "__index__"):
        shape = (shape,)
    return tuple(operator.index(n) for n in shape)


def product(extents):
    total = 1
    for n in extents:
        total *= n
    return total


def casts(source, target, casting="same_kind"):
    """May values of one dtype become values of the other under NumPy's rule of that name?"""
    return can_cast(source, target, casting)


def check_casts(who, source, target, casting="same_kind"):
    if not casts(source, target, casting):
        raise TypeError(f"[{who}] cannot cast {source.name} to {target.name} under the rule {casting!r}")


def to_out(who, result, out, casting="same_kind"):
    """The result; written to the array `out` if there is one, which is returned then."""
    if out is None:
        return result
    if not isinstance(out, Array):
        raise TypeError(f"[{who}] out must be an array of nvm, not {type(out).__name__}")
    if out.shape != result.shape:
        raise ValueError(f"[{who}] out has shape {out.shape}, the result {result.shape}")
    check_casts(who, result.dtype, out.dtype, casting)
    out[...] = cast(result, out.dtype)
    return out


def take_axis(x, index, axis):
    """x[..., index, ...] along an axis: the index is an integer, a slice or an index array."""
    return x[(slice(None),) * axis + (index,)]


def public(space):
    """The names of the functions and classes that a module defines itself."""
    own = space["__name__"]
    return [n for n, v in space.items() if not n.startswith("_") and getattr(v, "__module__", None) == own]


def check_order(order, allowed="CFAK"):
    """The letter of an order in memory; None is C."""
    if order is not None and (not isinstance(order, str) or len(order) != 1 or order.upper() not in allowed):
        raise ValueError(f"order must be one of {', '.join(map(repr, allowed))}, not {order!r}")
    return "C" if order is None else order.upper()
