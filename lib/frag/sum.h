/* Sums in the tree of docs/how-it-works/numerics.md section 4, whose elements come piece by piece. */
#ifndef NVM_FRAG_SUM_H
#define NVM_FRAG_SUM_H
#include <stdint.h>
#include "nvm/types.h"

/* Sums of `len` elements each, `inner` of them side by side. */
typedef struct nvg_sum {
  nvm_dtype type; /* see nvg_sum_can */
  int64_t inner;
  int64_t width, chunk, row;      /* elements in all lanes, in a chunk, in all of `inner` sums */
  int64_t lane, in_chunk, in_row; /* where the next element belongs */
  uint64_t chunks;                /* complete ones of this row */
  char *acc, *products, *spare;   /* lanes of a chunk; products of short rows; room to merge lanes */
  char *partial;                  /* merged chunks, by the bits of their number */
  char *out;                      /* where the next results go */
} nvg_sum;
int nvg_sum_can(nvm_dtype type); /* floats and integers, which wrap, of 32 and 64 bits */
int64_t nvg_sum_bytes(nvm_dtype type, int64_t len, int64_t inner, int chunk, int lanes); /* of the memory it needs */
/* chunk, lanes: the reduction order; memory is aligned to 64 bytes. */
void nvg_sum_start(nvg_sum *s, nvm_dtype type, int64_t len, int64_t inner, int chunk, int lanes, char *memory,
                   char *out);
/* Adds the next n elements, packed: x, or the products x * y, rounded, if y is not NULL. Results are written as soon as
   their last element has come. */
void nvg_sum_add(nvg_sum *s, const void *x, const void *y, int64_t n);
#endif
