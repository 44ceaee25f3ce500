"""nvm: fused array mathematics.

Functions build a lazy expression; it is planned, fused into few kernels and run when a value is needed. The functions
come from the library's own table of operations (help(nvm.sin)); nvm.jit traces a Python function once and replays it.
"""

from . import _nvm
from ._nvm import (
    Array,
    DType,
    Error,
    Jitted,
    asarray,
    counters,
    default_dtype,
    device_info,
    donate,
    dtype,
    eval,
    explain_arrays as _explain_arrays,
    from_dlpack,
    info,
    may_share_memory,
    memory_info,
    reset_peak,
    set,
    set_default_device,
    set_default_dtype,
    set_memory_limit,
    shares_memory,
    synchronize,
    trim_memory,
)
from ._nvm import __version__

# What is imported when it is asked for first: names by the files that have them, and modules.
_LATE = {
    name: file
    for file, names in {
        "_array_api": "__array_api_version__ __array_namespace_info__ can_cast e finfo iinfo inf isdtype nan newaxis "
        "pi result_type",
        "_async": "Evaluation async_eval",
        "_batch": "batch_process",
        "_compile_progress": "compile_progress",
        "_device": "device devices get_default_device stream",
        "_doctor": "doctor",
        "_jit": "explain jit",
        "_loops": "cond fori_loop scan while_loop",
        "_lower": "Compiled Lowered",
        "_pad": "pad",
        "_stream": "Event Stream",
        "_tree": "register_pytree",
        "_tune": "auto_tune tune",
        "_vmap": "vmap",
        "_products": "dot einsum einsum_path inner outer tensordot",
    }.items()
    for name in names.split()
}

globals().update((name, f) for name, f in _nvm.functions.items() if "." not in name and name not in _LATE)
globals().update((name, t) for name, t in vars(_nvm).items() if isinstance(t, DType))

from ._creation import (
    arange,
    array,
    broadcast_arrays,
    broadcast_shapes,
    diff,
    empty,
    empty_like,
    full,
    full_like,
    meshgrid,
    nonzero,
    round,
    unstack,
)
from ._order import isin, repeat, searchsorted, unique_all, unique_counts, unique_inverse, unique_values
from . import _methods, _ndarray

_MODULES = "fft", "linalg", "numpy", "optimization", "profiler", "random", "signal"
# what the C half calls, by the files that have it
_HOOKS = {
    name: file
    for file, names in {
        "_device": "device",
        "_factor": "linalg_error",
        "_index": "getitem setitem iter reversed",
        "_jit": "traced_value_message method_signature bound_method plan",
        "_lower": "lowered",
        "_masked": "masked",
        "_numpy": "numpy_dtype array foreign reduce",
        "_print": "repr str",
        "_protocol": "find_ufunc find_route",
        "_tree": "tree_nodes tree_open tree_close",
        "numpy.exceptions": "axis_error",
    }.items()
    for name in names.split()
}


def _import(file):
    from sys import modules

    name = f"{__name__}.{file}"
    __import__(name)
    return modules[name]


def _import_hook(name):
    if name in _HOOKS:
        _import(_HOOKS[name])


_nvm.hooks["import"] = _import_hook


def settings():
    """The settings of nvm and their values: a dict. nvm.set changes one; `python -m nvm settings` explains them.

    >>> import nvm
    >>> nvm.settings()["NVM_FUSE"]
    'on'
    """
    return {name: row[0] for name, row in _nvm.settings_table().items()}


def _name_libraries():
    """The folders of wheels that hold libraries: CUDA's and OpenBLAS. Nothing there is opened before it is needed."""
    import sys
    from os.path import isdir

    for folder in sys.path:
        for wheel in ("nvidia", "scipy_openblas32"):
            if folder and isdir(f"{folder}/{wheel}"):
                _nvm.library_dir(f"{folder}/{wheel}")


_name_libraries()


def _namespace(version):
    if version is not None and version not in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"nvm follows the array API {__getattr__('__array_api_version__')}, not {version!r}")
    from sys import modules

    return modules[__name__]


_nvm.hooks["namespace"] = _namespace


def _module(prefix):  # "", or "fft."
    return _import(prefix[:-1]) if prefix else _namespace(None)


_nvm.hooks["module"] = _module


def _without_llvm(why):
    import sys
    import warnings

    level, frame = 1, sys._getframe()
    while frame and frame.f_globals.get("__package__") == __name__:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"nvm compiles nothing for this CPU: {why}. Its interpreter computes the same values, several times "
        "slower; `python -m nvm info` tells what was found",
        RuntimeWarning,
        level,
    )


_nvm.hooks["without_llvm"] = _without_llvm


def _warn_of_environment():
    if lines := _nvm.settings_invalid():
        import warnings

        for line in lines.splitlines():
            warnings.warn(line, RuntimeWarning, 3)


_warn_of_environment()


def _was_set(name):  # by nvm.set
    if name.lower().removeprefix("nvm_") == "doctor":
        from . import _doctor

        _doctor.follow_setting()


_nvm.hooks["was_set"] = _was_set
if _nvm.settings_table()["NVM_DOCTOR"][0] == "1":
    _was_set("doctor")


# names that xarray and SciPy ask a namespace of arrays for beside the standard's: nvm.numpy's functions
_OF_NUMPY = "cross", "diag", "gradient", "lib", "quantile", "transpose"


def __getattr__(name):
    if name in _LATE:
        value = globals()[name] = getattr(_import(_LATE[name]), name)
        return value
    if name in _MODULES:
        return _import(name)
    if name in _OF_NUMPY:
        return getattr(_import("numpy"), name)
    from ._names import missing

    raise missing(name, __all__) from None


def __dir__():
    return sorted({*globals(), *__all__})


# import * hides no other numpy
__all__ = sorted({n for n in (*globals(), *_LATE, *_MODULES) if not n.startswith("_")} - {"numpy"})
__all__ += ["__version__", "__array_api_version__"]
