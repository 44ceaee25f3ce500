/* Internals of the LLVM emitter: one kernel under one schedule becomes a module with the function nvm_kernel. The
   sections below name the files that implement them. All emitters run under nvb_protect; LLVM's objects belong to the
   caller (jit.c). */
#ifndef NVM_CODEGEN_LLVM_EMIT_H
#define NVM_CODEGEN_LLVM_EMIT_H
#include <llvm-c/Core.h>
#include "codegen/codegen.h"
#include "codegen/loop_nests.h"
#include "frag/frag.h"

typedef LLVMValueRef val;
typedef LLVMTypeRef typ;
typedef LLVMBasicBlockRef blk;

enum { NVC_LANES = 64, NVC_ARGS = 64 };
#pragma GCC visibility push(hidden) /* the module exports no name that begins with nvcl_ */

/* ---- where the tiles of a kernel live */
typedef enum nvcl_home {
  NVC_SSA, /* defined and used in one nest, or outside of loops: a value per register item */
  NVC_VAR, /* carried by a loop, so assigned again: a stack slot per item, promoted by mem2reg */
  NVC_MEM  /* scratch: [looped items][items][lanes] */
} nvcl_home;
typedef struct nvcl_tile {
  nvcl_home home;
  int nitem, lanes;   /* lanes: 1 (no lane digit) or the lanes of the kernel */
  val *v;             /* by item: the value, or its stack slot */
  int64_t off;        /* MEM, shared: offset in scratch, in bytes */
  int nest;           /* the nest that defines it */
  int norder, *order; /* shared: axes, slowest first */
  int64_t *extent;    /* shared: extents of those axes */
} nvcl_tile;

typedef struct nvcl_loop { int axis; int32_t extent; int64_t stride, by; val v; } nvcl_loop; /* v: iteration * by */

/* A value of an index expression at one register item: base + k + lanes; lanes: nothing, constants, or a vector,
   which may be constants times one scalar. */
typedef struct nvcl_xv {
  val base;           /* i64; NULL: 0 */
  int64_t k, divisor; /* divisor: base is a multiple of it */
  int form;           /* 0: the same in all lanes; 1: pat, a constant per lane; 2: vec */
  int64_t pat[NVC_LANES];
  val vec, step; /* step: vec is pat * step; NULL: it is no such product */
} nvcl_xv;

typedef struct nvcl_mask { val one, all; } nvcl_mask; /* one: an i1 for all lanes; all: a vector of i1; NULL: true */

/* ---- the versions of the innermost loop of a nest (loop_split.c) */
/* versions, at most: enough for each operand of the widest concat that the planner lets a kernel choose between */
enum { NVC_LOOP_VERSIONS = 18 };
/* What a version executes of a statement: all of it, one side of a choice, nothing */
enum { NVC_WHOLE, NVC_YES, NVC_NO, NVC_SKIPPED = -1 };
typedef struct nvcl_version {
  uint64_t known, never; /* relations that hold in all lanes of its iterations, that hold in no lane of them */
  int nfail;
  uint64_t *fail;    /* sets of relations: of each set, some relation holds in no lane */
  signed char *side; /* by statement id: NVC_WHOLE, NVC_YES, NVC_NO or NVC_SKIPPED */
} nvcl_version;
typedef struct nvcl_bounds { int64_t step; val first, last, holds, fails; } nvcl_bounds;
typedef struct nvcl_split {
  int n;
  nvcl_version *at[NVC_LOOP_VERSIONS];
  uint64_t lines, asked; /* relations that are linear in the loop; that some version depends on */
  nvcl_bounds bounds[NVC_RELATIONS];
} nvcl_split;

typedef struct nvcl_group nvcl_group;
typedef struct nvcl_red nvcl_red;
typedef struct nvcl_search nvcl_search;
typedef struct nvcl_slow_path { nvc_ints map; val fn; } nvcl_slow_path;

