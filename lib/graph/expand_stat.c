/* Expands statistics and norms into reductions and maps (numerics.md section 4). 16-bit operands are converted to
   float32, and only the result is rounded. The shapes that are built here determine in which order elements are
   merged. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "graph/infer.h"

enum { ONE_PASS = 16384 };

/* ---- common to all: the operand in its arithmetic dtype, axes, keepdims */
typedef struct stat { nvg_node *x; nvm_dtype out; uint32_t axes; int64_t keep; } stat;

static int open_stat(nvg_call *c, stat *s, int64_t default_axis) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int t = nvg_rule_in(o->name, o->rule, c->in, 1, c->default_float);
  if (t < 0) return NVM_ERR_TYPE;
  s->out = (nvm_dtype)t;
  s->x = nvg_xcast(c, c->in[0], nvg_compute_of(s->out), 1);
  if (!s->x) return NVM_ERR_MEMORY;
  int rank = s->x->aval->rank, status = nvg_attr_int(c, "keepdims", 0, &s->keep);
  if (!status) status = nvg_attr_axes(c, "axis", rank, &s->axes);
  if (!status && default_axis && !nvg_attr_get(c, "axis") && !nvg_attr_none(c, "axis") && rank)
    s->axes = 1u << (rank - 1);
  return status;
}

static nvg_node *close_stat(nvg_call *c, const stat *s, nvg_node *r) {
  if (r && r->aval->dtype != s->out) r = nvg_xcast(c, r, s->out, NVG_RESULT);
  return s->keep ? r : nvg_xdrop(c, r, s->axes);
}

static nvg_node *over_count(nvg_call *c, nvg_node *sum, double n) {
  if (!sum) return NULL;
  nvg_node *d = nvg_xfloat(c, n);
  if (nvg_parts(sum->aval->dtype) == 1) return nvg_x2(c, NVG_OP_DIVIDE, sum, d);
  return nvg_x2(c, NVG_OP_COMPLEX, nvg_x2(c, NVG_OP_DIVIDE, nvg_x1(c, NVG_OP_REAL, sum), d),
                nvg_x2(c, NVG_OP_DIVIDE, nvg_x1(c, NVG_OP_IMAG, sum), d));
}

static nvg_node *mean_of(nvg_call *c, nvg_node *x, uint32_t axes) {
  return over_count(c, nvg_xreduce(c, NVG_OP_SUM, x, axes, 1), x ? (double)nvg_count_over(x, axes) : 0);
}

nvg_node *nvg_make_MEAN(nvg_call *c) {
  stat s;
  return open_stat(c, &s, 0) ? NULL : close_stat(c, &s, mean_of(c, s.x, s.axes));
}

/* ---- levels: a run of adjacent reduced axes, innermost first, as the middle dimension of (before, n, inside) */
typedef struct level { int64_t before, n, inside; int column; uint32_t axes; } level;

static int split_levels(const nvg_aval *a, uint32_t axes, level *out) {
  int n = 0;
  int64_t inside = 1;
  for (int d = a->rank - 1; d >= 0;) {
    if (!(axes >> d & 1) || a->shape[d] == 1) {
      inside *= a->shape[d--];
      continue;
    }
    level *l = &out[n++];
    *l = (level){ .n = 1, .inside = inside, .column = inside >= NVG_COLUMN };
    for (; d >= 0 && ((axes >> d & 1) || a->shape[d] == 1); d--) l->n *= a->shape[d], l->axes |= 1u << d;
    l->before = 1;
    for (int e = 0; e <= d; e++) l->before *= a->shape[e];
  }
  return n;
}

/* The tiling of a level into (before, chunk, sequence, lane, inside), padded if n does not fill it. */
typedef struct tiling { int64_t chunks, seq, lanes, padded; } tiling;

static tiling tile_level(const level *l, nvg_red_order s) {
  tiling t = { .lanes = l->n < s.lanes ? l->n : s.lanes };
  t.seq = ((l->n < s.chunk ? l->n : s.chunk) + t.lanes - 1) / t.lanes;
  t.chunks = (l->n + t.seq * t.lanes - 1) / (t.seq * t.lanes);
  t.padded = t.chunks * t.seq * t.lanes;
  return t;
}

