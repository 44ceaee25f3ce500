/* What the files of the planner share: the planner graph (planner_graph.c), fusions (iexpr.c, fusion.c)
   with their grid and price (cost.c), the search (materialize.c, search.c), and the schedules, kernels and memory of
   the fusions that it chose (schedule*.c, emit*.c, memory.c). Only files of lib/fusion include this header. */
#ifndef NVM_FUSION_PLANNER_H
#define NVM_FUSION_PLANNER_H
#include "fusion/index.h"
#include "fusion/plan.h"

/* The passes of a transform, with these radices. mirrored: they are the same from both ends, so that any transform may
   follow another. */
enum { NVF_PASSES = 3, NVF_BACKWARDS = NVF_PASSES };
typedef struct nvf_passes { int n, radix[NVF_PASSES], mirrored; } nvf_passes;
/* ---- sizes.c: every dimension, offset and stride of a graph as a product of symbols */
typedef struct nvf_sizes {
  nvf_space *space;
  nvf_prod **dim; /* by value and dimension: the extent; 0 (the product 1) where it is 1 */
  /* by value: starts of a SLICE, offsets of a PAD, amount of a ROLL, offset of each operand of a CONCAT */
  nvf_ix **at;
  nvf_prod **stride; /* by leaf and dimension */
  /* by value: the passes of a transform; NULL: of none, or of one that no graph of the planner has met */
  const nvf_passes **passes;
} nvf_sizes;
nvf_sizes *nvf_sizes_of(nvb_arena *a, const nvg_graph *g);
/* signature.c: whether a plan of the graph may serve other sizes */
int nvf_may_serve_others(const nvg_graph *g, const nvb_caps *caps);

/* ---- planner_graph.c: the planner graph */
typedef struct nvf_node {
  nvg_vkind kind;
  nvm_dtype dtype;
  int parts; /* tiles that hold a value: 2 if it is complex, else 1 */
  int rank;
  const nvf_prod *dim;                /* extents, as symbols */
  int64_t size;                       /* elements */
  int nin, *in;                       /* operands */
  const int64_t *attr;                /* those of nvg_val, by kind */
  const nvf_ix *at;                   /* nvf_sizes.at */
  const nvf_prod *stride;             /* LEAF: in elements; -1: the dimension does not count */
  int leaf, chunk, lanes, order_free; /* LEAF: its slot; RED: the reduction order */
  const nvg_frag *frag;
  const uint64_t *init;
  const char *name;
  /* RED: elements of the reduced run that one partial covers; SCAN: elements of a segment, whose last operand carries
     in what lies left of it; 0: the whole run or line */
  int64_t block;
  int chain;                /* SCAN: it is computed one element after the other */
  int narrowed;             /* nvg_val.narrowed */
  const nvf_passes *passes; /* of a transform that a kernel computes; NULL: it is none */
  /* the product of scores of an attention, or a function of it on the way there: no plan stores it */
  int inner;
  int tiled;  /* RED: a partial over the columns, or the rows, of a GEMM's tile */
  int finish; /* RED: it merges partials */
  int out;    /* it is an output of the graph */
  int value;  /* its value in the evaluation graph; a partial and a finish have that of their reduction */
  int must;   /* it can only be read from memory */
  /* no kernel both makes and reads it: RED: a partial that is made in strips; PERMUTE: a transform's result for another
     axis, in the order that suits both */
  int apart;
  int depth;        /* most reductions on a path from the leaves */
  int alternatives; /* operands of concats among which an element is selected */
  /* twice the number of reshapes of moved data on the path from what is stored; odd: data moved since the last
     reshape */
  int transposes;
  int red_depth;    /* fewest reductions on a path from a leaf that no broadcast widens; NVF_FAR: there is none */
  int nuser, *user; /* live nodes that read it */
} nvf_node;
/* A depth-first walk that visits each node once. A graph has one, so walks cannot nest. */
typedef struct nvf_walk { int *stack, n, *met, now; } nvf_walk;
static inline void nvf_walk_start(nvf_walk *w) { w->now++, w->n = 0; }
static inline int nvf_walk_met(const nvf_walk *w, int i) { return w->met[i] == w->now; }
/* returns 1 on the first visit */
static inline int nvf_walk_pass(nvf_walk *w, int i) { return nvf_walk_met(w, i) ? 0 : (w->met[i] = w->now, 1); }
static inline void nvf_walk_to(nvf_walk *w, int i) {
  if (nvf_walk_pass(w, i)) w->stack[w->n++] = i;
}
static inline int nvf_walk_next(nvf_walk *w) { return w->n ? w->stack[--w->n] : -1; }
typedef struct nvf_graph {
  nvb_arena *arena;
  const nvg_graph *g;
  const nvb_caps *caps;
  nvf_sizes *sizes;
  nvf_space *space;
  int n;
  nvf_node *node;   /* in topological order */
  int *out;         /* node of each output */
  int ngemm;        /* number of GEMMs */
  int ntransform;   /* number of transforms that kernels compute */
  const int *of;    /* by value: the GEMM whose elements it maps, see find_gemms of planner_graph.c */
  int capabilities; /* nvf_options.capabilities */
  int general;      /* nvf_options.general */
  nvf_walk walk;
  int *local; /* by node: number in the fusion that structure.c describes */
  /* by node: number of the last trial that had an expression of it; a fusion that is built may try another one */
  int *met[2], trials;
  int64_t built, looked; /* effort of the search: expressions built in all fusions; pairs of groups examined */
} nvf_graph;
/* NVF_TILE_SURE: elements that always fit into a tile: a fourth of the limit, since tile sizes are rounded up */
enum { NVF_TILE_SURE = NVF_TILE_MOST / 4 };
enum { NVF_FEW_COLUMNS = 6 }; /* on a CPU lanes run down this many columns, one column after the other */
enum { NVF_FAR = 1 << 20, NVF_SMALL = 4096 }; /* NVF_SMALL: elements of a reduction that every block may recompute */
/* How long reductions are split: not at all; into partials and a finish; along the rows of another reduction of the
   same source; along the tiles of a GEMM, whose rows are reduced in narrow tiles or in the widest ones. */
