/* Handles: their lifetime, attributes and values, donation, and copies between devices. A handle stands for a node; a
   view (view.c) follows writes to its base. Never decides how a value is computed. */
#include <stdlib.h>
#include <string.h>
#include "api/api.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/refs.h"

nvm_array nva_none = { .refs = 1 };
nvm_array *nvm_none(void) { return &nva_none; }

nvm_array *nva_array_new(nvm_ctx *c, nvg_node *n) {
  if (!n) return NULL;
  nvm_array *a = nvb_alloc(sizeof *a);
  if (!a) return nvg_node_unref(n), nvb_fail_memory(), NULL;
  *a = (nvm_array){ .refs = 1, .ctx = nva_ctx_ref(c), .node = n, .version = 1, .trace = nva_tracing() };
  return a;
}
nvm_array *nvm_array_ref(nvm_array *a) {
  if (a && a != &nva_none) atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
  return a;
}
static void unlink_view(nvm_array *a);
void nvm_array_unref(nvm_array *a) {
  while (a && a != &nva_none && nvb_let_go(&a->refs)) {
    nvm_array *base = a->base;
    if (base) unlink_view(a);
    nvg_node_unref(a->node);
    nva_ctx_unref(a->ctx);
    nvg_lens_free(a->lens);
    nvb_free(a);
    a = base;
  }
}

static nvg_value *value_of(nvm_array *a);
/* The node of a handle changes under this lock: several threads may derive a view, and one thread may read an array
   that another writes to. */
static nvb_lock handles = NVB_LOCK(HANDLES);
void nva_handles_take(void) { nvb_lock_take(&handles); }
void nva_handles_give(void) { nvb_lock_give(&handles); }

static void unlink_view(nvm_array *a) {
  nvb_lock_take(&handles);
  *(a->before ? &a->before->after : &a->base->views) = a->after;
  if (a->after) a->after->before = a->before;
  nvb_lock_give(&handles);
}
void nva_link_view(nvm_array *a, nvm_array *base) {
  a->base = nvm_array_ref(base);
  nvb_lock_take(&handles);
  a->after = base->views;
  if (a->after) a->after->before = a;
  base->views = a;
  nvb_lock_give(&handles);
}

static void stand_for(nvm_array *a, nvg_node *n) { /* takes n */
  nvg_node_unref(a->node);
  a->node = n;
}
static int is_stale(const nvm_array *a) { return a->base && a->seen != a->base->version; }
/* Are the axes in the order of memory? */
static int is_in_memory_order(const nvg_lens *l) {
  const nvg_aval *av = l->top->aval;
  int64_t last = INT64_MAX;
  for (int d = 0; d < av->rank; d++) {
    int64_t step = llabs(l->stride[d]);
    if (av->shape[d] == 1 || !step) continue;
    if (step > last) return 0;
    last = step;
  }
  return 1;
}
/* Is a view derived as a leaf of its own, so that one program serves all parts of that shape? The base must have a
   packed value in host memory. Transposed views, and those of most of a large base, stay nodes over the base: the
   planner then knows that they are one array, reads it once, and sums along memory. */
enum { LITTLE = 1 << 10 }; /* elements of a base that are in the cache whatever reads them */
static int is_leaf(const nvm_array *a) {
  const nvg_node *from = a->base->node;
  const nvg_value *v = atomic_load(&from->value);
  int dev = from->device ? from->device : atomic_load_explicit(&a->ctx->device, memory_order_relaxed);
  if (!a->lens->strided || dev != NVM_DEVICE_CPU || !v || !nva_is_plain(v, from->aval)) return 0;
  int part = a->lens->top->aval->size <= from->aval->size / 2 || from->aval->size <= LITTLE;
  return part && is_in_memory_order(a->lens);
}
/* A view of FEW elements of an array of MANY or more, in memory of the library's own, holds a copy of them: what has
   not read it yet does not keep the array's memory then, all of which a later write would have to copy. */
