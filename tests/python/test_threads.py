"""Threads that evaluate side by side: graphs of their own, shared pending arrays, failures, donation, writes."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nvm


def together(*work):
    """Runs each function in a thread of its own, at the same time; returns their results."""
    gate = threading.Barrier(len(work))

    def begin(f):
        gate.wait()
        return f()

    with ThreadPoolExecutor(len(work)) as pool:
        return [f.result(timeout=120) for f in [pool.submit(begin, f) for f in work]]


def test_graphs_of_their_own():
    def count(k):
        x = nvm.asarray(np.arange(100.0))
        total = 0.0
        for i in range(200):
            total += float((x * k + i).sum())
        return total

    want = [sum(4950.0 * k + 100 * i for i in range(200)) for k in (1, 2, 3)]
    assert together(*[lambda k=k: count(k) for k in (1, 2, 3)]) == want


@pytest.mark.parametrize("seed", range(20))
def test_the_same_pending_array(seed):
    x = nvm.asarray(np.random.default_rng(seed).random(50 + seed))  # a shape that is new: it is planned
    y = nvm.exp(x) + 1
    want = np.exp(np.asarray(x)) + 1
    got = together(lambda: np.asarray(y), lambda: np.asarray(y * 2) / 2, lambda: float(y.sum()), lambda: np.asarray(y))
    for g in (got[0], got[1], got[3]):
        np.testing.assert_allclose(g, want, rtol=1e-15)
    np.testing.assert_allclose(got[2], want.sum(), rtol=1e-14)


def test_a_failure_is_that_threads_own():
    x = nvm.asarray(np.arange(10))
    bad, shared = nvm.asarray([1, 2, 3]), x + 1

    def fails():
        with pytest.raises(IndexError):
            np.asarray(nvm.take(bad, nvm.asarray([0, 7])) + shared[0])
        return "failed"

    for _ in range(20):
        assert together(fails, lambda: int((shared * 2).sum()), fails) == ["failed", 110, "failed"]


def test_donated_memory_is_not_taken_from_others():
    for i in range(50):
        x = nvm.asarray(np.full(1000 + i, 3.0)) + 0
        nvm.eval(x)
        a, b = x + 1, x * 10
        nvm.donate(x)
        del x
        first, second = together(lambda a=a: np.asarray(a), lambda b=b: np.asarray(b))
        assert (first == 4).all() and (second == 30).all()


def test_writes_while_another_evaluates():
    for i in range(50):
        x = nvm.asarray(np.zeros(200 + i))
        before = nvm.exp(x) * 2

        def write(x=x):
            x[10:20] = 5
            x += 1
            return np.asarray(x)

        old, new = together(lambda before=before: np.asarray(before), write)
        assert (old == 2).all()
        assert (new[10:20] == 6).all() and (new[:10] == 1).all() and (new[20:] == 1).all()


def test_random_graphs_of_shared_arrays():
    for seed in range(30):
        r = random.Random(seed)
        values = [float(r.randrange(5)) for _ in range(3)]
        arrays = [nvm.asarray(np.full(8, v)) for v in values]
        for _ in range(15):
            i, j, op = r.randrange(len(arrays)), r.randrange(len(arrays)), r.choice("+-m")
            f = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "m": nvm.maximum}[op]
            arrays.append(f(arrays[i], arrays[j]))
            values.append(max(values[i], values[j]) if op == "m" else f(values[i], values[j]))
        order = [r.sample(range(len(arrays)), len(arrays)) for _ in range(3)]

        def read(order, arrays=arrays):
            return {i: np.asarray(arrays[i]) for i in order}

        for got in together(*[lambda o=o: read(o) for o in order]):
            assert all((got[i] == values[i]).all() for i in got)
