"""Attributes of NumPy's arrays that speak of memory: flags, strides, flat, byteswap, and pickles whose elements travel
beside them. What they tell is what others see who ask for the memory, and asking may evaluate the array."""

from . import _nvm

_FLAGS = {
    "C_CONTIGUOUS": "c_contiguous",
    "F_CONTIGUOUS": "f_contiguous",
    "WRITEABLE": "writeable",
    "ALIGNED": "aligned",
    "WRITEBACKIFCOPY": "writebackifcopy",
    "C": "c_contiguous",
    "CONTIGUOUS": "contiguous",
    "F": "f_contiguous",
    "FORTRAN": "f_contiguous",
    "W": "writeable",
    "A": "aligned",
    "X": "writebackifcopy",
    "FNC": "fnc",
    "FORC": "forc",
    "B": "behaved",
    "BEHAVED": "behaved",
    "CA": "carray",
    "CARRAY": "carray",
}


class flagsobj:
    """How the elements of an array lie in memory, by attribute or by NumPy's name. WRITEABLE: elements can be set by
    x[...] = value; the memory itself is read-only for others."""

    __slots__ = ("_array",)

    def __init__(self, array):
        object.__setattr__(self, "_array", array)

    def _is_packed(self, reverse):
        x = self._array
        strides, packed = x.strides, x.itemsize
        for n, stride in zip(x.shape if reverse else x.shape[::-1], strides if reverse else strides[::-1]):
            if n != 1 and stride != packed:
                return x.size == 0
            packed *= n
        return True

    c_contiguous = contiguous = property(lambda self: self._is_packed(False))
    f_contiguous = property(lambda self: self._is_packed(True))
    writeable = property(lambda self: _nvm.is_writable(self._array))
    aligned = property(lambda self: True)
    writebackifcopy = property(lambda self: False)
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous)
    forc = property(lambda self: self.f_contiguous or self.c_contiguous)
    behaved = property(lambda self: self.writeable)
    carray = property(lambda self: self.c_contiguous and self.writeable)

    def __getitem__(self, name):
        if name in ("OWNDATA", "O"):
            return self.owndata
        if name not in _FLAGS:
            raise KeyError(f"[flags] there is no flag {name!r}; flags are {', '.join(f for f in _FLAGS if len(f) > 2)}")
        return getattr(self, _FLAGS[name])

    @property
    def owndata(self):
        raise AttributeError(
            "an array of nvm has no flag OWNDATA; nvm.may_share_memory(x, y) tells whose memory it shows",
            name="owndata",
        )

    def __setitem__(self, name, value):
        raise ValueError(f"[flags] {name} of an array of nvm cannot be set; nvm.asarray(x, copy=True) is of its own")

    def __setattr__(self, name, value):
        self[name] = value

    def __eq__(self, other):
        if not isinstance(other, flagsobj):
            return NotImplemented
        return all(self[name] == other[name] for name in list(_FLAGS)[:5])

    __hash__ = None

    def __repr__(self):
        return "\n".join(f"  {name} : {self[name]}" for name in list(_FLAGS)[:5])


def _strides(self):
    """Bytes from an element to the next along each dimension, in the memory that others see; evaluates the array."""
    try:
        return memoryview(self).strides
    except BufferError:  # bfloat16 and the like, which NumPy gets as a copy
        strides, packed = [], self.itemsize
        for n in self.shape[::-1]:
            strides.append(packed)
            packed *= n
        return tuple(strides[::-1])


class flatiter:
    """The elements of an array in row-major order: an iterator, which can be indexed and written to like NumPy's."""

    def __init__(self, base):
        self.base, self.index = base, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= self.base.size:
            raise StopIteration
        self.index += 1
        return self.base.reshape(-1)[self.index - 1]

    def __len__(self):
        return self.base.size

    @property
    def coords(self):
        """The indices of the next element."""
        at, rest = [], self.index
        for n in self.base.shape[::-1]:
            at.append(rest % n if at or rest < self.base.size else rest)
            rest //= n
        return tuple(at[::-1])

    def __getitem__(self, key):
        return self.base.reshape(-1)[key].copy()

    def __setitem__(self, key, value):
        x = self.base
        flat = x.reshape(-1).copy()
        place = _nvm.functions["arange"](x.size)[key]
        value = _nvm.asarray(value, dtype=x.dtype).reshape(-1)
        if not value.size:
            raise ValueError(f"[flat] {place.size} elements cannot be set to none: a value of shape {value.shape}")
        n = place.size
        if value.size != 1 and value.size != n:  # as NumPy: repeated, or cut
            value = _nvm.functions["tile"](value, -(-n // value.size))[:n]
        flat[key] = value.reshape(place.shape) if value.size > 1 or n == 1 else value.reshape(())
        x[...] = flat.reshape(x.shape)

    def copy(self):
        """The elements as an array of one dimension."""
        return self.base.flatten()

    def __array__(self, dtype=None, copy=None):
        return self.copy().__array__(dtype, copy)

    def _compare(name):
        def compare(self, other):
            return getattr(self.copy(), name)(other)

        compare.__name__ = compare.__qualname__ = name
        return compare

    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_compare, "__eq__ __ne__ __lt__ __le__ __gt__ __ge__".split())
    __hash__ = None
    del _compare


def _set_flat(self, value):
    flatiter(self)[:] = value


def _byteswap(self, inplace=False):
    """The elements with their bytes in reverse order, each part of a complex number by itself. Needs the values."""
    size = self.itemsize // (2 if self.dtype.kind == "c" else 1)
    x = self.reshape(-1)
    if size > 1:
        x = x.view("u1").reshape(-1, size)[:, ::-1].reshape(-1).view(self.dtype)
    x = x.reshape(self.shape)
    if inplace:
        self[...] = x
        return self
    return x if size > 1 else x.copy()


_CASTS = "?bBhHiIlLqQfd"  # what a memoryview casts its bytes to


def from_buffer(data, dtype, shape):
    """The array of a pickle: over the memory of data where nobody can write to it, else of a copy."""
    view = memoryview(data)
    fixed = type(view.obj) in (bytes, _nvm.Array)  # a view of a bytearray may say that it is read-only
    if fixed and view.nbytes and dtype.char in _CASTS:
        return _nvm.asarray(view.cast("B").cast(dtype.char, shape or (1,)), copy=False).reshape(shape)
    return _nvm.from_bytes(bytes(view), dtype, shape)


def _reduce_ex(self, protocol):
    """From protocol 5 on the elements are a buffer, which a pickler may hand over beside the pickle."""
    if protocol < 5 or self.dtype.name == "bfloat16" or self.dtype.name.startswith("float8"):
        return self.__reduce__()
    from pickle import PickleBuffer

    x = self if self.flags.c_contiguous else self.flatten()
    return from_buffer, (PickleBuffer(x), self.dtype, self.shape)


for _name, _value in {
    "flags": property(flagsobj, doc="how the elements lie in memory: flags.c_contiguous, flags['WRITEABLE'], ..."),
    "strides": property(_strides, doc=_strides.__doc__),
    "flat": property(flatiter, _set_flat, doc="the elements in row-major order: an iterator that can be indexed"),
    "byteswap": _byteswap,
    "__reduce_ex__": _reduce_ex,
}.items():
    if not isinstance(_value, property):
        _value.__name__ = _value.__qualname__ = _name if _name.startswith("__") else _name
    setattr(_nvm.Array, _name, _value)
