/* What is to be computed. Two forms: the user's lazy nodes (node.c: counted, built one call at a time), and the
   evaluation graph (nvg_graph: an arena's copy of what one evaluation needs, equal values merged, reduction orders
   fixed). */
#ifndef NVM_GRAPH_GRAPH_H
#define NVM_GRAPH_GRAPH_H
#include <stdatomic.h>
#include "frag/dtype.h"
#include "frag/frag.h"

/* ---- the evaluation graph's kinds of value; after nvg_simplify no others are left: this is the planner's language. */
typedef enum nvg_vkind {
  NVG_VLEAF, /* leaf slot `leaf` */
  /* 0-d constant: bits in attr[0] (attr[1]: imaginary part); a scalar slot of the kernel, unless it is structural */
  NVG_VCONST,
  NVG_VIOTA, /* i64: the coordinate along axis attr[0] */
  /* frag over the parts of the operands (a complex value is two parts); operands have this shape or are 0-d */
  NVG_VMAP,
  NVG_VRED,     /* nin states over one run of adjacent axes [attr[0], attr[0] + attr[1]), kept as extent 1; several
                   results: read by PICK. frag merges two states, init is the identity */
  NVG_VSCAN,    /* as RED along axis attr[0], same shape */
  NVG_VPICK,    /* state attr[0] of a RED with several */
  NVG_VRESHAPE, /* same size, row-major */
  NVG_VPERMUTE, /* dimension d is operand dimension attr[d] */
  NVG_VSLICE,   /* per dimension start attr[2d], step attr[2d+1] (any sign, in range); flip is a slice */
  NVG_VEXPAND,  /* same rank; operand extents of 1 are repeated */
  NVG_VROLL,    /* element i of dimension attr[0] is operand element (i + attr[1]) mod extent, attr[1] in [0, extent) */
  NVG_VPAD,     /* in[0] at offsets attr[d]; elsewhere the 0-d in[1] */
  NVG_VCONCAT,  /* along axis attr[0] */
  NVG_VGATHER,  /* out[c] = in[0][c with coordinate attr[0] replaced by in[1][c]]; in[1] i64, this shape, checked in
                   range, else `op` fails for axis attr[1]; in[0] has the same rank and has to be stored */
  NVG_VSCATTER, /* i64, 1-d: 1 + the greatest k with in[0][k] = its coordinate, else 0; in[0] i64, 1-d, checked in
                   range */
  /* a step that a library may do: row of kind CALL. PRODUCT: sums over k of in[0][batch, m, k] in[1][batch, k, n], one
     dtype; attr[0]: dtype of the sums, which is the value's; attr[1]: nvm_precision. One of bfloat16 is a product of
     float32 in terms (bf16_split.c) where attr[1] says so; those of i8 are summed in i32, which wraps */
  NVG_VCALL,
  /* a call of a routine that no kernel holds, always a step of its own: another row of kind CALL. ORDER, SORTED: rows
     of the last dimension of in[0], which is real; attr[0]: descending. BINS: of each row of integers how many are 0,
     1, ... attr[0] - 1, the extent of the last dimension of the result, or the sums of their weights in[1], of floats
     in the order of reduction order (64, 1) */
  NVG_VROUTINE
} nvg_vkind;

