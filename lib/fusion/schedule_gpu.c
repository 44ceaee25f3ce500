/* The GPU schedule: lanes and 16-byte vector accesses run along contiguous memory; rows stay in registers where they
   fit; warps divide first chunks, then neighbouring rows; loops take the rest. One set of rules reads axes, roles,
   reduction orders, dtypes and alignment; it has no case for a single pattern. It changes no bit of a result. */
#include "fusion/schedule.h"

enum { LANES = 32, WARPS = 8, MOST_WARPS = 32, ITEMS = 32, REGISTERS = 65536 };

/* The resources of a block while axes take them. Two axes compete for lanes, warps and registers only if some tile has
   both. */
typedef struct resources {
  nvf_fusion *k;
  nvf_tiling *s;
  const nvb_caps *caps;
  int64_t most_warps, most_items;
  int64_t blocks;        /* blocks of a cluster that divide the lane axis; 1: no cluster */
  int fits;              /* values that live across phases stay in registers, so there are no loops */
  double live;           /* registers that these values take for each item */
  int looped;            /* the axis that is being placed has chunks in a loop */
  nvf_digits d[64];      /* by axis */
  uint64_t together[64]; /* by axis: the axes that share a tile with it, and itself */
} resources;

static int64_t power2_below(int64_t n) { return n > 1 ? power2(n + 1) / 2 : 1; }
/* The value of a knob, rounded up to a power of two; 0 if it is not set. */
static int64_t knob_power2(const nvf_fusion *k, nvf_knob i, int64_t most) {
  int64_t n = nvf_knob_value(k, i, 0), p = 1;
  while (p < n && p < most) p *= 2;
  return n > 0 ? p : 0;
}
static int64_t extent_of(const nvf_fusion *k, uint64_t axes) { return (int64_t)nvf_elements(k, axes); }

/* ---- assigning digits */
/* What other axes have taken of a level: the stride in the lane or warp number, or the number of items. */
static int64_t taken_of(const resources *r, int a, char level) {
  int64_t n = 1;
  for (uint64_t m = r->together[a]; m; m &= m - 1) {
    const nvf_digits *d = &r->d[__builtin_ctzll(m)];
    for (int i = 0; i < d->n; i++)
      if (d->d[i].level == level) n = level == 'i' ? n * d->d[i].n : most(n, d->d[i].at * d->d[i].n);
  }
  return n;
}

static void give_digit(resources *r, int a, char level, int64_t n) {
  nvf_digits *d = &r->d[a];
  int top = d->n - 1, items = level == 'i' || level == 'I', same = top >= 0 && d->d[top].level == level;
  if (same && !(r->k->reduced >> a & 1) && (items || d->d[top].at * d->d[top].n == taken_of(r, a, level)))
    d->d[top].n *= n;
  else nvf_digit_add(&r->d[a], level, n, items ? 0 : (int)taken_of(r, a, level));
}

/* The part of n that fits into what is left of a level: a power of two that divides n, or all of n at levels other than
   lanes; for a cluster also all warps that are left, if their number divides n. */
static int64_t level_space(const resources *r, int a, char level, int64_t n) {
  int64_t all = level == 'l' ? LANES : level == 'w' ? r->most_warps : r->most_items;
  int64_t have = all / taken_of(r, a, level), got = 1;
  if (n <= have && level != 'l') return n;
  if (r->blocks > 1 && level == 'w' && have && n % have == 0) return have;
  while (got * 2 <= have && got * 2 <= n && n % (got * 2) == 0) got *= 2;
  return got;
}

/* Assigns this part to the axis and returns the rest of n. */
static int64_t take_level(resources *r, int a, char level, int64_t n) {
  int64_t got = level_space(r, a, level, n);
  give_digit(r, a, level, got);
  return n / got;
}

static int64_t tile_of(const resources *r, int a) {
  int64_t n = 1;
  for (int i = 0; i < r->d[a].n; i++) n *= r->d[a].d[i].n;
  return n;
}

/* The most items of a thread, such that the unrolled code stays short. Items that share a counter share its code. */
static int64_t most_items(const nvf_fusion *k) {
  enum { BUDGET = 2048 };
  int64_t cost = 1, n = ITEMS;
  for (int i = 0; i < k->expr.n; i++) {
    const nvg_frag *f = k->expr.at[i].kind == NVF_IMAP ? k->graph->node[k->expr.at[i].node].frag : NULL;
    cost += f ? f->cost / nvg_frag_shared(f) : 0;
  }
  while (n > 4 && n * cost > BUDGET) n /= 2;
  return n;
}

/* 4-byte words of an element of the largest type that is loaded. */
static int64_t element_words(const nvf_fusion *k) {
  int64_t n = 1;
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ILOAD) n = most(n, nvg_size(k->graph->node[k->expr.at[i].node].dtype) / 4);
  return n;
}

/* ---- axes that a block has as a whole */
/* later: elements in sequence above this part; contiguous: neighbours are contiguous; blocks: of a cluster, which
   divide it */
typedef struct border { int64_t later, blocks; int seq, lane, contiguous, chunk, last; } border;

/* Assigns the digits of an axis between two borders of its reduction orders. Items lie below warps, so that a thread
   merges its own values first. A contiguous axis gets as many items as possible, any other only those that warps leave.
   Above chunks in a loop everything is a loop. */
