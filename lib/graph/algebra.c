/* Value-exact algebra on one elementwise operation: the rewritten result has the same bits (or both are NaN), so it may
   replace the operation anywhere. Powers with small constant exponents are defined here. */
#include <math.h>
#include "graph/lower.h"
#include "graph/infer.h"

static int as_shape(nvg_lower *l, int x, const nvg_val *v) {
  return nvg_same_shape(nvg_at(l, x), v) ? x : nvg_add_full(l, x, v->rank, v->shape);
}

static int apply_frag(nvg_lower *l, const char *frag, int a, int b, const nvg_val *v) {
  int in[2] = { a, b };
  return nvg_add_named(l, frag, nvg_at(l, a)->dtype, in, b < 0 ? 1 : 2, v);
}

static int multiply_values(nvg_lower *l, int a, int b, const nvg_val *v) { return apply_frag(l, "multiply", a, b, v); }

/* sqrt(x), except that pow(-0, 0.5) = +0 and pow(-inf, 0.5) = inf */
static int lower_root(nvg_lower *l, int x, const nvg_val *v) {
  nvm_dtype t = nvg_at(l, x)->dtype;
  int inf = nvg_add_number(l, t, __builtin_inf()), low = nvg_add_number(l, t, -__builtin_inf());
  int r = apply_frag(l, "sqrt", apply_frag(l, "add", x, nvg_add_number(l, t, 0), v), -1, v), eq[2] = { x, low };
  int pick[3] = { nvg_add_named(l, "equal", NVM_BOOL, eq, 2, v), inf, r };
  return nvg_add_named(l, "where", t, pick, 3, v);
}

/* Powers of real numbers by repeated multiplication. No intermediate product overflows or underflows before the power
   does: 1 / x^2 is the square of 1 / x. Returns -1 if there is no rule. */
static int power_real(nvg_lower *l, const nvg_val *v, int x, int e) {
  if (nvg_is_number(l, e, 2)) return multiply_values(l, x, x, v);
  if (nvg_is_number(l, e, 3)) return multiply_values(l, multiply_values(l, x, x, v), x, v);
  if (nvg_is_number(l, e, 4)) return x = multiply_values(l, x, x, v), multiply_values(l, x, x, v);
  if (nvg_class_of(v->dtype) < NVG_FLOAT) return -1;
  if (nvg_is_number(l, e, -1)) return apply_frag(l, "reciprocal", x, -1, v);
  if (nvg_is_number(l, e, -2)) return x = apply_frag(l, "reciprocal", x, -1, v), multiply_values(l, x, x, v);
  if (nvg_is_number(l, e, 0.5)) return lower_root(l, x, v);
  if (nvg_is_number(l, e, -0.5)) return apply_frag(l, "reciprocal", lower_root(l, x, v), -1, v);
  return -1;
}

static int power_complex(nvg_lower *l, const nvg_val *v, int x, int e) {
  if (nvg_is_number(l, e, 2)) return apply_frag(l, "c.power2", x, -1, v);
  if (nvg_is_number(l, e, 3)) return apply_frag(l, "c.power3", x, -1, v);
  if (nvg_is_number(l, e, 4)) return apply_frag(l, "c.power4", x, -1, v);
  return -1;
}

static int lower_power(nvg_lower *l, const nvg_val *v, const int *in) {
  int x = in[0], e = in[1];
  if (nvg_is_number(l, e, 0)) return nvg_add_full(l, nvg_add_number(l, nvg_at(l, x)->dtype, 1), v->rank, v->shape);
  if (nvg_is_number(l, e, 1)) return as_shape(l, x, v);
  return nvg_parts(v->dtype) == 2 ? power_complex(l, v, x, e) : power_real(l, v, x, e);
}

/* Returns the operand whose other side is the neutral constant (NaN: that side has none); -1 if there is none. */
static int without_neutral(nvg_lower *l, const nvg_val *v, const int *in, double left, double right) {
  if (right == right && nvg_is_number(l, in[1], right)) return as_shape(l, in[0], v);
  if (left == left && nvg_is_number(l, in[0], left)) return as_shape(l, in[1], v);
  return -1;
}

static int is_map(const nvg_lower *l, int v, int op) {
  return nvg_at(l, v)->kind == NVG_VMAP && nvg_at(l, v)->op == op && nvg_at(l, v)->nin == 1;
}

/* Returns the constant that a value of f32 or f64 is everywhere; NaN if it is none. */
static double constant_of(const nvg_lower *l, int x) {
  uint64_t bits, rest;
  return nvg_const_of(l, x, &bits, &rest) ? nvg_bits_float(nvg_at(l, x)->dtype, bits) : (double)NAN;
}

static int is_power2(double c) {
  int e;
  return fabs(frexp(c, &e)) == 0.5;
}

/* Computes sign c x + d, where `product` is c x, with one fma. If c is a power of two, the result is that of the two
   operations: the product is exact, unless it underflows, when the sum is d either way, or overflows, when the sum is
   infinite either way. The bounds on d ensure this. Returns -1 if it does not apply. */
