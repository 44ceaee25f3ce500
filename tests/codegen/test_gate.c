/* The gate: kernels of every kind, each one text with schedules for three vector widths, interpreted and compiled. */
#include "../arena.h"
#include "gate.h"

static void softmax_of(const char *prefix, int rows, int n) {
  float *x = gate_floats(rows * n, -4, 4), *y = calloc((size_t)(rows * n), 4);
  if (n > 1) x[0] = -INFINITY;
  gate g = { .file = "softmax.kir", .prefix = prefix, .aligned = n % 4 == 0 };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, y, rows * n);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_run(&g);
  for (int r = 0; r < rows; r++) {
    double m = -INFINITY, s = 0;
    for (int j = 0; j < n; j++) m = fmax(m, x[r * n + j]);
    for (int j = 0; j < n; j++) s += exp(x[r * n + j] - m);
    for (int j = 0; j < n; j++) gate_close("softmax", r * n + j, y[r * n + j] * n, exp(x[r * n + j] - m) / s * n, 2e-6);
  }
  free(x);
  free(y);
}
START_TEST(softmax) {
  softmax_of("cpu", 7, 1000);
  softmax_of("cpu", 5, 999);
  softmax_of("cpu", 5, 1);
  softmax_of("long", 5, 1001);
  softmax_of("long", 3, 4096);
  softmax_of("odd", 3, 5000);
  softmax_of("odd", 5, 4099);
  softmax_of("short", 37, 20);
  softmax_of("short", 21, 31);
}
END_TEST

static void across_of(const char *prefix, int rows, int cols) {
  float *x = gate_floats(rows * cols, -4, 4), *y = calloc((size_t)(rows * cols), 4);
  gate g = { .file = "across.kir", .prefix = prefix };
  gate_in(&g, NVM_F32, x, rows * cols);
  gate_out(&g, NVM_F32, y, rows * cols);
  gate_size(&g, rows);
  gate_size(&g, cols);
  gate_run(&g);
  for (int j = 0; j < cols; j++) {
    double m = -INFINITY, s = 0;
    for (int i = 0; i < rows; i++) m = fmax(m, x[i * cols + j]);
    for (int i = 0; i < rows; i++) s += exp(x[i * cols + j] - m);
    for (int i = 0; i < rows; i++) {
      int at = i * cols + j;
      gate_close("across", at, y[at] * rows, exp(x[at] - m) / s * rows, 2e-6);
    }
  }
  free(x);
  free(y);
}
START_TEST(across) {
  across_of("items", 61, 3);
  across_of("lanes", 33, 2);
  across_of("whole", 4000, 5);
}
END_TEST

static void fft_of(const char *prefix, int n, int nb, int count) {
  int64_t all = (int64_t)n * count;
  float *x = gate_floats(2 * all, -1, 1), *h = gate_floats(2 * n, -1, 1), *tw = calloc((size_t)nb, 8),
        *y = calloc((size_t)all, 8);
  for (int k = 0; k < nb; k++) {
    tw[2 * k] = (float)cos(2 * M_PI * k / n);
    tw[2 * k + 1] = (float)-sin(2 * M_PI * k / n);
  }
  gate g = { .file = "fftconv.kir", .prefix = prefix };
  gate_in(&g, NVM_C64, x, all);
  gate_in(&g, NVM_C64, h, n);
  gate_in(&g, NVM_C64, tw, nb);
  gate_out(&g, NVM_C64, y, all);
  gate_size(&g, count);
  gate_run(&g);
  double *wr = calloc((size_t)n * 4, 8), *wi = wr + n, *fr = wi + n, *fi = fr + n;
  for (int k = 0; k < n; k++) {
    wr[k] = cos(2 * M_PI * k / n);
    wi[k] = -sin(2 * M_PI * k / n);
  }
  for (int s = 0; s < count; s += count - 1) { /* the first and the last */
    const float *xs = x + 2 * n * s;
    for (int k = 0; k < n; k++) {
      double re = 0, im = 0;
      for (int t = 0; t < n; t++) {
        int q = (int)((int64_t)t * k % n);
        re += xs[2 * t] * wr[q] - xs[2 * t + 1] * wi[q];
        im += xs[2 * t] * wi[q] + xs[2 * t + 1] * wr[q];
      }
      fr[k] = re * h[2 * k] - im * h[2 * k + 1];
      fi[k] = re * h[2 * k + 1] + im * h[2 * k];
    }
    for (int t = 0; t < n; t++) {
      double re = 0, im = 0;
      for (int k = 0; k < n; k++) {
        int q = (int)((int64_t)t * k % n);
        re += fr[k] * wr[q] + fi[k] * wi[q];
        im += fi[k] * wr[q] - fr[k] * wi[q];
      }
      gate_close("fftconv", t, y[2 * (n * s + t)] / (double)n, re / n, 2e-6);
      gate_close("fftconv", t, y[2 * (n * s + t) + 1] / (double)n, im / n, 2e-6);
    }
  }
  free(x);
  free(h);
  free(tw);
  free(y);
  free(wr);
}
START_TEST(fftconv) {
  fft_of("cpu", 64, 8, 37);
  fft_of("long", 1024, 32, 4);
}
END_TEST

