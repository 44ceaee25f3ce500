/* Integer helpers that C lacks: floor division and the greatest common divisor. */
#ifndef NVM_BASE_INT_H
#define NVM_BASE_INT_H
#include <stdint.h>

/* a / b rounded down; b is not 0 */
static inline int64_t nvb_floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
/* The greatest common divisor, not negative; that of 0 and b is |b|. */
static inline int64_t nvb_gcd(int64_t a, int64_t b) {
  int64_t rest;
  for (; b; a = b, b = rest) rest = a % b;
  return a < 0 ? -a : a;
}
#endif
