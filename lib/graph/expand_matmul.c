/* Expands matrix products: decides which dtypes are multiplied and summed, and whether a product becomes a GEMM. From
   shapes, dtypes and permutations alone: if each side has dimensions of its own, it makes a CALL node over views, else
   a map and a reduction. */
#include <string.h>
#include "graph/contraction.h"

enum { TINY = 4 }; /* batched matrices with no extent above this are computed elementwise */

/* ---- dtypes */
int nvg_gemm_types_of(nvg_call *c, nvg_node *const *in, int n, nvg_gemm_types *f) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int t = nvg_rule_in(o->name, o->rule, in, n, c->default_float), to;
  if (t < 0 || nvg_attr_dtype(c, "dtype", t, &to) || nvg_attr_int(c, "precision", 0, &f->precision)) return 0;
  nvg_class from = nvg_class_of((nvm_dtype)t), cls = nvg_class_of((nvm_dtype)to);
  if (to == NVM_BOOL || (from >= NVG_FLOAT && cls < from))
    return nvg_bad(c, NVM_ERR_TYPE, "the product of %s does not convert to %s", nvg_dtype_name((nvm_dtype)t),
                   nvg_dtype_name((nvm_dtype)to)),
           0;
  if (f->precision < 0 || f->precision >= NVM_NPRECISIONS)
    return nvg_bad(c, NVM_ERR_VALUE, "there is no precision %lld", (long long)f->precision), 0;
  f->out = (nvm_dtype)to;
  int narrow = from < NVG_FLOAT ? nvg_embeds((nvm_dtype)t, f->out) && cls < NVG_FLOAT
                                : nvg_is_narrow((nvm_dtype)t) && to == NVM_F32;
  f->in = narrow ? (nvm_dtype)t : f->out;
  if (nvg_is_f8(f->in)) f->in = NVM_F16; /* float16 holds every 8-bit float */
  f->sum = cls < NVG_FLOAT ? f->out : nvg_compute_of(f->in);
  if (nvg_real_of(f->sum) != NVM_F32 || nvg_is_narrow(f->in)) f->precision = NVM_PRECISION_IEEE;
  return 1;
}

static nvg_node *round_result(nvg_call *c, nvg_node *r, const nvg_gemm_types *f) {
  return nvg_is_narrow(f->out) ? nvg_xcast(c, r, f->out, NVG_RESULT) : r;
}

/* ---- terms */
static int find_label(const nvg_term *t, int label) {
  int d = 0;
  while (t->at[d] != label) d++;
  return d;
}

static int64_t extent_of(const nvg_term *t, int label) {
  return t->set >> label & 1 ? t->x->aval->shape[find_label(t, label)] : 1;
}

/* Returns the dimension of x's operand that a pending permutation moved to d. */
static int position_of(nvg_node *x, int d) {
  return x->op == NVG_OP_PERMUTE_DIMS && !atomic_load(&x->value) ? (int)x->attr[d] : d;
}

/* Replaces dimensions p < q by their diagonal, which becomes the last dimension. */
static nvg_node *take_diagonal(nvg_call *c, nvg_node *x, int p, int q) {
  int64_t axes[NVM_MAX_RANK];
  int k = 0;
  for (int d = 0; d < x->aval->rank; d++)
    if (d != p && d != q) axes[k++] = d;
  axes[k] = p, axes[k + 1] = q;
  return nvg_xdiagonal(c, nvg_xpermute(c, x, axes), 0);
}

