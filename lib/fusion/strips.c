/* Finds the steps of a CPU's plan that run in strips: a Fourier transform with the steps before and after it. A strip
   is some of the last step's units with all that they need of the steps before, so that what lies between the steps
   stays in the cache of a core. Where units of two steps do not end together, a strip computes again what the one
   before it has computed, which changes no bit. It never changes a step. */
#include "fusion/planner.h"
#include <string.h>

/* ---- windows: the elements that a unit of a step reads or writes */
/* each u + [lo, hi) for unit u; ok 0: the address has no such form */
typedef struct span { int ok; int64_t each, lo, hi; } span;
typedef struct reader {
  const nvf_step *s;
  const nvf_typed *t;
  const nvf_stmt *at;
  const uint64_t *arg;
} reader;

static const span unknown = { 0 };
static span span_of(const reader *r, const nvf_expr *x);

static int is_same(const nvf_expr *a, const nvf_expr *b) {
  if (a == b) return 1;
  if (!a || !b || a->kind != b->kind || a->id != b->id || a->value != b->value) return 0;
  return is_same(a->a, b->a) && is_same(a->b, b->b);
}

/* An index from 0 on, below `n` */
static span below(int64_t n) { return (span){ n > 0, 0, 0, n }; }

static int64_t value_of(const reader *r, const nvf_expr *x) { return nvf_eval(r->s->k, r->s->s, x, r->arg, NULL); }

static span span_of_grid(const reader *r, int id) {
  return id ? below(value_of(r, r->s->k->part[0].grid[id].extent)) : (span){ 1, 1, 0, 1 };
}

/* The coordinates of a loop over constant bounds */
static span span_of_loop(const reader *r, int var) {
  for (int i = 0; i < r->s->k->nstmt; i++) {
    const nvf_stmt *f = r->s->k->stmt[i];
    if (f->op != NVF_FOR || f->var != var) continue;
    span lo = span_of(r, f->lo), hi = span_of(r, f->hi);
    return (span){ lo.ok && hi.ok && !lo.each && !hi.each && lo.lo < hi.hi - 1, 0, lo.lo, hi.hi - 1 };
  }
  return unknown;
}

static span multiplied(span a, span by) {
  if (by.each || by.hi - by.lo != 1) return by.lo >= 0 && !a.each && a.hi - a.lo == 1 ? multiplied(by, a) : unknown;
  if (by.lo < 0) return unknown;
  return (span){ 1, a.each * by.lo, a.lo * by.lo, (a.hi - 1) * by.lo + 1 };
}

static span divided(span a, span by, int rest) {
  if (by.each || by.hi - by.lo != 1 || by.lo < 1 || a.lo < 0) return unknown;
  int64_t d = by.lo;
  if (rest) return !a.each && a.hi <= d ? a : below(d);
  return a.each % d ? unknown : (span){ 1, a.each / d, a.lo / d, (a.hi - 1) / d + 1 };
}

static span span_of_two(const reader *r, const nvf_expr *x) {
  span a = span_of(r, x->a), b = span_of(r, x->b);
  if (!a.ok || !b.ok) return unknown;
  switch (x->kind) {
  case NVF_ADD: return (span){ 1, a.each + b.each, a.lo + b.lo, a.hi + b.hi - 1 };
  case NVF_SUB: return (span){ 1, a.each - b.each, a.lo - b.hi + 1, a.hi - b.lo };
  case NVF_MUL: return multiplied(a, b);
  case NVF_DIV: return divided(a, b, 0);
  case NVF_MOD: return divided(a, b, 1);
  default: return unknown;
  }
}

/* What the statement's condition says of an index: those that it excludes are not accessed. */
static span bounded(const reader *r, const nvf_expr *x, span s) {
  const nvf_cond *c = r->at->where;
  for (int i = 0; s.ok && !s.each && c && i < c->nrel; i++) {
    if (c->rel[i].cmp != NVF_LT || !is_same(c->rel[i].a, x)) continue;
    int64_t n = value_of(r, c->rel[i].b);
    s.hi = n < s.hi ? n : s.hi;
    s.ok = s.lo < s.hi;
  }
  return s;
}

