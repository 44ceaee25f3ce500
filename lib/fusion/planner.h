/* What the files of the planner share: the planner graph (planner_graph.c), fusion candidates (iexpr.c, candidate.c)
   with their grid and price (cost.c), the search (materialize.c, search.c), and the schedules, kernels and memory of
   the fusions that it chose (schedule*.c, emit*.c, memory.c). Only files of lib/fusion include this header. */
#ifndef NVM_FUSION_PLANNER_H
#define NVM_FUSION_PLANNER_H
#include "fusion/index.h"
#include "fusion/plan.h"

/* ---- sizes.c: every dimension, offset and stride of a graph as a product of symbols */
typedef struct nvf_sizes {
  nvf_space *space;
  nvf_prod **dim;    /* by value: extents; 0 (the product 1) where the extent is 1 */
  nvf_ix **at;       /* by value: SLICE starts, PAD offsets, ROLL amount, CONCAT offset of each operand */
  nvf_prod **stride; /* by leaf */
} nvf_sizes;
nvf_sizes *nvf_sizes_of(nvb_arena *a, const nvg_graph *g);

/* ---- planner_graph.c: the canonical graph */
typedef struct nvf_node {
  nvg_vkind kind;
  nvm_dtype dtype;
  int parts; /* tiles of a value: 2 for complex */
  int rank;
  const nvf_prod *dim;
  int64_t size;
  int nin, *in;
  const int64_t *attr;
  const nvf_ix *at;
  const nvf_prod *stride; /* LEAF */
  int leaf, chunk, lanes, order_free;
  const nvg_frag *frag;
  const uint64_t *init;
  const char *name;
  int64_t block;    /* RED: elements of a partial's piece of the reduced run; SCAN: of a segment, which goes on
                              from what its last operand has of the blocks before; 0: all of it */
  int chain;        /* SCAN: of one element after the other */
  int half;         /* nvg_val.half */
  int tiled;        /* RED: a partial over the columns, or the rows, that a block of a product makes */
  int finish;       /* RED: merges partials */
  int out;          /* an output of the graph */
  int value;        /* of the graph; what a partial and a finish stand for too */
  int must;         /* can only be read from memory */
  int depth;        /* reductions on the way from the leaves */
  int alternatives; /* between which an element is chosen (concat) */
  int transposes; /* twice the reshapes of what was moved, on the way from what is stored; odd: moved since the last */
  int near;       /* the fewest of them on a way that no broadcast widens; NVF_FAR where there is no such way */
  int nuser, *user;
} nvf_node;
/* A walk over nodes, each once; one at a time. */
typedef struct nvf_walk { int *stack, n, *met, now; } nvf_walk;
static inline void nvf_walk_start(nvf_walk *w) { w->now++, w->n = 0; }
static inline int nvf_walk_met(const nvf_walk *w, int i) { return w->met[i] == w->now; }
/* 1: the first time */
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
  int ngemm;        /* values that are matrix products */
  const int *of;    /* by value: planner_graph.c's, which product it is made of */
  int capabilities; /* nvf_options.offers */
  nvf_walk walk;
  int64_t built, looked; /* what a search costs: expressions of all candidates; pairs of groups that it looked at */
} nvf_graph;
/* NVF_TILE_SURE: elements that a tile is sure to hold: a fourth of its most, since sizes are rounded up */
enum { NVF_TILE_SURE = NVF_TILE_MOST / 4 };
enum { NVF_FAR = 1 << 20, NVF_SMALL = 4096 }; /* NVF_SMALL: elements that a reduction may take again in every block */
/* Long reductions: as they are; partials and a finish; along a neighbour's rows; those of a product along its tiles, of
   rows along narrow ones or the widest */
