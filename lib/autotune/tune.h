/* The autotuner: chooses for each step of a plan between the rules' config, one from a record, and one that it
   measures. It never changes what is computed; only GEMM steps may round their sums differently. */
#ifndef NVM_AUTOTUNE_TUNE_H
#define NVM_AUTOTUNE_TUNE_H
#include "dispatch/dispatch.h"
#include "nvm/tune.h"

/* Returns the plan with the chosen steps, in the same arena; the setting NVM_TUNE says where choices come from. A plan
   with GEMMs may be replaced by one that is fused (with options o) as if there were no libraries, or whose float32
   GEMMs have the other form (split into bf16 or not). leaf: values of the graph's leaves on the device that runs it,
   read only; NULL: nothing can be measured. *choice: who runs each GEMM step; NULL: dispatch decides. Never fails: what
   cannot be tuned stays as it was. */
nvf_plan *nvt_tune(nvb_arena *a, nvf_plan *p, const nvf_options *o, const nvb_caps *caps, struct nvd_device *device,
                   const nvd_operand *leaf, const nvd_solver_choice **choice);

/* Is the step tuned, if there is a record of it? */
int nvt_is_worth_tuning(const nvf_step *s);
/* A device with all that the speed of its kernels depends on, readable; product: of GEMMs, with their library. */
const char *nvt_device_in_words(nvb_arena *a, const nvb_caps *caps, struct nvd_device *d, int product);
int nvt_is_measuring(void); /* are steps without a record measured? */

/* While a session is open, steps that any thread plans and that have no record are measured. Sessions nest; the options
   of the newest one are used. */
typedef struct nvt_session {
  double budget;                                            /* ns for everything measured in the session */
  int cold;                                                 /* empty the caches before each sample */
  void (*progress)(void *user, const nvm_tune_progress *p); /* NULL: not wanted */
  void *user;
} nvt_session;
int nvt_begin(const nvt_session *s); /* returns a status */
int nvt_end(void); /* closes the newest session of this thread; waits for a measurement in progress; a status */

/* counters of this process: steps measured, candidates timed, records used */
typedef struct nvt_counts { int64_t measured, timed, found; } nvt_counts;
nvt_counts nvt_counted(void);
#endif
