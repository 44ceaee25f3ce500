/* Internals of the CUDA emitter: one kernel under one schedule becomes one C++ source. A register item of a tile is a
   variable, a loop digit is a loop; where a layout does not use a lane, warp or CTA, it holds a copy. The sections
   below name the files that implement them. All emitters run under nvb_protect. Expressions are text: an "atom" is a
   name or a literal, everything else is in brackets where precedence matters. */
#ifndef NVM_CODEGEN_CUDA_EMIT_H
#define NVM_CODEGEN_CUDA_EMIT_H
#include "base/text.h"
#include "codegen/cuda/cuda.h"
#include "codegen/loop_nests.h"

enum { NVCU_LOOPS = 48, NVCU_ARGS = 160, NVCU_DEPTH = 128 };

/* ---- where the tiles of a kernel live (shared tiles, which PUT makes: relayout.c, swizzle.c) */
typedef enum nvcu_home {
  NVCU_REG,  /* a variable per item, visible from its definition to the end of that scope */
  NVCU_ARRAY /* looped and used in later nests: a local array [looped items][items]; in its own nest variables, too */
} nvcu_home;
typedef struct nvcu_tile {
  nvcu_home home;
  int nitem;
  const char **v;             /* name per item, NULL before its definition; a mutable tile's are assigned again */
  int nest;                   /* the nest in which the names in v were defined */
  struct nvcu_addresses *map; /* of PUT: addresses within smem; only relayout.c looks at them */
  struct nvcu_rows *rows;     /* of PUT for tensor cores, else NULL (tensor_core.h) */
  struct nvcu_smem *smem;
} nvcu_tile;

/* Value of an index expression at one register item: base + k. */
typedef struct nvcu_xv {
  const char *base;   /* atom of type ix (wide: long long); NULL: 0 */
  int64_t k, divisor; /* divisor: base is a multiple of it (0: no base) */
  int wide;           /* base has 64 bits even if ix has 32: it comes from a 64-bit tile */
  int natural;        /* base >= 0 */
} nvcu_xv;

typedef struct nvcu_loop { int axis; int32_t extent; int64_t stride; const char *v; } nvcu_loop;
typedef struct nvcu_group nvcu_group;
typedef struct nvcu_red nvcu_red;      /* reduce.c */
typedef struct nvcu_cross_warp nvcu_cross_warp; /* cross_warp.c */

typedef struct nvcu_name { const char *type, *text, *name; int depth; } nvcu_name;
typedef struct nvcu_function { nvb_hash hash; int form; const char *name; } nvcu_function;

/* A slice of a tile's items: those whose digit of stride 8 of the axis has a value in [at * each, (at + 1) * each).
   each 0: all items. */
typedef struct nvcu_slice { int axis, each, at; } nvcu_slice;

/* An item digit, and how many consecutive values of it share the value of a relation, as a wide access needs; n 0: none
   do. */
typedef struct nvcu_steady { nvf_digit d; int n; } nvcu_steady;

