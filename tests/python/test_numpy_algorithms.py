"""Whole algorithms as NumPy's users write them, under NumPy and under nvm.numpy."""

import numpy
import pytest

import nvm
import nvm.numpy as nvp
from numpy_cases import compare

_RNG = numpy.random.default_rng(3)
_POINTS = numpy.round(_RNG.standard_normal((60, 2)) + numpy.repeat([[0, 0], [6, 0], [0, 6]], 20, axis=0), 3)
_SIGNAL = numpy.round(numpy.sin(numpy.arange(128) / 5) + 0.1 * _RNG.standard_normal(128), 3)
_IMAGE = (_RNG.random((24, 31)) * 256).astype(numpy.uint8)
_LABELS = _RNG.integers(0, 4, 200)
_VALUES = numpy.round(_RNG.standard_normal(200), 3)


def life(np):
    a = np.zeros((8, 8), dtype=int)
    a[1, 2] = a[2, 3] = a[3, 1] = a[3, 2] = a[3, 3] = 1
    for _ in range(6):
        n = sum(np.roll(np.roll(a, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        a = ((n == 3) | ((a == 1) & (n == 2))).astype(int)
    return a, a.sum()


def sieve(np):
    mark = np.ones(200, dtype=bool)
    mark[:2] = False
    for i in range(2, int(np.sqrt(200)) + 1):
        if mark[i]:
            mark[i * i :: i] = False
    return np.flatnonzero(mark)


def k_means(np):
    x = np.array(_POINTS)
    centres = x[[0, 20, 40]].copy()
    for _ in range(5):
        distance = np.linalg.norm(x[:, None, :] - centres[None], axis=-1)
        label = np.argmin(distance, axis=1)
        for k in range(3):
            centres[k] = x[label == k].mean(axis=0)
    return centres, label, np.bincount(label, minlength=3)


def principal_components(np):
    x = np.array(_POINTS)
    x = x - x.mean(0)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    variance = s**2 / (len(x) - 1)
    return variance, variance / variance.sum(), np.abs(vt), np.abs(x @ vt.T)


def softmax_loss(np):
    logits = np.array(_POINTS) @ np.array([[1.0, -1, 0.5], [0.2, 0.3, -0.7]])
    target = np.arange(60) % 3
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_p[np.arange(60), target].mean(), np.exp(log_p).argmax(-1)


def one_hot(np):
    y = np.array(_LABELS[:10])
    hot = np.eye(4, dtype=np.float32)[y]
    other = np.zeros((10, 4), dtype=np.float32)
    other[np.arange(10), y] = 1
    return hot, other, np.array_equal(hot, other), (hot == other).all()


def groups(np):
    key, value = np.array(_LABELS), np.array(_VALUES)
    names, at, count = np.unique(key, return_inverse=True, return_counts=True)
    total = np.bincount(at, weights=value)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    return names, count, total / count, np.add.reduceat(value[order], starts), np.maximum.reduceat(value[order], starts)


def run_lengths(np):
    x = np.array([1, 1, 2, 2, 2, 0, 0, 1])
    ends = np.append(np.where(x[1:] != x[:-1])[0], len(x) - 1)
    return x[ends], np.diff(np.append(-1, ends))


def equalized(np):
    image = np.array(_IMAGE)
    counts, _ = np.histogram(image.flatten(), 256, [0, 256])
    c = counts.cumsum()
    table = ((c - c.min()) * 255 / (c.max() - c.min())).astype(np.uint8)
    return table[image], table.dtype, image.mean(), image.std()


def gaussian_filter(np):
    x = np.linspace(-2, 2, 5)
    kernel = np.exp(-(x**2) / 2)
    kernel /= kernel.sum()
    image = np.array(_IMAGE).astype(float)
    rows = np.apply_along_axis(lambda r: np.convolve(r, kernel, mode="same"), 1, image)
    padded = np.pad(image, 2, mode="edge")
    direct = sum(kernel[i] * padded[2:-2, i : i + image.shape[1]] for i in range(5))
    return rows, direct, np.clip(rows, 0, 255).astype(np.uint8)


def block_means(np):
    image = np.array(_IMAGE)[:24, :30]
    return image.reshape(12, 2, 15, 2).mean(axis=(1, 3)), image.reshape(12, 2, 15, 2).max(axis=(1, 3)), image[::2, ::3]


def low_pass(np):
    x = np.array(_SIGNAL)
    spectrum = np.fft.rfft(x)
    frequency = np.fft.rfftfreq(x.size, d=0.1)
    spectrum[frequency > 1] = 0
    return np.fft.irfft(spectrum, n=x.size), np.abs(spectrum).argmax(), frequency[np.argmax(np.abs(spectrum))]


def moving_average(np):
    x = np.array(_SIGNAL)
    c = np.cumsum(np.insert(x, 0, 0.0))
    return (c[5:] - c[:-5]) / 5, np.convolve(x, np.ones(5) / 5, "valid")


def autocorrelation(np):
    x = np.array(_SIGNAL) - np.mean(_SIGNAL)
    r = np.correlate(x, x, mode="full")[x.size - 1 :]
    return r / r[0], np.argmax(r[10:]) + 10


def peaks(np):
    x = np.array(_SIGNAL)
    at = np.where((x[1:-1] > x[:-2]) & (x[1:-1] > x[2:]))[0] + 1
    return at, x[at], at[x[at] > 0.9].tolist()


def zero_crossings(np):
    x = np.array(_SIGNAL)
    return np.where(np.diff(np.signbit(x)))[0], np.nonzero(np.diff(np.sign(x)))[0]


def regression(np):
    x, y = np.array(_VALUES[:50]), np.array(_VALUES[50:100])
    a = np.column_stack([np.ones_like(x), x, x**2])
    beta, residual, rank, _ = np.linalg.lstsq(a, y, rcond=None)
    normal = np.linalg.solve(a.T @ a, a.T @ y)
    r2 = 1 - ((y - a @ beta) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return beta, normal, residual, int(rank), r2, np.corrcoef(x, y), np.polyfit(x, y, 2)[::-1]


def gradient_descent(np):
    x = np.array(_POINTS)
    y = (np.arange(60) >= 20).astype(float)
    w, b = np.zeros(2), 0.0
    for _ in range(30):
        p = 1 / (1 + np.exp(-(x @ w + b)))
        w -= 0.1 * x.T @ (p - y) / len(y)
        b -= 0.1 * np.mean(p - y)
    return w, b, ((p > 0.5) == y).mean()


def runge_kutta(np):
    def f(t, y):
        return np.array([y[1], -y[0]])

    y, t, h, path = np.array([1.0, 0.0]), 0.0, 0.1, []
    for _ in range(20):
        a = f(t, y)
        b = f(t + h / 2, y + h / 2 * a)
        c = f(t + h / 2, y + h / 2 * b)
        d = f(t + h, y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        t += h
        path.append(y)
    return np.array(path), np.vstack(path).shape


def heat(np):
    u = np.zeros(50)
    u[20:30] = 1
    for _ in range(40):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u, u.sum(), np.trapezoid(u, dx=0.1)


def jacobi(np):
    g = np.zeros((10, 10))
    g[0, :] = 1.0
    for _ in range(30):
        g[1:-1, 1:-1] = 0.25 * (g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:])
    return g


def mandelbrot(np):
    y, x = np.ogrid[-1.4:1.4:20j, -2:0.8:24j]
    c = x + y * 1j
    z, times = np.zeros_like(c), np.full(c.shape, 15)
    for i in range(15):
        z = np.where(np.abs(z) < 2, z**2 + c, z)
        gone = (np.abs(z) >= 2) & (times == 15)
        times[gone] = i
    return times


def power_method(np):
    a = np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]])
    v = np.ones(3)
    for _ in range(60):
        v = a @ v
        v /= np.linalg.norm(v)
    return v @ a @ v, np.linalg.eigvalsh(a)[-1], np.abs(v)


def gram_schmidt(np):
    a = np.array(_POINTS[:4] @ numpy.ones((2, 3)) + numpy.arange(12).reshape(4, 3) ** 2)
    q = np.zeros_like(a)
    for j in range(3):
        v = a[:, j].copy()
        for k in range(j):
            v -= np.dot(q[:, k], a[:, j]) * q[:, k]
        q[:, j] = v / np.linalg.norm(v)
    return np.abs(q), np.allclose(q.T @ q, np.eye(3))


def distances(np):
    x = np.array(_POINTS[:12])
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))
    squares = (x**2).sum(1)
    fast = np.sqrt(np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0))
    np.fill_diagonal(d, np.inf)
    np.fill_diagonal(fast, np.inf)
    return d, fast, d.argmin(axis=1), np.argsort(d, axis=1)[:, :3], d[np.triu_indices(12, 1)].mean()


