/* Builds the nodes of routines for matrices: converts and checks operands, and brings batches to one shape. Decides
   whether a solution has its factors as a value of their own, and whether one matrix with many right-hand sides is
   factorised once; never what is known of a matrix (structure.c). */
#include <string.h>
#include "graph/make.h"
#include "graph/matrices.h"

int nvg_open_matrices(nvg_call *c, nvg_node **x, nvg_node *const *in, int n) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int t = nvg_rule_in(o->name, o->rule, in, n, c->default_float);
  if (t < 0) return 0;
  if (nvg_is_narrow((nvm_dtype)t))
    return nvg_bad(c, NVM_ERR_TYPE, "has no routine for %s; convert the matrix to float32",
                   nvg_dtype_name((nvm_dtype)t)),
           0;
  for (int i = 0; i < n; i++)
    if (!(x[i] = nvg_xcast(c, in[i], (nvm_dtype)t, 1))) return 0;
  return 1;
}

int nvg_check_matrix(nvg_call *c, const nvg_node *x, int square) {
  char text[NVG_SHAPE_TEXT];
  int rank = x->aval->rank;
  if (rank >= 2 && (!square || nvg_extent(x, 1) == nvg_extent(x, 2))) return 1;
  nvg_bad(c, NVM_ERR_VALUE, "needs %smatrices, not an array of shape %s", rank >= 2 ? "square " : "",
          nvg_shape_text(text, rank, x->aval->shape));
  return 0;
}

nvg_node *nvg_xroutine(nvg_call *c, nvg_op op, nvg_node *const *in, int nin, nvg_result r, int64_t attr, int64_t more) {
  int64_t shape[NVM_MAX_RANK], attrs[3] = { attr, more, c->op };
  for (int i = 0; i < nin; i++)
    if (!in[i]) return NULL;
  memcpy(shape, in[0]->aval->shape, sizeof *shape * (size_t)r.nbatch);
  memcpy(shape + r.nbatch, r.tail, sizeof *shape * (size_t)r.rank);
  return nvg_keep(c, nvg_node_new(op, nvg_aval_get(r.dtype, r.nbatch + r.rank, shape), in, nin, attrs, 3));
}

nvg_node *nvg_xfactors(nvg_call *c, nvg_node *x, nvg_structure s) {
  if (!x) return NULL;
  int64_t m = nvg_extent(x, 2), n = nvg_extent(x, 1), k = m < n ? m : n;
  nvg_result r = { x->aval->dtype, x->aval->rank - 2, 1, { m * n + k + NVG_FACTORS_TAIL + (s == NVG_PLAIN ? m : 0) } };
  return nvg_xroutine(c, NVG_OP_FACTORS, &x, 1, r, s, 0);
}

static nvg_result like_matrix(const nvg_node *x) {
  return (nvg_result){ x->aval->dtype, x->aval->rank - 2, 2, { nvg_extent(x, 2), nvg_extent(x, 1) } };
}

nvg_node *nvg_xinverse(nvg_call *c, nvg_node *x) {
  if (!x) return NULL;
  if (nvg_extent(x, 1) <= NVG_SMALL_MATRIX)
    return nvg_xroutine(c, NVG_OP_SOLVED, &x, 1, like_matrix(x), NVG_UNKNOWN, 0);
  nvg_node *f = nvg_xfactors(c, x, NVG_UNKNOWN);
  return nvg_xroutine(c, NVG_OP_SUBSTITUTED, &f, 1, like_matrix(x), 0, 0);
}

/* ---- batches */
typedef struct batches { int n; int64_t shape[NVM_MAX_RANK]; } batches;

/* Broadcasts the batches of a, whose last `tail` dimensions are none, and of the matrices b. Returns 0 with a message
   if they do not. */
static int join_batches(nvg_call *c, batches *to, const nvg_node *a, int tail, const nvg_node *b) {
  const int na = a->aval->rank - tail, nb = b->aval->rank - 2;
  to->n = na > nb ? na : nb;
  for (int d = 0; d < to->n; d++) {
    int da = d - (to->n - na), db = d - (to->n - nb);
    int64_t ea = da < 0 ? 1 : a->aval->shape[da], eb = db < 0 ? 1 : b->aval->shape[db];
    char ta[NVG_SHAPE_TEXT], tb[NVG_SHAPE_TEXT];
    if (ea != eb && ea != 1 && eb != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "batches of shapes %s and %s do not broadcast",
                     nvg_shape_text(ta, na, a->aval->shape), nvg_shape_text(tb, nb, b->aval->shape)),
             0;
    to->shape[d] = ea == 1 ? eb : ea;
  }
  return 1;
}

