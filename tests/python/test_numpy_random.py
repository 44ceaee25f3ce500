"""NumPy's old interface of random numbers: states, seeds, one generator behind the functions and nvm.random's."""

import inspect
import pickle

import numpy as np
import pytest

import nvm
import nvm.numpy as nvp


def test_the_functions_share_one_generator_with_nvm_random():
    nvp.random.seed(11)
    first = nvm.random.random(4).tolist(), nvp.random.rand(4).tolist()
    nvm.random.seed(11)
    assert (nvp.random.random_sample(4).tolist(), nvm.random.rand(4).tolist()) == first
    assert first[0] != first[1]


def test_a_state_is_a_tuple_or_a_dict_and_goes_through_pickle():
    r = nvp.random.RandomState(3)
    r.rand(5)
    kept, named, twin = r.get_state(), r.get_state(legacy=False), pickle.loads(pickle.dumps(r))
    want = r.randn(6).tolist()
    assert twin.randn(6).tolist() == want and isinstance(twin, nvp.random.RandomState)
    for state in (kept, named):
        r.set_state(state)
        assert r.randn(6).tolist() == want
    with pytest.raises(ValueError, match="a state begins with 'philox4x32-10'"):
        r.set_state(np.random.RandomState(3).get_state())


def test_choice_is_of_one_dimension():
    for a in ([[1, 2]], np.ones((2, 2)), nvm.ones((2, 2))):
        with pytest.raises(ValueError, match="one dimension"):
            nvp.random.choice(a)
    assert nvp.random.choice([7, 7]) == 7 and nvp.random.choice(np.int64(1)) == 0


def test_seeds_reproduce_and_differ():
    draws = {tuple(nvp.random.RandomState(s).randint(0, 1000, 8).tolist()) for s in (0, 1, [1, 2], [2, 1], 0, 1)}
    assert len(draws) == 4
    r = nvp.random.RandomState(9)
    a = r.bytes(16)
    r.seed(9)
    assert r.bytes(16) == a and len(set(a)) > 4


def test_old_draws_have_numpys_distributions():
    r = nvp.random.RandomState(1)
    u, n, i = (np.asarray(x) for x in (r.rand(40_000), r.randn(40_000), r.randint(3, 9, 40_000)))
    assert abs(u.mean() - 0.5) < 0.01 and 0 <= u.min() and u.max() < 1
    assert abs(n.mean()) < 0.02 and abs(n.std() - 1) < 0.02
    assert np.array_equal(np.unique(i), np.arange(3, 9)) and np.bincount(i)[3:].min() > 6200
    assert 0 <= int(r.tomaxint()) < 2**63


@pytest.mark.parametrize("name", "rand randn randint random_sample bytes choice get_state set_state seed".split())
def test_parameters_are_numpys(name):
    # NumPy's are compiled: their first line of help shows the parameters
    want = np.random.RandomState.__dict__[name].__doc__.strip().split("\n")[0]
    ours = inspect.signature(getattr(nvp.random, name))
    for p in ours.parameters.values():
        text = {inspect.Parameter.VAR_POSITIONAL: "d0"}.get(p.kind, p.name)
        assert text in want or name.startswith("rand") and "*args" in want, f"{want} has no {p}"
    assert getattr(nvp.random, name).__doc__
