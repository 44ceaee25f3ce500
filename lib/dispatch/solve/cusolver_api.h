/* The functions and constants of cuSOLVER and cuBLAS that cusolver.c uses, for CUDA 12 and 13, without NVIDIA's
   headers. All functions return a status of their library, 0 for success. Matrices are column-major. Private to
   dispatch. */
#ifndef NVM_DISPATCH_SOLVE_CUSOLVER_API_H
#define NVM_DISPATCH_SOLVE_CUSOLVER_API_H
#include <stddef.h>
#include <stdint.h>

/* Functions for every dtype, with 64-bit extents. `type`: a cudaDataType. Each has a query of the bytes of workspace
   that it needs on the device and on the host, whose addresses may be NULL. */
#define NVD_SOLVER_MATRIX void *handle_, void *params
#define NVD_SOLVER_SIZES size_t *device, size_t *host
#define NVD_SOLVER_WORK void *device, size_t device_bytes, void *host, size_t host_bytes, int *info
#define NVD_SOLVER_POTRF NVD_SOLVER_MATRIX, int uplo, int64_t n, int type, void *a, int64_t lda, int compute
#define NVD_SOLVER_GETRF NVD_SOLVER_MATRIX, int64_t m, int64_t n, int type, void *a, int64_t lda
#define NVD_SOLVER_GEQRF \
  NVD_SOLVER_MATRIX, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type, void *tau, int compute
#define NVD_SOLVER_SYEVD \
  NVD_SOLVER_MATRIX, int jobz, int uplo, int64_t n, int type, void *a, int64_t lda, int w_type, void *w, int compute
#define NVD_SOLVER_GESVD \
  NVD_SOLVER_MATRIX, signed char jobu, signed char jobvt, int64_t m, int64_t n, int type, void *a, int64_t lda, \
      int s_type, void *s, int u_type, void *u, int64_t ldu, int vt_type, void *vt, int64_t ldvt, int compute
#define NVD_SOLVER(X) \
  X(cusolverDnCreate, (void **handle)) \
  X(cusolverDnCreateParams, (void **params)) \
  X(cusolverDnSetStream, (void *handle, void *stream)) \
  X(cusolverDnCreateSyevjInfo, (void **info)) \
  X(cusolverDnCreateGesvdjInfo, (void **info)) \
  X(cusolverGetVersion, (int *version)) \
  X(cusolverDnXpotrf_bufferSize, (NVD_SOLVER_POTRF, NVD_SOLVER_SIZES)) \
  X(cusolverDnXpotrf, (NVD_SOLVER_POTRF, NVD_SOLVER_WORK)) \
  X(cusolverDnXgetrf_bufferSize, (NVD_SOLVER_GETRF, int compute, NVD_SOLVER_SIZES)) \
  X(cusolverDnXgetrf, (NVD_SOLVER_GETRF, int64_t *ipiv, int compute, NVD_SOLVER_WORK)) \
  X(cusolverDnXgetrs, (NVD_SOLVER_MATRIX, int trans, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda, \
                       const int64_t *ipiv, int b_type, void *b, int64_t ldb, int *info)) \
  X(cusolverDnXgeqrf_bufferSize, (NVD_SOLVER_GEQRF, NVD_SOLVER_SIZES)) \
  X(cusolverDnXgeqrf, (NVD_SOLVER_GEQRF, NVD_SOLVER_WORK)) \
  X(cusolverDnXsyevd_bufferSize, (NVD_SOLVER_SYEVD, NVD_SOLVER_SIZES)) \
  X(cusolverDnXsyevd, (NVD_SOLVER_SYEVD, NVD_SOLVER_WORK)) \
  X(cusolverDnXgesvd_bufferSize, (NVD_SOLVER_GESVD, NVD_SOLVER_SIZES)) \
  X(cusolverDnXgesvd, (NVD_SOLVER_GESVD, NVD_SOLVER_WORK))

/* cuBLAS, whose functions for one dtype are below */
#define NVD_BLAS(X) X(cublasCreate_v2, (void **handle)) X(cublasSetStream_v2, (void *handle, void *stream))

/* Functions of one dtype, TYPED(member, name for real dtypes, name for complex dtypes, arguments): behind a prefix, and
   before a letter for the dtype. Batches of matrices are arrays of addresses in device memory, or (syevj, gesvdj) lie
   one behind the other. */
