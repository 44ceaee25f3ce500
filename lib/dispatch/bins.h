/* Counting the integers of one row in memory. Inside dispatch only. */
#ifndef NVD_BINS_H
#define NVD_BINS_H
#include "dispatch/sort.h"

int64_t nvd_bins_room(int64_t bins); /* bytes of scratch, 16-byte aligned */
/* out[i]: how many elements of the row are i, for i < bins. Any integers, and bool. */
void nvd_bins(const nvd_row *r, int64_t bins, int64_t *out, void *scratch);
#endif
