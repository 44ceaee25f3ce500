"""What fn.lower(...) of a jitted function returns: its texts, its plan, and compilation ahead of a call."""

from . import _nvm

_STAGES = ("collect", "graph", "plan", "kernel")


class Lowered:
    """A function as nvm.jit has traced it for arguments of one signature. It holds the arguments, so that it can be
    compiled for them; nvm.empty(shape, dtype) is an argument that takes no memory.

    >>> import nvm
    >>> low = nvm.jit(lambda x: nvm.exp(x) + 1).lower(nvm.empty((1000, 30), dtype=nvm.float32))
    >>> print(low.text("graph"), end="")
    leaf 0 f32[1000, 30] strides(30, 1) align16
    %0 = leaf{0} : f32[1000, 30]
    %1 = map exp(%0) : f32[1000, 30]
    %2 = const{0x3f800000} : f32[]
    %3 = map add(%1, %2) : f32[1000, 30]
    out %3
    """

    __slots__ = ("_fn", "_args", "_kwargs")

    def __init__(self, fn, args, kwargs):
        self._fn, self._args, self._kwargs = fn, args, kwargs

    def text(self, stage="graph"):
        """The text of a stage of planning, a str, as NVM_DUMP prints it: "collect" (what was traced), "graph" (the
        same, simplified), "plan" (steps, buffers and what was cut), "kernel" (each kernel with its schedule). Of a
        function with loops, that of each part. ValueError for another stage. Nothing is evaluated."""
        if stage not in _STAGES:
            raise ValueError(f"[lower] there is no stage {stage!r}; stages are {', '.join(_STAGES)}")
        return self._fn._text(stage, self._args, self._kwargs)

    def explain(self):
        """The plan, as nvm.explain tells it: a str that a notebook shows as a picture."""
        return self._fn.explain(*self._args, **self._kwargs)

    def compile(self):
        """The function, planned and compiled for this signature: a Compiled. Waits for the code of a CPU; on a GPU it
        goes on in the background. Evaluates arguments that are pending. NotImplementedError for a function with loops,
        whose parts are planned when they first run."""
        return Compiled(self._fn, self._fn._compile(self._args, self._kwargs))

    def __repr__(self):
        return f"<nvm.Lowered of {self._fn.__wrapped__!r}>"


class Compiled:
    """A function that is compiled for one signature. Called with another, it raises TypeError and traces nothing; else
    it returns what the jitted function does.

    >>> import nvm
    >>> f = nvm.jit(lambda x: x + 1).lower(nvm.ones(2)).compile()
    >>> f(nvm.ones(2))
    array([2., 2.])
    """

    __slots__ = ("_fn", "_signature")

    def __init__(self, fn, signature):
        self._fn, self._signature = fn, signature

    def __call__(self, /, *args, **kwargs):
        if self._fn._signature(args, kwargs) != self._signature:
            raise TypeError(
                "[lower] the function was compiled for other arguments: another dtype, shape, static value or nesting; "
                "call the jitted function, which compiles for them, or lower it for these"
            )
        return self._fn(*args, **kwargs)

    def __repr__(self):
        return f"<nvm.Compiled of {self._fn.__wrapped__!r}>"


_nvm.hooks["lowered"] = Lowered
