/* Prepares and launches programs on a GPU; never waits for one. A program that runs again on the same stream replays
   each run of consecutive kernels as a CUDA graph, whose nodes are updated where arguments changed; library steps come
   between the graphs. The first runs, runs under a caller's capture, and long kernels that can overlap earlier work are
   launched one by one. Decides whether indices need 64 bits and when graphs are built. */
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/cuda/profile.h"
#include "dispatch/cuda/tensor_map.h"
#include "dispatch/cuda/tier_up.h"
#include "dispatch/profile.h"

/* LONG: ns; steps that take longer on average hide single launches */
enum { BUILD_AT = 3, ALIGN = 256, PARAM_BYTES = 4096, MAP_BYTES = 128, LONG = 7000 };
static const int64_t NARROW = 1 << 30;

/* ---- preparing */

/* The number of elements from the first to the last element of a leaf in memory. */
static int64_t extent_of(const nvg_leaf *l) {
  int64_t n = 1;
  for (int d = 0; d < l->rank; d++) n += (l->shape[d] - 1) * (l->stride[d] < 0 ? -l->stride[d] : l->stride[d]);
  return n;
}

/* Does some value of the graph have so many elements that kernels need 64-bit indices? A flattened index ranges over
   some value of the graph. */
static int graph_is_wide(const nvg_graph *g) {
  int wide = 0;
  for (int i = 0; g && i < g->n; i++) wide |= g->v[i].size >= NARROW;
  for (int i = 0; g && i < g->nleaf; i++) wide |= extent_of(&g->leaf[i]) >= NARROW;
  return wide;
}

static int step_is_wide(const nvf_plan *plan, const nvf_step *s) {
  int wide = s->blocks >= NARROW;
  for (int i = 0; i < s->k->nparam; i++) {
    const nvf_bind *b = &s->bind[i];
    int64_t n = (int64_t)b->bits;
    if (b->kind == NVF_BUFFER) wide |= plan->buf[b->buf].bytes / nvg_size(s->k->param[i].type) >= NARROW;
    else if (b->kind == NVF_SIZE) wide |= n >= NARROW || n <= -NARROW;
  }
  return wide;
}

static int64_t param_bytes(const nvf_kernel *k) { /* as with 64-bit indices, so that one plan serves both widths */
  int64_t n = 8 * NVD_OWN_ARGS;
  for (int i = 0; i < k->nparam; i++) {
    int64_t size = k->param[i].kind == NVF_SCALAR ? nvg_size(k->param[i].type) : 8;
    n = (n + size - 1) / size * size + size;
  }
  return n;
}

static int own_arg(const nvd_program *p, int step, int which) { return p->narg + NVD_OWN_ARGS * step + which; }

/* Makes a replay with its arrays and the constant parts of its launches. NULL: out of memory. */
static nvd_replay *replay_new(const nvd_program *p) {
  size_t nstep = (size_t)p->nstep, nmap = (size_t)nvd_maps_count(p), nparam = (size_t)nvd_args(p);
  nvd_replay *r = nvb_calloc(1, sizeof *r + nstep * (sizeof *r->launch + sizeof *r->node + sizeof *r->part) +
                                    nparam * (sizeof *r->arg + sizeof(void *)) + nmap * sizeof(void *) +
                                    (nmap + 1) * sizeof *r->map + nstep);
  if (!r) return NULL;
  r->launch = (nvd_node_params *)(void *)(r + 1);
  r->part = (struct nvd_graph *)(void *)(r->launch + nstep);
  r->node = (void **)(void *)(r->part + nstep);
  r->arg = (uint64_t *)(void *)(r->node + nstep);
  void **param = (void **)(void *)(r->arg + nparam);
  uintptr_t behind = (uintptr_t)(param + nparam + nmap), align = _Alignof(nvd_map);
  nvd_map *map = r->map = (nvd_map *)((behind + align - 1) / align * align);
  r->changed = (char *)(map + nmap);
  memcpy(r->arg, p->arg, sizeof *r->arg * (size_t)p->narg);
  for (int i = 0; i < p->nstep; i++) {
    const nvd_step *s = &p->step[i];
    if (!s->gpu) continue;
    r->provisional |= atomic_load(&s->gpu->expects);
    const nvd_gpu_kernel *k = nvd_gpu_kernel_now(s->gpu);
    r->launch[i] = (nvd_node_params){ .function = k->function,
                                      .grid = { nvd_blocks_launched(p->device, k, s->blocks), 1, 1 },
                                      .block = { (unsigned)k->threads, 1, 1 },
                                      .shared = (unsigned)k->shared,
                                      .param = param };
    for (int j = 0; j < s->narg; j++) *param++ = &r->arg[s->first + j];
    if (k->checks) *param++ = &r->arg[own_arg(p, i, NVD_CHECKS)];
    if (k->scratch) *param++ = &r->arg[own_arg(p, i, NVD_SCRATCH)];
    if (k->flags) *param++ = &r->arg[own_arg(p, i, NVD_FLAGS)];
    for (int j = 0; j < k->nmap; j++) *param++ = map++;
  }
  return r;
}

