/* Decides how loops are cut. A loop that ends within a vector executes the iterations in which every relation holds in
   all lanes without masks, the others with them. The innermost loop of a nest with choices that depend on an element's
   index (the operands of concat, pad or roll, each loaded under its own condition) is divided among versions of its
   body: a version takes one side of every choice, so it has no loads of other sides, no masks and no tests. The
   remaining iterations, a vector at each border, execute the whole body under masks. Never changes a value. */
#include "codegen/llvm/emit.h"
#include <string.h>

/* ---- how far a loop goes */
/* x / step rounded down, clamped to [0, extent] */
static val whole_iterations(nvcl_em *e, val x, int64_t step, int64_t extent) {
  val t = nvcl_floor_div(e, x, nvcl_int(e, step));
  t = nvcl_call(e, "llvm.smax", &e->i64, 1, (val[]){ t, nvcl_int(e, 0) }, 2);
  return nvcl_call(e, "llvm.smin", &e->i64, 1, (val[]){ t, nvcl_int(e, extent) }, 2);
}

/* The number of iterations j in [0, extent) with x + most + step * j < 0: the first ceil(-(x + most) / step) */
static val iterations_until(nvcl_em *e, val x, int64_t most, int64_t step, int64_t extent) {
  return whole_iterations(e, LLVMBuildNSWSub(e->b, nvcl_int(e, step - 1 - most), x, ""), step, extent);
}

/* The number of iterations with x + least - step * j >= 0: the first floor((x + least) / step) + 1 */
static val iterations_beyond(nvcl_em *e, val x, int64_t least, int64_t step, int64_t extent) {
  return whole_iterations(e, LLVMBuildNSWAdd(e->b, x, nvcl_int(e, least + step), ""), step, extent);
}

static val at_open_loops(nvcl_em *e, const nvc_nest *r, int q) {
  nvf_layout l = { .n = r->nloop };
  for (int i = 0; i < r->nloop; i++) l.d[i] = r->loop[i];
  nvf_expr minus = { .kind = NVF_SUB, .a = e->r.rel[q]->a, .b = e->r.rel[q]->b };
  int sign, plus;
  nvc_normal(e->r.rel[q], &sign, &plus);
  if (sign < 0) {
    minus.a = e->r.rel[q]->b;
    minus.b = e->r.rel[q]->a;
  }
  nvcl_xv x = nvcl_index(e, &minus, &l, 0);
  return nvcl_index_value(e, &x, 1);
}

static val lesser_of(nvcl_em *e, val a, val b) {
  return a && a != b ? nvcl_call(e, "llvm.smin", &e->i64, 1, (val[]){ a, b }, 2) : b;
}

/* A relation that only later nests test ends a loop here, too: they do not use the rest. */
nvcl_cut nvcl_cut_loop(nvcl_em *e, const nvc_nest *r, int level) {
  int64_t extent = r->loop[level].extent;
  nvcl_cut c = { .exact = 1 };
  for (int q = 0; q < e->r.nrel; q++) {
    nvc_line x;
    if (e->known >> q & 1) continue;
    int stops = r->carries >> q & 1;
    const nvf_layout *masked = nvc_widest_with(&e->r, r, q);
    const nvf_layout *l = masked || !stops ? masked : nvc_widest_over(&e->r, r, q);
    if (!l || !nvc_linear(&e->r, r, q, level, l, &x) || x.step <= 0) continue;
    if (!stops && (!x.deepest || e->split)) continue;
    val at = at_open_loops(e, r, q), any = stops ? iterations_until(e, at, x.lo, x.step, extent) : NULL;
    if (stops) c.any = lesser_of(e, c.any, any);
    if (!x.deepest || !masked) continue;
    c.full = lesser_of(e, c.full, x.lo == x.hi && stops ? any : iterations_until(e, at, x.hi, x.step, extent));
    c.exact &= x.lo == x.hi && stops;
    c.set |= 1ull << q;
  }
  if (!c.any) c.any = nvcl_int(e, extent);
  c.full = c.full ? lesser_of(e, c.full, c.any) : c.any;
  return c;
}

val nvcl_kept_iterations(nvcl_em *e, const nvc_nest *r, int level, int axis) {
  val most = nvcl_int(e, r->loop[level].extent);
  nvc_line x;
  for (int q = 0; q < e->r.nrel; q++) {
    const nvf_layout *l = r->carries >> q & 1 && nvc_still(&e->r, q, axis) ? nvc_widest_over(&e->r, r, q) : NULL;
    if (l && nvc_linear(&e->r, r, q, level, l, &x) && x.step > 0)
      most = lesser_of(e, most, iterations_until(e, at_open_loops(e, r, q), x.lo, x.step, r->loop[level].extent));
  }
  return most;
}

