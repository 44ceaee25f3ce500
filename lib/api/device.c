/* The public functions of devices: which exist, the device of a context and of a thread, streams, memory. Decides the
   default device of a context. Never opens CUDA before a GPU is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "api/api.h"
#include "base/caps.h"
#include "base/library.h"
#include "base/settings.h"

/* ---- devices */
void nvm_library_dir(const char *dir) {
  if (dir) nvb_library_dir(dir);
}
static int no_device(const char *who, int d) {
  return nvb_fail(NVM_ERR_VALUE, "[%s] there is no device of number %d", who, d);
}
int nvm_device_count(void) { return nvd_device_count(); }
int nvm_device_usable(nvm_device d) {
  if (d < NVM_DEVICE_CPU) return no_device("device_usable", d);
  return d == NVM_DEVICE_CPU ? NVM_OK : nvd_device_usable(d - NVM_DEVICE_CUDA);
}

int nvm_device_find(nvm_device *out, const char *name) {
  char *end = NULL;
  long n = 0;
  if (!out || !name) return nva_missing("device_find", name ? "pointer for the device" : "name");
  if (!strcmp(name, "auto")) return *out = NVM_DEVICE_AUTO, NVM_OK;
  if (!strcmp(name, "cpu")) return *out = NVM_DEVICE_CPU, NVM_OK;
  if (!strncmp(name, "cuda:", 5) && name[5] >= '0' && name[5] <= '9') n = strtol(name + 5, &end, 10);
  if (strcmp(name, "cuda") && (!end || *end || n > UINT8_MAX - NVM_DEVICE_CUDA))
    return nvb_fail(NVM_ERR_VALUE,
                    "[device_find] there is no device '%s'; devices are 'cpu', 'cuda', 'cuda:0', 'cuda:1' and so on",
                    name);
  *out = NVM_DEVICE_CUDA + (int)n;
  return NVM_OK;
}

static atomic_ullong used; /* bit i: GPU i was used; GPUs from 63 on share a bit */
nvd_device *nva_gpu(const char *who, int dev) {
  nvd_device *d = NULL;
  if (dev < NVM_DEVICE_CUDA) return no_device(who, dev), NULL;
  int ordinal = dev - NVM_DEVICE_CUDA;
  if (nvd_device_get(&d, ordinal)) return NULL;
  unsigned long long bit = 1ull << (ordinal < 63 ? ordinal : 63);
  if (!(atomic_load_explicit(&used, memory_order_relaxed) & bit)) atomic_fetch_or(&used, bit);
  return d;
}
int nvm_synchronize(nvm_ctx *ctx) {
  (void)ctx; /* an evaluation on the CPU is complete when it returns; streams belong to threads and devices */
  unsigned long long at = atomic_load(&used);
  int status = NVM_OK;
  nvb_failure first;
  for (int i = 0; i < 64; i++) {
    if (!(at >> i & 1)) continue;
    nvd_device *d = nva_gpu("synchronize", NVM_DEVICE_CUDA + i);
    int s = d ? nvd_synchronize(d) : nvb_status();
    if (s && !status) nvb_failure_keep(&first);
    if (!status) status = s;
  }
  if (status) nvb_failure_put_back(&first);
  return status;
}

int nvm_device_info_get(nvm_device_info *out, unsigned version, nvm_device d) {
  if (!out) return nva_missing("device_info_get", "pointer for the answer");
  if (version != NVM_DEVICE_INFO_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[device_info_get] version %u is unknown; this library has %d", version,
                    NVM_DEVICE_INFO_VERSION);
  if (d == NVM_DEVICE_AUTO)
    return nvb_fail(NVM_ERR_VALUE, "[device_info_get] which device? 'auto' is decided by a context");
  nvd_device *gpu = d == NVM_DEVICE_CPU ? NULL : nva_gpu("device_info_get", d);
  nvd_device_memory m = { 0 };
  int status = d == NVM_DEVICE_CPU ? NVM_OK : gpu ? nvd_device_memory_get(&m, gpu) : nvb_status();
  if (status) return status;
  nvb_caps c = gpu ? *nvd_device_caps(gpu) : nvb_caps_cpu();
  *out = (nvm_device_info){ .version = version, .units = c.cores, .memory = m.total };
  snprintf(out->name, sizeof out->name, "%s", c.name);
  snprintf(out->line, sizeof out->line, "%s", gpu ? nvd_device_line(d - NVM_DEVICE_CUDA) : c.name);
  return NVM_OK;
}

/* ---- the device of a context and of a thread */
int nva_decide(nvm_ctx *c) {
  nvb_failure before;
  nvb_failure_keep(&before);
  int first = nvd_device_first(), dev = first < 0 ? NVM_DEVICE_CPU : NVM_DEVICE_CUDA + first;
  nvb_failure_put_back(&before); /* a missing GPU is no failure here */
  int none = 0;
  return atomic_compare_exchange_strong(&c->device, &none, dev) ? dev : none;
}
nvm_device nvm_ctx_device(nvm_ctx *ctx) { return ctx ? nva_ctx_device(ctx) : NVM_DEVICE_AUTO; }
int nvm_ctx_device_set(nvm_ctx *ctx, nvm_device d) {
  if (!ctx) return nva_missing("ctx_device_set", "context");
  if (d < 0) return no_device("ctx_device_set", d);
  if (d > NVM_DEVICE_CPU && !nva_gpu("ctx_device_set", d)) return nvb_status();
  atomic_store(&ctx->device, d);
  return NVM_OK;
}