static void gemm_of(int M, int N, int K) {
  int parts = (N + 63) / 64;
  float *A = gate_floats(M * K, -.5, .5), *B = gate_floats(K * N, -.5, .5), *bias = gate_floats(N, -1, 1);
  float *D = calloc((size_t)(M * N), 4), *sums = calloc((size_t)(parts * M), 4);
  gate g = { .file = "gemm.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, A, M * K);
  gate_in(&g, NVM_F32, B, K * N);
  gate_in(&g, NVM_F32, bias, N);
  gate_out(&g, NVM_F32, D, M * N);
  gate_out(&g, NVM_F32, sums, parts * M);
  gate_size(&g, M);
  gate_size(&g, N);
  gate_size(&g, K);
  gate_run(&g);
  for (int m = 0; m < M; m++) {
    double row[8] = { 0 };
    for (int n = 0; n < N; n++) {
      double h = bias[n];
      for (int k = 0; k < K; k++) h += (double)A[m * K + k] * B[k * N + n];
      double y = h / (1 + exp(-2 * h * fma(h * h, 0.0356774081, 0.7978845608)));
      row[n / 64] += y;
      gate_close("gemm", m * N + n, D[m * N + n], y, 5e-6);
    }
    for (int p = 0; p < parts; p++) gate_close("row sums", p * M + m, sums[p * M + m], row[p], 3e-5);
  }
  free(A);
  free(B);
  free(bias);
  free(D);
  free(sums);
}
START_TEST(gemm) {
  gemm_of(16, 128, 64);
  gemm_of(9, 100, 45);
}
END_TEST

static uint16_t *gate_bf16(int64_t n, double lo, double hi) {
  uint16_t *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = (uint16_t)nvg_float_bits(NVM_BF16, lo + (hi - lo) * gate_uniform());
  return x;
}
static double of_bf16(uint16_t h) { return nvg_bits_float(NVM_BF16, h); }
static double dot16(const uint16_t *a, const uint16_t *b, int K) {
  double sum = 0;
  for (int k = 0; k < K; k++) sum += of_bf16(a[k]) * of_bf16(b[k]);
  return sum;
}

/* A row of A and one of B: GELU of their product and a bias. Or `gated`: SiLU of their product times that of A's row
   and one of C. */
static void gemm16_of(const char *file, int gated, int M, int N, int K, int ld) {
  uint16_t *A = gate_bf16(M * ld, -.5, .5), *B = gate_bf16(N * ld, -.5, .5),
           *C = gated ? gate_bf16(N * ld, -.5, .5) : gate_bf16(N, -1, 1), *D = calloc((size_t)(M * N), 2);
  gate g = { .file = file, .prefix = "cpu", .aligned = ld % 4 == 0 && K % 4 == 0 };
  gate_in(&g, NVM_BF16, A, M * ld);
  gate_in(&g, NVM_BF16, B, N * ld);
  gate_in(&g, NVM_BF16, C, gated ? N * ld : N);
  gate_out(&g, NVM_BF16, D, M * N);
  const int sizes[] = { M, N, K, ld, ld, N };
  for (int i = 0; i < 6; i++) gate_size(&g, sizes[i]);
  gate_run(&g);
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      double h = dot16(A + m * ld, B + n * ld, K), y;
      if (gated) y = h / (1 + exp(-h)) * dot16(A + m * ld, C + n * ld, K);
      else h += of_bf16(C[n]), y = h / (1 + exp(-2 * h * fma(h * h, 0.0356774081, 0.7978845608)));
      gate_close(file, m * N + n, of_bf16(D[m * N + n]), y, 0x1p-8);
    }
  free(A);
  free(B);
  free(C);
  free(D);
}
START_TEST(gemm16) {
  gemm16_of("gemm16.kir", 0, 16, 128, 64, 64);
  gemm16_of("gemm16.kir", 0, 9, 100, 45, 53);
  gemm16_of("gemmk.kir", 0, 16, 128, 320, 320);
  gemm16_of("gemmk.kir", 0, 9, 100, 145, 153);
  gemm16_of("gemm2.kir", 1, 16, 64, 64, 64);
  gemm16_of("gemm2.kir", 1, 9, 50, 45, 53);
}
END_TEST

