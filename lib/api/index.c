/* Index arrays and masks: reads indices, broadcasts them together, and copies the elements that they select. Decides
   nothing about who may see a write (write.c), and evaluates nothing but indices. */
#include "api/index.h"
#include <string.h>
#include "base/mem.h"
#include "graph/infer.h"

enum {
  CHUNK = 256,        /* positions whose offsets are computed at a time */
  MANY = 1 << 14,     /* from so many elements on, a read is better computed with what uses it */
  MANY_BITS = 1 << 16 /* the same for elements of a mask */
};

/* ---- offsets */
/* Lists the byte offsets of the elements from, from + 1 ... from + n - 1 of a strided array in row-major order. */
static void list_offsets(int64_t *out, int rank, const int64_t *shape, const int64_t *stride, int64_t from, int64_t n) {
  int64_t at[NVM_MAX_RANK], o = 0, k = from;
  if (rank < 2) {
    for (int64_t j = 0; j < n; j++) out[j] = rank ? (from + j) * stride[0] : 0;
    return;
  }
  for (int d = rank - 1; d >= 0; k /= shape[d--]) at[d] = k % shape[d], o += at[d] * stride[d];
  for (int64_t j = 0; j < n; j++) {
    out[j] = o;
    for (int d = rank - 1; d >= 0; d--) {
      o += stride[d];
      if (++at[d] < shape[d]) break;
      o -= stride[d] * shape[d];
      at[d] = 0;
    }
  }
}
#define LOAD(type) \
  for (int64_t j = 0; j < n; j++) { \
    type v; \
    memcpy(&v, a->data + at[j], sizeof v); \
    at[j] = (int64_t)v; \
  }
/* Replaces offsets by the indices there. What int64 does not hold becomes its greatest value. */
static void load_indices(const nva_along *a, int64_t *at, int64_t n) {
  switch (a->dtype) {
  case NVM_I8: LOAD(int8_t) break;
  case NVM_I16: LOAD(int16_t) break;
  case NVM_I32: LOAD(int32_t) break;
  case NVM_U8: LOAD(uint8_t) break;
  case NVM_U16: LOAD(uint16_t) break;
  case NVM_U32: LOAD(uint32_t) break;
  default: LOAD(int64_t) break;
  }
  if (a->dtype != NVM_U64) return;
  for (int64_t j = 0; j < n; j++) at[j] = at[j] < 0 ? INT64_MAX : at[j];
}
static void list_indices(const nva_along *a, int rank, const int64_t *shape, const int64_t *stride, int64_t *out,
                         int64_t from, int64_t n) {
  const int64_t each = sizeof *out;
  if (a->dtype == NVM_I64 && rank == 1 && *stride == each) memcpy(out, a->data + from * each, (size_t)(n * each));
  else if (a->data) list_offsets(out, rank, shape, stride, from, n), load_indices(a, out, n);
  else
    for (int64_t j = 0; j < n; j++) out[j] = a->number;
}
/* Do the axes that the index covers lie in a part's memory as one axis does? */
static int are_joined(const nva_along *a, const nva_part *p) {
  int joins = 1;
  for (int d = a->axis; d < a->axis + a->axes - 1; d++) joins &= p->stride[d] == p->stride[d + 1] * p->shape[d + 1];
  return joins;
}
/* Adds the byte offsets in a part of row-major positions among the axes that a mask covers. */
static void add_positions(int64_t *out, const nva_along *a, const nva_part *p, const int64_t *k, int64_t n) {
  int last = a->axis + a->axes - 1;
  if (are_joined(a, p)) {
    for (int64_t j = 0; j < n; j++) out[j] += k[j] * p->stride[last];
    return;
  }
  for (int64_t j = 0; j < n; j++)
    for (int64_t d = last, left = k[j]; d >= a->axis; left /= p->shape[d--])
      out[j] += left % p->shape[d] * p->stride[d];
}
/* Lists the byte offsets in a part of what the index arrays select together, from number `from` on. */
static void list_selected(const nva_index *x, const nva_part *p, int64_t *out, int64_t from, int64_t n) {
  int64_t k[CHUNK];
  memset(out, 0, sizeof *out * (size_t)n);
  for (int i = 0; i < x->n; i++) {
    const nva_along *a = &x->at[i];
    int64_t extent = p->shape[a->axis], step = p->stride[a->axis];
    list_indices(a, x->rank, x->shape, a->stride, k, from, n);
    if (a->axes > 1) add_positions(out, a, p, k, n);
    else
      for (int64_t j = 0; j < n; j++) out[j] += (k[j] < 0 ? k[j] + extent : k[j]) * step;
  }
}

