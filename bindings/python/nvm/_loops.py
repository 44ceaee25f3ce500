"""fori_loop, while_loop, cond and scan: loops whose bodies are traced and planned once. Here carries are nested; the C
half has flat lists of arrays."""

from . import _nvm
from ._tree import close_node, is_node, open_node

_FORI_LOOP, _WHILE_LOOP, _COND, _SCAN = range(4)


class Tree:
    """The nesting of tuples, lists, dicts, None and pytrees of other classes around the leaves of a value, and the name
    of each leaf. A shape is None, ... for a leaf, or (class, shapes of the items, static data as of open_items)."""

    def __init__(self, x, name):
        self.leaves, self.names = [], []
        self.shape = self._take(x, name)

    def _take(self, x, name):
        if x is None:
            return None
        items, data = open_items(x)
        if isinstance(items, dict):
            return type(x), {k: self._take(y, f"{name}[{k!r}]") for k, y in items.items()}, data
        if items is not None:
            return type(x), [self._take(y, f"{name}[{i}]") for i, y in enumerate(items)], data
        self.leaves.append(x)
        self.names.append(name)
        return ...

    def flatten(self, x, who, what):
        """The leaves of x, which is nested in the same way, in this order."""
        out = []
        self._match(self.shape, x, out, who, what)
        return tuple(out)

    def _match(self, shape, x, out, who, what):
        if shape is ...:
            if x is None or open_items(x)[0] is not None:
                raise TypeError(f"[{who}] {what} is {_describe(x)}, and has to be an array or a number")
            out.append(x)
            return
        kind, items, data = shape or (type(None), (), None)
        has, given = open_items(x)
        same = type(x) is kind and data == given and (shape is None or len(has) == len(items))
        if same and isinstance(items, dict):
            same = has.keys() == items.keys()
        if not same:
            raise TypeError(f"[{who}] {what} is {_describe(x)}, and has to be {_describe_shape(shape)}")
        for k in items if isinstance(items, dict) else range(len(items)):
            self._match(items[k], has[k], out, who, f"{what}[{k!r}]")

    def build(self, leaves):
        return _build(self.shape, iter(leaves))


def open_items(x):
    """(items of x, static data): a dict or a sequence, and of a registered class a tuple of its data, else None;
    (None, None): x is a leaf."""
    if is_node(x):
        data, items = open_node(x)
        return items, (data,)
    return (x, None) if isinstance(x, (tuple, list, dict)) else (None, None)


def _build(shape, leaves):
    if shape is None:
        return None
    if shape is ...:
        return next(leaves)
    kind, items, data = shape
    if isinstance(items, dict):
        return kind((k, _build(v, leaves)) for k, v in items.items())
    made = [_build(v, leaves) for v in items]
    if data is not None:
        return close_node(kind, *data, made)
    return kind(*made) if hasattr(kind, "_fields") else kind(made)


def _describe(x):
    if isinstance(x, (tuple, list)):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, dict):
        return f"a {type(x).__name__} of {', '.join(map(repr, x))}"
    if is_node(x):
        return _describe_node(type(x), *open_items(x))
    return "None" if x is None else "an array or a number"


def _describe_node(kind, items, data):
    return f"a {kind.__name__} of {len(items)} and static data {data[0]!r}"


def _describe_shape(shape):
    if shape is None:
        return "None"
    kind, items, data = shape
    if data is not None:
        return _describe_node(kind, items, data)
    names = ", ".join(map(repr, items)) if isinstance(items, dict) else len(items)
    return f"a {kind.__name__} of {names}"


def _run(kind, functions, heads, init, names, xs=(), length=0, reverse=False):
    loop = _nvm.loop_open(kind, heads, tuple(init), tuple(names), tuple(xs), length, reverse)
    try:
        for i, f in enumerate(functions):
            _nvm.loop_outputs(loop, f(_nvm.loop_inputs(loop)), i + 1 == len(functions))
        return _nvm.loop_close(loop)
    finally:
        _nvm.loop_free(loop)


def _bound(x):
    return x if isinstance(x, _nvm.Array) else x.__index__()


