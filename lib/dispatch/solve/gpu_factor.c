/* Factorises and solves by cuSOLVER and cuBLAS: LU, Cholesky, triangular matrices. A large matrix that is known to be
   Hermitian is tried as a definite one; the host waits for the answer, since nothing on the device can decide what runs
   next, and goes on with LU if it is none. */
#include "dispatch/solve/cusolver.h"
#include <limits.h>
#include "base/err.h"
#include "base/mem.h"
#include "dispatch/solve/lapack.h"
#include "graph/graph.h"

enum { TRIED = 64 /* least extent of matrices that are tried as definite ones: smaller ones are not worth the wait */ };
static const double ones[2][2] = { { 1, 0 } };
static const float ones_narrow[2] = { 1, 0 };

static const void *one_of(const nvd_solver_solution *s) {
  return s->real == CU_R_64F ? (const void *)ones : ones_narrow;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- LU: of m x n column-major matrices, m rows apart from each other by `apart` elements */
static int is_one_call(const nvd_solver_solution *s) { return s->batched && s->m == s->n; }

static void size_lu(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  size_t device = 0, host = 0;
  nvd_need(x, NVD_PIVOT, s->count * least(s->m, s->n) * (int64_t)sizeof(int64_t));
  nvd_need(x, NVD_ADDRESS, s->count * (int64_t)sizeof(void *));
  if (is_one_call(s) || !s->m || !s->n) return;
  NVD_DO(x, "getrf",
         nvd_so.cusolverDnXgetrf_bufferSize(s->h.solver, s->h.params, s->m, s->n, s->data, NULL, s->m, s->data, &device,
                                            &host));
  nvd_need_work(x, device, host);
}

static void factorise(nvd_solver_call *x, void *a, int64_t apart) {
  const nvd_solver_solution *s = x->s;
  int *info = nvd_area_at(x, NVD_INFO);
  int64_t k = least(s->m, s->n), *pivot = nvd_area_at(x, NVD_PIVOT);
  if (!k) return;
  if (is_one_call(s)) {
    nvd_gpu_addresses(x, NVD_ADDRESS, a, apart);
    NVD_DO(x, "getrfBatched",
           s->f->getrf_batched(s->h.blas, (int)s->n, nvd_area_at(x, NVD_ADDRESS), (int)s->n, nvd_area_at(x, NVD_PIVOT),
                               info, (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count; i++)
    NVD_DO(x, "getrf",
           nvd_so.cusolverDnXgetrf(s->h.solver, s->h.params, s->m, s->n, s->data, nvd_gpu_matrix(x, a, i, apart), s->m,
                                   pivot + i * k, s->data, nvd_area_at(x, NVD_WORK), s->work, s->host, s->host_bytes,
                                   info + i));
}

/* ---- Cholesky factors, of n x n matrices of which column-major `uplo` is read */
/* Is a copy of the matrix transposed, so that its lower triangle is factorised? The library takes twice as long for the
   upper one (an H200, 5000 rows of float32: 5.86 ms instead of 2.96; of float64 7.04 instead of 2.92). */
static int is_turned(const nvd_solver_solution *s) {
  enum { LARGE = 512 };
  return s->r.op == NVG_OP_CHOLESKY_FACTOR && !s->r.attr[0] && !s->batched && s->n >= LARGE;
}

static int triangle_of(const nvd_solver_solution *s) { /* of FACTORS always the lower one */
  return s->r.op == NVG_OP_CHOLESKY_FACTOR && !s->r.attr[0] && !is_turned(s) ? CU_UPPER : CU_LOWER;
}

static void size_cholesky(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  size_t device = 0, host = 0;
  if (is_turned(s)) nvd_need(x, NVD_MATRIX, s->count * s->n * s->n * s->size);
  nvd_need(x, NVD_ADDRESS, s->count * (int64_t)sizeof(void *));
  if (s->batched || !s->n) return;
  NVD_DO(x, "potrf",
         nvd_so.cusolverDnXpotrf_bufferSize(s->h.solver, s->h.params, triangle_of(s), s->n, s->data, NULL, s->n,
                                            s->data, &device, &host));
  nvd_need_work(x, device, host);
}

static void factorise_definite(nvd_solver_call *x, int uplo, void *a, int64_t apart) {
  const nvd_solver_solution *s = x->s;
  int *info = nvd_area_at(x, NVD_INFO);
  if (s->batched) {
    nvd_gpu_addresses(x, NVD_ADDRESS, a, apart);
    NVD_DO(
        x, "potrfBatched",
        s->f->potrf_batched(s->h.solver, uplo, (int)s->n, nvd_area_at(x, NVD_ADDRESS), (int)s->n, info, (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count; i++)
    NVD_DO(x, "potrf",
           nvd_so.cusolverDnXpotrf(s->h.solver, s->h.params, uplo, s->n, s->data, nvd_gpu_matrix(x, a, i, apart), s->n,
                                   s->data, nvd_area_at(x, NVD_WORK), s->work, s->host, s->host_bytes, info + i));
}

static void factorise_turned(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  void *a = nvd_area_at(x, NVD_MATRIX);
  nvd_gpu_pack_turned(x, 0, a, s->each);
  factorise_definite(x, CU_LOWER, a, s->each);
  nvd_gpu_note(x, NVD_MATRIX_INDEFINITE);
  nvd_gpu_turn(x, &(nvd_turning){ x->to, a, s->each, s->each, s->n, s->n, s->n, NVD_LOWER, 0 });
}

static void run_cholesky(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  int upper = s->r.attr[0] != 0;
  if (!s->n) return;
  if (is_turned(s)) {
    factorise_turned(x);
    return;
  }
  nvd_gpu_pack(x, 0, x->to, s->each);
  factorise_definite(x, triangle_of(s), x->to, s->each);
  nvd_gpu_note(x, NVD_MATRIX_INDEFINITE);
  nvd_do_move(x, &(nvd_move){ .what = NVD_COPY,
                              .to = x->to,
                              .from = x->to,
                              .to_matrix = s->each,
                              .to_row = s->n,
                              .to_col = 1,
                              .from_matrix = s->each,
                              .from_row = s->n,
                              .from_col = 1,
                              .rows = s->n,
                              .cols = s->n,
                              .count = s->count,
                              .how = upper ? NVD_UPPER : NVD_LOWER });
}

/* ---- FACTORS */
static int is_tried(const nvd_solver_solution *s) { return s->r.attr[0] == NVG_HERMITIAN && s->n >= TRIED; }

static void size_factors(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  size_lu(x);
  if (s->r.attr[0] == NVG_PLAIN) nvd_need(x, NVD_MATRIX, s->count * s->m * s->n * s->size);
  if (!is_tried(s)) return;
  size_cholesky(x);
}

/* Writes what stands behind the factors; pivots: whether rows were exchanged. */
static void put_tail(nvd_solver_call *x, int pivots, nvg_factorization which) {
  const nvd_solver_solution *s = x->s;
  nvd_do_move(x, &(nvd_move){ .what = NVD_TAIL,
                              .to = x->to,
                              .from = pivots ? nvd_area_at(x, NVD_PIVOT) : NULL,
                              .to_matrix = s->each,
                              .rows = s->m,
                              .cols = s->n,
                              .count = s->count,
                              .how = which,
                              .conj = !is_one_call(s),
                              .rank = which == NVG_LU_PLAIN });
}

static void factorise_plain(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  void *a = nvd_area_at(x, NVD_MATRIX);
  nvd_gpu_pack_turned(x, 0, a, s->m * s->n);
  factorise(x, a, s->m * s->n);
  nvd_gpu_turn(x, &(nvd_turning){ x->to, a, s->each, s->m * s->n, s->m, s->n, s->m, NVD_ALL, 0 });
  put_tail(x, 1, NVG_LU_PLAIN);
}

/* Waits for the factorization of all matrices. Returns 1 if each was definite. */
static int were_definite(nvd_solver_call *x) {
  size_t bytes = sizeof(int) * (size_t)x->s->count;
  int definite = 1, *info = nvb_alloc(bytes);
  if (!info) x->status = nvb_fail_memory();
  if (!x->status)
    nvd_note_cuda(x, nvd_cu.cudaMemcpyAsync(info, nvd_area_at(x, NVD_INFO), bytes, CUDA_TO_HOST, x->stream));
  if (!x->status) nvd_note_cuda(x, nvd_cu.cudaStreamSynchronize(x->stream));
  for (int64_t i = 0; i < x->s->count && !x->status; i++) definite &= !info[i];
  nvb_free(info);
  return definite;
}

/* Makes L D U of the Cholesky factors in the column-major lower triangles of the result. */
static void put_unit_form(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  nvd_move j = { .what = NVD_UNIT, .to = x->to, .to_matrix = s->each, .rows = s->n, .cols = s->n, .count = s->count };
  nvd_do_move(x, &j);
  j.what = NVD_SQUARE;
  nvd_do_move(x, &j);
}

static void run_factors(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  if (s->r.attr[0] == NVG_PLAIN) {
    factorise_plain(x);
    return;
  }
  nvd_gpu_pack(x, 0, x->to, s->each);
  if (is_tried(s) && !x->captured) {
    factorise_definite(x, triangle_of(s), x->to, s->each);
    if (were_definite(x)) {
      put_unit_form(x);
      put_tail(x, 0, NVG_LU_TURNED);
      return;
    }
    nvd_gpu_pack(x, 0, x->to, s->each);
  }
  factorise(x, x->to, s->each);
  put_tail(x, 1, NVG_LU_TURNED);
}

/* ---- substitution */
/* Solves with LU factors, `apart` elements from each other, for `columns` right-hand sides in column-major matrices at
   b; the pivots are in their area. */
static void substitute(nvd_solver_call *x, int trans, const void *a, int64_t apart, void *b, int64_t columns) {
  const nvd_solver_solution *s = x->s;
  int64_t *pivot = nvd_area_at(x, NVD_PIVOT);
  int info = 0;
  if (s->batched) {
    nvd_gpu_addresses(x, NVD_ADDRESS, a, apart);
    nvd_gpu_addresses(x, NVD_ADDRESS_SIDE, b, s->n * columns);
    NVD_DO(x, "getrsBatched",
           s->f->getrs_batched(s->h.blas, trans, (int)s->n, (int)columns, nvd_area_at(x, NVD_ADDRESS), (int)s->n,
                               nvd_area_at(x, NVD_PIVOT), nvd_area_at(x, NVD_ADDRESS_SIDE), (int)s->n, &info,
                               (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count && s->triangles; i++)
    nvd_gpu_substitute(x, trans == CU_TRANS, nvd_gpu_matrix(x, a, i, apart), nvd_gpu_matrix(x, b, i, s->n * columns),
                       columns, pivot + i * s->n);
  for (int64_t i = 0; i < s->count && !s->triangles; i++)
    NVD_DO(x, "getrs",
           nvd_so.cusolverDnXgetrs(s->h.solver, s->h.params, trans, s->n, columns, s->data,
                                   nvd_gpu_matrix(x, a, i, apart), s->n, pivot + i * s->n, s->data,
                                   nvd_gpu_matrix(x, b, i, s->n * columns), s->n, (int *)nvd_area_at(x, NVD_INFO) + i));
}

/* The solution by factors of the transposed matrices (plain: of the matrices), or the inverse. */
static void substitute_all(nvd_solver_call *x, int plain, const void *a, int64_t apart) {
  const nvd_solver_solution *s = x->s;
  int64_t each = s->n * s->k;
  int inverse = s->r.nin == 1, turned = !inverse && s->k > 1;
  void *b = turned ? nvd_area_at(x, NVD_SIDE) : x->to;
  if (!each) return;
  if (inverse) nvd_gpu_identity(x, b, each, s->n);
  else if (turned) nvd_gpu_pack_turned(x, 1, b, each);
  else nvd_gpu_pack(x, 1, b, each);
  substitute(x, plain || inverse ? CU_NO_TRANS : CU_TRANS, a, apart, b, s->k);
  if (turned) nvd_gpu_turn(x, &(nvd_turning){ x->to, b, each, each, s->n, s->k, s->n, NVD_ALL, 0 });
}

static void size_substitution(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  nvd_need(x, NVD_ADDRESS_SIDE, s->count * (int64_t)sizeof(void *));
  if (s->r.nin > 1 && s->k > 1) nvd_need(x, NVD_SIDE, s->count * s->n * s->k * s->size);
}

static int64_t factors_apart(const nvd_solver_solution *s) { return s->r.in[0].shape[s->r.in[0].rank - 1]; }

static void size_substituted(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  nvd_need(x, NVD_PIVOT, s->count * s->n * (int64_t)sizeof(int64_t));
  nvd_need(x, NVD_ADDRESS, s->count * (int64_t)sizeof(void *));
  if (!nvd_gpu_is_packed(&s->r.in[0])) nvd_need(x, NVD_MATRIX, s->count * factors_apart(s) * s->size);
  if (s->r.attr[0]) nvd_need(x, NVD_LEFT, s->count * s->n * s->n * s->size);
  size_substitution(x);
  if (s->triangles) nvd_gpu_substitute_size(x, s->k);
}

static void run_substituted(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  const void *a = x->from[0];
  int64_t apart = factors_apart(s);
  int plain = s->r.attr[0] != 0;
  if (!nvd_gpu_is_packed(&s->r.in[0])) {
    nvd_gpu_pack(x, 0, nvd_area_at(x, NVD_MATRIX), apart);
    a = nvd_area_at(x, NVD_MATRIX);
  }
  nvd_gpu_note_zero(x, a, apart, s->n + 1, NVD_MATRIX_SINGULAR);
  nvd_do_move(x, &(nvd_move){ .what = NVD_PIVOTS,
                              .to = nvd_area_at(x, NVD_PIVOT),
                              .from = a,
                              .from_matrix = apart,
                              .rows = s->n,
                              .count = s->count,
                              .conj = !s->batched });
  if (plain) {
    nvd_gpu_turn(x, &(nvd_turning){ nvd_area_at(x, NVD_LEFT), a, s->n * s->n, apart, s->n, s->n, s->n, NVD_ALL, 0 });
    a = nvd_area_at(x, NVD_LEFT);
    apart = s->n * s->n;
  }
  substitute_all(x, plain, a, apart);
}

/* ---- both at once, for small matrices */
static void size_solved(nvd_solver_call *x) {
  size_lu(x);
  nvd_need(x, NVD_MATRIX, x->s->count * x->s->n * x->s->n * x->s->size);
  size_substitution(x);
}

static void run_solved(nvd_solver_call *x) {
  void *a = nvd_area_at(x, NVD_MATRIX);
  int64_t apart = x->s->n * x->s->n;
  if (!apart) return;
  nvd_gpu_pack(x, 0, a, apart);
  factorise(x, a, apart);
  nvd_gpu_note(x, NVD_MATRIX_SINGULAR);
  substitute_all(x, 0, a, apart);
}

/* ---- triangular matrices. Row-major right-hand sides are the transposed X of the library, so X^T op(A)^T = B^T is
   solved from the right. */
/* May the library read the matrices where they are? */
static int is_direct(const nvd_solver_solution *s) {
  const nvf_operand *o = &s->r.in[0];
  int packed = nvd_gpu_is_packed(o);
  return packed || (s->count == 1 && o->stride[o->rank - 1] == 1 && o->stride[o->rank - 2] >= s->n &&
                    o->stride[o->rank - 2] < INT_MAX);
}

static void size_triangular(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  nvd_need(x, NVD_ADDRESS, s->count * (int64_t)sizeof(void *));
  nvd_need(x, NVD_ADDRESS_SIDE, s->count * (int64_t)sizeof(void *));
  if (!is_direct(s)) nvd_need(x, NVD_MATRIX, s->count * s->n * s->n * s->size);
}

static void run_trsm(nvd_solver_call *x, const void *a, int64_t apart, int lda) {
  const nvd_solver_solution *s = x->s;
  int how = (int)s->r.attr[0], uplo = how & NVG_IS_LOWER ? CU_UPPER : CU_LOWER, trans = how & 3;
  int unit = how & NVG_IS_UNIT ? CU_UNIT : CU_NON_UNIT, n = (int)s->n, k = (int)s->k;
  if (s->batched) {
    nvd_gpu_addresses(x, NVD_ADDRESS, a, apart);
    nvd_gpu_addresses(x, NVD_ADDRESS_SIDE, x->to, s->each);
    NVD_DO(x, "trsmBatched",
           s->f->trsm_batched(s->h.blas, CU_RIGHT, uplo, trans, unit, k, n, one_of(s), nvd_area_at(x, NVD_ADDRESS), lda,
                              nvd_area_at(x, NVD_ADDRESS_SIDE), k, (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count; i++)
    NVD_DO(x, "trsm",
           s->f->trsm(s->h.blas, CU_RIGHT, uplo, trans, unit, k, n, one_of(s), nvd_gpu_matrix(x, a, i, apart), lda,
                      nvd_gpu_matrix(x, x->to, i, s->each), k));
}

static void run_triangular(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  const nvf_operand *o = &s->r.in[0];
  const void *a = x->from[0];
  int64_t apart = s->n * s->n, lda = s->n;
  if (!s->n) return;
  if (!is_direct(s)) {
    nvd_gpu_pack(x, 0, nvd_area_at(x, NVD_MATRIX), apart);
    a = nvd_area_at(x, NVD_MATRIX);
  } else if (s->n > 1) lda = o->stride[o->rank - 2];
  if (!(s->r.attr[0] & NVG_IS_UNIT)) nvd_gpu_note_zero(x, a, apart, lda + 1, NVD_MATRIX_SINGULAR);
  nvd_gpu_pack(x, 1, x->to, s->each);
  if (s->k) run_trsm(x, a, apart, (int)lda);
}

const nvd_solver_routine nvd_gpu_factors = { size_factors, run_factors, 0 };
const nvd_solver_routine nvd_gpu_substituted = { size_substituted, run_substituted, 0 };
const nvd_solver_routine nvd_gpu_solved = { size_solved, run_solved, 0 };
const nvd_solver_routine nvd_gpu_triangular = { size_triangular, run_triangular, 0 };
const nvd_solver_routine nvd_gpu_cholesky = { size_cholesky, run_cholesky, 0 };
