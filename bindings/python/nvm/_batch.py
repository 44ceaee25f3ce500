"""nvm.batch_process: several functions of the same arguments as one program."""

from . import _nvm
from ._device import device
from ._jit import jit

_NUMBERS = (bool, int, float, complex)


def _is_readable(a):
    """May it be an argument of a jitted function, which reads it where it lies?"""
    return isinstance(a, (_nvm.Array, *_NUMBERS)) or hasattr(a, "__array_interface__")


def batch_process(functions, /, *args):
    """The results of several functions of the same arguments: a list. They are planned together, so that what they
    share is computed once and kernels are fused across them.

    functions: a sequence of functions, each called with args; their results are arrays, or tuples, lists and dicts of
    them, and are evaluated when this returns. args: arrays (nvm's, NumPy's, lists of numbers) of any shapes and
    dtypes, and numbers, which are weak in promotion. Where the CPU is the default device and has the arguments, the
    functions are traced as one, as nvm.jit does, so its rules hold: an array has no value inside. On a GPU they are
    called one after the other and their lazy results are evaluated together; jitted functions among them run by
    themselves there. TypeError if an item is no function.

    Inside a traced function the results are a part of it, and are evaluated with it.

    >>> import nvm
    >>> nvm.batch_process([nvm.sum, nvm.max], nvm.asarray([1.0, 2.0]))
    [array(3.), array(2.)]
    """
    functions = tuple(functions)
    for f in functions:
        if not callable(f):
            raise TypeError(f"[batch_process] takes functions, not {type(f).__name__}")
    if not functions:
        return []
    traced = _nvm.tracing()
    args = tuple(a if _is_readable(a) else _nvm.asarray(a) for a in args)
    if not traced and device() == "cpu" and all(getattr(a, "device", "cpu") == "cpu" for a in args):
        return list(jit(lambda *args: tuple(f(*args) for f in functions))(*args))
    args = tuple(a if isinstance(a, _NUMBERS) else _nvm.asarray(a) for a in args)
    results = [f(*args) for f in functions]
    if not traced:
        _nvm.eval(results)
    return results