enum { FEW = 1 << 8, MANY = 1 << 16 };
static nvg_value *value_shown(const nvg_lens *l, const nvg_aval *from, const nvg_value *v) {
  const nvg_aval *av = l->top->aval;
  int64_t each = nvg_size(av->dtype), bytes[NVM_MAX_RANK];
  char *first = v->data + l->offset * each;
  if (av->size > FEW || from->size < MANY || nva_is_borrowed(v))
    return nva_value_new(nvd_buf_ref(v->buffer), first, av->rank, l->stride);
  nvg_value *w = nva_value_packed(av);
  for (int d = 0; d < av->rank; d++) bytes[d] = l->stride[d] * each;
  if (w) nva_copy_strided(w->data, first, av, bytes);
  return w;
}
static nvg_node *derive_leaf(const nvm_array *a) {
  const nvg_node *from = a->base->node;
  const nvg_aval *av = a->lens->top->aval;
  nvg_value *w = value_shown(a->lens, from->aval, atomic_load(&from->value));
  nvg_node *n = w ? nvg_leaf_new(nvg_aval_ref(av), w) : NULL;
  if (n) n->device = from->device;
  return n;
}
static int derive_again(nvm_array *a) { /* under the lock of handles */
  if (!is_stale(a)) return NVM_OK;
  nvg_node *n = is_leaf(a) ? derive_leaf(a) : nvg_lens_get(a->lens, a->base->node);
  if (!n) return nvb_status();
  stand_for(a, n);
  a->seen = a->base->version; /* set last: a thread that sees it also sees the node */
  return NVM_OK;
}
void nva_forget(nvm_array *a) {
  nvb_lock_take(&handles);
  stand_for(a, nvg_node_ref(a->lens->top));
  a->seen = 0;
  nvb_lock_give(&handles);
}
void nva_stand_for(nvm_array *a, nvg_node *n) {
  nvb_lock_take(&handles);
  stand_for(a, n);
  a->version++;
  nvb_lock_give(&handles);
}
/* for a view under the lock of handles: another thread may write to its base */
static int check_valid(const nvm_array *a) {
  while (a && !(a->node->flags & NVG_INVALIDATED)) a = a->base;
  return !a ? NVM_OK
            : nvb_fail(NVM_ERR_STATE,
                       "[donate] the array was donated: its memory may be another's now, and it has no value any more; "
                       "use what was computed from it, or do not donate it");
}
int nva_check_kept(const nvm_array *a) {
  if (!a->base) return check_valid(a);
  nvb_lock_take(&handles);
  int status = check_valid(a);
  nvb_lock_give(&handles);
  return status;
}
/* Brings a view up to date with its base. Returns a status. */
static int refresh_view(nvm_array *a) {
  if (!a->base) return check_valid(a);
  if (!is_stale(a)) return NVM_OK;
  nvb_lock_take(&handles);
  int status = check_valid(a);
  status = status ? status : derive_again(a);
  nvb_lock_give(&handles);
  return status;
}
nvg_node *nva_node_ref(nvm_array *a) {
  nvb_lock_take(&handles);
  nvg_node *n = check_valid(a) || derive_again(a) ? NULL : nvg_node_ref(a->node);
  nvb_lock_give(&handles);
  return n;
}
nvg_node *nva_node(nvm_array *a) {
  if (a == &nva_none)
    return nvb_fail(NVM_ERR_VALUE, "an absent operand (nvm_none) stands where an array is needed"), NULL;
  if ((a->base || a->node->flags & NVG_INVALIDATED) && refresh_view(a)) return NULL;
  if (nva_tracing() && a->trace != nva_tracing() && !a->node->weak) return nva_capture(a);
  return a->node;
}

void nva_invalidate(nvm_array *a) {
  nvg_node *lost = nvg_leaf_new(nvg_aval_ref(a->node->aval), NULL);
  if (!lost) { /* out of memory: a node without other holders can be marked itself */
    if ((uint32_t)atomic_load(&a->node->refs) == 1) a->node->flags |= NVG_INVALIDATED;
    return;
  }
  lost->flags |= NVG_INVALIDATED;
  lost->device = a->node->device;
  a->node->flags |= NVG_DONATED;
  nva_stand_for(a, lost); /* its views are invalidated with it */
}
int nvm_donate(nvm_array *a) {
  if (!a) return nva_null("donate", "array");
  if (a == &nva_none || a->base || a->node->weak)
    return nvb_fail(NVM_ERR_VALUE, "[donate] %s has no memory of its own",
                    a == &nva_none ? "an absent operand"
                    : a->base      ? "a view"
                                   : "a number");
  if (nva_tracing())
    return nvb_fail(NVM_ERR_STATE, "[donate] not possible inside a traced function; donate its arguments instead");
  if (!value_of(a)) return nvb_status();
  nva_invalidate(a);
  return a->node->flags & NVG_INVALIDATED ? NVM_OK : nvb_status();
}
nvm_array *nvm_snapshot(nvm_array *a) {
  if (!a) return nva_null("snapshot", "array"), NULL;
  nvg_node *n = nva_node(a);
  return n ? nva_array_new(a->ctx, nvg_node_ref(n)) : NULL;
}
int nvm_is_same(nvm_array *a, nvm_array *b) {
  return a && b && a != &nva_none && b != &nva_none && !refresh_view(a) && !refresh_view(b) && a->node == b->node;
}
nvm_array *nvm_hold(nvm_array *a) {
  if (!a || a == &nva_none) return nva_null("hold", "array"), NULL;
  nvg_node *n = nva_node_ref(a);
  nvm_array *h = n ? nva_array_new(a->ctx, n) : NULL;
  if (h) h->trace = a->trace;
  return h;
}

