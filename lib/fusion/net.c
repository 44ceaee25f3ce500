/* The canonical graph of the planner: live values only, reductions of nothing gone, and long reductions with too few
   results taken apart into partials (aligned subtrees of the stamp) and a finish. Changes no bits. */
#include "fusion/planner.h"
#include <string.h>

typedef struct weaver {
  nvf_net *net;
  nvb_arena *a;
  int *node;                /* of each graph value */
  nvb_map *pieces;          /* (length, block) -> product: how many pieces there are */
  NVB_VEC(nvf_node) made;
} weaver;

static int weave(weaver *w, nvf_node n) {
  n.size = 1;
  for (int d = 0; d < n.rank; d++)
    n.size *= nvf_value(w->net->space, n.dim[d]);
  n.parts = nvg_class_of(n.dtype) == NVG_COMPLEX ? 2 : 1;
  NVB_PUSH(w->a, w->made, n);
  return w->made.n - 1;
}

static int *ints(weaver *w, int n, const int *from) { return nvb_dup(w->a, from, (size_t)n * sizeof *from); }
static const int64_t *attrs(weaver *w, int64_t a, int64_t b) { return nvb_dup(w->a, (int64_t[2]){ a, b }, 2 * sizeof a); }

/* Dimensions with those of a run replaced by one. */
static const nvf_prod *with_dim(weaver *w, const nvf_node *n, int at, int drop, nvf_prod p) {
  nvf_prod *d = NVB_NEWN(w->a, nvf_prod, n->rank + 2);
  memcpy(d, n->dim, (size_t)at * sizeof *d);
  d[at] = p;
  memcpy(d + at + 1, n->dim + at + drop, (size_t)(n->rank - at - drop) * sizeof *d);
  return d;
}

/* ---- long reductions */
static int64_t count(const nvg_val *v, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++)
    n *= v->shape[d];
  return n;
}

static int64_t pieces_of(int64_t n, int64_t block) { return (n + block - 1) / block; }

/* Elements of a piece, or 0 where the whole run stays together. `side`: another reduction of the same source goes along
   other axes, so pieces follow its rows. */
static int64_t piece(const nvb_caps *c, const nvg_val *v, const nvg_val *x, int side) {
  int end = (int)(v->attr[0] + v->attr[1]);
  int64_t len = count(x, (int)v->attr[0], end), inner = count(x, end, x->rank), kept = v->size;
  int64_t tile = nvf_lane_tile(c), blocks = inner >= 16 ? kept / inner * ((inner + tile - 1) / tile) : kept;
  if (c->kind != NVB_CPU && inner >= 16)
    blocks = kept / c->width;
  blocks = blocks < 1 ? 1 : blocks;
  if (len * kept < 65536 || (blocks >= c->units && !side))
    return 0;
  int64_t b = v->stamp_c;
  if (c->kind == NVB_CPU) { /* pieces of 32 K elements, or of 512 rows; smaller ones only to employ every unit */
    int64_t want = side ? 4 * c->units : (c->units + blocks - 1) / blocks, most = inner >= 16 ? 64 : 256;
    b = inner >= 16 ? 512 : 32768;
    while (b > v->stamp_c && pieces_of(len, b) < want && (inner >= 16 || b > 8192))
      b /= 2;
    while (pieces_of(len, b) > most)
      b *= 2;
  } else {
    int64_t want = 4 * c->units / (side ? 1 : blocks);
    while (b * 2 * (want < 1 ? 1 : want) <= len || pieces_of(len, b) > 1024)
      b *= 2;
  }
  return b < len ? b : 0;
}

static int reduction(weaver *w, const nvg_val *v, nvf_node n, int64_t block) {
  nvf_space *s = w->net->space;
  const nvf_node x = w->made.at[n.in[0]];
  int at = (int)v->attr[0], run = (int)v->attr[1];
  nvf_prod len = 0, key[2];
  for (int d = at; d < at + run; d++)
    len = nvf_mul(s, len, x.dim[d]);
  key[0] = len;
  key[1] = (nvf_prod)block;
  int fresh, *pieces = nvb_map_put(w->pieces, key, sizeof key, &fresh);
  if (fresh)
    *pieces = nvf_symbol(s, pieces_of(nvf_value(s, len), block));
  nvf_node p = n, f = n;
  p.block = block;
  p.rank++;
  p.dim = with_dim(w, &n, at, 0, *pieces);
  int id = weave(w, p);
  f.finish = f.stamp_c = f.stamp_w = 1;
  f.rank++;
  f.dim = with_dim(w, &n, at, 0, 0);
  f.attr = attrs(w, at, 1);
  f.in = NVB_NEWN(w->a, int, n.nin);
  for (int i = 0; i < n.nin; i++) {
    nvf_node pick = { .kind = NVG_VPICK, .dtype = w->made.at[n.in[i]].dtype, .rank = p.rank, .dim = p.dim, .nin = 1,
                      .in = ints(w, 1, &id), .attr = attrs(w, i, 0), .name = n.name };
    f.in[i] = n.nin == 1 ? id : weave(w, pick);
  }
  return weave(w, f);
}

