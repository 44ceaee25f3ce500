/* Emits index expressions and conditions at one register item: a scalar i64 that all lanes share, plus what differs
   between lanes, which stays constant as long as possible because constants decide how memory is accessed. Division is
   floored. Decides the form of an index, never its value. */
#include "base/int.h"
#include "codegen/llvm/emit.h"
#include <stdlib.h>
#include <string.h>
#include "frag/dtype.h"

int nvcl_layout_lanes(const nvcl_em *e, const nvf_layout *l) {
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'l' && l->d[i].extent > 1) return e->lanes;
  return 1;
}

/* ---- arithmetic on nvcl_xv */
static val lanes_value(nvcl_em *e, const nvcl_xv *x) {
  return x->form == 2 ? x->vec : x->form == 1 ? nvcl_consts(e, e->i64, x->pat, e->lanes) : NULL;
}

static val scalar_value(nvcl_em *e, const nvcl_xv *x) {
  if (!x->base) return nvcl_int(e, x->k);
  return x->k ? LLVMBuildNSWAdd(e->b, x->base, nvcl_int(e, x->k), "") : x->base;
}

val nvcl_index_value(nvcl_em *e, const nvcl_xv *x, int n) {
  val s = nvcl_splat(e, scalar_value(e, x), n), l = n == 1 ? NULL : lanes_value(e, x);
  if (!l) return s;
  return x->base || x->k ? LLVMBuildAdd(e->b, s, l, "") : l;
}

/* Moves a constant base, and what all lanes share, to k. */
static nvcl_xv settle_base(nvcl_em *e, nvcl_xv x) {
  int flat = x.form == 1;
  for (int i = 1; flat && i < e->lanes; i++) flat = x.pat[i] == x.pat[0];
  if (flat) {
    x.k += x.pat[0];
    x.form = 0;
    memset(x.pat, 0, sizeof x.pat);
  }
  if (x.base && LLVMIsAConstantInt(x.base)) {
    x.k += LLVMConstIntGetSExtValue(x.base);
    x.base = NULL;
  }
  if (!x.base) x.divisor = 0;
  return x;
}

static nvcl_xv add_values(nvcl_em *e, nvcl_xv x, nvcl_xv y, int sign) {
  LLVMBuilderRef B = e->b;
  nvcl_xv r = { .k = x.k + sign * y.k,
                .divisor = nvb_gcd(x.divisor, y.divisor),
                .base = x.base,
                .form = x.form > y.form ? x.form : y.form };
  if (y.base)
    r.base = sign > 0 ? (x.base ? LLVMBuildNSWAdd(B, x.base, y.base, "") : y.base)
                      : (x.base ? LLVMBuildNSWSub(B, x.base, y.base, "") : LLVMBuildNSWNeg(B, y.base, ""));
  if (r.form == 1)
    for (int i = 0; i < e->lanes; i++) r.pat[i] = (x.form ? x.pat[i] : 0) + sign * (y.form ? y.pat[i] : 0);
  if (r.form == 2) {
    val a = lanes_value(e, &x), b = lanes_value(e, &y);
    r.vec = !b         ? a
            : a        ? (sign > 0 ? LLVMBuildAdd(B, a, b, "") : LLVMBuildSub(B, a, b, ""))
            : sign > 0 ? b
                       : LLVMBuildNeg(B, b, "");
    const nvcl_xv *one = !x.form ? &y : !y.form ? &x : NULL; /* the one that differs between lanes */
    r.step = one ? one->step : NULL;
    for (int i = 0; r.step && i < e->lanes; i++) r.pat[i] = one == &y ? sign * y.pat[i] : x.pat[i];
  }
  return settle_base(e, r);
}

static nvcl_xv times_const(nvcl_em *e, nvcl_xv x, int64_t c) {
  if (c == 0) return (nvcl_xv){ 0 };
  if (c == 1) return x;
  if (x.base) x.base = LLVMBuildNSWMul(e->b, x.base, nvcl_int(e, c), "");
  if (x.form == 2) x.vec = LLVMBuildMul(e->b, x.vec, nvcl_splat(e, nvcl_int(e, c), e->lanes), "");
  for (int i = 0; x.form && i < e->lanes; i++) x.pat[i] *= c;
  x.k *= c;
  x.divisor *= llabs(c);
  return x;
}

