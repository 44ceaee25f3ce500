"""A NumPy program in which the import alone has changed."""

import numpy
import pytest

import nvm.numpy as np


def denoise(data, threshold):
    freq = np.fft.fft2(data)
    out = np.where(np.abs(freq) > threshold, freq, 0)
    return np.fft.ifft2(out).real


def test_denoise():
    data = numpy.random.default_rng(0).random((32, 48))
    freq = numpy.fft.fft2(data)
    want = numpy.fft.ifft2(numpy.where(numpy.abs(freq) > 9.0, freq, 0)).real
    result = denoise(data, 9.0)
    assert result.dtype == np.float64 and result.shape == data.shape
    numpy.testing.assert_allclose(numpy.asarray(result), want, atol=1e-12)


def test_names():
    assert np.array([1, 2]).sum() == 3 and isinstance(np.eye(2), np.ndarray)
    assert (np.linalg, np.pi) == (__import__("nvm").linalg, numpy.pi)
    assert np.random.default_rng is __import__("nvm").random.default_rng
    with pytest.raises(AttributeError, match=r"'nvm\.numpy' has no attribute 'wheer'; nvm\.numpy\.where is spelled"):
        np.wheer
