"""python -m nvm run SCRIPT [ARGUMENTS]: runs a program whose `import numpy` is answered by nvm.numpy. It is so for the
script and the modules beside it; libraries that they import have NumPy itself."""

import builtins
import os
import runpy
import sys


def _is_of(folder, space):
    """Is this the namespace of the script, or of a module beside it or below?"""
    file = space.get("__file__") if space else None
    if space is None or space.get("__name__") == "__main__":
        return True
    if not file or "site-packages" in file:
        return False
    return os.path.realpath(file).startswith(folder + os.sep)


def _answer(name, fromlist):
    """What an import of numpy, or of a module of it, gives."""
    import nvm.numpy

    module, done = nvm.numpy, "numpy"
    for part in name.split(".")[1:]:
        done += "." + part
        module = getattr(module, part, None)
        if module is None:
            raise ModuleNotFoundError(f"nvm.numpy has no module {done!r}", name=done)
    return module if fromlist else nvm.numpy


def run(script, arguments):
    """Runs the script with these arguments."""
    folder, imported = os.path.dirname(os.path.realpath(script)), builtins.__import__

    def answering(name, globals=None, locals=None, fromlist=(), level=0):
        if level == 0 and name.partition(".")[0] == "numpy" and _is_of(folder, globals):
            return _answer(name, fromlist)
        return imported(name, globals, locals, fromlist, level)

    sys.argv[:] = [script, *arguments]
    sys.path[0] = folder
    builtins.__import__ = answering
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        builtins.__import__ = imported
