/* Emits reductions under a reduction order. A thread adds up its sequence digits in variables; then the tree merges by
   the bits of the index, lowest first: items in registers, lanes by shuffles, warps through shared memory. Looped
   chunks wait in one variable per level of the tree (a binary counter). Where lanes of the reduction order are loops,
   all accumulators are in one array, which the tree walks bit by bit. Similar reductions of a nest share a tree and its
   barriers. Decides where values are, never the order in which they merge. */
#include "codegen/cuda/emit.h"
#include <string.h>
#include "codegen/reduction.h"
#include "frag/dtype.h"

enum {
  TOGETHER = 8,    /* reductions that share a tree, at most */
  OWN_ROOM = 1024, /* bytes up to which a tree has a buffer of its own, which saves a barrier */
  ABREAST = 32,    /* values that merge at the same time, which take registers beside those that are kept */
  STAGES = 64,     /* bits of an index, at most */
  NEVER = 1 << 30
};

struct nvcu_red {
  nvc_reduction of;
  int levels;                  /* log2 of the number of looped chunks; -1: no chunks are looped, or `spread` */
  int ragged;                  /* 1: some chunks may not be executed, or their number is no power of two */
  int done;                    /* 1: its tree was emitted */
  const char **v;              /* [accumulator][state]: names; NULL before the first element */
  const char **held;           /* [level][result item][state]: names */
  const char *count;           /* chunks so far */
  struct tree *tree;           /* the tree so far; similar reductions share one */
  nvcu_cross_warp *cross_warp; /* merges warps, CTAs and looped chunks; NULL: the tree merges them in each iteration */
};

const nvf_stmt *nvcu_reduce_of(const nvcu_red *r) { return r->of.s; }

static nvm_dtype state_type(const nvcu_em *e, const nvcu_red *r, int i) { return e->k->tile[r->of.s->out[i]].type; }

static const char *identity_text(nvcu_em *e, const nvcu_red *r, int i) {
  return nvcu_const(e, state_type(e, r, i), r->of.s->init[i]);
}

/* ---- loops */
static void declare_state(nvcu_em *e, const nvcu_red *r, int i, const char *name, int from) {
  const char *type = nvcu_type(state_type(e, r, i));
  if (nvc_slots(&r->of, from) > 1) nvcu_line(e, "%s %s[%lld];", type, name, (long long)nvc_slots(&r->of, from));
  else nvcu_line(e, "%s %s = %s;", type, name, identity_text(e, r, i));
}

/* The variable, or the array's element at the indices of the open loops. */
static const char *slot_at(nvcu_em *e, const nvcu_red *r, const char *name, int from) {
  const char *at = NULL;
  for (int i = from; i < r->of.nest->nloop; i++) {
    const nvf_digit *d = &r->of.nest->loop[i];
    if (!nvc_is_dimension(&r->of, d)) continue;
    const char *v = nvcu_loop_value(e, d);
    at = at ? nvcu_text(e, "(%s * %d + %s)", at, (int)d->extent, v) : v;
  }
  return at ? nvcu_text(e, "%s[%s]", name, at) : name;
}

/* Opens the loops over an array of accumulators again, from level `from` on. Digits of the axis below bit b are 0;
   `pair`, the loop that holds bit b, visits the lower index of each pair. */
static int nest_open_bit(nvcu_em *e, const nvcu_red *r, int from, int64_t b, const nvf_digit *pair) {
  int open = e->nloop;
  for (int i = from; i < r->of.nest->nloop; i++) {
    const nvf_digit *d = &r->of.nest->loop[i];
    int m = d == pair ? (int)(b / d->stride) : 0;
    const char *v = "0";
    if (!nvc_is_dimension(&r->of, d)) continue;
    if (d->axis != r->of.s->axis || b < d->stride * d->extent)
      v = nvcu_for(e, "0", nvcu_text(e, "%d", d->extent - m), m ? nvcu_text(e, "%d", 2 * m) : "1", 0);
    e->loop[e->nloop++] = (nvcu_loop){ d->axis, d->extent, d->stride, v };
  }
  return open;
}
static int nest_open(nvcu_em *e, const nvcu_red *r, int from) { return nest_open_bit(e, r, from, 0, NULL); }
static void nest_close(nvcu_em *e, int open) {
  for (; e->nloop > open; e->nloop--)
    if (strcmp(e->loop[e->nloop - 1].v, "0")) nvcu_close(e);
}

/* Do loops over other axes lie inside the loops over the reduced axis? */
static int loops_keep(const nvcu_red *r) {
  for (int i = r->of.first; i < r->of.nest->nloop; i++)
    if (nvc_role_of(&r->of, &r->of.nest->loop[i]) == NVC_KEPT) return 1;
  return 0;
}

nvcu_red *nvcu_reduce_new(nvcu_em *e, const nvf_stmt *s, const nvc_nest *nest) {
  nvcu_red *r = NVB_NEW(e->a, nvcu_red);
  *r = (nvcu_red){ .of = nvc_reduction_of(&e->r, s, nest) };
  r->levels = r->of.chunks > 1 ? 64 - __builtin_clzll((uint64_t)r->of.chunks - 1) : -1;
  int again = r->of.first > 0; /* loops over other axes lie outside the loops over the reduced axis */
  r->cross_warp = loops_keep(r) || r->of.spread ? NULL : nvcu_cross_warp_new(e, s, &r->of.acc, r->of.ny, again);
  r->v = NVB_NEWN(e->a, const char *, r->of.nacc * r->of.nstate);
  r->held = NVB_NEWN(e->a, const char *, (r->levels + 1) * r->of.ny * r->of.nstate + 1);
  return r;
}

