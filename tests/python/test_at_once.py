"""Operations of numbers are computed when they are called, with the bits of a plan: every operation of the table by
dtype, pairs of dtypes, Python numbers beside them; and what stays pending."""

import itertools

import numpy as np
import pytest

import nvm
import refs
import test_ops
import test_tiers

put = test_tiers.put
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
NOT_ONE = ["gelu", "clip", "isclose", "real", "imag"]  # they are made of several nodes, or are views
NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.fixture(autouse=True)
def settings():
    yield
    nvm.set("TIER", "auto")


def planned(make):
    nvm.set("TIER", "planned")
    made = [np.asarray(x) for x in make()]
    nvm.set("TIER", "auto")
    return made


def at_once(make):
    """The values of what make() returns, and the number of evaluations that they took."""
    before = nvm.counters()["evaluations"]
    made = [np.asarray(x) for x in make()]
    return made, nvm.counters()["evaluations"] - before


def both(make, what, evaluations=0):  # None: any number
    got, ran = at_once(make)
    assert evaluations in (None, ran), what
    for i, (a, b) in enumerate(zip(planned(make), got)):
        test_tiers.same(a, b, (what, i))


def numbers(rng, dtype, lo=-4, hi=4):
    x = test_ops.draw(rng, dtype, (3,), lo, hi)
    special = np.array(test_ops.SPECIALS if np.dtype(dtype).kind in "fc" else [0, 1])
    return [put(v) for v in np.concatenate([x, special.astype(dtype)])]


@pytest.mark.parametrize("name,dtype", test_ops.CASES)
def test_map(name, dtype, rng):
    m = refs.MAPS[name]
    f = getattr(nvm, name)
    known = name.startswith("is") and np.dtype(dtype).kind in "biu"  # a constant, whatever the number is
    ran = None if known or name in NOT_ONE or dtype == "float16" else 0
    for x in itertools.islice(itertools.product(numbers(rng, dtype, m.lo, m.hi), repeat=m.nin), 64):
        both(lambda x=x: [f(*x)], (name, dtype), ran)


@pytest.mark.parametrize("name", ["add", "divide", "less", "atan2", "logical_and", "where"])
def test_pairs_of_dtypes(name, rng):
    for s, t in itertools.product(DTYPES, DTYPES):
        x, y = put(test_ops.draw(rng, s, (1,))[0]), put(test_ops.draw(rng, t, (1,))[0])
        if name == "atan2" and "complex" in s + t:
            continue
        args = (put(np.bool_(True)), x, y) if name == "where" else (x, y)
        if name == "less" and "complex" in s + t:
            continue
        f = getattr(nvm, name)
        both(lambda f=f, args=args: [f(*args)], (name, s, t))


def test_python_numbers(rng):
    for t in DTYPES:
        x = put(test_ops.draw(rng, t, (1,), 1, 4)[0])
        for k in (True, 2, 3, 0.1, 2.5, 1e300, 2 + 1j):
            both(lambda x=x, k=k: [x + k, k * x, x / k], (t, k))
            if t not in ("bool", "complex64", "complex128") and not isinstance(k, complex):
                both(lambda x=x, k=k: [x < k, k >= x], (t, k))


def test_arithmetic_of_float64_rounds_python_integers_once(rng):
    special = [put(np.float64(v)) for v in (*test_ops.SPECIALS, 5e-324, 2.0**53 + 2, -1.5e308)]
    for x, k in itertools.product(special, (0, -0.0, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 + 1, 1e308)):
        both(lambda x=x, k=k: [x + k, k + x, x - k, k - x, x * k, k * x, x / k, k / x], k)


def test_floats_of_few_bits_stay_pending(rng):
    for t in NARROW:
        x, y = (nvm.astype(put(test_ops.draw(rng, "float32", (1,))[0]), t).eval() for _ in range(2))
        both(lambda x=x, y=y: [nvm.astype((x + y) * y, "float32")], t, evaluations=1)


