/* Turns a kernel and its schedule into something that runs: an interpreter's program, or native code for this CPU. A
   pure function of (kernel, schedule, target): codegen never decides what a kernel computes or how it is scheduled. */
#ifndef NVM_CODEGEN_CODEGEN_H
#define NVM_CODEGEN_CODEGEN_H
#include "kernel/kernel.h"

/* Calls a kernel, interpreted or compiled: args has one 8-byte slot per parameter in order (buffer: its address; size:
   its value; scalar: its bits, zero extended); the blocks [lo, hi) are executed; scratch is `scratch` bytes, 64-byte
   aligned, and private to the calling thread. Returns 0, or the id + 1 of the first CHECK statement that failed. */
typedef int (*nvc_entry)(const uint64_t *args, int64_t lo, int64_t hi, void *scratch);

/* ---- the interpreter (interp/compile.c): the reference for all bits, the first tier, and the fallback. It runs every
   kernel. */
typedef struct nvc_interp nvc_interp;
/* Throws what nvf_kernel_check throws. */
nvc_interp *nvc_interp_new(nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s);
int64_t nvc_interp_scratch(const nvc_interp *p);
int nvc_interp_run(const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi, void *scratch);
/* The same; outside: the first value that the failed check found out of range. */
int nvc_interp_find(int64_t *outside, const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi, void *scratch);

/* ---- native code for this CPU. The LLVM module is opened when something is compiled, or when the disk cache does not
   know yet what LLVM says about this CPU. */
/* width: bytes of a vector: 16, 32, 64 */
typedef struct nvc_target { char cpu[64]; char features[1024]; int width; } nvc_target;
const nvc_target *nvc_target_host(void);  /* honours NVM_ISA */
const nvc_target *nvc_target_known(void); /* the same; NULL if LLVM would have to be opened to know it */
int nvc_llvm_present(void);               /* 1 if its module is there, which may not be one that can be opened */
int nvc_llvm_available(void);             /* 0 with a message: not built in, not found, dead, or a CPU without FMA */
const char *nvc_llvm_version(void);       /* "19.1.7", or why there is none */

/* relocatable code; nvb_free(bytes). instructions: of LLVM IR before passes, with which the time to compile grows.
   baseline: their number if there would have been more than allowed, else 0. Baseline code has no copies of loops
   without masks and is not optimised: it takes a third of the time to make. Its scratch may be less. */
typedef struct nvc_object {
  void *bytes;
  size_t n;
  int64_t scratch;
  int instructions, baseline;
} nvc_object;
/* Returns a status. The object code has one symbol, "nvm_kernel", of type nvc_entry. A kernel with more than `most`
   instructions gets baseline code; 0: none does. */
int nvc_compile(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t, int most);
nvb_hash nvc_code_key(const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t);
typedef struct nvc_code nvc_code;                  /* loaded code */
int nvc_load(nvc_code **out, const nvc_object *o); /* returns a status */
nvc_entry nvc_code_entry(const nvc_code *c);
void nvc_code_free(nvc_code *c);
int64_t nvc_compiled(void); /* kernels compiled in this process (not loaded from a cache) */
#endif