static void start_accumulators(nvcu_em *e, nvcu_red *r) {
  int looped = r->of.start < r->of.nest->nloop;
  r->done = 0;
  r->tree = NULL;
  for (int k = 0; k < r->of.nacc * r->of.nstate; k++) {
    r->v[k] = looped ? nvcu_fresh(e, "a") : NULL;
    if (looped) declare_state(e, r, k % r->of.nstate, r->v[k], r->of.start);
  }
  if (!looped || nvc_slots(&r->of, r->of.start) == 1) return;
  int open = nest_open(e, r, r->of.start);
  for (int k = 0; k < r->of.nacc * r->of.nstate; k++)
    nvcu_line(e, "%s = %s;", slot_at(e, r, r->v[k], r->of.start), identity_text(e, r, k % r->of.nstate));
  nest_close(e, open);
}

void nvcu_reduce_before(nvcu_em *e, nvcu_red *r, int level) {
  if (level == r->of.first && r->cross_warp) nvcu_cross_warp_open(e, r->cross_warp);
  if (level == r->of.first && r->levels >= 0 && !r->cross_warp) {
    r->ragged = (r->of.chunks & (r->of.chunks - 1)) != 0;
    for (int k = 0; k < (r->levels + 1) * r->of.ny * r->of.nstate; k++) {
      r->held[k] = nvcu_fresh(e, "h");
      declare_state(e, r, k % r->of.nstate, r->held[k], r->of.first);
    }
    r->count = nvcu_fresh(e, "n");
    nvcu_line(e, "int %s = 0;", r->count);
  }
  if (level == r->of.start) start_accumulators(e, r);
}

void nvcu_reduce_limit(nvcu_em *e, nvcu_red *r, int level, const char *visited) {
  (void)e;
  if (nvc_role_of(&r->of, &r->of.nest->loop[level]) != NVC_CHUNK) return;
  r->ragged |= !nvcu_is_number(visited);
  if (r->cross_warp) nvcu_cross_warp_limit(r->cross_warp, visited);
}

/* Does a statement of the nest assign to the tile? Then the tree, which is emitted later, would read the new value. */
static int is_assigned(const nvcu_em *e, int tile) {
  for (int i = 0; e->r.tile[tile].mutable && i < e->nest->s.n; i++)
    for (int o = 0; o < e->nest->s.at[i]->nout; o++)
      if (e->nest->s.at[i]->out[o] == tile) return 1;
  return 0;
}

/* The states of an element. If `waits`, a masked state stays an expression until it merges: names for all at once would
   spill. */
static void element_states(nvcu_em *e, const nvcu_red *r, int item, int waits, const char **x) {
  const char *where = nvcu_cond(e, r->of.s->where, r->of.x, item);
  for (int i = 0; i < r->of.nstate; i++) {
    int tile = r->of.s->in[i];
    x[i] = (where || is_assigned(e, tile) ? nvcu_tile_now : nvcu_tile_at)(e, tile, r->of.x, item);
    if (where) x[i] = nvcu_text(e, "%s ? %s : %s", where, x[i], identity_text(e, r, i));
    if (where) x[i] = waits ? nvcu_text(e, "(%s)", x[i]) : nvcu_let(e, nvcu_type(state_type(e, r, i)), x[i]);
  }
}

static void add_element(nvcu_em *e, nvcu_red *r, int k, const char *const *x) {
  const char **v = &r->v[k * r->of.nstate], *a[NVCU_ARGS] = { NULL };
  int looped = r->of.start < r->of.nest->nloop;
  for (int i = 0; i < r->of.nstate; i++) a[i] = looped ? slot_at(e, r, v[i], r->of.start) : v[i];
  if (a[0]) nvcu_merge(e, r->of.s->frag, a, x, r->of.nstate, looped);
  for (int i = 0; i < r->of.nstate && !looped; i++) v[i] = a[0] ? a[i] : x[i];
}

/* Merges all elements that accumulator k takes in this step with each other, then with the accumulator. */
static void add_many(nvcu_em *e, nvcu_red *r, int k) {
  const char **x = NVB_NEWN(e->a, const char *, 2 * nvc_items(r->of.x)), *one[2];
  int n = 0;
  for (int item = 0; item < nvc_items(r->of.x); item++)
    if (nvcu_now(e, r->of.x, item) && nvc_match_item(&r->of.acc, r->of.x, item) == k)
      element_states(e, r, item, 1, x + 2 * n++);
  if (n) nvcu_merge_many(e, r->of.s->frag, n, x, one), add_element(e, r, k, one);
}

void nvcu_reduce_step(nvcu_em *e, nvcu_red *r) {
  enum { MANY = 4 };
  int looped = r->of.start < r->of.nest->nloop, n = nvc_items(r->of.x);
  int many = !e->slice.each && n >= MANY * r->of.nacc && nvcu_merges_many(r->of.s->frag);
  for (int k = 0; k < r->of.nacc && many; k++) add_many(e, r, k);
  for (int item = 0; item < n && !many; item++) {
    const char *x[NVCU_ARGS];
    if (!nvcu_now(e, r->of.x, item)) continue;
    int k = nvc_match_item(&r->of.acc, r->of.x, item), first = !looped && !r->v[k * r->of.nstate];
    element_states(e, r, item, first && r->of.nacc * r->of.nstate > ABREAST, x);
    add_element(e, r, k, x);
  }
}

