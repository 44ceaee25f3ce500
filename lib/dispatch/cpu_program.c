/* Runs programs on the CPU. A run obtains its memory and its code before the first step, so that afterwards an
   uninstrumented run fails only by an index out of range, an interrupt or a solver's error. Never decides what a step
   computes. */
#include <stdatomic.h>
#include <string.h>
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/profile.h"
#include "dispatch/program.h"
#include "dispatch/strips.h"

enum { LINE = 64, KEEP = 32 << 10 }; /* KEEP: the most bytes that a context keeps between runs */

/* ---- preparing */
void nvd_cpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms) {
  p->tier = nvd_tier_now();
  if (terms->optimized && p->tier == NVD_AUTO) p->tier = NVD_NATIVE;
  nvb_map *same =
      nvb_map_new(work); /* kernel and schedule -> the first step with them: those of kept plans are shared */
  for (int i = 0; i < p->nstep; i++) {
    terms->step = i;
    if (nvb_interrupted()) nvb_throw(work, NVM_ERR_INTERRUPTED, "%s", nvb_message());
    nvd_step *s = &p->step[i];
    p->wide |= s->solution || s->blocks > s->grain;
    if (s->solution) {
      p->workspace = s->solution->workspace > p->workspace ? s->solution->workspace : p->workspace;
      continue;
    }
    const void *by[2] = { plan->step[i].k, plan->step[i].s };
    int fresh, *of = nvb_map_put(same, by, sizeof by, &fresh);
    if (!fresh) {
      s->kernel = nvd_kernel_again(p->step[*of].kernel);
      continue;
    }
    *of = i;
    int made, status = nvd_kernel_get(&s->kernel, &made, work, &plan->step[i]);
    if (status) nvb_throw(work, status, "%s", nvb_message());
    p->bytes += made ? s->kernel->item.bytes : 0;
    if (p->tier == NVD_NATIVE && (!atomic_load(&s->kernel->entry) || atomic_load(&s->kernel->baseline)))
      nvd_kernel_warm(s->kernel, p->tier, (nvd_demand){ 0 });
  }
}

/* Instrumented runs look at what lies between steps, so that no step is in strips. */
void nvd_cpu_join(nvb_arena *a, nvd_program *p, const nvf_plan *plan) {
  if (p->device || p->instrumented || !plan->nstrips) return;
  p->strips = NVB_NEWN(a, nvd_strips *, p->nstep + 1);
  for (; p->nstrips < plan->nstrips; p->nstrips++) {
    const nvf_strips *of = plan->strips[p->nstrips];
    nvd_strips *s = nvd_strips_new(a, plan, p, of);
    int64_t bytes = nvd_strips_memory(s);
    for (int i = 0; i < of->n; i++) p->strips[of->step[i]] = s;
    p->strips_memory = bytes > p->strips_memory ? bytes : p->strips_memory;
  }
  p->temp_bytes = (plan->kept_bytes + LINE - 1) & ~(int64_t)(LINE - 1);
}

void nvd_cpu_share(nvd_program *p, const nvd_program *from) {
  p->tier = from->tier;
  for (int i = 0; i < p->nstep; i++) {
    p->wide |= p->step[i].blocks > p->step[i].grain;
    p->step[i].kernel = nvd_kernel_again(from->step[i].kernel);
  }
}

static void context_free(nvd_context *c) {
  if (!c) return;
  nvb_free(c->memory);
  nvb_free(c);
}

void nvd_cpu_free(nvd_program *p) {
  for (int i = 0; i < p->nstep; i++) nvd_kernel_unref(p->step[i].kernel);
  for (int i = 0; i < NVD_SPARES; i++) context_free(atomic_load(&p->spare[i]));
}

/* ---- contexts */
static nvd_context *context_get(nvd_program *p) {
  for (int i = 0; i < NVD_SPARES; i++) {
    nvd_context *c = atomic_load_explicit(&p->spare[i], memory_order_relaxed);
    if (c && (c = atomic_exchange_explicit(&p->spare[i], NULL, memory_order_acquire))) return c;
  }
  size_t args = sizeof(uint64_t) * (size_t)p->narg;
  nvd_context *c = nvb_alloc(sizeof *c + args + sizeof(nvc_entry) * (size_t)p->nstep);
  if (!c) return NULL;
  *c = (nvd_context){ .entry = (nvc_entry *)(void *)(c->arg + p->narg) };
  memcpy(c->arg, p->arg, args);
  return c;
}

