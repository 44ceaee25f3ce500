/* Programs: the steps of a plan with all that running them needs, apart from the plan's memory. A run takes its
   memory and its code before its first step, so that after that only an index out of range can fail it. Never
   decides what a step computes or how it is cut into blocks: that is the plan's. */
#include "dispatch/program.h"
#include <stdatomic.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"

enum { LINE = 64, KEEP = 32 << 10 }; /* KEEP: bytes that a context keeps between runs; there may be 4,096 programs */

static _Atomic int64_t kernels_run;
static _Thread_local int refused;
int64_t nvd_kernels_run(void) { return atomic_load(&kernels_run); }
int nvd_refused_step(void) { return refused; }

/* ---- preparing */
typedef struct request { const nvf_plan *plan; nvd_program *p; nvb_arena *work; } request;

static void bind(nvd_program *p, const nvf_plan *plan, const nvf_bind *b, const nvf_param *param, int arg) {
  if (b->kind != NVF_BUFFER) {
    p->arg[arg] = b->bits;
    return;
  }
  const nvf_buf *buf = &plan->buf[b->buf];
  int64_t offset = b->offset + (buf->kind == NVF_BTEMP ? buf->offset : 0);
  int64_t written = param->written ? buf->bytes - b->offset : 0;
  p->address[p->naddress++] = (nvd_address){ arg, buf->kind, buf->id, offset, written, param->type };
}

static void prepare(nvb_arena *a, void *arg) {
  request *r = arg;
  const nvf_plan *plan = r->plan;
  nvd_program *p = r->p;
  for (int i = 0; i < plan->nstep; i++)
    p->narg += plan->step[i].k->nparam;
  p->step = NVB_NEWN(a, nvd_step, plan->nstep);
  p->arg = NVB_NEWN(a, uint64_t, p->narg);
  p->address = NVB_NEWN(a, nvd_address, p->narg);
  p->temp_bytes = (plan->temp_bytes + LINE - 1) & ~(int64_t)(LINE - 1);
  int at = 0;
  for (int i = 0; i < plan->nstep; i++) {
    const nvf_step *from = &plan->step[i];
    nvd_step *s = &p->step[i];
    *s = (nvd_step){ .blocks = from->blocks, .grain = from->grain > 0 ? from->grain : 1, .first = at,
                     .bytes = from->bytes_read + from->bytes_written,
                     .hero = nvb_strdup(a, from->hero ? from->hero : "map"),
                     .what = nvb_strdup(a, from->what ? from->what : "") };
    p->wide |= s->blocks > s->grain;
    for (int j = 0; j < from->k->nparam; j++)
      bind(p, plan, &from->bind[j], &from->k->param[j], at++);
    refused = i;
    int status = nvd_kernel_get(&s->kernel, r->work, from->k, from->s);
    p->nstep = i + 1; /* those with a kernel to give back */
    if (status)
      nvb_throw(a, status, "%s", nvb_message());
    if (p->tier == NVD_NATIVE && !atomic_load(&s->kernel->entry))
      nvd_kernel_warm(s->kernel, p->tier, 0);
  }
}

int nvd_prepare(nvd_program **out, const nvf_plan *plan, struct nvd_device *device) {
  *out = NULL;
  if (device)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[prepare] this build runs programs on the CPU alone");
  nvd_program *p = nvb_calloc(1, sizeof *p);
  nvb_arena *a = nvb_arena_new(), *work = nvb_arena_new();
  int status;
  if (p && a && work) {
    p->arena = a;
    p->tier = nvd_tier_now();
    p->watched = nvb_has(NVB_DUMP, "run") || nvb_has(NVB_CHECK, "bits");
    request r = { plan, p, work };
    status = nvb_protect(a, prepare, &r);
  } else {
    nvb_arena_free(a);
    status = nvb_fail_memory();
  }
  nvb_arena_free(work);
  if (!status)
    *out = p;
  else
    nvd_program_free(p);
  return status;
}

static void context_free(nvd_context *c) {
  if (!c)
    return;
  nvb_free(c->memory);
  nvb_free(c);
}

void nvd_program_free(nvd_program *p) {
  if (!p)
    return;
  for (int i = 0; i < p->nstep; i++)
    nvd_kernel_unref(p->step[i].kernel);
  for (int i = 0; i < NVD_SPARES; i++)
    context_free(atomic_load(&p->spare[i]));
  nvb_arena_free(p->arena);
  nvb_free(p);
}

