/* Counting the integers of one row. Neighbours count in tables of their own where these stay in the first cache: a run
   of equal elements would wait for one counter again and again. What belongs into no bin has one behind the others. */
#include "dispatch/bins.h"
#include <string.h>

enum { TABLES = 4, FEW = 1024 }; /* bins up to which there are several tables */

int64_t nvd_bins_room(int64_t bins) { return (bins + 1) * (int64_t)sizeof(int64_t) * (bins <= FEW ? TABLES : 1); }

#define COUNT(T, step) \
  for (int64_t i = 0; i < r->n; i++) { \
    T x; \
    memcpy(&x, r->data + i * (step) * (int64_t)sizeof x, sizeof x); \
    uint64_t at = (uint64_t)(int64_t)x; \
    table[(i & last) * (bins + 1) + (int64_t)(at < (uint64_t)bins ? at : (uint64_t)bins)]++; \
  }
#define EACH(T) \
  if (r->stride == 1) \
    COUNT(T, 1) \
  else \
    COUNT(T, r->stride) \
  break
void nvd_bins(const nvd_row *r, int64_t bins, int64_t *out, void *scratch) {
  int64_t *table = scratch, last = bins <= FEW && r->n > TABLES * bins ? TABLES - 1 : 0;
  memset(table, 0, (size_t)((last + 1) * (bins + 1)) * sizeof *table);
  switch (r->type) {
  case NVM_I8: EACH(int8_t);
  case NVM_I16: EACH(int16_t);
  case NVM_I32: EACH(int32_t);
  case NVM_I64: EACH(int64_t);
  case NVM_U16: EACH(uint16_t);
  case NVM_U32: EACH(uint32_t);
  default: EACH(uint8_t);
  }
  for (int64_t i = 0; i < bins; i++) {
    out[i] = table[i];
    for (int64_t t = 1; t <= last; t++) out[i] += table[t * (bins + 1) + i];
  }
}
#undef EACH
#undef COUNT
