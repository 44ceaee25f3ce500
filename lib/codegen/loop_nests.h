/* What an emitter knows of a kernel before it writes: statements with the same emitted loops as loop nests, who uses a
   tile, which loads are done again instead of kept, and which relations every effect of a run carries. Knows no
   device. */
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
  nvc_stmts s;      /* in text order, what is repeated here first */
  uint64_t carries; /* relations that every effect carries: where one fails, nothing needs to be done */
  struct nvc_seq *body, *other;
} nvc_nest;
typedef struct nvc_seq { int n; nvc_nest **nest; } nvc_seq;
typedef NVB_VEC(nvc_nest *) nvc_nest_list;

typedef struct nvc_tile_use {
  const nvf_stmt *def; /* the first statement that makes it */
  nvc_ints users;      /* statement ids */
  int mutable;         /* carried: assigned again */
  int scanned;         /* some scan makes it */
  int repeated;        /* what makes it is done again in later nests */
  int kept;            /* in memory: the device says so, or later nests use it in loops and it cannot be repeated */
} nvc_tile_use;

typedef struct nvc_nests {
  nvb_arena *a;
  const nvf_kernel *k;
  const nvf_schedule *s;
  const nvf_typed *t;
  int (*in_memory)(void *emitter, int tile); /* does this device keep the tile in memory anyway? NULL: none */
  void *emitter;
  int map_cost;           /* maps up to this cost an element may be repeated; 0: none */
  const nvf_stmt **stmt;  /* by id */
  nvc_nest **nest_of;     /* by statement id: where it stands in the text */
  nvc_nest_list *done_in; /* by statement id: all nests that do it */
  nvc_tile_use *tile;
  int nnest;
  int nrel; /* relations of the part, at most 64 that are looked at */
  struct nvf_rel *rel[NVC_RELATIONS];
} nvc_nests;

void nvc_nests_init(nvc_nests *r, nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s, const nvf_typed *t);
nvc_seq *nvc_nests_of_part(nvc_nests *r, const nvf_part *p);
void nvc_uses(const nvc_nests *r, const nvf_stmt *s, nvc_ints *out);    /* tiles that s reads */
const nvf_layout *nvc_layout_of(const nvc_nests *r, const nvf_stmt *s); /* that its loops and items walk */
int64_t nvc_hint(const nvc_nests *r, const nvf_stmt *s, const char *name, int64_t absent);
int64_t nvc_name_value(const nvc_nests *r, int name); /* an integer of the schedule */

/* ---- relations, numbered */
int nvc_relation(nvc_nests *r, const struct nvf_rel *rel); /* -1 beyond 64, or with tiles */
uint64_t nvc_relation_set(nvc_nests *r, const nvf_cond *c);
uint64_t nvc_carried_by_all(const nvc_seq *q);
/* Relations of `set` that are the same in the whole block. */
uint64_t nvc_same_in_block(const nvc_nests *r, uint64_t set);
/* Relation q as x < 0 with x = sign * (a - b) + plus: 0 for == and !=. */
int nvc_normal(const struct nvf_rel *rel, int *sign, int *plus);
/* x of relation q over the digits of l inside of loop `level` of the nest (level nloop: items, lanes, warps): its range
   [lo, hi] there, `plus` included, its step along the loop itself, and whether no deeper loop moves it. 0 if it is not
   linear. */
typedef struct nvc_line { int64_t step, lo, hi; int deepest; } nvc_line;
int nvc_linear(const nvc_nests *r, const nvc_nest *nest, int q, int level, const nvf_layout *l, nvc_line *out);
/* The widest layout under which the nest meets relation q; NULL: it does not. */
const nvf_layout *nvc_widest_with(nvc_nests *r, const nvc_nest *nest, int q);
/* The widest layout of the nest with all axes of relation q; NULL: none has. */
const nvf_layout *nvc_widest_over(const nvc_nests *r, const nvc_nest *nest, int q);
int nvc_still(const nvc_nests *r, int q, int axis); /* relation q is the same all along the axis */

/* ---- expressions and layouts */
int nvc_has(const nvf_expr *x, nvf_xkind kind);
int nvc_coef(const nvc_nests *r, const nvf_expr *x, int axis, int64_t *c); /* of `axis` in x; 0: no constant */
int nvc_looped(const nvf_digit *d);                                        /* an emitted loop of more than one round */
int nvc_has_loops(const nvf_layout *l);
int nvc_items(const nvf_layout *l);                                         /* register items */
int nvc_digit_value(const nvf_layout *l, int d, int item);                  /* of item digit d at an item */
int nvc_item_step(const nvf_layout *l, int d);                              /* from one item to the next of digit d */
int64_t nvc_axis_part(const nvf_layout *l, int axis, int item);             /* what an item adds to the axis' index */
int nvc_match_item(const nvf_layout *small, const nvf_layout *l, int item); /* item of `small` at item of l */
int nvc_same_items(const nvf_layout *a, const nvf_layout *b);               /* one layout, and one order of items */
#endif
