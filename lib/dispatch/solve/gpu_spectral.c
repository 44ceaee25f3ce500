/* Orthogonal factors, singular values and eigenvalues by cuSOLVER. The transpose of U S V^H exchanges U and V, so a
   row-major matrix that is not taller than wide needs no transposition; the library has no LQ, so that of QR does. Many
   matrices of at most 32 rows and columns are done by one call, by Jacobi's method. */
#include <string.h>
#include "dispatch/solve/cusolver.h"
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

enum { JACOBI = 32 /* the most rows and columns of gesvdjBatched */ };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t real_size(const nvd_solver_solution *s) { return nvg_size(nvg_real_of(s->type)); }
static int is_jacobi(const nvd_solver_solution *s) { return s->count > 1 && s->m <= JACOBI && s->n <= JACOBI; }

static void copy_values(nvd_solver_call *x, int64_t k) { /* where they are the whole result */
  size_t bytes = (size_t)(x->s->count * k * real_size(x->s));
  if (!x->status && bytes)
    nvd_note_cuda(x, nvd_cu.cudaMemcpyAsync(x->to, nvd_area_at(x, NVD_VALUE), bytes, CUDA_ON_DEVICE, x->stream));
}

/* ---- Q and R */
typedef struct orthogonal { int64_t m, n, k, rows; int parts; char *q, *r; } orthogonal; /* rows: columns of Q */

static orthogonal orthogonal_of(const nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  orthogonal o = { .m = s->m, .n = s->n, .k = least(s->m, s->n), .parts = (int)s->r.attr[0], .q = x->to };
  o.rows = o.parts == NVG_COMPLETE ? o.m : o.k;
  o.r = o.parts == NVG_VALUES ? x->to : x->to + o.m * o.rows * s->size;
  return o;
}

static void size_orthogonal(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  orthogonal o = orthogonal_of(x);
  size_t device = 0, host = 0;
  nvd_need(x, NVD_MATRIX, s->count * o.m * o.n * s->size);
  nvd_need(x, NVD_VALUE, s->count * o.k * s->size);
  nvd_need(x, NVD_LEFT, o.parts == NVG_VALUES ? 0 : s->count * o.m * o.rows * s->size);
  if (!o.k) return;
  NVD_DO(x, "geqrf",
         nvd_so.cusolverDnXgeqrf_bufferSize(s->h.solver, s->h.params, o.m, o.n, s->data, NULL, o.m, s->data, NULL,
                                            s->data, &device, &host));
  if (o.parts != NVG_VALUES)
    NVD_DO(x, "orgqr", s->f->orgqr_size(s->h.solver, (int)o.m, (int)o.rows, (int)o.k, NULL, (int)o.m, NULL, &s->lwork));
  if (device < (size_t)s->lwork * (size_t)s->size) device = (size_t)s->lwork * (size_t)s->size;
  nvd_need_work(x, device, host);
}

/* Q of matrix i, from the reflectors of its factorization. */
static void expand_reflectors(nvd_solver_call *x, const orthogonal *o, int64_t i) {
  const nvd_solver_solution *s = x->s;
  char *from = nvd_gpu_matrix(x, nvd_area_at(x, NVD_MATRIX), i, o->m * o->n);
  char *q = nvd_gpu_matrix(x, nvd_area_at(x, NVD_LEFT), i, o->m * o->rows);
  void *tau = nvd_gpu_matrix(x, nvd_area_at(x, NVD_VALUE), i, o->k);
  if (!x->status)
    nvd_note_cuda(x, nvd_cu.cudaMemcpyAsync(q, from, (size_t)(o->m * o->k * s->size), CUDA_ON_DEVICE, x->stream));
  NVD_DO(x, "orgqr",
         s->f->orgqr(s->h.solver, (int)o->m, (int)o->rows, (int)o->k, q, (int)o->m, tau, nvd_area_at(x, NVD_WORK),
                     s->lwork, (int *)nvd_area_at(x, NVD_INFO) + i));
}

