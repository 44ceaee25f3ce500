/* The tree of a reduction: merges by the bits of the index, lowest first, items in registers, lanes by shuffles, warps
   through shared memory. Similar reductions of a nest share a tree and its barriers. It decides which values merge in
   which registers, lanes and slots of shared memory, never the order. */
#include "codegen/cuda/reduce.h"
#include <string.h>
#include "frag/dtype.h"

enum {
  OWN_BYTES = 1024, /* bytes up to which a tree has a buffer of its own, which saves a barrier */
  NEVER = 1 << 30
};
typedef nvcu_tree tree;
typedef nvcu_fold fold;
typedef nvcu_stage stage;

const char **nvcu_tree_slot(const tree *t, int j, int k) { return &t->v[j][k * t->r[j]->of.nstate]; }

void nvcu_tree_merge(const tree *t, int j, const char **a, const char *const *b) {
  nvcu_merge(t->e, t->r[j]->of.s->frag, a, b, t->r[j]->of.nstate, 0);
}

void nvcu_tree_name_state(const tree *t, int j, int i, const char **to, const char *text) {
  *to = nvcu_fresh(t->e, "q");
  nvcu_line(t->e, "const %s %s = %s;", nvcu_type(nvcu_red_type(t->e, t->r[j], i)), *to, text);
}

int nvcu_tree_digit(const tree *t, int64_t b) {
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
    nvcu_tree_name_state(t, j, i, &out[i],
                         nvcu_text(t->e, "__shfl_xor_sync(~0u, %s, %d)", nvcu_tree_slot(t, j, k)[i], lane));
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
    nvcu_tree_name_state(t, j, i, &sent[i], nvcu_text(t->e, "%s ? %s : %s", up, a, b));
    nvcu_tree_name_state(t, j, i, &kept[i], nvcu_text(t->e, "%s ? %s : %s", up, b, a));
  }
}

static void give_name(const tree *t, int j, const char **v) { /* to expressions that waited for their merge */
  for (int i = 0; i < t->r[j]->of.nstate; i++)
    if (*v[i] == '(') nvcu_tree_name_state(t, j, i, &v[i], v[i]);
}

static void write_merge(const tree *t, const stage *s, int k) {
  for (int j = 0; j < t->n; j++) {
    const char **v = nvcu_tree_slot(t, j, k), **with = nvcu_tree_slot(t, j, k + s->by), *other[NVCU_ARGS];
    give_name(t, j, v), give_name(t, j, with);
    if (s->lane && s->by) share_work(t, j, s->lane, v, with);
    if (s->lane) shuffle_value(t, j, k + s->by, s->lane, other);
    nvcu_tree_merge(t, j, v, s->lane ? other : with);
  }
}

static int is_merged(const tree *t, int at, int k) { /* does stage `at` merge anything into accumulator k? */
  int by = t->stage[at].by, with = k + by;
  return t->end[k] > at && (!by || (with < t->nacc && t->end[with] == at && t->into[with] == k));
}

/* Takes the names that accumulators have got since the last call. */
void nvcu_tree_take_values(tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++)
      if (!t->v[j][k] && t->r[j]->v[k]) t->v[j][k] = nvcu_red_slot(t->e, t->r[j], t->r[j]->v[k], t->r[j]->of.start);
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
      if (!*nvcu_tree_slot(t, j, k)) return 0;
    n++;
  }
  return t->end[root] == NEVER && !t->written[root] ? n : 0;
}

