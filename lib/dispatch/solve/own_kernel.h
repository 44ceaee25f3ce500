/* Kernels of the project's own whose source is CUDA C++: compiled once for a device, kept loaded and in the disk cache.
   Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_OWN_KERNEL_H
#define NVM_DISPATCH_SOLVE_OWN_KERNEL_H
#include "dispatch/cuda/device_impl.h"
#include "fusion/plan.h"

/* Where the rows of an operand lie along its last dimension: the batches in front of it, and the distance of neighbours
   in a row, in elements. As Rows of rows.cu. */
typedef struct nvd_rows { int64_t rank, step, shape[NVM_MAX_RANK], stride[NVM_MAX_RANK]; } nvd_rows;
void nvd_rows_of(nvd_rows *r, const nvf_operand *x);

/* Obtains the function nvm_kernel of a source, which stays loaded as long as the process lives. title: what messages
   call it. Returns a status. Without the device's lock. */
int nvd_own_kernel_get(void **function, nvd_device *d, const char *source, const char *title);
#endif
