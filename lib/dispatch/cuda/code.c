/* Chooses the code that a GPU kernel runs: a loaded module, else a cubin from the disk store, else one compiled by
   NVRTC, several kernels at a time. Decides which kernels are rejected (too long, spilling, or too large for a block)
   and which get baseline code, or none, first. A kernel lives while a program holds it; of the others an LRU cache
   keeps at most 1,024. */
#include "dispatch/cuda/tier_up.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "base/store.h"
#include "dispatch/code.h"
#include "dispatch/compiling.h"

enum {
  KEEP = 1024,
  COMPILERS = 8,
  STATIC_SHARED = 48 << 10,
  PORTABLE = 8,
  THREADS = 1024,
  SPILLS = 64,
  LINES = 3000,
  SHORTER = 150 /* lines that baseline code has to save */
};

/* ---- the LRU cache */
void nvd_gpu_kernel_free(nvd_gpu_kernel *k) {
  if (k && k->module && !nvd_synchronize(k->device)) { /* the kernel may still be running */
    int entered = nvd_enter(k->device);
    nvd_cu.cuModuleUnload(k->module);
    nvd_leave(entered);
  }
  nvb_free(k);
}

static void destroy_kernel(nvd_lru_item *item) {
  nvd_gpu_kernel *k = (nvd_gpu_kernel *)item;
  nvd_optimized_drop(k);
  nvd_gpu_kernel_free(atomic_load(&k->optimized));
  nvd_gpu_kernel_free(k);
}

static nvd_lru kept = NVD_LRU(GPU_KERNELS, KEEP, INT64_MAX, destroy_kernel);

const nvd_gpu_kernel *nvd_gpu_kernel_now(const nvd_gpu_kernel *k) {
  const nvd_gpu_kernel *straight = atomic_load(&k->optimized);
  return straight ? straight : k;
}

nvd_gpu_kernel *nvd_gpu_kernel_ref(nvd_gpu_kernel *k) { return (nvd_gpu_kernel *)nvd_lru_get(&kept, k->item.key); }

void nvd_gpu_kernel_unref(nvd_gpu_kernel *k) {
  if (!nvd_cuda_forked) /* the parent's */
    nvd_lru_release(&kept, (nvd_lru_item *)k);
}

void nvd_gpu_code_trim(void) {
  if (nvd_cuda_forked) return;
  nvd_optimized_wait(NULL);
  nvd_lru_trim(&kept);
}

/* ---- one kernel: from its source, or from the store, to a loaded function */
typedef struct compile_job {
  nvd_gpu_order *order;
  const char *source; /* NULL: the code came from the store, or is compiled later */
  nvd_gpu_kernel *made;
  const char *later_source; /* source of the optimised code that follows baseline code; NULL: none follows */
  nvd_gpu_kernel *later;
  int status;
  char message[1024];
} compile_job;

/* The header of a row of the store: facts from the emitter and the compiler. The tensor maps and the cubin follow
   it. */
typedef struct head {
  int32_t registers, spills, lines, threads, checks, cluster, resident, posts, nmap;
  int64_t shared, scratch;
} head;

static int load_module(nvd_gpu_kernel *k, const void *cubin) {
  int entered = nvd_enter(k->device), error = nvd_cu.cuModuleLoadData(&k->module, cubin);
  error = error ? error : nvd_cu.cuModuleGetFunction(&k->function, k->module, "nvm_kernel");
  if (!error && k->shared > STATIC_SHARED)
    error = nvd_cu.cuFuncSetAttribute(k->function, CUDA_FUNC_SHARED_MOST, (int)k->shared);
  if (!error && k->cluster > PORTABLE) error = nvd_cu.cuFuncSetAttribute(k->function, CUDA_FUNC_LARGE_CLUSTER, 1);
  if (error && k->module) {
    nvd_cu.cuModuleUnload(k->module);
    k->module = NULL;
  }
  nvd_leave(entered);
  return nvd_device_status(k->device, error, "load");
}

/* Reads the header and the maps of a row. Returns the address of the cubin behind them; NULL if the row is not
   valid. */
