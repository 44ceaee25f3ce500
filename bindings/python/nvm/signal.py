"""Short-time Fourier transforms, convolution and the analytic signal, with SciPy's arguments: compositions of Fourier
transforms, in which frames, padding and crops are index maps."""

import math

from . import _nvm
from ._cosines import resized
from ._creation import axis_of

_f = _nvm.functions
__all__ = ["fftconvolve", "hilbert", "istft", "oaconvolve", "stft"]


# ---- convolution
def _good_length(n):
    """The least length of n or more whose primes are at most 7."""
    best = 1 << max(n - 1, 0).bit_length()
    for factor in (3, 5, 7, 9, 15, 21, 25, 27, 35, 45, 49, 63, 75, 81):
        best = min(best, factor << max(-(-n // factor) - 1, 0).bit_length())
    return best


def _operands(who, in1, in2, mode, axes):
    """The arrays, which "valid" may exchange, and the axes along which both have several elements."""
    a, b = _nvm.asarray(in1), _nvm.asarray(in2)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f'[{who}] mode is "full", "same" or "valid", not {mode!r}')
    if a.ndim != b.ndim:
        raise ValueError(f"[{who}] both arrays must have the same number of dimensions, got {a.ndim} and {b.ndim}")
    given = range(a.ndim) if axes is None else [axes] if hasattr(axes, "__index__") else axes
    axes = [axis_of(who, d, a.ndim) for d in given]
    if len(set(axes)) < len(axes) or (a.ndim and not axes):
        raise ValueError(f"[{who}] axes must be different, and one at least: {axes}")
    for d in range(a.ndim):
        if d not in axes and a.shape[d] != b.shape[d] and 1 not in (a.shape[d], b.shape[d]):
            raise ValueError(f"[{who}] shapes {a.shape} and {b.shape} differ in axis {d}, which is not convolved")
    axes = [d for d in axes if a.shape[d] != 1 and b.shape[d] != 1]
    if 0 in a.shape or 0 in b.shape:
        raise ValueError(f"[{who}] an array of shape {a.shape if 0 in a.shape else b.shape} has no elements")
    if mode == "valid":
        first = all(a.shape[d] >= b.shape[d] for d in axes)
        if not first and not all(b.shape[d] >= a.shape[d] for d in axes):
            raise ValueError(f'[{who}] "valid" needs one array that is at least as large in all axes')
        if not first:
            a, b = b, a
    return a, b, axes


def _product(a, b, lengths, axes):
    """The circular convolution of these lengths."""
    if "c" in (a.dtype.kind, b.dtype.kind):
        forward, back = _f["fft.fftn"], _f["fft.ifftn"]
    else:
        forward, back = _f["fft.rfftn"], _f["fft.irfftn"]
    fa, fb = (forward(x, s=lengths, axes=axes) for x in (a, b))
    return back(fa * fb, s=lengths, axes=axes)


def _cropped(y, a, b, mode, axes):
    """The part of a full convolution that the mode asks for."""
    window = [slice(None)] * y.ndim
    for d in range(y.ndim) if mode == "same" else axes if mode == "valid" else ():
        n = a.shape[d] if mode == "same" else a.shape[d] - b.shape[d] + 1
        start = (y.shape[d] - n) // 2
        window[d] = slice(start, start + n)
    return y[tuple(window)]


def fftconvolve(in1, in2, mode="full", axes=None):
    """The convolution of two arrays by Fourier transforms, as scipy.signal.fftconvolve.

    in1, in2: arrays of as many dimensions; real or complex numbers.
    mode: "full", "same" (the shape of in1, from the middle) or "valid" (what needs no zeros around the arrays).
    axes: the axes along which they are convolved, an int or a sequence; None for all. Others broadcast.
    Returns an array of floats, complex if one of the two is.
    Raises ValueError for other modes, for numbers of dimensions or extents that do not fit, for arrays without
    elements, and for "valid" where neither array is the larger in all axes.

    >>> import nvm
    >>> nvm.round(nvm.signal.fftconvolve(nvm.asarray([1.0, 2.0]), nvm.asarray([1.0, 1.0])), 6)
    array([1., 3., 2.])
    """
    a, b, axes = _operands("fftconvolve", in1, in2, mode, axes)
    if not axes:
        return _cropped(a * b, a, b, mode, axes)
    full = [a.shape[d] + b.shape[d] - 1 for d in axes]
    y = _product(a, b, [_good_length(n) for n in full], axes)
    window = [slice(None)] * y.ndim
    for d, n in zip(axes, full):
        window[d] = slice(0, n)
    return _cropped(y[tuple(window)], a, b, mode, axes)


def oaconvolve(in1, in2, mode="full", axes=None):
    """The same convolution; where one array is much longer along the one axis that is convolved, in blocks whose
    results overlap and are added, as scipy.signal.oaconvolve.

    in1, in2: arrays of as many dimensions; real or complex numbers.
    mode: "full", "same" (the shape of in1, from the middle) or "valid" (what needs no zeros around the arrays).
    axes: the axes along which they are convolved, an int or a sequence; None for all. Others broadcast.
    Returns an array of floats, complex if one of the two is.
    Raises ValueError for other modes, for numbers of dimensions or extents that do not fit, for arrays without
    elements, and for "valid" where neither array is the larger in all axes.

    >>> import nvm
    >>> nvm.round(nvm.signal.oaconvolve(nvm.asarray([1.0, 2.0]), nvm.asarray([1.0, 1.0])), 6)
    array([1., 3., 2.])
    """
    a, b, axes = _operands("oaconvolve", in1, in2, mode, axes)
    long, short = (a, b) if not axes or a.shape[axes[0]] >= b.shape[axes[0]] else (b, a)
    if len(axes) != 1 or long.shape[axes[0]] < 8 * short.shape[axes[0]]:
        return fftconvolve(a, b, mode, axes) if axes else _cropped(a * b, a, b, mode, axes)
    axis = axes[0]
    y = _f["moveaxis"](_by_blocks(_f["moveaxis"](long, axis, -1), _f["moveaxis"](short, axis, -1)), -1, axis)
    return _cropped(y, a, b, mode, axes)


def _by_blocks(x, h):
    """The full convolution along the last axis."""
    n, m = x.shape[-1], h.shape[-1]
    length = _good_length(4 * m)
    step = length - m + 1
    blocks = -(-n // step)
    x = resized(x, blocks * step).reshape(*x.shape[:-1], blocks, step)
    y = _product(x, h[..., None, :], [length], [-1])
    return overlapped(y, step)[..., : n + m - 1]


def overlapped(frames, hop):
    """Adds up frames (..., frames, n) that begin at multiples of the hop: (..., (frames + ceil(n / hop) - 1) * hop)."""
    count, n = frames.shape[-2:]
    parts = -(-n // hop)
    pieces = resized(frames, parts * hop).reshape(*frames.shape[:-1], parts, hop)
    total = 0
    for r in range(parts):
        shifted = _f["pad"](pieces[..., r, :], (0, 0) * (frames.ndim - 2) + (r, parts - 1 - r, 0, 0))
        total = total + shifted
    return total.reshape(*frames.shape[:-2], (count + parts - 1) * hop)


# ---- short-time transforms
def _cosines_of(*terms):
    def window(n):
        at = _f["arange"](n, dtype=_nvm.float64) * (2 * math.pi / n)
        return sum(c * _f["cos"](k * at) for k, c in enumerate(terms[1:], 1)) + terms[0]

    return window


_WINDOWS = {  # periodic, as SciPy's for transforms
    "boxcar": lambda n: _f["ones"](n, dtype=_nvm.float64),
    "hann": _cosines_of(0.5, -0.5),
    "hamming": _cosines_of(0.54, -0.46),
    "blackman": _cosines_of(0.42, -0.5, 0.08),
}


def _window_of(who, window, n, dtype):
    if isinstance(window, str):
        if window not in _WINDOWS:
            raise ValueError(
                f"[{who}] there is no window {window!r}; there are {', '.join(sorted(_WINDOWS))}, or an array"
            )
        return _WINDOWS[window](n).astype(dtype)
    window = _nvm.asarray(window)
    if window.shape != (n,):
        raise ValueError(f"[{who}] the window has shape {window.shape}, and segments have {n} elements")
    return window.astype(dtype)


def _lengths(who, nperseg, noverlap, nfft):
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    nfft = nperseg if nfft is None else int(nfft)
    if nperseg < 1 or not 0 <= noverlap < nperseg or nfft < nperseg:
        raise ValueError(
            f"[{who}] nperseg {nperseg}, noverlap {noverlap}, nfft {nfft}: it must be 0 <= noverlap < nperseg <= nfft"
        )
    return nperseg - noverlap, nfft


def _segment(window, nperseg, default):
    if nperseg is not None:
        return int(nperseg)
    return default if isinstance(window, str) else _nvm.asarray(window).shape[0]


def _scale(who, window, scaling, fs):
    """By what a transform is multiplied."""
    if scaling == "spectrum":
        return 1 / _f["sum"](window)
    if scaling == "psd":
        return 1 / _f["sqrt"](fs * _f["sum"](window * window))
    raise ValueError(f'[{who}] scaling is "spectrum" or "psd", not {scaling!r}')


def framed(x, n, hop):
    """The segments of n elements of the last axis, `hop` apart: (..., segments, n)."""
    count, parts = (x.shape[-1] - n) // hop + 1, -(-n // hop)
    pieces = resized(x, (count + parts - 1) * hop).reshape(*x.shape[:-1], count + parts - 1, hop)
    return _f["concat"]([pieces[..., r : r + count, :] for r in range(parts)], axis=-1)[..., :n]


def _real_dtype(x):
    return _nvm.float64 if x.dtype in (_nvm.float64, _nvm.complex128) else _nvm.float32


def stft(
    x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, *, return_onesided=True, boundary="zeros",
    padded=True, axis=-1, scaling="spectrum",
):  # fmt: skip
    """Short-time Fourier transform, as scipy.signal.stft with detrend=False: frequencies, times, and the transforms of
    windowed segments, whose frequency takes the place of the axis and whose time comes last.

    >>> import nvm
    >>> f, t, z = nvm.signal.stft(nvm.ones(64), nperseg=16)
    >>> z.shape
    (9, 9)
    """
    x = _nvm.asarray(x)
    if x.dtype.kind in "biu":
        x = x.astype(_nvm.default_dtype())
    axis = axis_of("stft", axis, x.ndim)
    nperseg = min(_segment(window, nperseg, 256), x.shape[axis])
    hop, nfft = _lengths("stft", nperseg, noverlap, nfft)
    if boundary not in ("zeros", None):
        raise ValueError(f'[stft] boundary is "zeros" or None, not {boundary!r}')
    dtype = _real_dtype(x)
    w = _window_of("stft", window, nperseg, dtype)
    x = _f["moveaxis"](x, axis, -1)
    edge = nperseg // 2 if boundary else 0
    n = x.shape[-1] + 2 * edge
    more = -(n - nperseg) % hop if padded else 0
    x = _f["pad"](x, (0, 0) * (x.ndim - 1) + (edge, edge + more))
    onesided = return_onesided and x.dtype.kind != "c"
    segments = framed(x, nperseg, hop) * w * _scale("stft", w, scaling, fs)
    z = _f["fft.rfft" if onesided else "fft.fft"](segments, n=nfft)
    f = _f["fft.rfftfreq" if onesided else "fft.fftfreq"](nfft, d=1 / fs)
    t = (_f["arange"](z.shape[-2], dtype=f.dtype) * hop + (0 if boundary else nperseg / 2)) / fs
    return f, t, _f["moveaxis"](z, -1, axis)


def istft(
    Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True, boundary=True,
    time_axis=-1, freq_axis=-2, scaling="spectrum",
):  # fmt: skip
    """Inverse of stft, as scipy.signal.istft: times, and the signal whose windowed segments these are the transforms
    of, by least squares.

    >>> import nvm
    >>> _, _, z = nvm.signal.stft(nvm.ones(64), nperseg=16)
    >>> _, x = nvm.signal.istft(z, nperseg=16)
    >>> x.shape
    (64,)
    """
    z = _nvm.asarray(Zxx)
    time, frequency = (axis_of("istft", d, z.ndim) for d in (time_axis, freq_axis))
    if time == frequency:
        raise ValueError("[istft] time and frequency are different axes")
    rows = z.shape[frequency]
    points = 2 * (rows - 1) if input_onesided else rows
    nperseg = _segment(window, nperseg, points)
    if nfft is None and input_onesided and nperseg == points + 1:
        nfft = nperseg  # an odd number of points
    hop, nfft = _lengths("istft", nperseg, noverlap, points if nfft is None else nfft)
    w = _window_of("istft", window, nperseg, _real_dtype(z))
    z = _f["moveaxis"](z, (time, frequency), (-2, -1))
    segments = _f["fft.irfft" if input_onesided else "fft.ifft"](z, n=nfft)[..., :nperseg]
    count = segments.shape[-2]
    n = (count - 1) * hop + nperseg
    x = overlapped(segments * w / _scale("istft", w, scaling, fs), hop)[..., :n]
    weight = overlapped(_f["broadcast_to"](w * w, (count, nperseg)), hop)[:n]
    edge = nperseg // 2 if boundary else 0
    x, weight = x[..., edge : n - edge], weight[edge : n - edge]
    x = x / _f["where"](weight > 1e-10, weight, 1)
    t = _f["arange"](x.shape[-1], dtype=_real_dtype(z)) / fs
    return t, _f["moveaxis"](x, -1, time - (frequency < time))


# ---- the analytic signal
def hilbert(x, N=None, axis=-1):
    """The analytic signal of real numbers, as scipy.signal.hilbert: its imaginary part is the Hilbert transform.

    x: an array of real numbers with at least one dimension. N: the number of points of the transform; None: as x has.
    Returns an array of complex numbers, of x's shape with N along the axis. Raises ValueError for complex numbers.

    >>> import nvm
    >>> nvm.signal.hilbert(nvm.asarray([1.0, 0.0, -1.0, 0.0]))
    array([ 1.+0.j,  0.+1.j, -1.+0.j,  0.-1.j])
    """
    x = _nvm.asarray(x)
    if x.dtype.kind == "c":
        raise ValueError("[hilbert] x must be real")
    n = x.shape[axis_of("hilbert", axis, x.ndim)] if N is None else N
    spectrum = _f["moveaxis"](_f["fft.fft"](x, n=N, axis=axis), axis, -1)
    k = _f["arange"](n)
    twice = _f["where"]((k == 0) | (2 * k == n), 1, _f["where"](2 * k < n, 2, 0)).astype(_real_dtype(spectrum))
    return _f["moveaxis"](_f["fft.ifft"](spectrum * twice), -1, axis)
