/* The schedule code that all devices share: it collapses axes, finds the reduction orders that bind an axis, orders the
   statements, and says why a device can have no kernel for a fusion. It never assigns digits (schedule_cpu.c and
   schedule_gpu.c do). It changes no bit of a result; tile sizes depend on classes of sizes, never on the sizes
   themselves. */
#include "fusion/schedule.h"
#include <string.h>

/* ---- collapse: two axes that every expression sees as one */
/* Whether the pair is m and n of a GEMM, which never collapse: an operand that is one number everywhere has neither
   axis. */
static int is_dot(const nvf_fusion *k, uint64_t pair) {
  return k->dot && k->dot->m >= 0 && k->dot->n >= 0 && pair == (1ull << k->dot->m | 1ull << k->dot->n);
}

static int are_alike(uint64_t axes, int a, int b) { return (axes >> a & 1) == (axes >> b & 1); }

static nvf_ix rewrite_index(nvf_space *s, nvf_ix e, const nvf_ix *to, uint64_t pair, int *ok) {
  if (!(nvf_ix_axes(s, e) & pair)) return e;
  nvf_ix r = nvf_ix_subst(s, e, to);
  *ok &= nvf_ix_floors(s, r) <= nvf_ix_floors(s, e);
  return r;
}

/* All index expressions of a kernel. */
typedef struct expressions { nvf_ix *at, *put; nvf_bound **guard, *valid; } expressions;

/* Substitutes axes in all index expressions; returns 0 if one of them gets a floor division. */
static int rewrite_all(const nvf_fusion *k, const nvf_ix *to, uint64_t pair, expressions *e) {
  nvf_space *s = k->graph->space;
  nvb_arena *mem = k->graph->arena;
  int ok = 1;
  *e = (expressions){ NVB_NEWN(mem, nvf_ix, k->expr.n + 1), NVB_NEWN(mem, nvf_ix, k->put.n + 1),
                      NVB_NEWN(mem, nvf_bound *, k->guard.n + 1), NVB_NEWN(mem, nvf_bound, k->valid.n + 1) };
  for (int i = 0; i < k->expr.n && ok; i++) e->at[i] = rewrite_index(s, k->expr.at[i].at, to, pair, &ok);
  for (int i = 0; i < k->put.n && ok; i++) e->put[i] = rewrite_index(s, k->put.at[i].at, to, pair, &ok);
  for (int g = 0; g < k->guard.n && ok; g++) {
    e->guard[g] = nvb_dup(mem, k->guard.at[g].b, (size_t)k->guard.at[g].n * sizeof **e->guard);
    for (int i = 0; i < k->guard.at[g].n; i++) e->guard[g][i].e = rewrite_index(s, e->guard[g][i].e, to, pair, &ok);
  }
  for (int i = 0; i < k->valid.n && ok; i++)
    e->valid[i] = (nvf_bound){ rewrite_index(s, k->valid.at[i].e, to, pair, &ok), k->valid.at[i].n };
  return ok;
}

static int may_be_one(const nvf_fusion *k, int a, int b) {
  uint64_t pair = 1ull << a | 1ull << b;
  int ok = !is_dot(k, pair);
  for (int i = 0; i < k->expr.n; i++) ok &= are_alike(k->expr.at[i].axes, a, b);
  for (int i = 0; i < k->put.n; i++) ok &= are_alike(k->put.at[i].axes, a, b);
  for (int i = 0; i < k->check.n; i++) ok &= !(k->check.at[i].axes & pair);
  return ok;
}

/* Replaces axes a and b by one axis, numbered b, if no index expression gets a floor division. */
static int collapse_axes(nvf_fusion *k, int a, int b) {
  nvf_space *s = k->graph->space;
  nvf_prod inner = k->axis.at[b].extent, all = nvf_mul(s, k->axis.at[a].extent, inner);
  nvf_ix to[64], one = nvf_ix_axis(s, b, all);
  expressions e;
  for (int i = 0; i < 64; i++) to[i] = -1;
  to[a] = nvf_ix_div(s, one, inner);
  to[b] = nvf_ix_mod(s, one, inner);
  if (!may_be_one(k, a, b) || !rewrite_all(k, to, 1ull << a | 1ull << b, &e)) return 0;
  for (int i = 0; i < k->expr.n; i++) k->expr.at[i].at = e.at[i], k->expr.at[i].axes &= ~(1ull << a);
  for (int i = 0; i < k->put.n; i++) k->put.at[i].at = e.put[i], k->put.at[i].axes &= ~(1ull << a);
  for (int g = 0; g < k->guard.n; g++) k->guard.at[g].b = e.guard[g];
  for (int i = 0; i < k->valid.n; i++) k->valid.at[i] = e.valid[i];
  k->axis.at[b] = (nvf_axis){ all, nvf_value(s, all) };
  k->axis.at[a] = (nvf_axis){ 0, 1 };
  k->grid &= ~(1ull << a);
  if (k->attention) k->attention->m = k->attention->m == a ? b : k->attention->m;
  if (k->dot) {
    k->dot->m = k->dot->m == a ? b : k->dot->m;
    k->dot->n = k->dot->n == a ? b : k->dot->n;
  }
  return 1;
}

