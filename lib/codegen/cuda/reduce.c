/* Reductions under a reduction order. A thread adds up its sequence digits in variables; then the tree goes by the bits
   of the index, lowest first: items merge in registers, lanes by shuffles, warps through shared memory. Results of
   looped chunks wait in one variable per level of the tree (a binary counter). Where lanes of the reduction order are
   loops, all accumulators lie in one array and the tree walks it bit by bit. Reductions of one run that look alike
   share barriers and run side by side. Masked elements are the identity. Decides places, never the order: the reduction
   order does. */
#include "codegen/cuda/emit.h"
#include <string.h>
#include "codegen/reduction.h"
#include "frag/dtype.h"

enum {
  TOGETHER = 8,    /* reductions in one tree */
  OWN_ROOM = 1024, /* bytes for which the exchange region is not worth a barrier */
  ABREAST = 32,    /* values that merge side by side: they take registers beside those that are kept */
  STAGES = 64,     /* bits of an index */
  NEVER = 1 << 30
};

struct nvcu_red {
  nvc_reduction of;
  int levels;                  /* of looped chunks: log2 of their number; -1: none are looped, or spread */
  int cut;                     /* some chunks may not be reached, or there are no 2^levels */
  int done;                    /* its tree was written together with another one's */
  const char **v;              /* [accumulator][state]: names; NULL before the first element */
  const char **held;           /* [level][result item][state]: names */
  const char *count;           /* chunks so far */
  struct tree *tree;           /* as far as it is written: all of them that look alike share one */
  nvcu_cross_warp *cross_warp; /* warps, blocks and looped chunks meet there; NULL: the tree is grown round by round */
};

const nvf_stmt *nvcu_reduce_of(const nvcu_red *r) { return r->of.s; }

static nvm_dtype state_type(const nvcu_em *e, const nvcu_red *r, int i) { return e->k->tile[r->of.s->out[i]].type; }

static const char *identity(nvcu_em *e, const nvcu_red *r, int i) {
  return nvcu_const(e, state_type(e, r, i), r->of.s->init[i]);
}

/* ---- loops */
static void declare(nvcu_em *e, const nvcu_red *r, int i, const char *name, int from) {
  const char *type = nvcu_type(state_type(e, r, i));
  if (nvc_slots(&r->of, from) > 1) nvcu_line(e, "%s %s[%lld];", type, name, (long long)nvc_slots(&r->of, from));
  else nvcu_line(e, "%s %s = %s;", type, name, identity(e, r, i));
}

/* The variable, or its element at the loops that are open. */
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

/* The arrays' loops from level `from` on, opened again. Digits of the axis whose bits lie below b stand at 0; `pair`,
   the loop that holds bit b, visits the lower one of each two. */
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

/* Do loops of other axes lie inside of the axis' own? */
static int loops_keep(const nvcu_red *r) {
  for (int i = r->of.first; i < r->of.nest->nloop; i++)
    if (nvc_role_of(&r->of, &r->of.nest->loop[i]) == NVC_KEPT) return 1;
  return 0;
}

nvcu_red *nvcu_reduce_new(nvcu_em *e, const nvf_stmt *s, const nvc_nest *nest) {
  nvcu_red *r = NVB_NEW(e->a, nvcu_red);
  *r = (nvcu_red){ .of = nvc_reduction_of(&e->r, s, nest) };
  r->levels = r->of.chunks > 1 ? 64 - __builtin_clzll((uint64_t)r->of.chunks - 1) : -1;
  int again = r->of.first > 0; /* loops of other axes lie outside of the axis' own */
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
    if (looped) declare(e, r, k % r->of.nstate, r->v[k], r->of.start);
  }
  if (!looped || nvc_slots(&r->of, r->of.start) == 1) return;
  int open = nest_open(e, r, r->of.start);
  for (int k = 0; k < r->of.nacc * r->of.nstate; k++)
    nvcu_line(e, "%s = %s;", slot_at(e, r, r->v[k], r->of.start), identity(e, r, k % r->of.nstate));
  nest_close(e, open);
}

