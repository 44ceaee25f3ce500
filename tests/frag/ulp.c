/* The table of functions with their references and bounds, and the measurement of the interpreter's full form. An error
   is counted in units in the last place of the exact result; below the normal numbers, in units of the least. */
#include "ulp.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "frag/dtype.h"

enum { PRECISION = 160, WIDE = 1300, BLOCK = 1024 };

/* ---- references that MPFR does not have, at enough precision for every cancellation that occurs */
static int sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_neg(y, x, r);
  mpfr_exp(y, y, r);
  mpfr_add_ui(y, y, 1, r);
  return mpfr_ui_div(y, 1, y, r);
}
static int times_sigmoid(mpfr_t y, const mpfr_t x, const mpfr_t v, mpfr_rnd_t r) { /* x / (1 + e^-v); -0 at x = -inf */
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  sigmoid(t, v, r);
  mpfr_mul(y, t, x, r);
  if (mpfr_nan_p(y) && !mpfr_nan_p(x)) mpfr_set_zero(y, -1);
  mpfr_clear(t);
  return 0;
}
static int silu(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) { return times_sigmoid(y, x, x, r); }
static int gelu(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  mpfr_sqrt_ui(t, 2, r);
  mpfr_div(t, x, t, r);
  mpfr_neg(t, t, r);
  mpfr_erfc(t, t, r);
  mpfr_div_ui(t, t, 2, r);
  mpfr_mul(y, x, t, r);
  if (mpfr_nan_p(y) && !mpfr_nan_p(x)) mpfr_set_zero(y, -1);
  mpfr_clear(t);
  return 0;
}
static int gelu_tanh(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t t, u;
  mpfr_init2(t, PRECISION);
  mpfr_init2(u, PRECISION);
  mpfr_set_str(u, "0.044715", 10, r);
  mpfr_mul(u, u, x, r);
  mpfr_mul(u, u, x, r);
  mpfr_add_ui(u, u, 1, r);
  mpfr_mul(u, u, x, r);
  mpfr_const_pi(t, r);
  mpfr_ui_div(t, 8, t, r);
  mpfr_sqrt(t, t, r);
  mpfr_mul(u, u, t, r);
  times_sigmoid(y, x, u, r);
  mpfr_clear(t);
  mpfr_clear(u);
  return 0;
}
static int softplus(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  mpfr_abs(t, x, r);
  mpfr_neg(t, t, r);
  mpfr_exp(t, t, r);
  mpfr_log1p(t, t, r);
  if (mpfr_sgn(x) > 0) mpfr_add(y, x, t, r);
  else mpfr_set(y, t, r);
  if (mpfr_nan_p(x)) mpfr_set_nan(y);
  mpfr_clear(t);
  return 0;
}
static int log_sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  mpfr_neg(t, x, r);
  softplus(y, t, r);
  mpfr_clear(t);
  return mpfr_neg(y, y, r);
}
static int sinc(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  if (mpfr_zero_p(x)) return mpfr_set_ui(y, 1, r);
  if (!mpfr_nan_p(x) && (mpfr_integer_p(x) || mpfr_inf_p(x))) return mpfr_set_zero(y, 1), 0;
  mpfr_t t;
  mpfr_init2(t, WIDE);
  mpfr_const_pi(t, r);
  mpfr_mul(t, t, x, r);
  mpfr_sin(y, t, r);
  mpfr_div(y, y, t, r);
  mpfr_clear(t);
  return 0;
}
static int log_gamma(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) {
  int sign;
  return mpfr_lgamma(y, &sign, x, r);
}
static int square(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) { return mpfr_sqr(y, x, r); }
static int reciprocal(mpfr_t y, const mpfr_t x, mpfr_rnd_t r) { return mpfr_ui_div(y, 1, x, r); }
static int logaddexp(mpfr_t z, const mpfr_t x, const mpfr_t y, mpfr_rnd_t r) {
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  mpfr_sub(t, x, y, r);
  mpfr_abs(t, t, r);
  mpfr_neg(t, t, r);
  mpfr_exp(t, t, r);
  mpfr_log1p(t, t, r);
  mpfr_max(z, x, y, r);
  mpfr_add(z, z, t, r);
  if (mpfr_equal_p(x, y)) mpfr_log_ui(z, 2, r), mpfr_add(z, z, x, r);
  if (mpfr_nan_p(x) || mpfr_nan_p(y)) mpfr_set_nan(z);
  mpfr_clear(t);
  return 0;
}

