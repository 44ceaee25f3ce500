/* Inside of the CUDA emitter: contractions on tensor cores. A file each: shared tiles of rows, products of a warp,
   loops whose copies run ahead, what TMA is told of a buffer, warp-specialised parts, the way of their epilogues
   through shared memory. */
#ifndef NVM_CODEGEN_CUDA_TENSOR_CORE_H
#define NVM_CODEGEN_CUDA_TENSOR_CORE_H
#include "codegen/cuda/emit.h"

/* ---- swizzle.c */
typedef struct nvcu_rows {
  int row, col;   /* axes: the elements of a row lie side by side */
  int rows, size; /* their number; bytes of an element */
  nvm_dtype type;
  int span;           /* bytes of a row that lie side by side: 32, 64, 128 */
  int64_t bytes, off; /* of a stage; in a pipeline those before it */
  const char *at;     /* char *: the stage in hand */
  const char *stages; /* char *: all stages; where a lane's first bytes are of what goes into registers, of two */
  /* rows if it reads two at once: within a stage; from `pipeline`, in the stage in hand */
  const char *lane[2], *byte[2];
} nvcu_rows;
const nvf_stmt *nvcu_tensor_user(const nvcu_em *e, int tile);
nvcu_rows *nvcu_rows_of(nvcu_em *e, const nvf_stmt *put);        /* how it lies in a stage; where is not said yet */
nvcu_smem *nvcu_rows_smem(nvcu_em *e, int64_t bytes);            /* a place for such tiles */
void nvcu_rows_new(nvcu_em *e, const nvf_stmt *put, int stages); /* both: the home of what is put */
/* Text of the offset of a byte of a row within a stage */
const char *nvcu_rows_offset(nvcu_em *e, const nvcu_rows *r, const char *row, const char *byte);
void nvcu_rows_put(nvcu_em *e, const nvf_stmt *put);
void nvcu_rows_get(nvcu_em *e, const nvf_stmt *get);
/* May the loaded tile go to shared memory without passing through registers? */
int nvcu_copies(const nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put);
void nvcu_rows_copy(nvcu_em *e, const nvf_stmt *load, const nvf_stmt *put, const char *to); /* to: char *, a stage */

/* ---- mma.c */
/* How the sum lies in the registers of a warp. The rows are those of 16 x 8 products: of p, 8 a lane digit and 16 to an
   item; of q, 2 items and 8 to a digit of 4 lanes. */
typedef struct nvcu_sum {
  int p, q; /* axes */
  const nvf_layout *l;
  int near;         /* a lane's two rows are neighbours: 2 items and 8 to a digit of 8 lanes */
  int np, nq;       /* 16 rows, 8 columns of items */
  int *prow, *qcol; /* where they begin, by item digits alone */
  int *item;        /* [np][nq][4] of the layout */
} nvcu_sum;
/* Of a layout `m: ... i l8@4; n: ... l4 i2`; throws where it is no such one. */
nvcu_sum nvcu_sum_of(nvcu_em *e, const nvf_stmt *contract);
const char *nvcu_operand_name(nvcu_em *e, nvm_dtype t);                /* as instructions call it; throws */
const char *nvcu_warp_part(nvcu_em *e, const nvf_layout *l, int axis); /* of the axis' coordinate */
nvm_dtype nvcu_operand_type(const nvcu_em *e, const nvf_stmt *s);      /* what the contraction multiplies */
/* Are operands of such a tile bytes which become what they are multiplied with? */
int nvcu_is_upcast(const nvcu_em *e, const nvf_stmt *s, nvm_dtype factor);
/* Do warpgroups take operands of the tile from registers? Those bytes, and 32 bits that are MN-major. */
int nvcu_is_from_registers(const nvcu_em *e, const nvf_stmt *s, const nvcu_rows *r);
void nvcu_mma(nvcu_em *e, const nvf_stmt *s);
void nvcu_warp_mma(nvcu_em *e, const nvf_stmt *s, const nvcu_sum *sum); /* what is put for it is there */
/* Before the loop: where a lane's operands lie in a stage, which the compiler would compute anew in every k-tile */
void nvcu_begin_a_registers(nvcu_em *e, const nvf_stmt *s);
/* Sixteen rows of p from `first` on and the operands of an instruction: the name of their registers; of bytes, and of
   these upcast */
const char *nvcu_load_a_registers(nvcu_em *e, const nvf_stmt *s, const nvcu_sum *sum, int first, int deep);
const char *nvcu_upcast(nvcu_em *e, const nvf_stmt *s, const nvcu_sum *sum, const char *bytes);

/* ---- tensor_map.c */
/* A load or store as boxes of a buffer: the map without its box, and where a block's box begins. */
typedef struct nvcu_view {
  nvc_cuda_map map;
  const nvf_layout *l;
  const struct poly *start[2];
  int grid[NVC_MAP_RANK]; /* of the axes from 2 on: block coordinates */
  int transposed;         /* of boxes of sums: p runs along memory, not q */
  int number;             /* of the map, once it has a box */
} nvcu_view;
/* NULL, or why it is none. */
const char *nvcu_view_of(nvcu_em *e, const nvf_stmt *s, int inner, int outer, nvcu_view *v);
const char *nvcu_view_start(nvcu_em *e, const nvcu_view *v, int i); /* at the coordinates in hand: int */
int nvcu_map_new(nvcu_em *e, const nvc_cuda_map *m);