void nvcu_reduce_before(nvcu_em *e, nvcu_red *r, int level) {
  if (level == r->of.first && r->cross_warp) nvcu_cross_warp_open(e, r->cross_warp);
  if (level == r->of.first && r->levels >= 0 && !r->cross_warp) {
    r->cut = (r->of.chunks & (r->of.chunks - 1)) != 0;
    for (int k = 0; k < (r->levels + 1) * r->of.ny * r->of.nstate; k++) {
      r->held[k] = nvcu_fresh(e, "h");
      declare(e, r, k % r->of.nstate, r->held[k], r->of.first);
    }
    r->count = nvcu_fresh(e, "n");
    nvcu_line(e, "int %s = 0;", r->count);
  }
  if (level == r->of.start) start_accumulators(e, r);
}

void nvcu_reduce_limit(nvcu_em *e, nvcu_red *r, int level, const char *visited) {
  (void)e;
  if (nvc_role_of(&r->of, &r->of.nest->loop[level]) != NVC_CHUNK) return;
  r->cut |= !nvcu_is_number(visited);
  if (r->cross_warp) nvcu_cross_warp_limit(r->cross_warp, visited);
}

/* Will a statement of the nest assign to the tile, before the tree of what it holds now is grown? */
static int assigned(const nvcu_em *e, int tile) {
  for (int i = 0; e->r.tile[tile].mutable && i < e->nest->s.n; i++)
    for (int o = 0; o < e->nest->s.at[i]->nout; o++)
      if (e->nest->s.at[i]->out[o] == tile) return 1;
  return 0;
}

/* The states of an element; what waits until it merges has no name yet, for all at once would spill. */
static void element(nvcu_em *e, const nvcu_red *r, int item, int waits, const char **x) {
  const char *where = nvcu_cond(e, r->of.s->where, r->of.x, item);
  for (int i = 0; i < r->of.nstate; i++) {
    int tile = r->of.s->in[i];
    x[i] = (where || assigned(e, tile) ? nvcu_tile_now : nvcu_tile_at)(e, tile, r->of.x, item);
    if (where) x[i] = nvcu_text(e, "%s ? %s : %s", where, x[i], identity(e, r, i));
    if (where) x[i] = waits ? nvcu_text(e, "(%s)", x[i]) : nvcu_let(e, nvcu_type(state_type(e, r, i)), x[i]);
  }
}

static void add(nvcu_em *e, nvcu_red *r, int k, const char *const *x) {
  const char **v = &r->v[k * r->of.nstate], *a[NVCU_ARGS] = { NULL };
  int looped = r->of.start < r->of.nest->nloop;
  for (int i = 0; i < r->of.nstate; i++) a[i] = looped ? slot_at(e, r, v[i], r->of.start) : v[i];
  if (a[0]) nvcu_merge(e, r->of.s->frag, a, x, r->of.nstate, looped);
  for (int i = 0; i < r->of.nstate && !looped; i++) v[i] = a[0] ? a[i] : x[i];
}

/* All that an accumulator takes in this step, first merged with each other. */
static void add_many(nvcu_em *e, nvcu_red *r, int k) {
  const char **x = NVB_NEWN(e->a, const char *, 2 * nvc_items(r->of.x)), *one[2];
  int n = 0;
  for (int item = 0; item < nvc_items(r->of.x); item++)
    if (nvcu_now(e, r->of.x, item) && nvc_match_item(&r->of.acc, r->of.x, item) == k)
      element(e, r, item, 1, x + 2 * n++);
  if (n) nvcu_merge_many(e, r->of.s->frag, n, x, one), add(e, r, k, one);
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
    element(e, r, item, first && r->of.nacc * r->of.nstate > ABREAST, x);
    add(e, r, k, x);
  }
}

/* ---- the tree of reductions that look alike. While lanes merge, two items may share a lane: the lower one of each two
   lanes goes on with one, the upper one with the other, and half as much has to be shuffled. */
