/* What may be chosen, as text and as candidates; when a product's result may stand for another's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../fusion/oracle.h"
#include "autotune/candidates.h"
#include "autotune/compare.h"

/* ---- text */
static const char *print(nvb_arena *a, const nvf_knobs *k, const nvd_solver_choice *c) {
  nvb_text t = { .arena = a };
  nvt_config_print(&t, k, c);
  return nvb_text_get(&t);
}
static void there_and_back(nvb_arena *a, void *arg) {
  (void)arg;
  for (int i = 0; i < 200; i++) {
    nvf_knobs k = { 0 }, k2;
    nvd_solver_choice c = { .solver = "" }, c2;
    srand((unsigned)i);
    if (i % 3) snprintf(c.solver, sizeof c.solver, i % 2 ? "kernel" : "cublaslt");
    for (int j = 0; i % 3 == 2 && j < i % 65; j++) c.config[j] = (unsigned char)(rand() % 256);
    for (int j = 0; i % 5 && j < NVF_NKNOBS; j++)
      if (rand() % 2) nvf_knob_set(&k, (nvf_knob)j, rand() % 70000);
    const char *s = print(a, &k, &c);
    ck_assert_msg(nvt_config_read(&k2, &c2, s), "%s", s);
    ck_assert(!memcmp(&k, &k2, sizeof k) && !memcmp(&c, &c2, sizeof c));
  }
}
START_TEST(test_text) {
  in_arena(there_and_back, NULL, NULL);
  static const char *const bad[] = { "solver=",
                                     "solver=a config=",
                                     "solver=a config=1",
                                     "solver=a config=0g",
                                     "solver= block=1",
                                     "solver=averyverylongname",
                                     "config=00",
                                     "solver=a,block=1",
                                     "solver=a config=00,11",
                                     "block" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    nvf_knobs k;
    nvd_solver_choice c;
    ck_assert_msg(!nvt_config_read(&k, &c, bad[i]), "%s", bad[i]);
  }
  char text[300] = "solver=a config=";
  memset(text + strlen(text), '1', 130); /* 65 bytes */
  nvf_knobs k;
  nvd_solver_choice c;
  ck_assert(!nvt_config_read(&k, &c, text));
}
END_TEST

/* ---- candidates */
static const int64_t *dims(const int64_t *d) { return d; }
#define DIMS(...) dims((int64_t[]){ __VA_ARGS__ })
static void all_passes(nvb_arena *a, void *arg) {
  static const char *const machines[] = { "cpu16", "h200" };
  (void)arg;
  maker m = { .a = a };
  int x = m_leaf(&m, NVM_F32, 2, DIMS(3000, 500), NULL);
  m_out(&m, m_2(&m, "add", m_1(&m, "exp", x), m_const(&m, 2)));
  nvg_graph *g = m_graph(&m);
  for (int i = 0; i < 2; i++) {
    const nvb_caps *caps = nvb_caps_find(machines[i]);
    nvf_plan *p = nvf_fuse(a, g, caps, &(nvf_options){ .fuse = 1 });
    nvt_config own = { .text = "", .description = "", .step = &p->step[0] }, *at = NVB_NEWN(a, nvt_config, NVT_MOST);
    int total = 0;
    for (int pass = 0; pass < nvt_passes(p->device, own.step); pass++) {
      int n = nvt_candidates(a, p, 0, caps, NULL, pass, &own, at);
      ck_assert(n >= 1 && n <= NVT_MOST && at[0].step == own.step && !*at[0].text);
      for (int j = 1; j < n; j++) {
        nvf_knobs k;
        nvd_solver_choice c;
        ck_assert(nvt_config_read(&k, &c, at[j].text) && k.set && !*c.solver && at[j].model > 0);
        ck_assert(nvt_config_fits(p, 0, caps, &k, &c));
        for (int h = 0; h < j; h++) ck_assert_str_ne(at[h].text, at[j].text);
      }
      total += n - 1;
    }
    ck_assert_int_ge(total, 5);
    static const char *const bad[] = {
      "block=0",          "block=257", "stream=7", "warps=3", "rows=64", "solver=kernel", "solver=foo block=256",
      "block=256 warps=4"
    };
    for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
      nvf_knobs k;
      nvd_solver_choice c;
      ck_assert(nvt_config_read(&k, &c, bad[j]));
      ck_assert_msg(!nvt_config_fits(p, 0, caps, &k, &c), "%s", bad[j]);
    }
  }
}
START_TEST(test_candidates) { in_arena(all_passes, NULL, NULL); }
END_TEST