START_TEST(seed) {
  int n = 10000;
  float *x = gate_floats(n, 0, 1.5), *y = gate_floats(n, -1.5, 1.5), *z = gate_floats(n, -3, 3),
        *o = calloc((size_t)n, 4);
  x[0] = 1e30f; /* the slow paths */
  x[1] = -2;
  y[4097] = INFINITY;
  z[n - 1] = 200;
  gate g = { .file = "seed.kir", .prefix = "cpu", .aligned = 1 };
  gate_in(&g, NVM_F32, x, n);
  gate_in(&g, NVM_F32, y, n);
  gate_in(&g, NVM_F32, z, n);
  gate_out(&g, NVM_F32, o, n);
  gate_size(&g, n);
  gate_run(&g);
  for (int i = 0; i < n; i++) {
    double t = sin(x[i]) * cos(y[i]) + exp(-(double)z[i] * z[i]) + log((double)(x[i] + 1));
    if (t < 0 || t != t) ck_assert(o[i] != o[i]);
    else gate_close("seed", i, o[i], sqrt(t), 2e-6);
  }
  free(x);
  free(y);
  free(z);
  free(o);
}
END_TEST

START_TEST(columns) {
  int rows = 1700, n = 200, parts = 4;
  float *x = gate_floats(rows * n, 3, 7), *ws = calloc((size_t)(parts * 2 * n), 4), *mean = calloc((size_t)n, 4),
        *var = calloc((size_t)n, 4);
  gate g = { .file = "columns.kir", .prefix = "cpu", .aligned = 1 };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, ws, parts * 2 * n);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_run(&g);
  gate h = { .file = "columns2.kir", .prefix = "cpu" };
  gate_in(&h, NVM_F32, x, rows * n);
  gate_in(&h, NVM_F32, ws, parts * 2 * n);
  gate_out(&h, NVM_F32, mean, n);
  gate_out(&h, NVM_F32, var, n);
  gate_size(&h, n);
  gate_size(&h, parts);
  gate_f32(&h, (float)rows);
  gate_run(&h);
  for (int j = 0; j < n; j++) {
    double m = 0, v = 0;
    for (int i = 0; i < rows; i++) m += x[i * n + j];
    m /= rows;
    for (int i = 0; i < rows; i++) v += (x[i * n + j] - m) * (x[i * n + j] - m);
    gate_close("mean", j, mean[j], m, 1e-6);
    gate_close("var", j, var[j], v / rows, 1e-5);
  }
  free(x);
  free(ws);
  free(mean);
  free(var);
}
END_TEST

/* The tree of numerics.md section 4, element by element. */
static float stamped_sum(const float *x, int64_t n, int64_t C, int64_t W) {
  int64_t rows = (n + C - 1) / C * W, all = 1;
  while (all < rows) all *= 2;
  float *t = malloc(sizeof *t * (size_t)all);
  for (int64_t p = 0; p < all; p++) {
    t[p] = -0.0f;
    for (int64_t i = p / W * C + p % W, q = 0; q < C / W; q++, i += W)
      if (i < n) t[p] = t[p] + x[i];
  }
  for (; all > 1; all /= 2)
    for (int64_t p = 0; p < all / 2; p++) t[p] = t[2 * p] + t[2 * p + 1];
  float s = t[0];
  free(t);
  return s;
}
START_TEST(sum) {
  for (int64_t n = 1; n < 150000; n = n * 7 + 3) {
    int64_t parts = (n + 32767) / 32768;
    float *x = gate_floats(n, -1, 2), *ws = calloc((size_t)parts, 4);
    gate g = { .file = "sum.kir", .prefix = "cpu", .aligned = 1 };
    gate_in(&g, NVM_F32, x, n);
    gate_out(&g, NVM_F32, ws, parts);
    gate_size(&g, n);
    gate_run(&g);
    double want = 0, got = 0;
    for (int64_t i = 0; i < n; i++) want += x[i];
    for (int64_t p = 0; p < parts; p++) got += ws[p];
    gate_close("sum", n, got, want, 1e-5);
    float part = stamped_sum(x, n < 32768 ? n : 32768, 1024, 128);
    ck_assert(memcmp(&part, &ws[0], 4) == 0);
    free(x);
    free(ws);
  }
}
END_TEST

