/* What may be better than what the rules choose for a step: knobs of its schedule and their values, by device, with
   what a model says of each; for a product also who runs it. */
#ifndef NVM_AUTOTUNE_CANDIDATES_H
#define NVM_AUTOTUNE_CANDIDATES_H
#include "dispatch/dispatch.h"

/* A step is tuned in passes: each varies a few knobs together, from the best that the passes before have found. */
enum { NVT_MOST = 40 };
typedef struct nvt_config {
  nvf_knobs knobs;
  nvd_solver_choice call;  /* of a product */
  const char *text;        /* both, as records have them: "solver=kernel rows=64"; "": as the rules say */
  const char *description; /* the solver's own words for people, or "" */
  nvf_step *step;
  double model;
} nvt_config;
void nvt_config_print(nvb_text *t, const nvf_knobs *knobs, const nvd_solver_choice *call);
int nvt_config_read(nvf_knobs *knobs, nvd_solver_choice *call, const char *text); /* 0: not such a text */
/* 0: no candidate of such a step could be this. */
int nvt_config_fits(const nvf_plan *p, int step, const nvb_caps *caps, const nvf_knobs *knobs,
                    const nvd_solver_choice *call);

int nvt_passes(nvb_devkind device, const nvf_step *s);
/* Candidates of a pass, at[0] being `from`; steps that are no other than one before are left out. Their number. May
   throw. */
int nvt_candidates(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, struct nvd_device *device, int pass,
                   const nvt_config *from, nvt_config at[NVT_MOST]);
#endif
