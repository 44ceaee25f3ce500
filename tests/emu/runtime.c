/* CUDA's calls as lib/dispatch makes them, and those that a test needs beside: the table of lib/dispatch/cuda/api.h
   gives their types, so that no function of it can be missing or differ. What is not listed there or here is not
   emulated. */
#include "call.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- every call: one lock, counted, may be told to fail */
static pthread_mutex_t big = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct count {
  struct count *next;
  const char *name;
  int64_t calls;
} *counts;
static struct fail {
  struct fail *next;
  char name[64];
  int after, error;
} *fails;
static int64_t all_calls;
static _Thread_local int last_error, nstack, stack[64];

void emu_fail(const char *name, int after, int error) {
  struct fail *f = calloc(1, sizeof *f);
  *f = (struct fail){ .next = fails, .after = after, .error = error };
  snprintf(f->name, sizeof f->name, "%s", name);
  fails = f;
}
void emu_reset(void) {
  for (struct fail *f; (f = fails); free(f)) fails = f->next;
  make_sticky(OK);
  emu_fail_kernel(-1, OK);
}
int64_t emu_calls(const char *name) {
  if (!strcmp(name, "*")) return all_calls;
  for (struct count *c = counts; c; c = c->next)
    if (!strcmp(c->name, name)) return c->calls;
  return 0;
}
int64_t emu_used(int device) { return memory_used(device); }
void emu_limit(int64_t bytes) { memory_limit(bytes); }

static void read_environment(void) {
  static int once;
  const char *s = getenv("NVM_EMU_FAIL");
  char name[64];
  int after, error, n;
  if (once++) return;
  eager = getenv("NVM_EMU_EAGER") && atoi(getenv("NVM_EMU_EAGER"));
  for (; s && sscanf(s, "%63[^:]:%d:%d%n", name, &after, &error, &n) == 3; s += n + (s[n] == ','))
    emu_fail(name, after, error);
}

