/* Copies a small pending graph straight into the planner's language, where nothing in it needs lowering but the order
   of its reductions: elementwise functions, casts, sums, coordinates and views of real numbers of 32 and 64 bits,
   integers and bool. The values have the bits that nvg_simplify gives them; nothing is merged, folded or rewritten. It
   allocates nothing, so that a graph of one node is ready in a fraction of a microsecond. */
#include <string.h>
#include "graph/infer.h"

/* ---- merges by dtype, found once */
static _Atomic(const nvg_frag *) merges[NVG_NOPS][NVM_NDTYPES];
static const nvg_frag *merge_frag(nvg_op op, nvm_dtype t) {
  const nvg_frag *f = atomic_load_explicit(&merges[op][t], memory_order_acquire);
  const nvg_def *d = &nvg_ops[op].def;
  if (!f && (f = nvg_frag_find(t == NVM_BOOL && d->boolean ? d->boolean : d->frag, (nvm_dtype[]){ t, t }, 2)))
    atomic_store_explicit(&merges[op][t], f, memory_order_release);
  return f;
}

/* ---- values */
static int is_simple(nvm_dtype t) { return !nvg_is_narrow(t) && nvg_parts(t) == 1; }
static nvg_val *add_value(nvg_small *s, nvg_vkind kind, nvm_dtype t, int rank, const int64_t *shape, int64_t size) {
  nvg_val *v = &s->v[s->g.n];
  s->node[s->g.n++] = NULL;
  *v = (nvg_val){ .kind = kind, .dtype = t, .rank = rank, .shape = shape, .size = size, .in = s->in + s->nin };
  return v;
}
static int has_room(const nvg_small *s, int values, int operands) {
  return s->g.n + values <= NVG_SMALL && s->nin + operands <= NVG_SMALL_OPERANDS;
}
static void add_operand(nvg_small *s, nvg_val *v, int x) {
  s->in[s->nin++] = x;
  v->nin++;
}

static int add_leaf(nvg_small *s, nvg_node *n, nvg_value *x) {
  if (n->flags & (NVG_DONATED | NVG_INVALIDATED) || n->weak || x->device || x->sum) return 0;
  const nvg_aval *a = n->aval;
  nvg_val *v = add_value(s, NVG_VLEAF, a->dtype, a->rank, a->shape, a->size);
  v->leaf = s->g.nleaf++;
  s->leaf[v->leaf] = (nvg_leaf){ .dtype = a->dtype, .rank = a->rank, .shape = a->shape, .stride = x->stride };
  s->data[v->leaf] = x->data;
  return 1;
}

/* The first of the axes that a node reduces, and their number; 0 if others lie between them. */
static int adjacent_axes(const nvg_node *n, int64_t *first) {
  int count = n->nattr;
  *first = count ? n->attr[0] : 0;
  return count && n->attr[count - 1] - *first == count - 1 ? count : 0;
}
/* Adds x + 0, by which a sum of negative zeros becomes 0, as every sum does. */
static int add_plus_zero(nvg_small *s, const nvg_aval *a) {
  static const int64_t zero[1];
  nvg_val *c = add_value(s, NVG_VCONST, a->dtype, 0, NULL, 1);
  c->attr = zero;
  c->nattr = 1;
  nvg_val *v = add_value(s, NVG_VMAP, a->dtype, a->rank, a->shape, a->size);
  v->frag = nvg_map_frag(NVG_OP_ADD, a->dtype);
  add_operand(s, v, s->g.n - 3);
  add_operand(s, v, s->g.n - 2);
  return v->frag != NULL;
}
static int add_reduction(nvg_small *s, const nvg_node *n, int x) {
  const nvg_aval *a = n->aval, *of = n->in[0]->aval;
  const nvg_op_info *o = &nvg_ops[n->op];
  int64_t first, inside = 1, count = adjacent_axes(n, &first);
  if (!count || !of->size || o->rule == NVG_RARG || n->op == NVG_OP_LSE || of->dtype != a->dtype) return 0;
  for (int d = (int)(first + count); d < of->rank; d++) inside *= of->shape[d];
  nvg_red_order order = nvg_red_order_of(inside >= NVG_COLUMN);
  nvg_val *v = add_value(s, NVG_VRED, a->dtype, a->rank, a->shape, a->size);
  int64_t *attr = s->attr + 2 * s->nattr++;
  attr[0] = first, attr[1] = count;
  v->attr = attr;
  v->nattr = 2;
  v->chunk = order.chunk;
  v->lanes = order.lanes;
  v->frag = merge_frag((nvg_op)n->op, a->dtype);
  add_operand(s, v, x);
  if (!v->frag) return 0;
  int sums = o->def.init == NVG_INIT_NEGZERO && nvg_class_of(a->dtype) >= NVG_FLOAT;
  return !sums || add_plus_zero(s, a);
}

