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
    """A source of random numbers with the methods of NumPy's old interface, beside those of Generator.

    seed: an integer, or a sequence of them; equal seeds give equal numbers, which are not those that NumPy draws.

    >>> import nvm.numpy as np
    >>> a, b = np.random.RandomState(7), np.random.RandomState(7)
    >>> np.array_equal(a.randint(10, size=4), b.randint(10, size=4))
    True
    """

    __slots__ = ()

    def seed(self, seed=None):
        """Begins anew with a seed.

        seed: an integer, or a sequence of them; None takes the system's entropy.

        >>> import nvm.numpy as np
        >>> np.random.seed(7)
        >>> first = np.random.rand(3)
        >>> np.random.seed(7)
        >>> np.array_equal(first, np.random.rand(3))
        True
        """
        self.state = Generator(seed).state

    def get_state(self, legacy=True):
        """All that later draws depend on.

        legacy: True returns a tuple, False a dict; set_state takes both.

        >>> import nvm.numpy as np
        >>> np.random.get_state()[0]
        'philox4x32-10'
        """
        return (_KIND, *self.state) if legacy else {"bit_generator": _KIND, "state": self.state}

    def set_state(self, state):
        """Goes on from a state.

        state: what get_state returned.
        Raises ValueError for the state of another generator.

        >>> import nvm.numpy as np
        >>> state = np.random.get_state()
        >>> first = np.random.rand(3)
        >>> np.random.set_state(state)
        >>> np.array_equal(first, np.random.rand(3))
        True
        """
        kind, words = (state["bit_generator"], state["state"]) if isinstance(state, dict) else (state[0], state[1:])
        if kind != _KIND or len(words) != 4:
            raise ValueError(
                f"[set_state] a state begins with {_KIND!r} and has four words, got {kind!r} and {len(words)}"
            )
        self.state = words

    def rand(self, *args):
        """Floats that are uniformly distributed in [0, 1).

        args: the extents of the result, float64; none make an array of no dimensions.
        Raises ValueError for a negative extent.

        >>> import nvm.numpy as np
        >>> np.random.rand(2, 3).shape
        (2, 3)
        """
        return self.random(args)

    def randn(self, *args):
        """Floats of the standard normal distribution.

        args: the extents of the result, float64; none make an array of no dimensions.
        Raises ValueError for a negative extent.

        >>> import nvm.numpy as np
        >>> np.random.randn(2, 3).shape
        (2, 3)
        """
        return self.standard_normal(args)

    def randint(self, low, high=None, size=None, dtype=int):
        """Integers that are uniformly distributed.

        low, high: from low on, and below high; from 0 on and below low for None. Both may be arrays that broadcast.
        size: the shape of the result; None is that of low and high.
        dtype: an integer dtype.
        Raises ValueError if there are no integers between, or they are not of the dtype.

        >>> import nvm.numpy as np
        >>> bool(np.all(np.random.randint(10, size=100) < 10))
        True
        """
        return self.integers(low, high, size, dtype)

    def random_sample(self, size=None):
        """Floats that are uniformly distributed in [0, 1).

        size: the shape of the result, float64; None makes an array of no dimensions.
        Raises ValueError for a negative extent.

        >>> import nvm.numpy as np
        >>> np.random.random_sample(3).shape
        (3,)
        """
        return self.random(size)

    def tomaxint(self, size=None):
        """Integers from 0 to the greatest int64."""
        return self.integers(0, 2**63 - 1, size, endpoint=True)

    def bytes(self, length):
        """Random bytes.

        length: how many.
        Returns a Python bytes object.

        >>> import nvm.numpy as np
        >>> len(np.random.bytes(5))
        5
        """
        return self.integers(0, 256, length, "uint8").tobytes()

    def choice(self, a, size=None, replace=True, p=None):
        """Elements of an array, drawn at random.

        a: an array of one dimension, or an integer n, for arange(n).
        size: the shape of the result; None makes an array of no dimensions.
        replace: may an element be drawn more than once?
        p: the probability of each element; None: they are equal.
        Raises ValueError for more dimensions, probabilities that do not add up to 1, and too few elements without
            replacement.

        >>> import nvm.numpy as np
        >>> sorted(np.random.choice(3, size=3, replace=False).tolist())
        [0, 1, 2]
        """
        a = _nvm.asarray(a) if isinstance(a, (list, tuple)) else a
        if getattr(a, "ndim", 0) > 1:
            raise ValueError(f"[choice] a has one dimension, not the shape {a.shape}")
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
