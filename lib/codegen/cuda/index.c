/* Emits index expressions and conditions at one register item: a base that items share, which is named once, plus a
   constant. Tracks a divisor of each base and whether it can be negative, because integer division is expensive.
   Division is floored. Decides the form of an expression, never its value. */
#include <stdlib.h>
#include <string.h>
#include "base/int.h"
#include "codegen/cuda/emit.h"
#include "frag/dtype.h"

static const char *type_of(const nvcu_xv *x) { return x->wide ? "long long" : "ix"; }
static int is_power2(int64_t d) { return d > 0 && !(d & (d - 1)); }
static int log2_of(int64_t d) { return __builtin_ctzll((uint64_t)d); }

static int is_atom(const char *s) { return *s != '('; }
static const char *atom_of(nvcu_em *e, const nvcu_xv *x) {
  return is_atom(x->base) ? x->base : nvcu_let(e, type_of(x), x->base);
}
static nvcu_xv settle_base(nvcu_em *e, nvcu_xv x) {
  if (x.base) x.base = atom_of(e, &x);
  return x;
}

const char *nvcu_index_text(nvcu_em *e, const nvcu_xv *x) {
  if (!x->base) return nvcu_text(e, x->k < 0 ? "(%lld)" : "%lld", (long long)x->k);
  if (!x->k) return atom_of(e, x);
  return nvcu_text(e, "(%s %c %lld)", atom_of(e, x), x->k < 0 ? '-' : '+', (long long)llabs(x->k));
}

/* ---- arithmetic; a base grows as text in brackets and is named at the end */
nvcu_xv nvcu_add(nvcu_em *e, nvcu_xv x, nvcu_xv y, int sign) {
  nvcu_xv r = {
    .k = x.k + sign * y.k, .divisor = nvb_gcd(x.divisor, y.divisor), .base = x.base, .wide = x.wide | y.wide
  };
  r.natural = (x.natural || !x.base) && (!y.base || (y.natural && sign > 0));
  if (!y.base) return r;
  if (x.base && sign < 0 && strcmp(x.base, y.base) == 0) return (nvcu_xv){ .k = r.k };
  if (x.base) r.base = nvcu_text(e, "(%s %c %s)", x.base, sign > 0 ? '+' : '-', y.base);
  else r.base = sign > 0 ? y.base : nvcu_text(e, "(-%s)", y.base);
  return r;
}

nvcu_xv nvcu_times(nvcu_em *e, nvcu_xv x, int64_t c) {
  if (c == 0) return (nvcu_xv){ 0 };
  if (c == 1) return x;
  if (x.base) x.base = nvcu_text(e, c < 0 ? "(%s * (%lld))" : "(%s * %lld)", x.base, (long long)c);
  x.k *= c;
  x.divisor *= llabs(c);
  x.natural &= c > 0;
  return x;
}

/* A product of two bases: both constants go into the new base, which is then different for each item. */
static nvcu_xv times_base(nvcu_em *e, nvcu_xv x, nvcu_xv y) {
  if (!y.base) return nvcu_times(e, x, y.k);
  if (!x.base) return nvcu_times(e, y, x.k);
  nvcu_xv r = { .divisor = 1, .wide = x.wide | y.wide };
  r.natural = x.natural && y.natural && x.k >= 0 && y.k >= 0;
  r.base = nvcu_text(e, "(%s * %s)", nvcu_index_text(e, &x), nvcu_index_text(e, &y));
  return r;
}

static nvcu_xv by_constant(nvcu_em *e, nvcu_xv x, int64_t d, int mod) {
  nvcu_xv r = { .divisor = 1, .wide = x.wide };
  if (!x.base || x.divisor % d == 0) { /* the base is a multiple of d */
    int64_t q = nvb_floor_div(x.k, d);
    if (mod) return (nvcu_xv){ .k = x.k - d * q };
    r.k = q;
    r.divisor = x.divisor / d;
    r.natural = x.natural;
    if (x.base)
      r.base = is_power2(d) ? nvcu_text(e, "(%s >> %d)", x.base, log2_of(d))
                            : nvcu_text(e, "(%s / %lld)", x.base, (long long)d);
    return r;
  }
  const char *v = nvcu_index_text(e, &x), *u = x.wide ? "unsigned long long" : "ux";
  r.natural = mod || (x.natural && x.k >= 0);
  if (is_power2(d))
    r.base = nvcu_text(e, mod ? "(%s & %lld)" : "(%s >> %lld)", v, (long long)(mod ? d - 1 : log2_of(d)));
  else if (x.natural && x.k >= 0)
    r.base = nvcu_text(e, "((%s)((%s)%s %c %lld))", type_of(&x), u, v, mod ? '%' : '/', (long long)d);
  else
    r.base =
        nvcu_text(e, "(%s((%s)%s, (%s)%lld))", mod ? "nv_mod" : "nv_div", type_of(&x), v, type_of(&x), (long long)d);
  return r;
}

