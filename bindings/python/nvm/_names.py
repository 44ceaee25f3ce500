"""Names that are not there: which of nvm's is meant. Imported only when one is asked for."""

# NumPy's names of what nvm has under the array API's
OF_NUMPY = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "argwhere": "nonzero",
    "around": "round",
    "ascontiguousarray": "asarray",
    "average": "mean",
    "bitwise_not": "bitwise_invert",
    "bool_": "bool",
    "concatenate": "concat",
    "conjugate": "conj",
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "dstack": "concat",
    "fabs": "abs",
    "fix": "trunc",
    "flatnonzero": "nonzero",
    "float_power": "pow",
    "hstack": "concat",
    "identity": "eye",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "mod": "remainder",
    "ndarray": "Array",
    "power": "pow",
    "ravel": "reshape",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
    "swapaxes": "permute_dims",
    "true_divide": "divide",
    "unique": "unique_values",
    "vstack": "concat",
}

# What takes the place of names that nvm.numpy has not.
_TEXTS = "arrays hold numbers: Python's lists hold texts"
_RECORDS = "there are no structured dtypes: keep one array for each field"
_DATES = "arrays hold numbers: count days or seconds as integers"
INSTEAD_OF_NUMPY = {
    **dict.fromkeys(("char", "strings", "str_", "bytes_", "chararray", "character"), _TEXTS),
    **dict.fromkeys(("rec", "recarray", "record", "void", "fromregex"), _RECORDS),
    **dict.fromkeys(("datetime64", "timedelta64", "datetime_as_string", "datetime_data", "isnat"), _DATES),
    **dict.fromkeys(("busday_count", "busday_offset", "busdaycalendar", "is_busday"), _DATES),
    **dict.fromkeys(("matrix", "asmatrix", "bmat", "mat"), "arrays of two dimensions and @ are what it was for"),
    **dict.fromkeys(("longdouble", "clongdouble", "float128", "complex256"), "float64 is the widest dtype"),
    **dict.fromkeys(("nditer", "nested_iters", "flatiter"), "ndenumerate and ndindex visit elements one by one"),
    "ma": "there are no masked arrays: NaN and the nan-functions, and where= of reductions, leave elements out",
    "memmap": "numpy.memmap maps a file, and nvm.asarray takes it without a copy",
    "object_": "arrays hold numbers: Python's lists hold objects",
    "frompyfunc": "vectorize calls a Python function for each element",
    "ctypeslib": "numpy.asarray(x).ctypes has the address of an array's elements",
    "dtypes": "np.dtype is the class of all dtypes",
    "typing": "numpy.typing has the names for annotations, which nvm's arrays need not",
    "broadcast": "broadcast_arrays and broadcast_shapes are what it was for",
}


def nearest(word, words):
    """The word that is spelled most like it; None if none is."""
    import difflib  # which takes milliseconds, and most names that are missing are probed for

    return next(iter(difflib.get_close_matches(word, words, 1)), None)


def missing(name, names, module="nvm", instead=None):
    """The AttributeError for a name that the package, or a module of it with these names, has not. instead: what to
    write for some names."""
    text = f"module {module!r} has no attribute {name!r}"
    near = None if name.startswith("_") else nearest(name, names)
    if instead and name in instead:
        text += f"; {instead[name]}"
    elif name in OF_NUMPY:
        text += f"; what NumPy calls {name} is nvm.{OF_NUMPY[name]}"
    elif near:
        text += f"; {module}.{near} is spelled like it"
    return AttributeError(text, name=name)
