/* Memory accesses of a kernel: how many elements one access may take, the hints of loads and stores, and the axis along
   which the lanes make transposed accesses. It never assigns digits (schedule_cpu.c and schedule_gpu.c do). */
#include "fusion/schedule.h"

/* ---- width of an access */
int nvf_is_one(const nvf_fusion *k, nvf_ix at, int axis) {
  nvf_prod by;
  int64_t c;
  return nvf_ix_coef(k->graph->space, at, axis, &by, &c) == 1;
}

/* Whether the index expression without its term of the axis is a multiple of n; 0 if another term depends on the
   axis. */
static int is_multiple(const nvf_fusion *k, nvf_ix at, int axis, int64_t n) {
  const nvf_space *s = k->graph->space;
  int terms;
  const nvf_term *t = nvf_ix_terms(s, at, &terms);
  for (int i = 0; i < terms; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    int64_t sum = 0;
    if (a->kind == NVF_AT_AXIS && a->id == axis) continue;
    for (int j = 0; j < terms; j++) /* terms of one atom may add up to a multiple */
      sum += t[j].atom == t[i].atom ? t[j].c % n * (nvf_value(s, t[j].by) % n) : 0;
    if ((a->axes >> axis & 1) || sum % n) return 0;
  }
  return 1;
}

static int is_aligned(const nvf_fusion *k, int node) {
  const nvf_node *n = &k->graph->node[node];
  return n->kind != NVG_VLEAF || k->graph->g->leaf[n->leaf].align16;
}

int nvf_vector_of(const nvf_fusion *k, nvf_ix at, int node, int axis, int64_t low) {
  int64_t n = least(low, 16 / nvg_size(k->graph->node[node].dtype));
  if (!nvf_is_one(k, at, axis)) return 0;
  while (n > 1 && !(is_aligned(k, node) && is_multiple(k, at, axis, n))) n /= 2;
  return (int)most(n, 1);
}

typedef struct votes { double wide, all; } votes;
static void vote_axis(const nvf_fusion *k, nvf_ix at, int node, uint64_t axes, int axis, int64_t v, votes *to) {
  int size = nvg_size(k->graph->node[node].dtype);
  double bytes = size * nvf_elements(k, axes);
  if (!(axes >> axis & 1) || !nvf_is_one(k, at, axis)) return;
  to->all += bytes;
  to->wide += nvf_vector_of(k, at, node, axis, v) == least(v, 16 / size) ? bytes : 0;
}

/* ---- draws */
/* Elements that share a counter, if expression i draws for the numbers of expression `index`; else 1. */
static int drawn_of(const nvf_fusion *k, int i, int index) {
  const nvf_iexpr *v = &k->expr.at[i];
  return v->kind == NVF_IMAP && v->narg && v->arg[0] == index ? nvg_frag_shared(k->graph->node[v->node].frag) : 1;
}
static int drawn_together(const nvf_fusion *k, int index) {
  int n = 1;
  for (int i = 0; i < k->expr.n; i++) n = (int)most(n, drawn_of(k, i, index));
  return n;
}
int nvf_drawn_together(const nvf_fusion *k, int axis) {
  int n = 1;
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_IINDEX && nvf_is_one(k, k->expr.at[i].at, axis))
      n = (int)most(n, drawn_together(k, i));
  return n;
}

int nvf_consecutive(const nvf_fusion *k, const nvf_tiling *s, int index) {
  const nvf_iexpr *v = &k->expr.at[index];
  int64_t n = k->graph->caps->kind == NVB_CPU ? 1 : drawn_together(k, index);
  for (int a = 0; a < k->axis.n && n > 1; a++) {
    const nvf_digits *d = &s->at[a].digits;
    int64_t m = d->n && d->d[0].level == 'i' ? least(n, d->d[0].n & -d->d[0].n) : 1;
    if (!s->at[a].tile || !(v->axes >> a & 1) || !nvf_is_one(k, v->at, a)) continue;
    while (m > 1 && !is_multiple(k, v->at, a, m)) m /= 2;
    if (m > 1) return (int)m;
  }
  return 0;
}

