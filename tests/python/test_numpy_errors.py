"""What is refused: each function of nvm.numpy is called wrongly in each of some twenty ways, and NumPy's of that name
beside it. Where NumPy raises, nvm raises too, an error of NumPy's class or of the one that the mistake has here; it
names the function, or is Python's own about an argument."""

import inspect
import re

import numpy as np
import pytest

import nvm
import nvm.numpy as nnp

X = nvm.asarray(np.arange(12.0).reshape(3, 4)).eval()
V = nvm.asarray(np.arange(5)).eval()
SMALL = nvm.asarray(np.zeros((2, 2))).eval()
FEW = nvm.asarray(np.ones((2, 2), bool)).eval()
RAGGED, UNKNOWN = [[1, 2], [3]], object()
# mistake: (arguments, keywords, the class of the error where nvm has another than NumPy: it has no objects and no text)
MISTAKES = {
    "nothing": ((), {}, TypeError),
    "None": ((None,), {}, TypeError),
    "text": (("text",), {}, (TypeError, ValueError)),
    "an object": ((UNKNOWN,), {}, TypeError),
    "a dict": (({},), {}, TypeError),
    "ragged lists": ((RAGGED,), {}, ValueError),
    "dtype object": ((np.array([1, None], object),), {}, TypeError),
    "dtype of text": ((np.array(["a", "b"]),), {}, TypeError),
    "too many": ((X,) * 9, {}, TypeError),
    "unknown name": ((X,), {"nonsense": 1}, TypeError),
    "axis=7": ((X,), {"axis": 7}, ()),
    "axis=-7": ((X,), {"axis": -7}, ()),
    "axis=(0, 0)": ((X,), {"axis": (0, 0)}, (TypeError, ValueError)),
    "axis='a'": ((X,), {"axis": "a"}, TypeError),
    "axis=1.5": ((X,), {"axis": 1.5}, TypeError),
    "x, 'a'": ((X, "a"), {}, (TypeError, ValueError)),
    "x, an object": ((X, UNKNOWN), {}, TypeError),
    "x, None": ((X, None), {}, TypeError),
    "x, v": ((X, V), {}, (TypeError, ValueError, IndexError)),
    "x, ragged": ((X, RAGGED), {}, (TypeError, ValueError, IndexError)),
    "[x, v]": (([X, V],), {}, ValueError),
    "[x, x], axis=7": (([X, X],), {"axis": 7}, (TypeError, ValueError)),
    "x, x, axis=7": ((X, X), {"axis": 7}, (TypeError, ValueError)),
    "x, 1, axis=7": ((X, 1), {"axis": 7}, (TypeError, ValueError)),
    "dtype='nonsense'": ((X,), {"dtype": "nonsense"}, TypeError),
    "out of another shape": ((X,), {"out": SMALL}, (TypeError, ValueError)),
    "where of another shape": ((X,), {"where": FEW}, (TypeError, ValueError)),
    "keepdims='a'": ((X,), {"keepdims": "a"}, TypeError),
}
PLAIN = re.compile(
    r"argument|operands, and out=|object|an index|scalar index|not supported between|operand type|not iterable"
    r"|real number|invalid literal|is ambiguous|needs a 0-dimensional|not a dtype|Python scalars"
)
FILES = set(nnp._FILES[name] == "io" and name for name in nnp._FILES) | {"savetxt", "loadtxt", "genfromtxt"}
# Functions made of another one, whose name stands in some of their errors
MADE_OF = {
    "amax": "max", "amin": "min", "around": "round", "cumsum": "cumulative_sum", "cumprod": "cumulative_prod",
    "array2string": "set_printoptions", "array_repr": "set_printoptions", "array_str": "set_printoptions",
    "may_share_memory": "shares_memory", "nanmean": "mean", "einsum_path": "einsum",
}  # fmt: skip
JOINED = "block column_stack concat dstack row_stack vstack hstack"
MADE_OF |= dict.fromkeys(JOINED.split(), "concatenate")
# Calls whose errors differ from NumPy's in class or text, or that have a meaning here: None is an operand that is not
# given, a list of subscripts is looked at first, and so on. What is not listed here must agree.
DIFFER = {
    "arange": ["None", "ragged lists", "[x, v]"],
    "bartlett": ["ragged lists", "dtype of text", "[x, v]"],
    "binary_repr": ["None", "text", "an object", "a dict", "ragged lists", "[x, v]"],
    "blackman": ["ragged lists", "[x, v]"],
    "broadcast_arrays": ["x, v"],
    "can_cast": ["x, None"],
    "concat": ["a dict"],
    "concatenate": ["a dict"],
    "copy": ["x, an object"],
    "copyto": ["x, v"],
    "diag_indices": ["None", "ragged lists", "[x, v]"],
    "einsum": ["ragged lists", "too many", "axis=7", "axis=-7"],
    "einsum_path": ["too many"],
    "expand_dims": ["x, None"],
    "extract": ["x, v"],
    "frexp": ["x, an object"],
    "from_dlpack": ["ragged lists", "[x, v]"],
    "fromiter": ["x, None"],
    "hamming": ["ragged lists", "[x, v]"],
    "hanning": ["ragged lists", "[x, v]"],
    "histogramdd": ["ragged lists"],
    "issubdtype": ["x, None", "x, v"],
    "modf": ["x, an object"],
    "pad": ["x, ragged"],
    "piecewise": ["too many"],
    "ravel": ["x, an object"],
    "take_along_axis": ["x, x, axis=7"],
    "tril": ["x, None"],
    "triu": ["x, None"],
    "unwrap": ["x, ragged"],
    "where": ["x, None"],
}


