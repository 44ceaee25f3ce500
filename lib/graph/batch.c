/* Maps a graph over a batch, node by node: each rule makes the node that computes, from operands with the batch in
   front, what the given node computes of each element. Maps, reductions and rearrangements count their axes one higher;
   routines and products take batches as they are. Nodes that do not depend on the batch stay. */
#include "graph/batch.h"
#include <string.h>
#include "base/err.h"
#include "graph/infer.h"

typedef struct item { const nvg_node *of; nvg_node *is; int batched; } item; /* a node, and what it has become */
typedef struct frame { nvg_node *node; int next; } frame;
typedef struct batcher {
  const nvg_batch *b;
  nvb_arena *arena;
  nvg_call call; /* owns the nodes that are made */
  nvb_map *seen; /* by address: 1 + the number of an item */
  NVB_VEC(item) items;
  NVB_VEC(frame) stack;
  nvg_node *const *of;
  int n;
  nvg_node **out;
  uint8_t *is_batched;
} batcher;

static item *find_item(batcher *t, const nvg_node *n) {
  int *at = nvb_map_find(t->seen, &n, sizeof n);
  return at ? &t->items.at[*at - 1] : NULL;
}
static void add_item(batcher *t, const nvg_node *of, nvg_node *is, int batched) {
  NVB_PUSH(t->arena, t->items, ((item){ of, is, batched }));
  *nvb_map_put(t->seen, &of, sizeof of, NULL) = (int)t->items.n;
}

/* ---- shapes with the batch in front */
static nvg_node *make_node(batcher *t, const nvg_node *like, nvg_op op, nvm_dtype type, int rank, const int64_t *shape,
                           nvg_node *const *in, int nin, const int64_t *attr, int nattr) {
  nvg_node *r = nvg_keep(&t->call, nvg_node_new(op, nvg_aval_get(type, rank, shape), in, nin, attr, nattr));
  if (!r) return NULL;
  r->flags = like->flags & (NVG_INNER | NVG_RESULT);
  r->device = like->device;
  return r;
}
static int too_many(batcher *t, int rank) {
  if (rank < NVM_MAX_RANK) return 0;
  nvg_bad(&t->call, NVM_ERR_VALUE, "an array of %d dimensions has none left for the batch", rank);
  return 1;
}
static void put_front(const batcher *t, int64_t *wide, const nvg_aval *a) {
  wide[0] = t->b->size;
  if (a->rank) memcpy(wide + 1, a->shape, sizeof *wide * (size_t)a->rank);
}
/* x with the batch in front of the shape of `to`, which its own broadcasts to. */
static nvg_node *spread_over(batcher *t, const item *x, const nvg_aval *to) {
  int64_t wide[NVM_MAX_RANK + 1], ones[NVM_MAX_RANK + 1];
  nvg_node *n = x->is;
  if (too_many(t, to->rank)) return NULL;
  put_front(t, wide, to);
  int own = n->aval->rank - 1;
  if (x->batched && own < to->rank) {
    for (int d = 0; d <= to->rank; d++) ones[d] = d ? 1 : wide[0];
    for (int d = 0; d < own; d++) ones[1 + to->rank - own + d] = n->aval->shape[1 + d];
    n = nvg_xreshape(&t->call, n, to->rank + 1, ones);
  }
  return nvg_xexpand(&t->call, n, to->rank + 1, wide);
}
static nvg_node *with_batch(batcher *t, const item *x) { return spread_over(t, x, x->of->aval); }

/* ---- rules. x: what the operands of n have become; a result of NULL has a message. */
static nvg_node *remake(batcher *t, const nvg_node *n, nvg_node *const *in, const int64_t *attr, int nattr) {
  int64_t wide[NVM_MAX_RANK + 1];
  if (too_many(t, n->aval->rank)) return NULL;
  put_front(t, wide, n->aval);
  return make_node(t, n, (nvg_op)n->op, n->aval->dtype, n->aval->rank + 1, wide, in, n->nin, attr, nattr);
}
static nvg_node **operands_of(batcher *t, item *const *x, int n) {
  nvg_node **in = NVB_NEWN(t->arena, nvg_node *, n + 1);
  for (int i = 0; i < n; i++)
    if (!(in[i] = with_batch(t, x[i]))) return NULL;
  return in;
}
/* The node with batched operands, and `by` added to its first `count` attributes, which are axes. */
static nvg_node *shift_axes(batcher *t, const nvg_node *n, item *const *x, int count) {
  int64_t *attr = NVB_NEWN(t->arena, int64_t, n->nattr + 1);
  nvg_node **in = operands_of(t, x, n->nin);
  for (int i = 0; i < n->nattr; i++) attr[i] = n->attr[i] + (i < count);
  return in ? remake(t, n, in, attr, n->nattr) : NULL;
}
/* The node with batched operands, and `first` in front of its attributes, of which each dimension has `each`. */
static nvg_node *shift_dims(batcher *t, const nvg_node *n, item *const *x, int each, const int64_t *first) {
  int64_t attr[2 * (NVM_MAX_RANK + 1)];
  nvg_node **in = operands_of(t, x, n->nin);
  memcpy(attr, first, sizeof *attr * (size_t)each);
  memcpy(attr + each, n->attr, sizeof *attr * (size_t)n->nattr);
  return in ? remake(t, n, in, attr, n->nattr + each) : NULL;
}

