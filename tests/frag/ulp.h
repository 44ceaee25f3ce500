/* Accuracy of the library's functions against MPFR: the table of functions with their bounds, and the measurement. */
#ifndef NVM_TESTS_ULP_H
#define NVM_TESTS_ULP_H
#include <mpfr.h>
#include "frag/frag.h"

typedef int ulp_unary(mpfr_t y, const mpfr_t x, mpfr_rnd_t r);
typedef int ulp_binary(mpfr_t z, const mpfr_t x, const mpfr_t y, mpfr_rnd_t r);
typedef struct ulp_function {
  const char *name;
  ulp_unary *unary; /* one of the two */
  ulp_binary *binary;
  double lo, hi;   /* where half of the samples lie; the others cover all exponents */
  double bound[2]; /* promised, in ulp, f32 and f64 */
  double from, to; /* outside this range the bound is not promised; both 0: everywhere */
} ulp_function;
extern const ulp_function ulp_functions[];
extern const int ulp_nfunctions;

typedef struct ulp_result {
  double max, at[2], got; /* the worst case */
  long edge;              /* results that are NaN, infinite or a signed zero where MPFR's rounded one is not,
    or vice versa */
  double edge_at[2], edge_got, edge_want;
  long differ; /* results of the fast form, not flagged, that are not the full form's */
  long rare;
  int part; /* of a complex function, the worst case: real or imaginary */
} ulp_result;
/* A complex function of one or two operands, by its parts. The worst case has the second operand in edge_at and its
   part in `part`. */
typedef struct ulp_work ulp_work;
typedef void ulp_complex(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b);
typedef struct ulp_pair {
  const char *name;
  ulp_complex *ref;
  int nin;
  double bound[2]; /* promised, in ulp, of complex64 and complex128 */
  int norm;        /* 1: an error is counted in ulp of the greater part of the result, else of each part */
} ulp_pair;
extern const ulp_pair ulp_pairs[];
extern const int ulp_npairs;

/* t: NVM_F32 or NVM_F64; n samples from `seed`, the first of which are the edge values. 0 and a message if there is no
   such fragment. */
int ulp_measure(const ulp_function *f, nvm_dtype t, int n, uint64_t seed, ulp_result *out);
/* likewise for the complex type whose parts are of type t; of random samples alone */
int ulp_measure_complex(const ulp_pair *f, nvm_dtype t, int n, uint64_t seed, ulp_result *out);
#endif
