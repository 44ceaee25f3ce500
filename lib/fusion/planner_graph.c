/* Builds the planner graph: live values only, without reshapes to the same shape, with reductions and scans split as
   two_pass.c does it. It decides which reductions follow the rows of another one or the tiles of a GEMM; only the
   latter changes bits. */
#include "fusion/two_pass.h"
#include <string.h>
#include "graph/attention.h"

/* ---- reductions over different axes of one source */
/* leaf: by value, the leaves that a reduction reads; NULL: nobody has asked */
typedef struct sources { nvb_arena *a; const nvg_graph *g; uint8_t **leaf, *seen; } sources;
static const uint8_t *sources_of(sources *s, int from) {
  const nvg_graph *g = s->g;
  int64_t least = g->v[g->v[from].in[0]].size;
  uint8_t *leaf = s->leaf[from], *seen = s->seen;
  if (leaf) return leaf;
  leaf = s->leaf[from] = nvb_get(s->a, (size_t)g->n);
  memset(seen, 0, (size_t)g->n);
  seen[from] = 1;
  for (int i = from; i >= 0; i--) {
    if (!seen[i]) continue;
    for (int j = 0; j < g->v[i].nin; j++) seen[g->v[i].in[j]] = 1;
    if (g->v[i].kind == NVG_VLEAF && g->v[i].size >= least) leaf[i] = 1;
  }
  return leaf;
}

static int have_common_source(sources *s, int i, int j) {
  const uint8_t *x = sources_of(s, i), *y = sources_of(s, j);
  for (int k = 0; k < s->g->n; k++)
    if (x[k] && y[k]) return 1;
  return 0;
}

/* Marks reductions that must be split along the rows of another one, because both read a common leaf over different
   axes; returns their number. Few graphs have reductions over different axes of one shape, so only of these the leaves
   are found. */
static int find_crossed(nvb_arena *a, const nvg_graph *g, uint8_t *mark) {
  sources s = { a, g, NVB_NEWN(a, uint8_t *, g->n), nvb_get(a, (size_t)g->n) };
  int *red = NVB_NEWN(a, int, g->n), many = 0, n = 0;
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VRED) red[many++] = i;
  for (int p = 0; p < many; p++)
    for (int q = 0, i = red[p]; q < many && !mark[i]; q++) {
      const nvg_val *v = &g->v[i], *u = &g->v[red[q]], *x = &g->v[v->in[0]];
      if ((v->attr[0] == u->attr[0] && v->attr[1] == u->attr[1]) || !nvg_same_shape(x, &g->v[u->in[0]]) ||
          nvf_count(x, (int)(v->attr[0] + v->attr[1]), x->rank) < 16)
        continue;
      if (have_common_source(&s, i, red[q])) mark[i] = 1, n++;
    }
  return n;
}

int nvf_graph_crosses_axes(const nvf_graph *graph) {
  return find_crossed(graph->arena, graph->g, nvb_get(graph->arena, (size_t)graph->g->n));
}

/* ---- reductions of a GEMM's rows or columns */
/* By value: 1 + the GEMM that it maps elementwise, in the same order; 0: none. Negative if the elements are read again
   together with their reduction: they are in memory then, and fusing the reduction gains nothing. */
static int *find_gemms(nvb_arena *a, const nvg_graph *g) {
  uint8_t *after = nvb_get(a, (size_t)g->n + 1), *again = nvb_get(a, (size_t)g->n + 1);
  int *of = NVB_NEWN(a, int, g->n + 1);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int each = v->kind == NVG_VMAP || v->kind == NVG_VRESHAPE;
    of[i] = v->kind == NVG_VCALL && !nvg_is_attention(v) ? i + 1 : 0;
    after[i] = v->kind == NVG_VRED && of[v->in[0]];
    for (int j = 0; j < v->nin; j++) {
      after[i] |= after[v->in[j]];
      of[i] = each && g->v[v->in[j]].size == v->size && of[v->in[j]] ? of[v->in[j]] : of[i];
    }
    again[of[i]] |= after[i] && v->kind == NVG_VMAP;
  }
  for (int i = 0; i < g->n; i++) of[i] = again[of[i]] ? -of[i] : of[i];
  return of;
}

/* The dimension of the GEMM's result, one of the last two, over which a reduction of its elements runs; -1: neither. */
static int side_of(const nvg_val *dot, const nvg_val *x, const nvg_val *red) {
  int at = (int)red->attr[0], end = at + (int)red->attr[1];
  int64_t before = nvf_count(x, 0, at), len = nvf_count(x, at, end);
  for (int d = dot->rank - 1; d >= dot->rank - 2; d--)
    if (dot->shape[d] == len && nvf_count(dot, 0, d) == before) return d;
  return -1;
}

