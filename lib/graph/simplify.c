/* Lowers the graph as written to the planner's language: legalises dtypes, places roundings to 16 bits, gives
   reductions their order, removes dead values. This fixes the value of every element; no later stage may change it. */
#include <string.h>
#include "base/err.h"
#include "graph/infer.h"
#include "graph/structure.h"

/* Returns an operand rounded to its dtype, for readers that need the exact value. */
static int round_operand(nvg_lower *l, int from) { return nvg_add_cast(l, l->rep[from], l->g->v[from].dtype); }

static int lower_map(nvg_lower *l, const nvg_val *v) {
  const nvg_op_info *o = &nvg_ops[v->op];
  int in[NVG_MAP_OPERANDS];
  for (int i = 0; i < v->nin; i++) in[i] = nvg_wide(l, o->def.mark ? round_operand(l, v->in[i]) : l->rep[v->in[i]]);
  if (v->op == NVG_OP_WHERE) in[2] = nvg_unless(l, in[0], in[2]);
  int r = v->op == NVG_OP_WHERE ? nvg_add_write(l, in) : -1;
  if (r < 0) r = nvg_rewrite(l, v, in);
  if (r >= 0) return r;
  const nvg_frag *f = nvg_map_frag((nvg_op)v->op, l->g->v[v->in[v->nin - 1]].dtype);
  if (!f) nvb_throw(l->make.arena, nvb_status(), "%s", nvb_message());
  return nvg_add_map(l, f, nvg_compute_of(v->dtype), in, v->nin, v->rank, v->shape);
}

/* Lowers a cast. With NVG_INNER in attr[0], the user did not write it: between float dtypes it then does not round its
   operand to 16 bits nor, where the conversion is exact, its result. */
static int lower_cast(nvg_lower *l, const nvg_val *v) {
  nvm_dtype from = l->g->v[v->in[0]].dtype, to = v->dtype;
  if (!(v->attr[0] & NVG_INNER) || nvg_class_of(to) < NVG_FLOAT) return nvg_add_cast(l, round_operand(l, v->in[0]), to);
  return nvg_add_cast(l, nvg_wide(l, l->rep[v->in[0]]), nvg_is_narrow(to) && nvg_embeds(from, to) ? NVM_F32 : to);
}

static int lower_const(nvg_lower *l, const nvg_val *v) {
  uint64_t re = (uint64_t)v->attr[0], im = v->nattr > 1 ? (uint64_t)v->attr[1] : 0;
  if (!nvg_is_narrow(v->dtype)) return nvg_add_const(l, v->dtype, re, im);
  return nvg_add_const(l, NVM_F32, nvg_float_bits(NVM_F32, nvg_bits_float(v->dtype, re)), 0);
}

/* Adds a concat. If it has more operands than one kernel selects from (NVG_CONCAT_MOST), they are divided into as few
   groups as possible, each a concat of its own, which the planner stores. */
static int add_concat(nvg_lower *l, const nvg_val *v, int n, int *in) {
  nvg_val c = { .kind = NVG_VCONCAT,
                .dtype = nvg_at(l, in[0])->dtype,
                .rank = v->rank,
                .nin = n,
                .in = in,
                .attr = v->attr,
                .nattr = v->nattr };
  if (n == 1) return in[0];
  if (n > NVG_CONCAT_MOST) {
    int groups = (n + NVG_CONCAT_MOST - 1) / NVG_CONCAT_MOST;
    groups = groups < NVG_CONCAT_MOST ? groups : NVG_CONCAT_MOST;
    int *of = NVB_NEWN(l->make.arena, int, groups);
    for (int i = 0; i < groups; i++) {
      int lo = (int)((int64_t)n * i / groups), hi = (int)((int64_t)n * (i + 1) / groups);
      of[i] = add_concat(l, v, hi - lo, in + lo);
    }
    return add_concat(l, v, groups, of);
  }
  int64_t *shape = nvb_dup(l->make.arena, v->shape, (size_t)v->rank * sizeof *shape);
  shape[v->attr[0]] = 0;
  for (int i = 0; i < n; i++) shape[v->attr[0]] += nvg_at(l, in[i])->shape[v->attr[0]];
  c.shape = shape;
  return nvg_add(l, &c);
}

