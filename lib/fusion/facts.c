/* Facts that a plan takes from the values of sizes, and spaces whose symbols get other values. It never decides what is
   a fact: whoever uses a value to leave something out notes it. */
#include <string.h>
#include "fusion/space.h"

void nvf_note_facts(nvf_space *s) { s->noted = s->noted ? s->noted : nvb_map_new(s->arena); }

static int is_constant(const nvf_space *s, nvf_prod p) { return !s->prod.at[p].n; }

/* Whether the fact holds whatever the sizes are. */
static int is_certain(const nvf_space *s, const nvf_fact *f) {
  switch (f->kind) {
  case NVF_EQUAL: return f->a == f->b || (is_constant(s, f->a) && is_constant(s, f->b));
  case NVF_MULTIPLE: return s->prod.at[f->a].k % f->k == 0;
  case NVF_AT_LEAST: case NVF_AT_MOST: return is_constant(s, f->a);
  default: return 0;
  }
}

void nvf_rely(nvf_space *s, nvf_fact f) {
  int fresh = 0;
  if (!s->noted || is_certain(s, &f)) return;
  int64_t key[4] = { f.kind, f.a, f.b, f.k };
  nvb_map_put(s->noted, key, sizeof key, &fresh);
  if (fresh) NVB_PUSH(s->arena, s->fact, f);
}

void nvf_rely_range(nvf_space *s, nvf_ix e, nvf_prod n, int not_negative, int below) {
  if (not_negative) nvf_rely(s, (nvf_fact){ .kind = NVF_NOT_NEGATIVE, .a = e });
  if (below) nvf_rely(s, (nvf_fact){ .kind = NVF_BELOW, .a = e, .b = n });
}

/* ---- other values */
#define COPY(a, from, n) nvb_dup(a, from, sizeof *(from) * (size_t)(n))

/* A copy of the tables, whose rows share what no value changes. */
static nvf_space *copy_tables(nvb_arena *a, const nvf_space *s) {
  nvf_space *c = COPY(a, s, 1);
  c->arena = a;
  c->products = c->atoms = c->exprs = c->noted = NULL;
  c->sym.at = COPY(a, s->sym.at, s->sym.n);
  c->prod.at = COPY(a, s->prod.at, s->prod.n);
  c->atom.at = COPY(a, s->atom.at, s->atom.n);
  c->ex.at = COPY(a, s->ex.at, s->ex.n);
  return c;
}

nvf_space *nvf_space_keep(nvb_arena *a, const nvf_space *s) {
  nvf_space *c = copy_tables(a, s);
  c->fact.at = COPY(a, s->fact.at, s->fact.n);
  for (int i = 0; i < c->prod.n; i++) c->prod.at[i].sym = COPY(a, c->prod.at[i].sym, c->prod.at[i].n);
  for (int i = 0; i < c->ex.n; i++) {
    nvf_sum *e = &c->ex.at[i];
    e->t = COPY(a, e->t, e->n);
    e->rem = COPY(a, e->rem, e->nrem);
    e->within = e->within ? COPY(a, e->within, e->n) : NULL;
  }
  return c;
}

static int64_t product_value(const nvf_space *s, const nvf_monomial *p) {
  int64_t v = p->k;
  for (int i = 0; i < p->n; i++) v *= s->sym.at[p->sym[i]].value;
  return v;
}

static void set_atom(nvf_space *s, nvf_atom *a) {
  if (a->kind == NVF_AT_AXIS) a->hi = nvf_value(s, a->by) - 1;
  if (a->kind == NVF_AT_FLOOR) nvf_ix_floor_range(s, a->of, a->by, &a->lo, &a->hi);
}

static int holds(const nvf_space *s, const nvf_fact *f) {
  int64_t lo, hi;
  switch (f->kind) {
  case NVF_NOT_NEGATIVE: return s->ex.at[f->a].lo >= 0;
  case NVF_BELOW: return s->ex.at[f->a].hi < nvf_value(s, f->b);
  case NVF_OUTSIDE: return s->ex.at[f->a].hi < 0 || s->ex.at[f->a].lo >= nvf_value(s, f->b);
  case NVF_FLOOR_IS: nvf_ix_floor_range(s, f->a, f->b, &lo, &hi); return lo == f->k && hi == f->k;
  case NVF_EQUAL: return nvf_value(s, f->a) == nvf_value(s, f->b);
  case NVF_MULTIPLE: return nvf_value(s, f->a) % f->k == 0;
  case NVF_AT_LEAST: return nvf_value(s, f->a) >= f->k;
  case NVF_AT_MOST: return nvf_value(s, f->a) <= f->k;
  default: return 0;
  }
}

static void set_values(nvf_space *s, int n, const int64_t *value) {
  for (int i = 0; i < s->sym.n; i++) {
    nvf_symbol_row *y = &s->sym.at[i];
    y->value = i < n ? value[i] : (product_value(s, &s->prod.at[y->of]) + y->each - 1) / y->each;
  }
  for (int i = 0; i < s->prod.n; i++) s->prod.at[i].value = product_value(s, &s->prod.at[i]);
  for (int i = 0, atoms = 0; i < s->ex.n;
       i++) { /* an expression is younger than its atoms, a floor than what it is of */
    for (int j = 0; j < s->ex.at[i].n; j++)
      for (; atoms <= s->ex.at[i].t[j].atom; atoms++) set_atom(s, &s->atom.at[atoms]);
    nvf_ix_measure(s, i);
  }
}

nvf_space *nvf_space_with(nvb_arena *a, const nvf_space *s, int n, const int64_t *value) {
  nvf_space *c = copy_tables(a, s);
  set_values(c, n, value);
  for (int i = 0; i < c->fact.n; i++)
    if (!holds(c, &c->fact.at[i])) return NULL;
  return c;
}

int nvf_serves_others(const nvf_space *s, int given) {
  for (int i = given; i < s->sym.n; i++)
    if (!s->sym.at[i].each) return 0;
  for (int i = 0; i < s->fact.n; i++)
    if (s->fact.at[i].kind == NVF_THESE_SIZES) return 0;
  return s->noted != NULL;
}

/* ---- for signatures */
int nvf_symbols(const nvf_space *s, const int64_t **value) {
  int64_t *v = NVB_NEWN(s->arena, int64_t, s->sym.n + 1);
  for (int i = 0; i < s->sym.n; i++) v[i] = s->sym.at[i].value;
  *value = v;
  return s->sym.n;
}

nvb_hash nvf_space_hash(const nvf_space *s) {
  NVB_VEC(int64_t) word = { 0 };
  nvb_arena *a = s->arena;
  for (int i = 0; i < s->sym.n; i++) NVB_PUSH(a, word, s->sym.at[i].is);
  for (int i = 0; i < s->prod.n; i++) {
    const nvf_monomial *p = &s->prod.at[i];
    NVB_PUSH(a, word, p->k);
    NVB_PUSH(a, word, p->n);
    for (int j = 0; j < p->n; j++) NVB_PUSH(a, word, p->sym[j]);
  }
  for (int i = 0; i < s->ex.n; i++) {
    NVB_PUSH(a, word, s->ex.at[i].n);
    for (int j = 0; j < s->ex.at[i].n; j++) {
      const nvf_term *t = &s->ex.at[i].t[j];
      NVB_PUSH(a, word, t->atom);
      NVB_PUSH(a, word, t->by);
      NVB_PUSH(a, word, t->c);
    }
  }
  return nvb_hash_bytes(word.at, (size_t)word.n * sizeof *word.at);
}
