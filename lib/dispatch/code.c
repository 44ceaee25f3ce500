/* Which code a kernel runs: found in memory, else in the disk store, else compiled, else interpreted. Decides when a
   kernel is worth compiling. Kernels live while a program holds them; the 1,024 used last live on after that. */
#include "dispatch/code.h"
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "base/store.h"
#include "dispatch/dispatch.h"

enum { SLOTS = 4096, KEEP = 1024, HOT_CALLS = 8, HOT_ELEMENTS = 64 << 10 };

typedef struct kernel {
  nvd_kernel k;                  /* first: what the outside sees */
  nvb_arena *arena;              /* holds the parsed copy and the interpreter's form of it */
  nvf_kernel *ir;
  nvf_schedule *schedule;
  nvc_code *code;
  nvb_hash key;
  int refs;                      /* programs that hold it; 0: in the list of the idle */
  _Atomic int64_t calls, elements;
  struct kernel *next;           /* of its slot */
  struct kernel *younger, *older;/* idle kernels */
} kernel;

static struct {
  pthread_mutex_t lock;          /* of everything below */
  pthread_mutex_t building;      /* held while LLVM works, so that no child is forked in the middle of it */
  kernel *slot[SLOTS], *youngest, *oldest;
  int idle;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .building = PTHREAD_MUTEX_INITIALIZER };
static _Atomic int64_t loaded;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void hold(void) {
  pthread_mutex_lock(&table.building);
  pthread_mutex_lock(&table.lock);
}
static void let_go(void) {
  pthread_mutex_unlock(&table.lock);
  pthread_mutex_unlock(&table.building);
}
static void init(void) {
  nvb_store_close(); /* so that the store's handlers are there already: at a fork, later ones take their locks first */
  pthread_atfork(hold, let_go, let_go);
}

int64_t nvd_kernels_loaded(void) { return atomic_load(&loaded); }

nvd_tier nvd_tier_now(void) {
  const char *tier = nvb_str(NVB_TIER);
  if (!strcmp(tier, "1"))
    return NVD_NATIVE;
  return strcmp(tier, "0") && strcmp(nvb_str(NVB_FUSE), "off") ? NVD_AUTO : NVD_INTERPRETED;
}

/* ---- the table, under its lock */
static kernel **place_of(nvb_hash key) {
  kernel **at = &table.slot[key.lo % SLOTS];
  while (*at && !nvb_hash_eq((*at)->key, key))
    at = &(*at)->next;
  return at;
}

static void wake(kernel *c) {
  *(c->older ? &c->older->younger : &table.oldest) = c->younger;
  *(c->younger ? &c->younger->older : &table.youngest) = c->older;
  table.idle--;
}

static void rest(kernel *c) {
  c->younger = NULL;
  c->older = table.youngest;
  *(c->older ? &c->older->younger : &table.oldest) = c;
  table.youngest = c;
  table.idle++;
}

static void destroy(kernel *c) {
  if (!c)
    return;
  nvc_code_free(c->code);
  nvb_arena_free(c->arena);
  nvb_free(c);
}

static kernel *take(nvb_hash key) {
  pthread_mutex_lock(&table.lock);
  kernel *c = *place_of(key);
  if (c && c->refs++ == 0)
    wake(c);
  pthread_mutex_unlock(&table.lock);
  return c;
}

/* Enters a new kernel and returns it, or the one that another thread entered meanwhile. */
static kernel *enter(kernel *c) {
  pthread_mutex_lock(&table.lock);
  kernel **at = place_of(c->key), *there = *at;
  if (!there)
    *at = c;
  else if (there->refs++ == 0)
    wake(there);
  pthread_mutex_unlock(&table.lock);
  if (there)
    destroy(c);
  return there ? there : c;
}

void nvd_kernel_unref(nvd_kernel *k) {
  kernel *c = (kernel *)k, *gone = NULL;
  if (!c)
    return;
  pthread_mutex_lock(&table.lock);
  if (--c->refs == 0) {
    rest(c);
    if (table.idle > KEEP) {
      gone = table.oldest;
      wake(gone);
      *place_of(gone->key) = gone->next;
    }
  }
  pthread_mutex_unlock(&table.lock);
  destroy(gone);
}

void nvd_code_trim(void) {
  for (kernel *gone = NULL;; destroy(gone)) {
    pthread_mutex_lock(&table.lock);
    if ((gone = table.oldest)) {
      wake(gone);
      *place_of(gone->key) = gone->next;
    }
    pthread_mutex_unlock(&table.lock);
    if (!gone)
      return;
  }
}

/* ---- making. A kernel outlives the plan it came with, so it is parsed again from its own text. */
typedef struct request {
  const nvf_kernel *k;
  const nvf_schedule *s;
  const char *text;
  nvb_hash key;
  kernel *made;
} request;

static void spell(nvb_arena *work, void *arg) {
  request *r = arg;
  nvb_text t = { .arena = work };
  nvf_kernel_print(&t, r->k);
  nvf_schedule_print(&t, r->k, r->s, "cpu");
  r->text = nvb_text_get(&t);
  const char *isa = nvb_str(NVB_ISA);
  r->key = nvb_hash_mix(nvb_hash_bytes(r->text, strlen(r->text)), isa, strlen(isa));
  nvb_dump("kernel", r->k->title, r->text);
}