typedef struct fold {
  int digit, m, step, lane;
} fold; /* items that differ by `step`, bit m of an item digit, lie apart in bit `lane` */
/* Items that differ by `by` merge, or what lanes that differ in bit `lane` hold; both: two items share the lanes. */
typedef struct stage { int by, lane; /* 0: none */ } stage;
typedef struct tree {
  nvcu_em *e;
  int n;
  nvcu_red *r[TOGETHER];
  const nvf_layout *acc;
  int nacc, axis;
  const char **v[TOGETHER]; /* [accumulator][state] */
  uint8_t *gone;            /* by accumulator: merged into another one, or folded into its lanes */
  stage stage[STAGES];      /* decided, and not written yet */
  int nstage, *end, *into;  /* by accumulator: the stage that ends it, and the accumulator that goes on */
  uint8_t *written;         /* by accumulator that goes on: all that is decided of it */
  int64_t bit;              /* those below are decided */
  int may_fold, nfold;
  int crosses; /* warps merge, lane by lane: what shares lanes stays so until they have */
  fold fold[8];
} tree;

static const char **value(const tree *t, int j, int k) { return &t->v[j][k * t->r[j]->of.nstate]; }

static void merge(const tree *t, int j, const char **a, const char *const *b) {
  nvcu_merge(t->e, t->r[j]->of.s->frag, a, b, t->r[j]->of.nstate, 0);
}

static void name_state(const tree *t, int j, int i, const char **to, const char *text) {
  *to = nvcu_fresh(t->e, "q");
  nvcu_line(t->e, "const %s %s = %s;", nvcu_type(state_type(t->e, t->r[j], i)), *to, text);
}

/* The digit of the axis that holds bit b of the index; -1: a loop, or a digit in sequence. */
static int digit_with(const tree *t, int64_t b) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->axis == t->axis && d->level != 'I' && b >= d->stride && b < d->stride * d->extent) return i;
  }
  return -1;
}

/* ---- merges in registers: decided level by level, written some accumulators at a time */
static void renew(tree *t) {
  t->nstage = 0;
  for (int k = 0; k < t->nacc; k++) t->end[k] = t->gone[k] ? -1 : NEVER, t->written[k] = 0;
}

static void decide(tree *t, int by, int lane) { t->stage[t->nstage++] = (stage){ by, lane }; }

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
  decide(t, step, 0);
}

static const char *upper(const tree *t, int lane) {
  return nvcu_let(t->e, "bool", nvcu_text(t->e, "(lane & %d) != 0", lane));
}

/* An item bit by which accumulators differ that are still there; those of the axis first, which merge later. */
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

static void shuffle(const tree *t, int j, int k, int lane, const char **out) {
  for (int i = 0; i < t->r[j]->of.nstate; i++)
    name_state(t, j, i, &out[i], nvcu_text(t->e, "__shfl_xor_sync(~0u, %s, %d)", value(t, j, k)[i], lane));
}

static void fold_items(tree *t, const fold *f) {
  for (int k = 0; k < t->nacc; k++)
    if (!t->gone[k] && !(nvc_digit_value(t->acc, f->digit, k) & f->m)) end_into(t, k + f->step, k);
  decide(t, f->step, f->lane);
  t->fold[t->nfold++] = *f;
}

/* Of two items a lane keeps one and sends the other. */
static void share_work(const tree *t, int j, int lane, const char **kept, const char **sent) {
  const char *up = upper(t, lane);
  for (int i = 0; i < t->r[j]->of.nstate; i++) {
    const char *a = kept[i], *b = sent[i];
    name_state(t, j, i, &sent[i], nvcu_text(t->e, "%s ? %s : %s", up, a, b));
    name_state(t, j, i, &kept[i], nvcu_text(t->e, "%s ? %s : %s", up, b, a));
  }
}

static void give_name(const tree *t, int j, const char **v) { /* to text that waited */
  for (int i = 0; i < t->r[j]->of.nstate; i++)
    if (*v[i] == '(') name_state(t, j, i, &v[i], v[i]);
}

