/* Builds sorts and searches: moves the axis to the end, where a routine does what is wanted of each row. */
#include "graph/infer.h"

/* Applies the routine to the last dimension of x. */
static nvg_node *order_rows(nvg_call *c, nvg_op routine, nvg_node *x, int descending) {
  if (!x) return NULL;
  int64_t attr[2] = { descending, c->op };
  const nvg_aval *a = routine == NVG_OP_ORDER ? nvg_aval_as(x->aval, NVM_I64) : nvg_aval_ref(x->aval);
  return nvg_keep(c, nvg_node_new(routine, a, &x, 1, attr, 2));
}

static nvg_node *sort_along(nvg_call *c, nvg_op routine) {
  nvg_node *x = nvg_typed(c);
  const nvg_op_info *o = &nvg_ops[c->op];
  int64_t descending, stable;
  int axis = 0, flat = nvg_attr_none(c, "axis");
  if (!x || nvg_rule_in(o->name, o->rule, &x, 1, c->default_float) < 0) return NULL;
  if (nvg_attr_int(c, "descending", 0, &descending) || nvg_attr_int(c, "stable", 1, &stable)) return NULL;
  if (flat) x = nvg_xreshape(c, x, 1, &x->aval->size);
  if (!x || (!flat && nvg_attr_axis(c, "axis", x->aval->rank, -1, &axis))) return NULL;
  return nvg_xmove_axis(c, order_rows(c, routine, nvg_xmove_axis(c, x, axis, 0), descending != 0), axis, 1);
}

nvg_node *nvg_make_SORT(nvg_call *c) { return sort_along(c, NVG_OP_SORTED); }
nvg_node *nvg_make_ARGSORT(nvg_call *c) { return sort_along(c, NVG_OP_ORDER); }

/* ---- searches */
static nvg_node *full_of(nvg_call *c, int64_t value, int rank, const int64_t *shape) {
  return nvg_xexpand(c, nvg_xconst(c, NVM_I64, 0, value), rank, shape);
}

nvg_node *nvg_make_FLATNONZERO(nvg_call *c) {
  int64_t size, attr = c->op;
  nvg_node *x = nvg_xcast(c, nvg_typed(c), NVM_BOOL, 0);
  if (!x || nvg_attr_int(c, "size", -1, &size)) return NULL;
  if (size < 0) return nvg_bad(c, NVM_ERR_VALUE, "size must be 0 or more");
  if (!size || !x->aval->size) return full_of(c, x->aval->size, 1, &size);
  if (!(x = nvg_xreshape(c, x, 1, &x->aval->size))) return NULL;
  const nvg_aval *a = nvg_aval_get(NVM_I64, 1, &size);
  return nvg_keep(c, nvg_node_new(NVG_OP_POSITIONS, a, &x, 1, &attr, 1));
}

nvg_node *nvg_make_SEARCHSORTED(nvg_call *c) {
  int64_t attr[2] = { 0, c->op };
  int common = nvg_rule_in(nvg_ops[c->op].name, nvg_ops[c->op].rule, c->in, 2, c->default_float);
  if (common < 0 || nvg_attr_int(c, "right", 0, &attr[0])) return NULL;
  nvm_dtype t = nvg_is_narrow((nvm_dtype)common) ? NVM_F32 : (nvm_dtype)common;
  nvg_node *in[2] = { nvg_xcast(c, c->in[0], t, 0), nvg_xcast(c, c->in[1], t, 0) };
  if (!in[0] || !in[1]) return NULL;
  const nvg_aval *x = in[1]->aval;
  char shape[NVG_SHAPE_TEXT];
  if (in[0]->aval->rank != 1)
    return nvg_bad(c, NVM_ERR_VALUE, "x1 must have one dimension, not shape %s",
                   nvg_shape_text(shape, in[0]->aval->rank, in[0]->aval->shape));
  if (!x->size || !in[0]->aval->size) return full_of(c, 0, x->rank, x->shape);
  if (!(in[1] = nvg_xreshape(c, in[1], 1, &x->size))) return NULL;
  const nvg_aval *a = nvg_aval_get(NVM_I64, 1, &x->size);
  return nvg_xreshape(c, nvg_keep(c, nvg_node_new(NVG_OP_SEARCHED, a, in, 2, attr, 2)), x->rank, x->shape);
}
