"""Methods of NumPy's arrays that are compositions of nvm's functions, and what to write instead of those that an array
of nvm has not."""

from . import _nvm

_f = _nvm.functions


def _of_numpy(name, doc):
    """The method that calls nvm.numpy's function of the same name."""

    def method(self, *args, **given):
        from . import numpy

        return getattr(numpy, name)(self, *args, **given)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    return method


def _choose(self, choices, out=None, mode="raise"):
    """Elements of several arrays, from which one each, this array of their numbers says."""
    from . import numpy

    return numpy.choose(self, choices, out, mode)


def _compress(self, condition, axis=None, out=None):
    """The slices along an axis where a mask is true."""
    from . import numpy

    return numpy.compress(condition, self, axis, out)


def _fill(self, value):
    """Writes one value to every element."""
    self[...] = value


def _partition(self, kth, axis=-1):
    """Sorts the array itself along an axis, which puts each element at or behind those that are not greater."""
    from . import numpy

    self[...] = numpy.partition(self, kth, axis)


def _tofile(self, file):
    """Writes the elements in row-major order as bytes to a path, or to a file that is open for writing."""
    if hasattr(file, "write"):
        file.write(self.tobytes())
        return
    with open(file, "wb") as out:
        out.write(self.tobytes())


def _view(self, dtype=None):
    """The bits of the elements as another dtype, a copy, which needs their values; the last dimension shrinks or grows
    as the size of an element says. Without a dtype a view of the array."""
    if dtype is None:
        return self[...]
    dtype, shape = _nvm.dtype(dtype), self.shape
    before, after = self.dtype.itemsize, dtype.itemsize
    if before != after:
        if not shape:
            raise ValueError(f"[view] an array without dimensions of {self.dtype.name} has no view as {dtype.name}")
        if shape[-1] * before % after:
            raise ValueError(f"[view] {shape[-1]} elements of {self.dtype.name} are no whole number of {dtype.name}")
        shape = shape[:-1] + (shape[-1] * before // after,)
    return _nvm.from_bytes(self.tobytes(), dtype, shape)


def _dot(x1, x2, /, *, dtype=None, precision=None):
    """NumPy's dot: over the last dimension of x1 and the last but one of x2 (its only one); scalars multiply."""
    from .linalg import dot

    return dot(x1, x2, dtype=dtype, precision=precision)


def _await(self):
    """await x: evaluates x in another thread, so that the event loop goes on, and gives x itself."""
    if not self.ready():
        from ._async import async_eval

        yield from async_eval(self).__await__()
    return self


def _format(x, spec):
    """A 0-d array is formatted as its number is."""
    from ._print import format_array

    return format_array(x, spec)


def _repr_html(x):
    """For notebooks: shape, dtype and device, and the elements if they are computed; a pending array stays pending."""
    from ._print import repr_html

    return repr_html(x)


def _lacking(name, instead):
    def getter(self):
        raise AttributeError(f"an array of nvm has no {name}; {instead}", name=name)

    return property(getter)


def _of_method(name, self, *args, **given):
    """A method with arguments that only NumPy's method of that name has: nvm.numpy's function."""
    from . import numpy

    if name in _ORDERED:
        return _ORDERED[name](self, *args, **given)
    if name == "astype":
        return _astype(self, *args, **given)
    if name == "reshape":
        shape = given.pop("shape") if "shape" in given else args[0] if len(args) == 1 else args
        return numpy.reshape(self, shape, **given)
    return getattr(numpy, name)(self, *args, **given)


def _ordered(name, transposed):
    """The method with NumPy's argument order: 'F' is that of the transpose."""

    def method(self, order="C"):
        from .numpy._support import check_order

        return getattr(self.T if check_order(order) == "F" and transposed else self, name)()

    return method


_ORDERED = {name: _ordered(name, name != "copy") for name in ("copy", "flatten", "ravel", "tobytes")}


def _astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True, device=None):
    from ._ufunc import can_cast
    from .numpy._support import check_order

    check_order(order)
    if not can_cast(self.dtype, _nvm.dtype(dtype), casting):
        raise TypeError(
            f"[astype] {self.dtype.name} is not cast to {_nvm.dtype(dtype).name} under the rule {casting!r}"
        )
    return _f["astype"](self, dtype, copy=copy, device=device)


_nvm.hooks["numpy_method"] = _of_method
for _name, _doc in {
    "argpartition": "Positions that put the kth element along an axis where sorting would.",
    "put": "Writes values at positions of the flattened array.",
    "swapaxes": "The array with two axes exchanged.",
    "trace": "The sum along a diagonal.",
}.items():
    setattr(_nvm.Array, _name, _of_numpy(_name, _doc))
_nvm.Array.__await__, _nvm.Array.__format__, _nvm.Array._repr_html_ = _await, _format, _repr_html
for _method in (_choose, _compress, _dot, _fill, _partition, _tofile, _view):
    _method.__name__ = _method.__qualname__ = _method.__name__[1:]
    setattr(_nvm.Array, _method.__name__, _method)
LACKING = {
    "base": "may_share_memory(x, y) tells whose memory it shows",
    "ctypes": "numpy.asarray(x).ctypes has the address of its elements",
    "data": "memoryview(x) shows its elements",
    "dump": "pickle.dump(x, file) writes it",
    "dumps": "pickle.dumps(x) gives its bytes",
    "itemset": "x[i] = value writes one element",
    "newbyteorder": "its elements have the byte order of the machine",
    "ptp": "nvm.numpy.ptp(x) is the difference of its extremes",
    "resize": "nvm.numpy.resize(x, shape) makes another array",
    "setflags": "nvm.numpy.asarray(x).copy() is an array that no other one shows",
    "tostring": "x.tobytes() gives its bytes",
}
for _name, _instead in LACKING.items():
    setattr(_nvm.Array, _name, _lacking(_name, _instead))
