/* Places on a GPU: lanes and 16-byte accesses along memory, rows in registers where they fit, warps over chunks, then over
   neighbours, loops for the rest. One set of rules over axes, roles, stamps, dtypes and alignment; no case per pattern. */
#include "fusion/schedule.h"
#include <string.h>

enum { LANES = 32, WARPS = 8, MOST_WARPS = 32, ITEMS = 32, REGISTERS = 65536 };

/* What the digits placed so far have taken of a block. */
typedef struct room {
  nvf_cand *k;
  nvf_shape *s;
  const nvb_caps *caps;
  int lanes, warps, most_warps;
  int64_t items, most_items;
  int fits;               /* what lives across phases stays in registers: no loops */
  int looped;             /* the axis being placed has looped chunks */
  nvf_digits d[64];       /* by axis */
} room;

static int64_t power2(int64_t n) {
  int64_t p = 1;
  while (p < n)
    p *= 2;
  return p;
}
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- what an access may be */
static int is_one(const nvf_cand *k, nvf_ix at, int axis) {
  nvf_prod by;
  int64_t c;
  return nvf_ix_coef(k->net->space, at, axis, &by, &c) == 1;
}

/* Whether the expression is a multiple of n wherever the axis is one; all that else depends on the axis spoils it. */
static int is_multiple(const nvf_cand *k, nvf_ix at, int axis, int64_t n) {
  const nvf_space *s = k->net->space;
  int terms, ok = 1;
  const nvf_term *t = nvf_ix_terms(s, at, &terms);
  for (int i = 0; i < terms; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    if (a->kind == NVF_AT_AXIS && a->id == axis)
      continue;
    ok &= !(a->axes >> axis & 1) && t[i].c % n * (nvf_value(s, t[i].by) % n) % n == 0;
  }
  return ok;
}

static int is_aligned(const nvf_cand *k, int node) {
  const nvf_node *n = &k->net->node[node];
  return n->kind != NVG_VLEAF || k->net->g->leaf[n->leaf].align16;
}

/* Elements of one access along the axis, at most `low`: a power of two; 0 if memory does not run along it. */
static int vector_of(const nvf_cand *k, nvf_ix at, int node, int axis, int64_t low) {
  int64_t n = least(low, 16 / nvg_size(k->net->node[node].dtype));
  if (!is_one(k, at, axis))
    return 0;
  while (n > 1 && !(is_aligned(k, node) && is_multiple(k, at, axis, n)))
    n /= 2;
  return (int)most(n, 1);
}

typedef struct votes { double wide, all; } votes;
static void vote(const nvf_cand *k, nvf_ix at, int node, uint64_t axes, int axis, int64_t v, votes *to) {
  int size = nvg_size(k->net->node[node].dtype);
  double bytes = size;
  for (int a = 0; a < k->axis.n; a++)
    bytes *= axes >> a & 1 ? (double)k->axis.at[a].n : 1;
  if (!(axes >> axis & 1))
    return;
  to->all += bytes;
  to->wide += vector_of(k, at, node, axis, v) == least(v, 16 / size) ? bytes : 0;
}

/* Items that the lowest digit of the axis along memory has: as many as make 16 bytes of the smallest type, as long as half
   of what moves along it is aligned so. */
static int64_t vector(const nvf_cand *k, int axis) {
  int64_t v = 1;
  for (int i = 0; i < k->inst.n; i++)
    if (k->inst.at[i].kind == NVF_ILOAD && is_one(k, k->inst.at[i].at, axis))
      v = most(v, 16 / nvg_size(k->net->node[k->inst.at[i].node].dtype));
  for (int i = 0; i < k->put.n; i++)
    if (is_one(k, k->put.at[i].at, axis))
      v = most(v, 16 / nvg_size(k->net->node[k->put.at[i].node].dtype));
  for (v = least(least(v, 8), power2(k->axis.at[axis].n)); v > 1; v /= 2) {
    votes sum = { 0, 0 };
    for (int i = 0; i < k->inst.n; i++)
      if (k->inst.at[i].kind == NVF_ILOAD)
        vote(k, k->inst.at[i].at, k->inst.at[i].node, k->inst.at[i].axes, axis, v, &sum);
    for (int i = 0; i < k->put.n; i++)
      vote(k, k->put.at[i].at, k->put.at[i].node, k->put.at[i].axes, axis, v, &sum);
    if (2 * sum.wide >= sum.all)
      return v;
  }
  return 1;
}

