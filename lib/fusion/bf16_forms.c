/* Alternative forms of a graph: float32 GEMMs that their precision allows to run as a bf16 split (graph/bf16_split.c).
   This file decides which of these splits may pay on the device, and so which forms are worth a search; fuse.c searches
   every form and takes the cheapest. */
#include "frag/dtype.h"
#include "fusion/planner.h"

static double rate_of(const nvb_caps *c, nvb_gemm_class class) {
  const nvb_gemm_rate *r = &c->gemm[class];
  return r->library > r->generated ? r->library : r->generated;
}

/* Elements of the value behind an operand's views. */
static double elements_behind(const nvg_graph *g, int i) { return (double)nvf_behind_views(g, i)->size; }

/* Whether a split may pay: more multiplications at the rate of bf16 take less time. by_size: including the time to make
   the terms, for which each operand is read once more and its terms are written and read. */
static int may_pay(const nvb_caps *c, const nvg_graph *g, const nvg_val *v, int by_size) {
  double terms = nvg_bf16_terms(g, v), rate = rate_of(c, NVB_GEMM_F32), time = terms / rate_of(c, NVB_GEMM_F16);
  if (!terms || !by_size) return terms && time < 1 / rate;
  double flops = 2 * (double)v->size * (double)g->v[v->in[0]].shape[v->rank - 1];
  double bytes = (elements_behind(g, v->in[0]) + elements_behind(g, v->in[1])) *
                 (nvg_size(NVM_F32) + 2 * terms * nvg_size(NVM_BF16));
  return flops * time + bytes / c->bandwidth + c->launch < flops / rate;
}

int nvf_alternatives(nvb_arena *a, const nvg_graph *g, const nvb_caps *c, const nvg_graph *out[NVF_ALTERNATIVES]) {
  uint8_t *which = nvb_get(a, (size_t)g->n + 1);
  int n = 1, before = 0;
  out[0] = g;
  for (int by_size = 1; by_size >= 0; by_size--) {
    int found = 0;
    for (int i = 0; i < g->n; i++) found += which[i] = (uint8_t)may_pay(c, g, &g->v[i], by_size);
    if (found > before) out[n++] = nvg_split_bf16(a, g, which);
    before = found;
  }
  return n;
}

static int count_splittable(const nvg_graph *g) { /* number of GEMMs that may be split and are not */
  int n = 0;
  for (int i = 0; i < g->n; i++) n += nvg_bf16_terms(g, &g->v[i]) > 0;
  return n;
}

const char *nvf_bf16_split_print(nvb_arena *a, const nvf_partition *whole, const nvf_partition *split, int taken) {
  nvb_text t = { .arena = a };
  int n = count_splittable(whole->graph->g);
  if (!n) return NULL;
  int in = taken ? n - count_splittable(split->graph->g) : 0;
  nvb_print(&t, "matrix products that may be split into bf16: %d of %d are, ", in, n);
  if (split)
    nvb_print(&t, "%.1f us instead of %.1f", (in ? split : whole)->time / 1000, (in ? whole : split)->time / 1000);
  else nvb_puts(&t, "the additional multiplications take longer here than those of float32");
  return nvb_text_get(&t);
}
