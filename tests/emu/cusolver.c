/* libcusolver: factorizations as lib/dispatch asks for them, by LAPACK on the host, queued like kernels. Each wants a
   workspace on the device and on the host, and refuses less; it refuses leading dimensions that are too small, memory
   that is not the device's, matrices that are wider than tall where the library does (gesvd), and those that are too
   large for its batches (gesvdj). */
#include "lapack.h"
#pragma GCC diagnostic ignored "-Wunused-parameter" /* queries take all that their calls do */

#define DECLARE_SOLVER(name, args) int name args;
NVD_SOLVER(DECLARE_SOLVER)

enum { DEVICE_BYTES = 512, HOST_BYTES = 64, LWORK = 96 };

int cusolverGetVersion(int *version) { return *version = 12000, OK; }
int cusolverDnCreate(void **out) {
  CALL;
  return *out = calloc(1, sizeof(handle)), OK;
}
int cusolverDnSetStream(void *h, void *stream) {
  CALL;
  ((handle *)h)->stream = stream;
  return OK;
}
int cusolverDnCreateParams(void **out) { return *out = malloc(1), OK; }
int cusolverDnCreateSyevjInfo(void **out) { return *out = malloc(1), OK; }
int cusolverDnCreateGesvdjInfo(void **out) { return *out = malloc(1), OK; }

static int type_of(int type) { return type == CU_R_32F ? 0 : type == CU_R_64F ? 1 : type == CU_C_32F ? 2 : 3; }
static int real_of(int type) { return type == CU_C_32F ? CU_R_32F : type == CU_C_64F ? CU_R_64F : type; }
static int answer(size_t *device, size_t *host) { return *device = DEVICE_BYTES, *host = HOST_BYTES, OK; }

static int lacks(const handle *h, const void *device, size_t device_bytes, const void *host, size_t host_bytes,
                 const int *info) {
  return device_bytes < DEVICE_BYTES || host_bytes < HOST_BYTES || !host || !is_of_device(h, device, DEVICE_BYTES) ||
         !is_of_device(h, info, 4);
}
#define LACKS lacks(h, device, device_bytes, host, host_bytes, info)
#define LACKS_MATRIX(a, rows, cols, ld) \
  ((ld) < (rows) || (rows) < 1 || (cols) < 1 || !is_of_device(h, a, span_of(rows, cols, ld, sizes[type_of(type)])))

/* ---- Cholesky */
static int do_potrf(const void *data) { /* type, uplo, n, a, lda, info, count (0: a is the matrix) */
  const word *w = data;
  int n = (int)w[2].i, lda = (int)w[4].i;
  potrf *f = (potrf *)(uintptr_t)lapack((int)w[0].i, "potrf", "potrf");
  for (int64_t i = 0; i < (w[6].i ? w[6].i : 1); i++)
    f(&"LU"[w[1].i], &n, w[6].i ? ((void **)w[3].p)[i] : w[3].p, &lda, (int *)w[5].p + i, 1);
  return OK;
}
int cusolverDnXpotrf_bufferSize(NVD_SOLVER_POTRF, NVD_SOLVER_SIZES) { return answer(device, host); }
int cusolverDnXpotrf(NVD_SOLVER_POTRF, NVD_SOLVER_WORK) {
  CALL;
  handle *h = handle_;
  REFUSE(!params || compute != type || LACKS || LACKS_MATRIX(a, n, n, lda));
  return WORK(h, do_potrf, { type_of(type) }, { uplo }, { n }, { .p = a }, { lda }, { .p = info }, { 0 });
}