static void part_axis(resources *r, int a, int64_t n, const border *b) {
  int64_t budget = r->most_items, warps = 1;
  if (r->looped) give_digit(r, a, 'I', n);
  if (r->looped) return;
  if (!b->seq) n = take_level(r, a, 'l', n);
  if (!b->seq && !b->contiguous) warps = level_space(r, a, 'w', n);
  n /= warps;
  r->most_items /= b->later;
  int64_t above = warps > 1 ? n / (n & -n) : 1; /* the odd factor lies above everything else */
  n = take_level(r, a, 'i', n / above) * above;
  r->most_items = budget;
  give_digit(r, a, 'w', warps);
  if (!b->seq) n = take_level(r, a, 'w', n);
  if (b->lane && n > 1) { /* no loops here */
    r->most_warps = MOST_WARPS;
    n = take_level(r, a, 'w', n);
  }
  give_digit(r, a, 'c', b->blocks);
  give_digit(r, a, r->fits || b->lane ? 'i' : 'I', n);
  r->looped = !r->fits && n > 1 && b->chunk && !b->last;
}

static void whole_axis(resources *r, int a, int64_t vec) {
  const nvf_fusion *k = r->k;
  int64_t p = r->s->at[a].tile, lo = 1, later = 1;
  nvf_red_order st[64];
  int n, seq, scanned = nvf_scanned(k, a);
  int64_t blocks = a == r->s->lane ? r->blocks : 1;
  vec = scanned ? 16 : least(vec, p);
  r->s->at[a].beside = least(p & -p, vec * level_space(r, a, 'l', LANES) * level_space(r, a, 'w', MOST_WARPS));
  if (blocks > 1) /* if the order is free, everything merges like lanes */
    r->s->at[a].beside = power2(p);
  n = k->reduced >> a & 1 ? nvf_red_orders_of(k, r->s, a, st, 64) : 0;
  for (int64_t at = 1, hi; at < p; at = hi) {
    hi = nvf_order_border(st, n, at, p, &seq);
    later *= seq && hi > vec ? hi / most(at, vec) : 1;
  }
  give_digit(r, a, 'i', vec);
  r->looped = 0;
  for (int64_t hi; lo < p; lo = hi) {
    border b = { .lane = n > 0 && !scanned };
    hi = nvf_order_border(st, n, lo, p, &b.seq);
    for (int i = 0; i < n; i++) {
      b.lane &= st[i].w >= hi;
      b.chunk |= st[i].c <= lo;
    }
    b.contiguous = a == r->s->lane && (b.lane || (scanned && !b.chunk));
    b.last = hi == p;
    b.blocks = b.last ? blocks : 1;
    if (hi <= vec) continue;
    later /= b.seq ? hi / most(lo, vec) : 1;
    b.later = later;
    part_axis(r, a, hi / most(lo, vec) / b.blocks, &b);
  }
}

/* Registers that live from one phase to the next, for each element of the axes that a block has as a whole. */
static double registers_kept(const nvf_fusion *k, uint64_t whole) {
  int n = k->expr.n, *when = NVB_NEWN(k->graph->arena, int, n + 1), *until = NVB_NEWN(k->graph->arena, int, n + 1);
  int last = nvf_phases(k, when);
  double best = 0, all = (double)extent_of(k, whole);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k->expr.at[i].narg; j++) {
      int x = k->expr.at[i].arg[j];
      until[x] = when[i] > until[x] ? when[i] : until[x];
    }
  for (int p = 0; p < last; p++) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      const nvf_iexpr *v = &k->expr.at[i];
      int size = nvg_size(k->graph->node[v->node].dtype), narrow = v->kind == NVF_ILOAD && size == 2;
      if (v->kind != NVF_ICONST && v->kind != NVF_IPICK && when[i] <= p && until[i] > p && (v->axes & whole))
        sum += (narrow ? 0.5 : size > 4 ? size / 4 : 1) * (double)extent_of(k, v->axes & whole) / all;
    }
    best = sum > best ? sum : best;
  }
  return best > 0.1 ? best : 0;
}

static int reads_narrow(const nvf_fusion *k) {
  int narrow = 0;
  for (int i = 0; i < k->expr.n; i++)
    narrow |= k->expr.at[i].kind == NVF_ILOAD && nvg_size(k->graph->node[k->expr.at[i].node].dtype) < 4;
  return narrow;
}

/* Decides the warps and items of a block with n elements of its whole axes, for each of which `live` registers are kept
   between phases. Measurements below are times of a copy. */
static void divide_block(resources *r, int64_t n, double live, int64_t blocks) {
  int64_t e = most_items(r->k) / element_words(r->k), fewest = 16, busy = 16 * r->caps->cores;
  while (e > 4 && live * (double)e > 64) e /= 2;
  int64_t warps = (n + LANES * e - 1) / (LANES * e);
  warps = n & (n - 1) ? warps : power2(warps);
  r->fits = live > 0 && warps <= MOST_WARPS && (double)(warps * LANES) * (live * (double)e + 28) <= REGISTERS;
  if (!r->fits) {
    e = most_items(r->k) / element_words(r->k);
    /* 335 rows of 200,000 f32 take 1.64 with 8 warps, 1.04 with 16; for bf16, and in 512 blocks, 8 warps are better */
    int narrow = reads_narrow(r->k), few = live == 0 && 2 * blocks * WARPS < 3 * busy && !narrow;
    /* 1342 rows of 50,000 with 8 and 16 warps: bf16 0.95 and 0.90, f64 0.98 and 0.93, f32 0.92 */
    int many = live == 0 && warps > 2 * WARPS && 2 * blocks >= busy && (narrow || element_words(r->k) > 1);
    /* all elements in one iteration, no second one for a few warps: 13421 rows of 5,000 f64 in 8 and 10 warps, 0.951
       and 0.926 */
    int once = live == 0 && element_words(r->k) > 1 && warps <= 2 * WARPS;
    warps = least(warps, blocks * WARPS < busy ? MOST_WARPS : few || many || once ? 2 * WARPS : WARPS);
  }
  e = warps > 16 && !r->fits ? least(e, 16) : e;
  while (e > fewest && 2 * warps <= MOST_WARPS && warps * LANES * e <= n && blocks * warps < busy) e /= 2, warps *= 2;
  int64_t other = knob_power2(r->k, NVF_KWARPS, MOST_WARPS),
          each = other ? power2((n + LANES * other - 1) / (LANES * other)) : 0;
  if (other && r->fits && live * (double)each <= 64 &&
      (double)(other * LANES) * (live * (double)each + 28) <= REGISTERS)
    warps = other, e = each;
  else if (other && !r->fits)
    warps = other,
    e = most(4, least(e, knob_power2(r->k, NVF_KITEMS, ITEMS) ? knob_power2(r->k, NVF_KITEMS, ITEMS) : e));
  r->most_items = e;
  r->most_warps = warps;
}