static void context_put(nvd_program *p, nvd_context *c) {
  for (int i = 0; i < NVD_SPARES; i++) {
    nvd_context *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&p->spare[i], &none, c, memory_order_release, memory_order_relaxed))
      return;
  }
  context_free(c);
}

/* Finds the code of every step and compiles it if the tier asks for that. Returns the scratch bytes that one worker
   needs. */
static size_t find_code(nvd_program *p, nvd_context *c) {
  int64_t scratch = 0;
  for (int i = 0; i < p->nstep; i++) {
    const nvd_step *s = &p->step[i];
    nvd_kernel *k = s->kernel;
    c->entry[i] = NULL;
    if (!k) continue;
    nvc_entry e = p->tier == NVD_INTERPRETED ? NULL : atomic_load_explicit(&k->entry, memory_order_acquire);
    if (!e && !nvb_interrupted()) /* an interrupt ends the run before its first step */
      e = nvd_kernel_warm(k, p->tier, (nvd_demand){ s->elements, s->bytes, s->time });
    else if (e && atomic_load_explicit(&k->baseline, memory_order_relaxed)) e = nvd_kernel_refine(k, p->tier);
    if (e && k->native_scratch > scratch) scratch = k->native_scratch;
    if ((!e || p->instrumented) && k->interp_scratch > scratch) scratch = k->interp_scratch;
    c->entry[i] = e;
  }
  return ((size_t)scratch + LINE - 1) & ~(size_t)(LINE - 1);
}

/* Returns memory for the run: the context's own up to KEEP bytes, else a buffer that the caller releases after the run.
   NULL with a message if there is none. */
static char *find_memory(nvd_context *c, size_t need, nvd_buf **buf) {
  if (need > KEEP) {
    *buf = nvd_buf_new(need);
    return *buf ? (*buf)->data : NULL;
  }
  if (need > c->capacity || !c->memory) {
    nvb_free(c->memory);
    c->memory = nvb_alloc_aligned(LINE, need + LINE);
    c->capacity = c->memory ? need : 0;
    if (!c->memory) nvb_fail_memory();
  }
  return c->memory;
}

/* ---- running */
typedef struct step_job {
  nvc_entry entry;
  const nvc_interp *interp;
  const uint64_t *arg;
  const nvd_context *context;
  _Atomic int failed;  /* lowest id + 1 among the failed CHECKs seen so far; 0: none */
  _Atomic int stopped; /* an interrupt came: the remaining blocks are skipped */
} step_job;

static void run_blocks(void *arg, int64_t lo, int64_t hi, int worker) {
  step_job *j = arg;
  if (atomic_load_explicit(&j->stopped, memory_order_relaxed) || (!worker && nvb_interrupted())) {
    atomic_store(&j->stopped, 1);
    return;
  }
  char *scratch = j->context->scratch + (size_t)worker * j->context->stride;
  int bad = j->entry ? j->entry(j->arg, lo, hi, scratch) : nvc_interp_run(j->interp, j->arg, lo, hi, scratch);
  int seen = bad ? atomic_load(&j->failed) : 0;
  while (bad && (!seen || bad < seen) && !atomic_compare_exchange_weak(&j->failed, &seen, bad));
}

/* Is the step worth dividing among the pool's threads? */
static int is_shared(const nvd_step *s, const nvd_context *c, nvc_entry entry) {
  return s->blocks > s->grain && c->workers > 1 && !(entry && s->time < NVD_LITTLE);
}

/* Runs the step in this thread, some blocks at a time, and can be interrupted in between. */
static void run_alone(step_job *j, const nvd_step *s) {
  enum { TASKS = 64 };
  int64_t task = s->blocks / TASKS > s->grain ? s->blocks / TASKS : s->grain;
  for (int64_t lo = 0; lo < s->blocks; lo += task) run_blocks(j, lo, s->blocks - lo < task ? s->blocks : lo + task, 0);
}

/* Does step i write to memory that it also reads? */
static int is_in_place(const nvd_program *p, const nvd_context *c, int i) {
  int end = p->step[i].first + p->step[i].narg;
  for (int k = 0; k < p->naddress; k++)
    for (int m = 0; m < p->naddress; m++) {
      const nvd_address *to = &p->address[k], *from = &p->address[m];
      int of_step = to->arg >= p->step[i].first && to->arg < end && from->arg >= p->step[i].first && from->arg < end;
      if (of_step && to->stored && !from->stored && c->arg[to->arg] == c->arg[from->arg]) return 1;
    }
  return 0;
}

