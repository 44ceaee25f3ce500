/* Writes. What is stored to a part of an array that has a value in host memory is there at once: in place where nothing
   else can see these elements, else in a copy, which is the array's from then on. In traces, on GPUs, and where much is
   stored that has no value yet, a write makes a node. Decides which; what views what is view.c's. */
#include <stdlib.h>
#include <string.h>
#include "graph/infer.h"
#include "hallway.h"

enum {
  LARGE = 1 << 16, /* elements from which on what is pending is better computed together with what reads it */
  PATIENCE = 8     /* what is touched more often while it is pending gets a value */
};

/* ---- parts: elements of an array that lies in row-major order, or of any value; in bytes from its first element on */
typedef struct part {
  size_t each;
  int rank;
  int64_t size, offset, shape[NVM_MAX_RANK], stride[NVM_MAX_RANK];
} part;

static void set_part(part *p, const nvg_aval *av, int64_t offset, const int64_t *stride) { /* in elements */
  int64_t each = nvg_size(av->dtype);
  p->each = (size_t)each;
  p->rank = av->rank;
  p->size = av->size;
  p->offset = offset * each;
  for (int d = 0; d < av->rank; d++) p->shape[d] = av->shape[d], p->stride[d] = stride[d] * each;
}
/* What a is of its base, if that lies in row-major order; 0: no strides say it. */
static int part_of(part *p, const nvm_array *a) {
  int64_t packed[NVM_MAX_RANK];
  const nvg_aval *av = a->node->aval;
  if (a->base && !a->lens->strided) return 0;
  nvg_packed(packed, av->rank, av->shape);
  set_part(p, av, a->base ? a->lens->offset : 0, a->base ? a->lens->stride : packed);
  return 1;
}
/* 0: the window goes beyond it. */
static int narrow(part *p, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop) {
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

/* ---- do two parts of one memory meet? Columns lie between each other: bytes are looked at modulo the distance of two
   rows as well, where steps by rows go nowhere. */
typedef struct range { int64_t at, width; } range;
static range range_of(const part *p, int64_t modulus) { /* 0: of all bytes */
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
static int are_apart(const part *p, const part *q) { /* 0: perhaps not */
  if (!p->size || !q->size || are_apart_by(p, q, 0)) return 1;
  for (int d = 0; d < p->rank; d++)
    if (p->shape[d] > 1 && p->stride[d] && are_apart_by(p, q, llabs(p->stride[d]))) return 1;
  return 0;
}

/* ---- storing */
/* Can anybody see the part of the base's value but through the base? Under the lock of handles. What views hold of that
   memory is known; what is held beside is not. */
static int is_seen(const nvm_array *base, const part *p) {
  const nvg_value *v = atomic_load(&base->node->value);
  const nvd_buf *b = v->buffer;
  int known = 1;
  if ((uint32_t)atomic_load(&base->node->refs) != 1 || atomic_load(&v->mirror) || nvh_is_borrowed(v)) return 1;
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
/* What is stored: of one dtype with the part, broadcast to it. */
typedef struct source { const char *data; int64_t stride[NVM_MAX_RANK]; char number[16]; } source;
static void set_source(source *s, const nvg_node *n, const nvg_value *v, const part *p) {
  int skip = p->rank - n->aval->rank; /* leading extents of 1 are none: nvg_broadcasts */
  size_t half = p->each / (size_t)nvg_parts(n->aval->dtype);
  s->data = v ? v->data : s->number;
  for (int d = 0; d < p->rank; d++)
    s->stride[d] = !v || d < skip || n->aval->shape[d - skip] == 1 ? 0 : v->stride[d - skip] * (int64_t)p->each;
  for (int i = 0; !v && i < n->nattr; i++) memcpy(s->number + (size_t)i * half, &n->attr[i], half);
}
static void put(char *data, const part *p, const source *s) {
  nvh_move_strided(data + p->offset, p->stride, s->data, s->stride, p->rank, p->shape, p->each);
}
static int put_in_place(nvm_array *base, const part *p, const source *s) { /* 0: somebody else would see it */
  nvh_handles_take();
  nvg_value *v = atomic_load(&base->node->value);
  int alone = nvh_is_plain(v, base->node->aval) && !is_seen(base, p);
  if (alone) put(v->data, p, s);
  nvh_handles_give();
  return alone;
}
static int put_in_copy(nvm_array *base, const part *p, const source *s) { /* a status */
  const nvg_node *old = base->node;
  nvg_value *v = atomic_load(&old->value);
  int status = nvh_lent(v, old->aval);
  if (status) return status;
  nvg_value *copy = nvh_value_copy(v, old->aval, NVM_DEVICE_CPU);
  if (!copy) return nvb_status();
  put(copy->data, p, s);
  nvg_node *n = nvg_leaf_new(nvg_aval_ref(old->aval), copy);
  if (!n) return nvb_status();
  n->device = old->device;
  nvh_stand_for(base, n);
  return NVM_OK;
}

/* ---- which way */
static int is_pending(const nvg_node *n) { return n->op != NVG_OP_CONST && !atomic_load(&n->value); }
static int is_on_host(const nvm_array *base) {
  const nvg_value *v = atomic_load(&base->node->value);
  return !nvh_tracing() && !base->node->weak && nvh_place_of(base->ctx, base->node) == NVM_DEVICE_CPU &&
         !(v && v->device);
}
static int is_generated(const nvg_node *n) { return n->op == NVG_OP_EXPAND || n->op == NVG_OP_IOTA; }
/* Has it a value, now that a part of it is wanted? It gets one if that costs little, or if it was asked often. */
static int has_value(nvm_array *base, int *status) {
  nvg_node *n = base->node;
  int pending = !atomic_load(&n->value);
  int due = pending && (n->aval->size < LARGE || is_generated(n) || base->touched >= PATIENCE);
  if (due) *status = nvh_eval(base->ctx, &n, 1);
  base->touched = pending && !due ? (uint8_t)(base->touched + 1) : 0;
  return !*status && (!pending || due);
}
/* The value to be stored as a node of the dtype, a new reference; NULL: a write by nodes does it, or says what is
   wrong. */
static nvg_node *cast_to(nvg_node *v, const part *p, const nvg_aval *like, const nvm_array *base) {
  if ((v->device && v->device != base->node->device) || !nvg_broadcasts(v->aval, p->rank, p->shape)) return NULL;
  if (!v->weak && v->aval->dtype == like->dtype) return nvg_node_ref(v);
  nvg_attr dt = { .name = "dtype", .kind = 'd', .i = like->dtype };
  return nvg_apply(NVG_OP_ASTYPE, &v, 1, &dt, 1, NVM_F64);
}
/* Many elements that have no value yet, for a great part of the array: computed together with what reads it. */
static int is_better_pending(nvm_array *base, const part *p, const nvg_node *n) {
  int64_t all = base->node->aval->size * nvg_size(base->node->aval->dtype);
  if (!is_pending(n) || n->aval->size < LARGE || 4 * p->size * (int64_t)p->each < all) return 0;
  return base->touched++ < PATIENCE;
}
/* n, which is taken, has its value in host memory or is a number. A status. */
static int store_value(nvm_array *base, const part *p, nvm_array *a, nvm_array *value, nvg_node *n) {
  nvg_value *v = n->op == NVG_OP_CONST ? NULL : atomic_load(&n->value), *own = atomic_load(&base->node->value);
  nvg_value *apart = v && v->buffer == own->buffer ? nvh_value_copy(v, n->aval, NVM_DEVICE_CPU) : NULL;
  source s;
  if (v && v->buffer == own->buffer && !apart) return nvg_node_unref(n), nvb_status();
  set_source(&s, n, apart ? apart : v, p);
  if (apart) nvg_node_unref(n), n = NULL;
  if (a->base) nvh_forget(a); /* this call alone uses both */
  if (value->base == base) nvh_forget(value);
  int status = put_in_place(base, p, &s) ? NVM_OK : put_in_copy(base, p, &s);
  nvg_value_free(apart);
  nvg_node_unref(n);
  return status;
}
/* 1: it is stored, or *status says why not; 0: it takes nodes. like: of the elements. */
static int store(nvm_array *a, const part *p, const nvg_aval *like, nvm_array *value, int *status) {
  nvm_array *base = a->base ? a->base : a;
  part q;
  *status = NVM_OK;
  if (value == &nvh_none) return 0;
  int related = value == base || value->base == base;
  if (related && part_of(&q, value) && is_same(p, &q)) return 1; /* a part that becomes itself */
  if (!is_on_host(base)) return 0;
  nvg_node *v = nvh_node(value), *n = v ? cast_to(v, p, like, base) : NULL;
  if (!n) return 0;
  int stored = !is_better_pending(base, p, n) && has_value(base, status);
  if (stored && is_pending(n)) *status = nvh_eval(base->ctx, &n, 1);
  const nvg_value *there = atomic_load(&n->value);
  if (stored && !*status && !(there && there->device)) return *status = store_value(base, p, a, value, n), 1;
  nvg_node_unref(n);
  return *status != NVM_OK;
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
  if (!a || a == &nvh_none) return nvh_null("assign", "array");
  const nvm_array *base = a->base ? a->base : a;
  if (a->fixed == NVH_OUTSIDE || (nvh_tracing() && base->trace != nvh_tracing()))
    return nvb_fail(NVM_ERR_STATE, "[assign] a traced function may not write to an array from outside it; pass the "
                    "array in and return the new value");
  if (a->fixed)
    return nvb_fail(NVM_ERR_VALUE, "[assign] the array is read-only: a view that repeats elements, a diagonal, or the "
                    "imaginary part of real numbers; write to a copy of it");
  return NVM_OK;
}
/* What a's base becomes when a becomes `value`; a new reference. */
static nvg_node *written(nvm_array *a, nvg_node *old, nvg_node *value) {
  int place = nvg_device_join("assign", (nvg_node *[]){ old, value }, 2);
  nvg_node *n = place < 0 ? NULL : cast_like(value, old);
  if (n && n->device != place) { /* the array stays where it was put */
    nvg_node *put = nvg_put(n, place);
    nvg_node_unref(n);
    n = put;
  }
  if (!n || !a->base) return n;
  nvg_node *all = nvg_lens_put(a->lens, a->base->node, n);
  nvg_node_unref(n);
  return all;
}
static int write_nodes(nvm_array *a, nvm_array *value) {
  nvg_node *old = nvh_node(a), *v = old ? nvh_node(value) : NULL, *n = v ? written(a, old, v) : NULL;
  if (!n) return nvb_status();
  int status = nvh_settle(a->ctx, n); /* before anything is written */
  if (status) return nvg_node_unref(n), status;
  nvh_stand_for(a->base ? a->base : a, n);
  return NVM_OK;
}
static int check_assign(const nvm_array *a, const nvm_array *value) {
  if (!a || !value) return nvh_null("assign", "array");
  if (value->ctx != a->ctx && value != &nvh_none && a != &nvh_none) return nvh_two_contexts("assign");
  int status = nvm_check_writable(a);
  return status ? status : nvh_check_kept(a);
}
int nvm_assign(nvm_array *a, nvm_array *value) {
  part p;
  int status = check_assign(a, value);
  if (status || (a->base && part_of(&p, a) && store(a, &p, a->node->aval, value, &status))) return status;
  return write_nodes(a, value);
}
int nvm_assign_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                    const int *drop, nvm_array *value) {
  part p;
  int status = check_assign(a, value);
  if (status) return status;
  int simple = rank == nvm_rank(a) && (!rank || (start && count && step)) && part_of(&p, a) &&
               narrow(&p, start, count, step, drop);
  if (simple && store(a, &p, a->node->aval, value, &status)) return status;
  nvm_array *view = nvm_view(a, rank, start, count, step, drop);
  status = view ? write_nodes(view, value) : nvb_status();
  nvm_array_unref(view);
  return status;
}

/* ---- elements */
/* The bytes of an element, if they lie in host memory where this thread can look; 0: they do not. */
static int look_at(char *out, const nvm_array *a, const int64_t *index) {
  const nvm_array *base = a->base ? a->base : a;
  int seen = 0;
  part p;
  nvh_handles_take();
  const nvg_value *v = atomic_load(&base->node->value);
  if (v && !v->device && !v->sum && v->buffer && part_of(&p, a) && (!a->base || nvh_is_plain(v, base->node->aval))) {
    if (!a->base) set_part(&p, a->node->aval, 0, v->stride);
    for (int d = 0; d < p.rank; d++) p.offset += index[d] * p.stride[d];
    memcpy(out, v->data + p.offset, p.each);
    seen = 1;
  }
  nvh_handles_give();
  return seen;
}
static nvm_array *number(nvm_array *a, const char *bytes) {
  size_t each = (size_t)nvg_size(a->node->aval->dtype);
  const nvg_aval *av = nvg_aval_get(a->node->aval->dtype, 0, NULL);
  nvd_buf *b = av ? nvd_buf_new(each) : NULL;
  if (b) memcpy(b->data, bytes, each);
  nvg_value *v = nvh_value_new(b, b ? b->data : NULL, 0, NULL);
  nvg_node *n = v ? nvg_leaf_new(av, v) : (nvg_aval_unref(av), NULL);
  if (n) n->device = (a->base ? a->base : a)->node->device;
  return nvh_array_new(a->ctx, n);
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
  if (!a || a == &nvh_none) return nvh_null("element", "array"), NULL;
  if (!index && nvm_rank(a)) return nvh_missing("element", "index"), NULL;
  if (nvh_check_kept(a)) return NULL;
  nvm_array *base = a->base ? a->base : a;
  int here = is_inside(a, index) && is_on_host(base) && has_value(base, &status);
  if (status) return NULL;
  if (here && look_at(bytes, a, index)) return number(a, bytes);
  for (int d = 0; d < nvm_rank(a); d++) ones[d] = drop[d] = 1;
  nvm_array *v = nvm_view(a, nvm_rank(a), index, ones, ones, drop), *r = nvm_snapshot(v);
  nvm_array_unref(v);
  return r;
}
