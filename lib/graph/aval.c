/* Interns shapes and dtypes with reference counts. One entry per shape holds the avals of all dtypes, so equal shapes
   have one address and a change of dtype is pointer arithmetic. Unreferenced entries are kept for reuse until there are
   KEEP of them. */
#include <stddef.h>
#include <string.h>
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "graph/infer.h"

typedef struct shape_entry {
  struct shape_entry *next;
  atomic_int refs; /* a thread may raise it from 0 only under the bucket's lock */
  nvg_aval of[NVM_NDTYPES];
  int rank;
  int64_t shape[];
} shape_entry;

enum { BUCKETS = 1 << 12, LOCKS = 1 << 6, KEEP = 1 << 10 };
static shape_entry *table[BUCKETS]; /* bucket i under lock i % LOCKS */
static nvb_lock locks[LOCKS];
static atomic_int idle, sweeping;

static size_t bucket_of(int rank, const int64_t *shape) {
  uint64_t h = 0x9e3779b97f4a7c15ull * (uint64_t)(rank + 1);
  for (int d = 0; d < rank; d++) h = ((h ^ (uint64_t)shape[d]) * 0xbf58476d1ce4e5b9ull) ^ (h >> 29);
  return (h ^ h >> 32) % BUCKETS;
}

static shape_entry *find_entry(shape_entry *r, int rank, const int64_t *shape) {
  for (; r; r = r->next)
    if (r->rank == rank && (!rank || !memcmp(r->shape, shape, sizeof *shape * (size_t)rank))) return r;
  return NULL;
}

/* Returns the number of elements, or -1 if the product of the nonzero extents, in bytes, could overflow. */
static int64_t count_elements(int rank, const int64_t *shape) {
  int64_t n = 1, size = 1;
  for (int d = 0; d < rank; d++) {
    size *= shape[d] ? 1 : 0;
    if (shape[d] && __builtin_mul_overflow(n, shape[d], &n)) return -1;
  }
  return n > INT64_MAX / 16 ? -1 : size * n;
}

static shape_entry *entry_new(int rank, const int64_t *shape) {
  char text[NVG_SHAPE_TEXT];
  for (int d = 0; d < rank; d++)
    if (shape[d] < 0)
      return nvb_fail(NVM_ERR_VALUE, "negative extent in shape %s", nvg_shape_text(text, rank, shape)), NULL;
  int64_t size = count_elements(rank, shape);
  if (size < 0)
    return nvb_fail(NVM_ERR_VALUE, "shape %s has too many elements", nvg_shape_text(text, rank, shape)), NULL;
  shape_entry *r = nvb_calloc(1, sizeof *r + sizeof *shape * (size_t)rank);
  if (!r) return nvb_fail_memory(), NULL;
  r->rank = rank;
  if (rank) memcpy(r->shape, shape, sizeof *shape * (size_t)rank);
  for (int t = 0; t < NVM_NDTYPES; t++) r->of[t] = (nvg_aval){ (nvm_dtype)t, rank, size, r->shape };
  return r;
}

/* Finds or makes the entry of a shape and adds a reference; call it under the lock. */
static shape_entry *hold_entry(shape_entry **at, int rank, const int64_t *shape) {
  shape_entry *r = find_entry(*at, rank, shape);
  if (!r && (r = entry_new(rank, shape))) {
    r->next = *at;
    atomic_store(&r->refs, 1);
    *at = r; /* this store is last, so a forked child finds a consistent list */
  } else if (r && !atomic_fetch_add_explicit(&r->refs, 1, memory_order_acquire)) {
    atomic_fetch_sub_explicit(&idle, 1, memory_order_relaxed);
  }
  return r;
}

/* The entry of the shape of numbers, which is never freed and therefore not counted. */
static _Atomic(shape_entry *) numbers;
static const nvg_aval *aval_of_number(nvm_dtype t) {
  shape_entry *r = atomic_load_explicit(&numbers, memory_order_acquire), *none = NULL;
  if (!r && (r = entry_new(0, NULL)) && !atomic_compare_exchange_strong(&numbers, &none, r)) nvb_free(r), r = none;
  return r ? &r->of[t] : NULL;
}

const nvg_aval *nvg_aval_get(nvm_dtype t, int rank, const int64_t *shape) {
  if (rank < 0 || rank > NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK), NULL;
  if (rank && !shape) return nvb_fail(NVM_ERR_VALUE, "the shape is NULL, of %d dimensions", rank), NULL;
  if ((unsigned)t >= NVM_NDTYPES) return nvb_fail(NVM_ERR_TYPE, "there is no dtype %d", (int)t), NULL;
  if (!rank) return aval_of_number(t);
  size_t at = bucket_of(rank, shape);
  nvb_lock_take(&locks[at % LOCKS]);
  shape_entry *r = hold_entry(&table[at], rank, shape);
  nvb_lock_give(&locks[at % LOCKS]);
  return r ? &r->of[t] : NULL;
}

static shape_entry *entry_of(const nvg_aval *a) {
  return (shape_entry *)((uintptr_t)(a - (int)a->dtype) - offsetof(shape_entry, of));
}
const nvg_aval *nvg_aval_ref(const nvg_aval *a) {
  if (a && a->rank) atomic_fetch_add_explicit(&entry_of(a)->refs, 1, memory_order_relaxed);
  return a;
}
const nvg_aval *nvg_aval_as(const nvg_aval *a, nvm_dtype t) { return nvg_aval_ref(a) + ((int)t - (int)a->dtype); }

static int drop_idle(shape_entry **at) {
  int n = 0;
  for (shape_entry *r; (r = *at);) {
    if (atomic_load_explicit(&r->refs, memory_order_acquire)) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    nvb_free(r);
    n++;
  }
  return n;
}
static void sweep_idle(void) {
  if (atomic_exchange(&sweeping, 1)) return; /* another thread is sweeping */
  for (int l = 0, n = 0; l < LOCKS; l++, n = 0) {
    nvb_lock_take(&locks[l]);
    for (int i = l; i < BUCKETS; i += LOCKS) n += drop_idle(&table[i]);
    nvb_lock_give(&locks[l]);
    atomic_fetch_sub_explicit(&idle, n, memory_order_relaxed);
  }
  atomic_store(&sweeping, 0);
}
void nvg_aval_unref(const nvg_aval *a) {
  if (a && a->rank && atomic_fetch_sub_explicit(&entry_of(a)->refs, 1, memory_order_release) == 1 &&
      atomic_fetch_add_explicit(&idle, 1, memory_order_relaxed) >= KEEP)
    sweep_idle();
}

void nvg_packed(int64_t *stride, int rank, const int64_t *shape) {
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; d--) {
    stride[d] = step;
    /* without elements the product of the other extents may overflow */
    step = (int64_t)((uint64_t)step * (uint64_t)shape[d]);
  }
}