static span span_of(const reader *r, const nvf_expr *x) {
  switch (x->kind) {
  case NVF_CONST:
  case NVF_PARAM:
  case NVF_NAME: return (span){ 1, 0, value_of(r, x), value_of(r, x) + 1 };
  case NVF_GRID: return bounded(r, x, span_of_grid(r, x->id));
  case NVF_AXIS: return bounded(r, x, below(nvf_extent(r->t->stmt[r->at->id], x->id)));
  case NVF_VAR: return bounded(r, x, span_of_loop(r, x->id));
  case NVF_TILE: return unknown;
  default: return bounded(r, x, span_of_two(r, x));
  }
}

/* The window of a kernel's parameter: of all its accesses together. */
static span span_of_param(reader *r, int param) {
  span sum = unknown;
  for (int i = 0; i < r->s->k->nstmt; i++) {
    const nvf_stmt *f = r->at = r->s->k->stmt[i];
    if ((f->op != NVF_LOAD && f->op != NVF_STORE && f->op != NVF_ATOMIC_MAX) || f->buf != param) continue;
    span s = f->op == NVF_ATOMIC_MAX ? unknown : span_of(r, f->map);
    if (!s.ok || (sum.ok && s.each != sum.each)) return unknown;
    if (sum.ok && sum.lo < s.lo) s.lo = sum.lo;
    if (sum.ok && sum.hi > s.hi) s.hi = sum.hi;
    sum = s;
  }
  return sum;
}

/* ---- steps */
enum { MANY = 8 }; /* steps of a strip, and buffers between them */
typedef struct finder {
  nvf_plan *p;
  const nvb_caps *caps;
  uint8_t *taken; /* by step: it runs in strips that were found before */
  int n, step[MANY + 1];
  int nlocal, local[MANY + 1];
} finder;

static int by_routine(const nvf_step *s) { return s->routine && s->routine->op == NVG_OP_DFT && s->k->nparam == 2; }

static int is_transform(const nvf_step *s) {
  int found = by_routine(s);
  for (int i = 0; i < s->k->nstmt; i++) found |= s->k->stmt[i]->op == NVF_DFT;
  return found;
}

static int is_in(const finder *f, int step) {
  for (int i = 0; i < f->n; i++)
    if (f->step[i] == step) return 1;
  return 0;
}

static int uses(const nvf_step *s, int buf, int written) {
  for (int i = 0; i < s->k->nparam; i++)
    if (s->bind[i].kind == NVF_BUFFER && s->bind[i].buf == buf && s->k->param[i].written == written) return 1;
  return 0;
}

/* The only step that writes to a temporary; -1: there are several, or it is none. */
static int writer_of(const nvf_plan *p, int buf) {
  int found = -1;
  for (int i = 0; i < p->nstep && p->buf[buf].kind == NVF_BTEMP; i++)
    if (uses(&p->step[i], buf, 1)) found = found == -1 ? i : -2;
  return found < 0 ? -1 : found;
}

/* The only step beside those found that reads the buffer: -1 if there is none, -2 if there are several. */
static int reader_beside(const finder *f, int buf) {
  int found = -1;
  for (int i = 0; i < f->p->nstep; i++)
    if (!is_in(f, i) && uses(&f->p->step[i], buf, 0)) found = found == -1 ? i : -2;
  return found;
}

/* May the step run unit by unit? */
static int has_units(const finder *f, int step) {
  const nvf_step *s = &f->p->step[step];
  if (f->taken[step] || s->gemm || s->nchecked) return 0;
  return s->routine ? by_routine(s) : s->k->npart == 1 && s->k->part[0].ngrid > 0;
}

/* All that it writes are temporaries of its own, which no step but `reader` and those found reads. */
static int writes_for(const finder *f, int step, int reader) {
  const nvf_step *s = &f->p->step[step];
  for (int i = 0; i < s->k->nparam; i++) {
    if (s->bind[i].kind != NVF_BUFFER || !s->k->param[i].written) continue;
    int buf = s->bind[i].buf, other = reader_beside(f, buf);
    if (writer_of(f->p, buf) != step || (other != -1 && other != reader)) return 0;
  }
  return 1;
}

static void add_step(finder *f, int step) { /* in ascending order */
  int at = f->n++;
  for (; at && f->step[at - 1] > step; at--) f->step[at] = f->step[at - 1];
  f->step[at] = step;
}