/* ---- hints of an access */
static int64_t extent(const nvf_cand *k, uint64_t axes) {
  int64_t n = 1;
  for (; axes; axes &= axes - 1)
    n *= k->axis.at[__builtin_ctzll(axes)].n;
  return n;
}

static int is_steady(const nvf_cand *k, const nvf_bound *b, int axis, int64_t n) {
  if (!(nvf_ix_axes(k->net->space, b->e) >> axis & 1))
    return 1;
  return is_one(k, b->e, axis) && is_multiple(k, b->e, axis, n) && nvf_value(k->net->space, b->n) % n == 0;
}

nvf_wide nvf_wide_of(const nvf_cand *k, const nvf_shape *s, const nvf_access *m) {
  const nvb_caps *c = k->net->caps;
  const nvf_node *node = &k->net->node[m->node];
  nvf_wide w = { 0 };
  int axis = -1, loads = 0;
  for (int a = 0; a < k->axis.n && axis < 0; a++) {
    int low = m->across ? s->at[a].low_across : s->at[a].low;
    int v = s->at[a].tile && (m->axes >> a & 1) && low > 1 ? vector_of(k, m->at, m->node, a, low) : 0;
    if (v > 1)
      w.vec = v, axis = a;
  }
  if (w.vec) {
    w.whole = (nvf_is_exact(k, axis) && k->axis.at[axis].n == s->at[axis].tile) || k->axis.at[axis].n % w.vec == 0;
    for (int i = 0; i < k->valid.n; i++)
      w.whole &= is_steady(k, &k->valid.at[i], axis, w.vec);
    for (int i = 0; i < k->guard.at[m->guard].n; i++)
      w.whole &= is_steady(k, &k->guard.at[m->guard].b[i], axis, w.vec);
  }
  for (int i = 0; i < k->inst.n; i++)
    loads += k->inst.at[i].kind == NVF_ILOAD && k->inst.at[i].node == m->node;
  int apart = !(k->grid & ~m->axes); /* no two blocks read the same */
  double bytes = (double)extent(k, m->axes) * nvg_size(node->dtype);
  w.stream = bytes > (double)c->l2 / 2 && (m->store || (apart && loads == 1));
  for (int a = 0; a < k->axis.n && !m->store; a++) /* what loops read again, and lines that several accesses share, stay */
    w.stream &= !(m->axes >> a & 1) || !(strchr(s->at[a].digits, 'I') && (k->reduced >> a & 1));
  w.stream &= m->store || w.vec > 1;
  w.prefetch = !m->store && apart && (m->axes & k->reduced) ? s->ahead : 0;
  return w;
}

/* ---- taking places */
static void give(room *r, int a, char place, int64_t n) {
  int at = place == 'l' ? r->lanes : place == 'w' ? r->warps : 0;
  nvf_digit_add(&r->d[a], place, n, at);
  if (place == 'l')
    r->lanes *= (int)n;
  else if (place == 'w')
    r->warps *= (int)n;
  else if (place == 'i')
    r->items *= n;
}

/* As much of n as the place has left; returns the rest. n is a power of two, or all of it goes. */
static int64_t take(room *r, int a, char place, int64_t n) {
  int64_t have = place == 'l' ? LANES / r->lanes : place == 'w' ? r->most_warps / r->warps : most(1, r->most_items / r->items);
  int64_t got = 1;
  while (got * 2 <= have && got * 2 <= n && n % (got * 2) == 0)
    got *= 2;
  give(r, a, place, got);
  return n / got;
}

