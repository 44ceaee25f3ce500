/* The kernel IR: a grid of blocks that run block-level operations on tiles with named axes, without threads or
   barriers. A kernel text names layouts, tile sizes and reduction orders; a schedule binds these names, adds hints, and
   changes no bit of a result. kernel-text.md defines the grammar and the meaning. lib/kernel builds, parses, prints and
   checks kernels; it never runs or compiles one (lib/codegen does). */
#ifndef NVM_KERNEL_KERNEL_H
#define NVM_KERNEL_KERNEL_H
#include "base/hash.h"
#include "frag/frag.h"

/* ---- layouts: the digits of each axis, most significant first, each with a level */
typedef struct nvf_digit {
  int axis;        /* axis number of the kernel (nvf_kernel.axis) */
  int32_t extent;  /* >= 1 */
  int64_t stride;  /* of the digit in the axis index, in elements */
  char level;      /* 'i' register item, 'I' item of an emitted loop, 'l' lane, 'w' warp, 'c' CTA of a cluster */
  int32_t pstride; /* l, w and c: stride in the number of the lane, warp or CTA */
} nvf_digit;
/* Limits: digits of a layout, elements of a tile, states of a reduction or scan */
enum { NVF_MAX_DIGITS = 24, NVF_TILE_MOST = 1 << 28, NVF_STATES = 8 };
/* The axes are in the order of the text; loops nest in this order, outermost first. A tile that has no digit at a level
   is replicated over that level. */
typedef struct nvf_layout { int n; nvf_digit d[NVF_MAX_DIGITS]; } nvf_layout;

/* ---- index expressions over 64-bit integers; division and mod are floored and the divisor is > 0 */
typedef enum nvf_xkind {
  NVF_CONST, /* value */
  NVF_PARAM, /* a size parameter of the kernel (id) */
  NVF_NAME,  /* a constant of the schedule (id in nvf_kernel.name) */
  NVF_GRID,  /* block coordinate (id in nvf_part.grid) */
  NVF_AXIS,  /* tile axis (id in nvf_kernel.axis) */
  NVF_VAR,   /* loop variable (id in nvf_kernel.var) */
  NVF_TILE,  /* an integer tile (id), which makes the access a gather or scatter */
  NVF_ADD,
  NVF_SUB,
  NVF_MUL,
  NVF_DIV,
  NVF_MOD
} nvf_xkind;
typedef struct nvf_expr { nvf_xkind kind; int id; int64_t value; const struct nvf_expr *a, *b; } nvf_expr;
typedef enum nvf_cmp { NVF_LT, NVF_LE, NVF_EQ, NVF_NE, NVF_GE, NVF_GT } nvf_cmp;
/* A conjunction: every relation holds and every bool tile is true. */
typedef struct nvf_cond {
  int nrel;
  struct nvf_rel {
    nvf_cmp cmp;
    const nvf_expr *a, *b;
  } *rel;
  int ntile;
  int *tile;
} nvf_cond;

/* ---- statements */
enum { NVF_TMA_RANK = 4 };                      /* axes of what TMA loads: row, column, batches */
enum { NVF_SCAN_RUN = 16, NVF_SCAN_RUNS = 64 }; /* elements of a scan's run, runs of its block: numerics.md section 4 */
typedef enum nvf_op {
#define STATEMENT(id, ...) NVF_##id,
#include "kernel/statements.def"
} nvf_op;
enum {
  NVF_NOPS = 0
#define STATEMENT(...) +1
#include "kernel/statements.def"
};
typedef enum nvf_trait { NVF_ELEMENTWISE = 1, NVF_WRITES = 2, NVF_WHOLE_TILE = 4, NVF_EXCHANGES = 8 } nvf_trait;
typedef struct nvf_op_row {
  const char *word, *operands, *results; /* as in statements.def */
  int traits;                            /* nvf_trait, joined */
} nvf_op_row;

typedef enum nvf_akind { NVF_ATILE, NVF_AAXIS, NVF_ASCALAR, NVF_ACONST } nvf_akind;
/* An argument of a map. AAXIS: the coordinate along an axis, i64; ASCALAR: a scalar parameter. */
typedef struct nvf_arg { nvf_akind kind; int id; uint64_t bits; nvm_dtype type; } nvf_arg;

