/* Programs: the steps of a plan with all that running them needs, apart from the plan's memory. A run takes its memory and
   its code before its first step, so that after that only an index out of range can fail it. Never decides what a step
   computes or how it is cut into blocks: that is the plan's. */
#include "dispatch/dispatch.h"
#include <stdatomic.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/code.h"

enum { LINE = 64, SPARES = 4, KEEP = 256 << 10 };

typedef struct step {
  nvd_kernel *kernel;
  int64_t blocks, grain, elements;
  int first;                     /* of its arguments in the program's array of them */
  const char *hero, *what;
} step;
typedef struct address { int arg; nvf_bufkind from; int id; int64_t offset; } address; /* an argument that a run fills in */

/* What one run needs; a program keeps a few for the next ones. */
typedef struct context {
  char *memory;                  /* temporaries, then scratch of each worker; at most KEEP bytes stay here */
  size_t room;
  nvc_entry *entry;              /* of each step for this run, NULL: interpreted */
  uint64_t arg[];                /* of all steps; then the entries */
} context;

struct nvd_program {
  nvb_arena *arena;
  int nstep, narg, naddress;
  int wide;                      /* some step has more blocks than a chunk: the pool is used */
  nvd_tier tier;
  step *step;
  uint64_t *arg;                 /* sizes and scalars in place, addresses 0 */
  address *address;
  int64_t temp_bytes;
  _Atomic(context *) spare[SPARES];
};

static _Atomic int64_t kernels_run;
static _Thread_local int refused;
int64_t nvd_kernels_run(void) { return atomic_load(&kernels_run); }
int nvd_refused_step(void) { return refused; }

/* ---- preparing */
typedef struct request { const nvf_plan *plan; nvd_program *p; nvb_arena *work; } request;

static void bind(nvd_program *p, const nvf_plan *plan, const nvf_bind *b, int arg) {
  if (b->kind != NVF_BUFFER) {
    p->arg[arg] = b->bits;
    return;
  }
  const nvf_buf *buf = &plan->buf[b->buf];
  int64_t offset = b->offset + (buf->kind == NVF_BTEMP ? buf->offset : 0);
  p->address[p->naddress++] = (address){ arg, buf->kind, buf->id, offset };
}

static void prepare(nvb_arena *a, void *arg) {
  request *r = arg;
  const nvf_plan *plan = r->plan;
  nvd_program *p = r->p;
  for (int i = 0; i < plan->nstep; i++)
    p->narg += plan->step[i].k->nparam;
  p->step = NVB_NEWN(a, step, plan->nstep);
  p->arg = NVB_NEWN(a, uint64_t, p->narg);
  p->address = NVB_NEWN(a, address, p->narg);
  p->temp_bytes = (plan->temp_bytes + LINE - 1) & ~(int64_t)(LINE - 1);
  int at = 0;
  for (int i = 0; i < plan->nstep; i++) {
    const nvf_step *from = &plan->step[i];
    step *s = &p->step[i];
    *s = (step){ .blocks = from->blocks, .grain = from->grain > 0 ? from->grain : 1, .first = at,
                 .elements = (from->bytes_read + from->bytes_written) / 4,
                 .hero = nvb_strdup(a, from->hero ? from->hero : "map"), .what = nvb_strdup(a, from->what ? from->what : "") };
    p->wide |= s->blocks > s->grain;
    for (int j = 0; j < from->k->nparam; j++)
      bind(p, plan, &from->bind[j], at++);
    refused = i;
    int status = nvd_kernel_get(&s->kernel, r->work, from->k, from->s);
    p->nstep = i + 1; /* those with a kernel to give back */
    if (status)
      nvb_throw(a, status, "%s", nvb_message());
    if (p->tier == NVD_NATIVE && !atomic_load(&s->kernel->entry))
      nvd_kernel_warm(s->kernel, p->tier, 0);
  }
}

