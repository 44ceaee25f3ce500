/* Copies between host and device memory and between devices. Pageable memory goes through a ring of pinned staging
   buffers, so that the device transfers one while CPU threads fill or drain the next; large pinned memory is copied
   directly. A download also raises the late errors of the value. Never decides where a value should be. */
#include <stdatomic.h>
#include <string.h>
#include "base/err.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "base/pool.h"
#include "dispatch/cuda/device_impl.h"

static atomic_llong copied; /* bytes, of this process */
int64_t nvd_bytes_copied(void) { return copied; }

enum { BUFFER_BYTES = 2 << 20, BUFFERS = 8, AHEAD = 3, DIRECT_FROM = 256 << 10, SHARE = 256 << 10 };

typedef struct staging_buffer { char *data; void *event; struct staging_buffer *next; } staging_buffer;

/* Staging buffers in the order of their last use. A buffer may still be read by the copy before its event. */
static struct staging {
  staging_buffer all[BUFFERS], *first, *last;
  int made;
} rings[NVD_MAX_DEVICES];
static nvb_lock staging_lock = NVB_LOCK(STAGING);
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;

static void put_back(nvd_device *d, staging_buffer *p) {
  struct staging *r = &rings[d->ordinal];
  nvb_lock_take(&staging_lock);
  p->next = NULL;
  *(r->last && r->first ? &r->last->next : &r->first) = p;
  r->last = p;
  pthread_cond_broadcast(&returned);
  nvb_lock_give(&staging_lock);
}

/* Makes the staging buffers at the first use, under staging_lock; what was made stays if a call fails. Returns an error
   code. */
static int make_staging(struct staging *r) {
  void *data = r->all[0].data;
  int error = data ? 0 : nvd_cu.cudaHostAlloc(&data, (size_t)BUFFER_BYTES * BUFFERS, CUDA_HOST_PORTABLE_MAPPED);
  for (int i = 0; i < BUFFERS && !error; i++) {
    staging_buffer *p = &r->all[i];
    p->data = (char *)data + (size_t)i * BUFFER_BYTES;
    error = p->event ? 0 : nvd_cu.cudaEventCreateWithFlags(&p->event, CUDA_EVENT_NO_TIMING);
  }
  for (int i = 0; i < BUFFERS && !error; i++) {
    *(r->last ? &r->last->next : &r->first) = &r->all[i];
    r->last = &r->all[i];
  }
  r->made = !error;
  return error;
}

/* Takes the least recently used buffer. If none is free, waits for one (`wait`) or returns NULL. */
static staging_buffer *take_buffer(nvd_device *d, int wait, int *error) {
  struct staging *r = &rings[d->ordinal];
  nvb_lock_take(&staging_lock);
  if (!r->made) *error = make_staging(r);
  while (!*error && !r->first && wait) nvb_lock_await(&staging_lock, &returned);
  staging_buffer *p = *error ? NULL : r->first;
  if (p) r->first = p->next;
  nvb_lock_give(&staging_lock);
  if (p && (*error = nvd_event_wait(p->event))) {
    put_back(d, p);
    p = NULL;
  }
  return p;
}

/* ---- copies within host memory */
typedef struct move { char *to; const char *from; } move;
static void move_part(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)worker;
  move *m = arg;
  memcpy(m->to + lo, m->from + lo, (size_t)(hi - lo));
}
static void move_bytes(char *to, const char *from, size_t n) {
  move m = { to, from };
  if (n <= SHARE) memcpy(to, from, n);
  else nvb_pool_run(move_part, &m, (int64_t)n, SHARE);
}

static int is_pinned(const void *host) {
  int type = 0;
  return !nvd_cu.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uint64_t)(uintptr_t)host) &&
         type == CUDA_MEMORY_HOST;
}

/* ---- what all copies share */
typedef struct copy { nvd_device *d; nvd_gpu_stream *q; nvd_devbuf *cell; int writes, entered; } copy;

