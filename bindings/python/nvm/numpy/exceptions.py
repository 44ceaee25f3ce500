"""nvm.numpy.exceptions: the errors and warnings that NumPy has under these names."""


class AxisError(ValueError, IndexError):
    """An axis that an array does not have: AxisError(message), or AxisError(axis, ndim, the argument's name)."""

    def __init__(self, axis, ndim=None, msg_prefix=None):
        self.axis, self.ndim = (None, None) if ndim is None else (axis, ndim)
        self._text = axis if ndim is None else f"axis {axis} is out of bounds for array of dimension {ndim}"
        if msg_prefix is not None:
            self._text = f"{msg_prefix}: {self._text}"
        super().__init__(self._text)

    def __str__(self):
        return str(self._text)


class ComplexWarning(RuntimeWarning):
    """Imaginary parts are discarded."""


class RankWarning(RuntimeWarning):
    """A least-squares fit is badly conditioned."""


class VisibleDeprecationWarning(UserWarning):
    """A deprecation that a user sees by default."""


class ModuleDeprecationWarning(DeprecationWarning):
    """A module that is deprecated."""


class TooHardError(RuntimeError):
    """A problem that is too hard to be solved exactly."""


class DTypePromotionError(TypeError):
    """Dtypes that have no common dtype."""


__all__ = [
    "AxisError",
    "ComplexWarning",
    "DTypePromotionError",
    "ModuleDeprecationWarning",
    "RankWarning",
    "TooHardError",
    "VisibleDeprecationWarning",
]