static void note_used(struct used *u, int *n, int id, int writes) {
  int i = 0;
  while (i < *n && u[i].id != id) i++;
  if (i == *n) u[(*n)++] = (struct used){ id, 0 };
  u[i].writes |= writes;
}

static void list_buffers(nvd_program *p) {
  nvd_gpu_program *g = p->gpu;
  g->leaf = NVB_NEWN(p->arena, struct used, p->naddress);
  g->out = NVB_NEWN(p->arena, struct used, p->naddress);
  for (int i = 0; i < p->naddress; i++) {
    const nvd_address *b = &p->address[i];
    if (b->from == NVF_BLEAF) note_used(g->leaf, &g->nleaf, b->id, b->stored);
    else if (b->from == NVF_BOUT) note_used(g->out, &g->nout, b->id, 1);
  }
}

/* Does the step note failures in a slot? */
static int may_fail(const nvd_step *s) { return s->gpu ? s->gpu->checks : s->solution && s->solution->what; }

static void add_check(nvd_checks *c, int slot, int failed) {
  c->at[c->n].slot = slot;
  c->at[c->n].failed = failed;
  c->at[c->n++].nbatch = -1;
}

static void add_matrix_check(nvd_checks *c, int slot, const nvd_solution *s) {
  add_check(c, slot, 0);
  c->at[c->n - 1].nbatch = s->nbatch;
  memcpy(c->at[c->n - 1].batch, s->batch, sizeof *s->batch * (size_t)s->nbatch);
  snprintf(c->at[c->n - 1].text, sizeof c->at->text, "%s", s->what);
}

static void list_checks(nvb_arena *work, nvd_program *p) {
  nvd_gpu_program *g = p->gpu;
  int slots = 0, n = 0;
  g->check = NVB_NEWN(p->arena, int, p->nstep);
  for (int i = 0; i < p->nstep; i++) {
    g->check[i] = may_fail(&p->step[i]) ? slots++ : -1;
    n += p->step[i].nchecked + 1;
  }
  if (!slots) return;
  g->checks = nvb_calloc(1, sizeof *g->checks + sizeof g->checks->at[0] * (size_t)n);
  if (!g->checks) nvb_throw(work, NVM_ERR_MEMORY, "out of memory");
  g->checks->refs = 1;
  g->checks->nslot = slots;
  for (int i = 0; i < p->nstep; i++) {
    if (g->check[i] >= 0 && p->step[i].solution) add_matrix_check(g->checks, g->check[i], p->step[i].solution);
    for (int j = 0; j <= p->step[i].nchecked && g->check[i] >= 0 && !p->step[i].solution; j++) {
      int failed = j < p->step[i].nchecked ? p->step[i].checked[j].stmt + 1 : 0;
      add_check(g->checks, g->check[i], failed);
      nvd_index_error(g->checks->at[g->checks->n - 1].text, sizeof g->checks->at->text, p, i, failed, NULL);
    }
  }
}

