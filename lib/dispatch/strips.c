/* Runs steps of a CPU's program together, strip by strip: each worker has memory for what lies between the steps of one
   strip, at addresses that stand for those of the whole buffers. Never decides which steps these are or how long a
   strip is (fusion/strips.c). */
#include "dispatch/strips.h"
#include <stdatomic.h>
#include <string.h>
#include "base/interrupt.h"
#include "base/pool.h"

enum { LINE = 64 };

/* An argument that is the address of a local buffer; of the program's arguments */
typedef struct local_arg { int arg, local; } local_arg;
struct nvd_strips {
  nvf_strips of;
  int first, narg; /* the program's arguments from the first step on, of which a worker has a copy */
  int nlocal;
  local_arg *local;
  int64_t *size;                   /* by local buffer: bytes of an element */
  int64_t *at, scratch_at, memory; /* in a worker's memory: local buffers, a routine's scratch, the end of all */
  nvd_step whole;
};

static int64_t lines(int64_t bytes) { return (bytes + LINE - 1) & ~(int64_t)(LINE - 1); }

/* The step's argument that is bound to a buffer of the plan; from `from` on. -1: none is. */
static int bound_to(const nvf_step *s, int buf, int from) {
  for (int i = from; i < s->k->nparam; i++)
    if (s->bind[i].kind == NVF_BUFFER && s->bind[i].buf == buf) return i;
  return -1;
}

static void find_local_args(nvb_arena *a, nvd_strips *s, const nvf_plan *plan, const nvd_program *p) {
  s->local = NVB_NEWN(a, local_arg, s->narg + 1);
  for (int i = 0; i < s->of.n; i++)
    for (int l = 0; l < s->of.nlocal; l++) {
      const nvf_step *step = &plan->step[s->of.step[i]];
      for (int j = -1; (j = bound_to(step, s->of.local[l], j + 1)) >= 0;)
        s->local[s->nlocal++] = (local_arg){ p->step[s->of.step[i]].first + j, l };
    }
}

/* Local buffers keep their alignment, so that each needs room for the part of a line before it. */
static void lay_out(nvb_arena *a, nvd_strips *s, const nvd_program *p) {
  int64_t at = lines(s->narg * (int64_t)sizeof(uint64_t)), most = 0;
  s->at = NVB_NEWN(a, int64_t, s->of.nlocal + 1);
  s->size = NVB_NEWN(a, int64_t, s->of.nlocal + 1);
  for (int l = 0; l < s->of.nlocal; l++) {
    s->at[l] = at;
    at += lines(s->of.bytes[l]) + 2 * LINE;
  }
  for (int i = 0; i < s->of.nwindow; i++) s->size[s->of.window[i].local] = s->of.window[i].size;
  for (int i = 0; i < s->of.n; i++) {
    const nvd_step *step = &p->step[s->of.step[i]];
    int64_t bytes = step->solution ? nvd_transform_scratch(step->solution) : 0;
    most = bytes > most ? bytes : most;
    s->whole.time += step->time;
  }
  s->scratch_at = at;
  s->memory = at + lines(most);
}

static void describe(nvb_arena *a, nvd_strips *s, const nvd_program *p) {
  nvb_text what = { .arena = a };
  const nvd_step *last = &p->step[s->of.step[s->of.n - 1]];
  s->whole.unit = last->unit;
  s->whole.hero = "strips";
  s->whole.blocks = s->of.count;
  for (int i = 0; i < s->of.n; i++) {
    const nvd_step *step = &p->step[s->of.step[i]];
    nvb_print(&what, "%s%s", i ? " | " : "", step->what);
    s->whole.bytes += step->bytes;
    s->whole.operations += step->operations;
  }
  for (int i = 0; i < s->of.nwindow; i++) /* what lies between them stays in the caches */
    s->whole.bytes -= s->of.elements[s->of.window[i].local] * s->of.window[i].size;
  if (s->whole.bytes < 0) s->whole.bytes = 0;
  s->whole.what = nvb_text_get(&what);
}

