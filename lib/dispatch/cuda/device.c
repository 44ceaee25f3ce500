/* GPUs and their streams: which there are, what they can do, what has been put on which stream and how far that is.
   Decides when a device counts as lost. Never allocates memory of a device, never launches. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device_impl.h"

pthread_mutex_t nvd_gpu_lock = PTHREAD_MUTEX_INITIALIZER;
static nvd_device devices[NVD_MAX_DEVICES];      /* those with a queue of their own have been started; under the lock */
static _Thread_local nvd_queue *current[NVD_MAX_DEVICES];
static _Atomic int chosen;                       /* some thread has chosen a stream: nobody looks before that */

/* ---- devices */
static int known(void) { return nvd_cuda_devices() < NVD_MAX_DEVICES ? nvd_cuda_devices() : NVD_MAX_DEVICES; }

int nvd_device_count(void) { return nvd_cuda_open() ? 0 : known(); }

static int ask(int attribute, int handle) {
  int x = 0;
  return nvd_cu.cudaDeviceGetAttribute(&x, attribute, handle) ? 0 : x;
}

/* What is asked without a context: d->arch, if code can be made for it. */
static int check(nvd_device *d, int ordinal) {
  int major = 0, minor = 0, pools = 0, unified = 0, error = 0;
  struct { int attribute, *to; } row[] = { { CUDA_DEV_MAJOR, &major }, { CUDA_DEV_MINOR, &minor },
                                           { CUDA_DEV_POOLS, &pools }, { CUDA_DEV_UNIFIED, &unified } };
  char what[16];
  snprintf(what, sizeof what, "cuda:%d", ordinal);
  for (size_t i = 0; i < sizeof row / sizeof *row && !error; i++)
    error = nvd_cu.cudaDeviceGetAttribute(row[i].to, row[i].attribute, ordinal);
  if (error)
    return nvd_cuda_status(error, what);
  if (major < 8)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[%s] compute capability %d.%d; 8.0 is needed", what, major, minor);
  if (!pools || !unified)
    return nvb_fail(NVM_ERR_UNSUPPORTED, "[%s] the device has no memory pools", what);
  if (!nvc_nvrtc_takes(10 * major + minor))
    return nvb_status();
  d->ordinal = ordinal;
  d->arch = 10 * major + minor;
  return NVM_OK;
}

/* The device of this ordinal, locked, when CUDA is open; NULL with a message, and nothing is locked. */
static nvd_device *lock_device(int ordinal) {
  int n = nvd_device_count();
  if (n && ordinal >= 0 && ordinal < n)
    return nvd_lock(), &devices[ordinal];
  if (n)
    nvb_fail(NVM_ERR_DEVICE, "[device] there is no cuda:%d; there %s %d", ordinal, n == 1 ? "is" : "are", n);
  return NULL;
}

static int is_fit(nvd_device **out, int ordinal) {
  nvd_device *d = *out = lock_device(ordinal);
  if (!d)
    return nvb_status();
  int status = d->arch ? NVM_OK : check(d, ordinal);
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
  for (int i = 0; i < known() && first < 0; i++) {
    if (!is_fit(&d, i))
      first = i;
    else if (!*no_first)
      snprintf(no_first, sizeof no_first, "%s", nvb_message());
  }
}

int nvd_device_first(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (nvd_cuda_open() && !nvd_cuda_forked)
    return -1;
  if (!nvd_cuda_forked)
    pthread_once(&once, find_first);
  else if (first < 0 && !*no_first)
    return 0; /* nobody has asked before the fork, and nobody can after it */
  if (first < 0)
    nvb_fail(NVM_ERR_UNSUPPORTED, "%s", no_first);
  return first;
}

