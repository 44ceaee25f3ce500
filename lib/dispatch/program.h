/* Programs from inside: what running (program.c) and watching (watch.c) share. */
#ifndef NVD_PROGRAM_H
#define NVD_PROGRAM_H
#include "dispatch/code.h"
#include "dispatch/dispatch.h"

typedef struct nvd_step {
  nvd_kernel *kernel;
  int64_t blocks, grain, bytes;  /* bytes: read and written */
  int first;                     /* of its arguments in the program's array of them */
  const char *hero, *what;
} nvd_step;

typedef struct nvd_address {     /* an argument that a run fills in */
  int arg;
  nvf_bufkind from;
  int id;
  int64_t offset;
  int64_t written;               /* bytes from there on that the step may change; 0: it only reads */
  nvm_dtype type;
} nvd_address;

/* What one run needs; a program keeps a few for the next ones. */
typedef struct nvd_context {
  char *memory;                  /* temporaries, then scratch of each worker */
  size_t room;
  nvc_entry *entry;              /* of each step for this run, NULL: interpreted */
  char *scratch;
  size_t stride;                 /* bytes of scratch of a worker */
  int workers;
  uint64_t arg[];                /* of all steps; then the entries */
} nvd_context;

enum { NVD_SPARES = 4 };
struct nvd_program {
  nvb_arena *arena;
  int nstep, narg, naddress;
  int wide;                      /* some step has more blocks than a chunk: the pool is used */
  int watched;                   /* NVM_DUMP=run or NVM_CHECK=bits */
  nvd_tier tier;
  nvd_step *step;
  uint64_t *arg;                 /* sizes and scalars in place, addresses 0 */
  nvd_address *address;          /* in the order of the arguments */
  int64_t temp_bytes;
  _Atomic(nvd_context *) spare[NVD_SPARES];
};

/* Runs step i with that code (NULL: the interpreter); a status. */
int nvd_step_run(const nvd_program *p, const nvd_context *c, int i, nvc_entry entry);
/* The same for all steps, reporting each and comparing native code with the interpreter, as the settings ask. */
int nvd_run_watched(const nvd_program *p, const nvd_context *c);
#endif
