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
    "transpose": "permute_dims",
    "true_divide": "divide",
    "unique": "unique_values",
    "vstack": "concat",
}


def nearest(word, words):
    """The word that is spelled most like it; None if none is."""
    import difflib  # which takes milliseconds, and most names that are missing are probed for

    return next(iter(difflib.get_close_matches(word, words, 1)), None)


def missing(name, names, module="nvm"):
    """The AttributeError for a name that the package, or a module of it with these names, has not."""
    text = f"module {module!r} has no attribute {name!r}"
    near = None if name.startswith("_") else nearest(name, names)
    if name in OF_NUMPY:
        text += f"; what NumPy calls {name} is nvm.{OF_NUMPY[name]}"
    elif near:
        text += f"; {module}.{near} is spelled like it"
    return AttributeError(text, name=name)
