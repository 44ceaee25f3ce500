/* Emits what the statements of a fusion refer to: parameters, index expressions over sizes by name, and the conditions
   that exclude padding. A size is a parameter or a product of parameters, never its value. */
#include "fusion/emit.h"
#include <stdio.h>

typedef nvf_emitter emitter;

/* ---- parameters */
int nvf_emit_param(emitter *e, nvf_pkind kind, nvm_dtype type, nvf_bind b) {
  static const char *const name[] = { [NVF_BUFFER] = "x", [NVF_SIZE] = "n", [NVF_SCALAR] = "s", [NVF_ROOTS] = "w" };
  char text[16];
  int n = 0;
  for (int i = 0; i < e->kn->nparam; i++) n += e->kn->param[i].kind == kind;
  snprintf(text, sizeof text, "%s%d", name[kind], n);
  b.kind = kind;
  NVB_PUSH(e->a, e->bind, b);
  return nvf_add_param(e->kn, kind, type, text);
}

const nvf_expr *nvf_emit_size(emitter *e, nvf_prod p) {
  int64_t k = nvf_factor(e->sp, p);
  nvf_prod pure = nvf_quot(e->sp, p, nvf_int(e->sp, k ? k : 1));
  const nvf_expr *c = nvf_x(e->kn, NVF_CONST, 0, k);
  if (pure <= 0) return c;
  int fresh, *at = nvb_map_put(e->size_of, &pure, sizeof pure, &fresh);
  if (fresh)
    *at = nvf_emit_param(e, NVF_SIZE, NVM_I64, (nvf_bind){ .bits = (uint64_t)nvf_value(e->sp, pure), .size = pure });
  return nvf_x2(e->kn, NVF_MUL, c, nvf_x(e->kn, NVF_PARAM, *at, 0));
}

int nvf_emit_buffer(emitter *e, int buf, nvm_dtype type, int written) {
  int fresh, *at = nvb_map_put(e->buffer_of, &buf, sizeof buf, &fresh);
  if (fresh) *at = nvf_emit_param(e, NVF_BUFFER, type, (nvf_bind){ .buf = buf });
  e->kn->param[*at].written |= written;
  return *at;
}

int nvf_emit_roots(emitter *e, nvm_dtype type, int64_t n, int64_t length, int sign) {
  for (int i = 0; i < e->kn->nparam; i++) {
    const nvf_param *p = &e->kn->param[i];
    if (p->kind == NVF_ROOTS && p->type == type && p->roots.n == n && p->roots.length == length &&
        p->roots.sign == sign)
      return i;
  }
  int w = nvf_emit_param(e, NVF_ROOTS, type, (nvf_bind){ 0 });
  e->kn->param[w].roots = (struct nvf_roots){ n, length, sign };
  return w;
}

/* ---- index expressions and conditions */
const nvf_expr *nvf_emit_coord(emitter *e, int a) {
  if (nvf_is_transformed(e->k, a)) return nvf_emit_point(e);
  const nvf_expr *g = e->grid[a] >= 0 ? nvf_x(e->kn, NVF_GRID, e->grid[a], 0) : NULL;
  const nvf_expr *t = e->axis[a] >= 0 ? nvf_x(e->kn, NVF_AXIS, e->axis[a], 0) : NULL;
  if (e->var[a] >= 0) {
    const nvf_expr *v = nvf_x(e->kn, NVF_VAR, e->var[a], 0);
    const nvf_expr *block = e->split_k >= 0 ? nvf_x(e->kn, NVF_AXIS, e->split_k, 0) : NULL;
    if (block) v = nvf_x2(e->kn, NVF_ADD, v, nvf_x2(e->kn, NVF_MUL, block, nvf_x(e->kn, NVF_NAME, e->tile_size[a], 0)));
    return nvf_x2(e->kn, NVF_ADD, v, t);
  }
  if (!g || !t) return g ? g : t ? t : nvf_x(e->kn, NVF_CONST, 0, 0);
  return nvf_x2(e->kn, NVF_ADD, nvf_x2(e->kn, NVF_MUL, g, nvf_x(e->kn, NVF_NAME, e->tile_size[a], 0)), t);
}