/* ---- the table of operations: ops.def, which says what its columns mean */
typedef enum nvg_kind {
  NVG_KMAP,
  NVG_KRED,
  NVG_KSCAN,
  NVG_KVIEW,
  NVG_KSEL,
  NVG_KGATHER,
  NVG_KGEN,
  NVG_KFUN,
  NVG_KCALL,
  NVG_KLEAF,
  NVG_KNODE
} nvg_kind;
typedef enum nvg_op {
#define OP(kind, id, c, name, nin, rule, def, sig, doc) NVG_OP_##id,
#include "graph/ops.def"
#undef OP
  NVG_NOPS
} nvg_op;
typedef enum nvg_rule { /* dtype rules of operands and result */
#define RULE(id, takes, up, out, doc) NVG_R##id,
#include "graph/rules.def"
#undef RULE
                    NVG_NRULES
} nvg_rule;
typedef enum nvg_init { NVG_INIT_NONE, NVG_INIT_NEGZERO, NVG_INIT_ONE, NVG_INIT_LEAST, NVG_INIT_MOST } nvg_init;
typedef struct nvg_def {   /* what an op is made of; classes are bits 1 << nvg_class */
  /* MAP: the fragment, for complex operands "c." and this; RED, SCAN: the merge of two states */
  const char *frag;
  const char *boolean;   /* the fragment for bool, where that is another */
  uint8_t same, no, yes; /* classes for which the op is its operand, or constant false, or constant true */
  uint8_t mark;          /* 16-bit operands are rounded first (numerics.md section 5) */
  nvg_init init;         /* RED, SCAN: identity; the least and the most value of the dtype */
  uint8_t free;          /* RED: classes for which any tree gives the same bits */
  nvg_vkind v;           /* rows whose nodes are not MAP, RED, SCAN */
} nvg_def;
typedef struct nvg_op_info {
  nvg_kind kind;
  const char *id, *c, *name; /* c: nvm_<c> of the C API; name: the array API's, starting with _ if nobody can call it */
  /* operands: the first names of sig; -1: one list of them. Absent ones are NULL in nvg_apply */
  int nin;
  nvg_rule rule;
  nvg_def def;
  const char *sig, *doc; /* sig: of the Python function; names after the operands are attributes */
} nvg_op_info;
extern const nvg_op_info nvg_ops[NVG_NOPS];
int nvg_op_find(const char *name); /* array API name; -1 if there is none */
nvg_vkind nvg_op_vkind(nvg_op op); /* of its nodes */

/* ---- lazy nodes */
/* interned while somebody holds it; compare by pointer, and shapes by their pointers */
typedef struct nvg_aval { nvm_dtype dtype; int rank; int64_t size; const int64_t *shape; } nvg_aval;
/* A reference; NULL with a message: rank, negative or overflowing size, memory */
const nvg_aval *nvg_aval_get(nvm_dtype t, int rank, const int64_t *shape);
const nvg_aval *nvg_aval_ref(const nvg_aval *a);                  /* NULL passes through */
void nvg_aval_unref(const nvg_aval *a);                           /* NULL is fine */
void nvg_packed(int64_t *stride, int rank, const int64_t *shape); /* row-major, in elements */
/* A reference to the same shape with another dtype; cannot fail. */
const nvg_aval *nvg_aval_as(const nvg_aval *a, nvm_dtype t);

typedef struct nvg_value { /* what a leaf or an evaluated node holds; made by the API layer over dispatch's buffers */
  void *buffer; /* owner of the memory, counted by `ref` and `unref` */
  void (*unref)(void *buffer);
  char *data;                          /* first element */
  int device;                          /* 0: host memory; 1 + ordinal of the GPU whose memory it is */
  _Atomic(struct nvg_value *) replica; /* the same elements in another memory, and so on; owned */
  uint64_t sum;                        /* of borrowed memory when it was lent; 0: not taken */
  int64_t stride[NVM_MAX_RANK];        /* in elements; 0 and negative are fine */
} nvg_value;

typedef struct nvg_node {
  _Atomic uint64_t refs;  /* low half: owners of any kind; high half: those that are pending nodes */
  uint16_t op;            /* nvg_op */
  uint8_t weak;           /* 0-d Python-like scalar: 1 + nvg_class */
  _Atomic uint8_t flags;  /* NVG_INNER ...; a donation sets them while others read */
  _Atomic uint8_t pinned; /* its bytes are among nvg_pending_bytes */
  uint8_t device;         /* where it was put: 0 follows what it meets, 1 the CPU, 2 + ordinal a GPU */
  _Atomic int32_t depth;  /* longest chain of pending nodes below */
  const nvg_aval *aval;   /* counted */
  int nin, nattr;
  struct nvg_node **in;       /* counted; dropped by nvg_node_set */
  int64_t *attr;              /* integers, or bits of floats; meaning by op, listed in ops.def */
  _Atomic(nvg_value *) value; /* write-once */
  _Atomic uint64_t left;      /* not 0: an evaluation computed it and did not keep it; where in what graph */
  void *mark;                 /* links nodes that are being freed */
} nvg_node;
enum {
  NVG_INNER = 1,      /* a cast that no user asked for: not a rounding point of 16-bit values */
  NVG_RESULT = 2,     /* one that rounds the result of an operation's expansion */
  NVG_DONATED = 4,    /* a value that its owner gave up: who reads it last may take its memory */
  NVG_INVALIDATED = 8 /* a value that was given up, or its memory was taken by a run that failed */
};
nvg_node *nvg_node_ref(nvg_node *n);
void nvg_node_unref(nvg_node *n); /* iterative: a chain of a million nodes is fine */
/* Gives n its value (v is taken; freed if it has one already), drops its operands. 1 if v became the value. */
int nvg_node_set(nvg_node *n, nvg_value *v);
void nvg_value_free(nvg_value *v); /* with its mirrors */
int64_t nvg_pending_bytes(void);   /* of values that nobody but pending nodes holds */