/* ---- the axis with the lanes */
/* The scan along an axis that is not one of whole lines, but in segments or of one element after the other; NULL: there
   is none. */
static const nvf_node *special_scan(const nvf_fusion *k, int a) {
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_node *n = &k->graph->node[k->expr.at[i].node];
    if (k->expr.at[i].kind == NVF_ISCAN && k->expr.at[i].axis == a && (n->block || n->chain)) return n;
  }
  return NULL;
}

static int may_have_lanes(const nvf_fusion *k, int a) {
  nvf_red_order st[64];
  int n = a >= 0 ? nvf_red_orders(k, a, st, 64) : 0, ok = a >= 0 && nvf_live(k, a) && k->axis.at[a].n > 1;
  for (int i = 0; i < n; i++) /* a run of a scan is sequential, but different runs may be lanes */
    ok &= (st[i].c <= NVF_SCAN_RUN && st[i].w == 1) || st[i].w >= LANES;
  const nvf_node *scan = ok ? special_scan(k, a) : NULL;
  return ok && !(scan && scan->chain);
}

static int lane_of(const nvf_fusion *k) {
  int best = nvf_lane_axis(k);
  if (may_have_lanes(k, best)) return best;
  int most = 0;
  best = -1;
  for (int a = 0; a < k->axis.n; a++) {
    int along = 0, value; /* grid axes first, then axes along which an access is contiguous */
    for (int i = 0; i < k->expr.n; i++) along |= k->expr.at[i].kind == NVF_ILOAD && nvf_is_one(k, k->expr.at[i].at, a);
    for (int i = 0; i < k->put.n; i++) along |= nvf_is_one(k, k->put.at[i].at, a);
    value = 2 * (int)(k->grid >> a & 1) + along;
    if (may_have_lanes(k, a) && (best < 0 || value > most || (value == most && k->axis.at[a].n > k->axis.at[best].n)))
      best = a, most = value;
  }
  return best;
}

/* ---- grid axes with a tile: a block has several coordinates */
static void tile_grid_axis(resources *r, int a) {
  nvf_placement *at = &r->s->at[a];
  at->tile = 1;
  at->tiled = 1;
  for (int i = 0; i < r->d[a].n; i++) at->tile *= r->d[a].d[i].n;
  if (at->tile == 1) *at = (nvf_placement){ .tile = 0 };
}

/* The grid axis for the resources that are left: the one with the smallest stride of the store; -1: there is none. */
static int neighbour_axis(const resources *r) {
  const nvf_fusion *k = r->k;
  nvf_ix at = k->put.n ? k->put.at[0].at : 0;
  int best = -1;
  int64_t smallest = 0;
  for (int a = 0; a < k->axis.n; a++) {
    nvf_prod by;
    int64_t c;
    if (!nvf_live(k, a) || !(k->grid >> a & 1) || r->s->at[a].tile || k->axis.at[a].n < 2 || r->d[a].n) continue;
    int64_t step = nvf_ix_coef(k->graph->space, at, a, &by, &c) ? (c < 0 ? -c : c) * nvf_value(k->graph->space, by)
                                                                : (int64_t)1 << 40;
    if (best < 0 || step < smallest) best = a, smallest = step;
  }
  return best;
}

static int64_t blocks_now(const resources *r) {
  int64_t n = 1;
  for (int a = 0; a < r->k->axis.n; a++)
    if (nvf_live(r->k, a) && (r->k->grid >> a & 1)) {
      int64_t t = most(1, r->s->at[a].tile);
      n *= (r->k->axis.at[a].n + t - 1) / t;
    }
  return n;
}

/* Gives the lanes, warps (up to `warps`) and items (up to `items` times as many, while every SM has a block) that are
   left to neighbouring grid axes. */
static void stack_neighbours(resources *r, int64_t warps, int64_t items) {
  for (int a; (a = neighbour_axis(r)) >= 0;) {
    int64_t n = power2(r->k->axis.at[a].n), had = taken_of(r, a, 'i');
    r->most_warps = warps;
    r->most_items = had * items;
    n = take_level(r, a, 'l', n);
    if (blocks_now(r) >= 2 * r->caps->cores) n = take_level(r, a, 'w', n);
    r->most_items = had * least(items, power2_below(blocks_now(r) / tile_of(r, a) / r->caps->cores));
    take_level(r, a, 'i', n);
    items /= taken_of(r, a, 'i') / had;
    if (!r->d[a].n) return;
    tile_grid_axis(r, a);
  }
}

/* If every block along a grid axis recomputes a reduction, there are only as many blocks as keep the device busy, and
   each loops over more coordinates. */