static void transpose_of(int m, int n) {
  float *x = gate_floats(m * n, -1, 1), *y = gate_floats(m * n, -1, 1), *o = calloc((size_t)(m * n), 4);
  gate g = { .file = "transpose.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, m * n);
  gate_in(&g, NVM_F32, y, m * n);
  gate_out(&g, NVM_F32, o, m * n);
  gate_size(&g, m);
  gate_size(&g, n);
  gate_run(&g);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) ck_assert(o[i * n + j] == x[j * m + i] + y[i * n + j]);
  free(x);
  free(y);
  free(o);
}
START_TEST(transpose) {
  transpose_of(100, 150);
  transpose_of(150, 100);
  transpose_of(128, 128);
}
END_TEST

START_TEST(argmin) {
  int rows = 6, n = 1000;
  float *x = gate_floats(rows * n, -8, 8), *val = calloc((size_t)rows, 4);
  int64_t *pos = calloc((size_t)rows, 8);
  for (int i = 0; i < rows * n; i++) x[i] = rintf(x[i]);
  x[2 * n + 700] = x[2 * n + 900] = NAN;
  for (int j = 0; j < n; j++) x[4 * n + j] = INFINITY;
  gate g = { .file = "argmin.kir", .prefix = "cpu", .aligned = 1 };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, val, rows);
  gate_out(&g, NVM_I64, pos, rows);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_run(&g);
  for (int r = 0; r < rows; r++) {
    int at = 0;
    for (int j = 1; j < n; j++)
      if (x[r * n + j] < x[r * n + at] || (x[r * n + j] != x[r * n + j] && x[r * n + at] == x[r * n + at])) at = j;
    ck_assert_msg(pos[r] == at, "row %d: %lld, should be %d", r, (long long)pos[r], at);
    ck_assert(gate_same(NVM_F32, &val[r], &x[r * n + at]));
  }
  free(x);
  free(val);
  free(pos);
}
END_TEST

/* A tile of 4096 places for a few elements: the interpreter makes those that are stored, also where a load has fewer,
   and leaves alone what lies behind them in memory. */
static void few_of_many(nvb_arena *a, void *arg) {
  enum { N = 10, LOADED = 5, PLACES = 4096 };
  (void)arg;
  nvf_kernel *k = nvf_kernel_parse(
      a,
      "kernel few(n: size, m: size, x: f32[], y: mut f32[]) {\n  grid (b = (n + T - 1)//T) {\n"
      "    X = load(x, b*T + i, L, where = b*T + i < m, other = 7.0)\n    Y = map(add, X, X, layout = L)\n"
      "    store(y, b*T + i, Y, where = b*T + i < n & 1 <= b*T + i)\n  }\n}\n"
      "schedule cpu { L = \"i: I512 l8\"; T = 4096 }\n",
      "few");
  nvc_interp *in = nvc_interp_new(a, k, k->sched[0]);
  size_t bytes = (size_t)nvc_interp_scratch(in), left = 0;
  float x[LOADED] = { 0, 1, 2, 3, 4 }, y[N] = { -1 };
  unsigned char *scratch = (unsigned char *)aligned_alloc(64, (bytes + 63) / 64 * 64);
  memset(scratch, 0xa5, bytes);
  uint64_t args[] = { N, LOADED, (uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y };
  ck_assert_int_eq(nvc_interp_run(in, args, 0, 1, scratch), 0);
  for (int i = 0; i < N; i++) ck_assert_float_eq(y[i], i == 0 ? -1 : i < LOADED ? 2 * x[i] : 14);
  for (size_t i = 0; i < bytes; i++) left += scratch[i] == 0xa5;
  ck_assert_uint_ge(left, (PLACES - 4 * N) * sizeof *x);
  free(scratch);
}
START_TEST(few_elements_of_a_tile) { in_arena(few_of_many, NULL, NULL); }
END_TEST

/* How results are held against each other: floats of 8 bits one by one, NaN like NaN. */
START_TEST(bytes) {
  static const uint8_t x[] = { 0x81, 0x7f }, y[] = { 0x82, 0xff };
  ck_assert(!gate_same(NVM_F8E4, x, y));
  ck_assert(!gate_same(NVM_F8E5, x, y));
  ck_assert(!gate_same(NVM_F8E4, x, x + 1));
  ck_assert(gate_same(NVM_F8E4, x + 1, y + 1));
}
END_TEST

SUITE("gate", softmax, across, fftconv, gemm, gemm16, seed, columns, sum, transpose, argmin, few_elements_of_a_tile,
      bytes)
