/* Attention in the planner's language: a GEMM (NVG_VCALL) with a third attribute, NVG_ATTENTION. Its left operand are
   scores in float32, and the softmax of each of their rows is multiplied with the right operand, floats of 16 or 32
   bits. Only attention.c makes it, for planners whose kernels compute it. */
#ifndef NVM_GRAPH_ATTENTION_H
#define NVM_GRAPH_ATTENTION_H
#include "graph/graph.h"

enum { NVG_ATTENTION = 1, NVG_ATTENTION_ATTRS = 3 };
static inline int nvg_is_attention(const nvg_val *v) { return v->kind == NVG_VCALL && v->nattr == NVG_ATTENTION_ATTRS; }

/* Most elements of the vectors that are multiplied; singles: operands may be f32, not of 16 bits alone. */
typedef struct nvg_attention_limits { int64_t head; int singles; } nvg_attention_limits;
/* Returns the graph in which the softmax of scores times values is one call, where the scores are functions of a
   product and what lies between the two products has no other reader; g itself if there is none. Throws. */
const nvg_graph *nvg_with_attention(nvb_arena *a, const nvg_graph *g, nvg_attention_limits most);
#endif
