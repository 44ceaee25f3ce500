/* Runs steps of a CPU's program together, strip by strip (fusion/strips.c finds them). Private to dispatch. */
#ifndef NVM_DISPATCH_STRIPS_H
#define NVM_DISPATCH_STRIPS_H
#include "dispatch/program.h"

typedef struct nvd_strips nvd_strips;
/* Makes, in the arena, what the runs of a program's step need; the plan is that of the program. */
nvd_strips *nvd_strips_new(nvb_arena *a, const nvf_plan *plan, const nvd_program *p, const nvf_strips *s);
int nvd_strips_last(const nvd_strips *s); /* the step that all of them run in place of */
/* All of them as one step, for a profile: what it is called, its bytes and operations. */
const nvd_step *nvd_strips_as_step(const nvd_strips *s);
/* All of them as one step, for a profile: what it is called, its bytes and operations. */
const nvd_step *nvd_strips_as_step(const nvd_strips *s);
/* Bytes that each worker needs beside the scratch of its kernels. */
int64_t nvd_strips_memory(const nvd_strips *s);
/* Runs all strips, with the memory at c->scratch. Returns a status. */
int nvd_strips_run(const nvd_program *p, const nvd_context *c, const nvd_strips *s);
#endif
