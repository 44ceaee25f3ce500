/* Internal interface of builders: one call of an operation, and what its builder may read and make. Nothing outside
   lib/graph includes this file. A builder works with borrowed nodes: the call owns what the helpers make and releases
   it at its end. Every helper passes NULL operands through, so a builder checks only what it reads. */
#ifndef NVM_GRAPH_INFER_H
#define NVM_GRAPH_INFER_H
#include "graph/graph.h"

typedef struct nvg_call {
  nvg_op op;
  nvg_node *const *in;
  int nin;
  const nvg_attr *attr;
  int nattr;
  uint64_t used; /* bits of the attributes that the builder has read */
  nvm_dtype default_float;
  nvg_node **own; /* nodes that this call owns */
  int nown, cap;
  nvg_node *inl[24];
} nvg_call;

/* Declares a builder for every row that is not MAP, RED, SCAN, CALL, LEAF or NODE. Its result is borrowed (the call's
   or an operand). */
#define NVG_MAKE_MAP(id)
#define NVG_MAKE_RED(id)
#define NVG_MAKE_SCAN(id)
#define NVG_MAKE_LEAF(id)
#define NVG_MAKE_NODE(id)
#define NVG_MAKE_CALL(id)
#define NVG_MAKE_VIEW(id) nvg_node *nvg_make_##id(nvg_call *c);
#define NVG_MAKE_SEL(id) NVG_MAKE_VIEW(id)
#define NVG_MAKE_GATHER(id) NVG_MAKE_VIEW(id)
#define NVG_MAKE_GEN(id) NVG_MAKE_VIEW(id)
#define NVG_MAKE_FUN(id) NVG_MAKE_VIEW(id)
#define OP(kind, id, c, name, nin, rule, def, sig, doc) NVG_MAKE_##kind(id)
#include "graph/ops.def"
#undef OP
nvg_node *nvg_make_reduction(nvg_call *c);
nvg_node *nvg_make_scan(nvg_call *c);

/* ---- nodes (node.c). The node takes the reference to the aval (which is dropped on failure). */
nvg_node *nvg_node_new(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr);
/* As nvg_node_new, but the node takes the operands' references too. */
nvg_node *nvg_node_take(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr);
/* gives an owned node to the call and returns it; NULL passes through */
nvg_node *nvg_keep(nvg_call *c, nvg_node *owned);
void nvg_call_end(nvg_call *c);                                                /* releases the call's nodes */
nvg_node *nvg_leaf_with(const nvg_aval *aval, const int64_t *attr, int nattr); /* a placeholder */
nvg_node *nvg_const_bits(nvm_dtype t, uint64_t re, uint64_t im);

/* ---- weak scalars (weak.c) */
int nvg_weak_class(const nvg_node *n); /* nvg_class of a scalar, or of an array's dtype */
/* Compares an integer with the range of an integer dtype t: -1 below, 1 above, 0 inside. */
int nvg_weak_side(nvg_node *w, nvm_dtype t);
int nvg_weak_negative(nvg_node *w);
/* Converts a weak constant to the bits of t: real and imaginary part. A status. */
int nvg_weak_bits(uint64_t bits[2], const char *who, nvg_node *weak, nvm_dtype t);
nvg_node *nvg_const_as(const char *who, nvg_node *weak, nvm_dtype t); /* a weak constant converted to a dtype; owned */

/* Checks that an op can be called with these operands (apply.c). Returns a status. */
int nvg_check_operands(nvg_op op, nvg_node *const *in, int nin);

