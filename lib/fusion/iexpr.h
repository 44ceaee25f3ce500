/* What the two files that build a fusion candidate share. Only iexpr.c and candidate.c include this header. */
#ifndef NVM_FUSION_IEXPR_H
#define NVM_FUSION_IEXPR_H
#include <setjmp.h>
#include "fusion/planner.h"

typedef struct nvf_memo { int node, guard, expr; const nvf_ix *at; } nvf_memo;
/* two adjacent dimensions of the first root that are one axis */
typedef struct nvf_merge { nvf_prod a, b; int dim; } nvf_merge;
/* What the axes of the first root are, found by building: its dimensions, some merged; or those of another shape of as
   many elements, in which a reduction is one axis. apart: small sums of all of a value have axes of their own, so that
   each block can repeat them; along an axis of the root they would take it from the grid. parts: what joins values of
   one shape is stored one by one of them, over their axes, so that what they share is computed once. */
typedef struct nvf_form { nvf_merge merged[16]; int nmerge; int rank; nvf_prod dim[NVM_MAX_RANK + 1];
  int apart, parts;
} nvf_form;
typedef struct nvf_builder {
  nvf_fusion *k;
  nvf_graph *graph;
  nvf_space *s;
  nvb_arena *a;
  const uint64_t *stored;
  nvb_map *known, *guards;
  NVB_VEC(nvf_memo) memo;
  NVB_VEC(int) red; /* instances of reductions */
  int nfold;        /* reductions and scans, those being built too */
  uint64_t *met;    /* nodes that are an instance somewhere */
  int again;        /* instances of such, elsewhere */
  int depth;        /* of the instance being built */
  nvf_form *form;
  nvf_form ask;                     /* another form that may be cheaper: its rank, apart or parts is not 0 */
  int ndim, dims[NVM_MAX_RANK + 1]; /* of the first root: dimensions that are not 1 */
  const nvf_prod *root_dim;
  const nvf_node *gemm; /* the first, and its coordinates */
  const nvf_ix *gemm_at;
  const nvf_ix *root_at;
  jmp_buf out;
  const char *why;
} nvf_builder;
enum { ILLEGAL = 1, MERGE = 2 };
/* Of one kernel: instances, those of values that are computed elsewhere too, and how deep they lie; conditions of one
   instance; terms of a coordinate. */
enum { MOST_INSTANCES = 4096, MOST_AGAIN = 1024, MOST_DEPTH = 1024, MOST_CONDITIONS = 64, MOST_TERMS = 64 };

static inline const nvf_node *nvf_node_of(const nvf_builder *b, int i) { return &b->graph->node[i]; }
static inline nvf_ix *nvf_coords(nvf_builder *b, int n) { return NVB_NEWN(b->a, nvf_ix, n + 1); }
_Noreturn void nvf_illegal(nvf_builder *b, const char *why);
int nvf_axis_new(nvf_builder *b, nvf_prod extent);
nvf_ix nvf_axis_ix(nvf_builder *b, int axis);
int nvf_guard_of(nvf_builder *b, int n, const nvf_bound *c);
/* The padding of a split belongs to the kernel, not to one operand: it is where 0 <= e < n fails. */
void nvf_bound_kernel(nvf_builder *b, nvf_ix e, nvf_prod n);
/* The instance of a value at coordinates; `force` makes a stored root computed rather than loaded. */
int nvf_iexpr_at(nvf_builder *b, int node, const nvf_ix *at, int guard, int force);
/* Coordinates of n in the shape of x, of as many elements: the shortest runs with equal products. */
const nvf_ix *nvf_reshaped(nvf_builder *b, const nvf_node *n, const nvf_ix *at, const nvf_node *x);
#endif
