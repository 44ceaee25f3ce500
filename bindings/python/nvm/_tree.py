"""Pytrees: classes whose instances nvm.jit and the loops look into, beside tuples, lists and dicts. Dataclasses are
known by themselves."""

from . import _nvm

_nodes = {}  # registered class: (flatten, unflatten)
_PLAIN = frozenset((_nvm.Array, bool, int, float, complex, tuple, list, dict, type(None)))


def _is_constant(field, value):
    """Is the value of a field a constant of the trace? Those are that are marked, and those that no array can be."""
    if field.metadata.get("static"):
        return True
    if type(value) in _PLAIN:
        return False
    from enum import Enum

    if isinstance(value, (str, bytes, type, Enum)):
        return True
    return callable(value) and type(value) not in _nodes and not _is_dataclass(value)


class _Fields(tuple):
    """The static data of a dataclass that is not registered: (names of children, (name, constant) of the rest)."""


def _is_dataclass(x):
    return hasattr(type(x), "__dataclass_fields__")


def _flatten_dataclass(x):
    names, children, constants = [], [], []
    for name, field in x.__dataclass_fields__.items():
        if field._field_type.name != "_FIELD" or not hasattr(x, name):  # ClassVar and InitVar hold nothing
            continue
        value = getattr(x, name)
        if _is_constant(field, value):
            constants.append((name, value))
        else:
            names.append(name)
            children.append(value)
    return children, _Fields((tuple(names), tuple(constants)))


def _unflatten_dataclass(cls, data, children):
    names, constants = data
    x = object.__new__(cls)
    for name, value in (*zip(names, children, strict=True), *constants):
        object.__setattr__(x, name, value)
    return x


def open_node(x):
    """(static data, tuple of children) of an instance of a registered class or of a dataclass."""
    node = _nodes.get(type(x))
    children, data = node[0](x) if node else _flatten_dataclass(x)
    return data, tuple(children)


def close_node(cls, data, children):
    """The instance with these parts, in the way in which it was opened."""
    return _unflatten_dataclass(cls, data, children) if type(data) is _Fields else _nodes[cls][1](data, children)


def is_node(x):
    """Does nvm look into x, which is no tuple, list or dict itself?"""
    return type(x) in _nodes or _is_dataclass(x)


def register_pytree(cls, flatten, unflatten):
    """Makes jitted functions and loops take and return instances of cls, as they do tuples and dicts.

    flatten(x) returns the children of x (arrays, numbers, None, and nestings of them), as an iterable, and its static
    data, which must be hashable and is a constant of a trace. unflatten(data, children) makes an instance of them; its
    children may have no values yet. TypeError if cls is no class; ValueError if it is registered, or is one that nvm
    takes as it is (tuple, list, dict, arrays, numbers).

    Dataclasses need no registration: their fields are the children, except those that hold strings, functions, classes
    or enumeration members, and those made by field(metadata={"static": True}), which are static. An instance that a
    function gets or returns is made without calling __init__ or __post_init__. A dataclass that is registered is
    taken as flatten and unflatten say; what was traced before keeps making its instances from their fields.

    >>> import nvm
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _ = nvm.register_pytree(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
    >>> nvm.jit(lambda p: p.a + p.b)(Pair(1.0, 2.0))
    array(3.)
    """
    if not isinstance(cls, type):
        raise TypeError(f"[register_pytree] takes a class, not {type(cls).__name__}")
    if not callable(flatten) or not callable(unflatten):
        raise TypeError(f"[register_pytree] {cls.__name__}: flatten and unflatten must be functions")
    if cls in (tuple, list, dict, type(None), bool, int, float, complex, _nvm.Array):
        raise ValueError(f"[register_pytree] {cls.__name__} is known to nvm as it is")
    if cls in _nodes:
        raise ValueError(f"[register_pytree] {cls.__qualname__} is registered already")
    _nodes[cls] = flatten, unflatten
    return cls


_nvm.hooks.update(tree_nodes=_nodes, tree_open=open_node, tree_close=close_node)
