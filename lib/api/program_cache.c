/* Programs of the API layer and their cache: a program of dispatch plus the outputs that need none (views of a leaf,
   empty arrays), keyed by the exact signature of the graph; those whose plan serves other sizes also by what their
   graphs have in common. Decides how outputs get their memory; never what is computed. */
#include <stdlib.h>
#include <string.h>
#include "api/direct.h"
#include "autotune/tune.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/settings.h"

struct nva_program {
  atomic_int refs;
  nva_program *next;      /* in a list of programs that the cache has evicted */
  nvd_program *run;       /* NULL: a direct run, or every output is a view or empty */
  nva_program *stand_in;  /* runs until `run` is ready; NULL: none has to */
  atomic_int stood_in;    /* 1: it has run */
  const nvg_graph *graph; /* what a direct run computes, borrowed; NULL: it is no direct run */
  nva_direct_cost cost;
  nvd_device *device; /* NULL: the CPU */
  nva_views v;        /* outputs, strides and vetoes are in the program's allocation */
  nva_program *of;    /* the program that this one is the generic form of, counted; NULL: it is none */
  nvf_generic *generic;
  nvb_arena *arena; /* of the generic form */
  int bound;        /* its plan was bound from that of other sizes */
  int nveto;
  nvf_veto veto[NVA_ATTEMPTS];
};
static atomic_llong evaluations;
int64_t nva_evaluations(void) { return evaluations; }
void nva_count_evaluation(void) { atomic_fetch_add_explicit(&evaluations, 1, memory_order_relaxed); }

/* ---- making and freeing */
int nva_program_make(nva_program **out, const nva_views *v, nvd_program *run, nvd_device *d, int nveto,
                     const nvf_veto *veto) {
  int64_t dims = 0;
  size_t text = 0;
  for (int i = 0; i < v->nout; i++) dims += 2 * v->out[i].aval.rank;
  for (int i = 0; i < nveto; i++) text += strlen(veto[i].why) + 1;
  nva_program *p =
      nvb_calloc(1, sizeof *p + sizeof(nva_output) * (size_t)v->nout + sizeof(int64_t) * (size_t)dims + text);
  *out = p;
  if (!p) return nvd_program_free(run), nvb_fail_memory();
  p->refs = 1;
  p->run = run;
  p->device = d;
  p->v = *v;
  p->v.out = (nva_output *)(p + 1);
  int64_t *st = (int64_t *)(p->v.out + v->nout);
  for (int i = 0; i < v->nout; i++) {
    size_t rank = (size_t)v->out[i].aval.rank;
    p->v.out[i] = v->out[i];
    p->v.out[i].stride = memcpy(st, v->out[i].stride, sizeof(int64_t) * rank);
    p->v.out[i].aval.shape = memcpy(st + rank, v->out[i].aval.shape, sizeof(int64_t) * rank);
    st += 2 * rank;
  }
  char *why = (char *)st;
  for (p->nveto = 0; p->nveto < nveto; p->nveto++) {
    p->veto[p->nveto] = (nvf_veto){ veto[p->nveto].step, strcpy(why, veto[p->nveto].why) };
    why += strlen(why) + 1;
  }
  return NVM_OK;
}
int nva_program_direct(nva_program **out, const nva_views *v, const nvg_graph *g, const nva_direct_cost *cost) {
  int status = nva_program_make(out, v, NULL, NULL, 0, NULL);
  if (status) return status;
  (*out)->graph = g;
  (*out)->cost = *cost;
  return NVM_OK;
}
void nva_program_bridge(nva_program *p, nva_program *stand_in) {
  if (p) p->stand_in = stand_in;
  else nva_program_unref(stand_in);
}
int nva_program_stands_in(const nva_program *p) { return p->stand_in && !nvd_is_ready(p->run); }