static void run_orthogonal(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  orthogonal o = orthogonal_of(x);
  void *a = nvd_area_at(x, NVD_MATRIX), *q = nvd_area_at(x, NVD_LEFT);
  nvd_gpu_pack_turned(x, 0, a, o.m * o.n);
  for (int64_t i = 0; i < s->count && o.k; i++)
    NVD_DO(x, "geqrf",
           nvd_so.cusolverDnXgeqrf(s->h.solver, s->h.params, o.m, o.n, s->data, nvd_gpu_matrix(x, a, i, o.m * o.n), o.m,
                                   s->data, nvd_gpu_matrix(x, nvd_area_at(x, NVD_VALUE), i, o.k), s->data,
                                   nvd_area_at(x, NVD_WORK), s->work, s->host, s->host_bytes,
                                   (int *)nvd_area_at(x, NVD_INFO) + i));
  nvd_gpu_turn(x, &(nvd_turning){ o.r, a, s->each, o.m * o.n, o.rows, o.n, o.m, NVD_UPPER, 0 });
  if (o.parts == NVG_VALUES) return;
  if (!o.k) nvd_gpu_identity(x, o.q, s->each, o.rows);
  for (int64_t i = 0; i < s->count && o.k; i++) expand_reflectors(x, &o, i);
  if (o.k) nvd_gpu_turn(x, &(nvd_turning){ o.q, q, s->each, o.m * o.rows, o.m, o.rows, o.m, NVD_ALL, 0 });
}

/* ---- Hermitian matrices */
static int triangle_of(const nvd_solver_solution *s) { return s->r.attr[1] ? CU_LOWER : CU_UPPER; }

static void size_hermitian(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  int jobz = s->r.attr[0] ? CU_VECTORS : CU_VALUES;
  size_t device = 0, host = 0;
  nvd_need(x, NVD_MATRIX, s->count * s->n * s->n * s->size);
  nvd_need(x, NVD_VALUE, s->count * s->n * real_size(s));
  if (!s->n) return;
  if (is_jacobi(s))
    NVD_DO(x, "syevjBatched",
           s->f->syevj_size(s->h.solver, jobz, triangle_of(s), (int)s->n, NULL, (int)s->n, NULL, &s->lwork, s->h.syevj,
                            (int)s->count));
  else
    NVD_DO(x, "syevd",
           nvd_so.cusolverDnXsyevd_bufferSize(s->h.solver, s->h.params, jobz, triangle_of(s), s->n, s->data, NULL, s->n,
                                              s->real, NULL, s->data, &device, &host));
  if (is_jacobi(s)) device = (size_t)s->lwork * (size_t)s->size;
  nvd_need_work(x, device, host);
}

