"""nvm.vmap: the graph of a function over a batch equals the function of each element, stacked."""

import dataclasses

import numpy as np
import pytest

import nvm

RNG = np.random.default_rng(5)
B = 5


def data(dtype, *shape):
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(0, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "b":
        return RNG.random(shape) < 0.5
    x = RNG.standard_normal(shape)
    return (x + 1j * RNG.standard_normal(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def write_row(x):
    x = nvm.asarray(x, copy=True)
    x[1] = x[0] * 2
    x[2, 1:3] += 1
    return x


def write_at(x, i):
    x = x + 0
    x[i] = x[0] - 1
    return x


W = data("f8", 4, 6)
TABLE = data("f8", 7, 4)
INDEX = np.asarray([3, -1, 0])
S = (3, 4)  # of an element

# name: function, then dtype and shape of each argument's elements
FUNCTIONS = {
    "maps": (lambda x, y: nvm.where(x > y, nvm.sin(x) * 2, y) + 1, ("f8", S), ("f8", S)),
    "numbers": (lambda a, x: a * x + a, ("f8", ()), ("f8", S)),
    "numbers alone": (lambda a, b: nvm.exp(a) - b, ("f4", ()), ("f4", ())),
    "casts": (lambda x: x.astype("float32").astype("int8") + True, ("f8", S)),
    "half": (lambda x: nvm.tanh(x) * x, ("f2", S)),
    "broadcasting": (lambda x, y: x[:, None] + y, ("f8", (3,)), ("f8", (4,))),
    "broadcast_to": (lambda x: nvm.broadcast_to(x, (2, 3, 4)), ("f8", (4,))),
    "reshape": (lambda x: nvm.reshape(x, (2, -1)), ("f8", S)),
    "transposed": (lambda x: x.T, ("f8", S)),
    "permuted": (lambda x: nvm.permute_dims(x, (2, 0, 1)), ("i4", (2, 3, 4))),
    "slice": (lambda x: x[::-1, 1::2], ("f8", S)),
    "rows": (lambda x: x[1] - x[2], ("f8", S)),
    "roll": (lambda x: nvm.roll(x, 1, axis=0), ("f8", S)),
    "pad": (lambda x: nvm.pad(x, ((1, 2), (0, 1))), ("f8", S)),
    "pad with an element": (lambda x: nvm.pad(x, 1) + nvm.pad(x * 0, 1, constant_values=3), ("f8", S)),
    "concat": (lambda x, y: nvm.concat([x, y, x], axis=1), ("f8", S), ("f8", (3, 2))),
    "stack": (lambda x: nvm.stack([x, TABLE[0]], axis=-1), ("f8", (4,))),
    "sums": (lambda x: nvm.sum(x, axis=0) + nvm.sum(x), ("f8", S)),
    "extremes": (lambda x: nvm.max(x, axis=1) - nvm.min(x), ("f4", S)),
    "argmax": (lambda x: nvm.argmax(x, axis=0), ("f8", S)),
    "argmin of all": (lambda x: nvm.argmin(x), ("f8", S)),
    "all": (lambda x: nvm.all(x, axis=1), ("?", S)),
    "var": (lambda x: nvm.var(x, axis=1), ("f8", S)),
    "cumulative_sum": (lambda x: nvm.cumulative_sum(x, axis=1), ("f8", S)),
    "softmax": (lambda x: nvm.softmax(x, axis=-1), ("f8", S)),
    "logsumexp": (lambda x: nvm.logsumexp(x, axis=0), ("f8", S)),
    "vector by matrix": (lambda v: v @ W, ("f8", (4,))),
    "matrix by vector": (lambda v: W @ v, ("f8", (6,))),
    "complex by matrix": (lambda v: v @ W, ("c16", (4,))),
    "matrices": (lambda a, b: a @ b, ("f8", S), ("f8", (4, 2))),
    "matrix by one": (lambda a: nvm.relu(a @ W + 1), ("f8", S)),
    "one by matrix": (lambda a: W.T @ a, ("f8", (4, 2))),
    "integers by matrix": (lambda v: v @ nvm.asarray(np.arange(8).reshape(4, 2)), ("i8", (4,))),
    "dots": (lambda a, b: a @ b, ("f8", (4,)), ("f8", (4,))),
    "outer": (lambda a, b: nvm.linalg.outer(a, b), ("f8", (3,)), ("f8", (4,))),
    "einsum": (lambda a: nvm.einsum("ij,jk->k", a, W), ("f8", S)),
    "sums over what repeats both": (
        lambda v: nvm.sum(nvm.broadcast_to(v[:, None, None], (4, 6, 5)) * nvm.asarray(W)[:, :, None], axis=(0, 2)),
        ("f8", (4,)),
    ),
    "what repeats both is kept": (
        lambda v: nvm.sum(
            nvm.broadcast_to(v[:, None, None], (4, 6, 5)) * nvm.broadcast_to(W[:, :, None], (4, 6, 5)), axis=0
        ),
        ("f8", (4,)),
    ),
    "take": (lambda x: nvm.take(x, INDEX, axis=1), ("f8", S)),
    "take from one": (lambda i: nvm.take(nvm.asarray(TABLE), i, axis=0), ("i8", (3,))),
    "take columns of one": (lambda i: nvm.take(nvm.asarray(TABLE), i, axis=1), ("i4", (2, 3))),
    "take both": (lambda x, i: nvm.take(x, i, axis=0), ("f8", (5, 2)), ("i8", (3,))),
    "take_along_axis": (lambda x, i: nvm.take_along_axis(x, i, axis=1), ("f8", S), ("i8", (3, 2))),
    "element": (lambda x, i: x[i], ("f8", (4,)), ("i8", ())),
    "writes": (write_row, ("f8", S)),
    "write at one position": (lambda x: write_at(x, 2), ("f8", S)),
    "write at positions": (write_at, ("f8", (5, 2)), ("i8", (2,))),
    "sort": (lambda x: nvm.sort(x, axis=0), ("f8", S)),
    "argsort": (lambda x: nvm.argsort(x), ("f4", S)),
    "searchsorted": (lambda x, v: nvm.searchsorted(nvm.sort(x), v), ("f8", (9,)), ("f8", (3,))),
    "searchsorted in one": (lambda v: nvm.searchsorted(nvm.asarray(np.sort(TABLE[0])), v), ("f8", (3,))),
    "flatnonzero": (lambda x: nvm._nvm.functions["_flatnonzero"](x > 0, size=5), ("f8", S)),
    "fft": (lambda x: nvm.fft.fft(x * W[0, :4], axis=-1), ("c16", S)),
    "rfft": (lambda x: nvm.fft.rfft(x, axis=0), ("f8", (8, 2))),
    "solve": (lambda a, b: nvm.linalg.solve(a + nvm.eye(3) * 9, b), ("f8", (3, 3)), ("f8", (3, 2))),
    "solve with one": (lambda b: nvm.linalg.solve(nvm.asarray(W[:, :4] + np.eye(4) * 9), b), ("f8", (4,))),
    "det": (lambda a: nvm.linalg.det(a), ("f8", (3, 3))),
    "svdvals": (lambda a: nvm.linalg.svdvals(a), ("f8", S)),
    "tril": (lambda x: nvm.tril(x, k=-1), ("f8", S)),
    "diagonal": (lambda x: nvm.linalg.diagonal(x), ("f8", S)),
    "mgrid": (lambda x: x + nvm.arange(4) + nvm.arange(3)[:, None], ("f8", S)),
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mapped_function_is_the_function_of_each_element(name, jitted):
    f, *kinds = FUNCTIONS[name]
    args = [data(dtype, B, *shape) for dtype, shape in kinds]
    mapped = nvm.vmap(f)
    got = np.asarray((nvm.jit(mapped) if jitted else mapped)(*args))
    want = np.stack([np.asarray(f(*(nvm.asarray(a[i]) for a in args))) for i in range(B)])
    assert got.dtype == want.dtype and got.shape == want.shape
    rtol = {"f": 1e-5, "e": 2e-3}.get(want.dtype.char, 1e-11)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    "name", ["maps", "sums", "vector by matrix", "take both", "write at positions", "solve", "sort"]
)
@pytest.mark.parametrize("size", [0, 1])
def test_small_batches(name, size):
    f, *kinds = FUNCTIONS[name]
    args = [data(dtype, size, *shape) for dtype, shape in kinds]
    got = nvm.vmap(f)(*args)
    one = f(*(nvm.asarray(data(dtype, *shape)) for dtype, shape in kinds))
    assert got.shape == (size, *one.shape) and got.dtype == one.dtype
    if size:
        want = np.asarray(f(*(nvm.asarray(a[0]) for a in args)))
        np.testing.assert_allclose(np.asarray(got)[0], want, rtol=1e-11)


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, -1, 0), (-1, 0, -1), (2, None, 1), (None, 2, -2)])
def test_axes(axes):
    first, second, out = axes
    x, y = data("f8", 4, 4, 4), data("f8", 4, 4, 4)
    f = lambda x, y: nvm.sum(x, axis=0) * y  # noqa: E731
    got = nvm.vmap(f, in_axes=(first, second), out_axes=out)(x, y)
    part = lambda a, axis, i: nvm.asarray(a if axis is None else np.take(a, i, axis))  # noqa: E731
    if first is None:
        f, y = (lambda x, y: nvm.sum(x, axis=0)[0] * y), y
        got = nvm.vmap(f, in_axes=(first, second), out_axes=out)(x, y)
    want = np.stack([np.asarray(f(part(x, first, i), part(y, second, i))) for i in range(4)], axis=out)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


