/* Whether a candidate's result may stand for the reference's: the same bits, or for matrix products within their
   bound. */
#ifndef NVM_AUTOTUNE_COMPARE_H
#define NVM_AUTOTUNE_COMPARE_H
#include "fusion/plan.h"

/* How far two results of the step may lie from each other, against their size: from the terms of its sums, the types
   they are added and stored in, and the precision that the user allowed. 0: not at all. */
double nvt_tolerance(const nvf_step *s);
/* Elements in a row; tolerance 0: equal bits, or both NaN. Else no element may be far off, nor all of them together;
   infinities and NaN are where they were. What is no float has to be equal. */
int nvt_close(const char *want, const char *got, int64_t bytes, nvm_dtype type, double tolerance);
#endif
