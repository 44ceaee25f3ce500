/* Kernels of the process: one object for each kernel text, shared by the programs that have it. Inside dispatch
   only. */
#ifndef NVM_DISPATCH_CODE_H
#define NVM_DISPATCH_CODE_H
#include <stdatomic.h>
#include "codegen/codegen.h"
#include "dispatch/lru.h"

typedef enum nvd_tier { NVD_INTERPRETED, NVD_NATIVE, NVD_AUTO } nvd_tier;
nvd_tier nvd_tier_now(void); /* as NVM_TIER and NVM_FUSE say */

typedef struct nvd_kernel {
  nvd_lru_item item;         /* its bytes: without native code */
  nvc_interp *interp;
  _Atomic(nvc_entry) entry;               /* native code, or NULL as long as there is none */
  int64_t interp_scratch, native_scratch; /* bytes; the latter is valid once entry is read */
  atomic_int hopeless;                    /* no native code can be had for it: it stays interpreted */
} nvd_kernel;

/* The kernel of this text, made if it is new (*made, may be NULL): a counted reference. A status; `work` holds what is
   only needed meanwhile. */
int nvd_kernel_get(nvd_kernel **out, int *made, nvb_arena *work, const nvf_kernel *k, const nvf_schedule *s);
void nvd_kernel_unref(nvd_kernel *k); /* NULL is fine */
/* Counts a call that processes so many elements; compiles if the tier says that this call is to run natively. */
nvc_entry nvd_kernel_warm(nvd_kernel *k, nvd_tier tier, int64_t elements);
void nvd_count_loaded(int n); /* kernels whose code came from the disk store */
#endif
