/* Half of the product of a matrix with its transpose, on a GPU. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_HALF_PRODUCT_H
#define NVM_DISPATCH_SOLVE_HALF_PRODUCT_H
#include "dispatch/solve/solve.h"

/* Prepares the task by `levels` levels of calls (nvf_half_calls) that `gemm` prepares, in the arena. NULL with a reason
   if it cannot. Throws. */
nvd_solution *nvd_half_product(nvb_arena *a, const nvd_task *t, int levels, const nvd_solver *gemm, const char **why);
/* Lists at most `most` numbers of levels as options, the one that the planner expects to be fastest first, and returns
   their number. workspace: of a call, in bytes. */
int nvd_half_options(nvd_solver_option *out, int most, const nvd_task *t, int64_t workspace);
int nvd_half_levels(const nvd_solver_choice *choice); /* 0: it chooses no half product */
#endif