static nvcl_xv times_value(nvcl_em *e, nvcl_xv x, nvcl_xv y) {
  if (!y.form && !y.base) return times_const(e, x, y.k);
  if (!x.form && !x.base) return times_const(e, y, x.k);
  if (x.form && y.form) {
    val v = LLVMBuildMul(e->b, nvcl_index_value(e, &x, e->lanes), nvcl_index_value(e, &y, e->lanes), "");
    return (nvcl_xv){ .form = 2, .vec = v };
  }
  if (x.form) {
    nvcl_xv t = x;
    x = y;
    y = t;
  }
  val by = scalar_value(e, &x), s = scalar_value(e, &y), l = lanes_value(e, &y);
  nvcl_xv r = { .form = y.form ? 2 : 0, .divisor = 1 };
  if (y.base || y.k) r.base = LLVMBuildNSWMul(e->b, s, by, "");
  if (l) r.vec = LLVMBuildMul(e->b, nvcl_splat(e, by, e->lanes), l, "");
  if (y.form == 1) {
    r.step = by;
    memcpy(r.pat, y.pat, sizeof r.pat);
  }
  return settle_base(e, r);
}

static val make_positive(nvcl_em *e, val b) { /* a divisor that never traps */
  if (LLVMIsAConstantInt(b)) return LLVMConstIntGetSExtValue(b) > 0 ? b : nvcl_int(e, 1);
  return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSGT, b, nvcl_int(e, 0), ""), b, nvcl_int(e, 1), "");
}

val nvcl_floor_div(nvcl_em *e, val a, val b) {
  LLVMBuilderRef B = e->b;
  b = make_positive(e, b);
  if (LLVMIsAConstantInt(b)) {
    int64_t d = LLVMConstIntGetSExtValue(b);
    if (LLVMIsAConstantInt(a)) return nvcl_int(e, nvb_floor_div(LLVMConstIntGetSExtValue(a), d));
    if (!(d & (d - 1))) return LLVMBuildAShr(B, a, nvcl_int(e, __builtin_ctzll((uint64_t)d)), "");
  }
  val q = LLVMBuildSDiv(B, a, b, ""), r = LLVMBuildSub(B, a, LLVMBuildMul(B, q, b, ""), "");
  return LLVMBuildAdd(B, q, LLVMBuildSExt(B, LLVMBuildICmp(B, LLVMIntSLT, r, nvcl_int(e, 0), ""), e->i64, ""), "");
}

/* Floored quotient of a vector by one divisor, through doubles: exact for |a| < 2^51, far beyond any address; the first
   guess is off by at most one. */
static val vector_div(nvcl_em *e, val a, val d) {
  LLVMBuilderRef B = e->b;
  int n = e->lanes;
  typ vi = nvcl_vec(e->i64, n), vd = nvcl_vec(e->f64, n);
  d = make_positive(e, d);
  if (LLVMIsAConstantInt(d)) {
    int64_t c = LLVMConstIntGetSExtValue(d);
    if (!(c & (c - 1))) return LLVMBuildAShr(B, a, nvcl_splat(e, nvcl_int(e, __builtin_ctzll((uint64_t)c)), n), "");
  }
  val x = LLVMBuildSIToFP(B, a, vd, ""), y = nvcl_splat(e, LLVMBuildSIToFP(B, d, e->f64, ""), n),
      dv = nvcl_splat(e, d, n);
  val f = LLVMBuildFDiv(B, x, y, ""), q = LLVMBuildFPToSI(B, nvcl_call(e, "llvm.floor", &vd, 1, &f, 1), vi, "");
  val r = LLVMBuildSub(B, a, LLVMBuildMul(B, q, dv, ""), "");
  q = LLVMBuildAdd(B, q, LLVMBuildSExt(B, LLVMBuildICmp(B, LLVMIntSLT, r, LLVMConstNull(vi), ""), vi, ""), "");
  return LLVMBuildSub(B, q, LLVMBuildSExt(B, LLVMBuildICmp(B, LLVMIntSGE, r, dv, ""), vi, ""), "");
}

