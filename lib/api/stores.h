/* What a traced function writes to its parameters, as the stores that a call makes in its arguments after it has
   run. */
#ifndef NVM_API_STORES_H
#define NVM_API_STORES_H
#include "api/index.h"

typedef struct nva_stores nva_stores;
/* Lists the stores of a function with nout results that has made written[k], a parameter's number, become[k]. A
   parameter of which a quarter or less is written is stored in parts, unless calls write to GPUs (gpu): kernels make
   the whole there. *node: receives what a call has to compute, in a list that the caller frees: the results that are
   not a written parameter, then what is stored. A status. */
int nva_stores_new(nva_stores **out, int gpu, nvg_node *const *param, const int *written, nvg_node *const *become,
                   int nwritten, nvg_node *const *result, int nout, nvg_node ***node, int *nnode);
void nva_stores_free(nva_stores *s); /* NULL is fine */
/* Is one of the arguments with these numbers on a GPU, or does one run what has no device? in: NULL: on none */
int nva_stores_on_gpu(nvm_ctx *ctx, const int *written, int nwritten, nvm_array *const *in);
/* Are these arguments, as far as it matters for the stores, where `gpu` said? */
int nva_stores_suit(const nva_stores *s, nvm_ctx *ctx, nvm_array *const *in);
/* The first place of a computed array, from `at` on, among those that a call returns; the number of these; are there
   stores of parts? */
int nva_stores_next(const nva_stores *s, int at);
int nva_stores_outputs(const nva_stores *s);
int nva_stores_parts(const nva_stores *s);
int nva_stores_write(const nva_stores *s, int param);      /* is that parameter written? */
int nva_stores_describe(char **text, const nva_stores *s); /* appends a line; a status */
/* Stores what a call returned in its arguments. lent: for each parameter, whether to store in the memory that the
   argument borrows; NULL: nowhere. Checks all indices first. A status. */
int nva_stores_run(const nva_stores *s, nvm_array *const *in, const uint8_t *lent, nvm_array **out);

/* ---- write.c */
/* What is stored in a part of an array that lies in row-major order: to all of it, or to what `at` selects. */
typedef struct nva_stored {
  const nva_part *to;
  const nva_index *at;  /* NULL: all of it */
  nvm_array *value;     /* evaluated, of the part's dtype; NULL: a number */
  const uint64_t *bits; /* of the number, 8 bytes for each part */
  nvm_dtype dtype;      /* of the number */
} nva_stored;
/* Stores it in a, which has that array's shape. *done 0: no strides describe the part in a's base, or its elements are
   not at hand. A status. */
int nva_store_part(int *done, nvm_array *a, const nva_stored *what);
/* Stores it in the memory of a value. Returns 0 if no strides describe the part there. */
int nva_store_lent(const nvg_value *v, const nvg_aval *av, const nva_stored *what);
#endif
