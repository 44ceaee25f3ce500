/* Sizes as symbols, and index expressions as interned sums. This file decides which floor divisions and remainders
   simplify away. It never looks at a graph, and it treats two sizes as equal only where nvf_same said so. */
#include <string.h>
#include "fusion/space.h"

typedef nvf_symbol_row symbol;
typedef nvf_monomial product;
typedef nvf_sum expr;

enum { MOST_SYMBOLS = 96 };

/* ---- ends of intervals: an end at FAR is unbounded, and stays unbounded under all operations */
static const int64_t FAR = (int64_t)1 << 61;
static int64_t clamp_far(int64_t x) { return x < -FAR ? -FAR : x > FAR ? FAR : x; }
static int is_far(int64_t x) { return x == FAR || x == -FAR; }

static int64_t sat_mul(int64_t a, int64_t b) {
  int64_t p;
  return __builtin_mul_overflow(a, b, &p) ? (a < 0) != (b < 0) ? -FAR : FAR : clamp_far(p);
}

/* open: the unbounded value, -FAR for a lower end, FAR for an upper one */
static int64_t sat_add(int64_t a, int64_t b, int64_t open) { return a == open || b == open ? open : clamp_far(a + b); }

static int64_t sat_div(int64_t a, int64_t b) { return is_far(a) ? a : nvb_floor_div(a, b); }

/* ---- products */
static nvf_prod product_of(nvf_space *s, int64_t k, int n, const int *sym) {
  int64_t key[1 + MOST_SYMBOLS];
  int *sorted = (int *)(key + 1), fresh;
  key[0] = k;
  for (int i = 0; i < n; i++) { /* insertion: products have a handful of symbols */
    int j = i;
    for (; j > 0 && sorted[j - 1] > sym[i]; j--) sorted[j] = sorted[j - 1];
    sorted[j] = sym[i];
  }
  int *at = nvb_map_put(s->products, key, sizeof *key + (size_t)n * sizeof *sym, &fresh);
  if (!fresh) return *at;
  product p = { .k = k, .value = k, .n = n, .sym = nvb_dup(s->arena, sorted, (size_t)n * sizeof *sym) };
  for (int i = 0; i < n; i++) p.value *= s->sym.at[sorted[i]].value;
  int id = *at = s->prod.n;
  p.pure = k == 1 ? id : -1;
  NVB_PUSH(s->arena, s->prod, p);
  if (k != 1) p.pure = product_of(s, 1, n, s->prod.at[id].sym), s->prod.at[id].pure = p.pure;
  return id;
}

nvf_prod nvf_symbol(nvf_space *s, int64_t value) {
  int id = s->sym.n;
  NVB_PUSH(s->arena, s->sym, ((symbol){ value, -1, 0, 0 }));
  return product_of(s, 1, 1, &id);
}

nvf_prod nvf_parts(nvf_space *s, nvf_prod p, int64_t each) {
  nvf_prod parts = nvf_symbol(s, (nvf_value(s, p) + each - 1) / each);
  symbol *made = &s->sym.at[s->sym.n - 1];
  made->of = p;
  made->each = each;
  return parts;
}

nvf_prod nvf_int(nvf_space *s, int64_t k) { return product_of(s, k, 0, NULL); }
int64_t nvf_value(const nvf_space *s, nvf_prod p) { return s->prod.at[p].value; }
int nvf_degree(const nvf_space *s, nvf_prod p) { return s->prod.at[p].n; }
int64_t nvf_factor(const nvf_space *s, nvf_prod p) { return s->prod.at[p].k; }

