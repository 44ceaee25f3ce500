/* Lowers reductions to reductions over adjacent axes, each with a reduction order (numerics.md section 4). The
   reduction order depends on the reduction's own operand and axes, and on nothing else. */
#include <string.h>
#include "base/err.h"
#include "graph/lower.h"

/* Writes the bits of an identity, one for each part of a state. */
static void write_identity(nvg_init init, nvm_dtype t, uint64_t *out) {
  nvm_dtype part = nvg_real_of(t);
  int floats = nvg_class_of(part) == NVG_FLOAT, bits = 8 * nvg_size(part);
  int64_t least = nvg_class_of(t) == NVG_SIGNED ? INT64_MIN >> (64 - bits) : 0;
  out[0] = out[1] = 0;
  switch (init) {
  case NVG_INIT_NEGZERO: out[0] = out[1] = floats ? nvg_float_bits(part, -0.0) : 0; break;
  case NVG_INIT_ONE: out[0] = floats ? nvg_float_bits(part, 1) : 1; break;
  case NVG_INIT_LEAST: out[0] = floats ? nvg_float_bits(part, -__builtin_inf()) : nvg_int_bits(t, least); break;
  case NVG_INIT_MOST:
    out[0] = floats ? nvg_float_bits(part, __builtin_inf()) : t == NVM_BOOL ? 1 : nvg_int_bits(t, ~least);
    break;
  case NVG_INIT_NONE: break;
  }
}

static const nvg_frag *merge_of(nvg_lower *l, const char *frag, const nvm_dtype *state, int n) {
  nvm_dtype type[16];
  int k = 0;
  char name[48];
  int pairs = nvg_parts(state[0]) == 2;
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < n; i++)
      for (int p = 0; p < nvg_parts(state[i]); p++) type[k++] = nvg_real_of(state[i]);
  strcpy(name, pairs ? "c." : "");
  strncat(name, frag, sizeof name - 3);
  const nvg_frag *f = nvg_frag_find(name, type, k);
  if (!f) nvb_throw(l->make.arena, nvb_status(), "[%s] %s", l->name, nvb_message());
  return f;
}

/* ---- reductions of a constant: evaluated by the tree of their reduction order, whose equal subtrees are computed
   once */
typedef struct number { uint64_t part[2]; } number;
typedef struct merger { const nvg_frag *f; int parts; } merger;

static number merge_numbers(const merger *m, number a, number b) {
  uint64_t in[4] __attribute__((aligned(16))), out[2] __attribute__((aligned(16))) = { 0 };
  const void *from[4];
  void *to[2] = { &out[0], &out[1] };
  for (int i = 0; i < 2 * m->parts; i++) {
    in[i] = i < m->parts ? a.part[i] : b.part[i - m->parts];
    from[i] = &in[i];
  }
  nvg_frag_run(m->f, from, to, 1, 1);
  return (number){ { out[0], out[1] } };
}

static number in_sequence(const merger *m, number x, int64_t n) {
  number s = x;
  while (--n > 0) s = merge_numbers(m, s, x);
  return s;
}

/* Merges n values pairwise; all but the last are equal. */
static number in_pairs(const merger *m, number first, number last, int64_t n) {
  for (; n > 1; n = (n + 1) / 2) {
    last = n % 2 ? last : merge_numbers(m, first, last);
    first = n > 2 ? merge_numbers(m, first, first) : first;
  }
  return last;
}

static number reduce_chunk(const merger *m, number x, int64_t n, nvg_red_order st) {
  enum { MOST = 128 };
  number lane[MOST], few = in_sequence(m, x, n / st.lanes), more = in_sequence(m, x, n / st.lanes + 1);
  int lanes = n < st.lanes ? (int)n : st.lanes;
  for (int i = 0; i < lanes; i++) lane[i] = i < n % st.lanes ? more : few;
  for (int by = 1; by < lanes; by *= 2)
    for (int i = 0; i + by < lanes; i += 2 * by) lane[i] = merge_numbers(m, lane[i], lane[i + by]);
  return lane[0];
}

