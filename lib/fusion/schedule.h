/* What the schedules of all devices share. Only schedule*.c includes this header. */
#ifndef NVM_FUSION_SCHEDULE_H
#define NVM_FUSION_SCHEDULE_H
#include "fusion/planner.h"

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t power2(int64_t n) { /* the first that is not less */
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}
static inline int nvf_live(const nvf_fusion *k, int a) { return k->axis.at[a].extent != 0; }
/* Those that bind an axis; of reductions free of order there are none. _of: what is usual then. */
int nvf_red_orders(const nvf_fusion *k, int axis, nvf_red_order *out, int most);
int nvf_red_orders_of(const nvf_fusion *k, const nvf_shape *s, int axis, nvf_red_order *out, int most);
/* The next border of the reduction orders above lo, at most p; seq: what lies between is added up in sequence. */
int64_t nvf_order_border(const nvf_red_order *st, int n, int64_t lo, int64_t p, int *seq);
int nvf_scanned(const nvf_fusion *k, int axis);
/* Phases: one ends where a reduction's result is wanted. when: the phase in which an instance is made. Returns the
   last. */
int nvf_phases(const nvf_fusion *k, int *when);
/* An axis of the grid, longest first, that no tile has yet; -1. */
int nvf_longest_grid(const nvf_fusion *k, const nvf_shape *s);

void nvf_digit_add(nvf_digits *d, char level, int64_t n, int at); /* above the others; nothing if n is 1 */

static inline int nvf_has_lanes(const nvf_shape *s, int axis) {
  return axis == s->lane || (axis >= 0 && (s->lanes >> axis & 1));
}

/* ---- schedule_access.c */
/* Of these axes the one along which most bytes run that are across the lanes', if both are long; -1 if there is none */
int nvf_transposed_axis(const nvf_fusion *k, int lane, uint64_t axes);
int nvf_is_one(const nvf_fusion *k, nvf_ix at, int axis); /* memory runs along the axis at this address */
/* Elements of one access along the axis, at most `low`: a power of two; 0 if memory does not run along it. */
int nvf_vector_of(const nvf_fusion *k, nvf_ix at, int node, int axis, int64_t low);
/* items that the lowest digit of an axis along memory has on a GPU */
int64_t nvf_vector(const nvf_fusion *k, int axis);

/* ---- schedule_gemm.c */
void nvf_set_placement(nvf_shape *s, int axis, const nvf_digits *d);
/* The shape of one operand: the outer axis, the inner one along memory, and how its shared tile lies. */
nvf_shape *nvf_operand_shape(const nvf_fusion *k, const nvf_shape *s, int outer, const nvf_digits *o, int inner,
                             const nvf_digits *i, int put_inner);
int64_t nvf_gemm_tiles(const nvf_fusion *k, const nvf_tiling *t); /* of all the results */
int64_t nvf_split_k_most(const nvf_fusion *k);                    /* blocks that may share out a tile's sums */
/* Of such a tile, once they are added up */
void nvf_place_epilogue(const nvf_fusion *k, nvf_shape *s, const nvf_tiling *t, int64_t warps);
/* ---- schedule_tensor_core.c */
int nvf_tensor_tile(const nvf_fusion *k, nvf_tiling *t);        /* 0: no tensor cores for it */
nvf_shape *nvf_tensor_shape(const nvf_fusion *k, nvf_shape *s); /* s: with those tiles */

nvf_shape *nvf_shape_cpu(nvf_fusion *k);
nvf_shape *nvf_shape_gpu(nvf_fusion *k);
#endif
