/* The analysis of a reduction before code is emitted: the role of each digit of its axis under the reduction order, and
   which loops of the nest are dimensions of the arrays of accumulators. Knows no device and emits nothing. */
#ifndef NVM_CODEGEN_REDUCTION_H
#define NVM_CODEGEN_REDUCTION_H
#include "codegen/loop_nests.h"

typedef struct nvc_reduction {
  const nvf_stmt *s;
  const nvc_nest *nest;
  const nvf_layout *x, *y; /* operand, result */
  nvf_layout acc;          /* layout of the operand without the sequence digits: its items number the accumulators */
  int nstate, nacc, ny;    /* number of states; of register items of acc, of y */
  int64_t extent, c, w;    /* extent of the axis; elements of a chunk, lanes of a chunk, at most the extent */
  /* levels of loops: the outermost over the axis, the outermost over its sequence digits; nloop: none */
  int first, start;
  /* 1: lanes of the reduction order are loops, so the array has all loops as dimensions except those in sequence */
  int spread;
  int64_t chunks; /* number of looped chunks, each with a result to keep; 1: no chunks are looped, or `spread` */
} nvc_reduction;

typedef enum nvc_role { NVC_CHUNK, NVC_SEQUENCE, NVC_LANE, NVC_KEPT } nvc_role; /* KEPT: the digit is of another axis */

nvc_reduction nvc_reduction_of(const nvc_nests *r, const nvf_stmt *s, const nvc_nest *nest);
nvc_role nvc_role_of(const nvc_reduction *r, const nvf_digit *d);
/* Is the loop a dimension of the arrays of accumulators and of chunk results? */
int nvc_is_dimension(const nvc_reduction *r, const nvf_digit *loop);
int64_t nvc_slots(const nvc_reduction *r, int from); /* elements of an array with the loops from that level on */
/* The dimension that has this bit of the index; NULL: none. */
const nvf_digit *nvc_loop_with(const nvc_reduction *r, int64_t bit);
#endif
