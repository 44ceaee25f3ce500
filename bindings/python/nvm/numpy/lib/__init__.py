"""nvm.numpy.lib: the part of NumPy's module of this name that programs use."""

from . import stride_tricks

__all__ = ["stride_tricks"]


def __getattr__(name):
    from ..._names import missing

    raise missing(name, __all__, "nvm.numpy.lib") from None