int nvg_term_make(nvg_call *c, nvg_term *t, nvg_node *x, const uint8_t *label, const nvg_gemm_types *f) {
  /* the permutation is read from this node; its operands must not be, since another thread may evaluate it and drop
     them */
  nvg_node *given = x;
  /* an 8-bit operand is rounded to 8 bits before it becomes float16 */
  if (!(x = nvg_xcast(c, x, f->in, nvg_is_f8(x->aval->dtype) ? NVG_RESULT : NVG_INNER))) return 0;
  int n = x->aval->rank, position[NVM_MAX_RANK];
  uint8_t at[NVM_MAX_RANK];
  uint32_t ones = 0;
  memcpy(at, label, (size_t)n);
  for (int d = 0; d < n; d++) position[d] = position_of(given, d);
  for (int p = 0; p < n; p++)
    for (int q = p + 1; q < n; q++)
      if (at[p] == at[q]) {
        if (!(x = take_diagonal(c, x, p, q))) return 0;
        uint8_t twice = at[p];
        memmove(at + q, at + q + 1, (size_t)(n - q - 1));
        memmove(at + p, at + p + 1, (size_t)(n - p - 2));
        at[--n - 1] = twice;
        for (int d = 0; d < n; d++) position[d] = d;
        p = -1; /* dimensions have moved: start again */
        break;
      }
  *t = (nvg_term){ .set = 0 };
  int kept = 0;
  for (int d = 0; d < n; d++) {
    if (x->aval->shape[d] == 1) {
      ones |= 1u << d;
      continue;
    }
    int before = 0;
    for (int e = 0; e < n; e++) before += position[e] < position[d] && x->aval->shape[e] != 1;
    t->at[kept] = at[d], t->position[kept++] = (uint8_t)before, t->set |= 1ull << at[d];
  }
  return (t->x = ones ? nvg_xdrop(c, x, ones) : x) != NULL;
}

/* Makes a term of a new row-major array. */
static int make_term(nvg_term *t, nvg_node *x, const uint8_t *at) {
  *t = (nvg_term){ .x = x };
  for (int d = 0; x && d < x->aval->rank; d++) t->at[d] = at[d], t->position[d] = (uint8_t)d, t->set |= 1ull << at[d];
  return x != NULL;
}

int nvg_term_sum(nvg_call *c, nvg_term *t, uint64_t keep, const nvg_gemm_types *f) {
  uint8_t at[NVM_MAX_RANK];
  uint32_t axes = 0;
  if (!(t->set & ~keep)) return 1;
  for (int d = 0, n = 0; d < t->x->aval->rank; d++)
    if (keep >> t->at[d] & 1) at[n++] = t->at[d];
    else axes |= 1u << d;
  return make_term(t, round_result(c, nvg_xreduce(c, NVG_OP_SUM, nvg_xcast(c, t->x, f->sum, 1), axes, 0), f), at);
}

