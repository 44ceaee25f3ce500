/* Maps a graph over a batch: what it computes of one element becomes what it computes of all of them at once. */
#ifndef NVM_GRAPH_BATCH_H
#define NVM_GRAPH_BATCH_H
#include "graph/graph.h"

/* A placeholder and what stands for it: for `batched` an array with one more dimension, the batch, in front; else an
   array of its own shape. */
typedef struct nvg_stand { const nvg_node *placeholder; nvg_node *by; int batched; } nvg_stand;
typedef struct nvg_batch {
  const nvg_stand *stand;
  int nstand;
  int64_t size; /* of the batch */
  nvm_dtype default_float;
  /* NULL, or bools, one for each element: where it is false, the values are not used, and positions out of range are no
     errors */
  nvg_node *mask;
} nvg_batch;
/* Computes the n nodes `of` for each element of the batch. Writes new references to `out`, with the batch in front
   where is_batched[i] is set to 1; where it is 0, the node does not depend on the batch. Nothing is evaluated. Returns
   a status; a failure leaves nothing in out. */
int nvg_batch_nodes(nvg_node **out, uint8_t *is_batched, nvg_node *const *of, int n, const nvg_batch *b);
#endif
