/* Things kept by their hash and counted: those that nobody holds stay until there are too many of them, the ones let
   go longest ago leaving first. Inside dispatch only. */
#ifndef NVM_DISPATCH_LRU_H
#define NVM_DISPATCH_LRU_H
#include <pthread.h>
#include "base/hash.h"

enum { NVD_LRU_SLOTS = 4096 };
typedef struct nvd_lru_item {      /* first member of what is kept; of a new one key and bytes are set */
  nvb_hash key;
  int64_t bytes; /* of the heap that go with it; 0: few */
  int refs;
  struct nvd_lru_item *next;            /* of its slot */
  struct nvd_lru_item *younger, *older; /* while nobody holds it */
} nvd_lru_item;
typedef struct nvd_lru {
  pthread_mutex_t lock;
  nvd_lru_item *slot[NVD_LRU_SLOTS], *youngest, *oldest;
  int idle, keep;
  int64_t idle_bytes, keep_bytes;
  void (*destroy)(nvd_lru_item *item); /* called without the lock */
} nvd_lru;
#define NVD_LRU(most, bytes, gone) \
  { .lock = PTHREAD_MUTEX_INITIALIZER, .keep = (most), .keep_bytes = (bytes), .destroy = (gone) }

nvd_lru_item *nvd_lru_get(nvd_lru *s, nvb_hash key);          /* a reference; NULL if it is not there */
nvd_lru_item *nvd_lru_insert(nvd_lru *s, nvd_lru_item *item); /* or what came there meanwhile: a reference */
void nvd_lru_release(nvd_lru *s, nvd_lru_item *item);         /* NULL is fine */
void nvd_lru_trim(nvd_lru *s);                                /* what nobody holds goes */
#endif
