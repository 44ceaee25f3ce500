"""Polynomials as arrays of coefficients, the highest power first."""

import warnings

from .. import _nvm, linalg
from ._creation import diag, vander
from ._math import convolve
from ._reductions import all as _all
from ._shapes import atleast_1d
from ._sorting import nonzero
from ._support import asarray, common_dtype, f, fault, inexact, public
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
    """The values of a polynomial.

    p: coefficients (n,), the highest power first, or a poly1d.
    x: where: an array of any shape, or a poly1d, which is substituted.
    Returns an array in the shape of x, or a poly1d.

    >>> import nvm.numpy as np
    >>> np.polyval([1, 0, -2], [2, 3])
    array([2, 7])
    """
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
    """The sum of two polynomials.

    a1, a2: coefficients (n,), the highest power first, or poly1d.
    Returns coefficients, or a poly1d if an operand is one.

    >>> import nvm.numpy as np
    >>> np.polyadd([1, 2], [3, 0, 1])
    array([3, 1, 3])
    """
    return _sum(a1, a2, f["add"])


def polysub(a1, a2):
    """The difference of two polynomials.

    a1, a2: coefficients (n,), the highest power first, or poly1d.
    Returns coefficients, or a poly1d if an operand is one.

    >>> import nvm.numpy as np
    >>> np.polysub([3, 0, 1], [1, 2])
    array([ 3, -1, -1])
    """
    return _sum(a1, a2, f["subtract"])


def polymul(a1, a2):
    """The product of two polynomials.

    a1, a2: coefficients (n,), the highest power first, or poly1d.
    Returns coefficients, or a poly1d if an operand is one.

    >>> import nvm.numpy as np
    >>> np.polymul([1, 2], [1, -2])
    array([ 1,  0, -4])
    """
    return _like(convolve(_trimmed(_coefficients(a1)), _trimmed(_coefficients(a2))), a1, a2)


def polydiv(u, v):
    """The quotient of two polynomials, and the remainder.

    u, v: coefficients (n,), the highest power first, or poly1d; they are evaluated.
    Returns (quotient, remainder) as coefficients of floats, or as poly1d if an operand is one.
    Raises ZeroDivisionError if the first coefficient of v is 0.

    >>> import nvm.numpy as np
    >>> np.polydiv([1, 0, -1], [1, 1])
    (array([ 1., -1.]), array([0.]))
    """
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
    """A derivative of a polynomial.

    p: coefficients (n,), the highest power first, or a poly1d.
    m: which derivative.
    Returns coefficients, or a poly1d of one.
    Raises ValueError for a negative m.

    >>> import nvm.numpy as np
    >>> np.polyder([1, 0, -2])
    array([2, 0])
    """
    m = int(m)
    if m < 0:
        raise fault(ValueError, "Order of derivative must be positive (see polyint)")
    y = _coefficients(p)
    for _ in range(m):
        y = y[:-1] * f["arange"](y.size - 1, 0, -1)
    return _like(y, p)


def polyint(p, m=1, k=None):
    """An integral of a polynomial.

    p: coefficients (n,), the highest power first, or a poly1d.
    m: how often it is integrated.
    k: the constants: a number, or one for each time; 0 for None.
    Returns coefficients of floats, or a poly1d of one.
    Raises ValueError for a negative m, or too few constants.

    >>> import nvm.numpy as np
    >>> np.polyint([2, 0], k=5)
    array([1., 0., 5.])
    """
    m = int(m)
    if m < 0:
        raise fault(ValueError, "Order of integral must be positive (see polyder)")
    k = [0] * m if k is None else atleast_1d(asarray(k)).tolist()
    k = k * m if len(k) == 1 and m > 1 else k
    if len(k) < m:
        raise fault(ValueError, "k must be a scalar or a rank-1 array of length 1 or >m.")
    y = _coefficients(p)
    for i in range(m):
        y = f["concat"]([y / f["arange"](y.size, 0, -1), asarray([k[i]])])
    return _like(y, p)


