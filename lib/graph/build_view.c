/* Builds views, which only rename elements. Each becomes reshapes, permutations, slices, broadcasts and rolls; none
   changes a value. */
#include <string.h>
#include "graph/infer.h"

/* Reads a shape attribute. With `infer`, one extent may be -1 and is computed from `size`. Returns a status. */
static int shape_attr(nvg_call *c, const char *name, int64_t size, int infer, int64_t *shape, int *rank) {
  int status = nvg_attr_ints(c, name, NVM_MAX_RANK, shape, rank), hole = -1;
  if (status) return status;
  if (*rank < 0) return nvg_bad(c, NVM_ERR_VALUE, "%s is missing", name), NVM_ERR_VALUE;
  int64_t known = 1;
  char text[NVG_SHAPE_TEXT];
  for (int d = 0; d < *rank; d++) {
    if (shape[d] == -1 && infer && hole < 0) hole = d;
    else if (shape[d] < 0)
      return nvg_bad(c, NVM_ERR_VALUE, "negative extent in %s %s", name, nvg_shape_text(text, *rank, shape)),
             NVM_ERR_VALUE;
    else if (__builtin_mul_overflow(known, shape[d], &known)) known = -1;
  }
  if (hole >= 0) shape[hole] = known > 0 ? size / known : 0;
  /* if the other extents are 0, -1 has no unique value */
  if (infer && ((hole >= 0 ? known * shape[hole] : known) != size || (hole >= 0 && !known))) {
    if (hole >= 0) shape[hole] = -1;
    char from[NVG_SHAPE_TEXT];
    const nvg_aval *a = c->in[0]->aval;
    nvg_bad(c, NVM_ERR_VALUE, "cannot reshape %s into %s", nvg_shape_text(from, a->rank, a->shape),
            nvg_shape_text(text, *rank, shape));
    return NVM_ERR_VALUE;
  }
  return NVM_OK;
}

nvg_node *nvg_make_RESHAPE(nvg_call *c) {
  int64_t shape[NVM_MAX_RANK];
  int rank;
  nvg_node *x = nvg_typed(c);
  nvg_attr_get(c, "copy"); /* `copy` has no effect: arrays are values, so a copy and a view cannot be distinguished */
  return !x || shape_attr(c, "shape", x->aval->size, 1, shape, &rank) ? NULL : nvg_xreshape(c, x, rank, shape);
}

nvg_node *nvg_make_PERMUTE_DIMS(nvg_call *c) {
  int64_t axes[NVM_MAX_RANK];
  nvg_node *x = nvg_typed(c);
  int n, rank = x ? x->aval->rank : 0;
  uint32_t seen;
  if (!x || nvg_attr_axes(c, "axes", rank, &seen) || nvg_attr_ints(c, "axes", NVM_MAX_RANK, axes, &n)) return NULL;
  if (n != rank) return nvg_bad(c, NVM_ERR_VALUE, "axes must name each of the %d dimensions once", rank);
  for (int d = 0; d < rank; d++) axes[d] += axes[d] < 0 ? rank : 0;
  return nvg_xpermute(c, x, axes);
}

nvg_node *nvg_make_MATRIX_TRANSPOSE(nvg_call *c) {
  nvg_node *x = nvg_typed(c);
  int rank = x ? x->aval->rank : 0;
  if (!x || rank < 2) return x ? nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", rank) : NULL;
  return nvg_xtranspose(c, x);
}

nvg_node *nvg_make_MOVEAXIS(nvg_call *c) {
  int64_t from[NVM_MAX_RANK], to[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  nvg_node *x = nvg_typed(c);
  int n, m, rank = x ? x->aval->rank : 0;
  uint32_t gone, filled;
  if (!x || nvg_attr_axes(c, "source", rank, &gone) || nvg_attr_axes(c, "destination", rank, &filled)) return NULL;
  if (nvg_attr_ints(c, "source", NVM_MAX_RANK, from, &n) || nvg_attr_ints(c, "destination", NVM_MAX_RANK, to, &m))
    return NULL;
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
  nvg_node *x = nvg_typed(c);
  int n;
  uint32_t made;
  if (!x || nvg_attr_ints(c, "axis", NVM_MAX_RANK, axes, &n)) return NULL;
  int count = n < 0 ? 1 : n, rank = x->aval->rank + count;
  if (rank > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "%d dimensions; at most %d are possible", rank, NVM_MAX_RANK);
  if (n < 0) made = 1;
  else if (nvg_attr_axes(c, "axis", rank, &made)) return NULL;
  for (int d = 0, from = 0; d < rank; d++) shape[d] = made >> d & 1 ? 1 : x->aval->shape[from++];
  return nvg_xreshape(c, x, rank, shape);
}

nvg_node *nvg_make_SQUEEZE(nvg_call *c) {
  uint32_t axes;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_axes(c, "axis", x->aval->rank, &axes)) return NULL;
  int all = !nvg_attr_get(c, "axis");
  for (int d = 0; d < x->aval->rank; d++)
    if (all && x->aval->shape[d] != 1) axes &= ~(1u << d);
    else if ((axes >> d & 1) && x->aval->shape[d] != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "dimension %d has extent %lld, not 1", d, (long long)x->aval->shape[d]);
  return nvg_xdrop(c, x, axes);
}