static void list_parts(nvb_arena *a, nvd_program *p) {
  nvd_gpu_program *g = p->gpu;
  g->part = NVB_NEWN(a, struct part, p->nstep);
  for (int i = 0; i < p->nstep; i++) {
    if (!i || p->step[i].solution || p->step[i - 1].solution) g->part[g->npart++].first = i;
    g->part[g->npart - 1].end = i + 1;
  }
}

static void measure_arguments(nvb_arena *work, nvd_program *p, const nvf_plan *plan, int *at) {
  nvd_gpu_program *g = p->gpu;
  int64_t most = 0;
  int n = 0;
  for (int i = 0; i < p->nstep; i++) {
    const nvd_step *s = &p->step[i];
    *at = i;
    n += snprintf(g->label + n, sizeof g->label - (size_t)n, "%s%s", i ? "+" : "",
                  s->solution ? s->solution->by->name : s->gpu->title);
    n = n < NVD_LABEL ? n : NVD_LABEL - 1;
    if (s->solution) {
      g->captures = !g->checks;
      g->workspace = s->solution->workspace > g->workspace ? s->solution->workspace : g->workspace;
      continue;
    }
    if (s->blocks > INT32_MAX / s->gpu->cluster) g->too_large = s;
    int maps = s->gpu->nmap ? (s->gpu->nmap + 1) * MAP_BYTES : 0; /* one more for their alignment */
    if (param_bytes(plan->step[i].k) + maps > PARAM_BYTES)
      nvb_throw(work, NVM_ERR_UNSUPPORTED, "[kernel] %s has more than %d bytes of arguments", s->gpu->title,
                PARAM_BYTES);
    int64_t blocks = nvd_blocks_launched(p->device, s->gpu, s->blocks), bytes = s->gpu->scratch * blocks;
    most = bytes > most ? bytes : most;
    g->flags |= s->gpu->flags > 0;
    if ((NVC_FLAGS + s->gpu->flags * blocks) * (int64_t)sizeof(unsigned) > NVD_POST_BYTES)
      nvb_throw(work, NVM_ERR_UNSUPPORTED, "[kernel] %s has too many blocks that wait for each other", s->gpu->title);
  }
  g->scratch = (p->temp_bytes + ALIGN - 1) & ~(int64_t)(ALIGN - 1);
  g->memory = most ? g->scratch + most : p->temp_bytes;
}

static int may_overlap(const nvd_program *p) {
  double time = 0;
  int overlaps = p->device->overlaps;
  for (int i = 0; i < p->nstep; i++) {
    overlaps &= !p->step[i].solution;
    time += p->step[i].time;
  }
  return overlaps && time > (double)LONG * p->nstep;
}

typedef struct arrangement { nvd_program *p; nvb_arena *work; const nvf_plan *plan; int *at; } arrangement;
static void arrange_program(nvb_arena *a, void *arg) { /* runs in the program's arena */
  arrangement *r = arg;
  nvd_program *p = r->p;
  list_buffers(p);
  list_checks(a, p);
  list_parts(a, p);
  p->gpu->overlaps = may_overlap(p);
  measure_arguments(a, p, r->plan, r->at);
  p->gpu->from = NVB_NEWN(a, nvd_fault *, p->gpu->nleaf + 1);
  if (!(p->gpu->plain = replay_new(p))) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
}

static void make_gpu(nvb_arena *a, void *arg) { ((nvd_program *)arg)->gpu = NVB_NEW(a, nvd_gpu_program); }

/* Runs fn under the program's own arena, which keeps what fn makes, and passes an error on to `work`. */
static void run_in_own_arena(nvb_arena *work, nvd_program *p, void (*fn)(nvb_arena *a, void *arg), void *arg) {
  int status = nvb_protect(p->arena, fn, arg);
  if (status) nvb_throw(work, status, "%s", nvb_message());
}

/* Does some hint of the schedule allow results other bits? */
static int allows_other_bits(const nvf_schedule *s) {
  for (int i = 0; i < s->nhint; i++)
    if (nvf_hint_get(s->hint[i].hint)->other_bits) return 1;
  return 0;
}