nvf_prod nvf_mul(nvf_space *s, nvf_prod a, nvf_prod b) {
  if (a == 0 || b == 0) return a == 0 ? b : a;
  product x = s->prod.at[a], y = s->prod.at[b];
  int sym[MOST_SYMBOLS];
  if (x.n + y.n > MOST_SYMBOLS) { /* longer than any shape: the product becomes a symbol of its own */
    nvf_rely(s, (nvf_fact){ .kind = NVF_THESE_SIZES });
    return nvf_symbol(s, x.value * y.value);
  }
  memcpy(sym, x.sym, (size_t)x.n * sizeof *sym);
  memcpy(sym + x.n, y.sym, (size_t)y.n * sizeof *sym);
  return product_of(s, x.k * y.k, x.n + y.n, sym);
}

/* Writes the symbols of a / b and returns their number; -1 if b has a symbol that a lacks. */
static int divide_symbols(const product *a, const product *b, int *rest) {
  int n = 0, j = 0;
  for (int i = 0; i < a->n; i++)
    if (j < b->n && b->sym[j] == a->sym[i]) j++;
    else rest[n++] = a->sym[i];
  return j == b->n ? n : -1;
}

nvf_prod nvf_quot(nvf_space *s, nvf_prod a, nvf_prod b) {
  if (a == b) return s->prod.at[a].value ? 0 : -1;
  const product x = s->prod.at[a], y = s->prod.at[b];
  int rest[MOST_SYMBOLS];
  if (!y.value || x.k % y.k) return -1;
  int n = divide_symbols(&x, &y, rest);
  return n < 0 ? -1 : product_of(s, x.k / y.k, n, rest);
}

/* The greatest common divisor of c * a and b, as far as symbols and integers tell. */
static nvf_prod common_divisor(nvf_space *s, nvf_prod a, int64_t c, nvf_prod b) {
  const product x = s->prod.at[a], y = s->prod.at[b];
  int both[MOST_SYMBOLS], n = 0;
  for (int i = 0, j = 0; i < x.n && j < y.n;)
    if (x.sym[i] == y.sym[j]) both[n++] = x.sym[i], i++, j++;
    else if (x.sym[i] < y.sym[j]) i++;
    else j++;
  int64_t p = x.k * c, q = y.k;
  for (p = p < 0 ? -p : p, q = q < 0 ? -q : q; q;) {
    int64_t r = p % q;
    p = q;
    q = r;
  }
  return product_of(s, p, n, both);
}

nvf_prod nvf_proved(nvf_space *s, nvf_prod p) {
  for (int i = 0; i < s->prod.at[p].n; i++) {
    int y = s->prod.at[p].sym[i];
    if (s->sym.at[y].is < 0) continue;
    nvf_prod one = product_of(s, 1, 1, &y);
    p = nvf_mul(s, nvf_quot(s, p, one), s->sym.at[y].is);
    i = -1;
  }
  return p;
}

static int has_symbol(const product *p, int sym) {
  for (int i = 0; i < p->n; i++)
    if (p->sym[i] == sym) return 1;
  return 0;
}

/* Cancels common factors; then a side that is a single symbol, which the other side does not contain, is replaced by
   the other side; of two symbols the younger one is replaced. */
void nvf_same(nvf_space *s, nvf_prod a, nvf_prod b) {
  a = nvf_proved(s, a);
  b = nvf_proved(s, b);
  if (a == b || nvf_value(s, a) == 0) return;
  nvf_prod g = common_divisor(s, a, 1, b);
  a = nvf_quot(s, a, g);
  b = nvf_quot(s, b, g);
  product x = s->prod.at[a], y = s->prod.at[b];
  int left = x.n == 1 && x.k == 1 && !has_symbol(&y, x.sym[0]),
      right = y.n == 1 && y.k == 1 && !has_symbol(&x, y.sym[0]);
  if (left && (!right || x.sym[0] > y.sym[0])) s->sym.at[x.sym[0]].is = b;
  else if (right) s->sym.at[y.sym[0]].is = a;
}