/* ---- attributes */
nvm_dtype nvm_dtype_of(const nvm_array *a) { return a && a->node ? a->node->aval->dtype : NVM_DTYPE_DEFAULT; }
int nvm_rank(const nvm_array *a) { return a && a->node ? a->node->aval->rank : 0; }
const int64_t *nvm_shape(const nvm_array *a) { return a && a->node ? a->node->aval->shape : NULL; }
int64_t nvm_size(const nvm_array *a) { return a && a->node ? a->node->aval->size : 0; }
/* Does a stale view have a value as soon as it is derived? */
static int is_at_hand(const nvm_array *a) {
  nvb_lock_take(&handles);
  int at_hand = is_leaf(a);
  nvb_lock_give(&handles);
  return at_hand;
}
int nvm_is_pending(const nvm_array *a) {
  if (!a || !a->node) return 0;
  if (is_stale(a)) return !is_at_hand(a);
  return a->node->op != NVG_OP_CONST && !atomic_load(&a->node->value);
}
const char *nvm_dtype_name(nvm_dtype t) { return (unsigned)t < NVM_NDTYPES ? nvg_dtype_name(t) : "none"; }
size_t nvm_dtype_size(nvm_dtype t) { return (unsigned)t < NVM_NDTYPES ? (size_t)nvg_size(t) : 0; }
int nvm_dtype_find(nvm_dtype *out, const char *name) {
  if (!out || !name) return nva_missing("dtype_find", name ? "pointer for the dtype" : "name");
  int t = nvg_dtype_find(name);
  if (t < 0) return nvb_fail(NVM_ERR_TYPE, "unknown dtype '%s'", name);
  *out = (nvm_dtype)t;
  return NVM_OK;
}

