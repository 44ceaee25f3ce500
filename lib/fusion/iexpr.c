/* Builds the indexed expressions of a fusion: values at index expressions over named axes, under a guard.
   Views rewrite the indices; pad and concat add a guard and a select; a value stored elsewhere becomes a load; a
   reduction takes the axis that makes its operand an expression which exists already (the diamond rule). This file
   decides which expressions of a kernel are the same value; it never decides what is a block or a lane. */
#include <string.h>
#include "fusion/iexpr.h"

typedef nvf_builder builder;

_Noreturn void nvf_illegal(builder *b, const char *why) {
  b->why = why;
  longjmp(b->out, ILLEGAL);
}

int nvf_axis_new(builder *b, nvf_prod extent) {
  if (b->k->axis.n == 64) nvf_illegal(b, "more than 64 axes");
  NVB_PUSH(b->a, b->k->axis, ((nvf_axis){ extent, nvf_value(b->s, extent) }));
  return b->k->axis.n - 1;
}

nvf_ix nvf_axis_ix(builder *b, int a) { return nvf_ix_axis(b->s, a, b->k->axis.at[a].extent); }

/* What an expression adds to the code of its kernel. A reduction has loops and a tree of its own. One operation is
   never so much that two of them, which a kernel may have to have, are more than a kernel. */
static int code_of(const builder *b, const nvf_iexpr *v) {
  enum { REDUCTION = 16 };
  int most = nvf_most_code(b->graph) / 4, own = 1;
  if (b->graph->caps->kind != NVB_CPU) return 1;
  if (v->kind == NVF_IMAP || nvf_is_red(v)) own += b->graph->node[v->node].frag->cost - 1;
  own = (own < 1 ? 1 : own) + (nvf_is_red(v) ? REDUCTION : 0);
  return own < most ? own : most;
}

static int add_expr(builder *b, nvf_iexpr v) {
  b->k->code += code_of(b, &v);
  if (b->k->code > nvf_most_code(b->graph)) nvf_illegal(b, "more code than a kernel may have");
  NVB_PUSH(b->a, b->k->expr, v);
  b->graph->built++;
  return b->k->expr.n - 1;
}

static uint64_t axes_of(const builder *b, int i) { return b->k->expr.at[i].axes; }

static int *copy_args(builder *b, int n, const int *from) { return nvb_dup(b->a, from, (size_t)n * sizeof *from); }

/* ---- guards */
static uint64_t guard_axes(const builder *b, int g) {
  uint64_t m = 0;
  for (int i = 0; i < b->k->guard.at[g].n; i++) m |= nvf_ix_axes(b->s, b->k->guard.at[g].b[i].e);
  return m;
}

int nvf_guard_of(builder *b, int n, const nvf_bound *c) {
  int fresh, *at = nvb_map_put(b->guards, c, (size_t)n * sizeof *c, &fresh);
  if (fresh) {
    *at = b->k->guard.n;
    NVB_PUSH(b->a, b->k->guard, ((nvf_guard){ n, nvb_dup(b->a, c, (size_t)n * sizeof *c) }));
  }
  return *at;
}

static int guard_join(builder *b, int g, int n, const nvf_bound *c) {
  int m = b->k->guard.at[g].n;
  nvf_bound *all = NVB_NEWN(b->a, nvf_bound, m + n + 1);
  memcpy(all, b->k->guard.at[g].b, (size_t)m * sizeof *all);
  for (int i = 0; i < n; i++) {
    int j = 0;
    while (j < m && (all[j].e != c[i].e || all[j].n != c[i].n)) j++;
    if (j == m) all[m++] = c[i];
  }
  if (m > MOST_CONDITIONS) nvf_illegal(b, "too many conditions");
  return nvf_guard_of(b, m, all);
}

/* Writes the conditions 0 <= at < dim that can fail and returns their number; -1 if one always fails. */
static int bound_conditions(builder *b, int rank, const nvf_ix *at, const nvf_prod *dim, nvf_bound *out) {
  int n = 0;
  for (int d = 0; d < rank; d++) {
    int64_t lo, hi, most = nvf_value(b->s, dim[d]);
    nvf_ix_range(b->s, at[d], &lo, &hi);
    if (hi < 0 || lo >= most) {
      nvf_rely(b->s, (nvf_fact){ NVF_OUTSIDE, at[d], dim[d], 0 });
      return -1;
    }
    if (lo < 0 || hi >= most) out[n++] = (nvf_bound){ at[d], dim[d] };
    else nvf_rely_range(b->s, at[d], dim[d], 1, 1);
  }
  return n;
}

/* The part of guard g that these coordinates need: none if they are in range without it, else the conditions on their
   axes. */
