"""Lets pandas take arrays of nvm where it looks at what it is given: after `import nvm.pandas` isin, unique, factorize,
Categorical, masks as keys and arithmetic with a DataFrame take nvm's arrays as they take NumPy's, which show the same
memory. pandas takes what is no array of NumPy's for a list, and finds the elements of a list by their hash, which an
array has not. pandas itself has to be installed."""

import functools

import pandas as _pandas
from pandas.core import algorithms as _algorithms
from pandas.core import indexing as _indexing

from . import _nvm

_METHODS = {
    _pandas.Categorical: "__init__",
    _pandas.DataFrame: "__getitem__ __setitem__ _arith_method _cmp_method _logical_method isin",
    _pandas.Index: "isin get_indexer",
    _pandas.Series: "__getitem__ __setitem__ _logical_method isin",
    _indexing._LocationIndexer: "__getitem__ __setitem__",
    _algorithms: "isin unique factorize",
    _pandas: "unique factorize",
}


def _shown(x):
    if isinstance(x, tuple) and type(x) is tuple:
        return tuple(map(_shown, x))
    return x.__array__() if isinstance(x, _nvm.Array) else x


def _taking_nvm(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*map(_shown, args), **{name: _shown(x) for name, x in kwargs.items()})

    wrapper.of_nvm = True
    return wrapper


for _owner, _names in _METHODS.items():
    for _name in _names.split():
        if not hasattr(_owner, _name):
            raise ImportError(f"this version of pandas has no {_owner.__name__}.{_name}; nvm.pandas knows 3.1")
        if not hasattr(getattr(_owner, _name), "of_nvm"):
            setattr(_owner, _name, _taking_nvm(getattr(_owner, _name)))
