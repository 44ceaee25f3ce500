/* Before anything is emitted: statements with the same loops become runs, cut where a value is not yet there inside the
   loop; tiles get homes (a name, a stack slot, scratch; loads are repeated instead); and each run learns which
   relations all its effects carry, so that its loops may stop where one of them fails. */
#include "codegen/llvm_emit.h"
#include <string.h>
#include "graph/dtype.h"

static void expr_tiles(nvcl_em *e, const nvf_expr *x, nvcl_ints *out) {
  if (!x) return;
  if (x->kind == NVF_TILE) NVB_PUSH(e->a, *out, x->id);
  if (x->kind >= NVF_ADD) {
    expr_tiles(e, x->a, out);
    expr_tiles(e, x->b, out);
  }
}

void nvcl_uses(nvcl_em *e, const nvf_stmt *s, nvcl_ints *out) {
  for (int i = 0; i < s->nin; i++) NVB_PUSH(e->a, *out, s->in[i]);
  for (int i = 0; i < s->narg; i++)
    if (s->arg[i].kind == NVF_ATILE) NVB_PUSH(e->a, *out, s->arg[i].id);
  expr_tiles(e, s->map, out);
  for (int i = 0; s->where && i < s->where->ntile; i++) NVB_PUSH(e->a, *out, s->where->tile[i]);
  for (int i = 0; s->where && i < s->where->nrel; i++) {
    expr_tiles(e, s->where->rel[i].a, out);
    expr_tiles(e, s->where->rel[i].b, out);
  }
  for (int i = 0; i < s->ncarry; i++) {
    NVB_PUSH(e->a, *out, s->carry[i].inner);
    NVB_PUSH(e->a, *out, s->carry[i].outer);
  }
}

const nvf_layout *nvcl_layout_of(const nvcl_em *e, const nvf_stmt *s) {
  static const nvf_layout none;
  switch (s->op) {
  case NVF_STORE:
  case NVF_REDUCE:
  case NVF_SCAN:
  case NVF_PUT:
  case NVF_ATOMIC_MAX: return &e->t->tile[s->in[0]];
  case NVF_FOR:
  case NVF_IF: return &none;
  case NVF_CHECK: return e->t->stmt[s->id] ? e->t->stmt[s->id] : &none;
  default: return &e->t->tile[s->out[0]];
  }
}

/* ---- runs */
static int looped(const nvf_digit *d) { return d->place == 'I' && d->extent > 1; }

static int loops_of(const nvcl_em *e, const nvf_stmt *s, nvf_digit *out) {
  const nvf_layout *l = nvcl_layout_of(e, s);
  int n = 0;
  for (int i = 0; i < l->n && s->op != NVF_SCAN; i++) /* a scan has loops of its own */
    if (looped(&l->d[i])) out[n++] = l->d[i];
  return n;
}

static int same_loops(const nvcl_run *r, const nvf_digit *d, int n) {
  if (r->nloop != n) return 0;
  for (int i = 0; i < n; i++)
    if (r->loop[i].axis != d[i].axis || r->loop[i].stride != d[i].stride || r->loop[i].extent != d[i].extent) return 0;
  return 1;
}

/* Must s wait until the loops of r have ended? */
static int must_cut(nvcl_em *e, const nvcl_run *r, const nvf_stmt *s) {
  nvcl_ints uses = {0};
  nvcl_uses(e, s, &uses);
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *d = r->s.at[i];
    int late = d->op == NVF_REDUCE || (r->nloop && (d->op == NVF_SCAN || d->op == NVF_PUT || d->op == NVF_CONTRACT));
    late |= r->nloop && s->op == NVF_RELAYOUT && !nvf_layout_eq(&e->t->tile[s->in[0]], &e->t->tile[s->out[0]]);
    for (int j = 0; late && j < d->nout; j++)
      for (int k = 0; k < uses.n; k++)
        if (uses.at[k] == d->out[j]) return 1;
    int stored = d->op == NVF_STORE || d->op == NVF_ATOMIC_MAX;
    if (r->nloop && stored && (s->op == NVF_LOAD || s->op == NVF_ATOMIC_MAX || s->op == NVF_STORE) &&
        s->buf == d->buf && s->op != d->op)
      return 1;
  }
  return r->nloop && s->op == NVF_CONTRACT;
}

