/* Routines: runs sorts and bin counts, which no kernel can do, on the CPU; search.c finds positions, and solve/ has
   matrices.c, gpu_sort.c and gpu_search.c. Decides how rows are divided among the threads of the pool, and divides a
   few long rows into parts when only counts are wanted. Rejects bins on GPUs. */
#include <string.h>
#include "base/pool.h"
#include "dispatch/bins.h"
#include "dispatch/search.h"
#include "dispatch/solve/gpu_search.h"
#include "dispatch/solve/gpu_sort.h"
#include "graph/graph.h"

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  int64_t rows, parts, each, scratch_bytes; /* parts: of each row; each: elements of a row of the result; scratch_bytes:
                                               for each thread */
  int descending;
  int copies; /* buffers that receive the same result */
} solution;

typedef struct routine_job {
  const solution *s;
  const char *from[2];
  char *to; /* one result for each part of each row */
  char *scratch;
} routine_job;

const char *nvd_piece_at(const nvf_operand *x, int tail, const char *from, int64_t i) {
  int64_t at = 0;
  for (int d = x->rank - tail - 1; d >= 0; i /= x->shape[d--]) at += i % x->shape[d] * x->stride[d];
  return from + at * nvg_size(x->type);
}

/* Piece number i of an operand, counted over all rows. */
static nvd_row part_at(const routine_job *j, int which, int64_t i) {
  const nvf_operand *x = &j->s->r.in[which];
  int64_t n = x->shape[x->rank - 1], stride = x->stride[x->rank - 1], each = (n - 1) / j->s->parts + 1;
  int64_t lo = i % j->s->parts * each, hi = lo + each < n ? lo + each : n;
  const char *data = nvd_piece_at(x, 1, j->from[which], i / j->s->parts) + lo * stride * nvg_size(x->type);
  return (nvd_row){ x->type, data, hi - lo, stride, j->s->descending };
}

static void do_parts(void *arg, int64_t lo, int64_t hi, int worker) {
  const routine_job *j = arg;
  const nvf_routine *r = &j->s->r;
  char *scratch = j->scratch + j->s->scratch_bytes * worker;
  for (int64_t i = lo; i < hi; i++) {
    nvd_row row = part_at(j, 0, i), weight = r->nin > 1 ? part_at(j, 1, i) : row;
    char *to = j->to + i * j->s->each * nvg_size(r->result.type);
    if (r->nin > 1) nvd_bin_sums(&row, &weight, j->s->each, to, scratch);
    else if (r->op == NVG_OP_BINS) nvd_bins(&row, j->s->each, (int64_t *)(void *)to, scratch);
    else if (r->op == NVG_OP_ORDER) nvd_order(&row, (int64_t *)(void *)to, scratch);
    else nvd_sort(&row, to, scratch);
  }
}

/* Adds up the counts of the parts of each row. */
static void add_parts(const solution *s, const int64_t *from, int64_t *to) {
  for (int64_t i = 0; i < s->rows * s->each; i++) {
    const int64_t *at = from + i / s->each * s->parts * s->each + i % s->each;
    to[i] = 0;
    for (int64_t p = 0; p < s->parts; p++) to[i] += at[p * s->each];
  }
}

static int run_routine(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *from = (char *const *)(const void *)at->arg; /* the operands, then every buffer of the result */
  char *const *buffer = from + s->r.nin;
  int64_t bytes = s->rows * s->each * nvg_size(s->r.result.type), part_bytes = s->parts > 1 ? s->parts * bytes : 0;
  routine_job j = {
    s, { from[0], from[s->r.nin - 1] }, part_bytes ? at->workspace : buffer[0], (char *)at->workspace + part_bytes
  };
  int64_t threads = (at->workspace_bytes - part_bytes) / s->scratch_bytes, each = 1, n = s->rows * s->parts;
  if (threads > at->threads) threads = at->threads;
  enum { SHARE = 16384 }; /* elements that are worth waking a thread for */
  while (each * s->r.in[0].shape[s->r.in[0].rank - 1] < SHARE * s->parts && each < n) each *= 2;
  if (threads > 1) nvb_pool_run_with((int)threads, do_parts, &j, n, each);
  else do_parts(&j, 0, n, 0);
  if (part_bytes) add_parts(s, (const int64_t *)(const void *)j.to, (int64_t *)(void *)buffer[0]);
  for (int i = 1; i < s->copies; i++) memcpy(buffer[i], buffer[0], (size_t)bytes);
  return NVM_OK;
}

