/* Builds a fusion from its roots: it decides which axes the kernel has and where its further roots lie on them. A
   kernel with a GEMM has the GEMM's axes; any other has those of its first root, some of them merged where a reduction
   needs them as one axis. It never prices a fusion (cost.c does). */
#include <stdlib.h>
#include <string.h>
#include "frag/dtype.h"
#include "fusion/iexpr.h"

typedef nvf_builder builder;

/* ---- coordinates of roots */
static const nvf_ix *root_coords(builder *b, const nvf_node *n, int first) {
  nvf_ix *at = nvf_coords(b, n->rank);
  int nd = 0, dims[NVM_MAX_RANK + 1];
  if (first && b->form->rank) {
    nvf_ix e[NVM_MAX_RANK + 1];
    for (int d = 0; d < b->form->rank; d++) e[d] = nvf_axis_ix(b, nvf_axis_new(b, b->form->dim[d]));
    nvf_ix_unlinear(b->s, nvf_ix_linear(b->s, b->form->rank, e, b->form->dim), n->rank, n->dim, at);
    return at;
  }
  for (int d = 0; d < n->rank; d++)
    if (n->dim[d]) dims[nd++] = d;
  for (int i = 0; i < nd;) {
    nvf_prod run[NVM_MAX_RANK + 1], all = n->dim[dims[i]];
    nvf_ix e[NVM_MAX_RANK + 1];
    int j = i, m = 0;
    run[m++] = all;
    for (int go = first; go && j + 1 < nd; j += go) {
      go = 0;
      for (int q = 0; q < b->form->nmerge; q++)
        go |= b->form->merged[q].dim == dims[j] && b->form->merged[q].a == n->dim[dims[j]] &&
              b->form->merged[q].b == n->dim[dims[j + 1]];
      if (go) all = nvf_mul(b->s, all, run[m++] = n->dim[dims[j + 1]]);
    }
    nvf_ix_unlinear(b->s, nvf_axis_ix(b, nvf_axis_new(b, all)), m, run, e);
    for (int q = 0; q < m; q++) at[dims[i + q]] = e[q];
    i = j + 1;
  }
  if (first) {
    b->ndim = nd;
    memcpy(b->dims, dims, sizeof dims);
    b->root_dim = n->dim;
    b->root_at = at;
  }
  return at;
}

/* The number of values of an index that is a mixed radix of whole axes; -1 if it is not. */
static nvf_prod mixed_radix(const builder *b, nvf_ix e) {
  int n;
  const nvf_term *t = nvf_ix_terms(b->s, e, &n);
  nvf_prod have = 0;
  for (int left = n; left; left--) {
    int at = -1;
    for (int i = 0; i < n && at < 0; i++)
      if (nvf_ix_atom(b->s, t[i].atom)->kind == NVF_AT_AXIS &&
          t[i].c * nvf_value(b->s, t[i].by) == nvf_value(b->s, have))
        at = i;
    if (at < 0) return -1;
    nvf_rely(b->s, (nvf_fact){ NVF_EQUAL, nvf_mul(b->s, t[at].by, nvf_int(b->s, t[at].c)), have, 0 });
    have = nvf_mul(b->s, have, nvf_ix_atom(b->s, t[at].atom)->by);
  }
  return have;
}

/* Whether a mixed radix has n values. */
static int has_values(const builder *b, nvf_prod have, nvf_prod n) {
  if (have < 0 || nvf_value(b->s, have) != nvf_value(b->s, n)) return 0;
  nvf_rely(b->s, (nvf_fact){ NVF_EQUAL, have, n, 0 });
  return 1;
}

/* Whether the index contains an axis of a partial reduction whose run has this length. */
static int is_padded(const builder *b, nvf_ix e, nvf_prod length) {
  for (int i = 0; i < b->red.n; i++) {
    const nvf_iexpr *r = &b->k->expr.at[b->red.at[i]];
    const nvf_node *n = nvf_node_of(b, r->node);
    nvf_prod len = 0;
    for (int64_t d = n->attr[0]; n->block && d < n->attr[0] + n->attr[1]; d++)
      len = nvf_mul(b->s, len, nvf_node_of(b, n->in[0])->dim[d]);
    if (!n->block || nvf_value(b->s, len) != nvf_value(b->s, length) || !(nvf_ix_axes(b->s, e) >> r->axis & 1))
      continue;
    nvf_rely(b->s, (nvf_fact){ NVF_EQUAL, len, length, 0 });
    return 1;
  }
  return 0;
}