static const char *read_header(nvd_gpu_kernel *k, const char *row, size_t n) {
  head h;
  if (n <= sizeof h) return NULL;
  memcpy(&h, row, sizeof h);
  size_t maps = h.nmap >= 0 && h.nmap <= NVC_MAPS ? (size_t)h.nmap * sizeof *k->map : n;
  if (n <= sizeof h + maps) return NULL;
  k->registers = h.registers, k->spills = h.spills, k->lines = h.lines, k->threads = h.threads, k->checks = h.checks;
  k->cluster = h.cluster, k->persistent = h.resident, k->flags = h.posts, k->nmap = h.nmap;
  k->shared = h.shared, k->scratch = h.scratch;
  memcpy(k->map, row + sizeof h, maps);
  return row + sizeof h + maps;
}

static int from_store(nvd_gpu_kernel *k) {
  int64_t start = nvb_clock_ns();
  void *row;
  size_t n;
  if (!nvb_store_get("cubin", k->row, &row, &n)) return 0;
  const char *at = read_header(k, row, n);
  size_t size = at ? n - (size_t)(at - (char *)row) : 0;
  void *cubin = at ? nvb_alloc(size) : NULL; /* a copy with the alignment that an object file needs */
  int good = cubin && !load_module(k, memcpy(cubin, at, size));
  nvb_free(cubin);
  nvb_free(row);
  nvd_count_loaded(good);
  if (good) nvb_log(2, "kernel %s: cubin from the disk cache in %.2f ms", k->title, nvb_ms_since(start));
  else k->spills = 0; /* set from the row */
  return good;
}

static void to_store(const nvd_gpu_kernel *k, const nvc_cubin *c) {
  head h = { k->registers,  k->spills, k->lines, k->threads, k->checks, k->cluster,
             k->persistent, k->flags,  k->nmap,  k->shared,  k->scratch };
  size_t maps = (size_t)k->nmap * sizeof *k->map, n = sizeof h + maps + c->n;
  char *row = nvb_alloc(n);
  if (!row) return;
  memcpy(row, &h, sizeof h);
  memcpy(row + sizeof h, k->map, maps);
  memcpy(row + sizeof h + maps, c->bytes, c->n);
  nvb_store_put("cubin", k->row, row, n);
  nvb_free(row);
}

/* Compiles optimised code. The minimum of blocks per SM in __launch_bounds__ is only a preference: if the code spills,
   it is removed and the kernel is compiled again. */
static int translate_source(const nvd_gpu_kernel *k, const char *source, nvc_cubin *c) {
  int status = nvc_nvrtc_compile(c, source, k->title, k->device->arch);
  size_t n = strlen(source) + 1;
  char *again = !status && c->spills > SPILLS && !k->persistent ? nvb_alloc(n) : NULL;
  char *bounds = again ? strstr(memcpy(again, source, n), "__launch_bounds__(") : NULL;
  char *wish = bounds ? strpbrk(bounds, ",)") : NULL;
  if (wish && *wish == ',') {
    memset(wish, ' ', strcspn(wish, ")"));
    nvb_free(c->bytes);
    *c = (nvc_cubin){ 0 };
    status = nvc_nvrtc_compile(c, again, k->title, k->device->arch);
  }
  nvb_free(again);
  return status;
}

/* keep: this is optimised code, which also goes to the store; else it is baseline code. Returns a status. */
static int compile_source(nvd_gpu_kernel *k, const char *source, int keep) {
  int64_t start = nvb_clock_ns();
  if (!nvc_nvrtc_available()) /* no other plan would help */
    return nvb_fail(NVM_ERR_DEVICE, "%s", nvb_message());
  nvc_cubin c = { 0 };
  nvd_compiling_begin();
  int status = keep ? translate_source(k, source, &c) : nvc_nvrtc_compile_quick(&c, source, k->title, k->device->arch);
  nvd_compiling_end();
  k->registers = c.registers;
  k->spills = keep ? c.spills : 0; /* spills of baseline code do not count */
  if (!status) status = load_module(k, c.bytes);
  if (!status)
    nvb_log(2, "kernel %s: %s code compiled in %.2f ms, %zu bytes, %d registers, %d bytes spilled", k->title,
            keep ? "optimised" : "baseline", nvb_ms_since(start), c.n, c.registers, c.spills);
  if (!status && keep) to_store(k, &c);
  nvb_free(c.bytes);
  return status;
}

static _Atomic int64_t compiled;
int64_t nvd_gpu_kernels_compiled(void) { return atomic_load(&compiled); }