static void find_eigenvalues(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  int jobz = s->r.attr[0] ? CU_VECTORS : CU_VALUES, uplo = triangle_of(s);
  int *info = nvd_area_at(x, NVD_INFO);
  char *a = nvd_area_at(x, NVD_MATRIX), *w = nvd_area_at(x, NVD_VALUE), *work = nvd_area_at(x, NVD_WORK);
  if (is_jacobi(s)) {
    NVD_DO(x, "syevjBatched",
           s->f->syevj(s->h.solver, jobz, uplo, (int)s->n, a, (int)s->n, w, work, s->lwork, info, s->h.syevj,
                       (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count; i++)
    NVD_DO(x, "syevd",
           nvd_so.cusolverDnXsyevd(s->h.solver, s->h.params, jobz, uplo, s->n, s->data,
                                   nvd_gpu_matrix(x, a, i, s->n * s->n), s->n, s->real, w + i * s->n * real_size(s),
                                   s->data, work, s->work, s->host, s->host_bytes, info + i));
}

static void run_hermitian(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  int64_t n = s->n;
  if (!n) return;
  nvd_gpu_pack(x, 0, nvd_area_at(x, NVD_MATRIX), n * n);
  find_eigenvalues(x);
  nvd_gpu_note(x, NVD_MATRIX_DIVERGES);
  if (!s->r.attr[0]) {
    copy_values(x, n);
    return;
  }
  nvd_gpu_reals(x, x->to, s->each, n);
  nvd_gpu_turn(x,
               &(nvd_turning){ x->to + n * s->size, nvd_area_at(x, NVD_MATRIX), s->each, n * n, n, n, n, NVD_ALL, 1 });
}

/* ---- singular values. The library sees A^T (wide: A has no more rows than columns), or A itself, m x n of the two;
   its left vectors are then V conj, or U. */
typedef struct svd {
  int64_t m, n, k, left, right; /* left, right: columns of the left vectors, rows of the right ones */
  int wide, parts;
} svd;

static svd svd_of(const nvd_solver_solution *s) {
  svd v = { .parts = (int)s->r.attr[0], .k = least(s->m, s->n), .wide = s->m <= s->n };
  v.m = v.wide ? s->n : s->m;
  v.n = v.wide ? s->m : s->n;
  v.left = v.parts == NVG_COMPLETE ? v.m : v.k;
  v.right = v.n;
  return v;
}

static char job_of(const svd *v) { return "NSA"[v->parts]; }

static void size_singular(nvd_solver_call *x) {
  nvd_solver_solution *s = x->s;
  svd v = svd_of(s);
  int vectors = v.parts != NVG_VALUES, jacobi = is_jacobi(s);
  size_t device = 0, host = 0;
  nvd_need(x, NVD_MATRIX, s->count * v.m * v.n * s->size);
  nvd_need(x, NVD_VALUE, s->count * v.k * real_size(s));
  /* gesvdjBatched writes to both, whether or not vectors are asked for */
  nvd_need(x, NVD_LEFT, jacobi || vectors ? s->count * v.m * (jacobi ? v.m : v.left) * s->size : 0);
  nvd_need(x, NVD_RIGHT, jacobi || vectors ? s->count * v.n * v.n * s->size : 0);
  if (!v.k) return;
  if (jacobi)
    NVD_DO(x, "gesvdjBatched",
           s->f->gesvdj_size(s->h.solver, vectors ? CU_VECTORS : CU_VALUES, (int)v.m, (int)v.n, NULL, (int)v.m, NULL,
                             NULL, (int)v.m, NULL, (int)v.n, &s->lwork, s->h.gesvdj, (int)s->count));
  else
    NVD_DO(x, "gesvd",
           nvd_so.cusolverDnXgesvd_bufferSize(s->h.solver, s->h.params, (signed char)job_of(&v),
                                              (signed char)job_of(&v), v.m, v.n, s->data, NULL, v.m, s->real, NULL,
                                              s->data, NULL, v.m, s->data, NULL, v.n, s->data, &device, &host));
  if (jacobi) device = (size_t)s->lwork * (size_t)s->size;
  nvd_need_work(x, device, host);
}

static void find_singular_values(nvd_solver_call *x, const svd *v) {
  const nvd_solver_solution *s = x->s;
  int vectors = v->parts != NVG_VALUES, *info = nvd_area_at(x, NVD_INFO);
  signed char job = (signed char)job_of(v);
  char *a = nvd_area_at(x, NVD_MATRIX), *w = nvd_area_at(x, NVD_VALUE), *work = nvd_area_at(x, NVD_WORK);
  char *left = nvd_area_at(x, NVD_LEFT), *right = nvd_area_at(x, NVD_RIGHT);
  if (is_jacobi(s)) {
    NVD_DO(x, "gesvdjBatched",
           s->f->gesvdj(s->h.solver, vectors ? CU_VECTORS : CU_VALUES, (int)v->m, (int)v->n, a, (int)v->m, w, left,
                        (int)v->m, right, (int)v->n, work, s->lwork, info, s->h.gesvdj, (int)s->count));
    return;
  }
  for (int64_t i = 0; i < s->count; i++)
    NVD_DO(x, "gesvd",
           nvd_so.cusolverDnXgesvd(s->h.solver, s->h.params, job, job, v->m, v->n, s->data,
                                   nvd_gpu_matrix(x, a, i, v->m * v->n), v->m, s->real, w + i * v->k * real_size(s),
                                   s->data, nvd_gpu_matrix(x, left, i, v->m * v->left), v->m, s->data,
                                   nvd_gpu_matrix(x, right, i, v->n * v->n), v->n, s->data, work, s->work, s->host,
                                   s->host_bytes, info + i));
}

/* Copies column-major vectors as they are: `rows` columns of `ld` elements of which `cols` are wanted. */
static void put_rows(nvd_solver_call *x, void *to, const void *from, int64_t apart, int64_t rows, int64_t cols,
                     int64_t ld) {
  nvd_do_move(x, &(nvd_move){ .what = NVD_COPY,
                              .to = to,
                              .from = from,
                              .to_matrix = x->s->each,
                              .to_row = cols,
                              .to_col = 1,
                              .from_matrix = apart,
                              .from_row = ld,
                              .from_col = 1,
                              .rows = rows,
                              .cols = cols,
                              .count = x->s->count });
}

/* The library's vectors: L (m x left), and R, which Jacobi's method has as V (n x n), the other one as V^H. Of A itself
   U = L and V^H = R; of A^T = L S R: A = R^T S L^T. */
static void put_vectors(nvd_solver_call *x, const svd *v, char *u, char *vh) {
  const nvd_solver_solution *s = x->s;
  const void *left = nvd_area_at(x, NVD_LEFT), *right = nvd_area_at(x, NVD_RIGHT);
  int jacobi = is_jacobi(s);
  int64_t l = v->m * (jacobi ? v->m : v->left), r = v->n * v->n;
  if (v->wide) put_rows(x, vh, left, l, v->left, v->m, v->m);
  else nvd_gpu_turn(x, &(nvd_turning){ u, left, s->each, l, v->m, v->left, v->m, NVD_ALL, 0 });
  if (v->wide && jacobi) nvd_gpu_turn(x, &(nvd_turning){ u, right, s->each, r, v->n, v->n, v->n, NVD_ALL, 1 });
  else if (v->wide) put_rows(x, u, right, r, v->n, v->n, v->n);
  else if (jacobi)
    nvd_do_move(x, &(nvd_move){ .what = NVD_COPY,
                                .to = vh,
                                .from = right,
                                .to_matrix = s->each,
                                .to_row = v->n,
                                .to_col = 1,
                                .from_matrix = r,
                                .from_row = v->n,
                                .from_col = 1,
                                .rows = v->n,
                                .cols = v->n,
                                .count = s->count,
                                .conj = 1 });
  else nvd_gpu_turn(x, &(nvd_turning){ vh, right, s->each, r, v->n, v->n, v->n, NVD_ALL, 0 });
}

static void run_singular(nvd_solver_call *x) {
  const nvd_solver_solution *s = x->s;
  svd v = svd_of(s);
  int64_t u_cols = v.parts == NVG_COMPLETE ? s->m : v.k;
  char *values = x->to + s->m * u_cols * s->size;
  if (!v.k) { /* one of them has no elements, the other is any orthogonal matrix */
    if (v.parts == NVG_COMPLETE) nvd_gpu_identity(x, x->to, s->each, s->m + s->n);
    return;
  }
  if (v.wide) nvd_gpu_pack(x, 0, nvd_area_at(x, NVD_MATRIX), v.m * v.n);
  else nvd_gpu_pack_turned(x, 0, nvd_area_at(x, NVD_MATRIX), v.m * v.n);
  find_singular_values(x, &v);
  nvd_gpu_note(x, NVD_MATRIX_DIVERGES);
  if (v.parts == NVG_VALUES) {
    copy_values(x, v.k);
    return;
  }
  nvd_gpu_reals(x, values, s->each, v.k);
  put_vectors(x, &v, x->to, values + v.k * s->size);
}

const nvd_solver_routine nvd_gpu_orthogonal = { size_orthogonal, run_orthogonal, 0 };
const nvd_solver_routine nvd_gpu_singular = { size_singular, run_singular, 1 };
const nvd_solver_routine nvd_gpu_hermitian = { size_hermitian, run_hermitian, 1 };
