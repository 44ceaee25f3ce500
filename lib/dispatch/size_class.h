/* Size classes of caches of memory: eight to the doubling from `unit` bytes up. Inside dispatch only. */
#ifndef NVM_DISPATCH_SIZE_CLASS_H
#define NVM_DISPATCH_SIZE_CLASS_H
#include <stddef.h>

enum { NVD_CLASS_STEPS = 8 };

/* The class of so many bytes (below 2^62), and in *cap what the largest of it has. */
static inline int nvd_class_of(size_t bytes, size_t unit, size_t *cap) {
  size_t units = bytes <= unit ? 1 : (bytes + unit - 1) / unit;
  int octave = 63 - __builtin_clzll(units), shift = octave > 3 ? octave - 3 : 0;
  size_t step = (units + ((size_t)1 << shift) - 1) >> shift; /* 1 .. 16 */
  *cap = (step << shift) * unit;
  return shift * NVD_CLASS_STEPS + (int)step - 1;
}
#endif
