/* What the files of the emitter share: the state of the kernel that is being written. Only emit.c and emit_gemm.c
   include this header. */
#ifndef NVM_FUSION_EMIT_H
#define NVM_FUSION_EMIT_H
#include "fusion/planner.h"

typedef struct nvf_emitter {
  const nvf_plan *plan;
  int letters;
  nvf_fusion *k;
  nvf_shape *s;
  nvf_space *sp;
  nvb_arena *a;
  nvf_kernel *kn;
  nvf_schedule *sched;
  nvf_part *part;
  nvf_block *block; /* being filled: the part's, or of a loop along a scan */
  const int *buf_of;
  int *axis, *grid, *cut, *var; /* numbers in the kernel; -1 */
  int reach;                    /* the constant that says how long a segment is */
  int *segment;                 /* by axis: the block's coordinate along a walk in segments; -1 */
  /* of a product: the axis of the blocks that take its rounds in turn; its extent's name; -1 */
  int split_k, split_k_name;
  int **tile;                   /* by expression: its tiles; NULL until made */
  int region;                   /* of a kernel with a product: whose tiles, layouts and shape these are */
  nvb_map *size_of, *buffer_of; /* product -> parameter, buffer -> parameter */
  NVB_VEC(nvf_bind) bind;
  uint64_t tiles;     /* axes that a tile can have */
  nvb_map *layouts;   /* set of axes, across or not -> name */
  nvb_map *scalar_of; /* leaf and part -> scalar parameter */
  int *checked;       /* by check: its index tile; -1: not there yet */
  uint64_t *met;      /* expressions that are there */
  NVB_VEC(nvf_checked) checks;
  int *carry, *state; /* of the loop along scans: tiles of their states so far; by expression, which is its first */
} nvf_emitter;

/* Digits of a layout: the shape's; those of tiles that memory crosses; of the sums of a product that a cluster shares
   out, one block each, and then all in each thread. */
typedef enum nvf_digits_of { NVF_OWN, NVF_TRANSPOSED, NVF_APART, NVF_TOGETHER } nvf_digits_of;

static inline const nvf_node *nvf_emit_node(const nvf_emitter *e, int i) { return &e->k->graph->node[i]; }
static inline const nvf_iexpr *nvf_emit_iexpr_of(const nvf_emitter *e, int i) { return &e->k->expr.at[i]; }
/* Statements go to the end of e->block. */
nvf_stmt *nvf_emit_stmt(nvf_emitter *e, nvf_op op);
void nvf_emit_hint(nvf_emitter *e, const nvf_stmt *s, const char *name, int64_t value); /* none where it is 0 */
void nvf_emit_layout(nvf_emitter *e, nvf_stmt *s, uint64_t axes, nvf_digits_of which);
int nvf_emit_red_order(nvf_emitter *e, nvf_red_order st); /* its name */
nvf_stmt *nvf_emit_map(nvf_emitter *e, const nvg_frag *f, int nout, const int *out, int narg, nvf_arg *arg,
                       uint64_t axes);
int *nvf_emit_tiles(nvf_emitter *e, int n, nvm_dtype type, const char *name);
const nvf_expr *nvf_emit_size(nvf_emitter *e, nvf_prod p);
const nvf_expr *nvf_emit_coord(nvf_emitter *e, int axis);
int nvf_emit_parts(const nvf_emitter *e, int expr);
int nvf_emit_is_scalar(const nvf_emitter *e, int expr); /* no tile: an operand of maps */
int nvf_emit_tile(nvf_emitter *e, int expr, int part);
int nvf_emit_over(nvf_emitter *e, int expr, int part, uint64_t axes); /* the same values over these axes */
const nvg_frag *nvf_emit_choose(nvf_emitter *e, nvm_dtype t);         /* c ? x : y */
void nvf_emit_iexpr(nvf_emitter *e, int expr);
void nvf_emit_puts(nvf_emitter *e, int expr); /* stores of it that need not wait; -1: all others */
void nvf_emit_gemm(nvf_emitter *e);
#endif
