/* Which code a kernel runs on a device: found in memory, else in the disk store, else compiled by NVRTC, several at
   a time. Decides what is refused: code that is long, that spills, or that needs more of a block than there is. Kernels
   live while a program holds them; the 1,024 used last live on after that. */
#include "dispatch/cuda_code.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "base/store.h"
#include "dispatch/code.h"

enum { KEEP = 1024, COMPILERS = 8, STATIC_SHARED = 48 << 10, THREADS = 1024, SPILLS = 32, LINES = 2000,
       REMEMBERED = 8 };

/* ---- the shelf */
static void destroy(nvd_item *item) {
  nvd_gpu_kernel *k = (nvd_gpu_kernel *)item;
  if (k->module && !nvd_synchronize(k->device)) { /* it may still be running */
    int entered = nvd_enter(k->device);
    nvd_cu.cuModuleUnload(k->module);
    nvd_leave(entered);
  }
  nvb_free(k);
}

static nvd_shelf shelf = NVD_SHELF(KEEP, destroy);

nvd_gpu_kernel *nvd_gpu_kernel_ref(nvd_gpu_kernel *k) { return (nvd_gpu_kernel *)nvd_shelf_take(&shelf, k->item.key); }

void nvd_gpu_kernel_unref(nvd_gpu_kernel *k) {
  if (!nvd_cuda_forked) /* the parent's */
    nvd_shelf_give(&shelf, (nvd_item *)k);
}

void nvd_gpu_code_trim(void) {
  if (!nvd_cuda_forked)
    nvd_shelf_trim(&shelf);
}

/* ---- one kernel: from its source to a loaded function */
typedef struct job {
  nvd_gpu_order *order;
  nvd_device *d;
  const char *source;
  nvd_gpu_kernel *made;
  int status;
  char message[1024];
} job;

/* A row of the store: what the compiler said of it, then the cubin. */
typedef struct head { int32_t registers, spills, stack, reserved; } head;

static int load(job *j, const void *cubin, const head *h) {
  nvd_gpu_kernel *k = j->made;
  int entered = nvd_enter(j->d), error = nvd_cu.cuModuleLoadData(&k->module, cubin);
  error = error ? error : nvd_cu.cuModuleGetFunction(&k->function, k->module, "nvm_kernel");
  if (!error && k->shared > STATIC_SHARED)
    error = nvd_cu.cuFuncSetAttribute(k->function, CUDA_FUNC_SHARED_MOST, (int)k->shared);
  if (error && k->module) {
    nvd_cu.cuModuleUnload(k->module);
    k->module = NULL;
  }
  nvd_leave(entered);
  k->registers = h->registers;
  k->spills = h->spills;
  return nvd_device_status(j->d, error, "load");
}

static int from_store(job *j, nvb_hash key) {
  void *row;
  size_t n;
  if (!nvb_store_get("cubin", key, &row, &n))
    return 0;
  head h;
  int good = n > sizeof h;
  if (good) {
    memcpy(&h, row, sizeof h);
    void *cubin = nvb_alloc(n - sizeof h); /* aligned as an object file has to be */
    good = cubin && !load(j, memcpy(cubin, (char *)row + sizeof h, n - sizeof h), &h);
    nvb_free(cubin);
  }
  nvb_free(row);
  nvd_count_loaded(good);
  return good;
}

static void to_store(nvb_hash key, const nvc_cubin *c) {
  head h = { c->registers, c->spills, c->stack, 0 };
  char *row = nvb_alloc(sizeof h + c->n);
  if (!row)
    return;
  memcpy(row, &h, sizeof h);
  memcpy(row + sizeof h, c->bytes, c->n);
  nvb_store_put("cubin", key, row, sizeof h + c->n);
  nvb_free(row);
}

static int obtain(job *j) {
  int64_t start = nvb_clock_ns();
  nvb_hash key = nvc_nvrtc_key(j->source, j->d->arch);
  if (from_store(j, key)) {
    nvb_log(2, "kernel %s: cubin from the disk cache in %.2f ms", j->made->title, nvb_ms_since(start));
    return NVM_OK;
  }
  if (!nvc_nvrtc_available()) /* which no other plan would help */
    return nvb_fail(NVM_ERR_DEVICE, "%s", nvb_message());
  nvc_cubin c = { 0 };
  int status = nvc_nvrtc_compile(&c, j->source, j->made->title, j->d->arch);
  if (!status) {
    head h = { c.registers, c.spills, c.stack, 0 };
    status = load(j, c.bytes, &h);
  }
  if (!status) {
    nvb_log(2, "kernel %s: compiled in %.2f ms, %zu bytes, %d registers, %d bytes spilled", j->made->title,
            nvb_ms_since(start), c.n, c.registers, c.spills);
    to_store(key, &c);
  }
  nvb_free(c.bytes);
  return status;
}

/* ---- several at a time */
typedef struct work { job *at; int n; _Atomic int next; } work;

static void *compile_some(void *arg) {
  work *w = arg;
  for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
    job *j = &w->at[i];
    j->status = obtain(j);
    if (j->status) /* messages are a thread's own */
      snprintf(j->message, sizeof j->message, "%s", nvb_message());
  }
  return NULL;
}

static void obtain_all(job *j, int n) {
  work w = { .at = j, .n = n };
  pthread_t helper[COMPILERS];
  int most = nvb_pool_threads() < COMPILERS ? nvb_pool_threads() : COMPILERS, started = 0;
  while (started + 1 < most && started + 1 < n && !pthread_create(&helper[started], NULL, compile_some, &w))
    started++;
  compile_some(&w);
  for (int i = 0; i < started; i++)
    pthread_join(helper[i], NULL);
}