void nvd_gpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms) {
  terms->step = 0;
  if (nvd_device_ready(p->device)) nvb_throw(work, nvb_status(), "%s", nvb_message());
  run_in_own_arena(work, p, make_gpu, p);
  nvd_gpu_order *order = NVB_NEWN(work, nvd_gpu_order, p->nstep);
  int *step = NVB_NEWN(work, int, p->nstep + 1), n = 0; /* the step of each order */
  nvd_reap_captured();
  int wide = graph_is_wide(plan->g);
  atomic_store(&p->spilled, atomic_load(&nvd_gpu_spilled));
  for (int i = 0; i < p->nstep; i++) {
    if (p->step[i].solution) continue;
    step[n] = i;
    order[n++] = (nvd_gpu_order){ .k = plan->step[i].k,
                                  .s = plan->step[i].s,
                                  .wide = wide || step_is_wide(plan, &plan->step[i]) };
  }
  int bad, status = nvd_gpu_kernels_get(p->device, work, order, n, terms, &bad);
  terms->step = step[bad];
  for (int i = 0; i < n; i++) p->step[step[i]].gpu = order[i].kernel, p->step[step[i]].spills = order[i].spills;
  for (int i = 0; i < p->nstep && !status && nvb_has(NVB_CHECK, "bits"); i++)
    if (p->step[i].gpu && !allows_other_bits(plan->step[i].s))
      status = nvd_kernel_get(&p->step[i].kernel, NULL, work, &plan->step[i]);
  if (status) nvb_throw(work, status, "%s", nvb_message());
  run_in_own_arena(work, p, arrange_program, &(arrangement){ p, work, plan, &terms->step });
}

int nvd_gpu_outdated(nvd_program *p) {
  unsigned now = atomic_load_explicit(&nvd_gpu_spilled, memory_order_relaxed);
  if (atomic_load_explicit(&p->spilled, memory_order_relaxed) == now) return 0;
  for (int i = 0; i < p->nstep; i++) {
    const nvd_gpu_kernel *k = p->step[i].gpu;
    if (k && !p->step[i].spills && nvd_gpu_code_spills(nvd_gpu_kernel_now(k))) return 1;
    if (k && !atomic_load(&k->expects) && !nvd_gpu_kernel_ready(k)) return 1;
  }
  atomic_store(&p->spilled, now);
  return 0;
}

int nvd_gpu_ready(nvd_program *p) {
  if (atomic_load_explicit(&p->ready, memory_order_acquire)) return 1;
  int waits = !nvd_may_time(p->device), ready = 1;
  for (int i = 0; i < p->nstep; i++) {
    if (p->step[i].gpu && waits) nvd_optimized_wait(p->step[i].gpu);
    ready &= !p->step[i].gpu || nvd_gpu_kernel_ready(p->step[i].gpu);
  }
  atomic_store_explicit(&p->ready, ready, memory_order_release);
  return ready;
}

void nvd_gpu_compile(nvd_program *p) {
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].gpu) nvd_optimized_start(p->step[i].gpu);
}

static void graphs_free(const nvd_program *p, nvd_replay *r) {
  int entered = nvd_enter(p->device);
  for (int i = 0; i < p->gpu->npart; i++) {
    if (r->part[i].exec) nvd_cu.cuGraphExecDestroy(r->part[i].exec);
    if (r->part[i].graph) nvd_cu.cuGraphDestroy(r->part[i].graph);
    r->part[i] = (struct nvd_graph){ NULL, NULL };
  }
  nvd_leave(entered);
  r->built = 0;
}

void nvd_gpu_free(nvd_program *p) {
  nvd_gpu_program *g = p->gpu;
  if (nvd_cuda_forked) /* CUDA objects belong to the parent process */
    return;
  if (g) {
    for (int i = 0; i < NVD_REPLAYS && g->kept[i]; i++) {
      graphs_free(p, g->kept[i]);
      int entered = nvd_enter(p->device);
      nvd_run_graphs_free(g->kept[i]);
      nvd_leave(entered);
      nvb_free(g->kept[i]);
    }
    nvb_free(g->plain);
    nvd_checks_unref(g->checks);
  }
  for (int i = 0; i < p->nstep; i++) {
    nvd_gpu_kernel_unref(p->step[i].gpu);
    nvd_kernel_unref(p->step[i].kernel);
  }
}