static void build(nvb_arena *a, void *arg) {
  request *r = arg;
  kernel *c = r->made;
  c->ir = nvf_kernel_parse(a, r->text, r->k->title);
  c->schedule = nvf_schedule_find(c->ir, "cpu");
  if (!c->schedule)
    nvb_throw(a, NVM_ERR_INTERNAL, "[kernel] %s has lost its schedule", r->k->title);
  c->k.interp = nvc_interp_new(a, c->ir, c->schedule);
  c->k.interp_scratch = nvc_interp_scratch(c->k.interp);
}

int nvd_kernel_get(nvd_kernel **out, nvb_arena *work, const nvf_kernel *k, const nvf_schedule *s) {
  pthread_once(&once, init);
  request r = { .k = k, .s = s };
  int status = nvb_protect(work, spell, &r);
  if (status)
    return status;
  kernel *c = take(r.key);
  if (!c) {
    c = r.made = nvb_calloc(1, sizeof *c);
    if (!c)
      return nvb_fail_memory();
    c->key = r.key;
    c->refs = 1;
    c->arena = nvb_arena_new();
    status = c->arena ? nvb_protect(c->arena, build, &r) : nvb_fail_memory();
    if (status) {
      destroy(c);
      return status;
    }
    c = enter(c);
  }
  *out = &c->k;
  return NVM_OK;
}

/* ---- native code. A row of the store is the scratch size and the object. */
static int from_store(nvc_code **code, int64_t *scratch, nvb_hash key) {
  void *row;
  size_t n;
  if (!nvb_store_get("code", key, &row, &n))
    return 0;
  int good = 0;
  if (n > sizeof *scratch) {
    memcpy(scratch, row, sizeof *scratch);
    nvc_object o = { .bytes = (char *)row + sizeof *scratch, .n = n - sizeof *scratch, .scratch = *scratch };
    good = *scratch >= 0 && !nvc_load(code, &o);
  }
  nvb_free(row);
  atomic_fetch_add(&loaded, good);
  return good;
}

static void to_store(nvb_hash key, const nvc_object *o) {
  char *row = nvb_alloc(sizeof o->scratch + o->n);
  if (!row)
    return;
  memcpy(row, &o->scratch, sizeof o->scratch);
  memcpy(row + sizeof o->scratch, o->bytes, o->n);
  nvb_store_put("code", key, row, sizeof o->scratch + o->n);
  nvb_free(row);
}

static double clock_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

typedef struct naming { const kernel *c; const nvc_target *target; nvb_hash key; } naming;
static void name_code(nvb_arena *a, void *arg) { /* spells the kernel, in its own arena */
  (void)a;
  naming *n = arg;
  n->key = nvc_code_key(n->c->ir, n->c->schedule, n->target);
}

static int compile(kernel *c) {
  double start = clock_ms();
  const nvc_target *t = nvc_target_host();
  naming n = { c, t, { 0, 0 } };
  int status = nvb_protect(c->arena, name_code, &n);
  if (status)
    return status;
  if (from_store(&c->code, &c->k.native_scratch, n.key)) {
    nvb_log(2, "kernel %s: code from the disk cache in %.2f ms", c->ir->title, clock_ms() - start);
    return NVM_OK;
  }
  nvc_object o = { 0 };
  status = nvc_compile(&o, c->ir, c->schedule, t);
  if (!status)
    status = nvc_load(&c->code, &o);
  if (!status) {
    c->k.native_scratch = o.scratch;
    nvb_log(2, "kernel %s: compiled in %.2f ms, %zu bytes", c->ir->title, clock_ms() - start, o.n);
    to_store(n.key, &o);
  }
  nvb_free(o.bytes);
  return status;
}

/* What failed for want of memory is tried again at a later call; anything else stays interpreted, with the same
   bits. */
static nvc_entry go_native(kernel *c) {
  pthread_mutex_lock(&table.building);
  nvc_entry e = atomic_load(&c->k.entry);
  if (!e && !atomic_load(&c->k.hopeless)) {
    int status = nvc_llvm_available() ? compile(c) : NVM_ERR_UNSUPPORTED;
    if (!status) {
      atomic_store(&c->k.entry, e = nvc_code_entry(c->code));
    } else {
      nvb_log(1, "kernel %s stays interpreted: %s", c->ir->title, nvb_message());
      if (status != NVM_ERR_MEMORY)
        atomic_store(&c->k.hopeless, 1);
      nvb_clear();
    }
  }
  pthread_mutex_unlock(&table.building);
  return e;
}

nvc_entry nvd_kernel_warm(nvd_kernel *k, nvd_tier tier, int64_t elements) {
  kernel *c = (kernel *)k;
  if (tier == NVD_INTERPRETED || atomic_load_explicit(&k->hopeless, memory_order_relaxed))
    return NULL;
  int64_t calls = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed);
  int64_t before = atomic_fetch_add_explicit(&c->elements, elements, memory_order_relaxed);
  if (tier == NVD_AUTO && calls < HOT_CALLS && before + elements <= HOT_ELEMENTS)
    return NULL;
  return go_native(c);
}
