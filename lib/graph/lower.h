/* Internal interface of nvg_simplify: adds values of the planner's language. Each call returns the number of an
   equivalent value: equal values are merged, views of views compose, constants fold. All functions may throw. */
#ifndef NVM_GRAPH_LOWER_H
#define NVM_GRAPH_LOWER_H
#include "graph/make.h"

typedef struct nvg_lower {
  nvg_make make;
  const nvg_graph *g; /* the graph that is simplified */
  /* by value of g: the new value. A 16-bit value has one of that dtype if it is rounded there, else one of float32 */
  int *rep;
  const uint8_t *narrowed; /* by value of g: nvg_val.narrowed */
  const uint8_t *clipped;  /* by value of g: 1 if its relu is wanted too */
  const int *windows;      /* nvg_windows_of(g) */
  nvb_map *whole;          /* written values of which some window shows more than one part; NULL: none */
  int now_narrowed;        /* nvg_val.narrowed of the current value */
  int op;                  /* op of the current value, and its name as the user wrote it */
  const char *name;
} nvg_lower;

static inline const nvg_val *nvg_at(const nvg_lower *l, int v) { return &l->make.v.at[v]; }

/* ---- lower.c */
int nvg_add(nvg_lower *l, const nvg_val *v);
int nvg_add_const(nvg_lower *l, nvm_dtype t, uint64_t re, uint64_t im);
/* a constant of dtype t: from x for float dtypes, else from its integer part */
int nvg_add_number(nvg_lower *l, nvm_dtype t, double x);
int nvg_add_full(nvg_lower *l, int scalar, int rank, const int64_t *shape); /* broadcasts a value of one element */
int nvg_add_iota(nvg_lower *l, int rank, const int64_t *shape, int axis);
int nvg_add_map(nvg_lower *l, const nvg_frag *f, nvm_dtype t, const int *in, int nin, int rank, const int64_t *shape);
/* applies a fragment of the library, by name */
int nvg_add_named(nvg_lower *l, const char *frag, nvm_dtype t, const int *in, int nin, const nvg_val *like);
int nvg_add_cast(nvg_lower *l, int v, nvm_dtype to);
int nvg_wide(nvg_lower *l, int v); /* converts floats of 16 bits and less to float32 */
int nvg_add_reshape(nvg_lower *l, int v, int rank, const int64_t *shape);
int nvg_add_permute(nvg_lower *l, int v, const int64_t *axes);
int nvg_add_slice(nvg_lower *l, int v, const int64_t *attr, const int64_t *shape);
int nvg_add_expand(nvg_lower *l, int v, int rank, const int64_t *shape);
int nvg_add_roll(nvg_lower *l, int v, int axis, int64_t by);
int nvg_add_copy(nvg_lower *l, int v); /* elements of its own in memory, packed */
/* Returns 1 and the bits if v is one constant everywhere, else 0. */
int nvg_const_of(const nvg_lower *l, int v, uint64_t *re, uint64_t *im);
/* 1 if v is that constant everywhere, bit for bit in its dtype */
int nvg_is_number(const nvg_lower *l, int v, double x);

/* Rebuilds g: calls `one` for each value, whose operands `in` are already those of the new graph, and with `how`. */
typedef int nvg_making(nvg_lower *l, int value, const nvg_val *v, int *in, const void *how); /* in is v->in */
nvg_graph *nvg_made_anew(nvb_arena *a, const nvg_graph *g, nvg_making *one, const void *how);

/* ---- window.c */
/* Returns a value with the same elements in a window (a slice), whose attr is rewritten for that value; it may be a 0-d
   value that is the same everywhere. */
int nvg_seen_through(const nvg_lower *l, int v, int64_t *attr, const int64_t *shape);
/* By value of g: its first window (a slice of it), and n places further, by window, the next one of that value; 0:
   none. */
const int *nvg_windows_of(nvb_arena *a, const nvg_graph *g);
void nvg_note_windows(nvg_lower *l, int i); /* value i of g was lowered: enters it into l->whole if it belongs there */
/* The select of in[1] where in[0] holds, else in[2], as a pad: -1 if the condition does not hold in a box alone. */
int nvg_add_write(nvg_lower *l, const int *in);
int nvg_unless(const nvg_lower *l, int c, int x); /* an operand that equals x where condition c does not hold */
int nvg_last_writes(nvg_lower *l, int v);         /* v without the writes that later writes overwrite */

/* ---- reduce.c */
int nvg_lower_reduction(nvg_lower *l, const nvg_val *v);
int nvg_lower_merge(nvg_lower *l, const nvg_val *v); /* merges states of logsumexp; -1: nothing to merge */
int nvg_lower_scan(nvg_lower *l, const nvg_val *v);

/* ---- algebra.c: value-exact rewrites of one elementwise operation; -1 if none applies */
int nvg_rewrite(nvg_lower *l, const nvg_val *v, const int *in);
#endif