static void facts(nvd_device *d, const char *name, int64_t memory) {
  d->caps = nvb_caps_gpu(name, d->arch, ask(CUDA_DEV_SMS, d->ordinal));
  int64_t l2 = ask(CUDA_DEV_L2, d->ordinal);
  if (l2)
    d->caps.l2 = l2;
  d->shared = ask(CUDA_DEV_SHARED_OPTIN, d->ordinal);
  if (d->shared < d->caps.onchip)
    d->caps.onchip = d->shared;
  d->overlaps = d->arch >= 90;
  int driver = 0;
  nvd_cu.cudaDriverGetVersion(&driver);
  snprintf(d->line, sizeof d->line, "%s, %.1f GiB, compute capability %d.%d, driver for CUDA %d.%d", name,
           (double)memory / (1 << 30), d->arch / 10, d->arch % 10, driver / 1000, driver % 1000 / 10);
}

static int make_pool(nvd_device *d) {
  nvd_pool_props p = { .type = CUDA_POOL_PINNED, .place_type = CUDA_POOL_PLACE_DEVICE, .place = d->ordinal };
  uint64_t keep = UINT64_MAX; /* what is freed stays ours until it is trimmed */
  int error = d->pool ? 0 : nvd_cu.cudaMemPoolCreate(&d->pool, &p);
  return error ? error : nvd_cu.cudaMemPoolSetAttribute(d->pool, CUDA_POOL_THRESHOLD, &keep);
}

/* Under the lock. The primary context, so that memory and streams are shared with the process's other users of CUDA.
   What a start that failed has made is there for the next. */
static int start(nvd_device *d, int ordinal) {
  int handle = 0;
  char name[128] = "", what[16];
  int status = d->arch ? NVM_OK : check(d, ordinal);
  if (status)
    return status;
  snprintf(what, sizeof what, "cuda:%d", ordinal);
  int error = nvd_cu.cuDeviceGet(&handle, ordinal);
  error = error ? error : nvd_cu.cuDeviceGetName(name, sizeof name, handle);
  error = error || d->context ? error : nvd_cu.cuDevicePrimaryCtxRetain(&d->context, handle);
  if (error)
    return nvd_cuda_status(error, what);
  int entered = nvd_enter(d);
  size_t unused, memory = 0;
  error = nvd_cu.cudaMemGetInfo(&unused, &memory);
  error = error ? error : make_pool(d);
  if (!error && !(d->own = nvd_queue_of(d, NULL)))
    error = CUDA_OUT_OF_MEMORY;
  nvd_leave(entered);
  if (error)
    return nvd_cuda_status(error, what);
  facts(d, name, (int64_t)memory);
  return NVM_OK;
}

int nvd_device_get(nvd_device **out, int ordinal) {
  nvd_device *d = lock_device(ordinal);
  *out = NULL;
  if (!d)
    return nvb_status();
  int status = d->own ? NVM_OK : start(d, ordinal);
  nvd_unlock();
  if (!status)
    *out = d;
  return status;
}

int nvd_device_ordinal(const nvd_device *d) { return d->ordinal; }
const nvb_caps *nvd_device_caps(const nvd_device *d) { return &d->caps; }

const char *nvd_device_line(int ordinal) {
  nvd_device *d;
  return nvd_device_get(&d, ordinal) || nvd_device_ready(d) ? nvb_message() : d->line;
}

int nvd_device_ready(nvd_device *d) {
  if (nvd_cuda_forked)
    return nvd_cuda_open();
  return atomic_load_explicit(&d->lost, memory_order_acquire) ? nvb_fail(NVM_ERR_DEVICE, "%s", d->why) : NVM_OK;
}

int nvd_enter_context(nvd_device *d) {
  void *now = NULL;
  nvd_cu.cuCtxGetCurrent(&now);
  if (now == d->context)
    return 0;
  nvd_cu.cuCtxPushCurrent(d->context);
  return now || d->ordinal; /* a thread without one keeps cuda:0's, as after any call of the runtime */
}

void nvd_leave_context(int entered) {
  void *was;
  if (entered)
    nvd_cu.cuCtxPopCurrent(&was);
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

/* ---- lost devices: errors after which a context answers nothing but this error */
static int breaks(int error) {
  static const short sticky[] = { 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 999 };
  for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++)
    if (sticky[i] == error)
      return 1;
  return 0;
}