static nvg_node *batch_map(batcher *t, const nvg_node *n, item *const *x) {
  nvg_node **in = NVB_NEWN(t->arena, nvg_node *, n->nin);
  for (int i = 0; i < n->nin; i++) {
    in[i] = x[i]->batched || x[i]->is->aval->rank ? spread_over(t, x[i], n->aval) : x[i]->is;
    if (!in[i]) return NULL;
  }
  return remake(t, n, in, n->attr, n->nattr);
}
static nvg_node *batch_reshape(batcher *t, const nvg_node *n, item *const *x) {
  int64_t wide[NVM_MAX_RANK + 1];
  if (too_many(t, n->aval->rank)) return NULL;
  put_front(t, wide, n->aval);
  return nvg_xreshape(&t->call, x[0]->is, n->aval->rank + 1, wide);
}
static nvg_node *batch_permute(batcher *t, const nvg_node *n, item *const *x) {
  int64_t axes[NVM_MAX_RANK + 1] = { 0 };
  for (int d = 0; d < n->aval->rank; d++) axes[d + 1] = n->attr[d] + 1;
  return nvg_xpermute(&t->call, x[0]->is, axes);
}
static nvg_node *batch_pad(batcher *t, const nvg_node *n, item *const *x) {
  int64_t attr[NVM_MAX_RANK + 1] = { 0 };
  int whole = x[1]->batched || x[1]->is->aval->rank;
  nvg_node *in[2] = { with_batch(t, x[0]), whole ? spread_over(t, x[1], n->aval) : x[1]->is };
  memcpy(attr + 1, n->attr, sizeof *attr * (size_t)n->nattr);
  return in[0] && in[1] ? remake(t, n, in, attr, n->nattr + 1) : NULL;
}

/* An array of which all elements of the batch take elements is read where it lies: the batch becomes a part of the
   axis along which it is indexed. */
static nvg_node *take_from_one(batcher *t, const nvg_node *n, item *const *x) {
  int axis = (int)n->attr[0], rank = n->aval->rank;
  int64_t there[NVM_MAX_RANK + 1], back[NVM_MAX_RANK + 1], flat[NVM_MAX_RANK], apart[NVM_MAX_RANK + 1];
  for (int d = 0; d <= rank; d++) there[d] = d < axis ? d + 1 : d == axis ? 0 : d;
  for (int d = 0; d <= rank; d++) back[there[d]] = d;
  nvg_node *index = nvg_xpermute(&t->call, with_batch(t, x[1]), there);
  if (!index) return NULL;
  memcpy(apart, index->aval->shape, sizeof *apart * (size_t)(rank + 1));
  for (int d = 0; d < rank; d++) flat[d] = d == axis ? apart[d] * apart[d + 1] : apart[d + (d > axis)];
  nvg_node *in[2] = { x[0]->is, nvg_xreshape(&t->call, index, rank, flat) };
  nvg_node *r = make_node(t, n, NVG_OP_GATHER, n->aval->dtype, rank, flat, in, 2, n->attr, n->nattr);
  return nvg_xpermute(&t->call, r ? nvg_xreshape(&t->call, r, rank + 1, apart) : NULL, back);
}
/* Positions that elements use which are not masked, and 0 for the others; those that all share are 0 if all are. */
static nvg_node *mask_positions(batcher *t, const item *x) {
  nvg_call *c = &t->call;
  nvg_node *n = x->is, *used = t->b->mask;
  int64_t ones[NVM_MAX_RANK + 1];
  for (int d = 0; d < n->aval->rank; d++) ones[d] = d || !x->batched ? 1 : t->b->size;
  if (!x->batched) used = nvg_xreduce(c, NVG_OP_ANY, used, 1, 0);
  used = nvg_xexpand(c, nvg_xreshape(c, used, n->aval->rank, ones), n->aval->rank, n->aval->shape);
  return nvg_x3(c, NVG_OP_WHERE, used, n, nvg_xint(c, 0));
}
static nvg_node *batch_gather(batcher *t, const nvg_node *n, item *const *x) {
  if (!x[0]->batched && t->b->size) return take_from_one(t, n, x);
  return shift_axes(t, n, x, 1);
}
/* One list of positions for the whole batch: element b's begin at b times the number of places. A position out of
   range stays so. */