enum { NVF_ONE_PASS, NVF_TWO_PASS, NVF_FINE, NVF_TILED, NVF_WIDE };
/* the device that is planned for, and nvf_options.capabilities and general */
typedef struct nvf_machine { const nvb_caps *caps; int capabilities, general; } nvf_machine;
/* whole: by value, reductions that are not split; NULL: all may be */
nvf_graph *nvf_graph_of(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, nvf_machine m, int split, const uint8_t *whole);
/* reductions over different axes share a source, so that NVF_FINE is worth a try */
int nvf_graph_crosses_axes(const nvf_graph *graph);
/* rows or columns of a GEMM are reduced, and longer ones than a tile of `split` (NVF_TILED, NVF_WIDE) has: worth a
   try */
int nvf_graph_reduces_tiles(const nvf_graph *graph, int split);
/* The reason why this reduction is not fused with a GEMM. */
const char *nvf_graph_why_apart(const nvf_graph *graph, const nvf_node *red);
int nvf_alike(const nvf_node *p, const nvf_node *q); /* equal shapes, extents of 1 left out */

/* ---- bf16_forms.c: float32 GEMMs split into bf16, where their precision allows it */
enum { NVF_ALTERNATIVES = 3 };
/* Writes g, then g with the GEMMs split for which the estimate by size and rate is shorter, then g with all GEMMs split
   for which the rates alone are better, if these are more. Returns the number of forms. */
int nvf_alternatives(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvg_graph *out[NVF_ALTERNATIVES]);
/* A line for explain on which GEMMs are split and why; NULL: no GEMM may be. split: NULL, or the best partition with
   splits; taken: it was chosen. */
const char *nvf_bf16_split_print(nvb_arena *a, const struct nvf_partition *whole, const struct nvf_partition *split,
                                 int taken);

/* ---- gemm_forms.c: g with int8 GEMMs in a form that the device multiplies, or as GEMMs of floats where it has none,
   and with tf32 operands copied where that pays. fuse: nvf_options.fuse. */
