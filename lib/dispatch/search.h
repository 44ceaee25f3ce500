/* Finds positions in one row in memory: of its ones, and of numbers in ascending order. Private to dispatch, but for
   the masks of the API. */
#ifndef NVM_DISPATCH_SEARCH_H
#define NVM_DISPATCH_SEARCH_H
#include "dispatch/sort.h"

/* The number of ones among n bytes of 0 and 1, whose distance is `stride`. */
int64_t nvd_count_ones(const char *p, int64_t n, int64_t stride);
/* Lists the indices, counted from `first`, of the first `room` ones; returns how many it listed. */
int64_t nvd_list_ones(int64_t *out, int64_t room, int64_t first, const char *p, int64_t n, int64_t stride);
/* For each element of x how many elements of the ascending row are less, or (right) not greater. Both have one dtype:
   an integer, bool, float32 or float64, where NaN is the greatest. n elements of the row: at least 1. */
void nvd_search_row(const nvd_row *row, const nvd_row *x, int right, int64_t *out);
#endif
