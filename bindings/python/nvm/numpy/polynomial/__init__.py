"""nvm.numpy.polynomial: power series as a class, Polynomial, and as functions of
coefficients (polynomial.polyval, ...)."""

from . import polynomial, polyutils
from ._class import Polynomial

__all__ = ["Polynomial", "polynomial", "polyutils"]
_INSTEAD = dict.fromkeys(
    (
        "Chebyshev",
        "Hermite",
        "HermiteE",
        "Laguerre",
        "Legendre",
        "chebyshev",
        "hermite",
        "hermite_e",
        "laguerre",
        "legendre",
    ),
    "nvm has the basis of powers, Polynomial",
)


def __getattr__(name):
    from ..._names import missing

    raise missing(name, __all__, "nvm.numpy.polynomial", _INSTEAD) from None
