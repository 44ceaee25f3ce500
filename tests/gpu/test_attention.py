"""Attention in one kernel on tensor cores: 16-bit operands, any lengths, masks and heads of up to 256."""

import numpy as np
import pytest

import nvm
from attention import SCORES, WAYS, expected, program

GPU = "cuda:0"


def on_gpu(rng, dtype, *shape):
    return nvm.asarray(rng.standard_normal(shape).astype("f4"), device=GPU).astype(dtype)


def as_numpy(x):
    return np.asarray(x.astype("float32"))


@pytest.mark.emulated(one_in=5)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("shape", [(2, 70, 90, 64, 64), (1, 130, 140, 256, 128), (2, 128, 256, 40, 24)])
def test_values(rng, shape, name, dtype):
    h, m, n, d, e = shape
    q, k, v = on_gpu(rng, dtype, h, m, d), on_gpu(rng, dtype, h, n, d), on_gpu(rng, dtype, h, n, e)
    extra = on_gpu(rng, dtype, h, m, n)
    want = expected(*(as_numpy(x) for x in (q, k, v)), SCORES[name], as_numpy(extra))
    for way in WAYS:
        f = program(way, SCORES[name])
        plan = f.explain(q, k, v, extra)
        assert [x["kind"] for x in plan.kernels()] == ["attention"], plan
        got = as_numpy(f(q, k, v, extra))
        np.testing.assert_allclose(got, want, rtol=2**-6, atol=2**-6 if dtype == "bfloat16" else 2**-9)


@pytest.mark.emulated
def test_groups_of_heads_and_a_mask_that_they_share(rng):
    q, k, v = (on_gpu(rng, "bfloat16", 2, 2, *rest, 32) for rest in ((3, 65), (1, 66), (1, 66)))
    mask = on_gpu(rng, "bfloat16", 65, 66)
    f = program("softmax", SCORES["mask"])
    want = expected(*(as_numpy(x) for x in (q, k, v)), SCORES["mask"], as_numpy(mask))
    assert [x["kind"] for x in f.explain(q, k, v, mask).kernels()] == ["attention"]
    np.testing.assert_allclose(as_numpy(f(q, k, v, mask)), want, rtol=2**-6, atol=2**-6)


@pytest.mark.emulated
def test_tiles_of_more_queries_where_there_are_many_blocks(rng):
    q, k, v = (on_gpu(rng, "bfloat16", 140, n, 16) for n in (33, 20, 20))
    f, none = program("softmax", SCORES["causal"]), on_gpu(rng, "bfloat16", 1)
    want = expected(*(as_numpy(x) for x in (q, k, v)), SCORES["causal"], 0)
    assert [x["kind"] for x in f.explain(q, k, v, none).kernels()] == ["attention"]
    np.testing.assert_allclose(as_numpy(f(q, k, v, none)), want, rtol=2**-6, atol=2**-6)
