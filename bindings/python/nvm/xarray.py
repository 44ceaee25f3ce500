"""Lets xarray fill arrays of nvm with missing values: after `import nvm.xarray` where, shift, pad, rolling, reindex and
what is made of them take nvm's arrays and give nvm's. xarray looks up the missing value of a dtype in functions that
know NumPy's dtypes alone; they are given the one of NumPy that is the same. xarray itself has to be installed."""

import functools

import numpy as _np
import xarray.core.dtypes as _core
import xarray.namedarray.dtypes as _named
from xarray import DataArray as _DataArray
from xarray import Variable as _Variable

from . import _nvm

# NumPy asks for it where it looks for the common dtype of DataArrays
for _class in _DataArray, _Variable:
    _class.__numpy_dtype__ = property(lambda self: _np.dtype(self.dtype))

_NAMES = "maybe_promote", "get_fill_value", "get_pos_infinity", "get_neg_infinity"


def _taking_nvm(fn):
    @functools.wraps(fn)
    def wrapper(dtype, *args, **kwargs):
        return fn(_np.dtype(dtype) if isinstance(dtype, type(_nvm.float32)) else dtype, *args, **kwargs)

    wrapper.of_nvm = True
    return wrapper


for _module in _core, _named:
    for _name in _NAMES:
        if not hasattr(_module, _name):
            raise ImportError(f"this version of xarray has no {_module.__name__}.{_name}; nvm.xarray knows 2026.9")
        if not hasattr(getattr(_module, _name), "of_nvm"):
            setattr(_module, _name, _taking_nvm(getattr(_module, _name)))
