/* Builds loop nests before code is emitted: consecutive statements with the same loops form a nest, which ends where a
   value is not complete inside the loops; what a later nest needs is repeated there where that is cheap; and each nest
   gets the relations that all its effects carry, so that its loops may end where one fails. Decides nothing that
   depends on the device. */
#include "codegen/loop_nests.h"
#include <string.h>

/* ---- expressions and layouts */
int nvc_has(const nvf_expr *x, nvf_xkind kind) {
  return x->kind == kind || (x->kind >= NVF_ADD && (nvc_has(x->a, kind) || nvc_has(x->b, kind)));
}

int64_t nvc_name_value(const nvc_nests *r, int name) {
  return name < r->s->nbind && r->s->bind[name].kind == NVF_BINT ? r->s->bind[name].value : 0;
}

static int fixed_value(const nvc_nests *r, const nvf_expr *x, int64_t *v) {
  int64_t a, b;
  if (x->kind == NVF_CONST) return *v = x->value, 1;
  if (x->kind == NVF_NAME) return *v = nvc_name_value(r, x->id), 1;
  if (x->kind < NVF_ADD || !fixed_value(r, x->a, &a) || !fixed_value(r, x->b, &b)) return 0;
  if (x->kind >= NVF_DIV) return 0;
  *v = x->kind == NVF_ADD ? a + b : x->kind == NVF_SUB ? a - b : a * b;
  return 1;
}

int nvc_coef(const nvc_nests *r, const nvf_expr *x, int axis, int64_t *c) {
  int64_t a, b, v;
  *c = 0;
  if (x->kind == NVF_TILE) return 0;
  if (x->kind < NVF_ADD) return *c = x->kind == NVF_AXIS && x->id == axis, 1;
  if (!nvc_coef(r, x->a, axis, &a) || !nvc_coef(r, x->b, axis, &b)) return 0;
  if (x->kind == NVF_ADD || x->kind == NVF_SUB) return *c = x->kind == NVF_ADD ? a + b : a - b, 1;
  if (!a && !b) return !nvc_has(x, NVF_TILE);
  if (x->kind == NVF_MUL && !b && fixed_value(r, x->b, &v)) return *c = a * v, 1;
  if (x->kind == NVF_MUL && !a && fixed_value(r, x->a, &v)) return *c = b * v, 1;
  return 0;
}

static int same_expr(const nvf_expr *a, const nvf_expr *b) {
  if (a == b) return 1;
  if (a->kind != b->kind) return 0;
  if (a->kind == NVF_CONST) return a->value == b->value;
  if (a->kind < NVF_ADD) return a->id == b->id;
  return same_expr(a->a, b->a) && same_expr(a->b, b->b);
}

int nvc_looped(const nvf_digit *d) { return d->level == 'I' && d->extent > 1; }

int nvc_has_loops(const nvf_layout *l) {
  for (int i = 0; i < l->n; i++)
    if (nvc_looped(&l->d[i])) return 1;
  return 0;
}

int nvc_items(const nvf_layout *l) {
  int n = 1;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].level == 'i') n *= l->d[i].extent;
  return n;
}

int nvc_digit_value(const nvf_layout *l, int d, int item) {
  for (int i = l->n - 1; i > d; i--)
    if (l->d[i].level == 'i') item /= l->d[i].extent;
  return item % l->d[d].extent;
}

int nvc_item_step(const nvf_layout *l, int d) {
  int step = 1;
  for (int i = d + 1; i < l->n; i++)
    if (l->d[i].level == 'i') step *= l->d[i].extent;
  return step;
}

int64_t nvc_axis_part(const nvf_layout *l, int axis, int item) {
  int64_t x = 0;
  for (int i = 0; i < l->n; i++)
    if (l->d[i].axis == axis && l->d[i].level == 'i') x += nvc_digit_value(l, i, item) * l->d[i].stride;
  return x;
}

static int same_digit(const nvf_digit *a, const nvf_digit *b) {
  return a->axis == b->axis && a->stride == b->stride && a->extent == b->extent;
}