/* ---- expressions */
static nvf_ix expr_of(nvf_space *s, int n, const nvf_term *t) {
  int fresh, *at = nvb_map_put(s->exprs, t, (size_t)n * sizeof *t, &fresh);
  if (!fresh) return *at;
  expr e = { .n = n, .t = nvb_dup(s->arena, t, (size_t)n * sizeof *t) };
  *at = s->ex.n;
  NVB_PUSH(s->arena, s->ex, e);
  return *at;
}

static int same_scaled(const nvf_space *s, const expr *e, const expr *x, nvf_prod q, int64_t c, uint8_t *used);

/* Finds the terms that are remainders together: k * floor(x / m) with -(k / m) * x. */
static void find_remainders(nvf_space *s, nvf_ix id) {
  expr *e = &s->ex.at[id];
  uint8_t used[e->n + 1];
  NVB_VEC(nvf_remainder) rem = { 0 };
  memset(used, 0, sizeof used);
  for (int i = 0; i < e->n; i++) {
    nvf_atom a = s->atom.at[e->t[i].atom];
    e->axes |= a.axes;
    if (a.kind != NVF_AT_FLOOR) continue;
    e->floors += 1 + s->ex.at[a.of].floors;
    nvf_prod full = nvf_mul(s, e->t[i].by, nvf_int(s, e->t[i].c)), q = nvf_quot(s, full, a.by);
    e = &s->ex.at[id];
    if (q < 0 || used[i] || !same_scaled(s, e, &s->ex.at[a.of], q, -1, used)) continue;
    used[i] = 1;
    NVB_PUSH(s->arena, rem, ((nvf_remainder){ q, a.by }));
  }
  e->nrem = rem.n;
  e->rem = rem.at;
  if (rem.n) e->within = nvb_dup(s->arena, used, (size_t)e->n);
}

void nvf_ix_measure(nvf_space *s, nvf_ix id) {
  expr *e = &s->ex.at[id];
  int64_t lo = 0, hi = 0;
  for (int i = 0; i < e->nrem; i++) {
    int64_t most = sat_mul(-nvf_value(s, e->rem[i].q), nvf_value(s, e->rem[i].m) - 1);
    lo = sat_add(lo, most < 0 ? most : 0, -FAR);
    hi = sat_add(hi, most > 0 ? most : 0, FAR);
  }
  for (int i = 0; i < e->n; i++) {
    if (e->within && e->within[i]) continue;
    const nvf_atom *a = &s->atom.at[e->t[i].atom];
    int64_t k = sat_mul(e->t[i].c, nvf_value(s, e->t[i].by)), p = sat_mul(k, a->lo), q = sat_mul(k, a->hi);
    lo = sat_add(lo, p < q ? p : q, -FAR);
    hi = sat_add(hi, p < q ? q : p, FAR);
  }
  e->lo = lo;
  e->hi = hi;
}

void nvf_ix_floor_range(const nvf_space *s, nvf_ix e, nvf_prod by, int64_t *lo, int64_t *hi) {
  int64_t m = nvf_value(s, by);
  *lo = sat_div(s->ex.at[e].lo, m);
  *hi = sat_div(s->ex.at[e].hi, m);
}

/* Whether the unused terms of e include every term of x times c * q; marks these as used. */
static int same_scaled(const nvf_space *cs, const expr *e, const expr *x, nvf_prod q, int64_t c, uint8_t *used) {
  nvf_space *s = (nvf_space *)cs;
  uint8_t mark[e->n + 1];
  memset(mark, 0, sizeof mark);
  for (int j = 0; j < x->n; j++) {
    nvf_term t = x->t[j];
    nvf_prod full = nvf_mul(s, t.by, q), pure = s->prod.at[full].pure;
    int64_t k = t.c * c * s->prod.at[full].k;
    int i = 0;
    while (i < e->n && (used[i] || mark[i] || e->t[i].atom != t.atom || e->t[i].by != pure || e->t[i].c != k)) i++;
    if (i == e->n) return 0;
    mark[i] = 1;
  }
  for (int i = 0; i < e->n; i++) used[i] |= mark[i];
  return x->n > 0;
}