/* ---- launching */
static int run_library(nvd_gpu_run *x, int i) {
  const nvd_step *s = &x->p->step[i];
  nvd_run_args at = { .arg = x->r->arg + s->first, .stream = x->stream, .captured = x->captured };
  if (x->p->gpu->check[i] >= 0) at.failed = nvd_fault_slot(x->fault, x->p->gpu->check[i]);
  if (x->workspace) at.workspace = x->workspace->b.data, at.workspace_bytes = (int64_t)x->workspace->b.bytes;
  /* the library may load code, which a capture forbids otherwise */
  int entered = x->captured ? nvd_enter(x->p->device) : 0;
  x->status = s->solution->by->run(s->solution, &at);
  /* that the context is broken no library says; without the lock it will make the device a lost one */
  int error = x->status == NVM_ERR_DEVICE ? nvd_cu.cudaGetLastError() : 0, broken = nvd_breaks_context(error);
  if (broken) x->status = NVM_OK;
  if (x->captured) nvd_leave(entered);
  return broken ? error : 0;
}

int nvd_gpu_launch(nvd_gpu_run *x, int i) {
  const nvd_step *s = &x->p->step[i];
  const nvd_node_params *l = &x->r->launch[i];
  if (s->solution) return run_library(x, i);
  int into_graph = x->captured || x->stream != x->q->stream;
  nvd_attribute overlaps = { .id = CUDA_LAUNCH_OVERLAPS, .value.number = 1 };
  nvd_launch at = { .grid = { l->grid[0], 1, 1 },
                    .block = { l->block[0], 1, 1 },
                    .shared = l->shared,
                    .stream = x->stream,
                    .attribute = &overlaps,
                    .nattribute = x->p->device->overlaps && !into_graph && !x->profiled };
  return nvd_cu.cuLaunchKernelEx(&at, l->function, l->param, NULL);
}

/* Builds a graph that is a chain of the part's steps; no graph if none of them has blocks. Returns a CUDA error
   code. */
static int build_part(const nvd_program *p, nvd_replay *r, const struct part *part, struct nvd_graph *to) {
  int error = nvd_cu.cuGraphCreate(&to->graph, 0);
  void *before = NULL;
  for (int i = part->first; i < part->end && !error; i++) {
    if (!p->step[i].blocks) continue;
    error = nvd_cu.cuGraphAddKernelNode(&r->node[i], to->graph, before ? &before : NULL, before != NULL, &r->launch[i]);
    before = r->node[i];
  }
  return error || !before ? error : nvd_cu.cuGraphInstantiateWithFlags(&to->exec, to->graph, 0);
}

/* Builds the graphs of all parts. Failing is no error: the kernels are then launched one by one. */
static void build_graphs(const nvd_program *p, nvd_replay *r) {
  const nvd_gpu_program *g = p->gpu;
  int entered = nvd_enter(p->device), error = 0;
  for (int i = 0; i < g->npart && !error; i++) {
    if (p->step[g->part[i].first].solution) continue;
    error = build_part(p, r, &g->part[i], &r->part[i]);
    r->built |= r->part[i].exec != NULL;
  }
  memset(r->changed, 0, (size_t)p->nstep);
  if (error || !r->built) {
    nvd_cu.cudaGetLastError();
    graphs_free(p, r);
    r->calls = -1;
  }
  nvd_leave(entered);
}

static nvd_replay *replay_of(nvd_program *p, nvd_gpu_stream *q) {
  nvd_gpu_program *g = p->gpu;
  int i = 0;
  while (i < NVD_REPLAYS && g->kept[i] && g->kept[i]->q != q) i++;
  if (i < NVD_REPLAYS && !g->kept[i] && (g->kept[i] = replay_new(p))) g->kept[i]->q = q;
  nvd_replay *r = i < NVD_REPLAYS && g->kept[i] ? g->kept[i] : g->plain;
  if (r != g->plain && r->calls >= 0 && r->calls < BUILD_AT && ++r->calls == BUILD_AT) build_graphs(p, r);
  return r;
}

