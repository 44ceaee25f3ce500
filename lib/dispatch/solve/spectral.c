/* Orthogonal factors, singular values and eigenvalues by LAPACK. The transpose of QR is LQ, and that of U S V^H
   exchanges U and V, so row-major matrices and results need no transposition; eigenvectors do. */
#include <math.h>
#include <string.h>
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int leading(int64_t n) { return n ? (int)n : 1; }
static int real_size(const nvd_matrix_task *x) { return nvg_size(nvg_real_of(x->type)); }

/* Takes bytes of the scratch memory. */
static char *take(char **at, int64_t bytes) {
  char *r = *at;
  *at += nvd_lines(bytes);
  return r;
}

/* The workspace that a query answered, at least `some` elements. */
static int work_of(const nvd_matrix_task *x, const char *answer, int64_t some) {
  double n = nvd_number(answer, 0, x->type);
  return n > (double)some ? (int)(n * (1 + 1e-6)) : (int)some;
}

/* ---- Q and R */
static nvd_matrix_fault run_orthogonal(const nvd_matrix_task *x) {
  int m = (int)x->m, n = (int)x->n, k = (int)least(m, n), lda = leading(n), info;
  int parts = (int)x->r->attr[0], rows = parts == NVG_COMPLETE ? m : k, ldq = leading(rows);
  char *at = x->scratch, *a = take(&at, x->m * x->n * x->size), *tau = take(&at, k * (int64_t)x->size);
  char *q = x->out, *r = parts == NVG_VALUES ? x->out : q + (int64_t)m * rows * x->size;
  nvd_matrix_pack(x, 0, a);
  x->f->gelqf(&n, &m, a, &lda, tau, at, &x->lwork, &info);
  memset(r, 0, (size_t)((int64_t)rows * n * x->size));
  for (int64_t i = 0; i < k; i++)
    memcpy(r + i * (n + 1) * x->size, a + i * (n + 1) * x->size, (size_t)((n - i) * x->size));
  if (parts == NVG_VALUES) return NVD_MATRIX_FINE;
  for (int64_t j = 0; j < m; j++) memcpy(q + j * ldq * x->size, a + j * n * x->size, (size_t)(k * (int64_t)x->size));
  x->f->orglq(&rows, &m, &k, q, &ldq, tau, at, &x->lwork, &info);
  return NVD_MATRIX_FINE;
}

static int64_t size_orthogonal(nvd_matrix_task *x) {
  enum { BLOCK = 64 };
  int64_t rows = x->r->attr[0] == NVG_COMPLETE ? x->m : least(x->m, x->n);
  x->lwork = (int)((rows > x->n ? rows : x->n) * BLOCK + 1);
  return nvd_lines(x->m * x->n * x->size) + nvd_lines(least(x->m, x->n) * x->size) +
         nvd_lines(x->lwork * (int64_t)x->size);
}

/* ---- singular values */
typedef struct svd { char job; int rows, cols; char *a, *s, *u, *vt, *work, *rwork; int *iwork; } svd;

static int64_t bytes_of_svd_reals(const nvd_matrix_task *x) { /* real workspace of complex matrices */
  int64_t k = least(x->m, x->n), most = x->m > x->n ? x->m : x->n;
  return nvg_parts(x->type) == 1 ? 0 : (5 * k * k + 7 * k + 2 * most * k + 2 * k * k + k + 64) * real_size(x);
}

static int call_gesdd(const nvd_matrix_task *x, const svd *v, int lwork) {
  int m = (int)x->m, n = (int)x->n, lda = leading(n), info, ldu = leading(v->rows);
  if (nvg_parts(x->type) == 1)
    x->f->gesdd(&v->job, &n, &m, v->a, &lda, v->s, v->vt, &lda, v->u, &ldu, v->work, &lwork, v->iwork, &info, 1);
  else
    x->f->c_gesdd(&v->job, &n, &m, v->a, &lda, v->s, v->vt, &lda, v->u, &ldu, v->work, &lwork, v->rwork, v->iwork,
                  &info, 1);
  return info;
}

static svd svd_of(const nvd_matrix_task *x) {
  int64_t k = least(x->m, x->n), parts = x->r->attr[0];
  svd v = { .job = "NSA"[parts], .rows = (int)(parts == NVG_COMPLETE ? x->m : k) };
  v.cols = (int)(parts == NVG_COMPLETE ? x->n : k);
  char *at = x->scratch;
  v.a = take(&at, x->m * x->n * x->size);
  v.s = take(&at, k * real_size(x));
  v.iwork = (int *)(void *)take(&at, 8 * (k + 1) * (int64_t)sizeof(int));
  v.rwork = take(&at, bytes_of_svd_reals(x));
  v.work = at;
  v.u = x->out;
  v.vt = x->out + (x->m * v.rows + k) * x->size;
  return v;
}