static nvg_node *tile_input(nvg_call *c, nvg_node *x, const level *l, const tiling *t, double fill) {
  int64_t flat[3] = { l->before, l->n, l->inside }, none[3] = { 0 };
  x = nvg_xreshape(c, x, 3, flat);
  flat[1] = t->padded;
  if (t->padded != l->n) x = x ? nvg_xpad(c, x, nvg_xconst(c, x->aval->dtype, fill, 0), none, flat) : NULL;
  int64_t five[5] = { l->before, t->chunks, t->seq, t->lanes, l->inside };
  return nvg_xreshape(c, x, 5, five);
}

static void level_shape(const nvg_aval *a, uint32_t axes, int64_t *shape) { /* the shape with these axes reduced to 1 */
  for (int d = 0; d < a->rank; d++) shape[d] = axes >> d & 1 ? 1 : a->shape[d];
}

/* Merges states along the middle of (before, n, inside). tree 1: with reduction order (1, 1), a tree over the index
   bits; 0: with the order that the shape gives. */
static int merge_states(nvg_call *c, nvg_node **state, const int64_t *shape, int tree) {
  int64_t attr[3] = { 1, tree, tree }, out[3] = { shape[0], 1, shape[2] };
  nvg_node *in[2];
  for (int i = 0; i < 2; i++)
    if (!(in[i] = nvg_xreshape(c, state[i], 3, shape))) return 0;
  nvg_node *r = nvg_keep(c, nvg_node_new(NVG_OP_LSE, nvg_aval_get(in[0]->aval->dtype, 3, out), in, 2, attr, 3));
  for (int64_t i = 0; i < 2; i++)
    state[i] = r ? nvg_keep(c, nvg_node_new(NVG_OP_PICK, nvg_aval_ref(r->aval), &r, 1, &i, 1)) : NULL;
  return state[1] != NULL;
}

/* ---- variance */
/* Computes the sum of squared deviations from the mean with kept dimensions: the sum of squared deviations from
   `centre`, minus a correction. The closer `centre` is to the mean, the less cancels. Rounding could make the result
   negative, so it is clamped to 0. */
static nvg_node *squares_about(nvg_call *c, nvg_node *x, nvg_node *centre, uint32_t axes) {
  if (!x || !centre) return NULL;
  nvg_node *d = nvg_x2(c, NVG_OP_SUBTRACT, x, centre), *sum = nvg_xreduce(c, NVG_OP_SUM, d, axes, 1);
  nvg_node *squares = nvg_xreduce(c, NVG_OP_SUM, nvg_x2(c, NVG_OP_MULTIPLY, d, d), axes, 1);
  nvg_node *off = nvg_x2(c, NVG_OP_MULTIPLY, sum, over_count(c, sum, (double)nvg_count_over(x, axes)));
  return nvg_x2(c, NVG_OP_MAXIMUM, nvg_x2(c, NVG_OP_SUBTRACT, squares, off), nvg_xfloat(c, 0));
}

static nvg_node *first_of(nvg_call *c, nvg_node *x, uint32_t axes) {
  for (int d = 0; x && d < x->aval->rank; d++)
    if (axes >> d & 1) x = nvg_xrange(c, x, d, 0, 1, 1);
  return x;
}

/* Chooses the algorithm. Two passes over the data if a block can hold what it reads, and in float64; else one pass with
   sums in float64, relative to the first element: its squared distance from the mean is at most n times the variance,
   so the 53-bit sums lose at most log2 n bits. */
static nvg_node *squared_deviations(nvg_call *c, nvg_node *x, uint32_t axes) {
  level l[NVM_MAX_RANK];
  int n = split_levels(x->aval, axes, l), one = nvg_count_over(x, axes) > ONE_PASS;
  for (int k = 0; k < n; k++) one |= l[k].column;
  if (!one || x->aval->dtype != NVM_F32 || !x->aval->size) return squares_about(c, x, mean_of(c, x, axes), axes);
  x = nvg_xcast(c, x, NVM_F64, NVG_INNER);
  return squares_about(c, x, first_of(c, x, axes), axes);
}