typedef struct nvcu_em {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  const nvc_cuda_target *target;
  nvc_nests r;
  nvb_text out;      /* the body of the kernel, being written */
  nvb_text preamble; /* the text before the kernel: tables, fragments, slow paths */
  int depth;         /* number of open braces */
  int serial;        /* number of the next fresh name */
  int warps;         /* warps of a CTA (in a warp-specialised kernel: of the consumers); 32 threads each */
  int cluster;       /* CTAs that compute one block of the kernel's grid; in text: rank */
  nvcu_tile *tile;
  nvc_nest *nest; /* the nest that is emitted now */
  int nested;     /* number of FOR and IF around the current statement */
  /* READS: this CTA reads the shared memory of others; LEFT: it has announced that it is done */
  enum { NVCU_OWN, NVCU_READS, NVCU_LEFT } remote;
  int warps_later; /* bits of the warp number that some later nest uses */
  int cluster_at;  /* clock of the last cluster barrier */
  /* ndsmem: number of mbarriers for values from other CTAs; dsmem_open: not 0: the kernel has waited until all CTAs
     run */
  int ndsmem, dsmem_open;
  int blocks_later; /* 1: a later nest may read the shared memory of other CTAs */
  const nvf_part *part;
  const char **grid, **grid_extent; /* by grid axis of the part: atoms; the first axis has no extent */
  int long_index; /* 1: the leaves of the current index expression have 64 bits, as a product may not fit into an int */
  int64_t prefetch; /* is added to the last block coordinate, for prefetches */
  const char **var; /* by loop variable: atom */
  nvcu_loop loop[NVCU_LOOPS];
  int nloop;
  const char **fixed;                /* by axis: its coordinate (atom) if a loop that is no digit walks it; else NULL */
  const int64_t *shift;              /* by axis: is added to its coordinate; NULL: 0 for all */
  uint64_t known;                    /* set of relations that hold at the current place */
  nvcu_steady steady[NVC_RELATIONS]; /* by relation */
  nvcu_group *group;                 /* the open group of maps with a common slow path; NULL: none */
  NVB_VEC(nvcu_red *) red;           /* reductions of the current nest */
  nvg_fragset *frags;                /* fragments of transforms (DFT) */
  /* bytes of dynamic shared memory: used by this part, the most of all parts, of exchanges */
  int64_t shared, shared_most, exchange;
  struct nvcu_smem *common;                  /* the buffer of the part's exchanges */
  int clock, barrier_at, opened[NVCU_DEPTH]; /* shared_memory.c: now, the last barrier, when each scope was opened */
  int loop_at, round_at;       /* before these times accesses are unknown: of buffers with `loops`, of all */
  struct nvcu_addresses *maps; /* relayout.c: addresses of exchanges */
  const nvf_layout *got;       /* relayout.c: the layout in which the last exchange was read */
  const struct nvcu_addresses *got_map;
  int got_at;
  int checks;
  int plain;     /* 1: the part only loads, maps and stores */
  int contracts; /* 1: the part has a contraction, so that registers are scarce in its epilogue */
  int tensor;    /* 1: the source needs tensor_core.cu, and shared memory aligned to 1,024 bytes */
  int nmap;
  nvc_cuda_map map[NVC_MAPS];
  nvcu_slice slice; /* the items for which statements are emitted now */
  /* warp_specialized.c: the pipeline between producer and consumers; NULL: all warps run the same code */
  struct nvcu_pipeline *pipeline;
  uint8_t *done;             /* by statement id: 1 if it is emitted elsewhere */
  NVB_VEC(nvcu_name) let;    /* constants in scope */
  NVB_VEC(nvcu_function) fn; /* fragments defined as functions in the preamble */
} nvcu_em;