static nvd_matrix_fault run_singular(const nvd_matrix_task *x) {
  int64_t k = least(x->m, x->n);
  svd v = svd_of(x);
  nvd_matrix_pack(x, 0, v.a);
  if (k && call_gesdd(x, &v, x->lwork)) return NVD_MATRIX_DIVERGES;
  if (v.job == 'N') memcpy(x->out, v.s, (size_t)(k * real_size(x)));
  else nvd_put_reals(x->out + x->m * v.rows * x->size, v.s, k, x->type);
  if (!k && v.job == 'A') /* one of them has no elements, the other is any orthogonal matrix */
    for (int64_t i = 0; i < x->m + x->n; i++)
      for (int64_t j = 0; j < x->m + x->n; j++) nvd_put_number(x->out, i * (x->m + x->n) + j, x->type, i == j);
  return NVD_MATRIX_FINE;
}

static int64_t size_singular(nvd_matrix_task *x) {
  char answer[16] = { 0 }, reals[16];
  int64_t k = least(x->m, x->n);
  svd v = svd_of(x);
  v.work = answer;
  v.rwork = reals;
  if (k) call_gesdd(x, &v, -1);
  x->lwork = work_of(x, answer, 1);
  return svd_of(x).work - x->scratch + nvd_lines(x->lwork * (int64_t)x->size);
}

/* ---- Hermitian matrices */
typedef struct hermitian { char job; char *a, *w, *work, *rwork; int *iwork, lrwork, liwork; } hermitian;

static hermitian hermitian_of(const nvd_matrix_task *x) {
  int64_t n = x->n, complex = nvg_parts(x->type) == 2;
  hermitian h = { .job = x->r->attr[0] ? 'V' : 'N', .liwork = (int)(3 + 5 * n) };
  h.lrwork = !complex ? 0 : h.job == 'N' ? leading(n) : (int)(1 + 5 * n + 2 * n * n);
  char *at = x->scratch;
  h.a = take(&at, n * n * x->size);
  h.w = take(&at, n * real_size(x));
  h.iwork = (int *)(void *)take(&at, h.liwork * (int64_t)sizeof(int));
  h.rwork = take(&at, h.lrwork * (int64_t)real_size(x));
  h.work = at;
  return h;
}

static int call_heevd(const nvd_matrix_task *x, const hermitian *h, int lwork) {
  int n = (int)x->n, lda = leading(n), info;
  char uplo = x->r->attr[1] ? 'L' : 'U';
  if (nvg_parts(x->type) == 1)
    x->f->syevd(&h->job, &uplo, &n, h->a, &lda, h->w, h->work, &lwork, h->iwork, &h->liwork, &info, 1, 1);
  else
    x->f->heevd(&h->job, &uplo, &n, h->a, &lda, h->w, h->work, &lwork, h->rwork, &h->lrwork, h->iwork, &h->liwork,
                &info, 1, 1);
  return info;
}

static nvd_matrix_fault run_hermitian(const nvd_matrix_task *x) {
  int64_t n = x->n;
  hermitian h = hermitian_of(x);
  nvd_matrix_pack(x, 0, h.a);
  if (call_heevd(x, &h, x->lwork)) return NVD_MATRIX_DIVERGES;
  if (h.job == 'N') memcpy(x->out, h.w, (size_t)(n * real_size(x)));
  else {
    nvd_put_reals(x->out, h.w, n, x->type);
    nvd_matrix_turn(x->out + n * x->size, h.a, n, n, x->size);
    nvd_conjugate(x->out + n * x->size, n * n, x->type);
  }
  return NVD_MATRIX_FINE;
}

static int64_t size_hermitian(nvd_matrix_task *x) {
  char answer[16] = { 0 }, reals[16];
  hermitian h = hermitian_of(x);
  int integers[4];
  h.work = answer;
  h.rwork = reals;
  h.iwork = integers;
  int64_t least_work = nvg_parts(x->type) == 1 ? 1 + 6 * x->n + 2 * x->n * x->n : 2 * x->n + x->n * x->n;
  if (h.job == 'N') least_work = 2 * x->n;
  call_heevd(x, &h, -1);
  x->lwork = work_of(x, answer, least_work + 1);
  return hermitian_of(x).work - x->scratch + nvd_lines(x->lwork * (int64_t)x->size);
}

