/* Plans of Fourier transforms: decides into which passes a length is divided, or that it becomes a convolution
   (Bluestein's algorithm), and makes the twiddle factors, computed in long double and rounded once. Plans that nobody
   holds stay until there are too many. */
#include <math.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "dispatch/fft_code.h"

enum { KEEP = 256, KEEP_BYTES = 64 << 20, HEAD = (sizeof(nvd_fft) + 63) / 64 * 64 };
#define QUARTER_TURN 1.570796326794896619231321691639751442L

/* ---- roots of unity */
/* exp(-2 pi i j / n) for all j, of those between 0 and an eighth of a turn: at[a] is exp(i a unit quarter turns). */
typedef struct roots { int64_t n, unit; long double *at; } roots;

static int make_roots(roots *r, int64_t n) {
  *r = (roots){ .n = n, .unit = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1 };
  int64_t count = n / 2 / r->unit + 1;
  r->at = nvb_alloc(sizeof *r->at * (size_t)(2 * count));
  if (!r->at) return 0;
  for (int64_t i = 0; i < count; i++)
    sincosl((long double)(i * r->unit) * QUARTER_TURN / (long double)n, &r->at[2 * i + 1], &r->at[2 * i]);
  return 1;
}

/* Writes the root's parts; the angle is brought to an eighth of a turn in integers, n of which are a quarter turn. */
static void root_of(const roots *r, int64_t j, long double *re, long double *im) {
  int64_t a = 4 * (j % r->n), n = r->n;
  int below = a > 2 * n, left, swap;
  if (below) a = 4 * n - a;
  if ((left = a > n)) a = 2 * n - a;
  if ((swap = 2 * a > n)) a = n - a;
  const long double *at = &r->at[2 * (a / r->unit)];
  long double c = at[swap], s = at[!swap];
  *re = left ? -c : c;
  *im = below ? s : -s;
}

/* Writes a root as number i of pairs, or of planes whose imaginary parts lie `apart` behind. */
typedef struct writer { void *to; int wide; int64_t step, apart; } writer;
static void write_root(const writer *w, int64_t i, const roots *r, int64_t j) {
  long double re, im;
  root_of(r, j, &re, &im);
  if (w->wide) ((double *)w->to)[i * w->step] = (double)re, ((double *)w->to)[i * w->step + w->apart] = (double)im;
  else ((float *)w->to)[i * w->step] = (float)re, ((float *)w->to)[i * w->step + w->apart] = (float)im;
}

/* ---- the plan's memory: laid out in a first run, where there is none, and filled in a second */
typedef struct layout { char *base; int64_t bytes; int wide; } layout;

static void *take_numbers(layout *l, int64_t n) {
  int64_t at = l->bytes;
  l->bytes += (n * (l->wide ? 8 : 4) + 63) / 64 * 64;
  return l->base ? l->base + at : NULL;
}

/* ---- passes */
static const int radices[] = { 8, 13, 11, 7, 5, 4, 3, 2 };
enum { NRADICES = sizeof radices / sizeof *radices };

static void add_pass(nvd_passes *p, int radix) {
  const nvd_pass *last = p->npass ? &p->pass[p->npass - 1] : &(nvd_pass){ .radix = 1, .m = p->n, .s = 1 };
  p->pass[p->npass] = (nvd_pass){ .radix = radix, .m = last->m / radix, .s = last->s * last->radix };
  p->npass++;
}

/* Returns 0 if a prime is too great. Those without code of their own cost p operations for each point, and their lanes
   are rows. */
static int choose_passes(nvd_passes *p, int64_t n) {
  enum { FEW = 4096 };
  *p = (nvd_passes){ .n = n };
  for (int i = 0; i < NRADICES; i++)
    for (; n % radices[i] == 0 && !(radices[i] == 8 && n % 32 == 16); n /= radices[i]) add_pass(p, radices[i]);
  for (int prime = NVD_UNROLLED + 4; prime <= NVD_PRIME && p->n <= FEW; prime += 2)
    for (; n % prime == 0; n /= prime) add_pass(p, prime);
  return n == 1;
}