/* Is one masked loop enough? With mask registers (AVX-512) and an expensive body, a second, unmasked copy would cost
   compile time and gain nothing. */
int nvcl_is_expensive(nvcl_em *e, const nvc_nest *r) {
  enum { MANY = 48 };
  int cost = 0;
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *s = r->s.at[i];
    if (s->op == NVF_MAP) cost += s->frag->cost * nvc_items(nvc_layout_of(&e->r, s));
    if (s->op == NVF_REDUCE || (s->op == NVF_STORE && nvc_hint(&e->r, s, NVF_HINT_NT, 0))) return 0;
  }
  return e->target->width == 64 && cost > MANY;
}

/* ---- planning the versions of a body */
enum { BUDGET = 256 }; /* limit for all versions but the first: statements and costs of their maps, times items */
typedef struct plan {
  nvcl_em *e;
  const nvc_nest *run;
  nvcl_split *s;
  int budget, full;
} plan;
typedef struct draft {
  nvcl_version v;
  char *wanted; /* by tile: 1: the version uses it */
} draft;

/* The parameter whose value an instruction passes on; -1: it computes a value */
static int handed_on(const nvg_frag *f, int i) {
  while (f->inst[i].prim == NVG_BITS) i = f->inst[i].a;
  return f->inst[i].prim == NVG_PARAM ? (int)f->inst[i].imm : -1;
}

/* Is the fragment where(c, a..., b...)? */
static int is_choice(const nvg_frag *f) {
  int n = f->nresult, is = f->nparam == 1 + 2 * n && f->rare < 0;
  for (int i = 0; i < n && is; i++) {
    const nvg_inst *x = &f->inst[f->result[i]];
    while (x->prim == NVG_BITS) x = &f->inst[x->a];
    is =
        x->prim == NVG_SEL && handed_on(f, x->a) == 0 && handed_on(f, x->b) == 1 + i && handed_on(f, x->c) == 1 + n + i;
  }
  return is;
}

/* The relations that decide the choice; 0: s is no choice, or something else decides it */
static uint64_t decided_by(const plan *p, const nvf_stmt *s) {
  if (s->op != NVF_MAP || s->arg[0].kind != NVF_ATILE || !is_choice(s->frag)) return 0;
  const nvc_tile_use *t = &p->e->r.tile[s->arg[0].id];
  if (t->mutable || !t->def || t->def->op != NVF_TEST || t->def->where->ntile) return 0;
  uint64_t set = 0;
  for (int i = 0; i < t->def->where->nrel; i++) {
    int q = nvc_relation(&p->e->r, &t->def->where->rel[i]);
    if (q < 0 || !(p->s->lines >> q & 1)) return 0;
    set |= 1ull << q;
  }
  return set;
}

static int is_wanted(const plan *p, const draft *d, const nvf_stmt *s) {
  int is = !nvf_stmt_is(s, NVF_ELEMENTWISE);
  for (int o = 0; o < s->nout; o++) {
    const nvc_tile_use *t = &p->e->r.tile[s->out[o]];
    is |= d->wanted[s->out[o]] || t->mutable || t->kept;
  }
  return is;
}

static draft copy_of(const plan *p, const draft *d) {
  draft c = *d;
  c.v.side = nvb_dup(p->e->a, d->v.side, (size_t)p->e->k->nstmt);
  c.v.fail = nvb_dup(p->e->a, d->v.fail, sizeof *d->v.fail * NVC_RELATIONS);
  c.wanted = nvb_dup(p->e->a, d->wanted, (size_t)p->e->k->ntile);
  return c;
}

static void take_whole(const plan *p, draft *d, const nvf_stmt *s) {
  nvc_ints uses = { 0 };
  nvc_uses(&p->e->r, s, &uses);
  for (int i = 0; i < uses.n; i++) d->wanted[uses.at[i]] = 1;
  d->v.known |= nvc_relation_set(&p->e->r, s->where) & p->s->lines;
}

static void take_side(draft *d, const nvf_stmt *s, uint64_t set, int side) {
  d->v.side[s->id] = (signed char)side;
  for (int o = 0; o < s->nout; o++) {
    const nvf_arg *a = &s->arg[1 + (side - 1) * s->nout + o];
    if (a->kind == NVF_ATILE) d->wanted[a->id] = 1;
  }
  if (side == NVC_YES) d->v.known |= set;
  else if (!(set & (set - 1))) d->v.never |= set;
  else if (d->v.nfail < NVC_RELATIONS) d->v.fail[d->v.nfail++] = set;
}

