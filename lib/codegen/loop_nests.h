/* The analysis of a kernel before code is emitted: loop nests (statements with the same emitted loops), the uses of
   each tile, which statements later nests repeat instead of keeping a tile in memory, and which relations every effect
   of a nest carries. Knows no device and emits nothing. */
#ifndef NVM_CODEGEN_LOOP_NESTS_H
#define NVM_CODEGEN_LOOP_NESTS_H
#include "kernel/kernel.h"

typedef NVB_VEC(int) nvc_ints;
typedef NVB_VEC(nvf_stmt *) nvc_stmts;
enum { NVC_NEST_LOOPS = NVF_MAX_DIGITS, NVC_RELATIONS = 64 };

/* ---- loop nests: consecutive statements with the same loops */
typedef struct nvc_nest {
  int id, nloop, solo; /* solo: a FOR or IF */
  nvf_digit loop[NVC_NEST_LOOPS];
  nvc_stmts s;      /* in text order; repeated statements come first */
  uint64_t carries; /* relations that every effect carries: where one fails, the nest has nothing to do */
  struct nvc_seq *body, *other;
} nvc_nest;
typedef struct nvc_seq { int n; nvc_nest **nest; } nvc_seq;
typedef NVB_VEC(nvc_nest *) nvc_nest_list;

typedef struct nvc_tile_use {
  const nvf_stmt *def; /* the first statement that defines it */
  nvc_ints users;      /* statement ids */
  int mutable;         /* 1: a loop carries it, so it is assigned again */
  int scanned;         /* 1: a scan defines it */
  int repeated;        /* 1: later nests repeat its definition */
  int kept; /* 1: it is kept in memory: the device says so, or later nests use it in loops and cannot repeat it */
} nvc_tile_use;

typedef struct nvc_nests {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  int (*in_memory)(void *emitter, int tile); /* does this device keep the tile in memory in any case? NULL: never */
  void *emitter;
  int map_cost;           /* maps up to this cost per element may be repeated; 0: none */
  const nvf_stmt **stmt;  /* by statement id */
  nvc_nest **nest_of;     /* by statement id: the nest in which it stands in the text */
  nvc_nest_list *done_in; /* by statement id: all nests that execute it */
  nvc_tile_use *tile;
  int nnest;
  int nrel; /* numbered relations of the part, at most 64 */
  struct nvf_rel *rel[NVC_RELATIONS];
} nvc_nests;

void nvc_nests_init(nvc_nests *r, nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s, const nvf_typed *t);
nvc_seq *nvc_nests_of_part(nvc_nests *r, const nvf_part *p);
void nvc_uses(const nvc_nests *r, const nvf_stmt *s, nvc_ints *out);    /* adds the tiles that s reads to out */
const nvf_layout *nvc_layout_of(const nvc_nests *r, const nvf_stmt *s); /* the layout whose loops and items s walks */
int64_t nvc_hint(const nvc_nests *r, const nvf_stmt *s, nvf_hint hint, int64_t absent);
int64_t nvc_name_value(const nvc_nests *r, int name); /* the value of an integer name in the schedule */

/* ---- relations, numbered */
int nvc_relation(nvc_nests *r, const struct nvf_rel *rel); /* its number; -1: more than 64 relations, or it has tiles */
uint64_t nvc_relation_set(nvc_nests *r, const nvf_cond *c);
uint64_t nvc_carried_by_all(const nvc_seq *q);
/* The relations of `set` that have one value in the whole block. */
uint64_t nvc_same_in_block(const nvc_nests *r, uint64_t set);
/* A relation as x < 0 with x = sign * (a - b) + plus; returns 0 for == and !=. */
int nvc_normal(const struct nvf_rel *rel, int *sign, int *plus);
/* x of relation q over the digits of l inside loop `level` of the nest (level nloop: items, lanes, warps): its range
   [lo, hi] there, `plus` included, its step along the loop itself, and whether no deeper loop changes it. Returns 0 if
   x is not linear. */
typedef struct nvc_line { int64_t step, lo, hi; int deepest; } nvc_line;
int nvc_linear(const nvc_nests *r, const nvc_nest *nest, int q, int level, const nvf_layout *l, nvc_line *out);
/* The widest layout of a statement of the nest whose condition has relation q; NULL: there is none. */
const nvf_layout *nvc_widest_with(nvc_nests *r, const nvc_nest *nest, int q);
/* The widest layout of a statement of the nest that has all axes of relation q; NULL: there is none. */
const nvf_layout *nvc_widest_over(const nvc_nests *r, const nvc_nest *nest, int q);
int nvc_still(const nvc_nests *r, int q, int axis); /* does relation q have one value along the axis? */

/* ---- expressions and layouts */
int nvc_has(const nvf_expr *x, nvf_xkind kind);
/* c: the coefficient of `axis` in x; returns 0 if it is not constant */
int nvc_coef(const nvc_nests *r, const nvf_expr *x, int axis, int64_t *c);
int nvc_looped(const nvf_digit *d); /* an emitted loop with more than one iteration */
int nvc_has_loops(const nvf_layout *l);
int nvc_items(const nvf_layout *l);                             /* number of register items */
int nvc_digit_value(const nvf_layout *l, int d, int item);      /* the value of item digit d at an item */
int nvc_item_step(const nvf_layout *l, int d);                  /* from one item to the next one along digit d */
int64_t nvc_axis_part(const nvf_layout *l, int axis, int item); /* the item's part of the axis' index */
/* The item of `small` that has the element at an item of l. */
int nvc_match_item(const nvf_layout *small, const nvf_layout *l, int item);
int nvc_same_items(const nvf_layout *a, const nvf_layout *b); /* the same layout and the same order of items */
#endif