static void make_twiddles(layout *l, nvd_pass *p, const roots *w) {
  int64_t r = p->radix, unit = w ? w->n / (p->m * r) : 0;
  writer pairs = { take_numbers(l, p->m * (r - 1) * 2), l->wide, 2, 1 }, root = { NULL, l->wide, 2, 1 };
  if (r % 2) root.to = take_numbers(l, 2 * r);
  p->twiddle = pairs.to, p->root = root.to;
  for (int64_t i = 0; w && i < p->m * (r - 1); i++) write_root(&pairs, i, w, i / (r - 1) * (i % (r - 1) + 1) * unit);
  for (int64_t j = 0; w && r % 2 && j < r; j++) write_root(&root, j, w, j * (w->n / r));
}

static void spread_twiddles(layout *l, nvd_pass *p, const roots *w) {
  int64_t r = p->radix, n = p->m * p->s, size = l->wide ? 8 : 4, unit = w ? w->n / (p->m * r) : 0;
  char *to = take_numbers(l, 2 * n * (r - 1));
  p->spread = to;
  for (int64_t k = 1; w && k < r; k++) {
    writer plane = { to + (k - 1) * 2 * n * size, l->wide, 1, n };
    for (int64_t i = 0; i < n; i++) write_root(&plane, i, w, i / p->s * k * unit);
  }
}

static void lay_out_passes(layout *l, nvd_passes *p, const roots *w) {
  for (int i = 0; i < p->npass; i++) {
    make_twiddles(l, &p->pass[i], w);
    if (p->pass[i].s < NVD_SPREAD && p->pass[i].radix <= NVD_UNROLLED) spread_twiddles(l, &p->pass[i], w);
  }
}

/* ---- Bluestein's algorithm */
/* The least power of two, or 3 or 5 times one, that is not below n. */
static int64_t convolution_of(int64_t n) {
  int64_t best = INT64_MAX;
  for (int odd = 1; odd <= 5; odd += 2) {
    int64_t m = odd;
    while (m < n) m *= 2;
    best = m < best ? m : best;
  }
  return best;
}

/* w: the roots of 2 n, so that exp(-i pi j^2 / n) is number j^2. */
static void write_chirp(void *to, int wide, int64_t n, const roots *w) {
  writer plane = { to, wide, 1, n };
  for (int64_t j = 0; j < n; j++) write_root(&plane, j, w, (int64_t)((uint64_t)j * (uint64_t)j % (uint64_t)(2 * n)));
}

static void write_plane(void *to, int wide, int64_t n, const double *from) {
  for (int64_t i = 0; i < n; i++)
    if (wide) ((double *)to)[i] = from[i];
    else ((float *)to)[i] = (float)from[i];
}

/* The transform of the chirp's conjugate, which is even and as long as the convolution, by the passes of doubles. */
static int make_filter(void *to, int wide, int64_t n, const roots *w, const nvd_passes *p) {
  int64_t m = p->n;
  double *scratch = nvb_calloc((size_t)(4 * m + 2 * n), sizeof *scratch), *chirp = scratch + 4 * m;
  if (!scratch) return 0;
  nvd_planes x = { scratch, scratch + m }, y = { scratch + 2 * m, scratch + 3 * m };
  write_chirp(chirp, 1, n, w);
  for (int64_t j = 0; j < n; j++) {
    int64_t back = j ? m - j : 0;
    ((double *)x.re)[j] = ((double *)x.re)[back] = chirp[j] / (double)m;
    ((double *)x.im)[j] = ((double *)x.im)[back] = -chirp[n + j] / (double)m;
  }
  nvd_planes r = nvd_fft_transform(&(nvd_fft_team){ nvd_fft_code_of_few(), 1, 1 }, p, x, y);
  write_plane(to, wide, m, r.re);
  write_plane((char *)to + m * (wide ? 8 : 4), wide, m, r.im);
  nvb_free(scratch);
  return 1;
}

