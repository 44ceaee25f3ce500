/* The order of products: nothing beats what OPTIMAL says of it, GREEDY is no worse than going from the left on chains,
   and each path is one. */
#include <string.h>
#include "../suite.h"
#include "graph/contraction.h"

static uint64_t seed = 1;
static int below(int n) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (uint64_t)n);
}

static double volume(uint64_t set, const double *extent) {
  double v = 1;
  for (int k = 0; k < NVG_LABELS; k++)
    if (set >> k & 1) v *= extent[k];
  return v;
}

/* Takes a step in a list of terms; the operations it costs. */
static double step(uint64_t *term, int *n, int i, int j, uint64_t wanted, const double *extent) {
  uint64_t keep = wanted, all = term[i] | term[j];
  for (int k = 0; k < *n; k++)
    if (k != i && k != j) keep |= term[k];
  int m = 0;
  for (int k = 0; k < *n; k++)
    if (k != i && k != j) term[m++] = term[k];
  term[m++] = all & keep;
  *n = m;
  return volume(all, extent) * (all & ~keep ? 2 : 1);
}

static double cheapest(const uint64_t *term, int n, uint64_t wanted, const double *extent) { /* of all orders */
  double best = n == 1 ? 0 : -1;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) {
      uint64_t rest[8];
      int m = n;
      memcpy(rest, term, sizeof *rest * (size_t)n);
      double w = step(rest, &m, i, j, wanted, extent);
      w += cheapest(rest, m, wanted, extent);
      if (best < 0 || w < best) best = w;
    }
  return best;
}

/* The work of a path, step by step, which is what it says of itself. */
static double followed(const uint64_t *term, int n, uint64_t wanted, const double *extent, nvm_order order) {
  uint64_t list[64];
  int pair[64][2], m = n;
  double w = 0, told = nvg_contraction_path(n, term, extent, wanted, order, pair);
  memcpy(list, term, sizeof *list * (size_t)n);
  for (int k = 0; k < n - 1; k++) {
    ck_assert(pair[k][0] >= 0 && pair[k][0] < pair[k][1] && pair[k][1] < m);
    w += step(list, &m, pair[k][0], pair[k][1], wanted, extent);
  }
  ck_assert_int_eq(m, 1);
  ck_assert_double_eq(told, w);
  return w;
}

START_TEST(nothing_beats_the_best) {
  double extent[NVG_LABELS];
  for (int round = 0; round < 300; round++) {
    uint64_t term[6] = { 0 };
    int n = 1 + below(6);
    for (int k = 0; k < NVG_LABELS; k++) extent[k] = 1 + below(9);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < 1 + below(4); k++) term[i] |= 1ull << below(8);
    uint64_t wanted = (uint64_t)below(256), all = 0;
    for (int i = 0; i < n; i++) all |= term[i];
    wanted &= all;
    double best = cheapest(term, n, wanted, extent);
    ck_assert_double_eq(followed(term, n, wanted, extent, NVM_ORDER_OPTIMAL), best);
    ck_assert_double_eq(followed(term, n, wanted, extent, NVM_ORDER_AUTO), best);
    ck_assert_double_ge(followed(term, n, wanted, extent, NVM_ORDER_GREEDY), best);
    ck_assert_double_ge(followed(term, n, wanted, extent, NVM_ORDER_LEFT), best);
  }
}
END_TEST

START_TEST(many_terms_are_multiplied_greedily) {
  double extent[NVG_LABELS];
  uint64_t term[40];
  for (int k = 0; k < NVG_LABELS; k++) extent[k] = k % 2 ? 2 : 30;
  for (int i = 0; i < 40; i++) term[i] = 3ull << i; /* a chain of 40 matrices */
  uint64_t wanted = 1 | 1ull << 40;
  double left = followed(term, 40, wanted, extent, NVM_ORDER_LEFT);
  double greedy = followed(term, 40, wanted, extent, NVM_ORDER_GREEDY);
  ck_assert_double_lt(greedy, left / 2);
  ck_assert_double_eq(followed(term, 40, wanted, extent, NVM_ORDER_AUTO), greedy);
  ck_assert_double_eq(followed(term, 40, wanted, extent, NVM_ORDER_OPTIMAL), greedy);
  wanted = 1 | 1ull << 12;
  greedy = followed(term, 12, wanted, extent, NVM_ORDER_GREEDY);
  ck_assert_double_le(followed(term, 12, wanted, extent, NVM_ORDER_OPTIMAL), greedy);
}
END_TEST

SUITE("graph_einsum_path", nothing_beats_the_best, many_terms_are_multiplied_greedily)
