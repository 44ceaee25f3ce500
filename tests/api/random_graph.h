/* Random graphs, seeded and replayable: builds the same expressions again from the same seed. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H
#include "nvm/nvm.h"

enum { RG_OUT = 3, RG_MOST = 28 };
typedef struct rg {
  nvm_ctx *ctx;
  uint64_t state;
  int halves; /* 0: no f16 and bf16, whose results a device may approximate */
  int n;
  nvm_array *at[RG_MOST]; /* owned */
  char text[8192];        /* what was built, for the report */
  size_t len;
} rg;
/* Builds the graph of `seed`; outs: RG_OUT borrowed arrays. */
void rg_build(rg *g, nvm_ctx *ctx, uint64_t seed, int halves, nvm_array **outs);
void rg_free(rg *g);
/* 0 if all elements agree bit for bit, NaN with NaN; else 1 + the number of the first part that does not. */
int64_t rg_differs(nvm_dtype t, const void *a, const void *b, int64_t n);
#endif
