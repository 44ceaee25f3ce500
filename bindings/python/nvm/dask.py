"""Dask arrays whose chunks are nvm's: `import nvm.dask` registers nvm.Array as a type of chunks, so that operators of a
Dask array and an nvm array are Dask's, and registers what Dask looks up by the type of a chunk."""

from dask.array import register_chunk_type
from dask.array.dispatch import percentile_lookup

from . import _nvm


def percentile(x, q, method="linear", **unused):
    """(percentiles of a chunk, the number of its elements), as Dask merges them."""
    from . import numpy

    if not x.size:
        return None, 0
    return numpy.percentile(x, numpy.asarray(q), method=method), x.size


register_chunk_type(_nvm.Array)
percentile_lookup.register(_nvm.Array, percentile)
