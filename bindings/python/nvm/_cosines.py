"""Cosine and sine transforms of types 1 to 4 with SciPy's arguments, as compositions of Fourier transforms."""

import math

from . import _nvm
from ._creation import axis_of, from_parts

_f = _nvm.functions
_NORMS = ("backward", "ortho", "forward")


def resized(x, n):
    """The last axis cropped, or padded with zeros at its end, to n elements."""
    m = x.shape[-1]
    return x[..., :n] if m >= n else _f["pad"](x, (0, 0) * (x.ndim - 1) + (0, n - m))


_kept = {}  # results of _turns


def _turns(*call):
    """exp(-i pi (first + step j) / of) of j < count, in `dtype`: call is (count, first, step, of, dtype)."""
    turns = _kept.get(call)
    if turns is None:
        device = _nvm.thread_device(0)  # on no device: they serve the calls of any
        try:
            turns = _computed_turns(*call)
        finally:
            _nvm.thread_device(device)
        if len(_kept) >= 64:
            _kept.clear()
        _kept[call] = turns
    return turns


def _computed_turns(count, first, step, of, dtype):
    """Computed in float64."""
    angle = (_f["arange"](count, dtype=_nvm.float64) * step + first) * (-math.pi / of)
    return (_f["cos"](angle) + 1j * _f["sin"](angle)).astype(dtype).eval()


def _complex_of(x):
    return _nvm.complex128 if x.dtype == _nvm.float64 else _nvm.complex64


def _alternating(n):
    return 1 - 2 * (_f["arange"](n) % 2)


# ---- unscaled transforms of real rows
def _dct_1(x):
    if x.shape[-1] < 2:
        raise ValueError("[fft.dct] type 1 needs two points or more")
    return _f["real"](_f["fft.rfft"](_f["concat"]([x, _f["flip"](x[..., 1:-1], axis=-1)], axis=-1)))


