/* Writes to arrays, and reads of single elements. A write to part of an array with a value in host memory is done at
   once: in place if nothing else can see those elements, else in a copy that becomes the array's value. In traces, on
   GPUs, and for large pending values a write makes a node. Decides which; never which handle views which (view.c). */
#include <stdlib.h>
#include <string.h>
#include "api/index.h"
#include "api/overlap.h"
#include "api/put.h"
#include "api/stores.h"
#include "graph/infer.h"

enum {
  LARGE = 1 << 16, /* from this many elements on, a pending value is better computed together with what reads it */
  PATIENCE = 8,    /* a pending array that is touched more often is evaluated */
  TRIES = 256      /* combinations of indices that are tried to show that two parts do not overlap */
};

/* ---- storing */
/* Can the part of the base's value be seen other than through the base? Under the lock of handles. References from
   views are known and compared with the part; any other reference counts as seen. */
static int is_seen(const nvm_array *base, const nva_part *p) {
  const nvg_value *v = atomic_load(&base->node->value);
  const nvd_buf *b = v->buffer;
  int known = 1;
  if ((uint32_t)atomic_load(&base->node->refs) != 1 || atomic_load(&v->replica) || nva_is_borrowed(v)) return 1;
  for (const nvm_array *view = base->views; view; view = view->after) {
    const nvg_value *w = atomic_load(&view->node->value);
    nva_part q;
    if (!w || w->buffer != b) continue;
    nva_part_set(&q, view->node->aval, 0, w->stride);
    q.offset = w->data - v->data;
    if (nva_parts_overlap(p, &q, TRIES) != NVA_APART) return 1;
    known++;
  }
  return atomic_load_explicit(&b->refs, memory_order_acquire) != known;
}
/* One write: what is stored, and where. */
typedef struct write {
  nvm_array *a, *base, *value;
  nva_part to;         /* the part of the base */
  const nva_index *at; /* selects elements of `to`; NULL: all of it */
} write;
/* what the value is broadcast to */
static int rank_of(const write *w) { return w->at ? w->at->result_rank : w->to.rank; }
static const int64_t *shape_of(const write *w) { return w->at ? w->at->result_shape : w->to.shape; }

/* The elements to store, in the dtype of the part. */
typedef struct source { const char *data; int64_t stride[NVM_MAX_RANK]; char number[16]; } source;
static void set_source(source *s, const nvg_aval *av, const nvg_value *v, const write *w) {
  int rank = rank_of(w), skip = rank - av->rank;
  s->data = v->data;
  for (int d = 0; d < rank; d++)
    s->stride[d] = d < skip || av->shape[d - skip] == 1 ? 0 : v->stride[d - skip] * (int64_t)w->to.each;
}
static void set_number(source *s, nvm_dtype t, const void *bits, const write *w) { /* bits: 8 bytes for each part */
  size_t half = w->to.each / (size_t)nvg_parts(t);
  s->data = s->number;
  for (int d = 0; d < rank_of(w); d++) s->stride[d] = 0;
  for (int i = 0; i < nvg_parts(t); i++) memcpy(s->number + (size_t)i * half, (const char *)bits + 8 * i, half);
}
static void put_elements(char *data, const write *w, const source *s) {
  const nva_part *p = &w->to;
  if (w->at) nva_index_write(w->at, p, data + p->offset, s->data, s->stride);
  else nva_move_strided(data + p->offset, p->stride, s->data, s->stride, p->rank, p->shape, p->each);
}
static int put_in_place(const write *w, const source *s) { /* returns 0 if something else would see the write */
  nva_handles_take();
  const nvg_node *n = w->base->node;
  nvg_value *v = atomic_load(&n->value);
  int alone = nva_is_plain(v, n->aval) && !is_seen(w->base, &w->to);
  if (alone) {
    put_elements(v->data, w, s);
    w->base->version++; /* views may have values of their own from before the base had one */
  }
  nva_handles_give();
  return alone;
}
static int put_in_copy(const write *w, const source *s) { /* returns a status */
  const nvg_node *old = w->base->node;
  nvg_value *v = atomic_load(&old->value);
  int status = nva_check_borrowed(v, old->aval);
  if (status) return status;
  nvg_value *copy = nva_value_copy(v, old->aval, NVM_DEVICE_CPU);
  if (!copy) return nvb_status();
  put_elements(copy->data, w, s);
  nvg_node *n = nvg_leaf_new(nvg_aval_ref(old->aval), copy);
  if (!n) return nvb_status();
  n->device = old->device;
  nva_stand_for(w->base, n);
  return NVM_OK;
}