static void loop_repeated(resources *r) {
  const nvf_fusion *k = r->k;
  uint64_t lack = 0;
  for (int i = 0; i < k->expr.n; i++)
    if (nvf_is_red(&k->expr.at[i])) lack |= k->grid & ~k->expr.at[i].axes;
  for (int64_t n; lack; lack &= lack - 1) {
    int a = __builtin_ctzll(lack);
    if (!nvf_live(k, a) || (n = blocks_now(r) / (8 * r->caps->cores)) < 2) continue;
    n = least(power2_below(n), power2((k->axis.at[a].n + tile_of(r, a) - 1) / tile_of(r, a)));
    r->most_warps = WARPS;
    n = take_level(r, a, 'w', n);
    give_digit(r, a, 'I', n);
    tile_grid_axis(r, a);
  }
}

/* ---- kernels in which no block has a whole axis */
/* Vectors of each operand that a thread has in flight. Measured with two and with four, as times of a copy: relu 1.014
   and 1.070; sin, cos, exp and log 0.959 and 0.964, and two vectors compile in two thirds of the time; an outer
   product, which loads no such operand, 1.27 and 0.93. */
static int64_t in_flight(const nvf_fusion *k, int64_t vec) {
  int loads = 0, cost = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    loads += v->kind == NVF_ILOAD && v->axes == k->grid;
    cost += v->kind == NVF_IMAP ? k->graph->node[v->node].frag->cost : 0;
  }
  int64_t n = !loads ? 4 : cost >= 40 || loads <= 2 ? 2 : 1;
  while (n > 1 && (n * vec * most(loads, 1) > 64 || n * vec > most_items(k))) n /= 2;
  return n;
}

static int has_reuse(const nvf_fusion *k, int lane) { /* whether neighbours share an operand that has the lane axis */
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ILOAD && (k->expr.at[i].axes >> lane & 1) && k->expr.at[i].axes != k->grid) return 1;
  return 0;
}

static void schedule_elementwise(resources *r) {
  nvf_fusion *k = r->k;
  int a = r->s->lane;
  int64_t n = k->axis.at[a].n, all = extent_of(k, k->grid), vec = nvf_vector(k, a), items = in_flight(k, vec),
          warps = WARPS / 2, had;
  while (items > 1 && all / (vec * items * LANES * WARPS) < 4 * r->caps->cores) items /= 2;
  while (warps > 2 && all / (vec * LANES * warps) < r->caps->cores) warps /= 2;
  /* so few elements that one thread's latency is the time: one element for each thread */
  int general = k->graph->general;
  if (general || all <= 2 * LANES * WARPS * r->caps->cores) vec = items = 1, warps = WARPS;
  if (knob_power2(k, NVF_KITEMS, ITEMS / vec)) items = knob_power2(k, NVF_KITEMS, ITEMS / vec);
  if (knob_power2(k, NVF_KWARPS, MOST_WARPS)) warps = knob_power2(k, NVF_KWARPS, MOST_WARPS);
  r->most_warps = warps;
  r->most_items = vec * items;
  give_digit(r, a, 'i', vec);
  int64_t rest = power2((n + vec - 1) / vec);
  if (general && k->grid == 1ull << a) rest = LANES * WARPS; /* the same tile for short axes */
  rest = take_level(r, a, 'l', rest);
  rest = take_level(r, a, 'w', rest);
  if (!has_reuse(k, a) || neighbour_axis(r) < 0) {
    had = taken_of(r, a, 'i');
    take_level(r, a, 'i', rest);
    items /= taken_of(r, a, 'i') / had;
  }
  tile_grid_axis(r, a);
  stack_neighbours(r, warps, items);
}

/* Transposed accesses: a tile of 64 x 64 (32 x 32 of 8-byte types) has one layout for each of the two axes, so that
   loads and stores are both coalesced; a relayout lies between. */
static void schedule_square(resources *r) {
  int axis[2] = { r->s->lane, r->s->transposed };
  int64_t side = element_words(r->k) > 1 ? 32 : 64;
  nvf_digits d[2][2];
  for (int along = 0; along < 2; along++) { /* the axis along which the lanes run */
    int a = axis[along], b = axis[1 - along];
    int64_t vec = nvf_vector(r->k, a), l = least(LANES, side / vec), w = least(WARPS, side / (LANES / l));
    resources x = *r;
    x.most_warps = WARPS;
    give_digit(&x, a, 'i', vec);
    give_digit(&x, a, 'l', l);
    give_digit(&x, a, 'i', side / (vec * l));
    give_digit(&x, b, 'l', LANES / l);
    give_digit(&x, b, 'w', w);
    give_digit(&x, b, 'i', side / (LANES / l * w));
    d[along][along] = x.d[a];
    d[along][1 - along] = x.d[b];
  }
  for (int i = 0; i < 2; i++) {
    nvf_placement *at = &r->s->at[axis[i]];
    r->d[axis[i]] = d[0][i];
    tile_grid_axis(r, axis[i]);
    at->transposed = d[1][i];
  }
}

/* Whether some buffer is read at (i, j) and at (j, i). */
static int is_mirrored(const nvf_fusion *k, const nvf_tiling *s) {
  for (int i = 0; i < k->expr.n; i++)
    for (int j = 0; j < k->expr.n; j++) {
      const nvf_iexpr *p = &k->expr.at[i], *q = &k->expr.at[j];
      if (p->kind == NVF_ILOAD && q->kind == NVF_ILOAD && p->node == q->node && nvf_is_transposed_access(k, s, p->at) &&
          nvf_is_one(k, q->at, s->lane))
        return 1;
    }
  return 0;
}