/* Describes a reduction of a GEMM's rows or columns; tile 0: it is not one, and why. */
static nvf_along reduction_along(const nvf_graph *graph, const nvg_val *v, const int *of, int split) {
  int from = of[v->in[0]];
  if (!from) return (nvf_along){ .why = "a matrix product and a reduction that is not of its rows or columns" };
  if (from < 0) return (nvf_along){ .why = "what is reduced is wanted again, and is in memory" };
  const nvg_val *dot = &graph->g->v[from - 1];
  nvm_dtype operands = graph->g->v[dot->in[0]].dtype;
  nvf_along r = { .dot = from - 1, .axis = side_of(dot, &graph->g->v[v->in[0]], v) };
  if (r.axis < 0)
    return (nvf_along){ .why = "a reduction along neither whole rows nor whole columns of a matrix product" };
  if (r.axis == dot->rank - 2) r.tile = nvf_gemm_rows(graph->caps, operands);
  else
    r.tile = split == NVF_WIDE ? nvf_tensor_columns(graph->caps, operands, dot->attr[1])
                               : nvf_gemm_columns(graph->caps, dot->dtype);
  if (!r.tile) r.why = "no tile of this matrix product has a whole row or column of the reduction";
  else if (dot->shape[r.axis] <= r.tile) r.tile = 0, r.why = "a reduction of no more than a tile of the product has";
  return r;
}

int nvf_graph_reduces_tiles(const nvf_graph *graph, int split) {
  int found = 0;
  if (!graph->ngemm) return 0;
  const int *of = find_gemms(graph->arena, graph->g);
  for (int i = 0; i < graph->g->n && !found; i++) {
    if (graph->g->v[i].kind != NVG_VRED) continue;
    nvf_along r = reduction_along(graph, &graph->g->v[i], of, split);
    found = r.tile && (split == NVF_TILED || r.axis == graph->g->v[r.dot].rank - 1);
  }
  return found;
}

const char *nvf_graph_why_apart(const nvf_graph *graph, const nvf_node *red) {
  const nvf_node *part = red;
  while (part->finish || part->kind == NVG_VPICK || part->kind == NVG_VRESHAPE) part = &graph->node[part->in[0]];
  if (part->tiled) return "its parts are reduced with the product, and merged when all are there";
  const nvg_val *v = &graph->g->v[red->value];
  nvf_along r = v->kind == NVG_VRED ? reduction_along(graph, v, graph->of, NVF_TILED) : (nvf_along){ .why = NULL };
  return r.tile  ? "a reduction in the tiles of the product takes longer"
         : r.why ? r.why
                 : "a matrix product and a scan";
}

/* ---- the whole */
static void mark_live(const nvg_graph *g, uint8_t *want) {
  for (int i = 0; i < g->nout; i++) want[g->out[i]] = 1;
  for (int i = g->n - 1; i >= 0; i--)
    for (int j = 0; want[i] && j < g->v[i].nin; j++) want[g->v[i].in[j]] = 1;
}

int nvf_alike(const nvf_node *p, const nvf_node *q) {
  int j = 0;
  for (int d = 0; d < p->rank; d++) {
    while (p->dim[d] && j < q->rank && !q->dim[j]) j++;
    if (p->dim[d] && (j == q->rank || q->dim[j++] != p->dim[d])) return 0;
  }
  for (; j < q->rank; j++)
    if (q->dim[j]) return 0;
  return 1;
}

/* Counts reshapes of moved data along a path. Each makes index expressions several times longer, so after MOST of them
   the value must be stored. */
static void count_transposes(const nvf_graph *graph, nvf_node *n) {
  enum { MOST = 3 };
  for (int j = 0; j < n->nin; j++) {
    const nvf_node *x = &graph->node[n->in[j]];
    n->transposes = !x->must && x->transposes > n->transposes ? x->transposes : n->transposes;
  }
  if (n->kind == NVG_VRESHAPE) n->transposes += (n->transposes & 1) && !nvf_alike(n, &graph->node[n->in[0]]);
  else if (n->kind == NVG_VPAD || n->kind == NVG_VCONCAT || (nvf_is_view(n->kind) && n->kind != NVG_VEXPAND))
    n->transposes |= 1;
  n->must |= n->transposes >= 2 * MOST;
}

static int behind_views(const nvf_graph *graph, int i) {
  while (nvf_is_view(graph->node[i].kind)) i = graph->node[i].in[0];
  return i;
}

/* Counts the operands among which an element of the value is selected; views of one array count once. If there are more
   than NVG_CONCAT_MOST, the operand with the most of them must be stored. */
