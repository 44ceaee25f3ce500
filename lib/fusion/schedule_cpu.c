/* The CPU schedule: it chooses the axis of the vector lanes, tile sizes by classes (powers of two), digits that end at
   the borders of the reduction orders, and the loops around them. */
#include "frag/dtype.h"
#include "fusion/schedule.h"

/* The tile size of a whole axis, of which there are few classes: loops end where the axis ends, so a long tile costs no
   time. Classes are finer for axes that are items rather than a loop (up to 32) and for the lanes of short rows; with
   `step` 2 they are powers of two, for work that is done for whole tiles (chunks that a tree merges, runs of a
   scan). */
static int64_t size_class(int64_t n, int64_t least, int step) {
  static const int64_t fine[] = { 1, 4, 16, 32, 64, 128 };
  int64_t p = step > 2 ? 1024 : 256;
  for (int i = 5; i >= 0; i--) p = fine[i] >= n && fine[i] >= least ? fine[i] : p;
  while (p < n) p *= step;
  return p;
}

/* ---- the axis with the lanes */
static int may_have_lanes(const nvf_fusion *k, int a, int width) {
  nvf_red_order st[64];
  int n = nvf_red_orders(k, a, st, 64), ok = a >= 0 && nvf_live(k, a) && k->axis.at[a].n > 1 && !nvf_scanned(k, a);
  for (int i = 0; i < n; i++) ok &= (st[i].c == 1 && st[i].w == 1) || st[i].w >= width;
  return ok;
}

/* The reduced axis that gets the lanes in place of a contiguous axis of few columns, whose vectors would be mostly
   empty; -1 if there is none. It is long, since its elements are loaded one by one, and there are few columns, since
   each is read by itself (AVX2, one thread, us, sums of 10^5 rows of 2, 3, 5 and 8 float32: 1719, 1251, 1569, 747 with
   lanes along the row, 62, 137, 205, 561 down the columns; of 8 float64 660 and 1045). */
static int lanes_down_columns(const nvf_fusion *k, int columns, int width) {
  enum { LONG = 64 };
  int found = -1;
  if (k->reduced >> columns & 1 || k->axis.at[columns].n > NVF_FEW_COLUMNS) return -1;
  for (int a = 0; a < k->axis.n; a++)
    if (nvf_live(k, a) && (k->reduced >> a & 1) && k->axis.at[a].n >= LONG * width && may_have_lanes(k, a, width))
      found = a;
  return found;
}

static int lane_of(const nvf_fusion *k, int width) {
  enum { LINE = 64 };
  int best = nvf_lane_axis(k);
  int ok = best >= 0 && may_have_lanes(k, best, width);
  int64_t n = ok ? k->axis.at[best].n : 0;
  int down = ok ? lanes_down_columns(k, best, width) : -1;
  if (down >= 0) return down;
  if (ok && n >= (k->reduced >> best & 1 ? 2 * width : width / 2 + 1)) return best;
  /* the contiguous axis is too short, or bound by its reduction order: take the longest other grid axis */
  int other = -1;
  /* fewer lines than lanes are scanned one after the other */
  int64_t fewest = best >= 0 && nvf_scanned(k, best) ? width : 1;
  for (int a = 0; a < k->axis.n; a++)
    if (a != best && nvf_live(k, a) && (k->grid >> a & 1) && k->axis.at[a].n >= fewest && may_have_lanes(k, a, width) &&
        (other < 0 || k->axis.at[a].n > k->axis.at[other].n))
      other = a;
  if (other >= 0 && (!ok || k->axis.at[other].n >= width)) return other;
  if (ok) return best;
  for (int a = 0; a < k->axis.n; a++)
    if (nvf_live(k, a) && k->axis.at[a].n >= fewest && may_have_lanes(k, a, width) &&
        (other < 0 || k->axis.at[a].n > k->axis.at[other].n))
      other = a;
  /* one long line: its elements are loaded, computed and stored as vectors, and scanned in between */
  return other < 0 && best >= 0 && nvf_scanned(k, best) && k->axis.at[best].n >= LINE ? best : other;
}

static int is_read_along(const nvf_fusion *k, int a) {
  int found = 0;
  for (int i = 0; i < k->expr.n; i++) found |= k->expr.at[i].kind == NVF_ILOAD && nvf_is_one(k, k->expr.at[i].at, a);
  return found;
}

