/* GPUs: memory, streams, copies. Everything is stream-ordered; nothing here waits unless it says so. Inside the library
   and to the API layer; no CUDA type appears. */
#ifndef NVM_DISPATCH_CUDA_DEVICE_H
#define NVM_DISPATCH_CUDA_DEVICE_H
#include "base/caps.h"
#include "dispatch/dispatch.h"

typedef struct nvd_device nvd_device;                 /* one GPU on its primary context; lives as long as the process */
int nvd_device_count(void); /* 0 with a message that says why there is none */
/* Why a GPU is not used, as a status: there is none of that ordinal, it is too old, nothing compiles for it, it is
   lost. Makes no context. */
int nvd_device_usable(int ordinal);
/* The first one that nothing but its loss or a fork keeps from being used, which never changes; -1 with a message. */
int nvd_device_first(void);
int nvd_device_get(nvd_device **out, int ordinal); /* a status: as above, but for its loss */
int nvd_device_ordinal(const nvd_device *d);
const nvb_caps *nvd_device_caps(const nvd_device *d);
const char *nvd_device_line(int ordinal); /* for info: name, memory, compute capability, driver; why not */

/* ---- streams: handles of CUDA (cudaStream_t) as void *. The thread's current stream on a device is the device's own
   until the caller sets one; 1 is the legacy default stream, 2 the per-thread one, as in CUDA. */
void *nvd_stream(nvd_device *d);
int nvd_stream_set(nvd_device *d, void *stream);    /* a status: a stream of another device; NULL: the device's own */
int nvd_stream_check(nvd_device *d, void *stream);  /* a status: it is none, or of another device; 1, 2: of each */
int nvd_stream_ordinal(int *ordinal, void *stream); /* a status: whose it is; -1: 1, 2 and NULL, which are of each */
int nvd_synchronize(nvd_device *d);                 /* waits for all streams that were used; a status: it is lost */

/* ---- buffers in device memory: nvd_buf with `device` set, from a stream-ordered pool. Freeing waits for nothing. */
nvd_buf *nvd_buf_new_on(nvd_device *d, size_t bytes); /* NULL with a message: sizes, after all that is kept was freed */
/* Foreign device memory; `stream`: where its last writer was ordered (NULL: it is ready). release is called after
   the last use by us has been ordered, in any thread. */
nvd_buf *nvd_buf_wrap_on(nvd_device *d, void *data, size_t bytes, void *stream, void (*release)(void *owner),
                         void *owner);
/* A device buffer is about to be used on this stream, by others, until its last reference goes: orders the stream
   behind the buffer's last writer, and what is done with the memory afterwards behind the stream. Of the buffer's
   device, as those of nvd_buf_wrap_on and nvd_buf_ready: else a status. */
int nvd_buf_use(nvd_buf *b, void *stream, int writes);
void nvd_buf_give_on(nvd_buf *b); /* nvd_buf_unref's last step for a device buffer */
/* Orders all later work of `stream` behind the writing of b (what DLPack consumers ask for). */
int nvd_buf_ready(nvd_buf *b, void *stream);
/* Waits for what wrote b if an index out of range may be in it; a status: there was one. */
int nvd_buf_check(nvd_buf *b);
int nvd_memory_ordinal(int *ordinal, const void *data); /* a status: the GPU in whose memory that is */

/* ---- copies of packed bytes, on the thread's current stream. From host memory the bytes have been taken when the call
   returns; to host memory they are there when it returns (and late errors of what was computed are raised). */
int nvd_upload(nvd_buf *to, size_t offset, const void *from, size_t bytes);
int nvd_download(void *to, nvd_buf *from, size_t offset, size_t bytes);
/* On one device or between two. */
int nvd_copy_on(nvd_buf *to, size_t to_offset, nvd_buf *from, size_t from_offset, size_t bytes);

typedef struct nvd_device_memory { int64_t used, peak, limit, reserved, total; } nvd_device_memory;
int nvd_device_memory_get(nvd_device_memory *out, nvd_device *d);
int nvd_device_memory_limit(nvd_device *d, int64_t bytes); /* 0: none */
int nvd_device_memory_trim(nvd_device *d);
void nvd_device_memory_reset_peak(nvd_device *d);
#endif
