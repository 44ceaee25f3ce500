"""Direct runs: the whole table, in each class of layout, has the bits of the oracle (a kernel for each value,
interpreted); and which graphs run directly."""

import numpy as np
import pytest

import nvm
import refs
import test_ops
import test_tiers

put = test_tiers.put


@pytest.fixture(autouse=True)
def settings():
    yield
    nvm.set("TIER", "auto")
    nvm.set("FUSE", "on")


def counted(counter, make):
    before = nvm.counters()[counter]
    made = make()
    return made, nvm.counters()[counter] - before


def both(make, what):
    """What make() gives directly, which runs no kernel, has the bits of the oracle."""
    nvm.set("FUSE", "off")
    want = [np.asarray(x) for x in make()]
    nvm.set("FUSE", "on")
    nvm.set("TIER", "direct")
    got, kernels = counted("kernels_run", lambda: [np.asarray(x) for x in make()])
    nvm.set("TIER", "auto")
    assert kernels == 0, what
    for i, (a, b) in enumerate(zip(want, got)):
        test_tiers.same(a, b, (what, i))


LAYOUTS = {
    "contiguous": lambda x: put(x),
    "apart": lambda x: put(np.repeat(x, 2, axis=1))[:, ::2],
    "backwards": lambda x: put(x[:, ::-1].copy())[:, ::-1],
    "transposed": lambda x: put(x.T.copy()).T,
    "row": lambda x: nvm.broadcast_to(put(x[:1]), x.shape),
    "column": lambda x: nvm.broadcast_to(put(x[:, :1]), x.shape),
    "number": lambda x: put(x[1, 2]),
    "one element": lambda x: put(x[1:2, 2:3]),
}


@pytest.mark.parametrize("name,dtype", test_ops.CASES)
def test_map(name, dtype, rng):
    m = refs.MAPS[name]
    args = [test_ops.draw(rng, dtype, (7, 37), m.lo, m.hi) for _ in range(m.nin)]
    if np.dtype(dtype).kind in "fc":
        for a in args:
            a.flat[::5] = np.resize(np.array(test_ops.SPECIALS), a.flat[::5].shape).astype(dtype)
    first = [layout(args[0]) for layout in LAYOUTS.values()]
    rest = [put(a) for a in args[1:]]
    f = getattr(nvm, name)
    both(lambda: [f(x, *rest, **m.attrs) for x in first], (name, dtype))
    if rest:
        both(lambda: [f(put(args[0]), *rest[:-1], layout(args[-1]), **m.attrs) for layout in LAYOUTS.values()], name)


BLOCKS = [(40, 70), (3, 2100), (1300, 3), (513, 4), (2, 1025), (37, 1024)]  # rows of a block, and parts of a row