def test_powers(rng):
    for t, x in itertools.product(["int32", "float32", "float64", "complex128"], numbers(rng, "float64", 1, 4)[:3]):
        v = nvm.astype(x, t).eval()
        both(lambda v=v: [v**2], t, evaluations=int(t == "complex128"))
        for k in (0, 1, 3, 4) + (() if t == "int32" else (-1, -2, 0.5, -0.5, 1.7)):
            both(lambda v=v, k=k: [v**k], (t, k), evaluations=1)


def test_one_element_is_computed_by_the_loops_for_few(rng):
    """Up to 8 elements have loops of their own in the interpreter: they have the bits of the first elements of many."""
    for name, dtype in test_ops.CASES:
        m = refs.MAPS[name]
        args = [np.tile(test_ops.draw(rng, dtype, (12,), m.lo, m.hi), 12) for _ in range(m.nin)]
        nvm.set("TIER", "direct")
        want = np.asarray(getattr(nvm, name)(*map(put, args)))
        for n in (1, 2, 7, 8, 9):
            got = np.asarray(getattr(nvm, name)(*(put(a[:n].copy()) for a in args)))
            test_tiers.same(want[:n], got, (name, dtype, n))
        nvm.set("TIER", "auto")


def test_errors_are_those_of_nodes():
    x = put(np.int8(5))
    for make in (lambda: x + 300, lambda: x**-1, lambda: nvm.bitwise_and(x, 0.5), lambda: nvm.add(x, None)):
        messages = set()
        for tier in ("auto", "planned"):
            nvm.set("TIER", tier)
            with pytest.raises((OverflowError, ValueError, TypeError)) as e:
                make()
            messages.add(str(e.value))
        assert len(messages) == 1, messages
    nvm.set("TIER", "auto")
    assert bool(x < 300) and not bool(x > 300)


def test_what_a_number_was_computed_from_may_change():
    x = put(np.arange(3.0))
    s = nvm.sum(x[:1])
    s.eval()
    t = s + 1
    s += 5
    assert float(t) == 1 and float(s) == 5
    u = t
    t += 1
    assert float(u) == 2 and u is t


def test_a_trace_computes_nothing_at_once():
    s, t = put(np.float64(1.5)), put(np.float64(2))
    f = nvm.jit(lambda a: a * s + t)
    assert float(f(put(np.float64(3)))) == 6.5
    s += 1  # an array from outside of the trace is read again
    assert float(f(put(np.float64(3)))) == 9.5


def test_pending_operands_stay_pending():
    x = put(np.arange(300.0))
    _, ran = at_once(lambda: [nvm.sum(x) * 2 + 1])
    assert ran == 1


def test_views_of_few_elements_and_constants_need_no_plan():
    a = put(np.arange(100.0))
    views, ran = at_once(lambda: [a[1:], a[::-1], nvm.flip(a), a[10:90].reshape(8, 10)])
    assert ran == 0
    for v, w in zip(views, [np.arange(1.0, 100), np.arange(100.0)[::-1], np.arange(100.0)[::-1]]):
        assert np.array_equal(v, w)
    before = nvm.counters()["programs_planned"]
    for z in (nvm.zeros(100), nvm.ones((7, 11), dtype="int32"), nvm.full((3, 1, 2), True)):
        assert bool(nvm.all(z.eval() == z[(0,) * z.ndim]))
    assert nvm.counters()["programs_planned"] == before


def test_a_slice_out_of_range_is_told_by_the_library():
    a = put(np.arange(12.0).reshape(3, 4))
    assert a[:0].shape == (0, 4) and a[3:2, ::-1].shape == (0, 4) and a[-1, 1::2].shape == (2,)
    with pytest.raises(IndexError, match="leave dimension 1 of extent 4"):
        nvm.slice(a, [0, 2], [3, 3], [1, 1])
