/* Texts that nobody had in mind while the language was built, and the statements that the gate leaves out. */
#include "gate.h"

START_TEST(attention) {
  int heads = 2, n = 71, d = 64, all = heads * n * d;
  float *q = gate_floats(all, -2, 2), *k = gate_floats(all, -2, 2), *v = gate_floats(all, -1, 1),
        *o = calloc((size_t)all, 4);
  gate g = { .file = "attention.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, q, all);
  gate_in(&g, NVM_F32, k, all);
  gate_in(&g, NVM_F32, v, all);
  gate_out(&g, NVM_F32, o, all);
  gate_size(&g, n);
  gate_size(&g, heads);
  gate_run(&g);
  double *p = calloc((size_t)n, 8);
  for (int r = 0; r < heads * n; r++) {
    const float *kh = k + r / n * n * d, *vh = v + r / n * n * d;
    double sum = 0, top = -1e300;
    for (int j = 0; j < n; j++) {
      p[j] = 0;
      for (int e = 0; e < d; e++) p[j] += (double)q[r * d + e] * kh[j * d + e] / 8;
      top = fmax(top, p[j]);
    }
    for (int j = 0; j < n; j++) sum += p[j] = exp(p[j] - top);
    for (int e = 0; e < d; e++) {
      double want = 0;
      for (int j = 0; j < n; j++) want += p[j] / sum * vh[j * d + e];
      gate_close("attention", r * d + e, o[r * d + e], want, 3e-6);
    }
  }
  free(q);
  free(k);
  free(v);
  free(o);
  free(p);
}
END_TEST

START_TEST(layernorm) {
  int rows = 150, n = 70;
  float *x = gate_floats(rows * n, 1, 5), *y = calloc((size_t)(rows * n), 4);
  gate g = { .file = "layernorm.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, y, rows * n);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_f32(&g, (float)rows);
  gate_f32(&g, 1e-5f);
  gate_run(&g);
  for (int j = 0; j < n; j++) {
    double m = 0, v = 0;
    for (int i = 0; i < rows; i++) m += x[i * n + j] / (double)rows;
    for (int i = 0; i < rows; i++) v += (x[i * n + j] - m) * (x[i * n + j] - m) / rows;
    for (int i = 0; i < rows; i++)
      gate_close("layernorm", i * n + j, y[i * n + j], (x[i * n + j] - m) / sqrt(v + 1e-5), 3e-6);
  }
  free(x);
  free(y);
}
END_TEST

/* numerics.md section 4, one value at a time. */
static void scan_row(const float *x, float *y, int n) {
  enum { BLOCK = 1024, RUN = 16 };
  float carry = 0;
  for (int b = 0; b < n; b += BLOCK) {
    float p[BLOCK], e[64], group[7][64];
    int has[64] = { 0 };
    for (int i = 0; i < BLOCK; i++) p[i] = (i % RUN ? p[i - 1] : -0.0f) + (b + i < n ? x[b + i] : 0);
    for (int r = 0; r < 64; r++) group[0][r] = p[r * RUN + RUN - 1];
    for (int l = 1; l < 7; l++)
      for (int q = 0; q < 64 >> l; q++) group[l][q] = group[l - 1][2 * q] + group[l - 1][2 * q + 1];
    for (int r = 0; r < 64; r++)
      for (int l = 0; l < 6; l++)
        if (r >> l & 1) {
          e[r] = has[r] ? group[l][(r >> l) - 1] + e[r] : group[l][(r >> l) - 1];
          has[r] = 1;
        }
    for (int i = 0; i < BLOCK && b + i < n; i++) {
      int r = i / RUN;
      float before = b && has[r] ? carry + e[r] : b ? carry : e[r];
      y[b + i] = b || has[r] ? before + p[i] : p[i];
    }
    carry = b ? carry + group[6][0] : group[6][0];
  }
}
START_TEST(scan) {
  int rows = 3, n = 2500;
  float *x = gate_floats(rows * n, -1, 2), *y = calloc((size_t)(rows * n), 4), *want = calloc((size_t)(rows * n), 4);
  x[0] = -0.0f;
  gate g = { .file = "scan.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F32, y, rows * n);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_run(&g);
  for (int r = 0; r < rows; r++) scan_row(x + r * n, want + r * n, n);
  for (int i = 0; i < rows * n; i++)
    ck_assert_msg(gate_same(NVM_F32, &y[i], &want[i]), "element %d: %.9g, should be %.9g", i, y[i], want[i]);
  free(x);
  free(y);
  free(want);
}
END_TEST

START_TEST(copies) {
  enum { N = 1250 };
  float *x = gate_floats(N, -1, 2), y[N], z[N], want[N];
  gate g = { .file = "copies.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, N);
  gate_out(&g, NVM_F32, y, N);
  gate_out(&g, NVM_F32, z, N);
  gate_size(&g, N);
  gate_run(&g);
  scan_row(x, want, N);
  for (int i = 0; i < N; i++) {
    ck_assert_msg(gate_same(NVM_F32, &y[i], &want[i]), "element %d: %.9g, should be %.9g", i, y[i], want[i]);
    ck_assert_msg(fabsf(z[i] - (x[i] + 2 * want[N - 1])) < 1e-2f, "element %d: %.9g", i, z[i]);
  }
  free(x);
}
END_TEST

START_TEST(stencil) {
  int h = 37, w = 83;
  float *x = gate_floats(h * w, 0, 1), *y = calloc((size_t)(h * w), 4);
  gate g = { .file = "stencil.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, h * w);
  gate_out(&g, NVM_F32, y, h * w);
  gate_size(&g, h);
  gate_size(&g, w);
  gate_run(&g);
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) {
      double s = 0;
      for (int a = i - 1; a <= i + 1; a++)
        for (int b = j - 1; b <= j + 1; b++)
          if (a >= 0 && a < h && b >= 0 && b < w) s += x[a * w + b];
      gate_close("stencil", i * w + j, y[i * w + j], s / 9, 1e-6);
    }
  free(x);
  free(y);
}
END_TEST

START_TEST(nearest) {
  int n = 200, rows = 50;
  float *x = gate_floats(rows, 0, 1), *c = gate_floats(n, 0, 1), *labels = gate_floats(n, -5, 5),
        *o = calloc((size_t)rows, 4);
  c[150] = c[20];
  x[7] = c[20];
  gate g = { .file = "nearest.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, rows);
  gate_in(&g, NVM_F32, c, n);
  gate_in(&g, NVM_F32, labels, n);
  gate_out(&g, NVM_F32, o, rows);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_f32(&g, 0.5f);
  gate_run(&g);
  for (int r = 0; r < rows; r++) {
    int at = 0;
    for (int j = 1; j < n; j++)
      if (fabsf(x[r] - c[j]) < fabsf(x[r] - c[at])) at = j;
    gate_close("nearest", r, o[r], labels[at] - 0.5 * fabsf(x[r] - c[at]), 1e-6);
  }
  free(x);
  free(c);
  free(labels);
  free(o);
}
END_TEST

START_TEST(gather) {
  int m = 90, n = 1000;
  float *x = gate_floats(m, 0, 1), *y = gate_floats(n, 2, 3), *z = calloc((size_t)n, 4);
  int32_t *idx = calloc((size_t)n, 4);
  uint8_t *mask = calloc((size_t)n, 1);
  for (int i = 0; i < n; i++) {
    idx[i] = (int)(gate_uniform() * m);
    mask[i] = gate_uniform() < .5;
  }
  gate g = { .file = "gather.kir", .prefix = "cpu", .aligned = 1 };
  gate_in(&g, NVM_F32, x, m);
  gate_in(&g, NVM_I32, idx, n);
  gate_in(&g, NVM_BOOL, mask, n);
  gate_in(&g, NVM_F32, y, n);
  gate_out(&g, NVM_F32, z, n);
  gate_size(&g, m);
  gate_size(&g, n);
  gate_run(&g);
  for (int i = 0; i < n; i++) ck_assert(z[i] == (mask[i] ? x[idx[i]] : y[i]));
  idx[600] = m; /* out of range: the check (statement 2) says so */
  g.want = 3;
  g.arg[4].out = 2; /* a failed run may leave anything */
  gate_run(&g);
  free(x);
  free(y);
  free(z);
  free(idx);
  free(mask);
}
END_TEST

START_TEST(scatter) {
  int m = 50, n = 333;
  float *x = gate_floats(n, 0, 1), *y = gate_floats(m, 5, 6), *want = calloc((size_t)m, 4);
  int64_t *idx = calloc((size_t)n, 8), *last = calloc((size_t)m, 8);
  for (int i = 0; i < n; i++) idx[i] = (int)(gate_uniform() * (m - 3));
  memcpy(want, y, (size_t)m * 4);
  for (int i = 0; i < n; i++) want[idx[i]] = x[i];
  gate g = { .file = "scatter1.kir", .prefix = "cpu" };
  gate_in(&g, NVM_I64, idx, n);
  gate_out(&g, NVM_I64, last, m);
  gate_size(&g, n);
  gate_run(&g);
  gate h = { .file = "scatter2.kir", .prefix = "cpu" };
  gate_in(&h, NVM_F32, x, n);
  gate_in(&h, NVM_I64, idx, n);
  gate_in(&h, NVM_I64, last, m);
  gate_out(&h, NVM_F32, y, m);
  gate_size(&h, n);
  gate_run(&h);
  for (int i = 0; i < m; i++) ck_assert(y[i] == want[i]);
  free(x);
  free(y);
  free(want);
  free(idx);
  free(last);
}
END_TEST

static float half(uint16_t h) { /* finite and normal */
  return ldexpf((float)(0x400 | (h & 0x3ff)), ((h >> 10) & 31) - 25) * (h >> 15 ? -1 : 1);
}
START_TEST(pieces) {
  int n = 100, m = 45;
  int64_t *i64 = calloc((size_t)n, 8);
  uint8_t *t = calloc((size_t)(m * m), 1);
  double *u = calloc((size_t)n, 8);
  uint16_t *x = calloc((size_t)n, 2);
  for (int i = 0; i < n; i++) x[i] = (uint16_t)(0x2000 + gate_uniform() * 0x3000 + (i % 2) * 0x8000);
  gate g = { .file = "pieces.kir", .prefix = "cpu" };
  gate_out(&g, NVM_I64, i64, n);
  gate_out(&g, NVM_BOOL, t, m * m);
  gate_out(&g, NVM_F64, u, n);
  gate_in(&g, NVM_F16, x, n);
  gate_size(&g, n);
  gate_size(&g, m);
  gate_run(&g);
  for (int i = 0; i < n; i++) {
    int q = (i - 5 >= 0 ? i - 5 : i - 7) / 3;
    ck_assert_int_eq(i64[i], q * 10 + (i - 5 - 3 * q));
    ck_assert(u[i] == (i < 64 ? 2.0 * half(x[i]) : (double)half(x[i]) - half(x[n - 1 - i])));
  }
  for (int c = 0; c < m; c++)
    for (int j = 0; j < m; j++) ck_assert_int_eq(t[c * m + j], j <= c && j != 3);
  free(i64);
  free(t);
  free(u);
  free(x);
}
END_TEST

START_TEST(once) {
  int n = 11;
  double *x = calloc((size_t)n, 16), s[2] = { 0 }, *f = calloc(48, 16), re = 1, im = 0;
  for (int i = 0; i < n; i++) {
    x[2 * i] = 1 + i;
    x[2 * i + 1] = -i;
    re *= 1 + i;
    im -= i;
  }
  gate g = { .file = "once.kir", .prefix = "cpu" };
  gate_in(&g, NVM_C128, x, n);
  gate_out(&g, NVM_C128, s, 1);
  gate_out(&g, NVM_C128, f, 48);
  gate_size(&g, n);
  gate_run(&g);
  ck_assert(s[0] == re && s[1] == im);
  for (int b = 0; b < 3; b++)
    for (int j = 0; j < 16; j++) {
      ck_assert(f[2 * (b * 16 + j)] == (j < n ? x[2 * j] : 1));
      ck_assert(f[2 * (b * 16 + j) + 1] == (j < n ? x[2 * j + 1] : 1));
    }
  free(x);
  free(f);
}
END_TEST

START_TEST(carried) {
  int n = 150;
  double *x = calloc((size_t)n, 8), *y = calloc((size_t)n * 3, 8), *want = calloc((size_t)n * 3, 8);
  int8_t *i = calloc((size_t)n, 1);
  uint16_t *u = calloc((size_t)n, 2);
  for (int k = 0; k < n; k++) {
    x[k] = gate_uniform();
    i[k] = (int8_t)(gate_uniform() * 130 - 5);
    u[k] = (uint16_t)((k * 7) % n + (k % 2) * n);
    y[n + k] = y[2 * n + k] = want[n + k] = want[2 * n + k] = -1;
  }
  gate g = { .file = "carried.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F64, x, n);
  gate_in(&g, NVM_I8, i, n);
  gate_in(&g, NVM_U16, u, n);
  gate_out(&g, NVM_F64, y, 3 * n);
  gate_size(&g, n);
  gate_run(&g);
  for (int k = 0; k < n; k++) {
    double a = x[k], z = 0;
    for (int t = 0; t < 3; t++) {
      double p = a, s = a + z;
      if (t == 1) {
        a = s * 0.5;
        z = p;
      } else {
        for (int q = t; q < 4; q += 2) z += i[k] + q >= 0 ? x[i[k] + q] : 0;
        a = a - z;
      }
    }
    want[n - 1 - k] = a;
    want[n + u[k]] = z;
  }
  for (int k = 0; k < 3 * n; k++) ck_assert_msg(y[k] == want[k], "element %d: %g, should be %g", k, y[k], want[k]);
  g.arg[4].bits = 0; /* an empty grid touches nothing */
  g.arg[3].out = 0;
  gate_run(&g);
  free(x);
  free(y);
  free(want);
  free(i);
  free(u);
}
END_TEST

START_TEST(middle) {
  int n = 37;
  float *x = gate_floats(4 * 32 * n, -1, 1), *y = calloc((size_t)n, 4);
  int64_t *z = calloc((size_t)n, 8);
  gate g = { .file = "middle.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, 4 * 32 * n);
  gate_out(&g, NVM_F32, y, n);
  gate_out(&g, NVM_I64, z, n);
  gate_size(&g, n);
  gate_run(&g);
  for (int k = 0; k < n; k++) {
    float top = -INFINITY;
    int64_t sum = 0;
    for (int r = 0; r < 4; r++) {
      float lane[8];
      for (int p = 0; p < 8; p++) { /* chunk p / 2, lane p % 2: four elements in sequence */
        lane[p] = -0.0f;
        for (int q = 0; q < 4; q++) {
          int j = p / 2 * 8 + q * 2 + p % 2;
          float v = (r + j) % 3 != 1 && j != 7 ? x[(r * 32 + j) * n + k] : -0.0f;
          lane[p] = q ? lane[p] + v : v;
        }
      }
      float s = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
      top = s > top ? s : top;
    }
    for (int j = 0; j < 29; j++) {
      int64_t least = INT64_MAX;
      for (int r = 0; r < 4; r++)
        if ((r + j) % 3 != 1 && j * 1000 + r * 100 - k < least) least = j * 1000 + r * 100 - k;
      sum += least;
    }
    ck_assert_msg(y[k] == top, "column %d: %g, should be %g", k, y[k], top);
    ck_assert_int_eq(z[k], sum);
  }
  free(x);
  free(y);
  free(z);
}
END_TEST

START_TEST(chunks) {
  static const int rows[] = { 1, 4, 16, 17, 37, 52, 63, 64 };
  for (size_t q = 0; q < sizeof rows / sizeof *rows; q++) {
    int n = rows[q];
    float *x = gate_floats(64 * 16, -1, 1), *y = calloc(16, 4);
    gate g = { .file = "chunks.kir", .prefix = "cpu" };
    gate_in(&g, NVM_F32, x, 64 * 16);
    gate_out(&g, NVM_F32, y, 16);
    gate_size(&g, n);
    gate_run(&g);
    for (int k = 0; k < 16; k++) {
      float part[16];
      for (int c = 0; c < 16; c++) {
        part[c] = -0.0f;
        for (int r = c * 4; r < n && r < c * 4 + 4; r++) part[c] += x[r * 16 + k];
      }
      for (int m = 1; m < 16; m *= 2)
        for (int c = 0; c < 16; c += 2 * m) part[c] += part[c + m];
      ck_assert_msg(y[k] == part[0], "%d rows, column %d: %g, should be %g", n, k, y[k], part[0]);
    }
    free(x);
    free(y);
  }
}
END_TEST

/* Philox 4x32-10 as its authors wrote it, of 32-bit words */
static void philox_words(uint32_t *c, uint64_t counter, uint64_t stream, uint64_t key) {
  uint32_t k = (uint32_t)key, l = (uint32_t)(key >> 32);
  for (int i = 0; i < 2; i++) c[i] = (uint32_t)(counter >> 32 * i), c[2 + i] = (uint32_t)(stream >> 32 * i);
  for (int round = 0; round < 10; round++, k += 0x9e3779b9, l += 0xbb67ae85) {
    uint64_t p = (uint64_t)c[0] * 0xd2511f53, q = (uint64_t)c[2] * 0xcd9e8d57;
    uint32_t next[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k, (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ l, (uint32_t)p };
    memcpy(c, next, sizeof next);
  }
}
static void draws_of(int rows, int n, uint64_t at) {
  const uint64_t key = 0x123456789abcdef0, stream = 0xfedcba9876543210;
  uint32_t *x = calloc((size_t)(rows * n), 4), *z = calloc((size_t)(rows * n), 4), c[4];
  uint64_t *y = calloc((size_t)(rows * n), 8);
  gate g = { .file = "draws.kir", .prefix = "cpu", .aligned = n % 8 == 0 };
  gate_out(&g, NVM_U32, x, rows * n);
  gate_out(&g, NVM_U64, y, rows * n);
  gate_out(&g, NVM_U32, z, rows * n);
  gate_size(&g, rows);
  gate_size(&g, n);
  gate_size(&g, (int64_t)key);
  gate_size(&g, (int64_t)at);
  gate_size(&g, (int64_t)stream);
  gate_run(&g);
  for (uint64_t i = 0; i < (uint64_t)(rows * n); i++) {
    philox_words(c, at + i / 4, stream, key);
    ck_assert_uint_eq(x[i], c[i % 4]);
    philox_words(c, at + i / 2, stream, key);
    ck_assert(y[i] == ((uint64_t)c[i % 2 * 2 + 1] << 32 | c[i % 2 * 2]));
    uint64_t j = i % (uint64_t)n;
    philox_words(c, at + j / 4, stream, key);
    ck_assert_uint_eq(z[i], c[j % 4]);
  }
  free(x);
  free(y);
  free(z);
}
START_TEST(draws) {
  draws_of(3, 1000, 5);
  draws_of(2, 999, UINT64_MAX - 3);
  draws_of(5, 18, 0xffffffff);
  draws_of(3, 1, 0);
}
END_TEST

/* Number i of those that the counter's words make */
static double normal_of(const uint32_t *c, uint64_t i, int wide) {
  const uint32_t *w = wide ? c : c + (i & 2);
  uint64_t x = wide ? (uint64_t)w[1] << 32 | w[0] : (uint64_t)w[0] << 32,
           y = wide ? (uint64_t)w[3] << 32 | w[2] : (uint64_t)w[1] << 32;
  double r = sqrt(-2 * log(((double)(x << 1 >> 1) + (wide ? 0x1p10 : 0x1p31)) * 0x1p-63)) * (x >> 63 ? -1 : 1);
  double angle = (wide ? (double)(y >> 1) * 0x1p-62 - 1 : (double)(int64_t)y * 0x1p-63) * acos(-1) / 4;
  int crossed = (int)(wide ? y & 1 : y >> 32 & 1);
  return r * (crossed == (int)(i & 1) ? cos(angle) : sin(angle));
}
static void normals_of(int rows, int n, uint64_t at) {
  const uint64_t key = 0x123456789abcdef0, stream = 0xfedcba9876543210;
  float *x = calloc((size_t)(rows * n), 4), *z = calloc((size_t)(rows * n), 4);
  double *y = calloc((size_t)(rows * n), 8);
  uint32_t c[4];
  gate g = { .file = "normals.kir", .prefix = "cpu", .aligned = n % 8 == 0 };
  gate_out(&g, NVM_F32, x, rows * n);
  gate_out(&g, NVM_F64, y, rows * n);
  gate_out(&g, NVM_F32, z, rows * n);
  gate_size(&g, rows);
  gate_size(&g, n);
  gate_size(&g, (int64_t)key);
  gate_size(&g, (int64_t)at);
  gate_size(&g, (int64_t)stream);
  gate_run(&g);
  for (uint64_t i = 0; i < (uint64_t)(rows * n); i++) {
    uint64_t j = i % (uint64_t)n;
    philox_words(c, at + i / 4, stream, key);
    ck_assert_double_eq_tol((double)x[i], normal_of(c, i, 0), 1e-5);
    philox_words(c, at + i / 2, stream, key);
    ck_assert_double_eq_tol(y[i], normal_of(c, i, 1), 1e-12);
    philox_words(c, at + j / 4, stream, key);
    ck_assert_double_eq_tol((double)z[i], normal_of(c, j, 0), 1e-5);
  }
  free(x);
  free(y);
  free(z);
}
START_TEST(normals) {
  normals_of(3, 1000, 5);
  normals_of(2, 999, UINT64_MAX - 3);
  normals_of(5, 18, 0xffffffff);
  normals_of(3, 1, 0);
}
END_TEST

static double half_value(uint16_t h) { /* subnormals too */
  return (h >> 10 & 31 ? ldexp(0x400 | (h & 0x3ff), (h >> 10 & 31) - 25) : ldexp(h & 0x3ff, -24)) * (h >> 15 ? -1 : 1);
}
static void rows16_of(int rows, int n) {
  uint16_t *x = calloc((size_t)(rows * n), 2), *y = calloc((size_t)(rows * n), 2);
  for (int i = 0; i < rows * n; i++) x[i] = (uint16_t)(0x3e00 + gate_uniform() * 0x300 + (i % 3 == 0) * 0x8000);
  gate g = { .file = "rows16.kir", .prefix = "cpu", .aligned = n % 8 == 0 };
  gate_in(&g, NVM_BF16, x, rows * n);
  gate_out(&g, NVM_F16, y, rows * n);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_f32(&g, (float)n);
  gate_run(&g);
  for (int r = 0; r < rows; r++) {
    double m = 0, top = 0, *v = calloc((size_t)n, 8);
    for (int j = 0; j < n; j++) {
      union {
        uint32_t u;
        float f;
      } w = { (uint32_t)x[r * n + j] << 16 };
      m += (v[j] = w.f) / n;
    }
    for (int j = 0; j < n; j++) top = fmax(top, fabs(v[j] - m));
    for (int j = 0; j < n; j++) gate_close("rows16", r * n + j, half_value(y[r * n + j]), (v[j] - m) / top, 0x1p-10);
    free(v);
  }
  free(x);
  free(y);
}
START_TEST(rows16) {
  rows16_of(5, 1000);
  rows16_of(3, 77);
}
END_TEST

static void moments_of(int rows, int n) {
  double *x = calloc((size_t)(rows * n), 8), *sum = calloc((size_t)rows, 8), *top = calloc((size_t)rows, 8);
  int64_t *at = calloc((size_t)rows, 8);
  int32_t *minus = calloc((size_t)rows, 4);
  uint8_t *good = calloc((size_t)rows, 1);
  for (int i = 0; i < rows * n; i++) x[i] = rint(gate_uniform() * 64 - 32) * 0.25;
  x[n + n / 2] = INFINITY;
  x[2 * n + 3] = x[2 * n + n - 1] = NAN;
  gate g = { .file = "moments.kir", .prefix = "cpu", .aligned = n % 2 == 0 };
  gate_in(&g, NVM_F64, x, rows * n);
  gate_out(&g, NVM_F64, sum, rows);
  gate_out(&g, NVM_F64, top, rows);
  gate_out(&g, NVM_I64, at, rows);
  gate_out(&g, NVM_I32, minus, rows);
  gate_out(&g, NVM_BOOL, good, rows);
  gate_size(&g, n);
  gate_size(&g, rows);
  gate_run(&g);
  for (int r = 0; r < rows; r++) {
    double s = 0; /* quarters: exact in any order */
    int best = 0, count = 0, whole = 1;
    for (int j = 0; j < n; j++) {
      double v = x[r * n + j], b = x[r * n + best];
      s += v;
      count += v < 0;
      whole &= isfinite(v) != 0;
      if (v > b || (v != v && b == b)) best = j;
    }
    ck_assert(gate_same(NVM_F64, &sum[r], &s) && gate_same(NVM_F64, &top[r], &x[r * n + best]));
    ck_assert_int_eq(at[r], best);
    ck_assert_int_eq(minus[r], count);
    ck_assert_int_eq(good[r], whole);
  }
  free(x);
  free(sum);
  free(top);
  free(at);
  free(minus);
  free(good);
}
START_TEST(moments) {
  moments_of(5, 2000);
  moments_of(4, 301);
}
END_TEST

START_TEST(spread) { /* over warps, with a merge that is expensive */
  enum { ROWS = 117, N = 141 };
  static float x[ROWS * N], most[N], count[N], mean[N], squares[N];
  for (int i = 0; i < ROWS * N; i++) x[i] = (float)gate_uniform() * 8 - 4;
  gate g = { .file = "spread.kir", .prefix = "cpu" };
  gate_in(&g, NVM_F32, x, ROWS * N);
  gate_out(&g, NVM_F32, most, N);
  gate_out(&g, NVM_F32, count, N);
  gate_out(&g, NVM_F32, mean, N);
  gate_out(&g, NVM_F32, squares, N);
  gate_size(&g, N);
  gate_size(&g, ROWS);
  gate_run(&g);
  for (int j = 0; j < N; j++) {
    double m = 0, s = 0;
    float top = -INFINITY;
    for (int i = 0; i < ROWS; i++) m += x[i * N + j] / (double)ROWS, top = fmaxf(top, x[i * N + j]);
    for (int i = 0; i < ROWS; i++) s += (x[i * N + j] - m) * (x[i * N + j] - m);
    ck_assert(most[j] == top && count[j] == ROWS);
    ck_assert_double_eq_tol(mean[j], m, 1e-5);
    ck_assert_double_eq_tol(squares[j] / s, 1, 1e-5);
  }
}
END_TEST

START_TEST(turn) {
  int m = 45, n = 37;
  double *x = calloc((size_t)(m * n), 16), *y = calloc((size_t)(m * n), 16);
  int16_t *k = calloc((size_t)(m * n), 2), *q = calloc((size_t)(m * n), 2);
  for (int i = 0; i < m * n; i++) {
    x[2 * i] = i;
    x[2 * i + 1] = i % 7 ? -i : -0.0;
    k[i] = (int16_t)(i * 37);
  }
  gate g = { .file = "turn.kir", .prefix = "cpu" };
  gate_in(&g, NVM_C128, x, m * n);
  gate_in(&g, NVM_I16, k, m * n);
  gate_out(&g, NVM_C128, y, m * n);
  gate_out(&g, NVM_I16, q, m * n);
  gate_size(&g, m);
  gate_size(&g, n);
  gate_run(&g);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      ck_assert(memcmp(&y[2 * (i * n + j)], &x[2 * (j * m + i)], 16) == 0);
      ck_assert_int_eq(q[i * n + j], k[j * m + i]);
    }
  free(x);
  free(y);
  free(k);
  free(q);
}
END_TEST

SUITE("texts", attention, layernorm, scan, copies, stencil, nearest, gather, scatter, pieces, once, carried, middle,
      chunks, draws, normals, rows16, moments, spread, turn)
