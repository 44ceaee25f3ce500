/* Expands linear algebra into routines and what is done with their parts. */
#include <math.h>
#include "graph/matrices.h"

/* ---- the operand */
static nvg_node *open_matrix(nvg_call *c, int square) {
  nvg_node *x;
  return nvg_open_matrices(c, &x, c->in, 1) && nvg_check_matrix(c, x, square) ? x : NULL;
}

static nvg_result row_of(nvm_dtype t, const nvg_node *x, int64_t n) {
  return (nvg_result){ t, x->aval->rank - 2, 1, { n } };
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Reads `parts`, which must be from `from` on. Returns 0 with a message. */
static int read_parts(nvg_call *c, int64_t from, int64_t *parts) {
  if (nvg_attr_int(c, "parts", NVG_REDUCED, parts)) return 0;
  if (*parts >= from && *parts <= NVG_COMPLETE) return 1;
  return nvg_bad(c, NVM_ERR_VALUE, "there are no parts %lld", (long long)*parts), 0;
}

/* ---- factors */
nvg_node *nvg_make_CHOLESKY(nvg_call *c) {
  int64_t upper;
  nvg_node *x = open_matrix(c, 1);
  if (!x || nvg_attr_int(c, "upper", 0, &upper)) return NULL;
  nvg_result r = { x->aval->dtype, x->aval->rank - 2, 2, { nvg_extent(x, 1), nvg_extent(x, 1) } };
  return nvg_xroutine(c, NVG_OP_CHOLESKY_FACTOR, &x, 1, r, upper != 0, 0);
}

nvg_node *nvg_make_LU(nvg_call *c) { return nvg_xfactors(c, open_matrix(c, 0), NVG_PLAIN); }
nvg_node *nvg_make_FACTOR(nvg_call *c) { return nvg_xfactors(c, open_matrix(c, 1), NVG_UNKNOWN); }

nvg_node *nvg_make_QR(nvg_call *c) {
  int64_t parts;
  nvg_node *x = open_matrix(c, 0);
  if (!x || !read_parts(c, NVG_VALUES, &parts)) return NULL;
  int64_t m = nvg_extent(x, 2), n = nvg_extent(x, 1), k = parts == NVG_COMPLETE ? m : least(m, n);
  nvg_result r = row_of(x->aval->dtype, x, m * k + k * n);
  if (parts == NVG_VALUES) r = (nvg_result){ r.dtype, r.nbatch, 2, { k, n } };
  return nvg_xroutine(c, NVG_OP_ORTHOGONAL, &x, 1, r, parts, 0);
}

/* ---- determinants, of factors */
typedef struct factors { nvg_node *diagonal, *cholesky, *sign; int last; } factors;

/* Reads the diagonal, whether they are Cholesky factors, and the sign of the permutation, each with the last dimension
   along the diagonal. */
static void read_factors(nvg_call *c, factors *f, nvg_node *x, int64_t n) {
  f->last = x->aval->rank - 1;
  f->diagonal = nvg_xrange(c, x, f->last, 0, n, n + 1);
  nvg_node *which = nvg_x1(c, NVG_OP_REAL, nvg_xrange(c, x, f->last, n * n + n, 1, 1));
  f->cholesky = nvg_x2(c, NVG_OP_EQUAL, which, nvg_xint(c, NVG_LL));
  f->sign = nvg_xdrop(c, nvg_xrange(c, x, f->last, n * n + n + 1, 1, 1), 1u << f->last);
}

static nvg_node *reduce_last(nvg_call *c, nvg_op op, const factors *f, nvg_node *x) {
  return nvg_xreduce(c, op, x, 1u << f->last, 0);
}

nvg_node *nvg_make_DET(nvg_call *c) {
  nvg_node *x = open_matrix(c, 1), *packed = nvg_xfactors(c, x, NVG_UNKNOWN);
  if (!packed) return NULL;
  factors f;
  read_factors(c, &f, packed, nvg_extent(x, 1));
  nvg_node *d = f.diagonal, *each = nvg_x3(c, NVG_OP_WHERE, f.cholesky, nvg_x2(c, NVG_OP_MULTIPLY, d, d), d);
  return nvg_x2(c, NVG_OP_MULTIPLY, f.sign, reduce_last(c, NVG_OP_PROD, &f, each));
}

/* The extent of square matrices whose factors take `size` numbers; -1: of none. */
static int64_t extent_of_factors(int64_t size) {
  int64_t n = (int64_t)sqrt((double)size);
  for (n += n > 0; n > 0 && n * n + n + NVG_FACTORS_TAIL > size;) n--;
  return n * n + n + NVG_FACTORS_TAIL == size ? n : -1;
}

nvg_node *nvg_make_SLOGDET(nvg_call *c) {
  int64_t part;
  nvg_node *x;
  if (!nvg_open_matrices(c, &x, c->in, 1) || nvg_attr_int(c, "part", 0, &part)) return NULL;
  int64_t n = x->aval->rank ? extent_of_factors(nvg_extent(x, 1)) : -1;
  if (n < 0) return nvg_bad(c, NVM_ERR_VALUE, "needs the factors of square matrices");
  factors f;
  read_factors(c, &f, x, n);
  if (!part)
    return nvg_x2(c, NVG_OP_MULTIPLY, f.sign, reduce_last(c, NVG_OP_PROD, &f, nvg_x1(c, NVG_OP_SIGN, f.diagonal)));
  nvg_node *log = nvg_x1(c, NVG_OP_LOG, nvg_x1(c, NVG_OP_ABS, f.diagonal));
  return reduce_last(c, NVG_OP_SUM, &f, nvg_x3(c, NVG_OP_WHERE, f.cholesky, nvg_x2(c, NVG_OP_ADD, log, log), log));
}

/* ---- solutions */
/* Returns the right-hand side as matrices of n rows; *vector: it is one vector. */
static nvg_node *as_right_side(nvg_call *c, nvg_node *b, int64_t n, int *vector) {
  char text[NVG_SHAPE_TEXT];
  int rank = b->aval->rank;
  *vector = rank == 1;
  if (rank && nvg_extent(b, *vector ? 1 : 2) == n) return *vector ? nvg_xreshape(c, b, 2, (int64_t[]){ n, 1 }) : b;
  return nvg_bad(c, NVM_ERR_VALUE, "a right-hand side of shape %s does not have the %lld rows of the matrix",
                 nvg_shape_text(text, rank, b->aval->shape), (long long)n);
}

static nvg_node *drop_column(nvg_call *c, nvg_node *x, int vector) {
  return x && vector ? nvg_xdrop(c, x, 1u << (x->aval->rank - 1)) : x;
}

nvg_node *nvg_make_SOLVE(nvg_call *c) {
  nvg_node *x[2];
  int vector;
  if (!nvg_open_matrices(c, x, c->in, 2) || !nvg_check_matrix(c, x[0], 1)) return NULL;
  nvg_node *b = as_right_side(c, x[1], nvg_extent(x[0], 1), &vector);
  return drop_column(c, nvg_xsolve(c, x[0], b), vector);
}

nvg_node *nvg_make_SOLVE_TRIANGULAR(nvg_call *c) {
  nvg_node *x[2];
  int vector;
  int64_t trans, lower, unit;
  if (!nvg_open_matrices(c, x, c->in, 2) || !nvg_check_matrix(c, x[0], 1)) return NULL;
  if (nvg_attr_int(c, "trans", 0, &trans) || nvg_attr_int(c, "lower", 0, &lower) ||
      nvg_attr_int(c, "unit_diagonal", 0, &unit))
    return NULL;
  if (trans < 0 || trans > 2) return nvg_bad(c, NVM_ERR_VALUE, "trans is %lld; it must be 0, 1 or 2", (long long)trans);
  int how = (int)trans + (lower ? NVG_IS_LOWER : 0) + (unit ? NVG_IS_UNIT : 0);
  nvg_node *b = as_right_side(c, x[1], nvg_extent(x[0], 1), &vector);
  return drop_column(c, nvg_xsubstitute(c, x[0], b, how), vector);
}

/* Lays results of lu_factor out as FACTORS has them. */
static nvg_node *pack_factors(nvg_call *c, nvg_node *lu, nvg_node *piv) {
  int64_t shape[NVM_MAX_RANK];
  int rank = lu->aval->rank - 1;
  nvm_dtype t = lu->aval->dtype;
  for (int d = 0; d < rank; d++) shape[d] = lu->aval->shape[d];
  shape[rank - 1] *= nvg_extent(lu, 1);
  nvg_node *part[4] = { nvg_xreshape(c, lu, rank, shape), nvg_xcast(c, piv, t, 1) };
  shape[rank - 1] = 1;
  part[2] = nvg_xexpand(c, nvg_xconst(c, t, NVG_LU_PLAIN, 0), rank, shape);
  part[3] = nvg_xexpand(c, nvg_xconst(c, t, 1, 0), rank, shape);
  for (int i = 0; i < 4; i++)
    if (!part[i]) return NULL;
  return nvg_xjoin(c, part, 4, rank - 1);
}

nvg_node *nvg_make_LU_SOLVE(nvg_call *c) {
  nvg_node *in[2] = { c->in[0], c->in[2] }, *x[2], *piv = c->in[1];
  int vector;
  if (!nvg_open_matrices(c, x, in, 2) || !nvg_check_matrix(c, x[0], 1)) return NULL;
  int rank = x[0]->aval->rank - 1, fits = piv->aval->rank == rank;
  for (int d = 0; fits && d < rank; d++) fits = piv->aval->shape[d] == x[0]->aval->shape[d];
  if (!fits) return nvg_bad(c, NVM_ERR_VALUE, "needs one pivot for each row of the factors");
  if (nvg_class_of(piv->aval->dtype) >= NVG_FLOAT) return nvg_bad(c, NVM_ERR_TYPE, "needs pivots that are integers");
  nvg_node *b = as_right_side(c, x[1], nvg_extent(x[0], 1), &vector);
  return b ? drop_column(c, nvg_xsubstitute(c, pack_factors(c, x[0], piv), b, NVG_PLAIN_FACTORS), vector) : NULL;
}

nvg_node *nvg_make_INV(nvg_call *c) { return nvg_xinverse(c, open_matrix(c, 1)); }

/* ---- singular values, eigenvalues */
nvg_node *nvg_make_SVD(nvg_call *c) {
  int64_t parts;
  nvg_node *x = open_matrix(c, 0);
  if (!x || !read_parts(c, NVG_REDUCED, &parts)) return NULL;
  int64_t m = nvg_extent(x, 2), n = nvg_extent(x, 1), k = least(m, n);
  int64_t size = k + (parts == NVG_COMPLETE ? m * m + n * n : m * k + k * n);
  return nvg_xroutine(c, NVG_OP_SINGULAR, &x, 1, row_of(x->aval->dtype, x, size), parts, 0);
}

nvg_node *nvg_make_SVDVALS(nvg_call *c) {
  nvg_node *x = open_matrix(c, 0);
  if (!x) return NULL;
  nvg_result r = row_of(nvg_real_of(x->aval->dtype), x, least(nvg_extent(x, 2), nvg_extent(x, 1)));
  return nvg_xroutine(c, NVG_OP_SINGULAR, &x, 1, r, NVG_VALUES, 0);
}

static nvg_node *build_hermitian(nvg_call *c, nvg_parts_wanted parts) {
  int64_t upper;
  nvg_node *x = open_matrix(c, 1);
  if (!x || nvg_attr_int(c, "upper", 0, &upper)) return NULL;
  int64_t n = nvg_extent(x, 1);
  nvm_dtype t = parts ? x->aval->dtype : nvg_real_of(x->aval->dtype);
  return nvg_xroutine(c, NVG_OP_HERMITIAN, &x, 1, row_of(t, x, parts ? n + n * n : n), parts, upper != 0);
}

nvg_node *nvg_make_EIGH(nvg_call *c) { return build_hermitian(c, NVG_COMPLETE); }
nvg_node *nvg_make_EIGVALSH(nvg_call *c) { return build_hermitian(c, NVG_VALUES); }

static nvg_node *build_spectral(nvg_call *c, nvg_parts_wanted parts) {
  nvg_node *x = open_matrix(c, 1);
  if (!x) return NULL;
  int64_t n = nvg_extent(x, 1);
  nvm_dtype t = nvg_real_of(x->aval->dtype) == NVM_F32 ? NVM_C64 : NVM_C128;
  return nvg_xroutine(c, NVG_OP_SPECTRAL, &x, 1, row_of(t, x, parts ? n + n * n : n), parts, 0);
}

nvg_node *nvg_make_EIG(nvg_call *c) { return build_spectral(c, NVG_COMPLETE); }
nvg_node *nvg_make_EIGVALS(nvg_call *c) { return build_spectral(c, NVG_VALUES); }

nvg_node *nvg_make_PART(nvg_call *c) {
  int64_t start, rows, cols, real;
  nvg_node *x;
  if (!nvg_open_matrices(c, &x, c->in, 1) || nvg_attr_int(c, "start", 0, &start) || nvg_attr_int(c, "rows", 0, &rows) ||
      nvg_attr_int(c, "cols", -1, &cols) || nvg_attr_int(c, "real", 0, &real))
    return NULL;
  int64_t size = x->aval->rank ? nvg_extent(x, 1) : -1, of = cols < 0 ? 1 : cols;
  if (start < 0 || rows < 0 || start > size || (of && rows > (size - start) / of))
    return nvg_bad(c, NVM_ERR_VALUE, "the part is not inside of %lld numbers", (long long)size);
  nvg_node *part = nvg_xpart(c, x, start, rows, cols);
  return real ? nvg_x1(c, NVG_OP_REAL, part) : part;
}
