/* Makes programs: copies a plan's steps and all that running them needs, so that the plan can be freed. Never decides
   what a step computes, how it is divided into blocks (the plan), or who runs it (solve/solve.c). */
#include "dispatch/program.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/profile.h"
#include "frag/dtype.h"

enum { LINE = 64 };

static _Atomic int64_t kernels_run, kernels_run_on;
int64_t nvd_kernels_run(void) { return atomic_load(&kernels_run) + atomic_load(&kernels_run_on); }
void nvd_count_run(int n) { atomic_fetch_add_explicit(&kernels_run, n, memory_order_relaxed); }
void nvd_count_run_on(int n) {
  int64_t before = atomic_load_explicit(&kernels_run_on, memory_order_relaxed);
  atomic_store_explicit(&kernels_run_on, before + n, memory_order_relaxed);
}

/* ---- preparing */
typedef struct program_request {
  const nvf_plan *plan;
  nvd_program *p;
  const nvd_solver_choice *choice;
  nvd_terms *terms;
} program_request;

static void bind_param(nvd_program *p, const nvf_plan *plan, const nvf_bind *b, const nvf_param *param, int arg) {
  if (b->kind != NVF_BUFFER) {
    p->arg[arg] = b->bits;
    if (b->leaf) p->scalar[p->nscalar++] = (nvd_scalar){ arg, b->leaf - 1, nvg_size(param->type), (int)b->offset };
    return;
  }
  const nvf_buf *buf = &plan->buf[b->buf];
  int64_t offset = b->offset + (buf->kind == NVF_BTEMP ? buf->offset : 0);
  int64_t written = param->written ? buf->bytes - b->offset : 0;
  p->address[p->naddress++] = (nvd_address){ arg, buf->kind, buf->id, offset, written, param->type, param->written };
}

static void bind_all(nvb_arena *a, nvd_program *p, const nvf_plan *plan) {
  for (int i = 0; i < plan->nstep; i++) p->narg += plan->step[i].k->nparam;
  p->step = NVB_NEWN(a, nvd_step, plan->nstep);
  p->arg = NVB_NEWN(a, uint64_t, p->narg);
  p->address = NVB_NEWN(a, nvd_address, p->narg);
  p->scalar = NVB_NEWN(a, nvd_scalar, p->narg);
  p->temp_bytes = (plan->temp_bytes + LINE - 1) & ~(int64_t)(LINE - 1);
  p->nstep = plan->nstep;
  int at = 0;
  for (int i = 0; i < plan->nstep; i++) {
    const nvf_step *from = &plan->step[i];
    int64_t moved = (from->bytes_read + from->bytes_written) / 4, done = from->flops / 64;
    p->step[i] = (nvd_step){ .blocks = from->blocks,
                             .grain = from->grain > 0 ? from->grain : 1,
                             .first = at,
                             .narg = from->k->nparam,
                             .bytes = from->bytes_read + from->bytes_written,
                             .operations = from->flops,
                             .unit = nvd_unit_of(from),
                             .elements = moved > done ? moved : done,
                             .time = from->time,
                             .hero = nvb_strdup(a, from->hero ? from->hero : "map"),
                             .what = nvb_strdup(a, from->what ? from->what : ""),
                             .nchecked = from->nchecked,
                             .checked = nvb_dup(a, from->checked, sizeof *from->checked * (size_t)from->nchecked) };
    for (int j = 0; j < from->nchecked; j++) p->step[i].checked[j].op = nvb_strdup(a, from->checked[j].op);
    for (int j = 0; j < from->k->nparam; j++) bind_param(p, plan, &from->bind[j], &from->k->param[j], at++);
  }
}

static void prepare_program(nvb_arena *work, void *arg) {
  program_request *r = arg;
  (r->p->device ? nvd_gpu_prepare : nvd_cpu_prepare)(work, r->p, r->plan, r->terms);
}

static void bind_program(nvb_arena *a, void *arg) { /* runs in the program's arena */
  program_request *r = arg;
  bind_all(a, r->p, r->plan);
  for (int i = 0; i < r->plan->nstep; i++) {
    r->terms->step = i;
    r->p->step[i].solution = nvd_solve(a, r->plan, i, r->p->device, r->choice ? &r->choice[i] : NULL);
  }
  nvd_cpu_join(a, r->p, r->plan);
}

