/* Builds arrays without operands, from constants and coordinates. Each value is computed where it is used, so such an
   array takes no memory until it is read as a whole. */
#include <math.h>
#include <string.h>
#include "graph/infer.h"

/* Returns the class of a number given as an attribute; -1 with a message if it is no number. */
static int number_class(nvg_call *c, const nvg_attr *a, const char *name) {
  switch (a ? a->kind : 'i') {
  case 'b': return NVG_BOOLEAN;
  case 'i': return NVG_SIGNED;
  case 'f': return NVG_FLOAT;
  case 'c': return NVG_COMPLEX;
  default: nvg_bad(c, NVM_ERR_TYPE, "%s must be a number", name); return -1;
  }
}

/* Returns a number attribute as a weak scalar; `def` if it is absent. */
static nvg_node *read_number(nvg_call *c, const char *name, int64_t def) {
  const nvg_attr *a = nvg_attr_get(c, name);
  int k = number_class(c, a, name);
  if (k < 0) return NULL;
  double im = 0;
  if (k == NVG_COMPLEX) memcpy(&im, &a->i, sizeof im);
  return nvg_keep(c, nvg_weak(a ? a->kind : 'i', a ? a->f : 0, im, a ? a->i : def));
}

/* Converts a weak scalar to a requested dtype: a float is truncated to an integer, as astype does. */
static nvg_node *as_dtype(nvg_call *c, nvg_node *v, nvm_dtype t) {
  if (!v || nvg_converts(c, v->aval->dtype, t)) return NULL;
  int cut = v->aval->dtype == NVM_F64 && nvg_class_of(t) < NVG_FLOAT;
  return nvg_xcast(c, cut ? nvg_xcast(c, v, NVM_F64, 1) : v, t, 1);
}

nvg_node *nvg_fill_attr(nvg_call *c, const char *name, nvm_dtype t) { return as_dtype(c, read_number(c, name, 0), t); }

/* Broadcasts v to the attributes shape and dtype. */
static nvg_node *build_full(nvg_call *c, nvg_node *v, int def) {
  int64_t shape[NVM_MAX_RANK];
  int rank, t;
  if (!v || nvg_attr_ints(c, "shape", NVM_MAX_RANK, shape, &rank) || nvg_attr_dtype(c, "dtype", def, &t)) return NULL;
  if (rank < 0) return nvg_bad(c, NVM_ERR_VALUE, "shape is missing");
  return nvg_xexpand(c, as_dtype(c, v, (nvm_dtype)t), rank, shape);
}

static nvg_node *build_like(nvg_call *c, nvg_node *v) {
  nvg_node *x = c->in[0];
  int t;
  if (!v || nvg_attr_dtype(c, "dtype", (int)nvg_dtype_in(x, c->default_float), &t)) return NULL;
  return nvg_xexpand(c, as_dtype(c, v, (nvm_dtype)t), x->aval->rank, x->aval->shape);
}

nvg_node *nvg_make_FULL(nvg_call *c) {
  nvg_node *v = read_number(c, "fill_value", 0);
  return v ? build_full(c, v, (int)nvg_dtype_in(v, c->default_float)) : NULL;
}
nvg_node *nvg_make_ZEROS(nvg_call *c) { return build_full(c, nvg_xint(c, 0), (int)c->default_float); }
nvg_node *nvg_make_ONES(nvg_call *c) { return build_full(c, nvg_xint(c, 1), (int)c->default_float); }
nvg_node *nvg_make_FULL_LIKE(nvg_call *c) { return build_like(c, read_number(c, "fill_value", 0)); }
nvg_node *nvg_make_ZEROS_LIKE(nvg_call *c) { return build_like(c, nvg_xint(c, 0)); }
nvg_node *nvg_make_ONES_LIKE(nvg_call *c) { return build_like(c, nvg_xint(c, 1)); }

nvg_node *nvg_make_EYE(nvg_call *c) {
  int64_t shape[2], k;
  int t;
  if (nvg_attr_int(c, "n_rows", -1, &shape[0]) || nvg_attr_int(c, "n_cols", shape[0], &shape[1]) ||
      nvg_attr_int(c, "k", 0, &k) || nvg_attr_dtype(c, "dtype", (int)c->default_float, &t))
    return NULL;
  if (shape[0] < 0 || shape[1] < 0) return nvg_bad(c, NVM_ERR_VALUE, "n_rows and n_cols must be 0 or more");
  nvg_node *off = nvg_x2(c, NVG_OP_SUBTRACT, nvg_xiota(c, 2, shape, 1), nvg_xiota(c, 2, shape, 0));
  return nvg_xcast(c, nvg_x2(c, NVG_OP_EQUAL, off, nvg_xint(c, k)), (nvm_dtype)t, 1);
}

