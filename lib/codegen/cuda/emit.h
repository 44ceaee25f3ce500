/* Inside of the CUDA emitter: one kernel under one schedule becomes one C++ source. A register item of a tile is a
   variable, a loop item a loop; what a place does not use holds copies. A file each: text and the whole kernel, index
   expressions, fragments, memory, loop nests, slow paths of groups of maps, shared memory, reductions, scans,
   moves. All of it runs under nvb_protect.
   Expressions travel as text: "atoms" are names or literals, everything else is in brackets where it can matter. */
#ifndef NVM_CODEGEN_CUDA_EMIT_H
#define NVM_CODEGEN_CUDA_EMIT_H
#include "base/text.h"
#include "codegen/cuda/cuda.h"
#include "codegen/loop_nests.h"

enum { NVCU_LOOPS = 48, NVCU_ARGS = 160, NVCU_DEPTH = 128 };

/* ---- where the tiles of a kernel live (what PUT makes: relayout.c) */
typedef enum nvcu_home {
  NVCU_REG,  /* a variable per item, visible from where it is defined to the end of that scope */
  NVCU_ARRAY /* looped and used in later nests: a local array [looped items][items]; in its own nest variables too */
} nvcu_home;
typedef struct nvcu_tile {
  nvcu_home home;
  int nitem;
  const char **v;             /* REG: name per item, NULL before its definition; mutable ones are assigned again */
  int nest;                   /* nest in which the names in v were given */
  struct nvcu_addresses *map; /* of PUT: addresses, and where; relayout.c alone looks at them */
  struct nvcu_rows *rows;     /* of PUT for tensor cores (tensor_core.h) */
  struct nvcu_smem *smem;
} nvcu_tile;

/* Value of an index expression at one register item: base + k. */
typedef struct nvcu_xv {
  const char *base;   /* atom of type ix (wide: long long); NULL: 0 */
  int64_t k, divisor; /* it divides base (0: no base) */
  int wide;           /* base has 64 bits whatever ix is: it comes from a 64-bit tile */
  int natural;        /* base >= 0 */
} nvcu_xv;

typedef struct nvcu_loop { int axis; int32_t extent; int64_t stride; const char *v; } nvcu_loop;
typedef struct nvcu_group nvcu_group;
typedef struct nvcu_red nvcu_red;      /* reduce.c */
typedef struct nvcu_cross_warp nvcu_cross_warp; /* cross_warp.c */

typedef struct nvcu_name { const char *type, *text, *name; int depth; } nvcu_name;
typedef struct nvcu_function { nvb_hash hash; int form; const char *name; } nvcu_function;

/* Part of the items: those whose digit of stride 8 of the axis, `each` values at a time, is in the at-th part; each 0:
   all. */
typedef struct nvcu_slice { int axis, each, at; } nvcu_slice;

/* Item digit in steps of whose n lowest values a relation does not change, as some access promises; n 0: none. */
typedef struct nvcu_steady { nvf_digit d; int n; } nvcu_steady;

typedef struct nvcu_em {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  const nvc_cuda_target *target;
  nvc_nests r;
  nvb_text out;      /* the body of the kernel, being written */
  nvb_text preamble; /* what stands in front of it: tables, fragments, slow paths */
  int depth;         /* of braces */
  int serial;        /* of fresh names */
  int warps;         /* of the block; threads = 32 * warps */
  int cluster;       /* blocks that share a kernel block; in text: rank */
  nvcu_tile *tile;
  nvc_nest *nest;                                  /* being emitted */
  int nested;                                      /* inside of so many FOR and IF */
  enum { NVCU_OWN, NVCU_READS, NVCU_LEFT } remote; /* other blocks' shared memory was read; and all have said so */
  int warps_later;                                 /* bits of the warp number that any later nest uses */
  int cluster_at;                                  /* clock of the last barrier of the cluster */
  int ndsmem, dsmem_open; /* barriers for numbers that other blocks send; the kernel has waited for all blocks */
  int blocks_later;       /* some later nest may read the memory of other blocks */
  const nvf_part *part;
  const char **grid, **grid_extent; /* by grid axis of the part: atoms; the extent of the first is not asked for */
  int long_index;   /* leaves of the index expression in hand have 64 bits: a product may not fit into an int */
  int64_t prefetch; /* added to the last block coordinate (prefetch) */
  const char **var; /* by loop variable: atom */
  nvcu_loop loop[NVCU_LOOPS];
  int nloop;
  const char **fixed;   /* by axis: its coordinate (atom) where a loop walks it that is no digit; NULL: none */
  const int64_t *shift; /* by axis: added to its coordinate; NULL: 0 */
  uint64_t known;       /* relations that hold here */
  nvcu_steady steady[NVC_RELATIONS];     /* by relation */
  nvcu_group *group;                     /* open group of maps with slow paths */
  NVB_VEC(nvcu_red *) red;               /* reductions of the nest */
  nvg_fragset *frags;                    /* transforms */
  int64_t shared, shared_most, exchange; /* bytes of dynamic shared memory: bump of this part, most of all, exchanges */
  struct nvcu_smem *common;              /* of exchanges */
  int clock, barrier_at, opened[NVCU_DEPTH]; /* shared_memory.c: times */
  int loop_at, round_at;                     /* what was done before is unknown: in buffers of loops, in all */
  struct nvcu_addresses *maps;               /* relayout.c: addresses of exchanges */
  const nvf_layout *got;                     /* relayout.c: how the last exchange was read */
  const struct nvcu_addresses *got_map;
  int got_at;
  int checks;
  int plain;     /* the part loads, maps and stores, and no more */
  int contracts; /* it has a contraction, whose epilogue has few registers to spare */
  int tensor;    /* the source needs the text of tensor cores, and shared memory at multiples of 1,024 */
  int nmap;
  nvc_cuda_map map[NVC_MAPS];
  nvcu_slice slice; /* of items that statements are emitted for */
  /* warp_specialized.c: a producer fills shared memory; NULL: every warp does the same */
  struct nvcu_pipeline *pipeline;
  uint8_t *done;             /* by statement id: it was emitted elsewhere */
  NVB_VEC(nvcu_name) let;    /* constants that are in sight */
  NVB_VEC(nvcu_function) fn; /* of the head */
} nvcu_em;

