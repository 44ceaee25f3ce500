/* Size classes of the caching allocators: eight classes for each power of two, from `unit` bytes up. Private to
   dispatch. */
#ifndef NVM_DISPATCH_SIZE_CLASS_H
#define NVM_DISPATCH_SIZE_CLASS_H
#include <stddef.h>

enum { NVD_CLASS_STEPS = 8 };

/* Returns the class of `bytes` (below 2^62); *cap is the size of the largest block of that class. */
static inline int nvd_class_of(size_t bytes, size_t unit, size_t *cap) {
  size_t units = bytes <= unit ? 1 : (bytes + unit - 1) / unit;
  int octave = 63 - __builtin_clzll(units), shift = octave > 3 ? octave - 3 : 0;
  size_t step = (units + ((size_t)1 << shift) - 1) >> shift; /* 1 .. 16 */
  *cap = (step << shift) * unit;
  return shift * NVD_CLASS_STEPS + (int)step - 1;
}
#endif