static nvcl_run *new_run(nvcl_em *e) {
  nvcl_run *r = NVB_NEW(e->a, nvcl_run);
  r->id = e->nrun++;
  return r;
}

static nvcl_seq *plan_block(nvcl_em *e, const nvf_block *b) {
  NVB_VEC(nvcl_run *) runs = {0};
  nvcl_run *r = NULL;
  for (int i = 0; i < b->n; i++) {
    nvf_stmt *s = b->s[i];
    nvf_digit loop[NVC_LOOPS];
    int n = loops_of(e, s, loop), solo = s->op == NVF_FOR || s->op == NVF_IF;
    e->stmt[s->id] = s;
    if (!r || r->solo || solo || !same_loops(r, loop, n) || must_cut(e, r, s)) {
      r = new_run(e);
      r->nloop = n;
      r->solo = solo;
      memcpy(r->loop, loop, sizeof *loop * (size_t)n);
      NVB_PUSH(e->a, runs, r);
    }
    NVB_PUSH(e->a, r->s, s);
    e->run_of[s->id] = r;
    nvcl_ints uses = {0};
    nvcl_uses(e, s, &uses);
    for (int k = 0; k < uses.n; k++) NVB_PUSH(e->a, e->users[uses.at[k]], s->id);
    for (int k = 0; k < s->nout; k++)
      if (!e->tile[s->out[k]].def) e->tile[s->out[k]].def = s;
    if (s->body) r->body = plan_block(e, s->body);
    if (s->other_body) r->other = plan_block(e, s->other_body);
  }
  nvcl_seq *q = NVB_NEW(e->a, nvcl_seq);
  *q = (nvcl_seq){runs.n, runs.at};
  return q;
}

/* ---- homes */
static int stores_before(const nvcl_em *e, int id) {
  for (int i = 0; i < id; i++)
    if (e->stmt[i] && (e->stmt[i]->op == NVF_STORE || e->stmt[i]->op == NVF_ATOMIC_MAX)) return 1;
  return 0;
}

/* May the statement be done again in a later run instead of keeping what it made? */
static int repeats(nvcl_em *e, const nvf_stmt *d, int user) {
  nvcl_ints uses = {0};
  nvcl_uses(e, d, &uses);
  if (uses.n) return 0;
  if (d->op == NVF_INDEX || d->op == NVF_TEST || d->op == NVF_ZEROS) return 1;
  if (d->op != NVF_LOAD) return 0;
  const nvf_param *p = &e->k->param[d->buf];
  return !p->written && (p->unique || !stores_before(e, user));
}

static void repeat_in(nvcl_em *e, nvcl_run *r, const nvf_stmt *d) {
  int at = 0;
  for (int i = 0; i < r->s.n; i++) {
    if (r->s.at[i] == d) return;
    at += r->s.at[i]->id < d->id && e->run_of[r->s.at[i]->id] != r;
  }
  for (int i = 0; i < d->nout; i++) e->tile[d->out[i]].repeated = 1;
  NVB_PUSH(e->a, r->s, (nvf_stmt *)d);
  for (int i = r->s.n - 1; i > at; i--) r->s.at[i] = r->s.at[i - 1];
  r->s.at[at] = (nvf_stmt *)d;
}

static int has_loops(const nvf_layout *l) {
  for (int i = 0; i < l->n; i++)
    if (looped(&l->d[i])) return 1;
  return 0;
}

int64_t nvcl_scratch(nvcl_em *e, int64_t bytes) {
  int64_t at = e->scratch_bytes;
  e->scratch_bytes += (bytes + 63) & ~(int64_t)63;
  return at;
}

