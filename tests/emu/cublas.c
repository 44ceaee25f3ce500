/* libcublas: the functions of matrices that lib/dispatch calls, by LAPACK on the host, queued like kernels. Refuses
   leading dimensions that are too small and memory that is not the device's. */
#include "lapack.h"

int cublasCreate_v2(void **out) {
  CALL;
  return *out = calloc(1, sizeof(handle)), OK;
}
int cublasSetStream_v2(void *h, void *stream) {
  CALL;
  ((handle *)h)->stream = stream;
  return OK;
}

/* ---- triangular systems */
enum { TYPE, SIDE, UPLO, TRANS, DIAG, M, N, LDA, LDB, ALPHA, AT_A, AT_B, COUNT, TRSM };

static int do_trsm(const void *data) {
  const word *w = data;
  int m = (int)w[M].i, n = (int)w[N].i, lda = (int)w[LDA].i, ldb = (int)w[LDB].i;
  trsm *f = (trsm *)(uintptr_t)lapack((int)w[TYPE].i, "trsm", "trsm");
  for (int64_t i = 0; i < (w[COUNT].i ? w[COUNT].i : 1); i++)
    f(&"LR"[w[SIDE].i], &"LU"[w[UPLO].i], &"NTC"[w[TRANS].i], &"NU"[w[DIAG].i], &m, &n, w[ALPHA].d,
      w[COUNT].i ? ((void **)w[AT_A].p)[i] : w[AT_A].p, &lda, w[COUNT].i ? ((void **)w[AT_B].p)[i] : w[AT_B].p, &ldb, 1,
      1, 1, 1);
  return OK;
}

static int ask_trsm(handle *h, int t, const word *given, const void *alpha) {
  word w[TRSM];
  memcpy(w, given, sizeof w);
  int64_t order = w[SIDE].i == CU_RIGHT ? w[N].i : w[M].i;
  REFUSE(w[LDA].i < (order > 1 ? order : 1) || w[LDB].i < (w[M].i > 1 ? w[M].i : 1));
  if (!w[COUNT].i)
    REFUSE(!is_of_device(h, w[AT_A].p, span_of(order, order, w[LDA].i, sizes[t])) ||
           !is_of_device(h, w[AT_B].p, span_of(w[M].i, w[N].i, w[LDB].i, sizes[t])));
  memcpy(w[ALPHA].d, alpha, (size_t)sizes[t]);
  return enqueue_work(h->stream, do_trsm, w, TRSM);
}

/* ---- products */
static int do_gemm(const void *data) { /* as the arguments of ask_gemm; strides in elements */
  const word *w = data;
  int m = (int)w[3].i, n = (int)w[4].i, k = (int)w[5].i, lda = (int)w[7].i, ldb = (int)w[10].i, ldc = (int)w[13].i;
  int64_t size = sizes[w[0].i];
  gemm *f = (gemm *)(uintptr_t)lapack((int)w[0].i, "gemm", "gemm");
  for (int64_t i = 0; i < w[15].i; i++)
    f(&"NTC"[w[1].i], &"NTC"[w[2].i], &m, &n, &k, w[16].d, (char *)w[6].p + i * w[8].i * size, &lda,
      (char *)w[9].p + i * w[11].i * size, &ldb, w[18].d, (char *)w[12].p + i * w[14].i * size, &ldc, 1, 1);
  return OK;
}

static int ask_gemm(handle *h, const word *given, const void *alpha, const void *beta) {
  word w[20];
  memcpy(w, given, 16 * sizeof *w);
  int64_t m = w[3].i, n = w[4].i, k = w[5].i, last = w[15].i - 1, size = sizes[w[0].i];
  int64_t a_rows = w[1].i ? k : m, a_cols = w[1].i ? m : k, b_rows = w[2].i ? n : k, b_cols = w[2].i ? k : n;
  REFUSE(m < 1 || n < 1 || k < 1 || last < 0 || w[7].i < a_rows || w[10].i < b_rows || w[13].i < m);
  REFUSE(last && w[14].i < m);
  REFUSE(!is_of_device(h, w[6].p, span_of(a_rows, a_cols, w[7].i, size) + last * w[8].i * size) ||
         !is_of_device(h, w[9].p, span_of(b_rows, b_cols, w[10].i, size) + last * w[11].i * size) ||
         !is_of_device(h, w[12].p, span_of(m, n, w[13].i, size) + last * w[14].i * size));
  memcpy(w[16].d, alpha, (size_t)size);
  memcpy(w[18].d, beta, (size_t)size);
  return enqueue_work(h->stream, do_gemm, w, 20);
}

/* ---- LU */