/* A step before those found that makes something for them alone; -1: there is none. */
static int step_before(const finder *f) {
  for (int i = 0; i < f->n; i++) {
    const nvf_step *s = &f->p->step[f->step[i]];
    for (int j = 0; j < s->k->nparam; j++) {
      if (s->bind[j].kind != NVF_BUFFER || s->k->param[j].written) continue;
      int w = writer_of(f->p, s->bind[j].buf);
      if (w >= 0 && !is_in(f, w) && has_units(f, w) && writes_for(f, w, -1)) return w;
    }
  }
  return -1;
}

/* The step that alone reads what the last one makes; -1: there is none. */
static int step_after(const finder *f) {
  int last = f->step[f->n - 1], found = -1;
  const nvf_step *s = &f->p->step[last];
  for (int i = 0; i < s->k->nparam && found < 0; i++)
    if (s->bind[i].kind == NVF_BUFFER && s->k->param[i].written) found = reader_beside(f, s->bind[i].buf);
  return found > last && has_units(f, found) && writes_for(f, last, found) ? found : -1;
}

static int drops_local(const finder *f, const nvf_strips *s) { /* does some window leave out a local buffer? */
  int found = 0;
  for (int i = 0; i < s->nwindow; i++) found += s->window[i].written;
  return found != f->nlocal;
}

static int local_of(const finder *f, int buf) {
  for (int i = 0; i < f->nlocal; i++)
    if (f->local[i] == buf) return i;
  return -1;
}

static void find_locals(finder *f) {
  f->nlocal = 0;
  for (int i = 0; i + 1 < f->n; i++) {
    const nvf_step *s = &f->p->step[f->step[i]];
    for (int j = 0; j < s->k->nparam && f->nlocal <= MANY; j++)
      if (s->bind[j].kind == NVF_BUFFER && s->k->param[j].written) f->local[f->nlocal++] = s->bind[j].buf;
  }
}

/* Does a step that runs later, but before the last one of the strips or as that, write to what one of them reads? */
static int is_overwritten(const finder *f, int step, int buf) {
  const nvf_buf *b = &f->p->buf[buf];
  for (int i = step; i <= f->step[f->n - 1]; i++) {
    const nvf_step *s = &f->p->step[i];
    for (int j = 0; j < s->k->nparam; j++) {
      if (s->bind[j].kind != NVF_BUFFER || !s->k->param[j].written) continue;
      const nvf_buf *to = &f->p->buf[s->bind[j].buf];
      if (to == b || (b->kind == NVF_BLEAF && to->donor == b->id)) return 1;
    }
  }
  return 0;
}

static int may_wait(const finder *f) { /* do the operands of all steps stay until the last one has run? */
  for (int i = 0; i < f->n; i++) {
    const nvf_step *s = &f->p->step[f->step[i]];
    for (int j = 0; j < s->k->nparam; j++)
      if (s->bind[j].kind == NVF_BUFFER && !s->k->param[j].written && local_of(f, s->bind[j].buf) < 0 &&
          is_overwritten(f, f->step[i], s->bind[j].buf))
        return 0;
  }
  return 1;
}

/* ---- windows of the steps found */
static span routine_span(const nvf_routine *r, int written) {
  const nvf_operand *x = written ? &r->result : &r->in[0];
  int64_t n = x->shape[x->rank - 1];
  return (span){ 1, n, 0, n };
}

static int add_windows(const finder *f, nvf_strips *to, int i) {
  nvb_arena *a = f->p->arena;
  const nvf_step *s = &f->p->step[f->step[i]];
  uint64_t *arg = NVB_NEWN(a, uint64_t, s->k->nparam + 1);
  for (int j = 0; j < s->k->nparam; j++) arg[j] = s->bind[j].bits;
  reader r = { s, s->routine ? NULL : nvf_kernel_check(a, s->k, s->s), NULL, arg };
  to->units[i] = s->routine ? s->blocks : value_of(&r, s->k->part[0].grid[0].extent);
  to->blocks[i] = to->units[i] > 0 ? s->blocks / to->units[i] : 0;
  if (to->units[i] < 1 || to->blocks[i] < 1) return 0;
  for (int j = 0; j < s->k->nparam; j++) {
    int written = s->k->param[j].written, local = s->bind[j].kind == NVF_BUFFER ? local_of(f, s->bind[j].buf) : -1;
    if (local < 0) continue;
    span w = s->routine ? routine_span(s->routine, written) : span_of_param(&r, j);
    if (!w.ok || w.each < 1 || (written && (w.lo < 0 || w.hi > w.each)) || s->bind[j].offset) return 0;
    int64_t size = nvg_size(s->k->param[j].type);
    to->window[to->nwindow++] = (nvf_window){ i, local, written, w.each, w.lo, w.hi, size };
    to->elements[local] = f->p->buf[f->local[local]].bytes / size;
  }
  return 1;
}

