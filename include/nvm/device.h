/* Devices: the CPU and NVIDIA GPUs. No CUDA library is loaded before a GPU is asked for, and none has to be installed.

   An array that was put on no device is computed where its operands are, or else on the device of its context. An
   operation on arrays that were explicitly put on different devices is an error. Work on a GPU is ordered by streams
   and runs asynchronously; the library waits for it only when a value is read on the host. A stream is a cudaStream_t
   passed as void *; 1 and 2 are the legacy default stream and the per-thread default stream. */
#ifndef NVM_DEVICE_H
#define NVM_DEVICE_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

NVM_API int nvm_device_count(void); /* number of GPUs; 0: none, and nvm_last_error says why */
/* Returns NVM_OK if the device can be used, else a status whose message says why not (too old, no compiler for it,
   lost). The check creates nothing on the device. */
NVM_API int nvm_device_usable(nvm_device d);
/* Parses a device name ("auto", "cpu", "cuda", "cuda:1"), else NVM_ERR_VALUE; the device need not exist. */
NVM_API int nvm_device_find(nvm_device *out, const char *name);
typedef struct nvm_device_info {
  unsigned version; /* NVM_DEVICE_INFO_VERSION */
  char name[64];
  int units;      /* SMs of a GPU; threads of the CPU */
  int64_t memory; /* bytes; 0: unknown */
  char line[256]; /* a line for people, with the compute capability and the driver */
} nvm_device_info;
#define NVM_DEVICE_INFO_VERSION 1
/* Describes device d, which must not be AUTO. version: NVM_DEVICE_INFO_VERSION, else NVM_ERR_VALUE. Returns a
   status. */
NVM_API int nvm_device_info_get(nvm_device_info *out, unsigned version, nvm_device d);
/* Adds a folder, with two levels of its subfolders, to the search for the libraries that are opened at run time: those
   of CUDA (site-packages/nvidia) and OpenBLAS (site-packages/scipy_openblas32). `dir` is copied; NULL is ignored. */
NVM_API void nvm_library_dir(const char *dir);

/* ---- the device of a context and of a thread */
/* Returns the device of a context, never AUTO; AUTO of a NULL context. AUTO becomes the first usable GPU, or the CPU,
   once for the whole process: after that GPU is lost, or after a fork, it stays the same GPU and using it is an
   error. */
NVM_API nvm_device nvm_ctx_device(nvm_ctx *ctx);
NVM_API int nvm_ctx_device_set(nvm_ctx *ctx, nvm_device d); /* for later evaluations; a status */
/* Sets the device of this thread: until the next call, arrays that this thread makes, and those that were put on no
   device, are put on `d`; AUTO ends this. *before becomes the previous device. Returns a status. */
NVM_API int nvm_thread_device_set(nvm_device *before, nvm_device d);
NVM_API nvm_device nvm_thread_device(void); /* the device of this thread; AUTO if it was not set */

/* ---- arrays */
/* Returns the device that an array of any shape and dtype was put on, else the device of its value, else that of its
   context. */
NVM_API nvm_device nvm_device_of(const nvm_array *a);
/* An operation: the same elements, of any shape and dtype, on device d. The result belongs to the innermost open scope.
   */
NVM_API nvm_array *nvm_to_device(nvm_array *a, nvm_device d);
/* Makes an array of device memory that it borrows, as nvm_from_host_borrow does with host memory. t: the dtype; shape:
   rank extents; strides: in bytes, NULL for row-major; d: the device, AUTO for the one the memory is on; stream: a
   stream of that device on which the last write to the memory was launched, NULL if the data are ready. release(owner)
   is called when the last use of the memory has been launched. Returns NULL with a message on failure. */
NVM_API nvm_array *nvm_from_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                   nvm_device d, const void *data, void *stream, void (*release)(void *owner),
                                   void *owner);
/* Evaluates and returns the array's memory on its device, with elements of the array's dtype: address, strides in bytes
   (rank of them are written), device. The memory belongs to the array, is valid as long as the array, and must not be
   written to. Order work on it with nvm_device_ready. */
NVM_API int nvm_device_data(const void **data, int64_t *strides, nvm_device *d, nvm_array *a);
/* Evaluates an array of any shape and dtype, and makes later work on `stream`, a stream of the array's device (NULL:
   the legacy default stream), wait for the elements; the memory is not reused before that work is done. Returns a
   status. */
NVM_API int nvm_device_ready(nvm_array *a, void *stream);
/* As nvm_to_device, of any shape and dtype, for bindings: returns an owned reference (nvm_array_unref) and needs no
   scope. */