static int begin_copy(copy *c, nvd_buf *b, size_t offset, size_t bytes, int writes) {
  *c = (copy){ .d = b->device, .cell = (nvd_devbuf *)b, .writes = writes };
  int status = nvd_device_ready(c->d), error = 0;
  if (status) return status;
  if (offset > b->bytes || bytes > b->bytes - offset)
    return nvb_fail(NVM_ERR_INTERNAL, "[copy] %zu bytes at %zu of a buffer of %zu", bytes, offset, b->bytes);
  c->entered = nvd_enter(c->d);
  nvd_lock();
  c->q = nvd_gpu_stream_now(c->d);
  int captured = nvd_capturing(c->q);
  if (!captured) error = nvd_devbuf_use(c->cell, c->q, writes);
  nvd_unlock();
  status = captured
               ? nvb_fail(NVM_ERR_STATE,
                          "[copy] a copy between host and device is not possible on a stream that is being captured")
               : nvd_device_status(c->d, error, "copy");
  if (status) nvd_leave(c->entered);
  return status;
}

/* Gives the copy a sequence number of its own, since other threads may have used the stream since begin_copy. */
static nvd_use note_use(copy *c) {
  nvd_lock();
  nvd_devbuf_use(c->cell, c->q, c->writes);
  nvd_use u = { c->q, nvd_gpu_stream_note(c->q, nvd_capturing(c->q), NULL) };
  nvd_unlock();
  return u;
}

/* Copies directly and waits for the end, since the memory is the caller's. An interrupt can end the wait for earlier
   work on the stream, but not the copy. */
static int copy_directly(copy *c, void *to, const void *from, size_t bytes, int kind) {
  int status = nvb_interrupt_enabled() ? nvd_use_wait(c->d, (nvd_use){ c->q, atomic_load(&c->q->issued) }) : NVM_OK;
  if (status) return status;
  int error = nvd_cu.cudaMemcpyAsync(to, from, bytes, kind, c->q->stream);
  nvd_use u = note_use(c);
  nvb_interrupt_mask();
  status = error ? nvd_device_status(c->d, error, "copy") : nvd_use_wait(c->d, u);
  nvb_interrupt_unmask();
  return status;
}

/* ---- host to device */
static int send_bytes(copy *c, char *to, const char *from, size_t bytes) {
  int error = 0;
  for (size_t at = 0, n; at < bytes && !error; at += n) {
    n = bytes - at < BUFFER_BYTES ? bytes - at : BUFFER_BYTES;
    staging_buffer *p = take_buffer(c->d, 1, &error);
    if (!p) break;
    move_bytes(p->data, from + at, n);
    error = nvd_cu.cudaMemcpyAsync(to + at, p->data, n, CUDA_TO_DEVICE, c->q->stream);
    error = error ? error : nvd_cu.cuEventRecord(p->event, c->q->stream);
    put_back(c->d, p);
  }
  return error;
}

int nvd_upload(nvd_buf *to, size_t offset, const void *from, size_t bytes) {
  copy c;
  atomic_fetch_add(&copied, (long long)bytes);
  int status = begin_copy(&c, to, offset, bytes, 1);
  if (status) return status;
  char *at = to->data + offset;
  if (bytes >= DIRECT_FROM && is_pinned(from)) {
    status = copy_directly(&c, at, from, bytes, CUDA_TO_DEVICE);
  } else {
    int error = send_bytes(&c, at, from, bytes);
    note_use(&c);
    status = nvd_device_status(c.d, error, "copy");
  }
  nvd_leave(c.entered);
  return status;
}

/* ---- device to host */
static int receive_bytes(copy *c, char *to, const char *from, size_t bytes) {
  struct {
    staging_buffer *p;
    size_t at, n;
  } on[AHEAD];
  int error = 0, first = 0, count = 0;
  for (size_t at = 0; !error && (at < bytes || count);) {
    /* waits only while it holds no buffer itself */
    staging_buffer *p = at < bytes && count < AHEAD ? take_buffer(c->d, !count, &error) : NULL;
    if (p) {
      size_t n = bytes - at < BUFFER_BYTES ? bytes - at : BUFFER_BYTES;
      error = nvd_cu.cudaMemcpyAsync(p->data, from + at, n, CUDA_TO_HOST, c->q->stream);
      error = error ? error : nvd_cu.cuEventRecord(p->event, c->q->stream);
      int i = (first + count++) % AHEAD;
      on[i].p = p;
      on[i].at = at;
      on[i].n = n;
      at += n;
    } else if (count && !error) {
      error = nvd_event_wait(on[first].p->event);
      if (!error) move_bytes(to + on[first].at, on[first].p->data, on[first].n);
      put_back(c->d, on[first].p);
      first = (first + 1) % AHEAD;
      count--;
    }
  }
  for (; count; count--, first = (first + 1) % AHEAD) put_back(c->d, on[first].p);
  return error;
}