/* Returns the reduction of n copies of v, if v is a constant; else -1. */
static int of_constant(nvg_lower *l, const nvg_frag *f, int v, int64_t n, nvg_red_order st) {
  number x;
  nvm_dtype t = nvg_at(l, v)->dtype;
  if (!nvg_const_of(l, v, &x.part[0], &x.part[1])) return -1;
  merger m = { f, nvg_parts(t) };
  int64_t rest = n % st.chunk, chunks = n / st.chunk + (rest > 0);
  number last = reduce_chunk(&m, x, rest ? rest : st.chunk, st);
  number r = in_pairs(&m, chunks > 1 ? reduce_chunk(&m, x, st.chunk, st) : last, last, chunks);
  return nvg_add_const(l, t, r.part[0], r.part[1]);
}

/* A reduction over adjacent axes, kept with extent 1. c, w: the reduction order; c 0: by the shape. */
typedef struct run { const nvg_frag *frag; const uint64_t *init; int order_free, c, w; } run;
static int add_run(nvg_lower *l, const run *r, const int *in, int nin, int first, int count) {
  const nvg_val x = *nvg_at(l, in[0]);
  int64_t shape[NVM_MAX_RANK], attr[2] = { first, count }, inside = 1;
  for (int d = 0; d < x.rank; d++) shape[d] = d >= first && d < first + count ? 1 : x.shape[d];
  for (int d = first + count; d < x.rank; d++) inside *= x.shape[d];
  nvg_red_order st = r->c ? (nvg_red_order){ r->c, r->w } : nvg_red_order_of(inside >= NVG_COLUMN);
  int64_t n = nvg_size_of(count, x.shape + first);
  int constant = nin == 1 && n ? of_constant(l, r->frag, in[0], n, st) : -1;
  if (constant >= 0) return nvg_add_full(l, constant, x.rank, shape);
  nvg_val v = { .kind = NVG_VRED,
                .dtype = x.dtype,
                .rank = x.rank,
                .shape = shape,
                .nin = nin,
                .in = in,
                .attr = attr,
                .nattr = 2,
                .frag = r->frag,
                .init = r->init,
                .order_free = r->order_free,
                .chunk = st.chunk,
                .lanes = st.lanes };
  return nvg_add(l, &v);
}

/* Finds the last run of marked axes at or before d, including extents of 1 in between; returns 0 if there is none. */
static int last_run(const nvg_val *x, uint32_t axes, int *d, int *first, int *count) {
  while (*d >= 0 && (!(axes >> *d & 1) || x->shape[*d] == 1)) --*d;
  if (*d < 0) return 0;
  int end = *d + 1, at = *d;
  for (; *d >= 0 && ((axes >> *d & 1) || x->shape[*d] == 1); --*d)
    if (axes >> *d & 1) at = *d;
  *first = at;
  *count = end - at;
  return 1;
}

static uint32_t mask_of(const nvg_val *v) {
  uint32_t m = 0;
  for (int i = 0; i < v->nattr; i++) m |= 1u << v->attr[i];
  return m;
}

/* argmax and argmin reduce pairs (value, position) along one axis; a 32-bit position, if it suffices, needs half the
   registers. */
static int arg_reduction(nvg_lower *l, const nvg_val *v, int x) {
  const nvg_op_info *o = &nvg_ops[v->op];
  const nvg_val *c = nvg_at(l, x);
  if (c->kind == NVG_VMAP && c->op == NVG_OP_CAST && nvg_at(l, c->in[0])->dtype == NVM_BOOL &&
      nvg_same_shape(c, nvg_at(l, c->in[0])))
    x = c->in[0]; /* bool has the same order */
  const nvg_val at = *nvg_at(l, x);
  int axis = (int)v->attr[0];
  uint64_t re, im; /* for a constant, the first position */
  if (at.shape[axis] == 1 || nvg_const_of(l, x, &re, &im))
    return nvg_add_full(l, nvg_add_const(l, NVM_I64, 0, 0), v->rank, v->shape);
  int narrow = at.shape[axis] <= INT32_MAX;
  nvm_dtype index_type = narrow ? NVM_I32 : NVM_I64, state[2] = { at.dtype, index_type };
  uint64_t init[4];
  write_identity(o->def.init, at.dtype, init);
  init[1] = narrow ? INT32_MAX : INT64_MAX; /* the identity's position is behind every element's */
  int in[2] = { x, nvg_add_cast(l, nvg_add_iota(l, at.rank, at.shape, axis), index_type) };
  run r = { .frag = merge_of(l, o->def.frag, state, 2), .init = init, .order_free = 1 };
  int red = add_run(l, &r, in, 2, axis, 1);
  int64_t which = 1;
  nvg_val pick = { .kind = NVG_VPICK,
                   .dtype = index_type,
                   .rank = v->rank,
                   .shape = v->shape,
                   .nin = 1,
                   .in = &red,
                   .attr = &which,
                   .nattr = 1 };
  return nvg_add_cast(l, nvg_add(l, &pick), NVM_I64);
}