nvg_node *nvg_make_BROADCAST_TO(nvg_call *c) {
  int64_t shape[NVM_MAX_RANK];
  int rank;
  nvg_node *x = nvg_typed(c);
  if (!x || shape_attr(c, "shape", 0, 0, shape, &rank)) return NULL;
  const nvg_aval *a = x->aval;
  char from[NVG_SHAPE_TEXT], to[NVG_SHAPE_TEXT];
  if (!nvg_broadcasts(a, rank, shape))
    return nvg_bad(c, NVM_ERR_VALUE, "%s does not broadcast to %s", nvg_shape_text(from, a->rank, a->shape),
                   nvg_shape_text(to, rank, shape));
  return nvg_xexpand(c, x, rank, shape);
}

static int is_inside(int64_t extent, int64_t start, int64_t count, int64_t step) {
  int64_t last;
  if (count < 0 || __builtin_mul_overflow(count ? count - 1 : 0, step, &last)) return 0;
  if (__builtin_add_overflow(last, start, &last)) return 0;
  return !count || (start >= 0 && start < extent && last >= 0 && last < extent);
}
int nvg_window(nvg_call *c, const nvg_aval *a, int64_t *start, int64_t *count, int64_t *step) {
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
    if (!step[d] && count[d] > 1) return nvg_bad(c, NVM_ERR_VALUE, "the step of dimension %d is 0", d), NVM_ERR_VALUE;
    if (!is_inside(a->shape[d], start[d], count[d], step[d])) {
      nvg_bad(c, NVM_ERR_INDEX, "%lld elements from %lld at step %lld leave dimension %d of extent %lld",
              (long long)count[d], (long long)start[d], (long long)step[d], d, (long long)a->shape[d]);
      return NVM_ERR_INDEX;
    }
  }
  return NVM_OK;
}

nvg_node *nvg_make_SLICE(nvg_call *c) {
  int64_t start[NVM_MAX_RANK], count[NVM_MAX_RANK], step[NVM_MAX_RANK];
  nvg_node *x = nvg_typed(c);
  return !x || nvg_window(c, x->aval, start, count, step) ? NULL : nvg_xslice(c, x, start, count, step);
}

static nvg_node *drop_dimensions(nvg_node *x, const int *drop) { /* takes x; NULL passes through */
  int64_t shape[NVM_MAX_RANK];
  int rank = 0;
  for (int d = 0; x && d < x->aval->rank; d++)
    if (!drop[d]) shape[rank++] = x->aval->shape[d];
  if (!x || rank == x->aval->rank) return x;
  return nvg_node_take(NVG_OP_RESHAPE, nvg_aval_get(x->aval->dtype, rank, shape), &x, 1, NULL, 0);
}
nvg_node *nvg_slice(nvg_node *x, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop) {
  int64_t attr[2 * NVM_MAX_RANK];
  int rank = x->aval->rank, all = 1;
  for (int d = 0; d < rank; d++) {
    if ((!step[d] && count[d] > 1) || !is_inside(x->aval->shape[d], start[d], count[d], step[d])) return NULL;
    if (drop && drop[d] && count[d] != 1) return NULL;
    attr[2 * d] = count[d] ? start[d] : 0;
    attr[2 * d + 1] = count[d] > 1 ? step[d] : 1;
    all &= count[d] == x->aval->shape[d] && attr[2 * d] == 0 && attr[2 * d + 1] == 1;
  }
  const nvg_aval *av = all ? NULL : nvg_aval_get(x->aval->dtype, rank, count);
  nvg_node *r = all ? nvg_node_ref(x) : nvg_node_new(NVG_OP_STRIDED, av, &x, 1, attr, 2 * rank);
  return drop ? drop_dimensions(r, drop) : r;
}

nvg_node *nvg_make_FLIP(nvg_call *c) {
  uint32_t axes;
  nvg_node *x = nvg_typed(c);
  return !x || nvg_attr_axes(c, "axis", x->aval->rank, &axes) ? NULL : nvg_xflip(c, x, axes);
}

