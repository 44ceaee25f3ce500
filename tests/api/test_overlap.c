/* Whether two parts of one memory overlap, against marks on every byte, for random strides and extents. */
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"

enum { RANK = 4, MEMORY = 1 << 14 };
typedef struct part { nvm_strided m; int64_t shape[RANK], strides[RANK]; } part;
static unsigned long long state;
static int64_t below(int64_t n) { /* a number from 0 to n - 1 */
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (int64_t)((state >> 33) % (unsigned long long)n);
}
static void draw_part(part *p) {
  static const int64_t each[] = { 1, 2, 4, 8, 16 };
  int aligned = (int)below(2);
  p->m = (nvm_strided){ 0, (size_t)each[below(5)], (int)below(RANK + 1), p->shape, p->strides };
  int64_t unit = aligned ? (int64_t)p->m.each : 1, low = 0, high = (int64_t)p->m.each;
  for (int d = 0; d < p->m.rank; d++) {
    p->shape[d] = below(20) ? 1 + below(5) : 0;
    p->strides[d] = unit * (below(30) - 12);
    *(p->strides[d] < 0 ? &low : &high) += p->shape[d] ? p->strides[d] * (p->shape[d] - 1) : 0;
  }
  p->m.at = MEMORY / 2 + unit * (below(40) - 20) - below(2) * (low + high) / 2 / unit * unit;
}
static void mark_bytes(unsigned char *seen, const part *p, int d, int64_t at) {
  if (d == p->m.rank) memset(seen + at, 1, p->m.each);
  else
    for (int64_t i = 0; i < p->shape[d]; i++) mark_bytes(seen, p, d + 1, at + i * p->strides[d]);
}
static int have_common_byte(const part *p, const part *q) {
  static unsigned char a[MEMORY], b[MEMORY];
  memset(a, 0, sizeof a), memset(b, 0, sizeof b);
  mark_bytes(a, p, 0, p->m.at), mark_bytes(b, q, 0, q->m.at);
  for (int i = 0; i < MEMORY; i++)
    if (a[i] && b[i]) return 1;
  return 0;
}
START_TEST(random_parts_as_marked_bytes) {
  enum { PAIRS = 10000 };
  int overlapping = 0, apart_within = 0;
  for (int i = 0; i < PAIRS; i++) {
    part p, q;
    int exact, bounded, ends;
    draw_part(&p), draw_part(&q);
    int want = have_common_byte(&p, &q);
    ck_assert_int_eq(nvm_overlap(&exact, &p.m, &q.m, -1), NVM_OK);
    ck_assert_int_eq(nvm_overlap(&bounded, &p.m, &q.m, 2), NVM_OK);
    ck_assert_int_eq(nvm_overlap(&ends, &p.m, &q.m, 0), NVM_OK);
    ck_assert_msg(exact == want, "pair %d: %d for %d", i, exact, want);
    ck_assert_msg(bounded == want || bounded == -1, "pair %d, bounded: %d for %d", i, bounded, want);
    ck_assert_msg(ends == (want ? -1 : ends) && ends <= 0, "pair %d, ends: %d for %d", i, ends, want);
    overlapping += want;
    apart_within += !want && ends;
  }
  ck_assert_int_gt(overlapping, PAIRS / 10);
  ck_assert_int_gt(apart_within, PAIRS / 20);
}
END_TEST

/* A knapsack without a solution, whose steps have no common divisor: the bound ends the search. */
START_TEST(hard_pairs_are_bounded) {
  enum { N = 12 };
  int64_t shape[N], strides[N], one = 1;
  for (int d = 0; d < N; d++) shape[d] = 2, strides[d] = 2 * ((1 << 20) + (1 << (d + 1)) + 3 * d * d);
  nvm_strided p = { 0, 1, N, shape, strides }, q = { 6 * (2 << 20) + 1 + 2 * 4242, 1, 0, &one, &one };
  int found;
  ck_assert_int_eq(nvm_overlap(&found, &p, &q, -1), NVM_OK);
  ck_assert_int_eq(found, 0); /* all sums are even */
  q.at--;
  ck_assert_int_eq(nvm_overlap(&found, &p, &q, 100), NVM_OK);
  ck_assert_int_eq(found, -1);
  ck_assert_int_eq(nvm_overlap(&found, &p, &q, -1), NVM_OK);
  ck_assert_int_ge(found, 0);
}
END_TEST

START_TEST(columns_rows_and_every_second_element) {
  int64_t tall[] = { 1000000 }, far[] = { 800 }, both[] = { 1000000, 50 }, steps[] = { 800, 16 };
  nvm_strided column = { 0, 8, 1, tall, far }, next = { 8, 8, 1, tall, far }, even = { 0, 8, 2, both, steps },
              odd = { 8, 8, 2, both, steps };
  int found;
  ck_assert_int_eq(nvm_overlap(&found, &column, &next, 8), NVM_OK);
  ck_assert_int_eq(found, 0);
  ck_assert_int_eq(nvm_overlap(&found, &even, &odd, 8), NVM_OK);
  ck_assert_int_eq(found, 0);
  ck_assert_int_eq(nvm_overlap(&found, &next, &odd, 8), NVM_OK);
  ck_assert_int_eq(found, 1);
  column.rank = NVM_MAX_RANK + 1;
  ck_assert_int_eq(nvm_overlap(&found, &column, &next, 8), NVM_ERR_VALUE);
}
END_TEST

SUITE("overlap", random_parts_as_marked_bytes, hard_pairs_are_bounded, columns_rows_and_every_second_element)
