/* Operations. Each returns a new lazy array, which belongs to the innermost open scope, or NULL with a message;
   operands are borrowed, and NULL operands pass through. No operation computes anything before a value is needed.

   Shapes of several operands broadcast as in NumPy: they are aligned at the last dimension, and extents of 1 repeat.
   dtypes promote as in NumPy 2 (NEP 50): weak scalars (nvm_float, nvm_int ...) take the dtype of the other operands;
   float16 with bfloat16 gives float32. "numbers" are integers, floats and complex; "floats" below means that integers
   and bool are first converted to the context's default float. Special values are those of the array API standard, and
   numerics.md says what it leaves open.

   Errors: NVM_ERR_VALUE for shapes that do not match or an axis given twice, NVM_ERR_TYPE for a dtype that the
   operation does not support, NVM_ERR_INDEX for an axis or a slice out of range. Negative axes count from the end.
   Attribute names for nvm_apply are in each operation's signature (nvm_op_get). */
#ifndef NVM_OPS_H
#define NVM_OPS_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- arithmetic. Integers wrap; x / 0, x % 0 are 0 for integers. Products and sums are never contracted to fma. */
NVM_API nvm_array *nvm_add(nvm_array *x1, nvm_array *x2);          /* x1 + x2; on bool: or */
NVM_API nvm_array *nvm_sub(nvm_array *x1, nvm_array *x2);          /* x1 - x2; numbers */
NVM_API nvm_array *nvm_mul(nvm_array *x1, nvm_array *x2);          /* x1 * x2; on bool: and */
NVM_API nvm_array *nvm_div(nvm_array *x1, nvm_array *x2);          /* x1 / x2; floats and complex */
NVM_API nvm_array *nvm_floor_divide(nvm_array *x1, nvm_array *x2); /* floor(x1 / x2); real numbers */
NVM_API nvm_array *nvm_remainder(nvm_array *x1, nvm_array *x2);    /* x1 modulo x2, the sign of x2; real numbers */
/* numbers; a negative integer scalar as exponent of integers: NVM_ERR_VALUE */
NVM_API nvm_array *nvm_pow(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_neg(nvm_array *x);                                /* -x; numbers */
NVM_API nvm_array *nvm_positive(nvm_array *x);                           /* x; numbers */
NVM_API nvm_array *nvm_abs(nvm_array *x);                                /* numbers; complex gives its real dtype */
NVM_API nvm_array *nvm_sign(nvm_array *x);                               /* -1, 0, 1; complex: x / abs(x) */
NVM_API nvm_array *nvm_square(nvm_array *x);                             /* x * x; numbers */
NVM_API nvm_array *nvm_reciprocal(nvm_array *x);                         /* 1 / x; floats and complex */
NVM_API nvm_array *nvm_sqrt(nvm_array *x);                               /* correctly rounded; floats and complex */
NVM_API nvm_array *nvm_rsqrt(nvm_array *x);                              /* 1 / sqrt(x); floats */
NVM_API nvm_array *nvm_cbrt(nvm_array *x);                               /* floats */
NVM_API nvm_array *nvm_fma(nvm_array *x1, nvm_array *x2, nvm_array *x3); /* x1 * x2 + x3 rounded once; floats */
NVM_API nvm_array *nvm_maximum(nvm_array *x1, nvm_array *x2);            /* NaN wins, -0 < +0; real numbers, bool */
NVM_API nvm_array *nvm_minimum(nvm_array *x1, nvm_array *x2);            /* likewise */
NVM_API nvm_array *nvm_hypot(nvm_array *x1, nvm_array *x2);     /* sqrt(x1^2 + x2^2), no overflow inside; floats */
NVM_API nvm_array *nvm_copysign(nvm_array *x1, nvm_array *x2);  /* magnitude of x1, sign of x2; floats */
NVM_API nvm_array *nvm_nextafter(nvm_array *x1, nvm_array *x2); /* float32, float64 */
/* minimum(maximum(x, min), max); either bound may be nvm_none(). Real numbers, bool. */
NVM_API nvm_array *nvm_clip(nvm_array *x, nvm_array *min, nvm_array *max);

/* ---- exponentials and logarithms. They take floats, and complex where not said otherwise. */
NVM_API nvm_array *nvm_exp(nvm_array *x);
NVM_API nvm_array *nvm_exp2(nvm_array *x); /* real */
NVM_API nvm_array *nvm_expm1(nvm_array *x);
NVM_API nvm_array *nvm_log(nvm_array *x);
NVM_API nvm_array *nvm_log1p(nvm_array *x);
NVM_API nvm_array *nvm_log2(nvm_array *x);
NVM_API nvm_array *nvm_log10(nvm_array *x);
NVM_API nvm_array *nvm_logaddexp(nvm_array *x1, nvm_array *x2); /* log(exp(x1) + exp(x2)); real */

/* ---- circular and hyperbolic functions. They take floats and complex (atan2: real). */
NVM_API nvm_array *nvm_sin(nvm_array *x);
NVM_API nvm_array *nvm_cos(nvm_array *x);
NVM_API nvm_array *nvm_tan(nvm_array *x);
NVM_API nvm_array *nvm_asin(nvm_array *x);
NVM_API nvm_array *nvm_acos(nvm_array *x);
NVM_API nvm_array *nvm_atan(nvm_array *x);
NVM_API nvm_array *nvm_atan2(nvm_array *x1, nvm_array *x2); /* the angle of the point (x2, x1) */
NVM_API nvm_array *nvm_sinh(nvm_array *x);
NVM_API nvm_array *nvm_cosh(nvm_array *x);
NVM_API nvm_array *nvm_tanh(nvm_array *x);
NVM_API nvm_array *nvm_asinh(nvm_array *x);
NVM_API nvm_array *nvm_acosh(nvm_array *x);
NVM_API nvm_array *nvm_atanh(nvm_array *x);

/* ---- special functions and activations. They take floats (relu: real numbers). */
NVM_API nvm_array *nvm_erf(nvm_array *x);
NVM_API nvm_array *nvm_erfc(nvm_array *x);
NVM_API nvm_array *nvm_lgamma(nvm_array *x);  /* log(abs(gamma(x))) */
NVM_API nvm_array *nvm_sigmoid(nvm_array *x); /* 1 / (1 + exp(-x)) */
NVM_API nvm_array *nvm_relu(nvm_array *x);    /* maximum(x, 0) */
NVM_API nvm_array *nvm_silu(nvm_array *x);    /* x * sigmoid(x) */
NVM_API nvm_array *nvm_gelu(nvm_array *x);    /* x * (1 + erf(x / sqrt 2)) / 2 */
/* gelu approximated with tanh (Hendrycks, Gimpel 2016) */
NVM_API nvm_array *nvm_gelu_tanh(nvm_array *x);

/* ---- rounding, parts, tests. Integers round to themselves; their parts are themselves and 0. */
NVM_API nvm_array *nvm_ceil(nvm_array *x);
NVM_API nvm_array *nvm_floor(nvm_array *x);
NVM_API nvm_array *nvm_trunc(nvm_array *x);
NVM_API nvm_array *nvm_round(nvm_array *x); /* ties to even; numbers */
NVM_API nvm_array *nvm_real(nvm_array *x);  /* numbers */
NVM_API nvm_array *nvm_imag(nvm_array *x);
NVM_API nvm_array *nvm_conj(nvm_array *x);
NVM_API nvm_array *nvm_from_parts(nvm_array *re, nvm_array *im); /* floats -> complex64, complex128 */
NVM_API nvm_array *nvm_isfinite(nvm_array *x);                   /* any dtype -> bool */
NVM_API nvm_array *nvm_isinf(nvm_array *x);
NVM_API nvm_array *nvm_isnan(nvm_array *x);
NVM_API nvm_array *nvm_signbit(nvm_array *x); /* floats -> bool */

/* ---- comparisons, logic, bit operations, selection. Comparisons give bool: equal and not_equal take any dtype, the
   others real numbers and bool. Logic takes any dtype, in which nonzero is true. Bit operations take integers and
   bool. */
NVM_API nvm_array *nvm_equal(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_not_equal(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_less(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_less_equal(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_greater(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_greater_equal(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_logical_and(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_logical_or(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_logical_xor(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_logical_not(nvm_array *x);
NVM_API nvm_array *nvm_bitwise_and(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_bitwise_or(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_bitwise_xor(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_bitwise_invert(nvm_array *x);
/* integers; 0 for amounts outside [0, width) */
NVM_API nvm_array *nvm_bitwise_left_shift(nvm_array *x1, nvm_array *x2);
/* integers; for amounts outside [0, width) all bits are the sign (0 if unsigned) */
NVM_API nvm_array *nvm_bitwise_right_shift(nvm_array *x1, nvm_array *x2);
/* the condition is converted to bool, x1 and x2 are promoted */
NVM_API nvm_array *nvm_where(nvm_array *condition, nvm_array *x1, nvm_array *x2);
/* abs(x1 - x2) <= atol + rtol * abs(x2), or equal; with equal_nan two NaNs are close too. Floats -> bool. */
NVM_API nvm_array *nvm_isclose(nvm_array *x1, nvm_array *x2, double rtol, double atol, int equal_nan);
/* Conversion: rounds once to nearest even; floats to integers truncate and saturate, NaN gives 0; integers wrap;
   complex to real: NVM_ERR_TYPE. */
NVM_API nvm_array *nvm_astype(nvm_array *x, nvm_dtype dtype);

/* ---- reductions. They reduce `axes` (naxes of them; NULL: all). With keepdims, reduced dimensions keep extent 1. The
   order of floating-point sums depends on the shape alone (numerics.md section 4). Without elements, sum is 0, prod 1,
   all true, any false; the others are NVM_ERR_VALUE. */
/* the sum; bool and narrower integers are added as int64 or uint64 */
NVM_API nvm_array *nvm_sum(nvm_array *x, const int *axes, int naxes, int keepdims);
/* the product; dtypes as for nvm_sum */
NVM_API nvm_array *nvm_prod(nvm_array *x, const int *axes, int naxes, int keepdims);
NVM_API nvm_array *nvm_max(nvm_array *x, const int *axes, int naxes, int keepdims); /* NaN wins; real numbers, bool */
NVM_API nvm_array *nvm_min(nvm_array *x, const int *axes, int naxes, int keepdims);
/* 1 if all elements are nonzero; any dtype -> bool */
NVM_API nvm_array *nvm_all(nvm_array *x, const int *axes, int naxes, int keepdims);
/* 1 if some element is nonzero; any dtype -> bool */
NVM_API nvm_array *nvm_any(nvm_array *x, const int *axes, int naxes, int keepdims);
/* over one axis or all; the first position; -> int64 */
NVM_API nvm_array *nvm_argmax(nvm_array *x, const int *axes, int naxes, int keepdims);
NVM_API nvm_array *nvm_argmin(nvm_array *x, const int *axes, int naxes, int keepdims);
NVM_API nvm_array *nvm_count_nonzero(nvm_array *x, const int *axes, int naxes, int keepdims); /* -> int64 */
NVM_API nvm_array *nvm_mean(nvm_array *x, const int *axes, int naxes, int keepdims);          /* floats and complex */
/* divided by count - correction; floats */
NVM_API nvm_array *nvm_var(nvm_array *x, const int *axes, int naxes, double correction, int keepdims);
/* the square root of nvm_var */
NVM_API nvm_array *nvm_std(nvm_array *x, const int *axes, int naxes, double correction, int keepdims);
NVM_API nvm_array *nvm_logsumexp(nvm_array *x, const int *axes, int naxes, int keepdims); /* floats */
NVM_API nvm_array *nvm_softmax(nvm_array *x, int axis); /* exp(x - max) / its sum; floats */
NVM_API nvm_array *nvm_log_softmax(nvm_array *x, int axis);
/* ord may be any number, inf, -inf or 0 */
NVM_API nvm_array *nvm_vector_norm(nvm_array *x, double ord, const int *axes, int naxes, int keepdims);
NVM_API nvm_array *nvm_cumulative_sum(nvm_array *x, int axis); /* inclusive; dtypes as for sum, shape of x */
NVM_API nvm_array *nvm_cumulative_prod(nvm_array *x, int axis);
NVM_API nvm_array *nvm_vecdot(nvm_array *x1, nvm_array *x2, int axis); /* sum of conj(x1) * x2 along an axis; numbers */

/* ---- matrix products. They take numbers. If both operands have dimensions of their own, floats are multiplied by the
   fastest solver (numerics.md section 4 says what is guaranteed); products with vectors, and of integers, are sums of
   products. */
typedef struct nvm_matmul_options {
  unsigned version; /* NVM_MATMUL_OPTIONS_VERSION */
  /* dtype of the result and of the sums, to which the operands are converted; with float32, floats of 16 bits and less
     are multiplied unconverted. DEFAULT or 0: the promoted dtype, with sums of such floats in float32 */
  nvm_dtype dtype;
  nvm_precision precision;
} nvm_matmul_options;
#define NVM_MATMUL_OPTIONS_VERSION 1
#define NVM_MATMUL_OPTIONS_INIT { NVM_MATMUL_OPTIONS_VERSION, NVM_DTYPE_DEFAULT, NVM_PRECISION_IEEE }
/* (..., m, k) @ (..., k, n), where the leading dimensions broadcast; 1-d operands are a row and a column. */
NVM_API nvm_array *nvm_matmul(nvm_array *x1, nvm_array *x2);
NVM_API nvm_array *nvm_matmul_opt(nvm_array *x1, nvm_array *x2, const nvm_matmul_options *o); /* o NULL: defaults */
/* Multiplies matrices of 8-bit floats, a (..., m, k) and b (..., k, n), with each element times its scale. A scale is
   one number, or a float32 array with at least 2 dimensions and at most those of its operand, whose last two extents
   are m, ceil(m / 128) or 1 by ceil(k / 128) or 1 for a, and ceil(k / 128) or 1 by n, ceil(n / 128) or 1 for b. dtype:
   float32 (DEFAULT), float16 or bfloat16. */
NVM_API nvm_array *nvm_scaled_matmul(nvm_array *a, nvm_array *b, nvm_array *scale_a, nvm_array *scale_b,
                                     nvm_dtype dtype);
/* Contracts naxes dimensions: axes1[i] of x1 with axes2[i] of x2; if both are NULL, the last ones of x1 with the first
   ones of x2. */
NVM_API nvm_array *nvm_tensordot(nvm_array *x1, nvm_array *x2, const int *axes1, const int *axes2, int naxes,
                                 const nvm_matmul_options *o);
/* einsum with NumPy's subscripts ("ij,jk->ik", "...ii"). Several operands are multiplied pairwise in an order with few
   operations, as in opt_einsum (Smith, Gray 2018): the optimal order for up to 8 operands, a greedy one for more. */
NVM_API nvm_array *nvm_einsum(const char *subscripts, nvm_array *const *operands, int n, const nvm_matmul_options *o);
/* Returns that order and its number of operations: n - 1 pairs of positions in the list of operands; each pair is
   removed from the list, and its product is appended. A status. */
NVM_API int nvm_einsum_path(int (*pairs)[2], double *operations, const char *subscripts, nvm_array *const *operands,
                            int n, nvm_order order);

/* ---- views. They take any dtype; no element is copied before a value is needed. */
NVM_API nvm_array *nvm_reshape(nvm_array *x, int rank, const int64_t *shape); /* one extent may be -1 */
NVM_API nvm_array *nvm_permute_dims(nvm_array *x, const int *axes);           /* axes: one for each dimension of x */
NVM_API nvm_array *nvm_matrix_transpose(nvm_array *x);                        /* exchanges the last two dimensions */
NVM_API nvm_array *nvm_moveaxis(nvm_array *x, int source, int destination);   /* the others stay in order */
/* inserts a dimension of extent 1, at `axis` of the result */
NVM_API nvm_array *nvm_expand_dims(nvm_array *x, int axis);
/* removes a dimension; NVM_ERR_VALUE if its extent is not 1 */
NVM_API nvm_array *nvm_squeeze(nvm_array *x, int axis);
/* repeats extents of 1, and x as a whole along new leading dimensions */
NVM_API nvm_array *nvm_broadcast_to(nvm_array *x, int rank, const int64_t *shape);
/* count[d] elements of each dimension of x, starting at start[d] with step step[d] (not 0; step NULL: 1); all must be
   inside x */
NVM_API nvm_array *nvm_slice(nvm_array *x, const int64_t *start, const int64_t *count, const int64_t *step);
NVM_API nvm_array *nvm_flip(nvm_array *x, const int *axes, int naxes); /* NULL: all */
/* element i moves to i + shift, cyclically */
NVM_API nvm_array *nvm_roll(nvm_array *x, int64_t shift, int axis);
NVM_API nvm_array *nvm_diagonal(nvm_array *x, int64_t offset);                /* of the last two dimensions */
NVM_API nvm_array *nvm_tile(nvm_array *x, int n, const int64_t *repetitions); /* of the last n dimensions */
/* repeats each element, the copies adjacent */
NVM_API nvm_array *nvm_repeat(nvm_array *x, int64_t repeats, int axis);
/* n >= 1 arrays, promoted; their shapes are equal except along the axis */
NVM_API nvm_array *nvm_concat(nvm_array *const *arrays, int n, int axis);
/* n >= 1 arrays of one shape, joined along a new axis */
NVM_API nvm_array *nvm_stack(nvm_array *const *arrays, int n, int axis);
/* before and after: one entry per dimension, >= 0; value is converted to x's dtype */
NVM_API nvm_array *nvm_pad(nvm_array *x, const int64_t *before, const int64_t *after, double value);
/* x with the elements that nvm_slice would read replaced by `values`, which are cast to its dtype and broadcast to
   `count` */
NVM_API nvm_array *nvm_slice_update(nvm_array *x, nvm_array *values, const int64_t *start, const int64_t *count,
                                    const int64_t *step);
NVM_API nvm_array *nvm_tril(nvm_array *x, int64_t k); /* sets elements above the k-th diagonal to 0 */
NVM_API nvm_array *nvm_triu(nvm_array *x, int64_t k); /* sets elements below it to 0 */
/* indices: integers; negative ones count from the end; an index out of range fails when the value is read. take: the
   dimensions of `indices` replace the axis. take_along_axis: `indices` has as many dimensions as x, and those other
   than the axis broadcast. */
NVM_API nvm_array *nvm_take(nvm_array *x, nvm_array *indices, int axis);
NVM_API nvm_array *nvm_take_along_axis(nvm_array *x, nvm_array *indices, int axis);
/* Sort real dtypes and bool along one axis, stably; NaN comes last, in both directions. argsort gives int64 positions.
   On a GPU nvm's own kernels sort. */
NVM_API nvm_array *nvm_sort(nvm_array *x, int axis, int descending);
/* the int64 positions that sort x along an axis, as nvm_sort does */
NVM_API nvm_array *nvm_argsort(nvm_array *x, int axis, int descending);
/* Returns int64 [size]: the positions in row-major order of the first `size` elements of x other than zero (NaN is
   one); where there are fewer, the number of all elements of x fills the rest. A negative size is NVM_ERR_VALUE. */
NVM_API nvm_array *nvm_flatnonzero(nvm_array *x, int64_t size);
/* Returns int64 in the shape of x2: how many elements of x1, which has one dimension and ascends, are less than each
   element of x2, or (right != 0) not greater. Real dtypes and bool, promoted; NaN is the greatest. If x1 does not
   ascend, the positions lie between 0 and its extent. Another rank of x1 is NVM_ERR_VALUE. */
NVM_API nvm_array *nvm_searchsorted(nvm_array *x1, nvm_array *x2, int right);
/* Returns int64 [size]: for each i the last position in row-major order where indices equal i, or -1 if there is none.
   A write through indices in which the last of equal ones wins takes its values from there. An index out of range fails
   as in take. */
NVM_API nvm_array *nvm_last_index(nvm_array *indices, int64_t size);

/* ---- creation. The dtype NVM_DTYPE_DEFAULT is the context's default float. */
NVM_API nvm_array *nvm_full(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape, double value);
NVM_API nvm_array *nvm_zeros(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape);
NVM_API nvm_array *nvm_ones(nvm_ctx *ctx, nvm_dtype dtype, int rank, const int64_t *shape);
NVM_API nvm_array *nvm_full_like(nvm_array *x, double value);
NVM_API nvm_array *nvm_zeros_like(nvm_array *x);
NVM_API nvm_array *nvm_ones_like(nvm_array *x);
/* ones on the k-th diagonal */
NVM_API nvm_array *nvm_eye(nvm_ctx *ctx, nvm_dtype dtype, int64_t rows, int64_t cols, int64_t k);
/* start + i * step, as long as it is below stop (above, for a negative step) */
NVM_API nvm_array *nvm_arange(nvm_ctx *ctx, nvm_dtype dtype, double start, double stop, double step);
/* num numbers from start to stop, evenly spaced; endpoint 0: stop itself is left out */
NVM_API nvm_array *nvm_linspace(nvm_ctx *ctx, nvm_dtype dtype, double start, double stop, int64_t num, int endpoint);

#ifdef __cplusplus
}
#endif
#endif
