"""What is typed wrong with arrays on a GPU, as a table like that of tests/python: each line is an error that names what
was called, and the shapes, devices or extents. Indices on a GPU are checked there, which is an error where the result
is read, or before a write. The last table needs two GPUs."""

import numpy as np
import pytest

import nvm
import nvm.numpy as nnp

pytestmark = pytest.mark.emulated
FOUND = sum(d.type == "cuda" for d in nvm.devices())
BOTH = r"\(3, 4\) on cuda:0 and float64 \(3, 4\) on cuda:1; move one with to_device"

OUTSIDE = [  # (what is typed, the message); i: [0, 7] and o: [0, 1] on the GPU, x: (3, 4), v: (5,)
    ("x[3]", r"\[getitem\] index 3 is out of range for axis 0 of extent 3"),
    ("x[0, [1, 4]]", r"\[getitem\] index 4 is out of range for axis 1 of extent 4"),
    ("x[i].tolist()", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("x[-i].tolist()", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("x[:, i].tolist()", r"\[getitem\] an index is out of range for axis 1 of extent 4"),
    ("x[o, i].tolist()", r"\[getitem\] an index is out of range for axis 1 of extent 4"),
    ("x[i, o].tolist()", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("float(x[i].sum())", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("x[i.astype('u1')].tolist()", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("x[i.to_device('cpu')].tolist()", r"\[getitem\] index 7 is out of range for axis 0 of extent 3"),
    ("nvm.jit(lambda x, i: x[i])(x, i).tolist()", r"\[getitem\] an index is out of range for axis 0 of extent 3"),
    ("nvm.jit(lambda x, i: x[i].sum())(x, i[1]).tolist()", r"\[getitem\] an index is out of range .* 0 of extent 3"),
    ("x[5] = 1", r"\[setitem\] index 5 is out of range for axis 0 of extent 3"),
    ("x[[0, 5]] = 1", r"\[setitem\] index 5 is out of range for axis 0 of extent 3"),
    ("x[i] = 1", r"\[setitem\] index 7 is out of range for axis 0 of extent 3"),
    ("x[:, i] = 1", r"\[setitem\] index 7 is out of range for axis 1 of extent 4"),
    ("x[i, 0] = x[0, 0]", r"\[setitem\] index 7 is out of range for axis 0 of extent 3"),
    ("x[0, i] += 1", r"\[setitem\] index 7 is out of range for axis 1 of extent 4"),
    ("nvm.jit(put)(x, i)", r"\[setitem\] .*out of range for axis 0 of extent 3"),
    ("nvm.jit(put)(x, i[1])", r"\[setitem\] .*out of range for axis 0 of extent 3"),
    ("x[v > 2]", r"\[getitem\] a mask of shape \(5,\) indexes dimensions of shape \(3,\)"),
    ("x[v > 2] = 0", r"\[setitem\] a mask of shape \(5,\) indexes dimensions of shape \(3,\)"),
    ("nvm.take(x, i, axis=0).tolist()", r"\[take\] an index is out of range for axis 0 of extent 3"),
    ("nvm.take_along_axis(x[0], i, axis=0).tolist()", r"\[take_along_axis\] an index is out of range for axis 0 of"),
    ("nnp.put(x, [99], 1)", r"\[setitem\] index 99 is out of range for axis 0 of extent 12"),
]
OTHER = [  # (what is typed, the class of the error, what the message has)
    ("x.sum(axis=2)", IndexError, r"\[sum\] axis 2 is out of range for 2 dimensions"),
    ("x + v", ValueError, r"\[add\] shapes do not broadcast: \(3, 4\) and \(5,\)"),
    ("x @ x", ValueError, r"\[matmul\] inner dimensions differ: \(3, 4\) @ \(3, 4\)"),
    ("bool(x)", ValueError, r"\[bool\] .*shape \(3, 4\), is ambiguous; use any\(\) or all\(\)"),
    (
        "y = nvm.broadcast_to(x[0], (3, 4)); y += 1",
        ValueError,
        r"\[setitem\] the array is read-only: .*write to a copy",
    ),
    ("nvm.broadcast_to(x[0], (3, 4))[0] = 1", ValueError, r"\[setitem\] the array is read-only: .*write to a copy"),
    ("x[0] = nvm.ones((2, 2))", ValueError, r"\[setitem\] a value of shape \(2, 2\) does not broadcast to \(4,\)"),
    ("np.zeros((3, 4))[...] += x + x.T", ValueError, r"\[add\] shapes do not broadcast"),
    ("nvm.jit(lambda y: np.asarray(y))(x)", RuntimeError, r"numpy.asarray\(\) of a traced array \(float64, shape \(3,"),
    ("nvm.jit(lambda y: y.__dlpack__())(x)", RuntimeError, r"__dlpack__\(\) of a traced array \(float64, shape \(3, 4"),
    ("nvm.jit(lambda y: y.tolist())(x)", RuntimeError, r"tolist\(\) of a traced array \(float64, shape \(3, 4\)\)"),
    ("nvm.jit(lambda y: y[y > 0])(x)", RuntimeError, r"nonzero\(\) of a traced array \(bool, shape .*nvm.where"),
    ("x.__dlpack__(dl_device=(9, 0))", BufferError, r"__dlpack__: nvm knows no device \(9, 0\)"),
    ("x.__dlpack__(dl_device=(1, 0), copy=False)", BufferError, r"__dlpack__: copy=False, but the array is on another"),
    ("x.__dlpack__(stream=0)", ValueError, r"__dlpack__: 0 is no stream of CUDA; 1 is the legacy default one"),
    (
        "nvm.from_dlpack(x, device='cpu', copy=False)",
        ValueError,
        r"from_dlpack: copy=False, but the array is on another",
    ),
    ("x.to_device('cuda:99')", nvm.Error, r"\[device\] there is no cuda:99; there "),
    ("nvm.zeros(3, device='cuda:99')", nvm.Error, r"\[device\] there is no cuda:99; there "),
]
TWO = [
    ("x + y", r"\[add\] .*float64 " + BOTH),
    ("np.add(x, y)", r"\[add\] .*float64 " + BOTH),
    ("x += y", r"\[add\] .*float64 " + BOTH),
    ("x == y", r"\[equal\] .*float64 " + BOTH),
    ("divmod(x, y)", r"\[floor_divide\] .*float64 " + BOTH),
    ("nvm.clip(x, y, y)", r"\[clip\] .*float64 " + BOTH),
    ("nvm.where(x > 0, x, y)", r"\[where\] .*bool " + BOTH),
    ("nvm.concat([x, y])", r"\[concat\] .*float64 " + BOTH),
    ("nvm.stack([x, y])", r"\[stack\] .*float64 " + BOTH),
    ("x @ y.T", r"\[matmul\] .*\(3, 4\) on cuda:0 and float64 \(4, 3\) on cuda:1"),
    ("nnp.dot(x, y.T)", r"\[.*\] .*\(3, 4\) on cuda:0 and float64 \(4, 3\) on cuda:1"),
    ("nvm.einsum('ij,ij->i', x, y)", r"\[einsum\] .*float64 " + BOTH),
    ("nvm.tensordot(x, y, axes=([0, 1], [0, 1]))", r"\[tensordot\] .*float64 " + BOTH),
    ("nvm.linalg.solve(x[:3, :3], y[:3, :3])", r"\[linalg.solve\] .*\(3, 3\) on cuda:0 and float64 \(3, 3\) on cuda:1"),
    ("x[0] = y[0]", r"\[setitem\] .*\(4,\) on cuda:0 and float64 \(4,\) on cuda:1; move one with to_device"),
    ("x[:] = y", r"\[setitem\] .*float64 " + BOTH),
    ("np.add(x, x, out=y)", r"\[setitem\] .*on cuda:1 and float64 \(3, 4\) on cuda:0"),
    ("x[y.astype('i8')[0]]", r"\[getitem\] .*\(3, 4\) on cuda:0 and int64 \(4,\) on cuda:1"),
    ("x[y > 0]", r"\[getitem\] .*\(3, 4\) on cuda:0 and int64 \(12,\) on cuda:1"),
    ("x[y[:, 0] > 0, 1:]", r"\[getitem\] .*\(3, 4\) on cuda:0 and int64 \(3,\) on cuda:1"),
    ("x[y > 0] = 0", r"\[.*\] .*cuda:\d and .* on cuda:\d; move one with to_device"),
    ("x[y > 0] = x[0, 0]", r"\[.*\] .*cuda:\d and .* on cuda:\d; move one with to_device"),
    ("nvm.take(x, o.to_device('cuda:1'), axis=0)", r"\[take\] .*on cuda:0 and int64 \(2,\) on cuda:1"),
    ("nvm.jit(lambda a, b: a * b)(x, y)", r"argument 1 was put on cuda:1, others on cuda:0; move one with to_device"),
    ("nvm.fori_loop(0, 3, lambda i, c: c + y, x)", r"\[add\] .*float64 " + BOTH),
    ("nnp.allclose(x, y)", r"\[allclose\] .*float64 " + BOTH),
    ("nvm.from_dlpack(y, device='cuda:0', copy=False)", r"from_dlpack: copy=False, but the array is on another device"),
]


def put(x, i):
    x[i] = 1


def try_out(text, kind, message, device):
    place = lambda a, d=device: nvm.asarray(np.array(a), device=d)
    space = {"np": np, "nvm": nvm, "nnp": nnp, "put": put, "x": place(np.arange(12.0).reshape(3, 4))}
    space.update(i=place([0, 7]), o=place([0, 1]), v=nvm.arange(5, device=device))
    if FOUND > 1:
        space["y"] = place(np.arange(12.0).reshape(3, 4), "cuda:1")
    x, before = space["x"], space["x"].tolist()
    with pytest.raises(kind, match=message):
        exec(text, space)
    assert x.tolist() == before and str(x.device) == "cuda:0"


@pytest.mark.parametrize("text, message", OUTSIDE, ids=[text for text, _ in OUTSIDE])
def test_index_out_of_range(text, message, device):
    try_out(text, IndexError, message, device)


@pytest.mark.parametrize("text, kind, message", OTHER, ids=[text for text, *_ in OTHER])
def test_wrong_input(text, kind, message, device):
    try_out(text, kind, message, device)


@pytest.mark.skipif(FOUND < 2, reason=f"two GPUs are needed, {FOUND} found")
@pytest.mark.parametrize("text, message", TWO, ids=[text for text, _ in TWO])
def test_two_devices(text, message, device):
    try_out(text, ValueError, message, "cuda:0")
