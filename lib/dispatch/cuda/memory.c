/* A caching allocator for device memory. Freed blocks are kept by stream and size class: later work on the same stream
   reuses them at once, another stream after their last use is complete, and otherwise the CUDA memory pool provides new
   ones. Decides what is freed when memory runs out. Never waits, except to reclaim memory or to allocate during a
   caller's capture. */
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/size_class.h"

enum { LINE = 512, EXACT_FROM = 32 << 20, PAGE = 2 << 20 };

static nvd_devbuf *leaving; /* released foreign memory that waits for its last use; under the lock */
static _Atomic int nleaving;

/* Returns the class of a block. Small blocks have the size of their class; large ones have their own, in whole
   pages. */
static int class_of(size_t bytes, size_t *cap) {
  int class = nvd_class_of(bytes, LINE, cap);
  if (bytes >= EXACT_FROM) *cap = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
  return class;
}

/* ---- uses */
/* ends a use by others: it covers all work that they have put on the stream by now */
static void close_open(nvd_use *u) {
  if (u->seq != NVD_OPEN) return;
  u->seq = nvd_gpu_stream_note(u->q, nvd_capturing(u->q), NULL);
  u->q->holders--;
}

static nvd_use *place_of(nvd_devbuf *c, nvd_gpu_stream *q, int *error) {
  nvd_use *old = NULL;
  for (int i = 0; i < c->nuse; i++) {
    if (c->use[i].q == q) return &c->use[i];
    if (!old && c->use[i].seq != NVD_OPEN) old = &c->use[i];
  }
  if (c->nuse < NVD_USES) {
    c->use[c->nuse] = (nvd_use){ q, 0 };
    return &c->use[c->nuse++];
  }
  old = old ? old : c->use; /* no slot is free: q waits for one of the uses and stands for both */
  close_open(old);
  *error = nvd_gpu_stream_wait(q, *old);
  return old;
}

int nvd_devbuf_use(nvd_devbuf *c, nvd_gpu_stream *q, int writes) {
  nvd_use now = { q, q->issued + 1 };
  if (c->writer.q == q && c->nuse == 1 && c->use[0].q == q && c->use[0].seq != NVD_OPEN) { /* only q uses it */
    c->use[0] = now;
    c->writer = writes ? now : c->writer;
    return 0;
  }
  int error = c->writer.q == q ? 0 : nvd_gpu_stream_wait(q, c->writer), n = 0;
  for (int i = 0; i < c->nuse && writes; i++) {
    if (!error && c->use[i].q != q) error = nvd_gpu_stream_wait(q, c->use[i]);
    if (c->use[i].seq == NVD_OPEN || c->use[i].q == q) c->use[n++] = c->use[i];
  }
  if (writes) {
    c->nuse = n;
    c->writer = now;
  }
  nvd_use *u = place_of(c, q, error ? &n : &error);
  if (u->q != q || u->seq != NVD_OPEN) *u = now;
  return error;
}

/* ---- blocks */
static void destroy_block(nvd_devbuf *c) {
  nvd_device *d = c->b.device;
  if (!atomic_load(&d->lost)) {
    nvd_gpu_stream_wait(d->own, c->use[0]);
    nvd_cu.cudaFreeAsync(c->b.data, d->own->stream);
  }
  nvb_free(c);
}

/* Returns every cached block to the pool, under the lock. Returns the number of bytes. */
static int64_t empty_cache(nvd_device *d) {
  int64_t freed = d->idle;
  int entered = nvd_enter(d);
  for (nvd_gpu_stream *q = d->streams; q; q = q->next)
    for (int k = 0; k < NVD_NCLASS; k++)
      for (nvd_devbuf *c; (c = q->idle[k]);) {
        q->idle[k] = c->next;
        destroy_block(c);
      }
  nvd_gpu_stream_note(d->own, 0, NULL);
  nvd_leave(entered);
  d->idle = 0;
  return freed;
}

static nvd_devbuf *take_cached(nvd_gpu_stream *q, int k, size_t need, size_t most, int any) {
  for (nvd_devbuf **at = &q->idle[k], *c; (c = *at); at = &c->next)
    if (c->b.cap >= need && c->b.cap <= most && (any || nvd_use_done(c->use[0]))) {
      *at = c->next;
      q->device->idle -= (int64_t)c->b.cap;
      return c;
    }
  return NULL;
}

