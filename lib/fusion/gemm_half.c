/* Products of a matrix with its transpose, of which a library computes one triangle, and a kernel copies it to the
   other one. Decides how many calls that takes, and whether it is faster than the whole product; never who runs it. */
#include <math.h>
#include "frag/dtype.h"
#include "fusion/planner.h"

static double most(double a, double b) { return a > b ? a : b; }
static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int nvf_half_calls(nvf_half_call *out, int64_t n, int levels, int64_t unit) {
  int64_t start = (n >> levels) / unit * unit, excess = n - (start << levels);
  int calls = 0;
  if (start < excess || !start) return 0;
  for (int l = 1; l <= levels; l++) {
    int64_t side = start << (levels - l);
    out[calls++] = (nvf_half_call){ side + excess, side, side, 0, 2 * side, (int64_t)1 << (l - 1) };
  }
  /* blocks on the diagonal overlap by the excess, so every second one is in a call of its own */
  int turns = excess ? 2 : 1;
  for (int i = 0; i < turns; i++)
    out[calls++] = (nvf_half_call){ start + excess, start + excess, i * start,
                                    i * start,      turns * start,  ((int64_t)1 << levels) / turns };
  return calls;
}

int64_t nvf_half_unit(const nvf_gemm *p) {
  enum { ALIGNED = 16 }; /* bytes, which libraries like rows to begin at multiples of */
  int64_t narrow = nvg_size(p->a.type) < nvg_size(p->d.type) ? nvg_size(p->a.type) : nvg_size(p->d.type);
  return ALIGNED / narrow;
}

/* ns of one call, whose tiles run in waves over the SMs; of the idle time in the last wave half counts (us of
   float32 on an H200, of 8192 x 8192 x 8192 by 2, 3 and 4 levels: 13644, 12294, 11690 instead of 21639; of 5000:
   3773, 3520, 3490 instead of 4868; of bfloat16 8192: 844, 769, 738 instead of 1377). */
static double call_time(const nvf_gemm *p, const nvb_caps *c, double rate, const nvf_half_call *x, double batches) {
  enum { ROWS = 128, COLUMN_BYTES = 512 }; /* of a tile */
  int64_t in = nvg_size(p->a.type), columns = COLUMN_BYTES / in;
  double count = (double)x->count * batches, flops = nvg_parts(p->accumulate) > 1 ? 8 : 2;
  double tiles = (double)(div_up(x->rows, ROWS) * div_up(x->cols, columns)) * count;
  double waves = (tiles / c->cores + ceil(tiles / c->cores)) / 2;
  double work = waves * flops * ROWS * (double)columns * (double)p->k * c->cores / rate;
  double operands = (double)(x->rows + x->cols) * (double)p->k * (double)in;
  double result = (double)x->rows * (double)x->cols * nvg_size(p->d.type);
  return most(work, count * (operands + result) / c->bandwidth) + c->launch;
}

int nvf_half_may(const nvf_gemm *p) {
  enum { LEAST = 256 };
  int known = p->a.type == p->b.type && nvg_class_of(p->a.type) >= NVG_FLOAT && !nvg_is_f8(p->a.type);
  return p->symmetric && known && p->c.param < 0 && p->bias.param < 0 && p->aux.param < 0 && p->m >= LEAST &&
         p->k > 0 && p->nbatch < NVF_BATCHES;
}

double nvf_half_fraction(const nvf_gemm *p, const nvb_caps *c, double rate, int *levels) {
  enum { SIDE = 128 };                          /* least extent of a block */
  static const double GAIN = 0.9, MIRROR = 1.5; /* what is worth it; the mirror's part of a copy's bandwidth, inverse */
  nvf_half_call call[NVF_HALF_CALLS];
  double batches = 1, best = 1;
  *levels = 0;
  if (!nvf_half_may(p) || rate <= 0) return 1;
  for (int i = 0; i < p->nbatch; i++) batches *= (double)p->batch[i];
  double whole = call_time(p, c, rate, &(nvf_half_call){ .rows = p->m, .cols = p->n, .count = 1 }, batches);
  double bytes = (double)p->m * (double)p->n * nvg_size(p->d.type) * batches;
  for (int l = 1; l <= NVF_HALF_LEVELS && p->m >> l >= SIDE; l++) {
    double time = MIRROR * bytes / c->bandwidth + c->launch;
    int n = nvf_half_calls(call, p->m, l, nvf_half_unit(p));
    for (int i = 0; i < n; i++) time += call_time(p, c, rate, &call[i], batches);
    if (n && time < GAIN * whole && time < best * whole) best = time / whole, *levels = l;
  }
  return best;
}