/* Builds the node(s) of an operation: inference, promotion, broadcasting, expansion of FUN rows. Operands are borrowed,
   the result is yours; NULL with a message that names the op, shapes and dtypes. Attributes by name of the op's row. An
   absent operand (a bound of clip) is NULL. */
typedef nvm_attr nvg_attr;
nvg_node *nvg_apply(nvg_op op, nvg_node *const *in, int nin, const nvg_attr *attr, int nattr, nvm_dtype default_float);
/* The order of einsum's products, as nvm_einsum_path says it; attr: `subscripts`. A status. */
int nvg_einsum_path(int (*pairs)[2], double *operations, nvg_node *const *in, int nin, nvg_attr subscripts,
                    nvm_order order);
nvg_node *nvg_leaf_new(const nvg_aval *aval, nvg_value *v); /* takes both; v NULL: a placeholder */

/* Python-like scalars (weak.c), of a kind: 'b', 'i' int64, 'f', 'c'; 'u' an integer from 2^63 on that uint64 holds; 'h'
   one that neither holds, as the nearest double, an infinity where none is near. i: a bool, or bits of 'i' and 'u'. */
nvg_node *nvg_weak(char kind, double re, double im, int64_t i);
char nvg_weak_kind(const nvg_node *w);
/* A parameter of a trace; bits: those of the integer that it is traced with. Later calls may have the integers for
   which all that was asked of this one has the same answer. */
nvg_node *nvg_weak_parameter(char kind, int64_t bits);
int nvg_weak_asked(const nvg_node *p);               /* there are integers of its kind that it does not take */
int nvg_weak_takes(const nvg_node *p, int64_t bits); /* of an integer of its kind */
/* A status: is w, if it is an integer, held by t? */
int nvg_weak_fits(const char *who, nvg_node *w, nvm_dtype t);

/* n, to be computed on that device, as nvg_node.device says; a new reference. */
nvg_node *nvg_put(nvg_node *n, int device);
/* The device that these (NULL ones are skipped) were put on together, 0 if none was; -1 with a message that names
   `who`. */
int nvg_device_join(const char *who, nvg_node *const *in, int n);
const char *nvg_device_name(char out[16], int device);             /* "cpu", "cuda:0"; as nvg_node.device */
nvg_node *nvg_const(nvm_dtype t, double re, double im, int64_t i); /* a typed 0-d constant */

/* ---- views: operations with one operand over a placeholder, which stands for what is viewed */
typedef struct nvg_lens {
  nvg_node *of, *top;       /* counted: the placeholder, and what shows */
  int length;               /* operations between them; -1: top is no such chain */
  int fixed;                /* cannot be written through */
  int strided;              /* the rest is known */
  int64_t offset, stride[]; /* where top's elements lie in what is viewed, if that is row-major; in such elements */
} nvg_lens;
/* Of an operation (or several) on top of `through`, or on `of` if that is NULL; takes top, NULL passes through. */
nvg_lens *nvg_lens_new(const nvg_lens *through, nvg_node *of, nvg_node *top);
void nvg_lens_free(nvg_lens *l);                           /* NULL is fine */
int nvg_lens_packed(const nvg_lens *l);                    /* elements lie in row-major order, without gaps */
nvg_node *nvg_lens_get(const nvg_lens *l, nvg_node *base); /* what shows of base; a new reference, as the next */
nvg_node *nvg_lens_put(const nvg_lens *l, nvg_node *base, nvg_node *value); /* base, with what shows replaced */