static int needed_guard(builder *b, const nvf_node *n, const nvf_ix *at, int g) {
  uint64_t mine = 0;
  int m = 0;
  if (!g) return 0;
  nvf_bound *c = NVB_NEWN(b->a, nvf_bound, n->rank + b->k->guard.at[g].n + 1);
  if (!bound_conditions(b, n->rank, at, n->dim, c)) return 0;
  for (int d = 0; d < n->rank; d++) mine |= nvf_ix_axes(b->s, at[d]);
  for (int i = 0; i < b->k->guard.at[g].n; i++)
    if (nvf_ix_axes(b->s, b->k->guard.at[g].b[i].e) & mine) c[m++] = b->k->guard.at[g].b[i];
  return nvf_guard_of(b, m, c);
}

/* ---- known expressions */
typedef struct key { int node, guard; nvf_ix at[NVM_MAX_RANK + 1]; } key;
static size_t key_of(key *q, int node, int rank, const nvf_ix *at, int guard) {
  q->node = node;
  q->guard = guard;
  memcpy(q->at, at, (size_t)rank * sizeof *at);
  return offsetof(key, at) + (size_t)rank * sizeof *at;
}

static int seen_at(builder *b, int node, const nvf_ix *at) {
  key q;
  size_t n = key_of(&q, node, nvf_node_of(b, node)->rank, at, 0);
  return nvb_map_find(b->known, &q, n) != NULL;
}

/* Coordinates of the operand of a permute or an expand; NULL for other nodes. */
static const nvf_ix *coords_through(builder *b, const nvf_node *n, const nvf_ix *at) {
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  nvf_ix *e = nvf_coords(b, x->rank);
  if (n->kind == NVG_VPERMUTE)
    for (int d = 0; d < n->rank; d++) e[n->attr[d]] = at[d];
  else if (n->kind == NVG_VEXPAND)
    for (int d = 0; d < n->rank; d++) e[d] = x->dim[d] ? at[d] : 0;
  else return NULL;
  return e;
}

/* Whether the node at these coordinates, or a value that it is computed from, is an expression already. */
static int is_made_before(builder *b, int node, const nvf_ix *at) {
  for (;;) {
    const nvf_node *n = nvf_node_of(b, node);
    if (seen_at(b, node, at)) return 1;
    if (n->kind == NVG_VPERMUTE || n->kind == NVG_VEXPAND) at = coords_through(b, n, at);
    else if (n->kind != NVG_VMAP) return 0;
    int next = -1;
    for (int i = 0; i < n->nin && next < 0; i++)
      if (nvf_node_of(b, n->in[i])->rank == n->rank && nvf_node_of(b, n->in[i])->kind != NVG_VCONST) next = i;
    if (next < 0) return 0;
    for (int i = next + 1; n->kind == NVG_VMAP && i < n->nin; i++) /* the other operands themselves */
      if (nvf_node_of(b, n->in[i])->rank == n->rank && seen_at(b, n->in[i], at)) return 1;
    node = n->in[next];
  }
}

/* ---- expressions by kind */
/* Whether these coordinates cover all of a value: each dimension is a whole axis of its own. An expression of a part of
   it (an element, or a slice from 0 on) cannot be stored as the value. */
static int is_whole_value(const builder *b, const nvf_node *n, const nvf_ix *at) {
  uint64_t used = 0;
  for (int d = 0; d < n->rank; d++) {
    if (!n->dim[d]) continue;
    int a = at[d] ? nvf_ix_single_axis(b->s, at[d]) : -1;
    if (a < 0 || (used >> a & 1) || b->k->axis.at[a].n != nvf_value(b->s, n->dim[d])) return 0;
    nvf_rely(b->s, (nvf_fact){ NVF_EQUAL, b->k->axis.at[a].extent, n->dim[d], 0 });
    used |= 1ull << a;
  }
  return 1;
}

static nvf_ix address_of(builder *b, const nvf_node *n, const nvf_ix *at) {
  nvf_ix e = 0;
  if (n->kind != NVG_VLEAF) return nvf_ix_linear(b->s, n->rank, at, n->dim);
  for (int d = 0; d < n->rank; d++)
    if (n->stride[d] >= 0) e = nvf_ix_add(b->s, e, nvf_ix_mul(b->s, at[d], n->stride[d], 1));
  return e;
}

static int add_load(builder *b, int node, const nvf_ix *at, int guard) {
  nvf_ix e = address_of(b, nvf_node_of(b, node), at);
  return add_expr(b, (nvf_iexpr){ .kind = NVF_ILOAD,
                                  .node = node,
                                  .at = e,
                                  .guard = guard,
                                  .axes = nvf_ix_axes(b->s, e) | guard_axes(b, guard) });
}

static nvf_prod run_of(builder *b, const nvf_prod *dim, int n) { /* the product of n dimensions */
  nvf_prod p = 0;
  for (int i = 0; i < n; i++) p = nvf_mul(b->s, p, dim[i]);
  return nvf_proved(b->s, p);
}

