/* The device structures that memory, streams, copies, fault slots and programs of a GPU share. One lock, nvd_gpu_lock,
   protects all streams and device buffers; code under it never waits for a GPU, and a forked child never takes it.
   Private to dispatch. */
#ifndef NVM_DISPATCH_CUDA_DEVICE_IMPL_H
#define NVM_DISPATCH_CUDA_DEVICE_IMPL_H
#include "base/lock.h"
#include "dispatch/cuda/api.h"
#include "dispatch/cuda/device.h"

enum { NVD_MAX_DEVICES = 64, NVD_NCLASS = 48 * 8, NVD_LABEL = 64, NVD_LABELS = 16, NVD_USES = 4 };

/* ---- CUDA streams with bookkeeping. Each piece of work put on a stream gets the next sequence number; the stream's
   event covers the numbers up to `recorded`. The device's own stream records the event when a thread has to wait. A
   stream of the caller records it after each piece of work, so that the library touches the stream only in calls that
   name it or have it as the thread's current one. Records of streams are never freed: one without holders is reused for
   another stream, and its sequence numbers go on. */
/* last: the newest sequence number with this name */
typedef struct nvd_label { char name[NVD_LABEL]; int64_t last; } nvd_label;
/* stands for the sequence number of a use by others that lasts until the buffer is released */
enum { NVD_OPEN = -1 };
typedef struct nvd_gpu_stream {
  nvd_device *device;
  void *stream;
  pthread_t thread; /* for a per-thread default stream: its thread */
  int holders;      /* threads whose current stream it is, plus open uses; the device's own stream always has one */
  _Atomic int64_t issued; /* the last sequence number given out */
  int64_t recorded, done; /* sequence numbers: covered by the event; known to be complete */
  void *event;
  struct nvd_devbuf *idle[NVD_NCLASS]; /* freed blocks by size class, which later work on this stream can reuse */
  struct nvd_devbuf *flags; /* inter-CTA flags, zero before and after each kernel; NULL: no kernel has needed them */
  /* names of the last launches, no two equal ones in sequence, in a ring that ends at `newest` */
  nvd_label label[NVD_LABELS];
  int newest;
  struct nvd_gpu_stream *next; /* the next stream of the device */
} nvd_gpu_stream;
typedef struct nvd_use { nvd_gpu_stream *q; int64_t seq; } nvd_use;

struct nvd_device {
  int ordinal, arch;
  /* a kernel may start while its predecessor ends (programmatic launch; kernels wait for it themselves) */
  int overlaps;
  int64_t shared; /* the most bytes of shared memory of a block */
  void *context, *pool;
  nvb_caps caps;
  nvd_gpu_stream *own, *streams;
  int64_t used, peak, limit, idle; /* bytes: live, the most live, the limit (0: none), cached for reuse */
  _Atomic int lost;                /* a kernel broke the context, which is of no use any more */
  char why[1024];                  /* why it was lost */
  char line[160];
};

extern nvb_lock nvd_gpu_lock;
static inline void nvd_lock(void) { nvb_lock_take(&nvd_gpu_lock); }
static inline void nvd_unlock(void) { nvb_lock_give(&nvd_gpu_lock); }

/* NVM_OK if the device can be used; fails after a fork or a loss. */
int nvd_device_ready(nvd_device *d);
/* Make the device's context current in the thread; leaving restores the one before, if there was one. nvd_enter also
   allows calls that might wait while the thread is capturing another stream. */
int nvd_enter_context(nvd_device *d);
void nvd_leave_context(int entered);
int nvd_enter(nvd_device *d);
void nvd_leave(int entered);
/* Turns a CUDA error code into a status, without the lock. If the error breaks the context, the device becomes lost and
   the message names the kernels. */
int nvd_device_status(nvd_device *d, int error, const char *what); /* NVD_INTERRUPTED becomes NVM_ERR_INTERRUPTED */
int nvd_breaks_context(int error);                                 /* after which the context returns only this error */
enum { NVD_INTERRUPTED = -1 };
/* Waits for an event. Returns a CUDA error code or NVD_INTERRUPTED. */
int nvd_event_wait(void *event);
int nvd_device_lose(nvd_device *d, const char *why); /* returns NVM_ERR_DEVICE, always with the first message */

