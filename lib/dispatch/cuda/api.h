/* The table of all CUDA functions that the library calls, filled in when a GPU is first requested: runtime functions by
   name, driver functions through the runtime's entry points, so that both belong to one driver. It serves CUDA 12 and
   13 and needs no CUDA header. All functions return 0 or an error code; the codes of runtime and driver agree. Private
   to dispatch. */
#ifndef NVM_DISPATCH_CUDA_API_H
#define NVM_DISPATCH_CUDA_API_H
#include <stddef.h>
#include <stdint.h>

/* cudaMemPoolProps */
typedef struct nvd_pool_props {
  int type, handles, place_type, place;
  void *security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
} nvd_pool_props;
/* CUDA_KERNEL_NODE_PARAMS_v2 */
typedef struct nvd_node_params {
  void *function;
  unsigned grid[3], block[3], shared;
  void **param, **extra;
  void *kernel, *context;
} nvd_node_params;

/* CUlaunchConfig */
typedef struct nvd_attribute { int id, pad; union { int number; char room[64]; } value; } nvd_attribute;
typedef struct nvd_launch {
  unsigned grid[3], block[3], shared;
  void *stream;
  nvd_attribute *attribute;
  unsigned nattribute;
} nvd_launch;

#define NVD_RUNTIME(X) \
  X(cudaDriverGetVersion, (int *version)) \
  X(cudaRuntimeGetVersion, (int *version)) \
  X(cudaGetDeviceCount, (int *n)) \
  X(cudaDeviceGetAttribute, (int *value, int attribute, int device)) \
  X(cudaGetLastError, (void)) \
  X(cudaMemGetInfo, (size_t *free, size_t *total)) \
  X(cudaStreamCreateWithFlags, (void **stream, unsigned flags)) \
  X(cudaStreamDestroy, (void *stream)) \
  X(cudaStreamSynchronize, (void *stream)) \
  X(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags)) \
  X(cudaStreamBeginCapture, (void *stream, int mode)) \
  X(cudaStreamEndCapture, (void *stream, void **graph)) \
  X(cudaThreadExchangeStreamCaptureMode, (int *mode)) \
  X(cudaEventCreateWithFlags, (void **event, unsigned flags)) \
  X(cudaEventDestroy, (void *event)) \
  X(cudaEventQuery, (void *event)) \
  X(cudaEventSynchronize, (void *event)) \
  X(cudaEventElapsedTime, (float *ms, void *from, void *to)) \
  X(cudaMemPoolCreate, (void **pool, const nvd_pool_props *props)) \
  X(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value)) \
  X(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value)) \
  X(cudaMemPoolTrimTo, (void *pool, size_t keep)) \
  X(cudaMallocFromPoolAsync, (void **data, size_t bytes, void *pool, void *stream)) \
  X(cudaFreeAsync, (void *data, void *stream)) \
  X(cudaHostAlloc, (void **data, size_t bytes, unsigned flags)) \
  X(cudaMemsetAsync, (void *to, int byte, size_t bytes, void *stream)) \
  X(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, void *stream)) \
  X(cudaMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes, void *stream))

/* As of CUDA 12.0. Of cuStreamGetCaptureInfo only the first four arguments are used, which later versions share. */
#define NVD_DRIVER(X) \
  X(cuDeviceGet, (int *device, int ordinal)) \
  X(cuDeviceGetName, (char *name, int n, int device)) \
  X(cuDevicePrimaryCtxRetain, (void **context, int device)) \
  X(cuCtxGetCurrent, (void **context)) \
  X(cuCtxPushCurrent, (void *context)) \
  X(cuCtxPopCurrent, (void **context)) \
  X(cuCtxGetDevice, (int *device)) \
  X(cuStreamGetCtx, (void *stream, void **context)) \
  X(cuStreamIsCapturing, (void *stream, int *status)) \
  X(cuStreamGetCaptureInfo, (void *stream, int *status, uint64_t *id, void **graph, void *no1, void *no2, void *no3)) \
  X(cuEventRecord, (void *event, void *stream)) \
  X(cuPointerGetAttribute, (void *value, int attribute, uint64_t data)) \
  X(cuModuleLoadData, (void **module, const void *image)) \
  X(cuModuleUnload, (void *module)) \
  X(cuModuleGetFunction, (void **function, void *module, const char *name)) \
  X(cuFuncGetAttribute, (int *value, int attribute, void *function)) \
  X(cuFuncSetAttribute, (void *function, int attribute, int value)) \
  X(cuLaunchKernelEx, (const nvd_launch *l, void *function, void **param, void **extra)) \
  X(cuTensorMapEncodeTiled, (void *map, int type, uint32_t rank, void *address, const uint64_t *extent, \
                             const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave, \
                             int swizzle, int promotion, int fill)) \
  X(cuGraphCreate, (void **graph, unsigned flags)) \
  X(cuGraphAddKernelNode, (void **node, void *graph, void *const *after, size_t nafter, const nvd_node_params *p)) \
  X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags)) \
  X(cuGraphExecKernelNodeSetParams, (void *exec, void *node, const nvd_node_params *p)) \
  X(cuGraphLaunch, (void *exec, void *stream)) \
  X(cuGraphExecDestroy, (void *exec)) \
  X(cuGraphDestroy, (void *graph)) \
  X(cuGraphRetainUserObject, (void *graph, void *object, unsigned count, unsigned flags)) \
  X(cuUserObjectCreate, (void **object, void *owned, void (*destroy)(void *owned), unsigned refs, unsigned flags))