@pytest.mark.parametrize("dtype", ["bool", "int16", "int64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", BLOCKS)
def test_blocks(dtype, shape, rng):
    """Large values are computed in blocks, with the maps that they alone read, in every layout."""
    a, b = (test_ops.draw(rng, dtype, shape) for _ in range(2))
    c = put(test_ops.draw(rng, "bool", shape))
    views = [layout(b) for layout in LAYOUTS.values()]
    x = put(a)

    def make():
        mixed = [nvm.where(c, x * y, y) * x + x * y * y for y in views]
        inner = [nvm.sum((x + y) * y, axis=axis) for y in views for axis in (None, 0, 1)]
        kept = x * views[0]
        return [*mixed, *inner, kept, nvm.sum(kept), nvm.sum(kept * kept, axis=0)]

    both(make, (dtype, shape))


# chunks of 1,024 by 128 lanes and of 64: less than one lane each, one, some, and parts of the last chunk and lane
SHAPES = [(9, 301), (3, 1), (1, 129), (2, 1024), (3, 2500), (1025, 2), (65, 16), (64, 17), (200, 40), (2, 70, 3, 20)]


@pytest.mark.parametrize("name,dtype", test_ops.REDUCED)
def test_reduction(name, dtype, rng):
    f = getattr(nvm, name)
    for shape in SHAPES:
        x = put(test_ops.draw(rng, dtype, shape, *((0.9, 1.1) if name == "prod" else ())))
        views = [x, nvm.flip(x, axis=0), nvm.matrix_transpose(x)]
        axes = [None, *range(len(shape))]
        both(lambda: [f(v, axis=axis) for v in views for axis in axes], (name, dtype, shape))


PLANNED = {"scanned", "scanned columns", "product"}  # scans; products, which a library may add up in its order


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("name", [n for n in test_tiers.VIEWS if n not in PLANNED])
def test_view(name, dtype):
    if dtype in ("complex64", "bool") and name in ("chosen", "clipped", "softmax", "log_softmax", "cast", "stacked"):
        return
    both(lambda: [test_tiers.VIEWS[name](put(test_tiers.SOURCE.astype(dtype)))], (name, dtype))


def whole(rng, dtype, shape):
    """Numbers whose products and sums are exact in float32, so that every order of adding gives the same bits."""
    return rng.integers(-9, 10, shape).astype(dtype)


def any_numbers(rng, dtype, shape):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("solvers", "numbers"), [("all", whole), ("kernel", any_numbers)])
def test_matrix_product(solvers, numbers, dtype, rng):
    """Kernels add in the order of direct runs; a library has its own."""
    nvm.set("SOLVERS", solvers)
    try:
        products(lambda shape: numbers(rng, dtype, shape))
    finally:
        nvm.set("SOLVERS", "all")


def products(draw):
    left, right = draw((7, 37)), draw((37, 21))
    views = [layout(left) for name, layout in LAYOUTS.items() if name not in ("number", "one element")]
    both(lambda: [x @ put(right) for x in views], "left")
    views = [layout(right) for name, layout in LAYOUTS.items() if name not in ("number", "one element")]
    both(lambda: [put(left) @ x for x in views], "right")
    a, b = put(draw((3, 1, 9, 12))), put(draw((5, 12, 17)))
    both(lambda: [a @ b, nvm.einsum("aikl,blm->abkm", a, b), (a + 1) @ (b * 2) - 3, nvm.sum(a @ b, axis=-1)], "batches")
    w, x = put(draw((6, 5, 3, 3))), put(draw((5, 12, 12)))
    both(lambda: [nvm.tensordot(w[:, :, i, 1], x[:, i : i + 10, 1:11], axes=1) for i in range(3)], "windows")


def test_16_bits_are_rounded_where_a_plan_rounds_them():
    x = put((np.arange(300) / 77).astype("f2"))
    both(lambda: [((x * x + x) * 3 - x).sum(), nvm.exp(x) * x - x / 3], "float16")


