"""Pytrees: dataclasses, named tuples and registered classes as arguments and results of jitted functions and loops."""

import dataclasses
import enum
import gc
import weakref
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import nvm


class Kind(enum.Enum):
    RELU = 1
    TANH = 2


@dataclasses.dataclass
class Layer:
    count: ClassVar[int] = 3
    w: object
    b: object
    kind: Kind = Kind.RELU
    width: int = dataclasses.field(default=0, metadata={"static": True})
    name: str = "layer"

    def __call__(self, x):
        y = x @ self.w + self.b
        return nvm.tanh(y) if self.kind is Kind.TANH else nvm.maximum(y, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    layers: list
    step: object

    def __post_init__(self):
        if not isinstance(self.layers, list):
            raise TypeError("layers")


class Pair(NamedTuple):
    first: object
    second: object


class Box:
    def __init__(self, label, **parts):
        self.label, self.parts = label, parts


nvm.register_pytree(
    Box,
    lambda box: (box.parts.values(), (box.label, tuple(box.parts))),
    lambda data, children: Box(data[0], **dict(zip(data[1], children, strict=True))),
)


def make_layer(kind=Kind.RELU, width=0):
    return Layer(np.eye(3), nvm.asarray([1.0, -2.0, 3.0]), kind, width)


def test_dataclasses_are_taken_and_returned():
    calls = 0

    @nvm.jit
    def f(s, x):
        nonlocal calls
        calls += 1
        assert type(s) is State and type(s.layers[0]) is Layer and s.layers[0].name == "layer"
        assert type(s.layers[0].width) is int
        for layer in s.layers:
            x = layer(x)
        return State(s.layers, s.step + 1), Pair(x, {"y": x * 2})

    x = np.arange(6.0).reshape(2, 3)
    s = State([make_layer(), make_layer(Kind.TANH)], 4)
    for _ in range(3):
        new, r = f(s, x)
        assert type(new) is State and type(r) is Pair and new.layers[1].kind is Kind.TANH
        s = new
    want = np.tanh(np.maximum(x + [1, -2, 3], 0) + [1, -2, 3])
    np.testing.assert_allclose(np.asarray(r.first), want, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(r.second["y"]), 2 * want, rtol=1e-14)
    assert int(s.step) == 7 and calls == 2  # a number, then an array


def test_static_data_are_a_part_of_the_signature():
    f = nvm.jit(lambda layer, x: layer(x) * layer.width)
    x = nvm.ones((1, 3))
    assert np.asarray(f(make_layer(width=2), x)).tolist() == [[4, 0, 8]]
    assert np.asarray(f(make_layer(width=3), x)).tolist() == [[6, 0, 12]]
    assert float(f(make_layer(Kind.TANH, 2), x)[0, 2]) == pytest.approx(2 * np.tanh(4.0))
    assert f.cache_size() == 3


def test_functions_and_classes_in_fields_are_static():
    @dataclasses.dataclass
    class Op:
        f: object
        t: object
        x: object

    f = nvm.jit(lambda op: op.f(op.x).astype(op.t))
    assert f(Op(nvm.square, nvm.float32, nvm.ones(2) * 3)).dtype == nvm.float32
    assert float(f(Op(nvm.sqrt, nvm.float64, nvm.ones(2) * 9))[0]) == 3


def test_registered_classes():
    f = nvm.jit(lambda box: Box(box.label + "!", both=box.parts["a"] + box.parts["b"], none=None))
    r = f(Box("x", a=nvm.ones(3), b=2.0))
    assert r.label == "x!" and r.parts["both"].tolist() == [3, 3, 3] and r.parts["none"] is None
    assert f(Box("y", a=nvm.ones(3), b=2.0)).label == "y!"
    r = f(Box("z", b=nvm.ones(3), a=nvm.ones((2, 1))))
    assert r.parts["both"].shape == (2, 3) and f.cache_size() == 3


def test_subclasses_of_dict_keep_their_class_where_they_are_registered():
    class Parameters(dict):
        pass

    plain = nvm.jit(lambda p: type(p) is dict)
    assert plain(Parameters(a=1.0))
    nvm.register_pytree(Parameters, lambda p: (p.values(), tuple(p)), lambda names, xs: Parameters(zip(names, xs)))
    r = nvm.jit(lambda p: Parameters((k, v + 1) for k, v in p.items()))(Parameters(a=1.0, b=np.ones(2)))
    assert type(r) is Parameters and float(r["a"]) == 2 and r["b"].tolist() == [2, 2]


def test_writes_reach_the_arrays_of_a_dataclass():
    @nvm.jit
    def f(layer):
        layer.b += 1
        layer.w[0] = 7

    layer = make_layer()
    b = layer.b
    f(layer)
    assert b.tolist() == [2, -1, 4] and layer.w[0].tolist() == [7, 7, 7] and layer.w[1].tolist() == [0, 1, 0]


def test_loops_carry_them():
    def body(i, s):
        return State([Layer(s.layers[0].w * 2, s.layers[0].b)], s.step + i)

    s = nvm.fori_loop(0, 3, body, State([Layer(nvm.ones(2), nvm.ones(2))], nvm.asarray(0)))
    assert type(s) is State and s.layers[0].w.tolist() == [8, 8] and int(s.step) == 3
    carry, ys = nvm.scan(lambda c, x: (Box("c", v=c.parts["v"] + x), Pair(x, x * 2)), Box("c", v=0.0), nvm.ones(4))
    assert carry.label == "c" and float(carry.parts["v"]) == 4 and ys.second.tolist() == [2, 2, 2, 2]
    with pytest.raises(TypeError, match=r"what the body returns is a Box of 1 and static data \('d', \('v',\)\)"):
        nvm.fori_loop(0, 3, lambda i, c: Box("d", v=c.parts["v"]), Box("c", v=1.0))


def test_refused():
    with pytest.raises(TypeError, match="takes a class, not int"):
        nvm.register_pytree(3, len, len)
    with pytest.raises(ValueError, match="Box is registered already"):
        nvm.register_pytree(Box, len, len)
    with pytest.raises(ValueError, match="dict is known to nvm as it is"):
        nvm.register_pytree(dict, len, len)
    with pytest.raises(TypeError, match="must be functions"):
        nvm.register_pytree(Kind, 3, len)
    with pytest.raises(TypeError, match="must be hashable"):
        nvm.jit(lambda b: b.parts["v"])(Box([1], v=1.0))

    class Unknown:
        pass

    with pytest.raises(TypeError, match="argument 0 holds .*Unknown"):
        nvm.jit(lambda b: b)(Layer(Unknown(), 1.0))


def test_a_dataclass_that_was_seen_can_be_registered():
    @dataclasses.dataclass
    class Seen:
        w: object
        note: str = "kept"

    make = nvm.jit(lambda x: Seen(x * 2, "made"))
    twice = nvm.jit(lambda s: Seen(s.w * 2, s.note))
    assert make(nvm.ones(2)).w.tolist() == twice(Seen(nvm.ones(2))).w.tolist() == [2, 2]
    nvm.register_pytree(Seen, lambda s: ((s.w,), None), lambda data, xs: Seen(xs[0], "registered"))
    assert twice(Seen(nvm.ones(2))).note == "registered"
    assert make(nvm.ones(2)).note == "made" and make(nvm.ones(3)).note == "registered"
    with pytest.raises(ValueError, match="Seen is registered already"):
        nvm.register_pytree(Seen, len, len)


def test_an_error_in_flatten_or_unflatten_is_raised():
    class Bad:
        pass

    def fail(*_):
        raise ZeroDivisionError("mine")

    nvm.register_pytree(Bad, fail, fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        nvm.jit(lambda b: b)(Bad())

    class Half:
        pass

    nvm.register_pytree(Half, lambda h: ([nvm.ones(2)], None), fail)
    with pytest.raises(ZeroDivisionError, match="mine"):
        nvm.jit(lambda b: 1)(Half())


def test_nothing_of_an_instance_is_kept():
    layer = make_layer()
    seen = weakref.ref(layer.b), weakref.ref(layer)
    f = nvm.jit(lambda layer, x: layer(x))
    f(layer, nvm.ones((1, 3)))
    del layer
    gc.collect()
    assert [s() for s in seen] == [None, None]