static const nvd_solver routines = { .name = "routine", .device = NVB_CPU, .run = run_routine };

/* Number of parts of a row: one for each thread, if there are fewer rows than threads and many more elements to count
   than bins; else 1. */
static int64_t parts_of(const nvf_routine *r, int64_t rows, int64_t each) {
  enum { MANY = 32 };
  int64_t n = r->in[0].shape[r->in[0].rank - 1], threads = nvb_pool_threads(), most = n / (MANY * each + 16384);
  if (r->op != NVG_OP_BINS || r->nin > 1 || rows >= threads || most < 2) return 1;
  return most < threads ? most : threads;
}

static void copy_operand(nvb_arena *a, nvf_operand *x) {
  x->shape = nvb_dup(a, x->shape, sizeof *x->shape * (size_t)x->rank);
  if (x->stride) x->stride = nvb_dup(a, x->stride, sizeof *x->stride * (size_t)x->rank);
}

void nvd_routine_copy(nvb_arena *a, nvf_routine *to, const nvf_routine *from) {
  *to = *from;
  to->what = nvb_strdup(a, from->what);
  to->attr = nvb_dup(a, from->attr, sizeof *from->attr * (size_t)from->nattr);
  copy_operand(a, &to->result);
  for (int i = 0; i < from->nin; i++) copy_operand(a, &to->in[i]);
}

static nvd_solution *prepare_rows(nvb_arena *a, const nvf_step *step) {
  const nvf_routine *r = step->routine;
  solution *s = NVB_NEW(a, solution);
  int64_t n = r->in[0].shape[r->in[0].rank - 1], each = r->result.shape[r->result.rank - 1];
  *s = (solution){ .base = { .by = &routines },
                   .rows = step->blocks,
                   .parts = parts_of(r, step->blocks, each),
                   .each = each,
                   .descending = r->op != NVG_OP_BINS && r->attr[0],
                   .copies = step->k->nparam - r->nin };
  nvd_routine_copy(a, &s->r, r);
  int64_t bytes =
      r->op == NVG_OP_BINS ? nvd_bins_workspace(each, r->nin > 1 ? n : 0) : nvd_sort_workspace(r->in[0].type, n);
  s->scratch_bytes = (bytes + 63) / 64 * 64;
  int64_t units = s->rows * s->parts, threads = units < nvb_pool_threads() ? units : nvb_pool_threads();
  s->base.workspace = threads * s->scratch_bytes + (s->parts > 1 ? units * each * nvg_size(r->result.type) : 0);
  return &s->base;
}

nvd_solution *nvd_routine(nvb_arena *a, const nvf_step *step, struct nvd_device *d) {
  if (d && nvd_does_matrices(step->routine->op)) return nvd_matrices_on(a, step, d);
  if (d && nvg_sorts(step->routine->op)) return nvd_sort_on(a, step, d);
  if (nvg_searches(step->routine->op)) return d ? nvd_search_on(a, step, d) : nvd_search(a, step);
  if (d)
    nvb_throw(a, NVM_ERR_STATE,
              "[%s] is done on the CPU, which is not possible inside a function that runs on a GPU; call it outside of "
              "the function, or the function with arrays of the CPU",
              step->what);
  if (step->routine->op == NVG_OP_DFT) return nvd_transform(a, step);
  return nvg_is_of_matrices(step->routine->op) ? nvd_matrices(a, step) : prepare_rows(a, step);
}
