/* Internal interface of the builders of linear algebra: operands that are matrices, and the nodes of routines. Private
   to lib/graph. */
#ifndef NVM_GRAPH_MATRICES_H
#define NVM_GRAPH_MATRICES_H
#include "graph/infer.h"

/* Matrices of up to this extent are solved by one routine; of larger ones the factors are a value of their own, which
   other solutions with the same matrix share. */
enum { NVG_SMALL_MATRIX = 32 };

/* Converts n operands of the call to their common dtype. Returns 0 with a message if no routine has that dtype. */
int nvg_open_matrices(nvg_call *c, nvg_node **x, nvg_node *const *in, int n);
/* Returns 0 with a message if x has fewer than two dimensions or, where that is asked, is not square. */
int nvg_check_matrix(nvg_call *c, const nvg_node *x, int square);
static inline int64_t nvg_extent(const nvg_node *x, int back) { return x->aval->shape[x->aval->rank - back]; }

/* A node of a routine, with its attributes: the result has the first nbatch dimensions of in[0], then `tail` of `rank`
   extents. */
typedef struct nvg_result { nvm_dtype dtype; int nbatch, rank; int64_t tail[2]; } nvg_result;
nvg_node *nvg_xroutine(nvg_call *c, nvg_op op, nvg_node *const *in, int nin, nvg_result r, int64_t attr, int64_t more);
nvg_node *nvg_xfactors(nvg_call *c, nvg_node *x, nvg_structure s);
nvg_node *nvg_xinverse(nvg_call *c, nvg_node *x);
/* x of a x = b, whose batches broadcast; both have two dimensions at least */
nvg_node *nvg_xsolve(nvg_call *c, nvg_node *a, nvg_node *b);
/* The same by factors (NVG_PLAIN_FACTORS: those of LU_SOLVE), or with a triangular matrix. */
enum { NVG_NO_TRIANGLE = -1, NVG_PLAIN_FACTORS = -2 };
nvg_node *nvg_xsubstitute(nvg_call *c, nvg_node *factors, nvg_node *b, int triangle);
/* A part of a result of several: rows x cols numbers from `start` on, or (cols -1) a vector of rows. */
nvg_node *nvg_xpart(nvg_call *c, nvg_node *x, int64_t start, int64_t rows, int64_t cols);
#endif
