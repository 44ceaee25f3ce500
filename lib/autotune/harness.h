/* Steps of a plan on their own, to be timed: the values that a step reads are computed once, what it writes goes to
   memory of the harness's. Inside autotune only. */
#ifndef NVM_AUTOTUNE_HARNESS_H
#define NVM_AUTOTUNE_HARNESS_H
#include "autotune/measure.h"
#include "dispatch/dispatch.h"

typedef struct nvt_harness nvt_harness;
/* A candidate: a plan of one step, or a whole one, who runs its products, and what records call it. */
typedef struct nvt_variant { const nvf_plan *plan; const nvd_solver_choice *call; const char *config; } nvt_variant;
/* choice: who runs the steps of p that hold products. Throws NVM_ERR_MEMORY. The arena and all that is given live as
   long. */
nvt_harness *nvt_harness_new(nvb_arena *a, const nvf_plan *p, const nvd_solver_choice *choice, const nvb_caps *caps,
                             struct nvd_device *device, const nvd_operand *leaf, int cold);
void nvt_harness_free(nvt_harness *l);
/* Runs what step i reads. A status; steps in ascending order. */
int nvt_harness_reach(nvt_harness *l, int i);
nvf_plan *nvt_harness_step(nvt_harness *l, nvf_step *step); /* another form of the step that was reached, for a trial */
/* The same for plans of the same leaves and outputs as a whole. A status; steps cannot be reached after it. */
int nvt_harness_whole(nvt_harness *l);
nvf_plan *nvt_harness_all(nvt_harness *l, const nvf_plan *p);
/* Times candidates of what was reached, 0 being the plan's own; as nvt_measure. key: of marks for those that hang. */
int nvt_harness_choose(nvt_harness *l, nvb_hash key, const nvt_variant *t, nvt_candidate *c, int n, const nvt_rules *r,
                       void (*progress)(void *user, double part), void *user);
#endif
