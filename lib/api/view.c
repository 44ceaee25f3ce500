/* Views: makes handles that show part of another. A view shows its base, which is no view, through a lens
   (graph/lens.c). Its node is derived only when it is used: until then the view does not hold the base's memory.
   Decides which operations return views; never how writes go through them. */
#include <string.h>
#include "api/part.h"
#include "base/mem.h"

/* ---- making views */
/* An operation, and a shape that its result is reshaped to (NULL: none). */
typedef struct how {
  nvg_op op;
  const nvm_attr *attr;
  int nattr;
  const int64_t *shape;
  int rank;
  const int *drop; /* of a slice: the dimensions that the reshape removes; NULL: none */
} how;

static nvg_node *reshape_node(nvg_node *x, int rank, const int64_t *shape) { /* takes x; NULL passes through */
  nvg_attr at = { .name = "shape", .kind = 'I', .is = shape, .n = rank };
  nvg_node *r = x ? nvg_apply(NVG_OP_RESHAPE, &x, 1, &at, 1, NVM_F64) : NULL;
  nvg_node_unref(x);
  return r;
}
static nvg_node *slice_node(const how *h, nvg_node *x) { /* NULL: an operation tells why not */
  nvg_node *r = nvg_slice(x, h->attr[0].is, h->attr[1].is, h->attr[2].is, h->drop);
  if (r && r != x) r->device = x->device;
  return r;
}
static nvg_node *shown_node(const how *h, nvg_node *x) {
  nvg_node *slice = h->op == NVG_OP_SLICE && h->shape && !x->weak ? slice_node(h, x) : NULL;
  if (slice) return slice;
  nvg_node *r = nvg_apply(h->op, &x, 1, h->attr, h->nattr, NVM_F64);
  return h->shape ? reshape_node(r, h->rank, h->shape) : r;
}
static nvg_lens *lens_of(const nvm_array *a, const how *h) {
  nvg_node *of = a->lens ? nvg_node_ref(a->lens->of) : nvg_leaf_new(nvg_aval_ref(a->node->aval), NULL);
  if (of && !a->lens) of->device = a->node->device;
  nvg_node *top = of ? shown_node(h, a->lens ? a->lens->top : of) : NULL;
  nvg_lens *l = top ? nvg_lens_new(a->lens, of, top) : NULL;
  nvg_node_unref(of);
  return l;
}
/* Makes a view of a, or of a's base if a is a view; takes l; NULL passes through. */
static nvm_array *view_by(nvm_array *a, nvg_lens *l) {
  nvm_array *r = l ? nva_array_new(a->ctx, nvg_node_ref(l->top)) : NULL;
  if (!r) return nvg_lens_free(l), NULL;
  r->lens = l;
  r->fixed = a->fixed;
  nva_link_view(r, a->base ? a->base : a);
  return r;
}
/* Is the array from outside the thread's trace? A trace may read it but not write to it, so what shows it there is no
   view. */
static int is_outside(const nvm_array *a) {
  const nvm_array *base = a->base ? a->base : a;
  return nva_tracing() && base->trace != nva_tracing();
}
static nvm_array *mark_outside(nvm_array *r) { /* NULL passes through */
  if (r) r->fixed = NVA_OUTSIDE;
  return r;
}
static nvm_array *make_view(nvm_array *a, const how *h) {
  if (nva_check_kept(a)) return NULL;
  if (!is_outside(a)) return view_by(a, lens_of(a, h));
  nvg_node *n = nva_node(a);
  return n ? mark_outside(nva_array_new(a->ctx, shown_node(h, n))) : NULL;
}
nvm_array *nvm_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                    const int *drop) {
  if (!a) return nva_null("view", "array"), NULL;
  if (rank && !(start && count && step)) return nva_missing("view", start ? count ? "step" : "count" : "start"), NULL;
  if (rank != nvm_rank(a))
    return nvb_fail(NVM_ERR_INDEX, "[view] %d indices for an array of %d dimensions", rank, nvm_rank(a)), NULL;
  int64_t shape[NVM_MAX_RANK];
  int n = 0;
  for (int d = 0; d < rank; d++)
    if (!drop || !drop[d]) shape[n++] = count[d];
  nvm_attr at[3] = { { .name = "start", .kind = 'I', .is = start, .n = rank },
                     { .name = "count", .kind = 'I', .is = count, .n = rank },
                     { .name = "step", .kind = 'I', .is = step, .n = rank } };
  return make_view(a, &(how){ NVG_OP_SLICE, at, 3, shape, n, drop });
}
nvm_array *nvm_view_as(nvm_array *a, int rank, const int64_t *shape) {
  if (!a) return nva_null("view_as", "array"), NULL;
  if (rank < 0 || rank > NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_INDEX, "[view_as] %d dimensions; at most %d are possible", rank, NVM_MAX_RANK), NULL;
  if (rank && !shape) return nva_missing("view_as", "shape"), NULL;
  nvm_attr at = { .name = "shape", .kind = 'I', .is = shape, .n = rank };
  return make_view(a, &(how){ .op = NVG_OP_RESHAPE, .attr = &at, .nattr = 1 });
}