static nvg_node *batch_scatter(batcher *t, const nvg_node *n, item *const *x) {
  nvg_call *c = &t->call;
  nvg_node *k = x[0]->is;
  int64_t places = n->aval->size, all = t->b->size * places, count = k->aval->shape[1], flat = t->b->size * count;
  nvg_node *low = nvg_x2(c, NVG_OP_GREATER_EQUAL, k, nvg_xint(c, -places));
  nvg_node *in = nvg_x2(c, NVG_OP_LOGICAL_AND, low, nvg_x2(c, NVG_OP_LESS, k, nvg_xint(c, places)));
  nvg_node *wraps = nvg_x2(c, NVG_OP_LESS, k, nvg_xint(c, 0));
  nvg_node *own = nvg_x3(c, NVG_OP_WHERE, wraps, nvg_x2(c, NVG_OP_ADD, k, nvg_xint(c, places)), k);
  nvg_node *number = nvg_xiota(c, 2, k->aval->shape, 0);
  nvg_node *at = nvg_x2(c, NVG_OP_ADD, own, nvg_x2(c, NVG_OP_MULTIPLY, number, nvg_xint(c, places)));
  at = nvg_xreshape(c, nvg_x3(c, NVG_OP_WHERE, in, at, nvg_xint(c, all)), 1, &flat);
  int64_t shape[2] = { t->b->size, places };
  nvg_node *last = at ? make_node(t, n, NVG_OP_SCATTER, NVM_I64, 1, &all, &at, 1, n->attr, n->nattr) : NULL;
  last = last ? nvg_xreshape(c, last, 2, shape) : NULL;
  nvg_node *begin = nvg_x2(c, NVG_OP_MULTIPLY, nvg_xiota(c, 2, shape, 0), nvg_xint(c, count));
  nvg_node *none = nvg_x2(c, NVG_OP_EQUAL, last, nvg_xint(c, 0));
  return nvg_x3(c, NVG_OP_WHERE, none, nvg_xint(c, 0), nvg_x2(c, NVG_OP_SUBTRACT, last, begin));
}

/* (batch, m, k) @ (k, n) is one product of batch * m rows. */
static nvg_node *multiply_by_one(batcher *t, const nvg_node *n, item *const *x) {
  const int64_t *a = x[0]->is->aval->shape, *r = n->aval->shape;
  int64_t rows[2] = { a[0] * a[1], a[2] }, made[2] = { rows[0], r[1] }, apart[3] = { a[0], r[0], r[1] };
  nvg_node *in[2] = { nvg_xreshape(&t->call, x[0]->is, 2, rows), x[1]->is };
  nvg_node *p = make_node(t, n, NVG_OP_GEMM, n->aval->dtype, 2, made, in, 2, n->attr, n->nattr);
  return p ? nvg_xreshape(&t->call, p, 3, apart) : NULL;
}
static nvg_node *batch_gemm(batcher *t, const nvg_node *n, item *const *x) {
  if (n->aval->rank == 2 && !x[1]->batched) return multiply_by_one(t, n, x);
  return shift_axes(t, n, x, 0);
}