/* ---- axes that a block has in whole */
typedef struct border { int64_t later; int seq, lane, chunk, last; } border; /* later: elements in sequence above it */

/* A part of an axis between two borders of its stamps. Neighbours in a lane part are items before they are warps, chunks the
   other way; above looped chunks all is loops. */
static void part(room *r, int a, int64_t n, const border *b) {
  int64_t budget = r->most_items;
  if (r->looped)
    give(r, a, 'I', n);
  if (r->looped)
    return;
  if (!b->seq)
    n = take(r, a, 'l', n);
  if (!b->seq && !b->lane)
    n = take(r, a, 'w', n);
  r->most_items /= b->later;
  n = take(r, a, 'i', n);
  r->most_items = budget;
  if (!b->seq)
    n = take(r, a, 'w', n);
  give(r, a, r->fits ? 'i' : 'I', n);
  r->looped = !r->fits && n > 1 && b->chunk && !b->last;
}

static int is_folded(const nvf_cand *k, int a) {
  for (int i = 0; i < k->inst.n; i++)
    if (k->inst.at[i].kind == NVF_IRED && k->inst.at[i].axis == a)
      return 1;
  return 0;
}

static void whole_axis(room *r, int a, int64_t vec) {
  const nvf_cand *k = r->k;
  int64_t p = r->s->at[a].tile, lo = 1, later = 1;
  nvf_stamp st[64];
  int n = nvf_stamps(k, a, st, 64), seq, scanned = nvf_scanned(k, a);
  if (!n && scanned && !is_folded(k, a))
    st[n++] = (nvf_stamp){ 1024, 1024 };
  else if (!n && (k->reduced >> a & 1))
    n = nvf_stamps_of(k, r->s, a, st, 64);
  vec = scanned ? 16 : least(vec, p);
  for (int64_t at = 1, hi; at < p; at = hi) {
    hi = nvf_border(st, n, at, p, &seq);
    later *= seq && hi > vec ? hi / most(at, vec) : 1;
  }
  give(r, a, 'i', vec);
  r->looped = 0;
  for (int64_t hi; lo < p; lo = hi) {
    border b = { .lane = n > 0 };
    hi = nvf_border(st, n, lo, p, &b.seq);
    for (int i = 0; i < n; i++) {
      b.lane &= st[i].w >= hi;
      b.chunk |= st[i].c <= lo;
    }
    b.last = hi == p;
    if (hi <= vec)
      continue;
    later /= b.seq ? hi / most(lo, vec) : 1;
    b.later = later;
    part(r, a, hi / most(lo, vec), &b);
  }
}

/* Tiles that live from one phase to the next, in registers of an element: what a block has to keep. */
static double kept(const nvf_cand *k) {
  int n = k->inst.n, *when = NVB_NEWN(k->net->arena, int, n + 1), *until = NVB_NEWN(k->net->arena, int, n + 1);
  int last = nvf_phases(k, when);
  double best = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k->inst.at[i].narg; j++) {
      int x = k->inst.at[i].arg[j];
      until[x] = when[i] > until[x] ? when[i] : until[x];
    }
  for (int i = 0; i < k->put.n; i++)
    until[k->put.at[i].inst] = last;
  for (int p = 0; p < last; p++) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
      const nvf_inst *v = &k->inst.at[i];
      int size = nvg_size(k->net->node[v->node].dtype), half = v->kind == NVF_ILOAD && size == 2;
      if (v->kind != NVF_ICONST && v->kind != NVF_IPICK && when[i] <= p && until[i] > p && (v->axes & k->reduced) &&
          extent(k, v->axes) > extent(k, k->grid))
        sum += half ? 0.5 : size > 4 ? size / 4 : 1;
    }
    best = sum > best ? sum : best;
  }
  return best;
}