nvg_node *nvg_term_as(nvg_call *c, const nvg_term *t, const uint8_t *label, int n) {
  int64_t axes[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  for (int i = 0, k = 0; i < n; i++) {
    shape[i] = extent_of(t, label[i]);
    if (t->set >> label[i] & 1) axes[k++] = find_label(t, label[i]);
  }
  return nvg_xreshape(c, nvg_xpermute(c, t->x, axes), n, shape);
}

/* ---- (batch..., m, k) times (batch..., k, n); batches broadcast */
/* inserts a dimension of extent 1 before dimension `at` */
static nvg_node *with_new(nvg_call *c, nvg_node *x, int at) {
  int64_t shape[NVM_MAX_RANK];
  int rank = x ? x->aval->rank : 0;
  for (int d = 0, e = 0; d <= rank && x; d++) shape[d] = d == at ? 1 : x->aval->shape[e++];
  return x ? nvg_xreshape(c, x, rank + 1, shape) : NULL;
}

/* Converts an operand of a GEMM to dtype t. A GEMM reads rounded numbers: 16-bit operands are rounded before they are
   broadcast. */
static nvg_node *convert_operand(nvg_call *c, nvg_node *x, nvm_dtype t) {
  if (!nvg_is_narrow(t)) return nvg_xcast(c, x, t, 1);
  nvg_node *r = nvg_node_new(NVG_OP_CAST, nvg_aval_as(x->aval, t), &x, 1, NULL, 0);
  if (r) r->flags = NVG_RESULT;
  return nvg_keep(c, r);
}

static nvg_node *call_gemm(nvg_call *c, nvg_node *a, nvg_node *b, const nvg_gemm_types *f) {
  nvg_node *x[2] = { convert_operand(c, a, f->in), convert_operand(c, b, f->in) };
  int64_t shape[NVM_MAX_RANK], attr[2] = { f->sum, f->precision };
  int rank = a->aval->rank;
  for (int d = 0; d < rank - 2; d++) shape[d] = a->aval->shape[d] == 1 ? b->aval->shape[d] : a->aval->shape[d];
  for (int i = 0; i < 2; i++) {
    memcpy(shape + rank - 2, (i ? b : a)->aval->shape + rank - 2, 2 * sizeof *shape);
    x[i] = nvg_xexpand(c, x[i], rank, shape);
  }
  shape[rank - 2] = a->aval->shape[rank - 2];
  return nvg_keep(c, nvg_node_new(NVG_OP_GEMM, nvg_aval_get(f->sum, rank, shape), x, 2, attr, 2));
}

/* Computes the product as a map and a reduction. (..., m, k, n) summed over k reads rows of b; if those are short,
   (..., m, n, k) reads rows of both. */
static nvg_node *written_out(nvg_call *c, nvg_node *a, nvg_node *b, const nvg_gemm_types *f) {
  int wide = b->aval->shape[b->aval->rank - 1] >= NVG_COLUMN;
  a = nvg_xcast(c, a, f->sum, 1);
  b = nvg_xcast(c, b, f->sum, 1);
  a = a ? with_new(c, a, a->aval->rank - !wide) : NULL;
  b = b && !wide ? nvg_xtranspose(c, b) : b;
  b = b ? with_new(c, b, b->aval->rank - 2) : NULL;
  nvg_node *p = nvg_x2(c, NVG_OP_MULTIPLY, a, b);
  return p ? nvg_xreduce(c, NVG_OP_SUM, p, 1u << (p->aval->rank - 1 - wide), 0) : NULL;
}

/* ---- two terms */
/* A run of labels that are adjacent in the memory of each of these terms, and so can be one dimension of a matrix. */
typedef struct run { uint8_t at[NVM_MAX_RANK]; int n; int64_t size; } run;
typedef struct runs { run at[NVM_MAX_RANK]; int n; } runs;

static int is_next_to(const nvg_term *t, int before, int label) {
  return t->position[find_label(t, label)] == t->position[find_label(t, before)] + 1;
}

/* Groups the labels of `set` into runs, in the order of t's memory; with `other`, they are adjacent there too. */
static void find_runs(runs *r, const nvg_term *t, const nvg_term *other, uint64_t set) {
  int rank = t->x->aval->rank, last = -1;
  r->n = 0;
  for (int p = 0; p < rank; p++) {
    int d = 0;
    while (t->position[d] != p) d++;
    int label = t->at[d];
    if (!(set >> label & 1)) continue;
    int on = last >= 0 && is_next_to(t, last, label) && (!other || is_next_to(other, last, label));
    run *at = &r->at[on ? r->n - 1 : r->n++];
    if (!on) at->n = 0, at->size = 1;
    at->at[at->n++] = (uint8_t)label, at->size *= t->x->aval->shape[d];
    last = label;
  }
}

static void merge_runs(runs *r) { /* merges all runs into the first one, in order */
  run *to = &r->at[0];
  for (int i = 1; i < r->n; i++)
    for (int k = 0; k < r->at[i].n; k++) to->at[to->n++] = r->at[i].at[k];
  for (int i = 1; i < r->n; i++) to->size *= r->at[i].size;
  r->n = 1;
}

static run take_longest(runs *r) {
  int best = 0;
  for (int i = 1; i < r->n; i++)
    if (r->at[i].size > r->at[best].size) best = i;
  run taken = r->at[best];
  memmove(&r->at[best], &r->at[best + 1], sizeof *r->at * (size_t)(--r->n - best));
  return taken;
}

/* Reshapes t's array to one dimension per run, of extent 1 if t lacks the run's labels. */
static nvg_node *as_runs(nvg_call *c, const nvg_term *t, const run *const *r, int n) {
  uint8_t label[NVM_MAX_RANK];
  int64_t shape[NVM_MAX_RANK];
  int k = 0;
  for (int i = 0; i < n; i++) {
    int has = t->set >> r[i]->at[0] & 1;
    shape[i] = has ? r[i]->size : 1;
    for (int j = 0; has && j < r[i]->n; j++) label[k++] = r[i]->at[j];
  }
  return nvg_xreshape(c, nvg_term_as(c, t, label, k), n, shape);
}

nvm_dtype nvg_exact_in(nvm_dtype t, int64_t k) {
  if (nvg_class_of(t) >= NVG_FLOAT || nvg_size(t) > 2) return t;
  int bits = 8 * nvg_size(t) - (nvg_class_of(t) == NVG_SIGNED); /* no absolute value is greater than 2^bits */
  return k <= 1ll << 24 >> 2 * bits ? NVM_F32 : k <= 1ll << 53 >> 2 * bits ? NVM_F64 : t;
}

/* Chooses how k products are multiplied and summed. int8 is multiplied unconverted into int32, which wraps, unless the
   sum is wider and could exceed 32 bits; other narrow integers become floats if those are exact; the rest follows the
   request. */
static nvg_gemm_types gemm_types_for(const nvg_gemm_types *f, int64_t k) {
  enum { FITS = INT32_MAX >> 14 }; /* products of at most 2^14 whose sum fits into int32 */
  if (f->in == NVM_I8 && (nvg_size(f->sum) <= 4 || k <= FITS)) return (nvg_gemm_types){ .in = NVM_I8, .sum = NVM_I32 };
  nvm_dtype exact = nvg_exact_in(f->in, k);
  return exact == f->in ? *f : (nvg_gemm_types){ .in = exact, .sum = exact };
}

/* Contracts two terms that each have labels of their own and share summed ones. If the own labels of a side are not
   adjacent, the longest run of them becomes the matrix dimension, and the others become batches over which the other
   side is broadcast. */
static int contract_matrices(nvg_call *c, nvg_term *out, const nvg_term *a, const nvg_term *b, uint64_t summed,
                             const nvg_gemm_types *f) {
  static const char many[] = "an array of more than %d dimensions is needed in between";
  uint64_t both = a->set & b->set;
  runs batch, left, right, inner;
  find_runs(&batch, a, b, both & ~summed);
  find_runs(&left, a, NULL, a->set & ~both);
  find_runs(&right, b, NULL, b->set & ~both);
  /* if the orders of the summed labels differ, the smaller operand is copied */
  int by_a = a->x->aval->size >= b->x->aval->size;
  find_runs(&inner, by_a ? a : b, NULL, summed);
  merge_runs(&inner);
  run m = take_longest(&left), n = take_longest(&right);
  const run *dim[3 * NVM_MAX_RANK];
  int nb = 0;
  for (int i = 0; i < batch.n; i++) dim[nb++] = &batch.at[i];
  for (int i = 0; i < left.n; i++) dim[nb++] = &left.at[i];
  for (int i = 0; i < right.n; i++) dim[nb++] = &right.at[i];
  if (nb + 3 > NVM_MAX_RANK || __builtin_popcountll((a->set | b->set) & ~summed) > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, many, NVM_MAX_RANK), 0;
  dim[nb] = &m, dim[nb + 1] = &inner.at[0];
  nvg_node *x = as_runs(c, a, dim, nb + 2);
  dim[nb] = &inner.at[0], dim[nb + 1] = &n;
  nvg_node *y = as_runs(c, b, dim, nb + 2);
  dim[nb] = &m;
  if (!x || !y) return 0;
  int tiny = nb && m.size <= TINY && n.size <= TINY && inner.at[0].size <= TINY;
  nvg_gemm_types as = gemm_types_for(f, inner.at[0].size);
  int multiplied = nvg_class_of(as.in) >= NVG_FLOAT || as.in == NVM_I8;
  int worth = multiplied && !tiny && inner.at[0].size && x->aval->size && y->aval->size;
  nvg_node *r = worth ? call_gemm(c, x, y, &as) : written_out(c, x, y, f);
  if (worth && as.sum != f->sum) r = nvg_xcast(c, nvg_xcast(c, r, as.sum == NVM_F64 ? NVM_I64 : NVM_I32, 1), f->sum, 1);
  uint8_t label[NVM_MAX_RANK];
  int64_t shape[NVM_MAX_RANK];
  int k = 0;
  for (int i = 0; i < nb + 2; i++)
    for (int j = 0; j < dim[i]->n; j++, k++) {
      label[k] = dim[i]->at[j];
      shape[k] = extent_of(a->set >> label[k] & 1 ? a : b, label[k]);
    }
  return make_term(out, nvg_xreshape(c, round_result(c, r, f), k, shape), label);
}

/* Contracts terms of which one has all labels, except those that are broadcast along it. Elements are combined in the
   order of its memory, so that a matrix-vector product reads contiguous lines, whether the matrix is transposed or
   not. */
static int contract_vectors(nvg_call *c, nvg_term *out, const nvg_term *a, const nvg_term *b, uint64_t summed,
                            const nvg_gemm_types *f) {
  uint8_t at[2 * NVM_MAX_RANK];
  int n = a->x->aval->rank;
  for (int d = 0; d < n; d++) at[a->position[d]] = a->at[d];
  for (int d = 0; d < b->x->aval->rank; d++)
    if (!(a->set >> b->at[d] & 1)) at[n++] = b->at[d];
  if (n > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "an array of more than %d dimensions is needed in between", NVM_MAX_RANK), 0;
  nvm_dtype t = summed ? f->sum : f->out;
  nvg_node *x = nvg_xcast(c, nvg_term_as(c, a, at, n), t, 1), *y = nvg_xcast(c, nvg_term_as(c, b, at, n), t, 1);
  return make_term(out, nvg_x2(c, NVG_OP_MULTIPLY, x, y), at) && nvg_term_sum(c, out, ~summed, f);
}

/* Returns 1 if the term has an operand's dtype, that is, if it is not a sum in a wider one. */
static int is_factor(const nvg_term *t, const nvg_gemm_types *f) {
  nvm_dtype d = t->x->aval->dtype;
  return d == f->in || (nvg_is_narrow(f->in) && nvg_is_narrow(d));
}

int nvg_term_contract(nvg_call *c, nvg_term *out, const nvg_term *a, const nvg_term *b, uint64_t keep,
                      const nvg_gemm_types *f) {
  nvg_term x = *a, y = *b;
  nvg_gemm_types wide = *f;
  if (!nvg_term_sum(c, &x, keep | y.set, f) || !nvg_term_sum(c, &y, keep | x.set, f)) return 0;
  if (!is_factor(&x, f) || !is_factor(&y, f)) wide.in = wide.sum;
  uint64_t summed = x.set & y.set & ~keep;
  if (summed && (x.set & ~y.set) && (y.set & ~x.set)) return contract_matrices(c, out, &x, &y, summed, &wide);
  int second = (y.set & ~x.set) && !(x.set & ~y.set); /* the second term has all labels */
  return second ? contract_vectors(c, out, &y, &x, summed, &wide) : contract_vectors(c, out, &x, &y, summed, &wide);
}

/* ---- operations */
static const char *shape_of(char *out, const nvg_node *x) { return nvg_shape_text(out, x->aval->rank, x->aval->shape); }

/* Contracts two arrays with these labels; lc are the labels of the result. */
static nvg_node *product_of(nvg_call *c, nvg_node *const *in, const uint8_t *la, const uint8_t *lb, const uint8_t *lc,
                            int n, const nvg_gemm_types *f) {
  nvg_term a, b, r;
  uint64_t keep = 0;
  for (int i = 0; i < n; i++) keep |= 1ull << lc[i];
  if (!nvg_term_make(c, &a, in[0], la, f) || !nvg_term_make(c, &b, in[1], lb, f)) return NULL;
  return nvg_term_contract(c, &r, &a, &b, keep, f) ? nvg_term_as(c, &r, lc, n) : NULL;
}

nvg_node *nvg_matmul(nvg_call *c, nvg_node *const *in, const nvg_gemm_types *f) {
  enum { M, K, N, BATCH }; /* labels of batches follow, the last batch first */
  char sa[NVG_SHAPE_TEXT], sb[NVG_SHAPE_TEXT];
  const nvg_aval *a = in[0]->aval, *b = in[1]->aval;
  shape_of(sa, in[0]), shape_of(sb, in[1]);
  if (!a->rank || !b->rank)
    return nvg_bad(c, NVM_ERR_VALUE, "operands need at least one dimension: %s %s @ %s %s", nvg_dtype_name(a->dtype),
                   sa, nvg_dtype_name(b->dtype), sb);
  int row = a->rank == 1, column = b->rank == 1, na = a->rank - 2 + row, nb = b->rank - 2 + column;
  int n = na > nb ? na : nb;
  if (a->shape[a->rank - 1] != b->shape[b->rank - 2 + column])
    return nvg_bad(c, NVM_ERR_VALUE, "inner dimensions differ: %s @ %s", sa, sb);
  for (int d = 1; d <= na && d <= nb; d++)
    if (a->shape[na - d] != b->shape[nb - d] && a->shape[na - d] != 1 && b->shape[nb - d] != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "batches do not broadcast: %s @ %s", sa, sb);
  uint8_t la[NVM_MAX_RANK], lb[NVM_MAX_RANK], lc[NVM_MAX_RANK];
  for (int d = 0; d < na; d++) la[d] = (uint8_t)(BATCH + na - 1 - d);
  for (int d = 0; d < nb; d++) lb[d] = (uint8_t)(BATCH + nb - 1 - d);
  for (int d = 0; d < n; d++) lc[d] = (uint8_t)(BATCH + n - 1 - d);
  if (!row) la[na++] = M, lc[n++] = M;
  la[na] = lb[nb++] = K;
  if (!column) lb[nb] = N, lc[n++] = N;
  return product_of(c, in, la, lb, lc, n, f);
}

nvg_node *nvg_make_MATMUL(nvg_call *c) {
  nvg_gemm_types f;
  return nvg_gemm_types_of(c, c->in, 2, &f) ? nvg_matmul(c, c->in, &f) : NULL;
}

nvg_node *nvg_make_VECDOT(nvg_call *c) {
  nvg_gemm_types f;
  int64_t axis;
  if (!nvg_gemm_types_of(c, c->in, 2, &f) || nvg_attr_int(c, "axis", -1, &axis)) return NULL;
  const nvg_aval *a = c->in[0]->aval, *b = c->in[1]->aval;
  int least = a->rank < b->rank ? a->rank : b->rank, n = a->rank > b->rank ? a->rank : b->rank, rank;
  if (axis >= least || axis < -least)
    return nvg_bad(c, NVM_ERR_INDEX, "axis %lld is out of range for %d dimensions", (long long)axis, least);
  if (axis >= 0 && a->rank != b->rank)
    return nvg_bad(c, NVM_ERR_INDEX,
                   "axis %lld is another one in operands of %d and %d dimensions; count it from the end",
                   (long long)axis, a->rank, b->rank);
  if (axis >= 0) axis -= n; /* count the axis from the end in both operands */
  int64_t na = a->shape[a->rank + axis], nb = b->shape[b->rank + axis], shape[NVM_MAX_RANK];
  if (na != nb) return nvg_bad(c, NVM_ERR_VALUE, "the extents %lld and %lld differ", (long long)na, (long long)nb);
  if (nvg_broadcast("vecdot", c->in, 2, &rank, shape)) return NULL;
  uint8_t la[NVM_MAX_RANK], lb[NVM_MAX_RANK], lc[NVM_MAX_RANK];
  for (int d = 0; d < a->rank; d++) la[d] = (uint8_t)(n - a->rank + d);
  for (int d = 0; d < b->rank; d++) lb[d] = (uint8_t)(n - b->rank + d);
  for (int d = 0, k = 0; d < n; d++)
    if (d != n + axis) lc[k++] = (uint8_t)d;
  nvg_node *in[2] = { nvg_xcast(c, c->in[0], f.in, 1), c->in[1] };
  in[0] = nvg_x1(c, NVG_OP_CONJ, in[0]);
  return in[0] ? product_of(c, in, la, lb, lc, n - 1, &f) : NULL;
}

/* Reads `axes`: a number of dimensions (the last ones of x1 with the first ones of x2), or a list of dimensions of x1
   followed by as many of x2. */
static int read_axes(nvg_call *c, int64_t *left, int64_t *right, int *n) {
  int64_t axes[2 * NVM_MAX_RANK];
  const nvg_attr *given = nvg_attr_get(c, "axes");
  int ra = c->in[0]->aval->rank, rb = c->in[1]->aval->rank, count;
  if (nvg_attr_ints(c, "axes", 2 * NVM_MAX_RANK, axes, &count)) return 0;
  if (!given || given->kind == 'i') {
    int64_t k = given ? axes[0] : 2;
    if (k < 0 || k > ra || k > rb)
      return nvg_bad(c, NVM_ERR_VALUE, "%lld axes of operands with %d and %d dimensions", (long long)k, ra, rb), 0;
    *n = (int)k;
    for (int i = 0; i < k; i++) left[i] = ra - k + i, right[i] = i;
    return 1;
  }
  if (count % 2) return nvg_bad(c, NVM_ERR_VALUE, "axes must name as many dimensions of x1 as of x2"), 0;
  *n = count / 2;
  uint32_t seen[2] = { 0 };
  for (int i = 0; i < count; i++) {
    int side = i >= *n, rank = side ? rb : ra;
    int d;
    if (nvg_axis(c, axes[i], rank, &d)) return 0;
    if (seen[side] >> d & 1) return nvg_bad(c, NVM_ERR_VALUE, "axis %lld is given twice", (long long)axes[i]), 0;
    seen[side] |= 1u << d;
    (side ? right : left)[i % *n] = d;
  }
  return 1;
}

nvg_node *nvg_make_TENSORDOT(nvg_call *c) {
  nvg_gemm_types f;
  int64_t left[NVM_MAX_RANK], right[NVM_MAX_RANK];
  int k, n = 0;
  if (!nvg_gemm_types_of(c, c->in, 2, &f) || !read_axes(c, left, right, &k)) return NULL;
  const nvg_aval *a = c->in[0]->aval, *b = c->in[1]->aval;
  char sa[NVG_SHAPE_TEXT], sb[NVG_SHAPE_TEXT];
  if (a->rank + b->rank - 2 * k > NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "%d dimensions; at most %d are possible", a->rank + b->rank - 2 * k, NVM_MAX_RANK);
  uint8_t la[NVM_MAX_RANK], lb[NVM_MAX_RANK], lc[NVM_MAX_RANK];
  for (int d = 0; d < a->rank; d++) la[d] = (uint8_t)d;
  for (int d = 0; d < b->rank; d++) lb[d] = (uint8_t)(NVM_MAX_RANK + d);
  for (int i = 0; i < k; i++) {
    if (a->shape[left[i]] != b->shape[right[i]])
      return nvg_bad(c, NVM_ERR_VALUE, "contracted dimensions differ: %lld of %s and %lld of %s", (long long)left[i],
                     shape_of(sa, c->in[0]), (long long)right[i], shape_of(sb, c->in[1]));
    lb[right[i]] = la[left[i]];
  }
  uint64_t both = 0;
  for (int i = 0; i < k; i++) both |= 1ull << left[i];
  for (int d = 0; d < a->rank; d++)
    if (!(both >> d & 1)) lc[n++] = la[d];
  for (int d = 0; d < b->rank; d++)
    if (lb[d] >= NVM_MAX_RANK) lc[n++] = lb[d];
  return product_of(c, c->in, la, lb, lc, n, &f);
}