def _dct_2(x):
    n = x.shape[-1]
    v = _f["fft.rfft"](_f["concat"]([x[..., ::2], _f["flip"](x[..., 1::2], axis=-1)], axis=-1))
    v = 2 * v * _turns(n // 2 + 1, 0, 1, 2 * n, v.dtype)
    return _f["concat"]([_f["real"](v), _f["flip"](-_f["imag"](v[..., 1 : (n + 1) // 2]), axis=-1)], axis=-1)


def _dct_3(x):
    n = x.shape[-1]
    half, t = n // 2 + 1, _complex_of(x)
    behind = _f["concat"]([_f["zeros_like"](x[..., :1]), _f["flip"](x[..., n + 1 - half :], axis=-1)], axis=-1)
    v = (x[..., :half] - 1j * behind).astype(t) * _f["conj"](_turns(half, 0, 1, 2 * n, t))
    v = _f["fft.irfft"](v, n=n, norm="forward")
    low, high = v[..., : (n + 1) // 2], _f["flip"](v[..., (n + 1) // 2 :], axis=-1)
    pairs = _f["stack"]([low, resized(high, low.shape[-1])], axis=-1)
    return pairs.reshape(*x.shape[:-1], -1)[..., :n]


def _dct_4(x):
    n, t = x.shape[-1], _complex_of(x)
    v = _f["fft.fft"](x * _turns(n, 0, 1, 2 * n, t), n=2 * n)[..., :n]
    return 2 * _f["real"](v * _turns(n, 1, 2, 4 * n, t))


def _dst_1(x):
    zero = _f["zeros_like"](x[..., :1])
    v = _f["fft.rfft"](_f["concat"]([zero, x, zero, -_f["flip"](x, axis=-1)], axis=-1))
    return -_f["imag"](v[..., 1:-1])


def _dst_2(x):
    return _f["flip"](_dct_2(x * _alternating(x.shape[-1]).astype(x.dtype)), axis=-1)


def _dst_3(x):
    return _dct_3(_f["flip"](x, axis=-1)) * _alternating(x.shape[-1]).astype(x.dtype)


def _dst_4(x):
    return _dct_4(_f["flip"](x, axis=-1)) * _alternating(x.shape[-1]).astype(x.dtype)


# For each type: the transform, the type of its inverse, how many more points than n its period has by 2 (n + more), and
# the elements that orthogonality divides by sqrt(2) before (and after) it.
_COSINES = {1: (_dct_1, 1, -1, (0, -1), (0, -1)), 2: (_dct_2, 3, 0, (), (0,)), 3: (_dct_3, 2, 0, (0,), ()),
            4: (_dct_4, 4, 0, (), ())}  # fmt: skip
_SINES = {1: (_dst_1, 1, 1, (), ()), 2: (_dst_2, 3, 0, (), (-1,)), 3: (_dst_3, 2, 0, (-1,), ()),
          4: (_dst_4, 4, 0, (), ())}  # fmt: skip


def _weighted(x, places, factor):
    """x with the elements at these places of the last axis times a factor."""
    if not places:
        return x
    at = _f["arange"](x.shape[-1])
    chosen = at < 0
    for i in places:
        chosen = chosen | (at == i % x.shape[-1])
    return _f["where"](chosen, x * factor, x)


def _transform(who, table, x, kind, n, axis, norm, orthogonalize, inverse):
    norm = "backward" if norm is None else norm
    if kind not in table:
        raise ValueError(f"[fft.{who}] type is 1, 2, 3 or 4, not {kind!r}")
    if norm not in _NORMS:
        raise ValueError(f'[fft.{who}] norm is "backward", "ortho" or "forward", not {norm!r}')
    x = _nvm.asarray(x)
    if x.dtype.kind == "c":
        parts = (_f[p](x) for p in ("real", "imag"))
        return from_parts(*(_transform(who, table, p, kind, n, axis, norm, orthogonalize, inverse) for p in parts))
    if x.dtype.kind != "f":
        x = x.astype(_nvm.default_dtype())
    elif x.dtype.itemsize < 4:
        x = x.astype(_nvm.float32)
    axis = axis_of(f"fft.{who}", axis, x.ndim)
    n = x.shape[axis] if n is None else n
    if n < 1:
        raise ValueError(f"[fft.{who}] the number of points is {n}; it must be 1 or more")
    f, _, more, before, after = table[table[kind][1]] if inverse else table[kind]
    x = resized(_f["moveaxis"](x, axis, -1), n)
    if (norm == "ortho") if orthogonalize is None else orthogonalize:
        y = _weighted(f(_weighted(x, before, math.sqrt(2))), after, math.sqrt(0.5))
    else:
        y = f(x)
    period = 2 * (n + more)
    if norm == "ortho":
        y = y * (1 / math.sqrt(period))
    elif (norm == "backward") == inverse:
        y = y * (1 / period)
    return _f["moveaxis"](y, -1, axis)


def dct(x, /, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Discrete cosine transform of type 1 to 4 along an axis, as scipy.fft.dct.

    >>> import nvm
    >>> nvm.fft.dct(nvm.asarray([1.0, 1.0]))
    array([4., 0.])
    """
    return _transform("dct", _COSINES, x, type, n, axis, norm, orthogonalize, False)


def idct(x, /, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Inverse of dct, as scipy.fft.idct.

    >>> import nvm
    >>> nvm.fft.idct(nvm.asarray([4.0, 0.0]))
    array([1., 1.])
    """
    return _transform("idct", _COSINES, x, type, n, axis, norm, orthogonalize, True)


def dst(x, /, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Discrete sine transform of type 1 to 4 along an axis, as scipy.fft.dst.

    >>> import nvm
    >>> nvm.fft.dst(nvm.asarray([1.0, 1.0]), type=1)
    array([ 3.46410162, -0.        ])
    """
    return _transform("dst", _SINES, x, type, n, axis, norm, orthogonalize, False)


def idst(x, /, type=2, n=None, axis=-1, norm=None, *, orthogonalize=None):
    """Inverse of dst, as scipy.fft.idst.

    >>> import nvm
    >>> nvm.fft.idst(nvm.fft.dst(nvm.asarray([1.0, 2.0])))
    array([1., 2.])
    """
    return _transform("idst", _SINES, x, type, n, axis, norm, orthogonalize, True)
