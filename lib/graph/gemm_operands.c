/* Rewrites GEMMs for devices that cannot multiply their operands directly, or not as fast: copies operands to be
   K-major, and turns GEMMs of int8 into GEMMs of floats (numerics.md section 4), in float32 or float64, whichever holds
   every sum exactly, of which the low 32 bits are kept. The planner, which knows the device, decides which GEMMs are
   rewritten. */
#include <string.h>
#include "graph/contraction.h"
#include "graph/lower.h"

int nvg_of_bytes(const nvg_graph *g, const nvg_val *v) {
  return v->kind == NVG_VCALL && g->v[v->in[0]].dtype == NVM_I8;
}

/* Converts an operand to a float dtype, below a broadcast. */
static int as_float(nvg_lower *l, int x, nvm_dtype t) {
  const nvg_val v = *nvg_at(l, x);
  if (v.kind == NVG_VEXPAND) return nvg_add_expand(l, as_float(l, v.in[0], t), v.rank, v.shape);
  return nvg_add_cast(l, x, t);
}

static int product_of_floats(nvg_lower *l, const nvg_val *v) {
  const nvg_val *a = nvg_at(l, v->in[0]);
  nvm_dtype t = nvg_exact_in(NVM_I8, a->shape[a->rank - 1]);
  nvg_val c = *v;
  l->name = "cast";
  int in[2] = { as_float(l, v->in[0], t), as_float(l, v->in[1], t) };
  int64_t attr[2] = { t, NVM_PRECISION_IEEE };
  c.dtype = t;
  c.in = in;
  c.attr = attr;
  int sum = nvg_make_add(&l->make, &c);
  return nvg_add_cast(l, t == NVM_F32 ? sum : nvg_add_cast(l, sum, NVM_I64), NVM_I32);
}

/* Exchanges the last two dimensions. */
static int transposed_operand(nvg_lower *l, int x) {
  int64_t axes[NVM_MAX_RANK];
  int r = nvg_at(l, x)->rank;
  for (int d = 0; d < r; d++) axes[d] = d < r - 2 ? d : 2 * r - 3 - d;
  return nvg_add_permute(l, x, axes);
}

/* Copies a left (right) operand, below a broadcast over batches, so that its rows (columns) are contiguous. */
static int copy_along(nvg_lower *l, int x, int right) {
  const nvg_val v = *nvg_at(l, x), *from = v.nin ? nvg_at(l, v.in[0]) : NULL;
  if (v.kind == NVG_VEXPAND && !memcmp(from->shape + v.rank - 2, v.shape + v.rank - 2, 2 * sizeof *v.shape))
    return nvg_add_expand(l, copy_along(l, v.in[0], right), v.rank, v.shape);
  return right ? transposed_operand(l, nvg_add_copy(l, transposed_operand(l, x))) : nvg_add_copy(l, x);
}

static int with_operands(nvg_lower *l, int value, const nvg_val *v, int *in, const void *ways) {
  const uint8_t *how = ways;
  for (int side = 0; side < 2; side++)
    if (how[value] & (side ? NVG_TRANSPOSE_RIGHT : NVG_TRANSPOSE_LEFT)) in[side] = copy_along(l, in[side], side);
  return how[value] & NVG_AS_FLOATS ? product_of_floats(l, v) : nvg_make_add(&l->make, v);
}

nvg_graph *nvg_with_operands(nvb_arena *a, const nvg_graph *g, const uint8_t *how) {
  return nvg_made_anew(a, g, with_operands, how);
}
