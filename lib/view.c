/* Views and writes: which handle shows part of which other, and what becomes of both when one is written. A view shows
   its base, an array that is none, through a lens (graph/lens.c), and stands for another node when that was written. */
#include <string.h>
#include "base/mem.h"
#include "hallway.h"

/* ---- making views */
/* An operation, and a shape (NULL: as it is) in which its result is shown. */
typedef struct how { nvg_op op; const nvm_attr *attr; int nattr; const int64_t *shape; int rank; } how;

static nvg_node *reshape(nvg_node *x, int rank, const int64_t *shape) { /* takes x, NULL passes through */
  nvg_attr at = { .name = "shape", .kind = 'I', .is = shape, .n = rank };
  nvg_node *r = x ? nvg_apply(NVG_OP_RESHAPE, &x, 1, &at, 1, NVM_F64) : NULL;
  nvg_node_unref(x);
  return r;
}
static nvg_node *shown(const how *h, nvg_node *x) {
  nvg_node *r = nvg_apply(h->op, &x, 1, h->attr, h->nattr, NVM_F64);
  return h->shape ? reshape(r, h->rank, h->shape) : r;
}
static nvg_lens *lens_of(const nvm_array *a, const how *h) {
  nvg_node *of = a->lens ? nvg_node_ref(a->lens->of) : nvg_leaf_new(nvg_aval_ref(a->node->aval), NULL);
  nvg_node *top = of ? shown(h, a->lens ? a->lens->top : of) : NULL;
  nvg_lens *l = top ? nvg_lens_new(a->lens, of, top) : NULL;
  nvg_node_unref(of);
  return l;
}
/* r becomes a view of what a is, or shows; takes both r and l. */
static nvm_array *link(nvm_array *r, nvm_array *a, nvg_lens *l) {
  if (!r || !l) return nvm_array_unref(r), nvg_lens_free(l), NULL;
  r->lens = l;
  r->base = nvm_array_ref(a->base ? a->base : a);
  r->seen = a->base ? a->seen : a->version;
  r->fixed |= a->fixed;
  return r;
}
/* A trace reads arrays from outside of it, and keeps its hands off them: what shows them there is no view. */
static int is_outside(const nvm_array *a) {
  const nvm_array *base = a->base ? a->base : a;
  return nvh_tracing() && base->trace != nvh_tracing();
}
static nvm_array *view(nvm_array *a, const how *h) {
  nvg_node *n = a ? nvh_node(a) : NULL;
  nvm_array *r = n ? nvh_array_new(a->ctx, shown(h, n)) : NULL;
  if (!r || is_outside(a)) return r ? r->fixed = NVH_OUTSIDE, r : NULL;
  return link(r, a, lens_of(a, h));
}
nvm_array *nvm_view(nvm_array *a, int rank, const int64_t *start, const int64_t *count, const int64_t *step,
                    const int *drop) {
  if (!a) return nvh_null("view", "array"), NULL;
  if (rank && !(start && count && step)) return nvh_missing("view", start ? count ? "step" : "count" : "start"), NULL;
  if (rank != nvm_rank(a))
    return nvb_fail(NVM_ERR_INDEX, "[view] %d indices for an array of %d dimensions", rank, nvm_rank(a)), NULL;
  int64_t shape[NVM_MAX_RANK];
  int n = 0;
  for (int d = 0; d < rank; d++)
    if (!drop || !drop[d]) shape[n++] = count[d];
  nvm_attr at[3] = { { .name = "start", .kind = 'I', .is = start, .n = rank },
                     { .name = "count", .kind = 'I', .is = count, .n = rank },
                     { .name = "step", .kind = 'I', .is = step, .n = rank } };
  return view(a, &(how){ NVG_OP_SLICE, at, 3, shape, n });
}
nvm_array *nvm_view_as(nvm_array *a, int rank, const int64_t *shape) {
  if (!a) return nvh_null("view", "array"), NULL;
  if (rank < 0 || rank > NVM_MAX_RANK)
    return nvb_fail(NVM_ERR_INDEX, "[view] %d dimensions; at most %d are possible", rank, NVM_MAX_RANK), NULL;
  if (rank && !shape) return nvh_missing("view", "shape"), NULL;
  nvm_attr at = { .name = "shape", .kind = 'I', .is = shape, .n = rank };
  return view(a, &(how){ .op = NVG_OP_RESHAPE, .attr = &at, .nattr = 1 });
}

