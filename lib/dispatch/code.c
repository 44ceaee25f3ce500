/* Chooses the code that a CPU kernel runs: an object in memory, else one from the disk store, else one compiled by
   LLVM, else the interpreter. Decides when a kernel is worth compiling. A kernel lives while a program holds it; of the
   others an LRU cache keeps at most 1,024 and 16 MB. */
#include "dispatch/code.h"
#include "dispatch/compiling.h"
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"
#include "frag/dtype.h"
#include "dispatch/cuda/code.h"
#include "dispatch/warm_up.h"

enum { KEEP = 1024, KEEP_BYTES = 16 << 20, HOT_CALLS = 8, HOT_ELEMENTS = 64 << 10 };
enum { SOUGHT_CALLS = 1, SOUGHT_ELEMENTS = 2 << 10 }; /* to find stored code takes as long as to interpret so much */

typedef struct kernel {
  nvd_kernel k;                                       /* first member: the public part */
  nvb_arena *arena;                                   /* holds the parsed kernel and what the interpreter made of it */
  nvf_kernel *ir;
  nvf_schedule *schedule;
  double interp_ns;      /* that the interpreter takes for each byte that the kernel reads or writes, estimated */
  nvc_code *code, *base; /* base: baseline code, which calls may still run when there is optimised code */
  _Atomic int64_t calls, elements, served; /* of interpreted calls; served: ns, as they are estimated */
  _Atomic int64_t spent;                   /* ns, of calls of baseline code */
  _Atomic int sought;                      /* the disk cache was asked for its code */
} kernel;

/* Held while LLVM works on a kernel, so that no child process is forked in the middle of it, and no two threads compile
   one kernel. Kernels that share a lock are compiled one by one. */
#define BUILDING NVB_LOCK(NATIVE), NVB_LOCK(NATIVE), NVB_LOCK(NATIVE), NVB_LOCK(NATIVE)
static nvb_lock building[] = { BUILDING, BUILDING, BUILDING, BUILDING };
enum { NBUILDING = sizeof building / sizeof *building };
static void hold_at_fork(void) {
  for (int i = 0; i < NBUILDING; i++) nvb_fork_hold(&building[i]);
}
NVB_WHEN_LOADED(building, hold_at_fork());
static nvb_lock *building_of(const kernel *c) { return &building[c->k.item.key.lo / NVD_LRU_SLOTS % NBUILDING]; }

static void destroy_kernel(nvd_lru_item *item) {
  kernel *c = (kernel *)item;
  nvc_code_free(c->code);
  nvc_code_free(c->base);
  nvb_arena_free(c->arena);
  nvb_free(c);
}

static nvd_lru kept = NVD_LRU(KERNELS, KEEP, KEEP_BYTES, destroy_kernel);
static _Atomic int64_t loaded;
static _Atomic int missed;

NVB_HOLD_AT_FORK(kept.lock);

int64_t nvd_kernels_loaded(void) { return atomic_load(&loaded); }
int nvd_native_missed(void) { return atomic_load_explicit(&missed, memory_order_relaxed); }
void nvd_count_loaded(int n) { atomic_fetch_add(&loaded, n); }

nvd_tier nvd_tier_now(void) {
  const char *tier = nvb_str(NVB_TIER);
  if (!strcmp(tier, "1")) return NVD_NATIVE;
  return strcmp(tier, "0") && strcmp(nvb_str(NVB_FUSE), "off") ? NVD_AUTO : NVD_INTERPRETED;
}

nvd_kernel *nvd_kernel_again(nvd_kernel *k) { return (nvd_kernel *)nvd_lru_get(&kept, k->item.key); }
void nvd_kernel_unref(nvd_kernel *k) { nvd_lru_release(&kept, (nvd_lru_item *)k); }

void nvd_code_trim(void) {
  nvd_lru_trim(&kept);
  nvd_gpu_code_trim();
}

/* ---- making a kernel. A kernel outlives the plan that it came with, so it is parsed again from its own text. */
typedef struct kernel_request {
  const nvf_step *step;
  const char *text;
  nvb_hash key;
  kernel *made;
} kernel_request;

