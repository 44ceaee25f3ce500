/* CUDA C++ out of kernels, and cubins out of CUDA C++. Pure: neither needs a GPU, and the first needs nothing of CUDA. */
#ifndef NVC_CUDA_H
#define NVC_CUDA_H
#include "fusion/kernel.h"

typedef struct nvc_cuda_target {
  int arch;              /* compute capability times ten: 80, 90, 100, 120 */
  int wide;              /* 1: index expressions need 64 bits; 0: every size, stride and address in elements is below 2^30 */
} nvc_cuda_target;

/* The function is  extern "C" __global__ void nvm_kernel(parameters of the kernel in order; then, if `checks`, int *failed;
   then, if `scratch`, char *scratch).  Buffers are pointers; sizes are `int` (wide: `long long`); scalars have their own
   type (bool, 8 and 16 bits: as stored in memory). One block a kernel block, blockIdx.x is its number; *failed is set with
   atomicMin semantics to the lowest id + 1 of a CHECK that failed (0: none). */
typedef struct nvc_cuda_kernel {
  const char *source;    /* header-free; in the arena */
  int threads;           /* of a block */
  int64_t shared;        /* bytes of dynamic shared memory */
  int64_t scratch;       /* bytes of device memory for each block; 0: none */
  int checks;            /* it has CHECK statements */
} nvc_cuda_kernel;
void nvc_cuda_emit(nvb_arena *a, nvc_cuda_kernel *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_cuda_target *t); /* throws */

/* ---- NVRTC, opened at the first use */
int nvc_nvrtc_available(void);         /* 0 with a message */
const char *nvc_nvrtc_version(void);   /* "13.0", or why there is none */
typedef struct nvc_cubin {
  void *bytes; size_t n;               /* nvb_free(bytes) */
  int registers, spills, stack;        /* of a thread; spills: bytes of stores and loads */
} nvc_cubin;
/* A status; a message of NVRTC's carries the log and the numbered source. Thread-safe; several compile at once. */
int nvc_nvrtc_compile(nvc_cubin *out, const char *source, const char *name, int arch);
/* Source, options, architecture, NVRTC's build and the format's version. */
nvb_hash nvc_nvrtc_key(const char *source, int arch);
int64_t nvc_cuda_compiled(void);       /* by this process */
#endif
