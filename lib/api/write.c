/* Writes to arrays, and reads of single elements. A write to part of an array with a value in host memory is done at
   once: in place if nothing else can see those elements, else in a copy that becomes the array's value. In traces, on
   GPUs, and for large pending values a write makes a node. Decides which; never which handle views which (view.c). */
#include <stdlib.h>
#include <string.h>
#include "api/api.h"
#include "graph/infer.h"

enum {
  LARGE = 1 << 16, /* from this many elements on, a pending value is better computed together with what reads it */
  PATIENCE = 8     /* a pending array that is touched more often is evaluated */
};

/* ---- parts: strided elements of a value, in bytes from its first element */
typedef struct part {
  size_t each;
  int rank;
  int64_t size, offset, shape[NVM_MAX_RANK], stride[NVM_MAX_RANK];
} part;

/* offset and stride in elements */
static void set_part(part *p, const nvg_aval *av, int64_t offset, const int64_t *stride) {
  int64_t each = nvg_size(av->dtype);
  p->each = (size_t)each;
  p->rank = av->rank;
  p->size = av->size;
  p->offset = offset * each;
  for (int d = 0; d < av->rank; d++) p->shape[d] = av->shape[d], p->stride[d] = stride[d] * each;
}
/* The part of its base that a is, if the base is in row-major order. Returns 0 if no strides describe it. */
static int part_of(part *p, const nvm_array *a) {
  int64_t packed[NVM_MAX_RANK];
  const nvg_aval *av = a->node->aval;
  if (a->base && !a->lens->strided) return 0;
  nvg_packed(packed, av->rank, av->shape);
  set_part(p, av, a->base ? a->lens->offset : 0, a->base ? a->lens->stride : packed);
  return 1;
}
/* Narrows a part to a slice of it. Returns 0 if the slice exceeds the part. */
static int narrow_part(part *p, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop) {
  int n = 0;
  p->size = 1;
  for (int d = 0; d < p->rank; d++) {
    int64_t extent = p->shape[d], last;
    if (count[d] < 0 || start[d] < 0 || start[d] > extent || (count[d] && start[d] == extent) || !step[d]) return 0;
    if (__builtin_mul_overflow(count[d] - 1, step[d], &last) || __builtin_add_overflow(start[d], last, &last)) return 0;
    if ((count[d] && (last < 0 || last >= extent)) || (drop && drop[d] && count[d] != 1)) return 0;
    p->offset += start[d] * p->stride[d];
    p->size *= count[d];
    if (drop && drop[d]) continue;
    p->shape[n] = count[d];
    p->stride[n++] = p->stride[d] * step[d];
  }
  p->rank = n;
  return 1;
}
static int is_same(const part *p, const part *q) {
  int same = p->each == q->each && p->rank == q->rank && p->offset == q->offset;
  for (int d = 0; same && d < p->rank; d++)
    same = p->shape[d] == q->shape[d] && (p->shape[d] == 1 || p->stride[d] == q->stride[d]);
  return same;
}

/* ---- do two parts of one memory overlap? Columns of a matrix interleave, so ranges of bytes are also compared modulo
   the row stride, where steps by whole rows vanish. */
typedef struct range { int64_t at, width; } range;
static range range_of(const part *p, int64_t modulus) { /* modulus 0: the range of bytes as it is */
  int64_t low = p->offset, high = p->offset + (int64_t)p->each;
  for (int d = 0; d < p->rank; d++) {
    if (modulus && p->stride[d] % modulus == 0) continue;
    *(p->stride[d] < 0 ? &low : &high) += p->stride[d] * (p->shape[d] - 1);
  }
  return (range){ low, high - low };
}
static int are_apart_by(const part *p, const part *q, int64_t modulus) {
  range a = range_of(p, modulus), b = range_of(q, modulus);
  if (!modulus) return a.at + a.width <= b.at || b.at + b.width <= a.at;
  int64_t gap = (b.at - a.at) % modulus;
  gap += gap < 0 ? modulus : 0;
  return gap >= a.width && gap + b.width <= modulus;
}
static int are_apart(const part *p, const part *q) { /* 1: they do not overlap; 0: they may */
  if (!p->size || !q->size || are_apart_by(p, q, 0)) return 1;
  for (int d = 0; d < p->rank; d++)
    if (p->shape[d] > 1 && p->stride[d] && are_apart_by(p, q, llabs(p->stride[d]))) return 1;
  return 0;
}

/* ---- storing */
/* Can the part of the base's value be seen other than through the base? Under the lock of handles. References from
   views are known and compared with the part; any other reference counts as seen. */
