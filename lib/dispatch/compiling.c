/* Counts the kernels that are being compiled, for those who show that a first call takes its time. Decides nothing. */
#include "dispatch/compiling.h"
#include <stdatomic.h>
#include "base/clock.h"
#include "base/lock.h"

static atomic_int now;
static _Atomic int64_t since;                       /* when `now` became 1, on nvb_clock_ns */
static void forget(void) { atomic_store(&now, 0); } /* a child has none of the threads that compile */
NVB_AT_FORK(.in_child = forget);

void nvd_compiling_begin(void) {
  if (!atomic_fetch_add(&now, 1)) atomic_store(&since, nvb_clock_ns());
}
void nvd_compiling_end(void) { atomic_fetch_sub(&now, 1); }
int nvd_compiling(int64_t *ns) {
  int n = atomic_load(&now);
  *ns = n ? nvb_clock_ns() - atomic_load(&since) : 0;
  return n;
}
