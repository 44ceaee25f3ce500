"""nvm.jit and nvm.explain: what a decorator needs beside the calls themselves, which are C."""

from types import MethodType

from . import _nvm


def _as_tuple(x, kind):
    return (x,) if isinstance(x, kind) else tuple(x)


def _parameters(fn, statics, names, donated):
    """Positions and names of the static parameters, where either way of naming one covers calls of both kinds, and
    positions of those that are donated."""
    statics, names, donated = list(_as_tuple(statics, int)), list(_as_tuple(names, str)), list(_as_tuple(donated, int))
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    if code is None:
        return tuple(statics), tuple(names), tuple(donated)
    bound = isinstance(fn, MethodType)  # its calls do not name self
    parameters = code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount]
    positional = parameters[: code.co_argcount - bound]
    open_ended = code.co_flags & 0x0C  # *args or **kwargs take what the list does not name
    for what, nums in (("static_argnums", statics), ("donate_argnums", donated)):
        for k, i in enumerate(nums):
            if not -len(positional) <= i < len(positional) and not open_ended:
                raise ValueError(
                    f"[jit] {what} has {i}, but {_name(fn)} has {len(positional)} positional parameters: "
                    + ", ".join(positional)
                )
            nums[k] = i + len(positional) if i < 0 else i
    for name in names:
        if name not in parameters and not open_ended:
            raise ValueError(
                f"[jit] static_argnames has {name!r}, but {_name(fn)} has the parameters " + ", ".join(parameters)
            )
    more = [i for i, p in enumerate(positional) if p in names and i not in statics]
    names += [positional[i] for i in statics if i < len(positional) and positional[i] not in names]
    return tuple(statics + more), tuple(names), tuple(donated)


def _name(fn):
    return getattr(fn, "__qualname__", repr(fn))


def jit(fn=None, *, static_argnums=(), static_argnames=(), donate_argnums=()):
    """fn, traced once for each signature of its arguments and then replayed at the cost of a launch.

    Arguments are arrays (nvm's, NumPy's), Python numbers, and tuples, named tuples, lists, dicts, dataclasses and
    instances of registered classes (nvm.register_pytree) that hold them; results likewise. A
    signature is the nesting, the dtype and shape of each array and the kind of each number. A number takes the dtype of
    the array that it meets. Where that does not hold an integer, the same happens as without jit: a comparison is
    right, arithmetic of integers is an OverflowError; so an integer is traced anew where such a question has another
    answer than it had before. Static arguments are constants of the trace: any hashable value, compared by
    type and value (floats and NumPy's scalars by their bits, tuples and frozensets by their elements) and, where its
    class is another, by type and ==. Inside the function arrays have no values, so that Python's if and while cannot
    depend on them; use nvm.where. Arrays that fn captures (from its closure or its globals), of nvm, NumPy, PyTorch or
    others, are read again at each call: the same objects, traced anew where their dtype or shape is another. Where fn
    looks at the values of one that is not nvm's (a mask is indexed by), calls compare its contents and trace anew where
    they differ. Python numbers, NumPy's scalars and lists of these are constants of the trace. What fn writes
    to the arrays of its arguments, nvm's and NumPy's, is in the caller's after each call, as without jit
    (views.md). The arrays of donated positional arguments are given up by each call, which may write its results
    into their memory.

    >>> import nvm
    >>> nvm.jit(lambda x: x * x + 1)(nvm.asarray([1.0, 2.0]))
    array([2., 5.])
    """
    if fn is None:
        return lambda f: jit(
            f, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums
        )
    j = _nvm.Jitted(fn, *_parameters(fn, static_argnums, static_argnames, donate_argnums))
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(fn, attribute):
            j.__dict__[attribute] = getattr(fn, attribute)
    j.__dict__["__wrapped__"] = fn
    return j


def explain(fn_or_array, /, *args, **kwargs):
    """The plan of a function for these arguments, or of evaluating these arrays now: kernels, bytes against the
    minimum, the time that the cost model expects, and why each edge that was not fused was not. A string, which a
    notebook shows as a picture; .svg() and .html() are that picture, .kernels() a list of dicts. Nothing is
    evaluated.

    >>> import nvm
    >>> print(nvm.explain(nvm.exp(nvm.ones(1000)))[:8])
    1 kernel
    """
    if isinstance(fn_or_array, _nvm.Jitted):
        return fn_or_array.explain(*args, **kwargs)
    if callable(fn_or_array):
        return jit(fn_or_array).explain(*args, **kwargs)
    return _as_plan(_nvm.explain_arrays(fn_or_array, *args))


def _as_plan(text):
    from ._plan import Plan

    return Plan(text)


_WAY_OUT = {
    "bool": "use nvm.where(condition, a, b) instead of if; a condition on an argument's shape, or on a static argument "
    "(static_argnames), is fine",
    "index": "a shape, a slice bound or a range must be known: make that argument static (static_argnames); "
    "n elements from an index i on are x[i + nvm.arange(n)]",
    "nonzero": "how many elements there are must be known: nvm.where(mask, x, y) keeps the shape, also where x[mask] "
    "was meant",
    "eval": "all that a traced function returns is evaluated when it is called",
    "__dlpack__": "give it to the other library outside, as an argument or a result",
}


def _where_from():
    """The file and line of the user's that runs, ", file.py:12"; "" if there is none."""
    import sys

    frame = sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in ("nvm", "numpy"):
        frame = frame.f_back
    return f", {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def _traced_value_message(dtype, shape, who):
    way = _WAY_OUT.get(who, "keep it an array, or make that argument static (static_argnames)")
    return (
        f"[jit] {who}() of a traced array ({dtype}, shape {shape}){_where_from()}: inside nvm.jit, vmap and loops an "
        f"array that depends on the arguments, or on arrays from outside, has no value yet; {way}"
    )


def _method_signature(text, bound):
    """(x, /, *, axis=None) of a function is (axis=None) of a bound method, and (self, /, axis=None) of one that is not:
    methods take all by position."""
    parts = [p.strip() for p in text[1:-1].split(",")][1:]
    if parts[:1] == ["/"]:
        parts = parts[1:]
    if "/" not in parts:
        parts = ([] if bound else ["self", "/"]) + parts
    elif not bound:
        parts = ["self"] + parts
    return "(" + ", ".join(p for p in parts if p != "*") + ")"


_nvm.hooks.update(
    traced_value_message=_traced_value_message,
    method_signature=_method_signature,
    bound_method=MethodType,
    plan=_as_plan,
)
