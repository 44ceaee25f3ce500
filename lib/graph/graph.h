/* Represents what is to be computed, in two forms: the user's lazy nodes (node.c: reference-counted, built one call at
   a time), and the evaluation graph (nvg_graph: an arena's copy of what one evaluation needs, with equal values merged
   and reduction orders fixed). */
#ifndef NVM_GRAPH_GRAPH_H
#define NVM_GRAPH_GRAPH_H
#include <stdatomic.h>
#include "frag/dtype.h"
#include "frag/frag.h"

/* ---- the evaluation graph's kinds of value: the input language of the planner. After nvg_simplify there are no
   others. */
typedef enum nvg_vkind {
  NVG_VLEAF, /* an input: slot `leaf` of the graph's leaves */
  /* a 0-d constant: its bits in attr[0] (imaginary part in attr[1]). It becomes a scalar argument of the kernel, unless
     it is structural */
  NVG_VCONST,
  NVG_VIOTA, /* i64: the coordinate along axis attr[0] */
  /* frag applied elementwise to the parts of the operands (a complex value has two); operands have this shape or are
     0-d */
  NVG_VMAP,
  /* reduces nin states over the adjacent axes [attr[0], attr[0] + attr[1]), which keep extent 1; with several states,
     PICK reads each result. frag merges two states, init is the identity */
  NVG_VRED,
  NVG_VSCAN,    /* an inclusive scan along axis attr[0], as RED otherwise; same shape */
  NVG_VPICK,    /* state attr[0] of a RED with several states */
  NVG_VRESHAPE, /* same size, row-major */
  NVG_VPERMUTE, /* dimension d is the operand's dimension attr[d] */
  NVG_VSLICE,   /* per dimension start attr[2d], step attr[2d+1] (any sign, in range); flip is a slice */
  NVG_VEXPAND,  /* same rank; operand extents of 1 are repeated */
  NVG_VROLL,    /* element i of dimension attr[0] is operand element (i + attr[1]) mod extent, attr[1] in [0, extent) */
  NVG_VPAD,     /* in[0] placed at offsets attr[d], elsewhere in[1]: a 0-d value, or an array of the same shape */
  NVG_VCONCAT,  /* along axis attr[0] */
  /* out[c] = in[0][c with coordinate attr[0] replaced by in[1][c]]; in[1] is i64 of this shape; an index out of range
     fails as `op` with axis attr[1]; in[0] has the same rank and must be materialised */
  NVG_VGATHER,
  /* i64, 1-d: element i is 1 + the greatest k with in[0][k] = i, or 0; in[0] is i64, 1-d, and its range is checked */
  NVG_VSCATTER,
  /* a step that a library can run (a row of kind CALL). GEMM: in[0][batch, m, k] times in[1][batch, k, n], summed over
     k, operands of one dtype; attr[0]: dtype of the sums, which is the value's; attr[1]: nvm_precision. With operands
     of bfloat16, attr[1] may say that it is a float32 GEMM in terms (bf16_split.c). Sums of i8 are i32 and wrap */
  NVG_VCALL,
  /* a routine that no kernel can express, always a step of its own (another row of kind CALL). ORDER, SORTED: sort the
     rows of in[0], which is real, along the last dimension; attr[0]: descending. BINS: for each row of integers, how
     many are 0, 1, ... attr[0] - 1 (the last extent of the result), or the sums of their weights in[1]; float sums use
     the reduction order (64, 1). DFT: a Fourier transform of the rows of in[0], which is complex unless attr[0], an
     nvg_dft, says otherwise; attr[1]: the number of points. POSITIONS, SEARCHED: what ops.def says of each row of
     in[0]. Others (nvg_is_of_matrices): what it says of each matrix of in[0] */
  NVG_VROUTINE
} nvg_vkind;