/* Lowers pad and concat: operands are converted to one dtype; the padding value stays 0-d. */
static int lower_select(nvg_lower *l, const nvg_val *v) {
  int *in = NVB_NEWN(l->make.arena, int, v->nin);
  for (int i = 0; i < v->nin; i++) in[i] = nvg_wide(l, l->rep[v->in[i]]);
  if (v->kind == NVG_VPAD) in[1] = nvg_add_reshape(l, in[1], 0, NULL);
  if (v->kind == NVG_VCONCAT) { /* operands without elements are dropped */
    int n = 0;
    for (int i = 0; i < v->nin; i++)
      if (nvg_at(l, in[i])->size) in[n++] = in[i];
    return add_concat(l, v, n, in);
  }
  if (!nvg_at(l, in[0])->size) return nvg_add_full(l, in[1], v->rank, v->shape);
  nvg_val c = { .kind = v->kind,
                .dtype = nvg_at(l, in[0])->dtype,
                .rank = v->rank,
                .shape = v->shape,
                .nin = v->nin,
                .in = in,
                .attr = v->attr,
                .nattr = v->nattr };
  return nvg_add(l, &c);
}

static int lower_gather(nvg_lower *l, const nvg_val *v) {
  int in[2] = { l->rep[v->in[0]], l->rep[v->in[1]] };
  nvg_val c = { .kind = NVG_VGATHER,
                .op = v->op,
                .dtype = nvg_at(l, in[0])->dtype,
                .rank = v->rank,
                .shape = v->shape,
                .nin = 2,
                .in = in,
                .attr = v->attr,
                .nattr = v->nattr };
  return nvg_add(l, &c);
}

static int lower_scatter(nvg_lower *l, const nvg_val *v) {
  nvg_val c = {
    .kind = NVG_VSCATTER, .op = v->op, .dtype = NVM_I64, .rank = 1, .shape = v->shape, .nin = 1, .in = &l->rep[v->in[0]]
  };
  return nvg_add(l, &c);
}

static int lower_pick(nvg_lower *l, const nvg_val *v) {
  int red = l->rep[v->in[0]], which = (int)v->attr[0];
  if (red < 0) return nvg_add_reshape(l, l->rep[l->g->v[v->in[0]].in[which]], v->rank, v->shape);
  nvg_val c = { .kind = NVG_VPICK,
                .dtype = v->dtype,
                .rank = v->rank,
                .shape = v->shape,
                .nin = 1,
                .in = &red,
                .attr = v->attr,
                .nattr = 1 };
  return nvg_add(l, &c);
}

/* The product of an inverse and a matrix is solved for instead: by the same factors, or, of a small matrix, with fewer
   columns than the inverse has. */
static int as_solution(nvg_lower *l, const nvg_val *inverse, int b) {
  int in[2] = { inverse->in[0], b };
  nvg_val c = *inverse;
  c.shape = nvg_at(l, b)->shape;
  c.rank = nvg_at(l, b)->rank;
  c.in = in;
  c.nin = 2;
  l->op = inverse->op;
  l->name = inverse->name;
  return nvg_add(l, &c);
}

static int lower_call(nvg_lower *l, const nvg_val *v) { /* it reads operands rounded to their dtype */
  int in[2] = { round_operand(l, v->in[0]), round_operand(l, v->in[1]) };
  nvg_val c = *v, x = *nvg_at(l, in[0]);
  if (nvg_is_inverse(l, in[0]) && x.dtype == v->dtype &&
      (x.op != NVG_OP_SOLVED || v->shape[v->rank - 1] <= x.shape[x.rank - 1]))
    return as_solution(l, &x, in[1]);
  c.in = in;
  return nvg_add(l, &c);
}

static int lower_routine(nvg_lower *l, const nvg_val *v) { /* it reads operands rounded to their dtype */
  int in[2];
  nvg_val c = *v;
  for (int i = 0; i < v->nin; i++) in[i] = round_operand(l, v->in[i]);
  c.in = in;
  if (v->op == NVG_OP_SORTED) c.dtype = nvg_at(l, in[0])->dtype;
  int examines = (v->op == NVG_OP_FACTORS || v->op == NVG_OP_SOLVED) && v->attr[0] == NVG_UNKNOWN;
  const int64_t hermitian[2] = { NVG_HERMITIAN, 0 };
  if (examines && nvg_is_hermitian(l, in[0])) c.attr = hermitian;
  return nvg_add(l, &c);
}

