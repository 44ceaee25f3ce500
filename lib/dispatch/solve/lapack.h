/* LAPACK of OpenBLAS, opened at run time, and what the files that call it share. LAPACK's matrices are column-major: a
   row-major matrix is its transpose there, so the routines factorise the transpose wherever that needs no copy. Private
   to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_LAPACK_H
#define NVM_DISPATCH_SOLVE_LAPACK_H
#include <stddef.h>
#include "base/library.h"
#include "dispatch/solve/solve.h"

/* The functions of one dtype, with Fortran's conventions: every argument is an address, lengths of texts come last. */
#define NVD_TEXTS_1 size_t
#define NVD_TEXTS_2 size_t, size_t
#define NVD_TEXTS_3 size_t, size_t, size_t
#define NVD_TEXTS_4 size_t, size_t, size_t, size_t
typedef struct nvd_lapack {
  void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info);
  void (*getri)(const int *n, void *a, const int *lda, const int *ipiv, void *work, const int *lwork, int *info);
  void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, NVD_TEXTS_1);
  void (*potri)(const char *uplo, const int *n, void *a, const int *lda, int *info, NVD_TEXTS_1);
  void (*trtri)(const char *uplo, const char *diag, const int *n, void *a, const int *lda, int *info, NVD_TEXTS_2);
  void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
               const void *alpha, const void *a, const int *lda, void *b, const int *ldb, NVD_TEXTS_4);
  void (*trsv)(const char *uplo, const char *trans, const char *diag, const int *n, const void *a, const int *lda,
               void *x, const int *incx, NVD_TEXTS_3);
  void (*gelqf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *lwork,
                int *info);
  void (*orglq)(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                const int *lwork, int *info);
  /* of real and of complex matrices; a function that the dtype does not have is NULL */
  void (*gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u, const int *ldu,
                void *vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info, NVD_TEXTS_1);
  void (*c_gesdd)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u,
                  const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork, void *rwork, int *iwork,
                  int *info, NVD_TEXTS_1);
  void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                const int *lwork, int *iwork, const int *liwork, int *info, NVD_TEXTS_2);
  void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                const int *lwork, void *rwork, const int *lrwork, int *iwork, const int *liwork, int *info,
                NVD_TEXTS_2);
  void (*geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *wr, void *wi,
               void *vl, const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, int *info,
               NVD_TEXTS_2);
  void (*c_geev)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda, void *w, void *vl,
                 const int *ldvl, void *vr, const int *ldvr, void *work, const int *lwork, void *rwork, int *info,
                 NVD_TEXTS_2);
} nvd_lapack;
/* The functions of a dtype; NULL with a message if the library is not there or NVM_SOLVERS leaves it out. */
const nvd_lapack *nvd_lapack_of(nvm_dtype t);

/* ---- OpenBLAS, which solve/openblas.c opens */
/* Resolves symbols as nvb_library_symbols does; a status, with a message if the library is not there. */
int nvd_openblas_symbols(const char *what, const nvb_symbol *s, int n);
/* Begin and end calls of the library, by one evaluation at a time: `own` threads of the library's, called from at most
   nvd_openblas_callers threads. begin returns what end takes. */
int nvd_openblas_begin(int own);
void nvd_openblas_end(int before);
int nvd_openblas_callers(int threads);

/* ---- one matrix */
/* What a routine does to one matrix of the batch. out: the packed row-major result. */
typedef struct nvd_matrix_task {
  const nvf_routine *r;
  const nvd_lapack *f;
  nvm_dtype type;
  int size;        /* bytes of an element */
  int64_t m, n, k; /* in[0] is m x n (of factors, n x n); in[1] is n x k */
  const char *in[2];
  char *out, *scratch; /* scratch: 64-byte aligned */
  int lwork;           /* elements of LAPACK's workspace */
} nvd_matrix_task;
/* Why a routine fails: what is printed after "the matrix". */
typedef enum nvd_matrix_fault {
  NVD_MATRIX_FINE,
  NVD_MATRIX_SINGULAR,
  NVD_MATRIX_INDEFINITE,
  NVD_MATRIX_DIVERGES,
  NVD_MATRIX_NOT_FINITE
} nvd_matrix_fault;
typedef struct nvd_matrix_routine {
  nvd_matrix_fault (*run)(const nvd_matrix_task *x);
  /* Fills in lwork and returns the bytes of scratch of a thread. */
  int64_t (*scratch)(nvd_matrix_task *x);
} nvd_matrix_routine;
extern const nvd_matrix_routine nvd_factors, nvd_substituted, nvd_solved, nvd_triangular, nvd_cholesky; /* factor.c */
extern const nvd_matrix_routine nvd_orthogonal, nvd_singular, nvd_hermitian, nvd_spectral;              /* spectral.c */

/* ---- elements (lapack.c) */
/* Copies operand `which` to row-major memory, or transposes it. */
void nvd_matrix_pack(const nvd_matrix_task *x, int which, char *to);
void nvd_matrix_pack_turned(const nvd_matrix_task *x, int which, char *to);
void nvd_matrix_turn(char *to, const char *from, int64_t rows, int64_t cols, int size); /* to[c][r] = from[r][c] */
void nvd_conjugate(char *at, int64_t n, nvm_dtype t);
double nvd_number(const char *from, int64_t i, nvm_dtype t); /* the real part of element i */
void nvd_put_number(char *to, int64_t i, nvm_dtype t, double v);
int nvd_is_zero(const char *from, int64_t i, nvm_dtype t);
void nvd_put_reals(char *to, const char *from, int64_t n, nvm_dtype t); /* real numbers as elements of dtype t */
static inline int64_t nvd_lines(int64_t bytes) { return (bytes + 63) & ~(int64_t)63; }
#endif
