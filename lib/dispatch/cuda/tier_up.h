/* Optimised code of kernels that run as baseline code at first. Inside dispatch only. */
#ifndef NVM_DISPATCH_CUDA_TIER_UP_H
#define NVM_DISPATCH_CUDA_TIER_UP_H
#include "dispatch/cuda/code.h"

/* Makes `made`, whose source this is, the optimised code of k, some time later; takes `made` over, copies the
   source. */
void nvd_optimized_later(nvd_gpu_kernel *k, nvd_gpu_kernel *made, const char *source);
void nvd_optimized_wait(nvd_gpu_kernel *k); /* until it is there, or none is to come; NULL: until all is */
#endif
