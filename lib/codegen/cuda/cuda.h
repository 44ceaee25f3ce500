/* The CUDA back end: kernels become CUDA C++ (nvc_cuda_emit, which needs nothing of CUDA), and CUDA C++ becomes a cubin
   (NVRTC). Neither needs a GPU, and neither loads or launches code. */
#ifndef NVM_CODEGEN_CUDA_CUDA_H
#define NVM_CODEGEN_CUDA_CUDA_H
#include "kernel/kernel.h"

typedef struct nvc_cuda_target {
  int arch;     /* compute capability times ten: 80, 90, 100, 120 */
  int wide;     /* 1: index expressions need 64 bits; 0: every size, stride and address in elements is below 2^30 */
  int baseline; /* 1: the baseline tier: rolled loops, which compile sooner; the same threads, CTAs and bits */
} nvc_cuda_target;

/* A tensor map, innermost axis first (cuTensorMapEncodeTiled): elements outside the extents are read as 0 and are not
   written. Plain data that outlives the kernel's arena. */
enum { NVC_MAPS = 8, NVC_POLY_TERMS = 6 };
/* sum of c * sizes */
typedef struct nvc_poly { int n; struct { int64_t c; int n, param[4]; } t[NVC_POLY_TERMS]; } nvc_poly;
typedef struct nvc_cuda_map {
  int param, type, rank;
  nvc_poly offset, extent[NVF_TMA_RANK], stride[NVF_TMA_RANK]; /* in elements; stride[0] is 1 */
  int box[NVF_TMA_RANK];
  int swizzle; /* bytes: 32, 64, 128 */
  int tf32;    /* 1: f32 is rounded to tf32 on the way into shared memory */
} nvc_cuda_map;
int64_t nvc_poly_value(const nvc_poly *p, const uint64_t *args); /* args[i]: value of parameter i */

/* The function is extern "C" __global__ void nvm_kernel(parameters of the kernel in order; then, if `checks`, int
   *failed; then, if `scratch`, char *scratch; then, if `flags`, unsigned *flags; then a CUtensorMap for each of `map`,
   by value). Buffers are pointers; sizes are `int` (wide: `long long`); scalars have their own type (bool, 8 and 16
   bits: as stored in memory). The launch has one CTA for each block of the kernel (or one cluster), and blockIdx.x is
   the block's number; with `persistent`, any number of CTAs divide the blocks among them. *failed is set with atomicMin
   semantics to the lowest id + 1 of a CHECK that failed (0: none). */
enum { NVC_FLAGS = 32 };
typedef struct nvc_cuda_kernel {
  const char *source; /* header-free; in the arena */
  int threads;        /* of a CTA */
  int64_t shared;     /* bytes of dynamic shared memory */
  int64_t scratch;    /* bytes of device memory for each block of the launch; 0: none */
  /* 1: each CTA has a flag word, after NVC_FLAGS words that all share; all are 0 before and after a run. Then the
     launch has as many CTAs as are resident, however many blocks the kernel has. */
  int flags;
  int checks;     /* 1: the kernel has CHECK statements */
  int cluster;    /* CTAs of a cluster, which compute one block of the kernel together; 1: no cluster */
  int persistent; /* persistent CTAs per SM, which compute one block after the other; 0: one CTA per block */
  int nmap;
  nvc_cuda_map map[NVC_MAPS];
} nvc_cuda_kernel;
/* Throws; NVM_ERR_UNSUPPORTED with `baseline`: the kernel has only optimised code. */
void nvc_cuda_emit(nvb_arena *a, nvc_cuda_kernel *out, const nvf_kernel *k, const nvf_schedule *s,
                   const nvc_cuda_target *t);

/* ---- NVRTC, opened at the first use */
int nvc_nvrtc_available(void);       /* 0 with a message */
int nvc_nvrtc_supports(int arch);    /* 0 with a message: NVRTC is missing, or too old for these GPUs */
const char *nvc_nvrtc_version(void); /* "13.0", or why there is none */
typedef struct nvc_cubin {
  void *bytes;
  size_t n;              /* nvb_free(bytes) */
  int registers, spills; /* per thread; spills: bytes of spill stores and loads */
} nvc_cubin;
/* Reads registers and spills from the cubin's bytes and from its PTX; returns a status. */
int nvc_cubin_read(nvc_cubin *c, const char *ptx);
/* Returns a status; NVRTC's message has the log and the numbered source. Thread-safe: several may compile at once. */
int nvc_nvrtc_compile(nvc_cubin *out, const char *source, const char *name, int arch);
/* The same in less time and with fewer optimisations; results have the same bits. */
int nvc_nvrtc_compile_quick(nvc_cubin *out, const char *source, const char *name, int arch);
/* Key of a cubin: hash of a kernel's text and schedule, target, emitter, options, NVRTC's build and the format's
   version. */
nvb_hash nvc_cubin_key(nvb_hash kernel, const nvc_cuda_target *t);
int64_t nvc_cuda_compiled(void); /* sources compiled by this process; a kernel may have several */
#endif
