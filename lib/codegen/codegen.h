/* How a kernel is run or spelled for a machine. Pure: (kernel, schedule, target) -> code. */
#ifndef NVM_CODEGEN_CODEGEN_H
#define NVM_CODEGEN_CODEGEN_H
#include "kernel/kernel.h"

/* The call of every kernel, interpreted or compiled: one 8-byte slot per parameter in order (buffer: its address; size:
   its value; scalar: its bits, zero extended), the blocks [lo, hi), and scratch of `scratch` bytes, 64-byte aligned,
   private to the calling thread. Returns 0, or the id + 1 of the CHECK statement that failed first. */
typedef int (*nvc_entry)(const uint64_t *args, int64_t lo, int64_t hi, void *scratch);

/* ---- the interpreter (interp/compile.c): the oracle, the first tier, the last resort. Always works. */
typedef struct nvc_interp nvc_interp;
nvc_interp *nvc_interp_new(nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s); /* throws what the check throws */
int64_t nvc_interp_scratch(const nvc_interp *p);
int nvc_interp_run(const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi, void *scratch);
/* The same, and of the check that failed the first value that it looked at and found outside. */
int nvc_interp_find(int64_t *outside, const nvc_interp *p, const uint64_t *args, int64_t lo, int64_t hi, void *scratch);

/* ---- native code for this CPU. The LLVM module is loaded at the first call. */
/* width: bytes of a vector: 16, 32, 64 */
typedef struct nvc_target { char cpu[64]; char features[1024]; int width; } nvc_target;
const nvc_target *nvc_target_host(void); /* honours NVM_ISA */
int nvc_llvm_available(void);            /* 0 with a message: not built in, not found, dead, no FMA */
const char *nvc_llvm_version(void);      /* "19.1.7", or why there is none */

/* relocatable code; nvb_free(bytes) */
typedef struct nvc_object { void *bytes; size_t n; int64_t scratch; } nvc_object;
/* A status. Object code with one symbol "nvm_kernel" of type nvc_entry. */
int nvc_compile(nvc_object *out, const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t);
nvb_hash nvc_code_key(const nvf_kernel *k, const nvf_schedule *s, const nvc_target *t);
typedef struct nvc_code nvc_code;                 /* loaded code, counted */
int nvc_load(nvc_code **out, const nvc_object *o); /* a status */
nvc_entry nvc_code_entry(const nvc_code *c);
void nvc_code_free(nvc_code *c);
int64_t nvc_compiled(void); /* kernels compiled in this process (not loaded from a cache) */
#endif