nvd_strips *nvd_strips_new(nvb_arena *a, const nvf_plan *plan, const nvd_program *p, const nvf_strips *of) {
  nvd_strips *s = NVB_NEW(a, nvd_strips);
  size_t steps = (size_t)of->n * sizeof(int64_t), locals = (size_t)of->nlocal * sizeof(int64_t);
  int last = of->step[of->n - 1];
  s->of = *of;
  s->of.step = nvb_dup(a, of->step, (size_t)of->n * sizeof *of->step);
  s->of.units = nvb_dup(a, of->units, steps);
  s->of.blocks = nvb_dup(a, of->blocks, steps);
  s->of.window = nvb_dup(a, of->window, (size_t)of->nwindow * sizeof *of->window);
  s->of.local = nvb_dup(a, of->local, (size_t)of->nlocal * sizeof *of->local);
  s->of.elements = nvb_dup(a, of->elements, locals);
  s->of.bytes = nvb_dup(a, of->bytes, locals);
  s->first = p->step[*of->step].first;
  s->narg = p->step[last].first + p->step[last].narg - s->first;
  find_local_args(a, s, plan, p);
  lay_out(a, s, p);
  describe(a, s, p);
  return s;
}

int nvd_strips_last(const nvd_strips *s) { return s->of.step[s->of.n - 1]; }
const nvd_step *nvd_strips_as_step(const nvd_strips *s) { return &s->whole; }
int64_t nvd_strips_memory(const nvd_strips *s) { return s->memory; }

/* ---- running */
typedef struct strips_job {
  const nvd_program *p;
  const nvd_context *c;
  const nvd_strips *s;
  _Atomic int stopped; /* an interrupt came: the remaining strips are skipped */
} strips_job;

/* Sets the addresses of local buffers so that the elements of this strip lie in the worker's memory. */
static void place_locals(const nvd_strips *s, const nvf_range *elements, char *memory) {
  uint64_t *arg = (uint64_t *)(void *)memory;
  for (int i = 0; i < s->nlocal; i++) {
    int l = s->local[i].local;
    uint64_t before = (uint64_t)(elements[l].lo * s->size[l]);
    arg[s->local[i].arg - s->first] = (uint64_t)(uintptr_t)(memory + s->at[l]) + before % LINE - before;
  }
}

static void run_units(const strips_job *j, int i, nvf_range units, char *memory) {
  const nvd_step *step = &j->p->step[j->s->of.step[i]];
  const uint64_t *arg = (uint64_t *)(void *)memory + (step->first - j->s->first);
  int64_t lo = units.lo * j->s->of.blocks[i], hi = units.hi * j->s->of.blocks[i];
  nvc_entry entry = j->c->entry[j->s->of.step[i]];
  char *scratch = memory + j->s->memory;
  if (lo >= hi) return;
  if (step->solution) {
    nvd_transform_rows(step->solution, arg, lo, hi, memory + j->s->scratch_at);
    return;
  }
  int64_t start = nvd_kernel_baseline_start(step->kernel, entry);
  if (entry) entry(arg, lo, hi, scratch);
  else nvc_interp_run(step->kernel->interp, arg, lo, hi, scratch);
  nvd_kernel_baseline_end(step->kernel, start);
}

static void run_some(void *arg, int64_t lo, int64_t hi, int worker) {
  enum { MOST = 16 }; /* steps, local buffers */
  strips_job *j = arg;
  const nvd_strips *s = j->s;
  char *memory = j->c->scratch + (size_t)worker * ((size_t)s->memory + j->c->stride);
  nvf_range units[MOST], elements[MOST];
  memcpy(memory, j->c->arg + s->first, sizeof(uint64_t) * (size_t)s->narg);
  for (int64_t i = lo; i < hi; i++) {
    if (atomic_load_explicit(&j->stopped, memory_order_relaxed) || (!worker && nvb_interrupted())) {
      atomic_store(&j->stopped, 1);
      return;
    }
    nvf_strip_at(&s->of, i, units, elements);
    place_locals(s, elements, memory);
    for (int k = 0; k < s->of.n; k++) run_units(j, k, units[k], memory);
  }
}

int nvd_strips_run(const nvd_program *p, const nvd_context *c, const nvd_strips *s) {
  strips_job j = { p, c, s, 0 };
  if (c->workers > 1 && s->whole.time >= NVD_LITTLE) nvb_pool_run_with(c->workers, run_some, &j, s->of.count, 1);
  else run_some(&j, 0, s->of.count, 0);
  return j.stopped ? nvb_interrupted() : NVM_OK;
}
