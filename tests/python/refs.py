"""What each operation of the table should give: NumPy's name for it, what it takes, and how close the result must be;
and what several files of tests share.

A new row of the table without an entry here fails test_ops.test_every_operation_has_a_reference.
"""

from dataclasses import dataclass, field
from math import erf, erfc, lgamma

import numpy as np

import nvm

BOOL = ["bool"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
HALF = ["float16"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
ANY = BOOL + INTS + HALF + FLOATS + COMPLEX
REAL = INTS + HALF + FLOATS
NUM = REAL + COMPLEX


def counted(shape, dtype="float64"):
    return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)


def same(got, want):
    """Shape, dtype and every element."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got, want)
    np.testing.assert_array_equal(got, want)


def same_bits_in_every_mode(compute):
    """However it is computed: node by node, in either tier, with other vectors, by one thread."""
    want = np.asarray(compute())
    others = ("FUSE", "off", "on"), ("TIER", "0", "auto"), ("TIER", "1", "auto"), ("ISA", "128", "native")
    for name, value, usual in (*others, ("NUM_THREADS", "1", "0")):
        nvm.set(name, value)
        try:
            assert np.array_equal(np.asarray(compute()), want), name
        finally:
            nvm.set(name, usual)


@dataclass
class Map:
    """An elementwise operation. ulp: distance from the reference in units of the last place (0: equal bits; NaN equals
    NaN). floats: integers and bool are computed as float64. special: NaN, infinities and signed zeros agree with
    NumPy."""

    ref: object
    nin: int
    takes: list
    ulp: float = 0
    floats: bool = False
    lo: float = -4
    hi: float = 4
    special: bool = True
    unit: float = 0  # ulp: in units of the last place of at least this size (the function has zeros)
    wide: bool = True  # the reference of floats is computed one precision wider and rounded
    out: object = None  # dtype of the result; None: that of the reference
    attrs: dict = field(default_factory=dict)


def flt(ref, ulp=2, nin=1, complex=True, **kw):
    return Map(ref, nin, BOOL + REAL + (COMPLEX if complex else []), ulp, True, **kw)


def _each(f):
    return lambda x: np.vectorize(f, otypes=[np.float64])(np.asarray(x, np.float64)).astype(np.asarray(x).dtype)


def _lgamma(x):
    if np.isnan(x):
        return x
    if np.isinf(x) or (x <= 0 and x == np.floor(x)):
        return np.inf
    return lgamma(x)


def _erf(x):
    return x if np.isnan(x) else erf(x)


def _erfc(x):
    return x if np.isnan(x) else erfc(x)


def _floor_divide(a, b):
    """The standard's rules where they differ from NumPy's; integers by zero give 0, the least by -1 itself."""
    if a.dtype.kind in "iu":
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, np.floor_divide(a, safe)).astype(a.dtype)
    return np.floor_divide(a, b)


def _remainder(a, b):
    if a.dtype.kind in "iu":
        safe = np.where(b == 0, 1, b)
        return np.where(b == 0, 0, np.remainder(a, safe)).astype(a.dtype)
    return np.remainder(a, b)


def _shift(f):
    def shift(a, b):
        width = a.dtype.itemsize * 8
        ok = (b >= 0) & (b < width)
        rest = np.where(a < 0, -1, 0) if f is np.right_shift and a.dtype.kind == "i" else 0
        return np.where(ok, f(a, np.where(ok, b, 0)), rest).astype(a.dtype)

    return shift


def _pow(a, b):
    if a.dtype.kind == "i":
        return np.where(b < 0, 0, np.power(a, np.where(b < 0, 0, b))).astype(a.dtype)
    return np.power(a, b)


def _sign(x):
    return np.where(x == 0, x, x / np.abs(x)) if x.dtype.kind == "c" else np.sign(x)


def _logical(f):
    return lambda *a: f(*(x != 0 for x in a))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


MAPS = {
    "add": Map(np.add, 2, ANY),
    "subtract": Map(np.subtract, 2, NUM),
    "multiply": Map(np.multiply, 2, ANY, wide=False),
    "divide": flt(np.divide, 0, 2, wide=False),
    "floor_divide": Map(_floor_divide, 2, REAL, special=False, wide=False),
    "remainder": Map(_remainder, 2, REAL, special=False, wide=False),
    "pow": Map(_pow, 2, NUM, 4, lo=0.1, special=False),
    "negative": Map(np.negative, 1, NUM),
    "positive": Map(np.positive, 1, NUM),
    "abs": Map(np.abs, 1, NUM),
    "sign": Map(_sign, 1, NUM, special=False),
    "square": Map(lambda x: x * x, 1, NUM, wide=False),
    "reciprocal": flt(lambda x: 1 / x, 0, wide=False),
    "sqrt": flt(np.sqrt, 0, special=False),
    "rsqrt": flt(lambda x: 1 / np.sqrt(x), 2, complex=False, lo=0.01),
    "cbrt": flt(np.cbrt, 2, complex=False),
    "fma": Map(lambda a, b, c: a * b + c, 3, FLOATS, 1, special=False),
    "maximum": Map(np.maximum, 2, BOOL + REAL),
    "minimum": Map(np.minimum, 2, BOOL + REAL),
    "hypot": flt(np.hypot, 2, 2, complex=False),
    "copysign": flt(np.copysign, 0, 2, complex=False, wide=False),
    "nextafter": Map(np.nextafter, 2, HALF + FLOATS, wide=False),
    "exp": flt(np.exp),
    "exp2": flt(np.exp2, complex=False),
    "expm1": flt(np.expm1, special=False),
    "log": flt(np.log, special=False),
    "log1p": flt(np.log1p, special=False, lo=-0.9),
    "log2": flt(np.log2, special=False),
    "log10": flt(np.log10, special=False),
    "logaddexp": flt(np.logaddexp, 3, 2, complex=False, unit=1),
    "sin": flt(np.sin, special=False),
    "cos": flt(np.cos, special=False),
    "tan": flt(np.tan, 3, special=False),
    "asin": flt(np.arcsin, lo=-1, hi=1, special=False),
    "acos": flt(np.arccos, lo=-1, hi=1, special=False),
    "atan": flt(np.arctan, special=False),
    "atan2": flt(np.arctan2, 2, 2, complex=False),
    "sinh": flt(np.sinh, special=False),
    "cosh": flt(np.cosh, special=False),
    "tanh": flt(np.tanh, special=False),
    "asinh": flt(np.arcsinh, special=False),
    "acosh": flt(np.arccosh, lo=1, hi=9, special=False),
    "atanh": flt(np.arctanh, lo=-0.99, hi=0.99, special=False),
    "erf": flt(_each(_erf), complex=False, wide=False),
    "erfc": flt(_each(_erfc), 4, complex=False, wide=False),
    "lgamma": flt(_each(_lgamma), 8, complex=False, wide=False, lo=0.1, hi=30, unit=1),
    "sigmoid": flt(_sigmoid, 3, complex=False),
    "relu": Map(lambda x: np.maximum(x, 0), 1, REAL, special=False),
    "silu": flt(lambda x: x * _sigmoid(x), 4, complex=False, special=False),
    "gelu": flt(
        lambda x: x * _each(_erfc)(np.asarray(-x / np.sqrt(2), np.float64)) / 2,
        150,
        complex=False,
        special=False,
        wide=False,
        lo=-2,
    ),  # to the left the rounding of x / sqrt 2 is magnified by x^2, in the reference too
    "ceil": Map(np.ceil, 1, BOOL + REAL),
    "floor": Map(np.floor, 1, BOOL + REAL),
    "trunc": Map(np.trunc, 1, BOOL + REAL),
    "round": Map(np.round, 1, NUM),
    "real": Map(np.real, 1, NUM),
    "imag": Map(np.imag, 1, NUM),
    "conj": Map(np.conj, 1, NUM),
    "isfinite": Map(np.isfinite, 1, ANY),
    "isinf": Map(np.isinf, 1, ANY),
    "isnan": Map(np.isnan, 1, ANY),
    "signbit": Map(np.signbit, 1, HALF + FLOATS),
    "equal": Map(np.equal, 2, ANY),
    "not_equal": Map(np.not_equal, 2, ANY),
    "less": Map(np.less, 2, BOOL + REAL),
    "less_equal": Map(np.less_equal, 2, BOOL + REAL),
    "greater": Map(np.greater, 2, BOOL + REAL),
    "greater_equal": Map(np.greater_equal, 2, BOOL + REAL),
    "logical_and": Map(_logical(np.logical_and), 2, ANY),
    "logical_or": Map(_logical(np.logical_or), 2, ANY),
    "logical_xor": Map(_logical(np.logical_xor), 2, ANY),
    "logical_not": Map(_logical(np.logical_not), 1, ANY),
    "bitwise_and": Map(np.bitwise_and, 2, BOOL + INTS),
    "bitwise_or": Map(np.bitwise_or, 2, BOOL + INTS),
    "bitwise_xor": Map(np.bitwise_xor, 2, BOOL + INTS),
    "bitwise_invert": Map(np.invert, 1, BOOL + INTS),
    "bitwise_left_shift": Map(_shift(np.left_shift), 2, INTS),
    "bitwise_right_shift": Map(_shift(np.right_shift), 2, INTS),
}
# numpy.ceil and its kin turn bool and integers into floats (and float16): the standard keeps them
for _n in ("ceil", "floor", "trunc", "round"):
    MAPS[_n].ref = (lambda f: lambda x: x if x.dtype.kind in "biu" else f(x))(MAPS[_n].ref)
MAPS["imag"].ref = lambda x: np.zeros_like(x) if x.dtype.kind != "c" else np.imag(x)


@dataclass
class Red:
    """A reduction. ref(x, axis=..., keepdims=...); rtol is per element of the sum."""

    ref: object
    takes: list
    exact: list
    floats: bool = False
    empty: bool = True
    one_axis: bool = False


def _sum(f):
    def total(x, **kw):  # bool and narrow integers as 64 bits
        if x.dtype.kind in "bi":
            kw["dtype"] = np.int64
        elif x.dtype.kind == "u":
            kw["dtype"] = np.uint64
        elif x.dtype == np.float16:
            return f(x.astype(np.float64), **kw).astype(np.float16)
        else:
            kw["dtype"] = x.dtype
            return f(x.astype(np.complex256 if x.dtype.kind == "c" else np.longdouble), **{**kw, "dtype": None}).astype(
                x.dtype
            )
        return f(x, **kw)

    return total


def _wide(f):
    def wide(x, **kw):
        t = x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64)
        return f(x.astype(np.complex128 if t.kind == "c" else np.longdouble), **kw).astype(t)

    return wide


def _logsumexp(x, axis=None, keepdims=False):
    m = np.max(x, axis=axis, keepdims=True)
    r = np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m
    return r if keepdims else np.squeeze(r, axis=axis)


REDUCTIONS = {
    "sum": Red(_sum(np.sum), ANY, BOOL + INTS),
    "prod": Red(_sum(np.prod), ANY, BOOL + INTS),
    "max": Red(np.max, BOOL + REAL, BOOL + REAL, empty=False),
    "min": Red(np.min, BOOL + REAL, BOOL + REAL, empty=False),
    "all": Red(np.all, ANY, ANY),
    "any": Red(np.any, ANY, ANY),
    "argmax": Red(np.argmax, BOOL + REAL, BOOL + REAL, empty=False, one_axis=True),
    "argmin": Red(np.argmin, BOOL + REAL, BOOL + REAL, empty=False, one_axis=True),
    "count_nonzero": Red(lambda x, **k: np.asarray(np.count_nonzero(x, **k)), ANY, ANY),
    "mean": Red(_wide(np.mean), BOOL + NUM, [], True, empty=False),
    "var": Red(_wide(np.var), BOOL + REAL, [], True, empty=False),
    "std": Red(_wide(np.std), BOOL + REAL, [], True, empty=False),
    "logsumexp": Red(_wide(_logsumexp), BOOL + REAL, [], True, empty=False),
    "vector_norm": Red(
        _wide(lambda x, axis=None, keepdims=False: np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims))),
        BOOL + REAL,
        [],
        True,
    ),
}

# Tested by name in the file given, each against NumPy over shapes of its own.
# operations that one function of nvm.linalg calls
INSIDE = {"linalg.factor": "linalg.slogdet", "linalg.part": "linalg.svd"}
ELSEWHERE = {
    "test_ops.py": """where clip isclose astype cumulative_sum cumulative_prod softmax log_softmax""".split(),
    "test_matmul.py": "vecdot matmul tensordot einsum".split(),
    "test_scaled_matmul.py": ["scaled_matmul"],
    "test_views.py": """reshape permute_dims matrix_transpose moveaxis expand_dims squeeze broadcast_to slice flip roll
        diagonal tile repeat concat stack pad slice_update tril triu take take_along_axis last_index""".split(),
    "test_sort.py": "sort argsort".split(),
    "test_fft.py": """fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fftn fft.ifftn fft.rfftn fft.irfftn
        fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftshift fft.ifftshift fft.fftfreq fft.rfftfreq""".split(),
    "test_factor.py": [
        "linalg." + name
        for name in """cholesky lu solve lu_solve solve_triangular inv det slogdet qr svd svdvals eigh eigvalsh eig
        eigvals""".split()
    ],
    "test_creation.py": "full zeros ones full_like zeros_like ones_like eye arange linspace".split(),
}