/* ---- other sizes */
typedef struct generic_request {
  const nvf_plan *plan;
  const nvf_signature *signature;
  nvf_generic *made;
} generic_request;
static void make_generic(nvb_arena *a, void *arg) {
  generic_request *r = arg;
  r->made = nvf_generic_of(a, r->plan, r->signature);
}
int nva_program_generalise(nva_program **out, nva_program *p, const nvf_plan *plan, const nvf_signature *s) {
  nvb_arena *a = nvb_arena_new();
  generic_request r = { plan, s, NULL };
  int status = a ? nvb_protect(a, make_generic, &r) : nvb_fail_memory();
  *out = NULL;
  if (r.made) status = nva_program_make(out, &(nva_views){ 0 }, NULL, NULL, p->nveto, p->veto);
  if (!*out) return nvb_arena_free(a), status;
  (*out)->of = nva_program_ref(p);
  (*out)->generic = r.made;
  (*out)->arena = a;
  return NVM_OK;
}
static int is_tuned_alike(const nvf_plan *p, const nvf_plan *q) {
  for (int i = 0; i < p->nstep; i++)
    if (nvt_is_worth_tuning(&p->step[i]) != nvt_is_worth_tuning(&q->step[i])) return 0;
  return 1;
}
int nva_program_bind(nva_program **out, nvb_arena *a, const nva_program *of, const nva_views *v, const nvg_graph *g,
                     const nvf_signature *s) {
  nvb_caps cpu = nvb_caps_cpu();
  const nvf_plan *plan = nvf_plan_bind(a, of->generic, g, s, &cpu);
  nvd_program *run;
  if (!plan || !is_tuned_alike(plan, nvf_generic_plan(of->generic))) return NVM_OK;
  nva_views views = *v;
  nva_views_donors(&views, plan);
  int status = nvd_prepare_bound(&run, plan, of->of->run);
  if (!status) status = nva_program_make(out, &views, run, NULL, of->nveto, of->veto);
  if (!status) (*out)->bound = 1;
  return status;
}
int nva_program_is_bound(const nva_program *p) { return p && p->bound; }

int nva_program_vetoes(nvf_veto *out, const nva_program *p) {
  for (int i = 0; p && i < p->nveto; i++) out[i] = p->veto[i];
  return p ? p->nveto : 0;
}
nva_program *nva_program_ref(nva_program *p) {
  atomic_fetch_add(&p->refs, 1);
  return p;
}
int nva_program_outdated(nva_program *p) { return p->run && nvd_outdated(p->run); }
void nva_program_unref(nva_program *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  nvd_program_free(p->run);
  nva_program_unref(p->stand_in);
  nvb_arena_free(p->arena);
  nva_program_unref(p->of);
  nvb_free(p);
}

/* ---- running */
/* Makes an output that is a view of a leaf. Foreign memory and weak scalars are copied, since the memory's owner may
   write to it later. */