int nvd_gpu_code_compile(nvd_gpu_kernel *made, const char *source, int first) {
  int status = compile_source(made, source, 1);
  if (!status && first) atomic_fetch_add(&compiled, 1);
  return status;
}
int nvd_gpu_code_spills(const nvd_gpu_kernel *k) { return k->spills > SPILLS; }

/* ---- compiling several kernels at a time */
typedef struct work { compile_job *at; int n; _Atomic int next, stopped; } work;

static int is_missing(const compile_job *j) { return j->source && !j->made->module; }

static void *compile_some(void *arg) {
  work *w = arg;
  for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
    compile_job *j = &w->at[i];
    /* only the calling thread asks for an interrupt; the others see `stopped` */
    if (atomic_load(&w->stopped) || nvb_interrupted()) {
      atomic_store(&w->stopped, 1);
      j->status = nvb_fail(NVM_ERR_INTERRUPTED, "[eval] interrupted");
    } else if (is_missing(j) && !(j->status = compile_source(j->made, j->source, !j->later)))
      atomic_fetch_add(&compiled, 1);
    if (j->status) /* messages are thread-local */
      snprintf(j->message, sizeof j->message, "%s", nvb_message());
  }
  return NULL;
}

static void compile_all(compile_job *j, int n) {
  work w = { .at = j, .n = n };
  pthread_t helper[COMPILERS];
  int most = nvb_pool_threads() < COMPILERS ? nvb_pool_threads() : COMPILERS, started = 0, missing = 0;
  for (int i = 0; i < n; i++) missing += is_missing(&j[i]);
  while (started + 1 < most && started + 1 < missing && !pthread_create(&helper[started], NULL, compile_some, &w))
    started++;
  compile_some(&w);
  for (int i = 0; i < started; i++) pthread_join(helper[i], NULL);
}

/* ---- rejecting kernels */
static int insisted_on(nvd_terms *t, nvb_hash key) {
  if (t->any || t->nrejected == NVF_VETOES) return 1;
  for (int i = 0; i < t->nrejected; i++)
    if (nvb_hash_eq(t->rejected[i], key)) return 1;
  t->rejected[t->nrejected++] = key;
  return 0;
}

static int count_lines(const char *source) {
  int lines = 0;
  for (const char *at = source; (at = strchr(at, '\n')); at++) lines++;
  return lines;
}

/* Lines of the kernel itself. The functions before it are short, or the straight arithmetic of transforms, of which
   5,000 lines take less than a second. */
static int lines_of_kernel(const char *source) {
  const char *kernel = strstr(source, "extern \"C\" __global__");
  return count_lines(kernel ? kernel : source);
}

/* Rejects code that spills or is too long, unless terms insist on it. NVRTC's time grows with the square of a
   kernel's length: 2,000 lines take a second, 3,000 two, 6,000 ten. */
static int judge_kernel(const nvd_gpu_kernel *kernel, nvd_terms *terms) {
  const nvd_gpu_kernel *k = nvd_gpu_kernel_now(kernel);
  if ((!nvd_gpu_code_spills(k) && k->lines <= LINES) || insisted_on(terms, k->item.key)) return NVM_OK;
  if (k->lines > LINES)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[kernel] %s would be more than %d lines of CUDA", k->title, LINES);
  return nvb_fail(NVM_ERR_UNSUPPORTED, "[kernel] %s needs more registers than there are: %d bytes are spilled",
                  k->title, k->spills);
}

/* ---- all kernels of a plan */
typedef struct kernel_requests {
  nvd_device *d;
  nvd_gpu_order *order;
  int n, bad, njob;
  compile_job *job;
  nvd_terms *terms;
} kernel_requests;

/* Returns the CUDA source; the emitter's other results go to the kernel. Throws if a block needs more threads or shared
   memory than the device has. */
static const char *emit_source(nvb_arena *a, const nvd_gpu_order *o, nvd_gpu_kernel *k, int baseline) {
  nvc_cuda_kernel c;
  nvc_cuda_emit(a, &c, o->k, o->s, &(nvc_cuda_target){ k->device->arch, o->wide, baseline });
  nvb_dump("cuda", k->title, c.source);
  if (c.threads > THREADS || c.shared > k->device->shared)
    nvb_throw(a, NVM_ERR_UNSUPPORTED,
              "[kernel] %s needs %d threads and %lld bytes of shared memory in a block; there "
              "are %d and %lld",
              k->title, c.threads, (long long)c.shared, THREADS, (long long)k->device->shared);
  k->lines = lines_of_kernel(c.source);
  k->threads = c.threads, k->checks = c.checks, k->cluster = c.cluster, k->persistent = c.persistent;
  k->flags = c.flags, k->nmap = c.nmap;
  k->shared = c.shared, k->scratch = c.scratch;
  memcpy(k->map, c.map, sizeof c.map);
  return c.source;
}