@dataclasses.dataclass
class Layer:
    w: object
    b: object


def test_nestings_and_keywords():
    layers = Layer(data("f8", B, 4, 3), data("f8", B, 3))
    x = data("f8", 4)
    f = nvm.vmap(lambda layer, x, scale: {"y": x @ layer.w + layer.b, "scale": (scale, 2.5, None)}, in_axes=(0, None))
    r = f(layers, x, scale=np.arange(B))
    np.testing.assert_allclose(np.asarray(r["y"]), x @ layers.w + layers.b, rtol=1e-12)
    assert r["scale"][0].tolist() == list(range(B)) and r["scale"][1].tolist() == [2.5] * B and r["scale"][2] is None
    g = nvm.vmap(lambda d, y: d["a"] * y + d["b"][0], in_axes=({"a": 1, "b": (None,)}, 0))
    a, b, y = data("f8", 2, B), data("f8", 2), data("f8", B, 2)
    np.testing.assert_allclose(np.asarray(g({"a": a, "b": (b,)}, y)), a.T * y + b, rtol=1e-12)
    both = nvm.vmap(lambda x: (x + 1, nvm.sum(x)), out_axes=(1, 0))(y)
    assert both[0].shape == (2, B) and both[1].shape == (B,)
    assert nvm.vmap(lambda x: nvm.asarray(b) * 2, out_axes=None)(y).tolist() == (b * 2).tolist()


