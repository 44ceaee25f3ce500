"""Polynomials as arrays of coefficients, the highest power first."""

import warnings

from .. import _nvm, linalg
from ._creation import diag, vander
from ._math import convolve
from ._reductions import all as _all
from ._shapes import atleast_1d
from ._sorting import nonzero
from ._support import asarray, common_dtype, f, inexact, public
from .exceptions import RankWarning


def _coefficients(p):
    return p.coeffs if isinstance(p, poly1d) else atleast_1d(asarray(p))


def _like(result, *operands):
    """A poly1d if an operand is one."""
    return poly1d(result) if any(isinstance(p, poly1d) for p in operands) else result


def _trimmed(p):
    """Coefficients without leading zeros; at least one."""
    used = nonzero(p)[0]
    return p[int(used[0]) :] if used.size else f["zeros"]((1,), dtype=p.dtype)


def polyval(p, x):
    """The values of a polynomial at x, by Horner's rule."""
    p = _coefficients(p)
    if isinstance(x, poly1d):
        y = poly1d([0])
        for i in range(p.size):
            y = y * x + p[i]
        return y
    x = asarray(x)
    y = f["zeros"](x.shape, dtype=x.dtype)
    for i in range(p.shape[0]):
        y = y * x + p[i]
    return y


def _sum(a1, a2, combine):
    a, b = _coefficients(a1), _coefficients(a2)
    n = max(a.size, b.size)
    a, b = (f["pad"](x, [(n - x.size, 0)]) if x.size < n else x for x in (a, b))
    return _like(combine(a, b), a1, a2)


def polyadd(a1, a2):
    """The sum of two polynomials."""
    return _sum(a1, a2, f["add"])


def polysub(a1, a2):
    """The difference of two polynomials."""
    return _sum(a1, a2, f["subtract"])


def polymul(a1, a2):
    """The product of two polynomials."""
    return _like(convolve(_trimmed(_coefficients(a1)), _trimmed(_coefficients(a2))), a1, a2)


def polydiv(u, v):
    """The quotient of two polynomials and the remainder."""
    a, b = inexact(_coefficients(u)), inexact(_coefficients(v))
    dtype = common_dtype(a, b)
    rest, divisor = a.tolist(), b.tolist()
    quotient = []
    for k in range(len(rest) - len(divisor) + 1):
        quotient.append(rest[k] / divisor[0])
        for i, d in enumerate(divisor):
            rest[k + i] -= quotient[-1] * d
    while len(rest) > 1 and abs(rest[0]) <= 1e-8:
        rest = rest[1:]
    quotient, rest = asarray(quotient or [0.0]).astype(dtype), asarray(rest).astype(dtype)
    return (_like(quotient, u, v), _like(rest, u, v))


def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    y = _coefficients(p)
    for _ in range(m):
        y = y[:-1] * f["arange"](y.size - 1, 0, -1)
    return _like(y, p)


