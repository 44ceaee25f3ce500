/* Quicksort against the C library's qsort: numbers in patterns that make pivots good and bad, and parts that heapsort
   has to finish since too many partitions followed each other. */
#include "dispatch/quicksort.c"
#include <stdlib.h>
#include <string.h>
#include "suite.h"

static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

enum { PATTERNS = 8, MOST_NUMBERS = 40000 };
/* Number i of n in a pattern: of any size, few different ones, ascending, descending, the two ends of the range, one
   number nearly always, one number always, and samples that are smaller than all between them. */
static uint64_t number(int pattern, int64_t i, int64_t n, uint64_t least) {
  switch (pattern) {
  case 0: return next();
  case 1: return next() % 3;
  case 2: return (uint64_t)i;
  case 3: return (uint64_t)(n - i);
  case 4: return next() % 2 ? least : ~least;
  case 5: return next() % 100 ? 7 : next();
  case 6: return least;
  default: return i % (n / 31 + 1) ? next() | 1 << 20 : next() % 9;
  }
}

#if defined __x86_64__
#define TESTS(T, bits) \
  static int compare_##bits(const void *a, const void *b) { \
    T x = *(const T *)a, y = *(const T *)b; \
    return (x > y) - (x < y); \
  } \
  static void check_##bits(int pattern, int64_t n, int depth) { \
    size_t bytes = (size_t)n * sizeof(T); \
    T *a = malloc(bytes + 1), *spare = malloc(bytes + 1), *want = malloc(bytes + 1); \
    for (int64_t i = 0; i < n; i++) \
      a[i] = (T)number(pattern, i, n, (uint64_t)1 << (bits - 1)); \
    memcpy(want, a, bytes); \
    qsort(want, (size_t)n, sizeof(T), compare_##bits); \
    if (depth < 0) nvd_quicksort_##bits(a, spare, n); \
    else sort_##bits(a, spare, a, n, depth); \
    ck_assert_msg(!memcmp(a, want, bytes), "%d bits, pattern %d, n %ld, depth %d", bits, pattern, (long)n, depth); \
    free(a), free(spare), free(want); \
  }
TESTS(int32_t, 32)
TESTS(int64_t, 64)

static void check_both(int pattern, int64_t n, int depth) {
  if (!nvd_can_quicksort()) return;
  check_32(pattern, n, depth);
  check_64(pattern, n, depth);
}
START_TEST(every_length_is_sorted) {
  for (int64_t n = 0; n < 300; n++) check_both(_i, n, -1);
  for (int64_t n = 300; n < MOST_NUMBERS; n += n / 2 + (int64_t)(next() % 9)) check_both(_i, n, -1);
}
START_TEST(heapsort_finishes_what_partitions_leave) {
  for (int depth = 0; depth < 5; depth++)
    for (int64_t n = 0; n < 3000; n = 2 * n + 1) check_both(_i, n, depth);
}
SUITE("quicksort", LOOP(every_length_is_sorted, PATTERNS), LOOP(heapsort_finishes_what_partitions_leave, PATTERNS))
#else
START_TEST(no_other_processor_runs_it) { ck_assert(!nvd_can_quicksort()); }
SUITE("quicksort", no_other_processor_runs_it)
#endif