/* ---- one run */
static int put_argument(nvd_replay *r, int at, uint64_t value) {
  int changed = r->arg[at] != value;
  r->arg[at] = value;
  return changed;
}

/* Fills in the arguments of step i; `address` and `scalar` are positions in the program's lists. Returns 1 if an
   argument differs from the replay's last run. */
static int fill_arguments(nvd_gpu_run *x, int i, int *address, int *scalar) {
  const nvd_program *p = x->p;
  int end = p->step[i].first + p->step[i].narg, changed = 0;
  char *memory = x->memory ? x->memory->b.data : NULL;
  for (; *address < p->naddress && p->address[*address].arg < end; ++*address) {
    const nvd_address *b = &p->address[*address];
    char *base = b->from == NVF_BLEAF ? x->leaf[b->id].data : b->from == NVF_BOUT ? x->out[b->id].data : memory;
    changed |= put_argument(x->r, b->arg, (uint64_t)(uintptr_t)(base + b->offset));
  }
  for (; *scalar < p->nscalar && p->scalar[*scalar].arg < end; ++*scalar) {
    const nvd_scalar *s = &p->scalar[*scalar];
    changed |= put_argument(x->r, s->arg, nvd_scalar_value(s, x->leaf[s->leaf].data));
  }
  if (p->gpu->check[i] >= 0)
    changed |=
        put_argument(x->r, own_arg(p, i, NVD_CHECKS), (uint64_t)(uintptr_t)nvd_fault_slot(x->fault, p->gpu->check[i]));
  if (p->step[i].gpu && p->step[i].gpu->scratch)
    changed |= put_argument(x->r, own_arg(p, i, NVD_SCRATCH), (uint64_t)(uintptr_t)(memory + p->gpu->scratch));
  if (x->flags) changed |= put_argument(x->r, own_arg(p, i, NVD_FLAGS), (uint64_t)(uintptr_t)x->flags->b.data);
  if (p->step[i].gpu && p->step[i].gpu->nmap) x->status = nvd_maps_fill(x->r, p, i, &changed);
  return changed;
}

static int is_idle(const nvd_step *s) { return !s->blocks && !s->solution; }

/* Launches all steps one by one. Returns a CUDA error code. */
static int launch_all(nvd_gpu_run *x) {
  const nvd_program *p = x->p;
  int (*launch)(nvd_gpu_run *x, int i) = p->instrumented && !x->captured ? nvd_gpu_step_instrumented
                                         : x->profiled                   ? nvd_gpu_step_profiled
                                                                         : nvd_gpu_launch;
  int error = 0;
  for (int i = 0; i < p->nstep && !error && !x->status; i++)
    if (!is_idle(&p->step[i])) error = launch(x, i);
  return error;
}

/* Launches each run of kernels as its graph, after updating the nodes whose arguments changed. Returns a CUDA error
   code. */
static int launch_parts(nvd_gpu_run *x) {
  const nvd_program *p = x->p;
  nvd_replay *r = x->r;
  int error = 0;
  for (int k = 0; k < p->gpu->npart; k++) {
    void *exec = r->part[k].exec;
    for (int i = p->gpu->part[k].first; i < p->gpu->part[k].end && !error && !x->status; i++) {
      if (is_idle(&p->step[i])) continue;
      if (!exec) error = nvd_gpu_launch(x, i);
      else if (r->changed[i]) error = nvd_cu.cuGraphExecKernelNodeSetParams(exec, r->node[i], &r->launch[i]);
      r->changed[i] = 0;
    }
    if (exec && !error && !x->status) error = nvd_cu.cuGraphLaunch(exec, x->stream);
  }
  return error;
}

/* Is launching kernel by kernel better than a graph? A kernel launch can overlap the work before it, which a graph
   launch never does, but costs the host more time, which only long kernels behind pending work hide. */
static int gains_by_overlap(const nvd_gpu_run *x) {
  int waits = x->q->done < atomic_load_explicit(&x->q->issued, memory_order_relaxed);
  return x->p->gpu->overlaps && waits;
}