def fori_loop(lower, upper, body_fun, init_val):
    """The carry after `for i in range(lower, upper): carry = body_fun(i, carry)`, from carry = init_val on.

    The carry is an array or a number, or tuples, lists, dicts and other pytrees (register_pytree) of them, whose
    dtypes and shapes stay the same. i is
    an integer that takes the dtype of the array that it meets; it has no value while body_fun is traced, once, but can
    index arrays. lower and upper may be 0-d arrays. body_fun may write to the arrays of the carry that it gets and
    return them; what it writes to single elements and rows is stored in place.

    >>> import nvm
    >>> nvm.fori_loop(0, 10, lambda i, total: total + i, nvm.asarray(0))
    array(45)
    """
    tree = Tree(init_val, "carry")

    def body(inputs):
        made = body_fun(inputs[0], tree.build(inputs[1:]))
        return tree.flatten(made, "fori_loop", "what the body returns")

    heads = (_bound(lower), _bound(upper))
    return tree.build(_run(_FORI_LOOP, (body,), heads, tree.leaves, tree.names))


def while_loop(cond_fun, body_fun, init_val):
    """The carry after `while cond_fun(carry): carry = body_fun(carry)`, from carry = init_val on.

    cond_fun returns a 0-d bool. It is traced twice, body_fun once. On a GPU each step waits for the value of cond_fun.

    >>> import nvm
    >>> nvm.while_loop(lambda x: x < 100, lambda x: x * 2, nvm.asarray(3))
    array(192)
    """
    tree = Tree(init_val, "carry")

    def test(inputs):
        return (cond_fun(tree.build(inputs)),)

    def body(inputs):
        return tree.flatten(body_fun(tree.build(inputs)), "while_loop", "what the body returns")

    return tree.build(_run(_WHILE_LOOP, (test, body, test), (), tree.leaves, tree.names))


def cond(pred, true_fun, false_fun, *operands):
    """true_fun(*operands) or false_fun(*operands), as pred, a 0-d bool, says. Both are traced, and one runs: they have
    to return arrays of the same nesting, dtypes and shapes. On a GPU this waits for pred.

    >>> import nvm
    >>> nvm.cond(nvm.asarray(True), lambda x: x + 1, lambda x: x - 1, nvm.asarray(5))
    array(6)
    """
    tree = Tree(operands, "operand")
    made = None

    def true(inputs):
        nonlocal made
        made = Tree(true_fun(*tree.build(inputs)), "result")
        return tuple(made.leaves)

    def false(inputs):
        return made.flatten(false_fun(*tree.build(inputs)), "cond", "what the branch for false returns")

    if not isinstance(pred, (bool, _nvm.Array)):
        pred = _nvm.asarray(pred)
    if isinstance(pred, _nvm.Array) and pred.dtype != _nvm.bool:
        pred = pred != 0
    flat = _run(_COND, (true, false), (pred,), tree.leaves, tree.names)
    return made.build(flat)


def scan(f, init, xs=None, length=None, reverse=False):
    """(carry, ys) of `for x in xs: carry, y = f(carry, x)`, from carry = init on, with all y stacked along a new first
    axis.

    xs is an array, or tuples, lists and dicts of them, whose rows along the first axis are taken in order, or from the
    last one if reverse. With xs=None, f gets None and length is the number of steps. A y may be None.

    >>> import nvm
    >>> nvm.scan(lambda total, x: (total + x, total), nvm.asarray(0), nvm.asarray([1, 2, 3]))
    (array(6), array([0, 1, 3]))
    """
    tree, rows, ys = Tree(init, "carry"), Tree(xs, "x"), None
    if length is None and not rows.leaves:
        raise ValueError("[scan] a length is needed where there are no xs")

    def body(inputs):
        nonlocal ys
        n = len(tree.leaves)
        made = f(tree.build(inputs[:n]), rows.build(inputs[n:]))
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"[scan] the body returns {_describe(made)}, and has to return (carry, y)")
        ys = Tree(made[1], "y")
        return tree.flatten(made[0], "scan", "the carry that the body returns") + tuple(ys.leaves)

    steps = 0 if length is None else length.__index__()
    if length is not None and steps == 0 and any(len(x) for x in rows.leaves):  # in C it means that of xs
        raise ValueError(f"[scan] the length is 0, and x has {len(rows.leaves[0])} rows")
    flat = _run(_SCAN, (body,), (), tree.leaves, tree.names, rows.leaves, steps, reverse)
    return tree.build(flat[: len(tree.leaves)]), ys.build(flat[len(tree.leaves) :])
