"""Results of several parts, without the time that importing typing or collections takes."""


class Named(tuple):
    """A tuple whose items have names too."""

    _fields = ()

    def __init_subclass__(cls):
        cls.__doc__ = cls.__doc__ or f"A tuple of {', '.join(cls._fields)}, which are its attributes too."
        for i, name in enumerate(cls._fields):
            setattr(cls, name, property(lambda self, i=i: self[i]))

    def __new__(cls, *items):
        return tuple.__new__(cls, items)

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self):
        return f"{type(self).__name__}(" + ", ".join(f"{n}={v!r}" for n, v in zip(self._fields, self)) + ")"