/* The names of what was launched and is not known to be complete, the oldest first; under the lock. */
static int suspects(const nvd_device *d, char *text, size_t size) {
  int n = 0;
  size_t at = 0;
  text[0] = 0;
  for (const nvd_queue *q = d->queues; q; q = q->next)
    for (int i = 1; i <= NVD_LABELS; i++) {
      const nvd_label *l = &q->label[(q->newest + i) % NVD_LABELS];
      const char *name = l->name;
      if (l->last <= q->done || strstr(text, name))
        continue;
      at += (size_t)snprintf(text + at, at < size ? size - at : 0, "%s%s", n++ ? ", " : "", name);
      at = at < size ? at : size;
    }
  return n;
}

int nvd_device_lose(nvd_device *d, const char *why) {
  char names[600];
  nvd_lock();
  if (!atomic_load(&d->lost)) {
    int n = suspects(d, names, sizeof names);
    const char *in = n > 1 ? ", in one of the kernels " : n ? ", in kernel " : "";
    snprintf(d->why, sizeof d->why, "[cuda:%d] the device is lost: %s%s%s; the CPU goes on, the GPU only in a new "
             "process", d->ordinal, why, in, names);
    atomic_store_explicit(&d->lost, 1, memory_order_release);
  }
  nvd_unlock();
  return nvb_fail(NVM_ERR_DEVICE, "%s", d->why);
}

int nvd_device_status(nvd_device *d, int error, const char *what) {
  char why[200];
  if (!error)
    return NVM_OK;
  if (error == NVD_INTERRUPTED)
    return nvb_interrupted();
  if (!breaks(error))
    return nvd_cuda_status(error, what);
  snprintf(why, sizeof why, "%s (%d)", nvd_cu.cudaGetErrorString(error), error);
  nvd_cu.cudaGetLastError();
  return nvd_device_lose(d, why);
}

/* ---- queues */
static int is_own_thread(const nvd_queue *q) {
  return q->stream != (void *)CUDA_THREAD_STREAM || pthread_equal(q->thread, pthread_self());
}

static nvd_queue *new_queue(nvd_device *d, int own) {
  nvd_queue *q = nvb_calloc(1, sizeof *q);
  if (!q)
    return NULL;
  int error = nvd_cu.cudaEventCreateWithFlags(&q->event, CUDA_EVENT_NO_TIMING);
  if (!error && own && (error = nvd_cu.cudaStreamCreateWithFlags(&q->stream, CUDA_STREAM_NON_BLOCKING)))
    nvd_cu.cudaEventDestroy(q->event);
  if (error) {
    nvd_cu.cudaGetLastError();
    nvb_free(q);
    return NULL;
  }
  q->device = d;
  q->holders = own;
  q->next = d->queues;
  return d->queues = q;
}

static nvd_queue *unused_queue(nvd_device *d) {
  for (nvd_queue *q = d->queues; q; q = q->next) {
    int kept = q->holders;
    for (int k = 0; k < NVD_NCLASS && !kept; k++)
      kept = q->idle[k] != NULL;
    if (!kept && nvd_use_done((nvd_use){ q, q->issued }))
      return q;
  }
  return NULL;
}

nvd_queue *nvd_queue_of(nvd_device *d, void *stream) {
  nvd_queue *q = d->queues;
  while (q && (stream ? q->stream != stream || !is_own_thread(q) : q != d->own))
    q = q->next;
  if (q) { /* if nobody held it, the name may have come to mean another stream */
    if (!q->holders && !nvd_use_done((nvd_use){ q, q->recorded }) && !nvd_capturing(q))
      nvd_cu.cudaStreamWaitEvent(q->stream, q->event, 0);
    return q;
  }
  q = unused_queue(d);
  if (!q && !(q = new_queue(d, !stream)))
    return NULL;
  if (stream)
    q->stream = stream;
  q->thread = pthread_self();
  return q;
}

nvd_queue *nvd_queue_now(nvd_device *d) {
  nvd_queue *q = atomic_load_explicit(&chosen, memory_order_relaxed) ? current[d->ordinal] : NULL;
  return q ? q : d->own;
}

static int record(nvd_queue *q) { /* which no capture forbids */
  int entered = nvd_enter_context(q->device), error = nvd_cu.cuEventRecord(q->event, q->stream);
  nvd_leave_context(entered);
  if (!error)
    q->recorded = q->issued;
  return error;
}