def ranks(np):
    x = np.array(_VALUES[:30])
    r = np.empty(30, dtype=int)
    r[np.argsort(x)] = np.arange(30)
    return r, np.argsort(np.argsort(x)), np.searchsorted(np.sort(x), x)


def outliers(np):
    x = np.array(_VALUES)
    q1, q3 = np.percentile(x, [25, 75])
    keep = (x >= q1 - 1.5 * (q3 - q1)) & (x <= q3 + 1.5 * (q3 - q1))
    z = (x - x.mean()) / x.std(ddof=1)
    return keep.sum(), x[keep].mean(), np.abs(z).max(), np.median(np.abs(x - np.median(x)))


def missing_values(np):
    x = np.array(_VALUES[:20]).reshape(4, 5)
    x[1, 2] = x[3, 0] = np.nan
    mean = np.nanmean(x, axis=0)
    filled = np.where(np.isnan(x), mean, x)
    at = np.argwhere(np.isnan(x))
    return filled, at, np.isnan(x).sum(axis=0), x[~np.isnan(x).any(axis=1)]


def intervals(np):
    x = np.array([0.5, 3, 7, 10, 2.5])
    bins = np.array([0, 2.5, 5, 10])
    at = np.digitize(x, bins)
    return at, np.histogram(x, bins)[0], np.bincount(at, minlength=5), bins[np.clip(at, 0, 3)]