/* ---- choosing the kind of write */
static int is_pending(const nvg_node *n) { return n->op != NVG_OP_CONST && !atomic_load(&n->value); }
int nva_is_on_host(const nvm_array *base) {
  const nvg_value *v = atomic_load(&base->node->value);
  return !nva_tracing() && !base->node->weak && nva_device_of(base->ctx, base->node) == NVM_DEVICE_CPU &&
         !(v && v->device);
}
static int is_generated(const nvg_node *n) { return n->op == NVG_OP_EXPAND || n->op == NVG_OP_IOTA; }
int nva_has_value(nvm_array *base, int *status) {
  nvg_node *n = base->node;
  int pending = !atomic_load(&n->value);
  int due = pending && (n->aval->size < LARGE || is_generated(n) || base->touched >= PATIENCE);
  if (due) *status = nva_eval(base->ctx, &n, 1);
  base->touched = pending && !due ? (uint8_t)(base->touched + 1) : 0;
  return !*status && (!pending || due);
}
/* Casts the value to a's dtype; a new reference. NULL: the write needs nodes, which also report errors. */
static nvg_node *cast_for(const write *w) {
  nvg_node *v = nva_node(w->value);
  nvm_dtype t = w->a->node->aval->dtype;
  if (!v || (v->device && v->device != w->base->node->device)) return NULL;
  if (!nvg_broadcasts(v->aval, rank_of(w), shape_of(w))) return NULL;
  if (!v->weak && v->aval->dtype == t) return nvg_node_ref(v);
  nvg_attr dt = { .name = "dtype", .kind = 'd', .i = t };
  return nvg_apply(NVG_OP_ASTYPE, &v, 1, &dt, 1, NVM_F64);
}
/* Is a large pending value, for at least a quarter of the array, better left pending and computed with what reads
   it? */
static int is_better_pending(const write *w, const nvg_node *n) {
  const nvg_aval *all = w->base->node->aval;
  if (w->at || !is_pending(n) || n->aval->size < LARGE) return 0;
  if (4 * w->to.size * (int64_t)w->to.each < all->size * nvg_size(all->dtype)) return 0;
  return w->base->touched++ < PATIENCE;
}
static int put_somewhere(const write *w, const source *s) { /* returns a status */
  if (w->a->base) nva_forget(w->a);                         /* only this call uses both arrays */
  if (w->value->base == w->base) nva_forget(w->value);
  return put_in_place(w, s) ? NVM_OK : put_in_copy(w, s);
}
/* Stores n, which has a value in host memory or is a number, and is taken. Returns a status. */
static int store_value(const write *w, nvg_node *n) {
  nvg_value *v = n->op == NVG_OP_CONST ? NULL : atomic_load(&n->value), *own = atomic_load(&w->base->node->value);
  int within = v && v->buffer == own->buffer;
  nvg_value *apart = within ? nva_value_copy(v, n->aval, NVM_DEVICE_CPU) : NULL;
  source s;
  if (within && !apart) return nvg_node_unref(n), nvb_status();
  if (v) set_source(&s, n->aval, within ? apart : v, w);
  else set_number(&s, n->aval->dtype, n->attr, w);
  if (within) nvg_node_unref(n), n = NULL;
  int status = put_somewhere(w, &s);
  nvg_value_free(apart);
  nvg_node_unref(n);
  return status;
}
/* The bits of a weak number in the dtype of the part. Returns 0 if it has to be cast as arrays are, or cannot be. */
static int convert_number(uint64_t bits[2], const write *w) {
  nvg_node *n = w->value->node;
  nvm_dtype t = w->a->node->aval->dtype;
  if (!n->weak || n->op != NVG_OP_CONST) return 0;
  nvg_class from = nvg_class_of(n->aval->dtype), to = nvg_class_of(t);
  if (from == NVG_COMPLEX ? to != NVG_COMPLEX : from == NVG_FLOAT && to < NVG_FLOAT) return 0;
  return !nvg_weak_bits(bits, "astype", n, t);
}
static int store_number(const write *w, const uint64_t bits[2], int *status) {
  source s;
  if (!nva_has_value(w->base, status)) return *status != NVM_OK;
  set_number(&s, w->a->node->aval->dtype, bits, w);
  return *status = put_somewhere(w, &s), 1;
}
static int store_array(const write *w, int *status) {
  nvg_node *n = cast_for(w);
  if (!n) return 0;
  int stored = !is_better_pending(w, n) && nva_has_value(w->base, status);
  if (stored && is_pending(n)) *status = nva_eval(w->base->ctx, &n, 1);
  const nvg_value *there = atomic_load(&n->value);
  if (stored && !*status && !(there && there->device)) return *status = store_value(w, n), 1;
  nvg_node_unref(n);
  return *status != NVM_OK;
}
/* Returns 1 if the write is done or failed with *status, 0 if it needs nodes. */
static int store_write(const write *w, int *status) {
  int related = w->value == w->base || w->value->base == w->base;
  nva_part q;
  uint64_t bits[2];
  *status = NVM_OK;
  if (!w->at && related && nva_part_of(&q, w->value) && nva_part_is_same(&w->to, &q)) return 1; /* it stays as it is */
  if (w->value == &nva_none || !nva_is_on_host(w->base)) return 0;
  return convert_number(bits, w) ? store_number(w, bits, status) : store_array(w, status);
}
static write write_of(nvm_array *a, nvm_array *value) {
  write w;
  w.a = a, w.value = value, w.base = a->base ? a->base : a, w.at = NULL;
  return w;
}