static int is_seen(const nvm_array *base, const part *p) {
  const nvg_value *v = atomic_load(&base->node->value);
  const nvd_buf *b = v->buffer;
  int known = 1;
  if ((uint32_t)atomic_load(&base->node->refs) != 1 || atomic_load(&v->replica) || nva_is_borrowed(v)) return 1;
  for (const nvm_array *view = base->views; view; view = view->after) {
    const nvg_value *w = atomic_load(&view->node->value);
    part q;
    if (!w || w->buffer != b) continue;
    set_part(&q, view->node->aval, 0, w->stride);
    q.offset = w->data - v->data;
    if (!are_apart(p, &q) && !are_apart(&q, p)) return 1;
    known++;
  }
  return atomic_load_explicit(&b->refs, memory_order_acquire) != known;
}
/* One write: what is stored, and where. */
typedef struct write {
  nvm_array *a, *base, *value;
  part to;             /* the part of the base */
  const char *at;      /* int64 row-major positions in `to` of `count` elements; NULL: all of `to` */
  int64_t count, step; /* step: bytes between positions */
} write;
static int rank_of(const write *w) { return w->at ? 1 : w->to.rank; } /* rank of what the value is broadcast to */
static const int64_t *shape_of(const write *w) { return w->at ? &w->count : w->to.shape; }