static void give_scratch(nvcl_em *e, int tile) {
  nvcl_tile *t = &e->tile[tile];
  const nvf_layout *l = &e->t->tile[tile];
  int64_t n = (int64_t)t->nitem * t->lanes * nvg_size(e->k->tile[tile].type);
  for (int i = 0; i < l->n; i++)
    if (l->d[i].place == 'I') n *= l->d[i].extent;
  t->home = NVC_MEM;
  t->off = nvcl_scratch(e, n);
}

static void share(nvcl_em *e, int tile, const nvf_stmt *put) {
  nvcl_tile *t = &e->tile[tile];
  const nvf_layout *l = &e->t->tile[put->in[0]];
  int64_t n = nvg_size(e->k->tile[tile].type);
  t->home = NVC_MEM;
  t->norder = put->norder;
  t->order = put->order;
  t->extent = NVB_NEWN(e->a, int64_t, put->norder);
  for (int i = 0; i < put->norder; i++) n *= t->extent[i] = nvf_extent(l, put->order[i]);
  t->off = nvcl_scratch(e, n);
}

/* Must the tile lie in scratch because of who reads it? */
static int read_in_scratch(nvcl_em *e, int tile) {
  for (int i = 0; i < e->users[tile].n; i++) {
    const nvf_stmt *u = e->stmt[e->users[tile].at[i]];
    if (u->op == NVF_SCAN) return 1;
    if (u->op == NVF_RELAYOUT && !nvf_layout_eq(&e->t->tile[u->in[0]], &e->t->tile[u->out[0]]) &&
        (has_loops(&e->t->tile[u->in[0]]) || has_loops(&e->t->tile[u->out[0]]) || !nvcl_in_registers(e, u)))
      return 1;
  }
  return 0;
}

static void give_home(nvcl_em *e, int tile) {
  nvcl_tile *t = &e->tile[tile];
  const nvf_stmt *d = t->def;
  const nvf_layout *l = &e->t->tile[tile];
  if (!d) return;
  if (d->op == NVF_PUT) {
    share(e, tile, d);
    return;
  }
  nvcl_run *r = e->run_of[d->id];
  t->run = r->id;
  t->nitem = nvcl_items(l);
  t->lanes = nvcl_layout_lanes(e, l);
  t->v = NVB_NEWN(e->a, val, t->nitem);
  if (t->mutable) {
    if (has_loops(l) || read_in_scratch(e, tile)) give_scratch(e, tile);
    else t->home = NVC_VAR;
    return;
  }
  if (d->op == NVF_SCAN || read_in_scratch(e, tile)) {
    give_scratch(e, tile);
    return;
  }
  if (!has_loops(l)) return;
  for (int i = 0; i < e->users[tile].n; i++) {
    nvcl_run *u = e->run_of[e->users[tile].at[i]];
    if (u == r || t->home == NVC_MEM) continue;
    if (repeats(e, d, e->users[tile].at[i])) repeat_in(e, u, d);
    else give_scratch(e, tile);
  }
}

static void carried(nvcl_em *e, const nvf_block *b) {
  for (int i = 0; i < b->n; i++) {
    const nvf_stmt *s = b->s[i];
    for (int c = 0; c < s->ncarry; c++) {
      e->tile[s->carry[c].inner].mutable = e->tile[s->carry[c].outer].mutable = 1;
      if (!e->tile[s->carry[c].inner].def) e->tile[s->carry[c].inner].def = s;
      if (!e->tile[s->carry[c].outer].def) e->tile[s->carry[c].outer].def = s;
    }
    if (s->body) carried(e, s->body);
    if (s->other_body) carried(e, s->other_body);
  }
}

/* ---- what every effect carries */
static uint64_t outward(const nvcl_em *e, const nvf_stmt *s, const nvcl_run *r, uint64_t all) {
  uint64_t set = all;
  for (int o = 0; o < s->nout; o++) {
    const nvcl_tile *t = &e->tile[s->out[o]];
    if (t->mutable) return 0;
    for (int i = 0; i < e->users[s->out[o]].n; i++) {
      const nvcl_run *u = e->run_of[e->users[s->out[o]].at[i]];
      int again = 0;
      for (int k = 0; k < u->s.n; k++) again |= u->s.at[k] == s;
      if (u != r && !again) set &= u->carries;
    }
  }
  return set;
}

