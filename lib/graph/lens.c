/* Implements views as chains of nodes over a placeholder that stands for the base. A chain is read by applying its
   operations to another operand, and written through by their inverses. Decides what a chain supports and the strides
   of its elements, never which array views which. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "graph/infer.h"

/* ---- strides of a view */
typedef struct layout { int64_t offset, stride[NVM_MAX_RANK]; } layout;

/* Updates the layout of n's operand to that of n; returns 0 if strides cannot describe it. */
static int layout_after(layout *at, const nvg_node *n) {
  const nvg_aval *a = n->in[0]->aval, *b = n->aval;
  int64_t was[NVM_MAX_RANK];
  memcpy(was, at->stride, sizeof *was * (size_t)a->rank);
  switch (n->op) {
  case NVG_OP_RESHAPE:
    if (a->size) return nvg_reshape_strides(at->stride, b->rank, b->shape, was, a->rank, a->shape);
    return nvg_packed(at->stride, b->rank, b->shape), 1;
  case NVG_OP_PERMUTE_DIMS:
    for (int d = 0; d < b->rank; d++) at->stride[d] = was[n->attr[d]];
    return 1;
  case NVG_OP_STRIDED:
    for (int d = 0; d < b->rank; d++) at->offset += n->attr[2 * d] * was[d], at->stride[d] *= n->attr[2 * d + 1];
    return 1;
  case NVG_OP_EXPAND:
    for (int d = 0; d < b->rank; d++)
      if (a->shape[d] != b->shape[d]) at->stride[d] = 0;
    return 1;
  case NVG_OP_REAL: case NVG_OP_IMAG:
    for (int d = 0; d < b->rank; d++) at->stride[d] *= 2;
    at->offset = 2 * at->offset + (n->op == NVG_OP_IMAG);
    return 1;
  default: return 0;
  }
}

/* ---- chains */
/* Writes the nodes of a chain over `of` (excluded), lowest first, to `at` (`length` entries, or NULL); returns their
   number, or -1 if it is no such chain. */
static int list_steps(const nvg_node **at, const nvg_node *top, const nvg_node *of, int length) {
  int n = 0;
  for (; top != of; top = top->in[0], n++) {
    if (top->nin != 1) return -1;
    if (at) at[length - 1 - n] = top;
  }
  return n;
}
void nvg_lens_free(nvg_lens *l) {
  if (!l) return;
  nvg_node_unref(l->of);
  nvg_node_unref(l->top);
  nvb_free(l);
}
/* Computes the layout of the view on top of `through`; returns 1 if strides describe it. */
static int lay_out(nvg_lens *l, const nvg_lens *through) {
  enum { MOST = 64 }; /* most operations of one view; a flip has one for each axis */
  const nvg_node *at[MOST], *from = through ? through->top : l->of;
  layout now = { 0 };
  int more = list_steps(NULL, l->top, from, 0);
  if (more < 0 || more > MOST) return 0;
  list_steps(at, l->top, from, more);
  l->length = more + (through ? through->length : 0);
  nvg_packed(now.stride, from->aval->rank, from->aval->shape);
  if (through) {
    now.offset = through->offset;
    memcpy(now.stride, through->stride, sizeof *now.stride * (size_t)from->aval->rank);
  }
  int strided = !through || through->strided;
  for (int i = 0; i < more && strided; i++) strided = layout_after(&now, at[i]);
  l->offset = now.offset;
  memcpy(l->stride, now.stride, sizeof *l->stride * (size_t)l->top->aval->rank);
  return strided;
}
nvg_lens *nvg_lens_new(const nvg_lens *through, nvg_node *of, nvg_node *top) {
  nvg_lens *l = top ? nvb_alloc(sizeof *l + sizeof *l->stride * (size_t)top->aval->rank) : NULL;
  if (!l) {
    if (top) nvb_fail_memory();
    return nvg_node_unref(top), NULL;
  }
  *l = (nvg_lens){ .of = nvg_node_ref(of), .top = top, .length = -1, .fixed = through && through->fixed };
  l->strided = lay_out(l, through);
  return l;
}
int nvg_lens_packed(const nvg_lens *l) {
  const nvg_aval *a = l->top->aval;
  int64_t packed[NVM_MAX_RANK];
  nvg_packed(packed, a->rank, a->shape);
  int same = l->strided;
  for (int d = 0; d < a->rank && a->size; d++) same &= a->shape[d] == 1 || l->stride[d] == packed[d];
  return same;
}