static nvg_value *view_new(const nva_output *o, nvg_value *leaf, int dev) {
  nvg_value v = { .buffer = leaf->buffer,
                  .device = leaf->device,
                  .data = leaf->data + o->offset * nvg_size(o->aval.dtype) };
  for (int d = 0; d < o->aval.rank; d++) v.stride[d] = o->stride[d];
  if (leaf->device + 1 == dev && !nva_is_borrowed(leaf)) return nva_value_alias(&v, o->aval.rank);
  return nva_value_copy(&v, &o->aval, dev);
}
static nvg_value *output_new(const nva_program *p, const nva_output *o, nvg_value *const *leaf) {
  nvg_value *donor = o->donor >= 0 ? leaf[o->donor] : NULL;
  if (donor) return nva_value_new(nvd_buf_ref(donor->buffer), donor->data, o->aval.rank, o->stride);
  size_t bytes = (size_t)(o->aval.size * nvg_size(o->aval.dtype));
  nvd_buf *b = p->device ? nvd_buf_new_on(p->device, bytes) : nvd_buf_new(bytes);
  return nva_value_new(b, b ? b->data : NULL, o->aval.rank, o->stride);
}
static int outputs_new(nva_program *p, nvg_value *const *leaf, nvg_value **out) {
  int dev = p->device ? 2 + nvd_device_ordinal(p->device) : 1;
  for (int i = 0; i < p->v.nout; i++) {
    const nva_output *o = &p->v.out[i];
    out[i] = o->leaf >= 0 ? view_new(o, leaf[o->leaf], dev) : output_new(p, o, leaf);
    if (out[i]) continue;
    while (i) nvg_value_free(out[--i]);
    return nvb_status() ? nvb_status() : NVM_ERR_MEMORY;
  }
  return NVM_OK;
}
enum { FEW = 24 };
static int run_here(nva_program *p, nvg_value *const *leaf, nvg_value *const *out) {
  char *few[FEW], **at = few;
  int n = p->v.nleaf, all = n + p->v.nout;
  if (all > FEW && !(at = nvb_alloc(sizeof *at * (size_t)all))) return nvb_fail_memory();
  for (int i = 0; i < n; i++) at[i] = leaf[i]->data;
  for (int i = 0, k = n; i < p->v.nout; i++)
    if (p->v.out[i].leaf < 0 && p->v.out[i].aval.size) at[k++] = out[i]->data;
  int status = p->run ? nvd_run(p->run, at, at + n) : nva_direct_compute(p->graph, &p->cost, at, at + n);
  if (at != few) nvb_free(at);
  return status;
}
static nvd_operand operand_of(const nvg_value *v) { return (nvd_operand){ v->device ? v->buffer : NULL, v->data }; }
static int run_there(nva_program *p, nvg_value *const *leaf, nvg_value *const *out) {
  nvd_operand few[FEW], *at = few;
  int n = p->v.nleaf, all = n + p->v.nout;
  if (all > FEW && !(at = nvb_alloc(sizeof *at * (size_t)all))) return nvb_fail_memory();
  for (int i = 0; i < n; i++) at[i] = operand_of(leaf[i]);
  for (int i = 0, k = n; i < p->v.nout; i++)
    if (p->v.out[i].leaf < 0 && p->v.out[i].aval.size) at[k++] = operand_of(out[i]);
  int status = nvd_run_on(p->run, at, at + n);
  if (at != few) nvb_free(at);
  return status;
}
int nva_program_run(nva_program *p, nvg_value *const *leaf, nvg_value **out) {
  if (nva_program_stands_in(p)) {
    if (atomic_exchange(&p->stood_in, 1)) nvd_compile(p->run);
    return nva_program_run(p->stand_in, leaf, out);
  }
  nva_count_evaluation();
  int status = outputs_new(p, leaf, out);
  if (status || (!p->run && !p->graph)) return status;
  status = p->device ? run_there(p, leaf, out) : run_here(p, leaf, out);
  for (int i = 0; i < p->v.nout && status; i++) nvg_value_free(out[i]);
  return status;
}
nva_program *nva_program_now(nva_program *p) { return nva_program_stands_in(p) ? p->stand_in : p; }
int nva_program_run_in(nva_program *p, const nvd_operand *leaf, const nvd_operand *out) {
  if (!p->run) return NVM_OK;
  if (p->device) return nvd_run_on(p->run, leaf, out);
  char *few[FEW] = { NULL }, **at = few;
  int n = p->v.nleaf, all = n, status;
  for (int i = 0; i < p->v.nout; i++) all += p->v.out[i].aval.size != 0;
  if (all > FEW && !(at = nvb_alloc(sizeof *at * (size_t)all))) return nvb_fail_memory();
  for (int i = 0; i < all; i++) at[i] = i < n ? leaf[i].data : out[i - n].data;
  status = nvd_run(p->run, at, at + n);
  if (at != few) nvb_free(at);
  return status;
}
int nva_program_donor(const nva_program *p, int i) { return p->v.out[i].donor; }

