"""Distributions by rejection have the bits of the CPU on a GPU, fused with what uses them."""

import numpy as np
import pytest

import nvm
from nvm.random import default_rng


@pytest.mark.emulated
def test_bits_are_those_of_the_cpu(device):
    def draw():
        g = default_rng(6)
        means = np.tile([0.0, 0.5, 9.0, 11.0, 1e4, 1e12], 50)
        floats = nvm.exp(-g.gamma(0.7, 2.0, 300)) + g.beta(2.0, 0.3, 300)
        return floats + g.poisson(means) + 3 * g.binomial(1000, np.linspace(0, 1, 300))

    want = np.asarray(draw())
    with nvm.device(device):
        got = draw()
    assert str(got.device) == device
    assert np.array_equal(np.asarray(got.to_device("cpu")), want)
