/* What the hints of a GPU's schedule promise, tried at random places of every kernel of a plan: wide accesses are
   aligned and contiguous, and `whole` conditions do not tell their elements apart. */
#ifndef HINTS_H
#define HINTS_H
#include "oracle.h"

typedef struct spot { /* one element of one block */
  const nvf_step *step;
  const nvf_part *part;
  const uint64_t *args;
  int64_t grid[NVF_MAX_GRID], axis[256];
} spot;

static inline int64_t floored(int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }

static inline int64_t at_spot(const spot *p, const nvf_expr *x) {
  int64_t a = x->kind >= NVF_ADD ? at_spot(p, x->a) : 0, b = x->kind >= NVF_ADD ? at_spot(p, x->b) : 0;
  switch (x->kind) {
  case NVF_CONST: return x->value;
  case NVF_PARAM: return (int64_t)p->args[x->id];
  case NVF_NAME: return p->step->s->bind[x->id].value;
  case NVF_GRID: return p->grid[x->id];
  case NVF_AXIS: return p->axis[x->id];
  case NVF_TILE: return 7 * x->id; /* the same for neighbours */
  case NVF_ADD: return a + b;
  case NVF_SUB: return a - b;
  case NVF_MUL: return a * b;
  case NVF_DIV: return floored(a, b);
  case NVF_MOD: return a - b * floored(a, b);
  default: return 0;
  }
}

static inline int holds_at(const spot *p, const struct nvf_rel *r) {
  int64_t a = at_spot(p, r->a), b = at_spot(p, r->b);
  switch (r->cmp) {
  case NVF_LT: return a < b;
  case NVF_LE: return a <= b;
  case NVF_EQ: return a == b;
  case NVF_NE: return a != b;
  case NVF_GE: return a >= b;
  default: return a > b;
  }
}

static inline int64_t hint_of(const nvf_step *s, int stmt, nvf_hint hint) {
  return nvf_hint_value(s->s, stmt, hint, 0);
}

/* The axis of which an access takes `vec` elements: its lowest digit is items, and the address moves with it. */
static inline int wide_axis(spot *p, const nvf_layout *l, const nvf_expr *map, int64_t vec) {
  for (int i = 0; i < l->n; i++) {
    int64_t was = at_spot(p, map), now;
    const nvf_digit *d = &l->d[i];
    if (d->stride != 1 || d->level != 'i' || d->extent % vec) continue;
    p->axis[d->axis]++;
    now = at_spot(p, map);
    p->axis[d->axis]--;
    if (now == was + 1) return d->axis;
  }
  return -1;
}

static inline void hold_access(spot *p, const nvf_plan *plan, const nvf_stmt *s, const nvf_layout *l) {
  int64_t vec = hint_of(p->step, s->id, NVF_HINT_VEC), whole = hint_of(p->step, s->id, NVF_HINT_WHOLE);
  const nvf_buf *b = &plan->buf[p->step->bind[s->buf].buf];
  nvm_dtype type = p->step->k->param[s->buf].type;
  if (!vec) {
    ck_assert_int_eq(whole, 0);
    return;
  }
  ck_assert_int_le(vec * nvg_size(type), 16);
  ck_assert(b->kind != NVF_BLEAF || plan->g->leaf[b->id].align16);
  if (vec == 1) return; /* both parts of a complex element */
  for (int i = 0; i < l->n; i++) p->axis[l->d[i].axis] = 0;
  for (int i = 0; i < l->n; i++) /* the lowest digits stay 0 */
    p->axis[l->d[i].axis] += l->d[i].stride == 1 && l->d[i].level == 'i' ? 0 : rand() % l->d[i].extent * l->d[i].stride;
  int axis = wide_axis(p, l, s->map, vec);
  ck_assert_msg(axis >= 0, "statement %d: no axis of %d elements", s->id, (int)vec);
  p->axis[axis] += rand() % 4 * vec % nvf_extent(l, axis);
  int64_t first = at_spot(p, s->map), from = p->axis[axis];
  ck_assert_msg(first % vec == 0, "statement %d: address %lld is no multiple of %d", s->id, (long long)first, (int)vec);
  for (int64_t i = 0; i < vec; i++) {
    p->axis[axis] = from + i;
    ck_assert_int_eq(at_spot(p, s->map), first + i);
    for (int r = 0; s->where && r < s->where->nrel && whole; r++) {
      int now = holds_at(p, &s->where->rel[r]);
      p->axis[axis] = from;
      ck_assert_msg(now == holds_at(p, &s->where->rel[r]), "statement %d: element %d is apart", s->id, (int)i);
      p->axis[axis] = from + i;
    }
  }
  p->axis[axis] = from;
}

static inline void hold_hints(nvb_arena *a, const nvf_plan *plan) {
  for (int i = 0; i < plan->nstep; i++) {
    const nvf_step *st = &plan->step[i];
    const nvf_typed *t = nvf_kernel_check(a, st->k, st->s);
    for (int j = 0; j < st->s->nhint; j++)
      ck_assert(nvf_hint_get(st->s->hint[j].hint)->targets & (plan->device == NVB_CPU ? NVF_CPU : NVF_GPU));
    uint64_t *args = NVB_NEWN(a, uint64_t, st->k->nparam + 1);
    spot *p = NVB_NEW(a, spot);
    for (int j = 0; j < st->k->nparam; j++) args[j] = st->bind[j].bits;
    for (int q = 0; q < st->k->npart; q++)
      for (int j = 0; j < 20 * st->k->part[q].body.n && st->blocks; j++) {
        const nvf_stmt *s = st->k->part[q].body.s[j % st->k->part[q].body.n];
        *p = (spot){ .step = st, .part = &st->k->part[q], .args = args };
        for (int g = 0; g < p->part->ngrid; g++) {
          int64_t n = at_spot(p, p->part->grid[g].extent);
          p->grid[g] = n < 1 ? 0 : rand() % 3 ? rand() % n : n - 1;
        }
        if (s->op == NVF_LOAD || s->op == NVF_STORE) hold_access(p, plan, s, t->stmt[s->id]);
      }
  }
}
#endif
