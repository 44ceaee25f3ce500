/* What a call, a plan, a compile and a byte of memory cost, from C: one line "name value" each (docs/performance.md
   says the units). cc -O2 latency.c -lnvm; run without arguments. It runs itself again for what needs a fresh
   process. */
#include <nvm/nvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "timing.h"

static nvm_ctx *ctx;
static void need(int status) {
  if (status) fprintf(stderr, "%s\n", nvm_last_error()), exit(1);
}
static int64_t compiled(void) {
  nvm_counters c;
  need(nvm_counters_get(&c, NVM_COUNTERS_VERSION));
  return c.kernels_compiled;
}
static nvm_array *data(int rank, const int64_t *shape) {
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  float *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = (float)(i % 1000) * 1e-3f;
  nvm_array *a = nvm_from_host(ctx, NVM_F32, rank, shape, x);
  free(x);
  return a;
}

/* Ten cheap operations; `k` makes it another kernel. */
static nvm_array *ten(nvm_array *x, int k) {
  nvm_array *y = nvm_add(x, nvm_float(1));
  for (int i = 0; i < 9; i++)
    y = (i + k) % 4 == 0   ? nvm_mul(y, x)
        : (i + k) % 4 == 1 ? nvm_sub(y, nvm_float(0.5))
        : (i ^ k) & 2      ? nvm_maximum(y, x)
                           : nvm_mul(y, nvm_float(0.25));
  return y;
}
static int trace_ten(void *k, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)c, (void)nin, (void)nout;
  out[0] = ten(in[0], *(int *)k);
  return NVM_OK;
}
static double first_call(int k) { /* us: trace, plan, compile or load, run */
  int64_t n = 1000;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = data(1, &n), *out;
  nvm_fn *f;
  need(nvm_fn_new(&f, ctx, trace_ten, &k, 1, 1));
  double t = now();
  need(nvm_fn_call(f, &x, &out));
  t = now() - t;
  nvm_array_unref(out);
  nvm_fn_free(f);
  nvm_scope_close(s);
  return t;
}
static void calls(void) {
  enum { ROUNDS = 21, REPS = 5000 };
  double t[ROUNDS];
  int64_t n = 1000;
  int k = 0;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = data(1, &n), *out;
  nvm_fn *f;
  need(nvm_fn_new(&f, ctx, trace_ten, &k, 1, 1));
  for (int r = 0; r < ROUNDS; r++) {
    double start = now();
    for (int i = 0; i < REPS; i++) {
      need(nvm_fn_call(f, &x, &out));
      nvm_array_unref(out);
    }
    t[r] = (now() - start) / REPS;
  }
  printf("call_us %.4f\n", median(t, ROUNDS));
  nvm_fn_free(f);
  nvm_scope_close(s);
}
static void plans(void) { /* explain: collect, simplify, fuse, and the text */
  enum { ROUNDS = 101 };
  double t[ROUNDS];
  int64_t shape[2] = { 512, 1000 };
  int axis = 1;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = data(2, shape), *m = nvm_mean(x, &axis, 1, 1), *d = nvm_sub(x, m);
  nvm_array *y = nvm_div(d, nvm_sqrt(nvm_add(nvm_mean(nvm_mul(d, d), &axis, 1, 1), nvm_float(1e-5))));
  for (int i = 0; i < 10; i++) y = nvm_add(nvm_mul(y, x), nvm_float(i + 0.5));
  for (int r = 0; r < ROUNDS; r++) {
    char *text;
    double start = now();
    need(nvm_explain(&text, &y, 1));
    t[r] = now() - start;
    nvm_free(text);
  }
  printf("plan_us %.2f\n", median(t, ROUNDS));
  nvm_scope_close(s);
}
static unsigned state = 12345;
static int64_t below(int64_t n) { return (int64_t)((state = state * 1664525 + 1013904223) >> 8) % n; }
static void shapes(const char *name, int softmax) {
  int64_t first = compiled(), again = 0;
  for (int pass = 0; pass < 2; pass++) {
    state = 12345;
    for (int i = 0; i < 200; i++) {
      int64_t shape[4], n = 1;
      int rank = 1 + (int)below(4);
      for (int d = 0; d < rank; d++) {
        int64_t most = (1 << 22) / n;
        shape[d] = 1 + below(most < 5000 ? most : 5000);
        n *= shape[d];
      }
      nvm_scope *s = nvm_scope_open(ctx);
      nvm_array *x = data(rank, shape),
                *r = softmax ? nvm_softmax(x, -1) : nvm_add(nvm_mul(x, data(rank, shape)), data(rank, shape));
      need(nvm_eval(&r, 1));
      nvm_scope_close(s);
    }
    if (pass == 0) first = compiled() - first, again = compiled();
  }
  printf("%s_kernels %lld\n%s_kernels_again %lld\n", name, (long long)first, name, (long long)(compiled() - again));
}
static long status_kb(const char *field) {
  char line[256], form[32];
  long kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  snprintf(form, sizeof form, "%s: %%ld", field);
  while (f && fgets(line, sizeof line, f)) sscanf(line, form, &kb);
  if (f) fclose(f);
  return kb;
}
/* else the copy that made the input hides what comes after; 0 if the kernel refuses */
static int forget_high_water(void) {
  FILE *f = fopen("/proc/self/clear_refs", "w");
  int ok = f && fputs("5", f) >= 0;
  return f && !fclose(f) && ok;
}
static void memory(void) {
  int64_t n = 1 << 26;
  nvm_counters c;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = data(1, &n), *y = x;
  for (int i = 0; i < 10; i++) y = nvm_add(nvm_mul(y, x), nvm_float(0.5));
  first_call(0); /* LLVM is loaded */
  int reset = forget_high_water();
  long before = status_kb("VmRSS");
  nvm_counters_reset_peak();
  need(nvm_eval(&y, 1));
  need(nvm_counters_get(&c, NVM_COUNTERS_VERSION));
  printf("peak_extra_bytes %lld\n", (long long)(c.bytes_peak - 2 * 4 * n));
  if (reset) printf("rss_extra_kb %ld\n", status_kb("VmHWM") - before - 4 * (n >> 10));
  nvm_scope_close(s);
}

int main(int argc, char **argv) {
  const char *part = argc > 1 ? argv[1] : "";
  need(nvm_ctx_new(&ctx, NULL));
  need(nvm_set("TIER", "1"));
  if (!strcmp(part, "warm")) { /* another kernel first: LLVM is loaded */
    first_call(1);
    printf("%s %.3f\n", argv[2], first_call(2) * 1e-3);
  } else if (!strcmp(part, "memory")) {
    memory();
  } else {
    char command[4096], store[] = "/tmp/nvm-latency-XXXXXX";
    if (!mkdtemp(store)) return 1;
    calls();
    plans();
    need(nvm_set("CACHE_DIR", "off"));
    shapes("chain", 0);
    shapes("softmax", 1);
    fflush(stdout);
    snprintf(command, sizeof command,
             "NVM_CACHE_DIR=%s %s warm compile_ms && NVM_CACHE_DIR=%s %s warm load_ms && "
             "NVM_CACHE_DIR=off %s memory; rm -rf %s",
             store, argv[0], store, argv[0], argv[0], store);
    if (system(command)) return 1;
  }
  nvm_ctx_free(ctx);
  return 0;
}
