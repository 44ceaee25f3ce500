/* Matrix products: which dtype is multiplied and summed, what is worth a product, and the products made of others. From
   shapes and dtypes alone: a matrix times a matrix of floats is a CALL node, the rest a map and a reduction. */
#include <string.h>
#include "graph/infer.h"

enum { COLUMN = 16 };

/* ---- dtypes: what operands become, what is summed, what results */
typedef struct kind { nvm_dtype in, sum, out; int64_t precision; } kind;

/* `dtype` converts the operands, but for 16-bit ones whose products are exact in float32. */
static int open_product(nvg_call *c, nvg_node *const *in, int n, kind *k) {
  const nvg_op_info *o = &nvg_ops[c->op];
  int t = nvg_rule_in(o->name, o->rule, in, n, c->default_float), to;
  if (t < 0 || nvg_attr_dtype(c, "dtype", t, &to) || nvg_attr_int(c, "precision", 0, &k->precision)) return 0;
  nvg_class from = nvg_class_of((nvm_dtype)t), cls = nvg_class_of((nvm_dtype)to);
  if (to == NVM_BOOL || (from >= NVG_FLOAT && cls < from))
    return nvg_bad(c, NVM_ERR_TYPE, "the product of %s does not convert to %s", nvg_dtype_name((nvm_dtype)t),
                   nvg_dtype_name((nvm_dtype)to)), 0;
  if (k->precision < 0 || k->precision >= NVM_NPRECISIONS)
    return nvg_bad(c, NVM_ERR_VALUE, "there is no precision %lld", (long long)k->precision), 0;
  k->out = (nvm_dtype)to;
  k->in = nvg_is_half((nvm_dtype)t) && to == NVM_F32 ? (nvm_dtype)t : k->out;
  k->sum = nvg_compute_of(k->in);
  if (nvg_real_of(k->sum) != NVM_F32 || nvg_is_half(k->in)) k->precision = NVM_PRECISION_IEEE;
  return 1;
}

static nvg_node *close_product(nvg_call *c, nvg_node *r, const kind *k) {
  return nvg_is_half(k->out) ? nvg_xcast(c, r, k->out, NVG_RESULT) : r;
}

/* ---- (batch..., m, k) times (batch..., k, n); batches broadcast */
static nvg_node *with_new(nvg_call *c, nvg_node *x, int at) { /* a dimension of extent 1 before dimension `at` */
  int64_t shape[NVM_MAX_RANK];
  int rank = x ? x->aval->rank : 0;
  for (int d = 0, e = 0; d <= rank && x; d++) shape[d] = d == at ? 1 : x->aval->shape[e++];
  return x ? nvg_xreshape(c, x, rank + 1, shape) : NULL;
}

static nvg_node *swapped(nvg_call *c, nvg_node *x) {
  int64_t axes[NVM_MAX_RANK];
  int r = x->aval->rank;
  for (int d = 0; d < r; d++) axes[d] = d;
  axes[r - 1] = r - 2, axes[r - 2] = r - 1;
  return nvg_xpermute(c, x, axes);
}

/* A product reads rounded numbers: 16-bit operands are rounded before they are repeated. */
static nvg_node *factor(nvg_call *c, nvg_node *x, nvm_dtype t) {
  if (!nvg_is_half(t)) return nvg_xcast(c, x, t, 1);
  nvg_node *r = nvg_node_new(NVG_OP_CAST, nvg_aval_as(x->aval, t), &x, 1, NULL, 0);
  if (r) r->flags = NVG_RESULT;
  return nvg_keep(c, r);
}

/* Both of full rank with one batch: views. */
static nvg_node *product(nvg_call *c, nvg_node *a, nvg_node *b, const kind *k) {
  nvg_node *x[2] = { factor(c, a, k->in), factor(c, b, k->in) };
  int64_t shape[NVM_MAX_RANK], attr[2] = { k->sum, k->precision };
  int ra = a->aval->rank, rb = b->aval->rank, rank = ra > rb ? ra : rb;
  for (int d = 0; d < rank - 2; d++) {
    int64_t p = d < rank - ra ? 1 : a->aval->shape[d - (rank - ra)], q = d < rank - rb ? 1 : b->aval->shape[d - (rank - rb)];
    shape[d] = p == 1 ? q : p;
  }
  for (int i = 0; i < 2; i++) {
    const nvg_aval *v = i ? b->aval : a->aval;
    memcpy(shape + rank - 2, v->shape + v->rank - 2, 2 * sizeof *shape);
    x[i] = nvg_xexpand(c, x[i], rank, shape);
  }
  shape[rank - 2] = a->aval->shape[ra - 2];
  return nvg_keep(c, nvg_node_new(NVG_OP_PRODUCT, nvg_aval_get(k->sum, rank, shape), x, 2, attr, 2));
}