/* sqrt(2) erfcinv(t) by Newton's method, from a start that is off by less than a third */
static int normal_tails(mpfr_t y, const mpfr_t t, mpfr_rnd_t r) {
  enum { STEPS = 14 };
  mpfr_t s, e, x;
  mpfr_inits2(PRECISION, s, e, x, (mpfr_ptr)0);
  mpfr_ui_sub(s, 1, t, r);
  int sign = mpfr_sgn(s), outside = !(mpfr_sgn(t) >= 0 && mpfr_cmp_ui(t, 2) <= 0) || mpfr_nan_p(t);
  mpfr_sqr(e, s, r);
  mpfr_ui_sub(e, 1, e, r);
  int far = mpfr_cmp_d(e, 0x1p-60) < 0;
  mpfr_log(x, e, r), mpfr_neg(x, x, r), mpfr_sqrt(x, x, r), mpfr_mul_d(x, x, 0.886, r);
  mpfr_abs(s, s, r), mpfr_ui_sub(s, 1, s, r); /* the smaller of t and 2 - t */
  for (int i = 0; i < STEPS && !outside && !far; i++) {
    mpfr_erfc(e, x, r), mpfr_sub(e, e, s, r);
    mpfr_sqr(y, x, r), mpfr_exp(y, y, r), mpfr_mul(e, e, y, r);
    mpfr_const_pi(y, r), mpfr_sqrt(y, y, r), mpfr_mul(e, e, y, r), mpfr_div_ui(e, e, 2, r);
    mpfr_add(x, x, e, r);
  }
  mpfr_sqrt_ui(y, 2, r), mpfr_mul(y, y, x, r);
  if (far) mpfr_set_inf(y, 1);
  mpfr_setsign(y, y, sign < 0, r);
  if (outside) mpfr_set_nan(y);
  mpfr_clears(s, e, x, (mpfr_ptr)0);
  return 0;
}

#define U(name, ref, lo, hi, b32, b64) { name, ref, NULL, lo, hi, { b32, b64 }, 0, 0 }
#define B(name, ref, lo, hi, b32, b64) { name, NULL, ref, lo, hi, { b32, b64 }, 0, 0 }
const ulp_function ulp_functions[] = {
  U("acos", mpfr_acos, -1, 1, 1, 1),
  U("acosh", mpfr_acosh, 1, 4, 2, 2),
  U("asin", mpfr_asin, -1, 1, 1, 1),
  U("asinh", mpfr_asinh, -3, 3, 2, 2),
  U("atan", mpfr_atan, -4, 4, 1.5, 1.5),
  B("atan2", mpfr_atan2, -3, 3, 0.51, 1.5),
  U("atanh", mpfr_atanh, -1, 1, 2, 2),
  U("cbrt", mpfr_cbrt, -5, 5, 0.51, 0.51),
  U("cos", mpfr_cos, -100, 100, 2, 2),
  U("cosh", mpfr_cosh, -6, 6, 1.5, 1.5),
  B("divide", mpfr_div, -3, 3, 0.5, 0.5),
  B("divide_by", mpfr_div, -3, 3, 0.5, 0.5),
  U("erf", mpfr_erf, -4, 4, 2, 1.5),
  U("erfc", mpfr_erfc, -2, 10, 0.51, 2),
  U("exp", mpfr_exp, -80, 80, 1, 1),
  U("exp10", mpfr_exp10, -30, 30, 1.5, 1.5),
  U("exp2", mpfr_exp2, -100, 100, 1, 1),
  U("expm1", mpfr_expm1, -3, 3, 2, 2),
  B("fmod", mpfr_fmod, -30, 30, 0, 0),
  U("gelu", gelu, -12, 4, 2, 2),
  U("gelu_tanh", gelu_tanh, -9, 4, 1, 1.5),
  B("hypot", mpfr_hypot, -3, 3, 1.21, 0.51),
  { "lgamma", log_gamma, NULL, 0.01, 12, { 0.51, 5 }, 0, INFINITY },
  U("log", mpfr_log, 0, 3, 1, 1),
  U("log10", mpfr_log10, 0, 3, 1, 1),
  U("log1p", mpfr_log1p, -1, 3, 1.5, 1.5),
  U("log2", mpfr_log2, 0, 3, 1, 1),
  U("log_sigmoid", log_sigmoid, -20, 20, 2, 2),
  { "logaddexp", NULL, logaddexp, 1, 50, { 0.51, 2 }, 1, INFINITY },
  U("normal_tails", normal_tails, 0, 2, 2, 2.5),
  B("pow", mpfr_pow, 0, 8, 1, 1),
  U("reciprocal", reciprocal, -3, 3, 0.5, 0.5),
  U("rsqrt", mpfr_rec_sqrt, 0, 4, 1.5, 1.5),
  U("sigmoid", sigmoid, -20, 20, 2, 2),
  U("silu", silu, -20, 20, 1, 1.5),
  U("sin", mpfr_sin, -100, 100, 2, 2),
  U("sinc", sinc, -5, 5, 0.51, 3),
  U("sinh", mpfr_sinh, -6, 6, 2, 2),
  U("softplus", softplus, -20, 20, 2, 2),
  U("sqrt", mpfr_sqrt, 0, 4, 0.5, 0.5),
  U("square", square, -3, 3, 0.5, 0.5),
  U("tan", mpfr_tan, -100, 100, 2, 2),
  U("tanh", mpfr_tanh, -4, 4, 2, 1.5),
};
const int ulp_nfunctions = sizeof ulp_functions / sizeof *ulp_functions;

