/* Places for the axes of a kernel: which are collapsed, which one has the lanes, tile sizes by classes (powers of two),
   digits cut at the borders of the stamps. Changes no bits; sizes of tiles depend on classes of sizes, never on sizes. */
#include "fusion/planner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tiles of whole axes come in few sizes: loops stop where an axis ends, so a long tile costs nothing but its name. What is
   items rather than a loop (up to 32) is finer, so are the lanes of short rows; and chunks that are merged by a tree of whole
   tiles (`step` 2) are not to be many more than there are. */
static int64_t size_class(int64_t n, int64_t least, int step) {
  static const int64_t fine[] = { 1, 4, 16, 32, 64, 128 };
  int64_t p = step > 2 ? 1024 : 256;
  for (int i = 5; i >= 0; i--)
    p = fine[i] >= n && fine[i] >= least ? fine[i] : p;
  while (p < n)
    p *= step;
  return p;
}

static int live(const nvf_cand *k, int a) { return k->axis.at[a].extent != 0; }

/* ---- collapse: two axes that every expression sees as one */
static int joint(uint64_t axes, int a, int b) { return (axes >> a & 1) == (axes >> b & 1); }

static nvf_ix rewritten(nvf_space *s, nvf_ix e, const nvf_ix *to, uint64_t pair, int *ok) {
  if (!(nvf_ix_axes(s, e) & pair))
    return e;
  nvf_ix r = nvf_ix_subst(s, e, to);
  *ok &= nvf_ix_floors(s, r) <= nvf_ix_floors(s, e);
  return r;
}

/* Replaces a and b by one axis in b's place if no expression gets a floor by it. */
static int collapse(nvf_cand *k, int a, int b) {
  nvf_space *s = k->net->space;
  nvb_arena *mem = k->net->arena;
  nvf_prod inner = k->axis.at[b].extent, all = nvf_mul(s, k->axis.at[a].extent, inner);
  uint64_t pair = 1ull << a | 1ull << b;
  nvf_ix to[64], one = nvf_ix_axis(s, b, all);
  int ok = 1;
  for (int i = 0; i < 64; i++)
    to[i] = -1;
  to[a] = nvf_ix_div(s, one, inner);
  to[b] = nvf_ix_mod(s, one, inner);
  for (int i = 0; i < k->inst.n; i++)
    ok &= joint(k->inst.at[i].axes, a, b);
  for (int i = 0; i < k->put.n; i++)
    ok &= joint(k->put.at[i].axes, a, b);
  for (int i = 0; i < k->check.n; i++)
    ok &= !(k->check.at[i].axes & pair);
  if (!ok)
    return 0;
  nvf_ix *at = NVB_NEWN(mem, nvf_ix, k->inst.n + 1), *put = NVB_NEWN(mem, nvf_ix, k->put.n + 1);
  for (int i = 0; i < k->inst.n && ok; i++)
    at[i] = rewritten(s, k->inst.at[i].at, to, pair, &ok);
  for (int i = 0; i < k->put.n && ok; i++)
    put[i] = rewritten(s, k->put.at[i].at, to, pair, &ok);
  nvf_bound **guard = NVB_NEWN(mem, nvf_bound *, k->guard.n + 1), *valid = NVB_NEWN(mem, nvf_bound, k->valid.n + 1);
  for (int g = 0; g < k->guard.n && ok; g++) {
    guard[g] = nvb_dup(mem, k->guard.at[g].b, (size_t)k->guard.at[g].n * sizeof *guard[g]);
    for (int i = 0; i < k->guard.at[g].n; i++)
      guard[g][i].e = rewritten(s, guard[g][i].e, to, pair, &ok);
  }
  for (int i = 0; i < k->valid.n && ok; i++)
    valid[i] = (nvf_bound){ rewritten(s, k->valid.at[i].e, to, pair, &ok), k->valid.at[i].n };
  if (!ok)
    return 0;
  for (int i = 0; i < k->inst.n; i++)
    k->inst.at[i].at = at[i], k->inst.at[i].axes &= ~(1ull << a);
  for (int i = 0; i < k->put.n; i++)
    k->put.at[i].at = put[i], k->put.at[i].axes &= ~(1ull << a);
  for (int g = 0; g < k->guard.n; g++)
    k->guard.at[g].b = guard[g];
  for (int i = 0; i < k->valid.n; i++)
    k->valid.at[i] = valid[i];
  k->axis.at[b] = (nvf_axis){ all, nvf_value(s, all) };
  k->axis.at[a] = (nvf_axis){ 0, 1 };
  k->grid &= ~(1ull << a);
  return 1;
}

