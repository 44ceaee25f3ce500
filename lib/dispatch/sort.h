/* Sorting one row in memory, stably: NaN is greater than all numbers, both zeros are equal. Any real
   dtype. Inside dispatch only. */
#ifndef NVM_DISPATCH_SORT_H
#define NVM_DISPATCH_SORT_H
#include <stdint.h>
#include "nvm/types.h"

typedef struct nvd_row { /* n elements, `stride` of them apart; descending: NaN comes first */
  nvm_dtype type;
  const char *data;
  int64_t n, stride;
  int descending;
} nvd_row;
int64_t nvd_sort_workspace(nvm_dtype t, int64_t n); /* bytes of scratch for a row, 16-byte aligned */
/* The elements in order; out: n packed ones, which may be the row itself. */
void nvd_sort(const nvd_row *r, void *out, void *scratch);
/* Their positions in order; out may be the row itself where elements have 8 bytes. */
void nvd_order(const nvd_row *r, int64_t *out, void *scratch);
#endif
