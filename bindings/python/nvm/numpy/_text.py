"""Tables of numbers in text files."""

import importlib
import math
import os

from .. import _nvm
from ._shapes import atleast_1d, atleast_2d
from ._support import asarray, fault, public

_PACKED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # endings of compressed files, the modules that open them


def _opened(path, mode, encoding, newline=None):
    ending = os.path.splitext(os.fspath(path))[1]
    opener = importlib.import_module(_PACKED[ending]).open if ending in _PACKED else open
    return opener(path, mode, encoding=encoding, newline=newline)


def _lines(fname, encoding):
    """The lines of a path, a file object or a sequence of lines."""
    if isinstance(fname, (str, os.PathLike)):
        with _opened(fname, "rt", encoding if encoding != "bytes" else "latin1") as stream:
            yield from stream
    else:
        for line in fname:
            yield line.decode(encoding or "latin1") if isinstance(line, bytes) else line


def _without_comment(line, comments):
    for mark in comments:
        line = line.split(mark, 1)[0]
    return line.strip("\r\n")


def _marks(comments):
    if comments is None:
        return ()
    return (comments,) if isinstance(comments, (str, bytes)) else tuple(comments)


def _number(word, dtype):
    word = word.strip()
    if dtype.kind == "c":
        return complex(word.replace(" ", "").replace("i", "j"))
    if dtype.kind == "b":
        return bool(int(word))
    if dtype.kind == "f":
        return float.fromhex(word) if "0x" in word else float(word)
    return int(word)


def _columns_of(usecols):
    if usecols is None:
        return None
    return [usecols] if isinstance(usecols, int) else list(usecols)


def _converted(words, converters, dtype, row):
    out = []
    for i, word in enumerate(words):
        convert = converters.get(i) or converters.get(i - len(words)) if isinstance(converters, dict) else converters
        try:
            out.append(convert(word) if convert else _number(word, dtype))
        except ValueError as e:
            raise fault(
                ValueError, f"could not convert string {word!r} to {dtype.name} at row {row}, column {i + 1}."
            ) from e
    return out


def _as_table(rows, dtype, ndmin, unpack):
    if ndmin not in (0, 1, 2):
        raise fault(ValueError, f"Illegal value of ndmin keyword: {ndmin}")
    x = asarray(rows).astype(dtype) if rows else _empty(dtype, ndmin)
    if rows and x.ndim > ndmin:
        x = x.reshape([n for n in x.shape if n != 1])
    if x.ndim < ndmin:
        x = atleast_1d(x) if ndmin == 1 else _two(x, rows)
    return x.T if unpack else x


def _empty(dtype, ndmin):
    from ._creation import zeros

    return zeros((0, 1) if ndmin == 2 else (0,), dtype)


def _two(x, rows):
    return x.reshape(len(rows), -1) if rows else atleast_2d(x)


def loadtxt(
    fname,
    dtype=float,
    comments="#",
    delimiter=None,
    converters=None,
    skiprows=0,
    usecols=None,
    unpack=False,
    ndmin=0,
    encoding=None,
    max_rows=None,
    *,
    quotechar=None,
    like=None,
):
    """An array of the table of numbers in a text file.

    fname: a path (.gz, .bz2 and .xz are unpacked), a file object, or a sequence of lines.
    dtype: that of the numbers.
    comments: what begins a comment: a text, several, or None.
    delimiter: what stands between numbers; None is white space.
    converters: a function from a text to a number, or a dict of one for each column.
    skiprows, max_rows: how many lines are skipped, and how many rows are read then.
    usecols: the columns to read, an integer or several.
    unpack: True returns the transposed array, so that columns can be unpacked.
    ndmin: the least number of dimensions: 0, 1 or 2.
    encoding: of the file.
    quotechar: None; another one raises ValueError.
    Returns an array (rows, columns) without extents of 1.
    Raises ValueError for what is no number, and for rows of different lengths.

    >>> import nvm.numpy as np
    >>> np.loadtxt(["# x y", "1 2", "3 4"])
    array([[1., 2.],
           [3., 4.]])
    """
    if quotechar is not None:
        raise ValueError("[loadtxt] quotechar= is not here: a table of numbers has no quoted texts")
    dtype, marks, columns = _nvm.dtype(dtype), _marks(comments), _columns_of(usecols)
    rows, width = [], None
    for i, line in enumerate(_lines(fname, encoding)):
        if i < skiprows or max_rows is not None and len(rows) >= max_rows:
            continue
        line = _without_comment(line, marks)
        words = line.split(delimiter) if line.strip() else []
        if not words:
            continue
        if columns is not None:
            try:
                words = [words[c] for c in columns]
            except IndexError:
                raise fault(
                    ValueError, f"invalid column index in {columns} at row {len(rows) + 1} with {len(words)} columns"
                ) from None
        width = len(words) if width is None else width
        if len(words) != width:
            raise fault(
                ValueError, f"the number of columns changed from {width} to {len(words)} at row {len(rows) + 1}"
            )
        rows.append(_converted(words, converters or {}, dtype, len(rows)))
    return _as_table(rows, dtype, ndmin, unpack)


