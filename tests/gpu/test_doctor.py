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
