/* Builds the description of a device (nvb_caps). A table has one row of rates for each family of GPUs and one for
   the CPU; counts (threads, caches, vector width, SMs) are queried, and the rates are scaled by them. Nothing here
   is measured, so plans are reproducible. */
#include "base/caps.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/pool.h"
#include "base/settings.h"

/* The kind of tensor cores of a compute capability. These are macros, so that the table can be constant. */
#define tensor_of(arch) ((arch) < 80 ? 0 : (arch) == 90 ? 2 : 1)
#define f8_of(arch) ((arch) < 89 ? 0 : (arch) >= 90 && (arch) < 120 ? 1 : 2)

/* The largest cluster size. The blocks of a cluster share a group of SMs: clusters of 8 fit on every GPU with at
   least 8 SMs, clusters of 16 where eight groups have more than 120 SMs. */
#define cluster_of(arch, units) ((arch) < 90 || (units) < 8 ? 1 : (arch) == 90 && (units) > 120 ? 16 : 8)

/* The GPUs. Bandwidth is what a copy reaches. Except for the H200, int8 GEMM rates are assumed: they equal those of
   f8, or are derived from the rate of the SMs; so are the rates of generated f64 GEMMs on tensor cores. `arch`
   (compute capability times ten) and `word` (a part of the driver's name for the device) select the family. */
static const struct family {
  nvb_caps caps;
  int arch;
  const char *word;
} known[] = {
#define GPU(id, arch, word, sms, shared, cache, copy, cached, ops, ...) \
  { { .kind = NVB_CUDA, .name = id, .cores = sms, .width = 32, .threads = 1024, .onchip = shared, \
      .cluster = cluster_of(arch, sms), .l2 = cache, \
      .bandwidth = copy, .core_bandwidth = (double)(copy) / (sms), .l2_bandwidth = cached, .rate = ops, \
      .gemm = { __VA_ARGS__ }, .launch = 2500, .max_buffers = 64, \
      .tensor = tensor_of(arch), .f8 = f8_of(arch), .splits = nvb_splits_f32(arch), \
      .scales = nvb_scales_f8(arch) }, arch, word }
  GPU("h200", 90, "H200", 132, 49152 * 4, 50 << 20, 4000, 7000, 40000, { 45e3, 30e3 }, { 405e3, 425e3 }, { 61e3, 49e3 },
      { 750e3, 765e3 }, { 1400e3, 1300e3 }, { 1490e3, 1500e3 }),
  GPU("h100", 90, "", 132, 49152 * 4, 50 << 20, 3000, 6500, 40000, { 45e3, 30e3 }, { 400e3, 400e3 }, { 60e3, 45e3 },
      { 700e3, 690e3 }, { 1200e3, 1100e3 }, { 1200e3, 1100e3 }),
  GPU("a100", 80, "", 108, 160 << 10, 40 << 20, 1750, 4500, 11700, { 18e3, 13e3 }, { 130e3, 100e3 }, { 18e3, 13e3 },
      { 270e3, 210e3 }, { 0, 0 }, { 500e3, 330e3 }),
  GPU("rtx4090", 89, "", 128, 96 << 10, 72 << 20, 930, 5000, 49000, { 60e3, 40e3 }, { 80e3, 60e3 }, { 1.2e3, 1e3 },
      { 160e3, 130e3 }, { 300e3, 240e3 }, { 500e3, 400e3 }),
  GPU("b200", 100, "", 148, 49152 * 4, 126 << 20, 7000, 10000, 44000, { 60e3, 40e3 }, { 800e3, 150e3 }, { 35e3, 26e3 },
      { 1600e3, 400e3 }, { 3200e3, 400e3 }, { 3200e3, 400e3 }),
  GPU("rtx5090", 120, "", 170, 96 << 10, 96 << 20, 1650, 6500, 62000, { 80e3, 55e3 }, { 100e3, 80e3 }, { 1.5e3, 1.2e3 },
      { 210e3, 170e3 }, { 400e3, 320e3 }, { 650e3, 520e3 }),
#undef GPU
  { { .kind = NVB_CPU,
      .name = "cpu16",
      .cores = 16,
      .width = 16,
      .threads = 16,
      .onchip = 1 << 20,
      .cluster = 1,
      .l2 = 32 << 20,
      .bandwidth = 100,
      .core_bandwidth = 25,
      .l2_bandwidth = 1500,
      .rate = 1600,
      .launch = 2000,
      .gemm = { { 2400, 1500 }, { 2400, 1500 }, { 1200, 800 }, { 1800, 1200 } },
      .max_buffers = 64 },
    0,
    "" },
};
enum { KNOWN = sizeof known / sizeof *known };