const nvg_graph *nvf_convert_operands(nvb_arena *a, const nvg_graph *g, nvf_machine m, int fuse);

/* ---- iexpr.c, fusion.c: a fusion */
typedef enum nvf_ikind { NVF_ILOAD, NVF_ICONST, NVF_IINDEX, NVF_ITEST, NVF_IMAP, NVF_ISELECT, NVF_ISAME, NVF_IRED,
  NVF_IPICK,
  NVF_ISCAN,
  NVF_IDOT,
  NVF_IDFT
} nvf_ikind;
typedef struct nvf_bound { nvf_ix e; nvf_prod n; } nvf_bound;             /* 0 <= e < n */
typedef struct nvf_guard { int n; const nvf_bound *b; } nvf_guard;
typedef struct nvf_iexpr {
  nvf_ikind kind;
  int node;       /* the node that it loads or computes */
  uint64_t axes;  /* bit set of the axes that its value depends on */
  int narg, *arg; /* operands: numbers of expressions */
  nvf_ix at;      /* LOAD: address in elements; INDEX: its value */
  int guard;      /* LOAD, TEST: number of the guard; 0: none */
  int axis;       /* RED, SCAN, DOT, DFT: the axis that it reduces, scans or transforms */
  int pick;       /* PICK: number of the state */
} nvf_iexpr;
/* The store of a root, or of a part of one. */
typedef struct nvf_put { int node; nvf_ix at; uint64_t axes; int expr; } nvf_put;
/* A run-time check: expr must be in [0, n) where the guard holds. For the message: op indexes along its axis `of`. */
typedef struct nvf_check { int expr; nvf_prod n; int guard; uint64_t axes; const char *op; int64_t of; } nvf_check;
/* An axis: its extent as a product of symbols and as a number. extent 0: the axis was collapsed into another one. */
typedef struct nvf_axis { nvf_prod extent; int64_t n; } nvf_axis;
/* The GEMMs of a kernel, each a sum over k of a(batch, m, k) * b(batch, k, n); the second and third share an operand
   with another one. Each prologue has layouts of its own, so an expression may be needed in several regions. */
/* regions: the epilogue, and the prologue of each operand */
enum { NVF_DOTS = 3, NVF_EPILOGUE = 0, NVF_REGIONS = 2 + NVF_DOTS };
typedef struct nvf_dot {
  int count, expr[NVF_DOTS];               /* the GEMMs, as expressions */
  int m, n, k;                             /* axes; -1: the extent is 1 */
  int region[NVF_DOTS][2], nregion;        /* region of the left and the right operand */
  int of[NVF_REGIONS], right[NVF_REGIONS]; /* by region: the operand's expression, and whether it is a right operand */
  int f8;                                  /* the operands are 8-bit floats that the graph upcasts */
  const uint8_t *regions;                  /* by expression: bit set of the regions that need it */
} nvf_dot;
/* the axis of a region's operand that is not k */
static inline int nvf_side(const nvf_dot *d, int region) { return d->right[region] ? d->n : d->m; }
/* An attention: the product of the softmax of scores, which are functions of another product, with values. The kernel
   walks the keys, and a tile of scores exists in registers alone. Axes: m, of queries; n, of the columns of values and
   of the result; k, of keys; depth, over which the first product sums. */
typedef struct nvf_attention {
  int m, n, k, depth;
  int first, second;      /* the two products, as expressions */
  int of[NVF_REGIONS];    /* by region: its expression */
  const uint8_t *regions; /* by expression: bit set of the regions that need it */
} nvf_attention;
enum { NVF_QUERIES = NVF_EPILOGUE + 1, NVF_KEYS, NVF_VALUES, NVF_ATTENDED, NVF_PARTS_OF_ATTENTION };
/* The transforms of a kernel, all along one axis and in the same passes. Of real numbers it is that of complex ones, of
   which only a half is needed. An inverse transform takes the passes in the opposite order, so that it may follow a
   forward one. */
