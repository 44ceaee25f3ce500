/* The structure of a fusion: a hash of what its legality and its price depend on. The steps of a loop give many fusions
   of one structure, of which the search builds and prices one. Which nodes they are does not count, only which operands
   are one value; nor which symbols their sizes have, only the numbers; nor do constants, except beside GEMMs, whose
   libraries take some of them. A move is made with the fusion itself, at its own price, so that a difference which this
   overlooks costs no more than the move. */
#include "fusion/planner.h"

typedef struct description {
  nvf_graph *graph;
  const uint64_t *stored;
  NVB_VEC(int64_t) word;
  int n;      /* nodes that have a local number */
  int coarse; /* sizes count by their powers of two, and places in an array do not count */
} description;

static void put_word(description *d, int64_t x) { NVB_PUSH(d->graph->arena, d->word, x); }

static void put_size(description *d, nvf_prod size) {
  int64_t n = nvf_value(d->graph->space, size);
  put_word(d, d->coarse && n > 1 ? 64 - __builtin_clzll((uint64_t)n) : n);
}

/* The attributes that a price depends on. */
static int count_attributes(const description *d, const nvf_node *n) {
  const nvf_graph *graph = d->graph;
  const nvg_val *v = &graph->g->v[n->value];
  if (n->kind == NVG_VRED) return 2;
  if (d->coarse && (n->kind == NVG_VSLICE || n->kind == NVG_VPAD || n->kind == NVG_VROLL)) return 0;
  if (n->kind == NVG_VPICK || n->kind == NVG_VSCAN) return 1;
  if (n->kind == NVG_VMAP || v->kind != n->kind || (n->kind == NVG_VCONST && !graph->ngemm)) return 0;
  return v->nattr;
}

/* What the node is, without its operands. */
static void put_node(description *d, const nvf_node *n, int made) {
  put_word(d, (int64_t)n->kind | (int64_t)n->dtype << 8 | (int64_t)n->rank << 16 | (int64_t)n->nin << 24 |
                  (int64_t)made << 48 | (int64_t)n->must << 49 | (int64_t)n->out << 50 | (int64_t)n->finish << 51 |
                  (int64_t)n->tiled << 52 | (int64_t)n->order_free << 53 | (int64_t)(n->chain != 0) << 54 |
                  (int64_t)(n->nuser == 1) << 55);
  for (int i = 0; i < n->rank; i++) put_size(d, n->dim[i]);
  if (n->kind == NVG_VLEAF) {
    for (int i = 0; i < n->rank; i++) n->stride[i] < 0 ? put_word(d, -1) : put_size(d, n->stride[i]);
    put_word(d, nvf_is_argument(d->graph, n));
  }
  if (!made || n->kind == NVG_VLEAF) return;
  put_word(d, (int64_t)(intptr_t)n->frag);
  put_word(d, (int64_t)n->chunk << 32 | n->lanes);
  put_word(d, n->block);
  put_word(d, n->narrowed);
  for (int i = 0, many = count_attributes(d, n); i < many; i++) put_word(d, n->attr[i]);
  if (n->kind == NVG_VROUTINE) put_word(d, d->graph->g->v[n->value].op);
}

/* The operands by their local numbers; of a map also the order in which its operands become expressions. */
static void put_operands(description *d, const nvf_node *n) {
  nvf_graph *graph = d->graph;
  nvf_walk *w = &graph->walk;
  for (int i = 0; i < n->nin; i++) {
    int x = n->in[i];
    if (!nvf_walk_met(w, x)) graph->local[x] = d->n++;
    nvf_walk_to(w, x);
    int later = 0;
    for (int j = 0; j < n->nin && n->kind == NVG_VMAP; j++)
      later += nvf_is_sooner(&graph->node[n->in[j]], &graph->node[x]);
    put_word(d, (int64_t)graph->local[x] << 8 | later);
  }
}

nvb_hash nvf_structure_of(nvf_graph *graph, int n, const int *root, const uint64_t *stored, int coarse) {
  description d = { .graph = graph, .stored = stored, .coarse = coarse };
  nvf_walk *w = &graph->walk;
  nvf_walk_start(w);
  put_word(&d, n);
  for (int i = 0; i < n; i++) graph->local[root[i]] = d.n++, nvf_walk_to(w, root[i]);
  for (int i; (i = nvf_walk_next(w)) >= 0;) {
    int made = graph->local[i] < n || !nvf_has(stored, i);
    put_word(&d, graph->local[i]);
    put_node(&d, &graph->node[i], made);
    if (made) put_operands(&d, &graph->node[i]);
  }
  graph->built += d.word.n / 16; /* it adds to the effort of the search */
  return nvb_hash_bytes(d.word.at, (size_t)d.word.n * sizeof *d.word.at);
}
