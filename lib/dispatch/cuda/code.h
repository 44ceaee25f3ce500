/* Kernels of a device, loaded: one object for each kernel text, shared by the programs that have it. Inside dispatch
   only. */
#ifndef NVM_DISPATCH_CUDA_CODE_H
#define NVM_DISPATCH_CUDA_CODE_H
#include "codegen/cuda/cuda.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/dispatch.h"
#include "dispatch/lru.h"

/* A kernel may be baseline code at first, loops over single elements, which is compiled in half the time; optimised
   code with the same launch and results follows. */
typedef struct nvd_gpu_kernel {
  nvd_lru_item item;
  nvd_device *device;
  nvb_hash row; /* of its code in the store */
  void *module, *function;
  int threads, checks;
  /* bytes: of a block's dynamic shared memory; of device memory for each block of the launch */
  int64_t shared, scratch;
  int registers, spills, lines;         /* lines: of its straight source */
  int cluster, persistent, flags, nmap; /* as nvc_cuda_kernel has them */
  nvc_cuda_map map[NVC_MAPS];
  char title[NVD_LABEL];
  _Atomic(struct nvd_gpu_kernel *) optimized; /* NULL: it is straight itself, or that is not there */
  atomic_int expects;                         /* optimised code */
} nvd_gpu_kernel;

/* What is asked for and what comes of it. */
typedef struct nvd_gpu_order {
  const nvf_kernel *k;
  const nvf_schedule *s;
  int wide;
  nvb_hash key; /* of the text, the target and the device */
  nvd_gpu_kernel *kernel;
  int spills; /* its code, as far as it is there */
} nvd_gpu_order;
/* All kernels of a plan, those that are new compiled at the same time: counted references. A status; *bad is then
   the order that it is about, NVM_ERR_UNSUPPORTED if another plan may do better: that is noted in the terms. Kernels
   got until then stay in their orders. */
int nvd_gpu_kernels_get(nvd_device *d, nvb_arena *work, nvd_gpu_order *order, int n, nvd_terms *terms, int *bad);
const nvd_gpu_kernel *nvd_gpu_kernel_now(const nvd_gpu_kernel *k); /* what is launched for it */
nvd_gpu_kernel *nvd_gpu_kernel_ref(nvd_gpu_kernel *k);
void nvd_gpu_kernel_unref(nvd_gpu_kernel *k); /* NULL is fine */
void nvd_gpu_code_trim(void);
/* One that nobody else knows: compiled, loaded and stored, a status; and freed. */
int nvd_gpu_code_compile(nvd_gpu_kernel *made, const char *source);
int nvd_gpu_code_spills(const nvd_gpu_kernel *k); /* so much that another plan may do better */
extern atomic_uint nvd_gpu_spilled; /* kernels whose optimised code came after their baseline code and does so */
void nvd_gpu_kernel_free(nvd_gpu_kernel *made);
#endif
