/* Finds attention in a graph, and what of it is inside of its kernel. It never decides whether such a kernel is worth
   it (fuse.c does, by price). */
#include "fusion/planner.h"
#include "graph/attention.h"

/* The longest vectors that are multiplied: those of a tile of queries, and their results, stay on chip. */
enum { HEAD = 256 };

int nvf_is_attention(const nvf_graph *graph, const nvf_node *n) {
  return n->kind == NVG_VCALL && nvg_is_attention(&graph->g->v[n->value]);
}

/* Marks the functions of the first product of an attention, from its scores downward. */
static int mark_from(nvf_graph *graph, int i, int64_t size) {
  nvf_node *n = &graph->node[i];
  int product = n->kind == NVG_VCALL, inner = product;
  if (n->size != size || (!product && n->kind != NVG_VMAP && n->kind != NVG_VRESHAPE)) return 0;
  for (int j = 0; j < n->nin && !product; j++) inner |= mark_from(graph, n->in[j], size);
  n->inner = inner;
  n->must &= !inner;
  return inner;
}

void nvf_mark_inner(nvf_graph *graph) {
  for (int i = 0; i < graph->n; i++) {
    const nvf_node *n = &graph->node[i];
    if (nvf_is_attention(graph, n)) mark_from(graph, n->in[0], graph->node[n->in[0]].size);
  }
}

/* Whether a kernel can compute each attention, if all else is stored. */
static int has_kernels(nvf_graph *graph) {
  uint64_t *stored = NVB_NEWN(graph->arena, uint64_t, graph->n / 64 + 1);
  const char *why;
  for (int i = 0; i < graph->n; i++)
    if (!nvf_is_view(graph->node[i].kind) && !graph->node[i].inner) nvf_put_bit(stored, i);
  for (int i = 0; i < graph->n; i++) {
    if (!nvf_is_attention(graph, &graph->node[i])) continue;
    nvf_fusion *k = nvf_fusion_new(graph, nvb_dup(graph->arena, &i, sizeof i), 1, stored, &why);
    if (!k || nvf_why_rejected(k) || nvf_pointers(k) > graph->caps->max_buffers) return 0;
  }
  return 1;
}

const nvg_graph *nvf_find_attention(nvb_arena *a, const nvg_graph *g, nvf_machine m) {
  int cpu = m.caps->kind == NVB_CPU;
  if (!cpu && !m.caps->tensor) return g;
  const nvg_graph *with = nvg_with_attention(a, g, (nvg_attention_limits){ HEAD, cpu });
  return with != g && has_kernels(nvf_graph_of(a, with, nvf_sizes_of(a, with), m, NVF_TWO_PASS, NULL)) ? with : g;
}