static int cost_of(const plan *p, const nvcl_version *v) {
  int cost = 0;
  for (int i = 0; i < p->run->s.n; i++) {
    const nvf_stmt *s = p->run->s.at[i];
    int each = s->op == NVF_MAP && v->side[s->id] == NVC_WHOLE ? 1 + s->frag->cost : 1;
    if (v->side[s->id] != NVC_SKIPPED) cost += each * nvc_items(nvc_layout_of(&p->e->r, s));
  }
  return cost;
}

static void add_version(plan *p, const draft *d) {
  int cost = p->s->n ? cost_of(p, &d->v) : 0;
  p->full = p->s->n == NVC_LOOP_VERSIONS || cost > p->budget;
  if (p->full) return;
  p->budget -= cost;
  if (!(d->v.known & d->v.never)) p->s->at[p->s->n++] = nvb_dup(p->e->a, &d->v, sizeof d->v);
}

/* Plans from statement i back to the first; a choice that is not yet decided is taken both ways. */
static void resolve_sides(plan *p, draft d, int i) {
  for (; i >= 0 && !p->full; i--) {
    const nvf_stmt *s = p->run->s.at[i];
    uint64_t set = is_wanted(p, &d, s) ? decided_by(p, s) : 0;
    if (!is_wanted(p, &d, s)) {
      d.v.side[s->id] = NVC_SKIPPED;
    } else if (!set) {
      take_whole(p, &d, s);
    } else if (set & d.v.never) {
      take_side(&d, s, 0, NVC_NO);
    } else {
      draft no = set & ~d.v.known ? copy_of(p, &d) : d;
      take_side(&d, s, set, NVC_YES);
      if (!(set & ~no.v.known)) continue;
      resolve_sides(p, d, i - 1);
      take_side(&no, s, set & ~no.v.known, NVC_NO);
      d = no;
    }
  }
  if (i < 0) add_version(p, &d);
}

/* ---- which nests have versions */
/* The widest layout of a statement of the nest with relation q, tests included */
static const nvf_layout *widest_line(nvcl_em *e, const nvc_nest *r, int q) {
  const nvf_layout *best = NULL;
  for (int i = 0; i < r->s.n; i++) {
    const nvf_stmt *s = r->s.at[i];
    const nvf_layout *l = nvc_relation_set(&e->r, s->where) >> q & 1 ? nvc_layout_of(&e->r, s) : NULL;
    if (l && (!best || l->n > best->n)) best = l;
  }
  return best;
}

static int line_of(nvcl_em *e, const nvc_nest *r, int q, int level, nvc_line *x) {
  const nvf_layout *l = widest_line(e, r, q);
  return l && nvc_linear(&e->r, r, q, level, l, x);
}

static uint64_t lines_of(nvcl_em *e, const nvc_nest *r) {
  uint64_t set = 0;
  nvc_line x;
  for (int q = 0; q < e->r.nrel; q++) set |= (uint64_t)line_of(e, r, q, r->nloop - 1, &x) << q;
  return set;
}

/* Does relation q hold from the first iteration on, until one that ends every effect? Then cutting the loops in two is
   enough. */
static int ends_loops(nvcl_em *e, const nvc_nest *r, int q) {
  nvc_line x = { 0 };
  for (int level = r->nloop; level-- > 0 && !x.step;)
    if (!line_of(e, r, q, level, &x)) return 0;
  return (r->carries >> q & 1) && x.step >= 0;
}

nvcl_split *nvcl_split_new(nvcl_em *e, const nvc_nest *r) {
  plan p = { .e = e, .run = r, .s = NVB_NEW(e->a, nvcl_split), .budget = BUDGET };
  if (!r->nloop || e->compact || nvcl_is_expensive(e, r)) return NULL;
  p.s->lines = lines_of(e, r);
  draft d = { .wanted = NVB_NEWN(e->a, char, e->k->ntile) };
  d.v.side = NVB_NEWN(e->a, signed char, e->k->nstmt);
  d.v.fail = NVB_NEWN(e->a, uint64_t, NVC_RELATIONS);
  resolve_sides(&p, d, r->s.n - 1);
  int gain = p.s->n > 1;
  for (int v = 0; v < p.s->n; v++) {
    p.s->asked |= p.s->at[v]->known | p.s->at[v]->never;
    for (int i = 0; i < p.s->at[v]->nfail; i++) p.s->asked |= p.s->at[v]->fail[i];
  }
  for (int q = 0; q < e->r.nrel && !gain; q++) gain = (p.s->asked >> q & 1) && !ends_loops(e, r, q);
  return gain && p.s->n ? p.s : NULL;
}

