"""What is given away, lent and watched: donation, borrowed memory that changes, what is told about planning. On the
default device."""

import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import nvm

LOST = "donated"


def full(n, value):
    return (nvm.zeros(n) + value).eval()


def pointer(x):
    """The address of the memory, looked at through a capsule that frees itself."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = x.__dlpack__()
    return ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_void_p))[0]


def test_a_lazy_result_takes_donated_memory():
    x = full(1000, 3.0)
    at, y = pointer(x), x * 2 + 1
    nvm.donate(x)
    assert x.shape == (1000,) and pointer(y.eval()) == at and y[:2].tolist() == [7, 7]
    for read in (
        x.tolist,
        lambda: x + 1,
        lambda: x[0],
        lambda: float(x[0]),
        lambda: nvm.eval(x),
        lambda: np.asarray(x),
        lambda: repr(x),
    ):
        with pytest.raises(RuntimeError, match=LOST):
            read()
    with pytest.raises(ValueError, match="view"):
        nvm.donate(y[1:])


def test_where_there_is_no_room_nothing_is_written():
    """A product of 16-bit numbers needs memory beside its result, which is there before anything runs."""
    a = nvm.asarray(np.ones((700, 700), "float32"), device="cpu").astype("bfloat16").eval()
    f = nvm.jit(lambda x, a: (x * 2 + 1, a @ a), donate_argnums=0)

    def given():
        return (nvm.zeros((300, 300), device="cpu") + 3).eval()

    assert f(given(), a)[0][0, 0] == 7
    x = given()
    try:
        nvm.set("NVM_MEM_CACHE", 0)
        nvm.set("NVM_MEM_LIMIT", nvm.counters()["bytes_used"] + (2 << 20))
        with pytest.raises(MemoryError):
            f(x, a)
    finally:
        nvm.set("NVM_MEM_LIMIT", None)
        nvm.set("NVM_MEM_CACHE", None)
    assert np.all(np.asarray(x) == 3) and f(x, a)[0][0, 0] == 7


def test_what_others_hold_is_left_alone():
    x = full(100, 2.0)
    y, keep = x + 1, x.copy()
    at = pointer(x)
    nvm.donate(x)
    assert pointer(y.eval()) != at and keep[0] == 2 and y[0] == 3
    x = full(100, 2.0)
    held, y = x * 5, None
    y = held + 1
    nvm.donate(x)  # held is pending and will need x again
    assert y[0] == 11 and held[0] == 10
    n = np.ones(4)
    x = nvm.asarray(n, copy=False)
    y = x + 1
    nvm.donate(x)  # not nvm's to give
    assert y.tolist() == [2] * 4 and n.tolist() == [1] * 4


def test_jitted_calls_take_their_donated_arguments():
    f = nvm.jit(lambda a, b: a * b + 1, donate_argnums=0)
    a, b = full(1000, 3.0), full(1000, 2.0)
    last = 3.0
    for _ in range(3):
        at = pointer(a)
        r = f(a, b)
        assert pointer(r) == at and r[0] == float(np.asarray(b)[0]) * last + 1
        with pytest.raises(RuntimeError, match=LOST):
            a.tolist()
        last, a = float(r[0]), r
    assert b[0] == 2
    d = full(10, 5.0)
    assert f(d, d).tolist() == [26] * 10  # twice the same: computed beside it
    c = full(10, 4.0)
    assert f(c, 2.0).tolist() == [9] * 10 and f(np.ones(3), np.ones(3)).tolist() == [2] * 3
    g = nvm.jit(lambda p: (p[0].T, p[0] + p[1]), donate_argnums=(0,))
    x, y = full((2, 3), 2.0), full((2, 3), 1.0)
    t, s = g((x, y))
    assert t.tolist() == [[2, 2]] * 3 and s.tolist() == [[3] * 3] * 2
    for v in (x, y):
        with pytest.raises(RuntimeError, match=LOST):
            v.tolist()
    with pytest.raises(ValueError):
        nvm.jit(lambda a: a, static_argnums=0, donate_argnums=0)


def test_donated_arguments_are_counted_from_either_end():
    a, b = full(10, 2.0), full(10, 3.0)
    assert nvm.jit(lambda a, b: a + b, donate_argnums=-1)(a, b)[0] == 5 and a[0] == 2
    with pytest.raises(RuntimeError, match=LOST):
        b.tolist()
    for wrong in (2, -3):
        with pytest.raises(ValueError, match=f"donate_argnums has {wrong}"):
            nvm.jit(lambda a, b: a + b, donate_argnums=wrong)


def test_a_failed_call_leaves_the_others():
    f = nvm.jit(lambda a, i, b: nvm.take(a, i, axis=0) + b, donate_argnums=0)
    a, b = full(4, 1.0), full(2, 2.0)
    assert f(a, np.array([0, 3]), b).tolist() == [3, 3]
    a = full(4, 1.0)
    with pytest.raises(IndexError):
        f(a, np.array([0, 4]), b).tolist()
    with pytest.raises(RuntimeError, match=LOST):
        a.tolist()
    assert b.tolist() == [2, 2]


def test_borrowed_memory_that_changes_is_found():
    nvm.set("check", "borrow")
    try:
        n = np.arange(5.0)
        a = nvm.asarray(n[::-1], copy=False)
        assert (a + 1).tolist() == [5, 4, 3, 2, 1]
        f = nvm.jit(lambda v: v * 2)
        assert f(a).tolist() == [8, 6, 4, 2, 0]
        n[2] = 7
        for read in (lambda: (a + 1).tolist(), lambda: f(a), a.tolist):
            with pytest.raises(RuntimeError, match="borrow.*5 float64"):
                read()
        n[2] = 2
        assert a[2] == 2
        assert f(n).tolist() == [0, 2, 4, 6, 8]  # lent for the call alone
        n[0] = 1
        assert f(n)[0] == 2
    finally:
        nvm.set("check", None)


def test_variants_of_a_traced_function_are_bounded():
    f = nvm.jit(lambda v: v + 1)
    n = np.zeros((400, 4))
    nvm.set("mem_cache", "0")
    try:
        for k in range(1, 200):  # a program for each stride
            assert f(np.ndarray((2,), buffer=n, strides=(8 * k,))).tolist() == [1, 1]
    finally:
        nvm.set("mem_cache", "1G")
    assert f.cache_size() == 1


def test_views_captured_by_calls_in_many_threads():
    base = full((50, 8), 1.0)
    row = base[3]
    f = nvm.jit(lambda v: v + row)
    f(np.ones(8))
    for turn in range(20):
        base[...] = float(turn)  # the view is derived again by whichever call comes first
        got = []
        threads = [threading.Thread(target=lambda: got.append(f(np.ones(8)).tolist())) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert got == [[turn + 1.0] * 8] * 6


def test_explain_in_many_threads():
    f = nvm.jit(lambda v: nvm.softmax(v * 2))
    texts = []
    threads = [threading.Thread(target=lambda: texts.append(f.explain(np.ones((3, 4))))) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(texts) == 6 and len(set(texts)) == 1


def test_stages_tell_their_times(tmp_path):
    code = "import nvm; [(nvm.sin(nvm.zeros(5)) + k).eval() for k in range(2)]; (nvm.zeros((2, 2)).T * 2).eval()"
    env = {
        **os.environ,
        "NVM_VERBOSE": "3",
        "NVM_DUMP": "graph,plan,kernel",
        "NVM_DUMP_DIR": str(tmp_path),
        "NVM_CUDA_DIR": "off",
    }
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert p.returncode == 0, p.stderr
    for stage in ("collect", "graph", "plan", "prepare"):
        assert f"program-1: {stage} " in p.stderr and f"program-2: {stage} " in p.stderr
    names = {f.name for f in tmp_path.iterdir()}
    assert {"program-1.graph", "program-2.graph", "program-1.plan"} <= names
    kernels = [n for n in names if n.endswith(".kernel")]
    names = {n.split(".")[0] for n in kernels}
    assert 1 < len(kernels) > len(names)  # of one name, in files of their own


READERS = {
    "tolist": lambda x, v: set(v.tolist()),
    "eval": lambda x, v: nvm.eval(v, x, v + 1),
    "item": lambda x, v: {float(v[3])},
    "buffer": lambda x, v: set(np.asarray(v).tolist()),
    "tobytes": lambda x, v: set(np.frombuffer(v.tobytes()).tolist()),
    "explain": lambda x, v: nvm.explain(v, x),
    "nonzero": lambda x, v: {len(nvm.nonzero(v == v)[0]) - v.size},
    "sort": lambda x, v: set(nvm.sort(v).tolist()),
    "print": lambda x, v: str(v),
    "argument": lambda x, v: set(AGAIN(v).tolist()),
    "captured": lambda x, v: set(CAPTURED(1.0).tolist()),
}
SHARED = nvm.zeros(20000)
AGAIN, CAPTURED = nvm.jit(lambda a: a * 2), nvm.jit(lambda k: SHARED[5:] * k)


@pytest.mark.parametrize("name", READERS)
def test_reading_while_another_thread_writes(name):
    """Each read sees one of the values that were written, whole."""
    view, seen, over = SHARED[10:-10], [], threading.Event()

    def write():
        k = 0
        while not over.is_set():
            k += 1
            SHARED[...] = nvm.full(20000, float(k)) * 1.0

    def read():
        try:
            for _ in range(100):
                got = READERS[name](SHARED, view)
                if isinstance(got, set) and len(got) != 1:
                    seen.append(got)
        except Exception as e:
            seen.append(e)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=write)] + [threading.Thread(target=read) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads[1:]:
            t.join()
    finally:
        over.set()
        threads[0].join()
        sys.setswitchinterval(interval)
    assert not seen
