/* Writes to parts of arrays in a trace. Through indices that are numbers and 0-d arrays, x[i] = v, x[i, j] = v, it
   builds the array anew as an elementwise choice, and through longer index arrays by the last index that leads to each
   element. Notes what was written where, so that a loop, or a call of the traced function, can store it in place
   instead. Never decides whether it does. */
#include <string.h>
#include "api/put.h"
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

/* Has it integers that int64 holds? */
static int is_whole(const nvg_node *n) {
  nvm_dtype t = n->aval->dtype;
  return t != NVM_U64 && (nvg_class_of(t) == NVG_SIGNED || nvg_class_of(t) == NVG_UNSIGNED);
}
/* The index as an int64 node. NULL: a failure, or it is no such index and *other is set. */
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
/* The indices as nodes. Returns a status; *other: they are no numbers and arrays of integers. */
static int read_indices(putting *p, const nvg_node *x, int n, const nvm_index *at, int *other) {
  for (; p->n < n && !*other; p->n++) {
    if (at[p->n].axis >= x->aval->rank || (p->n && at[p->n].axis <= at[p->n - 1].axis)) return *other = 1, NVM_OK;
    p->index[p->n] = index_node(&at[p->n], x->aval->shape[at[p->n].axis], other);
    if (!p->index[p->n]) return *other ? NVM_OK : nvb_status();
  }
  return NVM_OK;
}
/* The dimensions of what is written: `before` of those that are not indexed, those of the index arrays, the others. */
typedef struct frame { int rank, first, joint, rest[NVM_MAX_RANK], nrest; int64_t shape[NVM_MAX_RANK]; } frame;
static int broadcast_indices(frame *f, const putting *p) { /* returns 0 if they do not go together */
  for (int i = 0; i < p->n; i++) f->joint = p->index[i]->aval->rank > f->joint ? p->index[i]->aval->rank : f->joint;
  for (int d = 0; d < f->joint; d++) {
    int64_t *extent = &f->shape[f->first + d];
    *extent = 1;
    for (int i = 0; i < p->n; i++) {
      const nvg_aval *av = p->index[i]->aval;
      int64_t own = d < f->joint - av->rank ? 1 : av->shape[d - (f->joint - av->rank)];
      if (own != 1 && *extent != 1 && own != *extent) return 0;
      if (own != 1) *extent = own;
    }
  }
  return 1;
}
/* Returns 0 if it is no possible array. */
static int lay_out(frame *f, const putting *p, const nvg_node *x, const nvm_index *at, int before) {
  *f = (frame){ .first = before };
  for (int d = 0, i = 0; d < x->aval->rank; d++)
    if (i < p->n && at[i].axis == d) i++;
    else f->rest[f->nrest++] = d;
  if (before < 0 || before > f->nrest || !broadcast_indices(f, p)) return 0;
  f->rank = f->nrest + f->joint;
  for (int k = 0; k < f->nrest && f->rank <= NVM_MAX_RANK; k++)
    f->shape[k < before ? k : k + f->joint] = x->aval->shape[f->rest[k]];
  return f->rank <= NVM_MAX_RANK;
}
/* The index along an axis, checked and from the front, with dimensions of extent 1 behind it. */
static nvg_node *checked_index(const nvg_node *x, const nvm_index *k, nvg_node *at, int behind) {
  int64_t shape[NVM_MAX_RANK], size = at->aval->size;
  int rank = at->aval->rank;
  memcpy(shape, at->aval->shape, sizeof *shape * (size_t)rank);
  while (behind--) shape[rank++] = 1;
  nvg_attr along[2] = { { .name = "axis", .kind = 'i', .i = 0 }, { .name = "of", .kind = 'i', .i = k->message_axis } };
  nvg_node *flat = with_shape(NVG_OP_RESHAPE, nvg_node_ref(at), 1, &size);
  nvg_node *from = apply(NVG_OP_SETITEM, 2, count_to(x->aval->shape[k->axis]), flat, NULL, along, 2);
  return with_shape(NVG_OP_RESHAPE, from, rank, shape);
}
static nvg_node *scaled(nvg_node *x, int64_t by) {
  return by == 1 ? x : apply(NVG_OP_MULTIPLY, 2, x, nvg_const(NVM_I64, 0, 0, by), NULL, NULL, 0);
}
static nvg_node *added(nvg_node *a, nvg_node *b) { return a ? apply(NVG_OP_ADD, 2, a, b, NULL, NULL, 0) : b; }
/* The row-major positions in x of what is selected, in the frame's shape. */
static nvg_node *positions_of(const frame *f, const putting *p, const nvg_node *x, const nvm_index *at) {
  int64_t stride[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  int behind = f->nrest - f->first, ok = 1;
  nvg_node *sum = NULL;
  nvg_packed(stride, x->aval->rank, x->aval->shape);
  for (int i = 0; i < p->n && ok; i++)
    ok = (sum = added(sum, scaled(checked_index(x, &at[i], p->index[i], behind), stride[at[i].axis]))) != NULL;
  for (int k = 0; k < f->nrest && ok; k++) {
    int at_dim = k < f->first ? k : k + f->joint, n = 0;
    shape[n++] = f->shape[at_dim];
    while (n < f->rank - at_dim) shape[n++] = 1;
    nvg_node *along = scaled(count_to(shape[0]), stride[f->rest[k]]);
    ok = (sum = added(sum, with_shape(NVG_OP_RESHAPE, along, n, shape))) != NULL;
  }
  return ok ? with_shape(NVG_OP_BROADCAST_TO, sum, f->rank, f->shape) : NULL;
}
static nvg_node *flatten(nvg_node *x) { /* takes x; NULL passes through */
  return x ? with_shape(NVG_OP_RESHAPE, x, 1, &(int64_t){ x->aval->size }) : NULL;
}
/* x with the elements at these positions, which are taken, replaced: each by the value of the last index that leads to
   it. */
static nvg_node *scatter(nvg_node *x, nvg_node *positions, nvg_node *value) {
  nvg_attr size = { .name = "size", .kind = 'i', .i = x->aval->size };
  nvg_node *last = apply(NVG_OP_LAST_INDEX, 1, flatten(positions), NULL, NULL, &size, 1);
  if (!last) return NULL;
  nvg_node *zero = nvg_const(NVM_I64, 0, 0, 0), *untouched = NULL, *from = NULL;
  if (zero) untouched = apply(NVG_OP_LESS, 2, nvg_node_ref(last), nvg_node_ref(zero), NULL, NULL, 0);
  from = apply(NVG_OP_MAXIMUM, 2, last, zero, NULL, NULL, 0);
  nvg_node *there = apply(NVG_OP_TAKE, 2, flatten(nvg_node_ref(value)), from, NULL, NULL, 0);
  nvg_node *all = apply(NVG_OP_WHERE, 3, untouched, flatten(nvg_node_ref(x)), there, NULL, 0);
  return with_shape(NVG_OP_RESHAPE, all, x->aval->rank, x->aval->shape);
}
/* x with the elements at these numbers replaced, chosen by their coordinates. */
static nvg_node *choose(const putting *p, nvg_node *x, const nvm_index *at) {
  nvg_node *mask = NULL;
  for (int i = 0; i < p->n; i++) {
    nvg_node *along = mask_along(x, &at[i], p->index[i]);
    mask = i ? apply(NVG_OP_LOGICAL_AND, 2, mask, along, NULL, NULL, 0) : along;
  }
  return apply(NVG_OP_WHERE, 3, mask, spread_value(x, p->n, at, p->value), nvg_node_ref(x), NULL, 0);
}
/* Builds x with the elements replaced. Returns a status; *other: the indices are not such as this can write through. */
static int build_put(putting *p, nvg_node *x, const nvm_index *at, int before, nvg_node *v, int *other) {
  frame f;
  if (!lay_out(&f, p, x, at, before)) return *other = 1, NVM_OK;
  p->value = with_shape(NVG_OP_BROADCAST_TO, with_dtype(nvg_node_ref(v), x->aval->dtype), f.rank, f.shape);
  if (!p->value) return nvb_status();
  if (!f.joint) p->whole = choose(p, x, at);
  else if (!p->value->aval->size) p->whole = nvg_node_ref(x);
  else {
    nvg_node *positions = positions_of(&f, p, x, at);
    p->whole = positions ? scatter(x, positions, p->value) : NULL;
  }
  return p->whole ? NVM_OK : nvb_status();
}

/* ---- notes */
static int add_note(nva_put *put, const nvm_array *a, nvg_node *whole, nvg_node *value) {
  put->base = (a->base ? a->base : a)->node;
  put->whole = whole, put->value = value;
  return whole == put->base || !nva_part_of(&put->to, a) ? NVM_OK : nva_trace_add_put(put);
}
int nva_put_note(nvm_array *a, nvg_node *whole, nvg_node *value) {
  nva_put put = { .n = 0 };
  return a->base ? add_note(&put, a, whole, value) : NVM_OK;
}
static int note_put(const putting *p, const nvm_array *a, nvg_node *whole, const nvm_index *at, int before) {
  nva_put put = { .n = p->n, .before = before, .leading = !a->base };
  if (p->n > NVA_INDICES) return NVM_OK;
  for (int i = 0; i < p->n; i++) {
    put.leading &= at[i].axis == i && !p->index[i]->aval->rank;
    put.at[i] = (nva_put_index){ p->index[i], at[i].axis, at[i].message_axis };
  }
  return add_note(&put, a, whole, p->value);
}
/* The base of a becomes p->whole, seen through a. Returns a status. */
static int finish_put(const putting *p, nvm_array *a, const nvm_index *at, int before) {
  nvm_array *base = a->base ? a->base : a;
  nvg_node *all = a->base ? nvg_lens_put(a->lens, base->node, p->whole) : nvg_node_ref(p->whole);
  int status = all ? note_put(p, a, all, at, before) : nvb_status();
  if (status) return nvg_node_unref(all), status;
  nva_stand_for(base, all);
  return NVM_OK;
}
int nva_put_nodes(int *done, nvm_array *a, int n, const nvm_index *at, int before, nvm_array *value) {
  putting p = { .n = 0 };
  nvg_node *x = nva_node(a), *v = x ? nva_node(value) : NULL;
  if (!v) return nvb_status();
  int other = 0, status = read_indices(&p, x, n, at, &other);
  if (!status && !other) status = build_put(&p, x, at, before, v, &other);
  if (!status && !other) status = finish_put(&p, a, at, before);
  *done = !status && !other;
  end_putting(&p);
  return status;
}
