/* Inside of building: one call of an operation, what its builder may ask and make. Nothing outside lib/graph includes
   this. A builder works with borrowed nodes: what the helpers make belongs to the call and is released with it. NULL
   operands pass through every helper, so that a builder checks only what it reads. */
#ifndef NVM_GRAPH_INFER_H
#define NVM_GRAPH_INFER_H
#include "graph/graph.h"

typedef struct nvg_call {
  nvg_op op;
  nvg_node *const *in;
  int nin;
  const nvg_attr *attr;
  int nattr;
  uint64_t used; /* attributes that the builder looked at */
  nvm_dtype default_float;
  nvg_node **own; /* nodes made for this call */
  int nown, cap;
  nvg_node *inl[24];
} nvg_call;

/* Every row that is not MAP, RED, SCAN, CALL, LEAF or NODE has one. The result is borrowed (the call's or an
   operand). */
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

/* ---- nodes (node.c). The reference to the aval becomes the node's (and is dropped if it fails). */
nvg_node *nvg_node_new(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr);
/* As nvg_node_new, but the operands' references become the node's too. */
nvg_node *nvg_node_take(nvg_op op, const nvg_aval *aval, nvg_node *const *in, int nin, const int64_t *attr, int nattr);
nvg_node *nvg_keep(nvg_call *c, nvg_node *owned); /* gives an owned node (NULL: nothing) to the call */
void nvg_call_end(nvg_call *c);                   /* releases what it was given */
nvg_node *nvg_leaf_with(const nvg_aval *aval, const int64_t *attr, int nattr); /* a placeholder */
nvg_node *nvg_const_bits(nvm_dtype t, uint64_t re, uint64_t im);

/* ---- weak scalars (weak.c) */
int nvg_weak_class(const nvg_node *n); /* nvg_class of a scalar, or of an array's dtype */
/* Where an integer lies: -1 below all that t, an integer dtype, holds, 1 above, 0 t holds it. */
int nvg_weak_side(nvg_node *w, nvm_dtype t);
int nvg_weak_negative(nvg_node *w);
nvg_node *nvg_const_as(const char *who, nvg_node *weak, nvm_dtype t); /* owned: a weak constant's value in a dtype */

/* (apply.c) The row can be called, with so many operands, of which these may be absent: a status. */
int nvg_check_operands(nvg_op op, nvg_node *const *in, int nin);

