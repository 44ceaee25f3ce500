/* Runs routines of matrices on the CPU: decides whether LAPACK does them or, for many small systems, lanes.c; divides
   the matrices of a batch among the pool's threads, or lets the library use threads of its own for a large one. Names
   the first matrix that fails. Never decides how a matrix is factorised (factor.c, spectral.c). */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/interrupt.h"
#include "base/pool.h"
#include "dispatch/solve/lanes.h"
#include "dispatch/solve/lapack.h"
#include "frag/dtype.h"
#include "graph/graph.h"

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  const nvd_matrix_routine *how;
  nvd_matrix_task task;                  /* of each matrix, but for addresses */
  int64_t matrices, each, scratch_bytes; /* each: elements of one result; scratch_bytes: for each thread */
  int copies;                            /* buffers that receive the same result */
  int lanes;                             /* matrices that are solved at once, by the project's code; 0: LAPACK */
} solution;

static const nvd_matrix_routine *routine_of(nvg_op op) {
  switch (op) {
  case NVG_OP_FACTORS: return &nvd_factors;
  case NVG_OP_SUBSTITUTED: return &nvd_substituted;
  case NVG_OP_SOLVED: return &nvd_solved;
  case NVG_OP_TRIANGULAR: return &nvd_triangular;
  case NVG_OP_CHOLESKY_FACTOR: return &nvd_cholesky;
  case NVG_OP_ORTHOGONAL: return &nvd_orthogonal;
  case NVG_OP_SINGULAR: return &nvd_singular;
  case NVG_OP_HERMITIAN: return &nvd_hermitian;
  default: return &nvd_spectral;
  }
}

/* ---- running */
typedef struct matrix_job {
  const solution *s;
  const char *from[2];
  char *to, *scratch;
  /* (the number of the first matrix that failed) * NVD_MATRIX_FAULTS + its fault; INT64_MAX: none */
  _Atomic int64_t failed;
  _Atomic int stopped; /* an interrupt came: the remaining matrices are skipped */
} matrix_job;

/* The dimensions of an operand that are no batch. */
static int tail_of(const nvf_routine *r, int which) { return r->op == NVG_OP_SUBSTITUTED && !which ? 1 : 2; }

static void note_fault(matrix_job *j, int64_t i, nvd_matrix_fault fault) {
  int64_t now = i * NVD_MATRIX_FAULTS + fault, seen = atomic_load(&j->failed);
  while (now < seen && !atomic_compare_exchange_weak(&j->failed, &seen, now));
}

static void run_matrices(void *arg, int64_t lo, int64_t hi, int worker) {
  matrix_job *j = arg;
  const solution *s = j->s;
  nvd_matrix_task x = s->task;
  x.scratch = j->scratch + s->scratch_bytes * worker;
  for (int64_t i = lo; i < hi && !atomic_load_explicit(&j->stopped, memory_order_relaxed); i++) {
    if (!worker && nvb_interrupted()) atomic_store(&j->stopped, 1);
    for (int w = 0; w < s->r.nin; w++) x.in[w] = nvd_piece_at(&s->r.in[w], tail_of(&s->r, w), j->from[w], i);
    x.out = j->to + i * s->each * nvg_size(s->r.result.type);
    nvd_matrix_fault fault = s->how->run(&x);
    if (fault) note_fault(j, i, fault);
  }
}

/* Right-hand sides of a system in lanes; 0 where it is only factorized. */
static int64_t sides_of(const solution *s) { return s->r.op == NVG_OP_SOLVED ? s->each / s->task.n : 0; }

