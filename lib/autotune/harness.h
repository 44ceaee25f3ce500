/* The harness: runs steps of a plan alone, to time them. The inputs of a step are computed once; its outputs go to the
   harness's own memory. Private to autotune. */
#ifndef NVM_AUTOTUNE_HARNESS_H
#define NVM_AUTOTUNE_HARNESS_H
#include "autotune/measure.h"
#include "dispatch/dispatch.h"

typedef struct nvt_harness nvt_harness;
/* A candidate: a plan of one step or a whole plan, who runs its GEMMs, and its config text in records. */
typedef struct nvt_variant { const nvf_plan *plan; const nvd_solver_choice *call; const char *config; } nvt_variant;
/* choice: who runs the GEMM steps of p. The arena and all arguments must live as long as the harness. Throws
   NVM_ERR_MEMORY. */
nvt_harness *nvt_harness_new(nvb_arena *a, const nvf_plan *p, const nvd_solver_choice *choice, const nvb_caps *caps,
                             struct nvd_device *device, const nvd_operand *leaf, int cold);
void nvt_harness_free(nvt_harness *l);
/* Runs the steps before i, so that the inputs of step i exist; call it with ascending i. Returns a status. */
int nvt_harness_reach(nvt_harness *l, int i);
nvf_plan *nvt_harness_step(nvt_harness *l, nvf_step *step); /* a plan of another form of the step that was reached */
/* Prepares for measuring whole plans with the same leaves and outputs; no step can be reached afterwards. Returns a
   status. */
int nvt_harness_whole(nvt_harness *l);
nvf_plan *nvt_harness_all(nvt_harness *l, const nvf_plan *p);
/* Times candidates of what was reached, candidate 0 being the plan's own, and returns what nvt_measure does. key: the
   key of their rows in the crash ledger. */
int nvt_harness_choose(nvt_harness *l, nvb_hash key, const nvt_variant *t, nvt_candidate *c, int n, const nvt_rules *r,
                       void (*progress)(void *user, double part), void *user);
#endif
