/* What may be better than the rules' own schedule of a step: knobs and their values, by device, with what a model says of
   each. */
#ifndef NVT_CANDIDATES_H
#define NVT_CANDIDATES_H
#include "fusion/plan.h"

/* A step is tuned in passes: each varies a few knobs together, from the best that the passes before have found. */
enum { NVT_MOST = 24 };
typedef struct nvt_choice { nvf_knobs knobs; const char *text; nvf_step *step; double model; } nvt_choice;
int nvt_passes(nvb_devkind device);
/* Candidates of a pass, at[0] being `from`; steps that are no other than one before are left out. Their number. May throw. */
int nvt_candidates(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, int pass, const nvt_choice *from,
                   nvt_choice at[NVT_MOST]);
#endif