/* ---- reading and writing through */
static nvg_node *reshape_node(nvg_node *x, const nvg_aval *to) {
  nvg_attr at = { .name = "shape", .kind = 'I', .is = to->shape, .n = to->rank };
  return nvg_apply(NVG_OP_RESHAPE, &x, 1, &at, 1, NVM_F64);
}
/* Applies the step to x. */
static nvg_node *apply_step(const nvg_node *step, nvg_node *x) {
  if (step->op == NVG_OP_RESHAPE) return reshape_node(x, step->aval);
  nvg_node *n = nvg_node_new((nvg_op)step->op, nvg_aval_ref(step->aval), &x, 1, step->attr, step->nattr);
  if (n) n->device = x->device;
  return n;
}
static nvg_node *invert_lens(const nvg_node *step, nvg_node *v) {
  int64_t axes[NVM_MAX_RANK];
  for (int d = 0; d < step->nattr; d++) axes[step->attr[d]] = d;
  nvg_attr at = { .name = "axes", .kind = 'I', .is = axes, .n = step->nattr };
  return nvg_apply(NVG_OP_PERMUTE_DIMS, &v, 1, &at, 1, NVM_F64);
}
static nvg_node *put_window(const nvg_node *step, nvg_node *x, nvg_node *v) {
  int rank = step->aval->rank;
  int64_t start[NVM_MAX_RANK], by[NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) start[d] = step->attr[2 * d], by[d] = step->attr[2 * d + 1];
  nvg_attr at[3] = { { .name = "start", .kind = 'I', .is = start, .n = rank },
                     { .name = "count", .kind = 'I', .is = step->aval->shape, .n = rank },
                     { .name = "step", .kind = 'I', .is = by, .n = rank } };
  return nvg_apply(NVG_OP_SLICE_UPDATE, (nvg_node *[]){ x, v }, 2, at, 3, NVM_F64);
}
static nvg_node *put_part(const nvg_node *step, nvg_node *x, nvg_node *v) {
  int real = step->op == NVG_OP_REAL;
  nvg_node *other = nvg_map(real ? NVG_OP_IMAG : NVG_OP_REAL, &x, 1, NVM_F64);
  nvg_node *parts[2] = { real ? v : other, real ? other : v };
  nvg_node *n = other ? nvg_map(NVG_OP_COMPLEX, parts, 2, NVM_F64) : NULL;
  nvg_node_unref(other);
  if (n) n->device = x->device;
  return n;
}
/* Returns x with the elements that the step selects replaced by v. */
static nvg_node *put_step(const nvg_node *step, nvg_node *x, nvg_node *v) {
  switch (step->op) {
  case NVG_OP_RESHAPE: return reshape_node(v, step->in[0]->aval);
  case NVG_OP_PERMUTE_DIMS: return invert_lens(step, v);
  case NVG_OP_STRIDED: return put_window(step, x, v);
  case NVG_OP_REAL: case NVG_OP_IMAG: return put_part(step, x, v);
  default: return nvb_fail(NVM_ERR_VALUE, "%s cannot be written through", nvg_ops[step->op].name), NULL;
  }
}
/* The steps of a lens, and references to the operand of each step and the top. */
typedef struct path { int n; const nvg_node **step; nvg_node **seen; } path;
static void path_end(path *p) {
  for (int i = 0; p->seen && i <= p->n; i++) nvg_node_unref(p->seen[i]);
  nvb_free(p->step);
  nvb_free(p->seen);
}
static int path_of(path *p, const nvg_lens *l, nvg_node *base) {
  *p = (path){ l->length, nvb_alloc(sizeof *p->step * ((size_t)l->length + 1)),
               nvb_calloc((size_t)l->length + 1, sizeof *p->seen) };
  if (!p->step || !p->seen) return path_end(p), nvb_fail_memory();
  list_steps(p->step, l->top, l->of, l->length);
  p->seen[0] = nvg_node_ref(base);
  for (int i = 0; i < p->n; i++)
    if (!(p->seen[i + 1] = apply_step(p->step[i], p->seen[i]))) return path_end(p), nvb_status();
  return NVM_OK;
}
nvg_node *nvg_lens_get(const nvg_lens *l, nvg_node *base) {
  path p;
  if (path_of(&p, l, base)) return NULL;
  nvg_node *top = nvg_node_ref(p.seen[p.n]);
  path_end(&p);
  return top;
}
nvg_node *nvg_lens_put(const nvg_lens *l, nvg_node *base, nvg_node *value) {
  path p;
  if (path_of(&p, l, base)) return NULL;
  nvg_node *v = nvg_node_ref(value);
  for (int i = p.n - 1; i >= 0 && v; i--) {
    nvg_node *below = put_step(p.step[i], p.seen[i], v);
    nvg_node_unref(v);
    v = below;
  }
  path_end(&p);
  return v;
}
