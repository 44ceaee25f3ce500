"""The array API's Fourier transforms, and NumPy's of two dimensions: functions of the library's table of operations."""

from . import _nvm

globals().update((name[4:], f) for name, f in _nvm.functions.items() if name.startswith("fft."))
__all__ = [name[4:] for name in _nvm.functions if name.startswith("fft.")]
