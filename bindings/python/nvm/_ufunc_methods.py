"""The methods of ufuncs: reduce, accumulate, reduceat, outer, at. What the library reduces is one operation; other
associative functions are applied to halves, the rest to one element after the other, in a loop that is traced once."""

from math import prod

from . import _nvm
from ._creation import axis_of
from ._loops import scan
from ._order import unique_all

_f = _nvm.functions
REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
SCANS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def _logical(name):
    def find():
        from ._ufunc import UFUNCS

        return UFUNCS[name]

    return find


_OF_BOOL = {"add": _logical("logical_or"), "multiply": _logical("logical_and")}  # sums and products in bool


def _needs_binary(self, method):
    if self.signature:
        raise RuntimeError(f"{self.__name__}.{method} is not defined: its operands have dimensions of their own")
    if self.nin != 2 or self.nout != 1:
        raise ValueError(f"{self.__name__}.{method} is only defined for functions of two operands with one result")


def _operand(self, x, dtype):
    x = _nvm.asarray(x, dtype=dtype)
    return x != 0 if self.__name__.startswith("logical_") and x.dtype.kind != "b" else x


def _meet(x, dtype, out):
    """(out, the dtype of the call): without one that in which x and out meet."""
    out = out[0] if isinstance(out, tuple) else out
    if dtype is None and hasattr(out, "dtype"):
        x, theirs = _nvm.asarray(x), _nvm.dtype(out.dtype)
        dtype = None if x.dtype == theirs == _nvm.bool else _f["where"](True, x, _f["zeros"]((), dtype=theirs)).dtype
    return out, dtype


def _deliver(self, r, out):
    if out is None:
        return r
    if r.dtype.kind == "c" and hasattr(out, "dtype") and _nvm.dtype(out.dtype).kind != "c":
        from .numpy._support import cast

        r = cast(r, _nvm.dtype(out.dtype))  # which warns
    return self._store(r, out, True, "unsafe")


