/* What the two files that build a fusion share. Only iexpr.c and fusion.c include this header. */
#ifndef NVM_FUSION_IEXPR_H
#define NVM_FUSION_IEXPR_H
#include <setjmp.h>
#include "fusion/planner.h"

typedef struct nvf_memo { int node, guard, expr; const nvf_ix *at; } nvf_memo;
/* Two adjacent dimensions of the first root, dim and the next, that become one axis; a, b: their extents. */
typedef struct nvf_merge { nvf_prod a, b; int dim; } nvf_merge;
/* The axes of the first root: its dimensions, some of them merged, or (rank > 0) those of another shape with as many
   elements, in which a reduction has one axis. apart: reductions of small values to one element get axes of their own,
   so that each block can repeat them; along an axis of the root they would remove it from the grid. parts: a concat of
   values of one shape is stored operand by operand, over the axes of one of them, so that common values are computed
   once. */
typedef struct nvf_form { nvf_merge merged[16]; int nmerge; int rank; nvf_prod dim[NVM_MAX_RANK + 1];
  int apart, parts;
} nvf_form;
typedef struct nvf_builder {
  nvf_fusion *k;
  nvf_graph *graph;
  nvf_space *s;
  nvb_arena *a;
  const uint64_t *stored;           /* bit set of materialised nodes */
  nvb_map *known, *guards;          /* (node, guard, coordinates) -> expression; conditions -> guard */
  NVB_VEC(nvf_memo) memo;           /* every expression with its node and coordinates */
  NVB_VEC(int) red;                 /* expressions that are reductions */
  int nfold;                        /* number of reductions and scans, including those being built */
  int *met, now;                    /* by node: `now` if it has an expression */
  int again;                        /* further expressions of nodes that have one already */
  int depth;                        /* recursion depth */
  nvf_form *form;                   /* the form of this trial */
  nvf_form ask;                     /* another form that may be cheaper, if its rank, apart or parts is not 0 */
  int ndim, dims[NVM_MAX_RANK + 1]; /* dimensions of the first root whose extent is not 1 */
  const nvf_prod *root_dim;         /* extents and coordinates of the first root */
  const nvf_node *gemm;             /* the first GEMM, and its coordinates */
  const nvf_ix *gemm_at;
  const nvf_ix *root_at;
  jmp_buf out;     /* where nvf_illegal and a request to merge axes jump to, with ILLEGAL or MERGE */
  const char *why; /* why the fusion is illegal */
} nvf_builder;
enum { ILLEGAL = 1, MERGE = 2 };
/* Limits of a kernel beside nvf_most_code: further expressions of the same nodes, recursion depth; of an
   expression: conditions of its guard, terms of an index. They also bound what a fusion that comes to nothing costs
   the search. */
enum { MOST_AGAIN = 256, MOST_DEPTH = 1024, MOST_CONDITIONS = 64, MOST_TERMS = 64 };

static inline const nvf_node *nvf_node_of(const nvf_builder *b, int i) { return &b->graph->node[i]; }
static inline nvf_ix *nvf_coords(nvf_builder *b, int n) { return NVB_NEWN(b->a, nvf_ix, n + 1); }
_Noreturn void nvf_illegal(nvf_builder *b, const char *why);
int nvf_axis_new(nvf_builder *b, nvf_prod extent);
nvf_ix nvf_axis_ix(nvf_builder *b, int axis);
int nvf_guard_of(nvf_builder *b, int n, const nvf_bound *c);
/* Adds a condition of the whole kernel: outside 0 <= e < n lies the padding of a split. */
void nvf_bound_kernel(nvf_builder *b, nvf_ix e, nvf_prod n);
/* The expression of a node at these coordinates under a guard; `force`: a stored root is computed, not loaded. */
int nvf_iexpr_at(nvf_builder *b, int node, const nvf_ix *at, int guard, int force);
/* The coordinates `at` of n in the shape of x, which has as many elements: dimensions are matched in the shortest runs
   with equal products. */
const nvf_ix *nvf_reshaped(nvf_builder *b, const nvf_node *n, const nvf_ix *at, const nvf_node *x);
#endif