/* Replaces baseline code by optimised code that has arrived; the graphs are then built again. */
static void take_optimized(const nvd_program *p, nvd_replay *r) {
  int changed = r->provisional = 0;
  for (int i = 0; i < p->nstep; i++) {
    if (!p->step[i].gpu) continue;
    r->provisional |= atomic_load(&p->step[i].gpu->expects);
    const nvd_gpu_kernel *k = nvd_gpu_kernel_now(p->step[i].gpu);
    changed |= r->launch[i].function != k->function;
    r->launch[i].function = k->function;
    r->launch[i].shared = (unsigned)k->shared;
  }
  if (!changed) return;
  int entered = nvd_enter(p->device);
  nvd_run_graphs_free(r);
  nvd_leave(entered);
  graphs_free(p, r);
  r->calls = r->calls < 0 ? r->calls : 0;
}

static int clear_flags(const nvd_devbuf *posts, void *stream) {
  return nvd_cu.cudaMemsetAsync(posts->b.data, 0, NVD_POST_BYTES, stream);
}

/* Fills in the arguments and launches the run by the graph of a whole run, by graphs of parts, or step by step. Returns
   a CUDA error code. */
int nvd_gpu_start(nvd_gpu_run *x) {
  const nvd_program *p = x->p;
  nvd_replay *r = x->r;
  x->profiled = !x->captured && nvd_is_profiling();
  int address = 0, scalar = 0, error = x->captured && x->flags ? clear_flags(x->flags, x->stream) : 0;
  if (r->provisional) take_optimized(p, r);
  for (int i = 0; i < p->nstep && !x->status; i++) r->changed[i] |= (char)fill_arguments(x, i, &address, &scalar);
  if (!x->status && !error) {
    void *captured = p->gpu->captures && r != p->gpu->plain && !x->profiled ? nvd_run_graph_get(x, launch_all) : NULL;
    error = captured                                           ? nvd_cu.cuGraphLaunch(captured, x->stream)
            : r->built && !x->profiled && !gains_by_overlap(x) ? launch_parts(x)
                                                               : launch_all(x);
  }
  if (r->built && (error || x->status)) { /* a graph may hold only part of the new arguments */
    graphs_free(p, r);
    r->calls = -1;
  }
  nvd_count_run_on(error || x->status ? 0 : p->nstep);
  return error;
}

/* The inter-CTA flags of a stream, which its kernels share since they run one after the other. NULL: out of memory. */
static nvd_devbuf *flags_of(nvd_gpu_stream *q) {
  nvd_devbuf *c = q->flags ? NULL : nvd_devbuf_alloc(q, NVD_POST_BYTES);
  if (c && (nvd_devbuf_use(c, q, 1) || clear_flags(c, q->stream))) nvd_devbuf_free(c);
  else if (c) q->flags = c;
  return q->flags;
}

static nvd_devbuf *devbuf_of(const nvd_operand *o) { return (nvd_devbuf *)o->buf; }

static int check_operands(const nvd_program *p, const nvd_operand *o, const struct used *u, int n) {
  for (int i = 0; i < n; i++)
    if (!o[u[i].id].buf || o[u[i].id].buf->device != p->device)
      return nvb_fail(NVM_ERR_INTERNAL, "[run] operand %d is not on cuda:%d", u[i].id, p->device->ordinal);
  return NVM_OK;
}

/* Checked at the run, not before: a result of so many blocks rarely fits into memory, and then that is the error. */
static int check_blocks(const nvd_step *s) {
  return s ? nvb_fail(NVM_ERR_UNSUPPORTED, "[run] %s has %lld blocks; a launch has at most %d", s->gpu->title,
                      (long long)s->blocks * s->gpu->cluster, INT32_MAX)
           : NVM_OK;
}

/* Orders the run behind earlier uses of all buffers that it reads or writes. Returns a CUDA error code. */
static int order_run(const nvd_gpu_run *x) {
  const nvd_gpu_program *g = x->p->gpu;
  int error = x->memory ? nvd_devbuf_use(x->memory, x->q, 1) : 0;
  error = error || !x->workspace ? error : nvd_devbuf_use(x->workspace, x->q, 1);
  for (int i = 0; i < g->nleaf && !error; i++)
    error = nvd_devbuf_use(devbuf_of(&x->leaf[g->leaf[i].id]), x->q, g->leaf[i].writes);
  for (int i = 0; i < g->nout && !error; i++) error = nvd_devbuf_use(devbuf_of(&x->out[g->out[i].id]), x->q, 1);
  return error;
}