static nvd_gpu_kernel *kernel_new(nvb_arena *a, const nvd_gpu_order *o, nvd_device *d, nvb_hash row) {
  nvd_gpu_kernel *k = nvb_calloc(1, sizeof *k);
  if (!k) nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  *k = (nvd_gpu_kernel){ .item.key = o->key, .device = d, .row = row };
  snprintf(k->title, sizeof k->title, "%s", o->k->title);
  return k;
}

/* ---- baseline code */
/* Can the baseline code take the place of k's optimised code? Only if both are launched in the same way. */
static int stands_for(const nvd_gpu_kernel *compact, const nvd_gpu_kernel *k) {
  return compact->threads == k->threads && compact->cluster == k->cluster && compact->persistent == k->persistent &&
         compact->scratch == k->scratch && compact->checks == k->checks && !compact->nmap && !k->nmap;
}

typedef struct attempt { const nvd_gpu_order *o; nvd_gpu_kernel *k; const char *source; } attempt;
static void emit_baseline(nvb_arena *a, void *arg) {
  attempt *t = arg;
  t->source = emit_source(a, t->o, t->k, 1);
}

/* Replaces the job's code by baseline code: in the automatic tier if the optimised code is long and the baseline code
   is much shorter, both with their functions, in the interpreted tier whenever it can stand for it. The optimised code
   is then compiled later or never. */
static void begin_baseline(nvb_arena *a, compile_job *j, int straight) {
  nvd_tier tier = straight ? NVD_NATIVE : nvd_tier_now();
  if (tier == NVD_NATIVE || nvb_has(NVB_DUMP, "run") || (tier == NVD_AUTO && count_lines(j->source) <= SHORTER)) return;
  attempt t = { j->order, kernel_new(a, j->order, j->made->device, j->made->row), NULL };
  nvb_failure before;
  nvb_failure_keep(&before);
  if (nvb_protect(a, emit_baseline, &t) || !stands_for(t.k, j->made) ||
      (tier == NVD_AUTO && count_lines(t.source) + SHORTER > count_lines(j->source))) {
    nvb_failure_put_back(&before);
    nvd_gpu_kernel_free(t.k);
    return;
  }
  j->later = j->made, j->later_source = j->source;
  j->made = t.k, j->source = t.source;
  j->made->lines = j->later->lines; /* it is judged by its optimised code */
}

/* Gives the job's kernel no code: it follows from the background. */
static void begin_later(nvb_arena *a, compile_job *j) {
  nvd_gpu_kernel *empty = kernel_new(a, j->order, j->made->device, j->made->row);
  *empty = *j->made;
  atomic_init(&empty->expects, 1);
  j->later = j->made, j->later_source = j->source;
  j->made = empty, j->source = NULL;
}

static void throw_missing(nvb_arena *a, nvd_terms *terms, const nvd_gpu_order *o) {
  terms->missing = 1;
  nvb_throw(a, NVM_ERR_UNSUPPORTED, "[kernel] the code of %s is not in the store", o->k->title);
}

