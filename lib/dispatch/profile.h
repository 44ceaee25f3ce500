/* Profiles: while one is active, every step that any thread runs is timed, by the monotonic clock on the CPU and by
   CUDA events on a GPU, and added to the row of its kernel. While none is, a run reads one number. Never decides what
   runs, nor how; what a row means to people is the API layer's (api/profile_report.c). */
#ifndef NVM_DISPATCH_PROFILE_H
#define NVM_DISPATCH_PROFILE_H
#include <stdatomic.h>
#include "dispatch/dispatch.h"

/* What does the arithmetic of a step, by which its ceiling is chosen: elementwise instructions of 32 or 64 bits, or
   multiplications of matrices, of which NVD_UNIT_GEMM + class is the unit. */
enum { NVD_UNIT_F32, NVD_UNIT_F64, NVD_UNIT_GEMM, NVD_UNITS = NVD_UNIT_GEMM + NVB_GEMMS };
int nvd_unit_of(const nvf_step *s);

/* What runs: the strings are copied. Kernels that agree in everything but the last line share a row. */
typedef struct nvd_work {
  int dev, unit; /* dev: 1 the CPU, 2 + ordinal a GPU */
  const char *by, *hero, *what;
  int64_t bytes, operations, blocks; /* of one run, as the plan counts them */
} nvd_work;
typedef struct nvd_profile_row {
  nvb_hash key;
  nvd_work work;           /* bytes and operations are sums, blocks the most */
  char *text;              /* of its strings */
  int64_t calls, ns, best; /* best: ns of the shortest call */
} nvd_profile_row;
typedef struct nvd_span { int row, thread; int64_t start, ns; } nvd_span; /* start: by nvb_clock_ns */

enum { NVD_SPANS = 1 << 20 }; /* the most spans that a profile keeps; rows count those that follow, too */
typedef struct nvd_profile nvd_profile;
struct nvd_profile {
  int timeline;           /* 1: spans are kept */
  int own;                /* 1: only what the thread that began it runs, which no other profile sees */
  int depth;              /* how often it was begun and not ended */
  int64_t began, elapsed; /* ns: when the outermost begin was; of the stretches that have ended */
  int nrow, row_cap, nspan, span_cap;
  int64_t dropped; /* calls that are in no row, since memory ran out */
  nvd_profile_row *row;
  nvd_span *span;
  nvd_profile *next; /* in the list of active profiles */
};
/* Begin and end pairs nest, in any threads. Both wait for the GPU's kernels that are timed so far; a status. */
int nvd_profile_begin(nvd_profile *p);
int nvd_profile_end(nvd_profile *p);
int nvd_profile_settle(void);           /* waits for the kernels of GPUs, and adds their times; a status */
int64_t nvd_profile_ns(nvd_profile *p); /* time within begin and end so far */
void nvd_profile_lock(void);            /* between these two calls rows and spans stay as they are */
void nvd_profile_unlock(void);
void nvd_profile_drop(nvd_profile *p); /* ends it, and frees its rows and spans */

extern atomic_int nvd_profiles; /* number of active profiles */
static inline int nvd_is_profiling(void) { return atomic_load_explicit(&nvd_profiles, memory_order_relaxed); }
/* Adds one run to the active profiles. thread: 0 the calling one; else, on a GPU, a number of its stream. */
void nvd_profile_note(const nvd_work *w, int64_t start, int64_t ns, int thread);
#endif