static nvd_devbuf *allocate_block(nvd_gpu_stream *q, size_t cap) {
  nvd_device *d = q->device;
  nvd_devbuf *c = nvb_calloc(1, sizeof *c);
  void *data = NULL;
  if (!c) return NULL;
  int entered = nvd_enter(d), error = nvd_cu.cudaMallocFromPoolAsync(&data, cap, d->pool, q->stream);
  nvd_leave(entered);
  if (error) {
    nvd_cu.cudaGetLastError();
    nvb_free(c);
    return NULL;
  }
  c->b.data = data;
  c->b.cap = cap;
  nvd_gpu_stream_note(q, 0, NULL); /* the memory exists only behind this point of q */
  return c;
}

static int64_t bytes_left(const nvd_device *d) { return d->limit ? d->limit - d->used : INT64_MAX; }

/* Does the limit allow a block of `bytes` bytes? Sizes from 2^48 on have no class and never fit. */
static int is_within_limit(const nvd_device *d, size_t bytes) {
  size_t cap;
  return !(bytes >> 48) && (class_of(bytes, &cap), (int64_t)cap <= bytes_left(d));
}

nvd_devbuf *nvd_devbuf_alloc(nvd_gpu_stream *q, size_t bytes) {
  nvd_device *d = q->device;
  int64_t left = bytes_left(d);
  size_t cap;
  if (!is_within_limit(d, bytes)) return NULL;
  int k = class_of(bytes, &cap);
  nvd_devbuf *c = take_cached(q, k, cap, (size_t)left, 1);
  for (nvd_gpu_stream *other = d->streams; other && !c; other = other->next)
    c = other == q ? NULL : take_cached(other, k, cap, (size_t)left, 0);
  if (!c && d->limit && d->idle > left - (int64_t)cap) empty_cache(d);
  if (!c && !(c = allocate_block(q, cap))) return NULL;
  c->b = (nvd_buf){ .refs = 1, .bytes = bytes, .cap = c->b.cap, .data = c->b.data, .device = d };
  nvd_use now = { q, q->issued };
  c->writer = now;
  c->use[0] = now;
  c->nuse = 1;
  if ((d->used += (int64_t)c->b.cap) > d->peak) d->peak = d->used;
  return c;
}

void nvd_devbuf_free(nvd_devbuf *c) {
  nvd_device *d = c->b.device;
  for (int i = 0; i < c->nuse; i++) close_open(&c->use[i]);
  nvd_fault_unref(c->fault);
  c->fault = NULL;
  if (c->b.release) {
    c->next = leaving;
    leaving = c;
    atomic_fetch_add(&nleaving, 1);
    return;
  }
  d->used -= (int64_t)c->b.cap;
  if (atomic_load(&d->lost)) {
    nvb_free(c);
    return;
  }
  if (c->nuse > 1) { /* a block that several streams used is free behind all of them */
    for (int i = 0; i < c->nuse; i++) nvd_gpu_stream_wait(d->own, c->use[i]);
    c->use[0] = (nvd_use){ d->own, nvd_gpu_stream_note(d->own, 0, NULL) };
  }
  size_t cap;
  nvd_devbuf **list = &c->use[0].q->idle[class_of(c->b.cap, &cap)];
  c->next = *list;
  *list = c;
  d->idle += (int64_t)c->b.cap;
}

/* Can the owner have its memory back? Yes if our uses are complete, or all on the stream that the owner's own work is
   ordered on. */
static int is_over(const nvd_devbuf *c) {
  int yes = 1, named = c->stream && c->stream != (void *)CUDA_THREAD_STREAM;
  for (int i = 0; i < c->nuse && yes; i++)
    yes = (named && c->use[i].q->stream == c->stream) || nvd_use_done(c->use[i]) || atomic_load(&c->b.device->lost);
  return yes;
}

static void reap_blocks(void) {
  nvd_devbuf *gone = NULL;
  if (!atomic_load_explicit(&nleaving, memory_order_relaxed)) return;
  nvd_lock();
  for (nvd_devbuf **at = &leaving, *c; (c = *at);) {
    if (!is_over(c)) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    c->next = gone;
    gone = c;
    atomic_fetch_sub(&nleaving, 1);
  }
  nvd_unlock();
  for (nvd_devbuf *c; (c = gone);) { /* without the lock, since the owners may call the library */
    gone = c->next;
    c->b.release(c->b.owner);
    nvb_free(c);
  }
}

