"""What is planned for one set of sizes serves others of its class: with the bits of one kernel for each value, without
another plan, and with messages, donations and explanations of its own sizes."""

import os

import numpy as np
import pytest

import nvm
import sizes
import test_tiers

CHUNKS = 8
EACH = int(os.environ.get("NVM_RANDOM_COUNT", "400")) // CHUNKS


@pytest.fixture(autouse=True)
def planned():
    """Every graph has a plan: small ones do not run directly. On the CPU, whose plans alone serve other sizes."""
    before = nvm.get_default_device()
    nvm.set_default_device("cpu")
    nvm.set("TIER", "planned")
    yield
    nvm.set_default_device(before)
    nvm.set("TIER", "auto")
    nvm.set("FUSE", "on")
    nvm.set("TUNE", "estimate")


def plans(make):
    before = nvm.counters()["programs_planned"]
    made = make()
    return made, nvm.counters()["programs_planned"] - before


def results(program, ladder, tier):
    """For each of eight sets of sizes the outputs; a message where an operation does not take the dtypes."""
    out = []
    for k in range(8):
        try:
            made = program.run(sizes.Sizes(k, ladder))
        except (TypeError, ValueError) as e:
            made = str(e)
        if isinstance(made, list):
            nvm.eval(*made)
            made = [np.asarray(x) for x in made]
        out.append(made)
    return out


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_programs(chunk):
    planned = runs = 0
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        program, ladder = sizes.Program(seed), sizes.LADDERS[seed % len(sizes.LADDERS)]
        nvm.set("FUSE", "on")
        nvm.set("TIER", "planned" if seed % 6 else "1")
        got, n = plans(lambda: results(program, ladder, seed))
        nvm.set("FUSE", "off")
        want = results(program, ladder, seed)
        ran = [isinstance(x, list) for x in got]
        planned, runs = planned + n, runs + sum(ran)
        for k in range(8):
            if not ran[k]:
                assert got[k] == want[k], (seed, k)
                continue
            for i, (a, b) in enumerate(zip(want[k], got[k])):
                test_tiers.same(a, b, (seed, k, i))
    assert planned < 0.8 * runs


BIG = np.arange(1, 4 * 70000 + 1, dtype="float32").reshape(4, 70000) % 97 / 8


def window(n):
    a = nvm.asarray(BIG[0])
    return a[5 : 5 + n] + a[: 2 * n : 2]


def softmax(n):
    x = nvm.asarray(BIG)[:, :n]
    e = nvm.exp(x - nvm.max(x, axis=1, keepdims=True))
    return e / nvm.sum(e, axis=1, keepdims=True)


def written(n):
    a = nvm.asarray(BIG[1])[:n] * 2
    a[3 : n - 5] = a[3 : n - 5] + 1
    return a


CASES = {
    "window": window,
    "softmax": softmax,
    "written": written,
    "a mean divides by a size": lambda n: nvm.mean(nvm.asarray(BIG[0])[:n]),
    "var": lambda n: nvm.var(nvm.asarray(BIG)[:, :n], axis=1),
    "partial sums": lambda n: nvm.sum(nvm.asarray(BIG.ravel())[: 16 * n] * 2),
    "backwards": lambda n: nvm.asarray(BIG[0])[n - 1 :: -1] * 3,
    "rolled": lambda n: nvm.roll(nvm.asarray(BIG[0])[:n], 65 + n % 61) + 1,
    "padded": lambda n: nvm.pad(nvm.asarray(BIG[0])[: n - 200], (65 + n % 61, 3)) * 2,
    "argmax": lambda n: nvm.argmax(nvm.asarray(BIG[0])[:n]),
    "scan": lambda n: nvm.cumulative_sum(nvm.asarray(BIG)[:, :n], axis=0),
    "transposed": lambda n: nvm.asarray(BIG)[:, :n].T + 1,
    "iota": lambda n: nvm.arange(n, dtype="float32") * nvm.asarray(BIG[2])[:n],
    "constants": lambda n: nvm.asarray(BIG[0])[:n] * (n / 7) + n,
}


@pytest.mark.parametrize("name", CASES)
def test_a_new_size_is_not_planned(name):
    make = CASES[name]
    nvm.eval(make(9001))
    for n in (9007, 12000, 15999, 16380):
        got, planned = plans(lambda: np.asarray(make(n)))
        assert planned == 0
        nvm.set("FUSE", "off")
        test_tiers.same(np.asarray(make(n)), got, (name, n))
        nvm.set("FUSE", "on")
    assert plans(lambda: nvm.eval(make(17000)))[1] >= 1  # of another class