void nvf_collapse(nvf_fusion *k) {
  for (int again = 1; again;) {
    again = 0;
    for (int a = 0; a < k->axis.n; a++)
      for (int b = 0; b < k->axis.n; b++)
        if (a != b && nvf_live(k, a) && nvf_live(k, b) && !((k->reduced >> a | k->reduced >> b) & 1) &&
            (k->grid >> a & 1) == (k->grid >> b & 1))
          again |= collapse_axes(k, a, b);
  }
}

/* ---- reduction orders */
int nvf_red_orders(const nvf_fusion *k, int axis, nvf_red_order *out, int most) {
  int n = 0;
  for (int i = 0; i < k->expr.n && n < most; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    const nvf_node *r = &k->graph->node[v->node];
    if (v->kind == NVF_IRED && v->axis == axis && !r->order_free) out[n++] = (nvf_red_order){ r->chunk, r->lanes };
  }
  return n;
}

static int is_reduced(const nvf_fusion *k, int axis) {
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_IRED && k->expr.at[i].axis == axis) return 1;
  return 0;
}

/* Lanes of the accumulators of a reduction in any order on a CPU: enough vectors to hide the latency of a merge, but no
   more than the registers hold together with the operands (argmax of rows of 1000 f32 in 128 lanes, which did not fit:
   3 x NumPy's time). */
static int accumulator_lanes(const nvf_fusion *k, const nvf_tiling *s, int axis) {
  enum { REGISTERS = 8, MOST = 4 };
  int bytes = 1;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    int own = 0;
    for (int j = 0; j < v->narg && v->kind == NVF_IRED && v->axis == axis; j++)
      own += nvg_size(k->graph->node[k->expr.at[v->arg[j]].node].dtype);
    bytes = own > bytes ? own : bytes;
  }
  int fit = 4 * REGISTERS / bytes;
  return (fit >= MOST ? MOST : fit >= 2 ? 2 : 1) * (int)most(s->width, k->graph->caps->width);
}

/* A reduction in any order has neighbours as lanes on a GPU, and the rest in sequence. */
int nvf_red_orders_of(const nvf_fusion *k, const nvf_tiling *s, int axis, nvf_red_order *out, int most) {
  enum { ENDLESS = 1 << 30 };
  int n = nvf_red_orders(k, axis, out, most), gpu = k->graph->caps->kind != NVB_CPU, lane = nvf_has_lanes(s, axis);
  if (n) return n;
  if (gpu && !is_reduced(k, axis)) *out = (nvf_red_order){ 1024, 1024 }; /* blocks of a scan */
  else if (gpu) *out = (nvf_red_order){ ENDLESS, s->at[axis].beside ? (int)s->at[axis].beside : 1 };
  else if (is_reduced(k, axis) && lane) *out = (nvf_red_order){ ENDLESS, accumulator_lanes(k, s, axis) };
  else *out = lane ? (nvf_red_order){ 1024, 128 } : (nvf_red_order){ 64, 1 };
  return 1;
}

int64_t nvf_order_border(const nvf_red_order *st, int n, int64_t lo, int64_t p, int *seq) {
  int64_t hi = p;
  *seq = 0;
  for (int i = 0; i < n; i++) {
    hi = st[i].w > lo && st[i].w < hi ? st[i].w : hi;
    hi = st[i].c > lo && st[i].c < hi ? st[i].c : hi;
  }
  for (int i = 0; i < n; i++) *seq |= st[i].w <= lo && hi <= st[i].c;
  return hi;
}

/* The reduction order that follows the layout of a GEMM's accumulators: a thread's items above the lanes are added in
   sequence, up to the warps. */