/* ---- kernels in which a block has whole axes */
/* Elements of a scanned axis in one iteration of the loop along it, if only scans run along it; 0: no loop. An
   iteration has whole blocks of 1,024, and several of them if there are few lines. */
static int64_t round_of(const resources *r, int a, int64_t lines) {
  enum { BLOCK = NVF_SCAN_RUN * NVF_SCAN_RUNS };
  const nvf_fusion *k = r->k;
  int64_t n = BLOCK, p = r->s->at[a].tile;
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_IRED && (k->expr.at[i].axes | 1ull << k->expr.at[i].axis) >> a & 1) return 0;
  while (a == r->s->lane && n < 16 * BLOCK && lines * (n / BLOCK) < 8 * r->caps->cores) n *= 2;
  return p > n ? n : 0;
}

/* ---- rows that are read again and do not fit into one block: a cluster divides them */
/* Keeps the row in the registers of a cluster and returns 1, or returns 0. Each block has a few whole chunks; the
   number of blocks minimises blocks * (chunks + 1), as another block costs about as much as a chunk; if none fits,
   there are as many blocks as possible. Large blocks do not pay, since no other block fills the SM while they wait for
   each other; nor do small ones. Measured on softmax, as times of a copy: f32 rows of 20,000 in 3, 4 and 5 blocks 1.11,
   of 50,000 in 7, 13, 4 blocks 1.21, 1.23, 1.35, of 100,000 in 14, 13, 7 blocks 1.30, 1.34, 1.38, of 200,000 in 16, 14,
   8 blocks 1.61, 1.64, 1.89; f64, which is best in powers of two, rows of 50,000 in 8, 7, 4, 13 blocks 1.60, 1.79,
   1.89, 2.10. */
static int share_row(resources *r, int64_t chunk, double live) {
  enum { FEWEST = 4, MANY = 8 };
  int64_t grid = extent_of(r->k, r->k->grid), n = (r->k->axis.at[r->s->lane].n + chunk - 1) / chunk, blocks = 0,
          each = 0;
  int wide = element_words(r->k) > 1;
  for (int64_t b = 2; b <= r->caps->cluster; b = wide ? 2 * b : b + 1) {
    int64_t e = (n + b - 1) / b;
    if (e >= FEWEST && e <= MANY - wide && (!blocks || b * (e + 1) < blocks * (each + 1))) blocks = b, each = e;
  }
  if (!blocks && !r->fits && !wide) {
    each = (n + r->caps->cluster - 1) / r->caps->cluster;
    blocks = (n + each - 1) / each;
  }
  if (!blocks) return 0;
  resources x = *r;
  divide_block(&x, each * chunk, live, grid * blocks);
  int few = grid * blocks * x.most_warps < 16 * r->caps->cores;
  if (!x.fits || x.most_warps > (few ? MOST_WARPS : 2 * WARPS)) return 0;
  *r = x;
  r->blocks = blocks;
  r->s->at[r->s->lane].tile = blocks * each * chunk;
  return 1;
}

/* Loops over a row that a cluster divides, and reads it again from L2, which holds the rows of all clusters but not a
   row of every block. A thread has half the usual items, so that there are twice the warps; the chunks of an iteration
   are chosen so that the last iteration is nearly full. Measured, as times of a copy: rows of 200,000 f64 in 2
   iterations of 16 blocks 2.27, of 8 blocks 2.49, with one block a row 2.97; rows of 1,000,000 f32 2.21 and 7.14. */
static void walk_row(resources *r, int64_t chunk, int64_t lanes, int64_t vec) {
  enum { MANY = 8, NUMBERS = 1024 }; /* NUMBERS: partial results that one warp merges (codegen/cuda/cross_warp.c) */
  int64_t items = ITEMS / 2 / element_words(r->k), seq = most(1, chunk / lanes), wide = LANES * most(vec, items / seq);
  int64_t unit = most(1, lanes / wide), columns = chunk * most(1, wide / lanes), each = least(MANY, 2 * WARPS / unit);
  int64_t n = (r->k->axis.at[r->s->lane].n + columns - 1) / columns, blocks = r->caps->cluster;
  int64_t iterations = (n + blocks * each - 1) / (blocks * each);
  each = (n + blocks * iterations - 1) / (blocks * iterations);
  if (blocks * each * unit * power2(iterations) > NUMBERS) return;
  r->blocks = blocks;
  r->most_warps = each * unit;
  r->most_items = items;
  r->s->at[r->s->lane].tile = blocks * each * power2(iterations) * columns;
}

static void schedule_cluster(resources *r, double live, int64_t vec) {
  nvf_red_order st[64] = { { 0 } };
  int bound = nvf_red_orders(r->k, r->s->lane, st, 64);
  int64_t chunk = LANES * ITEMS;
  for (int i = 0; i < bound; i++) chunk = most(chunk, st[i].c);
  if (r->caps->cluster == 1 || chunk >= r->s->at[r->s->lane].tile) return;
  if (!share_row(r, chunk, live) && !r->fits && bound) /* an axis whose order is free has no iterations */
    walk_row(r, chunk, st[0].w, vec);
}