/* ---- the table of operations; ops.def explains its columns */
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
typedef enum nvg_rule { /* dtype rules of operands and result (rules.def) */
#define RULE(id, takes, up, out, doc) NVG_R##id,
#include "graph/rules.def"
#undef RULE
                    NVG_NRULES
} nvg_rule;
/* Kinds of Fourier transform, all unscaled: exp(-2 pi i j k / n) forward and of real input, exp(+ ...) inverse and to
   real output */
typedef enum nvg_dft { NVG_DFT_FORWARD, NVG_DFT_INVERSE, NVG_DFT_REAL, NVG_DFT_TO_REAL, NVG_NDFT } nvg_dft;
typedef enum nvg_init { NVG_INIT_NONE, NVG_INIT_NEGZERO, NVG_INIT_ONE, NVG_INIT_LEAST, NVG_INIT_MOST } nvg_init;
enum { NVG_WITHOUT_SOLVER = 2 };
typedef struct nvg_def {   /* what an op is made of; sets of classes have bits 1 << nvg_class */
  /* MAP: the fragment (for complex operands "c." is put before it); RED, SCAN: the merge of two states */
  const char *frag;
  const char *boolean;   /* the fragment for bool, if it is another one */
  uint8_t same, no, yes; /* classes for which the op is its operand, is constant false, is constant true */
  uint8_t mark;          /* 1: operands of 16 bits are rounded first (numerics.md section 5) */
  nvg_init init;         /* RED, SCAN: the identity; LEAST and MOST are the least and the greatest value of the dtype */
  uint8_t free;          /* RED: classes for which every order of merging gives the same bits */
  nvg_vkind v;           /* kind of value, for rows other than MAP, RED, SCAN */
  uint8_t ints;          /* how many operands of the fragment are int64, whatever the dtype of the others */
  /* FUN: 1: a routine of the CPU does it, also for arrays of a GPU; NVG_WITHOUT_SOLVER: where that has no library */
  uint8_t host;
} nvg_def;
typedef struct nvg_op_info {
  nvg_kind kind;
  /* c: nvm_<c> of the C API; name: the array API's; names that start with _ are internal */
  const char *id, *c, *name;
  /* operands are the first names of sig; -1: one list of operands. Absent ones are NULL in nvg_apply */
  int nin;
  nvg_rule rule;
  nvg_def def;
  const char *sig, *doc; /* sig: signature of the Python function; the names after the operands are attributes */
} nvg_op_info;
extern const nvg_op_info nvg_ops[NVG_NOPS];
int nvg_op_find(const char *name); /* by array API name; -1 if there is none */
nvg_vkind nvg_op_vkind(nvg_op op); /* the kind of value of its nodes */

/* ---- routines of matrices: the attributes and results of their rows */
/* What is known of a square matrix before it is factorised. A matrix of which nothing is known is examined: one that is
   triangular, or Hermitian with a positive diagonal, is not factorised as LU. PLAIN: LU of x itself, whatever it is. */
typedef enum nvg_structure { NVG_UNKNOWN, NVG_HERMITIAN, NVG_LOWER, NVG_UPPER, NVG_PLAIN } nvg_structure;
/* Which factors FACTORS holds, row-major: LU of the transposed matrix; the lower Cholesky factor; the lower or the
   upper matrix itself; LU of the matrix. */
typedef enum nvg_factorization { NVG_LU_TURNED, NVG_LL, NVG_L, NVG_U, NVG_LU_PLAIN } nvg_factorization;
/* R, S or eigenvalues alone; vectors of the reduced form; all vectors. */
typedef enum nvg_parts_wanted { NVG_VALUES, NVG_REDUCED, NVG_COMPLETE } nvg_parts_wanted;
enum { NVG_TRANSPOSED = 1, NVG_ADJOINT = 2, NVG_IS_LOWER = 4, NVG_IS_UNIT = 8 }; /* TRIANGULAR: nvg_triangle */
enum { NVG_FACTORS_TAIL = 2 }; /* numbers behind the pivots of FACTORS */
static inline int nvg_sorts(int op) { return op == NVG_OP_ORDER || op == NVG_OP_SORTED; }
static inline int nvg_searches(int op) { return op == NVG_OP_POSITIONS || op == NVG_OP_SEARCHED; }
static inline int nvg_is_of_matrices(int op) { return op >= NVG_OP_FACTORS && op <= NVG_OP_SPECTRAL; }