int nvc_match_item(const nvf_layout *small, const nvf_layout *l, int item) {
  int at = 0;
  for (int i = 0; i < small->n; i++) {
    if (small->d[i].level != 'i') continue;
    int v = 0;
    for (int j = 0; l && j < l->n; j++)
      if (l->d[j].level == 'i' && same_digit(&l->d[j], &small->d[i])) v = nvc_digit_value(l, j, item);
    at = at * small->d[i].extent + v;
  }
  return at;
}

int nvc_same_items(const nvf_layout *a, const nvf_layout *b) {
  int same = nvf_layout_eq(a, b);
  for (int i = 0, n = same ? nvc_items(a) : 0; i < n && same; i++) same = nvc_match_item(a, b, i) == i;
  return same;
}

/* ---- statements */
static void expr_tiles(const nvc_nests *r, const nvf_expr *x, nvc_ints *out) {
  if (!x) return;
  if (x->kind == NVF_TILE) NVB_PUSH(r->a, *out, x->id);
  if (x->kind >= NVF_ADD) {
    expr_tiles(r, x->a, out);
    expr_tiles(r, x->b, out);
  }
}

void nvc_uses(const nvc_nests *r, const nvf_stmt *s, nvc_ints *out) {
  for (int i = 0; i < s->nin; i++) NVB_PUSH(r->a, *out, s->in[i]);
  for (int i = 0; i < s->narg; i++)
    if (s->arg[i].kind == NVF_ATILE) NVB_PUSH(r->a, *out, s->arg[i].id);
  expr_tiles(r, s->map, out);
  for (int i = 0; s->where && i < s->where->ntile; i++) NVB_PUSH(r->a, *out, s->where->tile[i]);
  for (int i = 0; s->where && i < s->where->nrel; i++) {
    expr_tiles(r, s->where->rel[i].a, out);
    expr_tiles(r, s->where->rel[i].b, out);
  }
  for (int i = 0; i < s->ncarry; i++) {
    NVB_PUSH(r->a, *out, s->carry[i].inner);
    NVB_PUSH(r->a, *out, s->carry[i].outer);
  }
}

const nvf_layout *nvc_layout_of(const nvc_nests *r, const nvf_stmt *s) { return r->t->stmt[s->id]; }

int64_t nvc_hint(const nvc_nests *r, const nvf_stmt *s, nvf_hint hint, int64_t absent) {
  return r->t->hints[s->id] >> hint & 1 ? nvf_hint_value(r->s, s->id, hint, absent) : absent;
}

/* ---- memory */
static int is_store(const nvf_stmt *s) { return nvf_stmt_is(s, NVF_WRITES); }

static int may_overlap(const nvc_nests *r, const nvf_stmt *a, const nvf_stmt *b) {
  return a->buf == b->buf || (!r->k->param[a->buf].unique && !r->k->param[b->buf].unique);
}

/* May the store write an element that the load reads at another index? */
static int crosses_axis(const nvc_nests *r, const nvf_stmt *load, const nvf_stmt *store) {
  return may_overlap(r, load, store) && (nvc_has(load->map, NVF_TILE) || !same_expr(load->map, store->map));
}

/* ---- loop nests */
static int loops_of(const nvc_nests *r, const nvf_stmt *s, nvf_digit *out) {
  const nvf_layout *l = nvc_layout_of(r, s);
  int n = 0;
  for (int i = 0; i < l->n && s->op != NVF_SCAN; i++) /* a scan opens its loops itself */
    if (nvc_looped(&l->d[i])) out[n++] = l->d[i];
  return n;
}

static int same_loops(const nvc_nest *nest, const nvf_digit *d, int n) {
  if (nest->nloop != n) return 0;
  for (int i = 0; i < n; i++)
    if (!same_digit(&nest->loop[i], &d[i])) return 0;
  return 1;
}

