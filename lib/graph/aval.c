/* Shapes and dtypes, interned for the process: one record per shape holds the avals of every dtype, so that equal
   shapes have one address and changing the dtype is pointer arithmetic. Records are only ever added; readers take no
   lock. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

typedef struct record {
  struct record *next;
  nvg_aval of[NVM_NDTYPES];
  int rank;
  int64_t shape[];
} record;

enum { BUCKETS = 1 << 14 };
static _Atomic(record *) table[BUCKETS];

static size_t bucket(int rank, const int64_t *shape) {
  uint64_t h = 0x9e3779b97f4a7c15ull * (uint64_t)(rank + 1);
  for (int d = 0; d < rank; d++) h = ((h ^ (uint64_t)shape[d]) * 0xbf58476d1ce4e5b9ull) ^ (h >> 29);
  return (h ^ h >> 32) % BUCKETS;
}

static record *seek(record *r, const record *end, int rank, const int64_t *shape) {
  for (; r != end; r = r->next)
    if (r->rank == rank && (!rank || !memcmp(r->shape, shape, sizeof *shape * (size_t)rank))) return r;
  return NULL;
}

/* The product of the extents, or -1: an element count whose bytes overflow even when extents of 0 are left out. */
static int64_t count(int rank, const int64_t *shape) {
  int64_t n = 1, size = 1;
  for (int d = 0; d < rank; d++) {
    size *= shape[d] ? 1 : 0;
    if (shape[d] && __builtin_mul_overflow(n, shape[d], &n)) return -1;
  }
  return n > INT64_MAX / 16 ? -1 : size * n;
}

static record *add(size_t at, int rank, const int64_t *shape, int64_t size) {
  record *r = nvb_calloc(1, sizeof *r + sizeof *shape * (size_t)rank), *head = atomic_load(&table[at]), *seen = NULL;
  if (!r) return nvb_fail_memory(), NULL;
  r->rank = rank;
  if (rank) memcpy(r->shape, shape, sizeof *shape * (size_t)rank);
  for (int t = 0; t < NVM_NDTYPES; t++) r->of[t] = (nvg_aval){ (nvm_dtype)t, rank, size, r->shape };
  do {
    record *same = seek(head, seen, rank, shape);
    if (same) return nvb_free(r), same;
    r->next = seen = head;
  } while (!atomic_compare_exchange_weak(&table[at], &head, r));
  return r;
}

const nvg_aval *nvg_aval_get(nvm_dtype t, int rank, const int64_t *shape) {
  if (rank < 0 || rank > NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK), NULL;
  if ((unsigned)t >= NVM_NDTYPES) return nvb_fail(NVM_ERR_TYPE, "there is no dtype %d", (int)t), NULL;
  size_t at = bucket(rank, shape);
  record *r = seek(atomic_load(&table[at]), NULL, rank, shape);
  if (r) return &r->of[t];
  char text[NVG_SHAPE_TEXT];
  for (int d = 0; d < rank; d++)
    if (shape[d] < 0)
      return nvb_fail(NVM_ERR_VALUE, "negative extent in shape %s", nvg_shape_text(text, rank, shape)), NULL;
  int64_t size = count(rank, shape);
  if (size < 0)
    return nvb_fail(NVM_ERR_VALUE, "shape %s has too many elements", nvg_shape_text(text, rank, shape)), NULL;
  r = add(at, rank, shape, size);
  return r ? &r->of[t] : NULL;
}

const nvg_aval *nvg_aval_as(const nvg_aval *a, nvm_dtype t) { return a + ((int)t - (int)a->dtype); }

void nvg_packed(int64_t *stride, int rank, const int64_t *shape) {
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = step;
    step = (int64_t)((uint64_t)step * (uint64_t)shape[d]); /* without elements it may be beyond */
  }
}