/* The elements to store, in the dtype of the part. */
typedef struct source { const char *data; int64_t stride[NVM_MAX_RANK]; char number[16]; } source;
static void set_source(source *s, const nvg_node *n, const nvg_value *v, const write *w) {
  int rank = rank_of(w), skip = rank - n->aval->rank;
  size_t each = w->to.each, half = each / (size_t)nvg_parts(n->aval->dtype);
  s->data = v ? v->data : s->number;
  for (int d = 0; d < rank; d++)
    s->stride[d] = !v || d < skip || n->aval->shape[d - skip] == 1 ? 0 : v->stride[d - skip] * (int64_t)each;
  for (int i = 0; !v && i < n->nattr; i++) memcpy(s->number + (size_t)i * half, &n->attr[i], half);
}
static int64_t position_at(const write *w, int64_t i) {
  int64_t k;
  memcpy(&k, w->at + i * w->step, sizeof k);
  return k < 0 ? k + w->to.size : k;
}
static void scatter_elements(char *data, const write *w, const source *s) {
  const part *p = &w->to;
  for (int64_t i = 0; i < w->count; i++) {
    char *to = data;
    int64_t k = position_at(w, i);
    for (int d = p->rank - 1; d > 0; k /= p->shape[d--]) to += k % p->shape[d] * p->stride[d];
    if (p->rank) to += k * p->stride[0];
    memcpy(to, s->data + i * s->stride[0], p->each);
  }
}
static void put_elements(char *data, const write *w, const source *s) {
  const part *p = &w->to;
  if (w->at) scatter_elements(data + p->offset, w, s);
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
static int is_on_host(const nvm_array *base) {
  const nvg_value *v = atomic_load(&base->node->value);
  return !nva_tracing() && !base->node->weak && nva_device_of(base->ctx, base->node) == NVM_DEVICE_CPU &&
         !(v && v->device);
}
static int is_generated(const nvg_node *n) { return n->op == NVG_OP_EXPAND || n->op == NVG_OP_IOTA; }
/* Has the base a value, now that a part of it is accessed? Evaluates it if that is cheap or if it has been accessed
   often. An error is in *status. */
static int has_value(nvm_array *base, int *status) {
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
/* Stores n, which has a value in host memory or is a number, and is taken. Returns a status. */
static int store_value(const write *w, nvg_node *n) {
  nvg_value *v = n->op == NVG_OP_CONST ? NULL : atomic_load(&n->value), *own = atomic_load(&w->base->node->value);
  int within = v && v->buffer == own->buffer;
  nvg_value *apart = within ? nva_value_copy(v, n->aval, NVM_DEVICE_CPU) : NULL;
  source s;
  if (within && !apart) return nvg_node_unref(n), nvb_status();
  set_source(&s, n, within ? apart : v, w);
  if (within) nvg_node_unref(n), n = NULL;
  if (w->a->base) nva_forget(w->a); /* only this call uses both arrays */
  if (w->value->base == w->base) nva_forget(w->value);
  int status = put_in_place(w, &s) ? NVM_OK : put_in_copy(w, &s);
  nvg_value_free(apart);
  nvg_node_unref(n);
  return status;
}
/* Returns 1 if the write is done or failed with *status, 0 if it needs nodes. */
static int store_write(const write *w, int *status) {
  int related = w->value == w->base || w->value->base == w->base;
  part q;
  *status = NVM_OK;
  if (!w->at && related && part_of(&q, w->value) && is_same(&w->to, &q)) return 1; /* a part is assigned to itself */
  nvg_node *n = w->value != &nva_none && is_on_host(w->base) ? cast_for(w) : NULL;
  if (!n) return 0;
  int stored = !is_better_pending(w, n) && has_value(w->base, status);
  if (stored && is_pending(n)) *status = nva_eval(w->base->ctx, &n, 1);
  const nvg_value *there = atomic_load(&n->value);
  if (stored && !*status && !(there && there->device)) return *status = store_value(w, n), 1;
  nvg_node_unref(n);
  return *status != NVM_OK;
}
static write write_of(nvm_array *a, nvm_array *value) {
  write w;
  w.a = a, w.value = value, w.base = a->base ? a->base : a, w.at = NULL;
  return w;
}

/* ---- assignment */
static nvg_node *cast_like(nvg_node *v, nvg_node *like) {
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
  nvg_node_unref(n);
  return all;
}
static int write_nodes(nvm_array *a, nvm_array *value) {
  nvg_node *old = nva_node(a), *v = old ? nva_node(value) : NULL, *n = v ? node_written(a, old, v) : NULL;
  if (!n) return nvb_status();
  int status = nva_settle(a->ctx, n); /* evaluate before anything is written */
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
  return a->base && part_of(&w.to, a) && store_write(&w, &status) ? status : write_nodes(a, value);
}
int nvm_assign_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                    const int *drop, nvm_array *value) {
  int status = check_assign(a, value);
  if (status) return status;
  write w = write_of(a, value);
  int simple = rank == nvm_rank(a) && (!rank || (start && count && step)) && part_of(&w.to, a) &&
               narrow_part(&w.to, start, count, step, drop);
  if (simple && store_write(&w, &status)) return status;
  nvm_array *view = nvm_view(a, rank, start, count, step, drop);
  status = view ? write_nodes(view, value) : nvb_status();
  nvm_array_unref(view);
  return status;
}

/* Sets the positions of a write from a value in host memory. Returns 0, with *status, if one is out of range. */
static int set_positions(write *w, const nvg_node *n, const nvg_value *v, int *status) {
  w->at = v->data;
  w->count = n->aval->size;
  w->step = v->stride[0] * (int64_t)sizeof(int64_t);
  for (int64_t i = 0; i < w->count; i++) {
    int64_t k = position_at(w, i);
    if (k < 0 || k >= w->to.size)
      return *status = nvb_fail(NVM_ERR_INDEX, "[assign_at] position %lld is out of range for %lld elements",
                                (long long)k, (long long)w->to.size),
             0;
  }
  return 1;
}
int nvm_assign_at(int *done, nvm_array *a, nvm_array *at, nvm_array *value) {
  if (!done) return nva_missing("assign_at", "pointer for the answer");
  *done = 0;
  int status = check_assign(a, value);
  if (status || !at) return status ? status : nva_null("assign_at", "list of positions");
  write w = write_of(a, value);
  if (at->ctx != a->ctx || nvm_dtype_of(at) != NVM_I64 || nvm_rank(at) != 1)
    return nvb_fail(NVM_ERR_TYPE, "[assign_at] positions are int64, in one dimension");
  if (!part_of(&w.to, a) || !is_on_host(w.base)) return NVM_OK;
  nvg_node *n = nva_node_ref(at);
  if (!n) return nvb_status();
  if (is_pending(n)) status = nva_eval(a->ctx, &n, 1);
  nvg_value *v = atomic_load(&n->value), *here = status || !v ? NULL : nva_value_copy(v, n->aval, NVM_DEVICE_CPU);
  if (!status && !here) status = nvb_status();
  if (!status && set_positions(&w, n, here, &status)) *done = store_write(&w, &status) && !status;
  nvg_value_free(here);
  nvg_node_unref(n);
  return status;
}

/* ---- elements */
/* Copies the bytes of an element, if they are in host memory that this thread can read. Returns 0 if not. */
static int look_at(char *out, const nvm_array *a, const int64_t *index) {
  const nvm_array *base = a->base ? a->base : a;
  int seen = 0;
  part p;
  nva_handles_take();
  const nvg_value *v = atomic_load(&base->node->value);
  if (v && !v->device && !v->sum && v->buffer && part_of(&p, a) && (!a->base || nva_is_plain(v, base->node->aval))) {
    if (!a->base) set_part(&p, a->node->aval, 0, v->stride);
    for (int d = 0; d < p.rank; d++) p.offset += index[d] * p.stride[d];
    memcpy(out, v->data + p.offset, p.each);
    seen = 1;
  }
  nva_handles_give();
  return seen;
}
static nvm_array *scalar_array(nvm_array *a, const char *bytes) {
  size_t each = (size_t)nvg_size(a->node->aval->dtype);
  const nvg_aval *av = nvg_aval_get(a->node->aval->dtype, 0, NULL);
  nvd_buf *b = av ? nvd_buf_new(each) : NULL;
  if (b) memcpy(b->data, bytes, each);
  nvg_value *v = nva_value_new(b, b ? b->data : NULL, 0, NULL);
  nvg_node *n = v ? nvg_leaf_new(av, v) : (nvg_aval_unref(av), NULL);
  if (n) n->device = (a->base ? a->base : a)->node->device;
  return nva_array_new(a->ctx, n);
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
  int here = is_inside(a, index) && is_on_host(base) && has_value(base, &status);
  if (status) return NULL;
  if (here && look_at(bytes, a, index)) return scalar_array(a, bytes);
  for (int d = 0; d < nvm_rank(a); d++) ones[d] = drop[d] = 1;
  nvm_array *v = nvm_view(a, nvm_rank(a), index, ones, ones, drop), *r = nvm_snapshot(v);
  nvm_array_unref(v);
  return r;
}