static uint64_t effect(nvcl_em *e, const nvf_stmt *s, const nvcl_run *r, uint64_t all) {
  uint64_t own = nvcl_relation_set(e, s->where), kept = 0;
  switch (s->op) {
  case NVF_STORE:
  case NVF_ATOMIC_MAX: return own;
  case NVF_CHECK:
  case NVF_SCAN:
  case NVF_PUT:
  case NVF_CONTRACT:
  case NVF_FOR:
  case NVF_IF: return 0;
  case NVF_REDUCE:
    for (int i = 0; i < e->nrel; i++) {
      int64_t a, b;
      if (nvcl_coef(e, e->rel[i]->a, s->axis, &a) && nvcl_coef(e, e->rel[i]->b, s->axis, &b) && a == b)
        kept |= 1ull << i;
    }
    return own | (kept & outward(e, s, r, all));
  default: return outward(e, s, r, all);
  }
}

static int narrow(nvcl_em *e, nvcl_seq *q, uint64_t all) {
  int changed = 0;
  for (int i = 0; i < q->n; i++) {
    nvcl_run *r = q->run[i];
    uint64_t set = r->carries;
    for (int j = 0; j < r->s.n; j++)
      if (e->run_of[r->s.at[j]->id] == r) set &= effect(e, r->s.at[j], r, all);
    if (r->body) changed |= narrow(e, r->body, all);
    if (r->other) changed |= narrow(e, r->other, all);
    changed |= set != r->carries;
    r->carries = set;
  }
  return changed;
}

static void start(nvcl_em *e, nvcl_seq *q, int pass) {
  for (int i = 0; i < q->n; i++) {
    nvcl_run *r = q->run[i];
    for (int j = 0; j < r->s.n; j++) nvcl_relation_set(e, r->s.at[j]->where);
    if (pass) r->carries = e->nrel == 64 ? ~0ull : (1ull << e->nrel) - 1;
    if (r->body) start(e, r->body, pass);
    if (r->other) start(e, r->other, pass);
  }
}

/* Loads that only later runs use are left to them. */
static void drop_unused(nvcl_em *e, nvcl_seq *q) {
  for (int i = 0; i < q->n; i++) {
    nvcl_run *r = q->run[i];
    int n = 0;
    for (int j = 0; j < r->s.n; j++) {
      nvf_stmt *s = r->s.at[j];
      int pure = s->op == NVF_LOAD || s->op == NVF_INDEX || s->op == NVF_TEST || s->op == NVF_ZEROS, used = 0;
      for (int o = 0; pure && o < s->nout; o++) {
        const nvcl_tile *t = &e->tile[s->out[o]];
        used |= t->mutable || t->home != NVC_SSA || t->run != r->id || !r->nloop;
        for (int k = 0; k < e->users[s->out[o]].n; k++) used |= e->run_of[e->users[s->out[o]].at[k]] == r;
      }
      if (!pure || used) r->s.at[n++] = s;
    }
    r->s.n = n;
    if (r->body) drop_unused(e, r->body);
    if (r->other) drop_unused(e, r->other);
  }
}

nvcl_seq *nvcl_plan_part(nvcl_em *e, const nvf_part *p) {
  e->nrel = 0;
  e->known = e->active = 0;
  carried(e, &p->body);
  nvcl_seq *q = plan_block(e, &p->body);
  for (int t = 0; t < e->k->ntile; t++)
    if (e->tile[t].def && e->run_of[e->tile[t].def->id] && !e->tile[t].v && !e->tile[t].norder) give_home(e, t);
  start(e, q, 0);
  start(e, q, 1);
  uint64_t all = e->nrel == 64 ? ~0ull : (1ull << e->nrel) - 1;
  while (narrow(e, q, all)) {}
  drop_unused(e, q);
  return q;
}
