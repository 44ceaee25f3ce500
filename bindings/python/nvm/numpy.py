"""nvm.numpy: functions of nvm under NumPy's names, for programs whose import alone changes. What is not here is an
AttributeError that names the nearest."""

from . import _nvm, fft, linalg, random
from ._array_api import DTYPES, e, inf, nan, newaxis, pi
from ._creation import arange, array

ndarray, asarray = _nvm.Array, _nvm.asarray
_SAME = (
    "abs ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p log2 maximum minimum sign sin sinh sqrt "
    "square tan tanh where add subtract multiply divide matmul max mean min prod std sum var eye ones zeros"
).split()
globals().update((name, _nvm.functions[name]) for name in _SAME)
globals().update((t.name, t) for t in DTYPES)


def __getattr__(name):
    from ._names import missing

    raise missing(name, __all__, "nvm.numpy") from None


__all__ = (
    [t.name for t in DTYPES]
    + [name for name in _SAME]
    + ["fft", "linalg", "random", "e", "inf", "nan", "newaxis", "pi", "arange", "array", "asarray", "ndarray"]
)