static void print_text(nvb_arena *a, kernel_requests *r, nvd_gpu_order *o) {
  nvb_text t = { .arena = a };
  nvf_kernel_print(&t, o->k);
  nvf_schedule_print(&t, o->k, o->s, "gpu");
  const char *text = nvb_text_get(&t);
  nvb_dump("kernel", o->k->title, text);
  nvb_hash row = nvc_cubin_key(nvb_hash_bytes(text, strlen(text)), &(nvc_cuda_target){ r->d->arch, o->wide, 0 });
  int64_t kind[2] = { r->d->ordinal, nvd_tier_now() == NVD_INTERPRETED };
  o->key = nvb_hash_mix(row, kind, sizeof kind);
  o->kernel = (nvd_gpu_kernel *)nvd_lru_get(&kept, o->key);
  if (o->kernel && nvd_gpu_kernel_ready(o->kernel)) return;
  if (o->kernel && r->terms->stored) throw_missing(a, r->terms, o);
  if (o->kernel && atomic_load(&o->kernel->expects)) return;
  for (int i = 0; i < r->njob; i++)
    if (nvb_hash_eq(r->job[i].order->key, o->key))
      return; /* the kernel occurs twice in this plan; the second one is taken from the LRU cache later */
  nvd_gpu_kernel *k = kernel_new(a, o, r->d, row);
  compile_job *j = &r->job[r->njob++];
  *j = (compile_job){ .order = o, .made = k };
  if (!kind[1] && from_store(k) && !nvb_has(NVB_DUMP, "cuda")) return;
  if (!k->module && r->terms->stored) {
    r->njob--;
    nvd_gpu_kernel_free(k);
    throw_missing(a, r->terms, o);
  }
  j->source = emit_source(a, o, k, 0);
  if (judge_kernel(k, r->terms)) nvb_throw(a, nvb_status(), "%s", nvb_message());
  if (k->module) return;
  if (r->terms->later && !o->kernel && nvc_nvrtc_available()) begin_later(a, j);
  else begin_baseline(a, j, r->terms->optimized || o->kernel);
}

static void print_texts(nvb_arena *a, void *arg) {
  kernel_requests *r = arg;
  r->job = NVB_NEWN(a, compile_job, r->n);
  for (r->bad = 0; r->bad < r->n; r->bad++) print_text(a, r, &r->order[r->bad]);
}

/* Queues the optimised code of a kernel that has baseline code or none, or frees it if the tier asks for none. */
static void queue_optimized(compile_job *j) {
  if (j->later && j->order->kernel == j->made && nvd_tier_now() == NVD_AUTO)
    nvd_optimized_later(j->made, j->later, j->later_source);
  else nvd_gpu_kernel_free(j->later);
}

/* Puts the job's kernel into the LRU cache, or gives its code to the one there that has none. */
static void cache_kernel(compile_job *j) {
  nvd_gpu_kernel *none = NULL;
  if (!j->order->kernel) {
    j->order->kernel = (nvd_gpu_kernel *)nvd_lru_insert(&kept, &j->made->item);
    queue_optimized(j);
  } else if (!atomic_compare_exchange_strong(&j->order->kernel->optimized, &none, j->made))
    nvd_gpu_kernel_free(j->made);
}

/* Puts the kernels that were made into the LRU cache, even if others failed. Returns `status`, or the first failure in
   the order of the plan. */
static int cache_kernels(kernel_requests *r, int status) {
  for (int i = 0; i < r->njob; i++) {
    compile_job *j = &r->job[i];
    if (!is_missing(j)) {
      cache_kernel(j);
      continue;
    }
    nvd_gpu_kernel_free(j->later);
    if (!status) {
      r->bad = (int)(j->order - r->order);
      status = nvb_fail(j->status, "%s", j->message);
    }
    destroy_kernel(&j->made->item);
  }
  return status;
}

int nvd_gpu_kernels_get(nvd_device *d, nvb_arena *a, nvd_gpu_order *order, int n, nvd_terms *terms, int *bad) {
  kernel_requests r = { .d = d, .order = order, .n = n, .terms = terms };
  int status = nvb_protect(a, print_texts, &r);
  if (!status) compile_all(r.job, r.njob);
  status = cache_kernels(&r, status);
  for (int i = 0; i < n && !status; i++) {
    r.bad = i;
    if (!order[i].kernel) order[i].kernel = (nvd_gpu_kernel *)nvd_lru_get(&kept, order[i].key);
    if (terms->optimized || nvd_tier_now() == NVD_NATIVE || !(terms->later || nvd_gpu_kernel_ready(order[i].kernel)))
      nvd_optimized_wait(order[i].kernel);
    order[i].spills = nvd_gpu_code_spills(nvd_gpu_kernel_now(order[i].kernel));
    status = judge_kernel(order[i].kernel, terms);
    if (!status && !terms->later && !nvd_gpu_kernel_ready(order[i].kernel))
      status = nvb_fail(NVM_ERR_UNSUPPORTED, "[kernel] %s could not be compiled in the background", order[i].k->title);
  }
  *bad = r.bad;
  return status;
}
