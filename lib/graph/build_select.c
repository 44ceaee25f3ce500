/* Builds selections: concatenation, padding, triangles, slice updates, and elements picked by index. Positions are
   computed from coordinates; no intermediate array is stored. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

/* Puts zeros between v's elements along d, so that their distance is s: (n) -> (n, 1), padded to (n, s), flattened,
   cut. */
static nvg_node *spread_apart(nvg_call *c, nvg_node *v, nvg_node *zero, int d, int64_t s) {
  int rank = v->aval->rank;
  const int64_t *shape = v->aval->shape;
  int64_t wide[NVM_MAX_RANK + 1], none[NVM_MAX_RANK + 1] = { 0 }, n = shape[d];
  if (rank >= NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "at most %d dimensions with steps", NVM_MAX_RANK - 1);
  for (int e = 0; e <= rank; e++) wide[e] = e <= d ? shape[e] : e == d + 1 ? 1 : shape[e - 1];
  nvg_node *r = nvg_xreshape(c, v, rank + 1, wide);
  wide[d + 1] = s;
  r = nvg_xpad(c, r, zero, none, wide);
  memcpy(wide, shape, sizeof *wide * (size_t)rank);
  wide[d] = n * s;
  return nvg_xrange(c, nvg_xreshape(c, r, rank, wide), d, 0, (n - 1) * s + 1, 1);
}

/* A condition: the coordinate along d is one of start, start + s, ... (`count` of them). */
static nvg_node *covers_position(nvg_call *c, const nvg_aval *a, int d, int64_t start, int64_t count, int64_t s) {
  nvg_node *off = nvg_x2(c, NVG_OP_SUBTRACT, nvg_xiota(c, a->rank, a->shape, d), nvg_xint(c, start));
  nvg_node *in = nvg_x2(c, NVG_OP_LOGICAL_AND, nvg_x2(c, NVG_OP_GREATER_EQUAL, off, nvg_xint(c, 0)),
                        nvg_x2(c, NVG_OP_LESS_EQUAL, off, nvg_xint(c, (count - 1) * s)));
  if (s == 1) return in;
  return nvg_x2(c, NVG_OP_LOGICAL_AND, in,
                nvg_x2(c, NVG_OP_EQUAL, nvg_x2(c, NVG_OP_REMAINDER, off, nvg_xint(c, s)), nvg_xint(c, 0)));
}

/* Returns the values in x's dtype, broadcast to the slice's shape; NULL with a message. */
static nvg_node *slice_values(nvg_call *c, const nvg_aval *x, const int64_t *count) {
  nvg_node *v = c->in[1];
  char from[NVG_SHAPE_TEXT], to[NVG_SHAPE_TEXT];
  if (nvg_converts(c, v->aval->dtype, x->dtype)) return NULL;
  if (!nvg_broadcasts(v->aval, x->rank, count))
    return nvg_bad(c, NVM_ERR_VALUE, "values of shape %s do not broadcast to a slice of shape %s",
                   nvg_shape_text(from, v->aval->rank, v->aval->shape), nvg_shape_text(to, x->rank, count));
  return nvg_xexpand(c, nvg_xcast(c, v, x->dtype, 1), x->rank, count);
}

/* Writes values to a slice of x as a select: coordinates tell which elements the slice covers, and padding moves the
   values to their positions. A step spreads the values first; a negative step flips them before that. */