enum { NVF_ONE_PASS, NVF_TWO_PASS, NVF_FINE, NVF_TILED, NVF_WIDE };
/* what is planned for; nvf_options.offers */
typedef struct nvf_machine { const nvb_caps *caps; int capabilities; } nvf_machine;
/* whole: by value, reductions that stay together; NULL: none has to */
nvf_graph *nvf_graph_of(nvb_arena *a, const nvg_graph *g, nvf_sizes *z, nvf_machine m, int split, const uint8_t *whole);
/* reductions over different axes share a source: try NVF_FINE too */
int nvf_graph_crosses_axes(const nvf_graph *graph);
/* rows or columns of a product are reduced, by what `split` takes at a time: try it too (NVF_TILED, NVF_WIDE) */
int nvf_graph_reduces_tiles(const nvf_graph *graph, int split);
/* Why this reduction is not in one kernel with a product. */
const char *nvf_graph_why_apart(const nvf_graph *graph, const nvf_node *red);
int nvf_alike(const nvf_node *p, const nvf_node *q); /* one shape, but for extents of 1 */

/* ---- bf16_forms.c: products of float32 as ones of bfloat16, where their precision allows it */
enum { NVF_ALTERNATIVES = 3 };
/* g, then with the products split into bf16 that their sizes speak for, and with all that the device's rates speak for,
   where there are any, and more: how many. */
int nvf_alternatives(nvb_arena *a, const nvg_graph *g, const nvb_caps *caps, const nvg_graph *out[NVF_ALTERNATIVES]);
/* What becomes of them and why, for people; NULL: there are none. pieces: NULL, or the best plan with pieces; taken: it
   is that one. */
const char *nvf_bf16_split_print(nvb_arena *a, const struct nvf_partition *whole, const struct nvf_partition *split,
                                 int taken);

/* ---- gemm_forms.c: g with products of integers of 8 bits as the device multiplies them, or as products of floats
   where it does not, and with operands of tf32 copied where that pays; fuse: nvf_options.fuse */
const nvg_graph *nvf_convert_operands(nvb_arena *a, const nvg_graph *g, nvf_machine m, int fuse);

/* ---- iexpr.c, candidate.c: a fusion candidate */
typedef enum nvf_ikind { NVF_ILOAD, NVF_ICONST, NVF_IINDEX, NVF_ITEST, NVF_IMAP, NVF_ISELECT, NVF_ISAME, NVF_IRED,
  NVF_IPICK,
  NVF_ISCAN,
  NVF_IDOT
} nvf_ikind;
typedef struct nvf_bound { nvf_ix e; nvf_prod n; } nvf_bound;             /* 0 <= e < n */
typedef struct nvf_guard { int n; const nvf_bound *b; } nvf_guard;
typedef struct nvf_iexpr {
  nvf_ikind kind;
  int node; /* CONST, LOAD: whose value; MAP, RED, SCAN, PICK, DOT: which */
  uint64_t axes;
  int narg, *arg;
  nvf_ix at; /* LOAD: address in elements; INDEX: the value */
  int guard; /* LOAD, TEST; 0: none */
  int axis;  /* RED, SCAN, DOT */
  int pick;
} nvf_iexpr;
typedef struct nvf_put { int node; nvf_ix at; uint64_t axes; int expr; } nvf_put; /* a stored root, or a part of one */
/* An index that has to be in [0, n) where the guard holds; op: who asks for it, of which axis. */
typedef struct nvf_check { int expr; nvf_prod n; int guard; uint64_t axes; const char *op; int64_t of; } nvf_check;
typedef struct nvf_axis { nvf_prod extent; int64_t n; } nvf_axis;
/* The matrix products of a kernel, one sum over k of a(batch, m, k) * b(batch, k, n) each; further ones have an operand
   of another. What is computed for an operand has places of its own, so an expression may be wanted in several
   regions. */
