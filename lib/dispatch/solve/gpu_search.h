/* Finds positions in rows on a GPU by kernels of the project's own. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_GPU_SEARCH_H
#define NVM_DISPATCH_SOLVE_GPU_SEARCH_H
#include "dispatch/solve/solve.h"
#include "graph/graph.h"

/* The CUDA source of the kernel for NVG_OP_POSITIONS, or for NVG_OP_SEARCHED in rows of this dtype. */
const char *nvd_search_source(nvb_arena *a, nvg_op op, nvm_dtype type, int right);

/* Prepares a step that finds positions; throws. */
nvd_solution *nvd_search_on(nvb_arena *a, const nvf_step *s, struct nvd_device *d);
#endif
