/* Fourier transforms that a kernel computes itself: into which passes a number of points is divided, and which
   expressions of a fusion lie before, between and after its transforms. It never assigns a digit
   (schedule_transform.c does) or emits a statement (emit_transform.c does). The passes depend on the number of points
   and the kind of device alone, since they decide every rounding. */
#include "fusion/planner.h"
#include "kernel/dft.h"

/* ---- the radices */
/* SMALL: a radix whose items a CPU's registers nearly hold. LANES: a digit that vectors of a CPU run along has a
   multiple of so many values. */
enum { RADIX = 32, SMALL = 16, LANES = 4 };

static int is_radix(int64_t n) { return n <= RADIX && nvf_dft_has(n); }

/* Two small powers of two, the same or one twice the other; passes.n is 0 if the points have no such form. */
static nvf_passes small_passes(int64_t points) {
  for (int a = LANES, b = LANES; b <= SMALL; a < b ? (a *= 2) : (b *= 2))
    if ((int64_t)a * b == points) return (nvf_passes){ 2, { a, b }, a == b };
  return (nvf_passes){ 0 };
}

/* a, b, a with the smallest maximum; a power of two as a, along which vectors run, comes before all others if b is not
   far longer. */
static nvf_passes mirrored_passes(int64_t points) {
  nvf_passes best = { 0 };
  int least = 2 * RADIX + 1;
  for (int64_t a = 2; a <= RADIX && a * a < points; a++) {
    int64_t b = points / (a * a);
    int along = a >= LANES && !(a & (a - 1)) && b <= LANES * a;
    int most = (int)(a > b ? a : b) + (along ? 0 : RADIX);
    if (points % (a * a) || !is_radix(a) || !is_radix(b) || most >= least) continue;
    least = most;
    best = (nvf_passes){ 3, { (int)a, (int)b, (int)a }, 1 };
  }
  return best;
}

/* Two radices, else three, with the smallest maximum. */
static nvf_passes other_passes(int64_t points) {
  nvf_passes best = { 0 };
  int64_t least = RADIX + 1;
  for (int64_t a = 2; a <= RADIX; a++)
    for (int64_t b = 2; b <= a; b++) {
      int64_t c = points / (a * b), most = a > c ? a : c;
      if (points % (a * b) || !is_radix(a) || !is_radix(b) || !is_radix(c)) continue;
      int n = c == 1 ? 2 : 3;
      if (best.n && (n > best.n || (n == best.n && most >= least))) continue;
      least = most;
      best = (nvf_passes){ n, { (int)a, (int)b, (int)c }, 0 };
    }
  return best;
}

static nvf_passes passes_of_cpu(int64_t points) {
  nvf_passes p = small_passes(points);
  if (!p.n) p = mirrored_passes(points);
  return p.n ? p : other_passes(points);
}

/* The cheapest passes for the threads of a GPU's block; of several, those with the fewest points in a thread, then
   those that are the same from both ends. */
static nvf_passes passes_of_gpu(int64_t points) {
  nvf_passes best = { 0 };
  double least = 0;
  int fewest = 0, items;
  for (int64_t a = 2; a <= RADIX; a++)
    for (int64_t b = 2; b <= RADIX; b++) {
      int64_t c = points / (a * b);
      if (points % (a * b) || (c > 1 && c < a) || !is_radix(a) || !is_radix(b) || !is_radix(c)) continue;
      nvf_passes p = { c == 1 ? 2 : 3, { (int)a, (int)b, (int)c }, c == 1 ? a == b : a == c };
      double cost = nvf_passes_cost(&p, points, &items);
      int equal = cost > 0 && cost <= least && items <= fewest;
      if (!cost || (least > 0 && cost >= least && !(equal && (items < fewest || p.mirrored > best.mirrored)))) continue;
      best = p, least = cost, fewest = items;
    }
  return best;
}

static nvf_passes choose_passes(int64_t points, const nvb_caps *caps) {
  int along = caps->kind == NVB_CPU && small_passes(points).n; /* vectors run along a digit: no row is gathered */
  if (points < 2) return (nvf_passes){ 0 };
  if (points <= SMALL && is_radix(points) && !along) return (nvf_passes){ 1, { (int)points }, 1 };
  nvf_passes p = caps->kind == NVB_CPU ? passes_of_cpu(points) : passes_of_gpu(points);
  if (!p.n && is_radix(points)) p = (nvf_passes){ 1, { (int)points }, 1 };
  return p;
}

/* Whether vectors of a CPU may run along two digits, so that a single transform fills them. Where points are many, the
   routine is faster than a kernel whose vectors have four values (4000 points of complex64: 0.8 and 1.6 times SciPy's
   time), or that has a radix which is no power of two (576 points: 0.66 and 0.92; 3072: 0.66 and 0.85). */