/* ---- buffers */
int nvd_reclaim_memory(nvd_device *d, size_t bytes, int attempt) {
  int status = nvd_device_ready(d);
  if (status) return 0;
  nvd_lock();
  int64_t used = d->used, limit = d->limit;
  size_t cap = bytes;
  if (!(bytes >> 48)) class_of(bytes, &cap);
  int more = limit && !is_within_limit(d, bytes) ? -1 : attempt == 0 ? empty_cache(d) > 0 : attempt == 1;
  nvd_unlock();
  if (more >= 0 && attempt == 0) return more || nvd_reclaim_memory(d, bytes, 1);
  int entered = nvd_enter(d);
  if (more > 0) {
    status = nvd_synchronize(d);
    reap_blocks();
    nvd_cu.cudaMemPoolTrimTo(d->pool, 0);
  }
  size_t unused = 0, total = 0;
  nvd_cu.cudaMemGetInfo(&unused, &total);
  nvd_leave(entered);
  if (status || more > 0) return !status;
  if (more < 0)
    nvb_fail(NVM_ERR_MEMORY,
             "[memory] %zu bytes (%zu as a block) more than the %lld in use on cuda:%d would exceed "
             "the limit of %lld",
             bytes, cap, (long long)used, d->ordinal, (long long)limit);
  else
    nvb_fail(NVM_ERR_MEMORY,
             "[memory] out of memory on cuda:%d: %zu bytes more than the %lld in use; %zu of %zu are "
             "free",
             d->ordinal, bytes, (long long)used, unused, total);
  return 0;
}

nvd_buf *nvd_buf_new_on(nvd_device *d, size_t bytes) {
  if (nvd_device_ready(d)) return NULL;
  reap_blocks();
  nvd_devbuf *c;
  nvd_use last;
  int captured;
  for (int attempt = 0;; attempt++) {
    nvd_lock();
    nvd_gpu_stream *q = nvd_gpu_stream_now(d);
    /* memory for a captured graph is allocated on the own stream, so that it exists before the graph runs */
    captured = nvd_capturing(q);
    c = nvd_devbuf_alloc(captured ? d->own : q, bytes);
    last = (nvd_use){ d->own, d->own->issued };
    nvd_unlock();
    if (c || !nvd_reclaim_memory(d, bytes, attempt)) break;
  }
  if (c && captured && nvd_use_wait(d, last)) {
    nvd_buf_unref(&c->b);
    c = NULL;
  }
  return c ? &c->b : NULL;
}

void nvd_buf_give_on(nvd_buf *b) {
  if (nvd_cuda_forked) /* the memory belongs to the parent process */
    return;
  nvd_lock();
  nvd_devbuf_free((nvd_devbuf *)b);
  nvd_unlock();
  reap_blocks();
}

static void release_nothing(void *owner) { (void)owner; }

static int place_of_memory(const void *data) { /* -1: not memory of a GPU */
  int type = 0, device = -1;
  uint64_t at = (uint64_t)(uintptr_t)data;
  if (nvd_cu.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, at) || type != CUDA_MEMORY_DEVICE ||
      nvd_cu.cuPointerGetAttribute(&device, CUDA_POINTER_DEVICE, at))
    return -1;
  return device;
}

int nvd_memory_ordinal(int *ordinal, const void *data) {
  int status = nvd_cuda_open();
  if (status) return status;
  *ordinal = place_of_memory(data);
  return *ordinal >= 0 ? NVM_OK : nvb_fail(NVM_ERR_VALUE, "[memory] %p is no memory of a GPU", data);
}

nvd_buf *nvd_buf_wrap_on(nvd_device *d, void *data, size_t bytes, void *stream, void (*release)(void *owner),
                         void *owner) {
  if (nvd_device_ready(d)) return NULL;
  if (nvd_stream_check(d, stream)) return NULL;
  int entered = nvd_enter(d), device = place_of_memory(data), error = 0;
  if (device != d->ordinal) {
    char where[32] = "no device memory";
    if (device >= 0) snprintf(where, sizeof where, "memory of cuda:%d", device);
    nvd_leave(entered);
    return nvb_fail(NVM_ERR_VALUE, "[memory] %p is no memory of cuda:%d: it is %s", data, d->ordinal, where), NULL;
  }
  nvd_devbuf *c = nvb_calloc(1, sizeof *c);
  if (c) {
    c->b = (nvd_buf){ .refs = 1,
                      .bytes = bytes,
                      .cap = bytes,
                      .data = data,
                      .release = release ? release : release_nothing,
                      .owner = owner,
                      .device = d };
    c->stream = stream;
    nvd_lock();
    nvd_gpu_stream *q = stream ? nvd_gpu_stream_of(d, stream) : NULL;
    if (q) c->writer = (nvd_use){ q, nvd_gpu_stream_note(q, nvd_capturing(q), NULL) };
    void *behind;
    error = stream && !q ? CUDA_OUT_OF_MEMORY : nvd_use_event(&behind, c->writer);
    nvd_unlock();
  }
  nvd_leave(entered);
  if (!c) nvb_fail_memory();
  else if (!error) return &c->b;
  else nvd_device_status(d, error, "stream");
  nvb_free(c);
  return NULL;
}

