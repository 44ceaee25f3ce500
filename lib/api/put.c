/* Writes through indices that are numbers and 0-d arrays, in a trace: x[i] = v, x[i, j] = v. Builds the array anew as
   an elementwise choice, and notes what was written where, so that a loop can store it in place instead. Never decides
   whether it does. */
#include <string.h>
#include "api/loop.h"
#include "graph/infer.h"

/* Applies an operation; takes the operands, and NULL among them gives NULL. */
static nvg_node *apply(nvg_op op, int n, nvg_node *a, nvg_node *b, nvg_node *c, const nvg_attr *attr, int nattr) {
  nvg_node *in[3] = { a, b, c }, *r = NULL;
  int ok = 1;
  for (int i = 0; i < n; i++) ok &= in[i] != NULL;
  if (ok) r = nvg_apply(op, in, n, attr, nattr, NVM_F64);
  for (int i = 0; i < n; i++) nvg_node_unref(in[i]);
  return r;
}
static nvg_node *with_shape(nvg_op op, nvg_node *x, int rank, const int64_t *shape) {
  nvg_attr at = { .name = "shape", .kind = 'I', .is = shape, .n = rank };
  return apply(op, 1, x, NULL, NULL, &at, 1);
}
static nvg_node *with_dtype(nvg_node *x, nvm_dtype t) {
  nvg_attr at = { .name = "dtype", .kind = 'd', .i = t };
  return apply(NVG_OP_ASTYPE, 1, x, NULL, NULL, &at, 1);
}
static nvg_node *count_to(int64_t n) { /* 0, 1, ... n - 1 */
  nvg_attr at[2] = { { .name = "start", .kind = 'i', .i = 0 }, { .name = "stop", .kind = 'i', .i = n } };
  return apply(NVG_OP_ARANGE, 0, NULL, NULL, NULL, at, 2);
}

/* Is it a 0-d integer that int64 holds? */
static int is_whole(const nvg_node *n) {
  nvm_dtype t = n->aval->dtype;
  return !n->aval->rank && t != NVM_U64 && (nvg_class_of(t) == NVG_SIGNED || nvg_class_of(t) == NVG_UNSIGNED);
}
/* The index as a 0-d int64 node. NULL: a failure, or it is no such index and *other is set. */
static nvg_node *index_node(const nvm_index *k, int64_t extent, int *other) {
  if (!k->at) {
    if (k->number >= -extent && k->number < extent) return nvg_const(NVM_I64, 0, 0, k->number);
    nvb_fail(NVM_ERR_INDEX, "[setitem] index %lld is out of range for axis %d of extent %lld", (long long)k->number,
             k->message_axis, (long long)extent);
    return NULL;
  }
  nvg_node *n = k->at == &nva_none ? NULL : nva_node(k->at);
  if (n && !is_whole(n)) return *other = 1, NULL;
  return n ? with_dtype(nvg_node_ref(n), NVM_I64) : NULL;
}
/* Where coordinate `axis` is the index `at`, which is checked: a mask of extent 1 in the other dimensions. */
static nvg_node *mask_along(const nvg_node *x, const nvm_index *k, nvg_node *at) {
  int64_t shape[NVM_MAX_RANK], one = 1, extent = x->aval->shape[k->axis];
  for (int d = 0; d < x->aval->rank; d++) shape[d] = d == k->axis ? extent : 1;
  nvg_attr along[2] = { { .name = "axis", .kind = 'i', .i = 0 }, { .name = "of", .kind = 'i', .i = k->message_axis } };
  nvg_node *position =
      apply(NVG_OP_SETITEM, 2, count_to(extent), with_shape(NVG_OP_RESHAPE, nvg_node_ref(at), 1, &one), NULL, along, 2);
  return apply(NVG_OP_EQUAL, 2, with_shape(NVG_OP_RESHAPE, count_to(extent), x->aval->rank, shape), position, NULL,
               NULL, 0);
}
/* What is written, in the dtype of x and the shape of the elements that the indices leave. */
static nvg_node *value_for(const nvg_node *x, int n, const nvm_index *at, nvg_node *v) {
  int64_t shape[NVM_MAX_RANK];
  int rank = 0;
  for (int d = 0, i = 0; d < x->aval->rank; d++)
    if (i < n && at[i].axis == d) i++;
    else shape[rank++] = x->aval->shape[d];
  return with_shape(NVG_OP_BROADCAST_TO, with_dtype(nvg_node_ref(v), x->aval->dtype), rank, shape);
}
static nvg_node *spread_value(const nvg_node *x, int n, const nvm_index *at, nvg_node *value) { /* extents 1 added */
  int64_t shape[NVM_MAX_RANK];
  for (int d = 0, i = 0; d < x->aval->rank; d++) shape[d] = i < n && at[i].axis == d ? (i++, 1) : x->aval->shape[d];
  return with_shape(NVG_OP_RESHAPE, nvg_node_ref(value), x->aval->rank, shape);
}

typedef struct putting { nvg_node *index[NVM_MAX_RANK], *value, *whole; int n; } putting;
static void end_putting(putting *p) {
  while (p->n) nvg_node_unref(p->index[--p->n]);
  nvg_node_unref(p->value);
  nvg_node_unref(p->whole);
}
/* Builds x with the elements replaced. Returns a status; *other: the indices are no numbers or 0-d arrays. */
static int build_put(putting *p, nvg_node *x, int n, const nvm_index *at, nvg_node *v, int *other) {
  nvg_node *mask = NULL;
  for (; p->n < n; p->n++)
    if (at[p->n].axis >= x->aval->rank || (p->n && at[p->n].axis <= at[p->n - 1].axis)) return *other = 1, NVM_OK;
    else if (!(p->index[p->n] = index_node(&at[p->n], x->aval->shape[at[p->n].axis], other)))
      return *other ? NVM_OK : nvb_status();
  if (!(p->value = value_for(x, n, at, v))) return nvb_status();
  for (int i = 0; i < n; i++) {
    nvg_node *along = mask_along(x, &at[i], p->index[i]);
    mask = i ? apply(NVG_OP_LOGICAL_AND, 2, mask, along, NULL, NULL, 0) : along;
  }
  p->whole = apply(NVG_OP_WHERE, 3, mask, spread_value(x, n, at, p->value), nvg_node_ref(x), NULL, 0);
  return p->whole ? NVM_OK : nvb_status();
}
static int note_put(const putting *p, nvg_node *x, int n, const nvm_index *at) {
  nva_put put = { .whole = p->whole, .base = x, .value = p->value, .n = n };
  if (n > NVA_LEADING) return NVM_OK;
  for (int i = 0; i < n; i++) {
    if (at[i].axis != i) return NVM_OK;
    put.at[i] = p->index[i];
  }
  return nva_trace_add_put(&put);
}
int nva_put_nodes(int *done, nvm_array *a, int n, const nvm_index *at, nvm_array *value) {
  putting p = { .n = 0 };
  nvg_node *x = nva_node(a), *v = x ? nva_node(value) : NULL;
  if (!v) return nvb_status();
  int other = 0, status = build_put(&p, x, n, at, v, &other);
  if (!status && !other && !a->base) status = note_put(&p, x, n, at);
  if (!status && !other) {
    nvg_node *all = a->base ? nvg_lens_put(a->lens, a->base->node, p.whole) : nvg_node_ref(p.whole);
    if (all) nva_stand_for(a->base ? a->base : a, all);
    else status = nvb_status();
  }
  *done = !status && !other;
  end_putting(&p);
  return status;
}