/* Runs step i again in the interpreter up to the first check that fails in the interpreter's order, so that the message
   does not depend on which thread or code ran the step. Always returns a failure. */
static int fail_check(const nvd_program *p, const nvd_context *c, int i, int failed) {
  const nvd_kernel *k = p->step[i].kernel;
  char text[512], *scratch = is_in_place(p, c, i) ? NULL : nvb_alloc_aligned(LINE, (size_t)k->interp_scratch + LINE);
  int64_t index;
  const uint64_t *arg = c->arg + p->step[i].first;
  int found = scratch ? nvc_interp_find(&index, k->interp, arg, 0, p->step[i].blocks, scratch) : 0;
  nvb_free(scratch);
  nvd_index_error(text, sizeof text, p, i, found ? found : failed, found ? &index : NULL);
  return nvb_fail(NVM_ERR_INDEX, "%s", text);
}

int nvd_step_run(const nvd_program *p, const nvd_context *c, int i, nvc_entry entry) {
  const nvd_step *s = &p->step[i];
  if (s->solution)
    return s->solution->by->run(s->solution, &(nvd_run_args){ .arg = c->arg + s->first,
                                                              .threads = c->workers,
                                                              .workspace = c->scratch,
                                                              .workspace_bytes = p->workspace });
  step_job j = { entry, s->kernel->interp, c->arg + s->first, c, 0, 0 };
  int64_t start = nvd_kernel_baseline_start(s->kernel, entry);
  if (is_shared(s, c, entry)) nvb_pool_run_with(c->workers, run_blocks, &j, s->blocks, s->grain);
  else run_alone(&j, s);
  nvd_kernel_baseline_end(s->kernel, start);
  if (j.stopped) return nvb_interrupted();
  return j.failed ? fail_check(p, c, i, j.failed) : NVM_OK;
}

int nvd_step_in_turn(const nvd_program *p, const nvd_context *c, int i) {
  const nvd_strips *s = p->nstrips ? p->strips[i] : NULL;
  if (!s) return nvd_step_run(p, c, i, c->entry[i]);
  return nvd_strips_last(s) == i ? nvd_strips_run(p, c, s) : NVM_OK;
}

static int run_steps(const nvd_program *p, const nvd_context *c) {
  int status = NVM_OK;
  for (int i = 0; i < p->nstep && !status; i++)
    status = nvb_interrupted() ? NVM_ERR_INTERRUPTED : nvd_step_in_turn(p, c, i);
  return status;
}

/* Fills in the arguments of this run, and sets where its scratch begins. */
static void set_arguments(const nvd_program *p, nvd_context *c, char *memory, char *const *leaf, char *const *out) {
  for (int i = 0; i < p->naddress; i++) {
    const nvd_address *b = &p->address[i];
    char *base = b->from == NVF_BLEAF ? leaf[b->id] : b->from == NVF_BOUT ? out[b->id] : memory;
    c->arg[b->arg] = (uint64_t)(uintptr_t)(base + b->offset);
  }
  for (int i = 0; i < p->nscalar; i++)
    c->arg[p->scalar[i].arg] = nvd_scalar_value(&p->scalar[i], leaf[p->scalar[i].leaf]);
  c->scratch = memory + p->temp_bytes;
}

int nvd_run(nvd_program *p, char *const *leaf, char *const *out) {
  nvd_context *c = context_get(p);
  if (!c) return nvb_fail_memory();
  unsigned fp = nvb_fp_enter();
  c->stride = find_code(p, c);
  c->workers = p->wide ? nvb_pool_threads() : 1;
  nvd_buf *buf = NULL;
  /* the steps run one after the other and share it */
  size_t scratch = (c->stride + (size_t)p->strips_memory) * (size_t)c->workers, workspace = (size_t)p->workspace;
  char *memory = find_memory(c, (size_t)p->temp_bytes + (scratch > workspace ? scratch : workspace), &buf);
  int status = NVM_ERR_MEMORY;
  if (memory) {
    set_arguments(p, c, memory, leaf, out);
    status = p->instrumented      ? nvd_run_instrumented(p, c)
             : nvd_is_profiling() ? nvd_run_profiled(p, c)
                                  : run_steps(p, c);
    nvd_count_run(p->nstep);
  }
  nvd_buf_unref(buf);
  nvb_fp_leave(fp);
  context_put(p, c);
  return status;
}
