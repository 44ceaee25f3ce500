/* Random graphs: node by node in the interpreter = fused, on 1, 2 and 7 threads, with flush-to-zero set by the caller, and through
   native code, bit for bit.   test_random [count [first seed]]; NVM_RANDOM_COUNT sets the count. A failure prints its seed and graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __SSE__
#include <xmmintrin.h>
#endif
#include "random_graph.h"

static const struct mode { const char *name, *fuse, *tier, *threads; int flush, every; } modes[] = {
  { "node by node", "off", "0", "1", 0, 1 },        /* the reference */
  { "fused", "on", "0", "1", 0, 1 },
  { "fused, 2 threads", "on", "0", "2", 0, 1 },
  { "fused, 7 threads, flush-to-zero in the caller", "on", "0", "7", 1, 1 },
  { "fused, native", "on", "1", "1", 0, 10 },
  { "fused, native, 7 threads", "on", "1", "7", 1, 50 },
  { "node by node, native", "off", "1", "2", 0, 50 },
};
enum { NMODES = sizeof modes / sizeof *modes };

typedef struct result { nvm_dtype t; int64_t n; void *data; } result;

static int values(nvm_ctx *ctx, uint64_t seed, const struct mode *m, result *r, rg *g) {
  nvm_array *outs[RG_OUT];
  int status = nvm_set("FUSE", m->fuse) || nvm_set("TIER", m->tier) || nvm_set("NUM_THREADS", m->threads);
  rg_build(g, ctx, seed, outs);
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
static void drop(result *r) {
  for (int i = 0; i < RG_OUT; i++) free(r[i].data), r[i].data = NULL;
}
static int check(nvm_ctx *ctx, uint64_t seed, int all, rg *g) {
  result want[RG_OUT] = { { 0 } };
  int bad = 0;
  if (values(ctx, seed, &modes[0], want, g)) {
    printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, modes[0].name, nvm_last_error(), g->text);
    return drop(want), 1;
  }
  for (int m = 1; m < NMODES && !bad; m++) {
    if (!all && seed % (uint64_t)modes[m].every) continue;
    result got[RG_OUT] = { { 0 } };
    bad = values(ctx, seed, &modes[m], got, g);
    if (bad) printf("seed %llu: %s: %s\n%s", (unsigned long long)seed, modes[m].name, nvm_last_error(), g->text);
    for (int i = 0; i < RG_OUT && !bad; i++) {
      bad = want[i].t != got[i].t || want[i].n != got[i].n || rg_differs(want[i].t, want[i].data, got[i].data, want[i].n);
      if (bad) printf("seed %llu: output %d differs: %s\n%s", (unsigned long long)seed, i, modes[m].name, g->text);
    }
    drop(got);
  }
  drop(want);
  return bad;
}

int main(int argc, char **argv) {
  const char *env = getenv("NVM_RANDOM_COUNT");
  long most = getenv("NVM_RANDOM_MOST") ? atol(getenv("NVM_RANDOM_MOST")) : 5, count = argc > 1 ? atol(argv[1]) : env ? atol(env) : 2000, first = argc > 2 ? atol(argv[2]) : 1, bad = 0;
  nvm_ctx *ctx;
  static rg g;
  if (nvm_ctx_new(&ctx, NULL)) return 1;
  for (long i = 0; i < count && bad < most; i++) bad += check(ctx, (uint64_t)(first + i), argc > 3, &g);
  printf("%ld graphs, %ld with differences\n", count, bad);
  nvm_ctx_free(ctx);
  return bad != 0;
}