/* The sum of terms: sorted, with equal atoms added and zeros dropped. */
static nvf_ix sum_of(nvf_space *s, int n, nvf_term *t) {
  for (int i = 1; i < n; i++)
    for (int j = i; j > 0 && (t[j].atom < t[j - 1].atom || (t[j].atom == t[j - 1].atom && t[j].by < t[j - 1].by));
         j--) {
      nvf_term swap = t[j];
      t[j] = t[j - 1];
      t[j - 1] = swap;
    }
  int m = 0;
  for (int i = 0; i < n; i++) {
    if (m && t[m - 1].atom == t[i].atom && t[m - 1].by == t[i].by) t[m - 1].c += t[i].c;
    else t[m++] = t[i];
    if (!t[m - 1].c) m--;
  }
  int before = s->ex.n;
  nvf_ix e = expr_of(s, m, t);
  if (e == before) find_remainders(s, e), nvf_ix_measure(s, e);
  return e;
}

static int atom_of(nvf_space *s, nvf_atom a) {
  int64_t key[5] = { a.kind, a.id, a.by, a.of, (int64_t)a.axes };
  int fresh, *at = nvb_map_put(s->atoms, key, sizeof key, &fresh);
  if (!fresh) return *at;
  *at = s->atom.n;
  NVB_PUSH(s->arena, s->atom, a);
  return *at;
}

nvf_space *nvf_space_new(nvb_arena *a) {
  nvf_space *s = NVB_NEW(a, nvf_space);
  s->arena = a;
  s->products = nvb_map_new(a);
  s->atoms = nvb_map_new(a);
  s->exprs = nvb_map_new(a);
  product_of(s, 1, 0, NULL);
  atom_of(s, (nvf_atom){ .kind = NVF_AT_ONE, .lo = 1, .hi = 1 });
  sum_of(s, 0, NULL);
  return s;
}

static nvf_ix term_of(nvf_space *s, int atom, nvf_prod by, int64_t c) {
  nvf_term t = { atom, s->prod.at[by].pure, c * s->prod.at[by].k };
  return sum_of(s, 1, &t);
}

nvf_ix nvf_ix_int(nvf_space *s, int64_t c) { return term_of(s, 0, 0, c); }
nvf_ix nvf_ix_size(nvf_space *s, nvf_prod p) { return term_of(s, 0, p, 1); }

nvf_ix nvf_ix_axis(nvf_space *s, int number, nvf_prod extent) {
  nvf_atom a = { NVF_AT_AXIS, number, extent, 0, 1ull << number, 0, nvf_value(s, extent) - 1 };
  return term_of(s, atom_of(s, a), 0, 1);
}

nvf_ix nvf_ix_tile(nvf_space *s, int id, nvf_prod extent, uint64_t axes) {
  /* the data may have any value */
  nvf_atom a = { NVF_AT_TILE, id, extent, 0, axes, -((int64_t)1 << 40), (int64_t)1 << 40 };
  return term_of(s, atom_of(s, a), 0, 1);
}

static nvf_ix add_scaled(nvf_space *s, nvf_ix a, nvf_ix b, nvf_prod by, int64_t c) { /* a + b * by * c */
  int n = s->ex.at[a].n;
  nvf_term t[n + s->ex.at[b].n + 1];
  memcpy(t, s->ex.at[a].t, (size_t)n * sizeof *t);
  for (int i = 0; i < s->ex.at[b].n; i++) {
    nvf_term u = s->ex.at[b].t[i];
    nvf_prod full = nvf_mul(s, u.by, by);
    t[n++] = (nvf_term){ u.atom, s->prod.at[full].pure, u.c * c * s->prod.at[full].k };
  }
  return sum_of(s, n, t);
}

