/* Builds an evaluation graph: values are added in topological order, and equal ones are merged. Nothing outside
   lib/graph includes this file. */
#ifndef NVM_GRAPH_MAKE_H
#define NVM_GRAPH_MAKE_H
#include "graph/graph.h"

typedef struct nvg_make {
  nvb_arena *arena;
  nvb_map *seen;
  NVB_VEC(nvg_val) v;
} nvg_make;

void nvg_make_init(nvg_make *m, nvb_arena *a);
/* Adds v and returns its number; its arrays are copied unless an equal value exists. */
int nvg_make_add(nvg_make *m, const nvg_val *v);
/* Returns the graph of `out` without dead values, renumbered; leaf slots are those of `leaves`. */
nvg_graph *nvg_make_done(nvg_make *m, const nvg_graph *leaves, const int *out, int nout);
int64_t nvg_size_of(int rank, const int64_t *shape);
#endif