def poly(seq_of_zeros):
    """The polynomial that has given zeros, or the characteristic polynomial of a matrix.

    seq_of_zeros: an array (n,) of zeros, or a matrix (n, n), whose eigenvalues are the zeros.
    Returns coefficients (n + 1,), the highest power first, which is 1; real ones if complex zeros come in pairs.
    Raises ValueError for other shapes.

    >>> import nvm.numpy as np
    >>> np.poly([1, -1])
    array([ 1.,  0., -1.])
    """
    zeros = atleast_1d(asarray(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        zeros = _real_if_exact(linalg.eigvals(zeros))
    elif zeros.ndim != 1:
        raise fault(ValueError, "input must be 1d or non-empty square 2d array.")
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
    """The zeros of a polynomial.

    p: coefficients (n,), the highest power first, or a poly1d. It is evaluated.
    Returns an array of floats, complex if need be: the eigenvalues of the companion matrix.
    Raises ValueError for other numbers of dimensions.

    >>> import nvm.numpy as np
    >>> np.roots([1, -3, 2])
    array([2., 1.])
    """
    p = _coefficients(p)
    if p.ndim != 1:
        raise fault(ValueError, "Input must be a rank-1 array.")
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
    """The polynomial of a degree that is nearest to points, by least squares.

    x, y: the points: arrays (n,); y may be (n, k) for k polynomials.
    deg: the degree.
    rcond: singular values below this share of the greatest count as 0; None is n times the epsilon of float64.
    full: True returns (coefficients, residuals, rank, singular values, rcond).
    w: weights (n,), by which the distances are multiplied.
    cov: True returns (coefficients, their covariance matrix), scaled by the residuals; 'unscaled' does not scale it.
    Returns coefficients (deg + 1,) or (deg + 1, k), the highest power first.
    Raises TypeError for other shapes, ValueError for a negative degree. Warns by RankWarning if the points do not
        determine it.

    >>> import nvm.numpy as np
    >>> np.polyfit([0, 1, 2, 3], [1, 3, 5, 7], 1).round(6)
    array([2., 1.])
    """
    order = int(deg) + 1
    x, y = asarray(x).astype(_nvm.float64) + 0.0, inexact(asarray(y))
    if deg < 0:
        raise fault(ValueError, "expected deg >= 0")
    if x.ndim != 1:
        raise fault(TypeError, "expected 1D vector for x")
    if x.size == 0:
        raise fault(TypeError, "expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise fault(TypeError, "expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise fault(TypeError, f"expected x and y to have same length, not {x.shape} and {y.shape}")
    rcond = x.size * 2.0**-52 if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        w = asarray(w) + 0.0
        if w.ndim != 1 or w.shape[0] != y.shape[0]:
            raise fault(TypeError, "expected a 1-d array for weights of the length of y")
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
            raise fault(ValueError, "the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (x.size - order)
        base = base[:, :, None] * factor if y.ndim == 2 else base * factor
    return c, base


class poly1d:
    """A polynomial with arithmetic: it can be called, added, multiplied, divided and raised to powers.

    c_or_r: coefficients (n,), the highest power first; with r=True the zeros.
    variable: the name of the argument.
    coeffs, order and roots (c, o and r) are attributes, deriv(m) and integ(m, k) methods; p[i] is the coefficient of
        power i.
    Raises ValueError for more than one dimension.

    >>> import nvm.numpy as np
    >>> p = np.poly1d([1, 0, -4])
    >>> p(3), p.order, p.roots
    (array(5), 2, array([-2.,  2.]))
    >>> p * [1, 1]
    poly1d([1, 1, -4, -4])
    """

    __hash__ = None
    __array_ufunc__ = None

    def __init__(self, c_or_r, r=False, variable=None):
        if isinstance(c_or_r, poly1d):
            self.variable, self.coeffs = variable or c_or_r.variable, c_or_r.coeffs
            return
        c = poly(c_or_r) if r else atleast_1d(asarray(c_or_r))
        if c.ndim > 1:
            raise fault(ValueError, "Polynomial must be 1d only.")
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
            raise fault(ValueError, "Power to non-negative integers only.")
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
