/* Expands elementwise operations with options into plain ones. */
#include "graph/infer.h"

nvg_node *nvg_make_GELU(nvg_call *c) {
  int64_t approximate;
  if (nvg_attr_int(c, "approximate", 0, &approximate)) return NULL;
  return nvg_x1(c, approximate ? NVG_OP_GELU_TANH : NVG_OP_GELU_ERF, c->in[0]);
}

/* nextafter for floats of 16 bits and less, in wider arithmetic: |x| plus or minus 0.6 |x| 2^(1 - precision) rounds to
   the wanted neighbour, also if |x| is a power of two, below which units in the last place are half as large. */
static nvg_node *next_narrow(nvg_call *c, nvm_dtype t) {
  nvg_node *x = nvg_xcast(c, nvg_xcast(c, c->in[0], t, 1), NVM_F64, 0);
  nvg_node *y = nvg_xcast(c, nvg_xcast(c, c->in[1], t, 1), NVM_F64, 0);
  uint64_t top = nvg_float_bits(t, __builtin_inf());
  nvg_node *zero = nvg_xfloat(c, 0), *most = nvg_xfloat(c, nvg_bits_float(t, nvg_is_f8(t) ? top : top - 1));
  nvg_node *size = nvg_x1(c, NVG_OP_ABS, x), *none = nvg_x2(c, NVG_OP_EQUAL, x, zero);
  nvg_node *part = nvg_x2(c, NVG_OP_MULTIPLY, size, nvg_xfloat(c, 0.6 * __builtin_ldexp(1, 1 - nvg_precision(t))));
  nvg_node *step = nvg_x2(c, NVG_OP_MAXIMUM, part, nvg_xfloat(c, 0.6 * nvg_bits_float(t, 1)));
  nvg_node *down = nvg_x3(c, NVG_OP_WHERE, nvg_x1(c, NVG_OP_ISINF, x), most, nvg_x2(c, NVG_OP_SUBTRACT, size, step));
  nvg_node *outward = nvg_x2(c, NVG_OP_EQUAL, nvg_x2(c, NVG_OP_LESS, x, zero), nvg_x2(c, NVG_OP_LESS, y, x));
  nvg_node *next =
      nvg_x3(c, NVG_OP_WHERE, nvg_x2(c, NVG_OP_LOGICAL_OR, none, outward), nvg_x2(c, NVG_OP_ADD, size, step), down);
  next = nvg_x2(c, NVG_OP_COPYSIGN, next, nvg_x3(c, NVG_OP_WHERE, none, y, x));
  nvg_node *nan = nvg_x2(c, NVG_OP_LOGICAL_OR, nvg_x1(c, NVG_OP_ISNAN, x), nvg_x1(c, NVG_OP_ISNAN, y));
  next = nvg_x3(c, NVG_OP_WHERE, nan, nvg_x2(c, NVG_OP_ADD, x, y), next);
  return nvg_xcast(c, nvg_x3(c, NVG_OP_WHERE, nvg_x2(c, NVG_OP_EQUAL, x, y), y, next), t, 0);
}
nvg_node *nvg_next_narrow(nvg_node *const *in, nvm_dtype t, nvm_dtype default_float) {
  nvg_call c = { .op = NVG_OP_NEXTAFTER, .in = in, .nin = 2, .default_float = default_float, .cap = 24 };
  c.own = c.inl;
  nvg_node *r = nvg_node_ref(next_narrow(&c, t));
  nvg_call_end(&c);
  return r;
}

nvg_node *nvg_make_CLIP(nvg_call *c) {
  nvg_node *x = c->in[0], *given[3];
  int n = 0;
  for (int i = 0; i < 3; i++)
    if (c->in[i]) given[n++] = c->in[i];
  int t = nvg_rule_in("clip", NVG_RREALB, given, n, c->default_float);
  if (t < 0) return NULL;
  x = nvg_xcast(c, x, (nvm_dtype)t, 1);
  if (c->in[1]) x = nvg_x2(c, NVG_OP_MAXIMUM, x, c->in[1]);
  return c->in[2] ? nvg_x2(c, NVG_OP_MINIMUM, x, c->in[2]) : x;
}

nvg_node *nvg_make_ISCLOSE(nvg_call *c) {
  double rtol, atol;
  int64_t nan_too;
  if (nvg_attr_float(c, "rtol", 1e-5, &rtol) || nvg_attr_float(c, "atol", 1e-8, &atol) ||
      nvg_attr_int(c, "equal_nan", 0, &nan_too))
    return NULL;
  int t = nvg_rule_in("isclose", NVG_RFLT, c->in, 2, c->default_float);
  if (t < 0) return NULL;
  nvg_node *a = nvg_xcast(c, c->in[0], nvg_compute_of((nvm_dtype)t), 1),
           *b = nvg_xcast(c, c->in[1], nvg_compute_of((nvm_dtype)t), 1);
  nvg_node *gap = nvg_x1(c, NVG_OP_ABS, nvg_x2(c, NVG_OP_SUBTRACT, a, b)), *size = nvg_x1(c, NVG_OP_ABS, b);
  nvg_node *most = nvg_x2(c, NVG_OP_ADD, nvg_x2(c, NVG_OP_MULTIPLY, size, nvg_xfloat(c, rtol)), nvg_xfloat(c, atol));
  nvg_node *near =
      nvg_x2(c, NVG_OP_LOGICAL_AND, nvg_x2(c, NVG_OP_LESS_EQUAL, gap, most), nvg_x1(c, NVG_OP_ISFINITE, b));
  nvg_node *r = nvg_x2(c, NVG_OP_LOGICAL_OR, near, nvg_x2(c, NVG_OP_EQUAL, a, b));
  if (!nan_too) return r;
  return nvg_x2(c, NVG_OP_LOGICAL_OR, r,
                nvg_x2(c, NVG_OP_LOGICAL_AND, nvg_x1(c, NVG_OP_ISNAN, a), nvg_x1(c, NVG_OP_ISNAN, b)));
}

nvg_node *nvg_make_ASTYPE(nvg_call *c) {
  nvg_node *x = c->in[0];
  int t;
  if (nvg_attr_dtype(c, "dtype", -1, &t)) return NULL;
  if (t < 0) return nvg_bad(c, NVM_ERR_VALUE, "dtype is missing");
  nvg_attr_get(c, "copy"); /* arrays are values: a copy cannot be distinguished from the original */
  nvm_dtype to = (nvm_dtype)t;
  if (x->weak && nvg_weak_fits("astype", x, to)) return NULL;
  x = x->weak && nvg_weak_kind(x) == 'h' ? nvg_xcast(c, x, to, 0) : nvg_typed(c);
  if (!x) return NULL;
  if (nvg_converts(c, x->aval->dtype, to)) return NULL;
  if (x->aval->dtype == to && !nvg_is_narrow(to)) return x;
  return nvg_keep(c, nvg_node_new(NVG_OP_CAST, nvg_aval_as(x->aval, to), &x, 1, NULL, 0));
}
