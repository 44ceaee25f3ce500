/* CUDA C++ out of kernels, and cubins out of CUDA C++. Pure: neither needs a GPU, and the first needs nothing of
   CUDA. */
#ifndef NVM_CODEGEN_CUDA_CUDA_H
#define NVM_CODEGEN_CUDA_CUDA_H
#include "kernel/kernel.h"

typedef struct nvc_cuda_target {
  int arch;     /* compute capability times ten: 80, 90, 100, 120 */
  int wide;     /* 1: index expressions need 64 bits; 0: every size, stride and address in elements is below 2^30 */
  int baseline; /* 1: loops over single elements, not optimised code: less to compile; the same threads, blocks, bits */
} nvc_cuda_target;

/* A buffer as TMA moves boxes of it, innermost axis first (cuTensorMapEncodeTiled): what lies outside of the extents
   is read as 0 and not written. Plain data: it outlives the kernel's arena. */
enum { NVC_MAPS = 8, NVC_MAP_RANK = 4, NVC_POLY_TERMS = 6 };
/* sum of c * sizes */
typedef struct nvc_poly { int n; struct { int64_t c; int n, param[4]; } t[NVC_POLY_TERMS]; } nvc_poly;
typedef struct nvc_cuda_map {
  int param, type, rank;
  nvc_poly offset, extent[NVC_MAP_RANK], stride[NVC_MAP_RANK]; /* in elements; stride[0] is 1 */
  int box[NVC_MAP_RANK];
  int swizzle; /* bytes: 32, 64, 128 */
  int tf32;    /* floats of 32 bits are rounded to it on their way into shared memory */
} nvc_cuda_map;
int64_t nvc_poly_value(const nvc_poly *p, const uint64_t *args); /* args[i]: value of parameter i */

/* The function is  extern "C" __global__ void nvm_kernel(parameters of the kernel in order; then, if `checks`,
   int *failed; then, if `scratch`, char *scratch; then, if `flags`, unsigned *flags; then a CUtensorMap for each of
   `map`, by value).  Buffers are pointers; sizes are `int` (wide: `long long`); scalars have their own type (bool, 8
   and 16 bits: as stored in memory). One block a kernel block, blockIdx.x is its number; if `persistent`, any number of
   blocks shares them out, and so many fit a multiprocessor; *failed is set with atomicMin semantics to the lowest
   id + 1 of a CHECK that failed (0: none). */
enum { NVC_FLAGS = 32 };
typedef struct nvc_cuda_kernel {
  const char *source; /* header-free; in the arena */
  int threads;        /* of a block */
  int64_t shared;     /* bytes of dynamic shared memory */
  int64_t scratch;    /* bytes of device memory for each block of the launch; 0: none */
  /* words of each block of the launch, by which it tells others what it did, behind NVC_FLAGS of all: 0 before a run
     and after it. Then the launch is of as many blocks as stay, however many the kernel has */
  int flags;
  int checks;     /* it has CHECK statements */
  int cluster;    /* blocks of the launch that are one kernel block: their shared memory is one another's; 1: just it */
  int persistent; /* blocks of a SMs that take one kernel block after the other; 0: as many as there are */
  int nmap;
  nvc_cuda_map map[NVC_MAPS];
} nvc_cuda_kernel;
void nvc_cuda_emit(nvb_arena *a, nvc_cuda_kernel *out, const nvf_kernel *k, const nvf_schedule *s,
                   const nvc_cuda_target *t); /* throws; NVM_ERR_UNSUPPORTED: its code is straight in any case */

/* ---- NVRTC, opened at the first use */
int nvc_nvrtc_available(void);       /* 0 with a message */
int nvc_nvrtc_supports(int arch);    /* 0 with a message: there is none, or it is too old for these GPUs */
const char *nvc_nvrtc_version(void); /* "13.0", or why there is none */
typedef struct nvc_cubin {
  void *bytes;
  size_t n;              /* nvb_free(bytes) */
  int registers, spills; /* of a thread; spills: bytes of stores and loads */
} nvc_cubin;
/* What it needs, from its bytes and from the PTX that they were made of; a status. */
int nvc_cubin_read(nvc_cubin *c, const char *ptx);
/* A status; a message of NVRTC's carries the log and the numbered source. Thread-safe; several compile at once. */
int nvc_nvrtc_compile(nvc_cubin *out, const char *source, const char *name, int arch);
/* The same, sooner and optimised less; the bits of results are the same. */
int nvc_nvrtc_compile_quick(nvc_cubin *out, const char *source, const char *name, int arch);
/* Of the cubin of a kernel whose text, with its schedule, has this hash: with the target, the emitter, the options,
   NVRTC's build and the format's version. */
nvb_hash nvc_cubin_key(nvb_hash kernel, const nvc_cuda_target *t);
int64_t nvc_cuda_compiled(void); /* sources, by this process: a kernel may have several */
#endif