enum { NVF_TRANSFORMS = 8 };
typedef struct nvf_transforms {
  int count, expr[NVF_TRANSFORMS]; /* as expressions */
  int axis, from; /* that of the results and that of the operands, which have one of their own if they are real */
  int64_t points;
  nvf_passes passes;
  int reversed;           /* whether the first of them takes the passes from the last to the first */
  int stages;             /* transforms one after the other */
  const uint8_t *stage;   /* by expression: transforms before it, with itself */
  const uint16_t *needed; /* by expression: bit set of the stages that need it */
} nvf_transforms;
typedef struct nvf_fusion {
  nvf_graph *graph;
  int nroot;
  const int *root; /* the nodes that it stores */
  NVB_VEC(nvf_axis) axis;
  NVB_VEC(nvf_iexpr) expr;  /* operands come before their users */
  NVB_VEC(nvf_guard) guard; /* number 0: no condition */
  NVB_VEC(nvf_put) put;     /* its stores */
  NVB_VEC(nvf_bound) valid; /* conditions of the whole kernel: they fail in the padding of splits */
  NVB_VEC(nvf_check) check;
  uint64_t reduced;           /* bit set of reduced axes */
  nvf_dot *dot;               /* NULL: it has no GEMM */
  nvf_attention *attention;   /* NULL: it has none */
  nvf_transforms *transforms; /* NULL: it has none */
  int over;                   /* 1 + the node in whose memory its only root, a write, stores its part; 0: none */
  int routine;                /* a routine makes its only root: it has no axes, one load and one store */
  /* cost.c */
  double time;                              /* ns */
  uint64_t grid;                            /* grid axes: each block has one coordinate or one tile of coordinates */
  double blocks;                            /* number of blocks, estimated before the schedule chooses tiles */
  int64_t bytes_read, bytes_written, flops; /* of one run; flops: operations */
  int own;                                  /* see nvf_gemm.own */
  int half;                                 /* see nvf_gemm.half */
  const char *unsupported;                  /* see nvf_gemm.unsupported; NULL unless own */
  int nread, *read;                         /* nodes that it loads, ascending */
  int code;                                 /* see nvf_most_code */
  const nvf_knobs *knobs;                   /* knobs that override its schedule's rules; NULL: none */
} nvf_fusion;
/* The fusion of these roots, priced; NULL if they cannot share a kernel, and *why is the reason. stored: bit set of the
   nodes that are materialised. */
nvf_fusion *nvf_fusion_new(nvf_graph *graph, const int *root, int nroot, const uint64_t *stored, const char **why);

/* The most code of a kernel, which bounds the time to compile it: on a GPU expressions; on a CPU, where LLVM takes a
   quarter to half of a millisecond for each, simple operations. */
static inline int nvf_most_code(const nvf_graph *graph) { return graph->caps->kind == NVB_CPU ? 384 : 1024; }

/* ---- structure.c: a hash of what the fusion is made of; fusions of one structure are legal alike, and have one
   price. coarse: sizes count by their powers of two, and places in an array do not count: the fusions are much the
   same. */
nvb_hash nvf_structure_of(nvf_graph *graph, int n, const int *root, const uint64_t *stored, int coarse);

/* ---- gemm.c: the GEMM descriptor of a kernel. step: NULL, or the emitted step, whose parameters the descriptor then
   names. */
nvf_gemm *nvf_gemm_of(const nvf_fusion *k, const nvf_step *step, const int *buf_of);
int nvf_gemm_supported(const nvf_gemm *p, int capabilities);
/* gemm_half.c: the time of half a symmetric product as a part of that of the whole, and its levels; 1 and 0: it is not
   faster. rate: of the library, in operations per ns. */
double nvf_half_fraction(const nvf_gemm *p, const nvb_caps *c, double rate, int *levels);
/* gelu.c: the expression x such that expression i is the tanh form of GELU(x), written out by the user (narrow: with
   16-bit constants); -1: there is none. */
int nvf_gelu_of(const nvf_fusion *k, int i, int narrow);

/* ---- attention.c */
/* The graph with attention as calls, if a kernel of the device can compute each of them; else g itself. */
const nvg_graph *nvf_find_attention(nvb_arena *a, const nvg_graph *g, nvf_machine m);
int nvf_is_attention(const nvf_graph *graph, const nvf_node *n);
void nvf_mark_inner(nvf_graph *graph); /* sets nvf_node.inner */
/* Whether a mask of positions hides the keys behind query + *more from each query, so that their scores are -inf. */
int nvf_is_causal(const nvf_fusion *k, int64_t *more);

