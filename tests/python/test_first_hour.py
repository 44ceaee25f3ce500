"""What is typed in the first hour, wrong things too: the same lines by NumPy and by nvm."""

import os
import subprocess
import sys

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
xp.exp(0)
xp.sin([0, 0])
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
xp.zeros(np.array([2, 3]))
xp.ones(6).reshape(np.array([2, 3]))
xp.sum(xp.ones((2, 3)), axis=np.array(1))
xp.arange(np.array(3))
xp.zeros(np.array([1.5]))
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
xp.array([1, 2, 3])[10**30]
xp.array([1, 2, 3])['a']
xp.arange(3) ** -1
xp.ones(3) + xp.ones(4)
xp.ones((2, 3)) @ xp.ones((2, 3))
xp.ones((2, 3)).reshape(4)
xp.ones((0, 3)).reshape(-1, 3), xp.ones((0, 3)).reshape(-1)
xp.ones((0, 3)).reshape(0, -1)
xp.arange(0).max()
bool(xp.ones(2))
hash(xp.ones(2))
f"{xp.arange(2):.2f}"
xp.ones(2, dtype='foo')
[xp.ones(1, c) for c in '? b B h H i I l L q Q e f d F D <f4 |u1 =i2'.split()]
xp.zeros(2.5)
xp.sin(None)
xp.sin()
xp.sin('a')
xp.sum(xp.ones(3), foo=1)
xp.ones(2).foo
xp.array([1.0, 2]) & 1
xp.array([True]) - xp.array([True])
xp.asarray(300, 'int8')
a = xp.arange(6); a[1:] = a[:-1]; r = a
a = xp.arange(6); a[:-1] = a[1:]; r = a
a = xp.arange(6); a[::-1] = a; r = a
a = xp.arange(9).reshape(3,3); a += a.T; r = a
a = xp.arange(9).reshape(3,3).copy(); a[0], a[1] = a[1], a[0]; r = a
a = xp.arange(9).reshape(3,3).copy(); a[[0,1]] = a[[1,0]]; r = a
a = xp.arange(6); b = a; b += 1; r = a
a = xp.arange(6); b = a[2:]; b[1:][0] = 99; r = a
a = xp.arange(6); a[a % 2 == 0] *= -1; r = a
a = xp.arange(6); a[[0,0,1]] += 1; r = a
a = xp.arange(6.); a[2:4] = xp.nan; r = xp.isnan(a)
a = xp.arange(6); a //= 2; r = a
a = xp.arange(6); a **= 2; r = a
a = xp.arange(6, dtype='f4'); a += xp.ones(6); r = a
a = xp.arange(6); a += xp.ones((2,6), dtype=int)
a = xp.zeros((2,3)); a[:, 1] = [5, 6]; r = a
a = xp.zeros((2,3)); a[1] = 7; r = a
a = xp.zeros((2,3)); a[:, [0, 2]] = xp.array([[1, 2], [3, 4]]); r = a
a = xp.zeros((2,3)); a[[0, 1], [0, 2]] = xp.array([[[1, 2]]]); r = a
a = xp.zeros((2,3)); a[[0, 1], [0, 2]] = xp.array([[1], [2]]); r = a
a = xp.zeros((2,3)); a[xp.array([True, False])] = 3; r = a
a = xp.zeros((2,3)); a[..., -1] = 3; r = a
a = xp.zeros((2,3)); a[None] = 3; r = a
a = xp.zeros((2,3)); a[()] = 3; r = a
a = xp.zeros((2,3)); a[5] = 3
a = xp.zeros((2,3)); a[0, 0, 0] = 3
a = xp.zeros((2,3)); a[[5]] = 3; r = a.tolist()
a = xp.zeros((2,3)); a[0] = [1, 2]
a = xp.array(5); a[...] = 3; r = a
a = xp.array(5); a += 1; r = a
a = xp.ones(3, dtype=bool); a &= xp.array([True, False, True]); r = a
a = xp.ones(3, dtype=bool); a += True; r = a
a = xp.ones(3, dtype='u1'); a -= 2; r = a
a = xp.ones(3, dtype='u1'); a += xp.ones(3, 'u8'); r = a
a = xp.ones(3, dtype='i1'); a += xp.ones(3, 'u4'); r = a
a = xp.array([200], 'u1') + xp.array([100], 'u1'); r = a
a = xp.array([127], 'i1') + 1; r = a
xp.array([-128], 'i1') // -1
-xp.array([-128], 'i1')
abs(xp.array([-128], 'i1'))
xp.array([1], 'u8') - xp.array([2], 'u8')
xp.array([2**62]) * 4
xp.sum(xp.array([200, 100], 'u1'))
xp.prod(xp.array([100, 100], 'i1'))
xp.cumulative_sum(xp.array([200, 100], 'u1'))
xp.sum(xp.array([1e308, 1e308, -1e308]))
xp.max(xp.array([1., float('nan')]))
xp.argmin(xp.array([1., float('nan'), 0]))
xp.sort(xp.array([3., float('nan'), 1]))
xp.unique_values(xp.array([3., 1, 3]))
xp.array([0.1, 0.2]).sum() == 0.3
xp.floor(xp.array([-1.5]))
xp.round(xp.array([0.5, 1.5, 2.5, -0.5]))
xp.trunc(xp.array([-1.5]))
xp.array([5, -5]) % 3
xp.array([5., -5.]) % -3
xp.remainder(xp.array([5., -5.]), float('inf'))
xp.array([1., 0., -1.]) / 0
xp.array([7, -7]) // 2
xp.array([7., -7.]) // 2
xp.array([0.]) ** 0
xp.array([2, 3]) ** xp.array([3, 2])
xp.array([True, False]) * 2
xp.array([True]) / xp.array([True])
xp.array([1, 2]) == xp.array([1., 2.])
xp.array([1+1j]) * 1j
xp.array([1, 2, 3], 'f2') * 1000
xp.array([70000.], 'f4').astype('f2')
xp.array([3.99]).astype('i4')
xp.array([256]).astype('u1')
xp.array([-1]).astype('u4')
xp.array([0.5]).astype(bool)
xp.where(xp.array([True, False]), 1, 2.5)
xp.where(xp.array([True, False]), xp.array([1, 2], 'i1'), 3)
xp.where(1, 2, 3)
xp.maximum(xp.array([1, 2]), 1.5)
xp.clip(xp.array([1, 5, 9]), 2.5, None)
xp.clip(xp.array([1, 5, 9]), None, 6)
xp.clip(xp.array([1, 5, 9]), 6, 2)
xp.clip(xp.array([1., float('nan')]), 0, 1)
xp.concat([xp.array([1]), xp.array([2.5])])
xp.stack([xp.array([1], 'i1'), xp.array([2], 'u1')])
xp.concat([xp.ones((2, 0)), xp.ones((2, 2))], axis=1)
xp.linspace(0, 1, 1)
xp.linspace(5, 5, 3)
xp.linspace(1, 0, 3)
xp.arange(3, 1)
xp.arange(5., 0., -1.5)
xp.eye(2, dtype=int)
xp.tril(xp.arange(9).reshape(3, 3), k=-1)
xp.roll(xp.arange(6).reshape(2, 3), 1)
xp.roll(xp.arange(6).reshape(2, 3), (1, 1), (0, 1))
xp.flip(xp.arange(6).reshape(2, 3))
xp.tile(xp.array([1, 2]), (2, 1, 2))
xp.repeat(xp.array([[1, 2]]), 2, axis=0)
xp.moveaxis(xp.zeros((1, 2, 3)), [0, 1], [-1, -2]).shape
xp.broadcast_to(xp.array([1, 2]), (0, 2)).shape
xp.sum(xp.zeros((0, 3)), axis=0)
xp.max(xp.zeros((0, 3)), axis=1).shape
xp.mean(xp.zeros((0, 3)), axis=0)
xp.argmax(xp.zeros((0,)))
xp.all(xp.array([])), xp.any(xp.array([]))
xp.prod(xp.array([]))
xp.diff(xp.array([1]))
xp.diff(xp.array([1, 5, 3]), 2)
xp.diff(xp.array([[1, 2], [4, 8]]), 1, 0)
xp.diff(xp.array([1., 2, 4]), prepend=0), xp.diff(xp.array([[1, 2], [4, 8]]), axis=0, append=9)
xp.matmul(xp.ones((0, 3)), xp.ones((3, 2)))
xp.matmul(xp.ones((2, 0)), xp.ones((0, 3)))
xp.matmul(xp.ones((5, 2, 3)), xp.ones((3,)))
xp.matmul(xp.ones(3), xp.ones((5, 3, 2)))
xp.ones((3, 1)) @ xp.ones((1, 3))
xp.array([[1, 2], [3, 4]], 'i1') @ xp.array([[100, 1], [1, 1]], 'i1')
xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)))
xp.tensordot(xp.ones((2, 3)), xp.ones((2, 3)))
xp.tensordot(xp.ones(3), xp.ones(3), 1)
xp.vecdot(xp.array([1j, 2]), xp.array([1j, 2]))
xp.take(xp.arange(4), xp.array([[0, 1], [2, 3]]))
xp.take(xp.arange(4), 2)
xp.take(xp.arange(4), -1)
xp.take(xp.arange(4), [9]).tolist()
xp.take(xp.arange(4).reshape(2, 2), [1], axis=1)
xp.take_along_axis(xp.array([[3, 1, 2]]), xp.array([[1, 2, 0]]), axis=1)
xp.count_nonzero(xp.array([[0, 1], [2, 0]]), axis=0)
xp.searchsorted(xp.array([1., 2, 3]), xp.array([[0, 2.5], [9, 1]]))
[xp.searchsorted(xp.array(x), xp.array([np.nan, 2])) for x in ([1., 2, np.nan, np.nan], [1, 3], [np.nan])]
[xp.searchsorted(xp.array(x), xp.array([np.nan, 2]), 'right') for x in ([1., 2, np.nan, np.nan], [1, 3], [np.nan])]
xp.isin([1, 5], [5])
xp.nonzero(xp.array([[0, 1], [2, 0]]))
xp.meshgrid([1, 2], [3, 4, 5], indexing='ij')
xp.broadcast_arrays(xp.array([1, 2]), xp.array([[1], [2]]))
xp.var(xp.array([1, 2, 3, 4])), xp.std(xp.array([[1., 2], [3, 5]]), axis=0)
xp.unstack(xp.arange(4).reshape(2, 2), axis=1)
xp.isfinite(xp.array([1, 2])), xp.signbit(xp.array([-0.0]))
xp.square(xp.array([3], 'i1')), xp.reciprocal(xp.array([2.]))
xp.astype(xp.array([1.5]), 'i8'), xp.result_type('i4', 'f4') == 'float64'
xp.can_cast('i4', 'f8'), xp.can_cast('f8', 'i4')
xp.array([[1, 2], [3, 4]]).sum(axis=-1, keepdims=True)
xp.array([[1, 2], [3, 4]]).mean(0), xp.array([[1, 2], [3, 4]]).std()
xp.array([1, 2, 4]).var(ddof=1), np.std(xp.ones((2, 3)), axis=0), np.var(xp.array([1., 2, 4]), ddof=1)
xp.var(xp.array([1., 2, 4]), ddof=1), xp.std(xp.array([1., 2, 4]), correction=1)
xp.sum(xp.ones(2), ddof=1)
xp.array([[1, 2], [3, 4]]).all(axis=1), xp.array([1, 2]).prod(), xp.array([1, 2]).argmin()
xp.array([[1, 2], [3, 4]]).reshape(-1), xp.array([[1, 2], [3, 4]]).reshape((4, 1)).shape
xp.array([1, 2]).astype(float) / 3
[int(i) for i in xp.array([1, 2])], list(map(float, xp.array([1, 2])))
xp.array([1, 2]).tolist() + [3]
dict(zip([1, 2], xp.array([1., 2.]).tolist()))
3 - xp.array([1, 2]), 3. / xp.array([1, 2]), 3 % xp.array([2, 5]), 2 // xp.array([3., 4])
[1, 2] + xp.array([1, 2]), (1, 2) * xp.array([1, 2]), [[1], [2]] @ xp.array([[1, 2]])
1 < xp.array([1, 2]), [1, 3] > xp.array([1, 2])
5 & xp.array([1, 4]), 1 << xp.array([1, 4]), True ^ xp.array([True, False])
""".strip().splitlines()


def told(x):
    """What a result is, in words that do not depend on who made it."""
    if isinstance(x, (list, tuple)):
        return [told(i) for i in x]
    if isinstance(x, (nvm.Array, np.ndarray, np.generic)):
        return x.dtype.name, x.shape, repr(x.tolist())
    return x


def run(line, xp):
    """The value of an expression, or of `r` behind statements."""
    names = {"xp": xp, "np": np}
    try:
        code = compile(line, "line", "eval")
    except SyntaxError:
        exec(line, names)
        return told(names.get("r"))
    return told(eval(code, names))


@pytest.mark.filterwarnings("ignore")
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
    for f in (
        np.asarray,
        lambda x: np.sin(np.asarray(x)),
        lambda x: x.tolist(),
        float,
        lambda x: x[x > 0],
        nvm.nonzero,
        nvm.unique_values,
    ):
        with pytest.raises((RuntimeError, TypeError)):
            nvm.jit(f)(nvm.ones(3))


def test_a_name_of_numpy_that_the_standard_spells_otherwise():
    from nvm._names import OF_NUMPY

    for name, here in OF_NUMPY.items():
        assert hasattr(np, name) and hasattr(nvm, here)
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; what NumPy calls {name} is nvm.{here}$"):
            getattr(nvm, name)
    with pytest.raises(AttributeError, match="no attribute 'arrange'; nvm.arange is spelled like it$"):
        nvm.arrange
    with pytest.raises(AttributeError, match="no attribute 'quux'$"):
        nvm.quux
    assert not hasattr(nvm, "__wrapped__")
    with pytest.raises(ImportError):
        from nvm import concatenate  # noqa: F401


def test_a_command_that_is_not_there():
    def run(*args, **env):
        command = [sys.executable, "-m", "nvm", *args]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | env)

    for args, said in (
        (["setings"], "nvm has no command 'setings'; did you mean 'settings'?"),
        (["quux"], "nvm has no command 'quux'"),
        (["info", "x"], "nvm info takes no arguments"),
    ):
        p = run(*args)
        assert p.returncode == 2 and p.stderr.startswith(said + "\n") and "python -m nvm info" in p.stderr
    p = run("settings", NVM_ISA="avx9")
    assert (
        "RuntimeWarning: NVM_ISA=avx9 in the environment is invalid and ignored; it must be native, 128, 256 or 512"
        in p.stderr
    )
    assert p.returncode == 0 and "NVM_ISA = native" in p.stdout