nvf_ix nvf_ix_add(nvf_space *s, nvf_ix a, nvf_ix b) { return a == 0 ? b : b == 0 ? a : add_scaled(s, a, b, 0, 1); }
nvf_ix nvf_ix_sub(nvf_space *s, nvf_ix a, nvf_ix b) { return b == 0 ? a : add_scaled(s, a, b, 0, -1); }
nvf_ix nvf_ix_mul(nvf_space *s, nvf_ix a, nvf_prod by, int64_t c) {
  return by == 0 && c == 1 ? a : add_scaled(s, 0, a, by, c);
}

/* Splits e into whole * by + rest, where `by` divides every term of whole * by. */
static void split_by(nvf_space *s, nvf_ix e, nvf_prod by, nvf_ix *whole, nvf_ix *rest) {
  nvf_term q[s->ex.at[e].n + 1], r[s->ex.at[e].n + 1];
  int nq = 0, nr = 0;
  for (int i = 0; i < s->ex.at[e].n; i++) {
    nvf_term t = s->ex.at[e].t[i];
    nvf_prod d = nvf_quot(s, nvf_mul(s, t.by, nvf_int(s, t.c)), by);
    if (d >= 0) q[nq++] = (nvf_term){ t.atom, s->prod.at[d].pure, s->prod.at[d].k };
    else if (t.atom == 0 && t.by == 0 && s->prod.at[by].n == 0) { /* both are numbers: their floor is a number */
      int64_t k = s->prod.at[by].k, f = nvb_floor_div(t.c, k);
      if (f) q[nq++] = (nvf_term){ 0, 0, f };
      r[nr++] = (nvf_term){ 0, 0, t.c - f * k };
    } else r[nr++] = t;
  }
  *whole = sum_of(s, nq, q);
  *rest = sum_of(s, nr, r);
}

/* Simplifies floor((g i + j) / (g m)) to floor(i / m) if 0 <= j < g, with the largest g that divides `by` and some
   term; -1: there is none. */
static nvf_ix coarser_floor(nvf_space *s, nvf_ix r, nvf_prod by) {
  nvf_ix best = -1;
  int64_t top = 1;
  for (int i = 0; i < s->ex.at[r].n; i++) {
    nvf_term t = s->ex.at[r].t[i];
    nvf_prod g = common_divisor(s, t.by, t.c, by);
    nvf_ix whole, rest;
    if (g == 0 || nvf_value(s, g) <= top) continue;
    split_by(s, r, g, &whole, &rest);
    if (s->ex.at[rest].lo < 0 || s->ex.at[rest].hi >= nvf_value(s, g)) continue;
    nvf_rely_range(s, rest, g, 1, 1);
    top = nvf_value(s, g);
    best = nvf_ix_div(s, whole, nvf_quot(s, by, g));
  }
  return best;
}

nvf_ix nvf_ix_div(nvf_space *s, nvf_ix e, nvf_prod by) {
  if (by == 0) return e;
  nvf_ix q, r;
  split_by(s, e, by, &q, &r);
  int64_t lo, hi;
  nvf_ix_floor_range(s, r, by, &lo, &hi);
  if (lo == hi && !is_far(lo)) {
    nvf_rely(s, (nvf_fact){ NVF_FLOOR_IS, r, by, lo });
    return nvf_ix_add(s, q, nvf_ix_int(s, lo));
  }
  nvf_ix c = coarser_floor(s, r, by);
  if (c >= 0) return nvf_ix_add(s, q, c);
  const expr x = s->ex.at[r];
  if (x.n == 1 && x.t[0].c == 1 && x.t[0].by == 0 && s->atom.at[x.t[0].atom].kind == NVF_AT_FLOOR) {
    nvf_atom a = s->atom.at[x.t[0].atom]; /* floor(floor(x / m) / k) = floor(x / (m k)) */
    return nvf_ix_add(s, q, nvf_ix_div(s, a.of, nvf_mul(s, a.by, by)));
  }
  nvf_atom a = { NVF_AT_FLOOR, 0, by, r, x.axes, lo, hi };
  return nvf_ix_add(s, q, term_of(s, atom_of(s, a), 0, 1));
}

