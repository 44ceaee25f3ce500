/* What an emitter knows of a reduction before it writes it: the part that each digit of its axis plays under the
   reduction order, and which of the nest's loops arrays of accumulators have as dimensions. Knows no device. */
#ifndef NVM_CODEGEN_REDUCTION_H
#define NVM_CODEGEN_REDUCTION_H
#include "codegen/loop_nests.h"

typedef struct nvc_reduction {
  const nvf_stmt *s;
  const nvc_nest *nest;
  const nvf_layout *x, *y; /* operand, result */
  nvf_layout acc;          /* operand without the sequence digits: items of it number the accumulators */
  int nstate, nacc, ny;    /* states; register items of acc, of y */
  int64_t extent, c, w;    /* the reduction order, cut to the extent */
  int first, start;        /* levels: of the axis' outermost loop, of its outermost one in sequence; nloop: none */
  int spread;              /* lanes of the reduction order are loops: the array has all loops but those in sequence */
  int64_t chunks;          /* that are looped, each with a result to be kept; 1: none are, or spread */
} nvc_reduction;

typedef enum nvc_role { NVC_CHUNK, NVC_SEQUENCE, NVC_LANE, NVC_KEPT } nvc_role; /* KEPT: of another axis */

nvc_reduction nvc_reduction_of(const nvc_nests *r, const nvf_stmt *s, const nvc_nest *nest);
nvc_role nvc_role_of(const nvc_reduction *r, const nvf_digit *d);
int nvc_is_dimension(const nvc_reduction *r, const nvf_digit *loop); /* of arrays of accumulators and chunk results */
int64_t nvc_slots(const nvc_reduction *r, int from);                 /* of an array with the loops from that level on */
const nvf_digit *nvc_loop_with(const nvc_reduction *r, int64_t bit); /* the dimension with that bit of the index */
#endif
