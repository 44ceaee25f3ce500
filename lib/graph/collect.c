/* Copies lazy nodes into an evaluation graph: what the roots need and has no value yet, with equal values merged and
   everything else as leaf slots. It decides which interior nodes are kept as extra outputs; all that it changes in a
   node are claims and a note that it was not kept. */
#include <string.h>
#include "graph/make.h"

/* A hash table from nodes to values, by address. The order of values comes from the walk, never from addresses. */
typedef struct slot { const nvg_node *node; int value, computed; } slot; /* computed: claimed as an output */
typedef struct frame { nvg_node *node; int next; } frame;
typedef struct inner { nvg_node *node; int value; } inner; /* a pending node and what it became */
typedef struct collector {
  nvb_arena *arena;
  nvg_make make;
  nvg_claims *claims;
  slot *table;
  size_t mask, filled;
  NVB_VEC(frame) stack;
  NVB_VEC(inner) inner; /* pending nodes in topological order */
  NVB_VEC(nvg_leaf) leaf;
  NVB_VEC(nvg_node *) leaf_node;
} collector;

static slot *find_slot(const collector *c, const nvg_node *n) {
  uint64_t h = ((uint64_t)(uintptr_t)n >> 4) * 0x9e3779b97f4a7c15ull;
  for (size_t i = (h >> 20) & c->mask;; i = (i + 1) & c->mask)
    if (!c->table[i].node || c->table[i].node == n) return &c->table[i];
}

static void put_value(collector *c, const nvg_node *n, int value) {
  if (++c->filled * 2 > c->mask) {
    slot *old = c->table;
    size_t count = c->mask + 1;
    c->table = NVB_NEWN(c->arena, slot, count * 4);
    c->mask = count * 4 - 1;
    for (size_t i = 0; i < count; i++)
      if (old[i].node) *find_slot(c, old[i].node) = old[i];
  }
  *find_slot(c, n) = (slot){ .node = n, .value = value };
}

/* Has it a value, or none that an evaluation could give it? A node that is none is claimed; it may get its value while
   it is read, and stays what it is in this graph. */
static int is_leaf(collector *c, nvg_node *n) {
  if (n->op == NVG_OP_LEAF || atomic_load_explicit(&n->value, memory_order_acquire)) return 1;
  return c->claims && !nvg_claim_read(c->claims, n);
}
static int is_busy(const collector *c) { return c->claims && c->claims->busy; }

static int add_leaf(collector *c, nvg_node *n) {
  const nvg_aval *a = n->aval;
  nvg_value *v = atomic_load_explicit(&n->value, memory_order_acquire);
  int64_t *stride = NVB_NEWN(c->arena, int64_t, a->rank + 1);
  if (v) memcpy(stride, v->stride, sizeof *stride * (size_t)a->rank);
  else nvg_packed(stride, a->rank, a->shape);
  nvg_leaf l = { .dtype = a->dtype,
                 .rank = a->rank,
                 .shape = a->shape,
                 .stride = stride,
                 .align16 = !v || (uintptr_t)v->data % 16 == 0,
                 .weak_const = n->weak };
  NVB_PUSH(c->arena, c->leaf, l);
  NVB_PUSH(c->arena, c->leaf_node, n);
  nvg_val val = { .kind = NVG_VLEAF,
                  .op = NVG_OP_LEAF,
                  .dtype = a->dtype,
                  .rank = a->rank,
                  .shape = a->shape,
                  .leaf = c->leaf.n - 1,
                  .name = "leaf" };
  return nvg_make_add(&c->make, &val);
}

static int add_node(collector *c, nvg_node *n) {
  int few[8], *in = n->nin <= 8 ? few : NVB_NEWN(c->arena, int, n->nin);
  for (int i = 0; i < n->nin; i++) in[i] = find_slot(c, n->in[i])->value;
  int64_t flags = n->flags;
  nvg_vkind kind = nvg_op_vkind((nvg_op)n->op);
  /* the last attribute is the op that the user called */
  int of_other = kind == NVG_VGATHER || kind == NVG_VSCATTER || kind == NVG_VROUTINE;
  nvg_op of = of_other ? (nvg_op)n->attr[n->nattr - 1] : (nvg_op)n->op;
  const nvg_op_info *o = &nvg_ops[of];
  nvg_val v = { .kind = kind,
                .op = kind == NVG_VROUTINE ? (nvg_op)n->op : of,
                .dtype = n->aval->dtype,
                .rank = n->aval->rank,
                .shape = n->aval->shape,
                .nin = n->nin,
                .in = in,
                .nattr = n->nattr - of_other,
                .attr = n->attr,
                .name = o->name + (o->name[0] == '_') };
  if (n->op == NVG_OP_CAST) v.nattr = 1, v.attr = &flags;
  int value = nvg_make_add(&c->make, &v);
  NVB_PUSH(c->arena, c->inner, ((inner){ n, value }));
  return value;
}

