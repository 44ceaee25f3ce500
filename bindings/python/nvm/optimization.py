"""nvm.optimization: choosing how programs run, by measuring (nvm.auto_tune, nvm.tune)."""

from ._tune import auto_tune, tune

__all__ = ["auto_tune", "tune"]