/* ---- attributes (apply.c). They fail with the op's name; ok stays 1 while nothing failed. */
const nvg_attr *nvg_attr_get(nvg_call *c, const char *name);                /* NULL if absent or None */
int nvg_attr_none(const nvg_call *c, const char *name);                     /* given as None */
int nvg_attr_int(nvg_call *c, const char *name, int64_t def, int64_t *out); /* a status, as the next */
int nvg_attr_float(nvg_call *c, const char *name, double def, double *out);
int nvg_attr_dtype(nvg_call *c, const char *name, int def, int *out);
/* one int counts as a list; *n < 0: absent */
int nvg_attr_ints(nvg_call *c, const char *name, int max, int64_t *out, int *n);
/* A text, without its blanks; out has room for `max` bytes with its end. */
int nvg_attr_text(nvg_call *c, const char *name, int max, char *out);
/* The dimension that an axis names, negative ones from the end. A status. */
int nvg_axis(nvg_call *c, int64_t axis, int rank, int *d);
/* Axes as a mask over `rank` dimensions; absent: all. A status. */
int nvg_attr_axes(nvg_call *c, const char *name, int rank, uint32_t *mask);
int nvg_attr_axis(nvg_call *c, const char *name, int rank, int64_t def, int *axis); /* exactly one */
/* start, count, step (absent: 1) of each dimension, checked to lie inside. A status. */
int nvg_window(nvg_call *c, const nvg_aval *a, int64_t *start, int64_t *count, int64_t *step);
/* a number (default 0) as a constant of dtype t */
nvg_node *nvg_fill_attr(nvg_call *c, const char *name, nvm_dtype t);
/* "[op] ..."; NULL */
nvg_node *nvg_bad(nvg_call *c, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
nvg_node *nvg_no_elements(nvg_call *c, const nvg_node *x); /* nvg_bad: x is reduced, of nothing */

/* ---- inference (infer.c) */
enum { NVG_SHAPE_TEXT = 512 };
const char *nvg_shape_text(char *out, int rank, const int64_t *shape); /* "(3, 4)"; out has NVG_SHAPE_TEXT bytes */
nvm_dtype nvg_dtype_in(nvg_node *n, nvm_dtype default_float);          /* of an operand that meets nothing else */
/* Promotion over n operands (NULL ones are skipped); the dtype of weak ones follows. */
nvm_dtype nvg_common(nvg_node *const *in, int n, nvm_dtype default_float);
/* Complex numbers become real ones nowhere, but bool. A status. */
int nvg_converts(nvg_call *c, nvm_dtype from, nvm_dtype to);
/* Checks the rule's classes and gives the operands' dtype; -1 with a message. */
int nvg_rule_in(const char *who, nvg_rule r, nvg_node *const *in, int n, nvm_dtype default_float);
nvm_dtype nvg_rule_out(nvg_rule r, nvm_dtype in);
/* The fragment of a MAP row on operands of this dtype (16 bits: in float32), found once and remembered; NULL with a
   message. */
const nvg_frag *nvg_map_frag(nvg_op op, nvm_dtype in);
int nvg_broadcast(const char *who, nvg_node *const *in, int n, int *rank, int64_t *shape); /* a status */
int nvg_broadcasts(const nvg_aval *a, int rank, const int64_t *shape); /* may it be repeated to that shape? */

/* ---- making nodes inside a call (build.c); all borrowed */
nvg_node *nvg_map(nvg_op op, nvg_node *const *in, int n, nvm_dtype default_float);    /* owned */
nvg_node *nvg_next_narrow(nvg_node *const *in, nvm_dtype t, nvm_dtype default_float); /* owned (expand_map.c) */
/* MAP rows, with promotion and broadcasting */
nvg_node *nvg_x1(nvg_call *c, nvg_op op, nvg_node *a);
nvg_node *nvg_x2(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b);
nvg_node *nvg_x3(nvg_call *c, nvg_op op, nvg_node *a, nvg_node *b, nvg_node *d);
nvg_node *nvg_xcast(nvg_call *c, nvg_node *a, nvm_dtype t, int flags);
nvg_node *nvg_typed(nvg_call *c);            /* operand 0; a Python scalar as the array that it would be alone */
nvg_node *nvg_xfloat(nvg_call *c, double v); /* weak scalars */
nvg_node *nvg_xint(nvg_call *c, int64_t v);
nvg_node *nvg_xconst(nvg_call *c, nvm_dtype t, double re, int64_t i);
nvg_node *nvg_xiota(nvg_call *c, int rank, const int64_t *shape, int axis);
nvg_node *nvg_xreshape(nvg_call *c, nvg_node *a, int rank, const int64_t *shape); /* sizes agree */
nvg_node *nvg_xexpand(nvg_call *c, nvg_node *a, int rank, const int64_t *shape);  /* broadcasts, ranks may differ */
nvg_node *nvg_xpermute(nvg_call *c, nvg_node *a, const int64_t *axes);
nvg_node *nvg_xtranspose(nvg_call *c, nvg_node *a);           /* the last two dimensions change places */
nvg_node *nvg_xdiagonal(nvg_call *c, nvg_node *a, int64_t k); /* of the last two dimensions, k above the main one */
nvg_node *nvg_xslice(nvg_call *c, nvg_node *a, const int64_t *start, const int64_t *count, const int64_t *step);
nvg_node *nvg_xrange(nvg_call *c, nvg_node *a, int axis, int64_t start, int64_t count, int64_t step); /* of one axis */
nvg_node *nvg_xflip(nvg_call *c, nvg_node *a, uint32_t axes);
nvg_node *nvg_xpad(nvg_call *c, nvg_node *a, nvg_node *fill, const int64_t *before, const int64_t *shape);
nvg_node *nvg_xjoin(nvg_call *c, nvg_node *const *in, int n, int axis);
/* of: the axis, for messages */
nvg_node *nvg_xgather(nvg_call *c, nvg_node *a, nvg_node *index, int axis, int64_t of);
nvg_node *nvg_xscatter(nvg_call *c, nvg_node *index, int64_t size); /* 1 + the last position of each value, 0: none */
nvg_node *nvg_xreduce(nvg_call *c, nvg_op op, nvg_node *a, uint32_t axes, int keepdims);
nvg_node *nvg_xdrop(nvg_call *c, nvg_node *a, uint32_t axes); /* dimensions of extent 1 removed */
int64_t nvg_count_over(const nvg_node *a, uint32_t axes);     /* product of those extents */
#endif
