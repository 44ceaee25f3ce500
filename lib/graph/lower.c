/* Adds values of the planner's language, one at a time, in canonical form: scalars stay 0-d, views compose, constants
   fold. It knows fragments and index maps, but no operation. */
#include "graph/lower.h"
#include <string.h>
#include "base/err.h"

int nvg_add(nvg_lower *l, const nvg_val *v) {
  nvg_val c = *v;
  c.op = l->op;
  c.narrowed = c.kind == NVG_VMAP || c.kind == NVG_VRED ? l->now_narrowed : 0;
  c.name = l->name;
  return nvg_make_add(&l->make, &c);
}

int nvg_add_const(nvg_lower *l, nvm_dtype t, uint64_t re, uint64_t im) {
  int64_t bits[2] = { (int64_t)re, (int64_t)im };
  nvg_val v = { .kind = NVG_VCONST, .dtype = t, .attr = bits, .nattr = nvg_parts(t) };
  return nvg_add(l, &v);
}

static uint64_t number_bits(nvm_dtype t, double x) {
  return nvg_class_of(t) < NVG_FLOAT ? nvg_int_bits(t, (int64_t)x) : nvg_float_bits(nvg_real_of(t), x);
}
int nvg_add_number(nvg_lower *l, nvm_dtype t, double x) { return nvg_add_const(l, t, number_bits(t, x), 0); }

int nvg_add_full(nvg_lower *l, int scalar, int rank, const int64_t *shape) {
  int64_t ones[NVM_MAX_RANK];
  for (int d = 0; d < rank; d++) ones[d] = 1;
  return nvg_add_expand(l, nvg_add_reshape(l, scalar, rank, ones), rank, shape);
}

int nvg_add_iota(nvg_lower *l, int rank, const int64_t *shape, int axis) {
  int64_t at = axis;
  nvg_val v = { .kind = NVG_VIOTA, .dtype = NVM_I64, .rank = rank, .shape = shape, .attr = &at, .nattr = 1 };
  return nvg_add(l, &v);
}

/* ---- uniform values: one element everywhere */
static int uniform_of(const nvg_lower *l,
                      int v) { /* returns the value of size 1 that v broadcasts; -1 if there is none */
  for (;;) {
    const nvg_val *x = nvg_at(l, v);
    if (x->size == 1) return v;
    if (x->kind != NVG_VEXPAND && x->kind != NVG_VRESHAPE) return -1;
    v = x->in[0];
  }
}

int nvg_const_of(const nvg_lower *l, int v, uint64_t *re, uint64_t *im) {
  const nvg_val *x = nvg_at(l, v);
  while (x->kind == NVG_VEXPAND || x->kind == NVG_VRESHAPE) x = nvg_at(l, x->in[0]);
  if (x->kind != NVG_VCONST) return 0;
  *re = (uint64_t)x->attr[0];
  *im = x->nattr > 1 ? (uint64_t)x->attr[1] : 0;
  return 1;
}

int nvg_is_number(const nvg_lower *l, int v, double x) {
  uint64_t re, im;
  return nvg_const_of(l, v, &re, &im) && re == number_bits(nvg_at(l, v)->dtype, x) && !im;
}

/* ---- elementwise */
static int fold_map(nvg_lower *l, const nvg_frag *f, nvm_dtype t, const int *in, int nin) {
  uint64_t bits[16] __attribute__((aligned(16))), out[2] __attribute__((aligned(16))) = { 0 };
  const void *from[16];
  void *to[2] = { &out[0], &out[1] };
  int n = 0;
  for (int i = 0; i < nin; i++) {
    const nvg_val *x = nvg_at(l, in[i]);
    if (x->kind != NVG_VCONST) return -1;
    for (int k = 0; k < x->nattr && n < 16; k++) bits[n] = (uint64_t)x->attr[k], from[n] = &bits[n], n++;
  }
  if (n != f->nparam || f->nresult > 2) return -1;
  nvg_frag_run(f, from, to, 1, 1);
  return nvg_add_const(l, t, out[0], out[1]);
}

int nvg_add_map(nvg_lower *l, const nvg_frag *f, nvm_dtype t, const int *in, int nin, int rank, const int64_t *shape) {
  int at[8], flat = 0;
  for (int i = 0; i < nin; i++) {
    int u = uniform_of(l, in[i]);
    at[i] = u < 0 ? in[i] : nvg_add_reshape(l, u, 0, NULL);
    flat += u >= 0;
  }
  if (flat < nin || !rank) {
    nvg_val v = { .kind = NVG_VMAP, .dtype = t, .rank = rank, .shape = shape, .nin = nin, .in = at, .frag = f };
    int c = flat == nin ? fold_map(l, f, t, at, nin) : -1;
    return c >= 0 ? c : nvg_add(l, &v);
  }
  return nvg_add_full(l, nvg_add_map(l, f, t, at, nin, 0, NULL), rank, shape);
}

