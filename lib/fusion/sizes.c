/* The sizes of a graph as symbols: it decides the symbol of each dimension and which symbols the graph proves equal. A
   proof is: operands of one operation, matching runs of a reshape, or a stride that is the next stride times its size.
   */
#include "fusion/planner.h"
#include <stdlib.h>
#include <string.h>

/* the dimensions that were merged into a product, in order */
typedef struct run { int n; nvf_prod f[NVM_MAX_RANK]; } run;
typedef struct sizer {
  nvb_arena *a;
  const nvg_graph *g;
  nvf_space *s;
  nvf_prod **dim, **sym; /* sym: by value, the products that at[] is made of; NONE for 0, LAST for "extent - 1" */
  nvb_map *runs;         /* product -> index of its run */
  NVB_VEC(run) run;
} sizer;
enum { NONE = -1, LAST = -2 };

static nvf_prod fresh_size(sizer *z, int64_t value) { return value == 1 ? 0 : nvf_symbol(z->s, value); }
static nvf_prod offset_symbol(sizer *z, int64_t value) { return value ? nvf_symbol(z->s, value) : NONE; }

/* Replaces merged dimensions by their factors; returns the number of dimensions. */
static int expand_factors(sizer *z, int n, const nvf_prod *d, nvf_prod *out) {
  int m = 0;
  for (int i = 0; i < n; i++) {
    nvf_prod p = nvf_proved(z->s, d[i]);
    const int *r = p ? nvb_map_find(z->runs, &p, sizeof p) : NULL;
    if (p && !r) out[m++] = p;
    for (int j = 0; r && j < z->run.at[*r].n; j++) out[m++] = z->run.at[*r].f[j];
  }
  return m;
}

static void remember_factors(sizer *z, nvf_prod p, int n, const nvf_prod *f) {
  if (n < 2 || n > NVM_MAX_RANK || nvb_map_find(z->runs, &p, sizeof p)) return;
  int *at = nvb_map_put(z->runs, &p, sizeof p, NULL);
  run r = { .n = n };
  memcpy(r.f, f, (size_t)n * sizeof *f);
  *at = z->run.n;
  NVB_PUSH(z->a, z->run, r);
}

static nvf_prod product_of(sizer *z, int n, const nvf_prod *f) {
  nvf_prod p = 0;
  for (int i = 0; i < n; i++) p = nvf_mul(z->s, p, f[i]);
  return p;
}

/* Refines a run of a reshape in which the borders of both sides divide each other, so that both are products of the
   factors between borders (64 x 32 to 8 x 256: 8 x 8 x 32). Returns 0, and does nothing, for any other run. */
static int refine_run(sizer *z, int n, const nvf_prod *old, int m, const int *at, const int64_t *shape, nvf_prod *to) {
  int64_t size[2 * NVM_MAX_RANK];
  int side[2][2 * NVM_MAX_RANK], count = 0; /* by factor, the last one first: its dimension on each side */
  if (n + m > 2 * NVM_MAX_RANK) return 0;
  for (int i = n - 1, j = m - 1, end = 0; !end; count++) {
    int64_t p = nvf_value(z->s, old[i]), q = shape[at[j]];
    for (int k = 0; k < count; k++) {
      p /= side[0][k] == i ? size[k] : 1;
      q /= side[1][k] == j ? size[k] : 1;
    }
    if (p % q && q % p) return 0;
    size[count] = p < q ? p : q;
    side[0][count] = i;
    side[1][count] = j;
    end = i == 0 && j == 0 && p == q;
    i -= p <= q;
    j -= q <= p;
  }
  nvf_prod factor[2][2 * NVM_MAX_RANK], f[2 * NVM_MAX_RANK];
  int many[2] = { 0 };
  for (int k = count; k--;)
    f[k] = size[k] == nvf_value(z->s, old[side[0][k]]) ? old[side[0][k]] : nvf_symbol(z->s, size[k]);
  for (int way = 0; way < 2; way++)
    for (int k = count; k--;) {
      factor[way][many[way]++] = f[k];
      if (k && side[way][k - 1] == side[way][k]) continue;
      nvf_prod all = product_of(z, many[way], factor[way]);
      if (way) to[at[side[way][k]]] = all;
      else nvf_same(z->s, old[side[way][k]], all);
      remember_factors(z, nvf_proved(z->s, all), many[way], factor[way]);
      many[way] = 0;
    }
  return 1;
}