def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial, with constants k."""
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = [0] * m if k is None else atleast_1d(asarray(k)).tolist()
    k = k * m if len(k) == 1 and m > 1 else k
    if len(k) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    y = _coefficients(p)
    for i in range(m):
        y = f["concat"]([y / f["arange"](y.size, 0, -1), asarray([k[i]])])
    return _like(y, p)


def poly(seq_of_zeros):
    """The polynomial with these zeros, or the characteristic one of a square matrix."""
    zeros = atleast_1d(asarray(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        zeros = _real_if_exact(linalg.eigvals(zeros))
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not zeros.size:
        return 1.0
    zeros = inexact(zeros)
    a = f["ones"]((1,), dtype=zeros.dtype)
    for i in range(zeros.size):
        a = convolve(a, f["stack"]([f["ones"]((), dtype=zeros.dtype), -zeros[i]]))
    if a.dtype.kind == "c":
        roots = sorted(zeros.tolist(), key=lambda z: (z.real, z.imag))
        if roots == sorted((z.conjugate() for z in roots), key=lambda z: (z.real, z.imag)):
            return f["real"](a)
    return a


def _real_if_exact(z):
    """Real parts, if all imaginary ones are 0."""
    return f["real"](z) if z.dtype.kind == "c" and bool(_all(f["imag"](z) == 0)) else z


def roots(p):
    """The zeros of a polynomial: eigenvalues of its companion matrix."""
    p = _coefficients(p)
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    used = nonzero(p)[0].tolist()
    if not used:
        return asarray([])
    zeros_at_0 = p.size - used[-1] - 1
    p = inexact(p[used[0] : used[-1] + 1])
    found = f["zeros"]((0,), dtype=p.dtype)
    if p.size > 1:
        first = (-p[1:] / p[0])[None, :]
        below = diag(f["ones"]((p.size - 2,), dtype=p.dtype), -1)[1:]
        found = _real_if_exact(linalg.eigvals(f["concat"]([first, below], axis=0)))
    return f["concat"]([found, f["zeros"]((zeros_at_0,), dtype=found.dtype)])


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The polynomial of a degree that is nearest to points by least squares."""
    order = int(deg) + 1
    x, y = asarray(x).astype(_nvm.float64) + 0.0, inexact(asarray(y))
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"expected x and y to have same length, not {x.shape} and {y.shape}")
    rcond = x.size * 2.0**-52 if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        w = asarray(w) + 0.0
        if w.ndim != 1 or w.shape[0] != y.shape[0]:
            raise TypeError("expected a 1-d array for weights of the length of y")
        left, right = left * w[:, None], right * (w[:, None] if y.ndim == 2 else w)
    scale = f["sqrt"](f["sum"](left * left, axis=0))
    c, residuals, rank, s = linalg.lstsq(left / scale, right, rcond)
    c = c / (scale[:, None] if y.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, rcond
    if int(rank) != order:
        warnings.warn("Polyfit may be poorly conditioned", RankWarning, 2)
    if not cov:
        return c
    scaled = left / scale
    base = linalg.inv(f["matmul"](f["permute_dims"](scaled, (1, 0)), scaled)) / (scale[:, None] * scale[None, :])
    if cov != "unscaled":
        if x.size <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (x.size - order)
        base = base[:, :, None] * factor if y.ndim == 2 else base * factor
    return c, base


class poly1d:
    """A polynomial with arithmetic: poly1d(coefficients), or with r=True, poly1d(zeros)."""

    __hash__ = None
    __array_ufunc__ = None

    def __init__(self, c_or_r, r=False, variable=None):
        if isinstance(c_or_r, poly1d):
            self.variable, self.coeffs = variable or c_or_r.variable, c_or_r.coeffs
            return
        c = poly(c_or_r) if r else atleast_1d(asarray(c_or_r))
        if c.ndim > 1:
            raise ValueError("Polynomial must be 1d only.")
        self.coeffs, self.variable = _trimmed(c), variable or "x"

    coef = c = coefficients = property(lambda self: self.coeffs)
    order = o = property(lambda self: self.coeffs.size - 1)
    roots = r = property(lambda self: roots(self.coeffs))

    def __call__(self, val):
        return polyval(self.coeffs, val)

    def __len__(self):
        return self.order

    def __iter__(self):
        return iter(self.coeffs)

    def __getitem__(self, power):
        return self.coeffs[self.order - power] if 0 <= power <= self.order else asarray(0)

    def __repr__(self):
        return f"poly1d({str(self.coeffs.tolist())})"

    def __neg__(self):
        return poly1d(-self.coeffs)

    def __pos__(self):
        return self

    def __add__(self, other):
        return polyadd(self, other)

    def __sub__(self, other):
        return polysub(self, other)

    def __rsub__(self, other):
        return polysub(other, self)

    def __mul__(self, other):
        return polymul(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __pow__(self, n):
        if n != int(n) or n < 0:
            raise ValueError("Power to non-negative integers only.")
        result = poly1d([1])
        for _ in range(int(n)):
            result = result * self
        return result

    def __truediv__(self, other):
        return polydiv(self, other) if isinstance(other, poly1d) else poly1d(self.coeffs / other)

    def __eq__(self, other):
        if not isinstance(other, poly1d):
            return NotImplemented
        return self.coeffs.shape == other.coeffs.shape and bool(_all(self.coeffs == other.coeffs))

    def deriv(self, m=1):
        """The m-th derivative."""
        return polyder(self, m)

    def integ(self, m=1, k=0):
        """The m-th integral, with constants k."""
        return polyint(self, m, k)


__all__ = public(globals())
