/* What the files of the emitter share: the state of the kernel that is being written. Only emit*.c include this header.
   */
#ifndef NVM_FUSION_EMIT_H
#define NVM_FUSION_EMIT_H
#include "fusion/planner.h"

typedef struct nvf_emitter {
  const nvf_plan *plan;
  int letters;   /* axes named so far, for unique names */
  nvf_fusion *k; /* the fusion that becomes the current part of the grid */
  nvf_tiling *s; /* its schedule */
  nvf_space *sp;
  nvb_arena *a;
  nvf_kernel *kn; /* the kernel that is being built, with its schedule and current part */
  nvf_schedule *sched;
  nvf_part *part;
  nvf_block *block;  /* the block that statements are appended to: the part's body, or that of a loop */
  const int *buf_of; /* nvf_plan.buf_of */
  /* by axis: its number in the kernel as tile axis, grid axis, constant of the tile size, loop variable; -1: none */
  int *axis, *grid, *tile_size, *var;
  int reach;    /* number of the constant that holds the length of a segment */
  int *segment; /* by axis: grid axis of the segments of a walk; -1: none */
  /* split-K of a GEMM: the tile axis of the cluster's blocks, and the constant of its extent; -1: none */
  int split_k, split_k_name;
  /* of a kernel with transforms: the axis of each digit of the points; the pass in whose layout tiles are; whether the
     first digit is the least significant one */
  int point[NVF_PASSES], pass, reversed;
  int **tile;                   /* by expression: its tiles; NULL until it is emitted */
  int region;                   /* of a kernel with a GEMM: the region that tile, layouts and s belong to */
  nvb_map *size_of, *buffer_of; /* product -> parameter, buffer -> parameter */
  NVB_VEC(nvf_bind) bind;       /* by parameter */
  uint64_t tiles;               /* bit set of the axes that tiles can have */
  nvb_map *layouts;             /* (set of axes, nvf_digits_of) -> name of the layout */
  nvb_map *scalar_of;           /* leaf and part -> scalar parameter */
  int *checked;                 /* by check: its index tile; -1: not emitted yet */
  uint64_t *met;                /* bit set of the expressions that are emitted */
  NVB_VEC(nvf_checked) checks;
  NVB_VEC(nvf_grid_axis) grid_axes;
  /* of the loop of a walk: tiles of the carried scan states; by expression: index of its first one */
  int *carry, *state;
} nvf_emitter;

/* Which digits a layout has: the shape's own; those of transposed accesses; for split-K those of accumulators, of which
   each block of the cluster has one, and those of the same sums when a thread has all of them. */
typedef enum nvf_digits_of { NVF_OWN, NVF_TRANSPOSED, NVF_APART, NVF_TOGETHER } nvf_digits_of;

static inline const nvf_node *nvf_emit_node(const nvf_emitter *e, int i) { return &e->k->graph->node[i]; }
static inline const nvf_iexpr *nvf_emit_iexpr_of(const nvf_emitter *e, int i) { return &e->k->expr.at[i]; }
/* ---- emit_index.c: parameters, index expressions, conditions */
int nvf_emit_param(nvf_emitter *e, nvf_pkind kind, nvm_dtype type, nvf_bind b); /* a new one; returns its number */
int nvf_emit_buffer(nvf_emitter *e, int buf, nvm_dtype type, int written);      /* the parameter of a buffer */
int nvf_emit_roots(nvf_emitter *e, nvm_dtype type, int64_t n, int64_t length, int sign); /* a table */
const nvf_expr *nvf_emit_size(nvf_emitter *e, nvf_prod p);
const nvf_expr *nvf_emit_coord(nvf_emitter *e, int axis);
const nvf_expr *nvf_emit_expr(nvf_emitter *e, nvf_ix x);
/* Adds the conditions of a guard to c. */
const nvf_cond *nvf_emit_guard(nvf_emitter *e, const nvf_cond *c, int guard);
/* Adds the conditions that exclude the padding of the tile axes among `axes`, and that of splits along them. */
const nvf_cond *nvf_emit_bounds(nvf_emitter *e, const nvf_cond *c, uint64_t axes, uint64_t within);

