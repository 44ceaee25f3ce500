/* Factorises and solves by LAPACK: LU, Cholesky, triangular matrices. What nothing is known of is examined first, which
   ends at the first element that does not fit. A matrix that is not definite after all is factorised again, as LU. */
#include <string.h>
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

enum { WORK = 64 /* columns of LAPACK's blocks */ };

/* ---- what a matrix is */
/* lower, upper: is it a lower, an upper triangular matrix; hermitian: with a positive diagonal. P: parts of an element.
   Blocks keep both of an element and its mirror image in the cache. */
typedef struct shape { int lower, upper, hermitian; } shape;
#define EXAMINE(T, P) \
  static int is_mirrored_##T##P(const T *x, const T *y) { return x[0] == y[0] && (P == 1 || x[P - 1] == -y[P - 1]); } \
  static int is_null_##T##P(const T *x) { return x[0] == 0 && x[P - 1] == 0; } \
  static void examine_block_##T##P(shape *s, const T *a, int64_t n, int64_t i0, int64_t j0) { \
    for (int64_t i = i0; i < i0 + WORK && i < n; i++) \
      for (int64_t j = j0; j < j0 + WORK && j < i; j++) { \
        const T *x = &a[(i * n + j) * P], *y = &a[(j * n + i) * P]; \
        s->upper &= is_null_##T##P(x); \
        s->lower &= is_null_##T##P(y); \
        s->hermitian &= is_mirrored_##T##P(x, y); \
        if (!(s->upper | s->lower | s->hermitian)) return; \
      } \
  } \
  static shape examine_##T##P(const T *a, int64_t n) { \
    shape s = { 1, 1, 1 }; \
    for (int64_t i = 0; i < n; i++) { \
      const T *x = &a[i * (n + 1) * P]; \
      s.hermitian &= x[0] > 0 && (P == 1 || x[P - 1] == 0); \
    } \
    for (int64_t i = 0; i < n && s.upper | s.lower | s.hermitian; i += WORK) \
      for (int64_t j = 0; j <= i && s.upper | s.lower | s.hermitian; j += WORK) examine_block_##T##P(&s, a, n, i, j); \
    return s; \
  }
EXAMINE(float, 1)
EXAMINE(float, 2)
EXAMINE(double, 1)
EXAMINE(double, 2)

static shape examine(const nvd_matrix_task *x, const char *a) {
  switch (x->type) {
  case NVM_F32: return examine_float1((const float *)(const void *)a, x->n);
  case NVM_F64: return examine_double1((const double *)(const void *)a, x->n);
  case NVM_C64: return examine_float2((const float *)(const void *)a, x->n);
  default: return examine_double2((const double *)(const void *)a, x->n);
  }
}

static nvg_structure structure_of(const nvd_matrix_task *x, const char *a) {
  nvg_structure known = (nvg_structure)x->r->attr[0];
  if (known != NVG_UNKNOWN) return known;
  shape s = examine(x, a);
  return s.lower ? NVG_LOWER : s.upper ? NVG_UPPER : s.hermitian ? NVG_HERMITIAN : NVG_UNKNOWN;
}

/* ---- factors */
/* Writes what stands behind the factors: pivots counted from 0, which factors they are, the sign of the permutation.
   ipiv NULL: no rows were exchanged. */
static void put_tail(const nvd_matrix_task *x, char *out, const int *ipiv, nvg_factorization which) {
  int64_t k = x->m < x->n ? x->m : x->n;
  char *tail = out + x->m * x->n * x->size;
  int odd = 0;
  for (int64_t i = 0; i < k; i++) {
    odd ^= ipiv && ipiv[i] != i + 1;
    nvd_put_number(tail, i, x->type, ipiv ? ipiv[i] - 1 : (double)i);
  }
  nvd_put_number(tail, k, x->type, which);
  nvd_put_number(tail, k + 1, x->type, odd ? -1 : 1);
}

static int factor_definite(const nvd_matrix_task *x, char *a) {
  int n = (int)x->n, info, lda = n ? n : 1;
  x->f->potrf("U", &n, a, &lda, &info, 1);
  return !info;
}

static void factor_turned(const nvd_matrix_task *x, char *out) {
  int n = (int)x->n, info, lda = n ? n : 1, *ipiv = (int *)(void *)x->scratch;
  x->f->getrf(&n, &n, out, &lda, ipiv, &info);
  put_tail(x, out, ipiv, NVG_LU_TURNED);
}

/* Writes the numbers of the rows in the order in which the exchanges leave them. */
static void put_order(const nvd_matrix_task *x, char *to, const int *ipiv) {
  int64_t k = x->m < x->n ? x->m : x->n;
  for (int64_t i = 0; i < x->m; i++) nvd_put_number(to, i, x->type, (double)i);
  for (int64_t i = 0; i < k; i++) {
    double a = nvd_number(to, i, x->type), b = nvd_number(to, ipiv[i] - 1, x->type);
    nvd_put_number(to, i, x->type, b);
    nvd_put_number(to, ipiv[i] - 1, x->type, a);
  }
}