/* Must s come after the loops of the nest? */
static int must_cut(const nvc_nests *r, const nvc_nest *nest, const nvf_stmt *s) {
  nvc_ints uses = { 0 };
  nvc_uses(r, s, &uses);
  for (int i = 0; i < nest->s.n; i++) {
    const nvf_stmt *d = nest->s.at[i];
    int late = d->op == NVF_REDUCE || (d->op == NVF_SCAN && nvc_has_loops(nvc_layout_of(r, d)));
    late |= nest->nloop && (d->op == NVF_PUT || d->op == NVF_CONTRACT);
    late |= nest->nloop && s->op == NVF_RELAYOUT && !nvf_layout_eq(&r->t->tile[s->in[0]], &r->t->tile[s->out[0]]);
    for (int j = 0; late && j < d->nout; j++)
      for (int k = 0; k < uses.n; k++)
        if (uses.at[k] == d->out[j]) return 1;
    if (is_store(d) && (s->op == NVF_LOAD || is_store(s)) && s->op != d->op && may_overlap(r, s, d)) return 1;
    if (d->op == NVF_LOAD && is_store(s) && crosses_axis(r, d, s)) return 1;
  }
  return nest->nloop && s->op == NVF_CONTRACT;
}

static nvc_nest *new_nest(nvc_nests *r) {
  nvc_nest *nest = NVB_NEW(r->a, nvc_nest);
  nest->id = r->nnest++;
  return nest;
}

static nvc_seq *plan_block(nvc_nests *r, const nvf_block *b) {
  NVB_VEC(nvc_nest *) runs = { 0 };
  nvc_nest *nest = NULL;
  for (int i = 0; i < b->n; i++) {
    nvf_stmt *s = b->s[i];
    nvf_digit loop[NVC_NEST_LOOPS];
    int n = loops_of(r, s, loop), solo = s->op == NVF_FOR || s->op == NVF_IF;
    r->stmt[s->id] = s;
    if (!nest || nest->solo || solo || !same_loops(nest, loop, n) || must_cut(r, nest, s)) {
      nest = new_nest(r);
      nest->nloop = n;
      nest->solo = solo;
      memcpy(nest->loop, loop, sizeof *loop * (size_t)n);
      NVB_PUSH(r->a, runs, nest);
    }
    NVB_PUSH(r->a, nest->s, s);
    r->nest_of[s->id] = nest;
    nvc_ints uses = { 0 };
    nvc_uses(r, s, &uses);
    for (int k = 0; k < uses.n; k++) NVB_PUSH(r->a, r->tile[uses.at[k]].users, s->id);
    for (int k = 0; k < s->nout; k++) {
      nvc_tile_use *t = &r->tile[s->out[k]];
      if (!t->def) t->def = s;
      t->scanned |= s->op == NVF_SCAN;
    }
    if (s->body) nest->body = plan_block(r, s->body);
    if (s->other_body) nest->other = plan_block(r, s->other_body);
  }
  nvc_seq *q = NVB_NEW(r->a, nvc_seq);
  *q = (nvc_seq){ runs.n, runs.at };
  return q;
}

/* ---- repeated statements */
static int last_id(const nvf_block *b, int id) {
  for (int i = 0; b && i < b->n; i++) {
    id = b->s[i]->id;
    id = last_id(b->s[i]->body, id);
    id = last_id(b->s[i]->other_body, id);
  }
  return id;
}

/* May the loaded memory be overwritten before `user`, which comes after the load? A loop that contains only the user
   returns to it after all of its stores; stores of the user's nest come between its elements. */
static int is_overwritten(const nvc_nests *r, const nvf_stmt *load, int user) {
  const nvc_nest *nest = r->nest_of[user];
  int end = user;
  for (int i = load->id + 1; i < user; i++) {
    int last = r->stmt[i] && r->stmt[i]->op == NVF_FOR ? last_id(r->stmt[i]->body, i) : 0;
    end = last > end ? last : end;
  }
  for (int i = load->id + 1; i <= end; i++)
    if (r->stmt[i] && is_store(r->stmt[i]) && may_overlap(r, load, r->stmt[i])) return 1;
  for (int i = 0; i < nest->s.n; i++)
    if (is_store(nest->s.at[i]) && crosses_axis(r, load, nest->s.at[i])) return 1;
  return 0;
}

