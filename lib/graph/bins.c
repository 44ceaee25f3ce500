/* Recognises histograms: how many elements of x are 0, 1, ... k - 1, written as the sum of x == arange(k) over all axes
   but that of the bins, or the sums of weights where the comparison holds. A routine takes one step per element where
   comparisons take k. Sums of integers, and exact sums of ones, have the same bits in any order; floats are added in
   the order of columns (numerics.md section 4). The planner decides whether a device has the routine. */
#include <string.h>
#include "graph/lower.h"

/* least number of bins, and of elements of a row: for fewer, comparisons are as fast (10^6 elements: 1.8 ms compared,
   1.5 ms counted) */
enum { LEAST = 16 };

typedef struct bins {
  int axis;         /* the axis of the bins in the comparison */
  int64_t n, first; /* number of bins; the number that falls into the first one */
  int x;            /* the values that are compared with the bins; extent 1 along the axis */
  int weight;       /* the weights, of extent 1 along the axis too; -1: ones */
} bins;

static int is_one_of(const nvg_val *all, int v, int op, int nin) {
  return all[v].kind == NVG_VMAP && all[v].op == op && all[v].nin == nin;
}

/* If v is the coordinate along one axis plus a constant, in int64 or converted from it, returns that axis and the
   constant in *first; else returns -1. */
static int find_position(const nvg_val *all, int v, int64_t *first) {
  int axis = -1;
  *first = 0;
  for (const nvg_val *x = &all[v];; x = &all[v = x->in[0]]) {
    for (int d = 0; d < x->rank && axis < 0 && x->kind != NVG_VEXPAND; d++)
      if (x->shape[d] == x->size) axis = d;
    if (x->kind != NVG_VEXPAND && axis < 0) return -1;
    if (x->kind == NVG_VIOTA) return x->shape[x->attr[0]] == x->size ? axis : -1;
    if (x->dtype == NVM_I64 && is_one_of(all, v, NVG_OP_ADD, 2) && all[x->in[1]].kind == NVG_VCONST)
      *first = (int64_t)((uint64_t)*first + (uint64_t)all[x->in[1]].attr[0]);
    else if (x->kind != NVG_VEXPAND && x->kind != NVG_VRESHAPE &&
             !(is_one_of(all, v, NVG_OP_CAST, 1) && all[x->in[0]].dtype == NVM_I64))
      return -1;
  }
}

/* Returns 1 if t holds x, and each integer between 0 and x. */
static int is_held(nvm_dtype t, int64_t x) {
  int64_t end = INT64_C(1) << (nvg_precision(t) < 63 ? nvg_precision(t) : 62);
  if (nvg_class_of(t) < NVG_FLOAT) return nvg_bits_int(t, nvg_int_bits(t, x)) == x;
  return -end <= x && x <= end;
}

static int is_split(const nvg_val *all, const nvg_val *equal, bins *b) {
  for (int side = 0; side < 2; side++) {
    int x = equal->in[!side];
    b->axis = find_position(all, equal->in[side], &b->first);
    if (b->axis < 0 || all[x].kind != NVG_VEXPAND || all[all[x].in[0]].shape[b->axis] != 1) continue;
    b->n = equal->shape[b->axis];
    b->x = all[x].in[0];
    return b->n >= LEAST && is_held(all[x].dtype, b->first) && is_held(all[x].dtype, b->first + b->n - 1);
  }
  return 0;
}

/* Returns 1 if sums of n ones are exact, in any order. */
static int is_exact(nvm_dtype t, int64_t n) {
  return nvg_class_of(t) < NVG_FLOAT || n <= (t == NVM_F64 ? INT64_C(1) << 53 : t == NVM_F32 ? 1 << 24 : 0);
}

static int is_zero(const nvg_val *x) { return x->kind == NVG_VCONST && x->nattr == 1 && !x->attr[0]; }

static int is_one(const nvg_val *x) {
  uint64_t one = nvg_class_of(x->dtype) < NVG_FLOAT ? 1 : nvg_float_bits(x->dtype, 1);
  return x->kind == NVG_VCONST && x->nattr == 1 && (uint64_t)x->attr[0] == one;
}