static void builder_init(builder *b, nvf_fusion *k, nvf_graph *graph, const uint64_t *stored, int trial) {
  b->k = k;
  b->graph = graph;
  b->s = graph->space;
  b->a = graph->arena;
  b->stored = stored;
  b->known = nvb_map_new(graph->arena);
  b->guards = nvb_map_new(graph->arena);
  b->met = graph->met[trial];
  b->now = ++graph->trials;
  nvf_bound none = { 0 };
  nvf_guard_of(b, 0, &none);
}

/* Whether the coordinates cover all of a value (as covers() of iexpr.c), where a dimension may also be split into the
   axes of a partial reduction. */
static int is_whole_value(const builder *b, const nvf_node *n, const nvf_ix *at) {
  uint64_t used = 0;
  for (int d = 0; d < n->rank; d++) {
    if (!n->dim[d]) continue;
    if (!at[d] || !has_values(b, mixed_radix(b, at[d]), n->dim[d]) || (used & nvf_ix_axes(b->s, at[d]))) return 0;
    used |= nvf_ix_axes(b->s, at[d]);
  }
  return 1;
}

/* Tries to express the axes of the trial expression by coordinates of the kernel; returns 1 if all are found. */
static int match_axes(builder *b, const builder *t, const nvf_memo *mine, const nvf_memo *theirs, uint64_t want,
                      nvf_ix *as) {
  uint64_t have = 0, used = 0;
  for (int d = 0; d < nvf_node_of(b, mine->node)->rank; d++) {
    nvf_ix x = mine->at[d], y = theirs->at[d];
    int z = nvf_ix_single_axis(t->s, y);
    if (z < 0 || !(want >> z & 1) || (have >> z & 1)) continue;
    nvf_prod n = mixed_radix(b, x), extent = t->k->axis.at[z].extent;
    int terms;
    nvf_ix_terms(b->s, x, &terms);
    if (!has_values(b, n, extent) &&
        !(terms > 1 && n >= 0 && nvf_value(b->s, n) > t->k->axis.at[z].n && is_padded(b, x, extent)))
      continue;
    if (used & nvf_ix_axes(b->s, x)) return 0;
    used |= nvf_ix_axes(b->s, x);
    have |= 1ull << z;
    as[z] = x;
  }
  return have == want;
}

/* Coordinates of a value whose shape is the same up to extents of 1; NULL if it is not. */
static const nvf_ix *by_position(builder *b, const nvf_node *n, const nvf_node *q, const nvf_ix *at) {
  nvf_ix *e = nvf_coords(b, n->rank);
  int j = 0;
  for (int d = 0; d < n->rank; d++) {
    while (n->dim[d] && j < q->rank && !q->dim[j]) j++;
    if (n->dim[d] && (j == q->rank || q->dim[j] != n->dim[d])) return NULL;
    e[d] = n->dim[d] ? at[j++] : 0;
  }
  for (; j < q->rank; j++)
    if (q->dim[j]) return NULL;
  return e;
}

/* Expresses the axes that a root would have alone (its coordinates are then *alone) by the coordinates that the kernel
   has of a common value. Returns 0 if there is no such value. */
