/* Loops and draws of a function over a batch (vmap.c): makes of each loop one whose carries have the batch in front,
   and of each draw one for all elements. Private to these files. */
#ifndef NVM_API_MAPPING_H
#define NVM_API_MAPPING_H
#include "api/loop.h"
#include "graph/batch.h"

/* What nodes of the function stand for, in the trace that is open now. */
typedef struct nva_mapping {
  nvm_ctx *ctx;
  int64_t size;     /* of the batch */
  nvg_stand *stand; /* placeholders and what they stand for, both counted */
  int n, cap;
  nvg_node *mask; /* counted: for each element whether it is computed; NULL: all are */
} nva_mapping;
/* Adds a placeholder of the function; references are taken. A status. */
int nva_mapping_add(nva_mapping *m, const nvg_node *placeholder, nvg_node *by, int batched);
void nva_mapping_end(nva_mapping *m); /* drops what it holds */
/* Writes new references: of[i] for all elements, with the batch in front where batched[i] is set. A status. */
int nva_map_nodes(nvg_node **out, uint8_t *batched, nvg_node *const *of, int n, const nva_mapping *m);
/* Makes a loop of the function, or a draw, for all elements, and adds its results. Outside of a trace a loop runs. A
   status. */
int nva_map_loop(nva_mapping *m, const nva_loop *l);
int nva_map_draw(nva_mapping *m, const nva_mapped_draw *d);

/* n with its dimension `from` moved to `to`, or n with the batch in front unless it is batched. Both take n; NULL
   passes through. */
nvg_node *nva_move_axis(nvm_ctx *ctx, nvg_node *n, int from, int to);
nvg_node *nva_spread(const nva_mapping *m, nvg_node *n, int batched);
#endif