static int suits_vectors(const nvf_passes *p, int64_t points) {
  enum { FEW = 400, MORE_LANES = 8 };
  int n = 0, powers = 1;
  for (int i = 0; i < p->n; i++) {
    n += p->radix[i] % (points <= FEW ? LANES : MORE_LANES) == 0;
    powers &= !(p->radix[i] & (p->radix[i] - 1));
  }
  return p->n == 1 || (n > 1 && (powers || points <= FEW));
}

static int fits_block(int64_t points, nvm_dtype t, const nvb_caps *caps) {
  enum { MOST = 128 << 10 };
  int64_t bytes = points * nvg_size(t);
  return bytes <= MOST && (caps->kind == NVB_CPU || bytes + bytes / 8 <= caps->onchip);
}

int nvf_blocks_transform(int64_t points, nvm_dtype t, const nvb_caps *caps) {
  return points > 1 && fits_block(points, t, caps) && (is_radix(points) || other_passes(points).n);
}

/* The routine of a CPU takes half the operations for real numbers; a GPU waits for memory. */
nvf_passes nvf_passes_of(const nvg_val *v, const nvb_caps *caps) {
  int64_t last = caps->kind == NVB_CPU ? NVG_DFT_INVERSE : NVG_DFT_REAL;
  if (v->attr[0] > last || v->nattr > NVG_DFT_OF_LIBRARY || !fits_block(v->attr[1], v->dtype, caps))
    return (nvf_passes){ 0 };
  nvf_passes p = choose_passes(v->attr[1], caps);
  return caps->kind != NVB_CPU || suits_vectors(&p, v->attr[1]) ? p : (nvf_passes){ 0 };
}

void nvf_passes_print(nvb_text *t, const nvf_passes *p) {
  for (int i = 0; i < p->n; i++) nvb_print(t, "%s%d", i ? " x " : "", p->radix[i]);
}

/* ---- stages */
/* Transforms on the longest path to each expression */
static const uint8_t *stages_before(const nvf_fusion *k) {
  uint8_t *stage = nvb_get(k->graph->arena, (size_t)k->expr.n + 1);
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    for (int j = 0; j < v->narg; j++) stage[i] = stage[v->arg[j]] > stage[i] ? stage[v->arg[j]] : stage[i];
    stage[i] = (uint8_t)(stage[i] + (v->kind == NVF_IDFT));
  }
  return stage;
}

/* Marks the stages that need each expression; 0: one that a transform makes is needed at another stage. */
static int mark_stages(const nvf_fusion *k, const uint8_t *stage, uint16_t *needed) {
  for (int i = k->expr.n - 1; i >= 0; i--) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (stage[i] && needed[i] & ~(1u << stage[i])) return 0;
    for (int j = 0; j < v->narg; j++) needed[v->arg[j]] |= v->kind == NVF_IDFT ? 1u << (stage[i] - 1) : needed[i];
  }
  return 1;
}

/* Whether the transforms of each stage take the passes from the end at which those before them stop: an inverse one
   takes the passes of a forward one from the last to the first. */
static int ends_meet(const nvf_fusion *k, const uint8_t *stage) {
  nvf_transforms *t = k->transforms;
  for (int i = 0; i < t->count && !t->passes.mirrored; i++) {
    int inverse = k->graph->node[k->expr.at[t->expr[i]].node].attr[0] == NVG_DFT_INVERSE, after = stage[t->expr[i]] - 1;
    if (!i) t->reversed = inverse ^ (after & 1);
    if (t->reversed != (inverse ^ (after & 1))) return 0;
  }
  return 1;
}

const char *nvf_transform_stages(nvf_fusion *k) {
  nvf_transforms *t = k->transforms;
  const uint8_t *stage = stages_before(k);
  uint16_t *needed = nvb_get(k->graph->arena, (size_t)(k->expr.n + 1) * sizeof *needed);
  for (int i = 0; i < k->expr.n; i++) {
    if (nvf_is_red(&k->expr.at[i])) return "a transform and a reduction are two kernels";
    t->stages = stage[i] > t->stages ? stage[i] : t->stages;
  }
  if (k->check.n) return "a transform and a gather are two kernels";
  if (!ends_meet(k, stage)) return "the passes of two transforms do not meet";
  for (int i = 0; i < k->put.n; i++) {
    const nvf_put *q = &k->put.at[i];
    if (stage[q->expr] && stage[q->expr] < t->stages) return "what lies between two transforms is stored";
    if (!(q->axes >> t->axis & 1)) return "a transform and a value without its axis";
    needed[q->expr] |= 1u << t->stages;
  }
  if (!mark_stages(k, stage, needed)) return "a value from before a transform is needed after it";
  t->stage = stage;
  t->needed = needed;
  return NULL;
}