typedef struct nvcl_em {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  const nvc_target *target;
  LLVMContextRef c;
  LLVMModuleRef m;
  LLVMBuilderRef b;
  val fn;
  blk entry;  /* the block in which stack slots are allocated */
  blk failed; /* returns `error` */
  val error;
  typ i1, i8, i16, i32, i64, f32, f64, half, ptr, tvoid;
  int lanes;                        /* lanes of the part that is emitted */
  val *param, *var, *grid, scratch; /* param: a pointer, an i64 or the scalar's value */
  int64_t ahead;                    /* is added to the last block coordinate, for prefetches */
  int ngrid;
  int64_t scratch_bytes;
  nvcl_loop loop[NVC_NEST_LOOPS + 4];
  int nloop;
  val *fixed;           /* by axis: its coordinate if a loop that is no digit walks it; else NULL */
  const int64_t *shift; /* by axis: is added to its coordinate; NULL: 0 for all */
  nvg_fragset *frags;   /* fragments of transforms (DFT) */
  nvcl_tile *tile;
  nvc_nests r;
  nvc_nest *nest;     /* the nest that is emitted now */
  const nvc_seq *seq; /* the sequence of that nest */
  val clamped, threshold;
  /* the block in which these are valid: the last mask's base, and the value that its lanes are compared with */
  blk clamped_in;
  uint64_t known, active; /* relations that hold at the current place; carried relations that may fail there */
  nvcl_split *split;      /* versions of the nest's innermost loop; NULL: its loops are only cut in two */
  nvcl_version *version;  /* the version that is emitted now; NULL: the whole body */
  nvcl_group *group;      /* the open group of maps with a common slow path; NULL: none */
  NVB_VEC(nvcl_slow_path) slow_paths; /* out-of-line functions, by their maps */
  NVB_VEC(nvcl_red *) red;            /* reductions of the current nest */
  /* stack memory for the lanes of an access, and the entry block of the function that has it */
  val workspace;
  blk workspace_in;
  nvcl_search *search; /* the search that the current iterations perform; NULL: they merge */
  int streamed;        /* 1: a non-temporal store was emitted */
  int compact;         /* 1: loops are not cut */
} nvcl_em;

/* ---- types.c: types, constants, helpers */
void nvcl_em_types(nvcl_em *e);
typ nvcl_type(nvcl_em *e, nvm_dtype t);    /* the type in a register: bool i1, 16-bit floats i16 */
typ nvcl_memtype(nvcl_em *e, nvm_dtype t); /* the type in memory: bool i8 */
typ nvcl_vec(typ t, int n);                /* a vector of n; t itself for n = 1 */
val nvcl_int(nvcl_em *e, int64_t x);
val nvcl_i32(nvcl_em *e, int x);
val nvcl_bits(nvcl_em *e, nvm_dtype t, uint64_t bits, int n); /* a constant in n lanes */
val nvcl_consts(nvcl_em *e, typ t, const int64_t *x, int n);  /* integers, one per lane */
val nvcl_zero(nvcl_em *e, nvm_dtype t, int n);
val nvcl_splat(nvcl_em *e, val v, int n);                           /* a scalar in n lanes; a vector as it is */
val nvcl_shuffle(nvcl_em *e, val a, val b, const int *lane, int n); /* b NULL: of a alone */
val nvcl_call(nvcl_em *e, const char *intrinsic, typ *over, int nover, val *arg, int narg);
val nvcl_any(nvcl_em *e, val mask);                 /* i1: some lane is set */
val nvcl_slot(nvcl_em *e, typ t, const char *name); /* a stack slot in the entry block */
val nvcl_gep(nvcl_em *e, val p, int64_t bytes);     /* p + bytes */
val nvcl_load(nvcl_em *e, typ t, val p, unsigned align);
void nvcl_store(nvcl_em *e, val v, val p, unsigned align);
blk nvcl_block(nvcl_em *e, const char *name);
void nvcl_at(nvcl_em *e, blk b);
blk nvcl_here(nvcl_em *e);
void nvcl_unlikely(nvcl_em *e, val when, blk rare, blk usual); /* branches to `usual` nearly always */
typedef struct nvcl_for { blk body, exit; val phi, i, hi, step; } nvcl_for;
void nvcl_for_begin(nvcl_em *e, nvcl_for *f, val lo, val hi, val step, const char *name);
void nvcl_for_end(nvcl_em *e, nvcl_for *f);
void nvcl_attr(nvcl_em *e, val fn, const char *key, const char *value); /* value NULL: an enum attribute */
void nvcl_attributes(nvcl_em *e, val fn); /* attributes of every function: target, vector width, nounwind */

/* ---- frag.c: fragments over vectors */
/* arg[nparam] and out[nresult] have n lanes. Returns the rare flag (i1 in n lanes); NULL: the form is never rare. */
val nvcl_frag(nvcl_em *e, const nvg_frag *f, const val *arg, val *out, int n);
/* How the lanes of an argument differ: in any way; not at all; by 1 from each to the next, from a multiple of n on. */
typedef enum nvcl_lanes { NVCL_ANY, NVCL_UNIFORM, NVCL_CONSECUTIVE } nvcl_lanes;
/* The same; what groups of lanes share, since their elements have numbers with one quotient, is computed once. */
val nvcl_frag_over(nvcl_em *e, const nvg_frag *f, const val *arg, const nvcl_lanes *lanes, val *out, int n);
val nvcl_table(nvcl_em *e, const char *name, nvm_dtype t, val *x, uint64_t n); /* a constant array of the module */
const nvg_frag *nvcl_frag_full(const nvg_frag *f);

