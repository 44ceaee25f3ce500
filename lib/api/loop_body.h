/* How the outputs of a body become the carries of its loop. Private to loop.c and loop_body.c. */
#ifndef NVM_API_LOOP_BODY_H
#define NVM_API_LOOP_BODY_H
#include "api/loop.h"

typedef struct nva_body {
  nva_loop *loop;
  nvg_node *const *param; /* the parameters of the body */
  nvg_node **out;         /* its outputs, borrowed; the caller frees the list */
  int nout;
} nva_body;
/* Lists the outputs that the body has to compute for its carries and ys, `outs`, and notes in the loop what becomes of
   them. Call it in the trace of the body. A status. */
int nva_body_arrange(nva_body *b, nvg_node *const *outs, int nout);
#endif