static nvf_red_order red_order_of_tile(const nvf_digits *d) {
  int64_t end = 1, lanes = 1, chunk;
  int above = 0;
  for (int i = 0; i < d->n; i++) {
    end *= d->d[i].n;
    if (d->d[i].level == 'l') lanes = end, above = i + 1;
  }
  for (chunk = lanes; above < d->n && (d->d[above].level | 32) == 'i'; above++) chunk *= d->d[above].n;
  return (nvf_red_order){ (int)chunk, (int)lanes };
}

void nvf_red_order_of(const nvf_fusion *k, const nvf_tiling *s, const nvf_iexpr *red, nvf_red_order *out) {
  const nvf_node *n = &k->graph->node[red->node];
  *out = (nvf_red_order){ n->chunk, n->lanes };
  if (n->tiled) *out = red_order_of_tile(&s->at[red->axis].digits);
  else if (n->order_free) nvf_red_orders_of(k, s, red->axis, out, 1);
}

int nvf_scanned(const nvf_fusion *k, int axis) {
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ISCAN && k->expr.at[i].axis == axis) return 1;
  return 0;
}

int nvf_is_exact(const nvf_fusion *k, int axis) {
  nvf_space *s = k->graph->space;
  nvf_prod e = k->axis.at[axis].extent;
  int64_t n = nvf_factor(s, e);
  return nvf_quot(s, e, nvf_int(s, n ? n : 1)) == 0;
}

int nvf_returns(const nvf_fusion *k, int red) {
  uint8_t *below = nvb_get(k->graph->arena, (size_t)k->expr.n + 1);
  below[red] = 1;
  for (int i = red + 1; i < k->expr.n; i++) {
    for (int j = 0; j < k->expr.at[i].narg; j++) below[i] |= below[k->expr.at[i].arg[j]];
    if (below[i] && (k->expr.at[i].axes >> k->expr.at[red].axis & 1)) return 1;
  }
  return 0;
}

/* ---- the order of statements */
/* An expression that only a later phase uses is computed in that phase. */
int nvf_phases(const nvf_fusion *k, int *when) {
  int n = k->expr.n, *phase = NVB_NEWN(k->graph->arena, int, n + 1), last = 0;
  for (int i = 0; i < n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    for (int j = 0; j < v->narg; j++) phase[i] = phase[v->arg[j]] > phase[i] ? phase[v->arg[j]] : phase[i];
    phase[i] += nvf_is_red(v);
    last = phase[i] > last ? phase[i] : last;
    when[i] = -1;
  }
  for (int i = n - 1; i >= 0; i--) {
    const nvf_iexpr *v = &k->expr.at[i];
    int at = nvf_is_red(v) ? phase[i] - 1 : when[i] > phase[i] ? when[i] : phase[i];
    when[i] = at;
    for (int j = 0; j < v->narg; j++)
      if (when[v->arg[j]] < 0 || when[v->arg[j]] > at) when[v->arg[j]] = at;
  }
  for (int c = 0; c < k->check.n; c++) /* an index tile and its check come before every load that uses it */
    for (int i = k->check.at[c].expr; i >= 0; i--) when[i] = 0;
  return last;
}

static uint64_t loops_of(const nvf_fusion *k, const nvf_tiling *s, int i) {
  const nvf_iexpr *v = &k->expr.at[i];
  return (v->axes | (nvf_is_red(v) ? 1ull << v->axis : 0)) & s->loops;
}

/* Whether an elementwise kernel of a GPU issues all loads before it computes. Else the compiler moves loads down to
   their uses to save registers, and each waits for memory on its own. More than 8 loads would take too many
   registers. */
static int loads_first(const nvf_fusion *k) {
  int n = 0;
  for (int i = 0; i < k->expr.n; i++) n += k->expr.at[i].kind == NVF_ILOAD;
  return k->graph->caps->kind == NVB_CUDA && !k->reduced && !k->check.n && n <= 8;
}

/* The next expression of a phase whose operands are computed: with the same loops as the last one, else with the fewest
   loops; -1: none. */
static int next_of(const nvf_fusion *k, const nvf_tiling *s, const int *when, const uint8_t *done, int phase,
                   uint64_t now) {
  int best = -1, fewest = 65, first = loads_first(k);
  for (int i = 0; i < k->expr.n && first; i++)
    if (k->expr.at[i].kind == NVF_ILOAD && !k->expr.at[i].narg && when[i] == phase && !done[i]) return i;
  for (int i = 0; i < k->expr.n; i++) {
    int ready = when[i] == phase && !done[i];
    for (int j = 0; j < k->expr.at[i].narg && ready; j++) ready = done[k->expr.at[i].arg[j]];
    uint64_t axes = loops_of(k, s, i);
    if (ready && (axes == now || k->check.n)) return i;
    if (ready && __builtin_popcountll(axes) < fewest) {
      fewest = __builtin_popcountll(axes);
      best = i;
    }
  }
  return best;
}