/* ---- index.c: coordinates, index expressions, conditions */
int nvcl_layout_lanes(const nvcl_em *e, const nvf_layout *l); /* 1, or the lanes of the part */
nvcl_xv nvcl_index(nvcl_em *e, const nvf_expr *x, const nvf_layout *l, int item);
val nvcl_index_value(nvcl_em *e, const nvcl_xv *x, int n); /* i64 in n lanes */
val nvcl_uniform(nvcl_em *e, const nvf_expr *x);           /* a scalar; an axis is 0 except for its open loops */
/* The mask of a condition, without the relations that are known. */
nvcl_mask nvcl_cond(nvcl_em *e, const nvf_cond *c, const nvf_layout *l, int item);
nvcl_mask nvcl_relations(nvcl_em *e, uint64_t set, const nvf_layout *l, int item);
/* Whether every lane satisfies all relations of a set, or else whether some lane may, as one i1; NULL: not known. */
val nvcl_lanes_hold(nvcl_em *e, uint64_t set, const nvf_layout *l, int item, int every);
val nvcl_mask_value(nvcl_em *e, nvcl_mask m, int n); /* i1 in n lanes; NULL: all */
val nvcl_floor_div(nvcl_em *e, val a, val b);        /* scalars */

/* ---- memory.c: elements of buffers and scratch */
typedef struct nvcl_access {
  val base;       /* address of element 0 */
  nvm_dtype type; /* type of an element (of a part of a pair) */
  int parts;      /* 1, or 2 for pairs */
  nvcl_xv at;     /* index in elements (a pair is one) */
  int n;          /* lanes */
  val mask;       /* i1 in n lanes; NULL: all */
  val some;       /* i1: if false, no lane is accessed, whatever the mask is; NULL: true */
} nvcl_access;
void nvcl_read(nvcl_em *e, const nvcl_access *x, uint64_t other, val *out);
/* Of the lanes that hold copies of an element under l, one stores. */
void nvcl_write(nvcl_em *e, const nvcl_access *x, const val *in, const nvf_layout *l, int stream);
val nvcl_to_memory(nvcl_em *e, val v, nvm_dtype t, int n);
val nvcl_from_memory(nvcl_em *e, val v, nvm_dtype t, int n);

/* ---- storage.c: loop nests, homes of tiles */
nvc_seq *nvcl_plan_part(nvcl_em *e, const nvf_part *p);
int nvcl_in_memory(void *emitter, int tile);
int64_t nvcl_scratch(nvcl_em *e, int64_t bytes); /* allocates scratch; returns the offset */
/* ---- loops.c: loop nests, values of tiles */
void nvcl_emit_seq(nvcl_em *e, const nvc_seq *q);
val nvcl_tile_at(nvcl_em *e, int tile, const nvf_layout *l, int item); /* broadcast to l's lanes */
void nvcl_define(nvcl_em *e, int tile, int item, val v);               /* at an item of the tile's own layout */
val nvcl_tile_item(nvcl_em *e, int tile, int item);                    /* at an item of the tile's own layout */
val nvcl_loop_value(nvcl_em *e, const nvf_digit *d, int64_t by);       /* iteration * by; NULL: the loop is not open */

/* ---- loop_split.c: bounds and versions of loops */
/* set: relations that hold in all lanes of the iterations [0, full); any: iterations with any effect; exact: full is
   any */
typedef struct nvcl_cut { uint64_t set; int exact; val full, any; } nvcl_cut;
nvcl_cut nvcl_cut_loop(nvcl_em *e, const nvc_nest *r, int level);
/* Iterations of loop `level` that some effect uses, whatever a loop along `axis` does. */
val nvcl_kept_iterations(nvcl_em *e, const nvc_nest *r, int level, int axis);
int nvcl_is_expensive(nvcl_em *e, const nvc_nest *r);
nvcl_split *nvcl_split_new(nvcl_em *e, const nvc_nest *r); /* NULL: versions would gain nothing */
/* Call before the following ones: evaluates the bounds that they use. */
void nvcl_split_at(nvcl_em *e, const nvc_nest *r);
/* The end of the iterations from lo on that the same version serves. */
val nvcl_same_until(nvcl_em *e, val lo, val any);
val nvcl_serves(nvcl_em *e, int version, val lo, val hi); /* i1: does the version serve these iterations? */
int nvcl_side(const nvcl_em *e, const nvf_stmt *s);       /* what the current version executes of the statement */

