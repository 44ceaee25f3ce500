/* Counting the integers of one row in memory, or adding up their weights. Inside dispatch only. */
#ifndef NVM_DISPATCH_BINS_H
#define NVM_DISPATCH_BINS_H
#include "dispatch/sort.h"

/* Bytes of scratch, 16-byte aligned; n: elements of a row that have weights, or 0. */
int64_t nvd_bins_room(int64_t bins, int64_t n);
/* out[i]: how many elements of the row are i, for i < bins. Any integers, and bool. */
void nvd_bins(const nvd_row *r, int64_t bins, int64_t *out, void *scratch);
/* out[i]: the sum of the weights of those elements, of the weights' dtype: integers wrap, float32 and float64 are added
   as reduction order (64, 1) says, beside zeros for all others. */
void nvd_bin_sums(const nvd_row *r, const nvd_row *weight, int64_t bins, void *out, void *scratch);
#endif
