/* Products of small matrices, against fused multiply-adds in sequence, for every level of the loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "frag/impl.h"
#include "frag/product.h"

enum { SIDE = 40, MOST = 4 * SIDE * SIDE };
static double a[MOST], b[MOST], got[SIDE * SIDE + 1];
static float a_f32[MOST], b_f32[MOST], got_f32[SIDE * SIDE + 1];

static double element_of(const nvg_product *p, int64_t i, int64_t j) {
  double sum = 0;
  float sum_f32 = 0;
  for (int64_t k = 0; k < p->k; k++) {
    int64_t x = i * p->a_row + k * p->a_col, y = k * p->b_row + j;
    sum = fma(a[x], b[y], sum);
    sum_f32 = fmaf(a_f32[x], b_f32[y], sum_f32);
  }
  return p->type == NVM_F64 ? sum : (double)sum_f32;
}
static void check_product(nvg_product p) {
  int f32 = p.type == NVM_F32;
  p.a = f32 ? (void *)a_f32 : a, p.b = f32 ? (void *)b_f32 : b, p.d = f32 ? (void *)got_f32 : got;
  got[p.m * p.n] = got_f32[p.m * p.n] = 77; /* what lies behind the result stays */
  nvg_product_run(&p);
  ck_assert(got[p.m * p.n] == 77 && got_f32[p.m * p.n] == 77);
  for (int64_t i = 0; i < p.m; i++)
    for (int64_t j = 0; j < p.n; j++) {
      double is = f32 ? (double)got_f32[i * p.n + j] : got[i * p.n + j];
      ck_assert_msg(is == element_of(&p, i, j), "%lld x %lld x %lld: element %lld, %lld", (long long)p.m,
                    (long long)p.n, (long long)p.k, (long long)i, (long long)j);
    }
}

START_TEST(sums_are_in_sequence) {
  static const int64_t sides[] = { 1, 2, 3, 4, 5, 8, 12, 16, 17, 23, 31, 40 };
  enum { N = sizeof sides / sizeof *sides };
  srand(6);
  for (int i = 0; i < MOST; i++) a_f32[i] = (float)(a[i] = (rand() % 20001 - 10000) / (1.0 + rand() % 999));
  for (int i = 0; i < MOST; i++) b_f32[i] = (float)(b[i] = (rand() % 2001 - 1000) / 77.0);
  for (int variant = 1; variant <= nvg_step_variants(); variant++) {
    nvg_step_limit(variant);
    for (int k = 0; k < N * N * N; k++) {
      nvg_product p = { .m = sides[k % N], .n = sides[k / N % N], .k = sides[k / N / N], .b_row = SIDE + 2 };
      int turned = k % 3 == 1, apart = 1 + k % 2;
      p.a_row = turned ? apart : p.k * apart, p.a_col = turned ? p.m * apart : apart;
      p.type = NVM_F64, check_product(p);
      p.type = NVM_F32, check_product(p);
    }
  }
  nvg_step_limit(0);
}
END_TEST

START_TEST(nothing_sums_to_zero) {
  double d[6] = { 1, 2, 3, 4, 5, 6 };
  nvg_product_run(&(nvg_product){ .type = NVM_F64, .m = 2, .n = 3, .a = a, .b = b, .d = d });
  for (int i = 0; i < 6; i++) ck_assert(d[i] == 0);
}
END_TEST

SUITE("frag_product", sums_are_in_sequence, nothing_sums_to_zero)