/* Quotient or remainder. If a constant divisor divides base, the lanes stay constants. */
static nvcl_xv divide_by(nvcl_em *e, nvcl_xv x, nvcl_xv y, int mod) {
  if (y.form) nvb_throw(e->a, NVM_ERR_UNSUPPORTED, "[llvm] a divisor differs between lanes");
  int64_t d = y.base ? 0 : y.k;
  if (d > 0 && x.form < 2 && (!x.base || (x.divisor && x.divisor % d == 0))) {
    nvcl_xv r = { .form = x.form, .k = x.form ? 0 : nvb_floor_div(x.k, d) };
    for (int i = 0; x.form && i < e->lanes; i++) r.pat[i] = nvb_floor_div(x.k + x.pat[i], d);
    if (mod) {
      for (int i = 0; x.form && i < e->lanes; i++) r.pat[i] = x.k + x.pat[i] - d * r.pat[i];
      r.k = x.form ? 0 : x.k - d * r.k;
    } else if (x.base) {
      r.base = LLVMBuildExactSDiv(e->b, x.base, nvcl_int(e, d), "");
      r.divisor = x.divisor / d;
    }
    return settle_base(e, r);
  }
  val by = scalar_value(e, &y);
  if (!x.form) {
    val a = scalar_value(e, &x), q = nvcl_floor_div(e, a, by);
    if (mod) q = LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, q, by, ""), "");
    return settle_base(e, (nvcl_xv){ .base = q, .divisor = 1 });
  }
  val a = nvcl_index_value(e, &x, e->lanes), q = vector_div(e, a, by);
  if (mod) q = LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, q, nvcl_splat(e, by, e->lanes), ""), "");
  return (nvcl_xv){ .form = 2, .vec = q };
}

/* ---- leaves */
val nvcl_loop_value(nvcl_em *e, const nvf_digit *d, int64_t by) {
  for (int i = e->nloop; i-- > 0;) {
    const nvcl_loop *p = &e->loop[i];
    if (p->axis != d->axis || p->stride != d->stride || p->extent != d->extent) continue;
    val v = p->by == by || p->by == 1 ? p->v : LLVMBuildExactSDiv(e->b, p->v, nvcl_int(e, p->by), "");
    return p->by == by || by == 1 ? v : LLVMBuildNSWMul(e->b, v, nvcl_int(e, by), "");
  }
  return NULL;
}

static void coordinate_digit(nvcl_em *e, nvcl_xv *x, const nvf_layout *l, int i, int item) {
  const nvf_digit *d = &l->d[i];
  if (d->level == 'i') x->k += nvc_digit_value(l, i, item) * d->stride;
  if (d->level == 'I' && d->extent > 1) {
    val v = nvcl_loop_value(e, d, d->stride);
    if (!v) return; /* a loop that is not open stands at 0 */
    nvcl_xv y = { .base = v, .divisor = d->stride };
    *x = add_values(e, *x, settle_base(e, y), 1);
  }
  if (d->level == 'l' && d->extent > 1) {
    x->form = 1;
    for (int j = 0; j < e->lanes; j++) x->pat[j] += (j / d->pstride % d->extent) * d->stride;
  }
}

static nvcl_xv coordinate_value(nvcl_em *e, int axis, const nvf_layout *l, int item) {
  nvcl_xv x = { 0 };
  if (e->fixed[axis]) return settle_base(e, (nvcl_xv){ .base = e->fixed[axis], .divisor = 1 });
  for (int i = 0; l && i < l->n; i++)
    if (l->d[i].axis == axis) coordinate_digit(e, &x, l, i, item);
  if (e->shift) x.k += e->shift[axis];
  return x;
}

/* A tile's value in its own lanes: without lanes it is the same in all of them, so that rows selected by an index are
   read as rows. */
static val tile_alone(nvcl_em *e, int tile, const nvf_layout *l, int item) {
  const nvf_layout *own = &e->t->tile[tile];
  return nvcl_tile_at(e, tile, own, nvc_match_item(own, l, item));
}

static nvcl_xv of_tile(nvcl_em *e, int tile, const nvf_layout *l, int item) {
  nvm_dtype t = e->k->tile[tile].type;
  val v = tile_alone(e, tile, l, item);
  int n = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind ? e->lanes : 1;
  typ to = nvcl_vec(e->i64, n);
  if (nvg_size(t) < 8)
    v = nvg_class_of(t) == NVG_SIGNED ? LLVMBuildSExt(e->b, v, to, "") : LLVMBuildZExt(e->b, v, to, "");
  return n == 1 ? settle_base(e, (nvcl_xv){ .base = v, .divisor = 1 }) : (nvcl_xv){ .form = 2, .vec = v };
}