/* ---- lazy nodes */
/* An abstract value, interned while it is referenced: compare avals by pointer, and shapes by the pointer `shape`. */
typedef struct nvg_aval { nvm_dtype dtype; int rank; int64_t size; const int64_t *shape; } nvg_aval;
/* Returns a reference; NULL with a message for a bad rank, a negative extent, too many elements, or no memory. */
const nvg_aval *nvg_aval_get(nvm_dtype t, int rank, const int64_t *shape);
const nvg_aval *nvg_aval_ref(const nvg_aval *a);                  /* NULL passes through */
void nvg_aval_unref(const nvg_aval *a);                           /* NULL is fine */
void nvg_packed(int64_t *stride, int rank, const int64_t *shape); /* row-major strides, in elements */
/* Computes the strides of a reshape of an array that is not empty. Returns 0 if strides cannot describe it. */
int nvg_reshape_strides(int64_t *to, int to_rank, const int64_t *to_shape, const int64_t *stride, int rank,
                        const int64_t *shape);
/* Returns a reference to the aval of the same shape with another dtype; cannot fail. */
const nvg_aval *nvg_aval_as(const nvg_aval *a, nvm_dtype t);

/* what a leaf or an evaluated node holds; the API layer makes it over buffers of lib/dispatch */
typedef struct nvg_value {
  void *buffer; /* owns the memory; `unref` drops a reference to it */
  void (*unref)(void *buffer);
  int within;                          /* 1: the value itself is in the buffer's memory too */
  char *data;                          /* first element */
  int device;                          /* 0: host memory; 1 + ordinal of the GPU whose memory it is */
  _Atomic(struct nvg_value *) replica; /* list of replicas in other memories; owned */
  /* checksum of borrowed memory from when it was borrowed (NVM_CHECK=borrow); 0: none */
  uint64_t sum;
  int64_t stride[NVM_MAX_RANK]; /* in elements; may be 0 or negative; those of its rank are there */
} nvg_value;

typedef struct nvg_node {
  _Atomic uint64_t refs;  /* low half: number of owners; high half: how many of them are pending nodes */
  uint16_t op;            /* nvg_op */
  uint8_t weak;           /* 0, or 1 + nvg_class of a weak scalar (a 0-d Python number) */
  _Atomic uint8_t flags;  /* NVG_INNER ...; atomic, since a donation sets one while others read */
  _Atomic uint8_t pinned; /* 1: its bytes are counted in nvg_pending_bytes */
  uint8_t device;         /* device it was put on: 0 none (it follows its operands), 1 the CPU, 2 + ordinal a GPU */
  _Atomic int32_t depth;  /* length of the longest chain of pending nodes below */
  const nvg_aval *aval;   /* a counted reference */
  int nin, nattr;
  struct nvg_node **in;       /* counted references, which are dropped when the node has a value */
  int64_t *attr;              /* integers, or bits of floats; ops.def lists the meaning by op */
  _Atomic(nvg_value *) value; /* write-once */
  _Atomic uint64_t claim;     /* the evaluations that read and compute it (claim.c) */
  /* nonzero: an evaluation computed it and did not keep it; a hash of its position in that graph */
  _Atomic uint64_t left;
  void *mark; /* links the list of nodes that are being freed */
} nvg_node;
enum {
  NVG_INNER = 1,   /* a cast that the user did not write: it is no rounding point of 16-bit values */
  NVG_RESULT = 2,  /* a cast that rounds the result of an operation's expansion */
  NVG_DONATED = 4, /* a donated value: its last reader may reuse its memory */
  /* a donated value that cannot be read any more, or one whose memory a failed run may have written */
  NVG_INVALIDATED = 8
};
nvg_node *nvg_node_ref(nvg_node *n);
void nvg_node_unref(nvg_node *n); /* not recursive, so a chain of a million nodes is fine */
/* Sets n's value and drops its operands, or leaves that to the last evaluation that reads n. Takes v, which is freed if
   n has a value already. Returns 1 if v became the value. */
