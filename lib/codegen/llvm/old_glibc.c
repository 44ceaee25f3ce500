/* What the static C++ runtime and LLVM want of a newer C library than the one that wheels promise to need: glibc has
   arc4random since 2.36. Part of bundled builds alone; the name is seen by no other library. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t drawn = 0;
  while (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {} /* only a signal before the first byte ends it early */
  return drawn;
}
