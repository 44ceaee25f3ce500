/* What the static C++ runtime and LLVM want of a newer C library than the one that wheels promise to need: glibc has
   arc4random since 2.36. Part of bundled builds alone; the name is seen by no other library. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t drawn = 0;
  struct timespec now;
  ssize_t got;
  do got = getrandom(&drawn, sizeof drawn, 0);
  while (got < 0 && errno == EINTR);
  if (got == sizeof drawn) return drawn;
  clock_gettime(CLOCK_MONOTONIC, &now); /* a sandbox refuses the call; what is drawn here keeps no secret */
  return (uint32_t)now.tv_nsec ^ (uint32_t)((uintptr_t)&drawn >> 4);
}