static int lower_value(nvg_lower *l, const nvg_val *v) {
  int x = v->nin ? l->rep[v->in[0]] : -1;
  switch (v->kind) {
  case NVG_VLEAF: return nvg_add(l, v);
  case NVG_VCONST: return lower_const(l, v);
  case NVG_VIOTA: return nvg_add_iota(l, v->rank, v->shape, (int)v->attr[0]);
  case NVG_VMAP: return v->op == NVG_OP_CAST ? lower_cast(l, v) : lower_map(l, v);
  case NVG_VRED: return v->op == NVG_OP_LSE ? nvg_lower_merge(l, v) : nvg_lower_reduction(l, v);
  case NVG_VSCAN: return nvg_lower_scan(l, v);
  case NVG_VPICK: return lower_pick(l, v);
  case NVG_VRESHAPE: return nvg_add_reshape(l, x, v->rank, v->shape);
  case NVG_VPERMUTE: return nvg_add_permute(l, x, v->attr);
  case NVG_VSLICE: return nvg_add_slice(l, x, v->attr, v->shape);
  case NVG_VEXPAND: return nvg_add_expand(l, x, v->rank, v->shape);
  case NVG_VROLL: return nvg_add_roll(l, x, (int)v->attr[0], v->attr[1]);
  case NVG_VPAD: case NVG_VCONCAT: return lower_select(l, v);
  case NVG_VGATHER: return lower_gather(l, v);
  case NVG_VSCATTER: return lower_scatter(l, v);
  case NVG_VCALL: return lower_call(l, v);
  case NVG_VROUTINE: return lower_routine(l, v);
  default: nvb_throw(l->make.arena, NVM_ERR_INTERNAL, "[%s] a value of kind %d was collected", v->name, (int)v->kind);
  }
}

static int lower_empty(nvg_lower *l, const nvg_val *v) { /* no elements: any constant will do */
  return nvg_add_full(l, nvg_add_number(l, nvg_compute_of(v->dtype), 0), v->rank, v->shape);
}

/* For each value, whether every use of it ends in a rounding to bf16 (2) or to 16 bits (1) that the user's dtypes ask
   for: values of 16-bit operations, and those inside the expansion of such an operation. */
static const uint8_t *rounded_in_the_end(nvb_arena *a, const nvg_graph *g, const uint8_t *wanted) {
  uint8_t *narrowed = nvb_get(a, (size_t)g->n + 1), *users = nvb_get(a, (size_t)g->n + 1);
  memset(users, 3, (size_t)g->n + 1); /* the minimum over its readers; 3: none */
  for (int i = g->n - 1; i >= 0; i--) {
    const nvg_val *v = &g->v[i];
    if (nvg_is_narrow(v->dtype)) narrowed[i] = v->dtype == NVM_F16 ? 1 : 2;
    else if (v->dtype == NVM_F32 && users[i] < 3 && !wanted[i]) narrowed[i] = users[i];
    int exact = v->kind == NVG_VMAP && v->op == NVG_OP_CAST && !v->attr[0]; /* a conversion that the user wrote */
    uint8_t reads = exact ? 0 : narrowed[i];
    for (int j = 0; j < v->nin; j++)
      if (reads < users[v->in[j]]) users[v->in[j]] = reads;
  }
  return narrowed;
}

static int is_zero(const nvg_graph *g, int i) {
  const nvg_val *v = &g->v[i];
  while (v->kind == NVG_VEXPAND || v->kind == NVG_VRESHAPE || (v->kind == NVG_VMAP && v->op == NVG_OP_CAST))
    v = &g->v[v->in[0]];
  return v->kind == NVG_VCONST && !v->attr[0];
}

/* Marks values x for which relu(x) or maximum(x, 0) is wanted. */
static const uint8_t *find_clipped(nvb_arena *a, const nvg_graph *g) {
  uint8_t *is = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int clips = v->op == NVG_OP_RELU || (v->op == NVG_OP_MAXIMUM && is_zero(g, v->in[1]));
    if (v->kind == NVG_VMAP && clips) is[v->in[0]] = 1;
  }
  return is;
}

nvg_graph *nvg_simplify(nvb_arena *a, const nvg_graph *g) {
  nvg_lower l = { .g = g };
  nvg_make_init(&l.make, a);
  l.rep = NVB_NEWN(a, int, g->n + 1);
  uint8_t *wanted = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->nout; i++) wanted[g->out[i]] = 1;
  l.narrowed = rounded_in_the_end(a, g, wanted);
  l.clipped = find_clipped(a, g);
  l.windows = nvg_windows_of(a, g);
  l.whole = nvb_map_new(a);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    l.op = v->op;
    l.now_narrowed = l.narrowed[i];
    l.name = v->name;
    l.rep[i] = !v->size && v->kind != NVG_VLEAF ? lower_empty(&l, v) : lower_value(&l, v);
    /* a value that is read is rounded for all later uses */
    if (wanted[i]) l.rep[i] = nvg_add_cast(&l, l.rep[i], v->dtype);
    nvg_note_windows(&l, i);
  }
  int *out = NVB_NEWN(a, int, g->nout + 1);
  for (int i = 0; i < g->nout; i++) out[i] = nvg_last_writes(&l, l.rep[g->out[i]]);
  return nvg_make_done(&l.make, g, out, g->nout);
}