/* May a later nest repeat the statement instead of keeping its results? Not if it assigns to a carried tile. A map may
   be repeated if its operands are still there, are kept, or can be repeated too. */
static int may_repeat(const nvc_nests *r, const nvf_stmt *d, int user, int cost) {
  nvc_ints uses = { 0 };
  for (int o = 0; o < d->nout; o++)
    if (r->tile[d->out[o]].mutable) return 0;
  nvc_uses(r, d, &uses);
  if (d->op == NVF_MAP) {
    cost -= d->frag->cost;
    if (cost < 0 || !r->map_cost) return 0;
    for (int i = 0; i < uses.n; i++) {
      const nvc_tile_use *u = &r->tile[uses.at[i]];
      if (u->mutable || !u->def) return 0;
      if (!u->kept && nvc_has_loops(&r->t->tile[uses.at[i]]) && !may_repeat(r, u->def, user, cost)) return 0;
    }
    return 1;
  }
  if (uses.n) return 0;
  if (d->op != NVF_LOAD) return nvf_stmt_is(d, NVF_ELEMENTWISE);
  return !r->k->param[d->buf].written && !is_overwritten(r, d, user);
}

static void repeat_in(nvc_nests *r, nvc_nest *nest, const nvf_stmt *d) {
  int at = 0;
  for (int i = 0; i < nest->s.n; i++) {
    if (nest->s.at[i] == d) return;
    at += nest->s.at[i]->id < d->id && r->nest_of[nest->s.at[i]->id] != nest;
  }
  for (int i = 0; i < d->nout; i++) r->tile[d->out[i]].repeated = 1;
  NVB_PUSH(r->a, nest->s, (nvf_stmt *)d);
  for (int i = nest->s.n - 1; i > at; i--) nest->s.at[i] = nest->s.at[i - 1];
  nest->s.at[at] = (nvf_stmt *)d;
  nvc_ints uses = { 0 };
  nvc_uses(r, d, &uses);
  for (int i = 0; i < uses.n; i++)
    if (!r->tile[uses.at[i]].kept && nvc_has_loops(&r->t->tile[uses.at[i]]))
      repeat_in(r, nest, r->tile[uses.at[i]].def);
}

/* Are all loops of the layout loops of the nest? A scan opens its own. */
static int nest_loops(const nvc_nest *nest, const nvf_layout *l) {
  for (int i = 0; i < l->n; i++) {
    int found = !nvc_looped(&l->d[i]);
    for (int k = 0; k < nest->nloop && !found; k++) found = same_digit(&nest->loop[k], &l->d[i]);
    if (!found) return 0;
  }
  return 1;
}

/* Decides for a tile with loops that later nests use: all of these repeat its definition, or it is kept. A repeated
   value is right only where the effects of that nest use it. */
static void keep_or_repeat(nvc_nests *r, int tile) {
  nvc_tile_use *t = &r->tile[tile];
  if (t->mutable) return;
  t->kept = r->in_memory && r->in_memory(r->emitter, tile);
  if (!nvc_has_loops(&r->t->tile[tile])) return;
  nvc_nest *home = r->nest_of[t->def->id];
  for (int i = 0; i < t->users.n; i++) {
    const nvc_nest *u = r->nest_of[t->users.at[i]];
    t->kept |= u != home && !(nest_loops(u, &r->t->tile[tile]) && may_repeat(r, t->def, t->users.at[i], r->map_cost));
  }
  for (int i = 0; i < t->users.n && !t->kept; i++)
    if (r->nest_of[t->users.at[i]] != home) repeat_in(r, r->nest_of[t->users.at[i]], t->def);
}

static void mark_carried(nvc_nests *r, const nvf_block *b) {
  for (int i = 0; i < b->n; i++) {
    const nvf_stmt *s = b->s[i];
    for (int c = 0; c < s->ncarry; c++) {
      nvc_tile_use *in = &r->tile[s->carry[c].inner], *out = &r->tile[s->carry[c].outer];
      in->mutable = out->mutable = 1;
      if (!in->def) in->def = s;
    }
    if (s->body) mark_carried(r, s->body);
    if (s->other_body) mark_carried(r, s->other_body);
  }
}