static int do_getrf(const void *data) { /* type, n, addresses, lda, pivots, infos, count */
  const word *w = data;
  int n = (int)w[1].i, lda = (int)w[3].i;
  getrf *f = (getrf *)(uintptr_t)lapack((int)w[0].i, "getrf", "getrf");
  for (int64_t i = 0; i < w[6].i; i++) f(&n, &n, ((void **)w[2].p)[i], &lda, (int *)w[4].p + i * n, (int *)w[5].p + i);
  return OK;
}
static int do_getrs(const void *data) { /* type, trans, n, nrhs, addresses, lda, pivots, addresses, ldb, count */
  const word *w = data;
  int n = (int)w[2].i, nrhs = (int)w[3].i, lda = (int)w[5].i, ldb = (int)w[8].i, info;
  getrs *f = (getrs *)(uintptr_t)lapack((int)w[0].i, "getrs", "getrs");
  for (int64_t i = 0; i < w[9].i; i++)
    f(&"NTC"[w[1].i], &n, &nrhs, ((void **)w[4].p)[i], &lda, (int *)w[6].p + i * n, ((void **)w[7].p)[i], &ldb, &info,
      1);
  return OK;
}

/* ---- the functions of each dtype */
#define DEFINE(L, t) \
  int cublas##L##trsm_v2(void *h, int side, int uplo, int trans, int diag, int m, int n, const void *alpha, \
                         const void *a, int lda, void *b, int ldb); \
  int cublas##L##trsm_v2(void *h, int side, int uplo, int trans, int diag, int m, int n, const void *alpha, \
                         const void *a, int lda, void *b, int ldb) { \
    CALL; \
    return ask_trsm(h, t, (word[]){ { t }, { side }, { uplo }, { trans }, { diag }, { m }, { n }, { lda }, { ldb }, \
                                    { 0 }, { .p = (void *)(uintptr_t)a }, { .p = b }, { 0 } }, alpha); \
  } \
  int cublas##L##trsmBatched(void *h, int side, int uplo, int trans, int diag, int m, int n, const void *alpha, \
                             void **a, int lda, void **b, int ldb, int batch); \
  int cublas##L##trsmBatched(void *h, int side, int uplo, int trans, int diag, int m, int n, const void *alpha, \
                             void **a, int lda, void **b, int ldb, int batch) { \
    CALL; \
    REFUSE(batch < 1 || !is_of_device(h, a, 8 * batch) || !is_of_device(h, b, 8 * batch)); \
    return ask_trsm(h, t, (word[]){ { t }, { side }, { uplo }, { trans }, { diag }, { m }, { n }, { lda }, { ldb }, \
                                    { 0 }, { .p = a }, { .p = b }, { batch } }, alpha); \
  } \
  int cublas##L##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, \
                                    int lda, long long as, const void *b, int ldb, long long bs, const void *beta, \
                                    void *c, int ldc, long long cs, int batch); \
  int cublas##L##gemmStridedBatched(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, \
                                    int lda, long long as, const void *b, int ldb, long long bs, const void *beta, \
                                    void *c, int ldc, long long cs, int batch) { \
    CALL; \
    return ask_gemm(h, (word[]){ { t }, { ta }, { tb }, { m }, { n }, { k }, { .p = (void *)(uintptr_t)a }, { lda }, \
                                 { as }, { .p = (void *)(uintptr_t)b }, { ldb }, { bs }, { .p = c }, { ldc }, { cs }, \
                                 { batch } }, alpha, beta); \
  } \
  int cublas##L##getrfBatched(void *h, int n, void **a, int lda, int *ipiv, int *info, int batch); \
  int cublas##L##getrfBatched(void *h, int n, void **a, int lda, int *ipiv, int *info, int batch) { \
    CALL; \
    REFUSE(n < 1 || lda < n || batch < 1 || !is_of_device(h, a, 8 * batch) || \
           !is_of_device(h, ipiv, 4 * (int64_t)batch * n) || !is_of_device(h, info, 4 * batch)); \
    return WORK((handle *)h, do_getrf, { t }, { n }, { .p = a }, { lda }, { .p = ipiv }, { .p = info }, { batch }); \
  } \
  int cublas##L##getrsBatched(void *h, int trans, int n, int nrhs, void **a, int lda, const int *ipiv, void **b, \
                              int ldb, int *info, int batch); \
  int cublas##L##getrsBatched(void *h, int trans, int n, int nrhs, void **a, int lda, const int *ipiv, void **b, \
                              int ldb, int *info, int batch) { \
    CALL; \
    REFUSE(n < 1 || nrhs < 1 || lda < n || ldb < n || batch < 1 || !is_of_device(h, a, 8 * batch) || \
           !is_of_device(h, b, 8 * batch) || !is_of_device(h, ipiv, 4 * (int64_t)batch * n)); \
    *info = 0; \
    return WORK((handle *)h, do_getrs, { t }, { trans }, { n }, { nrhs }, { .p = a }, { lda }, \
                { .p = (void *)(uintptr_t)ipiv }, { .p = b }, { ldb }, { batch }); \
  }
DEFINE(S, 0)
DEFINE(D, 1)
DEFINE(C, 2)
DEFINE(Z, 3)
