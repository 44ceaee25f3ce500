/* Views as an offset and strides: of a reshape, of one view of a value, and of a chain of views of a leaf. Never copies
   elements. */
#include <string.h>
#include "graph/graph.h"

/* Returns the inner stride of dimensions that are contiguous with each other; sets *one to 0 if they are not. Extents
   of 1 have no say; strides of 0 do. */
static int64_t joined_stride(const int64_t *shape, const int64_t *stride, int n, int *one) {
  int64_t inner = 0, run = 0; /* run: the stride that the next outer dimension must have */
  for (int seen = 0; n--;) {
    if (shape[n] == 1) continue;
    if (!seen++) inner = stride[n];
    else if (stride[n] != run) *one = 0;
    run = stride[n] * shape[n];
  }
  return inner;
}
/* Groups of dimensions with equal numbers of elements on both sides correspond, and those of the operand must be
   contiguous with each other. */
int nvg_reshape_strides(int64_t *to, int to_rank, const int64_t *to_shape, const int64_t *stride, int rank,
                        const int64_t *shape) {
  int i = 0, j = 0, one = 1;
  nvg_packed(to, to_rank, to_shape);
  while (i < rank || j < to_rank) {
    int64_t here = 1, there = 1;
    int first = i, from = j;
    if (i < rank && shape[i] == 1) {
      i++;
      continue;
    }
    if (j < to_rank && to_shape[j] == 1) {
      j++;
      continue;
    }
    do
      if (here <= there) here *= shape[i++];
      else there *= to_shape[j++];
    while (here != there);
    int64_t by = joined_stride(shape + first, stride + first, i - first, &one);
    for (int d = j - 1; d >= from; d--) to[d] = by, by *= to_shape[d];
  }
  return one;
}

/* Extents of 1 that are repeated have stride 0. */
int nvg_view_strides(int64_t *offset, int64_t *stride, const nvg_val *from, const nvg_val *v) {
  int64_t was[NVM_MAX_RANK];
  memcpy(was, stride, sizeof *was * (size_t)from->rank);
  if (v->kind == NVG_VRESHAPE) return nvg_reshape_strides(stride, v->rank, v->shape, was, from->rank, from->shape);
  for (int d = 0; d < v->rank; d++)
    if (v->kind == NVG_VPERMUTE) stride[d] = was[v->attr[d]];
    else if (v->kind == NVG_VSLICE) {
      *offset += v->attr[2 * d] * was[d];
      stride[d] = was[d] * v->attr[2 * d + 1];
    } else if (from->shape[d] != v->shape[d]) stride[d] = 0;
  return 1;
}

static int is_strided(nvg_vkind k) {
  return k == NVG_VPERMUTE || k == NVG_VSLICE || k == NVG_VEXPAND || k == NVG_VRESHAPE;
}

int nvg_leaf_strides(int64_t *offset, int64_t *stride, const nvg_graph *g, int value, int *space) {
  int n = 0;
  for (; is_strided(g->v[value].kind); value = g->v[value].in[0]) space[n++] = value;
  const nvg_val *from = &g->v[value];
  if (from->kind != NVG_VLEAF) return -1;
  *offset = 0;
  for (int d = 0; d < from->rank; d++) stride[d] = g->leaf[from->leaf].stride[d];
  for (int leaf = from->leaf;; from = &g->v[space[n]]) {
    if (!n--) return leaf;
    if (!nvg_view_strides(offset, stride, from, &g->v[space[n]])) return -1;
  }
}