/* ---- values */
static nvg_value *value_of(nvm_array *a) {
  if (!a) return nva_null("value", "array"), NULL;
  if (a == &nva_none || refresh_view(a)) {
    if (a == &nva_none) nvb_fail(NVM_ERR_VALUE, "an absent operand (nvm_none) has no value");
    return NULL;
  }
  nvg_node *n = a->node;
  if (!atomic_load(&n->value) && nva_eval(a->ctx, &n, 1)) return NULL;
  nvg_value *v = atomic_load(&n->value);
  return nva_check_borrowed(v, n->aval) ? NULL : v;
}
/* Evaluates all arrays, or (text != NULL) explains how they would be evaluated. */
static int with_roots(const char *who, nvm_array *const *arrays, int n, char **text) {
  if (n < 0) return nvb_fail(NVM_ERR_VALUE, "[%s] %d arrays", who, n);
  if (n && !arrays) return nva_missing(who, "list of arrays");
  nvg_node *small[16], **roots = n <= 16 ? small : nvb_alloc(sizeof *roots * (size_t)n);
  if (!roots) return nvb_fail_memory();
  int status = NVM_OK;
  for (int i = 0; i < n && !status; i++) {
    if (!arrays[i]) status = nva_null(who, "array");
    else if (arrays[i] == &nva_none) status = nvb_fail(NVM_ERR_VALUE, "[%s] array %d is absent (nvm_none)", who, i);
    else if (arrays[i]->ctx != arrays[0]->ctx) status = nva_two_contexts(who);
    else if (!(status = refresh_view(arrays[i]))) roots[i] = arrays[i]->node;
  }
  nvm_ctx *c = n && !status ? arrays[0]->ctx : NULL;
  if (!status) status = text ? nva_explain(text, c, roots, n) : nva_eval(c, roots, n);
  if (roots != small) nvb_free(roots);
  return status;
}
int nvm_eval(nvm_array *const *arrays, int n) { return with_roots("eval", arrays, n, NULL); }
int nvm_explain(char **text, nvm_array *const *arrays, int n) {
  if (!text) return nva_missing("explain", "pointer for the text");
  *text = NULL;
  return with_roots("explain", arrays, n, text);
}
static void show_value(const nvg_value *v, const nvm_array *a, const void **data, int64_t *strides) {
  *data = v->data;
  for (int d = 0; strides && d < a->node->aval->rank; d++) strides[d] = v->stride[d] * nvg_size(a->node->aval->dtype);
}
int nvm_data(const void **data, int64_t *strides, nvm_array *a) {
  if (!data) return nva_missing("data", "pointer for the address");
  nvg_value *v = value_of(a), *host = v ? nva_value_kept(v, a->node->aval, NVM_DEVICE_CPU) : NULL;
  if (!host) return nvb_status();
  return show_value(host, a, data, strides), NVM_OK;
}
int nvm_device_data(const void **data, int64_t *strides, nvm_device *d, nvm_array *a) {
  if (!data || !d) return nva_missing("device_data", d ? "pointer for the address" : "pointer for the device");
  nvg_value *v = value_of(a);
  if (v && a->node->device) v = nva_value_kept(v, a->node->aval, a->node->device);
  if (!v) return nvb_status();
  *d = v->device + 1;
  return show_value(v, a, data, strides), NVM_OK;
}
int nvm_device_ready(nvm_array *a, void *stream) {
  nvg_value *v = value_of(a);
  if (v && a->node->device) v = nva_value_kept(v, a->node->aval, a->node->device);
  if (!v) return nvb_status();
  if (!v->device) return nvb_fail(NVM_ERR_VALUE, "[device_ready] the array is in host memory, which has no streams");
  if (!stream) stream = (void *)1;
  int status = nvd_buf_ready(v->buffer, stream);
  return status ? status : nvd_buf_use(v->buffer, stream, 0);
}
int nvm_check_indices(nvm_array *a) {
  nvg_value *v = value_of(a);
  return !v ? nvb_status() : v->device ? nvd_buf_check(v->buffer) : NVM_OK;
}
int nvm_wait(nvm_array *const *arrays, int n) {
  int status = nvm_eval(arrays, n);
  for (int i = 0; i < n && !status; i++) {
    nvg_value *v = value_of(arrays[i]);
    status = !v ? nvb_status() : v->device ? nvd_buf_wait(v->buffer) : NVM_OK;
  }
  return status;
}
int nvm_is_ready(int *ready, nvm_array *a) {
  if (!ready) return nva_missing("is_ready", "pointer for the answer");
  if (!a) return nva_null("is_ready", "array");
  nvg_node *n = nva_node_ref(a);
  if (!n) return nvb_status();
  const nvg_value *v = atomic_load(&n->value);
  *ready = v && (!v->device || nvd_buf_done(v->buffer));
  nvg_node_unref(n);
  return NVM_OK;
}
int nvm_copy_to_host(nvm_array *a, void *out, size_t bytes) {
  nvg_value *v = value_of(a);
  if (!v) return nvb_status();
  const nvg_aval *av = a->node->aval;
  size_t need = (size_t)av->size * (size_t)nvg_size(av->dtype);
  if (bytes != need)
    return nvb_fail(NVM_ERR_VALUE, "[copy_to_host] the array has %zu bytes, the destination %zu", need, bytes);
  return out || !need ? nva_copy_out(out, v, av) : nva_missing("copy_to_host", "destination");
}
nvm_device nvm_device_of(const nvm_array *a) {
  if (!a || !a->node) return NVM_DEVICE_CPU;
  const nvg_value *v = a->node->device ? NULL : atomic_load(&a->node->value);
  return v ? v->device + 1 : nva_device_of(a->ctx, a->node);
}
nvm_array *nvm_array_to_device(nvm_array *a, nvm_device d) {
  if (!a) return nva_null("to_device", "array"), NULL;
  nvg_node *n = nva_node(a);
  if (!n) return NULL;
  if (d == NVM_DEVICE_AUTO) d = nva_ctx_device(a->ctx);
  if (d != NVM_DEVICE_CPU && !nva_gpu("to_device", d)) return NULL;
  if (n->device == d || n->weak) return nva_array_new(a->ctx, nvg_node_ref(n));
  /* it will be computed there */
  if (!n->device && !atomic_load(&n->value)) return nva_array_new(a->ctx, nvg_put(n, d));
  if (nva_tracing() && !atomic_load(&n->value)) {
    char from[16], to[16];
    nvb_fail(NVM_ERR_STATE, "[to_device] from %s to %s inside a traced function, which runs on one device",
             nvg_device_name(from, n->device), nvg_device_name(to, d));
    return NULL;
  }
  if (!atomic_load(&n->value) && nva_eval(a->ctx, &n, 1)) return NULL;
  nvg_value *v = atomic_load(&n->value);
  v = v->device + 1 == d && !nva_is_borrowed(v) ? nva_value_alias(v, n->aval->rank) : nva_value_copy(v, n->aval, d);
  return nva_leaf_over(a->ctx, n->aval, v, d);
}
nvm_array *nvm_array_copy(nvm_array *a) {
  nvg_value *v = value_of(a);
  if (!v) return NULL;
  const nvg_node *n = a->node;
  return nva_leaf_over(a->ctx, n->aval, nva_value_copy(v, n->aval, n->device ? n->device : v->device + 1), n->device);
}
nvm_array *nvm_to_device(nvm_array *a, nvm_device d) { return nva_scope_keep(nvm_array_to_device(a, d)); }
