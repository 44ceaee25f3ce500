/* GPU kernels that are loaded: one object for each kernel text, target and device, shared by the programs that use it.
   Private to dispatch. */
#ifndef NVM_DISPATCH_CUDA_CODE_H
#define NVM_DISPATCH_CUDA_CODE_H
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/dispatch.h"
#include "dispatch/lru.h"

/* A kernel may start as baseline code (loops over register elements), which compiles in half the time, or without any;
   optimised code with the same launch configuration and the same results follows. */
typedef struct nvd_gpu_kernel {
  nvd_lru_item item;
  nvd_device *device;
  nvb_hash row; /* the key of its code in the store */
  void *module, *function;
  int threads, checks;
  /* shared: bytes of dynamic shared memory of a block; scratch: bytes of device memory for each block of the launch */
  int64_t shared, scratch;
  int registers, spills, lines;         /* registers per thread; bytes spilled; lines of the optimised source */
  int cluster, persistent, flags, nmap; /* as in nvc_cuda_kernel */
  nvc_cuda_map map[NVC_MAPS];
  char title[NVD_LABEL];
  /* optimised code that replaces this one; NULL: this is optimised, or there is none yet */
  _Atomic(struct nvd_gpu_kernel *) optimized;
  atomic_int expects;            /* 1 while optimised code is being compiled, or parked */
  _Atomic(struct task *) parked; /* its compilation, which is not queued yet (tier_up.c) */
} nvd_gpu_kernel;

/* A request for one kernel of a plan, and its result. */
typedef struct nvd_gpu_order {
  const nvf_kernel *k;
  const nvf_schedule *s;
  int wide;
  nvb_hash key; /* hash of the text, the target and the device */
  nvd_gpu_kernel *kernel;
  int spills; /* 1 if the code that it has now spills too much */
} nvd_gpu_order;
/* Obtains all kernels of a plan as counted references; new kernels are compiled in parallel. Returns a status; after a
   failure *bad is the order that it is about, and NVM_ERR_UNSUPPORTED means that another plan may do better, which is
   noted in the terms. The kernels obtained until then stay in their orders. */
int nvd_gpu_kernels_get(nvd_device *d, nvb_arena *work, nvd_gpu_order *order, int n, nvd_terms *terms, int *bad);
/* the code that a launch uses now: optimised if there is some */
const nvd_gpu_kernel *nvd_gpu_kernel_now(const nvd_gpu_kernel *k);
/* Has it code? If neither that nor expects, its compilation in the background has failed. */
static inline int nvd_gpu_kernel_ready(const nvd_gpu_kernel *k) { return nvd_gpu_kernel_now(k)->module != NULL; }
nvd_gpu_kernel *nvd_gpu_kernel_ref(nvd_gpu_kernel *k);
void nvd_gpu_kernel_unref(nvd_gpu_kernel *k); /* NULL is fine */
void nvd_gpu_code_trim(void);
/* Compiles, loads and stores a kernel that no other thread knows. first: there is no baseline code. Returns a
   status. */
int nvd_gpu_code_compile(nvd_gpu_kernel *made, const char *source, int first);
int nvd_gpu_code_spills(const nvd_gpu_kernel *k); /* 1 if it spills so much that another plan may do better */
/* number of kernels whose code came from the background and spills too much, or could not be made at all */
extern atomic_uint nvd_gpu_spilled;
void nvd_gpu_kernel_free(nvd_gpu_kernel *made);
#endif
