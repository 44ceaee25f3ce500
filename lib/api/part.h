/* Parts of arrays: strided elements of a value, in bytes from its first element. */
#ifndef NVM_API_PART_H
#define NVM_API_PART_H
#include "api/api.h"

typedef struct nva_part {
  size_t each; /* bytes of an element */
  int rank;
  int64_t size, offset, shape[NVM_MAX_RANK], stride[NVM_MAX_RANK];
} nva_part;
void nva_part_set(nva_part *p, const nvg_aval *av, int64_t offset, const int64_t *stride); /* both in elements */
/* The part of its base that a is, if the base is in row-major order. Returns 0 if no strides describe it. */
int nva_part_of(nva_part *p, const nvm_array *a);
/* The elements of a in v, the value of its base. Returns 0 if they cannot be read there. */
int nva_part_in(nva_part *p, const nvm_array *a, const nvg_value *v);
/* Narrows a part to a slice of it. Returns 0 if the slice exceeds the part. */
int nva_part_narrow(nva_part *p, const int64_t *start, const int64_t *count, const int64_t *step, const int *drop);
/* Makes p, a part of an array that lies in row-major order, the same elements of `all`, which has that array's shape.
   Returns 0 if no strides describe them. */
int nva_part_within(nva_part *p, const nva_part *all);
int nva_part_is_same(const nva_part *p, const nva_part *q);
#endif
