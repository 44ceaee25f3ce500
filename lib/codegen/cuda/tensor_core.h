/* Internals of the CUDA emitter for contractions on tensor cores, declared file by file: shared tiles with swizzled
   rows, MMAs of a warp, tensor maps, warp-specialised mainloops, their epilogues by TMA, stream-K, multistage
   pipelines. */
#ifndef NVM_CODEGEN_CUDA_TENSOR_CORE_H
#define NVM_CODEGEN_CUDA_TENSOR_CORE_H
#include "codegen/cuda/emit.h"

/* ---- swizzle.c */
typedef struct nvcu_rows {
  int row, col;   /* axes: a row is contiguous along col */
  int rows, size; /* number of rows; bytes of an element */
  nvm_dtype type;
  int swizzle;        /* bytes of a row that are contiguous: 32, 64, 128 */
  int64_t bytes, off; /* bytes of the tile in a stage; its offset within the stage of a pipeline */
  const char *at;     /* char *: the current stage */
  const char *stages; /* char *: all stages */
  /* operands from registers, by each of the (up to two) rows that a lane reads at once: lane, offset of its first bytes
     within a stage; byte, the same from `stages` on, in the current stage */
  const char *lane[2], *byte[2];
} nvcu_rows;
const nvf_stmt *nvcu_tensor_user(const nvcu_em *e, int tile);
/* The tile's form within a stage, not its place in shared memory. */
nvcu_rows *nvcu_rows_of(nvcu_em *e, const nvf_stmt *put);
nvcu_smem *nvcu_rows_smem(nvcu_em *e, int64_t bytes); /* allocates a buffer for such tiles, aligned to 1,024 bytes */
/* Both, with `stages` stages: the home of the tile that is put. */
void nvcu_rows_new(nvcu_em *e, const nvf_stmt *put, int stages);
/* Text of the offset of a byte of a row within a stage */
const char *nvcu_rows_offset(nvcu_em *e, const nvcu_rows *r, const char *row, const char *byte);
void nvcu_rows_put(nvcu_em *e, const nvf_stmt *put);
void nvcu_rows_get(nvcu_em *e, const nvf_stmt *get);
/* May the loaded tile go to shared memory without passing through registers? */
int nvcu_copies(const nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put);
void nvcu_rows_copy(nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put, const char *to); /* to: char *, a stage */

/* ---- mma.c */
/* The layout of a sum in the registers of a warp, as blocks of 16 x 8: along p, a digit of 8 lanes and 2 items; along
   q, 2 items and a digit of 4 lanes. */
typedef struct nvcu_accum {
  int p, q; /* axes */
  const nvf_layout *l;
  int adjacent;     /* 1: a lane's two rows are neighbours: along p, 2 items come first, then the digit of 8 lanes */
  int np, nq;       /* number of blocks of 16 rows, of 8 columns, in a thread's items */
  int *prow, *qcol; /* their first row and column, as far as items determine it */
  int *item;        /* items of the layout, [np][nq][4] */
} nvcu_accum;
/* The sum of a contraction with the layout `m: ... i l8@4; n: ... l4 i2`; throws for other layouts. */
nvcu_accum nvcu_sum_of(nvcu_em *e, const nvf_stmt *contract);
/* Whether the MMAs that read the tile take it from the registers of what is put, so that nothing is put: 16-bit
   elements in the layout of the sums of another MMA, as its rows. */