static int by_shared(builder *b, int root, const nvf_ix **alone, nvf_ix *as) {
  const nvf_node *n = nvf_node_of(b, root);
  builder *t = NVB_NEW(b->a, builder); /* not on the stack: it is read after a longjmp */
  nvf_fusion *trial = NVB_NEW(b->a, nvf_fusion);
  *trial = (nvf_fusion){ .graph = b->graph, .nroot = b->k->nroot, .root = b->k->root };
  t->form = b->form;
  builder_init(t, trial, b->graph, b->stored, 1);
  const nvf_ix *zx = *alone = root_coords(t, n, 0);
  uint64_t want = 0;
  for (int d = 0; d < n->rank; d++) want |= nvf_ix_axes(b->s, zx[d]);
  if (!setjmp(t->out)) nvf_iexpr_at(t, root, zx, 0, 1);
  int most = 0;
  for (int i = 0, r; i < t->memo.n; i++) {
    r = nvf_node_of(b, t->memo.at[i].node)->rank;
    most = r > most ? r : most;
  }
  for (int r = most; r >= 0 && want; r--)
    for (int i = 0; i < t->memo.n; i++) {
      const nvf_memo *m = &t->memo.at[i];
      if (nvf_node_of(b, m->node)->rank != r || m->guard) continue;
      int j = 0;
      while (j < b->memo.n && (b->memo.at[j].node != m->node || b->memo.at[j].guard)) j++;
      if (j < b->memo.n && match_axes(b, t, &b->memo.at[j], m, want, as)) return 1;
    }
  return 0;
}

/* Substitutes the axes in the coordinates. A coordinate that is a longer mixed radix has padding at its end. */
static const nvf_ix *put_in(builder *b, const nvf_node *n, const nvf_ix *alone, const nvf_ix *as) {
  nvf_ix *at = nvf_coords(b, n->rank);
  for (int d = 0; d < n->rank; d++) at[d] = alone[d] ? as[nvf_ix_single_axis(b->s, alone[d])] : 0;
  for (int d = 0; d < n->rank; d++)
    if (alone[d] && !has_values(b, mixed_radix(b, at[d]), n->dim[d])) nvf_bound_kernel(b, at[d], n->dim[d]);
  return at;
}

/* Coordinates of a further root: those of its expression if it has one; else by a value shared with the kernel; else
   those of some value of the same shape; else axes of its own. */
static const nvf_ix *align_root(builder *b, int root) {
  const nvf_node *n = nvf_node_of(b, root);
  for (int i = 0; i < b->memo.n; i++)
    if (b->memo.at[i].node == root && !b->memo.at[i].guard && is_whole_value(b, n, b->memo.at[i].at))
      return b->memo.at[i].at;
  const nvf_ix *alone;
  nvf_ix as[64];
  if (by_shared(b, root, &alone, as)) return put_in(b, n, alone, as);
  int axes = 0;
  for (int d = 0; d < n->rank; d++) axes |= alone[d] != 0;
  for (int i = b->memo.n; i-- > 0 && axes;) { /* the latest expression is nearest to a root */
    const nvf_memo *m = &b->memo.at[i];
    const nvf_ix *at = m->guard || !is_whole_value(b, nvf_node_of(b, m->node), m->at)
                           ? NULL
                           : by_position(b, n, nvf_node_of(b, m->node), m->at);
    if (at) return at;
  }
  return root_coords(b, n, 0);
}

/* ---- the fusion */
static int64_t space_of(const nvf_graph *graph, int r) {
  const nvf_node *n = &graph->node[r];
  while (nvf_is_view(n->kind) || n->kind == NVG_VPICK) n = &graph->node[n->in[0]];
  return n->kind == NVG_VRED ? graph->node[n->in[0]].size : n->size;
}

static int is_partial(const nvf_graph *graph, int r) {
  const nvf_node *n = &graph->node[r];
  return (n->block && n->kind == NVG_VRED) || (n->kind == NVG_VPICK && graph->node[n->in[0]].block);
}

/* The order of roots: partials first, since they split axes; then the largest iteration space. */
static int is_earlier_root(const nvf_graph *graph, int a, int b) {
  int64_t p[3] = { is_partial(graph, a), space_of(graph, a), graph->node[a].size };
  int64_t q[3] = { is_partial(graph, b), space_of(graph, b), graph->node[b].size };
  for (int i = 0; i < 3; i++)
    if (p[i] != q[i]) return p[i] > q[i];
  return a < b;
}

