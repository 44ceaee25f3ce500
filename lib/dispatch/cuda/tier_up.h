/* Background compilation of optimised code for kernels that start as baseline code. Private to dispatch. */
#ifndef NVM_DISPATCH_CUDA_TIER_UP_H
#define NVM_DISPATCH_CUDA_TIER_UP_H
#include "dispatch/cuda/code.h"

/* Queues `made` for compilation from `source`; when compiled, it becomes the optimised code of k. Takes `made` over and
   copies the source. If k has no code and many are queued, it is parked until nvd_optimized_start or _wait. */
void nvd_optimized_later(nvd_gpu_kernel *k, nvd_gpu_kernel *made, const char *source);
void nvd_optimized_start(nvd_gpu_kernel *k);
void nvd_optimized_drop(nvd_gpu_kernel *k); /* frees what is parked with k, which is freed next */
/* waits until k's optimised code is there or has failed; NULL: until the queue is empty */
void nvd_optimized_wait(nvd_gpu_kernel *k);
#endif