/* ---- plans */
typedef struct tables { roots direct, chirp, split; } tables;

static void free_tables(tables *t) {
  nvb_free(t->direct.at);
  nvb_free(t->chirp.at);
  nvb_free(t->split.at);
}

static int make_tables(tables *t, const nvd_fft *f) {
  *t = (tables){ .split = { 0 } };
  return make_roots(&t->direct, f->direct.n) && (f->direct.n == f->points || make_roots(&t->chirp, 2 * f->points)) &&
         (f->points == f->n || make_roots(&t->split, f->n));
}

/* exact: the convolution's passes of doubles */
static int lay_out(layout *l, nvd_fft *f, const tables *t, const nvd_fft *exact) {
  int64_t m = f->direct.n;
  lay_out_passes(l, &f->direct, t ? &t->direct : NULL);
  if (f->points != f->n) {
    writer plane = { take_numbers(l, 2 * (f->n / 4 + 1)), l->wide, 1, f->n / 4 + 1 };
    f->split = plane.to;
    for (int64_t k = 0; t && k <= f->n / 4; k++) write_root(&plane, k, &t->split, k);
  }
  if (m == f->points) return 1;
  void *chirp = take_numbers(l, 2 * f->points), *filter = take_numbers(l, 2 * m);
  f->chirp = chirp, f->filter = filter;
  if (t) write_chirp(chirp, f->wide, f->points, &t->chirp);
  return !t || make_filter(filter, f->wide, f->points, &t->chirp, exact ? &exact->direct : &f->direct);
}

static nvd_fft *make_plan(nvg_dft kind, int64_t n, int wide) {
  int halved = (kind == NVG_DFT_REAL || kind == NVG_DFT_TO_REAL) && n % 2 == 0;
  nvd_fft plan = { .kind = kind, .n = n, .points = halved ? n / 2 : n, .wide = wide };
  int smooth = choose_passes(&plan.direct, plan.points);
  if (!smooth) choose_passes(&plan.direct, convolution_of(2 * plan.points - 1));
  layout l = { .wide = wide };
  lay_out(&l, &plan, NULL, NULL);
  tables t;
  const nvd_fft *exact = smooth || wide ? NULL : nvd_fft_get(NVG_DFT_FORWARD, plan.direct.n, 1);
  if (!smooth && !wide && !exact) return NULL;
  nvd_fft *f = make_tables(&t, &plan) ? nvb_alloc_aligned(64, (size_t)(l.bytes + HEAD)) : NULL;
  if (f) {
    *f = plan;
    f->item.bytes = l.bytes;
    layout fill = { .base = (char *)f + HEAD, .wide = wide };
    if (!lay_out(&fill, f, &t, exact)) nvb_free(f), f = NULL;
  }
  nvd_fft_release(exact);
  free_tables(&t);
  return f;
}

static void destroy_plan(nvd_lru_item *item) { nvb_free(item); }
static nvd_lru kept = NVD_LRU(TRANSFORMS, KEEP, KEEP_BYTES, destroy_plan);
NVB_HOLD_AT_FORK(kept.lock);

const nvd_fft *nvd_fft_get(nvg_dft kind, int64_t n, int wide) {
  if (kind == NVG_DFT_INVERSE) kind = NVG_DFT_FORWARD;
  int64_t what[3] = { kind, n, wide };
  nvb_hash key = nvb_hash_bytes(what, sizeof what);
  nvd_lru_item *item = nvd_lru_get(&kept, key);
  if (item) return (const nvd_fft *)item;
  nvd_fft *f = make_plan(kind, n, wide);
  if (!f) return NULL;
  f->item.key = key;
  return (const nvd_fft *)nvd_lru_insert(&kept, &f->item);
}

void nvd_fft_release(const nvd_fft *f) { nvd_lru_release(&kept, f ? (nvd_lru_item *)(uintptr_t)&f->item : NULL); }
