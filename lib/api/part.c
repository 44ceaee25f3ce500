/* Parts of arrays: which bytes of a value they are. Never touches elements. */
#include "api/part.h"
#include <string.h>

void nva_part_set(nva_part *p, const nvg_aval *av, int64_t offset, const int64_t *stride) {
  int64_t each = nvg_size(av->dtype);
  p->each = (size_t)each;
  p->rank = av->rank;
  p->size = av->size;
  p->offset = offset * each;
  for (int d = 0; d < av->rank; d++) p->shape[d] = av->shape[d], p->stride[d] = stride[d] * each;
}
int nva_part_of(nva_part *p, const nvm_array *a) {
  int64_t packed[NVM_MAX_RANK];
  const nvg_aval *av = a->node->aval;
  if (a->base && !a->lens->strided) return 0;
  nvg_packed(packed, av->rank, av->shape);
  nva_part_set(p, av, a->base ? a->lens->offset : 0, a->base ? a->lens->stride : packed);
  return 1;
}
int nva_part_in(nva_part *p, const nvm_array *a, const nvg_value *v) {
  if (!v || v->device || v->sum || !v->buffer) return 0;
  if (a->base) return nva_is_plain(v, a->base->node->aval) && nva_part_of(p, a);
  nva_part_set(p, a->node->aval, 0, v->stride);
  return 1;
}
int nva_part_narrow(nva_part *p, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop) {
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
/* How far a part reaches into each axis of the array: the coordinates of its first element, and what they may grow. */
typedef struct reach { int rank; int64_t packed[NVM_MAX_RANK], low[NVM_MAX_RANK], high[NVM_MAX_RANK]; } reach;
static int64_t find_reach(reach *r, const nva_part *p, const nva_part *all) { /* returns the byte within an element */
  int64_t step = (int64_t)all->each, left = p->offset;
  r->rank = all->rank;
  for (int d = all->rank - 1; d >= 0; step *= all->shape[d--]) r->packed[d] = step;
  for (int d = 0; d < all->rank; left %= r->packed[d++]) {
    r->low[d] = left / r->packed[d];
    r->high[d] = all->shape[d] - 1 - r->low[d];
  }
  return left;
}
/* The axis along which n steps of these bytes stay inside the array; -1: there is none. */
static int axis_of(reach *r, int64_t stride, int64_t n) {
  for (int d = 0; d < r->rank; d++) {
    int64_t by = stride / r->packed[d], far = (by < 0 ? -by : by) * n, *room = by < 0 ? &r->low[d] : &r->high[d];
    if (stride % r->packed[d] || !by || far > *room) continue;
    return *room -= far, d;
  }
  return -1;
}
int nva_part_within(nva_part *p, const nva_part *all) {
  reach r;
  int64_t left = find_reach(&r, p, all), offset = all->offset + left, stride[NVM_MAX_RANK];
  int same = 1;
  for (int d = 0; d < all->rank; d++) {
    same &= all->shape[d] == 1 || all->stride[d] == r.packed[d];
    offset += r.low[d] * all->stride[d];
  }
  if (same) return p->offset += all->offset, 1;
  for (int d = 0; d < p->rank; d++) {
    int axis = p->shape[d] > 1 ? axis_of(&r, p->stride[d], p->shape[d] - 1) : -1;
    if (axis < 0 && p->shape[d] > 1) return 0;
    stride[d] = axis < 0 ? 0 : p->stride[d] / r.packed[axis] * all->stride[axis];
  }
  p->offset = offset;
  memcpy(p->stride, stride, sizeof *stride * (size_t)p->rank);
  return 1;
}
int nva_part_is_same(const nva_part *p, const nva_part *q) {
  int same = p->each == q->each && p->rank == q->rank && p->offset == q->offset;
  for (int d = 0; same && d < p->rank; d++)
    same = p->shape[d] == q->shape[d] && (p->shape[d] == 1 || p->stride[d] == q->stride[d]);
  return same;
}
