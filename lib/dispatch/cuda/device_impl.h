/* Devices from inside: what memory, copies, error slots and programs of a device share. Everything named `stream`
   here is under one lock, nvd_gpu_lock; nothing under it waits for a GPU. A forked child never takes it. */
#ifndef NVM_DISPATCH_CUDA_DEVICE_IMPL_H
#define NVM_DISPATCH_CUDA_DEVICE_IMPL_H
#include <pthread.h>
#include "dispatch/cuda/api.h"
#include "dispatch/cuda/device.h"

enum { NVD_MAX_DEVICES = 64, NVD_NCLASS = 48 * 8, NVD_LABEL = 64, NVD_LABELS = 16, NVD_USES = 4 };

/* ---- streams of CUDA as this library knows them. Work put on one gets the next sequence number; the event covers
   those up to `recorded`. On the device's own stream it is recorded when somebody has to wait; on a stream of the
   caller after each work, so that the stream is touched only in calls that name it or have it as the thread's current
   one. Queues are never freed; one that nobody holds becomes another stream's, and its sequence numbers go on. */
typedef struct nvd_label { char name[NVD_LABEL]; int64_t last; } nvd_label; /* last: its newest sequence number */
enum { NVD_OPEN = -1 }; /* sequence number of a use by others that goes on until the buffer is given back */
typedef struct nvd_gpu_stream {
  nvd_device *device;
  void *stream;
  pthread_t thread;       /* whose per-thread default stream it is */
  int holders;            /* threads that have it current, open uses; the device's own has one for ever */
  _Atomic int64_t issued; /* sequence numbers: the last */
  int64_t recorded, done; /* covered by the event; known to be complete */
  void *event;
  struct nvd_devbuf *idle[NVD_NCLASS]; /* freed memory: what comes later on this stream may have it */
  struct nvd_devbuf *flags;    /* where blocks of a kernel meet: zeros before and after each; NULL: none did yet */
  nvd_label label[NVD_LABELS]; /* launched last: the names, each once in a row, in a ring that ends at `newest` */
  int newest;
  struct nvd_gpu_stream *next; /* of the device */
} nvd_gpu_stream;
typedef struct nvd_use { nvd_gpu_stream *q; int64_t seq; } nvd_use;

struct nvd_device {
  int ordinal, arch;
  int overlaps;   /* a kernel may start while the one before it ends (they wait for it themselves) */
  int64_t shared; /* bytes of shared memory that a block may have */
  void *context, *pool;
  nvb_caps caps;
  nvd_gpu_stream *own, *streams;
  int64_t used, peak, limit, idle; /* bytes: of live buffers; kept for reuse */
  _Atomic int lost;                /* a kernel broke the context: nothing can be had from it any more */
  char why[1024];                  /* it was lost */
  char line[160];
};

extern pthread_mutex_t nvd_gpu_lock;
static inline void nvd_lock(void) { pthread_mutex_lock(&nvd_gpu_lock); }
static inline void nvd_unlock(void) { pthread_mutex_unlock(&nvd_gpu_lock); }

/* NVM_OK if the device can be used: not after a fork, not when it is lost. */
int nvd_device_ready(nvd_device *d);
/* The device's context becomes the thread's; leaving gives back what was there before, if anything was. nvd_enter also
   lets calls through that might wait, if the thread is in the middle of a capture of something else. */
int nvd_enter_context(nvd_device *d);
void nvd_leave_context(int entered);
int nvd_enter(nvd_device *d);
void nvd_leave(int entered);
/* A status for CUDA's error code; the device is lost if the error says so, and the message then names the kernels.
   Without the lock. */
int nvd_device_status(nvd_device *d, int error, const char *what); /* NVD_INTERRUPTED passes as its status */
enum { NVD_INTERRUPTED = -1 };
/* Waits for an event: an error code of CUDA, or NVD_INTERRUPTED. */
int nvd_event_wait(void *event);
int nvd_device_lose(nvd_device *d, const char *why); /* NVM_ERR_DEVICE; the same message */

/* Under the lock: */
nvd_gpu_stream *nvd_gpu_stream_now(nvd_device *d);              /* of the thread's current stream */
nvd_gpu_stream *nvd_gpu_stream_of(nvd_device *d, void *stream); /* NULL: out of memory */
/* Work was put on q: the sequence number that stands for it. capturing: what nvd_capturing says of q. `label` names it
   for the case that it breaks the device; may be NULL. */
int64_t nvd_gpu_stream_note(nvd_gpu_stream *q, int capturing, const char *label);
int nvd_gpu_stream_wait(nvd_gpu_stream *q, nvd_use u); /* orders q's later work behind it; an error code of CUDA */
int nvd_use_done(nvd_use u);                           /* is it known to be complete? Asks CUDA, does not wait */
/* *event: one behind it; NULL: it is complete. An error code of CUDA: the stream takes no event. */
int nvd_use_event(void **event, nvd_use u);
/* Without the lock: waits for it. A status. */
int nvd_use_wait(nvd_device *d, nvd_use u);
int nvd_capturing(const nvd_gpu_stream *q); /* is the caller recording this stream into a graph? */

/* ---- buffers of a device (memory.c) */
typedef struct nvd_devbuf {
  nvd_buf b;
  nvd_use writer;
  nvd_use use[NVD_USES]; /* the writer's too; one of each stream */
  int nuse;
  void *stream;            /* foreign memory: where its owner's work is ordered, NULL: anywhere */
  struct nvd_fault *fault; /* what may have gone wrong with its contents; NULL: nothing */
  struct nvd_devbuf *next; /* of the idle, or of those that wait to be given back */
} nvd_devbuf;
/* Under the lock. A run is about to use the buffer on q, at the next sequence number: orders q. An error code of
   CUDA. */
int nvd_devbuf_use(nvd_devbuf *c, nvd_gpu_stream *q, int writes);
/* Under the lock: memory for what comes next on q, NULL when there is none; and back, for what comes after its last
   use. */
nvd_devbuf *nvd_devbuf_alloc(nvd_gpu_stream *q, size_t bytes);
void nvd_devbuf_free(nvd_devbuf *c);
/* Without the lock, after a take that failed; attempt 0, 1, ...: 1 if there is more memory now, or 0 with a message. */
int nvd_reclaim_memory(nvd_device *d, size_t bytes, int attempt);

/* ---- error slots (fault.c). A fault is what may have gone wrong with a value: a check of the run that made it,
   or of one that made what it was computed from. Counted; everything under the lock. */
typedef struct nvd_checks {        /* the messages of a program's checks; outlives it; counted */
  _Atomic int refs;
  int nslot, n; /* checked steps, and checks in them */
  struct {
    int slot, failed;
    char text[320];
  } at[]; /* what the slot then holds; 0: anything */
} nvd_checks;
void nvd_checks_unref(nvd_checks *c);
typedef struct nvd_fault nvd_fault;
/* Of a run that will have this sequence number, with these checks (NULL: none of its own), on values with these faults
   (NULL among them is fine). *out is NULL if nothing can have gone wrong. 0 when out of memory. */
int nvd_fault_new(nvd_fault **out, nvd_checks *checks, nvd_use use, nvd_fault *const *from, int nfrom);
int *nvd_fault_slot(nvd_fault *f, int i); /* where checked step i of the run writes; host memory that devices reach */
nvd_fault *nvd_fault_ref(nvd_fault *f);   /* NULL passes through */
void nvd_fault_unref(nvd_fault *f);       /* NULL is fine */
/* After the run is complete: NULL, or the message of what failed first; valid under the lock. */
const char *nvd_fault_found(nvd_fault *f);
#endif
