/* What the two files that emit reductions share: a reduction, and the tree by which it merges. Only reduce.c and
   reduce_tree.c include this header. */
#ifndef NVM_CODEGEN_CUDA_REDUCE_H
#define NVM_CODEGEN_CUDA_REDUCE_H
#include "codegen/cuda/emit.h"
#include "codegen/reduction.h"

enum {
  NVCU_TOGETHER = 8, /* reductions that share a tree, at most */
  NVCU_ABREAST = 32, /* values that merge at the same time, which take registers beside those that are kept */
  NVCU_STAGES = 64   /* bits of an index, at most */
};

struct nvcu_red {
  nvc_reduction of;
  int levels;                  /* log2 of the number of looped chunks; -1: no chunks are looped, or `spread` */
  int ragged;                  /* 1: some chunks may not be executed, or their number is no power of two */
  int done;                    /* 1: its tree was emitted */
  const char **v;              /* [accumulator][state]: names; NULL before the first element */
  const char **held;           /* [level][result item][state]: names */
  const char *count;           /* chunks so far */
  struct nvcu_tree *tree;      /* the tree so far; similar reductions share one */
  nvcu_cross_warp *cross_warp; /* merges warps, CTAs and looped chunks; NULL: the tree merges them in each iteration */
};
static inline nvm_dtype nvcu_red_type(const nvcu_em *e, const nvcu_red *r, int i) { /* of state i */
  return e->k->tile[r->of.s->out[i]].type;
}

/* reduce.c: the variable `name` of a state, or the array's element at the indices of the open loops */
const char *nvcu_red_slot(nvcu_em *e, const nvcu_red *r, const char *name, int from);

/* ---- reduce_tree.c: the tree of similar reductions. While lanes merge, two items may be folded into one lane: of each
   pair of lanes, the lower one goes on with one item and the upper one with the other, which halves the shuffles. */
typedef struct nvcu_fold {
  int digit, m, step, lane;
} nvcu_fold; /* items `step` apart (bit m of an item digit) are divided between lanes that differ in bit `lane` */
/* Merges items that lie `by` apart, or lanes that differ in bit `lane`; with both, two items are folded into the
   lanes. */
typedef struct nvcu_stage { int by, lane; /* 0: none */ } nvcu_stage;
typedef struct nvcu_tree {
  nvcu_em *e;
  int n;
  nvcu_red *r[NVCU_TOGETHER];
  const nvf_layout *acc;
  int nacc, axis;
  const char **v[NVCU_TOGETHER]; /* [accumulator][state] */
  uint8_t *gone; /* by accumulator: it was merged into another one, or folded into the lanes of another one */
  nvcu_stage stage[NVCU_STAGES]; /* decided, not emitted yet */
  int nstage, *end, *into;       /* by accumulator: the stage that ends it, and the accumulator that it merges into */
  uint8_t *written;              /* by accumulator that goes on: its stages were emitted */
  int64_t bit;                   /* the bits below are decided */
  int may_fold, nfold;
  int crosses; /* warps merge with different lanes: folded items stay folded until they have */
  nvcu_fold fold[8];
} nvcu_tree;
/* The tree that r shares with the similar reductions that come later in the nest. */
nvcu_tree *nvcu_tree_of(nvcu_em *e, nvcu_red *r);
const char **nvcu_tree_slot(const nvcu_tree *t, int j, int k); /* the states of accumulator k of reduction j */
/* The digit of the axis that holds bit b of the index; -1: it is a loop or a sequence digit. */
int nvcu_tree_digit(const nvcu_tree *t, int64_t b);
/* Emits the merge of the states b into the states a of reduction j. */
void nvcu_tree_merge(const nvcu_tree *t, int j, const char **a, const char *const *b);
void nvcu_tree_name_state(const nvcu_tree *t, int j, int i, const char **to, const char *text); /* a constant */
void nvcu_tree_take_values(nvcu_tree *t); /* the accumulators' values, as far as they are known */
/* Decides all merges of the tree; in_registers: only those before the first one across warps or CTAs. */
void nvcu_tree_decide(nvcu_tree *t, int in_registers);
/* Merges bit b, which `digit` holds, and the higher bits that cross warps together with it; returns the last bit
   merged. */
int64_t nvcu_tree_merge_bit(nvcu_tree *t, int digit, int64_t b);
void nvcu_tree_write_ready(nvcu_tree *t);  /* emits the decided merges of accumulators that have their values */
void nvcu_tree_write_stages(nvcu_tree *t); /* emits all decided merges */
void nvcu_tree_unfold_lanes(nvcu_tree *t); /* every lane gets the values of folded items */
#endif