static int is_apart(const nvf_fusion *k, int a, uint64_t lanes) { /* no layout has the axis and one of these */
  int both = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    uint64_t axes = v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0);
    both |= (axes >> a & 1) && (axes & lanes);
  }
  for (int i = 0; i < k->put.n; i++) both |= (k->put.at[i].axes >> a & 1) && (k->put.at[i].axes & lanes);
  for (int i = 0; i < k->check.n; i++) both |= (k->check.at[i].axes >> a & 1) && (k->check.at[i].axes & lanes);
  return !both;
}

/* Other whole axes that get lanes: rows of further operands, or of the same operand in another shape (the difference of
   two logsumexp of 32768 x 500: 148 -> 39 ms; rows of 17000 by their mean and deviation: 104 -> 52). */
static uint64_t further_lanes(const nvf_fusion *k, int lane, int width) {
  uint64_t lanes = lane >= 0 ? 1ull << lane : 0;
  for (int a = 0; a < k->axis.n && lane >= 0; a++)
    if (!((lanes | k->grid) >> a & 1) && k->axis.at[a].n >= 2 * width && may_have_lanes(k, a, width) &&
        is_read_along(k, a) && is_apart(k, a, lanes))
      lanes |= 1ull << a;
  return lane >= 0 ? lanes & ~(1ull << lane) : 0;
}

uint64_t nvf_lanes_cpu(const nvf_fusion *k) {
  int width = k->graph->caps->width, lane = lane_of(k, width);
  return lane < 0 ? 0 : 1ull << lane | further_lanes(k, lane, width);
}

/* ---- tiles and digits */
static double tile_elements(const nvf_fusion *k, const nvf_tiling *s, int except) {
  double n = 1;
  for (int a = 0; a < k->axis.n; a++)
    if (a != except && s->at[a].tile) n *= (double)s->at[a].tile;
  return n;
}

/* Elements of the lane axis in one block. If the block reduces other axes, it is narrow where these are long enough to
   fill the block, and never so wide that cores are idle. */
static int64_t lane_tile(const nvf_fusion *k, const nvf_tiling *s, int a, int width) {
  static const int64_t classes[] = { 64, 256, 1024 };
  int64_t n = k->axis.at[a].n, t = 0;
  double inside = tile_elements(k, s, a), others = 1;
  for (int b = 0; b < k->axis.n; b++)
    if (nvf_scanned(k, b)) return b == s->transposed ? k->graph->caps->width : 64; /* lines as lanes */
  int several = 0;
  for (int b = 0; b < k->axis.n; b++)
    if (b != a && (k->grid >> b & 1) && nvf_live(k, b)) several++, others *= (double)k->axis.at[b].n;
  /* a block tests all of its indices, also behind the end of a short axis (10: of 4096 3.0 us, of 64 0.1 us) */
  int narrow = several || k->check.n;
  if (!k->reduced) return narrow && n < 1024 ? n <= 64 ? 64 : n <= 256 ? 256 : 1024 : 4096;
  int bound = 0; /* reductions whose results differ along the lanes, or finishes that every block repeats */
  for (int i = 0; i < k->expr.n; i++) bound |= nvf_is_red(&k->expr.at[i]) && (k->expr.at[i].axes >> a & 1);
  if (!bound) return several && n < 4096 ? n <= 64 ? 64 : n <= 256 ? 256 : 1024 : 16384;
  if (inside <= 64) return 256;
  if (n <= 2 * width) return n <= width ? width : 2 * width; /* items; wider tiles leave most accumulators unused */
  for (int i = 0; i < 3 && (!i || inside * (double)classes[i] <= NVF_TILE_SURE); i++)
    if (!t || (n > classes[i - 1] && others * (double)((n + classes[i] - 1) / classes[i]) >= k->graph->caps->cores))
      t = classes[i];
  return t;
}

/* The same, or the knob's value: a power of two of whole vectors. */
static int64_t block_of(const nvf_fusion *k, const nvf_tiling *s, int width) {
  int64_t knob = nvf_knob_value(k, NVF_KBLOCK, 0), n = width;
  double others = tile_elements(k, s, s->lane);
  while (n < knob && (double)n * others < 1 << 22) n *= 2;
  return knob ? n : lane_tile(k, s, s->lane, width);
}

/* Register items of the axes placed so far, whose product limits the unrolled code. */
static int64_t items_placed(const nvf_fusion *k, const nvf_tiling *s) {
  int64_t n = 1;
  for (int a = 0; a < k->axis.n; a++)
    for (int i = 0; i < s->at[a].digits.n; i++) n *= s->at[a].digits.d[i].level == 'i' ? s->at[a].digits.d[i].n : 1;
  return n;
}