/* ---- the tree of similar reductions. While lanes merge, two items may be folded into one lane: of each pair of lanes,
   the lower one goes on with one item and the upper one with the other, which halves the shuffles. */
typedef struct fold {
  int digit, m, step, lane;
} fold; /* items `step` apart (bit m of an item digit) are divided between lanes that differ in bit `lane` */
/* Merges items that lie `by` apart, or lanes that differ in bit `lane`; with both, two items are folded into the
   lanes. */
typedef struct stage { int by, lane; /* 0: none */ } stage;
typedef struct tree {
  nvcu_em *e;
  int n;
  nvcu_red *r[TOGETHER];
  const nvf_layout *acc;
  int nacc, axis;
  const char **v[TOGETHER]; /* [accumulator][state] */
  uint8_t *gone;           /* by accumulator: it was merged into another one, or folded into the lanes of another one */
  stage stage[STAGES];     /* decided, not emitted yet */
  int nstage, *end, *into; /* by accumulator: the stage that ends it, and the accumulator that it merges into */
  uint8_t *written;        /* by accumulator that goes on: its stages were emitted */
  int64_t bit;             /* the bits below are decided */
  int may_fold, nfold;
  int crosses; /* warps merge with different lanes: folded items stay folded until they have */
  fold fold[8];
} tree;

static const char **value_slot(const tree *t, int j, int k) { return &t->v[j][k * t->r[j]->of.nstate]; }

static void merge_values(const tree *t, int j, const char **a, const char *const *b) {
  nvcu_merge(t->e, t->r[j]->of.s->frag, a, b, t->r[j]->of.nstate, 0);
}

static void name_state(const tree *t, int j, int i, const char **to, const char *text) {
  *to = nvcu_fresh(t->e, "q");
  nvcu_line(t->e, "const %s %s = %s;", nvcu_type(state_type(t->e, t->r[j], i)), *to, text);
}

/* The digit of the axis that holds bit b of the index; -1: it is a loop or a sequence digit. */
static int digit_with(const tree *t, int64_t b) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->axis == t->axis && d->level != 'I' && b >= d->stride && b < d->stride * d->extent) return i;
  }
  return -1;
}

/* ---- merges in registers: they are decided level by level and emitted for some accumulators at a time */
static void restart_stages(tree *t) {
  t->nstage = 0;
  for (int k = 0; k < t->nacc; k++) t->end[k] = t->gone[k] ? -1 : NEVER, t->written[k] = 0;
}

static void add_stage(tree *t, int by, int lane) { t->stage[t->nstage++] = (stage){ by, lane }; }

static void end_into(tree *t, int k, int into) {
  t->gone[k] = 1;
  t->end[k] = t->nstage;
  t->into[k] = into;
}

static void merge_items(tree *t, int digit, int m) {
  int step = m * nvc_item_step(t->acc, digit);
  for (int k = 0; k < t->nacc; k++) {
    int v = nvc_digit_value(t->acc, digit, k);
    if (!t->gone[k] && !(v & m) && v + m < t->acc->d[digit].extent) end_into(t, k + step, k);
  }
  add_stage(t, step, 0);
}

static const char *upper_text(const tree *t, int lane) {
  return nvcu_let(t->e, "bool", nvcu_text(t->e, "(lane & %d) != 0", lane));
}

/* Finds an item bit in which the accumulators that are left differ: one of the reduced axis (kept 0), which would merge
   later, else one of another axis. */
static int find_reduction(const tree *t, int lane, fold *f) {
  for (int kept = 0; kept < 2; kept++)
    for (int i = 0; i < t->acc->n; i++) {
      const nvf_digit *d = &t->acc->d[i];
      if (d->level != 'i' || (d->axis != t->axis) != kept || d->extent & (d->extent - 1)) continue;
      for (int m = 1; m < d->extent; m *= 2) {
        *f = (fold){ i, m, m * nvc_item_step(t->acc, i), lane };
        for (int k = 0; k < t->nacc; k++)
          if (!t->gone[k] && nvc_digit_value(t->acc, i, k) & m) return 1;
      }
    }
  return 0;
}

static void shuffle_value(const tree *t, int j, int k, int lane, const char **out) {
  for (int i = 0; i < t->r[j]->of.nstate; i++)
    name_state(t, j, i, &out[i], nvcu_text(t->e, "__shfl_xor_sync(~0u, %s, %d)", value_slot(t, j, k)[i], lane));
}

static void fold_items(tree *t, const fold *f) {
  for (int k = 0; k < t->nacc; k++)
    if (!t->gone[k] && !(nvc_digit_value(t->acc, f->digit, k) & f->m)) end_into(t, k + f->step, k);
  add_stage(t, f->step, f->lane);
  t->fold[t->nfold++] = *f;
}

/* A lane keeps one of two items and sends the other to its partner. */
static void share_work(const tree *t, int j, int lane, const char **kept, const char **sent) {
  const char *up = upper_text(t, lane);
  for (int i = 0; i < t->r[j]->of.nstate; i++) {
    const char *a = kept[i], *b = sent[i];
    name_state(t, j, i, &sent[i], nvcu_text(t->e, "%s ? %s : %s", up, a, b));
    name_state(t, j, i, &kept[i], nvcu_text(t->e, "%s ? %s : %s", up, b, a));
  }
}

