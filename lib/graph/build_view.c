/* Views: operations that only rename elements. Each ends in reshapes, permutations, slices, broadcasts and rolls; none
   touches a value. */
#include <string.h>
#include "graph/infer.h"

/* A shape attribute. With `infer`, one -1 stands for what is left of `size`. */
static int shape_attr(nvg_call *c, const char *name, int64_t size, int infer, int64_t *shape, int *rank) {
  int status = nvg_attr_ints(c, name, NVM_MAX_RANK, shape, rank), hole = -1;
  if (status) return status;
  if (*rank < 0) return nvg_bad(c, NVM_ERR_VALUE, "%s is missing", name), NVM_ERR_VALUE;
  int64_t known = 1;
  char text[NVG_SHAPE_TEXT];
  for (int d = 0; d < *rank; d++) {
    if (shape[d] == -1 && infer && hole < 0) hole = d;
    else if (shape[d] < 0) return nvg_bad(c, NVM_ERR_VALUE, "negative extent in %s %s", name, nvg_shape_text(text, *rank, shape)), NVM_ERR_VALUE;
    else if (__builtin_mul_overflow(known, shape[d], &known)) known = -1;
  }
  if (hole >= 0) shape[hole] = known > 0 ? size / known : 0;
  if (infer && (hole >= 0 ? known * shape[hole] : known) != size) {
    if (hole >= 0) shape[hole] = -1;
    char from[NVG_SHAPE_TEXT];
    const nvg_aval *a = c->in[0]->aval;
    nvg_bad(c, NVM_ERR_VALUE, "cannot reshape %s into %s", nvg_shape_text(from, a->rank, a->shape), nvg_shape_text(text, *rank, shape));
    return NVM_ERR_VALUE;
  }
  return NVM_OK;
}

/* Arrays are never weak: what a view sees of a Python scalar has the dtype it would have alone. */
static nvg_node *operand(nvg_call *c) {
  nvg_node *x = c->in[0];
  return x->weak ? nvg_xcast(c, x, nvg_dtype_in(x, c->default_float), 1) : x;
}

nvg_node *nvg_make_RESHAPE(nvg_call *c) {
  int64_t shape[NVM_MAX_RANK];
  int rank;
  nvg_node *x = operand(c);
  nvg_attr_get(c, "copy"); /* arrays are values: a copy and a view cannot be told apart */
  return !x || shape_attr(c, "shape", x->aval->size, 1, shape, &rank) ? NULL : nvg_xreshape(c, x, rank, shape);
}