NVM_API nvm_array *nvm_array_to_device(nvm_array *a, nvm_device d);
/* evaluates and copies to new memory on the same device; the result, of the same shape and dtype, is an owned
   reference */
NVM_API nvm_array *nvm_array_copy(nvm_array *a);
/* As nvm_from_device, with dtype, shape and strides in bytes, for bindings: returns an owned reference and needs no
   scope. */
NVM_API nvm_array *nvm_array_new_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape,
                                        const int64_t *strides, nvm_device d, const void *data, void *stream,
                                        void (*release)(void *owner), void *owner);

/* ---- the stream of a thread. Device AUTO is the context's. */
/* Sets the stream of this thread; NULL: nvm's own stream. Returns a status. */
NVM_API int nvm_stream_set(nvm_ctx *ctx, nvm_device d, void *stream);
/* Writes the stream of this thread on GPU d. Returns a status. */
NVM_API int nvm_stream_get(void **stream, nvm_ctx *ctx, nvm_device d);
/* Writes the device of a stream. Streams 1, 2 and NULL exist on every device: for them it is the device of the thread
   or the context, if that is a GPU. Returns a status. */
NVM_API int nvm_stream_device(nvm_device *d, nvm_ctx *ctx, void *stream);

/* ---- streams and events of a GPU, as CUDA has them. Each function returns a status. stream NULL: the thread's current
   one; an event is a cudaEvent_t that measures time. The CPU has neither: NVM_ERR_VALUE. */
/* Makes a stream, which does not wait for the legacy default stream; nvm_stream_free frees it. */
NVM_API int nvm_stream_new(void **stream, nvm_ctx *ctx, nvm_device d);
/* Frees a stream that is no thread's current one; what was launched on it runs on. stream NULL: nothing happens. */
NVM_API int nvm_stream_free(nvm_ctx *ctx, nvm_device d, void *stream);
/* Orders later work on the stream behind the event, or behind nothing if it was never recorded. */
NVM_API int nvm_stream_wait(nvm_ctx *ctx, nvm_device d, void *stream, void *event);
NVM_API int nvm_stream_sync(nvm_ctx *ctx, nvm_device d, void *stream); /* waits for all work on it */
NVM_API int nvm_event_new(void **event, nvm_ctx *ctx, nvm_device d);   /* nvm_event_free frees it */
NVM_API int nvm_event_free(nvm_ctx *ctx, nvm_device d, void *event);   /* event NULL: nothing happens */
/* The event stands for the work that has been launched on the stream so far; pending arrays are not. */
NVM_API int nvm_event_record(nvm_ctx *ctx, nvm_device d, void *event, void *stream);
NVM_API int nvm_event_done(int *done, nvm_ctx *ctx, nvm_device d, void *event); /* *done: 1 if that work is complete */
NVM_API int nvm_event_sync(nvm_ctx *ctx, nvm_device d, void *event);            /* waits for that work */
/* Waits for `to`; *ms becomes the milliseconds since `from`, which was recorded before. */
NVM_API int nvm_event_elapsed(double *ms, nvm_ctx *ctx, nvm_device d, void *from, void *to);

/* ---- memory of a device. Device AUTO is the context's. */
typedef struct nvm_device_memory {
  unsigned version;        /* NVM_DEVICE_MEMORY_VERSION */
  int64_t used, peak;      /* bytes of arrays and temporaries, now and at most */
  int64_t limit;           /* bytes; 0: no limit */
  int64_t reserved, total; /* bytes that the process holds on the device; bytes of the device */
} nvm_device_memory;
#define NVM_DEVICE_MEMORY_VERSION 1
/* Reports memory in use; for the CPU, host memory. version: NVM_DEVICE_MEMORY_VERSION, else NVM_ERR_VALUE. Returns a
   status. */
NVM_API int nvm_device_memory_get(nvm_device_memory *out, unsigned version, nvm_ctx *ctx, nvm_device d);
NVM_API int nvm_device_memory_limit(nvm_ctx *ctx, nvm_device d, int64_t bytes); /* 0: no limit */
/* Frees memory that is kept for reuse. Returns a status. */
NVM_API int nvm_device_memory_trim(nvm_ctx *ctx, nvm_device d);
/* Sets peak to used. Returns a status. */
NVM_API int nvm_device_memory_reset_peak(nvm_ctx *ctx, nvm_device d);

#ifdef __cplusplus
}
#endif
#endif