/* ---- the length of strips */
/* Enlarges a range to whole units of the step that makes these elements. */
static void add_units(nvf_range *u, const nvf_window *w, nvf_range e) {
  int64_t first = e.lo / w->each, last = (e.hi + w->each - 1) / w->each;
  if (e.lo >= e.hi) return;
  *u = u->lo < u->hi ? (nvf_range){ first < u->lo ? first : u->lo, last > u->hi ? last : u->hi }
                     : (nvf_range){ first, last };
}

/* Enlarges a range of elements by those that the units read, or sets it to those that they write. */
static void add_elements(nvf_range *e, const nvf_window *w, nvf_range u, int64_t all) {
  int64_t first = w->each * u.lo + w->lo, last = w->each * (u.hi - 1) + w->hi;
  if (w->written) first = w->each * u.lo, last = w->each * u.hi;
  if (first < 0) first = 0;
  if (last > all) last = all;
  if (u.lo >= u.hi || first >= last) return;
  int empty = w->written || e->lo >= e->hi;
  *e = empty ? (nvf_range){ first, last } : (nvf_range){ first < e->lo ? first : e->lo, last > e->hi ? last : e->hi };
}

void nvf_strip_at(const nvf_strips *s, int64_t number, nvf_range *units, nvf_range *elements) {
  int64_t lo = number * s->each, end = s->units[s->n - 1];
  memset(units, 0, sizeof *units * (size_t)s->n);
  memset(elements, 0, sizeof *elements * (size_t)s->nlocal);
  units[s->n - 1] = (nvf_range){ lo, end - lo < s->each ? end : lo + s->each };
  for (int i = s->n - 1, first, last = s->nwindow; i >= 0; i--, last = first) {
    for (first = last; first && s->window[first - 1].step == i;) first--;
    for (int j = first; j < last; j++)
      if (s->window[j].written) add_units(&units[i], &s->window[j], elements[s->window[j].local]);
    for (int j = first; j < last; j++)
      add_elements(&elements[s->window[j].local], &s->window[j], units[i], s->elements[s->window[j].local]);
  }
}

/* Sets the bytes of each local buffer with strips of this length. Returns how often an average unit is computed. */
static double measure_strips(nvf_strips *s) {
  nvf_range units[MANY + 1], elements[MANY + 1];
  double most = 0, sum[MANY + 1] = { 0 };
  memset(s->bytes, 0, sizeof *s->bytes * (size_t)s->nlocal);
  s->count = (s->units[s->n - 1] + s->each - 1) / s->each;
  for (int64_t i = 0; i < s->count; i++) {
    nvf_strip_at(s, i, units, elements);
    for (int j = 0; j < s->n; j++) sum[j] += (double)(units[j].hi - units[j].lo);
    for (int j = 0; j < s->nwindow; j++) {
      int local = s->window[j].local;
      int64_t bytes = (elements[local].hi - elements[local].lo) * s->window[j].size;
      s->bytes[local] = bytes > s->bytes[local] ? bytes : s->bytes[local];
    }
  }
  for (int j = 0; j < s->n; j++) most = sum[j] / (double)s->units[j] > most ? sum[j] / (double)s->units[j] : most;
  return most;
}

/* Strips as long as the cache of a core holds, or longer ones where they would compute much again or the last step's
   units are long. 0: no length is of use: what lies between the steps would not stay in the caches, or there would be
   too few strips for the threads. */