int nvd_gpu_find_fault(nvd_gpu_run *x, nvd_use use) {
  const nvd_gpu_program *g = x->p->gpu;
  int any = g->checks != NULL;
  for (int i = 0; i < g->nleaf; i++) {
    g->from[i] = devbuf_of(&x->leaf[g->leaf[i].id])->fault;
    any |= g->from[i] != NULL;
  }
  return !any || nvd_fault_new(&x->fault, g->checks, use, g->from, g->nleaf);
}

/* Gives the run's fault to its outputs and releases the run's own reference. */
void nvd_gpu_hand_on(nvd_gpu_run *x) {
  const nvd_gpu_program *g = x->p->gpu;
  for (int i = 0; i < g->nout; i++) {
    nvd_devbuf *c = devbuf_of(&x->out[g->out[i].id]);
    nvd_fault *old = c->fault;
    c->fault = nvd_fault_ref(x->fault);
    nvd_fault_unref(old);
  }
  nvd_fault_unref(x->fault);
}

/* Runs x, whose memory is allocated, under the lock. Returns a CUDA error code. */
static int run_now(nvd_gpu_run *x) {
  int error = order_run(x);
  if (!error && !nvd_gpu_find_fault(x, (nvd_use){ x->q, x->q->issued + 1 })) error = CUDA_OUT_OF_MEMORY;
  if (!error) {
    x->r = x->p->instrumented ? x->p->gpu->plain : replay_of(x->p, x->q);
    error = nvd_gpu_start(x);
  }
  nvd_gpu_stream_note(x->q, 0, x->p->gpu->label);
  nvd_gpu_hand_on(x);
  return error;
}

/* ---- the entry point */
int nvd_run_on(nvd_program *p, const nvd_operand *leaf, const nvd_operand *out) {
  nvd_device *d = p->device;
  const nvd_gpu_program *g = p->gpu;
  int status = nvd_device_ready(d);
  status = status ? status : check_operands(p, leaf, g->leaf, g->nleaf);
  status = status ? status : check_operands(p, out, g->out, g->nout);
  status = status ? status : check_blocks(g->too_large);
  if (!status && nvd_is_profiling() && nvd_gpu_profile_is_full()) status = nvd_profile_settle();
  if (status) return status;
  int entered = nvd_enter_context(d), error = 0, captures = 0, ran = 0;
  int64_t workspace = g->workspace;
  for (int attempt = 0; !ran; attempt++) {
    nvd_lock();
    nvd_gpu_run x = { .p = p, .leaf = leaf, .out = out, .q = nvd_gpu_stream_now(d) };
    x.stream = x.q->stream;
    captures = nvd_capturing(x.q);
    if (!captures && g->memory) x.memory = nvd_devbuf_alloc(x.q, (size_t)g->memory);
    if (!captures && g->flags) x.flags = flags_of(x.q);
    int has_memory = captures || ((x.memory || !g->memory) && (x.flags || !g->flags));
    if (!captures && has_memory && workspace) x.workspace = nvd_devbuf_alloc(x.q, (size_t)workspace);
    ran = has_memory && (captures || x.workspace || !workspace);
    if (ran && !captures) error = run_now(&x);
    if (x.workspace) nvd_devbuf_free(x.workspace);
    if (x.memory) nvd_devbuf_free(x.memory);
    nvd_unlock();
    status = x.status;
    if (captures) status = nvd_run_captured(&x);
    else if (!ran && !nvd_reclaim_memory(d, (size_t)(has_memory ? workspace : g->memory), attempt)) {
      status = has_memory ? NVM_OK : nvb_status();
      workspace = nvd_less_workspace(workspace);
      attempt = -1;
    }
    if (status) break;
  }
  nvd_leave_context(entered);
  return status ? status : nvd_device_status(d, error, "run");
}