/* ---- emit.c */
/* These functions append statements to e->block. */
nvf_stmt *nvf_emit_stmt(nvf_emitter *e, nvf_op op);
/* adds the hint unless its value is 0 */
void nvf_emit_hint(nvf_emitter *e, const nvf_stmt *s, nvf_hint hint, int64_t value);
void nvf_emit_layout(nvf_emitter *e, nvf_stmt *s, uint64_t axes, nvf_digits_of which);
int nvf_emit_red_order(nvf_emitter *e, nvf_red_order st); /* returns the number of its name */
nvf_stmt *nvf_emit_map(nvf_emitter *e, const nvg_frag *f, int nout, const int *out, int narg, nvf_arg *arg,
                       uint64_t axes);
int *nvf_emit_tiles(nvf_emitter *e, int n, nvm_dtype type, const char *name);
int nvf_emit_parts(const nvf_emitter *e, int expr);
/* a constant or a scalar parameter, which maps take without a tile */
int nvf_emit_is_scalar(const nvf_emitter *e, int expr);
int nvf_emit_tile(nvf_emitter *e, int expr, int part);
/* a tile of the same values, broadcast over these axes */
int nvf_emit_broadcast(nvf_emitter *e, int expr, int part, uint64_t axes);
const nvg_frag *nvf_emit_choose(nvf_emitter *e, nvm_dtype t); /* c ? x : y */
void nvf_emit_iexpr(nvf_emitter *e, int expr);
/* emits the stores of the expression that may follow it; -1: all other stores */
void nvf_emit_puts(nvf_emitter *e, int expr);
/* ---- emit_gemm.c */
/* The state of the emitter in one region of a kernel with GEMMs. */
typedef struct nvf_region { int **tile; nvb_map *layouts; nvf_tiling *s; int *order; } nvf_region;
void nvf_open_regions(nvf_emitter *e, nvf_region *z, int n);
void nvf_enter_region(nvf_emitter *e, const nvf_region *z, int which);
/* The expressions of a region without the axis, or (moves) with it. regions: by expression, a bit set. */
void nvf_emit_prologue(nvf_emitter *e, const nvf_region *z, const uint8_t *regions, int which, int axis, int moves);
void nvf_emit_epilogue(nvf_emitter *e, const nvf_region *z, const uint8_t *regions);
/* A tile of an operand, converted, over these axes; beyond the end of the axis it is 0, unless tiles are `whole`. */
int nvf_emit_operand(nvf_emitter *e, int expr, int part, nvm_dtype to, int axis, uint64_t axes, int whole);
/* The tile with other bits (`beyond`) beyond the end of the axis. */
int nvf_emit_ended(nvf_emitter *e, int tile, nvm_dtype type, int axis, uint64_t beyond, uint64_t axes);
int nvf_emit_mapped(nvf_emitter *e, const nvg_frag *f, nvm_dtype type, int n, const nvf_arg *arg, uint64_t axes);
/* Puts a tile into shared memory, slowest axis first (-1: none); returns the shared tile. */
int nvf_emit_shared(nvf_emitter *e, int tile, const int *axis, const char *name);
int nvf_emit_contract(nvf_emitter *e, int acc, int out, int a, int b, int axis); /* out -1: a new tile; returns it */
void nvf_emit_gemm(nvf_emitter *e);
/* ---- emit_attention.c */
void nvf_emit_attention(nvf_emitter *e);
/* ---- emit_transform.c */
int nvf_emit_points(nvf_emitter *e, const char *name); /* the axes of the digits of the points; returns the first */
const nvf_expr *nvf_emit_point(nvf_emitter *e);        /* the coordinate along the transformed axis */
void nvf_emit_transforms(nvf_emitter *e);
#endif
