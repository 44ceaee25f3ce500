/* The tables of a space of sizes and index expressions. Only index.c, which fills them, and facts.c,
   which gives them other values, include this header. */
#ifndef NVM_FUSION_SPACE_H
#define NVM_FUSION_SPACE_H
#include "fusion/index.h"

/* is: the product that it was proved equal to; -1: none. each: its value is ceil(of / each); 0: it is given. */
typedef struct nvf_symbol_row { int64_t value; nvf_prod is, of; int64_t each; } nvf_symbol_row;
typedef struct nvf_monomial { int64_t k, value; int n; const int *sym; nvf_prod pure; } nvf_monomial; /* ascending */
/* The remainder -q * (x mod m), which some terms of a sum are together. */
typedef struct nvf_remainder { nvf_prod q, m; } nvf_remainder;
/* A sum of terms. within: by term, 1: it is part of a remainder; NULL: none is. lo, hi: as those of an atom. */
typedef struct nvf_sum {
  int n;
  const nvf_term *t;
  int nrem;
  const nvf_remainder *rem;
  const uint8_t *within;
  uint64_t axes;
  int64_t lo, hi;
  int floors;
} nvf_sum;

struct nvf_space {
  nvb_arena *arena;
  nvb_map *products, *atoms, *exprs;
  NVB_VEC(nvf_symbol_row) sym;
  NVB_VEC(nvf_monomial) prod;
  NVB_VEC(nvf_atom) atom;
  NVB_VEC(nvf_sum) ex;
  nvb_map *noted; /* the facts that are noted; NULL: none are */
  NVB_VEC(nvf_fact) fact;
};
#endif
