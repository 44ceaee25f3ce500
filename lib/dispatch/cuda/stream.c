/* Keeps the bookkeeping of CUDA streams: sequence numbers of the work put on each, how far each has completed, and
   which stream is current in a thread. Never launches kernels and never allocates buffers. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "dispatch/cuda/device_impl.h"

static _Thread_local nvd_gpu_stream *current[NVD_MAX_DEVICES];
static _Atomic int chosen; /* some thread has set a stream; until then `current` is not read */

/* ---- records of streams */
static int is_own_thread(const nvd_gpu_stream *q) {
  return q->stream != (void *)CUDA_THREAD_STREAM || pthread_equal(q->thread, pthread_self());
}

static nvd_gpu_stream *new_stream(nvd_device *d, int own) {
  nvd_gpu_stream *q = nvb_calloc(1, sizeof *q);
  if (!q) return NULL;
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
  q->next = d->streams;
  return d->streams = q;
}

static nvd_gpu_stream *unused_stream(nvd_device *d) {
  for (nvd_gpu_stream *q = d->streams; q; q = q->next) {
    int kept = q->holders;
    for (int k = 0; k < NVD_NCLASS && !kept; k++) kept = q->idle[k] != NULL;
    if (!kept && nvd_use_done((nvd_use){ q, q->issued })) return q;
  }
  return NULL;
}

nvd_gpu_stream *nvd_gpu_stream_of(nvd_device *d, void *stream) {
  nvd_gpu_stream *q = d->streams;
  while (q && (stream ? q->stream != stream || !is_own_thread(q) : q != d->own)) q = q->next;
  if (q) { /* without holders, the handle may have come to mean another stream */
    if (!q->holders && !nvd_use_done((nvd_use){ q, q->recorded }) && !nvd_capturing(q))
      nvd_cu.cudaStreamWaitEvent(q->stream, q->event, 0);
    return q;
  }
  q = unused_stream(d);
  if (!q && !(q = new_stream(d, !stream))) return NULL;
  if (stream) q->stream = stream;
  q->thread = pthread_self();
  return q;
}

nvd_gpu_stream *nvd_gpu_stream_now(nvd_device *d) {
  nvd_gpu_stream *q = atomic_load_explicit(&chosen, memory_order_relaxed) ? current[d->ordinal] : NULL;
  return q ? q : d->own;
}

static int record_event(nvd_gpu_stream *q) { /* allowed during any capture */
  int entered = nvd_enter_context(q->device), error = nvd_cu.cuEventRecord(q->event, q->stream);
  nvd_leave_context(entered);
  if (!error) q->recorded = q->issued;
  return error;
}

static void note_label(nvd_gpu_stream *q, int64_t t, const char *name) {
  if (strncmp(q->label[q->newest].name, name, NVD_LABEL - 1)) {
    q->newest = (q->newest + 1) % NVD_LABELS;
    snprintf(q->label[q->newest].name, NVD_LABEL, "%s", name);
  }
  q->label[q->newest].last = t;
}

int64_t nvd_gpu_stream_note(nvd_gpu_stream *q, int capturing, const char *label) {
  int64_t t = atomic_load_explicit(&q->issued, memory_order_relaxed) + 1; /* only the lock's holder changes it */
  atomic_store_explicit(&q->issued, t, memory_order_release);
  if (label) note_label(q, t, label);
  if (q != q->device->own && !capturing) record_event(q);
  return t;
}

/* The device's own stream waits for it and stands for it from now on: buffers may still be in use there by others. */
int nvd_gpu_stream_end(nvd_device *d, void *stream) {
  nvd_gpu_stream *q = d->streams;
  while (q && (q == d->own || q->stream != stream)) q = q->next;
  if (!q) return 0;
  int capturing = nvd_capturing(q), error = 0;
  nvd_gpu_stream_note(q, capturing, NULL);
  if (!capturing) error = nvd_gpu_stream_wait(d->own, (nvd_use){ q, q->issued });
  q->stream = d->own->stream;
  return error;
}

int nvd_use_event(void **event, nvd_use u) {
  nvd_gpu_stream *q = u.q;
  int error = 0;
  *event = NULL;
  if (!q || (u.seq != NVD_OPEN && u.seq <= q->done)) return 0;
  if (u.seq == NVD_OPEN || q->recorded < u.seq) {
    /* the work runs when the graph does; an event recorded in a capture cannot be waited for outside it */
    if (nvd_capturing(q)) return 0;
    error = record_event(q);
  }
  *event = q->event;
  return error;
}

int nvd_gpu_stream_wait(nvd_gpu_stream *q, nvd_use u) {
  void *event = NULL;
  int error = u.q == q ? 0 : nvd_use_event(&event, u);
  return !error && event ? nvd_cu.cudaStreamWaitEvent(q->stream, event, 0) : error;
}

int nvd_use_done(nvd_use u) {
  void *event;
  int error = nvd_use_event(&event, u);
  if (!error && !event) return 1;
  if (error || u.seq == NVD_OPEN || u.q->recorded < u.seq || atomic_load(&u.q->device->lost)) return 0;
  int entered = nvd_enter(u.q->device);
  error = nvd_cu.cudaEventQuery(event);
  nvd_leave(entered);
  if (!error) u.q->done = u.q->recorded;
  else nvd_cu.cudaGetLastError(); /* "not ready"; other errors come up at the next wait */
  return u.seq <= u.q->done;
}

/* Waits for an event. If interrupts are asked for, it polls: without a pause during AT_ONCE ns, which most kernels stay
   below, then every PAUSE ns. */
