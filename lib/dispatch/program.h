/* Programs from inside: what preparing (program.c) and the two ways of running (cpu_program.c, cuda/program.c)
   share. */
#ifndef NVM_DISPATCH_PROGRAM_H
#define NVM_DISPATCH_PROGRAM_H
#include "dispatch/code.h"
#include "dispatch/dispatch.h"
#include "dispatch/solve/solve.h"

typedef struct nvd_step {
  int64_t blocks, grain, bytes; /* bytes: read and written */
  int64_t elements;             /* of four bytes, moved; one for 64 operations where that is more */
  double time;                  /* ns that the plan expects */
  int first, narg;              /* its arguments in the program's array of them */
  const char *hero, *what;
  int nchecked;
  nvf_checked *checked;
  nvd_solution *solution; /* a library runs it; NULL: its kernel */
  nvd_kernel *kernel;     /* the CPU's; on a device what its bits are compared with, or NULL */
  struct nvd_gpu_kernel *gpu;
  int spills; /* its code did so when it was prepared, and was taken */
} nvd_step;

typedef struct nvd_address {     /* an argument that a run fills in */
  int arg;
  nvf_bufkind from;
  int id;
  int64_t offset;
  int64_t written; /* bytes from there on that the step may change; 0: it only reads */
  nvm_dtype type;
  int stored; /* the step stores to it */
} nvd_address;
/* An argument: these bytes of a leaf in host memory. */
typedef struct nvd_scalar { int arg, leaf, bytes, offset; } nvd_scalar;

/* What one run on the CPU needs; a program keeps a few for the next ones. */
typedef struct nvd_context {
  char *memory; /* temporaries, then scratch of each worker, or a library's workspace */
  size_t capacity;
  nvc_entry *entry; /* of each step for this run, NULL: interpreted */
  char *scratch;
  size_t stride; /* bytes of scratch of a worker */
  int workers;
  uint64_t arg[]; /* of all steps; then the entries */
} nvd_context;

enum { NVD_SPARES = 4 };
struct nvd_program {
  nvb_arena *arena;
  struct nvd_device *device; /* NULL: the CPU */
  int nstep, narg, naddress, nscalar;
  nvd_step *step;
  uint64_t *arg;        /* sizes and scalars in place, addresses 0 */
  nvd_address *address; /* in the order of the arguments */
  nvd_scalar *scalar;
  int64_t temp_bytes;
  int64_t bytes;    /* of its kernels that it was the first to want */
  int instrumented; /* NVM_DUMP=run or NVM_CHECK=bits */
  /* the CPU's */
  int64_t workspace; /* bytes that a library's step is to have */
  int wide;          /* some step has more blocks than a chunk: the pool is used */
  nvd_tier tier;
  _Atomic(nvd_context *) spare[NVD_SPARES];
  /* a device's */
  struct nvd_gpu_program *gpu;
  atomic_uint spilled; /* nvd_gpu_spilled when the kernels were looked at last */
};

/* The code of every step. Throws; terms->step is the one it is about. */
void nvd_cpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms);
void nvd_gpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms);
void nvd_cpu_free(nvd_program *p); /* of a program that may be half made */
void nvd_gpu_free(nvd_program *p);
int nvd_gpu_outdated(nvd_program *p);
void nvd_count_run(int n);    /* kernels */
void nvd_count_run_on(int n); /* those of devices, under their lock */
uint64_t nvd_scalar_value(const nvd_scalar *s, const char *data);
/* The message of step i, in which a check failed: `failed` is what the kernel says, a statement's number + 1. place:
   what it looked at, an index that counts from the start; NULL: that is not known. */
void nvd_index_error(char *text, size_t size, const nvd_program *p, int i, int failed, const int64_t *place);

/* Runs step i with that code (NULL: the interpreter); a status. */
int nvd_step_run(const nvd_program *p, const nvd_context *c, int i, nvc_entry entry);
/* The same for all steps, reporting each and comparing native code with the interpreter, as the settings ask. */
int nvd_run_instrumented(const nvd_program *p, const nvd_context *c);
#endif