/* ---- kernel.c: text. A line gets its indentation and its line end. */
void nvcu_line(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nvcu_open(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* the line and " {" */
void nvcu_close(nvcu_em *e); /* "}"; names given by nvcu_let inside are forgotten */
const char *nvcu_text(nvcu_em *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *nvcu_fresh(nvcu_em *e, const char *prefix); /* a name that nothing else has */
/* `const type name = text;` once a scope: the name */
const char *nvcu_let(nvcu_em *e, const char *type, const char *text);
const char *nvcu_type(nvm_dtype t); /* in a register: "float", "bool"; halves "unsigned short" */
const char *nvcu_const(nvcu_em *e, nvm_dtype t, uint64_t bits); /* an atom */
int nvcu_is_number(const char *atom);
/* for (int v = lo; v < hi; v += step) {: v is fresh. unroll 0: as the compiler likes; 1: never; n: by n. Close with
   nvcu_close. */
const char *nvcu_for(nvcu_em *e, const char *lo, const char *hi, const char *step, int unroll);

/* ---- kernel.c: the threads of a block. In text: lane (0..31), warp, ix (type of index expressions). */
int nvcu_least_blocks(const nvcu_em *e); /* of a multiprocessor, in the launch bounds; 0: they say nothing of it */
/* Text of "this thread is the first of those that hold the same elements of l"; NULL: every thread is. */
const char *nvcu_first_copy(nvcu_em *e, const nvf_layout *l);
/* The warp that meets with others of l's: where the last copy of these is not complete, one of the first. */
const char *nvcu_warp(nvcu_em *e, const nvf_layout *l);
/* The same of the blocks of a cluster. */
const char *nvcu_rank(nvcu_em *e, const nvf_layout *l);
/* Throws where the bits of a digit of lanes or warps are none of their number's: `what` counts by bits. */
void nvcu_need_bits(nvcu_em *e, const nvf_digit *d, const char *what);

/* ---- shared_memory.c: shared memory ("shared": char *, 16-byte aligned) in buffers. One barrier before what was
   written is read, one before what is read is written again; none where one in between has served. */
typedef struct nvcu_smem {
  int64_t off;
  int exchange;            /* lies in the region of all exchanges, else in that of the part */
  int loops;               /* written and read in one round of an emitted loop; else only rounds of a FOR repeat it */
  int written_at, read_at; /* clock */
  const nvf_part *part;
} nvcu_smem;
nvcu_smem *nvcu_smem_new(nvcu_em *e, int64_t bytes, int loops);
nvcu_smem *nvcu_smem_exchange(nvcu_em *e, int64_t bytes); /* the one that all exchanges of the part share */
/* "((float *)(shared + 128))" */
const char *nvcu_smem_at(nvcu_em *e, const nvcu_smem *r, int64_t off, const char *type);
void nvcu_may_write(nvcu_em *e, const nvcu_smem *r); /* a barrier if some thread may still read */
void nvcu_wrote(nvcu_em *e, nvcu_smem *r);
void nvcu_may_read(nvcu_em *e, const nvcu_smem *r); /* a barrier if some thread may not have written */
void nvcu_read(nvcu_em *e, nvcu_smem *r);
int nvcu_dsmem_is_allowed(const nvcu_em *e); /* numbers may be sent to other blocks, each to be told of at a barrier */
const char *nvcu_dsmem_barrier_new(nvcu_em *e); /* such a barrier, for one phase; open: before any number is sent */
void nvcu_dsmem_open(nvcu_em *e);
void nvcu_cluster_barrier(nvcu_em *e); /* all threads of all blocks of the cluster */
void nvcu_cluster_end(nvcu_em *e);     /* shared memory ends with its block, and others may read it */
void nvcu_barrier(nvcu_em *e);
void nvcu_note_barrier(nvcu_em *e); /* a loop was closed whose rounds all end in a barrier */
void nvcu_scope_opened(nvcu_em *e); /* a brace: e->depth is that of its inside */
void nvcu_scope_closed(nvcu_em *e);
void nvcu_loop_opened(nvcu_em *e, int whole); /* whole: of a FOR */
void nvcu_part_opened(nvcu_em *e);

/* ---- index.c */
nvcu_xv nvcu_index(nvcu_em *e, const nvf_expr *x, const nvf_layout *l, int item);
const char *nvcu_index_text(nvcu_em *e, const nvcu_xv *x); /* "(t3 + 5)", "7" */
nvcu_xv nvcu_coordinate(nvcu_em *e, int axis, const nvf_layout *l, int item);
/* Value of digit d of l at an item, in [0, extent): loops, lanes and warps included. */
nvcu_xv nvcu_digit(nvcu_em *e, const nvf_layout *l, int d, int item);
nvcu_xv nvcu_add(nvcu_em *e, nvcu_xv a, nvcu_xv b, int sign);
nvcu_xv nvcu_times(nvcu_em *e, nvcu_xv a, int64_t c);
const char *nvcu_uniform(nvcu_em *e, const nvf_expr *x); /* without axes but for open loops */
/* Relations that are known are left out. NULL: true. "(t3 < 5 & M_0)" */
const char *nvcu_cond(nvcu_em *e, const nvf_cond *c, const nvf_layout *l, int item);
const char *nvcu_relations(nvcu_em *e, uint64_t set, const nvf_layout *l, int item);
const char *nvcu_and(nvcu_em *e, const char *a, const char *b); /* of conditions, NULL: true */

/* ---- frag.c */
/* Writes `outs = frag(args)`. out: names declared before, or NULL: declared here as const, fresh, and returned in
   out. flag: name of a bool that is ORed with the rare flag of the fast form; NULL: the full form. approx: the approx
   hint. */
void nvcu_frag(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char **out, const char *flag, int approx);
/* The same of one result, as an expression. */
const char *nvcu_frag_value(nvcu_em *e, const nvg_frag *f, const char *const *arg, const char *flag, int approx);
int nvcu_frag_has_slow_path(const nvg_frag *f, int approx); /* does its fast form flag anything on this device? */
/* Is the result of its fast form NaN where that could not be done, so that the caller has to ask for NaN? */
int nvcu_frag_shows(const nvg_frag *f, int approx);
/* a[i] = merge(a[i], b[i]): a becomes fresh names (or, with `into`, assigns to the names of a). */
void nvcu_merge(nvcu_em *e, const nvg_frag *f, const char **a, const char *const *b, int nstate, int into);
/* Whether there is a shorter way for four and more elements of a merge of (value, index). x: [element][state]; out:
   fresh names of what they merge into. */
int nvcu_merges_many(const nvg_frag *f);
void nvcu_merge_many(nvcu_em *e, const nvg_frag *f, int n, const char *const *x, const char **out);

/* ---- loops.c: values of tiles */
int nvcu_now(const nvcu_em *e, const nvf_layout *l, int item); /* is the item one of the slice in hand? */
const char *nvcu_tile_item(nvcu_em *e, int tile, int item);    /* of the tile's own layout: an atom */
const char *nvcu_tile_at(nvcu_em *e, int tile, const nvf_layout *l, int item);  /* at an item of a larger layout */
const char *nvcu_tile_now(nvcu_em *e, int tile, const nvf_layout *l, int item); /* whatever is assigned later */
void nvcu_define(nvcu_em *e, int tile, int item, const char *text);             /* declares and sets, or assigns */
void nvcu_bind(nvcu_em *e, int tile, int item, const char *name); /* has the value of `name` (not of carried tiles) */
void nvcu_homes(nvcu_em *e);                                      /* of the part's tiles; declares arrays */
void nvcu_seq(nvcu_em *e, const nvc_seq *q);
const char *nvcu_loop_value(const nvcu_em *e, const nvf_digit *d); /* NULL: not open */

/* Text of "each of these relations holds for all items and threads at the open loops", the same in all threads; NULL:
   they are known to; "": cannot be told. */
const char *nvcu_all_hold(nvcu_em *e, uint64_t set, const nvf_layout *l);

/* ---- prelude.c: of these texts what the body calls, and all that is neither function nor template */
void nvcu_prelude(nvb_arena *a, nvb_text *t, const char *const *text, int ntext, const char *body);

/* ---- memory.c */
void nvcu_find_steady(nvcu_em *e, const nvc_seq *q);
int nvcu_is_plain(const nvc_seq *q); /* one run of loads, maps and stores; no tile is part of a load's address */
/* The first of the items for which relation q (-1: none that is numbered) is the same as for this one. */
int nvcu_alike(const nvcu_em *e, int q, const nvf_layout *l, int item);
void nvcu_load(nvcu_em *e, const nvf_stmt *s);
void nvcu_store(nvcu_em *e, const nvf_stmt *s);
void nvcu_atomic(nvcu_em *e, const nvf_stmt *s);

/* ---- map.c: maps with slow paths */
void nvcu_map(nvcu_em *e, const nvf_stmt *s);
void nvcu_group_touch(nvcu_em *e, const nvf_stmt *s); /* closes the open group if s uses what it made */
void nvcu_group_close(nvcu_em *e);

/* ---- hooks: what the files of moves implement. Loops of the nest that are open at a call are those above `level`. */
/* reduce.c: new for each REDUCE of a run before its loops open; before and after at every level, 0..nloop, as
   lib/codegen/llvm/reduce.c; step in the body. limit: loop `level` will do [0, visited) of its rounds (visited: an
   atom, a number where it is all of them); chunks that are not reached hold the identity. */
nvcu_red *nvcu_reduce_new(nvcu_em *e, const nvf_stmt *s, const nvc_nest *r);
const nvf_stmt *nvcu_reduce_of(const nvcu_red *r);
void nvcu_reduce_before(nvcu_em *e, nvcu_red *r, int level);
void nvcu_reduce_limit(nvcu_em *e, nvcu_red *r, int level, const char *visited);
void nvcu_reduce_step(nvcu_em *e, nvcu_red *r);
void nvcu_reduce_after(nvcu_em *e, nvcu_red *r, int level);
int nvcu_reduce_in_parts(const nvcu_red *r, int axis);
void nvcu_reduce_part(nvcu_em *e, nvcu_red *r);
/* cross_warp.c: what is left of a reduction above bit nvcu_cross_warp_bit of its axis. NULL: something that only rounds
   can do, or too much; no loops of other axes may lie inside its own; again: some lie outside. open: before the loops;
   limit: the axis' loop will do [0, visited) of its rounds; post: in the body, v[result item][state]; meet (last: of
   its run's reductions, outside of all loops), then take for each result item its [state]: behind the loops. */
nvcu_cross_warp *nvcu_cross_warp_new(nvcu_em *e, const nvf_stmt *s, const nvf_layout *acc, int ny, int again);
int64_t nvcu_cross_warp_bit(const nvcu_cross_warp *b);
void nvcu_cross_warp_open(nvcu_em *e, const nvcu_cross_warp *b);
void nvcu_cross_warp_limit(nvcu_cross_warp *b, const char *visited);
void nvcu_cross_warp_store(nvcu_em *e, nvcu_cross_warp *b, const char *const *const *v);
void nvcu_cross_warp_sync(nvcu_em *e, const nvcu_cross_warp *b, int last);
const char **nvcu_cross_warp_load(nvcu_em *e, nvcu_cross_warp *b, int y);
int nvcu_cross_warp_loads_remote(const nvcu_cross_warp *b); /* does taking read the memory of other blocks? */
/* scan.c, relayout.c: one statement inside of its loops (a scan, put, get, relayout, contract with loops in its
   layouts opens those it needs itself where the nest has none). */
void nvcu_scan(nvcu_em *e, const nvf_stmt *s);
void nvcu_relayout(nvcu_em *e, const nvf_stmt *s);
/* Values that are no tiles, from layout to layout: `put` fills in their names at the loops of `from`, `get` takes them
   at those of `to`, [item]. */
typedef void (*nvcu_values)(nvcu_em *e, void *arg, const char **v);
void nvcu_transfer(nvcu_em *e, nvm_dtype t, const nvf_layout *from, nvcu_values put, const nvf_layout *to,
                   nvcu_values get, void *arg);
int nvcu_open_loops(nvcu_em *e, const nvf_layout *l); /* those that are not open yet; what to close */
void nvcu_close_loops(nvcu_em *e, int open);
void nvcu_put(nvcu_em *e, const nvf_stmt *s);
void nvcu_get(nvcu_em *e, const nvf_stmt *s);
/* Do the blocks of a cluster have one index of the axis each? Shared tiles are without it then. */
int nvcu_apart(const nvf_layout *l, int axis);
void nvcu_dft(nvcu_em *e, const nvf_stmt *s);
void nvcu_contract(nvcu_em *e, const nvf_stmt *s);
#endif