def functions():
    for name in nnp.__all__:
        theirs, ours = getattr(np, name, None), getattr(nnp, name)
        if name in FILES or not callable(theirs) or isinstance(theirs, type):
            continue
        if inspect.isfunction(ours) or isinstance(ours, nnp.ufunc):
            yield name, theirs, ours


def in_numpy(x):
    return np.array(x) if isinstance(x, nvm.Array) else list(map(in_numpy, x)) if isinstance(x, list) else x


def error_of(f, args, given, evaluate=False):
    try:
        made = f(*args, **given)
        if evaluate:
            nvm.eval(*(m for m in (made if isinstance(made, tuple) else (made,)) if isinstance(m, nvm.Array)))
    except Exception as e:
        return e
    return None


def is_plain(error):
    """Is it Python's own, about how a function is called or what an argument is?"""
    return type(error) in (TypeError, ValueError, AttributeError) and PLAIN.search(str(error))


def is_of_class(error, expected, instead):
    """Has the error NumPy's class, or the one that such a mistake has here?"""
    if isinstance(expected, np.exceptions.AxisError):
        return isinstance(error, (nnp.exceptions.AxisError, instead) if instead else nnp.exceptions.AxisError)
    if isinstance(error, nnp.exceptions.AxisError) or type(error) is type(expected):
        return True  # the axis is looked at first
    kinds = [k for k in (TypeError, ValueError, IndexError) if isinstance(expected, k)]
    return kinds and all(isinstance(error, k) for k in kinds) or isinstance(error, instead)


def names_function(error, expected, name, ours):
    text = str(error)
    if type(error) is type(expected) and text.split("0x")[0] == str(expected).split("0x")[0]:
        return True
    own = {name, ours.__name__, getattr(getattr(ours, "function", ours), "__name__", name), MADE_OF.get(name, name)}
    return any(n in text for n in own) or "[where]" in text or is_plain(error)


def fault_of(name, theirs, ours, mistake):
    args, given, instead = MISTAKES[mistake]
    expected = error_of(theirs, [in_numpy(a) for a in args], {k: in_numpy(v) for k, v in given.items()})
    error = error_of(ours, args, given, evaluate=expected is not None)
    if error is None:
        return expected and f"NumPy raises {expected!r}, nvm nothing"
    if expected is not None and not is_of_class(error, expected, instead):
        return f"NumPy raises {expected!r}, nvm {error!r}"
    return None if names_function(error, expected, name, ours) else f"the error names no function: {error!r}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, theirs, ours", [pytest.param(*row, id=row[0]) for row in functions()])
def test_what_is_refused(name, theirs, ours):
    faults = {m: fault_of(name, theirs, ours, m) for m in MISTAKES if (name, m) != ("meshgrid", "too many")}  # 41 GB
    faults = {mistake: fault for mistake, fault in faults.items() if fault}
    assert set(faults) <= set(DIFFER.get(name, ())), faults
