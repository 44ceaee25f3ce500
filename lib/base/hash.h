/* 128-bit content hashes (XXH3), and a map from byte strings to integers in an arena. */
#ifndef NVM_BASE_HASH_H
#define NVM_BASE_HASH_H
#include "base/arena.h"

typedef struct nvb_hash { uint64_t lo, hi; } nvb_hash;

nvb_hash nvb_hash_bytes(const void *p, size_t n);
nvb_hash nvb_hash_mix(nvb_hash h, const void *p, size_t n); /* hash of (h, bytes) */
static inline int nvb_hash_eq(nvb_hash a, nvb_hash b) { return a.lo == b.lo && a.hi == b.hi; }

/* A map from byte strings to ints, used for interning. It copies the keys. */
typedef struct nvb_map nvb_map;
nvb_map *nvb_map_new(nvb_arena *a);
/* Returns a pointer to the value of the key, which stays valid. If the key is new, its value is 0 and *fresh is 1,
   else *fresh is 0; `fresh` may be NULL. */
int *nvb_map_put(nvb_map *m, const void *key, size_t n, int *fresh);
int *nvb_map_find(const nvb_map *m, const void *key, size_t n); /* NULL if absent */
#endif
