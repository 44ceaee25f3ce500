/* 128-bit content hashes (XXH3), and a map from byte strings in an arena. */
#ifndef NVM_BASE_HASH_H
#define NVM_BASE_HASH_H
#include "base/arena.h"

typedef struct nvb_hash { uint64_t lo, hi; } nvb_hash;

nvb_hash nvb_hash_bytes(const void *p, size_t n);
nvb_hash nvb_hash_mix(nvb_hash h, const void *p, size_t n); /* hash of (h, bytes) */
static inline int nvb_hash_eq(nvb_hash a, nvb_hash b) { return a.lo == b.lo && a.hi == b.hi; }

/* Map from a byte string to an int; keys are copied. For interning. */
typedef struct nvb_map nvb_map;
nvb_map *nvb_map_new(nvb_arena *a);
/* The value's place, which stays; *fresh (may be NULL) says whether it was made now (value 0). */
int *nvb_map_put(nvb_map *m, const void *key, size_t n, int *fresh);
int *nvb_map_find(const nvb_map *m, const void *key, size_t n); /* NULL if absent */
#endif