int nvcu_is_in_registers(nvcu_em *e, const nvf_stmt *put);
const char *nvcu_operand_name(nvcu_em *e, nvm_dtype t); /* as PTX calls it; throws if tensor cores lack it */
/* The part of the axis' coordinate that warps determine. */
const char *nvcu_warp_part(nvcu_em *e, const nvf_layout *l, int axis);
nvm_dtype nvcu_operand_type(const nvcu_em *e, const nvf_stmt *s); /* the type that the instruction multiplies */
/* Are the tile's elements bytes that are upcast to the type that the instruction multiplies? */
int nvcu_is_upcast(const nvcu_em *e, const nvf_stmt *s, nvm_dtype factor);
/* Does WGMMA take this operand from registers? It does for upcast bytes and for MN-major operands of 32 bits. */
int nvcu_is_from_registers(const nvcu_em *e, const nvf_stmt *s, const nvcu_rows *r);
void nvcu_mma(nvcu_em *e, const nvf_stmt *s);
void nvcu_warp_mma(nvcu_em *e, const nvf_stmt *s,
                   const nvcu_accum *sum); /* the operands have arrived in shared memory */
/* Before the loop: emits where a lane's operands lie within a stage, which the compiler would compute again in every
   k-tile. */
void nvcu_begin_a_registers(nvcu_em *e, const nvf_stmt *s);
/* Loads A for 16 rows from `first` on and one k-step from `deep` on: the name of the registers. nvcu_upcast: the name
   of the registers that the loaded bytes are upcast to. */
const char *nvcu_load_a_registers(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, int first, int deep);
const char *nvcu_upcast(nvcu_em *e, const nvf_stmt *s, const nvcu_accum *sum, const char *bytes);

/* ---- tensor_map.c */
/* A load or store as boxes of a buffer: the tensor map without its box, and where a CTA's box begins. */
typedef struct nvcu_view {
  nvc_cuda_map map;
  const nvf_layout *l;
  const struct poly *start[2];
  int grid[NVF_TMA_RANK]; /* block coordinate of each map axis from 2 on */
  int transposed;         /* of a box of sums: 1: p is contiguous in memory, not q */
  int number;             /* number of the map, when it has a box */
} nvcu_view;
/* NULL, or why the access cannot be a box. */
const char *nvcu_view_of(nvcu_em *e, const nvf_stmt *s, int inner, int outer, nvcu_view *v);
/* Text (int) of the box's start at the current coordinates. */
const char *nvcu_view_start(nvcu_em *e, const nvcu_view *v, int i);
int nvcu_map_new(nvcu_em *e, const nvc_cuda_map *m);

/* ---- what warp_specialized.c and epilogue.c share */
enum { NVCU_GROUP = 4 }; /* warps of a warpgroup */
typedef struct nvcu_tma_copy {
  const nvf_stmt *load, *put;
  nvcu_view view;
  int map, boxes;
} nvcu_tma_copy; /* a tile that the loop loads by TMA */
typedef struct nvcu_pipeline {
  const nvf_stmt *loop;
  int n, stages, groups, bytes; /* TMA copies of a stage; consumer warpgroups; bytes of a stage */
  int a_registers;              /* 1: operand A comes from registers, which each warp loads */
  int few;                      /* 1: so few columns that warps multiply by mma.sync */
  int behind;                   /* 1: the next k-tile waits for the WGMMAs of this one */
  nvcu_tma_copy tile[NVC_MAPS];
  int nsum; /* contractions of a k-tile */
  const nvf_stmt *sum[NVC_MAPS];
  nvcu_smem *tiles, *bars, *out;
  int buffers, stored;   /* buffers: subtiles of `out` for each warp; stored: number of those stored so far */
  const nvf_stmt *early; /* the epilogue's load of a matrix into `out` while the loop runs; NULL: none */
  nvcu_smem *arrived;    /* an mbarrier for each warp: the matrix of `early` has arrived */
  int kept;              /* keep_operand: the TMA copy whose operand is kept for all tiles of a column; -1: none */
  int least;             /* stream-K: least number of k-tiles in a share; 0: no stream-K */
  nvcu_smem *draw;       /* stream-K: shared memory for the number of the CTA's share */
  nvcu_slice part;       /* slices of the epilogue: 64 columns, 128 bytes of 16-bit results */
  int parts;
} nvcu_pipeline;