/* ---- sums of products that a batch turns into matrix products */
/* An operand of a product, without what repeats it: its dimensions of more than one element have letters. */
typedef struct factor { const item *x; uint32_t dims; } factor;
static factor factor_of(batcher *t, const nvg_node *n, const nvg_aval *whole) {
  factor f = { 0 };
  while (n->op == NVG_OP_EXPAND) n = n->in[0];
  for (int d = 0; d < n->aval->rank; d++)
    if (n->aval->shape[d] > 1 && n->aval->rank == whole->rank) f.dims |= 1u << d;
  f.x = n->aval->rank == whole->rank ? find_item(t, n) : NULL;
  return f;
}
static int put_letters(int64_t *text, int n, uint32_t dims, int batched) {
  if (batched) text[n++] = 'z';
  for (int d = 0; d < NVM_MAX_RANK; d++)
    if (dims >> d & 1) text[n++] = d < 26 ? 'A' + d : 'a' + d - 26;
  return n;
}
/* The factor with its dimensions of more than one element alone, behind the batch if it has one. */
static nvg_node *bare_factor(batcher *t, const factor *f) {
  int64_t shape[NVM_MAX_RANK + 1];
  const nvg_aval *a = f->x->of->aval;
  int rank = 0;
  if (f->x->batched) shape[rank++] = t->b->size;
  for (int d = 0; d < a->rank; d++)
    if (f->dims >> d & 1) shape[rank++] = a->shape[d];
  return nvg_xreshape(&t->call, f->x->is, rank, shape);
}
/* each: the factor with the batch, whose elements are rows of the product. */
static nvg_node *contract(batcher *t, const nvg_node *n, const factor *each, const factor *one, uint32_t kept) {
  int64_t text[4 * NVM_MAX_RANK + 8], wide[NVM_MAX_RANK + 1];
  int k = put_letters(text, 0, each->dims, 1);
  text[k++] = ',';
  k = put_letters(text, k, one->dims, 0);
  text[k++] = '-', text[k++] = '>';
  k = put_letters(text, k, kept, 1);
  nvg_attr subscripts = { .name = "subscripts", .kind = 's', .is = text, .n = k };
  nvg_node *in[2] = { bare_factor(t, each), bare_factor(t, one) };
  if (!in[0] || !in[1] || too_many(t, n->aval->rank)) return NULL;
  nvg_node *r = nvg_keep(&t->call, nvg_apply(NVG_OP_EINSUM, in, 2, &subscripts, 1, t->b->default_float));
  put_front(t, wide, n->aval);
  return r ? nvg_xreshape(&t->call, r, n->aval->rank + 1, wide) : NULL;
}
/* A sum of products of which one factor is the same for the whole batch is a matrix product, with the batch among the
   rows. 0: n is no such sum. */
static int is_product(batcher *t, const nvg_node *n, factor *f, uint32_t *kept) {
  const nvg_node *p = n->in[0];
  nvg_class c = nvg_class_of(n->aval->dtype);
  if (n->op != NVG_OP_SUM || p->op != NVG_OP_MULTIPLY || c < NVG_FLOAT || nvg_is_narrow(n->aval->dtype)) return 0;
  for (int i = 0; i < 2; i++) f[i] = factor_of(t, p->in[i], p->aval);
  if (!f[0].x || !f[1].x || f[0].x->batched == f[1].x->batched) return 0;
  uint32_t summed = 0, one = f[f[0].x->batched].dims;
  for (int d = 0; d < p->aval->rank; d++) /* what repeats both factors is no axis of either */
    if (p->aval->shape[d] != 1 && !((f[0].dims | f[1].dims) >> d & 1)) return 0;
  for (int i = 0; i < n->nattr; i++) summed |= 1u << n->attr[i];
  summed &= f[0].dims | f[1].dims;
  *kept = (f[0].dims | f[1].dims) & ~summed;
  return summed && !(summed & ~(f[0].dims & f[1].dims)) && (one & ~summed);
}
static nvg_node *batch_reduction(batcher *t, const nvg_node *n, item *const *x) {
  factor f[2];
  uint32_t kept;
  if (n->op == NVG_OP_LSE) return shift_axes(t, n, x, 1);
  if (!is_product(t, n, f, &kept)) return shift_axes(t, n, x, n->nattr);
  int first = f[0].x->batched;
  return contract(t, n, &f[!first], &f[first], kept);
}

