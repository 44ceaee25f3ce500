/* Elements that index arrays and masks select (NumPy's advanced indexing), where all values are in host memory. */
#ifndef NVM_API_INDEX_H
#define NVM_API_INDEX_H
#include "api/part.h"

/* Indices along one axis: an array of integers, or one number; or a mask's positions, row-major among all its axes. */
typedef struct nva_along {
  int axis, message_axis; /* (first) axis of the indexed array; the number that messages give it */
  int axes;
  int rank;
  const int64_t *shape;
  const char *data; /* NULL: `number` */
  nvm_dtype dtype;
  int64_t number;
  int64_t own[NVM_MAX_RANK];    /* strides in bytes, of its own dimensions */
  int64_t stride[NVM_MAX_RANK]; /* the same, broadcast to those of nva_index.shape */
  nvg_node *node;               /* counted; holds the memory; or NULL */
  nvd_buf *made;                /* counted: positions of a mask; or NULL */
  int64_t ones;                 /* of a mask: number of positions */
} nva_along;
/* The result has `before` of the dimensions that are not indexed, then those of the index arrays, then the others. */
typedef struct nva_index {
  int n, rank, before, result_rank;
  int64_t count, result_size; /* count: of what the index arrays select together */
  int64_t shape[NVM_MAX_RANK], result_shape[NVM_MAX_RANK];
  int kept, rest[NVM_MAX_RANK]; /* the axes that are not indexed */
  nva_along at[NVM_MAX_RANK];
} nva_index;
/* Checks the list of a call; a status. */
int nva_index_check(const char *who, const nvm_array *a, int n, const nvm_index *at);
/* Reads indices of an array like `base`, checks that they are in range, and evaluates those that are pending if `wait`
   says so (masks always). Returns 1; 0 if the indices are no such values, or with a failure in *status. Close it in any
   case. */
int nva_index_open(nva_index *x, const char *who, const nvm_ctx *ctx, const nvg_aval *base, int n, const nvm_index *at,
                   int before, int wait, int *status);
void nva_index_close(nva_index *x);
/* Copies the selected elements of part p, which begins at `data`, to packed memory in the result's shape. */
void nva_index_read(const nva_index *x, const nva_part *p, const char *data, char *to);
/* Stores there what `from` has with these strides in bytes. Where an element is selected more than once, the last one
   is stored. */
void nva_index_write(const nva_index *x, const nva_part *p, char *data, const char *from, const int64_t *strides);
#endif
