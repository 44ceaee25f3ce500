/* Products of small matrices. Each element is a chain of fused multiply-adds along what is summed over, in sequence
   from 0: the bits of a kernel's contraction on a CPU. */
#ifndef NVM_FRAG_PRODUCT_H
#define NVM_FRAG_PRODUCT_H
#include <stdint.h>
#include "nvm/types.h"

/* d[m, n] = a[m, k] b[k, n]; d has packed rows, b has rows that are `b_row` elements apart. a_row, a_col: strides of a,
   in elements. */
typedef struct nvg_product {
  nvm_dtype type; /* see nvg_product_can */
  int64_t m, n, k, a_row, a_col, b_row;
  const void *a, *b;
  void *d;
} nvg_product;
int nvg_product_can(nvm_dtype type); /* floats of 32 and 64 bits */
void nvg_product_run(const nvg_product *p);
#endif