static void store_root(builder *b, int root, const nvf_ix *at) {
  const nvf_node *n = nvf_node_of(b, root);
  int v = nvf_iexpr_at(b, root, at, 0, 1);
  uint64_t axes = 0;
  for (int d = 0; d < n->rank; d++) axes |= nvf_ix_axes(b->s, at[d]);
  NVB_PUSH(b->a, b->k->put, ((nvf_put){ root, nvf_ix_linear(b->s, n->rank, at, n->dim), axes, v }));
}

/* Whether a root is a concat of values of one shape, each of which has long contiguous runs in the result. */
static int has_parts(const builder *b, const nvf_node *n) {
  enum { RUN = 64 };
  if (n->kind != NVG_VCONCAT) return 0;
  const nvf_node *x = nvf_node_of(b, n->in[0]);
  int64_t run = 1;
  for (int i = 1; i < n->nin; i++)
    if (memcmp(nvf_node_of(b, n->in[i])->dim, x->dim, (size_t)x->rank * sizeof *x->dim)) return 0;
  for (int d = (int)n->attr[0]; d < n->rank; d++) run *= nvf_value(b->s, x->dim[d]);
  return run >= RUN;
}

/* Stores each operand of a concat over the same axes, at its offset in the result. */
static void store_parts(builder *b, int root, int first) {
  const nvf_node *n = nvf_node_of(b, root), *x = nvf_node_of(b, n->in[0]);
  const nvf_ix *at = first ? root_coords(b, x, 1) : align_root(b, n->in[0]);
  nvf_ix *to = nvb_dup(b->a, at, (size_t)(n->rank + 1) * sizeof *at);
  uint64_t axes = 0;
  for (int d = 0; d < n->rank; d++) axes |= nvf_ix_axes(b->s, at[d]);
  for (int i = 0, axis = (int)n->attr[0]; i < n->nin; i++) {
    int v = nvf_iexpr_at(b, n->in[i], at, 0, 0);
    to[axis] = nvf_ix_add(b->s, at[axis], n->at[i]);
    NVB_PUSH(b->a, b->k->put, ((nvf_put){ root, nvf_ix_linear(b->s, n->rank, to, n->dim), axes, v }));
  }
}

/* Finds the GEMMs that the kernel computes; returns the first, or -1 if there is none. The product of an attention's
   scores is part of the attention. */
static int gemms_of(builder *b, uint64_t *found) {
  nvf_walk *w = &b->graph->walk;
  int first = -1;
  nvf_walk_start(w);
  for (int i = 0; i < b->k->nroot; i++) nvf_walk_to(w, b->k->root[i]);
  for (int node; (node = nvf_walk_next(w)) >= 0;) {
    const nvf_node *x = nvf_node_of(b, node);
    if (x->kind == NVG_VCALL && !x->inner) {
      nvf_put_bit(found, node);
      first = first < 0 || node < first ? node : first;
    }
    for (int i = 0; i < x->nin; i++)
      if (!nvf_has(b->stored, x->in[i])) nvf_walk_to(w, x->in[i]);
  }
  return first;
}

/* Coordinates of a partial reduction whose operand has the index part * block + an axis; NULL: it has not. */
static const nvf_ix *partial_coords(builder *b, const nvf_node *n, const nvf_ix *at) {
  int a = (int)n->attr[0];
  nvf_ix *e = nvf_coords(b, n->rank);
  for (int d = 0; d < n->rank; d++) e[d] = d == a + 1 ? 0 : at[d - (d > a)];
  e[a] = nvf_ix_div(b->s, at[a], nvf_int(b->s, n->block));
  return nvf_ix_single_axis(b->s, e[a]) < 0 ? NULL : e;
}

/* Coordinates of the nodes from the first GEMM of a kernel to its last root, NULL where they are not known. */
typedef struct located { int first; const nvf_ix **at; } located;
static const nvf_ix *coords_of(const located *l, int node) { return node < l->first ? NULL : l->at[node - l->first]; }

/* Coordinates of a node over the axes of an operand of the same size; NULL if the node does not map its elements one to
   one. */
