/* LAPACK of OpenBLAS for the emulated cuBLAS and cuSOLVER, and what their work has in common: it is checked when it is
   asked for, and done when the stream gets to it. */
#ifndef NVM_EMU_LAPACK_H
#define NVM_EMU_LAPACK_H
#include "call.h"
#include "dispatch/solve/cusolver_api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CU_INVALID = 7 /* of cuBLAS */ };
static const char letters[] = "sdcz";
static const int sizes[] = { 4, 8, 8, 16 };

/* clang-format off */
typedef void potrf(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
typedef void getrf(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info);
typedef void getrs(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda, const int *ipiv,
                   void *b, const int *ldb, int *info, size_t);
typedef void trsm(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                  const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t, size_t, size_t,
                  size_t);
typedef void gemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,
                  const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                  const int *ldc, size_t, size_t);
typedef void geqrf(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *lwork,
                   int *info);
typedef void orgqr(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                   const int *lwork, int *info);
typedef void syev(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                  const int *lwork, int *info, size_t, size_t);
typedef void heev(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                  const int *lwork, void *rwork, int *info, size_t, size_t);
typedef void gesvd(const char *jobu, const char *jobvt, const int *m, const int *n, void *a, const int *lda, void *s,
                   void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork, int *info, size_t,
                   size_t);
typedef void c_gesvd(const char *jobu, const char *jobvt, const int *m, const int *n, void *a, const int *lda, void *s,
                     void *u, const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork, void *rwork,
                     int *info, size_t, size_t);
/* clang-format on */

/* The routine of this name and dtype; some have other names for complex dtypes. */
static inline void *lapack(int t, const char *real, const char *complex) {
  static void *library;
  char name[32];
  if (!library) library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  snprintf(name, sizeof name, "%c%s_", letters[t], t < NVD_CUSOLVER_C ? real : complex);
  return library ? dlsym(library, name) : NULL;
}

/* Work of a library: `n` values that it is called with. */
typedef union word { int64_t i; void *p; double d[2]; } word;
static inline int enqueue_work(void *where, int (*call)(const void *data), const word *w, size_t n) {
  STREAM(s, where);
  READY(s);
  word *own = malloc(n * sizeof *w);
  memcpy(own, w, n * sizeof *w);
  return enqueue(
      s,
      (op){ .kind = HOST, .call = call, .device = s->device, .staged = own, .n = n * sizeof *w, .from = (char *)own });
}
#define WORK(handle, call, ...) \
  enqueue_work((handle)->stream, call, (const word[]){ __VA_ARGS__ }, \
               sizeof((const word[]){ __VA_ARGS__ }) / sizeof(word))

typedef struct handle { void *stream; } handle;
static inline int is_of_device(const handle *h, const void *at, int64_t bytes) {
  stream *s = stream_find(h->stream, current());
  return s && (!bytes || memory_device(at, (size_t)bytes) == s->device);
}
static inline int64_t span_of(int64_t rows, int64_t cols, int64_t ld, int size) {
  return rows && cols ? ((cols - 1) * ld + rows) * size : 0;
}
#define REFUSE(bad) do { if (bad) return call_note(CU_INVALID); } while (0)
#endif