/* Splits the old and new dimensions of a reshape into the shortest runs with equal products. */
static void reshape_sizes(sizer *z, const nvg_val *v, const nvg_val *x, const nvf_prod *from, nvf_prod *to) {
  nvf_prod old[NVM_MAX_RANK * NVM_MAX_RANK], made[NVM_MAX_RANK];
  int n = v->size ? expand_factors(z, x->rank, from, old) : 0, j = 0;
  for (int d = 0; d < v->rank; d++) to[d] = v->shape[d] == 1 ? 0 : n ? -1 : fresh_size(z, v->shape[d]);
  for (int i = 0; i < n;) {
    while (v->shape[j] == 1) j++;
    int i0 = i, j0 = j, m = 0;
    int64_t p = nvf_value(z->s, old[i++]), q = v->shape[j++];
    while (p != q)
      if (p < q) p *= nvf_value(z->s, old[i++]);
      else q *= v->shape[j++];
    nvf_prod all = product_of(z, i - i0, old + i0);
    for (int k = j0; k < j; k++)
      if (v->shape[k] != 1) made[m++] = k;
    if (m == 1) {
      to[made[0]] = all;
      remember_factors(z, nvf_proved(z->s, all), i - i0, old + i0);
      continue;
    }
    if (i - i0 > 1 && refine_run(z, i - i0, old + i0, m, made, v->shape, to)) continue;
    for (int k = 0; k < m; k++) made[k] = to[made[k]] = nvf_symbol(z->s, v->shape[made[k]]);
    nvf_same(z->s, all, product_of(z, m, made));
    remember_factors(z, nvf_proved(z->s, product_of(z, m, made)), m, made);
  }
}

static void unify_sizes(sizer *z, int v, int w, int except) {
  const nvg_val *x = &z->g->v[v], *y = &z->g->v[w];
  for (int d = 0; d < x->rank && x->rank == y->rank; d++)
    if (d != except && x->shape[d] == y->shape[d]) nvf_same(z->s, z->dim[v][d], z->dim[w][d]);
}

static void copy_dims(sizer *z, int v, int from) {
  const nvg_val *x = &z->g->v[v], *y = &z->g->v[from];
  for (int d = 0; d < x->rank; d++)
    z->dim[v][d] = d < y->rank && x->shape[d] == y->shape[d] ? z->dim[from][d] : fresh_size(z, x->shape[d]);
}

static void view_sizes(sizer *z, int id) {
  const nvg_val *v = &z->g->v[id], *x = &z->g->v[v->in[0]];
  nvf_prod *d = z->dim[id], *sym = z->sym[id];
  int written = v->kind == NVG_VPAD && z->g->v[v->in[1]].rank; /* it has the shape of what was there before */
  if (written) unify_sizes(z, v->in[0], v->in[1], -1);
  copy_dims(z, id, v->in[written]);
  if (v->kind == NVG_VRESHAPE) reshape_sizes(z, v, x, z->dim[v->in[0]], d);
  if (v->kind == NVG_VPERMUTE)
    for (int i = 0; i < v->rank; i++) d[i] = z->dim[v->in[0]][v->attr[i]];
  if (v->kind == NVG_VSLICE)
    for (int i = 0; i < v->rank; i++) {
      int flip = v->attr[2 * i + 1] == -1 && v->shape[i] == x->shape[i] && v->shape[i] > 1;
      sym[i] = flip ? LAST : v->shape[i] == x->shape[i] ? NONE : offset_symbol(z, v->attr[2 * i]);
    }
  if (v->kind == NVG_VROLL) sym[0] = offset_symbol(z, v->attr[1]);
  if (v->kind == NVG_VPAD)
    for (int i = 0; i < v->rank; i++) sym[i] = offset_symbol(z, v->attr[i]);
}

