/* The program structure that preparing (program.c) and the two ways of running (cpu_program.c, cuda/program.c) share.
   Private to dispatch. */
#ifndef NVM_DISPATCH_PROGRAM_H
#define NVM_DISPATCH_PROGRAM_H
#include "dispatch/code.h"
#include "dispatch/dispatch.h"
#include "dispatch/solve/solve.h"

typedef struct nvd_step {
  int64_t blocks, grain, bytes; /* blocks of the grid; blocks per task of the pool; bytes read and written */
  int64_t operations;           /* as the plan counts them */
  int unit;                     /* what does them (profile.h) */
  int64_t elements;             /* work in elements: 4-byte elements moved, or operations / 64 if that is more */
  double time;                  /* ns, as the plan's cost model expects */
  int first, narg;              /* its arguments: the first one in the program's array, and their number */
  const char *hero, *what;      /* the kind of its kernel; a description for messages */
  int nchecked;
  nvf_checked *checked;
  nvd_solution *solution; /* how a library or routine runs it; NULL: its kernel does */
  nvd_kernel *kernel;     /* the CPU's kernel; on a GPU the reference for NVM_CHECK=bits, or NULL */
  struct nvd_gpu_kernel *gpu;
  int spills; /* its code spilled when it was prepared, and was accepted */
} nvd_step;

typedef struct nvd_address { /* an address argument that each run fills in */
  int arg; /* its index in the program's arguments */
  nvf_bufkind from;
  int id;          /* of the leaf or output */
  int64_t offset;  /* bytes */
  int64_t written; /* bytes from the address that the step may write; 0: it only reads */
  nvm_dtype type;
  int stored; /* 1 if the step stores to it */
} nvd_address;
/* A scalar argument: `bytes` bytes at `offset` of a leaf in host memory. */
typedef struct nvd_scalar { int arg, leaf, bytes, offset; } nvd_scalar;

/* State of one run on the CPU; a program keeps up to NVD_SPARES of them for later runs. */
typedef struct nvd_context {
  char *memory; /* temporaries, then the scratch of each worker or a library's workspace */
  size_t capacity;
  nvc_entry *entry; /* code of each step for this run; NULL: interpreted */
  char *scratch;
  size_t stride; /* scratch bytes of one worker */
  int workers;
  uint64_t arg[]; /* arguments of all steps; the entries follow them */
} nvd_context;

enum { NVD_SPARES = 4 };
enum { NVD_LITTLE = 8000 }; /* ns of native code, which take no longer than to wake the pool's threads */
struct nvd_program {
  nvb_arena *arena;
  struct nvd_device *device; /* NULL: the CPU */
  int nstep, narg, naddress, nscalar;
  nvd_step *step;
  uint64_t *arg;        /* sizes and scalars are filled in; addresses are 0 */
  nvd_address *address; /* in the order of the arguments */
  nvd_scalar *scalar;
  int64_t temp_bytes;
  int64_t bytes;    /* heap bytes of the kernels that it was the first to request */
  int instrumented; /* NVM_DUMP=run or NVM_CHECK=bits */
  /* ---- on the CPU */
  int64_t workspace; /* bytes that a step run by a library needs */
  int wide;          /* some step has more blocks than its grain, or is a library's: the pool is used */
  int nstrips;
  struct nvd_strips **strips; /* by step: those that it is in; NULL: it runs alone (strips.h) */
  int64_t strips_memory;      /* bytes that a worker needs for them beside its scratch */
  nvd_tier tier;
  _Atomic(nvd_context *) spare[NVD_SPARES];
  /* ---- on a GPU */
  struct nvd_gpu_program *gpu;
  atomic_uint spilled; /* the value of nvd_gpu_spilled when the kernels were last examined */
  atomic_int ready;    /* all kernels are known to have code */
};

/* Obtain the code of every step. They throw; terms->step is then the step in question. */
void nvd_cpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms);
void nvd_gpu_prepare(nvb_arena *work, nvd_program *p, const nvf_plan *plan, nvd_terms *terms);
void nvd_cpu_join(nvb_arena *a, nvd_program *p, const nvf_plan *plan); /* the steps that run in strips */
void nvd_cpu_share(nvd_program *p, const nvd_program *from);           /* takes the kernels of another program */
void nvd_cpu_free(nvd_program *p); /* also frees a program that is only partly made */
void nvd_gpu_free(nvd_program *p);
int nvd_gpu_outdated(nvd_program *p);
int nvd_gpu_ready(nvd_program *p);
void nvd_gpu_compile(nvd_program *p);
void nvd_count_run(int n);    /* adds n kernels that were run */
void nvd_count_run_on(int n); /* the same for GPU kernels; the caller holds nvd_lock */
uint64_t nvd_scalar_value(const nvd_scalar *s, const char *data);
/* Prints the message of a failed check in step i. failed: what the kernel returned, the statement's number + 1. at:
   the index that it found, counted from the start; NULL if unknown. */
void nvd_index_error(char *text, size_t size, const nvd_program *p, int i, int failed, const int64_t *at);

/* Runs step i with this code (NULL: the interpreter). Returns a status. */
int nvd_step_run(const nvd_program *p, const nvd_context *c, int i, nvc_entry entry);
/* Runs all steps, and adds the time of each to the active profiles. Returns a status. */
int nvd_run_profiled(const nvd_program *p, const nvd_context *c);
/* Step i with all that runs together with it, or nothing if it is the strips of a later step. Returns a status. */
int nvd_step_in_turn(const nvd_program *p, const nvd_context *c, int i);
void nvd_profile_step(const nvd_program *p, const nvd_context *c, int i, int64_t start); /* adds one that has run */
/* Runs all steps; reports each one and compares native code with the interpreter, as the settings ask. */
int nvd_run_instrumented(const nvd_program *p, const nvd_context *c);
#endif
