/* Reads the monotonic clock, in ns. */
#ifndef NVM_BASE_CLOCK_H
#define NVM_BASE_CLOCK_H
#include <stdint.h>
#include <time.h>

static inline int64_t nvb_clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline double nvb_ms_since(int64_t start) { return (double)(nvb_clock_ns() - start) * 1e-6; }
#endif