pthread_mutex_t *call_lock(void) {
  pthread_mutex_lock(&big);
  return &big;
}
void call_unlock(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
int call_begin(const char *name) {
  struct count *c = counts;
  while (c && strcmp(c->name, name) != 0) c = c->next;
  if (!c) {
    c = calloc(1, sizeof *c);
    *c = (struct count){ counts, name, 0 };
    counts = c;
  }
  read_environment();
  c->calls++;
  all_calls++;
  for (struct fail **f = &fails; *f && !sticky(); f = &(*f)->next) {
    if ((strcmp((*f)->name, "*") != 0 && strcmp((*f)->name, name) != 0) || (*f)->after-- > 0) continue;
    struct fail *gone = *f;
    int error = gone->error;
    *f = gone->next;
    free(gone);
    if (error >= EMU_ILLEGAL_ADDRESS && error <= EMU_LAUNCH_FAILURE) make_sticky(error);
    return error;
  }
  return sticky();
}
int call_note(int code) { return code ? last_error = code : OK; }

/* ---- errors and versions */
static const struct {
  int code;
  const char *text;
} texts[] = { { OK, "no error" },
              { INVALID_VALUE, "invalid argument" },
              { NO_MEMORY, "out of memory" },
              { INVALID_DIRECTION, "invalid copy direction for memcpy" },
              { NO_DEVICE, "no CUDA-capable device is detected" },
              { INVALID_DEVICE, "invalid device ordinal" },
              { INVALID_IMAGE, "device kernel image is invalid" },
              { INVALID_CONTEXT, "invalid device context" },
              { INVALID_HANDLE, "invalid resource handle" },
              { NOT_FOUND, "named symbol not found" },
              { NOT_READY, "device not ready" },
              { EMU_ILLEGAL_ADDRESS, "an illegal memory access was encountered" },
              { EMU_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered" },
              { EMU_MISALIGNED, "misaligned address" },
              { EMU_LAUNCH_FAILURE, "unspecified launch failure" },
              { CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing" },
              { CAPTURE_INVALIDATED, "operation failed due to a previous error during capture" },
              { CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began" },
              { CAPTURE_UNJOINED, "capturing stream has unjoined work" },
              { CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream" },
              { CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream" },
              { CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream" } };
const char *cudaGetErrorString(int code) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (texts[i].code == code) return texts[i].text;
  return "unrecognized error code";
}
int cudaGetLastError(void) {
  int code = last_error;
  last_error = OK;
  return code;
}
int cudaDriverGetVersion(int *version) { return *version = 13000, OK; }
int cudaRuntimeGetVersion(int *version) { return *version = 13000, OK; }
int cudaGetDriverEntryPointByVersion(const char *name, void **to, unsigned version, unsigned long long flags,
                                     int *found) {
  static const struct {
    const char *name;
    void (*f)(void);
  } row[] = {
#define ROW(name, args) {#name, (void (*)(void))name},
    NVD_DRIVER(ROW)
#undef ROW
  };
  (void)version;
  (void)flags;
  *to = NULL;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++)
    if (!strcmp(row[i].name, name)) memcpy(to, &row[i].f, sizeof *to);
  if (found) *found = !*to;
  return OK;
}
int cudaGetDriverEntryPoint(const char *name, void **to, unsigned long long flags, int *found) {
  return cudaGetDriverEntryPointByVersion(name, to, 13000, flags, found);
}

/* ---- devices and contexts: the primary one of each device, whose handle is the address of its number */
int context_of[MAX_DEVICES];
static int ndevices(void) {
  const char *s = getenv("NVM_EMU_DEVICES");
  int n = s && *s ? atoi(s) : 1;
  return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : n;
}
int current(void) { return nstack ? stack[nstack - 1] : 0; }
static int context_number(const void *context) {
  for (int d = 0; d < ndevices(); d++)
    if (context == &context_of[d]) return d;
  return -1;
}

int cudaGetDeviceCount(int *n) {
  CALL;
  *n = ndevices();
  return call_note(*n ? OK : NO_DEVICE);
}
int cudaSetDevice(int device) {
  CALL;
  NEED(device >= 0 && device < ndevices(), INVALID_DEVICE);
  if (!nstack) nstack = 1;
  stack[nstack - 1] = device;
  return OK;
}
int cudaGetDevice(int *device) {
  CALL;
  *device = current();
  return OK;
}
static int arch_of(int device) { /* of a list that is too short, the last one */
  const char *s = getenv("NVM_EMU_ARCH");
  int arch = s && *s ? atoi(s) : 90;
  for (; s && device && (s = strchr(s, ',')); device--) arch = atoi(++s);
  return arch;
}
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
  static const int known[][2] = { { 1, 1024 },
                                  { 8, 49152 },
                                  { 10, 32 },
                                  { CUDA_DEV_L2, 60 << 20 },
                                  { CUDA_DEV_THREADS_PER_SM, 2048 },
                                  { CUDA_DEV_UNIFIED, 1 },
                                  { CUDA_DEV_SHARED_PER_SM, 233472 },
                                  { 82, 65536 },
                                  { CUDA_DEV_SHARED_OPTIN, 232448 },
                                  { CUDA_DEV_POOLS, 1 } };
  CALL;
  NEED(device >= 0 && device < ndevices(), INVALID_DEVICE);
  const char *sms = getenv("NVM_EMU_SMS");
  if (attribute == CUDA_DEV_MAJOR || attribute == CUDA_DEV_MINOR) {
    int arch = arch_of(device);
    return *value = attribute == CUDA_DEV_MAJOR ? arch / 10 : arch % 10, OK;
  }
  if (attribute == CUDA_DEV_SMS) return *value = sms ? atoi(sms) : 132, OK;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i][0] == attribute) return *value = known[i][1], OK;
  return call_note(INVALID_VALUE);
}
int cuDeviceGet(int *device, int ordinal) {
  CALL;
  NEED(ordinal >= 0 && ordinal < ndevices(), INVALID_DEVICE);
  *device = ordinal;
  return OK;
}
int cuDeviceGetName(char *name, int n, int device) {
  CALL;
  NEED(device >= 0 && device < ndevices(), INVALID_DEVICE);
  snprintf(name, (size_t)n, "NVIDIA H200");
  return OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  CALL;
  NEED(device >= 0 && device < ndevices(), INVALID_DEVICE);
  *context = &context_of[device];
  return OK;
}
int cuCtxGetCurrent(void **context) {
  CALL;
  *context = nstack ? &context_of[current()] : NULL;
  return OK;
}
int cuCtxPushCurrent(void *context) {
  CALL;
  NEED(context_number(context) >= 0 && nstack < 64, INVALID_CONTEXT);
  stack[nstack++] = context_number(context);
  return OK;
}
int cuCtxPopCurrent(void **context) {
  CALL;
  NEED(nstack > 0, INVALID_CONTEXT);
  *context = &context_of[stack[--nstack]];
  return OK;
}

int cuCtxGetDevice(int *device) {
  CALL;
  NEED(nstack > 0, INVALID_CONTEXT);
  *device = current();
  return OK;
}

/* ---- streams and events */
int cudaStreamCreateWithFlags(void **out, unsigned flags) {
  CALL;
  *out = stream_new(current(), !(flags & CUDA_STREAM_NON_BLOCKING));
  return OK;
}
int cudaStreamDestroy(void *handle) {
  CALL;
  STREAM(s, handle);
  NEED((uintptr_t)handle > 2, INVALID_HANDLE);
  s->dead = 1;
  return OK;
}
int cudaStreamSynchronize(void *handle) {
  CALL;
  STREAM(s, handle);
  SAFE(unsafe_on(s));
  for (stream *q = streams; q && s->blocking == 2; q = q->next)
    if (q->blocking == 1 && q->device == s->device) SAFE(run_until((point){ q, q->asked }));
  return call_note(run_until((point){ s, s->asked }));
}
int cudaStreamQuery(void *handle) {
  CALL;
  STREAM(s, handle);
  SAFE(unsafe_on(s));
  SAFE(run_some(s));
  return s->head ? NOT_READY : OK;
}
int cudaDeviceSynchronize(void) {
  CALL;
  SAFE(unsafe());
  return call_note(run_all(current()));
}
int cuStreamGetCtx(void *handle, void **context) {
  CALL;
  STREAM(s, handle);
  *context = &context_of[s->device];
  return OK;
}

int cudaEventCreateWithFlags(void **out, unsigned flags) {
  (void)flags;
  CALL;
  event *e = calloc(1, sizeof *e);
  e->device = current();
  *out = e;
  return OK;
}
int cudaEventDestroy(void *handle) {
  CALL;
  event *e = handle;
  free(e->front.at);
  free(e);
  return OK;
}
int cuEventRecord(void *handle, void *on) {
  CALL;
  event *e = handle;
  STREAM(s, on);
  NEED(e && e->device == s->device, INVALID_HANDLE);
  READY(s);
  free(e->front.at);
  *e = (event){ .device = e->device, .capture = s->capture };
  if (s->capture) e->front = set_join((set){ 0 }, s->front);
  else {
    e->at = (point){ s, s->asked + 1 };
    return call_note(enqueue(s, (op){ .kind = MARK }));
  }
  return OK;
}
int cudaEventRecord(void *handle, void *on) { return cuEventRecord(handle, on); }
int cudaStreamWaitEvent(void *handle, void *on, unsigned flags) {
  (void)flags;
  CALL;
  event *e = on;
  STREAM(s, handle);
  NEED(e, INVALID_HANDLE);
  READY(s);
  if (e->capture) {
    NEED(!s->capture || s->capture == e->capture, CAPTURE_ISOLATION);
    if (!s->capture) s->capture = e->capture; /* it joins */
    s->front = set_join(s->front, e->front);
  } else if (s->capture && e->at.s) return s->invalid = 1, call_note(CAPTURE_ISOLATION);
  else wait_for(s, e->at);
  return OK;
}
static int hanging;
void emu_hang(int on) { hanging = on; }
int cudaEventQuery(void *handle) {
  CALL;
  event *e = handle;
  if (hanging) return NOT_READY;
  NEED(!e->capture, CAPTURED_EVENT);
  SAFE(unsafe());
  if (!is_done(e->at)) SAFE(run_some(e->at.s));
  return is_done(e->at) ? OK : NOT_READY;
}
/* The host's clock: how long the emulation took. */
int cudaEventElapsedTime(float *ms, void *from, void *to) {
  CALL;
  event *a = from, *b = to;
  NEED(a && b && a->at.s && b->at.s && a->device == b->device, INVALID_HANDLE);
  NEED(!a->capture && !b->capture, CAPTURED_EVENT);
  SAFE(unsafe());
  if (!is_done(a->at) || !is_done(b->at)) return NOT_READY;
  *ms = (float)(b->at.s->marked[b->at.seq % MARKS] - a->at.s->marked[a->at.seq % MARKS]);
  return OK;
}
int cudaEventSynchronize(void *handle) {
  CALL;
  event *e = handle;
  NEED(!e->capture, CAPTURED_EVENT);
  SAFE(unsafe());
  return call_note(run_until(e->at));
}

/* ---- memory */
int cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  CALL;
  *total = (size_t)memory_total();
  *free_bytes = *total > (size_t)memory_used(current()) ? *total - (size_t)memory_used(current()) : 0;
  return OK;
}
int cudaMemPoolCreate(void **out, const nvd_pool_props *props) {
  CALL;
  NEED(props->place_type == CUDA_POOL_PLACE_DEVICE && props->place >= 0 && props->place < ndevices(), INVALID_VALUE);
  pool *p = calloc(1, sizeof *p);
  *p = (pool){ .device = props->place, .most = props->most };
  *out = p;
  return OK;
}
int cudaMemPoolSetAttribute(void *handle, int attribute, void *value) {
  CALL;
  NEED(attribute == CUDA_POOL_THRESHOLD || (attribute >= 1 && attribute <= 3), INVALID_VALUE);
  if (attribute == CUDA_POOL_THRESHOLD) memcpy(&((pool *)handle)->threshold, value, 8);
  return OK;
}
int cudaMemPoolGetAttribute(void *handle, int attribute, void *value) {
  CALL;
  NEED(attribute >= CUDA_POOL_THRESHOLD && attribute <= 8, INVALID_VALUE);
  uint64_t v = attribute == CUDA_POOL_THRESHOLD ? ((pool *)handle)->threshold : ((pool *)handle)->used;
  memcpy(value, &v, sizeof v);
  return OK;
}
int cudaMemPoolTrimTo(void *handle, size_t keep) {
  (void)handle;
  (void)keep;
  CALL;
  return OK;
}
int cudaMallocFromPoolAsync(void **data, size_t bytes, void *from, void *handle) {
  CALL;
  STREAM(s, handle);
  NEED(!s->capture, CAPTURE_UNSUPPORTED);
  READY(s);
  int error = memory_new(data, ((pool *)from)->device, bytes, from);
  if (error == NO_MEMORY) { /* what is freed but not run yet */
    SAFE(run_all(s->device));
    error = memory_new(data, ((pool *)from)->device, bytes, from);
  }
  return call_note(error);
}
int cudaFreeAsync(void *data, void *handle) {
  CALL;
  STREAM(s, handle);
  NEED(!s->capture, CAPTURE_UNSUPPORTED);
  READY(s);
  NEED(memory_device(data, 1) >= 0, INVALID_VALUE);
  return call_note(enqueue(s, (op){ .kind = FREE, .to = data }));
}
int cudaMalloc(void **data, size_t bytes) {
  CALL;
  SAFE(unsafe());
  return call_note(memory_new(data, current(), bytes, NULL));
}
int cudaFree(void *data) {
  CALL;
  SAFE(unsafe());
  SAFE(run_all(-1));
  return call_note(data ? memory_free(data) : OK);
}
int cudaHostAlloc(void **data, size_t bytes, unsigned flags) {
  (void)flags;
  CALL;
  SAFE(unsafe());
  return call_note(pinned_new(data, bytes));
}
int cudaFreeHost(void *data) {
  CALL;
  SAFE(unsafe());
  SAFE(run_all(-1));
  return call_note(pinned_free(data));
}

static int copy(void *to, const void *from, size_t n, int kind, stream *s) {
  int to_device = memory_device(to, n) >= 0, from_device = memory_device(from, n) >= 0;
  if (!n) return OK;
  if (kind != 4 && (to_device != (kind == CUDA_TO_DEVICE || kind == CUDA_ON_DEVICE) ||
                    from_device != (kind == CUDA_TO_HOST || kind == CUDA_ON_DEVICE)))
    return kind < 0 || kind > 4 ? INVALID_DIRECTION
                                : INVALID_VALUE; /* a range that is not all of one allocation, too */
  op o = { .kind = COPY, .to = to, .from = from, .n = n };
  int pageable = (!to_device && !pinned(to)) || (!from_device && !pinned(from));
  if (pageable && s->capture) return s->invalid = 1, CAPTURE_UNSUPPORTED;
  if (!from_device && !pinned(from)) o.from = o.staged = memcpy(malloc(n), from, n);
  int error = enqueue(s, o);
  return !error && !to_device && !pinned(to) ? run_until((point){ s, s->asked }) : error;
}
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *handle) {
  CALL;
  STREAM(s, handle);
  READY(s);
  return call_note(copy(to, from, bytes, kind, s));
}
int cudaMemsetAsync(void *to, int byte, size_t bytes, void *handle) {
  CALL;
  STREAM(s, handle);
  READY(s);
  NEED(memory_device(to, bytes) >= 0, INVALID_VALUE);
  if (!bytes) return OK;
  void *from = memset(malloc(bytes), byte, bytes);
  return call_note(enqueue(s, (op){ .kind = COPY, .to = to, .from = from, .staged = from, .n = bytes }));
}
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, void *handle) {
  CALL;
  STREAM(s, handle);
  READY(s);
  NEED(memory_device(to, bytes) == to_device && memory_device(from, bytes) == from_device, INVALID_VALUE);
  return call_note(copy(to, from, bytes, CUDA_ON_DEVICE, s));
}
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  CALL;
  STREAM(s, NULL);
  SAFE(unsafe());
  READY(s);
  SAFE(copy(to, from, bytes, kind, s));
  return call_note(run_until((point){ s, s->asked }));
}
int cuPointerGetAttribute(void *value, int attribute, uint64_t data) {
  CALL;
  const void *p = (const void *)(uintptr_t)data;
  int device = memory_device(p, 1), host = pinned(p), answer;
  NEED(device >= 0 || host, INVALID_VALUE);
  if (attribute == 1) return *(void **)value = &context_of[device >= 0 ? device : 0], OK;
  NEED(attribute == CUDA_POINTER_MEMORY_TYPE || attribute == 9, INVALID_VALUE);
  answer = attribute == 9 ? (device >= 0 ? device : 0) : device >= 0 ? 2 : CUDA_MEMORY_HOST;
  memcpy(value, &answer, sizeof answer);
  return OK;
}
