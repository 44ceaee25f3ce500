/* Compares a candidate's result with the reference. Two products of the same operands differ only by the rounding of
   their sums, which grows with the square root of their length. A bound for each element would need the operands, so
   elements are compared with the root mean square of the whole result: this may reject a right result whose rows differ
   much in size. */
#include "autotune/compare.h"
#include <math.h>
#include <string.h>
#include "base/lock.h"
#include "base/pool.h"
#include "dispatch/dispatch.h"
#include "dispatch/half_rows.h"
#include "frag/dtype.h"

enum { PART = 512 };

static double unit_of(nvm_dtype t) { /* the unit roundoff; 0 if t is no float */
  return nvg_class_of(nvg_real_of(t)) == NVG_FLOAT ? ldexp(1, -nvg_precision(nvg_real_of(t))) : 0;
}

double nvt_tolerance(const nvf_step *s) {
  const nvf_gemm *p = s->gemm;
  double sum = 0, stored = 0;
  if (!p) return 0;
  sum = 8 * sqrt((double)p->k) * unit_of(p->accumulate);
  if (nvf_is_coarse(p->precision)) sum += p->precision == NVM_PRECISION_TF32 ? 0x1p-9 : 0x1p-14;
  for (int i = 0; i < s->k->nparam; i++)
    if (s->k->param[i].kind == NVF_BUFFER && s->k->param[i].written)
      stored = fmax(stored, unit_of(s->k->param[i].type));
  return sum + 2 * stored;
}

double nvt_tolerance_of_transforms(const nvg_graph *g) {
  double most = 0;
  for (int i = 0; i < g->n; i++)
    if (g->v[i].op == NVG_OP_DFT) most = fmax(most, 4 * (2 + log2((double)g->v[i].attr[1])) * unit_of(g->v[i].dtype));
  return most;
}

static int is_float(nvm_dtype part) { return unit_of(part) > 0; }

/* Converts n numbers from index i on to double; components of complex numbers count separately. */
static void widen_part(double *to, const char *from, nvm_dtype part, int64_t i, int64_t n) {
  size_t size = (size_t)nvg_size(part);
  float single[PART];
  if (part == NVM_F32 || part == NVM_F16 || part == NVM_BF16) {
    nvd_widen(single, from + (size_t)i * size, part, n);
    for (int64_t k = 0; k < n; k++) to[k] = single[k];
    return;
  }
  for (int64_t k = 0; k < n; k++) {
    uint64_t bits = 0;
    memcpy(&bits, from + (size_t)(i + k) * size, size);
    to[k] = nvg_bits_float(part, bits);
  }
}

/* State of comparing two results in the pool; got NULL: only the size of `want` is computed. */
typedef struct look {
  const char *want, *got;
  nvm_dtype part;
  double tolerance, size, sum; /* sum of squares, of `want` or of the difference */
  int64_t finite;
  int far;
  nvb_lock lock;
} look;

static int is_far(const look *l, double want, double got) {
  enum { SINGLE = 16 }; /* one element may be off by this factor more than all together */
  if (isfinite(want) && isfinite(got)) return fabs(want - got) > SINGLE * l->tolerance * (l->size + fabs(want));
  return want != got && !(isnan(want) && isnan(got));
}

static void look_at(void *arg, int64_t lo, int64_t hi, int worker) {
  look *l = arg;
  double v[PART], w[PART] = { 0 }, sum = 0;
  int64_t finite = 0;
  int far = 0;
  (void)worker;
  for (int64_t i = lo; i < hi && !far; i += PART) {
    int64_t n = hi - i < PART ? hi - i : PART;
    widen_part(v, l->want, l->part, i, n);
    if (l->got) widen_part(w, l->got, l->part, i, n);
    for (int64_t k = 0; k < n; k++) {
      double d = v[k] - w[k];
      int counts = isfinite(d);
      far |= l->got && is_far(l, v[k], w[k]);
      sum += counts ? d * d : 0;
      finite += counts;
    }
  }
  nvb_lock_take(&l->lock);
  l->sum += sum;
  l->finite += finite;
  l->far |= far;
  nvb_lock_give(&l->lock);
}

int nvt_close(const char *want, const char *got, int64_t bytes, nvm_dtype type, double tolerance) {
  enum { CHUNK = 1 << 16 };
  look l = { .want = want, .part = nvg_real_of(type), .tolerance = tolerance };
  int64_t n = bytes / nvg_size(l.part);
  if (nvd_first_difference(want, got, bytes, type) < 0) return 1;
  if (tolerance <= 0 || !is_float(l.part)) return 0;
  nvb_pool_run(look_at, &l, n, CHUNK);
  l.size = l.finite ? sqrt(l.sum / (double)l.finite) : 0;
  l.got = got;
  l.sum = 0;
  nvb_pool_run(look_at, &l, n, CHUNK);
  return !l.far && sqrt(l.sum / (double)n) <= tolerance * l.size;
}
