"""nvm.doctor tells copies between devices, by line; nvm.counters sums them up."""

import numpy as np
import pytest

import nvm

pytestmark = pytest.mark.emulated


def test_copies_are_told_with_their_bytes(device):
    before = nvm.counters()["bytes_copied"]
    with nvm.doctor() as d:
        x = nvm.asarray(np.ones(5000), device=device)
        (x + 1).eval()
        np.asarray(x)
        x.to_device("cpu")
        nvm.asarray(x, device=device)  # it is there
    told = {f.what: f for f in d.report()}
    assert set(told) == {"asarray", "eval", "numpy.asarray", "to_device"}
    assert told["eval"].bytes == 0 and all(told[k].bytes == 40_000 for k in set(told) - {"eval"})
    assert "to_device copied between devices once" in str(told["to_device"])
    assert "40000 B copied" in str(d.report())
    assert nvm.counters()["bytes_copied"] - before == 120_000


def test_what_an_evaluation_copies_is_told_where_it_evaluates(device):
    x, y = nvm.asarray(np.ones(5000), device=device), nvm.asarray(np.ones(5000))
    with nvm.doctor() as d:
        (x + y).eval()
    (found,) = d.report()
    assert (found.what, found.bytes) == ("eval", 40_000)


def test_a_jitted_write_to_a_part_moves_nothing(device):
    """Also where the CPU is the default device, and where the function was traced for an array there first."""

    @nvm.jit
    def write(x, i, row):
        x[i] += 1
        x[2:4, 1] = row[0]
        return x[0].sum()

    i, before = np.array([1, 5]), nvm.get_default_device()
    want = np.zeros((64, 9))
    want[i] += 1
    want[2:4, 1] = 3
    try:
        for default in "cpu", device:
            nvm.set_default_device(default)
            write.clear_cache()
            for where in "cpu", device, "cpu", device:
                x, at, row = (nvm.asarray(a, device=where) for a in (np.zeros((64, 9)), i, np.full(2, 3.0)))
                nvm.eval(x, at, row)
                start = nvm.counters()["bytes_copied"]
                nvm.eval(write(x, at, row), x)
                assert where != device or nvm.counters()["bytes_copied"] == start, (default, where)
                assert x.device == where and np.array_equal(x, want)
    finally:
        nvm.set_default_device(before)
