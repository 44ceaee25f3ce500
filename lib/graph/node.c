/* Implements lazy nodes: one allocation each, reference-counted, freed without recursion. A node is immutable except
   for its value, which an evaluation writes once. Nothing here knows what an operation means. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

/* ---- reference counts. A pending node is an owner of its operands: USER adds 1 to both halves. */
#define USER (1ull << 32 | 1)
static uint32_t owners_of(uint64_t refs) { return (uint32_t)refs; }
static uint32_t users_of(uint64_t refs) { return (uint32_t)(refs >> 32); }

static _Atomic int64_t pending_bytes;
int64_t nvg_pending_bytes(void) { return atomic_load_explicit(&pending_bytes, memory_order_relaxed); }

/* Counts the bytes of a value that only pending nodes own. Concurrent updates may race here: the count only estimates
   when to evaluate. */
static void count_pinned(nvg_node *n, int on) {
  if (atomic_exchange_explicit(&n->pinned, (uint8_t)on, memory_order_relaxed) == on) return;
  int64_t bytes = n->aval->size * nvg_size(n->aval->dtype);
  atomic_fetch_add_explicit(&pending_bytes, on ? bytes : -bytes, memory_order_relaxed);
}
static void pin_if_alone(nvg_node *n, uint64_t refs) {
  if (owners_of(refs) == users_of(refs) && atomic_load_explicit(&n->value, memory_order_relaxed)) count_pinned(n, 1);
}

nvg_node *nvg_node_ref(nvg_node *n) {
  if (!n) return NULL;
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  if (atomic_load_explicit(&n->pinned, memory_order_relaxed)) count_pinned(n, 0);
  return n;
}

/* Turns a reference into that of a pending node. */
static void use_node(nvg_node *n) {
  if (atomic_load_explicit(&n->refs, memory_order_relaxed) == 1) { /* no other thread has a reference */
    atomic_store_explicit(&n->refs, USER, memory_order_relaxed);
    return;
  }
  uint64_t refs = atomic_fetch_add_explicit(&n->refs, USER - 1, memory_order_relaxed) + USER - 1;
  pin_if_alone(n, refs);
}

/* Drops references; returns 1 if the last owner has gone. The node must not be read afterwards, since another thread
   may free it. */
static int release_node(nvg_node *n, uint64_t by) {
  uint64_t left = atomic_load_explicit(&n->refs, memory_order_acquire) - by;
  if (!left) return 1; /* the only owner: no other thread can add a reference */
  if (by == 1 && owners_of(left)) pin_if_alone(n, left);
  return !owners_of(atomic_fetch_sub_explicit(&n->refs, by, memory_order_acq_rel) - by);
}

static nvg_node *node_alloc(nvg_op op, const nvg_aval *aval, int nin, int nattr) {
  nvg_node *n = nvb_alloc(sizeof *n + sizeof *n->in * (size_t)nin + sizeof *n->attr * (size_t)nattr);
  if (!n) return nvb_fail_memory(), NULL;
  atomic_init(&n->refs, 1);
  n->op = (uint16_t)op;
  n->weak = n->device = 0;
  atomic_init(&n->flags, 0);
  atomic_init(&n->pinned, 0);
  atomic_init(&n->depth, 0);
  n->aval = aval;
  n->nin = nin;
  n->nattr = nattr;
  n->attr = (int64_t *)(n + 1);
  n->in = (nvg_node **)(n->attr + nattr);
  atomic_init(&n->value, NULL);
  atomic_init(&n->claim, 0);
  atomic_init(&n->left, 0);
  n->mark = NULL;
  return n;
}

/* Makes n an owner of its operands, and deeper than they are. by: USER, or USER - 1 where it takes a reference. */
static void set_operands(nvg_node *n, nvg_node *const *in, int nin, uint64_t by) {
  int depth = 0;
  for (int i = 0; i < nin; i++) {
    n->in[i] = in[i];
    if (by != USER) use_node(in[i]);
    else atomic_fetch_add_explicit(&in[i]->refs, USER, memory_order_relaxed); /* it stays pinned, or not */
    int below = atomic_load_explicit(&in[i]->depth, memory_order_relaxed);
    if (below > depth) depth = below;
  }
  atomic_store_explicit(&n->depth, nin ? depth + 1 : 0, memory_order_relaxed);
}

/* The node, or NULL with aval dropped. by: as set_operands has it. */
static nvg_node *make_node(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr,
                           int nattr, uint64_t by) {
  int ok = aval != NULL;
  for (int i = 0; i < nin; i++) ok &= in[i] != NULL;
  nvg_node *n = ok ? node_alloc(op, aval, nin, nattr) : NULL;
  if (!n) return nvg_aval_unref(aval), NULL;
  set_operands(n, in, nin, by);
  if (nattr) memcpy(n->attr, attr, sizeof *attr * (size_t)nattr);
  return n;
}
nvg_node *nvg_node_take(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr) {
  nvg_node *n = make_node(op, aval, in, nin, attr, nattr, USER - 1);
  for (int i = 0; i < nin && !n; i++) nvg_node_unref(in[i]);
  return n;
}
nvg_node *nvg_node_new(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr) {
  return make_node(op, aval, in, nin, attr, nattr, USER);
}