static void write_merge(const tree *t, const stage *s, int k) {
  for (int j = 0; j < t->n; j++) {
    const char **v = value(t, j, k), **with = value(t, j, k + s->by), *other[NVCU_ARGS];
    give_name(t, j, v), give_name(t, j, with);
    if (s->lane && s->by) share_work(t, j, s->lane, v, with);
    if (s->lane) shuffle(t, j, k + s->by, s->lane, other);
    merge(t, j, v, s->lane ? other : with);
  }
}

static int is_merged(const tree *t, int at, int k) { /* does stage `at` make anything of accumulator k? */
  int by = t->stage[at].by, with = k + by;
  return t->end[k] > at && (!by || (with < t->nacc && t->end[with] == at && t->into[with] == k));
}

/* Names of accumulators that have come since */
static void take_values(tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++)
      if (!t->v[j][k] && t->r[j]->v[k]) t->v[j][k] = slot_at(t->e, t->r[j], t->r[j]->v[k], t->r[j]->of.start);
}

static int root_of(const tree *t, int k) {
  while (t->end[k] >= 0 && t->end[k] < NEVER) k = t->into[k];
  return k;
}

/* How many accumulators go into this one; 0: not all are there, or they have gone. */
static int members(const tree *t, int root) {
  int n = 0;
  for (int k = 0; k < t->nacc; k++) {
    if (t->end[k] < 0 || root_of(t, k) != root) continue;
    for (int j = 0; j < t->n; j++)
      if (!*value(t, j, k)) return 0;
    n++;
  }
  return t->end[root] == NEVER && !t->written[root] ? n : 0;
}

/* What is decided, of the accumulators that are there */
static void write_ready(tree *t) {
  uint8_t *now = NVB_NEWN(t->e->a, uint8_t, t->nacc);
  int width = 0;
  for (int j = 0; j < t->n; j++) width += t->r[j]->of.nstate;
  for (int from = 0, to; from < t->nacc && t->nstage; from = to) {
    int n = 0;
    memset(now, 0, (size_t)t->nacc);
    for (to = from; to < t->nacc && n * width < ABREAST; to++) {
      int m = members(t, to);
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
  renew(t);
}

static void unfold(tree *t) {
  write_stages(t);
  while (t->nfold) {
    const fold *f = &t->fold[--t->nfold];
    const char *up = upper(t, f->lane), *other[NVCU_ARGS];
    for (int k = 0; k < t->nacc; k++) {
      if (t->gone[k]) continue;
      for (int j = 0; j < t->n; j++) {
        shuffle(t, j, k, f->lane, other);
        const char **low = value(t, j, k), **high = value(t, j, k + f->step);
        for (int i = 0; i < t->r[j]->of.nstate; i++) {
          const char *mine = low[i];
          name_state(t, j, i, &low[i], nvcu_text(t->e, "%s ? %s : %s", up, other[i], mine));
          name_state(t, j, i, &high[i], nvcu_text(t->e, "%s ? %s : %s", up, mine, other[i]));
        }
      }
    }
    for (int k = 0; k < t->nacc; k++)
      if (!t->gone[k]) t->gone[k + f->step] = 2; /* after the walk: back again */
    for (int k = 0; k < t->nacc; k++) t->gone[k] &= 1;
  }
  renew(t);
}

/* `left`: lane bits of the axis from this one on. Below three, sharing costs what it saves, but for what it saves of
   crossings. */
static void merge_lanes(tree *t, int lane, int left) {
  fold f;
  if (t->may_fold && (left > 2 || t->crosses) && t->nfold < 8 && find_reduction(t, lane, &f)) {
    fold_items(t, &f);
    return;
  }
  decide(t, 0, lane);
}

/* Items that share lanes merge across these. */
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
  int lanes;               /* 32, or 1: all lanes hold the same */
  int nbit, bit[16], mask; /* of the warp number, in the order of the tree */
  int alike;               /* bits of it that have merged before: warps that differ in these alone hold the same */
  int count;               /* of warps that merge: 2^nbit, or fewer */
  const nvf_digit *odd;    /* the last digit, where it is no power of two; NULL */
  nvcu_smem *smem;
} slots;

/* Do lanes still differ once all bits below b are merged? */
static int lanes_differ(const tree *t, int64_t b) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->level == 'l' && d->extent > 1 && (d->axis != t->axis || d->stride * d->extent > b)) return 1;
  }
  return 0;
}