/* regions: the epilogue, and one of each operand */
enum { NVF_DOTS = 3, NVF_EPILOGUE = 0, NVF_REGIONS = 2 + NVF_DOTS };
typedef struct nvf_dot {
  int count, expr[NVF_DOTS];
  int m, n, k;                             /* axes, -1: of extent 1 */
  int region[NVF_DOTS][2], nregion;        /* of the left and the right operand */
  int of[NVF_REGIONS], right[NVF_REGIONS]; /* by region: the operand, and whether it is a right one */
  int f8;                                  /* the operands are floats of 8 bits, which the graph converts first */
  const uint8_t *regions;                  /* by expression: bits */
} nvf_dot;
/* the operand's axis beside k */
static inline int nvf_side(const nvf_dot *d, int region) { return d->right[region] ? d->n : d->m; }
typedef struct nvf_fusion {
  nvf_graph *graph;
  int nroot;
  const int *root;
  NVB_VEC(nvf_axis) axis;
  NVB_VEC(nvf_iexpr) expr;
  NVB_VEC(nvf_guard) guard;
  NVB_VEC(nvf_put) put;
  NVB_VEC(nvf_bound) valid; /* padding of splits: fails for the whole kernel */
  NVB_VEC(nvf_check) check;
  uint64_t reduced; /* axes that some reduction takes */
  nvf_dot *dot;     /* NULL: no product in it */
  int routine;      /* its only root is made by a routine: it has no axes, one load and one store */
  /* cost.c */
  double time;   /* ns */
  uint64_t grid; /* axes with a block per coordinate (or per piece of it) */
  double blocks; /* estimate, before tiles are cut */
  int64_t bytes_read, bytes_written, flops;
  int own;                 /* of a product: nvf_gemm.own */
  const char *unsupported; /* of a product that its own kernel is to make: nvf_gemm.beyond */
  int nread, *read;        /* nodes it loads, ascending */
  const nvf_knobs *knobs;  /* what its schedule is told; NULL: nothing */
} nvf_fusion;
/* With its price; NULL if the roots cannot share a kernel, *why then says so. stored: bit set of nodes kept in
   memory. */
nvf_fusion *nvf_fusion_new(nvf_graph *graph, const int *root, int nroot, const uint64_t *stored, const char **why);

/* ---- gemm.c: a kernel's product as a GEMM of plan.h. step: NULL, or the kernel that was made of it, for
   parameters. */
nvf_gemm *nvf_gemm_of(const nvf_fusion *k, const nvf_step *step, const int *buf_of);
int nvf_gemm_supported(const nvf_gemm *p, int capabilities);
/* gelu.c: the expression of which another one is GELU by tanh, as written out by the user (narrow: with numbers of 16
   bits); -1: there is none. */
int nvf_gelu_of(const nvf_fusion *k, int i, int narrow);

/* ---- cost.c, cost_gemm.c */
void nvf_assess(nvf_fusion *k); /* roles and price */
void nvf_assess_gemm(nvf_fusion *k);
int nvf_lane_axis(const nvf_fusion *k);      /* along which most bytes are contiguous; -1 if there is none */
int64_t nvf_lane_tile(const nvb_caps *caps); /* elements of a kept lane axis in one block under a reduction */
double nvf_elements(const nvf_fusion *k, uint64_t axes); /* of what has these axes */
double nvf_bytes_stored(const nvf_fusion *k);            /* bytes that it writes */
static inline uint64_t nvf_all_axes(const nvf_fusion *k) { return k->axis.n == 64 ? ~0ull : (1ull << k->axis.n) - 1; }

/* ---- materialize.c: which values a plan may keep in memory */
uint8_t *nvf_materialize_candidates(nvf_graph *graph, int fuse); /* by node; fuse 0: all values but views */
/* a node to be stored where root has no kernel; -1: there is none */
int nvf_materialize_between(nvf_graph *graph, const uint64_t *stored, int root);

/* ---- search.c: groups of roots, one kernel each; kernels of one step are parts of one grid */
typedef struct nvf_partition { nvf_graph *graph; int n, nstep; nvf_fusion **k; int *step; double time; int ncut;
  nvf_cut *cut;
  const char *bf16_note; /* nvf_plan.pieces */
} nvf_partition;
/* A kernel that somebody would not take: what it made and what it loaded that others make, by nvf_mark_of. */
typedef struct nvf_rejection { const char *why; int nmade, *made, nread, *read; } nvf_rejection;
typedef struct nvf_rejections { int n; nvf_rejection *at; } nvf_rejections;
int nvf_mark_of(const nvf_node *n); /* of a node in each net of its graph */
nvf_partition *nvf_search(nvf_graph *graph, int fuse, const nvf_rejections *no);

