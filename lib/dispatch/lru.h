/* A reference-counted LRU cache keyed by hash. Items without references stay until there are too many of them, and the
   least recently released is evicted first. Private to dispatch. */
#ifndef NVM_DISPATCH_LRU_H
#define NVM_DISPATCH_LRU_H
#include "base/hash.h"
#include "base/lock.h"

enum { NVD_LRU_SLOTS = 4096 };
typedef struct nvd_lru_item { /* first member of a cached object; the caller sets key and bytes of a new one */
  nvb_hash key;
  int64_t bytes; /* heap bytes that evicting it frees; 0: negligible */
  int refs;
  struct nvd_lru_item *next;            /* in the same hash slot */
  struct nvd_lru_item *younger, *older; /* in the idle list, while refs is 0 */
} nvd_lru_item;
typedef struct nvd_lru {
  nvb_lock lock;
  nvd_lru_item *slot[NVD_LRU_SLOTS], *youngest, *oldest;
  int idle, keep;
  int64_t idle_bytes, keep_bytes;
  void (*destroy)(nvd_lru_item *item); /* called without the lock */
} nvd_lru;
#define NVD_LRU(rank, most, bytes, gone) \
  { .lock = NVB_LOCK(rank), .keep = (most), .keep_bytes = (bytes), .destroy = (gone) }

nvd_lru_item *nvd_lru_get(nvd_lru *s, nvb_hash key); /* a counted reference; NULL if absent */
/* a reference to it, or to one of the same key that was there first; then `item` is destroyed */
nvd_lru_item *nvd_lru_insert(nvd_lru *s, nvd_lru_item *item);
void nvd_lru_release(nvd_lru *s, nvd_lru_item *item); /* NULL is fine */
void nvd_lru_trim(nvd_lru *s);                        /* evicts every item without references */
#endif
