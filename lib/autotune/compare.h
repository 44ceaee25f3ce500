/* Decides whether a candidate's result is as good as the reference: the same bits, or for matrix products and
   transforms within an error bound. */
#ifndef NVM_AUTOTUNE_COMPARE_H
#define NVM_AUTOTUNE_COMPARE_H
#include "fusion/plan.h"

/* The relative difference that two results of the step may have, from the length of its sums, the dtypes that it
   accumulates and stores in, and the precision that the user allowed. 0: none. */
double nvt_tolerance(const nvf_step *s);
double nvt_tolerance_of_transforms(const nvg_graph *g); /* the same of results of two plans of the graph */
/* Compares contiguous elements. tolerance 0: bits must be equal, or both values NaN. Else neither a single element nor
   all together may be too far off, and infinities and NaN must be at the same places. Values that are no floats must be
   equal. */
int nvt_close(const char *want, const char *got, int64_t bytes, nvm_dtype type, double tolerance);
#endif