static void count_alternatives(nvf_graph *graph, nvf_node *n) {
  int many = n->kind == NVG_VCONCAT,
      through = many || n->kind == NVG_VMAP || n->kind == NVG_VPAD || n->kind == NVG_VROLL || nvf_is_view(n->kind);
  for (nvf_node *most = NULL;; most->must = 1) {
    n->alternatives = many ? 0 : 1;
    most = NULL;
    for (int j = 0; j < n->nin && through; j++) {
      nvf_node *x = &graph->node[n->in[j]];
      int own = x->must ? 1 : x->alternatives, again = 0;
      for (int i = 0; i < j && many; i++) again |= behind_views(graph, n->in[i]) == behind_views(graph, n->in[j]);
      n->alternatives = many && !again ? n->alternatives + own : own > n->alternatives ? own : n->alternatives;
      if (own > 1 && (!most || own > most->alternatives)) most = x;
    }
    if (n->alternatives <= NVG_CONCAT_MOST || !most) return;
  }
}

/* Links each node to its users. Only live nodes count, so a pick of a state that nothing reads has no users. */
static void link_users(nvf_graph *graph) {
  uint8_t *alive = nvb_get(graph->arena, (size_t)graph->n + 1);
  for (int i = graph->n - 1; i >= 0; i--) {
    const nvf_node *n = &graph->node[i];
    alive[i] |= (uint8_t)n->out;
    for (int j = 0; j < n->nin && alive[i]; j++) {
      alive[n->in[j]] = 1;
      graph->node[n->in[j]].nuser++;
    }
  }
  for (int i = 0; i < graph->n; i++) {
    nvf_node *n = &graph->node[i];
    n->user = NVB_NEWN(graph->arena, int, n->nuser + 1);
    n->nuser = 0;
    for (int j = 0; j < n->nin; j++) {
      nvf_node *x = &graph->node[n->in[j]];
      if (alive[i]) x->user[x->nuser++] = i;
      n->depth = x->depth > n->depth ? x->depth : n->depth;
    }
    int fold = n->kind == NVG_VRED || n->kind == NVG_VSCAN || n->kind == NVG_VCALL || n->kind == NVG_VROUTINE;
    n->red_depth = n->kind == NVG_VLEAF || n->kind == NVG_VIOTA ? 0 : NVF_FAR;
    for (int j = 0; j < n->nin; j++) {
      const nvf_node *x = &graph->node[n->in[j]];
      if (x->size >= n->size && x->red_depth + fold < n->red_depth) n->red_depth = x->red_depth + fold;
    }
    n->depth += fold;
    n->must |= n->kind == NVG_VSCAN || n->kind == NVG_VSCATTER || n->kind == NVG_VCALL || n->kind == NVG_VROUTINE;
    count_transposes(graph, n);
    count_alternatives(graph, n);
    graph->ngemm += n->kind == NVG_VCALL;
    graph->ntransform += n->passes != NULL;
  }
  nvf_mark_inner(graph);
  /* a transform's result for one along another axis is stored in the order that suits both (graph/dft_ways.c) */
  for (int i = 0; i < graph->n; i++) {
    nvf_node *x = graph->node[i].kind == NVG_VPERMUTE ? &graph->node[*graph->node[i].in] : NULL;
    if (x && x->kind == NVG_VPERMUTE && graph->node[*x->in].passes) x->must = x->apart = 1;
  }
  for (int i = 0; i < graph->n; i++) /* a routine reads its operands from memory */
    for (int j = 0; graph->node[i].kind == NVG_VROUTINE && !graph->node[i].passes && j < graph->node[i].nin; j++)
      graph->node[graph->node[i].in[j]].must |= graph->node[graph->node[i].in[j]].kind != NVG_VLEAF;
  /* a gather reads its source at random indices, so recomputing it there could be repeated without bound */
  for (int i = 0; i < graph->n; i++) {
    int x = graph->node[i].kind == NVG_VGATHER ? graph->node[i].in[0] : -1;
    while (x >= 0 && nvf_is_view(graph->node[x].kind)) x = graph->node[x].in[0];
    if (x >= 0 && graph->node[x].kind != NVG_VLEAF && graph->node[x].kind != NVG_VCONST &&
        graph->node[x].kind != NVG_VIOTA)
      graph->node[x].must = 1;
  }
}

/* The passes of value i, which are chosen once for all transforms that have them. */
static const nvf_passes *passes_of(nvf_graph_builder *w, int i) {
  const nvg_val *v = w->graph->g->v, *x = &v[i];
  const nvf_passes **known = w->graph->sizes->passes;
  if (x->kind != NVG_VROUTINE || x->op != NVG_OP_DFT) return NULL;
  for (int j = 0; j < i && !known[i]; j++)
    if (known[j] && v[j].dtype == x->dtype && v[j].attr[0] == x->attr[0] && v[j].attr[1] == x->attr[1] &&
        v[j].nattr == x->nattr)
      known[i] = known[j];
  if (!known[i]) {
    nvf_passes *p = NVB_NEW(w->a, nvf_passes);
    *p = nvf_passes_of(x, w->graph->caps);
    known[i] = p;
  }
  return known[i]->n ? known[i] : NULL;
}