static int reshaped(weaver *w, int from, int rank, const nvf_prod *dim) {
  const nvf_node x = w->made.at[from];
  nvf_node r = { .kind = NVG_VRESHAPE, .dtype = x.dtype, .rank = rank, .dim = dim, .nin = 1, .in = ints(w, 1, &from),
                 .name = x.name };
  return weave(w, r);
}

/* A reduction free of order over several axes, as one over each: so that its rows can ride with others. */
static int nested(weaver *w, const nvg_val *v, nvf_node n) {
  int x = n.in[0];
  for (int d = (int)(v->attr[0] + v->attr[1]) - 1; d >= v->attr[0]; d--) {
    const nvf_node from = w->made.at[x];
    if (from.dim[d] == 0)
      continue;
    n.in = ints(w, 1, &x);
    n.attr = attrs(w, d, 1);
    n.dim = with_dim(w, &from, d, 1, 0);
    x = weave(w, n);
  }
  return x;
}

static int fold(weaver *w, const nvg_val *v, nvf_node n, int split, int side) {
  const nvg_val *x = &w->net->g->v[v->in[0]];
  int64_t len = count(x, (int)v->attr[0], (int)(v->attr[0] + v->attr[1]));
  if (len == 1 && n.nin == 1)
    return n.in[0];
  if (split == NVF_FINE && v->order_free && n.nin == 1 && len * v->size > 0)
    return nested(w, v, n);
  int64_t block = split == NVF_WHOLE ? 0 : piece(w->net->caps, v, x, side);
  if (!block)
    return weave(w, n);
  int f = reduction(w, v, n, block);
  return n.nin == 1 ? reshaped(w, f, n.rank, n.dim) : f;
}

static int picked(weaver *w, const nvg_val *v, nvf_node n) {
  const nvf_node r = w->made.at[n.in[0]];
  if (w->net->g->v[v->in[0]].nin == 1)
    return n.in[0];
  if (!r.finish)
    return weave(w, n);
  nvf_node p = n;
  p.rank = r.rank;
  p.dim = r.dim;
  return reshaped(w, weave(w, p), n.rank, n.dim);
}

/* ---- reductions over different axes of one source */
static void sources(const nvg_graph *g, int from, int64_t least, uint8_t *leaf, uint8_t *seen) {
  memset(seen, 0, (size_t)g->n);
  seen[from] = 1;
  for (int i = from; i >= 0; i--) {
    if (!seen[i])
      continue;
    for (int j = 0; j < g->v[i].nin; j++)
      seen[g->v[i].in[j]] = 1;
    if (g->v[i].kind == NVG_VLEAF && g->v[i].size >= least)
      leaf[i] = 1;
  }
}

static int same_shape(const nvg_val *x, const nvg_val *y) {
  return x->rank == y->rank && !memcmp(x->shape, y->shape, (size_t)x->rank * sizeof *x->shape);
}

/* Marks reductions whose split has to follow another's rows; returns how many there are. */
static int crossing(nvb_arena *a, const nvg_graph *g, uint8_t *mark) {
  uint8_t *seen = nvb_get(a, (size_t)g->n), **leaf = NVB_NEWN(a, uint8_t *, g->n);
  int n = 0;
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VRED) {
      leaf[i] = nvb_get(a, (size_t)g->n);
      sources(g, i, g->v[g->v[i].in[0]].size, leaf[i], seen);
    }
  for (int i = 0; i < g->n; i++)
    for (int j = 0; j < g->n && leaf[i] && !mark[i]; j++) {
      const nvg_val *v = &g->v[i], *u = &g->v[j], *x = &g->v[v->in[0]];
      if (!leaf[j] || (v->attr[0] == u->attr[0] && v->attr[1] == u->attr[1]) || !same_shape(x, &g->v[u->in[0]]) ||
          count(x, (int)(v->attr[0] + v->attr[1]), x->rank) < 16)
        continue;
      for (int k = 0; k < g->n && !mark[i]; k++)
        if (leaf[i][k] && leaf[j][k])
          mark[i] = 1, n++;
    }
  return n;
}

