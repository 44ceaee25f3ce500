/* A function traced once and called often: softmax of rows with its entropy, two outputs of one kernel.
   cc softmax.c $(pkg-config --cflags --libs nvm) -lm */
#include <math.h>
#include <nvm/nvm.h>
#include <stdio.h>

enum { ROWS = 64, COLS = 1000 };

static int trace(void *user, nvm_ctx *ctx, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)ctx, (void)nin, (void)nout;
  int axis = 1;
  nvm_array *p = nvm_softmax(in[0], axis);
  out[0] = p;
  out[1] = nvm_neg(nvm_sum(nvm_mul(p, nvm_log(p)), &axis, 1, 0));
  return NVM_OK; /* a NULL output would be reported with its own message */
}

int main(void) {
  static float x[ROWS][COLS], p[ROWS][COLS], h[ROWS];
  int64_t shape[2] = { ROWS, COLS };
  nvm_ctx *ctx;
  nvm_fn *f;
  if (nvm_ctx_new(&ctx, NULL) || nvm_fn_new(&f, ctx, trace, NULL, 1, 2))
    return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  double worst = 0;
  for (int call = 0; call < 10; call++) {
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLS; j++) x[i][j] = (float)((i * 31 + j * 17 + call) % 101) / 10;
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *in = nvm_from_host(ctx, NVM_F32, 2, shape, x), *out[2];
    int bad =
        nvm_fn_call(f, &in, out) || nvm_copy_to_host(out[0], p, sizeof p) || nvm_copy_to_host(out[1], h, sizeof h);
    if (bad) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
    nvm_array_unref(out[0]);
    nvm_array_unref(out[1]);
    if (nvm_scope_close(s)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
    for (int i = 0; i < ROWS; i++) {
      double sum = 0, e = 0;
      for (int j = 0; j < COLS; j++) sum += p[i][j], e -= p[i][j] * log(p[i][j]);
      worst = fmax(worst, fmax(fabs(sum - 1), fabs(e - h[i]) / e));
    }
  }
  printf("%d rows, entropy of the first %.4f, largest error %.2g\n", ROWS, (double)h[0], worst);
  nvm_fn_free(f);
  nvm_ctx_free(ctx);
  return worst > 1e-5;
}