static _Thread_local int within;
atomic_int nva_ever_within;
int nva_thread_device(void) { return within; }
nvm_device nvm_thread_device(void) { return nva_default_device(); }
int nvm_thread_device_set(nvm_device *before, nvm_device d) {
  if (d < 0) return no_device("thread_device_set", d);
  if (d > NVM_DEVICE_CPU && !nva_gpu("thread_device_set", d)) return nvb_status();
  if (before) *before = within;
  if (d) atomic_store(&nva_ever_within, 1);
  within = d;
  return NVM_OK;
}

/* ---- streams and memory */
/* Resolves a device: *gpu is the GPU, or NULL for the CPU. Returns a status. */
static int memory_of(nvd_device **gpu, const char *who, nvm_ctx *ctx, nvm_device d) {
  *gpu = NULL;
  if (!ctx) return nva_missing(who, "context");
  int dev = d == NVM_DEVICE_AUTO ? nva_ctx_device(ctx) : d;
  if (dev == NVM_DEVICE_CPU) return NVM_OK;
  return (*gpu = nva_gpu(who, dev)) ? NVM_OK : nvb_status();
}
/* Resolves a device to a GPU; NULL with a message. */
static nvd_device *gpu_of(const char *who, nvm_ctx *ctx, nvm_device d) {
  nvd_device *gpu;
  if (!memory_of(&gpu, who, ctx, d) && !gpu) nvb_fail(NVM_ERR_VALUE, "[%s] the CPU has no streams", who);
  return gpu;
}
int nvm_stream_set(nvm_ctx *ctx, nvm_device d, void *stream) {
  nvd_device *gpu = gpu_of("stream_set", ctx, d);
  return gpu ? nvd_stream_set(gpu, stream) : nvb_status();
}
int nvm_stream_get(void **stream, nvm_ctx *ctx, nvm_device d) {
  if (!stream) return nva_missing("stream_get", "pointer for the stream");
  nvd_device *gpu = gpu_of("stream_get", ctx, d);
  *stream = gpu ? nvd_stream(gpu) : NULL;
  return gpu ? NVM_OK : nvb_status();
}
int nvm_stream_device(nvm_device *d, nvm_ctx *ctx, void *stream) {
  if (!d) return nva_missing("stream_device", "pointer for the device");
  int ordinal, status = nvd_stream_ordinal(&ordinal, stream);
  if (status) return status;
  if (ordinal >= 0) return *d = NVM_DEVICE_CUDA + ordinal, NVM_OK;
  if (!ctx) return nvb_fail(NVM_ERR_VALUE, "[stream_device] the context is NULL");
  *d = nva_default_device() ? nva_default_device() : nva_ctx_device(ctx);
  return gpu_of("stream_device", ctx, *d) ? NVM_OK : nvb_status();
}
static nvd_device_memory host_memory(void) {
  int64_t used = nvd_mem_used();
  return (nvd_device_memory){ .used = used,
                              .peak = nvd_mem_peak(),
                              .limit = nvb_int(NVB_MEM_LIMIT),
                              .reserved = used + nvd_mem_kept(),
                              .total = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) };
}
int nvm_device_memory_get(nvm_device_memory *out, unsigned version, nvm_ctx *ctx, nvm_device d) {
  if (!out) return nva_missing("device_memory_get", "pointer for the answer");
  if (version != NVM_DEVICE_MEMORY_VERSION)
    return nvb_fail(NVM_ERR_VALUE, "[device_memory_get] version %u is unknown; this library has %d", version,
                    NVM_DEVICE_MEMORY_VERSION);
  nvd_device *gpu;
  nvd_device_memory m;
  int status = memory_of(&gpu, "device_memory_get", ctx, d);
  if (!status && !gpu) m = host_memory();
  else if (!status) status = nvd_device_memory_get(&m, gpu);
  if (!status)
    *out = (nvm_device_memory){
      .version = version, .used = m.used, .peak = m.peak, .limit = m.limit, .reserved = m.reserved, .total = m.total
    };
  return status;
}
int nvm_device_memory_limit(nvm_ctx *ctx, nvm_device d, int64_t bytes) {
  nvd_device *gpu;
  char text[32];
  int status = memory_of(&gpu, "device_memory_limit", ctx, d);
  if (status) return status;
  if (bytes < 0)
    return nvb_fail(NVM_ERR_VALUE, "[device_memory_limit] the limit is %lld bytes; it must be 0 (none) or more",
                    (long long)bytes);
  if (gpu) return nvd_device_memory_limit(gpu, bytes);
  snprintf(text, sizeof text, "%lld", (long long)bytes);
  return nvm_set("NVM_MEM_LIMIT", text);
}
int nvm_device_memory_trim(nvm_ctx *ctx, nvm_device d) {
  nvd_device *gpu;
  int status = memory_of(&gpu, "device_memory_trim", ctx, d);
  if (!status && !gpu) nvd_mem_trim();
  return status || !gpu ? status : nvd_device_memory_trim(gpu);
}
int nvm_device_memory_reset_peak(nvm_ctx *ctx, nvm_device d) {
  nvd_device *gpu;
  int status = memory_of(&gpu, "device_memory_reset_peak", ctx, d);
  if (!status && !gpu) nvd_mem_reset_peak();
  else if (!status) nvd_device_memory_reset_peak(gpu);
  return status;
}
