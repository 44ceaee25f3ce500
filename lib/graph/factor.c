/* Numbers that a matrix product, or what is added to one, is multiplied by. A factor of 0 means what BLAS says of its
   alpha and beta, whoever computes it: what it multiplies is not looked at, and NaN in there does not travel
   (docs/numerics.md, section 4). Of a number that is known now nothing is left; one that is given with each call
   multiplies by the fragment `times`. */
#include <math.h>
#include "graph/lower.h"

enum { NONE, ALONE, ADDED }; /* what a value has of a product: its elements times a number, or as a term */

static int is_float(const nvg_val *v) { return nvg_class_of(v->dtype) >= NVG_FLOAT; }

static int is_number(const nvg_graph *g, int i) {
  const nvg_val *v = &g->v[i];
  while (v->kind == NVG_VEXPAND || v->kind == NVG_VRESHAPE || (v->kind == NVG_VMAP && v->op == NVG_OP_CAST))
    v = &g->v[v->in[0]];
  return v->kind == NVG_VCONST || (v->kind == NVG_VLEAF && g->leaf[v->leaf].weak_const);
}

static uint8_t of_map(const nvg_graph *g, const nvg_val *v, const uint8_t *is) {
  int a = v->in[0], b = v->in[v->nin - 1];
  switch (v->op) {
  case NVG_OP_CAST: return nvg_class_of(v->dtype) == nvg_class_of(g->v[a].dtype) ? is[a] : NONE;
  case NVG_OP_NEGATIVE: return is[a];
  case NVG_OP_MULTIPLY:
    return (is[a] == ALONE && is_number(g, b)) || (is[b] == ALONE && is_number(g, a)) ? ALONE : NONE;
  case NVG_OP_DIVIDE: return is[a] == ALONE && is_number(g, b) ? ALONE : NONE;
  case NVG_OP_ADD: case NVG_OP_SUBTRACT: return is[a] || is[b] ? ADDED : NONE;
  default: return NONE;
  }
}

const uint8_t *nvg_products(nvb_arena *a, const nvg_graph *g) {
  uint8_t *is = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int moves = v->kind == NVG_VRESHAPE || v->kind == NVG_VPERMUTE || v->kind == NVG_VSLICE;
    if (is_float(v))
      is[i] = v->kind == NVG_VCALL ? ALONE : moves ? is[v->in[0]] : v->kind == NVG_VMAP ? of_map(g, v, is) : NONE;
  }
  return is;
}

/* A real number that is given with each call, in whatever dtype it is used. */
static int is_given(const nvg_lower *l, int x) {
  const nvg_val *v = nvg_at(l, x);
  if (nvg_class_of(v->dtype) != NVG_FLOAT) return 0;
  while (v->kind == NVG_VEXPAND || v->kind == NVG_VRESHAPE || (v->kind == NVG_VMAP && v->op == NVG_OP_CAST))
    v = nvg_at(l, v->in[0]);
  return v->kind == NVG_VLEAF && l->g->leaf[v->leaf].weak_const;
}

static int is_zero(const nvg_lower *l, int x) { return nvg_is_number(l, x, 0) || nvg_is_number(l, x, -0.0); }

/* number * x; -1: it is not for us to say. */
static int times(nvg_lower *l, int number, int x, const nvg_val *like) {
  nvm_dtype t = nvg_at(l, x)->dtype;
  int in[2] = { number, x };
  if (is_zero(l, number)) return nvg_add_full(l, nvg_add_number(l, t, 0), like->rank, like->shape);
  return is_given(l, number) ? nvg_add_named(l, "times", t, in, 2, like) : -1;
}

/* What is added to a product, or taken from it. */
static int term(nvg_lower *l, int x) {
  const nvg_val p = *nvg_at(l, x);
  int op = l->op, r = -1;
  const char *name = l->name;
  if (p.kind != NVG_VMAP || p.op != NVG_OP_MULTIPLY || p.nin != 2) return x;
  l->op = p.op, l->name = p.name;
  for (int side = 0; side < 2 && r < 0; side++) r = times(l, p.in[side], p.in[!side], &p);
  l->op = op, l->name = name;
  return r < 0 ? x : r;
}

int nvg_factor(nvg_lower *l, const nvg_val *v, int *in) {
  const uint8_t *is = l->products;
  int r = -1, sum = v->op == NVG_OP_ADD || v->op == NVG_OP_SUBTRACT;
  if (!is_float(v) || v->nin != 2) return -1;
  for (int side = 0; side < 2 && r < 0 && v->op == NVG_OP_MULTIPLY; side++)
    if (is[v->in[!side]] == ALONE) r = times(l, in[side], in[!side], v);
  for (int side = 0; side < 2 && sum; side++) {
    int t = is[v->in[!side]] ? term(l, in[side]) : in[side];
    if (t == in[side]) continue;
    in[side] = t;
    if (is_zero(l, t) && (side || v->op == NVG_OP_ADD) && nvg_same_shape(nvg_at(l, in[!side]), v)) return in[!side];
  }
  return r;
}