/* ---- reading indices */
/* Are they int64 one after the other, as NumPy's and nvm's own index arrays are, and the positions of a mask's ones? */
static int are_listed(const nva_along *a, int rank, const int64_t *stride) {
  return a->data && a->dtype == NVM_I64 && rank == 1 && *stride == (int64_t)sizeof(int64_t);
}
/* Is some index not in -extent..extent - 1? */
static int is_some_outside(const int64_t *k, int64_t n, int64_t extent) {
  int bad = 0;
  for (int64_t j = 0; j < n; j++) bad |= (uint64_t)k[j] + (uint64_t)extent >= 2 * (uint64_t)extent;
  return bad;
}
static int check_range(const char *who, const nva_along *a, int64_t extent) {
  int64_t k[CHUNK], size = 1;
  for (int d = 0; d < a->rank; d++) size *= a->shape[d];
  if (are_listed(a, a->rank, a->own) && !is_some_outside((const int64_t *)(const void *)a->data, size, extent))
    return NVM_OK;
  for (int64_t from = 0; from < size; from += CHUNK) {
    int64_t n = size - from < CHUNK ? size - from : CHUNK;
    list_indices(a, a->rank, a->shape, a->own, k, from, n);
    for (int64_t j = 0; is_some_outside(k, n, extent) && j < n; j++)
      if (k[j] < -extent || k[j] >= extent)
        return nvb_fail(NVM_ERR_INDEX, "[%s] index %lld is out of range for axis %d of extent %lld", who,
                        (long long)k[j], a->message_axis, (long long)extent);
  }
  return NVM_OK;
}
/* The value of an index array in host memory, evaluated if it may be; NULL if there is none, or with *status. */
static const nvg_value *value_of(const nvm_array *a, nvg_node *n, int wait, int *status) {
  if (!atomic_load(&n->value) && wait && !n->weak) *status = nva_eval(a->ctx, &n, 1);
  const nvg_value *v = *status ? NULL : atomic_load(&n->value);
  if (v && !v->device && !(*status = nva_check_borrowed(v, n->aval))) return v;
  return NULL;
}
/* Replaces a mask, whose node is taken, by the row-major positions of its ones. */
static int spread_mask(nva_index *x, nva_along mask, const nvg_value *v) {
  const nvg_aval *av = mask.node->aval;
  nva_along *a = &x->at[x->n];
  *a = mask;
  int status = nva_mask_list(&a->made, &a->ones, v->data, av, v->stride);
  if (status) return nvg_node_unref(mask.node), status;
  a->axes = av->rank;
  a->data = a->made->data;
  a->dtype = NVM_I64;
  a->rank = 1;
  a->shape = &a->ones;
  a->own[0] = sizeof(int64_t);
  x->n++;
  return NVM_OK;
}
static int is_mask_of(const nvg_aval *av, const nvg_aval *base, int axis) {
  int fits = av->dtype == NVM_BOOL && av->rank && av->rank <= base->rank - axis;
  return fits && !memcmp(av->shape, base->shape + axis, sizeof *av->shape * (size_t)av->rank);
}
static int is_integer(const nvg_aval *av) {
  nvg_class c = nvg_class_of(av->dtype);
  return c == NVG_SIGNED || c == NVG_UNSIGNED;
}
/* Appends one index to x. Returns 1; 0 if that is not possible, or with a failure in *status. */
static int read_index(nva_index *x, const nvm_ctx *ctx, const nvg_aval *base, const nvm_index *from, int wait,
                      int *status) {
  nva_along a;
  a.axis = from->axis, a.axes = 1, a.message_axis = from->message_axis, a.number = from->number;
  a.rank = 0, a.dtype = NVM_DTYPE_DEFAULT;
  a.data = NULL, a.shape = NULL, a.node = NULL, a.made = NULL;
  if (!from->at) return x->at[x->n++] = a, 1;
  int known = from->at != &nva_none && from->at->ctx == ctx && (a.node = nva_node_ref(from->at));
  const nvg_aval *av = known ? a.node->aval : NULL;
  int mask = known && is_mask_of(av, base, from->axis);
  if (mask && !wait && av->size >= MANY_BITS) mask = known = 0;
  const nvg_value *v = mask || (known && is_integer(av)) ? value_of(from->at, a.node, wait || mask, status) : NULL;
  if (!v) return nvg_node_unref(a.node), 0;
  if (mask) return !(*status = spread_mask(x, a, v));
  a.data = v->data;
  a.dtype = av->dtype;
  a.rank = av->rank;
  a.shape = av->shape;
  for (int d = 0; d < av->rank; d++) a.own[d] = v->stride[d] * nvg_size(av->dtype);
  return x->at[x->n++] = a, 1;
}
/* Broadcasts the index arrays together. Returns 0 if they do not. */
static int broadcast_indices(nva_index *x) {
  x->rank = 0, x->count = 1;
  for (int i = 0; i < x->n; i++) x->rank = x->at[i].rank > x->rank ? x->at[i].rank : x->rank;
  for (int d = 0; d < x->rank; x->count *= x->shape[d++]) {
    x->shape[d] = 1;
    for (int i = 0; i < x->n; i++) {
      nva_along *a = &x->at[i];
      int e = d - (x->rank - a->rank);
      int64_t extent = e < 0 ? 1 : a->shape[e];
      a->stride[d] = extent == 1 ? 0 : a->own[e];
      if (extent != 1 && x->shape[d] != 1 && x->shape[d] != extent) return 0;
      if (extent != 1) x->shape[d] = extent;
    }
  }
  return 1;
}
static int add_dimension(nva_index *x, int64_t extent) {
  if (x->result_rank == NVM_MAX_RANK || __builtin_mul_overflow(x->result_size, extent, &x->result_size)) return 0;
  x->result_shape[x->result_rank++] = extent;
  return 1;
}
/* Lays out the result. Returns 0 if it is no possible array. */
static int lay_out_result(nva_index *x, const nvg_aval *base, int before) {
  int n = 0, ok = 1;
  for (int d = 0, i = 0; d < base->rank; d++)
    if (i < x->n && x->at[i].axis == d) d += x->at[i++].axes - 1;
    else x->rest[n++] = d;
  x->kept = n;
  x->before = before;
  x->result_rank = 0, x->result_size = 1;
  if (before < 0 || before > n) return 0;
  for (int d = 0; d < before; d++) ok &= add_dimension(x, base->shape[x->rest[d]]);
  for (int d = 0; d < x->rank; d++) ok = ok && add_dimension(x, x->shape[d]);
  for (int d = before; d < n; d++) ok = ok && add_dimension(x, base->shape[x->rest[d]]);
  return ok;
}
int nva_index_open(nva_index *x, const char *who, const nvm_ctx *ctx, const nvg_aval *base, int n, const nvm_index *at,
                   int before, int wait, int *status) {
  *status = NVM_OK;
  x->n = 0;
  for (int i = 0; i < n; i++) {
    int next = x->n ? x->at[x->n - 1].axis + x->at[x->n - 1].axes : 0;
    if (at[i].axis < next || at[i].axis >= base->rank || !read_index(x, ctx, base, &at[i], wait, status)) return 0;
  }
  for (int i = 0; i < x->n && !*status; i++)
    if (!x->at[i].made) *status = check_range(who, &x->at[i], base->shape[x->at[i].axis]);
  return !*status && broadcast_indices(x) && lay_out_result(x, base, before);
}
void nva_index_close(nva_index *x) {
  for (int i = 0; i < x->n; i++) {
    nvg_node_unref(x->at[i].node);
    if (x->at[i].made) nvd_buf_unref(x->at[i].made);
  }
}

