/* The positions of a mask's ones, which need its values: the shape of what a mask selects depends on them. */
#include <string.h>
#include "api/api.h"
#include "dispatch/search.h"

typedef struct mask {
  const char *data; /* one byte for each element, 0 or 1 */
  int rank;
  const int64_t *shape, *stride;
  int64_t rows, row; /* rows: number of rows along the last dimension; row: elements in each */
} mask;
/* Returns the address of row r and fills in its coordinates. */
static const char *row_of(const mask *m, int64_t r, int64_t *at) {
  const char *p = m->data;
  for (int d = m->rank - 2; d >= 0; r /= m->shape[d--]) {
    at[d] = r % m->shape[d];
    p += at[d] * m->stride[d];
  }
  return p;
}
static void fill_along(int64_t *out, const mask *m, int d, int64_t count) {
  int64_t at[NVM_MAX_RANK + 1], k = 0;
  for (int64_t r = 0; r < m->rows && k < count; r++) {
    const char *p = row_of(m, r, at);
    int64_t here = nvd_count_ones(p, m->row, m->stride[m->rank - 1]);
    if (d == m->rank - 1) nvd_list_ones(out + k, here, 0, p, m->row, m->stride[d]);
    else
      for (int64_t i = 0; i < here; i++) out[k + i] = at[d];
    k += here;
  }
}
static mask mask_of(const char *data, const nvg_aval *av, const int64_t *stride) {
  mask m = { .data = data, .rank = av->rank, .shape = av->shape, .stride = stride };
  m.row = m.rank ? m.shape[m.rank - 1] : 0;
  m.rows = m.row ? av->size / m.row : 0;
  return m;
}
static int64_t count_all(const mask *m) {
  int64_t at[NVM_MAX_RANK + 1], count = 0;
  for (int64_t r = 0; r < m->rows; r++) count += nvd_count_ones(row_of(m, r, at), m->row, m->stride[m->rank - 1]);
  return count;
}
static int is_packed(const mask *m) {
  int64_t packed[NVM_MAX_RANK];
  int d = 0;
  nvg_packed(packed, m->rank, m->shape);
  while (d < m->rank && (m->shape[d] == 1 || m->stride[d] == packed[d])) d++;
  return d == m->rank;
}
int nva_mask_list(nvd_buf **out, int64_t *ones, const char *data, const nvg_aval *av, const int64_t *stride) {
  const int64_t one = 1;
  mask m = mask_of(data, av, stride);
  int64_t at[NVM_MAX_RANK + 1], k = 0;
  if (is_packed(&m)) m = (mask){ data, 1, &av->size, &one, 1, av->size };
  *ones = count_all(&m);
  if (!(*out = nvd_buf_new(((size_t)*ones + 1) * sizeof(int64_t)))) return nvb_status();
  for (int64_t r = 0, *to = (int64_t *)(void *)(*out)->data; r < m.rows && k < *ones; r++)
    k += nvd_list_ones(to + k, *ones - k, r * m.row, row_of(&m, r, at), m.row, m.stride[m.rank - 1]);
  return NVM_OK;
}
static int list_along_axes(nvd_buf **out, int64_t *ones, const char *data, const nvg_aval *av, const int64_t *stride) {
  mask m = mask_of(data, av, stride);
  *ones = count_all(&m);
  for (int d = 0; d < m.rank; d++) {
    if (!(out[d] = nvd_buf_new(((size_t)*ones + 1) * sizeof(int64_t)))) {
      while (d) nvd_buf_unref(out[--d]);
      return nvb_status();
    }
    fill_along((int64_t *)(void *)out[d]->data, &m, d, *ones);
  }
  return NVM_OK;
}
/* Makes an array of positions; takes b. */
static nvm_array *positions_array(nvm_ctx *ctx, nvd_buf *b, int64_t n) {
  const nvg_aval *av = nvg_aval_get(NVM_I64, 1, &n);
  int64_t stride = 1;
  nvm_array *r = NULL;
  if (av) r = nva_leaf_over(ctx, av, nva_value_new(b, b->data, 1, &stride), nva_default_device());
  else nvd_buf_unref(b);
  nvg_aval_unref(av);
  return r;
}
int nvm_nonzero(nvm_array **out, nvm_array *a) {
  const void *data;
  int64_t stride[NVM_MAX_RANK], ones;
  nvd_buf *positions[NVM_MAX_RANK];
  if (!out) return nva_missing("nonzero", "list for the arrays");
  if (a && nvm_dtype_of(a) != NVM_BOOL)
    return nvb_fail(NVM_ERR_TYPE, "[nonzero] a mask is of bool, not of %s", nvm_dtype_name(nvm_dtype_of(a)));
  nvm_array *held = nvm_hold(a); /* other threads may write to a */
  int status = held ? nvm_data(&data, stride, held) : nvb_status(), n = nvm_rank(a), failed = 0;
  if (!status) status = list_along_axes(positions, &ones, data, held->node->aval, stride);
  for (int d = 0; d < n && !status; d++) failed |= !(out[d] = positions_array(a->ctx, positions[d], ones));
  for (int d = 0; d < n && failed; d++) nvm_array_unref(out[d]), out[d] = NULL;
  nvm_array_unref(held);
  return failed ? nvb_status() : status;
}
