"""repr and str of arrays, the way NumPy prints them: columns of equal width, long arrays shortened to their edges. An
array inside a traced function shows its dtype and shape."""

import math
import struct
from contextvars import ContextVar
from types import MappingProxyType

from . import _nvm
from ._array_api import _FLOATS

_USUAL = MappingProxyType({"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 75, "suppress": False})
OPTIONS = ContextVar("options", default=_USUAL)
_DEFAULT = {"float64", "int64", "bool", "complex128"}
_LARGE = {"float16": 1e3, "float32": 1e6, "complex64": 1e6}  # numbers are printed with an exponent from here, else 1e8


def _round_trips(name):
    """Does a decimal text give the number back in this dtype?"""
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        fraction, least, _, _ = _FLOATS[name]

        def same(text, x):
            v = float(text)
            ulp = math.ldexp(1.0, max(math.frexp(v)[1] - 1, least) - fraction)
            return round(v / ulp) * ulp == x

        return same
    code = {"float16": "<e", "float32": "<f", "complex64": "<f"}.get(name)
    if code is None:
        return lambda text, x: float(text) == x

    def same(text, x):
        try:
            return struct.unpack(code, struct.pack(code, float(text)))[0] == x
        except OverflowError:
            return False

    return same


def _shortest(x, same):
    """Shortest scientific text that gives x back: digits d.ddd and the exponent."""
    for p in range(17):
        text = f"{x:.{p}e}"
        if same(text, x):
            break
    return text


def _positional(x, same):
    """Like 1.25 or 3.: shortest, with at most as many places after the point as the precision says."""
    mantissa, exponent = _shortest(x, same).split("e")
    places = min(max(len(mantissa.partition(".")[2]) - int(exponent), 0), OPTIONS.get()["precision"])
    text = f"{x:.{places}f}"
    whole, _, fraction = text.partition(".")
    return whole + "." + fraction.rstrip("0")


def _places(x, same):
    """Digits after the point of the scientific text, at most the precision, without the zeros that rounding leaves at
    the end."""
    n = min(len(_shortest(x, same).split("e")[0].partition(".")[2]), OPTIONS.get()["precision"])
    return len(f"{x:.{n}e}".split("e")[0].partition(".")[2].rstrip("0"))


class _Float:
    def __init__(self, values, name, sign=False):
        self.same, self.sign = _round_trips(name), sign
        finite = [x for x in values if math.isfinite(x)]
        sizes = [abs(x) for x in finite if x]
        least, most = min(sizes, default=1), max(sizes, default=1)
        small = not OPTIONS.get()["suppress"] and (least < 1e-4 or most / least > 1000)
        self.scientific = most >= _LARGE.get(name, 1e8) or small
        self.right = 0
        if self.scientific:
            self.places = max((_places(x, self.same) for x in finite), default=0)
            self.exponent = max(len(str(abs(int(f"{x:.{self.places}e}".split("e")[1])))) for x in finite)
            texts = [self._scientific(x) for x in finite]
            self.left = max((len(t.partition(".")[0]) for t in texts), default=0)
            self.right = max((len(t.partition(".")[2]) for t in texts), default=0)
        else:
            texts = [self._signed(_positional(x, self.same)) for x in finite]
            self.left = max((len(t.partition(".")[0]) for t in texts), default=0)
            self.right = max((len(t.partition(".")[2]) for t in texts), default=0)
        special = [self._special(x) for x in values if not math.isfinite(x)]
        self.left = max([self.left] + [len(t) - self.right - 1 for t in special])

    def _signed(self, text):
        return "+" + text if self.sign and not text.startswith("-") else text

    def _scientific(self, x):
        mantissa, exponent = f"{x:.{self.places}e}".split("e")
        if "." not in mantissa:
            mantissa += "."
        return self._signed(mantissa) + f"e{int(exponent):+0{max(self.exponent, 2) + 1}d}"

    def _special(self, x):
        return self._signed("nan" if x != x else "inf" if x > 0 else "-inf")

    def __call__(self, x):
        if not math.isfinite(x):
            return self._special(x).rjust(self.left + 1 + self.right)
        text = self._scientific(x) if self.scientific else self._signed(_positional(x, self.same))
        whole, _, fraction = text.partition(".")
        return whole.rjust(self.left) + "." + fraction.ljust(self.right)


class _Complex:
    def __init__(self, values, name):
        self.re = _Float([z.real for z in values], name)
        self.im = _Float([z.imag for z in values], name, sign=True)

    def __call__(self, z):
        im = self.im(z.imag)
        body = im.rstrip()
        return self.re(z.real) + body + "j" + im[len(body) :]


class _Plain:
    def __init__(self, values, least=0):
        self.width = max([least, *(len(str(v)) for v in values)])

    def __call__(self, v):
        return str(v).rjust(self.width)


def _leaves(nest):
    for item in nest if isinstance(nest, list) else (nest,):
        if isinstance(item, list):
            yield from _leaves(item)
        elif item is not Ellipsis:
            yield item


def _formatter(values, x):
    """Truth values of an array are as wide as False, as NumPy's are, but not one without dimensions."""
    if x.dtype.kind == "f":
        return _Float(values, x.dtype.name)
    if x.dtype.kind == "c":
        return _Complex(values, x.dtype.name)
    return _Plain(values, len("False") if x.dtype.kind == "b" and x.ndim else 0)


def _rows(nest, depth, indent, tail, separator, one):
    """Text of a nest; `tail` columns are kept free behind it for brackets and what follows."""
    if not isinstance(nest, list):
        return one(nest)
    if depth > 1:
        items = ["..." if n is Ellipsis else _rows(n, depth - 1, indent + 1, tail + 1, separator, one) for n in nest]
        return "[" + (separator.rstrip() + "\n" * (depth - 1) + " " * (indent + 1)).join(items) + "]"
    line_width = OPTIONS.get()["linewidth"]
    width = line_width - max(len(separator.rstrip()), tail + 1)
    lines, line = [], " " * (indent + 1)
    for i, n in enumerate(nest):
        word = "..." if n is Ellipsis else one(n)
        last = i == len(nest) - 1
        if len(line) + len(word) > (line_width - (tail + 1) if last else width) and len(line) > indent + 1:
            lines.append(line.rstrip())
            line = " " * (indent + 1)
        line += word if last else word + separator
    lines.append(line)
    return "[" + "\n".join(lines)[indent + 1 :] + "]"


def _shown(x, text):
    """text(x), or what there is to say where it has no value: in a trace, or of a device that failed."""
    what = f"array of {x.dtype.name}, shape {x.shape}"
    try:
        return text(x)
    except _nvm.Error as e:
        return f"<{what}, without a value: {e}>"
    except RuntimeError:
        if not _nvm.tracing():
            raise
        return f"<traced {what}>"


def _corners(x):
    """What is shown of a long array on a GPU, brought to the CPU without the rest: both ends of each long dimension."""
    if x.device == "cpu":
        return x
    edge = OPTIONS.get()["edgeitems"]
    parts, cut = [x.eval()], [d for d, n in enumerate(x.shape) if n > 2 * edge + 1]
    for d in cut:
        at = (slice(None),) * d
        parts = [p[at + (s,)] for p in parts for s in (slice(edge + 1), slice(-edge, None))]
    parts = [p.to_device("cpu") for p in parts]
    for d in reversed(cut):
        parts = [_nvm.functions["concat"](parts[i : i + 2], axis=d) for i in range(0, len(parts), 2)]
    return parts[0]


def _body(x, prefix, suffix, separator):
    options = OPTIONS.get()
    short = x.size > options["threshold"]
    x = _corners(x) if short else x
    nest = x._edges(options["edgeitems"] if short else 0)
    return _rows(nest, x.ndim, len(prefix), len(suffix), separator, _formatter(list(_leaves(nest)), x))


def _repr(x):
    body = _body(x, "array(", ")", ", ") if x.size else "[]"
    options = OPTIONS.get()
    extra = [f"shape={x.shape}"] if x.size > options["threshold"] or not x.size and x.shape != (0,) else []
    extra += [f"dtype={x.dtype.name}"] if x.dtype.name not in _DEFAULT or not x.size else []
    if not extra:
        return f"array({body})"
    text, tail = f"array({body},", ", ".join(extra) + ")"
    space = " " if len(text) - text.rfind("\n") + len(tail) <= options["linewidth"] else "\n" + " " * len("array(")
    return text + space + tail


def _number(x, name):
    """As Python prints a number, but with no more digits than the dtype needs."""
    if isinstance(x, complex):
        return str(complex(*(float(_number(part, name)) for part in (x.real, x.imag))))
    if not isinstance(x, float) or not math.isfinite(x):
        return str(x)
    text = _shortest(x, _round_trips(name))
    return text if _LARGE.get(name, math.inf) <= abs(x) else str(float(text))


def _str(x):
    if x.ndim == 0:
        return _number(x.item(), x.dtype.name)
    return _body(x, "", "", " ") if x.size else "[]"


def format_array(x, spec):
    """A 0-d array is formatted as its number is."""
    if not spec:
        return str(x)
    if x.ndim:
        raise TypeError(f"the format {spec!r} is for numbers; this is an array of shape {x.shape}")
    return _shown(x, lambda x: format(x.item(), spec))


def repr_html(x):
    """For notebooks: shape, dtype and device, and the elements if they are computed; a pending array stays pending."""
    shown = not _nvm.tracing() and x.ready()
    rows = {
        "shape": " x ".join(map(str, x.shape)) or "()",
        "dtype": x.dtype.name,
        "device": str(x.device),
        "elements": str(x) if shown else "pending: print(x) and x.eval() compute them",
    }
    cells = "".join(f"<tr><th>{name}</th><td><pre>{escape_html(value)}</pre></td></tr>" for name, value in rows.items())
    return f"<table><caption>nvm array</caption>{cells}</table>"


def escape_html(text):
    """The text as the content of an HTML or SVG element, or of an attribute in quotes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_nvm.hooks.update(repr=lambda x: _shown(x, _repr), str=lambda x: _shown(x, _str))