static void visit_node(collector *c, nvg_node *n) {
  if (find_slot(c, n)->node) return;
  if (is_leaf(c, n)) put_value(c, n, add_leaf(c, n));
  else NVB_PUSH(c->arena, c->stack, ((frame){ n, 0 }));
}

static void visit_root(collector *c, nvg_node *root) {
  visit_node(c, root);
  while (c->stack.n && !is_busy(c)) {
    frame *f = &c->stack.at[c->stack.n - 1];
    nvg_node *n = f->node;
    if (f->next < n->nin) {
      visit_node(c, n->in[f->next++]);
    } else {
      c->stack.n--;
      put_value(c, n, add_node(c, n));
    }
  }
}

/* ---- extra outputs. The price of an element is the work to recompute it, in simple operations; shared values count
   once for each use. */
enum { EXPENSIVE = 8 }; /* work per element from which a value is expensive; a GEMM always is */
/* fixed: no placeholder below, so it can be computed now */
typedef struct price { double work; int fixed, expensive; } price;

static price price_of(const nvg_graph *g, const nvg_val *v, const price *p) {
  price r = { .fixed = v->kind != NVG_VLEAF };
  int reads = v->kind == NVG_VRED || v->kind == NVG_VSCAN;
  for (int i = 0; i < v->nin; i++) {
    const nvg_val *x = &g->v[v->in[i]];
    r.work += p[v->in[i]].work + (reads ? (double)x->size : 0);
    r.fixed &= p[v->in[i]].fixed;
  }
  if (v->kind == NVG_VMAP) r.work += (double)v->size;
  if (v->kind == NVG_VCALL) r.work += (double)v->size * (double)(EXPENSIVE + 2 * g->v[v->in[0]].shape[v->rank - 1]);
  if (v->kind == NVG_VROUTINE) r.work += (double)v->size * (EXPENSIVE + 1); /* a sort */
  r.expensive = r.work > EXPENSIVE * (double)v->size;
  return r;
}

/* Can the value be kept? A 16-bit map is not, because storing it would round it, unless it is a conversion that rounds
   anyway. */
static int can_be_kept(const nvg_val *v, const price *p) {
  int rounds = v->kind == NVG_VMAP && v->op == NVG_OP_CAST && !(v->attr[0] & NVG_INNER);
  int narrow = nvg_is_narrow(v->dtype) && v->kind != NVG_VRED && v->kind != NVG_VRESHAPE;
  return v->size && v->kind != NVG_VPICK && p->fixed && (!narrow || rounds);
}
/* Is the node among the last of a chain that is cut? What a loop carries from step to step is. */
static int is_near_cut(const collector *c, const nvg_node *n) {
  enum { NEAR = 64 };
  int cut = c->claims ? c->claims->cut : 0;
  return cut && atomic_load_explicit(&n->depth, memory_order_relaxed) > cut - NEAR;
}

/* A factorization that others read too is kept at once: its parts are read one by one, and it costs far more than its
   memory. */
static int is_kept_at_once(const nvg_val *v) { return v->kind == NVG_VROUTINE && nvg_is_of_matrices(v->op); }

/* ---- values that are wanted again. A scope or a name that references a node does not mean that the node will be read,
   so the first evaluation that computes it does not keep it. If a second evaluation wants it, that one keeps it, and
   from then on so does the first evaluation of each graph of the same structure. A 64-bit hash identifies a position in
   a graph. */
enum { PLACES = 1 << 12 };
static _Atomic uint64_t again[PLACES];

static uint64_t mix_hash(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}
/* Hashes all but the values of constants, which may change in each iteration of a user's loop. */
static uint64_t structure_of(const nvg_graph *g) {
  uint64_t h = (uint64_t)g->n;
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    h = mix_hash(mix_hash(h, (uint64_t)v->kind << 32 | (uint64_t)v->op << 8 | v->dtype), (uint64_t)v->size);
    for (int j = 0; j < v->nin; j++) h = mix_hash(h, (uint64_t)v->in[j]);
  }
  return h;
}
static int is_wanted_again(uint64_t key) {
  return atomic_load_explicit(&again[key % PLACES], memory_order_relaxed) == key;
}

void nvg_computed(const nvg_graph *g) {
  for (int i = 0; i < g->nout; i++) {
    uint64_t key = atomic_load_explicit(&g->out_node[i]->left, memory_order_relaxed);
    if (key) atomic_store_explicit(&again[key % PLACES], key, memory_order_relaxed);
  }
  for (int i = 0; i < g->nleft; i++)
    atomic_store_explicit(&g->left[i].node->left, g->left[i].key, memory_order_relaxed);
}

/* Finds donated leaves whose memory may be reused: nothing but this graph references them, and no node that stays
   pending is referenced from outside. */
