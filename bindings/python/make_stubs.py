"""Writes nvm/__init__.pyi and the stubs of MODULES from the package as it is: python -P make_stubs.py FOLDER. Names,
parameters and defaults are those of the functions themselves. The types of operations follow from the library's table
(operands, attributes and their defaults), so that no operation is named here."""

import inspect
import pathlib
import sys

import nvm

HEAD = '''# Made by bindings/python/make_stubs.py.
from builtins import bool as _bool  # nvm.bool is a dtype
from collections.abc import Callable, Generator, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, final

from . import fft as fft
from . import linalg as linalg
from . import optimization as optimization
from . import profiler as profiler
from . import random as random
from . import signal as signal

_Scalar = _bool | int | float | complex
_ArrayLike = Any  # Array, NumPy array, number, nested sequence, anything with a buffer, DLPack or __array__
_DTypeLike = Any  # DType, NumPy dtype, name, bool, int, float, complex
_Axes = int | Sequence[int] | None
_DeviceLike = Any  # nvm.device, or its name
_Precision = Literal["ieee", "highest", "tf32", "bf16x3", "bf16x9"]

numpy: ModuleType


class device(str):
    number: int
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int: ...  # type: ignore[override]
    def __new__(cls, name: Any = None) -> "device": ...
    def __enter__(self) -> "device": ...
    def __exit__(self, *error: Any) -> None: ...


class Stream:
    device: Any
    @property
    def handle(self) -> int: ...
    def __init__(self, device: _DeviceLike | None = None) -> None: ...
    @classmethod
    def from_handle(cls, handle: Any, device: _DeviceLike | None = None) -> "Stream": ...
    def __cuda_stream__(self) -> tuple[int, int]: ...
    def __enter__(self) -> "Stream": ...
    def __exit__(self, *error: Any) -> None: ...
    def record(self, event: "Event | None" = None) -> "Event": ...
    def wait(self, other: "Event | Stream") -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Event:
    device: Any
    @property
    def handle(self) -> int: ...
    @property
    def is_done(self) -> _bool: ...
    def __init__(self, device: _DeviceLike | None = None) -> None: ...
    def __enter__(self) -> "Event": ...
    def __exit__(self, *error: Any) -> None: ...
    def __sub__(self, begin: "Event") -> float: ...
    def record(self, stream: Stream | None = None) -> "Event": ...
    def wait(self, stream: Stream | None = None) -> None: ...
    def sync(self) -> None: ...
    def elapsed_ms(self, end: "Event | None" = None) -> float: ...
    def close(self) -> None: ...


class Evaluation:
    def __init__(self, arrays: Any) -> None: ...
    def done(self) -> _bool: ...
    def cancelled(self) -> _bool: ...
    def cancel(self) -> _bool: ...
    def result(self, timeout: float | None = None) -> Any: ...
    def add_done_callback(self, fn: Callable[["Evaluation"], Any]) -> None: ...
    def __await__(self) -> Generator[Any, None, Any]: ...


class auto_tune:
    def __init__(self, *, budget: float = 60.0, cold: _bool = False, progress: Any = None) -> None: ...
    def __enter__(self) -> "auto_tune": ...
    def __exit__(self, *error: Any) -> None: ...


class compile_progress:
    def __init__(self, *, after: float = 0.5, progress: Any = None) -> None: ...
    def __enter__(self) -> "compile_progress": ...
    def __exit__(self, *error: Any) -> None: ...


class doctor:
    def __init__(self) -> None: ...
    def __enter__(self) -> "doctor": ...
    def __exit__(self, *error: Any) -> None: ...
    def report(self) -> list[Any]: ...


class Lowered:
    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...
    def text(self, stage: str = "graph") -> str: ...
    def explain(self) -> str: ...
    def compile(self) -> "Compiled": ...


class Compiled:
    def __init__(self, fn: Any, signature: int) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class stream:
    handle: int
    device: Any
    def __init__(self, handle: Any, device: _DeviceLike | None = None) -> None: ...
    def __enter__(self) -> "stream": ...
    def __exit__(self, *error: Any) -> None: ...

'''
ATTRIBUTES = {
    "dtype": "_DTypeLike | None",
    "device": "_DeviceLike | None",
    "axis": "_Axes",
    "axes": "_Axes",
    "shape": "int | Sequence[int]",
    "precision": "_Precision | None",
}
# ---- the modules: what is not an array that they take and return
MODULES = ("fft", "linalg", "optimization", "random", "signal")
MODULE_HEAD = """# Made by bindings/python/make_stubs.py.
from builtins import bool as _bool  # nvm.bool is a dtype
from collections.abc import Callable, Sequence
from typing import Any, Self

from . import Array, _ArrayLike, _Axes, _DeviceLike, _DTypeLike, _Precision
"""
INTEGER, SIZE = "int | None", "int | Sequence[int] | None"
NUMBERS = dict.fromkeys("x x1 x2 a b in1 in2 Zxx".split(), "_ArrayLike")
TYPES = {
    "fft": NUMBERS | {"n": INTEGER, "s": "Sequence[int] | None", "norm": "str | None", "orthogonalize": "_bool | None"},
    "linalg": NUMBERS
    | {"arrays": "Sequence[_ArrayLike]", "lu_and_piv": "tuple[_ArrayLike, _ArrayLike]", "axes": "Any", "n": "int"}
    | {"c_and_lower": "tuple[_ArrayLike, _bool]", "ord": "int | float | str | None", "p": "int | float | str | None"}
    | dict.fromkeys(("tol", "rtol", "rcond"), "_ArrayLike | None"),
    "optimization": {},
    "random": dict.fromkeys(
        "low high loc scale shape a b lam n p mean cov sigma df nonc dfnum dfden left mode right alpha pvals x".split(),
        "_ArrayLike",
    )
    | {"size": SIZE, "seed": "int | Sequence[int] | None", "jumps": "int", "n_children": "int"}
    | dict.fromkeys(("replace", "endpoint"), "_bool"),
    "signal": NUMBERS
    | dict.fromkeys(("N", "nperseg", "noverlap", "nfft"), INTEGER)
    | {"window": "_ArrayLike", "boundary": "Any", "input_onesided": "_bool", "return_onesided": "_bool"},
}
MODULE_RETURNS = {
    "linalg.cho_factor": "tuple[Array, _bool]",
    "linalg.eig": "EigResult",
    "linalg.eigh": "EighResult",
    "linalg.einsum_path": "tuple[list[Any], str]",
    "linalg.lstsq": "tuple[Array, Array, Array, Array]",
    "linalg.lu": "tuple[Array, ...]",
    "linalg.lu_factor": "tuple[Array, Array]",
    "linalg.qr": "QRResult | Array",
    "linalg.slogdet": "SlogdetResult",
    "linalg.svd": "SVDResult | Array",
    "optimization.tune": "Any",
    "random.default_rng": "Generator",
    "random.jumped": "Generator",
    "random.seed": "None",
    "random.shuffle": "None",
    "random.spawn": "list[Generator]",
    "signal.istft": "tuple[Array, Array]",
    "signal.stft": "tuple[Array, Array, Array]",
}
ARRAY = {
    "T": "Array",
    "mT": "Array",
    "real": "Array",
    "imag": "Array",
    "ndim": "int",
    "size": "int",
    "itemsize": "int",
    "nbytes": "int",
    "flags": "Any",
    "flat": "Any",
    "strides": "tuple[int, ...]",
    "shape": "tuple[int, ...]",
    "dtype": "DType",
    "device": "device",
    "__cuda_array_interface__": "dict[str, Any]",
    "__numpy_dtype__": "Any",
}
RETURNS = {
    "tolist": "Any",
    "ready": "_bool",
    "__await__": "Generator[Any, None, Array]",
    "item": "_Scalar",
    "tobytes": "bytes",
    "__bool__": "_bool",
    "__int__": "int",
    "__float__": "float",
    "__complex__": "complex",
    "__index__": "int",
    "__len__": "int",
    "__contains__": "_bool",
    "__iter__": "Iterator[Array]",
    "__reversed__": "Iterator[Array]",
    "__divmod__": "tuple[Array, Array]",
    "__rdivmod__": "tuple[Array, Array]",
    "__dlpack_device__": "tuple[int, int]",
    "__array_namespace__": "ModuleType",
    "__repr__": "str",
    "__str__": "str",
    "__format__": "str",
    "nonzero": "tuple[Array, ...]",
    "sort": "None",
    "__hash__": "None",
    "__reduce_ex__": "Any",
    "__setitem__": "None",
    "__delitem__": "None",
}
IGNORED = {  # mypy: comparisons give arrays; x **= y has no third argument
    "__eq__": "  # type: ignore[override]",
    "__ne__": "  # type: ignore[override]",
    "__ipow__": "  # type: ignore[misc]",
}
SKIPPED = {
    "__getattribute__",
    "__doc__",
    "__new__",
    "__init__",
    "__reduce__",
    "__module__",
    "__weakref__",
    "__hash__",
    "__delitem__",
    "__array_ufunc__",
    "__array_function__",
    "__array_priority__",
    "_edges",
    "_repr_html_",
}