static const nvg_frag *find_library(nvg_lower *l, const char *name, const int *in, int nin) {
  nvm_dtype type[16];
  int n = 0;
  for (int i = 0; i < nin; i++)
    for (int k = 0; k < nvg_parts(nvg_at(l, in[i])->dtype); k++) type[n++] = nvg_real_of(nvg_at(l, in[i])->dtype);
  const nvg_frag *f = nvg_frag_find(name, type, n);
  if (!f) nvb_throw(l->make.arena, nvb_status(), "[%s] %s", l->name, nvb_message());
  return f;
}

int nvg_add_named(nvg_lower *l, const char *frag, nvm_dtype t, const int *in, int nin, const nvg_val *like) {
  return nvg_add_map(l, find_library(l, frag, in, nin), t, in, nin, like->rank, like->shape);
}

/* ---- conversions */
static int convert_value(nvg_lower *l, int v, nvm_dtype to) {
  const nvg_val x = *nvg_at(l, v);
  const nvg_frag *f = nvg_frag_cast(x.dtype, to);
  if (!f) nvb_throw(l->make.arena, nvb_status(), "[%s] %s", l->name, nvb_message());
  int op = l->op;
  l->op = NVG_OP_CAST; /* the next conversion recognises this one by its op */
  v = nvg_add_map(l, f, to, &v, 1, x.rank, x.shape);
  l->op = op;
  return v;
}

/* Returns 1 if converting a to b and then to `to` equals converting a to `to`, given that b holds every value of a. */
static int is_composable(nvm_dtype a, nvm_dtype b, nvm_dtype to) {
  if (!nvg_embeds(a, b) || nvg_parts(a) == 2 || nvg_parts(b) == 2 || nvg_parts(to) == 2) return 0;
  int whole = nvg_class_of(a) < NVG_FLOAT;
  /* out of range, a float saturates and an integer wraps */
  return a == to || !whole || nvg_class_of(b) < NVG_FLOAT || nvg_class_of(to) >= NVG_FLOAT || to == NVM_BOOL ||
         nvg_embeds(a, to);
}

static int part_of(nvg_lower *l, int v, const char *frag) {
  return nvg_add_named(l, frag, nvg_real_of(nvg_at(l, v)->dtype), &v, 1, nvg_at(l, v));
}

int nvg_add_cast(nvg_lower *l, int v, nvm_dtype to) {
  const nvg_val x = *nvg_at(l, v);
  nvm_dtype from = x.dtype, real = nvg_real_of(to);
  if (from == to) return v;
  if (nvg_parts(to) == 2) {
    int pair[2];
    pair[0] = nvg_add_cast(l, nvg_parts(from) == 2 ? part_of(l, v, "c.real") : v, real);
    pair[1] = nvg_parts(from) == 2 ? nvg_add_cast(l, part_of(l, v, "c.imag"), real) : nvg_add_number(l, real, 0);
    return nvg_add_named(l, "make", to, pair, 2, &x);
  }
  if (nvg_parts(from) == 2) { /* to bool: other conversions from complex are refused when the node is built */
    int pair[2] = { v, nvg_add_number(l, from, 0) };
    return nvg_add_named(l, "c.not_equal", to, pair, 2, &x);
  }
  /* a cast moves below a view, so that other readers of the operand share it */
  if (x.kind == NVG_VPERMUTE) return nvg_add_permute(l, nvg_add_cast(l, x.in[0], to), x.attr);
  if (x.kind == NVG_VRESHAPE) return nvg_add_reshape(l, nvg_add_cast(l, x.in[0], to), x.rank, x.shape);
  if (x.kind == NVG_VMAP && x.op == NVG_OP_CAST && x.nin == 1) {
    int inner = x.in[0];
    if (is_composable(nvg_at(l, inner)->dtype, from, to) && nvg_same_shape(nvg_at(l, inner), &x))
      return nvg_add_cast(l, inner, to);
  }
  return convert_value(l, v, to);
}

int nvg_wide(nvg_lower *l, int v) { return nvg_add_cast(l, v, nvg_compute_of(nvg_at(l, v)->dtype)); }

/* ---- views */
static int add_view(nvg_lower *l, nvg_vkind kind, int v, const int64_t *attr, int nattr, int rank,
                    const int64_t *shape) {
  nvg_val n = { .kind = kind,
                .dtype = nvg_at(l, v)->dtype,
                .rank = rank,
                .shape = shape,
                .nin = 1,
                .in = &v,
                .attr = attr,
                .nattr = nattr };
  return nvg_add(l, &n);
}

static int has_shape(const nvg_val *x, int rank, const int64_t *shape) {
  return x->rank == rank && (!rank || !memcmp(x->shape, shape, sizeof *shape * (size_t)rank));
}