/* ---- LU */
static int do_getrf(const void *data) { /* type, m, n, a, lda, pivots, info */
  const word *w = data;
  int m = (int)w[1].i, n = (int)w[2].i, lda = (int)w[4].i, k = m < n ? m : n,
      *pivot = malloc((size_t)k * sizeof *pivot);
  ((getrf *)(uintptr_t)lapack((int)w[0].i, "getrf", "getrf"))(&m, &n, w[3].p, &lda, pivot, w[6].p);
  for (int i = 0; i < k; i++) ((int64_t *)w[5].p)[i] = pivot[i];
  free(pivot);
  return OK;
}
static int do_getrs(const void *data) { /* type, trans, n, nrhs, a, lda, pivots, b, ldb, info */
  const word *w = data;
  int n = (int)w[2].i, nrhs = (int)w[3].i, lda = (int)w[5].i, ldb = (int)w[8].i,
      *pivot = malloc((size_t)n * sizeof *pivot);
  for (int i = 0; i < n; i++) pivot[i] = (int)((int64_t *)w[6].p)[i];
  ((getrs *)(uintptr_t)lapack((int)w[0].i, "getrs", "getrs"))(&"NTC"[w[1].i], &n, &nrhs, w[4].p, &lda, pivot, w[7].p,
                                                              &ldb, w[9].p, 1);
  free(pivot);
  return OK;
}
int cusolverDnXgetrf_bufferSize(NVD_SOLVER_GETRF, int compute, NVD_SOLVER_SIZES) { return answer(device, host); }
int cusolverDnXgetrf(NVD_SOLVER_GETRF, int64_t *ipiv, int compute, NVD_SOLVER_WORK) {
  CALL;
  handle *h = handle_;
  REFUSE(!params || compute != type || LACKS || LACKS_MATRIX(a, m, n, lda) ||
         !is_of_device(h, ipiv, 8 * (m < n ? m : n)));
  return WORK(h, do_getrf, { type_of(type) }, { m }, { n }, { .p = a }, { lda }, { .p = ipiv }, { .p = info });
}
int cusolverDnXgetrs(void *handle_, void *params, int trans, int64_t n, int64_t nrhs, int type, const void *a,
                     int64_t lda, const int64_t *ipiv, int b_type, void *b, int64_t ldb, int *info) {
  CALL;
  handle *h = handle_;
  REFUSE(!params || b_type != type || LACKS_MATRIX(a, n, n, lda) || LACKS_MATRIX(b, n, nrhs, ldb) ||
         !is_of_device(h, ipiv, 8 * n) || !is_of_device(h, info, 4));
  return WORK(h, do_getrs, { type_of(type) }, { trans }, { n }, { nrhs }, { .p = (void *)(uintptr_t)a }, { lda },
              { .p = (void *)(uintptr_t)ipiv }, { .p = b }, { ldb }, { .p = info });
}

/* ---- QR */
static int do_geqrf(const void *data) { /* type, m, n, a, lda, tau, info */
  const word *w = data;
  int m = (int)w[1].i, n = (int)w[2].i, lda = (int)w[4].i, lwork = 64 * n;
  void *work = malloc((size_t)lwork * 16);
  ((geqrf *)(uintptr_t)lapack((int)w[0].i, "geqrf", "geqrf"))(&m, &n, w[3].p, &lda, w[5].p, work, &lwork, w[6].p);
  free(work);
  return OK;
}
static int do_orgqr(const void *data) { /* type, m, n, k, a, lda, tau, info */
  const word *w = data;
  int m = (int)w[1].i, n = (int)w[2].i, k = (int)w[3].i, lda = (int)w[5].i, lwork = 64 * n;
  void *work = malloc((size_t)lwork * 16);
  ((orgqr *)(uintptr_t)lapack((int)w[0].i, "orgqr", "ungqr"))(&m, &n, &k, w[4].p, &lda, w[6].p, work, &lwork, w[7].p);
  free(work);
  return OK;
}
int cusolverDnXgeqrf_bufferSize(NVD_SOLVER_GEQRF, NVD_SOLVER_SIZES) { return answer(device, host); }
int cusolverDnXgeqrf(NVD_SOLVER_GEQRF, NVD_SOLVER_WORK) {
  CALL;
  handle *h = handle_;
  int64_t k = m < n ? m : n;
  REFUSE(!params || compute != type || tau_type != type || LACKS || LACKS_MATRIX(a, m, n, lda) ||
         !is_of_device(h, tau, k * sizes[type_of(type)]));
  return WORK(h, do_geqrf, { type_of(type) }, { m }, { n }, { .p = a }, { lda }, { .p = tau }, { .p = info });
}