/* Row reductions: the lanes run along an axis that the block has as a whole. */
static void schedule_rows(resources *r, uint64_t whole) {
  nvf_fusion *k = r->k;
  nvf_tiling *s = r->s;
  int a = s->lane, scan = 0;
  int64_t all = 1, vec = nvf_vector(k, a), p = s->at[a].tile;
  nvf_red_order st[64];
  int bound = nvf_red_orders(k, a, st, 64);
  for (int i = 0; i < k->expr.n; i++) scan |= k->expr.at[i].kind == NVF_ISCAN;
  for (int b = 0; b < k->axis.n; b++) all *= whole >> b & 1 ? s->at[b].tile : 1;
  double live = r->live = scan ? 0 : registers_kept(k, whole);
  divide_block(r, all, live, extent_of(k, k->grid));
  if (live > 0 && (!r->fits || r->most_warps >= MOST_WARPS / 2) && all == p) schedule_cluster(r, live, vec);
  p = s->at[a].tile;
  if (!r->fits && r->blocks == 1 && !scan && p > r->most_warps * LANES * r->most_items)
    p = s->at[a].tile = power2(p); /* a loop ends where the row ends */
  int64_t seq = bound ? least(st->c, p) / least(st->w, p) : 1;
  if (scan) { /* scans are unrolled, each block of a scan in one warp */
    r->most_items = ITEMS;
    r->fits = 1;
  }
  if (r->fits) vec = least(vec, power2_below(r->most_items / seq));
  else if (vec > 4) r->most_items *= 2; /* in their loaded form (16 bits) they take half as many registers */
  if (vec == 1 && p <= 4) vec = p;
  whole_axis(r, a, vec);
}

/* Axes other than the lane axis that a block may walk one coordinate at a time: every reduction whose input is read
   again keeps them. */
static uint64_t walkable_axes(const nvf_fusion *k, int lane) {
  uint64_t m = ~(1ull << lane);
  for (int i = 0; i < k->expr.n; i++) m &= nvf_is_red(&k->expr.at[i]) && nvf_returns(k, i) ? k->expr.at[i].axes : ~0ull;
  return m;
}

/* Accumulators of a thread for each column. */
static int64_t column_sums(const resources *r) {
  int64_t n = 0;
  for (int i = 0; i < r->k->expr.n; i++) {
    const nvf_iexpr *v = &r->k->expr.at[i];
    nvf_red_order st[64];
    if (v->kind == NVF_IRED && (v->axes >> r->s->lane & 1) && nvf_red_orders(r->k, v->axis, st, 64) && st->c > st->w)
      n += v->narg;
  }
  return n;
}

/* Elements of the reduced axes that share a tile with the lane axis, counted in sequences: a thread adds up each
   sequence. */
static int64_t column_elements(const resources *r) {
  int64_t n = 1;
  nvf_red_order st[64];
  for (int b = 0; b < r->k->axis.n; b++)
    if ((r->together[r->s->lane] >> b & 1) && !(r->k->grid >> b & 1) && nvf_live(r->k, b) &&
        nvf_red_orders(r->k, b, st, 64))
      n *= most(1, r->s->at[b].tile * st->w / st->c);
  return n;
}

/* Whether the kernel only merges partial results, with merges of long code such as that of logsumexp. */
static int merges_dearly(const resources *r) {
  int expensive = 0;
  for (int i = 0; i < r->k->expr.n; i++)
    expensive |=
        nvf_is_red(&r->k->expr.at[i]) && r->k->graph->node[r->k->expr.at[i].node].frag->cost > NVG_EXPENSIVE_MERGE;
  return expensive && !column_sums(r);
}

/* Column reductions: the lane axis is a grid axis, and other axes are reduced. If the input is read again, a thread
   keeps whole sequences in registers, and a block has fewer columns, down to a sector of memory; else a thread has a
   few rows in flight. */
static void schedule_columns(resources *r, uint64_t whole) {
  enum { FEWEST = 8, KEPT = 64 };
  nvf_fusion *k = r->k;
  int a = r->s->lane;
  int64_t all = 1, seq = 1, n = extent_of(k, k->grid), lanes = LANES, vec = nvf_vector(k, a), loads = 0;
  double live = registers_kept(k, whole);
  for (int b = 0; b < k->axis.n; b++) {
    nvf_red_order st[64];
    all *= whole >> b & 1 ? r->s->at[b].tile : 1;
    if ((whole >> b & 1) && nvf_red_orders(k, b, st, 64))
      seq *= least(st->c, r->s->at[b].tile) / least(st->w, r->s->at[b].tile);
  }
  for (int i = 0; i < k->expr.n && live > 0; i++) /* operands without the lane axis take registers too */
    live += k->expr.at[i].kind == NVF_ILOAD && (k->expr.at[i].axes & whole) && !(k->expr.at[i].axes >> a & 1);
  r->most_items = ITEMS;
  for (int i = 0; i < k->expr.n; i++)
    loads += k->expr.at[i].kind == NVF_ILOAD && (k->expr.at[i].axes & r->together[a] & ~k->grid);
  if (live > 0) {
    int64_t e = most(seq, least(all, 16)), warps = (all + e - 1) / e;
    for (vec = 1; lanes > FEWEST && warps > WARPS; lanes /= 2) warps /= 2;
    r->fits = e * live <= KEPT && warps <= MOST_WARPS && (double)(warps * LANES) * ((double)e * live + 28) <= REGISTERS;
    r->most_items = r->fits ? e : ITEMS;
    r->most_warps = r->fits ? most(warps, 1) : WARPS;
    lanes = r->fits ? lanes : LANES;
  } else {
    while (vec > 1 && (n / (vec * LANES) < 2 * r->caps->cores || vec * column_sums(r) > 8)) vec /= 2;
    int64_t blocks = most(1, n / (vec * LANES));
    /* measured: 16 warps with a chunk each are a tenth faster than two iterations of 8 warps */
    if (column_elements(r) >= 2 * WARPS) r->most_warps = 2 * WARPS;
    /* the code of a merge is repeated for each item, but not for each warp */
    if (merges_dearly(r) && blocks <= r->caps->cores) r->most_warps = MOST_WARPS;
    while (r->most_warps < 2 * WARPS && blocks * r->most_warps < 12 * r->caps->cores) r->most_warps *= 2;
    r->most_items = least(r->most_warps > WARPS && vec == 1 ? 16 : ITEMS, most(vec, 64 / most(loads, 1)));
    if (knob_power2(k, NVF_KWARPS, MOST_WARPS)) r->most_warps = knob_power2(k, NVF_KWARPS, MOST_WARPS);
    if (knob_power2(k, NVF_KITEMS, ITEMS)) r->most_items = most(4, knob_power2(k, NVF_KITEMS, ITEMS));
  }
  r->s->once = live == 0;
  give_digit(r, a, 'i', vec);
  give_digit(r, a, 'l', least(lanes, power2((k->axis.at[a].n + vec - 1) / vec)));
}

