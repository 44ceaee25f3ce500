/* Emits reductions under a reduction order. A thread adds up its sequence digits in variables, which the tree then
   merges (reduce_tree.c). Looped chunks wait in one variable per level of the tree (a binary counter). Where lanes of
   the reduction order are loops, all accumulators are in one array, which the tree walks bit by bit. Decides where
   values are, never the order in which they merge. */
#include "codegen/cuda/reduce.h"
#include <string.h>
#include "frag/dtype.h"

typedef nvcu_tree tree;

const nvf_stmt *nvcu_reduce_of(const nvcu_red *r) { return r->of.s; }

static const char *identity_text(nvcu_em *e, const nvcu_red *r, int i) {
  return nvcu_const(e, nvcu_red_type(e, r, i), r->of.s->init[i]);
}

/* ---- loops */
static void declare_state(nvcu_em *e, const nvcu_red *r, int i, const char *name, int from) {
  const char *type = nvcu_type(nvcu_red_type(e, r, i));
  if (nvc_slots(&r->of, from) > 1) nvcu_line(e, "%s %s[%lld];", type, name, (long long)nvc_slots(&r->of, from));
  else nvcu_line(e, "%s %s = %s;", type, name, identity_text(e, r, i));
}

const char *nvcu_red_slot(nvcu_em *e, const nvcu_red *r, const char *name, int from) {
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
    nvcu_line(e, "%s = %s;", nvcu_red_slot(e, r, r->v[k], r->of.start), identity_text(e, r, k % r->of.nstate));
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
    if (where) x[i] = waits ? nvcu_text(e, "(%s)", x[i]) : nvcu_let(e, nvcu_type(nvcu_red_type(e, r, i)), x[i]);
  }
}

static void add_element(nvcu_em *e, nvcu_red *r, int k, const char *const *x) {
  const char **v = &r->v[k * r->of.nstate], *a[NVCU_ARGS] = { NULL };
  int looped = r->of.start < r->of.nest->nloop;
  for (int i = 0; i < r->of.nstate; i++) a[i] = looped ? nvcu_red_slot(e, r, v[i], r->of.start) : v[i];
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
    element_states(e, r, item, first && r->of.nacc * r->of.nstate > NVCU_ABREAST, x);
    add_element(e, r, k, x);
  }
}

/* Result item y of reduction j */
static const char **result_of(const tree *t, int j, int y) {
  int k = 0;
  while (t->gone[k] || nvc_match_item(t->r[j]->of.y, t->acc, k) != y) k++;
  return nvcu_tree_slot(t, j, k);
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
  return nvcu_red_slot(e, r, r->held[(level * r->of.ny + y) * r->of.nstate + i], r->of.first);
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
      nvcu_line(e, "%s %s = %s;", nvcu_type(nvcu_red_type(e, r, i)), v[i], identity_text(e, r, i));
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
        nvcu_tree_name_state(t, j, k % r->of.nstate, &t->v[j][k], nvcu_red_slot(t->e, r, r->v[k], r->of.start));
    }
}

static void store_slots(const tree *t) {
  for (int j = 0; j < t->n; j++)
    for (int k = 0; k < t->nacc * t->r[j]->of.nstate; k++) {
      const nvcu_red *r = t->r[j];
      if (!t->gone[k / r->of.nstate])
        nvcu_line(t->e, "%s = %s;", nvcu_red_slot(t->e, r, r->v[k], r->of.start), t->v[j][k]);
    }
}

static void merge_loop_bit(const tree *t, const nvf_digit *d, int64_t b) {
  nvcu_em *e = t->e;
  int open = nest_open_bit(e, t->r[0], t->r[0]->of.start, b, d), at = open;
  const char **low[NVCU_TOGETHER];
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
      nvcu_tree_merge(t, j, &low[j][k * t->r[j]->of.nstate], nvcu_tree_slot(t, j, k));
      memcpy(nvcu_tree_slot(t, j, k), &low[j][k * t->r[j]->of.nstate], sizeof *low[j] * (size_t)t->r[j]->of.nstate);
    }
  store_slots(t);
  nest_close(e, open);
}

static void grow_spread(tree *t) {
  const nvcu_red *r = t->r[0];
  for (int64_t b = 1; b < r->of.extent; b *= 2) {
    const nvf_digit *d = nvc_loop_with(&r->of, b);
    int digit = nvcu_tree_digit(t, b);
    if (d) merge_loop_bit(t, d, b);
    if (digit < 0) continue;
    int open = nest_open_bit(t->e, r, r->of.start, b, NULL);
    load_slots(t);
    b = nvcu_tree_merge_bit(t, digit, b);
    nvcu_tree_write_stages(t);
    store_slots(t);
    nest_close(t->e, open);
  }
  for (int j = 0; j < t->n; j++) memset(t->v[j], 0, sizeof *t->v[j] * (size_t)(t->nacc * t->r[j]->of.nstate));
}

static void emit_trees(nvcu_em *e, nvcu_red *r) {
  tree *t = nvcu_tree_of(e, r);
  if (r->of.spread) grow_spread(t);
  int open = nest_open_bit(e, r, r->of.start, r->of.extent, NULL);
  nvcu_tree_take_values(t);
  if (!r->of.spread) nvcu_tree_decide(t, 0);
  nvcu_tree_unfold_lanes(t);
  for (int j = 0; j < t->n; j++) finish_reduction(t, j);
  nest_close(e, open);
}

/* Can it be emitted in slices of another axis? It can if each accumulator takes one element. */
int nvcu_reduce_in_parts(const nvcu_red *r, int axis) {
  return !r->cross_warp && r->levels < 0 && !r->of.spread && r->of.s->axis != axis && r->of.nacc == nvc_items(r->of.x);
}

/* After a slice: emits the merges of accumulators that have their values. */
void nvcu_reduce_part(nvcu_em *e, nvcu_red *r) {
  tree *t = nvcu_tree_of(e, r);
  if (t->bit == 1) nvcu_tree_decide(t, 1);
  nvcu_tree_take_values(t);
  if (t->r[0] == r) nvcu_tree_write_ready(t);
}

void nvcu_reduce_after(nvcu_em *e, nvcu_red *r, int level) {
  if (level == r->of.start && !r->done) emit_trees(e, r);
  if (level == r->of.first && r->cross_warp) load_cross_warp(e, r);
  else if (level == r->of.first && r->levels >= 0) all_chunks(e, r);
}
