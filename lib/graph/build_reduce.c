/* Builds reductions and scans: decides their accumulator dtypes and axes. A node reduces all its axes at once and keeps
   them with extent 1; nvg_simplify decides how they nest and in which order they merge. */
#include <string.h>
#include "graph/infer.h"

/* NumPy's accumulator dtypes: bool and narrow integers are widened to 64 bits. */
static nvm_dtype sum_dtype(nvm_dtype t) {
  nvg_class c = nvg_class_of(t);
  return c == NVG_UNSIGNED ? NVM_U64 : c < NVG_UNSIGNED ? NVM_I64 : t;
}

/* Returns the operand in the dtype that is reduced; NULL with a message. */
static nvg_node *reduced_operand(nvg_call *c) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int t = nvg_rule_in(o->name, o->rule, c->in, 1, c->default_float);
  if (t < 0) return NULL;
  if (o->rule == NVG_RSUM && nvg_attr_dtype(c, "dtype", (int)sum_dtype((nvm_dtype)t), &t)) return NULL;
  if (o->rule == NVG_RSUM && t == NVM_BOOL)
    return nvg_bad(c, NVM_ERR_TYPE, "there are no sums and products in bool; any and all are what they would be");
  if (nvg_converts(c, c->in[0]->aval->dtype, (nvm_dtype)t)) return NULL;
  return nvg_xcast(c, nvg_typed(c), (nvm_dtype)t, 1);
}

nvg_node *nvg_make_reduction(nvg_call *c) {
  const nvg_op_info *o = &nvg_ops[c->op];
  nvg_node *x = reduced_operand(c);
  int64_t keep;
  uint32_t axes;
  int axis = 0, flat = o->rule == NVG_RARG && !nvg_attr_get(c, "axis");
  if (!x || nvg_attr_int(c, "keepdims", 0, &keep)) return NULL;
  if (o->rule == NVG_RARG && !flat) {
    if (nvg_attr_axis(c, "axis", x->aval->rank, 0, &axis)) return NULL;
    axes = 1u << axis;
  } else if (nvg_attr_axes(c, "axis", x->aval->rank, &axes)) return NULL;
  if (!nvg_count_over(x, axes) && o->rule != NVG_RSUM && o->rule != NVG_RLOGIC) return nvg_no_elements(c, x);
  int rank = x->aval->rank;
  if (flat && rank != 1) {
    nvg_node *r = nvg_xreduce(c, c->op, nvg_xreshape(c, x, 1, &x->aval->size), 1, 0);
    int64_t ones[NVM_MAX_RANK];
    for (int d = 0; d < rank; d++) ones[d] = 1;
    return keep ? nvg_xreshape(c, r, rank, ones) : r;
  }
  return nvg_xreduce(c, c->op, x, axes, (int)keep);
}

nvg_node *nvg_make_scan(nvg_call *c) {
  nvg_node *x = reduced_operand(c);
  int64_t initial, shape[NVM_MAX_RANK];
  int axis = 0;
  if (!x || nvg_attr_int(c, "include_initial", 0, &initial)) return NULL;
  int rank = x->aval->rank;
  if (!nvg_attr_get(c, "axis")) {
    if (rank != 1) return nvg_bad(c, NVM_ERR_VALUE, "an array of %d dimensions needs an axis", rank);
  } else if (nvg_attr_axis(c, "axis", rank, 0, &axis)) return NULL;
  int64_t at = axis;
  nvg_node *r = nvg_keep(c, nvg_node_new(c->op, nvg_aval_ref(x->aval), &x, 1, &at, 1));
  if (!initial || !r) return r;
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)rank);
  shape[axis] = 1;
  int one = nvg_ops[c->op].def.init == NVG_INIT_ONE;
  nvg_node *in[2] = { nvg_xexpand(c, nvg_xconst(c, x->aval->dtype, one, one), rank, shape), r };
  return nvg_xjoin(c, in, 2, axis);
}
