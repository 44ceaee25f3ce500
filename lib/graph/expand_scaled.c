/* Expands scaled_matmul: checks the scales against their operands. If the scales are constant along k, they multiply
   the result of a GEMM of 8-bit floats. If one varies along k, the operands become float32 times their scales, for a
   GEMM with reduced precision (TF32); a solver that supports block scales can still multiply the 8-bit operands. */
#include <string.h>
#include "graph/contraction.h"

enum { BLOCK = 128, ONE_LESS = NVM_MAX_RANK - 1 };
typedef struct scaled {
  nvg_node *x, *scale;
  const char *name;
  int inner; /* the summed dimension of x, counted from the end: 1 or 2 */
} scaled;

static int64_t extent_from_end(const nvg_node *x, int from_end) { return x->aval->shape[x->aval->rank - from_end]; }
static int64_t count_blocks(int64_t n) { return n / BLOCK + (n % BLOCK != 0); }

static int scale_fits(const scaled *s, int from_end) {
  int64_t n = extent_from_end(s->scale, from_end), of = extent_from_end(s->x, from_end),
          whole = from_end != s->inner ? of : 1;
  return n == 1 || n == (from_end > 2 ? of : count_blocks(of)) || n == whole;
}

static int check_scaled(nvg_call *c, const scaled *s) {
  char sx[NVG_SHAPE_TEXT], ss[NVG_SHAPE_TEXT];
  const nvg_aval *x = s->x->aval, *a = s->scale->aval;
  if (!nvg_is_f8(x->dtype))
    return nvg_bad(c, NVM_ERR_TYPE, "%s is of %s, not of a float of 8 bits", s->name, nvg_dtype_name(x->dtype)), 0;
  if (a->dtype != NVM_F32 && !s->scale->weak)
    return nvg_bad(c, NVM_ERR_TYPE, "scale_%s is of %s, not of float32", s->name, nvg_dtype_name(a->dtype)), 0;
  if (nvg_converts(c, a->dtype, NVM_F32)) return 0;
  if (x->rank < 2 || x->rank > ONE_LESS)
    return nvg_bad(c, NVM_ERR_VALUE, "%s has %d dimensions, not 2 to %d", s->name, x->rank, ONE_LESS), 0;
  int good = !a->rank || (a->rank >= 2 && a->rank <= x->rank);
  for (int d = 1; d <= a->rank && good; d++) good = scale_fits(s, d);
  if (good) return 1;
  nvg_shape_text(sx, x->rank, x->shape), nvg_shape_text(ss, a->rank, a->shape);
  int64_t outer = extent_from_end(s->x, 3 - s->inner), all = count_blocks(outer),
          sums = count_blocks(extent_from_end(s->x, s->inner));
  return nvg_bad(c, NVM_ERR_VALUE,
                 "scale_%s of %s does not fit %s of %s: it is one number, or has %lld, %lld or 1 %s "
                 "and %lld or 1 %s",
                 s->name, ss, s->name, sx, (long long)outer, (long long)all, s->inner == 1 ? "rows" : "columns",
                 (long long)sums, s->inner == 1 ? "columns" : "rows"),
         0;
}

/* Repeats each element of dimension d for its block of 128, up to extent `to`. */
static nvg_node *spread_scale(nvg_call *c, nvg_node *s, int d, int64_t to) {
  int64_t shape[NVM_MAX_RANK], n = s ? s->aval->shape[d] : 1;
  if (!s || n == 1 || n == to) return s;
  int rank = s->aval->rank;
  for (int e = 0; e < rank; e++) shape[e + (e > d)] = s->aval->shape[e];
  shape[d + 1] = 1;
  s = nvg_xreshape(c, s, rank + 1, shape);
  shape[d + 1] = BLOCK;
  s = nvg_xexpand(c, s, rank + 1, shape);
  shape[d] *= BLOCK;
  for (int e = d + 1; e < rank; e++) shape[e] = shape[e + 1];
  s = nvg_xreshape(c, s, rank, shape);
  return s ? nvg_xrange(c, s, d, 0, to, 1) : NULL;
}

static int has_vector_scales(const scaled *s) {
  return s->scale->aval->rank && extent_from_end(s->scale, s->inner) > 1;
}

/* Expands a scale to its operand's rows (columns) and, if `wide`, along the summed dimension too, where it first gets
   one value per block of 128. */
static nvg_node *whole_scale(nvg_call *c, const scaled *s, int wide) {
  nvg_node *r = nvg_xcast(c, s->scale, NVM_F32, 1);
  const nvg_aval *a = s->scale->aval;
  int64_t shape[NVM_MAX_RANK];
  int outer = a->rank - 3 + s->inner, inner = a->rank - s->inner;
  if (!a->rank) return r;
  r = spread_scale(c, r, outer, extent_from_end(s->x, 3 - s->inner));
  if (!wide) return r;
  memcpy(shape, a->shape, (size_t)a->rank * sizeof *shape);
  shape[outer] = extent_from_end(s->x, 3 - s->inner);
  shape[inner] = count_blocks(extent_from_end(s->x, s->inner));
  return spread_scale(c, nvg_xexpand(c, r, a->rank, shape), inner, extent_from_end(s->x, s->inner));
}

static nvg_node *one_number(nvg_call *c, nvg_node *s) {
  return s->aval->size == 1 && s->aval->rank == 1 ? nvg_xreshape(c, s, 0, NULL) : s;
}

nvg_node *nvg_make_SCALED_MATMUL(nvg_call *c) {
  scaled s[2] = { { c->in[0], one_number(c, c->in[2]), "a", 1 }, { c->in[1], one_number(c, c->in[3]), "b", 2 } };
  int to;
  if (!s[0].scale || !s[1].scale || nvg_attr_dtype(c, "dtype", NVM_F32, &to) || !check_scaled(c, &s[0]) ||
      !check_scaled(c, &s[1]))
    return NULL;
  if (to != NVM_F32 && to != NVM_F16 && to != NVM_BF16)
    return nvg_bad(c, NVM_ERR_TYPE, "the result is float32, float16 or bfloat16, not %s",
                   nvg_dtype_name((nvm_dtype)to));
  int wide = has_vector_scales(&s[0]) || has_vector_scales(&s[1]), inside[2];
  nvg_gemm_types f = { .in = wide ? NVM_F32 : NVM_F16,
                       .sum = NVM_F32,
                       .out = NVM_F32,
                       .precision = wide ? NVM_PRECISION_TF32 : NVM_PRECISION_IEEE };
  nvg_node *x[2];
  for (int i = 0; i < 2; i++) {
    inside[i] = wide && s[i].scale->aval->size > 1;
    x[i] = wide ? nvg_xcast(c, s[i].x, NVM_F32, 1) : s[i].x;
    if (inside[i]) x[i] = nvg_x2(c, NVG_OP_MULTIPLY, x[i], whole_scale(c, &s[i], 1));
  }
  nvg_node *r = x[0] && x[1] ? nvg_matmul(c, x, &f) : NULL;
  for (int i = 0; i < 2; i++)
    if (!inside[i]) r = nvg_x2(c, NVG_OP_MULTIPLY, r, whole_scale(c, &s[i], 0));
  return nvg_xcast(c, r, (nvm_dtype)to, 1);
}
