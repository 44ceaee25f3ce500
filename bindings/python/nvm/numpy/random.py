"""nvm.numpy.random: NumPy's names of random numbers over nvm.random, those of its old interface among them. The bits
are nvm's: a seed gives other numbers than NumPy's of the same seed, and the same ones on every device."""

from .. import _nvm
from .. import random as _random
from ..random import *  # noqa: F403
from ..random import Generator

_KIND = "philox4x32-10"
_INSTEAD = {
    **dict.fromkeys(
        ("BitGenerator", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"),
        "default_rng(seed) makes a generator of nvm's own bits",
    ),
    "SeedSequence": "default_rng(seed).spawn(n) makes generators that draw independent numbers",
    "random_integers": "randint(low, high + 1) draws them",
}


class RandomState(Generator):
    """A source of random numbers with the methods of NumPy's old interface: RandomState(seed). Equal seeds give equal
    numbers, which are not those that NumPy draws."""

    __slots__ = ()

    def seed(self, seed=None):
        """Begins anew with a seed; None: the system's entropy."""
        self.state = Generator(seed).state

    def get_state(self, legacy=True):
        """All that later draws depend on: a tuple for set_state, or with legacy=False a dict."""
        return (_KIND, *self.state) if legacy else {"bit_generator": _KIND, "state": self.state}

    def set_state(self, state):
        """Goes on from what get_state gave."""
        kind, words = (state["bit_generator"], state["state"]) if isinstance(state, dict) else (state[0], state[1:])
        if kind != _KIND or len(words) != 4:
            raise ValueError(
                f"[set_state] a state begins with {_KIND!r} and has four words, got {kind!r} and {len(words)}"
            )
        self.state = words

    def rand(self, *args):
        """Floats in [0, 1) in this shape."""
        return self.random(args)

    def randn(self, *args):
        """The standard normal distribution in this shape."""
        return self.standard_normal(args)

    def randint(self, low, high=None, size=None, dtype=int):
        """Integers from low on and below high; from 0 on and below low without high."""
        return self.integers(low, high, size, dtype)

    def random_sample(self, size=None):
        """Floats in [0, 1)."""
        return self.random(size)

    def tomaxint(self, size=None):
        """Integers from 0 to the greatest int64."""
        return self.integers(0, 2**63 - 1, size, endpoint=True)

    def bytes(self, length):
        """So many random bytes."""
        return self.integers(0, 256, length, "uint8").tobytes()

    def choice(self, a, size=None, replace=True, p=None):
        """Elements of a, which has one dimension, or of arange(a). p: their probabilities."""
        if getattr(a, "ndim", 0) > 1:
            raise ValueError("a must be 1-dimensional")
        return super().choice(a, size, replace, p)

    def __reduce__(self):
        return _restored, (self.state,)

    def __repr__(self):
        return f"RandomState({_KIND})"


def _restored(words):
    made = RandomState(0)
    made.state = words
    return made


def _of_default(name, method):
    def function(*args, **given):
        return getattr(RandomState._over(_random._global()._g), method)(*args, **given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(RandomState, method).__doc__
    function.__wrapped__ = getattr(RandomState, method).__get__(_nvm)  # it shows its parameters without self
    return function


_SAME = ("bytes", "choice", "get_state", "rand", "randint", "randn", "random_sample", "seed", "set_state")
_ALIASES = {"ranf": "random_sample", "sample": "random_sample"}
globals().update((name, _of_default(name, name)) for name in _SAME)
globals().update((name, _of_default(name, method)) for name, method in _ALIASES.items())
__all__ = sorted({*_random.__all__, *_SAME, *_ALIASES, "RandomState"})


def __getattr__(name):
    from .._names import missing

    raise missing(name, __all__, "nvm.numpy.random", _INSTEAD) from None