static int64_t items_of(const nvf_digits *d) {
  int64_t n = 1;
  for (int i = 0; i < d->n; i++) n *= d->d[i].level == 'i' ? d->d[i].n : 1;
  return n;
}

/* Simple operations of one access by a vector: lanes that are not contiguous in memory access it one by one, so several
   such accesses are in a loop (AVX2: three sums of products of columns take 37 us for 20000 rows as items and as loops,
   and LLVM takes 577 and 73 ms). */
static int64_t access_work(const nvf_fusion *k, int lane, nvf_ix at, uint64_t axes) {
  enum { APART = 64 };
  return lane >= 0 && (axes >> lane & 1) && !nvf_is_one(k, at, lane) ? APART : 1;
}
/* Simple operations for each item of the axis. More than a few reductions along it have no items: LLVM takes 45 ms for
   each tree of items, 12 for one in loops. */
static int64_t item_work(const nvf_fusion *k, int lane, int a) {
  enum { FEW = 2, LOOP = 32 };
  int64_t n = 0, reductions = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    const nvg_frag *f = v->kind == NVF_IMAP || nvf_is_red(v) ? k->graph->node[v->node].frag : NULL;
    if (v->axes >> a & 1) n += v->kind == NVF_ILOAD ? access_work(k, lane, v->at, v->axes) : f ? most(f->cost, 1) : 1;
  }
  for (int i = 0; i < k->put.n; i++)
    if (k->put.at[i].axes >> a & 1) n += access_work(k, lane, k->put.at[i].at, k->put.at[i].axes);
  for (int i = 0; i < k->expr.n; i++) reductions += nvf_is_red(&k->expr.at[i]) && k->expr.at[i].axis == a;
  return n + (reductions > FEW ? (reductions - FEW) * LOOP : 0);
}

/* Operations of the items of one iteration, at most: all are unrolled. */
enum { STRAIGHT = 2048 };

/* Whether the accumulators of sums along the axis are in memory, of all chunks at once, because the kernel has too much
   work beside the sums for their lanes to be items; those of a few chunks stay in the nearest cache. */
int nvf_sums_in_memory(const nvf_fusion *k, int a) {
  enum { NEAR = 4096 };
  nvf_red_order st[64];
  int n = nvf_red_orders(k, a, st, 64), lane = lane_of(k, k->graph->caps->width);
  int64_t vectors = 1, sums = 0;
  for (int i = 0; i < n; i++) {
    vectors = most(vectors, st[i].w / k->graph->caps->width);
    sums += st[i].w * (k->axis.at[a].n / st[i].c);
  }
  return a == lane && sums > NEAR && vectors * item_work(k, lane, a) > STRAIGHT;
}

static int runs_along(const nvf_fusion *k, int a) { /* whether a store is contiguous along the axis */
  for (int i = 0; i < k->put.n; i++)
    if (nvf_is_one(k, k->put.at[i].at, a)) return 1;
  return 0;
}

/* Whether each coordinate of the axis has accumulators of its own along the lanes, for a reduction of a long axis. They
   are in memory during the reduction: taken one coordinate after the other they stay in the L1 cache, and the few rows
   that are read at a time are sequential streams (mean and variance of columns, with 512-bit vectors: 16384 x 1024 5.8
   -> 3.7 ms, 512 x 32768 426 -> 4.4). */
static int has_sums(const nvf_fusion *k, const nvf_tiling *s, int a) {
  enum { LONG = 32 };
  uint64_t lanes = s->lanes | (s->lane >= 0 ? 1ull << s->lane : 0);
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (nvf_is_red(v) && (v->axes >> a & 1) && (v->axes & lanes) && s->at[v->axis].tile > LONG) return 1;
  }
  return 0;
}

/* Items in sequence of an argmax or argmin, as many as registers hold: most iterations only find that the block has no
   new extremum. */
static int64_t looked_at(const nvf_fusion *k, int a, int64_t items, int width) {
  enum { REGISTERS = 8 };
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind == NVF_IRED && v->axis == a && v->narg == 2 && k->graph->node[v->node].order_free) {
      int64_t bytes = items * width * nvg_size(k->graph->node[k->expr.at[v->arg[0]].node].dtype);
      int64_t rows = REGISTERS * 4 * k->graph->caps->width / bytes;
      return rows > 4 ? 4 : rows > 1 ? rows : 1;
    }
  }
  return 1;
}

