/* Inside of nvg_simplify: adding values of the planner's language. Each call returns the number of a value that has
   what was asked for; equal values are one, views of views are one view, constants are folded. All of it throws. */
#ifndef NVM_GRAPH_LOWER_H
#define NVM_GRAPH_LOWER_H
#include "graph/make.h"

typedef struct nvg_lower {
  nvg_make make;
  const nvg_graph *g;     /* what is simplified */
  int *rep;               /* by value of g: its counterpart. 16-bit values have one of that dtype if they are rounded
                           there, else one of float32 */
  const uint8_t *half;    /* by value of g: nvg_val.half */
  const uint8_t *clipped; /* by value of g: its relu is wanted too */
  int now_half;           /* that of the value in hand */
  int op;                 /* of the value in hand, and how the user called it */
  const char *name;
} nvg_lower;

static inline const nvg_val *nvg_at(const nvg_lower *l, int v) { return &l->make.v.at[v]; }

/* ---- lower.c */
int nvg_add(nvg_lower *l, const nvg_val *v);
int nvg_add_const(nvg_lower *l, nvm_dtype t, uint64_t re, uint64_t im);
/* float dtypes from x, others from its integer part */
int nvg_add_number(nvg_lower *l, nvm_dtype t, double x);
int nvg_add_full(nvg_lower *l, int scalar, int rank, const int64_t *shape); /* a value of one element, everywhere */
int nvg_add_iota(nvg_lower *l, int rank, const int64_t *shape, int axis);
int nvg_add_map(nvg_lower *l, const nvg_frag *f, nvm_dtype t, const int *in, int nin, int rank, const int64_t *shape);
/* library fragment */
int nvg_add_named(nvg_lower *l, const char *frag, nvm_dtype t, const int *in, int nin, const nvg_val *like);
int nvg_add_cast(nvg_lower *l, int v, nvm_dtype to);
int nvg_wide(nvg_lower *l, int v); /* 16 bits as float32, others as they are */
int nvg_add_reshape(nvg_lower *l, int v, int rank, const int64_t *shape);
int nvg_add_permute(nvg_lower *l, int v, const int64_t *axes);
int nvg_add_slice(nvg_lower *l, int v, const int64_t *attr, const int64_t *shape);
int nvg_add_expand(nvg_lower *l, int v, int rank, const int64_t *shape);
int nvg_add_roll(nvg_lower *l, int v, int axis, int64_t by);
/* The constant that v has everywhere: 1 and its bits, or 0. */
int nvg_const_of(const nvg_lower *l, int v, uint64_t *re, uint64_t *im);
/* is it that constant, bit for bit, in its dtype */
int nvg_is_number(const nvg_lower *l, int v, double x);

/* g once more, each of its values as `one` makes it, whose operands are those of the new graph already. */
typedef int nvg_making(nvg_lower *l, int value, const nvg_val *v, int *in, const uint8_t *how); /* in: v->in */
nvg_graph *nvg_made_anew(nvb_arena *a, const nvg_graph *g, nvg_making *one, const uint8_t *how);

/* ---- window.c */
/* A value that has what this one has in a window, which attr then tells of that value; it may be one number for all. */
int nvg_seen_through(const nvg_lower *l, int v, int64_t *attr, const int64_t *shape);
int nvg_unless(const nvg_lower *l, int c, int x); /* what x has where the condition c does not hold */
int nvg_last_writes(nvg_lower *l, int v);         /* v without writes to what was written again later */

/* ---- reduce.c */
int nvg_lower_reduction(nvg_lower *l, const nvg_val *v);
int nvg_lower_merge(nvg_lower *l, const nvg_val *v); /* LSE; -1: nothing to merge */
int nvg_lower_scan(nvg_lower *l, const nvg_val *v);

/* ---- algebra.c: value-exact rewrites of one elementwise operation on these operands; -1 if none applies */
int nvg_rewrite(nvg_lower *l, const nvg_val *v, const int *in);
#endif