/* Whether term x comes before y. The order depends on neither values of sizes nor the order of creation: longest
   strides first, as far as symbols tell. */
static int is_earlier_term(const emitter *e, const nvf_term *x, const nvf_term *y) {
  const nvf_atom *p = nvf_ix_atom(e->sp, x->atom), *q = nvf_ix_atom(e->sp, y->atom);
  int64_t c = x->c < 0 ? -x->c : x->c, d = y->c < 0 ? -y->c : y->c;
  int64_t a[5] = { x->c < 0, -nvf_degree(e->sp, x->by), -c, -(int64_t)p->kind, p->id };
  int64_t b[5] = { y->c < 0, -nvf_degree(e->sp, y->by), -d, -(int64_t)q->kind, q->id };
  for (int i = 0; i < 5; i++)
    if (a[i] != b[i]) return a[i] < b[i];
  return 0;
}

static const nvf_expr *atom_expr(emitter *e, nvf_atom a);

const nvf_expr *nvf_emit_expr(emitter *e, nvf_ix x) {
  int n;
  const nvf_term *terms = nvf_ix_terms(e->sp, x, &n);
  nvf_term *t = nvb_dup(e->a, terms, (size_t)n * sizeof *t);
  const nvf_expr *sum = NULL;
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && is_earlier_term(e, &t[j], &t[j - 1]); j--) {
      nvf_term swap = t[j];
      t[j] = t[j - 1];
      t[j - 1] = swap;
    }
  for (int i = 0; i < n; i++) { /* positive terms first */
    int minus = sum && t[i].c < 0;
    const nvf_expr *f = nvf_x2(e->kn, NVF_MUL, atom_expr(e, *nvf_ix_atom(e->sp, t[i].atom)), nvf_emit_size(e, t[i].by));
    f = nvf_x2(e->kn, NVF_MUL, nvf_x(e->kn, NVF_CONST, 0, minus ? -t[i].c : t[i].c), f);
    sum = !sum ? f : nvf_x2(e->kn, minus ? NVF_SUB : NVF_ADD, sum, f);
  }
  return sum ? sum : nvf_x(e->kn, NVF_CONST, 0, 0);
}

static const nvf_expr *atom_expr(emitter *e, nvf_atom a) {
  switch (a.kind) {
  case NVF_AT_AXIS: return nvf_emit_coord(e, a.id);
  case NVF_AT_TILE: return nvf_x(e->kn, NVF_TILE, e->checked[a.id], 0);
  case NVF_AT_FLOOR: return nvf_x2(e->kn, NVF_DIV, nvf_emit_expr(e, a.of), nvf_emit_size(e, a.by));
  default: return nvf_x(e->kn, NVF_CONST, 0, 1);
  }
}

const nvf_cond *nvf_emit_guard(emitter *e, const nvf_cond *c, int guard) {
  for (int i = 0; i < e->k->guard.at[guard].n; i++) {
    nvf_bound b = e->k->guard.at[guard].b[i];
    int64_t lo, hi;
    nvf_ix_range(e->sp, b.e, &lo, &hi);
    if (lo < 0) c = nvf_and_rel(e->kn, c, NVF_GE, nvf_emit_expr(e, b.e), nvf_x(e->kn, NVF_CONST, 0, 0));
    if (hi >= nvf_value(e->sp, b.n)) c = nvf_and_rel(e->kn, c, NVF_LT, nvf_emit_expr(e, b.e), nvf_emit_size(e, b.n));
    nvf_rely_range(e->sp, b.e, b.n, lo >= 0, hi < nvf_value(e->sp, b.n));
  }
  return c;
}

/* Whether masks on every element cost noticeable time: not for few elements, nor in a finish, which takes far less time
   than its partials. */
static int masks_are_costly(const nvf_fusion *k) {
  int many = nvf_elements(k, nvf_all_axes(k)) > NVF_SMALL;
  for (int i = 0; i < k->expr.n && many; i++)
    many = k->expr.at[i].kind != NVF_IRED || !k->graph->node[k->expr.at[i].node].finish;
  return many;
}