static void find_donors(const collector *c, nvg_graph *g, const uint8_t *taken, const int *refs, const int *uses) {
  int alone = 1;
  for (int i = 0; i < g->n; i++) alone &= taken[i] || refs[i] <= uses[i];
  for (int i = 0; i < g->nleaf && alone; i++) {
    nvg_node *n = c->leaf_node.at[i];
    uint32_t owners = (uint32_t)atomic_load_explicit(&n->refs, memory_order_relaxed);
    g->leaf[i].donated = (n->flags & NVG_DONATED) && (int)owners == uses[find_slot(c, n)->value];
  }
}

/* Claims the roots that were pending when they were visited. Returns 0 if another evaluation computes one. */
static int claim_roots(collector *c, nvg_node *const *roots, int nroot) {
  for (int i = 0; i < nroot && c->claims && !is_busy(c); i++) {
    slot *s = find_slot(c, roots[i]);
    if (s->computed || c->make.v.at[s->value].kind == NVG_VLEAF) continue;
    s->computed = nvg_claim_compute(c->claims, roots[i]);
    if (!s->computed) c->claims->busy = nvg_node_ref(roots[i]);
  }
  return !is_busy(c);
}

static void add_outputs(collector *c, nvg_graph *g, nvg_node *const *roots, int nroot) {
  nvb_arena *a = c->arena;
  NVB_VEC(int) out = { 0 };
  NVB_VEC(nvg_node *) node = { 0 };
  NVB_VEC(nvg_left) left = { 0 };
  uint64_t structure = 0;
  price *p = NVB_NEWN(a, price, g->n + 1);
  int *uses = NVB_NEWN(a, int, g->n + 1);
  uint8_t *taken = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < nroot; i++) {
    int v = find_slot(c, roots[i])->value;
    NVB_PUSH(a, out, v);
    NVB_PUSH(a, node, roots[i]);
    taken[v] = 1;
  }
  for (int i = 0; i < g->n; i++) {
    p[i] = price_of(g, &g->v[i], p);
    if (g->v[i].kind == NVG_VLEAF) p[i].fixed = atomic_load(&c->leaf_node.at[g->v[i].leaf]->value) != NULL;
  }
  for (int i = 0; i < c->inner.n; i++) /* edges of merged nodes count for the value they became */
    for (int j = 0; j < g->v[c->inner.at[i].value].nin; j++) uses[g->v[c->inner.at[i].value].in[j]]++;
  int *refs = NVB_NEWN(a, int, g->n + 1), *copies = NVB_NEWN(a, int, g->n + 1);
  for (int i = 0; i < c->inner.n; i++) {
    int v = c->inner.at[i].value;
    refs[v] += (int)(uint32_t)atomic_load_explicit(&c->inner.at[i].node->refs, memory_order_relaxed);
    copies[v]++;
  }
  for (int i = 0; i < c->inner.n; i++) {
    nvg_node *n = c->inner.at[i].node;
    int v = c->inner.at[i].value;
    int before = atomic_load_explicit(&n->left, memory_order_relaxed) != 0, near = is_near_cut(c, n);
    if (taken[v] || copies[v] != 1 || (!before && refs[v] <= uses[v]) || !can_be_kept(&g->v[v], &p[v])) continue;
    if (!near && !p[v].expensive) continue;
    structure = structure ? structure : structure_of(g) | 1;
    uint64_t key = mix_hash(structure, (uint64_t)v) | 1;
    if (!near && !before && !is_kept_at_once(&g->v[v]) && !is_wanted_again(key)) {
      NVB_PUSH(a, left, ((nvg_left){ n, key }));
      continue;
    }
    if (c->claims && !nvg_claim_compute(c->claims, n)) continue; /* another evaluation keeps it */
    NVB_PUSH(a, out, v);
    NVB_PUSH(a, node, n);
    taken[v] = 1;
  }
  g->nout = out.n;
  g->out = out.at;
  g->out_node = node.at;
  g->nleft = left.n;
  g->left = left.at;
  find_donors(c, g, taken, refs, uses);
}

nvg_graph *nvg_collect(nvb_arena *a, nvg_node *const *roots, int nroot, nvg_claims *claims) {
  collector c = { .arena = a, .claims = claims, .mask = 63 };
  c.table = NVB_NEWN(a, slot, c.mask + 1);
  nvg_make_init(&c.make, a);
  for (int i = 0; i < nroot && !is_busy(&c); i++) visit_root(&c, roots[i]);
  if (is_busy(&c) || !claim_roots(&c, roots, nroot)) return NULL;
  nvg_graph *g = NVB_NEW(a, nvg_graph);
  *g = (nvg_graph){
    .arena = a, .n = c.make.v.n, .v = c.make.v.at, .nleaf = c.leaf.n, .leaf = c.leaf.at, .leaf_node = c.leaf_node.at
  };
  add_outputs(&c, g, roots, nroot);
  return g;
}