static void print_text(nvb_arena *work, void *arg) {
  kernel_request *r = arg;
  const nvf_step *s = r->step;
  nvb_text t = { .arena = work };
  if (!s->text) nvf_kernel_print(&t, s->k), nvf_schedule_print(&t, s->k, s->s, "cpu");
  r->text = s->text ? s->text : nvb_text_get(&t);
  const char *isa = nvb_str(NVB_ISA);
  r->key = nvb_hash_mix(nvb_hash_bytes(r->text, strlen(r->text)), isa, strlen(isa));
  nvb_dump("kernel", s->k->title, r->text);
}

/* What the interpreter does for one element, in ns, and the bytes that are loaded and stored for it; measured for ten
   kernels on one core, of which eight took between half and twice as long. A merge of several states goes element by
   element. */
typedef struct effort { double ns, loaded, stored; int reduces; } effort;
static void count_effort(const nvf_kernel *k, const nvf_block *b, effort *e) {
  const double statement = 0.8, operation = 0.25, reduction = 5, scan = 15, merge = 36;
  for (int i = 0; i < b->n; i++) {
    const nvf_stmt *s = b->s[i];
    e->ns += statement + operation * (s->frag ? s->frag->cost : 0);
    if (s->op == NVF_REDUCE || s->op == NVF_SCAN) e->ns += s->nout > 1 ? merge : s->op == NVF_SCAN ? scan : reduction;
    if (s->op == NVF_LOAD) e->loaded += nvg_size(k->param[s->buf].type);
    if (s->op == NVF_STORE) e->stored += nvg_size(k->param[s->buf].type);
    e->reduces |= s->op == NVF_REDUCE;
    if (s->body) count_effort(k, s->body, e);
    if (s->other_body) count_effort(k, s->other_body, e);
  }
}

/* The results of a reduction are few beside its elements. */
static double interp_ns_of(const nvf_kernel *k) {
  effort e = { 0 };
  for (int i = 0; i < k->npart; i++) count_effort(k, &k->part[i].body, &e);
  double bytes = e.loaded + (e.reduces ? 0 : e.stored);
  return e.ns / (bytes > 1 ? bytes : 1);
}

static void build_kernel(nvb_arena *a, void *arg) {
  kernel_request *r = arg;
  kernel *c = r->made;
  c->ir = nvf_kernel_parse(a, r->text, r->step->k->title);
  c->schedule = nvf_schedule_find(c->ir, "cpu");
  if (!c->schedule) nvb_throw(a, NVM_ERR_INTERNAL, "[kernel] %s has lost its schedule", r->step->k->title);
  c->interp_ns = interp_ns_of(c->ir);
  c->k.interp = nvc_interp_new(a, c->ir, c->schedule);
  c->k.interp_scratch = nvc_interp_scratch(c->k.interp);
  c->k.item.bytes = (int64_t)(sizeof *c + nvb_arena_bytes(a));
}

/* Whether the step binds the parameters that its kernel has. */
static int fits(const nvf_step *s, const nvf_kernel *k) {
  int same = s->k->nparam == k->nparam;
  for (int i = 0; i < k->nparam && same; i++) {
    const nvf_param *p = &s->k->param[i], *q = &k->param[i];
    same = p->kind == q->kind && p->type == q->type && p->written == q->written;
  }
  return same;
}

int nvd_kernel_get(nvd_kernel **out, int *made, nvb_arena *work, const nvf_step *s) {
  kernel_request r = { .step = s };
  int status = nvb_protect(work, print_text, &r);
  if (status) return status;
  nvd_lru_item *item = nvd_lru_get(&kept, r.key);
  if (made) *made = !item;
  if (!item) {
    kernel *c = r.made = nvb_calloc(1, sizeof *c);
    if (!c) return nvb_fail_memory();
    item = &c->k.item;
    item->key = r.key;
    c->arena = nvb_arena_new();
    status = c->arena ? nvb_protect(c->arena, build_kernel, &r) : nvb_fail_memory();
    if (status) {
      destroy_kernel(item);
      return status;
    }
    item = nvd_lru_insert(&kept, item);
  }
  *out = (nvd_kernel *)item;
  return fits(s, ((kernel *)item)->ir)
             ? NVM_OK
             : nvb_fail(NVM_ERR_INTERNAL, "[kernel] %s has other parameters than its step", s->k->title);
}

/* ---- native code: baseline code of a kernel that is large, optimised code of others, and of all in the end. A row of
   the store holds what is said of the object and then the object. */
