/* What the schedules of all devices share. Only schedule*.c includes this header. */
#ifndef NVM_FUSION_SCHEDULE_H
#define NVM_FUSION_SCHEDULE_H
#include "fusion/planner.h"

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t power2(int64_t n) { /* the least power of two that is not less than n */
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}
static inline int nvf_live(const nvf_fusion *k, int a) { return k->axis.at[a].extent != 0; }
/* The reduction orders that bind an axis; reductions in any order have none. _of: the default order in that case. */
int nvf_red_orders(const nvf_fusion *k, int axis, nvf_red_order *out, int most);
int nvf_red_orders_of(const nvf_fusion *k, const nvf_tiling *s, int axis, nvf_red_order *out, int most);
/* The next border of the reduction orders above lo, at most p; seq: the elements up to it are added in sequence. */
int64_t nvf_order_border(const nvf_red_order *st, int n, int64_t lo, int64_t p, int *seq);
int nvf_scanned(const nvf_fusion *k, int axis);
/* Phases of a kernel: a new phase begins where the result of a reduction is used. when: by expression, the phase that
   computes it. Returns the last phase. */
int nvf_phases(const nvf_fusion *k, int *when);
/* The longest grid axis that has no tile yet; -1: none. */
int nvf_longest_grid(const nvf_fusion *k, const nvf_tiling *s);

void nvf_digit_add(nvf_digits *d, char level, int64_t n, int at); /* adds a digit above the others, unless n is 1 */

static inline int nvf_has_lanes(const nvf_tiling *s, int axis) {
  return axis == s->lane || (axis >= 0 && (s->lanes >> axis & 1));
}

/* ---- schedule_access.c */
/* Of these axes the one along which most bytes of transposed accesses are contiguous, if it and the lane axis are long;
   -1: none. */
int nvf_transposed_axis(const nvf_fusion *k, int lane, uint64_t axes);
int nvf_is_one(const nvf_fusion *k, nvf_ix at, int axis); /* the address is contiguous along the axis */
/* Elements of one vector access along the axis, a power of two up to `low`; 0: the address is not contiguous along
   it. */
int nvf_vector_of(const nvf_fusion *k, nvf_ix at, int node, int axis, int64_t low);
/* the most neighbours along the axis that share the counter of a draw (nvg_frag_shared); 1: none do */
int nvf_drawn_together(const nvf_fusion *k, int axis);
/* items of the lowest digit of a contiguous axis on a GPU */
int64_t nvf_vector(const nvf_fusion *k, int axis);

/* ---- schedule_gemm.c */
void nvf_set_placement(nvf_tiling *s, int axis, const nvf_digits *d);
/* The shape of an operand's prologue: digits of its outer axis and of its contiguous inner axis; put_inner is the
   fastest axis of its shared tile. */
nvf_tiling *nvf_operand_tiling(const nvf_fusion *k, const nvf_tiling *s, int outer, const nvf_digits *o, int inner,
                               const nvf_digits *i, int put_inner);
int64_t nvf_gemm_tiles(const nvf_fusion *k, const nvf_gemm_tiling *t); /* tiles of all results of a GEMM */
int64_t nvf_split_k_most(const nvf_fusion *k); /* most blocks of a cluster for split-K; 1: none */
/* The digits of the epilogue after split-K has added up the sums. */
void nvf_place_epilogue(const nvf_fusion *k, nvf_tiling *s, const nvf_gemm_tiling *t, int64_t warps);
/* ---- schedule_tensor_core.c */
int nvf_tensor_tile(const nvf_fusion *k, nvf_gemm_tiling *t);      /* returns 0 if tensor cores cannot multiply it */
nvf_tiling *nvf_tensor_tiling(const nvf_fusion *k, nvf_tiling *s); /* s with the layouts of these tiles */

nvf_tiling *nvf_tiling_cpu(nvf_fusion *k);
nvf_tiling *nvf_tiling_gpu(nvf_fusion *k);
#endif
