/* Splits GEMMs of float32 with reduced precision into bfloat16 (numerics.md section 4): each operand becomes its terms
   concatenated along k, so that one GEMM, several times as long in k, computes all products, from the smallest to the
   greatest. The planner, which knows the device, decides which GEMMs are split. */
#include <string.h>
#include "graph/lower.h"

enum { LEFT, RIGHT, MOST = 6 };

/* The terms that are multiplied with each other, of the left and of the right operand. Infinities and NaN are in the
   last pair only: in any other pair they would be multiplied by 0, or by a term of the other sign. */
static const struct order {
  int n;
  const char *term[2][MOST];
} orders[NVM_NPRECISIONS] = {
  [NVM_PRECISION_BF16X3] = { 3,
                             { { "bf16.second", "bf16.finite", "bf16.first" },
                               { "bf16.finite", "bf16.second", "bf16.first" } } },
  /* products of terms that are at most 2^-25 of the whole product are left out */
  [NVM_PRECISION_BF16X9] = { 6,
                             { { "bf16.third", "bf16.finite", "bf16.second", "bf16.second", "bf16.finite",
                                 "bf16.first" },
                               { "bf16.finite", "bf16.third", "bf16.second", "bf16.finite", "bf16.second",
                                 "bf16.first" } } },
};

int nvg_bf16_terms(const nvg_graph *g, const nvg_val *v) {
  return v->kind == NVG_VCALL && g->v[v->in[0]].dtype == NVM_F32 && v->size ? orders[v->attr[1]].n : 0;
}

/* Returns the dimension of a reshape's operand that equals its dimension d; -1 if there is none. */
static int same_dimension(const nvg_val *x, const nvg_val *v, int d) {
  int64_t before = nvg_size_of(d, v->shape), n = 1;
  for (int e = 0; e < x->rank; n *= x->shape[e++])
    if (n == before && x->shape[e] == v->shape[d]) return e;
  return -1;
}

/* Concatenates the terms of x along dimension d. The terms are made below views that move or repeat elements, so that
   memory is read once and in its own order. */
static int split_operand(nvg_lower *l, int x, int d, const struct order *o, int side) {
  const nvg_val v = *nvg_at(l, x), *from = v.nin ? nvg_at(l, v.in[0]) : NULL;
  int64_t shape[NVM_MAX_RANK];
  int at = v.kind == NVG_VRESHAPE ? same_dimension(from, &v, d) : -1, in[MOST];
  memcpy(shape, v.shape, (size_t)v.rank * sizeof *shape);
  shape[d] *= o->n;
  if (v.kind == NVG_VPERMUTE) return nvg_add_permute(l, split_operand(l, v.in[0], (int)v.attr[d], o, side), v.attr);
  if (v.kind == NVG_VEXPAND && from->shape[d] == v.shape[d])
    return nvg_add_expand(l, split_operand(l, v.in[0], d, o, side), v.rank, shape);
  if (at >= 0) return nvg_add_reshape(l, split_operand(l, v.in[0], at, o, side), v.rank, shape);
  for (int i = 0; i < o->n; i++) {
    l->name = o->term[side][i];
    in[i] = nvg_add_named(l, l->name, NVM_BF16, &x, 1, &v);
  }
  l->name = "concat";
  int64_t axis = d;
  nvg_val c = { .kind = NVG_VCONCAT,
                .dtype = NVM_BF16,
                .rank = v.rank,
                .shape = shape,
                .nin = o->n,
                .in = in,
                .attr = &axis,
                .nattr = 1 };
  return nvg_add(l, &c);
}

static int split_maybe(nvg_lower *l, int value, const nvg_val *v, int *in, const void *how) {
  const uint8_t *which = how;
  for (int side = LEFT; side <= RIGHT && which[value]; side++)
    in[side] = split_operand(l, in[side], v->rank - (side == LEFT ? 1 : 2), &orders[v->attr[1]], side);
  return nvg_make_add(&l->make, v);
}

nvg_graph *nvg_split_bf16(nvb_arena *a, const nvg_graph *g, const uint8_t *which) {
  return nvg_made_anew(a, g, split_maybe, which);
}
