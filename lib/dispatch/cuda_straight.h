/* Straight code of kernels that run as compact code at first. Inside dispatch only. */
#ifndef NVD_CUDA_STRAIGHT_H
#define NVD_CUDA_STRAIGHT_H
#include "dispatch/cuda_code.h"

/* Compiles `made`, whose source this is, by and by; takes `made` over, copies the source. NULL: no memory. */
typedef struct nvd_straight nvd_straight;
nvd_straight *nvd_straight_begin(nvd_gpu_kernel *made, const char *source);
/* What comes of it is the straight code of k, which expects it; k NULL: nobody's. NULL is fine. */
void nvd_straight_give(nvd_straight *t, nvd_gpu_kernel *k);
void nvd_straight_wait(nvd_gpu_kernel *k); /* until it is there, or none is to come; NULL: until all is */
#endif
