/* Solves or factorizes many small systems at once: each lane of a vector belongs to one matrix. Private to dispatch. */
#ifndef NVM_DISPATCH_SOLVE_LANES_H
#define NVM_DISPATCH_SOLVE_LANES_H
#include <stdint.h>
#include "nvm/types.h"

enum { NVD_LANES = 16 }; /* the most lanes of a vector */
/* A group of `count` matrices n x n and their right-hand sides n x k; b[0] NULL: k is n, and they are unit matrices.
   Strides are in elements. each: elements of one result of nvd_lanes_factor. Solutions are row-major, one behind the
   other. */
typedef struct nvd_lanes {
  nvm_dtype type;
  int64_t n, k, each;
  int count;
  const char *a[NVD_LANES], *b[NVD_LANES];
  int64_t a_row, a_col, b_row, b_col;
  int upper;           /* of Cholesky factors: which triangle is read and written */
  char *out, *scratch; /* scratch: 64-byte aligned */
} nvd_lanes;
int nvd_lanes_width(nvm_dtype t); /* lanes of a group; 0: there is no such code for the dtype */
int64_t nvd_lanes_scratch(nvm_dtype t, int64_t n, int64_t k);
/* Solves by LU with partial pivoting. Returns the set of lanes whose matrix is singular. */
uint32_t nvd_lanes_solve(const nvd_lanes *x);
/* LU factors with partial pivoting, as the routines FACTORS have them; k is 0, and b is not read. Returns 0. */
uint32_t nvd_lanes_factor(const nvd_lanes *x);
/* Cholesky factors, n x n, with zeros in the other triangle; b is not read. Returns the set of lanes whose matrix is
   not positive definite. */
uint32_t nvd_lanes_cholesky(const nvd_lanes *x);
#endif