/* Orders phase by phase, with few changes of loops within a phase: consecutive statements with the same loops become
   one loop nest. */
int *nvf_order(const nvf_fusion *k, const nvf_tiling *s) {
  int n = k->expr.n, *when = NVB_NEWN(k->graph->arena, int, n + 1), *order = NVB_NEWN(k->graph->arena, int, n + 1),
      m = 0;
  uint8_t *done = nvb_get(k->graph->arena, (size_t)n + 1);
  int last = nvf_phases(k, when);
  uint64_t now = ~0ull;
  for (int p = 0; p <= last; p++)
    for (int i; (i = next_of(k, s, when, done, p, now)) >= 0; now = loops_of(k, s, i)) {
      order[m++] = i;
      done[i] = 1;
    }
  return order;
}

/* ---- digits */
void nvf_digit_add(nvf_digits *d, char level, int64_t n, int at) {
  if (n <= 1 || d->n == NVF_MAX_DIGITS) return; /* no axis has that many digits */
  d->d[d->n].level = level;
  d->d[d->n].n = n;
  d->d[d->n++].at = at;
}

int nvf_longest_grid(const nvf_fusion *k, const nvf_tiling *s) {
  int best = -1;
  for (int a = 0; a < k->axis.n; a++)
    if (nvf_live(k, a) && (k->grid >> a & 1) && !s->at[a].tile && (best < 0 || k->axis.at[a].n > k->axis.at[best].n))
      best = a;
  return best;
}

/* ---- what a device can do */
int nvf_is_argument(const nvf_graph *graph, const nvf_node *n) {
  return graph->caps->kind != NVB_CPU && n->kind == NVG_VLEAF && !n->rank && graph->g->leaf[n->leaf].weak_const;
}

int nvf_pointers(const nvf_fusion *k) {
  int n = k->put.n;
  for (int i = 0; i < k->nread; i++) n += !nvf_is_argument(k->graph, &k->graph->node[k->read[i]]);
  return n;
}

/* Counts each literal as an argument, and a few size symbols for each access. */
int64_t nvf_params(const nvf_fusion *k) {
  int64_t n = k->put.n + 3 * k->axis.n;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    const nvf_node *o = &k->graph->node[v->node];
    int terms;
    n += v->kind != NVF_ILOAD ? 0 : nvf_is_argument(k->graph, o) ? o->parts : 1;
    if (v->kind == NVF_ILOAD || v->kind == NVF_IINDEX)
      n += (nvf_ix_terms(k->graph->space, v->at, &terms), terms > 2 ? terms - 2 : 0);
    for (int j = 0; j < v->narg; j++) n += k->expr.at[v->arg[j]].kind == NVF_ICONST ? 2 : 0;
  }
  return n;
}

/* Whether the axis of a scan in segments, or of one element after the other, is also used by another kind of scan or by
   a reduction. */
static int is_crowded(const nvf_fusion *k, const nvf_iexpr *scan) {
  const nvf_node *n = &k->graph->node[scan->node];
  if (scan->kind != NVF_ISCAN || !(n->block || n->chain)) return 0;
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    const nvf_node *o = &k->graph->node[v->node];
    if (v->kind == NVF_ISCAN && (v->axis != scan->axis || o->block != n->block || o->chain != n->chain)) return 1;
    if (v->kind == NVF_IRED && ((v->axes | 1ull << v->axis) >> scan->axis & 1)) return 1;
  }
  return 0;
}

/* Whether a long line is both scanned and reduced, so that a block has to keep it in registers or scratch. */
static int is_long_and_reduced(const nvf_fusion *k) {
  enum { LONG = 16384 };
  for (int a = 0; a < k->axis.n; a++)
    if (k->axis.at[a].n > LONG && nvf_scanned(k, a) && is_reduced(k, a)) return 1;
  return 0;
}

/* Whether scans run along two axes of one value. They leave no lane axis to a CPU, whose code would be scalar (2048 x
   2048 on one thread: 160 ms, 7 as two kernels). */