static void note_label(nvd_queue *q, int64_t t, const char *name) {
  if (strncmp(q->label[q->newest].name, name, NVD_LABEL - 1)) {
    q->newest = (q->newest + 1) % NVD_LABELS;
    snprintf(q->label[q->newest].name, NVD_LABEL, "%s", name);
  }
  q->label[q->newest].last = t;
}

int64_t nvd_queue_note(nvd_queue *q, int capturing, const char *label) {
  int64_t t = atomic_load_explicit(&q->issued, memory_order_relaxed) + 1; /* the lock's holder alone changes it */
  atomic_store_explicit(&q->issued, t, memory_order_release);
  if (label)
    note_label(q, t, label);
  if (q != q->device->own && !capturing)
    record(q);
  return t;
}

int nvd_use_event(void **event, nvd_use u) {
  nvd_queue *q = u.q;
  int error = 0;
  *event = NULL;
  if (!q || (u.ticket != NVD_OPEN && u.ticket <= q->done))
    return 0;
  if (u.ticket == NVD_OPEN || q->recorded < u.ticket) {
    if (nvd_capturing(q)) /* it runs when the graph does: an event recorded there can be waited for in no other place */
      return 0;
    error = record(q);
  }
  *event = q->event;
  return error;
}

int nvd_queue_after(nvd_queue *q, nvd_use u) {
  void *event = NULL;
  int error = u.q == q ? 0 : nvd_use_event(&event, u);
  return !error && event ? nvd_cu.cudaStreamWaitEvent(q->stream, event, 0) : error;
}

int nvd_use_done(nvd_use u) {
  void *event;
  int error = nvd_use_event(&event, u);
  if (!error && !event)
    return 1;
  if (error || u.ticket == NVD_OPEN || u.q->recorded < u.ticket || atomic_load(&u.q->device->lost))
    return 0;
  int entered = nvd_enter(u.q->device);
  error = nvd_cu.cudaEventQuery(event);
  nvd_leave(entered);
  if (!error)
    u.q->done = u.q->recorded;
  else
    nvd_cu.cudaGetLastError(); /* "not ready"; what is worse comes up at the next wait */
  return u.ticket <= u.q->done;
}

/* Where somebody is asked the event is polled: without a pause at first, as long as most kernels run. */
int nvd_event_wait(void *event) {
  enum { AT_ONCE = 2000000, PAUSE = 50000 }; /* ns */
  if (!nvb_interrupt_asks())
    return nvd_cu.cudaEventSynchronize(event);
  int64_t start = nvb_clock_ns();
  int error;
  while ((error = nvd_cu.cudaEventQuery(event)) == CUDA_NOT_READY) {
    nvd_cu.cudaGetLastError();
    if (nvb_interrupted())
      return NVD_INTERRUPTED;
    if (nvb_clock_ns() - start > AT_ONCE)
      nanosleep(&(struct timespec){ .tv_nsec = PAUSE }, NULL);
  }
  return error;
}

int nvd_use_wait(nvd_device *d, nvd_use u) {
  void *event;
  nvd_lock();
  nvd_use_event(&event, u); /* a stream that takes no event any more was its owner's, who has ended it */
  int64_t covered = u.q ? u.q->recorded : 0;
  nvd_unlock();
  if (!event)
    return nvd_device_ready(d);
  int entered = nvd_enter(d), error = nvd_event_wait(event);
  nvd_leave(entered);
  if (error)
    return nvd_device_status(d, error, "wait");
  nvd_lock();
  if (u.q->done < covered)
    u.q->done = covered;
  nvd_unlock();
  return NVM_OK;
}

int nvd_capturing(const nvd_queue *q) {
  int capturing = 0;
  if (q != q->device->own && nvd_cu.cuStreamIsCapturing(q->stream, &capturing))
    nvd_cu.cudaGetLastError(); /* the legacy stream, while another one is captured: what is put there will fail */
  return capturing;
}

/* ---- streams */
void *nvd_stream(nvd_device *d) { return nvd_queue_now(d)->stream; }