typedef struct row_head { int64_t scratch, baseline; } row_head;

/* Makes the object the kernel's code; a call that runs what was its code before may go on. Returns a status. */
static int load_code(kernel *c, const nvc_object *o) {
  nvc_code *code;
  int status = nvc_load(&code, o);
  if (status) return status;
  *(o->baseline ? &c->base : &c->code) = code;
  if (o->scratch > c->k.native_scratch) c->k.native_scratch = o->scratch;
  atomic_store(&c->k.entry, nvc_code_entry(code));
  atomic_store(&c->k.baseline, o->baseline);
  return NVM_OK;
}

static int from_store(kernel *c, nvb_hash key, int optimised) {
  void *row;
  size_t n;
  row_head h;
  if (!nvb_store_get("code", key, &row, &n)) return 0;
  int good = n > sizeof h;
  if (good) {
    memcpy(&h, row, sizeof h);
    nvc_object o = { (char *)row + sizeof h, n - sizeof h, h.scratch, 0, (int)h.baseline };
    good = h.scratch >= 0 && !(optimised && h.baseline) && !load_code(c, &o);
  }
  nvb_free(row);
  nvd_count_loaded(good);
  return good;
}

static void to_store(nvb_hash key, const nvc_object *o) {
  row_head h = { o->scratch, o->baseline };
  char *row = nvb_alloc(sizeof h + o->n);
  if (!row) return;
  memcpy(row, &h, sizeof h);
  memcpy(row + sizeof h, o->bytes, o->n);
  nvb_store_put("code", key, row, sizeof h + o->n);
  nvb_free(row);
}

typedef struct naming { const kernel *c; const nvc_target *target; nvb_hash key; } naming;
static void name_code(nvb_arena *a, void *arg) { /* prints the kernel, in the kernel's own arena */
  (void)a;
  naming *n = arg;
  n->key = nvc_code_key(n->c->ir, n->c->schedule, n->target);
}

/* Loads the kernel's code from the store. Returns 1, 0 if it has none; *key is what it is or would be kept under. */
static int find_stored(kernel *c, nvb_hash *key, const nvc_target *t, int optimised, int *status) {
  int64_t start = nvb_clock_ns();
  naming n = { c, t, { 0, 0 } };
  atomic_store_explicit(&c->sought, 1, memory_order_relaxed);
  if ((*status = nvb_protect(c->arena, name_code, &n))) return 0;
  *key = n.key;
  if (!from_store(c, n.key, optimised)) return 0;
  nvb_log(2, "kernel %s: code from the disk cache in %.2f ms", c->ir->title, nvb_ms_since(start));
  return 1;
}

static int compile_kernel(kernel *c, int optimised) {
  enum { MOST = 1000 }; /* instructions, each of which takes 25 to 50 us to optimise, and baseline code 10 to 20 */
  int64_t start = nvb_clock_ns();
  const nvc_target *t = nvc_target_host();
  nvb_hash key;
  int status;
  if (find_stored(c, &key, t, optimised, &status) || status) return status;
  nvc_object o = { 0 };
  nvd_compiling_begin();
  status = nvc_compile(&o, c->ir, c->schedule, t, optimised ? 0 : MOST);
  nvd_compiling_end();
  if (!status) status = load_code(c, &o);
  if (!status) {
    nvb_log(2, "kernel %s: %scompiled in %.2f ms, %zu bytes", c->ir->title, o.baseline ? "baseline code " : "",
            nvb_ms_since(start), o.n);
    to_store(key, &o);
  }
  nvb_free(o.bytes);
  return status;
}

/* If compiling runs out of memory, a later call tries again. After any other failure the kernel stays interpreted, with
   the same bits. */
nvc_entry nvd_kernel_compile(nvd_kernel *k, int optimised) {
  kernel *c = (kernel *)k;
  nvb_lock_take(building_of(c));
  nvc_entry e = atomic_load(&c->k.entry);
  if ((!e || (optimised && atomic_load(&c->k.baseline))) && !atomic_load(&c->k.hopeless)) {
    nvb_failure before;
    nvb_failure_keep(&before);
    int status = compile_kernel(c, optimised);
    if (!status) {
      e = atomic_load(&c->k.entry);
    } else {
      nvb_log(1, "kernel %s stays %s: %s", c->ir->title, e ? "baseline code" : "interpreted", nvb_message());
      if (status != NVM_ERR_MEMORY) atomic_store(&c->k.hopeless, 1);
      if (!nvc_llvm_available()) atomic_store(&missed, 1);
    }
    nvb_failure_put_back(&before); /* the caller can always interpret the kernel */
  }
  nvb_lock_give(building_of(c));
  return e;
}