typedef struct nvf_stmt {
  nvf_op op;
  int id; /* unique in the kernel, ascending in text order; hints refer to it */
  int nout, nin;
  /* tiles, shared ones too. SCAN with twice as many inputs: the second half of in is the carry from the left, that of
     out the new carry. */
  int *out, *in;
  int layout; /* name of the results' layout; -1: that of the operands */
  int nonly;
  int *only;             /* only(L, axes...): the axes of the layout that the tile has; nonly < 0: all */
  int buf;               /* number of the parameter: LOAD, STORE, ATOMIC_MAX */
  const nvf_expr *map;   /* address in elements (a complex pair counts as one) */
  const nvf_cond *where; /* NULL: always */
  uint64_t other;
  /* LOAD: the bits of elements where `where` fails (of both parts of a pair) are `other`; else 0 */
  int has_other;
  const nvg_frag *frag; /* MAP; REDUCE and SCAN: the merge of two states */
  int narg;
  nvf_arg *arg;   /* MAP */
  int axis;       /* REDUCE, SCAN, DFT, CONTRACT */
  int red_order;  /* REDUCE: name of a reduction order of the schedule */
  uint64_t *init; /* REDUCE: bits of the identity of each state; SCAN: the same, which `where` needs */
  int sign;       /* DFT: -1 or 1 */
  int norder;
  int *order; /* PUT: axes of the shared tile, slowest first */
  int var;
  const nvf_expr *lo, *hi, *step; /* FOR */
  /* FOR: inner starts with the value of outer; after the loop outer has the last value of inner */
  int ncarry;
  struct nvf_carry { int inner, outer; } *carry;
  struct nvf_block *body, *other_body; /* FOR, IF (other_body: else, may be NULL) */
} nvf_stmt;
typedef struct nvf_block { int n; nvf_stmt **s; } nvf_block;

/* ---- kernels */
typedef enum nvf_pkind { NVF_BUFFER, NVF_SIZE, NVF_SCALAR, NVF_ROOTS } nvf_pkind;
typedef struct nvf_param {
  const char *name;
  nvf_pkind kind;
  nvm_dtype type;      /* BUFFER, ROOTS: type of an element (c64, c128: pairs); SCALAR: of the value; SIZE: i64 */
  int written;         /* BUFFER: some statement stores to it */
  int unique;          /* BUFFER: no other parameter overlaps it */
  int64_t least, most; /* SIZE: whoever runs the kernel passes no value outside of these; most 0: any value */
  /* ROOTS: a table in the kernel's code, loaded from like a buffer: element k is e^(sign 2 pi i k / n); nothing is
     passed */
  struct nvf_roots {
    int64_t n, length;
    int sign;
  } roots;
} nvf_param;
/* The extent is an expression of sizes and schedule constants. */
typedef struct nvf_grid { const char *name; const nvf_expr *extent; } nvf_grid;
/* A part is a sub-grid with a body of its own, so that kernels of different sizes share a launch: the blocks of part p
   follow those of part p - 1. The last grid axis runs fastest. */
enum { NVF_MAX_PARTS = 64, NVF_MAX_GRID = 32 }; /* MAX_GRID: grid axes of a part */
typedef struct nvf_part { int ngrid; nvf_grid *grid; nvf_block body; } nvf_part;
typedef struct nvf_tile {
  const char *name;
  nvm_dtype type; /* the dtype in registers: f16 and bf16 as loaded; never complex */
  int shared;     /* in shared memory, made by PUT */
} nvf_tile;

typedef struct nvf_kernel {
  nvb_arena *arena;
  const char *title; /* the name in the kernel text */
  nvg_fragset *frags;
  int nparam, naxis, nvar, nname, ntile, npart, nstmt;
  nvf_param *param;
  const char **axis, **var, **name; /* name: of the schedule's layouts, constants and reduction orders */
  nvf_tile *tile;
  nvf_stmt **stmt; /* by id */
  nvf_part *part;
  int nsched; /* schedules in the kernel text */
  const char **sched_name;
  struct nvf_schedule **sched;
  nvb_map *known; /* every name used so far, so that a new one is made unique */
} nvf_kernel;