const nvb_caps *nvb_caps_find(const char *name) {
  for (size_t i = 0; i < KNOWN; i++)
    if (!strcmp(known[i].caps.name, name)) return &known[i].caps;
  return NULL;
}

static void scale_products(nvb_caps *c, double by) {
  for (int i = 0; i < NVB_GEMMS; i++) {
    c->gemm[i].library *= by;
    c->gemm[i].generated *= by;
  }
}

nvb_caps nvb_caps_gpu(const char *device, int arch, int cores) {
  const struct family *best = NULL;
  for (const struct family *f = known; f < known + KNOWN; f++)
    if (f->arch && strstr(device, f->word) && (!best || abs(f->arch - arch) < abs(best->arch - arch))) best = f;
  nvb_caps here = best->caps;
  here.tensor = tensor_of(arch);
  here.f8 = f8_of(arch);
  here.splits = nvb_splits_f32(arch);
  here.scales = nvb_scales_f8(arch);
  double fraction = cores > 0 ? (double)cores / here.cores : 1;
  here.cores = cores > 0 ? cores : here.cores;
  here.cluster = cluster_of(arch, here.cores);
  here.bandwidth *= fraction;
  here.l2_bandwidth *= fraction;
  here.rate *= fraction;
  scale_products(&here, fraction);
  return here;
}

static int vector_width(void) { /* returns f32 lanes of the widest vector */
  int lanes = 4;
#if defined __x86_64__ || defined __i386__
  __builtin_cpu_init();
  lanes = __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#endif
  long bits = strtol(nvb_str(NVB_ISA), NULL, 10); /* 0: native */
  return bits >= 128 && bits / 32 < lanes ? (int)(bits / 32) : lanes;
}

#ifndef _SC_LEVEL2_CACHE_SIZE /* glibc alone defines these */
#define _SC_LEVEL2_CACHE_SIZE (-1)
#define _SC_LEVEL3_CACHE_SIZE (-1)
#endif
static int64_t cache_size(int which, int64_t otherwise) {
  long n = sysconf(which);
  return n > 0 ? n : otherwise;
}

nvb_caps nvb_caps_cpu(void) {
  /* A kernel of 64 elements that its caller runs takes 85 ns more than its elements, for which 300 of them were run one
     after the other; waking the threads of the pool takes longer, and little of the time of what is divided. */
  enum { LAUNCH = 250 };
  const nvb_caps *family = nvb_caps_find("cpu16");
  nvb_caps here = *family;
  here.cores = nvb_pool_threads();
  here.width = here.threads = vector_width();
  snprintf(here.name, sizeof here.name, "cpu%dx%d", here.cores, here.width);
  double fraction = (double)here.cores / family->cores;
  here.onchip = cache_size(_SC_LEVEL2_CACHE_SIZE, family->onchip);
  here.l2 = cache_size(_SC_LEVEL3_CACHE_SIZE, family->l2);
  here.launch = LAUNCH;
  double together = here.cores * here.core_bandwidth;
  here.bandwidth = together < family->bandwidth ? together : family->bandwidth;
  here.l2_bandwidth *= fraction;
  here.rate *= fraction * here.width / family->width;
  scale_products(&here, fraction * here.width / family->width);
  return here;
}
