"""Graphs with several reductions over different axes, large enough that a kernel which does them together is more than
a tile may have: another plan stands behind each kernel that is refused."""

import numpy as np

import nvm


def test_nearest_centres(rng):
    """Squared distances along the first axis, as the transposes of points and centres have them."""
    x, c = rng.integers(-8, 9, (524288, 16)).astype("float32"), rng.integers(-8, 9, (64, 16)).astype("float32")

    def nearest(x, c):
        d = ((x.T[:, :, None] - c.T[:, None]) ** 2).sum(axis=0)
        return nvm.argmin(d, axis=1), nvm.min(d, axis=1).sum()

    at, total = nvm.jit(nearest)(nvm.asarray(x), nvm.asarray(c))
    d = (x * x).sum(1)[:, None] - 2 * (x @ c.T) + (c * c).sum(1)
    np.testing.assert_array_equal(np.asarray(at), d.argmin(1))
    assert abs(float(total) / d.min(1).sum(dtype="float64") - 1) < 1e-6


def test_a_refused_kernel_is_no_error(rng):
    """Reductions of few numbers that are repeated often: the kernel that stores them together has too large a tile."""
    a, b = rng.random((1, 3, 1, 1), dtype="float32"), rng.random((1, 3, 1, 2), dtype="float32")
    shape = (65536, 3, 129, 2)

    def reduced(a, b):
        x = (nvm.broadcast_to(a, shape) + nvm.broadcast_to(b, shape)) ** 2
        most = nvm.max(x, axis=2, keepdims=True)
        return most, nvm.min(most, axis=3, keepdims=True), nvm.sum(x, axis=1, keepdims=True)

    x = (a + b) ** 2
    got = nvm.jit(reduced)(nvm.asarray(a), nvm.asarray(b))
    for y, want in zip(got, (x, x.min(3, keepdims=True), x.sum(1, keepdims=True))):
        assert y.shape[0] == shape[0]
        np.testing.assert_allclose(np.asarray(y[::8191]), np.broadcast_to(want, y[::8191].shape), rtol=1e-6)