/* Where the next array of one value for each warp (and lane) lies */
static int64_t slot(const tree *t, const slots *m, int64_t *at, nvm_dtype type) {
  int64_t size = nvg_size(type), from = (*at + size - 1) / size * size;
  *at = from + size * t->e->warps * m->lanes;
  return from;
}

static const char *slot_text(const tree *t, const slots *m, int64_t *at, nvm_dtype type) {
  return nvcu_smem_at(t->e, m->smem, slot(t, m, at, type), nvcu_type(type));
}

static int64_t bytes_of_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++)
      for (int i = 0; i < t->r[j]->of.nstate; i++) slot(t, m, &at, state_type(t->e, t->r[j], i));
  return at;
}

static void put_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  if (m->lanes == 1) nvcu_open(t->e, "if (lane == 0)");
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++)
      for (int i = 0; i < t->r[j]->of.nstate; i++)
        nvcu_line(t->e, "%s[%s] = %s;", slot_text(t, m, &at, state_type(t->e, t->r[j], i)),
                  m->lanes == 1 ? "warp" : "warp * 32 + lane", value(t, j, k)[i]);
  if (m->lanes == 1) nvcu_close(t->e);
}

/* Number of the c-th of the warps that merge, as text; its bits are those of the tree, but for the odd digit's. */
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

/* Do the warps share out the tree, level by level with barriers between? Where each lane has its own. A warp that
   merges all by itself is slow with an expensive merge, and has its text once for each; what is cheap goes along. */
static int in_levels(const tree *t, const slots *m) {
  int expensive = t->e->target->baseline;
  for (int j = 0; j < t->n; j++) expensive |= t->r[j]->of.s->frag->cost > NVG_EXPENSIVE_MERGE;
  for (int i = 0; i < m->nbit; i++)
    if (m->bit[i] != m->bit[0] << i) return 0;
  return expensive && m->lanes == 32 && m->count > 2 && !m->odd && !strcmp(nvcu_warp(t->e, t->acc), "warp");
}

/* At level h the warp that is number c merges slots 2hc and 2hc + h into the first: no slot is two warps'. */
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
      merge(t, j, v[0], v[1]);
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
        for (int c = 0; c + h < count; c += 2 * h) merge(t, j, &g[c * n], &g[(c + h) * n]);
      for (int i = 0; i < n; i++) value(t, j, k)[i] = g[i];
    }
}

/* The last tree of its run */
static int is_last(const tree *t) {
  for (int i = 0; i < t->e->red.n; i++) {
    int here = t->e->red.at[i]->done;
    for (int j = 0; j < t->n; j++) here |= t->r[j] == t->e->red.at[i];
    if (!here) return 0;
  }
  return 1;
}

/* Nothing that follows wants the warps whose numbers differ in these bits: they would merge the same for nobody. */
static int may_leave(const tree *t, int mask) {
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->axis == t->axis && d->level == 'w' && d->extent > 1 && !(d->pstride & mask))
      return 0; /* they meet once more */
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

/* Bits of the warp number that are below bit b of the axis */
static int merged_warps(const tree *t, int64_t b) {
  int bits = 0;
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    if (d->level == 'w' && d->axis == t->axis && d->stride * d->extent <= b) bits |= (d->extent - 1) * d->pstride;
  }
  return bits;
}

