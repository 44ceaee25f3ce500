/* Inside of products: operands whose dimensions have labels, and what two of them give. matmul, tensordot and einsum
   are written with it. Nothing outside lib/graph includes this. */
#ifndef NVM_GRAPH_CONTRACTION_H
#define NVM_GRAPH_CONTRACTION_H
#include "graph/infer.h"

/* What operands become, what is summed, what results. 16-bit factors are multiplied as they are if the sums are
   float32; those of 8 bits become float16, which holds them all. Integers of 8 and 16 bits stay what they
   are: which of them are multiplied as floats is said where there is a product. */
typedef struct nvg_gemm_types { nvm_dtype in, sum, out; int64_t precision; } nvg_gemm_types;

/* Dimension d of x has label at[d] < NVG_LABELS; each is there once, and none has extent 1. */
enum { NVG_LABELS = 64 };
typedef struct nvg_term {
  nvg_node *x;
  uint64_t set; /* its labels */
  uint8_t at[NVM_MAX_RANK];
  uint8_t position[NVM_MAX_RANK]; /* of dimension d in x's memory, as far as its permutations tell */
} nvg_term;

/* The call's dtypes, from n operands, its rule, `dtype` and `precision`; 0 with a message. */
int nvg_gemm_types_of(nvg_call *c, nvg_node *const *in, int n, nvg_gemm_types *f);
/* x with a label a dimension. Equal labels are a diagonal, extents of 1 are dropped. 0 with a message. */
int nvg_term_make(nvg_call *c, nvg_term *t, nvg_node *x, const uint8_t *label, const nvg_gemm_types *f);
/* The sum of t over the labels that are not in keep. */
int nvg_term_sum(nvg_call *c, nvg_term *t, uint64_t keep, const nvg_gemm_types *f);
/* The product of a and b, summed over the labels that are not in keep: a CALL node if each side has labels of its own
   and there is something to sum. */
int nvg_term_contract(nvg_call *c, nvg_term *out, const nvg_term *a, const nvg_term *b, uint64_t keep,
                      const nvg_gemm_types *f);
/* The float in which every sum of k products of two such integers is exact, whatever its order; t if there is none. */
nvm_dtype nvg_exact_in(nvm_dtype t, int64_t k);
/* As matmul has it: (..., m, k) and (..., k, n), or a row, or a column. NULL with a message. */
nvg_node *nvg_matmul(nvg_call *c, nvg_node *const *in, const nvg_gemm_types *f);
/* t with its dimensions in this order; labels that it does not have give dimensions of extent 1. */
nvg_node *nvg_term_as(nvg_call *c, const nvg_term *t, const uint8_t *label, int n);

/* ---- einsum_path.c: in which order several terms are multiplied */
enum { NVG_ORDER_MOST = 12 }; /* terms that OPTIMAL takes; of more it makes what GREEDY does */
/* The sets of n terms, extents of labels, labels wanted in the end; out: n - 1 pairs of places in the list of terms,
   from which both are taken and at whose end their product is put. Returns the operations this takes; -1 with a
   message. */
double nvg_contraction_path(int n, const uint64_t *set, const double *extent, uint64_t wanted, nvm_order order,
                            int (*out)[2]);
#endif
