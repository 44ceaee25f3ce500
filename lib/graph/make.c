/* Implements the builder of evaluation graphs, their hash, and dead-code elimination. It knows no operation. */
#include "graph/make.h"
#include <string.h>

void nvg_make_init(nvg_make *m, nvb_arena *a) {
  memset(m, 0, sizeof *m);
  m->arena = a;
  m->seen = nvb_map_new(a);
}

int64_t nvg_size_of(int rank, const int64_t *shape) {
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  return n;
}

int nvg_same_shape(const nvg_val *a, const nvg_val *b) {
  return a->rank == b->rank && (!a->rank || !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->rank));
}

/* Counts the identities of a reduction or scan: one for each part of each operand. */
static int count_identities(const nvg_make *m, const nvg_val *v) {
  int n = 0;
  if (v->init)
    for (int i = 0; i < v->nin; i++) n += nvg_parts(m->v.at[v->in[i]].dtype);
  return n;
}

/* Writes the key by which equal values are merged; returns its bytes. */
static size_t key_of(const nvg_make *m, const nvg_val *v, uint64_t *key) {
  size_t n = 0;
  int raw = !v->frag && (v->kind == NVG_VMAP || v->kind == NVG_VRED || v->kind == NVG_VSCAN || v->kind == NVG_VCALL ||
                         v->kind == NVG_VROUTINE || v->kind == NVG_VGATHER || v->kind == NVG_VSCATTER);
  uint64_t op = raw ? (uint64_t)v->op : 0, order = (uint64_t)v->chunk | (uint64_t)v->lanes << 16;
  key[n++] = (uint64_t)v->kind | (uint64_t)v->dtype << 8 | (uint64_t)v->rank << 16 | (uint64_t)v->nin << 24 | op << 48;
  key[n++] = (uint64_t)v->leaf | order << 32 | (uint64_t)v->order_free << 63;
  key[n++] = v->frag ? v->frag->hash.lo : 0;
  key[n++] = v->frag ? v->frag->hash.hi : 0;
  for (int d = 0; d < v->rank; d++) key[n++] = (uint64_t)v->shape[d];
  for (int i = 0; i < v->nattr; i++) key[n++] = (uint64_t)v->attr[i];
  for (int i = 0; i < count_identities(m, v); i++) key[n++] = v->init[i];
  for (int i = 0; i < v->nin; i++) key[n++] = (uint64_t)v->in[i];
  return n * sizeof *key;
}

int nvg_make_add(nvg_make *m, const nvg_val *v) {
  uint64_t small[64];
  int ns = count_identities(m, v), fresh;
  size_t most = 4 + (size_t)(v->rank + v->nattr + ns + v->nin);
  uint64_t *key = most <= 64 ? small : NVB_NEWN(m->arena, uint64_t, most);
  int *at = nvb_map_put(m->seen, key, key_of(m, v, key), &fresh);
  if (!fresh) {
    if (v->narrowed < m->v.at[*at].narrowed) m->v.at[*at].narrowed = v->narrowed; /* the strictest reader wins */
    return *at;
  }
  *at = m->v.n;
  nvg_val c = *v;
  c.size = nvg_size_of(v->rank, v->shape);
  c.shape = nvb_dup(m->arena, v->shape, sizeof *v->shape * (size_t)v->rank);
  c.in = nvb_dup(m->arena, v->in, sizeof *v->in * (size_t)v->nin);
  c.attr = nvb_dup(m->arena, v->attr, sizeof *v->attr * (size_t)v->nattr);
  if (v->init) c.init = nvb_dup(m->arena, v->init, sizeof *v->init * (size_t)ns);
  NVB_PUSH(m->arena, m->v, c);
  return m->v.n - 1;
}

nvg_graph *nvg_make_done(nvg_make *m, const nvg_graph *leaves, const int *out, int nout) {
  nvb_arena *a = m->arena;
  nvg_graph *g = NVB_NEW(a, nvg_graph);
  int *number = NVB_NEWN(a, int, m->v.n + 1);
  uint8_t *live = nvb_get(a, (size_t)m->v.n + 1);
  for (int i = 0; i < nout; i++) live[out[i]] = 1;
  for (int i = m->v.n - 1; i >= 0; i--)
    for (int j = 0; live[i] && j < m->v.at[i].nin; j++) live[m->v.at[i].in[j]] = 1;
  *g = (nvg_graph){ .arena = a,
                    .v = NVB_NEWN(a, nvg_val, m->v.n + 1),
                    .nleaf = leaves->nleaf,
                    .leaf = leaves->leaf,
                    .leaf_node = leaves->leaf_node,
                    .nout = nout,
                    .out = NVB_NEWN(a, int, nout + 1),
                    .out_node = leaves->out_node };
  for (int i = 0; i < m->v.n; i++) {
    if (!live[i]) continue;
    nvg_val *v = &g->v[g->n];
    *v = m->v.at[i];
    int *in = NVB_NEWN(a, int, v->nin + 1);
    for (int j = 0; j < v->nin; j++) in[j] = number[v->in[j]];
    v->in = in;
    number[i] = g->n++;
  }
  for (int i = 0; i < nout; i++) g->out[i] = number[out[i]];
  return g;
}

/* Hashes what a plan depends on, for program keys. Fragments enter by their hash, operations without one by their
   number. */
nvb_hash nvg_graph_hash(const nvg_graph *g) {
  uint64_t small[256], *key = small;
  nvb_hash h = { (uint64_t)g->n, (uint64_t)g->nout };
  nvg_make m = { .v = { .at = g->v, .n = g->n } };
  size_t n = 0;
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    size_t need = 4 + (size_t)(v->rank + v->nattr + 2 * v->nin + v->nin);
    if (n + need > 256) h = nvb_hash_mix(h, key, n * sizeof *key), n = 0;
    if (need <= 256) n += key_of(&m, v, key + n) / sizeof *key;
    else { /* a value with very many operands is hashed in parts */
      uint64_t head[4] = { (uint64_t)v->kind | (uint64_t)v->dtype << 8, (uint64_t)v->nin, (uint64_t)v->op,
                           (uint64_t)v->rank };
      h = nvb_hash_mix(h, head, sizeof head);
      h = nvb_hash_mix(h, v->in, sizeof *v->in * (size_t)v->nin);
      h = nvb_hash_mix(h, v->attr, sizeof *v->attr * (size_t)v->nattr);
      h = nvb_hash_mix(h, v->shape, sizeof *v->shape * (size_t)v->rank);
    }
  }
  h = nvb_hash_mix(h, key, n * sizeof *key);
  for (int i = 0; i < g->nleaf; i++) {
    const nvg_leaf *l = &g->leaf[i];
    uint64_t head[2] = { (uint64_t)l->dtype | (uint64_t)l->rank << 8, (uint64_t)l->align16 | (uint64_t)l->donated << 1 |
                                                                          (uint64_t)l->weak_const << 2 |
                                                                          (uint64_t)l->extreme << 8 };
    h = nvb_hash_mix(h, head, sizeof head);
    h = nvb_hash_mix(h, l->shape, sizeof *l->shape * (size_t)l->rank);
    h = nvb_hash_mix(h, l->stride, sizeof *l->stride * (size_t)l->rank);
  }
  return nvb_hash_mix(h, g->out, sizeof *g->out * (size_t)g->nout);
}