int nvg_node_set(nvg_node *n, nvg_value *v);
void nvg_node_drop_operands(nvg_node *n);
void nvg_value_free(nvg_value *v); /* frees its replicas too */
int64_t nvg_pending_bytes(void);   /* bytes of values that only pending nodes own */

/* Builds the node or nodes of an operation: type inference, promotion, broadcasting, expansion of FUN rows. Operands
   are borrowed, and NULL stands for an absent one (a bound of clip); attributes have the names of the op's row. Returns
   a new reference, or NULL with a message that names the op, shapes and dtypes. */
typedef nvm_attr nvg_attr;
nvg_node *nvg_apply(nvg_op op, nvg_node *const *in, int nin, const nvg_attr *attr, int nattr, nvm_dtype default_float);
/* Finds the order of einsum's products, as nvm_einsum_path does; attr: `subscripts`. Returns a status. */
int nvg_einsum_path(int (*pairs)[2], double *operations, nvg_node *const *in, int nin, nvg_attr subscripts,
                    nvm_order order);
nvg_node *nvg_leaf_new(const nvg_aval *aval, nvg_value *v); /* takes both references; v NULL: a placeholder */

/* Weak scalars (weak.c). kind: 'b', 'i' int64, 'f', 'c'; 'u' an integer >= 2^63 that uint64 holds; 'h' an integer that
   neither holds, as the nearest double or an infinity. i: the bool, or the bits of 'i' and 'u'. */
nvg_node *nvg_weak(char kind, double re, double im, int64_t i);
char nvg_weak_kind(const nvg_node *w);
/* Makes a parameter of a trace; bits: the integer that it is traced with. Later calls may pass those integers for which
   every test that the trace made has the same result. */
nvg_node *nvg_weak_parameter(char kind, int64_t bits);
/* 1 if some integers of its kind would not have the same results */
int nvg_weak_asked(const nvg_node *p);
int nvg_weak_takes(const nvg_node *p, int64_t bits);   /* 1 if that integer has the same results */
void nvg_weak_narrow(nvg_node *p, const nvg_node *as); /* p takes no integers that `as` does not take */
/* Returns a status: NVM_ERR_OVERFLOW if w is an integer out of range of t. */
int nvg_weak_fits(const char *who, nvg_node *w, nvm_dtype t);

/* Returns a slice of x, without the dimensions of extent 1 that `drop` (NULL: none) names; a new reference. NULL: it
   exceeds x, which only nvg_apply tells in a message, or memory has run out. */
nvg_node *nvg_slice(nvg_node *x, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop);

/* Returns a new reference to n put on a device, numbered as nvg_node.device. */
nvg_node *nvg_put(nvg_node *n, int device);
/* Returns the one device that these nodes were put on (NULLs are skipped), 0 if there is none; -1 with a message that
   starts with `who` if there are several. */
int nvg_device_join(const char *who, nvg_node *const *in, int n);
/* "cpu", "cuda:0"; device numbered as nvg_node.device */
const char *nvg_device_name(char out[16], int device);
nvg_node *nvg_const(nvm_dtype t, double re, double im, int64_t i); /* a typed 0-d constant */

/* ---- draws of random numbers (draw.c). The state of a generator: 0-d numbers of int64. */
enum { NVG_STATE_KEY, NVG_STATE_COUNTER, NVG_STATE_STREAM, NVG_STATE };
uint64_t nvg_draw_counters(nvm_draw what, nvm_dtype t, int64_t n); /* how many counters n elements take */
nvg_node *nvg_counter_after(nvg_node *counter, uint64_t n);        /* a new reference; NULL with a message */
enum { NVG_DRAW_PARAMETERS = 3 };
int nvg_draw_parameters(nvm_draw what); /* how many parameters it has */
/* Returns a new reference to a draw of the dtype t, in this shape; NULL with a message. parameter: the draw's, each 0-d
   or of this shape. */