def test_a_function_for_another_size_is_not_planned():
    f = nvm.jit(lambda a: nvm.sum(a * 2 + 1))
    f(BIG[0][:40000])
    for n in (40001, 50000, 65000):
        got, planned = plans(lambda: float(f(BIG[0][:n])))
        assert planned == 0
        assert got == float(nvm.sum(nvm.asarray(BIG[0][:n]) * 2 + 1))


def test_equal_extents_that_become_different():
    f = lambda n, m: nvm.asarray(BIG)[:3, :n] + nvm.sum(nvm.asarray(BIG)[:3, :m], axis=1, keepdims=True)
    for n, m in ((300, 300), (300, 400), (500, 400), (512, 512), (257, 511)):
        nvm.set("FUSE", "on")
        got = np.asarray(f(n, m))
        nvm.set("FUSE", "off")
        test_tiers.same(np.asarray(f(n, m)), got, (n, m))


def test_rows_and_columns_of_one():
    for n, m in ((40, 40), (1, 40), (40, 1), (1, 1), (2, 40), (63, 2), (0, 40), (40, 0)):
        nvm.set("FUSE", "on")
        f = lambda: nvm.sum(nvm.asarray(BIG[:, :n].T[:, :1] + BIG[0, :m]) * 2, axis=0) + 1
        got = np.asarray(f())
        nvm.set("FUSE", "off")
        test_tiers.same(np.asarray(f()), got, (n, m))


def test_a_message_names_the_extent_of_its_own_size():
    def take(n, i):
        return nvm.eval(nvm.take(nvm.asarray(BIG[0])[:n] * 2, nvm.asarray(i)))

    take(9001, [3, 4])
    assert plans(lambda: take(9050, [9049, 4]))[1] == 0
    with pytest.raises(IndexError, match="index 9050 is out of range for axis 0 of extent 9050"):
        take(9050, [9050, 4])


def test_donated_memory_of_another_size():
    f = nvm.jit(lambda a: a * 2 + 1, donate_argnums=0)
    f(nvm.asarray(BIG[0][:9001].copy()) + 0)
    for n in (9002, 16000):
        x = nvm.eval(nvm.asarray(BIG[0][:n]) + 0) or nvm.asarray(BIG[0][:n]) + 0
        nvm.eval(x)
        got, planned = plans(lambda: np.asarray(f(x)))
        assert planned == 0
        np.testing.assert_array_equal(got, BIG[0][:n] * 2 + 1)
        with pytest.raises(Exception, match="donated"):
            np.asarray(x)


def test_a_value_that_is_kept():
    def twice(n):
        a = nvm.asarray(BIG)[:, :n]
        s = nvm.sum(nvm.exp(a), axis=0)
        first = np.asarray(s * 2)
        return first, np.asarray(s + 1)

    for n in (9001, 9002, 9003, 12000):
        first, second = twice(n)
        nvm.set("FUSE", "off")
        s = np.asarray(nvm.sum(nvm.exp(nvm.asarray(BIG)[:, :n]), axis=0))
        nvm.set("FUSE", "on")
        test_tiers.same(s * np.float32(2), first, n)
        test_tiers.same(s + np.float32(1), second, n)


def test_explain_says_that_it_was_bound():
    a = nvm.asarray(BIG[0])
    nvm.eval(nvm.tanh(a[:9001]) * 5)
    assert "bound" not in nvm.explain(nvm.tanh(a[:9001]) * 5)
    nvm.eval(nvm.tanh(a[:9100]) * 5)
    assert "bound: it runs the kernels of a program that was planned for other sizes" in nvm.explain(
        nvm.tanh(a[:9100]) * 5
    )


def test_what_asks_for_plans_gets_them():
    make = lambda n: nvm.eval(nvm.asarray(BIG[0])[:n] * 3)
    make(9001)
    nvm.set("CHECK", "plan")
    try:
        assert plans(lambda: (make(9002), make(9003)))[1] == 2
    finally:
        nvm.set("CHECK", "")
    nvm.set("TUNE", "measure")
    assert plans(lambda: (make(9004), make(9005)))[1] == 2
    nvm.set("TUNE", "estimate")
    assert plans(lambda: make(9006))[1] == 0


def test_small_graphs_of_new_sizes_are_planned_once():
    """Where direct runs of ever new sizes would take longer than binding, their class is planned, and then bound."""
    nvm.set("TIER", "auto")

    def ten(n):
        x = nvm.asarray(BIG[0])[:n]
        for _ in range(5):
            x = nvm.tanh(x * 1.25 + 0.5)
        return x

    def all_of():
        for n in range(1100, 1180):
            nvm.eval(ten(n))

    assert plans(all_of)[1] == 1
    assert "bound" in nvm.explain(ten(1500))
    got = np.asarray(ten(1501))
    nvm.set("FUSE", "off")
    test_tiers.same(np.asarray(ten(1501)), got, "ten")