static void give_name(const tree *t, int j, const char **v) { /* to expressions that waited for their merge */
  for (int i = 0; i < t->r[j]->of.nstate; i++)
    if (*v[i] == '(') name_state(t, j, i, &v[i], v[i]);
}

static void write_merge(const tree *t, const stage *s, int k) {
  for (int j = 0; j < t->n; j++) {
    const char **v = value_slot(t, j, k), **with = value_slot(t, j, k + s->by), *other[NVCU_ARGS];
    give_name(t, j, v), give_name(t, j, with);
    if (s->lane && s->by) share_work(t, j, s->lane, v, with);
    if (s->lane) shuffle_value(t, j, k + s->by, s->lane, other);
    merge_values(t, j, v, s->lane ? other : with);
  }
}

static int is_merged(const tree *t, int at, int k) { /* does stage `at` merge anything into accumulator k? */
  int by = t->stage[at].by, with = k + by;
  return t->end[k] > at && (!by || (with < t->nacc && t->end[with] == at && t->into[with] == k));
}

/* Takes the names that accumulators have got since the last call. */
static void take_values(tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++)
      if (!t->v[j][k] && t->r[j]->v[k]) t->v[j][k] = slot_at(t->e, t->r[j], t->r[j]->v[k], t->r[j]->of.start);
}

static int root_of(const tree *t, int k) {
  while (t->end[k] >= 0 && t->end[k] < NEVER) k = t->into[k];
  return k;
}

/* How many accumulators merge into this one; 0: some have no value yet, or it is merged or emitted already. */
static int count_members(const tree *t, int root) {
  int n = 0;
  for (int k = 0; k < t->nacc; k++) {
    if (t->end[k] < 0 || root_of(t, k) != root) continue;
    for (int j = 0; j < t->n; j++)
      if (!*value_slot(t, j, k)) return 0;
    n++;
  }
  return t->end[root] == NEVER && !t->written[root] ? n : 0;
}

/* Emits the decided stages of all accumulators whose values exist. */
static void write_ready(tree *t) {
  uint8_t *now = NVB_NEWN(t->e->a, uint8_t, t->nacc);
  int width = 0;
  for (int j = 0; j < t->n; j++) width += t->r[j]->of.nstate;
  for (int from = 0, to; from < t->nacc && t->nstage; from = to) {
    int n = 0;
    memset(now, 0, (size_t)t->nacc);
    for (to = from; to < t->nacc && n * width < ABREAST; to++) {
      int m = count_members(t, to);
      n += m;
      now[to] = m > 0;
    }
    for (int at = 0; at < t->nstage; at++)
      for (int k = 0; k < t->nacc; k++)
        if (t->end[k] >= 0 && now[root_of(t, k)] && is_merged(t, at, k)) write_merge(t, &t->stage[at], k);
    for (int k = from; k < to; k++) t->written[k] |= now[k];
  }
}

static void write_stages(tree *t) {
  write_ready(t);
  restart_stages(t);
}

static void unfold_lanes(tree *t) {
  write_stages(t);
  while (t->nfold) {
    const fold *f = &t->fold[--t->nfold];
    const char *up = upper_text(t, f->lane), *other[NVCU_ARGS];
    for (int k = 0; k < t->nacc; k++) {
      if (t->gone[k]) continue;
      for (int j = 0; j < t->n; j++) {
        shuffle_value(t, j, k, f->lane, other);
        const char **low = value_slot(t, j, k), **high = value_slot(t, j, k + f->step);
        for (int i = 0; i < t->r[j]->of.nstate; i++) {
          const char *mine = low[i];
          name_state(t, j, i, &low[i], nvcu_text(t->e, "%s ? %s : %s", up, other[i], mine));
          name_state(t, j, i, &high[i], nvcu_text(t->e, "%s ? %s : %s", up, mine, other[i]));
        }
      }
    }
    for (int k = 0; k < t->nacc; k++)
      if (!t->gone[k]) t->gone[k + f->step] = 2; /* exists again, after this loop */
    for (int k = 0; k < t->nacc; k++) t->gone[k] &= 1;
  }
  restart_stages(t);
}

/* `left`: the number of lane bits of the axis from this one on. Below three, a fold costs as many shuffles as it saves,
   unless it makes cross-warp merges fewer. */
static void merge_lanes(tree *t, int lane, int left) {
  fold f;
  if (t->may_fold && (left > 2 || t->crosses) && t->nfold < 8 && find_reduction(t, lane, &f)) {
    fold_items(t, &f);
    return;
  }
  add_stage(t, 0, lane);
}

/* Were the items of this bit folded into lanes? Then merges those lanes, and returns 1. */
static int merge_folded(tree *t, int digit, int m) {
  for (int i = 0; i < t->nfold; i++) {
    if (t->fold[i].digit != digit || t->fold[i].m != m) continue;
    int lane = t->fold[i].lane;
    t->fold[i] = t->fold[--t->nfold];
    merge_lanes(t, lane, 0);
    return 1;
  }
  return 0;
}

static int lane_bits(const tree *t, int64_t from) {
  int n = 0;
  for (int64_t b = from; b < t->r[0]->of.extent; b *= 2) {
    int digit = digit_with(t, b);
    n += digit >= 0 && t->acc->d[digit].level == 'l';
  }
  return n;
}