/* ---- samples */
static const double edges[] = { 0,
                                1,
                                0.5,
                                2,
                                3,
                                10,
                                100,
                                1e10,
                                1e-10,
                                1.5,
                                2.5,
                                3.5,
                                0x1p-149,
                                0x1p-1074,
                                0x1p-126,
                                0x1p-1022,
                                0x1.fffffep127,
                                0x1.fffffffffffffp1023,
                                0x1.921fb54442d18p0,
                                0x1.921fb54442d18p1,
                                0x1.921fb6p1,
                                88.7,
                                87.3,
                                103.9,
                                104.1,
                                709.7,
                                745.1,
                                1e5,
                                1e9,
                                0x1.6ac5b262ca1ffp849,
                                4503599627370497,
                                16777217,
                                INFINITY };
enum { NEDGE = sizeof edges / sizeof *edges };

static double number(nvm_dtype t, uint64_t bits) { /* any value of the type */
  float f;
  double d;
  memcpy(&f, &bits, 4);
  memcpy(&d, &bits, 8);
  return t == NVM_F32 ? (double)f : d;
}
static uint64_t next(uint64_t *s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  return *s ^= *s << 17;
}
static double edge(int i) { return i < NEDGE ? edges[i] : i < 2 * NEDGE ? -edges[i - NEDGE] : (double)NAN; }
static double sample(const ulp_function *f, nvm_dtype t, uint64_t *s) {
  uint64_t u = next(s);
  double x = (double)(next(s) >> 11) * 0x1p-53;
  switch (u >> 61) {
  case 0: return number(t, next(s));
  case 1: return ldexp((u & 1 ? 1 : -1) * (1 + x), (int)(u >> 8) % 40 - 20 - (u & 128 ? 20 : 0));
  case 2: return (u & 1 ? 1 : -1) * (1 + ldexp(x - 0.5, -(int)((u >> 8) % 30)));
  default: return f->lo + (f->hi - f->lo) * x;
  }
}

/* ---- errors */
static double unit(nvm_dtype t, double w) {
  int digits = t == NVM_F32 ? 24 : 53, least = t == NVM_F32 ? -125 : -1021, e;
  frexp(w, &e);
  return ldexp(1, (e < least ? least : e) - digits);
}
static int special(double x) { return isnan(x) ? 1 : isinf(x) ? 2 + (x < 0) : x == 0 ? 4 + !!signbit(x) : 0; }

