/* dtypes and the opaque types of nvm. */
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
  NVM_F8E5, /* float8_e4m3fn (no infinities), float8_e5m2 of the OCP; casts to them saturate */
  NVM_NDTYPES,
  NVM_DTYPE_DEFAULT = -1 /* "as the operation decides" in attributes and options */
} nvm_dtype;

enum { NVM_MAX_RANK = 32 };

/* How exact the products inside of a matrix product of float32 (or of the parts of complex64) have to be. Who cannot
   do what is allowed does what is more exact. */
typedef enum nvm_precision {
  NVM_PRECISION_IEEE,   /* of the operands as they are */
  NVM_PRECISION_TF32,   /* of operands rounded to 11 bits */
  NVM_PRECISION_BF16X3, /* of operands split into two bfloat16 each, three products: some 16 bits */
  NVM_PRECISION_BF16X9, /* of operands split into three, those of their nine products that count: some 24 bits */
  NVM_NPRECISIONS
} nvm_precision;
/* In which order several operands are multiplied, two at a time. */
typedef enum nvm_order {
  NVM_ORDER_LEFT,    /* from the left */
  NVM_ORDER_GREEDY,  /* next the pair whose product is smallest against what it replaces */
  NVM_ORDER_OPTIMAL, /* with the fewest operations; greedy for more than 12 */
  NVM_ORDER_AUTO     /* optimal for up to 8, greedy for more */
} nvm_order;
/* "ieee" or "highest", "tf32", "bf16x3", "bf16x9". A status. */
NVM_API int nvm_precision_find(nvm_precision *out, const char *name);

/* Where arrays lie and run: one of these, or NVM_DEVICE_CUDA + the ordinal of a GPU. AUTO: as the context decides. */
typedef int nvm_device;
enum { NVM_DEVICE_AUTO = 0, NVM_DEVICE_CPU = 1, NVM_DEVICE_CUDA = 2 };

typedef struct nvm_ctx nvm_ctx;     /* a library context: default dtype, device */
typedef struct nvm_scope nvm_scope; /* owns the arrays made while it is the thread's innermost scope */
typedef struct nvm_array nvm_array; /* a lazy array */
typedef struct nvm_fn nvm_fn;       /* a traced function */

/* An attribute of an operation, by the name in its signature. kind: 'i' integer, 'b' bool, 'f' float, 'c' complex (real
   part in f, bits of the imaginary part in i), 'd' dtype (in i), 'I' n integers in is, 's' a text, its n characters in
   is, 'n' none */
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