static nvcu_xv divide_by(nvcu_em *e, nvcu_xv x, nvcu_xv y, int mod) {
  if (!y.base) return by_constant(e, x, y.k > 0 ? y.k : 1, mod);
  nvcu_xv r = { .divisor = 1, .wide = x.wide | y.wide };
  r.natural = mod || (x.natural && x.k >= 0);
  const char *a = nvcu_index_text(e, &x), *b = nvcu_index_text(e, &y), *t = type_of(&r);
  const char *q =
      nvcu_let(e, t,
               x.natural && x.k >= 0 ? nvcu_text(e, "(%s)((%s)%s / (%s)%s)", t, r.wide ? "unsigned long long" : "ux", a,
                                                 r.wide ? "unsigned long long" : "ux", b)
                                     : nvcu_text(e, "nv_div((%s)%s, (%s)%s)", t, a, t, b));
  r.base = mod ? nvcu_text(e, "(%s - %s * %s)", a, q, b) : q;
  return r;
}

/* ---- coordinates */
static const char *digit_number(nvcu_em *e, const nvf_digit *d) {
  const char *number = d->level == 'l' ? "lane" : d->level == 'w' ? "warp" : "rank";
  int all = d->level == 'l' ? 32 : d->level == 'w' ? e->warps : e->cluster, top = d->pstride * d->extent >= all;
  if (top && d->pstride == 1) return number;
  if (!is_power2(d->pstride) || (!top && !is_power2(d->extent)))
    return nvcu_text(e, top ? "(%s / %d)" : "(%s / %d %% %d)", number, d->pstride, d->extent);
  if (top) return nvcu_text(e, "(%s >> %d)", number, log2_of(d->pstride));
  if (d->pstride == 1) return nvcu_text(e, "(%s & %d)", number, d->extent - 1);
  return nvcu_text(e, "(%s >> %d & %d)", number, log2_of(d->pstride), d->extent - 1);
}

nvcu_xv nvcu_digit(nvcu_em *e, const nvf_layout *l, int i, int item) {
  const nvf_digit *d = &l->d[i];
  nvcu_xv x = { .divisor = 1, .natural = 1 };
  if (d->extent == 1) return (nvcu_xv){ 0 };
  if (d->level == 'i') return (nvcu_xv){ .k = nvc_digit_value(l, i, item) };
  x.base = d->level == 'I' ? nvcu_loop_value(e, d) : digit_number(e, d);
  if (!x.base) return (nvcu_xv){ 0 }; /* a loop that is not open stands at 0 */
  if (nvcu_is_number(x.base)) return (nvcu_xv){ .k = atoll(x.base) };
  return x;
}

static nvcu_xv coordinate_value(nvcu_em *e, int axis, const nvf_layout *l, int item) {
  nvcu_xv x = { 0 };
  if (e->fixed[axis])
    return nvcu_is_number(e->fixed[axis]) ? (nvcu_xv){ .k = atoll(e->fixed[axis]) }
                                          : (nvcu_xv){ .base = e->fixed[axis], .divisor = 1, .natural = 1 };
  for (int i = 0; l && i < l->n; i++)
    if (l->d[i].axis == axis) x = nvcu_add(e, x, nvcu_times(e, nvcu_digit(e, l, i, item), l->d[i].stride), 1);
  if (e->shift) x.k += e->shift[axis];
  return x;
}

nvcu_xv nvcu_coordinate(nvcu_em *e, int axis, const nvf_layout *l, int item) {
  return settle_base(e, coordinate_value(e, axis, l, item));
}

static nvcu_xv of_tile(nvcu_em *e, int tile, const nvf_layout *l, int item) {
  nvm_dtype t = e->k->tile[tile].type;
  const char *v = nvcu_tile_now(e, tile, l, item); /* a copy, since the text may become part of a named value */
  nvcu_xv x = { .divisor = 1, .natural = nvg_class_of(t) == NVG_UNSIGNED && nvg_size(t) < 8, .base = v };
  x.wide = nvg_size(t) == 8 || t == NVM_U32;
  if (x.wide) x.base = nvcu_text(e, "((long long)%s)", v);
  return x;
}