nvg_node *nvg_make_SLICE_UPDATE(nvg_call *c) {
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  nvg_node *x = nvg_typed(c), *inside = NULL;
  if (!x || nvg_window(c, x->aval, start, count, step)) return NULL;
  nvg_node *v = slice_values(c, x->aval, count), *zero = nvg_xconst(c, x->aval->dtype, 0, 0);
  for (int d = 0; v && d < x->aval->rank; d++) {
    if (!count[d]) return x;
    int64_t s = count[d] > 1 ? step[d] : 1, n = x->aval->shape[d], before[NVM_MAX_RANK] = { 0 };
    if (s < 0) {
      start[d] += (count[d] - 1) * s, s = -s;
      v = nvg_xflip(c, v, 1u << d);
    }
    if (count[d] == n && s == 1) continue;
    if (v && s > 1) v = spread_apart(c, v, zero, d, s);
    if (!v) return NULL;
    memcpy(shape, v->aval->shape, sizeof *shape * (size_t)x->aval->rank);
    shape[d] = n;
    before[d] = start[d];
    v = nvg_xpad(c, v, zero, before, shape);
    nvg_node *in = covers_position(c, x->aval, d, start[d], count[d], s);
    if (!(inside = inside ? nvg_x2(c, NVG_OP_LOGICAL_AND, inside, in) : in)) return NULL;
  }
  return inside ? nvg_x3(c, NVG_OP_WHERE, inside, v, x) : v;
}

/* ---- several arrays into one */
/* Returns the operands, converted to one dtype, in a list that the caller frees; NULL with a message. */
static nvg_node **gather_operands(nvg_call *c) {
  if (c->nin < 1) return nvg_bad(c, NVM_ERR_VALUE, "needs at least one array"), NULL;
  nvg_node **at = nvb_alloc(sizeof *at * (size_t)c->nin);
  if (!at) return nvb_fail_memory(), NULL;
  nvm_dtype t = nvg_common(c->in, c->nin, c->default_float);
  for (int i = 0; i < c->nin; i++)
    if (!(at[i] = nvg_xcast(c, c->in[i], t, 1))) return nvb_free(at), NULL;
  return at;
}

static nvg_node *join_nodes(nvg_call *c, nvg_node **at, int axis) {
  char a[NVG_SHAPE_TEXT], b[NVG_SHAPE_TEXT];
  const nvg_aval *first = at[0]->aval;
  for (int i = 1; i < c->nin; i++) {
    const nvg_aval *v = at[i]->aval;
    int fits = v->rank == first->rank;
    for (int d = 0; fits && d < v->rank; d++) fits = d == axis || v->shape[d] == first->shape[d];
    if (!fits)
      return nvg_bad(c, NVM_ERR_VALUE, "shapes %s and %s differ outside axis %d",
                     nvg_shape_text(a, first->rank, first->shape), nvg_shape_text(b, v->rank, v->shape), axis);
  }
  return nvg_xjoin(c, at, c->nin, axis);
}

static nvg_node *concat_nodes(nvg_call *c, nvg_node **at) {
  int axis, flat = nvg_attr_none(c, "axis");
  for (int i = 0; i < c->nin && flat; i++)
    if (!(at[i] = nvg_xreshape(c, at[i], 1, &at[i]->aval->size))) return NULL;
  if (!at[0]->aval->rank) return nvg_bad(c, NVM_ERR_VALUE, "zero-dimensional arrays cannot be concatenated");
  return nvg_attr_axis(c, "axis", at[0]->aval->rank, 0, &axis) ? NULL : join_nodes(c, at, axis);
}

static nvg_node *stack_nodes(nvg_call *c, nvg_node **at) {
  const nvg_aval *first = at[0]->aval;
  int axis, rank = first->rank + 1;
  int64_t shape[NVM_MAX_RANK];
  if (rank > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK);
  if (nvg_attr_axis(c, "axis", rank, 0, &axis)) return NULL;
  for (int d = 0, from = 0; d < rank; d++) shape[d] = d == axis ? 1 : first->shape[from++];
  for (int i = 0; i < c->nin; i++) {
    const nvg_aval *v = at[i]->aval;
    char a[NVG_SHAPE_TEXT], b[NVG_SHAPE_TEXT];
    if (v->shape != first->shape)
      return nvg_bad(c, NVM_ERR_VALUE, "shapes %s and %s differ", nvg_shape_text(a, first->rank, first->shape),
                     nvg_shape_text(b, v->rank, v->shape));
    if (!(at[i] = nvg_xreshape(c, at[i], rank, shape))) return NULL;
  }
  return nvg_xjoin(c, at, c->nin, axis);
}

