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

globals().update((name, f) for name, f in _nvm.functions.items() if "." not in name)

from ._array_api import (
    DTYPES as _DTYPES,
    __array_api_version__,
    __array_namespace_info__,
    can_cast,
    e,
    finfo,
    iinfo,
    inf,
    isdtype,
    nan,
    newaxis,
    pi,
    result_type,
)

globals().update((t.name, t) for t in _DTYPES)

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
from ._pad import pad
from ._async import Evaluation, async_eval
from ._batch import batch_process
from ._device import device, devices, get_default_device, stream
from ._doctor import doctor
from ._jit import explain, jit
from ._lower import Compiled, Lowered
from ._loops import cond, fori_loop, scan, while_loop
from ._stream import Event, Stream
from ._tree import register_pytree
from ._tune import auto_tune, tune
from ._vmap import vmap
from . import _index, _masked, _methods, _ndarray, _numpy, _print, _protocol
from . import fft, linalg, optimization, profiler, random, signal
from .linalg import dot, einsum, einsum_path, inner, outer, tensordot


def settings():
    """The settings of nvm and their values: a dict. nvm.set changes one; `python -m nvm settings` explains them."""
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
        raise ValueError(f"nvm follows the array API {__array_api_version__}, not {version!r}")
    import sys

    return sys.modules[__name__]


_nvm.hooks["namespace"] = _namespace


def _module(prefix):  # "", or "fft."
    return getattr(_namespace(None), prefix[:-1]) if prefix else _namespace(None)


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
    import warnings

    for line in _nvm.settings_invalid().splitlines():
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
    if name == "numpy":  # imported when it is asked for
        import importlib

        return importlib.import_module(".numpy", __name__)
    if name in _OF_NUMPY:
        return getattr(__getattr__("numpy"), name)
    from ._names import missing

    raise missing(name, __all__) from None


# import * hides no other numpy
__all__ = sorted(n for n in globals() if not n.startswith("_")) + [
    "__version__",
    "__array_api_version__",
]
