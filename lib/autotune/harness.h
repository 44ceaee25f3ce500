/* Steps of a plan on their own, to be timed: the values that a step reads are computed once, what it writes goes to
   memory of the lab's. Inside autotune only. */
#ifndef NVM_AUTOTUNE_HARNESS_H
#define NVM_AUTOTUNE_HARNESS_H
#include "autotune/measure.h"
#include "dispatch/dispatch.h"

typedef struct nvt_lab nvt_lab;
/* A candidate: a plan of one step, or a whole one, who runs its products, and what records call it. */
typedef struct nvt_trial { const nvf_plan *plan; const nvd_choice *call; const char *choice; } nvt_trial;
/* choice: who runs the steps of p that hold products. Throws NVM_ERR_MEMORY. The arena and all that is given live as
   long. */
nvt_lab *nvt_lab_new(nvb_arena *a, const nvf_plan *p, const nvd_choice *choice, const nvb_caps *caps,
                     struct nvd_device *device, const nvd_operand *leaf, int cold);
void nvt_lab_free(nvt_lab *l);
/* Runs what step i reads. A status; steps in ascending order. */
int nvt_lab_reach(nvt_lab *l, int i);
nvf_plan *nvt_lab_step(nvt_lab *l, nvf_step *step);      /* another form of the step that was reached, for a trial */
/* The same for plans of the same leaves and outputs as a whole. A status; steps cannot be reached after it. */
int nvt_lab_whole(nvt_lab *l);
nvf_plan *nvt_lab_all(nvt_lab *l, const nvf_plan *p);
/* Times candidates of what was reached, 0 being the plan's own; as nvt_measure. key: of marks for those that hang. */
int nvt_lab_choose(nvt_lab *l, nvb_hash key, const nvt_trial *t, nvt_candidate *c, int n, const nvt_rules *r,
                   void (*told)(void *user, double part), void *user);
#endif
