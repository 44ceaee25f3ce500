"""Positions of a mask, over shapes, densities and layouts, against NumPy's."""

import numpy as np
import pytest

import nvm

SHAPES = [(0,), (1,), (7,), (8,), (9,), (1000,), (3, 5), (2, 3, 17), (4, 0), (5, 1, 9)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nonzero(shape):
    rng = np.random.default_rng(1)
    for density in (0, 0.02, 0.5, 1):
        x = rng.random(shape) < density
        y = nvm.asarray(x)
        wide = (2,) + shape
        for a, b in (
            (x, y),
            (x.T, y.T),
            (x[::-1], y[::-1]),
            (x[..., ::2], y[..., ::2]),
            (np.broadcast_to(x, wide), nvm.broadcast_to(y, wide)),
            (x * 3.5, y * 3.5),
        ):
            got, want = nvm.nonzero(b), np.nonzero(a)
            assert len(got) == len(want)
            for g, w in zip(got, want):
                assert g.dtype == nvm.int64 and np.array_equal(np.asarray(g), w)
            assert np.asarray(b[b != 0]).tolist() == a[a != 0].tolist()
