/* Emits scans in the order of docs/how-it-works/numerics.md: runs of 16 elements in sequence, within a thread's items;
   the runs of a block by the bits of their number, at any level; blocks from left to right. The value is (carry + e) +
   p; an absent term is skipped. The code has no branches: a thread also computes what it does not need. If a run is not
   within the items of one thread, the scan moves its operands to a layout of its own and back. Decides where values
   are, never the order in which they merge. */
#include "codegen/cuda/emit.h"
#include <string.h>
#include "frag/dtype.h"

typedef struct scan {
  nvcu_em *e;
  const nvf_stmt *s;
  const nvf_layout *tile; /* layout of the tiles */
  /* layout of the scan: an item digit across the end of a run is split in two; items keep their numbers */
  nvf_layout l;
  nvf_layout runs;         /* l without the digits within a run: its items number the runs */
  int n, items;            /* number of states; number of items of `runs` */
  int64_t len, run, block; /* elements of the axis, of a run, of a block */
  const char **p;          /* [item of l][state]: the operand, later the prefix within its run (p), later the result */
  /* [item of runs][state]: the sum of the group so far; the sum to the left of the run in its block (e) */
  const char **total, **before;
  int lanes, warps; /* bits of the lane and warp number that are lower bits of the run's number */
} scan;

static nvm_dtype type_of(const scan *c, int i) { return c->e->k->tile[c->s->in[i]].type; }

static const char *value_name(const scan *c, int i, const char *text) {
  const char *v = nvcu_fresh(c->e, "p");
  nvcu_line(c->e, "const %s %s = %s;", nvcu_type(type_of(c, i)), v, text);
  return v;
}

static void copy_values(const scan *c, const char **to, const char *const *from) {
  memcpy(to, from, sizeof *to * (size_t)c->n);
}

static void merge_values(const scan *c, const char **to, const char *const *a, const char *const *b) {
  const char *v[NVCU_ARGS];
  copy_values(c, v, a);
  nvcu_merge(c->e, c->s->frag, v, b, c->n, 0);
  copy_values(c, to, v);
}

/* ---- conditions: text, or one of these two */
static const char always[] = "true", never[] = "false";

static void choose_values(const scan *c, const char *when, const char **to, const char *const *yes,
                          const char *const *no) {
  if (when == always || when == never) {
    copy_values(c, to, when == always ? yes : no);
    return;
  }
  for (int i = 0; i < c->n; i++) to[i] = value_name(c, i, nvcu_text(c->e, "%s ? %s : %s", when, yes[i], no[i]));
}

/* to = when ? merge(a, b) : (keep_a ? a : b) */
static void merge_if(const scan *c, const char *when, const char **to, const char *const *a, const char *const *b,
                     int keep_a) {
  const char *v[NVCU_ARGS];
  if (when == never) {
    copy_values(c, to, keep_a ? a : b);
    return;
  }
  merge_values(c, v, a, b);
  choose_values(c, when, to, v, keep_a ? a : b);
}

/* Text of "this thread's number has one of these bits". */
static const char *has_bits(const scan *c, int lanes, int warps) {
  if (!lanes && !warps) return never;
  if (!warps) return nvcu_let(c->e, "bool", nvcu_text(c->e, "(lane & %d) != 0", lanes));
  if (!lanes) return nvcu_let(c->e, "bool", nvcu_text(c->e, "(warp & %d) != 0", warps));
  return nvcu_let(c->e, "bool", nvcu_text(c->e, "(lane & %d) != 0 || (warp & %d) != 0", lanes, warps));
}

/* ---- positions */
static const nvf_digit *digit_with(const scan *c, int64_t b, int *at) {
  for (int i = 0; i < c->runs.n; i++) {
    const nvf_digit *d = &c->runs.d[i];
    if (d->axis == c->s->axis && b >= d->stride && b < d->stride * d->extent) return *at = i, d;
  }
  nvb_throw(c->e->a, NVM_ERR_INTERNAL, "[cuda] the layout of a scan lacks a digit of its axis");
}

/* Is some bit of the run's number below b set? */
static const char *lower_set(const scan *c, int item, int64_t b) {
  if (nvc_axis_part(&c->runs, c->s->axis, item) & (b - 1) & -c->run) return always;
  return has_bits(c, c->lanes, c->warps);
}

