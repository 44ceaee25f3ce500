/* Schedules kernels with transforms. In the layout of a pass its own digit is items of a thread; the others are lanes,
   warps and loops. A block of a GPU has several transforms if they are short. The lanes of a CPU's vector run along a
   digit of the points where two digits are long enough, so that a transform stays in the nearest cache; else each lane
   has a transform of its own. It changes no bit. */
#include <string.h>
#include "fusion/schedule.h"

/* The digit along which memory is contiguous in the layout of a pass: the last one where the points are read, the first
   one where they are stored. rank 0: the nearest to that end. */
static int digit_at(const nvf_passes *p, int pass, int rank) {
  return pass == p->n - 1 && pass ? rank : p->n - 1 - rank;
}

static int64_t divisor_of(int64_t n, int64_t most) { /* the largest one up to `most` */
  while (n % most) most--;
  return most;
}

/* ---- GPU */
enum { WARP = 32, WARPS = 16 };

typedef struct levels { int64_t lanes, warps, used_lanes, used_warps; } levels;

/* Gives a digit of n values lanes first, then warps, then items. */
static void place_digit(nvf_digits *d, int64_t n, levels *l) {
  int64_t own = divisor_of(n, least(l->lanes, n));
  nvf_digit_add(d, 'l', own, (int)l->used_lanes);
  l->used_lanes *= own, l->lanes /= own, n /= own;
  own = divisor_of(n, least(l->warps, n));
  nvf_digit_add(d, 'w', own, (int)l->used_warps);
  l->used_warps *= own, l->warps /= own, n /= own;
  nvf_digit_add(d, 'i', n, 0);
}

/* Places the passes. The lanes and warps of transforms that share a block follow those of the points. Returns the
   number of transforms. */
static int64_t place_gpu(nvf_tiling *s, const nvf_passes *p, int64_t points, int64_t batch) {
  enum { THREADS = 128 };
  int64_t lanes = 1, warps = 1, threads = 1;
  for (int i = 0; i < p->n; i++) threads = most(threads, points / p->radix[i]);
  while (2 * lanes * threads <= WARP && 2 * lanes <= power2(batch)) lanes *= 2;
  while (2 * warps * lanes * threads <= THREADS && 2 * warps * lanes <= power2(batch)) warps *= 2;
  for (int pass = 0; pass < p->n; pass++) {
    levels l = { WARP / lanes, WARPS, 1, 1 };
    nvf_digit_add(&s->point[pass][pass], 'i', p->radix[pass], 0);
    for (int rank = 0; rank < p->n; rank++) {
      int q = digit_at(p, pass, rank);
      if (q != pass) place_digit(&s->point[pass][q], p->radix[q], &l);
    }
    nvf_digit_add(&s->several[pass], 'l', lanes, (int)l.used_lanes);
    nvf_digit_add(&s->several[pass], 'w', warps, (int)l.used_warps);
  }
  return lanes * warps;
}

/* ---- CPU */
/* Lanes of vectors along digits of the points: a power of two that divides two digits; 0: there are none. */
static int64_t lanes_along(const nvf_passes *p, int64_t width) {
  enum { FEW = 4 };
  for (int64_t w = width; w >= FEW || w == width; w /= 2) {
    int n = 0;
    for (int i = 0; i < p->n; i++) n += p->radix[i] % w == 0;
    if (n > 1) return w;
  }
  return 0;
}

static void place_pass_cpu(nvf_tiling *s, const nvf_passes *p, int pass, int64_t lanes) {
  int lane = -1;
  for (int rank = 0; rank < p->n && lanes && lane < 0; rank++) {
    int q = digit_at(p, pass, rank);
    lane = q != pass && p->radix[q] % lanes == 0 ? q : -1;
  }
  for (int q = 0; q < p->n; q++) {
    nvf_digits *d = &s->point[pass][q];
    if (q == lane) nvf_digit_add(d, 'l', lanes, 0);
    nvf_digit_add(d, q == pass ? 'i' : 'I', q == lane ? p->radix[q] / lanes : p->radix[q], 0);
  }
}

/* ---- the tiling */
static int widest_of(const nvf_fusion *k) { /* bytes of a real number of the transforms */
  return nvg_size(nvg_real_of(k->graph->node[k->expr.at[*k->transforms->expr].node].dtype));
}

nvf_tiling *nvf_tiling_transform(nvf_fusion *k) {
  nvb_arena *a = k->graph->arena;
  const nvf_transforms *t = k->transforms;
  const nvf_passes *p = &t->passes;
  nvf_tiling *s = NVB_NEW(a, nvf_tiling);
  int cpu = k->graph->caps->kind == NVB_CPU;
  s->at = NVB_NEWN(a, nvf_placement, k->axis.n + 1);
  s->lane = s->transposed = s->tma_store = -1;
  s->width = k->graph->caps->width * 4 / widest_of(k);
  s->at[t->axis].tile = s->at[t->from].tile = t->points;
  int64_t along = cpu ? lanes_along(p, s->width) : 0, rows = 1;
  s->batch = nvf_longest_grid(k, s);
  for (int pass = 0; pass < p->n && cpu; pass++) {
    place_pass_cpu(s, p, pass, along);
    if (s->batch >= 0 && !along) nvf_digit_add(&s->several[pass], 'l', rows = s->width, 0);
  }
  if (!cpu) rows = place_gpu(s, p, t->points, s->batch < 0 ? 1 : k->axis.at[s->batch].n);
  if (rows > 1) {
    s->at[s->batch] = (nvf_placement){ .tile = rows, .tiled = 1 };
    s->order[s->norder++] = s->batch;
  }
  s->order[s->norder++] = t->axis;
  if (t->from != t->axis) s->order[s->norder++] = t->from;
  return s;
}
