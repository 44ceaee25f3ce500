/* The CPU thread pool: dynamic chunks, the caller takes part, workers spin a bounded time, fork-safe. */
#ifndef NVM_BASE_POOL_H
#define NVM_BASE_POOL_H
#include <stdint.h>

int nvb_pool_threads(void);      /* threads that a run uses now, the caller included; at least 1 */
int nvb_pool_set_threads(int n); /* 0: as the settings say; a status */
/* Calls fn(arg, lo, hi, worker) over [0, n) in chunks of `grain` until all is done; worker < nvb_pool_threads().
   Nested or concurrent calls, and those of one chunk or one thread, are one fn(arg, 0, n, 0) in the calling thread.
   The floating-point environment of every thread is the default one while fn runs. */
void nvb_pool_run(void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n, int64_t grain);
/* The same with worker < threads, whatever the setting says meanwhile: for callers that keep something per worker. */
void nvb_pool_run_with(int threads, void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n,
                       int64_t grain);

/* MXCSR guard: returns what to pass to nvb_fp_leave. Costs one read when nothing has to change. */
unsigned nvb_fp_enter(void);
void nvb_fp_leave(unsigned saved);
#endif