def test_nested_maps_and_jit_inside():
    x, y = data("f8", 3), data("f8", 4)
    product = nvm.vmap(nvm.vmap(lambda a, b: a * b + a, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_allclose(np.asarray(product(x, y)), np.outer(x, y) + x[:, None], rtol=1e-12)
    distance = nvm.vmap(nvm.vmap(lambda p, q: nvm.sum((p - q) ** 2), (None, 0)), (0, None))
    p, q = data("f8", 6, 3), data("f8", 5, 3)
    want = ((p[:, None] - q) ** 2).sum(-1)
    np.testing.assert_allclose(np.asarray(distance(p, q)), want, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(nvm.jit(distance)(p, q)), want, rtol=1e-12)
    f = nvm.jit(lambda v: nvm.tanh(v).sum())
    np.testing.assert_allclose(np.asarray(nvm.vmap(f)(p)), np.tanh(p).sum(1), rtol=1e-12)


def test_a_product_that_all_share_is_one_product():
    x, w = nvm.asarray(data("f8", 300, 200)), nvm.asarray(data("f8", 200, 100))
    plan = nvm.explain(nvm.vmap(lambda v, w: nvm.tanh(v @ w), in_axes=(0, None))(x, w))
    assert "300 x 100 x 200 of f64: d = a b" in plan
    stacked = nvm.asarray(data("f8", 30, 20, 200))
    plan = nvm.explain(nvm.vmap(lambda a, w: a @ w, in_axes=(0, None))(stacked, w))
    assert "600 x 100 x 200 of f64: d = a b" in plan and plan.startswith("1 kernel")


def test_an_array_that_all_index_is_not_copied():
    table = nvm.asarray(data("f4", 100_000, 4))
    plan = nvm.explain(nvm.vmap(lambda i: nvm.take(table, i, axis=0))(np.arange(60).reshape(20, 3)))
    assert "reads 2.4 KB" in plan or "reads 1.44 KB" in plan, plan


def test_arrays_from_outside_and_pending_ones():
    a, b = nvm.asarray(data("f8", 4)), np.asarray(data("f8", 4))
    pending = nvm.sin(a)
    f = nvm.vmap(lambda x: x * pending + b)
    x = data("f8", B, 4)
    np.testing.assert_allclose(np.asarray(f(x)), x * np.sin(np.asarray(a)) + b, rtol=1e-12)
    y = nvm.cos(nvm.asarray(x))
    np.testing.assert_allclose(
        np.asarray(nvm.vmap(lambda x: x[0] * a)(y)), np.cos(x)[:, :1] * np.asarray(a), rtol=1e-12
    )


def test_an_index_out_of_range_is_told():
    f = nvm.vmap(lambda x, i: nvm.take(x, i, axis=0))
    with pytest.raises(IndexError, match="out of range"):
        f(data("f8", 3, 4), np.asarray([[0], [4], [1]])).eval()
    with pytest.raises(IndexError, match="out of range"):
        nvm.vmap(write_at)(data("f8", 3, 4, 2), np.asarray([[0], [-5], [1]])).eval()


def test_refused():
    x = nvm.ones((3, 4))
    with pytest.raises(ValueError, match=r"input 1 has 4 elements along axis 1, and those before it 3"):
        nvm.vmap(lambda a, b: a, in_axes=(0, 1))(x, x)
    with pytest.raises(IndexError, match=r"axis 2 of input 0 is out of range for rank 2"):
        nvm.vmap(nvm.sin, in_axes=2)(x)
    for axis in (2**32, -1000, 64):
        with pytest.raises((IndexError, OverflowError)):
            nvm.vmap(nvm.add, in_axes=(axis, 0))(x, x)
    with pytest.raises(IndexError, match=r"axis 3 of output 0"):
        nvm.vmap(nvm.sin, out_axes=3)(x)
    with pytest.raises(ValueError, match="no input is mapped"):
        nvm.vmap(nvm.sin, in_axes=None)(x)
    with pytest.raises(ValueError, match="output 0 differs between the elements"):
        nvm.vmap(nvm.sin, out_axes=None)(x)
    with pytest.raises(ValueError, match="in_axes has 1 entries for 2 arguments"):
        nvm.vmap(nvm.add, in_axes=(0,))(x, x)
    with pytest.raises(ValueError, match="does not fit"):
        nvm.vmap(nvm.sin, in_axes=({"a": 0},))(x)
    with pytest.raises(TypeError, match="takes a function, not int"):
        nvm.vmap(3)
    with pytest.raises(TypeError, match="in_axes holds 'a'"):
        nvm.vmap(nvm.sin, in_axes="a")
    with pytest.raises(RuntimeError, match="traced array"):
        nvm.vmap(lambda v: v if v[0] > 0 else -v)(x)

    def writes(v):
        v[0] = 1
        return v

    with pytest.raises(RuntimeError, match="writes to its input 0"):
        nvm.vmap(writes)(x)
    outside = nvm.zeros(4)

    def writes_outside(v):
        outside[0] = 1
        return v

    with pytest.raises(RuntimeError, match="outside"):
        nvm.vmap(writes_outside)(x)
    assert outside.tolist() == [0] * 4 and x.tolist() == [[1] * 4] * 3
    with pytest.raises(ZeroDivisionError):
        nvm.vmap(lambda v: 1 / 0)(x)
    assert not nvm._nvm.tracing() and float((x + 1).sum()) == 24