/* ---- eigenvalues of Hermitian matrices */
static int do_syev(const void *data) { /* type, jobz, uplo, n, a, lda, w, info, count */
  const word *w = data;
  int t = (int)w[0].i, n = (int)w[3].i, lda = (int)w[5].i, lwork = 64 * n, size = sizes[t], real = sizes[t & 1];
  char *work = malloc((size_t)lwork * 16), *rwork = malloc((size_t)(3 * n + 1) * 8);
  void *f = lapack(t, "syev", "heev");
  for (int64_t i = 0; i < w[8].i; i++) {
    char *a = (char *)w[4].p + i * lda * n * size, *values = (char *)w[6].p + i * n * real;
    int *info = (int *)w[7].p + i;
    if (t < NVD_CUSOLVER_C)
      ((syev *)(uintptr_t)f)(&"NV"[w[1].i], &"LU"[w[2].i], &n, a, &lda, values, work, &lwork, info, 1, 1);
    else ((heev *)(uintptr_t)f)(&"NV"[w[1].i], &"LU"[w[2].i], &n, a, &lda, values, work, &lwork, rwork, info, 1, 1);
  }
  free(work);
  free(rwork);
  return OK;
}
int cusolverDnXsyevd_bufferSize(NVD_SOLVER_SYEVD, NVD_SOLVER_SIZES) { return answer(device, host); }
int cusolverDnXsyevd(NVD_SOLVER_SYEVD, NVD_SOLVER_WORK) {
  CALL;
  handle *h = handle_;
  REFUSE(!params || compute != type || w_type != real_of(type) || LACKS || LACKS_MATRIX(a, n, n, lda) ||
         !is_of_device(h, w, n * sizes[type_of(w_type)]));
  return WORK(h, do_syev, { type_of(type) }, { jobz }, { uplo }, { n }, { .p = a }, { lda }, { .p = w }, { .p = info },
              { 1 });
}

/* ---- singular values */
typedef struct svd { int t, m, n, lda, ldu, ldvt; char jobu, jobvt; void *a, *s, *u, *vt; int *info; } svd;
static void find_svd(svd *v) {
  int lwork = 64 * (v->m + v->n);
  char *work = malloc((size_t)lwork * 16), *rwork = malloc((size_t)(5 * (v->m + v->n)) * 8);
  void *f = lapack(v->t, "gesvd", "gesvd");
  if (v->t < NVD_CUSOLVER_C)
    ((gesvd *)(uintptr_t)f)(&v->jobu, &v->jobvt, &v->m, &v->n, v->a, &v->lda, v->s, v->u, &v->ldu, v->vt, &v->ldvt,
                            work, &lwork, v->info, 1, 1);
  else
    ((c_gesvd *)(uintptr_t)f)(&v->jobu, &v->jobvt, &v->m, &v->n, v->a, &v->lda, v->s, v->u, &v->ldu, v->vt, &v->ldvt,
                              work, &lwork, rwork, v->info, 1, 1);
  free(work);
  free(rwork);
}
static int do_gesvd(const void *data) { /* type, jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, info */
  const word *w = data;
  svd v = { (int)w[0].i,  (int)w[3].i, (int)w[4].i, (int)w[6].i, (int)w[9].i, (int)w[11].i, (char)w[1].i,
            (char)w[2].i, w[5].p,      w[7].p,      w[8].p,      w[10].p,     w[12].p };
  return find_svd(&v), OK;
}
int cusolverDnXgesvd_bufferSize(NVD_SOLVER_GESVD, NVD_SOLVER_SIZES) { return answer(device, host); }
int cusolverDnXgesvd(NVD_SOLVER_GESVD, NVD_SOLVER_WORK) {
  CALL;
  handle *h = handle_;
  int vectors = jobu != 'N', size = sizes[type_of(type)];
  REFUSE(!params || compute != type || u_type != type || vt_type != type || s_type != real_of(type) || m < n || LACKS ||
         LACKS_MATRIX(a, m, n, lda) || !is_of_device(h, s, n * sizes[type_of(s_type)]) || ldu < m || ldvt < n);
  REFUSE(vectors && (!is_of_device(h, u, span_of(m, jobu == 'A' ? m : n, ldu, size)) ||
                     !is_of_device(h, vt, span_of(n, n, ldvt, size))));
  return WORK(h, do_gesvd, { type_of(type) }, { jobu }, { jobvt }, { m }, { n }, { .p = a }, { lda }, { .p = s },
              { .p = u }, { ldu }, { .p = vt }, { ldvt }, { .p = info });
}

