/* The interface between planner_graph.c, which builds the planner graph, and two_pass.c, which splits its reductions
   and scans. Only these two files include this header. */
#ifndef NVM_FUSION_TWO_PASS_H
#define NVM_FUSION_TWO_PASS_H
#include "fusion/planner.h"

typedef struct nvf_graph_builder {
  nvf_graph *graph;
  nvb_arena *a;
  int split;
  int *node;        /* of each graph value; of a reduction with several results: -1 */
  int **state;      /* of each reduction: the nodes of its results */
  int64_t *largest; /* of each graph value: elements of the largest leaf below it */
  nvb_map *parts;   /* (length, block) -> product: how many pieces there are */
  NVB_VEC(nvf_node) made;
} nvf_graph_builder;

/* A reduction in the order of a product's elements: the product, a value, its axis, and elements of a piece; tile 0: it
   is none, and why. */
typedef struct nvf_along { int dot, axis; int64_t tile; const char *why; } nvf_along;

nvf_graph_builder *nvf_graph_builder_new(nvf_graph *graph, int split);
int nvf_graph_add(nvf_graph_builder *w, nvf_node n);   /* adds a node; its number */
int64_t nvf_count(const nvg_val *v, int from, int to); /* product of extents */
/* The node of a scan; on a GPU a few long lines are scanned in segments by many blocks: the totals of the order's
   blocks, what lies left of each of these, element after element, then the values. */
int nvf_add_scan(nvf_graph_builder *w, const nvg_val *v, nvf_node n);
/* Adds what a reduction becomes and notes node and states. whole: it is not cut into partials; side: another reduction
   of the same source goes along other axes, so pieces follow its rows; along: a product's tiles, where it has any. */
void nvf_add_reduction(nvf_graph_builder *w, const nvg_val *v, nvf_node n, int whole, int side, const nvf_along *along);
#endif