static nvg_node *as_batches(nvg_call *c, nvg_node *x, int tail, const batches *b) {
  int64_t shape[NVM_MAX_RANK];
  memcpy(shape, b->shape, sizeof *shape * (size_t)b->n);
  memcpy(shape + b->n, x->aval->shape + x->aval->rank - tail, sizeof *shape * (size_t)tail);
  return nvg_xexpand(c, x, b->n + tail, shape);
}

static int64_t count_matrices(const nvg_node *x, int tail) { return nvg_size_of(x->aval->rank - tail, x->aval->shape); }

/* ---- one matrix and many right-hand sides: these become the columns of one */
static void turn_axes(int64_t *axes, int rank, int back) { /* (batch, n, k) to (n, batch, k), and back */
  for (int d = 0; d < rank - 2; d++) axes[back ? d : d + 1] = back ? d + 1 : d;
  axes[back ? rank - 2 : 0] = back ? 0 : rank - 2;
  axes[rank - 1] = rank - 1;
}

static nvg_node *as_columns(nvg_call *c, nvg_node *b) {
  int64_t axes[NVM_MAX_RANK], n = nvg_extent(b, 2), shape[2] = { n, count_matrices(b, 2) * nvg_extent(b, 1) };
  turn_axes(axes, b->aval->rank, 0);
  return nvg_xreshape(c, nvg_xpermute(c, b, axes), 2, shape);
}

static nvg_node *from_columns(nvg_call *c, nvg_node *x, const nvg_node *b) {
  int64_t axes[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  int rank = b->aval->rank;
  turn_axes(axes, rank, 0);
  for (int d = 0; d < rank; d++) shape[d] = b->aval->shape[axes[d]];
  turn_axes(axes, rank, 1);
  return nvg_xpermute(c, nvg_xreshape(c, x, rank, shape), axes);
}

/* ---- solutions */
static nvg_node *substitute(nvg_call *c, nvg_node *a, nvg_node *b, int triangle) {
  nvg_node *in[2] = { a, b };
  if (!a || !b) return NULL;
  nvg_op op = triangle < 0 ? NVG_OP_SUBSTITUTED : NVG_OP_TRIANGULAR;
  return nvg_xroutine(c, op, in, 2, like_matrix(b), triangle < 0 ? triangle == NVG_PLAIN_FACTORS : triangle, 0);
}

nvg_node *nvg_xsubstitute(nvg_call *c, nvg_node *a, nvg_node *b, int triangle) {
  int tail = triangle < 0 ? 1 : 2;
  batches all;
  if (!a || !b || !join_batches(c, &all, a, tail, b)) return NULL;
  if (count_matrices(a, tail) != 1 || b->aval->rank == 2 || b->aval->rank - 2 < all.n)
    return substitute(c, as_batches(c, a, tail, &all), as_batches(c, b, 2, &all), triangle);
  nvg_node *one = nvg_xreshape(c, a, tail, a->aval->shape + a->aval->rank - tail);
  return from_columns(c, substitute(c, one, as_columns(c, b), triangle), b);
}

nvg_node *nvg_xsolve(nvg_call *c, nvg_node *a, nvg_node *b) {
  batches all;
  if (!a || !b || !join_batches(c, &all, a, 2, b)) return NULL;
  int small = nvg_extent(a, 1) <= NVG_SMALL_MATRIX && nvg_extent(b, 1) <= NVG_SMALL_MATRIX;
  if (!small || count_matrices(a, 2) != nvg_size_of(all.n, all.shape))
    return nvg_xsubstitute(c, nvg_xfactors(c, a, NVG_UNKNOWN), b, NVG_NO_TRIANGLE);
  nvg_node *in[2] = { as_batches(c, a, 2, &all), as_batches(c, b, 2, &all) };
  return in[1] ? nvg_xroutine(c, NVG_OP_SOLVED, in, 2, like_matrix(in[1]), NVG_UNKNOWN, 0) : NULL;
}

nvg_node *nvg_xpart(nvg_call *c, nvg_node *x, int64_t start, int64_t rows, int64_t cols) {
  if (!x) return NULL;
  int64_t shape[NVM_MAX_RANK + 1];
  int last = x->aval->rank - 1;
  memcpy(shape, x->aval->shape, sizeof *shape * (size_t)last);
  shape[last] = rows, shape[last + 1] = cols;
  x = nvg_xrange(c, x, last, start, cols < 0 ? rows : rows * cols, 1);
  return nvg_xreshape(c, x, last + (cols < 0 ? 1 : 2), shape);
}
