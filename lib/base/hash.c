/* Wraps XXH3 in two calls and implements the interning map. Hashes depend on contents only, never on an address or a
   process. */
#include "base/hash.h"
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

nvb_hash nvb_hash_bytes(const void *p, size_t n) {
  XXH128_hash_t h = XXH3_128bits(p, n);
  return (nvb_hash){ h.low64, h.high64 };
}

nvb_hash nvb_hash_mix(nvb_hash h, const void *p, size_t n) {
  nvb_hash pair[2] = { h, nvb_hash_bytes(p, n) };
  return nvb_hash_bytes(pair, sizeof pair);
}

/* Open addressing over separately allocated entries, which never move: pointers to their values stay valid. */
typedef struct map_entry { uint64_t hash; size_t n; int value; char key[]; } map_entry;
struct nvb_map {
  nvb_arena *arena;
  map_entry **slot;
  size_t mask, n;
};

nvb_map *nvb_map_new(nvb_arena *a) {
  nvb_map *m = NVB_NEW(a, nvb_map);
  m->arena = a;
  m->mask = 15;
  m->slot = NVB_NEWN(a, map_entry *, m->mask + 1);
  return m;
}

static map_entry **find_entry(const nvb_map *m, uint64_t hash, const void *key, size_t n) {
  for (size_t i = hash & m->mask;; i = (i + 1) & m->mask) {
    map_entry *e = m->slot[i];
    if (!e || (e->hash == hash && e->n == n && (n == 0 || !memcmp(e->key, key, n)))) return &m->slot[i];
  }
}

static void grow_table(nvb_map *m) {
  map_entry **old = m->slot;
  size_t count = m->mask + 1;
  m->slot = NVB_NEWN(m->arena, map_entry *, count * 2);
  m->mask = count * 2 - 1;
  for (size_t i = 0; i < count; i++)
    if (old[i]) *find_entry(m, old[i]->hash, old[i]->key, old[i]->n) = old[i];
}

int *nvb_map_put(nvb_map *m, const void *key, size_t n, int *fresh) {
  uint64_t hash = XXH3_64bits(key, n);
  map_entry **at = find_entry(m, hash, key, n);
  if (fresh) *fresh = !*at;
  if (*at) return &(*at)->value;
  if (2 * (m->n + 1) > m->mask) {
    grow_table(m);
    at = find_entry(m, hash, key, n);
  }
  map_entry *e = nvb_get(m->arena, sizeof *e + n);
  e->hash = hash;
  e->n = n;
  if (n) memcpy(e->key, key, n);
  *at = e;
  m->n++;
  return &e->value;
}

int *nvb_map_find(const nvb_map *m, const void *key, size_t n) {
  map_entry *e = *find_entry(m, XXH3_64bits(key, n), key, n);
  return e ? &e->value : NULL;
}
