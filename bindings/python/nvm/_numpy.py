"""Meeting NumPy: imported only when somebody asks for a NumPy thing, so that nvm itself does not need it."""

from . import _nvm

_ADDED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}  # by ml_dtypes; of the same size


def numpy_dtype(t):
    try:
        import numpy as np
    except ImportError:
        raise AttributeError(f"NumPy, whose {t.name} is asked for, is not installed") from None
    if t.name not in _ADDED:
        return np.dtype(t.name)
    try:
        import ml_dtypes
    except ImportError:
        raise AttributeError(f"NumPy has no {t.name}; the package ml_dtypes adds it") from None
    return np.dtype(getattr(ml_dtypes, t.name))


def array(x, dtype, copy):
    import numpy as np

    if copy is False and (x.dtype.name in _ADDED or x.device != "cpu"):
        raise ValueError(f"copy=False, but an array of {x.dtype.name} on {x.device} has to be copied for NumPy")
    if x.dtype.name in _ADDED:
        a = np.frombuffer(x.tobytes(), dtype=numpy_dtype(x.dtype)).reshape(x.shape)
    else:
        a = np.asarray(_nvm.show(x))
    if dtype is not None and a.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"copy=False, but {a.dtype} has to be converted to {dtype}")
        return a.astype(dtype)
    return a.copy() if copy else a


def foreign(x, copy):
    """(buffer, dtype of its bits or None) of something that nvm cannot read by itself; copy=False: over its memory."""
    import numpy as np

    if isinstance(x, (np.ndarray, np.generic)):
        a = x
    else:
        a = np.asarray(x) if copy is None else np.asarray(x, copy=copy)
    if a.dtype.name in _ADDED:
        return a.view(_ADDED[a.dtype.name]), a.dtype.name
    if a.dtype.hasobject or a.dtype.kind not in "biufc":
        raise TypeError(
            f"[asarray] nvm has no dtype for NumPy's {a.dtype}; x.astype(float), or another dtype of numbers, converts "
            f"what can be converted"
        )
    if a.dtype.byteorder == ">":
        if copy is False:
            raise ValueError("[asarray] copy=False, but the bytes of the elements have to be swapped")
        a = a.astype(a.dtype.newbyteorder("="))
    return a, None


def reduce(x):
    return _nvm.from_bytes, (x.tobytes(), x.dtype, x.shape)


_nvm.hooks.update(numpy_dtype=numpy_dtype, array=array, foreign=foreign, reduce=reduce)
