/* Copies strided elements off a device, as blocks of contiguous memory. Decides which dimensions the copies loop over
   and which lie within a block; never which copies are kept. */
#include <stdlib.h>
#include <string.h>
#include "api/api.h"

/* A route: one block for each index of the outer dimensions, each with all memory between its elements. Blocks are as
   small as is worthwhile: a copy's overhead is the time of EACH bytes. */
enum { EACH = 128 << 10 };
typedef struct route {
  int nouter, outer[NVM_MAX_RANK]; /* outer dimensions, the largest stride first */
  /* number of blocks; elements in each; where a block begins relative to its first element */
  int64_t count, block, low;
  int64_t stride[NVM_MAX_RANK]; /* strides of the copy */
} route;
/* Lists the dimensions with extent > 1 and stride != 0, the largest stride first. */
static void by_stride(const nvg_aval *av, const int64_t *stride, int *dim, int *n) {
  *n = 0;
  for (int d = 0; d < av->rank; d++) {
    if (av->shape[d] == 1 || !stride[d]) continue;
    int k = (*n)++;
    for (; k && llabs(stride[dim[k - 1]]) < llabs(stride[d]); k--) dim[k] = dim[k - 1];
    dim[k] = d;
  }
}
static route route_of(const nvg_aval *av, const int64_t *stride) {
  route r = { .count = av->size > 0 };
  double least = 0, size = (double)nvg_size(av->dtype);
  int64_t count = 1, block = 1;
  int n;
  by_stride(av, stride, r.outer, &n);
  for (int k = 0; k < n; k++) count *= av->shape[r.outer[k]];
  for (int k = n; k >= 0 && av->size; k--) {
    double cost = (double)count * (EACH + (double)block * size);
    if (k == n || cost <= least) least = cost, r.nouter = k, r.count = count, r.block = block;
    if (!k) break;
    int d = r.outer[k - 1]; /* this dimension moves into the block */
    block += llabs(stride[d]) * (av->shape[d] - 1);
    count /= av->shape[d];
  }
  memcpy(r.stride, stride, sizeof *stride * (size_t)av->rank);
  for (int k = r.nouter; k < n && av->size; k++)
    if (stride[r.outer[k]] < 0) r.low += stride[r.outer[k]] * (av->shape[r.outer[k]] - 1);
  int64_t step = r.block;
  for (int k = r.nouter - 1; k >= 0; k--) r.stride[r.outer[k]] = step, step *= av->shape[r.outer[k]];
  return r;
}
typedef int (*mover)(nvd_buf *to, size_t to_offset, nvd_buf *from, size_t from_offset, size_t bytes);
/* Copies all blocks into `to`, which has space for them and is taken. */
static nvg_value *move_by(const route *r, nvd_buf *to, const nvg_value *v, const nvg_aval *av, mover move) {
  int64_t size = nvg_size(av->dtype);
  nvd_buf *from = v->buffer;
  for (int64_t i = 0; i < r->count; i++) {
    int64_t at = r->low, rest = i;
    for (int k = r->nouter - 1; k >= 0; k--) {
      int d = r->outer[k];
      at += rest % av->shape[d] * v->stride[d];
      rest /= av->shape[d];
    }
    size_t bytes = (size_t)(r->block * size);
    if (move(to, (size_t)i * bytes, from, (size_t)(v->data + at * size - from->data), bytes))
      return nvd_buf_unref(to), NULL;
  }
  return nva_value_new(to, to->data - r->low * size, av->rank, r->stride);
}
static size_t bytes_by(const route *r, const nvg_aval *av) {
  return (size_t)(r->count * r->block * nvg_size(av->dtype));
}

static int download_bytes(nvd_buf *to, size_t to_offset, nvd_buf *from, size_t from_offset, size_t bytes) {
  return nvd_download(to->data + to_offset, from, from_offset, bytes);
}
nvg_value *nva_download(const nvg_value *v, const nvg_aval *av) {
  route r = route_of(av, v->stride);
  nvd_buf *b = nvd_buf_new(bytes_by(&r, av));
  return b ? move_by(&r, b, v, av, download_bytes) : NULL;
}
nvg_value *nva_copy_across(const nvg_value *v, const nvg_aval *av, nvd_device *d) {
  route r = route_of(av, v->stride);
  nvd_buf *b = nvd_buf_new_on(d, bytes_by(&r, av));
  return b ? move_by(&r, b, v, av, nvd_copy_on) : NULL;
}