/* Drops statements from a nest whose results only later nests use, which repeat them. */
static void drop_unused(nvc_nests *r, nvc_seq *q) {
  for (int i = 0; i < q->n; i++) {
    nvc_nest *nest = q->nest[i];
    int n = 0;
    for (int j = nest->s.n; j-- > 0;) { /* from the last: a dropped map no longer uses its operands */
      nvf_stmt *s = nest->s.at[j];
      int pure = nvf_stmt_is(s, NVF_ELEMENTWISE) && (s->op != NVF_MAP || r->map_cost), used = 0;
      for (int o = 0; pure && o < s->nout; o++) {
        const nvc_tile_use *t = &r->tile[s->out[o]];
        used |= t->mutable || t->kept || r->nest_of[t->def->id] != nest || !nest->nloop;
        for (int k = 0; k < t->users.n; k++)
          for (int l = j + 1; l < nest->s.n; l++) used |= nest->s.at[l] && nest->s.at[l]->id == t->users.at[k];
      }
      if (pure && !used) nest->s.at[j] = NULL;
    }
    for (int j = 0; j < nest->s.n; j++)
      if (nest->s.at[j]) nest->s.at[n++] = nest->s.at[j];
    nest->s.n = n;
    if (nest->body) drop_unused(r, nest->body);
    if (nest->other) drop_unused(r, nest->other);
  }
}

/* ---- relations */
int nvc_relation(nvc_nests *r, const struct nvf_rel *rel) {
  for (int i = 0; i < r->nrel; i++)
    if (r->rel[i]->cmp == rel->cmp && same_expr(r->rel[i]->a, rel->a) && same_expr(r->rel[i]->b, rel->b)) return i;
  if (r->nrel == NVC_RELATIONS || nvc_has(rel->a, NVF_TILE) || nvc_has(rel->b, NVF_TILE)) return -1;
  r->rel[r->nrel] = (struct nvf_rel *)nvb_dup(r->a, rel, sizeof *rel);
  return r->nrel++;
}

uint64_t nvc_relation_set(nvc_nests *r, const nvf_cond *c) {
  uint64_t set = 0;
  for (int i = 0; c && i < c->nrel; i++) {
    int q = nvc_relation(r, &c->rel[i]);
    if (q >= 0) set |= 1ull << q;
  }
  return set;
}

int nvc_normal(const struct nvf_rel *rel, int *sign, int *plus) {
  *sign = rel->cmp == NVF_LT || rel->cmp == NVF_LE ? 1 : -1;
  *plus = rel->cmp == NVF_LE || rel->cmp == NVF_GE ? -1 : 0;
  return rel->cmp != NVF_EQ && rel->cmp != NVF_NE;
}

const nvf_layout *nvc_widest_with(nvc_nests *r, const nvc_nest *nest, int q) {
  const nvf_layout *best = NULL;
  for (int i = 0; i < nest->s.n; i++) {
    const nvf_stmt *s = nest->s.at[i];
    if (s->op == NVF_CHECK || s->op == NVF_TEST || !(nvc_relation_set(r, s->where) >> q & 1)) continue;
    const nvf_layout *l = nvc_layout_of(r, s);
    if (!best || l->n > best->n) best = l;
  }
  return best;
}

/* Does the layout have every axis of the expression along which some tile has more than one element? */
static int covers_expr(const nvc_nests *r, const nvf_layout *l, const nvf_expr *x) {
  if (x->kind >= NVF_ADD) return covers_expr(r, l, x->a) && covers_expr(r, l, x->b);
  int moves = 0;
  for (int t = 0; x->kind == NVF_AXIS && t < r->k->ntile && !moves; t++) moves = nvf_extent(&r->t->tile[t], x->id) > 1;
  return !moves || nvf_extent(l, x->id) > 1;
}

const nvf_layout *nvc_widest_over(const nvc_nests *r, const nvc_nest *nest, int q) {
  const nvf_layout *best = NULL;
  for (int i = 0; i < nest->s.n; i++) {
    const nvf_layout *l = nvc_layout_of(r, nest->s.at[i]);
    if ((!best || l->n > best->n) && covers_expr(r, l, r->rel[q]->a) && covers_expr(r, l, r->rel[q]->b)) best = l;
  }
  return best;
}