/* Raises the failed check of the computation that made the value; call it after that is complete. */
static int late_error(nvd_devbuf *c) {
  int status = NVM_OK;
  nvd_lock();
  const char *found = c->fault ? nvd_fault_found(c->fault, &status) : NULL;
  if (found) status = nvb_fail(status, "%s", found);
  nvd_unlock();
  return status;
}

/* always: waits also if no check can have failed */
static int wait_for_writer(nvd_buf *b, int always) {
  nvd_devbuf *c = (nvd_devbuf *)b;
  nvd_lock();
  nvd_use writer = c->writer;
  int may_fail = c->fault != NULL;
  nvd_unlock();
  nvb_interrupt_enter();
  int status = may_fail || always ? nvd_use_wait(b->device, writer) : NVM_OK;
  nvb_interrupt_leave();
  return status || !may_fail ? status : late_error(c);
}
int nvd_buf_check(nvd_buf *b) { return wait_for_writer(b, 0); }
int nvd_buf_wait(nvd_buf *b) { return wait_for_writer(b, 1); }
int nvd_buf_done(nvd_buf *b) {
  nvd_lock();
  int done = nvd_use_done(((nvd_devbuf *)b)->writer);
  nvd_unlock();
  return done;
}

static int download_bytes(void *to, nvd_buf *from, size_t offset, size_t bytes) {
  copy c;
  int status = begin_copy(&c, from, offset, bytes, 0);
  if (status) return status;
  const char *at = from->data + offset;
  int64_t over = atomic_load(&c.q->issued); /* the work that is complete when the copy is */
  if (bytes >= DIRECT_FROM && is_pinned(to)) {
    status = copy_directly(&c, to, at, bytes, CUDA_TO_HOST);
  } else {
    int error = receive_bytes(&c, to, at, bytes);
    over += note_use(&c).seq == over + 1; /* if no other work was issued in between */
    status = nvd_device_status(c.d, error, "copy");
  }
  nvd_leave(c.entered);
  if (status) return status;
  nvd_lock();
  if (bytes && c.q->done < over) c.q->done = over;
  nvd_unlock();
  return bytes ? late_error(c.cell) : NVM_OK;
}

int nvd_download(void *to, nvd_buf *from, size_t offset, size_t bytes) {
  atomic_fetch_add(&copied, (long long)bytes);
  nvb_interrupt_enter();
  int status = download_bytes(to, from, offset, bytes);
  nvb_interrupt_leave();
  return status;
}

/* ---- device to device */
int nvd_copy_on(nvd_buf *to, size_t to_offset, nvd_buf *from, size_t from_offset, size_t bytes) {
  copy c;
  int status = begin_copy(&c, to, to_offset, bytes, 1);
  if (status) return status;
  nvd_device *source = from->device;
  if (source != c.d) atomic_fetch_add(&copied, (long long)bytes);
  char *at = to->data + to_offset;
  const char *data = from->data + from_offset;
  nvd_devbuf *devbuf = (nvd_devbuf *)from;
  nvd_fault *fault = NULL;
  status = nvd_device_ready(source);
  if (!status && (from_offset > from->bytes || bytes > from->bytes - from_offset))
    status = nvb_fail(NVM_ERR_INTERNAL, "[copy] %zu bytes at %zu of a buffer of %zu", bytes, from_offset, from->bytes);
  if (!status) {
    nvd_lock();
    int error = nvd_devbuf_use(c.cell, c.q, 1);
    error = error ? error : nvd_devbuf_use(devbuf, c.q, 0);
    nvd_fault *both[] = { c.cell->fault, devbuf->fault };
    if (!error && !nvd_fault_new(&fault, NULL, (nvd_use){ c.q, c.q->issued + 1 }, both, 2)) error = CUDA_OUT_OF_MEMORY;
    if (!error)
      error = source == c.d ? nvd_cu.cudaMemcpyAsync(at, data, bytes, CUDA_ON_DEVICE, c.q->stream)
                            : nvd_cu.cudaMemcpyPeerAsync(at, c.d->ordinal, data, source->ordinal, bytes, c.q->stream);
    nvd_gpu_stream_note(c.q, nvd_capturing(c.q), NULL);
    nvd_fault_unref(c.cell->fault);
    c.cell->fault = fault;
    nvd_unlock();
    status = nvd_device_status(c.d, error, "copy");
  }
  nvd_leave(c.entered);
  return status;
}