def genfromtxt(
    fname,
    dtype=float,
    comments="#",
    delimiter=None,
    skip_header=0,
    skip_footer=0,
    converters=None,
    missing_values=None,
    filling_values=None,
    usecols=None,
    names=None,
    excludelist=None,
    deletechars=" !#$%&'()*+,-./:;<=>?@[\\]^{|}~",
    replace_space="_",
    autostrip=False,
    case_sensitive=True,
    defaultfmt="f%i",
    unpack=None,
    usemask=False,
    loose=True,
    invalid_raise=True,
    max_rows=None,
    encoding=None,
    *,
    ndmin=0,
    like=None,
):
    """An array of the table of numbers in a text file in which some are missing.

    fname, dtype, comments, delimiter, converters, usecols, max_rows, unpack, ndmin, encoding: those of loadtxt.
    skip_header, skip_footer: how many lines are skipped at the beginning and at the end.
    missing_values: texts that count as missing, beside empty ones and those that are no number.
    filling_values: the number in place of what is missing; None is NaN, or -1 for integers.
    The other arguments are of NumPy's signature; names, usemask and dtype=None raise ValueError, since nvm has neither
        structured nor masked arrays.
    Raises ValueError for rows of different lengths.

    >>> import nvm.numpy as np
    >>> np.genfromtxt(["1,2", "3,"], delimiter=",")
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    if names is not None or usemask or dtype is None:
        raise ValueError(
            "[genfromtxt] names=, usemask= and dtype=None make structured or masked arrays, which nvm has not"
        )
    dtype, marks, columns = _nvm.dtype(dtype), _marks(comments), _columns_of(usecols)
    lines = [_without_comment(line, marks) for line in list(_lines(fname, encoding))[skip_header:]]
    rows = [line.split(delimiter) for line in lines if line.strip()]
    rows = rows[: len(rows) - skip_footer][:max_rows]
    if columns is not None:
        rows = [[words[c] for c in columns] for words in rows]
    widths = {len(words) for words in rows}
    if len(widths) > 1:
        raise fault(ValueError, f"Some errors were detected! The rows have {sorted(widths)} columns")
    fill = filling_values if filling_values is not None else math.nan if dtype.kind in "fc" else -1
    missing = {missing_values} if isinstance(missing_values, str) else set(missing_values or ())
    table = [[_filled(w, i, dtype, fill, missing, converters or {}) for i, w in enumerate(words)] for words in rows]
    return _as_table(table, dtype, ndmin, unpack)


def _filled(word, column, dtype, fill, missing, converters):
    word = word.strip()
    if column in converters:
        return converters[column](word)
    if word in missing or not word:
        return fill
    try:
        return _number(word, dtype)
    except ValueError:
        return fill


def savetxt(fname, X, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# ", encoding=None):
    """Writes an array to a text file, a row to a line.

    fname: a path (.gz, .bz2 and .xz are compressed), or a file object.
    X: an array of one dimension, which is a column, or two; it is evaluated.
    fmt: the format of each number, or a list of one for each column.
    delimiter, newline: what stands between numbers, and behind a row.
    header, footer: texts above and below, behind the text that comments says.
    encoding: of the file; None is latin1.
    Raises ValueError for other numbers of dimensions, TypeError or AttributeError for a format that does not fit.

    >>> import nvm.numpy as np
    >>> import io
    >>> file = io.StringIO()
    >>> np.savetxt(file, [[1, 2], [3, 4]], fmt="%d", delimiter=",")
    >>> print(file.getvalue())
    1,2
    3,4
    """
    x = asarray(X)
    if x.ndim not in (1, 2):
        raise fault(ValueError, f"Expected 1D or 2D array, got {x.ndim}D array instead")
    x = x.reshape(x.size, 1) if x.ndim == 1 else x
    columns = x.shape[1]
    if isinstance(fmt, (list, tuple)):
        if len(fmt) != columns:
            raise AttributeError(f"fmt has wrong shape.  {fmt}")
        row = delimiter.join(fmt)
    else:
        row = fmt if fmt.count("%") > 1 else delimiter.join([fmt] * columns)
    if x.dtype.kind == "c" and not isinstance(fmt, (list, tuple)):
        row = delimiter.join([f" ({fmt}+{fmt}j)"] * columns)
    text = [comments + header.replace("\n", "\n" + comments)] if header else []
    for values in x.tolist():
        if x.dtype.kind == "c":
            values = [part for z in values for part in (z.real, z.imag)]
        try:
            line = row % tuple(values)
        except TypeError as e:
            raise fault(
                TypeError, f"Mismatch between array dtype ('{x.dtype.name}') and format specifier ('{row}')"
            ) from e
        text.append(line.replace("+-", "-") if x.dtype.kind == "c" else line)
    text += [comments + footer.replace("\n", "\n" + comments)] if footer else []
    _put(fname, "".join(line + newline for line in text), encoding)


def _put(fname, text, encoding):
    if hasattr(fname, "write"):
        try:
            fname.write(text)
        except TypeError:
            fname.write(text.encode(encoding or "latin1"))
    else:
        with _opened(fname, "wt", encoding or "latin1", newline="") as stream:
            stream.write(text)


__all__ = public(globals())