/* Reduces these axes of x, which has the dtype of the reduction; they keep extent 1. */
static int reduce_axes(nvg_lower *l, int op, int x, uint32_t axes) {
  const nvg_op_info *o = &nvg_ops[op];
  nvm_dtype w = nvg_at(l, x)->dtype;
  uint64_t init[2];
  write_identity(o->def.init, w, init);
  int sums = o->def.init == NVG_INIT_NEGZERO && nvg_class_of(w) >= NVG_FLOAT;
  const nvg_val from = *nvg_at(l, x);
  if (!from.size) {
    int64_t shape[NVM_MAX_RANK];
    for (int d = 0; d < from.rank; d++) shape[d] = axes >> d & 1 ? 1 : from.shape[d];
    return nvg_add_full(l, sums ? nvg_add_number(l, w, 0) : nvg_add_const(l, w, init[0], init[1]), from.rank, shape);
  }
  const char *frag = w == NVM_BOOL && o->def.boolean ? o->def.boolean : o->def.frag;
  run r = { .frag = merge_of(l, frag, &w, 1), .init = init, .order_free = o->def.free >> nvg_class_of(w) & 1 };
  for (int d = from.rank - 1, first, count; last_run(nvg_at(l, x), axes, &d, &first, &count);)
    x = add_run(l, &r, &x, 1, first, count);
  if (sums) {
    int two[2] = { x, nvg_add_number(l, w, 0) };
    x = nvg_add_named(l, nvg_parts(w) == 2 ? "c.add" : "add", w, two, 2, nvg_at(l, x));
  }
  return x;
}

int nvg_lower_reduction(nvg_lower *l, const nvg_val *v) {
  int x = l->rep[v->in[0]];
  if (nvg_ops[v->op].rule == NVG_RARG)
    return arg_reduction(l, v, nvg_wide(l, nvg_add_cast(l, x, l->g->v[v->in[0]].dtype)));
  return nvg_add_cast(l, reduce_axes(l, v->op, nvg_wide(l, x), mask_of(v)), v->dtype);
}

/* Lowers the merge of logsumexp's two states; attr: axis, then chunk and lanes of the reduction order (0: by the
   shape). */
int nvg_lower_merge(nvg_lower *l, const nvg_val *v) {
  int in[2];
  nvm_dtype state[2];
  uint64_t init[2][2];
  if (l->g->v[v->in[0]].shape[v->attr[0]] == 1) return -1;
  for (int i = 0; i < v->nin; i++) {
    in[i] = l->rep[v->in[i]];
    state[i] = nvg_at(l, in[i])->dtype;
    write_identity(i ? NVG_INIT_NEGZERO : NVG_INIT_LEAST, state[i], init[i]);
  }
  uint64_t first[2] = { init[0][0], init[1][0] };
  run r = { .frag = merge_of(l, nvg_ops[v->op].def.frag, state, v->nin),
            .init = first,
            .c = (int)v->attr[1],
            .w = (int)v->attr[2] };
  return add_run(l, &r, in, v->nin, (int)v->attr[0], 1);
}

int nvg_lower_scan(nvg_lower *l, const nvg_val *v) {
  const nvg_op_info *o = &nvg_ops[v->op];
  int x = nvg_wide(l, l->rep[v->in[0]]);
  const nvg_val from = *nvg_at(l, x);
  uint64_t init[2];
  if (from.size && from.shape[v->attr[0]] > 1) {
    write_identity(o->def.init, from.dtype, init);
    nvg_val s = { .kind = NVG_VSCAN,
                  .dtype = from.dtype,
                  .rank = v->rank,
                  .shape = v->shape,
                  .nin = 1,
                  .in = &x,
                  .attr = v->attr,
                  .nattr = 1,
                  .frag = merge_of(l, o->def.frag, &from.dtype, 1),
                  .init = init,
                  .order_free = o->def.free >> nvg_class_of(from.dtype) & 1 };
    x = nvg_add(l, &s);
  }
  return nvg_add_cast(l, x, v->dtype);
}
