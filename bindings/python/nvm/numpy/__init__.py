"""nvm.numpy: NumPy's names, signatures, default dtypes and behaviour over nvm's lazy arrays, for programs whose import
alone changes. What is not here is an AttributeError that names the nearest; nothing is handed to NumPy. Where NumPy
returns a scalar, a function of this module returns an array of no dimensions."""

from .. import _nvm
from .._ufunc import UFUNCS as _UFUNCS
from .._ufunc import ufunc

ndarray, euler_gamma = _nvm.Array, 0.5772156649015329
__version__ = "2.4.0"  # of the NumPy whose names and behaviour these are: programs ask
globals().update(_UFUNCS)
globals().update((name, t) for name, t in vars(_nvm).items() if isinstance(t, _nvm.DType))
# Functions by the files that have them, which are imported when one is asked for first
_THEMES = {
    "bits": "may_share_memory packbits shares_memory unpackbits",
    "creation": (
        "arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray copy diag diagflat "
        "diagonal empty empty_like eye from_dlpack frombuffer fromfunction fromiter full full_like geomspace "
        "identity linspace logspace ones ones_like require tri tril triu vander zeros zeros_like"
    ),
    "dtypes": (
        "False_ ScalarType True_ bool_ byte can_cast cdouble common_type complexfloating csingle double dtype "
        "finfo floating generic half iinfo inexact int_ intc integer intp isdtype issubdtype little_endian long "
        "longlong min_scalar_type mintypecode number promote_types result_type sctypeDict short signedinteger "
        "single typecodes typename ubyte uint uintc uintp ulong ulonglong unsignedinteger ushort"
    ),
    "errors": "errstate geterr seterr",
    "functional": "apply_along_axis apply_over_axes iterable piecewise vectorize",
    "grids": (
        "c_ diag_indices diag_indices_from index_exp indices ix_ mask_indices meshgrid mgrid ndenumerate ndindex "
        "ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from triu_indices triu_indices_from unravel_index"
    ),
    "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "indexing": "choose compress fill_diagonal place put put_along_axis putmask select take take_along_axis trace",
    "io": "NpzFile fromfile fromstring load save savez savez_compressed",
    "joining": (
        "append array_split block column_stack concat concatenate delete dsplit dstack hsplit hstack insert "
        "row_stack split stack trim_zeros unstack vsplit vstack"
    ),
    "logic": (
        "allclose angle array_equal array_equiv imag isclose iscomplex iscomplexobj isfortran isneginf isposinf "
        "isreal isrealobj isscalar real real_if_close"
    ),
    "math": (
        "around clip convolve correlate cross diff ediff1d fix gradient interp nan_to_num round sinc trapezoid unwrap"
    ),
    "nan": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "polynomials": "poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "printing": (
        "array2string array_repr array_str base_repr binary_repr get_printoptions printoptions set_printoptions"
    ),
    "products": "dot einsum einsum_path inner kron outer tensordot vdot",
    "reductions": (
        "all amax amin any argmax argmin count_nonzero cumprod cumsum cumulative_prod cumulative_sum max mean min "
        "prod ptp std sum var"
    ),
    "sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "shapes": (
        "astype atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to copyto expand_dims "
        "flip fliplr flipud matrix_transpose moveaxis ndim pad permute_dims ravel repeat reshape resize roll "
        "rollaxis rot90 shape size squeeze swapaxes tile transpose"
    ),
    "sorting": (
        "argpartition argsort argwhere digitize extract flatnonzero lexsort nonzero partition searchsorted sort "
        "sort_complex where"
    ),
    "statistics": "average corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile",
    "text": "genfromtxt loadtxt savetxt",
    "windows": "bartlett blackman hamming hanning i0 kaiser",
}
_FILES = {name: theme for theme, names in _THEMES.items() for name in names.split()}
_OF_NVM = "__array_namespace_info__", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi"
_LATE = "emath", "exceptions", "lib", "polynomial", "random", "testing"


def _import(file):
    from sys import modules

    name = f"{__name__}.{file}"
    __import__(name)
    return modules[name]


def __getattr__(name):
    if name in _FILES:
        value = getattr(_import("_" + _FILES[name]), name)
    elif name in _OF_NVM:
        from sys import modules

        value = getattr(modules[__package__.rpartition(".")[0]], name)
    elif name in _LATE:
        return _import(name)
    else:
        from .._names import INSTEAD_OF_NUMPY, missing

        raise missing(name, __all__, "nvm.numpy", INSTEAD_OF_NUMPY) from None
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


__all__ = sorted({n for n in (*globals(), *_FILES, *_OF_NVM, *_LATE) if n[0] != "_"}) + [
    "__array_namespace_info__",
    "__version__",
]
