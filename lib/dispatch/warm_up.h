/* Compiles CPU kernels in the background. Private to dispatch. */
#ifndef NVM_DISPATCH_WARM_UP_H
#define NVM_DISPATCH_WARM_UP_H
#include "dispatch/code.h"

/* Queues the kernel unless it waits already: for its first code, or for optimised code if it has baseline code. Returns
   0 if it has to be compiled by the caller: no thread can start, or the process is ending. */
int nvd_warm_later(nvd_kernel *k);
#endif