int nvd_prepare(nvd_program **out, const nvf_plan *plan, struct nvd_device *device, const nvd_solver_choice *choice,
                nvd_terms *terms) {
  *out = NULL;
  nvd_terms only = { 0 };
  nvd_program *p = nvb_calloc(1, sizeof *p);
  nvb_arena *a = nvb_arena_new(), *work = nvb_arena_new();
  int status;
  if (p && a && work) {
    p->arena = a;
    p->device = device;
    p->instrumented = nvb_has(NVB_DUMP, "run") || nvb_has(NVB_CHECK, "bits");
    program_request r = { plan, p, choice, terms ? terms : &only };
    status = nvb_protect(a, bind_program, &r);
    if (!status) status = nvb_protect(work, prepare_program, &r);
  } else {
    nvb_arena_free(a);
    status = nvb_fail_memory();
  }
  nvb_arena_free(work);
  if (!status) *out = p;
  else nvd_program_free(p);
  return status;
}

typedef struct bound_request { const nvf_plan *plan; nvd_program *p; const nvd_program *from; } bound_request;
static void bind_to_kernels(nvb_arena *a, void *arg) {
  bound_request *r = arg;
  bind_all(a, r->p, r->plan);
  nvd_cpu_share(r->p, r->from);
}

int nvd_prepare_bound(nvd_program **out, const nvf_plan *plan, const nvd_program *from) {
  *out = NULL;
  nvd_program *p = nvb_calloc(1, sizeof *p);
  if (p) p->arena = nvb_arena_new();
  int status =
      p && p->arena ? nvb_protect(p->arena, bind_to_kernels, &(bound_request){ plan, p, from }) : nvb_fail_memory();
  if (!status) *out = p;
  else nvd_program_free(p);
  return status;
}

static void check_kernel(nvb_arena *work, void *step) {
  const nvf_step *s = step;
  nvf_kernel_check(work, s->k, s->s);
}

int nvd_prepare_dry(const nvf_plan *plan, struct nvd_device *device, const nvd_solver_choice *choice,
                    nvd_terms *terms) {
  nvb_arena *work = nvb_arena_new();
  int status = work ? NVM_OK : nvb_fail_memory(), i = 0;
  for (; i < plan->nstep && !status; i += !status) {
    status = nvd_solve_dry(plan, i, device, choice ? &choice[i] : NULL);
    if (!status && !plan->step[i].routine) status = nvb_protect(work, check_kernel, &plan->step[i]);
  }
  nvb_arena_free(work);
  if (terms) terms->step = i;
  return status;
}

int nvd_outdated(nvd_program *p) { return p->device && nvd_gpu_outdated(p); }
int nvd_is_ready(nvd_program *p) { return !p->device || nvd_gpu_ready(p); }
void nvd_compile(nvd_program *p) {
  if (p->device) nvd_gpu_compile(p);
}

int64_t nvd_program_bytes(const nvd_program *p) { return (int64_t)(sizeof *p + nvb_arena_bytes(p->arena)) + p->bytes; }

void nvd_program_free(nvd_program *p) {
  if (!p) return;
  for (int i = 0; i < p->nstep; i++) nvd_solution_free(p->step[i].solution);
  (p->device ? nvd_gpu_free : nvd_cpu_free)(p);
  nvb_arena_free(p->arena);
  nvb_free(p);
}

/* ---- running: what the CPU and GPUs share */
uint64_t nvd_scalar_value(const nvd_scalar *s, const char *data) { /* zero extended */
  uint64_t bits = 0;
  memcpy(&bits, data + s->offset, (size_t)s->bytes);
  return bits;
}

void nvd_index_error(char *text, size_t size, const nvd_program *p, int i, int failed, const int64_t *at) {
  const nvd_step *s = &p->step[i];
  const nvf_checked *c = NULL;
  char index[32] = "an index";
  for (int j = 0; j < s->nchecked; j++)
    if (s->checked[j].stmt + 1 == failed) c = &s->checked[j];
  if (c && at) /* as the user gave it: negative indices count from the end */
    snprintf(index, sizeof index, "index %lld", (long long)(*at < 0 ? *at - c->extent : *at));
  if (c)
    snprintf(text, size, "[%s] %s is out of range for axis %lld of extent %lld", c->op, index, (long long)c->axis,
             (long long)c->extent);
  else snprintf(text, size, "[%s] an index is out of range: %s", s->hero, s->what);
}