static int scaled_sum(nvg_lower *l, const nvg_val *v, int product, double sign, double d) {
  nvm_dtype t = nvg_compute_of(v->dtype);
  const nvg_val p = *nvg_at(l, product);
  const double most = t == NVM_F64 ? 0x1p900 : 0x1p90;
  if (p.kind != NVG_VMAP || p.op != NVG_OP_MULTIPLY || p.nin != 2 || p.dtype != t) return -1;
  if (!(fabs(d) >= 1 / most && fabs(d) <= most)) return -1;
  for (int i = 0; i < 2; i++) {
    double c = constant_of(l, p.in[i]);
    if (!is_power2(c)) continue;
    int in[3] = { p.in[!i], nvg_add_number(l, t, sign * c), nvg_add_number(l, t, d) };
    return nvg_add_named(l, "fma", t, in, 3, v);
  }
  return -1;
}

/* Rewrites left in[0] + right in[1], if one operand is a constant and the other one a product with a constant. */
static int lower_sum(nvg_lower *l, const nvg_val *v, const int *in, double left, double right) {
  nvm_dtype t = nvg_compute_of(v->dtype);
  if (t != NVM_F32 && t != NVM_F64) return -1;
  int r = scaled_sum(l, v, in[0], left, right * constant_of(l, in[1]));
  return r >= 0 ? r : scaled_sum(l, v, in[1], right, left * constant_of(l, in[0]));
}

static int add_relu(nvg_lower *l, int x) { /* adds relu(x), with that op and name */
  int op = l->op;
  const char *name = l->name;
  l->op = NVG_OP_RELU, l->name = "relu";
  int r = nvg_add_named(l, "relu", nvg_at(l, x)->dtype, &x, 1, nvg_at(l, x));
  l->op = op, l->name = name;
  return r;
}

/* Rewrites x > 0, in any of its four forms, for an x whose relu is wanted too, as a comparison of the relu, so that x
   itself need not be stored: a training step then keeps of a layer only what the next layer reads. Returns -1 if it
   does not apply. */
static int lower_positive(nvg_lower *l, const nvg_val *v, const int *in) {
  int side = v->op == NVG_OP_LESS || v->op == NVG_OP_GREATER_EQUAL, from = v->in[side], to[2] = { in[0], in[1] };
  if (!l->clipped[from] || !nvg_is_number(l, in[!side], 0)) return -1;
  to[side] = nvg_wide(l, nvg_add_cast(l, add_relu(l, nvg_wide(l, l->rep[from])), l->g->v[from].dtype));
  return nvg_add_named(l, nvg_ops[v->op].def.frag, v->dtype, to, 2, v);
}

int nvg_rewrite(nvg_lower *l, const nvg_val *v, const int *in) {
  const double none = __builtin_nan("");
  int floats = nvg_class_of(v->dtype) >= NVG_FLOAT, pairs = nvg_parts(v->dtype) == 2, left;
  uint64_t bit, rest;
  switch (v->op) {
  case NVG_OP_ADD:
    if (v->dtype == NVM_BOOL || pairs) return -1;
    left = without_neutral(l, v, in, floats ? -0.0 : 0, floats ? -0.0 : 0);
    return left >= 0 ? left : lower_sum(l, v, in, 1, 1);
  case NVG_OP_SUBTRACT:
    if (pairs) return -1;
    left = without_neutral(l, v, in, none, 0);
    return left >= 0 ? left : lower_sum(l, v, in, 1, -1);
  case NVG_OP_MULTIPLY: return v->dtype == NVM_BOOL || pairs ? -1 : without_neutral(l, v, in, 1, 1);
  case NVG_OP_DIVIDE: return pairs ? -1 : without_neutral(l, v, in, none, 1);
  case NVG_OP_POW: return lower_power(l, v, in);
  case NVG_OP_MAXIMUM:
    return v->dtype == NVM_BOOL || !nvg_is_number(l, in[1], 0) ? -1 : as_shape(l, add_relu(l, in[0]), v);
  case NVG_OP_LESS:
  case NVG_OP_LESS_EQUAL:
  case NVG_OP_GREATER:
  case NVG_OP_GREATER_EQUAL: return lower_positive(l, v, in);
  case NVG_OP_NEGATIVE:
    return is_map(l, in[0], NVG_OP_NEGATIVE) && nvg_same_shape(nvg_at(l, in[0]), nvg_at(l, nvg_at(l, in[0])->in[0]))
               ? nvg_at(l, in[0])->in[0]
               : -1;
  case NVG_OP_LOGICAL_NOT: return is_map(l, in[0], NVG_OP_LOGICAL_NOT) ? as_shape(l, nvg_at(l, in[0])->in[0], v) : -1;
  case NVG_OP_WHERE: return nvg_const_of(l, in[0], &bit, &rest) ? as_shape(l, in[bit ? 1 : 2], v) : -1;
  default: return -1;
  }
}