static const nvf_ix *coords_onward(builder *b, const nvf_node *n, const located *to) {
  const nvf_node *x = NULL;
  const nvf_ix *at = NULL;
  if (n->kind == NVG_VPICK && nvf_node_of(b, n->in[0])->tiled) return coords_of(to, n->in[0]);
  for (int i = 0; i < n->nin && !at; i++)
    if (coords_of(to, n->in[i]) && (n->tiled || nvf_node_of(b, n->in[i])->size == n->size))
      x = nvf_node_of(b, n->in[i]), at = coords_of(to, n->in[i]);
  if (!at || n->kind == NVG_VMAP) return at;
  if (n->tiled) return partial_coords(b, n, at);
  if (n->kind == NVG_VRESHAPE) return nvf_reshaped(b, x, at, n);
  if (n->kind != NVG_VPERMUTE) return NULL;
  nvf_ix *e = nvf_coords(b, n->rank);
  for (int d = 0; d < n->rank; d++) e[d] = at[n->attr[d]];
  return e;
}

/* By expression: bit set of the regions that need it, the first of which stores the roots; of: by region, the
   expression that it is there for. */
static const uint8_t *regions_of(builder *b, int n, const int *of) {
  nvf_fusion *k = b->k;
  uint8_t *regions = nvb_get(b->a, (size_t)k->expr.n + 1);
  for (int i = 0; i < k->put.n; i++) regions[k->put.at[i].expr] |= 1 << NVF_EPILOGUE;
  for (int z = NVF_EPILOGUE + 1; z < n; z++) regions[of[z]] |= 1 << z;
  for (int i = k->expr.n - 1; i >= 0; i--)
    for (int j = 0; j < k->expr.at[i].narg; j++)
      regions[k->expr.at[i].arg[j]] |= k->expr.at[i].kind == NVF_IDOT ? 0 : regions[i];
  return regions;
}

/* The 8-bit float that is upcast to this operand, which has the same value; -1: there is none. */
static int f8_of(const builder *b, int i) {
  const nvf_iexpr *v = &b->k->expr.at[i];
  const nvf_node *n = nvf_node_of(b, v->node);
  if ((v->kind != NVF_ILOAD && v->kind != NVF_IMAP) || nvg_class_of(n->dtype) != NVG_FLOAT) return -1;
  if (nvg_is_f8(n->dtype)) return i;
  return v->kind == NVF_IMAP && !strcmp(n->frag->name, "cast") ? f8_of(b, v->arg[0]) : -1;
}

/* Sets the operands of all GEMMs, by region; below 0: unchanged. */
static void set_gemm_operands(builder *b, const int *of) {
  nvf_dot *dot = b->k->dot;
  for (int z = NVF_EPILOGUE + 1; z < dot->nregion; z++) dot->of[z] = of[z] < 0 ? dot->of[z] : of[z];
  for (int d = 0; d < dot->count; d++)
    for (int i = 0; i < 2; i++) b->k->expr.at[dot->expr[d]].arg[i] = dot->of[dot->region[d][i]];
}

/* Removes the upcast of 8-bit floats if tensor cores multiply them: the products are the same numbers. */
static void multiply_f8(builder *b) {
  nvf_dot *dot = b->k->dot;
  int of[NVF_REGIONS];
  if (!b->graph->caps->f8 || b->gemm->dtype != NVM_F32) return;
  for (int z = NVF_EPILOGUE + 1; z < dot->nregion; z++)
    if ((of[z] = f8_of(b, dot->of[z])) < 0) return;
  dot->f8 = 1;
  set_gemm_operands(b, of);
}

/* The int8 that is upcast to this operand, a wider float with the same value; -1: there is none. */
static int byte_of(const builder *b, int i) {
  const nvf_iexpr *v = &b->k->expr.at[i];
  const nvf_node *n = nvf_node_of(b, v->node);
  if ((v->kind != NVF_ILOAD && v->kind != NVF_IMAP) || n->dtype == NVM_I8) return n->dtype == NVM_I8 ? i : -1;
  int keeps = v->kind == NVF_IMAP && !strcmp(n->frag->name, "cast") && nvg_embeds(NVM_I8, n->dtype);
  return keeps ? byte_of(b, v->arg[0]) : -1;
}

