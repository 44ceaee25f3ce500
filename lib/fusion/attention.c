/* Finds attention in a graph, and what of it is inside of its kernel. It never decides whether such a kernel is worth
   it (fuse.c does, by price). */
#include "graph/attention.h"
#include <math.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

/* The longest vectors that are multiplied: those of a tile of queries, and their results, stay on chip. */
enum { HEAD = 256 };

int nvf_is_attention(const nvf_graph *graph, const nvf_node *n) {
  return n->kind == NVG_VCALL && nvg_is_attention(&graph->g->v[n->value]);
}

/* Marks the functions of the first product of an attention, down from its scores. */
static void mark_from(nvf_graph *graph, int scores) {
  uint8_t *of_scores = nvb_get(graph->arena, (size_t)graph->n + 1);
  of_scores[scores] = 1;
  for (int i = scores; i >= 0; i--) {
    const nvf_node *n = &graph->node[i];
    int each = n->kind == NVG_VMAP || n->kind == NVG_VRESHAPE;
    of_scores[i] &= n->size == graph->node[scores].size && (each || n->kind == NVG_VCALL);
    for (int j = 0; j < n->nin && of_scores[i] && each; j++) of_scores[n->in[j]] = 1;
  }
  for (int i = 0; i <= scores; i++) {
    nvf_node *n = &graph->node[i];
    if (!of_scores[i]) continue;
    n->inner = n->kind == NVG_VCALL;
    for (int j = 0; j < n->nin && n->kind != NVG_VCALL; j++)
      n->inner |= of_scores[n->in[j]] && graph->node[n->in[j]].inner;
    n->must &= !n->inner;
  }
}

void nvf_mark_inner(nvf_graph *graph) {
  for (int i = 0; i < graph->n; i++) {
    const nvf_node *n = &graph->node[i];
    if (nvf_is_attention(graph, n)) mark_from(graph, n->in[0]);
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
  const nvg_graph *with = nvg_with_attention(a, g, (nvg_attention_limits){ nvf_attention_head(m.caps, HEAD), cpu });
  return with != g && has_kernels(nvf_graph_of(a, with, nvf_sizes_of(a, with), m, NVF_TWO_PASS, NULL)) ? with : g;
}

/* ---- keys that no query of a tile sees */
static const nvf_iexpr *expr_of(const nvf_fusion *k, int i) {
  while (k->expr.at[i].kind == NVF_ISAME) i = k->expr.at[i].arg[0];
  return &k->expr.at[i];
}

static int is_map(const nvf_fusion *k, const nvf_iexpr *v, const char *frag) {
  return v->kind == NVF_IMAP && !strcmp(k->graph->node[v->node].frag->name, frag);
}

static const nvf_node *constant_of(const nvf_fusion *k, const nvf_iexpr *v) {
  return v->kind == NVF_ICONST && k->graph->node[v->node].kind == NVG_VCONST ? &k->graph->node[v->node] : NULL;
}

static int is_lowest(const nvf_fusion *k, const nvf_iexpr *v) {
  const nvf_node *c = constant_of(k, v);
  return c && c->dtype == NVM_F32 && nvg_bits_float(NVM_F32, (uint64_t)c->attr[0]) == -INFINITY;
}

/* The index of a coordinate, perhaps with a number added; returns 0 if v is none. */
static int is_position(const nvf_fusion *k, const nvf_iexpr *v, nvf_ix *at) {
  nvf_space *s = k->graph->space;
  const nvf_node *c = is_map(k, v, "add") ? constant_of(k, expr_of(k, v->arg[1])) : NULL;
  const nvf_iexpr *x = c ? expr_of(k, v->arg[0]) : v;
  if (x->kind != NVF_IINDEX || (c && c->dtype != NVM_I64)) return 0;
  *at = c ? nvf_ix_add(s, x->at, nvf_ix_int(s, c->attr[0])) : x->at;
  return 1;
}

/* Whether the index is the query minus the key plus a number. */
static int is_distance(const nvf_fusion *k, nvf_ix e, int64_t *more) {
  nvf_space *s = k->graph->space;
  int n, queries = 0, keys = 0;
  const nvf_term *t = nvf_ix_terms(s, e, &n);
  *more = 0;
  for (int i = 0; i < n; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    if (a->kind == NVF_AT_ONE) *more += t[i].c * nvf_value(s, t[i].by);
    else if (a->kind != NVF_AT_AXIS || t[i].by) return 0;
    else if (a->id == k->attention->m && t[i].c == 1) queries++;
    else if (a->id == k->attention->k && t[i].c == -1) keys++;
    else return 0;
  }
  return queries == 1 && keys == 1;
}

int nvf_is_causal(const nvf_fusion *k, int64_t *more) {
  static const char *const above[] = { "greater_equal", "greater" }, *const below[] = { "less_equal", "less" };
  const nvf_iexpr *v = expr_of(k, k->attention->of[NVF_ATTENDED]), *c;
  nvf_ix x, y;
  if (!is_map(k, v, "where")) return 0;
  int hides = is_lowest(k, expr_of(k, v->arg[1])), sign = 0;
  if (!hides && !is_lowest(k, expr_of(k, v->arg[2]))) return 0;
  c = expr_of(k, v->arg[0]);
  for (int i = 0; i < 2; i++) sign += is_map(k, c, above[i]) - is_map(k, c, below[i]);
  if (!sign || !is_position(k, expr_of(k, c->arg[0]), &x) || !is_position(k, expr_of(k, c->arg[1]), &y)) return 0;
  return is_distance(k, (sign > 0) != hides ? nvf_ix_sub(k->graph->space, x, y) : nvf_ix_sub(k->graph->space, y, x),
                     more);
}
