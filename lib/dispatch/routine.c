/* Routines: runs sorts and bin counts, which no kernel can do, on the CPU. Decides how rows are divided among the
   pool's threads, and splits a few long rows into pieces when only counts are wanted. Rejects GPUs. */
#include <string.h>
#include "base/pool.h"
#include "dispatch/bins.h"
#include "dispatch/solve/solve.h"
#include "graph/graph.h"

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  int64_t rows, pieces, scratch_bytes; /* pieces: of each row; scratch_bytes: for each thread */
  int copies;                          /* buffers that receive the same result */
} solution;

typedef struct job {
  const solution *s;
  const char *from[2];
  char *to; /* one result for each piece of each row */
  char *scratch;
} job;

/* The address of row number `row` of an operand. */
static const char *row_at(const job *j, int which, int64_t row) {
  const nvf_routine *r = &j->s->r;
  int64_t at = 0;
  for (int d = r->rank - 2; d >= 0; d--) {
    at += row % r->shape[d] * r->stride[which][d];
    row /= r->shape[d];
  }
  return j->from[which] + at * nvg_size(r->operand[which]);
}

/* Piece number i of an operand, counted over all rows. */
static nvd_row piece_at(const job *j, int which, int64_t i) {
  const nvf_routine *r = &j->s->r;
  int64_t n = r->shape[r->rank - 1], stride = r->stride[which][r->rank - 1], each = (n - 1) / j->s->pieces + 1;
  int64_t lo = i % j->s->pieces * each, hi = lo + each < n ? lo + each : n;
  const char *data = row_at(j, which, i / j->s->pieces) + lo * stride * nvg_size(r->operand[which]);
  return (nvd_row){ r->operand[which], data, hi - lo, stride, r->descending };
}

static void do_pieces(void *arg, int64_t lo, int64_t hi, int worker) {
  const job *j = arg;
  const nvf_routine *r = &j->s->r;
  char *scratch = j->scratch + j->s->scratch_bytes * worker;
  for (int64_t i = lo; i < hi; i++) {
    nvd_row row = piece_at(j, 0, i), weight = r->nin > 1 ? piece_at(j, 1, i) : row;
    char *to = j->to + i * r->each * nvg_size(r->result);
    if (r->nin > 1) nvd_bin_sums(&row, &weight, r->each, to, scratch);
    else if (r->op == NVG_OP_BINS) nvd_bins(&row, r->each, (int64_t *)(void *)to, scratch);
    else if (r->op == NVG_OP_ORDER) nvd_order(&row, (int64_t *)(void *)to, scratch);
    else nvd_sort(&row, to, scratch);
  }
}

/* Adds up the counts of the pieces of each row. */
static void add_pieces(const solution *s, const int64_t *from, int64_t *to) {
  for (int64_t i = 0; i < s->rows * s->r.each; i++) {
    const int64_t *at = from + i / s->r.each * s->pieces * s->r.each + i % s->r.each;
    to[i] = 0;
    for (int64_t p = 0; p < s->pieces; p++) to[i] += at[p * s->r.each];
  }
}

static int run_routine(nvd_solution *base, const nvd_run_args *at) {
  const solution *s = (const solution *)base;
  char *const *from = (char *const *)(const void *)at->arg; /* the operands, then every buffer of the result */
  char *const *buffer = from + s->r.nin;
  int64_t bytes = s->rows * s->r.each * nvg_size(s->r.result), parts = s->pieces > 1 ? s->pieces * bytes : 0;
  job j = { s, { from[0], from[s->r.nin - 1] }, parts ? at->workspace : buffer[0], (char *)at->workspace + parts };
  int64_t threads = (at->workspace_bytes - parts) / s->scratch_bytes, each = 1, n = s->rows * s->pieces;
  if (threads > at->threads) threads = at->threads;
  enum { SHARE = 16384 }; /* elements that are worth waking a thread for */
  while (each * s->r.shape[s->r.rank - 1] < SHARE * s->pieces && each < n) each *= 2;
  if (threads > 1) nvb_pool_run_with((int)threads, do_pieces, &j, n, each);
  else do_pieces(&j, 0, n, 0);
  if (parts) add_pieces(s, (const int64_t *)(const void *)j.to, (int64_t *)(void *)buffer[0]);
  for (int i = 1; i < s->copies; i++) memcpy(buffer[i], buffer[0], (size_t)bytes);
  return NVM_OK;
}

static const nvd_solver routines = { .name = "routine", .device = NVB_CPU, .run = run_routine };

/* Number of pieces of a row: one for each thread, if there are fewer rows than threads and many more elements to count
   than bins; else 1. */
static int64_t pieces_of(const nvf_routine *r, int64_t rows) {
  enum { MANY = 32 };
  int64_t n = r->shape[r->rank - 1], threads = nvb_pool_threads(), most = n / (MANY * r->each + 16384);
  if (r->op != NVG_OP_BINS || r->nin > 1 || rows >= threads || most < 2) return 1;
  return most < threads ? most : threads;
}

nvd_solution *nvd_routine(nvb_arena *a, const nvf_step *step, struct nvd_device *d) {
  const nvf_routine *r = step->routine;
  if (d)
    nvb_throw(a, NVM_ERR_STATE,
              "[%s] sorting inside a function that runs on a GPU is not possible: it is done on the "
              "CPU; sort outside of the function, or call it with arrays of the CPU",
              step->what);
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &routines },
                   .r = *r,
                   .rows = step->blocks,
                   .pieces = pieces_of(r, step->blocks),
                   .copies = step->k->nparam - r->nin };
  s->r.shape = nvb_dup(a, r->shape, sizeof *r->shape * (size_t)r->rank);
  for (int i = 0; i < r->nin; i++) s->r.stride[i] = nvb_dup(a, r->stride[i], sizeof **r->stride * (size_t)r->rank);
  int64_t n = r->shape[r->rank - 1];
  int64_t bytes =
      r->op == NVG_OP_BINS ? nvd_bins_workspace(r->each, r->nin > 1 ? n : 0) : nvd_sort_workspace(r->operand[0], n);
  s->scratch_bytes = (bytes + 63) / 64 * 64;
  int64_t units = s->rows * s->pieces, threads = units < nvb_pool_threads() ? units : nvb_pool_threads();
  s->base.workspace = threads * s->scratch_bytes + (s->pieces > 1 ? units * r->each * nvg_size(r->result) : 0);
  return &s->base;
}