/* Removes the upcast of an int8 operand to 16 bits if the other operand has 16 bits: the schedule upcasts it for the
   tensor cores, and the products are the same numbers. */
static void multiply_i8(builder *b) {
  nvf_dot *dot = b->k->dot;
  int of[NVF_REGIONS] = { 0 }, found = 0;
  for (int z = NVF_EPILOGUE + 1; z < dot->nregion; z++) {
    int narrow = nvg_is_narrow(nvf_node_of(b, b->k->expr.at[dot->of[z]].node)->dtype);
    of[z] = narrow ? byte_of(b, dot->of[z]) : -1;
    found |= of[z] >= 0;
  }
  for (int d = 0; d < dot->count; d++) found &= of[dot->region[d][0]] < 0 || of[dot->region[d][1]] < 0;
  if (!found || dot->f8 || !b->graph->caps->tensor || b->gemm->dtype != NVM_F32) return;
  set_gemm_operands(b, of);
}

/* The partial reduction over a GEMM's tiles that a root is, or is picked from; NULL: there is none. */
static const nvf_node *tiled_of(const builder *b, int root) {
  const nvf_node *n = nvf_node_of(b, root);
  n = n->kind == NVG_VPICK ? nvf_node_of(b, n->in[0]) : n;
  return n->tiled ? n : NULL;
}

/* The axes of a GEMM: its dimensions, of which the one that partials reduce is split into the number of the part and
   the index in it. */
static const nvf_ix *gemm_axes(builder *b, const nvf_node *n) {
  const nvf_node *t = NULL;
  for (int i = 0; i < b->k->nroot && !t; i++) t = tiled_of(b, b->k->root[i]);
  if (!t) return root_coords(b, n, 0);
  nvf_ix *at = nvf_coords(b, n->rank);
  nvf_prod block = nvf_int(b->s, t->block);
  int blocked = (int)t->attr[0];
  for (int d = 0; d < n->rank; d++) {
    at[d] = n->dim[d] ? nvf_axis_ix(b, nvf_axis_new(b, d == blocked ? t->dim[d] : n->dim[d])) : 0;
    if (d == blocked)
      at[d] = nvf_ix_add(b->s, nvf_ix_mul(b->s, at[d], block, 1), nvf_axis_ix(b, nvf_axis_new(b, block)));
  }
  if (b->graph->caps->tensor || nvf_value(b->s, n->dim[blocked]) % t->block) /* TMA needs the edge of the matrix */
    nvf_bound_kernel(b, at[blocked], n->dim[blocked]);
  return at;
}

static int same_extents(const builder *b, const nvf_node *x, const nvf_node *y) {
  for (int d = 0; x->rank == y->rank && d < x->rank; d++)
    if (nvf_value(b->s, x->dim[d]) != nvf_value(b->s, y->dim[d])) return 0;
  return x->rank == y->rank;
}

/* Builds a kernel with GEMMs: its axes are those of the results, and all roots lie over them. */
static void build_gemm(builder *b, int product, const uint64_t *products) {
  nvf_fusion *k = b->k;
  const nvf_node *first = nvf_node_of(b, product);
  int last = product;
  for (int i = 0; i < k->nroot; i++) last = k->root[i] > last ? k->root[i] : last;
  located to = { product, NVB_NEWN(b->a, const nvf_ix *, last - product + 1) };
  to.at[0] = gemm_axes(b, first);
  uint64_t all = nvf_all_axes(k);
  nvf_iexpr_at(b, product, to.at[0], 0, 1);
  for (int i = product + 1; i <= last; i++) {
    const nvf_node *n = nvf_node_of(b, i);
    to.at[i - product] = nvf_has(products, i) && same_extents(b, n, first) ? to.at[0] : coords_onward(b, n, &to);
  }
  for (int i = 0; i < k->nroot; i++) {
    const nvf_node *n = nvf_node_of(b, k->root[i]);
    const nvf_ix *at = coords_of(&to, k->root[i]);
    if (n->size) store_root(b, k->root[i], at ? at : align_root(b, k->root[i]));
    if (n->size && k->put.at[k->put.n - 1].axes != (tiled_of(b, k->root[i]) ? all & ~k->reduced : all))
      nvf_illegal(b, "a matrix product and a value of another shape");
  }
  if (k->attention) {
    k->attention->regions = regions_of(b, NVF_PARTS_OF_ATTENTION, k->attention->of);
    return;
  }
  multiply_f8(b);
  multiply_i8(b);
  k->dot->regions = regions_of(b, k->dot->nregion, k->dot->of);
}