nvg_node *nvg_draw(nvm_draw what, nvm_dtype t, nvg_node *const *state, nvg_node *const *parameter,
                   const nvg_aval *shape);

/* ---- views: chains of one-operand nodes over a placeholder, which stands for the viewed base */
typedef struct nvg_lens {
  nvg_node *of, *top;       /* references: the placeholder, and the top of the chain */
  int length;               /* operations between them; -1: top is no such chain */
  int fixed;                /* 1: cannot be written through */
  int strided;              /* 1: strides describe the view, and the fields below are set */
  int64_t offset, stride[]; /* offset and strides of top's elements in a row-major base, in its elements */
} nvg_lens;
/* Makes a lens of one or more operations `top` over the lens `through`, or over `of` if `through` is NULL. Takes top's
   reference; a NULL top passes through. */
nvg_lens *nvg_lens_new(const nvg_lens *through, nvg_node *of, nvg_node *top);
void nvg_lens_free(nvg_lens *l);                           /* NULL is fine */
int nvg_lens_packed(const nvg_lens *l);                    /* 1 if its elements are contiguous and row-major */
nvg_node *nvg_lens_get(const nvg_lens *l, nvg_node *base); /* the view of `base`; a new reference, as below */
/* `base` with the viewed elements replaced */
nvg_node *nvg_lens_put(const nvg_lens *l, nvg_node *base, nvg_node *value);

/* ---- the evaluation graph */
typedef struct nvg_val {
  nvg_vkind kind;
  int op;          /* nvg_op as collected; a value that simplify adds has the op of the value it belongs to */
  nvm_dtype dtype; /* f16 and bf16 only for LEAF, casts to and from them, and stored values */
  int rank;
  const int64_t *shape;
  int64_t size;
  int nin;
  const int *in; /* operands: earlier values */
  int nattr;
  const int64_t *attr;
  int leaf;
  const nvg_frag *frag; /* MAP, RED, SCAN */
  int chunk, lanes;     /* RED: the reduction order (numerics.md section 4), from the shape as written */
  /* MAP, RED: every use of the value is rounded to bf16 (2) or to 16 bits (1), as the user's dtypes ask: a device may
     use its own instructions (numerics.md section 5) */
  int narrowed;
  int order_free;       /* RED: any order of merging gives the same bits (min, max, any, all, integers, arg) */
  const uint64_t *init; /* RED, SCAN: bits of the identity of each state */
  const char *name;     /* the op as the user wrote it, for explain and dumps */
} nvg_val;
/* Most operands of an elementwise function of the table: an element, the state of random numbers, and parameters. */
enum { NVG_MAP_OPERANDS = 1 + NVG_STATE + NVG_DRAW_PARAMETERS };
enum { NVG_CONCAT_MOST = 18 }; /* most operands of a concat that one kernel selects from */
/* The reduction order (numerics.md section 4): that of columns if NVG_COLUMN or more kept elements are inside the
   reduced axes, else that of rows. */
enum { NVG_COLUMN = 16 };
typedef struct nvg_red_order { int chunk, lanes; } nvg_red_order;
static inline nvg_red_order nvg_red_order_of(int column) {
  return column ? (nvg_red_order){ 64, 1 } : (nvg_red_order){ 1024, 128 };
}