/* ---- warps */
typedef struct slots {
  int lanes;               /* slots of a warp: 32, or 1 if all lanes have the same value */
  int nbit, bit[16], mask; /* bits of the warp number, in the order of the tree; all of them */
  int alike;               /* bits that merged before: warps that differ in these alone have the same value */
  int count;               /* number of warps that merge: 2^nbit, or fewer */
  const nvf_digit *odd;    /* the last digit if its extent is no power of two; else NULL */
  nvcu_smem *smem;
} slots;

/* Do lanes have different values when all bits below b are merged? */
static int lanes_differ(const tree *t, int64_t b) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->level == 'l' && d->extent > 1 && (d->axis != t->axis || d->stride * d->extent > b)) return 1;
  }
  return 0;
}

/* Offset of the next array, which has one value per warp (and lane). */
static int64_t take_slot(const tree *t, const slots *m, int64_t *at, nvm_dtype type) {
  int64_t size = nvg_size(type), from = (*at + size - 1) / size * size;
  *at = from + size * t->e->warps * m->lanes;
  return from;
}

static const char *slot_text(const tree *t, const slots *m, int64_t *at, nvm_dtype type) {
  return nvcu_smem_at(t->e, m->smem, take_slot(t, m, at, type), nvcu_type(type));
}

static int64_t bytes_of_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++)
      for (int i = 0; i < t->r[j]->of.nstate; i++) take_slot(t, m, &at, state_type(t->e, t->r[j], i));
  return at;
}

static void put_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  if (m->lanes == 1) nvcu_open(t->e, "if (lane == 0)");
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++)
      for (int i = 0; i < t->r[j]->of.nstate; i++)
        nvcu_line(t->e, "%s[%s] = %s;", slot_text(t, m, &at, state_type(t->e, t->r[j], i)),
                  m->lanes == 1 ? "warp" : "warp * 32 + lane", value_slot(t, j, k)[i]);
  if (m->lanes == 1) nvcu_close(t->e);
}

/* Text of the number of the c-th warp that merges; the bits of c are those of the tree, except for the odd digit. */
static const char *warp_number(const tree *t, const slots *m, int c) {
  int n = 0, all = m->mask + 1 >= t->e->warps && !(m->mask & (m->mask + 1));
  for (int i = 0; i < m->nbit; i++)
    if (c >> i & 1) n |= m->bit[i];
  if (all) return nvcu_text(t->e, "%d", n);
  const char *w = nvcu_warp(t->e, t->acc);
  if (!m->odd) return nvcu_text(t->e, "(%s & ~%d | %d)", w, m->mask | m->alike, n);
  int step = m->odd->pstride, low = (step - 1) & ~(m->mask | m->alike), end = step * m->odd->extent;
  const char *others = low ? nvcu_text(t->e, "(%s & %d) + ", w, low) : "";
  return end >= t->e->warps ? nvcu_text(t->e, "(%s%d)", others, n)
                            : nvcu_text(t->e, "(%s / %d * %d + %s%d)", w, end, end, others, n);
}

/* Do warps divide the tree, level by level with barriers between? They do where every lane has its own value and a
   merge is expensive: a warp that merges all by itself is slow then, and has the merge's text once per warp. Cheap
   reductions of the same tree go along. */
static int in_levels(const tree *t, const slots *m) {
  int expensive = t->e->target->baseline;
  for (int j = 0; j < t->n; j++) expensive |= t->r[j]->of.s->frag->cost > NVG_EXPENSIVE_MERGE;
  for (int i = 0; i < m->nbit; i++)
    if (m->bit[i] != m->bit[0] << i) return 0;
  return expensive && m->lanes == 32 && m->count > 2 && !m->odd && !strcmp(nvcu_warp(t->e, t->acc), "warp");
}

/* At level h, warp number c merges slots 2hc and 2hc + h into the first: no slot belongs to two warps. */
static void merge_levels(const tree *t, const slots *m) {
  nvcu_em *e = t->e;
  const char *h = nvcu_fresh(e, "h"), *low = nvcu_fresh(e, "c"), *at[2], *slots[NVCU_ARGS], *v[2][NVCU_ARGS];
  int64_t next = 0;
  nvcu_line(e, "#pragma unroll 1");
  nvcu_open(e, "for (int %s = 1; %s < %d; %s *= 2)", h, h, m->count, h);
  nvcu_line(e, "const int %s = (warp & %d) * 2 * %s;", low, m->mask, h);
  nvcu_open(e, "if (%s < %d)", low, m->count * m->bit[0]);
  at[0] = nvcu_let(e, "int", nvcu_text(e, "((warp & ~%d) + %s) * 32 + lane", m->mask, low));
  at[1] = nvcu_let(e, "int", nvcu_text(e, "%s + %s * %d", at[0], h, 32 * m->bit[0]));
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++) {
      int n = t->r[j]->of.nstate;
      for (int i = 0; i < n; i++) slots[i] = slot_text(t, m, &next, state_type(e, t->r[j], i));
      for (int i = 0; i < 2 * n; i++)
        name_state(t, j, i % n, &v[i / n][i % n], nvcu_text(e, "%s[%s]", slots[i % n], at[i / n]));
      merge_values(t, j, v[0], v[1]);
      for (int i = 0; i < n; i++) nvcu_line(e, "%s[%s] = %s;", slots[i], at[0], v[0][i]);
    }
  nvcu_close(e);
  nvcu_barrier(e);
  nvcu_close(e);
  nvcu_note_barrier(e);
}