const nvf_ix *nvf_reshaped(builder *b, const nvf_node *n, const nvf_ix *at, const nvf_node *x) {
  nvf_ix *e = nvf_coords(b, x->rank);
  for (int i = 0, j = 0; i < x->rank || j < n->rank;) {
    int i0 = i, j0 = j;
    int64_t p = i < x->rank ? nvf_value(b->s, x->dim[i++]) : 1, q = j < n->rank ? nvf_value(b->s, n->dim[j++]) : 1;
    while (p != q)
      if (p < q) p *= nvf_value(b->s, x->dim[i++]);
      else q *= nvf_value(b->s, n->dim[j++]);
    nvf_rely(b->s, (nvf_fact){ NVF_EQUAL, run_of(b, x->dim + i0, i - i0), run_of(b, n->dim + j0, j - j0), 0 });
    nvf_ix_unlinear(b->s, nvf_ix_linear(b->s, j - j0, at + j0, n->dim + j0), i - i0, x->dim + i0, e + i0);
  }
  return e;
}

static int of_slice(builder *b, const nvf_node *n, const nvf_ix *at, int guard) {
  nvf_ix *e = nvf_coords(b, n->rank);
  for (int d = 0; d < n->rank; d++) {
    int64_t step = n->attr[2 * d + 1];
    e[d] = nvf_ix_add(b->s, n->at[d], nvf_ix_mul(b->s, at[d], 0, step));
  }
  return nvf_iexpr_at(b, n->in[0], e, guard, 0);
}

/* pad, concat, roll: operands under guards, and selects between those whose guards may hold. */
typedef struct source { int node; const nvf_ix *at; } source;
static int select_part(builder *b, int n, const source *p, int otherwise, int guard) {
  int v = otherwise;
  for (int i = n - 1; i >= 0; i--) {
    const nvf_node *x = nvf_node_of(b, p[i].node);
    nvf_bound c[NVM_MAX_RANK + 1];
    int m = x->size ? bound_conditions(b, x->rank, p[i].at, x->dim, c) : -1;
    if (m < 0) continue;
    int in = nvf_iexpr_at(b, p[i].node, p[i].at, guard_join(b, guard, m, c), 0);
    if (m == 0 || v < 0) {
      v = in;
      continue;
    }
    int g = nvf_guard_of(b, m, c);
    int t = add_expr(b, (nvf_iexpr){ .kind = NVF_ITEST, .guard = g, .axes = guard_axes(b, g) });
    int arg[3] = { t, in, v };
    v = add_expr(b, (nvf_iexpr){ .kind = NVF_ISELECT,
                                 .node = p[i].node,
                                 .narg = 3,
                                 .arg = copy_args(b, 3, arg),
                                 .axes = axes_of(b, t) | axes_of(b, in) | axes_of(b, v) });
  }
  return v;
}

static int of_select(builder *b, const nvf_node *n, const nvf_ix *at, int guard) {
  source *p = NVB_NEWN(b->a, source, n->nin + 2);
  int m = 0, axis = n->kind == NVG_VPAD ? 0 : (int)n->attr[0], v = -1;
  if (n->kind == NVG_VPAD) {
    nvf_ix *e = nvf_coords(b, n->rank);
    for (int d = 0; d < n->rank; d++) e[d] = nvf_ix_sub(b->s, at[d], n->at[d]);
    p[m++] = (source){ n->in[0], e };
    v = nvf_iexpr_at(b, n->in[1], at, guard, 0);
  } else
    for (int i = 0; i < (n->kind == NVG_VROLL ? 2 : n->nin); i++) {
      nvf_ix *e = nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at);
      if (n->kind == NVG_VCONCAT) e[axis] = nvf_ix_sub(b->s, at[axis], n->at[i]);
      else e[axis] = nvf_ix_sub(b->s, nvf_ix_add(b->s, at[axis], n->at[0]), i ? nvf_ix_size(b->s, n->dim[axis]) : 0);
      p[m++] = (source){ n->in[n->kind == NVG_VROLL ? 0 : i], e };
    }
  v = select_part(b, m, p, v, guard);
  if (v < 0) nvf_illegal(b, "a select of nothing");
  return v;
}

static int of_map(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  int *a = NVB_NEWN(b->a, int, n->nin + 1), next;
  uint64_t axes = 0;
  for (int i = 0; i < n->nin; i++) a[i] = -1;
  do { /* operands with few reductions first and broadcast ones last, so that reductions find axes to take */
    next = -1;
    for (int i = 0; i < n->nin; i++)
      if (a[i] < 0 && (next < 0 || nvf_is_sooner(nvf_node_of(b, n->in[i]), nvf_node_of(b, n->in[next])))) next = i;
    if (next >= 0) axes |= axes_of(b, a[next] = nvf_iexpr_at(b, n->in[next], at, guard, 0));
  } while (next >= 0);
  return add_expr(b, (nvf_iexpr){ .kind = NVF_IMAP, .node = node, .narg = n->nin, .arg = a, .axes = axes });
}

