/* The candidates of a step: knobs of its schedule with values that depend on the device, the model's estimate for each,
   and for a GEMM who runs it. */
#ifndef NVM_AUTOTUNE_CANDIDATES_H
#define NVM_AUTOTUNE_CANDIDATES_H
#include "dispatch/dispatch.h"

/* A step is tuned in passes. Each pass varies a few knobs together, starting from the best config of the passes
   before. */
enum { NVT_MOST = 40 };
typedef struct nvt_config {
  nvf_knobs knobs;
  nvd_solver_choice call;  /* who runs a GEMM step */
  const char *text;        /* knobs and call as text, as in records: "solver=kernel rows=64"; "": the rules' choice */
  const char *description; /* the solver's description, or "" */
  nvf_step *step;
  double model;
} nvt_config;
void nvt_config_print(nvb_text *t, const nvf_knobs *knobs, const nvd_solver_choice *call);
int nvt_config_read(nvf_knobs *knobs, nvd_solver_choice *call, const char *text); /* 0: the text is not a config */
/* Could this config be a candidate of the step? */
int nvt_config_fits(const nvf_plan *p, int step, const nvb_caps *caps, const nvf_knobs *knobs,
                    const nvd_solver_choice *call);

int nvt_passes(nvb_devkind device, const nvf_step *s);
/* Lists the candidates of a pass, at[0] being `from`, without duplicates, and returns their number. May throw. */
int nvt_candidates(nvb_arena *a, const nvf_plan *p, int step, const nvb_caps *caps, struct nvd_device *device, int pass,
                   const nvt_config *from, nvt_config at[NVT_MOST]);
#endif