/* (..., m, k, n) summed over k reads rows of b; where those are short, (..., m, n, k) rows of both. */
static nvg_node *summed(nvg_call *c, nvg_node *a, nvg_node *b, const kind *k) {
  int wide = b->aval->shape[b->aval->rank - 1] >= COLUMN;
  a = nvg_xcast(c, a, k->sum, 1);
  b = nvg_xcast(c, b, k->sum, 1);
  a = a ? with_new(c, a, a->aval->rank - !wide) : NULL;
  b = b && !wide ? swapped(c, b) : b;
  b = b ? with_new(c, b, b->aval->rank - 2) : NULL;
  nvg_node *p = nvg_x2(c, NVG_OP_MULTIPLY, a, b);
  return p ? nvg_xreduce(c, NVG_OP_SUM, p, 1u << (p->aval->rank - 1 - wide), 0) : NULL;
}

static nvg_node *multiply(nvg_call *c, nvg_node *a, nvg_node *b, const kind *k) {
  const int64_t *p = a->aval->shape + a->aval->rank, *q = b->aval->shape + b->aval->rank;
  int worth = nvg_class_of(k->sum) >= NVG_FLOAT && p[-2] > 1 && q[-1] > 1 && p[-1];
  return close_product(c, worth ? product(c, a, b, k) : summed(c, a, b, k), k);
}

nvg_node *nvg_make_MATMUL(nvg_call *c) {
  kind k;
  nvg_node *x[2] = { c->in[0], c->in[1] };
  int ra = x[0]->aval->rank, rb = x[1]->aval->rank;
  if (!open_product(c, c->in, 2, &k)) return NULL;
  char sa[NVG_SHAPE_TEXT], sb[NVG_SHAPE_TEXT];
  nvg_shape_text(sa, ra, x[0]->aval->shape);
  nvg_shape_text(sb, rb, x[1]->aval->shape);
  const char *ta = nvg_dtype_name(x[0]->aval->dtype), *tb = nvg_dtype_name(x[1]->aval->dtype);
  if (!ra || !rb)
    return nvg_bad(c, NVM_ERR_VALUE, "operands need at least one dimension: %s %s @ %s %s", ta, sa, tb, sb);
  if (ra >= NVM_MAX_RANK || rb >= NVM_MAX_RANK)
    return nvg_bad(c, NVM_ERR_VALUE, "at most %d dimensions", NVM_MAX_RANK - 1);
  if (ra == 1) x[0] = with_new(c, x[0], 0);
  if (rb == 1) x[1] = with_new(c, x[1], 1);
  if (!x[0] || !x[1]) return NULL;
  const nvg_aval *a = x[0]->aval, *b = x[1]->aval;
  if (a->shape[a->rank - 1] != b->shape[b->rank - 2])
    return nvg_bad(c, NVM_ERR_VALUE, "inner dimensions differ: %s @ %s", sa, sb);
  for (int d = 3; d <= a->rank && d <= b->rank; d++)
    if (a->shape[a->rank - d] != b->shape[b->rank - d] && a->shape[a->rank - d] != 1 && b->shape[b->rank - d] != 1)
      return nvg_bad(c, NVM_ERR_VALUE, "batches do not broadcast: %s @ %s", sa, sb);
  nvg_node *r = multiply(c, x[0], x[1], &k);
  int rank = r ? r->aval->rank : 0;
  uint32_t drop = r ? (ra == 1 ? 1u << (rank - 2) : 0) | (rb == 1 ? 1u << (rank - 1) : 0) : 0;
  return drop ? nvg_xdrop(c, r, drop) : r;
}

nvg_node *nvg_make_VECDOT(nvg_call *c) {
  kind k;
  nvg_node *x[2];
  int64_t axis;
  if (!open_product(c, c->in, 2, &k) || nvg_attr_int(c, "axis", -1, &axis)) return NULL;
  for (int i = 0; i < 2; i++)
    if (!(x[i] = nvg_xcast(c, c->in[i], k.sum, 1))) return NULL;
  int ra = x[0]->aval->rank, rb = x[1]->aval->rank, least = ra < rb ? ra : rb;
  if (axis >= least || axis < -least)
    return nvg_bad(c, NVM_ERR_INDEX, "axis %lld is out of range for %d dimensions", (long long)axis, least);
  if (axis >= 0 && ra != rb) return nvg_bad(c, NVM_ERR_INDEX, "a positive axis needs operands of as many dimensions");
  int64_t na = x[0]->aval->shape[axis < 0 ? ra + axis : axis], nb = x[1]->aval->shape[axis < 0 ? rb + axis : axis];
  if (na != nb) return nvg_bad(c, NVM_ERR_VALUE, "the extents %lld and %lld differ", (long long)na, (long long)nb);
  nvg_node *p = nvg_x2(c, NVG_OP_MULTIPLY, nvg_x1(c, NVG_OP_CONJ, x[0]), x[1]);
  if (!p) return NULL;
  return close_product(c, nvg_xreduce(c, NVG_OP_SUM, p, 1u << (axis < 0 ? p->aval->rank + axis : axis), 0), &k);
}