static int over_axes(builder *b, int v, uint64_t axes) {
  if ((axes_of(b, v) & axes) == axes) return v;
  return add_expr(b, (nvf_iexpr){ .kind = NVF_ISAME,
                                  .node = b->k->expr.at[v].node,
                                  .narg = 1,
                                  .arg = copy_args(b, 1, &v),
                                  .axes = axes_of(b, v) | axes });
}

/* A reduction over several dimensions needs them as one axis: if they are adjacent dimensions of the first root, the
   fusion is built again with these merged. */
static void ask_merge(builder *b, nvf_prod len, int n, const nvf_prod *dim, uint64_t kept) {
  for (int i = 0; i + n <= b->ndim; i++) {
    int ok = 1, news = 0;
    for (int j = 0; j < n; j++) {
      int d = b->dims[i + j];
      ok &= b->root_dim[d] == dim[j] && !(nvf_ix_axes(b->s, b->root_at[d]) & kept);
    }
    for (int a = 0; a < b->k->axis.n; a++) ok &= b->k->axis.at[a].extent != len || (kept >> a & 1);
    for (int j = 0; ok && j + 1 < n; j++) {
      nvf_merge m = { dim[j], dim[j + 1], b->dims[i + j] };
      int have = 0;
      for (int q = 0; q < b->form->nmerge; q++) have |= !memcmp(&b->form->merged[q], &m, sizeof m);
      if (have) continue;
      if (b->form->nmerge == 16) nvf_illegal(b, "axes do not merge");
      b->form->merged[b->form->nmerge++] = m;
      news = 1;
    }
    if (news) longjmp(b->out, MERGE);
  }
}

static void reduced_coords(builder *b, const nvf_node *n, const nvf_ix *at, nvf_ix r, nvf_ix *e) {
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  int a0 = (int)n->attr[0], run = (int)n->attr[1];
  for (int d = 0; d < x->rank; d++) e[d] = at[d + (n->block && d >= a0)];
  nvf_ix_unlinear(b->s, r, run, x->dim + a0, e + a0);
}

/* Asks for the form in the shape of a reduction's operand, if the root is a reshape of it: there the reduced dimensions
   are axes. */
static void ask_shape(builder *b, const nvf_node *n, const nvf_ix *at) {
  const nvf_node *x = nvf_node_of(b, n->in[0]), *r = nvf_node_of(b, b->k->root[0]);
  nvf_prod mine = 0, all = 0;
  int a0 = (int)n->attr[0], run = (int)n->attr[1], is_split = 0;
  nvf_form f = { 0 };
  for (int d = 0; d < n->rank; d++) is_split |= nvf_ix_floors(b->s, at[d]) > 0;
  if (!is_split || n->block || b->form->rank || b->ask.rank || r->size != x->size || !r->size) return;
  f.apart = b->ask.apart;
  f.parts = b->ask.parts;
  for (int d = 0; d < r->rank; d++) all = nvf_mul(b->s, all, r->dim[d]);
  for (int d = 0; d < x->rank; d++) {
    mine = nvf_mul(b->s, mine, x->dim[d]);
    if (d > a0 && d < a0 + run && f.rank) f.dim[f.rank - 1] = nvf_mul(b->s, f.dim[f.rank - 1], x->dim[d]);
    else if (x->dim[d] || d == a0) f.dim[f.rank++] = x->dim[d];
  }
  if (nvf_proved(b->s, mine) == nvf_proved(b->s, all)) b->ask = f;
}

static void count_reduction(builder *b, const nvf_node *n) { /* sets of reductions and of depths are 64-bit words */
  if (b->k->dot && !n->tiled) nvf_illegal(b, nvf_graph_why_apart(b->k->graph, n));
  if (b->k->attention) nvf_illegal(b, "attention and a reduction are two kernels");
  if (b->nfold++ >= 60) nvf_illegal(b, "more than 60 reductions");
}

/* The axis of a reduction over `want` elements from `base` on: one that makes the operand an expression that exists
   already, else one that another reduction takes; -1: neither. */
static int reduced_axis(builder *b, const nvf_node *n, const nvf_ix *at, nvf_ix base, nvf_prod want, uint64_t kept) {
  nvf_ix *e = nvf_coords(b, nvf_node_of(b, n->in[0])->rank);
  const nvf_dot *dot = n->tiled ? b->k->dot : NULL;
  int side = !dot ? -1 : n->attr[0] == nvf_node_of(b, n->in[0])->rank - 1 ? dot->n : dot->m;
  if (side >= 0 && b->k->axis.at[side].extent == want) return side;
  for (int pass = 0; pass < 2; pass++)
    for (int a = 0; a < b->k->axis.n; a++) {
      if (b->k->axis.at[a].extent != want || (kept >> a & 1)) continue;
      reduced_coords(b, n, at, nvf_ix_add(b->s, base, nvf_axis_ix(b, a)), e);
      if (pass ? (int)(b->k->reduced >> a & 1) : is_made_before(b, n->in[0], e)) return a;
    }
  return -1;
}

