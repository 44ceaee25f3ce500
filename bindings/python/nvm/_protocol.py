"""NumPy's protocols: its ufuncs and functions, called with an nvm array, call nvm's of the same name. The modules
behind them, and this one, are imported when that happens first."""

from . import _nvm

# NumPy's functions that write to their first argument, by whose name it stands here; where that is NumPy's, so is the
# function
_WRITERS = {"copyto": "dst", "put": "a", "place": "arr", "putmask": "a", "fill_diagonal": "a", "put_along_axis": "arr"}

# The forms of calls of NumPy's functions that are one operation of the library's table, with the same value and dtype
# as nvm.numpy's function of that name, by NumPy's names: the operation, the kinds of its operands' dtypes (f: floats of
# 32 and 64 bits, h: of 16), their dimensions, and the parameters in NumPy's order. name:kind is one by position,
# name=ours:kind one by that name in the table, =ours:value a constant. Kinds (function_call.c): A an operand, L a list
# of them, M a mask (m), J a row of indices, V an array or a number, N a number, I an integer, X one or None, S an
# integer or a tuple of them, T one or None, n a number, b a bool, d the dtype that the first operand has; those in
# small letters the caller gives by name.
_FOLDED = "axis=axis:T keepdims=keepdims:b"
_EXTREME = "biuhf 0-64 a:A " + _FOLDED
_PLACED = "biuhf 1-64 a:A axis=axis:X keepdims=keepdims:b"
_FORMS = {
    "sum": ["sum biuhfc 0-64 a:A axis=axis:T dtype=dtype:d keepdims=keepdims:b where=where:m"],
    "prod": ["prod iuhfc 0-64 a:A axis=axis:T dtype=dtype:d keepdims=keepdims:b"],
    "max": ["max " + _EXTREME],
    "min": ["min " + _EXTREME],
    "amax": ["max " + _EXTREME],
    "amin": ["min " + _EXTREME],
    "all": ["all biuhfc 0-64 a:A " + _FOLDED],
    "any": ["any biuhfc 0-64 a:A " + _FOLDED],
    "argmax": ["argmax " + _PLACED],
    "argmin": ["argmin " + _PLACED],
    "mean": ["mean fc 0-64 a:A " + _FOLDED],
    "std": ["std f 0-64 a:A axis=axis:T ddof=correction:n keepdims=keepdims:b"],
    "var": ["var f 0-64 a:A axis=axis:T ddof=correction:n keepdims=keepdims:b"],
    "count_nonzero": ["count_nonzero biuhfc 0-64 a:A " + _FOLDED],
    "cumsum": ["cumulative_sum iuhfc 1-64 a:A axis=axis:I", "cumulative_sum iuhfc 1-1 a:A"],
    "cumprod": ["cumulative_prod iuhfc 1-64 a:A axis=axis:I", "cumulative_prod iuhfc 1-1 a:A"],
    "concatenate": ["concat biuhfc 1-64 arrays:L axis=axis:I"],
    "stack": ["stack biuhfc 0-64 arrays:L axis=axis:I"],
    "where": ["where biuhfc 0-64 condition:M x:V y:V"],
    "clip": ["clip f 0-64 a:A a_min:N a_max:N"],
    "dot": ["matmul iuhfc 1-2 a:A b:A"],
    "inner": ["matmul iuhfc 1-1 a:A b:A"],
    "tensordot": ["tensordot iuhfc 0-64 a:A b:A axes=axes:I"],
    "reshape": ["reshape biuhfc 0-64 a:A shape:S"],
    "ravel": ["reshape biuhfc 0-64 a:A =:-1"],
    "transpose": ["matrix_transpose biuhfc 2-2 a:A", "permute_dims biuhfc 0-64 a:A axes:S"],
    "matrix_transpose": ["matrix_transpose biuhfc 2-64 x:A"],
    "moveaxis": ["moveaxis biuhfc 1-64 a:A source:S destination:S"],
    "expand_dims": ["expand_dims biuhfc 0-64 a:A axis=axis:S"],
    "squeeze": ["squeeze biuhfc 0-64 a:A axis=axis:S"],
    "broadcast_to": ["broadcast_to biuhfc 0-64 array:A shape:S"],
    "take": ["take biuhfc 1-64 a:A indices:J axis=axis:I"],
    "take_along_axis": ["take_along_axis biuhfc 1-64 arr:A indices:A axis=axis:I"],
    "sort": ["sort biuhf 1-64 a:A axis=axis:I"],
    "argsort": ["argsort biuhf 1-64 a:A axis=axis:I"],
    "flip": ["flip biuhfc 1-64 m:A axis=axis:T"],
    "roll": ["roll biuhfc 1-64 a:A shift:I axis=axis:I"],
    "repeat": ["repeat biuhfc 1-64 a:A repeats:I axis=axis:I"],
    "tile": ["tile biuhfc 1-64 A:A reps:S"],
    "zeros_like": ["zeros_like biuhfc 0-64 a:A"],
    "ones_like": ["ones_like biuhfc 0-64 a:A"],
    "full_like": ["full_like f 0-64 a:A fill_value:N"],
    "round": ["round hfc 0-64 a:A"],
    "around": ["round hfc 0-64 a:A"],
    "tril": ["tril biuhfc 2-64 m:A k=k:I"],
    "triu": ["triu biuhfc 2-64 m:A k=k:I"],
}


def find_ufunc(theirs):
    from ._ufunc import find

    return find(theirs)


def find_route(theirs):
    """The Route from one of NumPy's functions to nvm's: what Array.__array_function__ follows."""
    forms = _FORMS.get(theirs.__name__, ()) if theirs.__module__ == "numpy" else ()
    return _nvm.Route(_target(theirs), tuple(map(_form, forms)))


def _form(text):
    function, kinds, ranks, *parameters = text.split()
    least, most = map(int, ranks.split("-"))
    return _nvm.functions[function], kinds, least, most, tuple(map(_parameter, parameters))


def _parameter(text):
    names, kind = text.split(":")
    theirs, _, ours = names.partition("=")
    return (theirs or None), (ours or None), (None if theirs else int(kind)), kind


def _target(theirs):
    """nvm.numpy's function of the same name."""
    from importlib import import_module

    home, name = import_module(".numpy", __package__), f"{theirs.__module__}.{theirs.__name__}"
    try:
        for part in name.split(".")[1:]:
            home = getattr(home, part)
    except AttributeError as e:
        raise TypeError(
            f"nvm has no {name} ({e}); nvm.asarray({name}(numpy.asarray(x))) computes it in NumPy's memory"
        ) from None
    return home if theirs.__name__ not in _WRITERS else _writer(theirs, home)


def _writer(theirs, ours):
    """nvm's function where an nvm array is written to, else NumPy's, with NumPy's arrays."""
    written = _WRITERS[theirs.__name__]

    def write(*args, **kwargs):
        if isinstance(args[0] if args else kwargs.get(written), _nvm.Array):
            return ours(*args, **kwargs)
        return theirs(*map(_to_numpy, args), **{name: _to_numpy(x) for name, x in kwargs.items()})

    return write


def _to_numpy(x):
    return x.__array__() if isinstance(x, _nvm.Array) else x


_nvm.hooks.update(find_ufunc=find_ufunc, find_route=find_route)