static nvcl_xv block_coordinate(nvcl_em *e, int id) {
  nvcl_xv x = { .base = e->grid[id], .divisor = 1 };
  if (id == e->ngrid - 1) x.k = e->ahead;
  return settle_base(e, x);
}

nvcl_xv nvcl_index(nvcl_em *e, const nvf_expr *x, const nvf_layout *l, int item) {
  switch (x->kind) {
  case NVF_CONST: return (nvcl_xv){ .k = x->value };
  case NVF_NAME: return (nvcl_xv){ .k = nvc_name_value(&e->r, x->id) };
  case NVF_PARAM: return (nvcl_xv){ .base = e->param[x->id], .divisor = 1 };
  case NVF_GRID: return block_coordinate(e, x->id);
  case NVF_VAR: return settle_base(e, (nvcl_xv){ .base = e->var[x->id], .divisor = 1 });
  case NVF_AXIS: return coordinate_value(e, x->id, l, item);
  case NVF_TILE: return of_tile(e, x->id, l, item);
  default: break;
  }
  nvcl_xv a = nvcl_index(e, x->a, l, item), b = nvcl_index(e, x->b, l, item);
  switch (x->kind) {
  case NVF_ADD: return add_values(e, a, b, 1);
  case NVF_SUB: return add_values(e, a, b, -1);
  case NVF_MUL: return times_value(e, a, b);
  default: return divide_by(e, a, b, x->kind == NVF_MOD);
  }
}

val nvcl_uniform(nvcl_em *e, const nvf_expr *x) {
  nvcl_xv v = nvcl_index(e, x, NULL, 0);
  return scalar_value(e, &v);
}

/* ---- conditions */
static LLVMIntPredicate predicate_of(nvf_cmp c) {
  static const LLVMIntPredicate p[] = { LLVMIntSLT, LLVMIntSLE, LLVMIntEQ, LLVMIntNE, LLVMIntSGE, LLVMIntSGT };
  return p[c];
}

/* base + k + lanes (cmp) 0 as a comparison of 32-bit constants, k + lanes, with -base, clamped; the items of a
   statement share the latter */
static val narrow_compare(nvcl_em *e, nvf_cmp cmp, const nvcl_xv *x) {
  enum { FAR = 1 << 30 };
  int64_t at[NVC_LANES];
  for (int i = 0; i < e->lanes; i++) {
    at[i] = x->k + x->pat[i];
    if (at[i] <= -FAR || at[i] >= FAR) return NULL;
  }
  if (!x->base || e->clamped != x->base || e->clamped_in != nvcl_here(e)) {
    val t = x->base ? LLVMBuildNSWNeg(e->b, x->base, "") : nvcl_int(e, 0);
    t = nvcl_call(e, "llvm.smax", &e->i64, 1, (val[]){ t, nvcl_int(e, -FAR) }, 2);
    t = nvcl_call(e, "llvm.smin", &e->i64, 1, (val[]){ t, nvcl_int(e, FAR) }, 2);
    e->threshold = nvcl_splat(e, LLVMBuildTrunc(e->b, t, e->i32, ""), e->lanes);
    e->clamped = x->base;
    e->clamped_in = nvcl_here(e);
  }
  return LLVMBuildICmp(e->b, predicate_of(cmp), nvcl_consts(e, e->i32, at, e->lanes), e->threshold, "");
}

static val and_conditions(nvcl_em *e, val a, val b) { return a && b ? LLVMBuildAnd(e->b, a, b, "") : a ? a : b; }

/* Whether constants in all lanes are less than a size with bounds (1), or in none (0); -1: neither is known. */
static int compare_bounds(const nvcl_em *e, const struct nvf_rel *r, const nvcl_xv *a) {
  if (r->cmp != NVF_LT || r->b->kind != NVF_PARAM || a->base || a->form == 2) return -1;
  const nvf_param *p = &e->k->param[r->b->id];
  int below = 0, beyond = 0, n = a->form ? e->lanes : 1;
  for (int i = 0; i < n; i++) {
    int64_t at = a->k + (a->form ? a->pat[i] : 0);
    below += at < p->least;
    beyond += p->most && at >= p->most;
  }
  return below == n ? 1 : beyond == n ? 0 : -1;
}