int nvcl_side(const nvcl_em *e, const nvf_stmt *s) { return e->version ? e->version->side[s->id] : NVC_WHOLE; }

/* ---- the iterations of a version, at the open loops */
/* If relation q depends on the loop, its iterations are, in this order: one value in all lanes, up to `first`; mixed,
   up to `last`; the other value in all lanes. If it does not, it has one value in every iteration. */
void nvcl_split_at(nvcl_em *e, const nvc_nest *r) {
  nvcl_split *s = e->split;
  int level = r->nloop - 1;
  int64_t extent = r->loop[level].extent;
  for (int q = 0; q < e->r.nrel; q++) {
    nvcl_bounds *z = &s->bounds[q];
    nvc_line x;
    *z = (nvcl_bounds){ 0 };
    if (!((s->asked & ~e->known) >> q & 1) || !line_of(e, r, q, level, &x)) continue;
    val at = at_open_loops(e, r, q), zero = nvcl_int(e, 0);
    z->step = x.step;
    if (x.step > 0) {
      z->first = iterations_until(e, at, x.hi, x.step, extent);
      z->last = iterations_until(e, at, x.lo, x.step, extent);
    } else if (x.step < 0) {
      z->first = iterations_beyond(e, at, x.lo, -x.step, extent);
      z->last = iterations_beyond(e, at, x.hi, -x.step, extent);
    } else {
      z->holds = LLVMBuildICmp(e->b, LLVMIntSLT, LLVMBuildNSWAdd(e->b, at, nvcl_int(e, x.hi), ""), zero, "");
      z->fails = LLVMBuildICmp(e->b, LLVMIntSGE, LLVMBuildNSWAdd(e->b, at, nvcl_int(e, x.lo), ""), zero, "");
    }
  }
}

val nvcl_same_until(nvcl_em *e, val lo, val any) {
  val end = any;
  for (int q = 0; q < e->r.nrel; q++) {
    const nvcl_bounds *z = &e->split->bounds[q];
    if (!z->step) continue;
    for (int i = 0; i < 2; i++) {
      val at = i ? z->last : z->first, ahead = LLVMBuildICmp(e->b, LLVMIntSGT, at, lo, "");
      end = lesser_of(e, LLVMBuildSelect(e->b, ahead, at, any, ""), end);
    }
  }
  return end;
}

static val and_bits(nvcl_em *e, val a, val b) { return a && b ? LLVMBuildAnd(e->b, a, b, "") : a ? a : b; }

/* Does relation q hold in all lanes of the iterations [lo, hi)? fails: does it fail in all lanes? */
static val holds_in(nvcl_em *e, int q, val lo, val hi) {
  const nvcl_bounds *z = &e->split->bounds[q];
  if (e->known >> q & 1) return NULL;
  if (!z->step) return z->holds;
  return z->step > 0 ? LLVMBuildICmp(e->b, LLVMIntSLE, hi, z->first, "")
                     : LLVMBuildICmp(e->b, LLVMIntSGE, lo, z->last, "");
}

static val fails_in(nvcl_em *e, int q, val lo, val hi) {
  const nvcl_bounds *z = &e->split->bounds[q];
  if (e->known >> q & 1) return LLVMConstInt(e->i1, 0, 0);
  if (!z->step) return z->fails;
  return z->step > 0 ? LLVMBuildICmp(e->b, LLVMIntSGE, lo, z->last, "")
                     : LLVMBuildICmp(e->b, LLVMIntSLE, hi, z->first, "");
}

static val some_fails(nvcl_em *e, uint64_t set, val lo, val hi) {
  val some = NULL;
  for (int q = 0; q < e->r.nrel; q++) {
    val x = set >> q & 1 ? fails_in(e, q, lo, hi) : NULL;
    if (x) some = some ? LLVMBuildOr(e->b, some, x, "") : x;
  }
  return some;
}

val nvcl_serves(nvcl_em *e, int version, val lo, val hi) {
  const nvcl_version *v = e->split->at[version];
  val all = NULL;
  for (int q = 0; q < e->r.nrel; q++) {
    if (v->known >> q & 1) all = and_bits(e, all, holds_in(e, q, lo, hi));
    if (v->never >> q & 1) all = and_bits(e, all, fails_in(e, q, lo, hi));
  }
  for (int i = 0; i < v->nfail; i++) all = and_bits(e, all, some_fails(e, v->fail[i], lo, hi));
  return all ? all : LLVMConstInt(e->i1, 1, 0);
}