/* ---- operands and results */
static void load_operand(nvcu_em *e, const scan *c, int i, const char **v, int step) {
  for (int item = 0; item < nvc_items(c->tile); item++) {
    const char *when = nvcu_cond(e, c->s->where, c->tile, item), *x = nvcu_tile_now(e, c->s->in[i], c->tile, item);
    v[item * step] =
        when ? value_name(c, i, nvcu_text(e, "%s ? %s : %s", when, x, nvcu_const(e, type_of(c, i), c->s->init[i]))) : x;
  }
}

typedef struct passage {
  scan *c;
  int state;
} passage;
static void put_operand(nvcu_em *e, void *arg, const char **v) {
  const passage *p = arg;
  load_operand(e, p->c, p->state, v, 1);
}
static void get_operand(nvcu_em *e, void *arg, const char **v) {
  const passage *p = arg;
  (void)e;
  for (int item = 0; item < nvc_items(&p->c->l); item++) p->c->p[item * p->c->n + p->state] = v[item];
}
static void put_result(nvcu_em *e, void *arg, const char **v) {
  const passage *p = arg;
  (void)e;
  for (int item = 0; item < nvc_items(&p->c->l); item++) v[item] = p->c->p[item * p->c->n + p->state];
}
static void get_result(nvcu_em *e, void *arg, const char **v) {
  const passage *p = arg;
  for (int item = 0; item < nvc_items(p->c->tile); item++) nvcu_define(e, p->c->s->out[p->state], item, v[item]);
}

static void load_operands(scan *c, int moved) {
  for (int i = 0; i < c->n; i++) {
    passage p = { c, i };
    if (moved) nvcu_transfer(c->e, type_of(c, i), c->tile, put_operand, &c->l, get_operand, &p);
    else load_operand(c->e, c, i, c->p + i, c->n);
  }
}

static void store_results(scan *c, int moved) {
  for (int i = 0; i < c->n; i++) {
    passage p = { c, i };
    if (moved) nvcu_transfer(c->e, type_of(c, i), &c->l, put_result, c->tile, get_result, &p);
    else
      for (int item = 0; item < nvc_items(c->tile); item++)
        nvcu_define(c->e, c->s->out[i], item, c->p[item * c->n + i]);
  }
}

/* ---- within the runs */
static void scan_runs(const scan *c) {
  for (int item = 0; item < nvc_items(&c->l); item++) {
    const char **p = &c->p[item * c->n], **total = &c->total[nvc_match_item(&c->runs, &c->l, item) * c->n];
    if (nvc_axis_part(&c->l, c->s->axis, item) % c->run) merge_values(c, p, total, p);
    copy_values(c, total, p);
  }
}

/* ---- the runs of a block: in each step each group of runs merges with its neighbour into one group of twice the
   size */
static void join_items(const scan *c, int digit, int64_t b) {
  int m = (int)(b / c->runs.d[digit].stride), step = m * nvc_item_step(&c->runs, digit);
  for (int k = 0; k < c->items; k++) {
    if (nvc_digit_value(&c->runs, digit, k) & m) continue;
    const char **left = &c->total[k * c->n], **right = &c->total[(k + step) * c->n],
               **e = &c->before[(k + step) * c->n];
    const char *has = lower_set(c, k + step, b);
    if (has == never) copy_values(c, e, left);
    else merge_if(c, has, e, left, e, 1);
    merge_values(c, left, left, right);
    copy_values(c, right, left);
  }
}

static void join_threads(const scan *c, int64_t b, const char *upper, const char *const *other) { /* [item][state] */
  for (int k = 0; k < c->items; k++) {
    const char **total = &c->total[k * c->n], **e = &c->before[k * c->n], *v[NVCU_ARGS], *w[NVCU_ARGS];
    const char *const *there = &other[k * c->n];
    const char *has = lower_set(c, k, b);
    if (has == never) copy_values(c, v, there);
    else merge_if(c, has, v, there, e, 1);
    if (e[0]) choose_values(c, upper, e, v, e);
    else copy_values(c, e, v); /* no thread uses it where nothing lies to the left */
    choose_values(c, upper, v, there, total);
    choose_values(c, upper, w, total, there);
    merge_values(c, total, v, w);
  }
}

