/* The CPU thread pool: chunks are distributed dynamically, the caller takes part, workers spin for a bounded time,
   and a forked child starts its own workers. */
#ifndef NVM_BASE_POOL_H
#define NVM_BASE_POOL_H
#include <stdint.h>

int nvb_pool_threads(void);      /* threads that a run uses, including the caller; at least 1 */
int nvb_pool_set_threads(int n); /* 0: the default; returns a status */
/* Calls fn(arg, lo, hi, worker) over [0, n) in chunks of `grain` and returns when all are done; worker <
   nvb_pool_threads(). Nested and concurrent calls, and those with one chunk or one thread, become one fn(arg, 0, n,
   0) in the calling thread. Every thread runs fn in the default floating-point environment. */
void nvb_pool_run(void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n, int64_t grain);
/* Does the same with worker < threads, even if the setting changes meanwhile: for callers with data per worker. */
void nvb_pool_run_with(int threads, void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n,
                       int64_t grain);

/* Set the default floating-point environment and restore the previous one: pass the result of nvb_fp_enter to
   nvb_fp_leave. If nothing has to change, the cost is one read of the control register. */
unsigned nvb_fp_enter(void);
void nvb_fp_leave(unsigned saved);
#endif
