/* The signature of a graph: what it has in common with graphs of other sizes that one plan may serve. It decides which
   numbers of a graph are sizes; the facts that planning noted decide which sizes a plan serves beyond its own. */
#include "fusion/planner.h"

typedef struct signer {
  nvb_arena *arena;
  const nvg_graph *g;
  const nvf_sizes *z;
  NVB_VEC(int64_t) word;
} signer;

static void put_word(signer *s, int64_t x) { NVB_PUSH(s->arena, s->word, x); }
static void put_words(signer *s, int n, const int64_t *x) {
  for (int i = 0; i < n; i++) put_word(s, x[i]);
}
static void put_sizes(signer *s, int n, const int *x) { /* products or expressions */
  for (int i = 0; i < n; i++) put_word(s, x[i]);
}

/* The attributes that are no sizes, nor values that each program passes. */
static void put_attributes(signer *s, const nvg_val *v) {
  switch (v->kind) {
  case NVG_VCONST: case NVG_VPAD: return;
  case NVG_VROLL: put_word(s, v->attr[0]); return;
  case NVG_VSLICE:
    for (int d = 0; d < v->rank; d++) put_word(s, v->attr[2 * d + 1]);
    return;
  default: put_words(s, v->nattr, v->attr);
  }
}

static void put_leaf(signer *s, const nvg_leaf *l, const nvf_prod *stride) {
  put_word(s, l->weak_const | l->donated << 1 | (l->donated && l->align16) << 2);
  put_sizes(s, l->rank, stride);
}

static void put_value(signer *s, int id) {
  const nvg_val *v = &s->g->v[id];
  int slots = v->rank > v->nin ? v->rank : v->nin, states = 0;
  for (int i = 0; i < v->nin && v->init; i++) states += nvg_class_of(s->g->v[v->in[i]].dtype) == NVG_COMPLEX ? 2 : 1;
  put_word(s, (int64_t)v->kind | (int64_t)v->op << 8 | (int64_t)v->dtype << 24 | (int64_t)v->rank << 32 |
                  (int64_t)v->narrowed << 40 | (int64_t)v->order_free << 44 | (int64_t)states << 48);
  put_word(s, (int64_t)v->chunk << 32 | v->lanes);
  put_word(s, (int64_t)(intptr_t)v->frag);
  put_word(s, (int64_t)(intptr_t)v->name);
  put_word(s, v->nin);
  for (int i = 0; i < v->nin; i++) put_word(s, v->in[i]);
  for (int i = 0; i < states; i++) put_word(s, (int64_t)v->init[i]);
  put_sizes(s, v->rank, s->z->dim[id]);
  put_sizes(s, slots, s->z->at[id]);
  put_attributes(s, v);
  if (v->kind == NVG_VLEAF) {
    put_word(s, v->leaf);
    put_leaf(s, &s->g->leaf[v->leaf], s->z->stride[v->leaf]);
  }
}

int nvf_size_class(int64_t n) {
  if (!n) return 0;
  uint64_t m = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  return (n < 0 ? 65 : 1) + (m > 1 ? 64 - __builtin_clzll(m - 1) : 0);
}

/* The bytes that come in and go out. */
static int64_t bytes_outside(const nvg_graph *g) {
  int64_t n = 0;
  for (int i = 0; i < g->n; i++) n += g->v[i].kind == NVG_VLEAF ? g->v[i].size * nvg_size(g->v[i].dtype) : 0;
  for (int o = 0; o < g->nout; o++) n += g->v[g->out[o]].size * nvg_size(g->v[g->out[o]].dtype);
  return n;
}

/* Libraries and routines take sizes elsewhere than in a kernel's arguments, and a GPU's schedule follows from more than
   the facts that are noted. */
int nvf_may_serve_others(const nvg_graph *g, const nvb_caps *caps) {
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VCALL || g->v[i].kind == NVG_VROUTINE || !g->v[i].size) return 0;
  return g->nout > 0 && caps->kind == NVB_CPU;
}

int nvf_signature_of(nvf_signature *out, nvb_arena *a, const nvg_graph *g, const nvb_caps *caps) {
  if (!nvf_may_serve_others(g, caps)) return 0;
  signer s = { .arena = a, .g = g, .z = nvf_sizes_of(a, g) };
  out->n = nvf_symbols(s.z->space, &out->size);
  nvb_hash of = nvf_space_hash(s.z->space);
  put_words(&s, 2, (int64_t *)&of);
  for (int i = 0; i < out->n; i++) put_word(&s, nvf_size_class(out->size[i]));
  put_word(&s, bytes_outside(g) >= NVF_TUNED_FROM);
  put_word(&s, g->nleaf);
  put_word(&s, g->nout);
  for (int i = 0; i < g->nout; i++) put_word(&s, g->out[i]);
  for (int i = 0; i < g->n; i++) put_value(&s, i);
  out->key = nvb_hash_bytes(s.word.at, (size_t)s.word.n * sizeof *s.word.at);
  return 1;
}
