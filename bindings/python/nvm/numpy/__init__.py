"""nvm.numpy: NumPy's names, signatures, default dtypes and behaviour over nvm's lazy arrays, for programs whose import
alone changes. What is not here is an AttributeError that names the nearest; nothing is handed to NumPy. Where NumPy
returns a scalar, a function of this module returns an array of no dimensions."""

from importlib import import_module as _import_module

from .. import _nvm, fft, linalg
from .._array_api import DTYPES as _DTYPES
from .._array_api import __array_namespace_info__, e, inf, nan, newaxis, pi
from .._ufunc import UFUNCS as _UFUNCS
from .._ufunc import ufunc
from . import exceptions

ndarray, euler_gamma = _nvm.Array, 0.5772156649015329
globals().update(_UFUNCS)
globals().update((t.name, t) for t in _DTYPES)
_THEMES = (
    "bits creation dtypes errors functional grids histograms indexing io joining logic math nan polynomials "
    "printing products reductions sets shapes sorting statistics text windows"
).split()
_LATE = "emath", "lib", "polynomial", "random", "testing"  # imported when they are asked for
for _theme in _THEMES:
    _module = _import_module("._" + _theme, __name__)
    globals().update((name, getattr(_module, name)) for name in _module.__all__)


def __getattr__(name):
    if name in _LATE:
        return _import_module("." + name, __name__)
    from .._names import INSTEAD_OF_NUMPY, missing

    raise missing(name, __all__, "nvm.numpy", INSTEAD_OF_NUMPY) from None


__all__ = sorted(name for name in globals() if not name.startswith("_")) + ["__array_namespace_info__"]
__all__ += _LATE