static nvg_node *expand_variance(nvg_call *c, int root) {
  stat s;
  double less;
  if (open_stat(c, &s, 0) || nvg_attr_float(c, "correction", 0, &less)) return NULL;
  double n = (double)nvg_count_over(s.x, s.axes) - less;
  nvg_node *v = over_count(c, squared_deviations(c, s.x, s.axes), n > 0 ? n : 0);
  return close_stat(c, &s, root ? nvg_x1(c, NVG_OP_SQRT, v) : v);
}
nvg_node *nvg_make_VAR(nvg_call *c) { return expand_variance(c, 0); }
nvg_node *nvg_make_STD(nvg_call *c) { return expand_variance(c, 1); }

/* ---- exponentials */
static nvg_node *finite_or_zero(nvg_call *c, nvg_node *m) {
  return nvg_x3(c, NVG_OP_WHERE, nvg_x1(c, NVG_OP_ISFINITE, m), m, nvg_xfloat(c, 0));
}

/* logsumexp of long rows in one pass: each chunk is relative to its own maximum, and chunks are rescaled when the tree
   merges them. */
static int chunked_lse(nvg_call *c, nvg_node *x, const level *l, int n, nvg_node **state) {
  int64_t shape[NVM_MAX_RANK];
  tiling t = tile_level(l, (nvg_red_order){ nvg_red_order_of(l->column).chunk, 1 });
  nvg_node *v = tile_input(c, x, l, &t, -INFINITY);
  state[0] = nvg_xreduce(c, NVG_OP_MAX, v, 1u << 2, 1);
  nvg_node *e = nvg_x1(c, NVG_OP_EXP, nvg_x2(c, NVG_OP_SUBTRACT, v, finite_or_zero(c, state[0])));
  state[1] = nvg_xreduce(c, NVG_OP_SUM, e, 1u << 2, 1);
  for (int k = 0; k < n && state[1]; k++) {
    int64_t three[3] = { l[k].before, k ? l[k].n : t.chunks, l[k].inside };
    if (!merge_states(c, state, three, !k)) return 0;
  }
  uint32_t axes = 0;
  for (int k = 0; k < n; k++) axes |= l[k].axes;
  level_shape(x->aval, axes, shape);
  for (int i = 0; i < 2; i++) state[i] = nvg_xreshape(c, state[i], x->aval->rank, shape);
  return state[0] && state[1];
}

nvg_node *nvg_make_LOGSUMEXP(nvg_call *c) {
  stat s;
  if (open_stat(c, &s, 0)) return NULL;
  if (!nvg_count_over(s.x, s.axes)) return nvg_no_elements(c, s.x);
  level l[NVM_MAX_RANK];
  int n = split_levels(s.x->aval, s.axes, l);
  nvg_node *state[2];
  if (nvg_count_over(s.x, s.axes) > ONE_PASS && s.x->aval->size) {
    if (!chunked_lse(c, s.x, l, n, state)) return NULL;
  } else {
    state[0] = nvg_xreduce(c, NVG_OP_MAX, s.x, s.axes, 1);
    nvg_node *d = nvg_x2(c, NVG_OP_SUBTRACT, s.x, finite_or_zero(c, state[0]));
    state[1] = nvg_xreduce(c, NVG_OP_SUM, nvg_x1(c, NVG_OP_EXP, d), s.axes, 1);
  }
  return close_stat(c, &s, nvg_x2(c, NVG_OP_ADD, nvg_x1(c, NVG_OP_LOG, state[1]), finite_or_zero(c, state[0])));
}

/* Replaces inf by the greatest finite number: smaller elements minus it stay finite, and inf minus it is inf. */
static nvg_node *below_infinity(nvg_call *c, nvg_node *m) {
  return m ? nvg_x2(c, NVG_OP_MINIMUM, m, nvg_xfloat(c, m->aval->dtype == NVM_F64 ? DBL_MAX : (double)FLT_MAX)) : NULL;
}

/* Computes x - logsumexp(x), or e to that. Next to an infinite element the sum is infinite, and the others give -inf
   and 0. */