def annotated(parameters, operands, method, types=ATTRIBUTES):
    """Source text of a parameter list; the first `operands` parameters are arrays, others of these types. Methods take
    all by position, as NumPy's do."""
    out, seen_star = [], method
    positional = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not seen_star:
            out.append("*")
            seen_star = True
        seen_star |= p.kind is p.VAR_POSITIONAL
        kind = ("_ArrayLike" if operands > 0 else "Sequence[_ArrayLike]") if i < abs(operands) else types.get(p.name)
        if kind is None:
            kind = {bool: "_bool", int: "int", float: "float", str: "str"}.get(type(p.default), "Any")
        if i < operands and p.default is None:
            kind += " | None"
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else " = " + repr(p.default)
        out.append(f"{star}{p.name}: {kind}{default}")
        if positional and p is positional[-1]:
            out.append("/")
    return ", ".join(out)


def function(name, f, operands, result, first=(), method=False):
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except ValueError:
        return f"def {name}({', '.join(first + ('*args: Any', '**kwargs: Any'))}) -> {result}: ..."
    text = annotated([p for p in parameters if p.name != "self"], operands, method)
    return f"def {name}({', '.join(first + ((text,) if text else ()))}) -> {result}: ..."


def special(name, f, result):
    """Source text of a special method: all of its parameters by position alone."""
    try:
        parameters = list(inspect.signature(f).parameters.values())[1:]
    except ValueError:
        parameters = []
    given = [f"{p.name}: Any" + ("" if p.default is p.empty else " = ...") for p in parameters]
    if all(p.kind is p.POSITIONAL_ONLY for p in parameters):
        given += ["/"]
    return f"def {name}({', '.join(['self', *given])}) -> {result}: ..."