void nvf_bound_kernel(builder *b, nvf_ix e, nvf_prod n) {
  for (int i = 0; i < b->k->valid.n; i++)
    if (b->k->valid.at[i].e == e && b->k->valid.at[i].n == n) return;
  NVB_PUSH(b->a, b->k->valid, ((nvf_bound){ e, n }));
}

static int of_reduction(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node), *x = nvf_node_of(b, n->in[0]);
  int a0 = (int)n->attr[0], run = (int)n->attr[1], nz = 0;
  nvf_prod len = 0, dims[NVM_MAX_RANK];
  nvf_ix *e = nvf_coords(b, x->rank);
  for (int d = a0; d < a0 + run; d++) {
    len = nvf_mul(b->s, len, x->dim[d]);
    if (x->dim[d]) dims[nz++] = x->dim[d];
  }
  if (nvf_value(b->s, len) == 0) return add_expr(b, (nvf_iexpr){ .kind = NVF_ICONST, .node = node });
  count_reduction(b, n);
  uint64_t kept = guard_axes(b, guard);
  for (int d = 0; d < n->rank; d++) kept |= nvf_ix_axes(b->s, at[d]);
  if (!n->block && nz > 1) ask_merge(b, len, nz, dims, kept);
  nvf_prod want = n->block ? nvf_int(b->s, n->block) : len;
  nvf_ix base = n->block ? nvf_ix_mul(b->s, at[a0], want, 1) : 0;
  int a = reduced_axis(b, n, at, base, want, kept);
  if (a < 0) ask_shape(b, n, at);
  else if (!kept && x->size <= NVF_SMALL && !(b->k->reduced >> a & 1) && b->k->axis.n > 1) {
    b->ask.apart = 1;
    a = b->form->apart ? -1 : a;
  }
  a = a < 0 ? nvf_axis_new(b, want) : a;
  nvf_ix r = nvf_ix_add(b->s, base, nvf_axis_ix(b, a));
  reduced_coords(b, n, at, r, e);
  uint64_t axes = 1ull << a;
  if (n->block && nvf_value(b->s, len) % n->block) {
    axes |= nvf_ix_axes(b->s, r); /* the last part is shorter, even if all elements are the same value */
    nvf_bound_kernel(b, r, len);
  } else if (n->block) nvf_rely(b->s, (nvf_fact){ NVF_MULTIPLE, len, 0, n->block });
  int *arg = NVB_NEWN(b->a, int, n->nin + 1);
  for (int i = 0; i < n->nin; i++) axes |= axes_of(b, arg[i] = nvf_iexpr_at(b, n->in[i], e, guard, 0));
  for (int i = 0; i < n->nin; i++) arg[i] = over_axes(b, arg[i], axes);
  b->k->reduced |= 1ull << a;
  int v = add_expr(
      b, (nvf_iexpr){
             .kind = NVF_IRED, .node = node, .narg = n->nin, .arg = arg, .axis = a, .axes = axes & ~(1ull << a) });
  NVB_PUSH(b->a, b->red, v);
  return v;
}

static int of_scan(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  nvf_ix along = at[n->attr[0]];
  if (!along) return nvf_iexpr_at(b, n->in[0], at, guard, 0);
  int a = nvf_ix_single_axis(b->s, along);
  if (a < 0 || guard) nvf_illegal(b, "a scan runs along a whole axis");
  count_reduction(b, n);
  int *arg = NVB_NEWN(b->a, int, n->nin + 1);
  uint64_t axes = 1ull << a;
  for (int i = 0; i < nvf_states(n); i++) axes |= axes_of(b, arg[i] = nvf_iexpr_at(b, n->in[i], at, guard, 0));
  for (int i = 0; i < nvf_states(n); i++) arg[i] = over_axes(b, arg[i], axes);
  if (n->block) { /* the carry of the first segment; the emitter adds the segment's number */
    nvf_ix *e = nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at);
    e[n->attr[0]] = 0;
    arg[n->nin - 1] = nvf_iexpr_at(b, n->in[n->nin - 1], e, 0, 0);
    if (b->k->expr.at[arg[n->nin - 1]].kind != NVF_ILOAD) nvf_illegal(b, "a scan and what it goes on from");
  }
  b->k->reduced |= 1ull << a;
  return add_expr(b,
                  (nvf_iexpr){ .kind = NVF_ISCAN, .node = node, .narg = n->nin, .arg = arg, .axis = a, .axes = axes });
}

/* The first transform, along axis a; of real numbers, whose operand has another extent. */
static void first_transform(builder *b, const nvf_node *n, int a) {
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  int from = n->attr[0] == NVG_DFT_REAL ? nvf_axis_new(b, x->dim[x->rank - 1]) : a;
  b->k->transforms = NVB_NEW(b->a, nvf_transforms);
  *b->k->transforms = (nvf_transforms){ .axis = a, .from = from, .points = n->attr[1], .passes = *n->passes };
  b->k->reduced |= 1ull << a | 1ull << from;
}

