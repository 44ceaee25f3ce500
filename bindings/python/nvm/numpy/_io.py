"""Arrays in files: NumPy's .npy and .npz, whose format its documentation specifies, and raw numbers."""

import os
import struct
from _collections_abc import Mapping

from .. import _nvm
from .._creation import from_parts
from ._support import asarray, dtype_or_none, f, fault, public

_MAGIC = b"\x93NUMPY"


def _opened(file, mode):
    """(a file object, is it ours to close?): file is one, or a path."""
    if hasattr(file, "read" if mode == "rb" else "write"):
        return file, False
    return open(os.fspath(file), mode), True


def _header(x):
    """The magic string, the version and the description of an array, padded to a multiple of 64 bytes."""
    text = repr({"descr": x.dtype.str, "fortran_order": False, "shape": x.shape})[:-1] + ", }"
    length = len(text) + 1
    wide = length + 10 + 64 > 0xFFFF
    start = _MAGIC + (b"\x02\x00" if wide else b"\x01\x00")
    total = -(-(len(start) + (4 if wide else 2) + length) // 64) * 64
    room = total - len(start) - (4 if wide else 2)
    return start + struct.pack("<I" if wide else "<H", room) + (text.ljust(room - 1) + "\n").encode("latin1")


def _write(stream, arr):
    x = asarray(arr)
    if x.dtype.name.startswith(("bfloat16", "float8")):
        raise TypeError(f"[save] the .npy format has no {x.dtype.name}; save x.astype('float32')")
    stream.write(_header(x))
    stream.write(x.tobytes())


def _exactly(stream, n, what):
    data = stream.read(n)
    if len(data) != n:
        raise fault(ValueError, f"EOF: reading {what}, expected {n} bytes got {len(data)}")
    return data


def _described(stream, max_header_size):
    """(dtype, are its bytes swapped?, is the order Fortran's?, shape)."""
    if _exactly(stream, 6, "magic string") != _MAGIC:
        raise fault(ValueError, "the magic string is not correct: this is no .npy file")
    major = _exactly(stream, 2, "version")[0]
    if major not in (1, 2, 3):
        raise fault(ValueError, f"we only support format version (1,0), (2,0) and (3,0), not {major}")
    n, form = (2, "<H") if major == 1 else (4, "<I")
    size = struct.unpack(form, _exactly(stream, n, "array header length"))[0]
    if size > max_header_size:
        raise fault(ValueError, f"Header info length ({size}) is large and may not be safe to load securely.")
    text = _exactly(stream, size, "array header").decode("utf8" if major == 3 else "latin1")
    from ast import literal_eval

    try:
        fields = literal_eval(text)
    except (SyntaxError, ValueError) as e:
        raise fault(ValueError, f"Cannot parse header: {text!r}") from e
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise fault(ValueError, f"Header does not contain the correct keys: {text!r}")
    return _dtype_of(fields["descr"]), fields["fortran_order"], fields["shape"]


def _dtype_of(descr):
    """(dtype, are its bytes swapped?) of a description such as '<f8'."""
    if not isinstance(descr, str) or descr[1:2] in ("O", "U", "S", "V", "M", "m"):
        kind = "Object" if isinstance(descr, str) and descr[1:2] == "O" else "structured, text and time"
        raise fault(ValueError, f"{kind} arrays cannot be loaded: nvm has no dtype for {descr!r}")
    try:
        return _nvm.dtype(descr.lstrip("<>|=")), descr[0] == ">"
    except TypeError as e:
        raise fault(ValueError, f"descr is not a valid dtype descriptor: {descr!r}") from e


def _from_swapped(data, dtype, count):
    """An array of elements whose bytes are stored the other way round: all bytes reversed, then the elements back."""
    parts = {"complex64": _nvm.float32, "complex128": _nvm.float64}.get(dtype.name)
    x = f["flip"](_nvm.from_bytes(data[::-1], parts or dtype, (count * (2 if parts else 1),)))
    return from_parts(x[0::2], x[1::2]) if parts else x


def _read(stream, max_header_size):
    (dtype, swapped), fortran, shape = _described(stream, max_header_size)
    count = 1
    for n in shape:
        count *= n
    data = _exactly(stream, count * dtype.itemsize, "array data")
    x = _from_swapped(data, dtype, count) if swapped else _nvm.from_bytes(data, dtype, (count,))
    if not fortran:
        return x.reshape(shape)
    return f["permute_dims"](x.reshape(shape[::-1]), range(len(shape))[::-1])


def save(file, arr, allow_pickle=True):
    r"""Writes an array to a file in NumPy's format .npy.

    file: a path, to which .npy is added where it is missing, or a file object that takes bytes.
    arr: an array of any shape; it is evaluated.
    allow_pickle: of NumPy's signature; nothing is ever pickled.
    Raises TypeError for bfloat16 and float8, which the format has not, OSError where the file cannot be written.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, [1, 2])
    >>> file.getvalue()[:6]
    b'\x93NUMPY'
    """
    if not hasattr(file, "write"):
        file = os.fspath(file)
        file += "" if file.endswith(".npy") else ".npy"
    stream, ours = _opened(file, "wb")
    try:
        _write(stream, arr)
    finally:
        if ours:
            stream.close()


def _save_all(file, args, kwds, compressed):
    for i, x in enumerate(args):
        if f"arr_{i}" in kwds:
            raise fault(ValueError, f"Cannot use un-named variables and keyword arr_{i}")
        kwds[f"arr_{i}"] = x
    if not hasattr(file, "write"):
        file = os.fspath(file)
        file += "" if file.endswith(".npz") else ".npz"
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

    with ZipFile(file, "w", ZIP_DEFLATED if compressed else ZIP_STORED) as archive:
        for name, x in kwds.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as stream:
                _write(stream, x)


def savez(file, *args, allow_pickle=True, **kwds):
    """Writes several arrays to a file in NumPy's format .npz.

    file: a path, to which .npz is added where it is missing, or a file object that takes bytes.
    args: arrays, which get the names arr_0, arr_1 and so on. kwds: arrays by name.
    allow_pickle: of NumPy's signature; nothing is ever pickled.
    Raises ValueError for a name that occurs twice, and what save raises.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, [1, 2], weights=[0.5])
    >>> sorted(np.load(file))
    Traceback (most recent call last):
        ...
    EOFError: No data left in file
    """
    _save_all(file, args, kwds, False)


def savez_compressed(file, *args, allow_pickle=True, **kwds):
    """Writes several arrays to a compressed file in NumPy's format .npz.

    The arguments and errors are those of savez.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez_compressed(file, x=[1, 2])
    >>> np.load(file)["x"]
    Traceback (most recent call last):
        ...
    EOFError: No data left in file
    """
    _save_all(file, args, kwds, True)


class NpzFile(Mapping):
    """The arrays of a .npz file: a mapping from their names, and a context manager that closes the file.

    files: a list of the names. An array is read when it is asked for; KeyError if there is none of that name.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.BytesIO()
    >>> np.savez(file, x=[1, 2])
    >>> with np.load(file) as arrays:
    ...     print(type(arrays).__name__, arrays.files, arrays["x"])
    Traceback (most recent call last):
        ...
    EOFError: No data left in file
    """

    def __init__(self, archive, max_header_size, own=None):
        self._archive, self._limit, self._own = archive, max_header_size, own  # own: a file that close() closes too
        self.files = [name.removesuffix(".npy") for name in archive.namelist()]

    def __getitem__(self, key):
        name = key if key in self._archive.namelist() else key + ".npy"
        if name not in self._archive.namelist():
            raise KeyError(f"{key} is not a file in the archive, which has {', '.join(self.files)}")
        with self._archive.open(name) as stream:
            return _read(stream, self._limit)

    def __iter__(self):
        return iter(self.files)

    def __len__(self):
        return len(self.files)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Closes the file."""
        self._archive.close()
        if self._own:
            self._own.close()


def load(file, mmap_mode=None, allow_pickle=False, fix_imports=True, encoding="ASCII", *, max_header_size=10000):
    """What save, savez or NumPy's functions of these names wrote.

    file: a path, or a file object of bytes that can seek.
    mmap_mode: None; arrays are read into memory, and another mode raises ValueError.
    allow_pickle, fix_imports, encoding: of NumPy's signature; pickled objects are never read.
    max_header_size: the greatest length of the description of an array.
    Returns an array, or for .npz an NpzFile.
    Raises ValueError for other files and for dtypes that nvm has not, EOFError for empty ones, OSError where the file
        cannot be read.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, [1.5, 2])
    >>> start = file.seek(0)
    >>> np.load(file)
    array([1.5, 2. ])
    """
    if mmap_mode is not None:
        raise ValueError(f"[load] mmap_mode={mmap_mode!r} is not here: arrays are read into memory")
    stream, ours = _opened(file, "rb")
    archive = None
    try:
        start = stream.read(4)
        stream.seek(-len(start), os.SEEK_CUR)
        if start in (b"PK\x03\x04", b"PK\x05\x06"):
            from zipfile import ZipFile

            archive = NpzFile(ZipFile(stream), max_header_size, stream if ours else None)
            return archive
        if not start:
            raise EOFError("No data left in file")
        if start != _MAGIC[:4]:
            raise fault(ValueError, "This is no .npy or .npz file, and pickled data are not read")
        return _read(stream, max_header_size)
    finally:
        if ours and archive is None:
            stream.close()


def _parsed(text, dtype, count, sep):
    words = text.split() if not sep.strip() else [w for w in text.split(sep.strip())]
    words = [w.strip() for w in words if w.strip()]
    words = words if count < 0 else words[:count]
    convert = complex if dtype.kind == "c" else float if dtype.kind == "f" else int
    return asarray([convert(w) for w in words]).astype(dtype) if words else f["zeros"]((0,), dtype=dtype)


def fromstring(string, dtype=None, count=-1, *, sep, like=None):
    """An array of the numbers in a text.

    string: the text.
    dtype: that of the result; None is float64.
    count: how many numbers are read; -1: all.
    sep: what stands between them; white space is skipped beside it.
    Returns an array of one dimension.
    Raises ValueError for an empty sep, and for what is no number.

    >>> import nvm.numpy as np
    >>> np.fromstring("1, 2, 3", dtype=int, sep=",")
    array([1, 2, 3])
    """
    if not sep:
        raise fault(ValueError, "The binary mode of fromstring is removed, use frombuffer instead")
    return _parsed(string, dtype_or_none(dtype) or _nvm.float64, count, sep)


def fromfile(file, dtype=None, count=-1, sep="", offset=0, *, like=None):
    """An array of the numbers in a file without a header.

    file: a path, or a file object of bytes.
    dtype: that of the numbers; None is float64.
    count: how many are read; -1: all.
    sep: '' reads the bytes of numbers; else the file is a text with this between them.
    offset: how many bytes are skipped, if sep is ''.
    Returns an array of one dimension.
    Raises TypeError for an offset in a text, OSError where the file cannot be read.

    >>> import nvm.numpy as np
    >>> import io
    >>> np.fromfile(io.BytesIO(bytes([1, 2, 3])), dtype=np.uint8)
    array([1, 2, 3], dtype=uint8)
    """
    dtype = dtype_or_none(dtype) or _nvm.float64
    stream, ours = _opened(file, "rb")
    try:
        if sep:
            if offset:
                raise fault(TypeError, "'offset' argument only permitted for binary files")
            return _parsed(stream.read().decode("latin1"), dtype, count, sep)
        stream.seek(offset, os.SEEK_CUR)
        data = stream.read() if count < 0 else stream.read(count * dtype.itemsize)
        n = len(data) // dtype.itemsize
        return _nvm.from_bytes(data[: n * dtype.itemsize], dtype, (n,))
    finally:
        if ours:
            stream.close()


__all__ = public(globals())
