/* Writes that a trace makes to parts of arrays: what was written where. Bodies of loops and traced functions store
   these elements in place, where they can, instead of computing the array anew. */
#ifndef NVM_API_PUT_H
#define NVM_API_PUT_H
#include "api/part.h"

enum { NVA_INDICES = 4 }; /* the most indices of a write that is noted */
                          /* Integers along one axis of a part. */
typedef struct nva_put_index { nvg_node *at; int axis, message_axis; } nva_put_index;
/* `whole` is `base` with `value` stored in the part `to` of it or, with n indices, in the elements of the part that
   they select, `before` of whose dimensions come before those of the indices. value: in the dtype of the part, to be
   broadcast; at: of int64. leading: the part is all of base, and the indices are numbers along its first axes; value
   then has the shape of what is written. */
typedef struct nva_put {
  nvg_node *whole, *base, *value;
  nva_part to;
  int n, before, leading;
  nva_put_index at[NVA_INDICES];
} nva_put;

/* ---- trace.c */
int nva_trace_add_put(const nva_put *p);         /* takes references; a status */
const nva_put *nva_trace_put(const nvg_node *n); /* the put that made this node; NULL: none did */

/* ---- put.c */
/* Builds a write through indices that are numbers and arrays of integers. *done 0: they are others. A status. */
int nva_put_nodes(int *done, nvm_array *a, int n, const nvm_index *at, int before, nvm_array *value);
/* Notes that `whole`, which the base of a is to stand for, has `value` stored in all of a. A status. */
int nva_put_note(nvm_array *a, nvg_node *whole, nvg_node *value);
#endif