/* Warps and items of a block that has n elements of the axes it does in whole, some of them `live` from phase to phase. */
static void divide(room *r, int64_t n, double live, int64_t blocks) {
  r->most_warps = WARPS;
  r->most_items = ITEMS;
  if (live == 0)
    return;
  int64_t e = ITEMS;
  while (e > 4 && live * (double)e > 64)
    e /= 2;
  int64_t warps = power2((n + LANES * e - 1) / (LANES * e));
  r->fits = warps <= MOST_WARPS && (double)(warps * LANES) * (live * (double)e + 28) <= REGISTERS;
  if (!r->fits)
    return;
  while (e > 8 && warps < WARPS && warps * LANES * e <= n && blocks * warps < 16 * r->caps->units)
    e /= 2, warps *= 2;
  r->most_items = e;
  r->most_warps = (int)most(warps, 1);
}

/* ---- the axis with the lanes */
static int may_have_lanes(const nvf_cand *k, int a) {
  nvf_stamp st[64];
  int n = a >= 0 ? nvf_stamps(k, a, st, 64) : 0, ok = a >= 0 && nvf_live(k, a) && k->axis.at[a].n > 1;
  for (int i = 0; i < n; i++)
    ok &= (st[i].c == 1 && st[i].w == 1) || st[i].w >= LANES;
  return ok;
}

static int lane_of(const nvf_cand *k) {
  int best = nvf_lane_axis(k);
  if (may_have_lanes(k, best))
    return best;
  best = -1;
  for (int grid = 1; grid >= 0 && best < 0; grid--)
    for (int a = 0; a < k->axis.n; a++)
      if (may_have_lanes(k, a) && (k->grid >> a & 1) == (uint64_t)grid && (best < 0 || k->axis.at[a].n > k->axis.at[best].n))
        best = a;
  return best;
}

/* ---- axes of the grid that a block takes several coordinates of */
static void cut(room *r, int a) {
  nvf_place *at = &r->s->at[a];
  at->tile = 1;
  at->cut = 1;
  for (int i = 0; i < r->d[a].n; i++)
    at->tile *= r->d[a].d[i].n;
  if (at->tile == 1)
    *at = (nvf_place){ .tile = 0 };
}

/* The next axis of the grid for what is left of a block: where memory goes on; -1. */
static int neighbour(const room *r) {
  const nvf_cand *k = r->k;
  nvf_ix at = k->put.n ? k->put.at[0].at : 0;
  int best = -1;
  int64_t near = 0;
  for (int a = 0; a < k->axis.n; a++) {
    nvf_prod by;
    int64_t c;
    if (!nvf_live(k, a) || !(k->grid >> a & 1) || r->s->at[a].tile || k->axis.at[a].n < 2 || r->d[a].n)
      continue;
    int64_t step = nvf_ix_coef(k->net->space, at, a, &by, &c) ? (c < 0 ? -c : c) * nvf_value(k->net->space, by) : (int64_t)1 << 40;
    if (best < 0 || step < near)
      best = a, near = step;
  }
  return best;
}

static int64_t blocks_now(const room *r) {
  int64_t n = 1;
  for (int a = 0; a < r->k->axis.n; a++)
    if (nvf_live(r->k, a) && (r->k->grid >> a & 1)) {
      int64_t t = most(1, r->s->at[a].tile);
      n *= (r->k->axis.at[a].n + t - 1) / t;
    }
  return n;
}

/* Lanes, warps (up to `warps`) and items (up to `items` of each thread) that are left go to neighbours. */
static void stack(room *r, int warps, int64_t items) {
  for (int a; (r->lanes < LANES || r->warps < warps || items > 1) && (a = neighbour(r)) >= 0;) {
    int64_t n = power2(r->k->axis.at[a].n), most_items = r->items * items;
    r->most_warps = warps;
    n = take(r, a, 'l', n);
    if (r->warps < warps && blocks_now(r) >= 2 * r->caps->units)
      n = take(r, a, 'w', n);
    if (items > 1) {
      int64_t had = r->items;
      r->most_items = most_items;
      take(r, a, 'i', n);
      items /= r->items / had;
    }
    if (!r->d[a].n)
      return;
    cut(r, a);
  }
}