/* ---- contexts */
static nvd_context *context_get(nvd_program *p) {
  for (int i = 0; i < NVD_SPARES; i++) {
    nvd_context *c = atomic_load_explicit(&p->spare[i], memory_order_relaxed);
    if (c && (c = atomic_exchange_explicit(&p->spare[i], NULL, memory_order_acquire)))
      return c;
  }
  size_t args = sizeof(uint64_t) * (size_t)p->narg;
  nvd_context *c = nvb_alloc(sizeof *c + args + sizeof(nvc_entry) * (size_t)p->nstep);
  if (!c)
    return NULL;
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

/* Code of every step, compiled now where the tier asks for it. Returns the scratch bytes that a worker needs. */
static size_t find_code(nvd_program *p, nvd_context *c) {
  int64_t scratch = 0;
  for (int i = 0; i < p->nstep; i++) {
    nvd_kernel *k = p->step[i].kernel;
    nvc_entry e = p->tier == NVD_INTERPRETED ? NULL : atomic_load_explicit(&k->entry, memory_order_acquire);
    if (!e)
      e = nvd_kernel_warm(k, p->tier, p->step[i].bytes / 4);
    if (e && k->native_scratch > scratch)
      scratch = k->native_scratch;
    if ((!e || p->watched) && k->interp_scratch > scratch)
      scratch = k->interp_scratch;
    c->entry[i] = e;
  }
  return ((size_t)scratch + LINE - 1) & ~(size_t)(LINE - 1);
}

/* Memory for the run: the context's own if it is little, else a buffer that the run gives back. NULL when there is
   none. */
static char *find_memory(nvd_context *c, size_t need, nvd_buf **buf) {
  if (need > KEEP) {
    *buf = nvd_buf_new(need);
    return *buf ? (*buf)->data : NULL;
  }
  if (need > c->room || !c->memory) {
    nvb_free(c->memory);
    c->memory = nvb_alloc_aligned(LINE, need + LINE);
    c->room = c->memory ? need : 0;
    if (!c->memory)
      nvb_fail_memory();
  }
  return c->memory;
}

/* ---- running */
typedef struct job {
  nvc_entry entry;
  const nvc_interp *interp;
  const uint64_t *arg;
  const nvd_context *context;
  _Atomic int failed;            /* lowest id + 1 of a CHECK that failed, of those seen; 0: none */
} job;

static void run_blocks(void *arg, int64_t lo, int64_t hi, int worker) {
  job *j = arg;
  char *scratch = j->context->scratch + (size_t)worker * j->context->stride;
  int bad = j->entry ? j->entry(j->arg, lo, hi, scratch) : nvc_interp_run(j->interp, j->arg, lo, hi, scratch);
  int seen = bad ? atomic_load(&j->failed) : 0;
  while (bad && (!seen || bad < seen) && !atomic_compare_exchange_weak(&j->failed, &seen, bad))
    ;
}

int nvd_step_run(const nvd_program *p, const nvd_context *c, int i, nvc_entry entry) {
  const nvd_step *s = &p->step[i];
  job j = { entry, s->kernel->interp, c->arg + s->first, c, 0 };
  if (s->blocks <= s->grain || c->workers == 1)
    run_blocks(&j, 0, s->blocks, 0);
  else
    nvb_pool_run_with(c->workers, run_blocks, &j, s->blocks, s->grain);
  if (!j.failed)
    return NVM_OK;
  return nvb_fail(NVM_ERR_INDEX, "[%s] an index is out of range in step %d of %d: %s", s->hero, i + 1, p->nstep,
                  s->what);
}

static int run_steps(const nvd_program *p, const nvd_context *c) {
  int status = NVM_OK;
  for (int i = 0; i < p->nstep && !status; i++)
    status = nvd_step_run(p, c, i, c->entry[i]);
  return status;
}

/* The run's own values of the arguments, and where its scratch begins. */
static void place(const nvd_program *p, nvd_context *c, char *memory, char *const *leaf, char *const *out) {
  for (int i = 0; i < p->naddress; i++) {
    const nvd_address *b = &p->address[i];
    char *base = b->from == NVF_BLEAF ? leaf[b->id] : b->from == NVF_BOUT ? out[b->id] : memory;
    c->arg[b->arg] = (uint64_t)(uintptr_t)(base + b->offset);
  }
  c->scratch = memory + p->temp_bytes;
}

int nvd_run(nvd_program *p, char *const *leaf, char *const *out) {
  nvd_context *c = context_get(p);
  if (!c)
    return nvb_fail_memory();
  unsigned fp = nvb_fp_enter();
  c->stride = find_code(p, c);
  c->workers = p->wide ? nvb_pool_threads() : 1;
  nvd_buf *buf = NULL;
  char *memory = find_memory(c, (size_t)p->temp_bytes + c->stride * (size_t)c->workers, &buf);
  int status = NVM_ERR_MEMORY;
  if (memory) {
    place(p, c, memory, leaf, out);
    status = p->watched ? nvd_run_watched(p, c) : run_steps(p, c);
    atomic_fetch_add_explicit(&kernels_run, p->nstep, memory_order_relaxed);
  }
  nvd_buf_unref(buf);
  nvb_fp_leave(fp);
  context_put(p, c);
  return status;
}