static void name_value(sizer *z, int id) {
  const nvg_val *v = &z->g->v[id];
  int slots = v->rank > v->nin ? v->rank : v->nin;
  nvf_prod *d = z->dim[id] = NVB_NEWN(z->a, nvf_prod, v->rank + 1);
  z->sym[id] = NVB_NEWN(z->a, nvf_prod, slots + 1);
  for (int i = 0; i <= slots; i++) z->sym[id][i] = NONE;
  switch (v->kind) {
  case NVG_VRESHAPE: case NVG_VPERMUTE: case NVG_VSLICE: case NVG_VEXPAND: case NVG_VROLL: case NVG_VPAD:
    view_sizes(z, id);
    return;
  case NVG_VMAP: case NVG_VRED: case NVG_VSCAN: case NVG_VPICK: case NVG_VCONCAT: case NVG_VROUTINE: {
    if (v->kind == NVG_VROUTINE && nvg_is_of_matrices(v->op)) break;
    int from = v->nin ? v->in[0] : -1, axis = v->kind == NVG_VCONCAT ? (int)v->attr[0] : -1;
    if (v->kind == NVG_VROUTINE && (v->op == NVG_OP_BINS || v->op == NVG_OP_DFT || nvg_searches(v->op)))
      axis = v->rank - 1;
    for (int i = v->kind == NVG_VROUTINE && v->op == NVG_OP_SEARCHED; i < v->nin; i++)
      if (z->g->v[v->in[i]].rank == v->rank) {
        from = v->in[i];
        break;
      }
    if (from < 0) break;
    copy_dims(z, id, from);
    for (int i = 0; i < v->nin; i++) unify_sizes(z, from, v->in[i], axis);
    if (axis >= 0 && v->shape[axis] != z->g->v[from].shape[axis]) d[axis] = fresh_size(z, v->shape[axis]);
    return;
  }
  case NVG_VCALL: { /* a GEMM: a [batch, m, k], b [batch, k, n] */
    const int a = v->in[0], y = v->in[1], last = v->rank - 1;
    for (int i = 0; i < last; i++) d[i] = z->dim[a][i];
    for (int i = 0; i < last - 1; i++) nvf_same(z->s, d[i], z->dim[y][i]);
    nvf_same(z->s, z->dim[a][last], z->dim[y][last - 1]);
    d[last] = z->dim[y][last];
    return;
  }
  case NVG_VGATHER:
    copy_dims(z, id, v->in[1]);
    unify_sizes(z, v->in[0], v->in[1], (int)v->attr[0]);
    return;
  default:
    break;
  }
  for (int i = 0; i < v->rank; i++) d[i] = fresh_size(z, v->shape[i]);
}

/* The strides of a leaf, from the shortest: 0, 1 and "the next stride times its size" are facts of the kernel, any
   other stride is a symbol. */
static nvf_prod *leaf_strides(sizer *z, const nvg_leaf *l, const nvf_prod *dim) {
  nvf_prod *out = NVB_NEWN(z->a, nvf_prod, l->rank + 1);
  uint64_t done = 0;
  for (int left = l->rank, inner = -1; left--;) {
    int d = -1;
    for (int i = l->rank - 1; i >= 0; i--) {
      int64_t s = llabs(l->stride[i]), t = d < 0 ? 0 : llabs(l->stride[d]);
      if (!(done >> i & 1) && (d < 0 || s < t)) d = i;
    }
    done |= 1ull << d;
    int64_t s = l->stride[d];
    if (l->shape[d] == 1 || s == 0) {
      out[d] = -1; /* the dimension does not contribute to the address */
      continue;
    }
    if (inner >= 0 && s == l->stride[inner] * l->shape[inner]) out[d] = nvf_mul(z->s, out[inner], dim[inner]);
    else out[d] = s == 1 || s == -1 ? nvf_int(z->s, s) : nvf_symbol(z->s, s);
    inner = d;
  }
  return out;
}

nvf_sizes *nvf_sizes_of(nvb_arena *a, const nvg_graph *g) {
  sizer z = { .a = a, .g = g, .s = nvf_space_new(a), .runs = nvb_map_new(a) };
  z.dim = NVB_NEWN(a, nvf_prod *, g->n);
  z.sym = NVB_NEWN(a, nvf_prod *, g->n);
  for (int i = 0; i < g->n; i++) name_value(&z, i);
  nvf_sizes *out = NVB_NEW(a, nvf_sizes);
  *out = (nvf_sizes){ .space = z.s, .dim = z.dim };
  out->at = NVB_NEWN(a, nvf_ix *, g->n);
  out->stride = NVB_NEWN(a, nvf_prod *, g->nleaf);
  out->passes = NVB_NEWN(a, const nvf_passes *, g->n);
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    for (int d = 0; d < v->rank; d++) z.dim[i][d] = nvf_proved(z.s, z.dim[i][d]);
    if (v->kind == NVG_VLEAF) out->stride[v->leaf] = leaf_strides(&z, &g->leaf[v->leaf], z.dim[i]);
  }
  for (int i = 0; i < g->n; i++) {
    const nvg_val *v = &g->v[i];
    int slots = v->rank > v->nin ? v->rank : v->nin;
    nvf_ix sum = 0;
    out->at[i] = NVB_NEWN(a, nvf_ix, slots + 1);
    for (int d = 0; d < slots; d++)
      if (z.sym[i][d] == LAST) out->at[i][d] = nvf_ix_sub(z.s, nvf_ix_size(z.s, z.dim[i][d]), nvf_ix_int(z.s, 1));
      else if (z.sym[i][d] != NONE) out->at[i][d] = nvf_ix_size(z.s, nvf_proved(z.s, z.sym[i][d]));
    for (int d = 0; v->kind == NVG_VCONCAT && d < v->nin; d++) {
      out->at[i][d] = sum;
      sum = nvf_ix_add(z.s, sum, nvf_ix_size(z.s, z.dim[v->in[d]][v->attr[0]]));
    }
  }
  return out;
}