static int is_comparison(const nvg_val *all, int v) {
  return is_one_of(all, v, NVG_OP_EQUAL, 2) && nvg_parts(all[all[v].in[0]].dtype) == 1;
}

/* Finds the comparison in a sum whose terms are ones, or weights, where it holds; -1 if there is none. Products with
   the comparison are accepted for integers only: where it does not hold, a float may be NaN or infinite, and NaN * 0 is
   not 0. What is converted before it is summed is found before that, since 0 stays 0. */
static int find_comparison(const nvg_val *all, int term, bins *b) {
  b->weight = -1;
  if (is_one_of(all, term, NVG_OP_CAST, 1)) {
    term = all[term].in[0];
    if (is_comparison(all, term)) return term;
  }
  const nvg_val *t = &all[term];
  if (is_one_of(all, term, NVG_OP_WHERE, 3) && is_zero(&all[t->in[2]]) && is_comparison(all, t->in[0])) {
    b->weight = is_one(&all[t->in[1]]) ? -1 : t->in[1];
    return t->in[0];
  }
  for (int side = 0; side < 2 && is_one_of(all, term, NVG_OP_MULTIPLY, 2) && nvg_class_of(t->dtype) < NVG_FLOAT; side++)
    if (is_one_of(all, t->in[side], NVG_OP_CAST, 1) && is_comparison(all, all[t->in[side]].in[0])) {
      b->weight = t->in[!side];
      return all[t->in[side]].in[0];
    }
  return -1;
}

/* Returns 1 if the weights are the same for all bins, and if their sum may be computed in the routine's order. */
static int are_weights(const nvg_val *all, const nvg_val *v, bins *b) {
  const nvg_val *w = &all[b->weight];
  if (nvg_class_of(v->dtype) >= NVG_FLOAT && (v->lanes != 1 || nvg_is_narrow(v->dtype))) return 0;
  if (w->kind != NVG_VEXPAND || all[w->in[0]].shape[b->axis] != 1) return 0;
  b->weight = w->in[0];
  return 1;
}

static int is_histogram(const nvg_val *all, const nvg_val *v, bins *b) {
  if (v->kind != NVG_VRED || v->nin != 1 || strcmp(v->frag->name, "add") || nvg_parts(v->dtype) == 2) return 0;
  const nvg_val *terms = &all[v->in[0]];
  int64_t from = v->attr[0], to = from + v->attr[1], n = nvg_size_of((int)v->attr[1], terms->shape + from);
  int equal = find_comparison(all, v->in[0], b);
  return equal >= 0 && nvg_same_shape(terms, &all[equal]) && is_split(all, &all[equal], b) &&
         (b->axis < from || b->axis >= to) && n >= LEAST &&
         (b->weight < 0 ? is_exact(v->dtype, n) : are_weights(all, v, b));
}

/* Lays x, which has extent 1 along the bins, out as rows over the reduced axes. shape, *rank: the kept dimensions of
   more than one element, then the row. */