/* Computes start + i * step for n elements in float64, complex128 or int64, and rounds to t at the end. */
static nvg_node *build_ramp(nvg_call *c, nvg_node *start, nvg_node *step, int64_t n, nvm_dtype t) {
  if (!start || !step) return NULL;
  nvg_node *two[2] = { start, step }, *i = nvg_xiota(c, 1, &n, 0);
  nvm_dtype w = nvg_common(two, 2, NVM_F64);
  nvg_node *at = nvg_x2(c, NVG_OP_MULTIPLY, nvg_xcast(c, i, w, 1), step);
  return nvg_xcast(c, nvg_x2(c, NVG_OP_ADD, at, start), t, 1);
}

static double as_double(const nvg_attr *a, double def) { return !a ? def : a->kind == 'f' ? a->f : (double)a->i; }

static int64_t steps_between(int64_t a, int64_t b, int64_t step) { /* ceil((b - a) / step), at least 0 */
  if (step > 0 ? b <= a : b >= a) return 0;
  uint64_t gap = step > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;
  uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t n = (gap - 1) / by + 1;
  return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

nvg_node *nvg_make_ARANGE(nvg_call *c) {
  const nvg_attr *a = nvg_attr_get(c, "start"), *b = nvg_attr_get(c, "stop"), *s = nvg_attr_get(c, "step");
  int ka = number_class(c, a, "start"), kb = number_class(c, b, "stop"), ks = number_class(c, s, "step"), t;
  if (ka < 0 || kb < 0 || ks < 0) return NULL;
  if (ka == NVG_COMPLEX || kb == NVG_COMPLEX || ks == NVG_COMPLEX)
    return nvg_bad(c, NVM_ERR_TYPE, "takes real numbers");
  if (!a) return nvg_bad(c, NVM_ERR_VALUE, "start is missing");
  int floats = ka == NVG_FLOAT || kb == NVG_FLOAT || ks == NVG_FLOAT;
  if (nvg_attr_dtype(c, "dtype", (int)(floats ? c->default_float : NVM_I64), &t)) return NULL;
  if (t == NVM_BOOL) return nvg_bad(c, NVM_ERR_TYPE, "does not make bool");
  if (!b) b = a, a = NULL;
  if (as_double(s, 1) == 0) return nvg_bad(c, NVM_ERR_VALUE, "step is zero");
  double len = floats ? ceil((as_double(b, 0) - as_double(a, 0)) / as_double(s, 1)) : 0;
  if (!(len < 9e18)) return nvg_bad(c, NVM_ERR_VALUE, "the range is not finite");
  int64_t n = floats ? (len > 0 ? (int64_t)len : 0) : steps_between(a ? a->i : 0, b->i, s ? s->i : 1);
  nvg_node *start = floats ? nvg_xfloat(c, as_double(a, 0)) : nvg_xint(c, a ? a->i : 0);
  return build_ramp(c, start, floats ? nvg_xfloat(c, as_double(s, 1)) : nvg_xint(c, s ? s->i : 1), n, (nvm_dtype)t);
}

nvg_node *nvg_make_LINSPACE(nvg_call *c) {
  int64_t n, end;
  int t;
  nvg_node *a = read_number(c, "start", 0), *b = read_number(c, "stop", 0);
  if (!a || !b || nvg_attr_int(c, "num", -1, &n) || nvg_attr_int(c, "endpoint", 1, &end)) return NULL;
  if (n < 0) return nvg_bad(c, NVM_ERR_VALUE, "num must be 0 or more");
  int is_complex = a->aval->dtype == NVM_C128 || b->aval->dtype == NVM_C128;
  nvm_dtype w = is_complex ? NVM_C128 : NVM_F64, def = is_complex ? nvg_complex_of(c->default_float) : c->default_float;
  if (nvg_attr_dtype(c, "dtype", (int)def, &t)) return NULL;
  a = nvg_xcast(c, a, w, 1);
  b = nvg_xcast(c, b, w, 1);
  int64_t parts = end ? n - 1 : n;
  nvg_node *step =
      nvg_x2(c, NVG_OP_DIVIDE, nvg_x2(c, NVG_OP_SUBTRACT, b, a), nvg_xfloat(c, parts > 0 ? (double)parts : 1));
  nvg_node *r = build_ramp(c, a, step, n, w);
  if (end && n > 1)
    r = nvg_x3(c, NVG_OP_WHERE, nvg_x2(c, NVG_OP_EQUAL, nvg_xiota(c, 1, &n, 0), nvg_xint(c, n - 1)), b, r);
  nvm_dtype to = (nvm_dtype)t;
  if (nvg_class_of(to) < NVG_FLOAT && w == NVM_F64) r = nvg_x1(c, NVG_OP_FLOOR, r);
  return nvg_converts(c, w, to) ? NULL : nvg_xcast(c, r, to, 1);
}