/* ---- assignment */
static nvg_node *cast_like(nvg_node *v, nvg_node *like) {
  if (v->aval == like->aval && !v->weak && !nvg_is_narrow(v->aval->dtype)) return nvg_node_ref(v);
  nvg_attr dt = { .name = "dtype", .kind = 'd', .i = like->aval->dtype };
  nvg_attr sh = { .name = "shape", .kind = 'I', .is = like->aval->shape, .n = like->aval->rank };
  nvg_node *c = nvg_apply(NVG_OP_ASTYPE, &v, 1, &dt, 1, NVM_F64);
  if (!c) return NULL;
  nvg_node *b = nvg_apply(NVG_OP_BROADCAST_TO, &c, 1, &sh, 1, NVM_F64);
  nvg_node_unref(c);
  return b;
}
int nvm_check_writable(const nvm_array *a) {
  if (!a || a == &nva_none) return nva_null("assign", "array");
  const nvm_array *base = a->base ? a->base : a;
  if (a->fixed == NVA_OUTSIDE || (nva_tracing() && base->trace != nva_tracing()))
    return nvb_fail(NVM_ERR_STATE, "[assign] a traced function may not write to an array from outside it; pass the "
                                   "array in and return the new value");
  if (a->fixed)
    return nvb_fail(NVM_ERR_VALUE, "[assign] the array is read-only: a view that repeats elements, a diagonal, or the "
                                   "imaginary part of real numbers; write to a copy of it");
  return NVM_OK;
}
/* The node of a's base after a has become `value`; a new reference. */
static nvg_node *node_written(nvm_array *a, nvg_node *old, nvg_node *value) {
  int dev = nvg_device_join("assign", (nvg_node *[]){ old, value }, 2);
  nvg_node *n = dev < 0 ? NULL : cast_like(value, old);
  if (n && n->device != dev) { /* the array stays on its device */
    nvg_node *put = nvg_put(n, dev);
    nvg_node_unref(n);
    n = put;
  }
  if (!n || !a->base) return n;
  nvg_node *all = nvg_lens_put(a->lens, a->base->node, n);
  if (all && nva_tracing() && nva_put_note(a, all, n)) nvg_node_unref(all), all = NULL;
  nvg_node_unref(n);
  return all;
}
static int write_nodes(nvm_array *a, nvm_array *value) {
  nvg_node *old = nva_node(a), *v = old ? nva_node(value) : NULL, *n = v ? node_written(a, old, v) : NULL;
  if (!n) return nvb_status();
  int status = nva_eval_if_deep(a->ctx, n); /* evaluate before anything is written */
  if (status) return nvg_node_unref(n), status;
  nva_stand_for(a->base ? a->base : a, n);
  return NVM_OK;
}
static int check_assign(const nvm_array *a, const nvm_array *value) {
  if (!a || !value) return nva_null("assign", "array");
  if (value->ctx != a->ctx && value != &nva_none && a != &nva_none) return nva_two_contexts("assign");
  int status = nvm_check_writable(a);
  return status ? status : nva_check_kept(a);
}
int nvm_assign(nvm_array *a, nvm_array *value) {
  int status = check_assign(a, value);
  if (status) return status;
  write w = write_of(a, value);
  return a->base && nva_part_of(&w.to, a) && store_write(&w, &status) ? status : write_nodes(a, value);
}
int nvm_assign_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                    const int *drop, nvm_array *value) {
  int status = check_assign(a, value);
  if (status) return status;
  write w = write_of(a, value);
  int simple = rank == nvm_rank(a) && (!rank || (start && count && step)) && nva_part_of(&w.to, a) &&
               nva_part_narrow(&w.to, start, count, step, drop);
  if (simple && store_write(&w, &status)) return status;
  nvm_array *view = nvm_view(a, rank, start, count, step, drop);
  status = view ? write_nodes(view, value) : nvb_status();
  nvm_array_unref(view);
  return status;
}