static void join_lanes(const scan *c, int64_t b, int m) {
  const char **other = NVB_NEWN(c->e->a, const char *, c->items * c->n);
  for (int k = 0; k < c->items * c->n; k++)
    other[k] = value_name(c, k % c->n, nvcu_text(c->e, "__shfl_xor_sync(~0u, %s, %d)", c->total[k], m));
  join_threads(c, b, has_bits(c, m, 0), other);
}

/* Values of all threads in shared memory, [item][state][warp][lane]. */
typedef struct totals {
  nvcu_smem *smem;
  int64_t off[NVCU_ARGS];
} totals;

static totals post_totals(const scan *c, const char *const *v, int count) {
  totals b = { 0 };
  int64_t at = 0;
  if (count > NVCU_ARGS)
    nvb_throw(c->e->a, NVM_ERR_UNSUPPORTED, "[cuda] a scan has %d runs per thread, which is too many", count);
  for (int k = 0; k < count; k++) {
    b.off[k] = at;
    at += 32 * c->e->warps * nvg_size(type_of(c, k % c->n));
  }
  b.smem = nvcu_smem_exchange(c->e, at);
  nvcu_may_write(c->e, b.smem);
  for (int k = 0; k < count; k++)
    nvcu_line(c->e, "%s[warp * 32 + lane] = %s;", nvcu_smem_at(c->e, b.smem, b.off[k], nvcu_type(type_of(c, k % c->n))),
              v[k]);
  nvcu_wrote(c->e, b.smem);
  nvcu_may_read(c->e, b.smem);
  return b;
}

static const char *total_text(const scan *c, const totals *b, int k, const char *thread) {
  return value_name(
      c, k % c->n,
      nvcu_text(c->e, "%s[%s]", nvcu_smem_at(c->e, b->smem, b->off[k], nvcu_type(type_of(c, k % c->n))), thread));
}

static void join_warps(const scan *c, int64_t b, int m) {
  int count = c->items * c->n;
  const char **other = NVB_NEWN(c->e->a, const char *, count);
  totals all = post_totals(c, c->total, count);
  for (int k = 0; k < count; k++)
    other[k] = total_text(c, &all, k, nvcu_text(c->e, "(%s ^ %d) * 32 + lane", nvcu_warp(c->e, &c->runs), m));
  nvcu_read(c->e, all.smem);
  join_threads(c, b, has_bits(c, 0, m), other);
}

static void join_groups(scan *c) {
  for (int64_t b = c->run; b < c->block; b *= 2) {
    int digit;
    const nvf_digit *d = digit_with(c, b, &digit);
    int m = (int)(b / d->stride) * (d->level == 'i' ? 1 : d->pstride);
    if (d->level == 'i') join_items(c, digit, b);
    else if (d->level == 'l') join_lanes(c, b, m);
    else join_warps(c, b, m);
    if (d->level == 'l') c->lanes |= m;
    if (d->level == 'w') c->warps |= m;
  }
}

/* ---- blocks from left to right */
typedef struct chain {
  int count, lanes, warps; /* number of blocks; bits of the lane and warp number that select a block */
  const char **carry; /* [block][state], count + 1 blocks: the sum of everything to the left; NULL: there is nothing */
} chain;

/* The lane and warp bits and the item that have block q of the same row as `item`. */
static int block_item(const scan *c, int item, int64_t q, int *lane, int *warp) {
  *lane = *warp = 0;
  for (int i = 0; i < c->runs.n; i++) {
    const nvf_digit *d = &c->runs.d[i];
    if (d->axis != c->s->axis) continue;
    for (int m = 1; m < d->extent; m *= 2) {
      int64_t b = d->stride * m;
      if (b < c->block) continue;
      int set = (q * c->block & b) != 0;
      if (d->level == 'l') *lane |= set * m * d->pstride;
      if (d->level == 'w') *warp |= set * m * d->pstride;
      if (d->level == 'i')
        item += (set - (nvc_digit_value(&c->runs, i, item) / m & 1)) * m * nvc_item_step(&c->runs, i);
    }
  }
  return item;
}

static void block_bits(const scan *c, chain *h) {
  h->count = (int)(c->len / c->block);
  h->lanes = h->warps = 0;
  for (int q = 1; q < h->count; q *= 2) {
    int lane, warp;
    block_item(c, 0, q, &lane, &warp);
    h->lanes |= lane;
    h->warps |= warp;
  }
}

