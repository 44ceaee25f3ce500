/* Accuracy of the library's functions against MPFR: the table of functions with their bounds, and the measurement. */
#ifndef NVM_TESTS_ULP_H
#define NVM_TESTS_ULP_H
#include <mpfr.h>
#include "graph/frag.h"

typedef int ulp_unary(mpfr_t y, const mpfr_t x, mpfr_rnd_t r);
typedef int ulp_binary(mpfr_t z, const mpfr_t x, const mpfr_t y, mpfr_rnd_t r);
typedef struct ulp_function {
  const char *name;
  ulp_unary *unary;   /* one of the two */
  ulp_binary *binary;
  double lo, hi;      /* where half of the samples lie; the others cover all exponents */
  double bound[2];    /* promised, in ulp, f32 and f64 */
  double from, to;    /* outside this range the bound is not promised; both 0: everywhere */
} ulp_function;
extern const ulp_function ulp_functions[];
extern const int ulp_nfunctions;

typedef struct ulp_result {
  double max, at[2], got;  /* the worst case */
  long edge;               /* results that are NaN, infinite or a signed zero where MPFR's rounded one is not,
    or vice versa */
  double edge_at[2], edge_got, edge_want;
  long differ;             /* results of the fast form, not flagged, that are not the full form's */
  long rare;
} ulp_result;
/* t: NVM_F32 or NVM_F64; n samples from `seed`, the first of which are the edge values. 0 and a message if there is no
   such fragment. */
int ulp_measure(const ulp_function *f, nvm_dtype t, int n, uint64_t seed, ulp_result *out);
#endif
