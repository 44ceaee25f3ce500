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

/* Repeats one element n times: a block of it, which is then copied. */
static void fill_row(char *to, const char *from, int64_t n, size_t each) {
  enum { BLOCK = 512 };
  size_t bytes = (size_t)n * each, done = each;
  memcpy(to, from, each);
  for (size_t more; done < bytes; done += more) {
    more = done < BLOCK ? done : BLOCK / each * each;
    more = more < bytes - done ? more : bytes - done;
    memcpy(to + done, to, more);
  }
}

/* ---- the rows of the last two axes. Does `what` for each of them; constant sizes let the compiler inline memcpy. */
#define EACH_ROW(what) \
  for (int64_t r = 0; r < rows.n; r++, to += rows.to, from += rows.from) what
#define EACH_SIZE(of) \
  switch (each) { \
  case 1: EACH_ROW(of(1)); return; \
  case 2: EACH_ROW(of(2)); return; \
  case 4: EACH_ROW(of(4)); return; \
  case 8: EACH_ROW(of(8)); return; \
  default: EACH_ROW(of(each)); return; \
  }
#define FILL(type) \
  do { \
    type x; \
    memcpy(&x, from, sizeof x); \
    for (int64_t i = 0; i < a.n; i++) memcpy(to + i * (int64_t)sizeof x, &x, sizeof x); \
  } while (0)
#define MOVE(bytes) \
  for (int64_t i = 0; i < a.n; i++) memcpy(to + i * a.to, from + i * a.from, bytes)
#define MOVE_WHOLE(bytes) memcpy(to, from, (bytes) * (size_t)a.n)
/* Short rows of one element are filled element by element. */
static void fill_rows(char *to, const char *from, axis rows, axis a, size_t each) {
  enum { SHORT = 128 };
  if (a.n <= SHORT && each == 8) EACH_ROW(FILL(uint64_t));
  else if (a.n <= SHORT && each == 4) EACH_ROW(FILL(uint32_t));
  else EACH_ROW(fill_row(to, from, a.n, each));
}
static void move_rows(char *to, const char *from, axis rows, axis a, size_t each) {
  int packed = a.to == (int64_t)each;
  if (packed && !a.from) {
    fill_rows(to, from, rows, a, each);
    return;
  }
  if (packed && a.from == a.to) {
    EACH_ROW(MOVE_WHOLE(each));
    return;
  }
  EACH_SIZE(MOVE)
}
void nva_move_strided(void *to, const int64_t *to_strides, const void *from, const int64_t *from_strides, int rank,
                      const int64_t *shape, size_t each) {
  axis at[NVM_MAX_RANK + 1];
  int64_t index[NVM_MAX_RANK] = { 0 };
  for (int d = 0; d < rank; d++)
    if (!shape[d]) return;
  int n = sort_axes(at, to_strides, from_strides, rank, shape), d;
  for (; n < 2; n++) at[n] = n ? at[0] : (axis){ 1, 0, 0 }, at[0] = (axis){ 1, 0, 0 }; /* two axes at least */
  char *o = to;
  const char *p = from;
  do {
    move_rows(o, p, at[n - 2], at[n - 1], each);
    for (d = n - 3; d >= 0; d--) {
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