static int level_of(const nvc_nest *nest, const nvf_digit *d) {
  for (int i = 0; d->level == 'I' && i < nest->nloop; i++)
    if (same_digit(&nest->loop[i], d)) return i;
  return nest->nloop;
}

int nvc_linear(const nvc_nests *r, const nvc_nest *nest, int q, int level, const nvf_layout *l, nvc_line *out) {
  int sign, plus;
  if (!nvc_normal(r->rel[q], &sign, &plus)) return 0;
  *out = (nvc_line){ .lo = plus, .hi = plus, .deepest = 1 };
  for (int i = 0; i < l->n; i++) {
    const nvf_digit *d = &l->d[i];
    int64_t a, b;
    int at = level_of(nest, d);
    if (d->extent == 1 || at < level) continue;
    if (!nvc_coef(r, r->rel[q]->a, d->axis, &a) || !nvc_coef(r, r->rel[q]->b, d->axis, &b)) return 0;
    int64_t c = sign * (a - b) * d->stride;
    if (at == level && at < nest->nloop) {
      out->step = c;
      continue;
    }
    *(c < 0 ? &out->lo : &out->hi) += c * (d->extent - 1);
    if (c && at < nest->nloop) out->deepest = 0;
  }
  return 1;
}

static int same_everywhere(const nvc_nests *r, const nvf_expr *x) {
  if (x->kind == NVF_VAR || x->kind == NVF_TILE) return 0;
  for (int t = 0; x->kind == NVF_AXIS && t < r->k->ntile; t++)
    if (nvf_extent(&r->t->tile[t], x->id) > 1) return 0;
  return x->kind < NVF_ADD || (same_everywhere(r, x->a) && same_everywhere(r, x->b));
}

uint64_t nvc_same_in_block(const nvc_nests *r, uint64_t set) {
  uint64_t same = 0;
  for (int i = 0; i < r->nrel; i++)
    if (set >> i & 1 && same_everywhere(r, r->rel[i]->a) && same_everywhere(r, r->rel[i]->b)) same |= 1ull << i;
  return same;
}

/* ---- the relations that every effect carries */
static int executes(const nvc_nest *u, const nvf_stmt *s) {
  for (int i = 0; i < u->s.n; i++)
    if (u->s.at[i] == s) return 1;
  return 0;
}

/* The relations carried by all nests that use a result of s and do not repeat s. */
static uint64_t carried_by_users(const nvc_nests *r, const nvf_stmt *s, const nvc_nest *nest, uint64_t all) {
  uint64_t set = all;
  for (int o = 0; o < s->nout; o++) {
    const nvc_tile_use *t = &r->tile[s->out[o]];
    if (t->mutable) return 0;
    for (int i = 0; i < t->users.n; i++) {
      const nvc_nest_list *in = &r->done_in[t->users.at[i]];
      for (int k = 0; k < in->n; k++)
        if (in->at[k] != nest && !executes(in->at[k], s)) set &= in->at[k]->carries;
    }
  }
  return set;
}

int nvc_still(const nvc_nests *r, int q, int axis) {
  int64_t a, b;
  return nvc_coef(r, r->rel[q]->a, axis, &a) && nvc_coef(r, r->rel[q]->b, axis, &b) && a == b;
}

/* Where its own relations fail, a reduction's result is the identity, which may be used: loops over other axes may end
   there only if all users carry the relation. */
static uint64_t carried_by_reduction(nvc_nests *r, const nvf_stmt *s, const nvc_nest *nest, uint64_t all) {
  uint64_t own = nvc_relation_set(r, s->where), out = carried_by_users(r, s, nest, all), set = 0;
  const nvf_layout *l = nvc_layout_of(r, s);
  for (int q = 0; q < r->nrel; q++) {
    int mine = own >> q & 1;
    for (int i = 0; i < l->n && mine; i++)
      mine = !nvc_looped(&l->d[i]) || l->d[i].axis == s->axis || nvc_still(r, q, l->d[i].axis);
    if (mine || (out >> q & 1 && (own >> q & 1 || nvc_still(r, q, s->axis)))) set |= 1ull << q;
  }
  return set;
}