/* A transform along an axis: its operand has the same coordinates, or those of the real numbers. */
static int of_transform(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  int a = nvf_ix_single_axis(b->s, at[n->rank - 1]), real = n->attr[0] == NVG_DFT_REAL;
  if (!n->passes) nvf_illegal(b, "a routine is a step of its own");
  if (a < 0 || guard) nvf_illegal(b, "a transform runs along a whole axis");
  if (b->k->dot || b->k->attention) nvf_illegal(b, "a matrix product and a transform are two kernels");
  if (!b->k->transforms) first_transform(b, n, a);
  nvf_transforms *t = b->k->transforms;
  if (t->axis != a || real != (t->from != a) || t->points != n->attr[1] || t->count == NVF_TRANSFORMS)
    nvf_illegal(b, "transforms along two axes, or too many");
  nvf_ix *to = nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at);
  if (real) to[n->rank - 1] = nvf_axis_ix(b, t->from);
  uint64_t axes = 0, operand = 0;
  for (int d = 0; d < n->rank; d++) {
    axes |= nvf_ix_axes(b->s, at[d]);
    operand |= nvf_ix_axes(b->s, to[d]);
  }
  int arg = over_axes(b, nvf_iexpr_at(b, n->in[0], to, 0, 0), operand);
  nvf_iexpr i = { .kind = NVF_IDFT, .node = node, .narg = 1, .arg = copy_args(b, 1, &arg), .axis = a, .axes = axes };
  return t->expr[t->count++] = add_expr(b, i);
}

/* the axis with coefficient 1 in the index, which is the inner one if the dimension is split; -1: none */
static int inner_axis(const builder *b, nvf_ix e) {
  int n, found = -1;
  const nvf_term *t = nvf_ix_terms(b->s, e, &n);
  for (int i = 0; i < n; i++)
    if (nvf_ix_atom(b->s, t[i].atom)->kind == NVF_AT_AXIS && t[i].c == 1 && !t[i].by)
      found = nvf_ix_atom(b->s, t[i].atom)->id;
  return found;
}

/* Builds the axes of the first GEMM: k is an axis of its own, which the kernel walks; m and n are those of the
   result. */
static nvf_dot *first_gemm(builder *b, const nvf_node *n, const nvf_ix *at) {
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  int last = n->rank - 1;
  if (!x->dim[last]) /* the evaluation graph has no such GEMM */
    nvf_illegal(b, "a matrix product over one element is a map");
  b->gemm = n;
  b->gemm_at = at;
  b->k->dot = NVB_NEW(b->a, nvf_dot);
  *b->k->dot = (nvf_dot){ .m = inner_axis(b, at[last - 1]),
                          .n = inner_axis(b, at[last]),
                          .nregion = NVF_EPILOGUE + 1,
                          .k = nvf_axis_new(b, x->dim[last]) };
  b->k->reduced |= 1ull << b->k->dot->k;
  return b->k->dot;
}

/* A further GEMM shares the loop of the first, so it must have the same axes and dtypes. */
static nvf_dot *next_gemm(builder *b, const nvf_node *n, const nvf_ix *at) {
  const nvf_node *o = b->gemm, *x = nvf_node_of(b, n->in[0]), *y = nvf_node_of(b, o->in[0]);
  if (n->rank != o->rank || memcmp(at, b->gemm_at, (size_t)n->rank * sizeof *at))
    nvf_illegal(b, "a matrix product is read at other coordinates than it is made");
  if (nvf_value(b->s, x->dim[n->rank - 1]) != nvf_value(b->s, y->dim[n->rank - 1]) || x->dtype != y->dtype ||
      n->dtype != o->dtype || n->attr[1] != o->attr[1])
    nvf_illegal(b, "two products of different kinds");
  if (b->k->dot->count == NVF_DOTS) nvf_illegal(b, "more products than registers hold");
  return b->k->dot;
}

/* The region of an operand; *news counts regions that did not exist. */
static int region_of(nvf_dot *dot, int inst, int right, int *news) {
  int z = NVF_EPILOGUE + 1;
  while (z < dot->nregion && (dot->of[z] != inst || dot->right[z] != right)) z++;
  if (z == dot->nregion) {
    ++*news;
    if (z < NVF_REGIONS) dot->of[dot->nregion] = inst, dot->right[dot->nregion++] = right;
  }
  return z;
}

