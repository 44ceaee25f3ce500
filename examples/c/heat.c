/* A simulation: explicit heat steps on a plate with fixed borders. Each step is lazy; evaluating every tenth one runs
   the pending steps as fused kernels in constant memory.  cc heat.c $(pkg-config --cflags --libs nvm) */
#include <nvm/nvm.h>
#include <stdio.h>

enum { H = 120, W = 160, STEPS = 200 };

/* The plate shifted by (dy, dx), cyclically: what comes around lies on the border, which never changes. */
static nvm_array *shifted(nvm_array *t, int dy, int dx) { return nvm_roll(nvm_roll(t, dy, 0), dx, 1); }

int main(void) {
  static double plate[H][W], inside[H][W];
  int64_t shape[2] = { H, W };
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      inside[i][j] = i > 0 && i < H - 1 && j > 0 && j < W - 1;
      plate[i][j] = j == 0 ? 100 : 0;
    }
  nvm_ctx *ctx;
  if (nvm_ctx_new(&ctx, NULL)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  nvm_scope *all = nvm_scope_open(ctx);
  nvm_array *t = nvm_from_host(ctx, NVM_F64, 2, shape, plate), *mask = nvm_from_host(ctx, NVM_F64, 2, shape, inside);
  nvm_array_ref(t);
  for (int step = 0; step < STEPS; step++) {
    nvm_scope *s = nvm_scope_open(ctx); /* what one step makes is released with it */
    nvm_array *around =
        nvm_add(nvm_add(shifted(t, 1, 0), shifted(t, -1, 0)), nvm_add(shifted(t, 0, 1), shifted(t, 0, -1)));
    nvm_array *flow = nvm_sub(around, nvm_mul(t, nvm_float(4)));
    nvm_array *next = nvm_array_ref(nvm_add(t, nvm_mul(nvm_mul(flow, mask), nvm_float(0.2))));
    nvm_array_unref(t);
    t = next;
    if (nvm_scope_close(s) || (step % 10 == 9 && nvm_eval(&t, 1))) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  }
  if (nvm_copy_to_host(t, plate, sizeof plate)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  nvm_array_unref(t);
  nvm_scope_close(all);
  printf("after %d steps: %.3f next to the hot edge, %.3f in the middle\n", STEPS, plate[H / 2][1],
         plate[H / 2][W / 2]);
  nvm_ctx_free(ctx);
  return !(plate[H / 2][1] > 80 && plate[H / 2][1] < 100 && plate[H / 2][W / 2] >= 0);
}