int nvd_prepare(nvd_program **out, const nvf_plan *plan) {
  *out = NULL;
  nvd_program *p = nvb_calloc(1, sizeof *p);
  nvb_arena *a = nvb_arena_new(), *work = nvb_arena_new();
  int status;
  if (p && a && work) {
    p->arena = a;
    p->tier = nvd_tier_now();
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

static void context_free(context *c) {
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
  for (int i = 0; i < SPARES; i++)
    context_free(atomic_load(&p->spare[i]));
  nvb_arena_free(p->arena);
  nvb_free(p);
}

/* ---- contexts */
static context *context_get(nvd_program *p) {
  for (int i = 0; i < SPARES; i++) {
    context *c = atomic_load_explicit(&p->spare[i], memory_order_relaxed);
    if (c && (c = atomic_exchange_explicit(&p->spare[i], NULL, memory_order_acquire)))
      return c;
  }
  size_t args = sizeof(uint64_t) * (size_t)p->narg;
  context *c = nvb_alloc(sizeof *c + args + sizeof(nvc_entry) * (size_t)p->nstep);
  if (!c)
    return NULL;
  *c = (context){ .entry = (nvc_entry *)(void *)(c->arg + p->narg) };
  memcpy(c->arg, p->arg, args);
  return c;
}

static void context_put(nvd_program *p, context *c) {
  for (int i = 0; i < SPARES; i++) {
    context *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&p->spare[i], &none, c, memory_order_release, memory_order_relaxed))
      return;
  }
  context_free(c);
}

/* Code of every step, compiled now where the tier asks for it. Returns the scratch bytes that a worker needs. */
static size_t find_code(nvd_program *p, context *c) {
  int64_t scratch = 0;
  for (int i = 0; i < p->nstep; i++) {
    nvd_kernel *k = p->step[i].kernel;
    nvc_entry e = p->tier == NVD_INTERPRETED ? NULL : atomic_load_explicit(&k->entry, memory_order_acquire);
    if (!e)
      e = nvd_kernel_warm(k, p->tier, p->step[i].elements);
    int64_t need = e ? k->native_scratch : k->interp_scratch;
    scratch = need > scratch ? need : scratch;
    c->entry[i] = e;
  }
  return ((size_t)scratch + LINE - 1) & ~(size_t)(LINE - 1);
}

/* Memory for the run: the context's own if it is little, else a buffer that the run gives back. NULL when there is none. */
static char *find_memory(context *c, size_t need, nvd_buf **buf) {
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
  char *scratch;
  size_t stride;                 /* bytes of scratch of a worker */
  _Atomic int failed;            /* lowest id + 1 of a CHECK that failed, of those seen; 0: none */
} job;

static void run_blocks(void *arg, int64_t lo, int64_t hi, int worker) {
  job *j = arg;
  char *scratch = j->scratch + (size_t)worker * j->stride;
  int bad = j->entry ? j->entry(j->arg, lo, hi, scratch) : nvc_interp_run(j->interp, j->arg, lo, hi, scratch);
  int seen = bad ? atomic_load(&j->failed) : 0;
  while (bad && (!seen || bad < seen) && !atomic_compare_exchange_weak(&j->failed, &seen, bad))
    ;
}

static int run_steps(nvd_program *p, const context *c, char *scratch, size_t stride, int workers) {
  for (int i = 0; i < p->nstep; i++) {
    const step *s = &p->step[i];
    job j = { c->entry[i], s->kernel->interp, c->arg + s->first, scratch, stride, 0 };
    if (s->blocks <= s->grain || workers == 1)
      run_blocks(&j, 0, s->blocks, 0);
    else
      nvb_pool_run_with(workers, run_blocks, &j, s->blocks, s->grain);
    if (j.failed)
      return nvb_fail(NVM_ERR_INDEX, "[%s] an index is out of range in step %d of %d: %s", s->hero, i + 1, p->nstep, s->what);
  }
  return NVM_OK;
}

int nvd_run(nvd_program *p, char *const *leaf, char *const *out) {
  context *c = context_get(p);
  if (!c)
    return nvb_fail_memory();
  unsigned fp = nvb_fp_enter();
  size_t stride = find_code(p, c), temp = (size_t)p->temp_bytes;
  int workers = p->wide ? nvb_pool_threads() : 1, status = NVM_ERR_MEMORY;
  nvd_buf *buf = NULL;
  char *memory = find_memory(c, temp + stride * (size_t)workers, &buf);
  if (memory) {
    for (int i = 0; i < p->naddress; i++) {
      const address *b = &p->address[i];
      char *base = b->from == NVF_BLEAF ? leaf[b->id] : b->from == NVF_BOUT ? out[b->id] : memory;
      c->arg[b->arg] = (uint64_t)(uintptr_t)(base + b->offset);
    }
    status = run_steps(p, c, memory + temp, stride, workers);
    atomic_fetch_add_explicit(&kernels_run, p->nstep, memory_order_relaxed);
  }
  nvd_buf_unref(buf);
  nvb_fp_leave(fp);
  context_put(p, c);
  return status;
}