def array_class():
    yield "@final\nclass Array:"
    for name, value in sorted(vars(nvm.Array).items()):
        if name in SKIPPED:
            continue
        if name in ARRAY:
            yield f"    @property\n    def {name}(self) -> {ARRAY[name]}: ..."
        elif isinstance(value, property):
            continue  # it raises AttributeError
        elif callable(value):
            dunder = name.startswith("__") and name not in ("__array__", "__dlpack__", "__array_namespace__")
            result = RETURNS.get(name, "Any" if name in ("__array__", "__dlpack__", "__buffer__") else "Array")
            if dunder:
                yield f"    {special(name, value, result)}{IGNORED.get(name, '')}"
            elif isinstance(value, type(vars(nvm.Array)["sum"])):
                yield "    " + function(name, getattr(nvm.ones(1), name), 0, result, ("self",), True)
            elif inspect.isfunction(value):
                me = next(iter(inspect.signature(value).parameters.values()))
                text = function(name, getattr(nvm.ones(1), name), 0, result, (me.name,))
                alone = me.kind is me.POSITIONAL_ONLY and ", /" not in text
                yield "    " + (text.replace(f"({me.name}", f"({me.name}, /", 1) if alone else text)
            else:
                yield "    " + function(name, value, 0, result, ("self",))