int nvd_event_wait(void *event) {
  enum { AT_ONCE = 2000000, PAUSE = 50000 }; /* ns */
  if (!nvb_interrupt_enabled()) return nvd_cu.cudaEventSynchronize(event);
  int64_t start = nvb_clock_ns();
  int error;
  while ((error = nvd_cu.cudaEventQuery(event)) == CUDA_NOT_READY) {
    nvd_cu.cudaGetLastError();
    if (nvb_interrupted()) return NVD_INTERRUPTED;
    if (nvb_clock_ns() - start > AT_ONCE) nanosleep(&(struct timespec){ .tv_nsec = PAUSE }, NULL);
  }
  return error;
}

int nvd_use_wait(nvd_device *d, nvd_use u) {
  void *event;
  nvd_lock();
  nvd_use_event(&event, u); /* if the stream takes no event, its owner has destroyed it */
  int64_t covered = u.q ? u.q->recorded : 0;
  nvd_unlock();
  if (!event) return nvd_device_ready(d);
  int entered = nvd_enter(d), error = nvd_event_wait(event);
  nvd_leave(entered);
  if (error) return nvd_device_status(d, error, "wait");
  nvd_lock();
  if (u.q->done < covered) u.q->done = covered;
  nvd_unlock();
  return NVM_OK;
}

int nvd_capturing(const nvd_gpu_stream *q) {
  int capturing = 0;
  if (q != q->device->own && nvd_cu.cuStreamIsCapturing(q->stream, &capturing))
    nvd_cu.cudaGetLastError(); /* the legacy stream while another one is being captured: work put there will fail */
  return capturing;
}

/* ---- streams of threads */
void *nvd_stream(nvd_device *d) { return nvd_gpu_stream_now(d)->stream; }

/* Makes q the thread's current stream, under the lock; NULL means the device's own, which always has a holder. */
static void make_current(int ordinal, nvd_gpu_stream *q) {
  nvd_gpu_stream *old = current[ordinal];
  if (q == old) return;
  if (q) {
    q->holders++;
    atomic_store(&chosen, 1);
  }
  if (old) old->holders--;
  current[ordinal] = q;
}

/* A thread that ends gives up its current streams: another thread may get its id, and with it another default
   stream. */
static pthread_key_t ending;
static int tells; /* the key was made */
static pthread_once_t ending_once = PTHREAD_ONCE_INIT;
static void thread_ends(void *unused) {
  (void)unused;
  if (nvd_cuda_forked) return;
  nvd_lock();
  for (int i = 0; i < NVD_MAX_DEVICES; i++) make_current(i, NULL);
  nvd_unlock();
}
static void make_ending(void) { tells = !pthread_key_create(&ending, thread_ends); }

/* Finds the context of a stream. Returns a status. */
static int context_of(void **context, void *stream) {
  int error = nvd_cu.cuStreamGetCtx(stream, context);
  if (error == CUDA_INVALID_HANDLE)
    return nvb_fail(NVM_ERR_VALUE, "[stream] %p is no stream: %s (%d)", stream, nvd_cu.cudaGetErrorString(error),
                    error);
  return nvd_cuda_status(error, "stream");
}
static int ordinal_of(void *context) { /* the device's ordinal; -1: CUDA does not know it */
  void *was;
  int ordinal = -1;
  if (nvd_cu.cuCtxPushCurrent(context)) return -1;
  if (nvd_cu.cuCtxGetDevice(&ordinal)) ordinal = -1;
  nvd_cu.cuCtxPopCurrent(&was);
  return ordinal;
}

int nvd_stream_ordinal(int *ordinal, void *stream) {
  void *context = NULL;
  *ordinal = -1;
  if ((uintptr_t)stream <= CUDA_THREAD_STREAM) return NVM_OK;
  int status = nvd_cuda_open();
  status = status ? status : context_of(&context, stream);
  if (!status && (*ordinal = ordinal_of(context)) < 0)
    status = nvb_fail(NVM_ERR_VALUE, "[stream] %p is of no device that CUDA knows", stream);
  return status;
}

int nvd_stream_check(nvd_device *d, void *stream) {
  void *context = NULL;
  int status = nvd_device_ready(d);
  if (status || (uintptr_t)stream <= CUDA_THREAD_STREAM) return status;
  int entered = nvd_enter(d);
  status = context_of(&context, stream);
  if (!status && context != d->context) {
    int other = ordinal_of(context);
    status = other == d->ordinal
                 ? nvb_fail(NVM_ERR_VALUE, "[stream] this stream is of another context of cuda:%d than the primary one",
                            other)
                 : nvb_fail(NVM_ERR_VALUE, "[stream] this stream is of cuda:%d, not of cuda:%d", other, d->ordinal);
  }
  nvd_leave(entered);
  return status;
}

int nvd_stream_set(nvd_device *d, void *stream) {
  int status = nvd_stream_check(d, stream);
  if (status) return status;
  int entered = nvd_enter(d);
  pthread_once(&ending_once, make_ending);
  if (tells) pthread_setspecific(ending, d); /* any value but NULL, so that thread_ends is called */
  nvd_lock();
  nvd_gpu_stream *q = nvd_gpu_stream_of(d, stream);
  if (!q) status = nvb_fail_memory();
  if (q) make_current(d->ordinal, q == d->own ? NULL : q);
  nvd_unlock();
  nvd_leave(entered);
  return status;
}

int nvd_synchronize(nvd_device *d) {
  int status = nvd_device_ready(d);
  if (status) return status;
  nvd_lock();
  nvd_gpu_stream *q = d->streams; /* records stay in the list, and new ones are added at the front */
  nvd_unlock();
  nvb_interrupt_enter();
  for (; q && !status; q = q->next) status = nvd_use_wait(d, (nvd_use){ q, atomic_load(&q->issued) });
  nvb_interrupt_leave();
  return status;
}