/* Value i as a node whose operands are nodes. */
static nvf_node node_of(nvf_graph_builder *w, int i) {
  const nvf_sizes *z = w->graph->sizes;
  const nvg_val *v = &w->graph->g->v[i];
  nvf_node n = { .kind = v->kind,
                 .dtype = v->dtype,
                 .rank = v->rank,
                 .dim = z->dim[i],
                 .nin = v->nin,
                 .attr = v->attr,
                 .at = z->at[i],
                 .leaf = v->leaf,
                 .chunk = v->chunk,
                 .lanes = v->lanes,
                 .order_free = v->order_free,
                 .frag = v->frag,
                 .init = v->init,
                 .name = v->name,
                 .value = i,
                 .narrowed = v->narrowed,
                 .passes = passes_of(w, i) };
  n.in = NVB_NEWN(w->a, int, v->nin + 1); /* one more for the zeros of a scatter */
  for (int j = 0; j < v->nin; j++) n.in[j] = w->node[v->in[j]];
  if (v->kind == NVG_VLEAF) n.stride = z->stride[v->leaf];
  if (v->kind == NVG_VSCATTER) { /* the greatest positions are entered over zeros, which are a node of their own */
    static const int64_t zero;
    nvf_node base = {
      .kind = NVG_VCONST, .dtype = n.dtype, .rank = n.rank, .dim = n.dim, .attr = &zero, .must = 1, .value = i
    };
    n.in[n.nin++] = nvf_graph_add(w, base);
  }
  return n;
}

/* The node of a value that is not a reduction: n, an existing node, or the nodes of a scan. */
static int build_graph(nvf_graph_builder *w, const nvg_val *v, nvf_node n) {
  if (v->kind == NVG_VRESHAPE && nvg_same_shape(v, &w->graph->g->v[v->in[0]])) return n.in[0];
  if (v->kind == NVG_VPICK) return w->state[v->in[0]][v->attr[0]];
  return v->kind == NVG_VSCAN ? nvf_add_scan(w, v, n) : nvf_graph_add(w, n);
}

/* The node whose memory is that of an output: what a reshape reads has the same elements in the same order. Over its
   own dimensions, what repeats or moves elements needs no quotients. */
static int stored_as(const nvf_graph *graph, int node) {
  const nvf_node *n = &graph->node[node], *x;
  while (n->kind == NVG_VRESHAPE && (x = &graph->node[n->in[0]], nvf_is_view(x->kind) || x->kind == NVG_VMAP))
    node = n->in[0], n = x;
  return node;
}

nvf_graph *nvf_graph_of(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, nvf_machine m, int split,
                        const uint8_t *whole) {
  nvf_graph *graph = NVB_NEW(a, nvf_graph);
  int capabilities = m.capabilities & (m.caps->scales ? ~0 : ~NVF_CAN_SCALES);
  *graph = (nvf_graph){ .arena = a,
                        .g = g,
                        .caps = m.caps,
                        .capabilities = capabilities,
                        .general = m.general,
                        .sizes = z,
                        .space = z->space };
  nvf_graph_builder *w = nvf_graph_builder_new(graph, split);
  uint8_t *want = nvb_get(a, (size_t)g->n), *side = nvb_get(a, (size_t)g->n);
  mark_live(g, want);
  graph->of = find_gemms(a, g);
  if (split == NVF_FINE) find_crossed(a, g, side);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    if (want[i] && v->kind == NVG_VRED) {
      nvf_along r = { .tile = 0 };
      if (split >= NVF_TILED) r = reduction_along(graph, v, graph->of, split);
      nvf_add_reduction(w, v, node_of(w, i), whole && whole[i], side[i], &r);
    } else if (want[i]) w->node[i] = build_graph(w, v, node_of(w, i));
  }
  graph->n = w->made.n;
  graph->node = w->made.at;
  graph->walk = (nvf_walk){ .stack = NVB_NEWN(a, int, graph->n + 1), .met = NVB_NEWN(a, int, graph->n + 1) };
  graph->local = NVB_NEWN(a, int, graph->n + 1);
  for (int i = 0; i < 2; i++) graph->met[i] = NVB_NEWN(a, int, graph->n + 1);
  graph->out = NVB_NEWN(a, int, g->nout + 1);
  for (int i = 0; i < g->nout; i++) {
    graph->out[i] = stored_as(graph, w->node[g->out[i]]);
    graph->node[graph->out[i]].out = 1;
  }
  link_users(graph);
  return graph;
}