def calendar(np):
    day = np.arange(1, 31)
    week = np.append(day, np.zeros(5, int)).reshape(5, 7)
    return week, week.sum(axis=1), week[week % 2 == 0].size


def triangle(np):
    rows = [np.array([1])]
    for _ in range(7):
        rows.append(np.convolve(rows[-1], [1, 1]))
    return rows[-1], [int(r.sum()) for r in rows]


def fibonacci(np):
    m, out = np.array([[1, 1], [1, 0]]), []
    for n in range(1, 12):
        out.append(int(np.linalg.matrix_power(m, n)[0, 1]))
    return out, np.array(out).dtype


def magic_square(np):
    n = 5
    s = np.zeros((n, n), dtype=int)
    i, j = 0, n // 2
    for k in range(1, n * n + 1):
        s[i, j] = k
        a, b = (i - 1) % n, (j + 1) % n
        if s[a, b]:
            a, b = (i + 1) % n, j
        i, j = a, b
    return s, s.sum(0), s.sum(1), s.trace(), np.fliplr(s).trace()


def shortest_paths(np):
    d = np.full((5, 5), np.inf)
    np.fill_diagonal(d, 0)
    for a, b, w in [(0, 1, 2), (1, 2, 3), (0, 3, 7), (2, 3, 1), (3, 4, 2)]:
        d[a, b] = d[b, a] = w
    for k in range(5):
        d = np.minimum(d, d[:, k : k + 1] + d[k : k + 1, :])
    return d, np.isinf(d).any()


def page_rank(np):
    links = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0]], float)
    p = links / links.sum(axis=1, keepdims=True)
    r = np.full(4, 0.25)
    for _ in range(50):
        r = 0.15 / 4 + 0.85 * (p.T @ r)
    return r, r.sum(), np.argsort(-r)