/* ---- schedule*.c: places of axes, digits, hints */
/* Of an axis, lowest first. at: stride in the lane or warp number; 0: the running one */
typedef struct nvf_digits { int n; struct { char level; int at; int64_t n; } d[NVF_MAX_DIGITS]; } nvf_digits;
typedef struct nvf_placement {
  int64_t tile;          /* extent in the tile; 0: a grid axis only */
  int cut;               /* grid and tile: coordinate = block * tile + axis */
  int walk;              /* tile and a loop of the text: coordinate = variable + axis; of a scan that carries on */
  int64_t segment;       /* of a walk: coordinates that a block goes along; 0: all */
  nvf_digits digits;     /* of the tile's extent */
  nvf_digits transposed; /* the same for tiles that are read or written across the lanes: they go through a relayout */
  /* of an axis that is reduced in any order: neighbours side by side, the rest in sequence; 0: as usual */
  int64_t beside;
} nvf_placement;
typedef struct nvf_shape {
  int width; /* CPU: lanes of a vector here */
  int lane;
  uint64_t lanes; /* further axes that have lanes, never together with that one or with each other */
  int transposed; /* the axis along which memory runs that the lanes cross; -1 */
  int mirror;     /* hint of the kernel: some buffer is read along its lines and across them */
  nvf_placement *at;
  int order[64], norder; /* tile axes, outermost loop first */
  uint64_t loops;        /* axes with emitted loops */
  int once;              /* what has all of the reduced axes is loaded once: columns */
  int64_t prefetch;      /* blocks: loads of tiles that a block waits for are prefetched so far; 0: not */
  /* of a kernel with a product: at[] above is of the sum and the epilogue */
  struct nvf_shape *prologue[NVF_REGIONS]; /* of what is computed for an operand */
  int put[2];                              /* of a prologue: axes of its shared tile, slowest first */
  int64_t split_k;   /* blocks of a cluster that take the k-tiles in turn and add up their sums; 1: none. Then
                          at[].across is of the sums, at[].digits of the epilogue */
  nvm_dtype operand; /* operands are put as this; of 8 bits: each as it is */
  int mma, stages, warp_specialize, stream_k, keep_operand; /* hints of contract and for (share: stream_k); 0: none */
  int blocks, raster;                                       /* hints of the kernel */
  int tma_store; /* the axis along which results may leave in boxes; -1: they do not */
} nvf_shape;
static inline int64_t nvf_knob_value(const nvf_fusion *k, nvf_knob i, int64_t otherwise) {
  return k->knobs && k->knobs->set >> i & 1 ? k->knobs->value[i] : otherwise;
}
/* of a block. split: blocks of a cluster that share it; share: the hint stream_k, and what it costs, ns; stages: if an
   operand stays in them from tile to tile, of sums of NVF_SHORT k-tiles at most */
