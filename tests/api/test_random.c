/* Random graphs: node by node in the interpreter = fused, on 1, 2 and 7 threads, with flush-to-zero set by the caller, and through
   native code, bit for bit; with a device (cuda:0), fused and node by node there, without f16 and bf16.
     test_random [--device NAME] [--seconds S] [count [first seed [all]]]; all: every mode for every graph
   NVM_RANDOM_COUNT sets the count, NVM_RANDOM_MOST after how many differences it stops. A failure prints its seed and graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined __SSE__
#include <xmmintrin.h>
#endif
#include "random_graph.h"

typedef struct mode { const char *name, *fuse, *tier, *threads; int flush, every; } mode;
static const mode on_cpu[] = {
  { "node by node", "off", "0", "1", 0, 1 },        /* the reference */
  { "fused", "on", "0", "1", 0, 1 },
  { "fused, 2 threads", "on", "0", "2", 0, 1 },
  { "fused, 7 threads, flush-to-zero in the caller", "on", "0", "7", 1, 1 },
  { "fused, native", "on", "1", "1", 0, 10 },
  { "fused, native, 7 threads", "on", "1", "7", 1, 50 },
  { "node by node, native", "off", "1", "2", 0, 50 },
}, on_device[] = {
  { "fused, on the device", "on", "auto", "1", 0, 1 },
  { "node by node, on the device", "off", "auto", "1", 0, 4 },
};
static const struct modes { const mode *m; int n; } modes[] = {
  { on_cpu + 1, sizeof on_cpu / sizeof *on_cpu - 1 }, { on_device, sizeof on_device / sizeof *on_device } };

typedef struct result { nvm_dtype t; int64_t n; void *data; } result;

static int values(nvm_ctx *ctx, uint64_t seed, int halves, const mode *m, result *r, rg *g) {
  nvm_array *outs[RG_OUT];
  int status = nvm_set("FUSE", m->fuse) || nvm_set("TIER", m->tier) || nvm_set("NUM_THREADS", m->threads);
  rg_build(g, ctx, seed, halves, outs);
#if defined __SSE__
  unsigned csr = _mm_getcsr();
  if (m->flush) _mm_setcsr(csr | 0x8040);
#endif
  status = status || nvm_eval(outs, RG_OUT);
  for (int i = 0; i < RG_OUT && !status; i++) {
    r[i].t = nvm_dtype_of(outs[i]);
    r[i].n = nvm_size(outs[i]);
    size_t bytes = (size_t)r[i].n * nvm_dtype_size(r[i].t);
    r[i].data = malloc(bytes + 1);
    status = nvm_copy_to_host(outs[i], r[i].data, bytes);
  }
#if defined __SSE__
  _mm_setcsr(csr);
#endif
  rg_free(g);
  return status;
}
static void tell(const result *want, const result *got, int64_t at) { /* the element, as far as its bits go into 8 bytes */
  size_t size = nvm_dtype_size(want->t) / (want->t == NVM_C64 || want->t == NVM_C128 ? 2 : 1);
  uint64_t w = 0, g = 0;
  memcpy(&w, (char *)want->data + (size_t)at * size, size);
  memcpy(&g, (char *)got->data + (size_t)at * size, size);
  printf("part %lld of %lld: %#llx, wanted %#llx (%s)\n", (long long)at, (long long)want->n, (unsigned long long)g,
         (unsigned long long)w, nvm_dtype_name(want->t));
}
static void drop(result *r) {
  for (int i = 0; i < RG_OUT; i++) free(r[i].data), r[i].data = NULL;
}
/* The modes of `device`, or those of the CPU if it is NULL, against the reference. */
static int check(nvm_ctx *cpu, nvm_ctx *device, uint64_t seed, int all, rg *g) {
  result want[RG_OUT] = { { 0 } };
  const struct modes *other = &modes[device != NULL];
  int bad = 0;
  if (values(cpu, seed, !device, &on_cpu[0], want, g)) {
    printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, on_cpu[0].name, nvm_last_error(), g->text);
    return drop(want), 1;
  }
  for (const mode *m = other->m; m < other->m + other->n && !bad; m++) {
    if (!all && seed % (uint64_t)m->every) continue;
    result got[RG_OUT] = { { 0 } };
    bad = values(device ? device : cpu, seed, !device, m, got, g);
    if (bad) printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, m->name, nvm_last_error(), g->text);
    for (int i = 0; i < RG_OUT && !bad; i++) {
      bad = want[i].t != got[i].t || want[i].n != got[i].n;
      int64_t at = bad ? 0 : rg_differs(want[i].t, want[i].data, got[i].data, want[i].n);
      if (bad || at) printf("seed %llu: output %d differs: %s\n%s", (unsigned long long)seed, i, m->name, g->text);
      if (at) tell(&want[i], &got[i], at - 1), bad = 1;
    }
    drop(got);
  }
  drop(want);
  return bad;
}

static long from_env(const char *name, long otherwise) {
  const char *s = getenv(name);
  return s ? atol(s) : otherwise;
}
static nvm_ctx *context(const char *device) {
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  nvm_ctx *c = NULL;
  if (nvm_device_find(&o.device, device) || nvm_ctx_new(&c, &o)) printf("%s: %s\n", device, nvm_last_error());
  return c;
}

int main(int argc, char **argv) {
  const char *place = NULL;
  double seconds = 1e9;
  while (argc > 2 && !strncmp(argv[1], "--", 2)) {
    if (!strcmp(argv[1], "--device")) place = argv[2];
    if (!strcmp(argv[1], "--seconds")) seconds = atof(argv[2]);
    argc -= 2, argv += 2;
  }
  long most = from_env("NVM_RANDOM_MOST", 5), first = argc > 2 ? atol(argv[2]) : 1, bad = 0, done = 0;
  long count = argc > 1 ? atol(argv[1]) : from_env("NVM_RANDOM_COUNT", 2000);
  nvm_ctx *cpu = context("cpu"), *device = place ? context(place) : NULL;
  static rg g;
  if (!cpu || (place && !device)) return 1;
  for (time_t start = time(NULL); done < count && bad < most && difftime(time(NULL), start) < seconds; done++)
    bad += check(cpu, device, (uint64_t)(first + done), argc > 3, &g);
  printf("%ld graphs, %ld with differences\n", done, bad);
  if (device) nvm_ctx_free(device);
  nvm_ctx_free(cpu);
  return bad != 0;
}