/* ---- called under the lock */
nvd_gpu_stream *nvd_gpu_stream_now(nvd_device *d);              /* the thread's current stream */
nvd_gpu_stream *nvd_gpu_stream_of(nvd_device *d, void *stream); /* finds or makes it; NULL: out of memory */
/* Notes that work was put on q and returns its sequence number. capturing: the result of nvd_capturing(q). label: its
   name for the message if it breaks the device, or NULL. */
int64_t nvd_gpu_stream_note(nvd_gpu_stream *q, int capturing, const char *label);
int nvd_gpu_stream_wait(nvd_gpu_stream *q, nvd_use u); /* orders q's later work behind u; a CUDA error code */
int nvd_gpu_stream_end(nvd_device *d, void *stream);   /* called before a stream is destroyed; a CUDA error code */
int nvd_use_done(nvd_use u); /* is u known to be complete? It queries CUDA and does not wait */
/* Sets *event to one that follows u, or to NULL if u is complete or part of a captured graph. A CUDA error code: the
   stream takes no event. */
int nvd_use_event(void **event, nvd_use u);
/* Waits for u, without the lock. Returns a status. */
int nvd_use_wait(nvd_device *d, nvd_use u);
int nvd_capturing(const nvd_gpu_stream *q); /* is the caller capturing this stream into a graph? */

/* ---- buffers of a device (memory.c) */
typedef struct nvd_devbuf {
  nvd_buf b;
  nvd_use writer;        /* the last write */
  nvd_use use[NVD_USES]; /* the last use on each stream, the writer's included */
  int nuse;
  void *stream;            /* foreign memory: the stream that its owner's work is ordered on; NULL: any */
  struct nvd_fault *fault; /* what may have gone wrong with its contents; NULL: nothing can have */
  struct nvd_devbuf *next; /* in a list of cached blocks, or of foreign memory that waits for its last use */
} nvd_devbuf;
/* Notes that a run uses the buffer on q at the next sequence number, and orders q behind earlier uses. Under the lock.
   Returns a CUDA error code. */
int nvd_devbuf_use(nvd_devbuf *c, nvd_gpu_stream *q, int writes);
/* Allocates memory for the next work on q, or NULL if there is none; frees memory for what follows its last use. Under
   the lock. */
nvd_devbuf *nvd_devbuf_alloc(nvd_gpu_stream *q, size_t bytes);
void nvd_devbuf_free(nvd_devbuf *c);
/* After an allocation failed: frees cached blocks (attempt 0), then also waits for the device and trims the pool
   (attempt 1). Without the lock. Returns 1 if the caller should try again, else 0 with a message. */
int nvd_reclaim_memory(nvd_device *d, size_t bytes, int attempt);

/* ---- fault slots (fault.c). A fault records what may have gone wrong with a value: a failed check of the run that
   made it, or of a run that made one of its inputs. Faults are counted, and all are under the lock. */
enum { NVD_FAILED_FROM = INT32_MAX };
typedef struct nvd_checks { /* the messages of a program's checks; counted, since faults outlive the program */
  _Atomic int refs;
  int nslot, n; /* checked steps; checks in them */
  struct {
    int slot, failed;
    /* text is the name of an operation on matrices, and the slot says which of a batch of this shape failed, and why:
       NVD_FAILED_FROM less nvd_matrix_failure's number; -1: text is the message */
    int nbatch;
    int64_t batch[NVM_MAX_RANK];
    char text[320];
  } at[]; /* `failed`: the value of the slot that means this message; 0: any value */
} nvd_checks;
void nvd_checks_unref(nvd_checks *c);
typedef struct nvd_fault nvd_fault;
/* Makes the fault of a run with this stream and sequence number, these checks (NULL: none of its own), and inputs with
   these faults (any may be NULL). *out is NULL if nothing can go wrong. Returns 0 if memory runs out. */
int nvd_fault_new(nvd_fault **out, nvd_checks *checks, nvd_use use, nvd_fault *const *from, int nfrom);
int *nvd_fault_slot(nvd_fault *f, int i); /* where checked step i of the run writes: mapped host memory */
nvd_fault *nvd_fault_ref(nvd_fault *f);   /* NULL passes through */
void nvd_fault_unref(nvd_fault *f);       /* NULL is fine */
/* After the run is complete: the message of the check that failed first, valid under the lock; or NULL. *status is
   what it means. */
const char *nvd_fault_found(nvd_fault *f, int *status);
#endif
