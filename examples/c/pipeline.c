/* A fused expression in C: sqrt(sin x * cos y + exp(-z^2) + log(x + 1)) over a million elements is one kernel.
   cc pipeline.c $(pkg-config --cflags --libs nvm) -lm */
#include <math.h>
#include <nvm/nvm.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) { return fprintf(stderr, "%s\n", nvm_last_error()), 1; }

int main(void) {
  int64_t n = 1000000;
  float *x = malloc(sizeof *x * (size_t)n), *out = malloc(sizeof *out * (size_t)n);
  nvm_ctx *ctx;
  if (!x || !out || nvm_ctx_new(&ctx, NULL)) return fail();
  for (int64_t i = 0; i < n; i++) x[i] = (float)i / (float)n;

  nvm_scope *s = nvm_scope_open(ctx); /* owns every array made until it closes */
  nvm_array *a = nvm_from_host(ctx, NVM_F32, 1, &n, x);
  nvm_array *y = nvm_mul(a, nvm_float(0.5)), *z = nvm_sub(a, nvm_float(0.25));
  nvm_array *r = nvm_sqrt(nvm_add(nvm_add(nvm_mul(nvm_sin(a), nvm_cos(y)), nvm_exp(nvm_neg(nvm_square(z)))),
                                  nvm_log(nvm_add(a, nvm_float(1)))));
  char *plan;
  if (nvm_explain(&plan, &r, 1)) return fail();
  fputs(plan, stdout);
  nvm_free(plan);
  if (nvm_copy_to_host(r, out, sizeof *out * (size_t)n)) return fail(); /* evaluates */
  if (nvm_scope_close(s)) return fail();

  double worst = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = x[i], w = sqrt(sin(v) * cos(v * 0.5) + exp(-(v - 0.25) * (v - 0.25)) + log(v + 1));
    worst = fmax(worst, fabs(out[i] - w) / w);
  }
  printf("largest relative error %.2g\n", worst);
  free(x), free(out);
  nvm_ctx_free(ctx);
  return worst > 1e-6;
}
