/* The complex functions with their references and bounds, and their measurement over the whole range of exponents of
   both parts. References add and multiply exactly, in WIDE bits, and leave to MPFR's functions what does not cancel. */
#include "ulp.h"
#include <math.h>
#include <string.h>
#include "frag/dtype.h"

enum { WIDE = 4800, PRECISION = 300, BLOCK = 256, NWIDE = 8, NTEMP = 6 };

/* Temporaries of a reference: w of WIDE bits, t of PRECISION; and the operands */
struct ulp_work { mpfr_t w[NWIDE], t[NTEMP], z[4]; };

static void square_sum(mpfr_t y, const mpfr_t a, const mpfr_t b, mpfr_t t) { /* a^2 + b^2 */
  mpfr_sqr(y, a, MPFR_RNDN);
  mpfr_sqr(t, b, MPFR_RNDN);
  mpfr_add(y, y, t, MPFR_RNDN);
}
static void halve_log1p(mpfr_t y, const mpfr_t u) { mpfr_log1p(y, u, MPFR_RNDN), mpfr_div_2ui(y, y, 1, MPFR_RNDN); }
static void halve_log(mpfr_t y, const mpfr_t s) { mpfr_log(y, s, MPFR_RNDN), mpfr_div_2ui(y, y, 1, MPFR_RNDN); }
/* x y, 0 where y is 0 and x infinite */
static void times(mpfr_t z, const mpfr_t x, const mpfr_t y) {
  if (mpfr_zero_p(y)) mpfr_set(z, y, MPFR_RNDN);
  else mpfr_mul(z, x, y, MPFR_RNDN);
}
static void with_sign(mpfr_t y, const mpfr_t b) { mpfr_copysign(y, y, b, MPFR_RNDN); }

