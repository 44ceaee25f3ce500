"""Python functions applied along axes, to pieces and to elements."""

from .. import _nvm
from ._shapes import broadcast_arrays, moveaxis
from ._support import Array, asarray, axes_of, f, fault, one_axis, product, public


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """What a function gives for each slice of one dimension along an axis.

    func1d: a function of an array (n,), of *args and **kwargs; it returns a number or an array, always of one shape. It
        is called once for each slice.
    axis: the axis.
    arr: an array, or what asarray takes.
    Returns an array with what the function gave in place of the axis.
    Raises ValueError if there are no slices, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.apply_along_axis(lambda row: row[-1] - row[0], 1, [[1, 2, 4], [3, 3, 9]])
    array([3, 6])
    """
    arr = asarray(arr)
    axis = one_axis(axis, arr.ndim)
    lead = arr.shape[:axis] + arr.shape[axis + 1 :]
    n = product(lead)
    if not n:
        raise fault(
            ValueError, f"Cannot apply_along_axis when any iteration dimensions are 0: {arr.shape}, axis {axis}"
        )
    rows = moveaxis(arr, axis, -1).reshape(n, arr.shape[axis])
    results = f["stack"]([asarray(func1d(rows[i], *args, **kwargs)) for i in range(n)], axis=0)
    own = results.shape[1:]
    results = results.reshape(lead + own)
    return moveaxis(results, tuple(range(len(lead), len(lead) + len(own))), tuple(range(axis, axis + len(own))))


def apply_over_axes(func, a, axes):
    """What a function that reduces an axis gives if it is called for one axis after another; the axes keep extent 1.

    func: a function of an array and an axis, such as np.sum.
    a: an array, or what asarray takes.
    axes: an axis, or a sequence of them.
    Raises ValueError if the function gives another number of dimensions, AxisError where there is no such axis.

    >>> import nvm.numpy as np
    >>> np.apply_over_axes(np.sum, [[1, 2], [3, 4]], [0, 1])
    array([[10]])
    """
    a = asarray(a)
    for axis in axes_of(axes, a.ndim):
        result = asarray(func(a, axis))
        if result.ndim != a.ndim:
            result = f["expand_dims"](result, axis=axis)
        if result.ndim != a.ndim:
            raise fault(ValueError, "function is not returning an array of the correct shape")
        a = result
    return a


def _are_several(condlist, x):
    """Is it a list of conditions, or an array of which each row is one? Else it is a single condition."""
    if hasattr(condlist, "ndim"):
        return condlist.ndim > (x.ndim > 0)
    if not isinstance(condlist, (list, tuple)):
        return False
    first = condlist[0] if condlist else []
    return not x.ndim or isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0


def piecewise(x, condlist, funclist, *args, **kw):
    """A function that is put together of pieces: at each position that of the last condition that holds there.

    x: an array, or what asarray takes.
    condlist: an array of bool, or a list of them, in the shape of x.
    funclist: as many functions or numbers; one more is for positions where no condition holds, which are 0 otherwise. A
        function is called with the elements at which its condition holds; in a trace, where their number is unknown,
        with all of x.
    args, kw: more arguments of the functions.
    Returns an array in the shape and dtype of x.
    Raises ValueError for another number of functions.

    >>> import nvm.numpy as np
    >>> np.piecewise([-2.0, 0.0, 3.0], [np.array([-2.0, 0.0, 3.0]) < 0], [lambda x: -x, 7])
    array([2., 7., 7.])
    """
    x = asarray(x)
    conditions = [asarray(c).astype(_nvm.bool) for c in (condlist if _are_several(condlist, x) else [condlist])]
    funclist = list(funclist)
    n = len(conditions)
    if len(funclist) not in (n, n + 1):
        raise fault(ValueError, f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    if len(funclist) == n + 1:
        held = conditions[0]
        for c in conditions[1:]:
            held = held | c
        conditions.append(~held)
    y = f["zeros"](x.shape, dtype=x.dtype)
    for condition, function in zip(conditions, funclist):
        if not callable(function):
            y[condition] = asarray(function).astype(x.dtype)
        elif _nvm.tracing():
            y = f["where"](condition, asarray(function(x, *args, **kw)).astype(x.dtype), y)
        elif (held := x[condition]).size:
            y[condition] = asarray(function(held, *args, **kw)).astype(x.dtype)
    return y


class vectorize:
    """A function of numbers as a function of arrays. It is called for each element, in a Python loop; a function that
    is written for arrays fuses, and is far faster.

    pyfunc: a function of Python numbers; without it, vectorize is a decorator.
    otypes: a list of the dtypes of what it returns; None takes those of the first call.
    doc: the docstring; None takes that of the function.
    excluded: positions and names of arguments that are passed as they are.
    cache, signature: of NumPy's signature; a signature raises ValueError.
    Calling it broadcasts the arguments and returns an array of their shape, or a tuple of them. It raises ValueError
        for arrays of no elements without otypes.

    >>> import nvm.numpy as np
    >>> np.vectorize(lambda a, b: a if a > b else a + b)([1, 5], 3)
    array([4, 5])
    """

    def __init__(self, pyfunc=None, otypes=None, doc=None, excluded=None, cache=False, signature=None):
        if signature is not None:
            raise fault(ValueError, "vectorize(signature=) is not here; nvm.jit and broadcasting do what it is for")
        self.pyfunc, self.otypes, self.excluded = pyfunc, otypes, set(excluded or ())
        self.cache, self.signature = cache, signature
        self.__doc__ = doc if doc is not None else getattr(pyfunc, "__doc__", None)

    def __call__(self, *args, **kwargs):
        if self.pyfunc is None:
            self.pyfunc = args[0]
            return self
        varied = [i for i in range(len(args)) if i not in self.excluded]
        named = [k for k in kwargs if k not in self.excluded]
        arrays = broadcast_arrays(*(args[i] for i in varied), *(kwargs[k] for k in named))
        shape = arrays[0].shape if arrays else ()
        if not product(shape) and self.otypes is None:
            raise fault(ValueError, "cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        args, kwargs, results = list(args), dict(kwargs), []
        for values in zip(*(a.reshape(-1).tolist() for a in arrays)):
            for i, value in zip(varied, values):
                args[i] = value
            kwargs.update(zip(named, values[len(varied) :]))
            results.append(self.pyfunc(*args, **kwargs))
        return self._collected(results, shape)

    def _collected(self, results, shape):
        types = [_nvm.dtype(t) for t in self.otypes] if self.otypes is not None else None
        if results and isinstance(results[0], tuple) or types and len(types) > 1:
            parts = list(zip(*results)) or [()] * len(types)
            types = types or [asarray(p[0]).dtype for p in parts]
            return tuple(asarray(list(p)).astype(t).reshape(shape) for p, t in zip(parts, types))
        dtype = types[0] if types else asarray(results[0]).dtype
        return asarray([r.item() if isinstance(r, Array) else r for r in results]).astype(dtype).reshape(shape)


def iterable(y):
    """Can an object be iterated over?

    y: any object.
    Returns a Python bool.

    >>> import nvm.numpy as np
    >>> np.iterable([1, 2]), np.iterable(3)
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


__all__ = public(globals())
