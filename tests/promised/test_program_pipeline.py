"""One jitted pipeline, and branches over the same host data that are planned together."""

import numpy as np

import nvm
import nvm as nvmath


@nvmath.jit
def complex_math_pipeline(x, y, z):
    result = nvmath.sin(x) * nvmath.cos(y) + nvmath.exp(-(z**2))
    return nvmath.sqrt(result + nvmath.log(x + 1))


def unified_compute():
    cpu_array = np.array([1.0, 2.0, 3.0, 4.0])
    return nvmath.batch_process(
        [
            lambda x: complex_math_pipeline(x, x * 2, x * 3),
            lambda x: nvmath.fft.fft(x),
            lambda x: nvmath.linalg.svd(x.reshape(-1, 1)),
        ],
        cpu_array,
    )


def pipeline(x, y, z):
    return np.sqrt(np.sin(x) * np.cos(y) + np.exp(-(z**2)) + np.log(x + 1))


def test_complex_math_pipeline():
    x, y, z = np.linspace(1, 2, 3 * 1000).reshape(3, 1000)
    np.testing.assert_allclose(np.asarray(complex_math_pipeline(x, y, z)), pipeline(x, y, z), rtol=1e-14)
    assert nvm.explain(complex_math_pipeline, x, y, z).startswith("1 kernel")


def test_unified_compute():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    with np.errstate(invalid="ignore"):
        want = pipeline(x, 2 * x, 3 * x)
    first, transform, (u, s, vh) = unified_compute()
    np.testing.assert_allclose(np.asarray(first), want, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(transform), np.fft.fft(x), atol=1e-13)
    assert [p.shape for p in (u, s, vh)] == [(4, 4), (1,), (1, 1)]
    np.testing.assert_allclose(np.asarray(u[:, :1] * s @ vh), x.reshape(-1, 1), rtol=1e-14)


def test_branches_share_what_they_have_in_common():
    x = np.linspace(0.1, 1, 1 << 16)
    before = nvm.counters()["kernels_run"]
    a, b = nvm.batch_process([lambda x: nvm.exp(nvm.sin(x)) + 1, lambda x: nvm.exp(nvm.sin(x)) * 2], x)
    kernels = nvm.counters()["kernels_run"] - before
    # one kernel with two results; on a GPU at first one for each value, sin and exp once
    assert kernels == 1 or (kernels == 4 and nvm.get_default_device() != "cpu")
    np.testing.assert_allclose(np.asarray(a), np.exp(np.sin(x)) + 1, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(b), np.exp(np.sin(x)) * 2, rtol=1e-14)
    c = nvm.jit(lambda x: nvm.batch_process([nvm.sin, nvm.cos], x)[1])(x)  # inside a trace, too
    np.testing.assert_allclose(np.asarray(c), np.cos(x), rtol=1e-14)


def test_batch_process_takes_numbers_and_numpy_arrays():
    x = np.arange(4, dtype=np.float32)
    a, b = nvm.batch_process([lambda x, s: x * s, lambda x, s: x + s], x, 0.1)
    assert a.dtype == b.dtype == nvm.float32  # a number is weak, as it is where an operator takes it
    np.testing.assert_array_equal(np.asarray(a), x * np.float32(0.1))
    with nvm.device("cpu"):
        inside = nvm.jit(lambda x: nvm.batch_process([lambda x, s: x * s], x, 0.1)[0])(x)
    np.testing.assert_array_equal(np.asarray(inside), x * np.float32(0.1))


def test_batch_process_is_told_what_is_no_function():
    import pytest

    assert nvm.batch_process([], [1.0]) == []
    with pytest.raises(TypeError, match="takes functions, not int"):
        nvm.batch_process([nvm.sin, 3], [1.0])