typedef struct nvd_cuda {
#define NVD_MEMBER(name, args) int (*name) args;
  NVD_RUNTIME(NVD_MEMBER)
  NVD_DRIVER(NVD_MEMBER)
#undef NVD_MEMBER
  const char *(*cudaGetErrorString)(int error);
  int (*cudaGetDriverEntryPoint)(const char *name, void **to, unsigned long long flags, int *found);
  int (*cudaGetDriverEntryPointByVersion)(const char *name, void **to, unsigned version, unsigned long long flags,
                                          int *found);
} nvd_cuda;
extern nvd_cuda nvd_cu; /* valid once nvd_cuda_open has returned NVM_OK */

/* Opens CUDA. Returns a status: NVM_ERR_UNSUPPORTED with one line that says what is missing or too old, the same at
   every call; NVM_ERR_DEVICE in a process that was forked after CUDA had been opened. */
int nvd_cuda_open(void);
int nvd_cuda_devices(void);          /* number of GPUs when CUDA was opened; also valid after a fork */
extern volatile int nvd_cuda_forked; /* this process was forked after CUDA had been opened: it must not call CUDA */
/* Turns a CUDA error code into a status; the message has CUDA's text: "[what] an illegal memory access was encountered
   (700)". */
int nvd_cuda_status(int error, const char *what);

enum { /* CUDA's constants */
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_INVALID_HANDLE = 400,
       CUDA_NOT_READY = 600,
       CUDA_THREAD_STREAM = 2,
       CUDA_STREAM_NON_BLOCKING = 1,
       CUDA_EVENT_NO_TIMING = 2,
       CUDA_HOST_PORTABLE_MAPPED = 1 | 2,
       CUDA_TO_DEVICE = 1,
       CUDA_TO_HOST = 2,
       CUDA_ON_DEVICE = 3,
       CUDA_CAPTURE_RELAXED = 2,
       CUDA_LAUNCH_OVERLAPS = 6,
       CUDA_POOL_PINNED = 1,
       CUDA_POOL_PLACE_DEVICE = 1,
       CUDA_POOL_THRESHOLD = 4,
       CUDA_POOL_RESERVED = 5,
       CUDA_POINTER_MEMORY_TYPE = 2,
       CUDA_POINTER_DEVICE = 9,
       CUDA_MEMORY_HOST = 1,
       CUDA_MEMORY_DEVICE = 2,
       CUDA_FUNC_LOCAL_BYTES = 3,
       CUDA_FUNC_REGISTERS = 4,
       CUDA_FUNC_SHARED_MOST = 8,
       CUDA_FUNC_LARGE_CLUSTER = 14,
       CUDA_OBJECT_NO_SYNC = 1,
       CUDA_OBJECT_MOVE = 1,
       CUDA_DEV_SMS = 16,
       CUDA_DEV_L2 = 38,
       CUDA_DEV_THREADS_PER_SM = 39,
       CUDA_DEV_UNIFIED = 41,
       CUDA_DEV_MAJOR = 75,
       CUDA_DEV_MINOR = 76,
       CUDA_DEV_SHARED_PER_SM = 81,
       CUDA_DEV_SHARED_OPTIN = 97,
       CUDA_DEV_POOLS = 115
};
#endif