int nvm_assign_at(int *done, nvm_array *a, int n, const nvm_index *at, int before, nvm_array *value) {
  if (!done) return nva_missing("assign_at", "pointer for the answer");
  *done = 0;
  int status = check_assign(a, value);
  if (!status) status = nva_index_check("assign_at", a, n, at);
  if (status) return status;
  if (nva_tracing()) return nva_put_nodes(done, a, n, at, before, value);
  write w = write_of(a, value);
  nva_index x;
  if (!nva_part_of(&w.to, a) || !nva_is_on_host(w.base)) return NVM_OK;
  w.at = &x;
  if (nva_index_open(&x, "assign_at", a->ctx, a->node->aval, n, at, before, 1, &status))
    *done = store_write(&w, &status) && !status;
  nva_index_close(&x);
  return status;
}

/* ---- stores of traced functions */
int nva_store_part(int *done, nvm_array *a, const nva_stored *what) {
  write w = write_of(a, what->value ? what->value : a);
  nva_part all;
  source s;
  int status = NVM_OK;
  w.to = *what->to, w.at = what->at;
  *done =
      nva_part_of(&all, a) && nva_part_within(&w.to, &all) && nva_is_on_host(w.base) && nva_has_value(w.base, &status);
  if (!*done) return status;
  if (what->value) return store_value(&w, nvg_node_ref(what->value->node));
  set_number(&s, what->dtype, what->bits, &w);
  return put_somewhere(&w, &s);
}
int nva_store_lent(const nvg_value *v, const nvg_aval *av, const nva_stored *what) {
  write w = { .to = *what->to, .at = what->at };
  nva_part all;
  source s;
  nva_part_set(&all, av, 0, v->stride);
  if (!nva_part_within(&w.to, &all)) return 0;
  if (what->value) set_source(&s, what->value->node->aval, atomic_load(&what->value->node->value), &w);
  else set_number(&s, what->dtype, what->bits, &w);
  put_elements(v->data, &w, &s);
  return 1;
}

/* ---- elements */
/* Copies the bytes of an element, if they are in host memory that this thread can read. Returns 0 if not. */
static int look_at(char *out, const nvm_array *a, const int64_t *index) {
  nva_part p;
  nva_handles_take();
  const nvg_value *v = atomic_load(&(a->base ? a->base : a)->node->value);
  int seen = nva_part_in(&p, a, v);
  for (int d = 0; seen && d < p.rank; d++) p.offset += index[d] * p.stride[d];
  if (seen) memcpy(out, v->data + p.offset, p.each);
  nva_handles_give();
  return seen;
}
static nvm_array *scalar_array(nvm_array *a, const char *bytes) {
  const nvg_aval *av = nvg_aval_get(a->node->aval->dtype, 0, NULL);
  nvg_value *v = av ? nva_value_packed(av) : NULL;
  if (v) memcpy(v->data, bytes, (size_t)nvg_size(av->dtype));
  nvm_array *r = nva_leaf_over(a->ctx, av, v, (a->base ? a->base : a)->node->device);
  nvg_aval_unref(av);
  return r;
}
static int is_inside(const nvm_array *a, const int64_t *index) {
  for (int d = 0; d < a->node->aval->rank; d++)
    if (index[d] < 0 || index[d] >= a->node->aval->shape[d]) return 0;
  return 1;
}
nvm_array *nvm_element(nvm_array *a, const int64_t *index) {
  char bytes[16];
  int64_t ones[NVM_MAX_RANK];
  int drop[NVM_MAX_RANK], status = NVM_OK;
  if (!a || a == &nva_none) return nva_null("element", "array"), NULL;
  if (!index && nvm_rank(a)) return nva_missing("element", "index"), NULL;
  if (nva_check_kept(a)) return NULL;
  nvm_array *base = a->base ? a->base : a;
  int here = is_inside(a, index) && nva_is_on_host(base) && nva_has_value(base, &status);
  if (status) return NULL;
  if (here && look_at(bytes, a, index)) return scalar_array(a, bytes);
  for (int d = 0; d < nvm_rank(a); d++) ones[d] = drop[d] = 1;
  nvm_array *v = nvm_view(a, nvm_rank(a), index, ones, ones, drop), *r = nvm_snapshot(v);
  nvm_array_unref(v);
  return r;
}