/* Solves or factorizes groups of small systems; the numbers are those of groups. */
static void run_groups(void *arg, int64_t lo, int64_t hi, int worker) {
  matrix_job *j = arg;
  const solution *s = j->s;
  const nvf_operand *a = &s->r.in[0], *b = &s->r.in[s->r.nin - 1];
  nvd_lanes x = { .type = a->type, .n = s->task.n, .k = sides_of(s), .each = s->each, .scratch = j->scratch };
  int definite = s->r.op == NVG_OP_CHOLESKY_FACTOR;
  uint32_t (*run)(const nvd_lanes *) = definite                   ? nvd_lanes_cholesky
                                       : s->r.op == NVG_OP_SOLVED ? nvd_lanes_solve
                                                                  : nvd_lanes_factor;
  x.upper = definite && s->r.attr[0];
  x.a_row = a->stride[a->rank - 2], x.a_col = a->stride[a->rank - 1];
  x.b_row = b->stride[b->rank - 2], x.b_col = b->stride[b->rank - 1];
  x.scratch += s->scratch_bytes * worker;
  for (int64_t g = lo; g < hi && !atomic_load_explicit(&j->stopped, memory_order_relaxed); g++) {
    int64_t first = g * s->lanes, left = s->matrices - first;
    if (!worker && nvb_interrupted()) atomic_store(&j->stopped, 1);
    x.count = (int)(left < s->lanes ? left : s->lanes);
    for (int i = 0; i < s->lanes; i++) { /* lanes without a matrix repeat the first one */
      int64_t at = first + (i < x.count ? i : 0);
      x.a[i] = nvd_piece_at(a, 2, j->from[0], at);
      x.b[i] = s->r.nin > 1 ? nvd_piece_at(b, 2, j->from[1], at) : NULL;
    }
    x.out = j->to + first * s->each * nvg_size(a->type);
    uint32_t faults = run(&x);
    if (faults) note_fault(j, first + __builtin_ctz(faults), definite ? NVD_MATRIX_INDEFINITE : NVD_MATRIX_SINGULAR);
  }
}

void nvd_matrix_failure(char *text, size_t size, const char *what, int nbatch, const int64_t *batch, int64_t failed) {
  static const char *const why[NVD_MATRIX_FAULTS] = { [NVD_MATRIX_SINGULAR] = "is singular",
                                                      [NVD_MATRIX_INDEFINITE] = "is not positive definite",
                                                      [NVD_MATRIX_DIVERGES] =
                                                          "has no result: the algorithm did not converge",
                                                      [NVD_MATRIX_NOT_FINITE] =
                                                          "has elements that are infinite or NaN" };
  char index[512] = "";
  int64_t i = failed / NVD_MATRIX_FAULTS, at[NVM_MAX_RANK];
  for (int d = nbatch - 1; d >= 0; i /= batch[d--]) at[d] = i % batch[d];
  size_t n = 0;
  for (int d = 0; d < nbatch && n < sizeof index; d++)
    n += (size_t)snprintf(index + n, sizeof index - n, "%s%lld", d ? ", " : " at index (", (long long)at[d]);
  if (nbatch && n < sizeof index) snprintf(index + n, sizeof index - n, nbatch == 1 ? ",)" : ")");
  snprintf(text, size, "[%s] the matrix%s %s", what, index, why[failed % NVD_MATRIX_FAULTS]);
}

static int fail_matrix(const solution *s, int64_t failed) {
  char text[640];
  const nvf_operand *x = &s->r.in[0];
  nvd_matrix_failure(text, sizeof text, s->r.what, x->rank - tail_of(&s->r, 0), x->shape, failed);
  return nvb_fail(NVM_ERR_LINALG, "%s", text);
}

/* The work of one matrix, about. */
static double work_of(const nvd_matrix_task *x) {
  double most = (double)(x->m > x->n ? x->m : x->n), n = (double)x->n, k = (double)x->k;
  return n * n * (x->r->nin > 1 && x->r->op != NVG_OP_SOLVED ? k : most) * (nvg_parts(x->type) == 2 ? 4 : 1);
}

enum { SHARE = 1 << 14 }; /* work that is worth waking a thread for */

static void run_lanes(matrix_job *j, const nvd_run_args *at) {
  const solution *s = j->s;
  int64_t groups = (s->matrices + s->lanes - 1) / s->lanes, most = at->workspace_bytes / s->scratch_bytes;
  double work = (double)s->task.n * (double)(s->task.n * s->task.n + s->each);
  int threads = at->threads < most ? at->threads : (int)most;
  nvb_pool_run_with(threads, run_groups, j, groups, 1 + (int64_t)(SHARE / work));
}

static void run_lapack(matrix_job *j, const nvd_run_args *at) {
  enum { LARGE = 1 << 20 }; /* work that is worth the library's own threads */
  const solution *s = j->s;
  double work = work_of(&s->task);
  int64_t most = s->scratch_bytes ? at->workspace_bytes / s->scratch_bytes : at->threads, grain = 1;
  int own = s->matrices < at->threads && work > LARGE ? at->threads : 1, threads = nvd_openblas_callers(at->threads);
  while ((double)grain * work < SHARE && grain < s->matrices) grain *= 2;
  int before = nvd_openblas_begin(own);
  if (own > 1 || most < 2 || threads < 2) run_matrices(j, 0, s->matrices, 0);
  else nvb_pool_run_with(most < threads ? (int)most : threads, run_matrices, j, s->matrices, grain);
  nvd_openblas_end(before);
}

