/* Copies strided elements in host memory to other strides. Decides the order of the loops; never what is copied. */
#include <stdlib.h>
#include <string.h>
#include "api/api.h"

typedef struct axis { int64_t n, to, from; } axis; /* strides in bytes */

/* Sorts the axes by the stride of `to`, the largest first, leaves out those of extent 1, and joins axes that are
   contiguous in both arrays. Returns their number. */
static int sort_axes(axis *at, const int64_t *to, const int64_t *from, int rank, const int64_t *shape) {
  int n = 0, kept = 0;
  for (int d = 0; d < rank; d++) {
    if (shape[d] == 1) continue;
    int k = n++;
    for (; k && llabs(at[k - 1].to) < llabs(to[d]); k--) at[k] = at[k - 1];
    at[k] = (axis){ shape[d], to[d], from[d] };
  }
  for (int k = 0; k < n; k++) {
    axis *outer = kept ? &at[kept - 1] : NULL;
    if (outer && outer->to == at[k].to * at[k].n && outer->from == at[k].from * at[k].n)
      *outer = (axis){ outer->n * at[k].n, at[k].to, at[k].from };
    else at[kept++] = at[k];
  }
  return kept;
}
#define MOVE(bytes) \
  for (int64_t i = 0; i < a->n; i++) memcpy(to + i * a->to, from + i * a->from, bytes)
#define FILL(type) \
  do { \
    type x; \
    memcpy(&x, from, sizeof x); \
    for (int64_t i = 0; i < n; i++) memcpy(to + i * (int64_t)sizeof x, &x, sizeof x); \
  } while (0)
/* Repeats one element n times: short rows element by element; of longer ones a block, which is then copied. */
static void fill_row(char *to, const char *from, int64_t n, size_t each) {
  enum { SHORT = 128, BLOCK = 512 };
  if (n <= SHORT && each == 8) {
    FILL(uint64_t);
    return;
  }
  if (n <= SHORT && each == 4) {
    FILL(uint32_t);
    return;
  }
  size_t bytes = (size_t)n * each, done = each;
  memcpy(to, from, each);
  for (size_t more; done < bytes; done += more) {
    more = done < BLOCK ? done : BLOCK / each * each;
    more = more < bytes - done ? more : bytes - done;
    memcpy(to + done, to, more);
  }
}
static void move_row(char *to, const char *from, const axis *a, size_t each) {
  if (a->to == (int64_t)each && a->from == a->to) {
    memcpy(to, from, each * (size_t)a->n);
    return;
  }
  if (a->to == (int64_t)each && !a->from) {
    fill_row(to, from, a->n, each);
    return;
  }
  switch (each) { /* constant sizes let the compiler inline memcpy */
  case 1: MOVE(1); break;
  case 2: MOVE(2); break;
  case 4: MOVE(4); break;
  case 8: MOVE(8); break;
  default: MOVE(each);
  }
}
void nva_move_strided(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, int rank,
                      const int64_t *shape, size_t each) {
  axis at[NVM_MAX_RANK + 1];
  int64_t index[NVM_MAX_RANK] = { 0 };
  for (int d = 0; d < rank; d++)
    if (!shape[d]) return;
  int n = sort_axes(at, to_strides, from_strides, rank, shape), d;
  if (!n) at[n++] = (axis){ 1, 0, 0 };
  char *o = to;
  const char *p = from;
  do {
    move_row(o, p, &at[n - 1], each);
    for (d = n - 2; d >= 0; d--) {
      o += at[d].to;
      p += at[d].from;
      if (++index[d] < at[d].n) break;
      o -= at[d].to * at[d].n;
      p -= at[d].from * at[d].n;
      index[d] = 0;
    }
  } while (d >= 0);
}
void nva_copy_strided(void *to, const void *from, const nvg_aval *av, const int64_t *strides) {
  int64_t packed[NVM_MAX_RANK], size = nvg_size(av->dtype);
  nvg_packed(packed, av->rank, av->shape);
  for (int d = 0; d < av->rank; d++) packed[d] *= size;
  nva_move_strided(to, packed, from, strides ? strides : packed, av->rank, av->shape, (size_t)size);
}