nvf_ix nvf_ix_mod(nvf_space *s, nvf_ix e, nvf_prod by) {
  return nvf_ix_sub(s, e, nvf_ix_mul(s, nvf_ix_div(s, e, by), by, 1));
}

nvf_ix nvf_ix_moving(nvf_space *s, nvf_ix e) {
  const expr x = s->ex.at[e];
  int i = 0;
  while (i < x.n && x.t[i].atom == 0) i++;
  return i ? sum_of(s, x.n - i, nvb_dup(s->arena, x.t + i, (size_t)(x.n - i) * sizeof *x.t)) : e;
}

nvf_ix nvf_ix_subst(nvf_space *s, nvf_ix e, const nvf_ix *to) {
  nvf_ix out = 0;
  for (int i = 0; i < s->ex.at[e].n; i++) {
    nvf_term t = s->ex.at[e].t[i];
    nvf_atom a = s->atom.at[t.atom];
    nvf_ix x = a.kind == NVF_AT_AXIS && to[a.id] >= 0 ? to[a.id]
               : a.kind == NVF_AT_FLOOR               ? nvf_ix_div(s, nvf_ix_subst(s, a.of, to), a.by)
                                                      : term_of(s, t.atom, 0, 1);
    out = add_scaled(s, out, x, t.by, t.c);
  }
  return out;
}

/* ---- queries */
const nvf_term *nvf_ix_terms(const nvf_space *s, nvf_ix e, int *n) {
  *n = s->ex.at[e].n;
  return s->ex.at[e].t;
}

const nvf_atom *nvf_ix_atom(const nvf_space *s, int atom) { return &s->atom.at[atom]; }
uint64_t nvf_ix_axes(const nvf_space *s, nvf_ix e) { return s->ex.at[e].axes; }
int nvf_ix_floors(const nvf_space *s, nvf_ix e) { return s->ex.at[e].floors; }

void nvf_ix_range(const nvf_space *s, nvf_ix e, int64_t *lo, int64_t *hi) {
  *lo = s->ex.at[e].lo;
  *hi = s->ex.at[e].hi;
}

int nvf_ix_single_axis(const nvf_space *s, nvf_ix e) {
  const expr *x = &s->ex.at[e];
  const nvf_atom *a = x->n == 1 ? &s->atom.at[x->t[0].atom] : NULL;
  return a && a->kind == NVF_AT_AXIS && x->t[0].c == 1 && x->t[0].by == 0 ? a->id : -1;
}

int nvf_ix_coef(const nvf_space *s, nvf_ix e, int axis, nvf_prod *by, int64_t *c) {
  const expr *x = &s->ex.at[e];
  int found = 0;
  for (int i = 0; i < x->n; i++) {
    const nvf_atom *a = &s->atom.at[x->t[i].atom];
    if (a->kind != NVF_AT_AXIS || a->id != axis) continue;
    *by = x->t[i].by;
    *c = x->t[i].c;
    found = found || *by || *c != 1 ? 2 : 1;
  }
  return found;
}

nvf_ix nvf_ix_linear(nvf_space *s, int n, const nvf_ix *e, const nvf_prod *extent) {
  nvf_ix out = 0;
  for (int i = 0; i < n; i++) out = nvf_ix_add(s, nvf_ix_mul(s, out, extent[i], 1), e[i]);
  return out;
}

void nvf_ix_unlinear(nvf_space *s, nvf_ix e, int n, const nvf_prod *extent, nvf_ix *out) {
  int top = 0; /* the first dimension whose extent is not 1: its coordinate needs no remainder */
  while (top < n - 1 && !extent[top]) out[top++] = 0;
  for (int i = n - 1; i >= top; i--) {
    out[i] = i > top ? nvf_ix_mod(s, e, extent[i]) : e;
    e = nvf_ix_div(s, e, extent[i]);
  }
}