/* ---- transform.c */
/* The passes of a transform that kernels compute on this device; n 0: a routine or a library does, or it is none. */
nvf_passes nvf_passes_of(const nvg_val *v, const nvb_caps *caps);
/* Whether blocks of this GPU transform so many points of complex type t. */
int nvf_blocks_transform(int64_t points, nvm_dtype t, const nvb_caps *caps);
void nvf_passes_print(nvb_text *t, const nvf_passes *p);
/* transform_ways.c: the graph with transforms rewritten for whoever computes them; g itself on a CPU */
const nvg_graph *nvf_choose_transforms(nvb_arena *a, const nvg_graph *g, nvf_machine m);
void nvf_transforms_print(nvb_text *t, const nvf_plan *p); /* a line for each on a GPU: who computes it, and why */
const char *nvf_transform_stages(nvf_fusion *k); /* sets the stages; returns why the kernel is impossible, else NULL */

/* ---- schedule_transform.c: instructions of a GPU's warp for a transform in these passes, by estimate, and the points
   that a thread holds; 0: no block computes it */
double nvf_passes_cost(const nvf_passes *p, int64_t points, int *items);

/* ---- cost.c, cost_gemm.c */
void nvf_assess(nvf_fusion *k); /* sets grid, price and traffic */
void nvf_assess_gemm(nvf_fusion *k);
void nvf_assess_attention(nvf_fusion *k);    /* cost_attention.c */
int nvf_lane_axis(const nvf_fusion *k);      /* the axis along which most bytes are contiguous; -1: none */
int64_t nvf_lane_tile(const nvb_caps *caps); /* elements of the lane axis in a block that reduces another axis */
double nvf_elements(const nvf_fusion *k, uint64_t axes); /* elements of a tile that has these axes */
double nvf_bytes_stored(const nvf_fusion *k);            /* bytes that the kernel writes */
static inline int nvf_is_transformed(const nvf_fusion *k, int axis) {
  return k->transforms && (k->transforms->axis == axis || k->transforms->from == axis);
}
static inline uint64_t nvf_all_axes(const nvf_fusion *k) { return k->axis.n == 64 ? ~0ull : (1ull << k->axis.n) - 1; }

/* ---- materialize.c: the values that a plan may store */
/* by node, 1: a plan may store it; fuse 0: all values but views */
uint8_t *nvf_may_be_stored(nvf_graph *graph, int fuse);
/* a node to store because no kernel can compute root; -1: there is none */
int nvf_materialize_between(nvf_graph *graph, const uint64_t *stored, int root);

/* ---- sections.c: by node, the section of the graph that it belongs to, ascending; all 0: the graph is not divided.
   Marks values that have to be stored because they pass from one to another. */
int *nvf_sections_of(const nvf_graph *graph, uint8_t *store);

/* ---- search.c: the n fusions of a graph. step: by fusion; fusions of one step become parts of one grid. time: ns. */
typedef struct nvf_partition { nvf_graph *graph; int n, nstep; nvf_fusion **k; int *step; double time; int ncut;
  nvf_cut *cut;
  const char *bf16_note; /* nvf_plan.bf16_note */
} nvf_partition;
/* A vetoed kernel: the roots that it made, and the values of other kernels that it loaded, both as nvf_mark_of. */
typedef struct nvf_rejection { const char *why; int nmade, *made, nread, *read; } nvf_rejection;
typedef struct nvf_rejections { int n; nvf_rejection *at; } nvf_rejections;
int nvf_mark_of(const nvf_node *n); /* identifies a node in every planner graph of one evaluation graph */
nvf_partition *nvf_search(nvf_graph *graph, int fuse, const nvf_rejections *no);

