"""The array API's Fourier transforms and NumPy's of two dimensions, which are functions of the library's table of
operations; SciPy's cosine and sine transforms, which are compositions of them."""

from . import _nvm
from ._cosines import dct, dst, idct, idst

globals().update((name[4:], f) for name, f in _nvm.functions.items() if name.startswith("fft."))
__all__ = [name[4:] for name in _nvm.functions if name.startswith("fft.")] + ["dct", "dst", "idct", "idst"]
