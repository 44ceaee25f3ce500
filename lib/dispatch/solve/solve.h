/* Solvers: libraries that run a step which holds a matrix product in place of the step's kernel. One solver is one
   file and one row of the table in solve.c; they are asked in its order, and a refusal has a reason. Inside dispatch
   only. */
#ifndef NVM_DISPATCH_SOLVE_SOLVE_H
#define NVM_DISPATCH_SOLVE_SOLVE_H
#include "dispatch/dispatch.h"

/* ---- a step's product as BLAS has it, columns one after the other: d = act(alpha op(a) op(b) + beta c + bias), where
   what is row-major has been transposed; of floats of 8 bits with the scales of nvf_gemm. Strides,
   offsets and leading dimensions are in elements. */
typedef struct nvd_matrix {
  int param; /* of the kernel; -1: absent */
  nvm_dtype type;
  int64_t offset, row, col, batch[NVF_BATCHES];
  int trans;  /* in memory its rows are the columns */
  int64_t ld; /* from one column in memory to the next; 0: it has no such form */
} nvd_matrix;
typedef struct nvd_gemm {
  int64_t m, n, k, batches;
  int nbatch; /* extents and strides of batches, those that lie behind each other made one */
  int64_t extent[NVF_BATCHES];
  nvd_matrix a, b, c, d, aux, bias; /* a, b, d have an ld */
  nvd_matrix scale[NVF_SCALES];     /* of a and b as they are here; by blocks, strides are from one to the next */
  nvf_scale_mode by[NVF_SCALES];
  nvf_scale alpha, beta;
  nvm_dtype alpha_type, beta_type; /* of their parameters */
  nvm_dtype accumulate;
  int precision;
  nvf_act act;
} nvd_gemm;
/* NULL, or why BLAS cannot express the step. */
const char *nvd_gemm_of(nvd_gemm *g, const nvf_kernel *k, const nvf_gemm *p);
/* A run's; type: its parameter's. */
double nvd_scale_now(nvf_scale s, nvm_dtype type, const uint64_t *arg);
/* Where element (0, 0) of batch number i lies; NULL if the matrix is absent. */
char *nvd_matrix_at(const nvd_gemm *g, const nvd_matrix *x, int64_t i, const uint64_t *arg);

/* ---- solvers */
typedef struct nvd_task {
  const nvf_plan *plan;
  const nvf_step *step;
  struct nvd_device *device; /* NULL: the CPU */
  nvd_gemm g;
} nvd_task;

typedef struct nvd_solution {    /* a step that a solver has taken; the solver's own words may follow */
  const struct nvd_solver *by;
  nvd_gemm g;
  int64_t workspace; /* bytes that a run is to have; a device's may get fewer */
} nvd_solution;

typedef struct nvd_run_args {    /* of one run */
  const uint64_t *arg; /* of the step's kernel */
  int threads;         /* the CPU's: of the pool */
  void *stream;        /* a device's */
  void *workspace;
  int64_t workspace_bytes; /* bytes of the workspace */
} nvd_run_args;

typedef struct nvd_solver {
  const char *name;
  nvb_devkind device;
  /* what the planner may count on, bits of nvf_capability; 0: it is not there */
  int (*capabilities)(void);
  const char *(*rejects)(const nvd_task *t); /* NULL, or the reason why not; asks no device */
  /* In the order of what is expected of them, the best first; their number. `t` is one that it takes. */
  int (*candidates)(nvd_candidate *out, int most, const nvd_task *t);
  /* What is kept for the runs, in the arena; NULL and a reason if it cannot after all. Throws. */
  nvd_solution *(*prepare)(nvb_arena *a, const nvd_task *t, const nvd_solver_choice *choice, const char **why);
  int (*run)(nvd_solution *s, const nvd_run_args *at); /* a status; on a device under its lock, waiting for nothing */
  void (*free)(nvd_solution *s);                       /* what is not the arena's; may be NULL */
} nvd_solver;
extern const nvd_solver nvd_openblas, nvd_cublaslt;

/* ---- routines (dispatch/routine.c): steps that no kernel can do. In the arena; throws. */
nvd_solution *nvd_routine(nvb_arena *a, const nvf_step *s, struct nvd_device *d);

/* Who runs step i: NULL is its own kernel. Throws NVM_ERR_UNSUPPORTED if a library would take the product without what
   the step does beside it, NVM_ERR_STATE if nobody can run a routine there. */
nvd_solution *nvd_solve(nvb_arena *a, const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice);
/* A status: whether it would throw that. */
int nvd_solve_dry(const nvf_plan *p, int i, struct nvd_device *d, const nvd_solver_choice *choice);
void nvd_solution_free(nvd_solution *s); /* NULL is fine */
#endif