/* ---- schedules: what they bind the names to, and hints (hints.def) */
typedef enum nvf_hint {
#define HINT(id, ...) NVF_HINT_##id,
#include "kernel/hints.def"
#undef HINT
  NVF_NHINTS
} nvf_hint;
typedef enum nvf_target { NVF_CPU = 1, NVF_GPU = 2 } nvf_target;
typedef struct nvf_hint_row {
  const char *word;
  uint32_t of;         /* a bit for each nvf_op that may have it, NVF_FIRST */
  int targets;         /* back ends that obey it: nvf_target, joined */
  int other_bits;      /* 1: results may have other bits under it */
  int64_t least, most; /* its values */
  int powers;          /* 1: powers of two only */
} nvf_hint_row;
#define NVF_FIRST (1u << 31) /* the hint is one of the whole kernel and stands at statement 0 */
typedef struct nvf_note { int stmt; nvf_hint hint; int64_t value; } nvf_note;
typedef enum nvf_bkind { NVF_UNBOUND, NVF_BLAYOUT, NVF_BINT, NVF_BRED_ORDER } nvf_bkind;
/* Reduction order of numerics.md section 4: elements of a chunk, lanes; both are powers of two. */
typedef struct nvf_red_order { int c, w; } nvf_red_order;
typedef struct nvf_binding { nvf_bkind kind; nvf_layout layout; int64_t value; nvf_red_order order; } nvf_binding;
typedef struct nvf_schedule {
  nvf_binding *bind; /* one per nvf_kernel.name */
  int nbind;         /* how many bindings are stored; names added later are unbound */
  int nhint;
  nvf_note *hint;
} nvf_schedule;

/* ---- text (parse.c, print.c). One text holds fragments, one kernel, and any number of named schedules:
   schedule cpu { L = "r: i1; j: I8 i8 l16"; R = 1; S = order(1024, 128); hint 3 nt = 1 } */
/* throws NVM_ERR_VALUE: where:line:col: ... */
nvf_kernel *nvf_kernel_parse(nvb_arena *a, const char *text, const char *where);
nvf_schedule *nvf_schedule_find(nvf_kernel *k, const char *name); /* from the parsed text; NULL if absent */
void nvf_kernel_print(nvb_text *t, const nvf_kernel *k);
void nvf_schedule_print(nvb_text *t, const nvf_kernel *k, const nvf_schedule *s, const char *name);
nvb_hash nvf_kernel_hash(const nvf_kernel *k, const nvf_schedule *s); /* hash of the printed text */

/* ---- building (build.c). The builder makes names unique. Names of constants begin upper-case, by which index
   expressions tell them from axes; the builder makes names of axes, grids and variables begin lower-case. */
nvf_kernel *nvf_kernel_new(nvb_arena *a, const char *name);
int nvf_add_param(nvf_kernel *k, nvf_pkind kind, nvm_dtype type, const char *name);
enum { NVF_ROOTS_MOST = 1 << 20 }; /* elements of a table */
int nvf_add_axis(nvf_kernel *k, const char *name);
int nvf_add_var(nvf_kernel *k, const char *name);  /* a loop variable */
int nvf_add_name(nvf_kernel *k, const char *name); /* a known name returns its number again */
int nvf_add_tile(nvf_kernel *k, nvm_dtype type, const char *name);
nvf_part *nvf_add_part(nvf_kernel *k); /* the pointer stays valid; at most NVF_MAX_PARTS */
int nvf_add_grid(nvf_kernel *k, nvf_part *p, const char *name, const nvf_expr *extent);
nvf_block *nvf_new_block(nvf_kernel *k); /* a body for FOR and IF */
/* Appends a statement to the block. Its id is the next number, so calls must come in text order. `layout`, `red_order`
   and `nonly` start as -1, all other fields as 0; the caller fills them, and sets `written` of a buffer that the
   statement stores to. */