static void adjoin(char *a, int n, int t) { /* in place; real parts and imaginary ones */
  int size = sizes[t], real = sizes[t & 1];
  char x[16], y[16];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      char *p = a + (i + j * n) * size, *q = a + (j + i * n) * size;
      memcpy(x, p, (size_t)size);
      memcpy(y, q, (size_t)size);
      if (t >= NVD_CUSOLVER_C) x[size - 1] ^= (char)0x80, y[size - 1] ^= (char)0x80;
      memcpy(p, y, (size_t)size);
      memcpy(q, x, (size_t)size);
    }
  (void)real;
}
static int do_gesvdj(const void *data) { /* type, jobz, m, n, a, lda, s, u, ldu, v, ldv, info, count */
  const word *w = data;
  int t = (int)w[0].i, m = (int)w[2].i, n = (int)w[3].i, lda = (int)w[5].i, ldu = (int)w[8].i, ldv = (int)w[10].i;
  int size = sizes[t], real = sizes[t & 1], k = m < n ? m : n;
  char job = w[1].i ? 'A' : 'N';
  for (int64_t i = 0; i < w[12].i; i++) {
    svd v = { t,
              m,
              n,
              lda,
              ldu,
              ldv,
              job,
              job,
              (char *)w[4].p + i * lda * n * size,
              (char *)w[6].p + i * k * real,
              (char *)w[7].p + i * ldu * m * size,
              (char *)w[9].p + i * ldv * n * size,
              (int *)w[11].p + i };
    find_svd(&v);
    if (job == 'A') adjoin(v.vt, n, t);
    else { /* the library uses the memory all the same */ memset(v.u, 0xff, (size_t)(ldu * m * size));
      memset(v.vt, 0xff, (size_t)(ldv * n * size));
    }
  }
  return OK;
}