/* ---- kernels without whole axes: as many vectors in flight as loads and arithmetic ask for */
static int64_t in_flight(const nvf_cand *k, int64_t vec) {
  int loads = 0, cost = 0;
  for (int i = 0; i < k->inst.n; i++) {
    const nvf_inst *v = &k->inst.at[i];
    loads += v->kind == NVF_ILOAD && v->axes == k->grid;
    cost += v->kind == NVF_IMAP ? k->net->node[v->node].frag->cost : 0;
  }
  int64_t n = cost >= 40 ? 4 : loads <= 1 ? 4 : loads == 2 ? 2 : 1;
  while (n > 1 && n * vec * most(loads, 1) > 64)
    n /= 2;
  return n;
}

static int reused(const nvf_cand *k, int lane) { /* operands along the lanes that neighbours share */
  for (int i = 0; i < k->inst.n; i++)
    if (k->inst.at[i].kind == NVF_ILOAD && (k->inst.at[i].axes >> lane & 1) && k->inst.at[i].axes != k->grid)
      return 1;
  return 0;
}

static void elementwise(room *r) {
  nvf_cand *k = r->k;
  int a = r->s->lane;
  int64_t n = k->axis.at[a].n, all = extent(k, k->grid), vec = vector(k, a), items = in_flight(k, vec), warps = WARPS;
  while (items > 1 && all / (vec * items * LANES * WARPS) < 4 * r->caps->units)
    items /= 2;
  while (warps > 2 && all / (vec * LANES * warps) < r->caps->units)
    warps /= 2;
  r->most_warps = (int)warps;
  r->most_items = vec * items;
  give(r, a, 'i', vec);
  int64_t rest = power2((n + vec - 1) / vec);
  rest = take(r, a, 'l', rest);
  rest = take(r, a, 'w', rest);
  if (!reused(k, a) || neighbour(r) < 0) {
    int64_t had = r->items;
    take(r, a, 'i', rest);
    items /= r->items / had;
  }
  cut(r, a);
  stack(r, (int)warps, items);
}

/* Memory that the lanes cross: a square of 64, read one way and written the other, each along its lines. */
static void square(room *r) {
  enum { SIDE = 64 };
  int axis[2] = { r->s->lane, r->s->cross };
  nvf_digits d[2][2];
  for (int along = 0; along < 2; along++) { /* of the two axes the one that the lanes follow */
    int a = axis[along], b = axis[1 - along];
    int64_t vec = vector(r->k, a), l = least(LANES, SIDE / vec), w = least(WARPS, SIDE / (LANES / l));
    room x = *r;
    x.most_warps = WARPS;
    give(&x, a, 'i', vec);
    give(&x, a, 'l', l);
    give(&x, a, 'i', SIDE / (vec * l));
    give(&x, b, 'l', LANES / l);
    give(&x, b, 'w', w);
    give(&x, b, 'i', SIDE / (LANES / l * w));
    d[along][along] = x.d[a];
    d[along][1 - along] = x.d[b];
  }
  for (int i = 0; i < 2; i++) {
    nvf_place *at = &r->s->at[axis[i]];
    r->d[axis[i]] = d[0][i];
    cut(r, axis[i]);
    nvf_digits_text(&d[1][i], at->across, &at->low_across);
  }
}

