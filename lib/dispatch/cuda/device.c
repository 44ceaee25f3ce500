/* Finds the GPUs, checks what they can do, and starts them on their primary contexts. Decides when a device counts as
   lost. Never allocates buffers and never launches kernels. */
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/interrupt.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device_impl.h"

nvb_lock nvd_gpu_lock = NVB_LOCK(GPU);
/* a device whose `own` stream is set has been started; under the lock */
static nvd_device devices[NVD_MAX_DEVICES];
/* ---- devices */
static int known_devices(void) { return nvd_cuda_devices() < NVD_MAX_DEVICES ? nvd_cuda_devices() : NVD_MAX_DEVICES; }

int nvd_device_count(void) { return nvd_cuda_open() ? 0 : known_devices(); }

static int get_attribute(int attribute, int handle) {
  int x = 0;
  return nvd_cu.cudaDeviceGetAttribute(&x, attribute, handle) ? 0 : x;
}

/* Checks what needs no context; sets d->arch if code can be compiled for the device. Returns a status. */
static int check_device(nvd_device *d, int ordinal) {
  int major = 0, minor = 0, pools = 0, unified = 0, error = 0;
  struct {
    int attribute, *to;
  } row[] = {
    { CUDA_DEV_MAJOR, &major }, { CUDA_DEV_MINOR, &minor }, { CUDA_DEV_POOLS, &pools }, { CUDA_DEV_UNIFIED, &unified }
  };
  char what[16];
  snprintf(what, sizeof what, "cuda:%d", ordinal);
  for (size_t i = 0; i < sizeof row / sizeof *row && !error; i++)
    error = nvd_cu.cudaDeviceGetAttribute(row[i].to, row[i].attribute, ordinal);
  if (error) return nvd_cuda_status(error, what);
  if (major < 8)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[%s] compute capability %d.%d; 8.0 is needed", what, major, minor);
  if (!pools || !unified) return nvb_fail(NVM_ERR_UNSUPPORTED, "[%s] the device has no memory pools", what);
  if (!nvc_nvrtc_supports(10 * major + minor)) return nvb_status();
  d->ordinal = ordinal;
  d->arch = 10 * major + minor;
  return NVM_OK;
}

/* Opens CUDA and returns the device of this ordinal with the lock taken; NULL with a message, without the lock. */
static nvd_device *lock_device(int ordinal) {
  int n = nvd_device_count();
  if (n && ordinal >= 0 && ordinal < n) return nvd_lock(), &devices[ordinal];
  if (n) nvb_fail(NVM_ERR_DEVICE, "[device] there is no cuda:%d; there %s %d", ordinal, n == 1 ? "is" : "are", n);
  return NULL;
}

static int is_fit(nvd_device **out, int ordinal) {
  nvd_device *d = *out = lock_device(ordinal);
  if (!d) return nvb_status();
  int status = d->arch ? NVM_OK : check_device(d, ordinal);
  nvd_unlock();
  return status;
}

int nvd_device_usable(int ordinal) {
  nvd_device *d;
  int status = is_fit(&d, ordinal);
  return status ? status : nvd_device_ready(d);
}

static int first = -1;
static char no_first[1024];
static void find_first(void) {
  nvd_device *d;
  for (int i = 0; i < known_devices() && first < 0; i++) {
    if (!is_fit(&d, i)) first = i;
    else if (!*no_first) snprintf(no_first, sizeof no_first, "%s", nvb_message());
  }
}

int nvd_device_first(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (nvd_cuda_open() && !nvd_cuda_forked) return -1;
  if (!nvd_cuda_forked) pthread_once(&once, find_first);
  else if (first < 0 && !*no_first) return 0; /* nobody asked before the fork, and CUDA cannot be asked after it */
  if (first < 0) nvb_fail(NVM_ERR_UNSUPPORTED, "%s", no_first);
  return first;
}

static void read_facts(nvd_device *d, const char *name, int64_t memory) {
  d->caps = nvb_caps_gpu(name, d->arch, get_attribute(CUDA_DEV_SMS, d->ordinal));
  int64_t l2 = get_attribute(CUDA_DEV_L2, d->ordinal);
  if (l2) d->caps.l2 = l2;
  d->shared = get_attribute(CUDA_DEV_SHARED_OPTIN, d->ordinal);
  if (d->shared < d->caps.onchip) d->caps.onchip = d->shared;
  d->overlaps = d->arch >= 90;
  int driver = 0;
  nvd_cu.cudaDriverGetVersion(&driver);
  snprintf(d->line, sizeof d->line, "%s, %.1f GiB, compute capability %d.%d, driver for CUDA %d.%d", name,
           (double)memory / (1 << 30), d->arch / 10, d->arch % 10, driver / 1000, driver % 1000 / 10);
}

static int make_pool(nvd_device *d) {
  nvd_pool_props p = { .type = CUDA_POOL_PINNED, .place_type = CUDA_POOL_PLACE_DEVICE, .place = d->ordinal };
  uint64_t keep = UINT64_MAX; /* freed memory stays in the pool until it is trimmed */
  int error = d->pool ? 0 : nvd_cu.cudaMemPoolCreate(&d->pool, &p);
  return error ? error : nvd_cu.cudaMemPoolSetAttribute(d->pool, CUDA_POOL_THRESHOLD, &keep);
}

