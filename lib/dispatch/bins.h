/* Counts the integers of one row in memory, or adds up their weights. Private to dispatch. */
#ifndef NVM_DISPATCH_BINS_H
#define NVM_DISPATCH_BINS_H
#include "dispatch/sort.h"

/* Bytes of scratch that a row needs; the scratch must be 16-byte aligned. n: elements of a row that has weights, or
   0. */
int64_t nvd_bins_workspace(int64_t bins, int64_t n);
/* out[i] = how many elements of the row equal i, for i < bins. The row may have any integer dtype or bool. */
void nvd_bins(const nvd_row *r, int64_t bins, int64_t *out, void *scratch);
/* out[i] = the sum of the weights of the elements that equal i, in the weights' dtype. Integers wrap. float32 and
   float64 are added in the reduction order (64, 1), where all other elements count as zeros. */
void nvd_bin_sums(const nvd_row *r, const nvd_row *weight, int64_t bins, void *out, void *scratch);
#endif