/* ---- map.c: maps with slow paths */
void nvcl_group_touch(nvcl_em *e, const nvf_stmt *s); /* closes the open group if s uses one of its results */
void nvcl_group_close(nvcl_em *e);

/* ---- reduce.c */
const nvf_stmt *nvcl_reduce_of(const nvcl_red *r);
nvcl_red *nvcl_reduce_new(nvcl_em *e, const nvf_stmt *s, const nvc_nest *r);
void nvcl_reduce_before(nvcl_em *e, nvcl_red *r, int level);             /* call before loop `level` is opened */
void nvcl_reduce_limit(nvcl_em *e, nvcl_red *r, int level, val visited); /* iterations that loop `level` will execute */
void nvcl_reduce_step(nvcl_em *e, nvcl_red *r, int from, int to);        /* items [from, to) of the operand */
const struct nvc_reduction *nvcl_reduction(const nvcl_red *r);
/* The operand's state i; the identity where it is masked. */
val nvcl_reduce_operand(nvcl_em *e, const nvcl_red *r, int i, int item);
void nvcl_reduce_give(nvcl_em *e, nvcl_red *r, int i, val v); /* sets all accumulators of state i to the result v */
void nvcl_reduce_after(nvcl_em *e, nvcl_red *r, int level);
void nvcl_merge(nvcl_em *e, const nvg_frag *f, val *a, const val *b, int nstate, int n); /* a = merge(a, b) */

/* ---- search.c: reductions whose result is one of the elements */
/* An arg-reduction whose lanes meet their elements in the order of the positions: of equal ones the first stays. */
typedef struct nvcl_ordered {
  const nvg_frag *keeps, *ends; /* ends NULL: no element is kept beside every other */
  const nvf_expr *position;
} nvcl_ordered;
const nvcl_ordered *nvcl_ordered_new(nvcl_em *e, const struct nvc_reduction *of);  /* NULL: it is none */
val nvcl_ordered_keeps(nvcl_em *e, const nvcl_ordered *o, val best, val x, int n); /* i1: best stays beside x */
/* The search of a nest, called when its reductions exist; NULL: it has none. */
nvcl_search *nvcl_search_new(nvcl_em *e, const nvc_nest *r);
void nvcl_search_begin(nvcl_em *e, nvcl_search *s); /* call before the innermost loop */
/* Call when all items of an iteration are defined. */
void nvcl_search_step(nvcl_em *e, nvcl_search *s);
void nvcl_search_end(nvcl_em *e, nvcl_search *s); /* call after the loop: assigns the result */

/* ---- one statement inside its loops: nvcl_emit_ and its word, for items [from, to); those that take whole tiles, and
   maps with a slow path, emit all of them at once */
#define OPERATION(id, word, ...) void nvcl_emit_##word(nvcl_em *e, const nvf_stmt *s, int from, int to);
#include "kernel/statements.def"

/* ---- prefetch.c */
int nvcl_moves_with_block(const nvcl_em *e, const nvf_expr *x); /* does x depend on the last block coordinate? */
void nvcl_prefetch_line(nvcl_em *e, val p, int written);        /* of memory, into L2; written: in order to write it */
/* Whether the current sequence has its prefetches beside its transforms, and not where it reads and writes. */
int nvcl_spreads_prefetches(const nvcl_em *e);
/* Emits the nest's part of these prefetches; call in its innermost loop. */
void nvcl_prefetch_part(nvcl_em *e, const nvc_nest *r);

/* ---- statement.c, relayout.c */
void nvcl_stmt(nvcl_em *e, const nvf_stmt *s);
int nvcl_by_items(const nvf_stmt *s); /* may it be emitted in ranges of its items? */
void nvcl_stmt_items(nvcl_em *e, const nvf_stmt *s, int from, int to);
const nvf_expr *nvcl_shared_map(nvcl_em *e, int tile); /* address within a shared tile */
nvcl_access nvcl_shared(nvcl_em *e, int tile, const nvf_expr *map, const nvf_layout *l, int item);
/* Can the relayout be done in registers? 0: the source must be in scratch. */
int nvcl_in_registers(nvcl_em *e, const nvf_stmt *relayout);

/* ---- kernel.c: the whole module. compact: each loop once, with masks where it may need them. Throws; returns bytes
   of scratch. */
int64_t nvcl_emit_kernel(nvb_arena *a, LLVMContextRef c, LLVMModuleRef m, LLVMBuilderRef b, const nvf_kernel *k,
                         const nvf_schedule *s, const nvc_target *target, int compact);
#pragma GCC visibility pop
#endif
