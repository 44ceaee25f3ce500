/* A picture is filtered in the frequency domain: a grid of fine lines, which was added to it, lies at two frequencies
   and is cut out there. Writes noisy.pgm and filtered.pgm into the folder that is given, if one is.
   cc filter.c $(pkg-config --cflags --libs nvm) -lm */
#include <math.h>
#include <nvm/nvm.h>
#include <stdio.h>

enum { H = 240, W = 320, LINES = 60 }; /* LINES: periods of the grid along the width */

static double picture(int y, int x) { /* a bright disc on a slope */
  double dy = y - H / 2, dx = x - W / 2;
  return 60 + 80.0 * x / W + 80 / (1 + exp((dy * dy + dx * dx - 4900) / 900));
}

static int write_pgm(const char *folder, const char *name, const float *grey) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  if (!f) return perror(path), 1;
  fprintf(f, "P5 %d %d 255\n", W, H);
  for (int i = 0; i < H * W; i++) fputc(grey[i] < 0 ? 0 : grey[i] > 255 ? 255 : (int)(grey[i] + 0.5f), f);
  return fclose(f) ? perror(path), 1 : 0;
}

static double deviation(const float *grey) {
  double sum = 0;
  for (int i = 0; i < H * W; i++) sum += pow(grey[i] - picture(i / W, i % W), 2);
  return sqrt(sum / (H * W));
}

/* The frequencies within a tenth of that of the grid become 0. */
static nvm_array *without_grid(nvm_ctx *ctx, nvm_array *x) {
  int64_t row[2] = { 1, W / 2 + 1 };
  nvm_array *k = nvm_reshape(nvm_rfftfreq(ctx, NVM_F32, W, 1), 2, row);
  nvm_array *off = nvm_abs(nvm_sub(k, nvm_float((double)LINES / W)));
  nvm_array *kept = nvm_astype(nvm_greater(off, nvm_float(0.1 * LINES / W)), NVM_F32);
  nvm_array *spectrum = nvm_rfft2(x, NULL, NULL, 0, NVM_NORM_BACKWARD);
  return nvm_irfft2(nvm_mul(spectrum, kept), (int64_t[]){ H, W }, NULL, 2, NVM_NORM_BACKWARD);
}

int main(int argc, char **argv) {
  static float noisy[H * W], filtered[H * W];
  int64_t shape[2] = { H, W };
  for (int i = 0; i < H * W; i++)
    noisy[i] = (float)(picture(i / W, i % W) + 30 * cos(2 * acos(-1.0) * LINES * (i % W) / W));
  nvm_ctx *ctx;
  if (nvm_ctx_new(&ctx, NULL)) return fprintf(stderr, "%s\n", nvm_last_error()), 1;
  nvm_scope *all = nvm_scope_open(ctx);
  nvm_array *y = without_grid(ctx, nvm_from_host(ctx, NVM_F32, 2, shape, noisy));
  int status = nvm_copy_to_host(y, filtered, sizeof filtered);
  if (status) fprintf(stderr, "%s\n", nvm_last_error());
  nvm_scope_close(all);
  nvm_ctx_free(ctx);
  if (status) return 1;
  double before = deviation(noisy), after = deviation(filtered);
  printf("deviation from the picture: %.1f with the grid, %.1f filtered\n", before, after);
  if (argc > 1 && (write_pgm(argv[1], "noisy.pgm", noisy) || write_pgm(argv[1], "filtered.pgm", filtered))) return 1;
  return !(before > 20 && after < 2);
}
