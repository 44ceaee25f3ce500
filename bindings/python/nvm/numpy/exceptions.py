"""nvm.numpy.exceptions: the errors and warnings that NumPy has under these names."""

from .. import _nvm


class AxisError(ValueError, IndexError):
    """An axis that an array does not have. It is a ValueError and an IndexError.

    axis: the axis, or the whole message.
    ndim: the number of dimensions of the array.
    msg_prefix: what stands in front of the message: the name of an argument.

    >>> import nvm.numpy as np
    >>> np.sum([1, 2], axis=1)
    Traceback (most recent call last):
        ...
    nvm.numpy.exceptions.AxisError: [sum] axis 1 is out of bounds for array of dimension 1
    """

    def __init__(self, axis, ndim=None, msg_prefix=None):
        self.axis, self.ndim = (None, None) if ndim is None else (axis, ndim)
        text = axis if ndim is None else f"axis {axis} is out of bounds for array of dimension {ndim}"
        super().__init__(text if msg_prefix is None else f"{msg_prefix}: {text}")

    def of(self, who):
        """The error, which names the function that raises it; None: as it is."""
        if who:
            self.args = (f"[{who}] {self}",)
        return self


_nvm.hooks["axis_error"] = lambda: AxisError


class ComplexWarning(RuntimeWarning):
    """A warning that imaginary parts are dropped.

    >>> import nvm.numpy as np
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     total = np.sum([1 + 2j], dtype=float)
    >>> caught[0].category.__name__
    'ComplexWarning'
    """


class RankWarning(RuntimeWarning):
    """A warning that a least-squares fit is badly conditioned.

    >>> import nvm.numpy as np
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     p = np.polyfit([1, 1], [2, 3], 1)
    >>> caught[0].category.__name__
    'RankWarning'
    """


class VisibleDeprecationWarning(UserWarning):
    """A deprecation that a user sees by default. nvm issues none; programs name it.

    >>> import nvm.numpy as np
    >>> issubclass(np.exceptions.VisibleDeprecationWarning, UserWarning)
    True
    """


class ModuleDeprecationWarning(DeprecationWarning):
    """A module that is deprecated. nvm issues none; programs name it.

    >>> import nvm.numpy as np
    >>> issubclass(np.exceptions.ModuleDeprecationWarning, DeprecationWarning)
    True
    """


class TooHardError(RuntimeError):
    """A problem that is too hard to be solved exactly. nvm raises none; programs name it.

    >>> import nvm.numpy as np
    >>> issubclass(np.exceptions.TooHardError, RuntimeError)
    True
    """


class DTypePromotionError(TypeError):
    """Dtypes that have no common dtype. nvm raises none; programs name it.

    >>> import nvm.numpy as np
    >>> issubclass(np.exceptions.DTypePromotionError, TypeError)
    True
    """


__all__ = [
    "AxisError",
    "ComplexWarning",
    "DTypePromotionError",
    "ModuleDeprecationWarning",
    "RankWarning",
    "TooHardError",
    "VisibleDeprecationWarning",
]