static nvg_node *expand_softmax(nvg_call *c, int logarithm) {
  stat s;
  if (open_stat(c, &s, 1)) return NULL;
  s.keep = 1;
  if (!s.x->aval->size) return close_stat(c, &s, s.x);
  nvg_node *m = below_infinity(c, nvg_xreduce(c, NVG_OP_MAX, s.x, s.axes, 1)), *d = nvg_x2(c, NVG_OP_SUBTRACT, s.x, m),
           *e = nvg_x1(c, NVG_OP_EXP, d);
  nvg_node *sum = nvg_xreduce(c, NVG_OP_SUM, e, s.axes, 1);
  if (logarithm) return close_stat(c, &s, nvg_x2(c, NVG_OP_SUBTRACT, d, nvg_x1(c, NVG_OP_LOG, sum)));
  return close_stat(c, &s, nvg_x2(c, NVG_OP_DIVIDE, e, sum));
}
nvg_node *nvg_make_SOFTMAX(nvg_call *c) { return expand_softmax(c, 0); }
nvg_node *nvg_make_LOG_SOFTMAX(nvg_call *c) { return expand_softmax(c, 1); }

/* ---- norms */
static nvg_node *squares_of(nvg_call *c, nvg_node *x) { /* abs(x)^2, without a square root in between */
  if (!x) return NULL;
  if (nvg_parts(x->aval->dtype) == 1) return nvg_x2(c, NVG_OP_MULTIPLY, x, x);
  nvg_node *re = nvg_x1(c, NVG_OP_REAL, x), *im = nvg_x1(c, NVG_OP_IMAG, x);
  return nvg_x2(c, NVG_OP_ADD, nvg_x2(c, NVG_OP_MULTIPLY, re, re), nvg_x2(c, NVG_OP_MULTIPLY, im, im));
}

nvg_node *nvg_make_VECTOR_NORM(nvg_call *c) {
  stat s;
  double ord;
  if (open_stat(c, &s, 0) || nvg_attr_float(c, "ord", 2, &ord)) return NULL;
  nvg_node *r;
  if (ord == 2) r = nvg_x1(c, NVG_OP_SQRT, nvg_xreduce(c, NVG_OP_SUM, squares_of(c, s.x), s.axes, 1));
  else if (ord == 0) {
    nvg_node *some = nvg_xcast(c, nvg_x2(c, NVG_OP_NOT_EQUAL, s.x, nvg_xint(c, 0)), nvg_real_of(s.x->aval->dtype), 1);
    r = nvg_xreduce(c, NVG_OP_SUM, some, s.axes, 1);
  } else {
    nvg_node *a = nvg_x1(c, NVG_OP_ABS, s.x);
    int none = !nvg_count_over(s.x, s.axes); /* the greatest of no magnitudes is 0 */
    if (none && ord == -INFINITY) return nvg_no_elements(c, s.x);
    if (isinf(ord) && !none) r = nvg_xreduce(c, ord > 0 ? NVG_OP_MAX : NVG_OP_MIN, a, s.axes, 1);
    else if (ord == 1 || ord == INFINITY) r = nvg_xreduce(c, NVG_OP_SUM, a, s.axes, 1);
    else {
      r = nvg_xreduce(c, NVG_OP_SUM, nvg_x2(c, NVG_OP_POW, a, nvg_xfloat(c, ord)), s.axes, 1);
      r = nvg_x2(c, NVG_OP_POW, r, nvg_xfloat(c, 1 / ord));
    }
  }
  s.out = nvg_real_of(s.out);
  return close_stat(c, &s, r);
}

nvg_node *nvg_make_COUNT_NONZERO(nvg_call *c) {
  int64_t keep;
  uint32_t axes;
  nvg_node *x = c->in[0];
  if (nvg_attr_int(c, "keepdims", 0, &keep) || nvg_attr_axes(c, "axis", x->aval->rank, &axes)) return NULL;
  x = nvg_xcast(c, nvg_xcast(c, nvg_typed(c), NVM_BOOL, 1), NVM_I64, 1);
  return nvg_xreduce(c, NVG_OP_SUM, x, axes, (int)keep);
}
