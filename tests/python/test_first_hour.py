"""What is typed in the first hour, wrong things too: the same lines by NumPy and by nvm."""
import numpy as np
import pytest

import nvm

LINES = """
xp.array([1, 2, 3]) + 1
xp.array([[1, 2], [3, 4]]) @ xp.array([1, 1])
xp.arange(10)[2:8:2]
xp.arange(10).reshape(2, -1).T
xp.arange(10)[::-1]
xp.ones(3) * [1, 2, 3]
xp.arange(5)[xp.arange(5) > 2]
xp.where(xp.arange(5) > 2, 1, 0)
xp.where([True, False], [1, 2], [3, 4])
xp.where(xp.ones(2) > 0, xp.ones(2, 'f4'), 0.0)
xp.arange(5).mean()
xp.arange(6).reshape(2, 3).max(axis=1)
xp.arange(6).reshape((2, 3)).sum((0, 1))
xp.sum(xp.ones((2, 2)), 0)
xp.sum(xp.ones(3, dtype=bool))
xp.sum(xp.ones(3, 'int8'))
xp.mean(xp.ones(3, 'int8'))
xp.stack([xp.ones(2), xp.zeros(2)])
xp.clip(xp.arange(5), 1, 3)
2 ** xp.arange(3)
xp.arange(3.0) ** -1
1 / xp.arange(3)
xp.arange(3) // 0
-7 // xp.array([2, -2])
xp.array([7, -7]) % -3
divmod(xp.arange(4), 2)
xp.array([3, 1, 2]).argsort()
xp.argsort(xp.array([[3, 1, 2]]), 1)
xp.sort(xp.array([[3, 1], [1, 2]]), 0)
xp.array([3, 1, 2]).sort()
xp.array([3, 1, 2]).nonzero()
xp.arange(3).repeat([1, 0, 2])
xp.arange(3).repeat(2, 0)
xp.repeat(xp.arange(2), 2)
xp.arange(3).dot(2)
xp.ones((2, 3, 4)).dot(xp.ones((4, 2)))
xp.ones((2, 2, 3)).dot(xp.ones((2, 3, 2)))
xp.array([1, 3, 5]).searchsorted(4)
xp.searchsorted(xp.array([1, 3, 5]), 3, 'right')
xp.exp(1)
xp.sin([0, 1])
xp.array([True, 2])
xp.array([1, 2], dtype='f4')
xp.array([1.7, 2.2]).astype(int)
xp.array(range(3))
xp.asarray([range(2), range(2, 4)])
xp.array(range(0))
xp.asarray(range(3), dtype='f4')
xp.float32(3)
xp.float32(3) * xp.ones(2, 'f4')
xp.int8([1, 2])
xp.int64(2.7)
np.float64(2) * xp.ones(2)
np.ones(2) * xp.ones(2)
np.mean(xp.arange(4.0))
np.sum(xp.ones((2, 3)), axis=1)
np.max(xp.ones((2, 3)), axis=0)
np.all(xp.arange(3) > -1)
np.sort(xp.array([3, 1, 2]))
np.prod(xp.arange(1, 4))
np.array(xp.ones(2))
np.asarray([xp.ones(2), xp.ones(2)])
xp.array([[1, 2], [3, 4]])[0, 1]
xp.array([[1, 2], [3, 4]])[..., None]
xp.array([[1, 2], [3, 4]])[[0, 1], [1, 0]]
xp.array([[1, 2], [3, 4]])[[True, False]]
xp.array([1, 2, 3])[[-1]]
xp.array([1, 2, 3])[()]
xp.squeeze(xp.ones((1, 3, 1)))
xp.ones((1, 3, 1)).squeeze()
xp.ones((1, 3, 1)).squeeze(0)
xp.full(2, 7, int)
xp.full_like(xp.ones(2), 7, int)
xp.zeros(3, int)
xp.eye(3, 2, 1)
xp.linspace(0, 10, 5, dtype=int)
xp.arange(5, 0, -2)
xp.unstack(xp.ones((2, 2)))
[float(x) for x in xp.arange(3)]
sum(xp.arange(4))
max(xp.arange(4))
bool(xp.array([0]))
7 in xp.arange(3)
not xp.array(0)
str(xp.arange(3))
f"{xp.array(3.14159):.2f}"
f"{xp.array(3):>4d}|{xp.arange(2)}|{xp.array(True)}"
"%d" % xp.array(3)
xp.array([1 + 2j]).real
xp.arange(3)[0] = 1
xp.ones((2, 2))[0] *= 3
xp.array([1, 2, 3])[5]
xp.array([1, 2, 3])['a']
xp.arange(3) ** -1
xp.ones(3) + xp.ones(4)
xp.ones((2, 3)) @ xp.ones((2, 3))
xp.ones((2, 3)).reshape(4)
xp.arange(0).max()
bool(xp.ones(2))
hash(xp.ones(2))
f"{xp.arange(2):.2f}"
xp.ones(2, dtype='foo')
xp.zeros(2.5)
xp.sin(None)
xp.sin()
xp.sin('a')
xp.sum(xp.ones(3), foo=1)
xp.ones(2).foo
xp.array([1.0, 2]) & 1
xp.array([True]) - xp.array([True])
xp.asarray(300, 'int8')
""".strip().splitlines()


def told(x):
    """What a result is, in words that do not depend on who made it."""
    if isinstance(x, (list, tuple)):
        return [told(i) for i in x]
    if isinstance(x, (nvm.Array, np.ndarray, np.generic)):
        return x.dtype.name, x.shape, x.tolist()
    return x


def run(line, xp):
    if " = " in line or " *= " in line:
        exec(line, {"xp": xp, "np": np})
        return None
    return told(eval(line, {"xp": xp, "np": np}))


@pytest.mark.parametrize("line", LINES)
def test_as_numpy(line):
    try:
        want = run(line, np)
    except Exception as e:
        with pytest.raises(type(e)):
            run(line, nvm)
    else:
        assert run(line, nvm) == want


def test_sorting_in_place():
    x, a = np.array([[3, 1, 2], [1, 0, 5]]), nvm.asarray([[3, 1, 2], [1, 0, 5]])
    for axis in (1, 0):
        x.sort(axis)
        assert a.sort(axis) is None and a.tolist() == x.tolist()
    row = a[0]
    row.sort(descending=True)
    assert a[0].tolist() == sorted(x[0].tolist(), reverse=True)


def test_printing_while_tracing():
    texts = []
    nvm.jit(lambda x: texts.append(f"{x} {x:.3f}") or x)(2.0)
    assert texts == ["<traced array of float64, shape ()> <traced array of float64, shape ()>"]


def test_numpy_stays_out_of_a_trace():
    for f in (np.asarray, np.sin, lambda x: x.tolist(), float, lambda x: x[x > 0], nvm.nonzero, nvm.sort):
        with pytest.raises((RuntimeError, TypeError)):
            nvm.jit(f)(nvm.ones(3))
