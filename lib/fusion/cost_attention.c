/* The price of attention: the products at the rate of generated code, and the functions of the scores, beside the bytes
   of the operands and of the result. Each block reads all keys and values of its head from L2. */
#include <math.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }
static double extent(const nvf_fusion *k, int axis) { return (double)k->axis.at[axis].n; }

/* Operations of the functions in some regions, those of the softmax itself apart. */
static double operations(const nvf_fusion *k) {
  double sum = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_IMAP && v->kind != NVF_ISELECT) continue;
    int cost = v->kind == NVF_IMAP ? k->graph->node[v->node].frag->cost : 1;
    int blocks = k->attention->regions[i] & (1 << NVF_KEYS | 1 << NVF_VALUES); /* which every block computes again */
    sum += (cost > 1 ? cost : 1) * nvf_elements(k, v->axes) * (blocks ? k->blocks : 1);
  }
  return sum;
}

static double bytes_read(const nvf_fusion *k) {
  double sum = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind != NVF_ILOAD) continue;
    const nvf_node *n = &k->graph->node[v->node];
    sum += least((double)n->size, nvf_elements(k, v->axes)) * nvg_size(n->dtype);
  }
  return sum;
}

/* The part of the keys that blocks walk. */
static double part_of_keys(const nvf_fusion *k) {
  int64_t more;
  if (!nvf_is_causal(k, &more)) return 1;
  double seen =
      ((extent(k, k->attention->m) + (double)nvf_attention_queries(k)) / 2 + (double)more) / extent(k, k->attention->k);
  return most(0, least(1, seen));
}

void nvf_assess_attention(nvf_fusion *k) {
  enum { SOFTMAX = 20 }; /* operations of a score's exponential and sums */
  const nvf_attention *t = k->attention;
  const nvb_caps *c = k->graph->caps;
  int cpu = c->kind == NVB_CPU;
  k->grid = nvf_all_axes(k) & ~k->reduced & ~(1ull << t->n);
  double scores = part_of_keys(k) * nvf_elements(k, k->expr.at[t->first].axes), results = nvf_elements(k, k->grid);
  double flops = 2 * scores * (extent(k, t->depth) + extent(k, t->n));
  k->blocks = results / extent(k, t->m) * ceil(extent(k, t->m) / (double)nvf_attention_queries(k));
  double rate = cpu ? c->gemm[NVB_GEMM_F32].generated : 0.5 * c->gemm[NVB_GEMM_F16].generated;
  double filled = least(1, k->blocks / c->cores), ops = operations(k) + SOFTMAX * scores;
  double moved = bytes_read(k) + nvf_bytes_stored(k), again = extent(k, t->k) * (extent(k, t->depth) + extent(k, t->n));
  double work = flops / (rate * filled) + ops / (c->rate * filled);
  double l2 = k->blocks * again * (cpu ? 4 : 2) / (c->l2_bandwidth * filled);
  k->time = c->launch + most(work, most(moved / c->bandwidth, l2));
  k->bytes_read = (int64_t)bytes_read(k);
  k->bytes_written = (int64_t)nvf_bytes_stored(k);
  k->flops = (int64_t)(flops + ops);
}
