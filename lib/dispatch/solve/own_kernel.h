/* Kernels of the project's own whose source is CUDA C++: compiled once for a device, kept loaded and in the disk cache.
   Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_OWN_KERNEL_H
#define NVM_DISPATCH_SOLVE_OWN_KERNEL_H
#include "dispatch/cuda/device_impl.h"

/* Obtains the function nvm_kernel of a source, which stays loaded as long as the process lives. title: what messages
   call it. Returns a status. Without the device's lock. */
int nvd_own_kernel_get(void **function, nvd_device *d, const char *source, const char *title);
#endif