static void factor_plain(const nvd_matrix_task *x, char *out) {
  int m = (int)x->m, n = (int)x->n, info, lda = m ? m : 1, *ipiv = (int *)(void *)x->scratch;
  char *a = x->scratch + nvd_lines((int64_t)sizeof *ipiv * (m < n ? m : n));
  nvd_matrix_pack_turned(x, 0, a);
  x->f->getrf(&m, &n, a, &lda, ipiv, &info);
  nvd_matrix_turn(out, a, n, m, x->size);
  put_tail(x, out, ipiv, NVG_LU_PLAIN);
  put_order(x, out + ((int64_t)m * n + (m < n ? m : n) + NVG_FACTORS_TAIL) * x->size, ipiv);
}

static void factor_into(const nvd_matrix_task *x, char *out) {
  nvd_matrix_pack(x, 0, out);
  nvg_structure s = structure_of(x, out);
  if (s == NVG_LOWER || s == NVG_UPPER) {
    put_tail(x, out, NULL, s == NVG_LOWER ? NVG_L : NVG_U);
    return;
  }
  if (s == NVG_HERMITIAN) {
    if (factor_definite(x, out)) {
      put_tail(x, out, NULL, NVG_LL);
      return;
    }
    nvd_matrix_pack(x, 0, out);
  }
  factor_turned(x, out);
}

static nvd_matrix_fault run_factors(const nvd_matrix_task *x) {
  if (x->r->attr[0] == NVG_PLAIN) factor_plain(x, x->out);
  else factor_into(x, x->out);
  return NVD_MATRIX_FINE;
}

static int64_t bytes_of_pivots(const nvd_matrix_task *x) { return nvd_lines((int64_t)sizeof(int) * (x->n + 1)); }

static int64_t size_factors(nvd_matrix_task *x) {
  return bytes_of_pivots(x) + (x->r->attr[0] == NVG_PLAIN ? nvd_lines(x->m * x->n * x->size) : 0);
}

/* ---- substitution. Row-major right-hand sides are the transposed X of LAPACK, so X^T op(A)^T = B^T is solved from the
   right. */
typedef struct triangle { const char *a; int lda; char uplo, trans, diag; } triangle; /* as LAPACK sees it */

static void solve_vector(const nvd_matrix_task *x, triangle t) {
  int n = (int)x->n, one = 1;
  char trans = t.trans == 'N' ? 'T' : 'N';
  if (t.trans == 'C') nvd_conjugate(x->out, n, x->type); /* conj(A) x = b: A conj(x) = conj(b) */
  x->f->trsv(&t.uplo, &trans, &t.diag, &n, t.a, &t.lda, x->out, &one, 1, 1, 1);
  if (t.trans == 'C') nvd_conjugate(x->out, n, x->type);
}

static void solve_right(const nvd_matrix_task *x, triangle t) {
  int n = (int)x->n, k = (int)x->k;
  char one[16];
  nvd_put_number(one, 0, x->type, 1);
  if (!n || !k) return;
  if (k == 1) solve_vector(x, t);
  else x->f->trsm("R", &t.uplo, &t.trans, &t.diag, &k, &n, one, t.a, &t.lda, x->out, &k, 1, 1, 1, 1);
}

static void exchange_rows(const nvd_matrix_task *x, const char *pivots, int back) {
  size_t bytes = (size_t)(x->k * x->size);
  char *spare = x->scratch;
  for (int64_t step = 0; step < x->n; step++) {
    int64_t i = back ? x->n - 1 - step : step, j = (int64_t)nvd_number(pivots, i, x->type);
    if (j == i || j < 0 || j >= x->n) continue;
    char *a = x->out + i * (int64_t)bytes, *b = x->out + j * (int64_t)bytes;
    memcpy(spare, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, spare, bytes);
  }
}

static int has_zero(const nvd_matrix_task *x, const char *a) {
  for (int64_t i = 0; i < x->n; i++)
    if (nvd_is_zero(a, i * (x->n + 1), x->type)) return 1;
  return 0;
}

static void substitute_factors(const nvd_matrix_task *x, const char *a, nvg_factorization which) {
  const char *pivots = a + x->n * x->n * x->size;
  int lda = (int)x->n;
  switch (which) {
  case NVG_LU_TURNED:
    solve_right(x, (triangle){ a, lda, 'U', 'N', 'N' });
    solve_right(x, (triangle){ a, lda, 'L', 'N', 'U' });
    exchange_rows(x, pivots, 1);
    break;
  case NVG_LL:
    solve_right(x, (triangle){ a, lda, 'U', 'N', 'N' });
    solve_right(x, (triangle){ a, lda, 'U', 'C', 'N' });
    break;
  case NVG_L: solve_right(x, (triangle){ a, lda, 'U', 'N', 'N' }); break;
  case NVG_U: solve_right(x, (triangle){ a, lda, 'L', 'N', 'N' }); break;
  case NVG_LU_PLAIN:
    exchange_rows(x, pivots, 0);
    solve_right(x, (triangle){ a, lda, 'U', 'N', 'U' });
    solve_right(x, (triangle){ a, lda, 'L', 'N', 'N' });
  }
}

