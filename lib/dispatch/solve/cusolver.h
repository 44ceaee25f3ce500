/* cuSOLVER and cuBLAS, opened at run time, and what the files that call them share: matrices of a batch in the memory
   of a GPU, their workspace, and one call after the other on a stream. Private to dispatch.

   The libraries' matrices are column-major: a row-major matrix is its transpose there. LU factors of a square matrix
   are those of its transpose, as of the CPU (NVG_LU_TURNED), and Cholesky factors become L D U in the same form, so
   that what reads factors need not know which they are. */
#ifndef NVM_DISPATCH_SOLVE_CUSOLVER_H
#define NVM_DISPATCH_SOLVE_CUSOLVER_H
#include "dispatch/solve/cusolver_api.h"
#include "dispatch/solve/matrix_moves.h"
#include "dispatch/solve/own_kernel.h"
#include "dispatch/solve/solve.h"

extern nvd_cusolver_api nvd_so; /* valid once a handle was obtained */
typedef struct nvd_solver_handles { void *solver, *params, *blas, *syevj, *gesvdj; } nvd_solver_handles;
/* Returns a status. Without the device's lock. */
int nvd_solver_handles_get(nvd_solver_handles *out, nvd_device *d);

/* ---- areas of the workspace */
typedef enum nvd_area {
  NVD_MATRIX,  /* copies of the matrices */
  NVD_SIDE,    /* right-hand sides, column-major */
  NVD_PIVOT,   /* integers */
  NVD_INFO,    /* one int for each matrix */
  NVD_FAILED,  /* one int: which matrix failed first */
  NVD_ADDRESS, /* addresses of matrices, and of right-hand sides */
  NVD_ADDRESS_SIDE,
  NVD_VALUE, /* real numbers: singular values or eigenvalues; tau */
  NVD_LEFT,  /* vectors */
  NVD_RIGHT,
  NVD_INVERSE, /* of gpu_substitute.c: inverses of blocks, the blocks, products, the order of rows, rows */
  NVD_PLAIN,
  NVD_PRODUCT,
  NVD_ORDER,
  NVD_ROWS,
  NVD_WORK, /* the library's */
  NVD_AREAS
} nvd_area;

typedef struct nvd_solver_call nvd_solver_call;
typedef struct nvd_solver_routine {
  /* Asks for areas and for the library's workspace, by nvd_need and nvd_need_work. */
  void (*size)(nvd_solver_call *x);
  void (*run)(nvd_solver_call *x);
  int waits; /* the library may wait for the device, so no capture can hold the call */
} nvd_solver_routine;
extern const nvd_solver_routine nvd_gpu_factors, nvd_gpu_substituted, nvd_gpu_solved, nvd_gpu_triangular,
    nvd_gpu_cholesky;                                                                    /* gpu_factor.c */
extern const nvd_solver_routine nvd_gpu_orthogonal, nvd_gpu_singular, nvd_gpu_hermitian; /* gpu_spectral.c */
extern const nvd_solver_routine nvd_gpu_small; /* gpu_small.c; it needs no handle of the libraries */

/* One routine, prepared: in[0] is m x n (of factors, n x n), in[1] is n x k. */
typedef struct nvd_solver_solution {
  nvd_solution base;
  nvf_routine r;
  nvd_device *device;
  const nvd_solver_routine *how;
  const nvd_cusolver_typed *f;
  nvd_solver_handles h;
  void *moves, *small, *triangles; /* kernels of the project's own */
  nvm_dtype type;
  int size, data, real;           /* bytes of an element; cudaDataType of elements and of their parts */
  int64_t m, n, k, count, each;   /* count: matrices; each: elements of one result */
  int copies;                     /* buffers that receive the same result */
  int batched;                    /* one call does all matrices of the batch */
  int64_t area[NVD_AREAS], bytes; /* offsets; the sum of all areas */
  size_t work, host_bytes;        /* the library's workspace */
  int lwork;                      /* the same in elements, of a function with 32-bit extents */
  void *host;
} nvd_solver_solution;

/* One run, or the query of its sizes. After a failure, calls do nothing. */
struct nvd_solver_call {
  nvd_solver_solution *s;
  const char *from[2];
  char *to, *workspace;
  void *stream;
  int captured, status;
};
/* The CUDA source of the project's own kernel for small matrices, by operation, dtype and extents. */
const char *nvd_gpu_small_source(nvb_arena *a, const nvd_solver_solution *s);
int nvd_gpu_small_prepare(nvb_arena *a, nvd_solver_solution *s); /* obtains that kernel; a status */
/* ---- substitution by blocks (gpu_substitute.c) */
int nvd_gpu_substitutes(const nvd_solver_solution *s);                /* is the matrix large enough for it? */
int nvd_gpu_substitute_prepare(nvb_arena *a, nvd_solver_solution *s); /* obtains its kernel; a status */
void nvd_gpu_substitute_size(nvd_solver_call *x, int64_t columns);
/* Solves with n x n LU factors, or with them transposed, for column-major right-hand sides at b. */
void nvd_gpu_substitute(nvd_solver_call *x, int trans, const void *a, void *b, int64_t columns, const int64_t *pivot);
void nvd_need(nvd_solver_call *x, nvd_area area, int64_t bytes);
void nvd_need_work(nvd_solver_call *x, size_t device, size_t host);
static inline void *nvd_area_at(const nvd_solver_call *x, nvd_area area) { return x->workspace + x->s->area[area]; }
/* Notes the status of a call of a library, or of CUDA: NVD_DO(x, "potrf", cusolverDnXpotrf(...)). */
void nvd_note_solver(nvd_solver_call *x, const char *what, int error);
void nvd_note_cuda(nvd_solver_call *x, int error);
#define NVD_DO(x, what, call) do { if (!(x)->status) nvd_note_solver((x), (what), (call)); } while (0)
void nvd_do_move(nvd_solver_call *x, const nvd_move *j);

/* ---- moves */
/* Copies operand `which` to row-major matrices, or transposes it, to matrices that lie `apart` elements apart. */
void nvd_gpu_pack(nvd_solver_call *x, int which, void *to, int64_t apart);
void nvd_gpu_pack_turned(nvd_solver_call *x, int which, void *to, int64_t apart);
/* to[r][c] = from[c][r], which has `rows` columns and `cols` rows of `ld` elements */
typedef struct nvd_turning {
  void *to;
  const void *from;
  int64_t to_apart, from_apart, rows, cols, ld, how, conj;
} nvd_turning;
void nvd_gpu_turn(nvd_solver_call *x, const nvd_turning *t);
void nvd_gpu_identity(nvd_solver_call *x, void *to, int64_t apart, int64_t n);
void nvd_gpu_reals(nvd_solver_call *x, void *to, int64_t apart, int64_t n); /* VALUE as elements */
void nvd_gpu_addresses(nvd_solver_call *x, nvd_area to, const void *from, int64_t apart);
void nvd_gpu_note(nvd_solver_call *x, int fault); /* the first matrix whose info is not 0 */
/* The same of a zero on the diagonal of n elements, `step` apart. */
void nvd_gpu_note_zero(nvd_solver_call *x, const void *a, int64_t apart, int64_t step, int fault);
int nvd_gpu_is_packed(const nvf_operand *o);
int nvd_gpu_tail(const nvf_routine *r, int which); /* dimensions of an operand that are no batch */
/* The address of matrix i of a batch. */
static inline char *nvd_gpu_matrix(const nvd_solver_call *x, const void *a, int64_t i, int64_t apart) {
  return (char *)(uintptr_t)a + i * apart * x->s->size;
}
#endif