/* ---- attributes (apply.c). On failure the message starts with the op's name. */
const nvg_attr *nvg_attr_get(nvg_call *c, const char *name);                /* NULL if absent or None */
int nvg_attr_none(const nvg_call *c, const char *name);                     /* 1 if it was given as None */
int nvg_attr_int(nvg_call *c, const char *name, int64_t def, int64_t *out); /* returns a status, as below */
int nvg_attr_float(nvg_call *c, const char *name, double def, double *out);
int nvg_attr_dtype(nvg_call *c, const char *name, int def, int *out);
/* one int counts as a list; *n < 0 if absent */
int nvg_attr_ints(nvg_call *c, const char *name, int max, int64_t *out, int *n);
/* Reads a text without blanks; `out` has `max` bytes, including the terminating 0. */
int nvg_attr_text(nvg_call *c, const char *name, int max, char *out);
/* Resolves an axis, negative ones from the end. A status. */
int nvg_axis(nvg_call *c, int64_t axis, int rank, int *d);
/* Reads axes as a mask over `rank` dimensions; absent: all. A status. */
int nvg_attr_axes(nvg_call *c, const char *name, int rank, uint32_t *mask);
int nvg_attr_axis(nvg_call *c, const char *name, int rank, int64_t def, int *axis); /* exactly one */
/* Reads start, count, step (absent: 1) of each dimension and checks that they are inside. A status. */
int nvg_window(nvg_call *c, const nvg_aval *a, int64_t *start, int64_t *count, int64_t *step);
/* a number (default 0) as a constant of dtype t */
nvg_node *nvg_fill_attr(nvg_call *c, const char *name, nvm_dtype t);
/* Sets the message "[op] ..." and returns NULL. */
nvg_node *nvg_bad(nvg_call *c, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* fails because a reduction over no elements of x has no value */
nvg_node *nvg_no_elements(nvg_call *c, const nvg_node *x);

/* ---- inference (infer.c) */
enum { NVG_SHAPE_TEXT = 512 };
const char *nvg_shape_text(char *out, int rank, const int64_t *shape); /* "(3, 4)"; out has NVG_SHAPE_TEXT bytes */
nvm_dtype nvg_dtype_in(nvg_node *n, nvm_dtype default_float);          /* dtype of an operand by itself */
/* Promotes n operands (NULLs are skipped); weak scalars follow the dtype of the others. */
nvm_dtype nvg_common(nvg_node *const *in, int n, nvm_dtype default_float);
/* Fails for a conversion from complex to a real dtype other than bool. A status. */
int nvg_converts(nvg_call *c, nvm_dtype from, nvm_dtype to);
/* Checks operands against the rule and returns the dtype they are converted to; -1 with a message. */
int nvg_rule_in(const char *who, nvg_rule r, nvg_node *const *in, int n, nvm_dtype default_float);
nvm_dtype nvg_rule_out(nvg_rule r, nvm_dtype in);
/* Returns the fragment of a MAP row for operands of this dtype (floats of 16 bits and less are computed in float32); it
   is looked up once. NULL with a message if there is none. */
const nvg_frag *nvg_map_frag(nvg_op op, nvm_dtype in);
int nvg_map_defined(nvg_op op, nvm_dtype in); /* Is there one? Nothing is compiled; 0 with its message */
/* the same for a cast between two real dtypes */
const nvg_frag *nvg_cast_frag(nvm_dtype from, nvm_dtype to);
int nvg_is_two(const nvg_node *n); /* is it the real constant 2? A power with that exponent is a product */
/* What an elementwise operation computes: `frag`, of operands that are converted to `in` (the condition of a where: to
   bool) and are 0-d or have the shape of `like`. squares: the second operand is the first one again. */
typedef struct nvg_map_call {
  const nvg_frag *frag;
  const nvg_aval *like;
  nvm_dtype in, out;
  int squares;
} nvg_map_call;
/* Returns 0 if the call fails, needs operands of other shapes, or is defined as something else: by its dtype, by a
   constant operand, or in several steps. */
int nvg_map_call_of(nvg_map_call *m, nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float); /* (build.c) */
int nvg_broadcast(const char *who, nvg_node *const *in, int n, int *rank, int64_t *shape);            /* a status */
int nvg_broadcasts(const nvg_aval *a, int rank, const int64_t *shape); /* 1 if it broadcasts to that shape */

/* ---- making nodes inside a call (build.c); results are borrowed unless noted */
nvg_node *nvg_map(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float);    /* owned */
nvg_node *nvg_next_narrow(nvg_node *const *in, nvm_dtype t, nvm_dtype default_float); /* owned (expand_map.c) */
/* apply a MAP row, with promotion and broadcasting */
nvg_node *nvg_x1(nvg_call *c, nvg_op op, nvg_node *a);
nvg_node *nvg_x2(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b);
nvg_node *nvg_x3(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b, nvg_node *d);
nvg_node *nvg_xcast(nvg_call *c, nvg_node *a, nvm_dtype t, int flags);
nvg_node *nvg_typed(nvg_call *c);            /* operand 0; a weak scalar becomes a 0-d array of its own dtype */
nvg_node *nvg_xfloat(nvg_call *c, double v); /* weak scalars */
nvg_node *nvg_xint(nvg_call *c, int64_t v);
nvg_node *nvg_xconst(nvg_call *c, nvm_dtype t, double re, int64_t i);
nvg_node *nvg_xiota(nvg_call *c, int rank, const int64_t *shape, int axis);
nvg_node *nvg_xreshape(nvg_call *c, nvg_node *a, int rank, const int64_t *shape); /* sizes agree */
nvg_node *nvg_xexpand(nvg_call *c, nvg_node *a, int rank, const int64_t *shape);  /* broadcasts, ranks may differ */
nvg_node *nvg_xpermute(nvg_call *c, nvg_node *a, const int64_t *axes);
/* Moves dimension `axis` to the end, or (back) the last dimension to `axis`; the others stay in order. */
nvg_node *nvg_xmove_axis(nvg_call *c, nvg_node *a, int axis, int back);
nvg_node *nvg_xrotate(nvg_call *c, nvg_node *a, int axis, int64_t shift); /* cyclic, towards greater positions */
nvg_node *nvg_xtranspose(nvg_call *c, nvg_node *a);                       /* exchanges the last two dimensions */
/* of the last two dimensions, k above the main diagonal */
nvg_node *nvg_xdiagonal(nvg_call *c, nvg_node *a, int64_t k);
nvg_node *nvg_xslice(nvg_call *c, nvg_node *a, const int64_t *start, const int64_t *count, const int64_t *step);
/* slices one axis */
nvg_node *nvg_xrange(nvg_call *c, nvg_node *a, int axis, int64_t start, int64_t count, int64_t step);
nvg_node *nvg_xflip(nvg_call *c, nvg_node *a, uint32_t axes);
nvg_node *nvg_xpad(nvg_call *c, nvg_node *a, nvg_node *fill, const int64_t *before, const int64_t *shape);
nvg_node *nvg_xjoin(nvg_call *c, nvg_node *const *in, int n, int axis);
/* of: number of the axis for messages */
nvg_node *nvg_xgather(nvg_call *c, nvg_node *a, nvg_node *index, int axis, int64_t of);
nvg_node *nvg_xscatter(nvg_call *c, nvg_node *index, int64_t size); /* 1 + the last position of each value; 0: none */
nvg_node *nvg_xreduce(nvg_call *c, nvg_op op, nvg_node *a, uint32_t axes, int keepdims);
nvg_node *nvg_xdrop(nvg_call *c, nvg_node *a, uint32_t axes); /* removes dimensions of extent 1 */
int64_t nvg_count_over(const nvg_node *a, uint32_t axes);     /* product of the extents of these axes */
#endif