/* Emits the decided stages of all accumulators whose values exist. */
void nvcu_tree_write_ready(tree *t) {
  uint8_t *now = NVB_NEWN(t->e->a, uint8_t, t->nacc);
  int width = 0;
  for (int j = 0; j < t->n; j++) width += t->r[j]->of.nstate;
  for (int from = 0, to; from < t->nacc && t->nstage; from = to) {
    int n = 0;
    memset(now, 0, (size_t)t->nacc);
    for (to = from; to < t->nacc && n * width < NVCU_ABREAST; to++) {
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

void nvcu_tree_write_stages(tree *t) {
  nvcu_tree_write_ready(t);
  restart_stages(t);
}

void nvcu_tree_unfold_lanes(tree *t) {
  nvcu_tree_write_stages(t);
  while (t->nfold) {
    const fold *f = &t->fold[--t->nfold];
    const char *up = upper_text(t, f->lane), *other[NVCU_ARGS];
    for (int k = 0; k < t->nacc; k++) {
      if (t->gone[k]) continue;
      for (int j = 0; j < t->n; j++) {
        shuffle_value(t, j, k, f->lane, other);
        const char **low = nvcu_tree_slot(t, j, k), **high = nvcu_tree_slot(t, j, k + f->step);
        for (int i = 0; i < t->r[j]->of.nstate; i++) {
          const char *mine = low[i];
          nvcu_tree_name_state(t, j, i, &low[i], nvcu_text(t->e, "%s ? %s : %s", up, other[i], mine));
          nvcu_tree_name_state(t, j, i, &high[i], nvcu_text(t->e, "%s ? %s : %s", up, mine, other[i]));
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
    int digit = nvcu_tree_digit(t, b);
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
      for (int i = 0; i < t->r[j]->of.nstate; i++) take_slot(t, m, &at, nvcu_red_type(t->e, t->r[j], i));
  return at;
}

static void put_slots(const tree *t, const slots *m) {
  int64_t at = 0;
  if (m->lanes == 1) nvcu_open(t->e, "if (lane == 0)");
  for (int k = 0; k < t->nacc; k++)
    for (int j = 0; j < t->n && !t->gone[k]; j++)
      for (int i = 0; i < t->r[j]->of.nstate; i++)
        nvcu_line(t->e, "%s[%s] = %s;", slot_text(t, m, &at, nvcu_red_type(t->e, t->r[j], i)),
                  m->lanes == 1 ? "warp" : "warp * 32 + lane", nvcu_tree_slot(t, j, k)[i]);
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
      for (int i = 0; i < n; i++) slots[i] = slot_text(t, m, &next, nvcu_red_type(e, t->r[j], i));
      for (int i = 0; i < 2 * n; i++)
        nvcu_tree_name_state(t, j, i % n, &v[i / n][i % n], nvcu_text(e, "%s[%s]", slots[i % n], at[i / n]));
      nvcu_tree_merge(t, j, v[0], v[1]);
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
        const char *p = slot_text(t, m, &at, nvcu_red_type(t->e, t->r[j], i)),
                   *in = m->lanes == 1 ? "" : " * 32 + lane";
        for (int c = 0; c < count; c++)
          nvcu_tree_name_state(t, j, i, &g[c * n + i], nvcu_text(t->e, "%s[%s%s]", p, warp_number(t, m, c), in));
      }
      for (int h = 1; h < count; h *= 2)
        for (int c = 0; c + h < count; c += 2 * h) nvcu_tree_merge(t, j, &g[c * n], &g[(c + h) * n]);
      for (int i = 0; i < n; i++) nvcu_tree_slot(t, j, k)[i] = g[i];
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
  nvcu_tree_write_stages(t);
  int64_t bytes = bytes_of_slots(t, m);
  m->smem = bytes <= OWN_BYTES ? nvcu_smem_new(t->e, bytes, 1) : nvcu_smem_exchange(t->e, bytes);
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

int64_t nvcu_tree_merge_bit(tree *t, int digit, int64_t b) {
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
  if (!t->crosses) nvcu_tree_unfold_lanes(t);
  slots way = { .lanes = t->crosses || lanes_differ(t, b) ? 32 : 1, .alike = merged_warps(t, b) };
  int64_t low = b;
  for (; digit >= 0 && t->acc->d[digit].level == 'w'; digit = nvcu_tree_digit(t, b *= 2)) {
    d = &t->acc->d[digit];
    nvcu_need_bits(t->e, d, "reduction");
    if (d->extent & (d->extent - 1)) way.odd = d;
    way.mask |= way.bit[way.nbit++] = (int)(b / d->stride) * d->pstride;
    way.count = (int)((d->stride * d->extent + low - 1) / low);
  }
  merge_warps(t, &way);
  return b / 2;
}

void nvcu_tree_decide(tree *t, int in_registers) {
  int64_t end = t->r[0]->cross_warp ? nvcu_cross_warp_bit(t->r[0]->cross_warp) : t->r[0]->of.extent;
  for (; t->bit < end; t->bit *= 2) {
    int digit = nvcu_tree_digit(t, t->bit); /* -1: sequence digits, or looped chunks, which are the highest bits */
    if (digit >= 0 && in_registers && t->acc->d[digit].level != 'i' && t->acc->d[digit].level != 'l') return;
    if (digit >= 0) t->bit = nvcu_tree_merge_bit(t, digit, t->bit);
  }
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

static int crosses_warps(const tree *t) {
  int found = 0;
  for (int i = 0; i < t->acc->n; i++) {
    const nvf_digit *d = &t->acc->d[i];
    found |= d->axis == t->axis && d->extent > 1 && d->level == 'w';
  }
  return found && lanes_differ(t, t->r[0]->of.extent);
}

tree *nvcu_tree_of(nvcu_em *e, nvcu_red *r) {
  tree *t = r->tree;
  if (t) return t;
  t = NVB_NEW(e->a, tree);
  *t = (tree){ .e = e, .acc = &r->of.acc, .nacc = r->of.nacc, .axis = r->of.s->axis, .bit = 1 };
  t->may_fold = !r->of.spread;
  for (int i = 0; i < e->red.n && t->n < NVCU_TOGETHER; i++)
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
