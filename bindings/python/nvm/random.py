"""Random numbers with the interface of NumPy's Generator, as lazy arrays: a draw is fused with what uses it.

Every number is a function of a key and a counter (Philox 4x32-10). A draw takes its range of counters when it is
called, so its values are fixed then, on any device and for any number of threads. Inside nvm.jit each call of the
function takes new counters.
"""

import hashlib
import os

from . import _nvm

_BITS, _UNIFORM = range(2)


def _seed_bits(seed):
    """64 bits of a seed: None takes the system's entropy; integers below 2^64 are taken as they are."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little")
    words = [seed] if hasattr(seed, "__index__") else list(seed)
    words = [w.__index__() for w in words]
    if any(w < 0 for w in words):
        raise ValueError(f"[random] a seed is an integer of 0 or more, not {seed!r}")
    if len(words) == 1 and words[0] < 1 << 64:
        return words[0]
    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=8).digest(), "little")


class Generator:
    """A source of random numbers. Made by default_rng; equal states draw equal numbers."""

    __slots__ = ("_g", "__weakref__")

    def __init__(self, seed=None):
        self._g = _nvm.generator_new(_seed_bits(seed))

    @classmethod
    def _over(cls, g):
        self = cls.__new__(cls)
        self._g = g
        return self

    # ---- state
    @property
    def state(self):
        """(key, counter, stream, number of generators spawned): all that later draws depend on."""
        return _nvm.generator_state(self._g)

    @state.setter
    def state(self, words):
        _nvm.generator_set_state(self._g, tuple(words))

    def __reduce__(self):
        return _restored, (self.state,)

    def __repr__(self):
        return "Generator(Philox4x32-10, key={:#x}, counter={}, stream={})".format(*self.state)

    def spawn(self, n_children):
        """A list of generators with keys of their own."""
        return [Generator._over(_nvm.generator_spawn(self._g)) for _ in range(n_children)]

    def jumped(self, jumps=1):
        """A generator that is so many streams of 2^66 words of 32 bits further."""
        if jumps < 0:
            raise ValueError(f"[jumped] jumps must be 0 or more, not {jumps}")
        return Generator._over(_nvm.generator_jump(self._g, jumps % 2**64))

    # ---- draws
    def random(self, size=None, dtype=None):
        """Floats in [0, 1), multiples of 2^-53 (float32: 2^-24)."""
        return _nvm.generator_draw(self._g, _UNIFORM, dtype, size)


def _restored(state):
    g = Generator(0)
    g.state = state
    return g


def default_rng(seed=None):
    """A Generator of this seed: None (the system's entropy), an integer or a sequence of integers of 0 or more, or a
    Generator, which is returned."""
    return seed if isinstance(seed, Generator) else Generator(seed)