/* ---- copying */
/* Copies between the selected elements and an array of the result's shape: the dimensions before the index arrays, for
   each of these what the index arrays select, and for each of those the dimensions after. */
typedef struct copy {
  const nva_index *x;
  size_t each;
  int after, together;                           /* together: the elements after are contiguous on both sides */
  int64_t block, shape[NVM_MAX_RANK];            /* block: their bytes */
  int64_t of[NVM_MAX_RANK], other[NVM_MAX_RANK]; /* strides of the part and of the other array, after */
  int64_t of_before[NVM_MAX_RANK], other_before[NVM_MAX_RANK];
  const int64_t *between; /* strides of the other array along what the index arrays select */
  int writes;
} copy;
static void set_copy(copy *c, const nva_index *x, const nva_part *p, const int64_t *strides, int writes) {
  c->x = x, c->writes = writes;
  c->each = p->each, c->block = (int64_t)p->each;
  c->together = 1;
  c->between = strides + x->before;
  c->after = x->kept - x->before;
  for (int d = 0; d < x->before; d++) c->of_before[d] = p->stride[x->rest[d]], c->other_before[d] = strides[d];
  for (int d = c->after - 1; d >= 0; d--) {
    int axis = x->rest[x->before + d];
    c->shape[d] = p->shape[axis];
    c->of[d] = p->stride[axis];
    c->other[d] = strides[x->before + x->rank + d];
    c->together &= c->shape[d] == 1 || (c->of[d] == c->block && c->other[d] == c->block);
    c->block *= c->shape[d];
  }
}
#define COPY(bytes) \
  for (int64_t j = 0; j < n; j++) memcpy(to + to_at[j], from + from_at[j], bytes)