static void ref_sqrt(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_hypot(k->t[0], a, b, MPFR_RNDN);
  mpfr_abs(k->t[1], a, MPFR_RNDN);
  mpfr_add(k->t[0], k->t[0], k->t[1], MPFR_RNDN);
  mpfr_div_2ui(k->t[0], k->t[0], 1, MPFR_RNDN);
  mpfr_sqrt(k->t[0], k->t[0], MPFR_RNDN);
  mpfr_abs(k->t[1], b, MPFR_RNDN);
  mpfr_div_2ui(k->t[1], k->t[1], 1, MPFR_RNDN);
  if (!mpfr_zero_p(k->t[0])) mpfr_div(k->t[1], k->t[1], k->t[0], MPFR_RNDN);
  mpfr_set(re, k->t[mpfr_sgn(a) < 0], MPFR_RNDN);
  mpfr_set(im, k->t[mpfr_sgn(a) >= 0], MPFR_RNDN);
  with_sign(im, b);
}
static void ref_exp(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_exp(k->t[0], a, MPFR_RNDN);
  mpfr_sin_cos(k->t[1], k->t[2], b, MPFR_RNDN);
  times(re, k->t[0], k->t[2]);
  times(im, k->t[0], k->t[1]);
}
static void ref_log(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  square_sum(k->w[0], a, b, k->w[1]);
  if (mpfr_cmp_d(k->w[0], 0.5) > 0 && mpfr_cmp_ui(k->w[0], 2) < 0)
    mpfr_sub_ui(k->w[0], k->w[0], 1, MPFR_RNDN), halve_log1p(re, k->w[0]);
  else halve_log(re, k->w[0]);
  mpfr_atan2(im, b, a, MPFR_RNDN);
}
static void ref_log_base(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b, unsigned base) {
  ref_log(k, re, im, a, b);
  mpfr_log_ui(k->t[0], base, MPFR_RNDN);
  mpfr_div(re, re, k->t[0], MPFR_RNDN);
  mpfr_div(im, im, k->t[0], MPFR_RNDN);
}
static void ref_log2(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { ref_log_base(k, re, im, a, b, 2); }
static void ref_log10(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { ref_log_base(k, re, im, a, b, 10); }
static void ref_log1p(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  square_sum(k->w[0], a, b, k->w[1]);
  mpfr_mul_2ui(k->w[1], a, 1, MPFR_RNDN);
  mpfr_add(k->w[0], k->w[0], k->w[1], MPFR_RNDN);
  mpfr_add_ui(k->w[1], a, 1, MPFR_RNDN);
  if (mpfr_cmp_d(k->w[0], -0.5) > 0) halve_log1p(re, k->w[0]);
  else square_sum(k->w[0], k->w[1], b, k->w[2]), halve_log(re, k->w[0]);
  mpfr_atan2(im, b, k->w[1], MPFR_RNDN);
}
static void ref_expm1(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  ref_exp(k, re, im, a, b);
  if (mpfr_cmp_ui(a, 1) > 0) {
    mpfr_sub_ui(re, re, 1, MPFR_RNDN);
    return;
  }
  mpfr_expm1(k->t[0], a, MPFR_RNDN);
  mpfr_mul(k->t[0], k->t[0], k->t[2], MPFR_RNDN);
  mpfr_div_2ui(k->t[1], b, 1, MPFR_RNDN);
  mpfr_sin(k->t[1], k->t[1], MPFR_RNDN);
  mpfr_sqr(k->t[1], k->t[1], MPFR_RNDN);
  mpfr_mul_2ui(k->t[1], k->t[1], 1, MPFR_RNDN);
  mpfr_sub(re, k->t[0], k->t[1], MPFR_RNDN);
}
static void ref_sinh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_sinh_cosh(k->t[0], k->t[1], a, MPFR_RNDN);
  mpfr_sin_cos(k->t[2], k->t[3], b, MPFR_RNDN);
  times(re, k->t[3], k->t[0]);
  times(im, k->t[1], k->t[2]);
}
static void ref_cosh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_sinh_cosh(k->t[0], k->t[1], a, MPFR_RNDN);
  mpfr_sin_cos(k->t[2], k->t[3], b, MPFR_RNDN);
  mpfr_mul(re, k->t[1], k->t[3], MPFR_RNDN);
  if (mpfr_zero_p(k->t[0])) mpfr_set_zero(im, 1);
  else times(im, k->t[0], k->t[2]);
}
/* (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b); far out by e^(-2 |a|) */
static void ref_tanh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_sin_cos(k->t[2], k->t[3], b, MPFR_RNDN);
  mpfr_mul(im, k->t[2], k->t[3], MPFR_RNDN);
  if (mpfr_cmpabs_ui(a, 2000) > 0) {
    mpfr_set_ui(re, 1, MPFR_RNDN);
    with_sign(re, a);
    mpfr_set_zero(im, mpfr_sgn(im));
    return;
  }
  mpfr_sinh_cosh(k->t[0], k->t[1], a, MPFR_RNDN);
  square_sum(k->t[4], k->t[0], k->t[3], k->t[5]);
  mpfr_mul(re, k->t[0], k->t[1], MPFR_RNDN);
  mpfr_div(re, re, k->t[4], MPFR_RNDN);
  mpfr_div(im, im, k->t[4], MPFR_RNDN);
}
/* w[0] = A - 1 and w[1] = A for A = (|z + 1| + |z - 1|) / 2 (Hull, Fairgrieve, Tang 1997), t[0] = sqrt(A^2 - a^2), and
   im = log(A + sqrt(A^2 - 1)) with the sign of b */