/* The number of a node's value; -1: it has none yet. */
static int value_of(const nvg_small *s, const nvg_node *n);
/* A power with a constant exponent is defined as products, and nvg_simplify knows more constants than this. */
static int add_power(nvg_small *s, const nvg_node *n, nvg_val *v, int x, int e) {
  int square = nvg_is_two(n->in[1]);
  v->frag = nvg_map_frag(square ? NVG_OP_MULTIPLY : NVG_OP_POW, n->aval->dtype);
  add_operand(s, v, x);
  add_operand(s, v, square ? x : e);
  return v->frag && (square || s->v[e].kind == NVG_VLEAF);
}
static int add_map(nvg_small *s, const nvg_node *n) {
  const nvg_aval *a = n->aval;
  nvm_dtype from = n->in[n->nin - 1]->aval->dtype;
  nvg_val *v = add_value(s, NVG_VMAP, a->dtype, a->rank, a->shape, a->size);
  if (n->op == NVG_OP_POW) return add_power(s, n, v, value_of(s, n->in[0]), value_of(s, n->in[1]));
  v->frag = n->op == NVG_OP_CAST ? nvg_cast_frag(from, a->dtype) : nvg_map_frag((nvg_op)n->op, from);
  for (int i = 0; i < n->nin; i++) add_operand(s, v, value_of(s, n->in[i]));
  return v->frag != NULL;
}
/* A view, or coordinates, which have no operand. */
static int add_by_attributes(nvg_small *s, nvg_vkind kind, const nvg_node *n) {
  const nvg_aval *a = n->aval;
  nvg_val *v = add_value(s, kind, a->dtype, a->rank, a->shape, a->size);
  v->attr = n->attr;
  v->nattr = n->nattr;
  if (n->nin) add_operand(s, v, value_of(s, n->in[0]));
  return 1;
}
/* Adds the value of a pending node, whose operands have theirs. Returns 0 if it needs lowering. */
static int add_node(nvg_small *s, const nvg_node *n) {
  nvg_vkind kind = nvg_op_vkind((nvg_op)n->op);
  if (!has_room(s, 3, n->nin + 2) || !is_simple(n->aval->dtype)) return 0;
  switch (kind) {
  case NVG_VMAP: return add_map(s, n);
  case NVG_VRED: return add_reduction(s, n, value_of(s, n->in[0]));
  case NVG_VRESHAPE: case NVG_VPERMUTE: case NVG_VSLICE: case NVG_VEXPAND: case NVG_VIOTA:
    return add_by_attributes(s, kind, n);
  default: return 0;
  }
}

/* ---- nodes, found by address */
static uint8_t *slot_of(const nvg_small *s, const nvg_node *n) {
  uint64_t h = ((uint64_t)(uintptr_t)n >> 4) * 0x9e3779b97f4a7c15ull;
  uint8_t *slot = (uint8_t *)(uintptr_t)s->slot;
  unsigned i = (unsigned)(h >> 32) % NVG_SMALL_SLOTS;
  while (slot[i] && s->of[slot[i] - 1] != n) i = (i + 1) % NVG_SMALL_SLOTS;
  return &slot[i];
}
static int value_of(const nvg_small *s, const nvg_node *n) { return *slot_of(s, n) - 1; }
static void note_value(nvg_small *s, const nvg_node *n) { /* the last value is that of n */
  s->v[s->g.n - 1].op = n->op;
  s->of[s->g.n - 1] = n;
  *slot_of(s, n) = (uint8_t)s->g.n;
}
static void add_const(nvg_small *s, const nvg_node *n) {
  nvg_val *v = add_value(s, NVG_VCONST, n->aval->dtype, 0, NULL, 1);
  v->attr = n->attr;
  v->nattr = 1;
}
/* Adds a constant or a node that has a value; claims and pushes one that is pending. Returns 0 if the graph is no small
   one. */