static void judge(const ulp_function *f, nvm_dtype t, const double *x, double got, mpfr_t *m, ulp_result *out) {
  mpfr_set_d(m[0], x[0], MPFR_RNDN);
  mpfr_set_d(m[1], x[1], MPFR_RNDN);
  if (f->unary) f->unary(m[2], m[0], MPFR_RNDN);
  else f->binary(m[2], m[0], m[1], MPFR_RNDN);
  double want = t == NVM_F32 ? (double)mpfr_get_flt(m[2], MPFR_RNDN) : mpfr_get_d(m[2], MPFR_RNDN);
  double top = t == NVM_F32 ? 0x1.fffffcp127 : 0x1.ffffffffffffep1023;
  int a = special(want), b = special(got);
  if (a != b && !(fabs(want) >= top && fabs(got) >= top) &&
      !((a > 3 || b > 3) && fabs(want) + fabs(got) < 4 * unit(t, 0) && (signbit(want) == signbit(got) || !a))) {
    out->edge++;
    out->edge_at[0] = x[0], out->edge_at[1] = x[1], out->edge_got = got, out->edge_want = want;
  }
  if (a || b) return;
  mpfr_sub_d(m[2], m[2], got, MPFR_RNDN);
  double e = fabs(mpfr_get_d(m[2], MPFR_RNDN)) / unit(t, want);
  if (e <= out->max) return;
  out->max = e;
  out->at[0] = x[0], out->at[1] = x[1], out->got = got;
}

static int inside(const ulp_function *f, const double *x) {
  if (!f->from && !f->to) return 1;
  return x[0] > f->from && x[0] < f->to && (f->unary || (x[1] > f->from && x[1] < f->to));
}

static int differs(nvm_dtype t, const void *a, const void *b, int i) {
  size_t n = (size_t)nvg_size(t);
  return memcmp((const char *)a + n * (size_t)i, (const char *)b + n * (size_t)i, n) != 0;
}

int ulp_measure(const ulp_function *f, nvm_dtype t, int n, uint64_t seed, ulp_result *out) {
  const nvm_dtype types[2] = { t, t };
  const nvg_frag *g = nvg_frag_find(f->name, types, f->unary ? 1 : 2);
  static double in[2][BLOCK], fast[BLOCK], full[BLOCK];
  static uint8_t rare[BLOCK];
  mpfr_t m[3];
  *out = (ulp_result){ 0 };
  if (!g) return 0;
  for (int k = 0; k < 3; k++) mpfr_init2(m[k], k < 2 ? 53 : PRECISION);
  for (int at = 0; at < n; at += BLOCK) {
    double x[BLOCK][2];
    for (int i = 0; i < BLOCK; i++)
      for (int k = 0; k < 2; k++) {
        int e = f->unary ? at + i : k ? (at + i) % (2 * NEDGE + 1) : (at + i) / (2 * NEDGE + 1);
        x[i][k] = e <= 2 * NEDGE ? edge(e) : sample(f, t, &seed);
        if (t == NVM_F32) x[i][k] = ((float *)in[k])[i] = (float)x[i][k];
        else in[k][i] = x[i][k];
      }
    const void *from[2] = { in[0], in[1] };
    nvg_frag_run(g, from, (void *const[]){ fast }, BLOCK, 0);
    nvg_frag_run(g, from, (void *const[]){ full }, BLOCK, 1);
    memset(rare, 0, sizeof rare);
    if (g->rare >= 0) nvg_frag_flags(g, from, rare, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      double y = t == NVM_F32 ? (double)((float *)full)[i] : full[i];
      double z = t == NVM_F32 ? (double)((float *)fast)[i] : fast[i];
      out->rare += rare[i];
      out->differ += !rare[i] && differs(t, fast, full, i) && !(isnan(y) && isnan(z));
      if (inside(f, x[i])) judge(f, t, x[i], y, m, out);
    }
  }
  for (int k = 0; k < 3; k++) mpfr_clear(m[k]);
  return 1;
}