/* ---- epilogue.c: the epilogue through shared memory */
/* Allocates buffers; decides which casts are done by stores. */
void nvcu_tma_epilogue_plan(nvcu_em *e, nvcu_pipeline *g);
void nvcu_tma_epilogue_set_up(nvcu_em *e, const nvcu_pipeline *g); /* initialises mbarriers; one thread runs it */
/* Emits the epilogue's loads of vectors before the loop. */
void nvcu_tma_epilogue_begin(nvcu_em *e, nvcu_pipeline *g, const nvc_seq *q);
/* Emits the TMA load of the matrix that the epilogue reads, into the buffers of the stores when those are free. */
void nvcu_tma_epilogue_fetch(nvcu_em *e, const nvcu_pipeline *g);
int nvcu_tma_load(nvcu_em *e, const nvf_stmt *s); /* 0: s is not the load of that matrix */
/* The f32 tile before casts to bf16 and back, if the rounding in between may be left out; -1: none */
int nvcu_f32_before_cast(const nvcu_em *e, const nvf_stmt *s);

/* ---- warp_specialized.c */
/* Emits a part whose loop has the hint warp_specialize: one warpgroup copies, the others multiply, for one tile after
   the other. 0: the part has no such loop. `coordinates` emits the coordinates of a block's number. */
int nvcu_warp_specialized(nvcu_em *e, const nvc_seq *q, void (*coordinates)(nvcu_em *e, const char *block),
                          const char *blocks);
/* 0: r is not that loop. */
int nvcu_warp_specialized_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step);
/* The number of slices in which the epilogue of such a part is emitted, and their form in s; 0: as a whole. */
int nvcu_epilogue_parts(const nvcu_em *e, nvcu_slice *s);
/* The pipeline, in the text of both roles: a stage's mbarrier (full, or empty); the arrival of a warpgroup, or of each
   of its warps, at the empty one (`when`: "a && " or ""); the advance to the next stage. */
const char *nvcu_pipeline_barrier(nvcu_em *e, const nvcu_pipeline *g, int empty, const char *stage);
void nvcu_pipeline_release(nvcu_em *e, const nvcu_pipeline *g, const char *when, const char *stage);
void nvcu_pipeline_advance(nvcu_em *e, const nvcu_pipeline *g);
void nvcu_group_mma(nvcu_em *e, const nvf_stmt *s);
/* Emits a store with the hint tma; 0: s has none. */
int nvcu_tma_store(nvcu_em *e, const nvf_stmt *s);

/* ---- stream_k.c: the hint stream_k; without it, these emit nothing. In text: work, the CTA's tiles and share */
void nvcu_stream_k_plan(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *loop);
void nvcu_stream_k_draw(nvcu_em *e, const nvcu_pipeline *g); /* draws the CTA's share; a barrier has to follow */
void nvcu_stream_k_begin(nvcu_em *e, const nvcu_pipeline *g, const char *blocks);
const char *nvcu_stream_k_open(nvcu_em *e); /* opens the loop over tiles: text of the current tile */
/* After the k loop, inside the loop over tiles: fetch loads the partial sums of other CTAs into the pipeline, join adds
   them; only the CTA that finishes a tile goes on with its epilogue. */
void nvcu_stream_k_fetch(nvcu_em *e, const nvcu_pipeline *g);
void nvcu_stream_k_join(nvcu_em *e, const nvcu_pipeline *g);
int nvcu_of_tiles(const nvf_expr *x); /* does a loop's bound depend on block coordinates? */
/* Text of the number of k-tiles of a tile, at least 1. */
const char *nvcu_pipeline_ktiles(nvcu_em *e, const nvcu_pipeline *g);
/* Bytes of a CTA's partial sums; 0: it gives none away. */
int64_t nvcu_stream_k_bytes(const nvcu_em *e, const nvcu_pipeline *g);

/* ---- pipeline.c */
/* Emits a FOR with the hint stages whose body copies tiles to shared memory; 0: it is a loop like any other. */
int nvcu_staged_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step);
#endif