static int is_scanned_twice(const nvf_fusion *k) {
  enum { FEW = 256 };
  for (int i = 0; i < k->expr.n; i++)
    for (int a = 0; a < k->axis.n && k->expr.at[i].kind == NVF_ISCAN; a++) {
      const nvf_iexpr *v = &k->expr.at[i];
      if (a != v->axis && (v->axes >> a & 1) && nvf_scanned(k, a) && k->axis.at[a].n * k->axis.at[v->axis].n > FEW)
        return 1;
    }
  return 0;
}

/* Whether, with several reductions, the whole axes of some value and a line of lanes may exceed the elements of a tile.
   A single reduction is split by two_pass.c instead. */
static int is_too_much(const nvf_fusion *k) {
  enum { LINE = 64 };
  int reds = 0, much = 0, lane = k->dot ? -1 : nvf_lane_axis(k);
  uint64_t line = lane >= 0 ? 1ull << lane & k->grid : 0;
  for (int i = 0; i < k->expr.n && !k->dot; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    uint64_t axes = v->axes | (v->kind == NVF_IRED ? 1ull << v->axis : 0);
    double n = axes & line ? LINE : 1;
    for (int a = 0; a < k->axis.n; a++)
      if ((axes & ~k->grid) >> a & 1 && !nvf_scanned(k, a)) n *= (double)k->axis.at[a].n;
    reds += v->kind == NVF_IRED;
    much |= n > NVF_TILE_SURE;
  }
  return reds > 1 && much;
}

static int is_tile_too_large(const nvf_fusion *k, const nvf_tiling *s, uint64_t axes) {
  double n = 1;
  for (int a = 0; a < k->axis.n; a++) n *= axes >> a & 1 && s->at[a].tile ? (double)s->at[a].tile : 1;
  return n > NVF_TILE_MOST;
}

/* The same by the CPU's schedule itself, whose lane axis may not be the contiguous one: whether one of its tiles
   exceeds the limit (a tile of 32768 x 64 x 16 with 16 partials of a sum as lanes has 2^31). */
static int is_after(nvf_fusion *k) {
  enum { FEW = NVF_TILE_SURE / 64 };
  int reds = 0, too_large = 0;
  double whole = 1;
  for (int i = 0; i < k->expr.n; i++) reds += k->expr.at[i].kind == NVF_IRED;
  for (int a = 0; a < k->axis.n; a++) whole *= k->grid >> a & 1 ? 1 : (double)k->axis.at[a].n;
  if (reds < 2 || k->dot || whole < FEW) return 0;
  const nvf_tiling *s = nvf_tiling_cpu(k);
  for (int i = 0; i < k->expr.n; i++) {
    const nvf_iexpr *v = &k->expr.at[i];
    too_large |= is_tile_too_large(k, s, v->axes | (v->kind == NVF_IRED ? 1ull << v->axis : 0));
  }
  for (int i = 0; i < k->put.n; i++) too_large |= is_tile_too_large(k, s, k->put.at[i].axes);
  return too_large;
}

const char *nvf_why_rejected(nvf_fusion *k) {
  if (is_too_much(k) || (k->graph->caps->kind == NVB_CPU && is_after(k))) return "more elements than a tile may have";
  if (is_long_and_reduced(k)) return "a scan and a reduction of long lines";
  if (k->graph->caps->kind == NVB_CPU) return is_scanned_twice(k) ? "scans along two axes" : NULL;
  if (k->dot && nvf_gemm_spills(k)) return "more sums than a thread has registers for";
  nvf_gemm_tiling t = { 0 };
  if (k->dot && nvf_gemm_reduced_axis(k) >= 0 && k->axis.at[nvf_gemm_reduced_axis(k)].n > 64 && !nvf_tensor_tile(k, &t))
    return "a matrix product in tiles that no tensor core has";
  for (int i = 0; i < k->expr.n; i++)
    if (is_crowded(k, &k->expr.at[i])) return "a scan of a long line and what else goes along it";
  return nvf_params(k) > NVF_MOST_PARAMS ? "more arguments than a launch may have" : NULL;
}

nvf_tiling *nvf_tiling_of(nvf_fusion *k) {
  return k->dot                            ? nvf_tiling_gemm(k)
         : k->attention                    ? nvf_tiling_attention(k)
         : k->transforms                   ? nvf_tiling_transform(k)
         : k->graph->caps->kind == NVB_CPU ? nvf_tiling_cpu(k)
                                           : nvf_tiling_gpu(k);
}