/* ---- the cache of programs */
enum { SLOTS = 1 << 13, KEEP = 4096, KEEP_BYTES = 64 << 20 };
typedef struct program_entry { nvb_hash key; nva_program *p; uint64_t used; int64_t bytes; } program_entry;
static program_entry table[SLOTS];
static int filled;
static int64_t filled_bytes;
static uint64_t tick;
static nvb_lock lock = NVB_LOCK(PROGRAMS);
NVB_HOLD_AT_FORK(lock);

nvb_hash nva_program_key(const nvg_graph *g, int dev) {
  uint64_t with[2] = { nvb_settings_version(), (uint64_t)dev };
  return nvb_hash_mix(nvg_graph_hash(g), with, sizeof with);
}
nvb_hash nva_generic_key(nvb_hash signature) {
  uint64_t with = nvb_settings_version();
  return nvb_hash_mix(signature, &with, sizeof with);
}
static program_entry *slot_of(nvb_hash key) { /* the entry of the key, or the free entry where it belongs */
  uint64_t i = key.lo % SLOTS;
  while (table[i].p && !nvb_hash_eq(table[i].key, key)) i = (i + 1) % SLOTS;
  return &table[i];
}
nva_program *nva_program_find(nvb_hash key) {
  nvb_lock_take(&lock);
  program_entry *e = slot_of(key);
  nva_program *p = e->p && !nva_program_outdated(e->p) ? nva_program_ref(e->p) : NULL;
  if (p) e->used = ++tick;
  nvb_lock_give(&lock);
  return p;
}
static int64_t bytes_of(const nva_program *p) {
  const nvd_program *run = p->of ? p->of->run : p->run; /* a form may be the last that holds the program it is of */
  return (int64_t)(sizeof *p + sizeof(nva_output) * (size_t)p->v.nout) + (run ? nvd_program_bytes(run) : 0) +
         (p->arena ? (int64_t)nvb_arena_bytes(p->arena) : 0) + (p->stand_in ? bytes_of(p->stand_in) : 0);
}
static void enter_program(program_entry e) {
  *slot_of(e.key) = e;
  filled++;
  filled_bytes += e.bytes;
}
static int by_use(const void *a, const void *b) { /* the most recently used first */
  uint64_t x = ((const program_entry *)a)->used, y = ((const program_entry *)b)->used;
  return (x < y) - (x > y);
}
static void evict_program(nva_program *p, nva_program **gone) {
  p->next = *gone;
  *gone = p;
}
/* Evicts the least recently used programs down to half of both bounds, so that eviction costs nothing per call. */
static void forget_half(nva_program **gone) {
  static program_entry old[SLOTS]; /* used under the lock */
  int n = 0;
  for (int i = 0; i < SLOTS; i++)
    if (table[i].p) old[n++] = table[i];
  qsort(old, (size_t)n, sizeof *old, by_use);
  memset(table, 0, sizeof table);
  filled = 0;
  filled_bytes = 0;
  for (int i = 0; i < n; i++)
    if (filled < KEEP / 2 && filled_bytes + old[i].bytes <= KEEP_BYTES / 2) enter_program(old[i]);
    else evict_program(old[i].p, gone);
}
void nva_program_keep(nvb_hash key, nva_program *p) {
  nva_program *gone = NULL; /* freed without the lock, since that may wait for a compiler */
  nvb_lock_take(&lock);
  if (filled >= KEEP || filled_bytes >= KEEP_BYTES) forget_half(&gone);
  program_entry *e = slot_of(key);
  if (!e->p) enter_program((program_entry){ key, nva_program_ref(p), ++tick, bytes_of(p) });
  else if (nva_program_outdated(e->p) || p->of) { /* a later one serves sizes that the one before did not */
    filled_bytes += bytes_of(p) - e->bytes;
    evict_program(e->p, &gone);
    *e = (program_entry){ key, nva_program_ref(p), ++tick, bytes_of(p) };
  }
  nvb_lock_give(&lock);
  for (nva_program *next; gone; gone = next) next = gone->next, nva_program_unref(gone);
}