typedef struct nvg_leaf {
  nvm_dtype dtype;
  int rank;
  const int64_t *shape, *stride; /* stride: in elements */
  int align16;                   /* its address is a multiple of 16 */
  int donated;                   /* an output may reuse its memory */
  int weak_const;                /* nvg_node.weak: it is a number in host memory */
  /* some float dtype takes the number for 0 or infinite, so it cannot be alpha or beta of BLAS */
  int extreme;
} nvg_leaf;
typedef struct nvg_left { nvg_node *node; uint64_t key; } nvg_left;
typedef struct nvg_graph {
  nvb_arena *arena;
  int n;
  nvg_val *v; /* in topological order */
  int nleaf;
  nvg_leaf *leaf;
  nvg_node **leaf_node; /* borrowed from the caller's arrays */
  int nout;
  int *out;            /* the wanted values, in the caller's order */
  nvg_node **out_node; /* their nodes */
  int nleft;
  nvg_left *left; /* expensive nodes that are still referenced and are computed, but not kept */
} nvg_graph;
/* Replaces the strides of `from`, in elements or bytes, by those of v, a view of it, and adds to *offset where v's
   first element is. Returns 0 if no strides describe v. */
int nvg_view_strides(int64_t *offset, int64_t *stride, const nvg_val *from, const nvg_val *v);
/* The offset and strides, in elements, of a value that is a view of a leaf: returns the leaf, -1 if it is none. space:
   for a number of each value. */
int nvg_leaf_strides(int64_t *offset, int64_t *stride, const nvg_graph *g, int value, int *space);

int nvg_same_shape(const nvg_val *a, const nvg_val *b);

/* ---- the claims of one evaluation (claim.c). If it cannot have one, it drops all that it has, waits, and collects
   again. */
typedef struct nvg_claims {
  nvb_arena *arena; /* of the lists */
  /* of an evaluation that cuts a chain which grew too long: the depth of its root. What others than pending nodes refer
     to near the root is kept as well, since the next evaluation would compute the whole chain again for it. 0: none */
  int cut;
  NVB_VEC(nvg_node *) read;     /* pending nodes, each behind the one through which it was found */
  NVB_VEC(nvg_node *) computed; /* counted references */
  nvg_node *busy;               /* another evaluation computes it; a counted reference, or NULL */
} nvg_claims;
/* Return 1 if the node is claimed, 0 if it has a value by now or another evaluation computes it; for a node to read,
   the latter sets c->busy. Throw. */
int nvg_claim_read(nvg_claims *c, nvg_node *n);
int nvg_claim_compute(nvg_claims *c, nvg_node *n);
int nvg_claim_valued(nvg_node *n);   /* notes that n has its value; returns 1 if no evaluation reads n */
void nvg_claims_drop(nvg_claims *c); /* lets go of all claims and wakes those who wait for them */
/* Does the same, and waits until c->busy is computed no more. An interrupt ends the wait. Returns a status. */
int nvg_claims_wait(nvg_claims *c);

/* Copies what `roots` need into an arena: equal nodes are merged, evaluated nodes and placeholders become leaves, and
   expensive interior nodes that are known to be wanted again become extra outputs behind the nroot roots. Claims the
   pending nodes that it reads and those that become outputs; NULL, with c->busy set, if one cannot be had. c NULL: no
   evaluation computes these nodes. Throws. */
nvg_graph *nvg_collect(nvb_arena *a, nvg_node *const *roots, int nroot, nvg_claims *c);
/* ---- small graphs (small.c), in memory of the caller's that need not be initialised */
enum { NVG_SMALL = 96, NVG_SMALL_OPERANDS = 192, NVG_SMALL_NODES = 64, NVG_SMALL_SLOTS = 256 };
typedef struct nvg_small {
  nvg_graph g;
  nvg_claims claims;
  char *data[NVG_SMALL]; /* of each leaf */
  /* ---- what g and the claims are made of */
  nvg_val v[NVG_SMALL];
  nvg_leaf leaf[NVG_SMALL];
  nvg_node *node[NVG_SMALL], *out_node[NVG_SMALL]; /* node: by value, what is pending and no root */
  nvg_node *read[NVG_SMALL_NODES + 1], *computed[NVG_SMALL + 1];
  int out[NVG_SMALL], in[NVG_SMALL_OPERANDS], nin, nattr, depth;
  int64_t attr[2 * NVG_SMALL];
  const nvg_node *of[NVG_SMALL]; /* by value, the node that has it */
  uint8_t slot[NVG_SMALL_SLOTS]; /* by a node's address, 1 + its value */
  struct {
    nvg_node *node;
    int next;
  } stack[NVG_SMALL_NODES + 1];
} nvg_small;
/* Copies what the roots need into s->g, a graph as nvg_simplify would return it, whose values have the same bits. What
   else refers to an inner value makes it an output behind the roots. Returns 1; 0, without claims, if the graph is not
   small, has operations or dtypes that need lowering, or has to wait for another evaluation. The caller drops the
   claims. */
