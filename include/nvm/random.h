/* Random numbers. A generator is a key and a counter: Philox 4x32-10 makes four words of 32 bits of each counter. A
   draw takes the counters that its elements need when it is made, so its values are fixed then, whenever and wherever
   they are computed. They do not depend on the device, on threads, or on what they are fused with.

   In a trace, a draw belongs to each call of the function: the call takes the counters of all its draws. Draws in the
   body of a loop are NVM_ERR_UNSUPPORTED: draw before the loop, for all steps.

   One generator may be used by several threads, each of whose draws takes counters of its own. A forked child draws the
   same numbers as its parent. */
#ifndef NVM_RANDOM_H
#define NVM_RANDOM_H
#include "nvm/nvm.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct nvm_generator nvm_generator;
/* All that the values of later draws depend on. Two generators with the same state draw the same numbers. */
typedef struct nvm_generator_state {
  uint64_t key;
  uint64_t counter; /* the next that a draw takes; wraps */
  uint64_t stream;  /* the upper half of Philox's counter; streams of one key do not overlap */
  uint64_t spawned; /* number of generators that were spawned */
} nvm_generator_state;

/* Makes a generator for a context, which nvm_generator_free frees. Seeds that differ give different keys. Returns a
   status. */
NVM_API int nvm_generator_new(nvm_generator **out, nvm_ctx *ctx, uint64_t seed);
NVM_API void nvm_generator_free(nvm_generator *g); /* g may be NULL; arrays drawn from it stay valid */
/* Reads and replaces the state. Return a status. */
NVM_API int nvm_generator_state_get(nvm_generator_state *out, nvm_generator *g);
NVM_API int nvm_generator_state_set(nvm_generator *g, const nvm_generator_state *s);
/* Makes a generator with a key of its own, which g's key and the number of those spawned before determine; the caller
   frees it by nvm_generator_free. Returns a status. */
NVM_API int nvm_generator_spawn(nvm_generator **out, nvm_generator *g);
/* Makes a generator that is `by` streams further, from counter 0: as if g had made 2^66 words of 32 bits for each. The
   caller frees it by nvm_generator_free. Returns a status. */
NVM_API int nvm_generator_jump(nvm_generator **out, nvm_generator *g, uint64_t by);

/* Draws an array of that shape. t: NVM_F32 or NVM_F64, NVM_DTYPE_DEFAULT for the context's default float; of BITS
   NVM_U32 or NVM_U64, the default; of BELOW NVM_U64; of POISSON and what follows it NVM_I64.
   parameters: those of the draw,
   arrays that are 0-d or of that shape; NULL for a draw without. BELOW has the bound, of uint64, in which 0 stands for
   2^64; GAMMA the shape; BETA a and b; VONMISES the concentration; POISSON the mean; BINOMIAL n and p; ZIPF a;
   HYPERGEOMETRIC the numbers of both kinds and of the sample; all of real numbers. Parameters that mean
   nothing give a NaN, or any number; the integers are -1. Returns an owned array, NULL with a message. */
NVM_API nvm_array *nvm_generator_draw(nvm_generator *g, nvm_draw what, nvm_dtype t, nvm_array *const *parameters,
                                      int rank, const int64_t *shape);

/* ---- the same as operations: arrays of that shape and of the dtype t, which the thread's innermost scope owns */
/* [0, 1), in multiples of 2^-24 and 2^-53. Returns an array that the innermost scope owns, of that shape and dtype. */
NVM_API nvm_array *nvm_random(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape);
/* The normal distribution of mean 0 and variance 1. Returns an array that the innermost scope owns, of that shape and
   dtype. */
NVM_API nvm_array *nvm_standard_normal(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape);
/* The exponential distribution of mean 1. Returns an array that the innermost scope owns, of that shape and dtype. */
NVM_API nvm_array *nvm_standard_exponential(nvm_generator *g, nvm_dtype t, int rank, const int64_t *shape);
/* Integers of 0 or more and below `below`, as nvm_generator_draw says. Returns an array of uint64 of that shape that
   the innermost scope owns. */
NVM_API nvm_array *nvm_random_below(nvm_generator *g, nvm_array *below, int rank, const int64_t *shape);
/* The gamma distribution of the shapes k and of scale 1. Returns an array that the innermost scope owns, of that shape
   and dtype. */
NVM_API nvm_array *nvm_standard_gamma(nvm_generator *g, nvm_array *k, nvm_dtype t, int rank, const int64_t *shape);
/* The beta distribution of a and b. Returns an array that the innermost scope owns, of that shape and dtype. */
NVM_API nvm_array *nvm_beta(nvm_generator *g, nvm_array *a, nvm_array *b, nvm_dtype t, int rank, const int64_t *shape);
/* The von Mises distribution of these concentrations around 0: angles from -pi to pi. Returns an array that the
   innermost scope owns, of that shape and dtype. */
NVM_API nvm_array *nvm_vonmises(nvm_generator *g, nvm_array *kappa, nvm_dtype t, int rank, const int64_t *shape);
/* The Poisson distribution of these means. Returns an array of int64 of that shape that the innermost scope owns. */
NVM_API nvm_array *nvm_poisson(nvm_generator *g, nvm_array *mean, int rank, const int64_t *shape);
/* How many of n events of probability p happen. Returns an array of int64 of that shape that the innermost scope
   owns. */
NVM_API nvm_array *nvm_binomial(nvm_generator *g, nvm_array *n, nvm_array *p, int rank, const int64_t *shape);
/* The zeta distribution of a > 1: k >= 1 with probabilities as k^-a. Returns an array of int64 of that shape that the
   innermost scope owns. */
NVM_API nvm_array *nvm_zipf(nvm_generator *g, nvm_array *a, int rank, const int64_t *shape);
/* How many of a sample without replacement are good, out of `good` good and `bad` bad ones, each below 2^52.
   Returns an array of int64 of that shape that the innermost scope owns. */
NVM_API nvm_array *nvm_hypergeometric(nvm_generator *g, nvm_array *good, nvm_array *bad, nvm_array *sample, int rank,
                                      const int64_t *shape);

#ifdef __cplusplus
}
#endif
#endif
