"""NumPy's protocols: its ufuncs and functions, called with an nvm array, call nvm's of the same name. The modules
behind them are imported when that happens first."""

from . import _nvm

# NumPy's functions that write to their first argument, by whose name it stands here; where that is NumPy's, so is the
# function
_WRITERS = {"copyto": "dst", "put": "a", "place": "arr", "putmask": "a", "fill_diagonal": "a", "put_along_axis": "arr"}


def find_ufunc(theirs):
    from ._ufunc import find

    return find(theirs)


def array_function(self, func, types, args, kwargs):
    """NumPy's function func, called with an nvm array: nvm.numpy's function of the same name."""
    for t in types:  # what wraps arrays calls the functions itself; other libraries' arrays show their memory
        if not issubclass(t, _nvm.Array) and not hasattr(t, "__dlpack__"):
            return NotImplemented
    written = _WRITERS.get(func.__name__)
    if written and not isinstance(args[0] if args else kwargs.get(written), _nvm.Array):
        return func(*map(_to_numpy, args), **{name: _to_numpy(x) for name, x in kwargs.items()})
    return _functions[func](*args, **kwargs)


def _to_numpy(x):
    return x.__array__() if isinstance(x, _nvm.Array) else x


class _Functions(dict):
    """nvm's functions by NumPy's, found when they are asked for first."""

    def __missing__(self, func):
        from importlib import import_module

        home, name = import_module(".numpy", __package__), f"{func.__module__}.{func.__name__}"
        try:
            for part in name.split(".")[1:]:
                home = getattr(home, part)
            self[func] = home
        except AttributeError as e:
            raise TypeError(
                f"nvm has no {name} ({e}); nvm.asarray({name}(numpy.asarray(x))) computes it in NumPy's memory"
            ) from None
        return home


_functions = _Functions()
_nvm.hooks.update(find_ufunc=find_ufunc)
_nvm.Array.__array_function__ = array_function