static int choose_length(const finder *f, nvf_strips *s) {
  enum { STRIPS = 4, MOST = 4096 }; /* for each thread; in all */
  static const double AGAIN = 1.08;
  int64_t units = s->units[s->n - 1], all = 0, cores = f->caps->cores, limit = f->caps->l2 / cores / 2;
  for (int i = 0; i < s->nlocal; i++) all += f->p->buf[f->local[i]].bytes;
  double fits = (double)f->caps->onchip / 2 / (double)(all + 1) * (double)units;
  s->each = fits < (double)units ? (int64_t)fits : units;
  if (s->each > units / (STRIPS * cores)) s->each = units / (STRIPS * cores);
  if (s->each < units / MOST) s->each = units / MOST;
  if (s->each < 1) s->each = 1;
  for (;; s->each *= 2) {
    double again = measure_strips(s);
    int64_t bytes = 0;
    for (int i = 0; i < s->nlocal; i++) bytes += s->bytes[i];
    if (bytes > limit || (s->count < cores && all > limit)) return 0;
    if (again <= AGAIN) return s->count > 1;
    if (s->each >= units) return 0;
  }
}

static nvf_strips *make_strips(finder *f) {
  nvb_arena *a = f->p->arena;
  nvf_strips *s = NVB_NEW(a, nvf_strips);
  find_locals(f);
  if (f->nlocal > MANY || !may_wait(f)) return NULL;
  *s = (nvf_strips){ .n = f->n,
                     .step = nvb_dup(a, f->step, sizeof *f->step * (size_t)f->n),
                     .units = NVB_NEWN(a, int64_t, f->n),
                     .blocks = NVB_NEWN(a, int64_t, f->n),
                     .window = NVB_NEWN(a, nvf_window, f->n * (MANY + 1)),
                     .nlocal = f->nlocal,
                     .local = nvb_dup(a, f->local, sizeof *f->local * (size_t)f->nlocal),
                     .bytes = NVB_NEWN(a, int64_t, f->nlocal),
                     .elements = NVB_NEWN(a, int64_t, f->nlocal) };
  for (int i = 0; i < f->n; i++)
    if (!add_windows(f, s, i)) return NULL;
  return drops_local(f, s) || !choose_length(f, s) ? NULL : s;
}

/* ---- all strips of a plan */
/* Adds steps before and after those found as long as the strips of all can be made. */
static nvf_strips *grow_strips(finder *f, int transform) {
  nvf_strips *best = NULL;
  f->n = 0;
  add_step(f, transform);
  for (int i; f->n < MANY && (i = step_before(f)) >= 0;) add_step(f, i);
  if (f->n > 1) best = make_strips(f);
  for (int i; f->n < MANY && (i = step_after(f)) >= 0;) {
    add_step(f, i);
    for (int j; f->n < MANY && (j = step_before(f)) >= 0;) add_step(f, j);
    nvf_strips *s = make_strips(f);
    if (!s) break;
    best = s;
  }
  return best;
}

/* What steps of strips read has to live until the last of them runs. */
static void keep_operands(nvf_plan *p, const nvf_strips *s) {
  for (int i = 0; i < s->n; i++) {
    const nvf_step *x = &p->step[s->step[i]];
    for (int j = 0; j < x->k->nparam; j++) {
      nvf_buf *b = x->bind[j].kind == NVF_BUFFER ? &p->buf[x->bind[j].buf] : NULL;
      if (b && b->last < s->step[s->n - 1]) b->last = s->step[s->n - 1];
    }
  }
  for (int i = 0; i < s->nlocal; i++) p->buf[s->local[i]].local = 1;
}

void nvf_find_strips(nvf_plan *p, const nvb_caps *caps) {
  finder f = { .p = p, .caps = caps, .taken = nvb_get(p->arena, (size_t)p->nstep + 1) };
  p->strips = NVB_NEWN(p->arena, nvf_strips *, p->nstep + 1);
  for (int i = 0; i < p->nstep; i++) {
    nvf_strips *s = has_units(&f, i) && is_transform(&p->step[i]) ? grow_strips(&f, i) : NULL;
    if (!s) continue;
    p->strips[p->nstrips++] = s;
    for (int j = 0; j < s->n; j++) f.taken[s->step[j]] = p->step[s->step[j]].in_strips = 1;
    keep_operands(p, s);
  }
  if (p->nstrips) nvf_place_temporaries(p);
}