static void foci(ulp_work *k, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_add_ui(k->w[0], a, 1, MPFR_RNDN);
  mpfr_sub_ui(k->w[1], a, 1, MPFR_RNDN);
  for (int i = 0; i < 2; i++)
    square_sum(k->w[2 + i], k->w[i], b, k->w[4]), mpfr_sqrt(k->w[2 + i], k->w[2 + i], MPFR_RNDN);
  mpfr_add(k->w[1], k->w[2], k->w[3], MPFR_RNDN);
  mpfr_div_2ui(k->w[1], k->w[1], 1, MPFR_RNDN);
  mpfr_sub_ui(k->w[0], k->w[1], 1, MPFR_RNDN);
  if (mpfr_sgn(k->w[0]) < 0) mpfr_set_zero(k->w[0], 1);
  mpfr_abs(k->w[2], a, MPFR_RNDN);
  mpfr_sub(k->w[3], k->w[1], k->w[2], MPFR_RNDN);
  if (mpfr_sgn(k->w[3]) < 0) mpfr_set_zero(k->w[3], 1);
  mpfr_add(k->w[2], k->w[1], k->w[2], MPFR_RNDN);
  mpfr_mul(k->t[0], k->w[2], k->w[3], MPFR_RNDN);
  mpfr_sqrt(k->t[0], k->t[0], MPFR_RNDN);
  mpfr_add_ui(k->w[2], k->w[1], 1, MPFR_RNDN);
  mpfr_mul(k->t[1], k->w[2], k->w[0], MPFR_RNDN);
  mpfr_sqrt(k->t[1], k->t[1], MPFR_RNDN);
  mpfr_add(k->t[1], k->t[1], k->w[0], MPFR_RNDN);
  mpfr_log1p(im, k->t[1], MPFR_RNDN);
  with_sign(im, b);
}
static void ref_asin(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  foci(k, im, a, b);
  mpfr_atan2(re, a, k->t[0], MPFR_RNDN);
}
static void ref_acos(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  foci(k, im, a, b);
  mpfr_atan2(re, k->t[0], a, MPFR_RNDN);
  mpfr_neg(im, im, MPFR_RNDN);
}
static void ref_acosh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  ref_acos(k, im, re, a, b);
  mpfr_abs(re, re, MPFR_RNDN);
  with_sign(im, b);
}
/* (log1p(4 a / |1 - z|^2) / 4, atan2(2 b, 1 - |z|^2) / 2), for a >= 0 */
static void ref_atanh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_abs(k->w[0], a, MPFR_RNDN);
  mpfr_ui_sub(k->w[1], 1, k->w[0], MPFR_RNDN);
  square_sum(k->w[2], k->w[1], b, k->w[3]);
  mpfr_mul_2ui(k->t[0], k->w[0], 2, MPFR_RNDN);
  mpfr_div(k->t[0], k->t[0], k->w[2], MPFR_RNDN);
  mpfr_log1p(re, k->t[0], MPFR_RNDN);
  mpfr_div_2ui(re, re, 2, MPFR_RNDN);
  with_sign(re, a);
  square_sum(k->w[2], k->w[0], b, k->w[3]);
  mpfr_ui_sub(k->w[2], 1, k->w[2], MPFR_RNDN);
  mpfr_mul_2ui(k->t[0], b, 1, MPFR_RNDN);
  mpfr_atan2(im, k->t[0], k->w[2], MPFR_RNDN);
  mpfr_div_2ui(im, im, 1, MPFR_RNDN);
}
/* f(z) = g(i z) / i */
static void rotated(ulp_work *k, ulp_complex *g, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_neg(k->z[0], b, MPFR_RNDN);
  mpfr_set(k->z[1], a, MPFR_RNDN);
  g(k, im, re, k->z[0], k->z[1]);
  mpfr_neg(im, im, MPFR_RNDN);
}
static void ref_sin(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { rotated(k, ref_sinh, re, im, a, b); }
static void ref_tan(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { rotated(k, ref_tanh, re, im, a, b); }
static void ref_asinh(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { rotated(k, ref_asin, re, im, a, b); }
static void ref_atan(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { rotated(k, ref_atanh, re, im, a, b); }
static void ref_cos(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_neg(k->z[0], b, MPFR_RNDN);
  ref_cosh(k, re, im, k->z[0], a);
}
static void ref_sign(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  mpfr_hypot(k->t[0], a, b, MPFR_RNDN);
  mpfr_div(re, a, k->t[0], MPFR_RNDN);
  mpfr_div(im, b, k->t[0], MPFR_RNDN);
}
static void ref_reciprocal(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  square_sum(k->w[0], a, b, k->w[1]);
  mpfr_div(re, a, k->w[0], MPFR_RNDN);
  mpfr_div(im, b, k->w[0], MPFR_RNDN);
  mpfr_neg(im, im, MPFR_RNDN);
}
static void multiply(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { /* re, im *= a + b i */
  mpfr_mul(k->w[0], re, a, MPFR_RNDN);
  mpfr_mul(k->w[1], im, b, MPFR_RNDN);
  mpfr_mul(k->w[2], re, b, MPFR_RNDN);
  mpfr_mul(k->w[3], im, a, MPFR_RNDN);
  mpfr_sub(re, k->w[0], k->w[1], MPFR_RNDN);
  mpfr_add(im, k->w[2], k->w[3], MPFR_RNDN);
}
static void ref_power(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b, int n) {
  mpfr_set(re, a, MPFR_RNDN), mpfr_set(im, b, MPFR_RNDN);
  while (--n) multiply(k, re, im, a, b);
}
static void ref_power2(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { ref_power(k, re, im, a, b, 2); }
static void ref_power3(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { ref_power(k, re, im, a, b, 3); }
static void ref_power4(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) { ref_power(k, re, im, a, b, 4); }
/* of two operands, the second in z[2], z[3] */
static void ref_divide(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  ref_reciprocal(k, re, im, k->z[2], k->z[3]);
  multiply(k, re, im, a, b);
}
static void ref_pow(ulp_work *k, mpfr_t re, mpfr_t im, mpfr_t a, mpfr_t b) {
  ref_log(k, re, im, a, b);
  multiply(k, re, im, k->z[2], k->z[3]);
  mpfr_set(k->t[4], re, MPFR_RNDN), mpfr_set(k->t[5], im, MPFR_RNDN);
  ref_exp(k, re, im, k->t[4], k->t[5]);
}

#define PARTS(name, b32, b64) { "c." #name, ref_##name, 1, { b32, b64 }, 0 }
#define NORM(name, n, b32, b64) { "c." #name, ref_##name, n, { b32, b64 }, 1 }
const ulp_pair ulp_pairs[] = {
  PARTS(acos, 1, 5),         PARTS(acosh, 1, 5), PARTS(asin, 1, 5),     PARTS(asinh, 1, 5),    PARTS(atan, 1, 4),
  PARTS(atanh, 1, 4),        PARTS(cos, 1, 4),   PARTS(cosh, 1, 4),     PARTS(exp, 1, 4),      PARTS(log, 1, 4),
  PARTS(log10, 1, 4),        PARTS(log1p, 1, 4), PARTS(log2, 1, 4),     PARTS(sign, 1, 2),     PARTS(sin, 1, 4),
  PARTS(sinh, 1, 4),         PARTS(sqrt, 1, 4),  PARTS(tan, 1, 5),      PARTS(tanh, 1, 5),     NORM(divide, 2, 4, 4),
  NORM(expm1, 1, 1, 5),      NORM(pow, 2, 1, 3), NORM(power2, 1, 4, 4), NORM(power3, 1, 1, 3), NORM(power4, 1, 1, 5),
  NORM(reciprocal, 1, 4, 4),
};
const int ulp_npairs = sizeof ulp_pairs / sizeof *ulp_pairs;

/* ---- samples */
static uint64_t next(uint64_t *s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  return *s ^= *s << 17;
}
/* a random mantissa and sign, an exponent from lo up to hi */
static double of_size(uint64_t *s, int lo, int hi) {
  uint64_t u = next(s);
  double m = 1 + (double)(u >> 12) * 0x1p-52;
  return ldexp(next(s) & 1 ? m : -m, lo + (int)(next(s) % (uint64_t)(hi - lo)));
}
static double any_size(nvm_dtype t, uint64_t *s) {
  return t == NVM_F32 ? of_size(s, -149, 127) : of_size(s, -1074, 1024);
}
/* a part of its own kind: zero, the branch points and the constants of the functions, or a random one near them */
static double special_part(nvm_dtype t, uint64_t *s) {
  static const double v[] = {
    0,    -0.0, 1,    -1,   0.5, 2,         -2,       0x1.921fb54442d18p0, 0x1.921fb54442d18p1,   22, -22, 700, 709.7,
    -745, 88.7, -104, 1418, 3,   0x1p-1074, 0x1p-149, 0x1.fffffep127,      0x1.fffffffffffffp1023
  };
  double x = v[next(s) % (sizeof v / sizeof *v)];
  if (t == NVM_F32 && fabs(x) > 1e39) return 1;
  return next(s) & 1 ? x : x + of_size(s, -60, -2);
}
static void sample(nvm_dtype t, uint64_t *s, double *z) {
  int kind = (int)(next(s) % 8);
  z[0] = any_size(t, s), z[1] = any_size(t, s);
  if (kind > 2) z[0] = of_size(s, -30, 10), z[1] = of_size(s, -30, 10);
  if (kind == 4 || kind == 5) z[kind == 5] = special_part(t, s);
  if (kind == 6) z[0] = special_part(t, s), z[1] = next(s) & 1 ? special_part(t, s) : any_size(t, s);
  if (kind != 7) return;
  double a = (double)(next(s) >> 11) * 0x1p-50, r = 1 + of_size(s, -60, -3); /* near |z| = 1 or |z + 1| = 1 */
  z[0] = r * cos(a) - (double)(next(s) & 1), z[1] = r * sin(a);
}
/* the second operand: of a power so that the result is not far beyond the range */
static void sample_second(const ulp_pair *f, nvm_dtype t, uint64_t *s, double *z) {
  sample(t, s, z + 2);
  if (f->ref != ref_pow) return;
  double size = fmax(fabs(log(hypot(z[0], z[1]))), 3), most = (t == NVM_F32 ? 90 : 720) / size;
  for (int i = 2; i < 4; i++) z[i] = most * ((double)(next(s) >> 11) * 0x1p-52 - 1);
  if (next(s) % 3 == 0) z[3] = 0;
}
/* outside of what is promised: 0 to a power, over 0 */
static int outside(const ulp_pair *f, const double *z) {
  if (f->ref == ref_pow || f->ref == ref_sign) return z[0] == 0 && z[1] == 0;
  if (f->ref == ref_reciprocal) return z[0] == 0 && z[1] == 0;
  if (f->ref == ref_divide) return z[2] == 0 && z[3] == 0;
  return 0;
}

/* ---- errors */
/* the exponent of an ulp of w, which may be beyond the range */
static long unit(nvm_dtype t, mpfr_t w) {
  long digits = t == NVM_F32 ? 24 : 53, least = t == NVM_F32 ? -125 : -1021;
  long e = mpfr_regular_p(w) && mpfr_get_exp(w) > least ? mpfr_get_exp(w) : least;
  return e - digits;
}
/* In units of 2^ulp; an infinite result counts as the first power of two beyond the range. `want` and k are
   lost. */
static double part_error(nvm_dtype t, mpfr_t want, double got, long ulp, mpfr_t k) {
  int end = t == NVM_F32 ? 128 : 1024, inf = isinf(got);
  if (isnan(got) || mpfr_nan_p(want)) return isnan(got) && mpfr_nan_p(want) ? 0 : INFINITY;
  if (inf && !signbit(got) == !mpfr_signbit(want) && (mpfr_inf_p(want) || mpfr_get_exp(want) > end)) return 0;
  if (mpfr_inf_p(want)) return INFINITY;
  if (!inf) mpfr_sub_d(want, want, got, MPFR_RNDN);
  else {
    mpfr_set_ui_2exp(k, 1, end, MPFR_RNDN);
    (signbit(got) ? mpfr_add : mpfr_sub)(want, want, k, MPFR_RNDN);
  }
  mpfr_div_2si(want, want, ulp, MPFR_RNDN);
  return fabs(mpfr_get_d(want, MPFR_RNDN));
}

static void judge(const ulp_pair *f, nvm_dtype t, ulp_work *k, mpfr_t *want, const double *z, const double *got,
                  ulp_result *out) {
  for (int i = 0; i < 2 * f->nin; i++) mpfr_set_d(k->z[i], z[i], MPFR_RNDN);
  mpfr_t a, b;
  mpfr_init2(a, 53), mpfr_init2(b, 53);
  mpfr_set_d(a, z[0], MPFR_RNDN), mpfr_set_d(b, z[1], MPFR_RNDN);
  f->ref(k, want[0], want[1], a, b);
  mpfr_clear(a), mpfr_clear(b);
  long ulp[2] = { unit(t, want[0]), unit(t, want[1]) }, most = ulp[ulp[1] > ulp[0]];
  double scale = f->ref == ref_pow ? 1 + hypot(z[2], z[3]) : 1;
  for (int i = 0; i < 2; i++) {
    double e = part_error(t, want[i], got[i], f->norm ? most : ulp[i], k->t[0]) / scale;
    if (e <= out->max) continue;
    out->max = e, out->got = got[i], out->part = i;
    memcpy(out->at, z, 2 * sizeof *z);
    memcpy(out->edge_at, z + 2, 2 * sizeof *z);
  }
}

static void put(nvm_dtype t, void *to, int i, double x) {
  if (t == NVM_F32) ((float *)to)[i] = (float)x;
  else ((double *)to)[i] = x;
}
static double get(nvm_dtype t, const void *from, int i) {
  return t == NVM_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static int same(double x, double y) { return (x == y && !signbit(x) == !signbit(y)) || (isnan(x) && isnan(y)); }

static void measure(const ulp_pair *f, nvm_dtype t, const nvg_frag *g, int n, uint64_t seed, ulp_work *k, mpfr_t *want,
                    ulp_result *out) {
  static double in[4][BLOCK], part[2][BLOCK], fast[2][BLOCK];
  static uint8_t rare[BLOCK];
  for (int at = 0; at < n; at += BLOCK) {
    double z[BLOCK][4];
    for (int i = 0; i < BLOCK; i++) {
      do {
        sample(t, &seed, z[i]);
        if (f->nin == 2) sample_second(f, t, &seed, z[i]);
        for (int j = 0; j < 2 * f->nin; j++) put(t, in[j], i, z[i][j]), z[i][j] = get(t, in[j], i);
      } while (outside(f, z[i]));
    }
    const void *from[4] = { in[0], in[1], in[2], in[3] };
    nvg_frag_run(g, from, (void *const[]){ part[0], part[1] }, BLOCK, 1);
    nvg_frag_run(g, from, (void *const[]){ fast[0], fast[1] }, BLOCK, 0);
    memset(rare, 0, sizeof rare);
    if (g->rare >= 0) nvg_frag_flags(g, from, rare, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      double y[2] = { get(t, part[0], i), get(t, part[1], i) };
      out->rare += rare[i];
      for (int j = 0; j < 2; j++) out->differ += !rare[i] && !same(y[j], get(t, fast[j], i));
      judge(f, t, k, want, z[i], y, out);
    }
  }
}

int ulp_measure_complex(const ulp_pair *f, nvm_dtype t, int n, uint64_t seed, ulp_result *out) {
  const nvm_dtype types[4] = { t, t, t, t };
  const nvg_frag *g = nvg_frag_find(f->name, types, 2 * f->nin);
  ulp_work k;
  mpfr_t want[2];
  *out = (ulp_result){ 0 };
  if (!g) return 0;
  for (int i = 0; i < NWIDE; i++) mpfr_init2(k.w[i], WIDE);
  for (int i = 0; i < NTEMP; i++) mpfr_init2(k.t[i], PRECISION);
  for (int i = 0; i < 4; i++) mpfr_init2(k.z[i], 53);
  for (int i = 0; i < 2; i++) mpfr_init2(want[i], PRECISION);
  measure(f, t, g, n, seed, &k, want, out);
  for (int i = 0; i < NWIDE; i++) mpfr_clear(k.w[i]);
  for (int i = 0; i < NTEMP; i++) mpfr_clear(k.t[i]);
  for (int i = 0; i < 4; i++) mpfr_clear(k.z[i]);
  for (int i = 0; i < 2; i++) mpfr_clear(want[i]);
  return 1;
}
