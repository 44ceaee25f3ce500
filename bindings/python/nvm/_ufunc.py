"""NumPy's universal functions as objects: nvm.numpy exports them, and NumPy's own ufuncs reach them when they meet an
nvm array. Called with operands alone, an object is as cheap as the function behind it; that is in C (ufunc.c)."""

from . import _nvm
from . import _ufunc_functions as _composed
from . import _ufunc_methods as _methods

_f = _nvm.functions
_ORDER = "buifc"  # a kind is cast to itself and to those on its right under the rule same_kind


def can_cast(from_, to, casting):
    """NumPy's rules for casts between dtypes."""
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise ValueError(f"casting is 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', not {casting!r}")
    if from_ == to or casting == "unsafe":
        return True
    if casting == "same_kind":
        return _ORDER.index(from_.kind) <= _ORDER.index(to.kind) and (from_.kind, to.kind) != ("i", "u")
    if casting == "safe":
        return _f["where"](True, _f["zeros"]((), dtype=from_), _f["zeros"]((), dtype=to)).dtype == to
    return False


def _fits(shape, into):
    """Does an array of this shape broadcast to the other?"""
    behind = into[len(into) - len(shape) :]
    return len(shape) <= len(into) and all(n in (1, m) for n, m in zip(shape, behind))


class ufunc(_nvm.Ufunc):
    """A function of elements, with NumPy's attributes and methods: __call__(*operands, out=None, where=True,
    casting='same_kind', order='K', dtype=None), reduce, accumulate, reduceat, outer, at.

    Where `where` is false and there is no out, the result is 0. Operands of integers and bool give the default float
    where NumPy chooses a float by their size. Complex numbers have no order, and arithmetic takes no bool, where the
    function of nvm's of that name says so.

    >>> import nvm.numpy as np
    >>> np.add.reduce([[1, 2], [3, 4]], axis=1)
    array([3, 7])
    >>> np.multiply.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """

    def __new__(cls, function, nin, name, nout=1, signature=None, **named):
        return super().__new__(cls, function, nin, nout, signature is None)

    def __init__(self, function, nin, name, nout=1, identity=None, merges=False, signature=None):
        self.__name__ = self.__qualname__ = name
        self.__module__ = "nvm.numpy"
        self.__doc__ = function.__doc__
        self.identity, self.signature = identity, signature
        if name in _methods.REDUCTIONS:
            self.reduction = _f[_methods.REDUCTIONS[name]]
        if name in _methods.SCANS:
            self.scan = _f[_methods.SCANS[name]]
        if name in _OF_FLOATS:
            self.of_floats = _f[_OF_FLOATS[name]]
        self.merges = merges  # it is associative and commutative, so that its operands may meet in any order

    nargs = property(lambda self: self.nin + self.nout, doc="number of operands and results")
    ntypes = property(lambda self: len(self.types), doc="number of dtypes that it takes")

    @property
    def types(self):
        """The dtypes that it takes and gives, by NumPy's letters: ['d->d', ...]."""
        return [] if self.signature else list(filter(None, map(self._type, "?bBhHiIlLefdFD")))

    def _type(self, code):
        codes = code + "l" if self.__name__ == "ldexp" else code * self.nin
        try:
            results = self.function(*(_f["zeros"]((), dtype=c) for c in codes))
        except TypeError:
            return None
        results = results if isinstance(results, tuple) else (results,)
        converts = results[0].dtype.kind in "fc" and (
            code not in "efdFD" or results[0].dtype.itemsize > _nvm.dtype(code).itemsize
        )
        return None if converts else codes + "->" + "".join(r.dtype.char for r in results)

    @property
    def __signature__(self):
        from inspect import Parameter, Signature

        names = ["x"] if self.nin == 1 else [f"x{i + 1}" for i in range(self.nin)]
        given = {"out": None, "where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
        return Signature(
            [Parameter(n, Parameter.POSITIONAL_ONLY) for n in names]
            + [Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in given.items()]
        )

    def __repr__(self):
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self):
        return _find, (self.__name__,)

    def call(self, *args, out=None, where=True, casting="same_kind", order="K", dtype=None, subok=True, **axes):
        """A call with more than operands."""
        n = len(args) - self.nin
        if n < 0 or n > self.nout or n and out is not None:
            raise TypeError(
                f"{self.__name__}() takes {self.nin} operands, and out= or {self.nout} positions for results; "
                f"{len(args)} were given"
            )
        if order not in ("K", "C", "F", "A"):
            raise ValueError(f"[{self.__name__}] order is 'C', 'F', 'A' or 'K', not {order!r}")
        out = args[self.nin :] if n else out if isinstance(out, tuple) else (out,)
        if len(out) > self.nout or len(out) < self.nout and any(o is not None for o in out):
            raise ValueError(f"[{self.__name__}] out is a tuple of {self.nout} arrays, got {len(out)}")
        out += (None,) * (self.nout - len(out))
        results = self._results(args[: self.nin], dtype, casting, axes)
        stored = tuple(self._store(r, o, where, casting) for r, o in zip(results, out))
        return stored if self.nout > 1 else stored[0]

    def _results(self, operands, dtype, casting, axes):
        if dtype is not None:
            dtype = _nvm.dtype(dtype)
            operands = [self._cast(x, dtype, casting) for x in operands]
        if axes:
            made = _methods.over_axes(self, operands, **axes)
        else:
            made = self.function(*operands)
        made = made if isinstance(made, tuple) else (made,)
        if dtype is not None and made[0].dtype != dtype:
            raise TypeError(f"[{self.__name__}] no loop of dtype {dtype.name}: it gives {made[0].dtype.name}")
        return made

    def _cast(self, x, dtype, casting):
        x = x if type(x) in (bool, int, float, complex) else _nvm.asarray(x)
        if isinstance(x, _nvm.Array) and not can_cast(x.dtype, dtype, casting):
            if self.function(*[x] * self.nin).dtype == dtype:  # as abs of complex numbers
                return x
            raise TypeError(
                f"[{self.__name__}] an operand of {x.dtype.name} is not cast to {dtype.name} under the rule {casting!r}"
            )
        return _nvm.asarray(x, dtype=dtype) if dtype.kind != "b" else x

    def _store(self, r, out, where, casting):
        """The result in `out`, or as it is; where the mask is false, what out had."""
        if where is not True:
            mask = _nvm.asarray(where)
            if mask.dtype != _nvm.bool:
                raise TypeError(f"[{self.__name__}] where is a mask of bool, not {mask.dtype.name}")
            r = _f["where"](mask, r, _nvm.asarray(0, dtype=r.dtype) if out is None else _nvm.asarray(out))
        if out is None:
            return r
        if not hasattr(out, "dtype") or not hasattr(out, "__setitem__"):
            raise TypeError(f"[{self.__name__}] out is an array, not {type(out).__name__}")
        if not can_cast(r.dtype, _nvm.dtype(out.dtype), casting):
            raise TypeError(
                f"[{self.__name__}] a result of {r.dtype.name} is not stored in out of {out.dtype} under the rule "
                f"{casting!r}"
            )
        if not _fits(r.shape, tuple(out.shape)):
            raise ValueError(f"[{self.__name__}] a result of shape {r.shape} is not stored in out of shape {out.shape}")
        out[...] = r
        return out

    reduce, accumulate, reduceat = _methods.reduce, _methods.accumulate, _methods.reduceat
    outer, at = _methods.outer, _methods.at