/* States the bounds of a row's length, multiples of some vectors' lanes, if the row is short and lies in one tile of a
   CPU: all vectors but the last one then need no mask, in a kernel that lengths between these bounds share. */
static void bound_row(emitter *e, const nvf_expr *at, const nvf_expr *size) {
  enum { LANES = 8, SHORT = 128 };
  if (size->kind != NVF_PARAM || at->kind != NVF_AXIS) return;
  int64_t n = (int64_t)e->bind.at[size->id].bits;
  if (n <= LANES || n > SHORT) return;
  nvf_param *p = &e->kn->param[size->id];
  p->least = (n - 1) / LANES * LANES + 1;
  p->most = (n - 1) / LANES * LANES + LANES;
  nvf_rely(e->sp, (nvf_fact){ NVF_AT_LEAST, e->bind.at[size->id].size, 0, p->least });
  nvf_rely(e->sp, (nvf_fact){ NVF_AT_MOST, e->bind.at[size->id].size, 0, p->most });
}

static int is_all_points(const nvf_fusion *k, int a) {
  return nvf_is_transformed(k, a) && k->axis.at[a].n == k->transforms->points;
}

/* Whether whole blocks have all transforms, in a kernel for such numbers of them: a mask that may not hold keeps what a
   thread loads beside its points until the branches meet, which spills registers. Whole tiles of attention need no
   masks for each score. */
static int fill_blocks(emitter *e, int a) {
  int64_t tile = e->s->at[a].tile;
  if (!e->k->attention && (!e->k->transforms || a != e->s->batch)) return 0;
  if (e->k->axis.at[a].n % tile) return 0;
  nvf_rely(e->sp, (nvf_fact){ NVF_MULTIPLE, e->k->axis.at[a].extent, 0, tile });
  return 1;
}

/* The extent of an axis: of the points of transforms a number, as those of their passes are, so that a compiler leaves
   out what is computed for results that are not stored, as the upper half of a transform of real numbers. */
static const nvf_expr *extent_of(emitter *e, int a) {
  nvf_prod n = e->k->axis.at[a].extent;
  if (!nvf_is_transformed(e->k, a)) return nvf_emit_size(e, n);
  nvf_rely(e->sp, (nvf_fact){ NVF_EQUAL, n, nvf_int(e->sp, e->k->axis.at[a].n), 0 });
  return nvf_x(e->kn, NVF_CONST, 0, e->k->axis.at[a].n);
}

const nvf_cond *nvf_emit_bounds(emitter *e, const nvf_cond *c, uint64_t axes, uint64_t within) {
  /* rows as long as their tile get a kernel of their own, without masks, if masks cost time; a GEMM always names its
     edges, which TMA needs */
  int gpu = e->k->graph->caps->kind == NVB_CUDA, specialise = !e->k->dot && masks_are_costly(e->k),
      own_kernel = gpu && specialise;
  for (int a = 0; a < e->k->axis.n; a++) {
    nvf_prod n = e->k->axis.at[a].extent;
    int whole = own_kernel && !e->s->at[a].tiled;
    int exact = (whole || nvf_is_exact(e->k, a)) && e->k->axis.at[a].n == e->s->at[a].tile;
    if (!((axes & e->tiles) >> a & 1) || exact || is_all_points(e->k, a)) continue;
    if (own_kernel && fill_blocks(e, a)) continue;
    const nvf_expr *at = nvf_emit_coord(e, a), *size = own_kernel ? extent_of(e, a) : nvf_emit_size(e, n);
    if (!gpu && specialise) bound_row(e, at, size);
    c = nvf_and_rel(e->kn, c, NVF_LT, at, size);
  }
  for (int i = 0; i < e->k->valid.n; i++) {
    uint64_t m = nvf_ix_axes(e->sp, e->k->valid.at[i].e);
    if (m & axes && !(m & ~within))
      c = nvf_and_rel(e->kn, c, NVF_LT, nvf_emit_expr(e, e->k->valid.at[i].e), nvf_emit_size(e, e->k->valid.at[i].n));
  }
  return c;
}
