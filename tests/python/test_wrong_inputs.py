"""What NumPy users type wrong: each line is an error of a class that NumPy's users expect, which names what was called,
the shapes or dtypes, and says what to do where that is not plain."""

import numpy as np
import pytest

import nvm
import nvm.numpy as nnp

WRONG = [  # (what is typed, the class of the error, what the message has)
    ("x.sum(axis=2)", IndexError, r"\[sum\] axis 2 is out of range for 2 dimensions"),
    ("x.mean(axis=(0, 0))", ValueError, r"\[mean\] axis 0 is given twice"),
    ("np.sum(x, axis=7)", ValueError, "axis 7 is out of bounds for array of dimension 2"),
    ("x.transpose(0, 2)", IndexError, r"\[permute_dims\] axis 2 is out of range for 2 dimensions"),
    ("nnp.concatenate([x, x[:, :2]])", ValueError,
     r"\[concatenate\] shapes \(3, 4\) and \(3, 2\) differ outside axis 0"),
    ("nnp.stack([x, x.T])", ValueError, r"\[stack\] .*\(3, 4\), \(4, 3\)"),
    ("x.reshape(5, 3)", ValueError, r"\[reshape\] cannot reshape \(3, 4\) into \(5, 3\)"),
    ("nnp.broadcast_to(x, (4, 3))", ValueError, r"\[broadcast_to\] \(3, 4\) does not broadcast to \(4, 3\)"),
    ("x + v", ValueError, r"\[add\] shapes do not broadcast: \(3, 4\) and \(5,\)"),
    ("np.add(x, v)", ValueError, r"\[add\] shapes do not broadcast: \(3, 4\) and \(5,\)"),
    ("x @ x", ValueError, r"\[matmul\] inner dimensions differ: \(3, 4\) @ \(3, 4\)"),
    ("nnp.linalg.inv(x)", ValueError, r"\[linalg.inv\] needs square matrices, not an array of shape \(3, 4\)"),
    ("nvm.asarray([[1, 2], [3]])", ValueError, r"\[asarray\] .*lengths; .*fill the short ones up"),
    ("nvm.asarray([1, [2]])", ValueError, r"\[asarray\] .*lengths"),
    ("x + [[1, 2], [3]]", ValueError, r"\[asarray\] .*lengths"),
    ("nvm.asarray(np.array([1, None], object))", TypeError,
     r"\[asarray\] nvm has no dtype for NumPy's object; .*astype"),
    ("nvm.asarray(np.array(['a']))", TypeError, r"\[asarray\] nvm has no dtype for NumPy's <U1; .*astype"),
    ("nvm.asarray(np.array(['2020'], 'M8[D]'))", TypeError, r"nvm has no dtype for NumPy's datetime64\[D\]; .*astype"),
    ("nvm.asarray(['a', 'b'])", TypeError, r"\[asarray\] cannot convert <class 'str'> to an array; pass"),
    ("nvm.zeros(3, dtype=object)", TypeError, "<class 'object'> is not a dtype of nvm; it has bool, int8"),
    ("nvm.zeros(3, dtype='<U3')", TypeError, "'<U3' is not a dtype of nvm; it has bool, int8"),
    ("nvm.asarray(300, dtype='uint8')", OverflowError, "300 does not fit uint8"),
    ("x.astype('nonsense')", TypeError, "'nonsense' is not a dtype of nvm; it has"),
    ("bool(x)", ValueError, r"\[bool\] .*12 elements, of shape \(3, 4\), is ambiguous; use any\(\) or all\(\)"),
    ("x and v", ValueError, r"\[bool\] .*shape \(3, 4\), is ambiguous"),
    ("0 < x < 3", ValueError, r"\[bool\] .*\(0 < x\) & \(x < 3\)"),
    ("float(x)", TypeError, r"float\(\) needs a 0-dimensional array, this one has 2 dimensions; item\(\) takes one"),
    ("hash(x)", TypeError, r"unhashable type: 'nvm.Array'.*id\(x\)"),
    ("len(x.sum())", TypeError, r"len\(\) of a 0-dimensional array"),
    ("x.item()", ValueError, r"item\(\) takes the only element of an array; this one has 12"),
    ("x[3]", IndexError, r"\[getitem\] index 3 is out of range for axis 0 of extent 3"),
    ("x[0, [1, 4]]", IndexError, r"\[getitem\] index 4 is out of range for axis 1 of extent 4"),
    ("x[0, 0, 0]", IndexError, r"\[getitem\] too many indices: the array has 2 dimensions, 3 were indexed"),
    ("x[1.0]", IndexError, r"\[getitem\] 1.0 cannot index an array"),
    ("x[x]", IndexError, r"\[getitem\] an index array has integers or bools, not float64"),
    ("x[v > 2]", IndexError, r"\[getitem\] a mask of shape \(5,\) indexes dimensions of shape \(3,\)"),
    ("x[[0, 1], [0, 1, 2]]", IndexError, r"\[getitem\] index arrays of shapes \(2,\), \(3,\) do not go together"),
    ("x[5] = 1", IndexError, r"\[setitem\] index 5 is out of range for axis 0 of extent 3"),
    ("x[[0, 5]] = 1", IndexError, r"\[setitem\] index 5 is out of range for axis 0 of extent 3"),
    ("x[0] = [1, 2, 3]", ValueError, r"\[setitem\] a value of shape \(3,\) does not broadcast to \(4,\)"),
    ("x[:2] = nvm.ones((3, 4))", ValueError, r"\[setitem\] a value of shape \(3, 4\) does not broadcast to \(2, 4\)"),
    ("x[0] = 'a'", TypeError, r"\[setitem\] 'a' cannot be stored in an array of float64"),
    ("x[0] = None", TypeError, r"\[setitem\] None cannot be stored in an array of float64"),
    ("v[0] = 1j", TypeError, "a complex number does not fit int64"),
    ("x[:] = x + 1j", TypeError, r"\[setitem\] complex values cannot be stored in an array of float64; .*real"),
    ("nvm.broadcast_to(v, (3, 5))[0] = 1", ValueError,
     r"\[setitem\] the array is read-only: a view that repeats elements.*write to a copy"),
    ("y = nvm.broadcast_to(x[0], (3, 4)); y += 1", ValueError,
     r"\[setitem\] the array is read-only: a view that repeats elements.*write to a copy"),
    ("v += 1.5", TypeError, r"\[add\] an in-place .* store float64 in an array of int64; x = x \+ y"),
    ("v /= 2", TypeError, r"\[divide\] an in-place .* store float64 in an array of int64; x"),
    ("v += nvm.ones((2, 5), dtype='i8')", ValueError,
     r"\[add\] an in-place .* shape of its array: \(2, 5\) into \(5,\)"),
    ("np.add(x, x, out=v)", TypeError, r"\[add\] a result of float64 is not stored in out of int64"),
    ("np.sin(x, out=nvm.zeros((2, 2)))", ValueError, r"\[sin\] .*\(3, 4\).*\(2, 2\)"),
    ("nvm.sin('a')", TypeError, "sin: 'x' is <class 'str'>, not an array"),
    ("nvm.asarray(v, device='gpu')", ValueError, "there is no device 'gpu'; devices are 'cpu', 'cuda'"),
    ("nvm.from_dlpack(3)", TypeError, r"\[from_dlpack\] .*int.*__dlpack__.*nvm.asarray"),
    ("x.__dlpack__(dl_device=(9, 0))", BufferError, "__dlpack__"),
    ("nvm.jit(lambda y: np.asarray(y))(x)", RuntimeError,
     r"numpy.asarray\(\) of a traced array \(float64, shape \(3, 4\)\)"),
    ("nvm.jit(lambda y: y if y.sum() > 0 else -y)(x)", RuntimeError, r"bool\(\) of a traced array .*nvm.where"),
    ("nvm.jit(lambda y: float(y.sum()))(x)", RuntimeError, r"float\(\) of a traced array"),
    ("nvm.jit(lambda y: y.tolist())(x)", RuntimeError, r"tolist\(\) of a traced array \(float64, shape \(3, 4\)\)"),
    ("nvm.jit(lambda y: y.tobytes())(x)", RuntimeError, r"tobytes\(\) of a traced array \(float64, shape \(3, 4\)\)"),
    ("nvm.jit(lambda y: np.from_dlpack(y))(x)", RuntimeError, r"__dlpack__\(\) of a traced array .*outside"),
    ("nvm.jit(lambda y: memoryview(y))(x)", RuntimeError, r"of a traced array \(float64, shape \(3, 4\)\)"),
    ("nvm.jit(lambda y: nvm.eval(1, y + 1))(x)", RuntimeError, r"eval\(\) of a traced array .*when it is called"),
    ("nvm.jit(lambda y: y[y > 0])(x)", RuntimeError, r"nonzero\(\) of a traced array \(bool, .*nvm.where\(mask"),
    ("nvm.jit(lambda y: nnp.save('/dev/null', y))(x)", RuntimeError, r"of a traced array \(float64, shape \(3, 4\)"),
    ("nvm.vmap(lambda y: np.asarray(y))(x)", RuntimeError, r"numpy.asarray\(\) of a traced array \(float64"),
    ("nvm.fori_loop(0, 2, lambda i, y: y * y.tolist()[0], v)", RuntimeError, r"tolist\(\) of a traced array \(int64"),
    ("x.sum(axs=1)", TypeError, "axs"),
    ("nvm.concatenate", AttributeError, "what NumPy calls concatenate is nvm.concat"),
    ("nnp.concatenat", AttributeError, "nvm.numpy.concatenate is spelled like it"),
]  # fmt: skip


@pytest.mark.parametrize("text, kind, message", WRONG, ids=[text for text, *_ in WRONG])
def test_wrong_input(text, kind, message):
    space = {"np": np, "nvm": nvm, "nnp": nnp, "x": nvm.asarray(np.arange(12.0).reshape(3, 4)), "v": nvm.arange(5)}
    before = space["x"].tolist(), space["v"].tolist()
    with pytest.raises(kind, match=message):
        exec(text, space)
    assert isinstance(space["x"], nvm.Array) and (space["x"].tolist(), space["v"].tolist()) == before