void nvf_collapse(nvf_cand *k) {
  for (int again = 1; again;) {
    again = 0;
    for (int a = 0; a < k->axis.n; a++)
      for (int b = 0; b < k->axis.n; b++)
        if (a != b && live(k, a) && live(k, b) && !((k->reduced >> a | k->reduced >> b) & 1) &&
            (k->grid >> a & 1) == (k->grid >> b & 1))
          again |= collapse(k, a, b);
  }
}

/* ---- stamps */

/* The stamps that bind an axis: those of reductions that are not free of order. */
static int stamps(const nvf_cand *k, int axis, nvf_stamp *out, int most) {
  int n = 0;
  for (int i = 0; i < k->inst.n && n < most; i++) {
    const nvf_inst *v = &k->inst.at[i];
    const nvf_node *r = &k->net->node[v->node];
    if (v->kind == NVF_IRED && v->axis == axis && !r->order_free)
      out[n++] = (nvf_stamp){ r->stamp_c, r->stamp_w };
  }
  return n;
}

void nvf_stamp_of(const nvf_cand *k, const nvf_shape *s, const nvf_inst *red, nvf_stamp *out) {
  const nvf_node *n = &k->net->node[red->node];
  *out = (nvf_stamp){ n->stamp_c, n->stamp_w };
  if (n->order_free && !stamps(k, red->axis, out, 1))
    *out = red->axis == s->lane ? (nvf_stamp){ 1024, 128 } : (nvf_stamp){ 64, 1 };
}

static int is_scanned(const nvf_cand *k, int axis) {
  for (int i = 0; i < k->inst.n; i++)
    if (k->inst.at[i].kind == NVF_ISCAN && k->inst.at[i].axis == axis)
      return 1;
  return 0;
}

/* ---- the order of statements */
/* Phases: one ends where a reduction's result is wanted; what a later one alone wants is made there. */
static int phases(const nvf_cand *k, int *when) {
  int n = k->inst.n, *phase = NVB_NEWN(k->net->arena, int, n + 1), last = 0;
  for (int i = 0; i < n; i++) {
    const nvf_inst *v = &k->inst.at[i];
    for (int j = 0; j < v->narg; j++)
      phase[i] = phase[v->arg[j]] > phase[i] ? phase[v->arg[j]] : phase[i];
    phase[i] += nvf_is_red(v);
    last = phase[i] > last ? phase[i] : last;
    when[i] = -1;
  }
  for (int i = n - 1; i >= 0; i--) {
    const nvf_inst *v = &k->inst.at[i];
    int at = nvf_is_red(v) ? phase[i] - 1 : when[i] > phase[i] ? when[i] : phase[i];
    when[i] = at;
    for (int j = 0; j < v->narg; j++)
      if (when[v->arg[j]] < 0 || when[v->arg[j]] > at)
        when[v->arg[j]] = at;
  }
  for (int c = 0; c < k->check.n; c++) /* an index tile and its check come before every load that uses it */
    for (int i = k->check.at[c].inst; i >= 0; i--)
      when[i] = 0;
  return last;
}

static uint64_t loops_of(const nvf_cand *k, const nvf_shape *s, int i) {
  const nvf_inst *v = &k->inst.at[i];
  uint64_t axes = v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0), tile = 0;
  for (int a = 0; a < k->axis.n; a++)
    tile |= s->at[a].tile ? 1ull << a : 0;
  return axes & tile;
}

/* The next of a phase whose operands are there: over the same axes as the last one, else over as few as can be. -1: none. */
static int next_of(const nvf_cand *k, const nvf_shape *s, const int *when, const uint8_t *done, int phase, uint64_t now) {
  int best = -1, fewest = 65;
  for (int i = 0; i < k->inst.n; i++) {
    int ready = when[i] == phase && !done[i];
    for (int j = 0; j < k->inst.at[i].narg && ready; j++)
      ready = done[k->inst.at[i].arg[j]];
    uint64_t axes = loops_of(k, s, i);
    if (ready && (axes == now || k->check.n))
      return i;
    if (ready && __builtin_popcountll(axes) < fewest) {
      fewest = __builtin_popcountll(axes);
      best = i;
    }
  }
  return best;
}

/* Phase by phase, and in each few changes of axes: statements over the same axes that stand together are one loop. */
int *nvf_order(const nvf_cand *k, const nvf_shape *s) {
  int n = k->inst.n, *when = NVB_NEWN(k->net->arena, int, n + 1), *order = NVB_NEWN(k->net->arena, int, n + 1), m = 0;
  uint8_t *done = nvb_get(k->net->arena, (size_t)n + 1);
  int last = phases(k, when);
  uint64_t now = ~0ull;
  for (int p = 0; p <= last; p++)
    for (int i; (i = next_of(k, s, when, done, p, now)) >= 0; now = loops_of(k, s, i)) {
      order[m++] = i;
      done[i] = 1;
    }
  return order;
}

