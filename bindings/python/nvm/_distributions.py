"""Distributions that are a few operations of other draws, with the arguments of NumPy's Generator, and what all draws
demand of their parameters."""

import math

from . import _nvm

_f = _nvm.functions


# ---- parameters of distributions
def is_integer(x):
    """A Python integer, or NumPy's scalar."""
    return hasattr(x, "__index__") and not getattr(x, "ndim", 0) and not isinstance(x, _nvm.Array)


def parameters(who, **given):
    """Numbers as they are, all else as arrays."""
    out = []
    for name, x in given.items():
        number = isinstance(x, (int, float)) and not hasattr(x, "dtype")
        x = x if number else _nvm.asarray(x)
        if not number and x.dtype.kind not in "iufb":
            raise TypeError(f"[{who}] {name} is of {x.dtype.name}, not of real numbers")
        if number and x - x != 0:
            raise ValueError(f"[{who}] {name} must be finite, not {x}")
        out.append(x)
    return out


def is_known(x):
    """Can its value be looked at? Not while a function is being traced."""
    return not (isinstance(x, _nvm.Array) and _nvm.tracing())


def refuse(who, bad, says, x):
    """Fails if a comparison with the parameter x holds anywhere; while a function is traced nothing is known of it."""
    if not is_known(x):
        return
    found = bad(x)
    if is_known(found) and bool(_f["any"](found) if isinstance(found, _nvm.Array) else found):
        raise ValueError(f"[{who}] {says}" + ("" if isinstance(x, _nvm.Array) else f", not {x}"))


def _none_of(found):
    return _f["logical_not"](found) if isinstance(found, _nvm.Array) else not found


def refuse_others(who, good, says, x):
    """Fails unless a comparison with the parameter x holds everywhere; with a NaN it does not."""
    refuse(who, lambda v: _none_of(good(v)), says, x)


def refuse_below_0(who, x, name):
    refuse_others(who, lambda v: v >= 0, f"{name} must be 0 or more", x)


def refuse_no_probability(who, p, name="p"):
    refuse_others(who, lambda v: (v >= 0) & (v <= 1), f"{name} must be from 0 to 1", p)


def refuse_negative(who, x, name="scale"):
    refuse(who, lambda v: v < 0, f"{name} must be 0 or more", x)


def spread(x, size):
    """A parameter as an array: one number, or of the shape that size means."""
    x = _nvm.asarray(x)
    return x if not x.ndim else _f["broadcast_to"](x, (size,) if is_integer(size) else tuple(size))


def size_for(who, size, *parameters):
    """The shape of a draw: size, to which the parameters must broadcast, or theirs."""
    shapes = [tuple(x.shape) for x in parameters if isinstance(x, _nvm.Array)]
    if not shapes:
        return size
    from ._creation import broadcast_shapes

    if size is None:
        return broadcast_shapes(*shapes)
    size = (size,) if is_integer(size) else tuple(size)
    if broadcast_shapes(size, *shapes) != size:
        raise ValueError(f"[{who}] parameters of shape {broadcast_shapes(*shapes)} do not broadcast to size {size}")
    return size


