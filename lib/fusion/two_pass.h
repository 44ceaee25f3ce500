/* The interface between planner_graph.c, which builds the planner graph, and two_pass.c, which splits its reductions
   and scans. Only these two files include this header. */
#ifndef NVM_FUSION_TWO_PASS_H
#define NVM_FUSION_TWO_PASS_H
#include "fusion/planner.h"

typedef struct nvf_graph_builder {
  nvf_graph *graph;
  nvb_arena *a;
  int split;
  int *node;         /* by value of the graph: its node; -1 for a reduction with several results */
  int **state;       /* by value: the nodes of a reduction's results */
  int64_t *largest;  /* by value: elements of the largest leaf that it depends on */
  uint8_t *spectral; /* by value: elements of a Fourier transform on a CPU, or functions of them */
  nvb_map *parts;    /* (length, block) -> the symbol of the number of partials */
  NVB_VEC(nvf_node) made;
} nvf_graph_builder;

/* A reduction of a GEMM's rows or columns: the GEMM (a value), the reduced axis, and elements of a tile along it; tile
   0: it is not one, and why. */
typedef struct nvf_along { int dot, axis; int64_t tile; const char *why; } nvf_along;

nvf_graph_builder *nvf_graph_builder_new(nvf_graph *graph, int split);
int nvf_graph_add(nvf_graph_builder *w, nvf_node n);   /* adds a node and returns its number */
int64_t nvf_count(const nvg_val *v, int from, int to); /* product of the extents in [from, to) */
/* Adds a scan and returns its node. On a GPU many blocks scan a few long lines in segments: one node has the totals of
   the order's blocks, one scans these totals one after the other, and the last scans the segments from there. */
int nvf_add_scan(nvf_graph_builder *w, const nvg_val *v, nvf_node n);
/* Adds the nodes of a reduction and records them in node and state. whole: it is not split into partials; side: another
   reduction of the same source runs over other axes, so partials follow its rows; along: see nvf_along. */
void nvf_add_reduction(nvf_graph_builder *w, const nvg_val *v, nvf_node n, int whole, int side, const nvf_along *along);
#endif