int nvf_net_crossing(const nvf_net *net) {
  return crossing(net->arena, net->g, nvb_get(net->arena, (size_t)net->g->n));
}

/* ---- the whole */
static void live(const nvg_graph *g, uint8_t *want) {
  for (int i = 0; i < g->nout; i++)
    want[g->out[i]] = 1;
  for (int i = g->n - 1; i >= 0; i--)
    for (int j = 0; want[i] && j < g->v[i].nin; j++)
      want[g->v[i].in[j]] = 1;
}

static void link_users(nvf_net *net) {
  for (int i = 0; i < net->n; i++)
    for (int j = 0; j < net->node[i].nin; j++)
      net->node[net->node[i].in[j]].nuser++;
  for (int i = 0; i < net->n; i++) {
    nvf_node *n = &net->node[i];
    n->user = NVB_NEWN(net->arena, int, n->nuser + 1);
    n->nuser = 0;
    for (int j = 0; j < n->nin; j++) {
      nvf_node *x = &net->node[n->in[j]];
      x->user[x->nuser++] = i;
      n->depth = x->depth > n->depth ? x->depth : n->depth;
    }
    n->depth += n->kind == NVG_VRED || n->kind == NVG_VSCAN;
    n->must |= n->kind == NVG_VSCAN || n->kind == NVG_VSCATTER;
  }
  for (int i = 0; i < net->n; i++) { /* what a gather reads is read at random: computing it there has no bound */
    int x = net->node[i].kind == NVG_VGATHER ? net->node[i].in[0] : -1;
    while (x >= 0 && nvf_is_view(net->node[x].kind))
      x = net->node[x].in[0];
    if (x >= 0 && net->node[x].kind != NVG_VLEAF && net->node[x].kind != NVG_VCONST && net->node[x].kind != NVG_VIOTA)
      net->node[x].must = 1;
  }
}

nvf_net *nvf_net_of(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, const nvb_caps *caps, int split, const uint8_t *whole) {
  nvf_net *net = NVB_NEW(a, nvf_net);
  *net = (nvf_net){ .arena = a, .g = g, .caps = caps, .sizes = z, .space = z->space };
  weaver w = { .net = net, .a = a, .node = NVB_NEWN(a, int, g->n), .pieces = nvb_map_new(a) };
  uint8_t *want = nvb_get(a, (size_t)g->n), *side = nvb_get(a, (size_t)g->n);
  live(g, want);
  if (split == NVF_FINE)
    crossing(a, g, side);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    if (!want[i])
      continue;
    nvf_node n = { .kind = v->kind, .dtype = v->dtype, .rank = v->rank, .dim = z->dim[i], .nin = v->nin, .attr = v->attr,
                   .at = z->at[i], .leaf = v->leaf, .stamp_c = v->stamp_c, .stamp_w = v->stamp_w, .order_free = v->order_free,
                   .frag = v->frag, .init = v->init, .name = v->name, .value = i };
    n.in = NVB_NEWN(a, int, v->nin + 1);
    for (int j = 0; j < v->nin; j++)
      n.in[j] = w.node[v->in[j]];
    if (v->kind == NVG_VLEAF)
      n.stride = z->stride[v->leaf];
    int same = v->kind == NVG_VRESHAPE && same_shape(v, &g->v[v->in[0]]);
    w.node[i] = same ? n.in[0] : v->kind == NVG_VRED ? fold(&w, v, n, whole && whole[i] ? NVF_WHOLE : split, side[i])
              : v->kind == NVG_VPICK ? picked(&w, v, n) : weave(&w, n);
  }
  net->n = w.made.n;
  net->node = w.made.at;
  net->out = NVB_NEWN(a, int, g->nout + 1);
  for (int i = 0; i < g->nout; i++) {
    net->out[i] = w.node[g->out[i]];
    net->node[net->out[i]].out = 1;
  }
  link_users(net);
  return net;
}