/* Computes the carries of the row to which an item belongs; given: the scan's initial carry, or NULL. */
static void follow_carries(const scan *c, chain *h, const totals *b, int item, const char *const *given) {
  h->carry = NVB_NEWN(c->e->a, const char *, (h->count + 1) * c->n);
  if (given) copy_values(c, h->carry, given);
  for (int q = 0; q < h->count; q++) {
    int lane, warp, at = block_item(c, item, q, &lane, &warp);
    const char *total[NVCU_ARGS], **left = &h->carry[q * c->n];
    for (int i = 0; i < c->n; i++)
      total[i] = b ? total_text(c, b, at * c->n + i,
                                nvcu_text(c->e, "(%s & ~%d | %d) * 32 + (lane & ~%d | %d)", nvcu_warp(c->e, &c->runs),
                                          h->warps, warp, h->lanes, lane))
                   : c->total[at * c->n + i];
    if (left[0]) merge_values(c, left + c->n, left, total);
    else copy_values(c, left + c->n, total);
  }
}

/* The carry of an item's block (out), and text of whether there is one. */
static const char *carry_of(const scan *c, const chain *h, int item, const char **out) {
  const char *has = never;
  for (int q = 0; q < h->count; q++) {
    int lane, warp;
    const char *const *carry = &h->carry[q * c->n];
    if (block_item(c, item, q, &lane, &warp) != item || !carry[0]) continue;
    const char *here = always;
    if (h->lanes | h->warps)
      here = nvcu_let(c->e, "bool",
                      nvcu_text(c->e, "(lane & %d) == %d && (warp & %d) == %d", h->lanes, lane, h->warps, warp));
    if (has == never) copy_values(c, out, carry);
    else choose_values(c, here, out, carry, out);
    has = has == never && !h->carry[0] && here != always ? has_bits(c, h->lanes, h->warps)
          : has == never                                 ? always
                                                         : has;
  }
  if (has != always && (nvc_axis_part(&c->runs, c->s->axis, item) & -c->block)) has = always;
  return has;
}

static void apply_carries(const scan *c, const chain *h, int run) {
  const char *carry[NVCU_ARGS] = { 0 }, *base[NVCU_ARGS], *v[NVCU_ARGS], *const *e = &c->before[run * c->n];
  const char *has_carry = carry_of(c, h, run, carry);
  const char *has_e = nvc_axis_part(&c->runs, c->s->axis, run) & (c->block - 1) & -c->run ? always
                      : e[0] ? has_bits(c, c->lanes, c->warps)
                             : never;
  if (has_e == never) copy_values(c, base, carry);
  else if (has_carry == never) copy_values(c, base, e);
  else {
    merge_if(c, has_e, v, carry, e, 1);
    choose_values(c, has_carry, base, v, e);
  }
  const char *some = has_e == always || has_carry == always ? always
                     : has_e == never                       ? has_carry
                     : has_carry == never ? has_e
                                          : nvcu_let(c->e, "bool", nvcu_text(c->e, "%s || %s", has_carry, has_e));
  for (int item = 0; item < nvc_items(&c->l); item++) {
    if (nvc_match_item(&c->runs, &c->l, item) != run) continue;
    merge_if(c, some, v, base, &c->p[item * c->n], 0);
    copy_values(c, &c->p[item * c->n], v);
  }
}

static void carry_blocks(const scan *c) {
  nvf_layout rest = nvf_layout_without(&c->l, c->s->axis);
  chain h;
  totals b;
  block_bits(c, &h);
  int has = c->s->nin > c->n, posted = h.lanes | h.warps;
  if (posted) b = post_totals(c, c->total, c->items * c->n);
  for (int r = 0; r < nvc_items(&rest); r++) {
    const char *given[NVCU_ARGS];
    for (int i = 0; i < c->n && has; i++) given[i] = nvcu_tile_at(c->e, c->s->in[c->n + i], &rest, r);
    h.carry = NULL;
    for (int k = 0; k < c->items; k++) {
      if (nvc_match_item(&rest, &c->runs, k) != r) continue;
      if (!h.carry) follow_carries(c, &h, posted ? &b : NULL, k, has ? given : NULL);
      apply_carries(c, &h, k);
    }
    for (int i = 0; i < c->n && has; i++) nvcu_define(c->e, c->s->out[c->n + i], r, h.carry[h.count * c->n + i]);
  }
  if (posted) nvcu_read(c->e, b.smem);
}

