/* Counts the integers of one row, or adds up their weights (bincount). With few bins, consecutive elements count in
   separate tables, so that a run of equal elements does not wait for one counter. Integers outside 0 .. bins - 1 go to
   one extra bin, which is not returned. Never allocates and starts no threads. */
#include "dispatch/bins.h"
#include <string.h>
#include "frag/dtype.h"

enum { TABLES = 4, FEW = 1024 }; /* up to this number of bins, several tables are used */
enum { CHUNK = 64 };             /* float elements that are added in sequence */

/* The most tables of sums that wait to be merged at one time: one for each bit of the number of chunks */
static int64_t most_levels(int64_t n) {
  int64_t d = 2;
  while (n / CHUNK >> d) d++;
  return d + 1;
}

/* How many of the last elements have their bins remembered: the most elements of a power of two of chunks that are
   fewer than the bins. */
static int64_t window_size(int64_t bins) {
  int64_t n = CHUNK;
  while (2 * n < bins) n *= 2;
  return n;
}

static int64_t bytes_of_tables(int64_t tables, int64_t bins) {
  return ((bins + 1) * (int64_t)sizeof(int64_t) + 15) / 16 * 16 * tables;
}

int64_t nvd_bins_workspace(int64_t bins, int64_t n) {
  if (!n) return bytes_of_tables(bins <= FEW ? TABLES : 1, bins);
  return bytes_of_tables(most_levels(n), bins) + window_size(bins) * (int64_t)sizeof(int64_t);
}

/* The bin of x; `bins`, the extra one, for any value outside. */
static inline int64_t bin_of(int64_t x, int64_t bins) { return (uint64_t)x < (uint64_t)bins ? x : bins; }

/* Executes EACH(T) for the C type T of a row of that dtype. */
#define BY_TYPE(type, EACH) \
  switch (type) { \
  case NVM_I8: EACH(int8_t); break; \
  case NVM_I16: EACH(int16_t); break; \
  case NVM_I32: EACH(int32_t); break; \
  case NVM_I64: EACH(int64_t); break; \
  case NVM_U16: EACH(uint16_t); break; \
  case NVM_U32: EACH(uint32_t); break; \
  default: EACH(uint8_t); \
  }

#define COUNT(T, step) \
  for (int64_t i = 0; i < r->n; i++) { \
    T x; \
    memcpy(&x, r->data + i * (step) * (int64_t)sizeof x, sizeof x); \
    table[(i & last) * (bins + 1) + bin_of((int64_t)x, bins)]++; \
  }
#define COUNT_ROW(T) \
  if (r->stride == 1) COUNT(T, 1) \
  else COUNT(T, r->stride)
void nvd_bins(const nvd_row *r, int64_t bins, int64_t *out, void *scratch) {
  int64_t *table = scratch, last = bins <= FEW && r->n > TABLES * bins ? TABLES - 1 : 0;
  memset(table, 0, (size_t)((last + 1) * (bins + 1)) * sizeof *table);
  BY_TYPE(r->type, COUNT_ROW)
  for (int64_t i = 0; i < bins; i++) {
    out[i] = table[i];
    for (int64_t t = 1; t <= last; t++) out[i] += table[t * (bins + 1) + i];
  }
}
#undef COUNT_ROW
#undef COUNT

/* ---- weights */
#define FIND(T) \
  for (int64_t i = lo; i < hi; i++) { \
    T x; \
    memcpy(&x, r->data + i * r->stride * (int64_t)sizeof x, sizeof x); \
    at[i - lo] = bin_of((int64_t)x, bins); \
  }
/* Fills `at` with the bins of elements lo to hi - 1. */
static void bins_of(const nvd_row *r, int64_t lo, int64_t hi, int64_t bins, int64_t *at) { BY_TYPE(r->type, FIND); }
#undef FIND
#undef BY_TYPE

/* Chunks are merged in the order of the bits of their number, lowest bit first: tables of 1, 2, 4 ... chunks wait for
   the next one. A table that waits for no chunk is 0 throughout. Of `count` elements, fewer than there are bins, only
   their own bins are merged; a bin that occurs twice is 0 at the second time. Integers use one table (ordered 0). */
#define SUMS(T, suffix, ordered) \
  static void merge_some_##suffix(T *to, T *with, const int64_t *at, int64_t count) { \
    for (int64_t i = 0; i < count; i++) { \
      to[at[i]] += with[at[i]]; \
      with[at[i]] = 0; \
    } \
  } \
  static void merge_all_##suffix(T *restrict to, T *restrict with, int64_t n) { \
    for (int64_t i = 0; i < n; i++) { \
      to[i] += with[i]; \
      with[i] = 0; \
    } \
  } \
  static void sums_##suffix(const nvd_row *r, const nvd_row *weight, int64_t bins, T *out, T *table) { \
    int64_t each = bins + 1, tables = ordered ? most_levels(r->n) : 1, depth = 0, window = window_size(bins); \
    int64_t *at = (int64_t *)(void *)((char *)table + bytes_of_tables(tables, bins)); \
    memset(table, 0, (size_t)(tables * each) * sizeof *table); \
    for (int64_t lo = 0, chunk = 1; lo < r->n; lo += CHUNK, chunk++) { \
      int64_t hi = lo + CHUNK < r->n ? lo + CHUNK : r->n, *bin = at + (lo & (window - 1)); \
      if (ordered || !lo) depth++; \
      T *now = table + (depth - 1) * each; \
      bins_of(r, lo, hi, bins, bin); \
      for (int64_t i = lo; i < hi; i++) { \
        T w; \
        memcpy(&w, weight->data + i * weight->stride * (int64_t)sizeof w, sizeof w); \
        now[bin[i - lo]] += w; \
      } \
      for (int64_t bit = chunk, n = CHUNK; ordered && !(bit & 1); bit >>= 1, n *= 2, depth--) { \
        T *to = table + (depth - 2) * each; \
        int64_t from = lo + CHUNK - n; \
        if (n <= window) merge_some_##suffix(to, to + each, at + (from & (window - 1)), hi - from); \
        else merge_all_##suffix(to, to + each, each); \
      } \
    } \
    for (; depth > 1; depth--) merge_all_##suffix(table + (depth - 2) * each, table + (depth - 1) * each, bins); \
    memcpy(out, table, (size_t)bins * sizeof *out); \
  }
SUMS(uint8_t, 8, 0)
SUMS(uint16_t, 16, 0)
SUMS(uint32_t, 32, 0)
SUMS(uint64_t, 64, 0)
SUMS(float, f32, 1)
SUMS(double, f64, 1)
#undef SUMS

void nvd_bin_sums(const nvd_row *r, const nvd_row *weight, int64_t bins, void *out, void *scratch) {
  if (weight->type == NVM_F32) sums_f32(r, weight, bins, out, scratch);
  else if (weight->type == NVM_F64) sums_f64(r, weight, bins, out, scratch);
  else if (nvg_size(weight->type) == 1) sums_8(r, weight, bins, out, scratch);
  else if (nvg_size(weight->type) == 2) sums_16(r, weight, bins, out, scratch);
  else if (nvg_size(weight->type) == 4) sums_32(r, weight, bins, out, scratch);
  else sums_64(r, weight, bins, out, scratch);
}
