"""Floating-point errors: nvm's kernels trap none and warn of none, which is what NumPy calls 'ignore'."""

from ._support import fault, public

_KINDS = ("divide", "over", "under", "invalid")


def geterr():
    """What happens on floating-point errors: nothing. Results have infinities and NaN where they arise.

    Returns a dict of 'ignore' for 'divide', 'over', 'under' and 'invalid'.

    >>> import nvm.numpy as np
    >>> np.geterr()["divide"]
    'ignore'
    """
    return dict.fromkeys(_KINDS, "ignore")


def _check(all=None, **kinds):
    for name, what in {"all": all, **kinds}.items():
        if what not in (None, "ignore"):
            raise fault(
                ValueError, f"{name}={what!r} is not here: nvm ignores floating-point errors; look for NaN in results"
            )


def seterr(all=None, divide=None, over=None, under=None, invalid=None):
    """Says what shall happen on floating-point errors, which has to be 'ignore'.

    all: for every kind of error. divide, over, under, invalid: for one. None leaves it as it is.
    Returns what geterr returned before.
    Raises ValueError for 'warn', 'raise' and the like: nvm traps no errors.

    >>> import nvm.numpy as np
    >>> previous = np.seterr(all="ignore")
    """
    _check(all, divide=divide, over=over, under=under, invalid=invalid)
    return geterr()


class errstate:
    """seterr for a while: a context manager, and a decorator.

    The arguments and errors are those of seterr.

    >>> import nvm.numpy as np
    >>> with np.errstate(divide="ignore"):
    ...     print(np.array([1.0]) / 0)
    [inf]
    """

    def __init__(self, *, call=None, all=None, divide=None, over=None, under=None, invalid=None):
        _check(all, divide=divide, over=over, under=under, invalid=invalid, call=call)

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

    def __call__(self, function):
        return function


__all__ = public(globals())
