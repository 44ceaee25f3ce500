"""Products of several dimensions, einsum: what needs no factorization, so that nothing else is imported for it."""

from . import _nvm
from ._array_api import result_type

_f = _nvm.functions


def outer(x1, x2, /):
    """Products of each element of x1 with each of x2; both one-dimensional.

    >>> import nvm
    >>> nvm.outer(nvm.asarray([1, 2]), nvm.asarray([3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("[outer] both arrays must have one dimension")
    return x1[:, None] * x2[None, :]


def tensordot(x1, x2, /, axes=2, *, dtype=None, precision=None):
    """Sum of products over several dimensions of both arrays: over the last `axes` of x1 and the first of x2, or over
    those that a pair of sequences names.

    >>> import nvm
    >>> nvm.tensordot(nvm.asarray([[1, 2], [3, 4]]), nvm.asarray([1, 1]), axes=1)
    array([3, 7])
    """
    if not hasattr(axes, "__index__"):
        left, right = ([a] if hasattr(a, "__index__") else list(a) for a in axes)
        if len(left) != len(right):
            raise ValueError(f"[tensordot] axes name {len(left)} dimensions of x1 and {len(right)} of x2")
        axes = left + right
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    if x1.dtype == x2.dtype == _nvm.bool and dtype is None:  # as NumPy: is any pair of factors true?
        return (
            _f["tensordot"](x1.astype(_nvm.int64), x2.astype(_nvm.int64), axes=axes, dtype=dtype, precision=precision)
            != 0
        )
    return _f["tensordot"](x1, x2, axes=axes, dtype=dtype, precision=precision)


def inner(x1, x2, /, *, dtype=None, precision=None):
    """Sums of products over the last dimension of both arrays; scalars multiply.

    >>> import nvm
    >>> nvm.inner(nvm.asarray([1, 2]), nvm.asarray([3, 4]))
    array(11)
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    axes = ([-1], [-1]) if x1.ndim and x2.ndim else 0
    return tensordot(x1, x2, axes=axes, dtype=dtype, precision=precision)


def dot(x1, x2, /, *, dtype=None, precision=None):
    """NumPy's dot: over the last dimension of x1 and the last but one of x2 (its only one); scalars multiply.

    >>> import nvm
    >>> nvm.dot(nvm.asarray([1, 2]), nvm.asarray([3, 4]))
    array(11)
    """
    x1, x2 = _nvm.asarray(x1), _nvm.asarray(x2)
    axes = ([-1], [-2 if x2.ndim > 1 else -1]) if x1.ndim and x2.ndim else 0
    if axes and x1.shape[-1] != x2.shape[axes[1][0]]:
        raise ValueError(f"[dot] inner dimensions differ: {x1.shape} and {x2.shape}")
    return tensordot(x1, x2, axes=axes, dtype=dtype, precision=precision)


# ---- einsum: NumPy's arguments as the library's
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WAYS = {False: 0, True: 1, "greedy": 1, "optimal": 2, "auto": 3, None: 3}  # nvm_order


def _as_text(labels):
    """[0, Ellipsis, 2] as 'a...c'."""
    out = []
    for k in labels:
        if k is not Ellipsis and not 0 <= k < len(_LETTERS):
            raise ValueError(f"[einsum] there is no label {k}")
        out.append("..." if k is Ellipsis else _LETTERS[k])
    return "".join(out)


def _subscripts(args):
    """(text, operands) of einsum's arguments: a text first, or operands each with a list of labels, and those of the
    result."""
    if not args:
        raise ValueError("[einsum] needs subscripts and operands")
    if isinstance(args[0], str):
        return args[0], args[1:]
    text = ",".join(_as_text(labels) for labels in args[1 : len(args) // 2 * 2 : 2])
    operands = args[0 : len(args) // 2 * 2 : 2]
    return (text + "->" + _as_text(args[-1]) if len(args) % 2 else text), operands


def _path(optimize):
    """What the library calls it: a way, or the steps of a path with their lengths."""
    if optimize is None or isinstance(optimize, (bool, str)):
        if optimize not in _WAYS:
            raise ValueError(f"[einsum] there is no way {optimize!r} to optimize")
        return _WAYS[optimize]
    steps = list(optimize)
    if steps and isinstance(steps[0], str):  # "einsum_path" of NumPy; ("greedy", memory limit): the limit is not needed
        if steps[0] != "einsum_path":
            return _path(steps[0])
        del steps[0]
    return [k for step in steps for k in (len(step), *step)]


def einsum(*args, optimize=None, dtype=None, precision=None):
    """The sums of products that subscripts name: einsum("ij,jk->ik", x1, x2), or einsum(x1, [0, 1], x2, [1, 2],
    [0, 2]). Equal letters in one operand are its diagonal; a letter that the result lacks is summed over; "..." stands
    for dimensions that broadcast. optimize, for three operands and more: the order of products. None (the best for up
    to 8, else greedy), False (from the left), True or "greedy", "optimal", or a path as of einsum_path.

    >>> import nvm
    >>> nvm.einsum("ij,j->i", nvm.asarray([[1, 2], [3, 4]]), nvm.asarray([1, 1]))
    array([3, 7])
    """
    text, operands = _subscripts(args)
    given = {"optimize": _path(optimize), "dtype": dtype, "precision": precision}
    if all(getattr(getattr(x, "dtype", None), "kind", "") != "b" for x in operands):
        return _f["einsum"](operands, text, **given)
    return _einsum_of_bools(tuple(map(_nvm.asarray, operands)), text, given)


def _einsum_of_bools(operands, text, given):
    """Among numbers bools are numbers; among themselves products are ands, and sums are ors."""
    numbers = [x for x in operands if x.dtype.kind != "b"]
    number = result_type(*numbers) if numbers else _nvm.int64
    made = _f["einsum"]([x.astype(number) if x.dtype.kind == "b" else x for x in operands], text, **given)
    return made if numbers or given["dtype"] is not None else made != 0


def einsum_path(*args, optimize="greedy"):
    """(path, text): the order in which einsum multiplies these operands, as its argument `optimize` takes it, and what
    it costs.

    >>> import nvm
    >>> nvm.einsum_path("ij,jk->ik", nvm.ones((2, 3)), nvm.ones((3, 4)))[0]
    ['einsum_path', (0, 1)]
    """
    text, operands = _subscripts(args)
    operands = tuple(_nvm.asarray(x) for x in operands)
    way = _path(optimize)
    if not isinstance(way, int):
        return list(optimize), f"{text}: as given"
    pairs, work = _nvm.einsum_path(text, way, operands)
    _, naive = _nvm.einsum_path(text, 0, operands)
    return ["einsum_path", *pairs], f"{text}: {len(pairs)} products, {work:.3e} operations ({naive:.3e} from the left)"