static int run_solution(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *from = (char *const *)(const void *)at->arg, *const *buffer = from + s->r.nin;
  matrix_job j = { s, { from[0], from[s->r.nin - 1] }, buffer[0], at->workspace, INT64_MAX, 0 };
  (s->lanes ? run_lanes : run_lapack)(&j, at);
  if (j.stopped) return NVM_ERR_INTERRUPTED;
  if (j.failed != INT64_MAX) return fail_matrix(s, j.failed);
  size_t bytes = (size_t)(s->matrices * s->each * nvg_size(s->r.result.type));
  for (int i = 1; i < s->copies; i++) memcpy(buffer[i], buffer[0], bytes);
  return NVM_OK;
}

static const nvd_solver lapack = { .name = "lapack", .device = NVB_CPU, .run = run_solution };

/* ---- preparing */
static void check_extents(nvb_arena *a, const nvf_step *step) {
  const nvf_routine *r = step->routine;
  for (int i = 0; i < r->nin; i++)
    for (int d = r->in[i].rank - tail_of(r, i); d < r->in[i].rank; d++)
      if (r->in[i].shape[d] > INT_MAX && tail_of(r, i) > 1)
        nvb_throw(a, NVM_ERR_STATE, "[%s] LAPACK has no matrices of extents that need more than 31 bits", r->what);
}

static nvd_matrix_task task_of(const nvf_routine *r) {
  const nvf_operand *x = &r->in[0], *last = &r->in[r->nin - 1], *y = &r->result;
  nvd_matrix_task t = { .r = r, .type = x->type, .size = nvg_size(x->type) };
  int factors = r->op == NVG_OP_SUBSTITUTED;
  t.m = t.n = factors ? y->shape[y->rank - 2] : x->shape[x->rank - 1];
  if (!factors) t.m = x->shape[x->rank - 2];
  t.k = r->nin > 1 ? last->shape[last->rank - 1] : 0;
  return t;
}

static int64_t count_elements(const nvf_operand *x) {
  int64_t n = 1;
  for (int d = 0; d < x->rank; d++) n *= x->shape[d];
  return n;
}

/* How many matrices are solved at once: the lanes of a vector, if the matrices fill half of them. */
static int lanes_of(const nvf_step *step) {
  enum { WIDEST = 64, FACTORED = 32 }; /* columns of a right-hand side, rows of a matrix to factorize */
  const nvf_operand *x = &step->routine->in[0], *y = &step->routine->result;
  nvg_op op = step->routine->op;
  int64_t n = x->shape[x->rank - 1];
  int factors = op == NVG_OP_CHOLESKY_FACTOR || op == NVG_OP_FACTORS;
  int fits = factors && n && n <= FACTORED && x->shape[x->rank - 2] == n;
  if (op == NVG_OP_SOLVED) fits = y->shape[y->rank - 1] <= WIDEST;
  int width = fits ? nvd_lanes_width(y->type) : 0;
  return count_elements(y) && step->blocks * 2 >= width ? width : 0;
}

static void find_scratch(nvb_arena *a, solution *s) {
  _Alignas(64) char none[64]; /* addresses in it are only subtracted */
  if (s->lanes) {
    s->scratch_bytes = nvd_lanes_scratch(s->task.type, s->task.n, sides_of(s));
    return;
  }
  s->task.f = nvd_lapack_of(s->task.type);
  if (!s->task.f) nvb_throw(a, NVM_ERR_UNSUPPORTED, "[%s] needs LAPACK: %s", s->r.what, nvb_message());
  s->task.scratch = s->task.out = none;
  s->scratch_bytes = nvd_lines(s->how->scratch(&s->task));
}

nvd_solution *nvd_matrices(nvb_arena *a, const nvf_step *step) {
  const nvf_routine *r = step->routine;
  check_extents(a, step);
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &lapack },
                   .how = routine_of(r->op),
                   .matrices = step->blocks,
                   .copies = step->k->nparam - r->nin,
                   .lanes = lanes_of(step) };
  nvd_routine_copy(a, &s->r, r);
  s->task = task_of(&s->r);
  s->each = s->matrices ? count_elements(&s->r.result) / s->matrices : 0;
  find_scratch(a, s);
  int64_t threads = s->matrices < nvb_pool_threads() ? s->matrices : nvb_pool_threads();
  s->base.workspace = threads * s->scratch_bytes;
  return &s->base;
}