/* Builds a scatter kernel over the positions: it enters 1 + the number of a position at the index that the position
   holds. */
static void build_scatter(builder *b, int root) {
  const nvf_node *n = nvf_node_of(b, root), *x = nvf_node_of(b, n->in[0]);
  const nvf_ix *at = root_coords(b, x, 1);
  int index = nvf_iexpr_at(b, n->in[0], at, 0, 0);
  if (b->k->dot) nvf_illegal(b, "a scatter at indices that a matrix product computes");
  if (!nvf_has(b->stored, n->in[1])) nvf_illegal(b, "a scatter into zeros that nobody stores");
  uint64_t axes = nvf_ix_axes(b->s, at[0]);
  nvf_iexpr number = {
    .kind = NVF_IINDEX, .node = root, .at = nvf_ix_add(b->s, at[0], nvf_ix_int(b->s, 1)), .axes = axes
  };
  NVB_PUSH(b->a, b->k->expr, number);
  NVB_PUSH(b->a, b->k->check, ((nvf_check){ index, n->dim[0], 0, axes, n->name, 0 }));
  nvf_ix to = nvf_ix_tile(b->s, b->k->check.n - 1, n->dim[0], axes);
  NVB_PUSH(b->a, b->k->put, ((nvf_put){ root, to, axes, b->k->expr.n - 1 }));
}

/* Builds a routine: loads without addresses and one store, because the routine itself decides what it reads and
   writes. */
static void build_routine(builder *b) {
  nvf_fusion *k = b->k;
  if (k->nroot > 1) nvf_illegal(b, "a routine is a step of its own");
  const nvf_node *n = nvf_node_of(b, k->root[0]);
  for (int i = 0; i < n->nin; i++) {
    if (nvf_node_of(b, n->in[i])->kind != NVG_VLEAF && !nvf_has(b->stored, n->in[i]))
      nvf_illegal(b, "a routine of what is not in memory");
    NVB_PUSH(b->a, k->expr, ((nvf_iexpr){ .kind = NVF_ILOAD, .node = n->in[i] }));
  }
  k->routine = 1;
  NVB_PUSH(b->a, k->put, ((nvf_put){ .node = k->root[0] }));
}

/* Stores the part that was written over what was there before. */
static void build_write(builder *b, int root, int base) {
  const nvf_node *n = nvf_node_of(b, root), *x = nvf_node_of(b, n->in[0]);
  const nvf_ix *at = root_coords(b, x, 1);
  nvf_ix *to = nvf_coords(b, n->rank);
  uint64_t axes = 0;
  for (int d = 0; d < n->rank; d++) {
    to[d] = nvf_ix_add(b->s, at[d], n->at[d]);
    axes |= nvf_ix_axes(b->s, at[d]);
  }
  int v = nvf_iexpr_at(b, n->in[0], at, 0, 0);
  b->k->over = 1 + base;
  NVB_PUSH(b->a, b->k->put, ((nvf_put){ root, nvf_ix_linear(b->s, n->rank, to, n->dim), axes, v }));
}

