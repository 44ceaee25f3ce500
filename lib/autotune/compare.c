/* Comparing results. Two products of the same operands differ by the roundings of their sums alone, which grow with the root of
   their length; a bound for each element would need the sizes of the operands, so elements are held against the size of
   all. It may turn down what is right, where rows differ much in size, and takes nothing that is wrong. */
#include "autotune/compare.h"
#include <math.h>
#include <string.h>
#include "dispatch/dispatch.h"
#include "graph/dtype.h"

enum { PART = 512 };

static double unit_of(nvm_dtype t) { /* half the distance from 1 to the next number */
  return nvg_class_of(nvg_real_of(t)) == NVG_FLOAT ? ldexp(1, -nvg_precision(nvg_real_of(t))) : 0;
}

double nvt_tolerance(const nvf_step *s) {
  const nvf_product *p = s->product;
  double sum = 0, stored = 0;
  if (!p)
    return 0;
  sum = 8 * sqrt((double)p->k) * unit_of(p->accumulate);
  if (p->precision)
    sum += 0x1p-9;
  for (int i = 0; i < s->k->nparam; i++)
    if (s->k->param[i].kind == NVF_BUFFER && s->k->param[i].written)
      stored = fmax(stored, unit_of(s->k->param[i].type));
  return sum + 2 * stored;
}

static int is_float(nvm_dtype part) { return unit_of(part) > 0; }

/* n numbers from place i on, components of complex ones by themselves. */
static void widen(double *to, const char *from, nvm_dtype part, int64_t i, int64_t n) {
  size_t size = (size_t)nvg_size(part);
  for (int64_t k = 0; k < n; k++) {
    uint64_t bits = 0;
    memcpy(&bits, from + (i + k) * size, size);
    to[k] = nvg_bits_float(part, bits);
  }
}

/* Root of the mean square of what is finite; *n numbers. */
static double size_of(const char *x, nvm_dtype part, int64_t n) {
  double v[PART], sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < n; i += PART) {
    int64_t m = n - i < PART ? n - i : PART;
    widen(v, x, part, i, m);
    for (int64_t k = 0; k < m; k++)
      if (isfinite(v[k]))
        sum += v[k] * v[k], finite++;
  }
  return finite ? sqrt(sum / (double)finite) : 0;
}

int nvt_close(const char *want, const char *got, int64_t bytes, nvm_dtype type, double tolerance) {
  enum { SINGLE = 16 }; /* one element may be so many times as far off as all are */
  nvm_dtype part = nvg_real_of(type);
  int64_t n = bytes / nvg_size(part);
  double v[PART], w[PART], off = 0;
  if (nvd_first_difference(want, got, bytes, type) < 0)
    return 1;
  if (tolerance <= 0 || !is_float(part))
    return 0;
  double size = size_of(want, part, n);
  for (int64_t i = 0; i < n; i += PART) {
    int64_t m = n - i < PART ? n - i : PART;
    widen(v, want, part, i, m);
    widen(w, got, part, i, m);
    for (int64_t k = 0; k < m; k++) {
      double d = fabs(v[k] - w[k]);
      if (!isfinite(v[k]) || !isfinite(w[k])) {
        if (!(v[k] == w[k] || (isnan(v[k]) && isnan(w[k]))))
          return 0;
      } else if (d > SINGLE * tolerance * (size + fabs(v[k])))
        return 0;
      else
        off += d * d;
    }
  }
  return sqrt(off / (double)n) <= tolerance * size;
}