/* Whether a thread adds up the whole axis in sequence: its items cost no registers, those of other axes need one result
   each. */
static int is_sequence(const nvf_fusion *k, const nvf_tiling *s, int a) {
  nvf_red_order st[64];
  int n = nvf_red_orders(k, a, st, 64), ok = n > 0;
  for (int i = 0; i < n; i++) ok &= st[i].w == 1 && st[i].c >= s->at[a].tile;
  return ok;
}

/* Warps that an SM can hold if each thread has so many registers; each of its four partitions has its own register
   file. */
static int64_t warps_with(int64_t registers) {
  enum { PARTS = 4 };
  return PARTS * (REGISTERS / PARTS / LANES / registers);
}

/* The occupancy to ask for: blocks that must fit into an SM; 0: as the compiler decides. On its own the compiler lets
   sums wait for two loads at a time, and takes so many registers that a large block has an SM to itself. Measured
   without and with the bound, as times of a copy: sums of rows of 50,000 f16 1.01 and 0.93, f32 0.96 and 0.92; softmax
   of rows of 5,000 f64 1.24 and 1.07, layernorm of 200,000 bf16 1.41 and 1.21; with fewer warps, sums of rows of 1,000
   bf16 1.003 and 0.996, softmax of rows of 5,000 bf16 0.98 and 1.04. */
static int64_t ctas_per_sm(const resources *r, int64_t warps) {
  enum { CHEAP = 4, PLAIN = 48 }; /* operations for each element */
  const nvf_fusion *k = r->k;
  int narrow = reads_narrow(k);
  int64_t reds = 0, cost = 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    if (nvf_is_red(v) && v->axis != r->s->lane) return 0;
    reds += nvf_is_red(v);
    cost += v->kind == NVF_IMAP && (v->axes >> r->s->lane & 1) ? k->graph->node[v->node].frag->cost : 0;
  }
  int64_t n = warps_with(r->live > 0 && !narrow ? 64 : 48) / warps, slots = n * r->caps->cores, blocks = blocks_now(r);
  if ((warps < WARPS && (r->live > 0 || !narrow)) || cost > (r->live > 0 ? PLAIN : CHEAP)) return 0;
  if (r->live > 0) return r->fits && (narrow || element_words(k) > 1) ? n : 0;
  /* else a few blocks would wait for all others */
  return reds == 1 && (blocks <= slots || blocks >= 2 * slots) ? n : 0;
}

/* How many blocks ahead a row is prefetched into L2 that a block has to wait for: two for each SM, one if blocks are
   large. Measured with half, one and two blocks for each SM, as times of a copy: layernorm of rows of 50,000 f64 1.19,
   1.17, 1.22, of 5,000 1.01, 1.00, 1.06; softmax of 50,000 bf16 with one and two 1.07, 1.05; of 1,000 f32 with one warp
   a row, with none, two and eight 1.01, 1.00, 1.10. */
static int64_t rows_ahead(const resources *r) {
  enum { SHORT = 2048, LARGE = 32 << 10 };
  const nvf_fusion *k = r->k;
  int a = r->s->lane;
  int64_t bytes = reads_narrow(k) ? 2 : 4 * element_words(k), row = bytes * tile_of(r, a) / r->blocks;
  for (uint64_t m = r->together[a]; m; m &= m - 1) bytes *= tile_of(r, __builtin_ctzll(m));
  int64_t n = (bytes / r->blocks < LARGE ? 2 : 1) * r->caps->cores / r->blocks;
  return row >= SHORT && blocks_now(r) > 2 * n ? nvf_knob_value(k, NVF_KPREFETCH, n) : 0;
}