/* ---- schedule*.c: tiles, layouts, hints */
/* The digits of an axis, lowest first. at: stride in the lane or warp number; 0: after the digits so far. */
typedef struct nvf_digits { int n; struct { char level; int at; int64_t n; } d[NVF_MAX_DIGITS]; } nvf_digits;
typedef struct nvf_placement {
  int64_t tile;          /* extent in the tile; 0: the axis is a grid axis only */
  int tiled;             /* a grid axis with a tile: coordinate = block * tile + axis */
  int walk;              /* a loop of the kernel text over tiles, for a scan with carry: coordinate = variable + axis */
  int64_t segment;       /* of a walk: coordinates that one block walks; 0: all */
  nvf_digits digits;     /* of the tile's extent */
  nvf_digits transposed; /* the same for tiles of transposed accesses, which a relayout follows or precedes */
  /* of an axis that is reduced in any order, and of the keys of attention: elements that are lanes of the reduction
     order, the rest is sequential; 0: default */
  int64_t beside;
} nvf_placement;
typedef struct nvf_tiling {
  int width;             /* CPU: vector lanes of this kernel */
  int lane;              /* the lane axis; -1: there is none */
  uint64_t lanes;        /* further axes with lanes; no tile has two of the axes with lanes */
  int transposed;        /* the axis along which transposed accesses are contiguous; -1: there are none */
  int mirror;            /* hint of the kernel: some buffer is read both contiguously and transposed */
  nvf_placement *at;     /* by axis */
  int order[64], norder; /* tile axes, outermost loop first */
  uint64_t loops;        /* axes with emitted loops */
  int once;              /* tiles with all reduced axes are loaded once, as columns */
  int64_t prefetch;      /* blocks ahead for which loads that a block waits for are prefetched; 0: none */
  int bulk;              /* one instruction of a block prefetches them */
  unsigned pairs;        /* of transforms: bit set of the passes in whose layouts threads have neighbours in memory */
  int part_of_line;      /* its columns are narrower than a line of memory, which other blocks complete */
  /* of a kernel with a GEMM, whose at[] above belongs to the accumulator and the epilogue */
  struct nvf_tiling *prologue[NVF_REGIONS]; /* by region: the shape of an operand's prologue */
  int put[2];                               /* of a prologue: the two axes of its shared tile, slowest first */
  /* blocks of a cluster that divide the k-tiles and add up their sums; 1: no split-K. With split-K at[].transposed
     belongs to the accumulator and at[].digits to the epilogue. */
  int64_t split_k;
  nvm_dtype operand; /* dtype of the operands in shared memory; 8-bit ones keep their own */
  int mma, stages, warp_specialize, stream_k, keep_operand; /* hints of contract and for; 0: none */
  /* hints of the kernel: CTAs of an SM, rows of tiles that are rastered together; 0: none */
  int blocks, raster;
  int tma_store; /* the axis along which results are stored by TMA; -1: they are not */
  /* of a kernel with transforms, by pass: the digits of each digit of the points, and those of the axis `batch` (-1:
     none), along which a block has several transforms. Number NVF_BACKWARDS: of the pass in the middle of three, where
     they are taken from the last to the first, if `turns`. */
  nvf_digits point[NVF_BACKWARDS + 1][NVF_PASSES], several[NVF_BACKWARDS + 1];
  int turns;
  int batch;
} nvf_tiling;
static inline int64_t nvf_knob_value(const nvf_fusion *k, nvf_knob i, int64_t otherwise) {
  return k->knobs && k->knobs->set >> i & 1 ? k->knobs->value[i] : otherwise;
}
/* The tile of a block of a GEMM. split_k: blocks of a cluster that divide its k-tiles; stream_k: the hint, whose joins
   cost join_time ns; stages: of the pipeline, if an operand is kept in it from tile to tile, which needs at most
   NVF_SHORT k-tiles. */
enum { NVF_SHORT = 4 };
typedef struct nvf_gemm_tiling { int64_t m, n, k, split_k; int stream_k, stages; double join_time; } nvf_gemm_tiling;
nvf_gemm_tiling nvf_gemm_tile(const nvf_fusion *k); /* the tile that nvf_tiling_gemm uses */
/* ns that split-K adds for a tile of so many elements: the blocks of a cluster synchronise and exchange their sums
   through DSMEM. */