static void copy_selected(const copy *c, char *to, const int64_t *to_at, const char *from, const int64_t *from_at,
                          int64_t n) {
  if (!c->together) {
    for (int64_t j = 0; j < n; j++)
      nva_move_strided(to + to_at[j], c->writes ? c->of : c->other, from + from_at[j], c->writes ? c->other : c->of,
                       c->after, c->shape, c->each);
    return;
  }
  switch (c->block) { /* constant sizes let the compiler inline memcpy */
  case 1: COPY(1); break;
  case 2: COPY(2); break;
  case 4: COPY(4); break;
  case 8: COPY(8); break;
  case 16: COPY(16); break;
  default: COPY((size_t)c->block);
  }
}
/* Copies n selected elements for all coordinates of the dimensions before. */
static void copy_chunk(const copy *c, char *of, const int64_t *of_at, char *other, const int64_t *other_at, int64_t n) {
  int64_t at[NVM_MAX_RANK];
  int d;
  for (d = 0; d < c->x->before; d++) at[d] = 0;
  do {
    if (c->writes) copy_selected(c, of, of_at, other, other_at, n);
    else copy_selected(c, other, other_at, of, of_at, n);
    for (d = c->x->before - 1; d >= 0; d--) {
      of += c->of_before[d];
      other += c->other_before[d];
      if (++at[d] < c->x->result_shape[d]) break;
      of -= c->of_before[d] * at[d];
      other -= c->other_before[d] * at[d];
      at[d] = 0;
    }
  } while (d >= 0);
}
#define COPY_LISTED(bytes) \
  for (int64_t j = 0; j < n; j++, other += between) { \
    char *of = data + (k[j] < 0 ? k[j] + extent : k[j]) * step; \
    memcpy(c->writes ? of : other, c->writes ? other : of, bytes); \
  }
/* Copies single elements that one array of listed indices or one mask selects, without a list of offsets. Returns 0
   if that is not what is copied. */