static void build_expressions(builder *b) {
  nvf_fusion *k = b->k;
  for (int i = 0; i < k->nroot; i++)
    if (nvf_node_of(b, k->root[i])->kind == NVG_VROUTINE && !nvf_node_of(b, k->root[i])->passes) {
      build_routine(b);
      return;
    }
  for (int i = 0; i < k->nroot; i++)
    if (nvf_node_of(b, k->root[i])->kind == NVG_VSCATTER) {
      if (k->nroot > 1) nvf_illegal(b, "a scatter is a kernel of its own");
      build_scatter(b, k->root[i]);
      return;
    }
  uint64_t *products = b->graph->ngemm ? NVB_NEWN(b->a, uint64_t, b->graph->n / 64 + 1) : NULL;
  int product = products ? gemms_of(b, products) : -1;
  if (product >= 0) {
    build_gemm(b, product, products);
    return;
  }
  int base = k->nroot == 1 ? nvf_may_overwrite(b->graph, nvf_node_of(b, k->root[0])) : -1;
  if (base >= 0 && nvf_has(b->stored, base)) {
    build_write(b, k->root[0], base);
    return;
  }
  for (int i = 0; i < k->nroot; i++) {
    const nvf_node *n = nvf_node_of(b, k->root[i]);
    if (!n->size) continue;
    int first = !i || !b->memo.n, parts = has_parts(b, n);
    b->ask.parts |= parts;
    if (parts && b->form->parts) store_parts(b, k->root[i], first);
    else store_root(b, k->root[i], first ? root_coords(b, n, 1) : align_root(b, k->root[i]));
  }
}

static int compare_ints(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void note_reads(nvf_fusion *k) {
  nvf_walk *w = &k->graph->walk;
  const nvf_node *n = &k->graph->node[k->root[0]];
  nvf_walk_start(w);
  for (int i = 0; i < k->expr.n; i++)
    if (k->expr.at[i].kind == NVF_ILOAD) nvf_walk_to(w, k->expr.at[i].node);
  if (n->kind == NVG_VSCATTER || k->over) nvf_walk_to(w, n->in[1]);
  k->nread = w->n;
  k->read = nvb_dup(k->graph->arena, w->stack, (size_t)(w->n + 1) * sizeof *w->stack);
  qsort(k->read, (size_t)k->nread, sizeof *k->read, compare_ints);
}

/* Builds one fusion, and again with more dimensions of the root merged each time a reduction asks for it. */
static nvf_fusion *build_fusion(builder *b, nvf_graph *graph, const int *root, int nroot, const uint64_t *stored,
                                nvf_form *f, const char **why) {
  for (volatile int round = 0; round < 12; round++) {
    memset(b, 0, sizeof *b);
    nvf_fusion *k = NVB_NEW(graph->arena, nvf_fusion);
    *k = (nvf_fusion){ .graph = graph, .nroot = nroot, .root = root };
    b->form = f;
    builder_init(b, k, graph, stored, 0);
    int left = setjmp(b->out);
    if (!left) {
      build_expressions(b);
      const char *impossible = b->k->transforms ? nvf_transform_stages(b->k) : NULL;
      if (impossible) nvf_illegal(b, impossible);
      note_reads(b->k);
      nvf_assess(b->k);
      return b->k;
    }
    if (left == ILLEGAL) {
      *why = b->why;
      return NULL;
    }
  }
  *why = "axes do not merge";
  return NULL;
}

nvf_fusion *nvf_fusion_new(nvf_graph *graph, const int *root, int nroot, const uint64_t *stored, const char **why) {
  nvb_arena *a = graph->arena;
  int *order = nvb_dup(a, root, (size_t)nroot * sizeof *root);
  const char *not;
  for (int i = 1; i < nroot; i++)
    for (int j = i; j > 0 && is_earlier_root(graph, order[j], order[j - 1]); j--) {
      int swap = order[j];
      order[j] = order[j - 1];
      order[j - 1] = swap;
    }
  builder *b = NVB_NEW(a, builder);
  nvf_fusion *k = build_fusion(b, graph, order, nroot, stored, NVB_NEW(a, nvf_form), why);
  if (!b->ask.rank && !b->ask.apart && !b->ask.parts) return k;
  nvf_fusion *other = build_fusion(b, graph, order, nroot, stored, nvb_dup(a, &b->ask, sizeof b->ask), &not);
  return other && (!k || other->time < k->time) ? other : k;
}