/* Starts a device, under the lock. It uses the primary context, so that memory and streams are shared with other users
   of CUDA in the process. What a failed start has made is used by the next attempt. */
static int start_device(nvd_device *d, int ordinal) {
  int handle = 0;
  char name[128] = "", what[16];
  int status = d->arch ? NVM_OK : check_device(d, ordinal);
  if (status) return status;
  snprintf(what, sizeof what, "cuda:%d", ordinal);
  int error = nvd_cu.cuDeviceGet(&handle, ordinal);
  error = error ? error : nvd_cu.cuDeviceGetName(name, sizeof name, handle);
  error = error || d->context ? error : nvd_cu.cuDevicePrimaryCtxRetain(&d->context, handle);
  if (error) return nvd_cuda_status(error, what);
  int entered = nvd_enter(d);
  size_t unused, memory = 0;
  error = nvd_cu.cudaMemGetInfo(&unused, &memory);
  error = error ? error : make_pool(d);
  if (!error && !(d->own = nvd_gpu_stream_of(d, NULL))) error = CUDA_OUT_OF_MEMORY;
  nvd_leave(entered);
  if (error) return nvd_cuda_status(error, what);
  read_facts(d, name, (int64_t)memory);
  return NVM_OK;
}

int nvd_device_get(nvd_device **out, int ordinal) {
  nvd_device *d = lock_device(ordinal);
  *out = NULL;
  if (!d) return nvb_status();
  int status = d->own ? NVM_OK : start_device(d, ordinal);
  nvd_unlock();
  if (!status) *out = d;
  return status;
}

int nvd_device_ordinal(const nvd_device *d) { return d->ordinal; }
const nvb_caps *nvd_device_caps(const nvd_device *d) { return &d->caps; }

const char *nvd_device_line(int ordinal) {
  nvd_device *d;
  return nvd_device_get(&d, ordinal) || nvd_device_ready(d) ? nvb_message() : d->line;
}

int nvd_device_ready(nvd_device *d) {
  if (nvd_cuda_forked) return nvd_cuda_open();
  return atomic_load_explicit(&d->lost, memory_order_acquire) ? nvb_fail(NVM_ERR_DEVICE, "%s", d->why) : NVM_OK;
}

int nvd_enter_context(nvd_device *d) {
  void *now = NULL;
  nvd_cu.cuCtxGetCurrent(&now);
  if (now == d->context) return 0;
  nvd_cu.cuCtxPushCurrent(d->context);
  return now || d->ordinal; /* a thread without a context keeps that of cuda:0, as after any call of the runtime */
}

void nvd_leave_context(int entered) {
  void *was;
  if (entered) nvd_cu.cuCtxPopCurrent(&was);
}

int nvd_enter(nvd_device *d) {
  int mode = CUDA_CAPTURE_RELAXED, entered = nvd_enter_context(d);
  nvd_cu.cudaThreadExchangeStreamCaptureMode(&mode);
  return mode << 1 | entered;
}

void nvd_leave(int entered) {
  int mode = entered >> 1;
  nvd_cu.cudaThreadExchangeStreamCaptureMode(&mode);
  nvd_leave_context(entered & 1);
}

/* ---- lost devices */
int nvd_breaks_context(int error) {
  static const short sticky[] = { 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 999 };
  for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
    if (sticky[i] == error) return 1;
  return 0;
}

/* Lists the names of kernels that were launched and are not known to be complete, the oldest first, under the lock.
   Returns their number. */
static int list_suspects(const nvd_device *d, char *text, size_t size) {
  int n = 0;
  size_t at = 0;
  text[0] = 0;
  for (const nvd_gpu_stream *q = d->streams; q; q = q->next)
    for (int i = 1; i <= NVD_LABELS; i++) {
      const nvd_label *l = &q->label[(q->newest + i) % NVD_LABELS];
      const char *name = l->name;
      if (l->last <= q->done || strstr(text, name)) continue;
      at += (size_t)snprintf(text + at, at < size ? size - at : 0, "%s%s", n++ ? ", " : "", name);
      at = at < size ? at : size;
    }
  return n;
}

int nvd_device_lose(nvd_device *d, const char *why) {
  char names[600];
  nvd_lock();
  if (!atomic_load(&d->lost)) {
    int n = list_suspects(d, names, sizeof names);
    const char *in = n > 1 ? ", in one of the kernels " : n ? ", in kernel " : "";
    snprintf(d->why, sizeof d->why,
             "[cuda:%d] the device is lost: %s%s%s; the CPU goes on, the GPU only in a new "
             "process",
             d->ordinal, why, in, names);
    atomic_store_explicit(&d->lost, 1, memory_order_release);
  }
  nvd_unlock();
  return nvb_fail(NVM_ERR_DEVICE, "%s", d->why);
}

int nvd_device_status(nvd_device *d, int error, const char *what) {
  char why[200];
  if (!error) return NVM_OK;
  if (error == NVD_INTERRUPTED) return nvb_interrupted();
  if (!nvd_breaks_context(error)) return nvd_cuda_status(error, what);
  snprintf(why, sizeof why, "%s (%d)", nvd_cu.cudaGetErrorString(error), error);
  nvd_cu.cudaGetLastError();
  return nvd_device_lose(d, why);
}
