"""fn.lower(...): texts of each stage, the plan, and compilation ahead of a call; nothing is run by it."""

import numpy as np
import pytest

import nvm


def softmax(x, scale=1.0):
    return nvm.softmax(x * scale, axis=1)


@pytest.fixture
def planned():
    nvm.set("tier", "planned")
    yield
    nvm.set("tier", None)


def test_the_texts_of_the_stages_follow_each_other():
    x = nvm.empty((64, 300), dtype=nvm.float32)
    low = nvm.jit(lambda x: nvm.sort(softmax(x) + 1, axis=1) * 2).lower(x)
    collected, graph, plan, kernels = (low.text(s) for s in ("collect", "graph", "plan", "kernel"))
    assert low.text() == graph and not x.ready()
    assert "red max" in graph and "@sort" in graph and "f32[64, 300]" in graph and "leaf 0 " in collected
    shown = low.explain()
    assert shown == low._fn.explain(x) and type(shown).__name__ == "Plan"
    steps = [line for line in plan.splitlines() if line.startswith("step ")]
    assert len(steps) == len(shown.kernels()) == kernels.count("schedule cpu {") > 1
    assert all(line in plan for line in kernels.splitlines())


def test_a_stage_that_is_none():
    low = nvm.jit(softmax).lower(nvm.ones((3, 4)))
    with pytest.raises(ValueError, match=r"\[lower\] there is no stage 'hlo'; stages are collect, graph, plan, kernel"):
        low.text("hlo")
    with pytest.raises(ValueError, match=r"\[traced_text\] there is no stage 'hlo'"):
        low._fn._text("hlo", (nvm.ones((3, 4)),), {})


def test_compiling_leaves_nothing_for_the_first_call(planned):
    x = nvm.asarray(np.random.default_rng(1).random((67, 131)))
    f = nvm.jit(lambda x: nvm.tanh(softmax(x, 1.25)) - 0.375)
    before = nvm.counters()
    compiled = f.lower(x).compile()
    after = nvm.counters()
    assert after["kernels_run"] == before["kernels_run"] and after["programs_planned"] == before["programs_planned"] + 1
    got = compiled(x)
    end = nvm.counters()
    assert end["programs_planned"] == after["programs_planned"]
    assert end["kernels_compiled"] == after["kernels_compiled"]
    assert end["kernels_run"] == after["kernels_run"] + 1
    np.testing.assert_array_equal(np.asarray(got), np.asarray(f.__wrapped__(x)))


def test_what_was_compiled_takes_its_signature_alone():
    x = nvm.ones((3, 4), dtype=nvm.float32)
    f = nvm.jit(softmax, static_argnames="scale")
    compiled = f.lower(x, scale=2).compile()
    assert compiled(nvm.ones((3, 4), dtype=nvm.float32), scale=2).shape == (3, 4)
    traced = f.cache_size()
    for args, kw in (
        ((nvm.ones((3, 5), dtype=nvm.float32),), {"scale": 2}),
        ((nvm.ones((3, 4)),), {"scale": 2}),
        ((x,), {"scale": 3}),
        ((x,), {}),
        (([x],), {"scale": 2}),
    ):
        with pytest.raises(TypeError, match=r"\[lower\] the function was compiled for other arguments"):
            compiled(*args, **kw)
    assert f.cache_size() == traced


def test_nothing_is_written_drawn_or_given_up():
    rng = nvm.random.default_rng(5)

    def writes(x, y):
        x[0] = 7
        return x + y + rng.random(3)

    x, y = nvm.zeros(3), nvm.ones(3)
    f = nvm.jit(writes, donate_argnums=1)
    compiled = f.lower(x, y).compile()
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]
    want = nvm.random.default_rng(5).random(3) + nvm.asarray([8.0, 1, 1])
    np.testing.assert_array_equal(np.asarray(compiled(x, y)), np.asarray(want))
    assert x.tolist() == [7, 0, 0]


def test_functions_with_loops_show_the_text_of_each_part():
    f = nvm.jit(lambda x: nvm.fori_loop(0, 5, lambda i, c: nvm.sin(c) + i, x) * 2)
    low = f.lower(nvm.ones(100))
    assert "each step:" in low.text() and "sin" in low.text() and "sin" in low.text("kernel")
    with pytest.raises(NotImplementedError, match="has loops"):
        low.compile()


def test_a_function_without_arrays():
    low = nvm.jit(lambda x: 3).lower(nvm.ones(2))
    assert low.text() == "" and low.compile()(nvm.ones(2)) == 3


def test_errors_of_the_trace_are_those_of_lower():
    with pytest.raises(ValueError, match="matmul"):
        nvm.jit(lambda x: x @ x).lower(nvm.ones((3, 4)))

    @nvm.jit
    def f(x):
        nvm.jit(softmax).lower(x)
        return x

    with pytest.raises(RuntimeError, match="lower inside a traced function"):
        f(nvm.ones((3, 4)))


def test_how_they_print():
    assert repr(nvm.jit(softmax).lower(nvm.ones((2, 2)))).startswith("<nvm.Lowered of <function softmax")
    assert repr(nvm.jit(softmax).lower(nvm.ones((2, 2))).compile()).startswith("<nvm.Compiled of <function softmax")
