/* What is known of matrices by the expressions that make them. Private to lib/graph. */
#ifndef NVM_GRAPH_STRUCTURE_H
#define NVM_GRAPH_STRUCTURE_H
#include "graph/lower.h"

int nvg_is_hermitian(const nvg_lower *l, int v); /* equal to its conjugate transpose, in exact arithmetic */
int nvg_is_inverse(const nvg_lower *l, int v);   /* a routine that inverts */
#endif