int nvg_add_reshape(nvg_lower *l, int v, int rank, const int64_t *shape) {
  while (nvg_at(l, v)->kind == NVG_VRESHAPE) v = nvg_at(l, v)->in[0];
  const nvg_val *x = nvg_at(l, v);
  if (has_shape(x, rank, shape)) return v;
  if (x->size == 1 && x->kind == NVG_VEXPAND) return nvg_add_reshape(l, x->in[0], rank, shape);
  int u = x->kind == NVG_VEXPAND ? uniform_of(l, v) : -1;
  if (u >= 0) return nvg_add_full(l, u, rank, shape);
  return add_view(l, NVG_VRESHAPE, v, NULL, 0, rank, shape);
}

int nvg_add_expand(nvg_lower *l, int v, int rank, const int64_t *shape) {
  while (nvg_at(l, v)->kind == NVG_VEXPAND) v = nvg_at(l, v)->in[0];
  return has_shape(nvg_at(l, v), rank, shape) ? v : add_view(l, NVG_VEXPAND, v, NULL, 0, rank, shape);
}

int nvg_add_permute(nvg_lower *l, int v, const int64_t *axes) {
  int64_t through[NVM_MAX_RANK], shape[NVM_MAX_RANK];
  const nvg_val *x = nvg_at(l, v);
  int rank = x->rank, moved = 0, last = -1;
  if (x->kind == NVG_VPERMUTE) {
    for (int d = 0; d < rank; d++) through[d] = x->attr[axes[d]];
    v = x->in[0];
    x = nvg_at(l, v);
    axes = through;
  }
  for (int d = 0; d < rank; d++) {
    shape[d] = x->shape[axes[d]];
    if (shape[d] == 1) continue;
    moved |= axes[d] < last;
    last = (int)axes[d];
  }
  if (!moved) return nvg_add_reshape(l, v, rank, shape); /* only extents of 1 moved */
  int u = uniform_of(l, v);
  return u >= 0 ? nvg_add_full(l, u, rank, shape) : add_view(l, NVG_VPERMUTE, v, axes, rank, rank, shape);
}

int nvg_add_slice(nvg_lower *l, int v, const int64_t *attr, const int64_t *shape) {
  int64_t at[2 * NVM_MAX_RANK];
  int rank = nvg_at(l, v)->rank, all = 1;
  if (rank) memcpy(at, attr, sizeof *at * 2 * (size_t)rank);
  v = nvg_seen_through(l, v, at, shape);
  int u = uniform_of(l, v);
  if (u >= 0) return nvg_add_full(l, u, rank, shape);
  const nvg_val *x = nvg_at(l, v);
  for (int d = 0; d < rank; d++) all &= at[2 * d] == 0 && at[2 * d + 1] == 1 && shape[d] == x->shape[d];
  return all ? v : add_view(l, NVG_VSLICE, v, at, 2 * rank, rank, shape);
}

int nvg_add_roll(nvg_lower *l, int v, int axis, int64_t by) {
  const nvg_val *x = nvg_at(l, v);
  int64_t n = x->shape[axis], attr[2] = { axis, by };
  if (x->kind == NVG_VROLL && x->attr[0] == axis) {
    attr[1] = (by + x->attr[1]) % n;
    v = x->in[0];
    x = nvg_at(l, v);
  }
  if (!attr[1] || uniform_of(l, v) >= 0) return v;
  return add_view(l, NVG_VROLL, v, attr, 2, x->rank, x->shape);
}

int nvg_add_copy(nvg_lower *l, int x) {
  const nvg_val v = *nvg_at(l, x);
  int64_t axis = 0;
  nvg_val c = { .kind = NVG_VCONCAT,
                .dtype = v.dtype,
                .rank = v.rank,
                .shape = v.shape,
                .nin = 1,
                .in = &x,
                .attr = &axis,
                .nattr = 1 };
  l->name = "copy";
  return nvg_add(l, &c);
}

nvg_graph *nvg_made_anew(nvb_arena *a, const nvg_graph *g, nvg_making *one, const void *how) {
  nvg_lower l = { .g = g, .rep = NVB_NEWN(a, int, g->n + 1) };
  int *out = NVB_NEWN(a, int, g->nout + 1);
  nvg_make_init(&l.make, a);
  for (int i = 0; i < g->n; i++) {
    nvg_val v = g->v[i];
    int *in = NVB_NEWN(a, int, v.nin + 1);
    for (int j = 0; j < v.nin; j++) in[j] = l.rep[v.in[j]];
    l.op = v.op;
    l.name = v.name;
    v.in = in;
    l.rep[i] = one(&l, i, &v, in, how);
  }
  for (int i = 0; i < g->nout; i++) out[i] = l.rep[g->out[i]];
  return nvg_make_done(&l.make, g, out, g->nout);
}
