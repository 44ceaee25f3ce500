/* Content hashes are fixed values (they are keys on disk); the map interns byte strings. */
#include <stdio.h>
#include <string.h>
#include "../suite.h"
#include "base/err.h"
#include "base/hash.h"

START_TEST(hashes_are_xxh3_128) { /* xxHash's own published vectors: the empty input, and one byte of 0 apart from it */
  nvb_hash empty = nvb_hash_bytes(NULL, 0), zero = nvb_hash_bytes("", 1);
  ck_assert_uint_eq(empty.lo, 0x6001c324468d497fu);
  ck_assert_uint_eq(empty.hi, 0x99aa06d3014798d8u);
  ck_assert(!nvb_hash_eq(empty, zero));
}
END_TEST

START_TEST(every_bit_counts) {
  unsigned char p[600];
  for (size_t i = 0; i < sizeof p; i++) p[i] = (unsigned char)(i * 7);
  for (size_t n = 1; n <= sizeof p; n += 37) {
    nvb_hash h = nvb_hash_bytes(p, n), m = nvb_hash_mix(h, p, n);
    ck_assert(!nvb_hash_eq(h, m));
    for (size_t bit = 0; bit < 8 * n; bit += 13) {
      p[bit / 8] ^= (unsigned char)(1 << bit % 8);
      ck_assert(!nvb_hash_eq(h, nvb_hash_bytes(p, n)));
      ck_assert(!nvb_hash_eq(m, nvb_hash_mix(h, p, n)));
      p[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert(nvb_hash_eq(h, nvb_hash_bytes(p, n)));
    nvb_hash other = { h.lo ^ 1, h.hi };
    ck_assert(!nvb_hash_eq(m, nvb_hash_mix(other, p, n)));
  }
}
END_TEST

static void intern(nvb_arena *a, void *arg) {
  enum { N = 5000 };
  nvb_map *m = nvb_map_new(a);
  static int *place[N];
  char key[32];
  int fresh;
  for (int i = 0; i < N; i++) {
    int n = snprintf(key, sizeof key, "key %d", i);
    ck_assert_ptr_null(nvb_map_find(m, key, (size_t)n));
    place[i] = nvb_map_put(m, key, (size_t)n, &fresh);
    ck_assert_int_eq(fresh, 1);
    ck_assert_int_eq(*place[i], 0);
    *place[i] = i + 1;
    memset(key, '!', sizeof key); /* keys are copied */
  }
  for (int i = 0; i < N; i++) {
    int n = snprintf(key, sizeof key, "key %d", i);
    ck_assert_ptr_eq(nvb_map_find(m, key, (size_t)n), place[i]); /* places stay */
    ck_assert_ptr_eq(nvb_map_put(m, key, (size_t)n, &fresh), place[i]);
    ck_assert_int_eq(fresh, 0);
    ck_assert_int_eq(*place[i], i + 1);
  }
  int *empty = nvb_map_put(m, NULL, 0, NULL);
  *empty = 77;
  ck_assert_ptr_eq(nvb_map_find(m, "", 0), empty);
  ck_assert_ptr_null(nvb_map_find(m, "key", 3)); /* a prefix is another key */
  *(int *)arg = 1;
}
START_TEST(map_interns) {
  int done = 0;
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, intern, &done), NVM_OK);
  ck_assert_int_eq(done, 1);
  nvb_arena_free(a);
}
END_TEST

SUITE("hash", hashes_are_xxh3_128, every_bit_counts, map_interns)
