/* Defines dtypes, enums of options, attributes, and the opaque types of nvm. */
#ifndef NVM_TYPES_H
#define NVM_TYPES_H
#include <stddef.h>
#include <stdint.h>
#include "nvm/status.h"
#ifdef __cplusplus
extern "C" {
#endif

#if defined _WIN32
#define NVM_API
#else
#define NVM_API __attribute__((visibility("default")))
#endif

typedef enum nvm_dtype {
  NVM_BOOL,
  NVM_I8,
  NVM_I16,
  NVM_I32,
  NVM_I64,
  NVM_U8,
  NVM_U16,
  NVM_U32,
  NVM_U64,
  NVM_F16,
  NVM_BF16,
  NVM_F32,
  NVM_F64,
  NVM_C64,
  NVM_C128,
  NVM_F8E4,
  NVM_F8E5, /* float8_e4m3fn (no infinities) and float8_e5m2 of the OCP; casts to them saturate */
  NVM_NDTYPES,
  NVM_DTYPE_DEFAULT = -1 /* "as the operation decides" in attributes and options */
} nvm_dtype;

enum { NVM_MAX_RANK = 32 };

/* The precision of the products inside a matrix product of float32 or complex64. A device that lacks the requested
   precision uses a more exact one. */
typedef enum nvm_precision {
  NVM_PRECISION_IEEE,   /* products of the operands unchanged */
  NVM_PRECISION_TF32,   /* operands rounded to 11 bits */
  NVM_PRECISION_BF16X3, /* operands split into two bfloat16 terms each, three products: about 16 bits */
  /* operands split into three bfloat16 terms each, those of the nine products that matter: about 24 bits */
  NVM_PRECISION_BF16X9,
  NVM_NPRECISIONS
} nvm_precision;
/* The order in which nvm_einsum multiplies several operands, two at a time. */
typedef enum nvm_order {
  NVM_ORDER_LEFT,    /* from left to right */
  NVM_ORDER_GREEDY,  /* next the pair whose product is smallest compared with what it replaces */
  NVM_ORDER_OPTIMAL, /* the order with the fewest operations; GREEDY for more than 12 operands */
  NVM_ORDER_AUTO     /* OPTIMAL for up to 8 operands, GREEDY for more */
} nvm_order;
/* Parses "ieee" or "highest", "tf32", "bf16x3", "bf16x9". Returns a status. */
NVM_API int nvm_precision_find(nvm_precision *out, const char *name);

/* A device: one of these, or NVM_DEVICE_CUDA + the ordinal of a GPU. AUTO: the device of the context. */
typedef int nvm_device;
enum { NVM_DEVICE_AUTO = 0, NVM_DEVICE_CPU = 1, NVM_DEVICE_CUDA = 2 };

/* What a draw of random numbers is distributed as. */
typedef enum nvm_draw {
  NVM_DRAW_BITS,           /* all integers of the dtype alike */
  NVM_DRAW_BELOW,          /* integers of 0 or more and below a number, alike */
  NVM_DRAW_UNIFORM,        /* [0, 1) */
  NVM_DRAW_NORMAL,         /* of mean 0 and variance 1 */
  NVM_DRAW_EXPONENTIAL,    /* of mean 1 */
  NVM_DRAW_GAMMA,          /* the gamma distribution of a shape and of scale 1 */
  NVM_DRAW_BETA,           /* the beta distribution of a and b */
  NVM_DRAW_VONMISES,       /* the von Mises distribution of a concentration around 0 */
  NVM_DRAW_POISSON,        /* how many events happen whose mean number is given */
  NVM_DRAW_BINOMIAL,       /* how many of n events happen, each with the probability p */
  NVM_DRAW_ZIPF,           /* integers of 1 or more with probabilities as k to the power -a */
  NVM_DRAW_HYPERGEOMETRIC, /* how many of a sample are of the first of two kinds, of which so many are there */
  NVM_NDRAWS
} nvm_draw;

typedef struct nvm_ctx nvm_ctx;     /* a context: default float dtype and device */
typedef struct nvm_scope nvm_scope; /* owns the arrays made while it is the thread's innermost scope */
typedef struct nvm_array nvm_array; /* a lazy array */
typedef struct nvm_fn nvm_fn;       /* a traced function */

/* An attribute of an operation, by its name in the operation's signature. kind says which field holds the value: 'i' an
   integer, 'b' a bool, 'd' a dtype (all in i), 'f' a float (in f), 'c' a complex number (real part in f, bits of the
   imaginary part in i), 'I' n integers (in is), 's' n characters of text (in is), 'n' none. */
typedef struct nvm_attr {
  const char *name;
  char kind;
  int64_t i;
  double f;
  const int64_t *is;
  int n;
} nvm_attr;

#ifdef __cplusplus
}
#endif
#endif
