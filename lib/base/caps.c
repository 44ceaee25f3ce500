/* Device facts. A family's rates are rows of a table; of this machine only counts are asked (threads, caches, vector
   width) and the rates of the CPU row are scaled by them. Nothing here is measured, so that plans are reproducible. */
#include "base/caps.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/pool.h"
#include "base/settings.h"

static const nvb_caps known[] = {
  { .kind = NVB_CUDA, .name = "h200", .units = 132, .width = 32, .threads = 1024, .onchip = 49152 * 4, .l2 = 50 << 20,
    .bandwidth = 4000, .unit_bandwidth = 4000.0 / 132, .l2_bandwidth = 7000, .rate = 40000, .launch = 2500,
    .max_buffers = 64 },
  { .kind = NVB_CPU, .name = "cpu16", .units = 16, .width = 16, .threads = 16, .onchip = 1 << 20, .l2 = 32 << 20,
    .bandwidth = 100, .unit_bandwidth = 25, .l2_bandwidth = 1500, .rate = 1600, .launch = 2000,
    .max_buffers = 64 },
};

const nvb_caps *nvb_caps_find(const char *name) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name))
      return &known[i];
  return NULL;
}

static int vector_width(void) { /* f32 lanes */
  int lanes = 4;
#if defined __x86_64__ || defined __i386__
  __builtin_cpu_init();
  lanes = __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#endif
  long bits = strtol(nvb_str(NVB_ISA), NULL, 10); /* 0: native */
  return bits >= 128 && bits / 32 < lanes ? (int)(bits / 32) : lanes;
}

#ifndef _SC_LEVEL2_CACHE_SIZE /* an extension of glibc */
#define _SC_LEVEL2_CACHE_SIZE (-1)
#define _SC_LEVEL3_CACHE_SIZE (-1)
#endif
static int64_t cache_size(int which, int64_t otherwise) {
  long n = sysconf(which);
  return n > 0 ? n : otherwise;
}

const nvb_caps *nvb_caps_cpu(void) {
  static _Thread_local nvb_caps here;
  const nvb_caps *family = nvb_caps_find("cpu16");
  here = *family;
  here.units = nvb_pool_threads();
  here.width = here.threads = vector_width();
  snprintf(here.name, sizeof here.name, "cpu%dx%d", here.units, here.width);
  double share = (double)here.units / family->units;
  here.onchip = cache_size(_SC_LEVEL2_CACHE_SIZE, family->onchip);
  here.l2 = cache_size(_SC_LEVEL3_CACHE_SIZE, family->l2);
  double together = here.units * here.unit_bandwidth;
  here.bandwidth = together < family->bandwidth ? together : family->bandwidth;
  here.l2_bandwidth *= share;
  here.rate *= share * here.width / family->width;
  return &here;
}