static nvg_node *join_operands(nvg_call *c, nvg_node *how(nvg_call *c, nvg_node **at)) {
  nvg_node **at = gather_operands(c), *r = at ? how(c, at) : NULL;
  nvb_free(at);
  return r;
}
nvg_node *nvg_make_CONCAT(nvg_call *c) { return join_operands(c, concat_nodes); }
nvg_node *nvg_make_STACK(nvg_call *c) { return join_operands(c, stack_nodes); }

nvg_node *nvg_make_PAD(nvg_call *c) {
  int64_t w[2 * NVM_MAX_RANK], before[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  int n;
  nvg_node *x = nvg_typed(c), *fill = x ? nvg_fill_attr(c, "constant_values", x->aval->dtype) : NULL;
  if (!fill || nvg_attr_ints(c, "pad_width", 2 * NVM_MAX_RANK, w, &n)) return NULL;
  int rank = x->aval->rank;
  if (n != 1 && n != 2 && n != 2 * rank)
    return nvg_bad(c, NVM_ERR_VALUE, "pad_width must be one number, (before, after), or %d of them", 2 * rank);
  for (int d = 0; d < rank; d++) {
    int64_t b = n == 2 * rank ? w[2 * d] : w[0], a = n == 2 * rank ? w[2 * d + 1] : w[n - 1];
    if (b < 0 || a < 0) return nvg_bad(c, NVM_ERR_VALUE, "negative pad width");
    before[d] = b;
    if (__builtin_add_overflow(x->aval->shape[d], b, &shape[d]) || __builtin_add_overflow(shape[d], a, &shape[d]))
      return nvg_bad(c, NVM_ERR_VALUE, "the result has too many elements");
  }
  return nvg_xpad(c, x, fill, before, shape);
}

static nvg_node *keep_triangle(nvg_call *c, nvg_op keep) {
  int64_t k;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_int(c, "k", 0, &k)) return NULL;
  const nvg_aval *a = x->aval;
  if (a->rank < 2) return nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", a->rank);
  nvg_node *row = nvg_xiota(c, a->rank, a->shape, a->rank - 2), *col = nvg_xiota(c, a->rank, a->shape, a->rank - 1);
  nvg_node *in = nvg_x2(c, keep, nvg_x2(c, NVG_OP_SUBTRACT, col, row), nvg_xint(c, k));
  return nvg_x3(c, NVG_OP_WHERE, in, x, nvg_xconst(c, a->dtype, 0, 0));
}
nvg_node *nvg_make_TRIL(nvg_call *c) { return keep_triangle(c, NVG_OP_LESS_EQUAL); }
nvg_node *nvg_make_TRIU(nvg_call *c) { return keep_triangle(c, NVG_OP_GREATER_EQUAL); }

/* ---- elements by position */
static nvg_node *positions_of(nvg_call *c, nvg_node *index, int64_t n) {
  nvg_class k = nvg_class_of(index->aval->dtype);
  if (k != NVG_SIGNED && k != NVG_UNSIGNED)
    return nvg_bad(c, NVM_ERR_TYPE, "indices must be integers, not %s", nvg_dtype_name(index->aval->dtype));
  nvg_node *i = nvg_xcast(c, index, NVM_I64, 1);
  if (k == NVG_UNSIGNED) return i;
  return nvg_x3(c, NVG_OP_WHERE, nvg_x2(c, NVG_OP_LESS, i, nvg_xint(c, 0)), nvg_x2(c, NVG_OP_ADD, i, nvg_xint(c, n)),
                i);
}