/* ---- inverses */
static void mirror_lower(const nvd_matrix_task *x) { /* makes a Hermitian matrix of its lower triangle */
  int64_t n = x->n;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) {
      char *to = x->out + (j * n + i) * x->size;
      memcpy(to, x->out + (i * n + j) * x->size, (size_t)x->size);
      nvd_conjugate(to, 1, x->type);
    }
}

static void invert_factors(const nvd_matrix_task *x, const char *a, nvg_factorization which) {
  int n = (int)x->n, lda = n ? n : 1, info, *ipiv = (int *)(void *)x->scratch;
  memcpy(x->out, a, (size_t)(x->n * x->n * x->size));
  switch (which) {
  case NVG_LL:
    x->f->potri("U", &n, x->out, &lda, &info, 1);
    mirror_lower(x);
    break;
  case NVG_L: x->f->trtri("U", "N", &n, x->out, &lda, &info, 1, 1); break;
  case NVG_U: x->f->trtri("L", "N", &n, x->out, &lda, &info, 1, 1); break;
  default:
    for (int64_t i = 0; i < x->n; i++) ipiv[i] = 1 + (int)nvd_number(a + x->n * x->n * x->size, i, x->type);
    x->f->getri(&n, x->out, &lda, ipiv, x->scratch + bytes_of_pivots(x), &x->lwork, &info);
  }
}

static nvd_matrix_fault substitute_from(const nvd_matrix_task *x, const char *a) {
  nvg_factorization which = (nvg_factorization)nvd_number(a + x->n * x->n * x->size, x->n, x->type);
  if (which != NVG_LL && has_zero(x, a)) return NVD_MATRIX_SINGULAR;
  if (x->r->nin == 1) {
    invert_factors(x, a, which);
    return NVD_MATRIX_FINE;
  }
  nvd_matrix_pack(x, 1, x->out);
  substitute_factors(x, a, which);
  return NVD_MATRIX_FINE;
}

static nvd_matrix_fault run_substituted(const nvd_matrix_task *x) { return substitute_from(x, x->in[0]); }

static int64_t size_substituted(nvd_matrix_task *x) {
  x->lwork = (int)(x->n * WORK + 1);
  int64_t inverse = bytes_of_pivots(x) + nvd_lines(x->lwork * (int64_t)x->size);
  return x->r->nin == 1 ? inverse : nvd_lines(x->k * x->size);
}

/* ---- both at once */
static int64_t bytes_of_factors(const nvd_matrix_task *x) {
  return nvd_lines((x->n * x->n + x->n + NVG_FACTORS_TAIL) * x->size);
}

static nvd_matrix_fault run_solved(const nvd_matrix_task *x) {
  nvd_matrix_task inner = *x;
  inner.scratch += bytes_of_factors(x);
  factor_into(&inner, x->scratch);
  return substitute_from(&inner, x->scratch);
}

static int64_t size_solved(nvd_matrix_task *x) {
  int64_t a = size_factors(x), b = size_substituted(x);
  return bytes_of_factors(x) + (a > b ? a : b);
}

/* ---- triangular matrices, Cholesky factors */
static nvd_matrix_fault run_triangular(const nvd_matrix_task *x) {
  int how = (int)x->r->attr[0], lda = (int)x->n;
  triangle t = { x->scratch, lda, how & NVG_IS_LOWER ? 'U' : 'L', "NTC"[how & 3], how & NVG_IS_UNIT ? 'U' : 'N' };
  nvd_matrix_pack(x, 0, x->scratch);
  if (t.diag == 'N' && has_zero(x, x->scratch)) return NVD_MATRIX_SINGULAR;
  nvd_matrix_pack(x, 1, x->out);
  solve_right(x, t);
  return NVD_MATRIX_FINE;
}

static int64_t size_triangular(nvd_matrix_task *x) { return nvd_lines(x->n * x->n * x->size); }

static nvd_matrix_fault run_cholesky(const nvd_matrix_task *x) {
  int n = (int)x->n, lda = n ? n : 1, info, upper = x->r->attr[0] != 0;
  nvd_matrix_pack(x, 0, x->out);
  x->f->potrf(upper ? "L" : "U", &n, x->out, &lda, &info, 1);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t first = upper ? 0 : i + 1, count = upper ? i : x->n - 1 - i;
    memset(x->out + (i * x->n + first) * x->size, 0, (size_t)(count * x->size));
  }
  return info ? NVD_MATRIX_INDEFINITE : NVD_MATRIX_FINE;
}

static int64_t size_none(nvd_matrix_task *x) { return (void)x, 0; }

const nvd_matrix_routine nvd_factors = { run_factors, size_factors };
const nvd_matrix_routine nvd_substituted = { run_substituted, size_substituted };
const nvd_matrix_routine nvd_solved = { run_solved, size_solved };
const nvd_matrix_routine nvd_triangular = { run_triangular, size_triangular };
const nvd_matrix_routine nvd_cholesky = { run_cholesky, size_none };
