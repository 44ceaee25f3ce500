"""Random numbers with the interface of NumPy's Generator, as lazy arrays: a draw is fused with what uses it.

Every number is a function of a key and a counter (Philox 4x32-10). A draw takes its range of counters when it is
called, so its values are fixed then, on any device and for any number of threads. Inside nvm.jit each call of the
function takes new counters.
"""

import math
import os
from operator import index

from . import _nvm
from ._distributions import (
    DERIVED,
    Distributions,
    is_integer,
    is_known,
    parameters,
    refuse_below_0,
    refuse_negative,
    refuse_no_probability,
    refuse_others,
    size_for,
    spread,
)

_f = _nvm.functions
_MOST_EVENTS = 2.0**63 - 2.0**36  # a mean whose numbers are all below 2^63
_BITS, _BELOW, _UNIFORM, _NORMAL, _EXPONENTIAL, _GAMMA, _BETA, _VONMISES = range(8)
_POISSON, _BINOMIAL, _ZIPF, _HYPERGEOMETRIC = range(8, 12)
_MOST_OF_A_KIND = 10**9


def _seed_bits(seed):
    """64 bits of a seed: None takes the system's entropy; integers below 2^64 are taken as they are."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little")
    words = [seed] if is_integer(seed) else list(seed)
    words = [index(w) for w in words]
    if any(w < 0 for w in words):
        raise ValueError(f"[random] a seed is an integer of 0 or more, not {seed!r}")
    if len(words) == 1 and words[0] < 1 << 64:
        return words[0]
    import hashlib  # which opens OpenSSL: a fifth of nvm's own import

    return int.from_bytes(hashlib.blake2b(repr(words).encode(), digest_size=8).digest(), "little")


def _limits(t):
    """The least and the greatest number of an integer dtype."""
    bits = 8 * t.itemsize
    return {"b": (0, 1), "u": (0, 2**bits - 1), "i": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)}[t.kind]


def _ranges_of(low, high, t, endpoint):
    """Checks ranges of integers whose ends are arrays; low, and how many there are (0: 2^64), both modulo 2^64."""
    least, most = _limits(t)
    low, high = _nvm.asarray(low), _nvm.asarray(high)
    if is_known(low) and is_known(high):
        if bool(_f["any"](low > high if endpoint else low >= high)):
            raise ValueError("[integers] low must be below high")
        if bool(_f["any"](low < least)) or bool(_f["any"](high > most + (not endpoint))):
            raise ValueError(f"[integers] the bounds are not all {t.name}")
    low, high = low.astype("uint64"), high.astype("uint64")
    return low, high - low + (1 if endpoint else 0)


def _range_of(low, high, t, endpoint):
    """Checks a range of integers; low, and how many there are as an array (0: 2^64)."""
    high -= not endpoint
    least, most = _limits(t)
    if low > high:
        raise ValueError(f"[integers] low must be below high, and {low} is not below {high + (not endpoint)}")
    if low < least or high > most:
        raise ValueError(f"[integers] {low} ... {high} are not all {t.name}")
    return low, _nvm.asarray((high - low + 1) % 2**64, dtype="uint64")


def _weights(p, n):
    p = _nvm.asarray(p).astype("float64")
    if tuple(p.shape) != (n,):
        raise ValueError(f"[choice] p is of shape {tuple(p.shape)}, not ({n},)")
    if is_known(p) and (bool(_f["any"](_f["logical_not"](p >= 0))) or abs(float(_f["sum"](p)) - 1) > 1e-8):
        raise ValueError("[choice] p must be probabilities that add up to 1")
    return p


def _position(p, x):
    """How many sums of the first probabilities are at most x."""
    from ._order import searchsorted

    sums = _f["cumulative_sum"](p)
    flat = searchsorted(sums / sums[-1], _f["reshape"](x, (-1,)), side="right")
    return _f["reshape"](flat, tuple(x.shape))


def _taken(a, at, axis):
    axis += a.ndim if axis < 0 else 0
    flat = _f["take"](a, _f["reshape"](at, (-1,)), axis=axis)
    return _f["reshape"](flat, (*a.shape[:axis], *at.shape, *a.shape[axis + 1 :]))


class Generator(Distributions):
    """A source of random numbers. Made by default_rng; equal states draw equal numbers.

    >>> import nvm
    >>> rng = nvm.random.Generator(1)
    >>> rng.random(3).shape
    (3,)
    """

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

    def __getattr__(self, name):
        if name == "bit_generator":
            raise AttributeError(
                "[bit_generator] there is none: a Generator draws by Philox4x32-10 itself; its state is .state, and "
                "further streams are .spawn(n) and .jumped(n)"
            )
        raise AttributeError(f"'Generator' object has no attribute {name!r}")

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
        """Floats in [0, 1), multiples of 2^-53 (float32: 2^-24).

        size: an int, a sequence of ints, or None for one number of shape ().
        dtype: float32 or float64; None for the default float.
        Returns an array of that shape and dtype. Raises TypeError for other dtypes, ValueError for negative extents.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.random(3).shape
        (3,)
        """
        return _nvm.generator_draw(self._g, _UNIFORM, dtype, size)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=None):
        """Floats from low on, below high but for rounding: low + (high - low) * random().

        low, high: real numbers, or arrays that broadcast to size.
        size: an int, a sequence of ints, or None for the shape to which the parameters broadcast.
        dtype: float32 or float64; None for the default float.
        Returns an array of that shape.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.uniform(-1, 1, size=(2, 3)).shape
        (2, 3)
        """
        low, high = parameters("uniform", low=low, high=high)
        return low + (high - low) * self.random(size_for("uniform", size, low, high), dtype)

    def standard_normal(self, size=None, dtype=None):
        """The normal distribution of mean 0 and variance 1, by Box and Muller's method.

        size: an int, a sequence of ints, or None for one number of shape ().
        dtype: float32 or float64; None for the default float.
        Returns an array of that shape and dtype. Raises TypeError for other dtypes, ValueError for negative extents.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.standard_normal((2, 3)).shape
        (2, 3)
        """
        return _nvm.generator_draw(self._g, _NORMAL, dtype, size)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=None):
        """The normal distribution of mean loc and standard deviation scale.

        loc, scale: real numbers, or arrays that broadcast to size.
        size: an int, a sequence of ints, or None for the shape to which the parameters broadcast.
        dtype: float32 or float64; None for the default float.
        Returns an array of that shape. Raises ValueError for a negative scale.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.normal(10.0, 2.0, size=4).shape
        (4,)
        """
        loc, scale = parameters("normal", loc=loc, scale=scale)
        refuse_negative("normal", scale)
        return loc + scale * self.standard_normal(size_for("normal", size, loc, scale), dtype)

    def standard_exponential(self, size=None, dtype=None):
        """The exponential distribution of mean 1.

        size: an int, a sequence of ints, or None for one number of shape ().
        dtype: float32 or float64; None for the default float.
        Returns an array of that shape and dtype. Raises TypeError for other dtypes, ValueError for negative extents.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.standard_exponential(4).shape
        (4,)
        """
        return _nvm.generator_draw(self._g, _EXPONENTIAL, dtype, size)

    def exponential(self, scale=1.0, size=None, dtype=None):
        """The exponential distribution of mean scale.

        scale: a real number of 0 or more, or an array.
        size, dtype: as those of normal. Returns an array of that shape.
        Raises ValueError for a negative scale.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.exponential(2.0, size=4).shape
        (4,)
        """
        (scale,) = parameters("exponential", scale=scale)
        refuse_negative("exponential", scale)
        return scale * self.standard_exponential(size_for("exponential", size, scale), dtype)

    def _draw(self, what, size, dtype, *parameters):
        """A draw whose parameters are numbers, and arrays that broadcast to size."""
        return _nvm.generator_draw(self._g, what, dtype, size, *[spread(x, size) for x in parameters])

    def standard_gamma(self, shape, size=None, dtype=None):
        """The gamma distribution of this shape and scale 1.

        shape: a real number of 0 or more, or an array.
        size, dtype: as those of normal. Returns an array of that shape.
        Raises ValueError for a negative shape.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.standard_gamma(2.0, size=4).shape
        (4,)
        """
        (shape,) = parameters("standard_gamma", shape=shape)
        refuse_negative("standard_gamma", shape, "shape")
        return self._draw(_GAMMA, size_for("standard_gamma", size, shape), dtype, shape)

    def gamma(self, shape, scale=1.0, size=None, dtype=None):
        """The gamma distribution of this shape and scale; its mean is shape * scale.

        shape, scale: real numbers of 0 or more, or arrays that broadcast to size.
        size, dtype: as those of normal. Returns an array of that shape.
        Raises ValueError for negative ones.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.gamma(2.0, 1.0, size=4).shape
        (4,)
        """
        shape, scale = parameters("gamma", shape=shape, scale=scale)
        refuse_negative("gamma", shape, "shape")
        refuse_negative("gamma", scale)
        return scale * self._draw(_GAMMA, size_for("gamma", size, shape, scale), dtype, shape)

    def beta(self, a, b, size=None, dtype=None):
        """The beta distribution: x / (x + y) of two numbers of gamma distributions of the shapes a and b.

        a, b: real numbers above 0, or arrays that broadcast to size.
        size, dtype: as those of normal. Returns an array of that shape.
        Raises ValueError for others.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.beta(2.0, 3.0, size=4).shape
        (4,)
        """
        a, b = parameters("beta", a=a, b=b)
        refuse_others("beta", lambda v: v > 0, "a must be above 0", a)
        refuse_others("beta", lambda v: v > 0, "b must be above 0", b)
        return self._draw(_BETA, size_for("beta", size, a, b), dtype, a, b)

    def poisson(self, lam=1.0, size=None):
        """How many events happen whose mean number is lam: int64.

        lam: a real number of 0 or more, or an array.
        size: as that of normal. Returns an array of that shape, of int64.
        Raises ValueError for a negative lam.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.poisson(3.0, size=4).shape
        (4,)
        """
        (lam,) = parameters("poisson", lam=lam)
        refuse_below_0("poisson", lam, "lam")
        refuse_others("poisson", lambda v: v <= _MOST_EVENTS, "lam must be below 2^63", lam)
        return self._draw(_POISSON, size_for("poisson", size, lam), "int64", lam)

    def binomial(self, n, p, size=None):
        """How many of n events of probability p happen: int64. Floats n are truncated.

        n, p: numbers of 0 or more and from 0 to 1, or arrays that broadcast to size.
        size: as that of normal. Returns an array of that shape, of int64.
        Raises ValueError for others.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.binomial(10, 0.5, size=4).shape
        (4,)
        """
        n, p = parameters("binomial", n=n, p=p)
        refuse_below_0("binomial", n, "n")
        refuse_others("binomial", lambda v: v < 2**63, "n must be below 2^63", n)
        refuse_no_probability("binomial", p)
        return self._draw(_BINOMIAL, size_for("binomial", size, n, p), "int64", n, p)

    def vonmises(self, mu, kappa, size=None, dtype=None):
        """Angles from -pi to pi of the von Mises distribution around mu with the concentration kappa.

        mu, kappa: real numbers, kappa of 0 or more, or arrays that broadcast to size.
        size, dtype: as those of normal. Returns an array of that shape.
        Raises ValueError for a negative kappa.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.vonmises(0.0, 1.0, size=4).shape
        (4,)
        """
        mu, kappa = parameters("vonmises", mu=mu, kappa=kappa)
        refuse_below_0("vonmises", kappa, "kappa")
        x = mu + self._draw(_VONMISES, size_for("vonmises", size, mu, kappa), dtype, kappa)
        return x - (2 * math.pi) * _f["round"](x / (2 * math.pi))

    def zipf(self, a, size=None):
        """Integers of 1 or more with probabilities as k ** -a, below 2^63: int64.

        a: a real number above 1, or an array.
        size: as that of normal. Returns an array of that shape, of int64.
        Raises ValueError for others.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.zipf(2.0, size=4).shape
        (4,)
        """
        (a,) = parameters("zipf", a=a)
        refuse_others("zipf", lambda v: v > 1, "a must be above 1", a)
        return self._draw(_ZIPF, size_for("zipf", size, a), "int64", a)

    def hypergeometric(self, ngood, nbad, nsample, size=None):
        """How many of a sample of nsample, drawn without replacement from ngood good and nbad bad ones, are
        good: int64. Floats are truncated.

        ngood, nbad, nsample: numbers of 0 or more, or arrays that broadcast to size.
        size: as that of normal. Returns an array of that shape, of int64.
        Raises ValueError for negative ones, and for an nsample above ngood + nbad.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.hypergeometric(5, 5, 3, size=4).shape
        (4,)
        """
        good, bad, sample = parameters("hypergeometric", ngood=ngood, nbad=nbad, nsample=nsample)
        for name, x in (("ngood", good), ("nbad", bad)):
            refuse_below_0("hypergeometric", x, name)
            refuse_others("hypergeometric", lambda v: v < _MOST_OF_A_KIND, f"{name} must be below 10^9", x)
        refuse_below_0("hypergeometric", sample, "nsample")
        refuse_others("hypergeometric", lambda v: v <= good + bad, "nsample must be at most ngood + nbad", sample)
        size = size_for("hypergeometric", size, good, bad, sample)
        return self._draw(_HYPERGEOMETRIC, size, "int64", good, bad, sample)

    def multivariate_hypergeometric(self, colors, nsample, size=None, method="marginals"):
        """How many of a sample of nsample, drawn without replacement, are of each color, of which there are so many:
        int64, the colors along a new last axis. Both of NumPy's methods draw the same numbers, color after color.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.multivariate_hypergeometric([5, 5], 3, size=4).shape
        (4, 2)
        """
        colors, sample = _nvm.asarray(colors), index(nsample)
        if colors.ndim != 1 or (colors.dtype.kind not in "iu" and colors.size):
            of = f"{colors.dtype.name} of shape {tuple(colors.shape)}"
            raise ValueError(f"[multivariate_hypergeometric] colors must be integers along one axis, not {of}")
        counts = colors.tolist()
        total = sum(counts)
        if method not in ("marginals", "count"):
            raise ValueError(f"[multivariate_hypergeometric] method is 'marginals' or 'count', not {method!r}")
        if min(counts, default=0) < 0 or total >= _MOST_OF_A_KIND:
            raise ValueError("[multivariate_hypergeometric] colors must be 0 or more, and their sum below 10^9")
        if not 0 <= sample <= total:
            raise ValueError(f"[multivariate_hypergeometric] nsample must be from 0 to {total}, not {sample}")
        rest, drawn = spread(sample, size), []
        for n in counts[:-1]:
            total -= n
            drawn.append(self._draw(_HYPERGEOMETRIC, size, "int64", n, total, rest))
            rest = rest - drawn[-1]
        last = [rest + _f["zeros"](size or (), dtype="int64")] if counts else []
        shape = (size,) if is_integer(size) else tuple(size or ())
        return _f["stack"]([*drawn, *last], axis=-1) if counts else _f["zeros"]((*shape, 0), dtype="int64")

    def bernoulli(self, p=0.5, size=None):
        """Whether an event of probability p happens: bool.

        p: a real number from 0 to 1, or an array.
        size: as that of normal. Returns an array of that shape, of bool.
        Raises ValueError for others.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.bernoulli(0.5, size=4).shape
        (4,)
        """
        (p,) = parameters("bernoulli", p=p)
        refuse_no_probability("bernoulli", p)
        return self.random(size_for("bernoulli", size, p)) < p

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        """Integers from low on and below high (endpoint: up to high); from 0 on and below low without high. Each has
        the same probability but for less than 2^-64 of it.

        low, high: integers, or arrays of them that broadcast to size.
        size: an int, a sequence of ints, or None for the shape to which the parameters broadcast.
        dtype: an integer dtype, or bool.
        Returns an array of that shape and dtype.
        Raises TypeError for other dtypes, ValueError where no integer is between low and high, or where the dtype does
        not hold them.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.integers(0, 6, size=5).shape
        (5,)
        """
        low, high = (0, low) if high is None else (low, high)
        t = _nvm.dtype(dtype)
        if t.kind not in "iub":
            raise TypeError(f"[integers] draws integers and bool, not {t.name}")
        if is_integer(low) and is_integer(high):
            low, n = _range_of(low.__index__(), high.__index__(), t, endpoint)
        else:
            low, n = _ranges_of(low, high, t, endpoint)
            size = size_for("integers", size, n)
            n = _f["broadcast_to"](n, (size,) if is_integer(size) else tuple(size))
        r = _nvm.generator_draw(self._g, _BELOW, "uint64", size, n)
        if isinstance(low, _nvm.Array) or t.kind in "bu":
            r = r + low  # modulo 2^64
            return r != 0 if t.kind == "b" else r.astype("int64").astype(t) if t.kind == "i" else r.astype(t)
        return (r.astype("int64") + low).astype(t)

    def choice(self, a, size=None, replace=True, p=None, axis=0):
        """Elements of a, or of arange(a), along an axis. p: their probabilities; without them all are alike.

        a: an int n, for arange(n), or an array with at least one dimension.
        size: an int, a sequence of ints, or None for one part of a.
        replace: whether a part may be chosen more than once.
        p: an array of as many probabilities as a has parts, whose sum is 1.
        Returns an array of a's dtype, in whose shape size stands in the place of the axis.
        Raises ValueError where a has too few parts, and for a p of another length or sum.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.choice(5, size=3, replace=False).shape
        (3,)
        """
        a = _f["arange"](a) if is_integer(a) else _nvm.asarray(a)
        n = a.shape[axis] if a.ndim else 0
        shape = () if size is None else (size,) if is_integer(size) else tuple(size)
        count = 1
        for k in shape:
            count *= k
        if not n and count:
            raise ValueError("[choice] there is nothing to choose from")
        if not replace and count > n:
            raise ValueError(f"[choice] {count} of {n} elements cannot be chosen without replacement")
        if p is not None:
            p = _weights(p, n)
            if not replace and is_known(p) and int(_f["sum"](p > 0)) < count:
                raise ValueError(f"[choice] {count} elements are wanted, and fewer have a probability above 0")
        if replace:
            at = self.integers(0, n or 1, shape) if p is None else _position(p, self.random(shape, "float64"))
        else:  # the first to happen of events with these rates; all of one rate without p
            when = self._shuffled_keys(n) if p is None else self.standard_exponential(n, "float64") / p
            at = _f["reshape"](_f["argsort"](when)[:count], shape)
        return _f["take"](a, at, axis=axis) if at.ndim == 1 else _taken(a, at, axis)

    def _shuffled_keys(self, n):
        return _nvm.generator_draw(self._g, _BITS, "uint64", n)

    def permutation(self, x, axis=0):
        """x, or arange(x), with its parts along an axis in random order: that of 64 random bits each.

        x: an int n, for arange(n), or an array of any dtype with at least one dimension.
        Returns an array of x's shape and dtype.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.permutation(5).shape
        (5,)
        """
        x = _f["arange"](x) if is_integer(x) else _nvm.asarray(x)
        if not x.ndim:
            raise ValueError("[permutation] x has no dimension")
        return _f["take"](x, _f["argsort"](self._shuffled_keys(x.shape[axis])), axis=axis)

    def shuffle(self, x, axis=0):
        """Puts the parts of x, an array that can be written to, into random order along an axis.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> x = nvm.arange(5)
        >>> rng.shuffle(x)
        >>> x.sum()
        array(10)
        """
        mixed = self.permutation(x, axis)
        if isinstance(x, list):
            x[:] = mixed.tolist()
        elif isinstance(x, _nvm.Array):
            x[...] = mixed
        else:
            x[...] = mixed.__array__()

    def permuted(self, x, axis=None, out=None):
        """x with the elements of each line along an axis in a random order of their own; all elements without axis.
        out: an array for the result, which may be x.

        x: an array of any dtype. axis: an int, or None.
        Returns an array of x's shape and dtype, which is out if it is given.
        Raises ValueError for an out of another shape.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.permuted(nvm.arange(5)).sum()
        array(10)
        """
        x = _nvm.asarray(x)
        flat = _f["reshape"](x, (-1,)) if axis is None else x
        along = 0 if axis is None else axis
        order = _f["argsort"](_nvm.generator_draw(self._g, _BITS, "uint64", tuple(flat.shape)), axis=along)
        mixed = _f["reshape"](_f["take_along_axis"](flat, order, axis=along), tuple(x.shape))
        if out is None:
            return mixed
        if tuple(out.shape) != tuple(x.shape):
            raise ValueError(f"[permuted] out is of shape {tuple(out.shape)}, not {tuple(x.shape)}")
        out[...] = mixed if isinstance(out, _nvm.Array) else mixed.__array__()
        return out

    def bytes(self, length):
        """So many random bytes.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> len(rng.bytes(5))
        5
        """
        if length < 0:
            raise ValueError(f"[bytes] length must be 0 or more, not {length}")
        words = _nvm.generator_draw(self._g, _BITS, "uint32", (index(length) + 3) // 4).tolist()
        return b"".join(word.to_bytes(4, "little") for word in words)[:length]

    def multivariate_normal(self, mean, cov, size=None):
        """The normal distribution of this mean and covariance, a positive definite matrix, whose Cholesky factor
        multiplies independent numbers.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.multivariate_normal([0.0, 0.0], nvm.eye(2), size=3).shape
        (3, 2)
        """
        from . import linalg

        mean, cov = _nvm.asarray(mean), _nvm.asarray(cov)
        n = mean.shape[0] if mean.ndim == 1 else -1
        if tuple(cov.shape) != (n, n):
            shapes = f"{tuple(mean.shape)} and {tuple(cov.shape)}"
            raise ValueError(f"[multivariate_normal] mean and cov are of shapes (n,) and (n, n), not {shapes}")
        shape = () if size is None else (size,) if is_integer(size) else tuple(size)
        t = "float32" if _f["add"](mean, cov).dtype.name == "float32" else "float64"
        factor = linalg.cholesky(cov.astype(t))
        return mean + _f["matmul"](self.standard_normal((*shape, 1, n), t), factor.mT)[..., 0, :]


def _restored(state):
    g = Generator(0)
    g.state = state
    return g


def default_rng(seed=None):
    """A Generator of this seed: None (the system's entropy), an integer or a sequence of integers of 0 or more, or a
    Generator, which is returned.

    >>> import nvm
    >>> nvm.random.default_rng(1).random(3).shape
    (3,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


# ---- the generator of the functions below, made at its first use
_default = None


def _global():
    global _default
    if _default is None:
        _default = Generator()
    return _default


def seed(seed=None):
    """Gives the generator of this module's functions a new state; None: the system's entropy.

    >>> import nvm
    >>> nvm.random.seed(7)
    >>> a = nvm.random.random(3)
    >>> nvm.random.seed(7)
    >>> (a == nvm.random.random(3)).all()
    array(True)
    """
    _global().state = Generator(seed).state


def rand(*shape):
    """Floats in [0, 1) in this shape.

    >>> import nvm
    >>> nvm.random.rand(2, 3).shape
    (2, 3)
    """
    return _global().random(shape)


def randn(*shape):
    """The standard normal distribution in this shape.

    >>> import nvm
    >>> nvm.random.randn(2, 3).shape
    (2, 3)
    """
    return _global().standard_normal(shape)


def randint(low, high=None, size=None, dtype="int64"):
    """Integers from low on and below high; from 0 on and below low without high.

    >>> import nvm
    >>> nvm.random.randint(0, 6, size=(2, 3)).shape
    (2, 3)
    """
    return _global().integers(low, high, size, dtype)


def _function(name):
    method = getattr(Generator, name)

    def call(*args, **kwargs):
        return method(_global(), *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = method.__doc__
    call.__wrapped__ = method.__get__(_global)  # bound to anything, it shows its parameters without self
    return call


_FUNCTIONS = (
    *("random", "uniform", "normal", "standard_normal", "exponential", "standard_exponential", "integers", "choice"),
    *("permutation", "shuffle", "bernoulli", "multivariate_normal", "gamma", "standard_gamma", "beta"),
    *("binomial", "hypergeometric", "multivariate_hypergeometric", "permuted", "bytes", "poisson", "vonmises", "zipf"),
    *DERIVED,
)
globals().update((name, _function(name)) for name in _FUNCTIONS)
__all__ = ["Generator", "default_rng", "seed", "rand", "randn", "randint"] + [name for name in _FUNCTIONS]