nvg_node *nvg_xmove_axis(nvg_call *c, nvg_node *x, int axis, int back) {
  if (!x) return NULL;
  int64_t axes[NVM_MAX_RANK];
  int last = x->aval->rank - 1;
  for (int d = 0, from = 0; d <= last; d++)
    if (back) axes[d] = d == axis ? last : from++;
    else axes[d] = d == last ? axis : d + (d >= axis);
  return axis == last ? x : nvg_xpermute(c, x, axes);
}

nvg_node *nvg_xrotate(nvg_call *c, nvg_node *x, int axis, int64_t shift) {
  if (!x) return NULL;
  int64_t n = x->aval->shape[axis], by = n ? (n - shift % n) % n : 0, attr[2] = { axis, by };
  return by ? nvg_keep(c, nvg_node_new(NVG_OP_ROTATE, nvg_aval_ref(x->aval), &x, 1, attr, 2)) : x;
}

nvg_node *nvg_make_ROLL(nvg_call *c) {
  int64_t shift[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  int ns, na;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_ints(c, "shift", NVM_MAX_RANK, shift, &ns) || nvg_attr_ints(c, "axis", NVM_MAX_RANK, axes, &na))
    return NULL;
  if (ns < 1) return nvg_bad(c, NVM_ERR_VALUE, "shift is missing");
  const nvg_aval *a = x->aval;
  if (na < 0) {
    if (ns != 1) return nvg_bad(c, NVM_ERR_VALUE, "without an axis there is one shift");
    return nvg_xreshape(c, nvg_xrotate(c, nvg_xreshape(c, x, 1, &a->size), 0, shift[0]), a->rank, a->shape);
  }
  if (!na) return x;
  if (ns != na && ns != 1 && na != 1) return nvg_bad(c, NVM_ERR_VALUE, "%d shifts for %d axes", ns, na);
  for (int k = 0; k < (ns > na ? ns : na); k++) {
    int d;
    if (nvg_axis(c, axes[na == 1 ? 0 : k], a->rank, &d)) return NULL;
    x = nvg_xrotate(c, x, d, shift[ns == 1 ? 0 : k]);
  }
  return x;
}

nvg_node *nvg_make_DIAGONAL(nvg_call *c) {
  int64_t k;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_int(c, "offset", 0, &k)) return NULL;
  int r = x->aval->rank;
  if (r < 2) return nvg_bad(c, NVM_ERR_VALUE, "needs at least two dimensions, not %d", r);
  return nvg_xdiagonal(c, x, k);
}

/* tile: each dimension n becomes (r, n) by a broadcast, and is merged by a reshape. */
nvg_node *nvg_make_TILE(nvg_call *c) {
  int64_t rep[NVM_MAX_RANK], from[2 * NVM_MAX_RANK], to[2 * NVM_MAX_RANK], out[NVM_MAX_RANK];
  int n;
  nvg_node *x = nvg_typed(c);
  if (!x || nvg_attr_ints(c, "repetitions", NVM_MAX_RANK, rep, &n)) return NULL;
  if (n < 0) return nvg_bad(c, NVM_ERR_VALUE, "repetitions is missing");
  int rank = n > x->aval->rank ? n : x->aval->rank, wide = 0;
  for (int d = 0; d < rank; d++) {
    int own = d - (rank - x->aval->rank);
    int64_t r = d < rank - n ? 1 : rep[d - (rank - n)], e = own < 0 ? 1 : x->aval->shape[own];
    if (r < 0) return nvg_bad(c, NVM_ERR_VALUE, "negative repetition %lld", (long long)r);
    if (r != 1 && e != 1) from[wide] = 1, to[wide++] = r, from[wide] = e, to[wide++] = e;
    else from[wide] = e, to[wide++] = e == 1 ? r : e;
    if (__builtin_mul_overflow(r, e, &out[d])) return nvg_bad(c, NVM_ERR_VALUE, "the result has too many elements");
  }
  if (wide > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "an array of %d dimensions is needed in between; at most %d are possible", wide,
                   NVM_MAX_RANK);
  return nvg_xreshape(c, nvg_xexpand(c, nvg_xreshape(c, x, wide, from), wide, to), rank, out);
}

nvg_node *nvg_make_REPEAT(nvg_call *c) {
  int64_t k, from[NVM_MAX_RANK + 1], to[NVM_MAX_RANK + 1];
  int axis = 0;
  nvg_node *x = nvg_typed(c);
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
  if (!x) return NULL;
  from[axis] *= k;
  memmove(from + axis + 1, from + axis + 2, sizeof *from * (size_t)(rank - axis - 1));
  return nvg_xreshape(c, x, rank, from);
}
