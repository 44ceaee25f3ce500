/* Sorts rows on a GPU by kernels of the project's own. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_GPU_SORT_H
#define NVM_DISPATCH_SOLVE_GPU_SORT_H
#include "dispatch/solve/solve.h"

/* What a kernel is compiled for. Rows of at most nvd_sort_most elements are sorted by a block each, or several by one;
   longer ones in passes over memory. */
typedef struct nvd_sort_form {
  nvm_dtype type;
  int descending;
  int order;        /* positions are wanted in place of elements */
  int passes;       /* the kernel for passes */
  int wide;         /* of that one: counts need 64 bits */
  int warps, items; /* warps that sort a tile together; elements of each lane */
} nvd_sort_form;
int64_t nvd_sort_most(nvm_dtype t);
/* The form for rows of n elements, `rows` of them. */
nvd_sort_form nvd_sort_form_of(nvm_dtype t, int order, int descending, int64_t rows, int64_t n);
/* The CUDA source of such a kernel. */
const char *nvd_sort_source(nvb_arena *a, const nvd_sort_form *f);

/* Prepares a step that sorts rows; throws. */
nvd_solution *nvd_sort_on(nvb_arena *a, const nvf_step *s, struct nvd_device *d);
#endif