/* ---- the lowest digit of a contiguous axis */
/* Elements that make 16 bytes of the smallest dtype, but on a GPU at most 16 bytes of each result (lanes that store 32
   bytes each fill half lines: bf16 to f32 took 1.57 times a copy), if half of the bytes along the axis are aligned for
   it; else 4 bytes, or one element. There are no widths between, because each is a kernel of its own. Where a GPU
   accesses nothing along the axis, as many as share the counter of a draw. */
int64_t nvf_vector(const nvf_fusion *k, int axis) {
  int64_t v = 1, stored = 16;
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ILOAD && nvf_is_one(k, k->expr.at[i].at, axis))
      v = most(v, 16 / nvg_size(k->graph->node[k->expr.at[i].node].dtype));
  for (int i = 0; i < k->put.n; i++)
    if (nvf_is_one(k, k->put.at[i].at, axis)) {
      int64_t n = 16 / nvg_size(k->graph->node[k->put.at[i].node].dtype);
      v = most(v, n), stored = least(stored, n);
    }
  if (v == 1) return least(nvf_drawn_together(k, axis), power2(k->axis.at[axis].n));
  if (k->graph->caps->kind != NVB_CPU) v = least(v, stored);
  int64_t small = v / 4;
  for (v = least(least(v, 8), power2(k->axis.at[axis].n)); v > 1; v = v > small ? small : 1) {
    votes sum = { 0, 0 };
    for (int i = 0; i < k->expr.n; i++)
      if (k->expr.at[i].kind == NVF_ILOAD)
        vote_axis(k, k->expr.at[i].at, k->expr.at[i].node, k->expr.at[i].axes, axis, v, &sum);
    for (int i = 0; i < k->put.n; i++)
      vote_axis(k, k->put.at[i].at, k->put.at[i].node, k->put.at[i].axes, axis, v, &sum);
    if (2 * sum.wide >= sum.all) return v;
  }
  return 1;
}

/* ---- hints of an access */
static int is_steady(const nvf_fusion *k, const nvf_bound *b, int axis, int64_t n) {
  if (!(nvf_ix_axes(k->graph->space, b->e) >> axis & 1)) return 1;
  return nvf_is_one(k, b->e, axis) && is_multiple(k, b->e, axis, n) && nvf_value(k->graph->space, b->n) % n == 0;
}

/* Two elements next to each other along the points of transforms, if a thread has them so and their address is a
   multiple of two; *axis: the axis of the points. Both parts of an element go together anyway. */
static int vector_of_points(const nvf_fusion *k, const nvf_tiling *s, const nvf_access *m, int *axis) {
  const nvf_transforms *t = k->transforms;
  const nvf_node *node = &k->graph->node[m->node];
  int n = node->parts == 2 && is_aligned(k, m->node);
  for (int i = 0; i < 2 && s->pairs >> m->pass & 1; i++) {
    int a = i ? t->from : t->axis, v = m->axes >> a & 1 ? nvf_vector_of(k, m->at, m->node, a, 2) : 0;
    if (v > 1) n = v, *axis = a;
  }
  return n;
}