/* Digits of a reduced axis, which end at the borders of lane, sequence and chunk. A digit is items if the unrolled code
   stays short. */
static void reduced_digits(const nvf_fusion *k, const nvf_tiling *s, int a, int width, nvf_digits *d) {
  int64_t p = s->at[a].tile, lo = 1, placed = items_placed(k, s), most_items = STRAIGHT / item_work(k, s->lane, a);
  nvf_red_order st[64];
  int n = nvf_red_orders_of(k, s, a, st, 64), seq, scanned = nvf_scanned(k, a), rows = 0;
  if (scanned) { /* runs of 16 are items if the store is contiguous; else each row is stored before the next */
    int lanes = nvf_has_lanes(s, a) ? width : 1, run = a == s->transposed || width > 16 ? width : 16;
    rows = 16 * placed > most_items || !runs_along(k, a);
    if (lanes > 1) nvf_digit_add(d, 'l', lanes, 0);
    nvf_digit_add(d, a == s->transposed || !rows ? 'i' : 'I', run / lanes, 0);
    lo = run;
  }
  for (int64_t hi; lo < p; lo = hi) {
    hi = nvf_order_border(st, n, lo, p, &seq);
    int64_t w = hi / lo;
    if (lo == 1 && nvf_has_lanes(s, a)) {
      int64_t l = w < width ? w : width;
      nvf_digit_add(d, 'l', l, 0);
      w /= l;
      if (w > 1 && hi <= 128 && w <= 16) {
        nvf_digit_add(d, w * placed <= most_items ? 'i' : 'I', w, 0);
        w = 1;
      }
    }
    int items = !nvf_has_lanes(s, a) && !rows && p * placed <= least(most_items, 32) && !has_sums(k, s, a);
    int64_t more = seq && nvf_has_lanes(s, a) ? looked_at(k, a, items_of(d), width) : 1;
    if (more > 1 && w >= more) {
      nvf_digit_add(d, 'i', more, 0);
      w /= more;
    }
    /* rows in sequence: an accumulator adds four of them at a time */
    if (seq && !items && !nvf_has_lanes(s, a) && w >= 16 && placed <= least(most_items / 4, 8) && !scanned) {
      nvf_digit_add(d, 'i', 4, 0);
      w /= 4;
    }
    nvf_digit_add(d, items ? 'i' : 'I', w, 0);
  }
}

static void digits_of(const nvf_fusion *k, nvf_tiling *s, int a, int width) {
  nvf_placement *at = &s->at[a];
  nvf_digits *d = &at->digits, *x = &at->transposed;
  if (k->reduced >> a & 1) {
    reduced_digits(k, s, a, width, d);
    if (a == s->transposed) {
      nvf_digit_add(x, 'l', width, 0);
      nvf_digit_add(x, 'I', at->tile / width, 0);
    }
  } else {
    char low = nvf_has_lanes(s, a) ? 'l' : a == s->transposed ? 'i' : 0;
    if (low) nvf_digit_add(d, low, width, 0);
    nvf_digit_add(d, low && k->reduced && at->tile <= 2 * width ? 'i' : 'I', low ? at->tile / width : at->tile, 0);
    if (low && s->transposed >= 0) { /* transposed accesses: items and lanes swap */
      nvf_digit_add(x, nvf_has_lanes(s, a) ? 'i' : 'l', width, 0);
      nvf_digit_add(x, 'I', at->tile / width, 0);
    }
  }
  *x = x->n ? *x : *d;
}

/* Gives blocks of elementwise kernels with a short lane axis several coordinates of the longest grid axis, so that the
   work of a block outweighs what is done once for it (divisions, loop ends, guards of whole rows). */
static void stack_rows(const nvf_fusion *k, nvf_tiling *s, int width) {
  enum { VECTORS = 1024 };
  double have = tile_elements(k, s, -1);
  int best = nvf_longest_grid(k, s);
  if (best >= 0 && !k->reduced && have <= 128 * width)
    s->at[best] = (nvf_placement){ .tile = (int64_t)(VECTORS * width / have), .tiled = 1 };
}

/* Whether a block of an elementwise kernel has all of a short grid axis, because some map lacks that axis and would be
   recomputed in each block (a gain by pixel of a picture with three channels). */