class Distributions:
    """A generator's distributions that derive from its other draws."""

    __slots__ = ()

    # ---- of the normal, uniform and exponential distributions
    def lognormal(self, mean=0.0, sigma=1.0, size=None, dtype=None):
        """exp of a normal distribution of this mean and standard deviation.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.lognormal(0.0, 1.0, size=4).shape
        (4,)
        """
        refuse_negative("lognormal", *parameters("lognormal", sigma=sigma), "sigma")
        return _f["exp"](self.normal(mean, sigma, size, dtype))

    def laplace(self, loc=0.0, scale=1.0, size=None, dtype=None):
        """The Laplace distribution: an exponential number of either sign, times scale, plus loc.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.laplace(0.0, 1.0, size=4).shape
        (4,)
        """
        loc, scale = parameters("laplace", loc=loc, scale=scale)
        refuse_negative("laplace", scale)
        size = size_for("laplace", size, loc, scale)
        x = self.standard_exponential(size, dtype)
        return loc + scale * _f["where"](self.bernoulli(0.5, size), x, -x)

    def _log_of_exponential(self, size, dtype, f):
        """log f(x) of exponential numbers x, which in float64 are above 0."""
        r = _f["log"](f(self.standard_exponential(size, "float64")))
        return r if dtype is None else r.astype(dtype)

    def gumbel(self, loc=0.0, scale=1.0, size=None, dtype=None):
        """The Gumbel distribution: loc - scale log(x), x exponential.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.gumbel(0.0, 1.0, size=4).shape
        (4,)
        """
        loc, scale = parameters("gumbel", loc=loc, scale=scale)
        refuse_negative("gumbel", scale)
        return loc - scale * self._log_of_exponential(size_for("gumbel", size, loc, scale), dtype, lambda x: x)

    def logistic(self, loc=0.0, scale=1.0, size=None, dtype=None):
        """The logistic distribution: loc + scale log(exp(x) - 1), x exponential.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.logistic(0.0, 1.0, size=4).shape
        (4,)
        """
        loc, scale = parameters("logistic", loc=loc, scale=scale)
        refuse_negative("logistic", scale)
        return loc + scale * self._log_of_exponential(size_for("logistic", size, loc, scale), dtype, _f["expm1"])

    def standard_cauchy(self, size=None, dtype=None):
        """The Cauchy distribution: the tangent of an angle between -pi / 2 and pi / 2.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.standard_cauchy(4).shape
        (4,)
        """
        r = _f["tan"](math.pi * (self.random(size, "float64") - 0.5))
        return r if dtype is None else r.astype(dtype)

    def rayleigh(self, scale=1.0, size=None, dtype=None):
        """The Rayleigh distribution: the length of two normal numbers of standard deviation scale.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.rayleigh(1.0, size=4).shape
        (4,)
        """
        (scale,) = parameters("rayleigh", scale=scale)
        refuse_negative("rayleigh", scale)
        return scale * _f["sqrt"](2 * self.standard_exponential(size_for("rayleigh", size, scale), dtype))

    def weibull(self, a, size=None, dtype=None):
        """The Weibull distribution of the shape a and scale 1: x ** (1 / a), x exponential.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.weibull(2.0, size=4).shape
        (4,)
        """
        (a,) = parameters("weibull", a=a)
        refuse_negative("weibull", a, "a")
        x = self.standard_exponential(size_for("weibull", size, a), dtype)
        a = _nvm.asarray(a).astype(x.dtype)
        return _f["where"](a == 0, 0, x ** (1 / _f["where"](a == 0, 1, a)))

    def pareto(self, a, size=None, dtype=None):
        """The Pareto II or Lomax distribution of the shape a: exp(x / a) - 1, x exponential.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.pareto(2.0, size=4).shape
        (4,)
        """
        (a,) = parameters("pareto", a=a)
        refuse_others("pareto", lambda v: v > 0, "a must be above 0", a)
        return _f["expm1"](self.standard_exponential(size_for("pareto", size, a), dtype) / a)

    def power(self, a, size=None, dtype=None):
        """Numbers of [0, 1] of the density a x ** (a - 1).

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.power(2.0, size=4).shape
        (4,)
        """
        (a,) = parameters("power", a=a)
        refuse_others("power", lambda v: v > 0, "a must be above 0", a)
        return _f["exp"](self.standard_exponential(size_for("power", size, a), dtype) / -a)

    def triangular(self, left, mode, right, size=None, dtype=None):
        """The triangular distribution from left to right, whose density is greatest at mode.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.triangular(0.0, 1.0, 2.0, size=4).shape
        (4,)
        """
        left, mode, right = parameters("triangular", left=left, mode=mode, right=right)
        refuse_others("triangular", lambda v: v >= left, "mode must be at least left", mode)
        refuse_others("triangular", lambda v: v >= mode, "right must be at least mode", right)
        refuse_others("triangular", lambda v: v > left, "right must be above left", right)
        u = self.random(size_for("triangular", size, left, mode, right), dtype)
        low, high, base = mode - left, right - mode, right - left
        upper = right - _f["sqrt"]((1 - u) * (high * base))
        return _f["where"](u * base <= low, left + _f["sqrt"](u * (low * base)), upper)

    def wald(self, mean, scale, size=None, dtype=None):
        """The inverse Gaussian distribution, as one of the two roots of a quadratic equation for a normal number.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.wald(1.0, 1.0, size=4).shape
        (4,)
        """
        mean, scale = parameters("wald", mean=mean, scale=scale)
        refuse_others("wald", lambda v: v > 0, "mean must be above 0", mean)
        refuse_others("wald", lambda v: v > 0, "scale must be above 0", scale)
        size = size_for("wald", size, mean, scale)
        z = self.standard_normal(size, dtype)
        y = z * z * (mean / (2 * scale))
        x = mean / (1 + y + _f["sqrt"](y * (2 + y)))
        return _f["where"](self.random(size, dtype) * (mean + x) <= mean, x, mean / x * mean)

    # ---- of gamma and Poisson distributions
    def chisquare(self, df, size=None, dtype=None):
        """The chi-square distribution of df degrees of freedom.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.chisquare(2.0, size=4).shape
        (4,)
        """
        (df,) = parameters("chisquare", df=df)
        refuse_others("chisquare", lambda v: v > 0, "df must be above 0", df)
        return 2 * self.standard_gamma(df / 2, size, dtype)

    def noncentral_chisquare(self, df, nonc, size=None, dtype=None):
        """The noncentral chi-square distribution: central, of df + 2 n degrees of freedom, n a Poisson number.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.noncentral_chisquare(2.0, 1.0, size=4).shape
        (4,)
        """
        df, nonc = parameters("noncentral_chisquare", df=df, nonc=nonc)
        refuse_others("noncentral_chisquare", lambda v: v > 0, "df must be above 0", df)
        refuse_others("noncentral_chisquare", lambda v: v >= 0, "nonc must be 0 or more", nonc)
        size = size_for("noncentral_chisquare", size, df, nonc)
        return 2 * self.standard_gamma(df / 2 + self.poisson(nonc / 2, size), size, dtype)

    def f(self, dfnum, dfden, size=None, dtype=None):
        """The F distribution: the ratio of two chi-square numbers over their degrees of freedom.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.f(2.0, 3.0, size=4).shape
        (4,)
        """
        dfnum, dfden = parameters("f", dfnum=dfnum, dfden=dfden)
        size = size_for("f", size, dfnum, dfden)
        return self.chisquare(dfnum, size, dtype) * dfden / (self.chisquare(dfden, size, dtype) * dfnum)

    def noncentral_f(self, dfnum, dfden, nonc, size=None, dtype=None):
        """The noncentral F distribution, whose numerator is a noncentral chi-square number.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.noncentral_f(2.0, 3.0, 1.0, size=4).shape
        (4,)
        """
        dfnum, dfden, nonc = parameters("noncentral_f", dfnum=dfnum, dfden=dfden, nonc=nonc)
        size = size_for("noncentral_f", size, dfnum, dfden, nonc)
        x = self.noncentral_chisquare(dfnum, nonc, size, dtype)
        return x * dfden / (self.chisquare(dfden, size, dtype) * dfnum)

    def standard_t(self, df, size=None, dtype=None):
        """Student's t distribution of df degrees of freedom.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.standard_t(5.0, size=4).shape
        (4,)
        """
        (df,) = parameters("standard_t", df=df)
        refuse_others("standard_t", lambda v: v > 0, "df must be above 0", df)
        size = size_for("standard_t", size, df)
        return self.standard_normal(size, dtype) * _f["sqrt"]((df / 2) / self.standard_gamma(df / 2, size, dtype))

    def dirichlet(self, alpha, size=None, dtype=None):
        """The Dirichlet distribution: gamma numbers of the shapes alpha over their sum, in rows of a draw of size.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.dirichlet([1.0, 2.0, 3.0], size=4).shape
        (4, 3)
        """
        alpha = _nvm.asarray(alpha).astype(dtype or "float64")
        if alpha.ndim != 1:
            raise ValueError(f"[dirichlet] alpha is of shape {tuple(alpha.shape)}, not (n,)")
        refuse_others("dirichlet", lambda v: v > 0, "alpha must be above 0", alpha)
        size = () if size is None else (size,) if is_integer(size) else tuple(size)
        if is_known(alpha) and bool(_f["all"](alpha < 0.1)):
            return self._broken_stick(alpha, size, dtype)
        x = self.standard_gamma(alpha, (*size, alpha.shape[0]), dtype)
        return x / _f["sum"](x, axis=-1, keepdims=True)

    def _broken_stick(self, alpha, size, dtype):
        """A Dirichlet distribution whose gamma numbers may all be 0: each part of what is left is a beta number."""
        rest = _f["ones"](size, dtype=alpha.dtype)
        parts = []
        for i in range(alpha.shape[0] - 1):
            part = rest * self.beta(alpha[i], _f["sum"](alpha[i + 1 :]), size, dtype)
            parts.append(part)
            rest = _f["maximum"](rest - part, 0)
        return _f["stack"]([*parts, rest], axis=-1)

    # ---- integers
    def geometric(self, p, size=None):
        """How many trials of probability p it takes until one succeeds: int64, at most 2^63 - 1024.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.geometric(0.3, size=4).shape
        (4,)
        """
        (p,) = parameters("geometric", p=p)
        refuse_others("geometric", lambda v: (v > 0) & (v <= 1), "p must be above 0 and at most 1", p)
        x = self.standard_exponential(size_for("geometric", size, p), "float64")
        more = _f["floor"](x / -_f["log1p"](-_nvm.asarray(p).astype("float64")))
        return _f["minimum"](more + 1, 2.0**63 - 1024).astype("int64")

    def negative_binomial(self, n, p, size=None):
        """How many trials of probability p fail before n succeed: int64, a Poisson number of a gamma number.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.negative_binomial(5, 0.5, size=4).shape
        (4,)
        """
        n, p = parameters("negative_binomial", n=n, p=p)
        refuse_others("negative_binomial", lambda v: v > 0, "n must be above 0", n)
        refuse_others("negative_binomial", lambda v: (v > 0) & (v <= 1), "p must be above 0 and at most 1", p)
        size = size_for("negative_binomial", size, n, p)
        return self.poisson(self.standard_gamma(n, size, "float64") * ((1 - p) / p), size)

    def logseries(self, p, size=None):
        """The logarithmic series distribution: int64 of 1 or more with probabilities as p ** k / k.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.logseries(0.5, size=4).shape
        (4,)
        """
        (p,) = parameters("logseries", p=p)
        refuse_others("logseries", lambda v: (v >= 0) & (v < 1), "p must be 0 or more and below 1", p)
        size = size_for("logseries", size, p)
        q = -_f["expm1"](_f["log1p"](-_nvm.asarray(p).astype("float64")) * self.random(size, "float64"))
        return (1 + _f["floor"](self.standard_exponential(size, "float64") / -_f["log"](q))).astype("int64")

    def multinomial(self, n, pvals, size=None):
        """How many of n events are of each kind, whose probabilities are along the last axis of pvals: int64. The last
        kind has what is left of 1.

        >>> import nvm
        >>> rng = nvm.random.default_rng(1)
        >>> rng.multinomial(10, [0.2, 0.8], size=4).shape
        (4, 2)
        """
        n = _nvm.asarray(n).astype("int64")
        p = _nvm.asarray(pvals).astype("float64")
        kinds = p.shape[-1] if p.ndim else 0
        if not kinds:
            raise ValueError(f"[multinomial] pvals is of shape {tuple(p.shape)}, which has no last axis")
        refuse_no_probability("multinomial", p, "pvals")
        sums = _f["cumulative_sum"](p[..., :-1], axis=-1) if kinds > 1 else p[..., :0]
        refuse_others("multinomial", lambda v: v <= 1 + 1e-12, "pvals must add up to 1", sums)
        size = size_for("multinomial", size, n, p[..., 0])
        rest, counts = spread(n, size), []
        for k in range(kinds - 1):
            left = 1 - sums[..., k - 1] if k else 1.0
            share = _f["where"](left > 0, _f["clip"](p[..., k] / left, 0, 1), 0)
            counts.append(self.binomial(rest, share, size))
            rest = rest - counts[-1]
        return _f["stack"]([*counts, rest + _f["zeros"](size or (), dtype="int64")], axis=-1)


DERIVED = tuple(name for name in vars(Distributions) if name[0] != "_")