def lines():
    table = nvm._nvm.op_table()
    yield HEAD
    yield (
        "@final\nclass DType:\n    name: str\n    itemsize: int\n    kind: str\n    char: str\n    num: int\n"
        "    byteorder: str\n    alignment: int\n    type: Any\n    isnative: _bool\n    hasobject: _bool\n"
        "    names: None\n    fields: None\n    dtype: Any\n    str: str\n"
        "    def __new__(cls, dtype: _DTypeLike, align: _bool = ..., copy: _bool = ...) -> \"DType\": ...\n"
        "    def __call__(self, x: _ArrayLike = ..., /) -> \"Array\": ...\n"
    )
    yield "class Error(RuntimeError): ...\n"
    yield (
        "@final\nclass Jitted:\n    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...\n"
        "    def explain(self, *args: Any, **kwargs: Any) -> str: ...\n"
        "    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...\n"
        "    def cache_size(self) -> int: ...\n    def clear_cache(self) -> None: ...\n"
    )
    yield from array_class()
    yield ""
    for name in nvm.__all__:
        value = getattr(nvm, name)
        if isinstance(value, nvm.DType):
            yield f"{name}: DType"
        elif isinstance(value, (float, str)) or value is None:
            yield f"{name}: {type(value).__name__ if value is not None else 'None'}"
        elif inspect.ismodule(value) or inspect.isclass(value):
            continue
        elif name in table and value is nvm._nvm.functions[name]:
            yield function(name, value, table[name][1], "Array")
        else:
            yield function(name, value, 0, {"async_eval": "Evaluation"}.get(name, "Any"))


def class_of_parts(name, c):
    yield f"\n\nclass {name}(tuple[{', '.join('Array' for _ in c._fields)}]):"
    yield "    def __new__(cls, *items: Array) -> Self: ..."
    for part in c._fields:
        yield f"    @property\n    def {part}(self) -> Array: ..."


def class_of_methods(name, c, types):
    """A class with the methods and properties that it shows, and those of its bases."""
    yield f"\n\nclass {name}:"
    yield (
        "    def __init__(self, "
        + annotated(list(inspect.signature(c).parameters.values()), 0, False, types)
        + ") -> None: ..."
    )
    for method, value in inspect.getmembers(c):
        if method.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"    @property\n    def {method}(self) -> Any: ..."
            yield f"    @{method}.setter\n    def {method}(self, words: Any) -> None: ..."
        else:
            yield "    " + module_function("random", method, value, types, ("self",))


def module_function(module, name, f, types, first=()):
    parameters = [p for p in inspect.signature(f).parameters.values() if p.name != "self"]
    text = annotated(parameters, 0, False, types)
    result = MODULE_RETURNS.get(f"{module}.{name}", "Array")
    return f"def {name}({', '.join(first + ((text,) if text else ()))}) -> {result}: ..."


def module_lines(name):
    """The stub of a module: what its __all__ names."""
    module = getattr(nvm, name)
    types = ATTRIBUTES | TYPES[name]
    yield MODULE_HEAD
    for thing in module.__all__:
        value = getattr(module, thing)
        if not inspect.isclass(value):
            yield module_function(name, thing, value, types)
        elif getattr(nvm, thing, None) is value:
            yield f"from . import {thing} as {thing}"
        elif issubclass(value, Exception):
            yield f"\n\nclass {thing}({value.__base__.__name__}): ..."
        elif hasattr(value, "_fields"):
            yield from class_of_parts(thing, value)
        else:
            yield from class_of_methods(thing, value, types)


def write(path, text):
    path.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    write(folder / "__init__.pyi", lines())
    for name in MODULES:
        write(folder / f"{name}.pyi", module_lines(name))
