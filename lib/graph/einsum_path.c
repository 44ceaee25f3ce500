/* Finds the order in which several labelled terms are multiplied pairwise, as in opt_einsum (Smith, Gray 2018), from
   labels and extents alone. The cost of a pair is the product of the extents of all its labels, twice that if it
   sums. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/contraction.h"

static double volume_of(uint64_t set, const double *extent) {
  double v = 1;
  for (; set; set &= set - 1) v *= extent[__builtin_ctzll(set)];
  return v;
}

static double work_of(uint64_t a, uint64_t b, uint64_t keep, const double *extent) {
  return volume_of(a | b, extent) * ((a | b) & ~keep ? 2 : 1);
}

/* Returns the labels of the terms other than i and j, and the wanted ones. */
static uint64_t labels_needed(const uint64_t *term, int n, int i, int j, uint64_t wanted) {
  for (int k = 0; k < n; k++)
    if (k != i && k != j) wanted |= term[k];
  return wanted;
}

/* Removes terms i < j from the list of n and appends their product. */
static void merge_terms(uint64_t *term, int n, int i, int j, uint64_t keep) {
  uint64_t both = (term[i] | term[j]) & keep;
  memmove(term + j, term + j + 1, sizeof *term * (size_t)(n - j - 1));
  memmove(term + i, term + i + 1, sizeof *term * (size_t)(n - i - 2));
  term[n - 2] = both;
}

/* Finds the pair whose product is smallest compared with its operands; pairs that share a label come first. */
static void greedy_pair(const uint64_t *term, int n, uint64_t wanted, const double *extent, int *pi, int *pj) {
  double least = 0, least_work = 0;
  int found = 0, sharing = 0;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) {
      int shares = (term[i] & term[j]) != 0;
      if (sharing && !shares) continue;
      uint64_t keep = labels_needed(term, n, i, j, wanted);
      double work = work_of(term[i], term[j], keep, extent);
      double cost =
          volume_of((term[i] | term[j]) & keep, extent) - volume_of(term[i], extent) - volume_of(term[j], extent);
      int better = !found || shares > sharing || cost < least || (cost == least && work < least_work);
      if (!better) continue;
      found = 1, sharing = shares, least = cost, least_work = work, *pi = i, *pj = j;
    }
}

static double path_by_pairs(int n, uint64_t *term, const double *extent, uint64_t wanted, int greedy, int (*out)[2]) {
  double work = 0;
  for (int step = 0; n > 1; step++, n--) {
    int i = 0, j = step ? n - 1 : 1; /* from the left: the product so far is the last term */
    if (greedy) greedy_pair(term, n, wanted, extent, &i, &j);
    uint64_t keep = labels_needed(term, n, i, j, wanted);
    work += work_of(term[i], term[j], keep, extent);
    merge_terms(term, n, i, j, keep);
    out[step][0] = i, out[step][1] = j;
  }
  return work;
}

/* ---- the optimal tree, by dynamic programming over subsets of the terms */
typedef struct best { double work; uint64_t set; uint32_t left; } best;

static int number_in(const uint32_t *list, int n, uint32_t subset) {
  int i = 0;
  while (i < n && list[i] != subset) i++;
  return i;
}

/* Writes the contraction tree of `subset`, deepest products first. */
static void write_tree(const best *b, uint32_t subset, uint32_t *list, int *n, int (*out)[2], int *step) {
  if (!(subset & (subset - 1))) return;
  uint32_t left = b[subset].left, right = subset & ~left;
  write_tree(b, left, list, n, out, step);
  write_tree(b, right, list, n, out, step);
  int i = number_in(list, *n, left), j = number_in(list, *n, right), lo = i < j ? i : j, hi = i < j ? j : i;
  out[*step][0] = lo, out[(*step)++][1] = hi;
  memmove(list + hi, list + hi + 1, sizeof *list * (size_t)(*n - hi - 1));
  memmove(list + lo, list + lo + 1, sizeof *list * (size_t)(*n - lo - 2));
  list[--*n - 1] = subset;
}

static double path_optimal(int n, const uint64_t *term, const double *extent, uint64_t wanted, int (*out)[2]) {
  uint32_t all = (1u << n) - 1, list[NVG_ORDER_MOST];
  best *b = nvb_calloc((size_t)all + 1, sizeof *b);
  if (!b) return nvb_fail_memory(), -1;
  for (uint32_t s = 1; s <= all; s++) {
    uint64_t inside = 0, keep = wanted;
    for (int i = 0; i < n; i++)
      if (s >> i & 1) inside |= term[i];
      else keep |= term[i];
    b[s] = (best){ .work = s & (s - 1) ? -1 : 0, .set = s & (s - 1) ? inside & keep : inside };
    for (uint32_t left = (s - 1) & s; left; left = (left - 1) & s) {
      uint32_t right = s & ~left;
      if (left < right) break; /* the pair with left and right exchanged was tried already */
      double w = b[left].work + b[right].work + work_of(b[left].set, b[right].set, keep, extent);
      if (b[s].work < 0 || w < b[s].work) b[s].work = w, b[s].left = left;
    }
  }
  int count = n, step = 0;
  for (int i = 0; i < n; i++) list[i] = 1u << i;
  write_tree(b, all, list, &count, out, &step);
  double work = b[all].work;
  nvb_free(b);
  return work;
}

double nvg_contraction_path(int n, const uint64_t *set, const double *extent, uint64_t wanted, nvm_order order,
                            int (*out)[2]) {
  enum { SMALL = 8 };
  if (order == NVM_ORDER_AUTO) order = n <= SMALL ? NVM_ORDER_OPTIMAL : NVM_ORDER_GREEDY;
  if (order == NVM_ORDER_OPTIMAL && n <= NVG_ORDER_MOST) return path_optimal(n, set, extent, wanted, out);
  uint64_t *term = nvb_alloc(sizeof *term * (size_t)n);
  if (!term) return nvb_fail_memory(), -1;
  memcpy(term, set, sizeof *term * (size_t)n);
  double work = path_by_pairs(n, term, extent, wanted, order != NVM_ORDER_LEFT, out);
  nvb_free(term);
  return work;
}