static int expr_of_gemm(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  int last = n->rank - 1, arg[2], zone[2], news = 0;
  if (guard) nvf_illegal(b, "a matrix product is read under a condition");
  if (b->k->attention) nvf_illegal(b, "attention and another matrix product are two kernels");
  nvf_dot *dot = (b->k->dot ? next_gemm : first_gemm)(b, n, at);
  size_t bytes = (size_t)(n->rank + 1) * sizeof *at;
  nvf_ix *e[2] = { nvb_dup(b->a, at, bytes), nvb_dup(b->a, at, bytes) };
  e[0][last] = e[1][last - 1] = nvf_axis_ix(b, dot->k);
  uint64_t axes = 0;
  for (int d = 0; d < n->rank; d++) axes |= nvf_ix_axes(b->s, at[d]);
  for (int i = 0; i < 2; i++) {
    arg[i] = nvf_iexpr_at(b, n->in[i], e[i], 0, 0);
    zone[i] = region_of(dot, arg[i], i, &news);
  }
  if (dot->count && news > 1) nvf_illegal(b, "two products that have no operand in common");
  memcpy(dot->region[dot->count], zone, sizeof zone);
  nvf_iexpr i = {
    .kind = NVF_IDOT, .node = node, .narg = 2, .arg = copy_args(b, 2, arg), .axis = dot->k, .axes = axes
  };
  return dot->expr[dot->count++] = add_expr(b, i);
}

/* ---- attention */
static int add_product(builder *b, int node, const nvf_ix *at, int left, int right, int axis) {
  const int arg[2] = { left, right };
  uint64_t axes = 0;
  for (int d = 0; d < nvf_node_of(b, node)->rank; d++) axes |= nvf_ix_axes(b->s, at[d]);
  nvf_iexpr i = { .kind = NVF_IDOT, .node = node, .narg = 2, .arg = copy_args(b, 2, arg), .axis = axis, .axes = axes };
  return add_expr(b, i);
}

/* An operand of a product, with one coordinate replaced by an axis. */
static int operand_at(builder *b, int node, int rank, const nvf_ix *at, int d, int axis) {
  nvf_ix *e = nvb_dup(b->a, at, (size_t)(rank + 1) * sizeof *at);
  e[d] = nvf_axis_ix(b, axis);
  return nvf_iexpr_at(b, node, e, 0, 0);
}

/* The product of scores: over the axes of queries and of keys. */
static int of_scores(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  nvf_attention *t = b->k->attention;
  int last = n->rank - 1;
  if (!t || guard || t->first >= 0 || nvf_ix_single_axis(b->s, at[last - 1]) != t->m ||
      nvf_ix_single_axis(b->s, at[last]) != t->k)
    nvf_illegal(b, "scores of an attention are read at other coordinates");
  t->depth = nvf_axis_new(b, nvf_node_of(b, n->in[0])->dim[last]);
  b->k->reduced |= 1ull << t->depth;
  t->of[NVF_QUERIES] = operand_at(b, n->in[0], n->rank, at, last, t->depth);
  t->of[NVF_KEYS] = operand_at(b, n->in[1], n->rank, at, last - 1, t->depth);
  return t->first = add_product(b, node, at, t->of[NVF_QUERIES], t->of[NVF_KEYS], t->depth);
}

static int of_attention(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  int last = n->rank - 1;
  if (b->k->dot || b->k->attention || guard) nvf_illegal(b, "attention is a kernel of its own");
  nvf_attention *t = b->k->attention = NVB_NEW(b->a, nvf_attention);
  *t = (nvf_attention){ .m = nvf_ix_single_axis(b->s, at[last - 1]),
                        .n = nvf_ix_single_axis(b->s, at[last]),
                        .k = nvf_axis_new(b, nvf_node_of(b, n->in[0])->dim[last]),
                        .first = -1 };
  if (t->m < 0 || t->n < 0) nvf_illegal(b, "attention is read at other coordinates than it is made");
  b->k->reduced |= 1ull << t->k;
  t->of[NVF_ATTENDED] = operand_at(b, n->in[0], n->rank, at, last, t->k);
  if (t->first < 0) nvf_illegal(b, "scores of an attention that no product makes");
  t->of[NVF_VALUES] = operand_at(b, n->in[1], n->rank, at, last - 1, t->k);
  return t->second = add_product(b, node, at, t->of[NVF_ATTENDED], t->of[NVF_VALUES], t->k);
}

static int of_call(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  return nvf_is_attention(b->graph, n) ? of_attention(b, node, at, guard)
         : n->inner                    ? of_scores(b, node, at, guard)
                                       : expr_of_gemm(b, node, at, guard);
}

static int of_gather(builder *b, const nvf_node *n, const nvf_ix *at, int guard) {
  if (b->k->dot || b->k->attention) nvf_illegal(b, "a matrix product and a gather are two kernels");
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  int axis = (int)n->attr[0], index = nvf_iexpr_at(b, n->in[1], at, guard, 0), c = 0;
  uint64_t axes = axes_of(b, index) | guard_axes(b, guard);
  nvf_ix *e = nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at);
  while (c < b->k->check.n &&
         (b->k->check.at[c].expr != index || b->k->check.at[c].n != x->dim[axis] || b->k->check.at[c].guard != guard))
    c++;
  if (c == b->k->check.n)
    NVB_PUSH(b->a, b->k->check, ((nvf_check){ index, x->dim[axis], guard, axes, n->name, n->attr[1] }));
  e[axis] = nvf_ix_tile(b->s, c, x->dim[axis], axes);
  nvf_bound in = { e[axis], x->dim[axis] };
  return nvf_iexpr_at(b, n->in[0], e, guard_join(b, guard, 1, &in), 0);
}

