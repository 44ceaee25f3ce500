/* Sorts one row in memory, stably, for any real dtype: NaN comes last in both directions, and both zeros are equal.
   Private to dispatch. */
#ifndef NVM_DISPATCH_SORT_H
#define NVM_DISPATCH_SORT_H
#include <stdint.h>
#include "nvm/types.h"

typedef struct nvd_row { /* n elements, whose distance is `stride` elements */
  nvm_dtype type;
  const char *data;
  int64_t n, stride;
  int descending;
} nvd_row;
int64_t nvd_sort_workspace(nvm_dtype t, int64_t n); /* bytes of scratch for a row, 16-byte aligned */
/* Writes the elements in order to out, n packed elements, which may be the row itself. */
void nvd_sort(const nvd_row *r, void *out, void *scratch);
/* Writes the positions of the elements in order (argsort); out may be the row itself if elements have 8 bytes. */
void nvd_order(const nvd_row *r, int64_t *out, void *scratch);
#endif
