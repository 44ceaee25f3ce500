/* A loop whose body is traced and planned once: a thousand pendulums by a scan of 10,000 steps, with the energy of all
   of them after each.
   cc pendulum.c $(pkg-config --cflags --libs nvm) -lm */
#include <math.h>
#include <nvm/loop.h>
#include <stdio.h>

enum { PENDULUMS = 1000, STEPS = 10000 };

/* carries: angles and speeds; one value of each step: the sum of the energies */
static int step(void *user, nvm_ctx *ctx, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)ctx, (void)nin, (void)nout;
  nvm_array *dt = nvm_float(*(const double *)user);
  nvm_array *speed = nvm_sub(in[1], nvm_mul(dt, nvm_sin(in[0])));
  nvm_array *angle = nvm_add(in[0], nvm_mul(dt, speed));
  nvm_array *energy = nvm_sub(nvm_mul(nvm_float(0.5), nvm_square(speed)), nvm_cos(angle));
  out[0] = angle, out[1] = speed, out[2] = nvm_sum(energy, NULL, -1, 0);
  return NVM_OK; /* a NULL output would be reported with its own message */
}

int main(void) {
  static double angle[PENDULUMS], speed[PENDULUMS], energy[STEPS], dt = 1e-3;
  int64_t shape[1] = { PENDULUMS };
  nvm_scan_options o = NVM_SCAN_OPTIONS_INIT;
  o.length = STEPS;
  for (int i = 0; i < PENDULUMS; i++) angle[i] = 3.0 * (i + 1) / PENDULUMS;
  nvm_ctx *ctx;
  if (nvm_ctx_new(&ctx, NULL)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *init[2] = { nvm_from_host(ctx, NVM_F64, 1, shape, angle), nvm_from_host(ctx, NVM_F64, 1, shape, speed) };
  nvm_array *out[3];
  if (nvm_scan(out, ctx, step, &dt, init, 2, NULL, 0, 1, &o) || nvm_copy_to_host(out[2], energy, sizeof energy))
    return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  for (int i = 0; i < 3; i++) nvm_array_unref(out[i]);
  double worst = 0;
  for (int k = 0; k < STEPS; k++) worst = fmax(worst, fabs(energy[k] - energy[0]) / PENDULUMS);
  printf("energy %.6f, and within %.1g of it in all steps\n", energy[0] / PENDULUMS, worst);
  if (nvm_scope_close(s) || nvm_ctx_free(ctx)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  return worst > 1e-2;
}