nvf_access_hints nvf_access_hints_of(const nvf_fusion *k, const nvf_tiling *s, const nvf_access *m) {
  const nvb_caps *c = k->graph->caps;
  const nvf_node *node = &k->graph->node[m->node];
  nvf_access_hints w = { 0 };
  int axis = -1;
  for (int a = 0; a < k->axis.n && axis < 0; a++) {
    const nvf_digits *d = m->transposed ? &s->at[a].transposed : &s->at[a].digits;
    int64_t low = d->n && d->d[0].level == 'i' ? d->d[0].n : 0;
    int v = s->at[a].tile && (m->axes >> a & 1) && low > 1 ? nvf_vector_of(k, m->at, m->node, a, low) : 0;
    if (v > 1) w.vec = v, axis = a;
  }
  if (k->transforms) w.vec = vector_of_points(k, s, m, &axis);
  if (axis >= 0) {
    w.whole = (nvf_is_exact(k, axis) && k->axis.at[axis].n == s->at[axis].tile) || k->axis.at[axis].n % w.vec == 0;
    for (int i = 0; i < k->valid.n; i++) w.whole &= is_steady(k, &k->valid.at[i], axis, w.vec);
    for (int i = 0; i < k->guard.at[m->guard].n; i++) w.whole &= is_steady(k, &k->guard.at[m->guard].b[i], axis, w.vec);
  }
  int all = 16 / nvg_size(node->dtype);
  uint64_t both = k->dot && s->tma_store >= 0 ? 1ull << k->dot->m | 1ull << k->dot->n : 0;
  w.tma = both && (m->axes & both) == both && nvf_vector_of(k, m->at, m->node, s->tma_store, all) == all;
  int apart = !(k->grid & ~m->axes); /* no two blocks read the same element */
  double bytes = nvf_elements(k, m->axes) * nvg_size(node->dtype);
  /* streaming loads cost up to a fifth and gain nothing, except of columns: 0.936 instead of 0.961 times a copy; so do
     stores of parts of lines */
  int part = s->part_of_line && nvf_is_one(k, m->at, s->batch);
  int once = m->store || (s->once && !(k->reduced & ~m->axes));
  w.stream = !k->graph->general && !part && once && bytes > (double)c->l2 / 2;
  w.prefetch = !m->store && apart && (m->axes & k->reduced) ? s->prefetch : 0;
  w.bulk = w.prefetch && s->bulk;
  return w;
}

/* ---- transposed accesses */
/* The axis along which this address is contiguous, if it is not the lane axis and the lanes stride over memory; -1:
   none. */
static int runs_along(const nvf_fusion *k, int lane, nvf_ix at) {
  nvf_space *s = k->graph->space;
  nvf_prod by;
  int64_t c;
  int n, unit = -1;
  const nvf_term *t = nvf_ix_terms(s, at, &n);
  if (lane < 0 || nvf_ix_floors(s, at) || nvf_ix_coef(s, at, lane, &by, &c) != 2 ||
      nvf_value(s, by) * (c < 0 ? -c : c) < 16)
    return -1;
  for (int i = 0; i < n; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    if (a->kind == NVF_AT_TILE) return -1;
    if (a->kind == NVF_AT_AXIS && t[i].by == 0 && (t[i].c == 1 || t[i].c == -1) && a->id != lane) unit = a->id;
  }
  return unit;
}

int nvf_transposed_axis(const nvf_fusion *k, int lane, uint64_t axes) {
  double sum[64] = { 0 };
  int best = -1;
  for (int i = 0; i < k->expr.n; i++) {
    int a = k->expr.at[i].kind == NVF_ILOAD ? runs_along(k, lane, k->expr.at[i].at) : -1;
    if (a >= 0) sum[a] += (double)k->axis.at[a].n * (double)k->axis.at[lane].n;
  }
  for (int i = 0; i < k->put.n; i++) {
    int a = runs_along(k, lane, k->put.at[i].at);
    if (a >= 0) sum[a] += (double)k->axis.at[a].n * (double)k->axis.at[lane].n;
  }
  for (int a = 0; a < k->axis.n; a++)
    if (sum[a] > 0 && (axes >> a & 1) && k->axis.at[a].n >= 16 && (best < 0 || sum[a] > sum[best])) best = a;
  return lane >= 0 && (k->grid >> lane & 1) && k->axis.at[lane].n >= 16 ? best : -1;
}

int nvf_is_transposed_access(const nvf_fusion *k, const nvf_tiling *s, nvf_ix at) {
  return s->transposed >= 0 && runs_along(k, s->lane, at) == s->transposed;
}