static int rows_of(nvg_lower *l, const nvg_val *v, const bins *b, int x, int64_t *shape, int *rank) {
  const nvg_val *whole = nvg_at(l, v->in[0]);
  int64_t full[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  int r = whole->rank, n = 0;
  *rank = 0;
  memcpy(full, whole->shape, (size_t)r * sizeof *full);
  full[b->axis] = 1;
  for (int d = 0; d < r; d++)
    if (d < v->attr[0] || d >= v->attr[0] + v->attr[1]) {
      axes[n++] = d;
      if (full[d] != 1) shape[(*rank)++] = full[d];
    }
  shape[(*rank)++] = nvg_size_of((int)v->attr[1], full + v->attr[0]);
  for (int i = 0; i < v->attr[1]; i++) axes[n++] = v->attr[0] + i;
  return nvg_add_reshape(l, nvg_add_permute(l, nvg_add_expand(l, x, r, full), axes), *rank, shape);
}

static int from_first(nvg_lower *l, int x, const bins *b) {
  const nvg_val from = *nvg_at(l, x);
  if (!b->first) return x;
  int in[2] = { nvg_add_cast(l, x, NVM_I64), nvg_add_const(l, NVM_I64, (uint64_t)b->first, 0) };
  return nvg_add_named(l, "subtract", NVM_I64, in, 2, &from);
}

/* Returns the bins of floats: that of the integer which equals x, or -1 if none does. */
static int of_floats(nvg_lower *l, int x, const bins *b) {
  const nvg_val from = *nvg_at(l, x);
  int whole = nvg_add_cast(l, x, NVM_I64), back[2] = { nvg_add_cast(l, whole, from.dtype), x };
  int in[3] = { nvg_add_named(l, "equal", NVM_BOOL, back, 2, &from), from_first(l, whole, b),
                nvg_add_const(l, NVM_I64, UINT64_MAX, 0) };
  return nvg_add_named(l, "where", NVM_I64, in, 3, &from);
}

/* Returns the integers before they were widened for the comparison, if they were; as int64 if they are uint64, which
   the routine does not take. */
static int before_widening(nvg_lower *l, int x) {
  const nvg_val *v = nvg_at(l, x), *from = v->nin ? nvg_at(l, v->in[0]) : NULL;
  int widens = v->kind == NVG_VMAP && v->op == NVG_OP_CAST && nvg_class_of(from->dtype) < NVG_FLOAT &&
               nvg_embeds(from->dtype, v->dtype) && nvg_same_shape(v, from);
  if (widens) x = v->in[0];
  return nvg_at(l, x)->dtype == NVM_U64 ? nvg_add_cast(l, x, NVM_I64) : x;
}

static int bins_of(nvg_lower *l, int x, const bins *b) {
  return nvg_class_of(nvg_at(l, x)->dtype) < NVG_FLOAT ? before_widening(l, from_first(l, x, b)) : of_floats(l, x, b);
}

/* Brings counts or sums, whose last dimension is the bins, to the shape and dtype of v. */
static int as_summed(nvg_lower *l, int counts, const nvg_val *v, const bins *b) {
  int64_t last[NVM_MAX_RANK], axes[NVM_MAX_RANK];
  int r = v->rank;
  for (int d = 0, at = 0; d < r; d++) {
    axes[d] = d == b->axis ? r - 1 : at;
    if (d != b->axis) last[at++] = v->shape[d];
  }
  last[r - 1] = b->n;
  return nvg_add_cast(l, nvg_add_permute(l, nvg_add_reshape(l, counts, r, last), axes), v->dtype);
}

static int maybe_in_bins(nvg_lower *l, int value, const nvg_val *v, int *in, const void *how) {
  bins b;
  (void)value, (void)in, (void)how;
  if (!is_histogram(l->make.v.at, v, &b)) return nvg_make_add(&l->make, v);
  int64_t shape[NVM_MAX_RANK];
  int rank, of[2];
  of[0] = bins_of(l, rows_of(l, v, &b, b.x, shape, &rank), &b);
  if (b.weight >= 0) of[1] = nvg_add_cast(l, rows_of(l, v, &b, b.weight, shape, &rank), v->dtype);
  shape[rank - 1] = b.n;
  l->op = NVG_OP_BINS;
  nvg_val c = { .kind = NVG_VROUTINE,
                .dtype = b.weight < 0 ? NVM_I64 : v->dtype,
                .rank = rank,
                .shape = shape,
                .nin = b.weight < 0 ? 1 : 2,
                .in = of,
                .attr = &b.n,
                .nattr = 1 };
  int counts = nvg_add(l, &c);
  l->op = v->op;
  return as_summed(l, counts, v, &b);
}

const nvg_graph *nvg_in_bins(nvb_arena *a, const nvg_graph *g) {
  bins b;
  for (int i = 0; i < g->n; i++)
    if (is_histogram(g->v, &g->v[i], &b)) return nvg_made_anew(a, g, maybe_in_bins, NULL);
  return g;
}