/* ---- what warp_specialized.c and epilogue.c share */
enum { NVCU_GROUP = 4 }; /* warps */
typedef struct nvcu_tma_copy {
  const nvf_stmt *load, *put;
  nvcu_view view;
  int map, boxes;
} nvcu_tma_copy; /* of a loaded tile in the loop */
typedef struct nvcu_pipeline {
  const nvf_stmt *loop;
  int n, stages, groups, bytes; /* fills; consumers; bytes of a stage */
  int a_registers;              /* one operand goes through registers: each warp reads it */
  int few;                      /* its columns: warps multiply */
  int behind;                   /* 1: the products of a k-tile are waited for in the next one, as small ones want it */
  nvcu_tma_copy tile[NVC_MAPS];
  int nsum; /* contractions of a k-tile: one batch of instructions */
  const nvf_stmt *sum[NVC_MAPS];
  nvcu_smem *tiles, *bars, *out;
  int buffers, chunk;    /* of out, for each warp; how many chunks were stored so far */
  const nvf_stmt *early; /* a load of the epilogue that waits in `out` while the loop runs; NULL */
  nvcu_smem *here;       /* a barrier for each warp: it has come */
  int kept;              /* the fill that tiles of a column have in common, with the hint keep_operand; -1 */
  int least;             /* stream-K: k-tiles of a share, at least; 0: no tiles are shared out */
  nvcu_smem *draw;       /* its number */
  nvcu_slice part;       /* of the epilogue: columns of 128 bytes of 16-bit results */
  int parts;
} nvcu_pipeline;

/* ---- epilogue.c: the epilogue's way through shared memory */
void nvcu_tma_epilogue_plan(nvcu_em *e, nvcu_pipeline *g);         /* rooms; what is done where it is stored */
void nvcu_tma_epilogue_set_up(nvcu_em *e, const nvcu_pipeline *g); /* barriers; by one thread */
/* loads of vectors behind the loop go before it */
void nvcu_tma_epilogue_begin(nvcu_em *e, nvcu_pipeline *g, const nvc_seq *q);
/* Asks for the matrix that the epilogue reads, into the room of what is stored, once that is free. */
void nvcu_tma_epilogue_fetch(nvcu_em *e, const nvcu_pipeline *g);
int nvcu_tma_load(nvcu_em *e, const nvf_stmt *s); /* 0: it is not that load */
/* The tile that a cast from 16 bits leads back to, where the rounding to them is not wanted; -1 */
int nvcu_unrounded(const nvcu_em *e, const nvf_stmt *s);

/* ---- warp_specialized.c */
/* A part whose loop has the hint warp_specialize: a warpgroup of its own copies, the others take one block after the
   other. 0: it is a part like any other. `coordinates` writes those of a block's number. */
int nvcu_warp_specialized(nvcu_em *e, const nvc_seq *q, void (*coordinates)(nvcu_em *e, const char *block),
                          const char *blocks);
/* 0: it is not that loop. */
int nvcu_warp_specialized_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step);
/* How the epilogue of such a part is taken in parts: how many there are; 0: as a whole. */
int nvcu_epilogue_parts(const nvcu_em *e, nvcu_slice *s);
/* Of the pipeline, in the text of either role: a stage's barrier (that it is full, or empty), that it is free (a
   warpgroup says so, or each of its warps; `when`: "a && " or nothing), and on to the next one. */
const char *nvcu_pipeline_barrier(nvcu_em *e, const nvcu_pipeline *g, int empty, const char *stage);
void nvcu_pipeline_release(nvcu_em *e, const nvcu_pipeline *g, const char *when, const char *stage);
void nvcu_pipeline_advance(nvcu_em *e, const nvcu_pipeline *g);
void nvcu_group_mma(nvcu_em *e, const nvf_stmt *s);
/* A store with the hint tma; 0: it has none. */
int nvcu_tma_store(nvcu_em *e, const nvf_stmt *s);

/* ---- stream_k.c: the hint stream_k of the loop; without it they do nothing. In text: work, what the block takes */
void nvcu_stream_k_plan(nvcu_em *e, nvcu_pipeline *g, const nvf_stmt *loop);
void nvcu_stream_k_draw(nvcu_em *e, const nvcu_pipeline *g); /* the block's share; a barrier has to follow */
void nvcu_stream_k_begin(nvcu_em *e, const nvcu_pipeline *g, const char *blocks);
const char *nvcu_stream_k_open(nvcu_em *e); /* the loop of tiles: the tile in hand */
/* Behind the loop, in that of tiles: sums of others into the pipeline; only a whole tile's go on. */
void nvcu_stream_k_fetch(nvcu_em *e, const nvcu_pipeline *g);
void nvcu_stream_k_join(nvcu_em *e, const nvcu_pipeline *g);
int nvcu_of_tiles(const nvf_expr *x); /* what bounds a loop, with coordinates of the block */
const char *nvcu_pipeline_ktiles(nvcu_em *e, const nvcu_pipeline *g);  /* of a tile: text; 1 if there is none */
int64_t nvcu_stream_k_bytes(const nvcu_em *e, const nvcu_pipeline *g); /* of the sums of a block; 0: they stay in it */

/* ---- pipeline.c */
/* A FOR with the hint stages, if its body copies tiles to shared memory; 0: it is a loop like any other. */
int nvcu_staged_loop(nvcu_em *e, nvc_nest *r, const char *lo, const char *hi, const char *step);
#endif
