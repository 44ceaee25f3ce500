"""The class of power series, with arithmetic."""

from .._support import asarray, f
from . import polyutils as pu

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _power_series():
    from . import polynomial

    return polynomial


class Polynomial:
    """A power series with arithmetic: it can be called, added, multiplied, divided and raised to powers.

    coef: coefficients (n,), the lowest power first.
    domain, window: intervals, arrays (2,): the argument is mapped from the domain to the window. Both are [-1, 1]
        unless they are given.
    symbol: the name of the argument in texts.
    Raises ValueError for other shapes, TypeError where series of different domains or windows meet.

    >>> from nvm.numpy.polynomial import Polynomial
    >>> p = Polynomial([-4, 0, 1])
    >>> p(3)
    array(5.)
    >>> p.roots()
    array([-2.,  2.])
    >>> print(p * [1, 1])
    -4.0 - 4.0·x + 1.0·x² + 1.0·x³
    """

    __hash__ = None
    __array_ufunc__ = None
    maxpower = 100
    domain = window = asarray([-1.0, 1.0])

    def __init__(self, coef, domain=None, window=None, symbol="x"):
        (self.coef,) = pu.as_series([coef], trim=False)
        for name, ends in (("domain", domain), ("window", window)):
            if ends is not None:
                (ends,) = pu.as_series([ends], trim=False)
                if ends.size != 2:
                    raise ValueError(f"{name.capitalize()} has wrong number of elements.")
                setattr(self, name, ends)
        if not isinstance(symbol, str):
            raise TypeError(f"symbol must be a string, got {type(symbol)}")
        if not symbol.isidentifier():
            raise ValueError("Symbol string must be a valid Python identifier")
        self._symbol = symbol

    symbol = property(lambda self: self._symbol, doc="the name of the argument in texts")

    # ---- comparisons
    def has_samecoef(self, other):
        """Are the coefficients the same?"""
        return self.coef.shape == other.coef.shape and bool(f["all"](self.coef == other.coef))

    def has_samedomain(self, other):
        """Are the domains the same?"""
        return bool(f["all"](self.domain == other.domain))

    def has_samewindow(self, other):
        """Are the windows the same?"""
        return bool(f["all"](self.window == other.window))

    def has_sametype(self, other):
        """Is the other one of this class?"""
        return isinstance(other, self.__class__)

    def _operand(self, other):
        """The coefficients of the other operand."""
        if not isinstance(other, Polynomial):
            return other
        if not self.has_samedomain(other):
            raise TypeError("Domains differ")
        if not self.has_samewindow(other):
            raise TypeError("Windows differ")
        if self.symbol != other.symbol:
            raise ValueError("Polynomial symbols differ")
        return other.coef

    def __eq__(self, other):
        return (
            isinstance(other, self.__class__)
            and self.has_samedomain(other)
            and self.has_samewindow(other)
            and self.has_samecoef(other)
            and self.symbol == other.symbol
        )

    # ---- texts
    def __repr__(self):
        coef, domain, window = (repr(a)[6:-1] for a in (self.coef, self.domain, self.window))
        return f"{type(self).__name__}({coef}, domain={domain}, window={window}, symbol='{self.symbol}')"

    def _argument(self):
        """The text of the mapped argument."""
        offset, scale = (float(v) if v.dtype.kind != "c" else complex(v) for v in self.mapparms())
        if offset == 0:
            return self.symbol if scale == 1 else f"({scale}{self.symbol})"
        return f"({offset} + {self.symbol})" if scale == 1 else f"({offset} + {scale}{self.symbol})"

    def _text(self, term):
        first, *others = self.coef.tolist()
        argument = self._argument()
        lines, width = [_number(first, False)], 75
        for power, c in enumerate(others, 1):
            below = not isinstance(c, complex) and not c >= 0
            sign, new = "-" if below else "+", _number(-c if below else c) + term(str(power), argument)
            if len(lines[-1]) + len(new) + (5 if power < len(others) else 3) >= width:
                lines[-1] += f" {sign}"
                lines.append(new)
            else:
                lines[-1] += f" {sign} {new}"
        return "\n".join(lines)

    def __str__(self):
        return self._text(lambda power, x: f"·{x}{power.translate(_SUPERSCRIPTS) if power != '1' else ''}")

    def __format__(self, spec):
        if spec in ("", "unicode"):
            return str(self)
        if spec != "ascii":
            raise ValueError(f"Unsupported format string {spec!r}: the formats are 'ascii' and 'unicode'")
        return self._text(lambda power, x: f" {x}**{power}" if power != "1" else f" {x}")

    # ---- values
    def __call__(self, arg):
        return _power_series().polyval(pu.mapdomain(arg, self.domain, self.window), self.coef)

    def __iter__(self):
        return iter(self.coef)

    def __len__(self):
        return len(self.coef)

    def linspace(self, n=100, domain=None):
        """n points of the domain and the values there."""
        from .._creation import linspace

        first, last = self.domain if domain is None else domain
        x = linspace(first, last, n)
        return x, self(x)

    # ---- arithmetic
    def _made(self, coef):
        return type(self)(coef, self.domain, self.window, self.symbol)

    def _with(self, other, combine):
        other = self._operand(other)
        try:
            return self._made(combine(other))
        except (TypeError, ValueError) as error:
            if isinstance(error, TypeError) and not hasattr(other, "__len__") and not _is_number(other):
                return NotImplemented
            raise

    def __neg__(self):
        return self._made(-self.coef)

    def __pos__(self):
        return self

    def __add__(self, other):
        return self._with(other, lambda c: _power_series().polyadd(self.coef, c))

    def __sub__(self, other):
        return self._with(other, lambda c: _power_series().polysub(self.coef, c))

    def __rsub__(self, other):
        return self._with(other, lambda c: _power_series().polysub(c, self.coef))

    def __mul__(self, other):
        return self._with(other, lambda c: _power_series().polymul(self.coef, c))

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        if not _is_number(other):
            raise TypeError(f"unsupported types for true division: '{type(self)}', '{type(other)}'")
        return self._made(self.coef / other)

    def _divided(self, by):
        return tuple(map(self._made, _power_series().polydiv(self.coef, self._operand(by))))

    def _divides(self, other):
        return tuple(map(self._made, _power_series().polydiv(self._operand(other), self.coef)))

    def __divmod__(self, other):
        return self._divided(other)

    def __floordiv__(self, other):
        return self._divided(other)[0]

    def __mod__(self, other):
        return self._divided(other)[1]

    def __rdivmod__(self, other):
        return self._divides(other)

    def __rfloordiv__(self, other):
        return self._divides(other)[0]

    def __rmod__(self, other):
        return self._divides(other)[1]

    def __pow__(self, other):
        return self._made(_power_series().polypow(self.coef, other, self.maxpower))

    # ---- degrees
    def copy(self):
        """Another one of the same coefficients."""
        return self._made(self.coef.copy())

    def degree(self):
        """The highest power that has a coefficient."""
        return len(self) - 1

    def cutdeg(self, deg):
        """The series without powers above deg."""
        return self.truncate(deg + 1)

    def trim(self, tol=0):
        """The series without coefficients at its end whose size is at most tol."""
        return self._made(pu.trimcoef(self.coef, tol))

    def truncate(self, size):
        """The series of the first coefficients."""
        if int(size) != size or size < 1:
            raise ValueError("size must be a positive integer")
        return self._made(self.coef[: int(size)])

    # ---- calculus
    def mapparms(self):
        """(offset, scale) of the map from the domain to the window."""
        return pu.mapparms(self.domain, self.window)

    def deriv(self, m=1):
        """The m-th derivative."""
        return self._made(_power_series().polyder(self.coef, m, self.mapparms()[1]))

    def integ(self, m=1, k=[], lbnd=None):  # noqa: B006 # NumPy's signature
        """The m-th integral from lbnd on, with constants k."""
        offset, scale = self.mapparms()
        start = 0 if lbnd is None else offset + scale * lbnd
        return self._made(_power_series().polyint(self.coef, m, k, start, 1.0 / scale))

    def roots(self):
        """The roots, in the domain."""
        return pu.mapdomain(_power_series().polyroots(self.coef), self.window, self.domain)

    def convert(self, domain=None, kind=None, window=None):
        """The same series over another domain and window."""
        kind = type(self) if kind is None else kind
        domain = kind.domain if domain is None else domain
        window = kind.window if window is None else window
        return self(kind.identity(domain, window=window, symbol=self.symbol))

    # ---- constructors
    @classmethod
    def fit(cls, x, y, deg, domain=None, rcond=None, full=False, w=None, window=None, symbol="x"):
        """The series of a degree that is nearest to points by least squares; the domain is that of the points."""
        if domain is None:
            domain = pu.getdomain(x)
            if bool(domain[0] == domain[1]):
                domain = domain + asarray([-1, 1])
        elif isinstance(domain, list) and not domain:
            domain = cls.domain
        window = cls.window if window is None else window
        found = _power_series().polyfit(pu.mapdomain(x, domain, window), y, deg, rcond, full, w)
        if full:
            return cls(found[0], domain, window, symbol), found[1]
        return cls(found, domain, window, symbol)

    @classmethod
    def fromroots(cls, roots, domain=[], window=None, symbol="x"):  # noqa: B006 # NumPy's signature
        """The monic series with these roots; the domain is theirs for None."""
        (roots,) = pu.as_series([roots], trim=False)
        domain = pu.getdomain(roots) if domain is None else cls.domain if len(domain) == 0 else domain
        window = cls.window if window is None else window
        offset, scale = pu.mapparms(domain, window)
        coef = _power_series().polyfromroots(offset + scale * roots) / scale ** len(roots)
        return cls(coef, domain, window, symbol)

    @classmethod
    def identity(cls, domain=None, window=None, symbol="x"):
        """The series whose value is its argument."""
        domain = cls.domain if domain is None else domain
        window = cls.window if window is None else window
        offset, scale = pu.mapparms(window, domain)
        return cls(_power_series().polyline(offset, scale), domain, window, symbol)

    @classmethod
    def basis(cls, deg, domain=None, window=None, symbol="x"):
        """The series x**deg."""
        if int(deg) != deg or deg < 0:
            raise ValueError("deg must be non-negative integer")
        return cls([0] * int(deg) + [1], domain, window, symbol)

    @classmethod
    def cast(cls, series, domain=None, window=None):
        """The series as one of this class."""
        return series.convert(domain, cls, window)


def _is_number(x):
    return isinstance(x, (int, float, complex)) or getattr(x, "ndim", None) == 0


def _number(c, nested=True):
    """The text of a coefficient: at most 8 digits behind the point, in parentheses if it has an exponent."""
    if isinstance(c, complex) or c - c != 0:
        return str(c)
    if c == 0 or 1e-4 <= abs(c) < 1e8:
        return _short(f"{c:.8f}")
    digits, exponent = f"{c:.8e}".split("e")
    text = f"{_short(digits)}e{exponent}"
    return f"({text})" if nested else text


def _short(digits):
    digits = digits.rstrip("0")
    return digits + "0" if digits.endswith(".") else digits