/* ---- products: sums of float32 in another order may stand for each other; what is a little wrong may not */
enum { M = 60, N = 50 };
static void product(float *c, const float *a, const float *b, int k, int backwards) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float s = 0;
      for (int q = 0; q < k; q++) {
        int at = backwards ? k - 1 - q : q;
        s += a[i * k + at] * b[at * N + j];
      }
      c[i * N + j] = s;
    }
}
static int close_f32(const float *x, const float *y, double tolerance) {
  return nvt_close((const char *)x, (const char *)y, (int64_t)sizeof(float) * M * N, NVM_F32, tolerance);
}
START_TEST(test_products) {
  static const int lengths[] = { 2, 17, 256, 4096 };
  for (int l = 0; l < 4; l++)
    for (int positive = 0; positive < 2; positive++) {
      int k = lengths[l];
      float *a = malloc(sizeof *a * (size_t)(M * k)), *b = malloc(sizeof *b * (size_t)(k * N)), x[M * N], y[M * N],
            z[M * N];
      srand((unsigned)(k + positive));
      for (int i = 0; i < M * k; i++) a[i] = (float)(rand() % 2001 - (positive ? 0 : 1000)) / 777;
      for (int i = 0; i < k * N; i++) b[i] = (float)(rand() % 2001 - (positive ? 0 : 1000)) / 333;
      nvf_gemm p = { .k = k, .accumulate = NVM_F32 };
      nvf_kernel none = { .nparam = 0 };
      nvf_step s = { .k = &none, .gemm = &p };
      double t = nvt_tolerance(&s);
      product(x, a, b, k, 0);
      product(y, a, b, k, 1);
      ck_assert(close_f32(x, y, t) && close_f32(x, x, 0));
      ck_assert(k == 2 || !close_f32(x, y, 0));
      product(z, a, b, k - 1, 0); /* the last term is missing */
      ck_assert(!close_f32(x, z, t));
      memcpy(z, y, sizeof z);
      z[777] = z[778]; /* one element is another's */
      ck_assert(!close_f32(x, z, t));
      memcpy(z, y, sizeof z);
      z[5] = NAN;
      ck_assert(!close_f32(x, z, t));
      memcpy(y, x, sizeof y);
      x[5] = y[5] = NAN;
      x[6] = y[6] = INFINITY;
      y[7] = nextafterf(y[7], 0);
      ck_assert(close_f32(x, y, t));
      y[6] = -INFINITY;
      ck_assert(!close_f32(x, y, t));
      free(a), free(b);
    }
}
END_TEST

START_TEST(test_many_elements) { /* that several threads look through */
  enum { MANY = 300001 };
  static const nvm_dtype types[] = { NVM_F16, NVM_BF16, NVM_F32, NVM_F64 };
  for (int t = 0; t < 4; t++) {
    size_t size = (size_t)nvg_size(types[t]);
    char *x = malloc(MANY * size), *y = malloc(MANY * size);
    for (int64_t i = 0; i < MANY; i++)
      for (int other = 0; other < 2; other++) {
        double v = 1 + (double)(i * 7919 % 97) / 97 + other * 1e-4 * (double)(i % 3 - 1);
        uint64_t bits = nvg_float_bits(types[t], v);
        memcpy((other ? y : x) + (size_t)i * size, &bits, size);
      }
    ck_assert(nvt_close(x, y, (int64_t)(MANY * size), types[t], 0.01));
    for (int64_t i = 0; i < MANY; i += MANY / 3) {
      uint64_t was = 0, bits = nvg_float_bits(types[t], 3);
      memcpy(&was, y + (size_t)i * size, size);
      memcpy(y + (size_t)i * size, &bits, size);
      ck_assert(!nvt_close(x, y, (int64_t)(MANY * size), types[t], 0.01));
      memcpy(y + (size_t)i * size, &was, size);
    }
    free(x), free(y);
  }
}
END_TEST

START_TEST(test_other_types) { /* what is no float has to be equal; halves have their own unit */
  int32_t i[4] = { 1, 2, 3, 4 }, j[4] = { 1, 2, 3, 5 };
  ck_assert(nvt_close((char *)i, (char *)i, 16, NVM_I32, 1) && !nvt_close((char *)i, (char *)j, 16, NVM_I32, 1));
  nvf_param stored = { .kind = NVF_BUFFER, .written = 1, .type = NVM_BF16 };
  nvf_kernel k = { .nparam = 1, .param = &stored };
  nvf_gemm p = { .k = 64, .accumulate = NVM_F32 };
  nvf_step s = { .k = &k, .gemm = &p };
  uint16_t x[4] = { 0x3f80, 0x4000, 0xbf80, 0x4040 }, y[4] = { 0x3f81, 0x4000, 0xbf80, 0x4040 };
  ck_assert(nvt_close((char *)x, (char *)y, 8, NVM_BF16, nvt_tolerance(&s)));
  y[0] = 0x3f90;
  ck_assert(!nvt_close((char *)x, (char *)y, 8, NVM_BF16, nvt_tolerance(&s)));
  static const struct {
    nvm_dtype type;
    uint8_t one, next, far;
  } eighths[] = { { NVM_F8E4, 0x38, 0x39, 0x58 }, { NVM_F8E5, 0x3c, 0x3d, 0x50 } };
  for (int q = 0; q < 2; q++) { /* 1, the next number, a distant one */
    uint8_t u[64], v[64];
    memset(u, eighths[q].one, sizeof u);
    memcpy(v, u, sizeof v);
    stored.type = eighths[q].type;
    v[3] = eighths[q].next;
    ck_assert(nvt_close((char *)u, (char *)v, sizeof u, stored.type, nvt_tolerance(&s)));
    v[3] = eighths[q].far;
    ck_assert(!nvt_close((char *)u, (char *)v, sizeof u, stored.type, nvt_tolerance(&s)));
  }
  s.gemm = NULL;
  ck_assert(nvt_tolerance(&s) == 0);
}
END_TEST

SUITE("choice", test_text, test_candidates, test_products, test_many_elements, test_other_types)