nvf_stmt *nvf_add_stmt(nvf_kernel *k, nvf_block *b, nvf_op op);
void nvf_set(nvf_kernel *k, nvf_stmt *s, int nout, const int *out, int nin, const int *in); /* copies */
/* a leaf of an expression */
const nvf_expr *nvf_x(nvf_kernel *k, nvf_xkind kind, int id, int64_t value);
/* folds constants, x+0, x*1 */
const nvf_expr *nvf_x2(nvf_kernel *k, nvf_xkind kind, const nvf_expr *a, const nvf_expr *b);
/* A new condition: `c` (NULL: always true) and one more relation, or one more bool tile. */
const nvf_cond *nvf_and_rel(nvf_kernel *k, const nvf_cond *c, nvf_cmp cmp, const nvf_expr *a, const nvf_expr *b);
const nvf_cond *nvf_and_tile(nvf_kernel *k, const nvf_cond *c, int tile);
nvf_schedule *nvf_schedule_new(nvf_kernel *k);
nvf_binding *nvf_bind_name(nvf_kernel *k, nvf_schedule *s, int name); /* the binding, which the caller fills */
void nvf_add_hint(nvf_kernel *k, nvf_schedule *s, int stmt, nvf_hint hint, int64_t value);

/* ---- statements and hints as data (statements.c, hints.c) */
const nvf_op_row *nvf_op_get(nvf_op op);
const char *nvf_op_name(nvf_op op); /* the word of kernel text: "load" */
int nvf_stmt_is(const nvf_stmt *s, nvf_trait trait);
const nvf_hint_row *nvf_hint_get(nvf_hint hint);
int nvf_hint_find(const char *word); /* -1: there is no such hint */
const char *nvf_hint_nearest(const char *word,
                             const nvf_stmt *s); /* those that s may have come first; NULL: none is near */
/* Why the statement may not have the hint with this value, in the arena; NULL: it may. */
const char *nvf_hint_fault(nvb_arena *a, const nvf_stmt *s, nvf_hint hint, int64_t value);
int64_t nvf_hint_value(const nvf_schedule *s, int stmt, nvf_hint hint, int64_t absent);

/* ---- layouts (layout.c) */
void nvf_layout_parse(nvf_kernel *k, nvf_layout *out, const char *text); /* "r: i1; j: I8 l16"; throws */
void nvf_layout_print(nvb_text *t, const nvf_kernel *k, const nvf_layout *l);
/* Computes stride and pstride from axis, extent and level, in the order of the digits; a pstride > 0 is kept. */
void nvf_layout_finish(nvf_layout *l);
int64_t nvf_extent(const nvf_layout *l, int axis); /* product of the axis' digits; 1 if absent */
/* Writes the axes in the order of the text (at most NVF_MAX_DIGITS) and returns their number. */
int nvf_layout_axes(const nvf_layout *l, int *axes);
nvf_layout nvf_layout_only(const nvf_layout *l, const int *axes, int n);
nvf_layout nvf_layout_without(const nvf_layout *l, int axis);
int nvf_layout_eq(const nvf_layout *a, const nvf_layout *b);     /* the same digits, those of extent 1 left out */
int nvf_layout_within(const nvf_layout *a, const nvf_layout *b); /* every digit of a with extent > 1 is also in b */

/* ---- the layouts of a kernel under a schedule (check.c): computed once, read by the interpreter and the emitters */
typedef struct nvf_typed {
  const nvf_kernel *k;
  const nvf_schedule *s;
  nvf_layout *tile;  /* layout of each tile */
  nvf_layout **stmt; /* by statement id: layout of the results; of STORE and REDUCE: of the operand */
  uint32_t *hints;   /* by statement id: a bit for each hint that the schedule gives it */
} nvf_typed;
/* Infers layouts and dtypes and checks every rule of kernel-text.md; throws NVM_ERR_VALUE naming the statement. */
nvf_typed *nvf_kernel_check(nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s);
/* try_merge.c: what samples find wrong with a merge of n states of these dtypes. any_order: it has to be commutative;
   init: what should be its identity, or NULL. */
typedef enum nvf_merge_fault { NVF_NO_FAULT, NVF_NOT_COMMUTATIVE, NVF_NO_IDENTITY } nvf_merge_fault;
nvf_merge_fault nvf_try_merge(const nvg_frag *f, int n, const nvm_dtype *type, int any_order, const uint64_t *init);
/* Blocks of a launch: the sum over parts of the product of their grid extents. args[i] is the value of parameter i;
   only those of SIZE parameters are read. */
int64_t nvf_blocks(const nvf_kernel *k, const nvf_schedule *s, const uint64_t *args);
/* The value of an expression without axes, variables and tiles; grid may be NULL if it has no block coordinates. */
int64_t nvf_eval(const nvf_kernel *k, const nvf_schedule *s, const nvf_expr *x, const uint64_t *args,
                 const int64_t *grid);
#endif