static void take_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++) {
      int n = t->r[j]->of.nstate, count = in_levels(t, m) ? 1 : m->count;
      const char **g = NVB_NEWN(t->e->a, const char *, count *n);
      for (int i = 0; i < n; i++) {
        const char *p = slot_text(t, m, &at, state_type(t->e, t->r[j], i)), *in = m->lanes == 1 ? "" : " * 32 + lane";
        for (int c = 0; c < count; c++)
          name_state(t, j, i, &g[c * n + i], nvcu_text(t->e, "%s[%s%s]", p, warp_number(t, m, c), in));
      }
      for (int h = 1; h < count; h *= 2)
        for (int c = 0; c + h < count; c += 2 * h) merge_values(t, j, &g[c * n], &g[(c + h) * n]);
      for (int i = 0; i < n; i++) value_slot(t, j, k)[i] = g[i];
    }
}

/* Is it the last tree of its nest? */
static int is_last(const tree *t) {
  for (int i = 0; i < t->e->red.n; i++) {
    int here = t->e->red.at[i]->done;
    for (int j = 0; j < t->n; j++) here |= t->r[j] == t->e->red.at[i];
    if (!here) return 0;
  }
  return 1;
}

/* May warps whose numbers have these bits exit? Nothing later uses them, and they would only repeat merges. */
static int may_leave(const tree *t, int mask) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->axis == t->axis && d->level == 'w' && d->extent > 1 && !(d->pstride & mask))
      return 0; /* those warps merge once more */
  }
  return is_last(t) && t->e->nloop == 0 && !(t->e->warps_later & mask);
}

static void merge_warps(tree *t, slots *m) {
  write_stages(t);
  int64_t bytes = bytes_of_slots(t, m);
  m->smem = bytes <= OWN_ROOM ? nvcu_smem_new(t->e, bytes, 1) : nvcu_smem_exchange(t->e, bytes);
  nvcu_may_write(t->e, m->smem);
  put_slots(t, m);
  nvcu_wrote(t->e, m->smem);
  nvcu_may_read(t->e, m->smem);
  if (in_levels(t, m)) merge_levels(t, m);
  if (t->e->cluster == 1 && may_leave(t, m->mask)) nvcu_line(t->e, "if (warp & %d) return;", m->mask);
  take_slots(t, m);
  nvcu_read(t->e, m->smem);
}

/* The bits of the warp number that hold bits of the axis below b */
static int merged_warps(const tree *t, int64_t b) {
  int bits = 0;
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->level == 'w' && d->axis == t->axis && d->stride * d->extent <= b) bits |= (d->extent - 1) * d->pstride;
  }
  return bits;
}

/* Merges bit b, which `digit` holds, and the higher bits that cross warps together with it; returns the last bit
   merged. */
static int64_t merge_bit(tree *t, int digit, int64_t b) {
  const nvf_digit *d = &t->acc->d[digit];
  int m = (int)(b / d->stride);
  if (d->level == 'i' && !merge_folded(t, digit, m)) merge_items(t, digit, m);
  if (d->level == 'l') {
    nvcu_need_bits(t->e, d, "reduction");
    merge_lanes(t, m * d->pstride, lane_bits(t, b));
  }
  if (d->level == 'c')
    nvb_throw(t->e->a, NVM_ERR_UNSUPPORTED,
              "[cuda] the blocks of a cluster can merge neither among lanes nor in a loop");
  if (d->level != 'w') return b;
  if (!t->crosses) unfold_lanes(t);
  slots way = { .lanes = t->crosses || lanes_differ(t, b) ? 32 : 1, .alike = merged_warps(t, b) };
  int64_t low = b;
  for (; digit >= 0 && t->acc->d[digit].level == 'w'; digit = digit_with(t, b *= 2)) {
    d = &t->acc->d[digit];
    nvcu_need_bits(t->e, d, "reduction");
    if (d->extent & (d->extent - 1)) way.odd = d;
    way.mask |= way.bit[way.nbit++] = (int)(b / d->stride) * d->pstride;
    way.count = (int)((d->stride * d->extent + low - 1) / low);
  }
  merge_warps(t, &way);
  return b / 2;
}

/* Decides all merges of the tree; in_registers: only those before the first one across warps or CTAs. */
static void decide_merges(tree *t, int in_registers) {
  int64_t end = t->r[0]->cross_warp ? nvcu_cross_warp_bit(t->r[0]->cross_warp) : t->r[0]->of.extent;
  for (; t->bit < end; t->bit *= 2) {
    int digit = digit_with(t, t->bit); /* -1: sequence digits, or looped chunks, which are the highest bits */
    if (digit >= 0 && in_registers && t->acc->d[digit].level != 'i' && t->acc->d[digit].level != 'l') return;
    if (digit >= 0) t->bit = merge_bit(t, digit, t->bit);
  }
}

/* Result item y of reduction j */
static const char **result_of(const tree *t, int j, int y) {
  int k = 0;
  while (t->gone[k] || nvc_match_item(t->r[j]->of.y, t->acc, k) != y) k++;
  return value_slot(t, j, k);
}

static int are_alike(const nvcu_red *a, const nvcu_red *b) {
  if (a->of.s->axis != b->of.s->axis || a->of.c != b->of.c || a->of.w != b->of.w || a->of.x->n != b->of.x->n ||
      !a->cross_warp != !b->cross_warp)
    return 0;
  for (int i = 0; i < a->of.x->n; i++) {
    const nvf_digit *p = &a->of.x->d[i], *q = &b->of.x->d[i];
    if (p->axis != q->axis || p->extent != q->extent || p->stride != q->stride || p->level != q->level ||
        p->pstride != q->pstride)
      return 0;
  }
  return 1;
}

