"""Single operations whose kernels are chosen by shape: the choice changes no bit, and leaves out what would be slow."""

import re

import numpy as np
import pytest

import nvm


@pytest.fixture
def native():
    nvm.set("tier", "1")
    yield
    nvm.set("tier", None)


@pytest.mark.parametrize(
    "f",
    [
        lambda xp, x: xp.tile(x, (2,)),
        lambda xp, x: xp.repeat(x, 3),
        lambda xp, x: (x.reshape(10, -1) * x[:10, None]).reshape(-1),
        lambda xp, x: xp.tile(x.reshape(10, -1), (2, 3)).reshape(-1),
        lambda xp, x: x.reshape(10, -1).T.reshape(-1),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_what_is_stored_flat_is_computed_over_its_own_dimensions(f, dtype):
    x = (np.arange(700) % 100).astype(dtype)
    ours = nvm.jit(lambda x: f(nvm, x))
    text = ours.lower(nvm.asarray(x)).text("kernel")
    loads = [line for line in text.splitlines() if " = load(" in line]
    assert loads and not [line for line in loads if "//" in line.split("where")[0]]
    assert np.array_equal(np.asarray(ours(nvm.asarray(x))), f(np, x))


@pytest.mark.parametrize("n", [63, 64, 65, 1000, 1024, 1025, 5003])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_one_line_is_scanned_as_each_of_many(name, dtype, n, native):
    x = np.random.default_rng(n).uniform(0.5, 1.5, (9, n))
    x = (x * 20 if np.dtype(dtype).kind in "iu" else x).astype(dtype)
    f = nvm.jit(lambda x: getattr(nvm, name)(x, axis=-1))
    many = np.asarray(f(nvm.asarray(x)))
    for i in (0, 8):
        one = np.asarray(f(nvm.asarray(x[i])))
        assert one.tobytes() == many[i].tobytes()


def test_a_line_is_scanned_between_vectors():
    """Functions before and after the scan of one line are computed as vectors."""
    f = nvm.jit(lambda x: nvm.sqrt(nvm.cumulative_sum(nvm.exp(x))))
    text = f.lower(nvm.empty((5000,), dtype=nvm.float32)).text("kernel")
    assert re.search(r'"i: .*l\d+"', text)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int16", "float32", "float64", "complex64"])
def test_rows_end_after_any_number_of_elements(dtype, native):
    """Loads and stores of the last elements of rows, of which a vector has too many."""
    rng = np.random.default_rng(5)
    joined = nvm.jit(lambda x, y: nvm.concat([x, y], axis=1))
    taken = nvm.jit(lambda x, i: x[i])
    i = np.array([3, 0, 4, 4])
    for n in range(33, 66):
        x, y = (rng.integers(0, 2 if dtype == "bool" else 100, (5, m)).astype(dtype) for m in (n, 2 * n - 31))
        assert np.array_equal(np.asarray(joined(nvm.asarray(x), nvm.asarray(y))), np.concatenate([x, y], axis=1))
        assert np.array_equal(np.asarray(taken(nvm.asarray(x), nvm.asarray(i))), x[i])