/* ---- operations whose results are views */
/* 0: none, NVH_OPEN, NVH_FIXED */
static int shows(int op) {
  switch (op) {
    case NVG_OP_RESHAPE: case NVG_OP_PERMUTE_DIMS: case NVG_OP_MATRIX_TRANSPOSE: case NVG_OP_MOVEAXIS:
    case NVG_OP_EXPAND_DIMS: case NVG_OP_SQUEEZE: case NVG_OP_SLICE: case NVG_OP_FLIP:
    case NVG_OP_REAL: case NVG_OP_IMAG: case NVG_OP_ASTYPE: return NVH_OPEN;
    case NVG_OP_BROADCAST_TO: case NVG_OP_DIAGONAL: return NVH_FIXED;
    default: return 0;
  }
}
/* What the attribute says: 1 always, 0 never, -1 as it has to be. */
static int copies(const nvm_attr *attr, int nattr) {
  while (nattr--)
    if (!strcmp(attr[nattr].name, "copy") && attr[nattr].kind != 'n') return attr[nattr].i != 0;
  return -1;
}
/* r, which the operation made of a, as a view if it can be one; takes r. */
static nvm_array *as_view(nvm_array *r, nvm_array *a, const how *h) {
  int copy = copies(h->attr, h->nattr), cast = h->op == NVG_OP_ASTYPE;
  if (a->node->weak || copy == 1 || (cast && (copy || r->node->aval != a->node->aval))) return r;
  r->fixed = shows(h->op) == NVH_FIXED ? NVH_FIXED : 0;
  if (is_outside(a)) return r->fixed = NVH_OUTSIDE, r;
  nvg_lens *l = lens_of(a, h);
  if (l && l->length < 0) return r->fixed = NVH_FIXED, nvg_lens_free(l), r; /* the imaginary part of real numbers */
  if (!l || l->strided || h->op != NVG_OP_RESHAPE) return link(r, a, l);
  nvg_lens_free(l);
  if (copy < 0) return r;
  nvb_fail(NVM_ERR_VALUE, "[reshape] copy=False, but no strides describe the view in that shape");
  return nvm_array_unref(r), NULL;
}
nvm_array *nvm_apply_view(nvm_ctx *ctx, int op, nvm_array *const *in, int nin, const nvm_attr *attr, int nattr) {
  nvm_array *r = nvm_apply(ctx, op, in, nin, attr, nattr);
  return r && shows(op) ? as_view(r, in[0], &(how){ .op = (nvg_op)op, .attr = attr, .nattr = nattr }) : r;
}

nvm_array *nvm_base(nvm_array *a) {
  if (!a) return nvh_null("base", "array"), NULL;
  return a->base ? a->base : a;
}
int nvm_is_packed(const nvm_array *a) { return !a || !a->lens || nvg_lens_packed(a->lens); }

/* ---- assignment */
static nvg_node *cast_like(nvg_node *v, nvg_node *like) {
  nvg_attr dt = { .name = "dtype", .kind = 'd', .i = like->aval->dtype };
  nvg_attr sh = { .name = "shape", .kind = 'I', .is = like->aval->shape, .n = like->aval->rank };
  nvg_node *c = nvg_apply(NVG_OP_ASTYPE, &v, 1, &dt, 1, NVM_F64);
  if (!c) return NULL;
  nvg_node *b = nvg_apply(NVG_OP_BROADCAST_TO, &c, 1, &sh, 1, NVM_F64);
  nvg_node_unref(c);
  return b;
}
int nvm_check_writable(const nvm_array *a) {
  if (!a || a == &nvh_none) return nvh_null("assign", "array");
  const nvm_array *base = a->base ? a->base : a;
  if (a->fixed == NVH_OUTSIDE || (nvh_tracing() && base->trace != nvh_tracing()))
    return nvb_fail(NVM_ERR_STATE, "[assign] a traced function may not write to an array from outside it; pass the "
                    "array in and return the new value");
  if (a->fixed)
    return nvb_fail(NVM_ERR_VALUE, "[assign] the array is read-only: a view that repeats elements, a diagonal, or the "
                    "imaginary part of real numbers; write to a copy of it");
  return NVM_OK;
}
/* What a's base becomes when a becomes `value`; a new reference. */
static nvg_node *written(nvm_array *a, nvg_node *old, nvg_node *value) {
  int place = nvg_device_join("assign", (nvg_node *[]){ old, value }, 2);
  nvg_node *n = place < 0 ? NULL : cast_like(value, old);
  if (n && n->device != place) { /* the array stays where it was put */
    nvg_node *put = nvg_put(n, place);
    nvg_node_unref(n);
    n = put;
  }
  if (!n || !a->base) return n;
  nvg_node *all = nvg_lens_put(a->lens, a->base->node, n);
  nvg_node_unref(n);
  return all;
}
int nvm_assign(nvm_array *a, nvm_array *value) {
  if (!a || !value) return nvh_null("assign", "array");
  if (value->ctx != a->ctx && value != &nvh_none && a != &nvh_none) return nvh_two_contexts("assign");
  int status = nvm_check_writable(a);
  if (status) return status;
  nvg_node *old = nvh_node(a), *v = nvh_node(value), *n = old && v ? written(a, old, v) : NULL;
  if (!n) return nvb_status();
  status = nvh_settle(a->ctx, n); /* before anything is written */
  if (status) return nvg_node_unref(n), status;
  nvh_stand_for(a->base ? a->base : a, n);
  return NVM_OK;
}
