/* Solvers: libraries that run a GEMM step in place of its generated kernel. A solver is one file and one row of the
   table in solve.c; they are asked in the order of the table, and a rejection has a reason. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_SOLVE_H
#define NVM_DISPATCH_SOLVE_SOLVE_H
#include "dispatch/dispatch.h"

/* ---- a step's GEMM in the form of BLAS, column-major: d = act(alpha op(a) op(b) + beta c + bias); row-major steps
   have been transposed. FP8 operands have the scales of nvf_gemm. Strides, offsets and leading dimensions are in
   elements. */
typedef struct nvd_matrix {
  int param; /* parameter of the kernel; -1: absent */
  nvm_dtype type;
  int64_t offset, row, col, batch[NVF_BATCHES];
  int trans;  /* transposed in memory */
  int64_t ld; /* leading dimension; 0: strides have no such form */
} nvd_matrix;
typedef struct nvd_gemm {
  int64_t m, n, k, batches;
  int nbatch; /* batch dimensions, where contiguous ones have been joined */
  int64_t extent[NVF_BATCHES];
  nvd_matrix a, b, c, d, aux, bias; /* a, b and d have a leading dimension */
  /* scales of a and b as they are here; block scales have strides from one block to the next */
  nvd_matrix scale[NVF_SCALES];
  nvf_scale_mode by[NVF_SCALES];
  nvf_scale alpha, beta;
  nvm_dtype alpha_type, beta_type; /* dtypes of their parameters */
  nvm_dtype accumulate;
  int precision;
  nvf_act act;
} nvd_gemm;
/* Fills in *g. Returns NULL, or the reason why BLAS cannot express the step. */
const char *nvd_gemm_of(nvd_gemm *g, const nvf_kernel *k, const nvf_gemm *p);
/* The value of a scale in one run; type: the dtype of its parameter. */
double nvd_scale_now(nvf_scale s, nvm_dtype type, const uint64_t *arg);
/* The address of element (0, 0) of batch number i; NULL if the matrix is absent. */
char *nvd_matrix_at(const nvd_gemm *g, const nvd_matrix *x, int64_t i, const uint64_t *arg);

/* ---- solvers */
typedef struct nvd_task {
  const nvf_plan *plan;
  const nvf_step *step;
  struct nvd_device *device; /* NULL: the CPU */
  nvd_gemm g;
} nvd_task;

typedef struct nvd_solution { /* a step prepared by a solver, whose own fields may follow */
  const struct nvd_solver *by;
  nvd_gemm g;
  int64_t workspace; /* bytes that a run wants; on a GPU it may get fewer */
  /* On a GPU, of a routine whose matrices may fail: the operation and the batches of its operand; NULL: none can. */
  const char *what;
  int nbatch;
  const int64_t *batch;
} nvd_solution;

typedef struct nvd_run_args { /* arguments of one run */
  const uint64_t *arg; /* arguments of the step's kernel */
  int threads;         /* on the CPU: threads of the pool */
  void *stream;        /* on a GPU */
  void *workspace;
  int64_t workspace_bytes; /* size of the workspace */
  int captured;            /* on a GPU: the caller is capturing the stream */
  int *failed;             /* on a GPU, of a routine that may fail: where it notes so, in the host's memory */
} nvd_run_args;

typedef struct nvd_solver {
  const char *name;
  nvb_devkind device;
  /* capabilities that the planner may count on, bits of nvf_capability; 0: the library is not there */
  int (*capabilities)(void);
  const char *(*rejects)(const nvd_task *t); /* NULL, or the reason for a rejection; uses no device */
  /* Lists options for a task that it supports, the best expected first, and returns their number. */
  int (*options)(nvd_solver_option *out, int most, const nvd_task *t);
  /* Makes what the runs need, in the arena; NULL with a reason if the library cannot after all. Throws. */
  nvd_solution *(*prepare)(nvb_arena *a, const nvd_task *t, const nvd_solver_choice *choice, const char **why);
  /* a status; on a GPU it is called under nvd_lock and does not wait */
  int (*run)(nvd_solution *s, const nvd_run_args *at);
  void (*free)(nvd_solution *s); /* frees what is not in the arena; may be NULL */
  /* Returns what a caller's CUDA graph that captured a run needs as long as it lives, and drops that; NULL: nothing. */
  void *(*keep)(nvd_solution *s);
  void (*drop)(void *kept);
} nvd_solver;
extern const nvd_solver nvd_openblas, nvd_cublaslt;

/* ---- routines (dispatch/routine.c): steps that no kernel can do. Makes one in the arena; throws. */
nvd_solution *nvd_routine(nvb_arena *a, const nvf_step *s, struct nvd_device *d);
nvd_solution *nvd_search(nvb_arena *a, const nvf_step *s);    /* positions in rows (dispatch/search.c) */
nvd_solution *nvd_transform(nvb_arena *a, const nvf_step *s); /* a Fourier transform (dispatch/transform.c) */
/* Transforms rows [lo, hi) of one; arg: those of the step. scratch: so many bytes, aligned to 64. */
void nvd_transform_rows(const nvd_solution *s, const uint64_t *arg, int64_t lo, int64_t hi, void *scratch);
int64_t nvd_transform_scratch(const nvd_solution *s);
nvd_solution *nvd_matrices(nvb_arena *a, const nvf_step *s); /* one of matrices (solve/matrices.c) */
/* Step i, a Fourier transform, by cuFFT. Throws; NVM_ERR_UNSUPPORTED if it makes no plan. */
nvd_solution *nvd_cufft(nvb_arena *a, const nvf_plan *p, int i, struct nvd_device *d);
int nvd_cufft_usable(void); /* opens it, if nothing did so before */
nvd_solution *nvd_matrices_on(nvb_arena *a, const nvf_step *s, struct nvd_device *d); /* on a GPU (solve/cusolver.c) */
int nvd_gpu_is_small(const nvf_routine *r); /* does a kernel of the project's own do it there (solve/gpu_small.c)? */
/* The address of piece number i of an operand: its last `tail` dimensions. */
const char *nvd_piece_at(const nvf_operand *x, int tail, const char *from, int64_t i);
void nvd_routine_copy(nvb_arena *a, nvf_routine *to, const nvf_routine *from);

/* What is said of a matrix that failed: that of a batch of this shape with the number failed / NVD_MATRIX_FAULTS, for
   the reason failed % NVD_MATRIX_FAULTS (nvd_matrix_fault). */
enum { NVD_MATRIX_FAULTS = 8 };
void nvd_matrix_failure(char *text, size_t size, const char *what, int nbatch, const int64_t *batch, int64_t failed);

/* Decides who runs step i; NULL: its generated kernel. Throws NVM_ERR_UNSUPPORTED if a library supports only the step's
   GEMM without the epilogue, and NVM_ERR_STATE if a routine cannot run on the device. */
nvd_solution *nvd_solve(nvb_arena *a, const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice);
/* Returns the veto that nvd_solve would throw, but prepares nothing. */
int nvd_solve_dry(const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice);
void nvd_solution_free(nvd_solution *s); /* NULL is fine */
#endif