/* ---- refusals. A planner that is refused a kernel and comes back with it cannot do without: spills are accepted. */
static _Thread_local struct { nvb_hash at[REMEMBERED]; int n; } refused;

static int insisted_on(nvb_hash key) {
  for (int i = 0; i < refused.n && i < REMEMBERED; i++)
    if (nvb_hash_eq(refused.at[i], key))
      return 1;
  refused.at[refused.n++ % REMEMBERED] = key;
  return 0;
}

void nvd_forget_refusals(void) { refused.n = 0; }

/* The compiler's time grows with the square of a function: 2,000 lines take a second, 6,000 ten. */
static int is_long(const char *source) {
  int lines = 0;
  for (const char *at = source; lines <= LINES && (at = strchr(at, '\n')); at++)
    lines++;
  return lines > LINES;
}

static int judge(const nvd_gpu_kernel *k) {
  if (k->spills <= SPILLS || insisted_on(k->item.key))
    return NVM_OK;
  return nvb_fail(NVM_ERR_UNSUPPORTED, "[kernel] %s needs more registers than there are: %d bytes are spilled",
                  k->title, k->spills);
}

/* ---- all kernels of a plan */
typedef struct request { nvd_device *d; nvd_gpu_order *order; int n, bad, njob; job *job; } request;

static void spell(nvb_arena *a, request *r, nvd_gpu_order *o) {
  nvb_text t = { .arena = a };
  nvf_kernel_print(&t, o->k);
  nvf_schedule_print(&t, o->k, o->s, "gpu");
  const char *text = nvb_text_get(&t);
  nvb_dump("kernel", o->k->title, text);
  int target[3] = { r->d->arch, o->wide, r->d->ordinal };
  o->key = nvb_hash_mix(nvb_hash_bytes(text, strlen(text)), target, sizeof target);
  if ((o->kernel = (nvd_gpu_kernel *)nvd_shelf_take(&shelf, o->key)))
    return;
  for (int i = 0; i < r->njob; i++)
    if (nvb_hash_eq(r->job[i].order->key, o->key))
      return; /* twice in this plan: taken from the shelf when the first one is there */
  nvc_cuda_kernel c;
  nvc_cuda_emit(a, &c, o->k, o->s, &(nvc_cuda_target){ .arch = r->d->arch, .wide = o->wide });
  nvb_dump("cuda", o->k->title, c.source);
  if (c.threads > THREADS || c.shared > r->d->shared)
    nvb_throw(a, NVM_ERR_UNSUPPORTED, "[kernel] %s needs %d threads and %lld bytes of shared memory in a block; there "
              "are %d and %lld", o->k->title, c.threads, (long long)c.shared, THREADS, (long long)r->d->shared);
  if (is_long(c.source) && !insisted_on(o->key))
    nvb_throw(a, NVM_ERR_UNSUPPORTED, "[kernel] %s would be more than %d lines of CUDA", o->k->title, LINES);
  nvd_gpu_kernel *k = nvb_calloc(1, sizeof *k);
  if (!k)
    nvb_throw(a, NVM_ERR_MEMORY, "out of memory");
  *k = (nvd_gpu_kernel){ .item.key = o->key, .device = r->d, .threads = c.threads, .checks = c.checks,
                         .shared = c.shared, .scratch = c.scratch, .cluster = c.cluster, .resident = c.resident,
                         .nmap = c.nmap };
  memcpy(k->map, c.map, sizeof c.map);
  snprintf(k->title, sizeof k->title, "%s", o->k->title);
  r->job[r->njob++] = (job){ .order = o, .d = r->d, .source = c.source, .made = k };
}

static void spell_all(nvb_arena *a, void *arg) {
  request *r = arg;
  r->job = NVB_NEWN(a, job, r->n);
  for (r->bad = 0; r->bad < r->n; r->bad++)
    spell(a, r, &r->order[r->bad]);
}

/* What was made goes on the shelf; the first failure, in the order of the plan. */
static int shelve(request *r) {
  int status = NVM_OK;
  for (int i = 0; i < r->njob; i++) {
    job *j = &r->job[i];
    if (!j->status) {
      j->order->kernel = (nvd_gpu_kernel *)nvd_shelf_enter(&shelf, &j->made->item);
      continue;
    }
    if (!status) {
      r->bad = (int)(j->order - r->order);
      status = nvb_fail(j->status, "%s", j->message);
    }
    destroy(&j->made->item);
  }
  return status;
}

int nvd_gpu_kernels_get(nvd_device *d, nvb_arena *a, nvd_gpu_order *order, int n, int *bad) {
  request r = { .d = d, .order = order, .n = n };
  int status = nvb_protect(a, spell_all, &r);
  if (status) {
    for (int i = 0; i < r.njob; i++)
      destroy(&r.job[i].made->item);
  } else {
    obtain_all(r.job, r.njob);
    status = shelve(&r);
  }
  for (int i = 0; i < n && !status; i++) {
    r.bad = i;
    if (!order[i].kernel)
      order[i].kernel = (nvd_gpu_kernel *)nvd_shelf_take(&shelf, order[i].key);
    status = judge(order[i].kernel);
  }
  if (!status)
    refused.n = 0;
  *bad = r.bad;
  return status;
}