static nvg_node *batch_node(batcher *t, const nvg_node *n, item *const *x) {
  static const int64_t whole[2] = { 0, 1 }; /* start and step of the batch in a slice */
  switch (nvg_op_vkind((nvg_op)n->op)) {
  case NVG_VMAP: return batch_map(t, n, x);
  case NVG_VRESHAPE: return batch_reshape(t, n, x);
  case NVG_VPERMUTE: return batch_permute(t, n, x);
  case NVG_VPAD: return batch_pad(t, n, x);
  case NVG_VGATHER: return batch_gather(t, n, x);
  case NVG_VSCATTER: return batch_scatter(t, n, x);
  case NVG_VRED: return batch_reduction(t, n, x);
  case NVG_VSLICE: return shift_dims(t, n, x, 2, whole);
  case NVG_VROLL: case NVG_VCONCAT: case NVG_VSCAN: return shift_axes(t, n, x, 1);
  case NVG_VCALL: return batch_gemm(t, n, x);
  case NVG_VEXPAND: case NVG_VPICK: case NVG_VROUTINE: return shift_axes(t, n, x, 0);
  case NVG_VLEAF: case NVG_VCONST: case NVG_VIOTA: break; /* they have no operands */
  }
  return nvg_bad(&t->call, NVM_ERR_INTERNAL, "it cannot be mapped over a batch");
}

/* ---- the walk */
/* The operand that has positions in another, the last one of a gather and of a scatter. */
static int is_position(const nvg_node *n, int i) {
  nvg_vkind k = nvg_op_vkind((nvg_op)n->op);
  return (k == NVG_VGATHER || k == NVG_VSCATTER) && i == n->nin - 1;
}
static item *operand_item(batcher *t, const nvg_node *n, int i) {
  item *x = find_item(t, n->in[i]);
  if (!t->b->mask || !is_position(n, i)) return x;
  item *masked = NVB_NEW(t->arena, item);
  *masked = (item){ x->of, mask_positions(t, x), x->batched };
  if (!masked->is) nvb_throw(t->arena, nvb_status(), "%s", nvb_message());
  return masked;
}
static void end_node(batcher *t, nvg_node *n) {
  item **x = NVB_NEWN(t->arena, item *, n->nin + 1);
  nvg_node **in = NVB_NEWN(t->arena, nvg_node *, n->nin + 1), *r = n;
  int batched = 0, changed = 0;
  t->call.op = (nvg_op)n->op;
  for (int i = 0; i < n->nin; i++) {
    x[i] = operand_item(t, n, i);
    in[i] = x[i]->is;
    batched |= x[i]->batched;
    changed |= in[i] != n->in[i];
  }
  if (batched) r = batch_node(t, n, x);
  else if (changed)
    r = make_node(t, n, (nvg_op)n->op, n->aval->dtype, n->aval->rank, n->aval->shape, in, n->nin, n->attr, n->nattr);
  if (!r) nvb_throw(t->arena, nvb_status(), "%s", nvb_message());
  add_item(t, n, r, batched);
}
static void visit_node(batcher *t, nvg_node *n) {
  if (find_item(t, n)) return;
  if (n->op == NVG_OP_LEAF || atomic_load_explicit(&n->value, memory_order_acquire)) add_item(t, n, n, 0);
  else NVB_PUSH(t->arena, t->stack, ((frame){ n, 0 }));
}
static void visit_root(batcher *t, nvg_node *root) {
  visit_node(t, root);
  while (t->stack.n) {
    frame *f = &t->stack.at[t->stack.n - 1];
    nvg_node *n = f->node;
    if (f->next < n->nin) {
      visit_node(t, n->in[f->next++]);
    } else {
      t->stack.n--;
      end_node(t, n);
    }
  }
}
static void batch_all(nvb_arena *a, void *arg) {
  batcher *t = arg;
  t->arena = a;
  t->seen = nvb_map_new(a);
  for (int i = 0; i < t->b->nstand; i++)
    if (!find_item(t, t->b->stand[i].placeholder))
      add_item(t, t->b->stand[i].placeholder, t->b->stand[i].by, t->b->stand[i].batched);
  for (int i = 0; i < t->n; i++) visit_root(t, t->of[i]);
  for (int i = 0; i < t->n; i++) {
    const item *x = find_item(t, t->of[i]);
    t->out[i] = nvg_node_ref(x->is);
    t->is_batched[i] = (uint8_t)x->batched;
  }
}
int nvg_batch_nodes(nvg_node **out, uint8_t *is_batched, nvg_node *const *of, int n, const nvg_batch *b) {
  batcher t = { .b = b, .of = of, .n = n, .out = out, .is_batched = is_batched };
  t.call.default_float = b->default_float;
  t.call.own = t.call.inl, t.call.cap = sizeof t.call.inl / sizeof *t.call.inl;
  nvb_arena *a = nvb_arena_new();
  if (!a) return nvb_fail_memory();
  int status = nvb_protect(a, batch_all, &t);
  nvg_call_end(&t.call);
  nvb_arena_free(a);
  return status;
}