def _axes(self, axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(axis_of(self.__name__ + ".reduce", a, ndim) for a in axes)
    if len(set(axes)) < len(axes):
        raise ValueError(f"[{self.__name__}.reduce] an axis is named twice in {axis}")
    return axes


def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """One value along an axis, several, or (None) all of them."""
    _needs_binary(self, "reduce")
    out, dtype = _meet(array, dtype, out)
    if dtype is not None and self.__name__ in _OF_BOOL and _nvm.dtype(dtype) == _nvm.bool:
        return _deliver(self, reduce(_OF_BOOL[self.__name__](), array, axis, None, None, keepdims, initial, where), out)
    x = _operand(self, array, dtype)
    axes = _axes(self, axis, x.ndim)
    if initial is not None and x.dtype.kind == "b" and self.__name__ not in SCANS:
        initial = bool(initial)
    if isinstance(initial, float) and x.dtype.kind in "iu":
        initial = int(initial)
    if self.__name__ in REDUCTIONS and not (initial is not None and self.__name__.startswith("logical_")):
        given = {} if where is True else {"where": where}
        given.update({} if initial is None else {"initial": initial})
        given.update({} if dtype is None or self.__name__ not in SCANS else {"dtype": dtype})
        r = _f[REDUCTIONS[self.__name__]](x, axis=axes, keepdims=keepdims, **given)
    else:
        r = _reduce(self, x, axes, initial, where)
        if initial is None and self.__name__ in ("gcd", "hypot"):
            r = self.function(r, self.identity)  # which takes the sign of what is reduced alone
        if keepdims:
            r = r.reshape(tuple(1 if d in axes else n for d, n in enumerate(x.shape)))
    return _deliver(self, r, out)


def _identity_in(self, dtype):
    """The identity in a dtype: -1 stands for all bits, in unsigned dtypes and bool too."""
    zero = _nvm.asarray(0, dtype=dtype)
    return ~zero if self.identity == -1 else _nvm.asarray(self.identity, dtype=dtype)


def _reduce(self, x, axes, initial, where):
    if len(axes) > 1 and not self.merges:
        raise ValueError(f"{self.__name__}.reduce takes one axis, since its operands may not change places")
    x = x.astype(self.function(x, x).dtype) if self.merges else x
    if where is not True:
        if initial is None and self.identity is None:
            raise ValueError(f"{self.__name__}.reduce has no identity, so that where= needs initial=")
        first = _identity_in(self, x.dtype) if initial is None else _nvm.asarray(initial, dtype=x.dtype)
        x = _f["where"](where, x, first)
    rest = [d for d in range(x.ndim) if d not in axes]
    kept = tuple(x.shape[d] for d in rest)
    x = _f["permute_dims"](x, list(axes) + rest).reshape((prod(x.shape[d] for d in axes),) + kept)
    if initial is not None:
        first = _f["broadcast_to"](_nvm.asarray(initial, dtype=x.dtype), (1,) + kept)
        x = _f["concat"]([first, x], axis=0)
    if not x.shape[0]:
        if self.identity is None:
            raise ValueError(f"{self.__name__}.reduce of no elements has no value, since it has no identity")
        return _f["broadcast_to"](_identity_in(self, x.dtype), kept)
    return _halve(self, x) if self.merges else _follow(self, x)[0]


def _halve(self, x):
    while (n := x.shape[0]) > 1:
        y = self.function(x[: n // 2], x[n // 2 : n // 2 * 2])
        x = _f["concat"]([y, x[n // 2 * 2 :]], axis=0) if n % 2 else y
    return x[0]


def _follow(self, x):
    """(the last, all) of the results along the first axis, one after the other."""
    first = x[0].astype(self.function(x[0], x[0]).dtype)

    def step(carry, row):
        y = self.function(carry, row)
        return y, y

    if x.shape[0] == 1:
        return first, first[None]
    last, later = scan(step, first, x[1:])
    return last, _f["concat"]([first[None], later], axis=0)


def accumulate(self, array, axis=0, dtype=None, out=None):
    """The results of reduce for the first element along an axis, the first two, and so on."""
    _needs_binary(self, "accumulate")
    out, dtype = _meet(array, dtype, out)
    if dtype is not None and self.__name__ in _OF_BOOL and _nvm.dtype(dtype) == _nvm.bool:
        return _deliver(self, accumulate(_OF_BOOL[self.__name__](), array, axis), out)
    x = _operand(self, array, dtype)
    if axis is None and x.ndim != 1:
        raise ValueError(f"{self.__name__}.accumulate goes along one axis, so that axis=None needs one dimension")
    axis = axis_of(self.__name__ + ".accumulate", axis or 0, x.ndim)
    if self.__name__ in SCANS:
        r = _f[SCANS[self.__name__]](x, axis=axis, dtype=dtype)
    elif not x.size:
        r = x
    else:
        rows = _f["moveaxis"](x, axis, 0)
        rows = _double(self, rows) if self.merges else _follow(self, rows)[1]
        r = _f["moveaxis"](rows, 0, axis)
    return _deliver(self, r, out)


def _double(self, x):
    """Each row joined with the one before, then with the two before those, the four ..."""
    x, step = x.astype(self.function(x, x).dtype), 1
    while step < x.shape[0]:
        x = _f["concat"]([x[:step], self.function(x[:-step], x[step:])], axis=0)
        step *= 2
    return x


def reduceat(self, array, indices, axis=0, dtype=None, out=None):
    """reduce of the elements from each index up to the next; the element alone where the next is not greater. The
    values of the indices are needed."""
    _needs_binary(self, "reduceat")
    out, dtype = _meet(array, dtype, out)
    x, starts = _operand(self, array, dtype), _nvm.asarray(indices)
    axis = axis_of(self.__name__ + ".reduceat", axis, x.ndim)
    x, n = _f["moveaxis"](x, axis, 0), x.shape[axis]
    starts = starts.tolist()
    for i in starts:
        if not 0 <= i < n:
            raise IndexError(f"[{self.__name__}.reduceat] index {i} is out of range for axis {axis} of extent {n}")
    lengths = [max(b - a, 1) for a, b in zip(starts, starts[1:] + [n])]
    r = _f["moveaxis"](_segments(self, x, starts, lengths, dtype), 0, axis)
    return _deliver(self, r, out)


def _segments(self, x, starts, lengths, dtype):
    """The reductions of x[start : start + length]; those of one length are made together."""
    parts, order = [], []
    for length in sorted(set(lengths)):
        which = [i for i, n in enumerate(lengths) if n == length]
        at = _nvm.asarray([starts[i] for i in which])[:, None] + _f["arange"](length)
        rows = _f["take"](x, at.reshape(-1), axis=0).reshape(at.shape + x.shape[1:])
        whole = self.__name__ in REDUCTIONS
        parts.append(reduce(self, rows, axis=1, dtype=dtype) if whole else _reduce(self, rows, (1,), None, True))
        order += which
    if not parts:
        return x[:0]
    places = sorted(range(len(order)), key=order.__getitem__)
    return _f["take"](_f["concat"](parts, axis=0), _nvm.asarray(places), axis=0)


def outer(self, A, B, /, **given):
    """The function of each element of A with each of B."""
    _needs_binary(self, "outer")
    A, B = _nvm.asarray(A), _nvm.asarray(B)
    return self(A.reshape(A.shape + (1,) * B.ndim), B, **given)


def at(self, a, indices, b=None, /):
    """a[indices] = function(a[indices], b) in place, where an element that is indexed several times changes as
    often. The values of the indices are needed."""
    name = self.__name__ + ".at"
    if not isinstance(a, _nvm.Array):
        return _at_of_numpy(self, a, indices, b)
    if self.signature or self.nout != 1 or self.nin != (1 if b is None else 2):
        raise ValueError(f"[{name}] takes {self.nin} operands with one result, the array among them")
    places = _f["arange"](a.size).reshape(a.shape)[indices]
    operands = ()
    if b is not None:
        operands = (_f["broadcast_to"](b, places.shape).reshape(-1),)
    flat = a.reshape(-1)
    u = unique_all(places.reshape(-1))
    order = _f["argsort"](places.reshape(-1))
    operands = [_f["take"](v, order, axis=0) for v in operands]
    counts, where = u.counts.tolist(), u.values
    starts = [0]
    for n in counts[:-1]:
        starts.append(starts[-1] + n)
    if operands and self.merges and counts:
        flat = _write(self, flat, where, [_segments(self, operands[0], starts, counts, None)])
    else:
        for turn in range(max(counts, default=0)):
            again = [i for i, n in enumerate(counts) if n > turn]
            rows = [_f["take"](v, _nvm.asarray([starts[i] + turn for i in again]), axis=0) for v in operands]
            flat = _write(self, flat, _f["take"](where, _nvm.asarray(again), axis=0), rows)
    a[...] = flat.reshape(a.shape)


def _at_of_numpy(self, a, indices, b):
    """Into an array of NumPy its own function writes."""
    from sys import modules

    numpy = modules.get("numpy")
    if numpy is None or not isinstance(a, numpy.ndarray):
        raise TypeError(f"[{self.__name__}.at] writes to arrays of nvm and of NumPy, not to {type(a).__name__}")
    ours = lambda x: numpy.asarray(x) if isinstance(x, _nvm.Array) else x
    indices = tuple(map(ours, indices)) if isinstance(indices, tuple) else ours(indices)
    getattr(numpy, self.__name__).at(a, indices, *(() if b is None else (ours(b),)))


def _write(self, flat, where, operands):
    made = self.function(_f["take"](flat, where, axis=0), *operands)
    flat = flat.copy()
    flat[where] = made.astype(flat.dtype)
    return flat


def over_axes(self, operands, axis=None, axes=None, keepdims=False):
    """A product over other dimensions than the last ones."""
    if self.__name__ != "vecdot" or axes is not None:
        raise TypeError(f"[{self.__name__}] takes no axes=; move the dimensions with moveaxis")
    r = self.function(*operands, axis=-1 if axis is None else axis)
    return _f["expand_dims"](r, axis=-1 if axis is None else axis) if keepdims else r
