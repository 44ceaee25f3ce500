"""Lets einops work on nvm's arrays: `import nvm.einops` once, then einops.rearrange, reduce, repeat, pack and einsum
take and give nvm arrays, lazily. einops itself has to be installed."""

import einops as _einops  # noqa: F401 # so that its absence is told by its name
from einops._backends import AbstractBackend

import nvm


class Backend(AbstractBackend):
    """einops finds it among the subclasses of AbstractBackend, by the name of a module that is loaded."""

    framework_name = "nvm"

    def is_appropriate_type(self, tensor):
        return isinstance(tensor, nvm.Array)

    def from_numpy(self, x):
        return nvm.asarray(x)

    def to_numpy(self, x):
        import numpy

        return numpy.asarray(x)

    def arange(self, start, stop):
        return nvm.arange(start, stop)

    def transpose(self, x, axes):
        return nvm.permute_dims(x, axes)

    def stack_on_zeroth_dimension(self, tensors):
        return nvm.stack(tensors)

    def add_axis(self, x, new_position):
        return nvm.expand_dims(x, axis=new_position)

    def tile(self, x, repeats):
        return nvm.tile(x, repeats)

    def concat(self, tensors, axis):
        return nvm.concat(tensors, axis=axis)

    def reshape(self, x, shape):
        return nvm.reshape(x, shape)

    def reduce(self, x, operation, axes):
        return getattr(nvm, operation)(x, axis=tuple(axes))

    def is_float_type(self, x):
        return nvm.isdtype(x.dtype, ("real floating", "complex floating"))

    def einsum(self, pattern, *x):
        return nvm.einsum(pattern, *x)