/* ---- the functions of each dtype */
static int ask_orgqr(handle *h, int t, NVD_SOLVER_ORGQR, void *work, int lwork, int *info) {
  REFUSE(m < n || n < k || k < 1 || lda < m || lwork < LWORK || !is_of_device(h, work, (int64_t)lwork * sizes[t]) ||
         !is_of_device(h, a, span_of(m, n, lda, sizes[t])) || !is_of_device(h, tau, (int64_t)k * sizes[t]) ||
         !is_of_device(h, info, 4));
  return WORK(h, do_orgqr, { t }, { m }, { n }, { k }, { .p = a }, { lda }, { .p = tau }, { .p = info });
}
static int ask_potrf(handle *h, int t, int uplo, int n, void **a, int lda, int *info, int batch) {
  REFUSE(n < 1 || lda < n || batch < 1 || !is_of_device(h, a, 8 * batch) || !is_of_device(h, info, 4 * batch));
  return WORK(h, do_potrf, { t }, { uplo }, { n }, { .p = a }, { lda }, { .p = info }, { batch });
}
static int ask_syevj(handle *h, int t, NVD_SOLVER_SYEVJ, NVD_SOLVER_JACOBI) {
  REFUSE(n < 1 || lda < n || lwork < LWORK || !params || batch < 1 || !is_of_device(h, info, 4 * batch) ||
         !is_of_device(h, work, (int64_t)lwork * sizes[t]) ||
         !is_of_device(h, a, (int64_t)batch * lda * n * sizes[t]) ||
         !is_of_device(h, w, (int64_t)batch * n * sizes[t & 1]));
  return WORK(h, do_syev, { t }, { jobz }, { uplo }, { n }, { .p = a }, { lda }, { .p = w }, { .p = info }, { batch });
}
static int ask_gesvdj(handle *h, int t, NVD_SOLVER_GESVDJ, NVD_SOLVER_JACOBI) {
  REFUSE(m < 1 || n < 1 || m > 32 || n > 32 || lda < m || ldu < m || ldv < n || lwork < LWORK || !params || batch < 1);
  REFUSE(!is_of_device(h, info, 4 * batch) || !is_of_device(h, work, (int64_t)lwork * sizes[t]) ||
         !is_of_device(h, a, (int64_t)batch * lda * n * sizes[t]) ||
         !is_of_device(h, s, (int64_t)batch * (m < n ? m : n) * sizes[t & 1]));
  REFUSE(!is_of_device(h, u, (int64_t)batch * ldu * m * sizes[t]) ||
         !is_of_device(h, v, (int64_t)batch * ldv * n * sizes[t]));
  return WORK(h, do_gesvdj, { t }, { jobz }, { m }, { n }, { .p = a }, { lda }, { .p = s }, { .p = u }, { ldu },
              { .p = v }, { ldv }, { .p = info }, { batch });
}
#define FUNCTION(name, args, ...) \
  int name args; \
  int name args { \
    CALL; \
    __VA_ARGS__ \
  }
#define DEFINE(L, t, or, sy) \
  FUNCTION(cusolverDn##L##or##gqr_bufferSize, (NVD_SOLVER_ORGQR, int *lwork), return *lwork = LWORK, OK;) \
  FUNCTION(cusolverDn##L##or##gqr, (NVD_SOLVER_ORGQR, void *work, int lwork, int *info), \
           return ask_orgqr(handle_, t, handle_, m, n, k, a, lda, tau, work, lwork, info);) \
  FUNCTION(cusolverDn##L##potrfBatched, (void *handle_, int uplo, int n, void **a, int lda, int *info, int batch), \
           return ask_potrf(handle_, t, uplo, n, a, lda, info, batch);) \
  FUNCTION(cusolverDn##L##sy##evjBatched_bufferSize, (NVD_SOLVER_SYEVJ, int *lwork, void *params, int batch), \
           return *lwork = LWORK, OK;) \
  FUNCTION(cusolverDn##L##sy##evjBatched, (NVD_SOLVER_SYEVJ, NVD_SOLVER_JACOBI), \
           return ask_syevj(handle_, t, handle_, jobz, uplo, n, a, lda, w, work, lwork, info, params, batch);) \
  FUNCTION(cusolverDn##L##gesvdjBatched_bufferSize, (NVD_SOLVER_GESVDJ, int *lwork, void *params, int batch), \
           return *lwork = LWORK, OK;) \
  FUNCTION(cusolverDn##L##gesvdjBatched, (NVD_SOLVER_GESVDJ, NVD_SOLVER_JACOBI), \
           return ask_gesvdj(handle_, t, handle_, jobz, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info, params, \
                             batch);)
DEFINE(S, 0, or, sy)
DEFINE(D, 1, or, sy)
DEFINE(C, 2, un, he)
DEFINE(Z, 3, un, he)