static int visit_node(nvg_small *s, nvg_node *n) {
  if (!has_room(s, 1, 0) || !is_simple(n->aval->dtype) || !n->aval->size || n->weak) return 0;
  if (n->op == NVG_OP_CONST) return add_const(s, n), note_value(s, n), 1;
  nvg_value *v = atomic_load_explicit(&n->value, memory_order_acquire);
  int pending = !v && n->op != NVG_OP_LEAF && s->claims.read.n < NVG_SMALL_NODES;
  if (pending && nvg_claim_read(&s->claims, n)) {
    s->stack[s->depth].node = n;
    s->stack[s->depth++].next = 0;
    return 1;
  }
  v = v ? v : atomic_load_explicit(&n->value, memory_order_acquire);
  if (!v || !add_leaf(s, n, v)) return 0;
  return note_value(s, n), 1;
}
static int visit_root(nvg_small *s, nvg_node *root) {
  if (value_of(s, root) >= 0) return 1;
  if (!visit_node(s, root)) return 0;
  while (s->depth) {
    nvg_node *n = s->stack[s->depth - 1].node;
    int next = s->stack[s->depth - 1].next++;
    if (next < n->nin) {
      if (value_of(s, n->in[next]) < 0 && !visit_node(s, n->in[next])) return 0;
      continue;
    }
    s->depth--;
    if (!add_node(s, n)) return 0;
    note_value(s, n);
    s->node[s->g.n - 1] = n;
  }
  return 1;
}

/* Has something outside of the graph a reference to the value's node? It may be read, and would be computed again. */
static int is_wanted(const nvg_small *s, int value, const int *uses) {
  const nvg_val *v = &s->v[value];
  uint32_t owners = (uint32_t)atomic_load_explicit(&s->node[value]->refs, memory_order_relaxed);
  return (v->kind == NVG_VMAP || v->kind == NVG_VRED) && (int)owners > uses[value];
}
static int add_output(nvg_small *s, int value) {
  if (!nvg_claim_compute(&s->claims, s->node[value])) return 0;
  s->out[s->g.nout] = value;
  s->out_node[s->g.nout++] = s->node[value];
  return 1;
}
/* Is the value better computed by the pipeline: a constant, a view of a leaf, of which nothing is copied, or a number
   in very many elements? */
enum { REPEATED = 1 << 12 };
static int needs_pipeline(const nvg_small *s, int value) {
  const nvg_val *root = &s->v[value], *v = root;
  while (v->kind == NVG_VRESHAPE || v->kind == NVG_VPERMUTE || v->kind == NVG_VSLICE || v->kind == NVG_VEXPAND)
    v = &s->v[v->in[0]];
  return v->kind == NVG_VLEAF || (v->kind == NVG_VCONST && (v == root || root->size > REPEATED));
}
static int add_outputs(nvg_small *s, nvg_node *const *root, int nroot) {
  int uses[NVG_SMALL] = { 0 };
  for (int i = 0; i < nroot; i++) {
    int value = value_of(s, root[i]);
    if (s->v[value].kind == NVG_VLEAF) continue; /* another evaluation has computed it meanwhile */
    if (needs_pipeline(s, value)) return 0;
    if (s->node[value] && !add_output(s, value)) return 0;
    s->node[value] = NULL; /* it may be among the roots twice */
  }
  for (int i = 0; i < s->claims.read.n; i++)
    for (int k = 0; k < s->claims.read.at[i]->nin; k++) uses[value_of(s, s->claims.read.at[i]->in[k])]++;
  for (int i = 0; i < s->g.n; i++)
    if (s->node[i] && is_wanted(s, i, uses)) add_output(s, i);
  return 1;
}

int nvg_small_collect(nvg_small *s, nvg_node *const *root, int nroot) {
  s->g = (nvg_graph){ .v = s->v, .leaf = s->leaf, .out = s->out, .out_node = s->out_node };
  s->nin = s->nattr = s->depth = 0;
  s->claims =
      (nvg_claims){ .read = { s->read, 0, NVG_SMALL_NODES + 1 }, .computed = { s->computed, 0, NVG_SMALL + 1 } };
  memset(s->slot, 0, sizeof s->slot);
  int fits = nroot <= NVG_SMALL_NODES;
  for (int i = 0; i < nroot && fits; i++) fits = visit_root(s, root[i]);
  if (fits && add_outputs(s, root, nroot)) return 1;
  nvg_claims_drop(&s->claims);
  return 0;
}
