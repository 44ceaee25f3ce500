"""nvm.numpy's files: what it writes NumPy reads, and what NumPy writes it reads."""

import builtins
import io
import warnings
import zipfile

import numpy as np
import pytest

import nvm
import nvm.numpy as nvp
from numpy_cases import check_all

ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype=np.uint8),
    np.zeros((0, 3), np.float32),
    np.array(2.5 - 1j),
    np.array([True, False]),
    np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    np.arange(6, dtype=">i4").reshape(2, 3),
    (np.arange(6) * (1 - 2j)).astype(">c8"),
    np.array([complex(1, np.inf), complex(-0.0, 2), complex(-np.inf, 1)]).astype(">c16"),
    np.arange(5, dtype=np.float16)[::-2],
]


def same(got, want):
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype == want.dtype.newbyteorder("=") and np.array_equal(got, want)


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_npy_both_ways(a, tmp_path):
    np.save(tmp_path / "theirs.npy", a)
    same(nvp.load(tmp_path / "theirs.npy"), a)
    nvp.save(tmp_path / "ours", nvm.asarray(a))
    with open(tmp_path / "ours.npy", "rb") as ours, io.BytesIO() as theirs:
        np.save(theirs, np.array(np.asarray(a), order="C", dtype=a.dtype.newbyteorder("=")))
        assert ours.read() == theirs.getvalue()


def test_versions_of_the_format():
    for version in (1, 0), (2, 0), (3, 0):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, ARRAYS[0], version=version)
        stream.seek(0)
        same(nvp.load(stream), ARRAYS[0])


@pytest.mark.parametrize("write", ["savez", "savez_compressed"])
def test_npz_both_ways(write, tmp_path):
    for there, here in (np, nvp), (nvp, np):
        getattr(there, write)(tmp_path / "a.npz", ARRAYS[1], named=ARRAYS[0])
        with here.load(tmp_path / "a.npz") as found:
            assert sorted(found.files) == ["arr_0", "named"] and len(found) == 2
            same(found["named"], ARRAYS[0])
            same(found["arr_0"], ARRAYS[1])
            with pytest.raises(KeyError):
                found["other"]


def test_files_that_are_refused(tmp_path):
    for a in np.array([1, None]), np.array(["a"]), np.zeros(2, [("x", int)]), np.zeros(2, "M8[s]"):
        stream = io.BytesIO()
        np.save(stream, a, allow_pickle=True)
        stream.seek(0)
        with pytest.raises(ValueError, match="nvm has no dtype"):
            nvp.load(stream)
    for data, error in (b"", EOFError), (b"nonsense", ValueError), (b"\x93NUMPY\x01\x00\x10\x00{}", ValueError):
        with pytest.raises(error):
            nvp.load(io.BytesIO(data))
    stream = io.BytesIO()
    np.save(stream, ARRAYS[0])
    for cut in (7, 9, 40, 130):
        with pytest.raises(ValueError):
            nvp.load(io.BytesIO(stream.getvalue()[:cut]))
    with pytest.raises(TypeError, match="bfloat16"):
        nvp.save(tmp_path / "a", nvm.ones(2, dtype="bfloat16"))


def test_raw_numbers(tmp_path):
    path = tmp_path / "raw"
    np.arange(10, dtype=np.int16).tofile(path)
    for how in {}, {"count": 3}, {"offset": 4}, {"count": 2, "offset": 2}:
        same(nvp.fromfile(path, "int16", **how), np.fromfile(path, "int16", **how))
    path.write_text("1, 2.5 ,3")
    same(nvp.fromfile(path, sep=","), np.fromfile(path, sep=","))


def test_text_written_is_numpys(tmp_path):
    tables = np.arange(6).reshape(2, 3) / 7, np.arange(4), np.arange(4) * (1 - 2j)
    for a in tables:
        for how in {}, {"delimiter": ",", "header": "a\nb", "footer": "end", "newline": "\r\n"}, {"comments": ""}:
            np.savetxt(tmp_path / "theirs", a, **how)
            nvp.savetxt(tmp_path / "ours", nvm.asarray(a), **how)
            assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    for fmt in "%d", "%.3f", "%.2f +- %.2f +- %d", ["%d", "%.1f", "%g"], "%d-%d:%d":
        np.savetxt(tmp_path / "theirs", tables[0], fmt)
        nvp.savetxt(tmp_path / "ours", tables[0], fmt)
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    same(
        nvp.loadtxt(tmp_path / "ours", delimiter="-", usecols=0),
        np.loadtxt(tmp_path / "ours", delimiter="-", usecols=0),
    )


def test_compressed_text_is_numpys(tmp_path):
    x = np.arange(6.0).reshape(2, 3) / 7
    for ending in ".gz", ".bz2", ".xz":
        for there, here in (np, nvp), (nvp, np):
            path = str(tmp_path / "table") + ending
            there.savetxt(path, x, header="a")
            same(here.loadtxt(path), x)


TEXTS = """
    np.loadtxt(['1 2', '3 4'], {type})
    np.loadtxt(['1,2 # three', '', '# x', '3,4'], delimiter=',')
    np.loadtxt(['a', '1 2', '3 4', '5 6'], skiprows=1, max_rows=2)
    np.loadtxt(['1 2 3', '4 5 6'], usecols={columns}, unpack={keep})
    np.loadtxt(['1 2 3'], ndmin={ndmin})
    np.loadtxt(['1', '2'], ndmin={ndmin})
    np.loadtxt(['1 2', '3'])
    np.loadtxt(['1 x'])
    np.loadtxt([])
    np.loadtxt(['1;2'], comments=None, delimiter=';', converters={0: lambda s: float(s) * 2})
    np.genfromtxt(['1,2,', '3,x,5'], delimiter=',')
    np.genfromtxt(['1,2,', '3,x,5'], delimiter=',', filling_values=7)
    np.genfromtxt(['1,2,', '3,x,5'], delimiter=',', dtype=int)
    np.genfromtxt(['h', '1 2', '3 4', 'f g'], skip_header=1, skip_footer=1, usecols=(1,))
    np.genfromtxt(['1 2', '3'])
    np.fromstring('1 2 3', sep=' ')
    np.fromstring('1, 2, 3', int, 2, sep=',')
"""


def test_text_read_is_numpys():
    check_all(TEXTS, columns="0 (0,2) [2,0] -1 5", ndmin="0 1 2")


def test_archives_are_closed(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with nvp.load(path) as archive:
            stream = archive._archive.fp
            assert archive["x"].tolist() == [1, 1]
        assert stream.closed
        with open(path, "rb") as stream:
            nvp.load(stream).close()
            assert not stream.closed
    path.write_bytes(path.read_bytes()[:40])
    opened = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", lambda *args, real=open: opened.append(real(*args)) or opened[-1])
        with pytest.raises(zipfile.BadZipFile):
            nvp.load(path)
    assert len(opened) == 1 and opened[0].closed