static int copy_listed(const copy *c, const nva_part *p, char *data, char *other) {
  const nva_along *a = &c->x->at[0];
  if (c->x->n != 1 || c->x->kept || !are_listed(a, c->x->rank, a->stride) || !are_joined(a, p)) return 0;
  int last = a->axis + a->axes - 1;
  const int64_t *k = (const int64_t *)(const void *)a->data;
  int64_t n = c->x->count, extent = p->shape[last], step = p->stride[last], between = *c->between;
  switch (c->each) {
  case 1: COPY_LISTED(1) break;
  case 2: COPY_LISTED(2) break;
  case 4: COPY_LISTED(4) break;
  case 8: COPY_LISTED(8) break;
  default: COPY_LISTED(16)
  }
  return 1;
}
static void copy_all(const nva_index *x, const nva_part *p, char *data, char *other, const int64_t *strides,
                     int writes) {
  copy c;
  int64_t of_at[CHUNK], other_at[CHUNK];
  if (!x->result_size) return;
  set_copy(&c, x, p, strides, writes);
  if (copy_listed(&c, p, data, other)) return;
  for (int64_t from = 0; from < x->count; from += CHUNK) {
    int64_t n = x->count - from < CHUNK ? x->count - from : CHUNK;
    list_selected(x, p, of_at, from, n);
    list_offsets(other_at, x->rank, x->shape, c.between, from, n);
    copy_chunk(&c, data, of_at, other, other_at, n);
  }
}
void nva_index_read(const nva_index *x, const nva_part *p, const char *data, char *to) {
  int64_t strides[NVM_MAX_RANK];
  int64_t step = (int64_t)p->each;
  for (int d = x->result_rank - 1; d >= 0; step *= x->result_shape[d--]) strides[d] = step;
  copy_all(x, p, (char *)(uintptr_t)data, to, strides, 0);
}
void nva_index_write(const nva_index *x, const nva_part *p, char *data, const char *from, const int64_t *strides) {
  copy_all(x, p, data, (char *)(uintptr_t)from, strides, 1);
}

/* ---- reading elements */
static int is_worth_reading(const nva_index *x) {
  int masks = 0;
  for (int i = 0; i < x->n; i++) masks |= x->at[i].made != NULL;
  return masks || x->result_size < MANY;
}
/* Reads the elements, if they are in memory that can be read. Returns a status. */
static int read_elements(nvm_array **out, const nva_index *x, nvm_array *a) {
  nvg_node *n = nva_node_ref(a->base ? a->base : a); /* what is written meanwhile goes to a copy */
  nvg_value *v = n ? atomic_load(&n->value) : NULL;
  nva_part p;
  int status = n ? NVM_OK : nvb_status();
  if (nva_part_in(&p, a, v)) {
    const nvg_aval *av = nvg_aval_get(a->node->aval->dtype, x->result_rank, x->result_shape);
    nvg_value *made = av ? nva_value_packed(av) : NULL;
    if (made) nva_index_read(x, &p, v->data + p.offset, made->data);
    *out = nva_leaf_over(a->ctx, av, made, n->device);
    status = *out ? NVM_OK : nvb_status();
    nvg_aval_unref(av);
  }
  nvg_node_unref(n);
  return status;
}
int nva_index_check(const char *who, const nvm_array *a, int n, const nvm_index *at) {
  if (!a || a == &nva_none) return nva_null(who, "array");
  if (!at) return nva_missing(who, "list of indices");
  return n > 0 && n <= NVM_MAX_RANK ? nva_check_kept(a)
                                    : nvb_fail(NVM_ERR_VALUE, "[%s] %d indices; 1 to 32 are possible", who, n);
}
int nvm_get_at(nvm_array **out, nvm_array *a, int n, const nvm_index *at, int before) {
  if (!out) return nva_missing("get_at", "pointer for the array");
  *out = NULL;
  int status = nva_index_check("get_at", a, n, at);
  nvm_array *base = status ? NULL : a->base ? a->base : a;
  nva_index x;
  if (!base || !nva_is_on_host(base)) return status;
  int may = nva_index_open(&x, "get_at", a->ctx, a->node->aval, n, at, before, 0, &status) && is_worth_reading(&x);
  if (may && nva_has_value(base, &status)) status = read_elements(out, &x, a);
  nva_index_close(&x);
  return status;
}