/* Merges bit b, which digit `digit` holds, and the bits above it that cross warps with it; returns the last one. */
static int64_t merge_bit(tree *t, int digit, int64_t b) {
  const nvf_digit *d = &t->acc->d[digit];
  int m = (int)(b / d->stride);
  if (d->level == 'i' && !merge_folded(t, digit, m)) merge_items(t, digit, m);
  if (d->level == 'l') {
    nvcu_need_bits(t->e, d, "reduction");
    merge_lanes(t, m * d->pstride, lane_bits(t, b));
  }
  if (d->level == 'c')
    nvb_throw(t->e->a, NVM_ERR_UNSUPPORTED, "[cuda] blocks of a cluster merge among lanes or in a loop");
  if (d->level != 'w') return b;
  if (!t->crosses) unfold(t);
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

/* in_registers: up to where warps meet */
static void grow(tree *t, int in_registers) {
  int64_t end = t->r[0]->cross_warp ? nvcu_cross_warp_bit(t->r[0]->cross_warp) : t->r[0]->of.extent;
  for (; t->bit < end; t->bit *= 2) {
    int digit = digit_with(t, t->bit); /* -1: in sequence, or looped chunks, which are the highest bits */
    if (digit >= 0 && in_registers && t->acc->d[digit].level != 'i' && t->acc->d[digit].level != 'l') return;
    if (digit >= 0) t->bit = merge_bit(t, digit, t->bit);
  }
}

/* Result item y of reduction j */
static const char **result(const tree *t, int j, int y) {
  int k = 0;
  while (t->gone[k] || nvc_match_item(t->r[j]->of.y, t->acc, k) != y) k++;
  return value(t, j, k);
}

static int alike(const nvcu_red *a, const nvcu_red *b) {
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

/* ---- looped chunks: the result of chunk c merges with those of its lower set bits' groups, from the nearest on */
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

static const char *held(nvcu_em *e, const nvcu_red *r, int level, int y, int i) {
  return slot_at(e, r, r->held[(level * r->of.ny + y) * r->of.nstate + i], r->of.first);
}

static void hold(nvcu_em *e, nvcu_red *r, const char *chunk, const char *const *const *out) {
  const char *v[NVCU_ARGS], *h[NVCU_ARGS], **all = NVB_NEWN(e->a, const char *, r->of.ny * r->of.nstate);
  for (int y = 0; y < r->of.ny; y++)
    for (int i = 0; i < r->of.nstate; i++) all[y * r->of.nstate + i] = out[y][i];
  for (int level = 0; level <= r->levels; level++) {
    if (level < r->levels) nvcu_open(e, "if (!(%s & %d))", chunk, 1 << level);
    for (int y = 0; y < r->of.ny; y++)
      for (int i = 0; i < r->of.nstate; i++)
        nvcu_line(e, "%s = %s;", held(e, r, level, y, i), all[y * r->of.nstate + i]);
    if (level == r->levels) break;
    nvcu_close(e);
    nvcu_open(e, "else");
    for (int y = 0; y < r->of.ny; y++) {
      for (int i = 0; i < r->of.nstate; i++) {
        v[i] = held(e, r, level, y, i);
        h[i] = all[y * r->of.nstate + i];
      }
      nvcu_merge(e, r->of.s->frag, v, h, r->of.nstate, 0);
      for (int i = 0; i < r->of.nstate; i++) all[y * r->of.nstate + i] = v[i];
    }
  }
  for (int level = 0; level < r->levels; level++) nvcu_close(e);
  nvcu_line(e, "%s = %s + 1;", r->count, chunk);
}

/* All chunks: the last level has it. Fewer: the levels of the bits of their number, from the lowest on. */
static void all_chunks(nvcu_em *e, nvcu_red *r) {
  int open = nest_open(e, r, r->of.first);
  for (int y = 0; y < r->of.ny; y++) {
    const char *v[NVCU_ARGS], *h[NVCU_ARGS];
    for (int i = 0; i < r->of.nstate; i++) {
      v[i] = held(e, r, r->levels, y, i);
      if (!r->cut) continue;
      v[i] = nvcu_fresh(e, "q");
      nvcu_line(e, "%s %s = %s;", nvcu_type(state_type(e, r, i)), v[i], identity(e, r, i));
    }
    for (int level = 0; r->cut && level <= r->levels; level++) {
      nvcu_open(e, "if (%s & %d)", r->count, 1 << level);
      for (int i = 0; i < r->of.nstate; i++) h[i] = held(e, r, level, y, i);
      nvcu_merge(e, r->of.s->frag, v, h, r->of.nstate, 1);
      nvcu_close(e);
    }
    for (int i = 0; i < r->of.nstate; i++) nvcu_define(e, r->of.s->out[i], y, v[i]);
  }
  nest_close(e, open);
}

/* Blocks read each other's boards once in a kernel's life: a buffer is one reduction's alone, and the kernel ends
   together. */
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
  for (int y = 0; y < r->of.ny; y++) out[y] = result(t, j, y);
  if (r->cross_warp) nvcu_cross_warp_store(e, r->cross_warp, out);
  else if (r->levels >= 0) hold(e, r, chunk_number(e, r), out);
  else
    for (int y = 0; y < r->of.ny; y++)
      for (int i = 0; i < r->of.nstate; i++) nvcu_define(e, r->of.s->out[i], y, out[y][i]);
  r->done = 1;
}

/* ---- lanes of the reduction order that are loops: the whole tree over the array */
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
      merge(t, j, &low[j][k * t->r[j]->of.nstate], value(t, j, k));
      memcpy(value(t, j, k), &low[j][k * t->r[j]->of.nstate], sizeof *low[j] * (size_t)t->r[j]->of.nstate);
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

static int crosses(const tree *t) {
  int found = 0;
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    found |= d->axis == t->axis && d->extent > 1 && d->level == 'w';
  }
  return found && lanes_differ(t, t->r[0]->of.extent);
}

