/* Builds sorts: moves the axis to the end, where a routine sorts each row. */
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
