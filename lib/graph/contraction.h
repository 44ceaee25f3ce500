/* Internal interface of contractions: operands whose dimensions have labels, and their product, from which matmul,
   tensordot and einsum are built. Nothing outside lib/graph includes this file. */
#ifndef NVM_GRAPH_CONTRACTION_H
#define NVM_GRAPH_CONTRACTION_H
#include "graph/infer.h"

/* The dtypes of a contraction: operands, sums, result. 16-bit operands are multiplied unconverted if the sums are
   float32; 8-bit floats become float16, which holds them all. Integers of 8 and 16 bits stay unconverted here: each
   product decides which of them are multiplied as floats. */
typedef struct nvg_gemm_types { nvm_dtype in, sum, out; int64_t precision; } nvg_gemm_types;

/* A labelled operand. Dimension d of x has label at[d] < NVG_LABELS; each label occurs once, and no extent is 1. */
enum { NVG_LABELS = 64 };
typedef struct nvg_term {
  nvg_node *x;
  uint64_t set; /* the set of its labels */
  uint8_t at[NVM_MAX_RANK];
  uint8_t position[NVM_MAX_RANK]; /* order of dimension d in x's memory, as far as pending permutations tell */
} nvg_term;

/* Determines the dtypes from n operands, the op's rule, and the attributes `dtype` and `precision`; returns 0 with a
   message on failure. */
int nvg_gemm_types_of(nvg_call *c, nvg_node *const *in, int n, nvg_gemm_types *f);
/* Makes a term of x with one label per dimension: equal labels take the diagonal, extents of 1 are dropped. Returns 0
   with a message on failure. */
int nvg_term_make(nvg_call *c, nvg_term *t, nvg_node *x, const uint8_t *label, const nvg_gemm_types *f);
/* Sums t over the labels that are not in keep. */
int nvg_term_sum(nvg_call *c, nvg_term *t, uint64_t keep, const nvg_gemm_types *f);
/* Multiplies a and b and sums over the labels that are not in keep: a CALL node if each side has labels of its own and
   some label is summed. */
int nvg_term_contract(nvg_call *c, nvg_term *out, const nvg_term *a, const nvg_term *b, uint64_t keep,
                      const nvg_gemm_types *f);
/* Returns the float in which every sum of k products of two such integers is exact in any order; t if there is none. */
nvm_dtype nvg_exact_in(nvm_dtype t, int64_t k);
/* matmul of (..., m, k) and (..., k, n), or of a row or a column. NULL with a message on failure. */
nvg_node *nvg_matmul(nvg_call *c, nvg_node *const *in, const nvg_gemm_types *f);
/* Returns t's array with its dimensions in this order; labels that it lacks become dimensions of extent 1. */
nvg_node *nvg_term_as(nvg_call *c, const nvg_term *t, const uint8_t *label, int n);

/* ---- einsum_path.c: the order in which several terms are multiplied */
enum { NVG_ORDER_MOST = 12 }; /* most terms for OPTIMAL; with more it falls back to GREEDY */
/* Finds a contraction order for n terms, given their label sets, the extents of labels and the labels wanted in the
   result. out: n - 1 pairs of positions in the list of terms; each pair is removed, and its product is appended.
   Returns the number of operations; -1 with a message. */
double nvg_contraction_path(int n, const uint64_t *set, const double *extent, uint64_t wanted, nvm_order order,
                            int (*out)[2]);
#endif
