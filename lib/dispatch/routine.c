/* Routines: steps that no kernel can do, on the CPU. Rows are shared out among the threads of the pool. */
#include <string.h>
#include "base/pool.h"
#include "dispatch/solve.h"
#include "dispatch/sort.h"
#include "graph/graph.h"

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  int64_t rows, room;            /* room: bytes of scratch for a thread */
  int copies;                    /* of the result, each in a buffer of its own */
} solution;

typedef struct job {
  const solution *s;
  const char *from;
  char *to;
  char *scratch;
} job;

/* Row number `row` of the operand. */
static const char *row_at(const job *j, int64_t row) {
  const nvf_routine *r = &j->s->r;
  int64_t at = 0;
  for (int d = r->rank - 2; d >= 0; d--) {
    at += row % r->shape[d] * r->stride[d];
    row /= r->shape[d];
  }
  return j->from + at * nvg_size(r->operand);
}

static void sort_rows(void *arg, int64_t lo, int64_t hi, int worker) {
  const job *j = arg;
  const nvf_routine *r = &j->s->r;
  int64_t n = r->shape[r->rank - 1];
  char *scratch = j->scratch + j->s->room * worker;
  for (int64_t i = lo; i < hi; i++) {
    nvd_row row = { r->operand, row_at(j, i), n, r->stride[r->rank - 1], r->descending };
    char *to = j->to + i * n * nvg_size(r->result);
    if (r->op == NVG_OP_ORDER)
      nvd_order(&row, (int64_t *)(void *)to, scratch);
    else
      nvd_sort(&row, to, scratch);
  }
}

static int run(nvd_solution *base, const nvd_place *at) {
  const solution *s = (const solution *)base;
  char *const *buffer = (char *const *)(const void *)at->arg; /* the operand, then every copy of the result */
  job j = { s, buffer[0], buffer[1], at->workspace };
  int64_t threads = at->room / s->room, each = 1;
  if (threads > at->threads)
    threads = at->threads;
  enum { SHARE = 16384 }; /* elements worth waking a thread for */
  while (each * s->r.shape[s->r.rank - 1] < SHARE && each < s->rows)
    each *= 2;
  if (threads > 1)
    nvb_pool_run_with((int)threads, sort_rows, &j, s->rows, each);
  else
    sort_rows(&j, 0, s->rows, 0);
  size_t bytes = (size_t)(s->rows * s->r.shape[s->r.rank - 1] * nvg_size(s->r.result));
  for (int i = 1; i < s->copies; i++)
    memcpy(buffer[1 + i], buffer[1], bytes);
  return NVM_OK;
}

static const nvd_solver sorting = { .name = "sort", .device = NVB_CPU, .run = run };

nvd_solution *nvd_routine(nvb_arena *a, const nvf_step *step, struct nvd_device *d) {
  const nvf_routine *r = step->routine;
  if (d)
    nvb_throw(a, NVM_ERR_STATE, "[%s] sorting inside a function that runs on a GPU is not possible: it is done on the "
              "CPU; sort outside of the function, or call it with arrays of the CPU", step->what);
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &sorting }, .r = *r, .rows = step->blocks, .copies = step->k->nparam - 1 };
  s->r.shape = nvb_dup(a, r->shape, sizeof *r->shape * (size_t)r->rank);
  s->r.stride = nvb_dup(a, r->stride, sizeof *r->stride * (size_t)r->rank);
  s->room = (nvd_sort_room(r->operand, r->shape[r->rank - 1]) + 63) / 64 * 64;
  int64_t threads = s->rows < nvb_pool_threads() ? s->rows : nvb_pool_threads();
  s->base.workspace = threads * s->room;
  return &s->base;
}