/* ---- the axis with the lanes */
static int may_have_lanes(const nvf_cand *k, int a, int width) {
  nvf_stamp st[64];
  int n = stamps(k, a, st, 64), ok = a >= 0 && live(k, a) && k->axis.at[a].n > 1 && !is_scanned(k, a);
  for (int i = 0; i < n; i++)
    ok &= (st[i].c == 1 && st[i].w == 1) || st[i].w >= width;
  return ok;
}

static int lane_of(const nvf_cand *k, int width) {
  int best = nvf_lane_axis(k);
  int ok = best >= 0 && may_have_lanes(k, best, width);
  int64_t n = ok ? k->axis.at[best].n : 0;
  if (ok && n >= (k->reduced >> best & 1 ? 2 * width : width / 2 + 1))
    return best;
  int other = -1; /* too short, or bound by its stamp: the longest of the others that a block may cut */
  for (int a = 0; a < k->axis.n; a++)
    if (a != best && live(k, a) && (k->grid >> a & 1) && may_have_lanes(k, a, width) &&
        (other < 0 || k->axis.at[a].n > k->axis.at[other].n))
      other = a;
  if (other >= 0 && (!ok || k->axis.at[other].n >= width))
    return other;
  if (ok)
    return best;
  for (int a = 0; a < k->axis.n; a++)
    if (live(k, a) && may_have_lanes(k, a, width) && (other < 0 || k->axis.at[a].n > k->axis.at[other].n))
      other = a;
  return other;
}

/* ---- tiles and digits */
static double tile_elements(const nvf_cand *k, const nvf_shape *s, int except) {
  double n = 1;
  for (int a = 0; a < k->axis.n; a++)
    if (a != except && s->at[a].tile)
      n *= (double)s->at[a].tile;
  return n;
}

/* Elements of the lane axis in one block. Under reductions that a block does in whole: narrow where they are long enough to
   fill the block, and never so wide that units have nothing to do. */
static int64_t lane_tile(const nvf_cand *k, const nvf_shape *s, int a) {
  static const int64_t classes[] = { 64, 256, 1024 };
  int64_t n = k->axis.at[a].n, t = 0;
  double inside = tile_elements(k, s, a), others = 1;
  for (int b = 0; b < k->axis.n; b++)
    if (is_scanned(k, b))
      return 64; /* lines side by side */
  int several = 0;
  for (int b = 0; b < k->axis.n; b++)
    if (b != a && (k->grid >> b & 1) && live(k, b))
      several++, others *= (double)k->axis.at[b].n;
  if (!k->reduced)
    return several && n < 1024 ? n <= 64 ? 64 : n <= 256 ? 256 : 1024 : 4096;
  int bound = 0; /* reductions whose results differ along the lanes, or finishes that every block repeats */
  for (int i = 0; i < k->inst.n; i++)
    bound |= nvf_is_red(&k->inst.at[i]) && (k->inst.at[i].axes >> a & 1);
  if (!bound)
    return several && n < 4096 ? n <= 64 ? 64 : n <= 256 ? 256 : 1024 : 16384;
  if (inside <= 64)
    return 256;
  for (int i = 0; i < 3; i++)
    if (!t || (n > classes[i - 1] && others * (double)((n + classes[i] - 1) / classes[i]) >= k->net->caps->units))
      t = classes[i];
  return t;
}

static void add_digit(char *out, size_t size, int at_front, char place, int64_t n) {
  char one[24];
  size_t have = strlen(out), more;
  if (n <= 1)
    return;
  more = (size_t)snprintf(one, sizeof one, at_front && have ? "%c%lld " : have ? " %c%lld" : "%c%lld", place, (long long)n);
  if (have + more >= size)
    return; /* no axis has so many digits */
  memmove(out + (at_front ? more : 0), out, have + 1);
  memcpy(out + (at_front ? 0 : have), one, more);
  out[have + more] = 0;
}

/* Register items that the axes placed so far ask for: what is straight-line code must stay short. */
static int64_t items_placed(const nvf_cand *k, const nvf_shape *s) {
  int64_t n = 1;
  for (int a = 0; a < k->axis.n; a++)
    for (const char *p = strchr(s->at[a].digits, 'i'); p; p = strchr(p + 1, 'i'))
      n *= strtoll(p + 1, NULL, 10);
  return n;
}