/* ---- kernels with whole axes */
static void folded(room *r, uint64_t whole) {
  nvf_cand *k = r->k;
  nvf_shape *s = r->s;
  int a = s->lane, rows = a >= 0 && (whole >> a & 1);
  int64_t all = 1, vec = a >= 0 ? vector(k, a) : 1, n = extent(k, k->grid), lines = n;
  int scan = 0;
  for (int b = 0; b < k->axis.n; b++) {
    all *= whole >> b & 1 ? s->at[b].tile : 1;
    scan |= nvf_scanned(k, b);
  }
  double live = scan ? 0 : kept(k);
  if (rows) {
    nvf_stamp st[64];
    int m = nvf_stamps_of(k, s, a, st, 1);
    divide(r, all, live, lines);
    int64_t p = s->at[a].tile, seq = m ? least(st->c, p) / least(st->w, p) : 1;
    if (r->fits)
      vec = least(vec, most(1, r->most_items / seq));
    else if (vec > 4)
      r->most_items *= 2; /* as loaded they are half as many registers */
    if (vec == 1 && s->at[a].tile <= 4)
      vec = s->at[a].tile;
    whole_axis(r, a, vec);
  } else {
    r->most_warps = WARPS;
    if (live > 0)
      vec = 1;
    while (a >= 0 && vec > 1 && n / (vec * LANES) < 2 * r->caps->units)
      vec /= 2;
    if (a >= 0) {
      give(r, a, 'i', vec);
      take(r, a, 'l', power2((k->axis.at[a].n + vec - 1) / vec));
    }
    r->most_items = ITEMS;
  }
  for (int b = 0; b < k->axis.n; b++)
    if ((whole >> b & 1) && b != a)
      whole_axis(r, b, 1);
  if (a >= 0 && !rows) {
    if (r->warps < WARPS / 2) {
      int64_t t = 1;
      for (int i = 0; i < r->d[a].n; i++)
        t *= r->d[a].d[i].n;
      r->most_warps = WARPS / 2;
      if (n / t >= 2 * r->caps->units)
        take(r, a, 'w', power2((k->axis.at[a].n + t - 1) / t));
    }
    cut(r, a);
  }
  int shared = rows && r->warps > 1; /* a block waits for all of its row */
  stack(r, WARPS / 2, 1);
  int64_t ahead = r->caps->units * most(1, 1024 / (r->warps * LANES));
  if (shared && r->fits && blocks_now(r) > 2 * ahead)
    s->ahead = ahead;
}

nvf_shape *nvf_shape_gpu(nvf_cand *k) {
  nvb_arena *mem = k->net->arena;
  nvf_shape *s = NVB_NEW(mem, nvf_shape);
  room *r = NVB_NEW(mem, room);
  uint64_t whole = 0;
  s->at = NVB_NEWN(mem, nvf_place, k->axis.n + 1);
  s->lane = lane_of(k);
  s->cross = -1;
  *r = (room){ .k = k, .s = s, .caps = k->net->caps, .lanes = 1, .warps = 1, .items = 1, .most_items = ITEMS, .most_warps = WARPS };
  for (int a = 0; a < k->axis.n; a++)
    if (nvf_live(k, a) && !(k->grid >> a & 1)) {
      s->at[a].tile = nvf_is_exact(k, a) ? k->axis.at[a].n : power2(k->axis.at[a].n);
      if (nvf_scanned(k, a))
        s->at[a].tile = most(16, s->at[a].tile);
      whole |= 1ull << a;
    }
  if (!whole)
    s->cross = nvf_cross_axis(k, s->lane);
  if (whole)
    folded(r, whole);
  else if (s->cross >= 0)
    square(r);
  else if (s->lane >= 0)
    elementwise(r);
  for (int a = 0; a < k->axis.n; a++) {
    nvf_place *at = &s->at[a];
    nvf_digits_text(&r->d[a], at->digits, &at->low);
    if (s->cross < 0 || (a != s->cross && a != s->lane))
      nvf_digits_text(&r->d[a], at->across, &at->low_across);
    if (at->tile && a != s->lane)
      s->order[s->norder++] = a;
  }
  if (s->lane >= 0 && s->at[s->lane].tile)
    s->order[s->norder++] = s->lane;
  return s;
}