/* ---- the evaluation graph */
typedef struct nvg_val {
  nvg_vkind kind;
  int op;          /* nvg_op as collected; values that simplify makes keep that of what they are part of */
  nvm_dtype dtype; /* f16, bf16 only for LEAF, casts to and from them, and what is stored of them */
  int rank;
  const int64_t *shape;
  int64_t size;
  int nin;
  const int *in; /* earlier values */
  int nattr;
  const int64_t *attr;
  int leaf;
  const nvg_frag *frag; /* MAP, RED, SCAN */
  int chunk, lanes;     /* RED: numerics.md section 4, from the shape as written */
  /* MAP, RED: all that becomes of it is rounded to bf16 (2) or to 16 bits (1), as the user's dtypes ask: a device may
     use its own instructions (numerics.md section 5) */
  int half;
  int order_free;       /* RED: min, max, any, all, integers, arg: any tree gives the same bits */
  const uint64_t *init; /* RED, SCAN: identity of each state, bits */
  const char *name;     /* the op as the user wrote it, for explain and dumps */
} nvg_val;
enum { NVG_CONCAT_MOST = 18 }; /* of a concat: so many, and no more, a kernel is to choose between */
/* The reduction order of a reduction (numerics.md section 4): that of columns where the kept elements inside of it are
   NVG_COLUMN or more, else that of rows. */
enum { NVG_COLUMN = 16 };
typedef struct nvg_red_order { int chunk, lanes; } nvg_red_order;
static inline nvg_red_order nvg_red_order_of(int column) {
  return column ? (nvg_red_order){ 64, 1 } : (nvg_red_order){ 1024, 128 };
}

typedef struct nvg_leaf {
  nvm_dtype dtype;
  int rank;
  const int64_t *shape, *stride; /* stride: in elements */
  int align16;                   /* its first element's address is a multiple of 16 */
  int donated;                   /* its memory may be taken for an output */
  int weak_const;                /* nvg_node.weak: a number in host memory */
  int extreme;                   /* one that some float type takes for 0 or infinite: it is no alpha or beta of BLAS */
} nvg_leaf;
typedef struct nvg_left { nvg_node *node; uint64_t key; } nvg_left;
typedef struct nvg_graph {
  nvb_arena *arena;
  int n;
  nvg_val *v; /* in topological order */
  int nleaf;
  nvg_leaf *leaf;
  nvg_node **leaf_node; /* leaf_node borrowed from the caller's arrays */
  int nout;
  int *out;            /* values wanted, in the caller's order */
  nvg_node **out_node; /* the nodes they belong to */
  int nleft;
  nvg_left *left; /* expensive nodes that somebody holds and that are computed, but not kept */
} nvg_graph;

int nvg_same_shape(const nvg_val *a, const nvg_val *b);

/* Copies what `roots` need into an arena: equal nodes merged, evaluated nodes and placeholders as leaves, expensive
   interior nodes that are known to be wanted again as extra outputs (after the nroot roots). Throws. */
nvg_graph *nvg_collect(nvb_arena *a, nvg_node *const *roots, int nroot);
/* The graph has been computed: its nodes that are not kept are told so, and those that an earlier one did not keep are
   kept from here on where such a graph is collected. Before any of them gets its value. */
void nvg_computed(const nvg_graph *g);
/* Legal, graph with reduction orders: dtypes legalised, 16-bit marks, reductions as runs of axes with reduction orders,
   dead code gone, exact algebra. */
nvg_graph *nvg_simplify(nvb_arena *a, const nvg_graph *g);
/* The products of bfloat16 terms that a value of such a graph may be instead, as its user allowed (nvm_precision); 0:
   it may not. And the graph with these values (by value: 1) as such products, each value's as one. */
int nvg_bf16_terms(const nvg_graph *g, const nvg_val *v);
nvg_graph *nvg_split_bf16(nvb_arena *a, const nvg_graph *g, const uint8_t *which);
/* Whether a value of such a graph is a product of integers of 8 bits; and the graph with products, by value: of these
   as one of floats, of any with operands copied so that they lie along what is summed. None changes by that. */
enum { NVG_AS_FLOATS = 1, NVG_TRANSPOSE_LEFT = 2, NVG_TRANSPOSE_RIGHT = 4 };
int nvg_of_bytes(const nvg_graph *g, const nvg_val *v);
nvg_graph *nvg_with_operands(nvb_arena *a, const nvg_graph *g, const uint8_t *how);
/* The graph with histograms that are sums of comparisons made by a routine; g itself if there are none. */
const nvg_graph *nvg_in_bins(nvb_arena *a, const nvg_graph *g);
nvb_hash nvg_graph_hash(const nvg_graph *g); /* structure, shapes, dtypes, strides of leaves; not addresses */
void nvg_graph_print(nvb_text *t, const nvg_graph *g);
nvg_graph *nvg_graph_parse(nvb_arena *a, const char *text, const char *where);
void nvg_graph_check(nvb_arena *a, const nvg_graph *g);
#endif