static uint64_t carried_by(nvc_nests *r, const nvf_stmt *s, const nvc_nest *nest, uint64_t all) {
  switch (s->op) {
  case NVF_STORE:
  case NVF_ATOMIC_MAX: return nvc_relation_set(r, s->where);
  case NVF_CHECK:
  case NVF_SCAN:
  case NVF_PUT:
  case NVF_CONTRACT:
  case NVF_FOR:
  case NVF_IF: return 0;
  case NVF_REDUCE: return carried_by_reduction(r, s, nest, all);
  default: return carried_by_users(r, s, nest, all);
  }
}

static int narrow_carried(nvc_nests *r, nvc_seq *q, uint64_t all) {
  int changed = 0;
  for (int i = 0; i < q->n; i++) {
    nvc_nest *nest = q->nest[i];
    uint64_t set = nest->carries;
    for (int j = 0; j < nest->s.n; j++)
      if (r->nest_of[nest->s.at[j]->id] == nest) set &= carried_by(r, nest->s.at[j], nest, all);
    if (nest->body) changed |= narrow_carried(r, nest->body, all);
    if (nest->other) changed |= narrow_carried(r, nest->other, all);
    changed |= set != nest->carries;
    nest->carries = set;
  }
  return changed;
}

static uint64_t all_relations(const nvc_nests *r) { return r->nrel == NVC_RELATIONS ? ~0ull : (1ull << r->nrel) - 1; }

static void start_carried(nvc_nests *r, nvc_seq *q, int pass) {
  for (int i = 0; i < q->n; i++) {
    nvc_nest *nest = q->nest[i];
    for (int j = 0; j < nest->s.n; j++) {
      nvc_relation_set(r, nest->s.at[j]->where);
      if (!pass) NVB_PUSH(r->a, r->done_in[nest->s.at[j]->id], nest);
    }
    if (pass) nest->carries = all_relations(r);
    if (nest->body) start_carried(r, nest->body, pass);
    if (nest->other) start_carried(r, nest->other, pass);
  }
}

uint64_t nvc_carried_by_all(const nvc_seq *q) {
  uint64_t set = ~0ull;
  for (int i = 0; i < q->n; i++) {
    const nvc_nest *nest = q->nest[i];
    if (!nest->solo) set &= nest->carries;
    if (nest->body) set &= nvc_carried_by_all(nest->body);
    if (nest->other) set &= nvc_carried_by_all(nest->other);
  }
  return set;
}

/* ---- the whole part */
void nvc_nests_init(nvc_nests *r, nvb_arena *a, const nvf_kernel *k, const nvf_schedule *s, const nvf_typed *t) {
  *r = (nvc_nests){ .a = a, .k = k, .s = s, .t = t };
  r->tile = NVB_NEWN(a, nvc_tile_use, k->ntile);
  r->nest_of = NVB_NEWN(a, nvc_nest *, k->nstmt);
  r->done_in = NVB_NEWN(a, nvc_nest_list, k->nstmt);
  r->stmt = NVB_NEWN(a, const nvf_stmt *, k->nstmt);
}

nvc_seq *nvc_nests_of_part(nvc_nests *r, const nvf_part *p) {
  r->nrel = 0;
  int first = r->nnest;
  mark_carried(r, &p->body);
  nvc_seq *q = plan_block(r, &p->body);
  for (int t = 0; t < r->k->ntile; t++) {
    const nvf_stmt *d = r->tile[t].def;
    if (d && r->nest_of[d->id] && r->nest_of[d->id]->id >= first && d->op != NVF_PUT) keep_or_repeat(r, t);
  }
  start_carried(r, q, 0);
  start_carried(r, q, 1);
  uint64_t all = all_relations(r);
  while (narrow_carried(r, q, all)) {}
  drop_unused(r, q);
  return q;
}