static int of_kind(builder *b, int node, const nvf_ix *at, int guard) {
  const nvf_node *n = nvf_node_of(b, node);
  const nvf_ix *e;
  switch (n->kind) {
  case NVG_VCONST: return add_expr(b, (nvf_iexpr){ .kind = NVF_ICONST, .node = node });
  case NVG_VIOTA:
    return add_expr(
        b, (nvf_iexpr){
               .kind = NVF_IINDEX, .node = node, .at = at[n->attr[0]], .axes = nvf_ix_axes(b->s, at[n->attr[0]]) });
  case NVG_VRESHAPE:
    return e = nvf_reshaped(b, n, at, nvf_node_of(b, n->in[0])), nvf_iexpr_at(b, n->in[0], e, guard, 0);
  case NVG_VPERMUTE: case NVG_VEXPAND: return e = coords_through(b, n, at), nvf_iexpr_at(b, n->in[0], e, guard, 0);
  case NVG_VSLICE: return of_slice(b, n, at, guard);
  case NVG_VROLL: case NVG_VPAD: case NVG_VCONCAT: return of_select(b, n, at, guard);
  case NVG_VRED: return of_reduction(b, node, at, guard);
  case NVG_VSCAN: return of_scan(b, node, at, guard);
  case NVG_VGATHER: return of_gather(b, n, at, guard);
  case NVG_VCALL: return of_call(b, node, at, guard);
  case NVG_VMAP: return of_map(b, node, at, guard);
  case NVG_VROUTINE: return of_transform(b, node, at, guard);
  case NVG_VPICK: {
    int r = nvf_iexpr_at(b, n->in[0], at, guard, 0);
    return add_expr(b, (nvf_iexpr){ .kind = NVF_IPICK,
                                    .node = node,
                                    .narg = 1,
                                    .arg = copy_args(b, 1, &r),
                                    .pick = (int)n->attr[0],
                                    .axes = axes_of(b, r) });
  }
  default: nvf_illegal(b, "an operation that no kernel can hold");
  }
}

static int is_root(const builder *b, int node) {
  for (int i = 0; i < b->k->nroot; i++)
    if (b->k->root[i] == node) return 1;
  return 0;
}

/* Enforces the limits of a kernel that grow along a chain of values, so that a longer chain is cut. */
static void hold_limits(builder *b, int node, const nvf_ix *at) {
  const nvf_node *n = nvf_node_of(b, node);
  if (b->depth == MOST_DEPTH) nvf_illegal(b, "too many operations one after the other");
  b->again += b->met[node] == b->now;
  if (b->again > MOST_AGAIN) nvf_illegal(b, "too much is computed again");
  b->met[node] = b->now;
  for (int d = 0; d < n->rank; d++) {
    int terms;
    nvf_ix_terms(b->s, at[d], &terms);
    if (terms > MOST_TERMS) nvf_illegal(b, "an index of too many terms");
    b->graph->built += terms / 4; /* long indices add to the effort of the search */
  }
}

int nvf_iexpr_at(builder *b, int node, const nvf_ix *at, int guard, int force) {
  const nvf_node *n = nvf_node_of(b, node);
  nvf_ix none[1] = { 0 };
  if (n->rank == 0) at = none;
  if (n->apart && !force && (!nvf_has(b->stored, node) || is_root(b, node)))
    nvf_illegal(b, n->kind == NVG_VRED ? "partials of spectra are merged when all are there"
                                       : "transforms along two axes, or too many");
  guard = needed_guard(b, n, at, guard);
  key q;
  size_t size = key_of(&q, node, n->rank, at, guard);
  const int *known = nvb_map_find(b->known, &q, size);
  if (known) return *known;
  hold_limits(b, node, at);
  int elsewhere = n->kind == NVG_VLEAF || (nvf_has(b->stored, node) && !force && !is_root(b, node)), v;
  /* a GEMM takes its axes from its coordinates */
  if (!elsewhere && n->must && n->kind != NVG_VCALL && !is_whole_value(b, n, at))
    nvf_illegal(b, "read at other coordinates than it is made");
  b->depth++;
  v = elsewhere ? add_load(b, node, at, guard) : of_kind(b, node, at, guard);
  b->depth--;
  *nvb_map_put(b->known, &q, size, NULL) = v;
  NVB_PUSH(b->a, b->memo, ((nvf_memo){ node, guard, v, nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at) }));
  return v;
}
