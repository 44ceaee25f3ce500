"""nvm.vmap: a function of single elements over a batch of them. Here arguments and results are nested; the C half has
flat tuples of arrays."""

from . import _nvm
from ._loops import Tree, open_items


def _axes_of(x, axes, name, out):
    """Appends the axis of each leaf of x. axes: an int or None for all leaves of x, or a nesting like that of x."""
    items = open_items(x)[0]
    if axes is None or isinstance(axes, int):
        if items is None:
            out += [axes] * (x is not None)
            return
        for value in items.values() if isinstance(items, dict) else items:
            _axes_of(value, axes, name, out)
        return
    given = open_items(axes)[0]
    if items is None or given is None or len(items) != len(given) or isinstance(items, dict) != isinstance(given, dict):
        raise ValueError(f"[vmap] {name} {axes!r} does not fit {type(x).__name__} there: an int, None, or its nesting")
    for key in items if isinstance(items, dict) else range(len(items)):
        _axes_of(items[key], given[key], name, out)


def _check_axes(axes, name):
    items = open_items(axes)[0]
    if items is not None:
        for value in items.values() if isinstance(items, dict) else items:
            _check_axes(value, name)
    elif axes is not None and (not isinstance(axes, int) or isinstance(axes, bool)):
        raise TypeError(f"[vmap] {name} holds {axes!r}, which is no int and not None")


def _map_leaves(fun, args, kwargs, axes, out_axes):
    tree = Tree((args, kwargs), "argument")
    at = [i for i, axis in enumerate(axes) if axis is not None]
    arrays = tuple(_nvm.asarray(tree.leaves[i]) for i in at)
    trace = _nvm.vmap_open(arrays, tuple(axes[i] for i in at))
    try:
        leaves = list(tree.leaves)
        for i, x in zip(at, _nvm.vmap_inputs(trace), strict=True):
            leaves[i] = x
        args, kwargs = tree.build(leaves)
        made = Tree(fun(*args, **kwargs), "result")
        back = []
        _axes_of(made.build(made.leaves), out_axes, "out_axes", back)
        return made.build(_nvm.vmap_close(trace, tuple(_nvm.asarray(y) for y in made.leaves), tuple(back)))
    finally:
        _nvm.vmap_free(trace)


def vmap(fun, in_axes=0, out_axes=0):
    """fun, which is written for one element, as a function of a whole batch.

    The arrays of an argument have the batch along the axis that in_axes gives: an int for all arguments, or a sequence
    with an int or None for each positional one, or nestings of these like the argument's; None: each element gets the
    argument whole. Arguments by keyword have it along axis 0. Results are stacked along out_axes, an int, or a nesting
    like the result's; None: the result is the same for all elements.

    fun is called once, with arrays of one dimension less that have no values, and its graph is made one of all elements
    at once: nothing is looped over, and a product with a matrix that all elements share becomes one matrix product. So
    it works inside nvm.jit, and vmap(vmap(f)) as well. fun may not write to its arguments.

    A loop of nvm.fori_loop and its kind takes its steps for all elements together, as many as the element that needs
    the most; those that are done keep their values. A cond whose predicate differs between the elements computes both
    branches. A draw of random numbers of shape s is one of shape (batch, *s): each element has numbers of its own.

    TypeError, ValueError or IndexError if axes do not fit the arguments, or if the extents of the batch differ.
    NotImplementedError if the function of a loop draws.

    >>> import nvm
    >>> nvm.vmap(lambda row: row.sum())(nvm.asarray([[1, 2], [3, 4]]))
    array([3, 7])
    """
    if not callable(fun):
        raise TypeError(f"[vmap] takes a function, not {type(fun).__name__}")
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    def mapped(*args, **kwargs):
        axes = []
        if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
            raise ValueError(f"[vmap] in_axes has {len(in_axes)} entries for {len(args)} arguments")
        _axes_of(args, in_axes if in_axes is None or isinstance(in_axes, int) else tuple(in_axes), "in_axes", axes)
        _axes_of(kwargs, 0, "in_axes", axes)
        return _map_leaves(fun, args, kwargs, axes, out_axes)

    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(fun, attribute):
            setattr(mapped, attribute, getattr(fun, attribute))
    mapped.__wrapped__ = fun
    return mapped