# NumPy's name of a ufunc: the name of its function in the library's table, or in _ufunc_functions
_UNARY = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "conjugate": "conj",
    "invert": "bitwise_invert",
}
_UNARY_SAME = (
    "cbrt ceil cos cosh exp exp2 expm1 floor isfinite isinf isnan log log10 log1p log2 logical_not negative positive "
    "sign sin sinh sqrt square tan tanh trunc "
    "bitwise_count deg2rad degrees fabs rad2deg radians reciprocal rint signbit spacing"
)
_BINARY = {
    "arctan2": "atan2",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
}
_BINARY_SAME = (
    "add bitwise_and bitwise_or bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less "
    "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal remainder "
    "subtract float_power fmax fmin fmod gcd heaviside lcm ldexp logaddexp2"
)
# what some of _ufunc_functions are of an array of floats
_OF_FLOATS = {"fabs": "abs", "reciprocal": "reciprocal", "rint": "round", "signbit": "signbit"}
_IDENTITIES = {
    **dict.fromkeys(("add", "bitwise_or", "bitwise_xor", "hypot", "gcd"), 0),
    **dict.fromkeys(("multiply",), 1),
    "bitwise_and": -1,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "logaddexp": float("-inf"),
    "logaddexp2": float("-inf"),
}
_MERGING = set(_IDENTITIES) | {"maximum", "minimum", "fmax", "fmin", "lcm"}
_PRODUCTS = {
    "matmul": "(n?,k),(k,m?)->(n?,m?)",
    "matvec": "(m,n),(n)->(m)",
    "vecdot": "(n),(n)->()",
    "vecmat": "(n),(n,m)->(m)",
}
_ALIASES = {
    "abs": "absolute",
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift",
    "conj": "conjugate",
    "mod": "remainder",
    "pow": "power",
    "true_divide": "divide",
}


def _make(name, nin, of, **more):
    function = getattr(_composed, of, None) or _f[of]
    return ufunc(function, nin, name, identity=_IDENTITIES.get(name), merges=name in _MERGING, **more)


UFUNCS = {
    **{name: _make(name, 1, of) for name, of in _UNARY.items()},
    **{name: _make(name, 1, name) for name in _UNARY_SAME.split()},
    **{name: _make(name, 2, of) for name, of in _BINARY.items()},
    **{name: _make(name, 2, name) for name in _BINARY_SAME.split()},
    **{name: _make(name, 1, name, nout=2) for name in ("frexp", "modf")},
    "divmod": _make("divmod", 2, "divmod", nout=2),
    **{name: _make(name, 2, name, signature=of) for name, of in _PRODUCTS.items()},
}
UFUNCS.update((alias, UFUNCS[name]) for alias, name in _ALIASES.items())
_OF_SCIPY = {
    "erf": "erf",
    "erfc": "erfc",
    "expit": "sigmoid",
    "gammaln": "lgamma",
    **{name: name for name in ("cbrt", "exp2", "expm1", "log1p")},
}


def _find(name):
    return UFUNCS[name]


def find(theirs):
    """nvm's ufunc for one of NumPy or SciPy: the hook of Array.__array_ufunc__."""
    from sys import modules

    name, home = theirs.__name__, ""
    for module in ("numpy", "scipy.special"):
        if module in modules and getattr(modules[module], name, None) is theirs:
            home = module + "."
    if home == "numpy." and name in UFUNCS:
        return UFUNCS[name]
    if home == "scipy.special." and name in _OF_SCIPY:
        return ufunc(_f[_OF_SCIPY[name]], 1, name)
    if not home:  # made by numba.vectorize or numpy.frompyfunc, or hidden behind a function of another name
        raise TypeError(
            f"nvm has no function for the ufunc {name!r}; call it with numpy.asarray(x), and nvm.asarray takes the "
            f"result"
        )
    raise TypeError(
        f"nvm has no function for the ufunc {home}{name}; nvm.asarray({home}{name}(numpy.asarray(x))) computes it in "
        f"NumPy's memory"
    )