/* ---- kernel.c: text. Each line is indented and ended here. */
void nvcu_line(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The line with " {" after it. */
void nvcu_open(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nvcu_close(nvcu_em *e); /* "}"; forgets the names that nvcu_let made inside */
const char *nvcu_text(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *nvcu_fresh(nvcu_em *e, const char *prefix); /* a name that is used nowhere else */
/* Writes `const type name = text;`, once per scope; returns the name. */
const char *nvcu_let(nvcu_em *e, const char *type, const char *text);
const char *nvcu_type(nvm_dtype t); /* the C type in a register: "float", "bool"; 16-bit floats are "unsigned short" */
const char *nvcu_const(nvcu_em *e, nvm_dtype t, uint64_t bits); /* an atom */
int nvcu_is_number(const char *atom);
/* Opens for (int v = lo; v < hi; v += step) and returns v, a fresh name. unroll 0: the compiler decides; 1: never; n:
   by n. nvcu_close closes it. */
const char *nvcu_for(nvcu_em *e, const char *lo, const char *hi, const char *step, int unroll);

/* ---- kernel.c: the threads of a block. In text: lane (0..31), warp, ix (type of index expressions). */
int nvcu_least_blocks(const nvcu_em *e); /* CTAs per SM of __launch_bounds__; 0: not given */
/* Text of "this thread is the first of those that hold the same elements of l"; NULL: no two threads do. */
const char *nvcu_first_copy(nvcu_em *e, const nvf_layout *l);
/* The warp's number for merges with other warps of l. If the last copy of l's warps is incomplete, its warps take the
   numbers of the first copy. */
const char *nvcu_warp(nvcu_em *e, const nvf_layout *l);
/* The same for the CTAs of a cluster. */
const char *nvcu_rank(nvcu_em *e, const nvf_layout *l);
/* Throws if the values of a lane or warp digit are not bits of the lane or warp number, which `what` needs. */
void nvcu_need_bits(nvcu_em *e, const nvf_digit *d, const char *what);

/* ---- shared_memory.c: shared memory ("shared": char *, 16-byte aligned) in buffers. A barrier stands between a write
   and the reads of it, and between reads and the next write, unless another barrier in between has served. */
typedef struct nvcu_smem {
  int64_t off;
  int exchange; /* 1: it is the region of all exchanges; 0: it lies in that of the part */
  int loops;    /* 1: each iteration of an emitted loop writes and reads it; 0: only iterations of a FOR repeat that */
  int written_at, read_at; /* time of the last write and read; 0: none */
  const nvf_part *part;
} nvcu_smem;
nvcu_smem *nvcu_smem_new(nvcu_em *e, int64_t bytes, int loops);
nvcu_smem *nvcu_smem_exchange(nvcu_em *e, int64_t bytes); /* the buffer that all exchanges of the part share */
/* "((float *)(shared + 128))" */
const char *nvcu_smem_at(nvcu_em *e, const nvcu_smem *r, int64_t off, const char *type);
void nvcu_may_write(nvcu_em *e, const nvcu_smem *r); /* call before writing: a barrier if some thread may still read */
void nvcu_wrote(nvcu_em *e, nvcu_smem *r);
/* Call before reading: a barrier if some thread may not have written. */
void nvcu_may_read(nvcu_em *e, const nvcu_smem *r);
void nvcu_read(nvcu_em *e, nvcu_smem *r);
int nvcu_dsmem_is_allowed(const nvcu_em *e); /* may values be sent to other CTAs, counted by an mbarrier? */
/* Such an mbarrier, for one phase; call _open before any value is sent. */
const char *nvcu_dsmem_barrier_new(nvcu_em *e);
void nvcu_dsmem_open(nvcu_em *e);
void nvcu_cluster_barrier(nvcu_em *e); /* waits for all threads of the cluster */
void nvcu_cluster_end(nvcu_em *e);     /* no CTA may exit while others read its shared memory */
void nvcu_barrier(nvcu_em *e);
void nvcu_note_barrier(nvcu_em *e); /* a loop was closed whose iterations all end in a barrier */
void nvcu_scope_opened(nvcu_em *e); /* after a brace was opened; e->depth counts it */
void nvcu_scope_closed(nvcu_em *e);
void nvcu_loop_opened(nvcu_em *e, int whole); /* whole: the loop of a FOR */
void nvcu_part_opened(nvcu_em *e);

/* ---- index.c */
nvcu_xv nvcu_index(nvcu_em *e, const nvf_expr *x, const nvf_layout *l, int item);
const char *nvcu_index_text(nvcu_em *e, const nvcu_xv *x); /* "(t3 + 5)", "7" */
nvcu_xv nvcu_coordinate(nvcu_em *e, int axis, const nvf_layout *l, int item);
/* Value of digit d of l at an item, in [0, extent); digits at loops, lanes and warps, too. */
nvcu_xv nvcu_digit(nvcu_em *e, const nvf_layout *l, int d, int item);
nvcu_xv nvcu_add(nvcu_em *e, nvcu_xv a, nvcu_xv b, int sign);
nvcu_xv nvcu_times(nvcu_em *e, nvcu_xv a, int64_t c);
const char *nvcu_uniform(nvcu_em *e, const nvf_expr *x); /* x has no axes other than open loops */
/* Text of a condition, without the relations that are known; NULL: true. "(t3 < 5 & M_0)" */
const char *nvcu_cond(nvcu_em *e, const nvf_cond *c, const nvf_layout *l, int item);
const char *nvcu_relations(nvcu_em *e, uint64_t set, const nvf_layout *l, int item);
const char *nvcu_and(nvcu_em *e, const char *a, const char *b); /* a & b; NULL stands for true */

/* ---- frag.c */
/* Writes `outs = frag(args)`. out: names declared before, or NULL: then fresh constants are declared and returned in
   out. flag: name of a bool that is ORed with the rare flag of the fast form; NULL: the full form. approx: the hint. */
void nvcu_frag(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char **out, const char *flag, int approx);
/* The same for a fragment with one result, as an expression. */
const char *nvcu_frag_value(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char *flag, int approx);
int nvcu_frag_has_slow_path(const nvg_frag *f, int approx); /* can its fast form set the rare flag on this device? */
/* Does its fast form return NaN, instead of a flag, for inputs it cannot do? Then the caller has to test for NaN. */
int nvcu_frag_shows(const nvg_frag *f, int approx);
/* Writes f of n elements at once, which compute once what they have in common. arg, out: [element][operand, result];
   flag: [element], or NULL; out and flag as of nvcu_frag. numbered: the first operand numbers the elements, that of the
   first one is a multiple of n, and n is at most nvcu_frag_shared. */
void nvcu_frag_at_once(nvcu_em *e, const nvg_frag *f, int n, int numbered, const char *const *arg, const char **out,
                       const char *const *flag);
int nvcu_frag_shared(const nvg_frag *f); /* nvg_frag_shared, if there can be such code; else 1 */
/* How many constants take instructions of their own, which such code shares; 0 also if there can be none. */
int nvcu_frag_long_constants(const nvg_frag *f);
/* a[i] = merge(a[i], b[i]): a becomes fresh names (or, with `into`, assigns to the names of a). */
void nvcu_merge(nvcu_em *e, const nvg_frag *f, const char **a, const char *const *b, int nstate, int into);
/* Is there shorter code for a merge of four and more (value, index) elements? x: [element][state]; out: fresh names of
   the merged states. */
int nvcu_merges_many(const nvg_frag *f);
void nvcu_merge_many(nvcu_em *e, const nvg_frag *f, int n, const char *const *x, const char **out);

/* ---- loops.c: values of tiles */
int nvcu_now(const nvcu_em *e, const nvf_layout *l, int item); /* does the current slice have the item? */
const char *nvcu_tile_item(nvcu_em *e, int tile, int item);    /* at an item of the tile's own layout; an atom */
const char *nvcu_tile_at(nvcu_em *e, int tile, const nvf_layout *l, int item); /* at an item of a larger layout */
/* A copy that later assignments do not change. */
const char *nvcu_tile_now(nvcu_em *e, int tile, const nvf_layout *l, int item);
void nvcu_define(nvcu_em *e, int tile, int item, const char *text); /* declares and sets, or assigns */
/* The item is another name of `name`; not for mutable tiles. */
void nvcu_bind(nvcu_em *e, int tile, int item, const char *name);
void nvcu_homes(nvcu_em *e); /* decides the homes of the part's tiles, declares arrays */
void nvcu_seq(nvcu_em *e, const nvc_seq *q);
/* The variable of the open loop; NULL: it is not open. */
const char *nvcu_loop_value(const nvcu_em *e, const nvf_digit *d);

/* Text of "all these relations hold for all items and threads at the open loops", equal in all threads; NULL: they are
   known to hold; "": it cannot be expressed. */
const char *nvcu_all_hold(nvcu_em *e, uint64_t set, const nvf_layout *l);

/* ---- prelude.c: appends the definitions of these texts that the body uses, and all that is neither function nor
   template */
void nvcu_prelude(nvb_arena *a, nvb_text *t, const char *const *text, int ntext, const char *body);

/* ---- memory.c */
void nvcu_find_steady(nvcu_em *e, const nvc_seq *q);
int nvcu_is_plain(const nvc_seq *q); /* one nest of loads, maps and stores without tiles in a load's address */
/* The first item at which relation q has the same value as at this one; q -1: a relation without a number. */
int nvcu_alike(const nvcu_em *e, int q, const nvf_layout *l, int item);
void nvcu_load(nvcu_em *e, const nvf_stmt *s); /* not by TMA */

/* ---- map.c: maps with slow paths */
void nvcu_group_touch(nvcu_em *e, const nvf_stmt *s); /* closes the open group if s uses one of its results */
void nvcu_group_close(nvcu_em *e);

/* ---- reductions, scans and moves. At a call, the loops of the nest above `level` are open. */
/* reduce.c: new for each REDUCE of a nest before its loops open; before and after at every level 0..nloop, as in
   lib/codegen/llvm/reduce.c; step in the body. limit: loop `level` will execute [0, visited) of its iterations
   (visited: an atom; a number if it is all of them); chunks that are not executed hold the identity. */
nvcu_red *nvcu_reduce_new(nvcu_em *e, const nvf_stmt *s, const nvc_nest *r);
const nvf_stmt *nvcu_reduce_of(const nvcu_red *r);
void nvcu_reduce_before(nvcu_em *e, nvcu_red *r, int level);
void nvcu_reduce_limit(nvcu_em *e, nvcu_red *r, int level, const char *visited);
void nvcu_reduce_step(nvcu_em *e, nvcu_red *r);
void nvcu_reduce_after(nvcu_em *e, nvcu_red *r, int level);
int nvcu_reduce_in_parts(const nvcu_red *r, int axis);
void nvcu_reduce_part(nvcu_em *e, nvcu_red *r);
/* cross_warp.c: merges a reduction from bit nvcu_cross_warp_bit of its axis on. NULL: the buffer cannot merge it, or
   would gain nothing; no loops of other axes may lie inside its own (again: some lie outside). open: before the loops;
   limit: the axis' loop will execute [0, visited) of its iterations; store: in the body, v[result item][state]; after
   the loops sync (last: of its nest's reductions, outside of all loops), then load, which returns the [state] of a
   result item. */
nvcu_cross_warp *nvcu_cross_warp_new(nvcu_em *e, const nvf_stmt *s, const nvf_layout *acc, int ny, int again);
int64_t nvcu_cross_warp_bit(const nvcu_cross_warp *b);
void nvcu_cross_warp_open(nvcu_em *e, const nvcu_cross_warp *b);
void nvcu_cross_warp_limit(nvcu_cross_warp *b, const char *visited);
void nvcu_cross_warp_store(nvcu_em *e, nvcu_cross_warp *b, const char *const *const *v);
void nvcu_cross_warp_sync(nvcu_em *e, const nvcu_cross_warp *b, int last);
const char **nvcu_cross_warp_load(nvcu_em *e, nvcu_cross_warp *b, int y);
int nvcu_cross_warp_loads_remote(const nvcu_cross_warp *b); /* does a load read the shared memory of other CTAs? */
/* ---- one statement inside its loops: nvcu_emit_ and its word. A scan, put, get, relayout or contraction with loops in
   its layouts opens them itself if the nest has none. */
#define OPERATION(id, word, ...) void nvcu_emit_##word(nvcu_em *e, const nvf_stmt *s);
#include "kernel/statements.def"
/* Moves values that are no tile between layouts: `put` fills in their names at the loops of `from`, `get` receives them
   at those of `to`; v: [item]. */
typedef void (*nvcu_values)(nvcu_em *e, void *arg, const char **v);
void nvcu_transfer(nvcu_em *e, nvm_dtype t, const nvf_layout *from, nvcu_values put, const nvf_layout *to,
                   nvcu_values get, void *arg);
/* Opens the loops of l that are not open; returns what to pass to close. */
int nvcu_open_loops(nvcu_em *e, const nvf_layout *l);
void nvcu_close_loops(nvcu_em *e, int open);
/* Does each CTA of a cluster have one index of the axis? Then shared tiles do not have this axis. */
int nvcu_apart(const nvf_layout *l, int axis);
#endif
