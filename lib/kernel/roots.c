/* Roots of unity, correctly rounded: double-double arithmetic on the first octant, where the angle is an exact quotient
   of integers times pi / 4. It uses no function of the C library, so every machine has the same bits. */
#include "kernel/roots.h"
#include <string.h>
#include "frag/dtype.h"

/* An unevaluated sum: |lo| is at most half a unit of the last place of hi. */
typedef struct twofold { double hi, lo; } twofold;

static twofold sum_of(double a, double b) { /* |a| >= |b| */
  double hi = a + b;
  return (twofold){ hi, b - (hi - a) };
}

static double high_half(double a) { /* the leading 26 bits */
  double t = 0x1p27 * a;
  t += a;
  return t - (t - a);
}

static twofold product_of(double a, double b) { /* exact; without fma, which not every CPU has */
  double ah = high_half(a), bh = high_half(b), al = a - ah, bl = b - bh, hi = a * b;
  double e = ah * bh - hi;
  e += ah * bl;
  e += al * bh;
  return (twofold){ hi, e + al * bl };
}

static twofold multiply(twofold a, twofold b) {
  twofold p = product_of(a.hi, b.hi);
  double cross = a.hi * b.lo;
  cross += a.lo * b.hi;
  return sum_of(p.hi, p.lo + cross);
}

static twofold divide(twofold a, double b) {
  double q = a.hi / b;
  twofold p = product_of(q, b);
  return sum_of(q, (a.hi - p.hi - p.lo + a.lo) / b);
}

/* 1 - x^2 / (k (k + 1)) (1 - x^2 / ((k + 2) (k + 3)) (...)): the series of the cosine for k = 1, that of sin(x) / x for
   k = 2, to 2^-107 for x up to pi / 4. */
static twofold series(twofold square, int k) {
  enum { TERMS = 13 };
  twofold sum = { 1, 0 };
  for (int i = TERMS; i-- > 0;) {
    twofold x = divide(multiply(square, sum), (double)((k + 2 * i) * (k + 2 * i + 1)));
    double hi = 1 - x.hi, lost = (1 - hi) - x.hi;
    sum = sum_of(hi, lost - x.lo);
  }
  return sum;
}

/* Rounds to odd, from which rounding to float is correct, or takes the double. */
static double rounded(twofold x, nvm_dtype t) {
  uint64_t bits;
  if (nvg_real_of(t) != NVM_F32) return x.hi;
  memcpy(&bits, &x.hi, sizeof bits);
  if (x.lo != 0 && !(bits & 1)) bits += (x.lo > 0) == (x.hi > 0) ? 1u : -1ull;
  memcpy(&x.hi, &bits, sizeof bits);
  return (float)x.hi;
}

void nvf_root(int64_t n, int64_t q, nvm_dtype t, double root[2]) {
  static const twofold quarter = { 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55 }; /* pi / 4 */
  q %= n;
  int octant = (int)(8 * q / n);
  int64_t rest = 8 * q % n;
  if (octant & 1) rest = n - rest;
  twofold x = multiply(divide((twofold){ (double)rest, 0 }, (double)n), quarter), square = multiply(x, x);
  double c = rounded(series(square, 1), t), s = rest ? rounded(multiply(x, series(square, 2)), t) : 0;
  int swapped = (octant + 1) / 2 % 2; /* octants 1, 2, 5, 6: the angle is counted from the imaginary axis */
  root[0] = swapped ? s : c;
  root[1] = swapped ? c : s;
  if (octant >= 2 && octant < 6 && root[0] != 0) root[0] = -root[0];
  if (octant >= 4 && root[1] != 0) root[1] = -root[1];
}

uint64_t *nvf_roots_bits(nvb_arena *a, const nvf_param *p) {
  uint64_t *bits = NVB_NEWN(a, uint64_t, 2 * p->roots.length);
  nvm_dtype t = nvg_real_of(p->type);
  for (int64_t k = 0; k < p->roots.length; k++) {
    double root[2];
    nvf_root(p->roots.n, k, t, root);
    bits[2 * k] = nvg_float_bits(t, root[0]);
    bits[2 * k + 1] = nvg_float_bits(t, p->roots.sign * root[1]);
  }
  return bits;
}