/* The tree of r and of those like it that come later in the nest. */
static tree *tree_of(nvcu_em *e, nvcu_red *r) {
  tree *t = r->tree;
  if (t) return t;
  t = NVB_NEW(e->a, tree);
  *t = (tree){ .e = e, .acc = &r->of.acc, .nacc = r->of.nacc, .axis = r->of.s->axis, .bit = 1 };
  t->may_fold = !r->of.spread;
  for (int i = 0; i < e->red.n && t->n < TOGETHER; i++)
    if (!e->red.at[i]->done && alike(r, e->red.at[i])) t->r[t->n++] = e->red.at[i];
  t->crosses = crosses(t);
  t->gone = NVB_NEWN(e->a, uint8_t, t->nacc);
  t->written = NVB_NEWN(e->a, uint8_t, t->nacc);
  t->end = NVB_NEWN(e->a, int, t->nacc);
  t->into = NVB_NEWN(e->a, int, t->nacc);
  for (int j = 0; j < t->n; j++) {
    t->r[j]->tree = t;
    t->v[j] = NVB_NEWN(e->a, const char *, t->nacc * t->r[j]->of.nstate);
  }
  renew(t);
  return t;
}

static void trees(nvcu_em *e, nvcu_red *r) {
  tree *t = tree_of(e, r);
  if (r->of.spread) grow_spread(t);
  int open = nest_open_bit(e, r, r->of.start, r->of.extent, NULL);
  take_values(t);
  if (!r->of.spread) grow(t, 0);
  unfold(t);
  for (int j = 0; j < t->n; j++) finish_reduction(t, j);
  nest_close(e, open);
}

/* Can it be written in parts of another axis? Where each accumulator is one element. */
int nvcu_reduce_in_parts(const nvcu_red *r, int axis) {
  return !r->cross_warp && r->levels < 0 && !r->of.spread && r->of.s->axis != axis && r->of.nacc == nvc_items(r->of.x);
}

/* Behind a part: merges of what is there */
void nvcu_reduce_part(nvcu_em *e, nvcu_red *r) {
  tree *t = tree_of(e, r);
  if (t->bit == 1) grow(t, 1);
  take_values(t);
  if (t->r[0] == r) write_ready(t);
}

void nvcu_reduce_after(nvcu_em *e, nvcu_red *r, int level) {
  if (level == r->of.start && !r->done) trees(e, r);
  if (level == r->of.first && r->cross_warp) load_cross_warp(e, r);
  else if (level == r->of.first && r->levels >= 0) all_chunks(e, r);
}