/* ---- layouts */
/* Are all runs within the items of one thread, without loops along the axis? */
static int in_place(const scan *c) {
  for (int i = 0; i < c->tile->n; i++) {
    const nvf_digit *d = &c->tile->d[i];
    if (d->axis == c->s->axis && d->extent > 1 && (d->level == 'I' || (d->level != 'i' && d->stride < c->run)))
      return 0;
  }
  return 1;
}

static void add_digit(scan *c, char level, int64_t stride, int64_t extent, int pstride) {
  if (c->l.n == NVF_MAX_DIGITS)
    nvb_throw(c->e->a, NVM_ERR_UNSUPPORTED, "[cuda] the layout of a scan has too many digits");
  c->l.d[c->l.n++] = (nvf_digit){ c->s->axis, (int32_t)extent, stride, level, pstride };
}

/* The layout for a scan that moves: elements of a run are items; the run's number is in lanes that no other axis uses,
   and its higher bits are items again. */
static void own_layout(scan *c) {
  int used = 0, lane = 1;
  for (int i = 0; i < c->tile->n; i++) {
    nvf_digit d = c->tile->d[i];
    if (d.axis == c->s->axis) continue;
    if (d.level == 'l')
      for (int v = 0; v < d.extent; v++) used |= v * d.pstride;
    c->l.d[c->l.n++] = d;
  }
  int64_t b = c->run, taken[5], at[5];
  int n = 0;
  for (; b < c->len && lane < 32; lane *= 2)
    if (!(used & lane)) {
      taken[n] = b;
      at[n++] = lane;
      b *= 2;
    }
  if (b < c->len) add_digit(c, 'i', b, c->len / b, 0);
  while (n-- > 0) add_digit(c, 'l', taken[n], 2, (int)at[n]);
  add_digit(c, 'i', 1, c->run, 0);
}

static void split_layout(scan *c) {
  for (int i = 0; i < c->tile->n; i++) {
    nvf_digit d = c->tile->d[i];
    if (d.axis == c->s->axis && d.stride < c->run && d.stride * d.extent > c->run) {
      int64_t upper = d.stride * d.extent / c->run;
      add_digit(c, d.level, c->run, upper, 0);
      d.extent /= (int32_t)upper;
    }
    if (c->l.n == NVF_MAX_DIGITS)
      nvb_throw(c->e->a, NVM_ERR_UNSUPPORTED, "[cuda] the layout of a scan has too many digits");
    c->l.d[c->l.n++] = d;
  }
}

void nvcu_emit_scan(nvcu_em *e, const nvf_stmt *s) {
  scan c = { .e = e, .s = s, .n = s->frag->nresult, .tile = &e->t->tile[s->in[0]] };
  nvf_layout rest = nvf_layout_without(c.tile, s->axis);
  c.len = nvf_extent(c.tile, s->axis);
  c.run = c.len < NVF_SCAN_RUN ? c.len : NVF_SCAN_RUN;
  c.block = c.len < NVF_SCAN_RUN * NVF_SCAN_RUNS ? c.len : NVF_SCAN_RUN * NVF_SCAN_RUNS;
  int open = nvcu_open_loops(e, &rest), moved = !in_place(&c);
  if (moved) own_layout(&c);
  else split_layout(&c);
  for (int i = 0; i < c.l.n; i++) {
    const nvf_digit *d = &c.l.d[i];
    int bits = d->axis == s->axis && d->extent > 1 && (d->level == 'l' || d->level == 'w');
    if (bits) nvcu_need_bits(e, d, "scan");
    if (d->axis != s->axis || d->stride >= c.run) c.runs.d[c.runs.n++] = *d;
  }
  c.items = nvc_items(&c.runs);
  c.p = NVB_NEWN(e->a, const char *, nvc_items(&c.l) * c.n);
  c.total = NVB_NEWN(e->a, const char *, c.items *c.n);
  c.before = NVB_NEWN(e->a, const char *, c.items *c.n);
  load_operands(&c, moved);
  scan_runs(&c);
  join_groups(&c);
  carry_blocks(&c);
  store_results(&c, moved);
  nvcu_close_loops(e, open);
}
