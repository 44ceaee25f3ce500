"""The short programs of numpy_programs.txt across NumPy's reference, under NumPy and under nvm.numpy: values, dtypes,
shapes, texts and classes of errors."""

from pathlib import Path

import pytest

import nvm.numpy as nvp
from numpy_cases import check_all

TOPICS = dict(
    part.split("\n", 1) for part in Path(__file__).with_name("numpy_programs.txt").read_text().split("\n## ")[1:]
)


@pytest.mark.parametrize("topic", TOPICS)
def test_programs_agree_with_numpy(topic):
    check_all(TOPICS[topic])


# What NumPy computes and nvm refuses, with the beginning of what it says.
REFUSED = {
    "np.array([True]) ** 2": "[pow] does not take bool",
    "np.dtype('>i4')": "'>i4' is not a dtype of nvm",
    "np.bincount([1.0])": "[bincount] Cannot cast",
    "np.cross([1, 2], [3, 4, 5])": "[cross] Both input arrays must be",
    "np.ones(3, dtype=object)": "<class 'object'> is not a dtype",
    "np.array(['a', 'b'])": "[array] cannot convert <class 'str'>",
    "np.array([None])": "[array] cannot convert <class 'NoneType'>",
    "np.array({})": "[array] cannot convert <class 'dict'>",
    "np.take(m, 1.5)": "[take] Cannot cast",
    "np.frompyfunc(len, 1, 1)": "module 'nvm.numpy' has no attribute 'frompyfunc'",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused_says_why(line):
    with pytest.raises((TypeError, ValueError, AttributeError)) as refused:
        eval(line, {"np": nvp, "m": nvp.ones((3, 4))})
    assert str(refused.value).startswith(REFUSED[line])