def _value_of_others(rng, values):
    """A value of shape (n, n) made of some of `values`, which others may read too, by a function, views or moves."""
    x, y = (values[i] for i in rng.integers(len(values), size=2))
    n = x.shape[0]
    return [
        lambda: x * y + 0.5,
        lambda: nvm.minimum(x, y.T),
        lambda: x - nvm.sum(y, axis=1, keepdims=True) / n,
        lambda: x + nvm.max(y, axis=0),
        lambda: nvm.roll(x, 3, axis=0) - y,
        lambda: nvm.concat([y[: n // 2], x[n // 2 :]], axis=0),
        lambda: nvm.reshape(nvm.reshape(x.T, (-1,))[::-1], (n, n)) * 0.5,
        lambda: nvm.where(x > y, x[::-1], y),
        lambda: nvm.take(x, nvm.asarray(np.arange(n)[::-1].copy()), axis=0),
    ][rng.integers(9)]()


@pytest.mark.parametrize("seed", range(12))
def test_results_take_the_places_of_what_nothing_reads_any_more(seed):
    numbers = np.random.default_rng(seed)
    n = int(numbers.integers(8, 60))  # below and above the size that is computed in blocks
    first = numbers.random((2, n, n))

    def make():
        rng, values = np.random.default_rng(seed + 100), [nvm.asarray(first[0]), nvm.asarray(first[1])]
        for _ in range(60):
            values = (values + [_value_of_others(rng, values)])[-int(rng.integers(4, 9)) :]
        nvm.eval(*values[1:])
        return values

    both(make, seed)


def test_long_chains_run_directly():
    """Longer than what is planned on the caller's stack."""

    def chain():
        x = put(np.arange(5.0))
        for i in range(400):
            x = x * 0.5 + i
        return [x]

    both(chain, "chain")


# ---- which graphs run directly
def planned(make):
    return counted("programs_planned", make)[1]


def test_ever_new_sizes_are_not_planned():
    x = put(np.arange(3000.0))
    x.eval()
    assert planned(lambda: [(x[:n] * 2 + 1).eval() for n in range(100, 400)]) == 0
    classes = 3  # of sizes from 64 on: a plan serves one
    assert planned(lambda: [float(x[:n] @ x[1 : n + 1]) for n in range(100, 400)]) <= classes


def test_sizes_of_what_has_no_signature_are_not_planned():
    """Products are planned for exact sizes: those that are new each time run directly, however many there were."""
    a, w = nvm.asarray(np.ones((400, 40))), nvm.asarray(np.ones((40, 30)))
    before = nvm.counters()["programs_planned"]
    for n in range(40, 400):
        assert float((a[:n] @ w).sum()) == n * 40 * 30
    assert nvm.counters()["programs_planned"] - before < 20


def test_direct_runs_of_all_sizes_count_together():
    """Until one is planned, classes of sizes are not told apart: two of them reach the line together."""

    def runs(f, shapes):
        xs = [put(np.ones(shape)) for shape in shapes]
        for k in range(1000):
            if planned((f(xs[k % len(xs)]) * 2.5 - xs[k % len(xs)]).eval):
                return k
        return 1000

    one, two = runs(nvm.floor, [(8, 400)]), runs(nvm.ceil, [(8, 400), (400, 8)])
    assert 4 < two <= one + 2


def test_ever_new_numbers_are_planned_once():
    x = put(np.arange(3001.0))
    x.eval()
    assert planned(lambda: [(nvm.abs(x) * (i + 0.5) - x).eval() for i in range(300)]) == 1


def test_what_comes_again_is_planned_once():
    x = put(np.arange(3001.0))
    x.eval()
    counts = [planned(lambda: (nvm.sqrt(x) * 2.5 - x).eval()) for _ in range(300)]
    assert counts[0] == 0 and sum(counts) == 1


def test_little_arrays_are_planned_when_they_come_again():
    """They are computed at once until that has taken as long as a plan, and then not directly once more as long."""
    x = put(np.arange(700.0))
    x.eval()
    make = lambda: nvm.sqrt(nvm.exp(x * 0.001) + 3.5) / (x + 1.5)  # noqa: E731
    assert "runs directly" in nvm.explain(make())
    counts = [planned(make().eval) for _ in range(1000)]
    last = counts.index(1)
    assert last > 3 and sum(counts) == 1 and counted("kernels_run", make().eval)[1] == 1
    _, kernels = counted("kernels_run", lambda: [(make() - k).eval() for k in range(100)])
    assert kernels == 0, "another number is another graph"


def test_small_products_are_planned_when_they_come_again():
    x, w = put(np.ones((16, 33))), put(np.ones((33, 25)))
    nvm.eval(x, w)
    counts = [planned(lambda: nvm.maximum(x @ w - 1, 0).eval()) for _ in range(300)]
    assert counts[0] == 0 and sum(counts) == 1


def test_products_are_planned_at_once_where_bits_must_not_change():
    x, w = put(np.ones((16, 35))), put(np.ones((35, 25)))
    nvm.eval(x, w)
    nvm.set("REPRODUCIBLE", "1")
    try:
        assert planned(lambda: (x @ w).eval()) == 1
    finally:
        nvm.set("REPRODUCIBLE", "0")


def test_large_arrays_are_planned_at_once():
    x = put(np.arange(2e6))
    x.eval()
    assert planned(lambda: (nvm.sqrt(x) * 2.25 - x).eval()) == 1


def test_what_is_found_no_faster_than_it_is_computed_is_never_planned():
    x = put(np.arange(301.0))
    x.eval()
    assert planned(lambda: [(nvm.sqrt(x) * 2.5 - x).eval() for _ in range(300)]) == 0
    assert "computed at once" in nvm.explain(nvm.sqrt(x) * 2.5 - x)


def test_coordinates_are_computed_at_once():
    x = put(np.arange(42.0) / 7)
    x.eval()

    def make():
        place = nvm.arange(42)
        return [
            x * place,
            nvm.arange(3, 45) - place,
            nvm.arange(41, -1, -1, dtype="int32") // 2,
            nvm.where(place > 20, x, 0),
            nvm.reshape(place, (6, 7)).T + 1,
            place[::-5] * place[3],
            nvm.sum(nvm.reshape(place, (6, 7)) * nvm.arange(7), axis=1),
            nvm.astype(place, "float32") / 3,
            nvm.linspace(0, 1, 9) + nvm.arange(9)[:, None],
        ]

    for i, y in enumerate(make()):
        assert "computed at once" in nvm.explain(y), i
    both(make, "coordinates")
    few = nvm.arange(10**7)[5:8] + 1
    assert "computed at once" not in nvm.explain(few) and few.tolist() == [6, 7, 8]


def test_an_inner_value_that_is_still_held_is_kept():
    x = put(np.arange(5.0))
    x.eval()
    h = x * 2.5
    y = nvm.sum(h + 1)
    z = h + 3
    assert float(y) == 30
    kept, evaluations = counted("evaluations", lambda: np.asarray(h))
    assert evaluations == 0 and np.all(kept == np.arange(5) * 2.5)
    rest, evaluations = counted("evaluations", lambda: np.asarray(z))
    assert evaluations == 1 and np.all(rest == kept + 3)


def test_a_chain_that_is_cut_keeps_what_a_loop_carries():
    """Else each of them would be computed again from the chain's beginning."""
    a, b = put(np.arange(5.0)), put(np.ones(5))
    counter, steps = "evaluations", 0
    while True:
        c, evaluations = counted(counter, lambda: a * 0.5 + b)
        if evaluations:
            break
        a, b, steps = c, b - c * 0.25, steps + 1
    assert 100 < steps < 512
    for kept in (a, b, c):
        assert counted(counter, lambda: np.asarray(kept))[1] == 0


def test_explain_tells_what_comes_first():
    x = put(np.arange(302.0))
    x.eval()
    make = lambda: nvm.cbrt(x) * 1.5 - x  # noqa: E731
    text = nvm.explain(make())
    assert text.startswith("1 kernel,") and "runs directly" in text
    for _ in range(300):
        make().eval()
    assert "runs directly" not in nvm.explain(make())
    nvm.set("TIER", "planned")
    assert "runs directly" not in nvm.explain(nvm.expm1(x) * 1.5 - x)
    assert planned(lambda: (nvm.expm1(x) * 1.5 - x).eval()) == 1


def test_an_index_out_of_range_has_the_same_message():
    def message(tier):
        nvm.set("TIER", tier)
        x, i = put(np.arange(6.0)), put(np.array([1, 2, -9, 7]))
        with pytest.raises(IndexError) as e:
            (nvm.take(x, i) + 1).eval()
        return str(e.value)

    assert message("direct") == message("planned")


def test_donated_memory_is_reused_by_a_plan():
    x = put(np.arange(100.0)) + 1
    y = x.eval() * 3.75
    nvm.donate(x)
    assert planned(y.eval) == 1 and y[1] == 7.5
