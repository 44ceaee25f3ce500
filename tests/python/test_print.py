"""repr and str read as NumPy's."""

import threading

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nvm
import nvm.numpy as nvp

CASES = [
    np.array(1.5),
    np.array(3),
    np.array(True),
    np.array(1 + 2j),
    np.arange(5),
    np.arange(5.0),
    np.zeros((2, 0)),
    np.zeros(0),
    np.eye(3),
    np.arange(12).reshape(3, 4),
    np.arange(24.0).reshape(2, 3, 4),
    np.array([1e10, 1]),
    np.array([1e-5, 1]),
    np.array([np.nan, 1, np.inf]),
    np.array([-np.inf, 2.5]),
    np.array([1 / 3, 2 / 3], "float32"),
    np.array([1 / 3, 2 / 3]),
    np.array([True, False]),
    np.array([1 + 2j, -3.5 - 4j]),
    np.array([1j, np.nan]),
    np.arange(2000),
    np.arange(2000.0).reshape(40, 50),
    np.arange(100),
    np.linspace(0, 1, 30),
    np.arange(300, dtype="uint8").reshape(30, 10),
    np.array([0.1, 0.25], "float16"),
    np.array([[-1, 100]]),
    np.arange(3000).reshape(10, 300),
    np.arange(8000.0).reshape(20, 20, 20),
    np.array([123456.789, 0.5]),
    np.array([-0.0, 0.0]),
]


@pytest.mark.parametrize("x", CASES, ids=range(len(CASES)))
def test_like_numpy(x):
    assert repr(nvm.asarray(x)) == repr(x)
    assert str(nvm.asarray(x)) == str(x)


@given(
    hnp.arrays(
        st.sampled_from(["float64", "float32", "int64", "complex128", "bool", "int8"]),
        hnp.array_shapes(max_dims=3, max_side=6),
    )
)
@example(np.array([True]))
@example(np.array(True))
@example(np.array([[True, True], [True, True]]))
@example(np.array([True, False]))
def test_any_array_like_numpy(x):
    assert repr(nvm.asarray(x)) == repr(x)
    assert str(nvm.asarray(x)) == str(x)


@pytest.mark.parametrize(
    "dtype,values,text",
    [
        ("float32", [1234567], "[1.234567e+06]"),
        ("float32", [999999], "[999999.]"),
        ("float64", [1234567], "[1234567.]"),
        ("float16", [1000, 1.5], "[1.0e+03 1.5e+00]"),
        ("complex64", [1e6 + 1j], "[1.e+06+1.j]"),
        ("float32", 0.1, "0.1"),
        ("float32", -1e-5, "-1e-05"),
        ("float32", 123456789, "1.2345679e+08"),
        ("float32", 3, "3.0"),
        ("float32", float("nan"), "nan"),
        ("float16", 65504, "6.55e+04"),
        ("float64", 0.1, "0.1"),
        ("float64", 1e22, "1e+22"),
        ("bfloat16", 0.1, "0.1"),
        ("complex64", 0.1 - 0.2j, "(0.1-0.2j)"),
        ("complex64", complex("inf+nanj"), "(inf+nanj)"),
        ("int8", 3, "3"),
        ("bool", True, "True"),
    ],
)
def test_as_many_digits_as_the_dtype_has(dtype, values, text):  # as NumPy 2.3 and later
    assert str(nvm.asarray(values, dtype=dtype)) == text


def test_bfloat16():
    a = nvm.asarray([1.0, 0.1, 3.14159]).astype(nvm.bfloat16)
    assert repr(a) == "array([1.  , 0.1 , 3.14], dtype=bfloat16)"


def test_pending_arrays_show_values():
    assert repr(nvm.ones(2) + 1) == "array([2., 2.])"


@pytest.mark.parametrize("traced", [False, True])
def test_arrays_of_a_failed_device(traced, monkeypatch):
    def fails(x):
        raise nvm.Error("the device is lost")

    monkeypatch.setattr("nvm._print._repr", fails)
    texts = []
    show = lambda x: texts.append(repr(x)) or x  # noqa: E731
    (nvm.jit(show) if traced else show)(nvm.ones((2, 3)))
    assert texts == ["<array of float64, shape (2, 3), without a value: the device is lost>"]


def test_options_are_those_of_the_thread():
    inside, done = threading.Event(), threading.Event()

    def shorten():
        with nvp.printoptions(precision=2):
            inside.set()
            done.wait(10)

    other = threading.Thread(target=shorten)
    x = nvm.asarray([0.12345])
    with nvp.printoptions(precision=3):
        other.start()
        assert inside.wait(10)
        assert str(x) == "[0.123]"
    done.set()
    other.join()
    assert str(x) == "[0.12345]" and nvp.get_printoptions()["precision"] == 8


SMALL = [1e-9, 1.5, -20.25], [1e-5, 1e-7], [1e9, 1e-9], [np.nan, 1e-6, 2.0], [1e-9 + 2j, 1 - 1e-6j], [1.0, 2.0], [3, 4]


@pytest.mark.parametrize("values", SMALL, ids=str)
@pytest.mark.parametrize("precision", [2, 8])
def test_small_numbers_without_an_exponent(values, precision):
    x = np.array(values)
    with np.printoptions(suppress=True, precision=precision):
        want = str(x), repr(x)
    with nvp.printoptions(suppress=True, precision=precision) as options:
        assert options["suppress"] is True
        assert (str(nvm.asarray(x)), repr(nvm.asarray(x))) == want
    assert nvp.array_str(nvm.asarray(x), suppress_small=True) == np.array_str(x, suppress_small=True)
    assert nvp.array2string(nvm.asarray(x), suppress_small=True) == np.array2string(x, suppress_small=True)
    assert nvp.get_printoptions()["suppress"] is False