/* ---- general matrices. type is that of the operand; the result is complex. */
typedef struct general { char job; char *a, *w, *wi, *v, *work, *rwork; int ldv; } general;

static general general_of(const nvd_matrix_task *x) {
  int64_t n = x->n;
  general g = { .job = x->r->attr[0] ? 'V' : 'N', .ldv = leading(n) };
  char *at = x->scratch;
  g.a = take(&at, n * n * x->size);
  g.w = take(&at, n * x->size);
  g.wi = take(&at, n * x->size);
  g.v = take(&at, n * n * x->size);
  g.rwork = take(&at, 2 * n * x->size);
  g.work = at;
  return g;
}

static int call_geev(const nvd_matrix_task *x, const general *g, int lwork) {
  int n = (int)x->n, lda = leading(n), one = 1, info;
  if (nvg_parts(x->type) == 1)
    x->f->geev("N", &g->job, &n, g->a, &lda, g->w, g->wi, g->v, &one, g->v, &g->ldv, g->work, &lwork, &info, 1, 1);
  else
    x->f->c_geev("N", &g->job, &n, g->a, &lda, g->w, g->v, &one, g->v, &g->ldv, g->work, &lwork, g->rwork, &info, 1, 1);
  return info;
}

static int is_finite(const nvd_matrix_task *x, const char *a) {
  int64_t n = x->n * x->n * nvg_parts(x->type);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(nvd_number(a, i, nvg_real_of(x->type)))) return 0;
  return 1;
}

static void put_pair(char *to, int64_t i, nvm_dtype part, double re, double im) {
  nvd_put_number(to, 2 * i, part, re);
  nvd_put_number(to, 2 * i + 1, part, im);
}

/* Eigenvectors of a real matrix: those of two conjugate eigenvalues are stored as a real and an imaginary part. */
static void put_conjugates(const nvd_matrix_task *x, const general *g, char *to) {
  nvm_dtype t = x->type;
  for (int64_t j = 0; j < x->n; j++) {
    int pair = nvd_number(g->wi, j, t) != 0;
    for (int64_t i = 0; i < x->n; i++) {
      double re = nvd_number(g->v, j * x->n + i, t), im = pair ? nvd_number(g->v, (j + 1) * x->n + i, t) : 0;
      put_pair(to, i * x->n + j, t, re, im);
      if (pair) put_pair(to, i * x->n + j + 1, t, re, -im);
    }
    j += pair;
  }
}

static nvd_matrix_fault run_spectral(const nvd_matrix_task *x) {
  int64_t n = x->n;
  general g = general_of(x);
  nvd_matrix_pack_turned(x, 0, g.a);
  if (!is_finite(x, g.a)) return NVD_MATRIX_NOT_FINITE;
  if (n && call_geev(x, &g, x->lwork)) return NVD_MATRIX_DIVERGES;
  if (nvg_parts(x->type) == 2) {
    memcpy(x->out, g.w, (size_t)(n * x->size));
    if (g.job == 'V') nvd_matrix_turn(x->out + n * x->size, g.v, n, n, x->size);
    return NVD_MATRIX_FINE;
  }
  for (int64_t i = 0; i < n; i++)
    put_pair(x->out, i, x->type, nvd_number(g.w, i, x->type), nvd_number(g.wi, i, x->type));
  if (g.job == 'V') put_conjugates(x, &g, x->out + 2 * n * x->size);
  return NVD_MATRIX_FINE;
}

static int64_t size_spectral(nvd_matrix_task *x) {
  char answer[16] = { 0 }, reals[16];
  general g = general_of(x);
  g.work = answer;
  g.rwork = reals; /* a query answers there too */
  if (x->n) call_geev(x, &g, -1);
  x->lwork = work_of(x, answer, 4 * x->n + 1);
  return general_of(x).work - x->scratch + nvd_lines(x->lwork * (int64_t)x->size);
}

const nvd_matrix_routine nvd_orthogonal = { run_orthogonal, size_orthogonal };
const nvd_matrix_routine nvd_singular = { run_singular, size_singular };
const nvd_matrix_routine nvd_hermitian = { run_hermitian, size_hermitian };
const nvd_matrix_routine nvd_spectral = { run_spectral, size_spectral };
