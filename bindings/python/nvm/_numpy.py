"""Meeting NumPy: imported only when somebody asks for a NumPy thing, so that nvm itself does not need it."""
from . import _nvm


def numpy_dtype(t):
    import numpy as np
    if t.name != "bfloat16":
        return np.dtype(t.name)
    try:
        import ml_dtypes
    except ImportError:
        raise AttributeError("NumPy has no bfloat16; the package ml_dtypes adds it") from None
    return np.dtype(ml_dtypes.bfloat16)


def array(x, dtype, copy):
    import numpy as np
    if x.dtype == _nvm.bfloat16:
        a = np.frombuffer(x.tobytes(), dtype=numpy_dtype(x.dtype)).reshape(x.shape)
    else:
        a = np.asarray(memoryview(x))
    if dtype is not None and a.dtype != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"copy=False, but {a.dtype} has to be converted to {dtype}")
        return a.astype(dtype)
    return a.copy() if copy else a


def foreign(x):
    """(buffer, dtype of its bits or None) of something that nvm cannot read by itself."""
    import numpy as np
    a = x if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x)
    if a.dtype.name == "bfloat16":
        return a.view(np.uint16), "bfloat16"
    if a.dtype.hasobject or a.dtype.kind not in "biufc":
        raise TypeError(f"[asarray] nvm has no dtype for NumPy's {a.dtype}")
    if a.dtype.byteorder == ">":
        a = a.astype(a.dtype.newbyteorder("="))
    return np.ascontiguousarray(a), None


def reduce(x):
    return _nvm.from_bytes, (x.tobytes(), x.dtype, x.shape)


_nvm.hooks.update(numpy_dtype=numpy_dtype, array=array, foreign=foreign, reduce=reduce)
