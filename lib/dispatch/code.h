/* CPU kernels of this process: one object for each kernel text, shared by the programs that use it. Private to
   dispatch. */
#ifndef NVM_DISPATCH_CODE_H
#define NVM_DISPATCH_CODE_H
#include <stdatomic.h>
#include "codegen/codegen.h"
#include "dispatch/lru.h"
#include "fusion/plan.h"

typedef enum nvd_tier { NVD_INTERPRETED, NVD_NATIVE, NVD_AUTO } nvd_tier;
nvd_tier nvd_tier_now(void); /* from the settings NVM_TIER and NVM_FUSE */

typedef struct nvd_kernel {
  nvd_lru_item item;         /* item.bytes does not count native code */
  nvc_interp *interp;
  _Atomic(nvc_entry) entry;       /* native code; NULL until there is some */
  int64_t interp_scratch;         /* bytes */
  _Atomic int64_t native_scratch; /* bytes that the code of an entry wants which was read before; it only grows */
  atomic_int hopeless;            /* compiling failed for good: the kernel stays interpreted */
  atomic_int queued;              /* it waits to be compiled in the background */
  atomic_int baseline; /* the code is baseline code of a kernel with so many instructions; 0: it is optimised */
} nvd_kernel;

/* Finds or makes the kernel of a step and returns a counted reference in *out; *made (may be NULL) says whether it
   is new. `work` holds temporary data. Returns a status. */
int nvd_kernel_get(nvd_kernel **out, int *made, nvb_arena *work, const nvf_step *s);
nvd_kernel *nvd_kernel_again(nvd_kernel *k); /* another reference */
void nvd_kernel_unref(nvd_kernel *k);        /* NULL is fine */
typedef struct nvd_demand { int64_t elements, bytes; double time; } nvd_demand; /* of a call, as in nvd_step */
/* Counts a call, and compiles the kernel if the tier wants this call to run natively, or has it compiled in the
   background if it takes no longer to interpret this call. Returns the native code, or NULL to interpret. */
nvc_entry nvd_kernel_warm(nvd_kernel *k, nvd_tier tier, nvd_demand w);
int64_t nvd_kernel_served(const nvd_kernel *k); /* ns that its interpreted calls have taken, estimated */
/* Loads or compiles its code now, and returns it; NULL if there will be none. optimised: baseline code will not do. */
nvc_entry nvd_kernel_compile(nvd_kernel *k, int optimised);
/* The code to run of a kernel that has baseline code: optimised at once if the tier is NVD_NATIVE, and from the
   background when the calls have taken a third of the time that it takes to make. */
nvc_entry nvd_kernel_refine(nvd_kernel *k, nvd_tier tier);
/* Around a call of this code: what baseline code takes is added up. The start is 0 for other code, which has no end. */
int64_t nvd_kernel_baseline_start(const nvd_kernel *k, nvc_entry entry);
void nvd_kernel_baseline_end(nvd_kernel *k, int64_t start);
void nvd_count_loaded(int n); /* adds n kernels whose code came from the disk store */
#endif
