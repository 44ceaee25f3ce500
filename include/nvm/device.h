/* Devices: the CPU and NVIDIA GPUs. Nothing of CUDA is opened until a GPU is asked for, and none of it has to be there.

   An array that was put on no device follows what it meets, and else its context; arrays that were put on two devices
   on purpose do not meet in an operation, which is an error there. Work on a GPU is ordered by streams: launched in
   order, waited for only where a value is read on the host. Streams are cudaStream_t as void *; 1 and 2 are the legacy
   default stream and the per-thread one. */
#ifndef NVM_DEVICE_H
#define NVM_DEVICE_H
#include "nvm/types.h"
#ifdef __cplusplus
extern "C" {
#endif

NVM_API int nvm_device_count(void); /* GPUs that there are; 0: nvm_last_error says why there is none */
/* A status: why it is not used (too old, nothing that compiles for it, lost); nothing is made there to find out. */
NVM_API int nvm_device_usable(nvm_device d);
/* "auto", "cpu", "cuda", "cuda:1"; it need not be there */
NVM_API int nvm_device_find(nvm_device *out, const char *name);
typedef struct nvm_device_info {
  unsigned version; /* NVM_DEVICE_INFO_VERSION */
  char name[64];
  int units;      /* multiprocessors; threads of the CPU */
  int64_t memory; /* bytes; 0: not known */
  char line[256]; /* all of it for people, with the compute capability and the driver */
} nvm_device_info;
#define NVM_DEVICE_INFO_VERSION 1
NVM_API int nvm_device_info_get(nvm_device_info *out, unsigned version, nvm_device d);
/* A folder to look for CUDA's libraries in, and two levels below it (site-packages/nvidia); copied. NULL is none. */
NVM_API void nvm_library_dir(const char *dir);

/* ---- the device of a context and of a thread */
/* Never AUTO, which is the first GPU that can be used, or the CPU, for the whole process: after a loss or a fork it is
   the same GPU, and an error. */
NVM_API nvm_device nvm_ctx_device(nvm_ctx *ctx);            /* of NULL: AUTO */
NVM_API int nvm_ctx_device_set(nvm_ctx *ctx, nvm_device d); /* for what is evaluated from now on */
/* Until it is set again, what this thread makes and what would follow is put on `d`; AUTO ends that. *before: what it
   was. */
NVM_API int nvm_thread_device_set(nvm_device *before, nvm_device d);
NVM_API nvm_device nvm_thread_device(void); /* AUTO: it was not set */

/* ---- arrays */
/* where it was put, else where its value lies, else its context's */
NVM_API nvm_device nvm_device_of(const nvm_array *a);
NVM_API nvm_array *nvm_to_device(nvm_array *a, nvm_device d); /* an operation: the same elements, put there */
/* Borrows device memory, as nvm_from_host_borrow does with the host's: strides in bytes, NULL for row-major; d: AUTO
   where the memory lies; `stream`: where its last writer was ordered, of the same device, NULL if it is ready. release
   is called when the last use has been ordered. */
NVM_API nvm_array *nvm_from_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape, const int64_t *strides,
                                   nvm_device d, const void *data, void *stream, void (*release)(void *owner),
                                   void *owner);
/* Evaluates and shows the memory where it lies: address, strides in bytes, device; valid as long as the array, read
   only. Work on it is ordered by nvm_device_ready. */
NVM_API int nvm_device_data(const void **data, int64_t *strides, nvm_device *d, nvm_array *a);
/* Evaluates; all later work of `stream`, which is of the array's device (NULL: the legacy default one), waits for the
   elements, and the memory is not used anew before that work. */
NVM_API int nvm_device_ready(nvm_array *a, void *stream);
/* The same as operations, for bindings: owned references that need no scope */
NVM_API nvm_array *nvm_array_to_device(nvm_array *a, nvm_device d);
NVM_API nvm_array *nvm_array_copy(nvm_array *a); /* evaluated, in memory of its own where it lies */
NVM_API nvm_array *nvm_array_new_device(nvm_ctx *ctx, nvm_dtype t, int rank, const int64_t *shape,
                                        const int64_t *strides, nvm_device d, const void *data, void *stream,
                                        void (*release)(void *owner), void *owner);

/* ---- streams and memory of a device (AUTO: the context's) */
NVM_API int nvm_stream_set(nvm_ctx *ctx, nvm_device d, void *stream); /* for this thread; NULL: nvm's own again */
NVM_API int nvm_stream_get(void **stream, nvm_ctx *ctx, nvm_device d);
/* The device that a stream is of; of 1, 2 and NULL, which each has, the thread's or the context's if that is a GPU. */
NVM_API int nvm_stream_device(nvm_device *d, nvm_ctx *ctx, void *stream);
typedef struct nvm_device_memory {
  unsigned version;        /* NVM_DEVICE_MEMORY_VERSION */
  int64_t used, peak;      /* bytes of arrays and temporaries */
  int64_t limit;           /* 0: none */
  int64_t reserved, total; /* bytes that the process holds of it; that there are */
} nvm_device_memory;
#define NVM_DEVICE_MEMORY_VERSION 1
NVM_API int nvm_device_memory_get(nvm_device_memory *out, unsigned version, nvm_ctx *ctx, nvm_device d);
NVM_API int nvm_device_memory_limit(nvm_ctx *ctx, nvm_device d, int64_t bytes); /* 0: none */
NVM_API int nvm_device_memory_trim(nvm_ctx *ctx, nvm_device d);                 /* gives back what is kept for reuse */
NVM_API int nvm_device_memory_reset_peak(nvm_ctx *ctx, nvm_device d);

#ifdef __cplusplus
}
#endif
#endif