/* Runs stored code long before compiling would pay. It is sought once, never by opening LLVM, and not now if it would
   have to wait for a kernel that is being compiled. */
static nvc_entry seek_stored(kernel *c) {
  nvb_hash key;
  const nvc_target *t = nvc_target_known();
  if (!t || atomic_load_explicit(&c->sought, memory_order_relaxed)) return NULL;
  if (!nvb_lock_try(building_of(c))) return NULL;
  nvc_entry e = atomic_load(&c->k.entry);
  if (!e && !atomic_load(&c->sought)) {
    nvb_failure before;
    int status;
    nvb_failure_keep(&before);
    if (find_stored(c, &key, t, 0, &status)) e = atomic_load(&c->k.entry);
    nvb_failure_put_back(&before);
  }
  nvb_lock_give(building_of(c));
  return e;
}

int64_t nvd_kernel_served(const nvd_kernel *k) {
  return atomic_load_explicit(&((const kernel *)k)->served, memory_order_relaxed);
}

/* Does the call wait for its code? It does if to interpret it takes as long as to compile most kernels. Dumps are in
   the order of the calls, and where there is no LLVM, the call says so. The first compilation of the process is waited
   for too: LLVM registers then what it destroys at exit, and what waits there for the background thread is registered
   after it. */
static int is_awaited(const kernel *c, const nvd_demand *w) {
  enum { AWAITED = 1 << 20, LONG = 20000000 }; /* elements; ns */
  if (w->elements > AWAITED || c->interp_ns * (double)w->bytes > LONG || *nvb_str(NVB_DUMP) || !nvc_compiled())
    return 1;
  return !atomic_load(&c->k.queued) && !nvc_llvm_present();
}

nvc_entry nvd_kernel_warm(nvd_kernel *k, nvd_tier tier, nvd_demand w) {
  enum { LONG = 20000000 }; /* ns: as long as it takes to optimise most kernels */
  kernel *c = (kernel *)k;
  if (tier == NVD_INTERPRETED || atomic_load_explicit(&k->hopeless, memory_order_relaxed)) return NULL;
  int64_t calls = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
  int64_t all = atomic_fetch_add_explicit(&c->elements, w.elements, memory_order_relaxed) + w.elements;
  atomic_fetch_add_explicit(&c->served, (int64_t)(c->interp_ns * (double)w.bytes), memory_order_relaxed);
  if (tier != NVD_AUTO) return nvd_kernel_compile(k, 1);
  nvc_entry e = calls >= SOUGHT_CALLS || all > SOUGHT_ELEMENTS ? seek_stored(c) : NULL;
  if (e || (calls < HOT_CALLS && all <= HOT_ELEMENTS)) return e;
  return is_awaited(c, &w) || !nvd_warm_later(k) ? nvd_kernel_compile(k, w.time > LONG) : NULL;
}

int64_t nvd_kernel_baseline_start(const nvd_kernel *k, nvc_entry entry) {
  return entry && atomic_load_explicit(&k->baseline, memory_order_relaxed) ? nvb_clock_ns() : 0;
}
void nvd_kernel_baseline_end(nvd_kernel *k, int64_t start) {
  if (start) atomic_fetch_add_explicit(&((kernel *)k)->spent, nvb_clock_ns() - start, memory_order_relaxed);
}

nvc_entry nvd_kernel_refine(nvd_kernel *k, nvd_tier tier) {
  enum { EACH = 10000 }; /* ns; a third of the time to optimise an instruction, which no call waits for */
  kernel *c = (kernel *)k;
  if (!atomic_load_explicit(&k->hopeless, memory_order_relaxed)) {
    if (tier == NVD_NATIVE) return nvd_kernel_compile(k, 1);
    int64_t spent = atomic_load_explicit(&c->spent, memory_order_relaxed);
    if (spent > (int64_t)atomic_load(&k->baseline) * EACH) nvd_warm_later(k);
  }
  return atomic_load(&k->entry);
}