double nvf_split_k_time(const nvf_fusion *k, int64_t elements);
/* schedule_tensor_core.c: the fraction of its class's generated rate that it reaches; 0: it cannot use tensor cores */
double nvf_tensor_reach(const nvf_fusion *k);
/* the dtype that tensor cores multiply: the operands' own; 8-bit floats may become f16 */
nvm_dtype nvf_tensor_operand(const nvf_fusion *k);
/* whether the operand is contiguous along its other axis, not along k */
int nvf_tensor_is_mn_major(const nvf_fusion *k, int region);
/* columns of the widest tile of such operands; 0: tensor cores do not multiply them */
int64_t nvf_tensor_columns(const nvb_caps *caps, nvm_dtype operands, int64_t precision);
int64_t nvf_gemm_columns(const nvb_caps *caps, nvm_dtype sum); /* columns of a block that reduces its rows */
/* rows of a block that reduces its columns; 0: it cannot */
int64_t nvf_gemm_rows(const nvb_caps *caps, nvm_dtype operands);
/* The axis (m or n) that a block reduces within its tile; the axis before it numbers the tiles. -1: neither. */
int nvf_gemm_reduced_axis(const nvf_fusion *k);
/* the accumulators of all its GEMMs do not fit into a GPU thread's registers */
int nvf_gemm_spills(const nvf_fusion *k);
nvf_tiling *nvf_tiling_gemm(nvf_fusion *k);
nvf_tiling *nvf_tiling_transform(nvf_fusion *k);    /* schedule_transform.c */
nvf_tiling *nvf_tiling_attention(nvf_fusion *k);    /* schedule_attention.c */
int64_t nvf_attention_queries(const nvf_fusion *k); /* of a block, when the grid is known */
/* Elements of the longest vectors whose tiles are on chip together, up to `most`. */
int64_t nvf_attention_head(const nvb_caps *c, int64_t most);
void nvf_collapse(nvf_fusion *k);
nvf_tiling *nvf_tiling_of(nvf_fusion *k);
int nvf_is_kept_whole(const nvf_fusion *k, int a, int lane); /* whether a block of a CPU has the whole of grid axis a */
uint64_t nvf_lanes_cpu(const nvf_fusion *k);        /* axes with the lanes of CPU vectors; no layout has two of them */
int nvf_sums_in_memory(const nvf_fusion *k, int a); /* whether a CPU keeps accumulators of sums along a in memory */
const char *nvf_why_rejected(nvf_fusion *k); /* the reason why the device can have no kernel for it; NULL: it can */
int64_t nvf_params(const nvf_fusion *k);     /* upper bound of its launch arguments */
/* Whether the node is a Python scalar that each call passes: a launch argument of a GPU kernel, not memory. */
int nvf_is_argument(const nvf_graph *graph, const nvf_node *n);
int nvf_pointers(const nvf_fusion *k); /* number of its buffers, read or written */
/* launch arguments of a GPU kernel: 4 KB of 8 bytes each, less some that the emitter adds */
enum { NVF_MOST_PARAMS = 480 };
int *nvf_order(const nvf_fusion *k, const nvf_tiling *s); /* the expressions in the order of their statements */
void nvf_red_order_of(const nvf_fusion *k, const nvf_tiling *s, const nvf_iexpr *red, nvf_red_order *out);
/* whether an expression that uses the reduction's result has the reduced axis again */
int nvf_returns(const nvf_fusion *k, int red);
/* whether the axis' extent is a literal of the kernel text, as that of a split's partial is */
int nvf_is_exact(const nvf_fusion *k, int axis);
/* Whether an access at this address is contiguous along s->transposed, so that the lanes stride over memory. */
int nvf_is_transposed_access(const nvf_fusion *k, const nvf_tiling *s, nvf_ix at);
/* Hints of a load or store on a GPU, 0 where there is none. guard: of a load; transposed: the tile has the digits
   s->at[].transposed. */