static void and_relation(nvcl_em *e, nvcl_mask *m, const struct nvf_rel *r, const nvf_layout *l, int item) {
  nvcl_xv a = nvcl_index(e, r->a, l, item);
  int known = compare_bounds(e, r, &a);
  if (known == 0) m->one = LLVMConstInt(e->i1, 0, 0);
  if (known >= 0) return;
  nvcl_xv x = add_values(e, a, nvcl_index(e, r->b, l, item), -1);
  if (!x.form) {
    val s = scalar_value(e, &x), c = LLVMBuildICmp(e->b, predicate_of(r->cmp), s, nvcl_int(e, 0), "");
    if (!LLVMIsAConstantInt(c) || !LLVMConstIntGetZExtValue(c)) m->one = and_conditions(e, m->one, c);
    return;
  }
  val c = x.form == 1 ? narrow_compare(e, r->cmp, &x) : NULL;
  if (!c) {
    val v = nvcl_index_value(e, &x, e->lanes);
    c = LLVMBuildICmp(e->b, predicate_of(r->cmp), v, LLVMConstNull(LLVMTypeOf(v)), "");
  }
  m->all = and_conditions(e, m->all, c);
}

nvcl_mask nvcl_cond(nvcl_em *e, const nvf_cond *c, const nvf_layout *l, int item) {
  nvcl_mask m = { 0 };
  for (int i = 0; c && i < c->nrel; i++) {
    int r = nvc_relation(&e->r, &c->rel[i]);
    if (r >= 0 && e->version && e->version->never >> r & 1) return (nvcl_mask){ .one = LLVMConstInt(e->i1, 0, 0) };
    if (r < 0 || !(e->known >> r & 1)) and_relation(e, &m, &c->rel[i], l, item);
  }
  for (int i = 0; c && i < c->ntile; i++) {
    val v = tile_alone(e, c->tile[i], l, item);
    int wide = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
    *(wide ? &m.all : &m.one) = and_conditions(e, wide ? m.all : m.one, v);
  }
  return m;
}

nvcl_mask nvcl_relations(nvcl_em *e, uint64_t set, const nvf_layout *l, int item) {
  nvcl_mask m = { 0 };
  for (int i = 0; i < e->r.nrel; i++)
    if (set >> i & 1) and_relation(e, &m, e->r.rel[i], l, item);
  return m;
}

/* The lane of a value that is the last one to satisfy a comparison with 0, or the first one, as a value without
   lanes; 0: which lane it is is not known. */
static int extreme_lane(const nvcl_em *e, nvf_cmp cmp, int last, nvcl_xv *x) {
  int less = cmp == NVF_LT || cmp == NVF_LE, greater = cmp == NVF_GE || cmp == NVF_GT;
  int64_t lane = x->form ? x->pat[0] : 0;
  if (x->form == 2 || (x->form && !less && !greater)) return 0;
  for (int i = 1; x->form && i < e->lanes; i++)
    if (less == last ? x->pat[i] > lane : x->pat[i] < lane) lane = x->pat[i];
  x->k += lane;
  x->form = 0;
  return 1;
}

val nvcl_lanes_hold(nvcl_em *e, uint64_t set, const nvf_layout *l, int item, int every) {
  val all = NULL;
  for (int i = 0; i < e->r.nrel; i++) {
    if (!(set >> i & 1)) continue;
    const struct nvf_rel *r = e->r.rel[i];
    nvcl_xv x = add_values(e, nvcl_index(e, r->a, l, item), nvcl_index(e, r->b, l, item), -1);
    if (!extreme_lane(e, r->cmp, every, &x)) return NULL;
    val holds = LLVMBuildICmp(e->b, predicate_of(r->cmp), scalar_value(e, &x), nvcl_int(e, 0), "");
    all = and_conditions(e, all, holds);
  }
  return all;
}

val nvcl_mask_value(nvcl_em *e, nvcl_mask m, int n) {
  if (n == 1) return m.one;
  return and_conditions(e, m.one ? nvcl_splat(e, m.one, n) : NULL, m.all);
}