/* ---- looped chunks: chunk c merges with the groups of its lowest set bits, the nearest group first */
static const char *chunk_number(nvcu_em *e, const nvcu_red *r) {
  const char *at = NULL;
  for (int i = 0; i < r->of.nest->nloop; i++) {
    const nvf_digit *d = &r->of.nest->loop[i];
    if (nvc_role_of(&r->of, d) != NVC_CHUNK) continue;
    const char *v = nvcu_loop_value(e, d);
    at = at ? nvcu_text(e, "(%s * %d + %s)", at, (int)d->extent, v) : v;
  }
  return at ? at : "0";
}

static const char *held_name(nvcu_em *e, const nvcu_red *r, int level, int y, int i) {
  return slot_at(e, r, r->held[(level * r->of.ny + y) * r->of.nstate + i], r->of.first);
}

static void hold_chunk(nvcu_em *e, nvcu_red *r, const char *chunk, const char *const *const *out) {
  const char *v[NVCU_ARGS], *h[NVCU_ARGS], **all = NVB_NEWN(e->a, const char *, r->of.ny * r->of.nstate);
  for (int y = 0; y < r->of.ny; y++)
    for (int i = 0; i < r->of.nstate; i++) all[y * r->of.nstate + i] = out[y][i];
  for (int level = 0; level <= r->levels; level++) {
    if (level < r->levels) nvcu_open(e, "if (!(%s & %d))", chunk, 1 << level);
    for (int y = 0; y < r->of.ny; y++)
      for (int i = 0; i < r->of.nstate; i++)
        nvcu_line(e, "%s = %s;", held_name(e, r, level, y, i), all[y * r->of.nstate + i]);
    if (level == r->levels) break;
    nvcu_close(e);
    nvcu_open(e, "else");
    for (int y = 0; y < r->of.ny; y++) {
      for (int i = 0; i < r->of.nstate; i++) {
        v[i] = held_name(e, r, level, y, i);
        h[i] = all[y * r->of.nstate + i];
      }
      nvcu_merge(e, r->of.s->frag, v, h, r->of.nstate, 0);
      for (int i = 0; i < r->of.nstate; i++) all[y * r->of.nstate + i] = v[i];
    }
  }
  for (int level = 0; level < r->levels; level++) nvcu_close(e);
  nvcu_line(e, "%s = %s + 1;", r->count, chunk);
}

/* The result of all chunks is in the last level. If some were not executed, the levels of the set bits of their count
   merge, the lowest first. */
static void all_chunks(nvcu_em *e, nvcu_red *r) {
  int open = nest_open(e, r, r->of.first);
  for (int y = 0; y < r->of.ny; y++) {
    const char *v[NVCU_ARGS], *h[NVCU_ARGS];
    for (int i = 0; i < r->of.nstate; i++) {
      v[i] = held_name(e, r, r->levels, y, i);
      if (!r->ragged) continue;
      v[i] = nvcu_fresh(e, "q");
      nvcu_line(e, "%s %s = %s;", nvcu_type(state_type(e, r, i)), v[i], identity_text(e, r, i));
    }
    for (int level = 0; r->ragged && level <= r->levels; level++) {
      nvcu_open(e, "if (%s & %d)", r->count, 1 << level);
      for (int i = 0; i < r->of.nstate; i++) h[i] = held_name(e, r, level, y, i);
      nvcu_merge(e, r->of.s->frag, v, h, r->of.nstate, 1);
      nvcu_close(e);
    }
    for (int i = 0; i < r->of.nstate; i++) nvcu_define(e, r->of.s->out[i], y, v[i]);
  }
  nest_close(e, open);
}

/* CTAs read each other's buffers once in a kernel: each buffer serves one reduction, and the CTAs end together. */
static void load_cross_warp(nvcu_em *e, nvcu_red *r) {
  int last = r == e->red.at[e->red.n - 1];
  nvcu_cross_warp_sync(e, r->cross_warp, last && e->nloop == 0);
  for (int y = 0; y < r->of.ny; y++) {
    const char **v = nvcu_cross_warp_load(e, r->cross_warp, y);
    for (int i = 0; i < r->of.nstate; i++) nvcu_define(e, r->of.s->out[i], y, v[i]);
  }
  if (!nvcu_cross_warp_loads_remote(r->cross_warp)) return;
  e->remote = NVCU_READS;
  if (!last || e->blocks_later) return;
  nvcu_line(e, "nv_cluster_arrive();");
  e->remote = NVCU_LEFT;
}

static void finish_reduction(const tree *t, int j) {
  nvcu_em *e = t->e;
  nvcu_red *r = t->r[j];
  const char *const **out = NVB_NEWN(e->a, const char *const *, r->of.ny);
  for (int y = 0; y < r->of.ny; y++) out[y] = result_of(t, j, y);
  if (r->cross_warp) nvcu_cross_warp_store(e, r->cross_warp, out);
  else if (r->levels >= 0) hold_chunk(e, r, chunk_number(e, r), out);
  else
    for (int y = 0; y < r->of.ny; y++)
      for (int i = 0; i < r->of.nstate; i++) nvcu_define(e, r->of.s->out[i], y, out[y][i]);
  r->done = 1;
}

