/* GPUs: memory, streams and copies, for dispatch and the layers above it. All work is stream-ordered, and no function
   waits unless its comment says so. No CUDA type appears here. */
#ifndef NVM_DISPATCH_CUDA_DEVICE_H
#define NVM_DISPATCH_CUDA_DEVICE_H
#include "base/caps.h"
#include "dispatch/dispatch.h"

typedef struct nvd_device nvd_device; /* one GPU on its primary context; it lives as long as the process */
int nvd_device_count(void); /* 0 with a message that says why there are none */
/* Returns a status that says why a GPU cannot be used: there is none of that ordinal, it is too old, no code can be
   compiled for it, or it is lost. Makes no context. */
int nvd_device_usable(int ordinal);
/* The first GPU that is usable apart from a loss or a fork, so that the answer never changes; -1 with a message. */
int nvd_device_first(void);
/* starts the device; a status as above, except that a loss is not checked */
int nvd_device_get(nvd_device **out, int ordinal);
int nvd_device_ordinal(const nvd_device *d);
const nvb_caps *nvd_device_caps(const nvd_device *d);
/* for info: name, memory, compute capability, driver; or why it cannot be used */
const char *nvd_device_line(int ordinal);

/* ---- streams: cudaStream_t handles as void *. The thread's current stream on a device is the device's own until the
   caller sets another; 1 is the legacy default stream and 2 the per-thread one, as in CUDA. */
void *nvd_stream(nvd_device *d);
int nvd_stream_set(nvd_device *d, void *stream); /* NULL: the device's own; fails for a stream of another device */
/* fails if it is no stream or of another device; 1 and 2 belong to every device */
int nvd_stream_check(nvd_device *d, void *stream);
/* the stream's device; -1 for 1, 2 and NULL, which belong to every device */
int nvd_stream_ordinal(int *ordinal, void *stream);
/* Streams and events for callers; stream NULL: the thread's current one. Statuses. Events measure time; an event is of
   the device that it was made for. */
int nvd_stream_new(void **stream, nvd_device *d); /* does not wait for the legacy default stream */
int nvd_stream_free(nvd_device *d, void *stream); /* what was launched runs on */
int nvd_stream_wait_event(nvd_device *d, void *stream, void *event);
int nvd_stream_sync(nvd_device *d, void *stream);
int nvd_event_new(void **event, nvd_device *d);
int nvd_event_free(nvd_device *d, void *event);
int nvd_event_record(nvd_device *d, void *event, void *stream);
int nvd_event_done(int *done, nvd_device *d, void *event);
int nvd_event_sync(nvd_device *d, void *event);
int nvd_event_elapsed(double *ms, nvd_device *d, void *from, void *to); /* waits for `to` */
int nvd_synchronize(nvd_device *d); /* waits for all streams that were used; fails if the device is lost */

/* ---- buffers in device memory: nvd_buf with `device` set, from a stream-ordered memory pool. Freeing never waits. */
/* NULL with a message if memory runs out even after all caches were freed */
nvd_buf *nvd_buf_new_on(nvd_device *d, size_t bytes);
/* Wraps foreign device memory. stream: the stream that its last writer was ordered on (NULL: the memory is ready).
   release is called, in any thread, after the library's last use has been ordered. */
nvd_buf *nvd_buf_wrap_on(nvd_device *d, void *data, size_t bytes, void *stream, void (*release)(void *owner),
                         void *owner);
/* Announces that others use a device buffer on this stream until its last reference is released. Orders the stream
   behind the buffer's last writer, and later uses of the memory behind the stream. The stream must belong to the
   buffer's device, here and in nvd_buf_wrap_on and nvd_buf_ready; else a status. */
int nvd_buf_use(nvd_buf *b, void *stream, int writes);
void nvd_buf_give_on(nvd_buf *b); /* frees a device buffer without references; called by nvd_buf_unref */
/* Orders all later work of `stream` behind the last write of b (what DLPack consumers ask for). */
int nvd_buf_ready(nvd_buf *b, void *stream);
/* Waits for the writer of b if one of its indices may have been out of range. Fails if one was. */
int nvd_buf_check(nvd_buf *b);
int nvd_buf_wait(nvd_buf *b);                           /* waits for the writer of b in any case, and does the same */
int nvd_buf_done(nvd_buf *b);                           /* is the writer of b known to be complete? It does not wait */
int nvd_memory_ordinal(int *ordinal, const void *data); /* the GPU that owns this address; a status */

/* ---- copies of packed bytes, on the thread's current stream. An upload has read the host memory when it returns; a
   download has written it when it returns, and raises late errors of the computation. */
int nvd_upload(nvd_buf *to, size_t offset, const void *from, size_t bytes);
int nvd_download(void *to, nvd_buf *from, size_t offset, size_t bytes);
/* Copies on one device or between two. */
int nvd_copy_on(nvd_buf *to, size_t to_offset, nvd_buf *from, size_t from_offset, size_t bytes);

typedef struct nvd_device_memory { int64_t used, peak, limit, reserved, total; } nvd_device_memory;
int nvd_device_memory_get(nvd_device_memory *out, nvd_device *d);
int nvd_device_memory_limit(nvd_device *d, int64_t bytes); /* bytes 0: no limit */
int nvd_device_memory_trim(nvd_device *d);
void nvd_device_memory_reset_peak(nvd_device *d);
#endif