typedef struct nvf_access { nvf_ix at; int guard, node, transposed, store, pass; uint64_t axes; } nvf_access;
typedef struct nvf_access_hints { int vec, whole, stream, tma, bulk; int64_t prefetch; } nvf_access_hints;
nvf_access_hints nvf_access_hints_of(const nvf_fusion *k, const nvf_tiling *s, const nvf_access *m);
/* Of index expression `index`, on a GPU: values in a row that share a counter, the first a multiple of their number; 0:
   none do. */
int nvf_consecutive(const nvf_fusion *k, const nvf_tiling *s, int index);

/* ---- emit.c: the step of n fusions, one part of the grid each; memory.c */
void nvf_emit(const nvf_plan *p, nvf_step *step, int n, nvf_fusion *const *k, nvf_tiling *const *s, const int *buf_of,
              const char *name);
/* emit_routine.c: the step of a fusion that is a routine */
void nvf_emit_routine(const nvf_plan *p, nvf_step *step, const nvf_fusion *k, const int *buf_of);
void nvf_memory(nvf_plan *p, nvf_partition *c, int *buf_of, int *twin); /* buffers, lifetimes, offsets, donation */

/* emit.c: nvf_step.grain, from its blocks and estimates */
int64_t nvf_grain(const nvf_step *s, const nvb_caps *c);
void nvf_place_temporaries(nvf_plan *p);                 /* the offset of every temporary, by bytes and lifetimes */
void nvf_find_strips(nvf_plan *p, const nvb_caps *caps); /* steps of a CPU that run in strips (strips.c) */

static inline int nvf_reads(const nvf_fusion *k, int node) {
  int lo = 0, hi = k->nread;
  while (lo < hi)
    if (k->read[(lo + hi) / 2] < node) lo = (lo + hi) / 2 + 1;
    else hi = (lo + hi) / 2;
  return lo < k->nread && k->read[lo] == node;
}
/* Operands of a map become expressions in this order: those with few reductions first and broadcast ones last, so that
   reductions find axes to take. */
static inline int nvf_is_sooner(const nvf_node *x, const nvf_node *y) {
  return x->red_depth != y->red_depth ? x->red_depth < y->red_depth : x->depth < y->depth;
}
static inline int nvf_has(const uint64_t *set, int i) { return (int)(set[i >> 6] >> (i & 63) & 1); }
static inline void nvf_put_bit(uint64_t *set, int i) { set[i >> 6] |= 1ull << (i & 63); }
/* Number of states that a reduction or scan merges: its operands without the carry of a segmented scan. */
static inline int nvf_states(const nvf_node *n) { return n->nin - (n->kind == NVG_VSCAN && n->block); }
static inline int nvf_is_red(const nvf_iexpr *v) { return v->kind == NVF_IRED || v->kind == NVF_ISCAN; }
static inline int nvf_is_made(const nvf_node *n) { /* computed by an operation, not read from another place */
  return n->kind == NVG_VMAP || n->kind == NVG_VPAD || n->kind == NVG_VCONCAT || n->kind == NVG_VGATHER;
}
/* Whether it is an array of which a part was written. */
static inline int nvf_is_write(const nvf_graph *graph, const nvf_node *n) {
  return n->kind == NVG_VPAD && graph->node[n->in[1]].rank > 0;
}
/* The node that a write on a CPU may store over, if it is in memory, because nothing else reads it, and the part is so
   small that it pays; -1: there is none. */
static inline int nvf_may_overwrite(const nvf_graph *graph, const nvf_node *n) {
  const nvf_node *base = nvf_is_write(graph, n) ? &graph->node[n->in[1]] : NULL;
  int dies = base && base->nuser == 1 && !base->out && base->kind != NVG_VLEAF && base->dtype == n->dtype;
  return dies && graph->caps->kind == NVB_CPU && graph->node[n->in[0]].size <= n->size / 4 ? n->in[1] : -1;
}
static inline int nvf_is_view(nvg_vkind k) { return k >= NVG_VRESHAPE && k <= NVG_VROLL; }
static inline const nvg_val *nvf_behind_views(const nvg_graph *g, int i) { /* the value behind all views */
  while (nvf_is_view(g->v[i].kind)) i = g->v[i].in[0];
  return &g->v[i];
}
#endif