/* Enters the buffer's device and takes the lock; after a failure neither is done. Returns a status. */
static int enter_device(nvd_buf *b, int *entered) {
  int status = nvd_device_ready(b->device);
  if (status) return status;
  *entered = nvd_enter(b->device);
  nvd_lock();
  return NVM_OK;
}
static void leave_device(int entered) {
  nvd_unlock();
  nvd_leave(entered);
}

int nvd_buf_use(nvd_buf *b, void *stream, int writes) {
  nvd_device *d = b->device;
  int entered, error = 0, status = nvd_stream_check(d, stream);
  status = status ? status : enter_device(b, &entered);
  if (status) return status;
  nvd_gpu_stream *q = nvd_gpu_stream_of(d, stream);
  if (q) {
    nvd_devbuf *c = (nvd_devbuf *)b;
    error = nvd_devbuf_use(c, q, writes);
    nvd_use *u = place_of(c, q, &error);
    q->holders += u->seq != NVD_OPEN;
    u->seq = NVD_OPEN;
  }
  leave_device(entered);
  return q ? nvd_device_status(d, error, "stream") : nvb_fail_memory();
}

int nvd_buf_ready(nvd_buf *b, void *stream) {
  int entered, error = 0, status = nvd_stream_check(b->device, stream);
  status = status ? status : enter_device(b, &entered);
  if (status) return status;
  nvd_use u = ((nvd_devbuf *)b)->writer;
  int same = u.q && u.q->stream == stream && stream != (void *)CUDA_THREAD_STREAM;
  void *event = NULL;
  if (!same) error = nvd_use_event(&event, u);
  if (!error && event) error = nvd_cu.cudaStreamWaitEvent(stream, event, 0);
  leave_device(entered);
  return nvd_device_status(b->device, error, "stream");
}

/* ---- counters */
int nvd_device_memory_get(nvd_device_memory *out, nvd_device *d) {
  *out = (nvd_device_memory){ 0 };
  int status = nvd_device_ready(d), entered = status ? 0 : nvd_enter(d);
  if (status) return status;
  uint64_t reserved = 0;
  size_t unused, total = 0;
  int error = nvd_cu.cudaMemPoolGetAttribute(d->pool, CUDA_POOL_RESERVED, &reserved);
  error = error ? error : nvd_cu.cudaMemGetInfo(&unused, &total);
  nvd_leave(entered);
  nvd_lock();
  *out = (nvd_device_memory){
    .used = d->used, .peak = d->peak, .limit = d->limit, .reserved = (int64_t)reserved, .total = (int64_t)total
  };
  nvd_unlock();
  return nvd_device_status(d, error, "memory");
}

int nvd_device_memory_limit(nvd_device *d, int64_t bytes) {
  if (bytes < 0) return nvb_fail(NVM_ERR_VALUE, "[memory] a limit of %lld bytes", (long long)bytes);
  int status = nvd_device_ready(d);
  if (status) return status;
  nvd_lock();
  d->limit = bytes;
  nvd_unlock();
  return NVM_OK;
}

int nvd_device_memory_trim(nvd_device *d) {
  int status = nvd_device_ready(d);
  if (status) return status;
  nvd_lock();
  empty_cache(d);
  nvd_unlock();
  status = nvd_synchronize(d);
  reap_blocks();
  int entered = nvd_enter(d);
  nvd_cu.cudaMemPoolTrimTo(d->pool, 0);
  nvd_leave(entered);
  return status;
}

void nvd_device_memory_reset_peak(nvd_device *d) {
  if (nvd_cuda_forked) return;
  nvd_lock();
  d->peak = d->used;
  nvd_unlock();
}
