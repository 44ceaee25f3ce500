/* Steps that are Fourier transforms, on the CPU: divides the rows among the pool's threads. */
#include <string.h>
#include "base/interrupt.h"
#include "base/pool.h"
#include "dispatch/fft.h"
#include "dispatch/solve/solve.h"

typedef struct solution {
  nvd_solution base;
  nvf_routine r;
  const nvd_fft *plan;
  int lanes;                   /* rows of a group */
  int64_t rows, scratch_bytes; /* scratch_bytes: for each thread */
  int64_t apart;               /* bytes between rows; 0: they do not lie at one distance */
  int copies;                  /* buffers that receive the same result */
} solution;

typedef struct transform_job {
  const solution *s;
  const char *from;
  char *to, *scratch;
  int64_t lo, hi; /* the rows of the run */
  int threads;    /* that share a row */
} transform_job;

static const char *row_at(const transform_job *j, int64_t row) {
  return j->s->apart ? j->from + row * j->s->apart : nvd_piece_at(&j->s->r.in[0], 1, j->from, row);
}

/* Transforms rows in groups; the numbers are those of groups, from row j->lo on. */
static void transform_groups(void *arg, int64_t lo, int64_t hi, int worker) {
  const transform_job *j = arg;
  const nvf_routine *r = &j->s->r;
  const char *from[NVD_FFT_LANES];
  char *to[NVD_FFT_LANES];
  int64_t bytes = r->result.shape[r->result.rank - 1] * nvg_size(r->result.type);
  nvd_fft_rows rows = { .kind = (nvg_dft)r->attr[0],
                        .stride = r->in[0].stride[r->in[0].rank - 1],
                        .lanes = j->s->lanes,
                        .threads = j->threads,
                        .from = from,
                        .to = to };
  for (int64_t group = lo, lanes = rows.lanes; group < hi; group++) {
    int64_t first = j->lo + group * lanes, left = j->hi - first;
    rows.count = (int)(left < lanes ? left : lanes);
    rows.next = left > lanes ? row_at(j, first + lanes) : NULL;
    for (int i = 0; i < rows.count; i++) {
      from[i] = row_at(j, first + i);
      to[i] = j->to + (first + i) * bytes;
    }
    nvd_fft_run(j->s->plan, &rows, j->scratch + worker * j->s->scratch_bytes);
  }
}

void nvd_transform_rows(const nvd_solution *base, const uint64_t *arg, int64_t lo, int64_t hi, void *scratch) {
  const solution *s = (const solution *)base;
  char *const *buffer = (char *const *)(const void *)arg;
  transform_groups(&(transform_job){ s, buffer[0], buffer[1], scratch, lo, hi, 1 }, 0,
                   (hi - lo + s->lanes - 1) / s->lanes, 0);
}

int64_t nvd_transform_scratch(const nvd_solution *s) { return ((const solution *)s)->scratch_bytes; }

/* Between parts of about ten milliseconds an interrupt may end the step. */
static int run_transform(nvd_solution *base, const nvd_run_args *at) {
  /* elements that are worth waking a thread for, and of a part; points for each thread that shares a row */
  enum { SHARE = 8192, PART = 1 << 20, EACH = 1 << 14 };
  const solution *s = (const solution *)base;
  char *const *buffer = (char *const *)(const void *)at->arg; /* the operand, then every buffer of the result */
  transform_job j = { s, buffer[0], buffer[1], at->workspace, 0, s->rows, 1 };
  int64_t lanes = s->lanes, groups = (s->rows + lanes - 1) / lanes, points = lanes * s->plan->direct.n;
  int64_t each = SHARE / points + 1, part = PART / points + 1, threads = at->workspace_bytes / s->scratch_bytes;
  if (threads > at->threads) threads = at->threads;
  if (groups < at->threads && nvd_fft_is_shared(s->plan, s->lanes)) {
    j.threads = points / EACH < at->threads ? (int)(points / EACH) : at->threads;
    threads = 1;
  }
  part *= threads > 1 ? threads : 1;
  for (int64_t lo = 0; lo < groups; lo += part) {
    if (nvb_interrupted()) return NVM_ERR_INTERRUPTED;
    int64_t n = lo + part < groups ? part : groups - lo;
    j.lo = lo * lanes;
    if (threads > 1) nvb_pool_run_with((int)threads, transform_groups, &j, n, each);
    else transform_groups(&j, 0, n, 0);
  }
  int64_t bytes = s->rows * s->r.result.shape[s->r.result.rank - 1] * nvg_size(s->r.result.type);
  for (int i = 1; i < s->copies; i++) memcpy(buffer[1 + i], buffer[1], (size_t)bytes);
  return NVM_OK;
}

static void free_transform(nvd_solution *s) { nvd_fft_release(((solution *)s)->plan); }

static const nvd_solver transforms = {
  .name = "transform", .device = NVB_CPU, .run = run_transform, .free = free_transform
};

nvd_solution *nvd_transform(nvb_arena *a, const nvf_step *step) {
  const nvf_routine *r = step->routine;
  solution *s = NVB_NEW(a, solution);
  *s = (solution){ .base = { .by = &transforms }, .rows = step->blocks, .copies = step->k->nparam - 1 };
  nvd_routine_copy(a, &s->r, r);
  s->plan = nvd_fft_get((nvg_dft)r->attr[0], r->attr[1], nvg_real_of(r->result.type) == NVM_F64);
  if (!s->plan) nvb_throw(a, NVM_ERR_MEMORY, "[%s] out of memory", step->what);
  s->lanes = nvd_fft_lanes(s->plan, s->rows);
  s->scratch_bytes = nvd_fft_workspace(s->plan, s->lanes);
  int64_t count, apart;
  if (nvf_rows_of(&s->r.in[0], &count, &apart)) s->apart = apart * nvg_size(s->r.in[0].type);
  int64_t lanes = s->lanes, groups = (s->rows + lanes - 1) / lanes, threads = nvb_pool_threads();
  s->base.workspace = (groups < threads ? groups : threads) * s->scratch_bytes;
  return &s->base;
}