def attention(np):
    q, k, v = (np.array(_VALUES[i * 24 : i * 24 + 24].reshape(2, 3, 4)) for i in range(3))
    score = np.einsum("bqd,bkd->bqk", q, k) / np.sqrt(q.shape[-1])
    score = np.where(np.tril(np.ones((3, 3), dtype=bool)), score, -np.inf)
    w = np.exp(score - score.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return np.einsum("bqk,bkd->bqd", w, v), w.sum(-1), np.matmul(w, v)


def rotations(np):
    angle = np.deg2rad(30)
    r = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    p = np.array(_POINTS[:5])
    return p @ r.T, np.linalg.det(r), np.allclose(r @ r.T, np.eye(2)), np.rad2deg(np.arctan2(r[1, 0], r[0, 0]))


def bits(np):
    x = np.array([5, 200, 17], dtype=np.uint8)
    b = np.unpackbits(x[:, None], axis=1)
    return b, np.packbits(b, axis=1)[:, 0], (x[:, None] >> np.arange(8, dtype=np.uint8)) & 1, np.bitwise_xor.reduce(x)


def hashes(np):
    h = np.uint32(2166136261)
    for c in b"nvm":
        h = np.uint32((int(h) ^ c) * 16777619 % 2**32)
    x = np.arange(5, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return h, x ^ (x >> np.uint64(29)), x.dtype


def integer_overflow(np):
    a = np.array([100, 127, -128], dtype=np.int8)
    return a + a, a * np.int8(2), -a, np.abs(a), a // np.int8(-1), np.cumsum(a), np.cumsum(a, dtype=np.int8)


def numerical_derivative(np):
    x = np.linspace(0, 2 * np.pi, 41)
    return np.gradient(np.sin(x), x), np.diff(np.sin(x)) / np.diff(x), np.gradient(np.sin(x), x, edge_order=2)


def newton(np):
    x = np.array([1.0, 2.0, 10.0])
    for _ in range(20):
        x = x - (x**3 - 8) / (3 * x**2)
        if np.all(np.abs(x**3 - 8) < 1e-12):
            break
    return x, np.cbrt(8.0), np.roots([1, 0, 0, -8])[np.abs(np.imag(np.roots([1, 0, 0, -8]))) < 1e-9].real


def simpson(np):
    x = np.linspace(0, np.pi, 101)
    w = np.ones(101)
    w[1:-1:2], w[2:-1:2] = 4, 2
    return (w * np.sin(x)).sum() * (x[1] - x[0]) / 3, np.trapezoid(np.sin(x), x)


def sparse_to_dense(np):
    row, column, value = np.array([0, 1, 1, 2]), np.array([0, 2, 2, 1]), np.array([1.0, 2, 3, 4])
    a = np.zeros((3, 3))
    np.add.at(a, (row, column), value)
    b = np.zeros((3, 3))
    b[row, column] = value
    return a, b, np.bincount(row * 3 + column, value, 9).reshape(3, 3)


def texts(np):
    lines = [f"{i:3d} {x:8.3f}" for i, x in zip(np.arange(4), np.array(_VALUES[:4]))]
    return lines, str(np.array(_VALUES[:6]).reshape(2, 3)), f"{np.mean(_VALUES):.4f}", f"{np.std(_VALUES):.2e}"


def dictionaries(np):
    names, counts = np.unique(_LABELS, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist())), max(counts), sorted(counts)[0], [int(n) for n in names]


def views(np):
    a = np.arange(24).reshape(2, 3, 4)
    b = a[:, ::2, 1:]
    b[...] = -1
    c = a.transpose(2, 0, 1)
    c[0, 0, 0] = 99
    a[a < 0] = 7
    d = a.reshape(6, 4)
    d[:, 0] += 100
    return a, b, c, d


def error_paths(np):
    seen = []
    for f in (
        lambda: np.ones(3) + np.ones(4),
        lambda: float(np.linalg.inv(np.zeros((2, 2)))[0, 0]),
        lambda: np.zeros(3)[5],
        lambda: np.concatenate([np.ones(2), np.ones((2, 2))]),
        lambda: np.reshape(np.arange(6), (4, 2)),
        lambda: int("x") + np.ones(2),
        lambda: np.array([1, 2]).max(axis=1),
        lambda: np.zeros((2, 2), dtype="nosuch"),
    ):
        try:
            f()
        except (ValueError, IndexError, TypeError) as e:
            seen.append("LinAlgError" if isinstance(e, np.linalg.LinAlgError) else isinstance(e, IndexError))
    return seen


PROGRAMS = [f for f in list(vars().values()) if getattr(f, "__module__", "") == __name__ and f.__name__[0] != "_"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_algorithms_agree(program):
    want, got = program(numpy), program(nvp)
    nvm.eval([x for x in got if type(x) is nvm.Array] if isinstance(got, tuple) else [])
    compare(got, want, program.__name__)