static void reduced_row(resources *r, uint64_t whole) {
  nvf_fusion *k = r->k;
  nvf_tiling *s = r->s;
  int a = s->lane, along = a >= 0 && (whole >> a & 1), by_columns = a >= 0 && !along && (whole & r->together[a]);
  uint64_t loops = a >= 0 ? walkable_axes(k, a) : ~0ull;
  if (along) schedule_rows(r, whole & r->together[a] & ~loops);
  else if (by_columns) schedule_columns(r, whole & r->together[a] & ~loops);
  else if (a >= 0) schedule_elementwise(r);
  int64_t row_warps = a >= 0 ? taken_of(r, a, 'w') : 1;
  int fits = r->fits;
  int64_t items = r->most_items, warps = by_columns ? r->most_warps : most(row_warps, WARPS);
  for (int pass = 0; pass < 2; pass++)
    for (int b = 0; b < k->axis.n; b++) {
      if (!(whole >> b & 1) || b == a || is_sequence(k, s, b) == pass) continue;
      int kept_here = fits && !(loops >> b & 1);
      r->fits = kept_here || nvf_scanned(k, b); /* scans are unrolled */
      r->most_warps = nvf_scanned(k, b) ? MOST_WARPS : warps;
      r->most_items = kept_here || by_columns ? items : most(items, ITEMS);
      whole_axis(r, b, least(nvf_vector(k, b), 4));
    }
  if (by_columns) {
    int64_t t = tile_of(r, a);
    r->most_warps = WARPS / 2;
    if (extent_of(k, k->grid) / t >= 2 * r->caps->cores) take_level(r, a, 'w', power2((k->axis.at[a].n + t - 1) / t));
    tile_grid_axis(r, a);
  }
  /* Rows of several warps synchronise, so a block has only one of them: measured with several and with one, rows of
     1,000 f64 take 1.43 and 1.02 times a copy. */
  stack_neighbours(r, along && row_warps > 1 ? row_warps : WARPS / 2,
                   along && row_warps == 1 ? most(1, (fits ? 16 : ITEMS) / taken_of(r, a, 'i')) : 1);
  loop_repeated(r);
  if (along) s->blocks = (int)ctas_per_sm(r, taken_of(r, a, 'w'));
  if (along && fits) s->prefetch = rows_ahead(r);
}

/* The tile of an axis that a block has as a whole: a power of two, or five to seven eighths of one for the lane axis if
   the borders of its reduction orders allow it. There are few classes of lengths, because each is a kernel of its
   own. */
static int64_t covering_tile(const nvf_fusion *k, int lane, int a) {
  enum { LEAST = 32 };
  int64_t n = k->axis.at[a].n, p = power2(n);
  nvf_red_order st[64];
  int count = nvf_red_orders(k, a, st, 64);
  if (a != lane || nvf_scanned(k, a) || n <= LEAST) return p;
  for (int64_t part = p / 8, m = 5; m < 8; m++) {
    int64_t q = part * m;
    int fits = q >= n;
    for (int i = 0; i < count; i++) fits &= (q <= st[i].w || q % st[i].w == 0) && (q <= st[i].c || q % st[i].c == 0);
    if (fits) return q;
  }
  return p;
}

/* Sets the tiles of all axes that are not grid axes. Returns the set of those that a block has as a whole; the others
   are walked. */
static uint64_t whole_axes(const resources *r) {
  const nvf_fusion *k = r->k;
  nvf_tiling *s = r->s;
  uint64_t whole = 0;
  for (int a = 0, walks = 0; a < k->axis.n; a++) {
    if (!nvf_live(k, a) || (k->grid >> a & 1)) continue;
    const nvf_node *scan = special_scan(k, a);
    int64_t segments = scan && scan->block ? (k->axis.at[a].n + scan->block - 1) / scan->block : 1;
    if (scan && scan->chain) {
      s->at[a] = (nvf_placement){ .tile = 1, .walk = walks = 1 };
      continue;
    }
    s->at[a].tile = nvf_is_exact(k, a) ? k->axis.at[a].n : covering_tile(k, s->lane, a);
    if (nvf_scanned(k, a)) s->at[a].tile = most(16, s->at[a].tile);
    int64_t n = nvf_scanned(k, a) && !walks ? round_of(r, a, extent_of(k, k->grid) * segments) : 0;
    if (n) {
      s->at[a].tile = n;
      s->at[a].walk = walks = 1;
      s->at[a].segment = segments > 1 ? scan->block : 0;
    }
    whole |= 1ull << a;
  }
  return whole;
}

static void note_meetings(resources *r) {
  const nvf_fusion *k = r->k;
  for (int i = 0; i < k->expr.n + k->put.n; i++) {
    const nvf_iexpr *v = i < k->expr.n ? &k->expr.at[i] : NULL;
    uint64_t axes = v ? v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0) : k->put.at[i - k->expr.n].axes;
    for (uint64_t m = axes; m; m &= m - 1) r->together[__builtin_ctzll(m)] |= axes;
  }
}

/* Copies the digits into the shape and orders its axes, the lane axis innermost. */
static void take_levels(const resources *r) {
  nvf_tiling *s = r->s;
  for (int a = 0; a < r->k->axis.n; a++) {
    nvf_placement *at = &s->at[a];
    for (int i = 0; i < r->d[a].n; i++) s->loops |= r->d[a].d[i].level == 'I' ? 1ull << a : 0;
    at->digits = r->d[a];
    if (s->transposed < 0 || (a != s->transposed && a != s->lane)) at->transposed = r->d[a];
    if (at->tile && a != s->lane) s->order[s->norder++] = a;
  }
  if (s->lane >= 0 && s->at[s->lane].tile) s->order[s->norder++] = s->lane;
}

nvf_tiling *nvf_tiling_gpu(nvf_fusion *k) {
  nvb_arena *mem = k->graph->arena;
  nvf_tiling *s = NVB_NEW(mem, nvf_tiling);
  resources *r = NVB_NEW(mem, resources);
  s->at = NVB_NEWN(mem, nvf_placement, k->axis.n + 1);
  s->lane = lane_of(k);
  *r = (resources){ .k = k, .s = s, .caps = k->graph->caps, .most_items = ITEMS, .most_warps = WARPS, .blocks = 1 };
  uint64_t whole = whole_axes(r);
  note_meetings(r);
  s->transposed = whole ? -1 : nvf_transposed_axis(k, s->lane, k->grid);
  if (whole) reduced_row(r, whole);
  else if (s->transposed >= 0) schedule_square(r), s->mirror = is_mirrored(k, s);
  else if (s->lane >= 0) schedule_elementwise(r);
  take_levels(r);
  return s;
}