#define NVD_SOLVER_ORGQR void *handle_, int m, int n, int k, void *a, int lda, void *tau
#define NVD_SOLVER_SYEVJ void *handle_, int jobz, int uplo, int n, void *a, int lda, void *w
#define NVD_SOLVER_GESVDJ \
  void *handle_, int jobz, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v, int ldv
#define NVD_SOLVER_JACOBI void *work, int lwork, int *info, void *params, int batch
#define NVD_SOLVER_TYPED(X) \
  X(orgqr_size, orgqr_bufferSize, ungqr_bufferSize, (NVD_SOLVER_ORGQR, int *lwork)) \
  X(orgqr, orgqr, ungqr, (NVD_SOLVER_ORGQR, void *work, int lwork, int *info)) \
  X(potrf_batched, potrfBatched, potrfBatched, \
    (void *handle, int uplo, int n, void **a, int lda, int *info, int batch)) \
  X(syevj_size, syevjBatched_bufferSize, heevjBatched_bufferSize, \
    (NVD_SOLVER_SYEVJ, int *lwork, void *params, int batch)) \
  X(syevj, syevjBatched, heevjBatched, (NVD_SOLVER_SYEVJ, NVD_SOLVER_JACOBI)) \
  X(gesvdj_size, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize, \
    (NVD_SOLVER_GESVDJ, int *lwork, void *params, int batch)) \
  X(gesvdj, gesvdjBatched, gesvdjBatched, (NVD_SOLVER_GESVDJ, NVD_SOLVER_JACOBI))
#define NVD_BLAS_TRSM void *handle, int side, int uplo, int trans, int diag, int m, int n, const void *alpha
#define NVD_BLAS_TYPED(X) \
  X(trsm, trsm_v2, (NVD_BLAS_TRSM, const void *a, int lda, void *b, int ldb)) \
  X(trsm_batched, trsmBatched, (NVD_BLAS_TRSM, void **a, int lda, void **b, int ldb, int batch)) \
  X(gemm, gemmStridedBatched, (void *handle, int transa, int transb, int m, int n, int k, const void *alpha, \
                               const void *a, int lda, long long a_apart, const void *b, int ldb, long long b_apart, \
                               const void *beta, void *c, int ldc, long long c_apart, int batch)) \
  X(getrf_batched, getrfBatched, (void *handle, int n, void **a, int lda, int *ipiv, int *info, int batch)) \
  X(getrs_batched, getrsBatched, (void *handle, int trans, int n, int nrhs, void **a, int lda, const int *ipiv, \
                                  void **b, int ldb, int *info, int batch))

typedef struct nvd_cusolver_typed {
#define NVD_SOLVER_MEMBER(member, real, complex, args) int (*member) args;
#define NVD_BLAS_MEMBER(member, name, args) int (*member) args;
  NVD_SOLVER_TYPED(NVD_SOLVER_MEMBER)
  NVD_BLAS_TYPED(NVD_BLAS_MEMBER)
#undef NVD_SOLVER_MEMBER
#undef NVD_BLAS_MEMBER
} nvd_cusolver_typed;

enum { NVD_CUSOLVER_S, NVD_CUSOLVER_D, NVD_CUSOLVER_C, NVD_CUSOLVER_Z, NVD_CUSOLVER_TYPES };
typedef struct nvd_cusolver_api {
#define NVD_SOLVER_MEMBER(name, args) int (*name) args;
  NVD_SOLVER(NVD_SOLVER_MEMBER)
  NVD_BLAS(NVD_SOLVER_MEMBER)
#undef NVD_SOLVER_MEMBER
  nvd_cusolver_typed of[NVD_CUSOLVER_TYPES];
} nvd_cusolver_api;

enum { /* constants of both libraries */
       CU_R_32F = 0,
       CU_R_64F = 1,
       CU_C_32F = 4,
       CU_C_64F = 5,
       CU_LOWER = 0,
       CU_UPPER = 1,
       CU_NO_TRANS = 0,
       CU_TRANS = 1,
       CU_ADJOINT = 2,
       CU_RIGHT = 1,
       CU_NON_UNIT = 0,
       CU_UNIT = 1,
       CU_VALUES = 0,
       CU_VECTORS = 1,
       CU_SOLVER_NO_MEMORY = 2,
       CU_SOLVER_INVALID = 3
};
#endif
