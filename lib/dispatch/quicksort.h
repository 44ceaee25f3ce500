/* Sorts signed integers in memory by vectors. Private to dispatch. */
#ifndef NVM_DISPATCH_QUICKSORT_H
#define NVM_DISPATCH_QUICKSORT_H
#include <stdint.h>

int nvd_can_quicksort(void); /* whether this processor runs the two functions below */
/* spare: memory for as many numbers, which are lost. Both take O(n log n) steps, however the numbers lie. */
void nvd_quicksort_32(int32_t *a, int32_t *spare, int64_t n);
void nvd_quicksort_64(int64_t *a, int64_t *spare, int64_t n);
#endif
