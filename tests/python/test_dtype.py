"""nvm's dtypes beside NumPy's: what they are called, what they are equal to, and what is taken for one."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import nvm

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
ADDED = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
ATTRIBUTES = (
    "name kind char num str itemsize alignment byteorder type isnative hasobject names fields __numpy_dtype__"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_those_of_numpys_dtype(name):
    ours, theirs = getattr(nvm, name), np.dtype(name)
    want = {a: theirs if a == "__numpy_dtype__" else getattr(theirs, a) for a in ATTRIBUTES}
    assert {a: getattr(ours, a) for a in ATTRIBUTES} == want
    assert np.dtype(ours) is theirs and np.dtype(nvm.zeros(2, dtype=ours).dtype) is theirs


@pytest.mark.parametrize("name", ADDED)
def test_a_dtype_that_numpy_lacks_says_so(name):
    ours = getattr(nvm, name)
    assert ours.name == name and ours.kind == "f" and ours.byteorder == ("=" if ours.itemsize > 1 else "|")
    for attribute in ("char", "num", "str"):
        with pytest.raises(AttributeError, match=f"{name} has no .{attribute}, because NumPy has no such dtype"):
            getattr(ours, attribute)
    assert ours != np.dtype("float32") and np.dtype("float32") != ours


def spellings(t):
    """What NumPy takes for the dtype t, beside dtypes themselves."""
    names = [n for n, of in np.sctypeDict.items() if isinstance(n, str) and np.dtype(of) == t]
    codes = [t.char, t.str, t.str[1:], "=" + t.str[1:], t.name]
    return codes + names + [np.sctypeDict[n] for n in names] + [p for p in (bool, int, float, complex) if t == p]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_what_numpy_takes_for_a_dtype_is_taken(name):
    ours = getattr(nvm, name)
    for spelled in spellings(np.dtype(name)):
        assert ours == spelled and not ours != spelled, spelled
        assert isinstance(spelled, str) or spelled == ours, spelled
        made = (
            nvm.dtype(spelled),
            nvm.zeros(2, dtype=spelled).dtype,
            nvm.asarray([1, 0], dtype=spelled).dtype,
            nvm.ones(2).astype(spelled).dtype,
            nvm.full((2,), 1, dtype=spelled).dtype,
            nvm.empty_like(nvm.ones(2), dtype=spelled).dtype,
        )
        assert all(t is ours for t in made), spelled
    for other in NAMES:
        if other != name:
            assert ours != np.dtype(other) and np.dtype(other) != ours and ours != other


@pytest.mark.parametrize(
    "given", ["object", "O", "U3", "S", "M8[s]", ">f8", "f3", "", "g", "float16x", object, str, []]
)
def test_what_is_no_dtype_is_an_error_that_lists_dtypes(given):
    with pytest.raises(TypeError, match="is not a dtype of nvm; it has bool, int8 to int64"):
        nvm.zeros(2, dtype=given)
    assert nvm.float64 != given


def test_swapped_bytes_are_another_dtype():
    swapped = np.dtype(">f4")
    assert nvm.float32 != swapped and swapped != nvm.float32 and nvm.uint8 == np.dtype(">u1")
    with pytest.raises(TypeError, match="is not a dtype"):
        nvm.zeros(2, dtype=swapped)
    assert nvm.asarray(np.array([1, 2], swapped)).tolist() == [1, 2]


def test_hashes_agree_with_names_and_objects_are_kept():
    for name in NAMES + ADDED:
        t = getattr(nvm, name)
        assert hash(t) == hash(name) and {t: 1}[name] == 1 and {name: 1}[t] == 1
        assert copy.deepcopy(t) is t
        assert all(pickle.loads(pickle.dumps(t, p)) is t for p in range(2, 6))


def test_numpys_questions_about_kinds():
    assert np.issubdtype(nvm.float32, np.floating) and not np.issubdtype(nvm.int8, np.floating)
    assert np.can_cast(np.int8, nvm.int16) and np.result_type(nvm.float32, np.int8) == np.float32
    assert np.zeros(2, dtype=nvm.int16).dtype == nvm.int16 and nvm.float32.type(0.5) == np.float32(0.5)


def test_the_class_finds_dtypes_and_none_is_the_default_float():
    assert nvm.DType("f4") is nvm.DType(np.float32) is nvm.DType(dtype=nvm.float32, copy=True) is nvm.float32
    assert nvm.dtype(None) is nvm.DType(None) is nvm.float64
    for wrong in ("f5", 5, object):
        with pytest.raises(TypeError, match="is not a dtype of nvm"):
            nvm.DType(wrong)
    with pytest.raises(TypeError, match="dtype"):
        nvm.DType()


def test_a_dtype_called_reads_numbers_and_texts():
    assert float(nvm.float32("2.5")) == 2.5 and int(nvm.uint8(" 12 ")) == 12 and complex(nvm.complex64("1j")) == 1j
    assert float(nvm.float64()) == 0 and nvm.int8().dtype == nvm.int8 and not bool(nvm.bool(""))
    with pytest.raises(ValueError, match="could not convert"):
        nvm.float64("a")
    with pytest.raises(TypeError, match="takes one number"):
        nvm.float64(1, 2)


def test_nothing_needs_numpy_until_it_is_asked_for():
    program = (
        "import sys; sys.modules['numpy'] = None; import nvm; t = nvm.float32\n"
        "print(t.char, t.str, t.num, t.alignment, t == 'f4', hasattr(t, 'type'), hasattr(t, '__numpy_dtype__'))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.split() == ["f", "<f4", "11", "4", "True", "False", "False"], out.stderr