/* ---- lanes of the reduction order that are loops: the tree merges over the array */
static void load_slots(const tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++) {
      const nvcu_red *r = t->r[j];
      if (!t->gone[k / r->of.nstate])
        name_state(t, j, k % r->of.nstate, &t->v[j][k], slot_at(t->e, r, r->v[k], r->of.start));
    }
}

static void store_slots(const tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++) {
      const nvcu_red *r = t->r[j];
      if (!t->gone[k / r->of.nstate]) nvcu_line(t->e, "%s = %s;", slot_at(t->e, r, r->v[k], r->of.start), t->v[j][k]);
    }
}

static void merge_loop_bit(const tree *t, const nvf_digit *d, int64_t b) {
  nvcu_em *e = t->e;
  int open = nest_open_bit(e, t->r[0], t->r[0]->of.start, b, d), at = open;
  const char **low[TOGETHER];
  while (e->loop[at].axis != d->axis || e->loop[at].stride != d->stride) at++;
  const char *v = e->loop[at].v;
  load_slots(t);
  for (int j = 0; j < t->n; j++)
    low[j] = nvb_dup(e->a, t->v[j], sizeof *t->v[j] * (size_t)(t->nacc * t->r[j]->of.nstate));
  e->loop[at].v = nvcu_text(e, "(%s + %lld)", v, (long long)(b / d->stride));
  load_slots(t);
  e->loop[at].v = v;
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc; k++) {
      if (t->gone[k]) continue;
      merge_values(t, j, &low[j][k * t->r[j]->of.nstate], value_slot(t, j, k));
      memcpy(value_slot(t, j, k), &low[j][k * t->r[j]->of.nstate], sizeof *low[j] * (size_t)t->r[j]->of.nstate);
    }
  store_slots(t);
  nest_close(e, open);
}

static void grow_spread(tree *t) {
  const nvcu_red *r = t->r[0];
  for (int64_t b = 1; b < r->of.extent; b *= 2) {
    const nvf_digit *d = nvc_loop_with(&r->of, b);
    int digit = digit_with(t, b);
    if (d) merge_loop_bit(t, d, b);
    if (digit < 0) continue;
    int open = nest_open_bit(t->e, r, r->of.start, b, NULL);
    load_slots(t);
    b = merge_bit(t, digit, b);
    write_stages(t);
    store_slots(t);
    nest_close(t->e, open);
  }
  for (int j = 0; j < t->n; j++) memset(t->v[j], 0, sizeof *t->v[j] * (size_t)(t->nacc * t->r[j]->of.nstate));
}

static int crosses_warps(const tree *t) {
  int found = 0;
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    found |= d->axis == t->axis && d->extent > 1 && d->level == 'w';
  }
  return found && lanes_differ(t, t->r[0]->of.extent);
}

/* The tree that r shares with the similar reductions that come later in the nest. */
static tree *tree_of(nvcu_em *e, nvcu_red *r) {
  tree *t = r->tree;
  if (t) return t;
  t = NVB_NEW(e->a, tree);
  *t = (tree){ .e = e, .acc = &r->of.acc, .nacc = r->of.nacc, .axis = r->of.s->axis, .bit = 1 };
  t->may_fold = !r->of.spread;
  for (int i = 0; i < e->red.n && t->n < TOGETHER; i++)
    if (!e->red.at[i]->done && are_alike(r, e->red.at[i])) t->r[t->n++] = e->red.at[i];
  t->crosses = crosses_warps(t);
  t->gone = NVB_NEWN(e->a, uint8_t, t->nacc);
  t->written = NVB_NEWN(e->a, uint8_t, t->nacc);
  t->end = NVB_NEWN(e->a, int, t->nacc);
  t->into = NVB_NEWN(e->a, int, t->nacc);
  for (int j = 0; j < t->n; j++) {
    t->r[j]->tree = t;
    t->v[j] = NVB_NEWN(e->a, const char *, t->nacc * t->r[j]->of.nstate);
  }
  restart_stages(t);
  return t;
}

static void emit_trees(nvcu_em *e, nvcu_red *r) {
  tree *t = tree_of(e, r);
  if (r->of.spread) grow_spread(t);
  int open = nest_open_bit(e, r, r->of.start, r->of.extent, NULL);
  take_values(t);
  if (!r->of.spread) decide_merges(t, 0);
  unfold_lanes(t);
  for (int j = 0; j < t->n; j++) finish_reduction(t, j);
  nest_close(e, open);
}

/* Can it be emitted in slices of another axis? It can if each accumulator takes one element. */
int nvcu_reduce_in_parts(const nvcu_red *r, int axis) {
  return !r->cross_warp && r->levels < 0 && !r->of.spread && r->of.s->axis != axis && r->of.nacc == nvc_items(r->of.x);
}

/* After a slice: emits the merges of accumulators that have their values. */
void nvcu_reduce_part(nvcu_em *e, nvcu_red *r) {
  tree *t = tree_of(e, r);
  if (t->bit == 1) decide_merges(t, 1);
  take_values(t);
  if (t->r[0] == r) write_ready(t);
}

void nvcu_reduce_after(nvcu_em *e, nvcu_red *r, int level) {
  if (level == r->of.start && !r->done) emit_trees(e, r);
  if (level == r->of.first && r->cross_warp) load_cross_warp(e, r);
  else if (level == r->of.first && r->levels >= 0) all_chunks(e, r);
}