/* Under the lock: q, or for NULL the device's own, which is held for ever, becomes the thread's current one. */
static void make_current(int ordinal, nvd_queue *q) {
  nvd_queue *old = current[ordinal];
  if (q == old)
    return;
  if (q) {
    q->holders++;
    atomic_store(&chosen, 1);
  }
  if (old)
    old->holders--;
  current[ordinal] = q;
}

/* A thread that ends holds nothing any more: another one may have its number, and with it another default stream. */
static pthread_key_t ending;
static int tells; /* the key could be made */
static pthread_once_t ending_once = PTHREAD_ONCE_INIT;
static void thread_ends(void *unused) {
  (void)unused;
  if (nvd_cuda_forked)
    return;
  nvd_lock();
  for (int i = 0; i < NVD_MAX_DEVICES; i++)
    make_current(i, NULL);
  nvd_unlock();
}
static void make_ending(void) { tells = !pthread_key_create(&ending, thread_ends); }

/* A status: the context that the stream is of. */
static int context_of(void **context, void *stream) {
  int error = nvd_cu.cuStreamGetCtx(stream, context);
  if (error == CUDA_INVALID_HANDLE)
    return nvb_fail(NVM_ERR_VALUE, "[stream] %p is no stream: %s (%d)", stream, nvd_cu.cudaGetErrorString(error),
                    error);
  return nvd_cuda_status(error, "stream");
}
static int ordinal_of(void *context) { /* -1: CUDA does not say */
  void *was;
  int ordinal = -1;
  if (nvd_cu.cuCtxPushCurrent(context))
    return -1;
  if (nvd_cu.cuCtxGetDevice(&ordinal))
    ordinal = -1;
  nvd_cu.cuCtxPopCurrent(&was);
  return ordinal;
}

int nvd_stream_place(int *ordinal, void *stream) {
  void *context = NULL;
  *ordinal = -1;
  if ((uintptr_t)stream <= CUDA_THREAD_STREAM)
    return NVM_OK;
  int status = nvd_cuda_open();
  status = status ? status : context_of(&context, stream);
  if (!status && (*ordinal = ordinal_of(context)) < 0)
    status = nvb_fail(NVM_ERR_VALUE, "[stream] %p is of no device that CUDA knows", stream);
  return status;
}

int nvd_stream_check(nvd_device *d, void *stream) {
  void *context = NULL;
  int status = nvd_device_ready(d);
  if (status || (uintptr_t)stream <= CUDA_THREAD_STREAM)
    return status;
  int entered = nvd_enter(d);
  status = context_of(&context, stream);
  if (!status && context != d->context) {
    int other = ordinal_of(context);
    status = other == d->ordinal
      ? nvb_fail(NVM_ERR_VALUE, "[stream] this stream is of another context of cuda:%d than the primary one", other)
      : nvb_fail(NVM_ERR_VALUE, "[stream] this stream is of cuda:%d, not of cuda:%d", other, d->ordinal);
  }
  nvd_leave(entered);
  return status;
}

int nvd_stream_set(nvd_device *d, void *stream) {
  int status = nvd_stream_check(d, stream);
  if (status)
    return status;
  int entered = nvd_enter(d);
  pthread_once(&ending_once, make_ending);
  if (tells)
    pthread_setspecific(ending, d); /* something that is not NULL */
  nvd_lock();
  nvd_queue *q = nvd_queue_of(d, stream);
  if (!q)
    status = nvb_fail_memory();
  if (q)
    make_current(d->ordinal, q == d->own ? NULL : q);
  nvd_unlock();
  nvd_leave(entered);
  return status;
}

int nvd_synchronize(nvd_device *d) {
  int status = nvd_device_ready(d);
  if (status)
    return status;
  nvd_lock();
  nvd_queue *q = d->queues; /* they stay, new ones come at the front */
  nvd_unlock();
  nvb_interrupt_enter();
  for (; q && !status; q = q->next)
    status = nvd_use_wait(d, (nvd_use){ q, atomic_load(&q->issued) });
  nvb_interrupt_leave();
  return status;
}