static nvg_node *take_elements(nvg_call *c, nvg_node *x, int axis, int64_t of) {
  nvg_node *index = x ? positions_of(c, c->in[1], x->aval->shape[axis]) : NULL;
  if (!index) return NULL;
  int64_t shape[NVM_MAX_RANK], out[2 * NVM_MAX_RANK];
  int rank = x->aval->rank, k = index->aval->rank, m = 0;
  if (rank - 1 + k > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "the result has more than %d dimensions", NVM_MAX_RANK);
  for (int d = 0; d < rank; d++)
    if (d != axis) out[m++] = x->aval->shape[d];
    else
      for (int e = 0; e < k; e++) out[m++] = index->aval->shape[e];
  for (int d = 0; d < rank; d++) shape[d] = d == axis ? index->aval->size : 1;
  index = nvg_xreshape(c, index, rank, shape);
  for (int d = 0; d < rank; d++) shape[d] = d == axis ? shape[d] : x->aval->shape[d];
  return nvg_xreshape(c, nvg_xgather(c, x, nvg_xexpand(c, index, rank, shape), axis, of), m, out);
}

nvg_node *nvg_make_TAKE(nvg_call *c) {
  nvg_node *x = nvg_typed(c);
  int axis = 0;
  if (!x) return NULL;
  if (!nvg_attr_get(c, "axis")) {
    if (x->aval->rank != 1) x = nvg_xreshape(c, x, 1, &x->aval->size);
  } else if (nvg_attr_axis(c, "axis", x->aval->rank, 0, &axis)) return NULL;
  return take_elements(c, x, axis, axis);
}

static nvg_node *take_item(nvg_call *c) {
  nvg_node *x = nvg_typed(c);
  int64_t of;
  int axis;
  if (!x || nvg_attr_axis(c, "axis", x->aval->rank, 0, &axis) || nvg_attr_int(c, "of", axis, &of)) return NULL;
  return take_elements(c, x, axis, of);
}
nvg_node *nvg_make_GETITEM(nvg_call *c) { return take_item(c); }
nvg_node *nvg_make_SETITEM(nvg_call *c) { return take_item(c); }

nvg_node *nvg_make_TAKE_ALONG_AXIS(nvg_call *c) {
  nvg_node *x = nvg_typed(c), *index = c->in[1];
  int axis;
  if (!x || nvg_attr_axis(c, "axis", x->aval->rank, -1, &axis)) return NULL;
  int rank = x->aval->rank;
  if (index->aval->rank != rank)
    return nvg_bad(c, NVM_ERR_VALUE, "indices have %d dimensions, the array %d", index->aval->rank, rank);
  if (!(index = positions_of(c, index, x->aval->shape[axis]))) return NULL;
  int64_t grid[NVM_MAX_RANK], own[NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    int64_t a = x->aval->shape[d], b = index->aval->shape[d];
    if (d != axis && a != b && a != 1 && b != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "dimension %d has extents %lld and %lld", d, (long long)a, (long long)b);
    grid[d] = d == axis || a == 1 ? b : a;
    own[d] = d == axis ? a : grid[d];
  }
  return nvg_xgather(c, nvg_xexpand(c, x, rank, own), nvg_xexpand(c, index, rank, grid), axis, axis);
}

nvg_node *nvg_make_LAST_INDEX(nvg_call *c) {
  int64_t size;
  if (nvg_attr_int(c, "size", -1, &size)) return NULL;
  if (size < 0) return nvg_bad(c, NVM_ERR_VALUE, "size must be 0 or more");
  nvg_node *index = positions_of(c, c->in[0], size);
  if (index && index->aval->rank != 1) index = nvg_xreshape(c, index, 1, &index->aval->size);
  if (index && !index->aval->size) return nvg_xexpand(c, nvg_xint(c, -1), 1, &size);
  return nvg_x2(c, NVG_OP_SUBTRACT, nvg_xscatter(c, index, size), nvg_xint(c, 1));
}