/* ---- operations whose results are views */
/* Does the operation return a view: 0 no, NVA_OPEN a writable one, NVA_FIXED a read-only one. */
static int view_kind(int op) {
  switch (op) {
  case NVG_OP_RESHAPE: case NVG_OP_PERMUTE_DIMS: case NVG_OP_MATRIX_TRANSPOSE: case NVG_OP_MOVEAXIS:
  case NVG_OP_EXPAND_DIMS: case NVG_OP_SQUEEZE: case NVG_OP_SLICE: case NVG_OP_FLIP:
  case NVG_OP_REAL: case NVG_OP_IMAG: case NVG_OP_ASTYPE: return NVA_OPEN;
  case NVG_OP_BROADCAST_TO: case NVG_OP_DIAGONAL: return NVA_FIXED;
  default: return 0;
  }
}
/* The attribute `copy`: 1 always, 0 never, -1 if needed. */
static int copy_attribute(const nvm_attr *attr, int nattr) {
  while (nattr--)
    if (!strcmp(attr[nattr].name, "copy") && attr[nattr].kind != 'n') return attr[nattr].i != 0;
  return -1;
}
/* Can the result of the operation be a view? Errors of the call are left to the operation. */
static int may_show(nvm_ctx *ctx, const how *h, nvm_array *const *in, int nin) {
  if (nin != 1 || !in || !in[0] || in[0] == &nva_none || in[0]->ctx != ctx || in[0]->node->weak) return 0;
  if (!view_kind(h->op) || nva_check_call("view", ctx, in, nin, h->attr, h->nattr)) return 0;
  int copy = copy_attribute(h->attr, h->nattr);
  return copy != 1 && (h->op != NVG_OP_ASTYPE || !copy);
}
/* Is what the lens describes a view of a, rather than a copy? An astype is one if it keeps the dtype, a reshape if
   strides describe it. */
static int is_view(const nvg_lens *l, const nvm_array *a, const how *h) {
  if (h->op == NVG_OP_ASTYPE) return l->top->aval == a->node->aval;
  return l->strided || (l->length >= 0 && h->op != NVG_OP_RESHAPE);
}
nvm_array *nvm_apply_view(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  how h = { .op = (nvg_op)op, .attr = attr, .nattr = nattr };
  if (!may_show(ctx, &h, in, nin)) return nvm_apply(ctx, op, in, nin, attr, nattr);
  nvm_array *a = in[0];
  if (is_outside(a)) return mark_outside(nvm_apply(ctx, op, in, nin, attr, nattr));
  nvg_lens *l = nva_check_kept(a) ? NULL : lens_of(a, &h);
  if (!l) return NULL;
  int shown = is_view(l, a, &h), zeros = l->length < 0; /* zeros: the imaginary part of real numbers */
  nvm_array *r = shown ? view_by(a, l) : (nvg_lens_free(l), NULL);
  if (!shown && op == NVG_OP_RESHAPE && !copy_attribute(attr, nattr))
    return nvb_fail(NVM_ERR_VALUE, "[reshape] copy=False, but no strides describe the view in that shape"), NULL;
  if (!shown) r = nvm_apply(ctx, op, in, nin, attr, nattr);
  if (r && (shown ? view_kind(op) == NVA_FIXED : zeros && op == NVG_OP_IMAG)) r->fixed = NVA_FIXED;
  return r;
}

nvm_array *nvm_base(nvm_array *a) {
  if (!a) return nva_null("base", "array"), NULL;
  return a->base ? a->base : a;
}
int nvm_view_layout(int64_t *offset, int64_t *strides, const nvm_array *a) {
  nva_part p;
  if (!a || a == &nva_none) return nva_null("view_layout", "array");
  if (!offset || (!strides && nvm_rank(a))) return nva_missing("view_layout", offset ? "strides" : "offset");
  if (!nva_part_of(&p, a)) return nvb_fail(NVM_ERR_UNSUPPORTED, "[view_layout] no strides describe the view");
  *offset = p.offset;
  for (int d = 0; d < p.rank; d++) strides[d] = p.stride[d];
  return NVM_OK;
}
int nvm_is_packed(const nvm_array *a) { return !a || !a->lens || nvg_lens_packed(a->lens); }