static nvcu_xv index_of(nvcu_em *e, const nvf_expr *x, const nvf_layout *l, int item) {
  if (e->long_index && x->kind < NVF_ADD) { /* a leaf */
    e->long_index = 0;
    nvcu_xv v = index_of(e, x, l, item);
    e->long_index = 1;
    if (v.base && !v.wide) v.base = nvcu_text(e, "((long long)%s)", atom_of(e, &v));
    v.wide = 1;
    return v;
  }
  switch (x->kind) {
  case NVF_CONST: return (nvcu_xv){ .k = x->value };
  case NVF_NAME: return (nvcu_xv){ .k = nvc_name_value(&e->r, x->id) };
  case NVF_PARAM: return (nvcu_xv){ .base = nvcu_text(e, "p_%s", e->k->param[x->id].name), .divisor = 1 };
  case NVF_GRID:
    return (nvcu_xv){
      .base = e->grid[x->id], .divisor = 1, .natural = 1, .k = x->id == e->part->ngrid - 1 ? e->prefetch : 0
    };
  case NVF_VAR: return (nvcu_xv){ .base = e->var[x->id], .divisor = 1 };
  case NVF_AXIS: return coordinate_value(e, x->id, l, item);
  case NVF_TILE: return of_tile(e, x->id, l, item);
  default: break;
  }
  nvcu_xv a = index_of(e, x->a, l, item), b = index_of(e, x->b, l, item);
  switch (x->kind) {
  case NVF_ADD: return nvcu_add(e, a, b, 1);
  case NVF_SUB: return nvcu_add(e, a, b, -1);
  case NVF_MUL: return times_base(e, a, b);
  default: return divide_by(e, a, b, x->kind == NVF_MOD);
  }
}

nvcu_xv nvcu_index(nvcu_em *e, const nvf_expr *x, const nvf_layout *l, int item) {
  return settle_base(e, index_of(e, x, l, item));
}

const char *nvcu_uniform(nvcu_em *e, const nvf_expr *x) {
  nvcu_xv v = index_of(e, x, NULL, 0);
  return v.base && v.k ? nvcu_let(e, type_of(&v), nvcu_index_text(e, &v)) : nvcu_index_text(e, &v);
}

/* ---- conditions */
static const char *const symbol[] = { [NVF_LT] = "<",  [NVF_LE] = "<=", [NVF_EQ] = "==",
                                      [NVF_NE] = "!=", [NVF_GE] = ">=", [NVF_GT] = ">" };

static int compares_to_zero(nvf_cmp c, int64_t x) {
  return c == NVF_LT   ? x < 0
         : c == NVF_LE ? x <= 0
         : c == NVF_EQ ? x == 0
         : c == NVF_NE ? x != 0
         : c == NVF_GE ? x >= 0
                       : x > 0;
}

const char *nvcu_and(nvcu_em *e, const char *a, const char *b) {
  return !a || !b ? (a ? a : b) : strcmp(a, b) ? nvcu_text(e, "%s & %s", a, b) : a;
}

/* a cmp b, as a comparison of the base, which items share, with a constant. Values of 64-bit tiles are compared as they
   are: their difference could wrap. */
static const char *relation_text(nvcu_em *e, const struct nvf_rel *r, const nvf_layout *l, int item) {
  nvcu_xv a = index_of(e, r->a, l, item), b = index_of(e, r->b, l, item);
  if (a.wide || b.wide)
    return nvcu_text(e, "(%s %s %s)", nvcu_index_text(e, &a), symbol[r->cmp], nvcu_index_text(e, &b));
  nvcu_xv x = nvcu_add(e, a, b, -1);
  if (!x.base) return compares_to_zero(r->cmp, x.k) ? NULL : "false";
  return nvcu_text(e, x.k > 0 ? "(%s %s (%lld))" : "(%s %s %lld)", atom_of(e, &x), symbol[r->cmp], (long long)-x.k);
}

const char *nvcu_cond(nvcu_em *e, const nvf_cond *c, const nvf_layout *l, int item) {
  const char *all = NULL;
  for (int i = 0; c && i < c->nrel; i++) {
    int q = nvc_relation(&e->r, &c->rel[i]);
    if (q < 0 || !(e->known >> q & 1))
      all = nvcu_and(e, all, relation_text(e, &c->rel[i], l, nvcu_alike(e, q, l, item)));
  }
  for (int i = 0; c && i < c->ntile; i++) all = nvcu_and(e, all, nvcu_tile_now(e, c->tile[i], l, item));
  return all && strchr(all, '&') ? nvcu_text(e, "(%s)", all) : all;
}

const char *nvcu_relations(nvcu_em *e, uint64_t set, const nvf_layout *l, int item) {
  const char *all = NULL;
  for (int i = 0; i < e->r.nrel; i++)
    if (set >> i & 1) all = nvcu_and(e, all, relation_text(e, e->r.rel[i], l, nvcu_alike(e, i, l, item)));
  return all;
}