int nvf_is_kept_whole(const nvf_fusion *k, int a, int lane) {
  enum { SHORT = 16 };
  int apart = 0;
  for (int i = 0; i < k->expr.n; i++)
    apart |= k->expr.at[i].kind == NVF_IMAP && k->expr.at[i].axes && !(k->expr.at[i].axes >> a & 1);
  return apart && a != lane && !k->reduced && !k->check.n && (k->grid >> a & 1) && k->axis.at[a].n <= SHORT;
}

/* Whether only scans run along the axis, so that the kernel text may walk it. */
static int is_scanned_alone(const nvf_fusion *k, int a) {
  int others = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    others |= (v->kind == NVF_IRED && ((v->axes | 1ull << v->axis) >> a & 1)) || (v->kind == NVF_ISCAN && v->axis != a);
  }
  return nvf_scanned(k, a) && !others;
}

/* The tile of an axis that a block has as a whole. An axis with only scans is walked in tiles that stay in the cache
   from load to store (3 rows of 2^22 along the columns: 545 -> 16 ms; 4 lines of 2^22: 905 -> 190 ms, and no scratch of
   1 GB). */
static nvf_placement whole_axis(const nvf_fusion *k, int a, int is_lane, int width) {
  enum { ROUND = 1024 };
  int64_t n = k->axis.at[a].n;
  int scanned = nvf_scanned(k, a);
  if (nvf_is_exact(k, a)) return (nvf_placement){ .tile = n };
  if (n > ROUND && is_scanned_alone(k, a)) return (nvf_placement){ .tile = ROUND, .walk = 1 };
  int64_t least = is_lane ? 4 * width : scanned ? NVF_SCAN_RUN : 1;
  int64_t tile = is_lane && n <= width ? width : size_class(n, least, (k->reduced >> a & 1) && !is_lane ? 2 : 8);
  nvf_rely(k->graph->space, (nvf_fact){ NVF_AT_MOST, k->axis.at[a].extent, 0, tile });
  return (nvf_placement){ .tile = tile };
}

/* The axis along which scans run, if nothing else is reduced. Contiguous lines are loaded as they lie, as many at a
   time as there are lanes, and transposed in registers: gathers are several times slower (float32, one thread, 4096 x
   4096: 65 -> 14 ms, 16 lines of 2^20: 80 -> 14, 64 x 1024: 0.24 -> 0.04; 4 lines of 2^22 one after the other: 112 ->
   35). */
static uint64_t scanned_only(const nvf_fusion *k) {
  uint64_t axes = k->reduced;
  return !(axes & (axes - 1)) && nvf_scanned(k, __builtin_ctzll(axes)) ? axes : 0;
}

/* Whether the expression is only the index operand of an argmax or argmin of a long row. Few indices are used, so the
   values alone decide the width of vectors. */
static int is_place(const nvf_fusion *k, int i, int row) {
  enum { LONG = 512 };
  int found = 0;
  for (int u = i + 1; u < k->expr.n; u++)
    for (int j = 0; j < k->expr.at[u].narg; j++) {
      const nvf_iexpr *v = &k->expr.at[u];
      if (v->arg[j] != i) continue;
      found = ((v->kind == NVF_IMAP || v->kind == NVF_ISAME) && v->narg == 1 && is_place(k, u, row)) ||
              (v->kind == NVF_IRED && j == 1 && v->axis == row && k->axis.at[row].n >= LONG &&
               k->graph->node[v->node].order_free);
      if (!found) return 0;
    }
  return found;
}

/* Vectors of float32 that elementwise work takes at a time. A long chain of operations that wait for each other takes
   two, so that those of the second run in between (AVX2, one thread, ns an element with one vector and with two:
   Black-Scholes 4.6 and 3.6, pow 2.1 and 1.7, sinh 0.99 and 0.82, tanh 0.62 and 0.56; exp and log, of cost 20, gain
   nothing). What is cheap and stores bytes takes four, whose results are one vector (131,072 float32, us with one and
   with four: isfinite 19.8 and 14.1, equal 28.6 and 24.5). */
static int vectors_at_once(const nvf_fusion *k, const nvf_tiling *s) {
  enum { LONG = 24, VECTORS = 8 };
  int cost = 0, stored = 1;
  if (k->reduced || s->lane < 0 || k->axis.at[s->lane].n < VECTORS * k->graph->caps->width) return 1;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (v->kind == NVF_IMAP && (v->axes >> s->lane & 1)) cost += k->graph->node[v->node].frag->cost;
  }
  for (int i = 0; i < k->put.n; i++) stored = (int)most(stored, nvg_size(k->graph->node[k->put.at[i].node].dtype));
  return cost >= LONG ? 2 : stored == 1 ? 4 : 1;
}

