/* The clock of the benchmarks in C: microseconds, and the median of several. */
#ifndef NVM_BENCHMARKS_TIMING_H
#define NVM_BENCHMARKS_TIMING_H
#include <stdlib.h>
#include <time.h>

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static int ascending(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}
/* Sorts t. */
static inline double median(double *t, int n) {
  qsort(t, (size_t)n, sizeof *t, ascending);
  return t[n / 2];
}
#endif
