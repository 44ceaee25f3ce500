"""What the modules of nvm.numpy share: conversion of arguments, axes, results that are written to out=."""

import operator
import re
import sys
import warnings

from .. import _nvm
from .._array_api import result_type
from .._ufunc import UFUNCS, can_cast
from .._ufunc import __name__ as _UFUNC
from .exceptions import AxisError, ComplexWarning

f = _nvm.functions
Array, asarray = _nvm.Array, _nvm.asarray


_PACKAGE = __name__.rpartition(".")[0]
_HOMES = f"{_PACKAGE}._", _UFUNC  # the files that have functions under their own names
_OPERATION = re.compile(r"""\[[\w.]+\] |\w+: (?=item \d|['"]\w+['"] is )""")


def caller():
    """The function of nvm.numpy that the program called, or None. For errors: it looks at the stack."""
    own, name = sys.modules[_PACKAGE].__dict__["_FILES"], None
    frame = sys._getframe(1)
    while frame is not None:
        module, function = frame.f_globals.get("__name__") or "", frame.f_code.co_name
        if not module.startswith(_PACKAGE.rpartition(".")[0] + "."):
            break
        if module.startswith(_HOMES) and (function in own or function in UFUNCS):
            name = function
        frame = frame.f_back
    return name


def fault(kind, text):
    """An error of a kind, whose message names the function that the program called."""
    who = caller()
    return kind(f"[{who}] {text}" if who else text)


def _name_caller(error, who):
    """Puts the name of the called function, or `who`, where the message has that of an operation within it."""
    text = error.args[0] if len(error.args) == 1 else None
    within = isinstance(text, str) and _OPERATION.match(text)
    if within and within[0] not in ("[asarray] ", "[stack] "):
        who = None  # the operation itself names what fails; these two convert its operands
    who = within and (caller() or who)
    if who:
        error.args = (f"[{who}] {text[within.end() :]}",)


_nvm.hooks["name_caller"] = _name_caller


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
        raise AxisError(axis, ndim, name).of(caller())
    return axis % ndim if ndim else 0


def axes_of(axis, ndim, name=None, repeated=False):
    """A tuple of axes, each counted from the first one: all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(one_axis(a, ndim, name) for a in axes)
    if not repeated and len(set(axes)) != len(axes):
        raise fault(ValueError, f"repeated axis in `{name}` argument" if name else f"repeated axis: {axis}")
    return axes


def yes_or_no(name, value):
    """A bool from an argument that says yes or no; what is no number is none."""
    if value is NOT_GIVEN:
        return False
    if isinstance(value, (str, bytes, list, tuple, dict, set)) or value is None:
        raise fault(TypeError, f"{name} is True or False, not {value!r}")
    return bool(value)


def shape_of(shape):
    """A tuple of extents from a number or a sequence of numbers."""
    if isinstance(shape, (dict, set, str, bytes)):
        raise fault(TypeError, f"expected a sequence of integers or a single integer, got {shape!r}")
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
        raise ValueError(f"[{caller() or who}] out has shape {out.shape}, the result {result.shape}")
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
        raise fault(ValueError, f"order must be one of {', '.join(map(repr, allowed))}, not {order!r}")
    return "C" if order is None else order.upper()