enum { NVF_SHORT = 4 };
typedef struct nvf_tiling { int64_t m, n, k, split_k; int stream_k, stages; double join_time; } nvf_tiling;
nvf_tiling nvf_gemm_tile(const nvf_fusion *k); /* what nvf_shape_gemm takes */
/* ns of a tile of so many elements that a cluster shares out: its blocks meet, and its sums go through their memory. */
double nvf_split_k_time(const nvf_fusion *k, int64_t elements);
/* schedule_tensor_core.c: part of its class's generated rate; 0: no tensor cores */
double nvf_tensor_reach(const nvf_fusion *k);
nvm_dtype nvf_tensor_operand(const nvf_fusion *k); /* what they multiply: the operands' dtype; 8 bits may become f16 */
/* memory runs along the operand's other axis, not along k */
int nvf_tensor_is_mn_major(const nvf_fusion *k, int region);
/* of the widest tile of such operands; 0: no tensor cores multiply them */
int64_t nvf_tensor_columns(const nvb_caps *caps, nvm_dtype operands, int64_t precision);
int64_t nvf_gemm_columns(const nvb_caps *caps, nvm_dtype sum);   /* of one block whose rows are reduced */
int64_t nvf_gemm_rows(const nvb_caps *caps, nvm_dtype operands); /* of one whose columns are; 0: it reduces none */
/* Which of m and n is what a block reduces, of pieces that are the axis before; -1: neither. */
int nvf_gemm_reduced_axis(const nvf_fusion *k);
int nvf_gemm_spills(const nvf_fusion *k); /* a thread of a GPU has no registers for the sums of all its products */
nvf_shape *nvf_shape_gemm(nvf_fusion *k);
void nvf_collapse(nvf_fusion *k);
nvf_shape *nvf_shape_of(nvf_fusion *k);
int nvf_is_kept_whole(const nvf_fusion *k, int a, int lane); /* an axis of the grid, by a CPU's block */
uint64_t nvf_lanes_cpu(const nvf_fusion *k); /* axes that have the lanes of a CPU's vectors, never two in one layout */
const char *nvf_why_rejected(nvf_fusion *k); /* why the device has no kernel for it; NULL: it has */
int64_t nvf_params(const nvf_fusion *k);     /* launch arguments, at most */
/* A Python scalar that is given anew with each call: a launch argument of a GPU's kernel, not memory. */
int nvf_is_given(const nvf_graph *graph, const nvf_node *n);
int nvf_pointers(const nvf_fusion *k); /* to the memory that it reads and writes */
enum { NVF_MOST_PARAMS = 480 };        /* of a GPU's kernel: 4 KB of 8 bytes each, and a few that the emitter adds */
int *nvf_order(const nvf_fusion *k, const nvf_shape *s); /* expressions in the order of their statements */
void nvf_red_order_of(const nvf_fusion *k, const nvf_shape *s, const nvf_iexpr *red, nvf_red_order *out);
int nvf_returns(const nvf_fusion *k, int red);   /* an expression has the axis of a reduction again below its result */
int nvf_is_exact(const nvf_fusion *k, int axis); /* the extent is a number of the text: the block of a split */
/* Whether memory at this address runs along s->cross and the lanes step over its lines. */
int nvf_is_transposed_access(const nvf_fusion *k, const nvf_shape *s, nvf_ix at);
/* Hints of a load or store on a GPU, 0 where there is none. `guard`: of a load; across: the tile is one of
   s->at[].across. */
typedef struct nvf_access { nvf_ix at; int guard, node, transposed, store; uint64_t axes; } nvf_access;
typedef struct nvf_access_hints { int vec, whole, stream, tma; int64_t prefetch; } nvf_access_hints;
nvf_access_hints nvf_access_hints_of(const nvf_fusion *k, const nvf_shape *s, const nvf_access *m);

/* ---- emit.c, memory.c */
void nvf_emit(const nvf_plan *p, nvf_step *step, int n, nvf_fusion *const *k, nvf_shape *const *s, const int *buf_of,
              const char *name);
/* emit_routine.c: the step of a fusion candidate that is a routine */
void nvf_emit_routine(const nvf_plan *p, nvf_step *step, const nvf_fusion *k, const int *buf_of);
void nvf_memory(nvf_plan *p, nvf_partition *c, int *buf_of, int *twin); /* buffers, lifetimes, offsets, donation */

static inline int nvf_reads(const nvf_fusion *k, int node) {
  int lo = 0, hi = k->nread;
  while (lo < hi)
    if (k->read[(lo + hi) / 2] < node) lo = (lo + hi) / 2 + 1;
    else hi = (lo + hi) / 2;
  return lo < k->nread && k->read[lo] == node;
}
static inline int nvf_has(const uint64_t *set, int i) { return (int)(set[i >> 6] >> (i & 63) & 1); }
static inline void nvf_put_bit(uint64_t *set, int i) { set[i >> 6] |= 1ull << (i & 63); }
/* Operands of a reduction or scan that it merges. */
static inline int nvf_states(const nvf_node *n) { return n->nin - (n->kind == NVG_VSCAN && n->block); }
static inline int nvf_is_red(const nvf_iexpr *v) { return v->kind == NVF_IRED || v->kind == NVF_ISCAN; }
static inline int nvf_is_made(const nvf_node *n) { /* by operations, not by reading elsewhere */
  return n->kind == NVG_VMAP || n->kind == NVG_VPAD || n->kind == NVG_VCONCAT || n->kind == NVG_VGATHER;
}
static inline int nvf_is_view(nvg_vkind k) { return k >= NVG_VRESHAPE && k <= NVG_VROLL; }
static inline const nvg_val *nvf_behind_views(const nvg_graph *g, int i) { /* what the value is a view of */
  while (nvf_is_view(g->v[i].kind)) i = g->v[i].in[0];
  return &g->v[i];
}
#endif