nvg_node *nvg_make_PERMUTE_DIMS(nvg_call *c) {
  int64_t axes[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  int n, rank = x ? x->aval->rank : 0;
  uint32_t seen;
  if (!x || nvg_attr_axes(c, "axes", rank, &seen) || nvg_attr_ints(c, "axes", NVM_MAX_RANK, axes, &n)) return NULL;
  if (n != rank) return nvg_bad(c, NVM_ERR_VALUE, "axes must name each of the %d dimensions once", rank);
  for (int d = 0; d < rank; d++) axes[d] += axes[d] < 0 ? rank : 0;
  return nvg_xpermute(c, x, axes);
}

nvg_node *nvg_make_MATRIX_TRANSPOSE(nvg_call *c) {
  int64_t axes[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  int rank = x ? x->aval->rank : 0;
  if (!x || rank < 2) return x ? nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", rank) : NULL;
  for (int d = 0; d < rank; d++) axes[d] = d;
  axes[rank - 1] = rank - 2, axes[rank - 2] = rank - 1;
  return nvg_xpermute(c, x, axes);
}

nvg_node *nvg_make_MOVEAXIS(nvg_call *c) {
  int64_t from[NVM_MAX_RANK], to[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  int n, m, rank = x ? x->aval->rank : 0;
  uint32_t gone, filled;
  if (!x || nvg_attr_axes(c, "source", rank, &gone) || nvg_attr_axes(c, "destination", rank, &filled)) return NULL;
  if (nvg_attr_ints(c, "source", NVM_MAX_RANK, from, &n) || nvg_attr_ints(c, "destination", NVM_MAX_RANK, to, &m)) return NULL;
  if (n != m || n < 0) return nvg_bad(c, NVM_ERR_VALUE, "source and destination must have the same number of axes");
  for (int k = 0; k < n; k++) axes[to[k] < 0 ? to[k] + rank : to[k]] = from[k] < 0 ? from[k] + rank : from[k];
  for (int d = 0, next = 0; d < rank; d++) {
    if (filled >> d & 1) continue;
    while (gone >> next & 1) next++;
    axes[d] = next++;
  }
  return nvg_xpermute(c, x, axes);
}

nvg_node *nvg_make_EXPAND_DIMS(nvg_call *c) {
  int64_t shape[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  int n;
  uint32_t made;
  if (!x || nvg_attr_ints(c, "axis", NVM_MAX_RANK, axes, &n)) return NULL;
  int count = n < 0 ? 1 : n, rank = x->aval->rank + count;
  if (rank > NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK);
  if (n < 0) made = 1;
  else if (nvg_attr_axes(c, "axis", rank, &made)) return NULL;
  for (int d = 0, from = 0; d < rank; d++) shape[d] = made >> d & 1 ? 1 : x->aval->shape[from++];
  return nvg_xreshape(c, x, rank, shape);
}

nvg_node *nvg_make_SQUEEZE(nvg_call *c) {
  uint32_t axes;
  nvg_node *x = operand(c);
  if (!x || nvg_attr_axes(c, "axis", x->aval->rank, &axes)) return NULL;
  for (int d = 0; d < x->aval->rank; d++)
    if ((axes >> d & 1) && x->aval->shape[d] != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "dimension %d has extent %lld, not 1", d, (long long)x->aval->shape[d]);
  return nvg_xdrop(c, x, axes);
}

nvg_node *nvg_make_BROADCAST_TO(nvg_call *c) {
  int64_t shape[NVM_MAX_RANK];
  int rank;
  nvg_node *x = operand(c);
  if (!x || shape_attr(c, "shape", 0, 0, shape, &rank)) return NULL;
  const nvg_aval *a = x->aval;
  int fits = a->rank <= rank;
  for (int d = 0; fits && d < a->rank; d++) {
    int64_t want = shape[rank - a->rank + d];
    fits = a->shape[d] == want || a->shape[d] == 1;
  }
  char from[NVG_SHAPE_TEXT], to[NVG_SHAPE_TEXT];
  if (!fits)
    return nvg_bad(c, NVM_ERR_VALUE, "%s does not broadcast to %s", nvg_shape_text(from, a->rank, a->shape), nvg_shape_text(to, rank, shape));
  return nvg_xexpand(c, x, rank, shape);
}

/* start, count, step of each dimension, checked against the array. A status. */
static int window(nvg_call *c, const nvg_aval *a, int64_t *start, int64_t *count, int64_t *step) {
  int n[3], status;
  if ((status = nvg_attr_ints(c, "start", NVM_MAX_RANK, start, &n[0]))) return status;
  if ((status = nvg_attr_ints(c, "count", NVM_MAX_RANK, count, &n[1]))) return status;
  if ((status = nvg_attr_ints(c, "step", NVM_MAX_RANK, step, &n[2]))) return status;
  if (n[2] < 0) {
    for (int d = 0; d < a->rank; d++) step[d] = 1;
    n[2] = a->rank;
  }
  if (n[0] != a->rank || n[1] != a->rank || n[2] != a->rank)
    return nvg_bad(c, NVM_ERR_VALUE, "start, count and step need %d entries each", a->rank), NVM_ERR_VALUE;
  for (int d = 0; d < a->rank; d++) {
    int64_t last;
    int bad = count[d] < 0 || __builtin_mul_overflow(count[d] ? count[d] - 1 : 0, step[d], &last) ||
              __builtin_add_overflow(last, start[d], &last);
    if (bad || (count[d] && (start[d] < 0 || start[d] >= a->shape[d] || last < 0 || last >= a->shape[d]))) {
      nvg_bad(c, NVM_ERR_INDEX, "%lld elements from %lld at step %lld leave dimension %d of extent %lld", (long long)count[d],
              (long long)start[d], (long long)step[d], d, (long long)a->shape[d]);
      return NVM_ERR_INDEX;
    }
  }
  return NVM_OK;
}

nvg_node *nvg_make_SLICE(nvg_call *c) {
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  return !x || window(c, x->aval, start, count, step) ? NULL : nvg_xslice(c, x, start, count, step);
}

static nvg_node *flip(nvg_call *c, nvg_node *x, uint32_t axes) {
  for (int d = 0; x && d < x->aval->rank; d++)
    if (axes >> d & 1) x = nvg_xrange(c, x, d, x->aval->shape[d] - 1, x->aval->shape[d], -1);
  return x;
}

nvg_node *nvg_make_FLIP(nvg_call *c) {
  uint32_t axes;
  nvg_node *x = operand(c);
  return !x || nvg_attr_axes(c, "axis", x->aval->rank, &axes) ? NULL : flip(c, x, axes);
}

static nvg_node *rotate(nvg_call *c, nvg_node *x, int axis, int64_t shift) {
  if (!x) return NULL;
  int64_t n = x->aval->shape[axis], by = n ? (n - shift % n) % n : 0, attr[2] = { axis, by };
  return by ? nvg_keep(c, nvg_node_new(NVG_OP_ROTATE, x->aval, &x, 1, attr, 2)) : x;
}

nvg_node *nvg_make_ROLL(nvg_call *c) {
  int64_t shift[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  int ns, na;
  nvg_node *x = operand(c);
  if (!x || nvg_attr_ints(c, "shift", NVM_MAX_RANK, shift, &ns) || nvg_attr_ints(c, "axis", NVM_MAX_RANK, axes, &na)) return NULL;
  if (ns < 1) return nvg_bad(c, NVM_ERR_VALUE, "shift is missing");
  const nvg_aval *a = x->aval;
  if (na < 0) {
    if (ns != 1) return nvg_bad(c, NVM_ERR_VALUE, "without an axis there is one shift");
    return nvg_xreshape(c, rotate(c, nvg_xreshape(c, x, 1, &a->size), 0, shift[0]), a->rank, a->shape);
  }
  if (ns != na && ns != 1 && na != 1) return nvg_bad(c, NVM_ERR_VALUE, "%d shifts for %d axes", ns, na);
  for (int k = 0; k < (ns > na ? ns : na); k++) {
    int64_t d = axes[na == 1 ? 0 : k];
    if (d < -a->rank || d >= a->rank) return nvg_bad(c, NVM_ERR_INDEX, "axis %lld is out of range for %d dimensions", (long long)d, a->rank);
    x = rotate(c, x, (int)(d < 0 ? d + a->rank : d), shift[ns == 1 ? 0 : k]);
  }
  return x;
}

/* The diagonal is a slice of the flattened matrix: its elements lie a row and one element apart. */
nvg_node *nvg_make_DIAGONAL(nvg_call *c) {
  int64_t k, shape[NVM_MAX_RANK];
  nvg_node *x = operand(c);
  if (!x || nvg_attr_int(c, "offset", 0, &k)) return NULL;
  int r = x->aval->rank;
  if (r < 2) return nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", r);
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)r);
  int64_t rows = shape[r - 2], cols = shape[r - 1];
  int64_t n = k >= 0 ? (cols - k < rows ? cols - k : rows) : (rows + k < cols ? rows + k : cols);
  shape[r - 2] = rows * cols;
  x = nvg_xreshape(c, x, r - 1, shape);
  return nvg_xrange(c, x, r - 2, n > 0 ? (k >= 0 ? k : -k * cols) : 0, n > 0 ? n : 0, cols + 1);
}

/* Each dimension n becomes (r, n) and is joined again: a broadcast and a reshape. */
nvg_node *nvg_make_TILE(nvg_call *c) {
  int64_t rep[NVM_MAX_RANK], from[2 * NVM_MAX_RANK], to[2 * NVM_MAX_RANK], out[NVM_MAX_RANK];
  int n;
  nvg_node *x = operand(c);
  if (!x || nvg_attr_ints(c, "repetitions", NVM_MAX_RANK, rep, &n)) return NULL;
  if (n < 0) return nvg_bad(c, NVM_ERR_VALUE, "repetitions is missing");
  int rank = n > x->aval->rank ? n : x->aval->rank, wide = 0;
  for (int d = 0; d < rank; d++) {
    int64_t r = d < rank - n ? 1 : rep[d - (rank - n)], e = d < rank - x->aval->rank ? 1 : x->aval->shape[d - (rank - x->aval->rank)];
    if (r < 0) return nvg_bad(c, NVM_ERR_VALUE, "negative repetition %lld", (long long)r);
    if (r != 1 && e != 1) from[wide] = 1, to[wide++] = r, from[wide] = e, to[wide++] = e;
    else from[wide] = e, to[wide++] = e == 1 ? r : e;
    if (__builtin_mul_overflow(r, e, &out[d])) return nvg_bad(c, NVM_ERR_VALUE, "the result has too many elements");
  }
  if (wide > NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "more than %d dimensions on the way", NVM_MAX_RANK);
  return nvg_xreshape(c, nvg_xexpand(c, nvg_xreshape(c, x, wide, from), wide, to), rank, out);
}

nvg_node *nvg_make_REPEAT(nvg_call *c) {
  int64_t k, from[NVM_MAX_RANK + 1], to[NVM_MAX_RANK + 1];
  int axis = 0;
  nvg_node *x = operand(c);
  if (!x || nvg_attr_int(c, "repeats", -1, &k)) return NULL;
  if (k < 0) return nvg_bad(c, NVM_ERR_VALUE, "repeats must be 0 or more");
  if (!nvg_attr_get(c, "axis")) x = nvg_xreshape(c, x, 1, &x->aval->size);
  else if (nvg_attr_axis(c, "axis", x->aval->rank, 0, &axis)) return NULL;
  if (!x) return NULL;
  int rank = x->aval->rank;
  if (rank >= NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "at most %d dimensions", NVM_MAX_RANK - 1);
  for (int d = 0, e = 0; d < rank; d++) {
    from[e] = to[e] = x->aval->shape[d], e++;
    if (d == axis) from[e] = 1, to[e] = k, e++;
  }
  x = nvg_xexpand(c, nvg_xreshape(c, x, rank + 1, from), rank + 1, to);
  from[axis] *= k;
  memmove(from + axis + 1, from + axis + 2, sizeof *from * (size_t)(rank - axis - 1));
  return nvg_xreshape(c, x, rank, from);
}

/* values at a slice of x: what they cover is told by coordinates, where they come from by padding. A step spreads them by
   zeros in between; a negative one turns them round first. */
nvg_node *nvg_make_SLICE_UPDATE(nvg_call *c) {
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  nvg_node *x = operand(c), *v = c->in[1], *inside = NULL;
  if (!x || window(c, x->aval, start, count, step)) return NULL;
  int rank = x->aval->rank;
  v = nvg_xexpand(c, nvg_xcast(c, v, x->aval->dtype, 1), rank, count);
  nvg_node *zero = nvg_xconst(c, x->aval->dtype, 0, 0);
  for (int d = 0; v && zero && d < rank; d++) {
    if (!count[d]) return x;
    if (count[d] > 1 && step[d] < 0) {
      start[d] += (count[d] - 1) * step[d], step[d] = -step[d];
      v = flip(c, v, 1u << d);
    }
    int64_t s = count[d] > 1 ? step[d] : 1, n = x->aval->shape[d], before[NVM_MAX_RANK + 1] = { 0 };
    if (count[d] == n && s == 1) continue;
    memcpy(shape, v ? v->aval->shape : count, sizeof *shape * (size_t)rank);
    if (s > 1) { /* (n) -> (n, 1) padded to (n, s), flattened, cut */
      int64_t two[NVM_MAX_RANK + 1];
      if (rank >= NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "at most %d dimensions with steps", NVM_MAX_RANK - 1);
      for (int e = 0; e <= rank; e++) two[e] = e <= d ? shape[e] : e == d + 1 ? 1 : shape[e - 1];
      v = nvg_xreshape(c, v, rank + 1, two);
      two[d + 1] = s;
      v = nvg_xpad(c, v, zero, before, two);
      shape[d] = count[d] * s;
      v = nvg_xreshape(c, v, rank, shape);
      v = nvg_xrange(c, v, d, 0, (count[d] - 1) * s + 1, 1);
    }
    shape[d] = n;
    before[d] = start[d];
    v = nvg_xpad(c, v, zero, before, shape);
    nvg_node *i = nvg_xiota(c, rank, x->aval->shape, d), *off = nvg_x2(c, NVG_OP_SUBTRACT, i, nvg_xint(c, start[d])), *in;
    in = nvg_x2(c, NVG_OP_LOGICAL_AND, nvg_x2(c, NVG_OP_GREATER_EQUAL, off, nvg_xint(c, 0)),
                nvg_x2(c, NVG_OP_LESS_EQUAL, off, nvg_xint(c, (count[d] - 1) * s)));
    if (s > 1) in = nvg_x2(c, NVG_OP_LOGICAL_AND, in, nvg_x2(c, NVG_OP_EQUAL, nvg_x2(c, NVG_OP_REMAINDER, off, nvg_xint(c, s)), nvg_xint(c, 0)));
    inside = inside ? nvg_x2(c, NVG_OP_LOGICAL_AND, inside, in) : in;
    if (!inside) return NULL;
  }
  return inside ? nvg_x3(c, NVG_OP_WHERE, inside, v, x) : v;
}

/* ---- several arrays into one */
static nvg_node *gather_operands(nvg_call *c, nvg_node **at, nvm_dtype *t) {
  if (c->nin < 1) return nvg_bad(c, NVM_ERR_VALUE, "needs at least one array");
  *t = nvg_common(c->in, c->nin, c->default_float);
  for (int i = 0; i < c->nin; i++)
    if (!(at[i] = nvg_xcast(c, c->in[i], *t, 1))) return NULL;
  return at[0];
}

static nvg_node *join(nvg_call *c, nvg_node **at, int axis) {
  char a[NVG_SHAPE_TEXT], b[NVG_SHAPE_TEXT];
  const nvg_aval *first = at[0]->aval;
  for (int i = 1; i < c->nin; i++) {
    const nvg_aval *v = at[i]->aval;
    int fits = v->rank == first->rank;
    for (int d = 0; fits && d < v->rank; d++) fits = d == axis || v->shape[d] == first->shape[d];
    if (!fits)
      return nvg_bad(c, NVM_ERR_VALUE, "shapes %s and %s differ outside axis %d", nvg_shape_text(a, first->rank, first->shape),
                     nvg_shape_text(b, v->rank, v->shape), axis);
  }
  return nvg_xjoin(c, at, c->nin, axis);
}

nvg_node *nvg_make_CONCAT(nvg_call *c) {
  nvg_node *at[c->nin > 0 ? c->nin : 1];
  nvm_dtype t;
  int axis, flat = 0;
  if (!gather_operands(c, at, &t)) return NULL;
  for (int i = 0; i < c->nattr; i++) flat |= !strcmp(c->attr[i].name, "axis") && c->attr[i].kind == 'n';
  if (flat)
    for (int i = 0; i < c->nin; i++)
      if (!(at[i] = nvg_xreshape(c, at[i], 1, &at[i]->aval->size))) return NULL;
  if (at[0]->aval->rank == 0) return nvg_bad(c, NVM_ERR_VALUE, "zero-dimensional arrays cannot be concatenated");
  return nvg_attr_axis(c, "axis", at[0]->aval->rank, 0, &axis) ? NULL : join(c, at, axis);
}

nvg_node *nvg_make_STACK(nvg_call *c) {
  nvg_node *at[c->nin > 0 ? c->nin : 1];
  nvm_dtype t;
  int axis;
  if (!gather_operands(c, at, &t)) return NULL;
  int rank = at[0]->aval->rank + 1;
  if (rank > NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK);
  if (nvg_attr_axis(c, "axis", rank, 0, &axis)) return NULL;
  for (int i = 0; i < c->nin; i++) {
    int64_t shape[NVM_MAX_RANK];
    const nvg_aval *v = at[i]->aval;
    if (v->shape != at[0]->aval->shape && i) {
      char a[NVG_SHAPE_TEXT], b[NVG_SHAPE_TEXT];
      if (v->rank != rank - 1 || memcmp(v->shape, c->in[0]->aval->shape, sizeof *shape * (size_t)v->rank))
        return nvg_bad(c, NVM_ERR_VALUE, "shapes %s and %s differ", nvg_shape_text(a, rank - 1, c->in[0]->aval->shape), nvg_shape_text(b, v->rank, v->shape));
    }
    for (int d = 0, from = 0; d < rank; d++) shape[d] = d == axis ? 1 : v->shape[from++];
    if (!(at[i] = nvg_xreshape(c, at[i], rank, shape))) return NULL;
  }
  return nvg_xjoin(c, at, c->nin, axis);
}

nvg_node *nvg_make_PAD(nvg_call *c) {
  int64_t w[2 * NVM_MAX_RANK], before[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  int n;
  nvg_node *x = operand(c), *fill = x ? nvg_fill_attr(c, "constant_values", x->aval->dtype) : NULL;
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

static nvg_node *triangle(nvg_call *c, nvg_op keep) {
  int64_t k;
  nvg_node *x = operand(c);
  if (!x || nvg_attr_int(c, "k", 0, &k)) return NULL;
  const nvg_aval *a = x->aval;
  if (a->rank < 2) return nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", a->rank);
  nvg_node *row = nvg_xiota(c, a->rank, a->shape, a->rank - 2), *col = nvg_xiota(c, a->rank, a->shape, a->rank - 1);
  nvg_node *in = nvg_x2(c, keep, nvg_x2(c, NVG_OP_SUBTRACT, col, row), nvg_xint(c, k));
  return nvg_x3(c, NVG_OP_WHERE, in, x, nvg_xconst(c, a->dtype, 0, 0));
}
nvg_node *nvg_make_TRIL(nvg_call *c) { return triangle(c, NVG_OP_LESS_EQUAL); }
nvg_node *nvg_make_TRIU(nvg_call *c) { return triangle(c, NVG_OP_GREATER_EQUAL); }

/* ---- elements by position */
static nvg_node *positions(nvg_call *c, nvg_node *index, int64_t n) {
  nvg_class k = nvg_class_of(index->aval->dtype);
  if (k != NVG_SIGNED && k != NVG_UNSIGNED)
    return nvg_bad(c, NVM_ERR_TYPE, "indices must be integers, not %s", nvg_dtype_name(index->aval->dtype));
  nvg_node *i = nvg_xcast(c, index, NVM_I64, 1);
  if (k == NVG_UNSIGNED) return i;
  return nvg_x3(c, NVG_OP_WHERE, nvg_x2(c, NVG_OP_LESS, i, nvg_xint(c, 0)), nvg_x2(c, NVG_OP_ADD, i, nvg_xint(c, n)), i);
}

nvg_node *nvg_make_TAKE(nvg_call *c) {
  nvg_node *x = operand(c), *index = c->in[1];
  int axis = 0;
  if (!x) return NULL;
  if (!nvg_attr_get(c, "axis")) {
    if (x->aval->rank != 1) x = nvg_xreshape(c, x, 1, &x->aval->size);
  } else if (nvg_attr_axis(c, "axis", x->aval->rank, 0, &axis)) return NULL;
  index = x ? positions(c, index, x->aval->shape[axis]) : NULL;
  if (!index) return NULL;
  int64_t shape[NVM_MAX_RANK], out[2 * NVM_MAX_RANK];
  int rank = x->aval->rank, k = index->aval->rank, m = 0;
  if (rank - 1 + k > NVM_MAX_RANK) return nvg_bad(c, NVM_ERR_VALUE, "the result has more than %d dimensions", NVM_MAX_RANK);
  for (int d = 0; d < rank; d++)
    if (d != axis) out[m++] = x->aval->shape[d];
    else for (int e = 0; e < k; e++) out[m++] = index->aval->shape[e];
  for (int d = 0; d < rank; d++) shape[d] = d == axis ? index->aval->size : 1;
  index = nvg_xreshape(c, index, rank, shape);
  for (int d = 0; d < rank; d++) shape[d] = d == axis ? shape[d] : x->aval->shape[d];
  return nvg_xreshape(c, nvg_xgather(c, x, nvg_xexpand(c, index, rank, shape), axis), m, out);
}

nvg_node *nvg_make_TAKE_ALONG_AXIS(nvg_call *c) {
  nvg_node *x = operand(c), *index = c->in[1];
  int axis;
  if (!x || nvg_attr_axis(c, "axis", x->aval->rank, -1, &axis)) return NULL;
  int rank = x->aval->rank;
  if (index->aval->rank != rank) return nvg_bad(c, NVM_ERR_VALUE, "indices have %d dimensions, the array %d", index->aval->rank, rank);
  if (!(index = positions(c, index, x->aval->shape[axis]))) return NULL;
  int64_t grid[NVM_MAX_RANK], own[NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    int64_t a = x->aval->shape[d], b = index->aval->shape[d];
    if (d != axis && a != b && a != 1 && b != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "dimension %d has extents %lld and %lld", d, (long long)a, (long long)b);
    grid[d] = d == axis || a == 1 ? b : a;
    own[d] = d == axis ? a : grid[d];
  }
  return nvg_xgather(c, nvg_xexpand(c, x, rank, own), nvg_xexpand(c, index, rank, grid), axis);
}