int nvg_small_collect(nvg_small *s, nvg_node *const *root, int nroot);
/* Notes that the graph was computed: marks its nodes that were not kept, and remembers the ones that an earlier
   evaluation did not keep, so that graphs of this structure keep them from now on. Call it before its nodes get their
   values. */
void nvg_computed(const nvg_graph *g);
/* Returns the graph in the planner's language: dtypes legalised, roundings to 16 bits marked, reductions over adjacent
   axes with reduction orders, exact algebra applied, dead code removed. */
nvg_graph *nvg_simplify(nvb_arena *a, const nvg_graph *g);
/* nvg_bf16_terms: how many bfloat16 products a value of such a graph may be split into, as the user allowed
   (nvm_precision); 0: none. nvg_split_bf16: the graph with the GEMMs in `which` (by value: 1) split so, each still one
   GEMM. */
int nvg_bf16_terms(const nvg_graph *g, const nvg_val *v);
nvg_graph *nvg_split_bf16(nvb_arena *a, const nvg_graph *g, const uint8_t *which);
/* nvg_of_bytes: whether a value of such a graph is a GEMM of int8. nvg_with_operands: the graph with GEMMs changed, by
   value: int8 as a GEMM of floats, operands copied to be K-major. No result changes. */
enum { NVG_AS_FLOATS = 1, NVG_TRANSPOSE_LEFT = 2, NVG_TRANSPOSE_RIGHT = 4 };
int nvg_of_bytes(const nvg_graph *g, const nvg_val *v);
nvg_graph *nvg_with_operands(nvb_arena *a, const nvg_graph *g, const uint8_t *how);
/* Returns the graph in which a routine computes histograms that were written as sums of comparisons; g itself if there
   are none. */
const nvg_graph *nvg_in_bins(nvb_arena *a, const nvg_graph *g);
/* By whom a transform is computed: as it is; so too, but NATURAL: its operand is a transform's result, whose dimensions
   stand in another order, and which is stored in the order of what that transform reads; MADE of transforms of complex
   numbers that kernels compute (`has`); by a library, which reads its operand or a packed copy of it. Such a transform
   has the attribute NVG_DFT_OF_LIBRARY. */
typedef enum nvg_dft_way {
  NVG_DFT_AS_IT_IS,
  NVG_DFT_NATURAL,
  NVG_DFT_MADE,
  NVG_DFT_LIBRARY,
  NVG_DFT_LIBRARY_COPY
} nvg_dft_way;
typedef struct nvg_dft_ways {
  const uint8_t *way; /* by value */
  int (*has)(const void *kernels, nvm_dtype t, int64_t points);
  const void *kernels;
} nvg_dft_ways;
enum { NVG_DFT_OF_LIBRARY = 2, NVG_DFT_ATTRS };
nvg_graph *nvg_with_transforms(nvb_arena *a, const nvg_graph *g, const nvg_dft_ways *w);
nvb_hash nvg_graph_hash(const nvg_graph *g); /* of structure, shapes, dtypes and strides of leaves, not of addresses */
void nvg_graph_print(nvb_text *t, const nvg_graph *g);
nvg_graph *nvg_graph_parse(nvb_arena *a, const char *text, const char *where);
void nvg_graph_check(nvb_arena *a, const nvg_graph *g);
#endif