/* Vectors of float32 that elementwise work with draws of random bits takes at a time: as many as elements share a
   counter, so that the counters of an iteration fill two vectors of 64-bit words, each a chain of operations that wait
   for each other (AVX2, one thread, ns an element with one vector and with so many: uniform float32 2.0 and 1.1,
   float64 2.5 and 1.9, normal float32 4.8 and 2.6). */
static int vectors_of_counters(const nvf_fusion *k, const nvf_tiling *s) {
  int vectors = k->reduced || s->lane < 0 ? 1 : nvf_drawn_together(k, s->lane);
  return vectors == 1 || k->axis.at[s->lane].n < 2 * vectors * k->graph->caps->width ? 1 : vectors;
}

/* Lanes of the kernel's vectors: those of float32, or two or four times as many if no value is wider than 16 or 8 bits
   and no index is computed lane by lane (bytes, one thread: 10^6 rolled 99 -> 40 us), or as many vectors as elementwise
   work takes at a time. A reduction in a fixed order keeps the width of float32. */
static int lanes_for(const nvf_fusion *k, const nvf_tiling *s) {
  int width = k->graph->caps->width, bytes = 1, ordered = s->transposed >= 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    int valued = v->kind == NVF_ILOAD || v->kind == NVF_ICONST || v->kind == NVF_IMAP || nvf_is_red(v);
    int own = v->kind == NVF_IINDEX ? 8 : valued ? nvg_size(k->graph->node[v->node].dtype) : 1;
    ordered |= nvf_is_red(v) && (v->kind != NVF_IRED || !k->graph->node[v->node].order_free);
    int counts = s->lane >= 0 && ((v->axes >> s->lane & 1) || nvf_is_red(v)) && !is_place(k, i, s->lane);
    bytes = own > bytes && counts ? own : bytes;
  }
  if (ordered) return width;
  int counters = vectors_of_counters(k, s);
  if (counters > 1 || bytes > 4) return width * counters;
  return bytes == 4 ? width * vectors_at_once(k, s) : width * 4 / bytes;
}

nvf_tiling *nvf_tiling_cpu(nvf_fusion *k) {
  enum { SQUARE = 64 }; /* tiles of transposed accesses: whole cache lines along both axes */
  nvb_arena *a = k->graph->arena;
  int width = k->graph->caps->width;
  nvf_tiling *s = NVB_NEW(a, nvf_tiling);
  s->at = NVB_NEWN(a, nvf_placement, k->axis.n + 1);
  s->lane = lane_of(k, width);
  s->lanes = further_lanes(k, s->lane, width);
  s->transposed = nvf_transposed_axis(k, s->lane, k->reduced ? scanned_only(k) : k->grid);
  s->width = width = lanes_for(k, s);
  for (int i = 0; i < k->axis.n; i++)
    if (nvf_live(k, i) && !(k->grid >> i & 1)) s->at[i] = whole_axis(k, i, nvf_has_lanes(s, i), width);
  if (s->transposed >= 0 && !k->reduced)
    s->at[s->lane] = s->at[s->transposed] = (nvf_placement){ .tile = SQUARE, .tiled = 1 };
  else if (s->lane >= 0 && (k->grid >> s->lane & 1))
    s->at[s->lane] = (nvf_placement){ .tile = block_of(k, s, width), .tiled = 1 };
  for (int i = 0; i < k->axis.n && s->transposed < 0; i++)
    if (nvf_live(k, i) && !s->at[i].tile && nvf_is_kept_whole(k, i, s->lane))
      s->at[i] = (nvf_placement){ .tile = size_class(k->axis.at[i].n, 1, 2), .tiled = 1 };
  stack_rows(k, s, width);
  if (s->lane >= 0) /* first, because its items limit those of the other axes */
    digits_of(k, s, s->lane, width);
  for (int lanes = 0; lanes < 2; lanes++) /* axes with lanes are innermost in their layouts */
    for (int i = 0; i < k->axis.n; i++)
      if (s->at[i].tile && i != s->lane && nvf_has_lanes(s, i) == lanes) {
        digits_of(k, s, i, width);
        s->order[s->norder++] = i;
      }
  if (s->lane >= 0) s->order[s->norder++] = s->lane;
  for (int i = 0; i < s->norder; i++) s->loops |= s->at[s->order[i]].tile ? 1ull << s->order[i] : 0;
  return s;
}