void nvg_value_free(nvg_value *v) {
  for (nvg_value *next; v; v = next) {
    next = atomic_load_explicit(&v->replica, memory_order_acquire);
    int within = v->within;
    if (v->unref) v->unref(v->buffer);
    if (!within) nvb_free(v);
  }
}

/* Frees a list of dead nodes, linked through `mark`; operands that die are appended. */
static void free_dead(nvg_node *dead) {
  while (dead) {
    nvg_node *d = dead;
    dead = d->mark;
    for (int i = 0; i < d->nin; i++) {
      nvg_node *x = d->in[i];
      if (!release_node(x, USER)) continue;
      x->mark = dead;
      dead = x;
    }
    if (atomic_load_explicit(&d->pinned, memory_order_relaxed)) count_pinned(d, 0);
    nvg_value_free(atomic_load(&d->value));
    nvg_aval_unref(d->aval);
    nvb_free(d);
  }
}

void nvg_node_unref(nvg_node *n) {
  if (!n || !release_node(n, 1)) return;
  n->mark = NULL;
  free_dead(n);
}

int nvg_node_set(nvg_node *n, nvg_value *v) {
  nvg_value *none = NULL;
  if (!atomic_compare_exchange_strong(&n->value, &none, v)) return nvg_value_free(v), 0;
  atomic_store_explicit(&n->depth, 0, memory_order_relaxed); /* other threads may be building nodes on it */
  pin_if_alone(n, atomic_load(&n->refs));
  if (nvg_claim_valued(n)) nvg_node_drop_operands(n);
  return 1;
}

void nvg_node_drop_operands(nvg_node *n) {
  int nin = n->nin;
  n->nin = 0;
  for (int i = 0; i < nin; i++)
    if (release_node(n->in[i], USER)) n->in[i]->mark = NULL, free_dead(n->in[i]);
}

static nvg_node *make_leaf(const nvg_aval *aval, nvg_value *v, int nattr) {
  nvg_node *n = aval ? node_alloc(NVG_OP_LEAF, aval, 0, nattr) : NULL;
  if (!n) return nvg_aval_unref(aval), nvg_value_free(v), NULL;
  atomic_init(&n->value, v);
  return n;
}
nvg_node *nvg_leaf_new(const nvg_aval *aval, nvg_value *v) { return make_leaf(aval, v, 0); }
nvg_node *nvg_leaf_with(const nvg_aval *aval, const int64_t *attr, int nattr) {
  nvg_node *n = make_leaf(aval, NULL, nattr);
  if (n && nattr) memcpy(n->attr, attr, sizeof *attr * (size_t)nattr);
  return n;
}

nvg_node *nvg_put(nvg_node *n, int device) {
  nvg_node *r = nvg_node_new(NVG_OP_RESHAPE, nvg_aval_ref(n->aval), &n, 1, NULL, 0);
  if (r) r->device = (uint8_t)device;
  return r;
}

/* ---- constants */
nvg_node *nvg_const_bits(nvm_dtype t, uint64_t re, uint64_t im) {
  int64_t bits[2] = { (int64_t)re, (int64_t)im };
  return nvg_node_new(NVG_OP_CONST, nvg_aval_get(t, 0, NULL), NULL, 0, bits, nvg_parts(t));
}

nvg_node *nvg_const(nvm_dtype t, double re, double im, int64_t i) {
  nvm_dtype part = nvg_real_of(t);
  if (nvg_class_of(t) < NVG_FLOAT) return nvg_const_bits(t, nvg_int_bits(t, i), 0);
  return nvg_const_bits(t, nvg_float_bits(part, re), nvg_float_bits(part, im));
}

/* ---- the nodes that a call owns */
nvg_node *nvg_keep(nvg_call *c, nvg_node *n) {
  if (!n) return NULL;
  if (c->nown == c->cap) {
    int cap = c->cap * 2;
    nvg_node **own = nvb_alloc(sizeof *own * (size_t)cap);
    if (!own) return nvg_node_unref(n), nvb_fail_memory(), NULL;
    memcpy(own, c->own, sizeof *own * (size_t)c->nown);
    if (c->own != c->inl) nvb_free(c->own);
    c->own = own;
    c->cap = cap;
  }
  return c->own[c->nown++] = n;
}

void nvg_call_end(nvg_call *c) {
  for (int i = 0; i < c->nown; i++) nvg_node_unref(c->own[i]);
  if (c->own != c->inl) nvb_free(c->own);
}
