/* Which way is best for each step of a plan: the rules' own, a record's, or what is measured now. Changes no bit of a
   result. */
#ifndef NVM_AUTOTUNE_TUNE_H
#define NVM_AUTOTUNE_TUNE_H
#include "dispatch/dispatch.h"
#include "nvm/tune.h"

/* The plan with its steps as they were chosen, in the same arena: NVM_TUNE says from what. One that holds products may
   become another one, fused (with options o) as if there were no libraries, or with products split into bf16 that were
   not. leaf: values of the graph's leaves where it runs, read only; NULL: nothing can be measured. *choice: who runs
   the steps that hold products, NULL: as dispatch thinks best. Never fails: what cannot be tuned stays as it was. */
nvf_plan *nvt_tune(nvb_arena *a, nvf_plan *p, const nvf_options *o, const nvb_caps *caps, struct nvd_device *device,
                   const nvd_operand *leaf, const nvd_solver_choice **choice);

/* While a session is open, what is planned and has no record is measured, whatever the thread. Sessions nest; the
   newest one's wishes count. */
typedef struct nvt_session {
  double budget;                                            /* ns for all that is measured in it */
  int cold;                                                 /* caches are emptied before each sample */
  void (*progress)(void *user, const nvm_tune_progress *p); /* NULL: nobody asks */
  void *user;
} nvt_session;
int nvt_begin(const nvt_session *s); /* a status */
int nvt_end(void);                   /* the newest one of this thread; waits for what is being measured; a status */

/* of this process: steps, candidates; records used */
typedef struct nvt_counts { int64_t measured, timed, found; } nvt_counts;
nvt_counts nvt_counted(void);
#endif