/* Digits of a reduced axis: lowest first, cut at the borders of lane, sequence and chunk. */
static void reduced_digits(const nvf_cand *k, const nvf_shape *s, int a, int width, char *out, size_t size) {
  int64_t p = s->at[a].tile, cut[160], lo = 1, placed = items_placed(k, s);
  nvf_stamp st[64];
  int n = stamps(k, a, st, 62), m = 0;
  if (!n)
    st[n++] = a == s->lane ? (nvf_stamp){ 1024, 128 } : (nvf_stamp){ 64, 1 };
  for (int i = 0; i < n; i++) {
    cut[m++] = st[i].w < p ? st[i].w : p;
    cut[m++] = st[i].c < p ? st[i].c : p;
  }
  cut[m++] = p;
  if (is_scanned(k, a)) { /* runs of 16 are items */
    add_digit(out, size, 1, 'i', 16);
    lo = 16;
  }
  while (lo < p) {
    int64_t hi = p;
    for (int i = 0; i < m; i++)
      hi = cut[i] > lo && cut[i] < hi ? cut[i] : hi;
    int64_t w = hi / lo;
    if (lo == 1 && a == s->lane) {
      int64_t l = w < width ? w : width;
      add_digit(out, size, 1, 'l', l);
      w /= l;
      if (w > 1 && hi <= 128 && w <= 16) {
        add_digit(out, size, 1, 'i', w);
        w = 1;
      }
    }
    int items = a != s->lane && p * placed <= 32;
    int seq = 0;
    for (int i = 0; i < n; i++)
      seq |= st[i].w <= lo && hi <= st[i].c;
    if (seq && !items && a != s->lane && w >= 16 && placed <= 8 && !is_scanned(k, a)) { /* rows in sequence: a few to each visit of an accumulator */
      add_digit(out, size, 1, 'i', 4);
      w /= 4;
    }
    add_digit(out, size, 1, items ? 'i' : 'I', w);
    lo = hi;
  }
  if (!*out)
    snprintf(out, size, "i1");
}

static void digits_of(const nvf_cand *k, nvf_shape *s, int a, int width) {
  char *out = s->at[a].digits;
  int64_t p = s->at[a].tile;
  if (k->reduced >> a & 1)
    reduced_digits(k, s, a, width, out, 48);
  else if (a == s->lane) {
    add_digit(out, 48, 0, 'I', p / width);
    add_digit(out, 48, 0, 'l', width);
  } else
    add_digit(out, 48, 0, 'I', p);
  if (!*out)
    snprintf(out, 48, "i1");
}

/* Elementwise kernels with a short lane axis take several of the next axis into a block. */
static void stack_rows(const nvf_cand *k, nvf_shape *s) {
  double have = tile_elements(k, s, -1);
  int best = -1;
  for (int a = 0; a < k->axis.n; a++)
    if (live(k, a) && (k->grid >> a & 1) && !s->at[a].tile && (best < 0 || k->axis.at[a].n > k->axis.at[best].n))
      best = a;
  if (best < 0 || k->reduced || have > 1024)
    return;
  s->at[best] = (nvf_place){ .tile = (int64_t)(2048 / have), .cut = 1 };
}

nvf_shape *nvf_shape_of(nvf_cand *k) {
  nvb_arena *a = k->net->arena;
  int width = k->net->caps->width;
  nvf_shape *s = NVB_NEW(a, nvf_shape);
  s->at = NVB_NEWN(a, nvf_place, k->axis.n + 1);
  s->lane = lane_of(k, width);
  for (int i = 0; i < k->axis.n; i++)
    if (live(k, i) && !(k->grid >> i & 1)) {
      nvf_prod e = k->axis.at[i].extent;
      int exact = nvf_quot(k->net->space, e, nvf_int(k->net->space, nvf_factor(k->net->space, e))) == 0; /* a block of a split */
      s->at[i].tile = exact ? k->axis.at[i].n : size_class(k->axis.at[i].n, i == s->lane ? 4 * width : is_scanned(k, i) ? 16 : 1,
                                                            (k->reduced >> i & 1) && i != s->lane && !is_scanned(k, i) ? 2 : 8);
    }
  if (s->lane >= 0 && (k->grid >> s->lane & 1))
    s->at[s->lane] = (nvf_place){ .tile = lane_tile(k, s, s->lane), .cut = 1 };
  stack_rows(k, s);
  if (s->lane >= 0) /* first: its items leave the others what straight-line code may still grow */
    digits_of(k, s, s->lane, width);
  for (int i = 0; i < k->axis.n; i++)
    if (s->at[i].tile && i != s->lane) {
      digits_of(k, s, i, width);
      s->order[s->norder++] = i;
    }
  if (s->lane >= 0)
    s->order[s->norder++] = s->lane;
  return s;
}
